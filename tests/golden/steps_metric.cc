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
  std::vector<std::string> keys, texts, label_names, output_names;
  const Value &args = description.get("args");
  for (size_t i = 0; !args.is_null() && i < args.keys().size(); ++i) {
    const std::string &key = args.keys()[i];
    const Value &value = args.items()[i];
    if (key == "label_names") {
      label_names = one_or_more(value);
    } else if (key == "output_names") {
      output_names = one_or_more(value);
    } else if (!value.is_null()) {
      keys.push_back(key);
      texts.push_back(setting_text(value));
    }
  }
  auto metric = make<Metric>(cohort_metric_create, description.at("kind").as_text().c_str(), c_strings(keys).data(),
                             c_strings(texts).data(), keys.size());
  const std::vector<const char *> labels_c = c_strings(label_names), outputs_c = c_strings(output_names);
  if (!labels_c.empty() || !outputs_c.empty())
    check(cohort_metric_set_names(metric.get(), labels_c.empty() ? nullptr : labels_c.data(), labels_c.size(),
                                  outputs_c.empty() ? nullptr : outputs_c.data(), outputs_c.size()));
  const Value &children = description.get("children");
  if (!children.is_null())
    for (const Value &child : children.items()) check(cohort_metric_add(metric.get(), make_metric(child).get()));
  return metric;
}

Value create_metric(Scenario &scenario, const Value &step) {
  scenario.metrics[step.at("metric").as_text()] = make_metric(step);
  return Value();
}

Value found_metric(const cohort_metric *metric, bool global) {
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
  check(
      cohort_metric_update(scenario.metric(step), raw(labels).data(), labels.size(), raw(preds).data(), preds.size()));
  return found_metric(scenario.metric(step), false);
}

Value get_metric(Scenario &scenario, const Value &step) {
  return found_metric(scenario.metric(step), step.flag("global", false));
}

Value reset_metric(Scenario &scenario, const Value &step) {
  check(step.flag("local", false) ? cohort_metric_reset_local(scenario.metric(step))
                                  : cohort_metric_reset(scenario.metric(step)));
  return Value();
}

}  // namespace

Value metric_values(const cohort_metric *metric, bool global) {
  Value values = Value::list();
  const size_t num = query<size_t>(cohort_metric_num_values, metric);
  for (size_t i = 0; i < num; ++i) {
    const char *name = nullptr;
    double value = 0;
    check(cohort_metric_value(metric, i, global, &name, &value));
    values.add(Value::list({Value::text(name), Value::real(value)}));
  }
  return values;
}

MetricLabels metric_labels(Scenario &scenario, const Value &step) {
  MetricLabels labels;
  labels.is_sliced = step.flag("pre_sliced", false);
  if (!labels.is_sliced) {
    labels.arrays = scenario.files.arrays(step.at("labels"));
    return labels;
  }
  labels.num_slices = step.at("labels").items().size();
  for (const Value &device : step.at("labels").items()) {
    labels.num_labels = device.items().size();
    for (NDArray &array : scenario.files.arrays(device)) labels.arrays.push_back(std::move(array));
  }
  if (labels.arrays.size() != labels.num_slices * labels.num_labels)
    throw BadCase("devices have different numbers of labels");
  return labels;
}

void update_metric_of(Scenario &scenario, cohort_group *group, const Value &step) {
  cohort_metric *metric = scenario.metric(step);
  const MetricLabels labels = metric_labels(scenario, step);
  check(labels.is_sliced ? cohort_group_update_metric_presliced(group, metric, labels.num_slices,
                                                                raw(labels.arrays).data(), labels.num_labels)
                         : cohort_group_update_metric(group, metric, raw(labels.arrays).data(), labels.arrays.size()));
}

void add_metric_steps(StepTable &table) {
  table["create_metric"] = create_metric;
  table["update_metric"] = update_metric;
  table["metric_update"] = metric_update;
  table["get_metric"] = get_metric;
  table["reset_metric"] = reset_metric;
}

}  // namespace golden
