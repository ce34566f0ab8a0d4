// SPDX-License-Identifier: Apache-2.0
// Cuts the steps of a plan over several devices into segments, which go to the devices' queues. A segment waits only
// for those segments of other devices that write what it reads, or read what it overwrites, so that the devices work at
// the same time as far as the network allows. Private to src/executor.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.hpp"

namespace cohort {

struct Segment {
  size_t begin, end;          // steps of the plan, all on one device
  bool awaited = false;       // a segment of another device waits for its end
  std::vector<size_t> after;  // segments that it waits for: of other devices, earlier in the list
};

// The segments are in the order of the plan. None reaches over the end of the forward steps, and none of backward waits
// for one of forward: the caller must order the two. `in_turn`: each waits for the one before, so that one device works
// at a time: for arrays of several devices that overlap in memory.
std::vector<Segment> cut_segments(const Plan &plan, bool in_turn);

}  // namespace cohort
