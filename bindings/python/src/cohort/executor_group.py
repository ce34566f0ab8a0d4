# SPDX-License-Identifier: Apache-2.0
"""The group of MXNet's Module: one executor for each context, each batch split over them by workload."""

from __future__ import annotations

from ctypes import POINTER, byref, c_int32, c_void_p, cast
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import _abi
from ._library import (
    Callback,
    Handle,
    bytes_from,
    bytes_of,
    describe,
    handle_of,
    held,
    lib,
    list_of_names,
    null,
    options_of,
    optional_handle,
    out_handle,
    out_int,
    out_pair,
    pointers,
    reals,
    texts,
    to_bool,
    to_dict,
    to_int,
    to_list,
    to_real,
    to_size,
)
from .context import Context, struct_of, to_context, to_contexts
from .errors import InvalidArgumentError, StateError
from .executor import (
    Executor,
    bytes_of_memory,
    char_pp,
    head_gradients,
    keep_monitor,
    label_slices,
    monitor_function,
    set_calibration,
    set_grad_req,
    set_names,
    set_work,
)
from .initializer import Initializer
from .io import DataDesc, Descs, to_desc
from .logging_ import default_logger, sink
from .metric import metric_of
from ._dtype import dtype_code
from .ndarray import Arrays, NDArray, arrays_of
from .optimizer import Optimizer, optimizer_handle
from .precision import Calibration, LossScale, loss_scale_of, set_loss_scale_of, set_loss_scale_options
from .symbol import Symbol

ROUNDING = {
    "half_up": _abi.Rounding.HALF_UP,
    "half_even": _abi.Rounding.HALF_EVEN,
    "balanced": _abi.Rounding.BALANCED,
}
_MODES = {
    "store": _abi.UpdateMode.ON_STORE,
    "device": _abi.UpdateMode.PER_DEVICE,
    "none": _abi.UpdateMode.NO_STORE,
}


def update_mode(mode: Any) -> int:
    if not isinstance(mode, str) or mode not in _MODES:
        raise InvalidArgumentError(f"update: expected store, device or none, found {describe(mode)}", "mode")
    return int(_MODES[mode])


def batch_arrays(batch: Any) -> Tuple[List[NDArray], List[NDArray]]:
    """Data and labels of a batch object."""
    if not hasattr(batch, "data") or isinstance(batch, (NDArray, np.ndarray)):
        raise InvalidArgumentError(f"data_batch: expected data and label, found {describe(batch)}", "data_batch")
    return arrays_of(batch.data, "data", keeps=True), arrays_of(getattr(batch, "label", None), "label", keeps=True)


class GroupBase(Handle):
    """Base of the groups in :mod:`cohort.executor_group` and :mod:`cohort.executor_manager`."""

    _free_name = "cohort_group_free"
    symbol: Symbol
    contexts: List[Context]
    _monitor: Optional[Callback] = None

    def _created(
        self,
        symbol: Symbol,
        contexts: Any,
        data: Any,
        label: Any,
        param_names: Optional[Sequence[str]],
        for_training: bool,
        logger: Any,
        shared_group: Optional["GroupBase"],
        fill: Callable[[Any], List[Any]],
        calibration: Optional[Calibration] = None,
    ) -> None:
        """Creates the group; ``fill`` writes the options of a subclass, and returns the objects to keep."""
        handle = handle_of(symbol, Symbol, "symbol")
        self.symbol, self.contexts = symbol, to_contexts(contexts)
        options = options_of(_abi.cohort_group_options, lib.cohort_group_options_init)
        kept = fill(options)
        log = Callback(_abi.cohort_log_fn, sink(default_logger() if logger is None else logger))
        options.log, options.log_user_data = log.pointer, log.number
        names = None if param_names is None else to_list(param_names, "param_names")
        descs = Descs.of(data, "data_shapes"), Descs.of(label, "label_shapes")
        with held(shared_group, calibration):
            options.shared_group = optional_handle(shared_group, GroupBase, "shared_group")
            set_calibration(options, calibration)
            made = out_handle(
                lib.cohort_group_create,
                handle,
                struct_of(self.contexts),
                len(self.contexts),
                descs[0].handle,
                descs[1].handle,
                None if names is None else texts(names, "param_names"),
                len(names or []),
                to_bool(for_training, "for_training"),
                byref(options),
            )
            self._start(made, None if shared_group is None else shared_group._lock)
        del kept
        self._lock.callbacks.append(log)

    # ---- lists of arrays

    def _num(self, which: int) -> int:
        with self._lock:
            return out_int(lib.cohort_group_num_arrays, self.handle, which)

    def _names(self, which: int) -> List[str]:
        with self._lock:
            return list_of_names(lib.cohort_group_num_arrays, lib.cohort_group_name, self.handle, which)

    def _on_devices(self, which: int) -> List[List[NDArray]]:
        """The devices' arrays, for each entry of a list."""
        devices = []
        for device in range(len(self.contexts)):
            with self._lock:
                devices.append(Arrays._adopt(out_handle(lib.cohort_group_arrays, self.handle, which, device)).list())
        return [list(entry) for entry in zip(*devices)]

    def _merged(self, which: int) -> List[NDArray]:
        with self._lock:
            num = out_int(lib.cohort_group_num_arrays, self.handle, which)
            return [NDArray._adopt(out_handle(lib.cohort_group_merged, self.handle, which, i)) for i in range(num)]

    def _either(self, which: int, merge: bool) -> List[Any]:
        if to_bool(merge, "merge_multi_context"):
            return self._merged(which)
        return self._on_devices(which)

    def _descs(self, which: int) -> List[DataDesc]:
        with self._lock:
            return Descs._adopt(out_handle(lib.cohort_group_descs, self.handle, which)).list()

    def _slices(self) -> List[slice]:
        with self._lock:
            pairs = [out_pair(lib.cohort_group_slice, self.handle, i) for i in range(len(self.contexts))]
        return [slice(begin, end) for begin, end in pairs]

    @property
    def execs(self) -> List[Executor]:
        """The executor of each device."""
        with self._lock:
            made = [out_handle(lib.cohort_group_executor, self.handle, i) for i in range(len(self.contexts))]
        return [Executor._adopt(executor, self._lock) for executor in made]

    @property
    def shared_data_arrays(self) -> List[Dict[str, NDArray]]:
        """The pool of input arrays of each device."""
        with self._lock:
            made = [out_handle(lib.cohort_group_shared_data, self.handle, i) for i in range(len(self.contexts))]
        return [Arrays._adopt(pool).dict() for pool in made]

    # ---- running

    def _load(self, batch: Any) -> None:
        data, label = batch_arrays(batch)
        labels = pointers(label, "label") if label else None
        self._call(lib.cohort_group_load, pointers(data, "data"), len(data), labels, len(label))

    def _run(self, is_train: Optional[bool]) -> None:
        self._call(lib.cohort_group_run, -1 if is_train is None else to_bool(is_train, "is_train"))

    def _backward(self, out_grads: Any) -> None:
        grads = head_gradients(out_grads, self.symbol.list_outputs)
        self._call(lib.cohort_group_backward, pointers(grads, "out_grads"), len(grads))

    def update(self, optimizer: Optimizer, mode: str = "store") -> None:
        """Updates every parameter that has a gradient: "store": once, from the sum over the devices, and copied to
        all; "device": on each device separately, from that sum; "none": on each from its own gradients."""
        update(self, lib.cohort_group_update, optimizer, mode)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Updates a metric, or any object with ``update(labels, preds)``, once per device with its labels and
        outputs."""
        functions = lib.cohort_group_update_metric, lib.cohort_group_update_metric_presliced
        update_metric(self, functions, eval_metric, labels, pre_sliced)

    def wait(self) -> None:
        """Waits for all queued work."""
        self._call(lib.cohort_group_wait)

    # ---- parameters

    def set_params(self, arg_params: Any, aux_params: Any, allow_extra: bool = False) -> None:
        """Copies parameters to every device by name; others keep their values."""
        args, aux = Arrays.of(arg_params, "arg_params", keeps=True), Arrays.of(aux_params, "aux_params", keeps=True)
        self._call(lib.cohort_group_set_params, args.handle, aux.handle, to_bool(allow_extra, "allow_extra"))

    def assign_params(
        self, arg_params: Any, aux_params: Any, allow_missing: bool = False, allow_extra: bool = False
    ) -> List[str]:
        """Like :meth:`set_params` for all parameters: missing ones are an error, or their names are returned."""
        args, aux = Arrays.of(arg_params, "arg_params", keeps=True), Arrays.of(aux_params, "aux_params", keeps=True)
        missing = c_void_p()
        allowed = to_bool(allow_missing, "allow_missing"), to_bool(allow_extra, "allow_extra")
        self._call(lib.cohort_group_assign_params, args.handle, aux.handle, *allowed, byref(missing))
        return [desc.name for desc in Descs._adopt(missing.value).list()]

    def get_params(
        self, arg_params: Any = None, aux_params: Any = None
    ) -> Tuple[Dict[str, NDArray], Dict[str, NDArray]]:
        """Writes the mean over the devices into given arrays, or into new ones."""
        if arg_params is None and aux_params is None:
            return self.copy_params()
        for name, value in {**to_dict(arg_params, "arg_params"), **to_dict(aux_params, "aux_params")}.items():
            handle_of(value, NDArray, f"target {name}")
        args, aux = Arrays.of(arg_params, "arg_params"), Arrays.of(aux_params, "aux_params")
        self._call(lib.cohort_group_get_params, args.handle, aux.handle)
        return arg_params, aux_params

    def copy_params(self) -> Tuple[Dict[str, NDArray], Dict[str, NDArray]]:
        args, aux = c_void_p(), c_void_p()
        self._call(lib.cohort_group_copy_params, byref(args), byref(aux))
        return Arrays._adopt(args.value).dict(), Arrays._adopt(aux.value).dict()

    def init_params(self, initializer: Initializer) -> None:
        """Fills all parameters with an initializer, equally on every device."""
        handle_of(initializer, Initializer, "initializer")
        args, aux = self.copy_params()
        for arrays in (args, aux):
            initializer.apply(arrays, self.symbol)
        self.set_params(args, aux)

    # ---- what it is

    def set_monitor_callback(
        self, callback: Optional[Callable[[str, NDArray], None]], monitor_all: bool = False
    ) -> None:
        """Calls ``callback(name, array)`` for each output of each operator on every device; None removes it."""
        made = None if callback is None else monitor_function(callback)
        pointer = null(_abi.cohort_monitor_fn) if made is None else made.pointer
        number = None if made is None else made.number
        with self._lock:
            lib.cohort_group_set_monitor(self.handle, pointer, number, to_bool(monitor_all, "monitor_all"))
            keep_monitor(self._lock, self._monitor, made)
            self._monitor = made

    def install_monitor(self, mon: Any) -> None:
        """Installs a monitor on all devices."""
        if not hasattr(mon, "install"):
            raise InvalidArgumentError(f"install_monitor: expected a monitor, found {describe(mon)}", "monitor")
        mon.install(self)

    def memory(self, device: int = 0) -> Dict[str, int]:
        """The memory of one device in bytes, by kind."""
        number = to_size(device, "device")
        with self._lock:
            return bytes_of_memory(lib.cohort_group_memory, self.handle, number)


class DataParallelExecutorGroup(GroupBase):
    """The group that MXNet's Module uses.

    >>> from cohort import DataBatch, cpu, nd, sym
    >>> from cohort.executor_group import DataParallelExecutorGroup
    >>> net = sym.FullyConnected(sym.Variable("data"), num_hidden=1, no_bias=True, name="fc")
    >>> with DataParallelExecutorGroup(net, [cpu(0), cpu(1)], None, [("data", (4, 2))], None, ["fc_weight"],
    ...                                for_training=True, inputs_need_grad=False) as group:
    ...     group.set_params({"fc_weight": nd.array([[1, 10]])}, {})
    ...     group.forward(DataBatch([[[1, 2], [3, 4], [5, 6], [7, 8]]]))
    ...     group.get_outputs()[0].asnumpy().ravel().tolist()
    [21.0, 43.0, 65.0, 87.0]
    """

    def __init__(
        self,
        symbol: Symbol,
        contexts: Any,
        workload: Optional[Sequence[float]],
        data_shapes: Any,
        label_shapes: Any,
        param_names: Optional[Sequence[str]],
        for_training: bool,
        inputs_need_grad: bool,
        shared_group: Optional["DataParallelExecutorGroup"] = None,
        logger: Any = None,
        fixed_param_names: Optional[Sequence[str]] = None,
        grad_req: Any = "write",
        state_names: Optional[Sequence[str]] = None,
        group2ctxs: Any = None,
        *,
        rounding: str = "half_even",
        slices: Optional[Sequence[slice]] = None,
        input_types: Optional[Mapping[str, Any]] = None,
        num_threads: int = 0,
        compute_dtype: Any = "float32",
        gradient_bucket_bytes: int = 0,
        seed: int = 0,
        float32_names: Any = None,
        narrow_names: Any = None,
        calibration: Optional[Calibration] = None,
        loss_scale: float = 0,
        loss_scale_window: int = 0,
        arg_params: Optional[Mapping[str, Any]] = None,
        aux_params: Optional[Mapping[str, Any]] = None,
        backward_once: bool = False,
        gradient_sum_dtype: Any = "float32",
        tf32: bool = False,
        recompute: bool = False,
        keep_device_aux: bool = False,
        strict_names: bool = False,
        stop_if_not_finite: bool = False,
    ) -> None:
        """The first parameters are those of MXNet's class; ``param_names`` None means all arguments but data, labels
        and states.

        ``compute_dtype``, ``float32_names``, ``narrow_names``, ``calibration``, ``backward_once``, ``recompute`` and
        ``tf32`` as in :meth:`Executor.simple_bind`. ``gradient_sum_dtype`` "bfloat16": gradients are rounded to it
        before they are summed over the devices, which halves the data moved between GPUs. ``loss_scale``: gradients are
        multiplied by this factor, which :meth:`update` divides out. It halves when a gradient is infinite or NaN, and
        that update is skipped; it doubles after ``loss_scale_window`` good updates (0: 2000). ``arg_params`` and
        ``aux_params``, for inference: the group uses these arrays on all devices, without a copy. ``keep_device_aux``:
        the optimizer saves the moving statistics of each device, which :meth:`resume` sets. ``strict_names``: names of
        parameters, requests and input types that would be ignored with a warning are errors. ``stop_if_not_finite``: a pass
        fails at the first output or gradient with an infinity or a NaN, and the error names it.
        """
        self.for_training = bool(to_bool(for_training, "for_training"))
        self.inputs_need_grad = bool(to_bool(inputs_need_grad, "inputs_need_grad"))
        self.workload, self.logger = workload, logger
        self.fixed_param_names = to_list(fixed_param_names, "fixed_param_names")
        self.state_names = to_list(state_names, "state_names")

        def fill(options: Any) -> List[Any]:
            options.rounding = _rounding(rounding)
            options.inputs_need_grad = int(self.inputs_need_grad)
            options.gradient_bucket_bytes = to_size(gradient_bucket_bytes, "gradient_bucket_bytes")
            set_loss_scale_options(options, loss_scale, loss_scale_window)
            options.gradient_sum_dtype = dtype_code(gradient_sum_dtype)
            options.keep_device_aux = to_bool(keep_device_aux, "keep_device_aux")
            options.strict_names = to_bool(strict_names, "strict_names")
            options.stop_if_not_finite = to_bool(stop_if_not_finite, "stop_if_not_finite")
            return [
                set_work(
                    options,
                    seed,
                    num_threads,
                    compute_dtype,
                    float32_names,
                    narrow_names,
                    backward_once,
                    tf32,
                    recompute,
                ),
                set_params_options(options, arg_params, aux_params),
                set_workload(options, workload),
                set_slices(options, slices),
                set_grad_req(options, grad_req),
                set_names(options, "fixed_param_names", self.fixed_param_names),
                set_names(options, "state_names", self.state_names),
                set_input_types(options, input_types),
                set_group2ctxs(options, group2ctxs, len(self.contexts)),
            ]

        self._created(
            symbol,
            contexts,
            data_shapes,
            label_shapes,
            param_names,
            self.for_training,
            logger,
            shared_group,
            fill,
            calibration,
        )
        self.arg_names, self.aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
        self.output_names = symbol.list_outputs()
        self.num_outputs = len(self.output_names)
        self.param_names = self._names(_abi.GroupList.PARAMS) if param_names is None else list(param_names)

    # ---- loss scale

    @property
    def loss_scale(self) -> LossScale:
        """The present loss scale."""
        return loss_scale_of(self, lib.cohort_group_loss_scale)

    def set_loss_scale(self, scale: float, num_good: int = 0) -> None:
        """Sets the loss scale."""
        set_loss_scale_of(self, lib.cohort_group_set_loss_scale, scale, num_good)

    # ---- going on with training

    def resume(self, optimizer: Optimizer) -> None:
        """Called once after :meth:`Optimizer.load_states` and :meth:`set_params`: random operators and the loss scale go
        on from where they were when the states were saved, with ``keep_device_aux`` the moving statistics of each device,
        too. Training then gives the same bits as if it had not been interrupted."""
        self._call(lib.cohort_group_resume, optimizer_handle(optimizer))

    def get_random_state(self) -> bytes:
        """Which numbers random operators draw next."""
        return bytes_from(self, lib.cohort_group_random_state)

    def set_random_state(self, state: bytes) -> None:
        """Sets the result of :meth:`get_random_state`: random operators draw the same numbers again."""
        self._call(lib.cohort_group_set_random_state, *bytes_of(state, "state"))

    # ---- shapes and slices

    @property
    def data_shapes(self) -> List[DataDesc]:
        return self._descs(_abi.GroupList.DATA)

    @property
    def label_shapes(self) -> Optional[List[DataDesc]]:
        return self._descs(_abi.GroupList.LABELS) or None

    @property
    def data_names(self) -> List[str]:
        return [desc.name for desc in self.data_shapes]

    @property
    def label_names(self) -> Optional[List[str]]:
        shapes = self.label_shapes
        return None if shapes is None else [desc.name for desc in shapes]

    @property
    def batch_size(self) -> Optional[int]:
        """None if nothing has a batch axis."""
        return self._out(out_int, lib.cohort_group_batch_size) or None

    @property
    def slices(self) -> Optional[List[slice]]:
        """The rows of each device; None if nothing has a batch axis."""
        return None if self.batch_size is None else self._slices()

    def _axes(self, which: int) -> List[int]:
        with self._lock:
            num = out_int(lib.cohort_group_num_arrays, self.handle, which)
            return [out_int(lib.cohort_group_axis, self.handle, which, i) for i in range(num)]

    @property
    def data_layouts(self) -> List[int]:
        """The batch axis of each data descriptor; -1 if it has none."""
        return self._axes(_abi.GroupList.DATA)

    @property
    def label_layouts(self) -> Optional[List[int]]:
        return self._axes(_abi.GroupList.LABELS) or None

    @property
    def output_layouts(self) -> List[int]:
        return self._axes(_abi.GroupList.OUTPUTS)

    def decide_slices(self, data_shapes: Any) -> List[int]:
        """The batch axis of each descriptor, checked against the group's batch size."""
        given = Descs.of(data_shapes, "data_shapes")
        num = len(given.codes())
        axes = (c_int32 * max(num, 1))()
        self._call(lib.cohort_group_decide_slices, given.handle, axes)
        return list(axes)[:num]

    def _sliced_shape(self, shapes: Any, i: int, major_axis: Optional[Sequence[int]]) -> List[DataDesc]:
        given = Descs.of(shapes, "shapes")
        axes = None
        if major_axis is not None:
            numbers = [to_int(axis, "major_axis", -1, _abi.MAX_AXES) for axis in to_list(major_axis, "major_axis")]
            if len(numbers) != len(given.codes()):
                raise InvalidArgumentError(
                    f"major_axis: expected {len(given.codes())} axes, found {len(numbers)}", "major_axis"
                )
            axes = (c_int32 * max(len(numbers), 1))(*numbers)
        device = to_size(i, "device")
        with self._lock:
            return Descs._adopt(
                out_handle(lib.cohort_group_sliced_shape, self.handle, given.handle, device, axes)
            ).list()

    def bind_exec(
        self, data_shapes: Any, label_shapes: Any, shared_group: Optional[GroupBase] = None, reshape: bool = False
    ) -> None:
        """Binds again; with ``reshape`` like :meth:`reshape`."""
        if to_bool(reshape, "reshape"):
            return self.reshape(data_shapes, label_shapes)
        data, label = Descs.of(data_shapes, "data_shapes"), Descs.of(label_shapes, "label_shapes")
        shared = optional_handle(shared_group, GroupBase, "shared_group")
        self._call(lib.cohort_group_bind, data.handle, label.handle, shared, 0)

    def reshape(self, data_shapes: Any, label_shapes: Any) -> None:
        """Changes the shapes of the batch; parameters stay."""
        data, label = Descs.of(data_shapes, "data_shapes"), Descs.of(label_shapes, "label_shapes")
        self._call(lib.cohort_group_reshape, data.handle, label.handle)

    # ---- running

    def forward(self, data_batch: Any, is_train: Optional[bool] = None) -> None:
        """Loads a batch and runs a forward pass; a list of batches has one for each device, sliced already."""
        if isinstance(data_batch, (list, tuple)):
            return self._forward_presliced(data_batch, is_train)
        data, label = batch_arrays(data_batch)
        self._call(
            lib.cohort_group_forward,
            pointers(data, "data"),
            len(data),
            pointers(label, "label") if label else None,
            len(label),
            -1 if is_train is None else to_bool(is_train, "is_train"),
        )

    def _forward_presliced(self, batches: Sequence[Any], is_train: Optional[bool]) -> None:
        pairs = [batch_arrays(batch) for batch in batches]
        data, num_devices, num_data = label_slices([pair[0] for pair in pairs])
        label, _, num_label = label_slices([pair[1] for pair in pairs])
        self._call(
            lib.cohort_group_forward_presliced,
            num_devices,
            pointers(data, "data"),
            num_data,
            pointers(label, "label") if label else None,
            num_label,
            -1 if is_train is None else to_bool(is_train, "is_train"),
        )

    def load(self, data_batch: Any) -> None:
        """Splits a batch over the devices; runs nothing."""
        self._load(data_batch)

    def run(self, is_train: Optional[bool] = None) -> None:
        """Runs a forward pass over the loaded batch."""
        self._run(is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Runs backward after the latest forward pass."""
        self._backward(out_grads)

    # ---- arrays

    def get_output_shapes(self) -> List[Tuple[str, Tuple[int, ...]]]:
        with self._lock:
            shapes = Descs._adopt(out_handle(lib.cohort_group_output_shapes, self.handle)).list()
        return [(desc.name, desc.shape) for desc in shapes]

    def get_outputs(self, merge_multi_context: bool = True, begin: int = 0, end: Optional[int] = None) -> List[Any]:
        """Outputs joined over the devices; without merging, a list of the devices' arrays for each."""
        num = self._num(_abi.GroupList.OUTPUTS)
        first, last = to_size(begin, "begin"), num if end is None else to_size(end, "end")
        if not first <= last <= num:
            raise InvalidArgumentError(f"outputs: expected a range of {num}, found {first} to {last}", "outputs")
        return self._either(_abi.GroupList.OUTPUTS, merge_multi_context)[first:last]

    def get_input_grads(self, merge_multi_context: bool = True) -> List[Any]:
        if not (self.inputs_need_grad and self.for_training):
            raise StateError("input gradients: the group was bound without them", "inputs_need_grad")
        return self._either(_abi.GroupList.INPUT_GRADS, merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> List[Any]:
        return self._either(_abi.GroupList.STATES, merge_multi_context)

    def set_states(self, states: Any = None, value: Optional[float] = None) -> None:
        """Sets states: a list of the devices' arrays for each state, or one number for all."""
        set_states(self, lib.cohort_group_set_states, states, value)

    def _pairs(self, which: int) -> List[List[Tuple[slice, NDArray]]]:
        slices = self.slices or [slice(i, i + 1) for i in range(len(self.contexts))]
        return [list(zip(slices, entry)) for entry in self._on_devices(which)]

    @property
    def data_arrays(self) -> List[List[Tuple[slice, NDArray]]]:
        return self._pairs(_abi.GroupList.DATA)

    @property
    def label_arrays(self) -> Optional[List[List[Tuple[slice, NDArray]]]]:
        return self._pairs(_abi.GroupList.LABELS) or None

    @property
    def param_arrays(self) -> List[List[NDArray]]:
        """The devices' arrays of each parameter, in the order of the arguments."""
        return self._on_devices(_abi.GroupList.PARAMS)

    @property
    def param_array_names(self) -> List[str]:
        """The names of the arrays in :attr:`param_arrays`."""
        return self._names(_abi.GroupList.PARAMS)

    @property
    def grad_arrays(self) -> Optional[List[List[NDArray]]]:
        return self._on_devices(_abi.GroupList.GRADS) if self.for_training else None

    @property
    def aux_arrays(self) -> List[List[NDArray]]:
        return self._on_devices(_abi.GroupList.AUX)

    @property
    def state_arrays(self) -> List[List[NDArray]]:
        return self._on_devices(_abi.GroupList.STATES)

    @property
    def input_grad_arrays(self) -> Optional[List[List[NDArray]]]:
        if not (self.inputs_need_grad and self.for_training):
            return None
        return self._on_devices(_abi.GroupList.INPUT_GRADS)

    @property
    def grad_req(self) -> Dict[str, str]:
        """The gradient request of each argument."""
        return self.execs[0].grad_req


# ---- options ---------------------------------------------------------------------------------------------------------


def _rounding(rounding: Any) -> int:
    if not isinstance(rounding, str) or rounding not in ROUNDING:
        raise InvalidArgumentError(
            f"rounding: expected one of {list(ROUNDING)}, found {describe(rounding)}", "rounding"
        )
    return int(ROUNDING[rounding])


def set_params_options(options: Any, arg_params: Any, aux_params: Any) -> List[Any]:
    kept = []
    for field, given in (("arg_params", arg_params), ("aux_params", aux_params)):
        if given is None:
            continue
        kept.append(Arrays.of(given, field))
        setattr(options, field, kept[-1].handle)
    return kept


def set_workload(options: Any, workload: Any) -> Any:
    given = to_list(workload, "workload")
    if not given:
        return None
    made = reals(given, "workload")
    options.workload, options.num_workloads = made, len(given)
    return made


def set_slices(options: Any, slices: Any) -> Any:
    given = to_list(slices, "slices")
    if not given:
        return None
    ends: List[int] = []
    for part in given:
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise InvalidArgumentError(f"slices: expected slice(begin, end), found {describe(part)}", "slices")
        ends += [to_int(part.start or 0, "slices"), to_int(part.stop, "slices")]
    made = (_abi.c_int64 * len(ends))(*ends)
    options.slices, options.num_slices = made, len(given)
    return made


def set_input_types(options: Any, types: Any) -> Any:
    given = to_dict(types, "input_types")
    names, found = texts(list(given), "input_types"), [dtype_code(dtype) for dtype in given.values()]
    made = (c_int32 * max(len(found), 1))(*found)
    options.input_dtype_names, options.num_input_dtypes = char_pp(names), len(given)
    options.input_dtypes = made
    return [names, made]


def set_group2ctxs(options: Any, given: Any, num: int) -> Any:
    """One dict for all devices, whose values are a context or a list with one per device; or a list of dicts, one per
    device."""
    if given is None:
        return None
    maps: List[Dict[str, Any]]
    if isinstance(given, Mapping):
        lists = {key: to_contexts(value) for key, value in given.items()}
        for key, value in lists.items():
            if len(value) not in (1, num):
                raise InvalidArgumentError(f"group2ctxs: expected 1 or {num} contexts, found {len(value)}", key)
        maps = [{key: value[i if len(value) > 1 else 0] for key, value in lists.items()} for i in range(num)]
    else:
        maps = [to_dict(one, "group2ctxs") for one in to_list(given, "group2ctxs")]
        if len(maps) != num:
            raise InvalidArgumentError(f"group2ctxs: expected {num} dicts, found {len(maps)}", "group2ctxs")
    keys = sorted({key for one in maps for key in one})
    if not keys:
        return None
    names = texts(keys, "group2ctxs")
    contexts = (_abi.cohort_context * (len(keys) * num))()
    for k, key in enumerate(keys):
        for i, one in enumerate(maps):
            if one.get(key) is not None:
                contexts[k * num + i] = to_context(one[key])._struct()
    options.ctx_group_names, options.num_ctx_groups = char_pp(names), len(keys)
    options.ctx_group_contexts = cast(contexts, POINTER(_abi.cohort_context))
    options.contexts_per_ctx_group = num
    return [names, contexts]


def update(target: Handle, function: Any, optimizer: Optimizer, mode: str) -> None:
    """Updates the parameters of a group or a manager."""
    code, handle = update_mode(mode), optimizer_handle(optimizer)
    with target._lock, optimizer._lock:
        function(target.handle, handle, code)


def update_metric(target: Handle, functions: Tuple[Any, Any], given: Any, labels: Any, pre_sliced: bool) -> None:
    """Updates a metric from the outputs of a group or a manager; functions: for whole labels, and for sliced ones."""
    metric = metric_of(given)
    whole, presliced = functions
    if to_bool(pre_sliced, "pre_sliced"):
        arrays, num_devices, num = label_slices(labels)
        with target._lock, metric._lock:
            presliced(target.handle, metric.handle, num_devices, pointers(arrays, "labels"), num)
        return
    arrays = arrays_of(labels, "labels")
    with target._lock, metric._lock:
        whole(target.handle, metric.handle, pointers(arrays, "labels"), len(arrays))


def set_states(target: Handle, function: Any, states: Any, value: Optional[float]) -> None:
    number = None if value is None else byref(_abi.c_double(to_real(value, "value")))
    if states is None:
        target._call(function, None, 0, 0, number)
        return
    entries: List[Iterable[NDArray]] = [arrays_of(entry, "states") for entry in to_list(states, "states")]
    arrays = [array for entry in entries for array in entry]
    num_devices = len(list(entries[0])) if entries else 0
    if num_devices * len(entries) != len(arrays):
        raise InvalidArgumentError("states: expected one array per device for each state", "states")
    target._call(function, pointers(arrays, "states"), len(entries), num_devices, number)
