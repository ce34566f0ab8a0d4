// SPDX-License-Identifier: Apache-2.0
// The queues of one user of devices (an executor and its family, or whatever runs at once), seen as one order of work.
// Arrays remember on which timelines they were used last (ndarray/hazards.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.hpp"

namespace cohort {

// Its owner enqueues, one thread at a time, and waits for the work before it lets the timeline go; any thread may call
// what is below.
class Timeline {
 public:
  Timeline() = default;
  explicit Timeline(std::shared_ptr<Queue> queue, bool shared = false) : shared_(shared), queues_{std::move(queue)} {}
  Timeline(const Timeline &) = delete;
  Timeline &operator=(const Timeline &) = delete;

  void add(std::shared_ptr<Queue> queue);
  std::vector<std::shared_ptr<Queue>> queues() const;
  // Appends events that stand for all work enqueued so far that has not finished.
  void record(std::vector<std::shared_ptr<Event>> *events) const;
  // Work that is enqueued later comes after these; the caller does not wait.
  void wait_for(const std::vector<std::shared_ptr<Event>> &events) const;
  // Runs `check` on every queue before work that is enqueued later; what it throws fails that work. Not on a shared
  // one.
  void check_first(const std::function<void()> &check, const char *label) const;
  // Counts what its owner is given to do, for those who ask whether there has been more since.
  // By one thread at a time, so that this need not be one operation.
  void count() { num_given_.store(num_given() + 1, std::memory_order_relaxed); }
  uint64_t num_given() const { return num_given_.load(std::memory_order_relaxed); }
  bool idle() const;    // all of its work has finished, and no error waits for sync()
  void finish() const;  // waits for its work; errors of it stay for sync()
  void sync() const;    // waits; then throws the first error of the work, once
  // What its work has failed to do has been told, and what is enqueued now is not skipped for it.
  bool is_sound() const;
  // Held while they enqueue by those who share the timeline with others (immediate_timeline()): their programs are
  // contained, so that what fails is no business of the rest.
  std::unique_lock<std::mutex> turn() const { return std::unique_lock<std::mutex>(turn_); }

 private:
  const bool shared_ = false;
  std::atomic<uint64_t> num_given_{0};
  mutable std::mutex turn_;
  mutable std::mutex mutex_;  // guards queues_
  std::vector<std::shared_ptr<Queue>> queues_;
};

// The timeline of what is run at once on a device, for no executor: copies and single operators. It has one queue, and
// is the same one as long as anybody holds it.
std::shared_ptr<Timeline> immediate_timeline(const Context &context);

}  // namespace cohort
