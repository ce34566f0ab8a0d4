/* SPDX-License-Identifier: Apache-2.0 */
/* Steps over parameters alone run before the passes, and their results are kept. These have results without elements.
 */
#include "support/executor_tests.h"

/* Each without elements, of shape (0, 2), from w, (2, 2). */
static cohort_symbol *no_tiles(cohort_symbol *w) { return node("tile", "none", ATTRS("reps", "(0, 1)"), INPUTS(w)); }
static cohort_symbol *no_repeats(cohort_symbol *w) {
  return node("repeat", "none", ATTRS("repeats", "0", "axis", "0"), INPUTS(w));
}
static cohort_symbol *no_rows(cohort_symbol *w) {
  return node("slice", "none", ATTRS("begin", "(1, 0)", "end", "(1, 2)"), INPUTS(w));
}
static cohort_symbol *no_classes(cohort_symbol *w) {
  cohort_symbol *one_hot = node("one_hot", "none", ATTRS("depth", "0"), INPUTS(w));

  return node("transpose", "turned", NO_ATTRS, INPUTS(node("Flatten", "flat", NO_ATTRS, INPUTS(one_hot))));
}
/* A step over the result of another one. */
static cohort_symbol *no_squares(cohort_symbol *w) { return node("square", "squares", NO_ATTRS, INPUTS(no_tiles(w))); }

static cohort_symbol *(*const empty[])(cohort_symbol *w) = {no_tiles, no_repeats, no_rows, no_classes, no_squares};

/* The rows of a dense layer of the data with the weight w, and below them none from w. */
static cohort_symbol *layer_and(cohort_symbol *(*none)(cohort_symbol *w)) {
  cohort_symbol *w = variable("w"), *same_w = NULL, *layer;

  ok(cohort_symbol_output(w, 0, &same_w));
  layer = node("FullyConnected", "fc", ATTRS("num_hidden", "2", "no_bias", "True"), INPUTS(variable("data"), w));
  return node("Concat", "joined", ATTRS("dim", "0"), INPUTS(layer, none(same_w)));
}

static void an_executor_binds_and_runs(void **state) {
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(empty); ++i) {
    cohort_executor *executor = simple_bind_with(layer_and(empty[i]), desc("data", SHAPE(2, 2), NULL), NULL);
    int pass;

    for (pass = 0; pass < 2; ++pass) {
      set_arg(executor, "data", 1, 2, 3, 4);
      set_arg(executor, "w", 1, 0, 0, 1);
      ok(cohort_executor_forward(executor, 0));
      holds_free(output_of(executor, 0), 1, 2, 3, 4);
    }
    cohort_executor_free(executor);
  }
}

static void a_group_binds_and_runs(void **state) {
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(empty); ++i) {
    static const char *const params[] = {"w"};
    cohort_symbol *net = layer_and(empty[i]);
    cohort_descs *data = desc("data", SHAPE(4, 2), "NC");
    cohort_ndarray *batch = floats(SHAPE(4, 2), FLOATS(1, 2, 3, 4, 5, 6, 7, 8)), *w;
    cohort_group *group = NULL;
    int32_t device;

    ok(cohort_group_create(net, test_contexts(), 2, data, NULL, params, 1, 0, NULL, &group));
    for (device = 0; device < 2; ++device) {
      static const float identity[] = {1, 0, 0, 1};

      ok(cohort_group_array(group, COHORT_GROUP_PARAMS, 0, (size_t)device, &w));
      ok(cohort_ndarray_write(w, identity, sizeof identity));
      cohort_ndarray_free(w);
    }
    ok(cohort_group_forward(group, &batch, 1, NULL, 0, 0));
    holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 1, 2, 3, 4, 5, 6, 7, 8);
    cohort_group_free(group);
    cohort_ndarray_free(batch);
    cohort_descs_free(data);
    cohort_symbol_free(net);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(an_executor_binds_and_runs),
      TEST(a_group_binds_and_runs),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
