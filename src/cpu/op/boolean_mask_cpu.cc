// SPDX-License-Identifier: Apache-2.0
#include "op/boolean_mask.hpp"

#include <algorithm>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Calls fn(i) for each i < count whose number is not 0.
template <typename Fn>
void for_each_set(const void *numbers, Dtype dtype, int64_t count, Fn &&fn) {
  dispatch(dtype, [&](auto zero) {
    const auto *const values = static_cast<const decltype(zero) *>(numbers);
    for (int64_t i = 0; i < count; ++i) {
      if (cast_element<bool>(values[i])) fn(i);
    }
  });
}

int64_t count_set(const void *numbers, Dtype dtype, int64_t count) {
  int64_t found = 0;
  for_each_set(numbers, dtype, count, [&](int64_t) { ++found; });
  return found;
}

// Writes output 0: the number of axes, and their lengths.
class MaskShape final : public Kernel {
 public:
  explicit MaskShape(StepSpec &spec) : data_(spec.inputs[0].shape), dtype_(spec.inputs[1].dtype) {}
  void run(const Args &args, const Lane &) const override {
    int64_t *const shape = args.out<int64_t>(0);
    *shape = data_.rank();
    std::copy(data_.begin(), data_.end(), shape + 1);
    shape[1] = count_set(args.inputs[1], dtype_, data_[0]);
  }

 private:
  const Shape data_;
  const Dtype dtype_;
};

class Mask final : public Kernel {
 public:
  explicit Mask(StepSpec &spec)
      : row_bytes_(size_t(spec.inputs[0].shape.size(1, spec.inputs[0].shape.rank())) *
                   dtype_size(spec.inputs[0].dtype)),
        count_(spec.inputs[0].shape[0]),
        num_rows_(spec.outputs[0].shape[0]),
        dtype_(spec.inputs[1].dtype) {}
  void run(const Args &args, const Lane &) const override {
    if (count_set(args.inputs[1], dtype_, count_) != num_rows_) {
      throw Error(Code::kShape, text("index: expected ", num_rows_, " numbers that are not 0, found others"), "index");
    }
    if (row_bytes_ == 0) return;
    char *to = args.out<char>(0);
    for_each_set(args.inputs[1], dtype_, count_, [&](int64_t row) {
      std::memcpy(to, args.in<char>(0) + size_t(row) * row_bytes_, row_bytes_);
      to += row_bytes_;
    });
  }

 private:
  const size_t row_bytes_;
  const int64_t count_, num_rows_;
  const Dtype dtype_;
};

// Copies rows of the gradient back to where they came from; other rows get zeros.
class MaskBackward final : public Kernel {
 public:
  explicit MaskBackward(StepSpec &spec)
      : bytes_(spec.outputs[0].bytes()),
        row_bytes_(size_t(spec.outputs[0].shape.size(1, spec.outputs[0].shape.rank())) *
                   dtype_size(spec.outputs[0].dtype)),
        count_(spec.outputs[0].shape[0]),
        num_rows_(spec.inputs[0].shape[0]),
        dtype_(spec.inputs[1].dtype) {}
  void run(const Args &args, const Lane &) const override {
    if (bytes_ == 0 || !args.outputs[0]) return;
    std::memset(args.outputs[0], 0, bytes_);
    int64_t next = 0;
    for_each_set(args.inputs[1], dtype_, count_, [&](int64_t row) {
      if (next == num_rows_) return;
      std::memcpy(args.out<char>(0) + size_t(row) * row_bytes_, args.in<char>(0) + size_t(next++) * row_bytes_,
                  row_bytes_);
    });
  }

 private:
  const size_t bytes_, row_bytes_;
  const int64_t count_, num_rows_;
  const Dtype dtype_;
};

class NonzeroShape final : public Kernel {
 public:
  explicit NonzeroShape(StepSpec &spec) : data_(spec.inputs[0]) {}
  void run(const Args &args, const Lane &) const override {
    int64_t *const shape = args.out<int64_t>(0);
    shape[0] = 2;
    shape[1] = count_set(args.inputs[0], data_.dtype, data_.shape.size());
    shape[2] = std::max(data_.shape.rank(), 1);
  }

 private:
  const TensorSpec data_;
};

class Nonzero final : public Kernel {
 public:
  explicit Nonzero(StepSpec &spec) : data_(spec.inputs[0]), num_rows_(spec.outputs[0].shape[0]) {}
  void run(const Args &args, const Lane &) const override {
    if (count_set(args.inputs[0], data_.dtype, data_.shape.size()) != num_rows_) {
      throw Error(Code::kShape, text("x: expected ", num_rows_, " elements that are not 0, found others"), "x");
    }
    const int rank = data_.shape.rank();
    int64_t *row = args.out<int64_t>(0);
    for_each_set(args.inputs[0], data_.dtype, data_.shape.size(), [&](int64_t at) {
      row[0] = 0;
      for (int axis = rank; axis-- > 0; at /= data_.shape[axis]) row[axis] = at % data_.shape[axis];
      row += std::max(rank, 1);
    });
  }

 private:
  const TensorSpec data_;
  const int64_t num_rows_;
};

COHORT_KERNEL(cpu, _shape__contrib_boolean_mask, MaskShape);
COHORT_KERNEL(cpu, _contrib_boolean_mask, Mask);
COHORT_KERNEL(cpu, _backward__contrib_boolean_mask, MaskBackward);
COHORT_KERNEL(cpu, _shape__npx_nonzero, NonzeroShape);
COHORT_KERNEL(cpu, _npx_nonzero, Nonzero);

}  // namespace
}  // namespace cohort
