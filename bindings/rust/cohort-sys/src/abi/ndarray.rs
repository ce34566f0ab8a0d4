// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_void;

/// Tells the owner of wrapped memory that the library is done with it.
///
/// Called once, at the end of a call of the library, on the thread that made the call: nothing else in the library waits
/// for it. It must not call the library.
pub type cohort_deleter_fn = Option<
    unsafe extern "C" fn(
        data: *mut c_void,
        user_data: *mut c_void,
    ),
>;

extern "C" {
    /// Makes a view of row `index`, from 0, along axis 0, without that axis. The view of an element of a rank-1 array has
    /// shape (1,).
    pub fn cohort_ndarray_at(
        array: *const cohort_ndarray,
        index: i64,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// The bytes that the elements take.
    pub fn cohort_ndarray_bytes(
        array: *const cohort_ndarray,
        out_bytes: *mut usize,
    ) -> *mut cohort_error;
    /// Makes a copy of another dtype on the same context, converting as cohort_ndarray_copy_to() does. Queued.
    pub fn cohort_ndarray_cast(
        array: *const cohort_ndarray,
        dtype: cohort_dtype,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Joins one array or more along an axis into a new one on the first array's context. Queued.
    ///
    /// - `axis`: Negative counts from the last.
    ///
    /// Returns: NULL, or COHORT_ERROR_SHAPE (other lengths differ), COHORT_ERROR_DTYPE (dtypes differ).
    pub fn cohort_ndarray_concat(
        arrays: *const *mut cohort_ndarray,
        num_arrays: usize,
        axis: i32,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Reads the context.
    pub fn cohort_ndarray_context(
        array: *const cohort_ndarray,
        out_context: *mut cohort_context,
    ) -> *mut cohort_error;
    /// Makes a copy on a context. Queued.
    ///
    /// - `context`: may be NULL.
    pub fn cohort_ndarray_copy(
        array: *const cohort_ndarray,
        context: *const cohort_context,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Copies an array into another of the same shape, on any contexts, converting to its dtype. Queued.
    ///
    /// Copying an array onto itself does nothing; arrays that overlap otherwise give unspecified contents. Different shapes:
    /// COHORT_ERROR_SHAPE.
    pub fn cohort_ndarray_copy_to(
        source: *const cohort_ndarray,
        target: *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// The address of the elements of an array on a CPU context, row-major. Waits for the work that writes the array.
    ///
    /// The address is valid while any reference on the array exists; for a view it is that of the view's first element. Work
    /// that is queued afterwards sees what the caller writes there. The caller must not write while work that uses the array
    /// is queued.
    ///
    /// Returns: NULL, or COHORT_ERROR_UNSUPPORTED on other contexts, COHORT_ERROR_EXECUTION.
    pub fn cohort_ndarray_data(
        array: *const cohort_ndarray,
        out_data: *mut *mut c_void,
    ) -> *mut cohort_error;
    /// Reads the dtype.
    pub fn cohort_ndarray_dtype(
        array: *const cohort_ndarray,
        out_dtype: *mut cohort_dtype,
    ) -> *mut cohort_error;
    /// Makes an array whose contents are unspecified until written.
    ///
    /// - `context`: may be NULL.
    pub fn cohort_ndarray_empty(
        shape: *const i64,
        num_axes: i32,
        dtype: cohort_dtype,
        context: *const cohort_context,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Sets all elements to a value, converted to the dtype.
    pub fn cohort_ndarray_fill(
        array: *mut cohort_ndarray,
        value: f64,
    ) -> *mut cohort_error;
    /// As cohort_ndarray_fill_uniform(), normally distributed.
    pub fn cohort_ndarray_fill_normal(
        array: *mut cohort_ndarray,
        mean: f64,
        deviation: f64,
        seed: u64,
    ) -> *mut cohort_error;
    /// Sets all elements to independent random numbers, uniformly distributed from low up to high; high itself occurs only
    /// by rounding to the dtype. The same seed, shape and dtype give the same numbers on every context. Float dtypes only,
    /// else COHORT_ERROR_DTYPE.
    pub fn cohort_ndarray_fill_uniform(
        array: *mut cohort_ndarray,
        low: f64,
        high: f64,
        seed: u64,
    ) -> *mut cohort_error;
    /// Frees a handle, not the memory that others hold; NULL does nothing. Does not wait.
    ///
    /// - `array`: may be NULL.
    pub fn cohort_ndarray_free(
        array: *mut cohort_ndarray,
    );
    /// Makes an array of another library's memory: without a copy if it is dense and row-major, else with one.
    ///
    /// - `managed`: A `DLManagedTensorVersioned *` of major version 1 whose contents are ready. The library owns it when this call succeeds, and calls its deleter as a cohort_deleter_fn, when the last reference is gone. After an error it is still the caller's. A tensor flagged read-only is copied.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_UNSUPPORTED  another major version, or elements of a kind or lanes that no dtype here has
    ///   COHORT_ERROR_DEVICE       a device that no backend here serves
    pub fn cohort_ndarray_from_dlpack(
        managed: *mut c_void,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// As cohort_ndarray_from_dlpack(), for a `DLManagedTensor *`, which has neither a version nor a read-only flag.
    ///
    /// - `managed`: A `DLManagedTensorVersioned *` of major version 1 whose contents are ready. The library owns it when this call succeeds, and calls its deleter as a cohort_deleter_fn, when the last reference is gone. After an error it is still the caller's. A tensor flagged read-only is copied.
    pub fn cohort_ndarray_from_dlpack_unversioned(
        managed: *mut c_void,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Makes an array with a copy of host memory.
    ///
    /// - `data`: The elements in the array's dtype, row-major.
    /// - `bytes`: The size of data: exactly that of the array, else COHORT_ERROR_SHAPE.
    /// - `context`: may be NULL.
    pub fn cohort_ndarray_from_host(
        data: *const c_void,
        bytes: usize,
        shape: *const i64,
        num_axes: i32,
        dtype: cohort_dtype,
        context: *const cohort_context,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Makes an array of one value, converted to its dtype.
    ///
    /// - `context`: may be NULL.
    pub fn cohort_ndarray_full(
        shape: *const i64,
        num_axes: i32,
        dtype: cohort_dtype,
        context: *const cohort_context,
        value: f64,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Copies all elements to host memory, waiting for the work that writes them.
    ///
    /// - `bytes`: The size of out_data: exactly cohort_ndarray_bytes(), else COHORT_ERROR_SHAPE.
    ///
    /// Returns: NULL, or COHORT_ERROR_EXECUTION.
    pub fn cohort_ndarray_read(
        array: *const cohort_ndarray,
        out_data: *mut c_void,
        bytes: usize,
    ) -> *mut cohort_error;
    /// Makes a view of the same memory with another shape, which must have as many elements, else COHORT_ERROR_SHAPE.
    ///
    /// - `shape`: One length may be -1: it follows from the others.
    pub fn cohort_ndarray_reshape(
        array: *const cohort_ndarray,
        shape: *const i64,
        num_axes: i32,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// As cohort_ndarray_reshape(), but a shape of fewer elements is allowed too and views the first of them. No -1.
    ///
    /// - `shape`: One length may be -1: it follows from the others.
    pub fn cohort_ndarray_reshape_prefix(
        array: *const cohort_ndarray,
        shape: *const i64,
        num_axes: i32,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Reads the shape.
    ///
    /// - `out_shape`: may be NULL. `capacity` lengths, the first num_axes of which are written; capacity must be large enough.
    /// - `out_num_axes`: may be NULL. The number of axes.
    pub fn cohort_ndarray_shape(
        array: *const cohort_ndarray,
        out_shape: *mut i64,
        capacity: usize,
        out_num_axes: *mut i32,
    ) -> *mut cohort_error;
    /// Makes a second handle on the same array, for example to keep one that a callback was lent.
    pub fn cohort_ndarray_share(
        array: *const cohort_ndarray,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// The number of elements: the product of the shape, 1 for a scalar.
    pub fn cohort_ndarray_size(
        array: *const cohort_ndarray,
        out_size: *mut i64,
    ) -> *mut cohort_error;
    /// Makes a view of rows \[begin, end) along axis 0: 0 \<= begin \<= end \<= length. A scalar has no rows.
    pub fn cohort_ndarray_slice(
        array: *const cohort_ndarray,
        begin: i64,
        end: i64,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Takes the range \[begin, end) along an axis: a view if that is axis 0, else a copy.
    ///
    /// - `axis`: Negative counts from the last.
    /// - `end`: At most the length and above begin, which is not negative; INT64_MAX: the length.
    pub fn cohort_ndarray_slice_axis(
        array: *const cohort_ndarray,
        axis: i32,
        begin: i64,
        end: i64,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Lends an array to another library as a DLPack `DLManagedTensorVersioned` of version 1. Waits for the work that writes
    /// it.
    ///
    /// - `out_managed`: A `DLManagedTensorVersioned *`, the caller's until its deleter is called. It keeps the memory alive, and its deleter may be called on any thread, even after every handle is freed. It is not a handle: cohort_live_handles() does not count it.
    pub fn cohort_ndarray_to_dlpack(
        array: *const cohort_ndarray,
        out_managed: *mut *mut c_void,
    ) -> *mut cohort_error;
    /// As cohort_ndarray_to_dlpack(), for libraries that know DLPack before its version 1 (NumPy before 2.1, PyTorch unless
    /// asked for more): out_managed is a `DLManagedTensor *`.
    ///
    /// - `out_managed`: A `DLManagedTensorVersioned *`, the caller's until its deleter is called. It keeps the memory alive, and its deleter may be called on any thread, even after every handle is freed. It is not a handle: cohort_live_handles() does not count it.
    pub fn cohort_ndarray_to_dlpack_unversioned(
        array: *const cohort_ndarray,
        out_managed: *mut *mut c_void,
    ) -> *mut cohort_error;
    /// Waits for the work that writes an array. COHORT_ERROR_EXECUTION if it failed.
    pub fn cohort_ndarray_wait(
        array: *const cohort_ndarray,
    ) -> *mut cohort_error;
    /// Makes an array that uses the caller's host memory, without a copy.
    ///
    /// Queued work and views hold references: the memory must stay until the deleter is called, and keep its contents while
    /// work that reads it is queued.
    ///
    /// - `data`: may be NULL. Aligned to the size of an element; as many bytes as the shape takes. NULL only if that is 0.
    /// - `context`: may be NULL. A CPU context.
    /// - `deleter`: may be NULL. Called when the last reference is gone, but not if this call fails. NULL: nothing is called.
    /// - `user_data`: may be NULL. Passed to the deleter.
    pub fn cohort_ndarray_wrap(
        data: *mut c_void,
        shape: *const i64,
        num_axes: i32,
        dtype: cohort_dtype,
        context: *const cohort_context,
        deleter: cohort_deleter_fn,
        user_data: *mut c_void,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Copies host memory to all elements, after the work that uses them. When it returns, data is no longer needed.
    ///
    /// - `bytes`: The size of data: exactly cohort_ndarray_bytes(), else COHORT_ERROR_SHAPE.
    pub fn cohort_ndarray_write(
        array: *mut cohort_ndarray,
        data: *const c_void,
        bytes: usize,
    ) -> *mut cohort_error;
    /// Makes an array of zeros.
    ///
    /// - `context`: may be NULL.
    pub fn cohort_ndarray_zeros(
        shape: *const i64,
        num_axes: i32,
        dtype: cohort_dtype,
        context: *const cohort_context,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
}
