// SPDX-License-Identifier: Apache-2.0
#include "op/ordering.hpp"

#include <algorithm>

#include "base/dtype_cast.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/op/ranked.hpp"
#include "cpu/op/sort_words.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Lines of an array, each sorted as words, or pairs of an element and its index, in a piece of scratch that its thread
// owns.
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
        saves_(spec.keep_for_backward && attrs_.gives_values()) {
    spec.scratch_bytes = size_t(axis_.length) * kItemBytes * size_t(spec.num_threads);
    if (saves_) spec.saved_bytes = size_t(axis_.outer * axis_.kept * axis_.inner) * sizeof(int64_t);
  }
  void run(const Args &args, const Lane &lane) const override {
    const int64_t lines = axis_.outer * axis_.inner;
    if (attrs_.ret_typ == OrderAttrs::Result::kMask) {
      std::fill_n(args.out<T>(0), lines * axis_.length, T());
    }
    const int64_t grain = std::max<int64_t>(1, kExpensiveGrain / std::max<int64_t>(axis_.length, 1));
    parallel_ranges(lane, lines, grain, [&](int64_t range, int64_t begin, int64_t end) {
      char *const items = static_cast<char *>(args.scratch) + size_t(range) * size_t(axis_.length) * kItemBytes;
      for (int64_t line = begin; line < end; ++line) {
        const int64_t o = line / axis_.inner, i = line % axis_.inner;
        const T *const x = args.in<T>(0) + o * axis_.length * axis_.inner + i;
        if constexpr (sizeof(Key) <= sizeof(uint32_t)) {
          if (axis_.length <= kMostWords) {
            write(args, order_words(x, reinterpret_cast<uint64_t *>(items)), o, i);
            continue;
          }
        }
        Pair *const pairs = reinterpret_cast<Pair *>(items);
        for (int64_t n = 0; n < axis_.length; ++n) pairs[n] = {Key(x[n * axis_.inner]), n};
        rank(attrs_.is_ascend, pairs, axis_.length, axis_.kept);
        write(args, pairs, o, i);
      }
    });
  }

 private:
  using Key = std::conditional_t<kIsHalf<T>, float, T>;
  using Pair = Ranked<Key>;
  static constexpr size_t kItemBytes = std::max(sizeof(Pair), 2 * sizeof(uint64_t));

  const uint64_t *order_words(const T *x, uint64_t *words) const {
    const auto order = [&](auto ascend, auto key) {
      rank_words<decltype(ascend)::value>(key, axis_.length, axis_.kept, words);
    };
    const auto by_stride = [&](auto ascend) {
      if (axis_.inner == 1) return order(ascend, [x](int64_t n) { return Key(x[n]); });
      return order(ascend, [x, stride = axis_.inner](int64_t n) { return Key(x[n * stride]); });
    };
    attrs_.is_ascend ? by_stride(std::true_type()) : by_stride(std::false_type());
    return words;
  }

  static int64_t index_of(const Pair &pair) { return pair.index; }
  static int64_t index_of(uint64_t word) { return index_of_word(word); }

  template <typename Item>
  void write(const Args &args, const Item *items, int64_t o, int64_t i) const {
    const bool mask = attrs_.ret_typ == OrderAttrs::Result::kMask;
    T *const values = attrs_.gives_values() ? args.out<T>(0) : nullptr;
    const T *const from = args.in<T>(0) + o * axis_.length * axis_.inner + i;
    void *const indices = mask || attrs_.ret_typ == OrderAttrs::Result::kValue ? nullptr : args.outputs[index_output_];
    for (int64_t n = 0; n < axis_.kept; ++n) {
      const int64_t to = (o * axis_.kept + n) * axis_.inner + i;
      const int64_t index = index_of(items[n]);
      if (mask) args.out<T>(0)[(o * axis_.length + index) * axis_.inner + i] = T(1);
      if (values) values[to] = from[index * axis_.inner];
      if (indices) store_index_(&index, indices, to, 1);
      if (saves_) static_cast<int64_t *>(args.saved)[to] = index;
    }
  }

  const OrderAttrs attrs_;
  const OrderedAxis axis_;
  const int index_output_;
  const StoreBlock store_index_;
  const bool saves_;
};

// Each head gradient goes where its element came from.
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
