/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ndarray.h
 * Arrays: dense, row-major, on one context. A handle holds a reference; a view shares the memory of its array and keeps
 * it alive.
 *
 * `shape, num_axes` are the lengths of the axes, at most COHORT_MAX_AXES of them, each 0 or more; an array without axes
 * is a scalar. `context` NULL is cpu(0). Host memory is in the byte order of the host. All functions with a context can
 * return COHORT_ERROR_DEVICE (no such device, or no backend for it), those that take a shape COHORT_ERROR_SHAPE (a
 * negative length, too many elements), those that take a dtype COHORT_ERROR_DTYPE (an unknown one). Indices and ranges
 * are not clipped: outside the array they are COHORT_ERROR_INVALID_ARGUMENT.
 *
 * Conversions. A number becomes a float dtype by rounding to the nearest value, halves to even; numbers of other dtypes
 * become float16 or bfloat16 by way of float32, so that they can be rounded twice. Floats become integers by truncation
 * toward zero (unspecified for NaN and out of range). Numbers become bool by != 0.
 */
#ifndef COHORT_NDARRAY_H
#define COHORT_NDARRAY_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** Makes an array of zeros. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_zeros(const int64_t *shape, int32_t num_axes,
                                                                cohort_dtype dtype, const cohort_context *context,
                                                                cohort_ndarray **out_array);

/** Makes an array whose contents are unspecified until written. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_empty(const int64_t *shape, int32_t num_axes,
                                                                cohort_dtype dtype, const cohort_context *context,
                                                                cohort_ndarray **out_array);

/** Makes an array of one value, converted to its dtype. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_full(const int64_t *shape, int32_t num_axes,
                                                               cohort_dtype dtype, const cohort_context *context,
                                                               double value, cohort_ndarray **out_array);

/**
 * Makes an array with a copy of host memory.
 *
 * @param data   The elements in the array's dtype, row-major.
 * @param bytes  The size of data: exactly that of the array, else COHORT_ERROR_SHAPE.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_from_host(const void *data, size_t bytes,
                                                                    const int64_t *shape, int32_t num_axes,
                                                                    cohort_dtype dtype, const cohort_context *context,
                                                                    cohort_ndarray **out_array);

/**
 * Tells the owner of wrapped memory that the library is done with it.
 *
 * Called once, at the end of a call of the library, on the thread that made the call: nothing else in the library waits
 * for it. It must not call the library.
 */
typedef void (*cohort_deleter_fn)(void *data, void *user_data);

/**
 * Makes an array that uses the caller's host memory, without a copy.
 *
 * Queued work and views hold references: the memory must stay until the deleter is called, and keep its contents while
 * work that reads it is queued.
 *
 * @param data       @nullable Aligned to the size of an element; as many bytes as the shape takes. NULL only if that is
 *                   0.
 * @param context    A CPU context.
 * @param deleter    @nullable Called when the last reference is gone, but not if this call fails. NULL: nothing is
 *                   called.
 * @param user_data  Passed to the deleter.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_wrap(void *data, const int64_t *shape, int32_t num_axes,
                                                               cohort_dtype dtype, const cohort_context *context,
                                                               cohort_deleter_fn deleter, void *user_data,
                                                               cohort_ndarray **out_array);

/** Frees a handle, not the memory that others hold; NULL does nothing. Does not wait. */
COHORT_API void cohort_ndarray_free(cohort_ndarray *array);

/** Makes a second handle on the same array, for example to keep one that a callback was lent. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_share(const cohort_ndarray *array,
                                                                cohort_ndarray **out_array);

/**
 * Reads the shape.
 *
 * @param out_shape     @nullable `capacity` lengths, the first num_axes of which are written; capacity must be large
 *                      enough.
 * @param out_num_axes  @nullable The number of axes.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_shape(const cohort_ndarray *array, int64_t *out_shape,
                                                                size_t capacity, int32_t *out_num_axes);

/** Reads the dtype. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_dtype(const cohort_ndarray *array, cohort_dtype *out_dtype);

/** Reads the context. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_context(const cohort_ndarray *array,
                                                                  cohort_context *out_context);

/** The number of elements: the product of the shape, 1 for a scalar. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_size(const cohort_ndarray *array, int64_t *out_size);

/** The bytes that the elements take. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_bytes(const cohort_ndarray *array, size_t *out_bytes);

/**
 * The address of the elements of an array on a CPU context, row-major. Waits for the work that writes the array.
 *
 * The address is valid while any reference on the array exists; for a view it is that of the view's first element. Work
 * that is queued afterwards sees what the caller writes there. The caller must not write while work that uses the array
 * is queued.
 *
 * @return NULL, or COHORT_ERROR_UNSUPPORTED on other contexts, COHORT_ERROR_EXECUTION.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_data(const cohort_ndarray *array, void **out_data);

/**
 * Copies all elements to host memory, waiting for the work that writes them.
 *
 * @param bytes  The size of out_data: exactly cohort_ndarray_bytes(), else COHORT_ERROR_SHAPE.
 * @return NULL, or COHORT_ERROR_EXECUTION.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_read(const cohort_ndarray *array, void *out_data,
                                                               size_t bytes);

/**
 * Copies host memory to all elements, after the work that uses them. When it returns, data is no longer needed.
 *
 * @param bytes  The size of data: exactly cohort_ndarray_bytes(), else COHORT_ERROR_SHAPE.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_write(cohort_ndarray *array, const void *data, size_t bytes);

/** Waits for the work that writes an array. COHORT_ERROR_EXECUTION if it failed. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_wait(const cohort_ndarray *array);

/** Sets all elements to a value, converted to the dtype. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_fill(cohort_ndarray *array, double value);

/**
 * Sets all elements to independent random numbers, uniformly distributed from low up to high; high itself occurs only
 * by rounding to the dtype. The same seed, shape and dtype give the same numbers on every context. Float dtypes only,
 * else COHORT_ERROR_DTYPE.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_fill_uniform(cohort_ndarray *array, double low, double high,
                                                                       uint64_t seed);

/** @as cohort_ndarray_fill_uniform(), normally distributed. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_fill_normal(cohort_ndarray *array, double mean,
                                                                      double deviation, uint64_t seed);

/**
 * Copies an array into another of the same shape, on any contexts, converting to its dtype. Queued.
 *
 * Copying an array onto itself does nothing; arrays that overlap otherwise give unspecified contents. Different shapes:
 * COHORT_ERROR_SHAPE.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_copy_to(const cohort_ndarray *source, cohort_ndarray *target);

/** Makes a copy on a context. Queued. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_copy(const cohort_ndarray *array,
                                                               const cohort_context *context,
                                                               cohort_ndarray **out_array);

/** Makes a copy of another dtype on the same context, converting as cohort_ndarray_copy_to() does. Queued. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_cast(const cohort_ndarray *array, cohort_dtype dtype,
                                                               cohort_ndarray **out_array);

/** Makes a view of rows [begin, end) along axis 0: 0 <= begin <= end <= length. A scalar has no rows. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_slice(const cohort_ndarray *array, int64_t begin, int64_t end,
                                                                cohort_ndarray **out_array);

/**
 * Makes a view of row `index`, from 0, along axis 0, without that axis. The view of an element of a rank-1 array has
 * shape (1,).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_at(const cohort_ndarray *array, int64_t index,
                                                             cohort_ndarray **out_array);

/**
 * Takes the range [begin, end) along an axis: a view if that is axis 0, else a copy.
 *
 * @param axis  Negative counts from the last.
 * @param end   At most the length and above begin, which is not negative; INT64_MAX: the length.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_slice_axis(const cohort_ndarray *array, int32_t axis,
                                                                     int64_t begin, int64_t end,
                                                                     cohort_ndarray **out_array);

/**
 * Makes a view of the same memory with another shape, which must have as many elements, else COHORT_ERROR_SHAPE.
 *
 * @param shape  One length may be -1: it follows from the others.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_reshape(const cohort_ndarray *array, const int64_t *shape,
                                                                  int32_t num_axes, cohort_ndarray **out_array);

/** @as cohort_ndarray_reshape(), but a shape of fewer elements is allowed too and views the first of them. No -1. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_reshape_prefix(const cohort_ndarray *array,
                                                                         const int64_t *shape, int32_t num_axes,
                                                                         cohort_ndarray **out_array);

/**
 * Joins one array or more along an axis into a new one on the first array's context. Queued.
 *
 * @param axis  Negative counts from the last.
 * @return NULL, or COHORT_ERROR_SHAPE (other lengths differ), COHORT_ERROR_DTYPE (dtypes differ).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_concat(cohort_ndarray *const *arrays, size_t num_arrays,
                                                                 int32_t axis, cohort_ndarray **out_array);

/**
 * Lends an array to another library as a DLPack `DLManagedTensorVersioned` of version 1. Waits for the work that writes
 * it.
 *
 * @param out_managed  A `DLManagedTensorVersioned *`, the caller's until its deleter is called. It keeps the memory
 *                     alive, and its deleter may be called on any thread, even after every handle is freed. It is not a
 *                     handle: cohort_live_handles() does not count it.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_to_dlpack(const cohort_ndarray *array, void **out_managed);

/**
 * Makes an array of another library's memory: without a copy if it is dense and row-major, else with one.
 *
 * @param managed  A `DLManagedTensorVersioned *` of major version 1 whose contents are ready. The library owns it when
 *                 this call succeeds, and calls its deleter as a cohort_deleter_fn, when the last reference is
 *                 gone. After an error it is still the caller's. A tensor flagged read-only is copied.
 * @return NULL, or
 *   COHORT_ERROR_UNSUPPORTED  another major version, or elements of a kind or lanes that no dtype here has
 *   COHORT_ERROR_DEVICE       a device that no backend here serves
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_from_dlpack(void *managed, cohort_ndarray **out_array);

/**
 * @as cohort_ndarray_to_dlpack(), for libraries that know DLPack before its version 1 (NumPy before 2.1, PyTorch unless
 * asked for more): out_managed is a `DLManagedTensor *`.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_to_dlpack_unversioned(const cohort_ndarray *array,
                                                                                void **out_managed);

/** @as cohort_ndarray_from_dlpack(), for a `DLManagedTensor *`, which has neither a version nor a read-only flag. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_ndarray_from_dlpack_unversioned(void *managed,
                                                                                  cohort_ndarray **out_array);

COHORT_END_DECLS

#endif /* COHORT_NDARRAY_H */
