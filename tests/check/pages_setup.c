/* SPDX-License-Identifier: Apache-2.0 */
/* Setup of the examples in bindings/from-mxnet. The declarations of the names they use are in the README there, and
 * come before this text in the program that pages.awk makes. */
#include <stdio.h>
#include <string.h>

/* An example ends at the first call that fails, and at a claim that does not hold. */
#define OK(call)                                           \
  do {                                                     \
    if (failed((call), #call, __FILE__, __LINE__)) return; \
  } while (0)
#define assert(claim)                                         \
  do {                                                        \
    if (untrue(!(claim), #claim, __FILE__, __LINE__)) return; \
  } while (0)

typedef struct {
  const char *name;
  void (*run)(void);
} example_t;

static int num_wrong;

static int failed(cohort_error *error, const char *call, const char *file, int line) {
  if (!error) return 0;
  printf("%s:%d: %s: %s error: %s\n", file, line, call, cohort_error_code_text(cohort_error_code(error)),
         cohort_error_message(error));
  cohort_error_free(error);
  return ++num_wrong;
}

/* The class of the error of a call that is meant to fail. */
static int32_t class_of(cohort_error *error) {
  const int32_t code = cohort_error_code(error);

  cohort_error_free(error);
  return code;
}

static int untrue(int is_untrue, const char *text, const char *file, int line) {
  if (!is_untrue) return 0;
  printf("%s:%d: it is not so that %s\n", file, line, text);
  return ++num_wrong;
}

/* A node on top of `input`, of which only the new handle is left. */
static void add_node(const char *op, const char *name, const char *key, const char *value, const char *ctx_group) {
  const char *keys[2] = {"ctx_group"}, *values[2];
  cohort_symbol *input = symbol;

  values[0] = ctx_group;
  keys[1] = key;
  values[1] = value;
  OK(cohort_symbol_create(op, name, keys, values, key ? 2 : 1, &input, NULL, 1, &symbol));
  cohort_symbol_free(input);
}

static void make_symbols(void) {
  const char *const keys[] = {"num_hidden", "flatten", "ctx_group"}, *const values[] = {"2", "False", "lower"};
  cohort_symbol *sum[2] = {NULL, NULL}, *input;

  OK(cohort_symbol_variable("data", NULL, NULL, 0, &input));
  OK(cohort_symbol_create("FullyConnected", "fc", keys, values, 3, &input, NULL, 1, &symbol));
  cohort_symbol_free(input);
  add_node("mean", "pool", "axis", "1", "upper");
  OK(cohort_symbol_copy(symbol, &sum[0]));
  OK(cohort_symbol_variable("memory", NULL, NULL, 0, &sum[1]));
  OK(cohort_symbol_create("elemwise_add", "next", NULL, NULL, 0, sum, NULL, 2, &recurrent));
  cohort_symbol_free(sum[0]);
  cohort_symbol_free(sum[1]);
  add_node("BatchNorm", "bn", NULL, NULL, "upper");
  OK(cohort_symbol_copy(symbol, &scores));
  add_node("SoftmaxOutput", "softmax", NULL, NULL, "upper");
}

static void make_batch(void) {
  const int64_t data_shape[] = {5, 4, 3}, label_shape[] = {5};
  const float labels[] = {0, 1, 0, 1, 1};

  OK(cohort_descs_create(&data_descs));
  OK(cohort_descs_add(data_descs, "data", data_shape, 3, COHORT_DTYPE_FLOAT32, "NTC"));
  OK(cohort_descs_create(&label_descs));
  OK(cohort_descs_add(label_descs, "softmax_label", label_shape, 1, COHORT_DTYPE_FLOAT32, "N"));
  OK(cohort_ndarray_zeros(data_shape, 3, COHORT_DTYPE_FLOAT32, NULL, &data[0]));
  OK(cohort_ndarray_fill_uniform(data[0], -1, 1, 7));
  OK(cohort_ndarray_from_host(labels, sizeof labels, label_shape, 1, COHORT_DTYPE_FLOAT32, NULL, &label[0]));
}

static void make_group(void) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_initializer *xavier;

  options.inputs_need_grad = 1;
  options.num_threads = 1;
  OK(cohort_group_create(symbol, contexts, 2, data_descs, label_descs, params, 4, 1, &options, &group));
  OK(cohort_group_copy_params(group, &arg_params, &aux_params));
  OK(cohort_initializer_create("xavier", NULL, NULL, 0, 1, &xavier));
  OK(cohort_initializer_apply(xavier, symbol, arg_params));
  OK(cohort_initializer_apply(xavier, symbol, aux_params));
  cohort_initializer_free(xavier);
  OK(cohort_group_set_params(group, arg_params, aux_params, 0));
  OK(cohort_group_forward(group, data, 1, label, 1, 1));
  OK(cohort_group_backward(group, NULL, 0));
}

static void make_executor(void) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  size_t i;

  options.grad_req = "write";
  options.num_threads = 1;
  OK(cohort_executor_simple_bind(symbol, NULL, data_descs, &options, &executor));
  OK(cohort_executor_copy_params_from(executor, arg_params, aux_params, 0));
  OK(cohort_executor_forward(executor, 1));
  OK(cohort_executor_backward(executor, NULL, 0, 1));
  for (i = 0; i < 6; ++i) {
    OK(cohort_executor_array(executor, COHORT_EXECUTOR_ARGS, i, &in_args[i]));
    OK(cohort_executor_array(executor, COHORT_EXECUTOR_GRADS, i, &arg_grads[i]));
  }
  for (i = 0; i < 2; ++i) OK(cohort_executor_array(executor, COHORT_EXECUTOR_AUX, i, &aux_states[i]));
}

static void make_manager(void) {
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;

  options.num_threads = 1;
  OK(cohort_manager_create(symbol, contexts, 2, 5, data_descs, label_descs, params, 4, &options, &manager));
  OK(cohort_manager_set_params(manager, arg_params, aux_params));
  OK(cohort_manager_load_data_batch(manager, data, 1, label, 1, NULL, NULL, NULL));
  OK(cohort_manager_forward(manager, 1));
  OK(cohort_manager_backward(manager));
}

static void make_rest(void) {
  OK(cohort_metric_create("accuracy", NULL, NULL, 0, &metric));
  OK(cohort_monitor_create(1, NULL, &monitor));
  OK(cohort_optimizer_create("sgd", NULL, NULL, 0, &optimizer));
}

static void free_everything(void) {
  size_t i;

#define FREE(kind, handle) cohort_##kind##_free(handle), (handle) = NULL
  for (i = 0; i < 2; ++i) FREE(ndarray, per_device[i]), FREE(ndarray, aux_states[i]);
  for (i = 0; i < 6; ++i) FREE(ndarray, in_args[i]), FREE(ndarray, arg_grads[i]);
  FREE(symbol, symbol), FREE(symbol, scores), FREE(symbol, recurrent), FREE(symbol, new_symbol);
  FREE(descs, data_descs), FREE(descs, label_descs), FREE(descs, descs);
  FREE(ndarray, data[0]), FREE(ndarray, label[0]), FREE(ndarray, array);
  FREE(arrays, arg_params), FREE(arrays, aux_params), FREE(arrays, arrays);
  FREE(group, group), FREE(group, new_group), FREE(executor, executor), FREE(executor, new_executor);
  FREE(manager, manager), FREE(manager, new_manager), FREE(metric, metric), FREE(metric, new_metric);
  FREE(monitor, monitor), FREE(monitor, new_monitor), FREE(optimizer, optimizer);
#undef FREE
}

static void run_one(const example_t *example) {
  const size_t before = cohort_live_handles();

  make_symbols();
  make_batch();
  make_group();
  make_executor();
  make_manager();
  make_rest();
  if (!num_wrong) example->run();
  free_everything();
  if (!num_wrong && cohort_live_handles() != before) {
    printf("%s: %zu handles are left\n", example->name, cohort_live_handles() - before);
    ++num_wrong;
  }
}

/* Lines as CMocka writes them, which the runner of the tests counts. */
static int run_examples(const example_t *examples, size_t num) {
  size_t i, num_failed = 0;

  for (i = 0; i < num; ++i) {
    printf("[ RUN      ] %s\n", examples[i].name);
    num_wrong = 0;
    run_one(&examples[i]);
    printf("[  %s ] %s\n", num_wrong ? "FAILED " : "     OK", examples[i].name);
    num_failed += num_wrong != 0;
  }
  return num_failed != 0;
}
