# SPDX-License-Identifier: Apache-2.0
"""Optimizers: rules that update parameters from gradients, with a state per parameter."""

from __future__ import annotations

from ctypes import byref, c_double
from typing import Any, Mapping, Optional, Tuple

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

    def set_states(self, states: bytes) -> None:
        self._call(lib.cohort_optimizer_load_states_memory, *bytes_of(states, "states"))

    def save_states(self, fname: Any) -> None:
        self._call(lib.cohort_optimizer_save_states, to_path(fname, "fname"))

    def load_states(self, fname: Any) -> None:
        self._call(lib.cohort_optimizer_load_states, to_path(fname, "fname"))


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
