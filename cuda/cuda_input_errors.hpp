// SPDX-License-Identifier: Apache-2.0
// Errors in the numbers that kernels are given, such as an index out of range. Kernels cannot throw: the first wrong
// number is recorded in device memory of the queue, the kernel goes on with the nearest valid one, and the queue throws
// once the work is done. Used by cuda_queue.cc and by kernels (cuda/op/expected.cuh).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "device/device.hpp"

namespace cohort {

// One in device memory per queue, and a copy in pinned memory for each program that may have recorded one.
struct InputError {
  unsigned long long behind;  // count of numbers from the first wrong one to the end; 0: no error
  int64_t is_whole;           // 1: the other fields are set, by the first step that found an error
  int64_t step, place, found, least, most;
};

// A kernel that may record an InputError, and puts it into words.
class ReportsInputErrors {
 public:
  virtual ~ReportsInputErrors() = default;
  virtual std::string in_words(const InputError &input_error) const = 0;
};

std::string in_words(const InputError &input_error, const Step *steps);

// The steps that this thread is enqueueing.
class StepsEnqueued {
 public:
  using ErrorLocation = std::function<InputError *()>;
  explicit StepsEnqueued(ErrorLocation place) : place_(std::move(place)), outer_(now_) { now_ = this; }
  ~StepsEnqueued() { now_ = outer_; }
  StepsEnqueued(const StepsEnqueued &) = delete;
  StepsEnqueued &operator=(const StepsEnqueued &) = delete;

  static StepsEnqueued *now() { return now_; }  // null: errors would not be read
  void is_at(size_t step) { step_ = step; }
  int64_t step() const { return int64_t(step_); }
  // The record for a kernel to write to.
  InputError *place() {
    may_report_error_ = true;
    return place_();
  }
  bool may_report_error() const { return may_report_error_; }
  void note_replay() { may_report_error_ = true; }  // a graph whose steps may record an error

 private:
  const ErrorLocation place_;
  StepsEnqueued *const outer_;
  size_t step_ = 0;
  bool may_report_error_ = false;
  static thread_local StepsEnqueued *now_;
};

}  // namespace cohort
