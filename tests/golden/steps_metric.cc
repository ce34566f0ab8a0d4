// SPDX-License-Identifier: Apache-2.0
// Steps on metrics.
#include <cstdio>

#include "scenario.hpp"

namespace golden {
namespace {

std::string setting_text(const Value &value) {
  switch (value.kind()) {
    case Value::Kind::kText:
      return value.as_text();
    case Value::Kind::kInteger:
      return std::to_string(value.as_integer());
    case Value::Kind::kBool:
      return value.as_bool() ? "True" : "False";
    default: {
      char text[32];
      std::snprintf(text, sizeof(text), "%.17g", value.as_real());
      return text;
    }
  }
}

std::vector<std::string> one_or_more(const Value &value) {
  return value.is_text() ? std::vector<std::string>{value.as_text()} : value.as_texts();
}

// Makes a metric from the members `kind`, `args` and `children`.
Metric make_metric(const Value &description) {
  Attrs settings;
  std::vector<std::string> label_names, output_names;
  const Value &args = description.get("args");
  for (size_t i = 0; !args.is_null() && i < args.keys().size(); ++i) {
    const std::string &key = args.keys()[i];
    const Value &value = args.items()[i];
    if (key == "label_names") {
      label_names = one_or_more(value);
    } else if (key == "output_names") {
      output_names = one_or_more(value);
    } else if (!value.is_null()) {
      settings.emplace_back(key, setting_text(value));
    }
  }
  Metric metric(description.at("kind").as_text(), settings);
  if (!label_names.empty() || !output_names.empty()) metric.set_names(label_names, output_names);
  const Value &children = description.get("children");
  if (!children.is_null())
    for (const Value &child : children.items()) metric.add(make_metric(child));
  return metric;
}

Value create_metric(Scenario &scenario, const Value &step) {
  scenario.metrics[step.at("metric").as_text()] = make_metric(step);
  return Value();
}

Value found_metric(const Metric &metric, bool global) {
  Value found = Value::object();
  found.set("metric", metric_values(metric, global));
  return found;
}

Value update_metric(Scenario &scenario, const Value &step) {
  update_metric_of(scenario, scenario.group(step), step);
  return found_metric(scenario.metric(step), false);
}

Value metric_update(Scenario &scenario, const Value &step) {
  const std::vector<NDArray> labels = scenario.files.arrays(step.at("labels"));
  const std::vector<NDArray> preds = scenario.files.arrays(step.at("preds"));
  scenario.metric(step).update(labels, preds);
  return found_metric(scenario.metric(step), false);
}

Value get_metric(Scenario &scenario, const Value &step) {
  return found_metric(scenario.metric(step), step.flag("global", false));
}

Value reset_metric(Scenario &scenario, const Value &step) {
  if (step.flag("local", false))
    scenario.metric(step).reset_local();
  else
    scenario.metric(step).reset();
  return Value();
}

}  // namespace

Value metric_values(const Metric &metric, bool global) {
  Value values = Value::list();
  for (const auto &[name, value] : metric.values(global))
    values.add(Value::list({Value::text(name), Value::real(value)}));
  return values;
}

MetricLabels metric_labels(Scenario &scenario, const Value &step) {
  MetricLabels labels;
  labels.is_sliced = step.flag("pre_sliced", false);
  if (labels.is_sliced)
    for (const Value &device : step.at("labels").items()) labels.sliced.push_back(scenario.files.arrays(device));
  else
    labels.whole = scenario.files.arrays(step.at("labels"));
  return labels;
}

void update_metric_of(Scenario &scenario, Group &group, const Value &step) {
  Metric &metric = scenario.metric(step);
  const MetricLabels labels = metric_labels(scenario, step);
  if (labels.is_sliced)
    group.update_metric_presliced(metric, labels.sliced);
  else
    group.update_metric(metric, labels.whole);
}

void add_metric_steps(StepTable &table) {
  table["create_metric"] = create_metric;
  table["update_metric"] = update_metric;
  table["metric_update"] = metric_update;
  table["get_metric"] = get_metric;
  table["reset_metric"] = reset_metric;
}

}  // namespace golden
