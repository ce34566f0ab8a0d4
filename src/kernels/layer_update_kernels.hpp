// SPDX-License-Identifier: Apache-2.0
// Updates that only optimizers run: those whose learning rate depends on the norms of a whole weight and its gradient
// (LARS, LBSGD), and those with noise (SGLD). Each backend has kernels of its own for them; the formulas of one element
// and the operators are the same.
#pragma once

#include <memory>

#include "device/kernel_table.hpp"
#include "kernels/backend.hpp"
#include "op/random_math.hpp"
#include "op/update_math.hpp"

namespace cohort {
namespace {

// The gradient of one element as Rule applies it, for the norm of the gradient; state(k) is the element of state k.
template <typename Rule, typename C, typename State>
COHORT_HOST_DEVICE double gradient_for_norm(C grad, const State &state, const UpdateNumbers<C> &numbers) {
  C states[Rule::kStates + 1];
  for (int k = 0; k < Rule::kStates; ++k) states[k] = state(k);
  return double(Rule::template seen<C>(grad, states, numbers));
}

// The noise of SGLD. It depends on the position of an element in the parameter, however that is divided: elements
// [n * kPerBlock, (n + 1) * kPerBlock) share block n of the generator.
template <typename C>
struct WeightNoise {
  static constexpr int kPerBlock = sizeof(C) == sizeof(float) ? 4 : 2;  // see normals_of()
  C block[kPerBlock];

  COHORT_HOST_DEVICE void draw(uint64_t position, const UpdateNumbers<C> &numbers) {
    normals_of(Philox::at(numbers.seed, position / kPerBlock, numbers.draw), block);
  }
  COHORT_HOST_DEVICE C at(uint64_t position) const { return block[position % kPerBlock]; }
};

// Kernels has the kernels of the backend, constructed from StepSpec &:
//   template <typename Rule, typename Scale, typename C> LayerUpdate: inputs weight, gradient, states
//   template <typename C> NoisyUpdate: inputs weight, gradient
template <typename Kernels, typename Rule, typename Scale>
std::unique_ptr<Kernel> make_layer_update(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) {
    return std::make_unique<typename Kernels::template LayerUpdate<Rule, Scale, double>>(spec);
  }
  return std::make_unique<typename Kernels::template LayerUpdate<Rule, Scale, float>>(spec);
}
template <typename Kernels>
std::unique_ptr<Kernel> make_noisy_update(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) {
    return std::make_unique<typename Kernels::template NoisyUpdate<double>>(spec);
  }
  return std::make_unique<typename Kernels::template NoisyUpdate<float>>(spec);
}

template <typename Kernels>
void register_layer_update_kernels() {
  using update::Gathered, update::LarsScale, update::LbsgdScale, update::Sgd, update::SgdMom, update::Single;
  const auto add = [](const char *op, KernelFactory make) {
    backend_kernels().add(op, make).output_dtypes(kFloatTypes);
  };
  add("_lars_update", make_layer_update<Kernels, Single<Sgd>, LarsScale>);
  add("_lars_mom_update", make_layer_update<Kernels, Single<SgdMom>, LarsScale>);
  add("_lbsgd_update", make_layer_update<Kernels, Single<Sgd>, LbsgdScale>);
  add("_lbsgd_mom_update", make_layer_update<Kernels, Single<SgdMom>, LbsgdScale>);
  add("_gathered_lbsgd_update", make_layer_update<Kernels, Gathered, LbsgdScale>);
  add("_sgld_update", make_noisy_update<Kernels>);
}

}  // namespace
}  // namespace cohort
