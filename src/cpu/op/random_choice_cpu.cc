// SPDX-License-Identifier: Apache-2.0
#include "op/random_choice.hpp"

#include <algorithm>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "cpu/op/cpu_backend.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "kernels/zipfian_kernels.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

// Draws classes by searching each number in the cumulative probabilities.
class Multinomial final : public Kernel {
 public:
  explicit Multinomial(StepSpec &spec)
      : classes_(spec.inputs[0].shape[spec.inputs[0].shape.rank() - 1]),
        rows_(spec.inputs[0].shape.size() / classes_),
        each_(spec.outputs[0].shape.size() / std::max<int64_t>(rows_, 1)),
        load_(load_block(spec.inputs[0].dtype, Dtype::kFloat64)),
        store_(store_block(Dtype::kInt64, spec.outputs[0].dtype)) {
    if (spec.outputs.size() > 1) store_log_ = store_block(Dtype::kFloat64, spec.outputs[1].dtype);
    spec.scratch_bytes = size_t(rows_ * classes_) * sizeof(double);
  }
  void run(const Args &args, const Lane &lane) const override {
    const uint64_t seed = args.random->seed, stream = args.random->draws++;
    double *const sums = static_cast<double *>(args.scratch);
    parallel_for(lane, rows_, 1 + kCheapGrain / classes_, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        double *const up_to = sums + row * classes_;
        load_(args.inputs[0], row * classes_, up_to, classes_);
        for (int64_t c = 1; c < classes_; ++c) up_to[c] += up_to[c - 1];
      }
    });
    parallel_for(lane, rows_ * each_, kExpensiveGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double *const up_to = sums + i / each_ * classes_;
        const double u = Dice(seed, stream, uint64_t(i)).unit();
        const int64_t chosen = std::min<int64_t>(std::upper_bound(up_to, up_to + classes_, u) - up_to, classes_ - 1);
        store_(&chosen, args.outputs[0], i, 1);
        if (!store_log_ || !args.outputs[1]) continue;
        double probability;
        load_(args.inputs[0], i / each_ * classes_ + chosen, &probability, 1);
        probability = std::log(probability);
        store_log_(&probability, args.outputs[1], i, 1);
      }
    });
  }

 private:
  const int64_t classes_, rows_, each_;
  const LoadBlock load_;
  const StoreBlock store_;
  StoreBlock store_log_ = nullptr;
};

// d log(p) = dp / p, for the classes that were drawn. Inputs: head gradients, data, numbers.
class MultinomialBackward final : public Kernel {
 public:
  explicit MultinomialBackward(StepSpec &spec)
      : classes_(spec.inputs[2].shape[spec.inputs[2].shape.rank() - 1]),
        rows_(spec.inputs[2].shape.size() / classes_),
        each_(spec.inputs[3].shape.size() / std::max<int64_t>(rows_, 1)),
        load_head_(load_block(spec.inputs[1].dtype, Dtype::kFloat64)),
        load_(load_block(spec.inputs[2].dtype, Dtype::kFloat64)),
        load_chosen_(load_indices(spec.inputs[3].dtype)),
        store_(store_block(Dtype::kFloat64, spec.outputs[0].dtype)) {
    spec.scratch_bytes = size_t(rows_ * classes_) * sizeof(double);
  }
  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, rows_, 1 + kCheapGrain / (classes_ + each_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        double *const grad = static_cast<double *>(args.scratch) + row * classes_;
        std::fill_n(grad, classes_, 0.0);
        for (int64_t i = row * each_; i < (row + 1) * each_; ++i) {
          int64_t chosen;
          double head, probability;
          load_chosen_(args.inputs[3], i, &chosen, 1);
          if (chosen < 0 || chosen >= classes_) continue;
          load_head_(args.inputs[1], i, &head, 1);
          load_(args.inputs[2], row * classes_ + chosen, &probability, 1);
          grad[chosen] += head / probability;
        }
        store_(grad, args.outputs[0], row * classes_, classes_);
      }
    });
  }

 private:
  const int64_t classes_, rows_, each_;
  const LoadBlock load_head_, load_, load_chosen_;
  const StoreBlock store_;
};

// Shuffles indices by exchanges from the last one on, then copies each part once.
class Shuffle final : public Kernel {
 public:
  explicit Shuffle(StepSpec &spec)
      : parts_(spec.inputs[0].shape[0]), bytes_(parts_ > 0 ? int64_t(spec.inputs[0].bytes()) / parts_ : 0) {
    spec.scratch_bytes = size_t(parts_) * sizeof(int64_t);
  }
  void run(const Args &args, const Lane &lane) const override {
    const uint64_t seed = args.random->seed, stream = args.random->draws++;
    int64_t *const order = static_cast<int64_t *>(args.scratch);
    for (int64_t i = 0; i < parts_; ++i) order[i] = i;
    Dice dice(seed, stream, 0);
    for (int64_t i = parts_ - 1; i > 0; --i) std::swap(order[i], order[dice.below(uint64_t(i) + 1)]);
    parallel_for(lane, parts_, 1 + kCheapGrain / (bytes_ + 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::memcpy(args.out<char>(0) + i * bytes_, args.in<char>(0) + order[i] * bytes_, size_t(bytes_));
      }
    });
  }

 private:
  const int64_t parts_, bytes_;
};

COHORT_KERNEL(cpu, _sample_multinomial, Multinomial).dtypes(kFloatTypes);
COHORT_KERNEL(cpu, _backward__sample_multinomial, MultinomialBackward);
COHORT_KERNEL(cpu, _shuffle, Shuffle);
const bool registered = (register_zipfian_kernels<CpuBackend>(), true);

}  // namespace
}  // namespace cohort
