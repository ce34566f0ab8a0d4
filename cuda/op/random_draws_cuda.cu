// SPDX-License-Identifier: Apache-2.0
// Random numbers by the counters that the CPU uses: number i of draw r is a function of seed, r and i alone. Uniform
// numbers and integers equal those of the CPU; others use functions of the device, which may round differently.
#include <algorithm>
#include <cmath>

#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "device/run_value.hpp"
#include "op/random_draws.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

__device__ inline Dice dice_of(const RandomStream &drawn, uint64_t i) { return Dice(drawn.seed, drawn.draws, i); }

// Number i with these parameters; `kept`: the number of values that a uniform number can have, 0: all.
template <typename D, typename C>
__device__ C number_of(const RandomStream &drawn, int64_t i, double a, double b, C kept) {
  if constexpr (D::kSource == draw::RandomSource::kDice) {
    Dice dice = dice_of(drawn, uint64_t(i));
    return C(D::of(dice, a, b));
  } else {
    constexpr int64_t kPerBlock = sizeof(C) == 4 ? 4 : 2;
    const Philox random = Philox::at(drawn.seed, uint64_t(i / kPerBlock), drawn.draws);
    C numbers[kPerBlock];
    if constexpr (D::kSource == draw::RandomSource::kNormal) {
      normals_of(random, numbers);
    } else {
      units_of(random, numbers);
    }
    C number = numbers[i % kPerBlock];
    if (D::kSource == draw::RandomSource::kUnit && kept != C(0)) number = std::floor(number * kept) / kept;
    return D::of(number, C(a), C(b));
  }
}

template <typename D, typename C>
class DrawCuda final : public Kernel {
 public:
  DrawCuda(const StepSpec &spec, bool from_arrays)
      : count_(spec.outputs[0].shape.size()), dtype_(spec.outputs[0].dtype) {
    if (from_arrays) {
      num_arrays_ = std::min<int>(2, int(spec.inputs.size()));
      for (int i = 0; i < num_arrays_; ++i) dtypes_[i] = spec.inputs[size_t(i)].dtype;
      each_ = count_ / std::max<int64_t>(spec.inputs[0].shape.size(), 1);
    } else {
      values_[0] = double(spec.attrs_as<DrawAttrs>().a), values_[1] = double(spec.attrs_as<DrawAttrs>().b);
    }
  }

  void run(const Args &args, const Lane &lane) const override {
    const auto draw = next_draw(args, lane);
    const Elements out = elements_of(args.outputs[0], dtype_);
    const Elements first = elements_of(num_arrays_ > 0 ? args.inputs[0] : nullptr, dtypes_[0]);
    const Elements second = elements_of(num_arrays_ > 1 ? args.inputs[1] : nullptr, dtypes_[1]);
    const double a_value = values_[0], b_value = values_[1];
    const int64_t each = each_;
    const C kept = C(draw::kept_values(dtype_));
    for_each(lane, count_, [=] __device__(int64_t i) {
      const double a = first.data ? load<double>(first, i / each) : a_value;
      const double b = second.data ? load<double>(second, i / each) : b_value;
      if (!D::fits(a, b)) return store(out, i, C(NAN));
      store(out, i, number_of<D, C>(draw.get(), i, a, b, kept));
    });
  }

 private:
  const int64_t count_;
  const Dtype dtype_;
  int num_arrays_ = 0;  // of parameters
  Dtype dtypes_[2] = {};
  double values_[2] = {0, 0};
  int64_t each_ = 1;  // the count of numbers per element of the parameter arrays
};

template <typename D, bool kFromArrays>
std::unique_ptr<Kernel> make_draw(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) return std::make_unique<DrawCuda<D, double>>(spec, kFromArrays);
  return std::make_unique<DrawCuda<D, float>>(spec, kFromArrays);
}

class RandintCuda final : public Kernel {
 public:
  explicit RandintCuda(const StepSpec &spec)
      : low_(spec.attrs_as<RandintAttrs>().low),
        range_(uint64_t(spec.attrs_as<RandintAttrs>().high) - uint64_t(low_)),
        count_(spec.outputs[0].shape.size()),
        dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const auto draw = next_draw(args, lane);
    const uint64_t range = range_;
    const int64_t low = low_;
    const Elements out = elements_of(args.outputs[0], dtype_);
    for_each(lane, count_, [=] __device__(int64_t i) {
      store(out, i, int64_t(uint64_t(low) + dice_of(draw.get(), uint64_t(i)).below(range)));
    });
  }

 private:
  const int64_t low_;
  const uint64_t range_;
  const int64_t count_;
  const Dtype dtype_;
};

const bool registered = [] {
  draw::for_each([](auto distribution, const std::string &name) {
    using D = decltype(distribution);
    cuda_kernels().add("_random_" + name, make_draw<D, false>).output_dtypes(kFloatTypes);
    cuda_kernels().add("_random_" + name + "_like", make_draw<D, false>).output_dtypes(kFloatTypes);
    cuda_kernels().add("_sample_" + name, make_draw<D, true>).output_dtypes(kFloatTypes);
  });
  return true;
}();
COHORT_KERNEL(cuda, _random_randint, RandintCuda);

}  // namespace
}  // namespace cohort
