// SPDX-License-Identifier: Apache-2.0
// Steps on modules. A module is a helper of the runner's: it keeps host copies of the parameters, reshapes its group
// for batches of another shape, and chooses the mode of updates.
#include <algorithm>

#include "scenario.hpp"

namespace golden {
namespace {

Value create_module(Scenario &scenario, const Value &step) {
  Module module;
  module.symbol = step.at("symbol").as_text();
  module.contexts = scenario.contexts(step.at("contexts"));
  module.workload = step.get("workload").as_reals();
  module.data_names = step.at("data_names").as_texts();
  module.label_names = step.get("label_names").as_texts();
  const auto is_input = [&](const std::string &name) {
    const auto in = [&](const std::vector<std::string> &names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    return in(module.data_names) || in(module.label_names);
  };
  for (const std::string &name : symbol_names(scenario.symbol(module.symbol), COHORT_SYMBOL_ARGUMENTS))
    if (!is_input(name)) module.param_names.push_back(name);
  Value found = Value::object();
  found.set("param_names", Value::texts(module.param_names));
  scenario.modules[step.at("module").as_text()] = std::move(module);
  return found;
}

cohort_group *bound_group(const Module &module) {
  if (!module.group) throw CallError(COHORT_ERROR_STATE, "the module is not bound");
  return module.group.get();
}

Value found_slices(const Module &module) {
  Value found = Value::object();
  found.set("slices", slices_of(module.group.get()));
  return found;
}

Value module_bind(Scenario &scenario, const Value &step) {
  Module &module = scenario.module(step);
  if (module.group && !step.flag("force_rebind", false)) return found_slices(module);
  GroupRequest request;
  request.symbol = module.symbol;
  request.contexts = module.contexts;
  request.workload = module.workload;
  request.param_names = module.param_names;
  request.step = step;
  Group group = make_group(scenario, request);
  if (module.has_params) {
    check(cohort_group_set_params(group.get(), module.arg_params.get(), module.aux_params.get(), 0));
  } else {
    cohort_arrays *arg = nullptr, *aux = nullptr;  // zeros: the group is new
    check(cohort_group_copy_params(group.get(), &arg, &aux));
    module.arg_params.reset(arg);
    module.aux_params.reset(aux);
  }
  module.group = std::move(group);
  module.data_shapes = step.at("data_shapes");
  module.label_shapes = step.get("label_shapes");
  return found_slices(module);
}

std::vector<std::string> names_of(const cohort_arrays *arrays) {
  std::vector<std::string> names(query<size_t>(cohort_arrays_num, arrays));
  for (size_t i = 0; i < names.size(); ++i) names[i] = query<const char *>(cohort_arrays_name, arrays, i);
  return names;
}

// Throws CallError if the given names are not those of the host copies.
void check_names(const cohort_arrays *copies, const Value &given, bool allow_extra) {
  const std::vector<std::string> names = names_of(copies);
  for (const std::string &name : names)
    if (given.is_null() || !given.find(name)) throw CallError(COHORT_ERROR_NAME, "parameter '" + name + "' is missing");
  for (const std::string &name : given.keys())
    if (!allow_extra && std::find(names.begin(), names.end(), name) == names.end())
      throw CallError(COHORT_ERROR_NAME, "the module has no parameter '" + name + "'");
}

void copy_into(const cohort_arrays *copies, const cohort_arrays *given) {
  const size_t num = query<size_t>(cohort_arrays_num, copies);
  for (size_t i = 0; i < num; ++i) {
    const char *name = query<const char *>(cohort_arrays_name, copies, i);
    const size_t index = query<size_t>(cohort_arrays_find, given, name);
    check(cohort_ndarray_copy_to(make<NDArray>(cohort_arrays_get, given, index).get(),
                                 make<NDArray>(cohort_arrays_get, copies, i).get()));
  }
}

Value module_set_params(Scenario &scenario, const Value &step) {
  Module &module = scenario.module(step);
  cohort_group *group = bound_group(module);
  const bool allow_extra = step.flag("allow_extra", false);
  const Arrays arg = scenario.files.named(step.get("arg")), aux = scenario.files.named(step.get("aux"));
  if (step.flag("allow_missing", false)) {
    check(cohort_group_set_params(group, arg.get(), aux.get(), allow_extra));
    module.host_is_stale = true;
  } else {
    check_names(module.arg_params.get(), step.at("arg"), allow_extra);
    check_names(module.aux_params.get(), step.get("aux").is_null() ? Value::object() : step.at("aux"), allow_extra);
    check(cohort_group_set_params(group, arg.get(), aux.get(), allow_extra));
    copy_into(module.arg_params.get(), arg.get());
    copy_into(module.aux_params.get(), aux.get());
    module.host_is_stale = false;
  }
  module.has_params = true;
  return Value();
}

void refresh_host_copies(Module &module) {
  if (!module.host_is_stale) return;
  check(cohort_group_get_params(module.group.get(), module.arg_params.get(), module.aux_params.get()));
  module.host_is_stale = false;
}

Value module_get_params(Scenario &scenario, const Value &step) {
  Module &module = scenario.module(step);
  bound_group(module);
  refresh_host_copies(module);
  Value found = Value::object();
  found.set("arg", values_by_name(module.arg_params.get()));
  found.set("aux", values_by_name(module.aux_params.get()));
  return found;
}

Value module_init_sgd(Scenario &scenario, const Value &step) {
  Module &module = scenario.module(step);
  cohort_group *group = bound_group(module);
  const bool on_store = module.contexts.size() > 1;
  const double rescale_grad = 1.0 / static_cast<double>(query<int64_t>(cohort_group_batch_size, group));
  module.optimizer = make_sgd(scenario.symbol(module.symbol),
                              on_store ? COHORT_UPDATE_ON_STORE : COHORT_UPDATE_NO_STORE, step, rescale_grad);
  refresh_host_copies(module);
  if (on_store) check(cohort_group_set_params(group, module.arg_params.get(), nullptr, 0));  // the store's first values
  Value found = Value::object();
  found.set("rescale_grad", Value::real(rescale_grad));
  found.set("update_on_kvstore", Value::boolean(on_store));
  return found;
}

// The bound descriptors with the shapes of a batch.
Value shapes_of_batch(const Value &shapes, const std::vector<NDArray> &arrays) {
  if (shapes.is_null() || shapes.items().size() != arrays.size()) return shapes;
  Value changed = Value::list();
  for (size_t i = 0; i < arrays.size(); ++i) {
    Value desc = Value::object();
    const Value &old = shapes.items()[i];
    for (size_t k = 0; k < old.keys().size(); ++k)
      desc.set(old.keys()[k], old.keys()[k] == "shape" ? Value::integers(shape_of(arrays[i].get())) : old.items()[k]);
    changed.add(desc);
  }
  return changed;
}

bool same_shapes(const Value &shapes, const std::vector<NDArray> &arrays) {
  if (shapes.is_null() || shapes.items().size() != arrays.size()) return true;  // the group reports this error
  for (size_t i = 0; i < arrays.size(); ++i)
    if (shapes.items()[i].at("shape").as_integers() != shape_of(arrays[i].get())) return false;
  return true;
}

Value module_forward(Scenario &scenario, const Value &step) {
  Module &module = scenario.module(step);
  cohort_group *group = bound_group(module);
  const std::vector<NDArray> data = scenario.files.arrays(step.at("data"));
  const std::vector<NDArray> label = scenario.files.arrays(step.get("label"));
  if (!same_shapes(module.data_shapes, data)) {
    const Value data_shapes = shapes_of_batch(module.data_shapes, data);
    const Value label_shapes = label.empty() ? Value() : shapes_of_batch(module.label_shapes, label);
    check(cohort_group_reshape(group, make_descs(data_shapes).get(), make_descs(label_shapes).get()));
    module.data_shapes = data_shapes;
    module.label_shapes = label_shapes;
  }
  forward_group(scenario, group, step);
  return found_slices(module);
}

Value module_backward(Scenario &scenario, const Value &step) {
  check(cohort_group_backward(bound_group(scenario.module(step)), nullptr, 0));
  return Value();
}

Value module_update(Scenario &scenario, const Value &step) {
  Module &module = scenario.module(step);
  if (!module.optimizer.handle) throw CallError(COHORT_ERROR_STATE, "the module has no optimizer");
  check(cohort_group_update(bound_group(module), module.optimizer.handle.get(), module.optimizer.mode));
  module.host_is_stale = true;
  return Value();
}

Value module_get_outputs(Scenario &scenario, const Value &step) {
  const cohort_group *group = bound_group(scenario.module(step));
  const size_t num = query<size_t>(cohort_group_num_arrays, group, COHORT_GROUP_OUTPUTS);
  Value found = Value::object();
  found.set("values", merged_or_not(group, COHORT_GROUP_OUTPUTS, step.flag("merge", true), 0, num));
  return found;
}

Value module_update_metric(Scenario &scenario, const Value &step) {
  update_metric_of(scenario, bound_group(scenario.module(step)), step);
  Value found = Value::object();
  found.set("metric", metric_values(scenario.metric(step), false));
  return found;
}

}  // namespace

void add_module_steps(StepTable &table) {
  table["create_module"] = create_module;
  table["module_bind"] = module_bind;
  table["module_set_params"] = module_set_params;
  table["module_get_params"] = module_get_params;
  table["module_init_sgd"] = module_init_sgd;
  table["module_forward"] = module_forward;
  table["module_backward"] = module_backward;
  table["module_update"] = module_update;
  table["module_get_outputs"] = module_get_outputs;
  table["module_update_metric"] = module_update_metric;
}

}  // namespace golden
