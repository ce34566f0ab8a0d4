// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import java.nio.Buffer;

/** The functions of cohort/ndarray.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortNdarray {
    private CohortNdarray() {
    }

    static {
        Loader.register(CohortNdarray.class);
    }

    /**
     * Makes a view of row `index`, from 0, along axis 0, without that axis. The view of an element of a rank-1 array has
     * shape (1,).
     */
    public static native long cohort_ndarray_at(long array, long index, long[] out_array);

    /** The bytes that the elements take. */
    public static native long cohort_ndarray_bytes(long array, long[] out_bytes);

    /**
     * Makes a copy of another dtype on the same context, converting as cohort_ndarray_copy_to() does. Queued.
     */
    public static native long cohort_ndarray_cast(long array, int dtype, long[] out_array);

    /**
     * Joins one array or more along an axis into a new one on the first array's context. Queued.
     * Returns: NULL, or COHORT_ERROR_SHAPE (other lengths differ), COHORT_ERROR_DTYPE (dtypes differ).
     * @param axis Negative counts from the last.
     */
    public static native long cohort_ndarray_concat(long[] arrays, long num_arrays, int axis, long[] out_array);

    /** Reads the context. */
    public static native long cohort_ndarray_context(long array, Structs.Context out_context);

    /**
     * Makes a copy on a context. Queued.
     * @param context may be NULL.
     */
    public static native long cohort_ndarray_copy(long array, Structs.Context context, long[] out_array);

    /**
     * Copies an array into another of the same shape, on any contexts, converting to its dtype. Queued.
     *
     * Copying an array onto itself does nothing; arrays that overlap otherwise give unspecified contents. Different shapes:
     * COHORT_ERROR_SHAPE.
     */
    public static native long cohort_ndarray_copy_to(long source, long target);

    /**
     * The address of the elements of an array on a CPU context, row-major. Waits for the work that writes the array.
     *
     * The address is valid while any reference on the array exists; for a view it is that of the view's first element. Work
     * that is queued afterwards sees what the caller writes there. The caller must not write while work that uses the array
     * is queued.
     * Returns: NULL, or COHORT_ERROR_UNSUPPORTED on other contexts, COHORT_ERROR_EXECUTION.
     */
    public static native long cohort_ndarray_data(long array, long[] out_data);

    /** Reads the dtype. */
    public static native long cohort_ndarray_dtype(long array, int[] out_dtype);

    /**
     * Makes an array whose contents are unspecified until written.
     * @param context may be NULL.
     */
    public static native long cohort_ndarray_empty(long[] shape, int num_axes, int dtype, Structs.Context context, long[] out_array);

    /** Sets all elements to a value, converted to the dtype. */
    public static native long cohort_ndarray_fill(long array, double value);

    /** As cohort_ndarray_fill_uniform(), normally distributed. */
    public static native long cohort_ndarray_fill_normal(long array, double mean, double deviation, long seed);

    /**
     * Sets all elements to independent random numbers, uniformly distributed from low up to high; high itself occurs only
     * by rounding to the dtype. The same seed, shape and dtype give the same numbers on every context. Float dtypes only,
     * else COHORT_ERROR_DTYPE.
     */
    public static native long cohort_ndarray_fill_uniform(long array, double low, double high, long seed);

    /**
     * Frees a handle, not the memory that others hold; NULL does nothing. Does not wait.
     * @param array may be NULL.
     */
    public static native void cohort_ndarray_free(long array);

    /**
     * Makes an array of another library's memory: without a copy if it is dense and row-major, else with one.
     * Returns: NULL, or
     *   COHORT_ERROR_UNSUPPORTED  another major version, or elements of a kind or lanes that no dtype here has
     *   COHORT_ERROR_DEVICE       a device that no backend here serves
     * @param managed A `DLManagedTensorVersioned *` of major version 1 whose contents are ready. The library owns it when this call succeeds, and calls its deleter as a cohort_deleter_fn, when the last reference is gone. After an error it is still the caller's. A tensor flagged read-only is copied.
     */
    public static native long cohort_ndarray_from_dlpack(long managed, long[] out_array);

    /**
     * As cohort_ndarray_from_dlpack(), for a `DLManagedTensor *`, which has neither a version nor a read-only flag.
     * @param managed A `DLManagedTensorVersioned *` of major version 1 whose contents are ready. The library owns it when this call succeeds, and calls its deleter as a cohort_deleter_fn, when the last reference is gone. After an error it is still the caller's. A tensor flagged read-only is copied.
     */
    public static native long cohort_ndarray_from_dlpack_unversioned(long managed, long[] out_array);

    /**
     * Makes an array with a copy of host memory.
     * @param data The elements in the array's dtype, row-major.
     * @param bytes The size of data: exactly that of the array, else COHORT_ERROR_SHAPE.
     * @param context may be NULL.
     */
    public static native long cohort_ndarray_from_host(Buffer data, long bytes, long[] shape, int num_axes, int dtype, Structs.Context context, long[] out_array);

    /**
     * Makes an array of one value, converted to its dtype.
     * @param context may be NULL.
     */
    public static native long cohort_ndarray_full(long[] shape, int num_axes, int dtype, Structs.Context context, double value, long[] out_array);

    /**
     * Copies all elements to host memory, waiting for the work that writes them.
     * Returns: NULL, or COHORT_ERROR_EXECUTION.
     * @param bytes The size of out_data: exactly cohort_ndarray_bytes(), else COHORT_ERROR_SHAPE.
     */
    public static native long cohort_ndarray_read(long array, Buffer out_data, long bytes);

    /**
     * Makes a view of the same memory with another shape, which must have as many elements, else COHORT_ERROR_SHAPE.
     * @param shape One length may be -1: it follows from the others.
     */
    public static native long cohort_ndarray_reshape(long array, long[] shape, int num_axes, long[] out_array);

    /**
     * As cohort_ndarray_reshape(), but a shape of fewer elements is allowed too and views the first of them. No -1.
     * @param shape One length may be -1: it follows from the others.
     */
    public static native long cohort_ndarray_reshape_prefix(long array, long[] shape, int num_axes, long[] out_array);

    /**
     * Reads the shape.
     * @param out_shape may be NULL. `capacity` lengths, the first num_axes of which are written; capacity must be large enough.
     * @param out_num_axes may be NULL. The number of axes.
     */
    public static native long cohort_ndarray_shape(long array, long[] out_shape, long capacity, int[] out_num_axes);

    /** Makes a second handle on the same array, for example to keep one that a callback was lent. */
    public static native long cohort_ndarray_share(long array, long[] out_array);

    /** The number of elements: the product of the shape, 1 for a scalar. */
    public static native long cohort_ndarray_size(long array, long[] out_size);

    /**
     * Makes a view of rows [begin, end) along axis 0: 0 &lt;= begin &lt;= end &lt;= length. A scalar has no rows.
     */
    public static native long cohort_ndarray_slice(long array, long begin, long end, long[] out_array);

    /**
     * Takes the range [begin, end) along an axis: a view if that is axis 0, else a copy.
     * @param axis Negative counts from the last.
     * @param end At most the length and above begin, which is not negative; INT64_MAX: the length.
     */
    public static native long cohort_ndarray_slice_axis(long array, int axis, long begin, long end, long[] out_array);

    /**
     * Lends an array to another library as a DLPack `DLManagedTensorVersioned` of version 1. Waits for the work that writes
     * it.
     * @param out_managed A `DLManagedTensorVersioned *`, the caller's until its deleter is called. It keeps the memory alive, and its deleter may be called on any thread, even after every handle is freed. It is not a handle: cohort_live_handles() does not count it.
     */
    public static native long cohort_ndarray_to_dlpack(long array, long[] out_managed);

    /**
     * As cohort_ndarray_to_dlpack(), for libraries that know DLPack before its version 1 (NumPy before 2.1, PyTorch unless
     * asked for more): out_managed is a `DLManagedTensor *`.
     * @param out_managed A `DLManagedTensorVersioned *`, the caller's until its deleter is called. It keeps the memory alive, and its deleter may be called on any thread, even after every handle is freed. It is not a handle: cohort_live_handles() does not count it.
     */
    public static native long cohort_ndarray_to_dlpack_unversioned(long array, long[] out_managed);

    /** Waits for the work that writes an array. COHORT_ERROR_EXECUTION if it failed. */
    public static native long cohort_ndarray_wait(long array);

    /**
     * Makes an array that uses the caller's host memory, without a copy.
     *
     * Queued work and views hold references: the memory must stay until the deleter is called, and keep its contents while
     * work that reads it is queued.
     * @param data may be NULL. Aligned to the size of an element; as many bytes as the shape takes. NULL only if that is 0.
     * @param context may be NULL. A CPU context.
     * @param deleter may be NULL. Called when the last reference is gone, but not if this call fails. NULL: nothing is called.
     * @param user_data may be NULL. Passed to the deleter.
     */
    public static native long cohort_ndarray_wrap(long data, long[] shape, int num_axes, int dtype, Structs.Context context, Callbacks.DeleterFn deleter, long user_data, long[] out_array);

    /**
     * Copies host memory to all elements, after the work that uses them. When it returns, data is no longer needed.
     * @param bytes The size of data: exactly cohort_ndarray_bytes(), else COHORT_ERROR_SHAPE.
     */
    public static native long cohort_ndarray_write(long array, Buffer data, long bytes);

    /**
     * Makes an array of zeros.
     * @param context may be NULL.
     */
    public static native long cohort_ndarray_zeros(long[] shape, int num_axes, int dtype, Structs.Context context, long[] out_array);
}
