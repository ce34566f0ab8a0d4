// SPDX-License-Identifier: Apache-2.0
// The queues of one user of devices (an executor and those that share its memory, or operators applied at once),
// treated as one ordered stream of work. Arrays remember which timelines used them last (ndarray/hazards.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.hpp"

namespace cohort {

// The owner enqueues from one thread at a time and waits for its work before it releases the timeline. Any thread may
// call the functions below.
class Timeline {
 public:
  Timeline() = default;
  explicit Timeline(std::shared_ptr<Queue> queue, bool shared = false) : shared_(shared), queues_{std::move(queue)} {}
  Timeline(const Timeline &) = delete;
  Timeline &operator=(const Timeline &) = delete;

  void add(std::shared_ptr<Queue> queue);
  std::vector<std::shared_ptr<Queue>> queues() const;
  // Appends events that cover all unfinished work enqueued so far.
  void record(std::vector<std::shared_ptr<Event>> *events) const;
  // Makes work enqueued later wait for the events, without blocking the caller.
  void wait_for(const std::vector<std::shared_ptr<Event>> &events) const;
  // Runs `check` on every queue before later work; if it throws, that work fails. Not for shared timelines.
  void check_first(const std::function<void()> &check, const char *label) const;
  // Counts work handed to the owner, so that others can tell whether more has arrived. Called by one thread at a time,
  // so a plain load and store suffice.
  void count_submission() { num_submitted_.store(num_submitted() + 1, std::memory_order_relaxed); }
  uint64_t num_submitted() const { return num_submitted_.load(std::memory_order_relaxed); }
  bool idle() const;    // all work has finished, and no error is pending
  void finish() const;  // waits for the work; errors stay pending for sync()
  void sync() const;    // waits, then throws the first error of the work, once
  // No failure is pending that would make work enqueued now be skipped.
  bool has_no_pending_failure() const;
  // On a timeline shared by several users (immediate_timeline()), held while enqueuing. Their programs are `isolated`,
  // so that a failure of one does not affect the others.
  std::unique_lock<std::mutex> lock_to_enqueue() const { return std::unique_lock<std::mutex>(enqueue_mutex_); }

 private:
  const bool shared_ = false;
  std::atomic<uint64_t> num_submitted_{0};
  mutable std::mutex enqueue_mutex_;
  mutable std::mutex mutex_;  // guards queues_
  std::vector<std::shared_ptr<Queue>> queues_;
};

// The shared timeline of a device for copies and single operators that belong to no executor. It has one queue; all
// callers get the same object while anyone holds it.
std::shared_ptr<Timeline> immediate_timeline(const Context &context);

}  // namespace cohort
