// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.


/// The version of the library that this was made for.
pub const COHORT_VERSION: &str = "0.1.0";
/// Yes and no: 1 and 0.
pub type cohort_bool = i32;
/// The most axes that an array can have. A buffer of this many int64_t holds any shape.
pub const COHORT_MAX_AXES: i32 = 32;
/// As a value of num_axes: the shape is not known. An axis of unknown length has length 0 where a function says so.
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

/// How backward treats the gradient of an argument; "null", "write" and "add" as text.
pub type cohort_grad_req = i32;
/// there is none
pub const COHORT_GRAD_NULL: cohort_grad_req = 0;
/// each backward overwrites it
pub const COHORT_GRAD_WRITE: cohort_grad_req = 1;
/// each backward adds to it; the caller sets it to zero
pub const COHORT_GRAD_ADD: cohort_grad_req = 3;

/// Storage types. Only the default one is supported; the others are known so that they can be refused by name.
pub type cohort_storage_type = i32;
pub const COHORT_STORAGE_UNDEFINED: cohort_storage_type = -1;
pub const COHORT_STORAGE_DEFAULT: cohort_storage_type = 0;
pub const COHORT_STORAGE_ROW_SPARSE: cohort_storage_type = 1;
pub const COHORT_STORAGE_CSR: cohort_storage_type = 2;

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

/// a record of applied operators, for gradients
#[repr(C)]
pub struct cohort_tape {
    _private: [u8; 0],
}

/// ranges of values, for inference in int8
#[repr(C)]
pub struct cohort_calibration {
    _private: [u8; 0],
}

/// a receiver of the library's messages
#[repr(C)]
pub struct cohort_log {
    _private: [u8; 0],
}

/// a record of what the process does, with times
#[repr(C)]
pub struct cohort_trace {
    _private: [u8; 0],
}

/// One device: "cpu(0)" is {COHORT_DEVICE_CPU, 0}. Two contexts are equal if both fields are. Every id from 0 is a CPU
/// device, each with workers of its own; a GPU id must exist. The struct never grows. A function that takes a pointer to
/// one context takes NULL as cpu(0).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_context {
    /// COHORT_DEVICE_ constant
    pub device_type: cohort_device_type,
    /// from 0
    pub device_id: i32,
}

/// The memory that an executor, or one device of a group, takes. struct_size is set by the caller.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cohort_memory_info {
    /// sizeof(cohort_memory_info) where the caller was compiled
    pub struct_size: usize,
    /// the planned pool: intermediate values and workspaces, after reuse
    pub planned_bytes: usize,
    /// the bytes of all intermediate arrays without reuse
    pub intermediate_bytes: usize,
    /// arguments and auxiliary states
    pub argument_bytes: usize,
    /// gradient arrays
    pub gradient_bytes: usize,
    /// outputs
    pub output_bytes: usize,
    /// The part of planned_bytes for intermediate values when they take most, and for what forward saves for backward. It excludes workspaces, and copies of arguments and gradients in a layout or type that a kernel wants. MXNet's `Total X MB allocated` counts the same.
    pub value_bytes: usize,
}

extern "C" {
    /// How many handles are alive in this process, errors included. 0 at the end of a program that frees all its handles.
    /// Any thread may call it.
    pub fn cohort_live_handles(
    ) -> usize;
}
