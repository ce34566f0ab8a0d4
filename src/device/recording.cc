// SPDX-License-Identifier: Apache-2.0
#include "device/recording.hpp"

#include <algorithm>
#include <new>

#include "base/error.hpp"
#include "device/recordings.hpp"

namespace cohort {
namespace {

// Kinds of work told apart: applied operators make new ones as long as a program runs.
constexpr size_t kMostWorks = 1 << 16;
constexpr size_t kMostOwnRows = 1 << 10, kMostOpen = 1 << 10;

}  // namespace

Recording::Recording(const Options &options) : options_(options) {}

Recording::~Recording() { remove_recording(this); }

void Recording::start() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (running_) throw Error(Code::kState, "start: the trace is running already", "trace");
    if (held_.start_ns == 0) held_.start_ns = trace_now_ns();
    running_ = true;
  }
  try {
    add_recording(this);
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    running_ = false;
    throw;
  }
}

void Recording::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!running_) throw Error(Code::kState, "stop: the trace is not running", "trace");
    running_ = false;
  }
  remove_recording(this);
}

void Recording::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_ = Contents();
  if (running_) held_.start_ns = trace_now_ns();
  works_by_id_.clear();
  rows_by_id_.clear();
  works_by_name_.clear();
  rows_by_name_.clear();
}

bool Recording::running() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return running_;
}

size_t Recording::num_events() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return held_.events.size();
}

uint64_t Recording::num_dropped() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return held_.num_dropped;
}

Recording::Contents Recording::contents() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return held_;
}

// ---- what is added --------------------------------------------------------------------------------------------------

uint32_t Recording::row_of(const TraceRow &row) {
  const auto [entry, fresh] = rows_by_id_.try_emplace(row.id, uint32_t(held_.rows.size()));
  if (fresh) held_.rows.push_back({row.name, row.context, row.num_threads, {}});
  return entry->second;
}

uint32_t Recording::own_row(const std::string &name) {
  const bool full = rows_by_name_.size() >= kMostOwnRows && rows_by_name_.count(name) == 0;
  if (full)
    throw Error(Code::kInvalidArgument, text("row: there are ", kMostOwnRows, " already, of other names"), name);
  const auto [entry, fresh] = rows_by_name_.try_emplace(name, uint32_t(held_.rows.size()));
  if (fresh) held_.rows.push_back({name, Context(), 0, {}});
  return entry->second;
}

uint32_t Recording::add_work(Work work) {
  held_.works.push_back(std::move(work));
  return uint32_t(held_.works.size() - 1);
}

uint32_t Recording::named_work(SpanKind kind, const std::string &name) {
  const bool full = held_.works.size() >= kMostWorks;
  const auto known = works_by_name_.find({kind, full ? "others" : name});
  if (known != works_by_name_.end()) return known->second;
  Work work;
  work.total.name = full ? "others" : name;
  work.total.kind = kind;
  const uint32_t index = add_work(std::move(work));
  works_by_name_.emplace(std::make_pair(kind, full ? "others" : name), index);
  return index;
}

uint32_t Recording::work_of(const Span &span) {
  if (!span.info) return named_work(span.kind, span.name);
  const auto known = works_by_id_.find(span.info->id);
  if (known != works_by_id_.end()) return known->second;
  if (held_.works.size() >= kMostWorks) return named_work(span.info->kind, "others");
  Work work;
  work.total.name = span.info->name;
  work.total.op = span.info->op;
  work.total.kind = span.info->kind;
  work.kernel = span.info->kernel;
  work.flops = span.info->flops;
  work.bytes = span.info->bytes;
  work.narrow = span.info->narrow;
  const uint32_t index = add_work(std::move(work));
  works_by_id_.emplace(span.info->id, index);
  return index;
}

void Recording::add_event(const Event &event) {
  const size_t most = options_.max_events ? options_.max_events : kDefaultEvents;
  while (held_.events.size() >= most) {
    held_.events.pop_front();
    ++held_.num_dropped;
  }
  Work &work = held_.works[event.work];
  if (event.phase == Phase::kSpan) {
    SpanTotal &total = work.total;
    const int64_t ns = event.end_ns - event.begin_ns;
    if (total.count == 0) work.row = event.row;
    total.least_ns = total.count ? std::min(total.least_ns, ns) : ns;
    total.most_ns = std::max(total.most_ns, ns);
    total.total_ns += ns;
    total.flops += work.flops;
    total.bytes += event.number;
    ++total.count;
  }
  held_.events.push_back(event);
}

void Recording::add(const TraceRow &row, const Span *spans, size_t count) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!running_) return;
  size_t done = 0;
  try {
    const uint32_t on = row_of(row);
    for (; done < count; ++done) {
      const Span &span = spans[done];
      if (span.begin_ns < held_.start_ns) continue;  // it began before
      const uint32_t work = work_of(span);
      const double bytes = span.bytes > 0 ? span.bytes : held_.works[work].bytes;
      add_event({span.begin_ns, span.end_ns, work, on, Phase::kSpan, bytes});
    }
  } catch (const std::bad_alloc &) {
    held_.num_dropped += count - done;
  }
}

void Recording::begin(const std::string &row, const std::string &name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!running_) return;
  auto &open = held_.rows[own_row(row)].open;
  if (open.size() >= kMostOpen) {
    throw Error(Code::kState, text("begin: ", kMostOpen, " spans are open on row '", row, "' already"), row);
  }
  open.emplace_back(name, trace_now_ns());
}

void Recording::end(const std::string &row) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!running_) return;
  const auto known = rows_by_name_.find(row);
  if (known == rows_by_name_.end() || held_.rows[known->second].open.empty()) {
    throw Error(Code::kState, text("end: nothing was begun on row '", row, "'"), row);
  }
  const uint32_t on = known->second;
  auto &open = held_.rows[on].open;
  const uint32_t work = named_work(SpanKind::kUser, open.back().first);
  add_event({open.back().second, trace_now_ns(), work, on, Phase::kSpan, 0});
  open.pop_back();
}

void Recording::mark(const std::string &row, const std::string &name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t now = trace_now_ns();
  if (running_) add_event({now, now, named_work(SpanKind::kUser, name), own_row(row), Phase::kMark, 0});
}

void Recording::count(const std::string &name, double value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t now = trace_now_ns();
  if (running_) add_event({now, now, named_work(SpanKind::kUser, name), own_row("counters"), Phase::kCount, value});
}

}  // namespace cohort
