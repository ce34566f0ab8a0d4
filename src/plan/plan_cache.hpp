// SPDX-License-Identifier: Apache-2.0
// Plans by what they were compiled from. A plan holds no array and belongs to no queue: whoever binds the same network
// for the same shapes on devices of one kind is given the same one, while anybody uses it, and for some time after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "plan/plan.hpp"

namespace cohort {

// As compile(). Any thread; what two threads ask for at once may be compiled by both, and both are given one of the
// two.
std::shared_ptr<const Plan> shared_plan(const PlanRequest &request);

struct PlanCacheUse {
  size_t plans = 0;       // that somebody has, or that are kept
  size_t kept_steps = 0;  // of those kept though nobody may use them
  uint64_t compiled = 0;  // so far
};
PlanCacheUse plan_cache_use();

// Plans of host devices that were used last are kept up to so many steps in all, of which one with oneDNN's primitives
// takes some 25 KB. Lets go of them.
constexpr size_t kKeptSteps = 1024;
void release_plans() noexcept;

}  // namespace cohort
