/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file calibration.h
 * Inference in int8: a calibration watches a float32 network on batches of the host's, and notes in which range each
 * value lies. Whoever binds the network with it (compute_dtype COHORT_DTYPE_INT8, and calibration, in the options of
 * executors and groups) has convolutions and FullyConnected take and give bytes, with weights in int8 that have a scale
 * for each output channel, and sums in int32; additions, ReLU and norms that follow a layer are done with it, and
 * pooling passes bytes on. Arguments and outputs stay float32: the bytes are made from them. All else, and what has no
 * range, runs in float32; so do passes with is_train 1 and those that a monitor watches. Where a CPU has no units
 * for products of bytes (AVX512-VNNI or AVX-VNNI), all runs in float32, and a message of level info says so.
 * Binding with a calibration is a call on it: it is used by one thread at a time. What was bound needs it no more.
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

/**
 * Makes a calibration that has found the ranges which another one did (cohort_calibration_ranges()), or any others: a
 * network is calibrated once, and bound in other processes. Nothing is known of how the numbers lie in them, so it
 * observes no more (COHORT_ERROR_STATE).
 *
 * @param ranges  For each value by its name a float32 array of two: the least and the largest number. A range that does
 *                not hold 0 is widened to it. The arrays are waited for, and read; they remain the caller's.
 * @return NULL, or
 *   COHORT_ERROR_INVALID_ARGUMENT  the list is empty; an entry has no array or no name; a range has infinite ends or
 *                                  ends that are no numbers, or its least number is above its largest
 *   COHORT_ERROR_NAME              a name comes twice
 *   COHORT_ERROR_SHAPE, COHORT_ERROR_DTYPE  an array is not of two, or not float32
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_calibration_create_from(const cohort_arrays *ranges,
                                                                          cohort_calibration **out_calibration);

/** Frees it; what was bound with it goes on. NULL does nothing. */
COHORT_API void cohort_calibration_free(cohort_calibration *calibration);

/**
 * Runs a forward pass (is_train 0) of an executor on what its arguments hold, node by node, and notes the numbers of
 * each value of float32. A batch or some hundred samples are usually enough. The executor's own monitor sees nothing of
 * it.
 *
 * @return NULL, or an error of the forward pass, or COHORT_ERROR_EXECUTION: a value is infinite or no number (the error
 *         names it). Nothing was noted then.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_calibration_observe(cohort_calibration *calibration,
                                                                      cohort_executor *executor);

/**
 * The range that was found for a value.
 *
 * @param name  As monitors have it: "conv0_output", or an argument. Values of one name have one range, which holds all.
 * @param out_low, out_high  @nullable
 * @return NULL, or COHORT_ERROR_STATE: nothing was observed; COHORT_ERROR_NAME: no such value was.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_calibration_range(const cohort_calibration *calibration,
                                                                    const char *name, double *out_low,
                                                                    double *out_high);

/**
 * All ranges that were found, sorted by name: a float32 array of two for each, the least and the largest number. To be
 * kept by cohort_arrays_save(), for cohort_calibration_create_from().
 *
 * @return NULL, or COHORT_ERROR_STATE: nothing was observed.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_calibration_ranges(const cohort_calibration *calibration,
                                                                     cohort_arrays **out_ranges);

COHORT_END_DECLS

#endif /* COHORT_CALIBRATION_H */
