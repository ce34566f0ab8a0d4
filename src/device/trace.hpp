// SPDX-License-Identifier: Apache-2.0
// What can be seen of work while it is done: spans of time on rows. Queues tell what they run, other rooms what they do
// in the midst of it or on the host's threads; recordings (recording.hpp) take it. As long as there is none, that is
// one relaxed load for a program of steps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/context.hpp"

namespace cohort {

class Trace;

enum class SpanKind : uint8_t {
  kOperator,  // a step of a plan
  kPass,      // several steps that were queued together
  kCopy,
  kExchange,  // gradients summed over devices
  kUpdate,    // of a parameter
  kWait,      // for what another queue does
  kCall,      // a thread of the host's in a function of the library
  kUser,      // what the host says of itself
};
const char *span_kind_name(SpanKind kind);

// Of products: which of its units a machine multiplies them with.
enum class Factors : uint8_t {
  kWide,
  kTf32,    // float32 that is rounded
  kNarrow,  // of 16 bits
};

// What is known of a piece of work before it runs. Whoever makes it keeps it as long as that may run.
class WorkInfo {
 public:
  WorkInfo(SpanKind what, std::string of, std::string by_op = "");
  WorkInfo(const WorkInfo &) = delete;
  WorkInfo &operator=(const WorkInfo &) = delete;

  const uint64_t id;  // of this object, never given again
  const SpanKind kind;
  const std::string name;  // of the node or parameter
  const std::string op;
  std::string kernel;           // which of the operator's; empty: there is no choice
  double flops = 0, bytes = 0;  // of one run; 0: not known
  Factors factors = Factors::kWide;

  // While somebody records.
  void count(int64_t ns) const {
    num_runs_.fetch_add(1, std::memory_order_relaxed);
    total_ns_.fetch_add(ns, std::memory_order_relaxed);
  }
  int64_t num_runs() const { return num_runs_.load(std::memory_order_relaxed); }
  double mean_ns() const { return double(total_ns_.load(std::memory_order_relaxed)) / double(num_runs()); }

 private:
  mutable std::atomic<int64_t> num_runs_{0}, total_ns_{0};
};

struct Span {
  const WorkInfo *info;  // null: `name` and `kind` say it
  const char *name;
  SpanKind kind;
  int64_t begin_ns, end_ns;  // of trace_now_ns()
  double bytes = 0;          // where they are not those of the info
};

// Where spans are drawn: a queue, or a thread of the host's. Spans of one row nest.
class TraceRow {
 public:
  TraceRow(Trace &trace, std::string label, const Context &where, int num_threads_used);
  const uint64_t id;  // never given again
  const std::string name;
  const Context context;
  const int num_threads;  // 0: of the host
};

// One for the process, which backends in shared objects of their own are given with a queue.
class Trace {
 public:
  virtual ~Trace() = default;
  bool on() const { return on_.load(std::memory_order_relaxed); }
  virtual void add(const TraceRow &row, const Span *spans, size_t count) noexcept = 0;
  virtual uint64_t next_id() = 0;

 protected:
  std::atomic<bool> on_{false};
};
Trace &process_trace();

int64_t trace_now_ns();

// The row on which this thread works now; null: on no queue's.
inline thread_local const TraceRow *working_row = nullptr;

// The steps of one program: each ends where the next begins. They are told together when the program has ended.
class ProgramSpans {
 public:
  // `name` of the whole, a literal; null: it is not worth a span of its own.
  ProgramSpans(Trace *trace, const TraceRow &row, const char *name);
  ~ProgramSpans();
  ProgramSpans(const ProgramSpans &) = delete;
  ProgramSpans &operator=(const ProgramSpans &) = delete;

  explicit operator bool() const { return trace_ != nullptr; }
  void ended(const WorkInfo *info);  // null: it is not shown
  // What is no step has ended, `name` being a literal.
  void ended(SpanKind kind, const char *name, double bytes);

 private:
  enum { kMost = 32 };
  void add(const Span &span);
  void tell();

  Trace *const trace_;
  const TraceRow &row_;
  const char *const name_;
  const TraceRow *row_before_ = nullptr;
  int64_t begin_ns_ = 0, last_ns_ = 0;
  size_t count_ = 0;
  Span spans_[kMost];
};

// What this thread does while this lives, on the row of the queue for which it works or on its own.
class WorkSpan {
 public:
  explicit WorkSpan(const WorkInfo *info, double bytes = 0) {
    begin({info, nullptr, SpanKind::kOperator, 0, 0, bytes});
  }
  WorkSpan(SpanKind kind, const char *name, double bytes = 0) {
    begin({nullptr, name, kind, 0, 0, bytes});
  }  // a literal
  ~WorkSpan() {
    if (on_) end();
  }
  WorkSpan(const WorkSpan &) = delete;
  WorkSpan &operator=(const WorkSpan &) = delete;

 private:
  void begin(const Span &span) {
    on_ = process_trace().on();
    if (!on_) return;
    span_ = span;
    span_.begin_ns = trace_now_ns();
  }
  void end() noexcept;

  bool on_;
  Span span_;
};

}  // namespace cohort
