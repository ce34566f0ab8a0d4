/* SPDX-License-Identifier: Apache-2.0 */
/* Operands without gradients and outputs that nobody reads: the results that are asked for are right and complete. */
#include <math.h>

#include "support/executor_tests.h"

#define LENGTH 6
static const float xs[LENGTH] = {-1.5f, -0.5f, 0.25f, 0.5f, 1.0f, 2.0f}, ls[LENGTH] = {1, 0, 1, -2, 0.5f, 3};

/* A function of x and l, and its derivative with respect to x. */
struct masked {
  cohort_symbol *(*make)(void);
  double (*slope)(double x, double l);
};

static cohort_symbol *unary(const char *op, cohort_symbol *x) { return node(op, op, NO_ATTRS, INPUTS(x)); }
static cohort_symbol *binary(const char *op, const char *name, cohort_symbol *a, cohort_symbol *b) {
  return node(op, name, NO_ATTRS, INPUTS(a, b));
}
static cohort_symbol *scalar(const char *op, const char *value, cohort_symbol *x) {
  return node(op, op, ATTRS("scalar", value), INPUTS(x));
}
static cohort_symbol *product(const char *name) { return binary("elemwise_mul", name, variable("l"), variable("x")); }
/* A second handle on the same node. */
static cohort_symbol *again(const cohort_symbol *symbol) {
  cohort_symbol *same = NULL;

  ok(cohort_symbol_output(symbol, 0, &same));
  return same;
}

static cohort_symbol *negative(void) { return unary("negative", product("m")); }
static double negative_slope(double x, double l) { return (void)x, -l; }
static cohort_symbol *exponential(void) { return unary("exp", product("m")); }
static double exponential_slope(double x, double l) { return l * exp(l * x); }
static cohort_symbol *hinge(void) { return unary("relu", scalar("_rminus_scalar", "1", product("m"))); }
static double hinge_slope(double x, double l) { return l * x < 1 ? -l : 0; }
static cohort_symbol *difference(void) {
  return unary("tanh", binary("elemwise_sub", "d", variable("l"), variable("x")));
}
static double difference_slope(double x, double l) { return tanh(l - x) * tanh(l - x) - 1; }
static cohort_symbol *quotient(void) {
  return unary("negative", binary("elemwise_div", "d", variable("l"), variable("x")));
}
static double quotient_slope(double x, double l) { return l / (x * x); }
static cohort_symbol *blocked(void) {
  cohort_symbol *x = variable("x");
  cohort_symbol *still = unary("BlockGrad", again(x));

  return unary("negative", binary("elemwise_mul", "m", binary("elemwise_mul", "n", still, x), variable("l")));
}
static double blocked_slope(double x, double l) { return -l * x; }
static cohort_symbol *compared(void) {
  cohort_symbol *x = variable("x");
  cohort_symbol *positive = scalar("_greater_scalar", "0", again(x));

  return binary("elemwise_mul", "p", binary("elemwise_mul", "m", positive, x), variable("l"));
}
static double compared_slope(double x, double l) { return x > 0 ? l : 0; }
/* mask * a + (1 - mask) * b, with a = x^2, b = -x and a mask of its own. */
static cohort_symbol *mixed(void) {
  cohort_symbol *x = variable("x"), *mask = scalar("_greater_scalar", "0", variable("l"));
  cohort_symbol *rest = scalar("_rminus_scalar", "1", again(mask));
  cohort_symbol *square = unary("square", again(x));

  return binary("elemwise_add", "s", binary("elemwise_mul", "m", mask, square),
                binary("elemwise_mul", "n", rest, unary("negative", x)));
}
static double mixed_slope(double x, double l) { return l > 0 ? 2 * x : -1; }

/* The gradient of x where l wants none. */
static void an_operand_without_gradient_spoils_none(void **state) {
  static const struct masked nets[] = {{negative, negative_slope}, {exponential, exponential_slope},
                                       {hinge, hinge_slope},       {difference, difference_slope},
                                       {quotient, quotient_slope}, {blocked, blocked_slope},
                                       {compared, compared_slope}, {mixed, mixed_slope}};
  static const char *const names[] = {"x"}, *const reqs[] = {"write"};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  size_t n, i;

  (void)state;
  options.grad_req_list = reqs;
  options.grad_req_names = names;
  options.num_grad_reqs = 1;
  for (n = 0; n < COUNT(nets); ++n) {
    cohort_descs *known = desc("x", SHAPE(LENGTH), NULL);
    cohort_executor *executor;
    cohort_ndarray *grad;
    float expected[LENGTH];

    add_desc(known, "l", SHAPE(LENGTH), NULL);
    executor = simple_bind(nets[n].make(), known, &options);
    set_array(executor, COHORT_EXECUTOR_ARGS, "x", xs, LENGTH);
    set_array(executor, COHORT_EXECUTOR_ARGS, "l", ls, LENGTH);
    for (i = 0; i < LENGTH; ++i) expected[i] = (float)nets[n].slope((double)xs[i], (double)ls[i]);
    ok(cohort_executor_forward(executor, 1));
    ok(try_backward_with(executor, floats(SHAPE(LENGTH), FLOATS(1, 1, 1, 1, 1, 1)), 1));
    grad = grad_of(executor, "x");
    holds_at(grad, expected, LENGTH, __FILE__, __LINE__);
    cohort_ndarray_free(grad);
    cohort_executor_free(executor);
  }
}

static cohort_symbol *output_at(cohort_symbol *symbol, size_t index) {
  cohort_symbol *output = NULL;

  ok(cohort_symbol_output(symbol, index, &output));
  cohort_symbol_free(symbol);
  return output;
}

/* Operators whose result, or whose main result, is used for its shape only. */
static void a_result_may_go_unread(void **state) {
  static const struct {
    const char *op;
    const char *attrs[3];
  } norms[] = {{"LayerNorm", {NULL}}, {"LayerNorm", {"axis", "0", NULL}}, {"GroupNorm", {"num_groups", "1", NULL}},
               {"BatchNorm", {NULL}}, {"InstanceNorm", {NULL}},           {"L2Normalization", {NULL}},
               {"Dropout", {NULL}},   {"LRN", {"nsize", "3", NULL}},      {"softmax", {NULL}}};
  size_t n;
  int train;

  (void)state;
  for (n = 0; n < COUNT(norms); ++n) {
    for (train = 0; train < 2; ++train) {
      cohort_symbol *norm = node(norms[n].op, "norm", norms[n].attrs, INPUTS(variable("y")));
      cohort_descs *known = desc("x", SHAPE(36), NULL);
      cohort_executor *executor;

      add_desc(known, "y", SHAPE(2, 2, 3, 3), NULL);
      executor = simple_bind_with(binary("reshape_like", "like", variable("x"), norm), known, train ? "write" : "null");
      fill(arg_of(executor, "x"), 3);
      ok(cohort_executor_forward(executor, train));
      if (train) ok(try_backward_with(executor, counted(SHAPE(2, 2, 3, 3), 1), 1));
      ok(cohort_executor_wait(executor));
      cohort_executor_free(executor);
    }
  }
}

/* Two outputs, the first of which is not read: y has the mean, z the deviation. */
static void a_second_output_is_made_without_the_first(void **state) {
  size_t head;

  (void)state;
  for (head = 1; head < 3; ++head) {
    cohort_symbol *norm =
        node("LayerNorm", "norm", ATTRS("output_mean_var", "True", "eps", "0"), INPUTS(variable("y")));
    cohort_executor *executor =
        simple_bind_with(unary("negative", output_at(norm, head)), desc("y", SHAPE(2, 3), NULL), NULL);

    set_arg(executor, "y", 1, 2, 3, 4, 6, 8);
    ok(cohort_executor_forward(executor, 0));
    if (head == 1) holds_free(output_of(executor, 0), -2, -6);
    if (head == 2) holds_free(output_of(executor, 0), -0.8164966f, -1.6329932f);
    cohort_executor_free(executor);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(an_operand_without_gradient_spoils_none),
      TEST(a_result_may_go_unread),
      TEST(a_second_output_is_made_without_the_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
