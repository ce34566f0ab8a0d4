// SPDX-License-Identifier: Apache-2.0
// Functions of the process as a whole: its end, its environment, its devices.
#include <cstdlib>

#include "handles.hpp"
#include "mxnet/c_api.h"

using namespace cohort_mxnet;

extern "C" {

int MXNotifyShutdown() {
  return guarded([&] {
    cohort_error_free(cohort_wait_all());  // nobody is left to be told of an error
  });
}

int MXGetEnv(const char *name, const char **value) {
  return guarded([&] {
    require(name, "name");
    required(value, "value") = std::getenv(name);
  });
}

int MXSetEnv(const char *name, const char *value) {
  return guarded([&] {
    require(name, "name"), require(value, "value");
    if (setenv(name, value, 1) != 0) fail(std::string("the environment variable '") + name + "' cannot be set");
  });
}

int MXGetGPUCount(int *out) {
  return guarded([&] {
    required(out, "out") =
        static_cast<int>(cohort::query<size_t>(cohort_num_devices, cohort_device_type{COHORT_DEVICE_GPU}));
  });
}

int MXEngineSetBulkSize(int bulk_size, int *prev_bulk_size) {
  return guarded([&] {
    static thread_local int size = 15;
    if (prev_bulk_size) *prev_bulk_size = size;
    size = bulk_size;
  });
}

int MXStorageEmptyCache(int dev_type, int dev_id) {
  return guarded([&] {
    const cohort_context context{dev_type, dev_id};
    cohort_device_memory_info info = COHORT_DEVICE_MEMORY_INFO_INIT;
    cohort::check(cohort_device_memory(&context, &info));  // an error for a device that does not exist
  });
}

}  // extern "C"
