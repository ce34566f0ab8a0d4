/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient requests, backward, gradients of inputs: GRQ-01 to GRQ-09, BWD-01 to BWD-10, IGR-01 to IGR-03. */
#include "support/group_tests.h"

/* A plain head: fc = data . (1, 10)^T over `batch` rows of two. */
static cohort_group *bind_linear(size_t num_contexts, int64_t batch, const cohort_group_options *options) {
  cohort_group *group = bind_for_training(linear("1"), num_contexts, desc("data", SHAPE(batch, 2), NULL), NULL,
                                          NAMES("fc_weight"), options);

  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  return group;
}

/* Checks the grad_req of an argument on device 0. */
static void grad_req_is(const cohort_group *group, size_t arg, int32_t grad_req) {
  cohort_executor *executor = NULL;
  int32_t found = -1;

  ok(cohort_group_executor(group, 0, &executor));
  ok(cohort_executor_grad_req(executor, arg, &found));
  cohort_executor_free(executor);
  assert_int_equal(found, grad_req);
}

/* The arguments of regression(): data, fc_weight, label. */
static void grad_reqs_are(cohort_group *group, int32_t data, int32_t weight, int32_t label) {
  grad_req_is(group, 0, data);
  grad_req_is(group, 1, weight);
  grad_req_is(group, 2, label);
  cohort_group_free(group);
}

/* GRQ-02: parameters get the given request, data get it with inputs_need_grad; fixed parameters, labels and other
 * arguments get none. */
static void a_word_is_for_parameters_and_wanted_inputs(void **state) {
  const char *const fixed[] = {"fc_weight", "no_such_argument"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  (void)state;
  grad_reqs_are(bind_regression(2, 4, NULL), COHORT_GRAD_NULL, COHORT_GRAD_WRITE, COHORT_GRAD_NULL);
  options.grad_req = "add";
  grad_reqs_are(bind_regression(2, 4, &options), COHORT_GRAD_NULL, COHORT_GRAD_ADD, COHORT_GRAD_NULL);
  options.inputs_need_grad = 1;
  grad_reqs_are(bind_regression(2, 4, &options), COHORT_GRAD_ADD, COHORT_GRAD_ADD, COHORT_GRAD_NULL);
  options.fixed_param_names = fixed;
  options.num_fixed_param_names = COUNT(fixed);
  grad_reqs_are(bind_regression(2, 4, &options), COHORT_GRAD_ADD, COHORT_GRAD_NULL, COHORT_GRAD_NULL);
  options.grad_req = "null";
  grad_reqs_are(bind_regression(2, 4, &options), COHORT_GRAD_NULL, COHORT_GRAD_NULL, COHORT_GRAD_NULL);
}

/* GRQ-03: a name that is both parameter and data counts as a parameter. */
static void a_name_that_is_both_counts_as_a_parameter(void **state) {
  cohort_descs *data = desc("data", SHAPE(4, 2), "NC");
  cohort_group *group;

  (void)state;
  add_desc(data, "fc_weight", SHAPE(1, 2), "CD");
  group = bind_for_training(linear("1"), 2, data, NULL, NAMES("fc_weight"), NULL);
  grad_req_is(group, 0, COHORT_GRAD_NULL);
  grad_req_is(group, 1, COHORT_GRAD_WRITE);
  cohort_group_free(group);
}

/* GRQ-04: a list is used as it is, and has one entry per argument. */
static void a_list_is_taken_as_it_is(void **state) {
  const char *const list[] = {"add", "write", "null"}, *const fixed[] = {"fc_weight"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = NULL;

  (void)state;
  options.grad_req_list = list;
  options.num_grad_reqs = 3;
  options.fixed_param_names = fixed;
  options.num_fixed_param_names = 1;
  grad_reqs_are(bind_regression(2, 4, &options), COHORT_GRAD_ADD, COHORT_GRAD_WRITE, COHORT_GRAD_NULL);
  options.num_grad_reqs = 2;
  fails(try_bind(&group, regression("1"), 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                 NAMES("fc_weight"), &options),
        COHORT_ERROR_INVALID_ARGUMENT, "grad_req");
  assert_null(group);
}

/* GRQ-05: a map overrides the defaults; it may name fixed parameters, data, and names that are no arguments. */
static void a_map_goes_over_the_defaults(void **state) {
  const char *const names[] = {"data", "fc_weight", "no_such_argument"}, *const list[] = {"add", "add", "write"};
  const char *const fixed[] = {"fc_weight"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  (void)state;
  options.grad_req_names = names;
  options.grad_req_list = list;
  options.fixed_param_names = fixed;
  options.num_fixed_param_names = 1;
  options.num_grad_reqs = 3;
  grad_reqs_are(bind_regression(2, 4, &options), COHORT_GRAD_ADD, COHORT_GRAD_ADD, COHORT_GRAD_NULL);
  options.num_grad_reqs = 1;
  grad_reqs_are(bind_regression(2, 4, &options), COHORT_GRAD_ADD, COHORT_GRAD_NULL, COHORT_GRAD_NULL);
}

/* GRQ-01: other request words are refused. */
static void another_word_is_refused(void **state) {
  const char *const list[] = {"null", "inplace", "null"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = NULL;

  (void)state;
  options.grad_req = "append";
  fails(try_bind(&group, regression("1"), 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                 NAMES("fc_weight"), &options),
        COHORT_ERROR_INVALID_ARGUMENT, "append");
  options.grad_req = NULL;
  options.grad_req_list = list;
  options.num_grad_reqs = 3;
  fails(try_bind(&group, regression("1"), 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                 NAMES("fc_weight"), &options),
        COHORT_ERROR_INVALID_ARGUMENT, "inplace");
  assert_null(group);
}

/* GRQ-06, GRQ-08, BWD-01: a group bound for inference has no gradients, whatever is asked for, and no backward. */
static void a_group_for_inference_has_no_gradients(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_ndarray *array = NULL;
  cohort_group *group;

  (void)state;
  options.inputs_need_grad = 1;
  group = bind_for_inference(regression("1"), 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                             NAMES("fc_weight"), &options);
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  assert_int_equal(num_arrays(group, COHORT_GROUP_GRADS), 0);
  grad_req_is(group, 0, COHORT_GRAD_NULL);
  grad_req_is(group, 1, COHORT_GRAD_NULL);
  forward(group, counted(SHAPE(4, 2), 1), NULL, 0);
  fails(try_backward(group, NULL), COHORT_ERROR_STATE, "for_training");
  fails(cohort_group_array(group, COHORT_GROUP_INPUT_GRADS, 0, 0, &array), COHORT_ERROR_STATE, "");
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  cohort_group_free(group);
}

/* GRQ-08: a parameter without gradient has no gradient array. */
static void a_fixed_parameter_has_no_gradient_array(void **state) {
  const char *const fixed[] = {"fc_weight"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group;

  (void)state;
  options.fixed_param_names = fixed;
  options.num_fixed_param_names = 1;
  group = bind_regression(2, 4, &options);
  assert_null(device_array(group, COHORT_GROUP_GRADS, 0, 0));
  /* BWD-10: without any gradient, backward does nothing and is no error. */
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 1), 1);
  backward(group, NULL);
  cohort_group_free(group);
}

/* BWD-09: each device has the gradients of its slice, and their sum is that of the whole batch. With labels 0 the
 * gradient of row i is p_i * (2i, 2i + 1), p = 10, 32, 54, 76. */
static void gradients_are_those_of_each_slice(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 64, 106);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 672, 802);
  cohort_group_free(group);

  group = bind_regression(1, 4, NULL);
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 736, 908);
  cohort_group_free(group);
}

/* GRQ-09, BWD-08: "write" overwrites, "add" adds, starting from zero, also when backward is repeated without a new
 * forward. */
static void write_overwrites_and_add_adds(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = bind_regression(2, 4, NULL);

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  backward(group, NULL);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 64, 106);
  cohort_group_free(group);

  options.grad_req = "add";
  group = bind_regression(2, 4, &options);
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  backward(group, NULL);
  backward(group, NULL);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 192, 318);
  fill(device_array(group, COHORT_GROUP_GRADS, 0, 0), 0);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 64, 106);
  cohort_group_free(group);
}

/* GRQ-09: where no gradient flows, "write" gives zeros and "add" leaves the array unchanged. */
static void a_blocked_argument_gets_no_gradient(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  const char *const words[] = {"write", "add"};
  const float expected[] = {0, 7};
  size_t i;

  (void)state;
  for (i = 0; i < 2; ++i) {
    cohort_symbol *blocked = node("BlockGrad", "b", NO_ATTRS, INPUTS(linear("1")));
    cohort_group *group;

    options.grad_req = words[i];
    group = bind_for_training(blocked, 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), &options);
    fill(device_array(group, COHORT_GROUP_GRADS, 0, 1), 7);
    forward(group, counted(SHAPE(4, 2), 1), NULL, 1);
    backward(group, NULL);
    holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), expected[i], expected[i]);
    cohort_group_free(group);
  }
}

/* BWD-02: each device gets its slice of a head gradient, converted to the head's dtype. */
static void a_head_gradient_is_split_like_its_output(void **state) {
  const int32_t numbers[] = {1, 10, 100, 1000};
  cohort_group *group = bind_linear(2, 4, NULL);
  cohort_ndarray *head_grad = NULL;

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), NULL, 1);
  ok(cohort_ndarray_from_host(numbers, sizeof(numbers), SHAPE(4, 1), COHORT_DTYPE_INT32, NULL, &head_grad));
  backward(group, head_grad);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 20, 31);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 6400, 7500);
  cohort_group_free(group);
}

/* BWD-02: each device gets the whole gradient of a head without batch axis. */
static void a_head_gradient_without_batch_axis_goes_whole_to_each_device(void **state) {
  cohort_symbol *symbol = node("FullyConnected", "fc", ATTRS("num_hidden", "1", "no_bias", "True", "__layout__", "CD"),
                               INPUTS(variable("data")));
  cohort_group *group = bind_for_training(symbol, 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), NULL);

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), NULL, 1);
  backward(group, floats(SHAPE(2, 1), FLOATS(1, 10)));
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 20, 31);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 64, 75);
  cohort_group_free(group);
}

/* BWD-02: head gradients along another axis than the first, and from another context. */
static void a_head_gradient_is_split_along_its_heads_axis(void **state) {
  const cohort_context far = {COHORT_DEVICE_CPU, 6};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_symbol *symbol = node("relu", "r", ATTRS("__layout__", "CN"), INPUTS(variable("data")));
  cohort_ndarray *here = counted(SHAPE(2, 3), 1), *head_grad = NULL;
  cohort_group *group;

  (void)state;
  options.inputs_need_grad = 1;
  group = bind_for_training(symbol, 2, desc("data", SHAPE(2, 3), "CN"), NULL, NO_NAMES, &options);
  forward(group, floats(SHAPE(2, 3), FLOATS(1, 1, 1, 1, 1, 1)), NULL, 1);
  ok(cohort_ndarray_copy(here, &far, &head_grad));
  cohort_ndarray_free(here);
  backward(group, head_grad);
  holds_free(device_array(group, COHORT_GROUP_INPUT_GRADS, 0, 0), 0, 1, 3, 4);
  holds_free(device_array(group, COHORT_GROUP_INPUT_GRADS, 0, 1), 2, 5);
  holds_free(merged(group, COHORT_GROUP_INPUT_GRADS, 0), 0, 1, 2, 3, 4, 5); /* IGR-01: the data's own axis */
  cohort_group_free(group);
}

/* BWD-03: heads that need no gradient ignore a given one. */
static void losses_need_no_head_gradient(void **state) {
  const char *const ops[] = {"SoftmaxOutput",
                             "SVMOutput",
                             "LinearRegressionOutput",
                             "LogisticRegressionOutput",
                             "MAERegressionOutput",
                             "MakeLoss",
                             "make_loss",
                             "BlockGrad"};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(ops); ++i) {
    const int has_label = i < 5;
    cohort_symbol *loss = has_label ? node(ops[i], "loss", NO_ATTRS, INPUTS(linear("2"), variable("label")))
                                    : node(ops[i], "loss", NO_ATTRS, INPUTS(linear("2")));
    cohort_descs *label = !has_label ? NULL : i < 2 ? desc("label", SHAPE(2), NULL) : desc("label", SHAPE(2, 2), NULL);
    cohort_group *group = bind_for_training(loss, 2, desc("data", SHAPE(2, 2), NULL), label, NAMES("fc_weight"), NULL);
    cohort_ndarray *grad;
    float without[4], with[4];

    set_param(group, "fc_weight", floats(SHAPE(2, 2), FLOATS(.1f, .2f, .4f, -.3f)));
    forward(group, counted(SHAPE(2, 2), 1),
            !has_label ? NULL
            : i < 2    ? counted(SHAPE(2), 1)
                       : counted(SHAPE(2, 2), 1),
            1);
    ok(cohort_group_backward(group, NULL, 0));
    grad = device_array(group, COHORT_GROUP_GRADS, 0, 1);
    ok(cohort_ndarray_read(grad, without, sizeof(without)));
    assert_true(i == 7 ? without[0] == 0 : without[1] != 0);
    backward(group, counted(SHAPE(2, 2), 100));
    ok(cohort_ndarray_read(grad, with, sizeof(with)));
    assert_memory_equal(with, without, sizeof(with));
    cohort_ndarray_free(grad);
    cohort_group_free(group);
  }
}

/* BWD-04: the list may be shorter if the remaining heads need none. The error for a head that needs one says what to
 * do. */
static void the_list_may_end_before_losses(void **state) {
  cohort_symbol *data = variable("data"), *same = NULL, *heads[2], *both = NULL;
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_ndarray *head_grad = counted(SHAPE(2, 1), 1);
  cohort_group *group;

  (void)state;
  ok(cohort_symbol_output(data, 0, &same));
  heads[0] = node("negative", "plain", NO_ATTRS, INPUTS(data));
  heads[1] = node("MakeLoss", "loss", NO_ATTRS, INPUTS(same));
  ok(cohort_symbol_group(heads, 2, &both));
  cohort_symbol_free(heads[0]);
  cohort_symbol_free(heads[1]);
  options.inputs_need_grad = 1;
  group = bind_for_training(both, 2, desc("data", SHAPE(2, 1), NULL), NULL, NO_NAMES, &options);
  forward(group, counted(SHAPE(2, 1), 1), NULL, 1);
  fails(cohort_group_backward(group, NULL, 0), COHORT_ERROR_INVALID_ARGUMENT, "add a loss to the symbol, or pass");
  ok(cohort_group_backward(group, &head_grad, 1));
  holds_free(merged(group, COHORT_GROUP_INPUT_GRADS, 0), 1, 0); /* 1 from the loss, -(0, 1) from the other head */
  cohort_ndarray_free(head_grad);
  cohort_group_free(group);
}

/* BWD-03: a head that is no loss needs a gradient; a loss ignores one. */
static void a_plain_head_needs_a_gradient_and_a_loss_ignores_one(void **state) {
  cohort_group *group = bind_linear(2, 4, NULL);

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), NULL, 1);
  fails(try_backward(group, NULL), COHORT_ERROR_INVALID_ARGUMENT, "fc_output");
  backward(group, floats(SHAPE(4, 1), FLOATS(1, 1, 1, 1)));
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 2, 4);
  cohort_group_free(group);

  group = bind_regression(2, 4, NULL);
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  backward(group, floats(SHAPE(4, 1), FLOATS(5, 5, 5, 5)));
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 64, 106);
  cohort_group_free(group);
}

/* BWD-03: for a loss and a plain head together, the list has NULL for the loss. */
static void losses_and_plain_heads_may_be_mixed(void **state) {
  cohort_symbol *heads[2] = {NULL, NULL}, *internals = NULL, *both = NULL;
  cohort_ndarray *head_grads[2] = {NULL, NULL};
  cohort_group *group;

  (void)state;
  heads[0] = regression("1");
  ok(cohort_symbol_internals(heads[0], &internals));
  ok(cohort_symbol_output_named(internals, "fc_output", &heads[1]));
  ok(cohort_symbol_group(heads, 2, &both));
  cohort_symbol_free(internals);
  cohort_symbol_free(heads[0]);
  cohort_symbol_free(heads[1]);
  group = bind_for_training(both, 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                            NAMES("fc_weight"), NULL);
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  head_grads[1] = floats(SHAPE(4, 1), FLOATS(1, 1, 1, 1));
  ok(cohort_group_backward(group, head_grads, 2));
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 66, 110);
  fails(cohort_group_backward(group, head_grads, 1), COHORT_ERROR_INVALID_ARGUMENT, "fc_output");
  cohort_ndarray_free(head_grads[1]);
  cohort_group_free(group);
}

/* BWD-03: gradients from argmax, from behind a loss, or to the data only reach no parameter, so a head gradient given
 * there changes nothing. With gradients of the data one of them is needed. */
static void a_head_from_which_nothing_flows_back_needs_none(void **state) {
  cohort_symbol *scores = linear("2"), *again = NULL, *data = NULL, *internals = NULL, *loss, *wanted = NULL, *heads[4],
                *all = NULL;
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_ndarray *head_grads[4] = {NULL, NULL, NULL, NULL};
  cohort_group *group;
  size_t i, last;

  (void)state;
  ok(cohort_symbol_internals(scores, &internals));
  ok(cohort_symbol_output_named(internals, "data", &data));
  cohort_symbol_free(internals);
  ok(cohort_symbol_output(scores, 0, &again));
  loss = node("LinearRegressionOutput", "loss", NO_ATTRS, INPUTS(scores, variable("label")));
  heads[0] = node("argmax", "best", ATTRS("axis", "1"), INPUTS(again));
  ok(cohort_symbol_output(loss, 0, &wanted));
  heads[1] = node("_mul_scalar", "behind", ATTRS("scalar", "2"), INPUTS(wanted));
  heads[2] = loss;
  heads[3] = node("negative", "of_data", NO_ATTRS, INPUTS(data));
  ok(cohort_symbol_group(heads, 4, &all));
  for (i = 0; i < 4; ++i) cohort_symbol_free(heads[i]);
  for (last = 0; last < 2; ++last) {
    cohort_symbol *same = NULL;
    options.inputs_need_grad = (cohort_bool)last;
    ok(cohort_symbol_copy(all, &same));
    group = bind_for_training(same, 2, desc("data", SHAPE(2, 2), NULL), desc("label", SHAPE(2, 2), NULL),
                              NAMES("fc_weight"), &options);
    set_param(group, "fc_weight", floats(SHAPE(2, 2), FLOATS(1, 0, 0, 1)));
    forward(group, counted(SHAPE(2, 2), 1), counted(SHAPE(2, 2), 0), 1);
    if (last) {
      fails(cohort_group_backward(group, NULL, 0), COHORT_ERROR_INVALID_ARGUMENT, "of_data_output");
    } else {
      ok(cohort_group_backward(group, NULL, 0));
      holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 2, 3, 3, 4.5f);
      head_grads[1] = counted(SHAPE(2, 2), 7);
      ok(cohort_group_backward(group, head_grads, 4));
      holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 2, 3, 3, 4.5f);
      cohort_ndarray_free(head_grads[1]);
    }
    cohort_group_free(group);
  }
  cohort_symbol_free(all);
}

/* BWD-04, BWD-05: not more head gradients than heads, each of the merged output's shape. */
static void head_gradients_match_the_heads(void **state) {
  cohort_group *group = bind_linear(2, 4, NULL);
  cohort_ndarray *two[2];

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), NULL, 1);
  two[0] = two[1] = counted(SHAPE(4, 1), 1);
  fails(cohort_group_backward(group, two, 2), COHORT_ERROR_INVALID_ARGUMENT, "2");
  cohort_ndarray_free(two[0]);
  fails(try_backward(group, counted(SHAPE(5, 1), 1)), COHORT_ERROR_SHAPE, "fc_output");
  fails(try_backward(group, counted(SHAPE(3, 1), 1)), COHORT_ERROR_SHAPE, "fc_output");
  fails(try_backward(group, counted(SHAPE(4, 2), 1)), COHORT_ERROR_SHAPE, "fc_output");
  backward(group, floats(SHAPE(4, 1), FLOATS(1, 1, 1, 1)));
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 10, 12);
  cohort_group_free(group);
}

/* BWD-07: backward needs a forward before it, in training or inference mode. */
static void backward_follows_a_forward(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);

  (void)state;
  fails(try_backward(group, NULL), COHORT_ERROR_STATE, "forward");
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 0);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 0), 64, 106);
  cohort_group_free(group);
}

/* BWD-07: reshaping or binding again needs a new forward. After an inference pass the gradient is that of inference:
 * Dropout is the identity. */
static void backward_follows_a_forward_of_this_binding(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_descs *data = desc("data", SHAPE(6, 2), NULL), *label = desc("label", SHAPE(6, 1), NULL);
  cohort_group *group = bind_regression(2, 4, NULL);
  size_t i;

  (void)state;
  forward(group, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  ok(cohort_group_reshape(group, data, label));
  fails(try_backward(group, NULL), COHORT_ERROR_STATE, "forward");
  forward(group, counted(SHAPE(6, 2), 0), counted(SHAPE(6, 1), 0), 1);
  backward(group, NULL);
  ok(cohort_group_bind(group, data, label, NULL, 1));
  fails(try_backward(group, NULL), COHORT_ERROR_STATE, "forward");
  cohort_descs_free(data);
  cohort_descs_free(label);
  cohort_group_free(group);

  options.inputs_need_grad = 1;
  group = bind_for_training(node("Dropout", "d", ATTRS("p", "0.5"), INPUTS(variable("data"))), 1,
                            desc("data", SHAPE(4, 2), NULL), NULL, NO_NAMES, &options);
  for (i = 0; i < 2; ++i) {
    forward(group, floats(SHAPE(4, 2), FLOATS(1, 1, 1, 1, 1, 1, 1, 1)), NULL, 0);
    backward(group, floats(SHAPE(4, 2), FLOATS(1, 2, 3, 4, 5, 6, 7, 8)));
    holds_free(merged(group, COHORT_GROUP_INPUT_GRADS, 0), 1, 2, 3, 4, 5, 6, 7, 8);
  }
  cohort_group_free(group);
}

/* BWD-08: gradients are those of the latest forward; arguments that backward reads are taken as they are when it
 * runs. */
static void backward_reads_arguments_as_they_are(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group;

  (void)state;
  options.inputs_need_grad = 1;
  group = bind_linear(2, 2, &options);
  forward(group, counted(SHAPE(2, 2), 5), NULL, 1);
  forward(group, counted(SHAPE(2, 2), 1), NULL, 1);
  set_param(group, "fc_weight", floats(SHAPE(1, 2), FLOATS(7, 9)));
  backward(group, floats(SHAPE(2, 1), FLOATS(1, 2)));
  holds_free(merged(group, COHORT_GROUP_INPUT_GRADS, 0), 7, 9, 14, 18);
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 4, 6); /* twice the row (2, 3), not (10, 15) */
  backward(group, floats(SHAPE(2, 1), FLOATS(1, 1)));
  holds_free(device_array(group, COHORT_GROUP_GRADS, 0, 1), 2, 3);
  cohort_group_free(group);
}

/* BWD-10: without any gradient backward does nothing, even where a head gradient would be needed. Update does nothing
 * either. */
static void backward_without_gradients_does_nothing(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_optimizer *optimizer;
  cohort_group *group;

  (void)state;
  options.grad_req = "null";
  group = bind_linear(2, 4, &options);
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &optimizer));
  forward(group, counted(SHAPE(4, 2), 1), NULL, 1);
  fails(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE), COHORT_ERROR_STATE, "no backward has run");
  backward(group, NULL);
  ok(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
  ok(cohort_group_update(group, optimizer, COHORT_UPDATE_NO_STORE));
  ok(cohort_group_wait(group));
  forward(group, counted(SHAPE(4, 2), 1), NULL, 1);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  cohort_optimizer_free(optimizer);
  cohort_group_free(group);
}

/* IGR-01, DIF-12: one gradient per data descriptor, in the order of the descriptors, which is not that of the
 * arguments. */
static void input_gradients_are_in_the_order_of_the_descriptors(void **state) {
  cohort_symbol *symbol = node("elemwise_sub", "d", NO_ATTRS, INPUTS(variable("first"), variable("second")));
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_descs *data = desc("second", SHAPE(2, 1), NULL);
  cohort_ndarray *batch[2];
  const char *name = NULL;
  cohort_group *group;

  (void)state;
  add_desc(data, "first", SHAPE(2, 1), NULL);
  options.inputs_need_grad = 1;
  group = bind_for_training(symbol, 2, data, NULL, NO_NAMES, &options);
  batch[0] = counted(SHAPE(2, 1), 1);
  batch[1] = counted(SHAPE(2, 1), 10);
  ok(cohort_group_forward(group, batch, 2, NULL, 0, 1));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 0, 9);
  backward(group, floats(SHAPE(2, 1), FLOATS(1, 2)));
  assert_int_equal(num_arrays(group, COHORT_GROUP_INPUT_GRADS), 2);
  ok(cohort_group_name(group, COHORT_GROUP_INPUT_GRADS, 0, &name));
  assert_string_equal(name, "second");
  holds_free(merged(group, COHORT_GROUP_INPUT_GRADS, 0), -1, -2);
  holds_free(merged(group, COHORT_GROUP_INPUT_GRADS, 1), 1, 2);
  cohort_ndarray_free(batch[0]);
  cohort_ndarray_free(batch[1]);
  cohort_group_free(group);
}

/* IGR-01: a group bound for inference has none, whatever was asked for; IGR-03: on one device they are live arrays. */
static void input_gradients_of_one_device_are_live(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_ndarray *grad = NULL;
  cohort_group *group;

  (void)state;
  options.inputs_need_grad = 1;
  group = bind_for_inference(linear("1"), 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), &options);
  fails(cohort_group_merged(group, COHORT_GROUP_INPUT_GRADS, 0, &grad), COHORT_ERROR_STATE, "");
  fails(cohort_group_array(group, COHORT_GROUP_INPUT_GRADS, 0, 0, &grad), COHORT_ERROR_STATE, "");
  assert_null(grad);
  assert_int_equal(num_arrays(group, COHORT_GROUP_INPUT_GRADS), 0);
  cohort_group_free(group);

  group = bind_linear(1, 2, &options);
  grad = merged(group, COHORT_GROUP_INPUT_GRADS, 0);
  holds(grad, 0, 0, 0, 0);
  forward(group, counted(SHAPE(2, 2), 1), NULL, 1);
  backward(group, floats(SHAPE(2, 1), FLOATS(1, 2)));
  holds(grad, 1, 10, 2, 20);
  backward(group, floats(SHAPE(2, 1), FLOATS(3, 4)));
  holds_free(grad, 3, 30, 4, 40);
  cohort_group_free(group);
}

/* IGR-01, IGR-03: gradients of the data, by device and merged, zeros before backward. Row i gets p_i * (1, 10). */
static void input_gradients_are_merged_like_the_data(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group;

  (void)state;
  options.inputs_need_grad = 1;
  group = bind_regression(2, 3, &options);
  holds_free(merged(group, COHORT_GROUP_INPUT_GRADS, 0), 0, 0, 0, 0, 0, 0);
  forward(group, counted(SHAPE(3, 2), 1), counted(SHAPE(3, 1), 0), 1);
  backward(group, NULL);
  holds_free(device_array(group, COHORT_GROUP_INPUT_GRADS, 0, 0), 10, 100, 32, 320);
  holds_free(device_array(group, COHORT_GROUP_INPUT_GRADS, 0, 1), 54, 540);
  holds_free(merged(group, COHORT_GROUP_INPUT_GRADS, 0), 10, 100, 32, 320, 54, 540);
  cohort_group_free(group);
}

/* IGR-01: a group bound without them has none. */
static void input_gradients_that_were_not_asked_for_are_refused(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  cohort_ndarray *array = NULL;

  (void)state;
  fails(cohort_group_merged(group, COHORT_GROUP_INPUT_GRADS, 0, &array), COHORT_ERROR_STATE, "inputs_need_grad");
  fails(cohort_group_array(group, COHORT_GROUP_INPUT_GRADS, 0, 0, &array), COHORT_ERROR_STATE, "inputs_need_grad");
  assert_null(array);
  cohort_group_free(group);
}

/* IGR-02: the gradient of an input without batch axis is the sum over the devices. */
static void the_gradient_of_an_input_without_batch_axis_is_the_sum(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_descs *data = desc("data", SHAPE(4, 2), "NC");
  cohort_ndarray *batch[2], *weight_grad;
  cohort_group *group;

  (void)state;
  add_desc(data, "fc_weight", SHAPE(1, 2), "CD");
  options.inputs_need_grad = 1;
  group = bind_for_training(linear("1"), 2, data, NULL, NO_NAMES, &options);
  batch[0] = counted(SHAPE(4, 2), 1);
  batch[1] = floats(SHAPE(1, 2), FLOATS(1, 10));
  ok(cohort_group_forward(group, batch, 2, NULL, 0, 1));
  cohort_ndarray_free(batch[0]);
  cohort_ndarray_free(batch[1]);
  backward(group, floats(SHAPE(4, 1), FLOATS(1, 1, 1, 1)));
  weight_grad = merged(group, COHORT_GROUP_INPUT_GRADS, 1);
  has_shape(weight_grad, 1, 2);
  holds_free(weight_grad, 12, 16);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_word_is_for_parameters_and_wanted_inputs),
      TEST(a_name_that_is_both_counts_as_a_parameter),
      TEST(a_list_is_taken_as_it_is),
      TEST(a_map_goes_over_the_defaults),
      TEST(another_word_is_refused),
      TEST(a_group_for_inference_has_no_gradients),
      TEST(a_fixed_parameter_has_no_gradient_array),
      TEST(gradients_are_those_of_each_slice),
      TEST(write_overwrites_and_add_adds),
      TEST(a_blocked_argument_gets_no_gradient),
      TEST(a_head_gradient_is_split_like_its_output),
      TEST(a_head_gradient_without_batch_axis_goes_whole_to_each_device),
      TEST(a_head_gradient_is_split_along_its_heads_axis),
      TEST(losses_need_no_head_gradient),
      TEST(the_list_may_end_before_losses),
      TEST(a_plain_head_needs_a_gradient_and_a_loss_ignores_one),
      TEST(losses_and_plain_heads_may_be_mixed),
      TEST(a_head_from_which_nothing_flows_back_needs_none),
      TEST(head_gradients_match_the_heads),
      TEST(backward_follows_a_forward),
      TEST(backward_follows_a_forward_of_this_binding),
      TEST(backward_reads_arguments_as_they_are),
      TEST(backward_without_gradients_does_nothing),
      TEST(input_gradients_are_in_the_order_of_the_descriptors),
      TEST(input_gradients_of_one_device_are_live),
      TEST(input_gradients_are_merged_like_the_data),
      TEST(input_gradients_that_were_not_asked_for_are_refused),
      TEST(the_gradient_of_an_input_without_batch_axis_is_the_sum),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
