// SPDX-License-Identifier: Apache-2.0
// Metrics of predicted classes: accuracy, top_k_accuracy, f1, mcc, pcc, perplexity, cross-entropy, nll-loss
// (MET-10..13, 15, 16).
#include <algorithm>
#include <cmath>
#include <limits>

#include "metric/metric_base.hpp"

namespace cohort {
namespace {

[[noreturn]] void misfit(const std::string &metric, const NDArray &label, const NDArray &pred) {
  throw Error(
      Code::kShape,
      text("metric '", metric, "': labels of shape ", label.shape(), " do not fit predictions of shape ", pred.shape()),
      metric);
}

// The index of the greatest element along an axis, the first on ties.
std::vector<int64_t> argmax(const NDArray &array, int axis) {
  const AxisView view(array.shape(), axis);
  std::vector<int64_t> best(size_t(view.count()), 0);
  with_elements(array, [&](const auto *elements) {
    for (int64_t at = 0; at < view.count(); ++at) {
      const auto *line = elements + view.offset(at, 0);
      int64_t where = 0;
      double top = view.length ? element_value(line[0]) : 0;
      for (int64_t c = 1; c < view.length; ++c) {
        const double value = element_value(line[c * view.inner]);
        if (value > top) top = value, where = c;
      }
      best[size_t(at)] = where;
    }
  });
  return best;
}

// Casts labels toward zero, as MXNet does.
std::vector<int64_t> classes_of(const NDArray &array) {
  std::vector<int64_t> classes;
  classes.reserve(size_t(array.size()));
  with_elements(array, [&](const auto *elements) {
    for (int64_t i = 0; i < array.size(); ++i) classes.push_back(cast_element<int64_t>(elements[i]));
  });
  return classes;
}

// Base of metrics that are computed pair by pair.
class PairMetric : public LeafMetric {
 public:
  explicit PairMetric(const std::string &name) : LeafMetric(name) {}

 protected:
  virtual void add_pair(const NDArray &label, const NDArray &pred, MetricState *state) const = 0;

 private:
  MetricState measure(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) const override {
    check_counts(labels.size(), preds.size());
    MetricState state;
    for (size_t i = 0; i < labels.size(); ++i) add_pair(labels[i], preds[i], &state);
    finish(&state);
    return state;
  }
  virtual void finish(MetricState *) const {}
};

class Accuracy final : public PairMetric {
 public:
  Accuracy(const std::string &name, int64_t axis) : PairMetric(name), axis_(axis) {}

 private:
  void add_pair(const NDArray &label, const NDArray &pred, MetricState *state) const override {
    std::vector<int64_t> predicted;
    if (label.shape() == pred.shape()) {
      predicted = classes_of(pred);
    } else {
      const int rank = pred.shape().rank();
      if (axis_ >= rank || axis_ < -rank) misfit(name(0), label, pred);
      predicted = argmax(pred, int(axis_ < 0 ? axis_ + rank : axis_));
    }
    const std::vector<int64_t> expected = classes_of(label);
    if (expected.size() != predicted.size()) misfit(name(0), label, pred);
    for (size_t i = 0; i < expected.size(); ++i) state->counters.sum += expected[i] == predicted[i];
    state->counters.num += double(expected.size());
  }

  const int64_t axis_;
};

// A row counts if its label is among its k greatest predictions, the earlier one being greater on ties.
class TopKAccuracy final : public PairMetric {
 public:
  TopKAccuracy(const std::string &name, int64_t top_k) : PairMetric(name), top_k_(top_k) {}

 private:
  void add_pair(const NDArray &label, const NDArray &pred, MetricState *state) const override {
    const int rank = pred.shape().rank();
    const int64_t rows = rank > 0 ? pred.shape()[0] : 0;
    if (rank < 1 || rank > 2 || label.size() != rows) misfit(name(0), label, pred);
    const std::vector<int64_t> expected = classes_of(label);
    const int64_t columns = rank == 2 ? pred.shape()[1] : 0;
    with_elements(pred, [&](const auto *elements) {
      if (rank == 1) {  // compares the ascending order of the predictions with the labels
        std::vector<int64_t> order(static_cast<size_t>(rows));
        for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t a, int64_t b) { return element_value(elements[a]) < element_value(elements[b]); });
        for (size_t i = 0; i < order.size(); ++i) state->counters.sum += order[i] == expected[i];
        return;
      }
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t target = expected[size_t(r)];
        if (target < 0 || target >= columns) continue;
        const auto *row = elements + r * columns;
        const double value = element_value(row[target]);
        int64_t ahead = 0;
        for (int64_t c = 0; c < columns; ++c) {
          const double other = element_value(row[c]);
          ahead += other > value || (other == value && c < target);
        }
        state->counters.sum += ahead < top_k_;
      }
    });
    state->counters.num += double(rows);
  }

  const int64_t top_k_;
};

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

double f1_score(const BinaryCounts &n) {
  const double precision = ratio(n.true_positive, n.true_positive + n.false_positive);
  const double recall = ratio(n.true_positive, n.true_positive + n.false_negative);
  return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
}

// Matthews correlation; a factor of zero under the root is left out.
double matthews(const BinaryCounts &n) {
  if (n.total() == 0) return 0;
  double product = 1;
  for (double term : {n.true_positive + n.false_positive, n.true_positive + n.false_negative,
                      n.true_negative + n.false_positive, n.true_negative + n.false_negative})
    if (term != 0) product *= term;
  return (n.true_positive * n.true_negative - n.false_positive * n.false_negative) / std::sqrt(product);
}

// f1 and mcc. macro: the mean of each update's score; micro: the score of all counts together.
class BinaryMetric final : public PairMetric {
 public:
  BinaryMetric(const std::string &name, double (*score)(const BinaryCounts &), bool micro)
      : PairMetric(name), score_(score), micro_(micro) {}

 private:
  void add_pair(const NDArray &label, const NDArray &pred, MetricState *state) const override {
    if (pred.shape().rank() < 2) misfit(name(0), label, pred);
    const std::vector<int64_t> predicted = argmax(pred, 1), expected = classes_of(label);
    if (predicted.size() != expected.size()) misfit(name(0), label, pred);
    int64_t seen[2];
    size_t num_seen = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (std::find(seen, seen + num_seen, expected[i]) == seen + num_seen) {
        if (num_seen == 2) {
          throw Error(Code::kInvalidArgument,
                      text("metric '", name(0), "' is for two classes, found labels ", seen[0], ", ", seen[1], " and ",
                           expected[i]),
                      name(0));
        }
        seen[num_seen++] = expected[i];
      }
      const bool is = expected[i] == 1, said = predicted[i] == 1;
      BinaryCounts &n = state->binary;
      (said ? (is ? n.true_positive : n.false_positive) : (is ? n.false_negative : n.true_negative)) += 1;
    }
  }
  void finish(MetricState *state) const override {
    if (micro_) return;
    state->counters.sum = score_(state->binary);
    state->counters.num = 1;
  }
  MetricCounters totals(const MetricState &state, size_t) const override {
    if (!micro_) return state.counters;
    return {score_(state.binary) * state.binary.total(), state.binary.total()};
  }

  double (*const score_)(const BinaryCounts &);
  const bool micro_;
};

// Multi-class generalisation of mcc, from the confusion matrix; NaN where it is degenerate.
class PhiCorrelation final : public PairMetric {
 public:
  explicit PhiCorrelation(const std::string &name) : PairMetric(name) {}

 private:
  void add_pair(const NDArray &label, const NDArray &pred, MetricState *state) const override {
    const bool same = label.shape() == pred.shape();
    if (!same && pred.shape().rank() < 2) misfit(name(0), label, pred);
    const std::vector<int64_t> predicted = same ? classes_of(pred) : argmax(pred, 1), expected = classes_of(label);
    if (predicted.size() != expected.size()) misfit(name(0), label, pred);
    for (size_t i = 0; i < expected.size(); ++i) state->confusion[{predicted[i], expected[i]}] += 1;
  }
  void finish(MetricState *state) const override { state->counters.num = 1; }
  MetricCounters totals(const MetricState &state, size_t) const override {
    return {score(state) * state.counters.num, state.counters.num};
  }
  double evaluate(const MetricState &state, size_t) const override {
    return state.counters.num == 0 ? std::numeric_limits<double>::quiet_NaN() : score(state);
  }
  static double score(const MetricState &state) {
    std::map<int64_t, double> by_prediction, by_label, diagonal;
    double total = 0;
    for (const auto &entry : state.confusion) {
      by_prediction[entry.first.first] += entry.second;
      by_label[entry.first.second] += entry.second;
      if (entry.first.first == entry.first.second) diagonal[entry.first.first] += entry.second;
      total += entry.second;
    }
    double cov_xx = 0, cov_yy = 0, cov_xy = 0;
    for (const auto &x : by_prediction) {
      cov_xx += x.second * (total - x.second);
      const auto y = by_label.find(x.first);
      if (y != by_label.end()) cov_xy -= x.second * y->second;
    }
    for (const auto &y : by_label) cov_yy += y.second * (total - y.second);
    for (const auto &d : diagonal) cov_xy += d.second * total;
    if (cov_xx == 0 || cov_yy == 0) return std::numeric_limits<double>::quiet_NaN();
    return cov_xy / std::sqrt(cov_xx * cov_yy);
  }
};

// exp of the mean of -log p[label]. A label beyond the classes counts as the nearest one, as in MXNet's pick.
class Perplexity final : public PairMetric {
 public:
  Perplexity(const std::string &name, std::optional<double> ignore_label, int64_t axis)
      : PairMetric(name), ignore_label_(ignore_label), axis_(axis) {}

 private:
  void add_pair(const NDArray &label, const NDArray &pred, MetricState *state) const override {
    const int rank = pred.shape().rank();
    if (axis_ >= rank || axis_ < -rank) misfit(name(0), label, pred);
    const AxisView view(pred.shape(), int(axis_ < 0 ? axis_ + rank : axis_));
    if (label.size() != view.count() || view.length == 0) misfit(name(0), label, pred);
    const std::vector<double> labels = values_of(label);
    with_elements(pred, [&](const auto *elements) {
      for (int64_t at = 0; at < view.count(); ++at) {
        const double target = labels[size_t(at)];
        if (ignore_label_ && target == *ignore_label_) continue;
        const int64_t index = std::clamp<int64_t>(cast_element<int64_t>(target), 0, view.length - 1);
        const double p = element_value(elements[view.offset(at, index)]);
        state->counters.sum -= std::log(std::max(1e-10, p));
        state->counters.num += 1;
      }
    });
  }
  double evaluate(const MetricState &state, size_t index) const override {
    return std::exp(PairMetric::evaluate(state, index));  // NaN gives NaN
  }

  const std::optional<double> ignore_label_;
  const int64_t axis_;
};

// cross-entropy and nll-loss: the mean of -log(p[label] + eps).
class NegativeLogLikelihood final : public PairMetric {
 public:
  NegativeLogLikelihood(const std::string &name, double eps) : PairMetric(name), eps_(eps) {}

 private:
  void add_pair(const NDArray &label, const NDArray &pred, MetricState *state) const override {
    if (pred.shape().rank() != 2 || label.size() != pred.shape()[0]) misfit(name(0), label, pred);
    const int64_t columns = pred.shape()[1];
    const std::vector<int64_t> expected = classes_of(label);
    with_elements(pred, [&](const auto *elements) {
      for (size_t r = 0; r < expected.size(); ++r) {
        // A negative label counts from the last class, as an index does in MXNet.
        const int64_t target = expected[r] < 0 ? expected[r] + columns : expected[r];
        if (target < 0 || target >= columns) {
          throw Error(Code::kInvalidArgument,
                      text("metric '", name(0), "': label ", expected[r], " of sample ", r, " is beyond the ", columns,
                           " classes of predictions of shape ", pred.shape()),
                      name(0));
        }
        state->counters.sum -= std::log(element_value(elements[int64_t(r) * columns + target]) + eps_);
      }
    });
    state->counters.num += double(expected.size());
  }

  const double eps_;
};

}  // namespace

std::shared_ptr<Metric> make_classification_metric(const std::string &kind, SettingReader &settings) {
  const auto called = [&](const char *name) { return settings.text_of("name").value_or(name); };
  if (kind == "accuracy" || kind == "acc") {
    return std::make_shared<Accuracy>(called("accuracy"), settings.integer("axis", 1));
  }
  if (kind == "top_k_accuracy" || kind == "top_k_acc" || kind == "topkaccuracy") {
    const int64_t top_k = settings.integer("top_k", 1);
    if (top_k <= 1) settings.fail("top_k", "a number above 1 (accuracy is for 1)", std::to_string(top_k));
    return std::make_shared<TopKAccuracy>(called("top_k_accuracy") + "_" + std::to_string(top_k), top_k);
  }
  if (kind == "f1" || kind == "mcc") {
    const bool micro = settings.word("average", {"macro", "micro"}) == "micro";
    return std::make_shared<BinaryMetric>(called(kind.c_str()), kind == "f1" ? f1_score : matthews, micro);
  }
  if (kind == "pcc") return std::make_shared<PhiCorrelation>(called("pcc"));
  if (kind == "perplexity") {
    const auto ignore_label = settings.number_or_none("ignore_label");
    return std::make_shared<Perplexity>(called("perplexity"), ignore_label, settings.integer("axis", -1));
  }
  if (kind == "cross-entropy" || kind == "cross_entropy" || kind == "ce" || kind == "crossentropy") {
    return std::make_shared<NegativeLogLikelihood>(called("cross-entropy"), settings.number("eps", 1e-12));
  }
  if (kind == "nll-loss" || kind == "nll_loss" || kind == "negativeloglikelihood") {
    return std::make_shared<NegativeLogLikelihood>(called("nll-loss"), settings.number("eps", 1e-12));
  }
  return nullptr;
}

}  // namespace cohort
