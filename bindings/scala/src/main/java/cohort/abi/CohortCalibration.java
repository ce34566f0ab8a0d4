// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The functions of cohort/calibration.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortCalibration {
    private CohortCalibration() {
    }

    static {
        Loader.register(CohortCalibration.class);
    }

    /**
     * Makes a calibration that has seen nothing.
     * @param method COHORT_CALIBRATION_ constant.
     */
    public static native long cohort_calibration_create(int method, long[] out_calibration);

    /**
     * Makes a calibration that has found the ranges which another one did (cohort_calibration_ranges()), or any others: a
     * network is calibrated once, and bound in other processes. Nothing is known of how the numbers lie in them, so it
     * observes no more (COHORT_ERROR_STATE).
     * Returns: NULL, or
     *   COHORT_ERROR_INVALID_ARGUMENT  the list is empty; an entry has no array or no name; a range has infinite ends or
     *                                  ends that are no numbers, or its least number is above its largest
     *   COHORT_ERROR_NAME              a name comes twice
     *   COHORT_ERROR_SHAPE, COHORT_ERROR_DTYPE  an array is not of two, or not float32
     * @param ranges For each value by its name a float32 array of two: the least and the largest number. A range that does not hold 0 is widened to it. The arrays are waited for, and read; they remain the caller's.
     */
    public static native long cohort_calibration_create_from(long ranges, long[] out_calibration);

    /**
     * Frees it; what was bound with it goes on. NULL does nothing.
     * @param calibration may be NULL.
     */
    public static native void cohort_calibration_free(long calibration);

    /**
     * Runs a forward pass (is_train 0) of an executor on what its arguments hold, node by node, and notes the numbers of
     * each value of float32. A batch or some hundred samples are usually enough. The executor's own monitor sees nothing of
     * it.
     * Returns: NULL, or an error of the forward pass, or COHORT_ERROR_EXECUTION: a value is infinite or no number (the error
     *         names it). Nothing was noted then.
     */
    public static native long cohort_calibration_observe(long calibration, long executor);

    /**
     * The range that was found for a value.
     * Returns: NULL, or COHORT_ERROR_STATE: nothing was observed; COHORT_ERROR_NAME: no such value was.
     * @param name As monitors have it: "conv0_output", or an argument. Values of one name have one range, which holds all.
     * @param out_low may be NULL.
     * @param out_high may be NULL.
     */
    public static native long cohort_calibration_range(long calibration, String name, double[] out_low, double[] out_high);

    /**
     * All ranges that were found, sorted by name: a float32 array of two for each, the least and the largest number. To be
     * kept by cohort_arrays_save(), for cohort_calibration_create_from().
     * Returns: NULL, or COHORT_ERROR_STATE: nothing was observed.
     */
    public static native long cohort_calibration_ranges(long calibration, long[] out_ranges);
}
