// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

/// Kinds of events.
pub type cohort_span_kind = i32;
/// a step of a network, or of an operator applied to arrays
pub const COHORT_SPAN_OPERATOR: cohort_span_kind = 0;
/// steps that were queued together: "forward", "backward", "update"
pub const COHORT_SPAN_PASS: cohort_span_kind = 1;
pub const COHORT_SPAN_COPY: cohort_span_kind = 2;
/// gradients summed over devices
pub const COHORT_SPAN_EXCHANGE: cohort_span_kind = 3;
/// a parameter, or a part of one
pub const COHORT_SPAN_UPDATE: cohort_span_kind = 4;
/// a queue waits for another one
pub const COHORT_SPAN_WAIT: cohort_span_kind = 5;
/// a host thread is in a call that starts passes
pub const COHORT_SPAN_CALL: cohort_span_kind = 6;
/// a span of the host's own: cohort_trace_begin()
pub const COHORT_SPAN_USER: cohort_span_kind = 7;

/// How totals are summed.
pub type cohort_totals_by = i32;
/// a row for each operator of each node, each parameter, ...
pub const COHORT_TOTALS_BY_NAME: cohort_totals_by = 0;
/// a row for each operator, optimizer, ...
pub const COHORT_TOTALS_BY_OPERATOR: cohort_totals_by = 1;

/// One row of totals. struct_size is set by the caller.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_span_total {
    /// sizeof(cohort_span_total) where the caller was compiled
    pub struct_size: usize,
    /// COHORT_SPAN_ constant
    pub kind: cohort_span_kind,
    /// how often it was done
    pub count: u64,
    /// in all
    pub total_ns: i64,
    /// the shortest
    pub least_ns: i64,
    /// the longest
    pub most_ns: i64,
    /// additions and multiplications of products and factorizations, in all; 0: none, or not known
    pub flops: f64,
    /// of arrays read and written, in all; 0: not known
    pub bytes: f64,
    /// the least time the machine would take for these, in all; 0: not known
    pub bound_ns: f64,
}

/// The contents of a trace. struct_size is set by the caller.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_trace_info {
    /// sizeof(cohort_trace_info) where the caller was compiled
    pub struct_size: usize,
    /// events that are kept
    pub num_events: usize,
    /// events dropped for newer ones, or for lack of memory
    pub num_dropped: u64,
    pub running: cohort_bool,
}

/// Settings of a trace that few callers change. Zero in any field means its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_trace_options {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// how many are kept, the latest ones; 0: 2^20. An event takes some 50 bytes
    pub max_events: usize,
    /// the speed of one device's threads in float32; 0: measured
    pub flop_per_s: f64,
    /// the same in bfloat16; 0: measured if there are units for it
    pub bfloat16_flop_per_s: f64,
    /// the bytes that they read and write in a copy; 0: measured
    pub byte_per_s: f64,
}

extern "C" {
    /// Begins a span of the host's own, shown on a row of that name beside those of queues: "epoch 3" on row "training".
    /// Rows belong to no thread; spans of one row nest. Spans may be begun and ended whether or not the trace is running, so
    /// that a host need not know when it is started and stopped: each part of a span in which the trace runs is recorded as
    /// a span of its own. Marks and counters are noted only while it runs. Several threads may make these calls at once.
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE: 1024 spans of the row are open, or there are open spans on 1024 rows; or
    ///   COHORT_ERROR_INVALID_ARGUMENT: the trace is running and has 1024 rows of other names. All counters together count
    ///   as one row.
    pub fn cohort_trace_begin(
        trace: *mut cohort_trace,
        row: *const c_char,
        name: *const c_char,
    ) -> *mut cohort_error;
    /// Removes events and totals; the trace may be running. Open spans stay open, and are shown from here on.
    pub fn cohort_trace_clear(
        trace: *mut cohort_trace,
    ) -> *mut cohort_error;
    /// Notes the value of a counter, which a viewer draws as a curve. COHORT_ERROR_INVALID_ARGUMENT: not finite.
    pub fn cohort_trace_counter(
        trace: *mut cohort_trace,
        name: *const c_char,
        value: f64,
    ) -> *mut cohort_error;
    /// Makes a trace, which does not run yet.
    ///
    /// - `options`: may be NULL.
    ///
    /// Returns: NULL, or COHORT_ERROR_INVALID_ARGUMENT: a rate that is negative or not finite
    pub fn cohort_trace_create(
        options: *const cohort_trace_options,
        out_trace: *mut *mut cohort_trace,
    ) -> *mut cohort_error;
    /// Ends the open span that was begun last on a row. COHORT_ERROR_STATE: there is none, whether or not the trace is
    /// running.
    pub fn cohort_trace_end(
        trace: *mut cohort_trace,
        row: *const c_char,
    ) -> *mut cohort_error;
    /// Frees a trace, running or not; NULL does nothing.
    ///
    /// - `trace`: may be NULL.
    pub fn cohort_trace_free(
        trace: *mut cohort_trace,
    );
    /// How much a trace holds. struct_size of *out_info is set by the caller.
    pub fn cohort_trace_get_info(
        trace: *const cohort_trace,
        out_info: *mut cohort_trace_info,
    ) -> *mut cohort_error;
    /// The events in Chrome's format, for chrome://tracing, Perfetto and similar viewers; the trace may be running.
    ///
    /// It is one JSON object with `traceEvents`. Each queue of a device and each host thread is a thread there, with a name
    /// that says which; beyond 1024 of them, further ones share rows, on which spans may overlap. Spans (`ph` "X") have the
    /// name of the node, parameter or call; `cat` is operator, pass, copy, exchange, update, wait, call or user; spans of
    /// one thread nest. `args` has, as far as known: `op` and `kernel`, the operator and its implementation; `flops`,
    /// `gflop_per_s`, `bytes`, `gbyte_per_s`; `bound_us`, the least time that the machine would take; `bound`, "flops" or
    /// "bytes", whichever decides that time; and `of_bound`, bound_us divided by the time taken, which is above 1 if arrays
    /// were in a cache. Events `cohort_machine` have the speed of each thread, which is measured when this or totals are
    /// first asked for, in about a tenth of a second.
    ///
    /// The text belongs to the trace, until this is called again.
    pub fn cohort_trace_json(
        trace: *mut cohort_trace,
        out_json: *mut *const c_char,
    ) -> *mut cohort_error;
    /// Marks a moment on a row. COHORT_ERROR_INVALID_ARGUMENT: the trace is running and has 1024 rows of other names, all
    /// counters counting as one.
    pub fn cohort_trace_mark(
        trace: *mut cohort_trace,
        row: *const c_char,
        name: *const c_char,
    ) -> *mut cohort_error;
    /// How many rows of totals there are now; cohort_trace_total() reads these rows until this is called again.
    pub fn cohort_trace_num_totals(
        trace: *const cohort_trace,
        by: cohort_totals_by,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// COHORT_TRACE_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
    pub fn cohort_trace_options_init(
        options: *mut cohort_trace_options,
        struct_size: usize,
    );
    /// Starts or continues recording; it keeps what it holds. COHORT_ERROR_STATE: it is running.
    pub fn cohort_trace_start(
        trace: *mut cohort_trace,
    ) -> *mut cohort_error;
    /// Stops recording; it keeps what it holds, and open spans up to now. COHORT_ERROR_STATE: it is not running.
    pub fn cohort_trace_stop(
        trace: *mut cohort_trace,
    ) -> *mut cohort_error;
    /// The totals as a table for a person. The text belongs to the trace, until this is called again.
    pub fn cohort_trace_table(
        trace: *mut cohort_trace,
        by: cohort_totals_by,
        out_text: *mut *const c_char,
    ) -> *mut cohort_error;
    /// One row of totals, sorted by total time, the longest first. Dropped events count, too. The rows are those of the last
    /// cohort_trace_num_totals() with the same `by`, whatever was recorded since. After cohort_trace_clear(), or without
    /// such a call, they are those at the first call of this function.
    ///
    /// - `out_name`: The node, parameter or call; "" in rows of operators. Both texts belong to the trace, until this is called again.
    /// - `out_op`: The operator or optimizer; "" where there is none.
    /// - `out_total`: struct_size is set by the caller.
    pub fn cohort_trace_total(
        trace: *mut cohort_trace,
        by: cohort_totals_by,
        index: usize,
        out_name: *mut *const c_char,
        out_op: *mut *const c_char,
        out_total: *mut cohort_span_total,
    ) -> *mut cohort_error;
    /// The same to a file, whole or not at all. COHORT_ERROR_IO: it cannot be written.
    pub fn cohort_trace_write(
        trace: *const cohort_trace,
        path: *const c_char,
    ) -> *mut cohort_error;
}
