// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

extern "C" {
    /// Reads a checkpoint. Its arrays are on cpu(0).
    ///
    /// Arrays under names that begin neither with `arg:` nor with `aux:` are left out. A file without arrays gives two empty
    /// lists and a warning.
    ///
    /// - `out_symbol`: may be NULL. NULL: PREFIX-symbol.json is not read.
    /// - `out_arg_params`: Names without `arg:`.
    /// - `out_aux_params`: Names without `aux:`.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_IO           a file cannot be read (the error names it)
    ///   COHORT_ERROR_FORMAT       a file is damaged, or a name has no colon
    ///   COHORT_ERROR_UNSUPPORTED  an array is sparse
    pub fn cohort_checkpoint_load(
        prefix: *const c_char,
        epoch: i32,
        out_symbol: *mut *mut cohort_symbol,
        out_arg_params: *mut *mut cohort_arrays,
        out_aux_params: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// As cohort_checkpoint_load(), but the file of the arrays is mapped, as by cohort_arrays_map().
    ///
    /// - `out_symbol`: may be NULL. NULL: PREFIX-symbol.json is not read.
    /// - `out_arg_params`: Names without `arg:`.
    /// - `out_aux_params`: Names without `aux:`.
    pub fn cohort_checkpoint_map(
        prefix: *const c_char,
        epoch: i32,
        out_symbol: *mut *mut cohort_symbol,
        out_arg_params: *mut *mut cohort_arrays,
        out_aux_params: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// Writes a checkpoint. Waits for the arrays. Each file appears whole under its name or not at all.
    ///
    /// - `prefix`: Path and beginning of the files' names; the folder must be there.
    /// - `epoch`: From 0; written with four digits or more.
    /// - `symbol`: may be NULL. NULL: PREFIX-symbol.json is not written.
    /// - `arg_params`: Named arrays, such as cohort_group_copy_params() gives.
    /// - `aux_params`: may be NULL. The same for auxiliary states; NULL: none.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_INVALID_ARGUMENT  an entry has no name or no array
    ///   COHORT_ERROR_IO                a file cannot be written (the error names it)
    ///   COHORT_ERROR_EXECUTION         work that an array waits for failed
    pub fn cohort_checkpoint_save(
        prefix: *const c_char,
        epoch: i32,
        symbol: *const cohort_symbol,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
    ) -> *mut cohort_error;
}
