// SPDX-License-Identifier: Apache-2.0
// sort, argsort, topk: lines of an array as pairs of an element and its index, sorted all at once; and sums along
// lines.
#include "cuda/op/rows.cuh"
#include "cuda/op/sorting.cuh"
#include "device/kernel_table.hpp"
#include "op/cumsum.hpp"
#include "op/ordering.hpp"
#include "op/pointwise_math.hpp"
#include "op/reduce.hpp"

namespace cohort {
namespace {

// Key: double for floats, which holds all of them, and int64_t for integers.
template <typename Key>
class OrderCuda final : public Kernel {
 public:
  explicit OrderCuda(StepSpec &spec)
      : attrs_(spec.attrs_as<OrderAttrs>()),
        axis_(ordered_axis(attrs_, spec.inputs[0].shape)),
        dtype_(spec.inputs[0].dtype),
        index_output_(attrs_.ret_typ == OrderAttrs::Result::kBoth ? 1 : 0),
        index_dtype_(attrs_.ret_typ == OrderAttrs::Result::kValue ? Dtype::kInt64
                                                                  : spec.outputs[size_t(index_output_)].dtype),
        saves_(spec.keep_for_backward && attrs_.gives_values()) {
    spec.scratch_bytes = size_t(2 * axis_.outer * axis_.length * axis_.inner) * sizeof(Ranked<Key>);
    if (saves_) spec.saved_bytes = size_t(axis_.outer * axis_.kept * axis_.inner) * sizeof(int64_t);
  }
  void run(const Args &args, const Lane &lane) const override {
    const OrderedAxis e = axis_;
    const int64_t lines = e.outer * e.inner, count = lines * e.length;
    const Elements data = elements_of(args.inputs[0], dtype_), first = elements_of(args.outputs[0], dtype_);
    const bool mask = attrs_.ret_typ == OrderAttrs::Result::kMask;
    if (mask) for_each(lane, count, [=] __device__(int64_t i) { store(first, i, 0.0); });
    if (count == 0) return;
    auto *const pairs = static_cast<Ranked<Key> *>(args.scratch);
    for_each(lane, count, [=] __device__(int64_t i) {
      const int64_t line = i / e.length, n = i % e.length;
      pairs[i] = {load<Key>(data, (line / e.inner * e.length + n) * e.inner + line % e.inner), n};
    });
    const Ranked<Key> *const sorted = attrs_.is_ascend ? sort_rows<true>(lane, pairs, pairs + count, lines, e.length)
                                                       : sort_rows<false>(lane, pairs, pairs + count, lines, e.length);
    const bool gives_values = attrs_.gives_values();
    const bool gives_indices = !mask && attrs_.ret_typ != OrderAttrs::Result::kValue;
    const Elements indices = elements_of(gives_indices ? args.outputs[index_output_] : nullptr, index_dtype_);
    int64_t *const saved = saves_ ? static_cast<int64_t *>(args.saved) : nullptr;
    for_each(lane, lines * e.kept, [=] __device__(int64_t i) {
      const int64_t line = i / e.kept, n = i % e.kept, o = line / e.inner, within = line % e.inner;
      const Ranked<Key> item = sorted[line * e.length + n];
      const int64_t to = (o * e.kept + n) * e.inner + within;
      if (mask) store(first, (o * e.length + item.index) * e.inner + within, 1.0);
      if (gives_values) store(first, to, item.key);
      if (indices.data) store(indices, to, item.index);
      if (saved) saved[to] = item.index;
    });
  }

 private:
  const OrderAttrs attrs_;
  const OrderedAxis axis_;
  const Dtype dtype_;
  const int index_output_;
  const Dtype index_dtype_;
  const bool saves_;
};

// Each head gradient goes where its element came from.
class OrderBackwardCuda final : public Kernel {
 public:
  explicit OrderBackwardCuda(const StepSpec &spec)
      : axis_(ordered_axis(spec.attrs_as<OrderAttrs>(), spec.outputs[0].shape)), dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const OrderedAxis e = axis_;
    const Cells head = cells_of(args.inputs[0], dtype_), to = cells_of(args.outputs[0], dtype_);
    const Cells zero{nullptr, to.bytes};
    const auto *const saved = static_cast<const int64_t *>(args.saved);
    for_each(lane, e.outer * e.length * e.inner, [=] __device__(int64_t i) { move_cell(to, i, zero, 0); });
    for_each(lane, e.outer * e.kept * e.inner, [=] __device__(int64_t i) {
      move_cell(to, (i / e.inner / e.kept * e.length + saved[i]) * e.inner + i % e.inner, head, i);
    });
  }

 private:
  const OrderedAxis axis_;
  const Dtype dtype_;
};

std::unique_ptr<Kernel> make_order(StepSpec &spec) {
  if (dtype_is_float(spec.inputs[0].dtype)) return std::make_unique<OrderCuda<double>>(spec);
  return std::make_unique<OrderCuda<int64_t>>(spec);
}

COHORT_KERNEL_BY(cuda, topk, make_order);
COHORT_KERNEL_BY(cuda, sort, make_order);
COHORT_KERNEL_BY(cuda, argsort, make_order);
COHORT_KERNEL(cuda, _backward_topk, OrderBackwardCuda);
COHORT_KERNEL(cuda, _backward_sort, OrderBackwardCuda);

// Lines that are few and long are cut into parts, a thread each.
int64_t parts_of(const RowExtent &e) {
  constexpr int64_t kBusy = 132 * 512, kLeast = 256;
  return std::clamp<int64_t>(kBusy / std::max<int64_t>(e.rows(), 1), 1, std::max<int64_t>(e.length / kLeast, 1));
}

// ---- _np_cumsum along the middle of (outer, length, inner), floats in double; from the last element to the first for
// the backward step. First the sums of the parts of a line, then those of what is before each, then all.

template <typename C, bool kBackward>
class CumsumCuda final : public Kernel {
 public:
  explicit CumsumCuda(StepSpec &spec) : in_(spec.inputs[0].dtype), out_(spec.outputs[0].dtype) {
    const Shape &data = (kBackward ? spec.outputs : spec.inputs)[0].shape;
    const auto &a = spec.attrs_as<CumsumAttrs>();
    e_ = {1, data.size(), 1};
    if (a.axis) e_ = rows_along(data, normalize_axis(*a.axis, data.rank(), "axis"));
    parts_ = parts_of(e_);
    if (parts_ > 1) spec.scratch_bytes = size_t(e_.rows() * parts_) * sizeof(C);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements from = elements_of(args.inputs[0], in_), to = elements_of(args.outputs[0], out_);
    const RowExtent e = e_;
    const int64_t parts = parts_;
    C *const before = parts > 1 ? static_cast<C *>(args.scratch) : nullptr;
    const auto place = [=] __device__(int64_t row, int64_t n) {
      return e.start(row) + (kBackward ? e.length - 1 - n : n) * e.inner;
    };
    if (before) {
      for_each(lane, e.rows() * parts, [=] __device__(int64_t i) {
        const int64_t row = i / parts, part = i % parts;
        C sum = 0;
        for (int64_t n = e.length * part / parts; n < e.length * (part + 1) / parts; ++n) {
          sum = pointwise::add(sum, load<C>(from, place(row, n)));
        }
        before[i] = sum;
      });
      for_each(lane, e.rows(), [=] __device__(int64_t row) {
        C sum = 0;
        for (int64_t part = 0; part < parts; ++part) {
          const C own = before[row * parts + part];
          before[row * parts + part] = sum;
          sum = pointwise::add(sum, own);
        }
      });
    }
    for_each(lane, e.rows() * parts, [=] __device__(int64_t i) {
      const int64_t row = i / parts, part = i % parts;
      C sum = before ? before[i] : C(0);
      for (int64_t n = e.length * part / parts; n < e.length * (part + 1) / parts; ++n) {
        sum = pointwise::add(sum, load<C>(from, place(row, n)));
        store(to, place(row, n), sum);
      }
    });
  }

 private:
  const Dtype in_, out_;
  RowExtent e_;
  int64_t parts_ = 1;
};

template <bool kBackward>
std::unique_ptr<Kernel> make_cumsum(StepSpec &spec) {
  if (dtype_is_float((kBackward ? spec.inputs : spec.outputs)[0].dtype)) {
    return std::make_unique<CumsumCuda<double, kBackward>>(spec);
  }
  return std::make_unique<CumsumCuda<int64_t, kBackward>>(spec);
}

COHORT_KERNEL_BY(cuda, _np_cumsum, make_cumsum<false>);
COHORT_KERNEL_BY(cuda, _backward__np_cumsum, make_cumsum<true>);

// ---- argmax, argmin, argmax_channel: the first one. The parts of a line take turns with its elements. All begin with
// the first element, so that one that is NaN is the result, and others never are.

template <typename C, bool kLargest>
class ArgReduceCuda final : public Kernel {
 public:
  ArgReduceCuda(StepSpec &spec, std::optional<int32_t> axis)
      : e_{1, spec.inputs[0].shape.size(), 1}, in_(spec.inputs[0].dtype), out_(spec.outputs[0].dtype) {
    const Shape &shape = spec.inputs[0].shape;
    if (axis) e_ = rows_along(shape, normalize_axis(*axis, shape.rank(), spec.op.c_str()));
    parts_ = parts_of(e_);
    if (parts_ > 1) spec.scratch_bytes = size_t(e_.rows() * parts_) * sizeof(int64_t);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements from = elements_of(args.inputs[0], in_), to = elements_of(args.outputs[0], out_);
    const RowExtent e = e_;
    const int64_t parts = parts_;
    int64_t *const found = parts > 1 ? static_cast<int64_t *>(args.scratch) : nullptr;
    for_each(lane, e.rows() * parts, [=] __device__(int64_t i) {
      const int64_t row = i / parts;
      int64_t best = 0;
      C top = e.length > 0 ? load<C>(from, e.start(row)) : C(0);
      for (int64_t k = i % parts; k < e.length; k += parts) {
        const C value = load<C>(from, e.start(row) + k * e.inner);
        if (kLargest ? value > top : value < top) top = value, best = k;
      }
      if (found) {
        found[i] = best;
      } else {
        store(to, row, best);
      }
    });
    if (!found) return;
    for_each(lane, e.rows(), [=] __device__(int64_t row) {
      int64_t best = 0;
      C top = load<C>(from, e.start(row));
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t k = found[row * parts + part];
        const C value = load<C>(from, e.start(row) + k * e.inner);
        if ((kLargest ? value > top : value < top) || (value == top && k < best)) top = value, best = k;
      }
      store(to, row, best);
    });
  }

 private:
  RowExtent e_;
  const Dtype in_, out_;
  int64_t parts_ = 1;
};

template <bool kLargest>
std::unique_ptr<Kernel> make_arg(StepSpec &spec, std::optional<int32_t> axis) {
  if (dtype_is_float(spec.inputs[0].dtype)) return std::make_unique<ArgReduceCuda<double, kLargest>>(spec, axis);
  return std::make_unique<ArgReduceCuda<int64_t, kLargest>>(spec, axis);
}
std::unique_ptr<Kernel> make_argmax(StepSpec &spec) {
  return make_arg<true>(spec, spec.attrs_as<ArgReduceAttrs>().axis);
}
std::unique_ptr<Kernel> make_argmin(StepSpec &spec) {
  return make_arg<false>(spec, spec.attrs_as<ArgReduceAttrs>().axis);
}
std::unique_ptr<Kernel> make_argmax_channel(StepSpec &spec) { return make_arg<true>(spec, 1); }

COHORT_KERNEL_BY(cuda, argmax, make_argmax);
COHORT_KERNEL_BY(cuda, argmin, make_argmin);
COHORT_KERNEL_BY(cuda, argmax_channel, make_argmax_channel);

}  // namespace
}  // namespace cohort
