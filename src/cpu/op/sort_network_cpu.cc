// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/sort_network.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cpu/simd.hpp"

namespace cohort {
namespace {

constexpr int64_t kSmallest = 32;  // two of the widest vectors

#ifdef COHORT_SIMD_VERSIONS
#pragma GCC diagnostic ignored "-Wpsabi"  // all functions on vectors are inlined into the two functions at the end

// Numbers run down the columns of the vectors: with V vectors, lane l has those from l * V on. So nearly all
// comparisons are between whole vectors. Runs are merged in pairs: numbers are compared from both ends of the pair,
// then at half the length of a run, at a quarter, and so on, and the smaller of two always moves to the front.
template <typename Word, int kBytes>
class Columns {
  using Vector [[gnu::vector_size(kBytes)]] = Word;
  static constexpr int kLanes = kBytes / int(sizeof(Word));
  static constexpr int kFew = 16;  // vectors that stay in registers

 public:
  static void sort(Word *words, int64_t count, Word *room) {
    const int64_t padded = SortNetwork<Word>::room(count), vectors = padded / kLanes;
    std::copy_n(words, count, room);
    std::fill_n(room + count, padded - count, Word(~Word(0)));
    Vector *const v = reinterpret_cast<Vector *>(room);
    switch (vectors) {
      case 2:
        sort_few<2>(v);
        break;
      case 4:
        sort_few<4>(v);
        break;
      case 8:
        sort_few<8>(v);
        break;
      case kFew:
        sort_few<kFew>(v);
        break;
      default:
        sort_many(v, vectors);
    }
    if (vectors >= kLanes)
      write(v, vectors, words, count);
    else
      write_few(room, vectors, words, count);
  }

 private:
  using Lanes = std::make_integer_sequence<int, kLanes>;

  static Vector least(const Vector &a, const Vector &b) { return a < b ? a : b; }
  static Vector most(const Vector &a, const Vector &b) { return a < b ? b : a; }
  static void order(Vector &a, Vector &b) {
    const Vector first = least(a, b);
    b = most(a, b);
    a = first;
  }

  template <int kMask, int... kLane>
  static Vector swapped(const Vector &v, std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(v, v, (kLane ^ kMask)...);
  }
  // Lanes with bit kHalf set come from `high`.
  template <int kHalf, int... kLane>
  static Vector halves(const Vector &low, const Vector &high, std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(low, high, (kLane & kHalf ? kLane + kLanes : kLane)...);
  }
  // Compares each lane of a vector with lane ^ kMask of another one.
  template <int kMask, int kHalf>
  static void order_lanes(Vector &a, Vector &b) {
    const Vector other_a = swapped<kMask>(b, Lanes()), other_b = swapped<kMask>(a, Lanes());
    a = halves<kHalf>(least(a, other_a), most(a, other_a), Lanes());
    b = halves<kHalf>(least(b, other_b), most(b, other_b), Lanes());
  }
  template <int kDistance>
  static void halve_lanes(Vector &v) {
    if constexpr (kDistance > 0) {
      const Vector other = swapped<kDistance>(v, Lanes());
      v = halves<kDistance>(least(v, other), most(v, other), Lanes());
      halve_lanes<kDistance / 2>(v);
    }
  }
  // Merges runs of kWidth columns, down to comparisons between neighbouring lanes.
  template <int kWidth>
  static void merge_lanes(Vector &a, Vector &b) {
    order_lanes<2 * kWidth - 1, kWidth>(a, b);
    halve_lanes<kWidth / 2>(a);
    halve_lanes<kWidth / 2>(b);
  }

  // In registers: the loops are fully unrolled, so that each vector has a constant index.
  template <int kCount>
  static void halve(Vector *v, int from = kCount / 2) {
#pragma GCC unroll 16
    for (int distance = from; distance > 0; distance /= 2) {
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        if (!(i & distance)) order(v[i], v[i + distance]);
      }
    }
  }
  template <int kCount>
  static void sort_columns(Vector *v) {
#pragma GCC unroll 16
    for (int run = 1; run < kCount; run *= 2) {
#pragma GCC unroll 16
      for (int i = 0; i < kCount; ++i) {
        if (!(i & run)) order(v[i], v[i ^ (2 * run - 1)]);
      }
      halve<kCount>(v, run / 2);
    }
  }
  template <int kCount, int kWidth>
  static void join_columns(Vector *v) {
    if constexpr (kWidth < kLanes) {
#pragma GCC unroll 16
      for (int i = 0; i < kCount / 2; ++i) merge_lanes<kWidth>(v[i], v[kCount - 1 - i]);
      halve<kCount>(v);
      join_columns<kCount, 2 * kWidth>(v);
    }
  }
  template <int kCount, typename Body>
  static void in_registers(Vector *at, Body &&body) {
    Vector v[kCount];
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) v[i] = at[i];
    body(v);
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) at[i] = v[i];
  }
  template <int kCount>
  static void sort_few(Vector *v) {
    in_registers<kCount>(v, [](Vector *few) {
      sort_columns<kCount>(few);
      join_columns<kCount, 1>(few);
    });
  }

  // Loads columns one after the other, by transposing squares.
  template <int kBit, int... kLane>
  static void exchange(Vector &a, Vector &b, std::integer_sequence<int, kLane...>) {
    const Vector first = __builtin_shufflevector(a, b, (kLane & kBit ? kLanes + (kLane ^ kBit) : kLane)...);
    b = __builtin_shufflevector(a, b, (kLane & kBit ? kLanes + kLane : kLane ^ kBit)...);
    a = first;
  }
  template <int kBit>
  static void turn(Vector *square) {
    if constexpr (kBit < kLanes) {
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        if (!(i & kBit)) exchange<kBit>(square[i], square[i + kBit], Lanes());
      }
      turn<2 * kBit>(square);
    }
  }
  static void write(Vector *v, int64_t vectors, Word *words, int64_t count) {
    for (int64_t row = 0; row < vectors; row += kLanes) {
      in_registers<kLanes>(v + row, [](Vector *square) { turn<1>(square); });
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const int64_t first = lane * vectors + row;
        if (first + kLanes <= count)
          std::memcpy(words + first, v + row + lane, sizeof(Vector));
        else if (first < count)
          std::memcpy(words + first, v + row + lane, size_t(count - first) * sizeof(Word));
      }
    }
  }
  static void write_few(const Word *room, int64_t vectors, Word *words, int64_t count) {
    for (int64_t first = 0; first < count; first += vectors, ++room) {
      const int64_t height = std::min(vectors, count - first);
      for (int64_t i = 0; i < height; ++i) words[first + i] = room[i * kLanes];
    }
  }

  // Merges in memory.
  static void halve_many(Vector *v, int64_t vectors, int64_t distance) {
    for (; distance >= 2 * kFew; distance /= 4) {  // two distances at once
      const int64_t half = distance / 2;
      for (int64_t begin = 0; begin < vectors; begin += 2 * distance) {
        for (Vector *at = v + begin; at < v + begin + half; ++at) {
          Vector a = at[0], b = at[half], c = at[distance], d = at[distance + half];
          order(a, c);
          order(b, d);
          order(a, b);
          order(c, d);
          at[0] = a;
          at[half] = b;
          at[distance] = c;
          at[distance + half] = d;
        }
      }
    }
    for (int64_t begin = 0; begin < vectors && distance == kFew; begin += 2 * kFew) {
      for (int64_t i = begin; i < begin + kFew; ++i) order(v[i], v[i + kFew]);
    }
    for (int64_t i = 0; i < vectors; i += kFew) in_registers<kFew>(v + i, [](Vector *few) { halve<kFew>(few); });
  }
  template <int kWidth>
  static void join_many_columns(Vector *v, int64_t vectors) {
    if constexpr (kWidth < kLanes) {
      for (int64_t i = 0; i < vectors / 2; ++i) merge_lanes<kWidth>(v[i], v[vectors - 1 - i]);
      halve_many(v, vectors, vectors / 2);
      join_many_columns<2 * kWidth>(v, vectors);
    }
  }
  static void sort_many(Vector *v, int64_t vectors) {
    for (int64_t i = 0; i < vectors; i += kFew) in_registers<kFew>(v + i, [](Vector *few) { sort_columns<kFew>(few); });
    for (int64_t run = kFew; run < vectors; run *= 2) {
      for (int64_t begin = 0; begin < vectors; begin += 2 * run) {
        for (int64_t i = 0; i < run; ++i) order(v[begin + i], v[begin + 2 * run - 1 - i]);
      }
      halve_many(v, vectors, run / 2);
    }
    join_many_columns<1>(v, vectors);
  }
};

template <typename Word>
COHORT_SIMD_AVX2 void sort_avx2(Word *words, int64_t count, Word *room) {
  Columns<Word, 32>::sort(words, count, room);
}
template <typename Word>
COHORT_SIMD_AVX512 void sort_avx512(Word *words, int64_t count, Word *room) {
  Columns<Word, 64>::sort(words, count, room);
}
#endif

template <typename Word>
auto best_network() {
  void (*best)(Word *, int64_t, Word *) = nullptr;
#ifdef COHORT_SIMD_VERSIONS
  if (simd_level() == Simd::kAvx2) best = sort_avx2<Word>;
  if (simd_level() == Simd::kAvx512) best = sort_avx512<Word>;
#endif
  return best;
}

}  // namespace

template <typename Word>
SortNetwork<Word>::SortNetwork() : sort_(best_network<Word>()) {}

template <typename Word>
int64_t SortNetwork<Word>::room(int64_t count) {
  int64_t room = kSmallest;
  while (room < count) room *= 2;
  return room;
}

template class SortNetwork<uint32_t>;
template class SortNetwork<uint64_t>;

}  // namespace cohort
