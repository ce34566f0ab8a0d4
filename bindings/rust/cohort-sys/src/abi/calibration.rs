// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

/// How a calibration gets a range from the numbers that it observes.
pub type cohort_calibration_method = i32;
/// the range from the least to the largest
pub const COHORT_CALIBRATION_MIN_MAX: cohort_calibration_method = 0;
/// that range cut off where 8 bits keep most of the distribution
pub const COHORT_CALIBRATION_ENTROPY: cohort_calibration_method = 1;

extern "C" {
    /// Makes a calibration that has observed nothing.
    ///
    /// - `method`: COHORT_CALIBRATION_ constant.
    pub fn cohort_calibration_create(
        method: cohort_calibration_method,
        out_calibration: *mut *mut cohort_calibration,
    ) -> *mut cohort_error;
    /// Makes a calibration from ranges that another one found (cohort_calibration_ranges()), or from any others: so a
    /// network is calibrated once, and bound in other processes. It cannot observe any more (COHORT_ERROR_STATE), since the
    /// distribution of the numbers is not known.
    ///
    /// - `ranges`: For each value, under its name, a float32 array of two numbers, the least and the largest. A range that does not contain 0 is widened to it. The call waits for the arrays and reads them; they remain the caller's.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_INVALID_ARGUMENT  the list is empty; an entry has no array or no name; a range has ends that are
    ///                                  infinite or NaN, or its least number is above its largest
    ///   COHORT_ERROR_NAME              a name comes twice
    ///   COHORT_ERROR_SHAPE, COHORT_ERROR_DTYPE  an array is not of two elements, or not float32
    pub fn cohort_calibration_create_from(
        ranges: *const cohort_arrays,
        out_calibration: *mut *mut cohort_calibration,
    ) -> *mut cohort_error;
    /// Frees a calibration; networks bound with it are not affected. NULL does nothing.
    ///
    /// - `calibration`: may be NULL.
    pub fn cohort_calibration_free(
        calibration: *mut cohort_calibration,
    );
    /// Runs a forward pass (is_train 0) of an executor over the contents of its arguments, node by node, and notes the
    /// numbers of each float32 value. A batch or some hundred samples are usually enough. The executor's own monitor is not
    /// called.
    ///
    /// Returns: NULL, or an error of the forward pass, or COHORT_ERROR_EXECUTION: a value is infinite or NaN (the error names
    ///   it). Nothing was noted then.
    pub fn cohort_calibration_observe(
        calibration: *mut cohort_calibration,
        executor: *mut cohort_executor,
    ) -> *mut cohort_error;
    /// The range that was found for a value.
    ///
    /// - `name`: As monitors report it: "conv0_output", or an argument. Values of the same name share one range.
    /// - `out_low`: may be NULL.
    /// - `out_high`: may be NULL.
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE: nothing was observed; COHORT_ERROR_NAME: no such value was.
    pub fn cohort_calibration_range(
        calibration: *const cohort_calibration,
        name: *const c_char,
        out_low: *mut f64,
        out_high: *mut f64,
    ) -> *mut cohort_error;
    /// All ranges that were found, sorted by name: for each a float32 array of two numbers, the least and the largest.
    /// cohort_arrays_save() keeps them for cohort_calibration_create_from().
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE: nothing was observed.
    pub fn cohort_calibration_ranges(
        calibration: *const cohort_calibration,
        out_ranges: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
}
