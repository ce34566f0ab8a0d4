// SPDX-License-Identifier: Apache-2.0
// The streams of numbers that NumPy's legacy RandomState gives, so that every peer of a measurement starts from the
// same data and parameters. For cohort_bench.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// A Mersenne twister (MT19937), seeded and read as numpy.random.RandomState(seed) does it.
class RandomState {
 public:
  explicit RandomState(uint32_t seed);

  std::vector<float> uniform(size_t count, double low, double high);
  std::vector<float> standard_normal(size_t count);
  std::vector<float> randint(size_t count, uint32_t high);  // 0 <= value < high

 private:
  static constexpr int kWords = 624;

  void twist();
  uint32_t next_word();
  double next_double();  // in [0, 1), 53 bits
  double next_gauss();

  uint32_t words_[kWords];
  int at_ = kWords;
  bool has_gauss_ = false;
  double gauss_ = 0;  // the second number of the last pair
};

// The stream of a name: seeded with the CRC-32 of it.
RandomState stream(const std::string &name);

}  // namespace bench
