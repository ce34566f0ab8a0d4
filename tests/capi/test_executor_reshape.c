/* SPDX-License-Identifier: Apache-2.0 */
/* Reshaped executors, made from a bound one for other shapes: EXE-27 to EXE-32. */
#include "support/executor_tests.h"

static cohort_symbol *product(void) {
  return node("elemwise_mul", "product", NO_ATTRS, INPUTS(variable("a"), variable("b")));
}

/* A description of both factors. */
static cohort_descs *both(const int64_t *shape, int32_t num_axes) {
  cohort_descs *known = desc("a", shape, num_axes, NULL);

  add_desc(known, "b", shape, num_axes, NULL);
  return known;
}

static cohort_executor *reshaped(const cohort_executor *executor, cohort_descs *known,
                                 const cohort_reshape_options *options) {
  cohort_executor *made = NULL;

  ok(try_reshape(&made, executor, known, options));
  return made;
}

/* EXE-27: the new shapes follow from the given ones only, not from those bound; the original executor stays as it
 * is. */
static void shapes_follow_from_those_given(void **state) {
  cohort_executor *executor = simple_bind(product(), desc("a", SHAPE(4), NULL), NULL), *made = NULL;
  cohort_ndarray *array;

  (void)state;
  fails(try_reshape(&made, executor, NULL, NULL), COHORT_ERROR_SHAPE, "a, b");
  fails(try_reshape(&made, executor, no_descs(), NULL), COHORT_ERROR_SHAPE, "a, b");
  assert_null(made);
  set_arg(executor, "a", 1, 2, 3, 4);
  set_arg(executor, "b", 10, 10, 10, 10);
  made = reshaped(executor, both(SHAPE(2)), NULL);
  array = output_of(made, 0);
  has_shape(array, 2);
  cohort_ndarray_free(array);
  ok(cohort_executor_forward(made, 0));
  holds_free(output_of(made, 0), 10, 20);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 10, 20, 30, 40);
  cohort_executor_free(made);
  cohort_executor_free(executor);
}

/* EXE-28, EXE-29: an argument of equal shape is shared. One of no more elements is a view of the first elements of the
 * same memory, whatever its axes; gradients behave like their arguments, and grad_req stays. */
static void smaller_shapes_are_the_same_memory(void **state) {
  cohort_executor *executor = simple_bind_with(product(), both(SHAPE(3, 5)), "add"), *same, *fewer, *turned;
  cohort_ndarray *array;
  int32_t req = -1;

  (void)state;
  set_arg(executor, "a", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
  same = reshaped(executor, both(SHAPE(3, 5)), NULL);
  assert_ptr_equal(address_free(arg_of(same, "a")), address_free(arg_of(executor, "a")));
  assert_ptr_equal(address_free(grad_of(same, "a")), address_free(grad_of(executor, "a")));
  fewer = reshaped(executor, both(SHAPE(3, 3)), NULL);
  array = arg_of(fewer, "a");
  has_shape(array, 3, 3);
  holds_free(array, 0, 1, 2, 3, 4, 5, 6, 7, 8);
  assert_ptr_equal(address_free(grad_of(fewer, "a")), address_free(grad_of(executor, "a")));
  ok(cohort_executor_grad_req(fewer, 0, &req));
  assert_int_equal(req, COHORT_GRAD_ADD);
  turned = reshaped(executor, both(SHAPE(5, 3)), NULL);
  array = arg_of(turned, "a");
  has_shape(array, 5, 3);
  holds_free(array, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
  array = grad_of(turned, "b");
  has_shape(array, 5, 3);
  cohort_ndarray_free(array);
  cohort_executor_free(same);
  cohort_executor_free(fewer);
  cohort_executor_free(turned);
  cohort_executor_free(executor);
}

/* EXE-28, EXE-29, EXE-30: more elements are refused unless allowed; then argument and gradient are new, all zeros. */
static void larger_shapes_need_leave_and_are_new(void **state) {
  cohort_reshape_options options = COHORT_RESHAPE_OPTIONS_INIT;
  cohort_executor *executor = simple_bind_with(product(), both(SHAPE(2)), "write"), *made = NULL;

  (void)state;
  set_arg(executor, "a", 1, 2);
  set_arg(executor, "b", 3, 4);
  fill(grad_of(executor, "a"), 7);
  fails(try_reshape(&made, executor, both(SHAPE(3)), &options), COHORT_ERROR_SHAPE,
        "'a': new shape (3,) is larger than the bound (2,)");
  assert_null(made);
  options.allow_up_sizing = 1;
  made = reshaped(executor, both(SHAPE(40)), &options);
  assert_ptr_not_equal(address_free(arg_of(made, "a")), address_free(arg_of(executor, "a")));
  {
    float values[40], zeros[40] = {0};
    cohort_ndarray *array = arg_of(made, "a");

    ok(cohort_ndarray_read(array, values, sizeof(values)));
    assert_memory_equal(values, zeros, sizeof(values));
    cohort_ndarray_free(array);
    array = grad_of(made, "a");
    ok(cohort_ndarray_read(array, values, sizeof(values)));
    assert_memory_equal(values, zeros, sizeof(values));
    cohort_ndarray_free(array);
  }
  holds_free(arg_of(executor, "a"), 1, 2);
  cohort_executor_free(made);
  cohort_executor_free(executor);
}

/* EXE-28: they are new even if the memory, which an earlier executor's longer array still uses, would be large
 * enough. */
static void memory_of_an_earlier_executor_is_not_reused(void **state) {
  cohort_reshape_options options = COHORT_RESHAPE_OPTIONS_INIT;
  cohort_executor *executor = simple_bind_with(product(), both(SHAPE(4)), "add"), *fewer, *more;

  (void)state;
  set_arg(executor, "a", 1, 2, 3, 4);
  fill(grad_of(executor, "a"), 7);
  fewer = reshaped(executor, both(SHAPE(2)), NULL);
  options.allow_up_sizing = 1;
  more = reshaped(fewer, both(SHAPE(3)), &options);
  holds_free(arg_of(more, "a"), 0, 0, 0);
  holds_free(grad_of(more, "a"), 0, 0, 0);
  fill(arg_of(more, "a"), 9);
  holds_free(arg_of(executor, "a"), 1, 2, 3, 4);
  cohort_executor_free(executor);
  cohort_executor_free(fewer);
  cohort_executor_free(more);
}

/* EXE-28: an argument that is not named, also a label, keeps its shape, unless partial shaping lets it change. */
static void arguments_that_are_not_named_keep_their_shape(void **state) {
  cohort_reshape_options options = COHORT_RESHAPE_OPTIONS_INIT;
  cohort_executor *executor = simple_bind(regression("1"), desc("data", SHAPE(4, 2), NULL), NULL), *made = NULL;
  cohort_ndarray *array;

  (void)state;
  fails(try_reshape(&made, executor, desc("data", SHAPE(2, 2), NULL), &options), COHORT_ERROR_SHAPE,
        "shape of unspecified argument 'label' changed from (4,) to (2,)");
  assert_null(made);
  options.partial_shaping = 1;
  made = reshaped(executor, desc("data", SHAPE(2, 2), NULL), &options);
  array = arg_of(made, "label");
  has_shape(array, 2);
  cohort_ndarray_free(array);
  assert_ptr_equal(address_free(arg_of(made, "label")), address_free(arg_of(executor, "label")));
  assert_ptr_equal(address_free(arg_of(made, "fc_weight")), address_free(arg_of(executor, "fc_weight")));
  cohort_executor_free(made);
  cohort_executor_free(executor);
}

/* EXE-29: auxiliary states are shared unchanged; only with partial shaping may they change shape. */
static void auxiliary_states_are_shared(void **state) {
  cohort_reshape_options options = COHORT_RESHAPE_OPTIONS_INIT;
  cohort_symbol *symbol = node("BatchNorm", "bn", NO_ATTRS, INPUTS(variable("x")));
  cohort_executor *executor = simple_bind(symbol, desc("x", SHAPE(4, 3), NULL), NULL), *made = NULL;
  cohort_descs *known;
  cohort_ndarray *array;

  (void)state;
  set_aux(executor, "bn_moving_mean", 1, 2, 3);
  made = reshaped(executor, desc("x", SHAPE(2, 3), NULL), NULL);
  assert_ptr_equal(address_free(aux_of(made, "bn_moving_mean")), address_free(aux_of(executor, "bn_moving_mean")));
  cohort_executor_free(made);
  made = NULL;
  known = desc("x", SHAPE(4, 2), NULL);
  add_desc(known, "bn_gamma", SHAPE(2), NULL);
  add_desc(known, "bn_beta", SHAPE(2), NULL);
  fails(try_reshape(&made, executor, known, &options), COHORT_ERROR_SHAPE,
        "auxiliary state 'bn_moving_mean' changed from (3,) to (2,)");
  assert_null(made);
  options.partial_shaping = 1;
  made = reshaped(executor, desc("x", SHAPE(4, 2), NULL), &options);
  array = aux_of(made, "bn_moving_mean");
  has_shape(array, 2);
  holds_free(array, 1, 2);
  cohort_executor_free(made);
  cohort_executor_free(executor);
}

/* EXE-30: unknown names are ignored, and contradictions name the node. */
static void contradictions_name_the_node(void **state) {
  cohort_executor *executor = simple_bind(product(), both(SHAPE(4)), NULL), *made = NULL;
  cohort_descs *known = both(SHAPE(2));

  (void)state;
  add_desc(known, "nobody", SHAPE(9), NULL);
  made = reshaped(executor, known, NULL);
  cohort_executor_free(made);
  made = NULL;
  known = desc("a", SHAPE(2), NULL);
  add_desc(known, "b", SHAPE(3), NULL);
  fails(try_reshape(&made, executor, known, NULL), COHORT_ERROR_SHAPE, "product");
  assert_null(made);
  cohort_executor_free(executor);
}

/* EXE-31: the original executor may be freed first. EXE-32: the new one's arrays are in list order, NULL for an
 * argument without gradient; a reshaped executor can be reshaped again. */
static void a_reshaped_executor_stands_alone(void **state) {
  const char *const reqs[] = {"null", "write"};
  static const char *const names[] = {"a", "b"};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor, *child, *grandchild;
  size_t i;

  (void)state;
  options.grad_req_list = reqs;
  options.num_grad_reqs = 2;
  executor = simple_bind(product(), both(SHAPE(4)), &options);
  set_arg(executor, "a", 1, 2, 3, 4);
  set_arg(executor, "b", 5, 6, 7, 8);
  child = reshaped(executor, both(SHAPE(3)), NULL);
  cohort_executor_free(executor);
  for (i = 0; i < 2; ++i) {
    const char *name = NULL;

    ok(cohort_executor_name(child, COHORT_EXECUTOR_ARGS, i, &name));
    assert_string_equal(name, names[i]);
  }
  is_absent(grad_of(child, "a"));
  ok(cohort_executor_forward(child, 1));
  holds_free(output_of(child, 0), 5, 12, 21);
  ok(try_backward_with(child, floats(SHAPE(3), FLOATS(1, 1, 1)), 1));
  holds_free(grad_of(child, "b"), 1, 2, 3);
  grandchild = reshaped(child, both(SHAPE(2)), NULL);
  cohort_executor_free(child);
  ok(cohort_executor_forward(grandchild, 1));
  holds_free(output_of(grandchild, 0), 5, 12);
  cohort_executor_free(grandchild);
}

/* tanh layers, because their backward needs the forward results. */
static cohort_symbol *two_layers(void) {
  cohort_symbol *net = node("FullyConnected", "first", ATTRS("num_hidden", "8"), INPUTS(variable("data")));

  net = node("Activation", NULL, ATTRS("act_type", "tanh"), INPUTS(net));
  net = node("FullyConnected", "second", ATTRS("num_hidden", "8"), INPUTS(net));
  return node("FullyConnected", "third", ATTRS("num_hidden", "1"),
              INPUTS(node("Activation", NULL, ATTRS("act_type", "tanh"), INPUTS(net))));
}

static void fill_evenly(cohort_executor *executor, const char *name, uint64_t seed) {
  cohort_ndarray *array = arg_of(executor, name);

  ok(cohort_ndarray_fill_uniform(array, -1, 1, seed));
  cohort_ndarray_free(array);
}

static void read_gradient(cohort_executor *executor, float *values) {
  cohort_ndarray *array = grad_of(executor, "first_weight");

  ok(cohort_ndarray_read(array, values, 24 * sizeof(float)));
  cohort_ndarray_free(array);
}

/* Creating a larger executor keeps what a forward pass has stored for backward; running the larger one overwrites it,
 * and backward is refused. */
static void backward_knows_whether_others_have_worked_in_its_memory(void **state) {
  cohort_executor *small = simple_bind_with(two_layers(), desc("data", SHAPE(2, 3), NULL), "write"), *large = NULL;
  cohort_reshape_options options = COHORT_RESHAPE_OPTIONS_INIT;
  cohort_ndarray *head = floats(SHAPE(2, 1), FLOATS(1, 1));
  float alone[24], found[24];
  int32_t is_train;

  (void)state;
  fill_evenly(small, "data", 1);
  fill_evenly(small, "first_weight", 2);
  fill_evenly(small, "second_weight", 3);
  fill_evenly(small, "third_weight", 4);
  ok(cohort_executor_forward(small, 1));
  ok(cohort_executor_backward(small, &head, 1, 1));
  read_gradient(small, alone);

  options.allow_up_sizing = 1;
  ok(cohort_executor_forward(small, 1));
  ok(try_reshape(&large, small, desc("data", SHAPE(64, 3), NULL), &options));
  fill_evenly(large, "data", 5);
  ok(cohort_executor_backward(small, &head, 1, 1));
  read_gradient(small, found);
  assert_memory_equal(found, alone, sizeof(alone));

  for (is_train = 0; is_train < 2; ++is_train) {
    ok(cohort_executor_forward(small, 1));
    ok(cohort_executor_forward(large, is_train));
    fails(cohort_executor_backward(small, &head, 1, 1), COHORT_ERROR_STATE, "run forward again");
    read_gradient(small, found);
    assert_memory_equal(found, alone, sizeof(alone));
    ok(cohort_executor_forward(small, 1));
    ok(cohort_executor_backward(small, &head, 1, 1));
    ok(cohort_executor_backward(small, &head, 1, 1));
    read_gradient(small, found);
    assert_memory_equal(found, alone, sizeof(alone));
  }
  cohort_ndarray_free(head);
  cohort_executor_free(small);
  cohort_executor_free(large);
}

/* The same for a network in two parts, the second of a shape that depends on values, the first of which shares memory
 * with others: a refused backward writes nothing. */
static void networks_in_parts_know_it_before_they_begin(void **state) {
  cohort_symbol *rows = node("_contrib_boolean_mask", NULL, NO_ATTRS, INPUTS(two_layers(), variable("index")));
  cohort_symbol *net = node("FullyConnected", "last", ATTRS("num_hidden", "1", "no_bias", "1"), INPUTS(rows));
  cohort_descs *known = desc("data", SHAPE(2, 3), NULL);
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *parts, *whole;
  cohort_ndarray *head = floats(SHAPE(1, 1), FLOATS(1));

  (void)state;
  add_desc(known, "index", SHAPE(2), NULL);
  parts = simple_bind_with(net, known, "write");
  options.shared_executor = parts;
  options.grad_req = "write";
  whole = simple_bind(two_layers(), desc("data", SHAPE(64, 3), NULL), &options);
  set_arg(parts, "index", 0, 1);
  set_arg(parts, "third_bias", 3);
  ok(cohort_executor_forward(parts, 1));
  fill(grad_of(parts, "last_weight"), 7);
  ok(cohort_executor_forward(whole, 1));
  fails(cohort_executor_backward(parts, &head, 1, 1), COHORT_ERROR_STATE, "run forward again");
  holds_free(grad_of(parts, "last_weight"), 7);
  ok(cohort_executor_forward(parts, 1));
  ok(cohort_executor_backward(parts, &head, 1, 1));
  holds_free(grad_of(parts, "last_weight"), 3);
  cohort_ndarray_free(head);
  cohort_executor_free(parts);
  cohort_executor_free(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(shapes_follow_from_those_given),
      TEST(smaller_shapes_are_the_same_memory),
      TEST(larger_shapes_need_leave_and_are_new),
      TEST(memory_of_an_earlier_executor_is_not_reused),
      TEST(arguments_that_are_not_named_keep_their_shape),
      TEST(auxiliary_states_are_shared),
      TEST(contradictions_name_the_node),
      TEST(a_reshaped_executor_stands_alone),
      TEST(backward_knows_whether_others_have_worked_in_its_memory),
      TEST(networks_in_parts_know_it_before_they_begin),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
