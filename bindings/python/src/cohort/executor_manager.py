# SPDX-License-Identifier: Apache-2.0
"""The interface of ``mxnet.executor_manager``: a group that splits batches along their first axis, and the manager that
keeps such a group for each bucket."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int64
from typing import Any, Callable, Dict, Hashable, List, Mapping, Optional, Sequence, Tuple

from . import _abi
from ._library import (
    Callback,
    Handle,
    describe,
    from_text,
    handle_of,
    lib,
    options_of,
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
)
from .context import Context, struct_of, to_contexts
from .errors import InvalidArgumentError, StateError, UnknownNameError, UnsupportedError
from .executor import Executor, bytes_of_memory, set_names, set_work
from .executor_group import (
    GroupBase,
    batch_arrays,
    set_slices,
    set_states,
    set_workload,
    update,
    update_metric,
)
from .initializer import Initializer
from .io import DataDesc, Descs, to_desc
from .logging_ import default_logger, sink
from ._dtype import dtype_code
from .ndarray import Arrays, NDArray, arrays_of
from .optimizer import Optimizer, optimizer_handle
from .precision import LossScale, loss_scale_of, set_loss_scale_of, set_loss_scale_options
from .symbol import Symbol

Pairs = List[List[Tuple[slice, NDArray]]]


def _split_input_slice(batch_size: int, work_load_list: Sequence[float]) -> List[slice]:
    """The rows of each device: shares by workload, halves rounded to even, missing rows added to the last device.

    >>> from cohort.executor_manager import _split_input_slice
    >>> _split_input_slice(10, [1, 1, 1, 1])
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None), slice(6, 10, None)]
    """
    weights = to_list(work_load_list, "work_load_list")
    begin, end = (c_int64 * max(len(weights), 1))(), (c_int64 * max(len(weights), 1))()
    lib.cohort_split_slices(
        to_int(batch_size, "batch_size"),
        reals(weights, "work_load_list"),
        len(weights),
        _abi.Rounding.HALF_EVEN,
        begin,
        end,
    )
    return [slice(begin[i], end[i]) for i in range(len(weights))]


def _check_arguments(symbol: Symbol) -> None:
    """Raises if two arguments, or two auxiliary states, have the same name."""
    handle_of(symbol, Symbol, "symbol")
    for what, names in (
        ("argument", symbol.list_arguments()),
        ("auxiliary state", symbol.list_auxiliary_states()),
    ):
        for name in names:
            if names.count(name) > 1:
                raise UnknownNameError(f"two of the network's {what}s are called '{name}': {', '.join(names)}", name)


def _load_general(data: Any, targets: Any) -> None:
    """Copies arrays into targets: each an array, or a list of pairs of slice and array."""
    sources, places = arrays_of(data, "data", keeps=True), to_list(targets, "targets")
    if len(sources) != len(places):
        raise InvalidArgumentError(f"data: expected {len(places)} arrays, found {len(sources)}", "data")
    for source, target in zip(sources, places):
        if isinstance(target, NDArray):
            source.copyto(target)
            continue
        if target[-1][0].stop != len(source):
            raise InvalidArgumentError(f"data: expected {target[-1][0].stop} samples, found {len(source)}", "data")
        for rows, part in target:
            source[rows].copyto(part)


def _load_data(batch: Any, targets: Any) -> None:
    _load_general(batch.data, targets)


def _load_label(batch: Any, targets: Any) -> None:
    _load_general(batch.label, targets)


def _bind_exec(
    sym: Symbol,
    ctx: Any,
    input_shapes: Mapping[str, Any],
    param_names: Sequence[str],
    need_grad: Any = False,
    base_exec: Optional[Executor] = None,
    shared_data_arrays: Optional[Dict[str, NDArray]] = None,
    input_types: Optional[Mapping[str, Any]] = None,
    logger: Any = None,
) -> Executor:
    """One device's executor: parameters from ``base_exec``, inputs from the pool ``shared_data_arrays``."""
    handle_of(sym, Symbol, "sym")
    names = sym.list_arguments()
    if isinstance(need_grad, bool):
        wanted = {name for name in names if name not in input_shapes} if need_grad else set()
    elif isinstance(need_grad, (set, frozenset)):
        wanted = set(need_grad)
    else:
        raise InvalidArgumentError(
            f"need_grad: expected True, False or a set, found {describe(need_grad)}", "need_grad"
        )
    types = {name: "float32" for name in input_shapes} if input_types is None else input_types
    return Executor.simple_bind(
        sym,
        ctx,
        {name: "write" if name in wanted else "null" for name in names},
        types,
        shared_exec=base_exec,
        shared_arg_names=list(param_names),
        shared_buffer=shared_data_arrays,
        **input_shapes,
    )


def _first_axis(descs: Any) -> List[DataDesc]:
    """Descriptors that are batched along the first axis, whatever their layouts say."""
    return [DataDesc(desc.name, desc.shape, desc.dtype, "N") for desc in map(to_desc, to_list(descs, "train_data"))]


def _provided(source: Any) -> Tuple[List[DataDesc], List[DataDesc]]:
    if not hasattr(source, "provide_data"):
        raise InvalidArgumentError(
            f"train_data: expected provide_data and provide_label, found {describe(source)}", "train_data"
        )
    return _first_axis(source.provide_data), _first_axis(getattr(source, "provide_label", None))


class DataParallelExecutorGroup(GroupBase):
    """A group of executors living on different devices, for data parallelization: always for training, with gradients of
    the parameters, split along the first axis by the slices that are given.

    :param sym: the network.
    :param arg_names: equals ``sym.list_arguments()``.
    :param param_names: names of all trainable parameters.
    :param ctx: the devices.
    :param slices: the rows of each.
    :param train_data: anything with ``provide_data`` and ``provide_label``.
    :param shared_group: a group to share parameters and memory with.
    """

    def __init__(
        self,
        sym: Symbol,
        arg_names: Sequence[str],
        param_names: Sequence[str],
        ctx: Sequence[Context],
        slices: Sequence[slice],
        train_data: Any,
        shared_group: Optional["DataParallelExecutorGroup"] = None,
    ) -> None:
        _check_arguments(sym)
        data, label = _provided(train_data)
        names = to_list(arg_names, "arg_names")

        def fill(options: Any) -> List[Any]:
            options.rounding = _abi.Rounding.HALF_EVEN
            return [set_slices(options, slices), set_names(options, "arg_names", names)]

        params = to_list(param_names, "param_names")
        self._created(sym, ctx, data, label, params, True, None, shared_group, fill)
        self._look()

    def _look(self) -> None:
        """The names of the arrays in these lists."""
        self.aux_names = self.symbol.list_auxiliary_states()
        self.data_names = self._names(_abi.GroupList.DATA)
        self.label_names = self._names(_abi.GroupList.LABELS)
        self.param_names = self._names(_abi.GroupList.PARAMS)
        arguments = self.symbol.list_arguments()
        self.param_idx = [arguments.index(name) for name in self.param_names]
        self.slices = self._slices()

    @classmethod
    def _of_manager(cls, handle: Optional[int], manager: "DataParallelExecutorManager") -> "DataParallelExecutorGroup":
        made = cls._adopt(handle, manager._lock)
        made.contexts = manager.ctx
        made.symbol = made.execs[0].symbol
        made._look()
        return made

    @property
    def train_execs(self) -> List[Executor]:
        return self.execs

    def _pairs(self, which: int) -> Pairs:
        return [list(zip(self.slices, entry)) for entry in self._on_devices(which)]

    @property
    def data_arrays(self) -> Pairs:
        return self._pairs(_abi.GroupList.DATA)

    @property
    def label_arrays(self) -> Pairs:
        return self._pairs(_abi.GroupList.LABELS)

    @property
    def param_arrays(self) -> List[List[NDArray]]:
        return self._on_devices(_abi.GroupList.PARAMS)

    @property
    def grad_arrays(self) -> List[List[NDArray]]:
        return self._on_devices(_abi.GroupList.GRADS)

    @property
    def aux_arrays(self) -> List[List[NDArray]]:
        return self._on_devices(_abi.GroupList.AUX)

    def load_data_batch(self, data_batch: Any) -> None:
        """Load data and labels into arrays."""
        self._load(data_batch)

    def forward(self, is_train: bool = False) -> None:
        """Perform a forward pass on each executor."""
        self._run(bool(to_bool(is_train, "is_train")))

    def backward(self) -> None:
        """Perform a backward pass on each executor."""
        self._backward(None)

    def update_metric(self, metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update evaluation metric with label and current outputs."""
        super().update_metric(metric, labels, pre_sliced)


class DataParallelExecutorManager(Handle):
    """Helper class to manage multiple executors for data parallelism.

    :param symbol: the network; of the default bucket, where there are several.
    :param ctx: the devices.
    :param train_data: an iterator, of which ``batch_size``, ``provide_data``, ``provide_label`` and, with ``sym_gen``,
        ``default_bucket_key`` are read.
    :param arg_names: names of all arguments of the network; None: as they are.
    :param param_names: names of all trainable parameters; None: all arguments but data and labels.
    :param aux_names: names of all auxiliary states; None: as they are.
    :param work_load_list: the share of each device.
    :param logger: a Python logger.
    :param sym_gen: a function from a bucket's key to its symbol.

    Precision, ``loss_scale``, ``backward_once``, ``recompute``, ``gradient_sum_dtype``, ``tf32`` and
    ``keep_device_aux`` as in :class:`DataParallelExecutorGroup`; there is one scale for all buckets.
    """

    _free_name = "cohort_manager_free"

    def __init__(
        self,
        symbol: Symbol,
        ctx: Sequence[Context],
        train_data: Any,
        arg_names: Optional[Sequence[str]],
        param_names: Optional[Sequence[str]],
        aux_names: Optional[Sequence[str]],
        work_load_list: Optional[Sequence[float]] = None,
        logger: Any = None,
        sym_gen: Optional[Callable[[Any], Symbol]] = None,
        *,
        state_names: Optional[Sequence[str]] = None,
        num_threads: int = 0,
        compute_dtype: Any = "float32",
        seed: int = 0,
        float32_names: Any = None,
        narrow_names: Any = None,
        loss_scale: float = 0,
        loss_scale_window: int = 0,
        backward_once: bool = False,
        gradient_sum_dtype: Any = "float32",
        tf32: bool = False,
        recompute: bool = False,
        keep_device_aux: bool = False,
    ) -> None:
        _check_arguments(symbol)
        self.symbol, self.ctx, self.sym_gen = symbol, to_contexts(ctx), sym_gen
        self.arg_names = _same_names(arg_names, symbol.list_arguments(), "arg_names")
        self.aux_names = _same_names(aux_names, symbol.list_auxiliary_states(), "aux_names")
        data, label = _provided(train_data)
        options = options_of(_abi.cohort_manager_options, lib.cohort_manager_options_init)
        kept = [set_workload(options, work_load_list), set_names(options, "state_names", state_names)]
        kept.append(
            set_work(
                options, seed, num_threads, compute_dtype, float32_names, narrow_names, backward_once, tf32, recompute
            )
        )
        set_loss_scale_options(options, loss_scale, loss_scale_window)
        options.gradient_sum_dtype = dtype_code(gradient_sum_dtype)
        options.keep_device_aux = to_bool(keep_device_aux, "keep_device_aux")
        callbacks = [Callback(_abi.cohort_log_fn, sink(default_logger() if logger is None else logger))]
        options.log, options.log_user_data = callbacks[0].pointer, callbacks[0].number
        # Keys are any objects that have a hash; the library knows them by text.
        self._keys: Dict[Hashable, str] = {}
        self._by_text: Dict[str, Any] = {}
        if sym_gen is not None:
            if not callable(sym_gen):
                raise InvalidArgumentError(f"sym_gen: expected a function, found {describe(sym_gen)}", "sym_gen")
            key = getattr(train_data, "default_bucket_key", None)
            options.default_bucket_key = self._text_of(key)
            callbacks.append(Callback(_abi.cohort_bucket_symbol_fn, _symbol_of_bucket(sym_gen, self._by_text)))
            options.bucket_symbol, options.bucket_symbol_user_data = callbacks[1].pointer, callbacks[1].number
        names = None if param_names is None else to_list(param_names, "param_names")
        descs = Descs.of(data, "train_data"), Descs.of(label, "train_data")
        made = out_handle(
            lib.cohort_manager_create,
            handle_of(symbol, Symbol, "symbol"),
            struct_of(self.ctx),
            len(self.ctx),
            to_int(getattr(train_data, "batch_size", None), "batch_size"),
            descs[0].handle,
            descs[1].handle,
            None if names is None else texts(names, "param_names"),
            len(names or []),
            byref(options),
        )
        del kept
        self._start(made)
        self._lock.callbacks.extend(callbacks)
        self.param_names = self.execgrp.param_names if names is None else names

    @property
    def loss_scale(self) -> LossScale:
        """The present loss scale, common to all buckets."""
        return loss_scale_of(self, lib.cohort_manager_loss_scale)

    def set_loss_scale(self, scale: float, num_good: int = 0) -> None:
        """Sets the loss scale."""
        set_loss_scale_of(self, lib.cohort_manager_set_loss_scale, scale, num_good)

    def resume(self, optimizer: Optimizer) -> None:
        """As :meth:`DataParallelExecutorGroup.resume`, for all buckets, those too that are made later."""
        self._call(lib.cohort_manager_resume, optimizer_handle(optimizer))

    def _text_of(self, key: Any) -> bytes:
        if key is None:
            raise InvalidArgumentError("bucket_key: expected a key, found none", "bucket_key")
        try:
            text = self._keys.setdefault(key, f"{len(self._keys)}: {str(key)[:200]}".replace("\0", "?"))
        except TypeError:
            raise InvalidArgumentError(f"bucket_key: expected a hashable object, found {describe(key)}", "bucket_key")
        self._by_text[text] = key
        return text.encode("utf-8", "replace")

    # ---- groups

    def _group(self, function: Any) -> DataParallelExecutorGroup:
        with self._lock:
            return DataParallelExecutorGroup._of_manager(out_handle(function, self.handle), self)

    @property
    def execgrp(self) -> DataParallelExecutorGroup:
        """The main group, which owns the shared parameters."""
        return self._group(lib.cohort_manager_main_group)

    @property
    def curr_execgrp(self) -> Optional[DataParallelExecutorGroup]:
        """The group of the batch loaded last; None before the first batch."""
        try:
            return self._group(lib.cohort_manager_current_group)
        except StateError:
            if self.closed:
                raise
            return None

    @property
    def execgrp_bucket(self) -> Dict[Any, DataParallelExecutorGroup]:
        """The groups made so far, by key."""
        found = {}
        with self._lock:
            for i in range(out_int(lib.cohort_manager_num_buckets, self.handle)):
                key, group = _abi.c_char_p(), _abi.c_void_p()
                lib.cohort_manager_bucket(self.handle, i, byref(key), byref(group))
                found[self._by_text[from_text(key.value)]] = DataParallelExecutorGroup._of_manager(group.value, self)
        return found

    @property
    def slices(self) -> List[slice]:
        with self._lock:
            pairs = [out_pair(lib.cohort_manager_slice, self.handle, i) for i in range(len(self.ctx))]
        return [slice(begin, end) for begin, end in pairs]

    # ---- running

    def load_data_batch(self, data_batch: Any) -> None:
        """Load data and labels into arrays; makes the batch's bucket if it is new."""
        data, label = batch_arrays(data_batch)
        key, descs = None, [None, None]  # type: Optional[bytes], List[Optional[Descs]]
        if self.sym_gen is not None:
            key = self._text_of(getattr(data_batch, "bucket_key", None))
            given = getattr(data_batch, "provide_data", None), getattr(data_batch, "provide_label", None)
            descs = [None if part is None else Descs.of(_first_axis(part), "data_batch") for part in given]
        self._call(
            lib.cohort_manager_load_data_batch,
            pointers(data, "data"),
            len(data),
            pointers(label, "label") if label else None,
            len(label),
            key,
            *(None if part is None else part.handle for part in descs),
        )

    def forward(self, is_train: bool = False) -> None:
        """Run forward on the current executor."""
        self._call(lib.cohort_manager_forward, to_bool(is_train, "is_train"))

    def backward(self) -> None:
        """Run backward on the current executor."""
        self._call(lib.cohort_manager_backward)

    def update(self, optimizer: Optimizer, mode: str = "store") -> None:
        """Updates the parameters from the gradients; see :meth:`GroupBase.update`."""
        update(self, lib.cohort_manager_update, optimizer, mode)

    def update_metric(self, metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update metric with the current executor."""
        functions = lib.cohort_manager_update_metric, lib.cohort_manager_update_metric_presliced
        update_metric(self, functions, metric, labels, pre_sliced)

    def get_outputs(self) -> List[NDArray]:
        """The outputs of the current group, joined over the devices."""
        which = _abi.GroupList.OUTPUTS
        with self._lock:
            num = out_int(lib.cohort_manager_num_arrays, self.handle, which)
            return [NDArray._adopt(out_handle(lib.cohort_manager_merged, self.handle, which, i)) for i in range(num)]

    def set_states(self, states: Any = None, value: Optional[float] = None) -> None:
        """Sets the states of the current group."""
        set_states(self, lib.cohort_manager_set_states, states, value)

    def install_monitor(self, monitor: Any) -> None:
        """Install monitor on all executors."""
        if self.sym_gen is not None:
            raise UnsupportedError("install_monitor: a manager with buckets cannot be monitored", "monitor")
        if not hasattr(monitor, "install"):
            raise InvalidArgumentError(f"install_monitor: expected a monitor, found {describe(monitor)}", "monitor")
        monitor.install(self)

    # ---- parameters

    def set_params(self, arg_params: Any, aux_params: Any) -> None:
        """Set parameter and aux values, given by name."""
        args, aux = Arrays.of(arg_params, "arg_params", keeps=True), Arrays.of(aux_params, "aux_params", keeps=True)
        self._call(lib.cohort_manager_set_params, args.handle, aux.handle)

    def assign_params(
        self, arg_params: Any, aux_params: Any, allow_missing: bool = False, allow_extra: bool = False
    ) -> List[str]:
        """Like :meth:`set_params` for all parameters: missing ones are an error, or their names are returned."""
        args, aux = Arrays.of(arg_params, "arg_params", keeps=True), Arrays.of(aux_params, "aux_params", keeps=True)
        missing = _abi.c_void_p()
        allowed = to_bool(allow_missing, "allow_missing"), to_bool(allow_extra, "allow_extra")
        self._call(lib.cohort_manager_assign_params, args.handle, aux.handle, *allowed, byref(missing))
        return [desc.name for desc in Descs._adopt(missing.value).list()]

    def copy_to(self, arg_params: Any, aux_params: Any) -> None:
        """Copy data from each executor to `arg_params` and `aux_params`: the mean over the devices, in place."""
        for name, value in {**to_dict(arg_params, "arg_params"), **to_dict(aux_params, "aux_params")}.items():
            handle_of(value, NDArray, f"target {name}")
        args, aux = Arrays.of(arg_params, "arg_params", keeps=True), Arrays.of(aux_params, "aux_params", keeps=True)
        self._call(lib.cohort_manager_copy_to, args.handle, aux.handle)

    def init_params(self, initializer: Initializer) -> None:
        """Fills all parameters with an initializer."""
        with self.execgrp as group:
            group.init_params(initializer)

    @property
    def param_arrays(self) -> List[List[NDArray]]:
        """Shared parameter arrays."""
        return self.execgrp.param_arrays

    @property
    def grad_arrays(self) -> List[List[NDArray]]:
        """Shared gradient arrays."""
        return self.execgrp.grad_arrays

    @property
    def aux_arrays(self) -> List[List[NDArray]]:
        """Shared aux states."""
        return self.execgrp.aux_arrays

    def memory(self) -> Dict[str, int]:
        """The memory of all buckets together in bytes, by kind."""
        with self._lock:
            return bytes_of_memory(lib.cohort_manager_memory, self.handle)


def _same_names(given: Optional[Sequence[str]], names: List[str], what: str) -> List[str]:
    if given is not None and to_list(given, what) != names:
        raise InvalidArgumentError(f"{what}: expected the symbol's {names}, found {list(given)}", what)
    return names


def _symbol_of_bucket(sym_gen: Callable[[Any], Symbol], by_text: Dict[str, Any]) -> Callable[[int, Any], int]:
    def run(key: int, out_symbol: Any) -> int:
        found = by_text[from_text(ctypes.string_at(key))]
        made = sym_gen(found)
        if not isinstance(made, Symbol):
            raise InvalidArgumentError(f"sym_gen: expected a Symbol for {found!r}, found {describe(made)}", "sym_gen")
        # The library frees the handle it is given, so it gets a copy.
        out_symbol[0] = out_handle(lib.cohort_symbol_copy, made.handle)
        return 0

    return run
