// SPDX-License-Identifier: Apache-2.0
#include "cohort/context.h"

#include "api/api.hpp"
#include "device/device.hpp"

using namespace cohort;
using namespace cohort::api;

cohort_error *cohort_context_parse(const char *source, cohort_context *out_context) {
  return guard([&] {
    require(out_context, "out_context");
    *out_context = from_context(parse_context(to_text(source, "text")));
  });
}

cohort_error *cohort_context_text(const cohort_context *context, char *out_text, size_t capacity, size_t *out_bytes) {
  return guard([&] {
    const std::string result = text(to_context(context));
    write_bytes(result.c_str(), result.size() + 1, out_text, capacity, out_bytes);
  });
}

cohort_error *cohort_num_devices(int32_t device_type, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = size_t(count_devices(make_context(device_type, 0).type));
  });
}

cohort_error *cohort_device_memory(const cohort_context *context, cohort_device_memory_info *out_info) {
  return guard([&] {
    const std::shared_ptr<Device> device = get_device(to_context(context));
    const MemoryAccount::Counts counts = memory_account(device->context()).counts();
    cohort_device_memory_info info = COHORT_DEVICE_MEMORY_INFO_INIT;
    info.used_bytes = counts.used;
    info.peak_bytes = counts.peak;
    info.cached_bytes = device->cached_bytes();
    info.limit_bytes = counts.limit;
    write_struct(&info, sizeof(info), out_info, "out_info");
  });
}

cohort_error *cohort_device_reset_peak_memory(const cohort_context *context) {
  return guard([&] { memory_account(get_device(to_context(context))->context()).reset_peak(); });
}

cohort_error *cohort_device_limit_memory(const cohort_context *context, size_t bytes) {
  return guard([&] { memory_account(get_device(to_context(context))->context()).set_limit(bytes); });
}

cohort_error *cohort_wait_all(void) {
  return guard([] { wait_for_all_queues(); });
}

cohort_error *cohort_dtype_parse(const char *source, int32_t *out_dtype) {
  return guard([&] {
    require(out_dtype, "out_dtype");
    *out_dtype = int32_t(dtype_from_name(to_text(source, "text")));
  });
}

cohort_error *cohort_dtype_text(int32_t dtype, const char **out_text) {
  return guard([&] {
    require(out_text, "out_text");
    *out_text = dtype_name(to_dtype(dtype));
  });
}

cohort_error *cohort_dtype_bytes(int32_t dtype, size_t *out_bytes) {
  return guard([&] {
    require(out_bytes, "out_bytes");
    *out_bytes = dtype_size(to_dtype(dtype));
  });
}
