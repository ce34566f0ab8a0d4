// SPDX-License-Identifier: Apache-2.0
// The kernels of kernels/layer_update_kernels.hpp on the CPU.
#include <algorithm>
#include <vector>

#include "cpu/op/weight_update.hpp"
#include "kernels/layer_update_kernels.hpp"
#include "kernels/partial_sums.hpp"

namespace cohort {
namespace {

constexpr int64_t kPartElements = 32768;  // summed by one thread: sums do not depend on the number of threads

// Inputs: weight, gradient, states. Sums of squares are computed part by part, then added in order.
template <typename Rule, typename Scale, typename C>
class LayerUpdate final : public Kernel {
 public:
  explicit LayerUpdate(StepSpec &spec)
      : update_(spec, best_version<UpdateBody<Rule, C>>(), Rule::kStates, false, 0, 0),
        count_(spec.inputs[0].shape.size()),
        num_parts_((count_ + kPartElements - 1) / kPartElements) {
    for (const TensorSpec &in : spec.inputs) load_.push_back(load_block(in.dtype, dtype_of<C>()));
    spec.scratch_bytes = size_t(num_parts_) * sizeof(Squares);
  }
  void run(const Args &args, const Lane &lane) const override {
    UpdateNumbers<double> numbers = *static_cast<const UpdateNumbers<double> *>(args.numbers);
    if (numbers.due != 0 && numbers.by_norms != 0) {
      const Squares all = squares(args, lane, numbers.template as<C>());
      numbers.lr *= Scale::of(all.weight, all.gradient, numbers);
    }
    update_.run(args, lane, numbers.template as<C>());
  }

 private:
  struct Squares {
    double weight, gradient;
  };

  Squares squares(const Args &args, const Lane &lane, const UpdateNumbers<C> &numbers) const {
    auto *const parts = static_cast<Squares *>(args.scratch);
    parallel_for(lane, num_parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t from = part * kPartElements;
        parts[part] = part_squares(args, from, std::min(count_, from + kPartElements), numbers);
      }
    });
    Squares all{0, 0};
    for (int64_t part = 0; part < num_parts_; ++part) {
      all.weight += parts[part].weight;
      all.gradient += parts[part].gradient;
    }
    return all;
  }

  Squares part_squares(const Args &args, int64_t from, int64_t end, const UpdateNumbers<C> &numbers) const {
    C in[2 + Rule::kStates][kPointwiseBlock];
    Squares sum{0, 0};
    for (int64_t at = from; at < end; at += kPointwiseBlock) {
      const int64_t count = std::min(kPointwiseBlock, end - at);
      for (size_t i = 0; i < load_.size(); ++i) load_[i](args.inputs[i], at, in[i], count);
      sum.weight += sum_over<double>(count, [&](int64_t k) { return double(in[0][k]) * double(in[0][k]); });
      sum.gradient += sum_over<double>(count, [&](int64_t k) {
        const double seen = gradient_for_norm<Rule, C>(
            in[1][k], [&](int s) { return in[2 + s][k]; }, numbers);
        return seen * seen;
      });
    }
    return sum;
  }

  const WeightUpdateLoop<C> update_;
  const int64_t count_, num_parts_;
  std::vector<LoadBlock> load_;
};

// Inputs: weight and gradient.
template <typename C>
class NoisyUpdate final : public Kernel {
 public:
  explicit NoisyUpdate(const StepSpec &spec)
      : count_(spec.inputs[0].shape.size()),
        load_(load_block(spec.inputs[0].dtype, dtype_of<C>())),
        store_(store_block(dtype_of<C>(), spec.outputs[0].dtype)) {}
  void run(const Args &args, const Lane &lane) const override {
    const UpdateNumbers<C> numbers = static_cast<const UpdateNumbers<double> *>(args.numbers)->as<C>();
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      C weight[kPointwiseBlock], grad[kPointwiseBlock];
      for (int64_t at = begin; at < end; at += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, end - at);
        load_(args.inputs[0], at, weight, count);
        load_(args.inputs[1], at, grad, count);
        WeightNoise<C> noise;
        for (int64_t k = 0; k < count; ++k) {
          const auto position = uint64_t(numbers.first + at + k);
          if (k == 0 || position % noise.kPerBlock == 0) noise.draw(position, numbers);
          weight[k] = update::Sgld::of<C>(weight[k], grad[k], noise.at(position), numbers);
        }
        store_(weight, args.outputs[0], at, count);
      }
    });
  }

 private:
  const int64_t count_;
  const LoadBlock load_;
  const StoreBlock store_;
};

struct CpuLayerUpdates {
  template <typename Rule, typename Scale, typename C>
  using LayerUpdate = cohort::LayerUpdate<Rule, Scale, C>;
  template <typename C>
  using NoisyUpdate = cohort::NoisyUpdate<C>;
};
const bool registered = (register_layer_update_kernels<CpuLayerUpdates>(), true);

}  // namespace
}  // namespace cohort
