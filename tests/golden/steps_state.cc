// SPDX-License-Identifier: Apache-2.0
// Steps that set and read the arrays a group keeps: parameters, their gradients, auxiliary states, states.
#include <algorithm>

#include "scenario.hpp"

namespace golden {
namespace {

Value set_params(Scenario &scenario, const Value &step) {
  const Arrays arg = scenario.files.named(step.get("arg")), aux = scenario.files.named(step.get("aux"));
  check(cohort_group_set_params(scenario.group(step), arg.get(), aux.get(), step.flag("allow_extra", false)));
  return Value();
}

Value set_device_params(Scenario &scenario, const Value &step) {
  const auto executor =
      make<Executor>(cohort_group_executor, scenario.group(step), static_cast<size_t>(step.at("device").as_integer()));
  const Arrays arg = scenario.files.named(step.get("arg")), aux = scenario.files.named(step.get("aux"));
  check(cohort_executor_copy_params_from(executor.get(), arg.get(), aux.get(), 0));
  return Value();
}

Value get_params(Scenario &scenario, const Value &step) {
  const cohort_group *group = scenario.group(step);
  const Arrays arg = make_targets(group, COHORT_GROUP_PARAMS, step), aux = make_targets(group, COHORT_GROUP_AUX, step);
  check(cohort_group_get_params(group, arg.get(), aux.get()));
  Value found = Value::object();
  found.set("arg", values_by_name(arg.get()));
  found.set("aux", values_by_name(aux.get()));
  return found;
}

// Arrays of a list by name, each as a list with one array per device.
Value device_values(const cohort_group *group, int32_t list, const Value &step) {
  const std::vector<std::string> wanted = step.get("names").as_texts(), names = group_names(group, list);
  Value values = Value::object();
  for (size_t i = 0; i < names.size(); ++i) {
    if (!step.get("names").is_null() && std::find(wanted.begin(), wanted.end(), names[i]) == wanted.end()) continue;
    Value devices = Value::list();
    for (const NDArray &array : device_arrays(group, list, i)) devices.add(Value::array(array.get()));
    values.set(names[i], devices);
  }
  Value found = Value::object();
  found.set("values", values);
  return found;
}

Value param_arrays(Scenario &scenario, const Value &step) {
  return device_values(scenario.group(step), COHORT_GROUP_PARAMS, step);
}

Value param_grads(Scenario &scenario, const Value &step) {
  return device_values(scenario.group(step), COHORT_GROUP_GRADS, step);
}

Value aux_arrays(Scenario &scenario, const Value &step) {
  return device_values(scenario.group(step), COHORT_GROUP_AUX, step);
}

Value fill_grads(Scenario &scenario, const Value &step) {
  const cohort_group *group = scenario.group(step);
  for (const int32_t list : {COHORT_GROUP_GRADS, COHORT_GROUP_INPUT_GRADS}) {
    if (list == COHORT_GROUP_INPUT_GRADS && !step.flag("inputs", false)) continue;
    const size_t num = query<size_t>(cohort_group_num_arrays, group, list);
    for (size_t i = 0; i < num; ++i)
      for (const NDArray &array : device_arrays(group, list, i))
        if (array) check(cohort_ndarray_fill(array.get(), step.at("value").as_real()));
  }
  return Value();
}

Value get_states(Scenario &scenario, const Value &step) {
  const cohort_group *group = scenario.group(step);
  const size_t num = query<size_t>(cohort_group_num_arrays, group, COHORT_GROUP_STATES);
  Value found = Value::object();
  found.set("values", merged_or_not(group, COHORT_GROUP_STATES, step.at("merge").as_bool(), 0, num));
  return found;
}

// The outputs on each device, in the order of the states that they are to replace.
std::vector<NDArray> states_from_outputs(const cohort_group *group, const std::vector<int64_t> &outputs) {
  std::vector<NDArray> states;
  for (const int64_t output : outputs)
    for (NDArray &array : device_arrays(group, COHORT_GROUP_OUTPUTS, static_cast<size_t>(output)))
      states.push_back(std::move(array));
  return states;
}

Value set_states(Scenario &scenario, const Value &step) {
  cohort_group *group = scenario.group(step);
  std::vector<NDArray> states;
  size_t num_states = 0, num_given = num_devices(group);
  const Value &from_outputs = step.get("from_outputs"), &given = step.get("states");
  if (!from_outputs.is_null()) {
    states = states_from_outputs(group, from_outputs.as_integers());
    num_states = from_outputs.items().size();
  } else if (!given.is_null()) {
    num_states = given.items().size();
    for (const Value &state : given.items()) {
      num_given = state.items().size();
      for (NDArray &array : scenario.files.arrays(state)) states.push_back(std::move(array));
    }
    if (states.size() != num_states * num_given) throw BadCase("states have different numbers of devices");
  }
  const double value = step.number("value", 0);
  check(cohort_group_set_states(group, states.empty() ? nullptr : raw(states).data(), num_states, num_given,
                                step.get("value").is_null() ? nullptr : &value));
  return Value();
}

}  // namespace

Arrays make_targets(const cohort_group *group, int32_t list, const Value &step) {
  const std::vector<std::string> wanted = step.get("targets").as_texts();
  const Value &types = step.get("target_types");
  Arrays targets = make<Arrays>(cohort_arrays_create);
  const std::vector<std::string> names = group_names(group, list);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!step.get("targets").is_null() && std::find(wanted.begin(), wanted.end(), names[i]) == wanted.end()) continue;
    const auto array = make<NDArray>(cohort_group_array, group, list, i, 0);
    int32_t dtype = query<int32_t>(cohort_ndarray_dtype, array.get());
    if (!types.is_null() && types.find(names[i]))
      dtype = query<int32_t>(cohort_dtype_parse, types.at(names[i]).as_text().c_str());
    const cohort_context host = {COHORT_DEVICE_CPU, 0};
    check(cohort_arrays_add(targets.get(), names[i].c_str(), zeros_like(array.get(), dtype, host).get()));
  }
  return targets;
}

Value values_by_name(const cohort_arrays *arrays) {
  Value values = Value::object();
  const size_t num = query<size_t>(cohort_arrays_num, arrays);
  for (size_t i = 0; i < num; ++i)
    values.set(query<const char *>(cohort_arrays_name, arrays, i),
               Value::array(make<NDArray>(cohort_arrays_get, arrays, i).get()));
  return values;
}

void add_state_steps(StepTable &table) {
  table["set_params"] = set_params;
  table["set_device_params"] = set_device_params;
  table["get_params"] = get_params;
  table["param_arrays"] = param_arrays;
  table["param_grads"] = param_grads;
  table["aux_arrays"] = aux_arrays;
  table["fill_grads"] = fill_grads;
  table["get_states"] = get_states;
  table["set_states"] = set_states;
}

}  // namespace golden
