// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: number i of a stream depends on (seed, i) alone, so any thread of any device can
// compute its own elements and results do not depend on how the work is divided. Compiled by both backends.
//
// The generator is Philox 4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a
// block cipher on a 128-bit counter. Each block has four 32-bit words; word i of a stream is word i % 4 of block i / 4.
#pragma once

#include <cmath>
#include <cstdint>
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

// Two independent standard normal numbers from two words, by Box-Muller. Magnitude at most 5.8.
COHORT_HOST_DEVICE inline void normal_of(uint32_t word0, uint32_t word1, float *a, float *b) {
  const float radius = sqrtf(-2.0f * logf((float(word0 >> 8) + 1.0f) * 5.9604644775390625e-8f));  // in (0, 1]
  const float angle = 6.28318530717958648f * uniform_of(word1);
  *a = radius * cosf(angle);
  *b = radius * sinf(angle);
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
