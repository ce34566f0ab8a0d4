// SPDX-License-Identifier: Apache-2.0
// The profiler: MXSetProcessProfiler*, MXDumpProcessProfile, MXAggregateProfileStats*, and MXProfile* with the host's
// own tasks, counters and marks. One trace of Cohort's keeps what goes to the file, another one the totals, which the
// host can reset.
#include "profiler.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "handles.hpp"
#include "mxnet/c_api.h"

namespace cohort_mxnet {
namespace {

// Numbers of one name. Times in milliseconds, memory in kB, values of counters as they are.
struct Totals {
  uint64_t count = 0;
  double total = 0, least = 0, most = 0;

  void add(double number) {
    least = count == 0 ? number : std::min(least, number);
    most = count == 0 ? number : std::max(most, number);
    total += number;
    ++count;
  }
  double mean() const { return count == 0 ? 0 : total / static_cast<double>(count); }
};

using TotalsByName = std::map<std::string, Totals>;
using Domains = std::map<std::string, TotalsByName>;

enum class SortBy { kTotal, kMean, kLeast, kMost, kCount };

double sort_key(const Totals &totals, SortBy by) {
  switch (by) {
    case SortBy::kTotal:
      return totals.total;
    case SortBy::kMean:
      return totals.mean();
    case SortBy::kLeast:
      return totals.least;
    case SortBy::kMost:
      return totals.most;
    case SortBy::kCount:
      return static_cast<double>(totals.count);
  }
  return 0;
}

struct Report {
  Domains times, memory;
};

std::vector<std::pair<std::string, Totals>> sorted(const TotalsByName &totals, SortBy by, bool ascending) {
  std::vector<std::pair<std::string, Totals>> rows(totals.begin(), totals.end());
  std::stable_sort(rows.begin(), rows.end(), [&](const auto &a, const auto &b) {
    const double left = sort_key(a.second, by), right = sort_key(b.second, by);
    return ascending ? left < right : left > right;
  });
  return rows;
}

std::string number_text(double number) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4g", number);
  std::replace(text, text + sizeof text, ',', '.');  // whatever the locale
  return text;
}

std::string json_text(const std::string &text) {
  std::string quoted = "\"";
  for (const char c : text) {
    char escaped[8];
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      quoted += escaped;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string json_of(const Domains &domains, bool has_total, SortBy by, bool ascending) {
  std::string json = "{";
  const char *between_domains = "";
  for (const auto &[domain, totals] : domains) {
    json += between_domains + ("\n        " + json_text(domain)) + ": {";
    between_domains = ",";
    const char *between_rows = "";
    for (const auto &[name, row] : sorted(totals, by, ascending)) {
      json += between_rows + ("\n            " + json_text(name)) + ": {\"Count\": " + std::to_string(row.count);
      if (has_total) json += ", \"Total\": " + number_text(row.total);
      json += ", \"Min\": " + number_text(row.least) + ", \"Max\": " + number_text(row.most) +
              ", \"Avg\": " + number_text(row.mean()) + "}";
      between_rows = ",";
    }
    json += "\n        }";
  }
  return json + "\n    }";
}

std::string json_of(const Report &report, SortBy by, bool ascending) {
  return "{\n    \"Time\": " + json_of(report.times, true, by, ascending) +
         ",\n    \"Memory\": " + json_of(report.memory, false, by, ascending) +
         ",\n    \"Unit\": {\"Time\": \"ms\", \"Memory\": \"kB\"}\n}\n";
}

std::string table_of(const Domains &domains, bool has_total, SortBy by, bool ascending) {
  std::string table;
  const auto add = [&](const char *format, const std::string &name, const std::string &count,
                       std::initializer_list<std::string> numbers) {
    char line[256];
    std::snprintf(line, sizeof line, format, name.c_str(), count.c_str());
    table += line;
    for (const std::string &number : numbers) {
      std::snprintf(line, sizeof line, " %16s", number.c_str());
      table += line;
    }
    table += '\n';
  };
  const auto fixed = [](double number) {
    char text[64];
    std::snprintf(text, sizeof text, "%.4f", number);
    return std::string(text);
  };
  for (const auto &[domain, totals] : domains) {
    table += domain + "\n=================\n";
    if (has_total) {
      add("%-40.100s %12s", "Name", "Total Count", {"Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)"});
    } else {
      add("%-40.100s %12s", "Name", "Total Count", {"Min Use (kB)", "Max Use (kB)", "Avg Use (kB)"});
    }
    for (const auto &[name, row] : sorted(totals, by, ascending)) {
      const std::string count = std::to_string(row.count);
      if (has_total) {
        add("%-40.100s %12s", name, count, {fixed(row.total), fixed(row.least), fixed(row.most), fixed(row.mean())});
      } else {
        add("%-40.100s %12s", name, count, {fixed(row.least), fixed(row.most), fixed(row.mean())});
      }
    }
    table += '\n';
  }
  return table;
}

std::string table_of(const Report &report, SortBy by, bool ascending) {
  return "\nProfile Statistics:\n\tTimes in ms, memory in kB, counters as they are.\n" +
         table_of(report.memory, false, by, ascending) + table_of(report.times, true, by, ascending);
}

const char *kind_text(cohort_span_kind kind) {
  switch (kind) {
    case COHORT_SPAN_OPERATOR:
      return "operator";
    case COHORT_SPAN_PASS:
      return "pass";
    case COHORT_SPAN_COPY:
      return "copy";
    case COHORT_SPAN_EXCHANGE:
      return "exchange";
    case COHORT_SPAN_UPDATE:
      return "update";
    case COHORT_SPAN_WAIT:
      return "wait";
    case COHORT_SPAN_CALL:
      return "call";
    default:
      return nullptr;  // the host's own, which are counted here
  }
}

// The one of the process.
class Profiler {
 public:
  static Profiler &instance() {
    static Profiler &profiler = *std::make_unique<Profiler>().release();  // hosts use it while the process ends
    return profiler;
  }

  void configure(int num, const char *const *keys, const char *const *values) {
    static const std::unordered_set<std::string> kOthers{"profile_all",    "profile_symbolic", "profile_imperative",
                                                         "profile_api",    "profile_memory",   "dump_period",
                                                         "profile_process"};
    if (num < 0) fail("num_params: expected 0 or more, found " + std::to_string(num));
    if (num != 0) require(keys, "keys"), require(values, "vals");
    std::string filename = "profile.json";
    bool aggregates = false, writes_at_stop = false;
    const auto flag = [](const std::string &key, const std::string &value) {
      if (value == "1" || value == "True" || value == "true") return true;
      if (value != "0" && value != "False" && value != "false")
        fail("profiler: " + key + ": expected True or False, found '" + value + "'");
      return false;
    };
    for (int i = 0; i < num; ++i) {
      const std::string key = &required(keys[i], "a key"), value = &required(values[i], "a value");
      if (key == "filename") {
        if (value.empty()) fail("profiler: filename is empty");
        filename = value;
      } else if (key == "aggregate_stats") {
        aggregates = flag(key, value);
      } else if (key == "continuous_dump") {
        writes_at_stop = flag(key, value);
      } else if (!kOthers.count(key)) {
        fail("profiler: there is no setting '" + key + "'");
      }
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    filename_ = filename;
    aggregates_ = aggregates;
    writes_at_stop_ = writes_at_stop;
  }

  void set_running(bool running) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (running && !events_) events_.emplace();
    if (running && aggregates_ && !totals_) totals_.emplace();
    const bool stops = is_running_ && !running;
    if (stops)
      cohort_error_free(cohort_wait_all());  // work is recorded when it has ended; its errors are told elsewhere
    is_running_ = running;
    is_paused_ = false;
    apply();
    if (stops && writes_at_stop_) events_->write(filename_);
  }

  void set_paused(bool paused) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (paused && is_recording()) cohort_error_free(cohort_wait_all());
    is_paused_ = paused;
    apply();
  }

  // With `finished`, the next file begins without what this one has.
  void write(bool finished) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!events_) fail("the profiler has not run: it is configured and started first");
    if (is_recording()) {
      cohort_error_free(cohort_wait_all());
      sample_memory();
    }
    events_->write(filename_);
    if (finished) events_->clear();
  }

  std::string report(bool as_json, SortBy by, bool ascending, bool reset) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Report report{own_totals_, memory_};
    if (totals_) {
      if (is_recording()) {
        cohort_error_free(cohort_wait_all());
        sample_memory();
        report.memory = memory_;
      }
      for (const cohort::SpanTotal &row : totals_->totals(COHORT_TOTALS_BY_OPERATOR)) {
        const char *const domain = kind_text(row.total.kind);
        if (!domain) continue;
        Totals &to = report.times[domain][row.op.empty() ? row.name : row.op];
        const double least = static_cast<double>(row.total.least_ns) * 1e-6;
        const double most = static_cast<double>(row.total.most_ns) * 1e-6;
        to.least = to.count == 0 ? least : std::min(to.least, least);
        to.most = std::max(to.most, most);
        to.total += static_cast<double>(row.total.total_ns) * 1e-6;
        to.count += row.total.count;
      }
    }
    if (reset) {
      own_totals_.clear();
      memory_.clear();
      if (totals_) totals_->clear();
    }
    return as_json ? json_of(report, by, ascending) : table_of(report, by, ascending);
  }

  // A row for each name shows spans that do not nest as they were. A trace has a limited number of rows.
  std::string row_of(const std::string &domain, const std::string &name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string row = domain + ": " + name;
    if (rows_.count(row)) return row;
    if (rows_.size() >= kMostRows) return domain;
    rows_.insert(row);
    return row;
  }

  void begin(const std::string &row, const std::string &name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!events_) events_.emplace();
    events_->begin(row, name);
  }

  void end(const std::string &domain, const std::string &row, const std::string &name, double milliseconds) {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_->end(row);
    if (is_recording()) own_totals_[domain][name].add(milliseconds);
  }

  // Without a lock: the answer may be old by the time it is used.
  bool may_record() const { return may_record_.load(std::memory_order_relaxed); }

  void note_time(const std::string &domain, const std::string &name, double milliseconds) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_recording()) own_totals_[domain][name].add(milliseconds);
  }

  void count(const std::string &domain, const std::string &name, double value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_recording()) return;
    events_->counter(domain + ": " + name, value);
    own_totals_[domain][name].add(value);
  }

  void mark(const std::string &domain, const std::string &name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_recording()) events_->mark(domain, name);
  }

 private:
  static constexpr size_t kMostRows = 512;

  bool is_recording() const { return is_running_ && !is_paused_; }

  // Starts and stops the traces as the state says.
  void apply() {
    may_record_ = is_recording();
    for (std::optional<cohort::Trace> *const trace : {&events_, &totals_}) {
      if (!*trace) continue;
      const bool runs = (*trace)->info().running != 0;
      if (runs && !is_recording()) (*trace)->stop();
      if (!runs && is_recording()) (*trace)->start();
    }
    sample_memory();
  }

  void sample_memory() {
    const cohort_context host{COHORT_DEVICE_CPU, 0};
    cohort_device_memory_info info = COHORT_DEVICE_MEMORY_INFO_INIT;
    cohort::check(cohort_device_memory(&host, &info));
    memory_["Device Storage"]["Memory: cpu/0"].add(static_cast<double>(info.used_bytes) / 1000);
  }

  std::atomic<bool> may_record_{false};
  std::mutex mutex_;  // guards all below
  std::string filename_ = "profile.json";
  bool aggregates_ = false, writes_at_stop_ = false, is_running_ = false, is_paused_ = false;
  std::optional<cohort::Trace> events_, totals_;
  Domains own_totals_;  // of tasks, frames, events and counters
  Domains memory_;      // in use when the profiler started, stopped, wrote or reported
  std::unordered_set<std::string> rows_;
};

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begun) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

// The custom operator whose callback runs on this thread while the profiler records; null: none.
thread_local const std::string *running_custom_operator = nullptr;

void note_custom(const std::string &name, Clock::time_point begun) noexcept {
  try {
    Profiler::instance().note_time("Custom Operator", name, milliseconds_since(begun));
  } catch (...) {  // the totals lack one
  }
}

// A domain, or something in one.
struct ProfileObject : Object {
  static constexpr Kind kKind = Kind::kProfile;
  static constexpr const char *kName = "an object of the profiler";
  enum class Role { kDomain, kDuration, kCounter };

  ProfileObject(Role what, std::string of_domain, std::string own_name)
      : Object(kKind), role(what), domain(std::move(of_domain)), name(std::move(own_name)) {}

  ~ProfileObject() override {
    try {
      if (is_open) stop();
    } catch (...) {  // nobody is left to be told
    }
  }

  void start() {
    if (is_open) stop();
    if (row.empty()) row = Profiler::instance().row_of(domain, name);
    Profiler::instance().begin(row, name);
    begun = Clock::now();
    is_open = true;
  }

  void stop() {
    is_open = false;
    Profiler::instance().end(domain, row, name, milliseconds_since(begun));
  }

  void set(uint64_t number) {
    value = number;
    Profiler::instance().count(domain, name, static_cast<double>(static_cast<int64_t>(value)));
  }

  const Role role;
  const std::string domain, name;
  std::mutex mutex;  // guards all below
  std::string row;
  bool is_open = false;
  Clock::time_point begun;
  uint64_t value = 0;
};

using Role = ProfileObject::Role;

std::shared_ptr<ProfileObject> with_role(ProfileHandle handle, Role role, const char *expected) {
  std::shared_ptr<ProfileObject> object = from_handle<ProfileObject>(handle);
  if (object->role != role) fail(std::string("expected ") + expected + ", found another object of the profiler");
  return object;
}

int create(Role role, const std::string &kind, ProfileHandle domain, const char *name, ProfileHandle *out) {
  return guarded([&] {
    require(out, "out"), require(name, "name");
    const std::string of_domain = with_role(domain, Role::kDomain, "a domain")->domain;
    *out = publish(std::make_shared<ProfileObject>(role, kind.empty() ? of_domain : of_domain + "," + kind, name));
  });
}

template <typename Body>
int with(ProfileHandle handle, Role role, const char *expected, Body body) {
  return guarded([&] {
    const std::shared_ptr<ProfileObject> object = with_role(handle, role, expected);
    const std::lock_guard<std::mutex> lock(object->mutex);
    body(*object);
  });
}

// Only this process can be profiled: there are no servers.
void check_process(int profile_process) {
  if (profile_process != 0) fail("the profiler records this process alone: there are no servers");
}

int set_state(int state) {
  return guarded([&] {
    if (state != 0 && state != 1) fail("state: expected 0 (stop) or 1 (run), found " + std::to_string(state));
    Profiler::instance().set_running(state == 1);
  });
}

}  // namespace

CustomOperatorSpan::CustomOperatorSpan(std::string op) : outer_(running_custom_operator) {
  running_custom_operator = nullptr;
  if (!Profiler::instance().may_record()) return;
  op_ = std::move(op);
  running_custom_operator = &op_;
  begun_ = Clock::now();
}

CustomOperatorSpan::~CustomOperatorSpan() {
  if (!op_.empty()) note_custom(op_ + "::pure_python", begun_);
  running_custom_operator = outer_;
}

AppliedInCallbackSpan::AppliedInCallbackSpan(const std::string &op) : op_(op) {
  if (running_custom_operator) begun_ = Clock::now();
}

AppliedInCallbackSpan::~AppliedInCallbackSpan() {
  if (running_custom_operator) note_custom(*running_custom_operator + "::" + op_, begun_);
}

}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXSetProcessProfilerConfig(int num_params, const char *const *keys, const char *const *vals, KVStoreHandle) {
  return guarded([&] { Profiler::instance().configure(num_params, keys, vals); });
}

int MXSetProfilerConfig(int num_params, const char *const *keys, const char *const *vals) {
  return guarded([&] { Profiler::instance().configure(num_params, keys, vals); });
}

int MXSetProcessProfilerState(int state, int profile_process, KVStoreHandle) {
  const int answer = guarded([&] { check_process(profile_process); });
  return answer != 0 ? answer : set_state(state);
}

int MXSetProfilerState(int state) { return set_state(state); }

int MXDumpProcessProfile(int finished, int profile_process, KVStoreHandle) {
  return guarded([&] {
    check_process(profile_process);
    Profiler::instance().write(finished != 0);
  });
}

int MXDumpProfile(int finished) {
  return guarded([&] { Profiler::instance().write(finished != 0); });
}

int MXProcessProfilePause(int paused, int profile_process, KVStoreHandle) {
  return guarded([&] {
    check_process(profile_process);
    Profiler::instance().set_paused(paused != 0);
  });
}

int MXProfilePause(int paused) {
  return guarded([&] { Profiler::instance().set_paused(paused != 0); });
}

int MXAggregateProfileStatsPrintEx(const char **out_str, int reset, int format, int sort_by, int ascending) {
  return guarded([&] {
    static thread_local std::string text;
    require(out_str, "out_str");
    if (format != 0 && format != 1) fail("format: expected 0 (table) or 1 (json), found " + std::to_string(format));
    if (sort_by < 0 || sort_by > 4) fail("sort_by: expected a number from 0 to 4, found " + std::to_string(sort_by));
    text = Profiler::instance().report(format == 1, static_cast<SortBy>(sort_by), ascending != 0, reset != 0);
    *out_str = text.c_str();
  });
}

int MXAggregateProfileStatsPrint(const char **out_str, int reset) {
  return MXAggregateProfileStatsPrintEx(out_str, reset, 0, 0, 0);
}

int MXProfileCreateDomain(const char *domain, ProfileHandle *out) {
  return guarded([&] {
    require(out, "out"), require(domain, "domain");
    *out = publish(std::make_shared<ProfileObject>(Role::kDomain, domain, domain));
  });
}

int MXProfileCreateTask(ProfileHandle domain, const char *task_name, ProfileHandle *out) {
  return create(Role::kDuration, "", domain, task_name, out);
}

int MXProfileCreateFrame(ProfileHandle domain, const char *frame_name, ProfileHandle *out) {
  return create(Role::kDuration, "frame", domain, frame_name, out);
}

int MXProfileCreateEvent(const char *event_name, ProfileHandle *out) {
  return guarded([&] {
    require(out, "out"), require(event_name, "event_name");
    *out = publish(std::make_shared<ProfileObject>(Role::kDuration, "event", event_name));
  });
}

int MXProfileCreateCounter(ProfileHandle domain, const char *counter_name, ProfileHandle *out) {
  return create(Role::kCounter, "", domain, counter_name, out);
}

int MXProfileDestroyHandle(ProfileHandle frame_handle) {
  return guarded([&] { free_handle<ProfileObject>(frame_handle); });
}

int MXProfileDurationStart(ProfileHandle duration_handle) {
  return with(duration_handle, Role::kDuration, "a task, frame or event",
              [](ProfileObject &object) { object.start(); });
}

int MXProfileDurationStop(ProfileHandle duration_handle) {
  return with(duration_handle, Role::kDuration, "a task, frame or event", [](ProfileObject &object) {
    if (!object.is_open) fail("'" + object.name + "' has not been started");
    object.stop();
  });
}

int MXProfileSetCounter(ProfileHandle counter_handle, uint64_t value) {
  return with(counter_handle, Role::kCounter, "a counter", [&](ProfileObject &object) { object.set(value); });
}

int MXProfileAdjustCounter(ProfileHandle counter_handle, int64_t value) {
  return with(counter_handle, Role::kCounter, "a counter",
              [&](ProfileObject &object) { object.set(object.value + static_cast<uint64_t>(value)); });
}

int MXProfileSetMarker(ProfileHandle domain, const char *instant_marker_name, const char *scope) {
  return guarded([&] {
    require(instant_marker_name, "instant_marker_name"), require(scope, "scope");
    Profiler::instance().mark(with_role(domain, Role::kDomain, "a domain")->domain, instant_marker_name);
  });
}

}  // extern "C"
