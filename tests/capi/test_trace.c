/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: everything that ran is there, under its name and on its row; nothing else is. */
#include <math.h>
#include <pthread.h>

#include "support/boundary.h"
#include "support/temporary.h"
#include "support/trace_events.h"

/* Rates are given, because measuring them takes time. */
static cohort_trace *make_trace(size_t max_events) {
  cohort_trace_options options = COHORT_TRACE_OPTIONS_INIT;
  cohort_trace *trace = NULL;

  options.max_events = max_events;
  options.flop_per_s = 1e9;
  options.byte_per_s = 1e9;
  ok(cohort_trace_create(&options, &trace));
  return trace;
}

static cohort_trace_info info_of(const cohort_trace *trace) {
  cohort_trace_info info = COHORT_TRACE_INFO_INIT;

  ok(cohort_trace_get_info(trace, &info));
  return info;
}

/* A step of training of small_group(). */
static void train(cohort_group *group, cohort_optimizer *sgd, int64_t batch) {
  const float zeros[24] = {0};
  int64_t shape[2];
  cohort_ndarray *data, *label;

  shape[0] = batch;
  shape[1] = 3;
  data = floats(zeros, shape, 2);
  label = floats(zeros, shape, 1);
  ok(cohort_group_forward(group, &data, 1, &label, 1, 1));
  ok(cohort_group_backward(group, NULL, 0));
  ok(cohort_group_update(group, sgd, COHORT_UPDATE_ON_STORE));
  ok(cohort_group_wait(group));
  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
}

static cohort_optimizer *make_sgd(void) {
  cohort_optimizer *sgd = NULL;

  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &sgd));
  return sgd;
}

static void nothing_is_recorded_while_it_does_not_run(void **state) {
  cohort_trace *trace = make_trace(0);
  cohort_group *group = small_group(2, 4);
  cohort_optimizer *sgd = make_sgd();
  events all;

  (void)state;
  train(group, sgd, 4);
  ok(cohort_trace_begin(trace, "host", "epoch"));
  ok(cohort_trace_end(trace, "host"));
  ok(cohort_trace_mark(trace, "host", "here"));
  assert_int_equal(info_of(trace).num_events, 0);
  ok(cohort_trace_start(trace));
  ok(cohort_trace_stop(trace));
  train(group, sgd, 4);
  assert_int_equal(info_of(trace).num_events, 0);
  assert_int_equal(info_of(trace).running, 0);
  all = events_of(trace);
  assert_int_equal(count(&all, NULL, NULL, NULL, NULL), 0);
  free(all.of);
  cohort_trace_free(trace);
  cohort_optimizer_free(sgd);
  cohort_group_free(group);
}

/* Each line of the plan is an operator that ran on each device; sums, updates, calls and passes are there, too. */
static void every_step_of_two_devices_is_there(void **state) {
  cohort_trace *trace = make_trace(0);
  cohort_group *group = small_group(2, 4);
  cohort_optimizer *sgd = make_sgd();
  cohort_executor *executor = NULL;
  const char *plan = NULL, *line;
  const int times = strcmp(context_name(0), context_name(1)) == 0 ? 2 : 1; /* both may be one context */
  size_t num_steps = 0;
  events all;

  (void)state;
  train(group, sgd, 4); /* all one-time work has been done */
  ok(cohort_trace_start(trace));
  train(group, sgd, 4);
  ok(cohort_trace_stop(trace));
  all = events_of(trace);
  ok(cohort_group_executor(group, 0, &executor));
  ok(cohort_executor_debug_text(executor, &plan));
  for (line = strstr(plan, "Steps ("); line && (line = strstr(line, "ward ")); ++line) {
    char op[64], node[64];
    assert_int_equal(sscanf(line, "ward %63[^ ] '%63[^']'", op, node), 2);
    assert_int_equal(count(&all, "operator", node, op, context_name(0)), times);
    assert_int_equal(count(&all, "operator", node, op, context_name(1)), times);
    ++num_steps;
  }
  assert_true(num_steps >= 4);
  assert_int_equal(count(&all, "operator", NULL, NULL, NULL), 2 * num_steps);
  assert_int_equal(count(&all, "operator", "fc", "FullyConnected", NULL), 2);
  /* A GPU's gradient sums run on the device and show no span of their own. */
  if (test_contexts()[0].device_type == COHORT_DEVICE_CPU)
    assert_true(count(&all, "exchange", "sum of gradients", NULL, NULL) >= 2);
  assert_true(count(&all, "update", "fc_weight", "sgd", NULL) >= 1);
  assert_true(count(&all, "update", "fc_bias", "sgd", NULL) >= 1);
  assert_true(count(&all, "copy", NULL, NULL, context_name(1)) >= 1);
  assert_int_equal(count(&all, "pass", "forward", NULL, NULL), 2);
  assert_true(count(&all, "pass", "backward", NULL, NULL) >= 2);
  assert_int_equal(count(&all, "call", "group forward", NULL, "host thread"), 1);
  assert_int_equal(count(&all, "call", "group backward", NULL, "host thread"), 1);
  assert_int_equal(count(&all, "call", "group update", NULL, "host thread"), 1);
  assert_nested(&all);
  free(all.of);
  cohort_executor_free(executor);
  cohort_trace_free(trace);
  cohort_optimizer_free(sgd);
  cohort_group_free(group);
}

/* The machine of make_trace() does a billion of each per second. fc: 2 x 3 x 2 x 4 flops; 12 + 6 + 2 inputs, 8
 * outputs. */
static void operators_are_shown_beside_what_the_machine_can_do(void **state) {
  cohort_trace *trace = make_trace(0);
  cohort_group *group = small_group(1, 4);
  cohort_optimizer *sgd = make_sgd();
  cohort_executor *executor = NULL;
  cohort_span_total total = COHORT_SPAN_TOTAL_INIT;
  const char *name = NULL, *op = NULL, *text = NULL;
  size_t num = 0, i, found = 0;

  (void)state;
  ok(cohort_group_executor(group, 0, &executor));
  ok(cohort_executor_debug_text(executor, &text));
  assert_non_null(strstr(text, "forward FullyConnected 'fc'"));
  assert_non_null(strstr(text, " MFLOP, 0.000 MB, "));
  assert_null(strstr(strstr(text, "Steps ("), " us\nforward"));
  ok(cohort_trace_start(trace));
  for (i = 0; i < 3; ++i) train(group, sgd, 4);
  ok(cohort_trace_stop(trace));
  ok(cohort_trace_num_totals(trace, COHORT_TOTALS_BY_NAME, &num));
  for (i = 0; i < num; ++i) {
    ok(cohort_trace_total(trace, COHORT_TOTALS_BY_NAME, i, &name, &op, &total));
    assert_true(total.count > 0 && total.least_ns <= total.most_ns && total.most_ns <= total.total_ns);
    if (strcmp(name, "fc") != 0 || strcmp(op, "FullyConnected") != 0) continue;
    ++found;
    assert_int_equal(total.kind, COHORT_SPAN_OPERATOR);
    assert_int_equal(total.count, 3);
    assert_true(total.flops == 3 * 2.0 * 3 * 2 * 4);
    assert_true(total.bytes == 3 * 4.0 * (12 + 6 + 2 + 8));
    assert_true(fabs(total.bound_ns - total.bytes) < 1e-6);
  }
  assert_int_equal(found, 1);
  ok(cohort_trace_table(trace, COHORT_TOTALS_BY_OPERATOR, &text));
  assert_non_null(strstr(text, "FullyConnected"));
  assert_null(strstr(text, " fc "));
  ok(cohort_trace_table(trace, COHORT_TOTALS_BY_NAME, &text));
  assert_non_null(strstr(text, " fc "));
  ok(cohort_executor_debug_text(executor, &text));
  text = strstr(text, "forward FullyConnected 'fc'");
  assert_non_null(text);
  assert_true(strncmp(strchr(text, '\n') - 6, ", - us", 6) != 0); /* it has been traced */
  cohort_executor_free(executor);
  cohort_trace_free(trace);
  cohort_optimizer_free(sgd);
  cohort_group_free(group);
}

static void old_events_make_room_and_totals_keep_all(void **state) {
  cohort_trace *trace = make_trace(10);
  cohort_group *group = small_group(1, 4);
  cohort_optimizer *sgd = make_sgd();
  cohort_span_total total = COHORT_SPAN_TOTAL_INIT;
  const char *name = NULL, *op = NULL;
  size_t num = 0, i;
  uint64_t all_events = 0;
  events all;

  (void)state;
  ok(cohort_trace_start(trace));
  for (i = 0; i < 20; ++i) train(group, sgd, 4);
  ok(cohort_trace_stop(trace));
  assert_int_equal(info_of(trace).num_events, 10);
  assert_true(info_of(trace).num_dropped >= 20 * 6 - 10);
  all = events_of(trace);
  assert_int_equal(count(&all, NULL, NULL, NULL, NULL), 10);
  free(all.of);
  ok(cohort_trace_num_totals(trace, COHORT_TOTALS_BY_NAME, &num));
  for (i = 0; i < num; ++i) {
    ok(cohort_trace_total(trace, COHORT_TOTALS_BY_NAME, i, &name, &op, &total));
    all_events += total.count;
  }
  assert_int_equal(all_events, 10 + info_of(trace).num_dropped);
  ok(cohort_trace_clear(trace));
  assert_int_equal(info_of(trace).num_events, 0);
  assert_int_equal(info_of(trace).num_dropped, 0);
  ok(cohort_trace_num_totals(trace, COHORT_TOTALS_BY_OPERATOR, &num));
  assert_int_equal(num, 0);
  cohort_trace_free(trace);
  cohort_optimizer_free(sgd);
  cohort_group_free(group);
}

/* Two users of the library in one process. */
static void traces_do_not_meet(void **state) {
  cohort_trace *one = make_trace(0), *other = make_trace(0);
  cohort_group *group = small_group(1, 4);
  cohort_optimizer *sgd = make_sgd();
  size_t first;

  (void)state;
  ok(cohort_trace_start(one));
  train(group, sgd, 4);
  first = info_of(one).num_events;
  assert_true(first > 0);
  ok(cohort_trace_start(other));
  train(group, sgd, 4);
  ok(cohort_trace_stop(one));
  train(group, sgd, 4);
  assert_true(info_of(one).num_events > first);
  assert_true(info_of(other).num_events > info_of(one).num_events - first);
  cohort_trace_free(other); /* while it runs */
  first = info_of(one).num_events;
  train(group, sgd, 4);
  assert_int_equal(info_of(one).num_events, first);
  ok(cohort_trace_start(one)); /* again */
  train(group, sgd, 4);
  assert_true(info_of(one).num_events > first);
  cohort_trace_free(one);
  cohort_optimizer_free(sgd);
  cohort_group_free(group);
}

static void *run_steps(void *unused) {
  cohort_group *group = small_group(2, 8);
  cohort_optimizer *sgd = make_sgd();
  int i;

  (void)unused;
  for (i = 0; i < 60; ++i) train(group, sgd, 8);
  cohort_optimizer_free(sgd);
  cohort_group_free(group);
  return NULL;
}

static void several_threads_are_traced_while_it_is_read(void **state) {
  cohort_trace *trace = make_trace(2000);
  pthread_t threads[3];
  events all;
  int i;

  (void)state;
  ok(cohort_trace_start(trace));
  for (i = 0; i < 3; ++i) assert_int_equal(pthread_create(&threads[i], NULL, run_steps, NULL), 0);
  for (i = 0; i < 5; ++i) {
    all = events_of(trace);
    free(all.of);
    ok(cohort_trace_stop(trace));
    ok(cohort_trace_start(trace));
  }
  for (i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  ok(cohort_trace_stop(trace));
  all = events_of(trace);
  assert_int_equal(count(&all, NULL, NULL, NULL, NULL), info_of(trace).num_events);
  assert_true(count(&all, "operator", "fc", "FullyConnected", context_name(1)) > 0);
  assert_nested(&all);
  free(all.of);
  cohort_trace_free(trace);
}

static void the_host_says_what_it_does(void **state) {
  cohort_trace *trace = make_trace(0);
  size_t i, marks = 0, counters = 0;
  char text[64];
  events all;

  (void)state;
  ok(cohort_trace_start(trace));
  ok(cohort_trace_begin(trace, "training", "epoch \"1\"\n"));
  ok(cohort_trace_begin(trace, "training", "batch"));
  ok(cohort_trace_mark(trace, "training", "half"));
  ok(cohort_trace_counter(trace, "loss", 0.5));
  ok(cohort_trace_end(trace, "training"));
  ok(cohort_trace_begin(trace, "training", "batch"));
  ok(cohort_trace_end(trace, "training"));
  all = events_of(trace); /* an open span is shown up to now */
  assert_int_equal(count(&all, "user", "batch", NULL, "training"), 2);
  assert_int_equal(count(&all, "user", "epoch \"1\"\\x0a", NULL, "training"), 1);
  assert_nested(&all);
  for (i = 0; i < all.num; ++i) {
    marks += strcmp(all.of[i].phase, "i") == 0 && strcmp(all.of[i].name, "half") == 0;
    counters += strcmp(all.of[i].phase, "C") == 0 && all.of[i].value == 0.5;
  }
  assert_int_equal(marks, 1);
  assert_int_equal(counters, 1);
  free(all.of);
  ok(cohort_trace_end(trace, "training"));
  fails(cohort_trace_end(trace, "training"), COHORT_ERROR_STATE, "no span is open on row 'training'");
  fails(cohort_trace_end(trace, "nowhere"), COHORT_ERROR_STATE, "nowhere");
  for (i = 0; i < 1024; ++i) ok(cohort_trace_begin(trace, "deep", "x"));
  fails(cohort_trace_begin(trace, "deep", "x"), COHORT_ERROR_STATE, "1024 spans are open");
  for (i = 0; i < 1021; ++i) {
    snprintf(text, sizeof(text), "row %d", (int)i);
    ok(cohort_trace_mark(trace, text, "x"));
  }
  fails(cohort_trace_mark(trace, "one more", "x"), COHORT_ERROR_INVALID_ARGUMENT, "row");
  cohort_trace_free(trace);
}

/* begin and end may be called whether or not the trace is running; only what runs while it does is recorded. */
static void spans_are_ended_whatever_starts_and_stops_the_trace(void **state) {
  cohort_trace *trace = make_trace(0);
  events all;
  size_t i;

  (void)state;
  ok(cohort_trace_begin(trace, "host", "before"));
  ok(cohort_trace_start(trace));
  ok(cohort_trace_begin(trace, "host", "between"));
  ok(cohort_trace_clear(trace));
  ok(cohort_trace_end(trace, "host"));
  ok(cohort_trace_begin(trace, "host", "behind"));
  ok(cohort_trace_stop(trace));
  ok(cohort_trace_end(trace, "host"));
  assert_int_equal(info_of(trace).num_events, 3);
  ok(cohort_trace_begin(trace, "host", "never"));
  ok(cohort_trace_end(trace, "host"));
  ok(cohort_trace_start(trace));
  ok(cohort_trace_end(trace, "host"));
  fails(cohort_trace_end(trace, "host"), COHORT_ERROR_STATE, "no span is open on row 'host'");
  ok(cohort_trace_stop(trace));
  fails(cohort_trace_end(trace, "host"), COHORT_ERROR_STATE, "no span is open on row 'host'");
  all = events_of(trace);
  assert_int_equal(count(&all, "user", "before", NULL, "host"), 2);
  assert_int_equal(count(&all, "user", "between", NULL, "host"), 1);
  assert_int_equal(count(&all, "user", "behind", NULL, "host"), 1);
  assert_int_equal(count(&all, NULL, NULL, NULL, NULL), 4);
  assert_nested(&all);
  free(all.of);
  for (i = 0; i < 1500; ++i) { /* a loop that somebody else traces */
    ok(i % 2 ? cohort_trace_stop(trace) : cohort_trace_start(trace));
    ok(cohort_trace_begin(trace, "loop", "x"));
    ok(i % 2 ? cohort_trace_start(trace) : cohort_trace_stop(trace));
    ok(cohort_trace_end(trace, "loop"));
    if (i % 2) ok(cohort_trace_clear(trace));
    ok(i % 2 ? cohort_trace_stop(trace) : cohort_trace_start(trace));
  }
  cohort_trace_free(trace);
}

static void rows_of_totals_are_those_that_were_counted(void **state) {
  cohort_trace *trace = make_trace(0);
  cohort_span_total total = COHORT_SPAN_TOTAL_INIT;
  const char *name = NULL, *op = NULL;
  size_t num = 0, i;

  (void)state;
  ok(cohort_trace_start(trace));
  for (i = 0; i < 3; ++i) {
    ok(cohort_trace_begin(trace, "host", "x"));
    ok(cohort_trace_end(trace, "host"));
  }
  ok(cohort_trace_num_totals(trace, COHORT_TOTALS_BY_NAME, &num));
  assert_int_equal(num, 1);
  ok(cohort_trace_begin(trace, "host", "y"));
  ok(cohort_trace_begin(trace, "host", "x"));
  ok(cohort_trace_end(trace, "host"));
  ok(cohort_trace_end(trace, "host"));
  ok(cohort_trace_total(trace, COHORT_TOTALS_BY_NAME, 0, &name, &op, &total));
  assert_string_equal(name, "x");
  assert_int_equal(total.count, 3);
  fails(cohort_trace_total(trace, COHORT_TOTALS_BY_NAME, 1, &name, &op, &total), COHORT_ERROR_INVALID_ARGUMENT,
        "index");
  ok(cohort_trace_num_totals(trace, COHORT_TOTALS_BY_NAME, &num));
  assert_int_equal(num, 2);
  ok(cohort_trace_clear(trace));
  fails(cohort_trace_total(trace, COHORT_TOTALS_BY_NAME, 0, &name, &op, &total), COHORT_ERROR_INVALID_ARGUMENT,
        "index");
  cohort_trace_free(trace);
}

static cohort_ndarray *on_host(const int64_t *shape, size_t num_axes) {
  const cohort_context cpu = {COHORT_DEVICE_CPU, 0};
  cohort_ndarray *array = NULL;

  ok(cohort_ndarray_zeros(shape, num_axes, COHORT_DTYPE_FLOAT32, &cpu, &array));
  return array;
}

static void *copy_once(void *given) {
  cohort_ndarray **const pair = given;

  ok(cohort_ndarray_copy_to(pair[0], pair[1]));
  return NULL;
}

static void threads_that_come_and_go_share_rows(void **state) {
  cohort_trace *trace = make_trace(0);
  const int64_t shape[] = {4};
  cohort_ndarray *pair[2];
  size_t i, rows = 0;
  pthread_t thread;
  events all;

  (void)state;
  for (i = 0; i < 2; ++i) pair[i] = on_host(shape, 1);
  ok(cohort_trace_start(trace));
  for (i = 0; i < 1200; ++i) {
    assert_int_equal(pthread_create(&thread, NULL, copy_once, pair), 0);
    pthread_join(thread, NULL);
  }
  ok(cohort_trace_stop(trace));
  all = events_of(trace);
  for (i = 0; i < all.num; ++i) rows += strcmp(all.of[i].name, "thread_name") == 0;
  assert_int_equal(rows, 1025);
  assert_int_equal(count(&all, "copy", "copy", NULL, NULL), 1200);
  assert_int_equal(count(&all, "copy", "copy", NULL, "other host threads"), 1200 - 1024);
  free(all.of);
  for (i = 0; i < 2; ++i) cohort_ndarray_free(pair[i]);
  cohort_trace_free(trace);
}

/* A product of (2, 3) and (3, 4), backward for both: twice its 2 x 2 x 3 x 4 flops. */
static void gradients_on_a_tape_are_operators(void **state) {
  cohort_trace *trace = make_trace(0);
  const int64_t a_shape[] = {2, 3}, b_shape[] = {3, 4};
  cohort_span_total total = COHORT_SPAN_TOTAL_INIT;
  const char *name = NULL, *op = NULL;
  cohort_ndarray *inputs[2], *gradients[2], *product = NULL;
  cohort_arrays *outputs = NULL;
  cohort_tape *tape = NULL;
  size_t num = 0, i, found = 0;

  (void)state;
  for (i = 0; i < 2; ++i) {
    inputs[i] = on_host(i ? b_shape : a_shape, 2);
    gradients[i] = on_host(i ? b_shape : a_shape, 2);
  }
  ok(cohort_tape_create(&tape));
  ok(cohort_tape_mark(tape, inputs, gradients, NULL, 2));
  ok(cohort_tape_invoke(tape, "dot", NULL, NULL, 0, inputs, 2, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &product));
  ok(cohort_wait_all());
  ok(cohort_trace_start(trace));
  ok(cohort_tape_backward(tape, &product, NULL, 1, NULL));
  ok(cohort_wait_all());
  ok(cohort_trace_stop(trace));
  ok(cohort_trace_num_totals(trace, COHORT_TOTALS_BY_NAME, &num));
  for (i = 0; i < num; ++i) {
    ok(cohort_trace_total(trace, COHORT_TOTALS_BY_NAME, i, &name, &op, &total));
    if (strcmp(name, "dot") != 0) continue;
    ++found;
    assert_string_equal(op, "_backward_dot");
    assert_int_equal(total.kind, COHORT_SPAN_OPERATOR);
    assert_int_equal(total.count, 1);
    assert_true(total.flops == 2 * 2.0 * 2 * 3 * 4);
    assert_true(total.bytes == 4.0 * (8 + 2 * (6 + 12)));
  }
  assert_int_equal(found, 1);
  for (i = 0; i < 2; ++i) {
    cohort_ndarray_free(inputs[i]);
    cohort_ndarray_free(gradients[i]);
  }
  cohort_ndarray_free(product);
  cohort_arrays_free(outputs);
  cohort_tape_free(tape);
  cohort_trace_free(trace);
}

/* One layer of an RNN over sequences of given lengths, which get no gradient: backward is twice its
 * 2 x (2 x 3) x 55 flops, as without lengths. */
static void gradients_of_layers_with_inputs_that_have_none_count_as_well(void **state) {
  const int64_t shapes[][3] = {{2, 3, 4}, {55, 0, 0}, {1, 3, 5}, {3, 0, 0}};
  const size_t num_axes[] = {3, 1, 3, 1};
  const char *const keys[] = {"state_size", "num_layers", "mode", "use_sequence_length"};
  const char *const values[] = {"5", "1", "rnn_tanh", "True"};
  cohort_trace *trace = make_trace(0);
  cohort_span_total total = COHORT_SPAN_TOTAL_INIT;
  const char *name = NULL, *op = NULL;
  cohort_ndarray *inputs[4], *gradients[2], *result = NULL;
  cohort_arrays *outputs = NULL;
  cohort_tape *tape = NULL;
  size_t num = 0, i, found = 0;

  (void)state;
  for (i = 0; i < 4; ++i) inputs[i] = on_host(shapes[i], num_axes[i]);
  for (i = 0; i < 2; ++i) gradients[i] = on_host(shapes[i], num_axes[i]);
  ok(cohort_tape_create(&tape));
  ok(cohort_tape_mark(tape, inputs, gradients, NULL, 2));
  ok(cohort_tape_invoke(tape, "RNN", keys, values, 4, inputs, 4, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &result));
  ok(cohort_wait_all());
  ok(cohort_trace_start(trace));
  ok(cohort_tape_backward(tape, &result, NULL, 1, NULL));
  ok(cohort_wait_all());
  ok(cohort_trace_stop(trace));
  ok(cohort_trace_num_totals(trace, COHORT_TOTALS_BY_NAME, &num));
  for (i = 0; i < num; ++i) {
    ok(cohort_trace_total(trace, COHORT_TOTALS_BY_NAME, i, &name, &op, &total));
    if (strcmp(op, "_backward_RNN") != 0) continue;
    ++found;
    assert_true(total.flops == 2 * 2.0 * (2 * 3) * 55);
  }
  assert_int_equal(found, 1);
  for (i = 0; i < 4; ++i) cohort_ndarray_free(inputs[i]);
  for (i = 0; i < 2; ++i) cohort_ndarray_free(gradients[i]);
  cohort_ndarray_free(result);
  cohort_arrays_free(outputs);
  cohort_tape_free(tape);
  cohort_trace_free(trace);
}

/* Ends the recording; counts the copies of this name and, if asked, the bytes they move. */
static size_t copies_in(cohort_trace *trace, const char *name, double bytes) {
  cohort_span_total total = COHORT_SPAN_TOTAL_INIT;
  const char *found = NULL, *op = NULL;
  size_t num = 0, i, copies = 0;

  ok(cohort_wait_all());
  ok(cohort_trace_num_totals(trace, COHORT_TOTALS_BY_NAME, &num));
  for (i = 0; i < num; ++i) {
    ok(cohort_trace_total(trace, COHORT_TOTALS_BY_NAME, i, &found, &op, &total));
    if (total.kind != COHORT_SPAN_COPY || strcmp(found, name) != 0) continue;
    copies += total.count;
    assert_true(total.bytes == bytes);
  }
  return copies;
}

static void copies_on_the_calling_thread_are_there(void **state) {
  const int64_t shape[] = {4, 3};
  float values[12];
  cohort_trace *trace;
  cohort_group *group;
  cohort_ndarray *array, *other, *part = NULL, *joined = NULL, *pair[2];
  cohort_arrays *args = NULL, *aux = NULL;

  (void)state;
  only_on_cpus(); /* for a GPU its queues copy */
  trace = make_trace(0);
  group = small_group(2, 4);
  array = on_host(shape, 2);
  other = on_host(shape, 2);
  ok(cohort_wait_all());
  ok(cohort_trace_start(trace));
  ok(cohort_group_copy_params(group, &args, &aux)); /* a weight of 6 and a bias of 2, from two devices */
  assert_int_equal(copies_in(trace, "mean of copies", 4.0 * 3 * 8), 2);
  assert_int_equal(copies_in(trace, "copy", 0), 0); /* the mean is computed directly in its target */
  ok(cohort_trace_clear(trace));
  ok(cohort_group_set_params(group, args, aux, 0));
  assert_int_equal(copies_in(trace, "copy", 4.0 * 2 * 2 * 8), 4);
  ok(cohort_trace_clear(trace));
  ok(cohort_ndarray_copy_to(array, other));
  assert_int_equal(copies_in(trace, "copy", 4.0 * 2 * 12), 1);
  ok(cohort_trace_clear(trace));
  ok(cohort_ndarray_read(array, values, sizeof(values)));
  assert_int_equal(copies_in(trace, "copy", 4.0 * 2 * 12), 1);
  ok(cohort_trace_clear(trace));
  ok(cohort_ndarray_write(array, values, sizeof(values)));
  assert_int_equal(copies_in(trace, "copy", 4.0 * 2 * 12), 1);
  ok(cohort_trace_clear(trace));
  ok(cohort_ndarray_cast(array, COHORT_DTYPE_FLOAT64, &part));
  assert_int_equal(copies_in(trace, "copy", (4.0 + 8) * 12), 1);
  cohort_ndarray_free(part);
  ok(cohort_trace_clear(trace));
  ok(cohort_ndarray_slice_axis(array, 1, 0, 2, &part));
  assert_int_equal(copies_in(trace, "copy", 4.0 * 2 * 8), 1);
  ok(cohort_trace_clear(trace));
  pair[0] = array;
  pair[1] = part;
  ok(cohort_ndarray_concat(pair, 2, 1, &joined));
  assert_int_equal(copies_in(trace, "copy", 4.0 * 2 * 20), 2);
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  cohort_ndarray_free(array);
  cohort_ndarray_free(other);
  cohort_ndarray_free(part);
  cohort_ndarray_free(joined);
  cohort_group_free(group);
  cohort_trace_free(trace);
}

static void a_trace_that_is_not_as_it_should_be_is_refused(void **state) {
  cohort_trace *trace = make_trace(0), *none = NULL;
  cohort_trace_options options = COHORT_TRACE_OPTIONS_INIT;
  cohort_span_total total = COHORT_SPAN_TOTAL_INIT;
  const char *name = NULL, *op = NULL;
  size_t num = 7;

  (void)state;
  fails(cohort_trace_stop(trace), COHORT_ERROR_STATE, "not running");
  ok(cohort_trace_start(trace));
  fails(cohort_trace_start(trace), COHORT_ERROR_STATE, "running already");
  ok(cohort_trace_stop(trace));
  fails(cohort_trace_stop(trace), COHORT_ERROR_STATE, "not running");
  fails(cohort_trace_write(trace, "/nowhere/at/all.json"), COHORT_ERROR_IO, "/nowhere/at/all.json");
  fails(cohort_trace_write(trace, "/"), COHORT_ERROR_IO, "/");
  fails(cohort_trace_write(trace, NULL), COHORT_ERROR_INVALID_ARGUMENT, "path");
  fails(cohort_trace_json(trace, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_json");
  fails(cohort_trace_num_totals(trace, 2, &num), COHORT_ERROR_INVALID_ARGUMENT, "COHORT_TOTALS_");
  fails(cohort_trace_table(trace, -1, &name), COHORT_ERROR_INVALID_ARGUMENT, "COHORT_TOTALS_");
  fails(cohort_trace_total(trace, 0, 0, &name, &op, &total), COHORT_ERROR_INVALID_ARGUMENT, "index");
  fails(cohort_trace_counter(trace, "x", NAN), COHORT_ERROR_INVALID_ARGUMENT, "finite");
  fails(cohort_trace_begin(trace, NULL, "x"), COHORT_ERROR_INVALID_ARGUMENT, "row");
  options.flop_per_s = -1;
  fails(cohort_trace_create(&options, &none), COHORT_ERROR_INVALID_ARGUMENT, "flop_per_s");
  options.flop_per_s = 0;
  options.byte_per_s = INFINITY;
  fails(cohort_trace_create(&options, &none), COHORT_ERROR_INVALID_ARGUMENT, "byte_per_s");
  assert_null(none);
  assert_null(name);
  assert_int_equal(num, 7);
  cohort_trace_free(trace);
}

static void a_file_has_what_the_text_has(void **state) {
  cohort_trace *trace = make_trace(0);
  cohort_group *group = small_group(1, 4);
  cohort_optimizer *sgd = make_sgd();
  char path[TEMPORARY_PATH], *found;
  const char *json = NULL;
  ssize_t bytes;

  (void)state;
  temporary_path(path, "trace", ".json");
  ok(cohort_trace_start(trace));
  train(group, sgd, 4);
  ok(cohort_trace_stop(trace));
  ok(cohort_trace_json(trace, &json));
  ok(cohort_trace_write(trace, path));
  {
    FILE *written = fopen(path, "rb");
    assert_non_null(written);
    found = calloc(1, strlen(json) + 2);
    assert_non_null(found);
    bytes = (ssize_t)fread(found, 1, strlen(json) + 1, written);
    fclose(written);
  }
  assert_int_equal(bytes, strlen(json));
  assert_string_equal(found, json);
  free(found);
  unlink(path);
  cohort_trace_free(trace);
  cohort_optimizer_free(sgd);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(nothing_is_recorded_while_it_does_not_run),
      TEST(every_step_of_two_devices_is_there),
      TEST(operators_are_shown_beside_what_the_machine_can_do),
      TEST(old_events_make_room_and_totals_keep_all),
      TEST(traces_do_not_meet),
      TEST(several_threads_are_traced_while_it_is_read),
      TEST(the_host_says_what_it_does),
      TEST(spans_are_ended_whatever_starts_and_stops_the_trace),
      TEST(rows_of_totals_are_those_that_were_counted),
      TEST(threads_that_come_and_go_share_rows),
      TEST(gradients_on_a_tape_are_operators),
      TEST(gradients_of_layers_with_inputs_that_have_none_count_as_well),
      TEST(copies_on_the_calling_thread_are_there),
      TEST(a_trace_that_is_not_as_it_should_be_is_refused),
      TEST(a_file_has_what_the_text_has),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
