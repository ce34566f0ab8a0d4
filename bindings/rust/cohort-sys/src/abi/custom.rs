// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::{c_char, c_void};

/// Computes the gradients of the inputs. It always overwrites the arrays; the library then applies grad_req.
pub type cohort_custom_backward_fn = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        head_grads: *const cohort_arrays,
        inputs: *const cohort_arrays,
        aux: *const cohort_arrays,
        outputs: *const cohort_arrays,
        gradients: *const cohort_arrays,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Makes the state of one bound node, which its forward and backward passes use. Each executor and each device binds the
/// node, for training and for inference separately; each application to arrays is a node of its own.
pub type cohort_custom_create_fn = Option<
    unsafe extern "C" fn(
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        context: *const cohort_context,
        out_state: *mut *mut c_void,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Gives the names of a node's inputs, auxiliary states and outputs.
pub type cohort_custom_declare_fn = Option<
    unsafe extern "C" fn(
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        inputs: *mut cohort_descs,
        aux: *mut cohort_descs,
        outputs: *mut cohort_descs,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Runs once, when the operator is not registered any more, and no symbol or bound object has a node of it.
pub type cohort_custom_end_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
    ),
>;

/// Computes the outputs.
pub type cohort_custom_forward_fn = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        inputs: *const cohort_arrays,
        aux: *const cohort_arrays,
        outputs: *const cohort_arrays,
        is_train: cohort_bool,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Infers shapes, or dtypes. Called when that of the first input is known, once or several times for each inference. It
/// cannot return an axis of length 0, since 0 means unknown.
pub type cohort_custom_infer_fn = Option<
    unsafe extern "C" fn(
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        known: *const cohort_descs,
        inputs: *mut cohort_descs,
        aux: *mut cohort_descs,
        outputs: *mut cohort_descs,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Frees a state. Runs once for each, when its node is not bound any more.
pub type cohort_custom_release_fn = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        user_data: *mut c_void,
    ),
>;

/// A custom operator. Zero in any field but `declare` and `forward` means its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_custom_op {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// not NULL
    pub declare: cohort_custom_declare_fn,
    /// NULL: all inputs and outputs have one shape; there are no auxiliary states
    pub infer_shape: cohort_custom_infer_fn,
    /// NULL: all inputs, states and outputs have one dtype
    pub infer_dtype: cohort_custom_infer_fn,
    /// NULL: states are NULL
    pub create: cohort_custom_create_fn,
    /// not NULL
    pub forward: cohort_custom_forward_fn,
    /// NULL: nothing flows back through it
    pub backward: cohort_custom_backward_fn,
    /// NULL: states are not released
    pub release: cohort_custom_release_fn,
    /// NULL: none
    pub ended: cohort_custom_end_fn,
    /// passed to all
    pub user_data: *mut c_void,
    /// 1: a loss, whose backward pass starts with a gradient of its own
    pub ignores_head_grads: cohort_bool,
    /// 1: forward and backward may run on any thread, several at a time
    pub any_thread: cohort_bool,
}

extern "C" {
    /// COHORT_CUSTOM_OP_INIT for callers without a C compiler; struct_size is that of the caller's struct.
    pub fn cohort_custom_op_init(
        op: *mut cohort_custom_op,
        struct_size: usize,
    );
    /// Registers a custom operator, for the whole process.
    ///
    /// Threads: any.
    ///
    /// - `op_type`: Its name; not empty.
    /// - `op`: Copied.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME if the name is taken, COHORT_ERROR_INVALID_ARGUMENT for a callback that is
    ///   missing; then no callback is ever called.
    pub fn cohort_custom_register(
        op_type: *const c_char,
        op: *const cohort_custom_op,
    ) -> *mut cohort_error;
    /// Unregisters a custom operator. Nodes that exist are not affected.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME if it is not registered.
    pub fn cohort_custom_unregister(
        op_type: *const c_char,
    ) -> *mut cohort_error;
}
