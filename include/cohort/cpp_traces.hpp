/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_traces.hpp
 * Traces: what the library ran, and when. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_TRACES_HPP
#define COHORT_CPP_TRACES_HPP

#include <string>
#include <vector>

#include "cohort/cpp_library.hpp"

namespace cohort {
inline namespace abi0 {

/** Settings of a trace: cohort_trace_options. */
struct TraceOptions {
  size_t max_events = 0;
  double flop_per_s = 0;
  double bfloat16_flop_per_s = 0;
  double byte_per_s = 0;
};

/** A row of totals: cohort_trace_total(). */
struct SpanTotal {
  std::string name, op;
  cohort_span_total total;
};

/** A record of the steps that the process runs, and of the time they take. */
class Trace : public Handle<cohort_trace, cohort_trace_free> {
 public:
  using Handle::Handle;
  /** One that does not run yet: cohort_trace_create(). */
  explicit Trace(const TraceOptions &options = {}) {
    cohort_trace_options c = COHORT_TRACE_OPTIONS_INIT;
    c.max_events = options.max_events;
    c.flop_per_s = options.flop_per_s;
    c.bfloat16_flop_per_s = options.bfloat16_flop_per_s;
    c.byte_per_s = options.byte_per_s;
    adopt(make<Handle>(cohort_trace_create, &c).release());
  }

  /** cohort_trace_start(). */
  void start() { check(cohort_trace_start(get())); }
  /** cohort_trace_stop(). */
  void stop() { check(cohort_trace_stop(get())); }
  /** cohort_trace_clear(). */
  void clear() { check(cohort_trace_clear(get())); }
  /** cohort_trace_get_info(). */
  cohort_trace_info info() const {
    cohort_trace_info found = COHORT_TRACE_INFO_INIT;
    check(cohort_trace_get_info(get(), &found));
    return found;
  }
  /** The events in Chrome's format: cohort_trace_json(). */
  std::string json() { return query<const char *>(cohort_trace_json, get()); }
  /** The same to a file: cohort_trace_write(). */
  void write(const std::string &path) const { check(cohort_trace_write(get(), path.c_str())); }
  /** Totals, those that took longest first: cohort_trace_num_totals(), cohort_trace_total(). */
  std::vector<SpanTotal> totals(cohort_totals_by by = COHORT_TOTALS_BY_NAME) {
    std::vector<SpanTotal> rows(query<size_t>(cohort_trace_num_totals, get(), by));
    for (size_t i = 0; i < rows.size(); ++i) {
      const char *name = nullptr, *op = nullptr;
      rows[i].total = COHORT_SPAN_TOTAL_INIT;
      check(cohort_trace_total(get(), by, i, &name, &op, &rows[i].total));
      rows[i].name = name;
      rows[i].op = op;
    }
    return rows;
  }
  /** The totals as a table: cohort_trace_table(). */
  std::string table(cohort_totals_by by = COHORT_TOTALS_BY_NAME) {
    return query<const char *>(cohort_trace_table, get(), by);
  }
  /** Begins a span of the caller's own on a row: cohort_trace_begin(). */
  void begin(const std::string &row, const std::string &name) {
    check(cohort_trace_begin(get(), row.c_str(), name.c_str()));
  }
  /** cohort_trace_end(). */
  void end(const std::string &row) { check(cohort_trace_end(get(), row.c_str())); }
  /** Marks a moment: cohort_trace_mark(). */
  void mark(const std::string &row, const std::string &name) {
    check(cohort_trace_mark(get(), row.c_str(), name.c_str()));
  }
  /** Notes the value of a counter: cohort_trace_counter(). */
  void counter(const std::string &name, double value) { check(cohort_trace_counter(get(), name.c_str(), value)); }
};

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_TRACES_HPP */
