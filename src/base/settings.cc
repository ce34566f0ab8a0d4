// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"

#include <cstdlib>

namespace cohort {

const Setting kBackendPath = {"COHORT_BACKEND_PATH", "",
                              "Folders, absolute and separated by colons, in which backends such as libcohort_cuda.so "
                              "are looked for before the folder of libcohort.so."};
const Setting kTrace = {"COHORT_TRACE", "",
                        "What to write to the log at level debug, separated by commas: plan (each plan when it is "
                        "made), step (each step when it is queued)."};
const Setting kFault = {"COHORT_FAULT", "",
                        "Name of a node whose step fails when it is run: to see what a program does about it."};

const std::vector<const Setting *> &all_settings() {
  static const auto *const all = new std::vector<const Setting *>{&kBackendPath, &kTrace, &kFault};
  return *all;
}

std::string read_setting(const Setting &setting) {
  const char *value = std::getenv(setting.name);
  return value ? value : setting.default_text;
}

bool trace_enabled(const char *what) {
  return ("," + read_setting(kTrace) + ",").find("," + std::string(what) + ",") != std::string::npos;
}

}  // namespace cohort
