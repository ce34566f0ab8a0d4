/* SPDX-License-Identifier: Apache-2.0 */
/* Each class of error (ERR-01 to ERR-07) provoked on each kind of handle that can report it: checks class, subject and
 * message, and that afterwards no out parameter was written and the handle works as before (ERR-08, ERR-09). */
#include <stdio.h>

#include "support/executor_tests.h"

enum kind {
  NDARRAY,
  ARRAYS,
  DESCS,
  SYMBOL,
  EXECUTOR,
  GROUP,
  OPTIMIZER,
  METRIC,
  INITIALIZER,
  MONITOR,
  MANAGER,
  NUM_KINDS
};

static const cohort_context cpu0 = {COHORT_DEVICE_CPU, 0}, cpu1 = {COHORT_DEVICE_CPU, 1},
                            no_gpu = {COHORT_DEVICE_GPU, 4096};

/* A handle of each kind, the arguments that provoke errors, and out parameters that must not change. */
typedef struct world {
  cohort_ndarray *array, *integers, *wide, *row, *elsewhere;
  cohort_arrays *arrays, *strange;
  cohort_descs *descs, *label, *misfit, *huge;
  cohort_symbol *symbol, *heads;
  cohort_executor *executor;
  cohort_group *group, *inference;
  cohort_optimizer *optimizer;
  cohort_metric *metric;
  cohort_initializer *initializer;
  cohort_monitor *monitor;
  cohort_manager *manager;
  void *out; /* out parameter of every call that creates a handle */
  size_t num;
  double number;
} world;

#define OUT(type) ((cohort_##type **)&w->out)

static int32_t no_bucket(const char *key, cohort_symbol **out_symbol, void *user_data) {
  (void)key;
  (void)out_symbol;
  (void)user_data;
  return 9;
}

/* A regression of data . fc_weight^T against label, over one row of two numbers. */
static void make_world(world *w) {
  cohort_manager_options buckets = COHORT_MANAGER_OPTIONS_INIT;
  cohort_symbol *pair[2];
  const char *const params[] = {"fc_weight"};

  memset(w, 0, sizeof(*w));
  w->label = desc("label", SHAPE(4, 1), NULL);
  w->array = floats(SHAPE(2), FLOATS(1, 2));
  w->row = floats(SHAPE(1, 2), FLOATS(3, 4));
  w->wide = floats(SHAPE(3), FLOATS(1, 2, 3));
  ok(cohort_ndarray_copy(w->array, &cpu1, &w->elsewhere));
  ok(cohort_ndarray_zeros(SHAPE(2), COHORT_DTYPE_INT32, NULL, &w->integers));
  w->arrays = named("fc_weight", floats(SHAPE(1, 2), FLOATS(1, 10)));
  w->strange = named("strange", floats(SHAPE(3), FLOATS(1, 2, 3)));
  w->descs = desc("data", SHAPE(4, 2), NULL);
  w->misfit = desc("data", SHAPE(4, 3), NULL);
  w->huge = desc("data", SHAPE((int64_t)1 << 38, 2), NULL);
  w->symbol = regression("1");
  pair[0] = pair[1] = w->symbol;
  ok(cohort_symbol_group(pair, 2, &w->heads));
  {
    cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

    options.grad_req = "write";
    ok(cohort_executor_simple_bind(w->symbol, NULL, w->descs, &options, &w->executor));
  }
  w->group = bind_regression(1, 4, NULL);
  w->inference = bind_for_inference(linear("1"), 1, desc("data", SHAPE(4, 2), NULL), NULL, NAMES("fc_weight"), NULL);
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &w->optimizer));
  ok(cohort_metric_create("mae", NULL, NULL, 0, &w->metric));
  ok(cohort_initializer_create("xavier", NULL, NULL, 0, 1, &w->initializer));
  ok(cohort_monitor_create(1, NULL, &w->monitor));
  buckets.default_bucket_key = "2";
  buckets.bucket_symbol = no_bucket;
  ok(cohort_manager_create(w->symbol, &cpu0, 1, 4, w->descs, w->label, params, 1, &buckets, &w->manager));
}

static void free_world(world *w) {
  cohort_ndarray_free(w->array);
  cohort_ndarray_free(w->integers);
  cohort_ndarray_free(w->wide);
  cohort_ndarray_free(w->row);
  cohort_ndarray_free(w->elsewhere);
  cohort_arrays_free(w->arrays);
  cohort_arrays_free(w->strange);
  cohort_descs_free(w->descs);
  cohort_descs_free(w->label);
  cohort_descs_free(w->misfit);
  cohort_descs_free(w->huge);
  cohort_symbol_free(w->symbol);
  cohort_symbol_free(w->heads);
  cohort_executor_free(w->executor);
  cohort_group_free(w->group);
  cohort_group_free(w->inference);
  cohort_optimizer_free(w->optimizer);
  cohort_metric_free(w->metric);
  cohort_initializer_free(w->initializer);
  cohort_monitor_free(w->monitor);
  cohort_manager_free(w->manager);
}

/* ---- checks that each handle works
 * -------------------------------------------------------------------------------- */

static void group_works(cohort_group *group) {
  forward(group, floats(SHAPE(4, 2), FLOATS(1, 0, 0, 1, 1, 1, 2, 0)), floats(SHAPE(4, 1), FLOATS(0, 0, 0, 0)), 1);
  holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 1, 10, 11, 2);
}

static void executor_works(cohort_executor *executor) {
  set_arg(executor, "data", 1, 0, 0, 1, 1, 1, 2, 0);
  set_arg(executor, "fc_weight", 1, 10);
  ok(cohort_executor_forward(executor, 1));
  holds_free(output_of(executor, 0), 1, 10, 11, 2);
  ok(try_backward_with(executor, NULL, 1));
  holds_free(grad_of(executor, "fc_weight"), 16, 21);
}

static void manager_works(const world *w) {
  cohort_ndarray *data = counted(SHAPE(4, 2), 1), *label = counted(SHAPE(4, 1), 0), *found = NULL;

  ok(cohort_manager_set_params(w->manager, w->arrays, NULL));
  ok(cohort_manager_load_data_batch(w->manager, &data, 1, &label, 1, "2", NULL, NULL));
  ok(cohort_manager_forward(w->manager, 0));
  ok(cohort_manager_merged(w->manager, COHORT_GROUP_OUTPUTS, 0, &found));
  holds_free(found, 10, 32, 54, 76);
  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
}

static void arrays_work(const cohort_arrays *arrays) {
  cohort_ndarray *array = NULL;
  size_t num = 0, at = 7;

  ok(cohort_arrays_num(arrays, &num));
  assert_int_equal(num, 1);
  ok(cohort_arrays_find(arrays, "fc_weight", &at));
  ok(cohort_arrays_get(arrays, at, &array));
  holds_free(array, 1, 10);
}

static void descs_work(const cohort_descs *descs) {
  int64_t shape[2] = {0, 0};
  size_t num = 0, at = 7;

  ok(cohort_descs_num(descs, &num));
  assert_int_equal(num, 1);
  ok(cohort_descs_find(descs, "data", &at));
  ok(cohort_descs_get(descs, at, NULL, shape, 2, NULL, NULL, NULL));
  assert_true(shape[0] == 4 && shape[1] == 2);
}

static void symbol_works(const cohort_symbol *symbol) {
  const char *name = NULL;
  size_t num = 0;

  ok(cohort_symbol_num_names(symbol, COHORT_SYMBOL_ARGUMENTS, &num));
  assert_int_equal(num, 3);
  ok(cohort_symbol_name_at(symbol, COHORT_SYMBOL_OUTPUTS, 0, &name));
  assert_string_equal(name, "lro_output");
}

/* The weight minus 0.01 of the gradient, as before. */
static void optimizer_works(cohort_optimizer *optimizer) {
  cohort_ndarray *weight = floats(SHAPE(2), FLOATS(1, 2)), *grad = floats(SHAPE(2), FLOATS(10, 20));

  ok(cohort_optimizer_update(optimizer, "w_bias", 0, weight, grad));
  holds_free(weight, 0.9f, 1.8f);
  cohort_ndarray_free(grad);
}

static void metric_works(cohort_metric *metric, cohort_ndarray *array) {
  double value = 0;

  ok(cohort_metric_reset(metric));
  ok(cohort_metric_update(metric, &array, 1, &array, 1));
  ok(cohort_metric_value(metric, 0, 0, NULL, &value));
  assert_true(value == 0);
}

static void monitor_works(const world *w) {
  size_t num = 0;

  ok(cohort_monitor_install_on_executor(w->monitor, w->executor));
  ok(cohort_monitor_tic(w->monitor));
  ok(cohort_executor_forward(w->executor, 0));
  ok(cohort_monitor_toc(w->monitor, &num));
  assert_int_equal(num, 5); /* two outputs, three arguments */
}

static void works(const world *w, enum kind kind) {
  if (kind == NDARRAY) holds(w->array, 1, 2);
  if (kind == ARRAYS) arrays_work(w->arrays);
  if (kind == DESCS) descs_work(w->descs);
  if (kind == SYMBOL) symbol_works(w->symbol);
  if (kind == EXECUTOR) executor_works(w->executor);
  if (kind == GROUP) group_works(w->group);
  if (kind == OPTIMIZER) optimizer_works(w->optimizer);
  if (kind == METRIC) metric_works(w->metric, w->array);
  if (kind == INITIALIZER) ok(cohort_initializer_fill(w->initializer, "w", w->row));
  if (kind == MONITOR) monitor_works(w);
  if (kind == MANAGER) manager_works(w);
}

/* ---- errors
 * ------------------------------------------------------------------------------------------------------- */

/* Loads arrays from a file to a context that does not exist. */
static cohort_error *load_to(world *w, const cohort_context *context) {
  unsigned char file[256];
  size_t num = 0;

  ok(cohort_arrays_save_memory(w->arrays, file, sizeof(file), &num));
  return cohort_arrays_load_memory(file, num, context, OUT(arrays));
}

/* A weight for rows of three, where data have rows of two. */
static cohort_error *infer(world *w) {
  cohort_descs *known = desc("data", SHAPE(4, 2), NULL);
  cohort_error *error;
  int32_t complete = 0;

  add_desc(known, "fc_weight", SHAPE(1, 3), NULL);
  error = cohort_symbol_infer_shape(w->symbol, known, 0, &complete, OUT(descs), NULL, NULL);
  cohort_descs_free(known);
  return error;
}

static cohort_error *infer_dtypes(world *w) {
  cohort_descs *known = no_descs();
  cohort_error *error;
  int32_t complete = 0;

  add_typed(known, "data", SHAPE(4, 2), COHORT_DTYPE_INT32);
  add_typed(known, "fc_weight", SHAPE(1, 2), COHORT_DTYPE_FLOAT32);
  error = cohort_symbol_infer_dtype(w->symbol, known, 0, &complete, OUT(descs), NULL, NULL);
  cohort_descs_free(known);
  return error;
}

static cohort_error *set_attr_of_heads(world *w) {
  const char *const key = "__x__", *const value = "1";

  return cohort_symbol_set_attrs(w->heads, &key, &value, 1);
}

static cohort_error *two_head_gradients(world *w) {
  cohort_ndarray *heads[2] = {NULL, NULL};

  ok(cohort_executor_forward(w->executor, 1));
  return cohort_executor_backward(w->executor, heads, 2, 1);
}

static cohort_error *bind_integers(world *w) {
  cohort_ndarray *args[3] = {NULL, NULL, NULL};
  cohort_error *error;
  size_t i;

  ok(cohort_ndarray_zeros(SHAPE(4, 2), COHORT_DTYPE_INT32, NULL, &args[0]));
  ok(cohort_ndarray_zeros(SHAPE(1, 2), COHORT_DTYPE_FLOAT32, NULL, &args[1]));
  ok(cohort_ndarray_zeros(SHAPE(4, 1), COHORT_DTYPE_FLOAT32, NULL, &args[2]));
  error = cohort_executor_bind(w->symbol, NULL, args, 3, NULL, NULL, NULL, 0, NULL, OUT(executor));
  for (i = 0; i < 3; ++i) cohort_ndarray_free(args[i]);
  return error;
}

static cohort_error *sparse_data(world *w) {
  const char *const name = "data";
  const int32_t type = COHORT_STORAGE_CSR;
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  options.storage_names = &name;
  options.storage_types = &type;
  options.num_storage_types = 1;
  return cohort_executor_simple_bind(w->symbol, NULL, w->descs, &options, OUT(executor));
}

static cohort_error *grow(world *w) {
  cohort_reshape_options options = COHORT_RESHAPE_OPTIONS_INIT;

  options.partial_shaping = 1;
  options.allow_up_sizing = 1;
  return cohort_executor_reshape(w->executor, w->huge, &options, OUT(executor));
}

/* An executor whose last node fails when it runs; the executor that must keep working has no such node. */
static cohort_error *fail_work(world *w) {
  cohort_executor *faulty = NULL;
  cohort_error *error;

  assert_int_equal(setenv("COHORT_FAULT", "lro", 1), 0);
  ok(cohort_executor_simple_bind(w->symbol, NULL, w->descs, NULL, &faulty));
  ok(cohort_executor_forward(faulty, 0));
  error = cohort_executor_wait(faulty);
  ok(cohort_executor_wait(faulty)); /* once */
  assert_int_equal(unsetenv("COHORT_FAULT"), 0);
  cohort_executor_free(faulty);
  return error;
}

/* The same for a group, which works again on the next batch. */
static cohort_error *fail_group(world *w) {
  cohort_error *error;

  assert_int_equal(setenv("COHORT_FAULT", "lro", 1), 0);
  ok(cohort_group_bind(w->group, w->descs, NULL, NULL, 1));
  ok(cohort_group_run(w->group, 1));
  error = cohort_group_wait(w->group);
  assert_int_equal(unsetenv("COHORT_FAULT"), 0);
  ok(cohort_group_bind(w->group, w->descs, w->label, NULL, 1));
  ok(cohort_group_set_params(w->group, w->arrays, NULL, 0));
  return error;
}

static int32_t refuse_pair(cohort_ndarray *const *labels, size_t num_labels, cohort_ndarray *const *preds,
                           size_t num_preds, double *out_sum, double *out_num, void *user_data) {
  return labels && num_labels == 1 && preds && num_preds == 1 && out_sum && out_num && !user_data ? 8 : 1;
}

static cohort_error *fail_metric(world *w) {
  cohort_metric *metric = NULL;
  cohort_error *error;

  ok(cohort_metric_create_custom("own", refuse_pair, NULL, 0, &metric));
  error = cohort_metric_update(metric, &w->array, 1, &w->array, 1);
  cohort_metric_free(metric);
  return error;
}

static cohort_error *manager_on(world *w, const cohort_context *context, int64_t batch_size) {
  return cohort_manager_create(w->symbol, context, 1, batch_size, w->descs, NULL, NULL, 0, NULL, OUT(manager));
}

static cohort_error *reshape_dtype(world *w) {
  cohort_descs *data = no_descs();
  cohort_error *error;

  add_typed(data, "data", SHAPE(4, 2), COHORT_DTYPE_FLOAT64);
  error = cohort_group_reshape(w->group, data, NULL);
  cohort_descs_free(data);
  return error;
}

static cohort_error *scheduled(world *w) {
  cohort_error *error;

  ok(cohort_optimizer_set_lr_schedule(w->optimizer, "constant", NULL, NULL, 0));
  error = cohort_optimizer_set(w->optimizer, "learning_rate", 1);
  ok(cohort_optimizer_set_lr_schedule(w->optimizer, NULL, NULL, NULL, 0));
  return error;
}

static cohort_error *bad_magnitude(world *w) {
  const char *const key = "magnitude", *const value = "many";

  return cohort_initializer_create("xavier", &key, &value, 1, 0, OUT(initializer));
}

static int32_t refuse(cohort_ndarray *array, cohort_arrays *values, void *user_data) {
  (void)array;
  (void)values;
  (void)user_data;
  return 6;
}

static cohort_error *fail_statistic(world *w) {
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  cohort_monitor *monitor = NULL;
  cohort_error *error;

  options.statistic = refuse;
  ok(cohort_monitor_create(1, &options, &monitor));
  ok(cohort_monitor_install_on_executor(monitor, w->executor));
  ok(cohort_monitor_tic(monitor));
  error = cohort_monitor_toc(monitor, &w->num);
  cohort_monitor_free(monitor);
  return error;
}

static cohort_error *load_batch(world *w, const char *key, int64_t batch_size) {
  cohort_ndarray *data = counted(SHAPE(batch_size, 2), 1), *label = counted(SHAPE(batch_size, 1), 0);
  cohort_error *error = cohort_manager_load_data_batch(w->manager, &data, 1, &label, 1, key, w->descs, NULL);

  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
  return error;
}

#define ARG COHORT_ERROR_INVALID_ARGUMENT
#define NAME COHORT_ERROR_NAME
#define SHAPE_ COHORT_ERROR_SHAPE
#define DTYPE COHORT_ERROR_DTYPE
#define STATE COHORT_ERROR_STATE
#define UNSUP COHORT_ERROR_UNSUPPORTED
#define DEV COHORT_ERROR_DEVICE
#define FMT COHORT_ERROR_FORMAT
#define IO COHORT_ERROR_IO
#define OOM COHORT_ERROR_OUT_OF_MEMORY
#define EXEC COHORT_ERROR_EXECUTION

/* Kind of handle, class, subject, part of the message, call. */
#define FAILURES(X)                                                                                                  \
  X(NDARRAY, ARG, "", "[1, 3)", cohort_ndarray_slice(w->array, 1, 3, OUT(ndarray)))                                  \
  X(NDARRAY, SHAPE_, "", "(3,)", cohort_ndarray_copy_to(w->wide, w->array))                                          \
  X(NDARRAY, SHAPE_, "bytes", "expected 8 for shape (2,) of float32, found 7",                                       \
    cohort_ndarray_write(w->array, "1234567", 7))                                                                    \
  X(NDARRAY, DTYPE, "dtype", "code 77", cohort_ndarray_cast(w->array, 77, OUT(ndarray)))                             \
  X(NDARRAY, DTYPE, "normal", "int32", cohort_ndarray_fill_normal(w->integers, 0, 1, 1))                             \
  X(NDARRAY, DEV, "gpu(4096)", "gpu(4096)", cohort_ndarray_copy(w->array, &no_gpu, OUT(ndarray)))                    \
  X(NDARRAY, UNSUP, "context", "gpu(4096)",                                                                          \
    cohort_ndarray_wrap(&w->number, NULL, 0, COHORT_DTYPE_FLOAT32, &no_gpu, NULL, NULL, OUT(ndarray)))               \
  X(NDARRAY, OOM, "cpu(0)", "no memory for",                                                                         \
    cohort_ndarray_zeros(SHAPE((int64_t)1 << 45), COHORT_DTYPE_FLOAT32, NULL, OUT(ndarray)))                         \
  X(ARRAYS, ARG, "index", "expected an index below 1, found 1", cohort_arrays_get(w->arrays, 1, OUT(ndarray)))       \
  X(ARRAYS, NAME, "nobody", "'nobody'", cohort_arrays_find(w->arrays, "nobody", &w->num))                            \
  X(ARRAYS, IO, "no/such/folder", "no/such/folder", cohort_arrays_save(w->arrays, "no/such/folder"))                 \
  X(ARRAYS, FMT, "data", "not a .params file", cohort_arrays_load_memory("123456789", 8, NULL, OUT(arrays)))         \
  X(ARRAYS, DEV, "gpu(4096)", "gpu(4096)", load_to(w, &no_gpu))                                                      \
  X(DESCS, ARG, "index", "expected an index below 1, found 1",                                                       \
    cohort_descs_get(w->descs, 1, NULL, NULL, 0, NULL, NULL, NULL))                                                  \
  X(DESCS, NAME, "nobody", "'nobody'", cohort_descs_find(w->descs, "nobody", &w->num))                               \
  X(DESCS, SHAPE_, "shape", "-3", cohort_descs_add(w->descs, "x", SHAPE(-3), COHORT_DTYPE_NONE, NULL))               \
  X(DESCS, DTYPE, "dtype", "code 77", cohort_descs_add(w->descs, "x", SHAPE(3), 77, NULL))                           \
  X(SYMBOL, ARG, "index", "expected an index below 1, found 1", cohort_symbol_output(w->symbol, 1, OUT(symbol)))     \
  X(SYMBOL, NAME, "nobody", "there are: lro_output", cohort_symbol_output_named(w->symbol, "nobody", OUT(symbol)))   \
  X(SYMBOL, SHAPE_, "fc", "(1, 3)", infer(w))                                                                        \
  X(SYMBOL, DTYPE, "fc", "input 1: expected int32, found float32", infer_dtypes(w))                                  \
  X(SYMBOL, STATE, "symbol", "one head", set_attr_of_heads(w))                                                       \
  X(SYMBOL, FMT, "symbol", "expected JSON", cohort_symbol_from_json("{", 1, OUT(symbol)))                            \
  X(SYMBOL, IO, "no/such/folder", "no/such/folder", cohort_symbol_save(w->symbol, "no/such/folder"))                 \
  X(EXECUTOR, ARG, "head_grads", "for each of 1 outputs, found 2", two_head_gradients(w))                            \
  X(EXECUTOR, NAME, "strange", "'strange'", cohort_executor_set_inputs(w->executor, w->strange))                     \
  X(EXECUTOR, SHAPE_, "data", "(4, 3)", cohort_executor_reshape(w->executor, w->misfit, NULL, OUT(executor)))        \
  X(EXECUTOR, DTYPE, "fc", "input 1: expected int32, found float32", bind_integers(w))                               \
  X(EXECUTOR, STATE, "backward", "no forward", cohort_executor_backward(w->executor, NULL, 0, 1))                    \
  X(EXECUTOR, UNSUP, "data", "sparse", sparse_data(w))                                                               \
  X(EXECUTOR, DEV, "gpu(4096)", "gpu(4096)",                                                                         \
    cohort_executor_simple_bind(w->symbol, &no_gpu, w->descs, NULL, OUT(executor)))                                  \
  X(EXECUTOR, OOM, "cpu(0)", "no memory for", grow(w))                                                               \
  X(EXECUTOR, EXEC, "LinearRegressionOutput 'lro'", "made to fail", fail_work(w))                                    \
  X(GROUP, ARG, "data", "expected 1 array,", cohort_group_load(w->group, NULL, 0, NULL, 0))                          \
  X(GROUP, NAME, "strange", "'strange'", cohort_group_set_params(w->group, w->strange, NULL, 0))                     \
  X(GROUP, SHAPE_, "data", "expected shape (4, 2), found (2,)", cohort_group_load(w->group, &w->array, 1, NULL, 0))  \
  X(GROUP, DTYPE, "data", "expected the bound dtype float32, found float64", reshape_dtype(w))                       \
  X(GROUP, STATE, "backward", "bound for inference", cohort_group_backward(w->inference, NULL, 0))                   \
  X(GROUP, STATE, "update", "no backward", cohort_group_update(w->group, w->optimizer, COHORT_UPDATE_ON_STORE))      \
  X(GROUP, STATE, "group", "rebind", cohort_group_bind(w->group, w->descs, NULL, NULL, 0))                           \
  X(GROUP, UNSUP, "states", "device by device", cohort_group_merged(w->group, COHORT_GROUP_STATES, 0, OUT(ndarray))) \
  X(GROUP, DEV, "gpu(4096)", "gpu(4096)",                                                                            \
    cohort_group_create(w->symbol, &no_gpu, 1, w->descs, NULL, NULL, 0, 0, NULL, OUT(group)))                        \
  X(GROUP, OOM, "cpu(0)", "no memory for", cohort_group_reshape(w->group, w->huge, NULL))                            \
  X(GROUP, EXEC, "LinearRegressionOutput 'lro'", "made to fail", fail_group(w))                                      \
  X(OPTIMIZER, ARG, "wd", "finite", cohort_optimizer_set(w->optimizer, "wd", w->number / w->number))                 \
  X(OPTIMIZER, NAME, "nobody", "'nobody'", cohort_optimizer_get(w->optimizer, "nobody", &w->number))                 \
  X(OPTIMIZER, SHAPE_, "w", "(3,)", cohort_optimizer_update(w->optimizer, "w", 0, w->array, w->wide))                \
  X(OPTIMIZER, DTYPE, "w", "int32", cohort_optimizer_update(w->optimizer, "w", 0, w->array, w->integers))            \
  X(OPTIMIZER, STATE, "learning_rate", "schedule", scheduled(w))                                                     \
  X(OPTIMIZER, DEV, "w", "cpu(1)", cohort_optimizer_update(w->optimizer, "w", 0, w->array, w->elsewhere))            \
  X(OPTIMIZER, FMT, "data", "byte", cohort_optimizer_load_states_memory(w->optimizer, "1234", 4))                    \
  X(OPTIMIZER, IO, "no/such/file", "no/such/file", cohort_optimizer_load_states(w->optimizer, "no/such/file"))       \
  X(METRIC, ARG, "index", "found 1", cohort_metric_value(w->metric, 1, 0, NULL, &w->number))                         \
  X(METRIC, NAME, "nobody", "'nobody'", cohort_metric_create("nobody", NULL, NULL, 0, OUT(metric)))                  \
  X(METRIC, SHAPE_, "mae", "(3,)", cohort_metric_update(w->metric, &w->wide, 1, &w->array, 1))                       \
  X(METRIC, STATE, "mae", "not composite", cohort_metric_add(w->metric, w->metric))                                  \
  X(METRIC, EXEC, "own", "returned 8", fail_metric(w))                                                               \
  X(INITIALIZER, ARG, "magnitude", "many", bad_magnitude(w))                                                         \
  X(INITIALIZER, NAME, "strange", "'strange'", cohort_initializer_apply(w->initializer, NULL, w->strange))           \
  X(INITIALIZER, SHAPE_, "w", "(2,)", cohort_initializer_fill(w->initializer, "w", w->array))                        \
  X(MONITOR, ARG, "index", "expected an index below 0, found 0",                                                     \
    cohort_monitor_entry(w->monitor, 0, NULL, NULL, NULL))                                                           \
  X(MONITOR, UNSUP, "monitor", "not supported", cohort_monitor_install_on_manager(w->monitor, w->manager))           \
  X(MONITOR, EXEC, "statistic", "returned 6", fail_statistic(w))                                                     \
  X(MANAGER, ARG, "bucket_key", "expected a bucket key", load_batch(w, NULL, 4))                                     \
  X(MANAGER, NAME, "strange", "'strange'", cohort_manager_set_params(w->manager, w->strange, NULL))                  \
  X(MANAGER, SHAPE_, "batch", "expected 4 samples", load_batch(w, "2", 5))                                           \
  X(MANAGER, STATE, "batch", "no batch", cohort_manager_forward(w->manager, 0))                                      \
  X(MANAGER, DEV, "gpu(4096)", "gpu(4096)", manager_on(w, &no_gpu, 4))                                               \
  X(MANAGER, OOM, "cpu(0)", "no memory for", manager_on(w, test_contexts(), (int64_t)1 << 38))                       \
  X(MANAGER, UNSUP, "monitor", "not supported", cohort_manager_set_monitor(w->manager, NULL, NULL, 0))               \
  X(MANAGER, EXEC, "new", "returned 9", load_batch(w, "new", 4))

typedef struct failure {
  enum kind kind;
  int32_t code;
  const char *subject, *part;
} failure;

static cohort_error *provoke(world *w, size_t which) {
  size_t at = 0;
#define TRY(kind, code, subject, part, expression) \
  if (at++ == which) return expression;
  FAILURES(TRY)
#undef TRY
  fail();
  return NULL;
}

#define LIST(kind, code, subject, part, expression) {kind, code, subject, part},
static const failure failures[] = {FAILURES(LIST)};

static void provoke_class(int32_t code) {
  size_t i, num = 0;

  for (i = 0; i < COUNT(failures); ++i) {
    const failure *expected = &failures[i];
    const char *const subject = strcmp(expected->subject, "cpu(0)") == 0 ? context_name(0) : expected->subject;
    cohort_error *error;
    int good;
    world w;

    if (expected->code != code) continue;
    ++num;
    make_world(&w);
    error = provoke(&w, i);
    good = cohort_error_code(error) == code && strcmp(cohort_error_subject(error), subject) == 0 &&
           strstr(cohort_error_message(error), expected->part) && !strchr(cohort_error_message(error), '\n');
    if (!good) {
      print_error("failure %zu: expected %s on '%s' with \"%s\", found %s on '%s': %s\n", i,
                  cohort_error_code_text(code), subject, expected->part,
                  cohort_error_code_text(cohort_error_code(error)), cohort_error_subject(error),
                  cohort_error_message(error));
    }
    cohort_error_free(error);
    assert_true(good);
    assert_null(w.out);
    assert_int_equal(w.num, 0);
    assert_true(w.number == 0);
    works(&w, expected->kind);
    free_world(&w);
  }
  assert_true(num > 0);
}

/* ERR-01: counts, ranges, values and handles. */
static void wrong_arguments(void **state) {
  (void)state;
  provoke_class(COHORT_ERROR_INVALID_ARGUMENT);
}

/* ERR-02: the unknown name, and where it was looked up. */
static void wrong_names(void **state) {
  (void)state;
  provoke_class(COHORT_ERROR_NAME);
}

/* ERR-03: expected and found shape, of an array or node. */
static void wrong_shapes_and_dtypes(void **state) {
  (void)state;
  provoke_class(COHORT_ERROR_SHAPE);
  provoke_class(COHORT_ERROR_DTYPE);
}

/* ERR-04: a valid call at the wrong time. */
static void wrong_moments(void **state) {
  (void)state;
  provoke_class(COHORT_ERROR_STATE);
}

/* ERR-05: features and devices that are not available. */
static void what_is_not_there(void **state) {
  (void)state;
  provoke_class(COHORT_ERROR_UNSUPPORTED);
  provoke_class(COHORT_ERROR_DEVICE);
}

/* ERR-06: contents of files, the file system, memory. */
static void files_and_memory(void **state) {
  (void)state;
  provoke_class(COHORT_ERROR_FORMAT);
  provoke_class(COHORT_ERROR_IO);
  provoke_class(COHORT_ERROR_OUT_OF_MEMORY);
}

/* ERR-07: queued work, and the caller's callbacks. */
static void failed_work(void **state) {
  (void)state;
  provoke_class(COHORT_ERROR_EXECUTION);
}

/* ERR-11: classes keep their numbers and names, because bindings map them to exceptions. */
static void classes_keep_their_numbers(void **state) {
  static const char *const names[] = {"success",       "invalid argument", "name",    "shape",  "dtype",
                                      "state",         "unsupported",      "device",  "format", "io",
                                      "out of memory", "execution",        "internal"};
  int32_t code;

  (void)state;
  assert_int_equal(COHORT_ERROR_INTERNAL, 12);
  for (code = 0; code <= COHORT_ERROR_INTERNAL; ++code) assert_string_equal(cohort_error_code_text(code), names[code]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(wrong_arguments),
      TEST(wrong_names),
      TEST(wrong_shapes_and_dtypes),
      TEST(wrong_moments),
      TEST(what_is_not_there),
      TEST(files_and_memory),
      TEST(failed_work),
      TEST(classes_keep_their_numbers),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
