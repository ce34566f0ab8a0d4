// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::{c_char, c_void};

/// Computes the gradients of a function that the host computed itself.
///
///
/// Runs inside cohort_tape_backward() and cohort_tape_grad(). It may apply operators with the same tape, which records
/// them only if the pass is recorded (create_graph), and must use the tape in no other way.
pub type cohort_tape_function_fn = Option<
    unsafe extern "C" fn(
        head_grads: *mut cohort_arrays,
        gradients: *mut cohort_arrays,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Releases what belongs to a function of the host. Runs at the end of the call that removes the function from the tape:
/// a backward pass, an application of an operator, cohort_tape_free(). It must not use the tape.
pub type cohort_tape_release_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
    ),
>;

/// Settings of a backward pass. Zero in any field means its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_backward_options {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// 1: what was recorded stays for another backward pass
    pub retain_graph: cohort_bool,
    /// 1: the pass itself is recorded, so that gradients have gradients; implies retain_graph
    pub create_graph: cohort_bool,
}

extern "C" {
    /// COHORT_BACKWARD_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
    pub fn cohort_backward_options_init(
        options: *mut cohort_backward_options,
        struct_size: usize,
    );
    /// Computes the gradients of the sum of all heads, each multiplied by its head gradient, with respect to the marked
    /// arrays that heads depend on, and writes or adds them as marked. Queued: an error of the work is returned where a
    /// gradient is read. Where gradients between operators take more than 8 MiB (256 MiB on a GPU), the call waits now and
    /// then for those queued before, whose memory is free then. Gradients of one array are added up as
    /// cohort_executor_backward() adds them up.
    ///
    /// A marked array that no head depends on keeps its gradient. A marked array that heads depend on only through operators
    /// without gradient (BlockGrad, argmax) gets zeros. With create_graph the gradient arrays are themselves recorded,
    /// whether the tape is paused or not.
    ///
    /// - `heads`: Marked arrays, or outputs of recorded operators.
    /// - `head_grads`: may be NULL, entries may be NULL. For each the head gradient, of its shape, dtype and context. NULL entries, or NULL for all: ones.
    /// - `options`: may be NULL. NULL: all defaults.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_STATE             a head is not in a recorded graph, maybe because a backward pass has been through
    ///                                  it; an array that is needed was overwritten; nothing was computed
    ///   COHORT_ERROR_SHAPE, _DTYPE, _DEVICE  a head gradient that does not fit its head; nothing was computed
    ///   COHORT_ERROR_UNSUPPORTED       an earlier pass with create_graph recorded the gradient of an operator, which has no
    ///                                  gradient itself, such as that of RNN, CTCLoss, samplers and Correlation (the error
    ///                                  names it)
    ///   COHORT_ERROR_EXECUTION         a custom function failed
    /// After the last two, gradients may have been written in part, and the graph is retained.
    pub fn cohort_tape_backward(
        tape: *mut cohort_tape,
        heads: *const *mut cohort_ndarray,
        head_grads: *const *mut cohort_ndarray,
        num_heads: usize,
        options: *const cohort_backward_options,
    ) -> *mut cohort_error;
    /// Makes a tape that records, in training mode.
    pub fn cohort_tape_create(
        out_tape: *mut *mut cohort_tape,
    ) -> *mut cohort_error;
    /// Frees a tape and what it keeps; arrays in handles stay. NULL does nothing.
    ///
    /// - `tape`: may be NULL.
    pub fn cohort_tape_free(
        tape: *mut cohort_tape,
    );
    /// Records a function that the host has computed itself, with a callback for its gradients.
    ///
    /// Does nothing but call `release` if the tape is paused or knows none of the inputs.
    ///
    /// - `inputs`: The arrays that the function was computed from.
    /// - `outputs`: The arrays that it computed; none of them is an input or marked.
    /// - `backward`: Computes the gradients.
    /// - `release`: may be NULL. Called once, when backward will not be called any more.
    /// - `user_data`: may be NULL. Passed to both.
    ///
    /// Returns: NULL, or an error of cohort_tape_invoke(); then neither callback is ever called.
    pub fn cohort_tape_function(
        tape: *mut cohort_tape,
        inputs: *const *mut cohort_ndarray,
        num_inputs: usize,
        outputs: *const *mut cohort_ndarray,
        num_outputs: usize,
        backward: cohort_tape_function_fn,
        release: cohort_tape_release_fn,
        user_data: *mut c_void,
    ) -> *mut cohort_error;
    /// As cohort_tape_backward(), but only for the given arrays, whose gradients are new arrays; gradient arrays of marks
    /// are not written.
    ///
    /// - `heads`: Marked arrays, or outputs of recorded operators.
    /// - `head_grads`: may be NULL, entries may be NULL. For each the head gradient, of its shape, dtype and context. NULL entries, or NULL for all: ones.
    /// - `variables`: Marked arrays, or outputs of recorded operators.
    /// - `options`: may be NULL. NULL: all defaults.
    /// - `out_gradients`: A gradient for each variable; zeros if no head depends on it.
    ///
    /// Returns: As cohort_tape_backward(), and COHORT_ERROR_STATE for a variable that is not in a recorded graph,
    ///   COHORT_ERROR_INVALID_ARGUMENT for one that is a part of an array that the tape knows
    pub fn cohort_tape_grad(
        tape: *mut cohort_tape,
        heads: *const *mut cohort_ndarray,
        head_grads: *const *mut cohort_ndarray,
        num_heads: usize,
        variables: *const *mut cohort_ndarray,
        num_variables: usize,
        options: *const cohort_backward_options,
        out_gradients: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// Applies an operator to arrays as cohort_operator_invoke() does, and records it.
    ///
    /// - `keys`: The operator's attributes as text.
    /// - `inputs`: Arguments, then auxiliary states, in the operator's order. Those that the operator updates (the states of an optimizer's operator) are written.
    /// - `outputs`: may be NULL. Arrays to write the outputs to, of the right shapes and dtypes. They may be inputs, or views that overlap inputs or each other: the result is as if all outputs were computed first, and then written one after the other. NULL with num_outputs 0: new ones.
    /// - `options`: may be NULL. As for cohort_operator_invoke(), except is_train, which must be 0: the mode of the tape decides. A random operator draws the same numbers from the same seed whether or not it is recorded.
    /// - `out_outputs`: may be NULL. The outputs in order, given or new. NULL only if outputs are given.
    ///
    /// Returns: NULL, or an error of cohort_operator_invoke(), or
    ///   COHORT_ERROR_INVALID_ARGUMENT  an input shares only some of its elements with an array that the tape knows; an
    ///                                  output is a marked array and the operator would be recorded
    ///   COHORT_ERROR_STATE             an input, or the array that it is a part of, was overwritten after it had been
    ///                                  recorded
    pub fn cohort_tape_invoke(
        tape: *mut cohort_tape,
        op: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        inputs: *const *mut cohort_ndarray,
        num_inputs: usize,
        outputs: *const *mut cohort_ndarray,
        num_outputs: usize,
        options: *const cohort_invoke_options,
        out_outputs: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// Whether the tape records.
    pub fn cohort_tape_is_recording(
        tape: *const cohort_tape,
        out_recording: *mut cohort_bool,
    ) -> *mut cohort_error;
    /// Whether operators are applied in training mode.
    pub fn cohort_tape_is_training(
        tape: *const cohort_tape,
        out_training: *mut cohort_bool,
    ) -> *mut cohort_error;
    /// Marks arrays that get gradients. From here on each is a variable: gradients flow to it, and not to what it was made
    /// from. Marking a marked array replaces its gradient and request; COHORT_GRAD_NULL removes the mark.
    ///
    /// - `arrays`: Arrays of floating types. An array that was made by a recorded operator becomes a variable of its own.
    /// - `gradients`: may be NULL, entries may be NULL. For each the array that takes its gradient, of its shape, dtype and context. NULL entries, or NULL for all: no such array; the mark is only for cohort_tape_grad(). Not read with COHORT_GRAD_NULL.
    /// - `grad_reqs`: may be NULL. For each a COHORT_GRAD_ constant; NULL: COHORT_GRAD_WRITE for all.
    ///
    /// Returns: NULL, or, with nothing marked,
    ///   COHORT_ERROR_SHAPE, _DTYPE, _DEVICE  a gradient that does not fit its array, or an array of integers
    ///   COHORT_ERROR_INVALID_ARGUMENT        an array that is a part of one that the tape knows, or of another of these
    pub fn cohort_tape_mark(
        tape: *mut cohort_tape,
        arrays: *const *mut cohort_ndarray,
        gradients: *const *mut cohort_ndarray,
        grad_reqs: *const cohort_grad_req,
        num_arrays: usize,
    ) -> *mut cohort_error;
    /// How much the tape has recorded: operators and functions that a gradient could still flow through, marked arrays not
    /// counted.
    pub fn cohort_tape_num_recorded(
        tape: *mut cohort_tape,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// Pauses or resumes recording: while it is paused, operators are applied without being recorded.
    ///
    /// - `recording`: 0 or 1.
    /// - `out_previous`: may be NULL. What it was before.
    pub fn cohort_tape_set_recording(
        tape: *mut cohort_tape,
        recording: cohort_bool,
        out_previous: *mut cohort_bool,
    ) -> *mut cohort_error;
    /// Sets the mode in which operators are applied from now on, recorded or not.
    ///
    /// The gradient of an operator is that of the mode in which it was applied, whatever the mode is when backward runs: a
    /// backward pass has no mode of its own, unlike MXNet's with its train_mode.
    ///
    /// In training, the moving statistics of a layer (BatchNorm, IdentityAttachKLSparseReg) move only if the layer is
    /// recorded and a gradient flows back from it to a marked array; those of a frozen layer stay.
    ///
    /// - `training`: 1: training, which Dropout and BatchNorm treat differently; 0: prediction.
    /// - `out_previous`: may be NULL. What it was before.
    pub fn cohort_tape_set_training(
        tape: *mut cohort_tape,
        training: cohort_bool,
        out_previous: *mut cohort_bool,
    ) -> *mut cohort_error;
    /// Makes a symbol that computes an array as it was computed. It has a variable "var0", "var1", ... for each marked array
    /// and each constant, in the order in which they were first used.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_STATE        the array is not in a recorded graph
    ///   COHORT_ERROR_UNSUPPORTED  it was made by a function of the host, or by a gradient that is not an operator
    pub fn cohort_tape_symbol(
        tape: *mut cohort_tape,
        array: *mut cohort_ndarray,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
}
