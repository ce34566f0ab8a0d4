// SPDX-License-Identifier: Apache-2.0
#include "device/recording.hpp"

#include <algorithm>
#include <new>

#include "base/error.hpp"
#include "device/recordings.hpp"

namespace cohort {
namespace {

// Limit of distinct works: applied operators add new ones for as long as a program runs.
constexpr size_t kMostWorks = 1 << 16;
constexpr size_t kMostRows = 1 << 10, kMostOwnRows = 1 << 10, kMostOpen = 1 << 10;
constexpr char kOtherRows[] = "others";

// Adds a new entry to the map and the list. If memory runs out, to neither.
template <typename Map, typename T>
uint32_t add_known(Map *map, typename Map::key_type key, std::vector<T> *all, T made) {
  const auto entry = map->emplace(std::move(key), uint32_t(all->size())).first;
  try {
    all->push_back(std::move(made));
  } catch (...) {
    map->erase(entry);
    throw;
  }
  return entry->second;
}

}  // namespace

Recording::Recording(const Options &options) : options_(options) {}

Recording::~Recording() { remove_recording(this); }

void Recording::start() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (running_) throw Error(Code::kState, "start: the trace is running already", "trace");
    resumed_ns_ = trace_now_ns();
    if (held_.start_ns == 0) held_.start_ns = resumed_ns_;
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
    for (const Event &event : open_events(trace_now_ns())) add_event(event);
    running_ = false;
  }
  remove_recording(this);
}

void Recording::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_ = Contents();
  resumed_ns_ = trace_now_ns();
  if (running_) held_.start_ns = resumed_ns_;
  works_by_id_.clear();
  rows_by_id_.clear();
  works_by_name_.clear();
  rows_by_name_.clear();
  shared_rows_.clear();
  for (auto &totals : totals_) totals.reset();
}

bool Recording::running() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return running_;
}

size_t Recording::num_events() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return held_.log.size();
}

uint64_t Recording::num_dropped() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return held_.num_dropped;
}

void Recording::EventLog::add(const Event &event) {
  const size_t at = first_ + size_;
  if (at == blocks_.size() * kLength) blocks_.push_back(std::shared_ptr<Event[]>(new Event[kLength]));
  blocks_[at / kLength][at % kLength] = event;
  ++size_;
}

void Recording::EventLog::drop_oldest() {
  --size_;
  if (++first_ < kLength) return;
  blocks_.pop_front();
  first_ = 0;
}

void Recording::EventLog::append_to(std::vector<Event> *events) const {
  events->reserve(events->size() + size_);
  for (size_t at = first_; at < first_ + size_; ++at) events->push_back(blocks_[at / kLength][at % kLength]);
}

Recording::Contents Recording::without_events() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Contents rest;
  rest.works = held_.works;
  rest.rows = held_.rows;
  rest.num_dropped = held_.num_dropped;
  rest.start_ns = held_.start_ns;
  return rest;
}

// ---- adding rows and spans ------------------------------------------------------------------------------------------

// A program may create threads and queues without limit: those beyond kMostRows share rows.
uint32_t Recording::row_of(const TraceRow &row) {
  const auto known = rows_by_id_.find(row.id);
  if (known != rows_by_id_.end()) return known->second;
  const auto add = [&](auto *rows, const auto &key, const std::string &name) {
    return add_known(rows, key, &held_.rows, Row{name, row.context, row.num_threads});
  };
  if (rows_by_id_.size() < kMostRows) return add(&rows_by_id_, row.id, row.name);
  const std::string name = row.num_threads > 0
                               ? text("other queues of ", row.context, ", of ", row.num_threads, " threads")
                               : "other host threads";
  const auto shared = shared_rows_.find(name);
  return shared != shared_rows_.end() ? shared->second : add(&shared_rows_, name, name);
}

void Recording::check_own_row(const std::string &name) const {
  if (rows_by_name_.size() < kMostOwnRows || rows_by_name_.count(name) > 0) return;
  throw Error(Code::kInvalidArgument, text("row: expected at most ", kMostOwnRows, " row names, found one more"), name);
}

uint32_t Recording::own_row(const std::string &given) {
  const bool full = rows_by_name_.size() >= kMostOwnRows && rows_by_name_.count(given) == 0;
  const std::string name = full ? kOtherRows : given;
  const auto known = rows_by_name_.find(name);
  if (known != rows_by_name_.end()) return known->second;
  return add_known(&rows_by_name_, name, &held_.rows, Row{name, Context(), 0});
}

uint32_t Recording::named_work(SpanKind kind, const std::string &name) {
  const bool full = held_.works.size() >= kMostWorks;
  auto known = works_by_name_.find({kind, name});
  if (known == works_by_name_.end() && full) known = works_by_name_.find({kind, "others"});
  if (known != works_by_name_.end()) return known->second;
  Work work;
  work.total.name = full ? "others" : name;
  work.total.kind = kind;
  return add_known(&works_by_name_, std::make_pair(kind, work.total.name), &held_.works, work);
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
  work.factors = span.info->factors;
  return add_known(&works_by_id_, span.info->id, &held_.works, std::move(work));
}

void Recording::add_event(const Event &event) noexcept {
  const size_t most = options_.max_events ? options_.max_events : kDefaultEvents;
  while (held_.log.size() >= most) {
    held_.log.drop_oldest();
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
  try {
    held_.log.add(event);
  } catch (const std::bad_alloc &) {  // the totals include it
    ++held_.num_dropped;
  }
}

std::vector<Recording::Event> Recording::open_events(int64_t now) {
  std::vector<Event> events;
  for (const auto &[row, spans] : open_) {
    for (const Open &span : spans) {
      const int64_t begin_ns = std::max(span.begin_ns, resumed_ns_);
      events.push_back({begin_ns, now, named_work(SpanKind::kUser, span.name), own_row(row), Phase::kSpan, 0});
    }
  }
  return events;
}

void Recording::add(const TraceRow &row, const Span *spans, size_t count) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!running_) return;
  size_t done = 0;
  try {
    const uint32_t on = row_of(row);
    for (; done < count; ++done) {
      const Span &span = spans[done];
      if (span.begin_ns < held_.start_ns) continue;  // it began before the recording
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
  if (running_) check_own_row(row);
  const auto known = open_.find(row);
  if (known == open_.end()) {
    if (open_.size() >= kMostOwnRows)
      throw Error(Code::kState, text("begin: spans are open on ", kMostOwnRows, " rows already"), row);
    std::vector<Open> first{{name, trace_now_ns()}};
    if (running_) own_row(row);
    open_.emplace(row, std::move(first));
    return;
  }
  if (known->second.size() >= kMostOpen)
    throw Error(Code::kState, text("begin: ", kMostOpen, " spans are open on row '", row, "' already"), row);
  known->second.push_back({name, trace_now_ns()});
}

void Recording::end(const std::string &row) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = open_.find(row);
  if (known == open_.end()) throw Error(Code::kState, text("end: no span is open on row '", row, "'"), row);
  const Open &span = known->second.back();
  if (running_) {
    const uint32_t work = named_work(SpanKind::kUser, span.name);
    add_event({std::max(span.begin_ns, resumed_ns_), trace_now_ns(), work, own_row(row), Phase::kSpan, 0});
  }
  known->second.pop_back();
  if (known->second.empty()) open_.erase(known);
}

void Recording::mark(const std::string &row, const std::string &name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t now = trace_now_ns();
  if (!running_) return;
  check_own_row(row);
  add_event({now, now, named_work(SpanKind::kUser, name), own_row(row), Phase::kMark, 0});
}

void Recording::count(const std::string &name, double value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t now = trace_now_ns();
  if (running_) add_event({now, now, named_work(SpanKind::kUser, name), own_row("counters"), Phase::kCount, value});
}

}  // namespace cohort
