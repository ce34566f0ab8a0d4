// SPDX-License-Identifier: Apache-2.0
// Convolution and Deconvolution as plain sums, one thread an element, the sums of src/kernels/convolution_sizes.hpp:
// for all layouts, strides and floating types. Gradients of filters are summed in parts, which are joined in order.
#include <algorithm>
#include <vector>

#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "kernels/convolution_sizes.hpp"
#include "op/convolution.hpp"
#include "op/deconvolution.hpp"

namespace cohort {
namespace {

using convolution::offset_of;
using convolution::place_in;
using convolution::volume;

constexpr Elements kNothing{nullptr, int64_t(Dtype::kFloat32)};

template <typename C>
struct Reader {
  Elements from;
  __device__ C operator()(int64_t i) const { return load<C>(from, i); }
};

template <typename C>
void convolve(const ConvolutionSizes &s, const Elements &data, const Elements &weight, const Elements &bias,
              const Elements &result, const Lane &lane) {
  const int64_t places = volume(s.out), channels = s.groups * s.out_channels;
  const Reader<C> x{data}, w{weight};
  for_each(lane, s.batch * channels * places, [=] __device__(int64_t i) {
    const int64_t p = i % places, o = i / places % channels, n = i / places / channels;
    const C start = bias.data ? load<C>(bias, o) : C(0);
    store(result, n * s.out_batch_step + o * s.out_channel_step + offset_of(place_in(s.out, p), s.out_step),
          convolution::result_at(s, n, o, p, start, x, w));
  });
}

template <typename C>
void convolve_backward_data(const ConvolutionSizes &s, const Elements &head, const Elements &weight,
                            const Elements &bias, const Elements &grad, const Lane &lane) {
  const int64_t places = volume(s.in), channels = s.groups * s.in_channels;
  const Reader<C> dy{head}, w{weight};
  for_each(lane, s.batch * channels * places, [=] __device__(int64_t i) {
    const int64_t p = i % places, c = i / places % channels, n = i / places / channels;
    const C start = bias.data ? load<C>(bias, c) : C(0);
    store(grad, n * s.in_batch_step + c * s.in_channel_step + offset_of(place_in(s.in, p), s.in_step),
          convolution::data_gradient_at(s, n, c, p, start, dy, w));
  });
}

int64_t filter_elements(const ConvolutionSizes &s) {
  return s.groups * s.out_channels * s.in_channels * volume(s.kernel);
}
// A part is some samples.
int64_t filter_parts(const ConvolutionSizes &s) {
  constexpr int64_t kBusy = 132 * 1024;
  return std::clamp<int64_t>(kBusy / std::max<int64_t>(filter_elements(s), 1), 1, std::max<int64_t>(s.batch, 1));
}

template <typename C>
void convolve_backward_weight(const ConvolutionSizes &s, const Elements &head, const Elements &data,
                              const Elements &grad, C *sums, const Lane &lane) {
  const int64_t kernel = volume(s.kernel), places = volume(s.out), parts = filter_parts(s), count = filter_elements(s);
  const Reader<C> dy{head}, x{data};
  for_each(lane, count * parts, [=] __device__(int64_t unit) {
    const int64_t i = unit / parts, part = unit % parts, q = i % kernel;
    const int64_t c = i / kernel % s.in_channels, o = i / kernel / s.in_channels;
    C sum = 0;
    for (int64_t n = s.batch * part / parts; n < s.batch * (part + 1) / parts; ++n) {
      sum = convolution::weight_gradient_at(s, o, c, q, n, 0, places, sum, dy, x);
    }
    sums[unit] = sum;
  });
  for_each(lane, count, [=] __device__(int64_t i) {
    const int64_t q = i % kernel, c = i / kernel % s.in_channels, o = i / kernel / s.in_channels;
    C sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += sums[i * parts + part];
    store(grad, o * s.weight_out_step + c * s.weight_in_step + offset_of(place_in(s.kernel, q), s.weight_step), sum);
  });
}

// Of each channel of `values`, which has the sizes of the convolution's result or, of_data, of its data. A warp each.
template <typename C>
void sum_channels(const ConvolutionSizes &s, bool of_data, const Elements &values, const Elements &sums,
                  const Lane &lane) {
  const int64_t channels = s.groups * (of_data ? s.in_channels : s.out_channels);
  const int64_t batch_step = of_data ? s.in_batch_step : s.out_batch_step;
  const int64_t channel_step = of_data ? s.in_channel_step : s.out_channel_step;
  const ConvolutionSizes::Axes lengths = of_data ? s.in : s.out, step = of_data ? s.in_step : s.out_step;
  const int64_t places = volume(lengths), batch = s.batch;
  for_each_row(lane, channels, [=] __device__(int64_t c) {
    const C sum = sum_along<C>(batch * places, [=](int64_t i) {
      return load<C>(values,
                     i / places * batch_step + c * channel_step + offset_of(place_in(lengths, i % places), step));
    });
    if (threadIdx.x == 0) store(sums, c, sum);
  });
}

template <typename C>
class ConvolutionCuda final : public Kernel {
 public:
  explicit ConvolutionCuda(const StepSpec &spec) : dtype_(spec.inputs[0].dtype) {
    const auto &a = spec.attrs_as<ConvolutionAttrs>();
    has_bias_ = !a.no_bias;
    sizes_ = convolution_sizes(spec.inputs[0].shape, spec.inputs[1].shape, spec.outputs[0].shape, a.stride, a.dilate,
                               a.pad, a.num_group, channels_last(a.layout));
  }
  void run(const Args &args, const Lane &lane) const override {
    convolve<C>(sizes_, elements_of(args.inputs[0], dtype_), elements_of(args.inputs[1], dtype_),
                has_bias_ ? elements_of(args.inputs[2], dtype_) : kNothing, elements_of(args.outputs[0], dtype_), lane);
  }

 private:
  const Dtype dtype_;
  bool has_bias_;
  ConvolutionSizes sizes_;
};

// Inputs: head gradient, data, weight.
template <typename C>
class ConvolutionBackwardCuda final : public Kernel {
 public:
  explicit ConvolutionBackwardCuda(StepSpec &spec) : dtype_(spec.inputs[0].dtype), wanted_(spec.wanted) {
    const auto &a = spec.attrs_as<ConvolutionAttrs>();
    sizes_ = convolution_sizes(spec.inputs[1].shape, spec.inputs[2].shape, spec.inputs[0].shape, a.stride, a.dilate,
                               a.pad, a.num_group, channels_last(a.layout));
    if (wanted_[1]) spec.scratch_bytes = size_t(filter_elements(sizes_) * filter_parts(sizes_)) * sizeof(C);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[0], dtype_);
    const auto out = [&](int i) { return elements_of(args.outputs[i], dtype_); };
    if (wanted_[0]) {
      convolve_backward_data<C>(sizes_, head, elements_of(args.inputs[2], dtype_), kNothing, out(0), lane);
    }
    if (wanted_[1]) {
      convolve_backward_weight<C>(sizes_, head, elements_of(args.inputs[1], dtype_), out(1),
                                  static_cast<C *>(args.scratch), lane);
    }
    if (wanted_.size() > 2 && wanted_[2]) sum_channels<C>(sizes_, false, head, out(2), lane);
  }

 private:
  const Dtype dtype_;
  const std::vector<bool> wanted_;
  ConvolutionSizes sizes_;
};

template <typename C>
class DeconvolutionCuda final : public Kernel {
 public:
  explicit DeconvolutionCuda(const StepSpec &spec) : dtype_(spec.inputs[0].dtype) {
    const auto &a = spec.attrs_as<DeconvolutionAttrs>();
    has_bias_ = !a.no_bias;
    sizes_ =
        convolution_sizes(spec.outputs[0].shape, spec.inputs[1].shape, spec.inputs[0].shape, a.stride, a.dilate,
                          deconvolution_padding(a, spec.inputs[0].shape).pad, a.num_group, channels_last(a.layout));
  }
  void run(const Args &args, const Lane &lane) const override {
    convolve_backward_data<C>(sizes_, elements_of(args.inputs[0], dtype_), elements_of(args.inputs[1], dtype_),
                              has_bias_ ? elements_of(args.inputs[2], dtype_) : kNothing,
                              elements_of(args.outputs[0], dtype_), lane);
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
    if (wanted_[1]) spec.scratch_bytes = size_t(filter_elements(sizes_) * filter_parts(sizes_)) * sizeof(C);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[0], dtype_);
    const auto out = [&](int i) { return elements_of(args.outputs[i], dtype_); };
    if (wanted_[0]) convolve<C>(sizes_, head, elements_of(args.inputs[2], dtype_), kNothing, out(0), lane);
    if (wanted_[1]) {
      convolve_backward_weight<C>(sizes_, elements_of(args.inputs[1], dtype_), head, out(1),
                                  static_cast<C *>(args.scratch), lane);
    }
    if (wanted_.size() > 2 && wanted_[2]) sum_channels<C>(sizes_, true, head, out(2), lane);
  }

 private:
  const Dtype dtype_;
  const std::vector<bool> wanted_;
  ConvolutionSizes sizes_;
};

template <template <typename> class K>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<K<double>>(spec);
  return std::make_unique<K<float>>(spec);
}

COHORT_KERNEL_BY(cuda, Convolution, make<ConvolutionCuda>).dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward_Convolution, make<ConvolutionBackwardCuda>).dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, Deconvolution, make<DeconvolutionCuda>).dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward_Deconvolution, make<DeconvolutionBackwardCuda>).dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
