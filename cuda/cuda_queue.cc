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
      row_(*trace, text(device_->context(), " enqueued"), device_->context(), 0),  // the host's time
      fault_(label_to_fail()),
      replays_(read_setting(kCudaGraphs) != "0" && fault_.empty()),
      pending_(std::make_shared<PendingWork>(id)) {
  const CurrentDevice current(id_);
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

CudaQueue::~CudaQueue() {
  finish();
  const CurrentDevice current(id_, std::nothrow);
  if (complaint_) pool_.give_back(complaint_);
  cudaStreamDestroy(stream_);
}

// The error that an exception is of these steps. Null: there is no memory for it.
std::shared_ptr<const Error> CudaQueue::error_in(const Stretch &steps, const std::exception &e) const noexcept {
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

// Of a device that has failed, which it says of all that it is asked for from then on.
std::shared_ptr<const Error> CudaQueue::error_in(const Stretch &steps, cudaError_t status) const noexcept {
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
      const cudaError_t status = finish_stream();  // what has been enqueued of it uses what its owner has
      pending_->collect();                         // what failed first, where the device has failed before
      error = status == cudaSuccess ? error_in(ticket.stretch, e) : error_in(ticket.stretch, status);
      if (!ticket.contained) pending_->fail(error);
    }
  } else {
    error = pending_->first();
  }
  if (ticket.failed) ticket.failed(ticket.owner.get(), error ? error->what() : kNoMemory);
}

void CudaQueue::run(const Program &program, std::shared_ptr<const void> owner) {
  const auto enqueue = [&](PendingWork::Ticket *ticket) {
    StepsEnqueued steps([this] { return complaint(); });
    try {
      enqueue_steps(program, &steps, &ticket->stretch);
      if (program.count > 0) ticket->stretch = {program.steps[0].label, program.steps[program.count - 1].label};
      if (steps.may_complain()) take_complaint(program, ticket);
    } catch (const std::exception &) {
      if (steps.may_complain() && complaint_) look_at_complaint(program, ticket);  // what it complains of came first
      throw;
    }
  };
  PendingWork::Ticket ticket{nullptr, std::move(owner), program.failed, {}, program.name};
  ticket.contained = program.isolated;
  add(enqueue, std::move(ticket));
}

void CudaQueue::enqueue_steps(const Program &program, StepsEnqueued *steps, Stretch *now) {
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

// The note goes along with the program, and the next one finds the place free. Where a failure is the program's own
// business others may read what it writes before the note is there: then it is waited for.
void CudaQueue::take_complaint(const Program &program, PendingWork::Ticket *ticket) {
  if (program.isolated || !ticket->owner) return look_at_complaint(program, ticket);
  const std::shared_ptr<void> pinned = need_pinned(sizeof(Complaint), "what kernels complain of");
  fetch_complaint(static_cast<Complaint *>(pinned.get()));
  ticket->staging = pinned;
  ticket->steps = program.steps;
}

// Throws it, if there is one, when what has been enqueued is done.
void CudaQueue::look_at_complaint(const Program &program, PendingWork::Ticket *ticket) {
  Complaint found{};
  fetch_complaint(&found);
  CUDA_CHECK(cudaStreamSynchronize(stream_));
  if (found.behind == 0) return;
  const char *const label = program.steps[found.step].label;
  ticket->stretch = {label, label};
  throw Error(Code::kExecution, in_words(found, program.steps));
}

void CudaQueue::fetch_complaint(Complaint *to) {
  CUDA_CHECK(cudaMemcpyAsync(to, complaint_, sizeof(Complaint), cudaMemcpyDeviceToHost, stream_));
  CUDA_CHECK(cudaMemsetAsync(complaint_, 0, sizeof(Complaint), stream_));
}

Complaint *CudaQueue::complaint() {
  if (complaint_) return complaint_;
  void *const block = pool_.take(sizeof(Complaint));
  const cudaError_t status = cudaMemsetAsync(block, 0, sizeof(Complaint), stream_);
  if (status != cudaSuccess) pool_.give_back(block);
  check_cuda(status, "cudaMemsetAsync");
  return complaint_ = static_cast<Complaint *>(block);
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

// Bytes that the host copies between pageable and pinned memory, when the stream comes to it. Where its device fails,
// the driver may come to it late or never: it copies nothing once its owner has been let go, and stays for the driver.
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
    static HostCopy *left = nullptr;                 // all that are
    static auto *const left_mutex = new std::mutex;  // guards left
    std::shared_ptr<void> pinned;  // goes after the locks: that may wait for the device, and the driver for run()
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

  std::mutex mutex_;              // guards what follows
  std::shared_ptr<void> pinned_;  // while there is something to copy
  void *const to_;
  const void *const from_;
  const size_t bytes_;
  bool has_run_ = false;
  HostCopy *next_left_ = nullptr;
};

}  // namespace

// Nobody waits for pageable memory where there is pinned memory to go through.
void CudaQueue::copy(void *to, const void *from, size_t bytes, std::shared_ptr<const void> owner, Failed failed) {
  if (bytes == 0) return;
  const auto enqueue = [&](PendingWork::Ticket *ticket) {
    ticket->stretch = {"copy", "copy"};
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
  // In this order: what complains no more has failed by then.
  const bool may_be_bad = pending_->may_complain() || pending_->failed();
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
    // Another backend's event, which waits for nothing that is not queued already. Not left to a host function in the
    // stream: the driver may run those of all streams on one thread, and one could wait for what is behind another.
    event->wait();
    return;
  }
  // What has been written is known before others read it.
  if (cuda->complaining() && cuda->complaining() != pending_) cuda->wait();
  try {
    named(cuda->device(), [&] {
      const CurrentDevice current(id_);
      CUDA_CHECK(cudaStreamWaitEvent(stream_, cuda->handle(), 0));
    });
  } catch (const std::exception &e) {
    pending_->fail(error_in({"wait", "wait"}, e));
  }
}

// What went wrong is what the next sync() finds.
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
  if (pending_->may_complain()) pending_->collect();
  pending_->throw_first();
}

bool CudaQueue::idle() const {
  if (pending_->failed()) return false;
  const CurrentDevice current(id_, std::nothrow);
  const cudaError_t status = cudaStreamQuery(stream_);
  if (status != cudaSuccess) cudaGetLastError();
  if (status != cudaSuccess || !pending_->may_complain()) return status == cudaSuccess;
  pending_->collect();
  return !pending_->failed();
}

}  // namespace cohort
