// SPDX-License-Identifier: Apache-2.0
#include "device/trace.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "base/error.hpp"
#include "device/recording.hpp"
#include "device/recordings.hpp"

namespace cohort {
namespace {

std::atomic<uint64_t> num_works{0};

class ProcessTrace final : public Trace {
 public:
  void add(const TraceRow &row, const Span *spans, size_t count) noexcept override {
    for (size_t i = 0; i < count; ++i) {
      if (spans[i].info) spans[i].info->count(spans[i].end_ns - spans[i].begin_ns);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Recording *recording : recordings_) recording->add(row, spans, count);
  }
  uint64_t next_id() override { return num_rows_.fetch_add(1, std::memory_order_relaxed) + 1; }

  void add_recording(Recording *recording) {
    const std::lock_guard<std::mutex> lock(mutex_);
    recordings_.push_back(recording);
    on_.store(true, std::memory_order_relaxed);
  }
  void remove_recording(Recording *recording) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    recordings_.erase(std::remove(recordings_.begin(), recordings_.end(), recording), recordings_.end());
    on_.store(!recordings_.empty(), std::memory_order_relaxed);
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  // The forked child has no recordings.
  void begin_child() {
    recordings_.clear();
    on_.store(false, std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  std::atomic<uint64_t> num_rows_{0};
  std::mutex mutex_;  // protects recordings_
  std::vector<Recording *> recordings_;
};

ProcessTrace &trace() {
  static ProcessTrace *const instance = [] {
    // Not on the heap, so that a waiting thread needs no memory.
    alignas(ProcessTrace) static char memory[sizeof(ProcessTrace)];
    auto *made = new (memory) ProcessTrace;  // queues outlive static objects
    pthread_atfork([] { trace().lock(); }, [] { trace().unlock(); }, [] { trace().begin_child(); });
    return made;
  }();
  return *instance;
}

const TraceRow &thread_row() {
  thread_local const TraceRow row(trace(), text("host thread ", syscall(SYS_gettid)), Context(), 0);
  return row;
}

}  // namespace

Trace &process_trace() { return trace(); }
void add_recording(Recording *recording) { trace().add_recording(recording); }
void remove_recording(Recording *recording) noexcept { trace().remove_recording(recording); }

int64_t trace_now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

const char *span_kind_name(SpanKind kind) {
  static constexpr const char *kNames[] = {"operator", "pass", "copy", "exchange", "update", "wait", "call", "user"};
  return kNames[size_t(kind)];
}

WorkInfo::WorkInfo(SpanKind what, std::string of, std::string by_op)
    : id(num_works.fetch_add(1, std::memory_order_relaxed) + 1),
      kind(what),
      name(std::move(of)),
      op(std::move(by_op)) {}

TraceRow::TraceRow(Trace &trace, std::string label, const Context &where, int num_threads_used)
    : id(trace.next_id()), name(std::move(label)), context(where), num_threads(num_threads_used) {}

ProgramSpans::ProgramSpans(Trace *trace, const TraceRow &row, const char *name)
    : trace_(trace && trace->on() ? trace : nullptr), row_(row), name_(name) {
  if (!trace_) return;
  row_before_ = working_row;
  working_row = &row_;
  begin_ns_ = last_ns_ = trace_now_ns();
}

ProgramSpans::~ProgramSpans() {
  if (!trace_) return;
  working_row = row_before_;
  if (name_) add({nullptr, name_, SpanKind::kPass, begin_ns_, last_ns_});
  flush();
}

void ProgramSpans::ended(const WorkInfo *info) {
  const int64_t now = trace_now_ns();
  if (info) add({info, nullptr, info->kind, last_ns_, now});
  last_ns_ = now;
}

void ProgramSpans::ended(SpanKind kind, const char *name, double bytes) {
  const int64_t now = trace_now_ns();
  add({nullptr, name, kind, last_ns_, now, bytes});
  last_ns_ = now;
}

void ProgramSpans::add(const Span &span) {
  if (count_ == kMost) flush();
  spans_[count_++] = span;
}

void ProgramSpans::flush() {
  if (count_ > 0) trace_->add(row_, spans_, count_);
  count_ = 0;
}

void WorkSpan::end() noexcept {
  if (!span_.info && !span_.name) return;  // a step that is not reported
  span_.end_ns = trace_now_ns();
  try {
    trace().add(working_row ? *working_row : thread_row(), &span_, 1);
  } catch (const std::bad_alloc &) {  // no memory for a name: the span is lost
  }
}

}  // namespace cohort
