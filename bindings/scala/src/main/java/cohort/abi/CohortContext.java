// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The functions of cohort/context.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortContext {
    private CohortContext() {
    }

    static {
        Loader.register(CohortContext.class);
    }

    /**
     * Reads a context from text: a device type, then an id from 0 in parentheses. "cpu(0)", "gpu(1)", "cpu_pinned(0)",
     * "cpu_shared(0)". No other text is accepted, and no leading zeros. Whether the device exists is checked when it is
     * first used.
     */
    public static native long cohort_context_parse(String text, Structs.Context out_context);

    /**
     * Writes a context as text, "gpu(1)".
     * @param context may be NULL.
     * @param out_text may be NULL. `capacity` bytes; 32 are always enough. NULL: only the size is wanted.
     * @param out_bytes may be NULL. The bytes needed, the ending zero included.
     */
    public static native long cohort_context_text(Structs.Context context, byte[] out_text, long capacity, long[] out_bytes);

    /**
     * Limits how much of a context's memory this process takes; 0: no limit. An allocation beyond the limit fails with
     * COHORT_ERROR_OUT_OF_MEMORY, in queued work, too. Memory that is in use already stays, even if it is more.
     * @param context may be NULL.
     */
    public static native long cohort_device_limit_memory(Structs.Context context, long bytes);

    /**
     * How much memory of a context is in use. Pinned and shared host memory count as memory of cpu(id). Work that has just
     * been waited for may still hold some memory for a moment.
     *
     * Errors: COHORT_ERROR_DEVICE where there is no such device.
     * @param context may be NULL.
     */
    public static native long cohort_device_memory(Structs.Context context, Structs.DeviceMemoryInfo out_info);

    /**
     * Sets the peak of a context to what is in use now.
     * @param context may be NULL.
     */
    public static native long cohort_device_reset_peak_memory(Structs.Context context);

    /** The bytes that one element of a dtype takes. Unknown: COHORT_ERROR_DTYPE. */
    public static native long cohort_dtype_bytes(int dtype, long[] out_bytes);

    /** Reads a dtype from its name: "float32", "bfloat16", "bool"... Unknown: COHORT_ERROR_DTYPE. */
    public static native long cohort_dtype_parse(String text, int[] out_dtype);

    /** The name of a dtype, which lives as long as the process. Unknown: COHORT_ERROR_DTYPE. */
    public static native long cohort_dtype_text(int dtype, long[] out_text);

    /**
     * The batch axis of a layout: where its first capital N stands. "NCHW": 0, "TNC": 1, no N: -1 (not batched).
     * @param layout may be NULL. NULL: the axis is 0.
     */
    public static native long cohort_layout_batch_axis(String layout, int[] out_axis);

    /**
     * How many devices of a type this machine has.
     * @param out_num For GPUs the number that the backend finds, 0 without backend or GPU. For the CPU types the number of processors this process may use, though any id from 0 is valid.
     */
    public static native long cohort_num_devices(int device_type, long[] out_num);

    /**
     * Waits until all work that any caller has queued so far on any device is done.
     * Returns: NULL, or COHORT_ERROR_EXECUTION if some of the work failed. The executor or group whose work it was reports
     *   the error as well, at the next call that waits for it.
     */
    public static native long cohort_wait_all();
}
