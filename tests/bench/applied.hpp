// SPDX-License-Identifier: Apache-2.0
// W12: operators applied at once, without a network. For cohort_bench.
#pragma once

#include <cohort/cohort.hpp>
#include <string>
#include <vector>

namespace bench {

// 1,000 point-wise operators on 32 numbers, each on the result of the one before, which it leaves alone: a new array
// for each. Then a wait for the last.
class AppliedChain {
 public:
  static constexpr int kOperators = 1000;

  AppliedChain();
  void step();
  std::string check();  // figures of the last result, as JSON

 private:
  void apply(const char *op, const char *scalar);

  cohort::NDArray start_, at_;
};

// The sum of two arrays of 16 MiB, into a third.
class AppliedSum {
 public:
  static constexpr int64_t kElements = int64_t(4) << 20;
  static constexpr double kBytes = 3.0 * kElements * sizeof(float);  // read, read, written

  AppliedSum();
  void step();
  void step_by_hand();  // the same sum by a plain loop of this program's, on one thread

 private:
  cohort::NDArray left_, right_, sum_;
  std::vector<float> a_, b_, c_;
};

}  // namespace bench
