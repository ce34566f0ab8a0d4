// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import com.sun.jna.Pointer;

/** The functions of cohort/metric.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortMetric {
    private CohortMetric() {
    }

    static {
        Loader.register(CohortMetric.class);
    }

    /**
     * Appends a metric to a composite one, which updates all its children. Not composite: COHORT_ERROR_STATE.
     */
    public static native long cohort_metric_add(long metric, long child);

    /** A handle on a child. */
    public static native long cohort_metric_child(long metric, long index, long[] out_metric);

    /**
     * The sum and the number of instances behind a value.
     * @param out_sum may be NULL.
     * @param out_num may be NULL.
     */
    public static native long cohort_metric_counters(long metric, long index, int global, double[] out_sum, double[] out_num);

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
     *                                      within it, each threshold t, named "P(v=c|Conf&gt;t)": of the samples whose
     *                                      prediction of c is above t, the share that is labelled c
     *   "composite" ("compositeevalmetric")  see cohort_metric_add()
     * Returns: NULL, or COHORT_ERROR_NAME (no such metric or setting), COHORT_ERROR_INVALID_ARGUMENT (a value).
     * @param kind One of these, in any case of letters.
     * @param keys Settings as text, in MXNet's names; all take "name", the name of the metric.
     */
    public static native long cohort_metric_create(String kind, Pointer keys, Pointer values, long num_attrs, long[] out_metric);

    /**
     * Makes a metric from a callback.
     * @param name Its name.
     * @param user_data may be NULL.
     * @param allow_extra_outputs 1: the numbers of labels and predictions may differ.
     */
    public static native long cohort_metric_create_custom(String name, Callbacks.MetricFn callback, long user_data, int allow_extra_outputs, long[] out_metric);

    /**
     * Frees a handle; NULL does nothing.
     * @param metric may be NULL.
     */
    public static native void cohort_metric_free(long metric);

    /** How many children a composite metric has; 0 for others. */
    public static native long cohort_metric_num_children(long metric, long[] out_num);

    /** How many values the metric has: 1, more for "confidence", or those of all children together. */
    public static native long cohort_metric_num_values(long metric, long[] out_num);

    /** Resets everything, global values too. */
    public static native long cohort_metric_reset(long metric);

    /** Resets everything except global values. */
    public static native long cohort_metric_reset_local(long metric);

    /**
     * Chooses which labels and outputs the metric takes, by name and in this order, if they come with names.
     * @param label_names may be NULL. NULL with 0: all.
     * @param output_names may be NULL. NULL with 0: all.
     */
    public static native long cohort_metric_set_names(long metric, Pointer label_names, long num_label_names, Pointer output_names, long num_output_names);

    /**
     * Adds labels and predictions, pair by pair. Waits for them.
     * Returns: NULL, or, with nothing added,
     *   COHORT_ERROR_INVALID_ARGUMENT  the numbers of labels and predictions differ; more than two classes in a metric for
     *                                  two
     *   COHORT_ERROR_SHAPE             a pair that does not fit
     *   COHORT_ERROR_EXECUTION         work that an array waits for failed, or a callback did
     */
    public static native long cohort_metric_update(long metric, long[] labels, long num_labels, long[] preds, long num_preds);

    /**
     * As cohort_metric_update(), with names: see cohort_metric_set_names(). A missing name: COHORT_ERROR_NAME; an entry
     * without an array: COHORT_ERROR_INVALID_ARGUMENT.
     */
    public static native long cohort_metric_update_named(long metric, long labels, long preds);

    /**
     * A value and its name.
     * @param global 1: since the last full reset; 0: since the last reset of any kind.
     * @param out_name may be NULL.
     * @param out_value may be NULL. NaN if nothing was counted.
     */
    public static native long cohort_metric_value(long metric, long index, int global, long[] out_name, double[] out_value);
}
