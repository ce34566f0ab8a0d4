// SPDX-License-Identifier: Apache-2.0
#include "cohort/calibration.h"

#include "api/objects.hpp"

using namespace cohort;
using namespace cohort::api;

cohort_error *cohort_calibration_create(cohort_calibration_method method, cohort_calibration **out_calibration) {
  return guard([&] {
    require(out_calibration, "out_calibration");
    if (method != COHORT_CALIBRATION_MIN_MAX && method != COHORT_CALIBRATION_ENTROPY) {
      throw Error(Code::kInvalidArgument, text("method: expected a COHORT_CALIBRATION_ constant, found ", method),
                  "method");
    }
    *out_calibration = make_handle<cohort_calibration>({std::make_shared<Calibration>(Calibration::Method(method))});
  });
}

cohort_error *cohort_calibration_create_from(const cohort_arrays *ranges, cohort_calibration **out_calibration) {
  return guard([&] {
    require(out_calibration, "out_calibration");
    *out_calibration =
        make_handle<cohort_calibration>({std::make_shared<Calibration>(read_ranges(deref(ranges, "ranges")))});
  });
}

void cohort_calibration_free(cohort_calibration *calibration) {
  const CallScope inside;
  free_handle(calibration);
}

cohort_error *cohort_calibration_observe(cohort_calibration *calibration, cohort_executor *executor) {
  return guard([&] { deref(calibration, "calibration").calibration->observe(*deref(executor, "executor").executor); });
}

cohort_error *cohort_calibration_range(const cohort_calibration *calibration, const char *name, double *out_low,
                                       double *out_high) {
  return guard([&] {
    const std::string key = to_text(name, "name");
    const auto ranges = deref(calibration, "calibration").calibration->ranges();
    const auto found = ranges->find(key);
    if (found == ranges->end()) throw Error(Code::kName, text("calibration: no value '", key, "' was observed"), key);
    write_if(out_low, found->second.low);
    write_if(out_high, found->second.high);
  });
}

cohort_error *cohort_calibration_ranges(const cohort_calibration *calibration, cohort_arrays **out_ranges) {
  return guard([&] {
    require(out_ranges, "out_ranges");
    *out_ranges = make_handle<cohort_arrays>(to_arrays(*deref(calibration, "calibration").calibration->ranges()));
  });
}
