# SPDX-License-Identifier: Apache-2.0
"""The library's messages in Python's logging: of groups and managers that have a logger, and all others."""

from __future__ import annotations

import ctypes
import logging
from ctypes import byref, c_void_p
from typing import Any, Callable, Optional

from . import _abi
from ._library import Callback, Handle, describe, from_text, lib, null, to_int
from .errors import InvalidArgumentError

_LEVELS = {0: logging.DEBUG, 1: logging.INFO, 2: logging.WARNING, 3: logging.ERROR}


def default_logger() -> logging.Logger:
    """The logger of this package."""
    return logging.getLogger("cohort")


def sink(logger: Any) -> Callable[[int, int], None]:
    if not hasattr(logger, "log") or isinstance(logger, Handle):  # log is an operator, too
        raise InvalidArgumentError(f"logger: expected a Python logger, found {describe(logger)}", "logger")

    def run(level: int, message: int) -> None:
        logger.log(_LEVELS.get(level, logging.ERROR), "%s", from_text(ctypes.string_at(message)))

    return run


class LogReceiver(Handle):
    """Passes the library's messages on to a logger for as long as it lives."""

    _free_name = "cohort_log_free"

    def __init__(self, logger: Optional[Any] = None, lowest: int = _abi.LogLevel.INFO) -> None:
        callback = Callback(_abi.cohort_log_fn, sink(default_logger() if logger is None else logger))
        made = c_void_p()
        level = to_int(lowest, "lowest", 0, 4)
        ended = null(_abi.cohort_log_end_fn)
        lib.cohort_log_create(level, callback.pointer, ended, callback.number, byref(made))
        self._start(made.value)
        self._lock.callbacks.append(callback)
