// SPDX-License-Identifier: Apache-2.0
// Metrics of predicted numbers: mae, mse, rmse, pearsonr, loss (MET-14, 16, 17).
#include <cmath>
#include <limits>

#include "metric/metric_base.hpp"

namespace cohort {
namespace {

[[noreturn]] void misfit(const std::string &metric, const NDArray &label, const NDArray &pred) {
  throw Error(Code::kShape,
              text("metric '", metric, "': expected labels of the predictions' shape ", pred.shape(), ", found ",
                   label.shape()),
              metric);
}

Shape at_least_a_column(const Shape &shape) { return shape.rank() == 1 ? Shape{shape[0], 1} : shape; }

// The mean over the elements of each pair, averaged over pairs.
class MeanError final : public LeafMetric {
 public:
  enum class Kind { kAbsolute, kSquared, kRootSquared };
  MeanError(const std::string &name, Kind kind) : LeafMetric(name), kind_(kind) {}

 private:
  MetricState measure(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) const override {
    check_counts(labels.size(), preds.size());
    MetricState state;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (at_least_a_column(labels[i].shape()) != at_least_a_column(preds[i].shape())) {
        misfit(name(0), labels[i], preds[i]);
      }
      const double mean = mean_of(values_of(labels[i]), values_of(preds[i]));
      state.counters.sum += kind_ == Kind::kRootSquared ? std::sqrt(mean) : mean;
      state.counters.num += 1;
    }
    return state;
  }
  double mean_of(const std::vector<double> &label, const std::vector<double> &pred) const {
    double sum = 0;
    for (size_t i = 0; i < label.size(); ++i) {
      const double d = label[i] - pred[i];
      sum += kind_ == Kind::kAbsolute ? std::fabs(d) : d * d;
    }
    return sum / double(label.size());
  }

  const Kind kind_;
};

// macro: the mean of the correlation of each pair of arrays; micro: the correlation of all elements together.
class Pearson final : public LeafMetric {
 public:
  Pearson(const std::string &name, bool micro) : LeafMetric(name), micro_(micro) {}

 private:
  MetricState measure(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) const override {
    check_counts(labels.size(), preds.size());
    MetricState state;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i].shape() != preds[i].shape()) misfit(name(0), labels[i], preds[i]);
      const std::vector<double> label = values_of(labels[i]), pred = values_of(preds[i]);
      CoMoments moments;
      for (size_t k = 0; k < label.size(); ++k) moments.add(label[k], pred[k]);
      state.counters.sum += correlation(moments);
      state.counters.num += 1;
      state.moments.merge(moments);
    }
    return state;
  }
  MetricCounters totals(const MetricState &state, size_t) const override {
    if (!micro_) return state.counters;
    return {correlation(state.moments) * state.moments.num, state.moments.num};
  }
  static double correlation(const CoMoments &m) { return m.xy / std::sqrt(m.xx * m.yy); }  // NaN if one is constant

  const bool micro_;
};

// The mean of the predictions, which are losses.
class Loss final : public LeafMetric {
 public:
  explicit Loss(const std::string &name) : LeafMetric(name) {}

 private:
  MetricState measure(const std::vector<NDArray> &, const std::vector<NDArray> &preds) const override {
    MetricState state;
    for (const NDArray &pred : preds) {
      for (double value : values_of(pred)) state.counters.sum += value;
      state.counters.num += double(pred.size());
    }
    return state;
  }
};

}  // namespace

std::shared_ptr<Metric> make_regression_metric(const std::string &kind, SettingReader &settings) {
  const auto called = [&](const char *name) { return settings.text_of("name").value_or(name); };
  if (kind == "mae") return std::make_shared<MeanError>(called("mae"), MeanError::Kind::kAbsolute);
  if (kind == "mse") return std::make_shared<MeanError>(called("mse"), MeanError::Kind::kSquared);
  if (kind == "rmse") return std::make_shared<MeanError>(called("rmse"), MeanError::Kind::kRootSquared);
  if (kind == "pearsonr" || kind == "pearson-correlation" || kind == "pearsoncorrelation") {
    const bool micro = settings.word("average", {"macro", "micro"}) == "micro";
    return std::make_shared<Pearson>(called("pearsonr"), micro);
  }
  if (kind == "loss" || kind == "torch" || kind == "caffe") return std::make_shared<Loss>(called(kind.c_str()));
  return nullptr;
}

}  // namespace cohort
