# SPDX-License-Identifier: Apache-2.0
# Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
"""The functions, constants and structs of Cohort's C interface."""

from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, Structure
from ctypes import c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from enum import IntEnum
from typing import Any, Dict, Tuple

VERSION = "0.1.0"
SOVERSION = 0
MAX_AXES = 32
UNKNOWN_SHAPE = -1


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
    """What backward does with the gradient of an argument; "null", "write" and "add" as text."""

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


class Rounding(IntEnum):
    """How a share of the batch becomes a whole number of samples."""

    HALF_UP = 0
    HALF_EVEN = 1
    BALANCED = 2


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


class cohort_memory_info(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("planned_bytes", c_size_t),
        ("intermediate_bytes", c_size_t),
        ("argument_bytes", c_size_t),
        ("gradient_bytes", c_size_t),
        ("output_bytes", c_size_t),
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
    ]


# name: (result, arguments); a result of c_void_p is an error, None nothing.
FUNCTIONS: Dict[str, Tuple[Any, Tuple[Any, ...]]] = {
    "cohort_arrays_add": (c_void_p, (c_void_p, c_char_p, c_void_p)),
    "cohort_arrays_create": (c_void_p, (POINTER(c_void_p),)),
    "cohort_arrays_find": (c_void_p, (c_void_p, c_char_p, POINTER(c_size_t))),
    "cohort_arrays_free": (None, (c_void_p,)),
    "cohort_arrays_get": (c_void_p, (c_void_p, c_size_t, POINTER(c_void_p))),
    "cohort_arrays_load": (c_void_p, (c_char_p, POINTER(cohort_context), POINTER(c_void_p))),
    "cohort_arrays_load_memory": (c_void_p, (c_void_p, c_size_t, POINTER(cohort_context), POINTER(c_void_p))),
    "cohort_arrays_name": (c_void_p, (c_void_p, c_size_t, POINTER(c_char_p))),
    "cohort_arrays_num": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "cohort_arrays_save": (c_void_p, (c_void_p, c_char_p)),
    "cohort_arrays_save_memory": (c_void_p, (c_void_p, c_void_p, c_size_t, POINTER(c_size_t))),
    "cohort_arrays_save_npy": (c_void_p, (c_void_p, c_char_p)),
    "cohort_arrays_save_npz": (c_void_p, (c_void_p, c_char_p)),
    "cohort_arrays_set": (c_void_p, (c_void_p, c_char_p, c_void_p)),
    "cohort_backward_options_init": (None, (POINTER(cohort_backward_options), c_size_t)),
    "cohort_checkpoint_load": (c_void_p, (c_char_p, c_int32, POINTER(c_void_p), POINTER(c_void_p), POINTER(c_void_p))),
    "cohort_checkpoint_save": (c_void_p, (c_char_p, c_int32, c_void_p, c_void_p, c_void_p)),
    "cohort_context_parse": (c_void_p, (c_char_p, POINTER(cohort_context))),
    "cohort_context_text": (c_void_p, (POINTER(cohort_context), c_void_p, c_size_t, POINTER(c_size_t))),
    "cohort_custom_op_init": (None, (POINTER(cohort_custom_op), c_size_t)),
    "cohort_custom_register": (c_void_p, (c_char_p, POINTER(cohort_custom_op))),
    "cohort_custom_unregister": (c_void_p, (c_char_p,)),
    "cohort_descs_add": (c_void_p, (c_void_p, c_char_p, POINTER(c_int64), c_int32, c_int32, c_char_p)),
    "cohort_descs_create": (c_void_p, (POINTER(c_void_p),)),
    "cohort_descs_find": (c_void_p, (c_void_p, c_char_p, POINTER(c_size_t))),
    "cohort_descs_free": (None, (c_void_p,)),
    "cohort_descs_get": (
        c_void_p,
        (
            c_void_p,
            c_size_t,
            POINTER(c_char_p),
            POINTER(c_int64),
            c_size_t,
            POINTER(c_int32),
            POINTER(c_int32),
            POINTER(c_char_p),
        ),
    ),
    "cohort_descs_num": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "cohort_dtype_bytes": (c_void_p, (c_int32, POINTER(c_size_t))),
    "cohort_dtype_parse": (c_void_p, (c_char_p, POINTER(c_int32))),
    "cohort_dtype_text": (c_void_p, (c_int32, POINTER(c_char_p))),
    "cohort_error_code": (c_int32, (c_void_p,)),
    "cohort_error_code_text": (c_char_p, (c_int32,)),
    "cohort_error_free": (None, (c_void_p,)),
    "cohort_error_message": (c_char_p, (c_void_p,)),
    "cohort_error_subject": (c_char_p, (c_void_p,)),
    "cohort_executor_array": (c_void_p, (c_void_p, c_int32, c_size_t, POINTER(c_void_p))),
    "cohort_executor_array_named": (c_void_p, (c_void_p, c_int32, c_char_p, POINTER(c_void_p))),
    "cohort_executor_arrays": (c_void_p, (c_void_p, c_int32, POINTER(c_void_p))),
    "cohort_executor_backward": (c_void_p, (c_void_p, POINTER(c_void_p), c_size_t, c_int32)),
    "cohort_executor_bind": (
        c_void_p,
        (
            c_void_p,
            POINTER(cohort_context),
            POINTER(c_void_p),
            c_size_t,
            POINTER(c_void_p),
            POINTER(c_int32),
            POINTER(c_void_p),
            c_size_t,
            POINTER(cohort_executor_options),
            POINTER(c_void_p),
        ),
    ),
    "cohort_executor_context": (c_void_p, (c_void_p, POINTER(cohort_context))),
    "cohort_executor_copy_params_from": (c_void_p, (c_void_p, c_void_p, c_void_p, c_int32)),
    "cohort_executor_debug_text": (c_void_p, (c_void_p, POINTER(c_char_p))),
    "cohort_executor_forward": (c_void_p, (c_void_p, c_int32)),
    "cohort_executor_free": (None, (c_void_p,)),
    "cohort_executor_grad_req": (c_void_p, (c_void_p, c_size_t, POINTER(c_int32))),
    "cohort_executor_memory": (c_void_p, (c_void_p, POINTER(cohort_memory_info))),
    "cohort_executor_name": (c_void_p, (c_void_p, c_int32, c_size_t, POINTER(c_char_p))),
    "cohort_executor_num_arrays": (c_void_p, (c_void_p, c_int32, POINTER(c_size_t))),
    "cohort_executor_options_init": (None, (POINTER(cohort_executor_options), c_size_t)),
    "cohort_executor_partial_forward": (c_void_p, (c_void_p, c_int32, c_int32, POINTER(c_int32))),
    "cohort_executor_reshape": (c_void_p, (c_void_p, c_void_p, POINTER(cohort_reshape_options), POINTER(c_void_p))),
    "cohort_executor_set_inputs": (c_void_p, (c_void_p, c_void_p)),
    "cohort_executor_set_monitor": (c_void_p, (c_void_p, cohort_monitor_fn, c_void_p, c_int32)),
    "cohort_executor_simple_bind": (
        c_void_p,
        (
            c_void_p,
            POINTER(cohort_context),
            c_void_p,
            POINTER(cohort_executor_options),
            POINTER(c_void_p),
        ),
    ),
    "cohort_executor_symbol": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_executor_wait": (c_void_p, (c_void_p,)),
    "cohort_group_array": (c_void_p, (c_void_p, c_int32, c_size_t, c_size_t, POINTER(c_void_p))),
    "cohort_group_arrays": (c_void_p, (c_void_p, c_int32, c_size_t, POINTER(c_void_p))),
    "cohort_group_assign_params": (c_void_p, (c_void_p, c_void_p, c_void_p, c_int32, c_int32, POINTER(c_void_p))),
    "cohort_group_axis": (c_void_p, (c_void_p, c_int32, c_size_t, POINTER(c_int32))),
    "cohort_group_backward": (c_void_p, (c_void_p, POINTER(c_void_p), c_size_t)),
    "cohort_group_batch_size": (c_void_p, (c_void_p, POINTER(c_int64))),
    "cohort_group_bind": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p, c_int32)),
    "cohort_group_context": (c_void_p, (c_void_p, c_size_t, POINTER(cohort_context))),
    "cohort_group_copy_params": (c_void_p, (c_void_p, POINTER(c_void_p), POINTER(c_void_p))),
    "cohort_group_create": (
        c_void_p,
        (
            c_void_p,
            POINTER(cohort_context),
            c_size_t,
            c_void_p,
            c_void_p,
            POINTER(c_char_p),
            c_size_t,
            c_int32,
            POINTER(cohort_group_options),
            POINTER(c_void_p),
        ),
    ),
    "cohort_group_decide_slices": (c_void_p, (c_void_p, c_void_p, POINTER(c_int32))),
    "cohort_group_descs": (c_void_p, (c_void_p, c_int32, POINTER(c_void_p))),
    "cohort_group_executor": (c_void_p, (c_void_p, c_size_t, POINTER(c_void_p))),
    "cohort_group_forward": (c_void_p, (c_void_p, POINTER(c_void_p), c_size_t, POINTER(c_void_p), c_size_t, c_int32)),
    "cohort_group_forward_presliced": (
        c_void_p,
        (
            c_void_p,
            c_size_t,
            POINTER(c_void_p),
            c_size_t,
            POINTER(c_void_p),
            c_size_t,
            c_int32,
        ),
    ),
    "cohort_group_free": (None, (c_void_p,)),
    "cohort_group_get_params": (c_void_p, (c_void_p, c_void_p, c_void_p)),
    "cohort_group_load": (c_void_p, (c_void_p, POINTER(c_void_p), c_size_t, POINTER(c_void_p), c_size_t)),
    "cohort_group_memory": (c_void_p, (c_void_p, c_size_t, POINTER(cohort_memory_info))),
    "cohort_group_merged": (c_void_p, (c_void_p, c_int32, c_size_t, POINTER(c_void_p))),
    "cohort_group_name": (c_void_p, (c_void_p, c_int32, c_size_t, POINTER(c_char_p))),
    "cohort_group_num_arrays": (c_void_p, (c_void_p, c_int32, POINTER(c_size_t))),
    "cohort_group_num_contexts": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "cohort_group_options_init": (None, (POINTER(cohort_group_options), c_size_t)),
    "cohort_group_output_shapes": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_group_reshape": (c_void_p, (c_void_p, c_void_p, c_void_p)),
    "cohort_group_run": (c_void_p, (c_void_p, c_int32)),
    "cohort_group_set_monitor": (c_void_p, (c_void_p, cohort_monitor_fn, c_void_p, c_int32)),
    "cohort_group_set_params": (c_void_p, (c_void_p, c_void_p, c_void_p, c_int32)),
    "cohort_group_set_states": (c_void_p, (c_void_p, POINTER(c_void_p), c_size_t, c_size_t, POINTER(c_double))),
    "cohort_group_shared_data": (c_void_p, (c_void_p, c_size_t, POINTER(c_void_p))),
    "cohort_group_slice": (c_void_p, (c_void_p, c_size_t, POINTER(c_int64), POINTER(c_int64))),
    "cohort_group_sliced_shape": (c_void_p, (c_void_p, c_void_p, c_size_t, POINTER(c_int32), POINTER(c_void_p))),
    "cohort_group_update": (c_void_p, (c_void_p, c_void_p, c_int32)),
    "cohort_group_update_metric": (c_void_p, (c_void_p, c_void_p, POINTER(c_void_p), c_size_t)),
    "cohort_group_update_metric_presliced": (c_void_p, (c_void_p, c_void_p, c_size_t, POINTER(c_void_p), c_size_t)),
    "cohort_group_wait": (c_void_p, (c_void_p,)),
    "cohort_has_feature": (c_int32, (c_char_p,)),
    "cohort_initializer_apply": (c_void_p, (c_void_p, c_void_p, c_void_p)),
    "cohort_initializer_create": (
        c_void_p,
        (
            c_char_p,
            POINTER(c_char_p),
            POINTER(c_char_p),
            c_size_t,
            c_uint64,
            POINTER(c_void_p),
        ),
    ),
    "cohort_initializer_fill": (c_void_p, (c_void_p, c_char_p, c_void_p)),
    "cohort_initializer_free": (None, (c_void_p,)),
    "cohort_invoke_options_init": (None, (POINTER(cohort_invoke_options), c_size_t)),
    "cohort_layout_batch_axis": (c_void_p, (c_char_p, POINTER(c_int32))),
    "cohort_live_handles": (c_size_t, ()),
    "cohort_log_create": (c_void_p, (c_int32, cohort_log_fn, cohort_log_end_fn, c_void_p, POINTER(c_void_p))),
    "cohort_log_free": (None, (c_void_p,)),
    "cohort_manager_array": (c_void_p, (c_void_p, c_int32, c_size_t, c_size_t, POINTER(c_void_p))),
    "cohort_manager_arrays": (c_void_p, (c_void_p, c_int32, c_size_t, POINTER(c_void_p))),
    "cohort_manager_assign_params": (c_void_p, (c_void_p, c_void_p, c_void_p, c_int32, c_int32, POINTER(c_void_p))),
    "cohort_manager_backward": (c_void_p, (c_void_p,)),
    "cohort_manager_bucket": (c_void_p, (c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_void_p))),
    "cohort_manager_copy_to": (c_void_p, (c_void_p, c_void_p, c_void_p)),
    "cohort_manager_create": (
        c_void_p,
        (
            c_void_p,
            POINTER(cohort_context),
            c_size_t,
            c_int64,
            c_void_p,
            c_void_p,
            POINTER(c_char_p),
            c_size_t,
            POINTER(cohort_manager_options),
            POINTER(c_void_p),
        ),
    ),
    "cohort_manager_current_group": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_manager_forward": (c_void_p, (c_void_p, c_int32)),
    "cohort_manager_free": (None, (c_void_p,)),
    "cohort_manager_load_data_batch": (
        c_void_p,
        (
            c_void_p,
            POINTER(c_void_p),
            c_size_t,
            POINTER(c_void_p),
            c_size_t,
            c_char_p,
            c_void_p,
            c_void_p,
        ),
    ),
    "cohort_manager_main_group": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_manager_memory": (c_void_p, (c_void_p, POINTER(cohort_memory_info))),
    "cohort_manager_merged": (c_void_p, (c_void_p, c_int32, c_size_t, POINTER(c_void_p))),
    "cohort_manager_name": (c_void_p, (c_void_p, c_int32, c_size_t, POINTER(c_char_p))),
    "cohort_manager_num_arrays": (c_void_p, (c_void_p, c_int32, POINTER(c_size_t))),
    "cohort_manager_num_buckets": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "cohort_manager_num_contexts": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "cohort_manager_options_init": (None, (POINTER(cohort_manager_options), c_size_t)),
    "cohort_manager_set_monitor": (c_void_p, (c_void_p, cohort_monitor_fn, c_void_p, c_int32)),
    "cohort_manager_set_params": (c_void_p, (c_void_p, c_void_p, c_void_p)),
    "cohort_manager_set_states": (c_void_p, (c_void_p, POINTER(c_void_p), c_size_t, c_size_t, POINTER(c_double))),
    "cohort_manager_slice": (c_void_p, (c_void_p, c_size_t, POINTER(c_int64), POINTER(c_int64))),
    "cohort_manager_update": (c_void_p, (c_void_p, c_void_p, c_int32)),
    "cohort_manager_update_metric": (c_void_p, (c_void_p, c_void_p, POINTER(c_void_p), c_size_t)),
    "cohort_manager_update_metric_presliced": (c_void_p, (c_void_p, c_void_p, c_size_t, POINTER(c_void_p), c_size_t)),
    "cohort_metric_add": (c_void_p, (c_void_p, c_void_p)),
    "cohort_metric_child": (c_void_p, (c_void_p, c_size_t, POINTER(c_void_p))),
    "cohort_metric_counters": (c_void_p, (c_void_p, c_size_t, c_int32, POINTER(c_double), POINTER(c_double))),
    "cohort_metric_create": (c_void_p, (c_char_p, POINTER(c_char_p), POINTER(c_char_p), c_size_t, POINTER(c_void_p))),
    "cohort_metric_create_custom": (c_void_p, (c_char_p, cohort_metric_fn, c_void_p, c_int32, POINTER(c_void_p))),
    "cohort_metric_free": (None, (c_void_p,)),
    "cohort_metric_num_children": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "cohort_metric_num_values": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "cohort_metric_reset": (c_void_p, (c_void_p,)),
    "cohort_metric_reset_local": (c_void_p, (c_void_p,)),
    "cohort_metric_set_names": (c_void_p, (c_void_p, POINTER(c_char_p), c_size_t, POINTER(c_char_p), c_size_t)),
    "cohort_metric_update": (c_void_p, (c_void_p, POINTER(c_void_p), c_size_t, POINTER(c_void_p), c_size_t)),
    "cohort_metric_update_named": (c_void_p, (c_void_p, c_void_p, c_void_p)),
    "cohort_metric_value": (c_void_p, (c_void_p, c_size_t, c_int32, POINTER(c_char_p), POINTER(c_double))),
    "cohort_monitor_create": (c_void_p, (c_int64, POINTER(cohort_monitor_options), POINTER(c_void_p))),
    "cohort_monitor_entry": (c_void_p, (c_void_p, c_size_t, POINTER(c_int64), POINTER(c_char_p), POINTER(c_char_p))),
    "cohort_monitor_free": (None, (c_void_p,)),
    "cohort_monitor_install_on_executor": (c_void_p, (c_void_p, c_void_p)),
    "cohort_monitor_install_on_group": (c_void_p, (c_void_p, c_void_p)),
    "cohort_monitor_install_on_manager": (c_void_p, (c_void_p, c_void_p)),
    "cohort_monitor_options_init": (None, (POINTER(cohort_monitor_options), c_size_t)),
    "cohort_monitor_step": (c_void_p, (c_void_p, POINTER(c_int64))),
    "cohort_monitor_tic": (c_void_p, (c_void_p,)),
    "cohort_monitor_toc": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "cohort_monitor_values": (c_void_p, (c_void_p, c_size_t, POINTER(c_void_p))),
    "cohort_ndarray_at": (c_void_p, (c_void_p, c_int64, POINTER(c_void_p))),
    "cohort_ndarray_bytes": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "cohort_ndarray_cast": (c_void_p, (c_void_p, c_int32, POINTER(c_void_p))),
    "cohort_ndarray_concat": (c_void_p, (POINTER(c_void_p), c_size_t, c_int32, POINTER(c_void_p))),
    "cohort_ndarray_context": (c_void_p, (c_void_p, POINTER(cohort_context))),
    "cohort_ndarray_copy": (c_void_p, (c_void_p, POINTER(cohort_context), POINTER(c_void_p))),
    "cohort_ndarray_copy_to": (c_void_p, (c_void_p, c_void_p)),
    "cohort_ndarray_data": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_ndarray_dtype": (c_void_p, (c_void_p, POINTER(c_int32))),
    "cohort_ndarray_empty": (
        c_void_p,
        (
            POINTER(c_int64),
            c_int32,
            c_int32,
            POINTER(cohort_context),
            POINTER(c_void_p),
        ),
    ),
    "cohort_ndarray_fill": (c_void_p, (c_void_p, c_double)),
    "cohort_ndarray_fill_normal": (c_void_p, (c_void_p, c_double, c_double, c_uint64)),
    "cohort_ndarray_fill_uniform": (c_void_p, (c_void_p, c_double, c_double, c_uint64)),
    "cohort_ndarray_free": (None, (c_void_p,)),
    "cohort_ndarray_from_dlpack": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_ndarray_from_dlpack_unversioned": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_ndarray_from_host": (
        c_void_p,
        (
            c_void_p,
            c_size_t,
            POINTER(c_int64),
            c_int32,
            c_int32,
            POINTER(cohort_context),
            POINTER(c_void_p),
        ),
    ),
    "cohort_ndarray_full": (
        c_void_p,
        (
            POINTER(c_int64),
            c_int32,
            c_int32,
            POINTER(cohort_context),
            c_double,
            POINTER(c_void_p),
        ),
    ),
    "cohort_ndarray_read": (c_void_p, (c_void_p, c_void_p, c_size_t)),
    "cohort_ndarray_reshape": (c_void_p, (c_void_p, POINTER(c_int64), c_int32, POINTER(c_void_p))),
    "cohort_ndarray_reshape_prefix": (c_void_p, (c_void_p, POINTER(c_int64), c_int32, POINTER(c_void_p))),
    "cohort_ndarray_shape": (c_void_p, (c_void_p, POINTER(c_int64), c_size_t, POINTER(c_int32))),
    "cohort_ndarray_share": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_ndarray_size": (c_void_p, (c_void_p, POINTER(c_int64))),
    "cohort_ndarray_slice": (c_void_p, (c_void_p, c_int64, c_int64, POINTER(c_void_p))),
    "cohort_ndarray_slice_axis": (c_void_p, (c_void_p, c_int32, c_int64, c_int64, POINTER(c_void_p))),
    "cohort_ndarray_to_dlpack": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_ndarray_to_dlpack_unversioned": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_ndarray_wait": (c_void_p, (c_void_p,)),
    "cohort_ndarray_wrap": (
        c_void_p,
        (
            c_void_p,
            POINTER(c_int64),
            c_int32,
            c_int32,
            POINTER(cohort_context),
            cohort_deleter_fn,
            c_void_p,
            POINTER(c_void_p),
        ),
    ),
    "cohort_ndarray_write": (c_void_p, (c_void_p, c_void_p, c_size_t)),
    "cohort_ndarray_zeros": (
        c_void_p,
        (
            POINTER(c_int64),
            c_int32,
            c_int32,
            POINTER(cohort_context),
            POINTER(c_void_p),
        ),
    ),
    "cohort_num_devices": (c_void_p, (c_int32, POINTER(c_size_t))),
    "cohort_operator_attr": (
        c_void_p,
        (
            c_char_p,
            c_size_t,
            POINTER(c_char_p),
            POINTER(c_char_p),
            POINTER(c_char_p),
            POINTER(c_char_p),
        ),
    ),
    "cohort_operator_info": (
        c_void_p,
        (
            c_char_p,
            POINTER(c_char_p),
            POINTER(c_char_p),
            POINTER(c_size_t),
            POINTER(c_size_t),
            POINTER(c_size_t),
            POINTER(c_char_p),
        ),
    ),
    "cohort_operator_input": (c_void_p, (c_char_p, c_size_t, POINTER(c_char_p), POINTER(c_char_p), POINTER(c_int32))),
    "cohort_operator_invoke": (
        c_void_p,
        (
            c_char_p,
            POINTER(c_char_p),
            POINTER(c_char_p),
            c_size_t,
            POINTER(c_void_p),
            c_size_t,
            POINTER(c_void_p),
            c_size_t,
            POINTER(cohort_invoke_options),
            POINTER(c_void_p),
        ),
    ),
    "cohort_operator_name": (c_void_p, (c_size_t, POINTER(c_char_p))),
    "cohort_operator_num": (c_void_p, (POINTER(c_size_t),)),
    "cohort_operator_output": (c_void_p, (c_char_p, c_size_t, POINTER(c_char_p))),
    "cohort_optimizer_create": (
        c_void_p,
        (
            c_char_p,
            POINTER(c_char_p),
            POINTER(c_char_p),
            c_size_t,
            POINTER(c_void_p),
        ),
    ),
    "cohort_optimizer_free": (None, (c_void_p,)),
    "cohort_optimizer_get": (c_void_p, (c_void_p, c_char_p, POINTER(c_double))),
    "cohort_optimizer_load_states": (c_void_p, (c_void_p, c_char_p)),
    "cohort_optimizer_load_states_memory": (c_void_p, (c_void_p, c_void_p, c_size_t)),
    "cohort_optimizer_mult": (c_void_p, (c_void_p, c_char_p, POINTER(c_double), POINTER(c_double))),
    "cohort_optimizer_save_states": (c_void_p, (c_void_p, c_char_p)),
    "cohort_optimizer_save_states_memory": (c_void_p, (c_void_p, c_void_p, c_size_t, POINTER(c_size_t))),
    "cohort_optimizer_set": (c_void_p, (c_void_p, c_char_p, c_double)),
    "cohort_optimizer_set_lr_schedule": (
        c_void_p,
        (
            c_void_p,
            c_char_p,
            POINTER(c_char_p),
            POINTER(c_char_p),
            c_size_t,
        ),
    ),
    "cohort_optimizer_set_mult": (c_void_p, (c_void_p, c_char_p, c_double, c_double)),
    "cohort_optimizer_update": (c_void_p, (c_void_p, c_char_p, c_size_t, c_void_p, c_void_p)),
    "cohort_optimizer_use_symbol": (c_void_p, (c_void_p, c_void_p)),
    "cohort_reshape_options_init": (None, (POINTER(cohort_reshape_options), c_size_t)),
    "cohort_set_log": (c_void_p, (c_int32, cohort_log_fn, c_void_p)),
    "cohort_split_slices": (
        c_void_p,
        (
            c_int64,
            POINTER(c_double),
            c_size_t,
            c_int32,
            POINTER(c_int64),
            POINTER(c_int64),
        ),
    ),
    "cohort_symbol_attr": (c_void_p, (c_void_p, c_char_p, POINTER(c_char_p))),
    "cohort_symbol_attr_at": (
        c_void_p,
        (
            c_void_p,
            c_int32,
            c_size_t,
            POINTER(c_char_p),
            POINTER(c_char_p),
            POINTER(c_char_p),
        ),
    ),
    "cohort_symbol_children": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_symbol_compose": (
        c_void_p,
        (
            c_void_p,
            POINTER(c_char_p),
            POINTER(c_void_p),
            c_size_t,
            c_char_p,
            POINTER(c_void_p),
        ),
    ),
    "cohort_symbol_copy": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_symbol_create": (
        c_void_p,
        (
            c_char_p,
            c_char_p,
            POINTER(c_char_p),
            POINTER(c_char_p),
            c_size_t,
            POINTER(c_void_p),
            POINTER(c_char_p),
            c_size_t,
            POINTER(c_void_p),
        ),
    ),
    "cohort_symbol_free": (None, (c_void_p,)),
    "cohort_symbol_from_json": (c_void_p, (c_char_p, c_size_t, POINTER(c_void_p))),
    "cohort_symbol_group": (c_void_p, (POINTER(c_void_p), c_size_t, POINTER(c_void_p))),
    "cohort_symbol_infer_dtype": (
        c_void_p,
        (
            c_void_p,
            c_void_p,
            c_int32,
            POINTER(c_int32),
            POINTER(c_void_p),
            POINTER(c_void_p),
            POINTER(c_void_p),
        ),
    ),
    "cohort_symbol_infer_shape": (
        c_void_p,
        (
            c_void_p,
            c_void_p,
            c_int32,
            POINTER(c_int32),
            POINTER(c_void_p),
            POINTER(c_void_p),
            POINTER(c_void_p),
        ),
    ),
    "cohort_symbol_internals": (c_void_p, (c_void_p, POINTER(c_void_p))),
    "cohort_symbol_load": (c_void_p, (c_char_p, POINTER(c_void_p))),
    "cohort_symbol_name": (c_void_p, (c_void_p, POINTER(c_char_p))),
    "cohort_symbol_name_at": (c_void_p, (c_void_p, c_int32, c_size_t, POINTER(c_char_p))),
    "cohort_symbol_num_attrs": (c_void_p, (c_void_p, c_int32, POINTER(c_size_t))),
    "cohort_symbol_num_names": (c_void_p, (c_void_p, c_int32, POINTER(c_size_t))),
    "cohort_symbol_num_nodes": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "cohort_symbol_output": (c_void_p, (c_void_p, c_size_t, POINTER(c_void_p))),
    "cohort_symbol_output_named": (c_void_p, (c_void_p, c_char_p, POINTER(c_void_p))),
    "cohort_symbol_save": (c_void_p, (c_void_p, c_char_p)),
    "cohort_symbol_set_attrs": (c_void_p, (c_void_p, POINTER(c_char_p), POINTER(c_char_p), c_size_t)),
    "cohort_symbol_to_json": (c_void_p, (c_void_p, POINTER(c_char_p))),
    "cohort_symbol_variable": (
        c_void_p,
        (
            c_char_p,
            POINTER(c_char_p),
            POINTER(c_char_p),
            c_size_t,
            POINTER(c_void_p),
        ),
    ),
    "cohort_tape_backward": (
        c_void_p,
        (
            c_void_p,
            POINTER(c_void_p),
            POINTER(c_void_p),
            c_size_t,
            POINTER(cohort_backward_options),
        ),
    ),
    "cohort_tape_create": (c_void_p, (POINTER(c_void_p),)),
    "cohort_tape_free": (None, (c_void_p,)),
    "cohort_tape_function": (
        c_void_p,
        (
            c_void_p,
            POINTER(c_void_p),
            c_size_t,
            POINTER(c_void_p),
            c_size_t,
            cohort_tape_function_fn,
            cohort_tape_release_fn,
            c_void_p,
        ),
    ),
    "cohort_tape_grad": (
        c_void_p,
        (
            c_void_p,
            POINTER(c_void_p),
            POINTER(c_void_p),
            c_size_t,
            POINTER(c_void_p),
            c_size_t,
            POINTER(cohort_backward_options),
            POINTER(c_void_p),
        ),
    ),
    "cohort_tape_invoke": (
        c_void_p,
        (
            c_void_p,
            c_char_p,
            POINTER(c_char_p),
            POINTER(c_char_p),
            c_size_t,
            POINTER(c_void_p),
            c_size_t,
            POINTER(c_void_p),
            c_size_t,
            POINTER(cohort_invoke_options),
            POINTER(c_void_p),
        ),
    ),
    "cohort_tape_is_recording": (c_void_p, (c_void_p, POINTER(c_int32))),
    "cohort_tape_is_training": (c_void_p, (c_void_p, POINTER(c_int32))),
    "cohort_tape_mark": (c_void_p, (c_void_p, POINTER(c_void_p), POINTER(c_void_p), POINTER(c_int32), c_size_t)),
    "cohort_tape_num_recorded": (c_void_p, (c_void_p, POINTER(c_size_t))),
    "cohort_tape_set_recording": (c_void_p, (c_void_p, c_int32, POINTER(c_int32))),
    "cohort_tape_set_training": (c_void_p, (c_void_p, c_int32, POINTER(c_int32))),
    "cohort_tape_symbol": (c_void_p, (c_void_p, c_void_p, POINTER(c_void_p))),
    "cohort_version": (c_char_p, ()),
    "cohort_version_number": (c_int32, ()),
    "cohort_wait_all": (c_void_p, ()),
}
