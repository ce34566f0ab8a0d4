// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

/// Classes of errors. When memory runs out, the call that needed it, or that waited for work which needed it, returns an
/// error that says so, and all handles stay usable. The library cannot handle failed allocations inside libgomp and
/// oneDNN.
pub type cohort_error_class = i32;
/// the class of NULL
pub const COHORT_SUCCESS: cohort_error_class = 0;
/// a wrong handle, count, range or constant; options that contradict
pub const COHORT_ERROR_INVALID_ARGUMENT: cohort_error_class = 1;
/// an unknown, missing, duplicate or ambiguous name
pub const COHORT_ERROR_NAME: cohort_error_class = 2;
/// shapes that differ or cannot be inferred
pub const COHORT_ERROR_SHAPE: cohort_error_class = 3;
/// dtypes that differ or cannot be inferred
pub const COHORT_ERROR_DTYPE: cohort_error_class = 4;
/// a valid call at the wrong time
pub const COHORT_ERROR_STATE: cohort_error_class = 5;
/// a feature that this build or device does not offer
pub const COHORT_ERROR_UNSUPPORTED: cohort_error_class = 6;
/// no such device or backend; arrays on the wrong device
pub const COHORT_ERROR_DEVICE: cohort_error_class = 7;
/// contents of a file, of JSON or of a buffer
pub const COHORT_ERROR_FORMAT: cohort_error_class = 8;
/// the file system
pub const COHORT_ERROR_IO: cohort_error_class = 9;
/// no memory left on the host or a device
pub const COHORT_ERROR_OUT_OF_MEMORY: cohort_error_class = 10;
/// work on a device failed; returned by a call that waits for it
pub const COHORT_ERROR_EXECUTION: cohort_error_class = 11;
/// a defect in this library
pub const COHORT_ERROR_INTERNAL: cohort_error_class = 12;

extern "C" {
    /// The class of an error.
    ///
    /// - `error`: may be NULL. NULL: COHORT_SUCCESS.
    pub fn cohort_error_code(
        error: *const cohort_error,
    ) -> cohort_error_class;
    /// The name of a class in lower case, such as "shape"; "unknown" for other values. Lives as long as the process.
    pub fn cohort_error_code_text(
        code: cohort_error_class,
    ) -> *const c_char;
    /// Frees an error. NULL, and an error that is freed already, do nothing.
    ///
    /// - `error`: may be NULL.
    pub fn cohort_error_free(
        error: *mut cohort_error,
    );
    /// One line for a person, which says what is wrong, where, what was expected and what was found. It is UTF-8, whatever
    /// it quotes: other bytes and control characters are written as \xNN, in the subject too. The middle of a quotation of
    /// more than 4 KiB is left out, but not of the subject. Lives until the error is freed.
    ///
    /// - `error`: may be NULL. NULL: "".
    pub fn cohort_error_message(
        error: *const cohort_error,
    ) -> *const c_char;
    /// The operator, node, argument, array or file concerned; "" if there is none. Lives as the message does.
    ///
    /// - `error`: may be NULL. NULL: "".
    pub fn cohort_error_subject(
        error: *const cohort_error,
    ) -> *const c_char;
}
