/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of operators as bindings read it, and operators applied to arrays. */
#include "support/boundary.h"

static const int64_t two = 2, three = 3;

/* Names are sorted and unique, and each leads to a canonical name that is also listed. */
static void names_are_sorted_and_lead_somewhere(void **state) {
  char before[128] = "";
  size_t num = 0, i;

  (void)state;
  ok(cohort_operator_num(&num));
  assert_true(num > 10);
  for (i = 0; i < num; ++i) {
    const char *name = NULL, *canonical = NULL, *again = NULL;

    ok(cohort_operator_name(i, &name));
    assert_true(strcmp(before, name) < 0);
    snprintf(before, sizeof(before), "%s", name);
    ok(cohort_operator_info(name, &canonical, NULL, NULL, NULL, NULL, NULL));
    ok(cohort_operator_info(canonical, &again, NULL, NULL, NULL, NULL, NULL));
    assert_string_equal(canonical, again);
  }
}

/* The position of an attribute of this name among an operator's; -1: it has none. */
static int place_of_attribute(const char *op, const char *name) {
  const char *key = NULL;
  size_t num = 0, i;

  ok(cohort_operator_info(op, NULL, NULL, &num, NULL, NULL, NULL));
  for (i = 0; i < num; ++i) {
    ok(cohort_operator_attr(op, i, &key, NULL, NULL, NULL));
    if (strcmp(key, name) == 0) return (int)i;
  }
  return -1;
}

/* Operator functions of bindings accept attributes by position, in the order of the registry. */
static void attributes_come_in_mxnets_order(void **state) {
  FILE *const table = fopen("tests/data/operators/attributes.tsv", "r");
  char line[1024];
  int num_operators = 0;

  (void)state;
  assert_non_null(table);
  while (fgets(line, sizeof(line), table)) {
    const char *const op = strtok(line, "\t");
    const char *attribute, *before = "";
    int last = -1;

    if (op[0] == '#') continue;
    ++num_operators;
    while ((attribute = strtok(NULL, " \n"))) {
      const int place = place_of_attribute(op, attribute);
      if (place < 0) continue;
      if (place < last) fail_msg("%s: '%s' comes before '%s', expected after it", op, attribute, before);
      last = place;
      before = attribute;
    }
  }
  assert_int_equal(fclose(table), 0);
  assert_true(num_operators > 300);
}

/* Every operator has all that a binding needs: documentation, types, defaults, names. */
static void every_operator_describes_itself(void **state) {
  size_t num = 0, i, k;

  (void)state;
  ok(cohort_operator_num(&num));
  for (i = 0; i < num; ++i) {
    const char *op = NULL, *name = NULL, *doc = NULL, *type = NULL, *value = NULL, *count = NULL;
    size_t num_attrs = 0, num_inputs = 0, num_outputs = 0;
    int32_t is_aux = -1, seen_aux = 0;

    ok(cohort_operator_name(i, &op));
    ok(cohort_operator_info(op, NULL, &doc, &num_attrs, &num_inputs, &num_outputs, &count));
    if (!doc[0]) fail_msg("%s has no documentation", op);
    for (k = 0; k < num_attrs; ++k) {
      ok(cohort_operator_attr(op, k, &name, &type, &value, &doc));
      if (!name[0] || !type[0] || !doc[0]) fail_msg("%s: attribute %zu '%s' is not described", op, k, name);
    }
    for (k = 0; k < num_inputs; ++k) {
      ok(cohort_operator_input(op, k, &name, &doc, &is_aux));
      if (!name[0] || !doc[0]) fail_msg("%s: input %zu '%s' is not described", op, k, name);
      if (is_aux < seen_aux && strcmp(op, "_contrib_quantized_batch_norm") != 0) {
        fail_msg("%s: input '%s' comes after an auxiliary state", op, name);
      }
      seen_aux = is_aux;
    }
    for (k = 0; k < num_outputs; ++k) {
      ok(cohort_operator_output(op, k, &name));
      assert_true(name[0] != '\0');
    }
    if (count[0]) assert_true(num_inputs >= 1);
  }
}

/* A number out of an attribute's range is refused, even if other things are missing; the error gives the range. */
static void numbers_out_of_range_are_refused(void **state) {
  const char *op, *canonical, *name, *count, *key[2], *value[2] = {NULL, "1"};
  size_t num_ops = 0, num_attrs = 0, num_bounds = 0, i, k;
  cohort_symbol *symbol = NULL;
  double bound[2];
  char text[64];
  int side;

  (void)state;
  ok(cohort_operator_num(&num_ops));
  for (i = 0; i < num_ops; ++i) {
    ok(cohort_operator_name(i, &op));
    ok(cohort_operator_info(op, &canonical, NULL, &num_attrs, NULL, NULL, &count));
    for (k = 0; strcmp(op, canonical) == 0 && k < num_attrs; ++k) {
      ok(cohort_operator_attr(op, k, &name, NULL, NULL, NULL));
      ok(cohort_operator_attr_range(op, k, &bound[0], &bound[1]));
      if (!(bound[0] <= bound[1])) fail_msg("%s: %s: the range ends before it begins", op, name);
      for (side = 0; side < 2; ++side) {
        if (!(bound[side] > -1e9 && bound[side] < 1e9)) continue;
        ++num_bounds;
        snprintf(text, sizeof text, "%.0f", side ? bound[1] + 1 : bound[0] - 1);
        key[0] = name;
        key[1] = count;
        value[0] = text;
        fails(
            cohort_symbol_create(op, NULL, key, value, count[0] && strcmp(name, count) ? 2 : 1, NULL, NULL, 0, &symbol),
            COHORT_ERROR_INVALID_ARGUMENT, "expected");
      }
    }
  }
  assert_true(num_bounds > 60);
}

/* The position of an input among the declared ones. */
static cohort_bool has_gradient(const char *op, const char *input) {
  const char *name;
  size_t num_inputs = 0, i;
  cohort_bool found = -1;

  ok(cohort_operator_info(op, NULL, NULL, NULL, &num_inputs, NULL, NULL));
  for (i = 0; i < num_inputs; ++i) {
    ok(cohort_operator_input(op, i, &name, NULL, NULL));
    if (strcmp(name, input) == 0) ok(cohort_operator_input_gradient(op, i, &found));
  }
  return found;
}

static void the_registry_says_where_gradients_flow(void **state) {
  const char *op;
  size_t num_ops = 0, num_inputs = 0, i, k;
  cohort_bool flows;

  (void)state;
  assert_int_equal(has_gradient("FullyConnected", "data"), 1);
  assert_int_equal(has_gradient("FullyConnected", "bias"), 1);
  assert_int_equal(has_gradient("BatchNorm", "gamma"), 1);
  assert_int_equal(has_gradient("BatchNorm", "moving_mean"), 0);
  assert_int_equal(has_gradient("SoftmaxOutput", "label"), 0);
  assert_int_equal(has_gradient("Concat", "arg"), 1);
  assert_int_equal(has_gradient("BlockGrad", "data"), 0);
  assert_int_equal(has_gradient("LeakyReLU", "gamma"), 1);
  assert_int_equal(has_gradient("RNN", "state_cell"), 1);
  assert_int_equal(has_gradient("CTCLoss", "data_lengths"), 0);
  assert_int_equal(has_gradient("argmax", "data"), 0);
  assert_int_equal(has_gradient("elemwise_add", "rhs"), 1);
  ok(cohort_operator_num(&num_ops));
  for (i = 0; i < num_ops; ++i) {
    ok(cohort_operator_name(i, &op));
    ok(cohort_operator_info(op, NULL, NULL, NULL, &num_inputs, NULL, NULL));
    for (k = 0; k < num_inputs; ++k) {
      flows = -1;
      ok(cohort_operator_input_gradient(op, k, &flows));
      assert_true(flows == 0 || flows == 1);
    }
  }
}

/* One operator in full, as MXNet has it. */
static void fully_connected_as_mxnet_has_it(void **state) {
  const char *canonical = NULL, *name = NULL, *type = NULL, *value = "untouched";
  size_t num_attrs = 0, num_inputs = 0, num_outputs = 0, i;
  int32_t is_aux = -1;
  int required = 0, no_bias = 0;

  (void)state;
  ok(cohort_operator_info("FullyConnected", &canonical, NULL, &num_attrs, &num_inputs, &num_outputs, NULL));
  assert_string_equal(canonical, "FullyConnected");
  assert_int_equal(num_inputs, 3);
  assert_int_equal(num_outputs, 1);
  for (i = 0; i < num_attrs; ++i) {
    ok(cohort_operator_attr("FullyConnected", i, &name, &type, &value, NULL));
    if (strcmp(name, "num_hidden") == 0) {
      assert_null(value);
      assert_string_equal(type, "int");
      required = 1;
    } else if (strcmp(name, "no_bias") == 0) {
      assert_non_null(value);
      assert_string_equal(type, "boolean");
      no_bias = 1;
    }
  }
  assert_true(required && no_bias);
  ok(cohort_operator_input("FullyConnected", 1, &name, NULL, &is_aux));
  assert_string_equal(name, "weight");
  assert_int_equal(is_aux, 0);
  ok(cohort_operator_input("BatchNorm", 4, &name, NULL, &is_aux));
  assert_string_equal(name, "moving_var");
  assert_int_equal(is_aux, 1);
}

/* An operator creates its outputs, or writes given arrays, including its own input. */
static void operators_are_applied(void **state) {
  const float values[] = {-1, 2, -3}, relu[] = {0, 2, 0};
  const char *const key = "act_type", *const value = "relu";
  cohort_ndarray *array = floats(values, &three, 1), *target = NULL, *got = NULL;
  cohort_arrays *outputs = NULL;
  size_t num = 0;

  (void)state;
  ok(cohort_operator_invoke("Activation", &key, &value, 1, &array, 1, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_num(outputs, &num));
  assert_int_equal(num, 1);
  ok(cohort_arrays_get(outputs, 0, &got));
  assert_floats(got, relu, 3);
  assert_floats(array, values, 3);
  cohort_ndarray_free(got);
  cohort_arrays_free(outputs);
  ok(cohort_ndarray_zeros(&three, 1, COHORT_DTYPE_FLOAT32, NULL, &target));
  ok(cohort_operator_invoke("Activation", &key, &value, 1, &array, 1, &target, 1, NULL, NULL));
  assert_floats(target, relu, 3);
  ok(cohort_operator_invoke("Activation", &key, &value, 1, &array, 1, &array, 1, NULL, NULL));
  assert_floats(array, relu, 3);
  cohort_ndarray_free(array);
  cohort_ndarray_free(target);
}

/* Calls with unsuitable arrays or attributes are refused before anything is written. */
static void bad_applications_are_refused(void **state) {
  const float values[] = {-1, 2, -3};
  const char *const key = "act_type", *const relu = "relu", *const bad = "shout";
  cohort_ndarray *array = floats(values, &three, 1), *shorter = NULL, *integers = NULL, *pair[2];
  cohort_arrays *outputs = NULL;

  (void)state;
  ok(cohort_ndarray_zeros(&two, 1, COHORT_DTYPE_FLOAT32, NULL, &shorter));
  ok(cohort_ndarray_zeros(&three, 1, COHORT_DTYPE_INT32, NULL, &integers));
  pair[0] = pair[1] = array;
  fails(cohort_operator_invoke("Activation", &key, &bad, 1, &array, 1, NULL, 0, NULL, &outputs),
        COHORT_ERROR_INVALID_ARGUMENT, "shout");
  fails(cohort_operator_invoke("Activation", NULL, NULL, 0, &array, 1, NULL, 0, NULL, &outputs), COHORT_ERROR_NAME,
        "act_type");
  fails(cohort_operator_invoke("Activation", &key, &relu, 1, NULL, 0, NULL, 0, NULL, &outputs),
        COHORT_ERROR_INVALID_ARGUMENT, "");
  fails(cohort_operator_invoke("Activation", &key, &relu, 1, pair, 2, NULL, 0, NULL, &outputs),
        COHORT_ERROR_INVALID_ARGUMENT, "");
  fails(cohort_operator_invoke("Activation", &key, &relu, 1, &array, 1, &shorter, 1, NULL, NULL), COHORT_ERROR_SHAPE,
        "(3,)");
  fails(cohort_operator_invoke("Activation", &key, &relu, 1, &array, 1, &integers, 1, NULL, NULL), COHORT_ERROR_DTYPE,
        "int32");
  fails(cohort_operator_invoke("Activation", &key, &relu, 1, &array, 1, pair, 2, NULL, NULL),
        COHORT_ERROR_INVALID_ARGUMENT, "");
  fails(cohort_operator_invoke("Activation", &key, &relu, 1, &array, 1, NULL, 0, NULL, NULL),
        COHORT_ERROR_INVALID_ARGUMENT, "out_outputs");
  assert_null(outputs);
  assert_floats(array, values, 3);
  cohort_ndarray_free(array);
  cohort_ndarray_free(shorter);
  cohort_ndarray_free(integers);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(names_are_sorted_and_lead_somewhere),
      TEST(every_operator_describes_itself),
      TEST(attributes_come_in_mxnets_order),
      TEST(numbers_out_of_range_are_refused),
      TEST(the_registry_says_where_gradients_flow),
      TEST(fully_connected_as_mxnet_has_it),
      TEST(operators_are_applied),
      TEST(bad_applications_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
