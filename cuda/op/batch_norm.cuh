// SPDX-License-Identifier: Apache-2.0
// Shared by BatchNorm and SyncBatchNorm: the kernels that read or write whole tensors, and the numbers of each channel
// between them. All are bound by memory. Bytes per element of b bytes: sum_moments b, normalise 2b, sum_gradients 2b,
// find_gradients 3b; with a relu the last three also write or read one bit.
#pragma once

#include <cmath>

#include "cuda/cuda_layout.hpp"
#include "cuda/op/channel_tiles.cuh"
#include "op/batch_norm.hpp"

namespace cohort {
namespace batch_norm {

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

inline bool keeps(const StepSpec &spec) { return spec.is_train || spec.keep_for_backward; }
inline bool is_global(const StepSpec &spec) {
  return !spec.is_train || spec.attrs_as<BatchNormAttrs>().use_global_stats;
}
inline bool is_shared(const StepSpec &forward) { return forward.num_replicas > 1 && !is_global(forward); }
inline bool fixes_gamma(const StepSpec &backward) {
  return backward.is_train && backward.attrs_as<BatchNormAttrs>().fix_gamma;
}

// ---- forward

// Numbers of each channel, kept for the backward pass: y = (x - mean) * scale + shift.
template <typename C>
struct NormVectors {
  C *mean, *variance, *scale, *shift;
  NormVectors(void *memory, int64_t channels)
      : mean(static_cast<C *>(memory)),
        variance(mean + channels),
        scale(variance + channels),
        shift(scale + channels) {}
  static size_t bytes(int64_t channels) { return size_t(channels) * 4 * sizeof(double); }
};

// parts[part][channel] = sums of x - base and of (x - base)^2, where base is the first element of the channel.
//
// Each of n elements of a thread is measured from the thread's first one. If that lies far from the mean, by d, the sum
// of squares has an error of at most n * d^2 roundings. But d^2 is itself a term of the variance, whose relative error
// is therefore below n roundings, whatever the data; n is a few hundred in large networks. The sums of a thread are
// moved to `base` and added to those of others in double.
template <typename C, typename T, bool kLast, bool kWhole>
__global__ void COHORT_LAUNCH_BOUNDS(kBlockThreads, 4) sum_moments(const T *x, ChannelTiles t, SumPair *parts) {
  using Walk = ChannelWalk<T, kLast, kWhole>;
  struct Item {
    Vector<T> x;
    int count;
  };
  Walk walk(t);
  C origin[Walk::kOwn] = {}, sum[Walk::kOwn] = {}, squares[Walk::kOwn] = {};
  int count = kLast ? int(walk.left) : 0;
  if (walk.left > 0) {
    const Vector<T> first = load_part<kWhole>(x + walk.at, walk.count());
    COHORT_UNROLL
    for (int k = 0; k < Walk::kOwn; ++k) origin[k] = to_compute(first.at[k]);
  }
  const auto load = [=](const Walk &at) { return Item{load_part<kWhole>(x + at.at, at.count()), at.count()}; };
  walk_in_batches<kWhole ? 4 : 1>(t, walk, load, [&](const Item &item) {
    COHORT_UNROLL
    for (int k = 0; k < Walk::kSize; ++k) {
      const int own = kLast ? k : 0;
      if (!kWhole && k >= item.count) continue;
      const C distance = to_compute(item.x.at[k]) - origin[own];
      sum[own] += distance;
      squares[own] += distance * distance;
    }
    if (!kLast) count += item.count;
  });
  const auto sums_of = [&](int k) {
    if (count == 0 || !walk.has(t, k)) return SumPair{0, 0};
    const double moved = double(origin[k]) - to_compute(x[t.first_of(walk.channel + k)]);
    const double all = count * moved;
    return SumPair{double(sum[k]) + all, double(squares[k]) + (2 * double(sum[k]) + all) * moved};
  };
  write_part(t, walk, sums_of, parts);
}

// The statistics of one channel from the sums of sum_moments().
struct MeanAndSquares {
  double mean, squares;  // squares: the sum of squared distances from the mean
};
inline __device__ MeanAndSquares moments_of(const Elements &x, const ChannelTiles &t, int64_t channel,
                                            const SumPair &sums) {
  const auto count = double(t.each());
  if (count == 0) return {0, 0};
  const double distance = sums.first / count, squares = sums.second - sums.first * distance;
  return {load<double>(x, t.first_of(channel)) + distance, squares < 0 ? 0 : squares};
}

// Calls then(channel, MeanAndSquares) for each channel. Scratch memory for the sums: t.parts_bytes().
template <typename C, typename Then>
void find_moments(const Lane &lane, const ChannelTiles &t, const Elements &x, void *scratch, const Then &then) {
  SumPair *const parts = static_cast<SumPair *>(scratch);
  dispatch_tiles<C>(t, Dtype(x.dtype), {x.data}, [&](auto type, auto last, auto whole) {
    using T = decltype(type);
    launch(sum_moments<C, T, decltype(last)::value, decltype(whole)::value>, t.grid(), lane.stream,
           static_cast<const T *>(x.data), t, parts);
  });
  join(lane, t, parts,
       [=] __device__(int64_t channel, const SumPair &sums) { then(channel, moments_of(x, t, channel, sums)); });
}

// Writes outputs, moving statistics and NormVectors of a channel.
template <typename C>
struct PublishMoments {
  NormVectors<C> to;
  const C *gamma, *beta;  // gamma: null if it is fixed to 1
  C *mean_out, *inverse_out, *moving_mean, *moving_variance;
  C eps, momentum;
  bool moves, gives_variance;

  __device__ void operator()(int64_t c, C mean, C variance) const {
    const C deviation = std::sqrt(variance + eps);
    to.mean[c] = mean;
    to.variance[c] = variance;
    to.scale[c] = (gamma ? gamma[c] : C(1)) / deviation;
    to.shift[c] = beta[c];
    if (mean_out) mean_out[c] = mean;
    if (inverse_out) inverse_out[c] = gives_variance ? variance : C(1) / deviation;
    if (!moves) return;
    moving_mean[c] = momentum * moving_mean[c] + (1 - momentum) * mean;
    moving_variance[c] = momentum * moving_variance[c] + (1 - momentum) * variance;
  }
};

// mask: for each vector a byte with a bit for each element that is above 0; null: not needed.
template <typename C, typename T, bool kLast, bool kWhole>
__global__ void COHORT_LAUNCH_BOUNDS(kBlockThreads, 4)
    normalise(const T *x, T *y, uint8_t *mask, NormVectors<C> by, int64_t relu, ChannelTiles t) {
  using Walk = ChannelWalk<T, kLast, kWhole>;
  struct Item {
    Vector<T> x;
    int64_t at, number;
    int count;
  };
  Walk walk(t, /* backwards */ true);
  C mean[Walk::kOwn], scale[Walk::kOwn], shift[Walk::kOwn];
  walk.load_own(t, by.mean, mean);
  walk.load_own(t, by.scale, scale);
  walk.load_own(t, by.shift, shift);
  const auto load = [=](const Walk &at) {
    return Item{load_part<kWhole>(x + at.at, at.count()), at.at, at.number(), at.count()};
  };
  walk_in_batches<kWhole ? 3 : 1>(t, walk, load, [&](const Item &item) {
    Vector<T> result;
    unsigned above = 0;
    COHORT_UNROLL
    for (int k = 0; k < Walk::kSize; ++k) {
      const int own = kLast ? k : 0;
      C value = (to_compute(item.x.at[k]) - mean[own]) * scale[own] + shift[own];
      above |= unsigned(value > 0) << k;
      if (relu && value < 0) value = 0;
      result.at[k] = from_compute<T>(value);
    }
    store_part<kWhole>(y + item.at, result, item.count);
    if (mask) mask[item.number] = uint8_t(above);
  });
}

// C: the type of statistics and parameters, float for 16-bit data.
template <typename C>
class Normalises {
 public:
  Normalises(const StepSpec &spec, bool relu)
      : attrs_(spec.attrs_as<BatchNormAttrs>()),
        dtype_(spec.inputs[0].dtype),
        tiles_(extent_of(attrs_, spec.inputs[0]), dtype_),
        moves_(spec.is_train && !attrs_.use_global_stats && !spec.frozen),
        relu_(relu) {}

  const ChannelTiles &tiles() const { return tiles_; }
  Elements data(const Args &args) const { return elements_of(args.inputs[0], dtype_); }
  PublishMoments<C> publish_to(const Args &args, const NormVectors<C> &to) const {
    return {to,
            attrs_.fix_gamma ? nullptr : args.in<C>(1),
            args.in<C>(2),
            args.out<C>(1),
            args.out<C>(2),
            args.mutable_in<C>(3),
            args.mutable_in<C>(4),
            C(attrs_.eps),
            C(attrs_.momentum),
            moves_,
            attrs_.gives_variance};
  }
  void run(const Args &args, const Lane &lane, const NormVectors<C> &by, uint8_t *mask) const {
    const void *const x = args.inputs[0];
    void *const y = args.outputs[0];
    dispatch_tiles<C>(tiles_, dtype_, {x, y}, [&](auto type, auto last, auto whole) {
      using T = decltype(type);
      launch(normalise<C, T, decltype(last)::value, decltype(whole)::value>, tiles_.grid(), lane.stream,
             static_cast<const T *>(x), static_cast<T *>(y), mask, by, int64_t(relu_), tiles_);
    });
  }

 private:
  const BatchNormAttrs attrs_;
  const Dtype dtype_;
  const ChannelTiles tiles_;
  const bool moves_, relu_;
};

// ---- backward

// parts[part][channel] = sums of the head gradient g and of g * (x - mean). g is 0 where a relu blocked the element.
template <typename C, typename T, bool kLast, bool kWhole, bool kRelu>
__global__ void COHORT_LAUNCH_BOUNDS(kBlockThreads, 4)
    sum_gradients(const T *head, const T *x, const uint8_t *mask, const C *means, ChannelTiles t, SumPair *parts) {
  using Walk = ChannelWalk<T, kLast, kWhole>;
  struct Item {
    Vector<T> head, x;
    unsigned passes;
    int count;
  };
  Walk walk(t);
  C mean[Walk::kOwn], sum[Walk::kOwn] = {}, products[Walk::kOwn] = {};
  walk.load_own(t, means, mean);
  const auto load = [=](const Walk &at) {
    return Item{load_part<kWhole>(head + at.at, at.count()), load_part<kWhole>(x + at.at, at.count()),
                kRelu ? mask[at.number()] : 0u, at.count()};
  };
  walk_in_batches<kWhole ? 2 : 1>(t, walk, load, [&](const Item &item) {
    COHORT_UNROLL
    for (int k = 0; k < Walk::kSize; ++k) {
      const int own = kLast ? k : 0;
      if (!kWhole && k >= item.count) continue;
      const C whole = to_compute(item.head.at[k]), gradient = !kRelu || (item.passes >> k & 1u) ? whole : C(0);
      sum[own] += gradient;
      products[own] += gradient * (to_compute(item.x.at[k]) - mean[own]);
    }
  });
  write_part(
      t, walk,
      [&](int k) {
        return SumPair{double(sum[k]), double(products[k])};
      },
      parts);
}

// Numbers of each channel: dx = g * scale + ((x - mean) * slope + offset).
template <typename C>
struct GradientVectors {
  C *scale, *slope, *offset;
  GradientVectors(void *memory, int64_t channels)
      : scale(static_cast<C *>(memory)), slope(scale + channels), offset(slope + channels) {}
  static size_t bytes(int64_t channels) { return size_t(channels) * 3 * sizeof(C); }
};

template <typename C, typename T, bool kLast, bool kWhole, bool kRelu>
__global__ void COHORT_LAUNCH_BOUNDS(kBlockThreads, 3)
    find_gradients(const T *head, const T *x, const uint8_t *mask, T *dx, const C *means, GradientVectors<C> by,
                   ChannelTiles t) {
  using Walk = ChannelWalk<T, kLast, kWhole>;
  struct Item {
    Vector<T> head, x;
    unsigned passes;
    int64_t at;
    int count;
  };
  Walk walk(t, /* backwards */ true);
  C mean[Walk::kOwn], scale[Walk::kOwn], slope[Walk::kOwn], offset[Walk::kOwn];
  walk.load_own(t, means, mean);
  walk.load_own(t, by.scale, scale);
  walk.load_own(t, by.slope, slope);
  walk.load_own(t, by.offset, offset);
  const auto load = [=](const Walk &at) {
    return Item{load_part<kWhole>(head + at.at, at.count()), load_part<kWhole>(x + at.at, at.count()),
                kRelu ? mask[at.number()] : 0u, at.at, at.count()};
  };
  walk_in_batches<kWhole ? 2 : 1>(t, walk, load, [&](const Item &item) {
    Vector<T> result;
    COHORT_UNROLL
    for (int k = 0; k < Walk::kSize; ++k) {
      const int own = kLast ? k : 0;
      const C whole = to_compute(item.head.at[k]), gradient = !kRelu || (item.passes >> k & 1u) ? whole : C(0);
      const C distance = to_compute(item.x.at[k]) - mean[own];
      result.at[k] = from_compute<T>(gradient * scale[own] + (distance * slope[own] + offset[own]));
    }
    store_part<kWhole>(dx + item.at, result, item.count);
  });
}

// Inputs: head gradients (1 or 3, the first counts), data, gamma; saved: NormVectors of the forward pass.
template <typename C>
class Differentiates {
 public:
  explicit Differentiates(const StepSpec &spec)
      : attrs_(spec.attrs_as<BatchNormAttrs>()),
        heads_(attrs_.output_mean_var ? 3 : 1),
        dtype_(spec.inputs[0].dtype),
        tiles_(extent_of(attrs_, spec.inputs[size_t(heads_)]), dtype_),
        fixes_gamma_(fixes_gamma(spec)) {}

  const ChannelTiles &tiles() const { return tiles_; }

  // mask: of the forward pass; null without a relu. Calls then(channel, sums of g and of g * (x - mean)).
  template <typename Then>
  void sum(const Args &args, const Lane &lane, const uint8_t *mask, void *scratch, const Then &then) const {
    SumPair *const parts = static_cast<SumPair *>(scratch);
    const void *const head = args.inputs[0], *const x = args.inputs[heads_];
    const C *const mean = forward(args).mean;
    dispatch_tiles<C>(tiles_, dtype_, {head, x}, [&](auto type, auto last, auto whole) {
      using T = decltype(type);
      constexpr bool kLast = decltype(last)::value, kWhole = decltype(whole)::value;
      const auto kernel = mask ? sum_gradients<C, T, kLast, kWhole, true> : sum_gradients<C, T, kLast, kWhole, false>;
      launch(kernel, tiles_.grid(), lane.stream, static_cast<const T *>(head), static_cast<const T *>(x), mask, mean,
             tiles_, parts);
    });
    join(lane, tiles_, parts, then);
  }
  void run(const Args &args, const Lane &lane, const uint8_t *mask, const GradientVectors<C> &by) const {
    const void *const head = args.inputs[0], *const x = args.inputs[heads_];
    void *const dx = args.outputs[0];
    if (!dx) return;
    const C *const mean = forward(args).mean;
    const ChannelTiles tiles = tiles_.for_three();
    dispatch_tiles<C>(tiles, dtype_, {head, x, dx}, [&](auto type, auto last, auto whole) {
      using T = decltype(type);
      constexpr bool kLast = decltype(last)::value, kWhole = decltype(whole)::value;
      const auto kernel = mask ? find_gradients<C, T, kLast, kWhole, true> : find_gradients<C, T, kLast, kWhole, false>;
      launch(kernel, tiles.grid(), lane.stream, static_cast<const T *>(head), static_cast<const T *>(x), mask,
             static_cast<T *>(dx), mean, by, tiles);
    });
  }

  // Turns the sums of a channel into gradients of its parameters and GradientVectors.
  struct Parameters {
    GradientVectors<C> to;
    const C *variance;
    C *gamma, *dgamma, *dbeta;
    C eps;
    bool fixed, sets_to_one;  // gamma counts as 1; the array is to be set to 1

    __device__ C inverse(int64_t c) const { return C(1) / std::sqrt(variance[c] + eps); }
    // The sums of this device.
    __device__ void set_gradients(int64_t c, C gradients, C products) const {
      if (dgamma) dgamma[c] = fixed ? C(0) : products;
      if (dbeta) dbeta[c] = gradients;
    }
    // The mean over the whole batch of g and of g * (x - mean) * inverse.
    __device__ void set_vectors(int64_t c, C gradients, C products) const {
      const C scale = (fixed ? C(1) : gamma[c]) * inverse(c);
      to.scale[c] = scale;
      to.slope[c] = -(scale * inverse(c)) * products;
      to.offset[c] = -(scale * gradients);
      if (sets_to_one) gamma[c] = C(1);
    }
  };
  Parameters parameters(const Args &args, const GradientVectors<C> &to) const {
    return {to,
            forward(args).variance,
            args.mutable_in<C>(heads_ + 1),
            args.out<C>(1),
            args.out<C>(2),
            C(attrs_.eps),
            attrs_.fix_gamma,
            fixes_gamma_};
  }

 private:
  NormVectors<C> forward(const Args &args) const { return {args.saved, tiles_.channels}; }

  const BatchNormAttrs attrs_;
  const int heads_;
  const Dtype dtype_;
  const ChannelTiles tiles_;
  const bool fixes_gamma_;
};

}  // namespace batch_norm
}  // namespace cohort
