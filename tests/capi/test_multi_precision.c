/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers with multi_precision on parameters of float16 and bfloat16: the result is that of a float32 copy, rounded,
 * in whichever way the update is run. */
#include <stdio.h>
#include <stdlib.h>

#include "support/contexts.h"
#include "support/group_tests.h"

enum { kRows = 4, kColumns = 24, kSteps = 5 };

static const struct rule {
  const char *name, *key, *value; /* and one more setting */
} kRules[] = {{"sgd", NULL, NULL},
              {"sgd", "momentum", "0.9"},
              {"nag", "momentum", "0.9"},
              {"adam", NULL, NULL},
              {"adamw", NULL, NULL},
              {"rmsprop", NULL, NULL},
              {"adagrad", NULL, NULL},
              {"signum", "momentum", "0.9"},
              {"ftrl", NULL, NULL},
              {"ftml", NULL, NULL},
              {"adadelta", NULL, NULL},
              {"adamax", NULL, NULL},
              {"nadam", NULL, NULL},
              {"dcasgd", "momentum", "0.9"},
              {"test", "rescale_grad", "0.25"},
              {"groupadagrad", "wd", "0"},
              {"lamb", NULL, NULL},
              {"lars", "momentum", "0.9"},
              {"lbsgd", "batch_scale", "2"},
              {"lbsgd", "warmup_strategy", "lars"},
              {"sgld", "seed", "3"}};
static const cohort_dtype kTypes[] = {COHORT_DTYPE_FLOAT16, COHORT_DTYPE_BFLOAT16};

static cohort_optimizer *optimizer_of(const struct rule *rule, int is_narrow) {
  const int has_decay = !rule->key || strcmp(rule->key, "wd") != 0;
  const char *keys[] = {"learning_rate", "multi_precision", NULL, NULL};
  const char *values[] = {"0.03", is_narrow ? "1" : "0", NULL, NULL};
  size_t num = 2;
  cohort_optimizer *optimizer = NULL;

  if (rule->key) keys[num] = rule->key, values[num++] = rule->value;
  if (has_decay) keys[num] = "wd", values[num++] = "0.01";
  ok(cohort_optimizer_create(rule->name, keys, values, num, &optimizer));
  return optimizer;
}

/* Multiples of one eighth, which any type can represent, as are their sums here. */
static float drawn(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (float)((int)(*seed >> 24) % 16 - 8) / 8 + 0.0625f;
}

static cohort_ndarray *narrow_array(const float *values, const int64_t *shape, cohort_dtype type) {
  cohort_ndarray *wide = floats(shape, 2, values, (size_t)(shape[0] * shape[1])), *narrow = NULL;

  ok(cohort_ndarray_cast(wide, type, &narrow));
  cohort_ndarray_free(wide);
  return narrow;
}

/* The gradient of the weight is the sum of the rows of the data. */
static cohort_symbol *network(void) {
  const char *const keys[] = {"__shape__"}, *const values[] = {"(1, 24)"};
  cohort_symbol *weight = NULL;

  ok(cohort_symbol_variable("row_weight", keys, values, 1, &weight));
  return node("MakeLoss", "loss", NO_ATTRS,
              INPUTS(node("broadcast_mul", "product", NO_ATTRS, INPUTS(variable("data"), weight))));
}

/* A weight that is updated by an optimizer directly, by a group or by a manager. */
typedef struct trained {
  cohort_ndarray *weight, *grad;
  cohort_group *group;
  cohort_manager *manager;
} trained;

static trained trained_by(int who, size_t num_contexts, cohort_dtype type, const float *first) {
  const int64_t shape[] = {1, kColumns};
  trained made = {NULL, NULL, NULL, NULL};
  cohort_ndarray *weight = narrow_array(first, shape, type);
  const char *const params[] = {"row_weight"};
  cohort_arrays *args = NULL, *aux = NULL;
  cohort_symbol *symbol;
  cohort_descs *data = NULL;

  if (who == 0) {
    made.weight = weight;
    ok(cohort_ndarray_copy(weight, NULL, &made.grad));
    return made;
  }
  symbol = network();
  ok(cohort_descs_create(&data));
  ok(cohort_descs_add(data, "data", SHAPE(kRows, kColumns), type, "NC"));
  args = named("row_weight", weight);
  ok(cohort_arrays_create(&aux));
  if (who == 1) {
    ok(cohort_group_create(symbol, test_contexts(), num_contexts, data, NULL, params, 1, 1, NULL, &made.group));
    ok(cohort_group_set_params(made.group, args, aux, 0));
  } else {
    ok(cohort_manager_create(symbol, test_contexts(), num_contexts, kRows, data, NULL, params, 1, NULL, &made.manager));
    ok(cohort_manager_set_params(made.manager, args, aux));
    ok(cohort_manager_main_group(made.manager, &made.group));
  }
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  cohort_descs_free(data);
  cohort_symbol_free(symbol);
  return made;
}

static void step(trained *of, cohort_optimizer *optimizer, cohort_update_mode mode, cohort_dtype type,
                 const float *rows, const float *sum) {
  const int64_t all[] = {kRows, kColumns}, one[] = {1, kColumns};
  cohort_ndarray *data;

  if (!of->group) {
    data = narrow_array(sum, one, type);
    ok(cohort_ndarray_copy_to(data, of->grad));
    ok(cohort_optimizer_update(optimizer, "row_weight", 0, of->weight, of->grad));
  } else {
    data = narrow_array(rows, all, type);
    if (of->manager) {
      ok(cohort_manager_load_data_batch(of->manager, &data, 1, NULL, 0, NULL, NULL, NULL));
      ok(cohort_manager_forward(of->manager, 1));
      ok(cohort_manager_backward(of->manager));
      ok(cohort_manager_update(of->manager, optimizer, mode));
    } else {
      ok(cohort_group_forward(of->group, &data, 1, NULL, 0, 1));
      ok(cohort_group_backward(of->group, NULL, 0));
      ok(cohort_group_update(of->group, optimizer, mode));
    }
  }
  cohort_ndarray_free(data);
}

/* The narrow weight is the rounded weight of the float32 run. */
static void is_rounded(cohort_ndarray *narrow, const cohort_ndarray *wide, const char *what) {
  cohort_ndarray *rounded = NULL;
  uint16_t found[kColumns], expected[kColumns];
  size_t i;

  ok(cohort_ndarray_cast(wide, dtype_of(narrow), &rounded));
  ok(cohort_ndarray_read(narrow, found, sizeof(found)));
  ok(cohort_ndarray_read(rounded, expected, sizeof(expected)));
  for (i = 0; i < kColumns; ++i) {
    if (found[i] != expected[i]) fail_msg("%s: element %zu is %#x, expected %#x", what, i, found[i], expected[i]);
  }
  cohort_ndarray_free(rounded);
}

static void check_rule(const struct rule *rule, int who, size_t num_contexts, cohort_update_mode mode,
                       cohort_dtype type) {
  cohort_optimizer *const optimizer = optimizer_of(rule, 1), *const reference = optimizer_of(rule, 0);
  float first[kColumns], rows[kRows * kColumns], sum[kColumns];
  uint32_t seed = 7;
  char what[96];
  trained of;
  cohort_ndarray *wide;
  size_t device;
  int i, k;

  for (i = 0; i < kColumns; ++i) first[i] = drawn(&seed);
  of = trained_by(who, num_contexts, type, first);
  wide = floats(SHAPE(1, kColumns), first, kColumns);
  for (k = 0; k < kSteps; ++k) {
    cohort_ndarray *grad;

    for (i = 0; i < kColumns; ++i) sum[i] = 0;
    for (i = 0; i < kRows * kColumns; ++i) sum[i % kColumns] += rows[i] = drawn(&seed);
    step(&of, optimizer, mode, type, rows, sum);
    grad = floats(SHAPE(1, kColumns), sum, kColumns);
    ok(cohort_optimizer_update(reference, "row_weight", 0, wide, grad));
    cohort_ndarray_free(grad);
  }
  (void)snprintf(what, sizeof(what), "%s by %s on %zu contexts, mode %d", rule->name,
                 who == 0   ? "itself"
                 : who == 1 ? "a group"
                            : "a manager",
                 num_contexts, (int)mode);
  for (device = 0; device < num_contexts; ++device) {
    cohort_ndarray *const found = of.group ? device_array(of.group, COHORT_GROUP_PARAMS, 0, device) : of.weight;

    is_rounded(found, wide, what);
    if (of.group) cohort_ndarray_free(found);
  }
  cohort_ndarray_free(wide);
  cohort_ndarray_free(of.weight);
  cohort_ndarray_free(of.grad);
  cohort_group_free(of.group);
  cohort_manager_free(of.manager);
  cohort_optimizer_free(optimizer);
  cohort_optimizer_free(reference);
}

static void narrow_weights_follow_float32(void **state) {
  size_t r, t;
  int who;

  (void)state;
  for (r = 0; r < COUNT(kRules); ++r) {
    for (t = 0; t < COUNT(kTypes); ++t) {
      check_rule(&kRules[r], 0, 1, COHORT_UPDATE_ON_STORE, kTypes[t]);
      check_rule(&kRules[r], 1, 3, COHORT_UPDATE_ON_STORE, kTypes[t]); /* two of which may be the same GPU */
      for (who = 1; who <= 2; ++who) {
        check_rule(&kRules[r], who, 1, COHORT_UPDATE_ON_STORE, kTypes[t]);
        check_rule(&kRules[r], who, 2, COHORT_UPDATE_ON_STORE, kTypes[t]);
        check_rule(&kRules[r], who, 2, COHORT_UPDATE_PER_DEVICE, kTypes[t]);
      }
    }
  }
}

/* Steps smaller than the narrow type's resolution add up, which they do not without multi_precision. */
static void small_steps_add_up(void **state) {
  const char *const keys[] = {"learning_rate", "multi_precision"};
  const char *values[] = {"0.0001", "1"};
  int is_kept;

  (void)state;
  for (is_kept = 0; is_kept <= 1; ++is_kept) {
    const float one = 1;
    const int64_t shape[] = {1, 1};
    cohort_optimizer *optimizer = NULL;
    cohort_ndarray *weight = narrow_array(&one, shape, COHORT_DTYPE_BFLOAT16), *wide = NULL;
    cohort_ndarray *grad = narrow_array(&one, shape, COHORT_DTYPE_BFLOAT16);
    int i;

    values[1] = is_kept ? "1" : "0";
    ok(cohort_optimizer_create("sgd", keys, values, 2, &optimizer));
    for (i = 0; i < 5000; ++i) ok(cohort_optimizer_update(optimizer, "row_weight", 0, weight, grad));
    ok(cohort_ndarray_cast(weight, COHORT_DTYPE_FLOAT32, &wide));
    holds_free(wide, is_kept ? 0.5f : 1.0f);
    cohort_ndarray_free(weight);
    cohort_ndarray_free(grad);
    cohort_optimizer_free(optimizer);
  }
}

/* States stay valid when the type of the weight changes: the momentum continues, and the float32 copy that a narrow
 * weight lacks is made from it. */
static void states_follow_a_weight_into_another_type(void **state) {
  const char *const keys[] = {"learning_rate", "momentum", "multi_precision"}, *const values[] = {"1", "0.5", "1"};
  const int64_t shape[] = {1, 2};
  const float ones[] = {1, 1}, zeros[] = {0, 0};
  int from;

  (void)state;
  for (from = 0; from < 4; ++from) { /* from and to float32, or float16; in one optimizer, and through saved states */
    const cohort_dtype first = from % 2 ? COHORT_DTYPE_FLOAT16 : COHORT_DTYPE_FLOAT32;
    const cohort_dtype second = from % 2 ? COHORT_DTYPE_FLOAT32 : COHORT_DTYPE_FLOAT16;
    cohort_ndarray *weight = narrow_array(zeros, shape, first), *grad = narrow_array(ones, shape, first), *wide = NULL;
    cohort_optimizer *optimizer = NULL;
    char saved[1000];
    size_t bytes = 0;

    ok(cohort_optimizer_create("sgd", keys, values, 3, &optimizer));
    ok(cohort_optimizer_update(optimizer, "w", 0, weight, grad)); /* the momentum is -1 */
    if (from >= 2) {
      ok(cohort_optimizer_save_states_memory(optimizer, saved, sizeof saved, &bytes));
      cohort_optimizer_free(optimizer);
      ok(cohort_optimizer_create("sgd", keys, values, 3, &optimizer));
      ok(cohort_optimizer_load_states_memory(optimizer, saved, bytes));
    }
    cohort_ndarray_free(weight);
    cohort_ndarray_free(grad);
    weight = narrow_array(ones, shape, second);
    grad = narrow_array(zeros, shape, second);
    ok(cohort_optimizer_update(optimizer, "w", 0, weight, grad));
    ok(cohort_ndarray_cast(weight, COHORT_DTYPE_FLOAT32, &wide));
    holds_free(wide, 0.5f, 0.5f);
    cohort_ndarray_free(weight);
    cohort_ndarray_free(grad);
    cohort_optimizer_free(optimizer);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(narrow_weights_follow_float32), TEST(small_steps_add_up),
                                     TEST(states_follow_a_weight_into_another_type)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
