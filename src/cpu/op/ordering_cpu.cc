// SPDX-License-Identifier: Apache-2.0
#include "op/ordering.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "cpu/op/partial_sort.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/op/sort_words.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Loops over elements of a line that lie `stride` apart; contiguous ones are vectorised.
template <typename Fn>
void each_of_line(int64_t stride, int64_t count, const Fn &fn) {
  if (stride == 1) {
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t n = 0; n < count; ++n) fn(n, n);
  } else {
    for (int64_t n = 0; n < count; ++n) fn(n, n * stride);
  }
}

template <typename T>
using KeyOf = std::conditional_t<kIsHalf<T>, float, T>;

template <typename T, bool kAscend>
struct LoadWords {
  static void run(const void *line, int64_t stride, int64_t first, int64_t count, uint64_t *words) {
    const T *const x = static_cast<const T *>(line) + first * stride;
    each_of_line(stride, count,
                 [=](int64_t n, int64_t at) { words[n] = word_of<kAscend>(KeyOf<T>(x[at]), first + n); });
  }
};

// Whether elements can be restored from the sorted bits.
template <typename T, bool kAscend>
struct LoadBits {
  using Key = KeyOf<T>;
  using Bits = SortBits<Key>;
  static bool run(const T *x, int64_t stride, int64_t count, Bits *bits) {
    Bits lost = 0;
    each_of_line(stride, count, [&](int64_t n, int64_t at) {
      const Key key(x[at]);
      const Bits sorted = sort_bits<kAscend>(key);
      bits[n] = sorted;
      if constexpr (std::is_floating_point_v<Key>) lost |= as_bits(key_of_bits<kAscend, Key>(sorted)) ^ as_bits(key);
    });
    return lost == 0;
  }

 private:
  static Bits as_bits(Key key) {
    Bits bits;
    std::memcpy(&bits, &key, sizeof(bits));
    return bits;
  }
};
template <typename T, bool kAscend>
struct StoreBits {
  static void run(const SortBits<KeyOf<T>> *bits, int64_t stride, int64_t count, T *y) {
    each_of_line(stride, count, [=](int64_t n, int64_t at) { y[at] = T(key_of_bits<kAscend, KeyOf<T>>(bits[n])); });
  }
};

// Sorts lines of an array, each in scratch memory of its thread: as words; as pairs of an element and its index, if
// both together do not fit into a word; or, where only elements are requested and most of them, as the bits of
// elements.
template <typename T>
class Order final : public Kernel {
 public:
  explicit Order(StepSpec &spec)
      : attrs_(spec.attrs_as<OrderAttrs>()),
        axis_(ordered_axis(attrs_, spec.inputs[0].shape)),
        index_output_(attrs_.ret_typ == OrderAttrs::Result::kBoth ? 1 : 0),
        store_index_(store_block(Dtype::kInt64, attrs_.ret_typ == OrderAttrs::Result::kValue
                                                    ? Dtype::kInt64
                                                    : spec.outputs[size_t(index_output_)].dtype)),
        saves_(spec.keep_for_backward && attrs_.gives_values()),
        bits_alone_(network_ && attrs_.ret_typ == OrderAttrs::Result::kValue && !saves_ && axis_.length <= kMostBits &&
                    axis_.kept > axis_.length / 16) {
    piece_bytes_ = axis_.length <= kMostWords && sizeof(Key) <= sizeof(uint32_t)
                       ? size_t(WordRanks::room(axis_.length)) * sizeof(uint64_t)
                       : size_t(axis_.length) * sizeof(Pair);
    if (bits_alone_) {
      const int64_t bits = axis_.length + SortNetwork<Bits>::room(axis_.length);
      piece_bytes_ = std::max(piece_bytes_, size_t(bits) * sizeof(Bits));
    }
    piece_bytes_ = (piece_bytes_ + kAlignment - 1) / kAlignment * kAlignment;
    spec.scratch_bytes = piece_bytes_ * size_t(spec.num_threads);
    if (saves_) spec.saved_bytes = size_t(axis_.outer * axis_.kept * axis_.inner) * sizeof(int64_t);
  }
  void run(const Args &args, const Lane &lane) const override {
    const int64_t lines = axis_.outer * axis_.inner;
    if (attrs_.ret_typ == OrderAttrs::Result::kMask) {
      std::fill_n(args.out<T>(0), lines * axis_.length, T());
    }
    const int64_t grain = std::max<int64_t>(1, kExpensiveGrain / std::max<int64_t>(axis_.length, 1));
    parallel_ranges(lane, lines, grain, [&](int64_t range, int64_t begin, int64_t end) {
      char *const piece = static_cast<char *>(args.scratch) + size_t(range) * piece_bytes_;
      for (int64_t line = begin; line < end; ++line) order(args, line / axis_.inner, line % axis_.inner, piece);
    });
  }

 private:
  using Key = KeyOf<T>;
  using Pair = Ranked<Key>;
  using Bits = SortBits<Key>;
  static constexpr size_t kAlignment = SortNetwork<Bits>::kAlignment;
  static constexpr int64_t kMostBits = 1 << 14;

  void order(const Args &args, int64_t o, int64_t i, char *piece) const {
    const T *const x = args.in<T>(0) + o * axis_.length * axis_.inner + i;
    if (bits_alone_) {
      Bits *const room = reinterpret_cast<Bits *>(piece), *const bits = room + SortNetwork<Bits>::room(axis_.length);
      if (load_bits_(x, axis_.inner, axis_.length, bits)) {
        network_.sort(bits, axis_.length, room);
        return store_bits_(bits, axis_.inner, axis_.kept, args.out<T>(0) + o * axis_.kept * axis_.inner + i);
      }
    }
    if constexpr (sizeof(Key) <= sizeof(uint32_t)) {
      if (axis_.length <= kMostWords) {
        uint64_t *const words = reinterpret_cast<uint64_t *>(piece);
        words_.rank({load_words_, x, axis_.inner}, axis_.length, axis_.kept, words);
        return write(args, x, o, i, [=](int64_t n) { return int64_t(index_of_word(words[n])); });
      }
    }
    Pair *const pairs = reinterpret_cast<Pair *>(piece);
    for (int64_t n = 0; n < axis_.length; ++n) pairs[n] = {Key(x[n * axis_.inner]), n};
    rank(attrs_.is_ascend, pairs, axis_.length, axis_.kept);
    write(args, x, o, i, [=](int64_t n) { return pairs[n].index; });
  }

  template <typename IndexAt>
  void write(const Args &args, const T *x, int64_t o, int64_t i, const IndexAt &index_at) const {
    const int64_t first = o * axis_.kept * axis_.inner + i, inner = axis_.inner;
    if (attrs_.ret_typ == OrderAttrs::Result::kMask) {
      T *const mask = args.out<T>(0) + o * axis_.length * inner + i;
      for (int64_t n = 0; n < axis_.kept; ++n) mask[index_at(n) * inner] = T(1);
      return;
    }
    T *const values = attrs_.gives_values() ? args.out<T>(0) : nullptr;
    void *const indices = attrs_.ret_typ == OrderAttrs::Result::kValue ? nullptr : args.outputs[index_output_];
    for (int64_t n = 0; n < axis_.kept && values; ++n) values[first + n * inner] = x[index_at(n) * inner];
    if (saves_) {
      int64_t *const saved = static_cast<int64_t *>(args.saved) + first;
      for (int64_t n = 0; n < axis_.kept; ++n) saved[n * inner] = index_at(n);
    }
    std::array<int64_t, 256> block;
    for (int64_t n = 0; n < axis_.kept && indices; n += int64_t(block.size())) {
      const int64_t length = std::min(int64_t(block.size()), axis_.kept - n);
      for (int64_t k = 0; k < length; ++k) block[size_t(k)] = index_at(n + k);
      if (inner == 1) {
        store_index_(block.data(), indices, first + n, length);
      } else {
        for (int64_t k = 0; k < length; ++k) store_index_(&block[size_t(k)], indices, first + (n + k) * inner, 1);
      }
    }
  }

  template <template <typename, bool> typename Loop>
  auto version() const {
    return attrs_.is_ascend ? best_version<Loop<T, true>>() : best_version<Loop<T, false>>();
  }

  const OrderAttrs attrs_;
  const OrderedAxis axis_;
  const int index_output_;
  const StoreBlock store_index_;
  const bool saves_;
  const WordRanks words_;
  const SortNetwork<Bits> network_;
  const bool bits_alone_;
  const decltype(WordLine::load) load_words_ = version<LoadWords>();
  bool (*const load_bits_)(const T *x, int64_t stride, int64_t count, Bits *bits) = version<LoadBits>();
  void (*const store_bits_)(const Bits *bits, int64_t stride, int64_t count, T *y) = version<StoreBits>();
  size_t piece_bytes_;
};

// Adds each head gradient to the element that it came from.
template <typename T>
class OrderBackward final : public Kernel {
 public:
  explicit OrderBackward(const StepSpec &spec)
      : axis_(ordered_axis(spec.attrs_as<OrderAttrs>(), spec.outputs[0].shape)) {}
  void run(const Args &args, const Lane &lane) const override {
    const int64_t width = axis_.inner * axis_.length;
    parallel_for(lane, axis_.outer, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(width, 1)),
                 [&](int64_t begin, int64_t end) {
                   std::fill_n(args.out<T>(0) + begin * width, (end - begin) * width, T());
                   for (int64_t o = begin; o < end; ++o) {
                     const int64_t first = o * axis_.kept * axis_.inner;
                     for (int64_t n = 0; n < axis_.kept * axis_.inner; ++n) {
                       const int64_t index = static_cast<const int64_t *>(args.saved)[first + n];
                       args.out<T>(0)[o * width + index * axis_.inner + n % axis_.inner] = args.in<T>(0)[first + n];
                     }
                   }
                 });
  }

 private:
  const OrderedAxis axis_;
};

std::unique_ptr<Kernel> make_order(StepSpec &spec) {
  return dispatch(spec.inputs[0].dtype,
                  [&](auto t) -> std::unique_ptr<Kernel> { return std::make_unique<Order<decltype(t)>>(spec); });
}
std::unique_ptr<Kernel> make_order_backward(StepSpec &spec) {
  return dispatch(spec.outputs[0].dtype, [&](auto t) -> std::unique_ptr<Kernel> {
    return std::make_unique<OrderBackward<decltype(t)>>(spec);
  });
}

COHORT_KERNEL_BY(cpu, topk, make_order);
COHORT_KERNEL_BY(cpu, sort, make_order);
COHORT_KERNEL_BY(cpu, argsort, make_order);
COHORT_KERNEL_BY(cpu, _backward_topk, make_order_backward);
COHORT_KERNEL_BY(cpu, _backward_sort, make_order_backward);

}  // namespace
}  // namespace cohort
