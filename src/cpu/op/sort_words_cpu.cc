// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/sort_words.hpp"

#include <algorithm>
#include <array>

#include "cpu/simd.hpp"

namespace cohort {
namespace {

constexpr int64_t kChunk = 1024;             // words of a line that are processed in the cache
constexpr int64_t kMostInNetwork = 1 << 11;  // above it radix sort is faster
constexpr int64_t kAlignWords = SortNetwork<uint64_t>::kAlignment / sizeof(uint64_t);

// Radix sort by the bits above the index; words come with ascending indices, and each pass is stable. `spare` has
// room for as many words. Count holds `count`.
template <int kBits, typename Count>
void sort_by_digits(uint64_t *words, uint64_t *spare, int64_t count) {
  constexpr int kDigits = (32 + kBits - 1) / kBits;
  constexpr uint32_t kBuckets = uint32_t(1) << kBits;
  constexpr int kTogether = 4;  // digits that are counted together, in a vector
  static_assert(kDigits <= kTogether);
  std::array<std::array<Count, kTogether>, kBuckets> starts{};
  const auto digit = [](uint64_t word, int d) { return uint32_t(word >> (32 + d * kBits)) & (kBuckets - 1); };
  for (int64_t n = 0; n < count; ++n) {
    for (int d = 0; d < kDigits; ++d) ++starts[digit(words[n], d)][size_t(d)];
  }
  std::array<bool, kDigits> all_alike;
  for (int d = 0; d < kDigits; ++d) all_alike[size_t(d)] = starts[digit(words[0], d)][size_t(d)] == Count(count);
  std::array<Count, kTogether> sum{};
  for (auto &at : starts) {
    for (size_t d = 0; d < kTogether; ++d) {
      const Count here = at[d];
      at[d] = sum[d];
      sum[d] = Count(sum[d] + here);
    }
  }
  uint64_t *from = words, *to = spare;
  for (int d = 0; d < kDigits; ++d) {
    if (all_alike[size_t(d)]) continue;
    for (int64_t n = 0; n < count; ++n) to[starts[digit(from[n], d)][size_t(d)]++] = from[n];
    std::swap(from, to);
  }
  if (from != words) std::copy_n(from, count, words);
}

// Selects few of many: collects words below a limit, which is lowered whenever enough are collected. Returns how many
// are left, in no particular order.
template <int64_t kBlock>
struct FewOf {
  static int64_t run(const WordLine &line, int64_t count, int64_t kept, uint64_t *words) {
    const int64_t room = 2 * kept + kBlock;
    uint64_t limit = ~uint64_t(0);
    int64_t held = 0;
    const auto narrow = [&] {
      if (held <= kept) return;
      std::nth_element(words, words + kept - 1, words + held);
      limit = words[kept - 1];
      held = kept;
    };
    std::array<uint64_t, kChunk> chunk;
    for (int64_t first = 0; first < count; first += kChunk) {
      const int64_t end = std::min(kChunk, count - first);
      line(first, end, chunk.data());
      for (int64_t begin = 0; begin < end; begin += kBlock) {
        const uint64_t *const block = chunk.data() + begin;
        const int64_t length = std::min(kBlock, end - begin);
        uint64_t least = ~uint64_t(0);
        for (int64_t n = 0; n < length; ++n) least = std::min(least, block[n]);
        if (least > limit) continue;
        for (int64_t n = 0; n < length; ++n) {
          words[held] = block[n];
          held += block[n] <= limit;
        }
        if (held + kBlock > room) narrow();
      }
    }
    narrow();
    return held;
  }
};

}  // namespace

WordRanks::WordRanks() : few_(best_version<FewOf<256>>()), fewer_(best_version<FewOf<16>>()) {}

int64_t WordRanks::room(int64_t count) {
  const int64_t sorted = std::min(count, kMostInNetwork);
  return count + std::max(count, SortNetwork<uint64_t>::room(sorted) + kAlignWords);
}

// The memory behind the words is used as scratch, here and below.
void WordRanks::sort(uint64_t *words, int64_t count) const {
  if (!network_ || count > kMostInNetwork) {
    std::sort(words, words + count);
    return;
  }
  uint64_t *const behind = words + count;
  const size_t over = reinterpret_cast<uintptr_t>(behind) % SortNetwork<uint64_t>::kAlignment / sizeof(uint64_t);
  network_.sort(words, count, behind + (over ? kAlignWords - int64_t(over) : 0));
}

// Sorts words that come with ascending indices.
void WordRanks::sort_ascending(uint64_t *words, int64_t count) const {
  constexpr int64_t kFew = 128, kSome = 512;  // from which counts radix sort pays, with short and with long digits
  // A network takes as long as for the next power of two.
  const int64_t in_network = SortNetwork<uint64_t>::room(count);
  const bool by_network = network_ && in_network <= kMostInNetwork && 5 * count >= 3 * in_network;
  if (count <= kFew || by_network) {
    sort(words, count);
  } else if (count <= kSome) {
    sort_by_digits<8, uint16_t>(words, words + count, count);
  } else if (count <= UINT16_MAX) {
    sort_by_digits<11, uint16_t>(words, words + count, count);
  } else {
    sort_by_digits<11, uint32_t>(words, words + count, count);
  }
}

// Selects a larger part of many: the words up to the bucket of leading bits that contains the last of them, then the
// first of these.
void WordRanks::rank_part(const WordLine &line, int64_t count, int64_t kept, uint64_t *words) const {
  constexpr int kShift = 32 + 20;
  std::array<uint32_t, size_t(1) << 12> sizes{};
  std::array<uint64_t, kChunk> chunk;
  const auto each_word = [&](const auto &body) {
    for (int64_t first = 0; first < count; first += kChunk) {
      const int64_t length = std::min(kChunk, count - first);
      line(first, length, chunk.data());
      for (int64_t n = 0; n < length; ++n) body(chunk[size_t(n)]);
    }
  };
  each_word([&](uint64_t word) { ++sizes[word >> kShift]; });
  uint64_t last = 0;
  int64_t below = 0;
  for (; below + sizes[last] < kept; ++last) below += sizes[last];
  int64_t held = 0;
  each_word([&](uint64_t word) {
    words[held] = word;
    held += word >> kShift <= last;
  });
  // Keeps indices in ascending order, on which the radix sort relies.
  uint64_t *const spare = words + held;
  uint64_t *const end = std::copy_if(words, words + held, spare, [&](uint64_t word) { return word >> kShift == last; });
  std::nth_element(spare, spare + (kept - below - 1), end);
  const uint64_t limit = spare[kept - below - 1];
  std::remove_if(words, words + held, [&](uint64_t word) { return word > limit; });
  sort_ascending(words, kept);
}

void WordRanks::rank(const WordLine &line, int64_t count, int64_t kept, uint64_t *words) const {
  constexpr int64_t kShort = 4096;
  if (kept <= count / (count < kShort ? 16 : 64)) {
    sort(words, (count < kShort ? fewer_ : few_)(line, count, kept, words));
  } else if (count < kShort || kept > count / 2) {
    line(0, count, words);
    sort_ascending(words, count);
  } else {
    rank_part(line, count, kept, words);
  }
}

}  // namespace cohort
