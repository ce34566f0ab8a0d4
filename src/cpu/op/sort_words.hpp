// SPDX-License-Identifier: Apache-2.0
// Elements of up to four bytes in the order of kernels/ranking.hpp, by whole numbers in their place: a word has what
// orders the element above its index, so that no two are equal and a comparison is one instruction.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cohort {

// Least for what comes first. Zeros are equal whatever their sign, NaN comes last.
template <bool kAscend, typename Key>
inline uint32_t sort_bits(Key key) {
  static_assert(sizeof(Key) <= sizeof(uint32_t));
  constexpr uint32_t kSign = uint32_t(1) << 31, kFlip = kAscend ? 0 : ~uint32_t(0);
  if constexpr (std::is_same_v<Key, float>) {
    const float positive_zero = key + 0.0f;
    int32_t bits;
    std::memcpy(&bits, &positive_zero, sizeof(bits));
    const uint32_t ordered = uint32_t(bits) ^ (uint32_t(bits >> 31) | kSign) ^ kFlip;
    return key == key ? ordered : ~uint32_t(0);
  } else {
    return uint32_t(int32_t(key)) ^ kSign ^ kFlip;
  }
}

template <bool kAscend, typename Key>
inline uint64_t word_of(Key key, int64_t index) {
  return uint64_t(sort_bits<kAscend>(key)) << 32 | uint64_t(index);
}
constexpr int64_t kMostWords = UINT32_MAX;  // indices and numbers of them fit
inline uint32_t index_of_word(uint64_t word) { return uint32_t(word); }

// Sorts by the bits above the index; words come with ascending indices, and each pass keeps what was before.
// `spare` has room for as many.
template <int kBits>
inline void sort_by_digits(uint64_t *words, uint64_t *spare, int64_t count) {
  constexpr int kDigits = (32 + kBits - 1) / kBits;
  constexpr uint32_t kBuckets = uint32_t(1) << kBits;
  std::array<std::array<uint32_t, kBuckets>, kDigits> starts{};
  const auto digit = [](uint64_t word, int d) { return uint32_t(word >> (32 + d * kBits)) & (kBuckets - 1); };
  for (int64_t n = 0; n < count; ++n) {
    for (int d = 0; d < kDigits; ++d) ++starts[size_t(d)][digit(words[n], d)];
  }
  uint64_t *from = words, *to = spare;
  for (int d = 0; d < kDigits; ++d) {
    auto &start = starts[size_t(d)];
    if (start[digit(from[0], d)] == count) continue;  // all alike
    uint32_t sum = 0;
    for (uint32_t &at : start) {
      const uint32_t here = at;
      at = sum;
      sum += here;
    }
    for (int64_t n = 0; n < count; ++n) to[start[digit(from[n], d)]++] = from[n];
    std::swap(from, to);
  }
  if (from != words) std::copy_n(from, count, words);
}

inline void sort_words(uint64_t *words, uint64_t *spare, int64_t count) {
  constexpr int64_t kFew = 128, kMany = 1 << 15;  // where digits pay, and long ones
  if (count <= kFew) {
    std::sort(words, words + count);
  } else if (count <= kMany) {
    sort_by_digits<8>(words, spare, count);
  } else {
    sort_by_digits<11>(words, spare, count);
  }
}

template <bool kAscend, typename KeyAt>
inline void rank_all(const KeyAt &key, int64_t count, uint64_t *words) {
  for (int64_t n = 0; n < count; ++n) words[n] = word_of<kAscend>(key(n), n);
  sort_words(words, words + count, count);
}

// Few of many: those below a limit that falls whenever there are enough of them.
template <bool kAscend, int64_t kBlock, typename KeyAt>
inline void rank_few(const KeyAt &key, int64_t count, int64_t kept, uint64_t *words) {
  const int64_t room = 2 * kept + kBlock;
  uint64_t limit = ~uint64_t(0);
  int64_t held = 0;
  const auto narrow = [&] {
    if (held <= kept) return;
    std::nth_element(words, words + kept - 1, words + held);
    limit = words[kept - 1];
    held = kept;
  };
  std::array<uint32_t, kBlock> bits;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t length = std::min(kBlock, count - begin);
    uint32_t least = ~uint32_t(0);
    for (int64_t n = 0; n < length; ++n) {
      bits[size_t(n)] = sort_bits<kAscend>(key(begin + n));
      least = std::min(least, bits[size_t(n)]);
    }
    if (least > uint32_t(limit >> 32)) continue;
    for (int64_t n = 0; n < length; ++n) {
      const uint64_t word = uint64_t(bits[size_t(n)]) << 32 | uint64_t(begin + n);
      words[held] = word;
      held += word <= limit;
    }
    if (held + kBlock > room) narrow();
  }
  narrow();
  std::sort(words, words + held);
}

// A part of many: those up to the bucket of leading bits in which the last of them lies, and of these the first.
template <bool kAscend, typename KeyAt>
inline void rank_part(const KeyAt &key, int64_t count, int64_t kept, uint64_t *words) {
  constexpr int kShift = 32 + 20;
  std::array<uint32_t, size_t(1) << 12> sizes{};
  for (int64_t n = 0; n < count; ++n) ++sizes[word_of<kAscend>(key(n), n) >> kShift];
  uint64_t last = 0;
  int64_t below = 0;
  for (; below + sizes[last] < kept; ++last) below += sizes[last];
  int64_t held = 0;
  for (int64_t n = 0; n < count; ++n) {
    words[held] = word_of<kAscend>(key(n), n);
    held += words[held] >> kShift <= last;
  }
  // The order of indices stays, which the sort builds on.
  uint64_t *const spare = words + held;
  uint64_t *const end = std::copy_if(words, words + held, spare, [&](uint64_t word) { return word >> kShift == last; });
  std::nth_element(spare, spare + (kept - below - 1), end);
  const uint64_t limit = spare[kept - below - 1];
  std::remove_if(words, words + held, [&](uint64_t word) { return word > limit; });
  sort_words(words, words + kept, kept);
}

// The words of the first `kept` of `count` elements, in order. `words` has room for twice `count`, at most kMostWords;
// key(n) is the n-th element.
template <bool kAscend, typename KeyAt>
inline void rank_words(const KeyAt &key, int64_t count, int64_t kept, uint64_t *words) {
  constexpr int64_t kShort = 4096;
  if (count < kShort) {
    kept <= count / 16 ? rank_few<kAscend, 16>(key, count, kept, words) : rank_all<kAscend>(key, count, words);
  } else if (kept > count / 2) {
    rank_all<kAscend>(key, count, words);
  } else {
    kept <= count / 64 ? rank_few<kAscend, 256>(key, count, kept, words) : rank_part<kAscend>(key, count, kept, words);
  }
}

}  // namespace cohort
