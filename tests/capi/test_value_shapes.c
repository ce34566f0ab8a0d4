/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose number of output rows depends on the values of an input: applied at once, on tapes and in
 * networks. */
#include "support/boundary.h"

static const int64_t four_by_two[] = {4, 2}, four[] = {4};
static const float rows[] = {0, 1, 2, 3, 4, 5, 6, 7};

static cohort_ndarray *typed(const float *values, const int64_t *shape, int32_t num_axes, int32_t dtype) {
  cohort_ndarray *plain = floats(values, shape, num_axes), *array = NULL;

  ok(cohort_ndarray_zeros(shape, num_axes, dtype, NULL, &array));
  ok(cohort_ndarray_copy_to(plain, array));
  cohort_ndarray_free(plain);
  return array;
}

/* Frees the inputs. */
static cohort_error *try_apply(cohort_tape *tape, const char *op, cohort_ndarray *a, cohort_ndarray *b,
                               cohort_ndarray **out_output) {
  cohort_ndarray *both[2];
  cohort_arrays *outputs = NULL;
  cohort_error *error;

  both[0] = a;
  both[1] = b;
  error = tape ? cohort_tape_invoke(tape, op, NULL, NULL, 0, both, b ? 2 : 1, NULL, 0, NULL, &outputs)
               : cohort_operator_invoke(op, NULL, NULL, 0, both, b ? 2 : 1, NULL, 0, NULL, &outputs);
  if (error) return error;
  ok(cohort_arrays_get(outputs, 0, out_output));
  cohort_arrays_free(outputs);
  return NULL;
}

static cohort_ndarray *apply(cohort_tape *tape, const char *op, cohort_ndarray *a, cohort_ndarray *b) {
  cohort_ndarray *output = NULL;

  ok(try_apply(tape, op, a, b, &output));
  return output;
}

/* Rows are taken where the mask is not 0, whatever its type; another mask gives another shape, and an all-zero mask
 * none. */
static void a_mask_takes_rows(void **state) {
  static const int32_t dtypes[] = {COHORT_DTYPE_FLOAT32, COHORT_DTYPE_FLOAT64, COHORT_DTYPE_FLOAT16, COHORT_DTYPE_INT32,
                                   COHORT_DTYPE_INT64,   COHORT_DTYPE_INT8,    COHORT_DTYPE_UINT8,   COHORT_DTYPE_BOOL};
  static const float masks[3][4] = {{0, 1, 0, 1}, {1, 1, 1, 0}, {0, 0, 0, 0}}, last[] = {0, 1, 2, 3, 4, 5};
  static const float second[] = {2, 3, 6, 7};
  size_t d, m;

  (void)state;
  for (d = 0; d < NUM_OF(dtypes); ++d) {
    for (m = 0; m < NUM_OF(masks); ++m) {
      const int64_t shape[] = {m == 0 ? 2 : m == 1 ? 3 : 0, 2};
      cohort_ndarray *data = floats(rows, four_by_two, 2), *mask = typed(masks[m], four, 1, dtypes[d]);
      cohort_ndarray *taken = apply(NULL, "_contrib_boolean_mask", data, mask);

      assert_shape(taken, shape, 2);
      assert_floats(taken, m == 0 ? second : last, (size_t)(shape[0] * 2));
      cohort_ndarray_free(data);
      cohort_ndarray_free(mask);
      cohort_ndarray_free(taken);
    }
  }
}

/* The call waits for work queued before it; a given array is written if it has the right shape. */
static void a_mask_may_be_still_in_the_making(void **state) {
  static const float numbers[] = {-1, 1, -2, 2}, expected[] = {2, 3, 6, 7};
  const int64_t two_by_two[] = {2, 2}, three_by_two[] = {3, 2};
  cohort_ndarray *data = floats(rows, four_by_two, 2), *signs = floats(numbers, four, 1);
  cohort_ndarray *mask = apply(NULL, "relu", signs, NULL), *target = NULL, *inputs[2];
  cohort_arrays *results = NULL;

  (void)state;
  inputs[0] = data;
  inputs[1] = mask;
  ok(cohort_ndarray_zeros(two_by_two, 2, COHORT_DTYPE_FLOAT32, NULL, &target));
  ok(cohort_operator_invoke("_npi_boolean_mask", NULL, NULL, 0, inputs, 2, &target, 1, NULL, &results));
  cohort_arrays_free(results);
  assert_floats(target, expected, 4);
  cohort_ndarray_free(target);
  ok(cohort_ndarray_zeros(three_by_two, 2, COHORT_DTYPE_FLOAT32, NULL, &target));
  ok(cohort_operator_invoke("_npi_boolean_mask", NULL, NULL, 0, inputs, 2, &target, 1, NULL, &results));
  cohort_arrays_free(results);
  fails(cohort_ndarray_wait(target), COHORT_ERROR_EXECUTION, "index: expected 3 numbers that are not 0");
  cohort_ndarray_free(target);
  cohort_ndarray_free(data);
  cohort_ndarray_free(signs);
  cohort_ndarray_free(mask);
}

/* Gradients flow to the rows that were taken; the others get none. */
static void gradients_go_back_to_the_rows(void **state) {
  static const float masks[] = {0, 1, 0, 1}, expected[] = {0, 0, 4, 6, 0, 0, 12, 14}, zeros[8] = {0};
  static const cohort_grad_req write = COHORT_GRAD_WRITE;
  cohort_ndarray *data = floats(rows, four_by_two, 2), *mask = floats(masks, four, 1);
  cohort_ndarray *gradient = floats(zeros, four_by_two, 2), *taken, *squares;
  cohort_tape *tape = NULL;

  (void)state;
  ok(cohort_tape_create(&tape));
  ok(cohort_tape_mark(tape, &data, &gradient, &write, 1));
  taken = apply(tape, "_contrib_boolean_mask", data, mask);
  squares = apply(tape, "square", taken, NULL);
  ok(cohort_tape_backward(tape, &squares, NULL, 1, NULL));
  assert_floats(gradient, expected, 8);
  cohort_tape_free(tape);
  cohort_ndarray_free(data);
  cohort_ndarray_free(mask);
  cohort_ndarray_free(gradient);
  cohort_ndarray_free(taken);
  cohort_ndarray_free(squares);
}

static void coordinates_are_those_of_elements_that_are_not_0(void **state) {
  static const float grid[] = {1, 0, 0, 0, -2, 0.5f, 0, 0}, expected[][2] = {{0, 0}, {2, 0}, {2, 1}};
  const int64_t three_by_two[] = {3, 2}, one_by_one[] = {1, 1};
  int64_t found[6];
  cohort_ndarray *x = floats(grid, four_by_two, 2), *where = apply(NULL, "_npx_nonzero", x, NULL);
  int32_t dtype = -1;
  size_t i;

  (void)state;
  assert_shape(where, three_by_two, 2);
  ok(cohort_ndarray_dtype(where, &dtype));
  assert_int_equal(dtype, COHORT_DTYPE_INT64);
  ok(cohort_ndarray_read(where, found, sizeof found));
  for (i = 0; i < 6; ++i) assert_int_equal(found[i], expected[i / 2][i % 2]);
  cohort_ndarray_free(where);
  cohort_ndarray_free(x);
  x = floats(grid, NULL, 0);
  where = apply(NULL, "_npx_nonzero", x, NULL);
  assert_shape(where, one_by_one, 2);
  cohort_ndarray_free(where);
  cohort_ndarray_free(x);
}

static void masks_that_do_not_fit_are_refused(void **state) {
  static const int64_t three[] = {3}, four_by_one[] = {4, 1};
  cohort_ndarray *data = floats(rows, four_by_two, 2), *shorter = floats(rows, three, 1),
                 *column = floats(rows, four_by_one, 2), *number = floats(rows, NULL, 0), *output = NULL;

  (void)state;
  fails(try_apply(NULL, "_contrib_boolean_mask", data, shorter, &output), COHORT_ERROR_SHAPE,
        "index: expected (4,), found (3,)");
  fails(try_apply(NULL, "_contrib_boolean_mask", data, column, &output), COHORT_ERROR_SHAPE, "index");
  fails(try_apply(NULL, "_contrib_boolean_mask", number, shorter, &output), COHORT_ERROR_SHAPE,
        "expected at least one axis");
  cohort_ndarray_free(data);
  cohort_ndarray_free(shorter);
  cohort_ndarray_free(column);
  cohort_ndarray_free(number);
}

/* ---- in networks --------------------------------------------------------------------------------------------------
 */

static cohort_symbol *variable(const char *name) {
  cohort_symbol *symbol = NULL;

  ok(cohort_symbol_variable(name, NULL, NULL, 0, &symbol));
  return symbol;
}

/* Frees the inputs. */
static cohort_symbol *node(const char *op, const char *name, const char *key, const char *value, cohort_symbol *a,
                           cohort_symbol *b) {
  cohort_symbol *symbol = NULL, *both[2];

  both[0] = a;
  both[1] = b;
  ok(cohort_symbol_create(op, name, &key, &value, key ? 1 : 0, both, NULL, b ? 2 : 1, &symbol));
  cohort_symbol_free(a);
  cohort_symbol_free(b);
  return symbol;
}

/* A layer over the rows of a doubled array that a mask takes, and the doubled array itself. */
static cohort_symbol *masked_layer(void) {
  cohort_symbol *doubled = node("_mul_scalar", "doubled", "scalar", "2", variable("data"), NULL), *both[2],
                *heads = NULL;
  cohort_symbol *mask = NULL, *inputs[2];

  inputs[0] = doubled;
  inputs[1] = variable("index");
  ok(cohort_symbol_create("_contrib_boolean_mask", "m", NULL, NULL, 0, inputs, NULL, 2, &mask));
  cohort_symbol_free(inputs[1]);
  both[0] = node("FullyConnected", "fc", "num_hidden", "3", mask, NULL);
  both[1] = doubled;
  ok(cohort_symbol_group(both, 2, &heads));
  cohort_symbol_free(both[0]);
  cohort_symbol_free(both[1]);
  return heads;
}

static cohort_ndarray *array_of(cohort_executor *executor, cohort_executor_list list, const char *name) {
  cohort_ndarray *array = NULL;

  ok(cohort_executor_array_named(executor, list, name, &array));
  return array;
}

static void set(cohort_executor *executor, const char *name, const float *values, size_t count) {
  cohort_ndarray *array = array_of(executor, COHORT_EXECUTOR_ARGS, name);

  ok(cohort_ndarray_write(array, values, count * sizeof *values));
  cohort_ndarray_free(array);
}

static void assert_array(cohort_executor *executor, cohort_executor_list list, const char *name, const float *expected,
                         size_t count) {
  cohort_ndarray *array = array_of(executor, list, name);

  assert_floats(array, expected, count);
  cohort_ndarray_free(array);
}

static cohort_executor *bound(cohort_symbol *symbol, const char *grad_req) {
  cohort_descs *known = one_desc("data", four_by_two, 2);
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor = NULL;

  options.grad_req = grad_req;
  ok(cohort_executor_simple_bind(symbol, NULL, known, &options, &executor));
  cohort_descs_free(known);
  return executor;
}

/* Each forward gives as many rows as the values say, and gradients flow to the rows that were taken. A size that
 * occurred before uses the same arrays again. */
static void a_network_runs_for_the_rows_that_a_mask_takes(void **state) {
  static const float weight[] = {1, 0, 0, 1, 1, 1}, bias[] = {0, 0, 100};
  static const float masks[][4] = {{0, 1, 0, 1}, {1, 1, 1, 0}, {0, 0, 0, 0}, {1, 0, 1, 0}};
  cohort_symbol *symbol = masked_layer();
  cohort_executor *executor = bound(symbol, "write");
  cohort_ndarray *output = array_of(executor, COHORT_EXECUTOR_OUTPUTS, "fc_output");
  void *places[5] = {NULL}; /* of outputs, by rows */
  size_t pass, row, column;

  (void)state;
  assert_null(output);
  set(executor, "data", rows, 8);
  set(executor, "fc_weight", weight, 6);
  set(executor, "fc_bias", bias, 3);
  for (pass = 0; pass < 2 * NUM_OF(masks); ++pass) {
    const float *const mask = masks[pass % NUM_OF(masks)];
    float expected[12], data_grad[8], weight_grad[6] = {0}, bias_grad[3] = {0}, ones[12], twos[8];
    cohort_ndarray *heads[2];
    int64_t shape[] = {0, 3};
    void *place = NULL;

    for (row = 0; row < 4; ++row) {
      const float x = rows[2 * row] * 2, y = rows[2 * row + 1] * 2;
      float *const to = expected + 3 * shape[0];

      for (column = 0; column < 2; ++column) data_grad[2 * row + column] = 4; /* of the second head, doubled */
      if (mask[row] == 0) continue;
      to[0] = x, to[1] = y, to[2] = x + y + 100;
      for (column = 0; column < 3; ++column) {
        weight_grad[2 * column] += x;
        weight_grad[2 * column + 1] += y;
        bias_grad[column] += 1;
      }
      for (column = 0; column < 2; ++column) data_grad[2 * row + column] += 2 * 2; /* each column is in two units */
      ++shape[0];
    }
    set(executor, "index", mask, 4);
    ok(cohort_executor_forward(executor, 1));
    output = array_of(executor, COHORT_EXECUTOR_OUTPUTS, "fc_output");
    assert_shape(output, shape, 2);
    assert_floats(output, expected, (size_t)(3 * shape[0]));
    place = address_of(output);
    if (pass >= NUM_OF(masks)) assert_ptr_equal(place, places[shape[0]]);
    places[shape[0]] = place;
    cohort_ndarray_free(output);
    for (row = 0; row < 12; ++row) ones[row] = 1;
    for (row = 0; row < 8; ++row) twos[row] = 2;
    heads[0] = floats(ones, shape, 2);
    heads[1] = floats(twos, four_by_two, 2);
    ok(cohort_executor_backward(executor, heads, 2, 1));
    assert_array(executor, COHORT_EXECUTOR_GRADS, "data", data_grad, 8);
    assert_array(executor, COHORT_EXECUTOR_GRADS, "fc_weight", weight_grad, 6);
    assert_array(executor, COHORT_EXECUTOR_GRADS, "fc_bias", bias_grad, 3);
    cohort_ndarray_free(heads[0]);
    cohort_ndarray_free(heads[1]);
  }
  cohort_executor_free(executor);
  cohort_symbol_free(symbol);
}

/* (data * w); a first mask takes rows by `index`, a second one those with a sum above 10; then times w again. */
static cohort_symbol *mask_behind_mask(void) {
  static const char *const axis = "axis", *const one = "1", *const scalar = "scalar", *const ten = "10";
  cohort_symbol *w = variable("w"), *inputs[2], *scaled = NULL, *rows_taken = NULL, *sums = NULL, *large = NULL,
                *again = NULL, *product = NULL;

  inputs[0] = variable("data");
  inputs[1] = w;
  ok(cohort_symbol_create("broadcast_mul", "scaled", NULL, NULL, 0, inputs, NULL, 2, &scaled));
  cohort_symbol_free(inputs[0]);
  inputs[0] = scaled;
  inputs[1] = variable("index");
  ok(cohort_symbol_create("_contrib_boolean_mask", "taken", NULL, NULL, 0, inputs, NULL, 2, &rows_taken));
  cohort_symbol_free(inputs[1]);
  ok(cohort_symbol_create("sum", "sums", &axis, &one, 1, &rows_taken, NULL, 1, &sums));
  ok(cohort_symbol_create("_greater_scalar", "large", &scalar, &ten, 1, &sums, NULL, 1, &large));
  inputs[0] = rows_taken;
  inputs[1] = large;
  ok(cohort_symbol_create("_contrib_boolean_mask", "again", NULL, NULL, 0, inputs, NULL, 2, &again));
  inputs[0] = again;
  inputs[1] = w;
  ok(cohort_symbol_create("broadcast_mul", "product", NULL, NULL, 0, inputs, NULL, 2, &product));
  cohort_symbol_free(w);
  cohort_symbol_free(scaled);
  cohort_symbol_free(rows_taken);
  cohort_symbol_free(sums);
  cohort_symbol_free(large);
  cohort_symbol_free(again);
  return product;
}

static cohort_executor *bound_mask_behind_mask(const char *grad_req) {
  static const int64_t one_by_two[] = {1, 2};
  static const float w[] = {1, 2};
  cohort_symbol *symbol = mask_behind_mask();
  cohort_descs *known = one_desc("data", four_by_two, 2);
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor = NULL;

  ok(cohort_descs_add(known, "w", one_by_two, 2, COHORT_DTYPE_FLOAT32, NULL));
  options.grad_req = grad_req;
  ok(cohort_executor_simple_bind(symbol, NULL, known, &options, &executor));
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
  set(executor, "data", rows, 8);
  set(executor, "w", w, 2);
  return executor;
}

/* A variable that is read before the masks and behind them has one gradient, written or added to. */
static void gradients_of_all_parts_are_summed(void **state) {
  static const float masks[][4] = {{1, 0, 1, 1}, {1, 1, 1, 0}}, products[] = {4, 20, 6, 28};
  static const float w_grads[][2] = {{20, 48}, {8, 20}},
                     data_grads[][8] = {{0, 0, 0, 0, 1, 4, 1, 4}, {0, 0, 0, 0, 1, 4}};
  const char *const reqs[] = {"write", "add"};
  size_t r, pass, i;

  (void)state;
  for (r = 0; r < NUM_OF(reqs); ++r) {
    cohort_executor *executor = bound_mask_behind_mask(reqs[r]);
    float w_grad[2] = {0}, data_grad[8] = {0};

    for (pass = 0; pass < 4; ++pass) {
      const size_t m = pass % 2;
      const int64_t shape[] = {m == 0 ? 2 : 1, 2};
      cohort_ndarray *output, *head;
      const float ones[] = {1, 1, 1, 1};

      set(executor, "index", masks[m], 4);
      ok(cohort_executor_forward(executor, pass < 2)); /* inference, too, can have gradients */
      output = array_of(executor, COHORT_EXECUTOR_OUTPUTS, "product_output");
      assert_shape(output, shape, 2);
      assert_floats(output, products, (size_t)(2 * shape[0]));
      cohort_ndarray_free(output);
      head = floats(ones, shape, 2);
      ok(cohort_executor_backward(executor, &head, 1, pass < 2));
      cohort_ndarray_free(head);
      for (i = 0; i < 2; ++i) w_grad[i] = w_grads[m][i] + (r == 1 ? w_grad[i] : 0);
      for (i = 0; i < 8; ++i) data_grad[i] = data_grads[m][i] + (r == 1 ? data_grad[i] : 0);
      assert_array(executor, COHORT_EXECUTOR_GRADS, "w", w_grad, 2);
      assert_array(executor, COHORT_EXECUTOR_GRADS, "data", data_grad, 8);
    }
    cohort_executor_free(executor);
  }
}

static void note_name(const char *name, cohort_ndarray *array, void *user_data) {
  char *const names = user_data;

  (void)array;
  assert_true(strlen(names) + strlen(name) + 2 < 512);
  strcat(names, name);
  strcat(names, " ");
}

/* A monitor sees each node once, under the names of the bound symbol. */
static void a_monitor_sees_a_network_of_parts_as_one(void **state) {
  static const float mask[] = {1, 0, 1, 1};
  cohort_executor *executor = bound_mask_behind_mask("null");
  char names[512] = "";

  (void)state;
  set(executor, "index", mask, 4);
  ok(cohort_executor_set_monitor(executor, note_name, names, 0));
  ok(cohort_executor_forward(executor, 0));
  assert_string_equal(names, "scaled_output taken_output sums_output large_output again_output product_output ");
  names[0] = '\0';
  ok(cohort_executor_set_monitor(executor, note_name, names, 1));
  ok(cohort_executor_forward(executor, 0));
  assert_string_equal(names,
                      "data scaled_lhs w scaled_rhs scaled_output "
                      "taken_data index taken_index taken_output sums_input0 sums_output large_input0 large_output "
                      "again_data again_index again_output product_lhs w product_rhs product_output ");
  cohort_executor_free(executor);
}

/* A node behind the mask may have the same name as one before it that it reads. */
static void a_monitor_sees_nodes_of_one_name_in_both_parts(void **state) {
  static const float mask[] = {1, 0, 1, 1};
  cohort_symbol *twice = node("_mul_scalar", "twice", "scalar", "2", variable("data"), NULL);
  cohort_symbol *taken = node("_contrib_boolean_mask", "taken", NULL, NULL, twice, variable("index"));
  cohort_executor *executor = NULL;
  char names[512] = "";

  (void)state;
  taken = node("_mul_scalar", "twice", "scalar", "2", taken, NULL);
  executor = bound(taken, "null");
  cohort_symbol_free(taken);
  set(executor, "index", mask, 4);
  ok(cohort_executor_set_monitor(executor, note_name, names, 1));
  ok(cohort_executor_forward(executor, 0));
  assert_string_equal(
      names, "data twice_input0 twice_output taken_data index taken_index taken_output twice_input0 twice_output ");
  cohort_executor_free(executor);
}

/* Three rows fit; for two rows the second part of the network cannot be bound. The earlier results do not look valid,
 * and are not freed. */
static void a_forward_that_fits_no_shape_leaves_no_results(void **state) {
  static const float masks[][4] = {{1, 1, 1, 0}, {1, 0, 1, 0}};
  static const int64_t three_by_two[] = {3, 2};
  const char *const key = "__shape__", *const value = "(3, 2)";
  cohort_symbol *taken = node("_contrib_boolean_mask", "taken", NULL, NULL, variable("data"), variable("index")),
                *other = NULL;
  cohort_executor *executor = NULL;
  cohort_ndarray *head = floats(rows, three_by_two, 2);
  int round;

  (void)state;
  ok(cohort_symbol_variable("other", &key, &value, 1, &other));
  taken = node("broadcast_add", "sum", NULL, NULL, taken, other);
  executor = bound(taken, "write");
  cohort_symbol_free(taken);
  set(executor, "data", rows, 8);
  for (round = 0; round < 2; ++round) {
    cohort_ndarray *output;

    set(executor, "index", masks[0], 4);
    ok(cohort_executor_forward(executor, 1));
    assert_array(executor, COHORT_EXECUTOR_OUTPUTS, "sum_output", rows, 6);
    ok(cohort_executor_backward(executor, &head, 1, 1));
    assert_array(executor, COHORT_EXECUTOR_GRADS, "other", rows, 6);
    set(executor, "index", masks[1], 4);
    fails(cohort_executor_forward(executor, 1), COHORT_ERROR_SHAPE, "sum");
    output = array_of(executor, COHORT_EXECUTOR_OUTPUTS, "sum_output");
    assert_non_null(output);
    fails(cohort_ndarray_wait(output), COHORT_ERROR_EXECUTION, "not written");
    fails(cohort_executor_backward(executor, &head, 1, 1), COHORT_ERROR_STATE, "the last one failed");
    cohort_ndarray_free(output);
  }
  cohort_ndarray_free(head);
  cohort_executor_free(executor);
}

/* A reshaped executor has parts, too; random nodes of later parts continue their sequences, whatever shapes they draw
 * for. */
static void parts_are_reshaped_and_draw_new_numbers(void **state) {
  static const int64_t six_by_two[] = {6, 2}, five_by_two[] = {5, 2};
  static const float many[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                     masks[][6] = {{1, 1, 1, 1, 1, 0}, {1, 0, 1, 1, 1, 1}};
  cohort_symbol *symbol =
      node("Dropout", "drop", "p", "0.5",
           node("_contrib_boolean_mask", "m", NULL, NULL, variable("data"), variable("index")), NULL);
  cohort_executor *small = bound(symbol, "null"), *executor = NULL;
  cohort_descs *known = one_desc("data", six_by_two, 2);
  cohort_reshape_options options = COHORT_RESHAPE_OPTIONS_INIT;
  float drawn[4][10];
  size_t pass, other;

  (void)state;
  options.allow_up_sizing = 1;
  options.partial_shaping = 1;
  ok(cohort_executor_reshape(small, known, &options, &executor));
  cohort_executor_free(small);
  set(executor, "data", many, 12);
  for (pass = 0; pass < 4; ++pass) {
    cohort_ndarray *output;

    set(executor, "index", masks[pass % 2], 6);
    ok(cohort_executor_forward(executor, 1));
    output = array_of(executor, COHORT_EXECUTOR_OUTPUTS, "drop_output");
    assert_shape(output, five_by_two, 2);
    ok(cohort_ndarray_read(output, drawn[pass], sizeof drawn[pass]));
    cohort_ndarray_free(output);
    for (other = 0; other < pass; ++other) assert_memory_not_equal(drawn[pass], drawn[other], sizeof drawn[pass]);
  }
  cohort_executor_free(executor);
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
}

static cohort_symbol *rows_taken_of(cohort_symbol *data) {
  return node("_contrib_boolean_mask", "m", NULL, NULL, data, variable("index"));
}

/* An output of a known shape is that of the last forward as well. */
static void an_output_of_known_shape_is_live(void **state) {
  static const float masks[][4] = {{0, 1, 0, 1}, {1, 1, 1, 0}, {0, 1, 0, 1}}, sums[] = {18, 15, 18};
  cohort_symbol *symbol =
      node("MakeLoss", "loss", NULL, NULL, node("sum", "sum", NULL, NULL, rows_taken_of(variable("data")), NULL), NULL);
  cohort_executor *executor = bound(symbol, "write");
  size_t pass, row;

  (void)state;
  assert_null(array_of(executor, COHORT_EXECUTOR_OUTPUTS, "loss_output"));
  set(executor, "data", rows, 8);
  for (pass = 0; pass < NUM_OF(masks); ++pass) {
    float data_grad[8];

    for (row = 0; row < 8; ++row) data_grad[row] = masks[pass][row / 2];
    set(executor, "index", masks[pass], 4);
    ok(cohort_executor_forward(executor, 1));
    assert_array(executor, COHORT_EXECUTOR_OUTPUTS, "loss_output", &sums[pass], 1);
    ok(cohort_executor_backward(executor, NULL, 0, 1));
    assert_array(executor, COHORT_EXECUTOR_GRADS, "data", data_grad, 8);
  }
  cohort_executor_free(executor);
  cohort_symbol_free(symbol);
}

/* Inference: half of the first column's distance from the mean, and the whole second column. Frees the inputs. */
static cohort_symbol *norm_of(cohort_symbol *data, cohort_symbol *mean) {
  const char *const key = "eps", *const value = "0.5";
  cohort_symbol *symbol = NULL, *inputs[5];
  size_t i;

  inputs[0] = data;
  inputs[1] = variable("gamma");
  inputs[2] = variable("beta");
  inputs[3] = mean;
  inputs[4] = variable("variance");
  ok(cohort_symbol_create("BatchNorm", "norm", &key, &value, 1, inputs, NULL, 5, &symbol));
  for (i = 0; i < 5; ++i) cohort_symbol_free(inputs[i]);
  return symbol;
}

static void set_state(cohort_executor *executor, const char *name, const float *values, size_t count) {
  cohort_ndarray *array = array_of(executor, COHORT_EXECUTOR_AUX, name);

  ok(cohort_ndarray_write(array, values, count * sizeof *values));
  cohort_ndarray_free(array);
}

/* For a part of the network that does not contain the norm, the mean that the norm keeps is an ordinary input. */
static void a_state_may_be_read_by_the_other_part(void **state) {
  static const char *const names[] = {"gamma", "beta", "mean", "variance"};
  static const int64_t two[] = {2}, two_by_two[] = {2, 2};
  static const float mask[] = {0, 1, 0, 1}, mean[] = {1, 2}, variance[] = {3.5f, 0.5f}, ones[] = {1, 1, 1, 1};
  static const float expected[2][4] = {{-0.5f, -1, 1.5f, 3}, {0, -1, 2, 3}},
                     data_grad[] = {0, 0, 0.5f, 1, 0, 0, 0.5f, 1};
  size_t norm_is_later, i;

  (void)state;
  for (norm_is_later = 0; norm_is_later < 2; ++norm_is_later) {
    cohort_symbol *to_keep = variable("mean"), *to_read = NULL, *data = variable("data"), *symbol;
    cohort_descs *known = one_desc("data", four_by_two, 2);
    cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
    cohort_executor *executor = NULL;
    cohort_ndarray *head = floats(ones, two_by_two, 2);

    ok(cohort_symbol_copy(to_keep, &to_read));
    symbol = norm_is_later ? norm_of(rows_taken_of(node("broadcast_sub", "less", NULL, NULL, data, to_read)), to_keep)
                           : node("broadcast_sub", "less", NULL, NULL, rows_taken_of(norm_of(data, to_keep)), to_read);
    for (i = 0; i < NUM_OF(names); ++i) ok(cohort_descs_add(known, names[i], two, 1, COHORT_DTYPE_FLOAT32, NULL));
    options.grad_req = "write";
    ok(cohort_executor_simple_bind(symbol, NULL, known, &options, &executor));
    set(executor, "data", rows, 8);
    set(executor, "index", mask, 4);
    set(executor, "gamma", ones, 2);
    set_state(executor, "mean", mean, 2);
    set_state(executor, "variance", variance, 2);
    for (i = 0; i < 2; ++i) {
      ok(cohort_executor_forward(executor, 0));
      assert_array(executor, COHORT_EXECUTOR_OUTPUTS, norm_is_later ? "norm_output" : "less_output",
                   expected[norm_is_later], 4);
      ok(cohort_executor_backward(executor, &head, 1, 0));
      assert_array(executor, COHORT_EXECUTOR_GRADS, "data", data_grad, 8);
    }
    cohort_ndarray_free(head);
    cohort_executor_free(executor);
    cohort_descs_free(known);
    cohort_symbol_free(symbol);
  }
}

/* Nodes that are to compute in float32 are named as in one network. */
static void precision_is_said_of_nodes_of_any_part(void **state) {
  static const float mask[] = {1, 0, 1, 1};
  const char *names[] = {"doubled", "fc"};
  cohort_symbol *symbol = masked_layer();
  cohort_descs *known = one_desc("data", four_by_two, 2);
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor = NULL;

  (void)state;
  options.compute_dtype = COHORT_DTYPE_BFLOAT16;
  options.float32_names = names;
  options.num_float32_names = 2;
  ok(cohort_executor_simple_bind(symbol, NULL, known, &options, &executor));
  set(executor, "index", mask, 4);
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_executor_wait(executor));
  cohort_executor_free(executor);
  names[1] = "nowhere";
  fails(cohort_executor_simple_bind(symbol, NULL, known, &options, &executor), COHORT_ERROR_NAME, "'nowhere'");
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
}

static size_t count_in_text(cohort_executor *executor, const char *words) {
  const char *text = NULL;
  size_t count = 0;

  ok(cohort_executor_debug_text(executor, &text));
  for (; (text = strstr(text, words)) != NULL; ++text) ++count;
  return count;
}

static cohort_executor *bound_narrow(cohort_symbol *symbol) {
  cohort_descs *known = one_desc("data", four_by_two, 2);
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor = NULL;

  options.compute_dtype = COHORT_DTYPE_BFLOAT16;
  ok(cohort_executor_simple_bind(symbol, NULL, known, &options, &executor));
  cohort_descs_free(known);
  cohort_symbol_free(symbol);
  return executor;
}

/* If one layer computes in bfloat16 on this machine those of both parts do, and the steps of both are shown. */
static void the_text_for_a_person_is_of_all_parts(void **state) {
  static const float mask[] = {1, 0, 1, 1};
  cohort_executor *one = bound_narrow(node("FullyConnected", "fc", "num_hidden", "3", variable("data"), NULL));
  cohort_symbol *layer = node("FullyConnected", "before", "num_hidden", "3", variable("data"), NULL);
  cohort_executor *two = bound_narrow(node("FullyConnected", "after", "num_hidden", "3", rows_taken_of(layer), NULL));
  const size_t narrow = count_in_text(one, "Computes in bfloat16");

  (void)state;
  assert_int_equal(count_in_text(two, "Computes in bfloat16"), narrow);
  set(two, "index", mask, 4);
  ok(cohort_executor_forward(two, 0));
  assert_int_equal(count_in_text(two, "Computes in bfloat16"), 2 * narrow);
  assert_int_equal(count_in_text(two, "Steps ("), 2);
  cohort_executor_free(one);
  cohort_executor_free(two);
}

static void count_messages(int32_t level, const char *message, void *user_data) {
  (void)level;
  if (strstr(message, "no step of this network runs in it here")) ++*(int *)user_data;
}

/* If no layer of any part computes in the requested type, that is logged once. */
static void a_type_that_no_part_uses_is_logged_once(void **state) {
  static const float masks[2][4] = {{1, 0, 1, 1}, {1, 1, 1, 0}};
  int num_messages = 0;
  cohort_executor *executor;
  cohort_log *log = NULL;
  size_t pass;

  (void)state;
  ok(cohort_log_create(COHORT_LOG_INFO, count_messages, NULL, &num_messages, &log));
  executor = bound_narrow(node("square", "squares", NULL, NULL,
                               rows_taken_of(node("square", "before", NULL, NULL, variable("data"), NULL)), NULL));
  for (pass = 0; pass < 4; ++pass) {
    set(executor, "index", masks[pass % 2], 4);
    ok(cohort_executor_forward(executor, 0));
  }
  assert_int_equal(num_messages, 1);
  cohort_executor_free(executor);
  cohort_log_free(log);
}

/* Queued work on another queue that is still to write the input that determines the shape is waited for. */
static void values_that_say_a_shape_may_be_still_in_the_making(void **state) {
  static const float signs[] = {-1, 1, -2, 2}, none[4] = {0}, taken[] = {2, 3, 6, 7};
  static const int64_t large[] = {600, 600};
  cohort_symbol *symbol = rows_taken_of(variable("data"));
  cohort_executor *executor = bound(symbol, "null");
  cohort_ndarray *slow = NULL, *product, *mask, *sum;
  cohort_arrays *results = NULL;
  cohort_ndarray *inputs[2];

  (void)state;
  set(executor, "data", rows, 8);
  set(executor, "index", none, 4);
  ok(cohort_ndarray_zeros(large, 2, COHORT_DTYPE_FLOAT32, NULL, &slow));
  product = apply(NULL, "dot", slow, slow);
  sum = apply(NULL, "sum", product, NULL);
  inputs[0] = floats(signs, four, 1);
  inputs[1] = sum;
  mask = apply(NULL, "broadcast_add", inputs[0], inputs[1]);
  cohort_ndarray_free(inputs[0]);
  inputs[0] = array_of(executor, COHORT_EXECUTOR_ARGS, "index");
  ok(cohort_operator_invoke("relu", NULL, NULL, 0, &mask, 1, inputs, 1, NULL, &results));
  cohort_arrays_free(results);
  ok(cohort_executor_forward(executor, 0));
  assert_array(executor, COHORT_EXECUTOR_OUTPUTS, "m_output", taken, 4);
  cohort_ndarray_free(inputs[0]);
  cohort_ndarray_free(mask);
  cohort_ndarray_free(sum);
  cohort_ndarray_free(product);
  cohort_ndarray_free(slow);
  cohort_executor_free(executor);
  cohort_symbol_free(symbol);
}

/* Step numbers and head gradients that do not exist. */
static void calls_that_a_network_of_parts_lacks_are_refused(void **state) {
  static const float mask[] = {1, 0, 1, 1};
  static const int64_t three_by_two[] = {3, 2};
  cohort_executor *executor = bound_mask_behind_mask("write");
  cohort_ndarray *head = floats(rows, three_by_two, 2);
  int32_t left = 0;

  (void)state;
  fails(cohort_executor_backward(executor, &head, 1, 1), COHORT_ERROR_STATE, "no forward has run");
  fails(cohort_executor_partial_forward(executor, 1, 0, &left), COHORT_ERROR_UNSUPPORTED, "'taken'");
  set(executor, "index", mask, 4);
  ok(cohort_executor_forward(executor, 1));
  fails(cohort_executor_backward(executor, &head, 1, 1), COHORT_ERROR_SHAPE, "expected shape (2, 2), found (3, 2)");
  fails(cohort_executor_backward(executor, NULL, 0, 1), COHORT_ERROR_INVALID_ARGUMENT, "'product_output' is no loss");
  cohort_ndarray_free(head);
  cohort_executor_free(executor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_mask_takes_rows),
      TEST(a_mask_may_be_still_in_the_making),
      TEST(gradients_go_back_to_the_rows),
      TEST(coordinates_are_those_of_elements_that_are_not_0),
      TEST(masks_that_do_not_fit_are_refused),
      TEST(a_network_runs_for_the_rows_that_a_mask_takes),
      TEST(gradients_of_all_parts_are_summed),
      TEST(a_monitor_sees_a_network_of_parts_as_one),
      TEST(a_monitor_sees_nodes_of_one_name_in_both_parts),
      TEST(a_forward_that_fits_no_shape_leaves_no_results),
      TEST(parts_are_reshaped_and_draw_new_numbers),
      TEST(an_output_of_known_shape_is_live),
      TEST(a_state_may_be_read_by_the_other_part),
      TEST(precision_is_said_of_nodes_of_any_part),
      TEST(the_text_for_a_person_is_of_all_parts),
      TEST(a_type_that_no_part_uses_is_logged_once),
      TEST(values_that_say_a_shape_may_be_still_in_the_making),
      TEST(calls_that_a_network_of_parts_lacks_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
