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

// The blocks of statistics of a step. Scratch memory: first its own block and sums of parts, later the blocks of all;
// behind these, further memory of the kernel.
class StatisticsBlocks {
 public:
  StatisticsBlocks(StepSpec *spec, size_t num, const ChannelTiles &tiles, size_t more_bytes)
      : num_(num),
        size_(ChannelStats::size(tiles.channels)),
        more_(whole_pairs(std::max(num_ * bytes(), whole_pairs(bytes()) + tiles.parts_bytes()))) {
    spec->share_bytes = bytes();
    spec->scratch_bytes = more_ + more_bytes;
  }
  size_t num() const { return num_; }
  ChannelStats own(const Args &args) const { return {static_cast<double *>(args.scratch)}; }
  void *parts(const Args &args) const { return static_cast<char *>(args.scratch) + whole_pairs(bytes()); }
  void *more(const Args &args) const { return static_cast<char *>(args.scratch) + more_; }
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
  static size_t whole_pairs(size_t bytes) { return (bytes + sizeof(SumPair) - 1) / sizeof(SumPair) * sizeof(SumPair); }
  void copy(const Lane &lane, void *to, const void *from, cudaMemcpyKind kind) const {
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes(), kind, static_cast<cudaStream_t>(lane.stream)));
  }
  const size_t num_;
  const int64_t size_;
  const size_t more_;
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
      : SharesStatistics(blocks_of(&spec), spec.inputs[0].layout), normalises_(spec, /* relu */ false) {
    spec.saved_bytes = NormVectors<C>::bytes(normalises_.tiles().channels);
  }

  void publish_share(const Args &args, const Lane &lane) const override {
    const ChannelTiles &tiles = normalises_.tiles();
    const ChannelStats own = blocks.own(args);
    const double count = double(tiles.each());
    find_moments<C>(lane, tiles, normalises_.data(args), blocks.parts(args),
                    [=] __device__(int64_t c, const MeanAndSquares &found) {
                      if (c == 0) own.count() = count;
                      own.first(c) = found.mean;
                      own.second(c) = found.squares;
                    });
    blocks.give(args, lane);
  }

  void run(const Args &args, const Lane &lane) const override {
    const NormVectors<C> vectors(args.saved, normalises_.tiles().channels);
    const PublishMoments<C> publish = normalises_.publish_to(args, vectors);
    const FoundOfAll found = blocks.take(args, lane);
    for_each(lane, normalises_.tiles().channels, [=] __device__(int64_t c) {
      JoinedMoments all;
      for (int64_t d = 0; d < found.num; ++d) all.add(found.of(d), c);
      publish(c, C(all.mean), C(all.variance()));
    });
    normalises_.run(args, lane, vectors, nullptr);
  }

 private:
  static StatisticsBlocks blocks_of(StepSpec *spec) {
    const TensorSpec &data = spec->inputs[0];
    return {spec, size_t(spec->num_replicas),
            ChannelTiles(extent_of(spec->attrs_as<BatchNormAttrs>(), data), data.dtype), 0};
  }
  const Normalises<C> normalises_;
};

// Gradients of gamma and beta cover the own part only: the group adds them up.
template <typename C>
class SyncBatchNormBackwardCuda final : public Kernel {
 public:
  explicit SyncBatchNormBackwardCuda(StepSpec &spec)
      : differentiates_(spec),
        blocks_(&spec, static_cast<const SharesStatistics *>(spec.forward)->blocks.num(), differentiates_.tiles(),
                GradientVectors<C>::bytes(differentiates_.tiles().channels)) {}

  void publish_share(const Args &args, const Lane &lane) const override {
    const auto parameters = differentiates_.parameters(args, vectors(args));
    const ChannelStats own = blocks_.own(args);
    const double count = double(differentiates_.tiles().each());
    differentiates_.sum(args, lane, nullptr, blocks_.parts(args), [=] __device__(int64_t c, const SumPair &sums) {
      if (c == 0) own.count() = count;
      own.first(c) = sums.first;
      own.second(c) = sums.second * double(parameters.inverse(c));
    });
    blocks_.give(args, lane);
  }

  void run(const Args &args, const Lane &lane) const override {
    const auto parameters = differentiates_.parameters(args, vectors(args));
    const FoundOfAll found = blocks_.take(args, lane);
    const auto own = int64_t(args.shares->own);
    for_each(lane, differentiates_.tiles().channels, [=] __device__(int64_t c) {
      JoinedSums all;
      for (int64_t d = 0; d < found.num; ++d) all.add(found.of(d), c);
      parameters.set_gradients(c, C(found.of(own).first(c)), C(found.of(own).second(c)));
      parameters.set_vectors(c, C(all.gradients / all.count), C(all.products / all.count));
    });
    differentiates_.run(args, lane, nullptr, vectors(args));
  }

 private:
  GradientVectors<C> vectors(const Args &args) const { return {blocks_.more(args), differentiates_.tiles().channels}; }
  const Differentiates<C> differentiates_;
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
