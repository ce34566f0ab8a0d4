# SPDX-License-Identifier: Apache-2.0
"""The tape of the process, which applies operators while a thread records, and each thread's mode. The public
functions are in autograd.py."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Optional

from ._library import Handle, lib, out_handle


class Tape(Handle):
    """Exists as long as an array that was marked, or that was computed from a marked one."""

    _free_name = "cohort_tape_free"

    def __init__(self) -> None:
        self._start(out_handle(lib.cohort_tape_create))  # records, in training mode
        self.training = True
        self.functions: Dict[int, Any] = {}  # custom functions, by number

    def set_training(self, training: bool) -> None:
        if self.training != training:
            self._call(lib.cohort_tape_set_training, 1 if training else 0, None)
            self.training = training


class _State(threading.local):
    recording = False
    training = False
    creating = False  # a backward pass that is recorded itself


state = _State()
_tape: Optional["weakref.ref[Tape]"] = None
_making = threading.Lock()


def present() -> Optional[Tape]:
    return None if _tape is None else _tape()


def needed() -> Tape:
    """The tape, created if there is none."""
    global _tape
    with _making:
        found = present()
        if found is None:
            found = Tape()
            _tape = weakref.ref(found)
        return found


def active() -> Optional[Tape]:
    """The tape that applies this thread's operators now, or None."""
    return present() if state.recording else None


@contextmanager
def scope(recording: Optional[bool], training: Optional[bool]) -> Iterator[None]:
    """Sets this thread's mode for the duration of ``with``; None leaves it."""
    before = state.recording, state.training
    if recording is not None:
        state.recording = recording
    if training is not None:
        state.training = training
    try:
        yield
    finally:
        state.recording, state.training = before
