// SPDX-License-Identifier: Apache-2.0
// The part of the debug text that shows each step of a plan beside the limits of the machine.
#include <iomanip>

#include "base/error.hpp"
#include "device/recording.hpp"
#include "executor/planned_network.hpp"

namespace cohort {

std::string PlannedNetwork::roofline() const {
  const BoundPlan *shown = last_;
  if (!shown && !programs_.empty()) shown = programs_.begin()->second.get();
  if (!shown) return "";
  TextStream out;
  out << "Steps (MFLOP, MB, least us by the machine and what it is due to, us while traced):\n" << std::fixed;
  const auto describe = [&](const char *pass, const PlanStep &step) {
    const SharedArenas::DeviceArena &on = bound_.arenas->devices[bound_.arena_index[size_t(step.device)]];
    const TimeBound bound =
        time_bound(step.info->flops, step.info->bytes, step.info->factors, on.device->rates(on.queue->num_threads()));
    out << '\t' << pass << ' ' << step.label << (step.choice.name.empty() ? "" : " by " + step.choice.name) << ": "
        << std::setprecision(3) << step.info->flops / 1e6 << " MFLOP, " << step.info->bytes / 1e6 << " MB, ";
    if (bound.ns > 0) {
      out << std::setprecision(2) << bound.ns / 1e3 << " us by " << (bound.by_flops ? "flops" : "bytes") << ", ";
    } else {
      out << "- us, ";
    }
    if (step.info->num_runs() > 0) {
      out << std::setprecision(2) << step.info->mean_ns() / 1e3 << " us\n";
    } else {
      out << "- us\n";
    }
  };
  const Plan &plan = shown->plan();
  for (const PlanStep &step : plan.prologue) describe("once", step);
  for (size_t s = 0; s < plan.steps.size(); ++s) describe(s < plan.num_forward ? "forward" : "backward", plan.steps[s]);
  return out.str();
}

}  // namespace cohort
