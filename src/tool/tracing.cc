// SPDX-License-Identifier: Apache-2.0
#include "tool/tracing.hpp"

namespace cohort::tool {

Tracing::Tracing(const Arguments &arguments) : path_(arguments.one("--trace")) {
  if (!arguments.has("--trace")) return;
  trace_ = make<Trace>(cohort_trace_create, nullptr);
  check(cohort_trace_write(trace_.get(), path_.c_str()));
  check(cohort_trace_start(trace_.get()));
}

std::string Tracing::finish() {
  if (!trace_) return "";
  check(cohort_wait_all());
  check(cohort_trace_stop(trace_.get()));
  check(cohort_trace_write(trace_.get(), path_.c_str()));
  return query<const char *>(cohort_trace_table, trace_.get(), COHORT_TOTALS_BY_OPERATOR);
}

}  // namespace cohort::tool
