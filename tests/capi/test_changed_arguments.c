/* SPDX-License-Identifier: Apache-2.0 */
/* Networks in which one node changes an argument that others read: each reader sees the value that the order of the
 * symbol's nodes gives, whatever the plan fuses, copies or caches. */
#include "support/executor_tests.h"

/* A second handle on the symbol, for another reader. */
static cohort_symbol *same(cohort_symbol *symbol) {
  cohort_symbol *copy = NULL;

  ok(cohort_symbol_output(symbol, 0, &copy));
  return copy;
}

/* w - g, which is written to w: it is the momentum of an update of zeros. */
static cohort_symbol *update(cohort_symbol *w) {
  return node("sgd_mom_update", "update", ATTRS("lr", "1", "momentum", "1"),
              INPUTS(variable("zero"), variable("g"), w));
}

static cohort_symbol *plus(cohort_symbol *a, cohort_symbol *b) {
  return node("elemwise_add", NULL, NO_ATTRS, INPUTS(a, b));
}

/* 2 w + (w - g): the first w is the value before the change. */
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

/* Convolutions that use one weight before and after its update, in whatever layout their kernels prefer. */
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

/* Readers on another context, before and after the change: each gets a copy of the value at its place in the order. */
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

/* ---- arrays that share memory ------------------------------------------------------------------------------------ */

/* A bound argument, as the part [begin, end) of an array. */
typedef struct {
  const char *name;
  cohort_ndarray *of;
  int64_t begin, end;
} bound_part;

static cohort_executor *bind_parts(cohort_symbol *symbol, const bound_part *parts, size_t num_parts,
                                   const cohort_executor_options *options) {
  cohort_ndarray *args[8];
  cohort_executor *executor = NULL;
  size_t num = 0, i, k;

  ok(cohort_symbol_num_names(symbol, COHORT_SYMBOL_ARGUMENTS, &num));
  for (i = 0; i < num; ++i) {
    const char *name = NULL;

    args[i] = NULL;
    ok(cohort_symbol_name_at(symbol, COHORT_SYMBOL_ARGUMENTS, i, &name));
    for (k = 0; k < num_parts; ++k)
      if (strcmp(parts[k].name, name) == 0)
        ok(cohort_ndarray_slice(parts[k].of, parts[k].begin, parts[k].end, &args[i]));
    assert_non_null(args[i]);
  }
  ok(cohort_executor_bind(symbol, NULL, args, num, NULL, NULL, NULL, 0, options, &executor));
  for (i = 0; i < num; ++i) cohort_ndarray_free(args[i]);
  cohort_symbol_free(symbol);
  return executor;
}

/* 2 v + (w - g), where v is a view of a part of w: it is read before w is changed. */
static void a_fused_reader_of_a_part_reads_what_was_there_before(void **state) {
  cohort_ndarray *all = floats(SHAPE(4), FLOATS(5, 10, 20, 30)), *zero = floats(SHAPE(2), FLOATS(0, 0)),
                 *g = floats(SHAPE(2), FLOATS(1, 2));
  const bound_part parts[] = {{"w", all, 1, 3}, {"v", all, 1, 3}, {"zero", zero, 0, 2}, {"g", g, 0, 2}};
  cohort_symbol *twice = node("_mul_scalar", NULL, ATTRS("scalar", "2"), INPUTS(variable("v")));
  cohort_executor *executor = bind_parts(plus(twice, update(variable("w"))), parts, COUNT(parts), NULL);

  (void)state;
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 29, 58);
  holds(all, 5, 9, 18, 30);
  cohort_executor_free(executor);
  cohort_ndarray_free(all);
  cohort_ndarray_free(zero);
  cohort_ndarray_free(g);
}

/* Weights of a layer that are a part of an array which a node before the layer changes, in its own type and in a
 * narrower one, in one pass and in the next. */
static void a_layer_reads_the_part_that_a_node_has_changed(void **state) {
  enum { kSide = 64 };
  int narrow;

  (void)state;
  for (narrow = 0; narrow < 2; ++narrow) {
    cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
    cohort_ndarray *all = counted(SHAPE(2, kSide, kSide), 0), *zero = counted(SHAPE(2, kSide, kSide), 0),
                   *g = counted(SHAPE(2, kSide, kSide), 0), *x = counted(SHAPE(1, kSide), 0);
    const bound_part parts[] = {
        {"w", all, 0, 2}, {"zero", zero, 0, 2}, {"g", g, 0, 2}, {"x", x, 0, 1}, {"fc_weight", NULL, 0, kSide}};
    bound_part with_weight[COUNT(parts)];
    cohort_symbol *first, *second, *heads[3], *both = NULL, *weight = variable("fc_weight"), *data = variable("x");
    cohort_executor *executor;
    cohort_ndarray *part = NULL, *rows = NULL;
    float found[2][kSide];
    int pass;
    size_t i;

    ok(cohort_ndarray_slice(all, 1, 2, &part));
    ok(cohort_ndarray_reshape(part, SHAPE(kSide, kSide), &rows));
    memcpy(with_weight, parts, sizeof parts);
    with_weight[4].of = rows;
    ok(cohort_ndarray_fill(x, 1));
    ok(cohort_ndarray_fill(all, 3));
    ok(cohort_ndarray_fill(g, 1));
    first =
        node("FullyConnected", "fc0", ATTRS("num_hidden", "64", "no_bias", "True"), INPUTS(same(data), same(weight)));
    second = node("FullyConnected", "fc", ATTRS("num_hidden", "64", "no_bias", "True"), INPUTS(data, weight));
    heads[0] = first;
    heads[1] = update(variable("w"));
    heads[2] = second;
    ok(cohort_symbol_group(heads, 3, &both));
    for (i = 0; i < 3; ++i) cohort_symbol_free(heads[i]);
    options.compute_dtype = narrow ? COHORT_DTYPE_BFLOAT16 : COHORT_DTYPE_FLOAT32;
    executor = bind_parts(both, with_weight, COUNT(parts), &options);
    for (pass = 0; pass < 2; ++pass) {
      cohort_ndarray *outputs[2];

      ok(cohort_executor_forward(executor, 0));
      for (i = 0; i < 2; ++i) {
        outputs[i] = output_of(executor, 2 * i);
        ok(cohort_ndarray_read(outputs[i], found[i], sizeof found[i]));
        cohort_ndarray_free(outputs[i]);
        assert_true(found[i][7] == (float)(kSide * (3 - pass - (int)i)));
      }
    }
    cohort_executor_free(executor);
    cohort_ndarray_free(all);
    cohort_ndarray_free(zero);
    cohort_ndarray_free(g);
    cohort_ndarray_free(x);
    cohort_ndarray_free(part);
    cohort_ndarray_free(rows);
  }
}

/* Readers of such parts on another context. */
static void read_parts_elsewhere(void) {
  const char *const groups[] = {"here", "there"};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_ndarray *all = floats(SHAPE(3), FLOATS(10, 20, 30)), *zero = floats(SHAPE(3), FLOATS(0, 0, 0)),
                 *g = floats(SHAPE(3), FLOATS(1, 2, 3));
  const bound_part parts[] = {{"w", all, 0, 3}, {"v", all, 1, 3}, {"zero", zero, 0, 3}, {"g", g, 0, 3}};
  cohort_symbol *v = variable_with("v", "__ctx_group__", "here"), *heads[3], *symbol = NULL;
  cohort_executor *executor;
  size_t i;

  heads[0] = node("_mul_scalar", NULL, ATTRS("scalar", "2", "__ctx_group__", "there"), INPUTS(same(v)));
  heads[1] = update(variable_with("w", "__ctx_group__", "here"));
  heads[2] = node("_mul_scalar", NULL, ATTRS("scalar", "3", "__ctx_group__", "there"), INPUTS(v));
  ok(cohort_symbol_group(heads, 3, &symbol));
  for (i = 0; i < 3; ++i) cohort_symbol_free(heads[i]);
  options.ctx_group_names = groups;
  options.ctx_group_contexts = test_contexts();
  options.num_ctx_groups = 2;
  executor = bind_parts(symbol, parts, COUNT(parts), &options);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 0), 40, 60);
  holds_free(output_of(executor, 2), 54, 81);
  cohort_executor_free(executor);
  cohort_ndarray_free(all);
  cohort_ndarray_free(zero);
  cohort_ndarray_free(g);
}
static void readers_of_parts_elsewhere_read_what_is_there(void **state) {
  (void)state;
  only_on_cpus();
  read_parts_elsewhere();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_fused_reader_reads_what_was_there_before),
      TEST(a_layer_reads_what_the_layer_before_it_did_not),
      TEST(readers_elsewhere_read_what_is_there_when_their_turn_comes),
      TEST(a_fused_reader_of_a_part_reads_what_was_there_before),
      TEST(a_layer_reads_the_part_that_a_node_has_changed),
      TEST(readers_of_parts_elsewhere_read_what_is_there),
  };

  return cmocka_run_group_tests_name("changed_arguments", tests, NULL, NULL);
}
