// SPDX-License-Identifier: Apache-2.0
// dot and batch_dot.
#include <algorithm>

#include "cuda/op/matrix_product.hpp"
#include "device/kernel_table.hpp"
#include "op/dot.hpp"

namespace cohort {
namespace {

template <bool kBatched>
class DotCuda final : public Kernel {
 public:
  explicit DotCuda(StepSpec &spec)
      : product_({spec.outputs[0].dtype, spec}, extent_of(spec.attrs_as<DotAttrs>(), spec.inputs)) {
    spec.scratch_bytes = product_.scratch_bytes();
  }
  void run(const Args &args, const Lane &lane) const override {
    product_.run(lane, args.inputs[0], args.inputs[1], args.outputs[0], nullptr, args.scratch);
  }

 private:
  static ProductExtent extent_of(const DotAttrs &attrs, const std::vector<TensorSpec> &inputs) {
    const DotExtent e = dot_extent(attrs, inputs[0].shape, inputs[1].shape, kBatched);
    return {e.batch, e.m, e.n, e.k, attrs.transpose_a, attrs.transpose_b};
  }
  const MatrixProduct product_;
};

// Inputs: head gradient, lhs, rhs.
template <bool kBatched>
class DotBackwardCuda final : public Kernel {
 public:
  explicit DotBackwardCuda(StepSpec &spec) {
    const auto &attrs = spec.attrs_as<DotAttrs>();
    const DotExtent e = dot_extent(attrs, spec.inputs[1].shape, spec.inputs[2].shape, kBatched);
    const bool ta = attrs.transpose_a, tb = attrs.transpose_b;
    const auto add = [&](int output, int a, int b, const ProductExtent &extent) {
      if (!spec.wanted[size_t(output)]) return;
      parts_.push_back({MatrixProduct({spec.outputs[size_t(output)].dtype, spec}, extent), output, a, b});
      spec.scratch_bytes = std::max(spec.scratch_bytes, parts_.back().product.scratch_bytes());
    };
    constexpr int kHead = 0, kLhs = 1, kRhs = 2;
    if (ta) {
      add(0, kRhs, kHead, {e.batch, e.k, e.m, e.n, tb, true});
    } else {
      add(0, kHead, kRhs, {e.batch, e.m, e.k, e.n, false, !tb});
    }
    if (tb) {
      add(1, kHead, kLhs, {e.batch, e.n, e.k, e.m, true, ta});
    } else {
      add(1, kLhs, kHead, {e.batch, e.k, e.n, e.m, !ta, false});
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    for (const GradientProduct &part : parts_) {
      part.product.run(lane, args.inputs[part.a], args.inputs[part.b], args.outputs[part.output], nullptr,
                       args.scratch);
    }
  }

 private:
  struct GradientProduct {
    MatrixProduct product;
    int output, a, b;
  };
  std::vector<GradientProduct> parts_;
};

COHORT_KERNEL(cuda, dot, DotCuda<false>).named("cublaslt");
COHORT_KERNEL(cuda, _backward_dot, DotBackwardCuda<false>).named("cublaslt");
COHORT_KERNEL(cuda, batch_dot, DotCuda<true>).named("cublaslt");
COHORT_KERNEL(cuda, _backward_batch_dot, DotBackwardCuda<true>).named("cublaslt");

}  // namespace
}  // namespace cohort
