// SPDX-License-Identifier: Apache-2.0
#include "executor/monitor.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "executor/name_pattern.hpp"
#include "op/op.hpp"

namespace cohort {
namespace {

NDArray norm_over_root(const NDArray &array) {
  const NDArray wide = array.cast(Dtype::kFloat64).on_host();
  wide.wait();
  const double *const values = wide.data_as<double>();
  double sum = 0;
  for (int64_t i = 0; i < wide.size(); ++i) sum += values[i] * values[i];
  const NDArray result = NDArray::create(Shape{1}, Dtype::kFloat32, Context());
  result.fill(wide.size() > 0 ? std::sqrt(sum) / std::sqrt(double(wide.size())) : 0);
  return result;
}

std::string elements_text(const NDArray &array) {
  const NDArray wide = array.cast(Dtype::kFloat64).on_host();
  wide.wait();
  const double *const values = wide.data_as<double>();
  std::string result = "[";
  for (int64_t i = 0; i < wide.size(); ++i) result += (i ? " " : "") + print_float(values[i]);
  return wide.size() == 1 ? result.substr(1) : result + "]";
}

}  // namespace

void refuse_not_finite(const std::string &name, const NDArray &array) {
  if (!dtype_is_float(array.dtype())) return;
  const NDArray wide = array.cast(Dtype::kFloat64).on_host();
  wide.wait();
  const double *const values = wide.data_as<double>();
  int64_t num = 0, first = 0;
  for (int64_t i = wide.size(); i-- > 0;) {
    if (std::isfinite(values[i])) continue;
    ++num;
    first = i;
  }
  if (num == 0) return;
  std::string place;
  int64_t rest = first;
  for (int axis = array.shape().rank(); axis-- > 0; rest /= array.shape()[axis])
    place = std::to_string(rest % array.shape()[axis]) + (place.empty() ? "" : ", ") + place;
  throw Error(Code::kExecution,
              text("'", name, "': expected finite numbers, found ", num, " of ", wide.size(),
                   " infinite or NaN, the first ", print_float(values[first]), " at (", place, ")"),
              name);
}

std::string MonitorEntry::text() const {
  std::string result;
  for (const NDArray &value : values) result += elements_text(value) + "\t";
  return result;
}

struct Monitor::State {
  explicit State(const MonitorOptions &how) : options(how), pattern(how.pattern, how.anchored) {}

  const MonitorOptions options;
  const NamePattern pattern;
  int64_t step = 0;
  bool active = false;
  mutable bool in_callback = false;
  std::vector<MonitorEntry> entries;
  std::vector<std::function<std::shared_ptr<Executor>()>> executors;

  // Marks that a host callback is running: it must not call this monitor.
  template <typename Fn>
  auto call_host(Fn &&fn) const {
    struct Scope {
      explicit Scope(bool *flag) : inside(flag) { *inside = true; }
      ~Scope() { *inside = false; }
      bool *const inside;
    } const scope(&in_callback);
    return fn();
  }
  void check_idle() const {
    if (in_callback) throw Error(Code::kState, "monitor: called from its own callback", "monitor");
  }
  bool wants(const std::string &name) const {
    return options.filter ? call_host([&] { return options.filter(name); }) : pattern.matches(name);
  }
  void report(const std::string &name, const NDArray &array, std::vector<MonitorEntry> &to) const {
    std::vector<NDArray> values = options.statistic ? call_host([&] { return options.statistic(array); })
                                                    : std::vector<NDArray>{norm_over_root(array)};
    if (values.empty()) throw Error(Code::kInvalidArgument, "statistic: expected an array, found none", "statistic");
    for (const NDArray &value : values) {
      if (!value) throw Error(Code::kInvalidArgument, "statistic: found an entry without an array", "statistic");
    }
    to.push_back({step, name, std::move(values)});
  }
};

Monitor::Monitor(const MonitorOptions &options) : state_(std::make_shared<State>(options)) {
  if (options.filter && !options.pattern.empty())
    throw Error(Code::kInvalidArgument, "filter: expected a filter or a pattern, found both", "filter");
  if (options.interval < 1) {
    throw Error(Code::kInvalidArgument, text("interval: expected at least 1, found ", options.interval), "interval");
  }
}

MonitorFunction Monitor::function() const {
  return [weak = std::weak_ptr<State>(state_)](const std::string &name, const NDArray &array) {
    const std::shared_ptr<State> state = weak.lock();
    if (!state || !state->active) return;
    if (state->options.stop_if_not_finite) refuse_not_finite(name, array);
    if (state->wants(name)) state->report(name, array, state->entries);
  };
}

void Monitor::check_idle() const { state_->check_idle(); }

void Monitor::add(std::function<std::shared_ptr<Executor>()> executor) {
  check_idle();
  state_->executors.push_back(std::move(executor));
}

void Monitor::tic() {
  State &self = *state_;
  self.check_idle();
  if (self.step % self.options.interval == 0) {
    for (const auto &executor : self.executors) executor()->wait();
    self.entries.clear();
    self.active = true;
  }
  ++self.step;
}

std::vector<MonitorEntry> Monitor::toc() {
  State &self = *state_;
  self.check_idle();
  if (!self.active) return {};
  std::vector<MonitorEntry> bound;
  for (const auto &give : self.executors) {
    const std::shared_ptr<Executor> executor = give();
    executor->wait();
    const auto report_all = [&](const std::vector<std::string> &names, const std::vector<NDArray> &arrays) {
      for (size_t i = 0; i < names.size(); ++i)
        if (!self.options.pattern_of_toc || self.wants(names[i])) self.report(names[i], arrays[i], bound);
    };
    report_all(executor->arg_names(), executor->args());
    report_all(executor->aux_names(), executor->aux());
  }
  self.active = false;
  std::vector<MonitorEntry> entries = std::move(self.entries);
  self.entries.clear();
  entries.insert(entries.end(), bound.begin(), bound.end());
  if (self.options.sort) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const MonitorEntry &a, const MonitorEntry &b) { return a.name < b.name; });
  }
  return entries;
}

int64_t Monitor::step() const { return state_->step; }

}  // namespace cohort
