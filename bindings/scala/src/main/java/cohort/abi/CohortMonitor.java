// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The functions of cohort/monitor.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortMonitor {
    private CohortMonitor() {
    }

    static {
        Loader.register(CohortMonitor.class);
    }

    /**
     * Makes a monitor.
     * Returns: NULL, or COHORT_ERROR_INVALID_ARGUMENT (interval, a constant, an invalid or too large pattern, both filter
     *   and pattern).
     * @param interval Batches, at least 1: of each `interval` batches the first is reported.
     * @param options may be NULL. NULL: all defaults.
     */
    public static native long cohort_monitor_create(long interval, Structs.MonitorOptions options, long[] out_monitor);

    /**
     * Reads an entry of the latest cohort_monitor_toc().
     * @param out_step may be NULL. The batch, counted from 1.
     * @param out_name may be NULL. As the callback of cohort_executor_set_monitor() is given it, or the name of an argument or auxiliary state.
     * @param out_text may be NULL. Each value followed by a tab: a value of one element as a number, others as elements in brackets. If it is wanted, the call waits for the values.
     */
    public static native long cohort_monitor_entry(long monitor, long index, long[] out_step, long[] out_name, long[] out_text);

    /**
     * Frees a monitor; NULL does nothing. Objects that it was installed on continue without it.
     * @param monitor may be NULL.
     */
    public static native void cohort_monitor_free(long monitor);

    /**
     * Watches an executor, which the monitor keeps alive. A monitor can watch several; entries do not say which.
     *
     * An executor has one callback: this replaces the one of cohort_executor_set_monitor() and that of a monitor installed
     * before, which then reports the executor's arguments and auxiliary states only.
     */
    public static native long cohort_monitor_install_on_executor(long monitor, long executor);

    /**
     * The same for every device of a group, device 0 first. It follows the group when that is bound anew or reshaped.
     */
    public static native long cohort_monitor_install_on_group(long monitor, long group);

    /**
     * The same for the main group of a manager.
     * Returns: NULL, or COHORT_ERROR_UNSUPPORTED for a manager with bucket symbols.
     */
    public static native long cohort_monitor_install_on_manager(long monitor, long manager);

    /**
     * COHORT_MONITOR_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
     */
    public static native void cohort_monitor_options_init(Structs.MonitorOptions options, long struct_size);

    /** How many batches were begun. */
    public static native long cohort_monitor_step(long monitor, long[] out_step);

    /**
     * Begins a batch. If it is on the interval, waits for the work queued so far, and reporting starts.
     * Returns: NULL, or COHORT_ERROR_EXECUTION if queued work failed; the batch is not begun then.
     */
    public static native long cohort_monitor_tic(long monitor);

    /**
     * Ends a batch, and waits for the executors. If the batch is on the interval there are entries, which can be read by
     * index until the next successful call: first the arrays computed since cohort_monitor_tic(), in the order of
     * execution, device after device; then the arguments and auxiliary states, but not the gradients, of each executor, in
     * the order of installation.
     * Returns: NULL, or, with the batch not ended and the entries as before, COHORT_ERROR_EXECUTION (queued work or the
     *   statistic failed), COHORT_ERROR_INVALID_ARGUMENT (the statistic gave no array).
     * @param out_num_entries How many; 0 if the batch is not on the interval, or no cohort_monitor_tic() went before.
     */
    public static native long cohort_monitor_toc(long monitor, long[] out_num_entries);

    /** The values of an entry: what the statistic gave, in its order, without names. */
    public static native long cohort_monitor_values(long monitor, long index, long[] out_values);
}
