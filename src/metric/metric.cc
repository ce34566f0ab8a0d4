// SPDX-License-Identifier: Apache-2.0
// Creation of metrics by name, the base of metrics without children, and the composite and custom metrics.
#include "metric/metric.hpp"

#include <cmath>
#include <limits>

#include "metric/metric_base.hpp"

namespace cohort {

void CoMoments::add(double x, double y) {
  num += 1;
  const double dx = x - mean_x, dy = y - mean_y;
  mean_x += dx / num;
  mean_y += dy / num;
  xx += dx * (x - mean_x);
  yy += dy * (y - mean_y);
  xy += dx * (y - mean_y);
}

void CoMoments::merge(const CoMoments &other) {
  if (other.num == 0) return;
  const double total = num + other.num, dx = other.mean_x - mean_x, dy = other.mean_y - mean_y;
  const double weight = num * other.num / total;
  xx += other.xx + dx * dx * weight;
  yy += other.yy + dy * dy * weight;
  xy += other.xy + dx * dy * weight;
  mean_x += dx * other.num / total;
  mean_y += dy * other.num / total;
  num = total;
}

void MetricState::reserve(const MetricState &other) {
  for (const auto &entry : other.confusion) confusion.emplace(entry.first, 0);
  if (parts.size() < other.parts.size()) parts.resize(other.parts.size());
}

void MetricState::merge(const MetricState &other) {
  counters.sum += other.counters.sum;
  counters.num += other.counters.num;
  binary.true_positive += other.binary.true_positive;
  binary.false_positive += other.binary.false_positive;
  binary.false_negative += other.binary.false_negative;
  binary.true_negative += other.binary.true_negative;
  moments.merge(other.moments);
  for (const auto &entry : other.confusion) confusion[entry.first] += entry.second;
  for (size_t i = 0; i < other.parts.size(); ++i) {
    parts[i].sum += other.parts[i].sum;
    parts[i].num += other.parts[i].num;
  }
}

std::vector<double> values_of(const NDArray &array) {
  std::vector<double> values(size_t(array.size()));
  array.wait();
  const NDArray host = array.on_host();
  cast_elements(host.data(), host.dtype(), values.data(), Dtype::kFloat64, host.size());
  return values;
}

namespace {

[[noreturn]] void no_such_value(size_t index, size_t num_values) {
  throw Error(Code::kInvalidArgument, text("index: the metric has ", num_values, " values, found ", index), "index");
}

// The arrays with these names in the order of `names`, or all of them.
std::vector<NDArray> chosen(const NamedArrays &arrays, const std::vector<std::string> &names, const char *what) {
  std::vector<NDArray> result;
  const auto take = [&](const std::string &name, const NDArray &array) {
    if (!array) throw Error(Code::kInvalidArgument, text(what, " '", name, "' has no array"), name);
    result.push_back(array);
  };
  if (names.empty()) {
    for (const auto &entry : arrays) take(entry.first, entry.second);
    return result;
  }
  for (const std::string &name : names) {
    const NDArray *found = nullptr;
    for (const auto &entry : arrays)
      if (entry.first == name) found = &entry.second;
    if (!found) {
      std::string there;
      for (const auto &entry : arrays) there += (there.empty() ? "'" : ", '") + entry.first + "'";
      throw Error(Code::kName, text("metric: the chosen ", what, " '", name, "' is not among ", there), name);
    }
    take(name, *found);
  }
  return result;
}

struct LeafSnapshot : Metric::Snapshot {
  MetricState local, global;
};

// A metric that the host computes.
class CustomMetric final : public LeafMetric {
 public:
  CustomMetric(const std::string &name, MetricFunction function, bool allow_extra_outputs)
      : LeafMetric(name), function_(std::move(function)), allow_extra_outputs_(allow_extra_outputs) {}

 private:
  MetricState measure(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) const override {
    if (!allow_extra_outputs_) check_counts(labels.size(), preds.size());
    MetricState state;
    state.counters = function_(labels, preds);
    return state;
  }

  const MetricFunction function_;
  const bool allow_extra_outputs_;
};

struct CompositeSnapshot : Metric::Snapshot {
  std::vector<std::unique_ptr<Metric::Snapshot>> children;
};

// Several metrics that are updated together. Its own names limit what its children may choose from.
class CompositeMetric final : public Metric {
 public:
  void update(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) override {
    for_all([&](Metric &metric) { metric.update(labels, preds); });
  }
  void update_named(const NamedArrays &labels, const NamedArrays &preds) override {
    const NamedArrays those_labels = narrowed(labels, label_names_, "label");
    const NamedArrays those_preds = narrowed(preds, output_names_, "output");
    for_all([&](Metric &metric) { metric.update_named(those_labels, those_preds); });
  }
  void set_names(std::vector<std::string> label_names, std::vector<std::string> output_names) override {
    label_names_ = std::move(label_names);
    output_names_ = std::move(output_names);
  }
  void reset() override {
    for (auto &metric : children_) metric->reset();
  }
  void reset_local() override {
    for (auto &metric : children_) metric->reset_local();
  }
  void add(std::shared_ptr<Metric> child) override {
    if (child->contains(*this)) {
      throw Error(Code::kInvalidArgument, "a composite metric cannot be a child of itself", "child");
    }
    children_.push_back(std::move(child));
  }
  bool contains(const Metric &other) const override {
    if (&other == this) return true;
    for (const auto &metric : children_)
      if (metric->contains(other)) return true;
    return false;
  }
  size_t num_children() const override { return children_.size(); }
  std::shared_ptr<Metric> child(size_t index) const override {
    if (index >= children_.size()) {
      throw Error(Code::kInvalidArgument, text("index: the metric has ", children_.size(), " children, found ", index),
                  "index");
    }
    return children_[index];
  }
  size_t num_values() const override {
    size_t num = 0;
    for (const auto &metric : children_) num += metric->num_values();
    return num;
  }
  const std::string &name(size_t index) const override {
    const Metric &metric = locate(index);
    return metric.name(index);
  }
  double value(size_t index, bool global) const override {
    const Metric &metric = locate(index);
    return metric.value(index, global);
  }
  MetricCounters counters(size_t index, bool global) const override {
    const Metric &metric = locate(index);
    return metric.counters(index, global);
  }
  std::unique_ptr<Snapshot> snapshot() const override {
    auto all = std::make_unique<CompositeSnapshot>();
    for (const auto &metric : children_) all->children.push_back(metric->snapshot());
    return all;
  }
  void restore(const Snapshot &snapshot) override {
    const auto &all = static_cast<const CompositeSnapshot &>(snapshot);
    for (size_t i = 0; i < all.children.size(); ++i) children_[i]->restore(*all.children[i]);
  }

 private:
  // The child that value `index` belongs to; `index` becomes the child's own.
  const Metric &locate(size_t &index) const {
    const size_t asked = index;
    for (const auto &metric : children_) {
      if (index < metric->num_values()) return *metric;
      index -= metric->num_values();
    }
    no_such_value(asked, num_values());
  }
  template <typename Fn>
  void for_all(Fn &&fn) {
    const std::unique_ptr<Snapshot> before = snapshot();
    try {
      for (auto &metric : children_) fn(*metric);
    } catch (...) {
      restore(*before);
      throw;
    }
  }
  static NamedArrays narrowed(const NamedArrays &arrays, const std::vector<std::string> &names, const char *what) {
    if (names.empty()) return arrays;
    chosen(arrays, names, what);  // checks that all of them are there
    NamedArrays result;
    for (const auto &entry : arrays)
      for (const std::string &name : names)
        if (entry.first == name) result.push_back(entry);
    return result;
  }

  std::vector<std::shared_ptr<Metric>> children_;
  std::vector<std::string> label_names_, output_names_;
};

}  // namespace

void LeafMetric::update(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) {
  const MetricState update = measure(labels, preds);
  const std::lock_guard<std::mutex> lock(mutex_);
  local_.reserve(update);
  global_.reserve(update);
  local_.merge(update);
  global_.merge(update);
}

void LeafMetric::update_named(const NamedArrays &labels, const NamedArrays &preds) {
  update(chosen(labels, label_names_, "label"), chosen(preds, output_names_, "output"));
}

void LeafMetric::set_names(std::vector<std::string> label_names, std::vector<std::string> output_names) {
  label_names_ = std::move(label_names);
  output_names_ = std::move(output_names);
}

void LeafMetric::reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  local_ = MetricState();
  global_ = MetricState();
}

void LeafMetric::reset_local() {
  const std::lock_guard<std::mutex> lock(mutex_);
  local_ = MetricState();
}

void LeafMetric::add(std::shared_ptr<Metric>) {
  throw Error(Code::kState, text("metric '", name_, "' is not composite: it cannot have children"), name_);
}

std::shared_ptr<Metric> LeafMetric::child(size_t index) const {
  throw Error(Code::kInvalidArgument, text("index: metric '", name_, "' has no children, found ", index), "index");
}

void LeafMetric::check_index(size_t index) const {
  if (index >= num_values()) no_such_value(index, num_values());
}

const std::string &LeafMetric::name(size_t index) const {
  check_index(index);
  return name_;
}

double LeafMetric::evaluate(const MetricState &state, size_t index) const {
  const MetricCounters counters = totals(state, index);
  return counters.num == 0 ? std::numeric_limits<double>::quiet_NaN() : counters.sum / counters.num;
}

double LeafMetric::value(size_t index, bool global) const {
  check_index(index);
  const std::lock_guard<std::mutex> lock(mutex_);
  return evaluate(global ? global_ : local_, index);
}

MetricCounters LeafMetric::counters(size_t index, bool global) const {
  check_index(index);
  const std::lock_guard<std::mutex> lock(mutex_);
  return totals(global ? global_ : local_, index);
}

std::unique_ptr<Metric::Snapshot> LeafMetric::snapshot() const {
  auto copy = std::make_unique<LeafSnapshot>();
  const std::lock_guard<std::mutex> lock(mutex_);
  copy->local = local_;
  copy->global = global_;
  return copy;
}

void LeafMetric::restore(const Snapshot &snapshot) {
  const auto &copy = static_cast<const LeafSnapshot &>(snapshot);
  const std::lock_guard<std::mutex> lock(mutex_);
  local_ = copy.local;
  global_ = copy.global;
}

void LeafMetric::check_counts(size_t num_labels, size_t num_preds) const {
  if (num_labels != num_preds) {
    throw Error(
        Code::kInvalidArgument,
        text("metric '", name_, "': expected as many labels as predictions, found ", num_labels, " and ", num_preds),
        name_);
  }
}

std::shared_ptr<Metric> Metric::create(const std::string &kind, const AttrMap &settings) {
  const std::string lower = lower_case(kind);
  SettingReader reader("metric '" + kind + "'", settings);
  std::shared_ptr<Metric> metric;
  if (lower == "composite" || lower == "compositeevalmetric") {
    reader.text_of("name");  // accepted without effect: its values have its children's names
    metric = std::make_shared<CompositeMetric>();
  }
  if (!metric) metric = make_classification_metric(lower, reader);
  if (!metric) metric = make_confidence_metric(lower, reader);
  if (!metric) metric = make_regression_metric(lower, reader);
  if (!metric) {
    throw Error(Code::kName,
                text("there is no metric '", kind,
                     "'; there are accuracy, top_k_accuracy, f1, mcc, pcc, pearsonr, perplexity, mae, mse, rmse, "
                     "cross-entropy, nll-loss, loss, torch, caffe, confidence and composite"),
                kind);
  }
  reader.finish();
  return metric;
}

std::shared_ptr<Metric> Metric::custom(const std::string &name, MetricFunction function, bool allow_extra_outputs) {
  return std::make_shared<CustomMetric>(name, std::move(function), allow_extra_outputs);
}

}  // namespace cohort
