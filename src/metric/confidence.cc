// SPDX-License-Identifier: Apache-2.0
// Accuracy by confidence (MET-19): among the samples that get more than a threshold for a class, the share that have it
// as their label. One value for each class and threshold.
#include <cstdint>

#include "base/text_list.hpp"
#include "metric/metric_base.hpp"

namespace cohort {
namespace {

const int64_t kMaxValues = 1000000;  // so that a mistyped number of classes is an error and does not exhaust memory

class Confidence final : public LeafMetric {
 public:
  Confidence(const std::string &name, int64_t num_classes, std::vector<double> thresholds,
             std::vector<std::string> names)
      : LeafMetric(name), num_classes_(num_classes), thresholds_(std::move(thresholds)), names_(std::move(names)) {}

  size_t num_values() const override { return names_.size(); }
  const std::string &name(size_t index) const override {
    check_index(index);
    return names_[index];
  }

 private:
  MetricState measure(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) const override {
    check_counts(labels.size(), preds.size());
    MetricState state;
    state.parts.resize(names_.size());
    for (size_t i = 0; i < labels.size(); ++i) add_pair(labels[i], preds[i], &state);
    return state;
  }
  void add_pair(const NDArray &label, const NDArray &pred, MetricState *state) const {
    const Shape &shape = pred.shape();
    if (shape.rank() != 2 || shape[1] != num_classes_ || label.size() != shape[0]) {
      throw Error(Code::kShape,
                  text("metric '", LeafMetric::name(0), "': expected predictions of ", num_classes_,
                       " classes and a label for each row, found shapes ", shape, " and ", label.shape()),
                  LeafMetric::name(0));
    }
    const std::vector<double> labels = values_of(label), values = values_of(pred);
    for (size_t row = 0; row < labels.size(); ++row) {
      const int64_t target = class_of(labels[row], row);
      for (int64_t c = 0; c < num_classes_; ++c) {
        for (size_t t = 0; t < thresholds_.size(); ++t) {
          if (!(values[row * size_t(num_classes_) + size_t(c)] > thresholds_[t])) continue;
          MetricCounters &part = state->parts[size_t(c) * thresholds_.size() + t];
          part.sum += c == target;
          part.num += 1;
        }
      }
    }
  }
  int64_t class_of(double label, size_t row) const {
    if (label >= 0 && label < double(num_classes_)) return int64_t(label);
    throw Error(Code::kInvalidArgument,
                text("metric '", LeafMetric::name(0), "': label ", label, " of sample ", row, " is beyond the ",
                     num_classes_, " classes"),
                LeafMetric::name(0));
  }
  MetricCounters totals(const MetricState &state, size_t index) const override {
    return index < state.parts.size() ? state.parts[index] : MetricCounters();
  }

  const int64_t num_classes_;
  const std::vector<double> thresholds_;
  const std::vector<std::string> names_;
};

}  // namespace

std::shared_ptr<Metric> make_confidence_metric(const std::string &kind, SettingReader &settings) {
  if (kind != "confidence") return nullptr;
  const std::string name = settings.text_of("name").value_or("confidence");
  const int64_t num_classes = settings.integer("num_classes", 0);
  if (num_classes < 1) settings.fail("num_classes", "the number of classes", std::to_string(num_classes));
  const std::string key = "confidence_thresholds", source = settings.text_of(key).value_or("");
  const std::vector<std::string> words = parse_list(key, source);  // as text, since values are named after them
  if (words.empty()) settings.fail(key, "at least one number", source);
  if (num_classes > kMaxValues / int64_t(words.size())) {
    settings.fail("num_classes", text("at most ", kMaxValues, " values"), std::to_string(num_classes));
  }
  std::vector<double> thresholds;
  for (const std::string &word : words) thresholds.push_back(parse_float(key, word));
  std::vector<std::string> names;
  for (int64_t c = 0; c < num_classes; ++c)
    for (const std::string &word : words) names.push_back(text("P(v=", c, "|Conf>", word, ")"));
  return std::make_shared<Confidence>(name, num_classes, std::move(thresholds), std::move(names));
}

}  // namespace cohort
