// SPDX-License-Identifier: Apache-2.0
#include "op/random_draws.hpp"

#include <algorithm>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

// The parameters of a run of numbers: those of the attributes, or elements of the inputs.
class DistributionParameters {
 public:
  DistributionParameters(const StepSpec &spec, bool are_arrays) {
    if (are_arrays) {
      for (const TensorSpec &in : spec.inputs) load_.push_back(load_block(in.dtype, Dtype::kFloat64));
      each_ = spec.outputs[0].shape.size() / std::max<int64_t>(spec.inputs[0].shape.size(), 1);
    } else {
      const auto &attrs = spec.attrs_as<DrawAttrs>();
      values_[0] = double(attrs.a), values_[1] = double(attrs.b);
    }
  }
  int64_t same_from(int64_t number) const { return load_.empty() ? INT64_MAX : each_ - number % each_; }
  void of(const Args &args, int64_t number, double *values) const {
    std::copy_n(values_, 2, values);
    for (size_t i = 0; i < load_.size(); ++i) load_[i](args.inputs[i], number / each_, &values[i], 1);
  }

 private:
  double values_[2] = {0, 0};
  int64_t each_ = 1;  // numbers that share the parameters of one element
  std::vector<LoadBlock> load_;
};

// Number i of draw r comes from stream r: from block i / (numbers of a block) or, for distributions that need a
// varying number of bits, from blocks of its own.
template <typename D, typename C>
class Draw final : public Kernel {
 public:
  Draw(const StepSpec &spec, bool from_arrays)
      : parameters_(spec, from_arrays),
        count_(spec.outputs[0].shape.size()),
        kept_(C(draw::kept_values(spec.outputs[0].dtype))),
        store_(store_block(dtype_of<C>(), spec.outputs[0].dtype)) {}

  void run(const Args &args, const Lane &lane) const override {
    const uint64_t seed = args.random->seed, stream = args.random->draws++;
    const int64_t num_blocks = (count_ + kPointwiseBlock - 1) / kPointwiseBlock;
    parallel_for(lane, num_blocks, kExpensiveGrain / kPointwiseBlock, [&](int64_t first, int64_t last) {
      C block[kPointwiseBlock];
      for (int64_t begin = first * kPointwiseBlock; begin < std::min(last * kPointwiseBlock, count_);
           begin += kPointwiseBlock) {
        const int64_t end = std::min(begin + kPointwiseBlock, count_);
        if constexpr (D::kSource != draw::RandomSource::kDice) fill(block, begin, end, seed, stream);
        for (int64_t i = begin, same; i < end; i += same) {
          double p[2];
          parameters_.of(args, i, p);
          same = std::min(end - i, parameters_.same_from(i));
          finish(block + (i - begin), i, same, p[0], p[1], seed, stream);
        }
        store_(block, args.outputs[0], begin, end - begin);
      }
    });
  }

 private:
  static constexpr int64_t kPerBlock = sizeof(C) == 4 ? 4 : 2;

  void fill(C *block, int64_t begin, int64_t end, uint64_t seed, uint64_t stream) const {
    for (int64_t i = begin; i < end; i += kPerBlock, block += kPerBlock) {
      const Philox random = Philox::at(seed, uint64_t(i / kPerBlock), stream);
      if constexpr (D::kSource == draw::RandomSource::kNormal) {
        normals_of(random, block);
      } else {
        units_of(random, block);
        if (kept_ == 0) continue;
        for (int64_t j = 0; j < kPerBlock; ++j) block[j] = std::floor(block[j] * kept_) / kept_;
      }
    }
  }

  void finish(C *numbers, int64_t first, int64_t count, double a, double b, uint64_t seed, uint64_t stream) const {
    if (!D::fits(a, b)) {
      std::fill_n(numbers, count, C(NAN));
    } else if constexpr (D::kSource == draw::RandomSource::kDice) {
      for (int64_t i = 0; i < count; ++i) {
        Dice dice(seed, stream, uint64_t(first + i));
        numbers[i] = C(D::of(dice, a, b));
      }
    } else {
      for (int64_t i = 0; i < count; ++i) numbers[i] = D::of(numbers[i], C(a), C(b));
    }
  }

  const DistributionParameters parameters_;
  const int64_t count_;
  const C kept_;
  const StoreBlock store_;
};

template <typename D, bool kFromArrays>
std::unique_ptr<Kernel> make_draw(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) return std::make_unique<Draw<D, double>>(spec, kFromArrays);
  return std::make_unique<Draw<D, float>>(spec, kFromArrays);
}

class Randint final : public Kernel {
 public:
  explicit Randint(const StepSpec &spec)
      : low_(spec.attrs_as<RandintAttrs>().low),
        range_(uint64_t(spec.attrs_as<RandintAttrs>().high) - uint64_t(low_)),
        count_(spec.outputs[0].shape.size()),
        store_(store_block(Dtype::kInt64, spec.outputs[0].dtype)) {}
  void run(const Args &args, const Lane &lane) const override {
    const uint64_t seed = args.random->seed, stream = args.random->draws++;
    parallel_for(lane, count_, kExpensiveGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t number = int64_t(uint64_t(low_) + Dice(seed, stream, uint64_t(i)).below(range_));
        store_(&number, args.outputs[0], i, 1);
      }
    });
  }

 private:
  const int64_t low_;
  const uint64_t range_;
  const int64_t count_;
  const StoreBlock store_;
};

const bool registered = [] {
  draw::for_each([](auto distribution, const std::string &name) {
    using D = decltype(distribution);
    cpu_kernels().add("_random_" + name, make_draw<D, false>).output_dtypes(kFloatTypes);
    cpu_kernels().add("_random_" + name + "_like", make_draw<D, false>).output_dtypes(kFloatTypes);
    cpu_kernels().add("_sample_" + name, make_draw<D, true>).output_dtypes(kFloatTypes);
  });
  return true;
}();
COHORT_KERNEL(cpu, _random_randint, Randint);

}  // namespace
}  // namespace cohort
