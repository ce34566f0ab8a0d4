// SPDX-License-Identifier: Apache-2.0
// Plans over several devices, divided into segments: each segment waits for those it depends on and for no others.
#include "executor/segments.hpp"

#include <memory>
#include <string>

#include "support/unit.hpp"

namespace cohort {
namespace {

// A plan of forward steps over arena values of 64 bytes each.
struct Sketch {
  Plan plan;

  int value(int device, size_t offset) {
    Slot slot;
    slot.location = ValueLocation::kArena;
    slot.device = device;
    slot.offset = offset;
    slot.bytes = 64;
    plan.slots.push_back(slot);
    return int(plan.slots.size()) - 1;
  }
  int argument(int device, int index) {
    const int made = value(device, 0);
    plan.slots[size_t(made)].location = ValueLocation::kArgument;
    plan.slots[size_t(made)].index = index;
    return made;
  }
  void step(int device, std::vector<int> inputs, std::vector<int> outputs) {
    PlanStep step;
    step.device = device;
    step.inputs = std::move(inputs);
    step.outputs = std::move(outputs);
    plan.steps.push_back(std::move(step));
    plan.num_forward = plan.steps.size();
  }
};

// "0-2@0* 2-3@1(0)": steps 0 and 1 on device 0, awaited; step 2 on device 1 after segment 0.
std::string described(const Plan &plan, bool in_turn = false) {
  std::string all;
  for (const Segment &segment : cut_segments(plan, in_turn)) {
    if (!all.empty()) all += ' ';
    all += std::to_string(segment.begin) + "-" + std::to_string(segment.end) + "@" +
           std::to_string(plan.steps[segment.begin].device) + (segment.awaited ? "*" : "");
    for (const size_t before : segment.after) all += "(" + std::to_string(before) + ")";
  }
  return all;
}

TEST(one_device_is_one_segment_each_way) {
  Sketch sketch;
  const int a = sketch.value(0, 0), b = sketch.value(0, 64);
  sketch.step(0, {}, {a});
  sketch.step(0, {a}, {b});
  CHECK_EQ(described(sketch.plan), "0-2@0");
  sketch.plan.num_forward = 1;
  CHECK_EQ(described(sketch.plan), "0-1@0 1-2@0");
}

TEST(a_reader_waits_for_the_value_alone) {
  Sketch sketch;
  const int a = sketch.value(0, 0), b = sketch.value(0, 64), copy = sketch.value(1, 0);
  sketch.step(0, {}, {a});
  sketch.step(0, {a}, {b});     // runs on while the other device reads
  sketch.step(1, {}, {});       // needs nothing
  sketch.step(1, {a}, {copy});  // needs step 0
  CHECK_EQ(described(sketch.plan), "0-1@0* 1-2@0 2-3@1 3-4@1(0)");
}

TEST(a_place_is_reused_when_the_other_device_has_read_it) {
  Sketch sketch;
  const int a = sketch.value(0, 0), again = sketch.value(0, 32), far = sketch.value(0, 96), copy = sketch.value(1, 0);
  sketch.step(0, {}, {a});
  sketch.step(1, {a}, {copy});
  sketch.step(0, {}, {far});    // beside it
  sketch.step(0, {}, {again});  // over it
  CHECK_EQ(described(sketch.plan), "0-1@0* 1-2@1*(0) 2-3@0 3-4@0(1)");
}

TEST(waits_that_follow_from_others_are_left_out) {
  Sketch sketch;
  const int a = sketch.value(0, 0), b = sketch.value(0, 64), on_1 = sketch.value(1, 0), on_2 = sketch.value(2, 0);
  sketch.step(0, {}, {a});
  sketch.step(0, {}, {b});
  sketch.step(1, {b}, {on_1});     // after step 1, so after step 0
  sketch.step(1, {a}, {on_1});     // nothing new
  sketch.step(2, {on_1}, {on_2});  // after device 1, which came after both of device 0
  sketch.step(2, {a}, {on_2});
  CHECK_EQ(described(sketch.plan), "0-2@0* 2-4@1*(0) 4-6@2(1)");
}

TEST(arguments_may_be_written_where_they_are_read) {
  Sketch sketch;
  const int weight = sketch.argument(0, 3), other = sketch.argument(0, 4), copy = sketch.value(1, 0);
  sketch.step(0, {weight}, {});
  sketch.step(1, {weight}, {copy});
  sketch.step(0, {other}, {});
  sketch.step(0, {weight}, {});
  CHECK_EQ(described(sketch.plan), "0-1@0* 1-2@1*(0) 2-3@0 3-4@0(1)");
}

TEST(in_turn_each_device_waits_for_the_one_before) {
  Sketch sketch;
  sketch.step(0, {}, {});
  sketch.step(1, {}, {});
  sketch.step(1, {}, {});
  sketch.step(0, {}, {});
  CHECK_EQ(described(sketch.plan), "0-1@0 1-3@1 3-4@0");
  CHECK_EQ(described(sketch.plan, true), "0-1@0* 1-3@1*(0) 3-4@0(1)");
}

TEST(backward_does_not_wait_for_forward) {
  Sketch sketch;
  const int a = sketch.value(0, 0), copy = sketch.value(1, 0);
  sketch.step(0, {}, {a});
  sketch.step(1, {}, {});
  sketch.step(1, {a}, {copy});
  sketch.plan.num_forward = 2;
  CHECK_EQ(described(sketch.plan), "0-1@0 1-2@1 2-3@1");
}

}  // namespace
}  // namespace cohort

UNIT_MAIN()
