// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use super::*;
use std::os::raw::{c_char, c_void};

/// Lists of arrays that a group has, each entry once per device.
pub type cohort_group_list = i32;
/// data, in the order of the descriptors
pub const COHORT_GROUP_DATA: cohort_group_list = 0;
/// labels, in the order of the descriptors; none if bound without
pub const COHORT_GROUP_LABELS: cohort_group_list = 1;
/// arguments named as parameters, in the order of the symbol's arguments
pub const COHORT_GROUP_PARAMS: cohort_group_list = 2;
/// their gradients, in the same order; no entries unless bound for training
pub const COHORT_GROUP_GRADS: cohort_group_list = 3;
/// auxiliary states, in the order of the symbol's list
pub const COHORT_GROUP_AUX: cohort_group_list = 4;
/// states, in the order given
pub const COHORT_GROUP_STATES: cohort_group_list = 5;
/// outputs, in the order of the heads
pub const COHORT_GROUP_OUTPUTS: cohort_group_list = 6;
/// gradients of the data; no entries unless inputs_need_grad and for_training
pub const COHORT_GROUP_INPUT_GRADS: cohort_group_list = 7;
/// all arguments, in the order of the symbol's list
pub const COHORT_GROUP_ARGS: cohort_group_list = 8;

/// How a share of the batch becomes a whole number of samples.
pub type cohort_rounding = i32;
/// to the nearest, halves up; the last device gets the rest
pub const COHORT_ROUNDING_HALF_UP: cohort_rounding = 0;
/// the same with halves to the even number
pub const COHORT_ROUNDING_HALF_EVEN: cohort_rounding = 1;
/// largest remainder, at least one sample per device: works whenever possible
pub const COHORT_ROUNDING_BALANCED: cohort_rounding = 2;

/// How cohort_group_update() puts the devices' gradients together.
pub type cohort_update_mode = i32;
/// one update from the sum over the devices, copied to all; gradients do not change
pub const COHORT_UPDATE_ON_STORE: cohort_update_mode = 0;
/// the sum replaces each device's gradient, and each device updates its own
pub const COHORT_UPDATE_PER_DEVICE: cohort_update_mode = 1;
/// each device updates from its own gradient; devices may differ then
pub const COHORT_UPDATE_NO_STORE: cohort_update_mode = 2;

/// Settings of a group that few callers change. Zero in any field means its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_group_options {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// num_workloads relative shares, each \> 0
    pub workload: *const f64,
    /// the number of contexts; 0: equal shares
    pub num_workloads: usize,
    /// COHORT_ROUNDING_ constant
    pub rounding: cohort_rounding,
    /// num_slices pairs begin, end, ascending from 0 without gaps to the batch size
    pub slices: *const i64,
    /// the number of contexts; 0: by workload
    pub num_slices: usize,
    /// 1: gradients of the data too
    pub inputs_need_grad: cohort_bool,
    /// parameters without gradient; for unknown names see strict_names
    pub fixed_param_names: *const *const c_char,
    pub num_fixed_param_names: usize,
    /// "null", "write" or "add" for all parameters; NULL: see the next three
    pub grad_req: *const c_char,
    /// num_grad_reqs of them; NULL like grad_req: "write"
    pub grad_req_list: *const *const c_char,
    /// the argument that each is for; arguments that are not named have "write". NULL: one for each argument in order, which inputs_need_grad and fixed_param_names do not change
    pub grad_req_names: *const *const c_char,
    pub num_grad_reqs: usize,
    /// arguments that are states
    pub state_names: *const *const c_char,
    pub num_state_names: usize,
    /// dtypes of data and labels by name; override symbol and descriptor
    pub input_dtype_names: *const *const c_char,
    /// COHORT_DTYPE_ constants
    pub input_dtypes: *const cohort_dtype,
    pub num_input_dtypes: usize,
    /// group of another bucket to share memory with, kept alive; NULL: none
    pub shared_group: *mut cohort_group,
    /// Contexts of the nodes whose `__ctx_group__` is one of these names. No names: the attribute is not read.
    pub ctx_group_names: *const *const c_char,
    /// for each name contexts_per_ctx_group of them; device_type 0: on this device the name is not mapped, and its nodes run on the device's own context
    pub ctx_group_contexts: *const cohort_context,
    pub num_ctx_groups: usize,
    /// 1: the same on all devices; else the number of contexts; 0: 1
    pub contexts_per_ctx_group: usize,
    /// threads of each CPU context; 0: as in executor.h
    pub num_threads: i32,
    /// gradients summed in one exchange, in bytes; 0: chosen from the model
    pub gradient_bucket_bytes: usize,
    /// seed of random operators; each device draws its own numbers
    pub seed: u64,
    /// takes this group's messages; NULL: they go where the library's do
    pub log: cohort_log_fn,
    /// passed to log
    pub log_user_data: *mut c_void,
    /// the arguments that the caller expects the symbol to have, in order; others are an error
    pub arg_names: *const *const c_char,
    /// 0: not checked
    pub num_arg_names: usize,
    /// as in executor.h; gradient_sum_dtype is for sums of gradients
    pub compute_dtype: cohort_dtype,
    /// num_float32_names nodes and operators, as in executor.h
    pub float32_names: *const *const c_char,
    pub num_float32_names: usize,
    /// num_narrow_names of them, likewise
    pub narrow_names: *const *const c_char,
    pub num_narrow_names: usize,
    /// A factor on the loss, from 2^-24 to 2^24; 0: none. Gradients are larger by this factor, also those that the group shows, and an update divides by it. If a gradient is infinite or NaN on any device, the update is skipped on all, with a message of level info, and the factor halves; it doubles after loss_scale_window updates that were not skipped. The sums of the devices' gradients must be finite, too. Each update then waits for the gradients, and divides by the factor of their backward pass. 65536 suits float16; bfloat16 needs none. Networks with IdentityAttachKLSparseReg, or with losses inside the graphs of _foreach, _while_loop, _cond or _CachedOp, cannot have one: their gradients begin within an operator (COHORT_ERROR_UNSUPPORTED).
    pub loss_scale: f64,
    /// 1 or more; 0: 2000
    pub loss_scale_window: i32,
    /// as in executor.h
    pub calibration: *const cohort_calibration,
    /// as in executor.h
    pub backward_once: cohort_bool,
    /// For inference (for_training 0): parameters and auxiliary states by name. The group uses these arrays themselves, not copies, on all its contexts: it sees what is written to them, and cohort_group_set_params() writes to them. Arrays of another type, or that a context cannot use where they are, are copied. Parameters that are not named (NULL: all) are new arrays of zeros; other names are ignored. With shared_group, the arrays of that group are used instead.
    pub arg_params: *const cohort_arrays,
    pub aux_params: *const cohort_arrays,
    /// The type in which float32 gradients are summed over the devices: COHORT_DTYPE_FLOAT32, or COHORT_DTYPE_BFLOAT16, which moves half as many bytes between GPUs, and is slower on CPUs, which share their memory. With bfloat16 each device's gradients are rounded to the nearest numbers of 8 significant bits, and so is their sum; GPUs that sum among themselves may round partial sums, too. Without such partial sums the error is at most 1/127 of the sum of the gradients' absolute values. The same run still gives the same bits. Updates read float32, and the gradients that the group shows are float32. For one device or COHORT_UPDATE_NO_STORE nothing is summed or rounded.
    pub gradient_sum_dtype: cohort_dtype,
    /// as in executor.h
    pub tf32: cohort_bool,
    /// likewise
    pub recompute: cohort_bool,
    /// 1: cohort_optimizer_save_states() saves each device's own auxiliary states, such as the moving statistics of BatchNorm, with the states of the optimizer that updates this group, and cohort_group_resume() sets them. 0: of several devices only their mean is kept, which cohort_group_get_params() gives.
    pub keep_device_aux: cohort_bool,
    /// 1: a name in param_names, fixed_param_names, grad_req_names or input_dtype_names that would be ignored is COHORT_ERROR_NAME, and the error gives the nearest names. 0: a message of level warning says so, unless there is a shared_group, as buckets may have other parameters.
    pub strict_names: cohort_bool,
    /// 1: a pass fails with COHORT_ERROR_EXECUTION at the first output of an operator, or gradient of its inputs, that has an infinity or a NaN; the error names it, and the rest of that device's pass does not run. For finding the layer where numbers leave their range: nothing is fused, and passes wait for their work.
    pub stop_if_not_finite: cohort_bool,
}

extern "C" {
    /// A handle on the live array of one device.
    ///
    /// - `out_array`: NULL may come out. NULL for a parameter without gradient. Outputs and gradients are zeros before the first pass (except outputs of a group that shares the memory of one that has run). Outputs are valid until the next forward pass of the group or one that shares its memory. For outputs whose shape depends on values see cohort_executor_array().
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE: COHORT_GROUP_INPUT_GRADS of a group bound without them.
    pub fn cohort_group_array(
        group: *const cohort_group,
        list: cohort_group_list,
        index: usize,
        device: usize,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// As cohort_group_array(), for a whole list on one device, names included.
    pub fn cohort_group_arrays(
        group: *const cohort_group,
        list: cohort_group_list,
        device: usize,
        out_arrays: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// As cohort_group_set_params(), but it reports parameters and auxiliary states that are not given.
    ///
    /// - `arg_params`: Named arrays on any contexts, for any arguments; arguments that are not named keep their values.
    /// - `aux_params`: may be NULL. The same for auxiliary states; NULL: none.
    /// - `allow_missing`: 1: parameters and auxiliary states that are not given keep their values; 0: they are COHORT_ERROR_NAME (the error lists them), and nothing is copied.
    /// - `allow_extra`: 1: unknown names are skipped; 0: they are COHORT_ERROR_NAME.
    /// - `out_missing`: may be NULL. Those that were not given: names, shapes and dtypes in the order of the symbol's lists.
    pub fn cohort_group_assign_params(
        group: *mut cohort_group,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
        allow_missing: cohort_bool,
        allow_extra: cohort_bool,
        out_missing: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// The batch axis of an entry of COHORT_GROUP_DATA, _LABELS, _OUTPUTS or _INPUT_GRADS; -1 if not batched. For an output
    /// the `__layout__` attribute of its node decides; without one it is 0.
    pub fn cohort_group_axis(
        group: *const cohort_group,
        list: cohort_group_list,
        index: usize,
        out_axis: *mut i32,
    ) -> *mut cohort_error;
    /// Queues a backward pass from the latest forward pass, on every device; gradients are those of each device's slice. The
    /// sums over the devices that cohort_group_update() needs start while it runs.
    ///
    /// - `head_grads`: may be NULL, entries may be NULL. One for each output, of the merged output's shape; each device gets its slice, or the whole array if the output has no batch axis. An entry may be NULL, or missing at the end, if the output needs none: a loss, or an output that no argument with a gradient array contributes to differentiably. NULL with num_head_grads 0: none.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_STATE             not bound for training; no forward pass since binding, or the latest one failed; a
    ///                                  group that shares its memory has run since then
    ///   COHORT_ERROR_INVALID_ARGUMENT  more head gradients than outputs, or none where one is needed (the error names the
    ///                                  output)
    ///   COHORT_ERROR_SHAPE             another shape than the merged output's
    pub fn cohort_group_backward(
        group: *mut cohort_group,
        head_grads: *const *mut cohort_ndarray,
        num_head_grads: usize,
    ) -> *mut cohort_error;
    /// The batch size; 0 if no descriptor has a batch axis.
    pub fn cohort_group_batch_size(
        group: *const cohort_group,
        out_batch_size: *mut i64,
    ) -> *mut cohort_error;
    /// Binds a bound group from scratch: to new arrays of zeros. Only the group's settings are kept, with the arrays of
    /// arg_params and aux_params among them, which keep their values.
    ///
    /// - `data`: As for cohort_group_create(). Descriptors of the data of the whole batch, at least one. Each name is an argument.
    /// - `label`: may be NULL. As for cohort_group_create(). The same for labels; NULL or empty: none. Label arguments are then like any other.
    /// - `shared_group`: may be NULL. As in cohort_group_options; NULL: none.
    /// - `rebind`: 1: bind again; 0: refuse (COHORT_ERROR_STATE), for callers that expect a group which is not bound yet.
    ///
    /// Returns: NULL, or, with the group as before, what cohort_group_create() returns, or
    ///   COHORT_ERROR_STATE  rebind is 0; the group is a manager's, which alone binds its groups
    pub fn cohort_group_bind(
        group: *mut cohort_group,
        data: *const cohort_descs,
        label: *const cohort_descs,
        shared_group: *mut cohort_group,
        rebind: cohort_bool,
    ) -> *mut cohort_error;
    /// The context of a device.
    pub fn cohort_group_context(
        group: *const cohort_group,
        device: usize,
        out_context: *mut cohort_context,
    ) -> *mut cohort_error;
    /// As cohort_group_get_params(), into new arrays on cpu(0), in the order of the symbol's lists.
    pub fn cohort_group_copy_params(
        group: *const cohort_group,
        out_arg_params: *mut *mut cohort_arrays,
        out_aux_params: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// Makes a group and binds it: one executor for each context, all arrays zeros.
    ///
    /// - `contexts`: num_contexts of them, at least 1. The same one twice gives two executors.
    /// - `data`: Descriptors of the data of the whole batch, at least one. Each name is an argument.
    /// - `label`: may be NULL. The same for labels; NULL or empty: none. Label arguments are then like any other.
    /// - `param_names`: may be NULL. The parameters. Names that are not arguments: see strict_names. NULL with num_param_names 0: all arguments except data, labels (also those of losses that have no descriptor) and states.
    /// - `for_training`: 0: no gradients at all, whatever the options say; 1: as they say.
    /// - `options`: may be NULL. NULL: all defaults.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_INVALID_ARGUMENT  no context or no data; a slice would be empty; a count or word in the options
    ///   COHORT_ERROR_NAME              a descriptor's or state's name is no argument or comes twice; two arguments or two
    ///                                  auxiliary states have one name; shared_group lacks a parameter; with strict_names a
    ///                                  name that would be ignored
    ///   COHORT_ERROR_SHAPE             descriptors with other batch sizes; shapes that contradict (the error names the
    ///                                  node) or cannot be inferred (it lists the arguments); other shapes than
    ///                                  shared_group's
    ///   COHORT_ERROR_DTYPE             the same for dtypes
    ///   COHORT_ERROR_DEVICE            no such device; a `__ctx_group__` that is not among the names given
    ///   COHORT_ERROR_UNSUPPORTED       no kernel for a node on its device with its dtypes
    pub fn cohort_group_create(
        symbol: *const cohort_symbol,
        contexts: *const cohort_context,
        num_contexts: usize,
        data: *const cohort_descs,
        label: *const cohort_descs,
        param_names: *const *const c_char,
        num_param_names: usize,
        for_training: cohort_bool,
        options: *const cohort_group_options,
        out_group: *mut *mut cohort_group,
    ) -> *mut cohort_error;
    /// The batch axis of each descriptor, checked against the group's batch size.
    ///
    /// - `descs`: At least one.
    /// - `out_axes`: One for each descriptor: the axis, -1 if it is not batched.
    ///
    /// Returns: NULL, or COHORT_ERROR_SHAPE (the error names the descriptor, its shape and the batch size).
    pub fn cohort_group_decide_slices(
        group: *const cohort_group,
        descs: *const cohort_descs,
        out_axes: *mut i32,
    ) -> *mut cohort_error;
    /// The bound descriptors: `list` is COHORT_GROUP_DATA or COHORT_GROUP_LABELS.
    pub fn cohort_group_descs(
        group: *const cohort_group,
        list: cohort_group_list,
        out_descs: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// A handle on the current executor of a device; reshaping the group makes new ones. If layers exchange statistics with
    /// the other devices (_contrib_SyncBatchNorm), the executor cannot train alone: COHORT_ERROR_STATE.
    pub fn cohort_group_executor(
        group: *const cohort_group,
        device: usize,
        out_executor: *mut *mut cohort_executor,
    ) -> *mut cohort_error;
    /// Loads a batch and runs the forward pass: cohort_group_load(), then cohort_group_run().
    ///
    /// Returns: NULL, or what these return; COHORT_ERROR_INVALID_ARGUMENT also if the group has labels, is_train is 1 and
    ///   label is NULL. Nothing was queued then.
    pub fn cohort_group_forward(
        group: *mut cohort_group,
        data: *const *mut cohort_ndarray,
        num_data: usize,
        label: *const *mut cohort_ndarray,
        num_label: usize,
        is_train: i32,
    ) -> *mut cohort_error;
    /// As cohort_group_forward(), with a batch that is split already.
    ///
    /// - `num_slices`: The number of contexts.
    /// - `data`: num_slices * num_data arrays: all of device 0 in the order of the descriptors, then all of device 1. Each has its device's shape.
    /// - `label`: may be NULL. num_slices * num_label arrays likewise; NULL with num_label 0.
    pub fn cohort_group_forward_presliced(
        group: *mut cohort_group,
        num_slices: usize,
        data: *const *mut cohort_ndarray,
        num_data: usize,
        label: *const *mut cohort_ndarray,
        num_label: usize,
        is_train: i32,
    ) -> *mut cohort_error;
    /// Frees a handle; NULL does nothing. Freeing the last one waits for queued work. Arrays that were handed out stay.
    ///
    /// - `group`: may be NULL.
    pub fn cohort_group_free(
        group: *mut cohort_group,
    );
    /// Writes the mean over the devices of each parameter and auxiliary state into given arrays, converting dtypes. Elements
    /// that are equal on all devices stay as they are, bit for bit; others are summed in float64. Queued; with several
    /// devices it waits for the work that computes them.
    ///
    /// - `arg_params`: Named arrays on any contexts, at least one for each parameter; others are not touched.
    /// - `aux_params`: may be NULL. The same for auxiliary states; NULL only if there are none.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME (a parameter has no target), COHORT_ERROR_SHAPE (a target has another shape; the
    ///   shape of a parameter follows the batch, and the devices' slices differ in length); nothing is written then.
    pub fn cohort_group_get_params(
        group: *const cohort_group,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
    ) -> *mut cohort_error;
    /// Splits one batch over the devices and copies each slice to its device. Queued; runs nothing.
    ///
    ///
    /// Ownership: the group takes its own references; the caller may free its handles at once. Memory lent by
    /// cohort_ndarray_wrap() must keep its contents until the group has been waited for.
    ///
    /// - `data`: num_data arrays in the order of the data descriptors, each of the descriptor's full shape, batch axis included, of any dtype, on any context.
    /// - `num_data`: The number of data descriptors.
    /// - `label`: may be NULL. As data, for the label descriptors; NULL with num_label 0: labels stay as they are. A group bound without labels ignores them.
    /// - `num_label`: The number of label descriptors, or 0.
    ///
    /// Returns: NULL, or, with nothing loaded,
    ///   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of arrays
    ///   COHORT_ERROR_SHAPE             an array of another shape (the error names it, expected and found)
    pub fn cohort_group_load(
        group: *mut cohort_group,
        data: *const *mut cohort_ndarray,
        num_data: usize,
        label: *const *mut cohort_ndarray,
        num_label: usize,
    ) -> *mut cohort_error;
    /// The current loss scale of a group (loss_scale of its options), and its counts. It is saved with the states of the
    /// optimizer (cohort_optimizer_loss_scale()).
    ///
    /// - `out_scale`: may be NULL. The factor of the next backward pass; 1 if there is none.
    /// - `out_num_good`: may be NULL. Updates made since it changed.
    /// - `out_num_skipped`: may be NULL. Updates skipped since the group was made, or since the group was whose parameters it shares.
    pub fn cohort_group_loss_scale(
        group: *const cohort_group,
        out_scale: *mut f64,
        out_num_good: *mut i32,
        out_num_skipped: *mut u64,
    ) -> *mut cohort_error;
    /// The memory that one device takes, shared memory included. struct_size of *out_info is set by the caller.
    pub fn cohort_group_memory(
        group: *const cohort_group,
        device: usize,
        out_info: *mut cohort_memory_info,
    ) -> *mut cohort_error;
    /// One array for all devices, on the context of device 0: the devices' arrays joined along the batch axis in order.
    /// Without a batch axis an output is that of device 0, and a gradient is the sum. Outputs whose shapes depend on values
    /// are joined with the shape that each device has found.
    ///
    /// - `list`: COHORT_GROUP_OUTPUTS or COHORT_GROUP_INPUT_GRADS. COHORT_GROUP_STATES: COHORT_ERROR_UNSUPPORTED.
    /// - `out_array`: Read-only, and valid until the next forward pass; it may be a live array.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_STATE          input gradients of a group bound without them
    ///   COHORT_ERROR_SHAPE, _DTYPE  the devices' arrays do not fit together
    pub fn cohort_group_merged(
        group: *const cohort_group,
        list: cohort_group_list,
        index: usize,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// The name of an entry; a gradient has the name of its argument. Valid until the group is bound again, reshaped or
    /// freed.
    pub fn cohort_group_name(
        group: *const cohort_group,
        list: cohort_group_list,
        index: usize,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// How many entries a list has: `list` is a COHORT_GROUP_ constant.
    pub fn cohort_group_num_arrays(
        group: *const cohort_group,
        list: cohort_group_list,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// The number of contexts.
    pub fn cohort_group_num_contexts(
        group: *const cohort_group,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// COHORT_GROUP_OPTIONS_INIT for callers without a C compiler; struct_size is that of the caller's struct.
    pub fn cohort_group_options_init(
        options: *mut cohort_group_options,
        struct_size: usize,
    );
    /// Names, shapes and dtypes of the merged outputs, which are known before any forward pass. COHORT_ERROR_STATE if an
    /// output depends on a node whose shape depends on values: only the forward pass of each device finds its shape.
    pub fn cohort_group_output_shapes(
        group: *const cohort_group,
        out_descs: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// Reads the state of the random operators of all devices, as cohort_executor_random_state().
    ///
    /// - `out_data`: may be NULL. NULL: only the size is wanted.
    pub fn cohort_group_random_state(
        group: *const cohort_group,
        out_data: *mut c_void,
        capacity: usize,
        out_bytes: *mut usize,
    ) -> *mut cohort_error;
    /// Changes the shapes of the batch. Parameters, their gradients and auxiliary states keep their memory and values;
    /// contents of data and labels are unspecified. Other gradients that outgrow their first shape start from zero. Nothing
    /// happens if names, shapes, dtypes and layouts are the bound ones. Otherwise cohort_group_backward() and
    /// cohort_group_update() are COHORT_ERROR_STATE until the passes before them have run again. The bindings for the latest
    /// 16 different batches are kept: going back to one of them is cheap.
    ///
    /// - `data`: All descriptors, as for cohort_group_create(). Descriptors of the data of the whole batch, at least one. Each name is an argument.
    /// - `label`: may be NULL. Likewise; NULL or empty drops the labels.
    ///
    /// Returns: NULL, or, with the group as before, what cohort_group_create() returns, or
    ///   COHORT_ERROR_SHAPE  a parameter would change shape
    ///   COHORT_ERROR_DTYPE  a descriptor changes dtype
    ///   COHORT_ERROR_STATE  the group is a manager's
    pub fn cohort_group_reshape(
        group: *mut cohort_group,
        data: *const cohort_descs,
        label: *const cohort_descs,
    ) -> *mut cohort_error;
    /// Sets what training goes on from beside parameters and the optimizer's states, as it was when the states were saved
    /// that the optimizer has loaded: the state of random operators, the loss scale and, with keep_device_aux, the auxiliary
    /// states of each device. Called before the first forward pass, after cohort_optimizer_load_states() and
    /// cohort_group_set_params(): the group then trains on, to the bit, as the saved one would have on as many devices, with
    /// the same batches; with COHORT_UPDATE_NO_STORE on one device only, as the parameters of several differ.
    ///
    /// - `optimizer`: Does nothing if it has loaded no states, or has updated a group since.
    ///
    /// Returns: NULL, or, with nothing set,
    ///   COHORT_ERROR_NAME              the states were saved with another network
    ///   COHORT_ERROR_SHAPE             an auxiliary state has another shape
    ///   COHORT_ERROR_INVALID_ARGUMENT  there are auxiliary states of another number of devices
    pub fn cohort_group_resume(
        group: *mut cohort_group,
        optimizer: *mut cohort_optimizer,
    ) -> *mut cohort_error;
    /// Queues a forward pass over the loaded batch, on every device. Loading once and running twice is fine.
    ///
    /// - `is_train`: 1: training behaviour, and what cohort_group_backward() needs is kept; 0: inference, after which a backward pass gives the gradients of inference; -1: as the group was bound.
    pub fn cohort_group_run(
        group: *mut cohort_group,
        is_train: i32,
    ) -> *mut cohort_error;
    /// Sets the loss scale, and the number of updates made with it. Queued backward passes keep the factor that they were
    /// queued with. With COHORT_GRAD_ADD, gradients that are there already are rescaled by the next backward pass.
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE if the group has no loss scale, COHORT_ERROR_INVALID_ARGUMENT for a number out of
    ///   range.
    pub fn cohort_group_set_loss_scale(
        group: *mut cohort_group,
        scale: f64,
        num_good: i32,
    ) -> *mut cohort_error;
    /// As cohort_executor_set_monitor(), on every device; device 0's calls come first. Reshaping keeps it.
    ///
    /// - `callback`: may be NULL. Replaces the previous callback; NULL: none. A reshaped executor takes it over, and calls it with the same user_data even after this executor was freed.
    /// - `user_data`: may be NULL. Passed to the callback.
    /// - `monitor_all`: 1: the inputs of each operator too, before its outputs.
    pub fn cohort_group_set_monitor(
        group: *mut cohort_group,
        callback: cohort_monitor_fn,
        user_data: *mut c_void,
        monitor_all: cohort_bool,
    ) -> *mut cohort_error;
    /// Copies parameters to every device by name, converting dtypes. All are checked first: on an error nothing is copied.
    ///
    /// - `arg_params`: Named arrays on any contexts, for any arguments; arguments that are not named keep their values.
    /// - `aux_params`: may be NULL. The same for auxiliary states; NULL: none.
    /// - `allow_extra`: 1: unknown names are skipped; 0: they are COHORT_ERROR_NAME.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME, COHORT_ERROR_SHAPE (the error names the array).
    pub fn cohort_group_set_params(
        group: *mut cohort_group,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
        allow_extra: cohort_bool,
    ) -> *mut cohort_error;
    /// Sets the state of the random operators of all devices, as cohort_executor_set_random_state(). If the state is of
    /// fewer devices, the others draw numbers of their own that they have not drawn before; if it is of more, the rest is
    /// ignored.
    ///
    /// - `data`: `bytes` bytes that cohort_group_random_state() or cohort_executor_random_state() gave. They are not kept.
    ///
    /// Returns: NULL, or, with nothing set, COHORT_ERROR_FORMAT (damaged), COHORT_ERROR_NAME (the state of another network),
    ///   COHORT_ERROR_INVALID_ARGUMENT (of no device).
    pub fn cohort_group_set_random_state(
        group: *mut cohort_group,
        data: *const c_void,
        bytes: usize,
    ) -> *mut cohort_error;
    /// Sets the states of every device, converting dtypes. Queued. They stay until they are set again. Exactly one of
    /// `states` and `value` is given:
    ///
    /// - `states`: may be NULL. num_states * num_devices arrays: state 0 of every device, then state 1. NULL: by value.
    /// - `num_states`: The number of states.
    /// - `num_devices`: The number of contexts.
    /// - `value`: may be NULL. Fills all states. NULL: by states.
    ///
    /// Returns: NULL, or COHORT_ERROR_INVALID_ARGUMENT (both, neither, a wrong number), COHORT_ERROR_SHAPE; nothing is set
    ///   then.
    pub fn cohort_group_set_states(
        group: *mut cohort_group,
        states: *const *mut cohort_ndarray,
        num_states: usize,
        num_devices: usize,
        value: *const f64,
    ) -> *mut cohort_error;
    /// The pool of input arrays of a device, which all groups that share memory use: live arrays by name.
    pub fn cohort_group_shared_data(
        group: *const cohort_group,
        device: usize,
        out_arrays: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// The slice of a device: \[*out_begin, *out_end). COHORT_ERROR_STATE if no descriptor has a batch axis.
    pub fn cohort_group_slice(
        group: *const cohort_group,
        device: usize,
        out_begin: *mut i64,
        out_end: *mut i64,
    ) -> *mut cohort_error;
    /// Descriptors as one device has them: the length of the batch axis is that of its slice.
    ///
    /// - `axes`: may be NULL. The batch axis of each, -1 if not batched; NULL: by layout.
    pub fn cohort_group_sliced_shape(
        group: *const cohort_group,
        descs: *const cohort_descs,
        device: usize,
        axes: *const i32,
        out_descs: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// Updates every parameter that has a gradient, if any has. Queued.
    ///
    /// - `optimizer`: Holds the states, by parameter name (and device, where each has its own). Used by one group at a time, or by groups that share parameters. A device for which it has no states yet, or those of another number of updates, takes the states of device 0, as after a change to more devices, or from COHORT_UPDATE_ON_STORE.
    /// - `mode`: COHORT_UPDATE_ constant.
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE if the group is not bound for training, has run no backward pass since it was
    ///   bound or reshaped, or its latest one failed; COHORT_ERROR_SHAPE if gradients are to be summed, the shape of a
    ///   parameter follows the batch, and the devices' slices differ in length.
    pub fn cohort_group_update(
        group: *mut cohort_group,
        optimizer: *mut cohort_optimizer,
        mode: cohort_update_mode,
    ) -> *mut cohort_error;
    /// Updates a metric once for each device, in order, with that device's labels and outputs. Waits for the outputs.
    ///
    /// A metric with label_names or output_names uses those, else all in order.
    ///
    /// - `labels`: Whole labels in the order of the descriptors, sliced along their batch axes here.
    /// - `num_labels`: The number of label descriptors.
    ///
    /// Returns: NULL, or, before any update,
    ///   COHORT_ERROR_STATE             the group was bound without labels
    ///   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of labels
    ///   COHORT_ERROR_SHAPE             a label of another batch size
    ///   COHORT_ERROR_NAME              the metric names a label or output that does not exist
    ///   or what cohort_metric_update() returns.
    pub fn cohort_group_update_metric(
        group: *mut cohort_group,
        metric: *mut cohort_metric,
        labels: *const *mut cohort_ndarray,
        num_labels: usize,
    ) -> *mut cohort_error;
    /// As cohort_group_update_metric(), with num_slices * num_labels labels that are split already, all of device 0 first.
    /// Each has as many samples as its device's slice, else COHORT_ERROR_SHAPE.
    ///
    /// - `labels`: Whole labels in the order of the descriptors, sliced along their batch axes here.
    /// - `num_labels`: The number of label descriptors.
    pub fn cohort_group_update_metric_presliced(
        group: *mut cohort_group,
        metric: *mut cohort_metric,
        num_slices: usize,
        labels: *const *mut cohort_ndarray,
        num_labels: usize,
    ) -> *mut cohort_error;
    /// Waits for all queued work on all devices. COHORT_ERROR_EXECUTION if some failed; the group stays usable, and can
    /// train again once the arrays that are bad were set again (cohort.h, Waiting).
    pub fn cohort_group_wait(
        group: *mut cohort_group,
    ) -> *mut cohort_error;
    /// Splits a batch by workloads, as a group does.
    ///
    /// - `batch_size`: Samples, at least 1. Shares are computed as doubles: above 2^53 samples equal workloads can get shares that differ by more than one.
    /// - `workload`: may be NULL. num_contexts relative shares, each positive and finite; NULL: equal ones.
    /// - `num_contexts`: At least 1.
    /// - `rounding`: COHORT_ROUNDING_ constant.
    /// - `out_begin`: num_contexts numbers: where each slice begins.
    /// - `out_end`: num_contexts numbers: where it ends.
    ///
    /// Returns: NULL, or COHORT_ERROR_INVALID_ARGUMENT: a slice would be empty (the error gives batch size, number of
    ///   contexts and workloads), or a workload is not positive and finite.
    pub fn cohort_split_slices(
        batch_size: i64,
        workload: *const f64,
        num_contexts: usize,
        rounding: cohort_rounding,
        out_begin: *mut i64,
        out_end: *mut i64,
    ) -> *mut cohort_error;
}
