// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

/// What an event is about.
pub type cohort_span_kind = i32;
/// a step of a network, or of an operator that was applied at once
pub const COHORT_SPAN_OPERATOR: cohort_span_kind = 0;
/// steps that were queued together: "forward", "backward", "update"
pub const COHORT_SPAN_PASS: cohort_span_kind = 1;
pub const COHORT_SPAN_COPY: cohort_span_kind = 2;
/// gradients summed over devices
pub const COHORT_SPAN_EXCHANGE: cohort_span_kind = 3;
/// a parameter, or a part of one
pub const COHORT_SPAN_UPDATE: cohort_span_kind = 4;
/// a queue, for another one
pub const COHORT_SPAN_WAIT: cohort_span_kind = 5;
/// a thread of the host's, in a call that starts passes
pub const COHORT_SPAN_CALL: cohort_span_kind = 6;
/// what the host says of itself: cohort_trace_begin()
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
    /// the shortest and the longest
    pub least_ns: i64,
    pub most_ns: i64,
    /// additions and multiplications of products and factorizations, in all; 0: none, or not known
    pub flops: f64,
    /// of arrays read and written, in all; 0: not known
    pub bytes: f64,
    /// what the machine would take for these at least, in all; 0: not known
    pub bound_ns: f64,
}

/// What a trace holds. struct_size is set by the caller.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_trace_info {
    /// sizeof(cohort_trace_info) where the caller was compiled
    pub struct_size: usize,
    /// that are kept
    pub num_events: usize,
    /// that had to make room, or for which there was no memory
    pub num_dropped: u64,
    pub running: cohort_bool,
}

/// Settings of a trace that few callers change. Zero in any field means its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_trace_options {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// how many are kept, older ones make room; 0: 2^20. An event takes some 50 bytes
    pub max_events: usize,
    /// what the threads of one device can compute, in float32; 0: measured
    pub flop_per_s: f64,
    /// the same in bfloat16; 0: measured, where there are units for it
    pub bfloat16_flop_per_s: f64,
    /// what they can read and write by copying; 0: measured
    pub byte_per_s: f64,
}

extern "C" {
    /// Begins a span of the host's own, shown on a row of that name beside those of queues: "epoch 3" on row "training".
    /// Rows belong to no thread; spans of one row nest. Spans may be begun and ended whether the trace runs or not, so that
    /// a host need not know who starts and stops it: what is recorded of one is the part in which it runs, each part a span
    /// of its own. Marks and counters are noted only while it runs. Several threads may make these calls at once.
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE: 1024 spans of the row are open, or spans of 1024 rows; or
    ///   COHORT_ERROR_INVALID_ARGUMENT: the trace runs and has 1024 rows of other names
    pub fn cohort_trace_begin(
        trace: *mut cohort_trace,
        row: *const c_char,
        name: *const c_char,
    ) -> *mut cohort_error;
    /// Forgets events and totals; may run meanwhile. Spans that are open stay so, and are shown from here on.
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
    /// Ends the span that was begun last on a row and is open. COHORT_ERROR_STATE: there is none, the trace running or not.
    pub fn cohort_trace_end(
        trace: *mut cohort_trace,
        row: *const c_char,
    ) -> *mut cohort_error;
    /// Ends it, running or not.
    ///
    /// - `trace`: may be NULL.
    pub fn cohort_trace_free(
        trace: *mut cohort_trace,
    );
    /// How much it holds. struct_size of *out_info is set by the caller.
    pub fn cohort_trace_get_info(
        trace: *const cohort_trace,
        out_info: *mut cohort_trace_info,
    ) -> *mut cohort_error;
    /// The events in Chrome's format, for chrome://tracing, Perfetto and the like; may be asked for while it runs.
    ///
    /// One JSON object, `traceEvents` in it. A queue of a device is a thread, and so is a thread of the host's; their names
    /// say which; beyond 1024 of them, further ones share rows, on which spans may overlap. Spans (`ph` "X") are named by
    /// the node, parameter or call, `cat` is operator, pass, copy, exchange, update, wait, call or user; spans of one thread
    /// nest. `args` has, where they are known: `op` and `kernel`, which the operator and its implementation are; `flops`,
    /// `gflop_per_s`, `bytes`, `gbyte_per_s`; and `bound_us`, the time that the machine would take at least, which is due to
    /// `bound`, "flops" or "bytes", and `of_bound`, that by the time it took, which is above 1 where arrays were in a cache.
    /// Events `cohort_machine` have what each thread can do; it is measured when this, or totals, are first asked for, in
    /// about a tenth of a second.
    ///
    /// The text belongs to the trace, until this is called again.
    pub fn cohort_trace_json(
        trace: *mut cohort_trace,
        out_json: *mut *const c_char,
    ) -> *mut cohort_error;
    /// Marks a moment on a row. COHORT_ERROR_INVALID_ARGUMENT: the trace runs and has 1024 rows of other names.
    pub fn cohort_trace_mark(
        trace: *mut cohort_trace,
        row: *const c_char,
        name: *const c_char,
    ) -> *mut cohort_error;
    /// How many rows of totals there are, as they are now; cohort_trace_total() reads these until this is called again.
    pub fn cohort_trace_num_totals(
        trace: *const cohort_trace,
        by: cohort_totals_by,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// The same as COHORT_TRACE_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's.
    pub fn cohort_trace_options_init(
        options: *mut cohort_trace_options,
        struct_size: usize,
    );
    /// Goes on recording, behind what it holds already. COHORT_ERROR_STATE: it runs.
    pub fn cohort_trace_start(
        trace: *mut cohort_trace,
    ) -> *mut cohort_error;
    /// Stops recording; what it holds stays, with spans that are open as far as they went. COHORT_ERROR_STATE: it does not run.
    pub fn cohort_trace_stop(
        trace: *mut cohort_trace,
    ) -> *mut cohort_error;
    /// The totals as a table for a person. The text belongs to the trace, until this is called again.
    pub fn cohort_trace_table(
        trace: *mut cohort_trace,
        by: cohort_totals_by,
        out_text: *mut *const c_char,
    ) -> *mut cohort_error;
    /// One row of totals, those that took longest first; of all events, those dropped among them. The rows are those of the
    /// last cohort_trace_num_totals() with the same `by`, whatever was recorded since; after cohort_trace_clear(), or
    /// without such a call, those at the first call of this.
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
