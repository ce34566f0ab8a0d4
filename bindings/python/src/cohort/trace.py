# SPDX-License-Identifier: Apache-2.0
"""Traces: what the process runs, and how long it takes compared with the machine's limits."""

from __future__ import annotations

import contextlib
import dataclasses
from ctypes import byref, c_char_p, sizeof
from typing import Any, Iterator, List

from . import _abi
from ._library import (
    Handle,
    from_text,
    lib,
    options_of,
    out_handle,
    out_int,
    out_text,
    to_path,
    to_real,
    to_size,
    to_text,
)

_KINDS = ("operator", "pass", "copy", "exchange", "update", "wait", "call", "user")


@dataclasses.dataclass(frozen=True)
class Total:
    """One row of the totals of a trace; times in nanoseconds. 0: unknown."""

    kind: str
    name: str
    op: str
    count: int
    total_ns: int
    least_ns: int
    most_ns: int
    flops: float
    bytes: float
    bound_ns: float


class Trace(Handle):
    """Records every operator, copy, sum of gradients and update of the process while it runs::

        with cohort.Trace() as trace, trace.running():
            group.forward(batch)
            cohort.wait_all()
        trace.write("step.json")  # for chrome://tracing or Perfetto
        print(trace.table())

    The last ``max_events`` are kept; totals include all. The rates are those of the threads of one device, and are
    measured if they are not given.
    """

    _free_name = "cohort_trace_free"

    def __init__(
        self, max_events: int = 0, flop_per_s: float = 0, byte_per_s: float = 0, bfloat16_flop_per_s: float = 0
    ) -> None:
        options = options_of(_abi.cohort_trace_options, lib.cohort_trace_options_init)
        options.max_events = to_size(max_events, "max_events")
        options.flop_per_s = to_real(flop_per_s, "flop_per_s")
        options.byte_per_s = to_real(byte_per_s, "byte_per_s")
        options.bfloat16_flop_per_s = to_real(bfloat16_flop_per_s, "bfloat16_flop_per_s")
        self._start(out_handle(lib.cohort_trace_create, byref(options)))

    def start(self) -> None:
        """Starts or resumes recording."""
        self._call(lib.cohort_trace_start)

    def stop(self) -> None:
        """Stops recording. Queued work is only recorded if it has been waited for."""
        self._call(lib.cohort_trace_stop)

    @contextlib.contextmanager
    def running(self) -> Iterator[Trace]:
        """Records during ``with``, and waits for all work at its end."""
        self.start()
        try:
            yield self
            lib.cohort_wait_all()
        finally:
            self.stop()

    def clear(self) -> None:
        """Discards all events and totals."""
        self._call(lib.cohort_trace_clear)

    @property
    def num_events(self) -> int:
        """The number of events kept."""
        return int(self._info().num_events)

    @property
    def num_dropped(self) -> int:
        """The number of events dropped."""
        return int(self._info().num_dropped)

    @property
    def is_running(self) -> bool:
        return bool(self._info().running)

    def json(self) -> str:
        """The events in Chrome's format."""
        return self._out(out_text, lib.cohort_trace_json) or ""

    def write(self, path: Any) -> None:
        """Writes the events to a file, completely or not at all."""
        self._call(lib.cohort_trace_write, to_path(path, "path"))

    def table(self, by_operator: bool = True) -> str:
        """A table of the times, for a person."""
        return self._out(out_text, lib.cohort_trace_table, int(bool(by_operator))) or ""

    def totals(self, by_operator: bool = False) -> List[Total]:
        """The same as numbers, longest first."""
        by, rows = int(bool(by_operator)), []
        with self._lock:
            for i in range(out_int(lib.cohort_trace_num_totals, self.handle, by)):
                name, op, row = c_char_p(), c_char_p(), _abi.cohort_span_total()
                row.struct_size = sizeof(row)
                lib.cohort_trace_total(self.handle, by, i, byref(name), byref(op), byref(row))
                numbers = (row.count, row.total_ns, row.least_ns, row.most_ns, row.flops, row.bytes, row.bound_ns)
                rows.append(Total(_KINDS[row.kind], from_text(name.value), from_text(op.value), *numbers))
        return rows

    @contextlib.contextmanager
    def span(self, name: str, row: str = "host") -> Iterator[None]:
        """Shows a ``with`` block as a span on a row of the program's own."""
        self._call(lib.cohort_trace_begin, to_text(row, "row"), to_text(name, "name"))
        try:
            yield
        finally:
            self._call(lib.cohort_trace_end, to_text(row, "row"))

    def mark(self, name: str, row: str = "host") -> None:
        """Marks a point in time."""
        self._call(lib.cohort_trace_mark, to_text(row, "row"), to_text(name, "name"))

    def counter(self, name: str, value: float) -> None:
        """Records a value, which a viewer draws as a curve."""
        self._call(lib.cohort_trace_counter, to_text(name, "name"), to_real(value, "value"))

    def _info(self) -> Any:
        info = _abi.cohort_trace_info()
        info.struct_size = sizeof(info)
        self._call(lib.cohort_trace_get_info, byref(info))
        return info
