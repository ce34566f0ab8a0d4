/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file manager.h
 * Managers: one group for each bucket of a bucketing network. All groups use the parameters, gradients and auxiliary
 * states of the main group, which is made from the symbol that cohort_manager_create() takes.
 *
 * A bucket is made when a batch with its key is first loaded; the group of the batch loaded last is the current group.
 * Slices divide the manager's batch size by workload, with COHORT_ROUNDING_HALF_EVEN, always along axis 0. A manager
 * without bucket symbols has only its main group, and ignores keys.
 */
#ifndef COHORT_MANAGER_H
#define COHORT_MANAGER_H

#include "cohort/group.h"
#include "cohort/log.h"
#include "cohort/types.h"

COHORT_BEGIN_DECLS

/**
 * Gives the symbol of a bucket.
 *
 * @param bucket_key  As it came with the batch. Lives until the callback returns.
 * @param out_symbol  @gives_null NULL before the call. Takes a handle, which the library frees; cohort_symbol_copy()
 *                    makes one to give away.
 * @param user_data   As given with the callback.
 * @return 0, or anything else to refuse the key (COHORT_ERROR_EXECUTION); *out_symbol is not read then.
 *
 * Runs inside cohort_manager_load_data_batch(), on the calling thread, once for each bucket that is made, never for the
 * default one. It must not use the manager or its groups.
 */
typedef int32_t (*cohort_bucket_symbol_fn)(const char *bucket_key, cohort_symbol **out_symbol, void *user_data);

/** Settings of a manager that few callers change. Zero in any field means its default. */
typedef struct cohort_manager_options {
  size_t struct_size; /* size the caller was compiled with; set by the initialisers */

  const double *workload; /* num_workloads relative shares, each > 0 */
  size_t num_workloads;   /* the number of contexts; 0: equal shares */

  const char *default_bucket_key; /* key of the main symbol; not NULL if there are bucket symbols */
  /* num_buckets different keys; the default key may be among them, its symbol is not used */
  const char *const *bucket_keys;
  cohort_symbol *const *bucket_symbols; /* their symbols, which are copied: the handles stay the caller's */
  size_t num_buckets;
  cohort_bucket_symbol_fn bucket_symbol; /* called for other keys; NULL: there are none */
  void *bucket_symbol_user_data;         /* passed to bucket_symbol */

  int32_t num_threads; /* threads of each CPU context; 0: as in executor.h */
  uint64_t seed;       /* seed of random operators; each device draws its own numbers */

  cohort_log_fn log;   /* takes the messages of the manager and its groups; NULL: they go where the library's do */
  void *log_user_data; /* passed to log */

  /* num_state_names arguments that are states. Buckets in which a state has the same shape share its array, so
     cohort_manager_set_states() holds for the bucket that runs next, too. */
  const char *const *state_names;
  size_t num_state_names;

  cohort_dtype compute_dtype; /* as in executor.h; COHORT_DTYPE_INT8: UNSUPPORTED, as a manager trains */

  const char *const *float32_names; /* num_float32_names nodes and operators, as in executor.h; nodes of the main
                                       symbol need not be in those of other buckets */
  size_t num_float32_names;
  const char *const *narrow_names; /* num_narrow_names of them, likewise */
  size_t num_narrow_names;

  double loss_scale; /* these two as in group.h; one for all buckets */
  int32_t loss_scale_window;

  cohort_bool backward_once; /* as in executor.h */

  cohort_dtype gradient_sum_dtype; /* as in group.h */

  cohort_bool tf32; /* as in executor.h */

  cohort_bool recompute; /* likewise */

  cohort_bool keep_device_aux; /* as in group.h */
} cohort_manager_options;

#define COHORT_MANAGER_OPTIONS_INIT                                                                                  \
  {                                                                                                                  \
    sizeof(cohort_manager_options), NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, 0, 0, NULL, 0, \
        NULL, 0, 0, 0, 0, 0, 0, 0, 0                                                                                 \
  }

/** COHORT_MANAGER_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct. */
COHORT_API void cohort_manager_options_init(cohort_manager_options *options, size_t struct_size);

/**
 * Makes a manager and binds its main group for training: only parameters have gradients, all "write". Logs the
 * contexts.
 *
 * @param symbol       The symbol of the default bucket. Memory is used best if that is the largest bucket.
 * @param contexts     num_contexts of them, at least 1. The same one twice gives two executors.
 * @param batch_size   Samples of every batch, at least 1.
 * @param data         Descriptors of the data, at least one, each of one axis or more. All are batched along axis 0,
 *                     whatever their layout; the length there is not read.
 * @param label        @nullable The same for labels; NULL or empty: none.
 * @param param_names  @nullable @as cohort_group_create(), for each bucket. Each is an argument of this symbol.
 * @param options      NULL: all defaults.
 * @return NULL, or what cohort_group_create() returns, and
 *   COHORT_ERROR_INVALID_ARGUMENT  bucket symbols without default_bucket_key; a number of workloads other than
 *                                  num_contexts
 *   COHORT_ERROR_NAME              a bucket key comes twice; a parameter's name is no argument (the error gives the
 *                                  nearest ones)
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_create(
    const cohort_symbol *symbol, const cohort_context *contexts, size_t num_contexts, int64_t batch_size,
    const cohort_descs *data, const cohort_descs *label, const char *const *param_names, size_t num_param_names,
    const cohort_manager_options *options, cohort_manager **out_manager);

/** Frees a handle; NULL does nothing. Waits for queued work of groups that have no other handle. */
COHORT_API void cohort_manager_free(cohort_manager *manager);

/** The number of contexts. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_num_contexts(const cohort_manager *manager, size_t *out_num);

/** The slice of a device, the same in all buckets: [*out_begin, *out_end). */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_slice(const cohort_manager *manager, size_t device,
                                                                int64_t *out_begin, int64_t *out_end);

/** How many buckets have been made, the default one included; 0 without bucket symbols. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_num_buckets(const cohort_manager *manager, size_t *out_num);

/**
 * Reads a bucket that has been made.
 *
 * @param index      Below cohort_manager_num_buckets(). Buckets are sorted by key, byte by byte: a new one may move
 *                   others.
 * @param out_key    @nullable Its key. Lives as long as the manager.
 * @param out_group  @nullable A handle on its group; that of the default key is the main group.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_bucket(const cohort_manager *manager, size_t index,
                                                                 const char **out_key, cohort_group **out_group);

/**
 * A handle on the main group. Groups of a manager may be read and run, but only the manager binds them:
 * cohort_group_bind() and cohort_group_reshape() are COHORT_ERROR_STATE.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_main_group(const cohort_manager *manager,
                                                                     cohort_group **out_group);

/** A handle on the group of the batch loaded last. COHORT_ERROR_STATE before the first. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_current_group(const cohort_manager *manager,
                                                                        cohort_group **out_group);

/**
 * Makes the bucket of a batch current, binding it first if it is new, and copies each slice to its device. Queued; runs
 * nothing.
 *
 * @param data         @as cohort_group_load(), in the order of the bucket's descriptors, of the manager's batch size
 *                     along axis 0.
 * @param label        @nullable @as cohort_group_load(), likewise.
 * @param bucket_key   Which bucket; not read if there are no bucket symbols.
 * @param data_descs   Descriptors of this batch's data, as for cohort_manager_create(). Only read, and then needed, if
 *                     the bucket is new.
 * @param label_descs  @nullable The same for labels; NULL or empty: none.
 *
 * Ownership: as for cohort_group_load().
 *
 * @return NULL, or, with no bucket made and the current one as before,
 *   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of arrays; no key where one is needed; a new bucket without
 *                                  descriptors, or without a symbol from the callback
 *   COHORT_ERROR_NAME              there is no symbol for the key; a parameter of the bucket is not one of the main
 *                                  group
 *   COHORT_ERROR_SHAPE             a batch of another size; an array of another shape; a parameter of another shape
 *   COHORT_ERROR_DTYPE             a parameter of another dtype
 *   COHORT_ERROR_EXECUTION         the callback refused the key
 *   or what cohort_group_create() returns.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_load_data_batch(
    cohort_manager *manager, cohort_ndarray *const *data, size_t num_data, cohort_ndarray *const *label,
    size_t num_label, const char *bucket_key, const cohort_descs *data_descs, const cohort_descs *label_descs);

/**
 * Queues a forward pass of the current group over what is loaded.
 *
 * @param is_train  @as cohort_group_run().
 * @return NULL, or COHORT_ERROR_STATE before the first batch is loaded.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_forward(cohort_manager *manager, int32_t is_train);

/**
 * Queues a backward pass of the current group, without head gradients: its outputs are losses.
 *
 * @return NULL, or COHORT_ERROR_STATE before the first batch is loaded, or what cohort_group_backward() returns.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_backward(cohort_manager *manager);

/**
 * Updates the parameters with cohort_group_update() of the current group. All buckets share parameters and gradients:
 * the update uses the gradients of the latest backward pass of any bucket. The current group must have run a backward
 * pass since it was bound, else it is COHORT_ERROR_STATE.
 *
 * @return NULL, or COHORT_ERROR_STATE before the first batch is loaded, or what cohort_group_update() returns.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_update(cohort_manager *manager, cohort_optimizer *optimizer,
                                                                 cohort_update_mode mode);

/** @as cohort_group_loss_scale(), for all buckets. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_loss_scale(const cohort_manager *manager, double *out_scale,
                                                                     int32_t *out_num_good, uint64_t *out_num_skipped);

/** @as cohort_group_set_loss_scale(), for all buckets. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_set_loss_scale(cohort_manager *manager, double scale,
                                                                         int32_t num_good);

/** @as cohort_group_update_metric(), for the current group. COHORT_ERROR_STATE before the first batch is loaded. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_update_metric(cohort_manager *manager, cohort_metric *metric,
                                                                        cohort_ndarray *const *labels,
                                                                        size_t num_labels);

/** @as cohort_group_update_metric_presliced(), likewise for the current group. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_update_metric_presliced(cohort_manager *manager,
                                                                                  cohort_metric *metric,
                                                                                  size_t num_slices,
                                                                                  cohort_ndarray *const *labels,
                                                                                  size_t num_labels);

/**
 * How many entries a list has.
 *
 * @param list  COHORT_GROUP_ constant, here and below: COHORT_GROUP_PARAMS, _GRADS and _AUX are those of the main
 *              group, which all buckets share; all others are of the current group (COHORT_ERROR_STATE before the first
 *              batch is loaded).
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_num_arrays(const cohort_manager *manager,
                                                                     cohort_group_list list, size_t *out_num);

/** The name of an entry; a gradient has the name of its argument. Lives as long as the manager. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_name(const cohort_manager *manager, cohort_group_list list,
                                                               size_t index, const char **out_name);

/** A handle on the live array of one device, @as cohort_group_array(). */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_array(const cohort_manager *manager, cohort_group_list list,
                                                                size_t index, size_t device,
                                                                cohort_ndarray **out_array);

/** @as cohort_manager_array(), for a whole list on one device, names included. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_arrays(const cohort_manager *manager, cohort_group_list list,
                                                                 size_t device, cohort_arrays **out_arrays);

/** One array for all devices: cohort_group_merged(). `list` is COHORT_GROUP_OUTPUTS. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_merged(const cohort_manager *manager, cohort_group_list list,
                                                                 size_t index, cohort_ndarray **out_array);

/** @as cohort_group_set_params(), for the main group and so for all buckets; unknown names are COHORT_ERROR_NAME. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_set_params(cohort_manager *manager,
                                                                     const cohort_arrays *arg_params,
                                                                     const cohort_arrays *aux_params);

/** @as cohort_group_assign_params(), for the main group and so for all buckets. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_assign_params(
    cohort_manager *manager, const cohort_arrays *arg_params, const cohort_arrays *aux_params,
    cohort_bool allow_missing, cohort_bool allow_extra, cohort_descs **out_missing);

/** @as cohort_group_get_params(), for the main group: the mean over the devices into given arrays. */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_copy_to(const cohort_manager *manager,
                                                                  const cohort_arrays *arg_params,
                                                                  const cohort_arrays *aux_params);

/**
 * @as cohort_group_set_states(), for the current group. To carry states from batch to batch, whatever their buckets:
 * load the next batch, set the states to the outputs that the devices had from the one before, run.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_set_states(cohort_manager *manager,
                                                                     cohort_ndarray *const *states, size_t num_states,
                                                                     size_t num_devices, const double *value);

/**
 * @as cohort_group_resume(), for all buckets. Those that are not made yet are resumed when they are:
 * cohort_manager_load_data_batch() returns COHORT_ERROR_NAME if the states were saved with another symbol of the bucket.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_resume(cohort_manager *manager, cohort_optimizer *optimizer);

/**
 * The memory that all buckets made so far take on all devices; shared memory is counted once. planned_bytes includes
 * what inference derives from parameters. intermediate_bytes and value_bytes are, for each device, those of the bucket
 * with the most. struct_size of *out_info is set by the caller.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_memory(const cohort_manager *manager,
                                                                 cohort_memory_info *out_info);

/**
 * @as cohort_group_set_monitor(), for the main group. For a monitor with statistics:
 * cohort_monitor_install_on_manager().
 *
 * @return NULL, or COHORT_ERROR_UNSUPPORTED for a manager with bucket symbols.
 */
COHORT_API COHORT_MUST_CHECK cohort_error *cohort_manager_set_monitor(cohort_manager *manager,
                                                                      cohort_monitor_fn callback, void *user_data,
                                                                      cohort_bool monitor_all);

COHORT_END_DECLS

#endif /* COHORT_MANAGER_H */
