// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_completion.hpp"

#include <map>
#include <utility>

#include "cuda/cuda_context.hpp"

namespace cohort {
namespace {

// Handles that are not in use. One that was recorded may be recorded anew: who waits for it waits for what it stood
// for.
class FreeEvents {
 public:
  cudaEvent_t take(int device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<cudaEvent_t> &free = free_[device];
    if (free.empty()) return nullptr;
    const cudaEvent_t event = free.back();
    free.pop_back();
    return event;
  }
  bool keep(int device, cudaEvent_t event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<cudaEvent_t> &free = free_[device];
    if (free.size() >= kMostFree) return false;
    free.push_back(event);
    return true;
  }

 private:
  enum { kMostFree = 256 };
  std::mutex mutex_;  // guards free_
  std::map<int, std::vector<cudaEvent_t>> free_;
};

FreeEvents &free_events() {
  static auto *const instance = new FreeEvents;  // events outlive static objects
  return *instance;
}

}  // namespace

CudaEvent::CudaEvent(int device, std::shared_ptr<PendingWork> complaining)
    : device_(device), complaining_(std::move(complaining)), event_(free_events().take(device)) {
  if (event_) return;
  const CurrentDevice current(device_);
  CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}

CudaEvent::~CudaEvent() {
  if (free_events().keep(device_, event_)) return;
  const CurrentDevice current(device_, std::nothrow);
  cudaEventDestroy(event_);
}

void CudaEvent::record(cudaStream_t stream) {
  check_cuda(cudaEventRecord(event_, stream), text("cudaEventRecord on gpu(", device_, ")").c_str());
}

cudaError_t CudaEvent::status() const {
  const CurrentDevice current(device_, std::nothrow);
  const cudaError_t status = cudaEventQuery(event_);
  if (status != cudaSuccess) cudaGetLastError();
  // The process ends, and a thread still looks: the work has not failed, and nobody is to be told anything any more.
  return status == cudaErrorCudartUnloading ? cudaErrorNotReady : status;
}

bool CudaEvent::done() const {
  if (!over()) return false;
  if (complaining_) complaining_->collect();
  return true;
}

void CudaEvent::wait() const {
  {
    const CurrentDevice current(device_, std::nothrow);
    if (cudaEventSynchronize(event_) != cudaSuccess) cudaGetLastError();
  }
  if (complaining_) complaining_->collect();
}

void PendingWork::keep(const std::shared_ptr<PendingWork> &self, cudaStream_t stream, Ticket ticket) {
  self->collect();
  const std::lock_guard<std::mutex> lock(self->mutex_);
  auto &tickets = self->tickets_;
  const bool again = !tickets.empty() && !ticket.staging && !tickets.back().steps &&
                     tickets.back().owner == ticket.owner && tickets.back().failed == ticket.failed;
  ticket.event = again ? tickets.back().event : std::make_shared<CudaEvent>(self->device_);
  ticket.event->record(stream);
  if (again) {
    tickets.back().label = ticket.label;
  } else {
    if (ticket.steps) self->num_complaining_.fetch_add(1, std::memory_order_release);
    tickets.push_back(std::move(ticket));
  }
  // Found since it was enqueued.
  if (self->failed() && !tickets.back().contained) tickets.back().follows_failure = true;
  if (!self->watched_) watch(self);
  self->watched_ = true;
}

bool PendingWork::look() {
  collect();
  const std::lock_guard<std::mutex> lock(mutex_);
  watched_ = !tickets_.empty();
  return watched_;
}

void PendingWork::finish() const {
  std::shared_ptr<CudaEvent> last;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!tickets_.empty()) last = tickets_.back().event;
  }
  if (last) last->wait();
}

void PendingWork::collect() {
  std::vector<Ticket> done;  // goes after the locks: an owner may end this queue
  const std::lock_guard<std::mutex> telling(telling_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!tickets_.empty()) {
      const cudaError_t status = tickets_.front().event->status();
      if (status == cudaErrorNotReady) break;
      const std::string failure = failure_of(tickets_.front(), status);
      done.push_back(std::move(tickets_.front()));
      tickets_.pop_front();
      Ticket &ticket = done.back();
      if (!failure.empty()) {
        const Error error(Code::kExecution, failure, ticket.label);
        set_failed(&error);
        for (Ticket &later : tickets_) later.follows_failure = !later.contained;
      } else if (!ticket.follows_failure) {
        ticket.failed = nullptr;
      }
      if (ticket.steps) num_complaining_.fetch_sub(1, std::memory_order_release);
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

// Empty: it has not failed.
std::string PendingWork::failure_of(const Ticket &ticket, cudaError_t status) const {
  if (status != cudaSuccess) {
    return text("CUDA: ", cudaGetErrorString(status), " on gpu(", device_, "), in ", ticket.label, " or before it");
  }
  if (!ticket.steps) return "";
  const Complaint &complaint = *static_cast<const Complaint *>(ticket.staging.get());
  if (complaint.behind == 0) return "";
  return text(ticket.steps[complaint.step].label, ": ", in_words(complaint, ticket.steps));
}

void PendingWork::fail(const Error *error) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  set_failed(error);
}

void PendingWork::set_failed(const Error *error) noexcept {
  if (failed_.exchange(true, std::memory_order_acq_rel) || !error) return;
  try {
    error_ = std::make_unique<Error>(*error);
  } catch (const std::bad_alloc &) {
  }
}

std::unique_ptr<Error> PendingWork::first() const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    return error_ ? std::make_unique<Error>(*error_) : nullptr;
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

void PendingWork::throw_first() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed()) return;
  if (!error_) throw std::bad_alloc();
  throw *error_;
}

void PendingWork::throw_and_forget() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_.exchange(false, std::memory_order_acq_rel)) return;
  const std::unique_ptr<Error> error = std::move(error_);
  if (!error) throw std::bad_alloc();
  throw *error;
}

}  // namespace cohort
