// SPDX-License-Identifier: Apache-2.0
// The kernels of indexed_parts.cuh.
#include "cuda/op/indexed_parts.cuh"
#include "cuda/op/sorting.cuh"
#include "op/pointwise_math.hpp"

namespace cohort {
namespace indexing {

namespace {

using Pair = Ranked<int64_t>;

// The first of the sorted pairs whose part is not below `part`.
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

// Each part of `whole` = the sum of the values assigned to it.
template <typename C>
void add_up(const Lane &lane, const PartExtent &p, const Pair *sorted, int64_t count, const Elements &from,
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

}  // namespace

size_t sorting_bytes(int64_t count) { return size_t(2 * count) * sizeof(Pair); }

const Pair *sort_places(const Lane &lane, const PartIndex &index, void *scratch) {
  Pair *const pairs = static_cast<Pair *>(scratch);
  for_each(lane, index.count, [=] __device__(int64_t i) { pairs[i] = {index(i), i}; });
  return sort_rows<true>(lane, pairs, pairs + index.count, 1, index.count);
}

void gather(const Lane &lane, const PartExtent &p, const PartIndex &index, const RawElements &whole,
            const RawElements &out) {
  for_each(lane, p.outer * index.count * p.inner, [=] __device__(int64_t i) {
    const int64_t within = i % p.inner, k = i / p.inner % index.count, o = i / p.inner / index.count;
    copy_element(out, i, whole, (o * p.parts + index(k)) * p.inner + within);
  });
}

void put(const Lane &lane, const PartExtent &p, const Pair *sorted, int64_t count, const RawElements &from,
         const RawElements &before, const RawElements &whole) {
  for_each(lane, p.outer * p.parts * p.inner, [=] __device__(int64_t i) {
    const int64_t within = i % p.inner, part = i / p.inner % p.parts, o = i / p.inner / p.parts;
    const int64_t end = first_not_below(sorted, count, part + 1);
    if (end > 0 && sorted[end - 1].key == part) {
      copy_element(whole, i, from, (o * count + sorted[end - 1].index) * p.inner + within);
    } else if (before.data != whole.data) {
      copy_element(whole, i, before, i);
    }
  });
}

PartIndex index_of(const TensorSpec &indices, int64_t length, bool wraps) {
  PartIndex index{elements_of(nullptr, indices.dtype), indices.shape.size(), 1, {length}, wraps, false};
  return index;
}

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

PartExtent places_of(const PartIndex &index, const Shape &whole, int axis) {
  PartExtent p{whole.size(0, axis), 1, whole.size(axis + int(index.num_axes), whole.rank())};
  for (int64_t k = 0; k < index.num_axes; ++k) p.parts *= index.lengths[k];
  // Without parts there is no valid index to clamp to.
  if (p.parts == 0 && index.count > 0) throw Error(Code::kShape, text("expected elements to index, found ", whole));
  return p;
}

namespace {

// Inputs: the whole and indices, in an order that differs.
class GatherCuda final : public Kernel, public ReportsInputErrors {
 public:
  GatherCuda(StepSpec &spec, int whole, const PartIndex &index, const PartExtent &places, const IndexRange &range)
      : whole_(whole), index_(index), places_(places), dtype_(spec.outputs[0].dtype), range_(range) {}
  void run(const Args &args, const Lane &lane) const override {
    PartIndex index = index_;
    index.indices.data = args.inputs[1 - whole_];
    range_.expect(lane, index);
    gather(lane, places_, index, raw_elements(args.inputs[whole_], dtype_), raw_elements(args.outputs[0], dtype_));
  }
  std::string in_words(const InputError &c) const override { return range_.in_words(c, index_.count); }

 private:
  const int whole_;
  const PartIndex index_;
  const PartExtent places_;
  const Dtype dtype_;
  const IndexRange range_;
};

// Inputs: head gradient, indices.
class AddUpCuda final : public Kernel {
 public:
  AddUpCuda(StepSpec &spec, const PartIndex &index, const PartExtent &places)
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
  const PartExtent places_;
  const Dtype dtype_;
};

// Inputs: [the array before,] data, indices; with the index first: _contrib_index_copy has it so.
class PutCuda final : public Kernel, public ReportsInputErrors {
 public:
  PutCuda(StepSpec &spec, int before, int data, int indices, const PartIndex &index, const PartExtent &places,
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
    put(lane, places_, sorted, index.count, raw_elements(args.inputs[data_], dtype_),
        raw_elements(before_ < 0 ? nullptr : args.inputs[before_], dtype_), raw_elements(args.outputs[0], dtype_));
  }
  std::string in_words(const InputError &c) const override { return range_.in_words(c, index_.count); }

 private:
  const int before_, data_, indices_;
  const PartIndex index_;
  const PartExtent places_;
  const Dtype dtype_;
  const IndexRange range_;
};

}  // namespace

std::unique_ptr<Kernel> make_gather(StepSpec &spec, int whole, const PartIndex &index, const PartExtent &places,
                                    const IndexRange &range) {
  return std::make_unique<GatherCuda>(spec, whole, index, places, range);
}
std::unique_ptr<Kernel> make_add_up(StepSpec &spec, const PartIndex &index, const PartExtent &places) {
  return std::make_unique<AddUpCuda>(spec, index, places);
}
std::unique_ptr<Kernel> make_put(StepSpec &spec, int before, int data, int indices, const PartIndex &index,
                                 const PartExtent &places, const IndexRange &range) {
  return std::make_unique<PutCuda>(spec, before, data, indices, index, places, range);
}

}  // namespace indexing
}  // namespace cohort
