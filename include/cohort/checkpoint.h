/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file checkpoint.h
 * Checkpoints in MXNet's two files: `PREFIX-symbol.json`, and `PREFIX-0007.params` with the parameters after epoch 7
 * under the names `arg:NAME` and `aux:NAME`.
 */
#ifndef COHORT_CHECKPOINT_H
#define COHORT_CHECKPOINT_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/**
 * Writes a checkpoint. Waits for the arrays. Each file appears whole under its name or not at all.
 *
 * @param prefix      Path and beginning of the files' names; the folder must be there.
 * @param epoch       From 0; written with four digits or more.
 * @param symbol      @nullable NULL: PREFIX-symbol.json is not written.
 * @param arg_params  Named arrays, such as cohort_group_copy_params() gives.
 * @param aux_params  @nullable The same for auxiliary states; NULL: none.
 * @return NULL, or
 *   COHORT_ERROR_INVALID_ARGUMENT  an entry has no name or no array
 *   COHORT_ERROR_IO                a file cannot be written (the error names it)
 *   COHORT_ERROR_EXECUTION         work that an array waits for failed
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_checkpoint_save(const char *prefix, int32_t epoch,
                                                                  const cohort_symbol *symbol,
                                                                  const cohort_arrays *arg_params,
                                                                  const cohort_arrays *aux_params);

/**
 * Reads a checkpoint. Its arrays are on cpu(0).
 *
 * Arrays under names that begin neither with `arg:` nor with `aux:` are left out. A file without arrays gives two empty
 * lists and a warning.
 *
 * @param out_symbol      @nullable NULL: PREFIX-symbol.json is not read.
 * @param out_arg_params  Names without `arg:`.
 * @param out_aux_params  Names without `aux:`.
 * @return NULL, or
 *   COHORT_ERROR_IO           a file cannot be read (the error names it)
 *   COHORT_ERROR_FORMAT       a file is damaged, or a name has no colon
 *   COHORT_ERROR_UNSUPPORTED  an array is sparse
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_checkpoint_load(const char *prefix, int32_t epoch,
                                                                  cohort_symbol **out_symbol,
                                                                  cohort_arrays **out_arg_params,
                                                                  cohort_arrays **out_aux_params);

/** @as cohort_checkpoint_load(), but the file of the arrays is mapped, as by cohort_arrays_map(). */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_checkpoint_map(const char *prefix, int32_t epoch,
                                                                 cohort_symbol **out_symbol,
                                                                 cohort_arrays **out_arg_params,
                                                                 cohort_arrays **out_aux_params);

COHORT_END_DECLS

#endif /* COHORT_CHECKPOINT_H */
