/* SPDX-License-Identifier: Apache-2.0 */
/* Which arguments get a gradient: GRQ-01 to GRQ-08, in the forms that test_group_backward.c leaves out. */
#include "support/group_tests.h"

/* The grad_req of data, fc_weight and label of bind_regression(2, 4, options), on each device. */
static void reqs_are(const cohort_group_options *options, int32_t data, int32_t weight, int32_t label) {
  cohort_group *group = bind_regression(2, 4, options);
  const int32_t expected[] = {data, weight, label};
  size_t device, arg;

  for (device = 0; device < 2; ++device) {
    cohort_executor *executor = NULL;

    ok(cohort_group_executor(group, device, &executor));
    for (arg = 0; arg < 3; ++arg) {
      int32_t found = -1;
      ok(cohort_executor_grad_req(executor, arg, &found));
      assert_int_equal(found, expected[arg]);
    }
    cohort_executor_free(executor);
  }
  cohort_group_free(group);
}

/* GRQ-01: the codes are 0, 1 and 3; 2 is no request. */
static void codes_are_0_1_and_3(void **state) {
  const int32_t codes[] = {0, 1, 3, 2, 4, -1};
  cohort_symbol *symbol = linear("1");
  cohort_ndarray *args[2], *grads[2];
  size_t i;

  (void)state;
  assert_int_equal(COHORT_GRAD_NULL, 0);
  assert_int_equal(COHORT_GRAD_WRITE, 1);
  assert_int_equal(COHORT_GRAD_ADD, 3);
  args[0] = counted(SHAPE(2, 2), 1);
  args[1] = counted(SHAPE(1, 2), 1);
  grads[0] = counted(SHAPE(2, 2), 0);
  grads[1] = counted(SHAPE(1, 2), 0);
  for (i = 0; i < COUNT(codes); ++i) {
    const int32_t req[] = {codes[i], COHORT_GRAD_WRITE};
    cohort_executor *executor = NULL;
    int32_t found = -1;

    if (i < 3) {
      ok(cohort_executor_bind(symbol, NULL, args, 2, grads, req, NULL, 0, NULL, &executor));
      ok(cohort_executor_grad_req(executor, 0, &found));
      assert_int_equal(found, codes[i]);
      cohort_executor_free(executor);
    } else {
      fails(cohort_executor_bind(symbol, NULL, args, 2, grads, req, NULL, 0, NULL, &executor),
            COHORT_ERROR_INVALID_ARGUMENT, "grad_req");
      assert_null(executor);
    }
  }
  for (i = 0; i < 2; ++i) {
    cohort_ndarray_free(args[i]);
    cohort_ndarray_free(grads[i]);
  }
  cohort_symbol_free(symbol);
}

/* data + memory + other, where memory is a state. Gives the request of each argument on device 1. */
static void sum_reqs_are(cohort_group_options *options, int32_t data, int32_t memory, int32_t other) {
  static const char *const states[] = {"memory"};
  cohort_symbol *sum = node("elemwise_add", "sum", NO_ATTRS, INPUTS(variable("data"), variable("memory")));
  const int32_t expected[] = {data, memory, other};
  cohort_executor *executor = NULL;
  cohort_group *group;
  size_t i;

  options->state_names = states;
  options->num_state_names = 1;
  group = bind_for_training(node("elemwise_add", "all", NO_ATTRS, INPUTS(sum, variable("other"))), 2,
                            desc("data", SHAPE(4, 2), NULL), NULL, NO_NAMES, options);
  ok(cohort_group_executor(group, 1, &executor));
  for (i = 0; i < 3; ++i) {
    int32_t found = -1;

    ok(cohort_executor_grad_req(executor, i, &found));
    assert_int_equal(found, expected[i]);
  }
  cohort_executor_free(executor);
  cohort_group_free(group);
}

/* GRQ-02, STA-01: an argument that is neither parameter, data nor label gets no gradient, and a state none unless a map
 * names it. */
static void other_arguments_and_states_get_no_gradient(void **state) {
  const char *const names[] = {"memory"}, *const words[] = {"add"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  (void)state;
  options.grad_req = "add";
  options.inputs_need_grad = 1;
  sum_reqs_are(&options, COHORT_GRAD_ADD, COHORT_GRAD_NULL, COHORT_GRAD_NULL);
  options.grad_req = NULL;
  options.grad_req_names = names;
  options.grad_req_list = words;
  options.num_grad_reqs = 1;
  sum_reqs_are(&options, COHORT_GRAD_WRITE, COHORT_GRAD_ADD, COHORT_GRAD_NULL);
}

/* GRQ-03: data that is a parameter too is fixed like a parameter, whatever inputs_need_grad says. */
static void a_parameter_stays_one_when_it_is_data_too(void **state) {
  const char *const fixed[] = {"fc_weight"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_descs *data = desc("data", SHAPE(4, 2), "NC");
  cohort_executor *executor = NULL;
  cohort_group *group;
  int32_t found = -1;

  (void)state;
  add_desc(data, "fc_weight", SHAPE(1, 2), "CD");
  options.inputs_need_grad = 1;
  options.fixed_param_names = fixed;
  options.num_fixed_param_names = 1;
  group = bind_for_training(linear("1"), 2, data, NULL, NAMES("fc_weight"), &options);
  ok(cohort_group_executor(group, 0, &executor));
  ok(cohort_executor_grad_req(executor, 0, &found));
  assert_int_equal(found, COHORT_GRAD_WRITE);
  ok(cohort_executor_grad_req(executor, 1, &found));
  assert_int_equal(found, COHORT_GRAD_NULL);
  cohort_executor_free(executor);
  cohort_group_free(group);
}

/* GRQ-04: a list is used as it is: neither inputs_need_grad nor parameters add to it, and nothing is cut off. */
static void a_list_says_all(void **state) {
  const char *const list[] = {"null", "null", "write", "write"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_group *group = NULL;

  (void)state;
  options.grad_req_list = list;
  options.num_grad_reqs = 3;
  options.inputs_need_grad = 1;
  reqs_are(&options, COHORT_GRAD_NULL, COHORT_GRAD_NULL, COHORT_GRAD_WRITE);
  options.num_grad_reqs = 4;
  fails(try_bind(&group, regression("1"), 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                 NAMES("fc_weight"), &options),
        COHORT_ERROR_INVALID_ARGUMENT, "grad_req");
  assert_null(group);
}

/* GRQ-05: a map may turn on the gradient of a label and turn off any other; an empty one leaves the defaults. */
static void a_map_turns_on_and_off(void **state) {
  const char *const names[] = {"fc_weight", "label", "data"}, *const words[] = {"null", "add", "null"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  (void)state;
  options.inputs_need_grad = 1;
  options.grad_req_names = names;
  options.grad_req_list = words;
  reqs_are(&options, COHORT_GRAD_WRITE, COHORT_GRAD_WRITE, COHORT_GRAD_NULL); /* num_grad_reqs is 0 */
  options.num_grad_reqs = 1;
  reqs_are(&options, COHORT_GRAD_WRITE, COHORT_GRAD_NULL, COHORT_GRAD_NULL);
  options.num_grad_reqs = 3;
  reqs_are(&options, COHORT_GRAD_NULL, COHORT_GRAD_NULL, COHORT_GRAD_ADD);
}

/* GRQ-06: a group bound for inference has no gradients, whichever form asks for them. */
static void no_form_brings_gradients_to_inference(void **state) {
  const char *const names[] = {"data", "fc_weight", "label"}, *const words[] = {"write", "add", "write"};
  size_t form, i;

  (void)state;
  for (form = 0; form < 3; ++form) {
    cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
    cohort_executor *executor = NULL;
    cohort_group *group;

    options.inputs_need_grad = 1;
    if (form == 0) options.grad_req = "add";
    if (form > 0) options.grad_req_list = words;
    if (form > 0) options.num_grad_reqs = 3;
    if (form == 2) options.grad_req_names = names;
    group = bind_for_inference(regression("1"), 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                               NAMES("fc_weight"), &options);
    ok(cohort_group_executor(group, 1, &executor));
    for (i = 0; i < 3; ++i) {
      cohort_ndarray *grad = NULL;
      int32_t found = -1;

      ok(cohort_executor_grad_req(executor, i, &found));
      assert_int_equal(found, COHORT_GRAD_NULL);
      ok(cohort_executor_array(executor, COHORT_EXECUTOR_GRADS, i, &grad));
      assert_null(grad);
    }
    assert_int_equal(num_arrays(group, COHORT_GROUP_GRADS), 0);
    cohort_executor_free(executor);
    cohort_group_free(group);
  }
}

/* GRQ-07: the default of a group is "write", so that a training step needs no option. */
static void a_group_writes_unless_told_otherwise(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  (void)state;
  reqs_are(NULL, COHORT_GRAD_NULL, COHORT_GRAD_WRITE, COHORT_GRAD_NULL);
  reqs_are(&options, COHORT_GRAD_NULL, COHORT_GRAD_WRITE, COHORT_GRAD_NULL);
}

/* Data and weight of linear("1"), bound by shape with these options. */
static cohort_error *try_simple_bind(const cohort_executor_options *options, int32_t *reqs) {
  cohort_symbol *symbol = linear("1");
  cohort_descs *known = desc("data", SHAPE(4, 2), NULL);
  cohort_executor *executor = NULL;
  cohort_error *error = cohort_executor_simple_bind(symbol, NULL, known, options, &executor);

  if (!error) {
    ok(cohort_executor_grad_req(executor, 0, &reqs[0]));
    ok(cohort_executor_grad_req(executor, 1, &reqs[1]));
  }
  cohort_executor_free(executor);
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
  return error;
}

/* GRQ-07: an executor has no gradients by default; an empty list or map is an error; a map counts for the arguments it
 * names. */
static void an_executor_has_no_gradients_unless_told_otherwise(void **state) {
  const char *const names[] = {"fc_weight", "no_such_argument"}, *const words[] = {"add", "write"};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  int32_t reqs[2] = {-1, -1};

  (void)state;
  ok(try_simple_bind(NULL, reqs));
  assert_true(reqs[0] == COHORT_GRAD_NULL && reqs[1] == COHORT_GRAD_NULL);
  ok(try_simple_bind(&options, reqs));
  assert_true(reqs[0] == COHORT_GRAD_NULL && reqs[1] == COHORT_GRAD_NULL);
  options.grad_req = "write";
  ok(try_simple_bind(&options, reqs));
  assert_true(reqs[0] == COHORT_GRAD_WRITE && reqs[1] == COHORT_GRAD_WRITE);
  options.grad_req = NULL;
  options.grad_req_list = words;
  fails(try_simple_bind(&options, reqs), COHORT_ERROR_INVALID_ARGUMENT, "grad_req");
  options.num_grad_reqs = 2;
  ok(try_simple_bind(&options, reqs));
  assert_true(reqs[0] == COHORT_GRAD_ADD && reqs[1] == COHORT_GRAD_WRITE);
  options.grad_req_names = names;
  ok(try_simple_bind(&options, reqs));
  assert_true(reqs[0] == COHORT_GRAD_NULL && reqs[1] == COHORT_GRAD_ADD);
  options.num_grad_reqs = 0;
  fails(try_simple_bind(&options, reqs), COHORT_ERROR_INVALID_ARGUMENT, "grad_req");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(codes_are_0_1_and_3),
      TEST(other_arguments_and_states_get_no_gradient),
      TEST(a_parameter_stays_one_when_it_is_data_too),
      TEST(a_list_says_all),
      TEST(a_map_turns_on_and_off),
      TEST(no_form_brings_gradients_to_inference),
      TEST(a_group_writes_unless_told_otherwise),
      TEST(an_executor_has_no_gradients_unless_told_otherwise),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
