/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cohort_functions.h
 * All functions in one macro, for programs that load libcohort.so with dlopen() instead of linking to it. Made from
 * bindings/abi.json by bindings/tools/abi.pl; not to be edited. cohort.h does not include it.
 *
 *   #define DECLARE(result, name, parameters) static result(*p_##name) parameters;
 *   COHORT_FUNCTIONS(DECLARE)
 *   #define LOAD(result, name, parameters) *(void **)&p_##name = dlsym(library, #name);
 *   COHORT_FUNCTIONS(LOAD)
 */
#ifndef COHORT_COHORT_FUNCTIONS_H
#define COHORT_COHORT_FUNCTIONS_H

#include "cohort/cohort.h"

/* clang-format off */
/** X(result, name, (parameters)) for each function, by name. */
#define COHORT_FUNCTIONS(X) \
  X(cohort_error *, cohort_arrays_add, (cohort_arrays *arrays, const char *name, cohort_ndarray *array)) \
  X(cohort_error *, cohort_arrays_create, (cohort_arrays **out_arrays)) \
  X(cohort_error *, cohort_arrays_find, (const cohort_arrays *arrays, const char *name, size_t *out_index)) \
  X(void, cohort_arrays_free, (cohort_arrays *arrays)) \
  X(cohort_error *, cohort_arrays_get, (const cohort_arrays *arrays, size_t index, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_arrays_load, (const char *path, const cohort_context *context, cohort_arrays **out_arrays)) \
  X(cohort_error *, cohort_arrays_load_memory, (const void *data, size_t bytes, const cohort_context *context, cohort_arrays **out_arrays)) \
  X(cohort_error *, cohort_arrays_map, (const char *path, cohort_arrays **out_arrays)) \
  X(cohort_error *, cohort_arrays_name, (const cohort_arrays *arrays, size_t index, const char **out_name)) \
  X(cohort_error *, cohort_arrays_num, (const cohort_arrays *arrays, size_t *out_num)) \
  X(cohort_error *, cohort_arrays_save, (const cohort_arrays *arrays, const char *path)) \
  X(cohort_error *, cohort_arrays_save_memory, (const cohort_arrays *arrays, void *out_data, size_t capacity, size_t *out_bytes)) \
  X(cohort_error *, cohort_arrays_save_npy, (const cohort_arrays *arrays, const char *path)) \
  X(cohort_error *, cohort_arrays_save_npz, (const cohort_arrays *arrays, const char *path)) \
  X(cohort_error *, cohort_arrays_set, (cohort_arrays *arrays, const char *name, cohort_ndarray *array)) \
  X(void, cohort_backward_options_init, (cohort_backward_options *options, size_t struct_size)) \
  X(cohort_error *, cohort_calibration_create, (cohort_calibration_method method, cohort_calibration **out_calibration)) \
  X(cohort_error *, cohort_calibration_create_from, (const cohort_arrays *ranges, cohort_calibration **out_calibration)) \
  X(void, cohort_calibration_free, (cohort_calibration *calibration)) \
  X(cohort_error *, cohort_calibration_observe, (cohort_calibration *calibration, cohort_executor *executor)) \
  X(cohort_error *, cohort_calibration_range, (const cohort_calibration *calibration, const char *name, double *out_low, double *out_high)) \
  X(cohort_error *, cohort_calibration_ranges, (const cohort_calibration *calibration, cohort_arrays **out_ranges)) \
  X(cohort_error *, cohort_checkpoint_load, (const char *prefix, int32_t epoch, cohort_symbol **out_symbol, cohort_arrays **out_arg_params, cohort_arrays **out_aux_params)) \
  X(cohort_error *, cohort_checkpoint_map, (const char *prefix, int32_t epoch, cohort_symbol **out_symbol, cohort_arrays **out_arg_params, cohort_arrays **out_aux_params)) \
  X(cohort_error *, cohort_checkpoint_save, (const char *prefix, int32_t epoch, const cohort_symbol *symbol, const cohort_arrays *arg_params, const cohort_arrays *aux_params)) \
  X(cohort_error *, cohort_context_parse, (const char *text, cohort_context *out_context)) \
  X(cohort_error *, cohort_context_text, (const cohort_context *context, char *out_text, size_t capacity, size_t *out_bytes)) \
  X(void, cohort_custom_op_init, (cohort_custom_op *op, size_t struct_size)) \
  X(cohort_error *, cohort_custom_register, (const char *op_type, const cohort_custom_op *op)) \
  X(cohort_error *, cohort_custom_unregister, (const char *op_type)) \
  X(cohort_error *, cohort_descs_add, (cohort_descs *descs, const char *name, const int64_t *shape, int32_t num_axes, cohort_dtype dtype, const char *layout)) \
  X(cohort_error *, cohort_descs_create, (cohort_descs **out_descs)) \
  X(cohort_error *, cohort_descs_find, (const cohort_descs *descs, const char *name, size_t *out_index)) \
  X(void, cohort_descs_free, (cohort_descs *descs)) \
  X(cohort_error *, cohort_descs_get, (const cohort_descs *descs, size_t index, const char **out_name, int64_t *out_shape, size_t capacity, int32_t *out_num_axes, cohort_dtype *out_dtype, const char **out_layout)) \
  X(cohort_error *, cohort_descs_num, (const cohort_descs *descs, size_t *out_num)) \
  X(cohort_error *, cohort_device_limit_memory, (const cohort_context *context, size_t bytes)) \
  X(cohort_error *, cohort_device_memory, (const cohort_context *context, cohort_device_memory_info *out_info)) \
  X(cohort_error *, cohort_device_reset_peak_memory, (const cohort_context *context)) \
  X(cohort_error *, cohort_dtype_bytes, (cohort_dtype dtype, size_t *out_bytes)) \
  X(cohort_error *, cohort_dtype_parse, (const char *text, cohort_dtype *out_dtype)) \
  X(cohort_error *, cohort_dtype_text, (cohort_dtype dtype, const char **out_text)) \
  X(cohort_error_class, cohort_error_code, (const cohort_error *error)) \
  X(const char *, cohort_error_code_text, (cohort_error_class code)) \
  X(void, cohort_error_free, (cohort_error *error)) \
  X(const char *, cohort_error_message, (const cohort_error *error)) \
  X(const char *, cohort_error_subject, (const cohort_error *error)) \
  X(cohort_error *, cohort_executor_array, (const cohort_executor *executor, cohort_executor_list list, size_t index, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_executor_array_named, (const cohort_executor *executor, cohort_executor_list list, const char *name, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_executor_arrays, (const cohort_executor *executor, cohort_executor_list list, cohort_arrays **out_arrays)) \
  X(cohort_error *, cohort_executor_backward, (cohort_executor *executor, cohort_ndarray *const *head_grads, size_t num_head_grads, cohort_bool is_train)) \
  X(cohort_error *, cohort_executor_bind, (const cohort_symbol *symbol, const cohort_context *context, cohort_ndarray *const *args, size_t num_args, cohort_ndarray *const *grads, const cohort_grad_req *grad_req, cohort_ndarray *const *aux, size_t num_aux, const cohort_executor_options *options, cohort_executor **out_executor)) \
  X(cohort_error *, cohort_executor_context, (const cohort_executor *executor, cohort_context *out_context)) \
  X(cohort_error *, cohort_executor_copy_params_from, (cohort_executor *executor, const cohort_arrays *arg_params, const cohort_arrays *aux_params, cohort_bool allow_extra)) \
  X(cohort_error *, cohort_executor_debug_text, (const cohort_executor *executor, const char **out_text)) \
  X(cohort_error *, cohort_executor_forward, (cohort_executor *executor, cohort_bool is_train)) \
  X(void, cohort_executor_free, (cohort_executor *executor)) \
  X(cohort_error *, cohort_executor_grad_req, (const cohort_executor *executor, size_t index, cohort_grad_req *out_grad_req)) \
  X(cohort_error *, cohort_executor_memory, (const cohort_executor *executor, cohort_memory_info *out_info)) \
  X(cohort_error *, cohort_executor_name, (const cohort_executor *executor, cohort_executor_list list, size_t index, const char **out_name)) \
  X(cohort_error *, cohort_executor_num_arrays, (const cohort_executor *executor, cohort_executor_list list, size_t *out_num)) \
  X(void, cohort_executor_options_init, (cohort_executor_options *options, size_t struct_size)) \
  X(cohort_error *, cohort_executor_partial_forward, (cohort_executor *executor, cohort_bool is_train, int32_t step, int32_t *out_step_left)) \
  X(cohort_error *, cohort_executor_random_state, (const cohort_executor *executor, void *out_data, size_t capacity, size_t *out_bytes)) \
  X(cohort_error *, cohort_executor_reshape, (const cohort_executor *executor, const cohort_descs *known, const cohort_reshape_options *options, cohort_executor **out_executor)) \
  X(cohort_error *, cohort_executor_set_inputs, (cohort_executor *executor, const cohort_arrays *inputs)) \
  X(cohort_error *, cohort_executor_set_monitor, (cohort_executor *executor, cohort_monitor_fn callback, void *user_data, cohort_bool monitor_all)) \
  X(cohort_error *, cohort_executor_set_random_state, (cohort_executor *executor, const void *data, size_t bytes)) \
  X(cohort_error *, cohort_executor_simple_bind, (const cohort_symbol *symbol, const cohort_context *context, const cohort_descs *known, const cohort_executor_options *options, cohort_executor **out_executor)) \
  X(cohort_error *, cohort_executor_symbol, (const cohort_executor *executor, cohort_symbol **out_symbol)) \
  X(cohort_error *, cohort_executor_wait, (cohort_executor *executor)) \
  X(cohort_error *, cohort_group_array, (const cohort_group *group, cohort_group_list list, size_t index, size_t device, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_group_arrays, (const cohort_group *group, cohort_group_list list, size_t device, cohort_arrays **out_arrays)) \
  X(cohort_error *, cohort_group_assign_params, (cohort_group *group, const cohort_arrays *arg_params, const cohort_arrays *aux_params, cohort_bool allow_missing, cohort_bool allow_extra, cohort_descs **out_missing)) \
  X(cohort_error *, cohort_group_axis, (const cohort_group *group, cohort_group_list list, size_t index, int32_t *out_axis)) \
  X(cohort_error *, cohort_group_backward, (cohort_group *group, cohort_ndarray *const *head_grads, size_t num_head_grads)) \
  X(cohort_error *, cohort_group_batch_size, (const cohort_group *group, int64_t *out_batch_size)) \
  X(cohort_error *, cohort_group_bind, (cohort_group *group, const cohort_descs *data, const cohort_descs *label, cohort_group *shared_group, cohort_bool rebind)) \
  X(cohort_error *, cohort_group_context, (const cohort_group *group, size_t device, cohort_context *out_context)) \
  X(cohort_error *, cohort_group_copy_params, (const cohort_group *group, cohort_arrays **out_arg_params, cohort_arrays **out_aux_params)) \
  X(cohort_error *, cohort_group_create, (const cohort_symbol *symbol, const cohort_context *contexts, size_t num_contexts, const cohort_descs *data, const cohort_descs *label, const char *const *param_names, size_t num_param_names, cohort_bool for_training, const cohort_group_options *options, cohort_group **out_group)) \
  X(cohort_error *, cohort_group_decide_slices, (const cohort_group *group, const cohort_descs *descs, int32_t *out_axes)) \
  X(cohort_error *, cohort_group_descs, (const cohort_group *group, cohort_group_list list, cohort_descs **out_descs)) \
  X(cohort_error *, cohort_group_executor, (const cohort_group *group, size_t device, cohort_executor **out_executor)) \
  X(cohort_error *, cohort_group_forward, (cohort_group *group, cohort_ndarray *const *data, size_t num_data, cohort_ndarray *const *label, size_t num_label, int32_t is_train)) \
  X(cohort_error *, cohort_group_forward_presliced, (cohort_group *group, size_t num_slices, cohort_ndarray *const *data, size_t num_data, cohort_ndarray *const *label, size_t num_label, int32_t is_train)) \
  X(void, cohort_group_free, (cohort_group *group)) \
  X(cohort_error *, cohort_group_get_params, (const cohort_group *group, const cohort_arrays *arg_params, const cohort_arrays *aux_params)) \
  X(cohort_error *, cohort_group_load, (cohort_group *group, cohort_ndarray *const *data, size_t num_data, cohort_ndarray *const *label, size_t num_label)) \
  X(cohort_error *, cohort_group_loss_scale, (const cohort_group *group, double *out_scale, int32_t *out_num_good, uint64_t *out_num_skipped)) \
  X(cohort_error *, cohort_group_memory, (const cohort_group *group, size_t device, cohort_memory_info *out_info)) \
  X(cohort_error *, cohort_group_merged, (const cohort_group *group, cohort_group_list list, size_t index, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_group_name, (const cohort_group *group, cohort_group_list list, size_t index, const char **out_name)) \
  X(cohort_error *, cohort_group_num_arrays, (const cohort_group *group, cohort_group_list list, size_t *out_num)) \
  X(cohort_error *, cohort_group_num_contexts, (const cohort_group *group, size_t *out_num)) \
  X(void, cohort_group_options_init, (cohort_group_options *options, size_t struct_size)) \
  X(cohort_error *, cohort_group_output_shapes, (const cohort_group *group, cohort_descs **out_descs)) \
  X(cohort_error *, cohort_group_random_state, (const cohort_group *group, void *out_data, size_t capacity, size_t *out_bytes)) \
  X(cohort_error *, cohort_group_reshape, (cohort_group *group, const cohort_descs *data, const cohort_descs *label)) \
  X(cohort_error *, cohort_group_resume, (cohort_group *group, cohort_optimizer *optimizer)) \
  X(cohort_error *, cohort_group_run, (cohort_group *group, int32_t is_train)) \
  X(cohort_error *, cohort_group_set_loss_scale, (cohort_group *group, double scale, int32_t num_good)) \
  X(cohort_error *, cohort_group_set_monitor, (cohort_group *group, cohort_monitor_fn callback, void *user_data, cohort_bool monitor_all)) \
  X(cohort_error *, cohort_group_set_params, (cohort_group *group, const cohort_arrays *arg_params, const cohort_arrays *aux_params, cohort_bool allow_extra)) \
  X(cohort_error *, cohort_group_set_random_state, (cohort_group *group, const void *data, size_t bytes)) \
  X(cohort_error *, cohort_group_set_states, (cohort_group *group, cohort_ndarray *const *states, size_t num_states, size_t num_devices, const double *value)) \
  X(cohort_error *, cohort_group_shared_data, (const cohort_group *group, size_t device, cohort_arrays **out_arrays)) \
  X(cohort_error *, cohort_group_slice, (const cohort_group *group, size_t device, int64_t *out_begin, int64_t *out_end)) \
  X(cohort_error *, cohort_group_sliced_shape, (const cohort_group *group, const cohort_descs *descs, size_t device, const int32_t *axes, cohort_descs **out_descs)) \
  X(cohort_error *, cohort_group_update, (cohort_group *group, cohort_optimizer *optimizer, cohort_update_mode mode)) \
  X(cohort_error *, cohort_group_update_metric, (cohort_group *group, cohort_metric *metric, cohort_ndarray *const *labels, size_t num_labels)) \
  X(cohort_error *, cohort_group_update_metric_presliced, (cohort_group *group, cohort_metric *metric, size_t num_slices, cohort_ndarray *const *labels, size_t num_labels)) \
  X(cohort_error *, cohort_group_wait, (cohort_group *group)) \
  X(cohort_bool, cohort_has_feature, (const char *name)) \
  X(cohort_error *, cohort_initializer_apply, (const cohort_initializer *initializer, const cohort_symbol *symbol, const cohort_arrays *arrays)) \
  X(cohort_error *, cohort_initializer_create, (const char *name, const char *const *keys, const char *const *values, size_t num_attrs, uint64_t seed, cohort_initializer **out_initializer)) \
  X(cohort_error *, cohort_initializer_fill, (const cohort_initializer *initializer, const char *name, cohort_ndarray *array)) \
  X(void, cohort_initializer_free, (cohort_initializer *initializer)) \
  X(void, cohort_invoke_options_init, (cohort_invoke_options *options, size_t struct_size)) \
  X(cohort_error *, cohort_layout_batch_axis, (const char *layout, int32_t *out_axis)) \
  X(size_t, cohort_live_handles, (void)) \
  X(cohort_error *, cohort_log_create, (cohort_log_level lowest, cohort_log_fn callback, cohort_log_end_fn ended, void *user_data, cohort_log **out_log)) \
  X(void, cohort_log_free, (cohort_log *log)) \
  X(cohort_error *, cohort_manager_array, (const cohort_manager *manager, cohort_group_list list, size_t index, size_t device, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_manager_arrays, (const cohort_manager *manager, cohort_group_list list, size_t device, cohort_arrays **out_arrays)) \
  X(cohort_error *, cohort_manager_assign_params, (cohort_manager *manager, const cohort_arrays *arg_params, const cohort_arrays *aux_params, cohort_bool allow_missing, cohort_bool allow_extra, cohort_descs **out_missing)) \
  X(cohort_error *, cohort_manager_backward, (cohort_manager *manager)) \
  X(cohort_error *, cohort_manager_bucket, (const cohort_manager *manager, size_t index, const char **out_key, cohort_group **out_group)) \
  X(cohort_error *, cohort_manager_copy_to, (const cohort_manager *manager, const cohort_arrays *arg_params, const cohort_arrays *aux_params)) \
  X(cohort_error *, cohort_manager_create, (const cohort_symbol *symbol, const cohort_context *contexts, size_t num_contexts, int64_t batch_size, const cohort_descs *data, const cohort_descs *label, const char *const *param_names, size_t num_param_names, const cohort_manager_options *options, cohort_manager **out_manager)) \
  X(cohort_error *, cohort_manager_current_group, (const cohort_manager *manager, cohort_group **out_group)) \
  X(cohort_error *, cohort_manager_forward, (cohort_manager *manager, int32_t is_train)) \
  X(void, cohort_manager_free, (cohort_manager *manager)) \
  X(cohort_error *, cohort_manager_load_data_batch, (cohort_manager *manager, cohort_ndarray *const *data, size_t num_data, cohort_ndarray *const *label, size_t num_label, const char *bucket_key, const cohort_descs *data_descs, const cohort_descs *label_descs)) \
  X(cohort_error *, cohort_manager_loss_scale, (const cohort_manager *manager, double *out_scale, int32_t *out_num_good, uint64_t *out_num_skipped)) \
  X(cohort_error *, cohort_manager_main_group, (const cohort_manager *manager, cohort_group **out_group)) \
  X(cohort_error *, cohort_manager_memory, (const cohort_manager *manager, cohort_memory_info *out_info)) \
  X(cohort_error *, cohort_manager_merged, (const cohort_manager *manager, cohort_group_list list, size_t index, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_manager_name, (const cohort_manager *manager, cohort_group_list list, size_t index, const char **out_name)) \
  X(cohort_error *, cohort_manager_num_arrays, (const cohort_manager *manager, cohort_group_list list, size_t *out_num)) \
  X(cohort_error *, cohort_manager_num_buckets, (const cohort_manager *manager, size_t *out_num)) \
  X(cohort_error *, cohort_manager_num_contexts, (const cohort_manager *manager, size_t *out_num)) \
  X(void, cohort_manager_options_init, (cohort_manager_options *options, size_t struct_size)) \
  X(cohort_error *, cohort_manager_resume, (cohort_manager *manager, cohort_optimizer *optimizer)) \
  X(cohort_error *, cohort_manager_set_loss_scale, (cohort_manager *manager, double scale, int32_t num_good)) \
  X(cohort_error *, cohort_manager_set_monitor, (cohort_manager *manager, cohort_monitor_fn callback, void *user_data, cohort_bool monitor_all)) \
  X(cohort_error *, cohort_manager_set_params, (cohort_manager *manager, const cohort_arrays *arg_params, const cohort_arrays *aux_params)) \
  X(cohort_error *, cohort_manager_set_states, (cohort_manager *manager, cohort_ndarray *const *states, size_t num_states, size_t num_devices, const double *value)) \
  X(cohort_error *, cohort_manager_slice, (const cohort_manager *manager, size_t device, int64_t *out_begin, int64_t *out_end)) \
  X(cohort_error *, cohort_manager_update, (cohort_manager *manager, cohort_optimizer *optimizer, cohort_update_mode mode)) \
  X(cohort_error *, cohort_manager_update_metric, (cohort_manager *manager, cohort_metric *metric, cohort_ndarray *const *labels, size_t num_labels)) \
  X(cohort_error *, cohort_manager_update_metric_presliced, (cohort_manager *manager, cohort_metric *metric, size_t num_slices, cohort_ndarray *const *labels, size_t num_labels)) \
  X(cohort_error *, cohort_metric_add, (cohort_metric *metric, cohort_metric *child)) \
  X(cohort_error *, cohort_metric_child, (const cohort_metric *metric, size_t index, cohort_metric **out_metric)) \
  X(cohort_error *, cohort_metric_counters, (const cohort_metric *metric, size_t index, cohort_bool global, double *out_sum, double *out_num)) \
  X(cohort_error *, cohort_metric_create, (const char *kind, const char *const *keys, const char *const *values, size_t num_attrs, cohort_metric **out_metric)) \
  X(cohort_error *, cohort_metric_create_custom, (const char *name, cohort_metric_fn callback, void *user_data, cohort_bool allow_extra_outputs, cohort_metric **out_metric)) \
  X(void, cohort_metric_free, (cohort_metric *metric)) \
  X(cohort_error *, cohort_metric_num_children, (const cohort_metric *metric, size_t *out_num)) \
  X(cohort_error *, cohort_metric_num_values, (const cohort_metric *metric, size_t *out_num)) \
  X(cohort_error *, cohort_metric_reset, (cohort_metric *metric)) \
  X(cohort_error *, cohort_metric_reset_local, (cohort_metric *metric)) \
  X(cohort_error *, cohort_metric_set_names, (cohort_metric *metric, const char *const *label_names, size_t num_label_names, const char *const *output_names, size_t num_output_names)) \
  X(cohort_error *, cohort_metric_update, (cohort_metric *metric, cohort_ndarray *const *labels, size_t num_labels, cohort_ndarray *const *preds, size_t num_preds)) \
  X(cohort_error *, cohort_metric_update_named, (cohort_metric *metric, const cohort_arrays *labels, const cohort_arrays *preds)) \
  X(cohort_error *, cohort_metric_value, (const cohort_metric *metric, size_t index, cohort_bool global, const char **out_name, double *out_value)) \
  X(cohort_error *, cohort_monitor_create, (int64_t interval, const cohort_monitor_options *options, cohort_monitor **out_monitor)) \
  X(cohort_error *, cohort_monitor_entry, (const cohort_monitor *monitor, size_t index, int64_t *out_step, const char **out_name, const char **out_text)) \
  X(void, cohort_monitor_free, (cohort_monitor *monitor)) \
  X(cohort_error *, cohort_monitor_install_on_executor, (cohort_monitor *monitor, cohort_executor *executor)) \
  X(cohort_error *, cohort_monitor_install_on_group, (cohort_monitor *monitor, cohort_group *group)) \
  X(cohort_error *, cohort_monitor_install_on_manager, (cohort_monitor *monitor, cohort_manager *manager)) \
  X(void, cohort_monitor_options_init, (cohort_monitor_options *options, size_t struct_size)) \
  X(cohort_error *, cohort_monitor_step, (const cohort_monitor *monitor, int64_t *out_step)) \
  X(cohort_error *, cohort_monitor_tic, (cohort_monitor *monitor)) \
  X(cohort_error *, cohort_monitor_toc, (cohort_monitor *monitor, size_t *out_num_entries)) \
  X(cohort_error *, cohort_monitor_values, (const cohort_monitor *monitor, size_t index, cohort_arrays **out_values)) \
  X(cohort_error *, cohort_ndarray_at, (const cohort_ndarray *array, int64_t index, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_bytes, (const cohort_ndarray *array, size_t *out_bytes)) \
  X(cohort_error *, cohort_ndarray_cast, (const cohort_ndarray *array, cohort_dtype dtype, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_concat, (cohort_ndarray *const *arrays, size_t num_arrays, int32_t axis, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_context, (const cohort_ndarray *array, cohort_context *out_context)) \
  X(cohort_error *, cohort_ndarray_copy, (const cohort_ndarray *array, const cohort_context *context, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_copy_to, (const cohort_ndarray *source, cohort_ndarray *target)) \
  X(cohort_error *, cohort_ndarray_data, (const cohort_ndarray *array, void **out_data)) \
  X(cohort_error *, cohort_ndarray_dtype, (const cohort_ndarray *array, cohort_dtype *out_dtype)) \
  X(cohort_error *, cohort_ndarray_empty, (const int64_t *shape, int32_t num_axes, cohort_dtype dtype, const cohort_context *context, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_fill, (cohort_ndarray *array, double value)) \
  X(cohort_error *, cohort_ndarray_fill_normal, (cohort_ndarray *array, double mean, double deviation, uint64_t seed)) \
  X(cohort_error *, cohort_ndarray_fill_uniform, (cohort_ndarray *array, double low, double high, uint64_t seed)) \
  X(void, cohort_ndarray_free, (cohort_ndarray *array)) \
  X(cohort_error *, cohort_ndarray_from_dlpack, (void *managed, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_from_dlpack_unversioned, (void *managed, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_from_host, (const void *data, size_t bytes, const int64_t *shape, int32_t num_axes, cohort_dtype dtype, const cohort_context *context, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_full, (const int64_t *shape, int32_t num_axes, cohort_dtype dtype, const cohort_context *context, double value, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_read, (const cohort_ndarray *array, void *out_data, size_t bytes)) \
  X(cohort_error *, cohort_ndarray_reshape, (const cohort_ndarray *array, const int64_t *shape, int32_t num_axes, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_reshape_prefix, (const cohort_ndarray *array, const int64_t *shape, int32_t num_axes, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_shape, (const cohort_ndarray *array, int64_t *out_shape, size_t capacity, int32_t *out_num_axes)) \
  X(cohort_error *, cohort_ndarray_share, (const cohort_ndarray *array, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_size, (const cohort_ndarray *array, int64_t *out_size)) \
  X(cohort_error *, cohort_ndarray_slice, (const cohort_ndarray *array, int64_t begin, int64_t end, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_slice_axis, (const cohort_ndarray *array, int32_t axis, int64_t begin, int64_t end, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_to_dlpack, (const cohort_ndarray *array, void **out_managed)) \
  X(cohort_error *, cohort_ndarray_to_dlpack_unversioned, (const cohort_ndarray *array, void **out_managed)) \
  X(cohort_error *, cohort_ndarray_wait, (const cohort_ndarray *array)) \
  X(cohort_error *, cohort_ndarray_wrap, (void *data, const int64_t *shape, int32_t num_axes, cohort_dtype dtype, const cohort_context *context, cohort_deleter_fn deleter, void *user_data, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_ndarray_write, (cohort_ndarray *array, const void *data, size_t bytes)) \
  X(cohort_error *, cohort_ndarray_zeros, (const int64_t *shape, int32_t num_axes, cohort_dtype dtype, const cohort_context *context, cohort_ndarray **out_array)) \
  X(cohort_error *, cohort_num_devices, (cohort_device_type device_type, size_t *out_num)) \
  X(cohort_error *, cohort_operator_attr, (const char *op, size_t index, const char **out_name, const char **out_type, const char **out_default, const char **out_doc)) \
  X(cohort_error *, cohort_operator_attr_range, (const char *op, size_t index, double *out_low, double *out_high)) \
  X(cohort_error *, cohort_operator_info, (const char *op, const char **out_canonical, const char **out_doc, size_t *out_num_attrs, size_t *out_num_inputs, size_t *out_num_outputs, const char **out_count_attr)) \
  X(cohort_error *, cohort_operator_input, (const char *op, size_t index, const char **out_name, const char **out_doc, cohort_bool *out_is_aux)) \
  X(cohort_error *, cohort_operator_input_gradient, (const char *op, size_t index, cohort_bool *out_has_gradient)) \
  X(cohort_error *, cohort_operator_invoke, (const char *op, const char *const *keys, const char *const *values, size_t num_attrs, cohort_ndarray *const *inputs, size_t num_inputs, cohort_ndarray *const *outputs, size_t num_outputs, const cohort_invoke_options *options, cohort_arrays **out_outputs)) \
  X(cohort_error *, cohort_operator_name, (size_t index, const char **out_name)) \
  X(cohort_error *, cohort_operator_num, (size_t *out_num)) \
  X(cohort_error *, cohort_operator_output, (const char *op, size_t index, const char **out_name)) \
  X(cohort_error *, cohort_operator_precision, (const char *op, cohort_precision *out_precision)) \
  X(cohort_error *, cohort_optimizer_create, (const char *name, const char *const *keys, const char *const *values, size_t num_attrs, cohort_optimizer **out_optimizer)) \
  X(void, cohort_optimizer_free, (cohort_optimizer *optimizer)) \
  X(cohort_error *, cohort_optimizer_get, (const cohort_optimizer *optimizer, const char *key, double *out_value)) \
  X(cohort_error *, cohort_optimizer_load_states, (cohort_optimizer *optimizer, const char *path)) \
  X(cohort_error *, cohort_optimizer_load_states_memory, (cohort_optimizer *optimizer, const void *data, size_t bytes)) \
  X(cohort_error *, cohort_optimizer_loss_scale, (const cohort_optimizer *optimizer, double *out_scale, int32_t *out_num_good, uint64_t *out_num_skipped)) \
  X(cohort_error *, cohort_optimizer_mult, (const cohort_optimizer *optimizer, const char *param, double *out_lr_mult, double *out_wd_mult)) \
  X(cohort_error *, cohort_optimizer_save_states, (const cohort_optimizer *optimizer, const char *path)) \
  X(cohort_error *, cohort_optimizer_save_states_memory, (const cohort_optimizer *optimizer, void *out_data, size_t capacity, size_t *out_bytes)) \
  X(cohort_error *, cohort_optimizer_set, (cohort_optimizer *optimizer, const char *key, double value)) \
  X(cohort_error *, cohort_optimizer_set_lr_schedule, (cohort_optimizer *optimizer, const char *name, const char *const *keys, const char *const *values, size_t num_attrs)) \
  X(cohort_error *, cohort_optimizer_set_mult, (cohort_optimizer *optimizer, const char *param, double lr_mult, double wd_mult)) \
  X(cohort_error *, cohort_optimizer_update, (cohort_optimizer *optimizer, const char *param, size_t copy, cohort_ndarray *weight, cohort_ndarray *grad)) \
  X(cohort_error *, cohort_optimizer_use_symbol, (cohort_optimizer *optimizer, const cohort_symbol *symbol)) \
  X(void, cohort_reshape_options_init, (cohort_reshape_options *options, size_t struct_size)) \
  X(cohort_error *, cohort_set_log, (cohort_log_level lowest, cohort_log_fn callback, void *user_data)) \
  X(cohort_error *, cohort_split_slices, (int64_t batch_size, const double *workload, size_t num_contexts, cohort_rounding rounding, int64_t *out_begin, int64_t *out_end)) \
  X(cohort_error *, cohort_symbol_attr, (const cohort_symbol *symbol, const char *key, const char **out_value)) \
  X(cohort_error *, cohort_symbol_attr_at, (const cohort_symbol *symbol, cohort_bool all, size_t index, const char **out_node, const char **out_key, const char **out_value)) \
  X(cohort_error *, cohort_symbol_children, (const cohort_symbol *symbol, cohort_symbol **out_symbol)) \
  X(cohort_error *, cohort_symbol_compose, (const cohort_symbol *symbol, const char *const *names, cohort_symbol *const *inputs, size_t num_inputs, const char *name, cohort_symbol **out_symbol)) \
  X(cohort_error *, cohort_symbol_copy, (const cohort_symbol *symbol, cohort_symbol **out_symbol)) \
  X(cohort_error *, cohort_symbol_create, (const char *op, const char *name, const char *const *keys, const char *const *values, size_t num_attrs, cohort_symbol *const *inputs, const char *const *input_names, size_t num_inputs, cohort_symbol **out_symbol)) \
  X(void, cohort_symbol_free, (cohort_symbol *symbol)) \
  X(cohort_error *, cohort_symbol_from_json, (const char *json, size_t bytes, cohort_symbol **out_symbol)) \
  X(cohort_error *, cohort_symbol_group, (cohort_symbol *const *symbols, size_t num_symbols, cohort_symbol **out_symbol)) \
  X(cohort_error *, cohort_symbol_infer_dtype, (const cohort_symbol *symbol, const cohort_descs *known, cohort_bool partial, cohort_bool *out_complete, cohort_descs **out_args, cohort_descs **out_outputs, cohort_descs **out_aux)) \
  X(cohort_error *, cohort_symbol_infer_shape, (const cohort_symbol *symbol, const cohort_descs *known, cohort_bool partial, cohort_bool *out_complete, cohort_descs **out_args, cohort_descs **out_outputs, cohort_descs **out_aux)) \
  X(cohort_error *, cohort_symbol_internals, (const cohort_symbol *symbol, cohort_symbol **out_symbol)) \
  X(cohort_error *, cohort_symbol_load, (const char *path, cohort_symbol **out_symbol)) \
  X(cohort_error *, cohort_symbol_name, (const cohort_symbol *symbol, const char **out_name)) \
  X(cohort_error *, cohort_symbol_name_at, (const cohort_symbol *symbol, cohort_symbol_list list, size_t index, const char **out_name)) \
  X(cohort_error *, cohort_symbol_num_attrs, (const cohort_symbol *symbol, cohort_bool all, size_t *out_num)) \
  X(cohort_error *, cohort_symbol_num_names, (const cohort_symbol *symbol, cohort_symbol_list list, size_t *out_num)) \
  X(cohort_error *, cohort_symbol_num_nodes, (const cohort_symbol *symbol, size_t *out_num)) \
  X(cohort_error *, cohort_symbol_output, (const cohort_symbol *symbol, size_t index, cohort_symbol **out_symbol)) \
  X(cohort_error *, cohort_symbol_output_named, (const cohort_symbol *symbol, const char *name, cohort_symbol **out_symbol)) \
  X(cohort_error *, cohort_symbol_save, (const cohort_symbol *symbol, const char *path)) \
  X(cohort_error *, cohort_symbol_set_attrs, (cohort_symbol *symbol, const char *const *keys, const char *const *values, size_t num_attrs)) \
  X(cohort_error *, cohort_symbol_to_json, (const cohort_symbol *symbol, const char **out_json)) \
  X(cohort_error *, cohort_symbol_variable, (const char *name, const char *const *keys, const char *const *values, size_t num_attrs, cohort_symbol **out_symbol)) \
  X(cohort_error *, cohort_tape_backward, (cohort_tape *tape, cohort_ndarray *const *heads, cohort_ndarray *const *head_grads, size_t num_heads, const cohort_backward_options *options)) \
  X(cohort_error *, cohort_tape_create, (cohort_tape **out_tape)) \
  X(void, cohort_tape_free, (cohort_tape *tape)) \
  X(cohort_error *, cohort_tape_function, (cohort_tape *tape, cohort_ndarray *const *inputs, size_t num_inputs, cohort_ndarray *const *outputs, size_t num_outputs, cohort_tape_function_fn backward, cohort_tape_release_fn release, void *user_data)) \
  X(cohort_error *, cohort_tape_grad, (cohort_tape *tape, cohort_ndarray *const *heads, cohort_ndarray *const *head_grads, size_t num_heads, cohort_ndarray *const *variables, size_t num_variables, const cohort_backward_options *options, cohort_arrays **out_gradients)) \
  X(cohort_error *, cohort_tape_invoke, (cohort_tape *tape, const char *op, const char *const *keys, const char *const *values, size_t num_attrs, cohort_ndarray *const *inputs, size_t num_inputs, cohort_ndarray *const *outputs, size_t num_outputs, const cohort_invoke_options *options, cohort_arrays **out_outputs)) \
  X(cohort_error *, cohort_tape_is_recording, (const cohort_tape *tape, cohort_bool *out_recording)) \
  X(cohort_error *, cohort_tape_is_training, (const cohort_tape *tape, cohort_bool *out_training)) \
  X(cohort_error *, cohort_tape_mark, (cohort_tape *tape, cohort_ndarray *const *arrays, cohort_ndarray *const *gradients, const cohort_grad_req *grad_reqs, size_t num_arrays)) \
  X(cohort_error *, cohort_tape_num_recorded, (cohort_tape *tape, size_t *out_num)) \
  X(cohort_error *, cohort_tape_set_recording, (cohort_tape *tape, cohort_bool recording, cohort_bool *out_previous)) \
  X(cohort_error *, cohort_tape_set_training, (cohort_tape *tape, cohort_bool training, cohort_bool *out_previous)) \
  X(cohort_error *, cohort_tape_symbol, (cohort_tape *tape, cohort_ndarray *array, cohort_symbol **out_symbol)) \
  X(cohort_error *, cohort_trace_begin, (cohort_trace *trace, const char *row, const char *name)) \
  X(cohort_error *, cohort_trace_clear, (cohort_trace *trace)) \
  X(cohort_error *, cohort_trace_counter, (cohort_trace *trace, const char *name, double value)) \
  X(cohort_error *, cohort_trace_create, (const cohort_trace_options *options, cohort_trace **out_trace)) \
  X(cohort_error *, cohort_trace_end, (cohort_trace *trace, const char *row)) \
  X(void, cohort_trace_free, (cohort_trace *trace)) \
  X(cohort_error *, cohort_trace_get_info, (const cohort_trace *trace, cohort_trace_info *out_info)) \
  X(cohort_error *, cohort_trace_json, (cohort_trace *trace, const char **out_json)) \
  X(cohort_error *, cohort_trace_mark, (cohort_trace *trace, const char *row, const char *name)) \
  X(cohort_error *, cohort_trace_num_totals, (const cohort_trace *trace, cohort_totals_by by, size_t *out_num)) \
  X(void, cohort_trace_options_init, (cohort_trace_options *options, size_t struct_size)) \
  X(cohort_error *, cohort_trace_start, (cohort_trace *trace)) \
  X(cohort_error *, cohort_trace_stop, (cohort_trace *trace)) \
  X(cohort_error *, cohort_trace_table, (cohort_trace *trace, cohort_totals_by by, const char **out_text)) \
  X(cohort_error *, cohort_trace_total, (cohort_trace *trace, cohort_totals_by by, size_t index, const char **out_name, const char **out_op, cohort_span_total *out_total)) \
  X(cohort_error *, cohort_trace_write, (const cohort_trace *trace, const char *path)) \
  X(const char *, cohort_version, (void)) \
  X(int32_t, cohort_version_number, (void)) \
  X(cohort_error *, cohort_wait_all, (void))
/* clang-format on */

#endif /* COHORT_COHORT_FUNCTIONS_H */
