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
     * "cpu_shared(0)"; nothing else is accepted, nor leading zeros. Whether the device exists is seen when it is first used.
     */
    public static native long cohort_context_parse(String text, Structs.Context out_context);

    /** Writes a context as text, "gpu(1)". */
    public static native long cohort_context_text(Structs.Context context, byte[] out_text, long capacity, long[] out_bytes);

    /** The bytes that one element of a dtype takes. Unknown: COHORT_ERROR_DTYPE. */
    public static native long cohort_dtype_bytes(int dtype, long[] out_bytes);

    /** Reads a dtype from its name: "float32", "bfloat16", "bool"... Unknown: COHORT_ERROR_DTYPE. */
    public static native long cohort_dtype_parse(String text, int[] out_dtype);

    /** The name of a dtype, which lives as long as the process. Unknown: COHORT_ERROR_DTYPE. */
    public static native long cohort_dtype_text(int dtype, long[] out_text);

    /**
     * The batch axis of a layout: where its first capital N stands. "NCHW": 0, "TNC": 1, no N: -1 (not batched), NULL: 0.
     */
    public static native long cohort_layout_batch_axis(String layout, int[] out_axis);

    /** How many devices of a type this machine has. */
    public static native long cohort_num_devices(int device_type, long[] out_num);

    /**
     * Waits until all work queued so far on all devices is done, whoever queued it.
     * Returns: NULL, or what failed of it (COHORT_ERROR_EXECUTION). That is not taken from the executor or group whose work it
     *   was: it comes out there as well, at the next call that waits for it.
     */
    public static native long cohort_wait_all();
}
