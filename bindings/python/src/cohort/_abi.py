# SPDX-License-Identifier: Apache-2.0
# Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
"""The constants, structs and callbacks of Cohort's C interface; its functions are in _abi_functions.py."""

from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, Structure
from ctypes import c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from enum import IntEnum

VERSION = "0.1.0"
SOVERSION = 0
MAX_AXES = 32
UNKNOWN_SHAPE = -1


class CalibrationMethod(IntEnum):
    """How a calibration gets a range from the numbers that it observes."""

    MIN_MAX = 0
    ENTROPY = 1


class DeviceType(IntEnum):
    """Kinds of devices."""

    CPU = 1
    GPU = 2
    CPU_PINNED = 3
    CPU_SHARED = 5


class Dtype(IntEnum):
    """Element types, in the byte order of the host."""

    NONE = -1
    FLOAT32 = 0
    FLOAT64 = 1
    FLOAT16 = 2
    UINT8 = 3
    INT32 = 4
    INT8 = 5
    INT64 = 6
    BOOL = 7
    BFLOAT16 = 12


class ErrorClass(IntEnum):
    """Classes of errors."""

    SUCCESS = 0
    ERROR_INVALID_ARGUMENT = 1
    ERROR_NAME = 2
    ERROR_SHAPE = 3
    ERROR_DTYPE = 4
    ERROR_STATE = 5
    ERROR_UNSUPPORTED = 6
    ERROR_DEVICE = 7
    ERROR_FORMAT = 8
    ERROR_IO = 9
    ERROR_OUT_OF_MEMORY = 10
    ERROR_EXECUTION = 11
    ERROR_INTERNAL = 12


class ExecutorList(IntEnum):
    """Lists of arrays that an executor has."""

    ARGS = 0
    GRADS = 1
    AUX = 2
    OUTPUTS = 3


class GradReq(IntEnum):
    """How backward treats the gradient of an argument; "null", "write" and "add" as text."""

    NULL = 0
    WRITE = 1
    ADD = 3


class GroupList(IntEnum):
    """Lists of arrays that a group has, each entry once per device."""

    DATA = 0
    LABELS = 1
    PARAMS = 2
    GRADS = 3
    AUX = 4
    STATES = 5
    OUTPUTS = 6
    INPUT_GRADS = 7
    ARGS = 8


class LogLevel(IntEnum):
    """Levels of messages."""

    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3
    OFF = 4


class PatternMode(IntEnum):
    """Where in a name a pattern has to match."""

    ANCHORED = 0
    ANYWHERE = 1


class Precision(IntEnum):
    """How an operator works if a network computes in a narrower type than that of its arrays (compute_dtype)."""

    OWN = 0
    NARROW = 1
    FOLLOWS = 2


class Rounding(IntEnum):
    """How a share of the batch becomes a whole number of samples."""

    HALF_UP = 0
    HALF_EVEN = 1
    BALANCED = 2


class SpanKind(IntEnum):
    """Kinds of events."""

    OPERATOR = 0
    PASS = 1
    COPY = 2
    EXCHANGE = 3
    UPDATE = 4
    WAIT = 5
    CALL = 6
    USER = 7


class StorageType(IntEnum):
    """Storage types."""

    UNDEFINED = -1
    DEFAULT = 0
    ROW_SPARSE = 1
    CSR = 2


class SymbolList(IntEnum):
    """Lists of names that a symbol has."""

    ARGUMENTS = 0
    AUX = 1
    OUTPUTS = 2
    INPUTS = 3
    LABELS = 4


class TotalsBy(IntEnum):
    """How totals are summed."""

    NAME = 0
    OPERATOR = 1


class UpdateMode(IntEnum):
    """How cohort_group_update() puts the devices' gradients together."""

    ON_STORE = 0
    PER_DEVICE = 1
    NO_STORE = 2


class cohort_backward_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("retain_graph", c_int32),
        ("create_graph", c_int32),
    ]


class cohort_context(Structure):
    _fields_ = [
        ("device_type", c_int32),
        ("device_id", c_int32),
    ]


class cohort_device_memory_info(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("used_bytes", c_size_t),
        ("peak_bytes", c_size_t),
        ("cached_bytes", c_size_t),
        ("limit_bytes", c_size_t),
    ]


class cohort_memory_info(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("planned_bytes", c_size_t),
        ("intermediate_bytes", c_size_t),
        ("argument_bytes", c_size_t),
        ("gradient_bytes", c_size_t),
        ("output_bytes", c_size_t),
        ("value_bytes", c_size_t),
    ]


class cohort_span_total(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", c_int32),
        ("count", c_uint64),
        ("total_ns", c_int64),
        ("least_ns", c_int64),
        ("most_ns", c_int64),
        ("flops", c_double),
        ("bytes", c_double),
        ("bound_ns", c_double),
    ]


class cohort_trace_info(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("num_events", c_size_t),
        ("num_dropped", c_uint64),
        ("running", c_int32),
    ]


class cohort_trace_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("max_events", c_size_t),
        ("flop_per_s", c_double),
        ("bfloat16_flop_per_s", c_double),
        ("byte_per_s", c_double),
    ]


class cohort_invoke_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("context", POINTER(cohort_context)),
        ("seed", c_uint64),
        ("is_train", c_int32),
    ]


class cohort_reshape_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("partial_shaping", c_int32),
        ("allow_up_sizing", c_int32),
        ("context", POINTER(cohort_context)),
        ("ctx_group_names", POINTER(c_char_p)),
        ("ctx_group_contexts", POINTER(cohort_context)),
        ("num_ctx_groups", c_size_t),
    ]


class cohort_executor_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("ctx_group_names", POINTER(c_char_p)),
        ("ctx_group_contexts", POINTER(cohort_context)),
        ("num_ctx_groups", c_size_t),
        ("shared_executor", c_void_p),
        ("num_threads", c_int32),
        ("seed", c_uint64),
        ("grad_req", c_char_p),
        ("grad_req_list", POINTER(c_char_p)),
        ("grad_req_names", POINTER(c_char_p)),
        ("num_grad_reqs", c_size_t),
        ("arg_contexts", POINTER(cohort_context)),
        ("grad_contexts", POINTER(cohort_context)),
        ("aux_contexts", POINTER(cohort_context)),
        ("storage_names", POINTER(c_char_p)),
        ("storage_types", POINTER(c_int32)),
        ("num_storage_types", c_size_t),
        ("shared_arg_names", POINTER(c_char_p)),
        ("num_shared_arg_names", c_size_t),
        ("shared_data", c_void_p),
        ("strict_dtypes", c_int32),
        ("compute_dtype", c_int32),
        ("float32_names", POINTER(c_char_p)),
        ("num_float32_names", c_size_t),
        ("narrow_names", POINTER(c_char_p)),
        ("num_narrow_names", c_size_t),
        ("calibration", c_void_p),
        ("backward_once", c_int32),
        ("tf32", c_int32),
        ("recompute", c_int32),
    ]


cohort_bucket_symbol_fn = CFUNCTYPE(c_int32, c_void_p, POINTER(c_void_p), c_void_p)
cohort_custom_backward_fn = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)
cohort_custom_create_fn = CFUNCTYPE(
    c_int32, POINTER(c_char_p), POINTER(c_char_p), c_size_t, POINTER(cohort_context), POINTER(c_void_p), c_void_p
)
cohort_custom_declare_fn = CFUNCTYPE(
    c_int32, POINTER(c_char_p), POINTER(c_char_p), c_size_t, c_void_p, c_void_p, c_void_p, c_void_p
)
cohort_custom_end_fn = CFUNCTYPE(None, c_void_p)
cohort_custom_forward_fn = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_void_p, c_int32, c_void_p)
cohort_custom_infer_fn = CFUNCTYPE(
    c_int32, POINTER(c_char_p), POINTER(c_char_p), c_size_t, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p
)
cohort_custom_release_fn = CFUNCTYPE(None, c_void_p, c_void_p)
cohort_deleter_fn = CFUNCTYPE(None, c_void_p, c_void_p)
cohort_log_end_fn = CFUNCTYPE(None, c_void_p)
cohort_log_fn = CFUNCTYPE(None, c_int32, c_void_p, c_void_p)
cohort_metric_fn = CFUNCTYPE(
    c_int32, POINTER(c_void_p), c_size_t, POINTER(c_void_p), c_size_t, POINTER(c_double), POINTER(c_double), c_void_p
)
cohort_monitor_fn = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)
cohort_name_filter_fn = CFUNCTYPE(c_int32, c_void_p, c_void_p)
cohort_statistic_fn = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)
cohort_tape_function_fn = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)
cohort_tape_release_fn = CFUNCTYPE(None, c_void_p)


class cohort_custom_op(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("declare", cohort_custom_declare_fn),
        ("infer_shape", cohort_custom_infer_fn),
        ("infer_dtype", cohort_custom_infer_fn),
        ("create", cohort_custom_create_fn),
        ("forward", cohort_custom_forward_fn),
        ("backward", cohort_custom_backward_fn),
        ("release", cohort_custom_release_fn),
        ("ended", cohort_custom_end_fn),
        ("user_data", c_void_p),
        ("ignores_head_grads", c_int32),
        ("any_thread", c_int32),
    ]


class cohort_manager_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("workload", POINTER(c_double)),
        ("num_workloads", c_size_t),
        ("default_bucket_key", c_char_p),
        ("bucket_keys", POINTER(c_char_p)),
        ("bucket_symbols", POINTER(c_void_p)),
        ("num_buckets", c_size_t),
        ("bucket_symbol", cohort_bucket_symbol_fn),
        ("bucket_symbol_user_data", c_void_p),
        ("num_threads", c_int32),
        ("seed", c_uint64),
        ("log", cohort_log_fn),
        ("log_user_data", c_void_p),
        ("state_names", POINTER(c_char_p)),
        ("num_state_names", c_size_t),
        ("compute_dtype", c_int32),
        ("float32_names", POINTER(c_char_p)),
        ("num_float32_names", c_size_t),
        ("narrow_names", POINTER(c_char_p)),
        ("num_narrow_names", c_size_t),
        ("loss_scale", c_double),
        ("loss_scale_window", c_int32),
        ("backward_once", c_int32),
        ("gradient_sum_dtype", c_int32),
        ("tf32", c_int32),
        ("recompute", c_int32),
        ("keep_device_aux", c_int32),
    ]


class cohort_monitor_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("pattern", c_char_p),
        ("pattern_mode", c_int32),
        ("all_in_toc", c_int32),
        ("sort", c_int32),
        ("monitor_all", c_int32),
        ("statistic", cohort_statistic_fn),
        ("statistic_user_data", c_void_p),
        ("filter", cohort_name_filter_fn),
        ("filter_user_data", c_void_p),
        ("stop_if_not_finite", c_int32),
    ]


class cohort_group_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("workload", POINTER(c_double)),
        ("num_workloads", c_size_t),
        ("rounding", c_int32),
        ("slices", POINTER(c_int64)),
        ("num_slices", c_size_t),
        ("inputs_need_grad", c_int32),
        ("fixed_param_names", POINTER(c_char_p)),
        ("num_fixed_param_names", c_size_t),
        ("grad_req", c_char_p),
        ("grad_req_list", POINTER(c_char_p)),
        ("grad_req_names", POINTER(c_char_p)),
        ("num_grad_reqs", c_size_t),
        ("state_names", POINTER(c_char_p)),
        ("num_state_names", c_size_t),
        ("input_dtype_names", POINTER(c_char_p)),
        ("input_dtypes", POINTER(c_int32)),
        ("num_input_dtypes", c_size_t),
        ("shared_group", c_void_p),
        ("ctx_group_names", POINTER(c_char_p)),
        ("ctx_group_contexts", POINTER(cohort_context)),
        ("num_ctx_groups", c_size_t),
        ("contexts_per_ctx_group", c_size_t),
        ("num_threads", c_int32),
        ("gradient_bucket_bytes", c_size_t),
        ("seed", c_uint64),
        ("log", cohort_log_fn),
        ("log_user_data", c_void_p),
        ("arg_names", POINTER(c_char_p)),
        ("num_arg_names", c_size_t),
        ("compute_dtype", c_int32),
        ("float32_names", POINTER(c_char_p)),
        ("num_float32_names", c_size_t),
        ("narrow_names", POINTER(c_char_p)),
        ("num_narrow_names", c_size_t),
        ("loss_scale", c_double),
        ("loss_scale_window", c_int32),
        ("calibration", c_void_p),
        ("backward_once", c_int32),
        ("arg_params", c_void_p),
        ("aux_params", c_void_p),
        ("gradient_sum_dtype", c_int32),
        ("tf32", c_int32),
        ("recompute", c_int32),
        ("keep_device_aux", c_int32),
        ("strict_names", c_int32),
        ("stop_if_not_finite", c_int32),
    ]
