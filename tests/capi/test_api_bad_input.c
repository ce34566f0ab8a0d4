/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that make no sense, or that need more memory than there is: each gives an error that says what is wrong, and
 * leaks nothing. */
#include "support/boundary.h"

typedef struct bad_node {
  const char *op;
  const char *attrs[8]; /* keys and values alternately */
  int64_t shape[4];     /* of its only input */
  int32_t num_axes;
  int32_t code;
  const char *part; /* of the message */
} bad_node;

#define ARG COHORT_ERROR_INVALID_ARGUMENT
#define SHAPE COHORT_ERROR_SHAPE
#define MEMORY COHORT_ERROR_OUT_OF_MEMORY

static const bad_node bad_nodes[] = {
    {"FullyConnected", {"num_hidden", "10"}, {(int64_t)1 << 45, 3}, 2, SHAPE, "data"},
    {"FullyConnected", {"num_hidden", "10"}, {INT64_MAX, INT64_MAX}, 2, SHAPE, "data"},
    {"FullyConnected", {"num_hidden", "10"}, {0}, 0, SHAPE, "'n'"},
    {"FullyConnected", {"num_hidden", "10"}, {0, 3}, 2, SHAPE, "data"},
    {"FullyConnected", {"num_hidden", "-3"}, {2, 3}, 2, ARG, "-3"},
    {"FullyConnected", {"num_hidden", "99999999999999999999"}, {2, 3}, 2, ARG, "num_hidden"},
    {"FullyConnected", {"num_hidden", "ten"}, {2, 3}, 2, ARG, "ten"},
    {"FullyConnected", {"num_hidden", "10", "no_bias", "maybe"}, {2, 3}, 2, ARG, "maybe"},
    {"Embedding", {"input_dim", "2000000000", "output_dim", "2000000000"}, {2, 3}, 2, SHAPE, "'n'"},
    {"Embedding", {"input_dim", "1000000000", "output_dim", "1000"}, {2, 3}, 2, MEMORY, "4000000000000 bytes"},
    {"Convolution", {"kernel", "(0, 0)", "num_filter", "2"}, {1, 1, 4, 4}, 4, ARG, "kernel"},
    {"Convolution", {"kernel", "(9, 9)", "num_filter", "2"}, {1, 1, 4, 4}, 4, SHAPE, "'n'"},
    {"Convolution", {"kernel", "(2, 2)", "num_filter", "2", "stride", "(0, 0)"}, {1, 1, 4, 4}, 4, ARG, "stride"},
    {"Convolution", {"kernel", "(2, 2)", "num_filter", "2", "pad", "(-1, -1)"}, {1, 1, 4, 4}, 4, ARG, "pad"},
    {"Convolution", {"kernel", "(2, 2)", "num_filter", "2", "num_group", "3"}, {1, 3, 4, 4}, 4, ARG, "num_group"},
    {"Convolution", {"kernel", "(2,)", "num_filter", "2"}, {1, 1, 4, 4}, 4, SHAPE, "'n'"},
    {"Pooling", {"kernel", "(9, 9)", "pool_type", "max"}, {1, 1, 4, 4}, 4, SHAPE, "'n'"},
    {"Pooling", {"kernel", "(2, 2)", "pool_type", "most"}, {1, 1, 4, 4}, 4, ARG, "most"},
    {"Reshape", {"shape", "(5, -1)"}, {2, 3}, 2, SHAPE, "(2, 3)"},
    {"Reshape", {"shape", "(-1, -1)"}, {2, 3}, 2, SHAPE, "'n'"},
    {"Reshape", {"shape", "(0, 0, 0)"}, {2, 3}, 2, SHAPE, "'n'"},
    {"Reshape", {"shape", "(2, 3"}, {2, 3}, 2, ARG, "(2, 3"},
    {"transpose", {"axes", "(0, 5)"}, {2, 3}, 2, ARG, "5"},
    {"transpose", {"axes", "(0, 0)"}, {2, 3}, 2, SHAPE, "'n'"},
    {"SliceChannel", {"num_outputs", "0"}, {2, 3}, 2, ARG, "num_outputs"},
    {"SliceChannel", {"num_outputs", "1000000000"}, {2, 3}, 2, ARG, "num_outputs"},
    {"SliceChannel", {"num_outputs", "2"}, {2, 3}, 2, SHAPE, "'n'"},
    {"Concat", {"num_args", "1000000000"}, {2, 3}, 2, ARG, "1000000000"},
    {"softmax", {"axis", "7"}, {2, 3}, 2, ARG, "7"},
    {"Dropout", {"p", "1.5"}, {2, 3}, 2, ARG, "1.5"},
    {"Dropout", {"p", "nan"}, {2, 3}, 2, ARG, "nan"},
};

/* Creates and binds one node over a variable "data". */
static cohort_error *bind_node(const bad_node *bad) {
  const char *keys[4], *values[4];
  cohort_symbol *data = NULL, *node = NULL;
  cohort_descs *known = one_desc("data", bad->shape, bad->num_axes);
  cohort_executor *executor = NULL;
  cohort_error *error;
  size_t num = 0;

  for (; num < 4 && bad->attrs[2 * num]; ++num) {
    keys[num] = bad->attrs[2 * num];
    values[num] = bad->attrs[2 * num + 1];
  }
  ok(cohort_symbol_variable("data", NULL, NULL, 0, &data));
  error = cohort_symbol_create(bad->op, "n", keys, values, num, &data, NULL, 1, &node);
  if (!error) error = cohort_executor_simple_bind(node, NULL, known, NULL, &executor);
  cohort_symbol_free(data);
  cohort_symbol_free(node);
  cohort_descs_free(known);
  cohort_executor_free(executor);
  return error;
}

/* Each bad node is refused with the reason. */
static void bad_nodes_are_refused(void **state) {
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(bad_nodes); ++i) {
    const bad_node *bad = &bad_nodes[i];
    cohort_error *error = bind_node(bad);
    const char *message = cohort_error_message(error);
    const int good = cohort_error_code(error) == bad->code && strstr(message, bad->part) && !strchr(message, '\n');

    if (!good) {
      print_error("%s %s=%s: expected %s with \"%s\", found %s \"%s\"\n", bad->op, bad->attrs[0], bad->attrs[1],
                  cohort_error_code_text(bad->code), bad->part, cohort_error_code_text(cohort_error_code(error)),
                  message);
    }
    cohort_error_free(error);
    assert_true(good);
  }
}

/* Arrays larger than any machine's memory. */
static void arrays_beyond_all_memory(void **state) {
  const int64_t large[] = {(int64_t)1 << 40, 3}, larger[] = {INT64_MAX, INT64_MAX};
  const char *const key = "shape", *const value = "(1000000000000, 1000)";
  cohort_ndarray *array = NULL;
  cohort_arrays *outputs = NULL;

  (void)state;
  fails(cohort_ndarray_zeros(large, 2, COHORT_DTYPE_FLOAT32, NULL, &array), MEMORY, "13194139533312");
  fails(cohort_ndarray_zeros(larger, 2, COHORT_DTYPE_FLOAT32, NULL, &array), SHAPE, "too many");
  fails(cohort_operator_invoke("_zeros", &key, &value, 1, NULL, 0, NULL, 0, NULL, &outputs), MEMORY, context_name(0));
  assert_null(array);
  assert_null(outputs);
}

/* A failed creation of a group leaves nothing behind; a failed change leaves the group as it was. */
static void groups_survive_bad_batches(void **state) {
  const cohort_context *const contexts = test_contexts();
  /* A sanitizer's allocator may promise memory that does not exist; each array of this batch is too large even for
   * it. */
  const int64_t large[] = {(int64_t)1 << 38, 3}, one_row[] = {1, 3}, narrow[] = {4, 2}, fits[] = {4, 3};
  cohort_symbol *symbol = small_network();
  cohort_descs *data = NULL;
  cohort_ndarray *batch = NULL, *output = NULL;
  cohort_group *group = NULL;
  int64_t batch_size = 0;

  (void)state;
  data = one_desc("data", one_row, 2);
  fails(cohort_group_create(symbol, contexts, 2, data, NULL, NULL, 0, 0, NULL, &group), ARG, "batch");
  cohort_descs_free(data);
  data = one_desc("data", large, 2);
  fails(cohort_group_create(symbol, contexts, 1, data, NULL, NULL, 0, 0, NULL, &group), MEMORY, context_name(0));
  assert_null(group);
  group = small_group(1, 4);
  fails(cohort_group_reshape(group, data, NULL), MEMORY, context_name(0));
  ok(cohort_group_batch_size(group, &batch_size));
  assert_int_equal(batch_size, 4);
  ok(cohort_group_run(group, 0));
  cohort_descs_free(data);
  cohort_group_free(group);

  group = small_group(2, 4);
  data = one_desc("data", narrow, 2);
  fails(cohort_group_reshape(group, data, NULL), SHAPE, "fc_weight");
  ok(cohort_group_batch_size(group, &batch_size));
  assert_int_equal(batch_size, 4);
  ok(cohort_ndarray_zeros(narrow, 2, COHORT_DTYPE_FLOAT32, NULL, &batch));
  fails(cohort_group_forward(group, &batch, 1, NULL, 0, 0), SHAPE, "(4, 2)");
  cohort_ndarray_free(batch);
  ok(cohort_ndarray_zeros(fits, 2, COHORT_DTYPE_FLOAT32, NULL, &batch));
  ok(cohort_group_forward(group, &batch, 1, NULL, 0, 0));
  ok(cohort_group_merged(group, COHORT_GROUP_OUTPUTS, 0, &output));
  assert_floats(output, (const float[]){0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f}, 8);
  cohort_ndarray_free(batch);
  cohort_ndarray_free(output);
  cohort_descs_free(data);
  cohort_symbol_free(symbol);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(bad_nodes_are_refused),
      TEST(arrays_beyond_all_memory),
      TEST(groups_survive_bad_batches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
