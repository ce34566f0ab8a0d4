// SPDX-License-Identifier: Apache-2.0
// Steps on monitors.
#include "scenario.hpp"

namespace golden {
namespace {

Value install_monitor(Scenario &scenario, const Value &step) {
  MonitorOptions options;
  options.pattern = step.word("pattern", "");
  options.sort = step.flag("sort", false);
  options.monitor_all = step.flag("monitor_all", false);
  Monitor made(static_cast<int64_t>(step.number("interval", 1)), options);
  if (step.find("exec"))
    made.install(scenario.executor(step).handle);
  else if (step.find("manager"))
    made.install(scenario.manager(step));
  else
    made.install(scenario.group(step));
  scenario.monitors[step.at("monitor").as_text()] = std::move(made);
  return Value();
}

Value monitor_tic(Scenario &scenario, const Value &step) {
  scenario.monitor(step).tic();
  return Value();
}

Value monitor_toc(Scenario &scenario, const Value &step) {
  Value names = Value::list(), entries = Value::list();
  for (const MonitorEntry &entry : scenario.monitor(step).toc()) {
    const Value batch = Value::integer(entry.step), name = Value::text(entry.name);
    const Value statistic = Value::real(read_array(entry.values.at(0)).real(0));  // the default: one number
    names.add(Value::list({batch, name}));
    entries.add(Value::list({batch, name, statistic}));
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
