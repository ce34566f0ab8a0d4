# SPDX-License-Identifier: Apache-2.0
"""Executors: a network bound to arrays."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int32, cast
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from . import _abi
from ._library import (
    Callback,
    Family,
    Handle,
    bytes_from,
    bytes_of,
    codes,
    describe,
    from_text,
    handle_of,
    held,
    lib,
    list_of_names,
    null,
    optional_handle,
    options_of,
    out_handle,
    out_int,
    out_text,
    pointers,
    texts,
    to_bool,
    to_dict,
    to_int,
    to_list,
    to_text,
)
from .context import Context, pointer_to, struct_of, to_context
from .errors import InvalidArgumentError, UnknownNameError
from .io import to_known
from ._dtype import dtype_code
from .ndarray import Arrays, NDArray, arrays_of, by_name, lent, to_array
from .precision import Calibration
from .symbol import Symbol

_WORDS = {"null": 0, "write": 1, "add": 3}
_WORD_OF = {code: word for word, code in _WORDS.items()}
_ARGS, _GRADS, _AUX, _OUTPUTS = map(int, _abi.ExecutorList)
_pointer_of = attrgetter("_pointer")


def char_pp(values: Any) -> Any:
    """An array of text as a struct field; ctypes keeps the original alive."""
    return cast(values, POINTER(c_char_p))


def set_grad_req(options: Any, grad_req: Any) -> List[Any]:
    """Writes one of the three forms into an options struct. Returns the objects it refers to, which must be kept."""
    if grad_req is None:
        return []
    if isinstance(grad_req, str):
        options.grad_req = to_text(grad_req, "grad_req")
        return []
    if isinstance(grad_req, Mapping):
        names, words = texts(list(grad_req), "grad_req"), texts(list(grad_req.values()), "grad_req")
        options.grad_req_names = char_pp(names)
    else:
        names, words = None, texts(to_list(grad_req, "grad_req"), "grad_req")
    options.grad_req_list, options.num_grad_reqs = char_pp(words), len(grad_req)
    return [names, words]


def set_work(
    options: Any,
    seed: int,
    num_threads: int,
    compute_dtype: Any,
    float32_names: Any,
    narrow_names: Any,
    backward_once: bool,
    tf32: bool,
    recompute: bool,
) -> List[Any]:
    options.seed = to_int(seed, "seed", 0, 2**64 - 1)
    options.num_threads = to_int(num_threads, "num_threads", 0, 2**31 - 1)
    options.compute_dtype = dtype_code(compute_dtype)
    options.backward_once = to_bool(backward_once, "backward_once")
    options.tf32 = to_bool(tf32, "tf32")
    options.recompute = to_bool(recompute, "recompute")
    return [set_names(options, "float32_names", float32_names), set_names(options, "narrow_names", narrow_names)]


def set_calibration(options: Any, calibration: Optional[Calibration]) -> None:
    options.calibration = optional_handle(calibration, Calibration, "calibration")


def set_names(options: Any, field: str, names: Any) -> List[Any]:
    given = to_list(names, field)
    made = texts(given, field)
    setattr(options, field, char_pp(made))
    setattr(options, "num_" + field, len(given))
    return [made]


def set_ctx_groups(options: Any, group2ctx: Any) -> List[Any]:
    given = to_dict(group2ctx, "group2ctx")
    names, contexts = texts(list(given), "group2ctx"), struct_of([to_context(value) for value in given.values()])
    options.ctx_group_names, options.num_ctx_groups = char_pp(names), len(given)
    options.ctx_group_contexts = cast(contexts, POINTER(_abi.cohort_context))
    return [names, contexts]


def bytes_of_memory(function: Any, handle: int, *arguments: Any) -> Dict[str, int]:
    info = _abi.cohort_memory_info()
    info.struct_size = ctypes.sizeof(info)
    function(handle, *arguments, byref(info))
    return {name: getattr(info, name) for name, _ in info._fields_ if name != "struct_size"}


def monitor_function(callback: Callable[[str, NDArray], None]) -> Callback:
    def run(name: int, array: int) -> None:
        callback(from_text(ctypes.string_at(name)), lent(array))

    if not callable(callback):
        raise InvalidArgumentError(f"callback: expected a function, found {describe(callback)}", "callback")
    return Callback(_abi.cohort_monitor_fn, run)


def keep_monitor(family: Family, old: Optional[Callback], new: Optional[Callback]) -> None:
    if old in family.callbacks:
        family.callbacks.remove(old)
    if new is not None:
        family.callbacks.append(new)


def head_gradients(given: Any, names: Callable[[], List[str]]) -> List[Optional[NDArray]]:
    """One array, a list in the order of the outputs, or a dict by output name."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        for name in names():
            if name not in given:
                raise UnknownNameError(f"head gradients: there is none for '{name}'", name)
        given = [given[name] for name in names()]
    elif not isinstance(given, (list, tuple)):
        given = [given]
    return [None if value is None else to_array(value, "out_grads", keeps=True) for value in given]


class Executor(Handle):
    """A network bound to its own or the caller's arrays. Passes are queued; reading an array waits.

    >>> from cohort import nd, sym
    >>> net = sym.FullyConnected(sym.Variable("data"), num_hidden=1, no_bias=True, name="fc")
    >>> with net.simple_bind(data=(2, 3)) as executor:
    ...     executor.arg_dict["fc_weight"][:] = [[1, 2, 3]]
    ...     executor.forward(data=[[1, 0, 0], [0, 1, 0]])[0].asnumpy().tolist()
    [[1.0], [2.0]]
    """

    _free_name = "cohort_executor_free"
    _monitor: Optional[Callback] = None
    _outputs_stay = False  # set if every forward pass is known to write the same arrays

    def _start(self, pointer: Optional[int], lock: Optional[Family] = None) -> None:
        super()._start(pointer, lock)
        # By list: all arrays, and those that exist.
        self._kept: Dict[int, Tuple[List[Optional[NDArray]], List[NDArray]]] = {}
        self._kept_names: Dict[int, List[str]] = {}

    def _free(self) -> None:
        super()._free()
        self._kept.clear()

    # ---- binding

    @classmethod
    def _bound(cls, pointer: Optional[int], lock: Optional[Family] = None) -> "Executor":
        """A new executor that has not run: an output that is missing has a shape that depends on values."""
        made = cls._adopt(pointer, lock)
        made._outputs_stay = True
        if any(output is None for output in made._list(_OUTPUTS)):
            made._outputs_stay = False
            made._kept.clear()
        return made

    @classmethod
    def simple_bind(
        cls,
        symbol: Symbol,
        ctx: Any = None,
        grad_req: Any = "write",
        type_dict: Optional[Mapping[str, Any]] = None,
        group2ctx: Optional[Mapping[str, Any]] = None,
        shared_arg_names: Any = None,
        shared_exec: Optional["Executor"] = None,
        shared_buffer: Optional[Dict[str, NDArray]] = None,
        seed: int = 0,
        num_threads: int = 0,
        compute_dtype: Any = "float32",
        float32_names: Any = None,
        narrow_names: Any = None,
        calibration: Optional[Calibration] = None,
        backward_once: bool = False,
        tf32: bool = False,
        recompute: bool = False,
        **kwargs: Any,
    ) -> "Executor":
        """Binds to arrays of zeros, for shapes given by name.

        ``compute_dtype`` "bfloat16": layers multiply in that type, while arrays keep theirs. Nodes and operators named
        in ``float32_names`` do not; those in ``narrow_names`` do even if they would not by default. "int8", with a
        :class:`Calibration`: inference in int8. ``backward_once``: at most one backward pass after each forward pass,
        whose results it may overwrite; takes less memory. ``tf32``: GPUs may round factors of float32 products to TF32,
        except those named in ``float32_names``. ``recompute``: backward recomputes cheap results of the forward pass
        instead of keeping them; the same numbers in less memory and a little more time.
        """
        options = options_of(_abi.cohort_executor_options, lib.cohort_executor_options_init)
        kept = [set_grad_req(options, grad_req), set_ctx_groups(options, group2ctx)]
        kept.append(set_names(options, "shared_arg_names", shared_arg_names))
        pool = None if shared_buffer is None else Arrays.of(shared_buffer, "shared_buffer")
        kept.append(
            set_work(
                options, seed, num_threads, compute_dtype, float32_names, narrow_names, backward_once, tf32, recompute
            )
        )
        options.shared_data = None if pool is None else pool.handle
        known = to_known(kwargs, to_dict(type_dict, "type_dict"))
        handle = handle_of(symbol, Symbol, "symbol")
        with cls._binding(options, shared_exec, calibration):
            made = out_handle(lib.cohort_executor_simple_bind, handle, pointer_to(ctx), known.handle, byref(options))
            bound = cls._bound(made, None if shared_exec is None else shared_exec._lock)
        if pool is not None and shared_buffer is not None:
            shared_buffer.update(pool.dict())
        del kept
        return bound

    @classmethod
    def bind(
        cls,
        symbol: Symbol,
        ctx: Any = None,
        args: Any = None,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Optional[Mapping[str, Any]] = None,
        shared_exec: Optional["Executor"] = None,
        seed: int = 0,
        num_threads: int = 0,
        compute_dtype: Any = "float32",
        float32_names: Any = None,
        narrow_names: Any = None,
        calibration: Optional[Calibration] = None,
        backward_once: bool = False,
        tf32: bool = False,
        recompute: bool = False,
    ) -> "Executor":
        """Binds to given arrays, in order or by name, without copying them; otherwise like :meth:`simple_bind`."""
        handle = handle_of(symbol, Symbol, "symbol")
        names = symbol.list_arguments()
        given = _in_order(args, names, "args", True)
        aux = _in_order(aux_states, symbol.list_auxiliary_states(), "aux_states", True)
        grads = None if args_grad is None else _in_order(args_grad, names, "args_grad", False)
        if grads is not None and len(grads) != len(names):
            raise InvalidArgumentError(f"args_grad: expected {len(names)} arrays, found {len(grads)}", "args_grad")
        options = options_of(_abi.cohort_executor_options, lib.cohort_executor_options_init)
        kept = [set_ctx_groups(options, group2ctx)]
        kept.append(
            set_work(
                options, seed, num_threads, compute_dtype, float32_names, narrow_names, backward_once, tf32, recompute
            )
        )
        with cls._binding(options, shared_exec, calibration):
            made = out_handle(
                lib.cohort_executor_bind,
                handle,
                pointer_to(ctx),
                pointers(given, "args"),
                len(given),
                None if grads is None else pointers(grads, "args_grad"),
                None if grads is None else codes(grad_codes(grad_req, names)),
                pointers(aux, "aux_states"),
                len(aux),
                byref(options),
            )
            bound = cls._bound(made, None if shared_exec is None else shared_exec._lock)
        del kept
        return bound

    @staticmethod
    @contextmanager
    def _binding(options: Any, shared_exec: Optional["Executor"], calibration: Optional[Calibration]) -> Iterator[None]:
        """Locks these objects while a call binds with them, because binding uses each of them."""
        with held(shared_exec, calibration):
            options.shared_executor = optional_handle(shared_exec, Executor, "shared_exec")
            set_calibration(options, calibration)
            yield

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any) -> "Executor":
        """An executor for other shapes that shares this one's memory."""
        options = options_of(_abi.cohort_reshape_options, lib.cohort_reshape_options_init)
        options.partial_shaping, options.allow_up_sizing = to_bool(partial_shaping, "partial_shaping"), to_bool(
            allow_up_sizing, "allow_up_sizing"
        )
        known = to_known(kwargs, {})
        with self._lock:
            made = out_handle(lib.cohort_executor_reshape, self.handle, known.handle, byref(options))
            return Executor._bound(made, self._lock)

    # ---- arrays

    def _list(self, which: int) -> List[Optional[NDArray]]:
        """The same objects each time, until one is closed."""
        with self._lock:
            kept = self._kept.get(which)
            if kept is None or None in map(_pointer_of, kept[1]):
                arrays = Arrays._adopt(out_handle(lib.cohort_executor_arrays, self.handle, which)).list()
                kept = arrays, [array for array in arrays if array is not None]
                if which != _OUTPUTS or self._outputs_stay:
                    self._kept[which] = kept
            return kept[0].copy()

    def _dict(self, which: int) -> Dict[str, Any]:
        return by_name(self._names(which), self._list(which))

    @property
    def arg_arrays(self) -> List[NDArray]:
        return self._list(_ARGS)  # type: ignore[return-value]

    @property
    def grad_arrays(self) -> List[Optional[NDArray]]:
        return self._list(_GRADS)

    @property
    def aux_arrays(self) -> List[NDArray]:
        return self._list(_AUX)  # type: ignore[return-value]

    @property
    def outputs(self) -> List[NDArray]:
        return self._list(_OUTPUTS)  # type: ignore[return-value]

    @property
    def arg_dict(self) -> Dict[str, NDArray]:
        return self._dict(_ARGS)

    @property
    def grad_dict(self) -> Dict[str, Optional[NDArray]]:
        return self._dict(_GRADS)

    @property
    def aux_dict(self) -> Dict[str, NDArray]:
        return self._dict(_AUX)

    @property
    def output_dict(self) -> Dict[str, NDArray]:
        return self._dict(_OUTPUTS)

    @property
    def grad_req(self) -> Dict[str, str]:
        """The gradient request of each argument."""
        names = self._names(_ARGS)
        with self._lock:
            found = [out_int(lib.cohort_executor_grad_req, self.handle, i) for i in range(len(names))]
        return {name: _WORD_OF[code] for name, code in zip(names, found)}

    def _names(self, which: int) -> List[str]:
        with self._lock:
            if which not in self._kept_names:
                functions = lib.cohort_executor_num_arrays, lib.cohort_executor_name
                self._kept_names[which] = list_of_names(*functions, self.handle, which)
            return self._kept_names[which]

    def get_random_state(self) -> bytes:
        """Which numbers random operators draw next."""
        return bytes_from(self, lib.cohort_executor_random_state)

    def set_random_state(self, state: bytes) -> None:
        """Sets the result of :meth:`get_random_state`: random operators draw the same numbers again."""
        self._call(lib.cohort_executor_set_random_state, *bytes_of(state, "state"))

    def copy_params_from(self, arg_params: Any, aux_params: Any = None, allow_extra_params: bool = False) -> None:
        """Copies parameters in by name. All are checked first: on an error nothing is copied."""
        args, aux = Arrays.of(arg_params, "arg_params", keeps=True), Arrays.of(aux_params, "aux_params", keeps=True)
        self._call(
            lib.cohort_executor_copy_params_from,
            args.handle,
            aux.handle,
            to_bool(allow_extra_params, "allow_extra_params"),
        )

    # ---- running

    def forward(self, is_train: bool = False, **kwargs: Any) -> List[NDArray]:
        """Copies given arrays into arguments and runs a forward pass. Returns the outputs."""
        inputs = Arrays.of(kwargs, "forward", keeps=True) if kwargs else None
        with self._lock:
            if inputs is not None:
                lib.cohort_executor_set_inputs(self.handle, inputs.handle)
            lib.cohort_executor_forward(self.handle, to_bool(is_train, "is_train"))
            return self._list(_OUTPUTS)  # type: ignore[return-value]

    def partial_forward(self, is_train: bool, step: int) -> int:
        """Runs one node of the network; returns how many are left."""
        number = to_int(step, "step", -(2**31), 2**31 - 1)
        left = c_int32()
        self._call(lib.cohort_executor_partial_forward, to_bool(is_train, "is_train"), number, byref(left))
        return left.value

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Runs backward after the latest forward pass. Losses need no head gradients."""
        grads = head_gradients(out_grads, lambda: self._names(_OUTPUTS))
        heads = pointers(grads, "out_grads") if grads else None
        self._call(lib.cohort_executor_backward, heads, len(grads), to_bool(is_train, "is_train"))

    def wait(self) -> None:
        self._call(lib.cohort_executor_wait)

    def set_monitor_callback(
        self, callback: Optional[Callable[[str, NDArray], None]], monitor_all: bool = False
    ) -> None:
        """Calls ``callback(name, array)`` for each output of each operator during a pass; None removes it."""
        made = None if callback is None else monitor_function(callback)
        pointer = null(_abi.cohort_monitor_fn) if made is None else made.pointer
        with self._lock:
            lib.cohort_executor_set_monitor(
                self.handle, pointer, None if made is None else made.number, to_bool(monitor_all, "monitor_all")
            )
            keep_monitor(self._lock, self._monitor, made)
            self._monitor = made

    # ---- what it is

    @property
    def symbol(self) -> Symbol:
        return Symbol._adopt(self._out(out_handle, lib.cohort_executor_symbol))

    @property
    def context(self) -> Context:
        found = _abi.cohort_context()
        self._call(lib.cohort_executor_context, byref(found))
        return Context._from_struct(found)

    def debug_str(self) -> str:
        """The plan as text."""
        found: str = self._out(out_text, lib.cohort_executor_debug_text)
        return found

    def memory(self) -> Dict[str, int]:
        """Memory in bytes, by kind."""
        with self._lock:
            return bytes_of_memory(lib.cohort_executor_memory, self.handle)


def _in_order(given: Any, names: List[str], what: str, needed: bool) -> List[Optional[NDArray]]:
    if isinstance(given, Mapping):
        for name in names:
            if needed and given.get(name) is None:
                raise UnknownNameError(f"{what}: there is no array for '{name}'", name)
        given = [given.get(name) for name in names]
    found: List[Optional[NDArray]] = []
    for value in to_list(given, what):
        if value is not None and not isinstance(value, NDArray):
            raise InvalidArgumentError(f"{what}: expected arrays, found {describe(value)}", what)
        found.append(value)
    return found


def grad_codes(grad_req: Any, names: List[str]) -> List[int]:
    if isinstance(grad_req, Mapping):
        words = [grad_req.get(name, "null") for name in names]
    else:
        words = [grad_req] * len(names) if isinstance(grad_req, str) else to_list(grad_req, "grad_req")
    if len(words) != len(names):
        raise InvalidArgumentError(f"grad_req: expected {len(names)} words, found {len(words)}", "grad_req")
    for word in words:
        if not isinstance(word, str) or word not in _WORDS:
            raise InvalidArgumentError(f"grad_req: expected null, write or add, found {describe(word)}", "grad_req")
    return [_WORDS[word] for word in words]


def label_slices(labels: Any) -> Tuple[List[NDArray], int, int]:
    """Labels that are sliced already, a list per device: all in one list, with the number of devices and of labels per
    device."""
    devices = [arrays_of(device, "labels") for device in to_list(labels, "labels")]
    num = len(devices[0]) if devices else 0
    for device in devices:
        if len(device) != num:
            raise InvalidArgumentError(f"labels: expected {num} for each device, found {len(device)}", "labels")
    return [label for device in devices for label in device], len(devices), num
