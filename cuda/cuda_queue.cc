// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_queue.hpp"

#include <utility>
#include <vector>

#include "cuda/cuda_check.hpp"

namespace cohort {

CudaEvent::CudaEvent(int device) : device_(device) {
  const CurrentDevice current(device_);
  CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}

CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

void CudaEvent::record(cudaStream_t stream) { CUDA_CHECK(cudaEventRecord(event_, stream)); }

bool CudaEvent::done() const { return cudaEventQuery(event_) != cudaErrorNotReady; }

void CudaEvent::wait() const { cudaEventSynchronize(event_); }

CudaQueue::CudaQueue(std::shared_ptr<Device> device, int id) : device_(std::move(device)), id_(id) {
  const CurrentDevice current(id_);
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

CudaQueue::~CudaQueue() {
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

void CudaQueue::fail(const Error &error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!error_) error_ = std::make_unique<Error>(error);
  failed_.store(true, std::memory_order_release);
}

void CudaQueue::keep(std::shared_ptr<const void> owner) {
  if (!owner) return;
  std::vector<std::shared_ptr<const void>> finished;  // owners go outside the lock: a host's function may free them
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<CudaEvent> event;
  while (!pending_.empty() && pending_.front().event->done()) {
    finished.push_back(std::move(pending_.front().owner));
    event = std::move(pending_.front().event);  // serves again
    pending_.pop_front();
  }
  if (!pending_.empty() && pending_.back().owner == owner)
    event = std::move(pending_.back().event), pending_.pop_back();
  if (!event) event = std::make_shared<CudaEvent>(id_);
  event->record(stream_);
  pending_.push_back({std::move(event), std::move(owner)});
}

void CudaQueue::run(const Program &program, std::shared_ptr<const void> owner) {
  const void *const who = owner.get();
  const char *label = "";
  std::string reason = "skipped after an earlier failure";
  if (program.contained || !failed_.load(std::memory_order_acquire)) {
    try {
      const CurrentDevice current(id_);
      const Lane lane{1, stream_};
      for (size_t s = 0; s < program.count; ++s) {
        label = program.steps[s].label;
        program.steps[s].kernel->run(program.steps[s].args, lane);
        CUDA_CHECK(cudaPeekAtLastError());
      }
      keep(std::move(owner));
      return;
    } catch (const std::exception &e) {
      cudaGetLastError();
      reason = text(label, ": ", e.what());
      if (!program.contained) fail(Error(Code::kExecution, reason, label));
    }
  }
  if (program.failed) program.failed(who, reason.c_str());
}

void CudaQueue::call(std::function<void()> fn, const char *label) {
  if (failed_.load(std::memory_order_acquire)) return;
  try {
    const CurrentDevice current(id_);
    fn();
  } catch (const std::exception &e) {
    fail(Error(Code::kExecution, text(label, ": ", e.what()), label));
  }
}

void CudaQueue::copy(void *to, const void *from, size_t bytes, std::shared_ptr<const void> owner,
                     void (*failed)(const void *owner, const char *message)) {
  if (bytes == 0) return;
  const void *const who = owner.get();
  std::string reason = "skipped after an earlier failure";
  if (!failed_.load(std::memory_order_acquire)) {
    try {
      const CurrentDevice current(id_);
      CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
      keep(std::move(owner));
      return;
    } catch (const std::exception &e) {
      reason = text("copy: ", e.what());
      fail(Error(Code::kExecution, reason, "copy"));
    }
  }
  if (failed) failed(who, reason.c_str());
}

std::shared_ptr<Event> CudaQueue::record() {
  auto event = std::make_shared<CudaEvent>(id_);
  const CurrentDevice current(id_);
  event->record(stream_);
  return event;
}

void CudaQueue::wait(std::shared_ptr<Event> event) {
  const auto *const cuda = dynamic_cast<const CudaEvent *>(event.get());
  if (!cuda) {
    // Another backend's event, which waits for nothing that is not queued already. Not left to a host function in the
    // stream: the driver may run those of all streams on one thread, and one could wait for what is behind another.
    event->wait();
    return;
  }
  try {
    const CurrentDevice current(id_);
    CUDA_CHECK(cudaStreamWaitEvent(stream_, cuda->handle(), 0));
    keep(std::move(event));
  } catch (const std::exception &e) {
    fail(Error(Code::kExecution, text("wait: ", e.what()), "wait"));
  }
}

void CudaQueue::sync() {
  cudaError_t status;
  {
    const CurrentDevice current(id_);
    status = cudaStreamSynchronize(stream_);
  }
  std::unique_ptr<Error> error;
  std::deque<Pending> finished;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    error = std::move(error_);
    finished.swap(pending_);
    failed_.store(false, std::memory_order_release);
  }
  finished.clear();  // owners go outside the lock
  if (error) throw *error;
  if (status != cudaSuccess) {
    throw Error(Code::kExecution, text("CUDA: ", cudaGetErrorString(status), " on gpu(", id_, ")"), "cuda");
  }
}

void CudaQueue::finish() noexcept {
  try {
    const CurrentDevice current(id_);
    cudaStreamSynchronize(stream_);  // what went wrong is what the next sync() finds
  } catch (const Error &) {          // no such device any more, and nothing runs on it
  }
}

void CudaQueue::check() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_) throw *error_;
}

bool CudaQueue::idle() const {
  return !failed_.load(std::memory_order_acquire) && cudaStreamQuery(stream_) == cudaSuccess;
}

}  // namespace cohort
