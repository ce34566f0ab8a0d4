# SPDX-License-Identifier: Apache-2.0
"""The exceptions of Cohort: one class for each class of errors, each also derived from a built-in exception."""

from __future__ import annotations

from typing import Any, Dict, Tuple, Type

from ._abi import ErrorClass


class CohortError(Exception):
    """An error of the library, or one detected before the library was called.

    ``str(error)`` is its message, one line: what, where, expected and found.
    """

    code: ErrorClass = ErrorClass.ERROR_INTERNAL

    def __init__(self, message: str, subject: str = "") -> None:
        super().__init__(message)
        self.message = message
        #: The operator, node, argument, array or file concerned; empty if there is none.
        self.subject = subject

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.message, self.subject)


class InvalidArgumentError(CohortError, ValueError):
    """A wrong object, count, range or constant; contradictory options."""

    code = ErrorClass.ERROR_INVALID_ARGUMENT


class UnknownNameError(CohortError, KeyError):
    """An unknown, missing, duplicate or ambiguous name."""

    code = ErrorClass.ERROR_NAME


class ShapeError(CohortError, ValueError):
    """Shapes that differ or cannot be inferred."""

    code = ErrorClass.ERROR_SHAPE


class DtypeError(CohortError, TypeError):
    """Element types that differ or cannot be inferred."""

    code = ErrorClass.ERROR_DTYPE


class StateError(CohortError, RuntimeError):
    """A valid call at the wrong time; an object that has been closed."""

    code = ErrorClass.ERROR_STATE


class UnsupportedError(CohortError, NotImplementedError):
    """A feature that this build or device does not have."""

    code = ErrorClass.ERROR_UNSUPPORTED


class DeviceError(CohortError, RuntimeError):
    """No such device or backend; arrays on the wrong device."""

    code = ErrorClass.ERROR_DEVICE


class FormatError(CohortError, ValueError):
    """Invalid contents of a file, of JSON or of a buffer."""

    code = ErrorClass.ERROR_FORMAT


class FileError(CohortError, OSError):
    """A failed operation of the file system."""

    code = ErrorClass.ERROR_IO


class OutOfMemoryError(CohortError, MemoryError):
    """No memory left on the host or a device."""

    code = ErrorClass.ERROR_OUT_OF_MEMORY


class ExecutionError(CohortError, RuntimeError):
    """Failed work on a device; raised by the call that waited for it."""

    code = ErrorClass.ERROR_EXECUTION


class InternalError(CohortError, RuntimeError):
    """A defect in the library."""

    code = ErrorClass.ERROR_INTERNAL


CLASSES: Dict[int, Type[CohortError]] = {
    int(kind.code): kind
    for kind in (
        InvalidArgumentError,
        UnknownNameError,
        ShapeError,
        DtypeError,
        StateError,
        UnsupportedError,
        DeviceError,
        FormatError,
        FileError,
        OutOfMemoryError,
        ExecutionError,
        InternalError,
    )
}
