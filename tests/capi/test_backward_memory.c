/* SPDX-License-Identifier: Apache-2.0 */
/* The same gradients in less memory: backward_once, which refuses a second backward (without it BWD-08 holds), and
 * recompute. */
#include <stdio.h>

#include "support/executor_tests.h"

enum { LAYERS = 5, CHANNELS = 8, BATCH = 16, SIDE = 12 };

/* Convolutions with batch norms and activations, from the second on of residual sums; point-wise functions of values
 * that are kept, a pooling, a loss. */
static cohort_symbol *deep(void) {
  cohort_symbol *last = variable("data");
  char name[16];
  int i;

  for (i = 0; i < LAYERS; ++i) {
    cohort_symbol *before = NULL;

    if (i > 0) ok(cohort_symbol_copy(last, &before));
    snprintf(name, sizeof(name), "conv%d", i);
    last = node("Convolution", name, ATTRS("kernel", "(3, 3)", "pad", "(1, 1)", "num_filter", "8", "no_bias", "True"),
                INPUTS(last));
    snprintf(name, sizeof(name), "bn%d", i);
    last = node("BatchNorm", name, ATTRS("fix_gamma", "False"), INPUTS(last));
    snprintf(name, sizeof(name), "sum%d", i);
    if (i > 0) last = node("elemwise_add", name, NO_ATTRS, INPUTS(last, before));
    snprintf(name, sizeof(name), "act%d", i);
    last = node("Activation", name, ATTRS("act_type", i % 2 ? "tanh" : "relu"), INPUTS(last));
  }
  last = node("Convolution", "conv5",
              ATTRS("kernel", "(1, 1)", "stride", "(3, 3)", "num_filter", "8", "no_bias", "True"), INPUTS(last));
  last = node("LeakyReLU", "gelu", ATTRS("act_type", "gelu"), INPUTS(last));
  last = node("Flatten", "rows", NO_ATTRS, INPUTS(last));
  last = node("FullyConnected", "fc", ATTRS("num_hidden", "8", "no_bias", "True"), INPUTS(last));
  last = node("Reshape", "images", ATTRS("shape", "(-1, 8, 1, 1)"), INPUTS(last));
  last = node("Pooling", "pool", ATTRS("global_pool", "True", "kernel", "(1, 1)", "pool_type", "avg"), INPUTS(last));
  return node("SoftmaxOutput", "softmax", NO_ATTRS, INPUTS(node("Flatten", "flat", NO_ATTRS, INPUTS(last))));
}

static const char *const params[] = {"conv0_weight", "bn0_gamma", "bn0_beta", "conv1_weight", "bn1_gamma", "bn1_beta",
                                     "conv2_weight", "bn2_gamma", "bn2_beta", "conv3_weight", "bn3_gamma", "bn3_beta",
                                     "conv4_weight", "bn4_gamma", "bn4_beta", "conv5_weight", "fc_weight", NULL};

static cohort_group *bind_deep(size_t num_contexts, cohort_bool once, cohort_bool recompute, const char *grad_req) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group;
  size_t i;

  options.backward_once = once;
  options.recompute = recompute;
  options.grad_req = grad_req;
  options.num_threads = 2; /* each thread has scratch */
  group = bind_for_training(deep(), num_contexts, desc("data", SHAPE(BATCH, 3, SIDE, SIDE), NULL),
                            desc("softmax_label", SHAPE(BATCH), NULL), params, &options);
  set_param(group, "conv5_weight", counted(SHAPE(CHANNELS, CHANNELS, 1, 1), 0.01f));
  set_param(group, "fc_weight", counted(SHAPE(8, CHANNELS * SIDE * SIDE / 9), 1e-4f));
  for (i = 0; i < 3 * LAYERS; ++i) {
    const int64_t channels = i == 0 ? 3 : CHANNELS;
    set_param(group, params[i],
              i % 3 == 0 ? counted(SHAPE(CHANNELS, channels, 3, 3), 0.002f)
                         : counted(SHAPE(CHANNELS), 0.1f * (float)(1 + i)));
  }
  return group;
}

static void run_forward(cohort_group *group, int32_t is_train) {
  forward(group, counted(SHAPE(BATCH, 3, SIDE, SIDE), 0.01f), counted(SHAPE(BATCH), 1), is_train);
}

/* All gradients of a device, one after the other, into `values`; returns their number. */
static size_t gradients(const cohort_group *group, size_t device, float *values, size_t most) {
  size_t i, n = 0;

  for (i = 0; i < num_arrays(group, COHORT_GROUP_GRADS); ++i) {
    cohort_ndarray *gradient = device_array(group, COHORT_GROUP_GRADS, i, device);
    int64_t size = 0;

    ok(cohort_ndarray_size(gradient, &size));
    assert_true(n + (size_t)size <= most);
    ok(cohort_ndarray_read(gradient, values + n, (size_t)size * sizeof(float)));
    n += (size_t)size;
    cohort_ndarray_free(gradient);
  }
  return n;
}

static size_t planned(const cohort_group *group) {
  cohort_memory_info info = COHORT_MEMORY_INFO_INIT;

  ok(cohort_group_memory(group, 0, &info));
  return info.planned_bytes;
}

/* Compares all gradients of both groups, on all devices. */
static void have_the_same_gradients(const cohort_group *one, const cohort_group *other, size_t num_contexts) {
  enum { MOST = 50000 };
  static float expected[MOST], found[MOST];
  size_t d;

  for (d = 0; d < num_contexts; ++d) {
    const size_t n = gradients(one, d, expected, MOST);

    assert_int_equal(gradients(other, d, found, MOST), n);
    assert_memory_equal(found, expected, n * sizeof(float));
  }
}

static void gradients_are_the_same_in_less_memory(void **state) {
  const cohort_bool how[][2] = {{1, 0}, {0, 1}, {1, 1}}; /* backward_once, recompute */
  size_t contexts, i, step;

  (void)state;
  for (contexts = 1; contexts <= 2; ++contexts) {
    cohort_group *keeps = bind_deep(contexts, 0, 0, "write"), *frees[COUNT(how)];

    for (i = 0; i < COUNT(how); ++i) {
      frees[i] = bind_deep(contexts, how[i][0], how[i][1], "write");
      assert_true(planned(frees[i]) < planned(keeps));
    }
    assert_true(planned(frees[2]) < planned(frees[0]));
    for (step = 0; step < 3; ++step) {
      run_forward(keeps, 1);
      backward(keeps, NULL);
      for (i = 0; i < COUNT(how); ++i) {
        run_forward(frees[i], 1);
        backward(frees[i], NULL);
        have_the_same_gradients(keeps, frees[i], contexts);
      }
    }
    cohort_group_free(keeps);
    for (i = 0; i < COUNT(how); ++i) cohort_group_free(frees[i]);
  }
}

/* Without backward_once, the result of a norm, whose memory gradients have reused or which was not kept, is recomputed
 * with gamma and beta as they were in the forward pass. */
static void a_repeated_backward_finds_what_the_first_has_overwritten(void **state) {
  const char *const changed[] = {"bn1_gamma", "bn1_beta", "bn2_gamma", "bn3_beta"};
  cohort_bool recompute;
  size_t contexts, step, i;

  (void)state;
  for (contexts = 1; contexts <= 2; ++contexts) {
    for (recompute = 0; recompute <= 1; ++recompute) {
      cohort_group *one = bind_deep(contexts, 0, 0, "write"), *two = bind_deep(contexts, 0, recompute, "write");

      for (step = 0; step < 3; ++step) {
        run_forward(one, 1);
        run_forward(two, 1);
        backward(two, NULL);
        if (step > 0) backward(two, NULL);
        for (i = 0; i < COUNT(changed); ++i) {
          set_param(one, changed[i], counted(SHAPE(CHANNELS), 0.3f + (float)step));
          set_param(two, changed[i], counted(SHAPE(CHANNELS), 0.3f + (float)step));
        }
        backward(one, NULL);
        backward(two, NULL);
        have_the_same_gradients(one, two, contexts);
      }
      cohort_group_free(one);
      cohort_group_free(two);
    }
  }
}

/* The gradients of the first backward stay, an update uses them, and a new forward allows a new backward. */
static void a_second_backward_is_refused(void **state) {
  enum { MOST = 50000 };
  static float first[MOST], after[MOST];
  const char *const grad_reqs[] = {"write", "add"};
  cohort_optimizer *sgd = NULL;
  size_t i, n;

  (void)state;
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &sgd));
  for (i = 0; i < 2; ++i) {
    cohort_group *group = bind_deep(2, 1, 0, grad_reqs[i]);
    cohort_executor *executor = NULL;

    run_forward(group, 1);
    backward(group, NULL);
    n = gradients(group, 1, first, MOST);
    fails(try_backward(group, NULL), COHORT_ERROR_STATE, "backward_once");
    ok(cohort_group_executor(group, 1, &executor));
    fails(cohort_executor_backward(executor, NULL, 0, 1), COHORT_ERROR_STATE, "run forward again");
    cohort_executor_free(executor);
    assert_int_equal(gradients(group, 1, after, MOST), n);
    assert_memory_equal(after, first, n * sizeof(float));
    ok(cohort_group_update(group, sgd, COHORT_UPDATE_ON_STORE));
    fails(try_backward(group, NULL), COHORT_ERROR_STATE, "backward_once");
    run_forward(group, 1);
    backward(group, NULL);
    /* After inference, backward runs forward in training mode first; that also counts once per forward. */
    run_forward(group, 0);
    backward(group, NULL);
    fails(try_backward(group, NULL), COHORT_ERROR_STATE, "backward_once");
    cohort_group_free(group);
  }
  cohort_optimizer_free(sgd);
}

static void set_counted(cohort_executor *executor, const char *name, const int64_t *shape, int32_t num_axes) {
  cohort_ndarray *from = counted(shape, num_axes, 1e-4f), *to = arg_of(executor, name);

  ok(cohort_ndarray_copy_to(from, to));
  cohort_ndarray_free(from);
  cohort_ndarray_free(to);
}

/* A short forward pass has kernels with scratch for one thread; the longer backward pass has scratch for two. */
static void recomputation_uses_no_more_threads_than_it_has_scratch_for(void **state) {
  enum { ROWS = 8, COLUMNS = 1024 };
  static float found[2][ROWS * COLUMNS + 2 * 2 * COLUMNS];
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_bool recompute;

  (void)state;
  options.num_threads = 2;
  options.grad_req = "add";
  for (recompute = 0; recompute <= 1; ++recompute) {
    cohort_symbol *x = node("Activation", "x", ATTRS("act_type", "tanh"), INPUTS(variable("data"))), *order = NULL;
    cohort_executor *executor;
    cohort_ndarray *head = counted(SHAPE(ROWS, 2), 0.01f);
    size_t i, at = 0;

    ok(cohort_symbol_copy(x, &order));
    order = node("argsort", "order", ATTRS("axis", "-1"), INPUTS(order));
    order = node("FullyConnected", "one", ATTRS("num_hidden", "2", "no_bias", "True"), INPUTS(order));
    x = node("FullyConnected", "two", ATTRS("num_hidden", "2", "no_bias", "True"), INPUTS(x));
    options.recompute = recompute;
    executor = simple_bind(node("elemwise_add", "sum", NO_ATTRS, INPUTS(order, x)),
                           desc("data", SHAPE(ROWS, COLUMNS), NULL), &options);
    set_counted(executor, "data", SHAPE(ROWS, COLUMNS));
    set_counted(executor, "one_weight", SHAPE(2, COLUMNS));
    set_counted(executor, "two_weight", SHAPE(2, COLUMNS));
    for (i = 0; i < 3; ++i) {
      ok(cohort_executor_forward(executor, 1));
      ok(cohort_executor_backward(executor, &head, 1, 1));
    }
    for (i = 0; i < 3; ++i) {
      static const char *const names[] = {"data", "one_weight", "two_weight"};
      cohort_ndarray *gradient = grad_of(executor, names[i]);
      int64_t size = 0;

      ok(cohort_ndarray_size(gradient, &size));
      ok(cohort_ndarray_read(gradient, found[recompute] + at, (size_t)size * sizeof(float)));
      at += (size_t)size;
      cohort_ndarray_free(gradient);
    }
    assert_int_equal(at, COUNT(found[0]));
    cohort_ndarray_free(head);
    cohort_executor_free(executor);
  }
  assert_memory_equal(found[1], found[0], sizeof(found[0]));
}

/* A small value computed from a large one is kept if recomputing it would keep the large one alive. */
static void nothing_is_recomputed_if_that_takes_more_memory(void **state) {
  enum { ROWS = 64, COLUMNS = 512 };
  cohort_memory_info info[2] = {COHORT_MEMORY_INFO_INIT, COHORT_MEMORY_INFO_INIT};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_bool recompute;

  (void)state;
  options.num_threads = 1;
  options.grad_req = "write";
  options.backward_once = 1;
  for (recompute = 0; recompute <= 1; ++recompute) {
    cohort_symbol *x =
        node("FullyConnected", "x", ATTRS("num_hidden", "512", "no_bias", "True"), INPUTS(variable("data")));
    cohort_symbol *parts[2], *both = NULL, *sum = NULL;
    cohort_executor *executor;

    ok(cohort_symbol_copy(x, &sum));
    sum = node("sum", "sum", ATTRS("axis", "1", "keepdims", "True"), INPUTS(sum));
    parts[0] = node("square", "small", NO_ATTRS, INPUTS(sum));
    parts[1] = node("square", "large", NO_ATTRS, INPUTS(x));
    ok(cohort_symbol_group(parts, 2, &both));
    options.recompute = recompute;
    executor = simple_bind(both, desc("data", SHAPE(ROWS, COLUMNS), NULL), &options);
    cohort_symbol_free(parts[0]);
    cohort_symbol_free(parts[1]);
    ok(cohort_executor_forward(executor, 1));
    ok(cohort_executor_memory(executor, &info[recompute]));
    cohort_executor_free(executor);
  }
  assert_true(info[1].planned_bytes <= info[0].planned_bytes);
}

/* The planned memory of a training step. */
static size_t planned_for(cohort_symbol *symbol, cohort_descs *known, cohort_bool recompute) {
  cohort_memory_info info = COHORT_MEMORY_INFO_INIT;
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor;

  options.num_threads = 1;
  options.grad_req = "write";
  options.recompute = recompute;
  executor = simple_bind(symbol, known, &options);
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_memory(executor, &info));
  cohort_executor_free(executor);
  return info.planned_bytes;
}

static cohort_symbol *convolution(int i, cohort_symbol *of) {
  char name[16];

  snprintf(name, sizeof(name), "conv%d", i);
  return node("Convolution", name, ATTRS("kernel", "(1, 1)", "num_filter", "32", "no_bias", "True"), INPUTS(of));
}

/* A batch norm of a convolution, added to `before` if there is one. */
static cohort_symbol *sum_with_norm(int i, cohort_symbol *before, cohort_symbol *of) {
  char name[16];
  cohort_symbol *norm;

  snprintf(name, sizeof(name), "bn%d", i);
  norm = node("BatchNorm", name, NO_ATTRS, INPUTS(convolution(i, of)));
  snprintf(name, sizeof(name), "sum%d", i);
  return before ? node("elemwise_add", name, NO_ATTRS, INPUTS(before, norm)) : norm;
}

/* Every other residual sum whose norm nobody else reads is recomputed. */
static void every_other_residual_sum_is_recomputed(void **state) {
  enum { BLOCKS = 8 };
  size_t bytes[2];
  cohort_bool recompute;

  (void)state;
  for (recompute = 0; recompute <= 1; ++recompute) {
    cohort_symbol *last = variable("data");
    char name[16];
    int i;

    for (i = 0; i < BLOCKS; ++i) {
      cohort_symbol *before = NULL;

      ok(cohort_symbol_copy(last, &before));
      snprintf(name, sizeof(name), "act%d", i);
      last = node("Activation", name, ATTRS("act_type", "relu"), INPUTS(sum_with_norm(i, before, last)));
    }
    bytes[recompute] = planned_for(last, desc("data", SHAPE(4, 32, 32, 32), NULL), recompute);
  }
  assert_true((double)bytes[1] < 0.9 * (double)bytes[0]);
}

/* A value is not recomputed if several values that nobody else reads would have to be recomputed for it. */
static void nothing_is_recomputed_if_the_memory_between_grows(void **state) {
  enum { NORMS = 8, MORE = 3 };
  size_t bytes[2];
  cohort_bool recompute;

  (void)state;
  for (recompute = 0; recompute <= 1; ++recompute) {
    cohort_descs *images = no_descs();
    cohort_symbol *last = NULL;
    char name[16];
    int i;

    for (i = 0; i < NORMS; ++i) {
      snprintf(name, sizeof(name), "data%d", i);
      ok(cohort_descs_add(images, name, SHAPE(4, 32, 32, 32), COHORT_DTYPE_NONE, NULL));
      last = sum_with_norm(i, last, variable(name));
    }
    last = node("Activation", "relu", ATTRS("act_type", "relu"), INPUTS(last));
    for (i = 0; i < MORE; ++i) last = convolution(NORMS + i, last);
    bytes[recompute] = planned_for(last, images, recompute);
  }
  assert_true(bytes[1] <= bytes[0]);
}

/* The filters are 40 times as large as the images: whatever a kernel derives from them, or accumulates them in, is
 * scratch and does not count as a value. */
static void values_are_fewer_than_filters(const cohort_executor_options *options) {
  enum { IMAGES = 2 * 256 * 4 * 4 * sizeof(float), FILTERS = 256 * 256 * 9 * sizeof(float) };
  cohort_memory_info info = COHORT_MEMORY_INFO_INIT;
  cohort_symbol *last = variable("data");
  cohort_executor *executor;
  int i;

  for (i = 0; i < 2; ++i) {
    char name[16];

    snprintf(name, sizeof(name), "conv%d", i);
    last = node("Convolution", name, ATTRS("kernel", "(3, 3)", "pad", "(1, 1)", "num_filter", "256", "no_bias", "True"),
                INPUTS(last));
    snprintf(name, sizeof(name), "act%d", i);
    last = node("Activation", name, ATTRS("act_type", "tanh"), INPUTS(last));
  }
  executor =
      simple_bind(node("MakeLoss", "loss", NO_ATTRS, INPUTS(last)), desc("data", SHAPE(2, 256, 4, 4), NULL), options);
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_backward(executor, NULL, 0, 1));
  ok(cohort_executor_memory(executor, &info));
  assert_true(info.value_bytes >= IMAGES);
  assert_true(info.value_bytes <= info.planned_bytes);
  assert_true(info.value_bytes < FILTERS / 4);
  cohort_executor_free(executor);
}

static void values_are_told_apart_from_workspaces(void **state) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  (void)state;
  options.grad_req = "write";
  values_are_fewer_than_filters(&options);
  options.compute_dtype = COHORT_DTYPE_BFLOAT16;
  values_are_fewer_than_filters(&options);
}

static void managers_pass_it_on(void **state) {
  const cohort_context cpu = {COHORT_DEVICE_CPU, 0};
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_symbol *symbol = deep();
  cohort_descs *data = desc("data", SHAPE(BATCH, 3, SIDE, SIDE), NULL);
  cohort_descs *label = desc("softmax_label", SHAPE(BATCH), NULL);
  cohort_ndarray *rows = counted(SHAPE(BATCH, 3, SIDE, SIDE), 0.01f), *classes = counted(SHAPE(BATCH), 1);
  cohort_manager *manager = NULL;

  (void)state;
  options.backward_once = 1;
  ok(cohort_manager_create(symbol, &cpu, 1, BATCH, data, label, params, COUNT(params) - 1, &options, &manager));
  ok(cohort_manager_load_data_batch(manager, &rows, 1, &classes, 1, NULL, NULL, NULL));
  ok(cohort_manager_forward(manager, 1));
  ok(cohort_manager_backward(manager));
  fails(cohort_manager_backward(manager), COHORT_ERROR_STATE, "backward_once");
  ok(cohort_manager_forward(manager, 1));
  ok(cohort_manager_backward(manager));
  cohort_manager_free(manager);
  options.backward_once = 2;
  fails(cohort_manager_create(symbol, &cpu, 1, BATCH, data, label, params, COUNT(params) - 1, &options, &manager),
        COHORT_ERROR_INVALID_ARGUMENT, "backward_once");
  options.backward_once = 0;
  options.recompute = 2;
  fails(cohort_manager_create(symbol, &cpu, 1, BATCH, data, label, params, COUNT(params) - 1, &options, &manager),
        COHORT_ERROR_INVALID_ARGUMENT, "recompute");
  cohort_ndarray_free(rows);
  cohort_ndarray_free(classes);
  cohort_descs_free(data);
  cohort_descs_free(label);
  cohort_symbol_free(symbol);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(gradients_are_the_same_in_less_memory),
      TEST(a_repeated_backward_finds_what_the_first_has_overwritten),
      TEST(a_second_backward_is_refused),
      TEST(recomputation_uses_no_more_threads_than_it_has_scratch_for),
      TEST(nothing_is_recomputed_if_that_takes_more_memory),
      TEST(every_other_residual_sum_is_recomputed),
      TEST(nothing_is_recomputed_if_the_memory_between_grows),
      TEST(values_are_told_apart_from_workspaces),
      TEST(managers_pass_it_on),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
