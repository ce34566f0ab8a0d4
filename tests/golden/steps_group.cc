// SPDX-License-Identifier: Apache-2.0
// Steps that make, run and read groups.
#include "scenario.hpp"

namespace golden {
namespace {

Value shapes_of_descs(const cohort_descs *descs, bool as_pairs) {
  Value shapes = as_pairs ? Value::list() : Value::object();
  const size_t num = query<size_t>(cohort_descs_num, descs);
  for (size_t i = 0; i < num; ++i) {
    const char *name = nullptr;
    std::vector<int64_t> shape(COHORT_MAX_AXES);
    int32_t num_axes = 0;
    check(cohort_descs_get(descs, i, &name, shape.data(), shape.size(), &num_axes, nullptr, nullptr));
    shape.resize(num_axes);
    if (as_pairs)
      shapes.add(Value::list({Value::text(name), Value::integers(shape)}));
    else
      shapes.set(name, Value::integers(shape));
  }
  return shapes;
}

Value axes_of(const cohort_group *group, int32_t list) {
  Value axes = Value::list();
  const size_t num = query<size_t>(cohort_group_num_arrays, group, list);
  for (size_t i = 0; i < num; ++i) axes.add(Value::integer(query<int32_t>(cohort_group_axis, group, list, i)));
  return axes;
}

Value grad_reqs_of(const cohort_group *group) {
  const auto executor = make<Executor>(cohort_group_executor, group, 0);
  Value grad_reqs = Value::object();
  const std::vector<std::string> names = group_names(group, COHORT_GROUP_ARGS);
  for (size_t i = 0; i < names.size(); ++i) {
    const int32_t code = query<int32_t>(cohort_executor_grad_req, executor.get(), i);
    grad_reqs.set(names[i], Value::text(code == COHORT_GRAD_WRITE  ? "write"
                                        : code == COHORT_GRAD_ADD  ? "add"
                                        : code == COHORT_GRAD_NULL ? "null"
                                                                   : "code " + std::to_string(code)));
  }
  return grad_reqs;
}

void add_args(const cohort_group *group, Value &found) {
  const std::vector<std::string> names = group_names(group, COHORT_GROUP_ARGS);
  Value arg_shapes = Value::list(), arg_types = Value::object();
  for (size_t device = 0; device < num_devices(group); ++device) {
    Value shapes = Value::object();
    for (size_t i = 0; i < names.size(); ++i) {
      const auto array = make<NDArray>(cohort_group_array, group, COHORT_GROUP_ARGS, i, device);
      shapes.set(names[i], Value::integers(shape_of(array.get())));
      if (device == 0)
        arg_types.set(names[i], Value::text(dtype_text(query<int32_t>(cohort_ndarray_dtype, array.get()))));
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
  Group made = make_group(scenario, request);
  const cohort_group *group = made.get();
  scenario.groups[step.at("group").as_text()] = std::move(made);
  Value found = Value::object();
  const int64_t batch_size = query<int64_t>(cohort_group_batch_size, group);
  found.set("batch_size", Value::integer(batch_size));
  if (batch_size) found.set("slices", slices_of(group));
  found.set("data_axes", axes_of(group, COHORT_GROUP_DATA));
  const bool has_labels = query<size_t>(cohort_group_num_arrays, group, COHORT_GROUP_LABELS) > 0;
  found.set("label_axes", has_labels ? axes_of(group, COHORT_GROUP_LABELS) : Value());
  found.set("output_axes", axes_of(group, COHORT_GROUP_OUTPUTS));
  found.set("grad_req", grad_reqs_of(group));
  add_args(group, found);
  return found;
}

Value bind_group(Scenario &scenario, const Value &step) {
  const Descs data = make_descs(step.at("data_shapes")), label = make_descs(step.get("label_shapes"));
  check(cohort_group_bind(scenario.group(step), data.get(), label.get(), nullptr, 0));
  return Value();
}

Value reshape_group(Scenario &scenario, const Value &step) {
  const Descs data = make_descs(step.at("data_shapes")), label = make_descs(step.get("label_shapes"));
  cohort_group *group = scenario.group(step);
  check(cohort_group_reshape(group, data.get(), label.get()));
  Value found = Value::object();
  const int64_t batch_size = query<int64_t>(cohort_group_batch_size, group);
  found.set("batch_size", Value::integer(batch_size));
  if (batch_size) found.set("slices", slices_of(group));
  return found;
}

Value forward(Scenario &scenario, const Value &step) {
  forward_group(scenario, scenario.group(step), step);
  return Value();
}

// Joins the lists of arrays of all devices; *num is the length of each.
std::vector<NDArray> join_devices(Scenario &scenario, const Value &devices, size_t *num) {
  std::vector<NDArray> all;
  *num = 0;
  if (devices.is_null()) return all;
  for (const Value &device : devices.items()) {
    std::vector<NDArray> arrays = scenario.files.arrays(device);
    *num = arrays.size();
    for (NDArray &array : arrays) all.push_back(std::move(array));
  }
  if (*num * devices.items().size() != all.size()) throw BadCase("devices have different numbers of arrays");
  return all;
}

int32_t is_train_of(const Value &step) {
  const Value &is_train = step.get("is_train");
  return is_train.is_null() ? -1 : is_train.as_bool();
}

Value forward_presliced(Scenario &scenario, const Value &step) {
  size_t num_data = 0, num_label = 0;
  const std::vector<NDArray> data = join_devices(scenario, step.at("device_data"), &num_data);
  const std::vector<NDArray> label = join_devices(scenario, step.get("device_label"), &num_label);
  check(cohort_group_forward_presliced(scenario.group(step), step.at("device_data").items().size(), raw(data).data(),
                                       num_data, label.empty() ? nullptr : raw(label).data(), num_label,
                                       is_train_of(step)));
  return Value();
}

Value backward(Scenario &scenario, const Value &step) {
  const std::vector<NDArray> head_grads = scenario.files.arrays(step.get("head_grads"));
  check(cohort_group_backward(scenario.group(step), head_grads.empty() ? nullptr : raw(head_grads).data(),
                              head_grads.size()));
  return Value();
}

Value output_shapes(Scenario &scenario, const Value &step) {
  const auto descs = make<Descs>(cohort_group_output_shapes, scenario.group(step));
  Value found = Value::object();
  found.set("shapes", shapes_of_descs(descs.get(), true));
  return found;
}

Value values(Value list) {
  Value found = Value::object();
  found.set("values", std::move(list));
  return found;
}

Value get_outputs(Scenario &scenario, const Value &step) {
  const cohort_group *group = scenario.group(step);
  const size_t num = query<size_t>(cohort_group_num_arrays, group, COHORT_GROUP_OUTPUTS);
  const size_t begin = static_cast<size_t>(step.number("begin", 0));
  const size_t end = static_cast<size_t>(step.number("end", static_cast<double>(num)));
  return values(merged_or_not(group, COHORT_GROUP_OUTPUTS, step.at("merge").as_bool(), begin, end));
}

Value get_input_grads(Scenario &scenario, const Value &step) {
  const cohort_group *group = scenario.group(step);
  const size_t num = query<size_t>(cohort_group_num_arrays, group, COHORT_GROUP_DATA);
  return values(merged_or_not(group, COHORT_GROUP_INPUT_GRADS, step.at("merge").as_bool(), 0, num));
}

}  // namespace

std::vector<std::string> group_names(const cohort_group *group, int32_t list) {
  std::vector<std::string> names(query<size_t>(cohort_group_num_arrays, group, list));
  for (size_t i = 0; i < names.size(); ++i) names[i] = query<const char *>(cohort_group_name, group, list, i);
  return names;
}

size_t num_devices(const cohort_group *group) { return query<size_t>(cohort_group_num_contexts, group); }

std::vector<NDArray> device_arrays(const cohort_group *group, int32_t list, size_t index) {
  std::vector<NDArray> arrays;
  for (size_t device = 0; device < num_devices(group); ++device)
    arrays.push_back(make<NDArray>(cohort_group_array, group, list, index, device));
  return arrays;
}

Value slices_of(const cohort_group *group) {
  Value slices = Value::list();
  for (size_t device = 0; device < num_devices(group); ++device) {
    int64_t begin = 0, end = 0;
    check(cohort_group_slice(group, device, &begin, &end));
    slices.add(Value::integers({begin, end}));
  }
  return slices;
}

Value merged_or_not(const cohort_group *group, int32_t list, bool merge, size_t begin, size_t end) {
  Value all = Value::list();
  for (size_t i = begin; i < end; ++i) {
    if (merge) {
      all.add(Value::array(make<NDArray>(cohort_group_merged, group, list, i).get()));
      continue;
    }
    Value devices = Value::list();
    for (const NDArray &array : device_arrays(group, list, i)) devices.add(Value::array(array.get()));
    all.add(devices);
  }
  return all;
}

GradReq::GradReq(const Value &value) {
  if (value.is_null() || value.is_text()) {
    is_word = true;
    word = value.is_null() ? "write" : value.as_text();
    return;
  }
  is_map = value.is_object();
  if (is_map) names = value.keys();
  for (const Value &item : value.items()) words.push_back(item.as_text());
  words_c = c_strings(words);
  names_c = c_strings(names);
}

Group make_group(Scenario &scenario, const GroupRequest &request) {
  const Value &step = request.step;
  const Descs data = make_descs(step.at("data_shapes")), label = make_descs(step.get("label_shapes"));
  const std::vector<std::string> fixed = step.get("fixed_param_names").as_texts();
  const std::vector<std::string> states = step.get("state_names").as_texts();
  const std::vector<const char *> fixed_c = c_strings(fixed), states_c = c_strings(states),
                                  params_c = c_strings(request.param_names);
  const GradReq grad_req(step.get("grad_req"));

  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  options.workload = request.workload.empty() ? nullptr : request.workload.data();
  options.num_workloads = request.workload.size();
  options.rounding =
      step.word("rounding", "half_even") == "half_up" ? COHORT_ROUNDING_HALF_UP : COHORT_ROUNDING_HALF_EVEN;
  options.inputs_need_grad = step.flag("inputs_need_grad", false);
  options.fixed_param_names = fixed_c.data();
  options.num_fixed_param_names = fixed_c.size();
  options.state_names = states_c.data();
  options.num_state_names = states_c.size();
  grad_req.fill(options);
  if (!step.get("shared_group").is_null()) {
    const auto shared = scenario.groups.find(step.at("shared_group").as_text());
    if (shared == scenario.groups.end()) throw BadCase("there is no group to share with at this step");
    options.shared_group = shared->second.get();
  }
  return make<Group>(cohort_group_create, scenario.symbol(request.symbol), request.contexts.data(),
                     request.contexts.size(), data.get(), label.get(), params_c.data(), params_c.size(),
                     static_cast<int32_t>(step.flag("for_training", true)), &options);
}

void forward_group(Scenario &scenario, cohort_group *group, const Value &step) {
  const std::vector<NDArray> data = scenario.files.arrays(step.at("data"));
  const std::vector<NDArray> label = scenario.files.arrays(step.get("label"));
  check(cohort_group_forward(group, raw(data).data(), data.size(), label.empty() ? nullptr : raw(label).data(),
                             label.size(), is_train_of(step)));
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
