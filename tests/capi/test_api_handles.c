/* SPDX-License-Identifier: Apache-2.0 */
/* Every function that takes a handle refuses NULL, a freed handle, one of another kind, and any other pointer, without
 * writing its out parameters; and handles may be freed in any order. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/boundary.h"

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
  TAPE,
  TRACE,
  NUM_KINDS
};

static cohort_context cpu0 = {COHORT_DEVICE_CPU, 0};

static const char *const kind_names[NUM_KINDS] = {
    "array",     "list of arrays", "list of descriptors", "symbol",  "executor", "group",
    "optimizer", "metric",         "initializer",         "monitor", "manager",  "tape",
    "trace"};

/* A live handle of each kind. */
typedef struct handles {
  void *of[NUM_KINDS];
} handles;

static void free_one(enum kind kind, void *handle) {
  switch (kind) {
    case NDARRAY:
      cohort_ndarray_free(handle);
      break;
    case ARRAYS:
      cohort_arrays_free(handle);
      break;
    case DESCS:
      cohort_descs_free(handle);
      break;
    case SYMBOL:
      cohort_symbol_free(handle);
      break;
    case EXECUTOR:
      cohort_executor_free(handle);
      break;
    case GROUP:
      cohort_group_free(handle);
      break;
    case OPTIMIZER:
      cohort_optimizer_free(handle);
      break;
    case METRIC:
      cohort_metric_free(handle);
      break;
    case INITIALIZER:
      cohort_initializer_free(handle);
      break;
    case MONITOR:
      cohort_monitor_free(handle);
      break;
    case MANAGER:
      cohort_manager_free(handle);
      break;
    case TAPE:
      cohort_tape_free(handle);
      break;
    case TRACE:
      cohort_trace_free(handle);
      break;
    default:
      fail();
  }
}

static handles make_handles(void) {
  handles made;
  cohort_group *group = small_group(2, 4);
  cohort_ndarray *output = NULL;
  cohort_arrays *params = NULL;
  cohort_descs *descs = NULL;
  cohort_executor *executor = NULL;
  cohort_symbol *symbol = NULL;
  cohort_optimizer *optimizer = NULL;
  cohort_metric *metric = NULL;
  cohort_initializer *initializer = NULL;
  cohort_monitor *monitor = NULL;
  cohort_manager *manager = NULL;
  cohort_tape *tape = NULL;
  cohort_trace *trace = NULL;

  ok(cohort_group_array(group, COHORT_GROUP_OUTPUTS, 0, 1, &output));
  ok(cohort_group_arrays(group, COHORT_GROUP_PARAMS, 0, &params));
  ok(cohort_group_descs(group, COHORT_GROUP_DATA, &descs));
  ok(cohort_group_executor(group, 1, &executor));
  ok(cohort_executor_symbol(executor, &symbol));
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &optimizer));
  ok(cohort_metric_create("accuracy", NULL, NULL, 0, &metric));
  ok(cohort_initializer_create("uniform", NULL, NULL, 0, 7, &initializer));
  ok(cohort_monitor_create(1, NULL, &monitor));
  ok(cohort_manager_create(symbol, &cpu0, 1, 4, descs, NULL, NULL, 0, NULL, &manager));
  made.of[NDARRAY] = output;
  made.of[ARRAYS] = params;
  made.of[DESCS] = descs;
  made.of[SYMBOL] = symbol;
  made.of[EXECUTOR] = executor;
  made.of[GROUP] = group;
  made.of[OPTIMIZER] = optimizer;
  made.of[METRIC] = metric;
  made.of[INITIALIZER] = initializer;
  made.of[MONITOR] = monitor;
  ok(cohort_tape_create(&tape));
  ok(cohort_trace_create(NULL, &trace));
  made.of[MANAGER] = manager;
  made.of[TAPE] = tape;
  made.of[TRACE] = trace;
  return made;
}

static void free_handles(handles *made) {
  int kind;

  for (kind = 0; kind < NUM_KINDS; ++kind) free_one((enum kind)kind, made->of[kind]);
}

/* All out parameters of all functions. A call that fails must not change any byte of them. */
typedef struct outs {
  void *handle, *handle2, *handle3;
  const char *text, *text2, *text3;
  int64_t shape[COHORT_MAX_AXES], int64, int64_2;
  int32_t int32, int32_2, axes[4];
  size_t size, size2;
  double number, number2;
  char bytes[64];
  cohort_context context;
  cohort_memory_info memory;
  cohort_trace_info trace;
  cohort_span_total total;
} outs;

static outs out, untouched;

/* Calls each function with the handle under test in one parameter and valid arguments in all others. */
typedef struct probe {
  const char *name;
  enum kind kind;
  cohort_error *(*call)(void *handle, const handles *live);
} probe;

#define PROBES(X)                                                                                                      \
  X(arrays_add, ARRAYS, cohort_arrays_add(h, "x", live->of[NDARRAY]))                                                  \
  X(arrays_add_array, NDARRAY, cohort_arrays_add(live->of[ARRAYS], "x", h))                                            \
  X(arrays_set, ARRAYS, cohort_arrays_set(h, "fc_bias", live->of[NDARRAY]))                                            \
  X(arrays_set_array, NDARRAY, cohort_arrays_set(live->of[ARRAYS], "fc_bias", h))                                      \
  X(arrays_num, ARRAYS, cohort_arrays_num(h, &out.size))                                                               \
  X(arrays_name, ARRAYS, cohort_arrays_name(h, 0, &out.text))                                                          \
  X(arrays_get, ARRAYS, cohort_arrays_get(h, 0, (cohort_ndarray **)&out.handle))                                       \
  X(arrays_find, ARRAYS, cohort_arrays_find(h, "fc_bias", &out.size))                                                  \
  X(arrays_save, ARRAYS, cohort_arrays_save(h, "never-written.params"))                                                \
  X(arrays_save_memory, ARRAYS, cohort_arrays_save_memory(h, NULL, 0, &out.size))                                      \
  X(descs_add, DESCS, cohort_descs_add(h, "x", NULL, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, NULL))                   \
  X(descs_num, DESCS, cohort_descs_num(h, &out.size))                                                                  \
  X(descs_get, DESCS,                                                                                                  \
    cohort_descs_get(h, 0, &out.text, out.shape, COHORT_MAX_AXES, &out.int32, &out.int32_2, &out.text2))               \
  X(descs_find, DESCS, cohort_descs_find(h, "data", &out.size))                                                        \
  X(executor_bind_symbol, SYMBOL,                                                                                      \
    cohort_executor_bind(h, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, (cohort_executor **)&out.handle))                \
  X(executor_simple_bind_symbol, SYMBOL,                                                                               \
    cohort_executor_simple_bind(h, NULL, live->of[DESCS], NULL, (cohort_executor **)&out.handle))                      \
  X(executor_simple_bind_known, DESCS,                                                                                 \
    cohort_executor_simple_bind(live->of[SYMBOL], NULL, h, NULL, (cohort_executor **)&out.handle))                     \
  X(executor_reshape, EXECUTOR, cohort_executor_reshape(h, live->of[DESCS], NULL, (cohort_executor **)&out.handle))    \
  X(executor_reshape_known, DESCS,                                                                                     \
    cohort_executor_reshape(live->of[EXECUTOR], h, NULL, (cohort_executor **)&out.handle))                             \
  X(executor_symbol, EXECUTOR, cohort_executor_symbol(h, (cohort_symbol **)&out.handle))                               \
  X(executor_context, EXECUTOR, cohort_executor_context(h, &out.context))                                              \
  X(executor_num_arrays, EXECUTOR, cohort_executor_num_arrays(h, COHORT_EXECUTOR_ARGS, &out.size))                     \
  X(executor_name, EXECUTOR, cohort_executor_name(h, COHORT_EXECUTOR_ARGS, 0, &out.text))                              \
  X(executor_array, EXECUTOR, cohort_executor_array(h, COHORT_EXECUTOR_ARGS, 0, (cohort_ndarray **)&out.handle))       \
  X(executor_array_named, EXECUTOR,                                                                                    \
    cohort_executor_array_named(h, COHORT_EXECUTOR_ARGS, "data", (cohort_ndarray **)&out.handle))                      \
  X(executor_arrays, EXECUTOR, cohort_executor_arrays(h, COHORT_EXECUTOR_ARGS, (cohort_arrays **)&out.handle))         \
  X(executor_grad_req, EXECUTOR, cohort_executor_grad_req(h, 0, &out.int32))                                           \
  X(executor_set_inputs, EXECUTOR, cohort_executor_set_inputs(h, live->of[ARRAYS]))                                    \
  X(executor_set_inputs_arrays, ARRAYS, cohort_executor_set_inputs(live->of[EXECUTOR], h))                             \
  X(executor_copy_params, EXECUTOR, cohort_executor_copy_params_from(h, live->of[ARRAYS], NULL, 1))                    \
  X(executor_copy_params_arrays, ARRAYS, cohort_executor_copy_params_from(live->of[EXECUTOR], h, NULL, 1))             \
  X(executor_forward, EXECUTOR, cohort_executor_forward(h, 0))                                                         \
  X(executor_partial_forward, EXECUTOR, cohort_executor_partial_forward(h, 0, 0, &out.int32))                          \
  X(executor_backward, EXECUTOR, cohort_executor_backward(h, NULL, 0, 1))                                              \
  X(executor_wait, EXECUTOR, cohort_executor_wait(h))                                                                  \
  X(executor_set_monitor, EXECUTOR, cohort_executor_set_monitor(h, NULL, NULL, 0))                                     \
  X(executor_debug_text, EXECUTOR, cohort_executor_debug_text(h, &out.text))                                           \
  X(executor_memory, EXECUTOR, cohort_executor_memory(h, &out.memory))                                                 \
  X(group_create_symbol, SYMBOL,                                                                                       \
    cohort_group_create(h, &cpu0, 1, live->of[DESCS], NULL, NULL, 0, 0, NULL, (cohort_group **)&out.handle))           \
  X(group_create_data, DESCS,                                                                                          \
    cohort_group_create(live->of[SYMBOL], &cpu0, 1, h, NULL, NULL, 0, 0, NULL, (cohort_group **)&out.handle))          \
  X(group_bind, GROUP, cohort_group_bind(h, live->of[DESCS], NULL, NULL, 1))                                           \
  X(group_bind_data, DESCS, cohort_group_bind(live->of[GROUP], h, NULL, NULL, 1))                                      \
  X(group_reshape, GROUP, cohort_group_reshape(h, live->of[DESCS], NULL))                                              \
  X(group_reshape_data, DESCS, cohort_group_reshape(live->of[GROUP], h, NULL))                                         \
  X(group_num_contexts, GROUP, cohort_group_num_contexts(h, &out.size))                                                \
  X(group_context, GROUP, cohort_group_context(h, 0, &out.context))                                                    \
  X(group_executor, GROUP, cohort_group_executor(h, 0, (cohort_executor **)&out.handle))                               \
  X(group_batch_size, GROUP, cohort_group_batch_size(h, &out.int64))                                                   \
  X(group_slice, GROUP, cohort_group_slice(h, 0, &out.int64, &out.int64_2))                                            \
  X(group_decide_slices, GROUP, cohort_group_decide_slices(h, live->of[DESCS], out.axes))                              \
  X(group_decide_slices_descs, DESCS, cohort_group_decide_slices(live->of[GROUP], h, out.axes))                        \
  X(group_sliced_shape, GROUP, cohort_group_sliced_shape(h, live->of[DESCS], 0, NULL, (cohort_descs **)&out.handle))   \
  X(group_sliced_shape_descs, DESCS,                                                                                   \
    cohort_group_sliced_shape(live->of[GROUP], h, 0, NULL, (cohort_descs **)&out.handle))                              \
  X(group_descs, GROUP, cohort_group_descs(h, COHORT_GROUP_DATA, (cohort_descs **)&out.handle))                        \
  X(group_output_shapes, GROUP, cohort_group_output_shapes(h, (cohort_descs **)&out.handle))                           \
  X(group_num_arrays, GROUP, cohort_group_num_arrays(h, COHORT_GROUP_ARGS, &out.size))                                 \
  X(group_name, GROUP, cohort_group_name(h, COHORT_GROUP_ARGS, 0, &out.text))                                          \
  X(group_axis, GROUP, cohort_group_axis(h, COHORT_GROUP_DATA, 0, &out.int32))                                         \
  X(group_array, GROUP, cohort_group_array(h, COHORT_GROUP_ARGS, 0, 0, (cohort_ndarray **)&out.handle))                \
  X(group_arrays, GROUP, cohort_group_arrays(h, COHORT_GROUP_ARGS, 0, (cohort_arrays **)&out.handle))                  \
  X(group_merged, GROUP, cohort_group_merged(h, COHORT_GROUP_OUTPUTS, 0, (cohort_ndarray **)&out.handle))              \
  X(group_shared_data, GROUP, cohort_group_shared_data(h, 0, (cohort_arrays **)&out.handle))                           \
  X(group_set_params, GROUP, cohort_group_set_params(h, live->of[ARRAYS], NULL, 1))                                    \
  X(group_set_params_arrays, ARRAYS, cohort_group_set_params(live->of[GROUP], h, NULL, 1))                             \
  X(group_set_params_aux, ARRAYS, cohort_group_set_params(live->of[GROUP], live->of[ARRAYS], h, 1))                    \
  X(group_get_params, GROUP, cohort_group_get_params(h, live->of[ARRAYS], NULL))                                       \
  X(group_get_params_arrays, ARRAYS, cohort_group_get_params(live->of[GROUP], h, NULL))                                \
  X(group_copy_params, GROUP,                                                                                          \
    cohort_group_copy_params(h, (cohort_arrays **)&out.handle, (cohort_arrays **)&out.handle2))                        \
  X(group_load, GROUP, cohort_group_load(h, NULL, 0, NULL, 0))                                                         \
  X(group_load_data, NDARRAY, cohort_group_load(live->of[GROUP], (cohort_ndarray **)&h, 1, NULL, 0))                   \
  X(group_run, GROUP, cohort_group_run(h, 0))                                                                          \
  X(group_forward, GROUP, cohort_group_forward(h, NULL, 0, NULL, 0, 0))                                                \
  X(group_forward_data, NDARRAY, cohort_group_forward(live->of[GROUP], (cohort_ndarray **)&h, 1, NULL, 0, 0))          \
  X(group_forward_presliced, GROUP, cohort_group_forward_presliced(h, 2, NULL, 0, NULL, 0, 0))                         \
  X(group_backward, GROUP, cohort_group_backward(h, NULL, 0))                                                          \
  X(group_update, GROUP, cohort_group_update(h, live->of[OPTIMIZER], COHORT_UPDATE_ON_STORE))                          \
  X(group_update_optimizer, OPTIMIZER, cohort_group_update(live->of[GROUP], h, COHORT_UPDATE_ON_STORE))                \
  X(group_update_metric, GROUP, cohort_group_update_metric(h, live->of[METRIC], NULL, 0))                              \
  X(group_update_metric_metric, METRIC, cohort_group_update_metric(live->of[GROUP], h, NULL, 0))                       \
  X(group_update_metric_presliced, GROUP, cohort_group_update_metric_presliced(h, live->of[METRIC], 2, NULL, 0))       \
  X(group_set_states, GROUP, cohort_group_set_states(h, NULL, 0, 0, &one))                                             \
  X(group_set_monitor, GROUP, cohort_group_set_monitor(h, NULL, NULL, 0))                                              \
  X(group_wait, GROUP, cohort_group_wait(h))                                                                           \
  X(group_memory, GROUP, cohort_group_memory(h, 0, &out.memory))                                                       \
  X(initializer_apply, INITIALIZER, cohort_initializer_apply(h, NULL, live->of[ARRAYS]))                               \
  X(initializer_apply_arrays, ARRAYS, cohort_initializer_apply(live->of[INITIALIZER], NULL, h))                        \
  X(initializer_fill, INITIALIZER, cohort_initializer_fill(h, "w", live->of[NDARRAY]))                                 \
  X(initializer_fill_array, NDARRAY, cohort_initializer_fill(live->of[INITIALIZER], "w", h))                           \
  X(manager_create_symbol, SYMBOL,                                                                                     \
    cohort_manager_create(h, &cpu0, 1, 4, live->of[DESCS], NULL, NULL, 0, NULL, (cohort_manager **)&out.handle))       \
  X(manager_create_data, DESCS,                                                                                        \
    cohort_manager_create(live->of[SYMBOL], &cpu0, 1, 4, h, NULL, NULL, 0, NULL, (cohort_manager **)&out.handle))      \
  X(manager_num_contexts, MANAGER, cohort_manager_num_contexts(h, &out.size))                                          \
  X(manager_slice, MANAGER, cohort_manager_slice(h, 0, &out.int64, &out.int64_2))                                      \
  X(tape_mark, TAPE, cohort_tape_mark(h, NULL, NULL, NULL, 0))                                                         \
  X(tape_mark_array, NDARRAY, cohort_tape_mark(live->of[TAPE], (cohort_ndarray **)&h, NULL, NULL, 1))                  \
  X(tape_set_recording, TAPE, cohort_tape_set_recording(h, 1, NULL))                                                   \
  X(tape_is_recording, TAPE, cohort_tape_is_recording(h, &out.int32))                                                  \
  X(tape_set_training, TAPE, cohort_tape_set_training(h, 1, NULL))                                                     \
  X(tape_is_training, TAPE, cohort_tape_is_training(h, &out.int32))                                                    \
  X(tape_invoke, TAPE,                                                                                                 \
    cohort_tape_invoke(h, "sin", NULL, NULL, 0, NULL, 0, NULL, 0, NULL, (cohort_arrays **)&out.handle))                \
  X(tape_backward, TAPE, cohort_tape_backward(h, NULL, NULL, 0, NULL))                                                 \
  X(tape_grad, TAPE, cohort_tape_grad(h, NULL, NULL, 0, NULL, 0, NULL, (cohort_arrays **)&out.handle))                 \
  X(tape_symbol_array, NDARRAY, cohort_tape_symbol(live->of[TAPE], h, (cohort_symbol **)&out.handle))                  \
  X(tape_num_recorded, TAPE, cohort_tape_num_recorded(h, &out.size))                                                   \
  X(trace_start, TRACE, cohort_trace_start(h))                                                                         \
  X(trace_stop, TRACE, cohort_trace_stop(h))                                                                           \
  X(trace_clear, TRACE, cohort_trace_clear(h))                                                                         \
  X(trace_get_info, TRACE, cohort_trace_get_info(h, &out.trace))                                                       \
  X(trace_json, TRACE, cohort_trace_json(h, &out.text))                                                                \
  X(trace_write, TRACE, cohort_trace_write(h, "/dev/null"))                                                            \
  X(trace_num_totals, TRACE, cohort_trace_num_totals(h, 0, &out.size))                                                 \
  X(trace_total, TRACE, cohort_trace_total(h, 0, 0, &out.text, &out.text2, &out.total))                                \
  X(trace_table, TRACE, cohort_trace_table(h, 0, &out.text))                                                           \
  X(trace_begin, TRACE, cohort_trace_begin(h, "row", "name"))                                                          \
  X(trace_end, TRACE, cohort_trace_end(h, "row"))                                                                      \
  X(trace_mark, TRACE, cohort_trace_mark(h, "row", "name"))                                                            \
  X(trace_counter, TRACE, cohort_trace_counter(h, "name", 1))                                                          \
  X(manager_num_buckets, MANAGER, cohort_manager_num_buckets(h, &out.size))                                            \
  X(manager_main_group, MANAGER, cohort_manager_main_group(h, (cohort_group **)&out.handle))                           \
  X(manager_current_group, MANAGER, cohort_manager_current_group(h, (cohort_group **)&out.handle))                     \
  X(manager_load, MANAGER, cohort_manager_load_data_batch(h, NULL, 0, NULL, 0, NULL, NULL, NULL))                      \
  X(manager_load_data, NDARRAY,                                                                                        \
    cohort_manager_load_data_batch(live->of[MANAGER], (cohort_ndarray **)&h, 1, NULL, 0, NULL, NULL, NULL))            \
  X(manager_forward, MANAGER, cohort_manager_forward(h, 0))                                                            \
  X(manager_backward, MANAGER, cohort_manager_backward(h))                                                             \
  X(manager_update, MANAGER, cohort_manager_update(h, live->of[OPTIMIZER], COHORT_UPDATE_ON_STORE))                    \
  X(manager_update_optimizer, OPTIMIZER, cohort_manager_update(live->of[MANAGER], h, COHORT_UPDATE_ON_STORE))          \
  X(manager_update_metric, MANAGER, cohort_manager_update_metric(h, live->of[METRIC], NULL, 0))                        \
  X(manager_update_metric_metric, METRIC, cohort_manager_update_metric(live->of[MANAGER], h, NULL, 0))                 \
  X(manager_update_metric_presliced, MANAGER, cohort_manager_update_metric_presliced(h, live->of[METRIC], 1, NULL, 0)) \
  X(manager_num_arrays, MANAGER, cohort_manager_num_arrays(h, COHORT_GROUP_PARAMS, &out.size))                         \
  X(manager_name, MANAGER, cohort_manager_name(h, COHORT_GROUP_PARAMS, 0, &out.text))                                  \
  X(manager_array, MANAGER, cohort_manager_array(h, COHORT_GROUP_PARAMS, 0, 0, (cohort_ndarray **)&out.handle))        \
  X(manager_arrays, MANAGER, cohort_manager_arrays(h, COHORT_GROUP_PARAMS, 0, (cohort_arrays **)&out.handle))          \
  X(manager_merged, MANAGER, cohort_manager_merged(h, COHORT_GROUP_OUTPUTS, 0, (cohort_ndarray **)&out.handle))        \
  X(manager_set_params, MANAGER, cohort_manager_set_params(h, live->of[ARRAYS], NULL))                                 \
  X(manager_set_params_arrays, ARRAYS, cohort_manager_set_params(live->of[MANAGER], h, NULL))                          \
  X(manager_copy_to, MANAGER, cohort_manager_copy_to(h, live->of[ARRAYS], NULL))                                       \
  X(manager_copy_to_arrays, ARRAYS, cohort_manager_copy_to(live->of[MANAGER], h, NULL))                                \
  X(manager_set_monitor, MANAGER, cohort_manager_set_monitor(h, NULL, NULL, 0))                                        \
  X(monitor_install_on_manager, MONITOR, cohort_monitor_install_on_manager(h, live->of[MANAGER]))                      \
  X(monitor_install_on_manager_manager, MANAGER, cohort_monitor_install_on_manager(live->of[MONITOR], h))              \
  X(metric_add, METRIC, cohort_metric_add(h, live->of[METRIC]))                                                        \
  X(metric_num_children, METRIC, cohort_metric_num_children(h, &out.size))                                             \
  X(metric_child, METRIC, cohort_metric_child(h, 0, (cohort_metric **)&out.handle))                                    \
  X(metric_set_names, METRIC, cohort_metric_set_names(h, NULL, 0, NULL, 0))                                            \
  X(metric_update, METRIC, cohort_metric_update(h, NULL, 0, NULL, 0))                                                  \
  X(metric_update_label, NDARRAY,                                                                                      \
    cohort_metric_update(live->of[METRIC], (cohort_ndarray **)&h, 1, (cohort_ndarray **)&h, 1))                        \
  X(metric_update_named, METRIC, cohort_metric_update_named(h, live->of[ARRAYS], live->of[ARRAYS]))                    \
  X(metric_update_named_labels, ARRAYS, cohort_metric_update_named(live->of[METRIC], h, live->of[ARRAYS]))             \
  X(metric_reset, METRIC, cohort_metric_reset(h))                                                                      \
  X(metric_reset_local, METRIC, cohort_metric_reset_local(h))                                                          \
  X(metric_num_values, METRIC, cohort_metric_num_values(h, &out.size))                                                 \
  X(metric_value, METRIC, cohort_metric_value(h, 0, 0, &out.text, &out.number))                                        \
  X(metric_counters, METRIC, cohort_metric_counters(h, 0, 0, &out.number, &out.number2))                               \
  X(monitor_install_on_executor, MONITOR, cohort_monitor_install_on_executor(h, live->of[EXECUTOR]))                   \
  X(monitor_install_on_executor_executor, EXECUTOR, cohort_monitor_install_on_executor(live->of[MONITOR], h))          \
  X(monitor_install_on_group, MONITOR, cohort_monitor_install_on_group(h, live->of[GROUP]))                            \
  X(monitor_install_on_group_group, GROUP, cohort_monitor_install_on_group(live->of[MONITOR], h))                      \
  X(monitor_tic, MONITOR, cohort_monitor_tic(h))                                                                       \
  X(monitor_toc, MONITOR, cohort_monitor_toc(h, &out.size))                                                            \
  X(monitor_step, MONITOR, cohort_monitor_step(h, &out.int64))                                                         \
  X(monitor_entry, MONITOR, cohort_monitor_entry(h, 0, &out.int64, &out.text, &out.text2))                             \
  X(monitor_values, MONITOR, cohort_monitor_values(h, 0, (cohort_arrays **)&out.handle))                               \
  X(ndarray_share, NDARRAY, cohort_ndarray_share(h, (cohort_ndarray **)&out.handle))                                   \
  X(ndarray_shape, NDARRAY, cohort_ndarray_shape(h, out.shape, COHORT_MAX_AXES, &out.int32))                           \
  X(ndarray_dtype, NDARRAY, cohort_ndarray_dtype(h, &out.int32))                                                       \
  X(ndarray_context, NDARRAY, cohort_ndarray_context(h, &out.context))                                                 \
  X(ndarray_size, NDARRAY, cohort_ndarray_size(h, &out.int64))                                                         \
  X(ndarray_bytes, NDARRAY, cohort_ndarray_bytes(h, &out.size))                                                        \
  X(ndarray_data, NDARRAY, cohort_ndarray_data(h, &out.handle))                                                        \
  X(ndarray_read, NDARRAY, cohort_ndarray_read(h, out.bytes, sizeof(out.bytes)))                                       \
  X(ndarray_write, NDARRAY, cohort_ndarray_write(h, &one, sizeof(one)))                                                \
  X(ndarray_wait, NDARRAY, cohort_ndarray_wait(h))                                                                     \
  X(ndarray_fill, NDARRAY, cohort_ndarray_fill(h, 1))                                                                  \
  X(ndarray_fill_uniform, NDARRAY, cohort_ndarray_fill_uniform(h, 0, 1, 1))                                            \
  X(ndarray_fill_normal, NDARRAY, cohort_ndarray_fill_normal(h, 0, 1, 1))                                              \
  X(ndarray_copy_to, NDARRAY, cohort_ndarray_copy_to(h, live->of[NDARRAY]))                                            \
  X(ndarray_copy_to_target, NDARRAY, cohort_ndarray_copy_to(live->of[NDARRAY], h))                                     \
  X(ndarray_copy, NDARRAY, cohort_ndarray_copy(h, NULL, (cohort_ndarray **)&out.handle))                               \
  X(ndarray_cast, NDARRAY, cohort_ndarray_cast(h, COHORT_DTYPE_INT8, (cohort_ndarray **)&out.handle))                  \
  X(ndarray_slice, NDARRAY, cohort_ndarray_slice(h, 0, 1, (cohort_ndarray **)&out.handle))                             \
  X(ndarray_at, NDARRAY, cohort_ndarray_at(h, 0, (cohort_ndarray **)&out.handle))                                      \
  X(ndarray_slice_axis, NDARRAY, cohort_ndarray_slice_axis(h, 1, 0, 1, (cohort_ndarray **)&out.handle))                \
  X(ndarray_reshape, NDARRAY, cohort_ndarray_reshape(h, &four, 1, (cohort_ndarray **)&out.handle))                     \
  X(ndarray_reshape_prefix, NDARRAY, cohort_ndarray_reshape_prefix(h, &four, 1, (cohort_ndarray **)&out.handle))       \
  X(ndarray_concat, NDARRAY, cohort_ndarray_concat((cohort_ndarray **)&h, 1, 0, (cohort_ndarray **)&out.handle))       \
  X(ndarray_to_dlpack, NDARRAY, cohort_ndarray_to_dlpack(h, &out.handle))                                              \
  X(operator_invoke_input, NDARRAY,                                                                                    \
    cohort_operator_invoke("relu", NULL, NULL, 0, (cohort_ndarray **)&h, 1, NULL, 0, NULL,                             \
                           (cohort_arrays **)&out.handle))                                                             \
  X(optimizer_get, OPTIMIZER, cohort_optimizer_get(h, "wd", &out.number))                                              \
  X(optimizer_set, OPTIMIZER, cohort_optimizer_set(h, "wd", 0))                                                        \
  X(optimizer_set_lr_schedule, OPTIMIZER, cohort_optimizer_set_lr_schedule(h, NULL, NULL, NULL, 0))                    \
  X(optimizer_use_symbol, OPTIMIZER, cohort_optimizer_use_symbol(h, live->of[SYMBOL]))                                 \
  X(optimizer_use_symbol_symbol, SYMBOL, cohort_optimizer_use_symbol(live->of[OPTIMIZER], h))                          \
  X(optimizer_set_mult, OPTIMIZER, cohort_optimizer_set_mult(h, "w", 1, 1))                                            \
  X(optimizer_mult, OPTIMIZER, cohort_optimizer_mult(h, "w", &out.number, &out.number2))                               \
  X(optimizer_update, OPTIMIZER, cohort_optimizer_update(h, "w", 0, live->of[NDARRAY], live->of[NDARRAY]))             \
  X(optimizer_update_weight, NDARRAY, cohort_optimizer_update(live->of[OPTIMIZER], "w", 0, h, live->of[NDARRAY]))      \
  X(optimizer_update_grad, NDARRAY, cohort_optimizer_update(live->of[OPTIMIZER], "w", 0, live->of[NDARRAY], h))        \
  X(optimizer_save_states, OPTIMIZER, cohort_optimizer_save_states(h, "never-written.states"))                         \
  X(optimizer_save_states_memory, OPTIMIZER, cohort_optimizer_save_states_memory(h, NULL, 0, &out.size))               \
  X(optimizer_load_states, OPTIMIZER, cohort_optimizer_load_states(h, "not-there.states"))                             \
  X(optimizer_load_states_memory, OPTIMIZER, cohort_optimizer_load_states_memory(h, &one, sizeof(one)))                \
  X(symbol_create_input, SYMBOL,                                                                                       \
    cohort_symbol_create("relu", "r", NULL, NULL, 0, (cohort_symbol **)&h, NULL, 1, (cohort_symbol **)&out.handle))    \
  X(symbol_group, SYMBOL, cohort_symbol_group((cohort_symbol **)&h, 1, (cohort_symbol **)&out.handle))                 \
  X(symbol_copy, SYMBOL, cohort_symbol_copy(h, (cohort_symbol **)&out.handle))                                         \
  X(symbol_compose, SYMBOL, cohort_symbol_compose(h, NULL, NULL, 0, NULL, (cohort_symbol **)&out.handle))              \
  X(symbol_compose_input, SYMBOL,                                                                                      \
    cohort_symbol_compose(live->of[SYMBOL], NULL, (cohort_symbol **)&h, 1, NULL, (cohort_symbol **)&out.handle))       \
  X(symbol_internals, SYMBOL, cohort_symbol_internals(h, (cohort_symbol **)&out.handle))                               \
  X(symbol_children, SYMBOL, cohort_symbol_children(h, (cohort_symbol **)&out.handle))                                 \
  X(symbol_output, SYMBOL, cohort_symbol_output(h, 0, (cohort_symbol **)&out.handle))                                  \
  X(symbol_output_named, SYMBOL, cohort_symbol_output_named(h, "softmax_output", (cohort_symbol **)&out.handle))       \
  X(symbol_num_nodes, SYMBOL, cohort_symbol_num_nodes(h, &out.size))                                                   \
  X(symbol_num_names, SYMBOL, cohort_symbol_num_names(h, COHORT_SYMBOL_ARGUMENTS, &out.size))                          \
  X(symbol_name_at, SYMBOL, cohort_symbol_name_at(h, COHORT_SYMBOL_ARGUMENTS, 0, &out.text))                           \
  X(symbol_name, SYMBOL, cohort_symbol_name(h, &out.text))                                                             \
  X(symbol_attr, SYMBOL, cohort_symbol_attr(h, "__shape__", &out.text))                                                \
  X(symbol_set_attrs, SYMBOL, cohort_symbol_set_attrs(h, NULL, NULL, 0))                                               \
  X(symbol_num_attrs, SYMBOL, cohort_symbol_num_attrs(h, 1, &out.size))                                                \
  X(symbol_attr_at, SYMBOL, cohort_symbol_attr_at(h, 1, 0, &out.text, &out.text2, &out.text3))                         \
  X(symbol_infer_shape, SYMBOL,                                                                                        \
    cohort_symbol_infer_shape(h, NULL, 0, &out.int32, (cohort_descs **)&out.handle, (cohort_descs **)&out.handle2,     \
                              (cohort_descs **)&out.handle3))                                                          \
  X(symbol_infer_dtype, SYMBOL,                                                                                        \
    cohort_symbol_infer_dtype(h, NULL, 0, &out.int32, (cohort_descs **)&out.handle, (cohort_descs **)&out.handle2,     \
                              (cohort_descs **)&out.handle3))                                                          \
  X(symbol_to_json, SYMBOL, cohort_symbol_to_json(h, &out.text))                                                       \
  X(symbol_save, SYMBOL, cohort_symbol_save(h, "never-written.json"))

static const double one = 1;
static const int64_t four = 4;

#define DEFINE_PROBE(name, kind, expression)                        \
  static cohort_error *probe_##name(void *h, const handles *live) { \
    (void)live;                                                     \
    return expression;                                              \
  }
PROBES(DEFINE_PROBE)

#define LIST_PROBE(name, kind, expression) {#name, kind, probe_##name},
static const probe probes[] = {PROBES(LIST_PROBE)};

/* Optional handles, where NULL means none. */
static int takes_null(const char *name) {
  static const char *const names[] = {"arrays_add_array",       "arrays_set_array",   "executor_simple_bind_known",
                                      "executor_reshape_known", "group_create_data",  "manager_create_data",
                                      "group_bind_data",        "group_reshape_data", "group_set_params_aux"};
  size_t i;

  for (i = 0; i < NUM_OF(names); ++i) {
    if (strcmp(name, names[i]) == 0) return 1;
  }
  return 0;
}

static void refuse(const probe *p, void *handle, const handles *live, const char *part) {
  cohort_error *error;
  int32_t code;
  int good;

  memset(&out, 0xab, sizeof(out));
  out.memory.struct_size = sizeof(out.memory);
  untouched = out;
  error = p->call(handle, live);
  code = cohort_error_code(error);
  good = code == COHORT_ERROR_INVALID_ARGUMENT && strstr(cohort_error_message(error), part);
  if (!good) {
    print_error("%s: expected an invalid argument error with \"%s\", found %s \"%s\"\n", p->name, part,
                cohort_error_code_text(code), cohort_error_message(error));
  }
  cohort_error_free(error);
  assert_true(good);
  if (memcmp(&out, &untouched, sizeof(out))) fail_msg("%s: out parameters were touched", p->name);
}

/* NULL in place of a handle is refused by every function. */
static void null_is_no_handle(void **state) {
  handles live = make_handles();
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(probes); ++i) {
    if (!takes_null(probes[i].name)) refuse(&probes[i], NULL, &live, "found NULL");
  }
  free_handles(&live);
}

/* A freed handle is refused by every function that took it before. */
static void freed_handles_are_refused(void **state) {
  handles live = make_handles(), freed = make_handles();
  size_t i;

  (void)state;
  free_handles(&freed);
  for (i = 0; i < NUM_OF(probes); ++i) {
    refuse(&probes[i], freed.of[probes[i].kind], &live, "found a freed handle");
  }
  free_handles(&live);
}

/* A handle of any other kind is refused, and the error names the expected and the found kind. */
static void other_kinds_are_refused(void **state) {
  handles live = make_handles();
  char part[128];
  size_t i, kind;

  (void)state;
  for (i = 0; i < NUM_OF(probes); ++i) {
    for (kind = 0; kind < NUM_KINDS; ++kind) {
      if (kind == (size_t)probes[i].kind) continue;
      snprintf(part, sizeof(part), "expected a handle of kind %s, found one of kind %s", kind_names[probes[i].kind],
               kind_names[kind]);
      refuse(&probes[i], live.of[kind], &live, part);
    }
  }
  free_handles(&live);
}

/* A pointer that never was a handle is refused without being dereferenced, even if it points into a handle. */
static void other_pointers_are_refused(void **state) {
  handles live = make_handles();
  int on_the_stack = 0;
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(probes); ++i) {
    refuse(&probes[i], &on_the_stack, &live, "found another pointer");
    refuse(&probes[i], (void *)(uintptr_t)1, &live, "found another pointer");
    refuse(&probes[i], (char *)live.of[probes[i].kind] + 1, &live, "found another pointer");
  }
  free_handles(&live);
}

/* NULL for an out parameter is an error like any other. */
static void missing_out_parameters_are_refused(void **state) {
  handles live = make_handles();

  (void)state;
  fails(cohort_arrays_create(NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_arrays");
  fails(cohort_descs_create(NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_descs");
  fails(cohort_ndarray_zeros(&four, 1, COHORT_DTYPE_FLOAT32, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_array");
  fails(cohort_symbol_variable("x", NULL, NULL, 0, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_symbol");
  fails(cohort_executor_simple_bind(live.of[SYMBOL], NULL, NULL, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT,
        "out_executor");
  fails(cohort_group_create(live.of[SYMBOL], &cpu0, 1, live.of[DESCS], NULL, NULL, 0, 0, NULL, NULL),
        COHORT_ERROR_INVALID_ARGUMENT, "out_group");
  fails(cohort_optimizer_create("sgd", NULL, NULL, 0, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_optimizer");
  fails(cohort_metric_create("acc", NULL, NULL, 0, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_metric");
  fails(cohort_initializer_create("zero", NULL, NULL, 0, 0, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_initializer");
  fails(cohort_monitor_create(1, NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_monitor");
  fails(cohort_manager_create(live.of[SYMBOL], &cpu0, 1, 4, live.of[DESCS], NULL, NULL, 0, NULL, NULL),
        COHORT_ERROR_INVALID_ARGUMENT, "out_manager");
  fails(cohort_operator_num(NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_num");
  free_handles(&live);
}

/* Freeing NULL, a freed handle, a handle of another kind, or any pointer does nothing. */
static void freeing_what_is_no_handle_does_nothing(void **state) {
  handles live = make_handles();
  int on_the_stack = 0, kind;
  size_t before = cohort_live_handles();

  (void)state;
  for (kind = 0; kind < NUM_KINDS; ++kind) {
    free_one((enum kind)kind, NULL);
    free_one((enum kind)kind, &on_the_stack);
    free_one((enum kind)kind, live.of[(kind + 1) % NUM_KINDS]);
  }
  cohort_error_free(NULL);
  cohort_error_free((cohort_error *)&on_the_stack);
  assert_int_equal(cohort_live_handles(), before);
  free_handles(&live);
  assert_int_equal(cohort_live_handles(), 0);
  free_handles(&live);
  assert_int_equal(cohort_live_handles(), 0);
}

/* Handles that are connected with one another may be freed in any order; those that remain go on working. */
static void handles_are_freed_in_any_order(void **state) {
  unsigned seed = 1, round;

  (void)state;
  for (round = 0; round < 24; ++round) {
    handles live = make_handles();
    enum kind order[NUM_KINDS];
    size_t i;

    for (i = 0; i < NUM_KINDS; ++i) order[i] = (enum kind)i;
    for (i = NUM_KINDS; i > 1; --i) {
      size_t other;
      enum kind swapped;

      seed = seed * 1664525u + 1013904223u;
      other = (seed >> 16) % i;
      swapped = order[other];
      order[other] = order[i - 1];
      order[i - 1] = swapped;
    }
    ok(cohort_group_run(live.of[GROUP], 1));
    for (i = 0; i < NUM_KINDS; ++i) {
      float values[4];
      size_t k;

      free_one(order[i], live.of[order[i]]);
      live.of[order[i]] = NULL;
      assert_int_equal(cohort_live_handles(), NUM_KINDS - i - 1);
      if (live.of[NDARRAY]) {
        ok(cohort_ndarray_read(live.of[NDARRAY], values, sizeof(values)));
        for (k = 0; k < 4; ++k) assert_true(values[k] == 0.5f);
      }
      if (live.of[EXECUTOR]) ok(cohort_executor_forward(live.of[EXECUTOR], 1));
      if (live.of[GROUP]) ok(cohort_group_run(live.of[GROUP], 1));
    }
  }
}

/* A handle obtained from another is separate: both must be freed, and both are counted. */
static void every_handle_counts_once(void **state) {
  cohort_ndarray *array = NULL, *shared = NULL, *view = NULL;
  cohort_error *error;

  (void)state;
  ok(cohort_ndarray_zeros(&four, 1, COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(cohort_ndarray_share(array, &shared));
  ok(cohort_ndarray_slice(array, 1, 3, &view));
  assert_int_equal(cohort_live_handles(), 3);
  error = cohort_ndarray_slice(array, 3, 1, &view);
  assert_int_equal(cohort_live_handles(), 4);
  cohort_error_free(error);
  cohort_ndarray_free(array);
  ok(cohort_ndarray_fill(shared, 3));
  assert_floats(view, (const float[]){3, 3}, 2);
  cohort_ndarray_free(shared);
  assert_floats(view, (const float[]){3, 3}, 2);
  cohort_ndarray_free(view);
}

/* More handles than one block of the table holds are all told apart. */
static void many_handles(void **state) {
  enum { NUM = 5000 };
  static cohort_ndarray *arrays[NUM];
  int64_t size;
  int i;

  (void)state;
  for (i = 0; i < NUM; ++i) {
    const int64_t length = i % 7;

    ok(cohort_ndarray_zeros(&length, 1, COHORT_DTYPE_UINT8, NULL, &arrays[i]));
  }
  assert_int_equal(cohort_live_handles(), NUM);
  for (i = 0; i < NUM; i += 2) cohort_ndarray_free(arrays[i]);
  for (i = 0; i < NUM; ++i) {
    if (i % 2 == 0) {
      fails(cohort_ndarray_size(arrays[i], &size), COHORT_ERROR_INVALID_ARGUMENT, "freed handle");
    } else {
      ok(cohort_ndarray_size(arrays[i], &size));
      assert_int_equal(size, i % 7);
      cohort_ndarray_free(arrays[i]);
    }
  }
}

static void *work_on_handles(void *seed) {
  const int64_t length = 8;
  int i;

  for (i = 0; i < 500; ++i) {
    cohort_ndarray *array = NULL, *view = NULL;
    cohort_arrays *list = NULL;
    int64_t size = 0;

    ok(cohort_ndarray_full(&length, 1, COHORT_DTYPE_FLOAT32, NULL, *(const int *)seed, &array));
    ok(cohort_ndarray_slice(array, 2, 5, &view));
    ok(cohort_arrays_create(&list));
    ok(cohort_arrays_add(list, "view", view));
    ok(cohort_ndarray_size(view, &size));
    assert_int_equal(size, 3);
    cohort_ndarray_free(view); /* other threads create handles so fast that this one may be one of theirs by now */
    fails(cohort_arrays_find(list, "nobody", NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_index");
    cohort_ndarray_free(array);
    cohort_arrays_free(list);
  }
  return NULL;
}

/* Threads that use handles of their own do not disturb each other. */
static void threads_use_their_own_handles(void **state) {
  enum { NUM = 4 };
  pthread_t threads[NUM];
  int seeds[NUM], i;

  (void)state;
  for (i = 0; i < NUM; ++i) {
    seeds[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, work_on_handles, &seeds[i]), 0);
  }
  for (i = 0; i < NUM; ++i) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* In a child after fork, handles from before give errors and do not hang; new ones work. */
static void handles_do_not_cross_a_fork(void **state) {
  cohort_group *group;
  cohort_ndarray *array = NULL;
  int status = -1;
  pid_t child;

  (void)state;
  only_on_cpus();
  group = small_group(2, 4);
  ok(cohort_group_run(group, 1));
  ok(cohort_ndarray_zeros(&four, 1, COHORT_DTYPE_FLOAT32, NULL, &array));
  child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    cohort_error *error = cohort_group_wait(group);
    cohort_ndarray *fresh = NULL;
    int64_t size = 0;

    alarm(20);
    if (cohort_error_code(error) != COHORT_ERROR_STATE) _exit(1);
    cohort_error_free(error);
    error = cohort_ndarray_size(array, &size);
    if (cohort_error_code(error) != COHORT_ERROR_STATE || !strstr(cohort_error_message(error), "fork")) _exit(2);
    cohort_error_free(error);
    if (cohort_ndarray_zeros(&four, 1, COHORT_DTYPE_FLOAT32, NULL, &fresh)) _exit(3);
    if (cohort_ndarray_size(fresh, &size) || size != four) _exit(4);
    cohort_ndarray_free(fresh);
    cohort_ndarray_free(array);
    cohort_group_free(group);
    _exit(cohort_live_handles() == 0 ? 0 : 5);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  ok(cohort_group_run(group, 1));
  ok(cohort_group_wait(group));
  cohort_ndarray_free(array);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(null_is_no_handle),
      TEST(freed_handles_are_refused),
      TEST(other_kinds_are_refused),
      TEST(other_pointers_are_refused),
      TEST(missing_out_parameters_are_refused),
      TEST(freeing_what_is_no_handle_does_nothing),
      TEST(handles_are_freed_in_any_order),
      TEST(every_handle_counts_once),
      TEST(many_handles),
      TEST(threads_use_their_own_handles),
      TEST(handles_do_not_cross_a_fork),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
