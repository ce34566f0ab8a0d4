// SPDX-License-Identifier: Apache-2.0
#include "cohort/monitor.h"

#include "api/objects.hpp"

using namespace cohort;
using namespace cohort::api;

namespace {

bool to_anchored(int32_t mode) {
  if (mode == COHORT_PATTERN_ANCHORED || mode == COHORT_PATTERN_ANYWHERE) return mode == COHORT_PATTERN_ANCHORED;
  throw Error(Code::kInvalidArgument, text("pattern_mode: expected a COHORT_PATTERN_ constant, found ", mode),
              "pattern_mode");
}

std::function<std::vector<NDArray>(const NDArray &)> to_statistic(cohort_statistic_fn callback, void *user_data) {
  if (!callback) return nullptr;
  return [callback, user_data](const NDArray &array) {
    const ScopedHandle<cohort_ndarray> lent(array);
    const ScopedHandle<cohort_arrays> list(NamedArrays{});
    const int32_t status = callback(lent.get(), list.get(), user_data);
    if (status) {
      throw Error(Code::kExecution, text("statistic of the monitor: its callback returned ", status), "statistic");
    }
    std::vector<NDArray> values;
    for (const auto &entry : deref(list.get(), "values")) values.push_back(entry.second);
    return values;
  };
}

std::function<bool(const std::string &)> to_filter(cohort_name_filter_fn callback, void *user_data) {
  if (!callback) return nullptr;
  return [callback, user_data](const std::string &name) {
    const int32_t answer = callback(name.c_str(), user_data);
    if (answer == 0 || answer == 1) return answer == 1;
    throw Error(Code::kExecution, text("filter of the monitor: its callback returned ", answer, " for '", name, "'"),
                "filter");
  };
}

const MonitorEntry &entry_of(const cohort_monitor *monitor, size_t index) {
  const MonitorObject &object = deref(monitor, "monitor");
  check_index(index, object.entries.size(), "index");
  return object.entries[index];
}

// Lets toc report the arguments and auxiliary states of every device of a group as it is then.
void add_devices(Monitor &monitor, const std::shared_ptr<Group> &group) {
  for (size_t device = 0; device < group->num_devices(); ++device) {
    monitor.add([group, device] { return group->executor(device); });
  }
}

}  // namespace

void cohort_monitor_options_init(cohort_monitor_options *options, size_t struct_size) {
  init_struct(options, struct_size);
}

cohort_error *cohort_monitor_create(int64_t interval, const cohort_monitor_options *options,
                                    cohort_monitor **out_monitor) {
  return guard([&] {
    require(out_monitor, "out_monitor");
    const cohort_monitor_options set = read_options(options, "options");
    MonitorOptions how;
    how.interval = interval;
    how.pattern = to_text_or_empty(set.pattern);
    how.anchored = to_anchored(set.pattern_mode);
    how.pattern_of_toc = !to_bool(set.all_in_toc, "all_in_toc");
    how.sort = to_bool(set.sort, "sort");
    how.stop_if_not_finite = to_bool(set.stop_if_not_finite, "stop_if_not_finite");
    how.filter = to_filter(set.filter, set.filter_user_data);
    how.statistic = to_statistic(set.statistic, set.statistic_user_data);
    MonitorObject object;
    object.monitor_all = to_bool(set.monitor_all, "monitor_all");
    object.monitor = std::make_shared<Monitor>(how);
    *out_monitor = make_handle<cohort_monitor>(std::move(object));
  });
}

void cohort_monitor_free(cohort_monitor *monitor) {
  const CallScope inside;
  free_handle(monitor);
}

cohort_error *cohort_monitor_install_on_executor(cohort_monitor *monitor, cohort_executor *executor) {
  return guard([&] {
    const MonitorObject &object = deref(monitor, "monitor");
    const std::shared_ptr<Executor> watched = deref(executor, "executor").executor;
    object.monitor->check_idle();
    watched->set_monitor(object.monitor->function(), object.monitor_all);
    object.monitor->add([watched] { return watched; });
  });
}

cohort_error *cohort_monitor_install_on_group(cohort_monitor *monitor, cohort_group *group) {
  return guard([&] {
    const MonitorObject &object = deref(monitor, "monitor");
    const std::shared_ptr<Group> watched = deref(group, "group").group;
    object.monitor->check_idle();
    watched->set_monitor(object.monitor->function(), object.monitor_all);
    add_devices(*object.monitor, watched);
  });
}

cohort_error *cohort_monitor_install_on_manager(cohort_monitor *monitor, cohort_manager *manager) {
  return guard([&] {
    const MonitorObject &object = deref(monitor, "monitor");
    Manager &watched = *deref(manager, "manager").manager;
    object.monitor->check_idle();
    watched.set_monitor(object.monitor->function(), object.monitor_all);
    add_devices(*object.monitor, watched.main());
  });
}

cohort_error *cohort_monitor_tic(cohort_monitor *monitor) {
  return guard([&] { deref(monitor, "monitor").monitor->tic(); });
}

cohort_error *cohort_monitor_toc(cohort_monitor *monitor, size_t *out_num_entries) {
  return guard([&] {
    require(out_num_entries, "out_num_entries");
    const std::shared_ptr<Monitor> asked = deref(monitor, "monitor").monitor;
    std::vector<MonitorEntry> entries = asked->toc();
    MonitorObject &object = deref(monitor, "monitor");  // look it up again: a host callback may have freed it
    object.texts.assign(entries.size(), std::string());
    object.entries = std::move(entries);
    *out_num_entries = object.entries.size();
  });
}

cohort_error *cohort_monitor_step(const cohort_monitor *monitor, int64_t *out_step) {
  return guard([&] {
    require(out_step, "out_step");
    *out_step = deref(monitor, "monitor").monitor->step();
  });
}

cohort_error *cohort_monitor_entry(const cohort_monitor *monitor, size_t index, int64_t *out_step,
                                   const char **out_name, const char **out_text) {
  return guard([&] {
    const MonitorEntry &entry = entry_of(monitor, index);
    if (out_text) {
      std::string &kept = deref(monitor, "monitor").texts[index];
      if (kept.empty()) kept = entry.text();
      *out_text = kept.c_str();
    }
    write_if(out_step, entry.step);
    write_if(out_name, entry.name.c_str());
  });
}

cohort_error *cohort_monitor_values(const cohort_monitor *monitor, size_t index, cohort_arrays **out_values) {
  return guard([&] {
    require(out_values, "out_values");
    NamedArrays values;
    for (const NDArray &value : entry_of(monitor, index).values) values.emplace_back(std::string(), value);
    *out_values = make_handle<cohort_arrays>(std::move(values));
  });
}
