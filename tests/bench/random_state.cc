// SPDX-License-Identifier: Apache-2.0
#include "random_state.hpp"

#include <cmath>

namespace bench {

RandomState::RandomState(uint32_t seed) {
  for (int i = 0; i < kWords; ++i) {
    words_[i] = seed;
    seed = 1812433253u * (seed ^ (seed >> 30)) + uint32_t(i) + 1;
  }
}

void RandomState::twist() {
  constexpr int kShift = 397;
  for (int i = 0; i < kWords; ++i) {
    const uint32_t mixed = (words_[i] & 0x80000000u) | (words_[(i + 1) % kWords] & 0x7fffffffu);
    words_[i] = words_[(i + kShift) % kWords] ^ (mixed >> 1) ^ ((mixed & 1) ? 0x9908b0dfu : 0);
  }
  at_ = 0;
}

uint32_t RandomState::next_word() {
  if (at_ == kWords) twist();
  uint32_t word = words_[at_++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680u;
  word ^= (word << 15) & 0xefc60000u;
  return word ^ (word >> 18);
}

double RandomState::next_double() {
  const uint32_t high = next_word() >> 5, low = next_word() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

// Marsaglia's polar method. Of a pair the second number comes first, and the first is kept for the next call.
double RandomState::next_gauss() {
  if (has_gauss_) {
    has_gauss_ = false;
    return gauss_;
  }
  double x, y, square;
  do {
    x = 2.0 * next_double() - 1.0;
    y = 2.0 * next_double() - 1.0;
    square = x * x + y * y;
  } while (square >= 1.0 || square == 0.0);
  const double scale = std::sqrt(-2.0 * std::log(square) / square);
  gauss_ = scale * x;
  has_gauss_ = true;
  return scale * y;
}

std::vector<float> RandomState::uniform(size_t count, double low, double high) {
  std::vector<float> values(count);
  for (float &value : values) value = float(low + (high - low) * next_double());
  return values;
}

std::vector<float> RandomState::standard_normal(size_t count) {
  std::vector<float> values(count);
  for (float &value : values) value = float(next_gauss());
  return values;
}

// Words are masked to the bits of the largest value, and taken again while they are larger.
std::vector<float> RandomState::randint(size_t count, uint32_t high) {
  const uint32_t largest = high - 1;
  uint32_t mask = largest;
  for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
  std::vector<float> values(count);
  for (float &value : values) {
    uint32_t word;
    do {
      word = next_word() & mask;
    } while (word > largest);
    value = float(word);
  }
  return values;
}

RandomState stream(const std::string &name) {
  uint32_t crc = 0xffffffffu;
  for (const char c : name) {
    crc ^= uint8_t(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320u : 0);
  }
  return RandomState(~crc);
}

}  // namespace bench
