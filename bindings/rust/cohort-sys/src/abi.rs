// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.

use std::os::raw::{c_char, c_void};

/// The version of the library that this was made for.
pub const COHORT_VERSION: &str = "0.1.0";
/// Yes and no: 1 and 0.
pub type cohort_bool = i32;
/// How many axes an array can have. Buffers of this many int64_t hold any shape.
pub const COHORT_MAX_AXES: i32 = 32;
/// As num_axes: the shape is not known. A single unknown axis length is 0 where a function says so.
pub const COHORT_UNKNOWN_SHAPE: i32 = -1;

/// Kinds of devices.
pub type cohort_device_type = i32;
pub const COHORT_DEVICE_CPU: cohort_device_type = 1;
pub const COHORT_DEVICE_GPU: cohort_device_type = 2;
pub const COHORT_DEVICE_CPU_PINNED: cohort_device_type = 3;
pub const COHORT_DEVICE_CPU_SHARED: cohort_device_type = 5;

/// Element types, in the byte order of the host. A bool is a byte, 0 or 1; float16 is IEEE 754's, bfloat16 the upper
/// half of a float32. COHORT_DTYPE_NONE stands for "not given" or "not known".
pub type cohort_dtype = i32;
pub const COHORT_DTYPE_NONE: cohort_dtype = -1;
pub const COHORT_DTYPE_FLOAT32: cohort_dtype = 0;
pub const COHORT_DTYPE_FLOAT64: cohort_dtype = 1;
pub const COHORT_DTYPE_FLOAT16: cohort_dtype = 2;
pub const COHORT_DTYPE_UINT8: cohort_dtype = 3;
pub const COHORT_DTYPE_INT32: cohort_dtype = 4;
pub const COHORT_DTYPE_INT8: cohort_dtype = 5;
pub const COHORT_DTYPE_INT64: cohort_dtype = 6;
pub const COHORT_DTYPE_BOOL: cohort_dtype = 7;
pub const COHORT_DTYPE_BFLOAT16: cohort_dtype = 12;

/// Classes of errors. Where memory runs out, the call that needed it, or waited for work that needed it, says so, and the
/// handles stay usable; only what libgomp and oneDNN ask for inside themselves is out of our hands.
pub type cohort_error_class = i32;
/// what cohort_error_code() says of NULL
pub const COHORT_SUCCESS: cohort_error_class = 0;
/// a wrong handle, count, range or constant; options that contradict
pub const COHORT_ERROR_INVALID_ARGUMENT: cohort_error_class = 1;
/// an unknown, missing, duplicate or ambiguous name
pub const COHORT_ERROR_NAME: cohort_error_class = 2;
/// shapes that differ or cannot be inferred
pub const COHORT_ERROR_SHAPE: cohort_error_class = 3;
/// dtypes that differ or cannot be inferred
pub const COHORT_ERROR_DTYPE: cohort_error_class = 4;
/// a right call at the wrong moment
pub const COHORT_ERROR_STATE: cohort_error_class = 5;
/// a feature that this build or device does not offer
pub const COHORT_ERROR_UNSUPPORTED: cohort_error_class = 6;
/// no such device or backend; arrays on the wrong device
pub const COHORT_ERROR_DEVICE: cohort_error_class = 7;
/// contents of a file, of JSON or of a buffer
pub const COHORT_ERROR_FORMAT: cohort_error_class = 8;
/// the file system
pub const COHORT_ERROR_IO: cohort_error_class = 9;
/// no room on the host or a device
pub const COHORT_ERROR_OUT_OF_MEMORY: cohort_error_class = 10;
/// work on a device failed; out at the call that waited for it
pub const COHORT_ERROR_EXECUTION: cohort_error_class = 11;
/// a defect in this library
pub const COHORT_ERROR_INTERNAL: cohort_error_class = 12;

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

/// What backward does with the gradient of an argument; "null", "write" and "add" as text.
pub type cohort_grad_req = i32;
/// there is none
pub const COHORT_GRAD_NULL: cohort_grad_req = 0;
/// each backward overwrites it
pub const COHORT_GRAD_WRITE: cohort_grad_req = 1;
/// each backward adds to it; setting it to zero is the caller's
pub const COHORT_GRAD_ADD: cohort_grad_req = 3;

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

/// Levels of messages.
pub type cohort_log_level = i32;
pub const COHORT_LOG_DEBUG: cohort_log_level = 0;
pub const COHORT_LOG_INFO: cohort_log_level = 1;
pub const COHORT_LOG_WARNING: cohort_log_level = 2;
pub const COHORT_LOG_ERROR: cohort_log_level = 3;
/// as the lowest level: no messages
pub const COHORT_LOG_OFF: cohort_log_level = 4;

/// Where in a name a pattern has to match.
pub type cohort_pattern_mode = i32;
/// from the start of the name, not necessarily to its end
pub const COHORT_PATTERN_ANCHORED: cohort_pattern_mode = 0;
/// any part of it
pub const COHORT_PATTERN_ANYWHERE: cohort_pattern_mode = 1;

/// How a share of the batch becomes a whole number of samples.
pub type cohort_rounding = i32;
/// to the nearest, halves up; what is missing goes to the last device
pub const COHORT_ROUNDING_HALF_UP: cohort_rounding = 0;
/// the same with halves to the even number
pub const COHORT_ROUNDING_HALF_EVEN: cohort_rounding = 1;
/// largest remainder, at least one sample per device: works whenever that is possible
pub const COHORT_ROUNDING_BALANCED: cohort_rounding = 2;

/// Storage types. Only the default one is supported; the others are known so that they can be refused by name.
pub type cohort_storage_type = i32;
pub const COHORT_STORAGE_UNDEFINED: cohort_storage_type = -1;
pub const COHORT_STORAGE_DEFAULT: cohort_storage_type = 0;
pub const COHORT_STORAGE_ROW_SPARSE: cohort_storage_type = 1;
pub const COHORT_STORAGE_CSR: cohort_storage_type = 2;

/// Lists of names that a symbol has.
pub type cohort_symbol_list = i32;
/// variables that are no auxiliary states
pub const COHORT_SYMBOL_ARGUMENTS: cohort_symbol_list = 0;
/// auxiliary states: variables that operators update, such as moving means
pub const COHORT_SYMBOL_AUX: cohort_symbol_list = 1;
/// the heads
pub const COHORT_SYMBOL_OUTPUTS: cohort_symbol_list = 2;
/// all variables, arguments and auxiliary states interleaved
pub const COHORT_SYMBOL_INPUTS: cohort_symbol_list = 3;

/// How cohort_group_update() puts the devices' gradients together.
pub type cohort_update_mode = i32;
/// one update from the sum over the devices, copied to all; gradients stay
pub const COHORT_UPDATE_ON_STORE: cohort_update_mode = 0;
/// the sum replaces each device's gradient, and each device updates its own
pub const COHORT_UPDATE_PER_DEVICE: cohort_update_mode = 1;
/// each device updates from its own gradient; devices may part
pub const COHORT_UPDATE_NO_STORE: cohort_update_mode = 2;

/// why a call failed
#[repr(C)]
pub struct cohort_error {
    _private: [u8; 0],
}

/// an array on a device, or a view of one
#[repr(C)]
pub struct cohort_ndarray {
    _private: [u8; 0],
}

/// an ordered list of arrays, each with or without a name
#[repr(C)]
pub struct cohort_arrays {
    _private: [u8; 0],
}

/// an ordered list of names, shapes, dtypes and layouts
#[repr(C)]
pub struct cohort_descs {
    _private: [u8; 0],
}

/// a graph of operators
#[repr(C)]
pub struct cohort_symbol {
    _private: [u8; 0],
}

/// a symbol bound to arrays on its contexts
#[repr(C)]
pub struct cohort_executor {
    _private: [u8; 0],
}

/// one executor per context, a batch split over them
#[repr(C)]
pub struct cohort_group {
    _private: [u8; 0],
}

/// a rule that updates parameters, with its states
#[repr(C)]
pub struct cohort_optimizer {
    _private: [u8; 0],
}

/// a figure accumulated from labels and predictions
#[repr(C)]
pub struct cohort_metric {
    _private: [u8; 0],
}

/// a rule that fills parameters before training
#[repr(C)]
pub struct cohort_initializer {
    _private: [u8; 0],
}

/// a group for each bucket of a bucketing network
#[repr(C)]
pub struct cohort_manager {
    _private: [u8; 0],
}

/// statistics of arrays while they are computed
#[repr(C)]
pub struct cohort_monitor {
    _private: [u8; 0],
}

/// operators as they were applied, for their gradients
#[repr(C)]
pub struct cohort_tape {
    _private: [u8; 0],
}

/// a receiver of the library's messages
#[repr(C)]
pub struct cohort_log {
    _private: [u8; 0],
}

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

/// Computes the gradients of the inputs. What grad_req asks for is done with them afterwards: they are always to be
/// overwritten.
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

/// Makes what belongs to one bound node, from its forward passes to its backward passes. A node is bound by each executor
/// and each device, for training and for inference apart; each application to arrays is a node of its own.
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

/// Says what a node has: names of inputs, auxiliary states and outputs.
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

/// Runs once, when the operator is not registered and no symbol and nothing bound has a node of it any more.
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

/// Infers shapes, or dtypes. Called when the first input's is known, for each inference once or several times. Lengths of
/// 0 cannot be told by it: they are those that are not known.
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

/// Lets go of a state. Runs once for each, when its node is not bound any more.
pub type cohort_custom_release_fn = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        user_data: *mut c_void,
    ),
>;

/// Tells the owner of wrapped memory that the library is done with it.
///
/// Called once, at the end of a call of the library, on the thread that made that: nothing of the library waits for it
/// but that call. It must not call the library.
pub type cohort_deleter_fn = Option<
    unsafe extern "C" fn(
        data: *mut c_void,
        user_data: *mut c_void,
    ),
>;

/// Says that a receiver has been freed and will not be called any more, so that its user_data may go.
///
/// Called once, at the end of a call of the library, on the thread that made that. It must not call the library.
pub type cohort_log_end_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
    ),
>;

/// Receives one message, whole, without a newline.
///
///
/// Runs on a thread that is inside a call of the library, on one thread at a time: while one is in the callback, the
/// messages of others are left to it, and those do not wait. It must not call the library but to free its own receiver.
pub type cohort_log_fn = Option<
    unsafe extern "C" fn(
        level: cohort_log_level,
        message: *const c_char,
        user_data: *mut c_void,
    ),
>;

/// Computes a metric of the caller's for one update.
///
///
/// Runs inside cohort_metric_update() and cohort_group_update_metric(). It may use the arrays, and must not use the
/// metric or the group.
pub type cohort_metric_fn = Option<
    unsafe extern "C" fn(
        labels: *const *mut cohort_ndarray,
        num_labels: usize,
        preds: *const *mut cohort_ndarray,
        num_preds: usize,
        out_sum: *mut f64,
        out_num: *mut f64,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Sees an array as it is computed.
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

/// Says whether a monitor is to report an array: for hosts with regular expressions of their own.
///
///
/// Runs where cohort_statistic_fn does, for each array that could be reported, and with the same duties.
pub type cohort_name_filter_fn = Option<
    unsafe extern "C" fn(
        name: *const c_char,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Computes what a monitor reports of an array.
///
///
/// Runs inside the forward and backward calls of what is monitored, and inside cohort_monitor_toc(), for each array that
/// is reported; not after the monitor was freed. It may use the array, and must not use the monitor or what is
/// monitored. Should it fail, or give no array, in a forward or backward call, the rest of that pass does not run.
pub type cohort_statistic_fn = Option<
    unsafe extern "C" fn(
        array: *mut cohort_ndarray,
        values: *mut cohort_arrays,
        user_data: *mut c_void,
    ) -> i32,
>;

/// Computes the gradients of a function of the host's.
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

/// Lets go of what belongs to a function of the host's. Runs at the end of the call that lets go of it: a backward pass,
/// an application of an operator, cohort_tape_free(). It must not use the tape.
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
    /// 1: the pass is recorded itself, so that gradients have gradients; retains as well
    pub create_graph: cohort_bool,
}

/// One device: "cpu(0)" is {COHORT_DEVICE_CPU, 0}. Equal when both fields are. Every id from 0 names a CPU device, each
/// a worker of its own; a GPU id must exist. The struct never grows. Where a pointer to one may be NULL, NULL is cpu(0).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_context {
    /// COHORT_DEVICE_ constant
    pub device_type: cohort_device_type,
    /// from 0
    pub device_id: i32,
}

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
    /// NULL: states need none
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

/// Settings of an executor that few callers change. Zero in any field means its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_executor_options {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// num_ctx_groups of them
    pub ctx_group_names: *const *const c_char,
    /// one for each name
    pub ctx_group_contexts: *const cohort_context,
    pub num_ctx_groups: usize,
    /// executor to share memory with, kept alive; NULL: none
    pub shared_executor: *mut cohort_executor,
    /// threads of each CPU context; 0: the processors this process may use are shared out among them
    pub num_threads: i32,
    /// of random operators; each forward in training draws new numbers
    pub seed: u64,
    /// "null", "write" or "add" for every argument; NULL: see the next three
    pub grad_req: *const c_char,
    /// num_grad_reqs of them. Neither form: no gradients
    pub grad_req_list: *const *const c_char,
    /// the argument each is for: those not named have none, unknown names are ignored; NULL: one for each argument in order
    pub grad_req_names: *const *const c_char,
    pub num_grad_reqs: usize,
    /// NULL: by ctx_group, else the context
    pub arg_contexts: *const cohort_context,
    /// NULL: where the argument is; elsewhere is UNSUPPORTED
    pub grad_contexts: *const cohort_context,
    /// NULL: as for arguments
    pub aux_contexts: *const cohort_context,
    /// storage types of arguments and auxiliary states by name
    pub storage_names: *const *const c_char,
    /// COHORT_STORAGE_ constants, winning over `__storage_type__`; sparse: UNSUPPORTED
    pub storage_types: *const cohort_storage_type,
    pub num_storage_types: usize,
    /// arguments that are shared_executor's own arrays (its gradients too)
    pub shared_arg_names: *const *const c_char,
    /// read only if shared_data is given
    pub num_shared_arg_names: usize,
    /// pool of input arrays by name; read, and updated with what was allocated; NULL: none
    pub shared_data: *mut cohort_arrays,
    /// 1: a dtype that cannot be inferred is an error; 0: it is float32
    pub strict_dtypes: cohort_bool,
}

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
    /// parameters without gradient; unknown names are ignored
    pub fixed_param_names: *const *const c_char,
    pub num_fixed_param_names: usize,
    /// "null", "write" or "add" for all parameters; NULL: see the next three
    pub grad_req: *const c_char,
    /// num_grad_reqs of them. Neither form: "write"
    pub grad_req_list: *const *const c_char,
    /// the argument each is for, over "write"; NULL: one for each argument in order, taken as it is, whatever inputs_need_grad and fixed_param_names say
    pub grad_req_names: *const *const c_char,
    pub num_grad_reqs: usize,
    /// arguments that are states
    pub state_names: *const *const c_char,
    pub num_state_names: usize,
    /// dtypes of data and labels by name, over those of symbol and descriptor
    pub input_dtype_names: *const *const c_char,
    /// COHORT_DTYPE_ constants
    pub input_dtypes: *const cohort_dtype,
    pub num_input_dtypes: usize,
    /// group of another bucket to share memory with, kept alive; NULL: none
    pub shared_group: *mut cohort_group,
    /// Contexts of the nodes whose `__ctx_group__` is one of these names. None: the attribute is not read.
    pub ctx_group_names: *const *const c_char,
    /// for each name contexts_per_ctx_group of them; device_type 0: the name is not in that device's map
    pub ctx_group_contexts: *const cohort_context,
    pub num_ctx_groups: usize,
    /// 1: the same on all devices; else the number of contexts; 0: 1
    pub contexts_per_ctx_group: usize,
    /// threads of each CPU context; 0: the processors are shared out among them
    pub num_threads: i32,
    /// gradients summed in one exchange, in bytes; 0: chosen from the model
    pub gradient_bucket_bytes: usize,
    /// of random operators; each device draws its own numbers
    pub seed: u64,
    /// takes this group's messages; NULL: they go where the library's do
    pub log: cohort_log_fn,
    /// passed to log
    pub log_user_data: *mut c_void,
    /// what the caller takes the symbol's arguments to be, in order: anything else is an error
    pub arg_names: *const *const c_char,
    /// 0: not checked
    pub num_arg_names: usize,
}

/// Settings of one application of an operator. Zero in any field means its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_invoke_options {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// where an operator without inputs runs; NULL: cpu(0)
    pub context: *const cohort_context,
    /// of random operators: the same seed gives the same numbers
    pub seed: u64,
    /// 1: training behaviour, such as Dropout's
    pub is_train: cohort_bool,
}

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
    /// of the main symbol; not NULL if there are bucket symbols
    pub default_bucket_key: *const c_char,
    /// num_buckets different keys of symbols given ahead; the default one may be
    pub bucket_keys: *const *const c_char,
    /// among them, its symbol is not used. Copied: the handles stay the caller's
    pub bucket_symbols: *const *mut cohort_symbol,
    pub num_buckets: usize,
    /// asked for the other keys; NULL: there are none
    pub bucket_symbol: cohort_bucket_symbol_fn,
    /// passed to bucket_symbol
    pub bucket_symbol_user_data: *mut c_void,
    /// threads of each CPU context; 0: the processors are shared out among them
    pub num_threads: i32,
    /// of random operators; each device draws its own numbers
    pub seed: u64,
    /// takes the messages of the manager and its groups; NULL: they go where the library's do
    pub log: cohort_log_fn,
    /// passed to log
    pub log_user_data: *mut c_void,
    /// num_state_names arguments that are states; those of one shape are one array in all
    pub state_names: *const *const c_char,
    /// buckets, so that cohort_manager_set_states() holds for whichever runs next
    pub num_state_names: usize,
}

/// What an executor, or one device of a group, takes of memory. struct_size is set by the caller.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_memory_info {
    /// sizeof(cohort_memory_info) where the caller was compiled
    pub struct_size: usize,
    /// the planned pool: intermediate values and workspaces, after reuse
    pub planned_bytes: usize,
    /// what all intermediate arrays would take without reuse
    pub intermediate_bytes: usize,
    /// arguments and auxiliary states
    pub argument_bytes: usize,
    /// gradient arrays
    pub gradient_bytes: usize,
    /// outputs
    pub output_bytes: usize,
}

/// Settings of a monitor that few callers change. Zero in any field means its default.
///
/// Patterns are UTF-8 in the syntax of RE2: that of ECMAScript and Python without what needs backtracking - back
/// references such as `\1`, and looking around such as `(?=x)` and `(?!x)` - so that matching takes time linear in the
/// name, on little stack. Further differences: `^` and `$` are the ends of the name, `.` is any character but a newline,
/// one of several bytes too, `\d`, `\w`, `\s` and `\b` know ASCII only, `x{n}` repeats at most 1,000 times, and a
/// character is `\x{263A}`, not `\u263A`. A pattern has at most 64 KiB, compiled some MiB. Others are refused; `filter`
/// is for hosts that want them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_monitor_options {
    /// size the caller was compiled with; set by the initialisers
    pub struct_size: usize,
    /// regular expression of the names to report, see below; NULL or "": all
    pub pattern: *const c_char,
    /// COHORT_PATTERN_ constant
    pub pattern_mode: cohort_pattern_mode,
    /// 1: pattern and filter do not choose among the arguments and auxiliary states
    pub all_in_toc: cohort_bool,
    /// 1: entries by name, equal ones in the order of execution; 0: in the order of execution
    pub sort: cohort_bool,
    /// 1: the inputs of each operator too, before its outputs
    pub monitor_all: cohort_bool,
    /// NULL: the Euclidean norm over the square root of the size, one float32
    pub statistic: cohort_statistic_fn,
    /// passed to statistic
    pub statistic_user_data: *mut c_void,
    /// chooses the names to report; NULL: pattern does. Not both
    pub filter: cohort_name_filter_fn,
    /// passed to filter
    pub filter_user_data: *mut c_void,
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
    /// the default context; NULL: the executor's. Here and in the next, arrays stay
    pub context: *const cohort_context,
    /// as for cohort_executor_options; none: the executor's
    pub ctx_group_names: *const *const c_char,
    pub ctx_group_contexts: *const cohort_context,
    pub num_ctx_groups: usize,
}

extern "C" {
    /// Appends an entry.
    pub fn cohort_arrays_add(
        arrays: *mut cohort_arrays,
        name: *const c_char,
        array: *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Makes an empty list.
    pub fn cohort_arrays_create(
        out_arrays: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// Finds an entry by name.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME if there is none or more than one.
    pub fn cohort_arrays_find(
        arrays: *const cohort_arrays,
        name: *const c_char,
        out_index: *mut usize,
    ) -> *mut cohort_error;
    /// Frees a list, not the arrays that others hold; NULL does nothing.
    pub fn cohort_arrays_free(
        arrays: *mut cohort_arrays,
    );
    /// A handle on the array of an entry; NULL if the entry has none.
    pub fn cohort_arrays_get(
        arrays: *const cohort_arrays,
        index: usize,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Reads a file of arrays: a .params file of any version that MXNet wrote, NumPy's .npy (one array, without a name) or
    /// .npz (compressed ones, too). Its content says which it is, not its name.
    ///
    /// A .params file without names gives entries without names. Of a repeated name the last entry stays; entries of the empty
    /// name all do. Empty entries for "no array" give entries without arrays in a list, and are left out of a map with one
    /// warning.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_IO           the file cannot be read (the error names it)
    ///   COHORT_ERROR_FORMAT       it is damaged or cut short, or holds more than 2^20 arrays or COHORT_MAX_AXES axes; sizes
    ///                             are checked before anything is allocated
    ///   COHORT_ERROR_UNSUPPORTED  it holds a sparse array, or elements of a type that arrays do not have (the error names it)
    ///   COHORT_ERROR_DEVICE       there is no such context
    pub fn cohort_arrays_load(
        path: *const c_char,
        context: *const cohort_context,
        out_arrays: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// As cohort_arrays_load(), from `bytes` bytes of memory, which are not kept.
    pub fn cohort_arrays_load_memory(
        data: *const c_void,
        bytes: usize,
        context: *const cohort_context,
        out_arrays: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// The name of an entry, "" if none.
    pub fn cohort_arrays_name(
        arrays: *const cohort_arrays,
        index: usize,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// How many entries there are.
    pub fn cohort_arrays_num(
        arrays: *const cohort_arrays,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// Writes a .params file as MXNet's nd.save does: a list if no entry has a name, else a map, in
    /// which entries without a name have the empty one.
    ///
    /// Waits for the arrays. The file appears whole under its name or not at all: an older one is replaced at the end.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_INVALID_ARGUMENT  an entry has no array
    ///   COHORT_ERROR_IO                the file cannot be written (the error names it)
    ///   COHORT_ERROR_EXECUTION         work that an array waits for failed; nothing was written
    pub fn cohort_arrays_save(
        arrays: *const cohort_arrays,
        path: *const c_char,
    ) -> *mut cohort_error;
    /// As cohort_arrays_save(), into memory: out_data NULL asks for the size.
    pub fn cohort_arrays_save_memory(
        arrays: *const cohort_arrays,
        out_data: *mut c_void,
        capacity: usize,
        out_bytes: *mut usize,
    ) -> *mut cohort_error;
    /// Writes a .npy file, as numpy.save() does: the list's one array. Like cohort_arrays_save() otherwise.
    ///
    /// Returns: As cohort_arrays_save(), and
    ///   COHORT_ERROR_INVALID_ARGUMENT  the list has not one array
    ///   COHORT_ERROR_DTYPE             bfloat16, which NumPy does not have
    pub fn cohort_arrays_save_npy(
        arrays: *const cohort_arrays,
        path: *const c_char,
    ) -> *mut cohort_error;
    /// Writes a .npz file, as numpy.savez() does: each array under its name, or "arr_0", "arr_1", .. by its place where it has
    /// none. Nothing is compressed. Like cohort_arrays_save() otherwise.
    ///
    /// Returns: As cohort_arrays_save(), and
    ///   COHORT_ERROR_NAME   two arrays have one name, or a name has more than 65,531 bytes
    ///   COHORT_ERROR_DTYPE  bfloat16, which NumPy does not have
    pub fn cohort_arrays_save_npz(
        arrays: *const cohort_arrays,
        path: *const c_char,
    ) -> *mut cohort_error;
    /// Replaces the array of the entry with this name, or appends one. Ambiguous name: COHORT_ERROR_NAME.
    pub fn cohort_arrays_set(
        arrays: *mut cohort_arrays,
        name: *const c_char,
        array: *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// The same as COHORT_BACKWARD_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's.
    pub fn cohort_backward_options_init(
        options: *mut cohort_backward_options,
        struct_size: usize,
    );
    /// Reads a checkpoint, the arrays to cpu(0).
    ///
    /// Arrays under names that begin neither with `arg:` nor with `aux:` are left out. A file without arrays gives two empty
    /// lists and a warning.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_IO           a file cannot be read (the error names it)
    ///   COHORT_ERROR_FORMAT       a file is damaged, or a name has no colon
    ///   COHORT_ERROR_UNSUPPORTED  an array is sparse
    pub fn cohort_checkpoint_load(
        prefix: *const c_char,
        epoch: i32,
        out_symbol: *mut *mut cohort_symbol,
        out_arg_params: *mut *mut cohort_arrays,
        out_aux_params: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// Writes a checkpoint. Waits for the arrays. Each file appears whole under its name or not at all.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_INVALID_ARGUMENT  an entry has no name or no array
    ///   COHORT_ERROR_IO                a file cannot be written (the error names it)
    ///   COHORT_ERROR_EXECUTION         work that an array waits for failed
    pub fn cohort_checkpoint_save(
        prefix: *const c_char,
        epoch: i32,
        symbol: *const cohort_symbol,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
    ) -> *mut cohort_error;
    /// Reads a context from text: a device type, then an id from 0 in parentheses. "cpu(0)", "gpu(1)", "cpu_pinned(0)",
    /// "cpu_shared(0)"; nothing else is accepted, nor leading zeros. Whether the device exists is seen when it is first used.
    pub fn cohort_context_parse(
        text: *const c_char,
        out_context: *mut cohort_context,
    ) -> *mut cohort_error;
    /// Writes a context as text, "gpu(1)".
    pub fn cohort_context_text(
        context: *const cohort_context,
        out_text: *mut c_char,
        capacity: usize,
        out_bytes: *mut usize,
    ) -> *mut cohort_error;
    /// The same as COHORT_CUSTOM_OP_INIT, for callers without a C compiler; struct_size is the caller's.
    pub fn cohort_custom_op_init(
        op: *mut cohort_custom_op,
        struct_size: usize,
    );
    /// Registers a custom operator, for the whole process.
    ///
    /// Threads: any.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME if the name is taken, COHORT_ERROR_INVALID_ARGUMENT for a callback that is missing;
    ///         then no callback is ever called.
    pub fn cohort_custom_register(
        op_type: *const c_char,
        op: *const cohort_custom_op,
    ) -> *mut cohort_error;
    /// Ends the name. Nodes that there are stay what they are.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME if it is not registered.
    pub fn cohort_custom_unregister(
        op_type: *const c_char,
    ) -> *mut cohort_error;
    /// Appends a descriptor.
    pub fn cohort_descs_add(
        descs: *mut cohort_descs,
        name: *const c_char,
        shape: *const i64,
        num_axes: i32,
        dtype: cohort_dtype,
        layout: *const c_char,
    ) -> *mut cohort_error;
    /// Makes an empty list.
    pub fn cohort_descs_create(
        out_descs: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// Finds a descriptor by name.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME if there is none or more than one.
    pub fn cohort_descs_find(
        descs: *const cohort_descs,
        name: *const c_char,
        out_index: *mut usize,
    ) -> *mut cohort_error;
    /// Frees a list; NULL does nothing.
    pub fn cohort_descs_free(
        descs: *mut cohort_descs,
    );
    /// Reads one descriptor. Each out parameter may be NULL.
    pub fn cohort_descs_get(
        descs: *const cohort_descs,
        index: usize,
        out_name: *mut *const c_char,
        out_shape: *mut i64,
        capacity: usize,
        out_num_axes: *mut i32,
        out_dtype: *mut cohort_dtype,
        out_layout: *mut *const c_char,
    ) -> *mut cohort_error;
    /// How many descriptors there are.
    pub fn cohort_descs_num(
        descs: *const cohort_descs,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// The bytes that one element of a dtype takes. Unknown: COHORT_ERROR_DTYPE.
    pub fn cohort_dtype_bytes(
        dtype: cohort_dtype,
        out_bytes: *mut usize,
    ) -> *mut cohort_error;
    /// Reads a dtype from its name: "float32", "bfloat16", "bool"... Unknown: COHORT_ERROR_DTYPE.
    pub fn cohort_dtype_parse(
        text: *const c_char,
        out_dtype: *mut cohort_dtype,
    ) -> *mut cohort_error;
    /// The name of a dtype, which lives as long as the process. Unknown: COHORT_ERROR_DTYPE.
    pub fn cohort_dtype_text(
        dtype: cohort_dtype,
        out_text: *mut *const c_char,
    ) -> *mut cohort_error;
    /// The class of an error; COHORT_SUCCESS for NULL.
    pub fn cohort_error_code(
        error: *const cohort_error,
    ) -> cohort_error_class;
    /// The name of a class in lower case, such as "shape"; "unknown" for other values. Lives as long as the process.
    pub fn cohort_error_code_text(
        code: cohort_error_class,
    ) -> *const c_char;
    /// Frees an error. NULL, and an error that is freed already, do nothing.
    pub fn cohort_error_free(
        error: *mut cohort_error,
    );
    /// One line for a person: what, where, expected and found. "" for NULL. It is UTF-8, whatever it quotes: other bytes and
    /// control characters are written as \xNN, in the subject too. Lives until the error is freed.
    pub fn cohort_error_message(
        error: *const cohort_error,
    ) -> *const c_char;
    /// The operator, node, argument, array or file concerned; "" if there is none, and for NULL. Lives as the message does.
    pub fn cohort_error_subject(
        error: *const cohort_error,
    ) -> *const c_char;
    /// A handle on a live array; NULL for an argument without gradient. Outputs are zeros before the first forward.
    pub fn cohort_executor_array(
        executor: *const cohort_executor,
        list: cohort_executor_list,
        index: usize,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// As cohort_executor_array(), by name. Unknown or ambiguous: COHORT_ERROR_NAME.
    pub fn cohort_executor_array_named(
        executor: *const cohort_executor,
        list: cohort_executor_list,
        name: *const c_char,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// A whole list, names included; live arrays.
    pub fn cohort_executor_arrays(
        executor: *const cohort_executor,
        list: cohort_executor_list,
        out_arrays: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// Queues a backward pass from the latest forward pass; it may be repeated. Values of arguments that a gradient needs
    /// are those at this call. Without any gradient array it does nothing.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_INVALID_ARGUMENT  more than outputs, or none where one is needed (the error names the output)
    ///   COHORT_ERROR_SHAPE             another shape than the output's
    ///   COHORT_ERROR_STATE             no forward pass since binding
    pub fn cohort_executor_backward(
        executor: *mut cohort_executor,
        head_grads: *const *mut cohort_ndarray,
        num_head_grads: usize,
        is_train: cohort_bool,
    ) -> *mut cohort_error;
    /// Binds a symbol to given arrays. They are referenced, not copied: what the caller writes there, the next forward
    /// reads.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of arrays, or an array missing
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
    /// Copies parameters into arguments and auxiliary states by name, converting dtypes. Queued. Checked first, as above.
    pub fn cohort_executor_copy_params_from(
        executor: *mut cohort_executor,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
        allow_extra: cohort_bool,
    ) -> *mut cohort_error;
    /// The plan as text for a person, good until this is called again. Its last two lines are `Total X MB allocated` and
    /// `Total 11 TempSpace resource requested`, as MXNet's are; X is the planned memory in whole MiB.
    pub fn cohort_executor_debug_text(
        executor: *const cohort_executor,
        out_text: *mut *const c_char,
    ) -> *mut cohort_error;
    /// Queues a forward pass over what the arguments hold.
    pub fn cohort_executor_forward(
        executor: *mut cohort_executor,
        is_train: cohort_bool,
    ) -> *mut cohort_error;
    /// Frees a handle, waiting for queued work if it is the last; NULL does nothing. Arrays handed out live on.
    pub fn cohort_executor_free(
        executor: *mut cohort_executor,
    );
    /// What backward does with the gradient of an argument: a COHORT_GRAD_ constant.
    pub fn cohort_executor_grad_req(
        executor: *const cohort_executor,
        index: usize,
        out_grad_req: *mut cohort_grad_req,
    ) -> *mut cohort_error;
    /// What the executor takes of memory, shared memory included. struct_size of *out_info is set by the caller.
    pub fn cohort_executor_memory(
        executor: *const cohort_executor,
        out_info: *mut cohort_memory_info,
    ) -> *mut cohort_error;
    /// The name that goes with an array of a list; a gradient has its argument's.
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
    /// The same as COHORT_EXECUTOR_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's.
    pub fn cohort_executor_options_init(
        options: *mut cohort_executor_options,
        struct_size: usize,
    );
    /// Runs one step of a forward pass: completes node `step` of the symbol's JSON, whatever the plan fuses.
    ///
    /// Steps may be repeated, or left out: a step runs on what is there. After all steps, outputs are as after
    /// cohort_executor_forward(), and backward may follow.
    pub fn cohort_executor_partial_forward(
        executor: *mut cohort_executor,
        is_train: cohort_bool,
        step: i32,
        out_step_left: *mut i32,
    ) -> *mut cohort_error;
    /// Makes an executor of the same symbol for other shapes. It shares the memory of this one, which stays usable; both are
    /// of one family.
    ///
    /// An argument whose shape stays is shared. One that shrinks uses the first part of its memory, its gradient likewise.
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
    /// Copies arrays into arguments by name, converting dtypes. Queued. Checked first: on an error nothing is copied.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME (no such argument), COHORT_ERROR_SHAPE.
    pub fn cohort_executor_set_inputs(
        executor: *mut cohort_executor,
        inputs: *const cohort_arrays,
    ) -> *mut cohort_error;
    /// Shows every operator's outputs, in the order of execution, to a callback, under the names of the symbol as bound,
    /// whatever the plan fuses. Results do not change, but for the rounding of what it would have fused; passes wait for
    /// their work while a callback is set.
    pub fn cohort_executor_set_monitor(
        executor: *mut cohort_executor,
        callback: cohort_monitor_fn,
        user_data: *mut c_void,
        monitor_all: cohort_bool,
    ) -> *mut cohort_error;
    /// Binds a symbol to arrays made for it, all zeros.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_SHAPE, _DTYPE     some cannot be inferred (the error lists the arguments), or they contradict (the
    ///                                  error names the node); a shared array does not fit
    ///   COHORT_ERROR_INVALID_ARGUMENT  grad_req: a wrong number, an empty list, or another word
    ///   COHORT_ERROR_NAME              two arguments of one name; shared_executor has no argument of a shared name
    ///   COHORT_ERROR_DEVICE            as for cohort_executor_bind()
    ///   COHORT_ERROR_UNSUPPORTED       likewise; sparse storage (the error names the variable)
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
    /// A handle on the live array of one device.
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
    /// As cohort_group_set_params(), of all parameters and auxiliary states: what is not given is told, not left as it is in
    /// silence.
    pub fn cohort_group_assign_params(
        group: *mut cohort_group,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
        allow_missing: cohort_bool,
        allow_extra: cohort_bool,
        out_missing: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// The batch axis of an entry of COHORT_GROUP_DATA, _LABELS, _OUTPUTS or _INPUT_GRADS; -1 if not batched. An output's is
    /// that of the `__layout__` attribute of its node, 0 without one.
    pub fn cohort_group_axis(
        group: *const cohort_group,
        list: cohort_group_list,
        index: usize,
        out_axis: *mut i32,
    ) -> *mut cohort_error;
    /// Queues a backward pass from the latest forward pass, on every device; gradients are those of each device's slice. The
    /// sums over the devices that cohort_group_update() needs start while it runs.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_STATE             not bound for training, or no forward pass since binding
    ///   COHORT_ERROR_INVALID_ARGUMENT  more than outputs, or none where one is needed (the error names the output)
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
    /// Binds a bound group from scratch: new arrays of zeros, nothing kept but the group's settings.
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
    /// Returns: NULL, or
    ///   COHORT_ERROR_INVALID_ARGUMENT  no context or no data; a slice would be empty; a count or word in the options
    ///   COHORT_ERROR_NAME              a descriptor's or state's name is no argument or comes twice; two arguments or two
    ///                                  auxiliary states have one name; shared_group lacks a parameter
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
    /// A handle on the executor of a device, as it is now: reshaping the group gives it new ones.
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
    pub fn cohort_group_forward_presliced(
        group: *mut cohort_group,
        num_slices: usize,
        data: *const *mut cohort_ndarray,
        num_data: usize,
        label: *const *mut cohort_ndarray,
        num_label: usize,
        is_train: i32,
    ) -> *mut cohort_error;
    /// Frees a handle, waiting for queued work if it is the last; NULL does nothing. Arrays handed out live on.
    pub fn cohort_group_free(
        group: *mut cohort_group,
    );
    /// Writes the mean over the devices of each parameter and auxiliary state into given arrays, converting dtypes. Queued;
    /// of several devices it waits for what computes them.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME (a parameter has no target), COHORT_ERROR_SHAPE; nothing is written then.
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
    /// What one device takes of memory, shared memory included. struct_size of *out_info is set by the caller.
    pub fn cohort_group_memory(
        group: *const cohort_group,
        device: usize,
        out_info: *mut cohort_memory_info,
    ) -> *mut cohort_error;
    /// One array for all devices, on the context of device 0: the devices' arrays joined along the batch axis in order. Of
    /// an output without batch axis it is device 0's, of a gradient the sum.
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
    /// The name of an entry; a gradient has its argument's. Good until the group is bound again, reshaped or freed.
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
    /// The same as COHORT_GROUP_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's.
    pub fn cohort_group_options_init(
        options: *mut cohort_group_options,
        struct_size: usize,
    );
    /// Names, shapes and dtypes of the merged outputs, known before any forward pass.
    pub fn cohort_group_output_shapes(
        group: *const cohort_group,
        out_descs: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// Changes the shapes of the batch. Parameters, their gradients and auxiliary states keep their memory and values;
    /// contents of data and labels are unspecified. Other gradients that outgrow their first shape start from zero. Nothing
    /// happens if names, shapes, dtypes and layouts are the bound ones. What was bound for the latest 16 batches that differ
    /// is kept: going back to one of them binds nothing.
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
    /// Queues a forward pass over what is loaded, on every device. Loading once and running twice is fine.
    pub fn cohort_group_run(
        group: *mut cohort_group,
        is_train: i32,
    ) -> *mut cohort_error;
    /// As cohort_executor_set_monitor(), on every device; device 0's calls come first. Reshaping keeps it.
    pub fn cohort_group_set_monitor(
        group: *mut cohort_group,
        callback: cohort_monitor_fn,
        user_data: *mut c_void,
        monitor_all: cohort_bool,
    ) -> *mut cohort_error;
    /// Copies parameters to every device by name, converting dtypes. Checked first: on an error nothing is copied.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME, COHORT_ERROR_SHAPE (the error names the array).
    pub fn cohort_group_set_params(
        group: *mut cohort_group,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
        allow_extra: cohort_bool,
    ) -> *mut cohort_error;
    /// Sets the states of every device, converting dtypes. Queued. They stay until set again. Either form, not both:
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
    /// The pool of input arrays of a device, which groups that share memory have in common: live arrays by name.
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
    pub fn cohort_group_sliced_shape(
        group: *const cohort_group,
        descs: *const cohort_descs,
        device: usize,
        axes: *const i32,
        out_descs: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// Updates every parameter that has a gradient, if any has. Queued.
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE if the group is not bound for training or has run no backward pass.
    pub fn cohort_group_update(
        group: *mut cohort_group,
        optimizer: *mut cohort_optimizer,
        mode: cohort_update_mode,
    ) -> *mut cohort_error;
    /// Updates a metric once for each device, in order, with that device's labels and outputs. Waits for the outputs.
    ///
    /// A metric with label_names or output_names takes those it names, else all in order.
    ///
    /// Returns: NULL, or, before any update,
    ///   COHORT_ERROR_STATE             the group was bound without labels
    ///   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of labels
    ///   COHORT_ERROR_SHAPE             a label of another batch size
    ///   COHORT_ERROR_NAME              the metric names a label or output that there is not
    ///   or what cohort_metric_update() returns.
    pub fn cohort_group_update_metric(
        group: *mut cohort_group,
        metric: *mut cohort_metric,
        labels: *const *mut cohort_ndarray,
        num_labels: usize,
    ) -> *mut cohort_error;
    /// As cohort_group_update_metric(), with num_slices * num_labels labels that are split already, all of device 0 first.
    /// Each has as many samples as its device's slice, else COHORT_ERROR_SHAPE.
    pub fn cohort_group_update_metric_presliced(
        group: *mut cohort_group,
        metric: *mut cohort_metric,
        num_slices: usize,
        labels: *const *mut cohort_ndarray,
        num_labels: usize,
    ) -> *mut cohort_error;
    /// Waits for all queued work on all devices. COHORT_ERROR_EXECUTION if some failed; the group stays usable, and trains on
    /// once what the failure left bad was set again (cohort.h, Waiting).
    pub fn cohort_group_wait(
        group: *mut cohort_group,
    ) -> *mut cohort_error;
    /// Whether the library that is loaded has a feature: 1 or 0, and 0 for names it does not know. Loads no backend.
    ///
    /// Names: "cpu", "onednn", "dlpack"; "cuda" (the CUDA backend is there and finds a GPU).
    pub fn cohort_has_feature(
        name: *const c_char,
    ) -> cohort_bool;
    /// Fills arrays by name.
    ///
    /// A variable's `__init__` attribute comes first: a name, or as JSON `\["name", {parameters}\]` or `{"initializer": "name",
    /// parameters}`. Else the end of the name decides:
    /// `weight` is filled by this initializer; `bias`, `beta`, `moving_mean`, `running_mean`, `moving_inv_var`, `moving_avg`
    /// and `min` with 0; `gamma`, `moving_var`, `running_var` and `max` with 1.
    ///
    /// Returns: NULL, or, with nothing written,
    ///   COHORT_ERROR_NAME   a name from which nothing follows
    ///   COHORT_ERROR_SHAPE  a weight with too few axes for the rule
    pub fn cohort_initializer_apply(
        initializer: *const cohort_initializer,
        symbol: *const cohort_symbol,
        arrays: *const cohort_arrays,
    ) -> *mut cohort_error;
    /// Makes an initializer.
    ///
    ///   "zero" ("zeros"), "one" ("ones")
    ///   "constant"    value (0)
    ///   "uniform"     scale (0.07): evenly from \[-scale, scale)
    ///   "normal"      sigma (0.01)
    ///   "xavier"      rnd_type ("uniform" or "gaussian"), factor_type ("avg", "in" or "out"), magnitude (3)
    ///   "msraprelu"   factor_type ("avg"), slope (0.25)
    ///   "orthogonal"  scale (1.414), rand_type ("uniform" or "normal")
    ///   "lstmbias"    forget_bias (1): the second of four gates, the others 0
    ///
    /// Of words, the first is the default.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME (no such initializer or setting), COHORT_ERROR_INVALID_ARGUMENT (a value).
    pub fn cohort_initializer_create(
        name: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        seed: u64,
        out_initializer: *mut *mut cohort_initializer,
    ) -> *mut cohort_error;
    /// Fills one array by this initializer's rule, whatever its name; the name chooses the random numbers, with the seed.
    pub fn cohort_initializer_fill(
        initializer: *const cohort_initializer,
        name: *const c_char,
        array: *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Frees a handle; NULL does nothing.
    pub fn cohort_initializer_free(
        initializer: *mut cohort_initializer,
    );
    /// The same as COHORT_INVOKE_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's.
    pub fn cohort_invoke_options_init(
        options: *mut cohort_invoke_options,
        struct_size: usize,
    );
    /// The batch axis of a layout: where its first capital N stands. "NCHW": 0, "TNC": 1, no N: -1 (not batched), NULL: 0.
    pub fn cohort_layout_batch_axis(
        layout: *const c_char,
        out_axis: *mut i32,
    ) -> *mut cohort_error;
    /// How many handles are alive in this process, errors included. 0 at the end of a program that frees what it was given.
    /// Any thread.
    pub fn cohort_live_handles(
    ) -> usize;
    /// Makes a receiver of messages.
    pub fn cohort_log_create(
        lowest: cohort_log_level,
        callback: cohort_log_fn,
        ended: cohort_log_end_fn,
        user_data: *mut c_void,
        out_log: *mut *mut cohort_log,
    ) -> *mut cohort_error;
    /// Frees a receiver; NULL does nothing. No message begins to be delivered to it any more. Does not wait for a thread that
    /// is in the callback, so that a finaliser may call it.
    pub fn cohort_log_free(
        log: *mut cohort_log,
    );
    /// A handle on the live array of one device: cohort_group_array().
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
    /// cohort_group_assign_params() of the main group, and so of all buckets.
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
    /// Reads a bucket that has been made. Out parameters may be NULL.
    pub fn cohort_manager_bucket(
        manager: *const cohort_manager,
        index: usize,
        out_key: *mut *const c_char,
        out_group: *mut *mut cohort_group,
    ) -> *mut cohort_error;
    /// cohort_group_get_params() of the main group: the mean over the devices into given arrays.
    pub fn cohort_manager_copy_to(
        manager: *const cohort_manager,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
    ) -> *mut cohort_error;
    /// Makes a manager and binds its main group for training: gradients, all "write", for the parameters only. Logs the
    /// contexts.
    ///
    /// Returns: NULL, or what cohort_group_create() returns, and
    ///   COHORT_ERROR_INVALID_ARGUMENT  bucket symbols without default_bucket_key; a number of workloads other than
    ///                                  num_contexts
    ///   COHORT_ERROR_NAME              a bucket key comes twice
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
    /// Returns: NULL, or COHORT_ERROR_STATE before the first batch is loaded.
    pub fn cohort_manager_forward(
        manager: *mut cohort_manager,
        is_train: i32,
    ) -> *mut cohort_error;
    /// Frees a handle, waiting for queued work of groups that no one else holds; NULL does nothing.
    pub fn cohort_manager_free(
        manager: *mut cohort_manager,
    );
    /// Makes the bucket of a batch current, binding it first if it is new, and copies each slice to its device. Queued; runs
    /// nothing.
    ///
    ///
    /// Ownership: as for cohort_group_load().
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
    /// A handle on the main group. Groups of a manager are for looking and running: the manager alone binds them, and
    /// cohort_group_bind() and cohort_group_reshape() are COHORT_ERROR_STATE.
    pub fn cohort_manager_main_group(
        manager: *const cohort_manager,
        out_group: *mut *mut cohort_group,
    ) -> *mut cohort_error;
    /// What all buckets that have been made take of memory, on all devices: what they share is counted once. planned_bytes
    /// has what inference derives from parameters, too; intermediate_bytes is, on each device, that of the bucket that has
    /// most. struct_size of *out_info is set by the caller.
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
    /// The name of an entry; a gradient has its argument's. Lives as long as the manager.
    pub fn cohort_manager_name(
        manager: *const cohort_manager,
        list: cohort_group_list,
        index: usize,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// How many entries a list has.
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
    /// The same as COHORT_MANAGER_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's.
    pub fn cohort_manager_options_init(
        options: *mut cohort_manager_options,
        struct_size: usize,
    );
    /// cohort_group_set_monitor() of the main group. For a monitor with statistics: cohort_monitor_install_on_manager().
    ///
    /// Returns: NULL, or COHORT_ERROR_UNSUPPORTED for a manager with bucket symbols.
    pub fn cohort_manager_set_monitor(
        manager: *mut cohort_manager,
        callback: cohort_monitor_fn,
        user_data: *mut c_void,
        monitor_all: cohort_bool,
    ) -> *mut cohort_error;
    /// cohort_group_set_params() of the main group, and so of all buckets; unknown names are COHORT_ERROR_NAME.
    pub fn cohort_manager_set_params(
        manager: *mut cohort_manager,
        arg_params: *const cohort_arrays,
        aux_params: *const cohort_arrays,
    ) -> *mut cohort_error;
    /// cohort_group_set_states() of the current group. To carry states from batch to batch, whatever their buckets: load the
    /// next batch, set the states to the outputs that the devices had from the one before, run.
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
    /// Updates the parameters, which all buckets share, from the gradients of the current group: cohort_group_update().
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE before the first batch is loaded, or what cohort_group_update() returns.
    pub fn cohort_manager_update(
        manager: *mut cohort_manager,
        optimizer: *mut cohort_optimizer,
        mode: cohort_update_mode,
    ) -> *mut cohort_error;
    /// cohort_group_update_metric() of the current group. COHORT_ERROR_STATE before the first batch is loaded.
    pub fn cohort_manager_update_metric(
        manager: *mut cohort_manager,
        metric: *mut cohort_metric,
        labels: *const *mut cohort_ndarray,
        num_labels: usize,
    ) -> *mut cohort_error;
    /// cohort_group_update_metric_presliced() of the current group, likewise.
    pub fn cohort_manager_update_metric_presliced(
        manager: *mut cohort_manager,
        metric: *mut cohort_metric,
        num_slices: usize,
        labels: *const *mut cohort_ndarray,
        num_labels: usize,
    ) -> *mut cohort_error;
    /// Appends a metric to a composite one, which updates all its children. Not composite: COHORT_ERROR_STATE.
    pub fn cohort_metric_add(
        metric: *mut cohort_metric,
        child: *mut cohort_metric,
    ) -> *mut cohort_error;
    /// A handle on a child.
    pub fn cohort_metric_child(
        metric: *const cohort_metric,
        index: usize,
        out_metric: *mut *mut cohort_metric,
    ) -> *mut cohort_error;
    /// The sum and the number of instances behind a value. Out parameters may be NULL.
    pub fn cohort_metric_counters(
        metric: *const cohort_metric,
        index: usize,
        global: cohort_bool,
        out_sum: *mut f64,
        out_num: *mut f64,
    ) -> *mut cohort_error;
    /// Makes a metric.
    ///
    ///   "accuracy" ("acc")                 axis (1)
    ///   "top_k_accuracy" ("top_k_acc", "topkaccuracy")  top_k, above 1; its name gets the number appended
    ///   "f1", "mcc"                        average ("macro" or "micro"); two classes
    ///   "pcc"
    ///   "pearsonr" ("pearson-correlation", "pearsoncorrelation")  average ("macro" or "micro")
    ///   "perplexity"                       ignore_label (none), axis (-1)
    ///   "mae", "mse", "rmse"
    ///   "cross-entropy" ("cross_entropy", "crossentropy", "ce")             eps (1e-12)
    ///   "nll-loss" ("nll_loss", "negativeloglikelihood")                    eps (1e-12)
    ///   "loss" ("torch", "caffe")          the mean of the predictions; labels are not read
    ///   "confidence"                       num_classes, confidence_thresholds ("(0.5, 0.9)"). A value for each class c and,
    ///                                      within it, each threshold t, named "P(v=c|Conf\>t)": of the samples whose
    ///                                      prediction of c is above t, the share that is labelled c
    ///   "composite" ("compositeevalmetric")  see cohort_metric_add()
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME (no such metric or setting), COHORT_ERROR_INVALID_ARGUMENT (a value).
    pub fn cohort_metric_create(
        kind: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        out_metric: *mut *mut cohort_metric,
    ) -> *mut cohort_error;
    /// Makes a metric of a callback.
    pub fn cohort_metric_create_custom(
        name: *const c_char,
        callback: cohort_metric_fn,
        user_data: *mut c_void,
        allow_extra_outputs: cohort_bool,
        out_metric: *mut *mut cohort_metric,
    ) -> *mut cohort_error;
    /// Frees a handle; NULL does nothing.
    pub fn cohort_metric_free(
        metric: *mut cohort_metric,
    );
    /// How many children a composite metric has; 0 for others.
    pub fn cohort_metric_num_children(
        metric: *const cohort_metric,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// How many values the metric has: 1, more for "confidence", or those of all children together.
    pub fn cohort_metric_num_values(
        metric: *const cohort_metric,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// Forgets everything, globally too.
    pub fn cohort_metric_reset(
        metric: *mut cohort_metric,
    ) -> *mut cohort_error;
    /// Starts again, but keeps what counts globally.
    pub fn cohort_metric_reset_local(
        metric: *mut cohort_metric,
    ) -> *mut cohort_error;
    /// Chooses which labels and outputs the metric takes, by name and in this order, where they come with names.
    pub fn cohort_metric_set_names(
        metric: *mut cohort_metric,
        label_names: *const *const c_char,
        num_label_names: usize,
        output_names: *const *const c_char,
        num_output_names: usize,
    ) -> *mut cohort_error;
    /// Adds labels and predictions, pair by pair. Waits for them.
    ///
    /// Returns: NULL, or, with nothing added,
    ///   COHORT_ERROR_INVALID_ARGUMENT  numbers of labels and predictions that differ; more than two classes where two are
    ///                                  meant
    ///   COHORT_ERROR_SHAPE             a pair that does not fit
    ///   COHORT_ERROR_EXECUTION         work that an array waits for failed, or a callback did
    pub fn cohort_metric_update(
        metric: *mut cohort_metric,
        labels: *const *mut cohort_ndarray,
        num_labels: usize,
        preds: *const *mut cohort_ndarray,
        num_preds: usize,
    ) -> *mut cohort_error;
    /// As cohort_metric_update(), with names: see cohort_metric_set_names(). A name that is not there: COHORT_ERROR_NAME; an
    /// entry without an array: COHORT_ERROR_INVALID_ARGUMENT.
    pub fn cohort_metric_update_named(
        metric: *mut cohort_metric,
        labels: *const cohort_arrays,
        preds: *const cohort_arrays,
    ) -> *mut cohort_error;
    /// A name and its value. Out parameters may be NULL.
    pub fn cohort_metric_value(
        metric: *const cohort_metric,
        index: usize,
        global: cohort_bool,
        out_name: *mut *const c_char,
        out_value: *mut f64,
    ) -> *mut cohort_error;
    /// Makes a monitor.
    ///
    /// Returns: NULL, or COHORT_ERROR_INVALID_ARGUMENT (interval, a constant, a pattern that is none or too large; filter and
    ///   pattern both).
    pub fn cohort_monitor_create(
        interval: i64,
        options: *const cohort_monitor_options,
        out_monitor: *mut *mut cohort_monitor,
    ) -> *mut cohort_error;
    /// Reads an entry of the latest cohort_monitor_toc().
    pub fn cohort_monitor_entry(
        monitor: *const cohort_monitor,
        index: usize,
        out_step: *mut i64,
        out_name: *mut *const c_char,
        out_text: *mut *const c_char,
    ) -> *mut cohort_error;
    /// Frees a monitor; NULL does nothing. What it was installed on runs on unobserved.
    pub fn cohort_monitor_free(
        monitor: *mut cohort_monitor,
    );
    /// Watches an executor, which the monitor keeps alive. A monitor can watch several; entries do not say which.
    ///
    /// An executor has one callback: this replaces the one of cohort_executor_set_monitor() and that of a monitor installed
    /// before, which then reports the executor's arguments and auxiliary states only.
    pub fn cohort_monitor_install_on_executor(
        monitor: *mut cohort_monitor,
        executor: *mut cohort_executor,
    ) -> *mut cohort_error;
    /// The same for every device of a group, device 0 first. It follows the group when that is bound anew or reshaped.
    pub fn cohort_monitor_install_on_group(
        monitor: *mut cohort_monitor,
        group: *mut cohort_group,
    ) -> *mut cohort_error;
    /// The same for the main group of a manager.
    ///
    /// Returns: NULL, or COHORT_ERROR_UNSUPPORTED for a manager with bucket symbols.
    pub fn cohort_monitor_install_on_manager(
        monitor: *mut cohort_monitor,
        manager: *mut cohort_manager,
    ) -> *mut cohort_error;
    /// The same as COHORT_MONITOR_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's.
    pub fn cohort_monitor_options_init(
        options: *mut cohort_monitor_options,
        struct_size: usize,
    );
    /// How many batches were begun.
    pub fn cohort_monitor_step(
        monitor: *const cohort_monitor,
        out_step: *mut i64,
    ) -> *mut cohort_error;
    /// Begins a batch. If it is on the interval, waits for the work queued so far, and reporting starts.
    ///
    /// Returns: NULL, or COHORT_ERROR_EXECUTION if queued work failed; the batch is not begun then.
    pub fn cohort_monitor_tic(
        monitor: *mut cohort_monitor,
    ) -> *mut cohort_error;
    /// Ends a batch. Of one that is on the interval there are entries, read by index until the next successful call: what
    /// ran since cohort_monitor_tic(), in the order of execution, device after device; then the arguments and auxiliary
    /// states of each executor, in the order of installation, gradients not among them. Waits for the executors.
    ///
    /// Returns: NULL, or, with the batch not ended and the entries as before, COHORT_ERROR_EXECUTION (queued work or the
    ///   statistic failed), COHORT_ERROR_INVALID_ARGUMENT (the statistic gave no array).
    pub fn cohort_monitor_toc(
        monitor: *mut cohort_monitor,
        out_num_entries: *mut usize,
    ) -> *mut cohort_error;
    /// The values of an entry: what the statistic gave, in its order, without names.
    pub fn cohort_monitor_values(
        monitor: *const cohort_monitor,
        index: usize,
        out_values: *mut *mut cohort_arrays,
    ) -> *mut cohort_error;
    /// Makes a view of row `index`, from 0, along axis 0, without that axis; of a rank-1 array it has shape (1,).
    pub fn cohort_ndarray_at(
        array: *const cohort_ndarray,
        index: i64,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// The bytes that the elements take.
    pub fn cohort_ndarray_bytes(
        array: *const cohort_ndarray,
        out_bytes: *mut usize,
    ) -> *mut cohort_error;
    /// Makes a copy of another dtype on the same context, converting as cohort_ndarray_copy_to() does. Queued.
    pub fn cohort_ndarray_cast(
        array: *const cohort_ndarray,
        dtype: cohort_dtype,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Joins one array or more along an axis into a new one on the first array's context. Queued.
    ///
    /// Returns: NULL, or COHORT_ERROR_SHAPE (other lengths differ), COHORT_ERROR_DTYPE (dtypes differ).
    pub fn cohort_ndarray_concat(
        arrays: *const *mut cohort_ndarray,
        num_arrays: usize,
        axis: i32,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Reads the context.
    pub fn cohort_ndarray_context(
        array: *const cohort_ndarray,
        out_context: *mut cohort_context,
    ) -> *mut cohort_error;
    /// Makes a copy on a context. Queued.
    pub fn cohort_ndarray_copy(
        array: *const cohort_ndarray,
        context: *const cohort_context,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Copies an array into another of the same shape, on any contexts, converting to its dtype. Queued.
    ///
    /// Floats become integers by truncation toward zero (unspecified for NaN and out of range), and bool by != 0. An array
    /// onto itself does nothing; arrays that overlap otherwise give unspecified contents. Other shape: COHORT_ERROR_SHAPE.
    pub fn cohort_ndarray_copy_to(
        source: *const cohort_ndarray,
        target: *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// The address of the elements of an array on a CPU context, row-major. Waits for the work that writes the array.
    ///
    /// The address, of a view that of its first element, is good while any reference on the array exists. What the caller
    /// writes there is seen by work queued afterwards; while work that uses the array is queued, the caller does not write.
    ///
    /// Returns: NULL, or COHORT_ERROR_UNSUPPORTED on other contexts, COHORT_ERROR_EXECUTION.
    pub fn cohort_ndarray_data(
        array: *const cohort_ndarray,
        out_data: *mut *mut c_void,
    ) -> *mut cohort_error;
    /// Reads the dtype.
    pub fn cohort_ndarray_dtype(
        array: *const cohort_ndarray,
        out_dtype: *mut cohort_dtype,
    ) -> *mut cohort_error;
    /// Makes an array whose contents are unspecified until written.
    pub fn cohort_ndarray_empty(
        shape: *const i64,
        num_axes: i32,
        dtype: cohort_dtype,
        context: *const cohort_context,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Sets all elements to a value, converted to the dtype.
    pub fn cohort_ndarray_fill(
        array: *mut cohort_ndarray,
        value: f64,
    ) -> *mut cohort_error;
    /// As cohort_ndarray_fill_uniform(), normally distributed.
    pub fn cohort_ndarray_fill_normal(
        array: *mut cohort_ndarray,
        mean: f64,
        deviation: f64,
        seed: u64,
    ) -> *mut cohort_error;
    /// Sets all elements to independent random numbers, evenly from low up to high, high itself only where rounding to the
    /// dtype makes it. The same seed, shape and dtype give the same numbers on every context. Float dtypes only, else
    /// COHORT_ERROR_DTYPE.
    pub fn cohort_ndarray_fill_uniform(
        array: *mut cohort_ndarray,
        low: f64,
        high: f64,
        seed: u64,
    ) -> *mut cohort_error;
    /// Frees a handle, not the memory that others hold; NULL does nothing. Does not wait.
    pub fn cohort_ndarray_free(
        array: *mut cohort_ndarray,
    );
    /// Makes an array of another library's memory, without a copy where it is dense and row-major, else with one.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_UNSUPPORTED  another major version, or elements of a kind or lanes that no dtype here has
    ///   COHORT_ERROR_DEVICE       a device that no backend here serves
    pub fn cohort_ndarray_from_dlpack(
        managed: *mut c_void,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// As cohort_ndarray_from_dlpack(), of a `DLManagedTensor *`, which says neither its version nor what is read-only.
    pub fn cohort_ndarray_from_dlpack_unversioned(
        managed: *mut c_void,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Makes an array with a copy of host memory.
    pub fn cohort_ndarray_from_host(
        data: *const c_void,
        bytes: usize,
        shape: *const i64,
        num_axes: i32,
        dtype: cohort_dtype,
        context: *const cohort_context,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Makes an array of one value, converted to its dtype.
    pub fn cohort_ndarray_full(
        shape: *const i64,
        num_axes: i32,
        dtype: cohort_dtype,
        context: *const cohort_context,
        value: f64,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Copies all elements to host memory, waiting for the work that writes them.
    ///
    /// Returns: NULL, or COHORT_ERROR_EXECUTION.
    pub fn cohort_ndarray_read(
        array: *const cohort_ndarray,
        out_data: *mut c_void,
        bytes: usize,
    ) -> *mut cohort_error;
    /// Makes a view of the same memory with another shape of as many elements, else COHORT_ERROR_SHAPE.
    pub fn cohort_ndarray_reshape(
        array: *const cohort_ndarray,
        shape: *const i64,
        num_axes: i32,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// As cohort_ndarray_reshape(), but a shape of fewer elements is allowed too and views the first of them. No -1.
    pub fn cohort_ndarray_reshape_prefix(
        array: *const cohort_ndarray,
        shape: *const i64,
        num_axes: i32,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Reads the shape.
    pub fn cohort_ndarray_shape(
        array: *const cohort_ndarray,
        out_shape: *mut i64,
        capacity: usize,
        out_num_axes: *mut i32,
    ) -> *mut cohort_error;
    /// Makes a second handle on the same array, such as of one that a callback was lent.
    pub fn cohort_ndarray_share(
        array: *const cohort_ndarray,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// The number of elements: the product of the shape, 1 for a scalar.
    pub fn cohort_ndarray_size(
        array: *const cohort_ndarray,
        out_size: *mut i64,
    ) -> *mut cohort_error;
    /// Makes a view of rows \[begin, end) along axis 0: 0 \<= begin \<= end \<= length. A scalar has no rows.
    pub fn cohort_ndarray_slice(
        array: *const cohort_ndarray,
        begin: i64,
        end: i64,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Takes the range \[begin, end) along an axis: a view if that is axis 0, else a copy.
    pub fn cohort_ndarray_slice_axis(
        array: *const cohort_ndarray,
        axis: i32,
        begin: i64,
        end: i64,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Lends an array to another library as a DLPack `DLManagedTensorVersioned` of version 1. Waits for the work that writes
    /// it.
    pub fn cohort_ndarray_to_dlpack(
        array: *const cohort_ndarray,
        out_managed: *mut *mut c_void,
    ) -> *mut cohort_error;
    /// As cohort_ndarray_to_dlpack(), for libraries that know DLPack before its version 1 (NumPy before 2.1, PyTorch unless
    /// asked for more): out_managed is a `DLManagedTensor *`.
    pub fn cohort_ndarray_to_dlpack_unversioned(
        array: *const cohort_ndarray,
        out_managed: *mut *mut c_void,
    ) -> *mut cohort_error;
    /// Waits for the work that writes an array. COHORT_ERROR_EXECUTION if it failed.
    pub fn cohort_ndarray_wait(
        array: *const cohort_ndarray,
    ) -> *mut cohort_error;
    /// Makes an array of host memory that stays the caller's, without a copy.
    ///
    /// Queued work and views hold references: the memory must stay until the deleter is called, and keep its contents while
    /// work that reads it is queued.
    pub fn cohort_ndarray_wrap(
        data: *mut c_void,
        shape: *const i64,
        num_axes: i32,
        dtype: cohort_dtype,
        context: *const cohort_context,
        deleter: cohort_deleter_fn,
        user_data: *mut c_void,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Copies host memory to all elements, behind the work that uses them. When it returns, data is no longer needed.
    pub fn cohort_ndarray_write(
        array: *mut cohort_ndarray,
        data: *const c_void,
        bytes: usize,
    ) -> *mut cohort_error;
    /// Makes an array of zeros.
    pub fn cohort_ndarray_zeros(
        shape: *const i64,
        num_axes: i32,
        dtype: cohort_dtype,
        context: *const cohort_context,
        out_array: *mut *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// How many devices of a type this machine has.
    pub fn cohort_num_devices(
        device_type: cohort_device_type,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// An attribute. Out parameters may be NULL.
    pub fn cohort_operator_attr(
        op: *const c_char,
        index: usize,
        out_name: *mut *const c_char,
        out_type: *mut *const c_char,
        out_default: *mut *const c_char,
        out_doc: *mut *const c_char,
    ) -> *mut cohort_error;
    /// What an operator is. Out parameters may be NULL.
    pub fn cohort_operator_info(
        op: *const c_char,
        out_canonical: *mut *const c_char,
        out_doc: *mut *const c_char,
        out_num_attrs: *mut usize,
        out_num_inputs: *mut usize,
        out_num_outputs: *mut usize,
        out_count_attr: *mut *const c_char,
    ) -> *mut cohort_error;
    /// An input. Which ones a node has can depend on its attributes (no bias with `no_bias`). Out parameters may be NULL.
    pub fn cohort_operator_input(
        op: *const c_char,
        index: usize,
        out_name: *mut *const c_char,
        out_doc: *mut *const c_char,
        out_is_aux: *mut cohort_bool,
    ) -> *mut cohort_error;
    /// Applies an operator to arrays. Queued on the context of the inputs, which must be one (all host contexts count as one).
    ///
    /// Returns when the work is queued; on the host, work of a few microseconds may have been done by then. All that is
    /// applied on one context runs in the order of the calls; work of executors, groups and copies on the same arrays comes
    /// before or after it as the calls did. The first call for an operator with certain attributes, as they are written, and
    /// shapes and dtypes compiles it; the programs of the latest 1,024 such combinations for each context are kept, so that
    /// calls in a loop cost little. Beside them up to 64 MiB of working memory for each context are kept until the last
    /// handle is freed, when the threads of such work end, too.
    ///
    ///
    /// Ownership: the work holds references on the arrays; the caller may free its handles at once. Memory lent by
    /// cohort_ndarray_wrap() must keep its contents until an output has been waited for.
    ///
    /// Threads: any, at the same time, too, on different arrays; or on the same ones if none of them is written.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_NAME              no such operator or attribute
    ///   COHORT_ERROR_INVALID_ARGUMENT  a wrong number of inputs or outputs; an attribute out of its range
    ///   COHORT_ERROR_SHAPE, _DTYPE     inputs that do not fit together, or outputs that do not fit what is inferred
    ///   COHORT_ERROR_DEVICE            arrays on several contexts
    ///   COHORT_ERROR_UNSUPPORTED       no kernel for this device and dtype
    ///   COHORT_ERROR_OUT_OF_MEMORY     no room for new outputs or working memory
    ///   COHORT_ERROR_EXECUTION         an input is known not to have been written
    /// and nothing was queued. Errors of the queued work come out as COHORT_ERROR_EXECUTION wherever an output, or an input
    /// that is written, is read or waited for, until it is written again; what is computed from it fails, too. Work that does
    /// not depend on it is not concerned, and cohort_wait_all() does not tell of it.
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
    /// A name of that list, which is sorted.
    pub fn cohort_operator_name(
        index: usize,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// How many operator names there are, aliases included.
    pub fn cohort_operator_num(
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// The name of an output, as it has it with all attributes at their defaults.
    pub fn cohort_operator_output(
        op: *const c_char,
        index: usize,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// Makes an optimizer.
    ///
    /// For all: learning_rate; wd, weight decay (0); rescale_grad, which gradients are multiplied by (1); clip_gradient,
    /// their largest absolute value after that (none); begin_num_update (0); multi_precision, a float32 copy of float16
    /// parameters ("False"). Gradients are sums over the batch where the loss does not say otherwise: rescale_grad is then
    /// 1 / batch size, which the caller sets. Then:
    ///
    ///   "sgd"      learning_rate 0.01, momentum 0
    ///   "nag"      learning_rate 0.01, momentum 0
    ///   "adam"     learning_rate 0.001, beta1 0.9, beta2 0.999, epsilon 1e-8
    ///   "adamw"    the same; weight decay apart from the gradient
    ///   "rmsprop"  learning_rate 0.001, gamma1 0.9, gamma2 0.9, epsilon 1e-8, centered 0, clip_weights none
    ///   "adagrad"  learning_rate 0.01, epsilon 1e-7, which MXNet spells eps here: both are taken, for all optimizers
    ///   "signum"   learning_rate 0.01, momentum 0.9, wd_lh 0; goes by the sign of the gradient
    ///
    /// "sgd" and "adam" take MXNet's lazy_update as well, which is for sparse gradients and does nothing here.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME (no such optimizer or setting), COHORT_ERROR_INVALID_ARGUMENT (a value).
    pub fn cohort_optimizer_create(
        name: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        out_optimizer: *mut *mut cohort_optimizer,
    ) -> *mut cohort_error;
    /// Frees a handle; NULL does nothing.
    pub fn cohort_optimizer_free(
        optimizer: *mut cohort_optimizer,
    );
    /// Reads a setting as a number: any key that cohort_optimizer_create() takes, and "num_update", the number of updates of
    /// the parameter updated most often. "learning_rate" is what the schedule gives for the next update. "clip_gradient" is
    /// -1 if there is none. Unknown: COHORT_ERROR_NAME.
    pub fn cohort_optimizer_get(
        optimizer: *const cohort_optimizer,
        key: *const c_char,
        out_value: *mut f64,
    ) -> *mut cohort_error;
    /// Reads states and counts that the same kind of optimizer saved. They go to the parameters' contexts at the next
    /// update.
    ///
    /// Returns: NULL, or COHORT_ERROR_IO, or COHORT_ERROR_FORMAT: damaged, or of another kind of optimizer. Nothing changes
    ///   then.
    pub fn cohort_optimizer_load_states(
        optimizer: *mut cohort_optimizer,
        path: *const c_char,
    ) -> *mut cohort_error;
    /// As cohort_optimizer_load_states(), from `bytes` bytes of memory, which are not kept.
    pub fn cohort_optimizer_load_states_memory(
        optimizer: *mut cohort_optimizer,
        data: *const c_void,
        bytes: usize,
    ) -> *mut cohort_error;
    /// The multipliers that hold for a parameter. Not set: learning rate 1; weight decay 1 for names that end in `_weight`
    /// or `_gamma`, else 0. Out parameters may be NULL.
    pub fn cohort_optimizer_mult(
        optimizer: *const cohort_optimizer,
        param: *const c_char,
        out_lr_mult: *mut f64,
        out_wd_mult: *mut f64,
    ) -> *mut cohort_error;
    /// Writes states and counts to a file, whole or not at all, so that training can go on later exactly as it would have.
    ///  Waits for the states. COHORT_ERROR_IO names the file.
    pub fn cohort_optimizer_save_states(
        optimizer: *const cohort_optimizer,
        path: *const c_char,
    ) -> *mut cohort_error;
    /// As cohort_optimizer_save_states(), into memory: out_data NULL asks for the size.
    pub fn cohort_optimizer_save_states_memory(
        optimizer: *const cohort_optimizer,
        out_data: *mut c_void,
        capacity: usize,
        out_bytes: *mut usize,
    ) -> *mut cohort_error;
    /// Changes a setting from the next update on: any key that cohort_optimizer_create() takes with a number.
    ///
    /// Returns: NULL, or COHORT_ERROR_NAME; COHORT_ERROR_STATE for "learning_rate" while a schedule decides it.
    pub fn cohort_optimizer_set(
        optimizer: *mut cohort_optimizer,
        key: *const c_char,
        value: f64,
    ) -> *mut cohort_error;
    /// Lets a schedule decide the learning rate from the number of updates, starting from the present learning rate.
    ///
    /// For all: warmup_steps (0), warmup_begin_lr (0), warmup_mode ("linear" or "constant"). Then:
    ///
    ///   "constant"
    ///   "factor"       every `step` updates times `factor` (1), not below stop_factor_lr (1e-8)
    ///   "multifactor"  times `factor` (1) at each of the updates in `step`, "(100, 200)"
    ///   "poly"         from base to final_lr (0) over max_update updates with power `pwr` (2)
    ///   "cosine"       from base to final_lr (0) over max_update updates
    pub fn cohort_optimizer_set_lr_schedule(
        optimizer: *mut cohort_optimizer,
        name: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
    ) -> *mut cohort_error;
    /// Sets the multipliers of a parameter's learning rate and weight decay. Negative: as if not set.
    pub fn cohort_optimizer_set_mult(
        optimizer: *mut cohort_optimizer,
        param: *const c_char,
        lr_mult: f64,
        wd_mult: f64,
    ) -> *mut cohort_error;
    /// Updates one parameter from its gradient. Queued.
    ///
    /// Returns: NULL, or COHORT_ERROR_SHAPE, COHORT_ERROR_DTYPE, COHORT_ERROR_DEVICE, or COHORT_ERROR_EXECUTION: what it would
    ///   read is known to be bad. Then it is not counted. If it fails later, weight and states are bad until they are written
    ///   again, the states by cohort_optimizer_load_states().
    pub fn cohort_optimizer_update(
        optimizer: *mut cohort_optimizer,
        param: *const c_char,
        copy: usize,
        weight: *mut cohort_ndarray,
        grad: *mut cohort_ndarray,
    ) -> *mut cohort_error;
    /// Takes the multipliers of a symbol's variables: their `__lr_mult__` and `__wd_mult__`. Multipliers set by
    /// cohort_optimizer_set_mult() win.
    pub fn cohort_optimizer_use_symbol(
        optimizer: *mut cohort_optimizer,
        symbol: *const cohort_symbol,
    ) -> *mut cohort_error;
    /// The same as COHORT_RESHAPE_OPTIONS_INIT, for callers without a C compiler; struct_size is the caller's.
    pub fn cohort_reshape_options_init(
        options: *mut cohort_reshape_options,
        struct_size: usize,
    );
    /// Sets the one receiver that needs no handle, or where messages go without any. For a program; a library in it, or the
    /// binding of a language, makes a receiver of its own, lest they take the program's.
    ///
    ///
    /// Any thread. When it returns, the previous callback is not running on another thread and will not be called again.
    pub fn cohort_set_log(
        lowest: cohort_log_level,
        callback: cohort_log_fn,
        user_data: *mut c_void,
    ) -> *mut cohort_error;
    /// Splits a batch by workloads, as a group does.
    ///
    /// Returns: NULL, or COHORT_ERROR_INVALID_ARGUMENT: a slice would be empty (the error gives batch size, number of
    ///   contexts and workloads), or a workload is no such number.
    pub fn cohort_split_slices(
        batch_size: i64,
        workload: *const f64,
        num_contexts: usize,
        rounding: cohort_rounding,
        out_begin: *mut i64,
        out_end: *mut i64,
    ) -> *mut cohort_error;
    /// An attribute of the head's node; *out_value is NULL if it has none of that key, or if there are several heads.
    pub fn cohort_symbol_attr(
        symbol: *const cohort_symbol,
        key: *const c_char,
        out_value: *mut *const c_char,
    ) -> *mut cohort_error;
    /// An attribute of that list, sorted by key within a node. Out parameters may be NULL.
    pub fn cohort_symbol_attr_at(
        symbol: *const cohort_symbol,
        all: cohort_bool,
        index: usize,
        out_node: *mut *const c_char,
        out_key: *mut *const c_char,
        out_value: *mut *const c_char,
    ) -> *mut cohort_error;
    /// Makes a symbol whose heads are the inputs of the head nodes. *out_symbol is NULL if these have none.
    pub fn cohort_symbol_children(
        symbol: *const cohort_symbol,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Replaces variables by other symbols, in a copy.
    pub fn cohort_symbol_compose(
        symbol: *const cohort_symbol,
        names: *const *const c_char,
        inputs: *const *mut cohort_symbol,
        num_inputs: usize,
        name: *const c_char,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Makes a copy that shares no node with the original.
    pub fn cohort_symbol_copy(
        symbol: *const cohort_symbol,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Makes a node of an operator.
    ///
    /// Inputs that are not given become variables called `\<name\>_\<input\>`, as in `fc1_weight`.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_NAME              no such operator, attribute or input; an input given twice; an attribute missing
    ///   COHORT_ERROR_INVALID_ARGUMENT  an attribute out of its range; too many inputs; an input of several outputs
    pub fn cohort_symbol_create(
        op: *const c_char,
        name: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        inputs: *const *mut cohort_symbol,
        input_names: *const *const c_char,
        num_inputs: usize,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Frees a handle; NULL does nothing.
    pub fn cohort_symbol_free(
        symbol: *mut cohort_symbol,
    );
    /// Reads a symbol from JSON as MXNet 0.8 to 1.9 wrote it, bringing older forms up to date.
    ///
    /// Returns: NULL, or COHORT_ERROR_FORMAT: no such JSON, indices out of range, cycles, operators that are not known (the
    ///   error names all of them, each with its nodes) or an attribute that is not (it names node and operator).
    pub fn cohort_symbol_from_json(
        json: *const c_char,
        bytes: usize,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Makes a symbol of all heads of the given ones, in order; the same head may come twice.
    pub fn cohort_symbol_group(
        symbols: *const *mut cohort_symbol,
        num_symbols: usize,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// As cohort_symbol_infer_shape(), for dtypes: known's shapes are not read; contradictions are COHORT_ERROR_DTYPE.
    pub fn cohort_symbol_infer_dtype(
        symbol: *const cohort_symbol,
        known: *const cohort_descs,
        partial: cohort_bool,
        out_complete: *mut cohort_bool,
        out_args: *mut *mut cohort_descs,
        out_outputs: *mut *mut cohort_descs,
        out_aux: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// Infers the shapes of all arguments, outputs and auxiliary states.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_NAME   a known name is neither argument nor auxiliary state
    ///   COHORT_ERROR_SHAPE  shapes contradict (the error names the node, what it was given and what it infers)
    pub fn cohort_symbol_infer_shape(
        symbol: *const cohort_symbol,
        known: *const cohort_descs,
        partial: cohort_bool,
        out_complete: *mut cohort_bool,
        out_args: *mut *mut cohort_descs,
        out_outputs: *mut *mut cohort_descs,
        out_aux: *mut *mut cohort_descs,
    ) -> *mut cohort_error;
    /// Makes a symbol whose heads are all outputs of all nodes that a user can see, variables included, in list order.
    pub fn cohort_symbol_internals(
        symbol: *const cohort_symbol,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Reads a JSON file as cohort_symbol_from_json() does. A missing or unreadable file: COHORT_ERROR_IO.
    pub fn cohort_symbol_load(
        path: *const c_char,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// The name of the head's node; *out_name is NULL if there are several heads.
    pub fn cohort_symbol_name(
        symbol: *const cohort_symbol,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// A name of a list. Output names: a variable's own; `\<node\>_output`; `\<node\>_\<output\>` if the operator has several.
    pub fn cohort_symbol_name_at(
        symbol: *const cohort_symbol,
        list: cohort_symbol_list,
        index: usize,
        out_name: *mut *const c_char,
    ) -> *mut cohort_error;
    /// How many attributes the head's node has (`all` 0), or all nodes together have (`all` 1).
    pub fn cohort_symbol_num_attrs(
        symbol: *const cohort_symbol,
        all: cohort_bool,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// The length of a list of names: `list` is a COHORT_SYMBOL_ constant.
    pub fn cohort_symbol_num_names(
        symbol: *const cohort_symbol,
        list: cohort_symbol_list,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// How many nodes the symbol's JSON has, variables included.
    pub fn cohort_symbol_num_nodes(
        symbol: *const cohort_symbol,
        out_num: *mut usize,
    ) -> *mut cohort_error;
    /// Makes a symbol of one head.
    pub fn cohort_symbol_output(
        symbol: *const cohort_symbol,
        index: usize,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// As cohort_symbol_output(), by output name. Unknown or ambiguous: COHORT_ERROR_NAME.
    pub fn cohort_symbol_output_named(
        symbol: *const cohort_symbol,
        name: *const c_char,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Writes a JSON file, whole or not at all. COHORT_ERROR_IO names the file.
    pub fn cohort_symbol_save(
        symbol: *const cohort_symbol,
        path: *const c_char,
    ) -> *mut cohort_error;
    /// Sets attributes of the head's node, for this handle: symbols composed from it before keep the ones they had.
    ///
    /// Returns: NULL, or COHORT_ERROR_STATE if there are several heads; nothing is set then.
    pub fn cohort_symbol_set_attrs(
        symbol: *mut cohort_symbol,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
    ) -> *mut cohort_error;
    /// The symbol as JSON in the form of MXNet 1.9. The text belongs to the symbol's handle.
    pub fn cohort_symbol_to_json(
        symbol: *const cohort_symbol,
        out_json: *mut *const c_char,
    ) -> *mut cohort_error;
    /// Makes a variable.
    ///
    ///
    /// What the library reads of them, at the call that uses it: `__shape__` "(4, 5)", 0 where not known; `__dtype__` the
    /// number of a COHORT_DTYPE_ constant, "2"; `__storage_type__` the same of COHORT_STORAGE_; `__layout__` "TNC";
    /// `__lr_mult__` and `__wd_mult__` "0.5"; `__ctx_group__` any word, see cohort_group_options; `__init__`, see
    /// cohort_initializer_apply(). All others are kept for the caller, and in JSON.
    pub fn cohort_symbol_variable(
        name: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        num_attrs: usize,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// Computes the gradients of the marked arrays that heads were made from, and writes or adds them as marked. Queued: what
    /// fails comes out where a gradient is read.
    ///
    /// Of the sum of all heads, each multiplied by its head gradient. A marked array that no head was made from keeps its
    /// gradient; one that a head was made from, but by operators through which no gradient flows (BlockGrad, argmax), gets
    /// zeros. With create_graph the gradient arrays are themselves recorded, whether the tape is paused or not.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_STATE             a head is not in a recorded graph, maybe because a backward pass has been through it;
    ///                                  an array that is needed was overwritten; nothing was computed
    ///   COHORT_ERROR_SHAPE, _DTYPE, _DEVICE  a head gradient that does not fit its head; nothing was computed
    ///   COHORT_ERROR_UNSUPPORTED       create_graph has been, and the gradient of an operator has no gradient itself, as of
    ///                                  RNN, CTCLoss, samplers and Correlation (the error names it)
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
    pub fn cohort_tape_free(
        tape: *mut cohort_tape,
    );
    /// Records a function that the host has computed itself, with a callback for its gradients.
    ///
    /// Does nothing but call `release` if the tape is paused or knows none of the inputs.
    ///
    /// Returns: NULL, or an error as of cohort_tape_invoke(); then neither callback is ever called.
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
    /// As cohort_tape_backward(), for some arrays alone, whose gradients come out as new arrays; those of marks are not
    /// touched.
    ///
    /// Returns: As cohort_tape_backward(), and COHORT_ERROR_STATE for a variable that is not in a recorded graph.
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
    /// Returns: NULL, or an error as there, or
    ///   COHORT_ERROR_INVALID_ARGUMENT  an input is a part of an array that the tape knows; an output is a marked array and
    ///                                  the operator would be recorded
    ///   COHORT_ERROR_STATE             an input was overwritten after it had been recorded
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
    /// Marks arrays that want gradients. From here on each is a variable: gradients flow to it, and not to what it was made
    /// from. Marking a marked array replaces its gradient and request; COHORT_GRAD_NULL takes the mark away.
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
    /// Pauses or resumes recording: while paused, operators are applied and nothing else.
    pub fn cohort_tape_set_recording(
        tape: *mut cohort_tape,
        recording: cohort_bool,
        out_previous: *mut cohort_bool,
    ) -> *mut cohort_error;
    /// Sets the mode in which operators are applied from now on, recorded or not.
    ///
    /// The gradient of an operator is that of the mode in which it was applied, whatever the mode is when backward runs: a
    /// backward pass has no mode of its own, as MXNet's train_mode has it.
    pub fn cohort_tape_set_training(
        tape: *mut cohort_tape,
        training: cohort_bool,
        out_previous: *mut cohort_bool,
    ) -> *mut cohort_error;
    /// The symbol of what an array was made from: a variable "var0", "var1", ... for each marked array and each constant, in
    /// the order in which they were first used.
    ///
    /// Returns: NULL, or
    ///   COHORT_ERROR_STATE        the array is not in a recorded graph
    ///   COHORT_ERROR_UNSUPPORTED  it was made by a function of the host's, or by a gradient that is no operator
    pub fn cohort_tape_symbol(
        tape: *mut cohort_tape,
        array: *mut cohort_ndarray,
        out_symbol: *mut *mut cohort_symbol,
    ) -> *mut cohort_error;
    /// The version of the library that is loaded, "MAJOR.MINOR.PATCH"; COHORT_VERSION is that of the header.
    pub fn cohort_version(
    ) -> *const c_char;
    /// The version of the library that is loaded as one number: MAJOR * 10000 + MINOR * 100 + PATCH.
    pub fn cohort_version_number(
    ) -> i32;
    /// Waits until all work queued so far on all devices is done, whoever queued it.
    ///
    /// Returns: NULL, or what failed of it (COHORT_ERROR_EXECUTION). That is not taken from the executor or group whose work it
    ///   was: it comes out there as well, at the next call that waits for it.
    pub fn cohort_wait_all(
    ) -> *mut cohort_error;
}

/// Sizes and offsets as the C compiler has them on 64-bit systems.
#[cfg(test)]
mod layout {
    use super::*;

    #[test]
    fn structs_are_laid_out_as_in_c() {
        assert_eq!(std::mem::size_of::<cohort_backward_options>(), 16);
        let zero: cohort_backward_options = unsafe { std::mem::zeroed() };
        let start = &zero as *const _ as usize;
        assert_eq!(&zero.struct_size as *const _ as usize - start, 0);
        assert_eq!(&zero.retain_graph as *const _ as usize - start, 8);
        assert_eq!(&zero.create_graph as *const _ as usize - start, 12);
        assert_eq!(std::mem::size_of::<cohort_context>(), 8);
        let zero: cohort_context = unsafe { std::mem::zeroed() };
        let start = &zero as *const _ as usize;
        assert_eq!(&zero.device_type as *const _ as usize - start, 0);
        assert_eq!(&zero.device_id as *const _ as usize - start, 4);
        assert_eq!(std::mem::size_of::<cohort_custom_op>(), 88);
        let zero: cohort_custom_op = unsafe { std::mem::zeroed() };
        let start = &zero as *const _ as usize;
        assert_eq!(&zero.struct_size as *const _ as usize - start, 0);
        assert_eq!(&zero.declare as *const _ as usize - start, 8);
        assert_eq!(&zero.infer_shape as *const _ as usize - start, 16);
        assert_eq!(&zero.infer_dtype as *const _ as usize - start, 24);
        assert_eq!(&zero.create as *const _ as usize - start, 32);
        assert_eq!(&zero.forward as *const _ as usize - start, 40);
        assert_eq!(&zero.backward as *const _ as usize - start, 48);
        assert_eq!(&zero.release as *const _ as usize - start, 56);
        assert_eq!(&zero.ended as *const _ as usize - start, 64);
        assert_eq!(&zero.user_data as *const _ as usize - start, 72);
        assert_eq!(&zero.ignores_head_grads as *const _ as usize - start, 80);
        assert_eq!(&zero.any_thread as *const _ as usize - start, 84);
        assert_eq!(std::mem::size_of::<cohort_executor_options>(), 168);
        let zero: cohort_executor_options = unsafe { std::mem::zeroed() };
        let start = &zero as *const _ as usize;
        assert_eq!(&zero.struct_size as *const _ as usize - start, 0);
        assert_eq!(&zero.ctx_group_names as *const _ as usize - start, 8);
        assert_eq!(&zero.ctx_group_contexts as *const _ as usize - start, 16);
        assert_eq!(&zero.num_ctx_groups as *const _ as usize - start, 24);
        assert_eq!(&zero.shared_executor as *const _ as usize - start, 32);
        assert_eq!(&zero.num_threads as *const _ as usize - start, 40);
        assert_eq!(&zero.seed as *const _ as usize - start, 48);
        assert_eq!(&zero.grad_req as *const _ as usize - start, 56);
        assert_eq!(&zero.grad_req_list as *const _ as usize - start, 64);
        assert_eq!(&zero.grad_req_names as *const _ as usize - start, 72);
        assert_eq!(&zero.num_grad_reqs as *const _ as usize - start, 80);
        assert_eq!(&zero.arg_contexts as *const _ as usize - start, 88);
        assert_eq!(&zero.grad_contexts as *const _ as usize - start, 96);
        assert_eq!(&zero.aux_contexts as *const _ as usize - start, 104);
        assert_eq!(&zero.storage_names as *const _ as usize - start, 112);
        assert_eq!(&zero.storage_types as *const _ as usize - start, 120);
        assert_eq!(&zero.num_storage_types as *const _ as usize - start, 128);
        assert_eq!(&zero.shared_arg_names as *const _ as usize - start, 136);
        assert_eq!(&zero.num_shared_arg_names as *const _ as usize - start, 144);
        assert_eq!(&zero.shared_data as *const _ as usize - start, 152);
        assert_eq!(&zero.strict_dtypes as *const _ as usize - start, 160);
        assert_eq!(std::mem::size_of::<cohort_group_options>(), 240);
        let zero: cohort_group_options = unsafe { std::mem::zeroed() };
        let start = &zero as *const _ as usize;
        assert_eq!(&zero.struct_size as *const _ as usize - start, 0);
        assert_eq!(&zero.workload as *const _ as usize - start, 8);
        assert_eq!(&zero.num_workloads as *const _ as usize - start, 16);
        assert_eq!(&zero.rounding as *const _ as usize - start, 24);
        assert_eq!(&zero.slices as *const _ as usize - start, 32);
        assert_eq!(&zero.num_slices as *const _ as usize - start, 40);
        assert_eq!(&zero.inputs_need_grad as *const _ as usize - start, 48);
        assert_eq!(&zero.fixed_param_names as *const _ as usize - start, 56);
        assert_eq!(&zero.num_fixed_param_names as *const _ as usize - start, 64);
        assert_eq!(&zero.grad_req as *const _ as usize - start, 72);
        assert_eq!(&zero.grad_req_list as *const _ as usize - start, 80);
        assert_eq!(&zero.grad_req_names as *const _ as usize - start, 88);
        assert_eq!(&zero.num_grad_reqs as *const _ as usize - start, 96);
        assert_eq!(&zero.state_names as *const _ as usize - start, 104);
        assert_eq!(&zero.num_state_names as *const _ as usize - start, 112);
        assert_eq!(&zero.input_dtype_names as *const _ as usize - start, 120);
        assert_eq!(&zero.input_dtypes as *const _ as usize - start, 128);
        assert_eq!(&zero.num_input_dtypes as *const _ as usize - start, 136);
        assert_eq!(&zero.shared_group as *const _ as usize - start, 144);
        assert_eq!(&zero.ctx_group_names as *const _ as usize - start, 152);
        assert_eq!(&zero.ctx_group_contexts as *const _ as usize - start, 160);
        assert_eq!(&zero.num_ctx_groups as *const _ as usize - start, 168);
        assert_eq!(&zero.contexts_per_ctx_group as *const _ as usize - start, 176);
        assert_eq!(&zero.num_threads as *const _ as usize - start, 184);
        assert_eq!(&zero.gradient_bucket_bytes as *const _ as usize - start, 192);
        assert_eq!(&zero.seed as *const _ as usize - start, 200);
        assert_eq!(&zero.log as *const _ as usize - start, 208);
        assert_eq!(&zero.log_user_data as *const _ as usize - start, 216);
        assert_eq!(&zero.arg_names as *const _ as usize - start, 224);
        assert_eq!(&zero.num_arg_names as *const _ as usize - start, 232);
        assert_eq!(std::mem::size_of::<cohort_invoke_options>(), 32);
        let zero: cohort_invoke_options = unsafe { std::mem::zeroed() };
        let start = &zero as *const _ as usize;
        assert_eq!(&zero.struct_size as *const _ as usize - start, 0);
        assert_eq!(&zero.context as *const _ as usize - start, 8);
        assert_eq!(&zero.seed as *const _ as usize - start, 16);
        assert_eq!(&zero.is_train as *const _ as usize - start, 24);
        assert_eq!(std::mem::size_of::<cohort_manager_options>(), 120);
        let zero: cohort_manager_options = unsafe { std::mem::zeroed() };
        let start = &zero as *const _ as usize;
        assert_eq!(&zero.struct_size as *const _ as usize - start, 0);
        assert_eq!(&zero.workload as *const _ as usize - start, 8);
        assert_eq!(&zero.num_workloads as *const _ as usize - start, 16);
        assert_eq!(&zero.default_bucket_key as *const _ as usize - start, 24);
        assert_eq!(&zero.bucket_keys as *const _ as usize - start, 32);
        assert_eq!(&zero.bucket_symbols as *const _ as usize - start, 40);
        assert_eq!(&zero.num_buckets as *const _ as usize - start, 48);
        assert_eq!(&zero.bucket_symbol as *const _ as usize - start, 56);
        assert_eq!(&zero.bucket_symbol_user_data as *const _ as usize - start, 64);
        assert_eq!(&zero.num_threads as *const _ as usize - start, 72);
        assert_eq!(&zero.seed as *const _ as usize - start, 80);
        assert_eq!(&zero.log as *const _ as usize - start, 88);
        assert_eq!(&zero.log_user_data as *const _ as usize - start, 96);
        assert_eq!(&zero.state_names as *const _ as usize - start, 104);
        assert_eq!(&zero.num_state_names as *const _ as usize - start, 112);
        assert_eq!(std::mem::size_of::<cohort_memory_info>(), 48);
        let zero: cohort_memory_info = unsafe { std::mem::zeroed() };
        let start = &zero as *const _ as usize;
        assert_eq!(&zero.struct_size as *const _ as usize - start, 0);
        assert_eq!(&zero.planned_bytes as *const _ as usize - start, 8);
        assert_eq!(&zero.intermediate_bytes as *const _ as usize - start, 16);
        assert_eq!(&zero.argument_bytes as *const _ as usize - start, 24);
        assert_eq!(&zero.gradient_bytes as *const _ as usize - start, 32);
        assert_eq!(&zero.output_bytes as *const _ as usize - start, 40);
        assert_eq!(std::mem::size_of::<cohort_monitor_options>(), 64);
        let zero: cohort_monitor_options = unsafe { std::mem::zeroed() };
        let start = &zero as *const _ as usize;
        assert_eq!(&zero.struct_size as *const _ as usize - start, 0);
        assert_eq!(&zero.pattern as *const _ as usize - start, 8);
        assert_eq!(&zero.pattern_mode as *const _ as usize - start, 16);
        assert_eq!(&zero.all_in_toc as *const _ as usize - start, 20);
        assert_eq!(&zero.sort as *const _ as usize - start, 24);
        assert_eq!(&zero.monitor_all as *const _ as usize - start, 28);
        assert_eq!(&zero.statistic as *const _ as usize - start, 32);
        assert_eq!(&zero.statistic_user_data as *const _ as usize - start, 40);
        assert_eq!(&zero.filter as *const _ as usize - start, 48);
        assert_eq!(&zero.filter_user_data as *const _ as usize - start, 56);
        assert_eq!(std::mem::size_of::<cohort_reshape_options>(), 48);
        let zero: cohort_reshape_options = unsafe { std::mem::zeroed() };
        let start = &zero as *const _ as usize;
        assert_eq!(&zero.struct_size as *const _ as usize - start, 0);
        assert_eq!(&zero.partial_shaping as *const _ as usize - start, 8);
        assert_eq!(&zero.allow_up_sizing as *const _ as usize - start, 12);
        assert_eq!(&zero.context as *const _ as usize - start, 16);
        assert_eq!(&zero.ctx_group_names as *const _ as usize - start, 24);
        assert_eq!(&zero.ctx_group_contexts as *const _ as usize - start, 32);
        assert_eq!(&zero.num_ctx_groups as *const _ as usize - start, 40);
    }
}
