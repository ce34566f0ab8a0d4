// SPDX-License-Identifier: Apache-2.0
// What kernels find wrong with the numbers that they are given, as an index out of range. They cannot throw: the first
// that is wrong is noted in the memory of the queue, the kernel goes on with what is in range, and the queue throws
// when it finds the note, which is when the work is done. Used by cuda_queue.cc, and by kernels (cuda/op/expected.cuh).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "device/device.hpp"

namespace cohort {

// In the memory of the device, one a queue; and a copy in pinned memory for each program that may have left one.
struct Complaint {
  unsigned long long behind;  // how many numbers come from the first wrong one on; 0: there is none
  int64_t is_whole;           // all else is there, which is that of the first step that complained
  int64_t step, place, found, least, most;
};

// A kernel that may complain says in which words.
class Complains {
 public:
  virtual ~Complains() = default;
  virtual std::string in_words(const Complaint &complaint) const = 0;
};

std::string in_words(const Complaint &complaint, const Step *steps);

// The steps that this thread enqueues now.
class StepsEnqueued {
 public:
  using Place = std::function<Complaint *()>;
  explicit StepsEnqueued(Place place) : place_(std::move(place)), outer_(now_) { now_ = this; }
  ~StepsEnqueued() { now_ = outer_; }
  StepsEnqueued(const StepsEnqueued &) = delete;
  StepsEnqueued &operator=(const StepsEnqueued &) = delete;

  static StepsEnqueued *now() { return now_; }  // null: nobody would look
  void is_at(size_t step) { step_ = step; }
  int64_t step() const { return int64_t(step_); }
  // Where a kernel notes what it complains of.
  Complaint *place() {
    may_complain_ = true;
    return place_();
  }
  bool may_complain() const { return may_complain_; }
  void note_replay() { may_complain_ = true; }  // of steps that may complain

 private:
  const Place place_;
  StepsEnqueued *const outer_;
  size_t step_ = 0;
  bool may_complain_ = false;
  static thread_local StepsEnqueued *now_;
};

}  // namespace cohort
