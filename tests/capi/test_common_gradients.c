/* SPDX-License-Identifier: Apache-2.0 */
/* One gradient that several parameters have in common, stored in the array of the first: sums over devices that use
 * that array must wait until the others have read it. */
#include "support/scale_op.h"

/* The identity, whose gradient takes long, whichever thread runs it. */
static int32_t slow_backward(void *of, const cohort_arrays *head_grads, const cohort_arrays *inputs,
                             const cohort_arrays *aux, const cohort_arrays *outputs, const cohort_arrays *gradients,
                             void *user_data) {
  const struct timespec moment = {0, 50000000};

  nanosleep(&moment, NULL);
  return scale_backward(of, head_grads, inputs, aux, outputs, gradients, user_data);
}

/* An operator on symbols whose handles the caller keeps. */
static cohort_symbol *apply(const char *op, const char *name, cohort_symbol *a, cohort_symbol *b) {
  const char *const key = "op_type", *const value = "slow";
  const size_t num_attrs = strcmp(op, "Custom") == 0;
  cohort_symbol *inputs[2], *made = NULL;

  inputs[0] = a;
  inputs[1] = b;
  ok(cohort_symbol_create(op, name, &key, &value, num_attrs, inputs, NULL, b ? 2 : 1, &made));
  return made;
}

/* slow((a + b)^2 * slow(b * data)): with a = 1 and b = 2 the gradients are 12 * data and 21 * data. The gradient of a
 * and its bucket are ready while that of b, which is the same plus another term, waits for the slow operator. */
static cohort_symbol *common_network(void) {
  cohort_symbol *const a = variable("a"), *const b = variable("b"), *const data = variable("data");
  cohort_symbol *const product = apply("elemwise_mul", "product", b, data);
  cohort_symbol *const inner = apply("Custom", "inner", product, NULL), *const sum = apply("elemwise_add", "sum", a, b);
  cohort_symbol *const square = apply("square", "square", sum, NULL);
  cohort_symbol *const both = apply("elemwise_mul", "both", square, inner);
  cohort_symbol *const outer = apply("Custom", "outer", both, NULL);
  cohort_symbol *const made[] = {a, b, data, product, inner, sum, square, both};
  size_t i;

  for (i = 0; i < COUNT(made); ++i) cohort_symbol_free(made[i]);
  return node("_mul_scalar", "end", ATTRS("scalar", "1"), INPUTS(outer));
}

static void a_sum_does_not_take_the_place_of_what_is_still_read(void **state) {
  const char *const key = "learning_rate", *const rate = "0";
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_optimizer *optimizer = NULL;
  cohort_custom_op op;
  cohort_group *group;
  host self;
  int device;

  (void)state;
  begin(&self, 1);
  op = scale_op(&self);
  op.any_thread = 1;
  op.backward = slow_backward;
  op.ended = NULL;
  ok(cohort_custom_register("slow", &op));
  ok(cohort_optimizer_create("sgd", &key, &rate, 1, &optimizer));
  options.gradient_bucket_bytes = 1;
  group = bind_for_training(common_network(), 2, desc("data", SHAPE(2, 3), NULL), NULL, NAMES("a", "b"), &options);
  set_param(group, "a", floats(SHAPE(1, 3), FLOATS(1, 1, 1)));
  set_param(group, "b", floats(SHAPE(1, 3), FLOATS(2, 2, 2)));
  forward(group, floats(SHAPE(2, 3), FLOATS(1, 2, 3, 10, 20, 30)), NULL, 1);
  backward(group, floats(SHAPE(2, 3), FLOATS(1, 1, 1, 1, 1, 1)));
  ok(cohort_group_update(group, optimizer, COHORT_UPDATE_PER_DEVICE));
  for (device = 0; device < 2; ++device) {
    holds_free(device_array(group, COHORT_GROUP_GRADS, 0, (size_t)device), 132, 264, 396);
    holds_free(device_array(group, COHORT_GROUP_GRADS, 1, (size_t)device), 231, 462, 693);
  }
  cohort_group_free(group);
  cohort_optimizer_free(optimizer);
  ok(cohort_custom_unregister("slow"));
  end(&self);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_sum_does_not_take_the_place_of_what_is_still_read),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
