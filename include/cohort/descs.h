/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file descs.h
 * Lists of descriptors: name, shape, dtype and layout each. They describe the data and labels of a group, known shapes
 * and dtypes for inference and binding, and what inference found.
 */
#ifndef COHORT_DESCS_H
#define COHORT_DESCS_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/** Makes an empty list. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_descs_create(cohort_descs **out_descs);

/** Frees a list; NULL does nothing. */
COHORT_API void cohort_descs_free(cohort_descs *descs);

/**
 * Appends a descriptor.
 *
 * @param name      @nullable NULL or "": none; the descriptor is then taken by position where a function allows that.
 * @param shape     num_axes lengths, none negative; 0: not known.
 * @param num_axes  0 to COHORT_MAX_AXES, or COHORT_UNKNOWN_SHAPE with shape NULL.
 * @param dtype     COHORT_DTYPE_ constant. COHORT_DTYPE_NONE: float32 for data and labels of a group, else not known.
 * @param layout    @nullable One letter for each axis; N is the batch axis (see cohort_layout_batch_axis()). Its length
 *                  need not be num_axes. NULL: "NCHW", that is batch axis 0. Only groups read it.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_descs_add(cohort_descs *descs, const char *name, const int64_t *shape,
                                                            int32_t num_axes, cohort_dtype dtype, const char *layout);

/** How many descriptors there are. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_descs_num(const cohort_descs *descs, size_t *out_num);

/**
 * Reads one descriptor.
 *
 * @param index         Below cohort_descs_num().
 * @param out_name      @nullable The name, "" if none.
 * @param out_shape     @nullable `capacity` lengths, the first num_axes of which are written; capacity must be large
 *                      enough.
 * @param out_num_axes  @nullable The number of axes, COHORT_UNKNOWN_SHAPE if the shape is not known.
 * @param out_dtype     @nullable The dtype, COHORT_DTYPE_NONE if not given or not known.
 * @param out_layout    @nullable The layout.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_descs_get(const cohort_descs *descs, size_t index,
                                                            const char **out_name, int64_t *out_shape, size_t capacity,
                                                            int32_t *out_num_axes, cohort_dtype *out_dtype,
                                                            const char **out_layout);

/**
 * Finds a descriptor by name.
 *
 * @return NULL, or COHORT_ERROR_NAME if there is none or more than one.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_descs_find(const cohort_descs *descs, const char *name,
                                                             size_t *out_index);

COHORT_END_DECLS

#endif /* COHORT_DESCS_H */
