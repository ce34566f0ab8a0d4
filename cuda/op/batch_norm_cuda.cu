// SPDX-License-Identifier: Apache-2.0
// BatchNorm and its relatives, the rules of the plain kernels of src/cpu/op/batch_norm_cpu.cc. A channel's sums are
// taken in parts, a warp each, which are joined in order: the same bits at every launch.
//
// Inputs data, gamma, beta, moving mean, moving variance; outputs result, mean, 1 / sqrt(variance + eps). Saved are
// mean and variance.
#include <cmath>

#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "op/batch_norm.hpp"

namespace cohort {
namespace {

// A tensor as (outer, channels, inner).
struct Extent {
  int64_t outer, channels, inner;
  COHORT_HOST_DEVICE int64_t each() const { return outer * inner; }  // elements of a channel
  COHORT_HOST_DEVICE int64_t size() const { return outer * channels * inner; }
  COHORT_HOST_DEVICE int64_t place(int64_t channel, int64_t i) const {
    return (i / inner * channels + channel) * inner + i % inner;
  }
  COHORT_HOST_DEVICE int64_t channel_of(int64_t place) const { return place / inner % channels; }
};

Extent extent_of(const BatchNormAttrs &a, const Shape &data) {
  const int axis = normalize_axis(a.axis, data.rank(), "BatchNorm");
  return {data.size(0, axis), data[axis], data.size(axis + 1, data.rank())};
}

// Enough warps to keep the device busy.
int64_t parts_of(const Extent &e) {
  constexpr int64_t kWarps = 132 * 32, kLeast = 256;  // elements of a part
  return std::clamp<int64_t>(std::min(kWarps / std::max<int64_t>(e.channels, 1), e.each() / kLeast), 1, 128);
}

// sums[(channel * parts + part) * kSums + k] = the sum of fn(channel, place)[k] over a part of a channel.
template <typename C, int kSums>
struct Sums {
  C at[kSums];
};

template <typename C, int kSums, typename Fn>
void sum_channels(const Lane &lane, const Extent &e, int64_t parts, C *sums, const Fn &fn) {
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

// The sum k of a channel from those of its parts.
template <typename C>
__device__ C joined(const C *sums, int64_t channel, int64_t parts, int num_sums, int k) {
  C sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += sums[(channel * parts + part) * num_sums + k];
  return sum;
}

bool keeps(const StepSpec &spec) { return spec.is_train || spec.keep_for_backward; }
bool is_global(const StepSpec &spec) { return !spec.is_train || spec.attrs_as<BatchNormAttrs>().use_global_stats; }

// Functors that sum_channels() takes: types with names.
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

// The head gradient where a relu behind let the element through, and the element normalised.
template <typename C>
struct Gradients {
  Elements head, x;
  const C *mean, *variance, *gamma, *beta;
  C eps;
  bool relu, fixed;
  __device__ C scale(int64_t channel) const { return fixed ? C(1) : gamma[channel]; }
  __device__ C inverse(int64_t channel) const { return C(1) / std::sqrt(variance[channel] + eps); }
  __device__ C normal(int64_t channel, int64_t place) const {
    return (load<C>(x, place) - mean[channel]) * inverse(channel);
  }
  __device__ C gradient(const uint8_t *mask, int64_t place) const {
    return mask && !mask[place] ? C(0) : load<C>(head, place);
  }
};
template <typename C>
struct GradientSums {
  Gradients<C> g;
  const uint8_t *mask;
  __device__ Sums<C, 2> operator()(int64_t channel, int64_t place) const {
    const C gradient = g.gradient(mask, place);
    return {{gradient, gradient * g.normal(channel, place)}};
  }
};

// C: type of statistics and parameters, float of 16-bit data.
template <typename C>
class BatchNormCuda final : public Kernel {
 public:
  BatchNormCuda(StepSpec &spec, bool relu)
      : attrs_(spec.attrs_as<BatchNormAttrs>()),
        e_(extent_of(attrs_, spec.inputs[0].shape)),
        parts_(parts_of(e_)),
        dtype_(spec.inputs[0].dtype),
        keeps_(keeps(spec)),
        global_(is_global(spec)),
        moves_(spec.is_train && !attrs_.use_global_stats && !spec.frozen),
        relu_(relu) {
    const size_t statistics = size_t(e_.channels) * 2 * sizeof(double);
    if (keeps_) spec.saved_bytes = statistics + (relu_ ? size_t(e_.size()) : 0);
    spec.scratch_bytes = (keeps_ ? 0 : statistics) + size_t(e_.channels * parts_) * sizeof(C);
  }

  void run(const Args &args, const Lane &lane) const override {
    const Extent e = e_;
    C *const mean = static_cast<C *>(keeps_ ? args.saved : args.scratch), *const variance = mean + e.channels;
    C *const sums =
        static_cast<C *>(args.scratch) + (keeps_ ? 0 : 2 * e.channels * int64_t(sizeof(double) / sizeof(C)));
    uint8_t *const mask = keeps_ && relu_ ? mask_in(args.saved, e) : nullptr;
    const Elements x = elements_of(args.inputs[0], dtype_), y = elements_of(args.outputs[0], dtype_);
    const C eps = C(attrs_.eps), momentum = C(attrs_.momentum), count = C(e.each());
    const int64_t parts = parts_;
    C *const moving_mean = args.mutable_in<C>(3), *const moving_variance = args.mutable_in<C>(4);
    const bool global = global_, moves = moves_, gives_variance = attrs_.gives_variance, relu = relu_;
    if (!global) {
      sum_channels<C, 1>(lane, e, parts, sums, Values<C>{x});
      for_each(lane, e.channels,
               [=] __device__(int64_t c) { mean[c] = count > 0 ? joined(sums, c, parts, 1, 0) / count : C(0); });
      sum_channels<C, 1>(lane, e, parts, sums, SquaredDistances<C>{x, mean});
    }
    C *const mean_out = args.out<C>(1), *const inverse_out = args.out<C>(2);
    for_each(lane, e.channels, [=] __device__(int64_t c) {
      if (global) mean[c] = moving_mean[c];
      variance[c] = global ? moving_variance[c] : count > 0 ? joined(sums, c, parts, 1, 0) / count : C(0);
      if (mean_out) mean_out[c] = mean[c];
      if (inverse_out) inverse_out[c] = gives_variance ? variance[c] : C(1) / std::sqrt(variance[c] + eps);
      if (!moves) return;
      moving_mean[c] = momentum * moving_mean[c] + (1 - momentum) * mean[c];
      moving_variance[c] = momentum * moving_variance[c] + (1 - momentum) * variance[c];
    });
    const C *const gamma = attrs_.fix_gamma ? nullptr : args.in<C>(1), *const beta = args.in<C>(2);
    for_each(lane, e.size(), [=] __device__(int64_t i) {
      const int64_t c = e.channel_of(i);
      const C scale = (gamma ? gamma[c] : C(1)) / std::sqrt(variance[c] + eps);
      C value = (load<C>(x, i) - mean[c]) * scale + beta[c];
      if (mask) mask[i] = value > 0;
      if (relu && value < 0) value = 0;
      store(y, i, value);
    });
  }

  static uint8_t *mask_in(void *saved, const Extent &e) {
    return static_cast<uint8_t *>(saved) + size_t(e.channels) * 2 * sizeof(double);
  }

 private:
  const BatchNormAttrs attrs_;
  const Extent e_;
  const int64_t parts_;
  const Dtype dtype_;
  const bool keeps_, global_, moves_, relu_;
};

// Inputs: head gradients (1 or 3, the first counts), data, gamma.
template <typename C>
class BatchNormBackwardCuda final : public Kernel {
 public:
  BatchNormBackwardCuda(StepSpec &spec, bool relu)
      : attrs_(spec.attrs_as<BatchNormAttrs>()),
        heads_(attrs_.output_mean_var ? 3 : 1),
        e_(extent_of(attrs_, spec.inputs[0].shape)),
        parts_(parts_of(e_)),
        dtype_(spec.inputs[0].dtype),
        global_(is_global(spec)),
        fixes_gamma_(spec.is_train && attrs_.fix_gamma && spec.wanted[1]),
        relu_(relu) {
    spec.scratch_bytes = size_t(2 * e_.channels * (parts_ + 1)) * sizeof(C);
  }

  void run(const Args &args, const Lane &lane) const override {
    const Extent e = e_;
    const int64_t parts = parts_;
    const C *const mean = static_cast<const C *>(args.saved), *const variance = mean + e.channels;
    const uint8_t *const mask = relu_ ? BatchNormCuda<C>::mask_in(args.saved, e) : nullptr;
    C *const gamma = args.mutable_in<C>(heads_ + 1);
    const Gradients<C> g{elements_of(args.inputs[0], dtype_),
                         elements_of(args.inputs[heads_], dtype_),
                         mean,
                         variance,
                         gamma,
                         nullptr,
                         C(attrs_.eps),
                         relu_,
                         attrs_.fix_gamma};
    C *const sums = static_cast<C *>(args.scratch), *const totals = sums + 2 * e.channels * parts;
    sum_channels<C, 2>(lane, e, parts, sums, GradientSums<C>{g, mask});
    C *const dgamma = args.out<C>(1), *const dbeta = args.out<C>(2);
    const bool fixed = attrs_.fix_gamma, global = global_;
    for_each(lane, e.channels, [=] __device__(int64_t c) {
      totals[2 * c] = joined(sums, c, parts, 2, 0);
      totals[2 * c + 1] = joined(sums, c, parts, 2, 1);
      if (dgamma) dgamma[c] = fixed ? C(0) : totals[2 * c + 1];
      if (dbeta) dbeta[c] = totals[2 * c];
    });
    if (args.outputs[0]) {
      const Elements dx = elements_of(args.outputs[0], dtype_);
      const C count = C(e.each());
      for_each(lane, e.size(), [=] __device__(int64_t i) {
        const int64_t c = e.channel_of(i);
        C value = g.gradient(mask, i);
        if (!global) value -= (totals[2 * c] + g.normal(c, i) * totals[2 * c + 1]) / count;
        store(dx, i, value * g.scale(c) * g.inverse(c));
      });
    }
    if (fixes_gamma_) for_each(lane, e.channels, [=] __device__(int64_t c) { gamma[c] = C(1); });
  }

 private:
  const BatchNormAttrs attrs_;
  const int heads_;
  const Extent e_;
  const int64_t parts_;
  const Dtype dtype_;
  const bool global_, fixes_gamma_, relu_;
};

template <template <typename> class K, bool kRelu>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  const bool relu = kRelu || !spec.post.empty();
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<K<double>>(spec, relu);
  return std::make_unique<K<float>>(spec, relu);
}

// Devices exchange what they find in the host's memory, which no kernel here does.
std::string refuses_shared(const StepSpec &spec) {
  const bool own = spec.num_replicas == 1 || !spec.is_train || spec.attrs_as<BatchNormAttrs>().use_global_stats;
  return own ? "" : "the statistics are those of several devices";
}

#define COHORT_BATCH_NORM(op, relu)                                         \
  COHORT_KERNEL_BY(cuda, op, make<BatchNormCuda, relu>)                     \
      .dtypes(kFloatTypes)                                                  \
      .when(refuses_shared)                                                 \
      .fuses({PostOp::Kind::kTrainRelu});                                   \
  COHORT_KERNEL_BY(cuda, _backward_##op, make<BatchNormBackwardCuda, relu>) \
      .dtypes(kFloatTypes)                                                  \
      .fuses({PostOp::Kind::kTrainRelu})
COHORT_BATCH_NORM(BatchNorm, false);
COHORT_BATCH_NORM(_contrib_SyncBatchNorm, false);
COHORT_BATCH_NORM(_contrib_BatchNormWithReLU, true);

}  // namespace
}  // namespace cohort
