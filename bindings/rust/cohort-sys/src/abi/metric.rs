// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::{c_char, c_void};

/// Computes a metric of the caller for one update.
///
///
/// Runs inside cohort_metric_update() and cohort_group_update_metric(). It may use the arrays, and must not use the
/// metric or the group.
pub type cohort_metric_fn = Option<
    unsafe extern "C" fn(
        labels: *const *mut cohort_ndarray,
        num_labels: usize,
        preds: *const *mut cohort_ndarray,
        num_preds: usize,
        out_sum: *mut f64,
        out_num: *mut f64,
        user_data: *mut c_void,
    ) -> i32,
>;

extern "C" {
    /// Appends a metric to a composite one, which updates all its children. Not composite: COHORT_ERROR_STATE.
    pub fn cohort_metric_add(
        metric: *mut cohort_metric,
        child: *mut cohort_metric,
    ) -> *mut cohort_error;
    /// A handle on a child.
    pub fn cohort_metric_child(
        metric: *const cohort_metric,
        index: usize,
        out_metric: *mut *mut cohort_metric,
    ) -> *mut cohort_error;
    /// The sum and the number of instances behind a value.
    ///
    /// - `out_sum`: may be NULL.
    /// - `out_num`: may be NULL.
    pub fn cohort_metric_counters(
        metric: *const cohort_metric,
        index: usize,
        global: cohort_bool,
        out_sum: *mut f64,
        out_num: *mut f64,
    ) -> *mut cohort_error;
    /// Makes a metric.
    ///
    ///   "accuracy" ("acc")                 axis (1)
    ///   "top_k_accuracy" ("top_k_acc", "topkaccuracy")  top_k, above 1; its name gets the number appended
    ///   "f1", "mcc"                        average ("macro" or "micro"); two classes
    ///   "pcc"
    ///   "pearsonr" ("pearson-correlation", "pearsoncorrelation")  average ("macro" or "micro")
    ///   "perplexity"                       ignore_label (none), axis (-1)
    ///   "mae", "mse", "rmse"
    ///   "cross-entropy" ("cross_entropy", "crossentropy", "ce")             eps (1e-12)
    ///   "nll-loss" ("nll_loss", "negativeloglikelihood")                    eps (1e-12)
    ///   "loss" ("torch", "caffe")          the mean of the predictions; labels are not read
    ///   "confidence"                       num_classes, confidence_thresholds ("(0.5, 0.9)"). A value for each class c and,
    ///                                      within it, each threshold t, named "P(v=c|Conf\>t)": of the samples whose
    ///                                      prediction of c is above t, the share that is labelled c
    ///   "composite" ("compositeevalmetric")  see cohort_metric_add()
    ///
    /// - `kind`: One of these, in any case of letters.
    /// - `keys`: Settings as text, in MXNet's names; all take "name", the name of the metric.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME (no such metric or setting), COHORT_ERROR_INVALID_ARGUMENT (a value).
    pub fn cohort_metric_create(
        kind: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        out_metric: *mut *mut cohort_metric,
    ) -> *mut cohort_error;
    /// Makes a metric from a callback.
    ///
    /// - `name`: Its name.
    /// - `user_data`: may be NULL.
    /// - `allow_extra_outputs`: 1: the numbers of labels and predictions may differ.
    pub fn cohort_metric_create_custom(
        name: *const c_char,
        callback: cohort_metric_fn,
        user_data: *mut c_void,
        allow_extra_outputs: cohort_bool,
        out_metric: *mut *mut cohort_metric,
    ) -> *mut cohort_error;
    /// Frees a handle; NULL does nothing.
    ///
    /// - `metric`: may be NULL.
    pub fn cohort_metric_free(
        metric: *mut cohort_metric,
    );
    /// How many children a composite metric has; 0 for others.
    pub fn cohort_metric_num_children(
        metric: *const cohort_metric,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// How many values the metric has: 1, more for "confidence", or those of all children together.
    pub fn cohort_metric_num_values(
        metric: *const cohort_metric,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// Resets everything, global values too.
    pub fn cohort_metric_reset(
        metric: *mut cohort_metric,
    ) -> *mut cohort_error;
    /// Resets everything except global values.
    pub fn cohort_metric_reset_local(
        metric: *mut cohort_metric,
    ) -> *mut cohort_error;
    /// Chooses which labels and outputs the metric takes, by name and in this order, if they come with names.
    ///
    /// - `label_names`: may be NULL. NULL with 0: all.
    /// - `output_names`: may be NULL. NULL with 0: all.
    pub fn cohort_metric_set_names(
        metric: *mut cohort_metric,
        label_names: *const *const c_char,
        num_label_names: usize,
        output_names: *const *const c_char,
        num_output_names: usize,
    ) -> *mut cohort_error;
    /// Adds labels and predictions, pair by pair. Waits for them.
    ///
    /// Returns: NULL, or, with nothing added,
    ///   COHORT_ERROR_INVALID_ARGUMENT  the numbers of labels and predictions differ; more than two classes in a metric for
    ///                                  two
    ///   COHORT_ERROR_SHAPE             a pair that does not fit
    ///   COHORT_ERROR_EXECUTION         work that an array waits for failed, or a callback did
    pub fn cohort_metric_update(
        metric: *mut cohort_metric,
        labels: *const *mut cohort_ndarray,
        num_labels: usize,
        preds: *const *mut cohort_ndarray,
        num_preds: usize,
    ) -> *mut cohort_error;
    /// As cohort_metric_update(), with names: see cohort_metric_set_names(). A missing name: COHORT_ERROR_NAME; an entry
    /// without an array: COHORT_ERROR_INVALID_ARGUMENT.
    pub fn cohort_metric_update_named(
        metric: *mut cohort_metric,
        labels: *const cohort_arrays,
        preds: *const cohort_arrays,
    ) -> *mut cohort_error;
    /// A value and its name.
    ///
    /// - `global`: 1: since the last full reset; 0: since the last reset of any kind.
    /// - `out_name`: may be NULL.
    /// - `out_value`: may be NULL. NaN if nothing was counted.
    pub fn cohort_metric_value(
        metric: *const cohort_metric,
        index: usize,
        global: cohort_bool,
        out_name: *mut *const c_char,
        out_value: *mut f64,
    ) -> *mut cohort_error;
}
