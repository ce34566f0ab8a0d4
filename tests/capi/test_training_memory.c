/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that training plans: a gradient reuses the memory of the gradient that it is computed from. */
#include <stdio.h>
#include <stdlib.h>

#include "support/executor_tests.h"

enum { BATCH = 2, SIDE = 24 };

static size_t planned(const cohort_executor *executor) {
  cohort_memory_info info = COHORT_MEMORY_INFO_INIT;

  ok(cohort_executor_memory(executor, &info));
  return info.planned_bytes;
}

/* Kernels have scratch for each thread, on a machine with any number of processors. */
enum { THREADS = 2 };

static cohort_executor *bind_to_write(cohort_symbol *symbol, cohort_descs *known) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  options.grad_req = "write";
  options.num_threads = THREADS;
  return simple_bind(symbol, known, &options);
}

/* Both exponentials of the forward pass are kept; beyond them there is one gradient at a time. Norms have separate
 * kernels for channel counts that fill the processor's vectors and for others. */
static void the_gradient_of_a_batch_norm_lies_where_its_head_gradient_was(void **state) {
  const int64_t channels[] = {16, 3};
  size_t i;

  (void)state;
  only_on_cpus();
  for (i = 0; i < COUNT(channels); ++i) {
    const size_t value = (size_t)(BATCH * channels[i] * SIDE * SIDE) * sizeof(float);
    cohort_symbol *norm =
        node("BatchNorm", "norm", NO_ATTRS, INPUTS(node("exp", "before", NO_ATTRS, INPUTS(variable("x")))));
    cohort_executor *executor =
        bind_to_write(node("MakeLoss", "loss", NO_ATTRS, INPUTS(node("exp", "after", NO_ATTRS, INPUTS(norm)))),
                      desc("x", SHAPE(BATCH, channels[i], SIDE, SIDE), NULL));

    assert_true(planned(executor) < 3 * value + value / 2);
    cohort_executor_free(executor);
  }
}

/* Requests the gradients of `named`, which ends with NULL. */
static cohort_executor *bind_for_gradients_of(cohort_symbol *symbol, cohort_descs *known, const char *const *named) {
  const char *reqs[8];
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  size_t count = 0;

  while (named[count]) reqs[count++] = "write";
  options.grad_req_names = named;
  options.grad_req_list = reqs;
  options.num_grad_reqs = count;
  options.num_threads = THREADS;
  return simple_bind(symbol, known, &options);
}

static cohort_symbol *batch_norm(const char *name, cohort_symbol *data) {
  return node("BatchNorm", name, NO_ATTRS, INPUTS(data));
}

static cohort_symbol *loss_of(cohort_symbol *data) {
  return node("MakeLoss", "loss", NO_ATTRS, INPUTS(node("exp", "after", NO_ATTRS, INPUTS(data))));
}

static cohort_symbol *convolution(const char *name, const char *filters, cohort_symbol *data) {
  return node("Convolution", name, ATTRS("kernel", "(1, 1)", "num_filter", filters, "no_bias", "True"), INPUTS(data));
}

/* Max pooling keeps positions and average pooling needs nothing, so that the pooled data is not kept and its gradient
 * can use the memory. */
static void pooling_keeps_no_data(void **state) {
  const char *const types[] = {"max", "avg"};
  const size_t value = BATCH * 16 * SIDE * SIDE * sizeof(float);
  size_t i;

  (void)state;
  only_on_cpus();
  for (i = 0; i < COUNT(types); ++i) {
    cohort_symbol *pooled =
        node("Pooling", "pool", ATTRS("kernel", "(2, 2)", "stride", "(2, 2)", "pool_type", types[i]),
             INPUTS(batch_norm("norm", variable("x"))));
    cohort_executor *executor = bind_to_write(loss_of(pooled), desc("x", SHAPE(BATCH, 16, SIDE, SIDE), NULL));

    assert_true(planned(executor) < 3 * value + value / 2);
    cohort_executor_free(executor);
  }
}

/* If a weight has no gradient, only the product with the head gradient is computed. */
static void a_frozen_layer_keeps_no_data(void **state) {
  const size_t value = BATCH * 16 * SIDE * SIDE * sizeof(float);
  const size_t most[] = {2 * value + 3 * value / 4, value + value / 2};
  const char *const named[] = {"x", NULL};
  cohort_symbol *layers[2];
  size_t i;

  (void)state;
  only_on_cpus();
  layers[0] = convolution("layer", "4", batch_norm("norm", variable("x")));
  layers[1] = node("FullyConnected", "layer", ATTRS("num_hidden", "4"), INPUTS(batch_norm("norm", variable("x"))));
  for (i = 0; i < COUNT(layers); ++i) {
    cohort_executor *executor =
        bind_for_gradients_of(loss_of(layers[i]), desc("x", SHAPE(BATCH, 16, SIDE, SIDE), NULL), named);

    assert_true(planned(executor) < most[i]);
    cohort_executor_free(executor);
  }
}

/* Layers use the layout that the processor prefers, and so do their concatenations: a norm and a layer behind one read
 * the same values, of which there is one copy. */
static void layers_are_joined_as_they_lie(void **state) {
  const size_t value = BATCH * 32 * SIDE * SIDE * sizeof(float);
  cohort_descs *known = desc("x", SHAPE(BATCH, 16, SIDE, SIDE), NULL);
  cohort_symbol *joined, *same, *sum;
  cohort_executor *executor;

  (void)state;
  only_on_cpus();
  joined = node("Concat", "joined", NO_ATTRS,
                INPUTS(convolution("left", "32", variable("x")), convolution("right", "32", variable("y"))));
  ok(cohort_symbol_output(joined, 0, &same));
  sum = node("elemwise_add", "sum", NO_ATTRS,
             INPUTS(convolution("last", "16", joined), convolution("normal", "16", batch_norm("norm", same))));
  ok(cohort_descs_add(known, "y", SHAPE(BATCH, 16, SIDE, SIDE), COHORT_DTYPE_FLOAT32, NULL));
  executor = bind_to_write(loss_of(sum), known);
  assert_true(planned(executor) < 8 * value);
  cohort_executor_free(executor);
}

/* A norm keeps only its data, from which its result is recomputed if backward is repeated: gradients use the memory of
 * the result. */
static void results_of_norms_make_room_for_gradients(void **state) {
  enum { LAYERS = 4 };
  const char *const channels[] = {"16", "3"};
  size_t i;
  int layer;

  (void)state;
  only_on_cpus();
  for (i = 0; i < COUNT(channels); ++i) {
    const int64_t count = atoi(channels[i]);
    const size_t value = (size_t)(BATCH * count * SIDE * SIDE) * sizeof(float);
    cohort_symbol *last = variable("x");
    cohort_executor *executor;

    for (layer = 0; layer < LAYERS; ++layer) {
      char name[16];

      snprintf(name, sizeof(name), "layer%d", layer);
      last = convolution(name, channels[i], last);
      snprintf(name, sizeof(name), "norm%d", layer);
      last = batch_norm(name, last);
    }
    executor = bind_to_write(loss_of(last), desc("x", SHAPE(BATCH, count, SIDE, SIDE), NULL));
    assert_true(planned(executor) < (2 * LAYERS + 2) * value + value / 2);
    cohort_executor_free(executor);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_gradient_of_a_batch_norm_lies_where_its_head_gradient_was),
      cmocka_unit_test(pooling_keeps_no_data),
      cmocka_unit_test(a_frozen_layer_keeps_no_data),
      cmocka_unit_test(layers_are_joined_as_they_lie),
      cmocka_unit_test(results_of_norms_make_room_for_gradients),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
