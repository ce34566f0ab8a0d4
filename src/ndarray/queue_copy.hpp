// SPDX-License-Identifier: Apache-2.0
// The one way in which arrays get from place to place in the order of queues.
#pragma once

#include <cstdint>
#include <memory>

#include "ndarray/ndarray.hpp"

namespace cohort {

class WorkInfo;

// For traces, of a copy of elements that is not by Queue::copy, which tells of itself.
const WorkInfo *copy_info();

// Rows [begin, end) of an array along an axis; all of it with axis -1.
struct ArrayPart {
  NDArray array;
  int axis = -1;
  int64_t begin = 0, end = 0;

  ArrayPart() = default;
  ArrayPart(NDArray whole) : array(std::move(whole)) {}
  ArrayPart(NDArray of, int along, int64_t from, int64_t to)
      : array(std::move(of)), axis(along), begin(from), end(to) {}
  explicit operator bool() const { return bool(array); }
  Shape shape() const;
  bool contiguous() const;  // its elements lie one after the other
};

// Queues a copy of `from` into `to`, which has as many elements, casting where the types differ; after what writes the
// one and uses the other. The caller does not wait, but for failures that are known. `queue` is one of `by`, on the
// device of `to`; the owner of `by` keeps `to` until it is done. Rows that lie one after the other are read where they
// are; memory of a GPU is read and written by its own queues; what a GPU cannot do on the way is done on the host.
void queue_copy(const ArrayPart &from, const NDArray &to, const std::shared_ptr<Timeline> &by, Queue &queue);
// The same on the timeline of what runs at once on the device of `to`; from any thread.
void copy_at_once(const ArrayPart &from, const NDArray &to);

}  // namespace cohort
