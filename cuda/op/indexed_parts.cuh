// SPDX-License-Identifier: Apache-2.0
// Parts of an array by their indices: what Embedding, take, gather_nd and their like have in common. Sums and
// assignments to places that are named several times go through the indices in order, so that results repeat bit for
// bit and the last assignment counts. An index that is out of range, where the CPU has an error, is a complaint
// (expected.cuh), and goes on as the nearest one that is not.
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

// The whole as (outer, parts, inner), what is taken out of it as (outer, count, inner).
struct Places {
  int64_t outer, parts, inner;
};

// The places of all indices, sorted by the part that each names. `scratch` has sorting_bytes().
size_t sorting_bytes(int64_t count);
const Ranked<int64_t> *sort_places(const Lane &lane, const PartIndex &index, void *scratch);

// out = the part that is named.
void gather(const Lane &lane, const Places &p, const PartIndex &index, const Cells &whole, const Cells &out);

// whole = the last of what is named as each of its parts; the others are those of `before`, or zeros.
void put(const Lane &lane, const Places &p, const Ranked<int64_t> *sorted, int64_t count, const Cells &from,
         const Cells &before, const Cells &whole);

PartIndex index_of(const TensorSpec &indices, int64_t length, bool wraps);
// Columns of coordinates (M, count).
PartIndex columns_of(const TensorSpec &indices, const Shape &whole, bool negative);
Places places_of(const PartIndex &index, const Shape &whole, int axis);

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
inline constexpr IndexRange kAnyIndex{}, kColumns{"indices", true};

// Inputs: the whole and indices, in an order that differs.
std::unique_ptr<Kernel> make_gather(StepSpec &spec, int whole, const PartIndex &index, const Places &places,
                                    const IndexRange &range = kAnyIndex);
// Sums of what is named as each part. Inputs: head gradient, indices.
std::unique_ptr<Kernel> make_add_up(StepSpec &spec, const PartIndex &index, const Places &places);
// Inputs: [the array before,] data, indices; with the index first: _contrib_index_copy has it so.
std::unique_ptr<Kernel> make_put(StepSpec &spec, int before, int data, int indices, const PartIndex &index,
                                 const Places &places, const IndexRange &range);

}  // namespace indexing
}  // namespace cohort
