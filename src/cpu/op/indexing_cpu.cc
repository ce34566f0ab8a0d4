// SPDX-License-Identifier: Apache-2.0
#include "op/indexing.hpp"

#include <algorithm>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "cpu/copy_line.hpp"
#include "cpu/op/element_sum.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Reads indices of any type, clamped or wrapped into range.
class Indices {
 public:
  Indices(const TensorSpec &indices, int64_t length, IndexMode mode)
      : length_(length), mode_(mode), load_(load_indices(indices.dtype)) {}
  int64_t at(const void *indices, int64_t i) const {
    int64_t index = 0;
    load_(indices, i, &index, 1);
    return in_range(index, i);
  }
  // Calls fn(first, count, indices from the first on) for all in [begin, end), in order, in blocks.
  template <typename Fn>
  void for_each(const void *indices, int64_t begin, int64_t end, Fn &&fn) const {
    int64_t block[kPointwiseBlock];
    for (int64_t first = begin; first < end; first += kPointwiseBlock) {
      const int64_t count = std::min(kPointwiseBlock, end - first);
      load_(indices, first, block, count);
      for (int64_t i = 0; i < count; ++i) block[i] = in_range(block[i], first + i);
      fn(first, count, block);
    }
  }

 private:
  int64_t in_range(int64_t index, int64_t i) const {
    if (index >= 0 && index < length_) return index;
    if (mode_ == IndexMode::kRaise) {
      throw Error(Code::kExecution, text("indices[", i, "]: expected 0 to ", length_ - 1, ", found ", index));
    }
    if (mode_ == IndexMode::kWrap) return (index % length_ + length_) % length_;
    return index < 0 ? 0 : length_ - 1;
  }

  const int64_t length_;
  const IndexMode mode_;
  const LoadBlock load_;
};

template <typename T>
void accumulate(T *to, const T *from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = element_sum(to[i], from[i]);
}

template <template <typename> class K>
std::unique_ptr<Kernel> make_typed(StepSpec &spec) {
  return dispatch(spec.outputs[0].dtype,
                  [&](auto t) -> std::unique_ptr<Kernel> { return std::make_unique<K<decltype(t)>>(spec); });
}

// Copies row rows[i] of `from` to row i of `to`, both of `bytes`. Without a call for each row, which would take as
// long as copying a short row.
struct CopyRows {
  static void run(const char *from, char *to, const int64_t *rows, int64_t count, size_t bytes) {
    if (bytes >= 512 && bytes <= 131072) {
      for (int64_t i = 0; i < count; ++i) CopyLine::run(from + size_t(rows[i]) * bytes, to + size_t(i) * bytes, bytes);
    } else if (bytes >= 64 && bytes < 512) {
      by_parts<64>(from, to, rows, count, bytes);
    } else if (bytes >= 16 && bytes < 64) {
      by_parts<16>(from, to, rows, count, bytes);
    } else if (bytes == 4) {
      for (int64_t i = 0; i < count; ++i) std::memcpy(to + size_t(i) * 4, from + size_t(rows[i]) * 4, 4);
    } else {
      for (int64_t i = 0; i < count; ++i) std::memcpy(to + size_t(i) * bytes, from + size_t(rows[i]) * bytes, bytes);
    }
  }

 private:
  // The last vector of a row may overlap the one before it.
  template <size_t kPart>
  static void by_parts(const char *from, char *to, const int64_t *rows, int64_t count, size_t bytes) {
    using Vector [[gnu::vector_size(kPart), gnu::aligned(1), gnu::may_alias]] = char;
    const size_t last = bytes - kPart;
    for (int64_t i = 0; i < count; ++i, to += bytes) {
      const char *const row = from + size_t(rows[i]) * bytes;
      for (size_t at = 0; at < last; at += kPart) {
        *reinterpret_cast<Vector *>(to + at) = *reinterpret_cast<const Vector *>(row + at);
        asm volatile("" ::: "memory");  // keeps the compiler from making a call of memcpy of this loop
      }
      *reinterpret_cast<Vector *>(to + last) = *reinterpret_cast<const Vector *>(row + last);
    }
  }
};

// a as (outer, length, inner), output as (outer, indices, inner).
template <typename T, bool kBackward>
class TakeKernel final : public Kernel {
 public:
  explicit TakeKernel(const StepSpec &spec)
      : whole_(kBackward ? spec.outputs[0].shape : spec.inputs[0].shape),
        axis_(normalize_axis(spec.attrs_as<TakeAttrs>().axis, whole_.rank(), "take")),
        outer_(whole_.size(0, axis_)),
        length_(whole_[axis_]),
        inner_(whole_.size(axis_ + 1, whole_.rank())),
        count_(spec.inputs[1].shape.size()),
        indices_(spec.inputs[1], length_, spec.attrs_as<TakeAttrs>().mode) {
    if (length_ == 0 && count_ > 0)
      throw Error(Code::kShape, text("a: expected elements to take from, found ", whole_), "a");
  }
  void run(const Args &args, const Lane &lane) const override {
    if constexpr (kBackward) {
      std::memset(args.outputs[0], 0, size_t(whole_.size()) * sizeof(T));
      indices_.for_each(args.inputs[1], 0, count_, [&](int64_t first, int64_t count, const int64_t *indices) {
        for (int64_t i = 0; i < count; ++i) {
          for (int64_t o = 0; o < outer_; ++o) {
            accumulate(args.out<T>(0) + (o * length_ + indices[i]) * inner_,
                       args.in<T>(0) + (o * count_ + first + i) * inner_, inner_);
          }
        }
      });
    } else {
      static const auto copy_rows = best_version<CopyRows>();
      const size_t bytes = size_t(inner_) * sizeof(T);
      const int64_t grain = std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(inner_ * outer_, 1));
      parallel_for(lane, count_, grain, [&](int64_t begin, int64_t end) {
        indices_.for_each(args.inputs[1], begin, end, [&](int64_t first, int64_t count, const int64_t *indices) {
          for (int64_t o = 0; o < outer_; ++o) {
            copy_rows(args.in<char>(0) + size_t(o * length_) * bytes,
                      args.out<char>(0) + size_t(o * count_ + first) * bytes, indices, count, bytes);
          }
        });
      });
    }
  }

 private:
  const Shape whole_;
  const int axis_;
  const int64_t outer_, length_, inner_, count_;
  const Indices indices_;
};
template <typename T>
using Take = TakeKernel<T, false>;
template <typename T>
using TakeBackward = TakeKernel<T, true>;

// data as (outer, length, inner), index and output as (outer, inner).
template <typename T, bool kBackward>
class PickKernel final : public Kernel {
 public:
  explicit PickKernel(const StepSpec &spec)
      : PickKernel(spec, kBackward ? spec.outputs[0].shape : spec.inputs[0].shape, spec.attrs_as<PickAttrs>()) {}
  void run(const Args &args, const Lane &) const override {
    if (kBackward) std::memset(args.outputs[0], 0, size_t(outer_ * length_ * inner_) * sizeof(T));
    for (int64_t i = 0; i < outer_ * inner_; ++i) {
      const int64_t at = (i / inner_ * length_ + indices_.at(args.inputs[1], i)) * inner_ + i % inner_;
      if constexpr (kBackward) {
        args.out<T>(0)[at] = args.in<T>(0)[i];
      } else {
        args.out<T>(0)[i] = args.in<T>(0)[at];
      }
    }
  }

 private:
  PickKernel(const StepSpec &spec, const Shape &whole, const PickAttrs &a)
      : outer_(a.axis ? whole.size(0, axis_of(whole, a)) : 1),
        length_(a.axis ? whole[axis_of(whole, a)] : whole.size()),
        inner_(a.axis ? whole.size(axis_of(whole, a) + 1, whole.rank()) : 1),
        indices_(spec.inputs[1], length_, a.mode) {
    if (length_ == 0) throw Error(Code::kShape, text("data: expected elements to pick from, found ", whole), "data");
  }
  static int axis_of(const Shape &whole, const PickAttrs &a) { return normalize_axis(*a.axis, whole.rank(), "pick"); }
  const int64_t outer_, length_, inner_;
  const Indices indices_;
};
template <typename T>
using Pick = PickKernel<T, false>;
template <typename T>
using PickBackward = PickKernel<T, true>;

template <typename T>
class OneHot final : public Kernel {
 public:
  explicit OneHot(const StepSpec &spec)
      : attrs_(spec.attrs_as<OneHotAttrs>()),
        count_(spec.inputs[0].shape.size()),
        load_(load_indices(spec.inputs[0].dtype)) {}
  void run(const Args &args, const Lane &) const override {
    T *const out = args.out<T>(0);
    std::fill_n(out, count_ * attrs_.depth, cast_element<T>(attrs_.off_value));
    for (int64_t i = 0; i < count_; ++i) {
      int64_t index = 0;
      load_(args.inputs[0], i, &index, 1);
      if (index >= 0 && index < attrs_.depth) out[i * attrs_.depth + index] = cast_element<T>(attrs_.on_value);
    }
  }

 private:
  const OneHotAttrs attrs_;
  const int64_t count_;
  const LoadBlock load_;
};

// Takes one element of each row: for fill_element_0index, whose inputs are rows, numbers and indices; or writes a 1
// among zeros for _onehot_encode, whose first input are the indices.
template <typename T>
class FillElement final : public Kernel {
 public:
  explicit FillElement(const StepSpec &spec)
      : fills_(spec.inputs.size() == 3),
        rows_(spec.outputs[0].shape[0]),
        cols_(spec.outputs[0].shape[1]),
        load_(load_indices(spec.inputs[fills_ ? 2 : 0].dtype)) {}
  void run(const Args &args, const Lane &) const override {
    T *const out = args.out<T>(0);
    if (!fills_) {
      std::fill_n(out, rows_ * cols_, T(0));
    } else if (args.outputs[0] != args.inputs[0]) {
      std::copy_n(args.in<T>(0), rows_ * cols_, out);
    }
    for (int64_t row = 0; row < rows_; ++row) {
      int64_t index = 0;
      load_(args.inputs[fills_ ? 2 : 0], row, &index, 1);
      if (index >= 0 && index < cols_) out[row * cols_ + index] = fills_ ? args.in<T>(1)[row] : T(1);
    }
  }

 private:
  const bool fills_;
  const int64_t rows_, cols_;
  const LoadBlock load_;
};

// An element of x where the condition holds, else of y; null stands for zeros.
template <typename T>
struct SelectLoop {
  static void run(const double *condition, const T *x, const T *y, T *out, int64_t count) {
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) out[i] = condition[i] != 0 ? (x ? x[i] : T()) : (y ? y[i] : T());
  }
};

// The condition has the shape of x, or one number for each row of it.
template <typename T, bool kBackward>
class WhereKernel final : public Kernel {
 public:
  explicit WhereKernel(const StepSpec &spec)
      : count_(spec.inputs[kBackward ? 0 : 1].shape.size()),
        condition_(spec.inputs[kBackward ? 1 : 0]),
        width_(condition_.shape.size() > 0 ? count_ / condition_.shape.size() : 1),
        load_(load_block(condition_.dtype, Dtype::kFloat64)) {}
  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, condition_.shape.size(), std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(width_, 1)),
                 [&](int64_t begin, int64_t end) {
                   double block[kPointwiseBlock];
                   for (int64_t first = begin; first < end; first += kPointwiseBlock) {
                     const int64_t count = std::min(kPointwiseBlock, end - first);
                     load_(args.inputs[kBackward ? 1 : 0], first, block, count);
                     if (width_ == 1) {
                       each(args, first, block, count);
                     } else {
                       for (int64_t k = 0; k < count; ++k) row(args, first + k, block[k] != 0);
                     }
                   }
                 });
  }

 private:
  static void each(const Args &args, int64_t first, const double *block, int64_t count) {
    static const auto select = best_version<SelectLoop<T>>();
    if constexpr (kBackward) {
      const T *const head = args.in<T>(0) + first;
      T *const x = args.out<T>(0), *const y = args.out<T>(1);
      // Either gradient may share memory with the head gradient: the other one is computed first.
      const bool y_first = y && y != args.inputs[0];
      if (y_first) select(block, nullptr, head, y + first, count);
      if (x) select(block, head, nullptr, x + first, count);
      if (y && !y_first) select(block, nullptr, head, y + first, count);
    } else {
      select(block, args.in<T>(1) + first, args.in<T>(2) + first, args.out<T>(0) + first, count);
    }
  }
  void row(const Args &args, int64_t row, bool holds) const {
    for (int64_t i = row * width_; i < (row + 1) * width_; ++i) {
      if constexpr (kBackward) {
        const T head = args.in<T>(0)[i];
        if (T *const x = args.out<T>(0)) x[i] = holds ? head : T();
        if (T *const y = args.out<T>(1)) y[i] = holds ? T() : head;
      } else {
        args.out<T>(0)[i] = args.in<T>(holds ? 1 : 2)[i];
      }
    }
  }
  const int64_t count_;
  const TensorSpec condition_;
  const int64_t width_;
  const LoadBlock load_;
};
template <typename T>
using Where = WhereKernel<T, false>;
template <typename T>
using WhereBackward = WhereKernel<T, true>;

COHORT_KERNEL_BY(cpu, take, make_typed<Take>);
COHORT_KERNEL_BY(cpu, _backward_take, make_typed<TakeBackward>);
COHORT_KERNEL_BY(cpu, pick, make_typed<Pick>);
COHORT_KERNEL_BY(cpu, batch_take, make_typed<Pick>);
COHORT_KERNEL_BY(cpu, _backward_pick, make_typed<PickBackward>);
COHORT_KERNEL_BY(cpu, one_hot, make_typed<OneHot>);
COHORT_KERNEL_BY(cpu, fill_element_0index, make_typed<FillElement>);
COHORT_KERNEL_BY(cpu, _onehot_encode, make_typed<FillElement>);
COHORT_KERNEL_BY(cpu, where, make_typed<Where>);
COHORT_KERNEL_BY(cpu, _backward_where, make_typed<WhereBackward>);

}  // namespace
}  // namespace cohort
