// SPDX-License-Identifier: Apache-2.0
// A queue that is a CUDA stream. Kernels are launched by the thread that enqueues.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "cuda/cuda_completion.hpp"
#include "cuda/cuda_memory.hpp"
#include "cuda/cuda_upload.hpp"
#include "device/device.hpp"
#include "device/trace.hpp"

namespace cohort {

class CudaQueue final : public Queue {
 public:
  // `pool` and `ring` belong to the device.
  CudaQueue(std::shared_ptr<Device> device, DevicePool &pool, PinnedRing &ring, int id, Trace *trace);
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
  // Calls `enqueue`, which puts work on the stream. The ticket's owner, and the memory that `enqueue` puts into the
  // ticket, are kept until the stream has finished that work; if `enqueue` throws, the owner is told.
  template <typename Enqueue>
  void add(const Enqueue &enqueue, PendingWork::Ticket ticket);
  void enqueue_steps(const Program &program, StepsEnqueued *steps, StepRange *now);
  void take_input_error(const Program &program, PendingWork::Ticket *ticket);
  void wait_for_input_error(const Program &program, PendingWork::Ticket *ticket);
  void fetch_input_error(InputError *to);  // and clears it for the programs that follow
  // Copies between the device and pageable memory. *staging: what has to be kept until the stream has done them.
  void upload(void *to, const void *from, size_t bytes, std::shared_ptr<const void> *staging);
  void download(void *to, const void *from, size_t bytes, std::shared_ptr<const void> *staging);
  std::shared_ptr<const Error> error_in(const StepRange &steps, const std::exception &e) const noexcept;
  std::shared_ptr<const Error> error_in(const StepRange &steps, cudaError_t status) const noexcept;
  InputError *input_error();
  cudaError_t finish_stream() noexcept;  // waits for all enqueued work
  bool stream_is_idle() const;           // false also if the device has failed

  const std::shared_ptr<Device> device_;
  DevicePool &pool_;
  PinnedRing &ring_;
  const int id_;
  Trace *const trace_;
  const TraceRow row_;  // records when steps are enqueued, not when the GPU runs them
  cudaStream_t stream_ = nullptr;
  const std::string fault_;  // steps whose label contains this fail
  const bool replays_;
  InputError *input_error_ = nullptr;  // device memory, shared by all programs; null until first needed
  const std::shared_ptr<PendingWork> pending_;
  bool computes_ = false;  // a program that is run again and again may not be done
  StagedUploads staged_;
};

}  // namespace cohort
