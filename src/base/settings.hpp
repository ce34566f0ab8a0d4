// SPDX-License-Identifier: Apache-2.0
// All environment variables that Cohort reads. They locate a backend, help to debug, or bound the wait for a broken
// device; everything else is set through option structs.
#pragma once

#include <string>
#include <vector>

namespace cohort {

struct EnvironmentSetting {
  const char *name;
  const char *default_text;
  const char *meaning;
};

extern const EnvironmentSetting kBackendPath;  // COHORT_BACKEND_PATH
extern const EnvironmentSetting kTrace;        // COHORT_TRACE
extern const EnvironmentSetting kCheck;        // COHORT_CHECK
extern const EnvironmentSetting kFault;        // COHORT_FAULT
extern const EnvironmentSetting kSumTimeout;   // COHORT_SUM_TIMEOUT
extern const EnvironmentSetting kCudaGraphs;   // COHORT_CUDA_GRAPHS
extern const EnvironmentSetting kCudaCache;    // COHORT_CUDA_CACHE

const std::vector<const EnvironmentSetting *> &all_settings();
// The variable's current text, or the default. Slow: callers cache the result.
std::string read_setting(const EnvironmentSetting &setting);
bool trace_enabled(const char *what);  // true if COHORT_TRACE lists the word `what`
bool check_enabled(const char *what);  // the same for COHORT_CHECK

}  // namespace cohort
