// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::c_char;

/// How an operator works if a network computes in a narrower type than that of its arrays (compute_dtype).
pub type cohort_precision = i32;
/// keeps the types of the network
pub const COHORT_PRECISION_OWN: cohort_precision = 0;
/// computes in the narrower type: products of matrices
pub const COHORT_PRECISION_NARROW: cohort_precision = 1;
/// computes in the narrower type if its input comes in it
pub const COHORT_PRECISION_FOLLOWS: cohort_precision = 2;

/// Settings of one application of an operator. Zero in any field means its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_invoke_options {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// where an operator without inputs runs; NULL: cpu(0)
    pub context: *const cohort_context,
    /// seed of random operators: the same seed gives the same numbers
    pub seed: u64,
    /// 1: training behaviour, such as Dropout's
    pub is_train: cohort_bool,
}

extern "C" {
    /// COHORT_INVOKE_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
    pub fn cohort_invoke_options_init(
        options: *mut cohort_invoke_options,
        struct_size: usize,
    );
    /// An attribute.
    ///
    /// - `out_name`: may be NULL.
    /// - `out_type`: may be NULL. As MXNet writes it: "int", "float", "boolean", "Shape(tuple)", "{'relu', 'tanh'}"...
    /// - `out_default`: may be NULL, NULL may come out. The default as text; NULL if a value is required.
    /// - `out_doc`: may be NULL.
    pub fn cohort_operator_attr(
        op: *const c_char,
        index: usize,
        out_name: *mut *const c_char,
        out_type: *mut *const c_char,
        out_default: *mut *const c_char,
        out_doc: *mut *const c_char,
    ) -> *mut cohort_error;
    /// The range of numbers that an attribute, or each entry of a tuple, may have.
    ///
    /// - `out_low`: may be NULL. The least number; -infinity if there is no bound, and for attributes that are not numbers.
    /// - `out_high`: may be NULL. The largest number; infinity likewise. A default with a meaning of its own may lie outside.
    pub fn cohort_operator_attr_range(
        op: *const c_char,
        index: usize,
        out_low: *mut f64,
        out_high: *mut f64,
    ) -> *mut cohort_error;
    /// Describes an operator.
    ///
    /// - `out_canonical`: may be NULL. Its name in JSON: op itself if op is not an alias.
    /// - `out_doc`: may be NULL. One sentence or more.
    /// - `out_num_attrs`: may be NULL. The number of its attributes.
    /// - `out_num_inputs`: may be NULL. The number of inputs declared, auxiliary states included. If it takes any number of inputs, the first stands for all of them, and further ones are inputs that it has instead with some attributes (UpSampling has `data` and `weight` if it is bilinear).
    /// - `out_num_outputs`: may be NULL. The number of its outputs with all attributes at their defaults, hidden ones included.
    /// - `out_count_attr`: may be NULL. If it takes any number of inputs, the attribute that counts them ("num_args"); else "". "__num_inputs__" if MXNet has no such attribute: it is taken, and not kept.
    pub fn cohort_operator_info(
        op: *const c_char,
        out_canonical: *mut *const c_char,
        out_doc: *mut *const c_char,
        out_num_attrs: *mut usize,
        out_num_inputs: *mut usize,
        out_num_outputs: *mut usize,
        out_count_attr: *mut *const c_char,
    ) -> *mut cohort_error;
    /// An input. Which ones a node has can depend on its attributes (no bias with `no_bias`).
    ///
    /// - `out_name`: may be NULL.
    /// - `out_doc`: may be NULL.
    /// - `out_is_aux`: may be NULL. 1 if it is an auxiliary state, which the operator updates.
    pub fn cohort_operator_input(
        op: *const c_char,
        index: usize,
        out_name: *mut *const c_char,
        out_doc: *mut *const c_char,
        out_is_aux: *mut cohort_bool,
    ) -> *mut cohort_error;
    /// Whether a gradient flows to an input, with all attributes at their defaults: 1 or 0. If the operator does not have
    /// the input then (gamma of LeakyReLU), with the first value of an enumerated or boolean attribute for which the
    /// operator has this input.
    pub fn cohort_operator_input_gradient(
        op: *const c_char,
        index: usize,
        out_has_gradient: *mut cohort_bool,
    ) -> *mut cohort_error;
    /// Applies an operator to arrays. Queued on the context of the inputs, which must all be on one (all host contexts count
    /// as one).
    ///
    /// Returns when the work is queued; work of a few microseconds on the host may be done by then. Operators that are
    /// applied on one context run in the order of the calls. Relative to work of executors, groups and copies on the same
    /// arrays, they run in the order of the calls, too. The first call with a combination of operator, attributes (as they
    /// are written), shapes and dtypes compiles a program. The programs of the latest 1,024 combinations for each context
    /// are kept, so that calls in a loop cost little. Up to 64 MiB of working memory for each context are kept as well,
    /// until the last handle is freed; the threads of such work end then, too.
    ///
    ///
    /// Ownership: the work holds references on the arrays; the caller may free its handles at once. Memory lent by
    /// cohort_ndarray_wrap() must keep its contents until an output has been waited for.
    ///
    /// Threads: any, and several at a time on different arrays, or on the same arrays if none of them is written.
    ///
    /// - `keys`: The operator's attributes as text.
    /// - `inputs`: Arguments, then auxiliary states, in the operator's order. Those that the operator updates (the states of an optimizer's operator) are written.
    /// - `outputs`: may be NULL. Arrays to write the outputs to, of the right shapes and dtypes. They may be inputs, or views that overlap inputs or each other: the result is as if all outputs were computed first, and then written one after the other. NULL with num_outputs 0: new ones.
    /// - `options`: may be NULL. NULL: all defaults.
    /// - `out_outputs`: may be NULL. The outputs in order, given or new. NULL only if outputs are given.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_NAME              no such operator or attribute
    ///   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of inputs or outputs; an attribute out of its range
    ///   COHORT_ERROR_SHAPE, _DTYPE     inputs that do not fit together, or outputs that do not fit what is inferred
    ///   COHORT_ERROR_DEVICE            arrays on several contexts
    ///   COHORT_ERROR_UNSUPPORTED       no kernel for this device and dtype
    ///   COHORT_ERROR_OUT_OF_MEMORY     no room for new outputs or working memory
    ///   COHORT_ERROR_EXECUTION         an input is known not to have been written
    /// After an error nothing was queued. If the queued work fails, COHORT_ERROR_EXECUTION is returned wherever an output,
    /// or an input that the operator writes, is read or waited for, until that array is written again; work that reads it
    /// fails, too. Other work is not affected, and cohort_wait_all() does not report the failure.
    pub fn cohort_operator_invoke(
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
    /// A name of that sorted list.
    pub fn cohort_operator_name(
        index: usize,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// How many operator names there are, aliases included.
    pub fn cohort_operator_num(
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// The name that an output has with all attributes at their defaults.
    pub fn cohort_operator_output(
        op: *const c_char,
        index: usize,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// The COHORT_PRECISION_ constant of an operator. Options of a network can override it (executor.h, float32_names).
    pub fn cohort_operator_precision(
        op: *const c_char,
        out_precision: *mut cohort_precision,
    ) -> *mut cohort_error;
}
