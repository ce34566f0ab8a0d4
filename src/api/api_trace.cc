// SPDX-License-Identifier: Apache-2.0
#include "cohort/trace.h"

#include <cmath>

#include "api/objects.hpp"
#include "ndarray/file.hpp"

using namespace cohort;
using namespace cohort::api;

namespace {

Recording &recording_of(const cohort_trace *trace) { return *deref(trace, "trace").recording; }

double to_rate(double rate, const char *what) {
  if (std::isfinite(rate) && rate >= 0) return rate;
  throw Error(Code::kInvalidArgument, text(what, ": expected a rate from 0, found ", rate), what);
}

bool to_by_operator(int32_t by) {
  if (by == COHORT_TOTALS_BY_NAME || by == COHORT_TOTALS_BY_OPERATOR) return by == COHORT_TOTALS_BY_OPERATOR;
  throw Error(Code::kInvalidArgument, text("by: expected a COHORT_TOTALS_ constant, found ", by), "by");
}

}  // namespace

void cohort_trace_options_init(cohort_trace_options *options, size_t struct_size) { init_struct(options, struct_size); }

cohort_error *cohort_trace_create(const cohort_trace_options *options, cohort_trace **out_trace) {
  return guard([&] {
    require(out_trace, "out_trace");
    const cohort_trace_options set = read_options(options, "options");
    Recording::Options chosen;
    chosen.max_events = set.max_events;
    chosen.rates = {to_rate(set.flop_per_s, "flop_per_s"), to_rate(set.bfloat16_flop_per_s, "bfloat16_flop_per_s"),
                    to_rate(set.byte_per_s, "byte_per_s")};
    TraceObject object;
    object.recording = std::make_shared<Recording>(chosen);
    *out_trace = make_handle<cohort_trace>(std::move(object));
  });
}

void cohort_trace_free(cohort_trace *trace) {
  const CallScope inside;
  free_handle(trace);
}

cohort_error *cohort_trace_start(cohort_trace *trace) {
  return guard([&] { recording_of(trace).start(); });
}

cohort_error *cohort_trace_stop(cohort_trace *trace) {
  return guard([&] { recording_of(trace).stop(); });
}

cohort_error *cohort_trace_clear(cohort_trace *trace) {
  return guard([&] { recording_of(trace).clear(); });
}

cohort_error *cohort_trace_get_info(const cohort_trace *trace, cohort_trace_info *out_info) {
  return guard([&] {
    const Recording &recording = recording_of(trace);
    require(out_info, "out_info");
    const cohort_trace_info info = {sizeof(info), recording.num_events(), recording.num_dropped(), recording.running()};
    write_struct(&info, sizeof(info), out_info, "out_info");
  });
}

cohort_error *cohort_trace_json(cohort_trace *trace, const char **out_json) {
  return guard([&] {
    require(out_json, "out_json");
    TraceObject &object = deref(trace, "trace");
    object.json = object.recording->json();
    *out_json = object.json.c_str();
  });
}

cohort_error *cohort_trace_write(const cohort_trace *trace, const char *path) {
  return guard([&] {
    Recording &recording = recording_of(trace);
    OutputFile file(to_text(path, "path"));
    const std::string json = recording.json();
    file.append(json.data(), json.size());
    file.commit();
  });
}

cohort_error *cohort_trace_num_totals(const cohort_trace *trace, int32_t by, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = recording_of(trace).take_totals(to_by_operator(by))->size();
  });
}

cohort_error *cohort_trace_total(cohort_trace *trace, int32_t by, size_t index, const char **out_name,
                                 const char **out_op, cohort_span_total *out_total) {
  return guard([&] {
    require(out_name, "out_name");
    require(out_op, "out_op");
    TraceObject &object = deref(trace, "trace");
    const Recording::Totals totals = object.recording->taken_totals(to_by_operator(by));
    check_index(index, totals->size(), "index");
    const SpanTotal &found = (*totals)[index];
    const cohort_span_total total = {sizeof(total), int32_t(found.kind), found.count, found.total_ns, found.least_ns,
                                     found.most_ns, found.flops,         found.bytes, found.bound_ns};
    write_struct(&total, sizeof(total), out_total, "out_total");
    object.name = found.name;
    object.op = found.op;
    *out_name = object.name.c_str();
    *out_op = object.op.c_str();
  });
}

cohort_error *cohort_trace_table(cohort_trace *trace, int32_t by, const char **out_text) {
  return guard([&] {
    require(out_text, "out_text");
    TraceObject &object = deref(trace, "trace");
    object.table = object.recording->table(to_by_operator(by));
    *out_text = object.table.c_str();
  });
}

cohort_error *cohort_trace_begin(cohort_trace *trace, const char *row, const char *name) {
  return guard([&] { recording_of(trace).begin(to_text(row, "row"), to_text(name, "name")); });
}

cohort_error *cohort_trace_end(cohort_trace *trace, const char *row) {
  return guard([&] { recording_of(trace).end(to_text(row, "row")); });
}

cohort_error *cohort_trace_mark(cohort_trace *trace, const char *row, const char *name) {
  return guard([&] { recording_of(trace).mark(to_text(row, "row"), to_text(name, "name")); });
}

cohort_error *cohort_trace_counter(cohort_trace *trace, const char *name, double value) {
  return guard([&] {
    if (!std::isfinite(value)) {
      throw Error(Code::kInvalidArgument, "value: expected a finite number", "value");
    }
    recording_of(trace).count(to_text(name, "name"), value);
  });
}
