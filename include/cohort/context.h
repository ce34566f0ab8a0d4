/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file context.h
 * Contexts and dtypes as text, the devices of this machine, and layouts.
 *
 * On a GPU, executors and groups replay their forward passes, backward passes and updates as CUDA graphs from the third
 * time on, except for steps in which the host takes part. After a new binding they are recorded anew. Results are bit
 * for bit the same as without graphs, which the environment variable COHORT_CUDA_GRAPHS=0 selects. Work that cannot be
 * recorded runs step by step, and a message of level COHORT_LOG_INFO says so.
 */
#ifndef COHORT_CONTEXT_H
#define COHORT_CONTEXT_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/**
 * Reads a context from text: a device type, then an id from 0 in parentheses. "cpu(0)", "gpu(1)", "cpu_pinned(0)",
 * "cpu_shared(0)". No other text is accepted, and no leading zeros. Whether the device exists is checked when it is
 * first used.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_context_parse(const char *text, cohort_context *out_context);

/**
 * Writes a context as text, "gpu(1)".
 *
 * @param out_text   @nullable `capacity` bytes; 32 are always enough. NULL: only the size is wanted.
 * @param out_bytes  @nullable The bytes needed, the ending zero included.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_context_text(const cohort_context *context, char *out_text,
                                                               size_t capacity, size_t *out_bytes);

/**
 * How many devices of a type this machine has.
 *
 * @param out_num  For GPUs the number that the backend finds, 0 without backend or GPU. For the CPU types the number of
 *                 processors this process may use, though any id from 0 is valid.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_num_devices(cohort_device_type device_type, size_t *out_num);

/** The memory of a context that this process uses. struct_size is set by the caller. */
typedef struct cohort_device_memory_info {
  size_t struct_size;  /* sizeof(cohort_device_memory_info) where the caller was compiled */
  size_t used_bytes;   /* of arrays, and working memory of executors, groups and operators */
  size_t peak_bytes;   /* the largest used_bytes since the last reset */
  size_t cached_bytes; /* kept for later use besides: a GPU's driver does not give it to other processes */
  size_t limit_bytes;  /* set by cohort_device_limit_memory(); 0: none */
} cohort_device_memory_info;

#define COHORT_DEVICE_MEMORY_INFO_INIT \
  { sizeof(cohort_device_memory_info), 0, 0, 0, 0 }

/**
 * How much memory of a context is in use. Pinned and shared host memory count as memory of cpu(id). Work that has just
 * been waited for may still hold some memory for a moment.
 *
 * Errors: COHORT_ERROR_DEVICE where there is no such device.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_device_memory(const cohort_context *context,
                                                                cohort_device_memory_info *out_info);

/** Sets the peak of a context to what is in use now. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_device_reset_peak_memory(const cohort_context *context);

/**
 * Limits how much of a context's memory this process takes; 0: no limit. An allocation beyond the limit fails with
 * COHORT_ERROR_OUT_OF_MEMORY, in queued work, too. Memory that is in use already stays, even if it is more.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_device_limit_memory(const cohort_context *context, size_t bytes);

/**
 * Waits until all work that any caller has queued so far on any device is done.
 *
 * @return NULL, or COHORT_ERROR_EXECUTION if some of the work failed. The executor or group whose work it was reports
 *   the error as well, at the next call that waits for it.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_wait_all(void);

/** Reads a dtype from its name: "float32", "bfloat16", "bool"... Unknown: COHORT_ERROR_DTYPE. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_dtype_parse(const char *text, cohort_dtype *out_dtype);

/** The name of a dtype, which lives as long as the process. Unknown: COHORT_ERROR_DTYPE. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_dtype_text(cohort_dtype dtype, const char **out_text);

/** The bytes that one element of a dtype takes. Unknown: COHORT_ERROR_DTYPE. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_dtype_bytes(cohort_dtype dtype, size_t *out_bytes);

/**
 * The batch axis of a layout: where its first capital N stands. "NCHW": 0, "TNC": 1, no N: -1 (not batched).
 *
 * @param layout  @nullable NULL: the axis is 0.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_layout_batch_axis(const char *layout, int32_t *out_axis);

COHORT_END_DECLS

#endif /* COHORT_CONTEXT_H */
