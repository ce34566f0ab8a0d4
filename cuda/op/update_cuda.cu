// SPDX-License-Identifier: Apache-2.0
// Parameter updates: the formulas of op/update_math.hpp, one thread per element. Inputs of a weight are weight,
// gradient, states[, weight in float32], of any types; the new weight may overwrite the old one.
#include <algorithm>
#include <cmath>
#include <vector>

#include "cuda/op/update_elements.cuh"
#include "device/kernel_table.hpp"
#include "op/update.hpp"

namespace cohort {
namespace {

// An optimizer passes the numbers of a run (Args::numbers); an operator that runs by itself takes them from its
// attributes, and for AdamW the scale of gradients from its last input.
template <typename Formula, typename A, typename C, bool kMaster>
class UpdateCuda final : public Kernel {
 public:
  explicit UpdateCuda(const StepSpec &spec)
      : own_(spec.attrs ? spec.attrs_as<A>().numbers() : UpdateNumbers<double>()),
        update_(spec, Formula::kStates, kMaster, 0, 0) {}

  void run(const Args &args, const Lane &lane) const override {
    constexpr bool kScaled = std::is_same_v<A, AdamWAttrs>;
    DeviceNumbers device{};
    if (kScaled && !args.numbers) device.rescale = args.in<float>(2 + Formula::kStates + (kMaster ? 1 : 0));
    const RunNumbers numbers = args.numbers ? run_value<UpdateNumbers<double>>(args.numbers, lane) : fixed(own_);
    launch_update<Formula, C>(update_.arrays(args), numbers, device, kScaled, update_.count, lane);
  }

 private:
  const UpdateNumbers<double> own_;
  const WeightUpdate update_;
};

template <typename Formula, typename A, bool kMaster = false>
std::unique_ptr<Kernel> make_update(StepSpec &spec) {
  if (!kMaster && spec.outputs[0].dtype == Dtype::kFloat64) {
    return std::make_unique<UpdateCuda<Formula, A, double, false>>(spec);
  }
  return std::make_unique<UpdateCuda<Formula, A, float, kMaster>>(spec);
}

// Inputs: weight, direction, norm of the weight, norm of the direction[, master weight].
template <bool kMaster>
class LambPhase2Cuda final : public Kernel {
 public:
  explicit LambPhase2Cuda(const StepSpec &spec) : attrs_(spec.attrs_as<LambPhase2Attrs>()) {
    for (size_t i = 0; i < spec.inputs.size(); ++i) dtypes_[i] = spec.inputs[i].dtype;
    out_ = spec.outputs[0].dtype;
    count_ = spec.inputs[0].shape.size();
  }
  void run(const Args &args, const Lane &lane) const override {
    const auto in = [&](int i) { return elements_of(args.inputs[i], dtypes_[i]); };
    UpdateArrays arrays{};
    arrays.weight = in(kMaster ? 4 : 0);
    arrays.grad = in(1);
    arrays.out = elements_of(args.outputs[0], out_);
    arrays.master = kMaster;
    DeviceNumbers device{};
    device.weight_norm = in(2);
    device.step_norm = in(3);
    launch_update<update::LambPhase2, float, LambNorms>(arrays, fixed(attrs_.numbers()), device, false, count_, lane);
  }

 private:
  const LambPhase2Attrs attrs_;
  Dtype dtypes_[5], out_;
  int64_t count_;
};

// Reads the weight in float32, which is the last input, in place of the first.
class MpLambPhase1Cuda final : public Kernel {
 public:
  explicit MpLambPhase1Cuda(const StepSpec &spec)
      : numbers_(spec.attrs_as<LambPhase1Attrs>().numbers()),
        update_(spec, 2, false, 0, 0),
        dtype_(spec.inputs[4].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    UpdateArrays arrays = update_.arrays(args);
    arrays.weight = elements_of(args.inputs[4], dtype_);
    launch_update<update::LambPhase1, float>(arrays, fixed(numbers_), {}, false, update_.count, lane);
  }

 private:
  const UpdateNumbers<double> numbers_;
  const WeightUpdate update_;
  const Dtype dtype_;
};

// ---- helpers for updates over several arrays

class MultiSumSqCuda final : public Kernel {
 public:
  explicit MultiSumSqCuda(StepSpec &spec) {
    for (const TensorSpec &in : spec.inputs) arrays_.push_back(in);
    spec.scratch_bytes = size_t(kSquareParts) * sizeof(double);
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t k = 0; k < arrays_.size(); ++k) {
      sum_squares(lane, elements_of(args.inputs[k], arrays_[k].dtype), arrays_[k].shape.size(),
                  static_cast<double *>(args.scratch), elements_of(args.out<float>(0) + k, Dtype::kFloat32), false);
    }
  }

 private:
  std::vector<TensorSpec> arrays_;
};

class AllFiniteCuda final : public Kernel {
 public:
  explicit AllFiniteCuda(const StepSpec &spec) : init_output_(spec.attrs_as<AllFiniteAttrs>().init_output) {
    for (const TensorSpec &in : spec.inputs) arrays_.push_back(in);
  }
  void run(const Args &args, const Lane &lane) const override {
    float *const out = args.out<float>(0);
    const bool begins = init_output_;
    for_each(lane, 1, [=] __device__(int64_t) { *out = begins || *out != 0 ? 1.0f : 0.0f; });
    for (size_t k = 0; k < arrays_.size(); ++k) {
      const Elements x = elements_of(args.inputs[k], arrays_[k].dtype);
      for_each(lane, arrays_[k].shape.size(), [=] __device__(int64_t i) {
        if (!isfinite(load<double>(x, i))) *out = 0;  // all threads that write, write the same
      });
    }
  }

 private:
  const bool init_output_;
  std::vector<TensorSpec> arrays_;
};

// The history has one number per row: the mean square of its gradient. One warp per row.
class GroupAdagradCuda final : public Kernel {
 public:
  explicit GroupAdagradCuda(const StepSpec &spec)
      : own_(spec.attrs ? spec.attrs_as<AdagradAttrs>().numbers() : UpdateNumbers<double>()),
        rows_(spec.inputs[2].shape.size()),
        columns_(rows_ > 0 ? spec.inputs[0].shape.size() / rows_ : 0),
        dtype_(spec.inputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const auto in = [&](int i) { return elements_of(args.inputs[i], dtype_); };
    const Elements weights = in(0), grads = in(1), histories = in(2), out = elements_of(args.outputs[0], dtype_);
    const RunNumbers given = args.numbers ? run_value<UpdateNumbers<double>>(args.numbers, lane) : fixed(own_);
    const int64_t columns = columns_;
    for_each_row(lane, rows_, [=] __device__(int64_t row) {
      const UpdateNumbers<float> numbers = given.get().as<float>();
      const auto grad = [=](int64_t i) { return update::scaled(load<float>(grads, row * columns + i), numbers); };
      const float squares = sum_along<float>(columns, [=](int64_t i) { return grad(i) * grad(i); });
      float history = load<float>(histories, row);
      if (columns > 0) history += squares / float(columns);
      __syncwarp();  // before one lane writes what all have read
      if (threadIdx.x == 0) store(histories, row, history);
      const float step = numbers.lr / sqrtf(history + numbers.epsilon);
      each_along(columns, [=](int64_t i) {
        const int64_t at = row * columns + i;
        store(out, at, load<float>(weights, at) - step * grad(i));
      });
    });
  }

 private:
  const UpdateNumbers<double> own_;
  const int64_t rows_, columns_;
  const Dtype dtype_;
};

class MultiLarsCuda final : public Kernel {
 public:
  explicit MultiLarsCuda(const StepSpec &spec)
      : attrs_(spec.attrs_as<MultiLarsAttrs>()), count_(spec.outputs[0].shape.size()), out_(spec.outputs[0].dtype) {
    for (size_t i = 0; i < 4; ++i) dtypes_[i] = spec.inputs[i].dtype;
  }
  void run(const Args &args, const Lane &lane) const override {
    const auto in = [&](int i) { return elements_of(args.inputs[i], dtypes_[i]); };
    const Elements lrs = in(0), weights = in(1), grads = in(2), wds = in(3), out = elements_of(args.outputs[0], out_);
    const double eta = double(attrs_.eta), rescale = double(attrs_.rescale_grad), eps = double(attrs_.eps);
    for_each(lane, count_, [=] __device__(int64_t i) {
      double lr = load<double>(lrs, i);
      const double norm = std::sqrt(load<double>(weights, i)), grad = load<double>(grads, i);
      if (norm > 0 && grad > 0) lr *= eta * norm / (std::sqrt(grad) * rescale + load<double>(wds, i) * norm + eps);
      store(out, i, lr);
    });
  }

 private:
  const MultiLarsAttrs attrs_;
  const int64_t count_;
  const Dtype out_;
  Dtype dtypes_[4];
};

class ResetArraysCuda final : public Kernel {
 public:
  explicit ResetArraysCuda(const StepSpec &spec) {
    for (const TensorSpec &in : spec.inputs) bytes_.push_back(in.bytes());
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (bytes_[i] > 0) {
        CUDA_CHECK(cudaMemsetAsync(args.inputs[i], 0, bytes_[i], static_cast<cudaStream_t>(lane.stream)));
      }
    }
  }

 private:
  std::vector<size_t> bytes_;
};

#define COHORT_CUDA_UPDATE(op, ...) COHORT_KERNEL_BY(cuda, op, make_update<__VA_ARGS__>).output_dtypes(kFloatTypes)
COHORT_CUDA_UPDATE(sgd_update, update::Sgd, SgdAttrs);
COHORT_CUDA_UPDATE(mp_sgd_update, update::Sgd, SgdAttrs, true);
COHORT_CUDA_UPDATE(sgd_mom_update, update::SgdMom, SgdMomAttrs);
COHORT_CUDA_UPDATE(mp_sgd_mom_update, update::SgdMom, SgdMomAttrs, true);
COHORT_CUDA_UPDATE(nag_mom_update, update::NagMom, SgdMomAttrs);
COHORT_CUDA_UPDATE(mp_nag_mom_update, update::NagMom, SgdMomAttrs, true);
COHORT_CUDA_UPDATE(signsgd_update, update::SignSgd, SgdAttrs);
COHORT_CUDA_UPDATE(signum_update, update::Signum, SgdMomAttrs);
COHORT_CUDA_UPDATE(adam_update, update::Adam, AdamAttrs);
COHORT_CUDA_UPDATE(_adamw_update, update::AdamW, AdamWAttrs);
COHORT_CUDA_UPDATE(_mp_adamw_update, update::AdamW, AdamWAttrs, true);
COHORT_CUDA_UPDATE(rmsprop_update, update::RmsProp, RmsPropAttrs);
COHORT_CUDA_UPDATE(rmspropalex_update, update::RmsPropAlex, RmsPropAttrs);
COHORT_CUDA_UPDATE(_adagrad_update, update::Adagrad, AdagradAttrs);
COHORT_CUDA_UPDATE(_sparse_adagrad_update, update::Adagrad, AdagradAttrs);
COHORT_CUDA_UPDATE(ftrl_update, update::Ftrl, FtrlAttrs);
COHORT_CUDA_UPDATE(ftml_update, update::Ftml, FtmlAttrs);
COHORT_CUDA_UPDATE(_adadelta_update, update::AdaDelta, OptimizerAttrs);
COHORT_CUDA_UPDATE(_adamax_update, update::Adamax, OptimizerAttrs);
COHORT_CUDA_UPDATE(_nadam_update, update::Nadam, OptimizerAttrs);
COHORT_CUDA_UPDATE(_dcasgd_update, update::Dcasgd, OptimizerAttrs);
COHORT_CUDA_UPDATE(_dcasgd_mom_update, update::DcasgdMom, OptimizerAttrs);
COHORT_CUDA_UPDATE(_test_update, update::Test, OptimizerAttrs);
COHORT_CUDA_UPDATE(_gathered_sgd_update, update::Gathered, OptimizerAttrs);
COHORT_CUDA_UPDATE(lamb_update_phase1, update::LambPhase1, LambPhase1Attrs);
COHORT_KERNEL(cuda, mp_lamb_update_phase1, MpLambPhase1Cuda);
COHORT_KERNEL(cuda, lamb_update_phase2, LambPhase2Cuda<false>);
COHORT_KERNEL(cuda, mp_lamb_update_phase2, LambPhase2Cuda<true>);
COHORT_KERNEL(cuda, multi_sum_sq, MultiSumSqCuda);
COHORT_KERNEL(cuda, multi_lars, MultiLarsCuda);
COHORT_KERNEL(cuda, _contrib_group_adagrad_update, GroupAdagradCuda).output_dtypes(kFloatTypes);
COHORT_KERNEL(cuda, all_finite, AllFiniteCuda);
COHORT_KERNEL(cuda, multi_all_finite, AllFiniteCuda);
COHORT_KERNEL(cuda, reset_arrays, ResetArraysCuda);

}  // namespace
}  // namespace cohort
