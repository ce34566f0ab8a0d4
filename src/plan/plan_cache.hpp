// SPDX-License-Identifier: Apache-2.0
// Caches plans by what they were compiled from. A plan holds no array and belongs to no queue, so everything that binds
// the same network for the same shapes on devices of one kind shares one. A plan is kept for a while after its last
// use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "plan/plan.hpp"

namespace cohort {

// Like compile(). Thread-safe; if two threads request the same plan at once, both may compile it, and both get the same
// one.
std::shared_ptr<const Plan> shared_plan(const PlanRequest &request);

struct PlanCacheUse {
  size_t plans = 0;       // in use or kept
  size_t kept_steps = 0;  // steps of plans kept for possible later use
  uint64_t compiled = 0;  // number compiled so far
};
PlanCacheUse plan_cache_use();

// The most recently used plans of host devices are kept, up to this many steps in total; a step with oneDNN primitives
// takes about 25 KB. release_plans() frees them.
constexpr size_t kKeptSteps = 1024;
void release_plans() noexcept;

}  // namespace cohort
