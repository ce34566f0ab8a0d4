// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The functions of cohort/checkpoint.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortCheckpoint {
    private CohortCheckpoint() {
    }

    static {
        Loader.register(CohortCheckpoint.class);
    }

    /**
     * Reads a checkpoint. Its arrays are on cpu(0).
     *
     * Arrays under names that begin neither with `arg:` nor with `aux:` are left out. A file without arrays gives two empty
     * lists and a warning.
     * Returns: NULL, or
     *   COHORT_ERROR_IO           a file cannot be read (the error names it)
     *   COHORT_ERROR_FORMAT       a file is damaged, or a name has no colon
     *   COHORT_ERROR_UNSUPPORTED  an array is sparse
     * @param out_symbol may be NULL. NULL: PREFIX-symbol.json is not read.
     * @param out_arg_params Names without `arg:`.
     * @param out_aux_params Names without `aux:`.
     */
    public static native long cohort_checkpoint_load(String prefix, int epoch, long[] out_symbol, long[] out_arg_params, long[] out_aux_params);

    /**
     * As cohort_checkpoint_load(), but the file of the arrays is mapped, as by cohort_arrays_map().
     * @param out_symbol may be NULL. NULL: PREFIX-symbol.json is not read.
     * @param out_arg_params Names without `arg:`.
     * @param out_aux_params Names without `aux:`.
     */
    public static native long cohort_checkpoint_map(String prefix, int epoch, long[] out_symbol, long[] out_arg_params, long[] out_aux_params);

    /**
     * Writes a checkpoint. Waits for the arrays. Each file appears whole under its name or not at all.
     * Returns: NULL, or
     *   COHORT_ERROR_INVALID_ARGUMENT  an entry has no name or no array
     *   COHORT_ERROR_IO                a file cannot be written (the error names it)
     *   COHORT_ERROR_EXECUTION         work that an array waits for failed
     * @param prefix Path and beginning of the files' names; the folder must be there.
     * @param epoch From 0; written with four digits or more.
     * @param symbol may be NULL. NULL: PREFIX-symbol.json is not written.
     * @param arg_params Named arrays, such as cohort_group_copy_params() gives.
     * @param aux_params may be NULL. The same for auxiliary states; NULL: none.
     */
    public static native long cohort_checkpoint_save(String prefix, int epoch, long symbol, long arg_params, long aux_params);
}
