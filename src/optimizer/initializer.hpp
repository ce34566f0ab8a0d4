// SPDX-License-Identifier: Apache-2.0
// Rules that fill parameters before training (SYM-08). The same seed and names give the same numbers. The boundary
// drives it.
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
  // Names and settings as MXNet's Python package has them. Throws kName, kInvalidArgument.
  static std::shared_ptr<Initializer> create(const std::string &name, const AttrMap &settings, uint64_t seed);
  // As `__init__` of the variable `name` has it. Errors name that.
  static std::shared_ptr<Initializer> from_attribute(const std::string &name, const std::string &source, uint64_t seed);
  virtual ~Initializer() = default;

  // By `__init__` of the symbol's variable (null: none), else by the end of the name. Null arrays are left out. Throws
  // kName, kShape before anything is written.
  void apply(const Symbol *symbol, const NamedArrays &arrays) const;
  // By this rule, whatever the name, which chooses the random numbers.
  void fill(const std::string &name, const NDArray &array) const;

  // What fill() does, in parts: for rules that are made of others.
  virtual void check(const std::string &name, const Shape &shape) const = 0;  // kShape
  virtual void values(const std::string &name, const Shape &shape, double *to) const = 0;
  // Told to the rule of an `__init__` by the one that fills all other weights.
  virtual void follow(const Initializer &) {}

 private:
  uint64_t seed_ = 0;  // also of what `__init__` attributes ask for
};

}  // namespace cohort
