// SPDX-License-Identifier: Apache-2.0
// A step of a plan with addresses in the place of slots: what executors, applied operators and graphs inside nodes run.
#pragma once

#include "plan/plan.hpp"

namespace cohort {

inline size_t count_pointers(const PlanStep &step) { return step.inputs.size() + step.outputs.size(); }

// address_of(slot) is called for the step's inputs, outputs, scratch and saved memory, in this order; -1 is no slot.
// The pointers are written from `pointers` on.
template <typename AddressOf>
Step bound_step(const PlanStep &step, void **pointers, AddressOf &&address_of) {
  Step bound;
  bound.kernel = step.kernel.get();
  bound.label = step.label.c_str();
  bound.info = step.info.get();
  bound.args.inputs = pointers;
  for (const int slot : step.inputs) *pointers++ = address_of(slot);
  bound.args.outputs = pointers;
  for (const int slot : step.outputs) *pointers++ = address_of(slot);
  bound.args.scratch = address_of(step.scratch);
  bound.args.saved = address_of(step.saved);
  return bound;
}

}  // namespace cohort
