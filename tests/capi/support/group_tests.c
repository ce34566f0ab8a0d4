/* SPDX-License-Identifier: Apache-2.0 */
#include "support/group_tests.h"

#include <math.h>
#include <stdio.h>

static size_t live_handles_before;

int note_live_handles(void **state) {
  (void)state;
  live_handles_before = cohort_live_handles();
  return 0;
}

int same_live_handles(void **state) {
  const size_t now = cohort_live_handles();

  (void)state;
  if (now == live_handles_before) return 0;
  print_error("live handles: expected %zu, found %zu\n", live_handles_before, now);
  return -1;
}

/* The message is copied here, because the error is freed before the test ends with a longjmp. */
static const char *take_message(cohort_error *error) {
  static char message[1024];

  snprintf(message, sizeof(message), "%s: %s", cohort_error_code_text(cohort_error_code(error)),
           cohort_error_message(error));
  cohort_error_free(error);
  return message;
}

void ok_at(cohort_error *error, const char *call, const char *file, int line) {
  if (!error) return;
  print_error("%s:%d: %s failed: %s\n", file, line, call, take_message(error));
  _fail(file, line);
}

void fails_at(cohort_error *error, const char *call, int32_t code, const char *words, const char *file, int line) {
  const int32_t found = cohort_error_code(error);
  const int has_words = error && strstr(cohort_error_message(error), words) != NULL;

  if (!error) {
    print_error("%s:%d: %s succeeded where it has to fail\n", file, line, call);
    _fail(file, line);
  } else if (found != code || !has_words) {
    print_error("%s:%d: %s: expected %s with '%s', found %s\n", file, line, call, cohort_error_code_text(code), words,
                take_message(error));
    _fail(file, line);
  } else {
    cohort_error_free(error);
  }
}

/* ---- arrays ---------------------------------------------------------------------------------------------------- */

cohort_ndarray *floats(const int64_t *shape, int32_t num_axes, const float *values, size_t num_values) {
  cohort_ndarray *array = NULL;

  ok(cohort_ndarray_from_host(values, num_values * sizeof(float), shape, num_axes, COHORT_DTYPE_FLOAT32, NULL, &array));
  return array;
}

cohort_ndarray *counted(const int64_t *shape, int32_t num_axes, float scale) {
  cohort_ndarray *array = NULL;
  float *values;
  int64_t size = 1, i;

  for (i = 0; i < num_axes; ++i) size *= shape[i];
  values = malloc((size_t)size * sizeof(float));
  assert_non_null(values);
  for (i = 0; i < size; ++i) values[i] = (float)i * scale;
  array = floats(shape, num_axes, values, (size_t)size);
  free(values);
  return array;
}

void holds_at(const cohort_ndarray *array, const float *values, size_t num_values, const char *file, int line) {
  int64_t size = 0;
  float *found;
  size_t i;

  assert_non_null(array);
  ok_at(cohort_ndarray_size(array, &size), "cohort_ndarray_size", file, line);
  if (dtype_of(array) != COHORT_DTYPE_FLOAT32 || (size_t)size != num_values) {
    print_error("%s:%d: expected %zu float32, found %zu of dtype %d\n", file, line, num_values, (size_t)size,
                (int)dtype_of(array));
    _fail(file, line);
  }
  found = malloc(num_values * sizeof(float));
  assert_non_null(found);
  ok_at(cohort_ndarray_read(array, found, num_values * sizeof(float)), "cohort_ndarray_read", file, line);
  for (i = 0; i < num_values; ++i) {
    const float bound = 1e-5f * (fabsf(values[i]) > 1 ? fabsf(values[i]) : 1);
    if (!(fabsf(found[i] - values[i]) <= bound)) {
      print_error("%s:%d: element %zu: expected %.9g, found %.9g\n", file, line, i, values[i], found[i]);
      free(found);
      _fail(file, line);
    }
  }
  free(found);
}

void holds_free_at(cohort_ndarray *array, const float *values, size_t num_values, const char *file, int line) {
  holds_at(array, values, num_values, file, line);
  cohort_ndarray_free(array);
}

void has_shape_at(const cohort_ndarray *array, const int64_t *shape, int32_t num_axes, const char *file, int line) {
  int64_t found[COHORT_MAX_AXES];
  int32_t num_found = 0, i;

  ok_at(cohort_ndarray_shape(array, found, COHORT_MAX_AXES, &num_found), "cohort_ndarray_shape", file, line);
  if (num_found != num_axes) {
    print_error("%s:%d: expected %d axes, found %d\n", file, line, (int)num_axes, (int)num_found);
    _fail(file, line);
  }
  for (i = 0; i < num_axes; ++i)
    if (found[i] != shape[i]) {
      print_error("%s:%d: axis %d: expected length %ld, found %ld\n", file, line, (int)i, (long)shape[i],
                  (long)found[i]);
      _fail(file, line);
    }
}

int32_t dtype_of(const cohort_ndarray *array) {
  int32_t dtype = COHORT_DTYPE_NONE;

  ok(cohort_ndarray_dtype(array, &dtype));
  return dtype;
}

cohort_arrays *named(const char *name, cohort_ndarray *array) {
  cohort_arrays *arrays = NULL;

  ok(cohort_arrays_create(&arrays));
  add_named(arrays, name, array);
  return arrays;
}

void add_named(cohort_arrays *arrays, const char *name, cohort_ndarray *array) {
  ok(cohort_arrays_add(arrays, name, array));
  cohort_ndarray_free(array);
}

/* ---- symbols --------------------------------------------------------------------------------------------------- */

cohort_symbol *variable(const char *name) {
  cohort_symbol *symbol = NULL;

  ok(cohort_symbol_variable(name, NULL, NULL, 0, &symbol));
  return symbol;
}

cohort_symbol *node(const char *op, const char *name, const char *const *attrs, cohort_symbol *const *inputs) {
  const char *keys[16], *values[16];
  cohort_symbol *symbol = NULL;
  size_t num_attrs = 0, num_inputs = 0, i;

  for (; attrs[2 * num_attrs]; ++num_attrs) {
    assert_true(num_attrs < COUNT(keys));
    keys[num_attrs] = attrs[2 * num_attrs];
    values[num_attrs] = attrs[2 * num_attrs + 1];
  }
  while (inputs[num_inputs]) ++num_inputs;
  ok(cohort_symbol_create(op, name, keys, values, num_attrs, inputs, NULL, num_inputs, &symbol));
  for (i = 0; i < num_inputs; ++i) cohort_symbol_free(inputs[i]);
  return symbol;
}

cohort_symbol *linear(const char *num_hidden) {
  return node("FullyConnected", "fc", ATTRS("num_hidden", num_hidden, "no_bias", "True"), INPUTS(variable("data")));
}

cohort_symbol *regression(const char *num_hidden) {
  return node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(linear(num_hidden), variable("label")));
}

/* ---- groups ---------------------------------------------------------------------------------------------------- */

cohort_descs *desc(const char *name, const int64_t *shape, int32_t num_axes, const char *layout) {
  cohort_descs *descs = NULL;

  ok(cohort_descs_create(&descs));
  add_desc(descs, name, shape, num_axes, layout);
  return descs;
}

void add_desc(cohort_descs *descs, const char *name, const int64_t *shape, int32_t num_axes, const char *layout) {
  ok(cohort_descs_add(descs, name, shape, num_axes, COHORT_DTYPE_FLOAT32, layout));
}

static cohort_error *try_create(cohort_group **out_group, cohort_symbol *symbol, size_t num_contexts,
                                cohort_descs *data, cohort_descs *label, const char *const *param_names,
                                int32_t for_training, const cohort_group_options *options) {
  size_t num_params = 0;
  cohort_error *error;

  assert_true(num_contexts <= NUM_TEST_CONTEXTS);
  while (param_names[num_params]) ++num_params;
  error = cohort_group_create(symbol, test_contexts(), num_contexts, data, label, param_names, num_params, for_training,
                              options, out_group);
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  cohort_descs_free(label);
  return error;
}

cohort_error *try_bind(cohort_group **out_group, cohort_symbol *symbol, size_t num_contexts, cohort_descs *data,
                       cohort_descs *label, const char *const *param_names, const cohort_group_options *options) {
  return try_create(out_group, symbol, num_contexts, data, label, param_names, 1, options);
}

cohort_group *bind_for_training(cohort_symbol *symbol, size_t num_contexts, cohort_descs *data, cohort_descs *label,
                                const char *const *param_names, const cohort_group_options *options) {
  cohort_group *group = NULL;

  ok(try_bind(&group, symbol, num_contexts, data, label, param_names, options));
  return group;
}

cohort_group *bind_for_inference(cohort_symbol *symbol, size_t num_contexts, cohort_descs *data, cohort_descs *label,
                                 const char *const *param_names, const cohort_group_options *options) {
  cohort_group *group = NULL;

  ok(try_create(&group, symbol, num_contexts, data, label, param_names, 0, options));
  return group;
}

cohort_group *bind_regression(size_t num_contexts, int64_t batch, const cohort_group_options *options) {
  cohort_group *group = bind_for_training(regression("1"), num_contexts, desc("data", SHAPE(batch, 2), NULL),
                                          desc("label", SHAPE(batch, 1), NULL), NAMES("fc_weight"), options);

  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  return group;
}

void set_param(cohort_group *group, const char *name, cohort_ndarray *array) {
  cohort_arrays *params = named(name, array);

  ok(cohort_group_set_params(group, params, NULL, 0));
  cohort_arrays_free(params);
}

cohort_error *try_forward(cohort_group *group, cohort_ndarray *data, cohort_ndarray *label, int32_t is_train) {
  cohort_error *error = cohort_group_forward(group, &data, 1, label ? &label : NULL, label ? 1 : 0, is_train);

  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
  return error;
}

cohort_error *try_set_params(cohort_group *group, cohort_arrays *arg, cohort_arrays *aux, int32_t allow_extra) {
  cohort_error *error = cohort_group_set_params(group, arg, aux, allow_extra);

  cohort_arrays_free(arg);
  cohort_arrays_free(aux);
  return error;
}

void forward(cohort_group *group, cohort_ndarray *data, cohort_ndarray *label, int32_t is_train) {
  ok(try_forward(group, data, label, is_train));
}

cohort_ndarray *device_array(const cohort_group *group, int32_t list, size_t index, size_t device) {
  cohort_ndarray *array = NULL;

  ok(cohort_group_array(group, list, index, device, &array));
  return array;
}

cohort_error *try_backward(cohort_group *group, cohort_ndarray *head_grad) {
  cohort_error *error = cohort_group_backward(group, head_grad ? &head_grad : NULL, head_grad ? 1 : 0);

  cohort_ndarray_free(head_grad);
  return error;
}

void backward(cohort_group *group, cohort_ndarray *head_grad) { ok(try_backward(group, head_grad)); }

size_t num_arrays(const cohort_group *group, int32_t list) {
  size_t num = 0;

  ok(cohort_group_num_arrays(group, list, &num));
  return num;
}

void fill(cohort_ndarray *array, double value) {
  ok(cohort_ndarray_fill(array, value));
  cohort_ndarray_free(array);
}

cohort_ndarray *merged(const cohort_group *group, int32_t list, size_t index) {
  cohort_ndarray *array = NULL;

  ok(cohort_group_merged(group, list, index, &array));
  return array;
}
