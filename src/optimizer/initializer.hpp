// SPDX-License-Identifier: Apache-2.0
// Rules that fill parameters before training (SYM-08). The same seed and names give the same numbers. Used by the API
// layer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/attributes.hpp"
#include "ndarray/ndarray.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

class Initializer {
 public:
  // Takes the names and settings of MXNet's Python package. Throws kName, kInvalidArgument.
  static std::shared_ptr<Initializer> create(const std::string &name, const AttrMap &settings, uint64_t seed);
  // Reads the `__init__` attribute of the variable `name`, which errors name.
  static std::shared_ptr<Initializer> from_attribute(const std::string &name, const std::string &source, uint64_t seed);
  virtual ~Initializer() = default;

  // Fills each array by `__init__` of the symbol's variable (null: none), else by the end of its name. Null arrays are
  // left out. Throws kName, kShape before anything is written.
  void apply(const Symbol *symbol, const NamedArrays &arrays) const;
  // Fills the array by this rule, whatever its name, which only chooses the random numbers.
  void fill(const std::string &name, const NDArray &array) const;

  // The two parts of fill(), for rules that are made of others.
  virtual void check(const std::string &name, const Shape &shape) const = 0;  // kShape
  virtual void values(const std::string &name, const Shape &shape, double *to) const = 0;
  // Gives the rule of an `__init__` the initializer that fills all other weights.
  virtual void follow(const Initializer &) {}

 private:
  uint64_t seed_ = 0;  // also for `__init__` attributes
};

}  // namespace cohort
