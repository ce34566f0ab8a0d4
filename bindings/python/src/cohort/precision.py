# SPDX-License-Identifier: Apache-2.0
"""Precision: the types in which a network computes, the ranges for int8, and the loss scale."""

from __future__ import annotations

from ctypes import byref, c_double, c_int32, c_uint64
from typing import Any, Dict, Mapping, NamedTuple, Tuple

from . import _abi
from ._library import Handle, describe, handle_of, held, lib, out_handle, to_int, to_real, to_text
from .errors import InvalidArgumentError
from .ndarray import Arrays, NDArray

_METHODS = {"min_max": _abi.CalibrationMethod.MIN_MAX, "entropy": _abi.CalibrationMethod.ENTROPY}


class Calibration(Handle):
    """Observes a float32 network and records the range of each of its values, for inference in int8. Then bind the
    network with ``compute_dtype="int8"`` and the calibration.

    ``method`` "min_max" takes the least and the largest number; "entropy" cuts off the range so that int8 preserves
    most of the distribution.

    >>> from cohort import Calibration, nd, sym
    >>> net = sym.FullyConnected(sym.Variable("data"), num_hidden=16, no_bias=True, name="fc")
    >>> with net.simple_bind(data=(4, 16), grad_req="null") as executor:
    ...     executor.arg_dict["fc_weight"][:] = 0.5
    ...     executor.arg_dict["data"][:] = [[-1.0] * 16, [0.0] * 16, [0.5] * 16, [3.0] * 16]
    ...     calibration = Calibration().observe(executor)
    >>> calibration.range("fc_output")
    (-8.0, 24.0)
    >>> with net.simple_bind(data=(4, 16), grad_req="null", compute_dtype="int8", calibration=calibration) as narrow:
    ...     narrow.arg_dict["fc_weight"][:] = 0.5
    ...     bool(abs(narrow.forward(data=nd.ones((4, 16)))[0].asnumpy() - 8).max() < 0.25)
    True
    """

    _free_name = "cohort_calibration_free"

    def __init__(self, method: str = "min_max") -> None:
        if not isinstance(method, str) or method not in _METHODS:
            raise InvalidArgumentError(f"method: expected 'min_max' or 'entropy', found {describe(method)}", "method")
        self._start(out_handle(lib.cohort_calibration_create, _METHODS[method]))

    def observe(self, executor: Handle) -> "Calibration":
        """Runs a forward pass on the values in the executor's arguments, and records the range of each value."""
        watched = handle_of(executor, Handle, "executor")
        with held(executor, self):
            lib.cohort_calibration_observe(self.handle, watched)
        return self

    def range(self, name: str) -> Tuple[float, float]:
        """The range of a value under its name in monitors, "conv0_output", or that of an argument."""
        low, high = c_double(), c_double()
        self._call(lib.cohort_calibration_range, to_text(name, "name"), byref(low), byref(high))
        return low.value, high.value

    def ranges(self) -> Dict[str, NDArray]:
        """All ranges, to be saved with ``nd.save()``: by name an array of the least and the largest number."""
        with Arrays._adopt(self._out(out_handle, lib.cohort_calibration_ranges)) as found:
            return found.dict()

    @classmethod
    def from_ranges(cls, ranges: Mapping[str, Any]) -> "Calibration":
        """A calibration with these ranges, from ``ranges()`` of another one; it observes no more."""
        with Arrays.of(ranges, "ranges") as given:
            return cls._adopt(out_handle(lib.cohort_calibration_create_from, given.handle))


class LossScale(NamedTuple):
    """The state of a loss scale: the factor of the next backward pass (1: none), the number of updates since it
    changed, and of updates skipped because a gradient was infinite or NaN."""

    scale: float
    num_good: int
    num_skipped: int


def loss_scale_of(owner: Handle, function: Any) -> LossScale:
    scale, good, skipped = c_double(), c_int32(), c_uint64()
    owner._call(function, byref(scale), byref(good), byref(skipped))
    return LossScale(scale.value, good.value, skipped.value)


def set_loss_scale_of(owner: Handle, function: Any, scale: float, num_good: int) -> None:
    owner._call(function, to_real(scale, "scale"), to_int(num_good, "num_good", 0, 2**31 - 1))


def set_loss_scale_options(options: Any, loss_scale: float, loss_scale_window: int) -> None:
    options.loss_scale = to_real(loss_scale, "loss_scale")
    options.loss_scale_window = to_int(loss_scale_window, "loss_scale_window", 0, 2**31 - 1)
