// SPDX-License-Identifier: Apache-2.0
// Replays a program that a queue runs repeatedly as CUDA graphs: it is run twice step by step, then captured. A graph
// holds consecutive steps whose kernels can be replayed (Kernel::replays()). Used by cuda_queue.cc.
#pragma once

#include <cuda_runtime.h>

#include <deque>
#include <memory>
#include <vector>

#include "cuda/cuda_completion.hpp"
#include "cuda/cuda_memory.hpp"
#include "device/device.hpp"
#include "device/run_value.hpp"

namespace cohort {

// Belongs to one queue, and is used on the thread that enqueues. Destroyed when the queue has finished its work.
class CudaReplay final : public Replay, private ReplayRecorder {
 public:
  CudaReplay(std::shared_ptr<DevicePool> pool, int id) : pool_(std::move(pool)), id_(id) {}
  ~CudaReplay() override;

  // Enqueues the program; the device is current. *now: the steps being enqueued, which fail if it throws.
  void run(const Program &program, cudaStream_t stream, StepsEnqueued *steps, StepRange *now);

 private:
  // Steps [begin, end) of the program; without a graph they are run one by one.
  struct Piece {
    size_t begin, end;
    cudaGraphExec_t graph = nullptr;
    size_t first_source = 0, end_source = 0;  // their changing numbers ..
    size_t at = 0, bytes = 0;                 // .. and where these lie in the block
  };
  struct Source {
    const void *numbers;
    RandomStream *random;  // if it is a draw
    size_t at, bytes;      // in the block
  };
  struct Upload {  // a copy in flight
    std::shared_ptr<void> pinned;
    std::shared_ptr<CudaEvent> copied;
  };

  void run_steps(const Program &program, size_t begin, size_t end, cudaStream_t stream, ReplayRecorder *recorder,
                 StepRange *now) const;
  void record(const Program &program);
  void capture(const Program &program, cudaStream_t stream, Piece *piece, StepRange *now);
  void upload(const Piece &piece, cudaStream_t stream);
  std::shared_ptr<void> take_block() const;
  void forget();
  const void *record_numbers(const void *numbers, size_t bytes) override;
  const RandomStream *record_draw(RandomStream *random) override;
  const void *add(Source source);

  const std::shared_ptr<DevicePool> pool_;
  const int id_;
  bool may_report_error_ = false;
  enum class State { kNew, kOnce, kCounted, kReady, kNever } state_ = State::kNew;
  std::vector<Piece> pieces_;
  std::vector<Source> sources_;
  // Numbers that change from run to run, in device memory; the second run determines its size.
  size_t block_bytes_ = 0, used_ = 0;
  std::shared_ptr<void> block_;  // null while the size is being counted
  std::deque<Upload> uploads_;   // the oldest first
};

}  // namespace cohort
