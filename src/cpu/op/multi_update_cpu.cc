// SPDX-License-Identifier: Apache-2.0
#include "op/multi_update.hpp"

#include <cmath>

#include "cpu/op/weight_update.hpp"
#include "device/kernel_table.hpp"
#include "kernels/partial_sums.hpp"

namespace cohort {
namespace {

// Updates weights one after the other. Learning rates and the like that are arrays are the last inputs.
template <typename F, typename C, bool kMaster>
class MultiUpdate final : public Kernel {
 public:
  explicit MultiUpdate(const StepSpec &spec)
      : preloaded_(spec.attrs_as<MultiUpdateAttrs>().preloaded),
        rescales_(!spec.attrs_as<MultiUpdateAttrs>().etas.empty()),
        last_(int(spec.inputs.size()) - 1) {
    const int per_weight = 2 + F::kStates + (kMaster ? 1 : 0);
    for (int w = 0; w < int(spec.outputs.size()); ++w) {
      updates_.emplace_back(spec, best_version<UpdateBody<F, C>>(), F::kStates, kMaster, w * per_weight, w);
      numbers_.push_back(spec.attrs_as<MultiUpdateAttrs>().numbers(size_t(w)));
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t w = 0; w < updates_.size(); ++w) {
      UpdateNumbers<double> numbers = numbers_[w];
      if (preloaded_) {
        numbers.lr = double(args.in<float>(last_ - 1)[w]);
        numbers.wd = double(args.in<float>(last_)[w]);
      }
      if (rescales_) numbers.rescale = double(args.in<float>(last_)[0]);
      if (rescales_ && (!std::isfinite(numbers.rescale) || numbers.rescale == 0)) {
        updates_[w].copy_weight(args);
      } else {
        updates_[w].run(args, lane, numbers.template as<C>());
      }
    }
  }

 private:
  const bool preloaded_, rescales_;
  const int last_;
  std::vector<WeightUpdateLoop<C>> updates_;
  std::vector<UpdateNumbers<double>> numbers_;  // per weight
};

template <typename F, bool kMaster>
std::unique_ptr<Kernel> make_multi(StepSpec &spec) {
  if (!kMaster && spec.outputs[0].dtype == Dtype::kFloat64) {
    return std::make_unique<MultiUpdate<F, double, false>>(spec);
  }
  return std::make_unique<MultiUpdate<F, float, kMaster>>(spec);
}

// Both phases of a LAMB update of each weight, with the direction in scratch memory between them. An optimizer, which
// passes the numbers of a run, has one weight.
template <bool kMaster>
class MultiLamb final : public Kernel {
 public:
  explicit MultiLamb(StepSpec &spec) {
    for (size_t w = 0; w < spec.outputs.size(); ++w) {
      const size_t first = w * kPerWeight;
      const TensorSpec &weight = spec.inputs[first], &source = spec.inputs[first + (kMaster ? 4 : 0)];
      TensorSpec direction = weight;
      direction.dtype = Dtype::kFloat32;
      StepSpec one, two;
      one.inputs = {source, spec.inputs[first + 1], spec.inputs[first + 2], spec.inputs[first + 3]};
      one.outputs = {direction};
      two.inputs = {weight, direction, source};
      two.outputs = {spec.outputs[w]};
      halves_.push_back(
          {WeightUpdateLoop<float>(one, best_version<UpdateBody<update::LambPhase1, float>>(), 2, false, 0, 0),
           WeightUpdateLoop<float>(two, best_version<UpdateBody<update::LambPhase2, float>>(), 0, kMaster, 0, 0),
           load_block(source.dtype, Dtype::kFloat32), weight.shape.size(),
           spec.attrs ? spec.attrs_as<MultiUpdateAttrs>().numbers(w) : UpdateNumbers<double>()});
      spec.scratch_bytes = std::max(spec.scratch_bytes, direction.bytes());
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t w = 0; w < halves_.size(); ++w) {
      const Halves &h = halves_[w];
      UpdateNumbers<double> numbers =
          args.numbers ? *static_cast<const UpdateNumbers<double> *>(args.numbers) : h.numbers;
      void *const *const in = args.inputs + w * kPerWeight;
      void *const source = in[kMaster ? 4 : 0];
      void *const one[] = {source, in[1], in[2], in[3]}, *const direction[] = {args.scratch};
      void *const two[] = {in[0], args.scratch, source}, *const result[] = {args.outputs[w]};
      Args flat;
      flat.inputs = one, flat.outputs = direction;
      h.first.run(flat, lane, numbers.template as<float>());
      numbers.lr *=
          update::LambScale::of(squares(source, h.load, h.count), squares(args.scratch, load_float_, h.count), numbers);
      flat.inputs = two, flat.outputs = result;
      h.second.run(flat, lane, numbers.template as<float>());
    }
  }

 private:
  static constexpr size_t kPerWeight = kMaster ? 5 : 4;
  struct Halves {
    WeightUpdateLoop<float> first, second;
    LoadBlock load;
    int64_t count;
    UpdateNumbers<double> numbers;
  };
  static double squares(const void *array, LoadBlock load, int64_t count) {
    float block[kPointwiseBlock];
    double sum = 0;
    for (int64_t i = 0; i < count; i += kPointwiseBlock) {
      const int64_t n = std::min(kPointwiseBlock, count - i);
      load(array, i, block, n);
      sum += sum_over<double>(n, [&](int64_t k) { return double(block[k]) * double(block[k]); });
    }
    return sum;
  }

  const LoadBlock load_float_ = load_block(Dtype::kFloat32, Dtype::kFloat32);
  std::vector<Halves> halves_;
};

COHORT_KERNEL_BY(cpu, multi_sgd_update, make_multi<update::Sgd, false>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, multi_sgd_mom_update, make_multi<update::SgdMom, false>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, multi_mp_sgd_update, make_multi<update::Sgd, true>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, multi_mp_sgd_mom_update, make_multi<update::SgdMom, true>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, preloaded_multi_sgd_update, make_multi<update::Sgd, false>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, preloaded_multi_sgd_mom_update, make_multi<update::SgdMom, false>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, preloaded_multi_mp_sgd_update, make_multi<update::Sgd, true>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, preloaded_multi_mp_sgd_mom_update, make_multi<update::SgdMom, true>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _multi_adamw_update, make_multi<update::AdamW, false>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _multi_mp_adamw_update, make_multi<update::AdamW, true>).output_dtypes(kFloatTypes);
using PlainMultiLamb = MultiLamb<false>;
using MasterMultiLamb = MultiLamb<true>;
COHORT_KERNEL(cpu, _multi_lamb_update, PlainMultiLamb).output_dtypes(kFloatTypes);
COHORT_KERNEL(cpu, _multi_mp_lamb_update, MasterMultiLamb).output_dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
