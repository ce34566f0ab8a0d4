# SPDX-License-Identifier: Apache-2.0
"""Monitors: statistics of a network's arrays while it runs, every few batches."""

from __future__ import annotations

import ctypes
import re
from ctypes import byref, c_char_p, c_int64, c_size_t
from typing import Any, Callable, List, Optional, Tuple

from . import _abi
from ._library import Callback, Handle, describe, from_text, lib, options_of, out_handle, out_int, to_bool, to_int
from .errors import InvalidArgumentError
from .executor import Executor
from .logging_ import default_logger
from .ndarray import LentArrays, NDArray, arrays_of, lent


class Monitor(Handle):
    """Reports a statistic of each array whose name matches a Python pattern from its start.

    Call ``tic()`` before a batch and ``toc()`` after it; the first of each ``interval`` batches is reported.
    """

    _free_name = "cohort_monitor_free"

    def __init__(
        self,
        interval: int,
        stat_func: Optional[Callable[[NDArray], Any]] = None,
        pattern: str = ".*",
        sort: bool = False,
        monitor_all: bool = False,
        stop_if_not_finite: bool = False,
    ) -> None:
        """``stop_if_not_finite``: a pass fails at the first output or gradient with an infinity or a NaN, and the error
        names it."""
        try:
            matches = re.compile(pattern).match
        except (re.error, TypeError) as error:
            raise InvalidArgumentError(f"pattern: expected a regular expression, found {describe(pattern)} ({error})")
        options = options_of(_abi.cohort_monitor_options, lib.cohort_monitor_options_init)
        options.sort, options.monitor_all = to_bool(sort, "sort"), to_bool(monitor_all, "monitor_all")
        options.stop_if_not_finite = to_bool(stop_if_not_finite, "stop_if_not_finite")
        every = to_int(interval, "interval")
        callbacks = []
        if pattern != ".*":
            chooses = Callback(
                _abi.cohort_name_filter_fn, lambda name: 1 if matches(from_text(ctypes.string_at(name))) else 0
            )
            options.filter, options.filter_user_data = chooses.pointer, chooses.number
            callbacks.append(chooses)
        if stat_func is not None:
            computes = Callback(_abi.cohort_statistic_fn, _statistic(stat_func))
            options.statistic, options.statistic_user_data = computes.pointer, computes.number
            callbacks.append(computes)
        self._start(out_handle(lib.cohort_monitor_create, every, byref(options)))
        self._lock.callbacks.extend(callbacks)

    def install(self, target: Any) -> None:
        """Watches an executor, a group or a manager, and keeps it alive."""
        from .executor_group import GroupBase
        from .executor_manager import DataParallelExecutorManager

        if isinstance(target, Executor):
            function = lib.cohort_monitor_install_on_executor
        elif isinstance(target, GroupBase):
            function = lib.cohort_monitor_install_on_group
        elif isinstance(target, DataParallelExecutorManager):
            function = lib.cohort_monitor_install_on_manager
        else:
            raise InvalidArgumentError(f"install: expected an executor or a group, found {describe(target)}", "monitor")
        with target._lock:
            self._call(function, target.handle)
            target._lock.callbacks.extend(self._lock.callbacks)  # kept alive for the target, which calls them

    def tic(self) -> None:
        """Begins a batch."""
        self._call(lib.cohort_monitor_tic)

    def toc(self) -> List[Tuple[int, str, str]]:
        """Ends a batch; returns the batch number, name and text of each entry."""
        found = []
        with self._lock:
            num = c_size_t()
            lib.cohort_monitor_toc(self.handle, byref(num))
            for i in range(num.value):
                step, name, text = c_int64(), c_char_p(), c_char_p()
                lib.cohort_monitor_entry(self.handle, i, byref(step), byref(name), byref(text))
                found.append((step.value, from_text(name.value), from_text(text.value)))
        return found

    def toc_print(self) -> None:
        """Like :meth:`toc`, but logs the entries."""
        for step, name, text in self.toc():
            default_logger().info("Batch: %7d %30s %s", step, name, text)

    @property
    def step(self) -> int:
        """The number of batches begun."""
        return int(self._out(out_int, lib.cohort_monitor_step))


def _statistic(function: Callable[[NDArray], Any]) -> Callable[[int, int], int]:
    if not callable(function):
        raise InvalidArgumentError(f"stat_func: expected a function, found {describe(function)}", "stat_func")

    def run(array: int, values: int) -> int:
        takes = LentArrays._adopt(values)
        for value in arrays_of(function(lent(array)), "stat_func"):
            takes.add(value)
        return 0

    return run
