// SPDX-License-Identifier: Apache-2.0
// BatchNorm and its variants, with the rules of the plain kernels of src/cpu/op/batch_norm_cpu.cc. Normalises by the
// statistics of the device's own batch, or by the moving ones.
//
// Inputs data, gamma, beta, moving mean, moving variance; outputs result, mean, 1 / sqrt(variance + eps). Saved are
// NormVectors and, with a relu, its mask.
#include "cuda/op/batch_norm.cuh"
#include "device/kernel_table.hpp"
#include "device/restoring.hpp"

namespace cohort {
namespace {

using namespace batch_norm;

// C: the type of statistics and parameters, float for 16-bit data.
template <typename C>
class BatchNormCuda final : public RestoringKernel {
 public:
  BatchNormCuda(StepSpec &spec, bool relu)
      : layout_(spec.inputs[0].layout),
        normalises_(spec, relu),
        keeps_(keeps(spec)),
        global_(is_global(spec)),
        relu_(relu) {
    const ChannelTiles &tiles = normalises_.tiles();
    const size_t vectors = NormVectors<C>::bytes(tiles.channels);
    if (keeps_) spec.saved_bytes = vectors + (relu_ ? size_t(tiles.num_vectors()) : 0);
    spec.scratch_bytes = (keeps_ ? 0 : vectors) + (global_ ? 0 : tiles.parts_bytes());
  }

  void run(const Args &args, const Lane &lane) const override {
    const ChannelTiles &tiles = normalises_.tiles();
    const NormVectors<C> vectors(keeps_ ? args.saved : args.scratch, tiles.channels);
    const PublishMoments<C> publish = normalises_.publish_to(args, vectors);
    if (global_) {
      const C *const mean = args.in<C>(3), *const variance = args.in<C>(4);
      for_each(lane, tiles.channels, [=] __device__(int64_t c) { publish(c, mean[c], variance[c]); });
    } else {
      char *const parts = static_cast<char *>(args.scratch) + (keeps_ ? 0 : NormVectors<C>::bytes(tiles.channels));
      const C count = C(std::max<int64_t>(tiles.each(), 1));
      find_moments<C>(lane, tiles, normalises_.data(args), parts,
                      [=] __device__(int64_t c, const MeanAndSquares &found) {
                        publish(c, C(found.mean), C(found.squares / count));
                      });
    }
    normalises_.run(args, lane, vectors, keeps_ && relu_ ? mask_in(args.saved, tiles) : nullptr);
  }
  void restore(const Args &args, const Lane &lane) const override {
    normalises_.run(args, lane, {args.saved, normalises_.tiles().channels}, nullptr);
  }

  static uint8_t *mask_in(void *saved, const ChannelTiles &tiles) {
    return static_cast<uint8_t *>(saved) + NormVectors<C>::bytes(tiles.channels);
  }
  const std::shared_ptr<const Layout> &layout() const { return layout_; }  // of data and result

 private:
  const std::shared_ptr<const Layout> layout_;
  const Normalises<C> normalises_;
  const bool keeps_, global_, relu_;
};

template <typename C>
class BatchNormBackwardCuda final : public Kernel {
 public:
  BatchNormBackwardCuda(StepSpec &spec, bool relu) : differentiates_(spec), global_(is_global(spec)), relu_(relu) {
    const ChannelTiles &tiles = differentiates_.tiles();
    spec.scratch_bytes = tiles.parts_bytes() + GradientVectors<C>::bytes(tiles.channels);
  }

  void run(const Args &args, const Lane &lane) const override {
    const ChannelTiles &tiles = differentiates_.tiles();
    const uint8_t *const mask = relu_ ? BatchNormCuda<C>::mask_in(args.saved, tiles) : nullptr;
    const GradientVectors<C> vectors(static_cast<char *>(args.scratch) + tiles.parts_bytes(), tiles.channels);
    const auto parameters = differentiates_.parameters(args, vectors);
    const C count = C(std::max<int64_t>(tiles.each(), 1));
    const bool global = global_;
    differentiates_.sum(args, lane, mask, args.scratch, [=] __device__(int64_t c, const SumPair &sums) {
      const C gradients = C(sums.first), products = C(sums.second) * parameters.inverse(c);
      parameters.set_gradients(c, gradients, products);
      parameters.set_vectors(c, global ? C(0) : gradients / count, global ? C(0) : products / count);
    });
    differentiates_.run(args, lane, mask, vectors);
  }

 private:
  const Differentiates<C> differentiates_;
  const bool global_, relu_;
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
