// SPDX-License-Identifier: Apache-2.0
// Replays cases, each one's outcome apart from all others: a case that kills or hangs the process fails, or a GPU, and
// the next one gets a new process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenario.hpp"

namespace golden {

enum class Verdict { kPassed, kFailed, kSkipped };

struct Outcome {
  Verdict verdict = Verdict::kFailed;
  std::vector<std::string> failures;  // a line each; of a skipped case the reason
};

// Called with each case's outcome, in order.
using Report = std::function<void(const GoldenCase &, const Outcome &)>;

// In this process. A handle that the case leaves alive is a failure.
Outcome replay(const GoldenCase &golden_case, const Settings &settings);

// In child processes. A case may take `limit_s` seconds. The library must not have been used in this process.
void replay_apart(const std::vector<GoldenCase> &cases, const Settings &settings, int limit_s, const Report &report);

}  // namespace golden
