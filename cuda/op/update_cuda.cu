// SPDX-License-Identifier: Apache-2.0
// Parameter updates: the formulas of op/update_math.hpp over CUDA arrays, float and double, one thread an element.
// Inputs are weight, gradient and states, and for adamw_update rescale_grad as a tensor; the new weight may lie where
// the old one is.
#include "cuda/cuda_launch.hpp"
#include "device/kernel_table.hpp"
#include "op/update.hpp"

namespace cohort {
namespace {

template <typename C>
struct States {
  C *at[3];
};

template <typename Formula, typename C>
__global__ void update_elements(const C *weight, const C *grad, States<C> states, const C *rescale, C *out,
                                UpdateNumbers<C> numbers, int64_t count) {
  if (rescale) numbers.rescale = *rescale;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    C state[Formula::kStates > 0 ? Formula::kStates : 1] = {};
    for (int k = 0; k < Formula::kStates; ++k) state[k] = states.at[k][i];
    out[i] = Formula::of(weight[i], grad[i], state, numbers);
    for (int k = 0; k < Formula::kStates; ++k) states.at[k][i] = state[k];
  }
}

// The numbers of a run come with it (Args::numbers); those of an operator that is run by itself are its attributes.
template <typename Formula, typename A, typename C, bool kRescaleTensor>
class UpdateCuda final : public Kernel {
 public:
  explicit UpdateCuda(const StepSpec &spec)
      : own_(spec.attrs ? spec.attrs_as<A>().numbers() : UpdateNumbers<double>()),
        count_(spec.inputs[0].shape.size()) {}

  void run(const Args &args, const Lane &lane) const override {
    if (count_ == 0) return;
    States<C> states{};
    for (int k = 0; k < Formula::kStates; ++k) states.at[k] = args.mutable_in<C>(2 + k);
    const auto &numbers = args.numbers ? *static_cast<const UpdateNumbers<double> *>(args.numbers) : own_;
    const C *rescale = kRescaleTensor && !args.numbers ? args.in<C>(2 + Formula::kStates) : nullptr;
    launch(update_elements<Formula, C>, flat_grid(count_), lane.stream, args.in<C>(0), args.in<C>(1), states, rescale,
           args.out<C>(0), numbers.template as<C>(), count_);
  }

 private:
  const UpdateNumbers<double> own_;
  const int64_t count_;
};

template <typename Formula, typename A, bool kRescaleTensor = false>
std::unique_ptr<Kernel> make_update(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) {
    return std::make_unique<UpdateCuda<Formula, A, double, kRescaleTensor>>(spec);
  }
  return std::make_unique<UpdateCuda<Formula, A, float, kRescaleTensor>>(spec);
}

#define COHORT_CUDA_UPDATE(op, ...) COHORT_KERNEL_BY(cuda, op, make_update<__VA_ARGS__>).one_dtype(kWideFloatTypes)
COHORT_CUDA_UPDATE(sgd_update, update::Sgd, SgdAttrs);
COHORT_CUDA_UPDATE(sgd_mom_update, update::SgdMom, SgdMomAttrs);
COHORT_CUDA_UPDATE(nag_mom_update, update::NagMom, SgdMomAttrs);
COHORT_CUDA_UPDATE(signsgd_update, update::SignSgd, SgdAttrs);
COHORT_CUDA_UPDATE(signum_update, update::Signum, SgdMomAttrs);
COHORT_CUDA_UPDATE(adam_update, update::Adam, AdamAttrs);
COHORT_CUDA_UPDATE(_adamw_update, update::AdamW, AdamWAttrs, true);
COHORT_CUDA_UPDATE(rmsprop_update, update::RmsProp, RmsPropAttrs);
COHORT_CUDA_UPDATE(rmspropalex_update, update::RmsPropAlex, RmsPropAttrs);
COHORT_CUDA_UPDATE(_adagrad_update, update::Adagrad, AdagradAttrs);

}  // namespace
}  // namespace cohort
