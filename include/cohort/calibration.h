/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file calibration.h
 * Inference in int8: a calibration watches a float32 network on batches of the host's, and notes in which range each
 * value lies. Whoever binds the network with it (compute_dtype COHORT_DTYPE_INT8, and calibration, in the options of
 * executors and groups) has convolutions and FullyConnected take and give bytes, with weights in int8 that have a scale
 * for each output channel, and sums in int32; additions, ReLU and norms that follow a layer are done with it, and
 * pooling passes bytes on. Arguments and outputs stay float32: the bytes are made from them. All else, and what has no
 * range, runs in float32; so do passes with is_train 1 and those that a monitor watches. Where a processor has no units
 * for products of bytes (AVX512-VNNI or AVX-VNNI), all runs in float32, and a message of level info says so.
 */
#ifndef COHORT_CALIBRATION_H
#define COHORT_CALIBRATION_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** What a calibration makes of the numbers that it sees. */
enum {
  COHORT_CALIBRATION_MIN_MAX = 0, /* the range from the least to the largest */
  COHORT_CALIBRATION_ENTROPY = 1  /* that range cut off where bytes tell most of how the numbers are distributed */
};
typedef int32_t cohort_calibration_method;

/**
 * Makes a calibration that has seen nothing.
 *
 * @param method  COHORT_CALIBRATION_ constant.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_calibration_create(cohort_calibration_method method,
                                                                     cohort_calibration **out_calibration);

/** Frees it; what was bound with it goes on. NULL does nothing. */
COHORT_API void cohort_calibration_free(cohort_calibration *calibration);

/**
 * Runs a forward pass (is_train 0) of an executor on what its arguments hold, node by node, and notes the numbers of each
 * value of float32. A batch or some hundred samples are usually enough. The executor's own monitor sees nothing of it.
 *
 * @return NULL, or an error of the forward pass, or COHORT_ERROR_EXECUTION: a value is infinite or no number (the error
 *         names it). Nothing was noted then.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_calibration_observe(cohort_calibration *calibration,
                                                                      cohort_executor *executor);

/**
 * The range that was found for a value. Out parameters may be NULL.
 *
 * @param name  As monitors have it: "conv0_output", or an argument. Values of one name have one range, which holds all.
 * @return NULL, or COHORT_ERROR_STATE: nothing was observed; COHORT_ERROR_NAME: no such value was.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_calibration_range(const cohort_calibration *calibration,
                                                                    const char *name, double *out_low,
                                                                    double *out_high);

COHORT_END_DECLS

#endif /* COHORT_CALIBRATION_H */
