// SPDX-License-Identifier: Apache-2.0
// Convolution as products of gathered matrices, the columns of the data and the filters, for all layouts, strides and
// floating types; also computes Deconvolution (convolution_tiles.hpp). For groups of few channels the matrices would be
// too narrow: there one thread computes one element, by src/kernels/convolution_sizes.hpp. Gradients of filters are
// summed in parts, which are joined in order.
#include <algorithm>
#include <vector>

#include "cuda/op/convolution_tiles.hpp"
#include "cuda/op/finish_sums.hpp"
#include "cuda/op/gathered_product.cuh"
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "kernels/convolution_sizes.hpp"
#include "op/convolution.hpp"

namespace cohort {
namespace tiles {
namespace {

using convolution::Axes;
using convolution::offset_of;
using convolution::place_in;
using convolution::volume;

template <typename C>
struct ElementReader {
  Elements from;
  __device__ C operator()(int64_t i) const { return load<C>(from, i); }
};

// ---- one thread per element

template <typename C>
void convolve_narrow(const ConvolutionSizes &s, const Elements &data, const Elements &weight, const Elements &bias,
                     const Elements &result, const Lane &lane) {
  const int64_t places = volume(s.out), channels = s.groups * s.out_channels;
  const ElementReader<C> x{data}, w{weight};
  for_each(lane, s.batch * channels * places, [=] __device__(int64_t i) {
    const int64_t p = i % places, o = i / places % channels, n = i / places / channels;
    const C start = bias.data ? load<C>(bias, o) : C(0);
    store(result, n * s.out_batch_step + o * s.out_channel_step + offset_of(place_in(s.out, p), s.out_step),
          convolution::result_at(s, n, o, p, start, x, w));
  });
}

template <typename C>
void data_gradient_narrow(const ConvolutionSizes &s, const Elements &head, const Elements &weight, const Elements &bias,
                          const Elements &grad, const Lane &lane) {
  const int64_t places = volume(s.in), channels = s.groups * s.in_channels;
  const ElementReader<C> dy{head}, w{weight};
  for_each(lane, s.batch * channels * places, [=] __device__(int64_t i) {
    const int64_t p = i % places, c = i / places % channels, n = i / places / channels;
    const C start = bias.data ? load<C>(bias, c) : C(0);
    store(grad, n * s.in_batch_step + c * s.in_channel_step + offset_of(place_in(s.in, p), s.in_step),
          convolution::data_gradient_at(s, n, c, p, start, dy, w));
  });
}

template <typename C>
void filter_gradient_narrow(const ConvolutionSizes &s, int64_t parts, const Elements &head, const Elements &data,
                            C *sums, const Lane &lane) {
  const int64_t kernel = volume(s.kernel), places = volume(s.out), all = s.batch * places;
  const int64_t count = s.groups * s.out_channels * s.in_channels * kernel;
  const ElementReader<C> dy{head}, x{data};
  for_each(lane, count * parts, [=] __device__(int64_t unit) {
    const int64_t i = unit % count, part = unit / count, q = i % kernel;
    const int64_t c = i / kernel % s.in_channels, o = i / kernel / s.in_channels;
    C sum = 0;
    for (int64_t at = all * part / parts, end = all * (part + 1) / parts; at < end;) {
      const int64_t n = at / places, begin = at % places, stop = end - n * places < places ? end - n * places : places;
      sum = convolution::weight_gradient_at(s, o, c, q, n, begin, stop, sum, dy, x);
      at = n * places + stop;
    }
    sums[unit] = sum;
  });
}

// ---- products

// One element of the filters of a group, for one output channel (for the result and for gradients of filters) or for
// one channel of the data (for its gradient).
struct Tap {
  int64_t channel;   // where its channel begins in the image that is read
  int64_t weight;    // where it lies in the filters
  int32_t shift[3];  // how far from the window's start, dilated
};

void write_taps(const ConvolutionSizes &s, bool of_data, Tap *taps, const Lane &lane) {
  const int64_t kernel = volume(s.kernel);
  for_each(lane, (of_data ? s.out_channels : s.in_channels) * kernel, [=] __device__(int64_t i) {
    const int64_t channel = i / kernel;
    const Axes at = place_in(s.kernel, i % kernel);
    taps[i].channel = channel * (of_data ? s.out_channel_step : s.in_channel_step);
    taps[i].weight = channel * (of_data ? s.weight_out_step : s.weight_in_step) + offset_of(at, s.weight_step);
    for (size_t a = 0; a < 3; ++a) taps[i].shift[a] = int32_t(at[a] * s.dilate[a]);
  });
}

// The start of a window in the images.
struct WindowStart {
  int64_t image;
  int64_t at[3];
};

__device__ inline WindowStart window_start(const ConvolutionSizes &s, int64_t place) {
  const int64_t places = volume(s.out);
  const Axes at = place_in(s.out, place % places);
  WindowStart start{place / places * s.in_batch_step, {}};
  for (size_t a = 0; a < 3; ++a) start.at[a] = at[a] * s.stride[a] - s.pad[a];
  return start;
}

// An element of the data, 0 in the padding.
template <typename C>
__device__ C element_at(const ConvolutionSizes &s, const Elements &data, int64_t group, const WindowStart &start,
                        const Tap &tap) {
  int64_t at = start.image + group * s.in_channels * s.in_channel_step + tap.channel;
  for (size_t a = 0; a < 3; ++a) {
    const int64_t place = start.at[a] + tap.shift[a];
    if (place < 0 || place >= s.in[a]) return C(0);
    at += place * s.in_step[a];
  }
  return load<C>(data, at);
}

// (output channels) by (samples and places), over taps; results are groups.
template <typename C>
struct ResultProblem {
  using Column = WindowStart;
  using DepthPoint = Tap;
  static constexpr bool kColumnsApart = true;
  ConvolutionSizes s;
  Elements data, weight, bias, result;
  const Tap *taps;
  int64_t batch, m, n;

  __device__ DepthRange depth_of(int64_t) const { return {0, s.in_channels * volume(s.kernel)}; }
  __device__ Column column(int64_t, int64_t j) const { return window_start(s, j); }
  __device__ DepthPoint place(int64_t, int64_t k) const { return taps[k]; }
  __device__ C a(int64_t g, int64_t row, const DepthPoint &tap) const {
    return load<C>(weight, (g * s.out_channels + row) * s.weight_out_step + tap.weight);
  }
  __device__ C b(int64_t g, const DepthPoint &tap, const Column &start) const {
    return element_at<C>(s, data, g, start, tap);
  }
  __device__ void put(int64_t g, int64_t row, int64_t column, C sum) const {
    const int64_t places = volume(s.out), o = g * s.out_channels + row;
    const int64_t at = column / places * s.out_batch_step + o * s.out_channel_step;
    store(result, at + offset_of(place_in(s.out, column % places), s.out_step),
          bias.data ? sum + load<C>(bias, o) : sum);
  }
};

// (channels of the data) by (samples and places of the data), over taps; results are groups.
template <typename C>
struct DataGradientProblem {
  using Column = WindowStart;  // the sample of the head gradient, and the place with the padding before it
  using DepthPoint = Tap;
  static constexpr bool kColumnsApart = true;
  ConvolutionSizes s;
  Elements head, weight, bias, grad;
  const Tap *taps;
  int64_t batch, m, n;

  __device__ DepthRange depth_of(int64_t) const { return {0, s.out_channels * volume(s.kernel)}; }
  __device__ Column column(int64_t, int64_t j) const {
    const int64_t places = volume(s.in);
    const Axes at = place_in(s.in, j % places);
    return {j / places * s.out_batch_step, {at[0] + s.pad[0], at[1] + s.pad[1], at[2] + s.pad[2]}};
  }
  __device__ DepthPoint place(int64_t, int64_t k) const { return taps[k]; }
  __device__ C a(int64_t g, int64_t row, const DepthPoint &tap) const {
    return load<C>(weight, g * s.out_channels * s.weight_out_step + row * s.weight_in_step + tap.weight);
  }
  __device__ C b(int64_t g, const DepthPoint &tap, const Column &column) const {
    int64_t at = column.image + g * s.out_channels * s.out_channel_step + tap.channel;
    for (size_t a = 0; a < 3; ++a) {
      int64_t place = column.at[a] - tap.shift[a];
      if (place < 0) return C(0);
      if (s.stride[a] != 1) {
        if (place % s.stride[a] != 0) return C(0);
        place /= s.stride[a];
      }
      if (place >= s.out[a]) return C(0);
      at += place * s.out_step[a];
    }
    return load<C>(head, at);
  }
  __device__ void put(int64_t g, int64_t row, int64_t column, C sum) const {
    const int64_t places = volume(s.in), c = g * s.in_channels + row;
    const int64_t at = column / places * s.in_batch_step + c * s.in_channel_step;
    store(grad, at + offset_of(place_in(s.in, column % places), s.in_step), bias.data ? sum + load<C>(bias, c) : sum);
  }
};

// (output channels) by taps, over (samples and places); results are parts of groups.
template <typename C>
struct FilterGradientProblem {
  using Column = Tap;
  struct DepthPoint {
    int64_t head;  // without the channel
    WindowStart start;
  };
  static constexpr bool kColumnsApart = false;
  ConvolutionSizes s;
  Elements head, data;
  const Tap *taps;
  C *sums;
  int64_t parts, batch, m, n;

  __device__ DepthRange depth_of(int64_t i) const {
    const int64_t all = s.batch * volume(s.out), part = i / s.groups;
    return {all * part / parts, all * (part + 1) / parts};
  }
  __device__ Column column(int64_t, int64_t j) const { return taps[j]; }
  __device__ DepthPoint place(int64_t, int64_t k) const {
    const int64_t places = volume(s.out);
    return {k / places * s.out_batch_step + offset_of(place_in(s.out, k % places), s.out_step), window_start(s, k)};
  }
  __device__ C a(int64_t i, int64_t row, const DepthPoint &place) const {
    return load<C>(head, place.head + (i % s.groups * s.out_channels + row) * s.out_channel_step);
  }
  __device__ C b(int64_t i, const DepthPoint &place, const Column &tap) const {
    return element_at<C>(s, data, i % s.groups, place.start, tap);
  }
  __device__ void put(int64_t i, int64_t row, int64_t column, C sum) const { sums[(i * m + row) * n + column] = sum; }
};

// ---- functions of convolution_tiles.hpp

constexpr int64_t kNarrow = 8;  // channels of a group for which a tile is mostly empty

}  // namespace

TilePlan::TilePlan(const ConvolutionSizes &s, Of of, size_t element) {
  const int64_t kernel = volume(s.kernel);
  narrow = (of == kDataGradient ? s.in_channels : s.out_channels) < kNarrow;
  const int64_t taps = (of == kDataGradient ? s.out_channels : s.in_channels) * kernel;
  taps_bytes = narrow ? 0 : size_t(taps) * sizeof(Tap);
  scratch_bytes = taps_bytes;
  if (of != kFilterGradient) return;
  // Enough parts to keep the device busy, each long enough to be worth a launch.
  const int64_t depth = s.batch * volume(s.out), count = s.groups * s.out_channels * taps;
  const int64_t own = narrow ? count : gathered_blocks(s.groups, s.out_channels, taps);
  const int64_t busy = narrow ? 132 * 1024 : 132 * 4;
  parts = std::clamp<int64_t>(busy / std::max<int64_t>(own, 1), 1, std::max<int64_t>(depth / 256, 1));
  scratch_bytes += size_t(count * parts) * element;
}

template <typename C>
void convolve(const ConvolutionSizes &s, const Elements &data, const Elements &weight, const Elements &bias,
              const Elements &result, void *scratch, const Lane &lane) {
  if (TilePlan(s, TilePlan::kResult, sizeof(C)).narrow) return convolve_narrow<C>(s, data, weight, bias, result, lane);
  Tap *const taps = static_cast<Tap *>(scratch);
  write_taps(s, false, taps, lane);
  multiply_gathered<C>(
      lane, ResultProblem<C>{s, data, weight, bias, result, taps, s.groups, s.out_channels, s.batch * volume(s.out)});
}

template <typename C>
void convolve_backward_data(const ConvolutionSizes &s, const Elements &head, const Elements &weight,
                            const Elements &bias, const Elements &grad, void *scratch, const Lane &lane) {
  if (TilePlan(s, TilePlan::kDataGradient, sizeof(C)).narrow)
    return data_gradient_narrow<C>(s, head, weight, bias, grad, lane);
  Tap *const taps = static_cast<Tap *>(scratch);
  write_taps(s, true, taps, lane);
  multiply_gathered<C>(
      lane, DataGradientProblem<C>{s, head, weight, bias, grad, taps, s.groups, s.in_channels, s.batch * volume(s.in)});
}

template <typename C>
void convolve_backward_weight(const ConvolutionSizes &s, const Elements &head, const Elements &data,
                              const Elements &grad, void *scratch, const Lane &lane) {
  const TilePlan plan(s, TilePlan::kFilterGradient, sizeof(C));
  const int64_t kernel = volume(s.kernel), parts = plan.parts;
  const int64_t count = s.groups * s.out_channels * s.in_channels * kernel;
  C *const sums = reinterpret_cast<C *>(static_cast<char *>(scratch) + plan.taps_bytes);
  if (plan.narrow) {
    filter_gradient_narrow<C>(s, parts, head, data, sums, lane);
  } else {
    Tap *const taps = static_cast<Tap *>(scratch);
    write_taps(s, false, taps, lane);
    multiply_gathered<C>(lane, FilterGradientProblem<C>{s, head, data, taps, sums, parts, parts * s.groups,
                                                        s.out_channels, s.in_channels * kernel});
  }
  for_each(lane, count, [=] __device__(int64_t i) {
    const int64_t q = i % kernel, c = i / kernel % s.in_channels, o = i / kernel / s.in_channels;
    C sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += sums[part * count + i];
    store(grad, o * s.weight_out_step + c * s.weight_in_step + offset_of(place_in(s.kernel, q), s.weight_step), sum);
  });
}

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

#define COHORT_TILES(C)                                                                                     \
  template void convolve<C>(const ConvolutionSizes &, const Elements &, const Elements &, const Elements &, \
                            const Elements &, void *, const Lane &);                                        \
  template void convolve_backward_data<C>(const ConvolutionSizes &, const Elements &, const Elements &,     \
                                          const Elements &, const Elements &, void *, const Lane &);        \
  template void convolve_backward_weight<C>(const ConvolutionSizes &, const Elements &, const Elements &,   \
                                            const Elements &, void *, const Lane &);                        \
  template void sum_channels<C>(const ConvolutionSizes &, bool, const Elements &, const Elements &, const Lane &)
COHORT_TILES(float);
COHORT_TILES(double);
#undef COHORT_TILES

}  // namespace tiles

namespace {

using namespace tiles;

template <typename C>
class ConvolutionCuda final : public Kernel {
 public:
  explicit ConvolutionCuda(StepSpec &spec) : dtype_(spec.inputs[0].dtype) {
    const auto &a = spec.attrs_as<ConvolutionAttrs>();
    has_bias_ = !a.no_bias;
    sizes_ = convolution_sizes(spec.inputs[0].shape, spec.inputs[1].shape, spec.outputs[0].shape, a.stride, a.dilate,
                               a.pad, a.num_group, channels_last(a.layout));
    spec.scratch_bytes = TilePlan(sizes_, TilePlan::kResult, sizeof(C)).scratch_bytes;
  }
  void run(const Args &args, const Lane &lane) const override {
    convolve<C>(sizes_, elements_of(args.inputs[0], dtype_), elements_of(args.inputs[1], dtype_),
                has_bias_ ? elements_of(args.inputs[2], dtype_) : kNothing, elements_of(args.outputs[0], dtype_),
                args.scratch, lane);
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
    for (const auto of : {TilePlan::kDataGradient, TilePlan::kFilterGradient}) {
      spec.scratch_bytes = std::max(spec.scratch_bytes, TilePlan(sizes_, of, sizeof(C)).scratch_bytes);
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[0], dtype_);
    const auto out = [&](int i) { return elements_of(args.outputs[i], dtype_); };
    if (wanted_[0]) {
      convolve_backward_data<C>(sizes_, head, elements_of(args.inputs[2], dtype_), kNothing, out(0), args.scratch,
                                lane);
    }
    if (wanted_[1]) {
      convolve_backward_weight<C>(sizes_, head, elements_of(args.inputs[1], dtype_), out(1), args.scratch, lane);
    }
    if (wanted_.size() > 2 && wanted_[2]) sum_channels<C>(sizes_, false, head, out(2), lane);
  }

 private:
  const Dtype dtype_;
  const std::vector<bool> wanted_;
  ConvolutionSizes sizes_;
};

std::string refuses(const StepSpec &spec) { return refuses_post(spec, !spec.attrs_as<ConvolutionAttrs>().no_bias); }

// Named, and so not treated as plain loops: in 16 bits they and the steps after them move half as many bytes.
COHORT_KERNEL_BY(cuda, Convolution, with_post_ops<make_tiles<ConvolutionCuda>>)
    .named("tiles")
    .dtypes(kFloatTypes)
    .when(refuses)
    .fuses({PostOp::Kind::kActivation, PostOp::Kind::kSum});
COHORT_KERNEL_BY(cuda, _backward_Convolution, make_tiles<ConvolutionBackwardCuda>).named("tiles").dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
