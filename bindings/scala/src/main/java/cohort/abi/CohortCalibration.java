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

    /** Makes a calibration that has seen nothing. */
    public static native long cohort_calibration_create(int method, long[] out_calibration);

    /** Frees it; what was bound with it goes on. NULL does nothing. */
    public static native void cohort_calibration_free(long calibration);

    /**
     * Runs a forward pass (is_train 0) of an executor on what its arguments hold, node by node, and notes the numbers of each
     * value of float32. A batch or some hundred samples are usually enough. The executor's own monitor sees nothing of it.
     * Returns: NULL, or an error of the forward pass, or COHORT_ERROR_EXECUTION: a value is infinite or no number (the error
     *         names it). Nothing was noted then.
     */
    public static native long cohort_calibration_observe(long calibration, long executor);

    /**
     * The range that was found for a value. Out parameters may be NULL.
     * Returns: NULL, or COHORT_ERROR_STATE: nothing was observed; COHORT_ERROR_NAME: no such value was.
     */
    public static native long cohort_calibration_range(long calibration, String name, double[] out_low, double[] out_high);
}
