/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of very many nodes: binding takes time in proportion to their size, and no stack. */
#include <stdio.h>
#include <time.h>

#include "support/executor_tests.h"
#include "support/sanitizer.h"

/* f(f(f(...x))), by one operator with one attribute. */
static cohort_symbol *chain(const char *op, const char *key, const char *value, size_t length) {
  cohort_symbol *symbol = variable("x");
  size_t i;

  for (i = 0; i < length; ++i) symbol = node(op, "", ATTRS(key, value), INPUTS(symbol));
  return symbol;
}

/* Nothing is fused, and all values are kept for backward. */
static cohort_symbol *waves(size_t length) {
  cohort_symbol *symbol = variable("x");
  size_t i;

  for (i = 0; i < length; ++i) symbol = node("sin", "", NO_ATTRS, INPUTS(symbol));
  return symbol;
}

static cohort_symbol *increments(size_t length) { return chain("_plus_scalar", "scalar", "1", length); }
static cohort_symbol *shapes(size_t length) { return chain("Reshape", "shape", "(-1,)", length); }

/* The same over two devices, which alternate. */
static cohort_symbol *turns(size_t length) {
  static const char *const key = "ctx_group", *const groups[] = {"even", "odd"};
  cohort_symbol *symbol = variable("x");
  size_t i;

  for (i = 0; i < length; ++i) {
    symbol = node("sin", "", NO_ATTRS, INPUTS(symbol));
    ok(cohort_symbol_set_attrs(symbol, &key, &groups[i % 2], 1));
  }
  return symbol;
}

/* x * x0 * x1 * ..., as many arguments as nodes. */
static cohort_symbol *products(size_t length) {
  cohort_symbol *symbol = variable("x");
  char name[32];
  size_t i;

  for (i = 0; i < length / 2; ++i) {
    snprintf(name, sizeof name, "x%zu", i);
    symbol = node("broadcast_mul", "", NO_ATTRS, INPUTS(symbol, variable(name)));
  }
  return symbol;
}

/* One variable, many times. */
static cohort_symbol *heads(size_t length) {
  cohort_symbol **all = malloc(length * sizeof *all), *group = NULL;
  size_t i;

  assert_non_null(all);
  all[0] = variable("x");
  for (i = 1; i < length; ++i) all[i] = all[0];
  ok(cohort_symbol_group(all, length, &group));
  cohort_symbol_free(all[0]);
  free(all);
  return group;
}

/* The CPU seconds that binding with gradients takes; the shorter time of two. */
static double seconds_to_bind(cohort_symbol *(*make)(size_t), size_t length) {
  static const char *const groups[] = {"even", "odd"};
  static const cohort_context contexts[] = {{COHORT_DEVICE_CPU, 0}, {COHORT_DEVICE_CPU, 1}};
  double best = 0;
  int time;

  for (time = 0; time < 2; ++time) {
    cohort_symbol *symbol = make(length);
    cohort_descs *known = desc("x", SHAPE(4), NULL);
    cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
    cohort_executor *executor = NULL;
    clock_t begin;
    double seconds;
    char name[32];
    size_t i;

    if (make == products) {
      for (i = 0; i < length / 2; ++i) {
        snprintf(name, sizeof name, "x%zu", i);
        add_desc(known, name, SHAPE(4), NULL);
      }
    }
    options.grad_req = "write";
    if (make == turns) {
      options.ctx_group_names = groups;
      options.ctx_group_contexts = contexts;
      options.num_ctx_groups = 2;
    }
    begin = clock();
    ok(cohort_executor_simple_bind(symbol, NULL, known, &options, &executor));
    seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (time == 0 || seconds < best) best = seconds;
    cohort_executor_free(executor);
    cohort_descs_free(known);
    cohort_symbol_free(symbol);
  }
  return best;
}

/* MANY gives more memory blocks than the planner tries every order of. */
enum { FEW = UNDER_SANITIZER ? 400 : 8000, MANY = 4 * FEW };

/* Four times the nodes take about four times the time, not sixteen times. */
static void grows_with(cohort_symbol *(*make)(size_t), const char *what) {
  double few = seconds_to_bind(make, FEW), many = seconds_to_bind(make, MANY);
  int again;

  /* Other load on the machine only ever makes a measurement longer, so take the shortest. */
  for (again = 0; again < 5 && many > 9 * few + 0.02; ++again) {
    const double few_again = seconds_to_bind(make, FEW), many_again = seconds_to_bind(make, MANY);

    if (few_again < few) few = few_again;
    if (many_again < many) many = many_again;
  }
  print_message("%s: %d in %.3f s, %d in %.3f s\n", what, FEW, few, MANY, many);
  if (many > 9 * few + 0.02) fail_msg("%s: %.3f s for four times as many as %.3f s took", what, many, few);
}

static void binding_takes_time_by_the_node(void **state) {
  (void)state;
  grows_with(waves, "values kept for backward");
  grows_with(increments, "point-wise operators that are fused");
  grows_with(shapes, "views of views");
  grows_with(turns, "devices that take turns");
  grows_with(products, "arguments");
  grows_with(heads, "heads");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(binding_takes_time_by_the_node)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
