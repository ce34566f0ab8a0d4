// SPDX-License-Identifier: Apache-2.0
// Kernels of transpose and SwapAxis.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/strided_copy.hpp"
#include "op/transpose.hpp"

namespace cohort {
namespace {

template <typename A, bool kBackward>
class Transpose final : public Kernel {
 public:
  explicit Transpose(const StepSpec &spec) {
    const Shape &in = spec.inputs[0].shape, &out = spec.outputs[0].shape;
    const std::vector<int> order = permutation(spec.attrs_as<A>(), in.rank());
    const std::vector<int64_t> from = dense_strides(in), to = dense_strides(out);
    std::vector<StridedCopy::Axis> axes;
    for (int i = 0; i < in.rank(); ++i) {
      const int j = order[size_t(i)];
      axes.push_back(kBackward ? StridedCopy::Axis{in[i], from[size_t(i)], to[size_t(j)]}
                               : StridedCopy::Axis{out[i], from[size_t(j)], to[size_t(i)]});
    }
    copy_ = StridedCopy(std::move(axes), dtype_size(spec.outputs[0].dtype));
  }
  void run(const Args &args, const Lane &lane) const override { copy_.run(args.inputs[0], args.outputs[0], lane); }

 private:
  StridedCopy copy_;
};

using TransposeForward = Transpose<TransposeAttrs, false>;
using TransposeBackward = Transpose<TransposeAttrs, true>;
using SwapAxisForward = Transpose<SwapAxisAttrs, false>;
using SwapAxisBackward = Transpose<SwapAxisAttrs, true>;
COHORT_KERNEL(backend, transpose, TransposeForward);
COHORT_KERNEL(backend, _backward_transpose, TransposeBackward);
COHORT_KERNEL(backend, SwapAxis, SwapAxisForward);
COHORT_KERNEL(backend, _backward_SwapAxis, SwapAxisBackward);

}  // namespace
}  // namespace cohort
