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
  for (const std::string &name : scenario.symbol(module.symbol).list_arguments())
    if (!is_input(name)) module.param_names.push_back(name);
  Value found = Value::object();
  found.set("param_names", Value::texts(module.param_names));
  scenario.modules[step.at("module").as_text()] = std::move(module);
  return found;
}

Group &bound_group(Module &module) {
  if (!module.group) throw Error(COHORT_ERROR_STATE, "the module is not bound");
  return module.group;
}

Value found_slices(const Module &module) {
  Value found = Value::object();
  found.set("slices", slices_of(module.group));
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
    group.set_params(module.params.arg, module.params.aux);
  } else {
    module.params = group.copy_params();  // zeros: the group is new
  }
  module.group = std::move(group);
  module.data_shapes = step.at("data_shapes");
  module.label_shapes = step.get("label_shapes");
  return found_slices(module);
}

// Throws Error if the given names are not those of the host copies.
void check_names(const Arrays &copies, const Value &given, bool allow_extra) {
  const std::vector<std::string> names = copies.names();
  for (const std::string &name : names)
    if (given.is_null() || !given.find(name)) throw Error(COHORT_ERROR_NAME, "parameter '" + name + "' is missing");
  for (const std::string &name : given.keys())
    if (!allow_extra && std::find(names.begin(), names.end(), name) == names.end())
      throw Error(COHORT_ERROR_NAME, "the module has no parameter '" + name + "'");
}

void copy_into(const Arrays &copies, const Arrays &given) {
  for (size_t i = 0; i < copies.num(); ++i) {
    NDArray target = copies.array(i);
    given.array(copies.name(i)).copy_to(target);
  }
}

Value module_set_params(Scenario &scenario, const Value &step) {
  Module &module = scenario.module(step);
  Group &group = bound_group(module);
  const bool allow_extra = step.flag("allow_extra", false);
  const Arrays arg = scenario.files.named(step.get("arg")), aux = scenario.files.named(step.get("aux"));
  if (step.flag("allow_missing", false)) {
    group.set_params(arg, aux, allow_extra);
    module.host_is_stale = true;
  } else {
    check_names(module.params.arg, step.at("arg"), allow_extra);
    check_names(module.params.aux, step.get("aux").is_null() ? Value::object() : step.at("aux"), allow_extra);
    group.set_params(arg, aux, allow_extra);
    copy_into(module.params.arg, arg);
    copy_into(module.params.aux, aux);
    module.host_is_stale = false;
  }
  module.has_params = true;
  return Value();
}

void refresh_host_copies(Module &module) {
  if (!module.host_is_stale) return;
  module.group.get_params(module.params.arg, module.params.aux);
  module.host_is_stale = false;
}

Value module_get_params(Scenario &scenario, const Value &step) {
  Module &module = scenario.module(step);
  bound_group(module);
  refresh_host_copies(module);
  Value found = Value::object();
  found.set("arg", values_by_name(module.params.arg));
  found.set("aux", values_by_name(module.params.aux));
  return found;
}

Value module_init_sgd(Scenario &scenario, const Value &step) {
  Module &module = scenario.module(step);
  Group &group = bound_group(module);
  const bool on_store = module.contexts.size() > 1;
  const double rescale_grad = 1.0 / static_cast<double>(group.batch_size());
  module.optimizer = make_sgd(scenario.symbol(module.symbol),
                              on_store ? COHORT_UPDATE_ON_STORE : COHORT_UPDATE_NO_STORE, step, rescale_grad);
  refresh_host_copies(module);
  if (on_store) group.set_params(module.params.arg);  // the store's first values
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
      desc.set(old.keys()[k], old.keys()[k] == "shape" ? Value::integers(arrays[i].shape()) : old.items()[k]);
    changed.add(desc);
  }
  return changed;
}

bool same_shapes(const Value &shapes, const std::vector<NDArray> &arrays) {
  if (shapes.is_null() || shapes.items().size() != arrays.size()) return true;  // the group reports this error
  for (size_t i = 0; i < arrays.size(); ++i)
    if (shapes.items()[i].at("shape").as_integers() != arrays[i].shape()) return false;
  return true;
}

Value module_forward(Scenario &scenario, const Value &step) {
  Module &module = scenario.module(step);
  Group &group = bound_group(module);
  const std::vector<NDArray> data = scenario.files.arrays(step.at("data"));
  const std::vector<NDArray> label = scenario.files.arrays(step.get("label"));
  if (!same_shapes(module.data_shapes, data)) {
    const Value data_shapes = shapes_of_batch(module.data_shapes, data);
    const Value label_shapes = label.empty() ? Value() : shapes_of_batch(module.label_shapes, label);
    group.reshape(make_descs(data_shapes), make_descs(label_shapes));
    module.data_shapes = data_shapes;
    module.label_shapes = label_shapes;
  }
  forward_group(scenario, group, step);
  return found_slices(module);
}

Value module_backward(Scenario &scenario, const Value &step) {
  bound_group(scenario.module(step)).backward();
  return Value();
}

Value module_update(Scenario &scenario, const Value &step) {
  Module &module = scenario.module(step);
  if (!module.optimizer.handle) throw Error(COHORT_ERROR_STATE, "the module has no optimizer");
  bound_group(module).update(module.optimizer.handle, module.optimizer.mode);
  module.host_is_stale = true;
  return Value();
}

Value module_get_outputs(Scenario &scenario, const Value &step) {
  const Group &group = bound_group(scenario.module(step));
  const size_t num = group.num_arrays(COHORT_GROUP_OUTPUTS);
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
