// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_queue.hpp"

#include <cstring>
#include <utility>

#include "base/settings.hpp"
#include "cuda/cuda_context.hpp"
#include "cuda/cuda_host_copy.hpp"
#include "cuda/cuda_named.hpp"
#include "cuda/cuda_replay.hpp"

namespace cohort {
namespace {

constexpr size_t kSmall = size_t(256) << 10;  // bytes that one thread copies sooner than several
constexpr char kNoMemory[] = "the host is out of memory";

std::string label_to_fail() {
  const std::string node = read_setting(kFault);
  return node.empty() ? node : "'" + node + "'";
}

}  // namespace

CudaQueue::CudaQueue(std::shared_ptr<Device> device, DevicePool &pool, PinnedRing &ring, int id, Trace *trace)
    : device_(std::move(device)),
      pool_(pool),
      ring_(ring),
      id_(id),
      trace_(trace),
      row_(*trace, text(device_->context(), " enqueued"), device_->context(), 0),  // host time
      fault_(label_to_fail()),
      replays_(read_setting(kCudaGraphs) != "0" && fault_.empty()),
      pending_(std::make_shared<PendingWork>(id)),
      staged_(pool, ring, id) {
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
  if (program.replay) computes_ = true;
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

void CudaQueue::copy(void *to, const void *from, size_t bytes, std::shared_ptr<const void> owner, Failed failed) {
  if (bytes == 0) return;
  const auto enqueue = [&](PendingWork::Ticket *ticket) {
    ticket->step_range = {"copy", "copy"};
    ProgramSpans spans(trace_, row_, nullptr);
    const MemoryPlace source = place_of(from);
    if (source.pageable) {
      upload(to, from, bytes, &ticket->staging);
    } else if (const MemoryPlace target = place_of(to); target.pageable) {
      download(to, from, bytes, &ticket->staging);
    } else {
      copy_between(to, target, from, source, bytes, stream_);
    }
    if (spans) spans.ended(SpanKind::kCopy, "copy", 2.0 * double(bytes));
  };
  add(enqueue, {nullptr, std::move(owner), failed, {}});
}

// Pageable memory is read at once, so that the stream does not wait for the host, unless queued work still writes it.
void CudaQueue::upload(void *to, const void *from, size_t bytes, std::shared_ptr<const void> *staging) {
  if (HostCopy::will_write(from, bytes)) {
    if (const std::shared_ptr<void> pinned = take_pinned(bytes)) {
      const auto host_copy = HostCopy::create(pinned, pinned.get(), from, bytes);
      *staging = host_copy;
      CUDA_CHECK(cudaLaunchHostFunc(stream_, HostCopy::run, host_copy.get()));
      CUDA_CHECK(cudaMemcpyAsync(to, pinned.get(), bytes, cudaMemcpyHostToDevice, stream_));
      return;
    }
    CUDA_CHECK(cudaStreamSynchronize(stream_));  // it comes after the writers
  }
  if (bytes <= kSmall) {
    if (const std::shared_ptr<void> pinned = take_pinned(bytes)) {
      *staging = pinned;
      std::memcpy(pinned.get(), from, bytes);
      CUDA_CHECK(cudaMemcpyAsync(to, pinned.get(), bytes, cudaMemcpyHostToDevice, stream_));
      return;
    }
  } else {
    computes_ = computes_ && !stream_is_idle();
    if (computes_ && staged_.copy(to, from, bytes, stream_)) return;
    if (ring_.upload(to, from, bytes, stream_)) return;
  }
  CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
}

void CudaQueue::download(void *to, const void *from, size_t bytes, std::shared_ptr<const void> *staging) {
  const std::shared_ptr<void> pinned = take_pinned(bytes);
  if (!pinned) {  // the call waits for the bytes
    if (ring_.download(to, from, bytes, stream_)) return;
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
    return;
  }
  const auto host_copy = HostCopy::create(pinned, to, pinned.get(), bytes);
  *staging = host_copy;
  CUDA_CHECK(cudaMemcpyAsync(pinned.get(), from, bytes, cudaMemcpyDeviceToHost, stream_));
  CUDA_CHECK(cudaLaunchHostFunc(stream_, HostCopy::run, host_copy.get()));
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
  if (pending_->failed() || !stream_is_idle()) return false;
  if (pending_->may_report_error()) pending_->collect();
  return !pending_->failed();
}

bool CudaQueue::stream_is_idle() const {
  const CurrentDevice current(id_, std::nothrow);
  const cudaError_t status = cudaStreamQuery(stream_);
  if (status != cudaSuccess) cudaGetLastError();
  return status == cudaSuccess;
}

}  // namespace cohort
