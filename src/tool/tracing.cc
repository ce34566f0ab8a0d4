// SPDX-License-Identifier: Apache-2.0
#include "tool/tracing.hpp"

namespace cohort::tool {

Tracing::Tracing(const Arguments &arguments) : path_(arguments.one("--trace")) {
  if (!arguments.has("--trace")) return;
  trace_.emplace();
  trace_->write(path_);
  trace_->start();
}

std::string Tracing::finish() {
  if (!trace_) return "";
  wait_all();
  trace_->stop();
  trace_->write(path_);
  return trace_->table(COHORT_TOTALS_BY_OPERATOR);
}

}  // namespace cohort::tool
