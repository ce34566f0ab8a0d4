// SPDX-License-Identifier: Apache-2.0
// SyncBatchNorm in the training of a group: each device computes sums of its part in double and copies them to host
// memory; then each reads the sums of all devices and combines them in the same order (ChannelStats).
#include "cuda/op/batch_norm.cuh"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

using namespace batch_norm;

// The sums that all devices have found, one after the other in device memory.
struct FoundOfAll {
  double *first;
  int64_t num, size;
  __device__ ChannelStats of(int64_t device) const { return {first + device * size}; }
};

// The blocks of statistics of a step. Scratch memory: first its own block and sums of parts, later the blocks of all.
class StatisticsBlocks {
 public:
  StatisticsBlocks(StepSpec *spec, size_t num, int64_t channels, int64_t num_sums)
      : num_(num), size_(ChannelStats::size(channels)) {
    spec->share_bytes = bytes();
    spec->scratch_bytes = std::max(num_ * bytes(), bytes() + size_t(num_sums) * sizeof(double));
  }
  size_t num() const { return num_; }
  ChannelStats own(const Args &args) const { return {static_cast<double *>(args.scratch)}; }
  double *sums(const Args &args) const { return static_cast<double *>(args.scratch) + size_; }
  void give(const Args &args, const Lane &lane) const {
    copy(lane, args.shares->blocks[args.shares->own], args.scratch, cudaMemcpyDeviceToHost);
  }
  FoundOfAll take(const Args &args, const Lane &lane) const {
    const FoundOfAll found{static_cast<double *>(args.scratch), int64_t(num_), size_};
    for (size_t d = 0; d < num_; ++d) {
      copy(lane, found.first + int64_t(d) * size_, args.shares->blocks[d], cudaMemcpyHostToDevice);
    }
    return found;
  }

 private:
  size_t bytes() const { return size_t(size_) * sizeof(double); }
  void copy(const Lane &lane, void *to, const void *from, cudaMemcpyKind kind) const {
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes(), kind, static_cast<cudaStream_t>(lane.stream)));
  }
  const size_t num_;
  const int64_t size_;
};

template <typename C>
struct MomentsOfAll {
  FoundOfAll found;
  __device__ NormMoments<C> operator()(int64_t c) const {
    JoinedMoments all;
    for (int64_t d = 0; d < found.num; ++d) all.add(found.of(d), c);
    return {C(all.mean), C(all.variance())};
  }
};
struct SquaredFromMean {
  Elements x;
  ChannelStats own;
  __device__ Sums<double, 1> operator()(int64_t channel, int64_t place) const {
    const double distance = load<double>(x, place) - own.first(channel);
    return {{distance * distance}};
  }
};

// The part of the forward kernel that the backward kernel uses.
struct SharesStatistics : Kernel {
  SharesStatistics(const StatisticsBlocks &given, std::shared_ptr<const Layout> lies)
      : blocks(given), layout(std::move(lies)) {}
  const StatisticsBlocks blocks;
  const std::shared_ptr<const Layout> layout;  // of data and result
};

template <typename C>
class SyncBatchNormCuda final : public SharesStatistics {
 public:
  explicit SyncBatchNormCuda(StepSpec &spec)
      : SharesStatistics(blocks_of(&spec), spec.inputs[0].layout),
        normalises_(spec, /* relu */ false),
        parts_(parts_of(normalises_.extent())) {
    spec.saved_bytes = size_t(normalises_.extent().channels) * 2 * sizeof(C);
  }

  void publish_share(const Args &args, const Lane &lane) const override {
    const ChannelExtent e = normalises_.extent();
    const Elements x = elements_of(args.inputs[0], normalises_.dtype());
    const ChannelStats own = blocks.own(args);
    double *const sums = blocks.sums(args);
    const double count = double(e.each());
    const int64_t parts = parts_;
    sum_channels<double, 1>(lane, e, parts, sums, Values<double>{x});
    for_each(lane, e.channels, [=] __device__(int64_t c) {
      if (c == 0) own.count() = count;
      own.first(c) = count > 0 ? joined(sums, c, parts, 1, 0) / count : 0;
    });
    sum_channels<double, 1>(lane, e, parts, sums, SquaredFromMean{x, own});
    for_each(lane, e.channels, [=] __device__(int64_t c) { own.second(c) = joined(sums, c, parts, 1, 0); });
    blocks.give(args, lane);
  }

  void run(const Args &args, const Lane &lane) const override {
    C *const mean = static_cast<C *>(args.saved), *const variance = mean + normalises_.extent().channels;
    normalises_.publish(args, lane, mean, variance, MomentsOfAll<C>{blocks.take(args, lane)});
    normalises_.normalise(args, lane, mean, variance, normalises_.gamma(args), normalises_.beta(args), nullptr);
  }

 private:
  static StatisticsBlocks blocks_of(StepSpec *spec) {
    const ChannelExtent e = extent_of(spec->attrs_as<BatchNormAttrs>(), spec->inputs[0]);
    return {spec, size_t(spec->num_replicas), e.channels, e.channels * parts_of(e)};
  }
  const Normalises<C> normalises_;
  const int64_t parts_;
};

template <typename C>
struct GradientSums {
  NormGradients<C> g;
  __device__ Sums<double, 2> operator()(int64_t channel, int64_t place) const {
    const double gradient = double(g.gradient(nullptr, place));
    return {{gradient, gradient * double(g.normal(channel, place))}};
  }
};

// Inputs: head gradients (1 or 3, the first counts), data, gamma. Gradients of gamma and beta cover the own
// part only: the group adds them up.
template <typename C>
class SyncBatchNormBackwardCuda final : public Kernel {
 public:
  explicit SyncBatchNormBackwardCuda(StepSpec &spec)
      : attrs_(spec.attrs_as<BatchNormAttrs>()),
        heads_(attrs_.output_mean_var ? 3 : 1),
        e_(extent_of(attrs_, spec.inputs[size_t(heads_)])),
        parts_(parts_of(e_)),
        dtype_(spec.inputs[0].dtype),
        fixes_gamma_(fixes_gamma(spec)),
        blocks_(&spec, static_cast<const SharesStatistics *>(spec.forward)->blocks.num(), e_.channels,
                2 * e_.channels * parts_) {}

  void publish_share(const Args &args, const Lane &lane) const override {
    const ChannelStats own = blocks_.own(args);
    double *const sums = blocks_.sums(args);
    const double count = double(e_.each());
    const int64_t parts = parts_;
    sum_channels<double, 2>(lane, e_, parts, sums, GradientSums<C>{gradients(args)});
    for_each(lane, e_.channels, [=] __device__(int64_t c) {
      if (c == 0) own.count() = count;
      own.first(c) = joined(sums, c, parts, 2, 0);
      own.second(c) = joined(sums, c, parts, 2, 1);
    });
    blocks_.give(args, lane);
  }

  void run(const Args &args, const Lane &lane) const override {
    const ChannelExtent e = e_;
    const NormGradients<C> g = gradients(args);
    const FoundOfAll found = blocks_.take(args, lane);
    const auto own = int64_t(args.shares->own);
    C *const dgamma = args.out<C>(1), *const dbeta = args.out<C>(2);
    const bool fixed = attrs_.fix_gamma;
    for_each(lane, e.channels, [=] __device__(int64_t c) {
      if (dgamma) dgamma[c] = fixed ? C(0) : C(found.of(own).second(c));
      if (dbeta) dbeta[c] = C(found.of(own).first(c));
    });
    if (args.outputs[0]) {
      const Elements dx = elements_of(args.outputs[0], dtype_);
      for_each(lane, e.size(), [=] __device__(int64_t i) {
        const int64_t c = e.channel_of(i);
        JoinedSums all;
        for (int64_t d = 0; d < found.num; ++d) all.add(found.of(d), c);
        const C mean_gradient = C(all.gradients / all.count), mean_product = C(all.products / all.count);
        store(dx, i,
              (g.gradient(nullptr, i) - mean_gradient - g.normal(c, i) * mean_product) * g.scale(c) * g.inverse(c));
      });
    }
    if (fixes_gamma_) fill_with_ones(lane, args.mutable_in<C>(heads_ + 1), e.channels);
  }

 private:
  NormGradients<C> gradients(const Args &args) const { return {args, attrs_, e_, heads_, dtype_}; }
  const BatchNormAttrs attrs_;
  const int heads_;
  const ChannelExtent e_;
  const int64_t parts_;
  const Dtype dtype_;
  const bool fixes_gamma_;
  const StatisticsBlocks blocks_;
};

template <template <typename> class K>
std::unique_ptr<Kernel> make_in(StepSpec &spec) {
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<K<double>>(spec);
  return std::make_unique<K<float>>(spec);
}

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  spec.inputs[0].layout = spec.outputs[0].layout = layout_for(spec.attrs_as<BatchNormAttrs>(), spec.inputs[0]);
  return make_in<SyncBatchNormCuda>(spec);
}
// Head gradient, data and gradient have the layout of the forward step's data.
std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const size_t data = spec.attrs_as<BatchNormAttrs>().output_mean_var ? 3 : 1;
  spec.inputs[0].layout = spec.inputs[data].layout = spec.outputs[0].layout =
      static_cast<const SharesStatistics *>(spec.forward)->layout;
  return make_in<SyncBatchNormBackwardCuda>(spec);
}

std::string refuses_own(const StepSpec &spec) { return is_shared(spec) ? "" : "the statistics are the device's own"; }
std::string refuses_backward_of_own(const StepSpec &spec) {
  return dynamic_cast<const SharesStatistics *>(spec.forward) ? "" : "the statistics are the device's own";
}

COHORT_KERNEL_BY(cuda, _contrib_SyncBatchNorm, make_forward)
    .named("shared")
    .dtypes(kFloatTypes)
    .any_layout()
    .when(refuses_own)
    .preference(1);
COHORT_KERNEL_BY(cuda, _backward__contrib_SyncBatchNorm, make_backward)
    .named("shared")
    .dtypes(kFloatTypes)
    .any_layout()
    .when(refuses_backward_of_own)
    .preference(1);

}  // namespace
}  // namespace cohort
