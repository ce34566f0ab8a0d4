// SPDX-License-Identifier: Apache-2.0
// Only copies read another device's memory, and nobody writes to it. So a step has to wait
// - if it reads another device's value: for the last step there that writes to its place;
// - if another device reads what lay in the place that it writes to: for that reading.
// Waits that follow from others are left out: for each step is known how far the other devices are at least when it
// ends (a vector clock).
#include "executor/segments.hpp"

#include <algorithm>

namespace cohort {
namespace {

bool same_place(const Slot &a, const Slot &b) {
  if (a.place == Place::kNowhere || a.place != b.place || a.device != b.device) return false;
  if (a.place != Place::kArena) return a.index == b.index;
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

class Cutter {
 public:
  explicit Cutter(const Plan &plan) : plan_(plan), needs_(plan.steps.size()), cut_(plan.steps.size() + 1, false) {}

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

  // Arguments and auxiliary states may be written by steps that have them as inputs.
  bool may_write(const PlanStep &step, const Slot &to) const {
    const auto hits = [&](int index) { return index >= 0 && same_place(slot(index), to); };
    const bool inputs_too = to.place == Place::kArgument || to.place == Place::kAuxiliary;
    return std::any_of(step.outputs.begin(), step.outputs.end(), hits) || hits(step.scratch) || hits(step.saved) ||
           (inputs_too && std::any_of(step.inputs.begin(), step.inputs.end(), hits));
  }

  void find_needs() {
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      for (const int index : plan_.steps[s].inputs) {
        if (index >= 0 && slot(index).device != device(s)) note_reading(s, slot(index));
      }
    }
  }

  // Step `s` reads another device's `from`.
  void note_reading(size_t s, const Slot &from) {
    const bool backward = s >= plan_.num_forward;
    const size_t first = backward ? plan_.num_forward : 0, end = backward ? plan_.steps.size() : plan_.num_forward;
    const auto writes = [&](size_t other) {
      return device(other) == from.device && may_write(plan_.steps[other], from);
    };
    for (size_t before = s; before-- > first;) {
      if (!writes(before)) continue;
      needs_[s].push_back(before);
      break;
    }
    for (size_t later = s + 1; later < end; ++later) {
      if (!writes(later)) continue;
      needs_[later].push_back(s);
      break;
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

std::vector<Segment> cut_segments(const Plan &plan, bool in_turn) { return Cutter(plan).run(in_turn); }

}  // namespace cohort
