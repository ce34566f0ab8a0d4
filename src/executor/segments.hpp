// SPDX-License-Identifier: Apache-2.0
// How the steps of a plan over several devices go to their queues: in pieces that wait for those pieces of other
// devices alone from which they read, or whose reading they would spoil. The devices then work at the same time as far
// as the network allows. Private to src/executor.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.hpp"

namespace cohort {

struct Segment {
  size_t begin, end;          // steps of the plan, all on one device
  bool awaited = false;       // a segment of another device waits for its end
  std::vector<size_t> after;  // those that it waits for: segments of other devices, earlier in the list
};

// In the order of the plan. No segment reaches over the end of the forward steps, and none of backward waits for one of
// forward: what runs the two must order them. `in_turn`: each waits for the one before, so that one device works at a
// time: for arrays of several devices that lie in the same memory.
std::vector<Segment> cut_segments(const Plan &plan, bool in_turn);

}  // namespace cohort
