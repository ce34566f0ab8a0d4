// SPDX-License-Identifier: Apache-2.0
// Values of the metrics (contract MET-07..18), computed by hand or with the formulas in double precision.
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "metric/metric.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

NDArray array(const Shape &shape, const std::vector<float> &values) {
  const NDArray result = NDArray::create(shape, Dtype::kFloat32, Context());
  result.write(values.data(), values.size() * sizeof(float));
  return result;
}

NDArray vector(const std::vector<float> &values) { return array(Shape{int64_t(values.size())}, values); }

double value_of(const std::string &kind, const AttrMap &settings, const NDArray &label, const NDArray &pred) {
  const auto metric = Metric::create(kind, settings);
  metric->update({label}, {pred});
  CHECK_EQ(metric->num_values(), size_t(1));
  return metric->value(0, false);
}

std::string name_of(const std::string &kind, const AttrMap &settings) {
  return Metric::create(kind, settings)->name(0);
}

const float kProbabilities[] = {.3f, .7f, 0, 1, .4f, .6f};
NDArray probabilities() { return array(Shape{3, 2}, {kProbabilities, kProbabilities + 6}); }

Code code_of(Metric &metric, const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) {
  try {
    metric.update(labels, preds);
  } catch (const Error &error) {
    return error.code();
  }
  return Code(0);
}

}  // namespace

TEST(accuracy_counts_the_first_greatest) {
  CHECK_NEAR(value_of("acc", {}, vector({0, 1, 1}), probabilities()), 2.0 / 3, 1e-12);
  CHECK_NEAR(value_of("accuracy", {}, vector({0, 0}), array(Shape{2, 2}, {.5f, .5f, .5f, .5f})), 1, 1e-12);
  CHECK_NEAR(value_of("accuracy", {}, vector({0, 1, 2}), vector({0, 1.9f, 1})), 2.0 / 3, 1e-12);
  // Classes along axis 1 of three.
  CHECK_NEAR(value_of("accuracy", {}, array(Shape{1, 2}, {1, 0}), array(Shape{1, 2, 2}, {0, 9, 5, 1})), 1, 1e-12);
}

TEST(top_k_counts_labels_among_the_k_greatest) {
  const NDArray pred = array(Shape{2, 4}, {.1f, .2f, .3f, .4f, .4f, .3f, .2f, .1f});
  CHECK_NEAR(value_of("top_k_accuracy", {{"top_k", "2"}}, vector({2, 2}), pred), .5, 1e-12);
  CHECK_NEAR(value_of("top_k_acc", {{"top_k", "9"}}, vector({0, 3}), pred), 1, 1e-12);
  CHECK_EQ(name_of("top_k_accuracy", {{"top_k", "3"}}), "top_k_accuracy_3");
  CHECK_THROWS(Metric::create("top_k_accuracy", {{"top_k", "1"}}), Error, "above 1");
}

TEST(f1_and_mcc_average_updates_or_counts) {
  const NDArray first_label = vector({1, 1, 0}), second_label = vector({0, 1});
  const NDArray first = array(Shape{3, 2}, {0, 1, 0, 1, 0, 1}), second = array(Shape{2, 2}, {1, 0, 1, 0});
  const auto macro = Metric::create("f1", {}), micro = Metric::create("f1", {{"average", "micro"}});
  for (const auto &metric : {macro, micro}) {
    metric->update({first_label}, {first});
    CHECK_NEAR(metric->value(0, false), .8, 1e-12);
    metric->update({second_label}, {second});
  }
  CHECK_NEAR(macro->value(0, false), .4, 1e-12);
  CHECK_NEAR(micro->value(0, false), 2.0 / 3, 1e-12);
  CHECK_EQ(macro->counters(0, false).num, 2.0);
  CHECK_EQ(micro->counters(0, false).num, 5.0);
  // tp 2, fp 1, fn 0, tn 0: (2*0 - 1*0) divided by the root of 3*2*1.
  CHECK_NEAR(value_of("mcc", {}, first_label, first), 0, 1e-12);
  // tp 1, fp 1, fn 1, tn 2: (2 - 1) / sqrt(2*2*3*3)
  const NDArray mixed = array(Shape{5, 2}, {0, 1, 0, 1, 1, 0, 1, 0, 1, 0});
  CHECK_NEAR(value_of("mcc", {}, vector({1, 0, 1, 0, 0}), mixed), 1.0 / 6, 1e-12);
}

TEST(a_third_class_is_refused) {
  const auto metric = Metric::create("f1", {});
  metric->update({vector({1, 0})}, {array(Shape{2, 2}, {0, 1, 1, 0})});
  CHECK(code_of(*metric, {vector({0, 1, 2})}, {probabilities()}) == Code::kInvalidArgument);
  CHECK_NEAR(metric->value(0, false), 1, 1e-12);
}

TEST(perplexity_is_the_exponential_of_the_mean) {
  const NDArray label = vector({0, 1, 1});
  CHECK_NEAR(value_of("perplexity", {}, label, probabilities()), 1.77109762852, 1e-6);
  CHECK_NEAR(value_of("Perplexity", {{"ignore_label", "1"}}, label, probabilities()), 1 / .3, 1e-6);
  CHECK_NEAR(value_of("perplexity", {}, vector({0}), array(Shape{1, 2}, {0, 1})), 1e10, 1e5);
  // Three axes: the class axis last, then in the middle.
  const NDArray cube = array(Shape{1, 3, 2}, {kProbabilities, kProbabilities + 6});
  CHECK_NEAR(value_of("perplexity", {}, array(Shape{1, 3}, {0, 1, 1}), cube), 1.77109762852, 1e-6);
  const NDArray middle = array(Shape{1, 2, 3}, {.3f, 0, .4f, .7f, 1, .6f});
  CHECK_NEAR(value_of("perplexity", {{"axis", "1"}}, label, middle), 1.77109762852, 1e-6);
}

TEST(cross_entropy_and_nll_average_over_rows) {
  const double expected = -(std::log(double(.3f)) + std::log(1.0) + std::log(double(.6f))) / 3;
  CHECK_NEAR(value_of("ce", {}, vector({0, 1, 1}), probabilities()), expected, 1e-9);
  CHECK_NEAR(value_of("nll_loss", {}, vector({0, 1, 1}), probabilities()), expected, 1e-9);
  CHECK_EQ(name_of("nll_loss", {}), "nll-loss");
  const auto metric = Metric::create("cross-entropy", {});
  CHECK(code_of(*metric, {vector({0, 1, 2})}, {probabilities()}) == Code::kInvalidArgument);
  CHECK(code_of(*metric, {vector({0, 1})}, {probabilities()}) == Code::kShape);
}

TEST(errors_average_the_means_of_updates) {
  const NDArray label = vector({3, -.5f, 2, 7}), pred = vector({2.5f, 0, 2, 8});
  CHECK_NEAR(value_of("mae", {}, label, pred), .5, 1e-12);
  CHECK_NEAR(value_of("mse", {}, label, pred), .375, 1e-12);
  CHECK_NEAR(value_of("rmse", {}, label, array(Shape{4, 1}, {2.5f, 0, 2, 8})), std::sqrt(.375), 1e-12);
  const auto metric = Metric::create("mse", {});
  metric->update({label}, {pred});
  metric->update({vector({0})}, {vector({1})});
  CHECK_NEAR(metric->value(0, false), (.375 + 1) / 2, 1e-12);
  CHECK(code_of(*metric, {array(Shape{4, 1}, {1, 2, 3, 4})}, {array(Shape{2, 2}, {1, 2, 3, 4})}) == Code::kShape);
  CHECK_EQ(metric->counters(0, false).num, 2.0);
}

TEST(pearson_correlates_each_update_or_all) {
  const NDArray label = vector({1, 2, 3}), pred = vector({1, 3, 2});
  CHECK_NEAR(value_of("pearsonr", {}, label, pred), .5, 1e-12);
  const auto micro = Metric::create("pearsonr", {{"average", "micro"}});
  micro->update({label}, {pred});
  micro->update({vector({10})}, {vector({10})});
  // x = 1 2 3 10 of mean 4, y = 1 3 2 10 of mean 4: 49 / sqrt(50 * 50)
  CHECK_NEAR(micro->value(0, false), 49.0 / 50, 1e-12);
}

TEST(pcc_is_nan_where_it_is_degenerate) {
  CHECK(std::isnan(value_of("pcc", {}, vector({1, 1}), array(Shape{2, 2}, {0, 1, 0, 1}))));
  CHECK_NEAR(value_of("pcc", {}, vector({0, 1, 2}), array(Shape{3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1})), 1, 1e-12);
}

TEST(loss_averages_predictions) {
  const auto metric = Metric::create("loss", {});
  metric->update({}, {array(Shape{2, 2}, {.25f, .5f, .75f, .5f})});
  CHECK_NEAR(metric->value(0, false), .5, 1e-12);
  CHECK_EQ(metric->counters(0, false).num, 4.0);
}

TEST(custom_metrics_are_called_with_both_lists) {
  const auto metric = Metric::custom(
      "distance",
      [](const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) {
        CHECK_EQ(labels.size() + preds.size(), size_t(2));
        return MetricCounters{5, 2};
      },
      false);
  CHECK(std::isnan(metric->value(0, false)));
  metric->update({vector({1})}, {vector({1})});
  CHECK_NEAR(metric->value(0, false), 2.5, 1e-12);
  CHECK_EQ(metric->name(0), "distance");
  CHECK(code_of(*metric, {}, {vector({1})}) == Code::kInvalidArgument);
}

TEST(global_counters_outlive_a_local_reset) {
  for (const char *kind : {"accuracy", "f1", "mcc", "cross-entropy", "perplexity"}) {
    const auto metric = Metric::create(kind, {});
    metric->update({vector({0, 1, 1})}, {probabilities()});
    const double first = metric->value(0, false);
    metric->reset_local();
    CHECK(std::isnan(metric->value(0, false)));
    CHECK_NEAR(metric->value(0, true), first, 1e-12);
    metric->update({vector({1, 0, 0})}, {probabilities()});
    CHECK(metric->counters(0, true).num > metric->counters(0, false).num);
    metric->reset();
    CHECK(std::isnan(metric->value(0, true)));
  }
}

TEST(a_composite_updates_all_or_none) {
  const auto all = Metric::create("composite", {}), inner = Metric::create("composite", {});
  all->add(Metric::create("acc", {{"name", "a"}}));
  inner->add(Metric::create("f1", {}));
  all->add(inner);
  CHECK_EQ(all->num_children(), size_t(2));
  CHECK_EQ(all->num_values(), size_t(2));
  CHECK_EQ(all->name(0), "a");
  CHECK_EQ(all->name(1), "f1");
  all->update({vector({0, 1, 1})}, {probabilities()});
  CHECK_NEAR(all->value(0, false), 2.0 / 3, 1e-12);
  CHECK(code_of(*all, {vector({0, 1, 2})}, {probabilities()}) == Code::kInvalidArgument);  // f1 refuses
  CHECK_EQ(all->counters(0, false).num, 3.0);
  CHECK_THROWS(all->child(2), Error, "2 children");
  CHECK_THROWS(all->value(2, false), Error, "2 values");
  CHECK_THROWS(inner->add(all), Error, "child of itself");
  CHECK_THROWS(all->child(0)->add(inner), Error, "not composite");
}

TEST(names_choose_labels_and_outputs) {
  const auto metric = Metric::create("acc", {});
  const NamedArrays labels = {{"x_label", vector({9, 9, 9})}, {"y_label", vector({0, 1, 1})}};
  const NamedArrays outputs = {{"y_output", probabilities()}, {"z_output", vector({1})}};
  metric->set_names({"y_label"}, {"y_output"});
  metric->update_named(labels, outputs);
  CHECK_NEAR(metric->value(0, false), 2.0 / 3, 1e-12);
  metric->set_names({"q_label"}, {"y_output"});
  CHECK_THROWS(metric->update_named(labels, outputs), Error, "'q_label'");
  metric->set_names({}, {});
  CHECK_THROWS(metric->update_named({labels[0]}, outputs), Error, "as many labels as predictions");
}

TEST(unknown_metrics_and_settings_are_named) {
  CHECK_THROWS(Metric::create("accuracies", {}), Error, "'accuracies'");
  CHECK_THROWS(Metric::create("acc", {{"axes", "1"}}), Error, "no setting 'axes'");
  CHECK_THROWS(Metric::create("acc", {{"axis", "one"}}), Error, "an integer");
  CHECK_THROWS(Metric::create("f1", {{"average", "median"}}), Error, "'macro', 'micro'");
}

TEST(half_floats_and_integers_are_read) {
  const NDArray label = vector({0, 1, 1}).cast(Dtype::kInt32), pred = probabilities().cast(Dtype::kFloat16);
  CHECK_NEAR(value_of("acc", {}, label, pred), 2.0 / 3, 1e-12);
  CHECK_NEAR(value_of("ce", {}, label, pred), -(std::log(.3) + std::log(.6)) / 3, 1e-3);
}

UNIT_MAIN()
