// SPDX-License-Identifier: Apache-2.0
#include "cohort/metric.h"

#include "api/objects.hpp"

using namespace cohort;
using namespace cohort::api;

namespace {

Metric &metric_of(const cohort_metric *metric) { return *deref(metric, "metric").metric; }

// Handles on arrays that exist during a callback.
class CallbackHandles {
 public:
  explicit CallbackHandles(const std::vector<NDArray> &arrays) {
    lent_.reserve(arrays.size());
    for (const NDArray &array : arrays) {
      lent_.emplace_back(array);
      handles_.push_back(lent_.back().get());
    }
  }
  cohort_ndarray *const *data() const { return handles_.data(); }
  size_t size() const { return handles_.size(); }

 private:
  std::vector<ScopedHandle<cohort_ndarray>> lent_;
  std::vector<cohort_ndarray *> handles_;
};

MetricFunction to_metric_function(cohort_metric_fn callback, std::string name, void *user_data) {
  return [callback, name, user_data](const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) {
    const CallbackHandles lent_labels(labels), lent_preds(preds);
    MetricCounters added{0, 1};
    const int32_t status = callback(lent_labels.data(), lent_labels.size(), lent_preds.data(), lent_preds.size(),
                                    &added.sum, &added.num, user_data);
    if (status) throw Error(Code::kExecution, text("metric '", name, "': its callback returned ", status), name);
    return added;
  };
}

}  // namespace

cohort_error *cohort_metric_create(const char *kind, const char *const *keys, const char *const *values,
                                   size_t num_attrs, cohort_metric **out_metric) {
  return guard([&] {
    require(out_metric, "out_metric");
    *out_metric =
        make_handle<cohort_metric>({Metric::create(to_text(kind, "kind"), to_attrs(keys, values, num_attrs))});
  });
}

cohort_error *cohort_metric_create_custom(const char *name, cohort_metric_fn callback, void *user_data,
                                          int32_t allow_extra_outputs, cohort_metric **out_metric) {
  return guard([&] {
    require(out_metric, "out_metric");
    if (!callback) throw Error(Code::kInvalidArgument, "callback: expected a function, found NULL", "callback");
    const std::string called = to_text(name, "name");
    *out_metric = make_handle<cohort_metric>({Metric::custom(called, to_metric_function(callback, called, user_data),
                                                             to_bool(allow_extra_outputs, "allow_extra_outputs"))});
  });
}

void cohort_metric_free(cohort_metric *metric) {
  const CallScope inside;
  free_handle(metric);
}

cohort_error *cohort_metric_add(cohort_metric *metric, cohort_metric *child) {
  return guard([&] { metric_of(metric).add(deref(child, "child").metric); });
}

cohort_error *cohort_metric_num_children(const cohort_metric *metric, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = metric_of(metric).num_children();
  });
}

cohort_error *cohort_metric_child(const cohort_metric *metric, size_t index, cohort_metric **out_metric) {
  return guard([&] {
    require(out_metric, "out_metric");
    *out_metric = make_handle<cohort_metric>({metric_of(metric).child(index)});
  });
}

cohort_error *cohort_metric_set_names(cohort_metric *metric, const char *const *label_names, size_t num_label_names,
                                      const char *const *output_names, size_t num_output_names) {
  return guard([&] {
    metric_of(metric).set_names(to_texts(label_names, num_label_names, "label_names"),
                                to_texts(output_names, num_output_names, "output_names"));
  });
}

cohort_error *cohort_metric_update(cohort_metric *metric, cohort_ndarray *const *labels, size_t num_labels,
                                   cohort_ndarray *const *preds, size_t num_preds) {
  return guard(
      [&] { metric_of(metric).update(deref_all(labels, num_labels, "labels"), deref_all(preds, num_preds, "preds")); });
}

cohort_error *cohort_metric_update_named(cohort_metric *metric, const cohort_arrays *labels,
                                         const cohort_arrays *preds) {
  return guard([&] { metric_of(metric).update_named(deref(labels, "labels"), deref(preds, "preds")); });
}

cohort_error *cohort_metric_reset(cohort_metric *metric) {
  return guard([&] { metric_of(metric).reset(); });
}

cohort_error *cohort_metric_reset_local(cohort_metric *metric) {
  return guard([&] { metric_of(metric).reset_local(); });
}

cohort_error *cohort_metric_num_values(const cohort_metric *metric, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = metric_of(metric).num_values();
  });
}

cohort_error *cohort_metric_value(const cohort_metric *metric, size_t index, int32_t global, const char **out_name,
                                  double *out_value) {
  return guard([&] {
    const Metric &source = metric_of(metric);
    const double value = source.value(index, to_bool(global, "global"));
    write_if(out_name, source.name(index).c_str());
    write_if(out_value, value);
  });
}

cohort_error *cohort_metric_counters(const cohort_metric *metric, size_t index, int32_t global, double *out_sum,
                                     double *out_num) {
  return guard([&] {
    const MetricCounters counters = metric_of(metric).counters(index, to_bool(global, "global"));
    write_if(out_sum, counters.sum);
    write_if(out_num, counters.num);
  });
}
