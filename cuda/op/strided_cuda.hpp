// SPDX-License-Identifier: Apache-2.0
// Any functor of op/pointwise.hpp on operands that broadcast to one shape, and the sum (or product, maximum ...) of its
// results over axes: the kernels of the broadcasting rules and of the reductions, and of the gradients of both; of
// other element types than float and double, also those of the rules without broadcasting.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "device/kernel.hpp"
#include "op/pointwise.hpp"
#include "op/reduce.hpp"

namespace cohort {
namespace strided {

// A functor of inputs, which have these shapes (null: not used), broadcast to `large` and reduced to `out`.
struct Source {
  PointwiseCall call;
  const Shape *operands[3];
  Shape large, out;
};

inline constexpr Reduction kPlainSum{PointwiseCode::kCopy, Reduction::Combine::kSum};

class StridedCuda final : public Kernel {
 public:
  // Computed as arrays of `dtype` are.
  void add(StepSpec &spec, Dtype dtype, const Source &source, int output, const Reduction &reduction = kPlainSum);
  // The last output first: the first one may lie where an input is.
  void run(const Args &args, const Lane &lane) const override {
    for (size_t i = runs_.size(); i-- > 0;) runs_[i](args, lane);
  }

 private:
  std::vector<std::function<void(const Args &, const Lane &)>> runs_;
};

Source source_of(const StepSpec &spec, const PointwiseCall &call, const Shape &large, size_t output);

// A copy that repeats `data` along axes of length 1, and its gradient, a sum.
std::unique_ptr<Kernel> make_repeated(StepSpec &spec, const Shape &data, const Shape &repeated);
std::unique_ptr<Kernel> make_repeated_backward(StepSpec &spec, const Shape &data, const Shape &repeated);

}  // namespace strided
}  // namespace cohort
