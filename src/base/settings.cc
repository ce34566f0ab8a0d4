// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"

#include <cstdlib>

namespace cohort {

const EnvironmentSetting kBackendPath = {
    "COHORT_BACKEND_PATH", "",
    "Absolute folders, separated by colons, that are searched for backends such as "
    "libcohort_cuda.so before the folder of libcohort.so."};
const EnvironmentSetting kTrace = {
    "COHORT_TRACE", "",
    "What to write to the log at level debug, separated by commas: plan (each new plan, with the "
    "kernel of each step and why other kernels were refused), step (each step when it is queued)."};
const EnvironmentSetting kCheck = {
    "COHORT_CHECK", "",
    "What to check at run time, separated by commas: outputs (a step that leaves elements of an "
    "output unwritten fails). Slow."};
const EnvironmentSetting kFault = {
    "COHORT_FAULT", "", "Name of a node whose step fails when it runs, to test how a program handles the error."};
const EnvironmentSetting kSumTimeout = {
    "COHORT_SUM_TIMEOUT", "300",
    "Seconds a GPU may take to join a sum of gradients that other GPUs have joined; after that "
    "it counts as failed."};
const EnvironmentSetting kCudaGraphs = {
    "COHORT_CUDA_GRAPHS", "1",
    "1: work that a GPU repeats (forward, backward, updates) is replayed as CUDA graphs from "
    "the third time on. 0: steps are launched one by one. Results are the same."};
const EnvironmentSetting kCudaCache = {
    "COHORT_CUDA_CACHE", "",
    "Absolute folder in which machine code compiled for fused operators on GPUs is kept for "
    "later processes. Empty: each process compiles its own."};

const std::vector<const EnvironmentSetting *> &all_settings() {
  static const auto *const all = new std::vector<const EnvironmentSetting *>{
      &kBackendPath, &kTrace, &kCheck, &kFault, &kSumTimeout, &kCudaGraphs, &kCudaCache};
  return *all;
}

std::string read_setting(const EnvironmentSetting &setting) {
  const char *value = std::getenv(setting.name);
  return value ? value : setting.default_text;
}

namespace {

bool lists(const EnvironmentSetting &setting, const char *word) {
  return ("," + read_setting(setting) + ",").find("," + std::string(word) + ",") != std::string::npos;
}

}  // namespace

bool trace_enabled(const char *what) { return lists(kTrace, what); }
bool check_enabled(const char *what) { return lists(kCheck, what); }

}  // namespace cohort
