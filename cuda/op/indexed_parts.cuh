// SPDX-License-Identifier: Apache-2.0
// Parts of an array selected by indices: shared by Embedding, take, gather_nd and similar operators. If an index occurs
// several times, sums and assignments go through the occurrences in order, so that results repeat bit for bit and the
// last assignment counts. An index out of range that is an error on the CPU is recorded (expected.cuh), and clamped.
#pragma once

#include <memory>
#include <string>

#include "cuda/op/expected.cuh"
#include "kernels/ranking.hpp"

namespace cohort {
namespace indexing {

__device__ inline int64_t clamped(int64_t index, int64_t length) {
  return index < 0 ? 0 : index < length ? index : length - 1;
}

__device__ inline int64_t in_range(int64_t index, int64_t length, bool wraps) {
  if (wraps && (index < 0 || index >= length)) return (index % length + length) % length;
  return clamped(index, length);
}

// The index of a part of an array: from one number, or from a column of coordinates along its first axes.
struct PartIndex {
  Elements indices;
  int64_t count;     // of parts
  int64_t num_axes;  // coordinates
  int64_t lengths[kMaxAxes];
  bool wraps, negative;  // wraps modulo the length; adds it once to negative indices

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

// The whole array as (outer, parts, inner); the selected parts are (outer, count, inner).
struct PartExtent {
  int64_t outer, parts, inner;
};

// The positions of all indices, sorted by the part that each selects. `scratch` has sorting_bytes().
size_t sorting_bytes(int64_t count);
const Ranked<int64_t> *sort_places(const Lane &lane, const PartIndex &index, void *scratch);

// out = the selected parts.
void gather(const Lane &lane, const PartExtent &p, const PartIndex &index, const RawElements &whole,
            const RawElements &out);

// Each part of `whole` = the last value assigned to it; parts without one are those of `before`, or zeros.
void put(const Lane &lane, const PartExtent &p, const Ranked<int64_t> *sorted, int64_t count, const RawElements &from,
         const RawElements &before, const RawElements &whole);

PartIndex index_of(const TensorSpec &indices, int64_t length, bool wraps);
// Columns of coordinates (M, count).
PartIndex columns_of(const TensorSpec &indices, const Shape &whole, bool negative);
PartExtent places_of(const PartIndex &index, const Shape &whole, int axis);

// Checks the range of indices for operators that refuse others on the CPU.
struct IndexRange {
  const char *name = nullptr;  // of the input; null: no check, indices are clamped
  bool columns = false;        // the indices are columns of coordinates: the message says so

  void expect(const Lane &lane, const PartIndex &index) const {
    if (!name) return;
    for (int64_t axis = 0; axis < index.num_axes; ++axis) {
      const int64_t length = index.lengths[axis];
      expect_within(lane, index.indices, axis * index.count, index.count, index.negative ? -length : 0, length - 1);
    }
  }
  std::string in_words(const InputError &c, int64_t count) const {
    const std::string expected = text("expected ", c.least, " to ", c.most);
    if (!columns) return text(name, "[", c.place, "]: ", expected, ", found ", c.found);
    return text(name, ": ", expected, " along axis ", c.place / count, ", found ", c.found, " in column ",
                c.place % count);
  }
};
inline constexpr IndexRange kAnyIndex{}, kColumns{"indices", true};

// gather() as a kernel. Inputs: the whole array, at index `whole`, and the indices.
std::unique_ptr<Kernel> make_gather(StepSpec &spec, int whole, const PartIndex &index, const PartExtent &places,
                                    const IndexRange &range = kAnyIndex);
// Sums the values assigned to each part. Inputs: head gradient, indices.
std::unique_ptr<Kernel> make_add_up(StepSpec &spec, const PartIndex &index, const PartExtent &places);
// put() as a kernel. The arguments are positions among the inputs; before = -1: zeros.
std::unique_ptr<Kernel> make_put(StepSpec &spec, int before, int data, int indices, const PartIndex &index,
                                 const PartExtent &places, const IndexRange &range);

}  // namespace indexing
}  // namespace cohort
