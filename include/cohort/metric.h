/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file metric.h
 * Metrics: figures accumulated from labels and predictions, since the last reset, and (global) since the last full
 * reset. Several threads may update, reset and read one metric, through whatever handles: each update counts. Children
 * are added and names are set by one thread.
 */
#ifndef COHORT_METRIC_H
#define COHORT_METRIC_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/**
 * Makes a metric.
 *
 *   "accuracy" ("acc")                 axis (1)
 *   "top_k_accuracy" ("top_k_acc", "topkaccuracy")  top_k, above 1; its name gets the number appended
 *   "f1", "mcc"                        average ("macro" or "micro"); two classes
 *   "pcc"
 *   "pearsonr" ("pearson-correlation", "pearsoncorrelation")  average ("macro" or "micro")
 *   "perplexity"                       ignore_label (none), axis (-1)
 *   "mae", "mse", "rmse"
 *   "cross-entropy" ("cross_entropy", "crossentropy", "ce")             eps (1e-12)
 *   "nll-loss" ("nll_loss", "negativeloglikelihood")                    eps (1e-12)
 *   "loss" ("torch", "caffe")          the mean of the predictions; labels are not read
 *   "confidence"                       num_classes, confidence_thresholds ("(0.5, 0.9)"). A value for each class c and,
 *                                      within it, each threshold t, named "P(v=c|Conf>t)": of the samples whose
 *                                      prediction of c is above t, the share that is labelled c
 *   "composite" ("compositeevalmetric")  see cohort_metric_add()
 *
 * @param kind  One of these, in any case of letters.
 * @param keys  Settings as text, in MXNet's names; all take "name", the name of the metric.
 * @return NULL, or COHORT_ERROR_NAME (no such metric or setting), COHORT_ERROR_INVALID_ARGUMENT (a value).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_create(const char *kind, const char *const *keys,
                                                                const char *const *values, size_t num_attrs,
                                                                cohort_metric **out_metric);

/**
 * Computes a metric of the caller for one update.
 *
 * @param labels     num_labels arrays, lent for the time of the call; not to be freed.
 * @param preds      num_preds arrays likewise.
 * @param out_sum    What to add to the sum.
 * @param out_num    What to add to the number of instances, 1 unless it is set; the value is sum / number.
 * @param user_data  As given with the callback.
 * @return 0, or anything else to fail the update (COHORT_ERROR_EXECUTION); nothing is added then.
 *
 * Runs inside cohort_metric_update() and cohort_group_update_metric(). It may use the arrays, and must not use the
 * metric or the group.
 */
typedef int32_t (*cohort_metric_fn)(cohort_ndarray *const *labels, size_t num_labels, cohort_ndarray *const *preds,
                                    size_t num_preds, double *out_sum, double *out_num, void *user_data);

/**
 * Makes a metric from a callback.
 *
 * @param name                 Its name.
 * @param allow_extra_outputs  1: the numbers of labels and predictions may differ.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_create_custom(const char *name, cohort_metric_fn callback,
                                                                       void *user_data, cohort_bool allow_extra_outputs,
                                                                       cohort_metric **out_metric);

/** Frees a handle; NULL does nothing. */
COHORT_API void cohort_metric_free(cohort_metric *metric);

/** Appends a metric to a composite one, which updates all its children. Not composite: COHORT_ERROR_STATE. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_add(cohort_metric *metric, cohort_metric *child);

/** How many children a composite metric has; 0 for others. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_num_children(const cohort_metric *metric, size_t *out_num);

/** A handle on a child. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_child(const cohort_metric *metric, size_t index,
                                                               cohort_metric **out_metric);

/**
 * Chooses which labels and outputs the metric takes, by name and in this order, if they come with names.
 *
 * @param label_names   @nullable NULL with 0: all.
 * @param output_names  @nullable NULL with 0: all.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_set_names(cohort_metric *metric,
                                                                   const char *const *label_names,
                                                                   size_t num_label_names,
                                                                   const char *const *output_names,
                                                                   size_t num_output_names);

/**
 * Adds labels and predictions, pair by pair. Waits for them.
 *
 * @return NULL, or, with nothing added,
 *   COHORT_ERROR_INVALID_ARGUMENT  the numbers of labels and predictions differ; more than two classes in a metric for
 *                                  two
 *   COHORT_ERROR_SHAPE             a pair that does not fit
 *   COHORT_ERROR_EXECUTION         work that an array waits for failed, or a callback did
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_update(cohort_metric *metric, cohort_ndarray *const *labels,
                                                                size_t num_labels, cohort_ndarray *const *preds,
                                                                size_t num_preds);

/**
 * @as cohort_metric_update(), with names: see cohort_metric_set_names(). A missing name: COHORT_ERROR_NAME; an entry
 * without an array: COHORT_ERROR_INVALID_ARGUMENT.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_update_named(cohort_metric *metric,
                                                                      const cohort_arrays *labels,
                                                                      const cohort_arrays *preds);

/** Resets everything, global values too. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_reset(cohort_metric *metric);

/** Resets everything except global values. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_reset_local(cohort_metric *metric);

/** How many values the metric has: 1, more for "confidence", or those of all children together. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_num_values(const cohort_metric *metric, size_t *out_num);

/**
 * A value and its name.
 *
 * @param out_name   @nullable
 * @param global     1: since the last full reset; 0: since the last reset of any kind.
 * @param out_value  @nullable NaN if nothing was counted.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_value(const cohort_metric *metric, size_t index,
                                                               cohort_bool global, const char **out_name,
                                                               double *out_value);

/**
 * The sum and the number of instances behind a value.
 *
 * @param out_sum, out_num  @nullable
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_metric_counters(const cohort_metric *metric, size_t index,
                                                                  cohort_bool global, double *out_sum, double *out_num);

COHORT_END_DECLS

#endif /* COHORT_METRIC_H */
