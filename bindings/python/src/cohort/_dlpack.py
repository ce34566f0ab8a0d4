# SPDX-License-Identifier: Apache-2.0
"""DLPack's capsules, through which libraries share arrays without a copy."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_void_p
from typing import Any, Optional

from ._library import describe, lib, out_handle
from .errors import InvalidArgumentError

_python = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
_python.PyCapsule_GetPointer.restype = c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, c_char_p]
_python.PyCapsule_IsValid.restype = ctypes.c_int
_python.PyCapsule_IsValid.argtypes = [ctypes.py_object, c_char_p]
_python.PyCapsule_SetName.restype = ctypes.c_int
_python.PyCapsule_SetName.argtypes = [ctypes.py_object, c_char_p]
# The same for a capsule that is being destroyed, of which no reference may be taken any more.
_valid_at = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _python))
_pointer_at = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _python))

_NAMES = {True: b"dltensor_versioned", False: b"dltensor"}
_USED = {True: b"used_dltensor_versioned", False: b"used_dltensor"}
# Offsets of the deleter and of the tensor in a struct.
_DELETER_AT = {True: 2 * 4 + 8, False: 8 + 8 + 4 + 4 + 8 + 8 + 8 + 8}
_Deleter = ctypes.CFUNCTYPE(None, c_void_p)


@ctypes.PYFUNCTYPE(None, c_void_p)
def _capsule_goes(capsule: int) -> None:
    """Nobody took the capsule: the memory it shares is given back."""
    for versioned, name in _NAMES.items():
        if _valid_at(capsule, name):
            managed = _pointer_at(capsule, name)
            deleter = c_void_p.from_address(managed + _DELETER_AT[versioned]).value
            if deleter:
                _Deleter(deleter)(managed)


def to_capsule(managed: Optional[int], versioned: bool) -> Any:
    return _python.PyCapsule_New(managed, _NAMES[versioned], ctypes.cast(_capsule_goes, c_void_p))


def taken(source: Any) -> Optional[int]:
    """The handle of an array on memory that another library shares."""
    if hasattr(source, "__dlpack__"):
        try:
            capsule = source.__dlpack__(max_version=(1, 0))
        except TypeError:  # a version of DLPack without max_version
            capsule = source.__dlpack__()
    else:
        capsule = source
    for versioned, name in _NAMES.items():
        if type(capsule).__name__ == "PyCapsule" and _python.PyCapsule_IsValid(capsule, name):
            managed = _python.PyCapsule_GetPointer(capsule, name)
            take = lib.cohort_ndarray_from_dlpack if versioned else lib.cohort_ndarray_from_dlpack_unversioned
            made = out_handle(take, managed)
            _python.PyCapsule_SetName(capsule, _USED[versioned])
            return made
    raise InvalidArgumentError(f"from_dlpack: expected an object with __dlpack__, found {describe(source)}", "source")
