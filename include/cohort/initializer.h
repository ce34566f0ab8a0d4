/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file initializer.h
 * Initializers: rules that fill parameters before training. The same seed and names give the same numbers.
 */
#ifndef COHORT_INITIALIZER_H
#define COHORT_INITIALIZER_H

#include "cohort/types.h"

COHORT_BEGIN_DECLS

/**
 * Makes an initializer.
 *
 *   "zero" ("zeros"), "one" ("ones")
 *   "constant"    value (0): a number, or lists of numbers, "[[1, 2], [3, 4]]", of the array's shape, or of a shape
 *                 that is broadcast to it
 *   "uniform"     scale (0.07): uniformly distributed in [-scale, scale)
 *   "normal"      sigma (0.01)
 *   "xavier"      rnd_type ("uniform" or "gaussian"), factor_type ("avg", "in" or "out"), magnitude (3)
 *   "msraprelu"   factor_type ("avg"), slope (0.25)
 *   "orthogonal"  scale (1.414), rand_type ("uniform" or "normal")
 *   "bilinear"    the kernel of a layer that enlarges images; four axes
 *   "lstmbias"    forget_bias (1): value of the second of four gates; the others are 0
 *   "fusedrnn"    packed parameters of RNN: num_hidden, num_layers, mode, bidirectional ("False"), forget_bias (1);
 *                 each gate's matrix by init, an initializer as in `__init__`; if `__init__` names none: by the
 *                 initializer that cohort_initializer_apply() was called on
 *
 * Where several words are given, the first is the default.
 *
 * @param name  One of these, in any case of letters.
 * @param keys  Settings as text, in MXNet's names.
 * @param seed  Seed of the random initializers.
 * @return NULL, or COHORT_ERROR_NAME (no such initializer or setting), COHORT_ERROR_INVALID_ARGUMENT (a value).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_initializer_create(const char *name, const char *const *keys,
                                                                     const char *const *values, size_t num_attrs,
                                                                     uint64_t seed,
                                                                     cohort_initializer **out_initializer);

/** Frees a handle; NULL does nothing. */
COHORT_API void cohort_initializer_free(cohort_initializer *initializer);

/**
 * Fills arrays by name.
 *
 * A variable's `__init__` attribute comes first: a name, or as JSON `["name", {parameters}]` or `{"initializer":
 * "name", parameters}`. Else the end of the name decides: `weight` is filled by this initializer; `bias`, `beta`,
 * `moving_mean`, `running_mean`, `moving_inv_var`, `moving_avg` and `min` with 0; `gamma`, `moving_var`, `running_var`
 * and `max` with 1.
 *
 * @param symbol  @nullable The symbol that has the variables; NULL: only names decide.
 * @param arrays  Named arrays, such as cohort_group_arrays() gives for COHORT_GROUP_PARAMS; written. Entries without
 *                arrays are left out.
 * @return NULL, or, with nothing written,
 *   COHORT_ERROR_NAME   no rule applies to a name
 *   COHORT_ERROR_SHAPE  a weight with too few axes for the rule
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_initializer_apply(const cohort_initializer *initializer,
                                                                    const cohort_symbol *symbol,
                                                                    const cohort_arrays *arrays);

/**
 * Fills one array by this initializer's rule, whatever its name. Name and seed choose the random numbers.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_initializer_fill(const cohort_initializer *initializer,
                                                                   const char *name, cohort_ndarray *array);

COHORT_END_DECLS

#endif /* COHORT_INITIALIZER_H */
