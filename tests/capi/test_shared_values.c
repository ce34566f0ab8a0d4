/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are read many times: their gradients are added up as they come, in memory that does not grow with the
 * number of readers, and with the digits of one sum. */
#include <stdio.h>

#include "support/readers.h"

enum { THREADS = 2 };

/* The sum of everything that `uses` readers of w make, each of data of its own, in context groups by turns. */
static cohort_symbol *summed_readers(const reader *of, int uses) {
  const char *const key = "ctx_group", *const groups[] = {"left", "right"};
  cohort_symbol *w = variable("w"), *total = NULL;
  char name[16];
  int k;

  for (k = 0; k < uses; ++k) {
    cohort_symbol *inputs[3] = {NULL, NULL, NULL}, *made, *same = NULL;

    ok(cohort_symbol_output(w, 0, &same));
    inputs[of->weight_first ? 0 : 1] = same;
    snprintf(name, sizeof(name), "x%d", k);
    if (of->data_axes) inputs[of->weight_first ? 1 : 0] = variable(name);
    snprintf(name, sizeof(name), "read%d", k);
    made = node(of->op, name, of->attrs, inputs);
    ok(cohort_symbol_set_attrs(made, &key, &groups[k % 2], 1));
    snprintf(name, sizeof(name), "sum%d", k);
    made = node("sum", name, NO_ATTRS, INPUTS(made));
    snprintf(name, sizeof(name), "total%d", k);
    total = total ? node("elemwise_add", name, NO_ATTRS, INPUTS(total, made)) : made;
  }
  cohort_symbol_free(w);
  return total;
}

static cohort_executor_options options_of(const char *grad_req, int32_t compute_dtype) {
  static const char *const name[] = {"w"};
  static const char *reqs[1];
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  reqs[0] = grad_req;
  options.grad_req_names = name;
  options.grad_req_list = reqs;
  options.num_grad_reqs = 1;
  options.num_threads = THREADS;
  options.compute_dtype = compute_dtype;
  return options;
}

static cohort_descs *shapes_of(const reader *of, int uses) {
  cohort_descs *known = desc("w", of->weight, of->weight_axes, NULL);
  char name[16];
  int k;

  for (k = 0; of->data_axes && k < uses; ++k) {
    snprintf(name, sizeof(name), "x%d", k);
    add_desc(known, name, of->data, of->data_axes, NULL);
  }
  return known;
}

static cohort_executor *bind_readers(const reader *of, int uses, const char *grad_req, int32_t compute_dtype) {
  const cohort_executor_options options = options_of(grad_req, compute_dtype);

  return simple_bind(summed_readers(of, uses), shapes_of(of, uses), &options);
}

static size_t planned(const cohort_executor *executor) {
  cohort_memory_info info = COHORT_MEMORY_INFO_INIT;

  ok(cohort_executor_memory(executor, &info));
  return info.planned_bytes;
}

static size_t planned_for(const reader *of, int uses, const char *grad_req, int32_t compute_dtype) {
  cohort_executor *const executor = bind_readers(of, uses, grad_req, compute_dtype);
  const size_t bytes = planned(executor);

  cohort_executor_free(executor);
  return bytes;
}

/* Beside what one reader takes there is a running sum and one gradient to be added. */
static void check_memory(const char *grad_req, int32_t compute_dtype) {
  const int uses[] = {2, 3, 4, 8, MANY};
  size_t i, k;

  for (i = 0; i < COUNT(readers); ++i) {
    const size_t alone = planned_for(&readers[i], 1, grad_req, compute_dtype);

    for (k = 0; k < COUNT(uses); ++k) {
      const size_t found = planned_for(&readers[i], uses[k], grad_req, compute_dtype);
      const size_t most = alone + 2 * kValue + (uses[k] == 3 ? kValue : 0) + (size_t)uses[k] * kReader;

      if (found > most) fail_msg("%s read %d times: %zu bytes, at most %zu", readers[i].op, uses[k], found, most);
    }
  }
}

static void memory_does_not_grow_with_the_number_of_readers(void **state) {
  (void)state;
  check_memory("write", COHORT_DTYPE_FLOAT32);
}

static void nor_does_it_where_gradients_are_added_to_those_before(void **state) {
  (void)state;
  check_memory("add", COHORT_DTYPE_FLOAT32);
}

static void nor_does_it_where_products_are_in_bfloat16(void **state) {
  (void)state;
  check_memory("write", COHORT_DTYPE_BFLOAT16);
}

/* A product's gradient is row-major like the bound array: the sum is there from its first term on. */
static void the_running_sum_of_a_weight_is_in_its_bound_gradient(void **state) {
  const reader *const dot = &readers[1];
  const int uses[] = {2, 3, MANY};
  const size_t alone = planned_for(dot, 1, "write", COHORT_DTYPE_FLOAT32);
  size_t k;

  (void)state;
  for (k = 0; k < COUNT(uses); ++k)
    assert_true(planned_for(dot, uses[k], "write", COHORT_DTYPE_FLOAT32) <=
                alone + (uses[k] == 3 ? 2 : 1) * kValue + (size_t)uses[k] * kReader);
}

static void fill_data(const reader *of, cohort_executor *executor, int uses, int first) {
  static float values[ELEMENTS];
  char name[16];
  int k;

  for (k = 0; of->data_axes && k < uses; ++k) {
    const size_t count = fill_values(of, first + k, values);

    snprintf(name, sizeof(name), "x%d", k);
    set_array(executor, COHORT_EXECUTOR_ARGS, name, values, count);
  }
}

static void run_backward(cohort_executor *executor) {
  ok(cohort_executor_forward(executor, 1));
  ok(try_backward_with(executor, floats(SHAPE(1), FLOATS(1)), 1));
}

static void read_gradient(cohort_executor *executor, float *values) {
  cohort_ndarray *const gradient = grad_of(executor, "w");

  ok(cohort_ndarray_read(gradient, values, kValue));
  cohort_ndarray_free(gradient);
}

/* The gradient of w from `uses` readers; a second executor gives the same bits. */
static void gradient_of(const reader *of, int uses, int first, const char *grad_req, float *values) {
  static float again[ELEMENTS];
  int run;

  for (run = 0; run < 2; ++run) {
    cohort_executor *const executor = bind_readers(of, uses, grad_req, COHORT_DTYPE_FLOAT32);

    fill_data(of, executor, uses, first);
    fill(grad_of(executor, "w"), 100);
    run_backward(executor);
    read_gradient(executor, run ? again : values);
    cohort_executor_free(executor);
  }
  assert_memory_equal(values, again, kValue);
}

static void check_sums(const char *grad_req, float before) {
  static float found[ELEMENTS], expected[ELEMENTS], part[ELEMENTS];
  const int uses[] = {3, 4, 5, 17};
  size_t i, k, e;
  int u;

  for (i = 0; i < COUNT(readers); ++i) {
    for (k = 0; k < COUNT(uses); ++k) {
      for (e = 0; e < ELEMENTS; ++e) expected[e] = before;
      for (u = 0; u < uses[k]; ++u) {
        gradient_of(&readers[i], 1, u, "write", part);
        for (e = 0; e < ELEMENTS; ++e) expected[e] += part[e];
      }
      gradient_of(&readers[i], uses[k], 0, grad_req, found);
      check_gradient(readers[i].op, uses[k], found, expected);
    }
  }
}

static void the_gradient_is_the_sum_of_those_of_the_readers(void **state) {
  (void)state;
  check_sums("write", 0);
}

static void a_gradient_that_is_added_to_is_the_sum_with_what_was_there(void **state) {
  (void)state;
  check_sums("add", 100);
}

/* Half of the readers are on another device, and read a copy there: gradients are summed on each device first. Sums of
 * whole numbers have the same bits in any order. */
static cohort_executor *bind_on_two_devices(const reader *of, int uses) {
  static const char *const groups[] = {"left", "right"};
  cohort_executor_options options = options_of("write", COHORT_DTYPE_FLOAT32);

  options.ctx_group_names = groups;
  options.ctx_group_contexts = test_contexts();
  options.num_ctx_groups = 2;
  return simple_bind(summed_readers(of, uses), shapes_of(of, uses), &options);
}

static void readers_on_two_devices_give_the_same_bits(void **state) {
  static float found[ELEMENTS], expected[ELEMENTS];
  const int uses = 9;
  size_t i;

  (void)state;
  only_on_one_type();
  for (i = 0; i < COUNT(readers); ++i) {
    cohort_executor *const executor = bind_on_two_devices(&readers[i], uses);

    fill_data(&readers[i], executor, uses, 0);
    run_backward(executor);
    read_gradient(executor, found);
    cohort_executor_free(executor);
    gradient_of(&readers[i], uses, 0, "write", expected);
    assert_memory_equal(found, expected, kValue);
  }
}

/* On each device there are a running sum and a gradient, on the other one a copy of the value, too. */
static void memory_of_two_devices_does_not_grow_either(void **state) {
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(readers); ++i) {
    const size_t alone = planned_for(&readers[i], 1, "write", COHORT_DTYPE_FLOAT32);
    cohort_executor *const executor = bind_on_two_devices(&readers[i], MANY);
    const size_t found = planned(executor), most = 2 * (alone + 2 * kValue) + 2 * kValue + MANY * kReader;

    if (found > most) fail_msg("%s: %zu bytes, at most %zu", readers[i].op, found, most);
    cohort_executor_free(executor);
  }
}

/* exp(v), where each reader multiplies by 1 + 1 / 128 and the results are added: a value inside the network. */
static cohort_symbol *fan_out(int uses) {
  cohort_symbol *value = node("exp", "value", NO_ATTRS, INPUTS(variable("w"))), *total = NULL;
  char name[16];
  int k;

  for (k = 0; k < uses; ++k) {
    cohort_symbol *same = NULL, *made;

    ok(cohort_symbol_output(value, 0, &same));
    snprintf(name, sizeof(name), "read%d", k);
    made = node("_mul_scalar", name, ATTRS("scalar", "1.0078125"), INPUTS(same));
    snprintf(name, sizeof(name), "total%d", k);
    total = total ? node("elemwise_add", name, NO_ATTRS, INPUTS(total, made)) : made;
  }
  cohort_symbol_free(value);
  return total;
}

static cohort_executor *bind_fan_out(int uses, int32_t dtype) {
  const cohort_executor_options options = options_of("write", COHORT_DTYPE_FLOAT32);
  cohort_descs *known = no_descs();

  add_typed(known, "w", SHAPE(SIDE, SIDE), dtype);
  return simple_bind(fan_out(uses), known, &options);
}

/* Beside what two readers take there is a running sum, of floats if the value has 16 bits, and a gradient to be added.
 */
static void a_value_inside_takes_no_more_either(void **state) {
  const int32_t types[] = {COHORT_DTYPE_FLOAT32, COHORT_DTYPE_FLOAT16, COHORT_DTYPE_BFLOAT16, COHORT_DTYPE_FLOAT64};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(types); ++i) {
    cohort_executor *const few = bind_fan_out(2, types[i]), *const many = bind_fan_out(MANY, types[i]);
    size_t bytes = 0;

    ok(cohort_dtype_bytes(types[i], &bytes));
    if (planned(many) > planned(few) + ELEMENTS * ((bytes == 2 ? sizeof(float) : bytes) + bytes))
      fail_msg("type %d: %zu bytes, with two readers %zu", (int)types[i], planned(many), planned(few));
    cohort_executor_free(few);
    cohort_executor_free(many);
  }
}

/* 64 times 1 + 1 / 128 is 64.5. A running sum in bfloat16 could not get further than 64. */
static void sums_in_16_bits_are_rounded_once(void **state) {
  const int32_t types[] = {COHORT_DTYPE_FLOAT16, COHORT_DTYPE_BFLOAT16};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(types); ++i) {
    static float values[ELEMENTS];
    cohort_executor *const executor = bind_fan_out(MANY, types[i]);
    cohort_ndarray *head = NULL, *gradient, *wide = NULL;

    ok(cohort_executor_forward(executor, 1)); /* of exp(0) */
    ok(cohort_ndarray_zeros(SHAPE(SIDE, SIDE), types[i], NULL, &head));
    ok(cohort_ndarray_fill(head, 1));
    ok(try_backward_with(executor, head, 1));
    gradient = grad_of(executor, "w");
    ok(cohort_ndarray_cast(gradient, COHORT_DTYPE_FLOAT32, &wide));
    ok(cohort_ndarray_read(wide, values, sizeof(values)));
    assert_true(values[0] == 64.5f && values[ELEMENTS - 1] == 64.5f);
    cohort_ndarray_free(gradient);
    cohort_ndarray_free(wide);
    cohort_executor_free(executor);
  }
}

/* h = tanh(h . w^T), many times. */
static cohort_symbol *recurrent(int uses) {
  cohort_symbol *w = variable("w"), *h = variable("h");
  char name[16];
  int k;

  for (k = 0; k < uses; ++k) {
    cohort_symbol *same = NULL;

    ok(cohort_symbol_output(w, 0, &same));
    snprintf(name, sizeof(name), "fc%d", k);
    h = node("FullyConnected", name, ATTRS("num_hidden", "256", "no_bias", "True"), INPUTS(h, same));
    snprintf(name, sizeof(name), "tanh%d", k);
    h = node("tanh", name, NO_ATTRS, INPUTS(h));
  }
  cohort_symbol_free(w);
  return node("MakeLoss", "loss", NO_ATTRS, INPUTS(h));
}

static void a_recurrent_weight_takes_no_more_on_each_device_of_a_group(void **state) {
  size_t num_contexts, d;

  (void)state;
  for (num_contexts = 1; num_contexts <= 2; ++num_contexts) {
    cohort_group *const group =
        bind_for_training(recurrent(MANY), num_contexts, desc("h", SHAPE(4, SIDE), NULL), NULL, NAMES("w"), NULL);

    set_param(group, "w", counted(SHAPE(SIDE, SIDE), 1e-6f));
    forward(group, counted(SHAPE(4, SIDE), 1e-3f), NULL, 1);
    backward(group, NULL);
    for (d = 0; d < num_contexts; ++d) {
      cohort_memory_info info = COHORT_MEMORY_INFO_INIT;

      ok(cohort_group_memory(group, d, &info));
      assert_true(info.planned_bytes <= 3 * kValue + MANY * kReader);
    }
    cohort_group_free(group);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(memory_does_not_grow_with_the_number_of_readers),
      TEST(nor_does_it_where_gradients_are_added_to_those_before),
      TEST(nor_does_it_where_products_are_in_bfloat16),
      TEST(the_running_sum_of_a_weight_is_in_its_bound_gradient),
      TEST(the_gradient_is_the_sum_of_those_of_the_readers),
      TEST(a_gradient_that_is_added_to_is_the_sum_with_what_was_there),
      TEST(readers_on_two_devices_give_the_same_bits),
      TEST(memory_of_two_devices_does_not_grow_either),
      TEST(a_value_inside_takes_no_more_either),
      TEST(sums_in_16_bits_are_rounded_once),
      TEST(a_recurrent_weight_takes_no_more_on_each_device_of_a_group),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
