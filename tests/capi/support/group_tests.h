/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests over the C ABI: calls that must succeed or fail, small networks, groups on the contexts of
 * contexts.h. Functions that take symbols or descriptors free them, so that the test need not. */
#ifndef COHORT_TESTS_GROUP_TESTS_H
#define COHORT_TESTS_GROUP_TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cohort/cohort.h"
#include "support/contexts.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A test that must leave as many live handles as it found. */
#define TEST(name) cmocka_unit_test_setup_teardown(name, note_live_handles, same_live_handles)
int note_live_handles(void **state);
int same_live_handles(void **state);

/* Fails the test with the error's message if the call failed. */
#define ok(call) ok_at((call), #call, __FILE__, __LINE__)
void ok_at(cohort_error *error, const char *call, const char *file, int line);

/* Fails the test unless the call failed with this class of error and a message that contains these words. */
#define fails(call, code, words) fails_at((call), #call, (code), (words), __FILE__, __LINE__)
void fails_at(cohort_error *error, const char *call, int32_t code, const char *words, const char *file, int line);

/* ---- arrays ---------------------------------------------------------------------------------------------------- */

/* A shape as two arguments: the lengths and how many there are. */
#define SHAPE(...) (const int64_t[]){__VA_ARGS__}, (int32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
/* Numbers as two arguments: the values and how many there are. */
#define FLOATS(...) (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float)

/* A float32 array with these values; their number must match the shape. */
cohort_ndarray *floats(const int64_t *shape, int32_t num_axes, const float *values, size_t num_values);

/* A float32 array with 0, 1, 2, ... times scale. */
cohort_ndarray *counted(const int64_t *shape, int32_t num_axes, float scale);

/* Checks the values of a float32 array, each to within 1e-5 relative to 1 or to the value itself. */
#define holds(array, ...) holds_at((array), FLOATS(__VA_ARGS__), __FILE__, __LINE__)
void holds_at(const cohort_ndarray *array, const float *values, size_t num_values, const char *file, int line);

/* Like holds(), and frees the array. */
#define holds_free(array, ...) holds_free_at((array), FLOATS(__VA_ARGS__), __FILE__, __LINE__)
void holds_free_at(cohort_ndarray *array, const float *values, size_t num_values, const char *file, int line);

/* Checks the shape of an array. */
#define has_shape(array, ...) has_shape_at((array), SHAPE(__VA_ARGS__), __FILE__, __LINE__)
void has_shape_at(const cohort_ndarray *array, const int64_t *shape, int32_t num_axes, const char *file, int line);

int32_t dtype_of(const cohort_ndarray *array);

/* A list of one named array, which is freed. */
cohort_arrays *named(const char *name, cohort_ndarray *array);
/* Appends a named array, which is freed. */
void add_named(cohort_arrays *arrays, const char *name, cohort_ndarray *array);

/* ---- symbols --------------------------------------------------------------------------------------------------- */

#define ATTRS(...) \
  (const char *const[]) { __VA_ARGS__, NULL }
#define NO_ATTRS \
  (const char *const[]) { NULL }
#define INPUTS(...) \
  (cohort_symbol *const[]) { __VA_ARGS__, NULL }
#define NAMES(...) \
  (const char *const[]) { __VA_ARGS__, NULL }
#define NO_NAMES \
  (const char *const[]) { NULL }

cohort_symbol *variable(const char *name);
/* A node of an operator: keys and values alternately, then NULL; inputs, which are freed, then NULL. */
cohort_symbol *node(const char *op, const char *name, const char *const *attrs, cohort_symbol *const *inputs);

/* fc = data . fc_weight^T, without bias, num_hidden columns: "1", "2", ... */
cohort_symbol *linear(const char *num_hidden);
/* LinearRegressionOutput "lro" of linear(num_hidden) against the argument "label". */
cohort_symbol *regression(const char *num_hidden);

/* ---- groups ---------------------------------------------------------------------------------------------------- */

/* A list of one float32 descriptor; layout NULL is "NCHW". */
cohort_descs *desc(const char *name, const int64_t *shape, int32_t num_axes, const char *layout);
/* Appends a descriptor to the list. */
void add_desc(cohort_descs *descs, const char *name, const int64_t *shape, int32_t num_axes, const char *layout);

/* Binds on the first num_contexts of test_contexts() for training. Frees symbol, data and label. */
cohort_error *try_bind(cohort_group **out_group, cohort_symbol *symbol, size_t num_contexts, cohort_descs *data,
                       cohort_descs *label, const char *const *param_names, const cohort_group_options *options);
/* Like try_bind(); the call must succeed. */
cohort_group *bind_for_training(cohort_symbol *symbol, size_t num_contexts, cohort_descs *data, cohort_descs *label,
                                const char *const *param_names, const cohort_group_options *options);

/* Like bind_for_training(), without gradients. */
cohort_group *bind_for_inference(cohort_symbol *symbol, size_t num_contexts, cohort_descs *data, cohort_descs *label,
                                 const char *const *param_names, const cohort_group_options *options);

/* regression("1") on a batch of rows of two numbers, fc_weight = (1, 10). */
cohort_group *bind_regression(size_t num_contexts, int64_t batch, const cohort_group_options *options);

/* Sets one parameter on every device; frees the array. */
void set_param(cohort_group *group, const char *name, cohort_ndarray *array);
/* Sets parameters on every device; frees the lists. */
cohort_error *try_set_params(cohort_group *group, cohort_arrays *arg, cohort_arrays *aux, int32_t allow_extra);

/* Runs forward over one data array and one label, or NULL for none; frees both. */
void forward(cohort_group *group, cohort_ndarray *data, cohort_ndarray *label, int32_t is_train);
/* Like forward(), but returns the error. */
cohort_error *try_forward(cohort_group *group, cohort_ndarray *data, cohort_ndarray *label, int32_t is_train);

/* Runs backward from one head gradient, or NULL for none; frees it. */
void backward(cohort_group *group, cohort_ndarray *head_grad);
cohort_error *try_backward(cohort_group *group, cohort_ndarray *head_grad);

size_t num_arrays(const cohort_group *group, int32_t list);
/* Sets all elements of a live array, and frees the handle. */
void fill(cohort_ndarray *array, double value);
cohort_ndarray *device_array(const cohort_group *group, int32_t list, size_t index, size_t device);
cohort_ndarray *merged(const cohort_group *group, int32_t list, size_t index);

#endif
