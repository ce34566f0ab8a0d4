/* SPDX-License-Identifier: Apache-2.0 */
/* Things that MXNet's interfaces do in different ways, and Cohort in one: DIF-06 to DIF-10, DIF-12, DIF-13, DIF-15,
 * DIF-20. */
#include "support/group_tests.h"

static cohort_executor *executor_of(const cohort_group *group) {
  cohort_executor *executor = NULL;

  ok(cohort_group_executor(group, 0, &executor));
  return executor;
}

/* The gradient requests of data, fc_weight and label. */
static void requests_are(const cohort_executor *executor, int32_t data, int32_t weight, int32_t label) {
  const int32_t expected[] = {data, weight, label};
  size_t i;

  for (i = 0; i < 3; ++i) {
    int32_t found = -1;

    ok(cohort_executor_grad_req(executor, i, &found));
    assert_int_equal(found, expected[i]);
  }
}

/* DIF-06: a word, a list or a map for a group; a code for each argument of an executor. */
static void gradients_are_requested_in_four_forms(void **state) {
  const char *const words[] = {"add", "null", "write"}, *const names[] = {"label", "fc_weight"};
  const int32_t codes[] = {COHORT_GRAD_ADD, COHORT_GRAD_WRITE, COHORT_GRAD_NULL};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_symbol *symbol = regression("1");
  cohort_ndarray *args[3], *grads[3];
  cohort_executor *executor = NULL;
  cohort_group *group;
  int form;
  size_t i;

  (void)state;
  for (form = 0; form < 3; ++form) {
    options.grad_req = form == 0 ? "add" : NULL;
    options.grad_req_list = form == 0 ? NULL : words;
    options.grad_req_names = form == 2 ? names : NULL;
    options.num_grad_reqs = form == 0 ? 0 : form == 1 ? 3 : 2;
    group = bind_regression(1, 4, &options);
    executor = executor_of(group);
    if (form == 0) requests_are(executor, COHORT_GRAD_NULL, COHORT_GRAD_ADD, COHORT_GRAD_NULL);
    if (form == 1) requests_are(executor, COHORT_GRAD_ADD, COHORT_GRAD_NULL, COHORT_GRAD_WRITE);
    if (form == 2) requests_are(executor, COHORT_GRAD_NULL, COHORT_GRAD_NULL, COHORT_GRAD_ADD);
    cohort_executor_free(executor);
    cohort_group_free(group);
  }
  args[0] = counted(SHAPE(4, 2), 1);
  args[1] = floats(SHAPE(1, 2), FLOATS(1, 10));
  args[2] = counted(SHAPE(4, 1), 0);
  for (i = 0; i < 3; ++i) ok(cohort_ndarray_copy(args[i], NULL, &grads[i]));
  ok(cohort_executor_bind(symbol, NULL, args, 3, grads, codes, NULL, 0, NULL, &executor));
  requests_are(executor, COHORT_GRAD_ADD, COHORT_GRAD_WRITE, COHORT_GRAD_NULL);
  cohort_executor_free(executor);
  cohort_symbol_free(symbol);
  for (i = 0; i < 3; ++i) {
    cohort_ndarray_free(args[i]);
    cohort_ndarray_free(grads[i]);
  }
}

/* DIF-07, DIF-08: training without labels and a batch that is too long are errors before anything is loaded, on one
 * device and on several. */
static void a_batch_that_does_not_fit_loads_nothing(void **state) {
  size_t num_contexts;

  (void)state;
  for (num_contexts = 1; num_contexts <= 2; ++num_contexts) {
    cohort_group *group = bind_regression(num_contexts, 2, NULL);

    forward(group, counted(SHAPE(2, 2), 1), counted(SHAPE(2, 1), 7), 1);
    fails(try_forward(group, counted(SHAPE(2, 2), 5), NULL, 1), COHORT_ERROR_INVALID_ARGUMENT, "label");
    fails(try_forward(group, counted(SHAPE(2, 2), 5), NULL, -1), COHORT_ERROR_INVALID_ARGUMENT, "label");
    fails(try_forward(group, counted(SHAPE(3, 2), 5), counted(SHAPE(2, 1), 9), 1), COHORT_ERROR_SHAPE, "data");
    fails(try_forward(group, counted(SHAPE(2, 2), 5), counted(SHAPE(3, 1), 9), 1), COHORT_ERROR_SHAPE, "label");
    ok(cohort_group_run(group, 1));
    holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32);
    forward(group, counted(SHAPE(2, 2), 2), NULL, 0);
    backward(group, NULL);
    if (num_contexts == 1) holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 57 * 4, 20 * 2 + 57 * 6);
    cohort_group_free(group);
  }
}

/* DIF-09: loading and running are one call or two. */
static void loading_and_running_are_one_call_or_two(void **state) {
  cohort_group *group = bind_regression(2, 2, NULL);
  cohort_ndarray *data = counted(SHAPE(2, 2), 1);

  (void)state;
  ok(cohort_group_forward(group, &data, 1, NULL, 0, 0));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32);
  fill(data, 1);
  data = floats(SHAPE(2, 2), FLOATS(1, 1, 1, 1));
  ok(cohort_group_load(group, &data, 1, NULL, 0));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32); /* not run yet */
  ok(cohort_group_run(group, 0));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 11, 11);
  cohort_ndarray_free(data);
  cohort_group_free(group);
}

/* Whether Dropout has zeroed elements of a row of ones. */
static int dropped(cohort_ndarray *output) {
  float values[64];
  int zeros = 0;
  size_t i;

  ok(cohort_ndarray_read(output, values, sizeof(values)));
  for (i = 0; i < COUNT(values); ++i) zeros += values[i] == 0;
  cohort_ndarray_free(output);
  return zeros > 0;
}

/* DIF-10: for a group -1 means "as bound"; an executor is not bound for one mode, so it must be told. */
static void is_train_may_be_left_to_a_group(void **state) {
  const int32_t words[] = {-1, 0, 1};
  size_t for_training, i;

  (void)state;
  for (for_training = 0; for_training < 2; ++for_training) {
    cohort_symbol *dropout = node("Dropout", "d", NO_ATTRS, INPUTS(variable("data")));
    cohort_group *group = (for_training ? bind_for_training : bind_for_inference)(
        dropout, 1, desc("data", SHAPE(64), NULL), NULL, NO_NAMES, NULL);
    cohort_executor *executor = executor_of(group);

    for (i = 0; i < COUNT(words); ++i) {
      cohort_ndarray *ones = NULL;

      ok(cohort_ndarray_full(SHAPE(64), COHORT_DTYPE_FLOAT32, NULL, 1, &ones));
      forward(group, ones, NULL, words[i]);
      assert_int_equal(dropped(merged(group, COHORT_GROUP_OUTPUTS, 0)), words[i] < 0 ? (int)for_training : words[i]);
    }
    fails(cohort_group_run(group, 2), COHORT_ERROR_INVALID_ARGUMENT, "is_train");
    fails(cohort_executor_forward(executor, -1), COHORT_ERROR_INVALID_ARGUMENT, "is_train");
    fails(cohort_executor_forward(executor, 2), COHORT_ERROR_INVALID_ARGUMENT, "is_train");
    for (i = 0; i < 2; ++i) {
      cohort_ndarray *output = NULL;

      ok(cohort_executor_forward(executor, (int32_t)i));
      ok(cohort_executor_array(executor, COHORT_EXECUTOR_OUTPUTS, 0, &output));
      assert_int_equal(dropped(output), (int)i);
    }
    cohort_executor_free(executor);
    cohort_group_free(group);
  }
}

/* DIF-10: and to a manager, whose groups are bound for training. */
static void is_train_may_be_left_to_a_manager(void **state) {
  const cohort_context cpu0 = {COHORT_DEVICE_CPU, 0};
  cohort_symbol *dropout = node("Dropout", "d", NO_ATTRS, INPUTS(variable("data")));
  cohort_descs *data = desc("data", SHAPE(64), NULL);
  cohort_manager *manager = NULL;
  cohort_ndarray *ones = NULL;
  int32_t is_train;

  (void)state;
  ok(cohort_manager_create(dropout, &cpu0, 1, 64, data, NULL, NULL, 0, NULL, &manager));
  ok(cohort_ndarray_full(SHAPE(64), COHORT_DTYPE_FLOAT32, NULL, 1, &ones));
  ok(cohort_manager_load_data_batch(manager, &ones, 1, NULL, 0, NULL, NULL, NULL));
  for (is_train = -1; is_train <= 1; ++is_train) {
    cohort_ndarray *output = NULL;

    ok(cohort_manager_forward(manager, is_train));
    ok(cohort_manager_merged(manager, COHORT_GROUP_OUTPUTS, 0, &output));
    assert_int_equal(dropped(output), is_train != 0);
  }
  fails(cohort_manager_forward(manager, 2), COHORT_ERROR_INVALID_ARGUMENT, "is_train");
  cohort_ndarray_free(ones);
  cohort_descs_free(data);
  cohort_symbol_free(dropout);
  cohort_manager_free(manager);
}

/* DIF-12: gradients of inputs have the order of the descriptors, and their axes. Here the second argument comes first.
 */
static void gradients_of_inputs_go_by_the_descriptors(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_symbol *dot = node("dot", "product", NO_ATTRS, INPUTS(variable("rows"), variable("matrix")));
  cohort_descs *data = desc("matrix", SHAPE(2, 1), "CD");
  cohort_ndarray *batch[2], *grad;
  cohort_group *group;
  const char *name = NULL;
  int32_t axis = -7;

  (void)state;
  add_desc(data, "rows", SHAPE(2, 2), "NC");
  options.inputs_need_grad = 1;
  group = bind_for_training(dot, 2, data, NULL, NO_NAMES, &options);
  batch[0] = floats(SHAPE(2, 1), FLOATS(1, 10));
  batch[1] = counted(SHAPE(2, 2), 1);
  ok(cohort_group_forward(group, batch, 2, NULL, 0, 1));
  cohort_ndarray_free(batch[0]);
  cohort_ndarray_free(batch[1]);
  backward(group, floats(SHAPE(2, 1), FLOATS(1, 2)));
  ok(cohort_group_name(group, COHORT_GROUP_INPUT_GRADS, 0, &name));
  assert_string_equal(name, "matrix");
  ok(cohort_group_axis(group, COHORT_GROUP_INPUT_GRADS, 1, &axis));
  assert_int_equal(axis, 0);
  grad = merged(group, COHORT_GROUP_INPUT_GRADS, 0);
  has_shape(grad, 2, 1);
  holds_free(grad, 0 * 1 + 2 * 2, 1 * 1 + 3 * 2);
  grad = merged(group, COHORT_GROUP_INPUT_GRADS, 1);
  has_shape(grad, 2, 2);
  holds_free(grad, 1, 10, 2, 20);
  cohort_group_free(group);
}

/* DIF-15: a group without states has none, and there is nothing to set. */
static void without_names_there_are_no_states(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *array = NULL;

  (void)state;
  assert_int_equal(num_arrays(group, COHORT_GROUP_STATES), 0);
  fails(cohort_group_array(group, COHORT_GROUP_STATES, 0, 0, &array), COHORT_ERROR_INVALID_ARGUMENT, "0 entries");
  assert_null(array);
  cohort_group_free(group);
}

/* DIF-20: head gradients are a list; one array is a list of one, and not the list of its rows. */
static void one_head_gradient_is_a_list_of_one(void **state) {
  cohort_symbol *heads[2] = {NULL, NULL}, *internals = NULL, *both = NULL;
  cohort_group *group =
      bind_for_training(linear("1"), 2, desc("data", SHAPE(2, 2), NULL), NULL, NAMES("fc_weight"), NULL);
  cohort_ndarray *grads[2];

  (void)state;
  forward(group, counted(SHAPE(2, 2), 1), NULL, 1);
  backward(group, floats(SHAPE(2, 1), FLOATS(1, 10)));
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 0, 1);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 20, 30);
  cohort_group_free(group);

  heads[1] = node("relu", "r", NO_ATTRS, INPUTS(linear("1")));
  ok(cohort_symbol_internals(heads[1], &internals));
  ok(cohort_symbol_output_named(internals, "fc_output", &heads[0]));
  cohort_symbol_free(internals);
  ok(cohort_symbol_group(heads, 2, &both));
  cohort_symbol_free(heads[0]);
  cohort_symbol_free(heads[1]);
  group = bind_for_training(both, 2, desc("data", SHAPE(2, 2), NULL), NULL, NAMES("fc_weight"), NULL);
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 1)));
  forward(group, counted(SHAPE(2, 2), 1), NULL, 1);
  grads[0] = floats(SHAPE(2, 1), FLOATS(1, 10));
  grads[1] = counted(SHAPE(2, 1), 1);
  fails(cohort_group_backward(group, grads, 1), COHORT_ERROR_INVALID_ARGUMENT, "r_output");
  ok(cohort_group_backward(group, grads, 2));
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 22, 33);
  cohort_ndarray_free(grads[0]);
  cohort_ndarray_free(grads[1]);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(gradients_are_requested_in_four_forms),   TEST(a_batch_that_does_not_fit_loads_nothing),
      TEST(loading_and_running_are_one_call_or_two), TEST(is_train_may_be_left_to_a_group),
      TEST(is_train_may_be_left_to_a_manager),       TEST(gradients_of_inputs_go_by_the_descriptors),
      TEST(without_names_there_are_no_states),       TEST(one_head_gradient_is_a_list_of_one),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
