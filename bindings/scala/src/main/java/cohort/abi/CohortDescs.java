// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

/** The functions of cohort/descs.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortDescs {
    private CohortDescs() {
    }

    static {
        Loader.register(CohortDescs.class);
    }

    /** Appends a descriptor. */
    public static native long cohort_descs_add(long descs, String name, long[] shape, int num_axes, int dtype, String layout);

    /** Makes an empty list. */
    public static native long cohort_descs_create(long[] out_descs);

    /**
     * Finds a descriptor by name.
     * Returns: NULL, or COHORT_ERROR_NAME if there is none or more than one.
     */
    public static native long cohort_descs_find(long descs, String name, long[] out_index);

    /** Frees a list; NULL does nothing. */
    public static native void cohort_descs_free(long descs);

    /** Reads one descriptor. Each out parameter may be NULL. */
    public static native long cohort_descs_get(long descs, long index, long[] out_name, long[] out_shape, long capacity, int[] out_num_axes, int[] out_dtype, long[] out_layout);

    /** How many descriptors there are. */
    public static native long cohort_descs_num(long descs, long[] out_num);
}
