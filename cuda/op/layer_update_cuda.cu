// SPDX-License-Identifier: Apache-2.0
// Updates that only optimizers run: those whose learning rate depends on the norms of a whole weight and its gradient,
// and those that add noise.
#include "cuda/op/update_elements.cuh"
#include "kernels/layer_update_kernels.hpp"

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
      return gradient_for_norm<Rule, C>(
          load<C>(arrays.grad, i), [&](int k) { return load<C>(arrays.states[k], i); }, given.get().as<C>());
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
      const auto position = uint64_t(numbers.first + i);
      WeightNoise<C> noise;
      noise.draw(position, numbers);
      store(arrays.out, i,
            update::Sgld::of<C>(load<C>(arrays.weight, i), load<C>(arrays.grad, i), noise.at(position), numbers));
    });
  }

 private:
  const WeightUpdate update_;
};

struct CudaLayerUpdates {
  template <typename Rule, typename Scale, typename C>
  using LayerUpdate = LayerUpdateCuda<Rule, Scale, C>;
  template <typename C>
  using NoisyUpdate = NoisyUpdateCuda<C>;
};
const bool registered = (register_layer_update_kernels<CudaLayerUpdates>(), true);

}  // namespace
}  // namespace cohort
