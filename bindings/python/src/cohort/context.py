# SPDX-License-Identifier: Apache-2.0
"""Contexts: the devices that arrays and networks are on."""

from __future__ import annotations

from ctypes import byref, sizeof
from typing import Any, List, NamedTuple, Union

from . import _abi
from ._library import describe, lib, out_int, to_int, to_list, to_size, to_text
from .errors import CohortError, InvalidArgumentError

_KINDS = {
    "cpu": _abi.DeviceType.CPU,
    "gpu": _abi.DeviceType.GPU,
    "cpu_pinned": _abi.DeviceType.CPU_PINNED,
    "cpu_shared": _abi.DeviceType.CPU_SHARED,
}
_WORDS = {int(code): word for word, code in _KINDS.items()}


class DeviceMemory(NamedTuple):
    """Bytes of a device's memory that this process uses: now, at its peak, cached for later use beside that, and its
    limit (0: none)."""

    used: int
    peak: int
    cached: int
    limit: int


class Context:
    """One device: ``cpu(0)``, ``gpu(1)``. Each id from 0 names a CPU device, a worker with its share of the processors.

    >>> from cohort import Context, cpu
    >>> Context.parse("cpu(1)") == cpu(1)
    True
    """

    __slots__ = ("device_type", "device_id")

    def __init__(self, device_type: str, device_id: int = 0) -> None:
        if device_type not in _KINDS:
            raise InvalidArgumentError(
                f"device_type: expected one of {', '.join(_KINDS)}, found {describe(device_type)}", "device_type"
            )
        self.device_type = device_type
        self.device_id = to_int(device_id, "device_id", 0, 2**31 - 1)

    @classmethod
    def parse(cls, text: str) -> "Context":
        """A context from text: ``cpu(0)``."""
        found = _abi.cohort_context()
        lib.cohort_context_parse(to_text(text, "context"), byref(found))
        return cls._from_struct(found)

    @classmethod
    def _from_struct(cls, found: Any) -> "Context":
        return cls(_WORDS[found.device_type], found.device_id)

    def _struct(self) -> Any:
        return _abi.cohort_context(_KINDS[self.device_type], self.device_id)

    def memory(self) -> DeviceMemory:
        """The device memory that this process uses."""
        info = _abi.cohort_device_memory_info(struct_size=sizeof(_abi.cohort_device_memory_info))
        lib.cohort_device_memory(pointer_to(self), byref(info))
        return DeviceMemory(info.used_bytes, info.peak_bytes, info.cached_bytes, info.limit_bytes)

    def reset_peak_memory(self) -> None:
        """Resets the peak to the present use."""
        lib.cohort_device_reset_peak_memory(pointer_to(self))

    def limit_memory(self, bytes: int) -> None:
        """Limits the memory that this process uses; 0: no limit. An allocation beyond it raises OutOfMemoryError."""
        lib.cohort_device_limit_memory(pointer_to(self), to_size(bytes, "bytes"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"


ContextLike = Union[Context, str]


def cpu(device_id: int = 0) -> Context:
    """A CPU device."""
    return Context("cpu", device_id)


def gpu(device_id: int = 0) -> Context:
    """A GPU."""
    return Context("gpu", device_id)


def num_gpus() -> int:
    """The number of GPUs that the library can use."""
    return out_int(lib.cohort_num_devices, _abi.DeviceType.GPU)


def to_context(value: Any) -> Context:
    if isinstance(value, Context):
        return value
    if isinstance(value, str):
        return Context.parse(value)
    raise InvalidArgumentError(f"context: expected a context, found {describe(value)}", "context")


def pointer_to(value: Any) -> Any:
    """A context as a parameter; None is the default one."""
    return None if value is None else byref(to_context(value)._struct())


def to_contexts(value: Any) -> List[Context]:
    """A context, or a list of them."""
    if isinstance(value, (Context, str)):
        return [to_context(value)]
    return [to_context(item) for item in to_list(value, "contexts")]


def struct_of(contexts: List[Context]) -> Any:
    return (_abi.cohort_context * max(len(contexts), 1))(*(context._struct() for context in contexts))


__all__ = ["CohortError", "Context", "DeviceMemory", "cpu", "gpu", "num_gpus"]
