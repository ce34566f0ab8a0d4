// SPDX-License-Identifier: Apache-2.0
// A recording of the trace (trace.hpp): the latest events and totals over all events. Exported as JSON for a viewer and
// as a table with the machine's limits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/trace.hpp"

namespace cohort {

// A lower bound on the time of some work on a machine, and what limits it.
struct TimeBound {
  double ns = 0;          // 0: not known
  bool by_flops = false;  // limited by flops, else by bytes
};
TimeBound time_bound(double flops, double bytes, FactorType factors, const MachineRates &rates);

struct SpanTotal {
  std::string name, op;  // in sums by operator `name` is empty
  SpanKind kind;
  uint64_t count = 0;
  int64_t total_ns = 0, least_ns = 0, most_ns = 0;
  double flops = 0, bytes = 0;
  double bound_ns = 0;  // the least time the machine would need
};

class Recording : public std::enable_shared_from_this<Recording> {
 public:
  struct Options {
    size_t max_events = 0;  // 0: kDefaultEvents. The oldest are dropped
    MachineRates rates;     // rates of a queue; 0: measured
  };
  static constexpr size_t kDefaultEvents = 1 << 20;

  explicit Recording(const Options &options);
  ~Recording();
  Recording(const Recording &) = delete;
  Recording &operator=(const Recording &) = delete;

  // Throw kState if it is already running, or not running.
  void start();
  void stop();
  void clear();  // events and totals
  bool running() const;
  size_t num_events() const;  // number of events kept
  uint64_t num_dropped() const;

  // The host's own spans, on rows of its own. They may begin and end while the recording is stopped; only the time
  // during which it runs is recorded.
  void begin(const std::string &row, const std::string &name);
  void end(const std::string &row);  // ends the span begun last on the row; kState if there is none
  void mark(const std::string &row, const std::string &name);
  void count(const std::string &name, double value);

  std::string json();
  using Totals = std::shared_ptr<const std::vector<SpanTotal>>;
  Totals take_totals(bool by_operator);   // computed now, largest first
  Totals taken_totals(bool by_operator);  // as last taken; computed now if not taken since clear()
  std::string table(bool by_operator) const;

  void add(const TraceRow &row, const Span *spans, size_t count) noexcept;  // called by the trace

 private:
  enum class Phase : uint8_t { kSpan, kMark, kCount };
  struct Event {
    int64_t begin_ns, end_ns;
    uint32_t work, row;
    Phase phase;
    double number;  // bytes, or a counter's value
  };
  struct Work {  // what events refer to
    SpanTotal total;
    std::string kernel;
    double flops = 0, bytes = 0;  // of one run
    FactorType factors = FactorType::kWide;
    uint32_t row = 0;  // the row on which it first ran
  };
  struct Row {
    std::string name;
    Context context;
    int num_threads = 0;
  };
  // The latest events, in shared blocks that are never moved: a copy shares them and can be read while the log grows.
  class EventLog {
   public:
    size_t size() const { return size_; }
    void add(const Event &event);  // throws std::bad_alloc
    void drop_oldest();
    void append_to(std::vector<Event> *events) const;

   private:
    static constexpr size_t kLength = 1024;
    std::deque<std::shared_ptr<Event[]>> blocks_;
    size_t first_ = 0, size_ = 0;  // relative to the start of the first block
  };
  struct Contents {
    EventLog log;
    std::vector<Work> works;
    std::vector<Row> rows;
    uint64_t num_dropped = 0;
    int64_t start_ns = 0;
  };
  struct Open {  // a span of the host that has not ended
    std::string name;
    int64_t begin_ns;
  };
  class Report;

  uint32_t row_of(const TraceRow &row);
  void check_own_row(const std::string &name) const;
  uint32_t own_row(const std::string &name);
  uint32_t work_of(const Span &span);
  uint32_t named_work(SpanKind kind, const std::string &name);
  void add_event(const Event &event) noexcept;
  std::vector<Event> open_events(int64_t now);  // open spans, as if they ended now
  Contents without_events() const;

  const Options options_;
  mutable std::mutex mutex_;  // guards the rest
  bool running_ = false;
  int64_t resumed_ns_ = 0;  // when recording last started or was cleared
  Contents held_;
  std::unordered_map<uint64_t, uint32_t> works_by_id_, rows_by_id_;
  std::map<std::pair<SpanKind, std::string>, uint32_t> works_by_name_;
  std::map<std::string, uint32_t> rows_by_name_, shared_rows_;
  std::map<std::string, std::vector<Open>> open_;  // by row; no list is empty
  Totals totals_[2];                               // by name, by operator
};

}  // namespace cohort
