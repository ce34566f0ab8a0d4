// SPDX-License-Identifier: Apache-2.0
// The kernel of _sample_unique_zipfian (op/random_choice.hpp).
#pragma once

#include <cmath>

#include "device/run_value.hpp"
#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "op/random_choice.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

// Draws different numbers for each row of the output. Numbers drawn before are found in a hash table per row, which has
// at least twice as many slots as the row has numbers.
template <typename Backend>
class Zipfian final : public Kernel {
 public:
  explicit Zipfian(StepSpec &spec)
      : rows_(spec.outputs[0].shape[0]),
        cols_(spec.outputs[0].shape[1]),
        log_range_(std::log(double(spec.attrs_as<ZipfianAttrs>().range_max) + 1)),
        range_(spec.attrs_as<ZipfianAttrs>().range_max) {
    while (slots_ < 2 * cols_) slots_ *= 2;
    spec.scratch_bytes = size_t(rows_ * slots_) * sizeof(int32_t);
  }
  void run(const Args &args, const Lane &lane) const override {
    const RunValue<RandomStream> draw = next_draw(args, lane);
    const RowDraw rows{cols_, range_, slots_, log_range_};
    int64_t *const numbers = args.out<int64_t>(0), *const tries = args.out<int64_t>(1);
    int32_t *const tables = static_cast<int32_t *>(args.scratch);
    Backend::parallel_for(lane, rows_, 1 + Backend::kExpensiveGrain / cols_,
                          [=] COHORT_DEVICE(int64_t begin, int64_t end) {
                            const RandomStream drawn = draw.get();
                            for (int64_t row = begin; row < end; ++row) {
                              const int64_t count = rows.run(Dice(drawn.seed, drawn.draws, uint64_t(row) << 12),
                                                             numbers + row * rows.cols, tables + row * rows.slots);
                              if (tries) tries[row] = count;
                            }
                          });
  }

  // Public because nvcc refuses private types in extended lambdas.
  struct RowDraw {
    int64_t cols, range, slots;
    double log_range;

    // Returns the number of tries.
    COHORT_HOST_DEVICE int64_t run(Dice dice, int64_t *numbers, int32_t *table) const {
      fill_elements(table, slots, -1);
      int64_t tries = 0;
      for (int64_t found = 0; found < cols;) {
        const auto drawn = int64_t(std::exp(dice.unit() * log_range)) - 1;
        const auto number = int32_t(drawn < 0 ? 0 : drawn < range ? drawn : range - 1);
        ++tries;
        int64_t slot = int64_t(uint32_t(number) * 2654435761u) % slots;
        while (table[slot] >= 0 && table[slot] != number) slot = (slot + 1) % slots;
        if (table[slot] == number) continue;
        table[slot] = number;
        numbers[found++] = number;
      }
      return tries;
    }
  };

 private:
  const int64_t rows_, cols_;
  const double log_range_;
  const int64_t range_;
  int64_t slots_ = 1;
};

template <typename Backend>
void register_zipfian_kernels() {
  backend_kernels().add("_sample_unique_zipfian", make_kernel_of<Zipfian<Backend>>);
}

}  // namespace
}  // namespace cohort
