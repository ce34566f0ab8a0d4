// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

extern "C" {
    /// Appends a descriptor.
    ///
    /// - `name`: may be NULL. NULL or "": none; the descriptor is then taken by position where a function allows that.
    /// - `shape`: num_axes lengths, none negative; 0: not known.
    /// - `num_axes`: 0 to COHORT_MAX_AXES, or COHORT_UNKNOWN_SHAPE with shape NULL.
    /// - `dtype`: COHORT_DTYPE_ constant. COHORT_DTYPE_NONE: float32 for data and labels of a group, else not known.
    /// - `layout`: may be NULL. One letter for each axis; N is the batch axis (see cohort_layout_batch_axis()). Its length need not be num_axes. NULL: "NCHW", that is batch axis 0. Only groups read it.
    pub fn cohort_descs_add(
        descs: *mut cohort_descs,
        name: *const c_char,
        shape: *const i64,
        num_axes: i32,
        dtype: cohort_dtype,
        layout: *const c_char,
    ) -> *mut cohort_error;
    /// Makes an empty list.
    pub fn cohort_descs_create(
        out_descs: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// Finds a descriptor by name.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME if there is none or more than one.
    pub fn cohort_descs_find(
        descs: *const cohort_descs,
        name: *const c_char,
        out_index: *mut usize,
    ) -> *mut cohort_error;
    /// Frees a list; NULL does nothing.
    ///
    /// - `descs`: may be NULL.
    pub fn cohort_descs_free(
        descs: *mut cohort_descs,
    );
    /// Reads one descriptor.
    ///
    /// - `index`: Below cohort_descs_num().
    /// - `out_name`: may be NULL. The name, "" if none.
    /// - `out_shape`: may be NULL. `capacity` lengths, the first num_axes of which are written; capacity must be large enough.
    /// - `out_num_axes`: may be NULL. The number of axes, COHORT_UNKNOWN_SHAPE if the shape is not known.
    /// - `out_dtype`: may be NULL. The dtype, COHORT_DTYPE_NONE if not given or not known.
    /// - `out_layout`: may be NULL. The layout.
    pub fn cohort_descs_get(
        descs: *const cohort_descs,
        index: usize,
        out_name: *mut *const c_char,
        out_shape: *mut i64,
        capacity: usize,
        out_num_axes: *mut i32,
        out_dtype: *mut cohort_dtype,
        out_layout: *mut *const c_char,
    ) -> *mut cohort_error;
    /// How many descriptors there are.
    pub fn cohort_descs_num(
        descs: *const cohort_descs,
        out_num: *mut usize,
    ) -> *mut cohort_error;
}
