// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: number i of a stream depends on (seed, i) alone, so any thread of any device can
// compute its own elements and results do not depend on how the work is divided. Compiled by both backends.
//
// The generator is Philox 4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a
// block cipher on a 128-bit counter. Each block has four 32-bit words; word i of a stream is word i % 4 of block i / 4.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/dtype.hpp"

namespace cohort {

struct Philox {
  uint32_t word[4];

  // Block `block` of the stream (`seed`, `stream`).
  COHORT_HOST_DEVICE static Philox at(uint64_t seed, uint64_t block, uint64_t stream = 0) {
    uint32_t c0 = uint32_t(block), c1 = uint32_t(block >> 32), c2 = uint32_t(stream), c3 = uint32_t(stream >> 32);
    uint32_t key0 = uint32_t(seed), key1 = uint32_t(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t(0xD2511F53u) * c0, b = uint64_t(0xCD9E8D57u) * c2;
      c0 = uint32_t(b >> 32) ^ c1 ^ key0;
      c1 = uint32_t(b);
      c2 = uint32_t(a >> 32) ^ c3 ^ key1;
      c3 = uint32_t(a);
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    return Philox{{c0, c1, c2, c3}};
  }
};

// Derives the seed of sub-stream (a, b) of `seed`: one block of the cipher. Two sub-streams share a seed with
// probability 2^-64.
COHORT_HOST_DEVICE inline uint64_t stream_seed(uint64_t seed, uint64_t a, uint64_t b) {
  const Philox block = Philox::at(seed, a, b);
  return uint64_t(block.word[1]) << 32 | block.word[0];
}

// A stream number derived from a name, by FNV-1a.
inline uint64_t name_stream(const std::string &name) {
  uint64_t stream = 14695981039346656037u;
  for (unsigned char c : name) stream = (stream ^ c) * 1099511628211u;
  return stream;
}

// Uniform in [0, 1): a multiple of 2^-24.
COHORT_HOST_DEVICE inline float uniform_of(uint32_t word) { return float(word >> 8) * 5.9604644775390625e-8f; }

// The functions of normal_of(), by additions and products alone: those of libraries differ in the last bit from one
// backend to the next. No compiler may contract them.

// The logarithm of x from 2^-24 to 1. x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2).
COHORT_HOST_DEVICE inline float log_of_unit(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const uint32_t shifted = bits - 0x3f3504f3u;  // sqrt(1/2)
  bits = (shifted & 0x7fffffu) + 0x3f3504f3u;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  f -= 1.0f;
  const float e = float(int32_t(shifted) >> 23);
  float p = 0.09272214f;
  p = p * f - 0.14118426f;
  p = p * f + 0.14676397f;
  p = p * f - 0.16592856f;
  p = p * f + 0.19985127f;
  p = p * f - 0.25000921f;
  p = p * f + 0.33333409f;
  const float log = f + f * f * (f * p - 0.5f);
  return e * 0.693145751953125f + (log + e * 1.42860682031e-6f);
}

// The cosine and the sine of n / 2^24 of a turn, n below 2^24.
COHORT_HOST_DEVICE inline void turn_of(uint32_t n, float *cosine, float *sine) {
  const uint32_t quarter = (n + (1u << 21)) >> 22;
  const float x = float(int32_t(n) - int32_t(quarter << 22)) * 3.745070282e-7f, x2 = x * x;  // at most pi / 4
  const float s = x + x * x2 * ((-0.0001958795f * x2 + 0.008332749f) * x2 - 0.16666664f);
  const float c = 1.0f - 0.5f * x2 + x2 * x2 * ((2.45477e-5f * x2 - 0.0013888301f) * x2 + 0.041666664f);
  const float along = quarter % 2 ? s : c, across = quarter % 2 ? c : s;
  *cosine = quarter % 4 == 1 || quarter % 4 == 2 ? -along : along;
  *sine = quarter % 4 >= 2 ? -across : across;
}

// Two independent standard normal numbers from two words, by Box-Muller. Magnitude at most 5.8. All backends give the
// same bits.
COHORT_HOST_DEVICE inline void normal_of(uint32_t word0, uint32_t word1, float *a, float *b) {
  const float radius = sqrtf(-2.0f * log_of_unit((float(word0 >> 8) + 1.0f) * 5.9604644775390625e-8f));  // of (0, 1]
  float cosine, sine;
  turn_of(word1 >> 8, &cosine, &sine);
  *a = radius * cosine;
  *b = radius * sine;
}

// Number i of a stream. For single numbers; loops use all four words of a block.
COHORT_HOST_DEVICE inline float uniform_at(uint64_t seed, uint64_t i, uint64_t stream = 0) {
  return uniform_of(Philox::at(seed, i / 4, stream).word[i % 4]);
}
COHORT_HOST_DEVICE inline float normal_at(uint64_t seed, uint64_t i, uint64_t stream = 0) {
  const Philox block = Philox::at(seed, i / 4, stream);
  const int pair = int(i % 4) & 2;
  float a, b;
  normal_of(block.word[pair], block.word[pair + 1], &a, &b);
  return i % 2 ? b : a;
}

}  // namespace cohort
