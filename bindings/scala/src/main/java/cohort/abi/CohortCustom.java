// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The functions of cohort/custom.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortCustom {
    private CohortCustom() {
    }

    static {
        Loader.register(CohortCustom.class);
    }

    /** COHORT_CUSTOM_OP_INIT for callers without a C compiler; struct_size is that of the caller's struct. */
    public static native void cohort_custom_op_init(Structs.CustomOp op, long struct_size);

    /**
     * Registers a custom operator, for the whole process.
     *
     * Threads: any.
     * Returns: NULL, or COHORT_ERROR_NAME if the name is taken, COHORT_ERROR_INVALID_ARGUMENT for a callback that is
     *   missing; then no callback is ever called.
     * @param op_type Its name; not empty.
     * @param op Copied.
     */
    public static native long cohort_custom_register(String op_type, Structs.CustomOp op);

    /**
     * Unregisters a custom operator. Nodes that exist are not affected.
     * Returns: NULL, or COHORT_ERROR_NAME if it is not registered.
     */
    public static native long cohort_custom_unregister(String op_type);
}
