// SPDX-License-Identifier: Apache-2.0
// Steps on managers.
#include "scenario.hpp"

namespace golden {
namespace {

// A bucket key, which a step gives as text or as a number.
std::string key_of(const Value &key) { return key.is_text() ? key.as_text() : std::to_string(key.as_integer()); }

Value create_manager(Scenario &scenario, const Value &step) {
  const std::vector<cohort_context> contexts = scenario.contexts(step.at("contexts"));
  const std::vector<double> workload = step.get("workload").as_reals();
  const std::vector<std::string> params = step.get("param_names").as_texts();
  const Descs data = make_descs(step.at("data_shapes")), label = make_descs(step.get("label_shapes"));
  const Value &buckets = step.get("buckets"), &default_key = step.get("default_bucket_key");
  const std::string default_bucket_key = default_key.is_null() ? std::string() : key_of(default_key);
  std::vector<std::string> keys;
  std::vector<cohort_symbol *> symbols;
  for (size_t i = 0; !buckets.is_null() && i < buckets.keys().size(); ++i) {
    keys.push_back(buckets.keys()[i]);
    symbols.push_back(const_cast<cohort_symbol *>(scenario.symbol(buckets.items()[i].as_text())));
  }
  const std::vector<const char *> keys_c = c_strings(keys), params_c = c_strings(params);
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  options.workload = workload.empty() ? nullptr : workload.data();
  options.num_workloads = workload.size();
  options.default_bucket_key = default_key.is_null() ? nullptr : default_bucket_key.c_str();
  options.bucket_keys = keys_c.data();
  options.bucket_symbols = symbols.data();
  options.num_buckets = keys.size();
  ManagerObject made;
  made.handle = make<Manager>(cohort_manager_create, scenario.symbol(step.at("symbol").as_text()), contexts.data(),
                              contexts.size(), step.at("batch_size").as_integer(), data.get(), label.get(),
                              params_c.data(), params_c.size(), &options);
  made.main = make<Group>(cohort_manager_main_group, made.handle.get());
  Value found = Value::object();
  found.set("slices", slices_of(made.main.get()));
  scenario.managers[step.at("manager").as_text()] = std::move(made);
  return found;
}

Value manager_set_params(Scenario &scenario, const Value &step) {
  const Arrays arg = scenario.files.named(step.get("arg")), aux = scenario.files.named(step.get("aux"));
  check(cohort_manager_set_params(scenario.manager(step), arg.get(), aux.get()));
  return Value();
}

Value manager_load_data_batch(Scenario &scenario, const Value &step) {
  const std::vector<NDArray> data = scenario.files.arrays(step.at("data"));
  const std::vector<NDArray> label = scenario.files.arrays(step.get("label"));
  const Value &key = step.get("bucket_key"), &data_shapes = step.get("data_shapes");
  const std::string bucket_key = key.is_null() ? std::string() : key_of(key);
  const Descs data_descs = data_shapes.is_null() ? Descs() : make_descs(data_shapes);
  const Descs label_descs = make_descs(step.get("label_shapes"));
  check(cohort_manager_load_data_batch(
      scenario.manager(step), raw(data).data(), data.size(), label.empty() ? nullptr : raw(label).data(), label.size(),
      key.is_null() ? nullptr : bucket_key.c_str(), data_descs.get(), label_descs.get()));
  return Value();
}

Value manager_forward(Scenario &scenario, const Value &step) {
  check(cohort_manager_forward(scenario.manager(step), step.flag("is_train", false)));
  return Value();
}

Value manager_backward(Scenario &scenario, const Value &step) {
  check(cohort_manager_backward(scenario.manager(step)));
  return Value();
}

Value manager_outputs(Scenario &scenario, const Value &step) {
  const cohort_manager *manager = scenario.manager(step);
  const auto group = make<Group>(cohort_manager_current_group, manager);
  const size_t num = query<size_t>(cohort_manager_num_arrays, manager, COHORT_GROUP_OUTPUTS);
  Value found = Value::object();
  found.set("values", merged_or_not(group.get(), COHORT_GROUP_OUTPUTS, false, 0, num));
  return found;
}

Value manager_update_metric(Scenario &scenario, const Value &step) {
  cohort_manager *manager = scenario.manager(step);
  cohort_metric *metric = scenario.metric(step);
  const MetricLabels labels = metric_labels(scenario, step);
  check(labels.is_sliced
            ? cohort_manager_update_metric_presliced(manager, metric, labels.num_slices, raw(labels.arrays).data(),
                                                     labels.num_labels)
            : cohort_manager_update_metric(manager, metric, raw(labels.arrays).data(), labels.arrays.size()));
  Value found = Value::object();
  found.set("metric", metric_values(metric, false));
  return found;
}

Value manager_copy_to(Scenario &scenario, const Value &step) {
  const cohort_group *group = scenario.group(step);
  const Arrays arg = make_targets(group, COHORT_GROUP_PARAMS, step), aux = make_targets(group, COHORT_GROUP_AUX, step);
  check(cohort_manager_copy_to(scenario.manager(step), arg.get(), aux.get()));
  Value found = Value::object();
  found.set("arg", values_by_name(arg.get()));
  found.set("aux", values_by_name(aux.get()));
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
