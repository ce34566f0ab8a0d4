// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The functions of cohort/trace.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortTrace {
    private CohortTrace() {
    }

    static {
        Loader.register(CohortTrace.class);
    }

    /**
     * Begins a span of the host's own, shown on a row of that name beside those of queues: "epoch 3" on row "training".
     * Rows belong to no thread; spans of one row nest. Spans may be begun and ended whether or not the trace is running, so
     * that a host need not know when it is started and stopped: each part of a span in which the trace runs is recorded as
     * a span of its own. Marks and counters are noted only while it runs. Several threads may make these calls at once.
     * Returns: NULL, or COHORT_ERROR_STATE: 1024 spans of the row are open, or there are open spans on 1024 rows; or
     *   COHORT_ERROR_INVALID_ARGUMENT: the trace is running and has 1024 rows of other names. All counters together count
     *   as one row.
     */
    public static native long cohort_trace_begin(long trace, String row, String name);

    /**
     * Removes events and totals; the trace may be running. Open spans stay open, and are shown from here on.
     */
    public static native long cohort_trace_clear(long trace);

    /**
     * Notes the value of a counter, which a viewer draws as a curve. COHORT_ERROR_INVALID_ARGUMENT: not finite.
     */
    public static native long cohort_trace_counter(long trace, String name, double value);

    /**
     * Makes a trace, which does not run yet.
     * Returns: NULL, or COHORT_ERROR_INVALID_ARGUMENT: a rate that is negative or not finite
     * @param options may be NULL.
     */
    public static native long cohort_trace_create(Structs.TraceOptions options, long[] out_trace);

    /**
     * Ends the open span that was begun last on a row. COHORT_ERROR_STATE: there is none, whether or not the trace is
     * running.
     */
    public static native long cohort_trace_end(long trace, String row);

    /**
     * Frees a trace, running or not; NULL does nothing.
     * @param trace may be NULL.
     */
    public static native void cohort_trace_free(long trace);

    /** How much a trace holds. struct_size of *out_info is set by the caller. */
    public static native long cohort_trace_get_info(long trace, Structs.TraceInfo out_info);

    /**
     * The events in Chrome's format, for chrome://tracing, Perfetto and similar viewers; the trace may be running.
     *
     * It is one JSON object with `traceEvents`. Each queue of a device and each host thread is a thread there, with a name
     * that says which; beyond 1024 of them, further ones share rows, on which spans may overlap. Spans (`ph` "X") have the
     * name of the node, parameter or call; `cat` is operator, pass, copy, exchange, update, wait, call or user; spans of
     * one thread nest. `args` has, as far as known: `op` and `kernel`, the operator and its implementation; `flops`,
     * `gflop_per_s`, `bytes`, `gbyte_per_s`; `bound_us`, the least time that the machine would take; `bound`, "flops" or
     * "bytes", whichever decides that time; and `of_bound`, bound_us divided by the time taken, which is above 1 if arrays
     * were in a cache. Events `cohort_machine` have the speed of each thread, which is measured when this or totals are
     * first asked for, in about a tenth of a second.
     *
     * The text belongs to the trace, until this is called again.
     */
    public static native long cohort_trace_json(long trace, long[] out_json);

    /**
     * Marks a moment on a row. COHORT_ERROR_INVALID_ARGUMENT: the trace is running and has 1024 rows of other names, all
     * counters counting as one.
     */
    public static native long cohort_trace_mark(long trace, String row, String name);

    /**
     * How many rows of totals there are now; cohort_trace_total() reads these rows until this is called again.
     */
    public static native long cohort_trace_num_totals(long trace, int by, long[] out_num);

    /**
     * COHORT_TRACE_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
     */
    public static native void cohort_trace_options_init(Structs.TraceOptions options, long struct_size);

    /** Starts or continues recording; it keeps what it holds. COHORT_ERROR_STATE: it is running. */
    public static native long cohort_trace_start(long trace);

    /**
     * Stops recording; it keeps what it holds, and open spans up to now. COHORT_ERROR_STATE: it is not running.
     */
    public static native long cohort_trace_stop(long trace);

    /** The totals as a table for a person. The text belongs to the trace, until this is called again. */
    public static native long cohort_trace_table(long trace, int by, long[] out_text);

    /**
     * One row of totals, sorted by total time, the longest first. Dropped events count, too. The rows are those of the last
     * cohort_trace_num_totals() with the same `by`, whatever was recorded since. After cohort_trace_clear(), or without
     * such a call, they are those at the first call of this function.
     * @param out_name The node, parameter or call; "" in rows of operators. Both texts belong to the trace, until this is called again.
     * @param out_op The operator or optimizer; "" where there is none.
     * @param out_total struct_size is set by the caller.
     */
    public static native long cohort_trace_total(long trace, int by, long index, long[] out_name, long[] out_op, Structs.SpanTotal out_total);

    /** The same to a file, whole or not at all. COHORT_ERROR_IO: it cannot be written. */
    public static native long cohort_trace_write(long trace, String path);
}
