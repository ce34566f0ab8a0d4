/* SPDX-License-Identifier: Apache-2.0 */
/* The names under which a monitor callback is shown arrays, and their order: MON-01 to MON-05, MON-11, MON-12. */
#include <stdio.h>

#include "support/executor_tests.h"

/* Names in the order of the calls, and the sum of the elements of each array. */
typedef struct seen {
  char names[1024];
  double sums[64];
  size_t num;
  cohort_ndarray *kept; /* of the first call */
} seen;

static void note(const char *name, cohort_ndarray *array, void *user_data) {
  seen *to = user_data;
  const size_t length = strlen(to->names);
  cohort_ndarray *wide = NULL;
  double values[64];
  size_t bytes = 0, i;

  assert_true(to->num < COUNT(to->sums));
  snprintf(to->names + length, sizeof(to->names) - length, "%s%s", length ? " " : "", name);
  ok(cohort_ndarray_cast(array, COHORT_DTYPE_FLOAT64, &wide));
  ok(cohort_ndarray_bytes(wide, &bytes));
  assert_true(bytes <= sizeof(values));
  ok(cohort_ndarray_read(wide, values, bytes));
  cohort_ndarray_free(wide);
  to->sums[to->num] = 0;
  for (i = 0; i < bytes / sizeof(double); ++i) to->sums[to->num] += values[i];
  if (to->num++ == 0 && !to->kept) ok(cohort_ndarray_share(array, &to->kept));
}

static void start(seen *what) {
  cohort_ndarray_free(what->kept);
  memset(what, 0, sizeof(*what));
}

static void watch(cohort_executor *executor, seen *what, int32_t monitor_all) {
  memset(what, 0, sizeof(*what));
  ok(cohort_executor_set_monitor(executor, note, what, monitor_all));
}

/* MON-01, MON-02, MON-03: each operator's output after it has run, forward and backward, in the order of execution;
 * gradients that are not computed are not reported. MON-12: the arrays are complete, and may be kept. */
static void operators_report_in_the_order_of_execution(void **state) {
  const char *const reqs[] = {"null", "write", "null"};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor;
  seen what;

  (void)state;
  options.grad_req_list = reqs;
  options.num_grad_reqs = 3;
  executor = simple_bind(regression("1"), desc("data", SHAPE(2, 1), NULL), &options);
  set_arg(executor, "data", 1, 2);
  set_arg(executor, "fc_weight", 3);
  watch(executor, &what, 0);
  ok(cohort_executor_forward(executor, 1));
  assert_string_equal(what.names, "fc_output lro_output");
  assert_true(what.sums[0] == 9 && what.sums[1] == 9);
  ok(try_backward_with(executor, NULL, 1));
  assert_string_equal(what.names, "fc_output lro_output lro_backward_output0 fc_backward_output1");
  assert_true(what.sums[2] == 9 && what.sums[3] == 15); /* 3 + 6; 1 * 3 + 2 * 6 */
  set_arg(executor, "data", 100, 100);
  ok(cohort_executor_set_monitor(executor, NULL, NULL, 0)); /* MON-01: NULL removes the callback */
  ok(cohort_executor_forward(executor, 1));
  assert_int_equal(what.num, 4);
  holds(what.kept, 3, 6);
  start(&what);
  cohort_executor_free(executor);
}

/* MON-01: on a group device 0's forward is shown before device 1's, then backward likewise. */
static void devices_report_one_after_the_other(void **state) {
  cohort_group *group = bind_regression(2, 4, NULL);
  seen what;

  (void)state;
  memset(&what, 0, sizeof(what));
  ok(cohort_group_set_monitor(group, note, &what, 0));
  forward(group, floats(SHAPE(4, 2), FLOATS(1, 0, 1, 0, 2, 0, 2, 0)), floats(SHAPE(4, 1), FLOATS(0, 0, 0, 0)), 1);
  backward(group, NULL);
  assert_string_equal(what.names,
                      "fc_output lro_output fc_output lro_output "
                      "lro_backward_output0 fc_backward_output1 lro_backward_output0 fc_backward_output1");
  assert_true(what.sums[0] == 2 && what.sums[2] == 4); /* device 0 has the rows with 1, device 1 those with 2 */
  start(&what);
  cohort_group_free(group);
}

/* MON-02: several outputs are numbered, or have the operator's own names, hidden ones too; one that is a head has the
 * head's name. */
static void outputs_go_by_their_own_names(void **state) {
  cohort_symbol *normal = node("BatchNorm", "bn", NO_ATTRS, INPUTS(variable("data")));
  cohort_symbol *parts = node("SliceChannel", "sp", ATTRS("num_outputs", "2"), INPUTS(normal));
  cohort_executor *executor;
  const char *name = NULL;
  seen what;

  (void)state;
  executor = simple_bind(parts, desc("data", SHAPE(2, 2), NULL), NULL);
  watch(executor, &what, 0);
  ok(cohort_executor_forward(executor, 0));
  assert_string_equal(what.names, "bn_output bn_mean bn_var sp_output0 sp_output1");
  ok(cohort_executor_name(executor, COHORT_EXECUTOR_OUTPUTS, 1, &name));
  assert_string_equal(name, "sp_output1");
  start(&what);
  cohort_executor_free(executor);
}

/* MON-04: each operator's inputs before it runs, each variable first under its own name; an unnamed input by its
 * number. */
static void inputs_report_before_their_operator(void **state) {
  cohort_symbol *fc = node("FullyConnected", "fc", ATTRS("num_hidden", "1"), INPUTS(variable("data")));
  cohort_executor *executor = simple_bind(node("elemwise_add", "sum", NO_ATTRS, INPUTS(fc, variable("more"))),
                                          desc("data", SHAPE(2, 1), NULL), NULL);
  cohort_executor *square =
      simple_bind(node("square", "sq", NO_ATTRS, INPUTS(variable("x"))), desc("x", SHAPE(2), NULL), NULL);
  seen what;

  (void)state;
  set_arg(executor, "data", 1, 2);
  watch(executor, &what, 1);
  ok(cohort_executor_forward(executor, 0));
  assert_string_equal(what.names,
                      "data fc_data fc_weight fc_weight fc_bias fc_bias fc_output sum_lhs more sum_rhs sum_output");
  assert_true(what.sums[0] == 3 && what.sums[1] == 3);
  start(&what);
  watch(executor, &what, 0); /* the default: outputs only */
  ok(cohort_executor_forward(executor, 0));
  assert_string_equal(what.names, "fc_output sum_output");
  start(&what);
  watch(square, &what, 1);
  ok(cohort_executor_forward(square, 0));
  assert_string_equal(what.names, "x sq_input0 sq_output");
  start(&what);
  cohort_executor_free(executor);
  cohort_executor_free(square);
}

/* MON-04: some inputs have a name, the others a number, as in MXNet. DEF-69: an operator's internal values are not
 * shown as outputs. */
static void an_only_input_goes_by_its_name_or_number(void **state) {
  static const struct {
    const char *op, *key, *value, *input;
    int64_t shape[4];
    int32_t rank;
    const char *outputs;
  } cases[] = {
      {"LeakyReLU", "slope", "0.1", "data", {2, 3}, 2, "n_output"},
      {"log_softmax", "axis", "-1", "data", {2, 3}, 2, "n_output"},
      {"L2Normalization", "mode", "instance", "data", {2, 3}, 2, "n_output"},
      {"Pad", "mode", "edge", "data", {1, 1, 2, 2}, 4, "n_output"},
      {"SequenceMask", "value", "1", "data", {2, 3}, 2, "n_output"},
      {"SequenceLast", "axis", "0", "data", {2, 3}, 2, "n_output"},
      {"SequenceReverse", "axis", "0", "data", {2, 3}, 2, "n_output"},
      {"squeeze", "axis", "1", "data", {2, 1}, 2, "n_output"},
      {"tile", "reps", "(2,)", "data", {2, 1}, 2, "n_output"},
      {"repeat", "repeats", "2", "data", {2, 1}, 2, "n_output"},
      {"reverse", "axis", "(0,)", "data", {2, 1}, 2, "n_output"},
      {"cumsum", "axis", "0", "a", {2, 1}, 2, "n_output"},
      {"one_hot", "depth", "2", "indices", {2}, 1, "n_output"},
      {"moments", "axes", "(0,)", "data", {2, 2}, 2, "n_output0 n_output1"},
      {"diag", "k", "0", "data", {2, 2}, 2, "n_output"},
      {"space_to_depth", "block_size", "2", "data", {1, 1, 2, 2}, 4, "n_output"},
      {"im2col", "kernel", "(1, 1)", "data", {1, 1, 2, 2}, 4, "n_output"},
      {"_split_v2", "indices", "(0, 1)", "data", {1, 2}, 2, "n_output0 n_output1"},
      {"_linalg_syrk", "alpha", "1", "A", {2, 2}, 2, "n_output"},
      {"_linalg_extractdiag", "offset", "0", "A", {2, 2}, 2, "n_output"},
      {"_contrib_quadratic", "a", "1", "data", {2, 2}, 2, "n_output"},
      {"_contrib_interleaved_matmul_selfatt_qk", "heads", "1", "queries_keys_values", {1, 1, 3}, 3, "n_output"},
      {"LRN", "nsize", "1", "data", {1, 1, 2, 2}, 4, "n_output"},
      {"Pooling", "kernel", "(2, 2)", "data", {1, 1, 2, 2}, 4, "n_output"},
      {"Dropout", "p", "0.5", "data", {2, 2}, 2, "n_output"},
      {"Reshape", "shape", "(-1,)", "input0", {2, 2}, 2, "n_output"},
      {"sum", "axis", "0", "input0", {2, 2}, 2, "n_output"},
      {"expand_dims", "axis", "0", "input0", {2, 2}, 2, "n_output"},
      {"slice_axis", "end", "1", "input0", {2, 2}, 2, "n_output"},
      {"_mul_scalar", "scalar", "2", "input0", {2, 2}, 2, "n_output"},
      {"topk", "k", "1", "input0", {2, 2}, 2, "n_output"},
      {"Embedding", "input_dim", "2", "data", {2}, 1, "n_weight n_weight n_output"},
  };
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(cases); ++i) {
    const int slices = strcmp(cases[i].op, "slice_axis") == 0, embeds = strcmp(cases[i].op, "Embedding") == 0,
              pads = strcmp(cases[i].op, "Pad") == 0;
    const char *keys[3], *values[3];
    char expected[64];
    cohort_executor *executor;
    cohort_descs *known;
    cohort_symbol *x = variable("x"), *net = NULL;
    size_t num = 1;
    seen what;

    keys[0] = cases[i].key;
    values[0] = cases[i].value;
    if (slices || embeds || pads) {
      keys[num] = slices ? "axis" : embeds ? "output_dim" : "pad_width";
      values[num++] = slices ? "0" : embeds ? "1" : "(0, 0, 0, 0, 1, 1, 1, 1)";
    }
    if (slices) {
      keys[num] = "begin";
      values[num++] = "0";
    }
    ok(cohort_symbol_create(cases[i].op, "n", keys, values, num, &x, NULL, 1, &net));
    cohort_symbol_free(x);
    ok(cohort_descs_create(&known));
    ok(cohort_descs_add(known, "x", cases[i].shape, cases[i].rank, COHORT_DTYPE_FLOAT32, NULL));
    executor = simple_bind(net, known, NULL);
    watch(executor, &what, 1);
    ok(cohort_executor_forward(executor, 0));
    snprintf(expected, sizeof(expected), "x n_%s %s", cases[i].input, cases[i].outputs ? cases[i].outputs : "n_output");
    assert_string_equal(what.names, expected);
    start(&what);
    cohort_executor_free(executor);
  }
}

/* MON-05: names and calls are those of the symbol, even where a plan would fuse a layer with what follows it, fold a
 * batch norm into a convolution, or compute equal nodes once. */
static void names_are_those_of_the_symbol_as_bound(void **state) {
  cohort_symbol *x = variable("x"), *twins[2], *sum;
  cohort_symbol *conv = node("Convolution", "conv", ATTRS("kernel", "(1, 1)", "num_filter", "2", "no_bias", "1"),
                             INPUTS(variable("data")));
  cohort_symbol *act =
      node("Activation", "act", ATTRS("act_type", "relu"), INPUTS(node("BatchNorm", "bn", NO_ATTRS, INPUTS(conv))));
  cohort_executor *executor = simple_bind(node("FullyConnected", "fc", ATTRS("num_hidden", "1"), INPUTS(act)),
                                          desc("data", SHAPE(1, 1, 2, 2), NULL), NULL);
  int32_t is_train;
  size_t i;
  seen what;

  (void)state;
  for (is_train = 0; is_train < 2; ++is_train) {
    watch(executor, &what, 0);
    ok(cohort_executor_forward(executor, is_train));
    assert_string_equal(what.names, "conv_output bn_output bn_mean bn_var act_output fc_output");
    start(&what);
  }
  cohort_executor_free(executor);
  for (i = 0; i < 2; ++i) {
    cohort_symbol *copy = NULL;

    ok(cohort_symbol_group(&x, 1, &copy));
    twins[i] = node("tanh", i ? "right" : "left", NO_ATTRS, INPUTS(copy));
  }
  sum = node("elemwise_add", "sum", NO_ATTRS, INPUTS(twins[0], twins[1]));
  cohort_symbol_free(x);
  executor = simple_bind(sum, desc("x", SHAPE(1), NULL), NULL);
  set_arg(executor, "x", 0.5f);
  watch(executor, &what, 0);
  ok(cohort_executor_forward(executor, 0));
  assert_string_equal(what.names, "left_output right_output sum_output");
  assert_true(what.sums[0] > 0.46 && what.sums[0] == what.sums[1]);
  start(&what);
  cohort_executor_free(executor);
}

/* MON-10: a callback follows a group that is reshaped or bound again. */
static void a_callback_follows_the_group(void **state) {
  cohort_group *group = bind_regression(1, 2, NULL);
  cohort_descs *data = desc("data", SHAPE(3, 2), NULL), *label = desc("label", SHAPE(3, 1), NULL);
  seen what;

  (void)state;
  memset(&what, 0, sizeof(what));
  ok(cohort_group_set_monitor(group, note, &what, 0));
  ok(cohort_group_reshape(group, data, label));
  ok(cohort_group_run(group, 0));
  assert_string_equal(what.names, "fc_output lro_output");
  ok(cohort_group_bind(group, data, label, NULL, 1));
  ok(cohort_group_run(group, 0));
  assert_string_equal(what.names, "fc_output lro_output fc_output lro_output");
  start(&what);
  cohort_descs_free(data);
  cohort_descs_free(label);
  cohort_group_free(group);
}

/* data through Dropout to a regression. */
static cohort_executor *bound_random(int64_t rows) {
  cohort_symbol *dropped = node("Dropout", "drop", ATTRS("p", "0.5"), INPUTS(variable("data")));
  cohort_symbol *fc = node("FullyConnected", "fc", ATTRS("num_hidden", "1", "no_bias", "1"), INPUTS(dropped));
  cohort_symbol *act = node("Activation", "act", ATTRS("act_type", "tanh"), INPUTS(fc));
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor;

  options.seed = 5;
  options.grad_req = "write";
  executor = simple_bind(act, desc("data", SHAPE(rows, 16), NULL), &options);
  fill(arg_of(executor, "data"), 0.25);
  fill(arg_of(executor, "fc_weight"), 0.125);
  return executor;
}

static void same_floats(cohort_ndarray *one, cohort_ndarray *other) {
  float first[64], second[64];
  size_t bytes = 0;

  ok(cohort_ndarray_bytes(one, &bytes));
  assert_true(bytes <= sizeof(first));
  ok(cohort_ndarray_read(one, first, bytes));
  ok(cohort_ndarray_read(other, second, bytes));
  assert_memory_equal(first, second, bytes);
  cohort_ndarray_free(one);
  cohort_ndarray_free(other);
}

/* MON-11: results are the same bits with and without a monitor, and random operators draw the same numbers, whenever it
 * is set and removed; also step by step (EXE-22). */
static void changes_no_result(int64_t rows) {
  cohort_executor *plain = bound_random(rows), *watched = bound_random(rows), *stepped = bound_random(rows);
  int32_t pass, step, left;
  seen what;

  for (pass = 0; pass < 6; ++pass) {
    if (pass == 1 || pass == 4) watch(watched, &what, 0);
    if (pass == 3 || pass == 5) {
      ok(cohort_executor_set_monitor(watched, NULL, NULL, 0));
      start(&what);
    }
    ok(cohort_executor_forward(plain, 1));
    ok(cohort_executor_forward(watched, 1));
    for (step = 0, left = 1; left > 0; ++step) ok(cohort_executor_partial_forward(stepped, 1, step, &left));
    same_floats(output_of(plain, 0), output_of(watched, 0));
    same_floats(output_of(plain, 0), output_of(stepped, 0));
    ok(try_backward_with(plain, counted(SHAPE(rows, 1), 1), 1));
    ok(try_backward_with(watched, counted(SHAPE(rows, 1), 1), 1));
    ok(try_backward_with(stepped, counted(SHAPE(rows, 1), 1), 1));
    same_floats(grad_of(plain, "data"), grad_of(watched, "data"));
    same_floats(grad_of(plain, "fc_weight"), grad_of(watched, "fc_weight"));
    same_floats(grad_of(plain, "fc_weight"), grad_of(stepped, "fc_weight"));
  }
  cohort_executor_free(plain);
  cohort_executor_free(watched);
  cohort_executor_free(stepped);
}

static void a_monitor_changes_no_result(void **state) {
  (void)state;
  changes_no_result(4);
  changes_no_result(1); /* FullyConnected has separate loops for a single row */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(operators_report_in_the_order_of_execution),
      TEST(devices_report_one_after_the_other),
      TEST(outputs_go_by_their_own_names),
      TEST(inputs_report_before_their_operator),
      TEST(an_only_input_goes_by_its_name_or_number),
      TEST(names_are_those_of_the_symbol_as_bound),
      TEST(a_callback_follows_the_group),
      TEST(a_monitor_changes_no_result),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
