// SPDX-License-Identifier: Apache-2.0
// Steps that set and read the arrays a group keeps: parameters, their gradients, auxiliary states, states.
#include <algorithm>

#include "scenario.hpp"

namespace golden {
namespace {

Value set_params(Scenario &scenario, const Value &step) {
  const Arrays arg = scenario.files.named(step.get("arg")), aux = scenario.files.named(step.get("aux"));
  scenario.group(step).set_params(arg, aux, step.flag("allow_extra", false));
  return Value();
}

Value set_device_params(Scenario &scenario, const Value &step) {
  Executor executor = scenario.group(step).executor(static_cast<size_t>(step.at("device").as_integer()));
  const Arrays arg = scenario.files.named(step.get("arg")), aux = scenario.files.named(step.get("aux"));
  executor.copy_params_from(arg, aux);
  return Value();
}

Value get_params(Scenario &scenario, const Value &step) {
  const Group &group = scenario.group(step);
  const Arrays arg = make_targets(group, COHORT_GROUP_PARAMS, step), aux = make_targets(group, COHORT_GROUP_AUX, step);
  group.get_params(arg, aux);
  Value found = Value::object();
  found.set("arg", values_by_name(arg));
  found.set("aux", values_by_name(aux));
  return found;
}

// Arrays of a list by name, each as a list with one array per device.
Value device_values(const Group &group, int32_t list, const Value &step) {
  const std::vector<std::string> wanted = step.get("names").as_texts(), names = group.names(list);
  Value values = Value::object();
  for (size_t i = 0; i < names.size(); ++i) {
    if (!step.get("names").is_null() && std::find(wanted.begin(), wanted.end(), names[i]) == wanted.end()) continue;
    Value devices = Value::list();
    for (const NDArray &array : group.device_arrays(list, i)) devices.add(Value::array(array));
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
  const Group &group = scenario.group(step);
  for (const int32_t list : {COHORT_GROUP_GRADS, COHORT_GROUP_INPUT_GRADS}) {
    if (list == COHORT_GROUP_INPUT_GRADS && !step.flag("inputs", false)) continue;
    const size_t num = group.num_arrays(list);
    for (size_t i = 0; i < num; ++i)
      for (NDArray &array : group.device_arrays(list, i))
        if (array) array.fill(step.at("value").as_real());
  }
  return Value();
}

Value get_states(Scenario &scenario, const Value &step) {
  const Group &group = scenario.group(step);
  const size_t num = group.num_arrays(COHORT_GROUP_STATES);
  Value found = Value::object();
  found.set("values", merged_or_not(group, COHORT_GROUP_STATES, step.at("merge").as_bool(), 0, num));
  return found;
}

Value set_states(Scenario &scenario, const Value &step) {
  Group &group = scenario.group(step);
  const Value &from_outputs = step.get("from_outputs"), &given = step.get("states"), &value = step.get("value");
  std::vector<std::vector<NDArray>> states;  // for each state an array for each device
  if (!from_outputs.is_null())
    for (const int64_t output : from_outputs.as_integers())
      states.push_back(group.device_arrays(COHORT_GROUP_OUTPUTS, static_cast<size_t>(output)));
  else if (!given.is_null())
    for (const Value &state : given.items()) states.push_back(scenario.files.arrays(state));
  if (value.is_null()) {
    group.set_states(states);
  } else if (states.empty()) {
    group.set_states(value.as_real());
  } else {  // both, which only the C function can be asked for
    std::vector<cohort_ndarray *> all;
    for (const std::vector<NDArray> &devices : states)
      for (const NDArray &array : devices) all.push_back(array.get());
    const double number = value.as_real();
    check(cohort_group_set_states(group.get(), all.data(), states.size(), all.size() / states.size(), &number));
  }
  return Value();
}

}  // namespace

Arrays make_targets(const Group &group, int32_t list, const Value &step) {
  const std::vector<std::string> wanted = step.get("targets").as_texts();
  const Value &types = step.get("target_types");
  Arrays targets;
  const std::vector<std::string> names = group.names(list);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!step.get("targets").is_null() && std::find(wanted.begin(), wanted.end(), names[i]) == wanted.end()) continue;
    const NDArray array = group.array(list, i, 0);
    cohort_dtype dtype = array.dtype();
    if (!types.is_null() && types.find(names[i])) dtype = dtype_parse(types.at(names[i]).as_text());
    targets.add(names[i], NDArray::zeros(array.shape(), dtype));
  }
  return targets;
}

Value values_by_name(const Arrays &arrays) {
  Value values = Value::object();
  for (size_t i = 0; i < arrays.num(); ++i) values.set(arrays.name(i), Value::array(arrays.array(i)));
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
