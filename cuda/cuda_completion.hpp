// SPDX-License-Identifier: Apache-2.0
// What a stream has not finished yet, and who owns it. Owners are let go of when their work is done, by whoever comes
// by (a call on the queue) or else by a thread that looks from time to time as long as there is something: an owner may
// hold the very queue that it waits for. Work that turns out to have failed is told to its owner then.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cuda/cuda_complaints.hpp"
#include "cuda/cuda_watch.hpp"
#include "device/device.hpp"

namespace cohort {

class PendingWork;

// Some steps that follow each other, by the labels of the first and the last of them.
struct Stretch {
  const char *first = "", *last = "";
};
std::string in_words(const Stretch &steps);  // "FullyConnected 'fc1' to SoftmaxOutput 'softmax'"; of one: its label

// Its handle comes from those that are not in use any more.
class CudaEvent final : public Event {
 public:
  // Whoever finds it done finds that work's complaints told, too.
  explicit CudaEvent(int device, std::shared_ptr<PendingWork> complaining = nullptr);
  ~CudaEvent() override;
  void record(cudaStream_t stream);
  bool done() const override;
  void wait() const override;
  cudaError_t status() const;
  bool over() const { return status() != cudaErrorNotReady; }  // whatever there is to be told
  cudaEvent_t handle() const { return event_; }
  int device() const { return device_; }
  const std::shared_ptr<PendingWork> &complaining() const { return complaining_; }

 private:
  const int device_;
  const std::shared_ptr<PendingWork> complaining_;
  cudaEvent_t event_ = nullptr;
};

// Of one queue. Any thread.
class PendingWork final : public Watched {
 public:
  explicit PendingWork(int device) : device_(device) {}

  struct Ticket {
    std::shared_ptr<CudaEvent> event;
    std::shared_ptr<const void> owner;
    void (*failed)(const void *owner, const char *message);
    Stretch stretch;                                // its work ..
    const char *program = nullptr;                  // .. of what: Program::name
    std::shared_ptr<const void> staging = nullptr;  // what else is used until then
    // Of steps that may have complained, which the owner has: then `staging` is the Complaint.
    const Step *steps = nullptr;
    bool contained = false, follows_failure = false;
  };
  // The owner's work has been enqueued on the stream: keeps it until that is done. What has been enqueued last, and is
  // not done, is taken as one with it if it is of the same owner's program.
  static void keep(const std::shared_ptr<PendingWork> &self, cudaStream_t stream, Ticket ticket);
  void collect() noexcept;  // lets go of the owners of what is done, and tells those whose work has failed
  // Whether there are complaints of which nobody knows yet.
  bool may_complain() const { return num_complaining_.load(std::memory_order_acquire) > 0; }
  bool look() override;
  void finish() const override;

  void fail(std::shared_ptr<const Error> error) noexcept;  // the first one is kept; null: the host had no memory for it
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  std::shared_ptr<const Error> first() const noexcept;  // null: there was no memory for it
  void throw_first() const;                             // which stays
  void throw_and_forget();

 private:
  void set_failed(std::shared_ptr<const Error> error) noexcept;  // mutex_ is held
  std::shared_ptr<const Error> error_of(const Ticket &ticket, cudaError_t status) const noexcept;
  std::string where() const;

  const int device_;
  std::mutex telling_;  // whoever finds a ticket gone finds its failure told; taken first, and no owner goes either
  mutable std::mutex mutex_;  // guards what follows; no owner goes while it is held
  std::list<Ticket> tickets_;
  bool watched_ = false;
  std::shared_ptr<const Error> error_;  // null though it has failed: there was no memory for it
  std::atomic<bool> failed_{false};
  std::atomic<int> num_complaining_{0};
};

}  // namespace cohort
