// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"

#include <cstdlib>

namespace cohort {

const Setting kBackendPath = {"COHORT_BACKEND_PATH", "",
                              "Folders, absolute and separated by colons, in which backends such as libcohort_cuda.so "
                              "are looked for before the folder of libcohort.so."};
const Setting kTrace = {"COHORT_TRACE", "",
                        "What to write to the log at level debug, separated by commas: plan (each plan when it is "
                        "made, with the kernel of each step and why others were refused), step (each step when it is "
                        "queued)."};
const Setting kCheck = {
    "COHORT_CHECK", "",
    "What to look after while running, separated by commas: outputs (a step that leaves elements of "
    "an output unwritten fails). Slow."};
const Setting kFault = {"COHORT_FAULT", "",
                        "Name of a node whose step fails when it is run: to see what a program does about it."};
const Setting kSumTimeout = {"COHORT_SUM_TIMEOUT", "300",
                             "Seconds after which a GPU counts as lost that does not come to a sum of gradients to "
                             "which others have come."};
const Setting kCudaGraphs = {"COHORT_CUDA_GRAPHS", "1",
                             "1: what a GPU does again and again, forward, backward and updates, is replayed as CUDA "
                             "graphs from the third time on. 0: step by step. Results are the same."};
const Setting kCudaCache = {"COHORT_CUDA_CACHE", "",
                            "Folder, absolute, in which machine code that is made for fused operators on GPUs is kept "
                            "for the processes that come later. None: each makes its own."};

const std::vector<const Setting *> &all_settings() {
  static const auto *const all = new std::vector<const Setting *>{&kBackendPath, &kTrace,      &kCheck,    &kFault,
                                                                  &kSumTimeout,  &kCudaGraphs, &kCudaCache};
  return *all;
}

std::string read_setting(const Setting &setting) {
  const char *value = std::getenv(setting.name);
  return value ? value : setting.default_text;
}

namespace {

bool lists(const Setting &setting, const char *word) {
  return ("," + read_setting(setting) + ",").find("," + std::string(word) + ",") != std::string::npos;
}

}  // namespace

bool trace_enabled(const char *what) { return lists(kTrace, what); }
bool check_enabled(const char *what) { return lists(kCheck, what); }

}  // namespace cohort
