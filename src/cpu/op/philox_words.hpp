// SPDX-License-Identifier: Apache-2.0
// Blocks of the generator of base/random.hpp, many at once.
#pragma once

#include <cstdint>

#include "base/random.hpp"
#include "cpu/simd.hpp"

namespace cohort {

// Blocks first .. first + kBlocks of a stream; word w of block i is words[w][i].
struct PhiloxWords {
  static constexpr int64_t kBlocks = 64;
  uint32_t words[4][kBlocks];

  void draw(uint64_t seed, uint64_t first, uint64_t stream) {
    static const auto loop = best_version<Loop>();
    loop(this, seed, first, stream);
  }

 private:
  struct Loop {
    static void run(PhiloxWords *to, uint64_t seed, uint64_t first, uint64_t stream) {
      for (int64_t i = 0; i < kBlocks; ++i) {
        const Philox block = Philox::at(seed, first + uint64_t(i), stream);
        for (int w = 0; w < 4; ++w) to->words[w][i] = block.word[w];
      }
    }
  };
};

}  // namespace cohort
