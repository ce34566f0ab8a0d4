// SPDX-License-Identifier: Apache-2.0
// The environment variables that Cohort reads, all of them: they find a backend, help to debug, or say when a machine
// has broken. What a program wants to set, it sets in option structs.
#pragma once

#include <string>
#include <vector>

namespace cohort {

struct Setting {
  const char *name;
  const char *default_text;
  const char *meaning;
};

extern const Setting kBackendPath;  // COHORT_BACKEND_PATH
extern const Setting kTrace;        // COHORT_TRACE
extern const Setting kCheck;        // COHORT_CHECK
extern const Setting kFault;        // COHORT_FAULT
extern const Setting kSumTimeout;   // COHORT_SUM_TIMEOUT
extern const Setting kCudaGraphs;   // COHORT_CUDA_GRAPHS
extern const Setting kCudaCache;    // COHORT_CUDA_CACHE

const std::vector<const Setting *> &all_settings();
// The variable's text now, or the default. Not for warm paths: whoever asks keeps the answer.
std::string read_setting(const Setting &setting);
bool trace_enabled(const char *what);  // is `what` one of the words in COHORT_TRACE
bool check_enabled(const char *what);  // the same for COHORT_CHECK

}  // namespace cohort
