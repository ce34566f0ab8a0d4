// SPDX-License-Identifier: Apache-2.0
// Updates of several weights by one operator: the formulas of op/update_math.hpp, one weight after the other.
#include <algorithm>
#include <vector>

#include "cuda/op/update_elements.cuh"
#include "device/kernel_table.hpp"
#include "op/multi_update.hpp"

namespace cohort {
namespace {

// Updates weights one after the other. Learning rates and decays that are arrays come as the last inputs.
template <typename Formula, typename C, bool kMaster>
class MultiUpdateCuda final : public Kernel {
 public:
  explicit MultiUpdateCuda(const StepSpec &spec)
      : preloaded_(spec.attrs_as<MultiUpdateAttrs>().preloaded),
        rescales_(!spec.attrs_as<MultiUpdateAttrs>().etas.empty()),
        last_(int(spec.inputs.size()) - 1) {
    const int per_weight = 2 + Formula::kStates + (kMaster ? 1 : 0);
    for (int w = 0; w < int(spec.outputs.size()); ++w) {
      updates_.emplace_back(spec, Formula::kStates, kMaster, w * per_weight, w);
      numbers_.push_back(spec.attrs_as<MultiUpdateAttrs>().numbers(size_t(w)));
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t w = 0; w < updates_.size(); ++w) {
      DeviceNumbers device{};
      if (preloaded_) {
        device.lr = args.in<float>(last_ - 1) + w;
        device.wd = args.in<float>(last_) + w;
      }
      if (rescales_) device.rescale = args.in<float>(last_);
      launch_update<Formula, C>(updates_[w].arrays(args), fixed(numbers_[w]), device, rescales_, updates_[w].count,
                                lane);
    }
  }

 private:
  const bool preloaded_, rescales_;
  const int last_;
  std::vector<WeightUpdate> updates_;
  std::vector<UpdateNumbers<double>> numbers_;  // of each
};

template <typename Formula, bool kMaster>
std::unique_ptr<Kernel> make_multi(StepSpec &spec) {
  if (!kMaster && spec.outputs[0].dtype == Dtype::kFloat64) {
    return std::make_unique<MultiUpdateCuda<Formula, double, false>>(spec);
  }
  return std::make_unique<MultiUpdateCuda<Formula, float, kMaster>>(spec);
}

// Both phases of a LAMB update of each weight; the direction is in scratch memory between them. Optimizers, which pass
// the numbers of a run, have one weight.
template <bool kMaster>
class MultiLambCuda final : public Kernel {
 public:
  explicit MultiLambCuda(StepSpec &spec) {
    int64_t most = 0;
    for (size_t w = 0; w < spec.outputs.size(); ++w) {
      const size_t first = w * kPerWeight;
      One one{spec.inputs[first].shape.size(),
              {},
              spec.outputs[w].dtype,
              spec.attrs ? spec.attrs_as<MultiUpdateAttrs>().numbers(w) : UpdateNumbers<double>()};
      for (size_t i = 0; i < kPerWeight; ++i) one.dtypes[i] = spec.inputs[first + i].dtype;
      weights_.push_back(one);
      most = std::max(most, one.count);
    }
    spec.scratch_bytes = size_t(kSquareParts + 2) * sizeof(double) + size_t(most) * sizeof(float);
  }
  void run(const Args &args, const Lane &lane) const override {
    double *const parts = static_cast<double *>(args.scratch), *const norms = parts + kSquareParts;
    const Elements direction = elements_of(norms + 2, Dtype::kFloat32);
    for (size_t w = 0; w < weights_.size(); ++w) {
      const One &one = weights_[w];
      const auto in = [&](size_t i) { return elements_of(args.inputs[w * kPerWeight + i], one.dtypes[i]); };
      const Elements source = in(kMaster ? 4 : 0);
      const UpdateArrays first{source, in(1), {in(2), in(3), {}}, direction, false};
      const RunNumbers numbers =
          args.numbers ? run_value<UpdateNumbers<double>>(args.numbers, lane) : fixed(one.numbers);
      launch_update<update::LambPhase1, float>(first, numbers, {}, false, one.count, lane);
      DeviceNumbers device{};
      device.weight_norm = elements_of(norms, Dtype::kFloat64);
      device.step_norm = elements_of(norms + 1, Dtype::kFloat64);
      sum_squares(lane, source, one.count, parts, device.weight_norm, true);
      sum_squares(lane, direction, one.count, parts, device.step_norm, true);
      const UpdateArrays second{source, direction, {}, elements_of(args.outputs[w], one.out), kMaster};
      launch_update<update::LambPhase2, float, LambNorms>(second, numbers, device, false, one.count, lane);
    }
  }

 private:
  static constexpr size_t kPerWeight = kMaster ? 5 : 4;
  struct One {
    int64_t count;
    Dtype dtypes[5], out;
    UpdateNumbers<double> numbers;
  };
  std::vector<One> weights_;
};

#define COHORT_CUDA_MULTI(op, ...) COHORT_KERNEL_BY(cuda, op, make_multi<__VA_ARGS__>).output_dtypes(kFloatTypes)
COHORT_CUDA_MULTI(multi_sgd_update, update::Sgd, false);
COHORT_CUDA_MULTI(multi_sgd_mom_update, update::SgdMom, false);
COHORT_CUDA_MULTI(multi_mp_sgd_update, update::Sgd, true);
COHORT_CUDA_MULTI(multi_mp_sgd_mom_update, update::SgdMom, true);
COHORT_CUDA_MULTI(preloaded_multi_sgd_update, update::Sgd, false);
COHORT_CUDA_MULTI(preloaded_multi_sgd_mom_update, update::SgdMom, false);
COHORT_CUDA_MULTI(preloaded_multi_mp_sgd_update, update::Sgd, true);
COHORT_CUDA_MULTI(preloaded_multi_mp_sgd_mom_update, update::SgdMom, true);
COHORT_CUDA_MULTI(_multi_adamw_update, update::AdamW, false);
COHORT_CUDA_MULTI(_multi_mp_adamw_update, update::AdamW, true);
COHORT_KERNEL(cuda, _multi_lamb_update, MultiLambCuda<false>).output_dtypes(kFloatTypes);
COHORT_KERNEL(cuda, _multi_mp_lamb_update, MultiLambCuda<true>).output_dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
