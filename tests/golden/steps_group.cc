// SPDX-License-Identifier: Apache-2.0
// Steps that make, run and read groups.
#include <optional>

#include "scenario.hpp"

namespace golden {
namespace {

Value shapes_of_descs(const Descs &descs, bool as_pairs) {
  Value shapes = as_pairs ? Value::list() : Value::object();
  for (const Desc &desc : descs.list()) {
    if (as_pairs)
      shapes.add(Value::list({Value::text(desc.name), Value::integers(*desc.shape)}));
    else
      shapes.set(desc.name, Value::integers(*desc.shape));
  }
  return shapes;
}

Value axes_of(const Group &group, int32_t list) {
  Value axes = Value::list();
  for (size_t i = 0; i < group.num_arrays(list); ++i) axes.add(Value::integer(group.axis(list, i)));
  return axes;
}

Value grad_reqs_of(const Group &group) {
  const Executor executor = group.executor(0);
  Value grad_reqs = Value::object();
  const std::vector<std::string> names = group.names(COHORT_GROUP_ARGS);
  for (size_t i = 0; i < names.size(); ++i) {
    const int32_t code = executor.grad_req(i);
    grad_reqs.set(names[i], Value::text(code == COHORT_GRAD_WRITE  ? "write"
                                        : code == COHORT_GRAD_ADD  ? "add"
                                        : code == COHORT_GRAD_NULL ? "null"
                                                                   : "code " + std::to_string(code)));
  }
  return grad_reqs;
}

void add_args(const Group &group, Value &found) {
  const std::vector<std::string> names = group.names(COHORT_GROUP_ARGS);
  Value arg_shapes = Value::list(), arg_types = Value::object();
  for (size_t device = 0; device < group.num_contexts(); ++device) {
    Value shapes = Value::object();
    for (size_t i = 0; i < names.size(); ++i) {
      const NDArray array = group.array(COHORT_GROUP_ARGS, i, device);
      shapes.set(names[i], Value::integers(array.shape()));
      if (device == 0) arg_types.set(names[i], Value::text(dtype_text(array.dtype())));
    }
    arg_shapes.add(shapes);
  }
  found.set("arg_shapes", arg_shapes);
  found.set("arg_types", arg_types);
}

Value create_group(Scenario &scenario, const Value &step) {
  GroupRequest request;
  request.symbol = step.at("symbol").as_text();
  request.contexts = scenario.contexts(step.at("contexts"));
  request.workload = step.get("workload").as_reals();
  request.param_names = step.get("param_names").as_texts();
  request.step = step;
  const Group &group = scenario.groups[step.at("group").as_text()] = make_group(scenario, request);
  Value found = Value::object();
  const int64_t batch_size = group.batch_size();
  found.set("batch_size", Value::integer(batch_size));
  if (batch_size) found.set("slices", slices_of(group));
  found.set("data_axes", axes_of(group, COHORT_GROUP_DATA));
  const bool has_labels = group.num_arrays(COHORT_GROUP_LABELS) > 0;
  found.set("label_axes", has_labels ? axes_of(group, COHORT_GROUP_LABELS) : Value());
  found.set("output_axes", axes_of(group, COHORT_GROUP_OUTPUTS));
  found.set("grad_req", grad_reqs_of(group));
  add_args(group, found);
  return found;
}

Value bind_group(Scenario &scenario, const Value &step) {
  const Descs data = make_descs(step.at("data_shapes")), label = make_descs(step.get("label_shapes"));
  scenario.group(step).bind(data, label);
  return Value();
}

Value reshape_group(Scenario &scenario, const Value &step) {
  const Descs data = make_descs(step.at("data_shapes")), label = make_descs(step.get("label_shapes"));
  Group &group = scenario.group(step);
  group.reshape(data, label);
  Value found = Value::object();
  const int64_t batch_size = group.batch_size();
  found.set("batch_size", Value::integer(batch_size));
  if (batch_size) found.set("slices", slices_of(group));
  return found;
}

Value forward(Scenario &scenario, const Value &step) {
  forward_group(scenario, scenario.group(step), step);
  return Value();
}

// A list of arrays for each device; none for null.
std::vector<std::vector<NDArray>> arrays_of_devices(Scenario &scenario, const Value &devices) {
  std::vector<std::vector<NDArray>> all;
  if (devices.is_null()) return all;
  for (const Value &device : devices.items()) all.push_back(scenario.files.arrays(device));
  return all;
}

std::optional<bool> is_train_of(const Value &step) {
  const Value &is_train = step.get("is_train");
  return is_train.is_null() ? std::nullopt : std::optional<bool>(is_train.as_bool());
}

Value forward_presliced(Scenario &scenario, const Value &step) {
  const std::vector<std::vector<NDArray>> data = arrays_of_devices(scenario, step.at("device_data")),
                                          label = arrays_of_devices(scenario, step.get("device_label"));
  scenario.group(step).forward_presliced(data, label, is_train_of(step));
  return Value();
}

Value backward(Scenario &scenario, const Value &step) {
  const std::vector<NDArray> head_grads = scenario.files.arrays(step.get("head_grads"));
  scenario.group(step).backward(head_grads);
  return Value();
}

Value output_shapes(Scenario &scenario, const Value &step) {
  Value found = Value::object();
  found.set("shapes", shapes_of_descs(scenario.group(step).output_shapes(), true));
  return found;
}

Value values(Value list) {
  Value found = Value::object();
  found.set("values", std::move(list));
  return found;
}

Value get_outputs(Scenario &scenario, const Value &step) {
  const Group &group = scenario.group(step);
  const size_t num = group.num_arrays(COHORT_GROUP_OUTPUTS);
  const size_t begin = static_cast<size_t>(step.number("begin", 0));
  const size_t end = static_cast<size_t>(step.number("end", static_cast<double>(num)));
  return values(merged_or_not(group, COHORT_GROUP_OUTPUTS, step.at("merge").as_bool(), begin, end));
}

Value get_input_grads(Scenario &scenario, const Value &step) {
  const Group &group = scenario.group(step);
  const size_t num = group.num_arrays(COHORT_GROUP_DATA);
  return values(merged_or_not(group, COHORT_GROUP_INPUT_GRADS, step.at("merge").as_bool(), 0, num));
}

}  // namespace

Value slices_of(const Group &group) {
  Value slices = Value::list();
  for (size_t device = 0; device < group.num_contexts(); ++device) {
    const Slice slice = group.slice(device);
    slices.add(Value::integers({slice.begin, slice.end}));
  }
  return slices;
}

Value merged_or_not(const Group &group, int32_t list, bool merge, size_t begin, size_t end) {
  Value all = Value::list();
  for (size_t i = begin; i < end; ++i) {
    if (merge) {
      all.add(Value::array(group.merged(list, i)));
      continue;
    }
    Value devices = Value::list();
    for (const NDArray &array : group.device_arrays(list, i)) devices.add(Value::array(array));
    all.add(devices);
  }
  return all;
}

GradReq grad_req_of(const Value &value) {
  if (value.is_null()) return "write";
  if (value.is_text()) return value.as_text();
  if (!value.is_object()) return value.as_texts();
  std::map<std::string, std::string> by_name;
  for (const std::string &name : value.keys()) by_name[name] = value.at(name).as_text();
  return by_name;
}

Group make_group(Scenario &scenario, const GroupRequest &request) {
  const Value &step = request.step;
  GroupOptions options;
  options.param_names = request.param_names;
  options.workload = request.workload;
  options.rounding =
      step.word("rounding", "half_even") == "half_up" ? COHORT_ROUNDING_HALF_UP : COHORT_ROUNDING_HALF_EVEN;
  options.inputs_need_grad = step.flag("inputs_need_grad", false);
  options.fixed_param_names = step.get("fixed_param_names").as_texts();
  options.state_names = step.get("state_names").as_texts();
  options.grad_req = grad_req_of(step.get("grad_req"));
  if (!step.get("shared_group").is_null()) {
    const auto shared = scenario.groups.find(step.at("shared_group").as_text());
    if (shared == scenario.groups.end()) throw BadCase("there is no group to share with at this step");
    options.shared_group = &shared->second;
  }
  return Group(scenario.symbol(request.symbol), request.contexts, make_descs(step.at("data_shapes")),
               make_descs(step.get("label_shapes")), step.flag("for_training", true), options);
}

void forward_group(Scenario &scenario, Group &group, const Value &step) {
  const std::vector<NDArray> data = scenario.files.arrays(step.at("data"));
  const std::vector<NDArray> label = scenario.files.arrays(step.get("label"));
  group.forward(data, label, is_train_of(step));
}

void add_group_steps(StepTable &table) {
  table["create_group"] = create_group;
  table["bind"] = bind_group;
  table["reshape"] = reshape_group;
  table["forward"] = forward;
  table["forward_presliced"] = forward_presliced;
  table["backward"] = backward;
  table["output_shapes"] = output_shapes;
  table["get_outputs"] = get_outputs;
  table["get_input_grads"] = get_input_grads;
}

}  // namespace golden
