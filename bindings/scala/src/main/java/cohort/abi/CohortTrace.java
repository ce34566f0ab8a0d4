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
     * Rows belong to no thread; spans of one row nest. Spans may be begun and ended whether the trace runs or not, so that
     * a host need not know who starts and stops it: what is recorded of one is the part in which it runs, each part a span
     * of its own. Marks and counters are noted only while it runs. Several threads may make these calls at once.
     * Returns: NULL, or COHORT_ERROR_STATE: 1024 spans of the row are open, or spans of 1024 rows; or
     *   COHORT_ERROR_INVALID_ARGUMENT: the trace runs and has 1024 rows of other names
     */
    public static native long cohort_trace_begin(long trace, String row, String name);

    /**
     * Forgets events and totals; may run meanwhile. Spans that are open stay so, and are shown from here on.
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
     * Ends the span that was begun last on a row and is open. COHORT_ERROR_STATE: there is none, the trace running or not.
     */
    public static native long cohort_trace_end(long trace, String row);

    /**
     * Ends it, running or not.
     * @param trace may be NULL.
     */
    public static native void cohort_trace_free(long trace);

    /** How much it holds. struct_size of *out_info is set by the caller. */
    public static native long cohort_trace_get_info(long trace, Structs.TraceInfo out_info);

    /**
     * The events in Chrome's format, for chrome://tracing, Perfetto and the like; may be asked for while it runs.
     *
     * One JSON object, `traceEvents` in it. A queue of a device is a thread, and so is a thread of the host's; their names
     * say which; beyond 1024 of them, further ones share rows, on which spans may overlap. Spans (`ph` "X") are named by
     * the node, parameter or call, `cat` is operator, pass, copy, exchange, update, wait, call or user; spans of one thread
     * nest. `args` has, where they are known: `op` and `kernel`, which the operator and its implementation are; `flops`,
     * `gflop_per_s`, `bytes`, `gbyte_per_s`; and `bound_us`, the time that the machine would take at least, which is due to
     * `bound`, "flops" or "bytes", and `of_bound`, that by the time it took, which is above 1 where arrays were in a cache.
     * Events `cohort_machine` have what each thread can do; it is measured when this, or totals, are first asked for, in
     * about a tenth of a second.
     *
     * The text belongs to the trace, until this is called again.
     */
    public static native long cohort_trace_json(long trace, long[] out_json);

    /**
     * Marks a moment on a row. COHORT_ERROR_INVALID_ARGUMENT: the trace runs and has 1024 rows of other names.
     */
    public static native long cohort_trace_mark(long trace, String row, String name);

    /**
     * How many rows of totals there are, as they are now; cohort_trace_total() reads these until this is called again.
     */
    public static native long cohort_trace_num_totals(long trace, int by, long[] out_num);

    /**
     * The same as COHORT_TRACE_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's.
     */
    public static native void cohort_trace_options_init(Structs.TraceOptions options, long struct_size);

    /** Goes on recording, behind what it holds already. COHORT_ERROR_STATE: it runs. */
    public static native long cohort_trace_start(long trace);

    /**
     * Stops recording; what it holds stays, with spans that are open as far as they went. COHORT_ERROR_STATE: it does not run.
     */
    public static native long cohort_trace_stop(long trace);

    /** The totals as a table for a person. The text belongs to the trace, until this is called again. */
    public static native long cohort_trace_table(long trace, int by, long[] out_text);

    /**
     * One row of totals, those that took longest first; of all events, those dropped among them. The rows are those of the
     * last cohort_trace_num_totals() with the same `by`, whatever was recorded since; after cohort_trace_clear(), or
     * without such a call, those at the first call of this.
     * @param out_name The node, parameter or call; "" in rows of operators. Both texts belong to the trace, until this is called again.
     * @param out_op The operator or optimizer; "" where there is none.
     * @param out_total struct_size is set by the caller.
     */
    public static native long cohort_trace_total(long trace, int by, long index, long[] out_name, long[] out_op, Structs.SpanTotal out_total);

    /** The same to a file, whole or not at all. COHORT_ERROR_IO: it cannot be written. */
    public static native long cohort_trace_write(long trace, String path);
}
