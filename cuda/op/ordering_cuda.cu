// SPDX-License-Identifier: Apache-2.0
// sort, argsort, topk: lines of an array as pairs of an element and its index, sorted all at once.
#include "cuda/op/sorting.cuh"
#include "device/kernel_table.hpp"
#include "op/ordering.hpp"

namespace cohort {
namespace {

// Key: double for floats, which represents all of them, and int64_t for integers.
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

// Copies each head gradient to the place that its element came from.
class OrderBackwardCuda final : public Kernel {
 public:
  explicit OrderBackwardCuda(const StepSpec &spec)
      : axis_(ordered_axis(spec.attrs_as<OrderAttrs>(), spec.outputs[0].shape)), dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const OrderedAxis e = axis_;
    const RawElements head = raw_elements(args.inputs[0], dtype_), to = raw_elements(args.outputs[0], dtype_);
    const RawElements zero{nullptr, to.bytes};
    const auto *const saved = static_cast<const int64_t *>(args.saved);
    for_each(lane, e.outer * e.length * e.inner, [=] __device__(int64_t i) { copy_element(to, i, zero, 0); });
    for_each(lane, e.outer * e.kept * e.inner, [=] __device__(int64_t i) {
      copy_element(to, (i / e.inner / e.kept * e.length + saved[i]) * e.inner + i % e.inner, head, i);
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

}  // namespace
}  // namespace cohort
