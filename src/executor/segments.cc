// SPDX-License-Identifier: Apache-2.0
// Mostly a device works in its own memory; copies read or write that of another one (plan/placement.cc). A step has to
// wait for steps of other devices
// - that were the last to write memory which it reads or writes;
// - that have since read memory which it writes.
// Waits that follow from others are left out: a vector clock tells how far the other devices have come at least when a
// step ends.
#include "executor/segments.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "base/range_map.hpp"

namespace cohort {
namespace {

// The last uses of memory of one kind on one device: bytes of an arena, or arrays by their index.
class AccessHistory {
 public:
  // `step` reads [begin, end). The last writers there are appended to *before.
  void read(size_t begin, size_t end, size_t step, std::vector<size_t> *before) {
    uses_.update(begin, end, [&](Uses &uses) {
      if (uses.writer != kNobody) before->push_back(uses.writer);
      uses.readers.push_back(step);
    });
  }
  // `step` writes [begin, end). The last writers there, and the readers since, are appended to *before.
  void write(size_t begin, size_t end, size_t step, std::vector<size_t> *before) {
    uses_.for_each_in(begin, end, [&](const Uses &uses) {
      if (uses.writer != kNobody) before->push_back(uses.writer);
      before->insert(before->end(), uses.readers.begin(), uses.readers.end());
    });
    uses_.set(begin, end, {step, {}});
  }

 private:
  static constexpr size_t kNobody = SIZE_MAX;
  struct Uses {
    size_t writer = kNobody;
    std::vector<size_t> readers;
  };

  RangeMap<Uses> uses_;
};

class SegmentCutter {
 public:
  explicit SegmentCutter(const Plan &plan)
      : plan_(plan), needs_(plan.steps.size()), cut_(plan.steps.size() + 1, false) {}

  std::vector<Segment> run(bool in_turn) {
    for (size_t s = 0; s <= plan_.steps.size(); ++s) {
      cut_[s] = s == 0 || s == plan_.num_forward || s == plan_.steps.size() || device(s) != device(s - 1);
    }
    if (in_turn) {
      for (size_t s = 1; s < plan_.steps.size(); ++s) {
        if (cut_[s] && s != plan_.num_forward) needs_[s].push_back(s - 1);
      }
    } else {
      find_needs();
      drop_implied();
    }
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      for (const size_t before : needs_[s]) cut_[s] = cut_[before + 1] = true;
    }
    return collect();
  }

 private:
  int device(size_t step) const { return plan_.steps[step].device; }
  const Slot &slot(int index) const { return plan_.slots[size_t(index)]; }

  static size_t begin_of(const Slot &slot) {
    return slot.location == ValueLocation::kArena ? slot.offset : size_t(slot.index);
  }
  static size_t end_of(const Slot &slot) {
    return begin_of(slot) + (slot.location == ValueLocation::kArena ? slot.bytes : 1);
  }

  void find_needs() {
    const auto on_first = [&](const PlanStep &step) { return step.device == plan_.steps[0].device; };
    if (std::all_of(plan_.steps.begin(), plan_.steps.end(), on_first)) return;
    std::map<std::pair<int, ValueLocation>, AccessHistory> places;
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      if (s == plan_.num_forward) places.clear();
      const PlanStep &step = plan_.steps[s];
      const auto history = [&](const Slot &at) -> AccessHistory & { return places[{at.device, at.location}]; };
      std::vector<size_t> before;
      for (const int index : step.inputs) {
        if (index < 0) continue;
        const Slot &from = slot(index);
        history(from).read(begin_of(from), end_of(from), s, &before);
      }
      const auto write = [&](int index) {
        if (index < 0 || slot(index).location == ValueLocation::kNowhere) return;
        const Slot &to = slot(index);
        history(to).write(begin_of(to), end_of(to), s, &before);
      };
      for (const int index : step.outputs) write(index);
      write(step.scratch);
      write(step.saved);
      for (const int index : step.inputs) {  // arguments and auxiliary states may be written by steps that read them
        if (index < 0 || slot(index).device != step.device) continue;
        const ValueLocation location = slot(index).location;
        if (location == ValueLocation::kArgument || location == ValueLocation::kAuxiliary) write(index);
      }
      for (const size_t other : before)
        if (device(other) != step.device) needs_[s].push_back(other);
    }
  }

  void drop_implied() {
    int num_devices = 0;
    for (const PlanStep &step : plan_.steps) num_devices = std::max(num_devices, step.device + 1);
    using Clock = std::vector<size_t>;  // per device: its steps before this one have ended
    std::vector<Clock> now(size_t(num_devices), Clock(size_t(num_devices), 0)), at_end(plan_.steps.size());
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      Clock &clock = now[size_t(device(s))];
      std::vector<size_t> kept;
      std::sort(needs_[s].rbegin(), needs_[s].rend());  // the latest first: it implies most
      for (const size_t before : needs_[s]) {
        if (clock[size_t(device(before))] > before) continue;
        kept.push_back(before);
        for (size_t d = 0; d < clock.size(); ++d) clock[d] = std::max(clock[d], at_end[before][d]);
      }
      needs_[s] = std::move(kept);
      clock[size_t(device(s))] = s + 1;
      at_end[s] = clock;
    }
  }

  std::vector<Segment> collect() {
    std::vector<Segment> segments;
    std::vector<size_t> segment_of(plan_.steps.size());
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      if (cut_[s]) segments.push_back({s, s, false, {}});
      Segment &segment = segments.back();
      segment.end = s + 1;
      segment_of[s] = segments.size() - 1;
      for (const size_t before : needs_[s]) {
        segment.after.push_back(segment_of[before]);
        segments[segment_of[before]].awaited = true;
      }
    }
    return segments;
  }

  const Plan &plan_;
  std::vector<std::vector<size_t>> needs_;  // per step: steps of other devices that it waits for
  std::vector<bool> cut_;                   // a segment begins at this step
};

}  // namespace

std::vector<Segment> cut_segments(const Plan &plan, bool in_turn) { return SegmentCutter(plan).run(in_turn); }

}  // namespace cohort
