// SPDX-License-Identifier: Apache-2.0
// The unfinished work of a stream, with its owners. An owner is released when its work is done, either by a call on the
// queue or by a thread that polls while work is pending: an owner may hold the very queue that it waits for. If the
// work has failed, the owner is told before it is released.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cuda/cuda_input_errors.hpp"
#include "cuda/cuda_poll.hpp"
#include "device/device.hpp"

namespace cohort {

class PendingWork;

// Consecutive steps, by the labels of the first and the last.
struct StepRange {
  const char *first = "", *last = "";
};
std::string in_words(const StepRange &steps);  // "FullyConnected 'fc1' to SoftmaxOutput 'softmax'", or one label

// Its handle is recycled.
class CudaEvent final : public Event {
 public:
  // done() and wait() also report the errors of `reporting`, if given.
  explicit CudaEvent(int device, std::shared_ptr<PendingWork> reporting = nullptr);
  ~CudaEvent() override;
  void record(cudaStream_t stream);
  bool done() const override;
  void wait() const override;
  cudaError_t status() const;
  bool over() const { return status() != cudaErrorNotReady; }  // succeeded or failed
  cudaEvent_t handle() const { return event_; }
  int device() const { return device_; }
  const std::shared_ptr<PendingWork> &reporting() const { return reporting_; }

 private:
  const int device_;
  const std::shared_ptr<PendingWork> reporting_;
  cudaEvent_t event_ = nullptr;
};

// The work of one queue. Safe to use from any thread.
class PendingWork final : public Pollable {
 public:
  explicit PendingWork(int device) : device_(device) {}

  struct Ticket {
    std::shared_ptr<CudaEvent> event;
    std::shared_ptr<const void> owner;
    void (*failed)(const void *owner, const char *message);
    StepRange step_range;                           // its work
    const char *program = nullptr;                  // Program::name
    std::shared_ptr<const void> staging = nullptr;  // memory in use until then
    // Set if steps may have recorded an InputError, which `staging` then holds. The owner keeps the steps alive.
    const Step *steps = nullptr;
    bool contained = false, follows_failure = false;
  };
  // Keeps the owner of work that has just been enqueued until that is done. If the ticket before it is of the same
  // owner and program and is not done, the two become one.
  static void keep(const std::shared_ptr<PendingWork> &self, cudaStream_t stream, Ticket ticket);
  void collect() noexcept;  // releases the owners of finished work; tells those whose work has failed
  // Whether an InputError may be there that has not been read yet.
  bool may_report_error() const { return num_reporting_.load(std::memory_order_acquire) > 0; }
  bool poll() override;
  void finish() const override;

  void fail(std::shared_ptr<const Error> error) noexcept;  // keeps the first one; null: the host had no memory for it
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  std::shared_ptr<const Error> first() const noexcept;  // null: there was no memory for it
  void throw_first() const;                             // keeps it
  void throw_and_forget();

 private:
  void set_failed(std::shared_ptr<const Error> error) noexcept;  // mutex_ is held
  std::shared_ptr<const Error> error_of(const Ticket &ticket, cudaError_t status) const noexcept;
  std::string where() const;

  const int device_;
  std::mutex
      telling_;  // held while owners are told of failures, so that a missing ticket means a told one; taken first
  mutable std::mutex mutex_;  // guards the members below; no owner is released while it is held
  std::list<Ticket> tickets_;
  bool polled_ = false;
  std::shared_ptr<const Error> error_;  // null although failed_: there was no memory for it
  std::atomic<bool> failed_{false};
  std::atomic<int> num_reporting_{0};
};

}  // namespace cohort
