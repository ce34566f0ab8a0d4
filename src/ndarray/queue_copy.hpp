// SPDX-License-Identifier: Apache-2.0
// Copies between arrays in the order of queues.
#pragma once

#include <cstdint>
#include <memory>

#include "ndarray/ndarray.hpp"

namespace cohort {

class WorkInfo;

// For traces: a copy of elements that does not go through Queue::copy, which reports itself.
const WorkInfo *copy_info();

// Rows [begin, end) of an array along an axis; the whole array with axis -1.
struct ArraySlice {
  NDArray array;
  int axis = -1;
  int64_t begin = 0, end = 0;

  ArraySlice() = default;
  ArraySlice(NDArray whole) : array(std::move(whole)) {}
  ArraySlice(NDArray of, int along, int64_t from, int64_t to)
      : array(std::move(of)), axis(along), begin(from), end(to) {}
  explicit operator bool() const { return bool(array); }
  Shape shape() const;
  bool contiguous() const;  // its elements are consecutive in memory
};

// Queues a copy of `from` to `to`, which has as many elements, casting if the types differ; it runs after writers of
// `from` and users of `to`. The caller waits only for failures that are known. `queue` belongs to `by` and to the
// device of `to`; the owner of `by` keeps `to` alive until the copy is done. Consecutive rows are read in place; a
// GPU's memory is accessed by its own queues; conversions that a GPU cannot do are done on the host.
void queue_copy(const ArraySlice &from, const NDArray &to, const std::shared_ptr<Timeline> &by, Queue &queue);
// Likewise on the immediate timeline of the device of `to`; thread-safe.
void copy_at_once(const ArraySlice &from, const NDArray &to);
// The same into a slice of an array on the same GPU, of the same type.
void paste_at_once(const NDArray &from, const ArraySlice &to);
// Queues the value to all elements of an array on a GPU: the bytes of the element, the first one lowest.
void fill_at_once(const NDArray &to, uint64_t value);

}  // namespace cohort
