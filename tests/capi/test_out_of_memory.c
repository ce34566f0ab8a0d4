/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at every allocation in turn, by the malloc of support/failing_malloc.h: the N-th call of the
 * library fails, or all calls from the N-th on, while one part of a representative program runs. That part succeeds or
 * reports an out-of-memory error, leaks neither handles nor memory, and succeeds when repeated with the same objects. A
 * part with more than kMostTries allocations is tried at that many of them, evenly spread; with --all (or --part NAME,
 * or --part NAME N) at each.
 *
 * If operator new throws inside oneDNN, oneDNN leaks, so growth of memory is accepted there. */
#define _GNU_SOURCE /* for failing_malloc.h */
#include "support/boundary.h"
#include "support/failing_malloc.h"
#include "support/temporary.h"

/* ---- the program that is tried ----------------------------------------------------------------------------------- */

#define TRY(call)            \
  do {                       \
    error = (call);          \
    if (error) goto cleanup; \
  } while (0)

static const cohort_context cpus[] = {{COHORT_DEVICE_CPU, 0}, {COHORT_DEVICE_CPU, 1}};
static const char *const params[] = {"conv_weight", "conv_bias", "fc_weight", "fc_bias"};
static const float zeros[6 * 2 * 8 * 8];

/* State shared by the parts, which create it themselves; each part replaces its own only when it has succeeded. */
static struct {
  cohort_symbol *symbol;
  cohort_group *group;
  cohort_arrays *args, *aux; /* valid values of its parameters */
  cohort_optimizer *optimizer;
  char states[128]; /* of an optimizer that has no states yet */
  size_t num_states_bytes;
  cohort_metric *metric;
  cohort_manager *manager;
  cohort_trace *trace;
} world;

#define REPLACE(type, field, made)     \
  do {                                 \
    cohort_##type##_free(world.field); \
    world.field = (made);              \
    (made) = NULL;                     \
  } while (0)

static cohort_error *add_node(const char *op, const char *name, const char *key, const char *value,
                              cohort_symbol **symbol) {
  cohort_symbol *made = NULL;
  cohort_error *error = cohort_symbol_create(op, name, &key, &value, key != NULL, symbol, NULL, 1, &made);

  if (error) return error;
  cohort_symbol_free(*symbol);
  *symbol = made;
  return NULL;
}

/* Composed, written as JSON and read again. */
static cohort_error *make_symbol(void) {
  static const char *const keys[] = {"kernel", "num_filter"}, *const values[] = {"(3,3)", "16"};
  cohort_symbol *net = NULL, *conv = NULL, *back = NULL;
  const char *json;
  cohort_error *error;

  TRY(cohort_symbol_variable("data", NULL, NULL, 0, &net));
  TRY(cohort_symbol_create("Convolution", "conv", keys, values, 2, &net, NULL, 1, &conv));
  TRY(add_node("BatchNorm", "bn", NULL, NULL, &conv));
  TRY(add_node("Activation", "relu", "act_type", "relu", &conv));
  TRY(add_node("Dropout", "drop", "p", "0.3", &conv));
  TRY(add_node("FullyConnected", "fc", "num_hidden", "10", &conv));
  TRY(add_node("SoftmaxOutput", "softmax", NULL, NULL, &conv));
  TRY(cohort_symbol_to_json(conv, &json));
  TRY(cohort_symbol_from_json(json, strlen(json), &back));
  REPLACE(symbol, symbol, back);
cleanup:
  cohort_symbol_free(net);
  cohort_symbol_free(conv);
  cohort_symbol_free(back);
  return error;
}

static cohort_error *make_descs(int64_t batch, cohort_descs **data, cohort_descs **label) {
  const int64_t shape[] = {batch, 2, 8, 8};
  cohort_error *error;

  TRY(cohort_descs_create(data));
  TRY(cohort_descs_add(*data, "data", shape, 4, COHORT_DTYPE_FLOAT32, "NCHW"));
  TRY(cohort_descs_create(label));
  TRY(cohort_descs_add(*label, "softmax_label", shape, 1, COHORT_DTYPE_FLOAT32, NULL));
cleanup:
  return error;
}

/* A batch of zeros and its labels. */
static cohort_error *make_batch(int64_t batch, cohort_ndarray **data, cohort_ndarray **label) {
  const int64_t shape[] = {batch, 2, 8, 8};
  cohort_error *error;

  TRY(cohort_ndarray_from_host(zeros, (size_t)batch * 512, shape, 4, COHORT_DTYPE_FLOAT32, NULL, data));
  TRY(cohort_ndarray_from_host(zeros, (size_t)batch * 4, shape, 1, COHORT_DTYPE_FLOAT32, NULL, label));
cleanup:
  return error;
}

static cohort_error *bind_group(void) {
  static const char *const key = "momentum", *const value = "0.9";
  cohort_descs *data = NULL, *label = NULL;
  cohort_group *group = NULL;
  cohort_arrays *args = NULL, *aux = NULL;
  cohort_optimizer *optimizer = NULL;
  cohort_error *error;

  TRY(make_descs(4, &data, &label));
  TRY(cohort_group_create(world.symbol, cpus, 2, data, label, params, 4, 1, NULL, &group));
  TRY(cohort_optimizer_create("sgd", &key, &value, 1, &optimizer));
  TRY(cohort_group_copy_params(group, &args, &aux));
  TRY(cohort_optimizer_save_states_memory(optimizer, world.states, sizeof(world.states), &world.num_states_bytes));
  REPLACE(group, group, group);
  REPLACE(arrays, args, args);
  REPLACE(arrays, aux, aux);
  REPLACE(optimizer, optimizer, optimizer);
cleanup:
  cohort_descs_free(data);
  cohort_descs_free(label);
  cohort_group_free(group);
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  cohort_optimizer_free(optimizer);
  return error;
}

static cohort_error *train_on(int64_t batch, int32_t backward) {
  cohort_ndarray *data = NULL, *label = NULL, *output = NULL;
  float found[60];
  cohort_error *error;

  TRY(make_batch(batch, &data, &label));
  TRY(cohort_group_forward(world.group, &data, 1, &label, 1, backward));
  if (backward) {
    TRY(cohort_group_backward(world.group, NULL, 0));
    TRY(cohort_group_update(world.group, world.optimizer, COHORT_UPDATE_ON_STORE));
  }
  TRY(cohort_group_wait(world.group));
  TRY(cohort_group_merged(world.group, COHORT_GROUP_OUTPUTS, 0, &output));
  TRY(cohort_ndarray_read(output, found, (size_t)batch * 40));
cleanup:
  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
  cohort_ndarray_free(output);
  return error;
}

static cohort_error *train(void) { return train_on(4, 1); }

static cohort_error *reshape_to(int64_t batch) {
  cohort_descs *data = NULL, *label = NULL;
  cohort_error *error;

  TRY(make_descs(batch, &data, &label));
  TRY(cohort_group_reshape(world.group, data, label));
cleanup:
  cohort_descs_free(data);
  cohort_descs_free(label);
  return error;
}

/* Reshapes to a batch of six and back. After a failed reshape the group has the shape that it reports. */
static cohort_error *reshape(void) {
  int64_t batch = 0;
  cohort_error *error;

  TRY(cohort_group_batch_size(world.group, &batch));
  TRY(train_on(batch, 0));
  if (batch == 4) TRY(reshape_to(6));
  TRY(train_on(6, 0));
  TRY(reshape_to(4));
cleanup:
  return error;
}

static const char *path_of(const char *end) {
  static char path[TEMPORARY_PATH];

  return temporary_path(path, "out_of_memory", end);
}

static cohort_error *save_and_load(void) {
  cohort_arrays *args = NULL, *aux = NULL, *back = NULL;
  cohort_symbol *symbol = NULL;
  cohort_error *error;

  TRY(cohort_group_copy_params(world.group, &args, &aux));
  TRY(cohort_arrays_save(args, path_of(".params")));
  TRY(cohort_arrays_load(path_of(".params"), NULL, &back));
  TRY(cohort_group_set_params(world.group, back, aux, 0));
  TRY(cohort_symbol_save(world.symbol, path_of(".json")));
  TRY(cohort_symbol_load(path_of(".json"), &symbol));
cleanup:
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  cohort_arrays_free(back);
  cohort_symbol_free(symbol);
  return error;
}

static cohort_error *measure(void) {
  cohort_ndarray *data = NULL, *label = NULL;
  cohort_metric *metric = NULL, *child = NULL;
  const char *name;
  double value;
  cohort_error *error;

  TRY(make_batch(4, &data, &label));
  TRY(cohort_metric_create("composite", NULL, NULL, 0, &metric));
  TRY(cohort_metric_create("acc", NULL, NULL, 0, &child));
  TRY(cohort_metric_add(metric, child));
  cohort_metric_free(child);
  child = NULL;
  TRY(cohort_metric_create("ce", NULL, NULL, 0, &child));
  TRY(cohort_metric_add(metric, child));
  TRY(cohort_group_forward(world.group, &data, 1, &label, 1, 0));
  TRY(cohort_group_update_metric(world.group, metric, &label, 1));
  TRY(cohort_metric_value(metric, 0, 0, &name, &value));
  REPLACE(metric, metric, metric);
cleanup:
  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
  cohort_metric_free(metric);
  cohort_metric_free(child);
  return error;
}

static int32_t callback_code; /* its last error's class, which the caller gave as a number of its own */

static int32_t bucket_symbol(const char *key, cohort_symbol **out_symbol, void *user_data) {
  cohort_error *error = cohort_symbol_copy(world.symbol, out_symbol);

  (void)key;
  (void)user_data;
  callback_code = cohort_error_code(error);
  cohort_error_free(error);
  return callback_code;
}

/* A manager, and a batch in a bucket that has to be made. */
static cohort_error *manage(void) {
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_descs *data_descs = NULL, *label_descs = NULL;
  cohort_ndarray *data = NULL, *label = NULL, *output = NULL;
  cohort_manager *manager = NULL;
  cohort_group *group = NULL;
  float found[40];
  cohort_error *error;

  options.default_bucket_key = "main";
  options.bucket_symbol = bucket_symbol;
  TRY(make_descs(4, &data_descs, &label_descs));
  TRY(make_batch(4, &data, &label));
  TRY(cohort_manager_create(world.symbol, cpus, 2, 4, data_descs, label_descs, params, 4, &options, &manager));
  TRY(cohort_manager_load_data_batch(manager, &data, 1, &label, 1, "other", data_descs, label_descs));
  TRY(cohort_manager_forward(manager, 1));
  TRY(cohort_manager_backward(manager));
  TRY(cohort_manager_update(manager, world.optimizer, COHORT_UPDATE_ON_STORE));
  TRY(cohort_manager_current_group(manager, &group));
  TRY(cohort_group_wait(group));
  TRY(cohort_manager_merged(manager, COHORT_GROUP_OUTPUTS, 0, &output));
  TRY(cohort_ndarray_read(output, found, sizeof(found)));
  REPLACE(manager, manager, manager);
cleanup:
  cohort_descs_free(data_descs);
  cohort_descs_free(label_descs);
  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
  cohort_ndarray_free(output);
  cohort_group_free(group);
  cohort_manager_free(manager);
  return error;
}

/* Operators invoked on arrays; views, casts and copies. */
static cohort_error *compute(void) {
  const int64_t shape[] = {6, 64};
  cohort_ndarray *x = NULL, *half = NULL, *wide = NULL, *y = NULL;
  cohort_arrays *outputs = NULL;
  double sink[192];
  cohort_error *error;

  TRY(cohort_ndarray_from_host(zeros, 6 * 64 * 4, shape, 2, COHORT_DTYPE_FLOAT32, NULL, &x));
  TRY(cohort_ndarray_slice(x, 1, 4, &half));
  TRY(cohort_ndarray_cast(half, COHORT_DTYPE_FLOAT64, &wide));
  TRY(cohort_operator_invoke("softmax", NULL, NULL, 0, &wide, 1, NULL, 0, NULL, &outputs));
  TRY(cohort_arrays_get(outputs, 0, &y));
  TRY(cohort_ndarray_read(y, sink, sizeof(sink)));
cleanup:
  cohort_ndarray_free(x);
  cohort_ndarray_free(half);
  cohort_ndarray_free(wide);
  cohort_ndarray_free(y);
  cohort_arrays_free(outputs);
  return error;
}

/* An executor bound for training that then infers. Queries after a failure work. */
static cohort_error *infer(void) {
  const int64_t shape[] = {4, 2, 8, 8};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_memory_info info = COHORT_MEMORY_INFO_INIT;
  cohort_descs *known = NULL;
  cohort_executor *executor = NULL;
  cohort_error *error, *asked;
  const char *text;

  options.grad_req = "write";
  TRY(cohort_descs_create(&known));
  TRY(cohort_descs_add(known, "data", shape, 4, COHORT_DTYPE_FLOAT32, NULL));
  TRY(cohort_executor_simple_bind(world.symbol, NULL, known, &options, &executor));
  TRY(cohort_executor_forward(executor, 0));
  TRY(cohort_executor_wait(executor));
cleanup:
  if (executor) {
    asked = cohort_executor_memory(executor, &info);
    if (!asked) asked = cohort_executor_debug_text(executor, &text);
    if (error) cohort_error_free(asked);
    if (!error) error = asked;
  }
  cohort_descs_free(known);
  cohort_executor_free(executor);
  return error;
}

static int32_t pass_on(cohort_arrays *head_grads, cohort_arrays *gradients, void *user_data) {
  cohort_ndarray *head = NULL;
  cohort_error *error;

  (void)user_data;
  TRY(cohort_arrays_get(head_grads, 0, &head));
  TRY(cohort_arrays_add(gradients, NULL, head));
cleanup:
  cohort_ndarray_free(head);
  callback_code = cohort_error_code(error);
  cohort_error_free(error);
  return callback_code;
}

static cohort_error *on_tape(cohort_tape *tape, const char *op, cohort_ndarray *input, cohort_ndarray **out_output) {
  cohort_arrays *outputs = NULL;
  cohort_error *error;

  TRY(cohort_tape_invoke(tape, op, NULL, NULL, 0, &input, 1, NULL, 0, NULL, &outputs));
  TRY(cohort_arrays_get(outputs, 0, out_output));
cleanup:
  cohort_arrays_free(outputs);
  return error;
}

/* Recorded operators, one that keeps values and a custom function; gradients of gradients. */
static cohort_error *record(void) {
  const int64_t shape[] = {4, 3};
  cohort_backward_options options = COHORT_BACKWARD_OPTIONS_INIT;
  cohort_tape *tape = NULL;
  cohort_ndarray *x = NULL, *gradient = NULL, *square = NULL, *dropped = NULL, *passed = NULL, *out = NULL;
  cohort_ndarray *first = NULL;
  cohort_arrays *gradients = NULL;
  cohort_symbol *symbol = NULL;
  cohort_error *error;

  options.create_graph = 1;
  TRY(cohort_tape_create(&tape));
  TRY(cohort_ndarray_zeros(shape, 2, COHORT_DTYPE_FLOAT32, NULL, &x));
  TRY(cohort_ndarray_zeros(shape, 2, COHORT_DTYPE_FLOAT32, NULL, &gradient));
  TRY(cohort_ndarray_zeros(shape, 2, COHORT_DTYPE_FLOAT32, NULL, &passed));
  TRY(cohort_tape_mark(tape, &x, &gradient, NULL, 1));
  TRY(on_tape(tape, "square", x, &square));
  TRY(cohort_tape_symbol(tape, square, &symbol));
  TRY(on_tape(tape, "Dropout", square, &dropped));
  TRY(cohort_tape_function(tape, &dropped, 1, &passed, 1, pass_on, NULL, NULL));
  TRY(on_tape(tape, "softmax", passed, &out));
  TRY(cohort_tape_grad(tape, &out, NULL, 1, &x, 1, &options, &gradients));
  TRY(cohort_arrays_get(gradients, 0, &first));
  TRY(cohort_tape_backward(tape, &first, NULL, 1, NULL));
cleanup:
  cohort_tape_free(tape);
  cohort_ndarray_free(x);
  cohort_ndarray_free(gradient);
  cohort_ndarray_free(square);
  cohort_ndarray_free(dropped);
  cohort_ndarray_free(passed);
  cohort_ndarray_free(out);
  cohort_ndarray_free(first);
  cohort_arrays_free(gradients);
  cohort_symbol_free(symbol);
  return error;
}

static const char row[] = "a row whose name is long enough to need memory";

/* Rows, spans and totals of a trace that continues after a failure. */
static cohort_error *trace(void) {
  static const char name[] = "a span whose name is long enough to need memory";
  cohort_trace_options options = COHORT_TRACE_OPTIONS_INIT;
  cohort_span_total total = COHORT_SPAN_TOTAL_INIT;
  const int64_t shape[] = {4};
  cohort_ndarray *x = NULL, *copy = NULL;
  cohort_trace *made = NULL;
  const char *text, *op;
  size_t num;
  cohort_error *error;

  options.flop_per_s = options.byte_per_s = 1e9;
  if (!world.trace) {
    TRY(cohort_trace_create(&options, &made));
    REPLACE(trace, trace, made);
  }
  TRY(cohort_ndarray_zeros(shape, 1, COHORT_DTYPE_FLOAT32, NULL, &x));
  TRY(cohort_trace_begin(world.trace, row, name));
  TRY(cohort_trace_start(world.trace));
  TRY(cohort_trace_begin(world.trace, row, name));
  TRY(cohort_ndarray_copy(x, NULL, &copy));
  TRY(cohort_trace_mark(world.trace, "another row whose name needs memory", name));
  TRY(cohort_trace_counter(world.trace, name, 1));
  TRY(cohort_trace_json(world.trace, &text));
  TRY(cohort_trace_end(world.trace, row));
  TRY(cohort_trace_stop(world.trace));
  TRY(cohort_trace_end(world.trace, row));
  TRY(cohort_trace_num_totals(world.trace, COHORT_TOTALS_BY_NAME, &num));
  TRY(cohort_trace_total(world.trace, COHORT_TOTALS_BY_NAME, 0, &text, &op, &total));
  TRY(cohort_trace_table(world.trace, COHORT_TOTALS_BY_NAME, &text));
  TRY(cohort_trace_clear(world.trace));
cleanup:
  cohort_ndarray_free(x);
  cohort_ndarray_free(copy);
  return error;
}

/* Open spans are ended, and the rest is valid JSON. */
static void recover_trace(void) {
  cohort_trace_info info = COHORT_TRACE_INFO_INIT;
  const char *json;
  cohort_error *error = NULL;

  ok(cohort_trace_begin(world.trace, row, "after the failure"));
  ok(cohort_trace_mark(world.trace, row, "after the failure"));
  ok(cohort_trace_json(world.trace, &json));
  while (!error) error = cohort_trace_end(world.trace, row);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_STATE);
  cohort_error_free(error);
  ok(cohort_trace_get_info(world.trace, &info));
  if (info.running) ok(cohort_trace_stop(world.trace));
  ok(cohort_trace_clear(world.trace));
}

/* ---- what a call that fails must not change ---- */

static int compared; /* objects that were compared after an error */

/* An update that fails adds nothing, neither to the local nor to the global value. */
static cohort_error *keep_metric(void) {
  static const float classes[2][4] = {{0, 1, 2, 1}, {3, 0, 2, 3}}, votes[4][4] = {{1}, {0, 1}, {0, 0, 1}, {0, 0, 0, 1}};
  const int64_t shape[] = {4, 4};
  cohort_ndarray *labels[2] = {NULL, NULL}, *preds = NULL;
  cohort_metric *metric = NULL;
  const char *name;
  double before[2], after[2];
  cohort_error *error;
  int i;

  TRY(cohort_metric_create("pcc", NULL, NULL, 0, &metric));
  TRY(cohort_ndarray_from_host(votes, sizeof votes, shape, 2, COHORT_DTYPE_FLOAT32, NULL, &preds));
  for (i = 0; i < 2; ++i)
    TRY(cohort_ndarray_from_host(classes[i], sizeof classes[i], shape, 1, COHORT_DTYPE_FLOAT32, NULL, &labels[i]));
  TRY(cohort_metric_update(metric, &labels[0], 1, &preds, 1));
  for (i = 0; i < 2; ++i) TRY(cohort_metric_value(metric, 0, i, &name, &before[i]));
  error = cohort_metric_update(metric, &labels[1], 1, &preds, 1);
  for (i = 0; i < 2 && error; ++i) {
    cohort_error *const unread = cohort_metric_value(metric, 0, i, &name, &after[i]);

    if (!unread && after[i] != before[i])
      fail_msg("metric: %g before an update that failed, then %g", before[i], after[i]);
    compared += !unread;
    cohort_error_free(unread);
  }
cleanup:
  for (i = 0; i < 2; ++i) cohort_ndarray_free(labels[i]);
  cohort_ndarray_free(preds);
  cohort_metric_free(metric);
  return error;
}

static cohort_error *keep_optimizer(void) {
  cohort_optimizer *sgd = NULL;
  double lr = 0, wd = 0;
  cohort_error *error;

  TRY(cohort_optimizer_create("sgd", NULL, NULL, 0, &sgd));
  TRY(cohort_optimizer_set_mult(sgd, row, 2, 3));
  error = cohort_optimizer_set_mult(sgd, "another name that needs memory of its own", 4, 5);
  if (error && !cohort_optimizer_mult(sgd, row, &lr, &wd)) {
    assert_true(lr == 2 && wd == 3);
    ++compared;
  }
cleanup:
  cohort_optimizer_free(sgd);
  return error;
}

static cohort_error *keep_symbol(void) {
  static const char *const keys[] = {"__first_attribute__", "__second_attribute__"}, *const values[] = {row, row};
  cohort_symbol *x = NULL;
  const char *value = NULL;
  cohort_error *error;

  TRY(cohort_symbol_variable("x", NULL, NULL, 0, &x));
  error = cohort_symbol_set_attrs(x, keys, values, 2);
  if (error && !cohort_symbol_attr(x, keys[0], &value)) {
    assert_null(value);
    ++compared;
  }
cleanup:
  cohort_symbol_free(x);
  return error;
}

static cohort_error *keep_lists(void) {
  cohort_arrays *list = NULL;
  size_t num = 0, index = 0;
  char name[64];
  cohort_error *error;
  int i;

  TRY(cohort_arrays_create(&list));
  for (i = 0; i < 40; ++i) {
    snprintf(name, sizeof name, "%s %d", row, i);
    error = cohort_arrays_set(list, name, NULL);
    if (error) {
      ok(cohort_arrays_num(list, &num));
      assert_int_equal(num, i);
      ++compared;
      goto cleanup;
    }
  }
  for (i = 0; i < 40; ++i) {
    snprintf(name, sizeof name, "%s %d", row, i);
    TRY(cohort_arrays_find(list, name, &index));
    assert_int_equal(index, i);
  }
cleanup:
  cohort_arrays_free(list);
  return error;
}

/* ---- running the parts ------------------------------------------------------------------------------------------- */

typedef struct part {
  const char *name;
  cohort_error *(*run)(void);
} part;

static const part parts[] = {{"symbol", make_symbol},
                             {"bind", bind_group},
                             {"train", train},
                             {"reshape", reshape},
                             {"save", save_and_load},
                             {"metric", measure},
                             {"manager", manage},
                             {"compute", compute},
                             {"infer", infer},
                             {"tape", record},
                             {"trace", trace},
                             {"keep metric", keep_metric},
                             {"keep optimizer", keep_optimizer},
                             {"keep symbol", keep_symbol},
                             {"keep lists", keep_lists}};
enum { kNumParts = sizeof(parts) / sizeof(parts[0]), kMostTries = 150 };

static const char *only_part;
static long only_place;
static int everywhere;

static void settle(void) {
  if (world.group) ok(cohort_group_wait(world.group));
}

/* A program's recovery after an error: from work that was queued before the call that failed, and from an update cut
 * short. */
static void recover(void) {
  if (world.trace) recover_trace();
  if (!world.group) return;
  cohort_error_free(cohort_group_wait(world.group));
  ok(cohort_group_set_params(world.group, world.args, world.aux, 0));
  ok(cohort_optimizer_load_states_memory(world.optimizer, world.states, world.num_states_bytes));
}

/* One run that fails at this allocation, and one that does not. Returns whether the allocation was reached. */
static int fail_at(const part *p, long place, int onward) {
  const size_t handles = cohort_live_handles();
  cohort_error *error;
  int32_t code;
  long asked;

  arm(place, onward);
  error = p->run();
  code = cohort_error_code(error);
  if (code == COHORT_ERROR_EXECUTION && callback_code) code = callback_code;
  callback_code = COHORT_SUCCESS;
  asked = num_asked();
  if (code != COHORT_SUCCESS && code != COHORT_ERROR_OUT_OF_MEMORY) {
    disarm();
    fail_msg("%s, allocation %ld%s: expected an out of memory error, found %s: %s", p->name, place,
             onward ? " and all later" : "", cohort_error_code_text(code), cohort_error_message(error));
  }
  cohort_error_free(error);
  disarm();
  recover();
  if (cohort_live_handles() != handles && code != COHORT_SUCCESS) {
    fail_msg("%s, allocation %ld: %zu handles before, %zu after", p->name, place, handles, cohort_live_handles());
  }
  ok(p->run());
  settle();
  return asked >= place;
}

/* A leak grows with each repetition; memory cached for later use does not. */
static void check_place(const part *p, long place, int onward) {
  long before, growth = 0;
  int i;

  for (i = 0; i < 4; ++i) {
    before = num_live_blocks();
    if (!fail_at(p, place, onward)) return;
    growth = num_live_blocks() - before;
    if (growth <= 0 || failed_in_onednn()) return;
  }
  fail_msg("%s, allocation %ld%s: %ld blocks are left behind", p->name, place, onward ? " and all later" : "", growth);
}

static void check_part(const part *p) {
  long asked, step, place, last = -1;
  int onward;

  do { /* until everything that is made once exists */
    asked = last;
    arm(0, 0);
    ok(p->run());
    disarm();
    settle();
    last = num_asked();
  } while (last < asked || asked < 0);
  if (only_part && strcmp(only_part, p->name) != 0) return;
  step = everywhere || only_part || last <= kMostTries ? 1 : last / kMostTries;
  for (onward = 0; onward < 2; ++onward) {
    for (place = 1 + onward * (step / 2); place <= last; place += step) {
      if (!only_place || place == only_place) check_place(p, place, onward);
    }
  }
  print_message("%s: %ld allocations, each %ld%s failed\n", p->name, last, step, step == 1 ? "st" : "th");
}

static void every_allocation_may_fail(void **state) {
  size_t i;

  (void)state;
  if (!OWN_MALLOC) skip();
  for (i = 0; i < kNumParts; ++i) check_part(&parts[i]);
  if (!only_part) assert_true(compared > 0);
  cohort_symbol_free(world.symbol);
  cohort_group_free(world.group);
  cohort_arrays_free(world.args);
  cohort_arrays_free(world.aux);
  cohort_optimizer_free(world.optimizer);
  cohort_metric_free(world.metric);
  cohort_manager_free(world.manager);
  cohort_trace_free(world.trace);
  assert_int_equal(cohort_live_handles(), 0);
  remove(path_of(".params"));
  remove(path_of(".json"));
}

/* The very first calls of a process, before anything is initialised: without any memory. */
static void errors_need_no_memory(void **state) {
  cohort_symbol *symbol = NULL;
  cohort_error *error;

  (void)state;
  if (!OWN_MALLOC) skip();
  assert_int_equal(cohort_live_handles(), 0);
  arm(1, 1);
  error = cohort_symbol_variable("x", NULL, NULL, 0, &symbol);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_OUT_OF_MEMORY);
  assert_string_equal(cohort_error_message(error), "out of memory on the host");
  assert_string_equal(cohort_error_subject(error), "");
  cohort_error_free(error);
  assert_int_equal(cohort_error_code(cohort_symbol_to_json(NULL, NULL)), COHORT_ERROR_OUT_OF_MEMORY);
  disarm();
  assert_null(symbol);
  assert_int_equal(cohort_live_handles(), 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {TEST(errors_need_no_memory), TEST(every_allocation_may_fail)};

  if (argc > 1 && strcmp(argv[1], "--all") == 0) everywhere = 1;
  if (argc > 2 && strcmp(argv[1], "--part") == 0) only_part = argv[2];
  if (argc > 3) only_place = atol(argv[3]);
  return cmocka_run_group_tests(tests, find_libraries, NULL);
}
