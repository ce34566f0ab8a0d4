/* SPDX-License-Identifier: Apache-2.0 */
/* Networks in which one node changes an argument that others read: each reads it as it is when its turn comes in the
 * order of the symbol's nodes, whatever the plan puts together, copies or keeps. */
#include "support/executor_tests.h"

/* Another handle, for another reader. */
static cohort_symbol *same(cohort_symbol *symbol) {
  cohort_symbol *copy = NULL;

  ok(cohort_symbol_output(symbol, 0, &copy));
  return copy;
}

/* w - g, which becomes w: it is the momentum of an update of zeros. */
static cohort_symbol *update(cohort_symbol *w) {
  return node("sgd_mom_update", "update", ATTRS("lr", "1", "momentum", "1"),
              INPUTS(variable("zero"), variable("g"), w));
}

static cohort_symbol *plus(cohort_symbol *a, cohort_symbol *b) {
  return node("elemwise_add", NULL, NO_ATTRS, INPUTS(a, b));
}

/* 2 w + (w - g): the first w is the one before. */
static void a_fused_reader_reads_what_was_there_before(void **state) {
  cohort_symbol *w = variable("w");
  cohort_symbol *twice = node("_mul_scalar", NULL, ATTRS("scalar", "2"), INPUTS(same(w)));
  cohort_executor *executor = simple_bind_with(plus(twice, update(w)), desc("w", SHAPE(2), NULL), NULL);

  (void)state;
  set_arg(executor, "w", 10, 20);
  set_arg(executor, "g", 1, 2);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 29, 58);
  holds_free(arg_of(executor, "w"), 9, 18);
  cohort_executor_free(executor);
}

/* Convolutions with one weight before and after its update, however they like it to lie. */
static void a_layer_reads_what_the_layer_before_it_did_not(void **state) {
  const char *const shape = "(16, 16, 3, 3)";
  cohort_symbol *x = variable("x"), *w = variable_with("w", "__shape__", shape), *first, *second, *heads[3],
                *all = NULL;
  cohort_executor *executor;
  cohort_ndarray *array;
  static float values[2][16 * 4 * 4];

  (void)state;
  first = node("Convolution", "first", ATTRS("kernel", "(3, 3)", "num_filter", "16", "no_bias", "True"),
               INPUTS(same(x), same(w)));
  heads[0] = first;
  heads[1] = update(same(w));
  second =
      node("Convolution", "second", ATTRS("kernel", "(3, 3)", "num_filter", "16", "no_bias", "True"), INPUTS(x, w));
  heads[2] = second;
  ok(cohort_symbol_group(heads, 3, &all));
  cohort_symbol_free(first);
  cohort_symbol_free(heads[1]);
  cohort_symbol_free(second);
  executor = simple_bind_with(all, desc("x", SHAPE(1, 16, 6, 6), NULL), NULL);
  fill(arg_of(executor, "x"), 1);
  fill(arg_of(executor, "w"), 3);
  fill(arg_of(executor, "g"), 1);
  ok(cohort_executor_forward(executor, 0));
  array = output_of(executor, 0);
  ok(cohort_ndarray_read(array, values[0], sizeof values[0]));
  cohort_ndarray_free(array);
  array = output_of(executor, 2);
  ok(cohort_ndarray_read(array, values[1], sizeof values[1]));
  cohort_ndarray_free(array);
  assert_float_equal(values[0][0], 144 * 3, 1e-3);
  assert_float_equal(values[1][0], 144 * 2, 1e-3);
  cohort_executor_free(executor);
}

/* Readers on another context, before and after: each is brought what is there when its turn comes. */
static void readers_elsewhere_read_what_is_there_when_their_turn_comes(void **state) {
  const char *const groups[] = {"here", "there"};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_symbol *w = variable_with("w", "__ctx_group__", "here"), *heads[3], *all = NULL;
  cohort_executor *executor;
  size_t i;

  (void)state;
  heads[0] = node("_mul_scalar", NULL, ATTRS("scalar", "2", "__ctx_group__", "there"), INPUTS(same(w)));
  heads[1] = update(same(w));
  heads[2] = node("_mul_scalar", NULL, ATTRS("scalar", "3", "__ctx_group__", "there"), INPUTS(w));
  ok(cohort_symbol_group(heads, 3, &all));
  for (i = 0; i < 3; ++i) cohort_symbol_free(heads[i]);
  options.ctx_group_names = groups;
  options.ctx_group_contexts = test_contexts();
  options.num_ctx_groups = 2;
  executor = simple_bind(all, desc("w", SHAPE(2), NULL), &options);
  set_arg(executor, "w", 10, 20);
  set_arg(executor, "g", 1, 2);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 20, 40);
  holds_free(output_of(executor, 2), 27, 54);
  cohort_executor_free(executor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_fused_reader_reads_what_was_there_before),
      TEST(a_layer_reads_what_the_layer_before_it_did_not),
      TEST(readers_elsewhere_read_what_is_there_when_their_turn_comes),
  };

  return cmocka_run_group_tests_name("changed_arguments", tests, NULL, NULL);
}
