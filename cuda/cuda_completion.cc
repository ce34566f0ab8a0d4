// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_completion.hpp"

#include <algorithm>
#include <cstring>
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
  bool keep(int device, cudaEvent_t event) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    try {
      std::vector<cudaEvent_t> &free = free_[device];
      if (free.size() >= kMostFree) return false;
      free.push_back(event);
      return true;
    } catch (const std::bad_alloc &) {
      return false;
    }
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

constexpr size_t kMostNamed = 8;  // of what is in flight, in an error

bool same_text(const char *a, const char *b) { return a == b || (a && b && std::strcmp(a, b) == 0); }

}  // namespace

std::string in_words(const Stretch &steps) {
  return same_text(steps.first, steps.last) ? steps.first : text(steps.first, " to ", steps.last);
}

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
                     tickets.back().owner == ticket.owner && tickets.back().failed == ticket.failed &&
                     same_text(tickets.back().program, ticket.program);
  ticket.event = again ? tickets.back().event : std::make_shared<CudaEvent>(self->device_);
  ticket.event->record(stream);
  if (again) {
    tickets.back().stretch.last = ticket.stretch.last;
  } else {
    tickets.push_back(std::move(ticket));
    if (tickets.back().steps) self->num_complaining_.fetch_add(1, std::memory_order_release);
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

namespace {

// Null: its steps cannot have complained.
const Complaint *complaint_in(const PendingWork::Ticket &ticket) {
  return ticket.steps ? static_cast<const Complaint *>(ticket.staging.get()) : nullptr;
}

}  // namespace

void PendingWork::collect() noexcept {
  std::list<Ticket> done;  // goes after the locks: an owner may end this queue
  const std::lock_guard<std::mutex> telling(telling_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!tickets_.empty()) {
      Ticket &ticket = tickets_.front();
      const cudaError_t status = ticket.event->status();
      if (status == cudaErrorNotReady) break;
      const Complaint *const complaint = complaint_in(ticket);
      if (status != cudaSuccess || (complaint && complaint->behind > 0)) {
        set_failed(error_of(ticket, status));
        for (Ticket &later : tickets_) later.follows_failure = !later.contained;
        ticket.follows_failure = true;
      }
      if (!ticket.follows_failure) ticket.failed = nullptr;
      if (complaint) num_complaining_.fetch_sub(1, std::memory_order_release);
      done.splice(done.end(), tickets_, tickets_.begin());
    }
  }
  for (const Ticket &ticket : done) {
    if (!ticket.failed) continue;
    const std::shared_ptr<const Error> why = first();
    ticket.failed(ticket.owner.get(), why ? why->what() : "work before it has failed");
  }
}

// A device that has failed says so of everything that nobody has found done before, whatever it was that failed: so all
// of that is named. Null: there is no memory for it.
std::shared_ptr<const Error> PendingWork::error_of(const Ticket &ticket, cudaError_t status) const noexcept {
  try {
    if (status != cudaSuccess) {
      return std::make_shared<const Error>(Code::kExecution,
                                           text("CUDA: ", cudaGetErrorString(status), " on gpu(", device_, "), in ",
                                                where(), " or other work of that device"),
                                           in_words(ticket.stretch));
    }
    const Complaint &complaint = *complaint_in(ticket);
    const char *const label = ticket.steps[complaint.step].label;
    return std::make_shared<const Error>(Code::kExecution, text(label, ": ", in_words(complaint, ticket.steps)), label);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

// What has not been found done.
std::string PendingWork::where() const {
  const auto words = [](const Ticket &ticket) {
    const std::string steps = in_words(ticket.stretch);
    return ticket.program ? text(ticket.program, " (", steps, ")") : steps;
  };
  std::vector<std::string> all;
  for (const Ticket &ticket : tickets_) {
    std::string one = words(ticket);
    if (std::find(all.begin(), all.end(), one) != all.end()) continue;
    if (all.size() == kMostNamed) all.back() = "...";
    if (all.size() > kMostNamed) all.pop_back();
    all.push_back(std::move(one));
  }
  std::string joined;
  for (const std::string &one : all) joined += (joined.empty() ? "" : ", ") + one;
  return joined;
}

void PendingWork::fail(std::shared_ptr<const Error> error) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  set_failed(std::move(error));
}

void PendingWork::set_failed(std::shared_ptr<const Error> error) noexcept {
  if (!failed_.exchange(true, std::memory_order_acq_rel)) error_ = std::move(error);
}

std::shared_ptr<const Error> PendingWork::first() const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return error_;
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
  const std::shared_ptr<const Error> error = std::move(error_);
  if (!error) throw std::bad_alloc();
  throw *error;
}

}  // namespace cohort
