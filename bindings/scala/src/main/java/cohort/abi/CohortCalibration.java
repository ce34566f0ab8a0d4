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
     * Makes a calibration that has observed nothing.
     * @param method COHORT_CALIBRATION_ constant.
     */
    public static native long cohort_calibration_create(int method, long[] out_calibration);

    /**
     * Makes a calibration from ranges that another one found (cohort_calibration_ranges()), or from any others: so a
     * network is calibrated once, and bound in other processes. It cannot observe any more (COHORT_ERROR_STATE), since the
     * distribution of the numbers is not known.
     * Returns: NULL, or
     *   COHORT_ERROR_INVALID_ARGUMENT  the list is empty; an entry has no array or no name; a range has ends that are
     *                                  infinite or NaN, or its least number is above its largest
     *   COHORT_ERROR_NAME              a name comes twice
     *   COHORT_ERROR_SHAPE, COHORT_ERROR_DTYPE  an array is not of two elements, or not float32
     * @param ranges For each value, under its name, a float32 array of two numbers, the least and the largest. A range that does not contain 0 is widened to it. The call waits for the arrays and reads them; they remain the caller's.
     */
    public static native long cohort_calibration_create_from(long ranges, long[] out_calibration);

    /**
     * Frees a calibration; networks bound with it are not affected. NULL does nothing.
     * @param calibration may be NULL.
     */
    public static native void cohort_calibration_free(long calibration);

    /**
     * Runs a forward pass (is_train 0) of an executor over the contents of its arguments, node by node, and notes the
     * numbers of each float32 value. A batch or some hundred samples are usually enough. The executor's own monitor is not
     * called.
     * Returns: NULL, or an error of the forward pass, or COHORT_ERROR_EXECUTION: a value is infinite or NaN (the error names
     *   it). Nothing was noted then.
     */
    public static native long cohort_calibration_observe(long calibration, long executor);

    /**
     * The range that was found for a value.
     * Returns: NULL, or COHORT_ERROR_STATE: nothing was observed; COHORT_ERROR_NAME: no such value was.
     * @param name As monitors report it: "conv0_output", or an argument. Values of the same name share one range.
     * @param out_low may be NULL.
     * @param out_high may be NULL.
     */
    public static native long cohort_calibration_range(long calibration, String name, double[] out_low, double[] out_high);

    /**
     * All ranges that were found, sorted by name: for each a float32 array of two numbers, the least and the largest.
     * cohort_arrays_save() keeps them for cohort_calibration_create_from().
     * Returns: NULL, or COHORT_ERROR_STATE: nothing was observed.
     */
    public static native long cohort_calibration_ranges(long calibration, long[] out_ranges);
}
