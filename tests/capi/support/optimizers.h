/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests of optimizers: they create one by name and settings, and update a weight. */
#ifndef COHORT_TESTS_OPTIMIZERS_H
#define COHORT_TESTS_OPTIMIZERS_H

#include <math.h>

#include "support/group_tests.h"

/* Settings are in an array that ends with a NULL key. */
typedef struct setting {
  const char *key, *value;
} setting;

static inline cohort_error *try_create(const char *name, const setting *settings, cohort_optimizer **out_optimizer) {
  const char *keys[12] = {NULL}, *values[12] = {NULL};
  size_t num = 0;

  for (; settings && settings[num].key; ++num) keys[num] = settings[num].key, values[num] = settings[num].value;
  return cohort_optimizer_create(name, keys, values, num, out_optimizer);
}

static inline cohort_optimizer *create(const char *name, const setting *settings) {
  cohort_optimizer *optimizer = NULL;

  ok(try_create(name, settings, &optimizer));
  return optimizer;
}

/* Settings as one argument. */
#define SETTINGS(...)           \
  (const setting[]) {           \
    __VA_ARGS__, { NULL, NULL } \
  }

/* One update of a weight; frees the gradient. */
static inline void update(cohort_optimizer *optimizer, const char *name, cohort_ndarray *weight, cohort_ndarray *grad) {
  ok(cohort_optimizer_update(optimizer, name, 0, weight, grad));
  cohort_ndarray_free(grad);
}

/* Checks a number in float32, up to rounding. */
static inline void is_near(double found, double expected) {
  if (!(fabs(found - expected) <= 2e-6 * (1 + fabs(expected)))) fail_msg("expected %.9g, found %.9g", expected, found);
}

#endif
