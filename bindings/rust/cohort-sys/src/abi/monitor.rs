// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::{c_char, c_void};

/// Where in a name a pattern has to match.
pub type cohort_pattern_mode = i32;
/// from the start of the name, not necessarily to its end
pub const COHORT_PATTERN_ANCHORED: cohort_pattern_mode = 0;
/// any part of it
pub const COHORT_PATTERN_ANYWHERE: cohort_pattern_mode = 1;

/// Says whether a monitor is to report an array: for hosts with regular expressions of their own.
///
///
/// Runs where cohort_statistic_fn does, for each array that could be reported, and under the same rules.
pub type cohort_name_filter_fn = Option<
    unsafe extern "C" fn(
        name: *const c_char,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Computes the values that a monitor reports of an array.
///
///
/// Runs inside the forward and backward calls of what is monitored, and inside cohort_monitor_toc(), for each array that
/// is reported; not after the monitor was freed. It may use the array, and must not use the monitor or what is
/// monitored. If it fails or gives no array in a forward or backward call, the rest of that pass does not run.
pub type cohort_statistic_fn = Option<
    unsafe extern "C" fn(
        array: *mut cohort_ndarray,
        values: *mut cohort_arrays,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Settings of a monitor that few callers change. Zero in any field means its default.
///
/// Patterns are UTF-8 in the syntax of RE2: that of ECMAScript and Python without features that need backtracking (back
/// references such as `\1`, and assertions such as `(?=x)` and `(?!x)`), so that matching takes time linear in the
/// length of the name, and little stack. Further differences: `^` and `$` are the ends of the name, `.` is any character
/// except a newline, also one of several bytes, `\d`, `\w`, `\s` and `\b` know ASCII only, `x{n}` repeats at most 1,000
/// times, and a character is `\x{263A}`, not `\u263A`. A pattern has at most 64 KiB, and some MiB when compiled. Other
/// patterns are refused; hosts that need them use `filter`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_monitor_options {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// regular expression of the names to report, see below; NULL or "": all
    pub pattern: *const c_char,
    /// COHORT_PATTERN_ constant
    pub pattern_mode: cohort_pattern_mode,
    /// 1: arguments and auxiliary states are reported whatever pattern and filter say
    pub all_in_toc: cohort_bool,
    /// 1: entries by name, equal ones in the order of execution; 0: in the order of execution
    pub sort: cohort_bool,
    /// 1: the inputs of each operator too, before its outputs
    pub monitor_all: cohort_bool,
    /// NULL: the Euclidean norm over the square root of the size, one float32
    pub statistic: cohort_statistic_fn,
    /// passed to statistic
    pub statistic_user_data: *mut c_void,
    /// chooses the names to report; NULL: pattern does. Not both
    pub filter: cohort_name_filter_fn,
    /// passed to filter
    pub filter_user_data: *mut c_void,
    /// 1: a pass fails with COHORT_ERROR_EXECUTION at the first output or gradient with an infinity or a NaN, whatever pattern and filter say. The error names it, and the rest of the pass does not run.
    pub stop_if_not_finite: cohort_bool,
}

extern "C" {
    /// Makes a monitor.
    ///
    /// - `interval`: Batches, at least 1: of each `interval` batches the first is reported.
    /// - `options`: may be NULL. NULL: all defaults.
    ///
    /// Returns: NULL, or COHORT_ERROR_INVALID_ARGUMENT (interval, a constant, an invalid or too large pattern, both filter
    ///   and pattern).
    pub fn cohort_monitor_create(
        interval: i64,
        options: *const cohort_monitor_options,
        out_monitor: *mut *mut cohort_monitor,
    ) -> *mut cohort_error;
    /// Reads an entry of the latest cohort_monitor_toc().
    ///
    /// - `out_step`: may be NULL. The batch, counted from 1.
    /// - `out_name`: may be NULL. As the callback of cohort_executor_set_monitor() is given it, or the name of an argument or auxiliary state.
    /// - `out_text`: may be NULL. Each value followed by a tab: a value of one element as a number, others as elements in brackets. If it is wanted, the call waits for the values.
    pub fn cohort_monitor_entry(
        monitor: *const cohort_monitor,
        index: usize,
        out_step: *mut i64,
        out_name: *mut *const c_char,
        out_text: *mut *const c_char,
    ) -> *mut cohort_error;
    /// Frees a monitor; NULL does nothing. Objects that it was installed on continue without it.
    ///
    /// - `monitor`: may be NULL.
    pub fn cohort_monitor_free(
        monitor: *mut cohort_monitor,
    );
    /// Watches an executor, which the monitor keeps alive. A monitor can watch several; entries do not say which.
    ///
    /// An executor has one callback: this replaces the one of cohort_executor_set_monitor() and that of a monitor installed
    /// before, which then reports the executor's arguments and auxiliary states only.
    pub fn cohort_monitor_install_on_executor(
        monitor: *mut cohort_monitor,
        executor: *mut cohort_executor,
    ) -> *mut cohort_error;
    /// The same for every device of a group, device 0 first. It follows the group when that is bound anew or reshaped.
    pub fn cohort_monitor_install_on_group(
        monitor: *mut cohort_monitor,
        group: *mut cohort_group,
    ) -> *mut cohort_error;
    /// The same for the main group of a manager.
    ///
    /// Returns: NULL, or COHORT_ERROR_UNSUPPORTED for a manager with bucket symbols.
    pub fn cohort_monitor_install_on_manager(
        monitor: *mut cohort_monitor,
        manager: *mut cohort_manager,
    ) -> *mut cohort_error;
    /// COHORT_MONITOR_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
    pub fn cohort_monitor_options_init(
        options: *mut cohort_monitor_options,
        struct_size: usize,
    );
    /// How many batches were begun.
    pub fn cohort_monitor_step(
        monitor: *const cohort_monitor,
        out_step: *mut i64,
    ) -> *mut cohort_error;
    /// Begins a batch. If it is on the interval, waits for the work queued so far, and reporting starts.
    ///
    /// Returns: NULL, or COHORT_ERROR_EXECUTION if queued work failed; the batch is not begun then.
    pub fn cohort_monitor_tic(
        monitor: *mut cohort_monitor,
    ) -> *mut cohort_error;
    /// Ends a batch, and waits for the executors. If the batch is on the interval there are entries, which can be read by
    /// index until the next successful call: first the arrays computed since cohort_monitor_tic(), in the order of
    /// execution, device after device; then the arguments and auxiliary states, but not the gradients, of each executor, in
    /// the order of installation.
    ///
    /// - `out_num_entries`: How many; 0 if the batch is not on the interval, or no cohort_monitor_tic() went before.
    ///
    /// Returns: NULL, or, with the batch not ended and the entries as before, COHORT_ERROR_EXECUTION (queued work or the
    ///   statistic failed), COHORT_ERROR_INVALID_ARGUMENT (the statistic gave no array).
    pub fn cohort_monitor_toc(
        monitor: *mut cohort_monitor,
        out_num_entries: *mut usize,
    ) -> *mut cohort_error;
    /// The values of an entry: what the statistic gave, in its order, without names.
    pub fn cohort_monitor_values(
        monitor: *const cohort_monitor,
        index: usize,
        out_values: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
}
