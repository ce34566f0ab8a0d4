// SPDX-License-Identifier: Apache-2.0
// _sample_multinomial, _shuffle and _sample_unique_zipfian, by the CPU's counters (random_draws_cuda.cu).
#include <algorithm>
#include <cmath>

#include "cuda/op/cuda_backend.cuh"
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "device/run_value.hpp"
#include "kernels/zipfian_kernels.hpp"
#include "op/random_choice.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

__device__ inline Dice dice_of(const RandomStream &drawn, uint64_t i) { return Dice(drawn.seed, drawn.draws, i); }

// Searches each random number in the running sums of the probabilities.
class MultinomialCuda final : public Kernel {
 public:
  explicit MultinomialCuda(StepSpec &spec)
      : classes_(spec.inputs[0].shape[spec.inputs[0].shape.rank() - 1]),
        rows_(spec.inputs[0].shape.size() / classes_),
        each_(spec.outputs[0].shape.size() / std::max<int64_t>(rows_, 1)),
        data_(spec.inputs[0].dtype),
        out_(spec.outputs[0].dtype),
        log_(spec.outputs.size() > 1 ? spec.outputs[1].dtype : Dtype::kNone) {
    spec.scratch_bytes = size_t(rows_ * classes_) * sizeof(double);
  }
  void run(const Args &args, const Lane &lane) const override {
    const auto draw = next_draw(args, lane);
    double *const sums = static_cast<double *>(args.scratch);
    const Elements data = elements_of(args.inputs[0], data_), out = elements_of(args.outputs[0], out_);
    const Elements log = elements_of(log_ == Dtype::kNone ? nullptr : args.outputs[1], log_);
    const int64_t classes = classes_, each = each_;
    for_each(lane, rows_, [=] __device__(int64_t row) {
      double sum = 0;
      for (int64_t c = row * classes; c < (row + 1) * classes; ++c) sums[c] = sum += load<double>(data, c);
    });
    for_each(lane, rows_ * each, [=] __device__(int64_t i) {
      const double *const up_to = sums + i / each * classes;
      const double u = dice_of(draw.get(), uint64_t(i)).unit();
      int64_t low = 0, high = classes - 1;
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (u < up_to[middle]) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      store(out, i, low);
      if (log.data) store(log, i, std::log(load<double>(data, i / each * classes + low)));
    });
  }

 private:
  const int64_t classes_, rows_, each_;
  const Dtype data_, out_, log_;
};

// d log(p) = dp / p, of the classes that were chosen. Inputs: head gradients, data, numbers.
class MultinomialBackwardCuda final : public Kernel {
 public:
  explicit MultinomialBackwardCuda(StepSpec &spec)
      : classes_(spec.inputs[2].shape[spec.inputs[2].shape.rank() - 1]),
        rows_(spec.inputs[2].shape.size() / classes_),
        each_(spec.inputs[3].shape.size() / std::max<int64_t>(rows_, 1)),
        head_(spec.inputs[1].dtype),
        data_(spec.inputs[2].dtype),
        chosen_(spec.inputs[3].dtype),
        out_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[1], head_), data = elements_of(args.inputs[2], data_);
    const Elements chosen = elements_of(args.inputs[3], chosen_), out = elements_of(args.outputs[0], out_);
    const int64_t classes = classes_, each = each_;
    for_each(lane, rows_ * classes, [=] __device__(int64_t at) {
      const int64_t row = at / classes;
      double sum = 0;
      for (int64_t i = row * each; i < (row + 1) * each; ++i) {
        if (load_index(chosen, i) == at % classes) sum += load<double>(head, i) / load<double>(data, at);
      }
      store(out, at, sum);
    });
  }

 private:
  const int64_t classes_, rows_, each_;
  const Dtype head_, data_, chosen_, out_;
};

// One thread shuffles the order of the parts by exchanges from the last part on; then each part is copied.
class ShuffleCuda final : public Kernel {
 public:
  explicit ShuffleCuda(StepSpec &spec)
      : parts_(spec.inputs[0].shape[0]),
        width_(parts_ > 0 ? spec.inputs[0].shape.size() / parts_ : 0),
        dtype_(spec.inputs[0].dtype) {
    spec.scratch_bytes = size_t(parts_) * sizeof(int64_t);
  }
  void run(const Args &args, const Lane &lane) const override {
    const auto draw = next_draw(args, lane);
    int64_t *const order = static_cast<int64_t *>(args.scratch);
    const int64_t parts = parts_, width = width_;
    for_each(lane, 1, [=] __device__(int64_t) {
      for (int64_t i = 0; i < parts; ++i) order[i] = i;
      Dice dice = dice_of(draw.get(), 0);
      for (int64_t i = parts - 1; i > 0; --i) {
        const int64_t other = int64_t(dice.below(uint64_t(i) + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
      }
    });
    const RawElements from = raw_elements(args.inputs[0], dtype_), to = raw_elements(args.outputs[0], dtype_);
    for_each(lane, parts * width,
             [=] __device__(int64_t i) { copy_element(to, i, from, order[i / width] * width + i % width); });
  }

 private:
  const int64_t parts_, width_;
  const Dtype dtype_;
};

COHORT_KERNEL(cuda, _sample_multinomial, MultinomialCuda).dtypes(kFloatTypes);
COHORT_KERNEL(cuda, _backward__sample_multinomial, MultinomialBackwardCuda);
COHORT_KERNEL(cuda, _shuffle, ShuffleCuda);
const bool zipfian_registered = (register_zipfian_kernels<CudaBackend>(), true);

}  // namespace
}  // namespace cohort
