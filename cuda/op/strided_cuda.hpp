// SPDX-License-Identifier: Apache-2.0
// Applies a functor of op/pointwise.hpp to operands that broadcast to one shape, and sums its results (or takes their
// product, maximum ...) over axes. Used for the broadcasting rules, the reductions, and the gradients of both; for
// integers also for the rules without broadcasting.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "device/kernel.hpp"
#include "op/pointwise.hpp"
#include "op/reduce.hpp"

namespace cohort {
namespace strided {

// A functor of inputs with these shapes (null: not used), broadcast to `large` and reduced to `out`.
struct StridedCall {
  PointwiseCall call;
  const Shape *operands[3];
  Shape large, out;
};

inline constexpr Reduction kPlainSum{PointwiseCode::kCopy, Reduction::Combine::kSum};

class StridedCuda final : public Kernel {
 public:
  // Adds the computation of one output, in the compute type of `dtype`.
  void add(StepSpec &spec, Dtype dtype, const StridedCall &source, int output, const Reduction &reduction = kPlainSum);
  // The last output first: the first one may be one of the inputs.
  void run(const Args &args, const Lane &lane) const override {
    for (size_t i = runs_.size(); i-- > 0;) runs_[i](args, lane);
  }

 private:
  std::vector<std::function<void(const Args &, const Lane &)>> runs_;
};

StridedCall source_of(const StepSpec &spec, const PointwiseCall &call, const Shape &large, size_t output);

// Repeats `data` along its axes of length 1; the gradient is a sum.
std::unique_ptr<Kernel> make_repeated(StepSpec &spec, const Shape &data, const Shape &repeated);
std::unique_ptr<Kernel> make_repeated_backward(StepSpec &spec, const Shape &data, const Shape &repeated);

}  // namespace strided
}  // namespace cohort
