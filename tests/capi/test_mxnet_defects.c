/* SPDX-License-Identifier: Apache-2.0 */
/* Defects of MXNet 1.9.1 whose absence no other test shows: clauses of DEF-25, DEF-26, DEF-32, DEF-35, DEF-46 to
 * DEF-52. */
#include <stdio.h>

#include "support/executor_tests.h"

/* DEF-25: data that is float16 by its own attribute makes its weights float16, without any other dtype given. */
static void a_float16_attribute_needs_no_help(void **state) {
  const char *const key = "__dtype__", *const value = "2";
  cohort_symbol *data = NULL;
  cohort_executor *executor;
  cohort_descs *known = NULL;
  cohort_ndarray *weight;

  (void)state;
  ok(cohort_symbol_variable("data", &key, &value, 1, &data));
  ok(cohort_descs_create(&known));
  ok(cohort_descs_add(known, "data", SHAPE(2, 3), COHORT_DTYPE_NONE, NULL));
  executor = simple_bind(node("FullyConnected", "fc", ATTRS("num_hidden", "1"), INPUTS(data)), known, NULL);
  weight = arg_of(executor, "fc_weight");
  assert_int_equal(dtype_of(weight), COHORT_DTYPE_FLOAT16);
  cohort_ndarray_free(weight);
  cohort_executor_free(executor);
}

/* The calls of a monitor callback: their number, and the elements of the array called `wanted`. */
typedef struct Shown {
  const char *wanted;
  float values[4];
  size_t num_calls, num_wanted;
} Shown;

static void note_shown(const char *name, cohort_ndarray *array, void *user_data) {
  Shown *shown = user_data;
  int64_t size = 0;

  ++shown->num_calls;
  if (strcmp(name, shown->wanted) != 0) return;
  ++shown->num_wanted;
  ok(cohort_ndarray_size(array, &size));
  assert_true((size_t)size <= COUNT(shown->values));
  ok(cohort_ndarray_read(array, shown->values, (size_t)size * sizeof(float)));
}

/* DEF-26: outputs that nothing else reads are computed before a monitor is shown them. */
static void outputs_that_nobody_reads_are_shown_with_values(void **state) {
  Shown shown = {"bn_mean", {-7, -7, -7, -7}, 0, 0};
  cohort_symbol *symbol = node("BatchNorm", "bn", NO_ATTRS, INPUTS(variable("data")));
  cohort_executor *executor = simple_bind(symbol, desc("data", SHAPE(2, 2), NULL), NULL);

  (void)state;
  set_arg(executor, "data", 1, 10, 3, 30);
  ok(cohort_executor_set_monitor(executor, note_shown, &shown, 0));
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_wait(executor));
  assert_int_equal(shown.num_wanted, 1);
  assert_true(shown.values[0] == 2 && shown.values[1] == 20);
  cohort_executor_free(executor);
}

/* DEF-26: monitoring all of SliceChannel's backward terminates, and shows its gradients. */
static void all_of_a_split_can_be_watched_in_backward(void **state) {
  Shown shown = {"sp_backward_output0", {-7, -7, -7, -7}, 0, 0};
  cohort_symbol *symbol = node("SliceChannel", "sp", ATTRS("num_outputs", "2"), INPUTS(variable("data")));
  cohort_executor *executor = simple_bind_with(symbol, desc("data", SHAPE(1, 2), NULL), "write");
  cohort_ndarray *heads[2];

  (void)state;
  heads[0] = floats(SHAPE(1, 1), FLOATS(3));
  heads[1] = floats(SHAPE(1, 1), FLOATS(4));
  ok(cohort_executor_set_monitor(executor, note_shown, &shown, 1));
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_backward(executor, heads, 2, 1));
  ok(cohort_executor_wait(executor));
  assert_true(shown.num_calls <= 16);
  assert_int_equal(shown.num_wanted, 1);
  assert_true(shown.values[0] == 3 && shown.values[1] == 4);
  holds_free(grad_of(executor, "data"), 3, 4);
  cohort_ndarray_free(heads[0]);
  cohort_ndarray_free(heads[1]);
  cohort_executor_free(executor);
}

/* DEF-32: a map of requests applies by name, whatever other arguments there are and in whatever order. */
static void a_map_needs_no_other_argument_to_count(void **state) {
  const char *const names[] = {"fc_weight"}, *const words[] = {"add"};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_executor *executor = NULL;
  cohort_group *group;
  int32_t found = -1;

  (void)state;
  options.grad_req_names = names;
  options.grad_req_list = words;
  options.num_grad_reqs = 1;
  group = bind_for_training(linear("1"), 2, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), &options);
  ok(cohort_group_executor(group, 0, &executor));
  ok(cohort_executor_grad_req(executor, 1, &found));
  assert_int_equal(found, COHORT_GRAD_ADD);
  cohort_executor_free(executor);
  cohort_group_free(group);
}

/* A call that must fail with this message, and this subject if that is not NULL: one line of ASCII. */
static void plain_at(cohort_error *error, int32_t code, const char *words, const char *subject, int line) {
  char message[512];
  const char *at;

  snprintf(message, sizeof(message), "%s", cohort_error_message(error));
  for (at = message; *at; ++at) assert_in_range((unsigned char)*at, 0x20, 0x7e);
  if (cohort_error_code(error) != code || !strstr(message, words) ||
      (subject && strcmp(cohort_error_subject(error), subject) != 0)) {
    print_error("line %d: expected '%s' about '%s', found '%s' about '%s'\n", line, words, subject ? subject : "",
                message, cohort_error_subject(error));
    cohort_error_free(error);
    fail();
  }
  cohort_error_free(error);
}
#define plain(call, code, words, subject) plain_at((call), (code), (words), (subject), __LINE__)

/* DEF-35: a message is one line of UTF-8, whatever bytes the caller's names contain. */
static void messages_are_one_line_of_utf8(void **state) {
  const char broken[] = "{\"nodes\": [{\"op\": \"\xff\n\"}]}", unknown[] =
                                                                   "{\"nodes\": [{\"op\": \"No\\nOp\", \"name\": "
                                                                   "\"x\", \"inputs\": []}], \"arg_nodes\": [], "
                                                                   "\"heads\": [[0, 0, 0]]}";
  cohort_symbol *symbol = NULL;
  cohort_metric *metric = NULL;
  cohort_error *error;

  (void)state;
  plain(cohort_symbol_from_json(broken, sizeof(broken) - 1, &symbol), COHORT_ERROR_FORMAT, "syntax error at byte",
        NULL);
  plain(cohort_symbol_from_json(unknown, sizeof(unknown) - 1, &symbol), COHORT_ERROR_FORMAT, "No\\x0aOp", NULL);
  plain(cohort_metric_create("a\nb\xc3", NULL, NULL, 0, &metric), COHORT_ERROR_NAME, "'a\\x0ab\\xc3'", "a\\x0ab\\xc3");
  plain(cohort_symbol_load("no\xfe\x01", &symbol), COHORT_ERROR_IO, "no\\xfe\\x01", "no\\xfe\\x01");
  error = cohort_metric_create("M\xc3\xbc\xe2\x82\xac", NULL, NULL, 0, &metric);
  assert_non_null(strstr(cohort_error_message(error), "'M\xc3\xbc\xe2\x82\xac'"));
  assert_string_equal(cohort_error_subject(error), "M\xc3\xbc\xe2\x82\xac");
  cohort_error_free(error);
  assert_null(symbol);
  assert_null(metric);
}

/* DEF-46: the mean of a pooling window that lies entirely in the padding is 0, not a division by 0. */
static void a_mean_of_nothing_is_zero(void **state) {
  cohort_symbol *pool = node("Pooling", "pool",
                             ATTRS("pool_type", "avg", "kernel", "(1, 1, 2)", "stride", "(1, 1, 3)", "pad", "(0, 0, 1)",
                                   "pooling_convention", "full", "count_include_pad", "False"),
                             INPUTS(variable("data")));
  cohort_executor *executor = simple_bind_with(pool, desc("data", SHAPE(1, 1, 1, 1, 2), NULL), "write");

  (void)state;
  set_arg(executor, "data", 5, 7);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 5, 0);
  ok(try_backward_with(executor, floats(SHAPE(1, 1, 1, 1, 2), FLOATS(2, 3)), 1));
  holds_free(grad_of(executor, "data"), 2, 0);
  cohort_executor_free(executor);
}

static cohort_executor *of_data(const char *op, const char *const *attrs, cohort_descs *data) {
  return simple_bind_with(node(op, "n", attrs, INPUTS(variable("data"))), data, "write");
}

/* DEF-47: below 0 it is what the function says. */
static void the_gradient_of_selu_is_its_own(void **state) {
  cohort_executor *executor = of_data("LeakyReLU", ATTRS("act_type", "selu"), desc("data", SHAPE(1, 3), NULL));

  (void)state;
  set_arg(executor, "data", -3, -1, 0.5f);
  ok(cohort_executor_forward(executor, 1));
  ok(try_backward_with(executor, floats(SHAPE(1, 3), FLOATS(1, 1, 1)), 1));
  holds_free(grad_of(executor, "data"), 0.0875306f, 0.6467686f, 1.0507010f); /* 1.0507010 * 1.6732632 * exp(x) */
  cohort_executor_free(executor);
}

/* DEF-48: each row has a gradient of its own. */
static void a_softmax_of_rows_goes_back_to_rows(void **state) {
  cohort_executor *executor =
      of_data("SoftmaxActivation", ATTRS("mode", "instance"), desc("data", SHAPE(1, 2, 2), NULL));

  (void)state;
  ok(cohort_executor_forward(executor, 1));
  ok(try_backward_with(executor, floats(SHAPE(1, 2, 2), FLOATS(1, 0, 0, 0)), 1));
  holds_free(grad_of(executor, "data"), 0.25f, -0.25f, 0, 0);
  cohort_executor_free(executor);
}

/* DEF-49: the momentum uses the weight before the update, so that the second step is Nesterov's, too. */
static void nesterov_decays_the_weight_that_was(void **state) {
  const char *const keys[] = {"learning_rate", "momentum", "wd"}, *const values[] = {"0.1", "0.9", "0.3"};
  cohort_ndarray *weight = floats(SHAPE(1), FLOATS(1)), *grad = floats(SHAPE(1), FLOATS(0.5f));
  cohort_optimizer *optimizer = NULL;

  (void)state;
  ok(cohort_optimizer_create("nag", keys, values, 3, &optimizer));
  ok(cohort_optimizer_update(optimizer, "x_weight", 0, weight, grad));
  holds(weight, 0.848f); /* m = -0.1 * (0.5 + 0.3 * 1); w = 1 + 0.9 m - 0.1 * (0.5 + 0.3 * 1) */
  ok(cohort_optimizer_update(optimizer, "x_weight", 0, weight, grad));
  holds_free(weight, 0.639864f); /* MXNet: 0.643558, from m = -0.1 * (0.5 + 0.3 * 0.848) */
  cohort_ndarray_free(grad);
  cohort_optimizer_free(optimizer);
}

/* DEF-50: the head gradient multiplies the gradient. */
static void softmax_output_takes_its_head_gradient(void **state) {
  cohort_symbol *softmax =
      node("SoftmaxOutput", "softmax", ATTRS("out_grad", "True"), INPUTS(variable("data"), variable("label")));
  cohort_executor *executor = simple_bind_with(softmax, desc("data", SHAPE(1, 2), NULL), "write");

  (void)state;
  ok(cohort_executor_forward(executor, 1));
  ok(try_backward_with(executor, floats(SHAPE(1, 2), FLOATS(2, 3)), 1));
  holds_free(grad_of(executor, "data"), -1, 1.5f); /* (p - 1) 2, p 3; MXNet: (p - 1) p, p p */
  cohort_executor_free(executor);
}

/* DEF-51: sequence lengths and an LSTM's state clipping take effect. */
static void recurrent_layers_obey_lengths_and_limits(void **state) {
  cohort_symbol *relu =
      node("RNN", "rnn", ATTRS("mode", "rnn_relu", "state_size", "1", "num_layers", "1", "use_sequence_length", "True"),
           INPUTS(variable("data"), variable("w"), variable("h"), variable("length")));
  cohort_symbol *lstm = node("RNN", "rnn",
                             ATTRS("mode", "lstm", "state_size", "1", "num_layers", "1", "lstm_state_clip_min", "-0.1",
                                   "lstm_state_clip_max", "0.1"),
                             INPUTS(variable("data"), variable("w"), variable("h"), variable("c")));
  cohort_executor *executor = simple_bind(relu, desc("data", SHAPE(2, 1, 1), NULL), NULL);

  (void)state;
  set_arg(executor, "data", 1, 1);
  set_arg(executor, "w", 1, 1, 0, 0);
  set_arg(executor, "length", 1);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 1, 0);
  cohort_executor_free(executor);

  executor = simple_bind(lstm, desc("data", SHAPE(1, 1, 1), NULL), NULL);
  set_arg(executor, "data", 1);
  set_arg(executor, "w", 50, 50, 50, 50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 0.0996680f); /* tanh(0.1), not tanh(1) */
  cohort_executor_free(executor);
}

/* DEF-52: the slopes of prelu are learnt from the data, not from the gradient that overwrites it in backward. */
static void slopes_are_learnt_behind_any_operator(void **state) {
  cohort_symbol *tripled = node("_mul_scalar", "tripled", ATTRS("scalar", "3"), INPUTS(variable("x")));
  cohort_symbol *prelu = node("LeakyReLU", "prelu", ATTRS("act_type", "prelu"), INPUTS(tripled, variable("slopes")));
  cohort_executor *executor = simple_bind_with(prelu, desc("x", SHAPE(2, 2), NULL), "write");

  (void)state;
  set_arg(executor, "x", -1, -2, 3, -4);
  set_arg(executor, "slopes", 0.25f, 0.25f);
  ok(cohort_executor_forward(executor, 1));
  ok(try_backward_with(executor, floats(SHAPE(2, 2), FLOATS(1, 1, 1, 1)), 1));
  holds_free(grad_of(executor, "slopes"), -3, -18); /* MXNet: -0.75, -4.5 */
  holds_free(grad_of(executor, "x"), 0.75f, 0.75f, 3, 0.75f);
  cohort_executor_free(executor);
}

/* An LSTM's projection follows the weights of its cell and precedes all biases, as in MXNet's files: zero weights and
 * biases open each gate by half, so that c = 0.5 * 2 and h = 0.5 * tanh(1) * 10. */
static void a_projection_lies_behind_the_weights_of_its_cell(void **state) {
  float parameters[17] = {0};
  cohort_executor *executor;
  cohort_ndarray *array;

  (void)state;
  parameters[8] = 10;
  executor = simple_bind_with(
      node("RNN", "rnn", ATTRS("state_size", "1", "num_layers", "1", "mode", "lstm", "projection_size", "1"),
           INPUTS(variable("data"), variable("parameters"), variable("h"), variable("c"))),
      desc("data", SHAPE(1, 1, 1), NULL), "null");
  set_arg(executor, "data", 1);
  set_arg(executor, "c", 2);
  array = arg_of(executor, "parameters");
  ok(cohort_ndarray_write(array, parameters, sizeof(parameters)));
  cohort_ndarray_free(array);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 3.8079708f);
  cohort_executor_free(executor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_float16_attribute_needs_no_help),
      TEST(outputs_that_nobody_reads_are_shown_with_values),
      TEST(all_of_a_split_can_be_watched_in_backward),
      TEST(a_map_needs_no_other_argument_to_count),
      TEST(messages_are_one_line_of_utf8),
      TEST(a_mean_of_nothing_is_zero),
      TEST(the_gradient_of_selu_is_its_own),
      TEST(a_softmax_of_rows_goes_back_to_rows),
      TEST(nesterov_decays_the_weight_that_was),
      TEST(softmax_output_takes_its_head_gradient),
      TEST(recurrent_layers_obey_lengths_and_limits),
      TEST(slopes_are_learnt_behind_any_operator),
      TEST(a_projection_lies_behind_the_weights_of_its_cell),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
