/* SPDX-License-Identifier: Apache-2.0 */
/* Groups that share memory: SHR-01 to SHR-08, GRP-23, GRP-24. More of it is in test_group_bind. */
#include <stdio.h>

#include "support/group_tests.h"

/* BatchNorm over fc over rows of two, a loss, and further arguments: one network for all groups here. */
static cohort_symbol *network(void) {
  cohort_symbol *fc = node("FullyConnected", "fc", ATTRS("num_hidden", "1"), INPUTS(variable("data")));
  cohort_symbol *bn = node("BatchNorm", "bn", ATTRS("fix_gamma", "False"), INPUTS(fc));

  return node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(bn, variable("label")));
}

#define PARAMS NAMES("fc_weight", "fc_bias", "bn_gamma", "bn_beta")

static void note_message(int32_t level, const char *message, void *user_data) {
  snprintf(user_data, 512, "%d %s", (int)level, message);
}

/* The last message of a group that logs here, as "level text". */
static char messages[512];

static cohort_group_options sharing(cohort_group *shared_group) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;

  messages[0] = 0;
  options.shared_group = shared_group;
  options.log = note_message;
  options.log_user_data = messages;
  options.inputs_need_grad = 1;
  return options;
}

static cohort_group *bind_network(size_t num_contexts, int64_t batch, cohort_group *shared_group) {
  const cohort_group_options options = sharing(shared_group);

  return bind_for_training(network(), num_contexts, desc("data", SHAPE(batch, 2), NULL),
                           desc("label", SHAPE(batch, 1), NULL), PARAMS, &options);
}

static void refused(cohort_group *shared_group, cohort_symbol *symbol, size_t num_contexts, cohort_descs *data,
                    const char *const *params, int32_t code, const char *words) {
  const cohort_group_options options = sharing(shared_group);
  cohort_group *group = NULL;

  fails(try_bind(&group, symbol, num_contexts, data, NULL, params, &options), code, words);
  assert_null(group);
}

static void *memory_of(const cohort_group *group, int32_t list, size_t index, size_t device) {
  cohort_ndarray *array = device_array(group, list, index, device);
  void *data = NULL;

  data = address_of(array);
  cohort_ndarray_free(array);
  return data;
}

/* SHR-01: parameters, gradients, auxiliary states and inputs are the same memory, device by device. */
static void device_i_shares_with_device_i(void **state) {
  const int32_t lists[] = {COHORT_GROUP_PARAMS, COHORT_GROUP_GRADS,       COHORT_GROUP_AUX,
                           COHORT_GROUP_DATA,   COHORT_GROUP_INPUT_GRADS, COHORT_GROUP_LABELS};
  cohort_group *large = bind_network(2, 6, NULL), *small = bind_network(2, 4, large);
  size_t i, index, device;

  (void)state;
  for (i = 0; i < COUNT(lists); ++i)
    for (index = 0; index < num_arrays(large, lists[i]); ++index) {
      for (device = 0; device < 2; ++device)
        assert_ptr_equal(memory_of(small, lists[i], index, device), memory_of(large, lists[i], index, device));
      assert_ptr_not_equal(memory_of(small, lists[i], index, 0), memory_of(small, lists[i], index, 1));
    }
  cohort_group_free(large);
  cohort_group_free(small);
}

static cohort_symbol *fc_of(const char *name, const char *num_hidden, cohort_symbol *input) {
  return node("FullyConnected", name, ATTRS("num_hidden", num_hidden, "no_bias", "True"), INPUTS(input));
}

/* SHR-02: the shared group must have each parameter with shape and dtype; the new group may use fewer. */
static void parameters_have_to_match(void **state) {
  cohort_group *group = bind_network(2, 4, NULL), *fewer;
  const cohort_group_options options = sharing(group);
  cohort_descs *half = NULL;
  cohort_ndarray *weight;

  (void)state;
  refused(group, fc_of("fc", "3", variable("data")), 2, desc("data", SHAPE(4, 2), NULL), NAMES("fc_weight"),
          COHORT_ERROR_SHAPE, "shared parameter 'fc_weight': expected (3, 2), found (1, 2)");
  ok(cohort_descs_create(&half));
  ok(cohort_descs_add(half, "half", SHAPE(4, 2), COHORT_DTYPE_FLOAT16, NULL));
  refused(group, fc_of("fc", "1", variable("half")), 2, half, NAMES("fc_weight"), COHORT_ERROR_DTYPE,
          "shared parameter 'fc_weight': expected float16, found float32");
  refused(group, fc_of("other", "1", variable("data")), 2, desc("data", SHAPE(4, 2), NULL), NAMES("other_weight"),
          COHORT_ERROR_NAME, "'other_weight' is not among the arguments of shared_group");
  fewer = bind_for_training(fc_of("fc", "1", variable("data")), 2, desc("data", SHAPE(4, 2), NULL), NULL,
                            NAMES("fc_weight"), &options);
  fill(device_array(fewer, COHORT_GROUP_PARAMS, 0, 1), 5);
  weight = device_array(group, COHORT_GROUP_PARAMS, 0, 1);
  holds_free(weight, 5, 5);
  cohort_group_free(fewer);
  cohort_group_free(group);
}

static cohort_symbol *batch_norm(const char *name, cohort_symbol *input) {
  return node("BatchNorm", name, NO_ATTRS, INPUTS(input));
}

/* SHR-02: auxiliary states are matched by name, in whatever order, and must exist. */
static void auxiliary_states_are_matched_by_name(void **state) {
  cohort_group *group = bind_for_training(batch_norm("b", batch_norm("a", variable("data"))), 1,
                                          desc("data", SHAPE(4, 2), NULL), NULL, NO_NAMES, NULL);
  const cohort_group_options options = sharing(group);
  cohort_group *other = bind_for_training(batch_norm("a", batch_norm("b", variable("data"))), 1,
                                          desc("data", SHAPE(4, 2), NULL), NULL, NO_NAMES, &options);
  const char *name = NULL;

  (void)state;
  ok(cohort_group_name(group, COHORT_GROUP_AUX, 0, &name));
  assert_string_equal(name, "a_moving_mean");
  ok(cohort_group_name(other, COHORT_GROUP_AUX, 0, &name));
  assert_string_equal(name, "b_moving_mean");
  assert_ptr_equal(memory_of(group, COHORT_GROUP_AUX, 0, 0), memory_of(other, COHORT_GROUP_AUX, 2, 0));
  assert_ptr_equal(memory_of(group, COHORT_GROUP_AUX, 3, 0), memory_of(other, COHORT_GROUP_AUX, 1, 0));
  cohort_group_free(other);
  refused(group, batch_norm("c", variable("data")), 1, desc("data", SHAPE(4, 2), NULL), NO_NAMES, COHORT_ERROR_NAME,
          "'c_moving_mean'");
  cohort_group_free(group);
}

/* Checks that the pool of a device has exactly these keys, in order. */
static void pool_is(const cohort_group *group, size_t device, const char *const *keys) {
  cohort_arrays *pool = NULL;
  const char *key = NULL;
  size_t num = 0, i;

  ok(cohort_group_shared_data(group, device, &pool));
  ok(cohort_arrays_num(pool, &num));
  for (i = 0; keys[i]; ++i) {
    assert_true(i < num);
    ok(cohort_arrays_name(pool, i, &key));
    assert_string_equal(key, keys[i]);
  }
  assert_int_equal(num, i);
  cohort_arrays_free(pool);
}

/* SHR-03: the pool has every argument that is no parameter, with its gradient; groups that share memory have one pool
 * per device. */
static void a_family_has_one_pool_a_device(void **state) {
  cohort_group *group = bind_network(2, 4, NULL);
  const cohort_group_options options = sharing(group);
  cohort_group *member;
  cohort_arrays *pool = NULL;
  cohort_ndarray *pooled = NULL;
  void *memory = NULL;
  size_t index = 0;

  (void)state;
  pool_is(group, 1, NAMES("data", "grad of data", "label"));
  member = bind_for_training(fc_of("fc", "1", variable("picture")), 2, desc("picture", SHAPE(4, 2), NULL), NULL,
                             NAMES("fc_weight"), &options);
  pool_is(member, 1, NAMES("data", "grad of data", "grad of picture", "label", "picture"));
  pool_is(group, 1, NAMES("data", "grad of data", "grad of picture", "label", "picture"));
  ok(cohort_group_shared_data(group, 1, &pool));
  ok(cohort_arrays_find(pool, "picture", &index));
  ok(cohort_arrays_get(pool, index, &pooled));
  memory = address_of(pooled);
  assert_ptr_equal(memory, memory_of(member, COHORT_GROUP_DATA, 0, 1));
  cohort_ndarray_free(pooled);
  cohort_arrays_free(pool);
  cohort_group_free(group);
  cohort_group_free(member);
}

/* SHR-04: an array that is large enough is used under the new shape, without a message; one that is too small is
 * replaced by zeros, with a warning. The group that had the old array keeps it, and goes on working. */
static void an_entry_too_small_is_replaced_with_a_warning(void **state) {
  cohort_group *small = bind_network(1, 4, NULL), *smaller = bind_network(1, 2, small), *large, *medium;
  void *const data = memory_of(small, COHORT_GROUP_DATA, 0, 0);
  cohort_ndarray *array;

  (void)state;
  assert_string_equal(messages, "");
  assert_ptr_equal(memory_of(smaller, COHORT_GROUP_DATA, 0, 0), data);
  array = device_array(smaller, COHORT_GROUP_DATA, 0, 0);
  has_shape(array, 2, 2);
  cohort_ndarray_free(array);
  forward(small, counted(SHAPE(4, 2), 1), NULL, 0);
  large = bind_network(1, 32, small);
  assert_non_null(strstr(messages, "2 shared array 'label' of shape (4, 1) is too small for (32, 1)"));
  assert_non_null(strstr(messages, "bind the largest bucket first"));
  assert_ptr_not_equal(memory_of(large, COHORT_GROUP_DATA, 0, 0), data);
  array = device_array(large, COHORT_GROUP_LABELS, 0, 0);
  holds_free(array, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  assert_ptr_equal(memory_of(small, COHORT_GROUP_DATA, 0, 0), data);
  forward(small, counted(SHAPE(4, 2), 2), NULL, 0);
  holds_free(device_array(small, COHORT_GROUP_DATA, 0, 0), 0, 2, 4, 6, 8, 10, 12, 14);
  medium = bind_network(1, 16, small);
  assert_string_equal(messages, "");
  assert_ptr_equal(memory_of(medium, COHORT_GROUP_DATA, 0, 0), memory_of(large, COHORT_GROUP_DATA, 0, 0));
  cohort_group_free(small);
  cohort_group_free(smaller);
  cohort_group_free(large);
  cohort_group_free(medium);
}

/* SHR-04: an entry of another dtype is refused, not replaced, and the pool stays as it was. */
static void an_entry_of_another_dtype_is_refused(void **state) {
  cohort_group *group = bind_network(1, 4, NULL);
  cohort_symbol *relu = node("relu", "r", NO_ATTRS, INPUTS(variable("data"))), *sum;
  cohort_descs *data = desc("new", SHAPE(4, 2), NULL);

  (void)state;
  sum = node("elemwise_add", "sum", NO_ATTRS,
             INPUTS(node("Cast", "c", ATTRS("dtype", "float64"), INPUTS(variable("new"))), relu));
  ok(cohort_descs_add(data, "data", SHAPE(4, 2), COHORT_DTYPE_FLOAT64, NULL));
  refused(group, sum, 1, data, NO_NAMES, COHORT_ERROR_DTYPE, "shared array 'data': expected float64, found float32");
  pool_is(group, 0, NAMES("data", "grad of data", "label"));
  cohort_group_free(group);
}

/* A bind that fails on the last device changes no pool, not those of earlier devices either. */
static void a_failed_bind_on_one_device_changes_no_pool(void **state) {
  static const char *const names[] = {"upper", "lower"};
  cohort_group *group = bind_network(2, 4, NULL), *larger = NULL;
  cohort_group_options options = sharing(group);
  cohort_context contexts[4];
  const char *const key = "__ctx_group__", *const value = "upper";
  cohort_symbol *picture = NULL;

  (void)state;
  contexts[0] = contexts[2] = test_contexts()[0];
  contexts[3] = test_contexts()[1];
  memset(&contexts[1], 0, sizeof contexts[1]); /* "upper" is not in the map of device 1 */
  options.ctx_group_names = names;
  options.ctx_group_contexts = contexts;
  options.num_ctx_groups = COUNT(names);
  options.contexts_per_ctx_group = 2;
  ok(cohort_symbol_variable("picture", &key, &value, 1, &picture));
  fails(try_bind(&larger, node("square", "squares", ATTRS("__ctx_group__", "upper"), INPUTS(picture)), 2,
                 desc("picture", SHAPE(4, 2), NULL), NULL, NO_NAMES, &options),
        COHORT_ERROR_DEVICE, "upper");
  assert_null(larger);
  pool_is(group, 0, NAMES("data", "grad of data", "label"));
  pool_is(group, 1, NAMES("data", "grad of data", "label"));
  cohort_group_free(group);
}

/* SHR-05: the contexts must be the first ones of the shared group. */
static void contexts_are_those_of_the_shared_group(void **state) {
  const cohort_context swapped[] = {test_contexts()[1], {COHORT_DEVICE_CPU, 9}};
  cohort_group *group = bind_network(2, 4, NULL), *one = bind_network(1, 4, group), *other = NULL;
  const cohort_group_options options = sharing(group);
  cohort_symbol *symbol = fc_of("fc", "1", variable("data"));
  cohort_descs *data = desc("data", SHAPE(4, 2), NULL);
  const char *const param = "fc_weight";
  char expected[256];

  (void)state;
  snprintf(expected, sizeof(expected), "shared_group: expected the first of its own contexts (%s), found %s",
           context_names(2), context_names(3));
  assert_ptr_equal(memory_of(one, COHORT_GROUP_PARAMS, 0, 0), memory_of(group, COHORT_GROUP_PARAMS, 0, 0));
  refused(group, network(), 3, desc("data", SHAPE(6, 2), NULL), PARAMS, COHORT_ERROR_INVALID_ARGUMENT, expected);
  fails(cohort_group_create(symbol, swapped, 2, data, NULL, &param, 1, 1, &options, &other),
        COHORT_ERROR_INVALID_ARGUMENT, "shared_group");
  fails(cohort_group_create(symbol, &swapped[1], 1, data, NULL, &param, 1, 1, &options, &other),
        COHORT_ERROR_INVALID_ARGUMENT, "shared_group");
  assert_null(other);
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  cohort_group_free(one);
  cohort_group_free(group);
}

/* regression("1"), for training or not. */
static cohort_group *bind_fc(cohort_group *shared_group, int for_training) {
  const cohort_group_options options = sharing(shared_group);
  cohort_group *(*const how)(cohort_symbol *, size_t, cohort_descs *, cohort_descs *, const char *const *,
                             const cohort_group_options *) = for_training ? bind_for_training : bind_for_inference;

  return how(regression("1"), 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL), NAMES("fc_weight"),
             &options);
}

/* SHR-06: one may train and the other not, whichever came first; missing gradients are allocated. */
static void training_and_inference_share_either_way(void **state) {
  size_t training_first;

  (void)state;
  for (training_first = 0; training_first < 2; ++training_first) {
    cohort_group *first = bind_fc(NULL, (int)training_first), *second = bind_fc(first, !training_first);
    cohort_group *training = training_first ? first : second, *inference = training_first ? second : first;

    set_param(training, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
    assert_int_equal(num_arrays(inference, COHORT_GROUP_GRADS), 0);
    forward(inference, counted(SHAPE(4, 2), 1), NULL, 0);
    holds_free(merged(inference, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
    holds_free(device_array(training, COHORT_GROUP_GRADS, 0, 0), 0, 0);
    forward(training, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
    backward(training, NULL);
    holds_free(device_array(training, COHORT_GROUP_GRADS, 0, 0), 64, 106);
    cohort_group_free(first);
    cohort_group_free(second);
  }
}

/* SHR-07: a forward of one group overwrites the inputs of the other, and parameters written through one are seen in
 * all; the other runs again on what it loads itself. */
static void a_family_works_one_at_a_time(void **state) {
  cohort_group *first = bind_fc(NULL, 1), *second = bind_fc(first, 1);

  (void)state;
  set_param(first, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  forward(first, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  forward(second, counted(SHAPE(4, 2), 2), counted(SHAPE(4, 1), 0), 1);
  holds_free(merged(second, COHORT_GROUP_OUTPUTS, 0), 20, 64, 108, 152);
  holds_free(device_array(first, COHORT_GROUP_DATA, 0, 0), 0, 2, 4, 6);
  set_param(second, "fc_weight", floats(SHAPE(1, 2), FLOATS(2, 20)));
  forward(first, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  holds_free(merged(first, COHORT_GROUP_OUTPUTS, 0), 20, 64, 108, 152);
  cohort_group_free(first);
  cohort_group_free(second);
}

/* SHR-07: values that one group has kept for its backward are gone once another has run. */
static void backward_after_another_group_has_run_is_refused(void **state) {
  cohort_group *first = bind_network(2, 4, NULL), *second = bind_network(1, 2, first);

  (void)state;
  forward(first, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  forward(second, counted(SHAPE(2, 2), 1), counted(SHAPE(2, 1), 0), 1);
  fails(cohort_group_backward(first, NULL, 0), COHORT_ERROR_STATE, "run forward again");
  backward(second, NULL);
  forward(first, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  backward(first, NULL);
  cohort_group_free(first);
  cohort_group_free(second);
}

/* SHR-08: memory lives as long as a group uses it: the shared group may be freed first, or in between. */
static void the_shared_group_may_go_first(void **state) {
  cohort_group *first = bind_fc(NULL, 1), *second = bind_fc(first, 1), *third;

  (void)state;
  set_param(first, "fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  forward(first, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  cohort_group_free(first);
  third = bind_fc(second, 1);
  cohort_group_free(second);
  forward(third, counted(SHAPE(4, 2), 1), counted(SHAPE(4, 1), 0), 1);
  backward(third, NULL);
  holds_free(device_array(third, COHORT_GROUP_GRADS, 0, 0), 64, 106);
  holds_free(merged(third, COHORT_GROUP_OUTPUTS, 0), 10, 32, 54, 76);
  cohort_group_free(third);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(device_i_shares_with_device_i),
      TEST(parameters_have_to_match),
      TEST(auxiliary_states_are_matched_by_name),
      TEST(a_family_has_one_pool_a_device),
      TEST(an_entry_too_small_is_replaced_with_a_warning),
      TEST(an_entry_of_another_dtype_is_refused),
      TEST(a_failed_bind_on_one_device_changes_no_pool),
      TEST(contexts_are_those_of_the_shared_group),
      TEST(training_and_inference_share_either_way),
      TEST(a_family_works_one_at_a_time),
      TEST(backward_after_another_group_has_run_is_refused),
      TEST(the_shared_group_may_go_first),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
