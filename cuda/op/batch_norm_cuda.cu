// SPDX-License-Identifier: Apache-2.0
// BatchNorm and its variants, with the rules of the plain kernels of src/cpu/op/batch_norm_cpu.cc. Normalises by the
// statistics of the device's own batch, or by the moving ones.
//
// Inputs data, gamma, beta, moving mean, moving variance; outputs result, mean, 1 / sqrt(variance + eps). Saved are
// mean, variance, gamma and beta.
#include "cuda/op/batch_norm.cuh"
#include "device/kernel_table.hpp"
#include "device/restoring.hpp"

namespace cohort {
namespace {

using namespace batch_norm;

template <typename C>
struct MomentsOfParts {
  const C *sums, *mean;
  int64_t parts;
  C count;
  __device__ NormMoments<C> operator()(int64_t c) const {
    return {mean[c], count > 0 ? joined(sums, c, parts, 1, 0) / count : C(0)};
  }
};
template <typename C>
struct MovingMoments {
  const C *mean, *variance;
  __device__ NormMoments<C> operator()(int64_t c) const { return {mean[c], variance[c]}; }
};

// C: the type of statistics and parameters, float for 16-bit data.
template <typename C>
class BatchNormCuda final : public RestoringKernel {
 public:
  BatchNormCuda(StepSpec &spec, bool relu)
      : layout_(spec.inputs[0].layout),
        normalises_(spec, relu),
        parts_(parts_of(normalises_.extent())),
        keeps_(keeps(spec)),
        global_(is_global(spec)),
        relu_(relu) {
    const ChannelExtent &e = normalises_.extent();
    if (keeps_) spec.saved_bytes = vectors(e) + (relu_ ? size_t(e.size()) : 0);
    spec.scratch_bytes = (keeps_ ? 0 : vectors(e)) + size_t(e.channels * parts_) * sizeof(C);
  }

  void run(const Args &args, const Lane &lane) const override {
    const ChannelExtent e = normalises_.extent();
    C *const mean = static_cast<C *>(keeps_ ? args.saved : args.scratch), *const variance = mean + e.channels;
    if (global_) {
      normalises_.publish(args, lane, mean, variance, MovingMoments<C>{args.in<C>(3), args.in<C>(4)});
    } else {
      C *const sums = reinterpret_cast<C *>(static_cast<char *>(args.scratch) + (keeps_ ? 0 : vectors(e)));
      const Elements x = elements_of(args.inputs[0], normalises_.dtype());
      const C count = C(e.each());
      const int64_t parts = parts_;
      sum_channels<C, 1>(lane, e, parts, sums, Values<C>{x});
      for_each(lane, e.channels,
               [=] __device__(int64_t c) { mean[c] = count > 0 ? joined(sums, c, parts, 1, 0) / count : C(0); });
      sum_channels<C, 1>(lane, e, parts, sums, SquaredDistances<C>{x, mean});
      normalises_.publish(args, lane, mean, variance, MomentsOfParts<C>{sums, mean, parts, count});
    }
    const C *const gamma = normalises_.gamma(args), *const beta = normalises_.beta(args);
    if (keeps_) {
      for_each(lane, e.channels, [=] __device__(int64_t c) {
        variance[e.channels + c] = gamma ? gamma[c] : C(1);
        variance[2 * e.channels + c] = beta[c];
      });
    }
    normalises_.normalise(args, lane, mean, variance, gamma, beta, keeps_ && relu_ ? mask_in(args.saved, e) : nullptr);
  }
  void restore(const Args &args, const Lane &lane) const override {
    const int64_t channels = normalises_.extent().channels;
    const C *const mean = static_cast<const C *>(args.saved), *const variance = mean + channels;
    normalises_.normalise(args, lane, mean, variance, variance + channels, variance + 2 * channels, nullptr);
  }

  static uint8_t *mask_in(void *saved, const ChannelExtent &e) { return static_cast<uint8_t *>(saved) + vectors(e); }
  const std::shared_ptr<const Layout> &layout() const { return layout_; }  // of data and result, and so of the mask

 private:
  static size_t vectors(const ChannelExtent &e) { return size_t(e.channels) * 4 * sizeof(double); }

  const std::shared_ptr<const Layout> layout_;
  const Normalises<C> normalises_;
  const int64_t parts_;
  const bool keeps_, global_, relu_;
};

template <typename C>
struct GradientSums {
  NormGradients<C> g;
  const uint8_t *mask;
  __device__ Sums<C, 2> operator()(int64_t channel, int64_t place) const {
    const C gradient = g.gradient(mask, place);
    return {{gradient, gradient * g.normal(channel, place)}};
  }
};

// Inputs: head gradients (1 or 3, the first counts), data, gamma.
template <typename C>
class BatchNormBackwardCuda final : public Kernel {
 public:
  BatchNormBackwardCuda(StepSpec &spec, bool relu)
      : attrs_(spec.attrs_as<BatchNormAttrs>()),
        heads_(attrs_.output_mean_var ? 3 : 1),
        e_(extent_of(attrs_, spec.inputs[size_t(heads_)])),
        parts_(parts_of(e_)),
        dtype_(spec.inputs[0].dtype),
        global_(is_global(spec)),
        fixes_gamma_(fixes_gamma(spec)),
        relu_(relu) {
    spec.scratch_bytes = size_t(2 * e_.channels * (parts_ + 1)) * sizeof(C);
  }

  void run(const Args &args, const Lane &lane) const override {
    const ChannelExtent e = e_;
    const int64_t parts = parts_;
    const uint8_t *const mask = relu_ ? BatchNormCuda<C>::mask_in(args.saved, e) : nullptr;
    const NormGradients<C> g(args, attrs_, e, heads_, dtype_);
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
    if (fixes_gamma_) fill_with_ones(lane, args.mutable_in<C>(heads_ + 1), e.channels);
  }

 private:
  const BatchNormAttrs attrs_;
  const int heads_;
  const ChannelExtent e_;
  const int64_t parts_;
  const Dtype dtype_;
  const bool global_, fixes_gamma_, relu_;
};

template <typename C>
std::unique_ptr<Kernel> make_forward(StepSpec &spec, bool relu) {
  spec.inputs[0].layout = spec.outputs[0].layout = layout_for(spec.attrs_as<BatchNormAttrs>(), spec.inputs[0]);
  return std::make_unique<BatchNormCuda<C>>(spec, relu);
}

// Head gradient, data and gradient have the layout of the forward step's data.
template <typename C>
std::unique_ptr<Kernel> make_backward(StepSpec &spec, bool relu) {
  const auto *const forward = dynamic_cast<const BatchNormCuda<C> *>(spec.forward);
  const size_t data = spec.attrs_as<BatchNormAttrs>().output_mean_var ? 3 : 1;
  spec.inputs[0].layout = spec.inputs[data].layout = spec.outputs[0].layout = forward ? forward->layout() : nullptr;
  return std::make_unique<BatchNormBackwardCuda<C>>(spec, relu);
}

template <bool kBackward, bool kRelu>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  const bool relu = kRelu || !spec.post.empty();
  const auto make_in = [&](auto c) {
    return kBackward ? make_backward<decltype(c)>(spec, relu) : make_forward<decltype(c)>(spec, relu);
  };
  return spec.inputs[0].dtype == Dtype::kFloat64 ? make_in(double()) : make_in(float());
}

std::string refuses_shared(const StepSpec &spec) {
  return is_shared(spec) ? "the statistics are those of several devices" : "";
}

#define COHORT_BATCH_NORM(op, relu)                        \
  COHORT_KERNEL_BY(cuda, op, make<false, relu>)            \
      .dtypes(kFloatTypes)                                 \
      .when(refuses_shared)                                \
      .any_layout()                                        \
      .fuses({PostOp::Kind::kTrainRelu});                  \
  COHORT_KERNEL_BY(cuda, _backward_##op, make<true, relu>) \
      .dtypes(kFloatTypes)                                 \
      .any_layout()                                        \
      .fuses({PostOp::Kind::kTrainRelu})
COHORT_BATCH_NORM(BatchNorm, false);
COHORT_BATCH_NORM(_contrib_SyncBatchNorm, false);
COHORT_BATCH_NORM(_contrib_BatchNormWithReLU, true);

}  // namespace
}  // namespace cohort
