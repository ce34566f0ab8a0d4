/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics by name: MET-07 to MET-19. Expected values are computed by hand from few rows, or were printed by MXNet 1.9.1
 * for the same arrays. */
#include <math.h>

#include "support/group_tests.h"

static cohort_metric *metric_with(const char *kind, const char *const *settings) {
  const char *keys[4], *values[4];
  cohort_metric *metric = NULL;
  size_t num = 0;

  for (; settings[2 * num]; ++num) {
    assert_true(num < COUNT(keys));
    keys[num] = settings[2 * num];
    values[num] = settings[2 * num + 1];
  }
  ok(cohort_metric_create(kind, keys, values, num, &metric));
  return metric;
}

static cohort_error *try_metric(const char *kind, const char *key, const char *value) {
  cohort_metric *none = NULL;
  cohort_error *error = cohort_metric_create(kind, &key, &value, key ? 1 : 0, &none);

  assert_null(none);
  return error;
}

/* One update from one pair, which is freed. */
static cohort_error *try_pair(cohort_metric *metric, cohort_ndarray *label, cohort_ndarray *pred) {
  cohort_error *error = cohort_metric_update(metric, &label, 1, &pred, 1);

  cohort_ndarray_free(label);
  cohort_ndarray_free(pred);
  return error;
}

static void update(cohort_metric *metric, cohort_ndarray *label, cohort_ndarray *pred) {
  ok(try_pair(metric, label, pred));
}

static void near_at(double found, double expected, const char *file, int line) {
  if (isnan(expected) ? isnan(found) : fabs(found - expected) <= 2e-6 * (fabs(expected) > 1 ? fabs(expected) : 1))
    return;
  print_error("%s:%d: expected %.12g, found %.12g\n", file, line, expected, found);
  _fail(file, line);
}

/* Checks name, value since the last reset of any kind, and the number of instances behind it. */
#define shows(metric, name, value, num) shows_at((metric), 0, (name), (value), (num), __FILE__, __LINE__)
#define shows_free(metric, name, value, num) (shows(metric, name, value, num), cohort_metric_free(metric))
static void shows_at(const cohort_metric *metric, size_t index, const char *name, double value, double num,
                     const char *file, int line) {
  const char *found_name = NULL;
  double found = 0, found_num = -1;

  ok_at(cohort_metric_value(metric, index, 0, &found_name, &found), "cohort_metric_value", file, line);
  ok_at(cohort_metric_counters(metric, index, 0, NULL, &found_num), "cohort_metric_counters", file, line);
  assert_string_equal(found_name, name);
  near_at(found, value, file, line);
  near_at(found_num, num, file, line);
}

static double global_value(const cohort_metric *metric) {
  double value = 0;

  ok(cohort_metric_value(metric, 0, 1, NULL, &value));
  return value;
}

static size_t num_values(const cohort_metric *metric) {
  size_t num = 99;

  ok(cohort_metric_num_values(metric, &num));
  return num;
}

/* The example from MXNet's documentation: three rows of two classes, and their labels 0, 1, 1. */
static cohort_ndarray *probabilities(void) { return floats(SHAPE(3, 2), FLOATS(.3f, .7f, 0, 1, .4f, .6f)); }
static cohort_ndarray *classes(void) { return floats(SHAPE(3), FLOATS(0, 1, 1)); }

/* MET-07: the sum and the count behind a value, since the last reset and since the last global one; NaN before
 * anything. */
static void counters_start_again_locally_and_fully(void **state) {
  cohort_metric *metric = metric_with("acc", ATTRS("name", "hits"));
  double sum = -1, num = -1;

  (void)state;
  shows(metric, "hits", NAN, 0);
  update(metric, classes(), probabilities());
  shows(metric, "hits", 2. / 3, 3);
  update(metric, floats(SHAPE(1), FLOATS(1)), floats(SHAPE(1, 2), FLOATS(1, 0)));
  ok(cohort_metric_counters(metric, 0, 0, &sum, &num));
  assert_true(sum == 2 && num == 4);
  ok(cohort_metric_reset_local(metric));
  shows(metric, "hits", NAN, 0);
  assert_true(global_value(metric) == .5);
  update(metric, classes(), probabilities());
  shows(metric, "hits", 2. / 3, 3);
  ok(cohort_metric_counters(metric, 0, 1, &sum, &num));
  assert_true(sum == 4 && num == 7);
  ok(cohort_metric_reset(metric));
  shows(metric, "hits", NAN, 0);
  assert_true(isnan(global_value(metric)));
  cohort_metric_free(metric);
}

/* MET-08: all built-in metrics but the three that read no label need a prediction for each label. */
static void labels_and_predictions_are_as_many(void **state) {
  const char *const kinds[] = {"acc", "top_k_acc", "f1",   "mcc", "pcc",      "pearsonr",  "perplexity",
                               "mae", "mse",       "rmse", "ce",  "nll_loss", "confidence"};
  const char *const losses[] = {"loss", "torch", "caffe"};
  cohort_ndarray *label = classes(), *preds[2];
  size_t i;

  (void)state;
  preds[0] = preds[1] = probabilities();
  for (i = 0; i < COUNT(kinds); ++i) {
    const char *const none[] = {NULL}, *const top_k[] = {"top_k", "2", NULL},
                      *const buckets[] = {"num_classes", "2", "confidence_thresholds", ".5", NULL};
    cohort_metric *metric = metric_with(kinds[i], kinds[i][0] == 't'                ? top_k
                                                  : !strcmp(kinds[i], "confidence") ? buckets
                                                                                    : none);

    fails(cohort_metric_update(metric, &label, 1, preds, 2), COHORT_ERROR_INVALID_ARGUMENT, "found 1 and 2");
    fails(cohort_metric_update(metric, &label, 1, NULL, 0), COHORT_ERROR_INVALID_ARGUMENT, "found 1 and 0");
    cohort_metric_free(metric);
  }
  for (i = 0; i < COUNT(losses); ++i) {
    cohort_metric *metric = metric_with(losses[i], NO_ATTRS);

    ok(cohort_metric_update(metric, &label, 1, preds, 2));
    ok(cohort_metric_update(metric, NULL, 0, preds, 1));
    shows_free(metric, losses[i], .5, 18);
  }
  cohort_ndarray_free(label);
  cohort_ndarray_free(preds[0]);
}

/* MET-09: a composite updates each child, and has their names and values in order; children are read by index. */
static void a_composite_has_the_values_of_its_children(void **state) {
  const char *const kinds[] = {"composite", "CompositeEvalMetric"};
  size_t i, num = 0;

  (void)state;
  for (i = 0; i < COUNT(kinds); ++i) {
    cohort_metric *all = metric_with(kinds[i], NO_ATTRS), *f1 = metric_with("f1", NO_ATTRS),
                  *acc = metric_with("acc", NO_ATTRS), *child = NULL;

    ok(cohort_metric_add(all, f1));
    ok(cohort_metric_add(all, acc));
    update(all, classes(), probabilities());
    assert_int_equal(num_values(all), 2);
    shows_at(all, 0, "f1", .8, 1, __FILE__, __LINE__);
    shows_at(all, 1, "accuracy", 2. / 3, 3, __FILE__, __LINE__);
    shows(f1, "f1", .8, 1); /* the child is the caller's own metric */
    ok(cohort_metric_num_children(all, &num));
    assert_int_equal(num, 2);
    ok(cohort_metric_child(all, 1, &child));
    shows_free(child, "accuracy", 2. / 3, 3);
    child = NULL;
    fails(cohort_metric_child(all, 2, &child), COHORT_ERROR_INVALID_ARGUMENT, "2 children");
    assert_null(child);
    ok(cohort_metric_reset(all));
    shows(f1, "f1", NAN, 0);
    cohort_metric_free(all);
    cohort_metric_free(f1);
    cohort_metric_free(acc);
  }
}

/* MET-10: classes are compared as integers; a prediction of another shape is first reduced to its argmax along an
 * axis. */
static void accuracy_compares_classes(void **state) {
  cohort_metric *metric = metric_with("accuracy", NO_ATTRS);

  (void)state;
  update(metric, classes(), probabilities());
  shows(metric, "accuracy", 2. / 3, 3);
  ok(cohort_metric_reset(metric));
  update(metric, floats(SHAPE(2), FLOATS(0, 0)), floats(SHAPE(2, 2), FLOATS(.5f, .5f, .5f, .5f))); /* the first one on
                                                                                                    * ties */
  shows(metric, "accuracy", 1, 2);
  ok(cohort_metric_reset(metric));
  update(metric, floats(SHAPE(2, 2), FLOATS(0, 1, 2, 3)), floats(SHAPE(2, 2), FLOATS(0, 1.9f, 2.1f, 0)));
  shows(metric, "accuracy", .75, 4);
  fails(try_pair(metric, classes(), floats(SHAPE(2, 2), FLOATS(0, 0, 0, 0))), COHORT_ERROR_SHAPE, "(3,)");
  shows_free(metric, "accuracy", .75, 4);
  metric = metric_with("Acc", ATTRS("axis", "2"));
  update(metric, floats(SHAPE(1, 2), FLOATS(1, 0)), floats(SHAPE(1, 2, 2), FLOATS(0, 9, 5, 1)));
  shows_free(metric, "accuracy", 1, 2);
  metric = metric_with("acc", ATTRS("axis", "1"));
  update(metric, floats(SHAPE(1, 2), FLOATS(1, 0)), floats(SHAPE(1, 2, 2), FLOATS(0, 9, 5, 1)));
  shows_free(metric, "accuracy", 1, 2);
  metric = metric_with("acc", ATTRS("axis", "0"));
  update(metric, floats(SHAPE(2), FLOATS(1, 1)), floats(SHAPE(2, 2), FLOATS(0, 9, 5, 1)));
  shows_free(metric, "accuracy", .5, 2);
}

/* MET-11: a row counts if its label is among the k greatest predictions; k must be above 1, and is part of the name. */
static void top_k_looks_at_the_k_greatest(void **state) {
  const char *const kinds[] = {"top_k_accuracy", "top_k_acc", "TopKAccuracy"};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(kinds); ++i) {
    cohort_metric *metric = metric_with(kinds[i], ATTRS("top_k", "2"));

    update(metric, floats(SHAPE(3), FLOATS(2, 2, 3)),
           floats(SHAPE(3, 4), FLOATS(.1f, .2f, .3f, .4f, .4f, .3f, .2f, .1f, .1f, .2f, .3f, .4f)));
    shows(metric, "top_k_accuracy_2", 2. / 3, 3);
    fails(try_pair(metric, classes(), floats(SHAPE(3, 1, 2), FLOATS(0, 0, 0, 0, 0, 0))), COHORT_ERROR_SHAPE, "");
    cohort_metric_free(metric);
    fails(try_metric(kinds[i], NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT, "above 1");
    fails(try_metric(kinds[i], "top_k", "1"), COHORT_ERROR_INVALID_ARGUMENT, "above 1");
  }
}

/* DEF-28: a k beyond the number of classes counts as all of them; predictions of one axis count globally too. */
static void top_k_beyond_the_classes_is_all_of_them(void **state) {
  cohort_metric *metric = metric_with("top_k_acc", ATTRS("top_k", "9"));

  (void)state;
  update(metric, floats(SHAPE(2), FLOATS(1, 0)), floats(SHAPE(2, 2), FLOATS(1, 0, 0, 1)));
  shows_free(metric, "top_k_accuracy_9", 1, 2);
  metric = metric_with("top_k_acc", ATTRS("top_k", "2"));
  update(metric, floats(SHAPE(3), FLOATS(2, 1, 0)), floats(SHAPE(3), FLOATS(.9f, .5f, .1f)));
  shows(metric, "top_k_accuracy_2", 1, 3);
  assert_true(global_value(metric) == 1);
  cohort_metric_free(metric);
}

/* MET-12: binary decisions for class 1; macro averages over updates, micro over samples; a third class is refused. */
static void f1_and_mcc_tell_two_classes_apart(void **state) {
  const char *const words[] = {"macro", "micro"};
  const double f1s[] = {.4, 2. / 3}, mccs[] = {0, 0.166666666667}, nums[] = {2, 5};
  size_t i;

  (void)state;
  for (i = 0; i < 2; ++i) {
    cohort_metric *f1 = metric_with("f1", ATTRS("average", words[i])),
                  *mcc = metric_with("MCC", ATTRS("average", words[i]));

    update(f1, classes(), probabilities());
    shows(f1, "f1", .8, i ? 3 : 1);
    update(f1, floats(SHAPE(2), FLOATS(0, 1)), floats(SHAPE(2, 2), FLOATS(1, 0, 1, 0)));
    shows(f1, "f1", f1s[i], nums[i]);
    fails(try_pair(f1, floats(SHAPE(3), FLOATS(0, 1, 2)), probabilities()), COHORT_ERROR_INVALID_ARGUMENT,
          "two classes");
    shows_free(f1, "f1", f1s[i], nums[i]);
    update(mcc, classes(), probabilities()); /* always class 1: 0 */
    shows(mcc, "mcc", 0, i ? 3 : 1);
    update(mcc, floats(SHAPE(2), FLOATS(0, 1)), floats(SHAPE(2, 2), FLOATS(1, 0, 1, 0)));
    shows_free(mcc, "mcc", mccs[i], nums[i]);
  }
  fails(try_metric("f1", "average", "median"), COHORT_ERROR_INVALID_ARGUMENT, "median");
}

/* MET-12, DEF-28: a macro average is over updates, not over pairs; a local reset does not change the global value. */
static void f1_keeps_its_global_counts_over_a_local_reset(void **state) {
  const char *const kinds[] = {"f1", "mcc"}, *const words[] = {"macro", "micro"};
  size_t i;

  (void)state;
  for (i = 0; i < 4; ++i) {
    cohort_metric *metric = metric_with(kinds[i / 2], ATTRS("average", words[i % 2]));
    cohort_ndarray *labels[2], *preds[2];
    double once = 0, num = 0;

    labels[0] = floats(SHAPE(4), FLOATS(0, 1, 1, 0));
    labels[1] = floats(SHAPE(2), FLOATS(1, 1));
    preds[0] = floats(SHAPE(4, 2), FLOATS(1, 0, 0, 1, 0, 1, 0, 1));
    preds[1] = floats(SHAPE(2, 2), FLOATS(1, 0, 0, 1));
    ok(cohort_metric_update(metric, labels, 2, preds, 2));
    ok(cohort_metric_value(metric, 0, 0, NULL, &once));
    near_at(once, i / 2 ? 1. / 4 : .75, __FILE__, __LINE__); /* tp 3, fp 1, fn 1, tn 1 */
    shows(metric, kinds[i / 2], once, i % 2 ? 6 : 1);
    ok(cohort_metric_reset_local(metric));
    shows(metric, kinds[i / 2], NAN, 0);
    near_at(global_value(metric), once, __FILE__, __LINE__);
    ok(cohort_metric_update(metric, labels, 2, preds, 2));
    near_at(global_value(metric), once, __FILE__, __LINE__);
    ok(cohort_metric_counters(metric, 0, 1, NULL, &num));
    near_at(num, i % 2 ? 12 : 2, __FILE__, __LINE__);
    for (num = 0; num < 2; ++num) {
      cohort_ndarray_free(labels[(size_t)num]);
      cohort_ndarray_free(preds[(size_t)num]);
    }
    cohort_metric_free(metric);
  }
}

/* MET-13: the exponential of the mean over all samples; ignored labels count nowhere; the class axis can be chosen. */
static void perplexity_is_the_exponential_of_one_mean(void **state) {
  cohort_metric *metric = metric_with("Perplexity", ATTRS("ignore_label", "None"));
  cohort_ndarray *cube;

  (void)state;
  update(metric, classes(), probabilities());
  shows(metric, "perplexity", 1.77109762852, 3);
  update(metric, floats(SHAPE(1), FLOATS(1)), floats(SHAPE(1, 2), FLOATS(.75f, .25f)));
  shows(metric, "perplexity", 2.17118516, 4); /* (.3 * 1 * .6 * .25) ** (-1/4): not the mean of two exponentials */
  ok(cohort_metric_reset(metric));
  update(metric, floats(SHAPE(1), FLOATS(0)), floats(SHAPE(1, 2), FLOATS(0, 1)));
  shows_free(metric, "perplexity", 1e10, 1);
  metric = metric_with("perplexity", ATTRS("ignore_label", "1"));
  update(metric, classes(), probabilities());
  shows_free(metric, "perplexity", 3.33333325, 1);
  metric = metric_with("perplexity", NO_ATTRS);
  cube = floats(SHAPE(1, 3, 2), FLOATS(.3f, .7f, 0, 1, .4f, .6f));
  update(metric, floats(SHAPE(1, 3), FLOATS(0, 1, 1)), cube);
  shows(metric, "perplexity", 1.77109762852, 3);
  fails(try_pair(metric, floats(SHAPE(2), FLOATS(0, 1)), probabilities()), COHORT_ERROR_SHAPE, "(2,)");
  cohort_metric_free(metric);
  metric = metric_with("perplexity", ATTRS("axis", "1"));
  update(metric, classes(), floats(SHAPE(1, 2, 3), FLOATS(.3f, 0, .4f, .7f, 1, .6f)));
  shows_free(metric, "perplexity", 1.77109762852, 3);
}

/* MET-14: the mean over the elements of each pair, for rmse its root; then the mean of those; no broadcasting. */
static void errors_are_means_of_means(void **state) {
  const char *const kinds[] = {"mae", "mse", "rmse"};
  const double first[] = {.5, .375, .612372435696},
               both[] = {(.5 + 2) / 2, (.375 + 5) / 2, (.612372435696 + 2.2360679775) / 2};
  size_t i;

  (void)state;
  for (i = 0; i < 3; ++i) {
    cohort_metric *metric = metric_with(kinds[i], NO_ATTRS);

    update(metric, floats(SHAPE(4), FLOATS(3, -.5f, 2, 7)), floats(SHAPE(4, 1), FLOATS(2.5f, 0, 2, 8)));
    shows(metric, kinds[i], first[i], 1);
    update(metric, floats(SHAPE(1, 2), FLOATS(0, 0)), floats(SHAPE(1, 2), FLOATS(1, -3)));
    shows(metric, kinds[i], both[i], 2);
    fails(try_pair(metric, counted(SHAPE(4, 1), 1), counted(SHAPE(4, 2), 1)), COHORT_ERROR_SHAPE, "(4, 2)");
    shows_free(metric, kinds[i], both[i], 2);
  }
}

/* MET-15: the mean of -log(p + eps) over rows. */
static void cross_entropy_is_a_mean_over_rows(void **state) {
  const char *const kinds[] = {"cross-entropy", "ce", "CrossEntropy", "nll-loss", "nll_loss", "NegativeLogLikelihood"};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(kinds); ++i) {
    const char *const name = i < 3 ? "cross-entropy" : "nll-loss";
    cohort_metric *metric = metric_with(kinds[i], NO_ATTRS);

    update(metric, classes(), probabilities());
    shows(metric, name, .57159948, 3);
    fails(try_pair(metric, floats(SHAPE(3), FLOATS(0, 1, 2)), probabilities()), COHORT_ERROR_INVALID_ARGUMENT,
          "label 2");
    fails(try_pair(metric, floats(SHAPE(2), FLOATS(0, 1)), probabilities()), COHORT_ERROR_SHAPE, "(2,)");
    shows_free(metric, name, .57159948, 3);
    metric = metric_with(kinds[i], ATTRS("eps", "0.5"));
    update(metric, floats(SHAPE(1), FLOATS(0)), floats(SHAPE(1, 2), FLOATS(0, 1)));
    shows_free(metric, name, 0.69314718, 1);
  }
}

/* MET-16, DEF-70: the correlation of all elements so far counts globally, and a local reset starts it anew. */
static void a_correlation_of_all_elements_is_reset_locally(void **state) {
  cohort_metric *metric = metric_with("pearsonr", ATTRS("average", "micro"));

  (void)state;
  update(metric, floats(SHAPE(3), FLOATS(1, 2, 3)), floats(SHAPE(3), FLOATS(1, 3, 2)));
  shows(metric, "pearsonr", .5, 3);
  near_at(global_value(metric), .5, __FILE__, __LINE__);
  ok(cohort_metric_reset_local(metric));
  update(metric, floats(SHAPE(1), FLOATS(10)), floats(SHAPE(1), FLOATS(10)));
  near_at(global_value(metric), 49. / 50, __FILE__, __LINE__);
  update(metric, floats(SHAPE(1), FLOATS(9)), floats(SHAPE(1), FLOATS(8)));
  shows_free(metric, "pearsonr", 1, 2);
}

/* MET-16: pearsonr correlates each pair, or all elements; pcc is mcc for any number of classes; NaN if degenerate. */
static void correlations_of_values_and_of_classes(void **state) {
  const char *const kinds[] = {"pearsonr", "pearson-correlation", "PearsonCorrelation"};
  cohort_metric *metric;
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(kinds); ++i) {
    metric = metric_with(kinds[i], NO_ATTRS);
    update(metric, floats(SHAPE(3, 2), FLOATS(1, 0, 0, 1, 0, 1)), probabilities());
    shows(metric, "pearsonr", 0.421637061887, 1);
    update(metric, floats(SHAPE(2), FLOATS(1, 2)), floats(SHAPE(2), FLOATS(2, 1)));
    shows_free(metric, "pearsonr", (0.421637061887 - 1) / 2, 2);
  }
  metric = metric_with("pearsonr", ATTRS("average", "micro"));
  fails(try_pair(metric, floats(SHAPE(2), FLOATS(1, 2)), floats(SHAPE(2, 1), FLOATS(1, 2))), COHORT_ERROR_SHAPE,
        "(2, 1)");
  update(metric, floats(SHAPE(3), FLOATS(1, 2, 3)), floats(SHAPE(3), FLOATS(1, 3, 2)));
  update(metric, floats(SHAPE(1), FLOATS(10)), floats(SHAPE(1), FLOATS(10)));
  shows_free(metric, "pearsonr", 49. / 50, 4);
  metric = metric_with("pearsonr", NO_ATTRS);
  update(metric, floats(SHAPE(2), FLOATS(1, 1)), floats(SHAPE(2), FLOATS(2, 1)));
  shows_free(metric, "pearsonr", NAN, 1);

  metric = metric_with("pcc", NO_ATTRS);
  update(metric, floats(SHAPE(2), FLOATS(1, 1)), floats(SHAPE(2, 2), FLOATS(0, 1, 0, 1)));
  shows(metric, "pcc", NAN, 1);
  ok(cohort_metric_reset(metric));
  update(metric, floats(SHAPE(4), FLOATS(0, 1, 2, 2)), floats(SHAPE(4), FLOATS(0, 1, 2, 1)));
  shows(metric, "pcc", 0.7, 1); /* n 4, diagonal 3, rows 1 2 1, columns 1 1 2: (12 - 5) / sqrt(10 * 10) */
  update(metric, floats(SHAPE(2), FLOATS(0, 1)), floats(SHAPE(2, 2), FLOATS(1, 0, 0, 1)));
  shows_free(metric, "pcc", 0.783349451801, 2); /* n 6, diagonal 5, rows 2 3 1, columns 2 2 2: 18 / sqrt(22 * 24) */
}

/* MET-17: the mean of the predictions, under the name it was created with. */
static void losses_are_averaged(void **state) {
  const char *const kinds[] = {"loss", "torch", "caffe"};
  size_t i;

  (void)state;
  for (i = 0; i < 3; ++i) {
    cohort_metric *metric = metric_with(kinds[i], NO_ATTRS);

    update(metric, classes(), floats(SHAPE(2, 2), FLOATS(.25f, .5f, .75f, .5f)));
    shows_free(metric, kinds[i], .5, 4);
  }
}

/* The values that a custom metric returns: a sum, and a count if that is not NULL. */
typedef struct Added {
  double sum;
  const double *num;
  size_t num_labels, num_preds;
} Added;

static int32_t add(cohort_ndarray *const *labels, size_t num_labels, cohort_ndarray *const *preds, size_t num_preds,
                   double *out_sum, double *out_num, void *user_data) {
  Added *added = user_data;

  (void)labels;
  (void)preds;
  added->num_labels = num_labels;
  added->num_preds = num_preds;
  *out_sum = added->sum;
  if (added->num) *out_num = *added->num;
  return added->sum < 0;
}

/* MET-07, MET-18: a callback gets both lists and returns a value, or a sum and a count. */
static void a_callback_gives_a_value_or_a_sum_and_a_number(void **state) {
  const double two = 2;
  Added added = {2, NULL, 0, 0};
  cohort_ndarray *label = classes(), *preds[2];
  cohort_metric *metric = NULL;

  (void)state;
  preds[0] = preds[1] = probabilities();
  ok(cohort_metric_create_custom("mine", add, &added, 0, &metric));
  ok(cohort_metric_update(metric, &label, 1, preds, 1));
  shows(metric, "mine", 2, 1);
  added.sum = 3;
  ok(cohort_metric_update(metric, &label, 1, preds, 1));
  shows(metric, "mine", 2.5, 2);
  added.sum = 8;
  added.num = &two;
  ok(cohort_metric_update(metric, &label, 1, preds, 1));
  shows(metric, "mine", 13. / 4, 4);
  added.sum = -1;
  fails(cohort_metric_update(metric, &label, 1, preds, 1), COHORT_ERROR_EXECUTION, "mine");
  added.sum = 1;
  fails(cohort_metric_update(metric, &label, 1, preds, 2), COHORT_ERROR_INVALID_ARGUMENT, "found 1 and 2");
  shows_free(metric, "mine", 13. / 4, 4);

  ok(cohort_metric_create_custom("extra", add, &added, 1, &metric));
  ok(cohort_metric_update(metric, &label, 1, preds, 2));
  assert_int_equal(added.num_labels, 1);
  assert_int_equal(added.num_preds, 2);
  cohort_metric_free(metric);
  cohort_ndarray_free(label);
  cohort_ndarray_free(preds[0]);
}

/* MET-19: for each class and threshold, the fraction of the samples with a higher score that belong to the class. */
static void confidence_is_accuracy_by_threshold(void **state) {
  const char *const names[] = {"P(v=0|Conf>0.5)", "P(v=0|Conf>0.8)", "P(v=1|Conf>0.5)", "P(v=1|Conf>0.8)"};
  const double values[] = {.5, NAN, 2. / 3, 1}, nums[] = {2, 0, 3, 1};
  cohort_metric *metric = metric_with("confidence", ATTRS("num_classes", "2", "confidence_thresholds", "(0.5, 0.8)"));
  cohort_ndarray *labels[2], *preds[2];
  size_t i;

  (void)state;
  assert_int_equal(num_values(metric), 4);
  for (i = 0; i < 4; ++i) shows_at(metric, i, names[i], NAN, 0, __FILE__, __LINE__);
  labels[0] = classes();
  preds[0] = probabilities(); /* class 1: .7 of label 0, 1 of label 1, .6 of label 1 */
  labels[1] = floats(SHAPE(2), FLOATS(0, 1));
  preds[1] = floats(SHAPE(2, 2), FLOATS(.75f, .25f, .75f, .25f));
  ok(cohort_metric_update(metric, labels, 2, preds, 2));
  for (i = 0; i < 4; ++i) shows_at(metric, i, names[i], values[i], nums[i], __FILE__, __LINE__);
  fails(cohort_metric_value(metric, 4, 0, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT, "4 values");
  fails(try_pair(metric, floats(SHAPE(1), FLOATS(2)), floats(SHAPE(1, 2), FLOATS(1, 0))), COHORT_ERROR_INVALID_ARGUMENT,
        "label 2");
  fails(try_pair(metric, floats(SHAPE(1), FLOATS(0)), floats(SHAPE(1, 3), FLOATS(1, 0, 0))), COHORT_ERROR_SHAPE,
        "(1, 3)");
  for (i = 0; i < 4; ++i) shows_at(metric, i, names[i], values[i], nums[i], __FILE__, __LINE__);
  ok(cohort_metric_reset_local(metric));
  shows_at(metric, 3, names[3], NAN, 0, __FILE__, __LINE__);
  assert_true(global_value(metric) == .5);
  for (i = 0; i < 2; ++i) {
    cohort_ndarray_free(labels[i]);
    cohort_ndarray_free(preds[i]);
  }
  cohort_metric_free(metric);
  fails(try_metric("confidence", "confidence_thresholds", "(0.5,)"), COHORT_ERROR_INVALID_ARGUMENT, "num_classes");
  fails(try_metric("confidence", "num_classes", "2"), COHORT_ERROR_INVALID_ARGUMENT, "confidence_thresholds");
}

/* MET-19: an unknown metric name, and a setting that the metric does not have. */
static void unknown_metrics_and_settings_are_named(void **state) {
  (void)state;
  fails(try_metric("no_such_metric", NULL, NULL), COHORT_ERROR_NAME, "'no_such_metric'");
  fails(try_metric("mse", "axis", "1"), COHORT_ERROR_NAME, "'axis'");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(counters_start_again_locally_and_fully),
      TEST(labels_and_predictions_are_as_many),
      TEST(a_composite_has_the_values_of_its_children),
      TEST(accuracy_compares_classes),
      TEST(top_k_looks_at_the_k_greatest),
      TEST(top_k_beyond_the_classes_is_all_of_them),
      TEST(f1_and_mcc_tell_two_classes_apart),
      TEST(f1_keeps_its_global_counts_over_a_local_reset),
      TEST(perplexity_is_the_exponential_of_one_mean),
      TEST(errors_are_means_of_means),
      TEST(cross_entropy_is_a_mean_over_rows),
      TEST(a_correlation_of_all_elements_is_reset_locally),
      TEST(correlations_of_values_and_of_classes),
      TEST(losses_are_averaged),
      TEST(a_callback_gives_a_value_or_a_sum_and_a_number),
      TEST(confidence_is_accuracy_by_threshold),
      TEST(unknown_metrics_and_settings_are_named),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
