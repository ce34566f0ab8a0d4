// SPDX-License-Identifier: Apache-2.0
// A queue that is a CUDA stream. Kernels are launched by the thread that enqueues.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "device/device.hpp"

namespace cohort {

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(int device);
  ~CudaEvent() override;
  void record(cudaStream_t stream);
  bool done() const override;
  void wait() const override;
  cudaEvent_t handle() const { return event_; }

 private:
  const int device_;
  cudaEvent_t event_ = nullptr;
};

class CudaQueue final : public Queue {
 public:
  CudaQueue(std::shared_ptr<Device> device, int id);
  ~CudaQueue() override;

  void run(const Program &program, std::shared_ptr<const void> owner) override;
  void call(std::function<void()> fn, const char *label) override;
  void copy(void *to, const void *from, size_t bytes, std::shared_ptr<const void> owner,
            void (*failed)(const void *owner, const char *message)) override;
  std::shared_ptr<Event> record() override;
  void wait(std::shared_ptr<Event> event) override;
  void sync() override;
  void finish() noexcept override;
  void check() const override;
  bool idle() const override;
  int num_threads() const override { return 1; }

 private:
  // Work of an owner that the stream may not have finished: the owner lives until `event` is done.
  struct Pending {
    std::shared_ptr<CudaEvent> event;
    std::shared_ptr<const void> owner;
  };

  void keep(std::shared_ptr<const void> owner);
  void fail(const Error &error);  // the first one is kept

  const std::shared_ptr<Device> device_;
  const int id_;
  cudaStream_t stream_ = nullptr;
  mutable std::mutex mutex_;  // guards the three below
  std::deque<Pending> pending_;
  std::unique_ptr<Error> error_;
  std::atomic<bool> failed_{false};
};

}  // namespace cohort
