// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_completion.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "cuda/cuda_context.hpp"

namespace cohort {
namespace {

// Unused handles. A recorded event may be recorded again: streams that wait for it wait for the earlier record.
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

constexpr size_t kMostNamed = 8;  // pieces of work in flight that an error names

bool same_text(const char *a, const char *b) { return a == b || (a && b && std::strcmp(a, b) == 0); }

}  // namespace

std::string in_words(const StepRange &steps) {
  return same_text(steps.first, steps.last) ? steps.first : text(steps.first, " to ", steps.last);
}

CudaEvent::CudaEvent(int device, std::shared_ptr<PendingWork> reporting)
    : device_(device), reporting_(std::move(reporting)), event_(free_events().take(device)) {
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
  // The process ends while a thread still polls: the work has not failed, and there is nobody left to tell.
  return status == cudaErrorCudartUnloading ? cudaErrorNotReady : status;
}

bool CudaEvent::done() const {
  if (!over()) return false;
  if (reporting_) reporting_->collect();
  return true;
}

void CudaEvent::wait() const {
  {
    const CurrentDevice current(device_, std::nothrow);
    if (cudaEventSynchronize(event_) != cudaSuccess) cudaGetLastError();
  }
  if (reporting_) reporting_->collect();
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
    tickets.back().step_range.last = ticket.step_range.last;
  } else {
    tickets.push_back(std::move(ticket));
    if (tickets.back().steps) self->num_reporting_.fetch_add(1, std::memory_order_release);
  }
  // The queue failed while this was being enqueued.
  if (self->failed() && !tickets.back().contained) tickets.back().follows_failure = true;
  if (!self->polled_) start_polling(self);
  self->polled_ = true;
}

bool PendingWork::poll() {
  collect();
  const std::lock_guard<std::mutex> lock(mutex_);
  polled_ = !tickets_.empty();
  return polled_;
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

// Null: its steps cannot have recorded an error.
const InputError *input_error_in(const PendingWork::Ticket &ticket) {
  return ticket.steps ? static_cast<const InputError *>(ticket.staging.get()) : nullptr;
}

}  // namespace

void PendingWork::collect() noexcept {
  std::list<Ticket> done;  // destroyed after the locks are released: an owner may destroy this queue
  const std::lock_guard<std::mutex> telling(telling_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!tickets_.empty()) {
      Ticket &ticket = tickets_.front();
      const cudaError_t status = ticket.event->status();
      if (status == cudaErrorNotReady) break;
      const InputError *const input_error = input_error_in(ticket);
      if (status != cudaSuccess || (input_error && input_error->behind > 0)) {
        set_failed(error_of(ticket, status));
        for (Ticket &later : tickets_) later.follows_failure = !later.contained;
        ticket.follows_failure = true;
      }
      if (!ticket.follows_failure) ticket.failed = nullptr;
      if (input_error) num_reporting_.fetch_sub(1, std::memory_order_release);
      done.splice(done.end(), tickets_, tickets_.begin());
    }
  }
  for (const Ticket &ticket : done) {
    if (!ticket.failed) continue;
    const std::shared_ptr<const Error> why = first();
    ticket.failed(ticket.owner.get(), why ? why->what() : "earlier work has failed");
  }
}

// A failed device returns the same error for all unfinished work, so the message names all of it. Null: out of memory.
std::shared_ptr<const Error> PendingWork::error_of(const Ticket &ticket, cudaError_t status) const noexcept {
  try {
    if (status != cudaSuccess) {
      return std::make_shared<const Error>(Code::kExecution,
                                           text("CUDA: ", cudaGetErrorString(status), " on gpu(", device_, "), in ",
                                                where(), " or other work of that device"),
                                           in_words(ticket.step_range));
    }
    const InputError &input_error = *input_error_in(ticket);
    const char *const label = ticket.steps[input_error.step].label;
    return std::make_shared<const Error>(Code::kExecution, text(label, ": ", in_words(input_error, ticket.steps)),
                                         label);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

// Names the unfinished work.
std::string PendingWork::where() const {
  const auto words = [](const Ticket &ticket) {
    const std::string steps = in_words(ticket.step_range);
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
