// SPDX-License-Identifier: Apache-2.0
// Shared by BatchNorm and SyncBatchNorm: sums over channels, computed in parts by one warp each and added up in order,
// so that every launch gives the same bits; and the kernels that follow the statistics.
#pragma once

#include <cmath>

#include "cuda/cuda_layout.hpp"
#include "cuda/op/rows.cuh"
#include "op/batch_norm.hpp"

namespace cohort {
namespace batch_norm {

// A tensor as (outer, channels, inner).
struct ChannelExtent {
  int64_t outer, channels, inner;
  COHORT_HOST_DEVICE int64_t each() const { return outer * inner; }  // elements of a channel
  bool is_matrix() const { return inner == 1 && channels > 1; }      // channels last, or one place
  COHORT_HOST_DEVICE int64_t size() const { return outer * channels * inner; }
  COHORT_HOST_DEVICE int64_t place(int64_t channel, int64_t i) const {
    return (i / inner * channels + channel) * inner + i % inner;
  }
  COHORT_HOST_DEVICE int64_t channel_of(int64_t place) const { return place / inner % channels; }
};

inline ChannelExtent extent_of(const BatchNormAttrs &a, const TensorSpec &data) {
  const Shape &shape = data.shape;
  const int axis = normalize_axis(a.axis, shape.rank(), "BatchNorm");
  if (lies_channels_last(data)) return {shape[0] * shape.size(2, shape.rank()), shape[1], 1};
  return {shape.size(0, axis), shape[axis], shape.size(axis + 1, shape.rank())};
}

// The layout of the data is kept if their channels are the axis of the norm.
inline std::shared_ptr<const Layout> layout_for(const BatchNormAttrs &a, const TensorSpec &data) {
  const bool known = lies_channels_last(data) && normalize_axis(a.axis, data.shape.rank(), "BatchNorm") == 1;
  return known ? data.layout : nullptr;
}

constexpr int kColumns = 32, kRows = 8;  // the block that sums neighbouring channels

// Enough warps, or blocks, to keep the device busy.
inline int64_t parts_of(const ChannelExtent &e) {
  constexpr int64_t kWarps = 132 * 32, kBlocks = 132 * 8, kLeast = 256;  // kLeast: elements of a part
  const int64_t busy =
      e.is_matrix() ? kBlocks / ((e.channels + kColumns - 1) / kColumns) : kWarps / std::max<int64_t>(e.channels, 1);
  return std::clamp<int64_t>(std::min(busy, e.each() / kLeast), 1, 128);
}

// sums[(channel * parts + part) * kSums + k] = the sum of fn(channel, place)[k] over a part of a channel.
template <typename C, int kSums>
struct Sums {
  C at[kSums];
};

// For channels last: a block sums kColumns channels; each thread takes every kRows-th row of the part.
template <typename C, int kSums, typename Fn>
__global__ void sum_columns(Fn fn, ChannelExtent e, int64_t parts, C *sums) {
  COHORT_SHARED(C, found, [kSums][kRows][kColumns]);
  const int64_t blocks = (e.channels + kColumns - 1) / kColumns;
  for (int64_t unit = blockIdx.x; unit < blocks * parts; unit += gridDim.x) {
    const int64_t channel = unit % blocks * kColumns + threadIdx.x, part = unit / blocks;
    const int64_t end = channel < e.channels ? e.each() * (part + 1) / parts : 0;
    Sums<C, kSums> all{};
    for (int64_t i = e.each() * part / parts + threadIdx.y; i < end; i += kRows) {
      const Sums<C, kSums> one = fn(channel, i * e.channels + channel);
      for (int k = 0; k < kSums; ++k) all.at[k] += one.at[k];
    }
    for (int k = 0; k < kSums; ++k) found[k][threadIdx.y][threadIdx.x] = all.at[k];
    __syncthreads();
    if (threadIdx.y == 0 && channel < e.channels) {
      for (int k = 0; k < kSums; ++k) {
        C sum = 0;
        for (int row = 0; row < kRows; ++row) sum += found[k][row][threadIdx.x];
        sums[(channel * parts + part) * kSums + k] = sum;
      }
    }
    __syncthreads();  // before `found` is overwritten
  }
}

template <typename C, int kSums, typename Fn>
void sum_channels(const Lane &lane, const ChannelExtent &e, int64_t parts, C *sums, const Fn &fn) {
  if (e.is_matrix()) {
    const int64_t blocks = (e.channels + kColumns - 1) / kColumns * parts;
    const Grid grid{dim3(unsigned(std::min<int64_t>(blocks, 132 * 16))), dim3(kColumns, kRows)};
    return launch(sum_columns<C, kSums, Fn>, grid, lane.stream, fn, e, parts, sums);
  }
  for_each_row(lane, e.channels * parts, [=] __device__(int64_t unit) {
    const int64_t channel = unit / parts, part = unit % parts;
    Sums<C, kSums> all{};
    for (int64_t i = e.each() * part / parts + threadIdx.x; i < e.each() * (part + 1) / parts; i += 32) {
      const Sums<C, kSums> one = fn(channel, e.place(channel, i));
      for (int k = 0; k < kSums; ++k) all.at[k] += one.at[k];
    }
    for (int k = 0; k < kSums; ++k) {
      const C sum = warp_sum(all.at[k]);
      if (threadIdx.x == 0) sums[unit * kSums + k] = sum;
    }
  });
}

// Sum k of a channel: the sum over its parts.
template <typename C>
__device__ C joined(const C *sums, int64_t channel, int64_t parts, int num_sums, int k) {
  C sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += sums[(channel * parts + part) * num_sums + k];
  return sum;
}

inline bool keeps(const StepSpec &spec) { return spec.is_train || spec.keep_for_backward; }
inline bool is_global(const StepSpec &spec) {
  return !spec.is_train || spec.attrs_as<BatchNormAttrs>().use_global_stats;
}
inline bool is_shared(const StepSpec &forward) { return forward.num_replicas > 1 && !is_global(forward); }

// Functors for sum_channels(), as named types.
template <typename C>
struct Values {
  Elements x;
  __device__ Sums<C, 1> operator()(int64_t, int64_t place) const { return {{load<C>(x, place)}}; }
};
template <typename C>
struct SquaredDistances {
  Elements x;
  const C *mean;
  __device__ Sums<C, 1> operator()(int64_t channel, int64_t place) const {
    const C distance = load<C>(x, place) - mean[channel];
    return {{distance * distance}};
  }
};

// The head gradient, 0 where a following relu blocked the element; and the normalised element.
template <typename C>
struct NormGradients {
  Elements head, x;
  const C *mean, *variance, *gamma;
  C eps;
  bool fixed;

  // Inputs of a backward kernel: head gradients, data, gamma. Args::saved holds mean and variance.
  NormGradients(const Args &args, const BatchNormAttrs &attrs, const ChannelExtent &e, int heads, Dtype dtype)
      : head(elements_of(args.inputs[0], dtype)),
        x(elements_of(args.inputs[heads], dtype)),
        mean(static_cast<const C *>(args.saved)),
        variance(mean + e.channels),
        gamma(args.in<C>(heads + 1)),
        eps(C(attrs.eps)),
        fixed(attrs.fix_gamma) {}
  __device__ C scale(int64_t channel) const { return fixed ? C(1) : gamma[channel]; }
  __device__ C inverse(int64_t channel) const { return C(1) / std::sqrt(variance[channel] + eps); }
  __device__ C normal(int64_t channel, int64_t place) const {
    return (load<C>(x, place) - mean[channel]) * inverse(channel);
  }
  __device__ C gradient(const uint8_t *mask, int64_t place) const {
    return mask && !mask[place] ? C(0) : load<C>(head, place);
  }
};
inline bool fixes_gamma(const StepSpec &backward) {
  return backward.is_train && backward.attrs_as<BatchNormAttrs>().fix_gamma;
}
template <typename C>
void fill_with_ones(const Lane &lane, C *to, int64_t count) {
  for_each(lane, count, [=] __device__(int64_t i) { to[i] = C(1); });
}

template <typename C>
struct NormMoments {
  C mean, variance;
};

// The steps after the statistics, given as `mean` and `variance`: outputs, moving statistics, the normalised data.
// C: the type of statistics and parameters, float for 16-bit data.
template <typename C>
class Normalises {
 public:
  Normalises(const StepSpec &spec, bool relu)
      : attrs_(spec.attrs_as<BatchNormAttrs>()),
        e_(extent_of(attrs_, spec.inputs[0])),
        dtype_(spec.inputs[0].dtype),
        moves_(spec.is_train && !attrs_.use_global_stats && !spec.frozen),
        relu_(relu) {}

  const ChannelExtent &extent() const { return e_; }
  Dtype dtype() const { return dtype_; }

  // moments(channel) gives the statistics, which this writes to `mean` and `variance`.
  template <typename Fn>
  void publish(const Args &args, const Lane &lane, C *mean, C *variance, const Fn &moments) const {
    const bool moves = moves_, gives_variance = attrs_.gives_variance;
    const C eps = C(attrs_.eps), momentum = C(attrs_.momentum);
    C *const moving_mean = args.mutable_in<C>(3), *const moving_variance = args.mutable_in<C>(4);
    C *const mean_out = args.out<C>(1), *const inverse_out = args.out<C>(2);
    for_each(lane, e_.channels, [=] __device__(int64_t c) {
      const NormMoments<C> now = moments(c);
      mean[c] = now.mean;
      variance[c] = now.variance;
      if (mean_out) mean_out[c] = mean[c];
      if (inverse_out) inverse_out[c] = gives_variance ? variance[c] : C(1) / std::sqrt(variance[c] + eps);
      if (!moves) return;
      moving_mean[c] = momentum * moving_mean[c] + (1 - momentum) * mean[c];
      moving_variance[c] = momentum * moving_variance[c] + (1 - momentum) * variance[c];
    });
  }

  // gamma and beta; gamma is null if it is fixed to 1.
  const C *gamma(const Args &args) const { return attrs_.fix_gamma ? nullptr : args.in<C>(1); }
  const C *beta(const Args &args) const { return args.in<C>(2); }

  // mask: the elements that a relu passes; null: not needed.
  void normalise(const Args &args, const Lane &lane, const C *mean, const C *variance, const C *gamma, const C *beta,
                 uint8_t *mask) const {
    const ChannelExtent e = e_;
    const bool relu = relu_;
    const C eps = C(attrs_.eps);
    const Elements x = elements_of(args.inputs[0], dtype_), y = elements_of(args.outputs[0], dtype_);
    for_each(lane, e.size(), [=] __device__(int64_t i) {
      const int64_t c = e.channel_of(i);
      const C scale = (gamma ? gamma[c] : C(1)) / std::sqrt(variance[c] + eps);
      C value = (load<C>(x, i) - mean[c]) * scale + beta[c];
      if (mask) mask[i] = value > 0;
      if (relu && value < 0) value = 0;
      store(y, i, value);
    });
  }

 private:
  const BatchNormAttrs attrs_;
  const ChannelExtent e_;
  const Dtype dtype_;
  const bool moves_, relu_;
};

}  // namespace batch_norm
}  // namespace cohort
