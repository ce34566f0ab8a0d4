// SPDX-License-Identifier: Apache-2.0
// Deconvolution as the gradient of a convolution, by the kernels of convolution_cuda.cu. Faster kernels by cuBLASLt and
// cuDNN are in convolution_columns_cuda.cu and convolution_cudnn_cuda.cu.
#include <algorithm>
#include <vector>

#include "cuda/op/convolution_tiles.hpp"
#include "device/kernel_table.hpp"
#include "op/deconvolution.hpp"

namespace cohort {
namespace {

using namespace tiles;

template <typename C>
class DeconvolutionCuda final : public Kernel {
 public:
  explicit DeconvolutionCuda(StepSpec &spec) : dtype_(spec.inputs[0].dtype) {
    const auto &a = spec.attrs_as<DeconvolutionAttrs>();
    has_bias_ = !a.no_bias;
    sizes_ =
        convolution_sizes(spec.outputs[0].shape, spec.inputs[1].shape, spec.inputs[0].shape, a.stride, a.dilate,
                          deconvolution_padding(a, spec.inputs[0].shape).pad, a.num_group, channels_last(a.layout));
    spec.scratch_bytes = TilePlan(sizes_, TilePlan::kDataGradient, sizeof(C)).scratch_bytes;
  }
  void run(const Args &args, const Lane &lane) const override {
    convolve_backward_data<C>(sizes_, elements_of(args.inputs[0], dtype_), elements_of(args.inputs[1], dtype_),
                              has_bias_ ? elements_of(args.inputs[2], dtype_) : kNothing,
                              elements_of(args.outputs[0], dtype_), args.scratch, lane);
  }

 private:
  const Dtype dtype_;
  bool has_bias_;
  ConvolutionSizes sizes_;
};

// Inputs: head gradient, data, weight.
template <typename C>
class DeconvolutionBackwardCuda final : public Kernel {
 public:
  explicit DeconvolutionBackwardCuda(StepSpec &spec) : dtype_(spec.inputs[0].dtype), wanted_(spec.wanted) {
    const auto &a = spec.attrs_as<DeconvolutionAttrs>();
    sizes_ =
        convolution_sizes(spec.inputs[0].shape, spec.inputs[2].shape, spec.inputs[1].shape, a.stride, a.dilate,
                          deconvolution_padding(a, spec.inputs[1].shape).pad, a.num_group, channels_last(a.layout));
    for (const auto of : {TilePlan::kResult, TilePlan::kFilterGradient}) {
      spec.scratch_bytes = std::max(spec.scratch_bytes, TilePlan(sizes_, of, sizeof(C)).scratch_bytes);
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[0], dtype_);
    const auto out = [&](int i) { return elements_of(args.outputs[i], dtype_); };
    if (wanted_[0])
      convolve<C>(sizes_, head, elements_of(args.inputs[2], dtype_), kNothing, out(0), args.scratch, lane);
    if (wanted_[1]) {
      convolve_backward_weight<C>(sizes_, elements_of(args.inputs[1], dtype_), head, out(1), args.scratch, lane);
    }
    if (wanted_.size() > 2 && wanted_[2]) sum_channels<C>(sizes_, true, head, out(2), lane);
  }

 private:
  const Dtype dtype_;
  const std::vector<bool> wanted_;
  ConvolutionSizes sizes_;
};

COHORT_KERNEL_BY(cuda, Deconvolution, make_tiles<DeconvolutionCuda>).named("tiles").dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward_Deconvolution, make_tiles<DeconvolutionBackwardCuda>)
    .named("tiles")
    .dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
