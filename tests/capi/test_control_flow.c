/* SPDX-License-Identifier: Apache-2.0 */
/* Loops and branches, whose nodes contain graphs: composed, saved and loaded, run and differentiated; and refused where
 * they are invalid. */
#include "support/scale_op.h"

/* Frees the symbols, which end with NULL. */
static cohort_symbol *group_of(cohort_symbol *const *symbols) {
  cohort_symbol *all = NULL;
  size_t count = 0, i;

  while (symbols[count]) ++count;
  ok(cohort_symbol_group(symbols, count, &all));
  for (i = 0; i < count; ++i) cohort_symbol_free(symbols[i]);
  return all;
}

static cohort_symbol *scalar(const char *op, const char *value, cohort_symbol *x) {
  return node(op, NULL, ATTRS("scalar", value), INPUTS(x));
}

static cohort_symbol *sum(cohort_symbol *a, cohort_symbol *b) {
  return node("elemwise_add", NULL, NO_ATTRS, INPUTS(a, b));
}
static cohort_symbol *product(cohort_symbol *a, cohort_symbol *b) {
  return node("elemwise_mul", NULL, NO_ATTRS, INPUTS(a, b));
}

/* row -> s = state + row * w: an output, and the next state. */
static cohort_symbol *running_sum(void) {
  cohort_symbol *s = sum(variable("state"), product(variable("row"), variable("w"))), *same = NULL;

  ok(cohort_symbol_output(s, 0, &same));
  return group_of(INPUTS(s, same));
}

/* A loop over a body with the inputs state, row, w and two outputs, the second of which is the next state. */
static cohort_symbol *loop_over(cohort_symbol *body, cohort_symbol *data) {
  return node("_foreach", "loop",
              ATTRS("num_outputs", "2", "num_out_data", "1", "in_data_locs", "(1,)", "in_state_locs", "(0,)",
                    "remain_locs", "(2,)"),
              INPUTS(body, data, variable("start"), variable("w")));
}

/* The same symbol, rebuilt from its JSON; frees it. */
static cohort_symbol *through_json(cohort_symbol *symbol) {
  const char *json = NULL;
  cohort_symbol *loaded = NULL;

  ok(cohort_symbol_to_json(symbol, &json));
  ok(cohort_symbol_from_json(json, strlen(json), &loaded));
  cohort_symbol_free(symbol);
  return loaded;
}

static void backward_of(cohort_executor *executor, cohort_ndarray *first, cohort_ndarray *second) {
  cohort_ndarray *grads[2];

  grads[0] = first;
  grads[1] = second;
  ok(cohort_executor_backward(executor, grads, second ? 2 : 1, 1));
  cohort_ndarray_free(first);
  cohort_ndarray_free(second);
}

/* Rows go in, rows come out, the state is carried on; gradients reach data, state and what all iterations read. */
static void a_loop_over_rows_is_run_and_differentiated(void **state) {
  int saved;

  (void)state;
  for (saved = 0; saved < 2; ++saved) {
    cohort_symbol *symbol = loop_over(running_sum(), variable("data"));
    cohort_executor *executor;

    if (saved) symbol = through_json(through_json(symbol));
    executor = simple_bind_with(symbol, desc("data", SHAPE(3, 2), NULL), "write");
    set_arg(executor, "data", 1, 2, 3, 4, 5, 6);
    set_arg(executor, "start", 10, 20);
    set_arg(executor, "w", 1, -1);
    ok(cohort_executor_forward(executor, 1));
    holds_free(output_of(executor, 0), 11, 18, 14, 14, 19, 8);
    holds_free(output_of(executor, 1), 19, 8);
    backward_of(executor, floats(SHAPE(3, 2), FLOATS(1, 1, 0, 0, 0, 2)), floats(SHAPE(2), FLOATS(1, 0)));
    holds_free(grad_of(executor, "data"), 2, -3, 1, -2, 1, -2);
    holds_free(grad_of(executor, "start"), 2, 3);
    holds_free(grad_of(executor, "w"), 1 * 2 + 3 + 5, 2 * 3 + 4 * 2 + 6 * 2);
    ok(cohort_executor_forward(executor, 0));
    holds_free(output_of(executor, 1), 19, 8);
    cohort_executor_free(executor);
  }
}

/* Without rows the final state is the initial one. */
static void a_loop_over_nothing_passes_the_state_on(void **state) {
  static const int32_t reqs[] = {COHORT_GRAD_WRITE, COHORT_GRAD_WRITE, COHORT_GRAD_WRITE};
  cohort_symbol *symbol = loop_over(running_sum(), variable("data"));
  cohort_ndarray *args[3], *grads[3]; /* data, start, w */
  cohort_executor *executor = NULL;
  size_t i;

  (void)state;
  for (i = 0; i < 3; ++i) {
    args[i] = i == 0 ? counted(SHAPE(0, 2), 1) : counted(SHAPE(2), 10);
    grads[i] = i == 0 ? counted(SHAPE(0, 2), 1) : counted(SHAPE(2), 1);
  }
  ok(cohort_executor_bind(symbol, NULL, args, 3, grads, reqs, NULL, 0, NULL, &executor));
  cohort_symbol_free(symbol);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 1), 0, 10);
  backward_of(executor, counted(SHAPE(0, 2), 1), floats(SHAPE(2), FLOATS(3, 4)));
  holds(grads[1], 3, 4);
  holds(grads[2], 0, 0);
  for (i = 0; i < 3; ++i) {
    cohort_ndarray_free(args[i]);
    cohort_ndarray_free(grads[i]);
  }
  cohort_executor_free(executor);
}

/* DEF-39: p becomes q times the row, q becomes q + p; gradients of each flow back through both. */
static void states_feed_each_other(void **state) {
  cohort_symbol *p = variable("p"), *q = variable("q"), *p_again = NULL, *q_again = NULL, *body, *loop;
  cohort_ndarray *grads[3];
  cohort_executor *executor;
  size_t i;

  (void)state;
  ok(cohort_symbol_output(p, 0, &p_again));
  ok(cohort_symbol_output(q, 0, &q_again));
  body = group_of(INPUTS(scalar("_mul_scalar", "2", p), product(q, variable("row")), sum(q_again, p_again)));
  loop = node("_foreach", "loop",
              ATTRS("num_outputs", "3", "num_out_data", "1", "in_data_locs", "(2,)", "in_state_locs", "(0, 1)",
                    "remain_locs", "()"),
              INPUTS(body, variable("data"), variable("p"), variable("q")));
  executor = simple_bind_with(loop, desc("data", SHAPE(2, 1), NULL), "write");
  set_arg(executor, "data", 3, 5);
  set_arg(executor, "p", 7);
  set_arg(executor, "q", 11);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 14, 66);
  holds_free(output_of(executor, 1), (11 + 7) * 5);
  holds_free(output_of(executor, 2), 11 + 7 + 11 * 3);
  grads[0] = floats(SHAPE(2, 1), FLOATS(0, 0));
  grads[1] = floats(SHAPE(1), FLOATS(1));
  grads[2] = floats(SHAPE(1), FLOATS(10));
  ok(cohort_executor_backward(executor, grads, 3, 1));
  holds_free(grad_of(executor, "p"), 5 + 10);
  holds_free(grad_of(executor, "q"), 5 + 10 * (1 + 3));
  holds_free(grad_of(executor, "data"), 10 * 11, 11 + 7);
  for (i = 0; i < 3; ++i) cohort_ndarray_free(grads[i]);
  cohort_executor_free(executor);
}

/* Shapes and types are inferred from a sub-graph outwards and into it from outside. */
static void inference_goes_both_ways(void **state) {
  cohort_symbol *symbol = loop_over(running_sum(), variable("data"));
  cohort_descs *known = NULL;
  cohort_executor *executor;

  (void)state;
  ok(cohort_descs_create(&known));
  ok(cohort_descs_add(known, "w", SHAPE(4), COHORT_DTYPE_FLOAT64, NULL));
  ok(cohort_descs_add(known, "data", SHAPE(5, 0), COHORT_DTYPE_NONE, NULL));
  executor = simple_bind_with(symbol, known, NULL);
  {
    cohort_ndarray *data = arg_of(executor, "data"), *rows = output_of(executor, 0);

    has_shape(data, 5, 4);
    has_shape(rows, 5, 4);
    assert_int_equal(dtype_of(data), COHORT_DTYPE_FLOAT64);
    assert_int_equal(dtype_of(rows), COHORT_DTYPE_FLOAT64);
    cohort_ndarray_free(data);
    cohort_ndarray_free(rows);
  }
  cohort_executor_free(executor);
  known = desc("data", SHAPE(5, 4), NULL);
  add_desc(known, "w", SHAPE(3), NULL);
  fails(try_simple_bind(&executor, loop_over(running_sum(), variable("data")), known, NULL), COHORT_ERROR_SHAPE,
        "node 'loop' (_foreach)");
}

/* Rows of (time, batch) are split over devices along the batch. */
static void a_group_splits_the_batch_of_a_loop(void **state) {
  cohort_symbol *s = sum(variable("state"), variable("row")), *same = NULL, *loop, *last = NULL;
  cohort_descs *data = desc("data", SHAPE(2, 4), "TN");
  cohort_ndarray *arrays[2];
  cohort_group *group;

  (void)state;
  ok(cohort_symbol_output(s, 0, &same));
  loop = node("_foreach", "loop",
              ATTRS("num_outputs", "2", "num_out_data", "1", "in_data_locs", "[1]", "in_state_locs", "[0]",
                    "remain_locs", "[]"),
              INPUTS(group_of(INPUTS(s, same)), variable("data"), variable("start")));
  ok(cohort_symbol_output(loop, 1, &last));
  cohort_symbol_free(loop);
  add_desc(data, "start", SHAPE(4), "N");
  group = bind_for_inference(last, 2, data, NULL, NO_NAMES, NULL);
  arrays[0] = counted(SHAPE(2, 4), 1);
  arrays[1] = counted(SHAPE(4), 10);
  ok(cohort_group_forward(group, arrays, 2, NULL, 0, 0));
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 4, 16, 28, 40);
  cohort_ndarray_free(arrays[0]);
  cohort_ndarray_free(arrays[1]);
  cohort_group_free(group);
}

/* ---- random, stateful and custom operators inside
 * ------------------------------------------------------------------ */

/* Each iteration draws its own numbers, and backward uses those of the same iteration. */
static void passes_draw_numbers_of_their_own(void **state) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  float drawn[2][256], first[256], grads[256];
  int time, i, same;

  (void)state;
  options.grad_req = "write";
  options.seed = 5;
  for (time = 0; time < 2; ++time) { /* the same again */
    cohort_symbol *body = node("Dropout", "drop", ATTRS("p", "0.5"), INPUTS(variable("row")));
    cohort_symbol *loop = node("_foreach", "loop",
                               ATTRS("num_outputs", "1", "num_out_data", "1", "in_data_locs", "(0,)", "in_state_locs",
                                     "()", "remain_locs", "()"),
                               INPUTS(body, variable("data")));
    cohort_executor *executor = simple_bind(loop, desc("data", SHAPE(2, 128), NULL), &options);
    cohort_ndarray *array = arg_of(executor, "data");
    int pass;

    fill(array, 1);
    for (pass = 0; pass < 2; ++pass) {
      ok(cohort_executor_forward(executor, 1));
      array = output_of(executor, 0);
      ok(cohort_ndarray_read(array, drawn[pass], sizeof drawn[0]));
      cohort_ndarray_free(array);
      for (i = 0; i < 256; ++i) grads[i] = 1;
      backward_of(executor, floats(SHAPE(2, 128), grads, 256), NULL);
      array = grad_of(executor, "data");
      ok(cohort_ndarray_read(array, grads, sizeof grads));
      cohort_ndarray_free(array);
      assert_memory_equal(grads, drawn[pass], sizeof grads);
      for (i = same = 0; i < 128; ++i) same += drawn[pass][i] == drawn[pass][128 + i];
      assert_in_range(same, 32, 96); /* rows are independent of each other */
    }
    for (i = same = 0; i < 256; ++i) same += drawn[0][i] == drawn[1][i];
    assert_in_range(same, 64, 192); /* passes, too */
    if (time == 0) memcpy(first, drawn[0], sizeof first);
    assert_memory_equal(first, drawn[0], sizeof first);
    cohort_executor_free(executor);
  }
}

/* An auxiliary state inside the body is an argument of the loop, which training updates once per iteration. */
static void training_moves_states_once_a_pass(void **state) {
  cohort_symbol *body =
      node("BatchNorm", "bn", ATTRS("momentum", "0.5", "fix_gamma", "False"), INPUTS(variable("row")));
  cohort_symbol *loop =
      node("_foreach", "loop",
           ATTRS("num_outputs", "1", "num_out_data", "1", "in_data_locs", "(0,)", "in_state_locs", "()", "remain_locs",
                 "(1, 2, 3, 4)"),
           INPUTS(body, variable("data"), variable("gamma"), variable("beta"), variable("mean"), variable("var")));
  cohort_executor *executor = simple_bind_with(loop, desc("data", SHAPE(2, 2, 1), NULL), "write");

  (void)state;
  set_arg(executor, "data", 1, 3, 5, 7); /* means 2 and 6, variances 1 */
  set_arg(executor, "gamma", 1);
  set_arg(executor, "var", 1);
  ok(cohort_executor_forward(executor, 0));
  holds_free(arg_of(executor, "mean"), 0);
  ok(cohort_executor_forward(executor, 1));
  holds_free(arg_of(executor, "mean"), 0.5f * (0.5f * 2) + 0.5f * 6);
  backward_of(executor, floats(SHAPE(2, 2, 1), FLOATS(1, 2, 3, 4)), NULL);
  holds_free(grad_of(executor, "beta"), 10);
  holds_free(grad_of(executor, "mean"), 0);
  holds_free(arg_of(executor, "mean"), 3.5f);
  cohort_executor_free(executor);
}

/* A custom operator in a body is called for each iteration, on the caller's thread. */
static void an_operator_of_the_hosts_runs_inside(void **state) {
  host self;
  cohort_symbol *loop;
  cohort_executor *executor;

  (void)state;
  begin(&self, 0);
  loop = node("_foreach", "loop",
              ATTRS("num_outputs", "1", "num_out_data", "1", "in_data_locs", "(0,)", "in_state_locs", "()",
                    "remain_locs", "(1,)"),
              INPUTS(scale_node("3", variable("row")), variable("data"), variable("calls")));
  executor = simple_bind_with(loop, desc("data", SHAPE(3, 2), NULL), "write");
  set_arg(executor, "data", 1, 2, 3, 4, 5, 6);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 3, 6, 9, 12, 15, 18);
  backward_of(executor, floats(SHAPE(3, 2), FLOATS(1, 0, 0, 0, 0, 2)), NULL);
  holds_free(grad_of(executor, "data"), 3, 0, 0, 0, 0, 6);
  assert_int_equal(self.num_forward, 3);
  assert_int_equal(self.num_backward, 3);
  assert_int_equal(self.on_other_threads, 0);
  self.fail_forward = 1;
  fails(cohort_executor_forward(executor, 1), COHORT_ERROR_EXECUTION, "Custom 'scale'");
  cohort_executor_free(executor);
  end(&self);
}

/* ---- loops with a condition, branches -----------------------------------------------------------------------------
 */

/* While x < limit: x is an output, x + x the next x. */
static cohort_symbol *doubling(const char *most) {
  cohort_symbol *cond = node("_lesser", NULL, NO_ATTRS, INPUTS(variable("x"), variable("limit")));
  cohort_symbol *x = variable("x"), *same = NULL, *func;

  ok(cohort_symbol_output(x, 0, &same));
  func = group_of(INPUTS(scalar("_mul_scalar", "3", x), scalar("_mul_scalar", "2", same)));
  return node("_while_loop", "loop",
              ATTRS("num_outputs", "2", "num_out_data", "1", "max_iterations", most, "cond_input_locs", "(0, 1)",
                    "func_input_locs", "(0,)", "func_var_locs", "(0,)"),
              INPUTS(cond, func, variable("x"), variable("limit")));
}

/* DEF-40: the condition decides how many iterations run; the other rows are 0, and their gradients flow nowhere. */
static void a_loop_ends_by_its_condition(void **state) {
  cohort_executor *executor;
  (void)state;
  executor = simple_bind_with(through_json(doubling("4")), desc("x", SHAPE(1), NULL), "write");

  set_arg(executor, "x", 1);
  set_arg(executor, "limit", 3);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 3, 6, 0, 0);
  holds_free(output_of(executor, 1), 4);
  backward_of(executor, floats(SHAPE(4, 1), FLOATS(1, 1, 100, 100)), floats(SHAPE(1), FLOATS(1)));
  holds_free(grad_of(executor, "x"), 3 + 6 + 4);
  holds_free(grad_of(executor, "limit"), 0);
  set_arg(executor, "limit", 100);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 3, 6, 12, 24);
  holds_free(output_of(executor, 1), 16);
  backward_of(executor, floats(SHAPE(4, 1), FLOATS(0, 0, 0, 1)), floats(SHAPE(1), FLOATS(1)));
  holds_free(grad_of(executor, "x"), 24 + 16);
  set_arg(executor, "limit", 0);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 0, 0, 0, 0);
  holds_free(output_of(executor, 1), 1);
  backward_of(executor, floats(SHAPE(4, 1), FLOATS(1, 1, 1, 1)), floats(SHAPE(1), FLOATS(7)));
  holds_free(grad_of(executor, "x"), 7);
  ok(cohort_executor_forward(executor, 0));
  holds_free(output_of(executor, 1), 1);
  cohort_executor_free(executor);
}

/* pred ? a * b : a - b. */
static cohort_symbol *branches(void) {
  return node(
      "_cond", "choice",
      ATTRS("num_outputs", "1", "cond_input_locs", "(0,)", "then_input_locs", "(1, 2)", "else_input_locs", "(1, 2)"),
      INPUTS(variable("p"), product(variable("a"), variable("b")),
             node("elemwise_sub", NULL, NO_ATTRS, INPUTS(variable("a"), variable("b"))), variable("pred"),
             variable("a"), variable("b")));
}

/* One of two branches runs, chosen by a value of any type, and gradients flow through it only. */
static void a_branch_is_chosen_when_it_is_run(void **state) {
  static const int32_t dtypes[] = {COHORT_DTYPE_FLOAT32, COHORT_DTYPE_INT32, COHORT_DTYPE_BOOL, COHORT_DTYPE_FLOAT16};
  size_t d;

  (void)state;
  for (d = 0; d < COUNT(dtypes); ++d) {
    cohort_descs *known = desc("a", SHAPE(2), NULL);
    cohort_executor *executor;
    cohort_ndarray *pred;

    add_typed(known, "pred", SHAPE(1), dtypes[d]);
    executor = simple_bind_with(through_json(branches()), known, "write");
    pred = arg_of(executor, "pred");
    set_arg(executor, "a", 2, 3);
    set_arg(executor, "b", 5, 7);
    ok(cohort_ndarray_fill(pred, 1));
    ok(cohort_executor_forward(executor, 1));
    holds_free(output_of(executor, 0), 10, 21);
    backward_of(executor, floats(SHAPE(2), FLOATS(1, 2)), NULL);
    holds_free(grad_of(executor, "a"), 5, 14);
    holds_free(grad_of(executor, "b"), 2, 6);
    ok(cohort_ndarray_fill(pred, 0));
    ok(cohort_executor_forward(executor, 1));
    holds_free(output_of(executor, 0), -3, -4);
    backward_of(executor, floats(SHAPE(2), FLOATS(1, 2)), NULL);
    holds_free(grad_of(executor, "a"), 1, 2);
    holds_free(grad_of(executor, "b"), -1, -2);
    cohort_ndarray_free(pred);
    cohort_executor_free(executor);
  }
}

/* A branch in a loop: each row takes its own branch, and so do its gradients. */
static void graphs_are_nested(void **state) {
  cohort_symbol *inside =
      node("_cond", "choice",
           ATTRS("num_outputs", "1", "cond_input_locs", "(0,)", "then_input_locs", "(1,)", "else_input_locs", "(0,)"),
           INPUTS(scalar("_greater_scalar", "0", variable("r")), scalar("_mul_scalar", "10", variable("s")),
                  scalar("_mul_scalar", "2", variable("r")), variable("row"), variable("state")));
  cohort_symbol *same = NULL, *loop;
  cohort_executor *executor;

  (void)state;
  ok(cohort_symbol_output(inside, 0, &same));
  loop = node("_foreach", "loop",
              ATTRS("num_outputs", "2", "num_out_data", "1", "in_data_locs", "(0,)", "in_state_locs", "(1,)",
                    "remain_locs", "()"),
              INPUTS(group_of(INPUTS(inside, same)), variable("data"), variable("start")));
  executor = simple_bind_with(through_json(loop), desc("data", SHAPE(4, 1), NULL), "add");
  set_arg(executor, "data", 1, -4, 5, 6);
  set_arg(executor, "start", 3);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 30, -8, -80, -800);
  backward_of(executor, floats(SHAPE(4, 1), FLOATS(1, 0, 0, 1)), floats(SHAPE(1), FLOATS(1)));
  holds_free(grad_of(executor, "data"), 0, 400, 0, 0);
  holds_free(grad_of(executor, "start"), 10);
  cohort_executor_free(executor);
}

/* Equal networks share a plan; networks whose inner graphs differ do not. */
static void networks_with_other_graphs_are_other_ones(void **state) {
  static const char *const ops[] = {"negative", "square", "negative"};
  static const float results[] = {-3, 9, -3};
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(ops); ++i) {
    cohort_symbol *loop = node("_foreach", "loop",
                               ATTRS("num_outputs", "1", "num_out_data", "1", "in_data_locs", "(0,)", "in_state_locs",
                                     "()", "remain_locs", "()"),
                               INPUTS(node(ops[i], "body", NO_ATTRS, INPUTS(variable("row"))), variable("data")));
    cohort_executor *executor = simple_bind_with(loop, desc("data", SHAPE(1, 1), NULL), NULL);

    set_arg(executor, "data", 3);
    ok(cohort_executor_forward(executor, 0));
    holds_free(output_of(executor, 0), results[i]);
    cohort_executor_free(executor);
  }
}

/* An inner graph may be a node of its own (a call); the attributes by which MXNet chooses how to run it have no
 * effect. */
static void a_whole_graph_is_one_node(void **state) {
  cohort_symbol *b = variable("b"), *same = NULL, *symbol;
  cohort_executor *executor;

  (void)state;
  ok(cohort_symbol_output(b, 0, &same));
  symbol = node("_CachedOp", "net", ATTRS("static_alloc", "True"),
                INPUTS(group_of(INPUTS(product(variable("a"), b), same)), variable("x"), variable("y")));
  executor = simple_bind_with(through_json(symbol), desc("x", SHAPE(2), NULL), "write");
  set_arg(executor, "x", 2, 3);
  set_arg(executor, "y", 5, 7);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 10, 21);
  holds_free(output_of(executor, 1), 5, 7);
  backward_of(executor, floats(SHAPE(2), FLOATS(1, 2)), floats(SHAPE(2), FLOATS(100, 200)));
  holds_free(grad_of(executor, "x"), 5, 14);
  holds_free(grad_of(executor, "y"), 102, 206);
  cohort_executor_free(executor);
}

/* Statistics of the whole batch cannot be exchanged inside a node: several devices are refused, with the node's
 * name. */
static void a_norm_over_devices_is_refused_inside(void **state) {
  cohort_symbol *norm = node("_contrib_SyncBatchNorm", "bn", ATTRS("key", "bn"), INPUTS(variable("a"))), *symbol;
  cohort_group *group = NULL;

  (void)state;
  symbol = node("_CachedOp", "net", NO_ATTRS,
                INPUTS(norm, variable("data"), variable("gamma"), variable("beta"), variable("mean"), variable("var")));
  fails(try_bind(&group, symbol, 2, desc("data", SHAPE(4, 3), NULL), NULL, NO_NAMES, NULL), COHORT_ERROR_UNSUPPORTED,
        "'net'");
  assert_null(group);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------
 */

#define BODY                                                                                              \
  "{\"nodes\": [{\"op\": \"null\", \"name\": \"r\", \"inputs\": []}, {\"op\": \"exp\", \"name\": \"e\", " \
  "\"inputs\": [[0, 0, 0]]}], \"arg_nodes\": [0], \"node_row_ptr\": [0, 1, 2], \"heads\": [[1, 0, 0]]}"
#define LOCS(data, state, remain) \
  "\"in_data_locs\": \"" data "\", \"in_state_locs\": \"" state "\", \"remain_locs\": \"" remain "\""

static cohort_error *load(const char *attrs, const char *inputs, const char *subgraphs) {
  char json[4096];
  cohort_symbol *symbol = NULL;

  snprintf(json, sizeof json,
           "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}, {\"op\": \"_foreach\", \"name\": "
           "\"loop\", \"attrs\": {%s}, \"inputs\": [%s]%s}], \"arg_nodes\": [0], \"node_row_ptr\": [0, 1, 2], "
           "\"heads\": [[1, 0, 0]], \"attrs\": {\"mxnet_version\": [\"int\", 10901]}}",
           attrs, inputs, subgraphs);
  {
    cohort_error *error = cohort_symbol_from_json(json, strlen(json), &symbol);

    cohort_symbol_free(symbol);
    return error;
  }
}

static void files_with_bad_sub_graphs_are_refused(void **state) {
#define ONE "\"num_args\": \"2\", \"num_outputs\": \"1\", \"num_out_data\": \"1\", "
#define SUBGRAPHS(list) ", \"subgraphs\": [" list "]"
  char deep[8192], *end = deep;
  int level;

  (void)state;
  ok(load(ONE LOCS("[0]", "[]", "[]"), "[0, 0, 0]", SUBGRAPHS(BODY)));
  fails(load(ONE LOCS("[0]", "[]", "[]"), "[0, 0, 0]", ""), COHORT_ERROR_FORMAT,
        "node 'loop' (_foreach): operator _foreach: expected 1 sub-graphs, found 0");
  fails(load(ONE LOCS("[0]", "[]", "[]"), "[0, 0, 0]", SUBGRAPHS(BODY ", " BODY)), COHORT_ERROR_FORMAT,
        "expected 1 sub-graphs, found 2");
  fails(load(ONE LOCS("[0]", "[]", "[]"), "[0, 0, 0]", SUBGRAPHS("7")), COHORT_ERROR_FORMAT, "expected an object");
  fails(load(ONE LOCS("[0]", "[]", "[]"), "[0, 0, 0]", ", \"subgraphs\": {}"), COHORT_ERROR_FORMAT,
        "expected an array");
  /* A node that contains the graph. */
  fails(load(ONE LOCS("[0]", "[]", "[]"), "[0, 0, 0]",
             SUBGRAPHS("{\"nodes\": [{\"op\": \"exp\", \"name\": \"e\", \"inputs\": [[1, 0, 0]]}], \"arg_nodes\": [], "
                       "\"node_row_ptr\": [0, 1], \"heads\": [[0, 0, 0]]}")),
        COHORT_ERROR_FORMAT, "nodes[1] 'loop'.subgraphs[0]: nodes[0] 'e'.inputs: expected a whole number from 0 to 0");
  fails(load(ONE LOCS("[0]", "[]", "[]"), "", SUBGRAPHS(BODY)), COHORT_ERROR_FORMAT, "expected 1 inputs, found 0");
  fails(load(ONE LOCS("[0]", "[]", "[]"), "[0, 0, 0], [0, 0, 0]", SUBGRAPHS(BODY)), COHORT_ERROR_FORMAT,
        "expected 1 inputs, found 2");
  fails(load(ONE LOCS("[0]", "[]", "[1]"), "[0, 0, 0]", SUBGRAPHS(BODY)), COHORT_ERROR_FORMAT, "found 1");
  fails(load(ONE LOCS("[-1]", "[]", "[]"), "[0, 0, 0]", SUBGRAPHS(BODY)), COHORT_ERROR_FORMAT, "found -1");
  fails(load(ONE LOCS("[0]", "[0]", "[]"), "[0, 0, 0]", SUBGRAPHS(BODY)), COHORT_ERROR_FORMAT, "each input once");
  fails(load(ONE LOCS("[]", "[]", "[0]"), "[0, 0, 0]", SUBGRAPHS(BODY)), COHORT_ERROR_FORMAT, "in_data_locs");
  fails(load(ONE LOCS("[0]", "x", "[]"), "[0, 0, 0]", SUBGRAPHS(BODY)), COHORT_ERROR_FORMAT, "in_state_locs");
  fails(load("\"num_args\": \"7\", \"num_outputs\": \"1\", \"num_out_data\": \"1\", " LOCS("[0]", "[]", "[]"),
             "[0, 0, 0]", SUBGRAPHS(BODY)),
        COHORT_ERROR_FORMAT, "num_args: expected 2, found 7");
  fails(load("\"num_args\": \"2\", \"num_outputs\": \"9\", \"num_out_data\": \"9\", " LOCS("[0]", "[]", "[]"),
             "[0, 0, 0]", SUBGRAPHS(BODY)),
        COHORT_ERROR_FORMAT, "outputs of the sub-graph: expected 9, found 1");
  fails(load("\"num_args\": \"2\", \"num_outputs\": \"1\", \"num_out_data\": \"-1\", " LOCS("[0]", "[]", "[]"),
             "[0, 0, 0]", SUBGRAPHS(BODY)),
        COHORT_ERROR_FORMAT, "num_out_data");
  /* One error lists all missing operators, at any depth. */
  fails(load(ONE LOCS("[0]", "[]", "[]"), "[0, 0, 0]",
             SUBGRAPHS("{\"nodes\": [{\"op\": \"null\", \"name\": \"r\", \"inputs\": []}, {\"op\": \"NoSuchOne\", "
                       "\"name\": \"e\", \"inputs\": [[0, 0, 0]]}], \"arg_nodes\": [0], \"node_row_ptr\": [0, 1, 2], "
                       "\"heads\": [[1, 0, 0]]}")),
        COHORT_ERROR_FORMAT, "node 'e' (NoSuchOne)");
  /* Too deep. */
  for (level = 0; level < 20; ++level) {
    end += sprintf(end,
                   "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}, {\"op\": \"_foreach\", "
                   "\"name\": \"l\", \"attrs\": {" ONE LOCS("[0]", "[]", "[]") "}, \"inputs\": [[0, 0, 0]], "
                   "\"subgraphs\": [");
  }
  end += sprintf(end, BODY);
  for (level = 0; level < 20; ++level) {
    end += sprintf(end, "]}], \"arg_nodes\": [0], \"node_row_ptr\": [0, 1, 2], \"heads\": [[1, 0, 0]]}");
  }
  {
    cohort_symbol *symbol = NULL;

    fails(cohort_symbol_from_json(deep, strlen(deep), &symbol), COHORT_ERROR_FORMAT, "levels");
  }
}

static void invalid_loops_are_refused(void **state) {
  cohort_symbol *symbol = NULL, *body = running_sum(), *inputs[4];
  const char *keys[] = {"num_outputs", "num_out_data", "in_data_locs", "in_state_locs", "remain_locs"};
  const char *values[] = {"2", "1", "(1,)", "(0,)", "(2,)"};
  cohort_ndarray *x = counted(SHAPE(2, 2), 1);
  cohort_arrays *results = NULL;
  int level;

  (void)state;
  fails(cohort_symbol_create("_foreach", "l", keys, values, 5, NULL, NULL, 0, &symbol), COHORT_ERROR_INVALID_ARGUMENT,
        "expected 1 to");
  fails(cohort_operator_invoke("_foreach", keys, values, 5, &x, 1, NULL, 0, NULL, &results),
        COHORT_ERROR_INVALID_ARGUMENT, "expected 1 sub-graphs, found 0");
  inputs[0] = body;
  inputs[1] = variable("data");
  inputs[2] = variable("start");
  inputs[3] = variable("w");
  values[1] = "2";
  fails(cohort_symbol_create("_foreach", "l", keys, values, 5, inputs, NULL, 4, &symbol), COHORT_ERROR_INVALID_ARGUMENT,
        "num_out_data: expected 1, found 2");
  for (level = 1; level < 4; ++level) cohort_symbol_free(inputs[level]);
  cohort_symbol_free(body);
  cohort_ndarray_free(x);
  /* Graphs nested several levels deep. */
  symbol = node("exp", NULL, NO_ATTRS, INPUTS(variable("r")));
  for (level = 0; level < 8; ++level) {
    symbol = node("_foreach", NULL,
                  ATTRS("num_outputs", "1", "num_out_data", "1", "in_data_locs", "(0,)", "in_state_locs", "()",
                        "remain_locs", "()"),
                  INPUTS(symbol, variable("r")));
  }
  symbol = through_json(symbol);
  {
    const char *some[] = {"1", "1", "(0,)", "()", "()"};
    cohort_symbol *outer = NULL;

    inputs[0] = symbol;
    inputs[1] = variable("r");
    fails(cohort_symbol_create("_foreach", "l", keys, some, 5, inputs, NULL, 2, &outer), COHORT_ERROR_INVALID_ARGUMENT,
          "at most 8 levels of nested graphs");
    cohort_symbol_free(inputs[1]);
  }
  cohort_symbol_free(symbol);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_loop_over_rows_is_run_and_differentiated),
      TEST(a_loop_over_nothing_passes_the_state_on),
      TEST(states_feed_each_other),
      TEST(inference_goes_both_ways),
      TEST(a_group_splits_the_batch_of_a_loop),
      TEST(passes_draw_numbers_of_their_own),
      TEST(training_moves_states_once_a_pass),
      TEST(an_operator_of_the_hosts_runs_inside),
      TEST(a_loop_ends_by_its_condition),
      TEST(a_branch_is_chosen_when_it_is_run),
      TEST(graphs_are_nested),
      TEST(networks_with_other_graphs_are_other_ones),
      TEST(a_whole_graph_is_one_node),
      TEST(a_norm_over_devices_is_refused_inside),
      TEST(files_with_bad_sub_graphs_are_refused),
      TEST(invalid_loops_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
