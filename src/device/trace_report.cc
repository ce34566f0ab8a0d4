// SPDX-License-Identifier: Apache-2.0
// Writes recorded traces: JSON in the form of Chrome's trace events, for viewers such as Perfetto, and totals as a
// table.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "cohort/version.h"
#include "device/device.hpp"
#include "device/recording.hpp"

namespace cohort {
namespace {

void append_quoted(std::string *out, const std::string &source) {
  *out += '"';
  for (const char c : plain_line(source)) {  // no control characters, valid UTF-8
    if (c == '"' || c == '\\') *out += '\\';
    *out += c;
  }
  *out += '"';
}

template <typename T>
void append_number(std::string *out, T value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  out->append(digits, end.ptr);
}

void append_double(std::string *out, double value) {
  if (!std::isfinite(value)) value = 0;  // JSON has no such numbers
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 9);
  out->append(digits, end.ptr);
}

// Microseconds with three digits after the point.
void append_us(std::string *out, int64_t ns) {
  append_number(out, ns / 1000);
  const int64_t rest = ns % 1000;
  *out += '.';
  *out += char('0' + rest / 100);
  *out += char('0' + rest / 10 % 10);
  *out += char('0' + rest % 10);
}

std::string fixed(double value, int digits) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits);
  return end.ec == std::errc() ? std::string(text, end.ptr) : "-";
}

}  // namespace

TimeBound time_bound(double flops, double bytes, FactorType factors, const MachineRates &rates) {
  const double own = factors == FactorType::kNarrow ? rates.narrow_flops_per_s
                     : factors == FactorType::kTf32 ? rates.tf32_flops_per_s
                                                    : 0;
  const double most = own > 0 ? own : rates.flops_per_s;
  const double by_flops = most > 0 ? flops / most * 1e9 : 0;
  const double by_bytes = rates.bytes_per_s > 0 ? bytes / rates.bytes_per_s * 1e9 : 0;
  return by_flops > by_bytes ? TimeBound{by_flops, true} : TimeBound{by_bytes, false};
}

class Recording::Report {
 public:
  struct Sum : SpanTotal {
    bool is_enqueued = false;  // the times are those of the host, enqueuing
  };

  Report(Contents contents, const Options &options) : contents_(std::move(contents)) {
    for (const Row &row : contents_.rows) rates_.push_back(rates_of(row, options.rates));
  }

  std::string json(std::vector<Event> events) {
    std::string out = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"library\":\"cohort ";
    out += COHORT_VERSION;
    out += "\",\"dropped_events\":";
    append_number(&out, contents_.num_dropped);
    out += "},\"traceEvents\":[";
    const int64_t process = getpid();
    append_name(&out, process, 0, "process_name", "cohort");
    for (size_t r = 0; r < contents_.rows.size(); ++r) {
      out += ",\n";
      append_name(&out, process, r + 1, "thread_name", contents_.rows[r].name);
      if (is_queue(contents_.rows[r])) append_machine(&out, process, r);
    }
    sort_events(&events);
    for (const Event &event : events) {
      out += ",\n";
      append_event(&out, process, event);
    }
    out += "]}\n";
    return out;
  }

  std::vector<Sum> totals(bool by_operator) const {
    std::map<std::tuple<SpanKind, std::string, std::string>, Sum> sums;
    for (const Work &work : contents_.works) {
      Sum total{work.total, is_enqueued(contents_.rows[work.row])};
      if (total.count == 0) continue;
      // The same for each run.
      total.bound_ns = time_bound(total.flops, total.bytes, work.factors, rates_[work.row]).ns;
      if (by_operator && !total.op.empty()) total.name.clear();
      Sum &sum = sums[{total.kind, total.op, total.name}];
      if (sum.count == 0) {
        sum = total;
        continue;
      }
      sum.least_ns = std::min(sum.least_ns, total.least_ns);
      sum.most_ns = std::max(sum.most_ns, total.most_ns);
      sum.count += total.count;
      sum.total_ns += total.total_ns;
      sum.flops += total.flops;
      sum.bytes += total.bytes;
      sum.bound_ns += total.bound_ns;
      sum.is_enqueued = sum.is_enqueued || total.is_enqueued;
    }
    std::vector<Sum> result;
    for (auto &entry : sums) result.push_back(std::move(entry.second));
    std::stable_sort(result.begin(), result.end(),
                     [](const SpanTotal &a, const SpanTotal &b) { return a.total_ns > b.total_ns; });
    return result;
  }

  const std::vector<MachineRates> &rates() const { return rates_; }
  const std::vector<Row> &rows() const { return contents_.rows; }
  // Rows of a GPU's queue show the host's work for it, not the time that the GPU takes.
  static bool is_enqueued(const Row &row) { return row.context.type == DeviceType::kGpu; }
  static bool is_queue(const Row &row) { return row.num_threads > 0 || is_enqueued(row); }

 private:
  static MachineRates rates_of(const Row &row, const MachineRates &given) {
    MachineRates rates;
    try {
      const bool all_given = given.flops_per_s > 0 && given.bytes_per_s > 0;
      if (is_queue(row) && !all_given) rates = get_device(row.context)->rates(row.num_threads);
    } catch (const Error &) {  // the device no longer exists
    }
    if (given.flops_per_s > 0) rates.flops_per_s = given.flops_per_s;
    if (given.narrow_flops_per_s > 0) rates.narrow_flops_per_s = given.narrow_flops_per_s;
    if (given.bytes_per_s > 0) rates.bytes_per_s = given.bytes_per_s;
    return rates;
  }

  // By row and start; enclosing spans before those inside them.
  static void sort_events(std::vector<Event> *events) {
    std::stable_sort(events->begin(), events->end(), [](const Event &a, const Event &b) {
      return std::make_tuple(a.row, a.begin_ns, -a.end_ns) < std::make_tuple(b.row, b.begin_ns, -b.end_ns);
    });
  }

  static void append_head(std::string *out, char phase, int64_t process, size_t row) {
    *out += "{\"ph\":\"";
    *out += phase;
    *out += "\",\"pid\":";
    append_number(out, process);
    *out += ",\"tid\":";
    append_number(out, row);
  }

  static void append_name(std::string *out, int64_t process, size_t row, const char *what, const std::string &name) {
    append_head(out, 'M', process, row);
    *out += ",\"name\":\"";
    *out += what;
    *out += "\",\"args\":{\"name\":";
    append_quoted(out, name);
    *out += "}}";
  }

  void append_machine(std::string *out, int64_t process, size_t row) const {
    *out += ",\n";
    append_head(out, 'M', process, row + 1);
    *out += ",\"name\":\"cohort_machine\",\"args\":{\"flop_per_s\":";
    append_double(out, rates_[row].flops_per_s);
    *out += ",\"bfloat16_flop_per_s\":";
    append_double(out, rates_[row].narrow_flops_per_s);
    *out += ",\"byte_per_s\":";
    append_double(out, rates_[row].bytes_per_s);
    *out += "}}";
  }

  void append_event(std::string *out, int64_t process, const Event &event) const {
    const Work &work = contents_.works[event.work];
    const char phase = event.phase == Phase::kSpan ? 'X' : event.phase == Phase::kMark ? 'i' : 'C';
    append_head(out, phase, process, event.row + 1);
    *out += ",\"name\":";
    append_quoted(out, work.total.name);
    *out += ",\"cat\":\"";
    *out += span_kind_name(work.total.kind);
    *out += "\",\"ts\":";
    append_us(out, std::max<int64_t>(0, event.begin_ns - contents_.start_ns));
    if (event.phase == Phase::kMark) *out += ",\"s\":\"t\"";
    if (event.phase == Phase::kCount) {
      *out += ",\"args\":{\"value\":";
      append_double(out, event.number);
      *out += '}';
    }
    if (event.phase == Phase::kSpan) append_span(out, event, work);
    *out += '}';
  }

  void append_span(std::string *out, const Event &event, const Work &work) const {
    const int64_t ns = event.end_ns - event.begin_ns;
    const bool is_timed = !is_enqueued(contents_.rows[event.row]);
    *out += ",\"dur\":";
    append_us(out, ns);
    *out += ",\"args\":{";
    const char *separator = "";
    const auto key = [&](const char *name) {
      *out += separator;
      *out += '"';
      *out += name;
      *out += "\":";
      separator = ",";
    };
    if (!work.total.op.empty()) {
      key("op");
      append_quoted(out, work.total.op);
    }
    if (!work.kernel.empty()) {
      key("kernel");
      append_quoted(out, work.kernel);
    }
    if (work.flops > 0) {
      key("flops");
      append_double(out, work.flops);
      if (is_timed) key("gflop_per_s"), append_double(out, ns > 0 ? work.flops / double(ns) : 0);
    }
    if (event.number > 0) {
      key("bytes");
      append_double(out, event.number);
      if (is_timed) key("gbyte_per_s"), append_double(out, ns > 0 ? event.number / double(ns) : 0);
    }
    const TimeBound bound = time_bound(work.flops, event.number, work.factors, rates_[event.row]);
    if (bound.ns > 0) {
      key("bound");
      *out += bound.by_flops ? "\"flops\"" : "\"bytes\"";
      key("bound_us");
      append_double(out, bound.ns / 1e3);
      if (is_timed) key("of_bound"), append_double(out, ns > 0 ? bound.ns / double(ns) : 0);
    }
    *out += '}';
  }

  Contents contents_;
  std::vector<MachineRates> rates_;  // of each row
};

std::string Recording::json() {
  std::vector<Event> events;
  Contents all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);  // held to copy what is recorded, not to format it
    if (running_) events = open_events(trace_now_ns());
    all = held_;
  }
  all.log.append_to(&events);
  return Report(std::move(all), options_).json(std::move(events));
}

Recording::Totals Recording::take_totals(bool by_operator) {
  const auto sums = Report(without_events(), options_).totals(by_operator);
  const auto taken = std::make_shared<const std::vector<SpanTotal>>(sums.begin(), sums.end());
  const std::lock_guard<std::mutex> lock(mutex_);
  return totals_[by_operator] = taken;
}

Recording::Totals Recording::taken_totals(bool by_operator) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (totals_[by_operator]) return totals_[by_operator];
  }
  return take_totals(by_operator);
}

std::string Recording::table(bool by_operator) const {
  const Report report(without_events(), options_);
  std::vector<std::vector<std::string>> lines{{"kind", "operator", "name", "runs", "total ms", "mean us", "least us",
                                               "most us", "GFLOP/s", "GB/s", "of bound"}};
  for (const Report::Sum &total : report.totals(by_operator)) {
    const double ns = double(std::max<int64_t>(total.total_ns, 1));
    const auto of_time = [&](double amount, double factor, int digits, const char *unit) {
      return amount > 0 && !total.is_enqueued ? fixed(factor * amount / ns, digits) + unit : "-";
    };
    lines.push_back({span_kind_name(total.kind), total.op, total.name, std::to_string(total.count), fixed(ns / 1e6, 3),
                     fixed(ns / 1e3 / double(total.count), 2), fixed(double(total.least_ns) / 1e3, 2),
                     fixed(double(total.most_ns) / 1e3, 2), of_time(total.flops, 1, 1, ""),
                     of_time(total.bytes, 1, 1, ""), of_time(total.bound_ns, 100, 0, " %")});
  }
  std::vector<size_t> widths(lines[0].size(), 0);
  for (auto &line : lines) {
    for (size_t c = 0; c < line.size(); ++c) {
      line[c] = plain_line(line[c]);
      widths[c] = std::max(widths[c], line[c].size());
    }
  }
  std::string out;
  for (const auto &line : lines) {
    std::string row;
    for (size_t c = 0; c < line.size(); ++c) {
      const std::string padding(widths[c] - line[c].size(), ' ');
      row += (c ? "  " : "") + (c < 3 ? line[c] + padding : padding + line[c]);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + '\n';
  }
  for (size_t r = 0; r < report.rows().size(); ++r) {
    const MachineRates &rates = report.rates()[r];
    if (!report.is_queue(report.rows()[r]) || rates.flops_per_s <= 0) continue;
    out += plain_line(report.rows()[r].name) + ": the machine does " + fixed(rates.flops_per_s / 1e9, 1) +
           " GFLOP/s and moves " + fixed(rates.bytes_per_s / 1e9, 1) + " GB/s\n";
  }
  return out;
}

}  // namespace cohort
