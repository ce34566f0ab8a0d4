// SPDX-License-Identifier: Apache-2.0
// Elements and rows by their indices: take, pick, Embedding, gather_nd and their like, and sequences. Sums and
// assignments to places that are named several times go through the indices in order (PlacesOfIndices), so that results
// repeat bit for bit and the last assignment counts. An index that is out of range, where the CPU has an error, is
// a complaint (expected.cuh), and goes on as the nearest one that is not.
#include <algorithm>

#include "cuda/op/expected.cuh"
#include "cuda/op/sorting.cuh"
#include "device/kernel_table.hpp"
#include "kernels/backend.hpp"
#include "op/float_math.hpp"
#include "op/gather.hpp"
#include "op/indexing.hpp"
#include "op/pointwise_math.hpp"
#include "op/sequence.hpp"

namespace cohort {
namespace {

__device__ int64_t clamped(int64_t index, int64_t length) {
  return index < 0 ? 0 : index < length ? index : length - 1;
}

__device__ int64_t in_range(int64_t index, int64_t length, bool wraps) {
  if (wraps && (index < 0 || index >= length)) return (index % length + length) % length;
  return clamped(index, length);
}

// An index of a part of an array: from one number, or from a column of coordinates along its first axes.
struct PartIndex {
  Elements indices;
  int64_t count;     // of parts
  int64_t num_axes;  // coordinates
  int64_t lengths[kMaxAxes];
  bool wraps, negative;  // any number of times; once

  __device__ int64_t operator()(int64_t i) const {
    int64_t part = 0;
    for (int64_t axis = 0; axis < num_axes; ++axis) {
      int64_t index = load_index(indices, axis * count + i);
      if (negative && index < 0) index += lengths[axis];
      part = part * lengths[axis] + in_range(index, lengths[axis], wraps);
    }
    return part;
  }
};

using Pair = Ranked<int64_t>;

// The places at which each of `parts` parts is named: the sorted pairs of part and place.
__device__ int64_t first_not_below(const Pair *sorted, int64_t count, int64_t part) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (sorted[middle].key < part) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

size_t sorting_bytes(int64_t count) { return size_t(2 * count) * sizeof(Pair); }

const Pair *sort_places(const Lane &lane, const PartIndex &index, void *scratch) {
  Pair *const pairs = static_cast<Pair *>(scratch);
  for_each(lane, index.count, [=] __device__(int64_t i) { pairs[i] = {index(i), i}; });
  return sort_rows<true>(lane, pairs, pairs + index.count, 1, index.count);
}

// The whole as (outer, parts, inner), what is taken out of it as (outer, count, inner).
struct Places {
  int64_t outer, parts, inner;
};

// out = the part that is named.
void gather(const Lane &lane, const Places &p, const PartIndex &index, const Cells &whole, const Cells &out) {
  for_each(lane, p.outer * index.count * p.inner, [=] __device__(int64_t i) {
    const int64_t within = i % p.inner, k = i / p.inner % index.count, o = i / p.inner / index.count;
    move_cell(out, i, whole, (o * p.parts + index(k)) * p.inner + within);
  });
}

// whole = the sum of what is named as each of its parts.
template <typename C>
void add_up(const Lane &lane, const Places &p, const Pair *sorted, int64_t count, const Elements &from,
            const Elements &whole) {
  for_each(lane, p.outer * p.parts * p.inner, [=] __device__(int64_t i) {
    const int64_t within = i % p.inner, part = i / p.inner % p.parts, o = i / p.inner / p.parts;
    C sum = 0;
    for (int64_t k = first_not_below(sorted, count, part); k < count && sorted[k].key == part; ++k) {
      sum = pointwise::add(sum, load<C>(from, (o * count + sorted[k].index) * p.inner + within));
    }
    store(whole, i, sum);
  });
}

// whole = the last of what is named as each of its parts; the others are those of `before`, or zeros.
void put(const Lane &lane, const Places &p, const Pair *sorted, int64_t count, const Cells &from, const Cells &before,
         const Cells &whole) {
  for_each(lane, p.outer * p.parts * p.inner, [=] __device__(int64_t i) {
    const int64_t within = i % p.inner, part = i / p.inner % p.parts, o = i / p.inner / p.parts;
    const int64_t end = first_not_below(sorted, count, part + 1);
    if (end > 0 && sorted[end - 1].key == part) {
      move_cell(whole, i, from, (o * count + sorted[end - 1].index) * p.inner + within);
    } else if (before.data != whole.data) {
      move_cell(whole, i, before, i);
    }
  });
}

PartIndex index_of(const TensorSpec &indices, int64_t length, bool wraps) {
  PartIndex index{elements_of(nullptr, indices.dtype), indices.shape.size(), 1, {length}, wraps, false};
  return index;
}

// Columns of coordinates (M, count).
PartIndex columns_of(const TensorSpec &indices, const Shape &whole, bool negative) {
  PartIndex index{elements_of(nullptr, indices.dtype),
                  indices.shape.size(1, indices.shape.rank()),
                  indices.shape[0],
                  {},
                  false,
                  negative};
  for (int axis = 0; axis < int(index.num_axes); ++axis) index.lengths[axis] = whole[axis];
  return index;
}

Places places_of(const PartIndex &index, const Shape &whole, int axis) {
  Places p{whole.size(0, axis), 1, whole.size(axis + int(index.num_axes), whole.rank())};
  for (int64_t k = 0; k < index.num_axes; ++k) p.parts *= index.lengths[k];
  // An index is brought into range, where there is one.
  if (p.parts == 0 && index.count > 0) throw Error(Code::kShape, text("expected elements to index, found ", whole));
  return p;
}

// Of indices that the CPU refuses out of range.
struct IndexRange {
  const char *name = nullptr;  // of the input; null: every index counts as the nearest
  bool columns = false;        // of coordinates: said so

  void expect(const Lane &lane, const PartIndex &index) const {
    if (!name) return;
    for (int64_t axis = 0; axis < index.num_axes; ++axis) {
      const int64_t length = index.lengths[axis];
      expect_within(lane, index.indices, axis * index.count, index.count, index.negative ? -length : 0, length - 1);
    }
  }
  std::string in_words(const Complaint &c, int64_t count) const {
    const std::string expected = text("expected ", c.least, " to ", c.most);
    if (!columns) return text(name, "[", c.place, "]: ", expected, ", found ", c.found);
    return text(name, ": ", expected, " along axis ", c.place / count, ", found ", c.found, " in column ",
                c.place % count);
  }
};
constexpr IndexRange kAnyIndex{}, kColumns{"indices", true};

// Inputs: the whole and indices, in an order that differs.
class GatherCuda final : public Kernel, public Complains {
 public:
  GatherCuda(StepSpec &spec, int whole, const PartIndex &index, const Places &places,
             const IndexRange &range = kAnyIndex)
      : whole_(whole), index_(index), places_(places), dtype_(spec.outputs[0].dtype), range_(range) {}
  void run(const Args &args, const Lane &lane) const override {
    PartIndex index = index_;
    index.indices.data = args.inputs[1 - whole_];
    range_.expect(lane, index);
    gather(lane, places_, index, cells_of(args.inputs[whole_], dtype_), cells_of(args.outputs[0], dtype_));
  }
  std::string in_words(const Complaint &c) const override { return range_.in_words(c, index_.count); }

 private:
  const int whole_;
  const PartIndex index_;
  const Places places_;
  const Dtype dtype_;
  const IndexRange range_;
};

// Inputs: head gradient, indices.
class AddUpCuda final : public Kernel {
 public:
  AddUpCuda(StepSpec &spec, const PartIndex &index, const Places &places)
      : index_(index), places_(places), dtype_(spec.outputs[0].dtype) {
    spec.scratch_bytes = sorting_bytes(index.count);
  }
  void run(const Args &args, const Lane &lane) const override {
    PartIndex index = index_;
    index.indices.data = args.inputs[1];
    const Pair *const sorted = sort_places(lane, index, args.scratch);
    const Elements from = elements_of(args.inputs[0], dtype_), whole = elements_of(args.outputs[0], dtype_);
    dispatch_compute(dtype_, true,
                     [&](auto c) { add_up<decltype(c)>(lane, places_, sorted, index.count, from, whole); });
  }

 private:
  const PartIndex index_;
  const Places places_;
  const Dtype dtype_;
};

// Inputs: [the array before,] data, indices; with the index first: _contrib_index_copy has it so.
class PutCuda final : public Kernel, public Complains {
 public:
  PutCuda(StepSpec &spec, int before, int data, int indices, const PartIndex &index, const Places &places,
          const IndexRange &range)
      : before_(before),
        data_(data),
        indices_(indices),
        index_(index),
        places_(places),
        dtype_(spec.outputs[0].dtype),
        range_(range) {
    spec.scratch_bytes = sorting_bytes(index.count);
  }
  void run(const Args &args, const Lane &lane) const override {
    PartIndex index = index_;
    index.indices.data = args.inputs[indices_];
    range_.expect(lane, index);
    const Pair *const sorted = sort_places(lane, index, args.scratch);
    put(lane, places_, sorted, index.count, cells_of(args.inputs[data_], dtype_),
        cells_of(before_ < 0 ? nullptr : args.inputs[before_], dtype_), cells_of(args.outputs[0], dtype_));
  }
  std::string in_words(const Complaint &c) const override { return range_.in_words(c, index_.count); }

 private:
  const int before_, data_, indices_;
  const PartIndex index_;
  const Places places_;
  const Dtype dtype_;
  const IndexRange range_;
};

// The rows that were put in take their gradient away from the rows whose place they took. Inputs: head gradient, index.
class IndexCopyBackwardCuda final : public Kernel {
 public:
  explicit IndexCopyBackwardCuda(StepSpec &spec)
      : index_(index_of(spec.inputs[1], spec.inputs[0].shape[0], false)),
        places_(places_of(index_, spec.inputs[0].shape, 0)),
        dtype_(spec.inputs[0].dtype) {
    spec.scratch_bytes = sorting_bytes(index_.count);
  }
  void run(const Args &args, const Lane &lane) const override {
    PartIndex index = index_;
    index.indices.data = args.inputs[1];
    const Cells head = cells_of(args.inputs[0], dtype_), before = cells_of(args.outputs[0], dtype_);
    if (args.outputs[1]) gather(lane, places_, index, head, cells_of(args.outputs[1], dtype_));
    if (!before.data) return;
    put(lane, places_, sort_places(lane, index, args.scratch), index.count, {nullptr, head.bytes}, head, before);
  }

 private:
  const PartIndex index_;
  const Places places_;
  const Dtype dtype_;
};

std::unique_ptr<Kernel> make_embedding(StepSpec &spec) {
  const PartIndex index = index_of(spec.inputs[0], spec.inputs[1].shape[0], false);
  return std::make_unique<GatherCuda>(spec, 1, index, places_of(index, spec.inputs[1].shape, 0));
}
std::unique_ptr<Kernel> make_embedding_backward(StepSpec &spec) {
  const PartIndex index = index_of(spec.inputs[1], spec.outputs[0].shape[0], false);
  return std::make_unique<AddUpCuda>(spec, index, places_of(index, spec.outputs[0].shape, 0));
}

PartIndex take_index(const StepSpec &spec, const Shape &whole, int *axis) {
  const auto &a = spec.attrs_as<TakeAttrs>();
  *axis = normalize_axis(a.axis, whole.rank(), "take");
  return index_of(spec.inputs[1], whole[*axis], a.mode == IndexMode::kWrap);
}
std::unique_ptr<Kernel> make_take(StepSpec &spec) {
  int axis;
  const PartIndex index = take_index(spec, spec.inputs[0].shape, &axis);
  return std::make_unique<GatherCuda>(
      spec, 0, index, places_of(index, spec.inputs[0].shape, axis),
      IndexRange{spec.attrs_as<TakeAttrs>().mode == IndexMode::kRaise ? "indices" : nullptr});
}
std::unique_ptr<Kernel> make_take_backward(StepSpec &spec) {
  int axis;
  const PartIndex index = take_index(spec, spec.outputs[0].shape, &axis);
  return std::make_unique<AddUpCuda>(spec, index, places_of(index, spec.outputs[0].shape, axis));
}

std::unique_ptr<Kernel> make_gather_nd(StepSpec &spec) {
  const PartIndex index = columns_of(spec.inputs[1], spec.inputs[0].shape, true);
  return std::make_unique<GatherCuda>(spec, 0, index, places_of(index, spec.inputs[0].shape, 0), kColumns);
}
std::unique_ptr<Kernel> make_gather_nd_backward(StepSpec &spec) {
  const PartIndex index = columns_of(spec.inputs[1], spec.outputs[0].shape, true);
  return std::make_unique<AddUpCuda>(spec, index, places_of(index, spec.outputs[0].shape, 0));
}
std::unique_ptr<Kernel> make_scatter_nd(StepSpec &spec) {
  const PartIndex index = columns_of(spec.inputs[1], spec.outputs[0].shape, false);
  return std::make_unique<PutCuda>(spec, -1, 0, 1, index, places_of(index, spec.outputs[0].shape, 0), kColumns);
}
std::unique_ptr<Kernel> make_scatter_nd_backward(StepSpec &spec) {
  const PartIndex index = columns_of(spec.inputs[1], spec.inputs[0].shape, false);
  return std::make_unique<GatherCuda>(spec, 0, index, places_of(index, spec.inputs[0].shape, 0), kColumns);
}
std::unique_ptr<Kernel> make_scatter_set_nd(StepSpec &spec) {
  const PartIndex index = columns_of(spec.inputs[2], spec.outputs[0].shape, false);
  return std::make_unique<PutCuda>(spec, 0, 1, 2, index, places_of(index, spec.outputs[0].shape, 0), kColumns);
}
std::unique_ptr<Kernel> make_index_copy(StepSpec &spec) {
  const PartIndex index = index_of(spec.inputs[1], spec.inputs[0].shape[0], false);
  return std::make_unique<PutCuda>(spec, 0, 2, 1, index, places_of(index, spec.inputs[0].shape, 0),
                                   IndexRange{"index_vector"});
}

COHORT_KERNEL_BY(cuda, Embedding, make_embedding);
COHORT_KERNEL_BY(cuda, _backward_Embedding, make_embedding_backward);
COHORT_KERNEL_BY(cuda, take, make_take);
COHORT_KERNEL_BY(cuda, _backward_take, make_take_backward);
COHORT_KERNEL_BY(cuda, gather_nd, make_gather_nd);
COHORT_KERNEL_BY(cuda, _backward_gather_nd, make_gather_nd_backward);
COHORT_KERNEL_BY(cuda, scatter_nd, make_scatter_nd);
COHORT_KERNEL_BY(cuda, _backward_scatter_nd, make_scatter_nd_backward);
COHORT_KERNEL_BY(cuda, _scatter_set_nd, make_scatter_set_nd);
COHORT_KERNEL_BY(cuda, _contrib_index_copy, make_index_copy);
COHORT_KERNEL(cuda, _backward__contrib_index_copy, IndexCopyBackwardCuda);

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
    const Cells from = cells_of(args.inputs[0], dtype_), to = cells_of(args.outputs[0], dtype_);
    const int64_t length = length_, inner = inner_;
    const bool wraps = mode_ == IndexMode::kWrap;
    if constexpr (kBackward) {
      const Cells zero{nullptr, to.bytes};
      for_each(lane, outer_ * length * inner, [=] __device__(int64_t i) {
        const int64_t picked = i / inner / length * inner + i % inner;
        const bool here = in_range(load_index(index, picked), length, wraps) == i / inner % length;
        move_cell(to, i, here ? from : zero, picked);
      });
    } else {
      for_each(lane, outer_ * inner, [=] __device__(int64_t i) {
        move_cell(to, i, from,
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

// One element of each row: of fill_element_0index, whose inputs are rows, numbers and indices, or, with a 1 among
// zeros, of _onehot_encode, whose first input are the indices.
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
    const Cells to = cells_of(args.outputs[0], dtype_), from = cells_of(args.inputs[0], dtype_);
    const Cells numbers = cells_of(fills_ ? args.inputs[1] : nullptr, dtype_);
    const int64_t cols = cols_;
    const bool fills = fills_;
    for_each(lane, rows_ * cols, [=] __device__(int64_t i) {
      const bool here = load_index(index, i / cols) == i % cols;
      if (!fills) {
        store(out, i, here ? 1.0 : 0.0);
      } else if (here) {
        move_cell(to, i, numbers, i / cols);
      } else if (to.data != from.data) {
        move_cell(to, i, from, i);
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
      const Cells head = cells_of(args.inputs[0], dtype_), zero{nullptr, head.bytes};
      const Cells x = cells_of(args.outputs[0], dtype_), y = cells_of(args.outputs[1], dtype_);
      for_each(lane, count_, [=] __device__(int64_t i) {
        const bool holds = load<double>(condition, i / width) != 0;
        // Either may lie where the head gradient is, and that is read once.
        if (holds) {
          if (x.data) move_cell(x, i, head, i);
          if (y.data) move_cell(y, i, zero, i);
        } else {
          if (y.data) move_cell(y, i, head, i);
          if (x.data) move_cell(x, i, zero, i);
        }
      });
    } else {
      const Cells x = cells_of(args.inputs[1], dtype_), y = cells_of(args.inputs[2], dtype_);
      const Cells out = cells_of(args.outputs[0], dtype_);
      for_each(lane, count_,
               [=] __device__(int64_t i) { move_cell(out, i, load<double>(condition, i / width) != 0 ? x : y, i); });
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

// ---- sequences: time steps are rows of `width` elements

struct Sequences {
  int64_t steps, count, width;
  bool steps_first;
  Elements lengths;  // no data: all steps

  Sequences(const StepSpec &spec, const Shape &data)
      : steps(data[spec.attrs_as<SequenceAttrs>().axis]),
        count(data[1 - spec.attrs_as<SequenceAttrs>().axis]),
        width(data.size(2, data.rank())),
        steps_first(spec.attrs_as<SequenceAttrs>().axis == 0),
        lengths{nullptr, int64_t(Dtype::kNone)} {
    if (spec.attrs_as<SequenceAttrs>().use_sequence_length) lengths.dtype = int64_t(spec.inputs[1].dtype);
  }
  Sequences of(const Args &args) const {
    Sequences s = *this;
    if (Dtype(lengths.dtype) != Dtype::kNone) s.lengths.data = args.inputs[1];
    return s;
  }
  int64_t size() const { return steps * count * width; }
  __device__ int64_t step_of(int64_t i) const { return steps_first ? i / width / count : i / width % steps; }
  __device__ int64_t sequence_of(int64_t i) const { return steps_first ? i / width % count : i / width / steps; }
  __device__ int64_t place(int64_t step, int64_t sequence, int64_t i) const {
    return (steps_first ? step * count + sequence : sequence * steps + step) * width + i % width;
  }
  __device__ int64_t length(int64_t sequence, int64_t least) const {
    const int64_t found = lengths.data ? load_index(lengths, sequence) : steps;
    return found < least ? least : found < steps ? found : steps;
  }
};

enum class SequenceWay { kMask, kMaskBackward, kReverse, kLast, kLastBackward };

template <SequenceWay kWay>
class SequenceCuda final : public Kernel, public Complains {
 public:
  explicit SequenceCuda(const StepSpec &spec)
      : sequences_(spec, (kWay == SequenceWay::kLastBackward ? spec.outputs : spec.inputs)[0].shape),
        value_(kWay == SequenceWay::kMask ? double(spec.attrs_as<SequenceAttrs>().value) : 0),
        dtype_(spec.outputs[0].dtype) {
    if (kWay == SequenceWay::kLast && sequences_.steps == 0 && spec.outputs[0].shape.size() > 0) {
      throw Error(Code::kShape, text("expected steps to take the last of, found ", spec.inputs[0].shape));
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    const Sequences s = sequences_.of(args);
    const Cells from = cells_of(args.inputs[0], dtype_), to = cells_of(args.outputs[0], dtype_);
    const Cells zero{nullptr, to.bytes};
    const Elements out = elements_of(args.outputs[0], dtype_);
    const double value = value_;
    const int64_t elements = kWay == SequenceWay::kLast ? s.count * s.width : s.size();
    const bool is_mask = kWay == SequenceWay::kMask || kWay == SequenceWay::kMaskBackward;
    if (s.lengths.data && !is_mask)
      expect_within(lane, s.lengths, 0, s.count, kWay == SequenceWay::kReverse ? 0 : 1, s.steps);
    for_each(lane, elements, [=] __device__(int64_t i) {
      if (kWay == SequenceWay::kLast) {
        const int64_t sequence = i / s.width;
        return move_cell(to, i, from, s.place(s.length(sequence, 1) - 1, sequence, i));
      }
      const int64_t step = s.step_of(i), sequence = s.sequence_of(i);
      if (kWay == SequenceWay::kReverse) {
        const int64_t length = s.length(sequence, 0);
        move_cell(to, i, from, s.place(step < length ? length - 1 - step : step, sequence, i));
      } else if (kWay == SequenceWay::kLastBackward) {
        move_cell(to, i, step == s.length(sequence, 1) - 1 ? from : zero, sequence * s.width + i % s.width);
      } else if (step >= s.length(sequence, 0)) {
        store(out, i, value);
      } else if (to.data != from.data) {
        move_cell(to, i, from, i);
      }
    });
  }
  std::string in_words(const Complaint &c) const override {
    return text("sequence_length[", c.place, "]: expected ", c.least, " to ", c.most, ", found ", c.found);
  }

 private:
  const Sequences sequences_;
  const double value_;
  const Dtype dtype_;
};

COHORT_KERNEL(cuda, SequenceMask, SequenceCuda<SequenceWay::kMask>);
COHORT_KERNEL(cuda, _backward_SequenceMask, SequenceCuda<SequenceWay::kMaskBackward>);
COHORT_KERNEL(cuda, SequenceReverse, SequenceCuda<SequenceWay::kReverse>);
COHORT_KERNEL(cuda, _backward_SequenceReverse, SequenceCuda<SequenceWay::kReverse>);
COHORT_KERNEL(cuda, SequenceLast, SequenceCuda<SequenceWay::kLast>);
COHORT_KERNEL(cuda, _backward_SequenceLast, SequenceCuda<SequenceWay::kLastBackward>);

}  // namespace
}  // namespace cohort
