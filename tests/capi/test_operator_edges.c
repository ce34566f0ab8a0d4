/* SPDX-License-Identifier: Apache-2.0 */
/* Operators at the edges of what they take: refused with an error of the caller's kind, by the call that is at fault.
 */
#include "support/boundary.h"

/* Applies an operator with one attribute to num_inputs arrays of zeros of one shape and dtype. */
static cohort_error *apply(const char *op, const char *key, const char *value, size_t num_inputs, int32_t num_axes,
                           int32_t dtype) {
  const int64_t shape[] = {2, 3, 4};
  cohort_ndarray *inputs[4] = {NULL, NULL, NULL, NULL};
  cohort_arrays *outputs = NULL;
  cohort_error *error;
  size_t i;

  for (i = 0; i < num_inputs; ++i) ok(cohort_ndarray_zeros(shape, num_axes, dtype, NULL, &inputs[i]));
  error = cohort_operator_invoke(op, &key, &value, key ? 1 : 0, inputs, num_inputs, NULL, 0, NULL, &outputs);
  for (i = 0; i < num_inputs; ++i) cohort_ndarray_free(inputs[i]);
  cohort_arrays_free(outputs);
  return error;
}

/* Counts of outputs come as text from anywhere; none of them makes the library allocate or overrun. */
static void a_wild_count_of_outputs_is_refused(void **state) {
  static const char *const ops[] = {"amp_multicast", "SliceChannel"};
  static const char *const counts[] = {"0", "-1", "-2147483648", "65537", "2147483647"};
  size_t i, k;

  (void)state;
  for (i = 0; i < NUM_OF(ops); ++i) {
    for (k = 0; k < NUM_OF(counts); ++k) {
      fails(apply(ops[i], "num_outputs", counts[k], 1, 2, COHORT_DTYPE_FLOAT32), COHORT_ERROR_INVALID_ARGUMENT,
            "expected 1 to 65536");
    }
  }
  fails(apply("amp_multicast", "num_outputs", "3", 2, 2, COHORT_DTYPE_FLOAT32), COHORT_ERROR_SHAPE, "found 2");
}

/* Dtypes alone can be inferred without shapes: the count is looked at there as well. */
static void a_wrong_count_is_seen_by_inference_of_dtypes(void **state) {
  const char *key = "num_outputs", *three = "3";
  cohort_symbol *inputs[2] = {NULL, NULL}, *cast = NULL;
  cohort_descs *known = NULL;
  int32_t complete = -1;

  (void)state;
  ok(cohort_symbol_variable("a", NULL, NULL, 0, &inputs[0]));
  ok(cohort_symbol_variable("b", NULL, NULL, 0, &inputs[1]));
  ok(cohort_symbol_create("amp_multicast", "m", &key, &three, 1, inputs, NULL, 2, &cast));
  ok(cohort_descs_create(&known));
  ok(cohort_descs_add(known, "a", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_FLOAT32, NULL));
  ok(cohort_descs_add(known, "b", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_INT32, NULL));
  fails(cohort_symbol_infer_dtype(cast, known, 0, &complete, NULL, NULL, NULL), COHORT_ERROR_SHAPE, "found 2");
  cohort_descs_free(known);
  cohort_symbol_free(cast);
  cohort_symbol_free(inputs[0]);
  cohort_symbol_free(inputs[1]);
}

static void softmax_activation_needs_its_axes(void **state) {
  (void)state;
  fails(apply("SoftmaxActivation", NULL, NULL, 1, 0, COHORT_DTYPE_FLOAT32), COHORT_ERROR_SHAPE, "found ()");
  fails(apply("SoftmaxActivation", "mode", "channel", 1, 1, COHORT_DTYPE_FLOAT32), COHORT_ERROR_SHAPE, "found (2,)");
  ok(apply("SoftmaxActivation", "mode", "channel", 1, 2, COHORT_DTYPE_FLOAT32));
}

/* An operator of floating numbers refuses others when it is asked for, not when queued work is waited for. */
static void integers_are_refused_before_anything_is_queued(void **state) {
  static const char *const calls[][3] = {{"Activation", "act_type", "softsign"},
                                         {"LeakyReLU", "act_type", "elu"},
                                         {"LeakyReLU", "act_type", "rrelu"},
                                         {"Pooling", "global_pool", "True"}};
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(calls); ++i) {
    fails(apply(calls[i][0], calls[i][1], calls[i][2], 1, 3, COHORT_DTYPE_INT32), COHORT_ERROR_DTYPE, "found int32");
  }
}

/* Samples without classes have labels that need not have memory: a pass back over nothing reads nothing. */
static void a_loss_over_no_classes_runs(void **state) {
  const int64_t none[] = {1, 0, 0};
  const int32_t req[] = {COHORT_GRAD_WRITE, COHORT_GRAD_NULL};
  cohort_ndarray *args[2] = {NULL, NULL}, *grads[2] = {NULL, NULL};
  cohort_symbol *loss = NULL;
  cohort_executor *executor = NULL;
  int32_t axes;

  (void)state;
  ok(cohort_symbol_create("SoftmaxOutput", "loss", NULL, NULL, 0, NULL, NULL, 0, &loss));
  for (axes = 2; axes <= 3; ++axes) {
    ok(cohort_ndarray_zeros(none, axes, COHORT_DTYPE_FLOAT64, NULL, &args[0]));
    ok(cohort_ndarray_zeros(none, axes - 1, COHORT_DTYPE_FLOAT64, NULL, &args[1]));
    ok(cohort_ndarray_zeros(none, axes, COHORT_DTYPE_FLOAT64, NULL, &grads[0]));
    ok(cohort_executor_bind(loss, NULL, args, 2, grads, req, NULL, 0, NULL, &executor));
    ok(cohort_executor_forward(executor, 1));
    ok(cohort_executor_backward(executor, NULL, 0, 1));
    ok(cohort_executor_wait(executor));
    cohort_executor_free(executor);
    cohort_ndarray_free(args[0]);
    cohort_ndarray_free(args[1]);
    cohort_ndarray_free(grads[0]);
  }
  cohort_symbol_free(loss);
}

/* Time and memory grow with the number of outputs, not with its square: this took minutes. */
static void a_node_of_very_many_outputs_is_bound(void **state) {
  const char *key = "num_outputs", *many = "60000", *name = NULL;
  const int64_t shape[] = {1, 60000};
  cohort_symbol *data = NULL, *split = NULL;
  cohort_descs *known = NULL;
  cohort_executor *executor = NULL;

  (void)state;
  ok(cohort_symbol_variable("data", NULL, NULL, 0, &data));
  ok(cohort_symbol_create("SliceChannel", "split", &key, &many, 1, &data, NULL, 1, &split));
  ok(cohort_descs_create(&known));
  ok(cohort_descs_add(known, "data", shape, 2, COHORT_DTYPE_FLOAT32, NULL));
  ok(cohort_executor_simple_bind(split, NULL, known, NULL, &executor));
  ok(cohort_executor_forward(executor, 0));
  ok(cohort_executor_name(executor, COHORT_EXECUTOR_OUTPUTS, 59999, &name));
  assert_string_equal(name, "split_output59999");
  cohort_executor_free(executor);
  cohort_descs_free(known);
  cohort_symbol_free(split);
  cohort_symbol_free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_wild_count_of_outputs_is_refused), TEST(a_wrong_count_is_seen_by_inference_of_dtypes),
      TEST(softmax_activation_needs_its_axes),  TEST(integers_are_refused_before_anything_is_queued),
      TEST(a_loss_over_no_classes_runs),        TEST(a_node_of_very_many_outputs_is_bound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
