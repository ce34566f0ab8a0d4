// SPDX-License-Identifier: Apache-2.0
// Tracing: spans of time on rows. Queues report what they run; other rooms report work inside steps or on host threads;
// recordings (recording.hpp) collect it. While nothing records, the cost is one relaxed load per program.
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
  kUpdate,    // update of a parameter
  kWait,      // waiting for another queue
  kCall,      // a host thread inside a function of the library
  kUser,      // a span reported by the host
};
const char *span_kind_name(SpanKind kind);

// For matrix products: which of the machine's units multiply.
enum class FactorType : uint8_t {
  kWide,
  kTf32,    // float32 with rounded factors
  kNarrow,  // 16-bit types
};

// The facts about a piece of work that are known before it runs. The creator keeps it alive while the work may run.
class WorkInfo {
 public:
  WorkInfo(SpanKind what, std::string of, std::string by_op = "");
  WorkInfo(const WorkInfo &) = delete;
  WorkInfo &operator=(const WorkInfo &) = delete;

  const uint64_t id;  // unique, never reused
  const SpanKind kind;
  const std::string name;  // of the node or parameter
  const std::string op;
  std::string kernel;           // which of the operator's kernels; empty if there is no choice
  double flops = 0, bytes = 0;  // of one run; 0: not known
  FactorType factors = FactorType::kWide;

  // Called only while something records.
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
  int64_t begin_ns, end_ns;  // on the clock of trace_now_ns()
  double bytes = 0;          // 0: those of the info
};

// A row of the trace: a queue or a host thread. Spans of one row nest.
class TraceRow {
 public:
  TraceRow(Trace &trace, std::string label, const Context &where, int num_threads_used);
  const uint64_t id;  // unique, never reused
  const std::string name;
  const Context context;
  const int num_threads;  // 0: of the host
};

// One per process; backends in their own shared objects receive it with each queue.
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

// The row of the queue that this thread works for; null: it works for none.
inline thread_local const TraceRow *working_row = nullptr;

// Collects the spans of one program: each step ends where the next begins. Reports them when the program has ended.
class ProgramSpans {
 public:
  // `name` of the whole program, a literal; null if it should not get a span of its own.
  ProgramSpans(Trace *trace, const TraceRow &row, const char *name);
  ~ProgramSpans();
  ProgramSpans(const ProgramSpans &) = delete;
  ProgramSpans &operator=(const ProgramSpans &) = delete;

  explicit operator bool() const { return trace_ != nullptr; }
  void ended(const WorkInfo *info);  // null: the step is not shown
  // Something other than a step has ended; `name` is a literal.
  void ended(SpanKind kind, const char *name, double bytes);

 private:
  enum { kMost = 32 };
  void add(const Span &span);
  void flush();

  Trace *const trace_;
  const TraceRow &row_;
  const char *const name_;
  const TraceRow *row_before_ = nullptr;
  int64_t begin_ns_ = 0, last_ns_ = 0;
  size_t count_ = 0;
  Span spans_[kMost];
};

// Reports what this thread does during the object's lifetime, on the row of the queue it works for or on its own row.
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
