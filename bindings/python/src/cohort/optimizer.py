# SPDX-License-Identifier: Apache-2.0
"""Optimizers: rules that update parameters from gradients, with a state per parameter."""

from __future__ import annotations

import os
from ctypes import byref, c_double
from typing import Any, Mapping, Optional, Sequence, Tuple

from . import _mxnet_states
from ._library import (
    Handle,
    attributes,
    bytes_from,
    bytes_of,
    handle_of,
    lib,
    out_handle,
    out_real,
    to_dict,
    to_path,
    to_real,
    to_size,
    to_text,
)
from .errors import InvalidArgumentError
from .ndarray import NDArray
from .precision import LossScale, loss_scale_of
from .symbol import Symbol


class Optimizer(Handle):
    """An optimizer, created by :func:`create`.

    >>> from cohort import optimizer
    >>> sgd = optimizer.create("sgd", learning_rate=0.1, momentum=0.9)
    >>> sgd.get("momentum")
    0.9
    """

    _free_name = "cohort_optimizer_free"

    def get(self, key: str) -> float:
        """A setting, or ``num_update``."""
        wanted = to_text(key, "key")
        return float(self._out(lambda f, handle: out_real(f, handle, wanted), lib.cohort_optimizer_get))

    def set(self, key: str, value: float) -> "Optimizer":
        self._call(lib.cohort_optimizer_set, to_text(key, "key"), to_real(value, "value"))
        return self

    @property
    def learning_rate(self) -> float:
        return self.get("learning_rate")

    def set_learning_rate(self, lr: float) -> None:
        self.set("learning_rate", lr)

    def set_lr_schedule(self, name: Optional[str], **kwargs: Any) -> "Optimizer":
        """Sets a schedule for the learning rate: "factor", "multifactor", "poly", "cosine", "constant"; None: none."""
        keys = attributes(kwargs, "schedule")
        self._call(lib.cohort_optimizer_set_lr_schedule, None if name is None else to_text(name, "schedule"), *keys)
        return self

    def use_symbol(self, symbol: Symbol) -> "Optimizer":
        """Uses ``__lr_mult__`` and ``__wd_mult__`` of a symbol's variables."""
        self._call(lib.cohort_optimizer_use_symbol, handle_of(symbol, Symbol, "symbol"))
        return self

    def set_mult(self, param: str, lr_mult: float = -1, wd_mult: float = -1) -> "Optimizer":
        lr, wd = to_real(lr_mult, "lr_mult"), to_real(wd_mult, "wd_mult")
        self._call(lib.cohort_optimizer_set_mult, to_text(param, "param"), lr, wd)
        return self

    def mult(self, param: str) -> Tuple[float, float]:
        """The multipliers of learning rate and weight decay that apply to a parameter."""
        lr, wd = c_double(), c_double()
        self._call(lib.cohort_optimizer_mult, to_text(param, "param"), byref(lr), byref(wd))
        return lr.value, wd.value

    def update(self, param: str, weight: NDArray, grad: NDArray, copy: int = 0) -> None:
        """Updates one parameter from its gradient."""
        which = to_size(copy, "copy")
        arrays = handle_of(weight, NDArray, "weight"), handle_of(grad, NDArray, "grad")
        self._call(lib.cohort_optimizer_update, to_text(param, "param"), which, *arrays)

    @property
    def loss_scale(self) -> LossScale:
        """The loss scale of the group updated last; it is saved and loaded with the states."""
        return loss_scale_of(self, lib.cohort_optimizer_loss_scale)

    def get_states(self) -> bytes:
        """States and counts, from which training can be resumed, with what the group updated last goes on from:
        :meth:`DataParallelExecutorGroup.resume`."""
        return bytes_from(self, lib.cohort_optimizer_save_states_memory)

    def set_states(self, states: bytes, param_names: Optional[Sequence[str]] = None, num_copies: int = 1) -> None:
        """Sets the result of :meth:`get_states`, or the contents of a file of MXNet's: see :meth:`load_states`."""
        if isinstance(states, (bytes, bytearray)) and _mxnet_states.is_pickle(states):
            self._set_pickled(bytes(states), param_names, num_copies, "states")
            return
        _refuse_names(param_names)
        self._call(lib.cohort_optimizer_load_states_memory, *bytes_of(states, "states"))

    def save_states(self, fname: Any) -> None:
        """Writes the result of :meth:`get_states` to a file."""
        self._call(lib.cohort_optimizer_save_states, to_path(fname, "fname"))

    def load_states(self, fname: Any, param_names: Optional[Sequence[str]] = None, num_copies: int = 1) -> None:
        """Reads a file that :meth:`save_states` wrote, or a ``.states`` file of MXNet's: a pickle, of which arrays, numbers
        and names are read and nothing is run.

        MXNet's files may number the parameters: ``param_names`` are then their names in MXNet's order, and
        ``num_copies`` the number of devices, if each has states of its own. MXNet saves the number of updates with
        ``dump_optimizer`` only. Without it parameters have had ``begin_num_update`` updates, here as there.
        """
        path = to_path(fname, "fname")
        try:
            with open(path, "rb") as file:
                is_pickle = _mxnet_states.is_pickle(file.read(1))
                data = file.read() if is_pickle else b""
        except OSError:
            is_pickle = False  # the library says why
        if is_pickle:
            self._set_pickled(b"\x80" + data, param_names, num_copies, os.fsdecode(path))
            return
        _refuse_names(param_names)
        self._call(lib.cohort_optimizer_load_states, path)

    def _set_pickled(self, data: bytes, param_names: Any, num_copies: Any, source: str) -> None:
        begin = int(self.get("begin_num_update"))
        states = _mxnet_states.convert(data, self.get_states(), begin, param_names, num_copies, source)
        self._call(lib.cohort_optimizer_load_states_memory, states, len(states))


def _refuse_names(param_names: Any) -> None:
    if param_names is not None:
        raise InvalidArgumentError("param_names: these states have the names of their parameters", "param_names")


def create(name: Any, lr_schedule: Optional[Mapping[str, Any]] = None, **kwargs: Any) -> Optimizer:
    """An optimizer by name. ``lr_schedule`` is a dict with ``name`` and the schedule's settings."""
    if isinstance(name, Optimizer):
        return name
    made = Optimizer._adopt(
        out_handle(lib.cohort_optimizer_create, to_text(name, "optimizer"), *attributes(kwargs, "optimizer"))
    )
    schedule = to_dict(lr_schedule, "lr_schedule")
    return made.set_lr_schedule(schedule.pop("name", None), **schedule) if schedule else made


def optimizer_handle(value: Any) -> int:
    return handle_of(value, Optimizer, "optimizer")
