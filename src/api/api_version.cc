// SPDX-License-Identifier: Apache-2.0
#include "cohort/version.h"

#include <cstring>

#include "api/guard.hpp"
#include "device/device.hpp"

using namespace cohort;

const char *cohort_version(void) { return COHORT_VERSION; }

int32_t cohort_version_number(void) {
  return COHORT_VERSION_MAJOR * 10000 + COHORT_VERSION_MINOR * 100 + COHORT_VERSION_PATCH;
}

int32_t cohort_has_feature(const char *name) {
  if (!name) return 0;
  for (const char *built_in : {"cpu", "onednn", "dlpack"}) {
    if (std::strcmp(name, built_in) == 0) return 1;
  }
  int32_t found = 0;
  if (std::strcmp(name, "cuda") == 0) {
    std::string reason;
    cohort_error_free(api::guard([&] { found = backend_available(DeviceType::kGpu, &reason); }));
  }
  return found;
}
