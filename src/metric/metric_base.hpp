// SPDX-License-Identifier: Apache-2.0
// The base of metrics without children: counters, names, and the order "measure, then add". For the files of this
// folder.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/setting_reader.hpp"
#include "metric/metric.hpp"

namespace cohort {

// Counts of decisions between two classes, class 1 being the positive one.
struct BinaryCounts {
  double true_positive = 0, false_positive = 0, false_negative = 0, true_negative = 0;
  double total() const { return true_positive + false_positive + false_negative + true_negative; }
};

// Mean and co-moments of pairs, merged without loss of precision.
struct CoMoments {
  double num = 0, mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  void add(double x, double y);
  void merge(const CoMoments &other);
};

// The counters of one metric, local or global. Each kind uses some of them.
struct MetricState {
  MetricCounters counters;
  BinaryCounts binary;
  CoMoments moments;
  std::map<std::pair<int64_t, int64_t>, double> confusion;  // (predicted, label) -> count
  std::vector<MetricCounters> parts;                        // one per value, if there are several
  void reserve(const MetricState &other);                   // then merge() needs no memory; changes no value
  void merge(const MetricState &other);
};

// A metric without children, with one value unless a kind says otherwise. A kind implements measure() for one update;
// it throws before anything is added.
class LeafMetric : public Metric {
 public:
  explicit LeafMetric(std::string name) : name_(std::move(name)) {}

  void update(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) override;
  void update_named(const NamedArrays &labels, const NamedArrays &preds) override;
  void set_names(std::vector<std::string> label_names, std::vector<std::string> output_names) override;
  void reset() override;
  void reset_local() override;
  void add(std::shared_ptr<Metric> child) override;
  size_t num_children() const override { return 0; }
  std::shared_ptr<Metric> child(size_t index) const override;
  size_t num_values() const override { return 1; }
  const std::string &name(size_t index) const override;
  double value(size_t index, bool global) const override;
  MetricCounters counters(size_t index, bool global) const override;
  std::unique_ptr<Snapshot> snapshot() const override;
  void restore(const Snapshot &snapshot) override;

 protected:
  virtual MetricState measure(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) const = 0;
  // Sum and number of a value; a kind overrides it if these are not state.counters.
  virtual MetricCounters totals(const MetricState &state, size_t) const { return state.counters; }
  virtual double evaluate(const MetricState &state, size_t index) const;
  void check_index(size_t index) const;  // kInvalidArgument if there is no such value
  // MET-08: checks that there are as many labels as predictions.
  void check_counts(size_t num_labels, size_t num_preds) const;

 private:
  const std::string name_;
  std::vector<std::string> label_names_, output_names_;
  mutable std::mutex mutex_;  // guards local_ and global_: handles of several threads may update one metric
  MetricState local_, global_;
};

// The elements as doubles; waits for the array, on any device.
std::vector<double> values_of(const NDArray &array);

// Waits for the array and calls fn(const T *elements) with it on the host.
template <typename Fn>
void with_elements(const NDArray &array, Fn &&fn) {
  array.wait();
  const NDArray host = array.on_host();
  dispatch(host.dtype(), [&](auto type) { fn(static_cast<const decltype(type) *>(host.data())); });
}

template <typename T>
double element_value(T value) {
  return cast_element<double>(value);
}

// The array's shape as (outer, length of axis, inner).
struct AxisView {
  int64_t outer, length, inner;
  AxisView(const Shape &shape, int axis)
      : outer(shape.size(0, axis)), length(shape[axis]), inner(shape.size(axis + 1, shape.rank())) {}
  int64_t count() const { return outer * inner; }  // positions besides the axis
  // Offset of element `index` along the axis at position `at`.
  int64_t offset(int64_t at, int64_t index) const { return (at / inner * length + index) * inner + at % inner; }
};

// Kinds of classification.cc, confidence.cc and regression.cc; null if the kind is not among theirs.
std::shared_ptr<Metric> make_classification_metric(const std::string &kind, SettingReader &settings);
std::shared_ptr<Metric> make_confidence_metric(const std::string &kind, SettingReader &settings);
std::shared_ptr<Metric> make_regression_metric(const std::string &kind, SettingReader &settings);

}  // namespace cohort
