// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

extern "C" {
    /// Appends a descriptor.
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
    pub fn cohort_descs_free(
        descs: *mut cohort_descs,
    );
    /// Reads one descriptor. Each out parameter may be NULL.
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
