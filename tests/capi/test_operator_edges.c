/* SPDX-License-Identifier: Apache-2.0 */
/* Operators at the limits of what they accept: refused with an error of the caller's kind, by the call that is at
 * fault. */
#include <math.h>

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

/* Counts of outputs come as text from anywhere: no value makes the library allocate or overrun memory. */
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

/* Attributes that only Cohort uses to count inputs are not written to JSON: MXNet counts these inputs by other
 * attributes and refuses unknown ones. */
static void counts_that_mxnet_lacks_are_not_written(void **state) {
  static const struct {
    const char *op, *keys[3], *values[3];
    size_t num_attrs, num_inputs;
  } cases[] = {
      {"amp_multicast", {"num_outputs", "", ""}, {"2", "", ""}, 1, 2},
      {"amp_multicast", {"num_outputs", "__num_inputs__", ""}, {"2", "2", ""}, 2, 2},
      {"multi_sgd_update", {"lrs", "wds", "num_weights"}, {"(1, 1)", "(0, 0)", "2"}, 3, 4},
      {"_contrib_quantized_concat", {"num_args", "", ""}, {"1", "", ""}, 1, 3},
  };
  size_t i, k;

  (void)state;
  for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    cohort_symbol *inputs[4] = {NULL, NULL, NULL, NULL}, *made = NULL, *read = NULL;
    const char *json = NULL, *again = NULL;

    for (k = 0; k < cases[i].num_inputs; ++k) {
      const char name[] = {(char)('a' + k), '\0'};

      ok(cohort_symbol_variable(name, NULL, NULL, 0, &inputs[k]));
    }
    ok(cohort_symbol_create(cases[i].op, "n", cases[i].keys, cases[i].values, cases[i].num_attrs, inputs, NULL,
                            cases[i].num_inputs, &made));
    ok(cohort_symbol_to_json(made, &json));
    assert_null(strstr(json, "__num_inputs__"));
    assert_int_equal(strstr(json, "num_args") != NULL, strcmp(cases[i].op, "_contrib_quantized_concat") == 0);
    ok(cohort_symbol_from_json(json, strlen(json), &read));
    ok(cohort_symbol_to_json(read, &again));
    assert_string_equal(again, json);
    cohort_symbol_free(read);
    cohort_symbol_free(made);
    for (k = 0; k < cases[i].num_inputs; ++k) cohort_symbol_free(inputs[k]);
  }
}

/* Dtypes can be inferred without shapes, so that the count is checked there as well. */
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

/* As in BLAS: an operand with factor 0 is not read, even if it is NaN. */
static void operands_with_factor_zero_are_not_read(void **state) {
  static const char *const keys[] = {"alpha", "beta"}, *const no_c[] = {"2", "0"}, *const no_product[] = {"0", "3"};
  const int64_t shape[] = {2, 2};
  const float numbers[] = {1, 2, 3, 4}, nans[] = {NAN, NAN, NAN, NAN}, c[] = {3, 6, 9, 12};
  cohort_ndarray *some = floats(numbers, shape, 2), *none = floats(nans, shape, 2), *inputs[3], *output = NULL;
  cohort_arrays *results = NULL;
  size_t i;

  (void)state;
  for (i = 0; i < 2; ++i) {
    inputs[0] = inputs[1] = i == 0 ? some : none;
    inputs[2] = i == 0 ? none : some;
    ok(cohort_operator_invoke("_linalg_gemm", keys, i == 0 ? no_c : no_product, 2, inputs, 3, NULL, 0, NULL, &results));
    ok(cohort_arrays_get(results, 0, &output));
    cohort_arrays_free(results);
    {
      float found[4];

      ok(cohort_ndarray_read(output, found, sizeof found));
      assert_float_equal(found[0], i == 0 ? 2 * 7 : c[0], 0);
      assert_float_equal(found[3], i == 0 ? 2 * 22 : c[3], 0);
    }
    cohort_ndarray_free(output);
  }
  cohort_ndarray_free(some);
  cohort_ndarray_free(none);
}

/* Samples of length zero have a density, that of an empty product, by the gamma function of 0. */
static void densities_over_an_empty_axis_are_written(void **state) {
  const int64_t samples[] = {2, 3, 0}, alphas[] = {2, 0}, shape[] = {2, 3};
  cohort_ndarray *inputs[2] = {NULL, NULL}, *output = NULL;
  cohort_arrays *results = NULL;
  float found[6];
  size_t i;

  (void)state;
  ok(cohort_ndarray_zeros(samples, 3, COHORT_DTYPE_FLOAT32, NULL, &inputs[0]));
  ok(cohort_ndarray_zeros(alphas, 2, COHORT_DTYPE_FLOAT32, NULL, &inputs[1]));
  ok(cohort_ndarray_zeros(shape, 2, COHORT_DTYPE_FLOAT32, NULL, &output));
  ok(cohort_operator_invoke("_random_pdf_dirichlet", NULL, NULL, 0, inputs, 2, &output, 1, NULL, &results));
  ok(cohort_ndarray_read(output, found, sizeof found));
  for (i = 0; i < 6; ++i) assert_true(isinf(found[i]));
  cohort_arrays_free(results);
  for (i = 0; i < 2; ++i) cohort_ndarray_free(inputs[i]);
  cohort_ndarray_free(output);
}

/* An operator for floating-point types refuses others when it is called, not when queued work is waited for. */
static void integers_are_refused_before_anything_is_queued(void **state) {
  static const char *const calls[][3] = {{"Activation", "act_type", "softsign"},
                                         {"LeakyReLU", "act_type", "elu"},
                                         {"LeakyReLU", "act_type", "rrelu"},
                                         {"Pooling", "global_pool", "True"}};
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(calls); ++i) {
    fails(apply(calls[i][0], calls[i][1], calls[i][2], 1, 3, COHORT_DTYPE_INT32), COHORT_ERROR_UNSUPPORTED,
          "found int32");
  }
}

/* If there are no classes, the labels may have no memory: backward over nothing reads nothing. */
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

/* Time and memory grow with the number of outputs, not with its square, which took minutes. */
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

/* The gradient of the only argument `data` of a loss with these attributes; labels are 1 and 0. */
static void gradient_is(const char *op, const char *const *keys, const char *const *values, size_t num_attrs,
                        const int64_t *shape, int32_t num_axes, const float *expected, size_t num_expected) {
  static const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, labels[] = {1, 0};
  const int32_t req[] = {COHORT_GRAD_WRITE, COHORT_GRAD_NULL};
  cohort_ndarray *args[2] = {NULL, NULL}, *grads[2] = {NULL, NULL};
  cohort_symbol *loss = NULL;
  cohort_executor *executor = NULL;
  size_t num_args = 0, i;

  ok(cohort_symbol_create(op, "loss", keys, values, num_attrs, NULL, NULL, 0, &loss));
  ok(cohort_symbol_num_names(loss, COHORT_SYMBOL_ARGUMENTS, &num_args));
  args[0] = floats(ones, shape, num_axes);
  args[1] = floats(labels, shape, 1);
  grads[0] = floats(ones, shape, num_axes);
  ok(cohort_executor_bind(loss, NULL, args, num_args, grads, req, NULL, 0, NULL, &executor));
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_backward(executor, NULL, 0, 1));
  {
    float found[12];

    assert_true(num_expected <= 12);
    ok(cohort_ndarray_read(grads[0], found, num_expected * sizeof(float)));
    for (i = 0; i < num_expected; ++i) {
      if (found[i] - expected[i] > 1e-6f || expected[i] - found[i] > 1e-6f) {
        fail_msg("%s: element %zu: expected %g, found %g", op, i, expected[i], found[i]);
      }
    }
  }
  cohort_executor_free(executor);
  cohort_symbol_free(loss);
  cohort_ndarray_free(args[0]);
  cohort_ndarray_free(args[1]);
  cohort_ndarray_free(grads[0]);
}

/* Label 1 is ignored; the other sample is still smoothed: 1/2 - 0.8 for its class, 1/2 - 0.2 for the other. */
static void labels_are_smoothed_where_others_are_ignored(void **state) {
  static const char *const keys[] = {"smooth_alpha", "use_ignore", "ignore_label"};
  static const char *const values[] = {"0.2", "True", "1"};
  static const float expected[] = {0, 0, -0.3f, 0.3f};
  const int64_t shape[] = {2, 2};

  (void)state;
  gradient_is("SoftmaxOutput", keys, values, 3, shape, 2, expected, 4);
}

/* As in MXNet, the batch of MakeLoss is all axes but the last: 2 * 3 rows here, one row for an array of one axis. */
static void the_batch_of_a_made_loss_is_its_rows(void **state) {
  static const char *const keys[] = {"normalization", "grad_scale"}, *const values[] = {"batch", "3"};
  static const float halves[] = {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f};
  static const float threes[] = {3, 3};
  const int64_t shape[] = {2, 3, 2};

  (void)state;
  gradient_is("MakeLoss", keys, values, 2, shape, 3, halves, 12);
  gradient_is("MakeLoss", keys, values, 2, shape, 1, threes, 2);
}

/* The dtype of the only output of an operator applied to arrays of these types. */
static int32_t dtype_applied(const char *op, const char *const *keys, const char *const *values, size_t num_attrs,
                             const int64_t *shape, const int32_t *dtypes, size_t num_inputs) {
  cohort_ndarray *inputs[2] = {NULL, NULL}, *out = NULL;
  cohort_arrays *outputs = NULL;
  int32_t dtype = COHORT_DTYPE_NONE;
  size_t i;

  for (i = 0; i < num_inputs; ++i) ok(cohort_ndarray_zeros(shape, 2, dtypes[i], NULL, &inputs[i]));
  ok(cohort_operator_invoke(op, keys, values, num_attrs, inputs, num_inputs, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &out));
  ok(cohort_ndarray_dtype(out, &dtype));
  cohort_ndarray_free(out);
  cohort_arrays_free(outputs);
  for (i = 0; i < num_inputs; ++i) cohort_ndarray_free(inputs[i]);
  return dtype;
}

/* As in MXNet: an index has the data's type, a row the type of the weight, whatever the attribute says. */
static void outputs_take_the_type_of_data_and_weight(void **state) {
  static const char *const ops[] = {"argmax", "argmin", "argmax_channel"};
  static const char *const keys[] = {"input_dim", "output_dim", "dtype"}, *const values[] = {"3", "3", "float32"};
  static const int32_t types[] = {COHORT_DTYPE_FLOAT16, COHORT_DTYPE_FLOAT64, COHORT_DTYPE_INT32, COHORT_DTYPE_UINT8};
  const int64_t shape[] = {3, 3};
  size_t i, k;

  (void)state;
  for (k = 0; k < NUM_OF(types); ++k) {
    const int32_t embedding[] = {COHORT_DTYPE_INT32, types[k]};

    for (i = 0; i < NUM_OF(ops); ++i) {
      assert_int_equal(dtype_applied(ops[i], NULL, NULL, 0, shape, &types[k], 1), types[k]);
    }
    assert_int_equal(dtype_applied("Embedding", keys, values, 2, shape, embedding, 2), types[k]);
    assert_int_equal(dtype_applied("Embedding", keys, values, 3, shape, embedding, 2), types[k]);
  }
}

/* In the other direction: the type of an index determines that of the data. */
static void the_type_of_data_follows_from_that_of_an_index(void **state) {
  cohort_symbol *data = NULL, *best = NULL, *pair[2] = {NULL, NULL}, *sum = NULL;
  cohort_descs *known = NULL, *args = NULL;
  int32_t complete = -1, dtype = COHORT_DTYPE_NONE;

  (void)state;
  ok(cohort_symbol_variable("data", NULL, NULL, 0, &data));
  ok(cohort_symbol_create("argmax", "best", NULL, NULL, 0, &data, NULL, 1, &best));
  pair[0] = best;
  ok(cohort_symbol_variable("other", NULL, NULL, 0, &pair[1]));
  ok(cohort_symbol_create("elemwise_add", "sum", NULL, NULL, 0, pair, NULL, 2, &sum));
  ok(cohort_descs_create(&known));
  ok(cohort_descs_add(known, "other", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_FLOAT64, NULL));
  ok(cohort_symbol_infer_dtype(sum, known, 0, &complete, &args, NULL, NULL));
  assert_int_equal(complete, 1);
  ok(cohort_descs_get(args, 0, NULL, NULL, 0, NULL, &dtype, NULL));
  assert_int_equal(dtype, COHORT_DTYPE_FLOAT64);
  cohort_descs_free(args);
  cohort_descs_free(known);
  cohort_symbol_free(sum);
  cohort_symbol_free(pair[1]);
  cohort_symbol_free(best);
  cohort_symbol_free(data);
}

/* Where all inputs are of one type, the last alone determines that of the first: the type of a state gives that of the
 * weight. */
static void the_type_of_the_first_input_follows_from_that_of_the_last(void **state) {
  static const struct {
    const char *op, *keys[2], *values[2];
    size_t num_attrs;
  } cases[] = {
      {"sgd_mom_update", {"lr", ""}, {"0.1", ""}, 1}, {"nag_mom_update", {"lr", ""}, {"0.1", ""}, 1},
      {"adam_update", {"lr", ""}, {"0.1", ""}, 1},    {"ftrl_update", {"lr", ""}, {"0.1", ""}, 1},
      {"ftml_update", {"lr", "t"}, {"0.1", "1"}, 2},  {"rmspropalex_update", {"lr", ""}, {"0.1", ""}, 1},
      {"signum_update", {"lr", ""}, {"0.1", ""}, 1},  {"lamb_update_phase1", {"t", "wd"}, {"1", "0"}, 2},
      {"_onehot_encode", {"", ""}, {"", ""}, 0},      {"fill_element_0index", {"", ""}, {"", ""}, 0},
  };
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(cases); ++i) {
    const int first = strcmp(cases[i].op, "_onehot_encode") != 0; /* the first of which determines that of the last */
    cohort_symbol *node = NULL;
    cohort_descs *known = NULL, *args = NULL;
    const char *name = NULL;
    int32_t complete = -1, dtype = COHORT_DTYPE_NONE;
    size_t num = 0;

    ok(cohort_symbol_create(cases[i].op, "n", cases[i].keys, cases[i].values, cases[i].num_attrs, NULL, NULL, 0,
                            &node));
    ok(cohort_symbol_num_names(node, COHORT_SYMBOL_ARGUMENTS, &num));
    ok(cohort_symbol_name_at(node, COHORT_SYMBOL_ARGUMENTS, first ? num - 1 : 0, &name));
    ok(cohort_descs_create(&known));
    ok(cohort_descs_add(known, name, NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_FLOAT64, NULL));
    ok(cohort_symbol_infer_dtype(node, known, 0, &complete, &args, NULL, NULL));
    assert_int_equal(complete, 1);
    ok(cohort_descs_get(args, first ? 0 : num - 1, NULL, NULL, 0, NULL, &dtype, NULL));
    if (dtype != COHORT_DTYPE_FLOAT64) fail_msg("%s: expected float64, found type %d", cases[i].op, (int)dtype);
    cohort_descs_free(args);
    cohort_descs_free(known);
    cohort_symbol_free(node);
  }
}

static void one_part_of_an_array_is_named_as_one_of_several(void **state) {
  const char *key = "num_outputs", *one = "1", *name = NULL;
  cohort_symbol *data = NULL, *split = NULL;

  (void)state;
  ok(cohort_symbol_variable("data", NULL, NULL, 0, &data));
  ok(cohort_symbol_create("SliceChannel", "part", &key, &one, 1, &data, NULL, 1, &split));
  ok(cohort_symbol_name_at(split, COHORT_SYMBOL_OUTPUTS, 0, &name));
  assert_string_equal(name, "part_output0");
  cohort_symbol_free(split);
  cohort_symbol_free(data);
}

/* With out_grad the gradient is multiplied by the head gradient, which is then required. */
static void a_loss_may_read_its_head_gradient(void **state) {
  static const float scores[] = {1, 1, 1, 1}, labels[] = {1, 0}, head[] = {1, 2, 3, 4},
                     expected[] = {0.5f, -1, -1.5f, 2};
  const char *key = "out_grad", *yes = "True";
  const int64_t shape[] = {2, 2};
  const int32_t req[] = {COHORT_GRAD_WRITE, COHORT_GRAD_NULL};
  cohort_ndarray *args[2], *grads[2] = {NULL, NULL}, *given = floats(head, shape, 2);
  cohort_symbol *loss = NULL;
  cohort_executor *executor = NULL;

  (void)state;
  args[0] = floats(scores, shape, 2);
  args[1] = floats(labels, shape, 1);
  grads[0] = floats(scores, shape, 2);
  ok(cohort_symbol_create("SoftmaxOutput", "loss", &key, &yes, 1, NULL, NULL, 0, &loss));
  ok(cohort_executor_bind(loss, NULL, args, 2, grads, req, NULL, 0, NULL, &executor));
  ok(cohort_executor_forward(executor, 1));
  fails(cohort_executor_backward(executor, NULL, 0, 1), COHORT_ERROR_INVALID_ARGUMENT, "loss_output");
  ok(cohort_executor_backward(executor, &given, 1, 1));
  assert_floats(grads[0], expected, 4);
  cohort_executor_free(executor);
  cohort_symbol_free(loss);
  cohort_ndarray_free(given);
  cohort_ndarray_free(grads[0]);
  cohort_ndarray_free(args[0]);
  cohort_ndarray_free(args[1]);
}

/* A given count is checked, whether the operator is composed or applied at once. */
static void a_wrong_count_of_inputs_is_refused(void **state) {
  static const char *const counts[] = {"2", "4"};
  const char *key = "num_args";
  cohort_symbol *inputs[3] = {NULL, NULL, NULL}, *sum = NULL;
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(counts); ++i) {
    fails(apply("add_n", key, counts[i], 3, 1, COHORT_DTYPE_FLOAT32), COHORT_ERROR_INVALID_ARGUMENT, "found 3");
  }
  fails(apply("add_n", key, "0", 3, 1, COHORT_DTYPE_FLOAT32), COHORT_ERROR_INVALID_ARGUMENT, "found 0");
  ok(apply("add_n", key, "3", 3, 1, COHORT_DTYPE_FLOAT32));
  ok(apply("add_n", NULL, NULL, 3, 1, COHORT_DTYPE_FLOAT32));
  for (i = 0; i < 3; ++i) ok(cohort_symbol_variable("x", NULL, NULL, 0, &inputs[i]));
  fails(cohort_symbol_create("add_n", "sum", &key, &counts[0], 1, inputs, NULL, 3, &sum), COHORT_ERROR_INVALID_ARGUMENT,
        "found 3");
  for (i = 0; i < 3; ++i) cohort_symbol_free(inputs[i]);
}

/* COHORT_MAX_AXES limits the number of axes of every array and of every shape, wherever it comes from. */
static void no_shape_has_more_axes_than_arrays_may_have(void **state) {
  static const char ones[] =
      "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
      "1, 1, 1)"; /* 33 */
  const char *key = "shape", *value = ones;
  const int64_t one = 1;
  cohort_symbol *data = NULL, *shaped = NULL;
  cohort_descs *known = NULL;
  cohort_executor *executor = NULL;
  size_t i;

  (void)state;
  fails(apply("_zeros", key, ones, 0, 1, COHORT_DTYPE_FLOAT32), COHORT_ERROR_SHAPE, "32 axes");
  fails(apply("Reshape", key, ones, 1, 0, COHORT_DTYPE_FLOAT32), COHORT_ERROR_SHAPE, "32 axes");
  ok(cohort_symbol_variable("data", NULL, NULL, 0, &data));
  for (i = 0; i < 2; ++i) {
    ok(cohort_symbol_create(i ? "Reshape" : "_ones", "shaped", &key, &value, 1, &data, NULL, i, &shaped));
    ok(cohort_descs_create(&known));
    ok(cohort_descs_add(known, "data", &one, 1, COHORT_DTYPE_FLOAT32, NULL));
    fails(cohort_executor_simple_bind(shaped, NULL, known, NULL, &executor), COHORT_ERROR_SHAPE, "32 axes");
    cohort_descs_free(known);
    cohort_symbol_free(shaped);
  }
  cohort_symbol_free(data);
}

/* Short rows are copied with overlapping moves: nothing is left out, nothing written beside them. */
static void rows_of_any_length_are_taken(void **state) {
  enum { ROWS = 5, MOST = 700 };
  static const float wanted[] = {3, 0, 4, 0, 9, -2};
  static uint8_t whole[ROWS * MOST], found[NUM_OF(wanted) * MOST];
  const int64_t num_wanted[] = {NUM_OF(wanted)};
  cohort_ndarray *indices = floats(wanted, num_wanted, 1);
  int64_t width, i, k;

  (void)state;
  for (i = 0; i < ROWS * MOST; ++i) whole[i] = (uint8_t)(i * 31 % 251);
  for (width = 1; width <= MOST; width += width < 70 ? 1 : width / 4) {
    const int64_t shape[] = {ROWS, width};
    cohort_ndarray *inputs[] = {NULL, indices}, *output = NULL;
    cohort_arrays *results = NULL;

    ok(cohort_ndarray_from_host(whole, (size_t)(ROWS * width), shape, 2, COHORT_DTYPE_UINT8, NULL, &inputs[0]));
    ok(cohort_operator_invoke("take", NULL, NULL, 0, inputs, 2, NULL, 0, NULL, &results));
    ok(cohort_arrays_get(results, 0, &output));
    ok(cohort_ndarray_read(output, found, NUM_OF(wanted) * (size_t)width));
    for (i = 0; i < (int64_t)NUM_OF(wanted); ++i) {
      const int64_t row = wanted[i] < 0 ? 0 : wanted[i] >= ROWS ? ROWS - 1 : (int64_t)wanted[i];

      for (k = 0; k < width; ++k) assert_int_equal(found[i * width + k], whole[row * width + k]);
    }
    cohort_ndarray_free(output);
    cohort_arrays_free(results);
    cohort_ndarray_free(inputs[0]);
  }
  cohort_ndarray_free(indices);
}

/* For any wrong attribute the message names the operator and the attribute, or the shape. */
static void errors_name_the_operator_and_the_attribute(void **state) {
  static const struct {
    const char *op, *key, *value;
    size_t num_inputs;
    int32_t num_axes, code;
    const char *message;
  } cases[] = {
      {"_contrib_MultiBoxPrior", "sizes", "()", 1, 3, COHORT_ERROR_INVALID_ARGUMENT,
       "operator _contrib_MultiBoxPrior: attribute 'sizes': expected at least one number"},
      {"_random_normal", "scale", "-1", 0, 0, COHORT_ERROR_INVALID_ARGUMENT,
       "operator _random_normal: attributes 'loc' and 'scale': expected scale of at least 0, found 0 and -1"},
      {"_sample_normal", "shape", "(0,)", 2, 1, COHORT_ERROR_INVALID_ARGUMENT,
       "operator _sample_normal: attribute 'shape': expected positive lengths, found [0]"},
      {"Cast", "dtype", "float8", 1, 1, COHORT_ERROR_INVALID_ARGUMENT,
       "operator Cast: attribute 'dtype': expected one"},
      {"_zeros", "shape", "(9223372036854775807, 9)", 0, 0, COHORT_ERROR_SHAPE,
       "operator _zeros: shape (9223372036854775807, 9) has too many elements"},
      {"Concat", "dim", "7", 2, 2, COHORT_ERROR_INVALID_ARGUMENT, "operator Concat: dim: expected -2 to 1, found 7"},
      {"sum", "axis", "(0, 3)", 1, 2, COHORT_ERROR_INVALID_ARGUMENT, "operator sum: axis: expected -2 to 1, found 3"},
      {"sort", "axis", "0", 1, 0, COHORT_ERROR_INVALID_ARGUMENT,
       "operator sort: axis: expected an array with axes, found a scalar"},
  };
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(cases); ++i) {
    fails(
        apply(cases[i].op, cases[i].key, cases[i].value, cases[i].num_inputs, cases[i].num_axes, COHORT_DTYPE_FLOAT32),
        cases[i].code, cases[i].message);
  }
}

/* An axis that is named twice, counted from either end, is an error, as in MXNet. */
static void axes_are_named_once(void **state) {
  static const char *const ops[] = {"sum", "mean", "prod", "nansum", "nanprod", "max", "min", "norm"};
  const int64_t shape[] = {1, 3};
  const char *const keys[] = {"axis", "size"}, *const twice[] = {"(0, -2)", "(2, 3)"};
  cohort_ndarray *data = NULL;
  cohort_arrays *outputs = NULL;
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(ops); ++i) {
    fails(apply(ops[i], "axis", "(1, 1)", 1, 2, COHORT_DTYPE_FLOAT32), COHORT_ERROR_INVALID_ARGUMENT,
          "axis: expected each axis once, found [1,1]");
    fails(apply(ops[i], "axis", "(0, -2)", 1, 2, COHORT_DTYPE_FLOAT32), COHORT_ERROR_INVALID_ARGUMENT,
          "axis: expected each axis once, found [0,-2]");
    ok(apply(ops[i], "axis", "(1, 0)", 1, 2, COHORT_DTYPE_FLOAT32));
  }
  fails(apply("moments", "axes", "(0, 0)", 1, 2, COHORT_DTYPE_FLOAT32), COHORT_ERROR_INVALID_ARGUMENT, "axes: ");
  ok(cohort_ndarray_zeros(shape, 2, COHORT_DTYPE_FLOAT32, NULL, &data));
  fails(cohort_operator_invoke("squeeze", keys, twice, 1, &data, 1, NULL, 0, NULL, &outputs),
        COHORT_ERROR_INVALID_ARGUMENT, "each axis once");
  fails(cohort_operator_invoke("broadcast_axis", keys, twice, 2, &data, 1, NULL, 0, NULL, &outputs),
        COHORT_ERROR_INVALID_ARGUMENT, "each axis once");
  cohort_ndarray_free(data);
}

/* A scalar is a row of one element: softmax of it is 1, with a gradient of 0. */
static void softmax_takes_a_scalar(void **state) {
  static const char *const ops[] = {"softmax", "softmin", "log_softmax"};
  static const float expected[] = {1, 1, 0}, number = 1.5f, none = 0;
  cohort_backward_options again = COHORT_BACKWARD_OPTIONS_INIT;
  size_t i;

  (void)state;
  for (i = 0; i < 2 * NUM_OF(ops); ++i) {
    cohort_ndarray *x = floats(&number, NULL, 0), *y = NULL, *slope = NULL;
    cohort_tape *tape = NULL;
    cohort_arrays *outputs = NULL;
    int32_t num_axes = -1;

    ok(cohort_ndarray_zeros(NULL, 0, COHORT_DTYPE_FLOAT32, NULL, &slope));
    ok(cohort_ndarray_write(slope, &number, sizeof number));
    ok(cohort_tape_create(&tape));
    ok(cohort_tape_mark(tape, &x, &slope, NULL, 1));
    again.create_graph = i >= NUM_OF(ops); /* its gradient is computed by a kernel, and then as a graph */
    ok(cohort_tape_invoke(tape, ops[i % NUM_OF(ops)], NULL, NULL, 0, &x, 1, NULL, 0, NULL, &outputs));
    ok(cohort_arrays_get(outputs, 0, &y));
    ok(cohort_tape_backward(tape, &y, NULL, 1, &again));
    assert_floats(slope, &none, 1);
    ok(cohort_ndarray_shape(y, NULL, 0, &num_axes));
    assert_int_equal(num_axes, 0);
    assert_floats(y, &expected[i % NUM_OF(ops)], 1);
    cohort_ndarray_free(y);
    cohort_arrays_free(outputs);
    cohort_ndarray_free(x);
    cohort_ndarray_free(slope);
    cohort_tape_free(tape);
  }
}

/* A crop to the size of an empty array is empty, and gives data a gradient of zeros. */
static void a_crop_may_be_empty(void **state) {
  static const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, zeros[12] = {0};
  const int64_t shape[] = {1, 2, 2, 3}, empty[] = {1, 3, 0, 2};
  const char *key = "num_args", *value = "2";
  cohort_ndarray *inputs[2] = {floats(ones, shape, 4), floats(ones, empty, 4)}, *gradient = floats(ones, shape, 4),
                 *out;
  cohort_tape *tape = NULL;
  cohort_arrays *outputs = NULL;
  int64_t found[4] = {-1, -1, -1, -1};
  int32_t num_axes = 0;

  (void)state;
  ok(cohort_tape_create(&tape));
  ok(cohort_tape_mark(tape, inputs, &gradient, NULL, 1));
  ok(cohort_tape_invoke(tape, "Crop", &key, &value, 1, inputs, 2, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &out));
  ok(cohort_ndarray_shape(out, found, 4, &num_axes));
  assert_int_equal(found[1], 2);
  assert_int_equal(found[2], 0);
  assert_int_equal(found[3], 2);
  ok(cohort_tape_backward(tape, &out, NULL, 1, NULL));
  assert_floats(gradient, zeros, 12);
  cohort_ndarray_free(out);
  cohort_ndarray_free(gradient);
  cohort_ndarray_free(inputs[0]);
  cohort_ndarray_free(inputs[1]);
  cohort_arrays_free(outputs);
  cohort_tape_free(tape);
}

/* Elements that no value is scattered to are zeros, although the memory is that of an array freed before. */
static void a_sketch_of_no_numbers_is_zeros(void **state) {
  const int64_t data_shape[] = {64, 0}, places_shape[] = {1, 0}, sketch_shape[] = {64, 16};
  const char *const key = "out_dim", *const value = "16";
  static const float zeros[64 * 16];
  cohort_ndarray *inputs[3] = {NULL, NULL, NULL}, *array = NULL;
  cohort_arrays *outputs = NULL;
  size_t i;

  (void)state;
  ok(cohort_ndarray_full(sketch_shape, 2, COHORT_DTYPE_FLOAT32, NULL, 7, &array));
  ok(cohort_ndarray_wait(array));
  cohort_ndarray_free(array);
  ok(cohort_ndarray_zeros(data_shape, 2, COHORT_DTYPE_FLOAT32, NULL, &inputs[0]));
  ok(cohort_ndarray_zeros(places_shape, 2, COHORT_DTYPE_FLOAT32, NULL, &inputs[1]));
  ok(cohort_ndarray_zeros(places_shape, 2, COHORT_DTYPE_FLOAT32, NULL, &inputs[2]));
  ok(cohort_operator_invoke("_contrib_count_sketch", &key, &value, 1, inputs, 3, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &array));
  assert_floats(array, zeros, 64 * 16);
  cohort_ndarray_free(array);
  cohort_arrays_free(outputs);
  for (i = 0; i < 3; ++i) cohort_ndarray_free(inputs[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(errors_name_the_operator_and_the_attribute),
      TEST(axes_are_named_once),
      TEST(softmax_takes_a_scalar),
      TEST(a_crop_may_be_empty),
      TEST(the_type_of_the_first_input_follows_from_that_of_the_last),
      TEST(operands_with_factor_zero_are_not_read),
      TEST(densities_over_an_empty_axis_are_written),
      TEST(a_wild_count_of_outputs_is_refused),
      TEST(counts_that_mxnet_lacks_are_not_written),
      TEST(a_wrong_count_is_seen_by_inference_of_dtypes),
      TEST(softmax_activation_needs_its_axes),
      TEST(integers_are_refused_before_anything_is_queued),
      TEST(a_loss_over_no_classes_runs),
      TEST(a_node_of_very_many_outputs_is_bound),
      TEST(labels_are_smoothed_where_others_are_ignored),
      TEST(the_batch_of_a_made_loss_is_its_rows),
      TEST(outputs_take_the_type_of_data_and_weight),
      TEST(the_type_of_data_follows_from_that_of_an_index),
      TEST(one_part_of_an_array_is_named_as_one_of_several),
      TEST(a_loss_may_read_its_head_gradient),
      TEST(a_wrong_count_of_inputs_is_refused),
      TEST(no_shape_has_more_axes_than_arrays_may_have),
      TEST(rows_of_any_length_are_taken),
      TEST(a_sketch_of_no_numbers_is_zeros),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
