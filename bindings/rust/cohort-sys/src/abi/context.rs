// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

/// The memory of a context that this process uses. struct_size is set by the caller.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_device_memory_info {
    /// sizeof(cohort_device_memory_info) where the caller was compiled
    pub struct_size: usize,
    /// of arrays, and working memory of executors, groups and operators
    pub used_bytes: usize,
    /// the largest used_bytes since the last reset
    pub peak_bytes: usize,
    /// kept for later use besides: a GPU's driver does not give it to other processes
    pub cached_bytes: usize,
    /// set by cohort_device_limit_memory(); 0: none
    pub limit_bytes: usize,
}

extern "C" {
    /// Reads a context from text: a device type, then an id from 0 in parentheses. "cpu(0)", "gpu(1)", "cpu_pinned(0)",
    /// "cpu_shared(0)". No other text is accepted, and no leading zeros. Whether the device exists is checked when it is
    /// first used.
    pub fn cohort_context_parse(
        text: *const c_char,
        out_context: *mut cohort_context,
    ) -> *mut cohort_error;
    /// Writes a context as text, "gpu(1)".
    ///
    /// - `context`: may be NULL.
    /// - `out_text`: may be NULL. `capacity` bytes; 32 are always enough. NULL: only the size is wanted.
    /// - `out_bytes`: may be NULL. The bytes needed, the ending zero included.
    pub fn cohort_context_text(
        context: *const cohort_context,
        out_text: *mut c_char,
        capacity: usize,
        out_bytes: *mut usize,
    ) -> *mut cohort_error;
    /// Limits how much of a context's memory this process takes; 0: no limit. An allocation beyond the limit fails with
    /// COHORT_ERROR_OUT_OF_MEMORY, in queued work, too. Memory that is in use already stays, even if it is more.
    ///
    /// - `context`: may be NULL.
    pub fn cohort_device_limit_memory(
        context: *const cohort_context,
        bytes: usize,
    ) -> *mut cohort_error;
    /// How much memory of a context is in use. Pinned and shared host memory count as memory of cpu(id). Work that has just
    /// been waited for may still hold some memory for a moment.
    ///
    /// Errors: COHORT_ERROR_DEVICE where there is no such device.
    ///
    /// - `context`: may be NULL.
    pub fn cohort_device_memory(
        context: *const cohort_context,
        out_info: *mut cohort_device_memory_info,
    ) -> *mut cohort_error;
    /// Sets the peak of a context to what is in use now.
    ///
    /// - `context`: may be NULL.
    pub fn cohort_device_reset_peak_memory(
        context: *const cohort_context,
    ) -> *mut cohort_error;
    /// The bytes that one element of a dtype takes. Unknown: COHORT_ERROR_DTYPE.
    pub fn cohort_dtype_bytes(
        dtype: cohort_dtype,
        out_bytes: *mut usize,
    ) -> *mut cohort_error;
    /// Reads a dtype from its name: "float32", "bfloat16", "bool"... Unknown: COHORT_ERROR_DTYPE.
    pub fn cohort_dtype_parse(
        text: *const c_char,
        out_dtype: *mut cohort_dtype,
    ) -> *mut cohort_error;
    /// The name of a dtype, which lives as long as the process. Unknown: COHORT_ERROR_DTYPE.
    pub fn cohort_dtype_text(
        dtype: cohort_dtype,
        out_text: *mut *const c_char,
    ) -> *mut cohort_error;
    /// The batch axis of a layout: where its first capital N stands. "NCHW": 0, "TNC": 1, no N: -1 (not batched).
    ///
    /// - `layout`: may be NULL. NULL: the axis is 0.
    pub fn cohort_layout_batch_axis(
        layout: *const c_char,
        out_axis: *mut i32,
    ) -> *mut cohort_error;
    /// How many devices of a type this machine has.
    ///
    /// - `out_num`: For GPUs the number that the backend finds, 0 without backend or GPU. For the CPU types the number of processors this process may use, though any id from 0 is valid.
    pub fn cohort_num_devices(
        device_type: cohort_device_type,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// Waits until all work that any caller has queued so far on any device is done.
    ///
    /// Returns: NULL, or COHORT_ERROR_EXECUTION if some of the work failed. The executor or group whose work it was reports
    ///   the error as well, at the next call that waits for it.
    pub fn cohort_wait_all(
    ) -> *mut cohort_error;
}
