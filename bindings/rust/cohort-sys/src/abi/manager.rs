// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::{c_char, c_void};

/// Gives the symbol of a bucket.
///
///
/// Runs inside cohort_manager_load_data_batch(), on the calling thread, once for each bucket that is made, never for the
/// default one. It must not use the manager or its groups.
pub type cohort_bucket_symbol_fn = Option<
    unsafe extern "C" fn(
        bucket_key: *const c_char,
        out_symbol: *mut *mut cohort_symbol,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Settings of a manager that few callers change. Zero in any field means its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_manager_options {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// num_workloads relative shares, each \> 0
    pub workload: *const f64,
    /// the number of contexts; 0: equal shares
    pub num_workloads: usize,
    /// key of the main symbol; not NULL if there are bucket symbols
    pub default_bucket_key: *const c_char,
    /// num_buckets different keys; the default key may be among them, its symbol is not used
    pub bucket_keys: *const *const c_char,
    /// their symbols, which are copied: the handles stay the caller's
    pub bucket_symbols: *const *mut cohort_symbol,
    pub num_buckets: usize,
    /// called for other keys; NULL: there are none
    pub bucket_symbol: cohort_bucket_symbol_fn,
    /// passed to bucket_symbol
    pub bucket_symbol_user_data: *mut c_void,
    /// threads of each CPU context; 0: as in executor.h
    pub num_threads: i32,
    /// seed of random operators; each device draws its own numbers
    pub seed: u64,
    /// takes the messages of the manager and its groups; NULL: they go where the library's do
    pub log: cohort_log_fn,
    /// passed to log
    pub log_user_data: *mut c_void,
    /// num_state_names arguments that are states. Buckets in which a state has the same shape share its array, so cohort_manager_set_states() holds for the bucket that runs next, too.
    pub state_names: *const *const c_char,
    pub num_state_names: usize,
    /// as in executor.h; COHORT_DTYPE_INT8: UNSUPPORTED, as a manager trains
    pub compute_dtype: cohort_dtype,
    /// num_float32_names nodes and operators, as in executor.h; nodes of the main symbol need not be in those of other buckets
    pub float32_names: *const *const c_char,
    pub num_float32_names: usize,
    /// num_narrow_names of them, likewise
    pub narrow_names: *const *const c_char,
    pub num_narrow_names: usize,
    /// these two as in group.h; one for all buckets
    pub loss_scale: f64,
    pub loss_scale_window: i32,
    /// as in executor.h
    pub backward_once: cohort_bool,
    /// as in group.h
    pub gradient_sum_dtype: cohort_dtype,
    /// as in executor.h
    pub tf32: cohort_bool,
    /// likewise
    pub recompute: cohort_bool,
    /// as in group.h
    pub keep_device_aux: cohort_bool,
}

extern "C" {
    /// A handle on the live array of one device, as cohort_group_array().
    ///
    /// - `out_array`: NULL may come out. NULL for a parameter without gradient. Outputs and gradients are zeros before the first pass (except outputs of a group that shares the memory of one that has run). Outputs are valid until the next forward pass of the group or one that shares its memory. For outputs whose shape depends on values see cohort_executor_array().
    pub fn cohort_manager_array(
        manager: *const cohort_manager,
        list: cohort_group_list,
        index: usize,
        device: usize,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// As cohort_manager_array(), for a whole list on one device, names included.
    pub fn cohort_manager_arrays(
        manager: *const cohort_manager,
        list: cohort_group_list,
        device: usize,
        out_arrays: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// As cohort_group_assign_params(), for the main group and so for all buckets.
    ///
    /// - `arg_params`: Named arrays on any contexts, for any arguments; arguments that are not named keep their values.
    /// - `aux_params`: may be NULL. The same for auxiliary states; NULL: none.
    /// - `allow_missing`: 1: parameters and auxiliary states that are not given keep their values; 0: they are COHORT_ERROR_NAME (the error lists them), and nothing is copied.
    /// - `allow_extra`: 1: unknown names are skipped; 0: they are COHORT_ERROR_NAME.
    /// - `out_missing`: may be NULL. Those that were not given: names, shapes and dtypes in the order of the symbol's lists.
    pub fn cohort_manager_assign_params(
        manager: *mut cohort_manager,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
        allow_missing: cohort_bool,
        allow_extra: cohort_bool,
        out_missing: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// Queues a backward pass of the current group, without head gradients: its outputs are losses.
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE before the first batch is loaded, or what cohort_group_backward() returns.
    pub fn cohort_manager_backward(
        manager: *mut cohort_manager,
    ) -> *mut cohort_error;
    /// Reads a bucket that has been made.
    ///
    /// - `index`: Below cohort_manager_num_buckets(). Buckets are sorted by key, byte by byte: a new one may move others.
    /// - `out_key`: may be NULL. Its key. Lives as long as the manager.
    /// - `out_group`: may be NULL. A handle on its group; that of the default key is the main group.
    pub fn cohort_manager_bucket(
        manager: *const cohort_manager,
        index: usize,
        out_key: *mut *const c_char,
        out_group: *mut *mut cohort_group,
    ) -> *mut cohort_error;
    /// As cohort_group_get_params(), for the main group: the mean over the devices into given arrays.
    ///
    /// - `arg_params`: Named arrays on any contexts, at least one for each parameter; others are not touched.
    /// - `aux_params`: may be NULL. The same for auxiliary states; NULL only if there are none.
    pub fn cohort_manager_copy_to(
        manager: *const cohort_manager,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
    ) -> *mut cohort_error;
    /// Makes a manager and binds its main group for training: only parameters have gradients, all "write". Logs the
    /// contexts.
    ///
    /// - `symbol`: The symbol of the default bucket. Memory is used best if that is the largest bucket.
    /// - `contexts`: num_contexts of them, at least 1. The same one twice gives two executors.
    /// - `batch_size`: Samples of every batch, at least 1.
    /// - `data`: Descriptors of the data, at least one, each of one axis or more. All are batched along axis 0, whatever their layout; the length there is not read.
    /// - `label`: may be NULL. The same for labels; NULL or empty: none.
    /// - `param_names`: may be NULL. As for cohort_group_create(), for each bucket. Each is an argument of this symbol. The parameters. Names that are not arguments: see strict_names. NULL with num_param_names 0: all arguments except data, labels (also those of losses that have no descriptor) and states.
    /// - `options`: may be NULL. NULL: all defaults.
    ///
    /// Returns: NULL, or what cohort_group_create() returns, and
    ///   COHORT_ERROR_INVALID_ARGUMENT  bucket symbols without default_bucket_key; a number of workloads other than
    ///                                  num_contexts
    ///   COHORT_ERROR_NAME              a bucket key comes twice; a parameter's name is no argument (the error gives the
    ///                                  nearest ones)
    pub fn cohort_manager_create(
        symbol: *const cohort_symbol,
        contexts: *const cohort_context,
        num_contexts: usize,
        batch_size: i64,
        data: *const cohort_descs,
        label: *const cohort_descs,
        param_names: *const *const c_char,
        num_param_names: usize,
        options: *const cohort_manager_options,
        out_manager: *mut *mut cohort_manager,
    ) -> *mut cohort_error;
    /// A handle on the group of the batch loaded last. COHORT_ERROR_STATE before the first.
    pub fn cohort_manager_current_group(
        manager: *const cohort_manager,
        out_group: *mut *mut cohort_group,
    ) -> *mut cohort_error;
    /// Queues a forward pass of the current group over what is loaded.
    ///
    /// - `is_train`: As for cohort_group_run(). 1: training behaviour, and what cohort_group_backward() needs is kept; 0: inference, after which a backward pass gives the gradients of inference; -1: as the group was bound.
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE before the first batch is loaded.
    pub fn cohort_manager_forward(
        manager: *mut cohort_manager,
        is_train: i32,
    ) -> *mut cohort_error;
    /// Frees a handle; NULL does nothing. Waits for queued work of groups that have no other handle.
    ///
    /// - `manager`: may be NULL.
    pub fn cohort_manager_free(
        manager: *mut cohort_manager,
    );
    /// Makes the bucket of a batch current, binding it first if it is new, and copies each slice to its device. Queued; runs
    /// nothing.
    ///
    ///
    /// Ownership: as for cohort_group_load().
    ///
    /// - `data`: As for cohort_group_load(), in the order of the bucket's descriptors, of the manager's batch size along axis 0. num_data arrays in the order of the data descriptors, each of the descriptor's full shape, batch axis included, of any dtype, on any context.
    /// - `label`: may be NULL. As for cohort_group_load(), likewise. As data, for the label descriptors; NULL with num_label 0: labels stay as they are. A group bound without labels ignores them.
    /// - `bucket_key`: Which bucket; not read if there are no bucket symbols.
    /// - `data_descs`: Descriptors of this batch's data, as for cohort_manager_create(). Only read, and then needed, if the bucket is new.
    /// - `label_descs`: may be NULL. The same for labels; NULL or empty: none.
    ///
    /// Returns: NULL, or, with no bucket made and the current one as before,
    ///   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of arrays; no key where one is needed; a new bucket without
    ///                                  descriptors, or without a symbol from the callback
    ///   COHORT_ERROR_NAME              there is no symbol for the key; a parameter of the bucket is not one of the main
    ///                                  group
    ///   COHORT_ERROR_SHAPE             a batch of another size; an array of another shape; a parameter of another shape
    ///   COHORT_ERROR_DTYPE             a parameter of another dtype
    ///   COHORT_ERROR_EXECUTION         the callback refused the key
    ///   or what cohort_group_create() returns.
    pub fn cohort_manager_load_data_batch(
        manager: *mut cohort_manager,
        data: *const *mut cohort_ndarray,
        num_data: usize,
        label: *const *mut cohort_ndarray,
        num_label: usize,
        bucket_key: *const c_char,
        data_descs: *const cohort_descs,
        label_descs: *const cohort_descs,
    ) -> *mut cohort_error;
    /// As cohort_group_loss_scale(), for all buckets.
    ///
    /// - `out_scale`: may be NULL. The factor of the next backward pass; 1 if there is none.
    /// - `out_num_good`: may be NULL. Updates made since it changed.
    /// - `out_num_skipped`: may be NULL. Updates skipped since the group was made, or since the group was whose parameters it shares.
    pub fn cohort_manager_loss_scale(
        manager: *const cohort_manager,
        out_scale: *mut f64,
        out_num_good: *mut i32,
        out_num_skipped: *mut u64,
    ) -> *mut cohort_error;
    /// A handle on the main group. Groups of a manager may be read and run, but only the manager binds them:
    /// cohort_group_bind() and cohort_group_reshape() are COHORT_ERROR_STATE.
    pub fn cohort_manager_main_group(
        manager: *const cohort_manager,
        out_group: *mut *mut cohort_group,
    ) -> *mut cohort_error;
    /// The memory that all buckets made so far take on all devices; shared memory is counted once. planned_bytes includes
    /// what inference derives from parameters. intermediate_bytes and value_bytes are, for each device, those of the bucket
    /// with the most. struct_size of *out_info is set by the caller.
    pub fn cohort_manager_memory(
        manager: *const cohort_manager,
        out_info: *mut cohort_memory_info,
    ) -> *mut cohort_error;
    /// One array for all devices: cohort_group_merged(). `list` is COHORT_GROUP_OUTPUTS.
    pub fn cohort_manager_merged(
        manager: *const cohort_manager,
        list: cohort_group_list,
        index: usize,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// The name of an entry; a gradient has the name of its argument. Lives as long as the manager.
    pub fn cohort_manager_name(
        manager: *const cohort_manager,
        list: cohort_group_list,
        index: usize,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// How many entries a list has.
    ///
    /// - `list`: COHORT_GROUP_ constant, here and below: COHORT_GROUP_PARAMS, _GRADS and _AUX are those of the main group, which all buckets share; all others are of the current group (COHORT_ERROR_STATE before the first batch is loaded).
    pub fn cohort_manager_num_arrays(
        manager: *const cohort_manager,
        list: cohort_group_list,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// How many buckets have been made, the default one included; 0 without bucket symbols.
    pub fn cohort_manager_num_buckets(
        manager: *const cohort_manager,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// The number of contexts.
    pub fn cohort_manager_num_contexts(
        manager: *const cohort_manager,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// COHORT_MANAGER_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
    pub fn cohort_manager_options_init(
        options: *mut cohort_manager_options,
        struct_size: usize,
    );
    /// As cohort_group_resume(), for all buckets. Those that are not made yet are resumed when they are:
    /// cohort_manager_load_data_batch() returns COHORT_ERROR_NAME if the states were saved with another symbol of the bucket.
    ///
    /// - `optimizer`: Does nothing if it has loaded no states, or has updated a group since.
    pub fn cohort_manager_resume(
        manager: *mut cohort_manager,
        optimizer: *mut cohort_optimizer,
    ) -> *mut cohort_error;
    /// As cohort_group_set_loss_scale(), for all buckets.
    pub fn cohort_manager_set_loss_scale(
        manager: *mut cohort_manager,
        scale: f64,
        num_good: i32,
    ) -> *mut cohort_error;
    /// As cohort_group_set_monitor(), for the main group. For a monitor with statistics:
    /// cohort_monitor_install_on_manager().
    ///
    /// - `callback`: may be NULL. Replaces the previous callback; NULL: none. A reshaped executor takes it over, and calls it with the same user_data even after this executor was freed.
    /// - `user_data`: may be NULL. Passed to the callback.
    /// - `monitor_all`: 1: the inputs of each operator too, before its outputs.
    ///
    /// Returns: NULL, or COHORT_ERROR_UNSUPPORTED for a manager with bucket symbols.
    pub fn cohort_manager_set_monitor(
        manager: *mut cohort_manager,
        callback: cohort_monitor_fn,
        user_data: *mut c_void,
        monitor_all: cohort_bool,
    ) -> *mut cohort_error;
    /// As cohort_group_set_params(), for the main group and so for all buckets; unknown names are COHORT_ERROR_NAME.
    ///
    /// - `arg_params`: Named arrays on any contexts, for any arguments; arguments that are not named keep their values.
    /// - `aux_params`: may be NULL. The same for auxiliary states; NULL: none.
    pub fn cohort_manager_set_params(
        manager: *mut cohort_manager,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
    ) -> *mut cohort_error;
    /// As cohort_group_set_states(), for the current group. To carry states from batch to batch, whatever their buckets:
    /// load the next batch, set the states to the outputs that the devices had from the one before, run.
    ///
    /// - `states`: may be NULL. num_states * num_devices arrays: state 0 of every device, then state 1. NULL: by value.
    /// - `num_states`: The number of states.
    /// - `num_devices`: The number of contexts.
    /// - `value`: may be NULL. Fills all states. NULL: by states.
    pub fn cohort_manager_set_states(
        manager: *mut cohort_manager,
        states: *const *mut cohort_ndarray,
        num_states: usize,
        num_devices: usize,
        value: *const f64,
    ) -> *mut cohort_error;
    /// The slice of a device, the same in all buckets: \[*out_begin, *out_end).
    pub fn cohort_manager_slice(
        manager: *const cohort_manager,
        device: usize,
        out_begin: *mut i64,
        out_end: *mut i64,
    ) -> *mut cohort_error;
    /// Updates the parameters with cohort_group_update() of the current group. All buckets share parameters and gradients:
    /// the update uses the gradients of the latest backward pass of any bucket. The current group must have run a backward
    /// pass since it was bound, else it is COHORT_ERROR_STATE.
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE before the first batch is loaded, or what cohort_group_update() returns.
    pub fn cohort_manager_update(
        manager: *mut cohort_manager,
        optimizer: *mut cohort_optimizer,
        mode: cohort_update_mode,
    ) -> *mut cohort_error;
    /// As cohort_group_update_metric(), for the current group. COHORT_ERROR_STATE before the first batch is loaded.
    ///
    /// - `labels`: Whole labels in the order of the descriptors, sliced along their batch axes here.
    /// - `num_labels`: The number of label descriptors.
    pub fn cohort_manager_update_metric(
        manager: *mut cohort_manager,
        metric: *mut cohort_metric,
        labels: *const *mut cohort_ndarray,
        num_labels: usize,
    ) -> *mut cohort_error;
    /// As cohort_group_update_metric_presliced(), likewise for the current group.
    ///
    /// - `labels`: Whole labels in the order of the descriptors, sliced along their batch axes here.
    /// - `num_labels`: The number of label descriptors.
    pub fn cohort_manager_update_metric_presliced(
        manager: *mut cohort_manager,
        metric: *mut cohort_metric,
        num_slices: usize,
        labels: *const *mut cohort_ndarray,
        num_labels: usize,
    ) -> *mut cohort_error;
}
