// SPDX-License-Identifier: Apache-2.0
// take, pick, batch_take, one_hot, fill_element_0index, _onehot_encode and where.
#include "cuda/op/indexed_parts.cuh"
#include "device/kernel_table.hpp"
#include "op/indexing.hpp"

namespace cohort {
namespace {

using namespace indexing;

PartIndex take_index(const StepSpec &spec, const Shape &whole, int *axis) {
  const auto &a = spec.attrs_as<TakeAttrs>();
  *axis = normalize_axis(a.axis, whole.rank(), "take");
  return index_of(spec.inputs[1], whole[*axis], a.mode == IndexMode::kWrap);
}
std::unique_ptr<Kernel> make_take(StepSpec &spec) {
  int axis;
  const PartIndex index = take_index(spec, spec.inputs[0].shape, &axis);
  return make_gather(spec, 0, index, places_of(index, spec.inputs[0].shape, axis),
                     IndexRange{spec.attrs_as<TakeAttrs>().mode == IndexMode::kRaise ? "indices" : nullptr});
}
std::unique_ptr<Kernel> make_take_backward(StepSpec &spec) {
  int axis;
  const PartIndex index = take_index(spec, spec.outputs[0].shape, &axis);
  return make_add_up(spec, index, places_of(index, spec.outputs[0].shape, axis));
}

COHORT_KERNEL_BY(cuda, take, make_take);
COHORT_KERNEL_BY(cuda, _backward_take, make_take_backward);

// ---- pick: data as (outer, length, inner), index and output as (outer, inner)

template <bool kBackward>
class PickCuda final : public Kernel {
 public:
  explicit PickCuda(const StepSpec &spec)
      : index_(spec.inputs[1].dtype), dtype_(spec.outputs[0].dtype), mode_(spec.attrs_as<PickAttrs>().mode) {
    const auto &a = spec.attrs_as<PickAttrs>();
    const Shape &whole = (kBackward ? spec.outputs : spec.inputs)[0].shape;
    length_ = whole.size();
    if (a.axis) {
      const int axis = normalize_axis(*a.axis, whole.rank(), "pick");
      outer_ = whole.size(0, axis);
      length_ = whole[axis];
      inner_ = whole.size(axis + 1, whole.rank());
    }
    if (length_ == 0) throw Error(Code::kShape, text("data: expected elements to pick from, found ", whole), "data");
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements index = elements_of(args.inputs[1], index_);
    const RawElements from = raw_elements(args.inputs[0], dtype_), to = raw_elements(args.outputs[0], dtype_);
    const int64_t length = length_, inner = inner_;
    const bool wraps = mode_ == IndexMode::kWrap;
    if constexpr (kBackward) {
      const RawElements zero{nullptr, to.bytes};
      for_each(lane, outer_ * length * inner, [=] __device__(int64_t i) {
        const int64_t picked = i / inner / length * inner + i % inner;
        const bool here = in_range(load_index(index, picked), length, wraps) == i / inner % length;
        copy_element(to, i, here ? from : zero, picked);
      });
    } else {
      for_each(lane, outer_ * inner, [=] __device__(int64_t i) {
        copy_element(to, i, from,
                     (i / inner * length + in_range(load_index(index, i), length, wraps)) * inner + i % inner);
      });
    }
  }

 private:
  const Dtype index_, dtype_;
  const IndexMode mode_;
  int64_t outer_ = 1, length_ = 1, inner_ = 1;
};

COHORT_KERNEL(cuda, pick, PickCuda<false>);
COHORT_KERNEL(cuda, batch_take, PickCuda<false>);
COHORT_KERNEL(cuda, _backward_pick, PickCuda<true>);

// ---- one_hot, fill_element_0index, _onehot_encode, where

class OneHotCuda final : public Kernel {
 public:
  explicit OneHotCuda(const StepSpec &spec)
      : attrs_(spec.attrs_as<OneHotAttrs>()),
        count_(spec.inputs[0].shape.size()),
        index_(spec.inputs[0].dtype),
        dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements index = elements_of(args.inputs[0], index_), out = elements_of(args.outputs[0], dtype_);
    const int64_t depth = attrs_.depth;
    const double on = attrs_.on_value, off = attrs_.off_value;
    for_each(lane, count_ * depth,
             [=] __device__(int64_t i) { store(out, i, load_index(index, i / depth) == i % depth ? on : off); });
  }

 private:
  const OneHotAttrs attrs_;
  const int64_t count_;
  const Dtype index_, dtype_;
};

// Sets one element of each row: fill_element_0index takes rows, numbers and indices; _onehot_encode takes indices
// first, and writes 1 among zeros.
class FillElementCuda final : public Kernel {
 public:
  explicit FillElementCuda(const StepSpec &spec)
      : fills_(spec.inputs.size() == 3),
        rows_(spec.outputs[0].shape[0]),
        cols_(spec.outputs[0].shape[1]),
        index_(spec.inputs[fills_ ? 2 : 0].dtype),
        dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements index = elements_of(args.inputs[fills_ ? 2 : 0], index_), out = elements_of(args.outputs[0], dtype_);
    const RawElements to = raw_elements(args.outputs[0], dtype_), from = raw_elements(args.inputs[0], dtype_);
    const RawElements numbers = raw_elements(fills_ ? args.inputs[1] : nullptr, dtype_);
    const int64_t cols = cols_;
    const bool fills = fills_;
    for_each(lane, rows_ * cols, [=] __device__(int64_t i) {
      const bool here = load_index(index, i / cols) == i % cols;
      if (!fills) {
        store(out, i, here ? 1.0 : 0.0);
      } else if (here) {
        copy_element(to, i, numbers, i / cols);
      } else if (to.data != from.data) {
        copy_element(to, i, from, i);
      }
    });
  }

 private:
  const bool fills_;
  const int64_t rows_, cols_;
  const Dtype index_, dtype_;
};

// condition has the shape of x, or one number for each row of it.
template <bool kBackward>
class WhereCuda final : public Kernel {
 public:
  explicit WhereCuda(const StepSpec &spec)
      : count_(spec.inputs[kBackward ? 0 : 1].shape.size()),
        condition_(spec.inputs[kBackward ? 1 : 0].dtype),
        dtype_(spec.inputs[kBackward ? 0 : 1].dtype) {
    const int64_t conditions = spec.inputs[kBackward ? 1 : 0].shape.size();
    width_ = conditions > 0 ? count_ / conditions : 1;
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements condition = elements_of(args.inputs[kBackward ? 1 : 0], condition_);
    const int64_t width = width_;
    if constexpr (kBackward) {
      const RawElements head = raw_elements(args.inputs[0], dtype_), zero{nullptr, head.bytes};
      const RawElements x = raw_elements(args.outputs[0], dtype_), y = raw_elements(args.outputs[1], dtype_);
      for_each(lane, count_, [=] __device__(int64_t i) {
        const bool holds = load<double>(condition, i / width) != 0;
        // Either may lie where the head gradient is, and that is read once.
        if (holds) {
          if (x.data) copy_element(x, i, head, i);
          if (y.data) copy_element(y, i, zero, i);
        } else {
          if (y.data) copy_element(y, i, head, i);
          if (x.data) copy_element(x, i, zero, i);
        }
      });
    } else {
      const RawElements x = raw_elements(args.inputs[1], dtype_), y = raw_elements(args.inputs[2], dtype_);
      const RawElements out = raw_elements(args.outputs[0], dtype_);
      for_each(lane, count_,
               [=] __device__(int64_t i) { copy_element(out, i, load<double>(condition, i / width) != 0 ? x : y, i); });
    }
  }

 private:
  const int64_t count_;
  int64_t width_;
  const Dtype condition_, dtype_;
};

COHORT_KERNEL(cuda, one_hot, OneHotCuda);
COHORT_KERNEL(cuda, fill_element_0index, FillElementCuda);
COHORT_KERNEL(cuda, _onehot_encode, FillElementCuda);
COHORT_KERNEL(cuda, where, WhereCuda<false>);
COHORT_KERNEL(cuda, _backward_where, WhereCuda<true>);

}  // namespace
}  // namespace cohort
