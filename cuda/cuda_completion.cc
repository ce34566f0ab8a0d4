// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_completion.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "cuda/cuda_context.hpp"

namespace cohort {
namespace {

constexpr std::chrono::milliseconds kLook{20};

// The thread that looks. It ends when nothing is pending, and is made anew.
class Watch {
 public:
  void add(const std::shared_ptr<PendingWork> &work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_.push_back(work);
    if (looking_) return;
    std::thread([this] { look(); }).detach();
    looking_ = true;
  }

 private:
  void look() {
    for (;;) {
      std::this_thread::sleep_for(kLook);
      std::vector<std::shared_ptr<PendingWork>> all;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        all.swap(pending_);
      }
      all.erase(std::remove_if(all.begin(), all.end(), [](const auto &work) { return !work->still_pending(); }),
                all.end());
      const std::lock_guard<std::mutex> lock(mutex_);
      pending_.insert(pending_.end(), all.begin(), all.end());
      looking_ = !pending_.empty();
      if (!looking_) return;
    }
  }

  std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<PendingWork>> pending_;
  bool looking_ = false;
};

Watch &watch() {
  static auto *const instance = new Watch;  // queues outlive static objects
  return *instance;
}

}  // namespace

CudaEvent::CudaEvent(int device) : device_(device) {
  const CurrentDevice current(device_);
  CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}

CudaEvent::~CudaEvent() {
  const CurrentDevice current(device_, std::nothrow);
  cudaEventDestroy(event_);
}

void CudaEvent::record(cudaStream_t stream) { CUDA_CHECK(cudaEventRecord(event_, stream)); }

cudaError_t CudaEvent::status() const {
  const CurrentDevice current(device_, std::nothrow);
  const cudaError_t status = cudaEventQuery(event_);
  if (status != cudaSuccess) cudaGetLastError();
  return status;
}

void CudaEvent::wait() const {
  const CurrentDevice current(device_, std::nothrow);
  if (cudaEventSynchronize(event_) != cudaSuccess) cudaGetLastError();
}

void PendingWork::keep(const std::shared_ptr<PendingWork> &self, cudaStream_t stream, Ticket ticket) {
  self->collect();
  const std::lock_guard<std::mutex> lock(self->mutex_);
  auto &tickets = self->tickets_;
  auto &free_events = self->free_events_;
  const bool again = !tickets.empty() && tickets.back().owner == ticket.owner && tickets.back().failed == ticket.failed;
  if (again) {
    ticket.event = tickets.back().event;
  } else if (!free_events.empty()) {
    ticket.event = std::move(free_events.back());
    free_events.pop_back();
  } else {
    ticket.event = std::make_shared<CudaEvent>(self->device_);
  }
  ticket.event->record(stream);
  if (again) {
    tickets.back().label = ticket.label;
  } else {
    tickets.push_back(std::move(ticket));
  }
  if (!self->watched_) watch().add(self);
  self->watched_ = true;
}

bool PendingWork::still_pending() {
  collect();
  const std::lock_guard<std::mutex> lock(mutex_);
  watched_ = !tickets_.empty();
  return watched_;
}

void PendingWork::collect() {
  std::vector<Ticket> done;  // goes after the lock: an owner may end this queue
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!tickets_.empty()) {
      const cudaError_t status = tickets_.front().event->status();
      if (status == cudaErrorNotReady) break;
      done.push_back(std::move(tickets_.front()));
      tickets_.pop_front();
      if (status == cudaSuccess) {
        free_events_.push_back(std::move(done.back().event));
        done.back().failed = nullptr;
        continue;
      }
      const std::string why =
          text("CUDA: ", cudaGetErrorString(status), " on gpu(", device_, "), in ", done.back().label, " or before it");
      if (!error_) error_ = std::make_unique<Error>(Code::kExecution, why, done.back().label);
      failed_.store(true, std::memory_order_release);
    }
  }
  for (const Ticket &ticket : done) {
    if (!ticket.failed) continue;
    std::string why = "its device failed";
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (error_) why = error_->what();
    }
    ticket.failed(ticket.owner.get(), why.c_str());
  }
}

void PendingWork::fail(const Error &error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!error_) error_ = std::make_unique<Error>(error);
  failed_.store(true, std::memory_order_release);
}

void PendingWork::throw_first() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_) throw *error_;
}

std::unique_ptr<Error> PendingWork::take_first() {
  const std::lock_guard<std::mutex> lock(mutex_);
  failed_.store(false, std::memory_order_release);
  return std::move(error_);
}

}  // namespace cohort
