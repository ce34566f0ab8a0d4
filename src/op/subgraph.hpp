// SPDX-License-Identifier: Apache-2.0
// A graph inside a node (the body of a loop, a branch), as its operator sees it. Its inputs are its variables in the
// order in which it lists them, auxiliary states included; it sees nothing else from outside. src/symbol holds the
// graph; kernels get it compiled (device/subprogram.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"

namespace cohort {

using Shapes = std::vector<Shape>;
using Dtypes = std::vector<Dtype>;

enum class PassKind : uint8_t { kInference, kTraining, kBackward };
constexpr size_t kNumPasses = 3;

class Subgraph {
 public:
  virtual ~Subgraph() = default;
  virtual size_t num_inputs() const = 0;
  virtual size_t num_outputs() const = 0;
  virtual bool is_auxiliary(size_t input) const = 0;  // auxiliary state of an operator inside: gets no gradient
  // Whether a pass of this kind writes the array given for the input: an auxiliary state, an updated weight, or a fixed
  // gamma.
  virtual bool is_written(size_t input, PassKind pass) const = 0;
  virtual bool is_random() const = 0;    // true if any operator in it is
  virtual bool is_stateful() const = 0;  // likewise
  // Complete what they can in both directions, like Op::infer_shape and Op::infer_dtype.
  virtual void infer_shapes(Shapes *in, Shapes *out) const = 0;
  virtual void infer_dtypes(Dtypes *in, Dtypes *out) const = 0;
  virtual double flops(const Shapes &in) const = 0;  // of one pass, like Op::flops
};
using Subgraphs = std::vector<std::shared_ptr<const Subgraph>>;

}  // namespace cohort
