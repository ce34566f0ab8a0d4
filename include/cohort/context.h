/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file context.h
 * Contexts and dtypes as text, the devices of this machine, and layouts.
 */
#ifndef COHORT_CONTEXT_H
#define COHORT_CONTEXT_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/**
 * Reads a context from text: a device type, then an id from 0 in parentheses. "cpu(0)", "gpu(1)", "cpu_pinned(0)",
 * "cpu_shared(0)"; nothing else is accepted, nor leading zeros. Whether the device exists is seen when it is first used.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_context_parse(const char *text, cohort_context *out_context);

/**
 * Writes a context as text, "gpu(1)".
 *
 * @param out_text   `capacity` bytes, or NULL to ask for the size. 32 bytes are always enough.
 * @param out_bytes  The bytes needed, the ending zero included; may be NULL.
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

/**
 * Waits until all work queued so far on all devices is done, whoever queued it.
 *
 * @return NULL, or what failed of it (COHORT_ERROR_EXECUTION). That is not taken from the executor or group whose work it
 *   was: it comes out there as well, at the next call that waits for it.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_wait_all(void);

/** Reads a dtype from its name: "float32", "bfloat16", "bool"... Unknown: COHORT_ERROR_DTYPE. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_dtype_parse(const char *text, cohort_dtype *out_dtype);

/** The name of a dtype, which lives as long as the process. Unknown: COHORT_ERROR_DTYPE. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_dtype_text(cohort_dtype dtype, const char **out_text);

/** The bytes that one element of a dtype takes. Unknown: COHORT_ERROR_DTYPE. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_dtype_bytes(cohort_dtype dtype, size_t *out_bytes);

/**
 * The batch axis of a layout: where its first capital N stands. "NCHW": 0, "TNC": 1, no N: -1 (not batched), NULL: 0.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_layout_batch_axis(const char *layout, int32_t *out_axis);

COHORT_END_DECLS

#endif /* COHORT_CONTEXT_H */
