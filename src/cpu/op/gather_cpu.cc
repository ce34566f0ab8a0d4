// SPDX-License-Identifier: Apache-2.0
#include "op/gather.hpp"

#include <algorithm>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// The parts of an array that columns of coordinates (M, count) select, each of `width` contiguous elements.
class IndexedSlices {
 public:
  IndexedSlices(const TensorSpec &indices, const Shape &whole, bool wraps)
      : count(indices.shape.size(1, indices.shape.rank())),
        width(whole.size(int(indices.shape[0]), whole.rank())),
        lengths_(whole.begin(), whole.begin() + indices.shape[0]),
        wraps_(wraps),
        load_(load_indices(indices.dtype)) {}

  // Calls fn(part, offset of its first element in the whole) for parts [begin, end), in order.
  template <typename Fn>
  void for_each(const void *indices, int64_t begin, int64_t end, Fn &&fn) const {
    int64_t coordinates[kPointwiseBlock], offsets[kPointwiseBlock];
    for (int64_t first = begin; first < end; first += kPointwiseBlock) {
      const int64_t block = std::min(kPointwiseBlock, end - first);
      std::fill_n(offsets, block, 0);
      for (size_t axis = 0; axis < lengths_.size(); ++axis) {
        load_(indices, int64_t(axis) * count + first, coordinates, block);
        for (int64_t i = 0; i < block; ++i) {
          offsets[i] = offsets[i] * lengths_[axis] + in_range(coordinates[i], axis, first + i);
        }
      }
      for (int64_t i = 0; i < block; ++i) fn(first + i, offsets[i] * width);
    }
  }

  const int64_t count, width;

 private:
  int64_t in_range(int64_t at, size_t axis, int64_t column) const {
    const int64_t length = lengths_[axis], low = wraps_ ? -length : 0;
    if (at < low || at >= length) {
      throw Error(Code::kExecution, text("indices: expected ", low, " to ", length - 1, " along axis ", axis,
                                         ", found ", at, " in column ", column));
    }
    return at < 0 ? at + length : at;
  }
  const std::vector<int64_t> lengths_;
  const bool wraps_;
  const LoadBlock load_;
};

// Inputs: the whole array, indices. Also the backward step of scatter_nd, with a head gradient as the whole.
template <typename T, bool kWraps>
class GatherSlices final : public Kernel {
 public:
  explicit GatherSlices(const StepSpec &spec) : parts_(spec.inputs[1], spec.inputs[0].shape, kWraps) {}
  void run(const Args &args, const Lane &lane) const override {
    const int64_t width = parts_.width;
    parallel_for(lane, parts_.count, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(width, 1)),
                 [&](int64_t begin, int64_t end) {
                   parts_.for_each(args.inputs[1], begin, end, [&](int64_t part, int64_t offset) {
                     std::copy_n(args.in<T>(0) + offset, width, args.out<T>(0) + part * width);
                   });
                 });
  }

 private:
  const IndexedSlices parts_;
};

// Copies parts into zeros, or into a copy of another array, one after the other.
template <typename T, bool kIntoLhs>
class Scatter final : public Kernel {
 public:
  explicit Scatter(const StepSpec &spec)
      : parts_(spec.inputs[kIntoLhs ? 2 : 1], spec.outputs[0].shape, false), size_(spec.outputs[0].shape.size()) {}
  void run(const Args &args, const Lane &) const override {
    T *const out = args.out<T>(0);
    if (!kIntoLhs) std::fill_n(out, size_, T());
    if (kIntoLhs && args.outputs[0] != args.inputs[0]) std::copy_n(args.in<T>(0), size_, out);
    parts_.for_each(args.inputs[kIntoLhs ? 2 : 1], 0, parts_.count, [&](int64_t part, int64_t offset) {
      std::copy_n(args.in<T>(kIntoLhs ? 1 : 0) + part * parts_.width, parts_.width, out + offset);
    });
  }

 private:
  const IndexedSlices parts_;
  const int64_t size_;
};

// Adds parts up; 16-bit floats in float, in scratch memory.
template <typename T>
class AddScattered final : public Kernel {
 public:
  explicit AddScattered(StepSpec &spec)
      : parts_(spec.inputs[1], spec.outputs[0].shape, true), size_(spec.outputs[0].shape.size()) {
    if (kIsHalf<T>) spec.scratch_bytes = size_t(size_) * sizeof(Sum);
  }
  void run(const Args &args, const Lane &) const override {
    Sum *const sums = static_cast<Sum *>(kIsHalf<T> ? args.scratch : args.outputs[0]);
    std::fill_n(sums, size_, Sum());
    parts_.for_each(args.inputs[1], 0, parts_.count, [&](int64_t part, int64_t offset) {
      const T *const from = args.in<T>(0) + part * parts_.width;
      for (int64_t i = 0; i < parts_.width; ++i) sums[offset + i] = pointwise::add(sums[offset + i], Sum(from[i]));
    });
    if constexpr (kIsHalf<T>) std::transform(sums, sums + size_, args.out<T>(0), [](float sum) { return T(sum); });
  }

 private:
  using Sum = std::conditional_t<kIsHalf<T>, float, T>;
  const IndexedSlices parts_;
  const int64_t size_;
};

template <template <typename> class K>
std::unique_ptr<Kernel> make_typed(StepSpec &spec) {
  return dispatch(spec.outputs[0].dtype,
                  [&](auto t) -> std::unique_ptr<Kernel> { return std::make_unique<K<decltype(t)>>(spec); });
}
template <typename T>
using GatherNd = GatherSlices<T, true>;
template <typename T>
using ScatterNdBackward = GatherSlices<T, false>;
template <typename T>
using ScatterNd = Scatter<T, false>;
template <typename T>
using ScatterSetNd = Scatter<T, true>;

COHORT_KERNEL_BY(cpu, gather_nd, make_typed<GatherNd>);
COHORT_KERNEL_BY(cpu, _backward_gather_nd, make_typed<AddScattered>);  // also an operator of its own
COHORT_KERNEL_BY(cpu, scatter_nd, make_typed<ScatterNd>);
COHORT_KERNEL_BY(cpu, _backward_scatter_nd, make_typed<ScatterNdBackward>);
COHORT_KERNEL_BY(cpu, _scatter_set_nd, make_typed<ScatterSetNd>);

// ---- _contrib_index_copy ------------------------------------------------------------------------------------------

// Reads row numbers, and throws if one is out of range.
class Rows {
 public:
  Rows(const TensorSpec &numbers, const TensorSpec &whole)
      : count(numbers.shape.size()),
        bytes(size_t(whole.shape.size(1, whole.shape.rank())) * dtype_size(whole.dtype)),
        whole_bytes(whole.bytes()),
        rows_(whole.shape[0]),
        load_(load_indices(numbers.dtype)) {}
  size_t offset(const void *numbers, int64_t i) const {
    int64_t row = 0;
    load_(numbers, i, &row, 1);
    if (row < 0 || row >= rows_) {
      throw Error(Code::kExecution, text("index_vector[", i, "]: expected 0 to ", rows_ - 1, ", found ", row));
    }
    return size_t(row) * bytes;
  }
  const int64_t count;
  const size_t bytes, whole_bytes;  // of a row; of the whole array

 private:
  const int64_t rows_;
  const LoadBlock load_;
};

class IndexCopy final : public Kernel {
 public:
  explicit IndexCopy(const StepSpec &spec) : rows_(spec.inputs[1], spec.inputs[0]) {}
  void run(const Args &args, const Lane &) const override {
    if (args.outputs[0] != args.inputs[0]) std::memcpy(args.outputs[0], args.inputs[0], rows_.whole_bytes);
    for (int64_t i = 0; i < rows_.count; ++i) {
      std::memcpy(args.out<char>(0) + rows_.offset(args.inputs[1], i), args.in<char>(2) + size_t(i) * rows_.bytes,
                  rows_.bytes);
    }
  }

 private:
  const Rows rows_;
};

// Rows that were overwritten get no gradient: it goes to the rows that were copied in.
class IndexCopyBackward final : public Kernel {
 public:
  explicit IndexCopyBackward(const StepSpec &spec) : rows_(spec.inputs[1], spec.inputs[0]) {}
  void run(const Args &args, const Lane &) const override {
    char *const before = args.out<char>(0), *const put = args.out<char>(1);
    if (before) std::memcpy(before, args.inputs[0], rows_.whole_bytes);
    for (int64_t i = 0; i < rows_.count; ++i) {
      const size_t offset = rows_.offset(args.inputs[1], i);
      if (put) std::memcpy(put + size_t(i) * rows_.bytes, args.in<char>(0) + offset, rows_.bytes);
      if (before) std::memset(before + offset, 0, rows_.bytes);
    }
  }

 private:
  const Rows rows_;
};

COHORT_KERNEL(cpu, _contrib_index_copy, IndexCopy);
COHORT_KERNEL(cpu, _backward__contrib_index_copy, IndexCopyBackward);

}  // namespace
}  // namespace cohort
