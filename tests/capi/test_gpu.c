/* SPDX-License-Identifier: Apache-2.0 */
/* gpu contexts: where there is none they are refused with a reason; elsewhere the MLP trains on gpu(0), and on cpu(0)
 * and gpu(0) together, with the calls that train it on the CPU, and reaches the same parameters. */
#include <math.h>

#include "support/boundary.h"

enum { BATCH = 16, FEATURES = 20, HIDDEN = 24, CLASSES = 5, STEPS = 12 };

static int num_gpus(void) {
  size_t count = 0;

  ok(cohort_num_devices(COHORT_DEVICE_GPU, &count));
  return (int)count;
}

/* Ends the test as skipped, by name, on a machine without a GPU. */
static void need_gpu(void) {
  if (num_gpus() == 0) skip();
}

static cohort_symbol *layer(const char *op, const char *name, const char *key, const char *value,
                            cohort_symbol *input) {
  cohort_symbol *made = NULL;

  ok(cohort_symbol_create(op, name, &key, &value, key ? 1 : 0, &input, NULL, 1, &made));
  cohort_symbol_free(input);
  return made;
}

/* data -> fc1 -> relu -> fc2, of the group "late" -> softmax */
static cohort_symbol *mlp(void) {
  const char *const keys[] = {"__ctx_group__"}, *const values[] = {"late"};
  cohort_symbol *net = NULL;

  ok(cohort_symbol_variable("data", NULL, NULL, 0, &net));
  net = layer("FullyConnected", "fc1", "num_hidden", "24", net);
  net = layer("Activation", "relu1", "act_type", "relu", net);
  net = layer("FullyConnected", "fc2", "num_hidden", "5", net);
  ok(cohort_symbol_set_attrs(net, keys, values, 1));
  return layer("SoftmaxOutput", "softmax", NULL, NULL, net);
}

/* A fixed sequence of numbers in [-0.5, 0.5). */
static void fill(float *values, size_t count, uint32_t seed) {
  size_t i;

  for (i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
  }
}

static cohort_ndarray *random_array(const int64_t *shape, int32_t num_axes, uint32_t seed) {
  static float values[HIDDEN * FEATURES + BATCH * FEATURES];
  size_t count = 1;
  int32_t axis;

  for (axis = 0; axis < num_axes; ++axis) count *= (size_t)shape[axis];
  fill(values, count, seed);
  return floats(values, shape, num_axes);
}

/* Trains the MLP on these contexts; returns the parameters, one after the other, in `result`. */
static size_t train(const cohort_context *contexts, size_t num_contexts, const char *momentum,
                    const cohort_group_options *options, float *result) {
  static const char *const params[] = {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"};
  static const int64_t shapes[][2] = {{HIDDEN, FEATURES}, {HIDDEN, 0}, {CLASSES, HIDDEN}, {CLASSES, 0}};
  const char *const keys[] = {"learning_rate", "momentum", "rescale_grad"};
  const char *const values[] = {"0.5", momentum, "0.0625"};
  const int64_t data_shape[2] = {BATCH, FEATURES}, label_shape[1] = {BATCH};
  float classes[BATCH];
  cohort_symbol *net = mlp();
  cohort_descs *data = one_desc("data", data_shape, 2), *label = one_desc("softmax_label", label_shape, 1);
  cohort_ndarray *batch = random_array(data_shape, 2, 7), *targets, *array;
  cohort_arrays *initial = NULL, *trained = NULL, *aux = NULL;
  cohort_optimizer *optimizer = NULL;
  cohort_group *group = NULL;
  size_t i, index = 0, count = 0;
  int step;

  for (i = 0; i < BATCH; ++i) classes[i] = (float)(i * 7 % CLASSES);
  targets = floats(classes, label_shape, 1);
  ok(cohort_group_create(net, contexts, num_contexts, data, label, params, 4, 1, options, &group));
  ok(cohort_arrays_create(&initial));
  for (i = 0; i < 4; ++i) {
    array = random_array(shapes[i], shapes[i][1] ? 2 : 1, (uint32_t)i);
    ok(cohort_arrays_add(initial, params[i], array));
    cohort_ndarray_free(array);
  }
  ok(cohort_group_set_params(group, initial, NULL, 0));
  ok(cohort_optimizer_create("sgd", keys, values, 3, &optimizer));
  for (step = 0; step < STEPS; ++step) {
    ok(cohort_group_forward(group, &batch, 1, &targets, 1, 1));
    ok(cohort_group_backward(group, NULL, 0));
    ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
  }
  ok(cohort_group_copy_params(group, &trained, &aux));
  for (i = 0; i < 4; ++i) {
    const size_t size = (size_t)(shapes[i][0] * (shapes[i][1] ? shapes[i][1] : 1));

    ok(cohort_arrays_find(trained, params[i], &index));
    ok(cohort_arrays_get(trained, index, &array));
    ok(cohort_ndarray_read(array, result + count, size * sizeof(float)));
    cohort_ndarray_free(array);
    count += size;
  }
  cohort_arrays_free(initial);
  cohort_arrays_free(trained);
  cohort_arrays_free(aux);
  cohort_optimizer_free(optimizer);
  cohort_group_free(group);
  cohort_ndarray_free(batch);
  cohort_ndarray_free(targets);
  cohort_descs_free(data);
  cohort_descs_free(label);
  cohort_symbol_free(net);
  return count;
}

static const cohort_context cpu0 = {COHORT_DEVICE_CPU, 0};
static const cohort_context gpu0 = {COHORT_DEVICE_GPU, 0};

static void trains_alike_with(const cohort_context *contexts, size_t num_contexts, const char *momentum,
                              const cohort_group_options *options) {
  static float expected[HIDDEN * (FEATURES + 1) + CLASSES * (HIDDEN + 1)], found[NUM_OF(expected)];
  size_t i, count = train(&cpu0, 1, momentum, NULL, expected);

  assert_int_equal(train(contexts, num_contexts, momentum, options, found), count);
  for (i = 0; i < count; ++i) { /* STEPS updates, each a sum over BATCH rows in float32 */
    if (fabsf(found[i] - expected[i]) > 1e-4f * (1 + fabsf(expected[i]))) {
      fail_msg("parameter %zu: expected %g, found %g", i, (double)expected[i], (double)found[i]);
    }
  }
}

static void trains_alike(const cohort_context *contexts, size_t num_contexts, const char *momentum) {
  trains_alike_with(contexts, num_contexts, momentum, NULL);
}

/* CTX-03: a missing GPU or backend is an error at the first allocation that says why; everything else goes on
 * working. */
static void a_missing_gpu_is_refused_with_the_reason(void **state) {
  const int64_t shape[1] = {3};
  cohort_ndarray *array = NULL;
  cohort_context beyond = {COHORT_DEVICE_GPU, 9999};

  (void)state;
  fails(cohort_ndarray_zeros(shape, 1, COHORT_DTYPE_FLOAT32, &beyond, &array), COHORT_ERROR_DEVICE, "gpu(9999)");
  assert_null(array);
  ok(cohort_ndarray_zeros(shape, 1, COHORT_DTYPE_FLOAT32, &cpu0, &array));
  cohort_ndarray_free(array);
}

static void binding_on_a_missing_gpu_leaves_nothing_behind(void **state) {
  static const char *const params[] = {"fc_weight", "fc_bias"};
  const int64_t shape[2] = {4, 3};
  cohort_context contexts[2] = {{COHORT_DEVICE_CPU, 0}, {COHORT_DEVICE_GPU, 9999}};
  cohort_symbol *net = small_network();
  cohort_descs *data = one_desc("data", shape, 2), *label = one_desc("softmax_label", shape, 1);
  cohort_group *group = NULL;

  (void)state;
  fails(cohort_group_create(net, contexts, 2, data, label, params, 2, 1, NULL, &group), COHORT_ERROR_DEVICE,
        "gpu(9999)");
  assert_null(group);
  cohort_symbol_free(net);
  cohort_descs_free(data);
  cohort_descs_free(label);
}

static void arrays_go_to_a_gpu_and_back(void **state) {
  const float values[6] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[2] = {2, 3};
  cohort_ndarray *here, *there = NULL, *back = NULL;

  (void)state;
  need_gpu();
  here = floats(values, shape, 2);
  ok(cohort_ndarray_copy(here, &gpu0, &there));
  ok(cohort_ndarray_copy(there, &cpu0, &back));
  assert_floats(there, values, 6);
  assert_floats(back, values, 6);
  cohort_ndarray_free(here);
  cohort_ndarray_free(there);
  cohort_ndarray_free(back);
}

static void one_gpu_trains_as_one_cpu_does(void **state) {
  (void)state;
  need_gpu();
  trains_alike(&gpu0, 1, "0");
  trains_alike(&gpu0, 1, "0.9");
}

static void a_cpu_and_a_gpu_train_together(void **state) {
  cohort_context both[2];

  (void)state;
  need_gpu();
  both[0] = cpu0;
  both[1] = gpu0;
  trains_alike(both, 2, "0.9");
}

/* A loss scale checks the gradients of both for overflow. */
static void layers_on_a_cpu_and_a_gpu_have_a_loss_scale(void **state) {
  static const char *const late[] = {"late"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  (void)state;
  need_gpu();
  options.ctx_group_names = late;
  options.ctx_group_contexts = &gpu0;
  options.num_ctx_groups = 1;
  options.loss_scale = 1024;
  trains_alike_with(&cpu0, 1, "0.9", &options);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_missing_gpu_is_refused_with_the_reason),
      TEST(binding_on_a_missing_gpu_leaves_nothing_behind),
      TEST(arrays_go_to_a_gpu_and_back),
      TEST(one_gpu_trains_as_one_cpu_does),
      TEST(a_cpu_and_a_gpu_train_together),
      TEST(layers_on_a_cpu_and_a_gpu_have_a_loss_scale),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
