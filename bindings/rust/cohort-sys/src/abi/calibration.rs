// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

/// What a calibration makes of the numbers that it sees.
pub type cohort_calibration_method = i32;
/// the range from the least to the largest
pub const COHORT_CALIBRATION_MIN_MAX: cohort_calibration_method = 0;
/// that range cut off where bytes tell most of how the numbers are distributed
pub const COHORT_CALIBRATION_ENTROPY: cohort_calibration_method = 1;

extern "C" {
    /// Makes a calibration that has seen nothing.
    ///
    /// - `method`: COHORT_CALIBRATION_ constant.
    pub fn cohort_calibration_create(
        method: cohort_calibration_method,
        out_calibration: *mut *mut cohort_calibration,
    ) -> *mut cohort_error;
    /// Makes a calibration that has found the ranges which another one did (cohort_calibration_ranges()), or any others: a
    /// network is calibrated once, and bound in other processes. Nothing is known of how the numbers lie in them, so it
    /// observes no more (COHORT_ERROR_STATE).
    ///
    /// - `ranges`: For each value by its name a float32 array of two: the least and the largest number. A range that does not hold 0 is widened to it. The arrays are waited for, and read; they remain the caller's.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_INVALID_ARGUMENT  the list is empty; an entry has no array or no name; a range has infinite ends or
    ///                                  ends that are no numbers, or its least number is above its largest
    ///   COHORT_ERROR_NAME              a name comes twice
    ///   COHORT_ERROR_SHAPE, COHORT_ERROR_DTYPE  an array is not of two, or not float32
    pub fn cohort_calibration_create_from(
        ranges: *const cohort_arrays,
        out_calibration: *mut *mut cohort_calibration,
    ) -> *mut cohort_error;
    /// Frees it; what was bound with it goes on. NULL does nothing.
    ///
    /// - `calibration`: may be NULL.
    pub fn cohort_calibration_free(
        calibration: *mut cohort_calibration,
    );
    /// Runs a forward pass (is_train 0) of an executor on what its arguments hold, node by node, and notes the numbers of
    /// each value of float32. A batch or some hundred samples are usually enough. The executor's own monitor sees nothing of
    /// it.
    ///
    /// Returns: NULL, or an error of the forward pass, or COHORT_ERROR_EXECUTION: a value is infinite or no number (the error
    ///         names it). Nothing was noted then.
    pub fn cohort_calibration_observe(
        calibration: *mut cohort_calibration,
        executor: *mut cohort_executor,
    ) -> *mut cohort_error;
    /// The range that was found for a value.
    ///
    /// - `name`: As monitors have it: "conv0_output", or an argument. Values of one name have one range, which holds all.
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
    /// All ranges that were found, sorted by name: a float32 array of two for each, the least and the largest number. To be
    /// kept by cohort_arrays_save(), for cohort_calibration_create_from().
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE: nothing was observed.
    pub fn cohort_calibration_ranges(
        calibration: *const cohort_calibration,
        out_ranges: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
}
