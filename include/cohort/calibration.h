/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file calibration.h
 * Inference in 8-bit integers. A calibration observes a float32 network on batches of the host, and notes the range of
 * each value. A network that is bound with it (compute_dtype COHORT_DTYPE_INT8, and calibration, in the options of
 * executors and groups) has convolutions and FullyConnected that take and give 8-bit integers, with int8 weights that
 * have a scale for each output channel, and sums in int32. Additions, ReLU and norms that follow a layer are fused into
 * it, and pooling passes 8-bit integers on. Arguments and outputs stay float32: the library converts them. Everything
 * else, and values without a range, are computed in float32; so are passes with is_train 1, and passes that a monitor
 * watches. On a CPU without units for products of 8-bit integers (AVX512-VNNI or AVX-VNNI) all is computed in float32,
 * and a message of level info says so.
 *
 * While a network is bound with a calibration, no other thread may use that calibration. Afterwards the network does
 * not need it any more.
 */
#ifndef COHORT_CALIBRATION_H
#define COHORT_CALIBRATION_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** How a calibration gets a range from the numbers that it observes. */
enum {
  COHORT_CALIBRATION_MIN_MAX = 0, /* the range from the least to the largest */
  COHORT_CALIBRATION_ENTROPY = 1  /* that range cut off where 8 bits keep most of the distribution */
};
typedef int32_t cohort_calibration_method;

/**
 * Makes a calibration that has observed nothing.
 *
 * @param method  COHORT_CALIBRATION_ constant.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_calibration_create(cohort_calibration_method method,
                                                                     cohort_calibration **out_calibration);

/**
 * Makes a calibration from ranges that another one found (cohort_calibration_ranges()), or from any others: so a
 * network is calibrated once, and bound in other processes. It cannot observe any more (COHORT_ERROR_STATE), since the
 * distribution of the numbers is not known.
 *
 * @param ranges  For each value, under its name, a float32 array of two numbers, the least and the largest. A range
 *                that does not contain 0 is widened to it. The call waits for the arrays and reads them; they remain
 *                the caller's.
 * @return NULL, or
 *   COHORT_ERROR_INVALID_ARGUMENT  the list is empty; an entry has no array or no name; a range has ends that are
 *                                  infinite or NaN, or its least number is above its largest
 *   COHORT_ERROR_NAME              a name comes twice
 *   COHORT_ERROR_SHAPE, COHORT_ERROR_DTYPE  an array is not of two elements, or not float32
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_calibration_create_from(const cohort_arrays *ranges,
                                                                          cohort_calibration **out_calibration);

/** Frees a calibration; networks bound with it are not affected. NULL does nothing. */
COHORT_API void cohort_calibration_free(cohort_calibration *calibration);

/**
 * Runs a forward pass (is_train 0) of an executor over the contents of its arguments, node by node, and notes the
 * numbers of each float32 value. A batch or some hundred samples are usually enough. The executor's own monitor is not
 * called.
 *
 * @return NULL, or an error of the forward pass, or COHORT_ERROR_EXECUTION: a value is infinite or NaN (the error names
 *   it). Nothing was noted then.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_calibration_observe(cohort_calibration *calibration,
                                                                      cohort_executor *executor);

/**
 * The range that was found for a value.
 *
 * @param name  As monitors report it: "conv0_output", or an argument. Values of the same name share one range.
 * @param out_low, out_high  @nullable
 * @return NULL, or COHORT_ERROR_STATE: nothing was observed; COHORT_ERROR_NAME: no such value was.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_calibration_range(const cohort_calibration *calibration,
                                                                    const char *name, double *out_low,
                                                                    double *out_high);

/**
 * All ranges that were found, sorted by name: for each a float32 array of two numbers, the least and the largest.
 * cohort_arrays_save() keeps them for cohort_calibration_create_from().
 *
 * @return NULL, or COHORT_ERROR_STATE: nothing was observed.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_calibration_ranges(const cohort_calibration *calibration,
                                                                     cohort_arrays **out_ranges);

COHORT_END_DECLS

#endif /* COHORT_CALIBRATION_H */
