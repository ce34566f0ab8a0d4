// SPDX-License-Identifier: Apache-2.0
// Kernels of parameter updates: the functors of op/update_math.hpp over flat arrays. Weight, gradient and states of
// float or double are updated in place; other types block by block.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "cpu/op/weight_update.hpp"
#include "device/kernel_table.hpp"
#include "op/update.hpp"

namespace cohort {
namespace {

// The numbers of an optimizer's update, which change from step to step, are passed with the run (Args::numbers).
// Those of an operator that is run by itself are its attributes.
template <typename F, typename A, typename C, bool kMaster>
class Update final : public Kernel {
 public:
  explicit Update(const StepSpec &spec)
      : own_(spec.attrs ? spec.attrs_as<A>().numbers() : UpdateNumbers<double>()),
        update_(spec, best_version<UpdateBody<F, C>>(), F::kStates, kMaster, 0, 0) {}
  void run(const Args &args, const Lane &lane) const override {
    UpdateNumbers<double> numbers = args.numbers ? *static_cast<const UpdateNumbers<double> *>(args.numbers) : own_;
    if constexpr (std::is_same_v<A, AdamWAttrs>) {  // the scale is the last input
      if (!args.numbers) numbers.rescale = double(args.in<float>(2 + F::kStates + (kMaster ? 1 : 0))[0]);
      if (!std::isfinite(numbers.rescale) || numbers.rescale == 0) return update_.copy_weight(args);
    }
    update_.run(args, lane, numbers.template as<C>());
  }

 private:
  const UpdateNumbers<double> own_;
  const WeightUpdateLoop<C> update_;
};

template <typename F, typename A, bool kMaster = false>
std::unique_ptr<Kernel> make_update(StepSpec &spec) {
  if (!kMaster && spec.outputs[0].dtype == Dtype::kFloat64) {
    return std::make_unique<Update<F, A, double, false>>(spec);
  }
  return std::make_unique<Update<F, A, float, kMaster>>(spec);
}

// Inputs: weight, direction, norm of the weight, norm of the direction[, master weight].
template <bool kMaster>
class LambSecondPhase final : public Kernel {
 public:
  explicit LambSecondPhase(const StepSpec &spec)
      : attrs_(spec.attrs_as<LambPhase2Attrs>()),
        update_(without_norms(spec), best_version<UpdateBody<update::LambPhase2, float>>(), 0, kMaster, 0, 0),
        load_norm_(load_block(spec.inputs[2].dtype, Dtype::kFloat64)) {}
  void run(const Args &args, const Lane &lane) const override {
    double weight_norm, step_norm;
    load_norm_(args.inputs[2], 0, &weight_norm, 1);
    load_norm_(args.inputs[3], 0, &step_norm, 1);
    UpdateNumbers<double> numbers = attrs_.numbers();
    numbers.lr *= update::LambScale::of_norms(weight_norm, step_norm, numbers);
    void *const inputs[3] = {args.inputs[0], args.inputs[1], kMaster ? args.inputs[4] : nullptr};
    Args flat = args;
    flat.inputs = inputs;
    update_.run(flat, lane, numbers.template as<float>());
  }

 private:
  static StepSpec without_norms(StepSpec spec) {
    spec.inputs.erase(spec.inputs.begin() + 2, spec.inputs.begin() + 4);
    return spec;
  }
  const LambPhase2Attrs attrs_;
  const WeightUpdateLoop<float> update_;
  const LoadBlock load_norm_;
};

// Reads the float32 weight, which is the last input, in place of the first.
class MpLambPhase1 final : public Kernel {
 public:
  explicit MpLambPhase1(const StepSpec &spec)
      : numbers_(spec.attrs_as<LambPhase1Attrs>().numbers().as<float>()),
        update_(with_master(spec), best_version<UpdateBody<update::LambPhase1, float>>(), 2, false, 0, 0) {}
  void run(const Args &args, const Lane &lane) const override {
    void *const inputs[4] = {args.inputs[4], args.inputs[1], args.inputs[2], args.inputs[3]};
    Args plain = args;
    plain.inputs = inputs;
    update_.run(plain, lane, numbers_);
  }

 private:
  static StepSpec with_master(StepSpec spec) {
    spec.inputs[0] = spec.inputs[4];
    return spec;
  }
  const UpdateNumbers<float> numbers_;
  const WeightUpdateLoop<float> update_;
};

// Rows of a weight with one history number each.
class GroupAdagrad final : public Kernel {
 public:
  explicit GroupAdagrad(const StepSpec &spec)
      : own_(spec.attrs ? spec.attrs_as<AdagradAttrs>().numbers() : UpdateNumbers<double>()),
        rows_(spec.inputs[2].shape.size()),
        cols_(rows_ > 0 ? spec.inputs[0].shape.size() / rows_ : 0),
        load_(load_block(spec.inputs[0].dtype, Dtype::kFloat32)),
        store_(store_block(Dtype::kFloat32, spec.inputs[0].dtype)) {}
  void run(const Args &args, const Lane &lane) const override {
    const UpdateNumbers<float> numbers =
        (args.numbers ? *static_cast<const UpdateNumbers<double> *>(args.numbers) : own_).as<float>();
    parallel_for(lane, rows_, 1 + kCheapGrain / (cols_ + 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) update_row(args, row, numbers);
    });
  }

 private:
  void update_row(const Args &args, int64_t row, const UpdateNumbers<float> &numbers) const {
    float weight[kPointwiseBlock], grad[kPointwiseBlock], history, squares = 0;
    const auto for_blocks = [&](auto &&fn) {
      for (int64_t i = 0; i < cols_; i += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, cols_ - i), at = row * cols_ + i;
        load_(args.inputs[1], at, grad, count);
        for (int64_t k = 0; k < count; ++k) grad[k] = update::scaled(grad[k], numbers);
        fn(at, count);
      }
    };
    for_blocks([&](int64_t, int64_t count) {
      for (int64_t k = 0; k < count; ++k) squares += grad[k] * grad[k];
    });
    load_(args.inputs[2], row, &history, 1);
    if (cols_ > 0) history += squares / float(cols_);
    store_(&history, args.inputs[2], row, 1);
    const float step = numbers.lr / std::sqrt(history + numbers.epsilon);
    for_blocks([&](int64_t at, int64_t count) {
      load_(args.inputs[0], at, weight, count);
      for (int64_t k = 0; k < count; ++k) weight[k] -= step * grad[k];
      store_(weight, args.outputs[0], at, count);
    });
  }

  const UpdateNumbers<double> own_;
  const int64_t rows_, cols_;
  const LoadBlock load_;
  const StoreBlock store_;
};

class ResetArrays final : public Kernel {
 public:
  explicit ResetArrays(const StepSpec &spec) {
    for (const TensorSpec &in : spec.inputs) bytes_.push_back(in.bytes());
  }
  void run(const Args &args, const Lane &) const override {
    for (size_t i = 0; i < bytes_.size(); ++i) std::memset(args.inputs[i], 0, bytes_[i]);
  }

 private:
  std::vector<size_t> bytes_;
};

// ---- sums of squares, norms, finiteness ---------------------------------------------------------------------------

class MultiSumSq final : public Kernel {
 public:
  explicit MultiSumSq(const StepSpec &spec) {
    for (const TensorSpec &in : spec.inputs)
      arrays_.push_back({in.shape.size(), load_block(in.dtype, Dtype::kFloat64)});
  }
  void run(const Args &args, const Lane &) const override {
    double block[kPointwiseBlock];
    for (size_t k = 0; k < arrays_.size(); ++k) {
      double partial[4] = {0, 0, 0, 0};
      for (int64_t i = 0; i < arrays_[k].count; i += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, arrays_[k].count - i);
        arrays_[k].load(args.inputs[k], i, block, count);
        for (int64_t j = 0; j < count; ++j) partial[j % 4] += block[j] * block[j];
      }
      args.out<float>(0)[k] = float((partial[0] + partial[1]) + (partial[2] + partial[3]));
    }
  }

 private:
  struct Array {
    int64_t count;
    LoadBlock load;
  };
  std::vector<Array> arrays_;
};

class AllFinite final : public Kernel {
 public:
  explicit AllFinite(const StepSpec &spec) : init_output_(spec.attrs_as<AllFiniteAttrs>().init_output) {
    for (const TensorSpec &in : spec.inputs)
      arrays_.push_back({in.shape.size(), load_block(in.dtype, Dtype::kFloat64)});
  }
  void run(const Args &args, const Lane &) const override {
    bool finite = true;
    double block[kPointwiseBlock];
    for (size_t k = 0; k < arrays_.size() && finite; ++k) {
      for (int64_t i = 0; i < arrays_[k].count && finite; i += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, arrays_[k].count - i);
        arrays_[k].load(args.inputs[k], i, block, count);
        for (int64_t j = 0; j < count; ++j) finite = finite && std::isfinite(block[j]);
      }
    }
    float &out = args.out<float>(0)[0];
    out = finite && (init_output_ || out != 0) ? 1.0f : 0.0f;
  }

 private:
  struct Array {
    int64_t count;
    LoadBlock load;
  };
  const bool init_output_;
  std::vector<Array> arrays_;
};

class MultiLars final : public Kernel {
 public:
  explicit MultiLars(const StepSpec &spec)
      : attrs_(spec.attrs_as<MultiLarsAttrs>()),
        count_(spec.outputs[0].shape.size()),
        load_(load_block(spec.inputs[0].dtype, Dtype::kFloat64)),
        store_(store_block(Dtype::kFloat64, spec.outputs[0].dtype)) {}
  void run(const Args &args, const Lane &) const override {
    for (int64_t i = 0; i < count_; ++i) {
      double lr, weights, grads, wd;
      load_(args.inputs[0], i, &lr, 1);
      load_(args.inputs[1], i, &weights, 1);
      load_(args.inputs[2], i, &grads, 1);
      load_(args.inputs[3], i, &wd, 1);
      const double norm = std::sqrt(weights);
      if (norm > 0 && grads > 0) {
        lr *= attrs_.eta * norm / (std::sqrt(grads) * attrs_.rescale_grad + wd * norm + attrs_.eps);
      }
      store_(&lr, args.outputs[0], i, 1);
    }
  }

 private:
  const MultiLarsAttrs attrs_;
  const int64_t count_;
  const LoadBlock load_;
  const StoreBlock store_;
};

COHORT_KERNEL_BY(cpu, sgd_update, make_update<update::Sgd, SgdAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, mp_sgd_update, make_update<update::Sgd, SgdAttrs, true>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, sgd_mom_update, make_update<update::SgdMom, SgdMomAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, mp_sgd_mom_update, make_update<update::SgdMom, SgdMomAttrs, true>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, nag_mom_update, make_update<update::NagMom, SgdMomAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, mp_nag_mom_update, make_update<update::NagMom, SgdMomAttrs, true>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, signsgd_update, make_update<update::SignSgd, SgdAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, signum_update, make_update<update::Signum, SgdMomAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, adam_update, make_update<update::Adam, AdamAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _adamw_update, make_update<update::AdamW, AdamWAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _mp_adamw_update, make_update<update::AdamW, AdamWAttrs, true>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, rmsprop_update, make_update<update::RmsProp, RmsPropAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, rmspropalex_update, make_update<update::RmsPropAlex, RmsPropAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _adagrad_update, make_update<update::Adagrad, AdagradAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _sparse_adagrad_update, make_update<update::Adagrad, AdagradAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, ftrl_update, make_update<update::Ftrl, FtrlAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, ftml_update, make_update<update::Ftml, FtmlAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _adadelta_update, make_update<update::AdaDelta, OptimizerAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _adamax_update, make_update<update::Adamax, OptimizerAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _nadam_update, make_update<update::Nadam, OptimizerAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _dcasgd_update, make_update<update::Dcasgd, OptimizerAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _dcasgd_mom_update, make_update<update::DcasgdMom, OptimizerAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _test_update, make_update<update::Test, OptimizerAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _gathered_sgd_update, make_update<update::Gathered, OptimizerAttrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, lamb_update_phase1, make_update<update::LambPhase1, LambPhase1Attrs>).output_dtypes(kFloatTypes);
COHORT_KERNEL(cpu, mp_lamb_update_phase1, MpLambPhase1);
using LambPhase2Plain = LambSecondPhase<false>;
using LambPhase2Master = LambSecondPhase<true>;
COHORT_KERNEL(cpu, lamb_update_phase2, LambPhase2Plain);
COHORT_KERNEL(cpu, mp_lamb_update_phase2, LambPhase2Master);
COHORT_KERNEL(cpu, _contrib_group_adagrad_update, GroupAdagrad).output_dtypes(kFloatTypes);
COHORT_KERNEL(cpu, reset_arrays, ResetArrays);
COHORT_KERNEL(cpu, multi_sum_sq, MultiSumSq);
COHORT_KERNEL(cpu, multi_lars, MultiLars);
COHORT_KERNEL(cpu, all_finite, AllFinite);
COHORT_KERNEL(cpu, multi_all_finite, AllFinite);

}  // namespace
}  // namespace cohort
