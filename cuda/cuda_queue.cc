// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_queue.hpp"

#include <cstring>
#include <mutex>
#include <utility>

#include "base/settings.hpp"
#include "cuda/cuda_context.hpp"
#include "cuda/cuda_named.hpp"
#include "cuda/cuda_replay.hpp"

namespace cohort {
namespace {

constexpr char kNoMemory[] = "the host is out of memory";

std::string label_to_fail() {
  const std::string node = read_setting(kFault);
  return node.empty() ? node : "'" + node + "'";
}

}  // namespace

CudaQueue::CudaQueue(std::shared_ptr<Device> device, DevicePool &pool, int id, Trace *trace)
    : device_(std::move(device)),
      pool_(pool),
      id_(id),
      trace_(trace),
      row_(*trace, text(device_->context(), " enqueued"), device_->context(), 0),  // host time
      fault_(label_to_fail()),
      replays_(read_setting(kCudaGraphs) != "0" && fault_.empty()),
      pending_(std::make_shared<PendingWork>(id)) {
  const CurrentDevice current(id_);
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

CudaQueue::~CudaQueue() {
  finish();
  const CurrentDevice current(id_, std::nothrow);
  if (input_error_) pool_.give_back(input_error_);
  cudaStreamDestroy(stream_);
}

// The exception as an error of these steps. Null: there is no memory for it.
std::shared_ptr<const Error> CudaQueue::error_in(const StepRange &steps, const std::exception &e) const noexcept {
  const auto *const known = dynamic_cast<const Error *>(&e);
  const bool is_plain = dynamic_cast<const std::bad_alloc *>(&e) != nullptr;
  const Code code = is_plain || (known && known->code() == Code::kOutOfMemory) ? Code::kOutOfMemory : Code::kExecution;
  try {
    const std::string whose = in_words(steps), what = known      ? with_device(id_, *known)
                                                      : is_plain ? kNoMemory
                                                                 : e.what();
    return std::make_shared<const Error>(code, text(whose, ": ", what), whose);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

// The error of a device that has failed: it returns that status for every later call.
std::shared_ptr<const Error> CudaQueue::error_in(const StepRange &steps, cudaError_t status) const noexcept {
  try {
    const std::string what = text("gpu(", id_, ") has failed: CUDA: ", cudaGetErrorString(status));
    return error_in(steps, Error(Code::kDevice, what, "cuda"));
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

template <typename Enqueue>
void CudaQueue::add(const Enqueue &enqueue, PendingWork::Ticket ticket) {
  std::shared_ptr<const Error> error;
  if (ticket.contained || !pending_->failed()) {
    try {
      const CurrentDevice current(id_);
      enqueue(&ticket);
      PendingWork::keep(pending_, stream_, ticket);
      return;
    } catch (const std::exception &e) {
      const cudaError_t status = finish_stream();  // the part that was enqueued uses memory of the owner
      pending_->collect();                         // finds the first failure, if the device had failed before
      error = status == cudaSuccess ? error_in(ticket.step_range, e) : error_in(ticket.step_range, status);
      if (!ticket.contained) pending_->fail(error);
    }
  } else {
    error = pending_->first();
  }
  if (ticket.failed) ticket.failed(ticket.owner.get(), error ? error->what() : kNoMemory);
}

void CudaQueue::run(const Program &program, std::shared_ptr<const void> owner) {
  const auto enqueue = [&](PendingWork::Ticket *ticket) {
    StepsEnqueued steps([this] { return input_error(); });
    try {
      enqueue_steps(program, &steps, &ticket->step_range);
      if (program.count > 0) ticket->step_range = {program.steps[0].label, program.steps[program.count - 1].label};
      if (steps.may_report_error()) take_input_error(program, ticket);
    } catch (const std::exception &) {
      if (steps.may_report_error() && input_error_)
        wait_for_input_error(program, ticket);  // an input error comes before this one
      throw;
    }
  };
  PendingWork::Ticket ticket{nullptr, std::move(owner), program.failed, {}, program.name};
  ticket.contained = program.isolated;
  add(enqueue, std::move(ticket));
}

void CudaQueue::enqueue_steps(const Program &program, StepsEnqueued *steps, StepRange *now) {
  ProgramSpans spans(trace_, row_, program.name);
  if (program.replay && replays_ && !spans) {
    if (!*program.replay)
      *program.replay = std::make_unique<CudaReplay>(std::shared_ptr<DevicePool>(device_, &pool_), id_);
    return static_cast<CudaReplay &>(**program.replay).run(program, stream_, steps, now);
  }
  const Lane lane{1, stream_};
  for (size_t s = 0; s < program.count; ++s) {
    const char *const label = program.steps[s].label;
    *now = {label, label};
    if (!fault_.empty() && std::strstr(label, fault_.c_str())) {
      throw Error(Code::kExecution, text("made to fail by ", kFault.name));
    }
    steps->is_at(s);
    program.steps[s].kernel->run(program.steps[s].args, lane);
    if (spans) spans.ended(program.steps[s].info);
  }
}

// Copies the record to the host behind the program, and clears it for the next one. If failures are contained in the
// program, others may read its outputs before the record has arrived: then wait for it.
void CudaQueue::take_input_error(const Program &program, PendingWork::Ticket *ticket) {
  if (program.isolated || !ticket->owner) return wait_for_input_error(program, ticket);
  const std::shared_ptr<void> pinned = need_pinned(sizeof(InputError), "the errors that kernels record");
  fetch_input_error(static_cast<InputError *>(pinned.get()));
  ticket->staging = pinned;
  ticket->steps = program.steps;
}

// Waits for the enqueued work, and throws the recorded error if there is one.
void CudaQueue::wait_for_input_error(const Program &program, PendingWork::Ticket *ticket) {
  InputError found{};
  fetch_input_error(&found);
  CUDA_CHECK(cudaStreamSynchronize(stream_));
  if (found.behind == 0) return;
  const char *const label = program.steps[found.step].label;
  ticket->step_range = {label, label};
  throw Error(Code::kExecution, in_words(found, program.steps));
}

void CudaQueue::fetch_input_error(InputError *to) {
  CUDA_CHECK(cudaMemcpyAsync(to, input_error_, sizeof(InputError), cudaMemcpyDeviceToHost, stream_));
  CUDA_CHECK(cudaMemsetAsync(input_error_, 0, sizeof(InputError), stream_));
}

InputError *CudaQueue::input_error() {
  if (input_error_) return input_error_;
  void *const block = pool_.take(sizeof(InputError));
  const cudaError_t status = cudaMemsetAsync(block, 0, sizeof(InputError), stream_);
  if (status != cudaSuccess) pool_.give_back(block);
  check_cuda(status, "cudaMemsetAsync");
  return input_error_ = static_cast<InputError *>(block);
}

void CudaQueue::call(std::function<void()> fn, const char *label) {
  if (pending_->failed()) return;
  try {
    const CurrentDevice current(id_);
    fn();
  } catch (const std::exception &e) {
    pending_->fail(error_in({label, label}, e));
  }
}

namespace {

// A copy between pageable and pinned memory by a host function in the stream. If the device fails, the driver may call
// that function late or never: once its owner has been released it copies nothing, and it stays allocated for the
// driver.
class HostCopy {
 public:
  static std::shared_ptr<HostCopy> create(std::shared_ptr<void> pinned, void *to, const void *from, size_t bytes) {
    return {new HostCopy(std::move(pinned), to, from, bytes), let_go};
  }
  static void CUDART_CB run(void *self) {
    auto *const copy = static_cast<HostCopy *>(self);
    const std::lock_guard<std::mutex> lock(copy->mutex_);
    if (copy->pinned_) std::memcpy(copy->to_, copy->from_, copy->bytes_);
    copy->has_run_ = true;
  }

 private:
  HostCopy(std::shared_ptr<void> pinned, void *to, const void *from, size_t bytes)
      : pinned_(std::move(pinned)), to_(to), from_(from), bytes_(bytes) {}
  static void let_go(HostCopy *copy) {
    static HostCopy *left = nullptr;                 // all that have not run
    static auto *const left_mutex = new std::mutex;  // guards left
    std::shared_ptr<void> pinned;  // freed after the locks: freeing may wait for the device, and the driver for run()
    {
      const std::lock_guard<std::mutex> all(*left_mutex), lock(copy->mutex_);
      pinned = std::move(copy->pinned_);
      if (!copy->has_run_) {
        copy->next_left_ = left;
        left = copy;
        return;
      }
    }
    delete copy;
  }

  std::mutex mutex_;              // guards the members below
  std::shared_ptr<void> pinned_;  // while there is something to copy
  void *const to_;
  const void *const from_;
  const size_t bytes_;
  bool has_run_ = false;
  HostCopy *next_left_ = nullptr;
};

}  // namespace

// Pageable memory is copied through pinned memory if there is some, so that the caller does not wait.
void CudaQueue::copy(void *to, const void *from, size_t bytes, std::shared_ptr<const void> owner, Failed failed) {
  if (bytes == 0) return;
  const auto enqueue = [&](PendingWork::Ticket *ticket) {
    ticket->step_range = {"copy", "copy"};
    ProgramSpans spans(trace_, row_, nullptr);
    const MemoryPlace source = place_of(from), target = place_of(to);
    const bool from_pageable = source.pageable, to_pageable = !from_pageable && target.pageable;
    const std::shared_ptr<void> pinned = from_pageable || to_pageable ? take_pinned(bytes) : nullptr;
    if (!pinned) {
      // The driver may read pageable memory while it is called, before the stream has come to it.
      if (from_pageable) CUDA_CHECK(cudaStreamSynchronize(stream_));
      copy_between(to, target, from, source, bytes, stream_);
    } else {
      const auto host_copy = from_pageable ? HostCopy::create(pinned, pinned.get(), from, bytes)
                                           : HostCopy::create(pinned, to, pinned.get(), bytes);
      ticket->staging = host_copy;
      if (from_pageable) CUDA_CHECK(cudaLaunchHostFunc(stream_, HostCopy::run, host_copy.get()));
      CUDA_CHECK(cudaMemcpyAsync(from_pageable ? to : pinned.get(), from_pageable ? pinned.get() : from, bytes,
                                 cudaMemcpyDefault, stream_));
      if (to_pageable) CUDA_CHECK(cudaLaunchHostFunc(stream_, HostCopy::run, host_copy.get()));
    }
    if (spans) spans.ended(SpanKind::kCopy, "copy", 2.0 * double(bytes));
  };
  add(enqueue, {nullptr, std::move(owner), failed, {}});
}

std::shared_ptr<Event> CudaQueue::record() {
  // In this order: work that is no longer in may_report_error() has set failed() by then.
  const bool may_be_bad = pending_->may_report_error() || pending_->failed();
  return named(id_, [&] {
    auto event = std::make_shared<CudaEvent>(id_, may_be_bad ? pending_ : nullptr);
    const CurrentDevice current(id_);
    event->record(stream_);
    return event;
  });
}

void CudaQueue::wait(std::shared_ptr<Event> event) {
  const auto *const cuda = dynamic_cast<const CudaEvent *>(event.get());
  if (!cuda) {
    // Another backend's event; the work that it waits for is already queued. The calling thread waits: a host function
    // in the stream could deadlock, as the driver may run those of all streams on one thread.
    event->wait();
    return;
  }
  // Errors of the work that wrote the data are reported before other work reads them.
  if (cuda->reporting() && cuda->reporting() != pending_) cuda->wait();
  try {
    named(cuda->device(), [&] {
      const CurrentDevice current(id_);
      CUDA_CHECK(cudaStreamWaitEvent(stream_, cuda->handle(), 0));
    });
  } catch (const std::exception &e) {
    pending_->fail(error_in({"wait", "wait"}, e));
  }
}

// Keeps the error for the next sync().
void CudaQueue::finish() noexcept {
  const cudaError_t status = finish_stream();
  pending_->collect();
  if (status == cudaSuccess || pending_->failed()) return;
  pending_->fail(error_in({"wait", "wait"}, status));
}

cudaError_t CudaQueue::finish_stream() noexcept {
  const CurrentDevice current(id_, std::nothrow);
  const cudaError_t status = cudaStreamSynchronize(stream_);
  if (status != cudaSuccess) cudaGetLastError();
  return status;
}

void CudaQueue::sync() {
  finish();
  pending_->throw_and_forget();
}

void CudaQueue::check() const {
  if (pending_->may_report_error()) pending_->collect();
  pending_->throw_first();
}

bool CudaQueue::idle() const {
  if (pending_->failed()) return false;
  const CurrentDevice current(id_, std::nothrow);
  const cudaError_t status = cudaStreamQuery(stream_);
  if (status != cudaSuccess) cudaGetLastError();
  if (status != cudaSuccess || !pending_->may_report_error()) return status == cudaSuccess;
  pending_->collect();
  return !pending_->failed();
}

}  // namespace cohort
