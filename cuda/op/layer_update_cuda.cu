// SPDX-License-Identifier: Apache-2.0
// Updates that only optimizers run: those whose learning rate depends on the norms of a whole weight and its gradient,
// and those that add noise.
#include "cuda/op/update_elements.cuh"
#include "device/kernel_table.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

RunNumbers numbers_of(const Args &args, const Lane &lane) {
  return run_value<UpdateNumbers<double>>(args.numbers, lane);
}

// Inputs: weight, gradient, states. The norms lie in the scratch memory.
template <typename Rule, typename Scale, typename C>
class LayerUpdateCuda final : public Kernel {
 public:
  explicit LayerUpdateCuda(StepSpec &spec) : update_(spec, Rule::kStates, false, 0, 0) {
    spec.scratch_bytes = size_t(kSquareParts + 2) * sizeof(double);
  }
  void run(const Args &args, const Lane &lane) const override {
    double *const parts = static_cast<double *>(args.scratch);
    const RunNumbers given = numbers_of(args, lane);
    const UpdateArrays arrays = update_.arrays(args);
    DeviceNumbers device{};
    device.weight_norm = elements_of(parts + kSquareParts, Dtype::kFloat64);
    device.step_norm = elements_of(parts + kSquareParts + 1, Dtype::kFloat64);
    sum_squares(lane, arrays.weight, update_.count, parts, device.weight_norm, false);
    sum_squares_of(lane, update_.count, parts, device.step_norm, false, [=] __device__(int64_t i) {
      C states[Rule::kStates + 1];
      for (int k = 0; k < Rule::kStates; ++k) states[k] = load<C>(arrays.states[k], i);
      return double(Rule::template seen<C>(load<C>(arrays.grad, i), states, given.get().as<C>()));
    });
    launch_update<Rule, C, Scale>(arrays, given, device, false, update_.count, lane);
  }

 private:
  const WeightUpdate update_;
};

template <typename Rule, typename Scale>
std::unique_ptr<Kernel> make_layer_update(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) return std::make_unique<LayerUpdateCuda<Rule, Scale, double>>(spec);
  return std::make_unique<LayerUpdateCuda<Rule, Scale, float>>(spec);
}

// Inputs: weight and gradient. The noise of an element depends on its index in the whole parameter, even if that is
// split.
template <typename C>
class NoisyUpdateCuda final : public Kernel {
 public:
  explicit NoisyUpdateCuda(const StepSpec &spec) : update_(spec, 0, false, 0, 0) {}
  void run(const Args &args, const Lane &lane) const override {
    const RunNumbers given = numbers_of(args, lane);
    const UpdateArrays arrays = update_.arrays(args);
    for_each(lane, update_.count, [=] __device__(int64_t i) {
      const UpdateNumbers<C> numbers = given.get().as<C>();
      constexpr int kPerBlock = sizeof(C) == sizeof(float) ? 4 : 2;  // see normals_of()
      const auto place = uint64_t(numbers.first + i);
      C noise[kPerBlock];
      normals_of(Philox::at(numbers.seed, place / kPerBlock, numbers.draw), noise);
      store(arrays.out, i,
            update::Sgld::of<C>(load<C>(arrays.weight, i), load<C>(arrays.grad, i), noise[place % kPerBlock], numbers));
    });
  }

 private:
  const WeightUpdate update_;
};

std::unique_ptr<Kernel> make_noisy_update(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) return std::make_unique<NoisyUpdateCuda<double>>(spec);
  return std::make_unique<NoisyUpdateCuda<float>>(spec);
}

using update::Gathered;
using update::LarsScale;
using update::LbsgdScale;
using update::Sgd;
using update::SgdMom;
using update::Single;
#define COHORT_CUDA_LAYER_UPDATE(op, ...) \
  COHORT_KERNEL_BY(cuda, op, make_layer_update<__VA_ARGS__>).output_dtypes(kFloatTypes)
COHORT_CUDA_LAYER_UPDATE(_lars_update, Single<Sgd>, LarsScale);
COHORT_CUDA_LAYER_UPDATE(_lars_mom_update, Single<SgdMom>, LarsScale);
COHORT_CUDA_LAYER_UPDATE(_lbsgd_update, Single<Sgd>, LbsgdScale);
COHORT_CUDA_LAYER_UPDATE(_lbsgd_mom_update, Single<SgdMom>, LbsgdScale);
COHORT_CUDA_LAYER_UPDATE(_gathered_lbsgd_update, Gathered, LbsgdScale);
COHORT_KERNEL_BY(cuda, _sgld_update, make_noisy_update).output_dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
