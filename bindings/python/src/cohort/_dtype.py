# SPDX-License-Identifier: Apache-2.0
"""Types of elements: NumPy's, their codes in the library, and bfloat16, which NumPy lacks."""

from __future__ import annotations

from typing import Any, Dict, Optional, Union

import numpy as np

from . import _abi
from ._library import describe
from .errors import DtypeError

_NUMPY: Dict[int, np.dtype] = {
    _abi.Dtype.FLOAT32: np.dtype("float32"),
    _abi.Dtype.FLOAT64: np.dtype("float64"),
    _abi.Dtype.FLOAT16: np.dtype("float16"),
    _abi.Dtype.UINT8: np.dtype("uint8"),
    _abi.Dtype.INT32: np.dtype("int32"),
    _abi.Dtype.INT8: np.dtype("int8"),
    _abi.Dtype.INT64: np.dtype("int64"),
    _abi.Dtype.BOOL: np.dtype("bool"),
}
CODES = {str(dtype): code for code, dtype in _NUMPY.items()}
BFLOAT16 = "bfloat16"  # NumPy has no such type

DtypeLike = Any
Dtype = Union[np.dtype, str]


def dtype_code(dtype: DtypeLike) -> int:
    """The library's code of a type: a NumPy type, its name, or "bfloat16". None means not given."""
    if dtype is None:
        return _abi.Dtype.NONE
    if isinstance(dtype, str) and dtype == BFLOAT16:
        return _abi.Dtype.BFLOAT16
    try:
        name = str(np.dtype(dtype))
    except (TypeError, ValueError):
        name = ""
    code = CODES.get(name)
    if code is None:
        raise DtypeError(f"dtype: expected a number type that the library supports, found {describe(dtype)}", "dtype")
    return code


def dtype_of(code: int) -> Optional[Dtype]:
    return BFLOAT16 if code == _abi.Dtype.BFLOAT16 else _NUMPY.get(code)
