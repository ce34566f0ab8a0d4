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

    /**
     * Appends a descriptor.
     * @param name may be NULL. NULL or "": none; the descriptor is then taken by position where a function allows that.
     * @param shape num_axes lengths, none negative; 0: not known.
     * @param num_axes 0 to COHORT_MAX_AXES, or COHORT_UNKNOWN_SHAPE with shape NULL.
     * @param dtype COHORT_DTYPE_ constant. COHORT_DTYPE_NONE: float32 for data and labels of a group, else not known.
     * @param layout may be NULL. One letter for each axis; N is the batch axis (see cohort_layout_batch_axis()). Its length need not be num_axes. NULL: "NCHW", that is batch axis 0. Only groups read it.
     */
    public static native long cohort_descs_add(long descs, String name, long[] shape, int num_axes, int dtype, String layout);

    /** Makes an empty list. */
    public static native long cohort_descs_create(long[] out_descs);

    /**
     * Finds a descriptor by name.
     * Returns: NULL, or COHORT_ERROR_NAME if there is none or more than one.
     */
    public static native long cohort_descs_find(long descs, String name, long[] out_index);

    /**
     * Frees a list; NULL does nothing.
     * @param descs may be NULL.
     */
    public static native void cohort_descs_free(long descs);

    /**
     * Reads one descriptor.
     * @param index Below cohort_descs_num().
     * @param out_name may be NULL. The name, "" if none.
     * @param out_shape may be NULL. `capacity` lengths, the first num_axes of which are written; capacity must be large enough.
     * @param out_num_axes may be NULL. The number of axes, COHORT_UNKNOWN_SHAPE if the shape is not known.
     * @param out_dtype may be NULL. The dtype, COHORT_DTYPE_NONE if not given or not known.
     * @param out_layout may be NULL. The layout.
     */
    public static native long cohort_descs_get(long descs, long index, long[] out_name, long[] out_shape, long capacity, int[] out_num_axes, int[] out_dtype, long[] out_layout);

    /** How many descriptors there are. */
    public static native long cohort_descs_num(long descs, long[] out_num);
}
