// SPDX-License-Identifier: Apache-2.0
// Sorts elements in the order of kernels/ranking.hpp by integers that are ordered as the elements are. For elements
// of up to four bytes, a 64-bit word holds these bits above the index, so that no two words are equal and a
// comparison is one instruction.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cpu/op/sort_network.hpp"

namespace cohort {

template <typename Key>
using SortBits = std::conditional_t<(sizeof(Key) > sizeof(uint32_t)), uint64_t, uint32_t>;

// The bit operations that map an integer, or the bits of a float, to unsigned bits in the order of the keys.
template <bool kAscend, typename Key>
struct BitOrder {
  using Bits = SortBits<Key>;
  using Signed = std::make_signed_t<Bits>;
  static constexpr int kLast = 8 * int(sizeof(Bits)) - 1;
  static constexpr Bits kSign = Bits(1) << kLast, kFlip = kAscend ? 0 : Bits(~Bits(0));
};

// The bits of a key; the first in the order has the least. Zeros are equal whatever their sign, NaN comes last.
template <bool kAscend, typename Key>
inline SortBits<Key> sort_bits(Key key) {
  using O = BitOrder<kAscend, Key>;
  if constexpr (std::is_floating_point_v<Key>) {
    const Key positive_zero = key + Key(0);
    typename O::Signed bits;
    std::memcpy(&bits, &positive_zero, sizeof(bits));
    const auto ordered =
        typename O::Bits(typename O::Bits(bits) ^ (typename O::Bits(bits >> O::kLast) | O::kSign) ^ O::kFlip);
    return key == key ? ordered : typename O::Bits(~typename O::Bits(0));
  } else {
    return typename O::Bits(typename O::Signed(key)) ^ O::kSign ^ O::kFlip;
  }
}

// The inverse of sort_bits(). NaN and the sign of zero are lost.
template <bool kAscend, typename Key>
inline Key key_of_bits(SortBits<Key> sorted) {
  using O = BitOrder<kAscend, Key>;
  const auto ordered = typename O::Signed(sorted ^ O::kFlip);
  if constexpr (std::is_floating_point_v<Key>) {
    const auto bits = typename O::Bits(ordered) ^ (typename O::Bits(~ordered >> O::kLast) | O::kSign);
    Key key;
    std::memcpy(&key, &bits, sizeof(key));
    return key;
  } else {
    return Key(typename O::Bits(ordered) ^ O::kSign);
  }
}

template <bool kAscend, typename Key>
inline uint64_t word_of(Key key, int64_t index) {
  return uint64_t(sort_bits<kAscend>(key)) << 32 | uint64_t(index);
}
constexpr int64_t kMostWords = UINT32_MAX;  // indices and counts must fit into 32 bits
inline uint32_t index_of_word(uint64_t word) { return uint32_t(word); }

// Computes the words of `count` elements of a line, from index `first` on.
struct WordLine {
  void (*load)(const void *x, int64_t stride, int64_t first, int64_t count, uint64_t *words);
  const void *x;
  int64_t stride;
  void operator()(int64_t first, int64_t count, uint64_t *words) const { load(x, stride, first, count, words); }
};

class WordRanks {
 public:
  WordRanks();
  static int64_t room(int64_t count);  // words of memory for ranking `count` elements
  // Puts the words of the first `kept` of `count` elements, in order, at the beginning of `memory`. At most
  // kMostWords elements.
  void rank(const WordLine &line, int64_t count, int64_t kept, uint64_t *words) const;

 private:
  void rank_part(const WordLine &line, int64_t count, int64_t kept, uint64_t *words) const;
  void sort_ascending(uint64_t *words, int64_t count) const;
  void sort(uint64_t *words, int64_t count) const;

  const SortNetwork<uint64_t> network_;
  int64_t (*const few_)(const WordLine &line, int64_t count, int64_t kept, uint64_t *words);
  int64_t (*const fewer_)(const WordLine &line, int64_t count, int64_t kept, uint64_t *words);
};

}  // namespace cohort
