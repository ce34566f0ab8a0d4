// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
//! Bad input is refused, or gives what the headers say; it is never read or freed as if it were valid.
#![cfg_attr(rustfmt, rustfmt_skip)]
use cohort_sys::*;
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

unsafe fn text(name: &str, found: *const c_char) -> &str {
    assert!(!found.is_null(), "{} gives no text", name);
    CStr::from_ptr(found).to_str().unwrap_or_else(|why| panic!("{}: {}", name, why))
}

/// Success, or a sound error, which is freed: its class.
unsafe fn ended(name: &str, error: *mut cohort_error) -> cohort_error_class {
    let code = cohort_error_code(error);
    let message = text(name, cohort_error_message(error)).to_owned();
    cohort_error_free(error);
    assert_eq!(message.is_empty(), error.is_null(), "{}: {}", name, message);
    assert_eq!(code == COHORT_SUCCESS, error.is_null(), "{}: {}", name, message);
    assert!(code != COHORT_ERROR_INTERNAL && !message.contains('\n'), "{}: {}", name, message);
    code
}

unsafe fn refused(name: &str, error: *mut cohort_error) {
    assert_ne!(ended(name, error), COHORT_SUCCESS, "{} takes it", name);
}

/// One test at a time: at its end no handle lives but those that did before.
fn sweep(calls: impl FnOnce()) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|failed| failed.into_inner());
    let before = unsafe { cohort_live_handles() };
    calls();
    assert_eq!(unsafe { cohort_live_handles() }, before);
}

fn new_descs() -> *mut cohort_descs {
    let mut descs = null_mut();
    assert_eq!(unsafe { ended("cohort_descs_create", cohort_descs_create(&mut descs)) }, COHORT_SUCCESS);
    descs
}

fn new_arrays() -> *mut cohort_arrays {
    let mut arrays = null_mut();
    assert_eq!(unsafe { ended("cohort_arrays_create", cohort_arrays_create(&mut arrays)) }, COHORT_SUCCESS);
    arrays
}

#[test]
fn null_is_refused_where_an_address_is_needed() {
    sweep(|| unsafe { nulls() });
}

#[test]
fn an_address_that_is_no_handle_is_refused() {
    let zeros = [0u64; 64];
    for address in [zeros.as_ptr() as usize, zeros.as_ptr() as usize + 1, 1, 8, usize::MAX / 2, usize::MAX] {
        sweep(|| unsafe { strays(&|_| address) });
    }
}

#[test]
fn what_lies_within_a_handle_is_refused() {
    sweep(|| {
        let descs = new_descs();
        for offset in [1, 4, 8] {
            unsafe { strays(&|_| descs as usize + offset) };
        }
        unsafe { cohort_descs_free(descs) };
    });
}

#[test]
fn a_freed_handle_is_refused() {
    sweep(|| {
        let (descs, arrays) = (new_descs(), new_arrays());
        unsafe {
            cohort_descs_free(descs);
            cohort_arrays_free(arrays);
            strays(&|_| descs as usize);
            strays(&|_| arrays as usize);
        }
    });
}

#[test]
fn a_handle_of_another_kind_is_refused_and_lives_on() {
    sweep(|| {
        let (descs, arrays) = (new_descs(), new_arrays());
        let mut num = 1;
        unsafe {
            strays(&|kind| if kind == "descs" { arrays as usize } else { descs as usize });
            assert_eq!(ended("cohort_descs_num", cohort_descs_num(descs, &mut num)), COHORT_SUCCESS);
            assert_eq!(num, 0);
            cohort_descs_free(descs);
            cohort_arrays_free(arrays);
        }
    });
}

/// Each function, given NULL for all addresses and 0 for all numbers.
unsafe fn nulls() {
    refused("cohort_arrays_add", cohort_arrays_add(null_mut(), null(), null_mut()));
    refused("cohort_arrays_create", cohort_arrays_create(null_mut()));
    refused("cohort_arrays_find", cohort_arrays_find(null(), null(), null_mut()));
    cohort_arrays_free(null_mut());
    refused("cohort_arrays_get", cohort_arrays_get(null(), 0, null_mut()));
    refused("cohort_arrays_load", cohort_arrays_load(null(), null(), null_mut()));
    refused("cohort_arrays_load_memory", cohort_arrays_load_memory(null(), 0, null(), null_mut()));
    refused("cohort_arrays_map", cohort_arrays_map(null(), null_mut()));
    refused("cohort_arrays_name", cohort_arrays_name(null(), 0, null_mut()));
    refused("cohort_arrays_num", cohort_arrays_num(null(), null_mut()));
    refused("cohort_arrays_save", cohort_arrays_save(null(), null()));
    refused("cohort_arrays_save_memory", cohort_arrays_save_memory(null(), null_mut(), 0, null_mut()));
    refused("cohort_arrays_save_npy", cohort_arrays_save_npy(null(), null()));
    refused("cohort_arrays_save_npz", cohort_arrays_save_npz(null(), null()));
    refused("cohort_arrays_set", cohort_arrays_set(null_mut(), null(), null_mut()));
    cohort_backward_options_init(null_mut(), 0);
    refused("cohort_calibration_create", cohort_calibration_create(0, null_mut()));
    refused("cohort_calibration_create_from", cohort_calibration_create_from(null(), null_mut()));
    cohort_calibration_free(null_mut());
    refused("cohort_calibration_observe", cohort_calibration_observe(null_mut(), null_mut()));
    refused("cohort_calibration_range", cohort_calibration_range(null(), null(), null_mut(), null_mut()));
    refused("cohort_calibration_ranges", cohort_calibration_ranges(null(), null_mut()));
    refused("cohort_checkpoint_load", cohort_checkpoint_load(null(), 0, null_mut(), null_mut(), null_mut()));
    refused("cohort_checkpoint_map", cohort_checkpoint_map(null(), 0, null_mut(), null_mut(), null_mut()));
    refused("cohort_checkpoint_save", cohort_checkpoint_save(null(), 0, null(), null(), null()));
    refused("cohort_context_parse", cohort_context_parse(null(), null_mut()));
    ended("cohort_context_text", cohort_context_text(null(), null_mut(), 0, null_mut()));
    cohort_custom_op_init(null_mut(), 0);
    refused("cohort_custom_register", cohort_custom_register(null(), null()));
    refused("cohort_custom_unregister", cohort_custom_unregister(null()));
    refused("cohort_descs_add", cohort_descs_add(null_mut(), null(), null(), 0, 0, null()));
    refused("cohort_descs_create", cohort_descs_create(null_mut()));
    refused("cohort_descs_find", cohort_descs_find(null(), null(), null_mut()));
    cohort_descs_free(null_mut());
    refused("cohort_descs_get", cohort_descs_get(null(), 0, null_mut(), null_mut(), 0, null_mut(), null_mut(), null_mut()));
    refused("cohort_descs_num", cohort_descs_num(null(), null_mut()));
    ended("cohort_device_limit_memory", cohort_device_limit_memory(null(), 0));
    refused("cohort_device_memory", cohort_device_memory(null(), null_mut()));
    ended("cohort_device_reset_peak_memory", cohort_device_reset_peak_memory(null()));
    refused("cohort_dtype_bytes", cohort_dtype_bytes(0, null_mut()));
    refused("cohort_dtype_parse", cohort_dtype_parse(null(), null_mut()));
    refused("cohort_dtype_text", cohort_dtype_text(0, null_mut()));
    assert!((0..=12).contains(&cohort_error_code(null())));
    text("cohort_error_code_text", cohort_error_code_text(0));
    cohort_error_free(null_mut());
    text("cohort_error_message", cohort_error_message(null()));
    text("cohort_error_subject", cohort_error_subject(null()));
    refused("cohort_executor_array", cohort_executor_array(null(), 0, 0, null_mut()));
    refused("cohort_executor_array_named", cohort_executor_array_named(null(), 0, null(), null_mut()));
    refused("cohort_executor_arrays", cohort_executor_arrays(null(), 0, null_mut()));
    refused("cohort_executor_backward", cohort_executor_backward(null_mut(), null(), 0, 0));
    refused("cohort_executor_bind", cohort_executor_bind(null(), null(), null(), 0, null(), null(), null(), 0, null(), null_mut()));
    refused("cohort_executor_context", cohort_executor_context(null(), null_mut()));
    refused("cohort_executor_copy_params_from", cohort_executor_copy_params_from(null_mut(), null(), null(), 0));
    refused("cohort_executor_debug_text", cohort_executor_debug_text(null(), null_mut()));
    refused("cohort_executor_forward", cohort_executor_forward(null_mut(), 0));
    cohort_executor_free(null_mut());
    refused("cohort_executor_grad_req", cohort_executor_grad_req(null(), 0, null_mut()));
    refused("cohort_executor_memory", cohort_executor_memory(null(), null_mut()));
    refused("cohort_executor_name", cohort_executor_name(null(), 0, 0, null_mut()));
    refused("cohort_executor_num_arrays", cohort_executor_num_arrays(null(), 0, null_mut()));
    cohort_executor_options_init(null_mut(), 0);
    refused("cohort_executor_partial_forward", cohort_executor_partial_forward(null_mut(), 0, 0, null_mut()));
    refused("cohort_executor_random_state", cohort_executor_random_state(null(), null_mut(), 0, null_mut()));
    refused("cohort_executor_reshape", cohort_executor_reshape(null(), null(), null(), null_mut()));
    refused("cohort_executor_set_inputs", cohort_executor_set_inputs(null_mut(), null()));
    refused("cohort_executor_set_monitor", cohort_executor_set_monitor(null_mut(), None, null_mut(), 0));
    refused("cohort_executor_set_random_state", cohort_executor_set_random_state(null_mut(), null(), 0));
    refused("cohort_executor_simple_bind", cohort_executor_simple_bind(null(), null(), null(), null(), null_mut()));
    refused("cohort_executor_symbol", cohort_executor_symbol(null(), null_mut()));
    refused("cohort_executor_wait", cohort_executor_wait(null_mut()));
    refused("cohort_group_array", cohort_group_array(null(), 0, 0, 0, null_mut()));
    refused("cohort_group_arrays", cohort_group_arrays(null(), 0, 0, null_mut()));
    refused("cohort_group_assign_params", cohort_group_assign_params(null_mut(), null(), null(), 0, 0, null_mut()));
    refused("cohort_group_axis", cohort_group_axis(null(), 0, 0, null_mut()));
    refused("cohort_group_backward", cohort_group_backward(null_mut(), null(), 0));
    refused("cohort_group_batch_size", cohort_group_batch_size(null(), null_mut()));
    refused("cohort_group_bind", cohort_group_bind(null_mut(), null(), null(), null_mut(), 0));
    refused("cohort_group_context", cohort_group_context(null(), 0, null_mut()));
    refused("cohort_group_copy_params", cohort_group_copy_params(null(), null_mut(), null_mut()));
    refused("cohort_group_create", cohort_group_create(null(), null(), 0, null(), null(), null(), 0, 0, null(), null_mut()));
    refused("cohort_group_decide_slices", cohort_group_decide_slices(null(), null(), null_mut()));
    refused("cohort_group_descs", cohort_group_descs(null(), 0, null_mut()));
    refused("cohort_group_executor", cohort_group_executor(null(), 0, null_mut()));
    refused("cohort_group_forward", cohort_group_forward(null_mut(), null(), 0, null(), 0, 0));
    refused("cohort_group_forward_presliced", cohort_group_forward_presliced(null_mut(), 0, null(), 0, null(), 0, 0));
    cohort_group_free(null_mut());
    refused("cohort_group_get_params", cohort_group_get_params(null(), null(), null()));
    refused("cohort_group_load", cohort_group_load(null_mut(), null(), 0, null(), 0));
    refused("cohort_group_loss_scale", cohort_group_loss_scale(null(), null_mut(), null_mut(), null_mut()));
    refused("cohort_group_memory", cohort_group_memory(null(), 0, null_mut()));
    refused("cohort_group_merged", cohort_group_merged(null(), 0, 0, null_mut()));
    refused("cohort_group_name", cohort_group_name(null(), 0, 0, null_mut()));
    refused("cohort_group_num_arrays", cohort_group_num_arrays(null(), 0, null_mut()));
    refused("cohort_group_num_contexts", cohort_group_num_contexts(null(), null_mut()));
    cohort_group_options_init(null_mut(), 0);
    refused("cohort_group_output_shapes", cohort_group_output_shapes(null(), null_mut()));
    refused("cohort_group_random_state", cohort_group_random_state(null(), null_mut(), 0, null_mut()));
    refused("cohort_group_reshape", cohort_group_reshape(null_mut(), null(), null()));
    refused("cohort_group_resume", cohort_group_resume(null_mut(), null_mut()));
    refused("cohort_group_run", cohort_group_run(null_mut(), 0));
    refused("cohort_group_set_loss_scale", cohort_group_set_loss_scale(null_mut(), 0.0, 0));
    refused("cohort_group_set_monitor", cohort_group_set_monitor(null_mut(), None, null_mut(), 0));
    refused("cohort_group_set_params", cohort_group_set_params(null_mut(), null(), null(), 0));
    refused("cohort_group_set_random_state", cohort_group_set_random_state(null_mut(), null(), 0));
    refused("cohort_group_set_states", cohort_group_set_states(null_mut(), null(), 0, 0, null()));
    refused("cohort_group_shared_data", cohort_group_shared_data(null(), 0, null_mut()));
    refused("cohort_group_slice", cohort_group_slice(null(), 0, null_mut(), null_mut()));
    refused("cohort_group_sliced_shape", cohort_group_sliced_shape(null(), null(), 0, null(), null_mut()));
    refused("cohort_group_update", cohort_group_update(null_mut(), null_mut(), 0));
    refused("cohort_group_update_metric", cohort_group_update_metric(null_mut(), null_mut(), null(), 0));
    refused("cohort_group_update_metric_presliced", cohort_group_update_metric_presliced(null_mut(), null_mut(), 0, null(), 0));
    refused("cohort_group_wait", cohort_group_wait(null_mut()));
    assert_eq!(cohort_has_feature(null()), 0);
    refused("cohort_initializer_apply", cohort_initializer_apply(null(), null(), null()));
    refused("cohort_initializer_create", cohort_initializer_create(null(), null(), null(), 0, 0, null_mut()));
    refused("cohort_initializer_fill", cohort_initializer_fill(null(), null(), null_mut()));
    cohort_initializer_free(null_mut());
    cohort_invoke_options_init(null_mut(), 0);
    refused("cohort_layout_batch_axis", cohort_layout_batch_axis(null(), null_mut()));
    cohort_live_handles();
    refused("cohort_log_create", cohort_log_create(0, None, None, null_mut(), null_mut()));
    cohort_log_free(null_mut());
    refused("cohort_manager_array", cohort_manager_array(null(), 0, 0, 0, null_mut()));
    refused("cohort_manager_arrays", cohort_manager_arrays(null(), 0, 0, null_mut()));
    refused("cohort_manager_assign_params", cohort_manager_assign_params(null_mut(), null(), null(), 0, 0, null_mut()));
    refused("cohort_manager_backward", cohort_manager_backward(null_mut()));
    refused("cohort_manager_bucket", cohort_manager_bucket(null(), 0, null_mut(), null_mut()));
    refused("cohort_manager_copy_to", cohort_manager_copy_to(null(), null(), null()));
    refused("cohort_manager_create", cohort_manager_create(null(), null(), 0, 0, null(), null(), null(), 0, null(), null_mut()));
    refused("cohort_manager_current_group", cohort_manager_current_group(null(), null_mut()));
    refused("cohort_manager_forward", cohort_manager_forward(null_mut(), 0));
    cohort_manager_free(null_mut());
    refused("cohort_manager_load_data_batch", cohort_manager_load_data_batch(null_mut(), null(), 0, null(), 0, null(), null(), null()));
    refused("cohort_manager_loss_scale", cohort_manager_loss_scale(null(), null_mut(), null_mut(), null_mut()));
    refused("cohort_manager_main_group", cohort_manager_main_group(null(), null_mut()));
    refused("cohort_manager_memory", cohort_manager_memory(null(), null_mut()));
    refused("cohort_manager_merged", cohort_manager_merged(null(), 0, 0, null_mut()));
    refused("cohort_manager_name", cohort_manager_name(null(), 0, 0, null_mut()));
    refused("cohort_manager_num_arrays", cohort_manager_num_arrays(null(), 0, null_mut()));
    refused("cohort_manager_num_buckets", cohort_manager_num_buckets(null(), null_mut()));
    refused("cohort_manager_num_contexts", cohort_manager_num_contexts(null(), null_mut()));
    cohort_manager_options_init(null_mut(), 0);
    refused("cohort_manager_resume", cohort_manager_resume(null_mut(), null_mut()));
    refused("cohort_manager_set_loss_scale", cohort_manager_set_loss_scale(null_mut(), 0.0, 0));
    refused("cohort_manager_set_monitor", cohort_manager_set_monitor(null_mut(), None, null_mut(), 0));
    refused("cohort_manager_set_params", cohort_manager_set_params(null_mut(), null(), null()));
    refused("cohort_manager_set_states", cohort_manager_set_states(null_mut(), null(), 0, 0, null()));
    refused("cohort_manager_slice", cohort_manager_slice(null(), 0, null_mut(), null_mut()));
    refused("cohort_manager_update", cohort_manager_update(null_mut(), null_mut(), 0));
    refused("cohort_manager_update_metric", cohort_manager_update_metric(null_mut(), null_mut(), null(), 0));
    refused("cohort_manager_update_metric_presliced", cohort_manager_update_metric_presliced(null_mut(), null_mut(), 0, null(), 0));
    refused("cohort_metric_add", cohort_metric_add(null_mut(), null_mut()));
    refused("cohort_metric_child", cohort_metric_child(null(), 0, null_mut()));
    refused("cohort_metric_counters", cohort_metric_counters(null(), 0, 0, null_mut(), null_mut()));
    refused("cohort_metric_create", cohort_metric_create(null(), null(), null(), 0, null_mut()));
    refused("cohort_metric_create_custom", cohort_metric_create_custom(null(), None, null_mut(), 0, null_mut()));
    cohort_metric_free(null_mut());
    refused("cohort_metric_num_children", cohort_metric_num_children(null(), null_mut()));
    refused("cohort_metric_num_values", cohort_metric_num_values(null(), null_mut()));
    refused("cohort_metric_reset", cohort_metric_reset(null_mut()));
    refused("cohort_metric_reset_local", cohort_metric_reset_local(null_mut()));
    refused("cohort_metric_set_names", cohort_metric_set_names(null_mut(), null(), 0, null(), 0));
    refused("cohort_metric_update", cohort_metric_update(null_mut(), null(), 0, null(), 0));
    refused("cohort_metric_update_named", cohort_metric_update_named(null_mut(), null(), null()));
    refused("cohort_metric_value", cohort_metric_value(null(), 0, 0, null_mut(), null_mut()));
    refused("cohort_monitor_create", cohort_monitor_create(0, null(), null_mut()));
    refused("cohort_monitor_entry", cohort_monitor_entry(null(), 0, null_mut(), null_mut(), null_mut()));
    cohort_monitor_free(null_mut());
    refused("cohort_monitor_install_on_executor", cohort_monitor_install_on_executor(null_mut(), null_mut()));
    refused("cohort_monitor_install_on_group", cohort_monitor_install_on_group(null_mut(), null_mut()));
    refused("cohort_monitor_install_on_manager", cohort_monitor_install_on_manager(null_mut(), null_mut()));
    cohort_monitor_options_init(null_mut(), 0);
    refused("cohort_monitor_step", cohort_monitor_step(null(), null_mut()));
    refused("cohort_monitor_tic", cohort_monitor_tic(null_mut()));
    refused("cohort_monitor_toc", cohort_monitor_toc(null_mut(), null_mut()));
    refused("cohort_monitor_values", cohort_monitor_values(null(), 0, null_mut()));
    refused("cohort_ndarray_at", cohort_ndarray_at(null(), 0, null_mut()));
    refused("cohort_ndarray_bytes", cohort_ndarray_bytes(null(), null_mut()));
    refused("cohort_ndarray_cast", cohort_ndarray_cast(null(), 0, null_mut()));
    refused("cohort_ndarray_concat", cohort_ndarray_concat(null(), 0, 0, null_mut()));
    refused("cohort_ndarray_context", cohort_ndarray_context(null(), null_mut()));
    refused("cohort_ndarray_copy", cohort_ndarray_copy(null(), null(), null_mut()));
    refused("cohort_ndarray_copy_to", cohort_ndarray_copy_to(null(), null_mut()));
    refused("cohort_ndarray_data", cohort_ndarray_data(null(), null_mut()));
    refused("cohort_ndarray_dtype", cohort_ndarray_dtype(null(), null_mut()));
    refused("cohort_ndarray_empty", cohort_ndarray_empty(null(), 0, 0, null(), null_mut()));
    refused("cohort_ndarray_fill", cohort_ndarray_fill(null_mut(), 0.0));
    refused("cohort_ndarray_fill_normal", cohort_ndarray_fill_normal(null_mut(), 0.0, 0.0, 0));
    refused("cohort_ndarray_fill_uniform", cohort_ndarray_fill_uniform(null_mut(), 0.0, 0.0, 0));
    cohort_ndarray_free(null_mut());
    refused("cohort_ndarray_from_dlpack", cohort_ndarray_from_dlpack(null_mut(), null_mut()));
    refused("cohort_ndarray_from_dlpack_unversioned", cohort_ndarray_from_dlpack_unversioned(null_mut(), null_mut()));
    refused("cohort_ndarray_from_host", cohort_ndarray_from_host(null(), 0, null(), 0, 0, null(), null_mut()));
    refused("cohort_ndarray_full", cohort_ndarray_full(null(), 0, 0, null(), 0.0, null_mut()));
    refused("cohort_ndarray_read", cohort_ndarray_read(null(), null_mut(), 0));
    refused("cohort_ndarray_reshape", cohort_ndarray_reshape(null(), null(), 0, null_mut()));
    refused("cohort_ndarray_reshape_prefix", cohort_ndarray_reshape_prefix(null(), null(), 0, null_mut()));
    refused("cohort_ndarray_shape", cohort_ndarray_shape(null(), null_mut(), 0, null_mut()));
    refused("cohort_ndarray_share", cohort_ndarray_share(null(), null_mut()));
    refused("cohort_ndarray_size", cohort_ndarray_size(null(), null_mut()));
    refused("cohort_ndarray_slice", cohort_ndarray_slice(null(), 0, 0, null_mut()));
    refused("cohort_ndarray_slice_axis", cohort_ndarray_slice_axis(null(), 0, 0, 0, null_mut()));
    refused("cohort_ndarray_to_dlpack", cohort_ndarray_to_dlpack(null(), null_mut()));
    refused("cohort_ndarray_to_dlpack_unversioned", cohort_ndarray_to_dlpack_unversioned(null(), null_mut()));
    refused("cohort_ndarray_wait", cohort_ndarray_wait(null()));
    refused("cohort_ndarray_wrap", cohort_ndarray_wrap(null_mut(), null(), 0, 0, null(), None, null_mut(), null_mut()));
    refused("cohort_ndarray_write", cohort_ndarray_write(null_mut(), null(), 0));
    refused("cohort_ndarray_zeros", cohort_ndarray_zeros(null(), 0, 0, null(), null_mut()));
    refused("cohort_num_devices", cohort_num_devices(0, null_mut()));
    refused("cohort_operator_attr", cohort_operator_attr(null(), 0, null_mut(), null_mut(), null_mut(), null_mut()));
    refused("cohort_operator_attr_range", cohort_operator_attr_range(null(), 0, null_mut(), null_mut()));
    refused("cohort_operator_info", cohort_operator_info(null(), null_mut(), null_mut(), null_mut(), null_mut(), null_mut(), null_mut()));
    refused("cohort_operator_input", cohort_operator_input(null(), 0, null_mut(), null_mut(), null_mut()));
    refused("cohort_operator_input_gradient", cohort_operator_input_gradient(null(), 0, null_mut()));
    refused("cohort_operator_invoke", cohort_operator_invoke(null(), null(), null(), 0, null(), 0, null(), 0, null(), null_mut()));
    refused("cohort_operator_name", cohort_operator_name(0, null_mut()));
    refused("cohort_operator_num", cohort_operator_num(null_mut()));
    refused("cohort_operator_output", cohort_operator_output(null(), 0, null_mut()));
    refused("cohort_operator_precision", cohort_operator_precision(null(), null_mut()));
    refused("cohort_optimizer_create", cohort_optimizer_create(null(), null(), null(), 0, null_mut()));
    cohort_optimizer_free(null_mut());
    refused("cohort_optimizer_get", cohort_optimizer_get(null(), null(), null_mut()));
    refused("cohort_optimizer_load_states", cohort_optimizer_load_states(null_mut(), null()));
    refused("cohort_optimizer_load_states_memory", cohort_optimizer_load_states_memory(null_mut(), null(), 0));
    refused("cohort_optimizer_loss_scale", cohort_optimizer_loss_scale(null(), null_mut(), null_mut(), null_mut()));
    refused("cohort_optimizer_mult", cohort_optimizer_mult(null(), null(), null_mut(), null_mut()));
    refused("cohort_optimizer_save_states", cohort_optimizer_save_states(null(), null()));
    refused("cohort_optimizer_save_states_memory", cohort_optimizer_save_states_memory(null(), null_mut(), 0, null_mut()));
    refused("cohort_optimizer_set", cohort_optimizer_set(null_mut(), null(), 0.0));
    refused("cohort_optimizer_set_lr_schedule", cohort_optimizer_set_lr_schedule(null_mut(), null(), null(), null(), 0));
    refused("cohort_optimizer_set_mult", cohort_optimizer_set_mult(null_mut(), null(), 0.0, 0.0));
    refused("cohort_optimizer_update", cohort_optimizer_update(null_mut(), null(), 0, null_mut(), null_mut()));
    refused("cohort_optimizer_use_symbol", cohort_optimizer_use_symbol(null_mut(), null()));
    cohort_reshape_options_init(null_mut(), 0);
    ended("cohort_set_log", cohort_set_log(0, None, null_mut()));
    refused("cohort_split_slices", cohort_split_slices(0, null(), 0, 0, null_mut(), null_mut()));
    refused("cohort_symbol_attr", cohort_symbol_attr(null(), null(), null_mut()));
    refused("cohort_symbol_attr_at", cohort_symbol_attr_at(null(), 0, 0, null_mut(), null_mut(), null_mut()));
    refused("cohort_symbol_children", cohort_symbol_children(null(), null_mut()));
    refused("cohort_symbol_compose", cohort_symbol_compose(null(), null(), null(), 0, null(), null_mut()));
    refused("cohort_symbol_copy", cohort_symbol_copy(null(), null_mut()));
    refused("cohort_symbol_create", cohort_symbol_create(null(), null(), null(), null(), 0, null(), null(), 0, null_mut()));
    cohort_symbol_free(null_mut());
    refused("cohort_symbol_from_json", cohort_symbol_from_json(null(), 0, null_mut()));
    refused("cohort_symbol_group", cohort_symbol_group(null(), 0, null_mut()));
    refused("cohort_symbol_infer_dtype", cohort_symbol_infer_dtype(null(), null(), 0, null_mut(), null_mut(), null_mut(), null_mut()));
    refused("cohort_symbol_infer_shape", cohort_symbol_infer_shape(null(), null(), 0, null_mut(), null_mut(), null_mut(), null_mut()));
    refused("cohort_symbol_internals", cohort_symbol_internals(null(), null_mut()));
    refused("cohort_symbol_load", cohort_symbol_load(null(), null_mut()));
    refused("cohort_symbol_name", cohort_symbol_name(null(), null_mut()));
    refused("cohort_symbol_name_at", cohort_symbol_name_at(null(), 0, 0, null_mut()));
    refused("cohort_symbol_num_attrs", cohort_symbol_num_attrs(null(), 0, null_mut()));
    refused("cohort_symbol_num_names", cohort_symbol_num_names(null(), 0, null_mut()));
    refused("cohort_symbol_num_nodes", cohort_symbol_num_nodes(null(), null_mut()));
    refused("cohort_symbol_output", cohort_symbol_output(null(), 0, null_mut()));
    refused("cohort_symbol_output_named", cohort_symbol_output_named(null(), null(), null_mut()));
    refused("cohort_symbol_save", cohort_symbol_save(null(), null()));
    refused("cohort_symbol_set_attrs", cohort_symbol_set_attrs(null_mut(), null(), null(), 0));
    refused("cohort_symbol_to_json", cohort_symbol_to_json(null(), null_mut()));
    refused("cohort_symbol_variable", cohort_symbol_variable(null(), null(), null(), 0, null_mut()));
    refused("cohort_tape_backward", cohort_tape_backward(null_mut(), null(), null(), 0, null()));
    refused("cohort_tape_create", cohort_tape_create(null_mut()));
    cohort_tape_free(null_mut());
    refused("cohort_tape_function", cohort_tape_function(null_mut(), null(), 0, null(), 0, None, None, null_mut()));
    refused("cohort_tape_grad", cohort_tape_grad(null_mut(), null(), null(), 0, null(), 0, null(), null_mut()));
    refused("cohort_tape_invoke", cohort_tape_invoke(null_mut(), null(), null(), null(), 0, null(), 0, null(), 0, null(), null_mut()));
    refused("cohort_tape_is_recording", cohort_tape_is_recording(null(), null_mut()));
    refused("cohort_tape_is_training", cohort_tape_is_training(null(), null_mut()));
    refused("cohort_tape_mark", cohort_tape_mark(null_mut(), null(), null(), null(), 0));
    refused("cohort_tape_num_recorded", cohort_tape_num_recorded(null_mut(), null_mut()));
    refused("cohort_tape_set_recording", cohort_tape_set_recording(null_mut(), 0, null_mut()));
    refused("cohort_tape_set_training", cohort_tape_set_training(null_mut(), 0, null_mut()));
    refused("cohort_tape_symbol", cohort_tape_symbol(null_mut(), null_mut(), null_mut()));
    refused("cohort_trace_begin", cohort_trace_begin(null_mut(), null(), null()));
    refused("cohort_trace_clear", cohort_trace_clear(null_mut()));
    refused("cohort_trace_counter", cohort_trace_counter(null_mut(), null(), 0.0));
    refused("cohort_trace_create", cohort_trace_create(null(), null_mut()));
    refused("cohort_trace_end", cohort_trace_end(null_mut(), null()));
    cohort_trace_free(null_mut());
    refused("cohort_trace_get_info", cohort_trace_get_info(null(), null_mut()));
    refused("cohort_trace_json", cohort_trace_json(null_mut(), null_mut()));
    refused("cohort_trace_mark", cohort_trace_mark(null_mut(), null(), null()));
    refused("cohort_trace_num_totals", cohort_trace_num_totals(null(), 0, null_mut()));
    cohort_trace_options_init(null_mut(), 0);
    refused("cohort_trace_start", cohort_trace_start(null_mut()));
    refused("cohort_trace_stop", cohort_trace_stop(null_mut()));
    refused("cohort_trace_table", cohort_trace_table(null_mut(), 0, null_mut()));
    refused("cohort_trace_total", cohort_trace_total(null_mut(), 0, 0, null_mut(), null_mut(), null_mut()));
    refused("cohort_trace_write", cohort_trace_write(null(), null()));
    text("cohort_version", cohort_version());
    cohort_version_number();
    ended("cohort_wait_all", cohort_wait_all());
}

/// Each function that takes handles, given the address that `at` has for their kind, and for the rest what could be right.
unsafe fn strays(at: &dyn Fn(&str) -> usize) {
    let mut zeros = [0u64; 512];
    let memory = zeros.as_mut_ptr() as *mut c_void;
    let name = b"x\0".as_ptr() as *const c_char;
    let names = [name; 1];
    refused("cohort_arrays_add", cohort_arrays_add(at("arrays") as _, name, at("ndarray") as _));
    refused("cohort_arrays_find", cohort_arrays_find(at("arrays") as _, name, memory as _));
    cohort_arrays_free(at("arrays") as _);
    refused("cohort_arrays_get", cohort_arrays_get(at("arrays") as _, 1, memory as _));
    refused("cohort_arrays_name", cohort_arrays_name(at("arrays") as _, 1, memory as _));
    refused("cohort_arrays_num", cohort_arrays_num(at("arrays") as _, memory as _));
    refused("cohort_arrays_save", cohort_arrays_save(at("arrays") as _, name));
    refused("cohort_arrays_save_memory", cohort_arrays_save_memory(at("arrays") as _, memory as _, 1, memory as _));
    refused("cohort_arrays_save_npy", cohort_arrays_save_npy(at("arrays") as _, name));
    refused("cohort_arrays_save_npz", cohort_arrays_save_npz(at("arrays") as _, name));
    refused("cohort_arrays_set", cohort_arrays_set(at("arrays") as _, name, at("ndarray") as _));
    refused("cohort_calibration_create_from", cohort_calibration_create_from(at("arrays") as _, memory as _));
    cohort_calibration_free(at("calibration") as _);
    refused("cohort_calibration_observe", cohort_calibration_observe(at("calibration") as _, at("executor") as _));
    refused("cohort_calibration_range", cohort_calibration_range(at("calibration") as _, name, memory as _, memory as _));
    refused("cohort_calibration_ranges", cohort_calibration_ranges(at("calibration") as _, memory as _));
    refused("cohort_checkpoint_save", cohort_checkpoint_save(name, 1, at("symbol") as _, at("arrays") as _, at("arrays") as _));
    refused("cohort_descs_add", cohort_descs_add(at("descs") as _, name, memory as _, 1, 1, name));
    refused("cohort_descs_find", cohort_descs_find(at("descs") as _, name, memory as _));
    cohort_descs_free(at("descs") as _);
    refused("cohort_descs_get", cohort_descs_get(at("descs") as _, 1, memory as _, memory as _, 1, memory as _, memory as _, memory as _));
    refused("cohort_descs_num", cohort_descs_num(at("descs") as _, memory as _));
    assert!((0..=12).contains(&cohort_error_code(at("error") as _)));
    cohort_error_free(at("error") as _);
    text("cohort_error_message", cohort_error_message(at("error") as _));
    text("cohort_error_subject", cohort_error_subject(at("error") as _));
    refused("cohort_executor_array", cohort_executor_array(at("executor") as _, 1, 1, memory as _));
    refused("cohort_executor_array_named", cohort_executor_array_named(at("executor") as _, 1, name, memory as _));
    refused("cohort_executor_arrays", cohort_executor_arrays(at("executor") as _, 1, memory as _));
    refused("cohort_executor_backward", cohort_executor_backward(at("executor") as _, [at("ndarray")].as_ptr() as _, 1, 1));
    refused("cohort_executor_bind", cohort_executor_bind(at("symbol") as _, null(), [at("ndarray")].as_ptr() as _, 1, [at("ndarray")].as_ptr() as _, memory as _, [at("ndarray")].as_ptr() as _, 1, null(), memory as _));
    refused("cohort_executor_context", cohort_executor_context(at("executor") as _, memory as _));
    refused("cohort_executor_copy_params_from", cohort_executor_copy_params_from(at("executor") as _, at("arrays") as _, at("arrays") as _, 1));
    refused("cohort_executor_debug_text", cohort_executor_debug_text(at("executor") as _, memory as _));
    refused("cohort_executor_forward", cohort_executor_forward(at("executor") as _, 1));
    cohort_executor_free(at("executor") as _);
    refused("cohort_executor_grad_req", cohort_executor_grad_req(at("executor") as _, 1, memory as _));
    refused("cohort_executor_memory", cohort_executor_memory(at("executor") as _, memory as _));
    refused("cohort_executor_name", cohort_executor_name(at("executor") as _, 1, 1, memory as _));
    refused("cohort_executor_num_arrays", cohort_executor_num_arrays(at("executor") as _, 1, memory as _));
    refused("cohort_executor_partial_forward", cohort_executor_partial_forward(at("executor") as _, 1, 1, memory as _));
    refused("cohort_executor_random_state", cohort_executor_random_state(at("executor") as _, memory as _, 1, memory as _));
    refused("cohort_executor_reshape", cohort_executor_reshape(at("executor") as _, at("descs") as _, null(), memory as _));
    refused("cohort_executor_set_inputs", cohort_executor_set_inputs(at("executor") as _, at("arrays") as _));
    refused("cohort_executor_set_monitor", cohort_executor_set_monitor(at("executor") as _, None, null_mut(), 1));
    refused("cohort_executor_set_random_state", cohort_executor_set_random_state(at("executor") as _, memory as _, 1));
    refused("cohort_executor_simple_bind", cohort_executor_simple_bind(at("symbol") as _, null(), at("descs") as _, null(), memory as _));
    refused("cohort_executor_symbol", cohort_executor_symbol(at("executor") as _, memory as _));
    refused("cohort_executor_wait", cohort_executor_wait(at("executor") as _));
    refused("cohort_group_array", cohort_group_array(at("group") as _, 1, 1, 1, memory as _));
    refused("cohort_group_arrays", cohort_group_arrays(at("group") as _, 1, 1, memory as _));
    refused("cohort_group_assign_params", cohort_group_assign_params(at("group") as _, at("arrays") as _, at("arrays") as _, 1, 1, memory as _));
    refused("cohort_group_axis", cohort_group_axis(at("group") as _, 1, 1, memory as _));
    refused("cohort_group_backward", cohort_group_backward(at("group") as _, [at("ndarray")].as_ptr() as _, 1));
    refused("cohort_group_batch_size", cohort_group_batch_size(at("group") as _, memory as _));
    refused("cohort_group_bind", cohort_group_bind(at("group") as _, at("descs") as _, at("descs") as _, at("group") as _, 1));
    refused("cohort_group_context", cohort_group_context(at("group") as _, 1, memory as _));
    refused("cohort_group_copy_params", cohort_group_copy_params(at("group") as _, memory as _, memory as _));
    refused("cohort_group_create", cohort_group_create(at("symbol") as _, memory as _, 1, at("descs") as _, at("descs") as _, names.as_ptr(), 1, 1, null(), memory as _));
    refused("cohort_group_decide_slices", cohort_group_decide_slices(at("group") as _, at("descs") as _, memory as _));
    refused("cohort_group_descs", cohort_group_descs(at("group") as _, 1, memory as _));
    refused("cohort_group_executor", cohort_group_executor(at("group") as _, 1, memory as _));
    refused("cohort_group_forward", cohort_group_forward(at("group") as _, [at("ndarray")].as_ptr() as _, 1, [at("ndarray")].as_ptr() as _, 1, 1));
    refused("cohort_group_forward_presliced", cohort_group_forward_presliced(at("group") as _, 1, [at("ndarray")].as_ptr() as _, 1, [at("ndarray")].as_ptr() as _, 1, 1));
    cohort_group_free(at("group") as _);
    refused("cohort_group_get_params", cohort_group_get_params(at("group") as _, at("arrays") as _, at("arrays") as _));
    refused("cohort_group_load", cohort_group_load(at("group") as _, [at("ndarray")].as_ptr() as _, 1, [at("ndarray")].as_ptr() as _, 1));
    refused("cohort_group_loss_scale", cohort_group_loss_scale(at("group") as _, memory as _, memory as _, memory as _));
    refused("cohort_group_memory", cohort_group_memory(at("group") as _, 1, memory as _));
    refused("cohort_group_merged", cohort_group_merged(at("group") as _, 1, 1, memory as _));
    refused("cohort_group_name", cohort_group_name(at("group") as _, 1, 1, memory as _));
    refused("cohort_group_num_arrays", cohort_group_num_arrays(at("group") as _, 1, memory as _));
    refused("cohort_group_num_contexts", cohort_group_num_contexts(at("group") as _, memory as _));
    refused("cohort_group_output_shapes", cohort_group_output_shapes(at("group") as _, memory as _));
    refused("cohort_group_random_state", cohort_group_random_state(at("group") as _, memory as _, 1, memory as _));
    refused("cohort_group_reshape", cohort_group_reshape(at("group") as _, at("descs") as _, at("descs") as _));
    refused("cohort_group_resume", cohort_group_resume(at("group") as _, at("optimizer") as _));
    refused("cohort_group_run", cohort_group_run(at("group") as _, 1));
    refused("cohort_group_set_loss_scale", cohort_group_set_loss_scale(at("group") as _, 1.0, 1));
    refused("cohort_group_set_monitor", cohort_group_set_monitor(at("group") as _, None, null_mut(), 1));
    refused("cohort_group_set_params", cohort_group_set_params(at("group") as _, at("arrays") as _, at("arrays") as _, 1));
    refused("cohort_group_set_random_state", cohort_group_set_random_state(at("group") as _, memory as _, 1));
    refused("cohort_group_set_states", cohort_group_set_states(at("group") as _, [at("ndarray")].as_ptr() as _, 1, 1, memory as _));
    refused("cohort_group_shared_data", cohort_group_shared_data(at("group") as _, 1, memory as _));
    refused("cohort_group_slice", cohort_group_slice(at("group") as _, 1, memory as _, memory as _));
    refused("cohort_group_sliced_shape", cohort_group_sliced_shape(at("group") as _, at("descs") as _, 1, memory as _, memory as _));
    refused("cohort_group_update", cohort_group_update(at("group") as _, at("optimizer") as _, 1));
    refused("cohort_group_update_metric", cohort_group_update_metric(at("group") as _, at("metric") as _, [at("ndarray")].as_ptr() as _, 1));
    refused("cohort_group_update_metric_presliced", cohort_group_update_metric_presliced(at("group") as _, at("metric") as _, 1, [at("ndarray")].as_ptr() as _, 1));
    refused("cohort_group_wait", cohort_group_wait(at("group") as _));
    refused("cohort_initializer_apply", cohort_initializer_apply(at("initializer") as _, at("symbol") as _, at("arrays") as _));
    refused("cohort_initializer_fill", cohort_initializer_fill(at("initializer") as _, name, at("ndarray") as _));
    cohort_initializer_free(at("initializer") as _);
    cohort_log_free(at("log") as _);
    refused("cohort_manager_array", cohort_manager_array(at("manager") as _, 1, 1, 1, memory as _));
    refused("cohort_manager_arrays", cohort_manager_arrays(at("manager") as _, 1, 1, memory as _));
    refused("cohort_manager_assign_params", cohort_manager_assign_params(at("manager") as _, at("arrays") as _, at("arrays") as _, 1, 1, memory as _));
    refused("cohort_manager_backward", cohort_manager_backward(at("manager") as _));
    refused("cohort_manager_bucket", cohort_manager_bucket(at("manager") as _, 1, memory as _, memory as _));
    refused("cohort_manager_copy_to", cohort_manager_copy_to(at("manager") as _, at("arrays") as _, at("arrays") as _));
    refused("cohort_manager_create", cohort_manager_create(at("symbol") as _, memory as _, 1, 1, at("descs") as _, at("descs") as _, names.as_ptr(), 1, null(), memory as _));
    refused("cohort_manager_current_group", cohort_manager_current_group(at("manager") as _, memory as _));
    refused("cohort_manager_forward", cohort_manager_forward(at("manager") as _, 1));
    cohort_manager_free(at("manager") as _);
    refused("cohort_manager_load_data_batch", cohort_manager_load_data_batch(at("manager") as _, [at("ndarray")].as_ptr() as _, 1, [at("ndarray")].as_ptr() as _, 1, name, at("descs") as _, at("descs") as _));
    refused("cohort_manager_loss_scale", cohort_manager_loss_scale(at("manager") as _, memory as _, memory as _, memory as _));
    refused("cohort_manager_main_group", cohort_manager_main_group(at("manager") as _, memory as _));
    refused("cohort_manager_memory", cohort_manager_memory(at("manager") as _, memory as _));
    refused("cohort_manager_merged", cohort_manager_merged(at("manager") as _, 1, 1, memory as _));
    refused("cohort_manager_name", cohort_manager_name(at("manager") as _, 1, 1, memory as _));
    refused("cohort_manager_num_arrays", cohort_manager_num_arrays(at("manager") as _, 1, memory as _));
    refused("cohort_manager_num_buckets", cohort_manager_num_buckets(at("manager") as _, memory as _));
    refused("cohort_manager_num_contexts", cohort_manager_num_contexts(at("manager") as _, memory as _));
    refused("cohort_manager_resume", cohort_manager_resume(at("manager") as _, at("optimizer") as _));
    refused("cohort_manager_set_loss_scale", cohort_manager_set_loss_scale(at("manager") as _, 1.0, 1));
    refused("cohort_manager_set_monitor", cohort_manager_set_monitor(at("manager") as _, None, null_mut(), 1));
    refused("cohort_manager_set_params", cohort_manager_set_params(at("manager") as _, at("arrays") as _, at("arrays") as _));
    refused("cohort_manager_set_states", cohort_manager_set_states(at("manager") as _, [at("ndarray")].as_ptr() as _, 1, 1, memory as _));
    refused("cohort_manager_slice", cohort_manager_slice(at("manager") as _, 1, memory as _, memory as _));
    refused("cohort_manager_update", cohort_manager_update(at("manager") as _, at("optimizer") as _, 1));
    refused("cohort_manager_update_metric", cohort_manager_update_metric(at("manager") as _, at("metric") as _, [at("ndarray")].as_ptr() as _, 1));
    refused("cohort_manager_update_metric_presliced", cohort_manager_update_metric_presliced(at("manager") as _, at("metric") as _, 1, [at("ndarray")].as_ptr() as _, 1));
    refused("cohort_metric_add", cohort_metric_add(at("metric") as _, at("metric") as _));
    refused("cohort_metric_child", cohort_metric_child(at("metric") as _, 1, memory as _));
    refused("cohort_metric_counters", cohort_metric_counters(at("metric") as _, 1, 1, memory as _, memory as _));
    cohort_metric_free(at("metric") as _);
    refused("cohort_metric_num_children", cohort_metric_num_children(at("metric") as _, memory as _));
    refused("cohort_metric_num_values", cohort_metric_num_values(at("metric") as _, memory as _));
    refused("cohort_metric_reset", cohort_metric_reset(at("metric") as _));
    refused("cohort_metric_reset_local", cohort_metric_reset_local(at("metric") as _));
    refused("cohort_metric_set_names", cohort_metric_set_names(at("metric") as _, names.as_ptr(), 1, names.as_ptr(), 1));
    refused("cohort_metric_update", cohort_metric_update(at("metric") as _, [at("ndarray")].as_ptr() as _, 1, [at("ndarray")].as_ptr() as _, 1));
    refused("cohort_metric_update_named", cohort_metric_update_named(at("metric") as _, at("arrays") as _, at("arrays") as _));
    refused("cohort_metric_value", cohort_metric_value(at("metric") as _, 1, 1, memory as _, memory as _));
    refused("cohort_monitor_entry", cohort_monitor_entry(at("monitor") as _, 1, memory as _, memory as _, memory as _));
    cohort_monitor_free(at("monitor") as _);
    refused("cohort_monitor_install_on_executor", cohort_monitor_install_on_executor(at("monitor") as _, at("executor") as _));
    refused("cohort_monitor_install_on_group", cohort_monitor_install_on_group(at("monitor") as _, at("group") as _));
    refused("cohort_monitor_install_on_manager", cohort_monitor_install_on_manager(at("monitor") as _, at("manager") as _));
    refused("cohort_monitor_step", cohort_monitor_step(at("monitor") as _, memory as _));
    refused("cohort_monitor_tic", cohort_monitor_tic(at("monitor") as _));
    refused("cohort_monitor_toc", cohort_monitor_toc(at("monitor") as _, memory as _));
    refused("cohort_monitor_values", cohort_monitor_values(at("monitor") as _, 1, memory as _));
    refused("cohort_ndarray_at", cohort_ndarray_at(at("ndarray") as _, 1, memory as _));
    refused("cohort_ndarray_bytes", cohort_ndarray_bytes(at("ndarray") as _, memory as _));
    refused("cohort_ndarray_cast", cohort_ndarray_cast(at("ndarray") as _, 1, memory as _));
    refused("cohort_ndarray_concat", cohort_ndarray_concat([at("ndarray")].as_ptr() as _, 1, 1, memory as _));
    refused("cohort_ndarray_context", cohort_ndarray_context(at("ndarray") as _, memory as _));
    refused("cohort_ndarray_copy", cohort_ndarray_copy(at("ndarray") as _, null(), memory as _));
    refused("cohort_ndarray_copy_to", cohort_ndarray_copy_to(at("ndarray") as _, at("ndarray") as _));
    refused("cohort_ndarray_data", cohort_ndarray_data(at("ndarray") as _, memory as _));
    refused("cohort_ndarray_dtype", cohort_ndarray_dtype(at("ndarray") as _, memory as _));
    refused("cohort_ndarray_fill", cohort_ndarray_fill(at("ndarray") as _, 1.0));
    refused("cohort_ndarray_fill_normal", cohort_ndarray_fill_normal(at("ndarray") as _, 1.0, 1.0, 1));
    refused("cohort_ndarray_fill_uniform", cohort_ndarray_fill_uniform(at("ndarray") as _, 1.0, 1.0, 1));
    cohort_ndarray_free(at("ndarray") as _);
    refused("cohort_ndarray_read", cohort_ndarray_read(at("ndarray") as _, memory as _, 1));
    refused("cohort_ndarray_reshape", cohort_ndarray_reshape(at("ndarray") as _, memory as _, 1, memory as _));
    refused("cohort_ndarray_reshape_prefix", cohort_ndarray_reshape_prefix(at("ndarray") as _, memory as _, 1, memory as _));
    refused("cohort_ndarray_shape", cohort_ndarray_shape(at("ndarray") as _, memory as _, 1, memory as _));
    refused("cohort_ndarray_share", cohort_ndarray_share(at("ndarray") as _, memory as _));
    refused("cohort_ndarray_size", cohort_ndarray_size(at("ndarray") as _, memory as _));
    refused("cohort_ndarray_slice", cohort_ndarray_slice(at("ndarray") as _, 1, 1, memory as _));
    refused("cohort_ndarray_slice_axis", cohort_ndarray_slice_axis(at("ndarray") as _, 1, 1, 1, memory as _));
    refused("cohort_ndarray_to_dlpack", cohort_ndarray_to_dlpack(at("ndarray") as _, memory as _));
    refused("cohort_ndarray_to_dlpack_unversioned", cohort_ndarray_to_dlpack_unversioned(at("ndarray") as _, memory as _));
    refused("cohort_ndarray_wait", cohort_ndarray_wait(at("ndarray") as _));
    refused("cohort_ndarray_write", cohort_ndarray_write(at("ndarray") as _, memory as _, 1));
    refused("cohort_operator_invoke", cohort_operator_invoke(name, names.as_ptr(), names.as_ptr(), 1, [at("ndarray")].as_ptr() as _, 1, [at("ndarray")].as_ptr() as _, 1, null(), memory as _));
    cohort_optimizer_free(at("optimizer") as _);
    refused("cohort_optimizer_get", cohort_optimizer_get(at("optimizer") as _, name, memory as _));
    refused("cohort_optimizer_load_states", cohort_optimizer_load_states(at("optimizer") as _, name));
    refused("cohort_optimizer_load_states_memory", cohort_optimizer_load_states_memory(at("optimizer") as _, memory as _, 1));
    refused("cohort_optimizer_loss_scale", cohort_optimizer_loss_scale(at("optimizer") as _, memory as _, memory as _, memory as _));
    refused("cohort_optimizer_mult", cohort_optimizer_mult(at("optimizer") as _, name, memory as _, memory as _));
    refused("cohort_optimizer_save_states", cohort_optimizer_save_states(at("optimizer") as _, name));
    refused("cohort_optimizer_save_states_memory", cohort_optimizer_save_states_memory(at("optimizer") as _, memory as _, 1, memory as _));
    refused("cohort_optimizer_set", cohort_optimizer_set(at("optimizer") as _, name, 1.0));
    refused("cohort_optimizer_set_lr_schedule", cohort_optimizer_set_lr_schedule(at("optimizer") as _, name, names.as_ptr(), names.as_ptr(), 1));
    refused("cohort_optimizer_set_mult", cohort_optimizer_set_mult(at("optimizer") as _, name, 1.0, 1.0));
    refused("cohort_optimizer_update", cohort_optimizer_update(at("optimizer") as _, name, 1, at("ndarray") as _, at("ndarray") as _));
    refused("cohort_optimizer_use_symbol", cohort_optimizer_use_symbol(at("optimizer") as _, at("symbol") as _));
    refused("cohort_symbol_attr", cohort_symbol_attr(at("symbol") as _, name, memory as _));
    refused("cohort_symbol_attr_at", cohort_symbol_attr_at(at("symbol") as _, 1, 1, memory as _, memory as _, memory as _));
    refused("cohort_symbol_children", cohort_symbol_children(at("symbol") as _, memory as _));
    refused("cohort_symbol_compose", cohort_symbol_compose(at("symbol") as _, names.as_ptr(), [at("symbol")].as_ptr() as _, 1, name, memory as _));
    refused("cohort_symbol_copy", cohort_symbol_copy(at("symbol") as _, memory as _));
    refused("cohort_symbol_create", cohort_symbol_create(name, name, names.as_ptr(), names.as_ptr(), 1, [at("symbol")].as_ptr() as _, names.as_ptr(), 1, memory as _));
    cohort_symbol_free(at("symbol") as _);
    refused("cohort_symbol_group", cohort_symbol_group([at("symbol")].as_ptr() as _, 1, memory as _));
    refused("cohort_symbol_infer_dtype", cohort_symbol_infer_dtype(at("symbol") as _, at("descs") as _, 1, memory as _, memory as _, memory as _, memory as _));
    refused("cohort_symbol_infer_shape", cohort_symbol_infer_shape(at("symbol") as _, at("descs") as _, 1, memory as _, memory as _, memory as _, memory as _));
    refused("cohort_symbol_internals", cohort_symbol_internals(at("symbol") as _, memory as _));
    refused("cohort_symbol_name", cohort_symbol_name(at("symbol") as _, memory as _));
    refused("cohort_symbol_name_at", cohort_symbol_name_at(at("symbol") as _, 1, 1, memory as _));
    refused("cohort_symbol_num_attrs", cohort_symbol_num_attrs(at("symbol") as _, 1, memory as _));
    refused("cohort_symbol_num_names", cohort_symbol_num_names(at("symbol") as _, 1, memory as _));
    refused("cohort_symbol_num_nodes", cohort_symbol_num_nodes(at("symbol") as _, memory as _));
    refused("cohort_symbol_output", cohort_symbol_output(at("symbol") as _, 1, memory as _));
    refused("cohort_symbol_output_named", cohort_symbol_output_named(at("symbol") as _, name, memory as _));
    refused("cohort_symbol_save", cohort_symbol_save(at("symbol") as _, name));
    refused("cohort_symbol_set_attrs", cohort_symbol_set_attrs(at("symbol") as _, names.as_ptr(), names.as_ptr(), 1));
    refused("cohort_symbol_to_json", cohort_symbol_to_json(at("symbol") as _, memory as _));
    refused("cohort_tape_backward", cohort_tape_backward(at("tape") as _, [at("ndarray")].as_ptr() as _, [at("ndarray")].as_ptr() as _, 1, null()));
    cohort_tape_free(at("tape") as _);
    refused("cohort_tape_function", cohort_tape_function(at("tape") as _, [at("ndarray")].as_ptr() as _, 1, [at("ndarray")].as_ptr() as _, 1, None, None, null_mut()));
    refused("cohort_tape_grad", cohort_tape_grad(at("tape") as _, [at("ndarray")].as_ptr() as _, [at("ndarray")].as_ptr() as _, 1, [at("ndarray")].as_ptr() as _, 1, null(), memory as _));
    refused("cohort_tape_invoke", cohort_tape_invoke(at("tape") as _, name, names.as_ptr(), names.as_ptr(), 1, [at("ndarray")].as_ptr() as _, 1, [at("ndarray")].as_ptr() as _, 1, null(), memory as _));
    refused("cohort_tape_is_recording", cohort_tape_is_recording(at("tape") as _, memory as _));
    refused("cohort_tape_is_training", cohort_tape_is_training(at("tape") as _, memory as _));
    refused("cohort_tape_mark", cohort_tape_mark(at("tape") as _, [at("ndarray")].as_ptr() as _, [at("ndarray")].as_ptr() as _, memory as _, 1));
    refused("cohort_tape_num_recorded", cohort_tape_num_recorded(at("tape") as _, memory as _));
    refused("cohort_tape_set_recording", cohort_tape_set_recording(at("tape") as _, 1, memory as _));
    refused("cohort_tape_set_training", cohort_tape_set_training(at("tape") as _, 1, memory as _));
    refused("cohort_tape_symbol", cohort_tape_symbol(at("tape") as _, at("ndarray") as _, memory as _));
    refused("cohort_trace_begin", cohort_trace_begin(at("trace") as _, name, name));
    refused("cohort_trace_clear", cohort_trace_clear(at("trace") as _));
    refused("cohort_trace_counter", cohort_trace_counter(at("trace") as _, name, 1.0));
    refused("cohort_trace_end", cohort_trace_end(at("trace") as _, name));
    cohort_trace_free(at("trace") as _);
    refused("cohort_trace_get_info", cohort_trace_get_info(at("trace") as _, memory as _));
    refused("cohort_trace_json", cohort_trace_json(at("trace") as _, memory as _));
    refused("cohort_trace_mark", cohort_trace_mark(at("trace") as _, name, name));
    refused("cohort_trace_num_totals", cohort_trace_num_totals(at("trace") as _, 1, memory as _));
    refused("cohort_trace_start", cohort_trace_start(at("trace") as _));
    refused("cohort_trace_stop", cohort_trace_stop(at("trace") as _));
    refused("cohort_trace_table", cohort_trace_table(at("trace") as _, 1, memory as _));
    refused("cohort_trace_total", cohort_trace_total(at("trace") as _, 1, 1, memory as _, memory as _, memory as _));
    refused("cohort_trace_write", cohort_trace_write(at("trace") as _, name));
}
