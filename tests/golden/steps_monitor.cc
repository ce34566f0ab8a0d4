// SPDX-License-Identifier: Apache-2.0
// Steps on monitors.
#include "scenario.hpp"

namespace golden {
namespace {

Value install_monitor(Scenario &scenario, const Value &step) {
  const std::string pattern = step.word("pattern", "");
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  options.pattern = pattern.c_str();
  options.sort = step.flag("sort", false);
  options.monitor_all = step.flag("monitor_all", false);
  Monitor made = make<Monitor>(cohort_monitor_create, static_cast<int64_t>(step.number("interval", 1)), &options);
  if (step.find("exec"))
    check(cohort_monitor_install_on_executor(made.get(), scenario.executor(step).handle.get()));
  else if (step.find("manager"))
    check(cohort_monitor_install_on_manager(made.get(), scenario.manager(step)));
  else
    check(cohort_monitor_install_on_group(made.get(), scenario.group(step)));
  scenario.monitors[step.at("monitor").as_text()] = std::move(made);
  return Value();
}

Value monitor_tic(Scenario &scenario, const Value &step) {
  check(cohort_monitor_tic(scenario.monitor(step)));
  return Value();
}

// The statistic of an entry. The default statistic is a single number.
Value statistic_of(const cohort_monitor *monitor, size_t index) {
  const auto values = make<Arrays>(cohort_monitor_values, monitor, index);
  return Value::real(read_array(make<NDArray>(cohort_arrays_get, values.get(), 0).get()).real(0));
}

Value monitor_toc(Scenario &scenario, const Value &step) {
  cohort_monitor *monitor = scenario.monitor(step);
  const size_t num = query<size_t>(cohort_monitor_toc, monitor);
  Value names = Value::list(), entries = Value::list();
  for (size_t i = 0; i < num; ++i) {
    int64_t batch = 0;
    const char *name = nullptr;
    check(cohort_monitor_entry(monitor, i, &batch, &name, nullptr));
    names.add(Value::list({Value::integer(batch), Value::text(name)}));
    entries.add(Value::list({Value::integer(batch), Value::text(name), statistic_of(monitor, i)}));
  }
  Value found = Value::object();
  found.set("names", names);
  found.set("entries", entries);
  return found;
}

}  // namespace

void add_monitor_steps(StepTable &table) {
  table["install_monitor"] = install_monitor;
  table["monitor_tic"] = monitor_tic;
  table["monitor_toc"] = monitor_toc;
}

}  // namespace golden
