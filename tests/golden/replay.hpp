// SPDX-License-Identifier: Apache-2.0
// Replays cases in isolation: a case that crashes or hangs its process, or breaks a GPU, fails alone, and the next one
// runs in a new process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenario.hpp"

namespace golden {

enum class Verdict { kPassed, kFailed, kSkipped };

struct Outcome {
  Verdict verdict = Verdict::kFailed;
  std::vector<std::string> failures;  // one line each; the reason if the case is skipped
};

// Called with each case's outcome, in order.
using Report = std::function<void(const GoldenCase &, const Outcome &)>;

// Replays a case in this process. It fails if a handle that it made is alive at the end.
Outcome replay(const GoldenCase &golden_case, const Settings &settings);

// Replays cases in child processes. A case may take `limit_s` seconds. This process must not have used the library.
void replay_in_children(const std::vector<GoldenCase> &cases, const Settings &settings, int limit_s,
                        const Report &report);

}  // namespace golden
