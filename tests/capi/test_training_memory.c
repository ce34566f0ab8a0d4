/* SPDX-License-Identifier: Apache-2.0 */
/* What training plans to keep: a gradient takes the place of the one that it is made of. */
#include "support/executor_tests.h"

enum { BATCH = 2, SIDE = 24 };

static size_t planned(const cohort_executor *executor) {
  cohort_memory_info info = COHORT_MEMORY_INFO_INIT;

  ok(cohort_executor_memory(executor, &info));
  return info.planned_bytes;
}

/* Of the forward pass both exponentials are kept; then there is one gradient at a time. Channels that fill blocks of
 * the processor's vectors, and others, have norms of their own. */
static void the_gradient_of_a_batch_norm_lies_where_its_head_gradient_was(void **state) {
  const int64_t channels[] = {16, 3};
  size_t i;

  (void)state;
  only_on_cpus();
  for (i = 0; i < COUNT(channels); ++i) {
    const size_t value = (size_t)(BATCH * channels[i] * SIDE * SIDE) * sizeof(float);
    cohort_symbol *norm =
        node("BatchNorm", "norm", NO_ATTRS, INPUTS(node("exp", "before", NO_ATTRS, INPUTS(variable("x")))));
    cohort_executor *executor =
        simple_bind_with(node("MakeLoss", "loss", NO_ATTRS, INPUTS(node("exp", "after", NO_ATTRS, INPUTS(norm)))),
                         desc("x", SHAPE(BATCH, channels[i], SIDE, SIDE), NULL), "write");

    assert_true(planned(executor) < 3 * value + value / 2);
    cohort_executor_free(executor);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_gradient_of_a_batch_norm_lies_where_its_head_gradient_was),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
