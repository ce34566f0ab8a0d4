// SPDX-License-Identifier: Apache-2.0
// A queue that is a CUDA stream. Kernels are launched by the thread that enqueues.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "cuda/cuda_completion.hpp"
#include "cuda/cuda_memory.hpp"
#include "device/device.hpp"
#include "device/trace.hpp"

namespace cohort {

class CudaQueue final : public Queue {
 public:
  CudaQueue(std::shared_ptr<Device> device, DevicePool &pool, int id, Trace *trace);  // the device has the pool
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
  using Failed = void (*)(const void *owner, const char *message);
  // The work is done, or has failed, by `enqueue`; then it is the owner's until the stream has finished it, and what
  // `enqueue` has put into the ticket stays, too.
  template <typename Enqueue>
  void add(const Enqueue &enqueue, PendingWork::Ticket ticket);
  void enqueue_steps(const Program &program, StepsEnqueued *steps, Stretch *now);
  void take_complaint(const Program &program, PendingWork::Ticket *ticket);
  void look_at_complaint(const Program &program, PendingWork::Ticket *ticket);
  void fetch_complaint(Complaint *to);  // and what comes behind finds none
  std::shared_ptr<const Error> error_in(const Stretch &steps, const std::exception &e) const noexcept;
  std::shared_ptr<const Error> error_in(const Stretch &steps, cudaError_t status) const noexcept;
  Complaint *complaint();
  cudaError_t finish_stream() noexcept;  // the caller waits for what has been enqueued

  const std::shared_ptr<Device> device_;
  DevicePool &pool_;
  const int id_;
  Trace *const trace_;
  const TraceRow row_;  // steps are there when they are enqueued, not when the GPU runs them
  cudaStream_t stream_ = nullptr;
  const std::string fault_;  // the step whose label has this fails
  const bool replays_;
  Complaint *complaint_ = nullptr;  // of all its programs, in the device's memory; null as long as there was none
  const std::shared_ptr<PendingWork> pending_;
};

}  // namespace cohort
