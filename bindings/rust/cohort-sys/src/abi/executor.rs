// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::{c_char, c_void};

/// Lists of arrays that an executor has.
pub type cohort_executor_list = i32;
/// arguments, in the order of the symbol's list
pub const COHORT_EXECUTOR_ARGS: cohort_executor_list = 0;
/// gradients of the arguments, in the same order; no array where there is none
pub const COHORT_EXECUTOR_GRADS: cohort_executor_list = 1;
/// auxiliary states
pub const COHORT_EXECUTOR_AUX: cohort_executor_list = 2;
/// outputs, in the order of the heads
pub const COHORT_EXECUTOR_OUTPUTS: cohort_executor_list = 3;

/// Is shown an array as it is computed.
///
///
/// Runs inside cohort_executor_forward(), cohort_executor_partial_forward() and cohort_executor_backward(), and the
/// calls of a group that do the same. It may use the array, and must not use the executor or its group.
pub type cohort_monitor_fn = Option<
    unsafe extern "C" fn(
        name: *const c_char,
        array: *mut cohort_ndarray,
        user_data: *mut c_void,
    ),
>;

/// Settings of an executor that few callers change. Zero in any field means its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_executor_options {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// Contexts of the nodes whose `__ctx_group__` is one of these names. No names: the attribute is not read. num_ctx_groups of them
    pub ctx_group_names: *const *const c_char,
    /// one for each name
    pub ctx_group_contexts: *const cohort_context,
    pub num_ctx_groups: usize,
    /// executor to share memory with, kept alive; NULL: none
    pub shared_executor: *mut cohort_executor,
    /// threads of each CPU context; 0: the processors that this process may use are divided among the contexts, and each gets at most OMP_NUM_THREADS if that is set. A pass without a step of some 100 microseconds, or a total of some 1000, runs on one thread: more would wait for each other longer than they compute where others use the processors
    pub num_threads: i32,
    /// seed of random operators; each forward in training draws new numbers
    pub seed: u64,
    /// "null", "write" or "add" for every argument; NULL: see the next three
    pub grad_req: *const c_char,
    /// num_grad_reqs of them; NULL like grad_req: no gradients
    pub grad_req_list: *const *const c_char,
    /// the argument that each is for; arguments that are not named have no gradient, unknown names are ignored. NULL: one for each argument in order
    pub grad_req_names: *const *const c_char,
    pub num_grad_reqs: usize,
    /// One context for each argument or auxiliary state. Nodes without a group run where their inputs are. A context that contradicts the variable's group, or the default context where there are no groups, is a DEVICE error. NULL: by ctx_group, else the context
    pub arg_contexts: *const cohort_context,
    /// NULL: where the argument is; another context is UNSUPPORTED
    pub grad_contexts: *const cohort_context,
    /// NULL: as for arguments
    pub aux_contexts: *const cohort_context,
    /// storage types of arguments and auxiliary states by name
    pub storage_names: *const *const c_char,
    /// COHORT_STORAGE_ constants, which override `__storage_type__`; sparse: UNSUPPORTED
    pub storage_types: *const cohort_storage_type,
    pub num_storage_types: usize,
    /// arguments that use shared_executor's own arrays (and gradients)
    pub shared_arg_names: *const *const c_char,
    /// read only if shared_data is given
    pub num_shared_arg_names: usize,
    /// pool of input arrays by name; read, and newly allocated arrays are added; NULL: none
    pub shared_data: *mut cohort_arrays,
    /// 1: a dtype that cannot be inferred is an error; 0: it is float32
    pub strict_dtypes: cohort_bool,
    /// COHORT_DTYPE_FLOAT32: all work is done in the network's types. COHORT_DTYPE_BFLOAT16: matrix products on float32 arrays (convolutions, FullyConnected, dot, attention) are computed in bfloat16, with sums in float32, and operators that follow them (activations, additions, pooling, normalisations, concatenation) take and give bfloat16. Losses, statistics, norms and everything else stay in float32, and so do bodies of loops and branches: see cohort_operator_precision(), and cohort_executor_debug_text() for the nodes of a bound network. Arguments, gradients, outputs and auxiliary states keep their types: the weights are the float32 masters. A CPU without units for bfloat16 computes in float32, and a message of level info says so. COHORT_DTYPE_FLOAT16: likewise, on gpu contexts only, else UNSUPPORTED. COHORT_DTYPE_INT8: inference in 8-bit integers with a calibration (calibration.h); UNSUPPORTED with gradients, INVALID_ARGUMENT without a calibration, STATE with one that has observed nothing. Others: INVALID_ARGUMENT.
    pub compute_dtype: cohort_dtype,
    /// float32_names are nodes, or operators (which means all their nodes), that compute in the network's types whatever compute_dtype says. narrow_names are those that compute in compute_dtype although their operator does not by itself (cohort_operator_precision()). A node's name takes precedence over its operator's. An activation or norm that is fused into the layer before it computes as that layer does. num_float32_names of them; a name of neither a node nor an operator: NAME
    pub float32_names: *const *const c_char,
    pub num_float32_names: usize,
    /// num_narrow_names of them; likewise. A node that cannot: UNSUPPORTED; a name in both lists, or two names of one operator: INVALID_ARGUMENT
    pub narrow_names: *const *const c_char,
    pub num_narrow_names: usize,
    /// for COHORT_DTYPE_INT8: ranges of values, by the nodes' names
    pub calibration: *const cohort_calibration,
    /// 0: what a forward pass keeps for backward stays until the next forward pass, and backward may be repeated. 1: backward reuses that memory, so the executor takes less (planned_bytes of cohort_executor_memory()); a second backward after one forward is a STATE error.
    pub backward_once: cohort_bool,
    /// 1: on gpu contexts, products of float32 matrices (FullyConnected, dot, batch_dot, RNN, attention; convolutions where there is cuDNN) may round their factors to TF32, which has 11 significant bits, and sum in float32; GPUs with units for TF32 are several times faster then. Nodes and operators in float32_names, and bodies of loops and branches, are excepted. It has no effect on CPUs. 0: factors are float32.
    pub tf32: cohort_bool,
    /// 1: backward computes cheap intermediate results a second time, right before it needs them, instead of keeping them. That is done where their inputs are kept, or are themselves cheap to compute from what is kept: for batch norms and other operators that are not matrix products, and for every other sum in a residual network. It takes less memory (planned_bytes of cohort_executor_memory()) and somewhat more time, and gives the same bits. Bodies of loops and branches are excepted. MXNet calls it mirroring (MXNET_BACKWARD_DO_MIRROR). 0: all is kept.
    pub recompute: cohort_bool,
}

/// Settings of a reshape. Zero in any field means its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_reshape_options {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// 1: arguments that are not named, and auxiliary states, may change shape too
    pub partial_shaping: cohort_bool,
    /// 1: arguments may grow; they are then new arrays of zeros
    pub allow_up_sizing: cohort_bool,
    /// the default context; NULL: the executor's. Arrays stay where they are, also with ctx groups
    pub context: *const cohort_context,
    /// as for cohort_executor_options; none: the executor's
    pub ctx_group_names: *const *const c_char,
    pub ctx_group_contexts: *const cohort_context,
    pub num_ctx_groups: usize,
}

extern "C" {
    /// A handle on a live array. Outputs are zeros before the first forward.
    ///
    /// An output that depends on a node whose shape depends on values (`_contrib_boolean_mask`, `_npx_nonzero`,
    /// `_cvimdecode`) has no array before the first forward. Each forward gives it an array of the shape that was found,
    /// which can be another array than before.
    ///
    /// - `out_array`: NULL may come out. NULL for an argument without gradient, and for an output that has no array yet.
    pub fn cohort_executor_array(
        executor: *const cohort_executor,
        list: cohort_executor_list,
        index: usize,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// As cohort_executor_array(), by name. Unknown or ambiguous: COHORT_ERROR_NAME.
    ///
    /// - `out_array`: NULL may come out. NULL for an argument without gradient, and for an output that has no array yet.
    pub fn cohort_executor_array_named(
        executor: *const cohort_executor,
        list: cohort_executor_list,
        name: *const c_char,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// All live arrays of a list, with their names.
    pub fn cohort_executor_arrays(
        executor: *const cohort_executor,
        list: cohort_executor_list,
        out_arrays: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// Queues a backward pass from the latest forward pass; it may be repeated. A gradient that needs the value of an
    /// argument uses its value at this call. Without any gradient array the call does nothing.
    ///
    /// The gradients of a value that several nodes read are added up as they are computed, in memory that does not grow with
    /// the number of nodes. Those of 16 bits are added in float32, and the sum on a device is rounded once.
    ///
    /// - `head_grads`: may be NULL, entries may be NULL. One for each output, of its shape, on any context, of any dtype. An entry may be NULL, or missing at the end, if the output needs none: a loss, or an output that no argument with a gradient array contributes to differentiably. NULL with num_head_grads 0: none.
    /// - `is_train`: As for the forward pass before. If either is 0, the gradients are those of inference: the forward pass is run again in inference, and from then on is the latest forward pass, from which the outputs are.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_INVALID_ARGUMENT  more head gradients than outputs, or none where one is needed (the error names the
    ///                                  output)
    ///   COHORT_ERROR_SHAPE             another shape than the output's
    ///   COHORT_ERROR_STATE             no forward pass since binding; another executor of the family has run since then and
    ///                                  has overwritten what backward needs
    pub fn cohort_executor_backward(
        executor: *mut cohort_executor,
        head_grads: *const *mut cohort_ndarray,
        num_head_grads: usize,
        is_train: cohort_bool,
    ) -> *mut cohort_error;
    /// Binds a symbol to given arrays. They are referenced, not copied: the next forward reads what the caller writes there.
    ///
    /// - `context`: may be NULL. The default context. NULL: cpu(0). Without ctx groups all arrays must be on it; with them, a variable is where its array is, and nodes without a group run where their inputs are.
    /// - `args`: One for each argument, in order. The same array, or parts of it, may serve several arguments: later nodes then read what an earlier node writes there.
    /// - `grads`: may be NULL, entries may be NULL. One for each argument, NULL for an argument without gradient. NULL: no gradients at all. An array with COHORT_GRAD_WRITE shares no memory with other gradients, arguments or auxiliary states; parts of one block that do not overlap are fine. Arrays with COHORT_GRAD_ADD may be the same one, which then gets the sum.
    /// - `grad_req`: may be NULL. COHORT_GRAD_ constants, one for each argument; NULL: COHORT_GRAD_WRITE where there is an array. COHORT_GRAD_NULL with an array: it is never written.
    /// - `aux`: One for each auxiliary state, in order.
    /// - `options`: may be NULL. NULL: all defaults.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of arrays, an array missing, or a gradient to be written whose memory
    ///                                  another array uses, too (the error names both)
    ///   COHORT_ERROR_SHAPE, _DTYPE     an array does not fit (the error names node and input, or the gradient)
    ///   COHORT_ERROR_DEVICE            an array on another context (the error names both), a node's `__ctx_group__` that is
    ///                                  not among the names given, or no such device
    ///   COHORT_ERROR_UNSUPPORTED       no kernel for a node on its device with its dtypes
    pub fn cohort_executor_bind(
        symbol: *const cohort_symbol,
        context: *const cohort_context,
        args: *const *mut cohort_ndarray,
        num_args: usize,
        grads: *const *mut cohort_ndarray,
        grad_req: *const cohort_grad_req,
        aux: *const *mut cohort_ndarray,
        num_aux: usize,
        options: *const cohort_executor_options,
        out_executor: *mut *mut cohort_executor,
    ) -> *mut cohort_error;
    /// The default context.
    pub fn cohort_executor_context(
        executor: *const cohort_executor,
        out_context: *mut cohort_context,
    ) -> *mut cohort_error;
    /// Copies parameters into arguments and auxiliary states by name, converting dtypes. Queued. All are checked first: on
    /// an error nothing is copied.
    ///
    /// - `arg_params`: Named arrays; arguments not named keep their values.
    /// - `aux_params`: may be NULL. The same for auxiliary states; NULL: none.
    /// - `allow_extra`: 1: unknown names are skipped; 0: they are COHORT_ERROR_NAME.
    pub fn cohort_executor_copy_params_from(
        executor: *mut cohort_executor,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
        allow_extra: cohort_bool,
    ) -> *mut cohort_error;
    /// The plan as text for a person, valid until this is called again. It lists the nodes, then the steps of the pass that
    /// ran last: what each step computes and moves, the least time that the machine would take for it, whether flops or
    /// bytes decide that time, and the mean time it took while a trace ran (trace.h). The speed of the machine is measured
    /// when this is first called, in about a tenth of a second. A node that works in a narrower type than the network's has
    /// a line `Computes in bfloat16`. Nodes that come after one whose shape depends on values have no plan before the first
    /// forward. The last two lines are `Total X MB allocated` and `Total 11 TempSpace resource requested`, as MXNet's are; X
    /// is the planned memory in whole MiB.
    pub fn cohort_executor_debug_text(
        executor: *const cohort_executor,
        out_text: *mut *const c_char,
    ) -> *mut cohort_error;
    /// Queues a forward pass over the contents of the arguments.
    ///
    /// If shapes of nodes depend on values, the call waits for these values, and returns errors of the work that computes
    /// them. Then it binds the nodes that follow for the shapes found. The bindings for the latest shapes are kept, so a
    /// shape that was seen before costs nothing.
    ///
    /// - `is_train`: 1: training behaviour, and what backward needs is kept; 0: inference, which does neither, though a backward may follow. Inference writes nothing but outputs, unless a custom operator's `forward` writes its auxiliary states (custom.h). Training updates the auxiliary states of layers that have, or come after, an argument with a gradient; frozen layers keep theirs.
    pub fn cohort_executor_forward(
        executor: *mut cohort_executor,
        is_train: cohort_bool,
    ) -> *mut cohort_error;
    /// Frees a handle; NULL does nothing. Freeing the last one waits for queued work. Arrays that were handed out stay.
    ///
    /// - `executor`: may be NULL.
    pub fn cohort_executor_free(
        executor: *mut cohort_executor,
    );
    /// How backward treats the gradient of an argument: a COHORT_GRAD_ constant.
    pub fn cohort_executor_grad_req(
        executor: *const cohort_executor,
        index: usize,
        out_grad_req: *mut cohort_grad_req,
    ) -> *mut cohort_error;
    /// The memory that the executor takes, shared memory included. struct_size of *out_info is set by the caller.
    pub fn cohort_executor_memory(
        executor: *const cohort_executor,
        out_info: *mut cohort_memory_info,
    ) -> *mut cohort_error;
    /// The name of an array in a list; a gradient has the name of its argument.
    pub fn cohort_executor_name(
        executor: *const cohort_executor,
        list: cohort_executor_list,
        index: usize,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// The length of a list: `list` is a COHORT_EXECUTOR_ constant. COHORT_EXECUTOR_GRADS is as long as the arguments.
    pub fn cohort_executor_num_arrays(
        executor: *const cohort_executor,
        list: cohort_executor_list,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// COHORT_EXECUTOR_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
    pub fn cohort_executor_options_init(
        options: *mut cohort_executor_options,
        struct_size: usize,
    );
    /// Runs one step of a forward pass: completes node `step` of the symbol's JSON, whatever the plan fuses.
    ///
    /// Steps may be repeated or skipped; each uses the current contents of its inputs. The first step after
    /// cohort_executor_forward(), or after a backward pass with backward_once, also runs the steps before it. After all
    /// steps, outputs are as after cohort_executor_forward(), except for the rounding of operators that would have been
    /// fused, and backward may follow.
    ///
    /// If shapes of nodes depend on values: COHORT_ERROR_UNSUPPORTED.
    ///
    /// - `step`: From 0. Beyond the last node, or negative, nothing runs.
    /// - `out_step_left`: How many nodes come after this one; 0 beyond the last.
    pub fn cohort_executor_partial_forward(
        executor: *mut cohort_executor,
        is_train: cohort_bool,
        step: i32,
        out_step_left: *mut i32,
    ) -> *mut cohort_error;
    /// Reads the state of the random operators (Dropout, samplers, ...): which numbers each draws next. Waits for queued
    /// work.
    ///
    /// - `out_data`: may be NULL. NULL: only the size is wanted.
    pub fn cohort_executor_random_state(
        executor: *const cohort_executor,
        out_data: *mut c_void,
        capacity: usize,
        out_bytes: *mut usize,
    ) -> *mut cohort_error;
    /// Makes an executor of the same symbol for other shapes. It shares the memory of this one, which stays usable; both are
    /// of one family.
    ///
    /// An argument that keeps its shape is shared. One that shrinks uses the first part of its memory, and so does its
    /// gradient.
    ///
    /// - `known`: Shapes by name, from which all others are inferred; the bound shapes are not used. Unknown names are ignored.
    /// - `options`: may be NULL. NULL: all defaults.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_SHAPE   shapes that cannot be inferred or contradict; an argument that was not named changes shape; an
    ///                        argument grows without allow_up_sizing
    ///   COHORT_ERROR_DEVICE  an array is on another context than the options place it on; a group without a context
    pub fn cohort_executor_reshape(
        executor: *const cohort_executor,
        known: *const cohort_descs,
        options: *const cohort_reshape_options,
        out_executor: *mut *mut cohort_executor,
    ) -> *mut cohort_error;
    /// Copies arrays into arguments by name, converting dtypes. Queued. All are checked first: on an error nothing is
    /// copied.
    ///
    /// - `inputs`: Named arrays on any contexts.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME (no such argument), COHORT_ERROR_SHAPE.
    pub fn cohort_executor_set_inputs(
        executor: *mut cohort_executor,
        inputs: *const cohort_arrays,
    ) -> *mut cohort_error;
    /// Shows every operator's outputs to a callback, in the order of execution, under the names of the symbol as bound,
    /// whatever the plan fuses. Results do not change, except for the rounding of operators that would have been fused.
    /// Passes wait for their work while a callback is set.
    ///
    /// - `callback`: may be NULL. Replaces the previous callback; NULL: none. A reshaped executor takes it over, and calls it with the same user_data even after this executor was freed.
    /// - `user_data`: may be NULL. Passed to the callback.
    /// - `monitor_all`: 1: the inputs of each operator too, before its outputs.
    pub fn cohort_executor_set_monitor(
        executor: *mut cohort_executor,
        callback: cohort_monitor_fn,
        user_data: *mut c_void,
        monitor_all: cohort_bool,
    ) -> *mut cohort_error;
    /// Sets the state of the random operators: they draw the numbers that the executor would have drawn from which it was
    /// read. Waits for queued work. Executors that were reshaped from one another have one state.
    ///
    /// - `data`: `bytes` bytes that cohort_executor_random_state() gave. They are not kept.
    ///
    /// Returns: NULL, or, with nothing set, COHORT_ERROR_FORMAT (damaged), COHORT_ERROR_NAME (the state of another network),
    ///   COHORT_ERROR_INVALID_ARGUMENT (of several devices).
    pub fn cohort_executor_set_random_state(
        executor: *mut cohort_executor,
        data: *const c_void,
        bytes: usize,
    ) -> *mut cohort_error;
    /// Binds a symbol to new arrays of zeros.
    ///
    /// - `context`: may be NULL. The default context. NULL: cpu(0).
    /// - `known`: may be NULL. Shapes and dtypes of arguments and auxiliary states, by name; either may be left open. Length 0 is not known. They override `__shape__` and `__dtype__` of the symbol. Other names are ignored. NULL: none.
    /// - `options`: may be NULL. NULL: all defaults.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_SHAPE, _DTYPE     some cannot be inferred (the error lists the arguments), or they contradict (the
    ///                                  error names the node); a shared array does not fit
    ///   COHORT_ERROR_INVALID_ARGUMENT  grad_req: a wrong number, an empty list, or another word
    ///   COHORT_ERROR_NAME              two arguments of one name; shared_executor has no argument of a shared name
    ///   COHORT_ERROR_DEVICE            as for cohort_executor_bind()
    ///   COHORT_ERROR_UNSUPPORTED       as for cohort_executor_bind(); sparse storage (the error names the variable)
    pub fn cohort_executor_simple_bind(
        symbol: *const cohort_symbol,
        context: *const cohort_context,
        known: *const cohort_descs,
        options: *const cohort_executor_options,
        out_executor: *mut *mut cohort_executor,
    ) -> *mut cohort_error;
    /// A handle on a copy of the symbol that was bound.
    pub fn cohort_executor_symbol(
        executor: *const cohort_executor,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Waits for all queued work. COHORT_ERROR_EXECUTION if some failed; the executor stays usable.
    pub fn cohort_executor_wait(
        executor: *mut cohort_executor,
    ) -> *mut cohort_error;
    /// COHORT_RESHAPE_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
    pub fn cohort_reshape_options_init(
        options: *mut cohort_reshape_options,
        struct_size: usize,
    );
}
