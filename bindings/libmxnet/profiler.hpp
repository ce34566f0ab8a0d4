// SPDX-License-Identifier: Apache-2.0
// Times of the host's own operators for the profiler, which cannot see into the host's code. Both classes do nothing
// unless it records.
#pragma once

#include <chrono>
#include <string>

namespace cohort_mxnet {

// A callback of a custom operator, during its lifetime on this thread.
class CustomOperatorSpan {
 public:
  explicit CustomOperatorSpan(std::string op);
  CustomOperatorSpan(const CustomOperatorSpan &) = delete;
  CustomOperatorSpan &operator=(const CustomOperatorSpan &) = delete;
  ~CustomOperatorSpan();

 private:
  const std::string *outer_;
  std::string op_;
  std::chrono::steady_clock::time_point begun_;
};

// An operator that is applied, if a callback of a custom operator does it.
class AppliedInCallbackSpan {
 public:
  explicit AppliedInCallbackSpan(const std::string &op);
  AppliedInCallbackSpan(const AppliedInCallbackSpan &) = delete;
  AppliedInCallbackSpan &operator=(const AppliedInCallbackSpan &) = delete;
  ~AppliedInCallbackSpan();

 private:
  const std::string &op_;
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace cohort_mxnet
