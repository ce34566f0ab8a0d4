// SPDX-License-Identifier: Apache-2.0
// Steps on managers.
#include <optional>

#include "scenario.hpp"

namespace golden {
namespace {

// A bucket key, which a step gives as text or as a number.
std::string key_of(const Value &key) { return key.is_text() ? key.as_text() : std::to_string(key.as_integer()); }

Value create_manager(Scenario &scenario, const Value &step) {
  const Value &buckets = step.get("buckets"), &default_key = step.get("default_bucket_key");
  ManagerOptions options;
  options.param_names = step.get("param_names").as_texts();
  options.workload = step.get("workload").as_reals();
  if (!default_key.is_null()) options.default_bucket_key = key_of(default_key);
  for (size_t i = 0; !buckets.is_null() && i < buckets.keys().size(); ++i)
    options.buckets.emplace(buckets.keys()[i], scenario.symbol(buckets.items()[i].as_text()));
  ManagerObject made;
  made.handle = Manager(scenario.symbol(step.at("symbol").as_text()), scenario.contexts(step.at("contexts")),
                        step.at("batch_size").as_integer(), make_descs(step.at("data_shapes")),
                        make_descs(step.get("label_shapes")), options);
  made.main = made.handle.main_group();
  Value found = Value::object();
  found.set("slices", slices_of(made.main));
  scenario.managers[step.at("manager").as_text()] = std::move(made);
  return found;
}

Value manager_set_params(Scenario &scenario, const Value &step) {
  const Arrays arg = scenario.files.named(step.get("arg")), aux = scenario.files.named(step.get("aux"));
  scenario.manager(step).set_params(arg, aux);
  return Value();
}

Value manager_load_data_batch(Scenario &scenario, const Value &step) {
  const Value &key = step.get("bucket_key");
  const std::optional<std::string> bucket_key = key.is_null() ? std::nullopt : std::optional(key_of(key));
  scenario.manager(step).load_data_batch(scenario.files.arrays(step.at("data")),
                                         scenario.files.arrays(step.get("label")), bucket_key,
                                         make_descs(step.get("data_shapes")), make_descs(step.get("label_shapes")));
  return Value();
}

Value manager_forward(Scenario &scenario, const Value &step) {
  scenario.manager(step).forward(step.flag("is_train", false));
  return Value();
}

Value manager_backward(Scenario &scenario, const Value &step) {
  scenario.manager(step).backward();
  return Value();
}

Value manager_outputs(Scenario &scenario, const Value &step) {
  const Manager &manager = scenario.manager(step);
  const Group group = manager.current_group();
  const size_t num = manager.num_arrays(COHORT_GROUP_OUTPUTS);
  Value found = Value::object();
  found.set("values", merged_or_not(group, COHORT_GROUP_OUTPUTS, false, 0, num));
  return found;
}

Value manager_update_metric(Scenario &scenario, const Value &step) {
  Manager &manager = scenario.manager(step);
  Metric &metric = scenario.metric(step);
  const MetricLabels labels = metric_labels(scenario, step);
  if (labels.is_sliced)
    manager.update_metric_presliced(metric, labels.sliced);
  else
    manager.update_metric(metric, labels.whole);
  Value found = Value::object();
  found.set("metric", metric_values(metric, false));
  return found;
}

Value manager_copy_to(Scenario &scenario, const Value &step) {
  const Group &group = scenario.group(step);
  const Arrays arg = make_targets(group, COHORT_GROUP_PARAMS, step), aux = make_targets(group, COHORT_GROUP_AUX, step);
  scenario.manager(step).copy_to(arg, aux);
  Value found = Value::object();
  found.set("arg", values_by_name(arg));
  found.set("aux", values_by_name(aux));
  return found;
}

}  // namespace

void add_manager_steps(StepTable &table) {
  table["create_manager"] = create_manager;
  table["manager_set_params"] = manager_set_params;
  table["manager_load_data_batch"] = manager_load_data_batch;
  table["manager_forward"] = manager_forward;
  table["manager_backward"] = manager_backward;
  table["manager_outputs"] = manager_outputs;
  table["manager_update_metric"] = manager_update_metric;
  table["manager_copy_to"] = manager_copy_to;
}

}  // namespace golden
