/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_monitors.hpp
 * Monitors: what passes through the layers. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_MONITORS_HPP
#define COHORT_CPP_MONITORS_HPP

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cohort/cpp_managers.hpp"

namespace cohort {
inline namespace abi0 {

/** Computes what a monitor reports of an array: one array or more. */
using StatisticFunction = std::function<std::vector<NDArray>(const NDArray &array)>;
/** Says whether a monitor is to report an array. */
using NameFilterFunction = std::function<bool(const std::string &name)>;

/** Settings of a monitor: cohort_monitor_options, where each field is described. */
struct MonitorOptions {
  std::string pattern;
  cohort_pattern_mode pattern_mode = COHORT_PATTERN_ANCHORED;
  bool all_in_toc = false;
  bool sort = false;
  bool monitor_all = false;
  StatisticFunction statistic;
  NameFilterFunction filter;
  bool stop_if_not_finite = false;
};

/** An entry of a report. */
struct MonitorEntry {
  int64_t step = 0;
  std::string name, text;
  std::vector<NDArray> values;
};

/** Statistics of the arrays of executors, groups and managers while they run. */
class Monitor : public Handle<cohort_monitor, cohort_monitor_free> {
 public:
  using Handle::Handle;
  Monitor() noexcept = default;
  /** cohort_monitor_create(). */
  explicit Monitor(int64_t interval, const MonitorOptions &options = {}) {
    cohort_monitor_options c = COHORT_MONITOR_OPTIONS_INIT;
    c.pattern = options.pattern.c_str();
    c.pattern_mode = options.pattern_mode;
    c.all_in_toc = options.all_in_toc;
    c.sort = options.sort;
    c.stop_if_not_finite = options.stop_if_not_finite;
    c.monitor_all = options.monitor_all;
    c.statistic_user_data = detail::keep_closure(closures_, options.statistic);
    c.statistic = options.statistic ? call_statistic : nullptr;
    c.filter_user_data = detail::keep_closure(closures_, options.filter);
    c.filter = options.filter ? call_filter : nullptr;
    adopt(make<Handle>(cohort_monitor_create, interval, &c).release());
  }

  /** cohort_monitor_install_on_executor(). */
  void install(Executor &executor) { check(cohort_monitor_install_on_executor(get(), executor.get())); }
  /** cohort_monitor_install_on_group(). */
  void install(Group &group) { check(cohort_monitor_install_on_group(get(), group.get())); }
  /** cohort_monitor_install_on_manager(). */
  void install(Manager &manager) { check(cohort_monitor_install_on_manager(get(), manager.get())); }
  /** Begins a batch: cohort_monitor_tic(). */
  void tic() { check(cohort_monitor_tic(get())); }
  /** Ends a batch and returns its entries: cohort_monitor_toc(), cohort_monitor_entry(), cohort_monitor_values(). */
  std::vector<MonitorEntry> toc() {
    std::vector<MonitorEntry> entries(query<size_t>(cohort_monitor_toc, get()));
    for (size_t i = 0; i < entries.size(); ++i) {
      const char *name = nullptr, *text = nullptr;
      check(cohort_monitor_entry(get(), i, &entries[i].step, &name, &text));
      entries[i].name = name;
      entries[i].text = text;
      entries[i].values = make<Arrays>(cohort_monitor_values, get(), i).list();
    }
    return entries;
  }
  /** How many batches were begun: cohort_monitor_step(). */
  int64_t step() const { return query<int64_t>(cohort_monitor_step, get()); }

 private:
  static int32_t call_statistic(cohort_ndarray *array, cohort_arrays *values, void *user_data) {
    const bool done = detail::run_closure<StatisticFunction>(user_data, [&](StatisticFunction &function) {
      for (const NDArray &value : function(NDArray::share(array)))
        check(cohort_arrays_add(values, nullptr, value.get()));
    });
    return done ? 0 : 1;
  }
  static int32_t call_filter(const char *name, void *user_data) {
    bool wanted = false;
    const bool done = detail::run_closure<NameFilterFunction>(
        user_data, [&](NameFilterFunction &function) { wanted = function(name); });
    return done ? int32_t{wanted} : -1;
  }

  detail::Closures closures_;
};

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_MONITORS_HPP */
