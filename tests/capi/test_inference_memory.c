/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that inference uses in addition to the parameters. */
#include <stdio.h>

#include "support/group_tests.h"
#include "support/temporary.h"

enum { CHANNELS = 256, LAYERS = 3, SIDE = 4 };
static const size_t weight_bytes = (size_t)CHANNELS * CHANNELS * 9 * sizeof(float);

static size_t used_bytes(void) {
  const cohort_context cpu = {COHORT_DEVICE_CPU, 0};
  cohort_device_memory_info info = COHORT_DEVICE_MEMORY_INFO_INIT;

  ok(cohort_device_memory(&cpu, &info));
  return info.used_bytes;
}

/* Convolutions of many channels over few pixels, each followed by a batch norm. */
static cohort_symbol *convolutions(void) {
  cohort_symbol *symbol = variable("data");
  int layer;

  for (layer = 0; layer < LAYERS; ++layer) {
    char name[16];

    snprintf(name, sizeof name, "conv%d", layer);
    symbol = node("Convolution", name,
                  ATTRS("kernel", "(3, 3)", "pad", "(1, 1)", "num_filter", "256", "no_bias", "True"), INPUTS(symbol));
    snprintf(name, sizeof name, "norm%d", layer);
    symbol = node("BatchNorm", name, NO_ATTRS, INPUTS(symbol));
  }
  return symbol;
}

static cohort_group *bind_convolutions(size_t num_contexts, const cohort_group_options *options) {
  cohort_context contexts[] = {{COHORT_DEVICE_CPU, 0}, {COHORT_DEVICE_CPU, 1}};
  cohort_symbol *symbol = convolutions();
  cohort_descs *data = desc("data", SHAPE(2, CHANNELS, SIDE, SIDE), NULL);
  cohort_group *group = NULL;

  ok(cohort_group_create(symbol, contexts, num_contexts, data, NULL, NULL, 0, 0, options, &group));
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  return group;
}

static void run_convolutions(cohort_group *group) {
  forward(group, counted(SHAPE(2, CHANNELS, SIDE, SIDE), 1e-3f), NULL, 0);
  ok(cohort_group_wait(group));
}

/* Weights are folded with the norms behind them and then reordered: the folded ones are not kept. */
static void one_copy_of_each_weight_is_derived(void **state) {
  const size_t before = used_bytes();
  cohort_group *group = bind_convolutions(1, NULL);

  (void)state;
  run_convolutions(group);
  assert_true(used_bytes() - before >= 2 * LAYERS * weight_bytes);
  assert_true(used_bytes() - before < (2 * LAYERS + 2) * weight_bytes);
  cohort_group_free(group);
}

/* data . fc_weight^T for rows of two numbers, with these parameters. */
static cohort_error *try_bind_given(cohort_group **out_group, size_t num_contexts, const cohort_arrays *given,
                                    int32_t for_training) {
  const cohort_context contexts[] = {{COHORT_DEVICE_CPU, 0}, {COHORT_DEVICE_CPU, 1}};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_symbol *symbol = linear("1");
  cohort_descs *data = desc("data", SHAPE(2, 2), NULL);
  cohort_error *error;

  options.arg_params = given;
  error = cohort_group_create(symbol, contexts, num_contexts, data, NULL, NULL, 0, for_training, &options, out_group);
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  return error;
}

static void answers(cohort_group *group, float first, float second) {
  forward(group, floats(SHAPE(2, 2), FLOATS(1, 2, 3, 4)), NULL, 0);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), first, second);
}

/* The group, on all of its contexts, uses the caller's one array: it is neither copied nor cleared. */
static void given_parameters_are_the_groups_own(void **state) {
  size_t num_contexts;

  (void)state;
  for (num_contexts = 1; num_contexts <= 2; ++num_contexts) {
    cohort_ndarray *weight = floats(SHAPE(1, 2), FLOATS(1, 10)), *found = NULL;
    cohort_arrays *given = NULL;
    cohort_group *group = NULL;

    ok(cohort_arrays_create(&given));
    ok(cohort_arrays_add(given, "fc_weight", weight));
    ok(cohort_arrays_add(given, "no_such_parameter", weight));
    ok(try_bind_given(&group, num_contexts, given, 0));
    cohort_arrays_free(given);
    answers(group, 21, 43);
    ok(cohort_ndarray_write(weight, (const float[]){2, 0}, 2 * sizeof(float)));
    answers(group, 2, 6);
    set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(0, 1)));
    holds(weight, 0, 1);
    answers(group, 2, 4);
    cohort_group_free(group);
    holds(weight, 0, 1);
    cohort_ndarray_free(weight);
    cohort_ndarray_free(found);
  }
}

/* A parameter of another type is copied; a missing one is zeros. */
static void parameters_of_another_type_are_copied(void **state) {
  cohort_ndarray *weight = floats(SHAPE(1, 2), FLOATS(1, 10)), *wide = NULL;
  cohort_arrays *given = NULL;
  cohort_group *group = NULL;

  (void)state;
  ok(cohort_ndarray_cast(weight, COHORT_DTYPE_FLOAT64, &wide));
  ok(cohort_arrays_create(&given));
  ok(try_bind_given(&group, 1, given, 0));
  answers(group, 0, 0);
  cohort_group_free(group);
  ok(cohort_arrays_add(given, "fc_weight", wide));
  ok(try_bind_given(&group, 2, given, 0));
  ok(cohort_ndarray_fill(wide, 7));
  answers(group, 21, 43);
  cohort_group_free(group);
  cohort_arrays_free(given);
  cohort_ndarray_free(weight);
  cohort_ndarray_free(wide);
}

static void given_parameters_that_do_not_fit_are_refused(void **state) {
  cohort_arrays *given = named("fc_weight", floats(SHAPE(1, 3), FLOATS(1, 2, 3)));
  cohort_group *group = NULL;

  (void)state;
  fails(try_bind_given(&group, 1, given, 0), COHORT_ERROR_SHAPE, "'fc_weight': expected shape (1, 2), found (1, 3)");
  fails(try_bind_given(&group, 1, given, 1), COHORT_ERROR_INVALID_ARGUMENT, "arg_params: expected none");
  assert_null(group);
  cohort_arrays_free(given);
}

static void save_convolutions(const char *prefix) {
  cohort_group *group = bind_convolutions(1, NULL);
  cohort_arrays *args = NULL, *aux = NULL;
  cohort_symbol *symbol = convolutions();
  int layer;

  for (layer = 0; layer < LAYERS; ++layer) {
    char name[32];

    (void)snprintf(name, sizeof name, "conv%d_weight", layer);
    set_param(group, name, counted(SHAPE(CHANNELS, CHANNELS, 3, 3), 1e-9f));
    (void)snprintf(name, sizeof name, "norm%d_gamma", layer);
    {
      cohort_ndarray *ones = counted(SHAPE(CHANNELS), 0);

      ok(cohort_ndarray_fill(ones, 1));
      set_param(group, name, ones);
    }
  }
  ok(cohort_group_copy_params(group, &args, &aux));
  ok(cohort_checkpoint_save(prefix, 1, symbol, args, aux));
  cohort_group_free(group);
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  cohort_symbol_free(symbol);
}

static cohort_ndarray *answer_of(cohort_group *group) {
  run_convolutions(group);
  return merged(group, COHORT_GROUP_OUTPUTS, 0);
}

/* A network whose parameters stay in their mapped file: the same answer, in the memory of the derived weights only. */
static void mapped_parameters_answer_alike(void **state) {
  char prefix[TEMPORARY_PATH], file[TEMPORARY_PATH];
  cohort_arrays *args = NULL, *aux = NULL;
  cohort_group *loaded, *mapped;
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_ndarray *first, *second;
  float a[2 * CHANNELS * SIDE * SIDE], b[2 * CHANNELS * SIDE * SIDE];
  size_t before, pass;

  (void)state;
  temporary_path(prefix, "inference_memory", "");
  save_convolutions(prefix);
  ok(cohort_checkpoint_load(prefix, 1, NULL, &args, &aux));
  loaded = bind_convolutions(1, NULL);
  ok(cohort_group_assign_params(loaded, args, aux, 0, 0, NULL));
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  first = answer_of(loaded);
  ok(cohort_ndarray_read(first, a, sizeof a));
  assert_true(a[0] != a[1]);

  before = used_bytes();
  ok(cohort_checkpoint_map(prefix, 1, NULL, &args, &aux));
  options.arg_params = args;
  options.aux_params = aux;
  mapped = bind_convolutions(1, &options);
  for (pass = 0; pass < 2; ++pass) {
    second = answer_of(mapped);
    ok(cohort_ndarray_read(second, b, sizeof b));
    assert_memory_equal(a, b, sizeof a);
    cohort_ndarray_free(second);
    if (pass == 0) assert_true(used_bytes() - before < (LAYERS + 2) * weight_bytes);
    save_convolutions(prefix); /* another file of that name */
  }
  { /* A change is seen by the group, and is not written to the file. */
    cohort_ndarray *weight = NULL;
    size_t index = 0;

    ok(cohort_arrays_find(args, "conv0_weight", &index));
    ok(cohort_arrays_get(args, index, &weight));
    ok(cohort_ndarray_fill(weight, 0));
    cohort_ndarray_free(weight);
    second = answer_of(mapped);
    ok(cohort_ndarray_read(second, b, sizeof b));
    assert_true(memcmp(a, b, sizeof a) != 0);
    cohort_ndarray_free(second);
    cohort_group_free(mapped);
    cohort_arrays_free(args);
    cohort_arrays_free(aux);
    ok(cohort_checkpoint_map(prefix, 1, NULL, &args, &aux));
    options.arg_params = args;
    options.aux_params = aux;
    mapped = bind_convolutions(1, &options);
    second = answer_of(mapped);
    ok(cohort_ndarray_read(second, b, sizeof b));
    assert_memory_equal(a, b, sizeof a);
    cohort_ndarray_free(second);
  }
  cohort_group_free(loaded);
  cohort_group_free(mapped);
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  cohort_ndarray_free(first);
  (void)remove(temporary_path(file, "inference_memory", "-symbol.json"));
  (void)remove(temporary_path(file, "inference_memory", "-0001.params"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(one_copy_of_each_weight_is_derived),    TEST(given_parameters_are_the_groups_own),
      TEST(parameters_of_another_type_are_copied), TEST(given_parameters_that_do_not_fit_are_refused),
      TEST(mapped_parameters_answer_alike),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
