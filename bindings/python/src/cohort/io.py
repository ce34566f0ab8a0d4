# SPDX-License-Identifier: Apache-2.0
"""Inputs of networks: descriptors, batches, and an iterator over NumPy arrays."""

from __future__ import annotations

from ctypes import byref, c_char_p, c_int32, c_int64
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from . import _abi
from ._library import (
    Handle,
    describe,
    from_text,
    lib,
    out_handle,
    out_int,
    to_dict,
    to_int,
    to_list,
    to_optional_text,
    to_shape,
    to_text,
)
from .errors import InvalidArgumentError
from ._dtype import dtype_code, dtype_of
from .ndarray import NDArray, array


class DataDesc(NamedTuple("DataDesc", [("name", str), ("shape", Tuple[int, ...])])):
    """Name, shape, type and layout of data or labels. The letter N in the layout is the batch axis.

    >>> from cohort import DataDesc
    >>> DataDesc("data", (4, 32, 8), layout="TNC").batch_axis
    1
    """

    dtype: Any
    layout: str

    def __new__(cls, name: str, shape: Any, dtype: Any = "float32", layout: str = "NCHW") -> "DataDesc":
        made = super().__new__(cls, name, tuple(to_shape(shape, f"shape of {name}")[0]))
        made.dtype, made.layout = dtype, layout
        return made

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @property
    def batch_axis(self) -> int:
        return self.get_batch_axis(self.layout)

    @staticmethod
    def get_batch_axis(layout: Optional[str]) -> int:
        """The position of the first N of a layout; -1 if there is none, 0 for None."""
        return out_int(lib.cohort_layout_batch_axis, to_optional_text(layout, "layout"))


def to_desc(value: Any) -> DataDesc:
    """A descriptor, or name and shape as a pair."""
    if isinstance(value, DataDesc):
        return value
    parts = to_list(value, "descriptor")
    if not 2 <= len(parts) <= 4:
        raise InvalidArgumentError(f"descriptor: expected name and shape, found {describe(value)}", "descriptor")
    return DataDesc(*parts)


class Descs(Handle):
    """The library's lists of descriptors."""

    _free_name = "cohort_descs_free"

    @classmethod
    def empty(cls) -> "Descs":
        return cls._adopt(out_handle(lib.cohort_descs_create))

    @classmethod
    def of(cls, values: Any, what: str) -> "Descs":
        made = cls.empty()
        for value in to_list(values, what):
            desc = to_desc(value)
            made.add(desc.name, desc.shape, dtype_code(desc.dtype), desc.layout)
        return made

    def add(self, name: str, shape: Any, code: int, layout: Optional[str]) -> None:
        lengths, num = (None, _abi.UNKNOWN_SHAPE) if shape is None else to_shape(shape, f"shape of {name}")
        self._call(lib.cohort_descs_add, to_text(name, "name"), lengths, num, code, to_optional_text(layout, "layout"))

    def _all(self) -> List[Tuple[str, Optional[Tuple[int, ...]], int, str]]:
        found = []
        for i in range(out_int(lib.cohort_descs_num, self.handle)):
            name, layout = c_char_p(), c_char_p()
            shape, num, code = (c_int64 * _abi.MAX_AXES)(), c_int32(), c_int32()
            self._call(
                lib.cohort_descs_get, i, byref(name), shape, _abi.MAX_AXES, byref(num), byref(code), byref(layout)
            )
            lengths = None if num.value == _abi.UNKNOWN_SHAPE else tuple(shape[: num.value])
            found.append((from_text(name.value), lengths, code.value, from_text(layout.value)))
        return found

    def list(self) -> List[Any]:
        return [
            DataDesc(name, shape, dtype_of(code), layout) if shape is not None else _Unknown(name, None)
            for name, shape, code, layout in self._all()
        ]

    def codes(self) -> List[int]:
        return [code for _, _, code, _ in self._all()]


class _Unknown(NamedTuple):
    name: str
    shape: None


def to_known(shapes: Mapping[str, Any], dtypes: Mapping[str, Any]) -> Descs:
    """The known shapes or types of arguments, by name."""
    known = Descs.empty()
    lengths, types = to_dict(shapes, "shapes"), to_dict(dtypes, "types")
    for name in [*lengths, *(name for name in types if name not in lengths)]:
        known.add(name, lengths.get(name), dtype_code(types.get(name)), None)
    return known


class DataBatch:
    """Data and labels, as lists of arrays; for a network in buckets also a key and descriptors."""

    def __init__(
        self,
        data: Any,
        label: Any = None,
        pad: Optional[int] = None,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: Any = None,
        provide_label: Any = None,
    ) -> None:
        self.data, self.label = data, label
        self.pad, self.index = pad, index
        self.bucket_key = bucket_key
        self.provide_data, self.provide_label = provide_data, provide_label


def _named(values: Any, default: str) -> List[Tuple[str, np.ndarray]]:
    if values is None:
        return []
    if not isinstance(values, Mapping):
        several = values if isinstance(values, (list, tuple)) else [values]
        names = [default] if len(several) == 1 else [f"_{i}_{default}" for i in range(len(several))]
        values = dict(zip(names, several))
    else:
        values = dict(sorted(values.items()))
    found = []
    for name, value in values.items():
        try:
            host = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"{name}: expected an array, found {describe(value)} ({error})", str(name)
            ) from None
        if host.ndim == 0:
            raise InvalidArgumentError(f"{name}: expected an array of samples, found {describe(value)}", name)
        keeps = isinstance(value, NDArray) or host.dtype == np.float16
        try:
            found.append((name, host if keeps else host.astype("float32")))
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"{name}: expected numbers, found {describe(value)} ({error})", str(name)
            ) from None
    return found


class NDArrayIter:
    """Batches of arrays in memory; each iteration is one epoch.

    ``last_batch_handle`` says what happens to samples that do not fill a batch: "pad" adds the first samples again and
    gives their number in ``pad``, "discard" leaves them out. A dict's arrays come in the order of their names. NumPy
    arrays become float32 (float16 stays), the usual type of networks; an NDArray keeps its type.
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
        seed: Optional[int] = None,
    ) -> None:
        self._data, self._label = _named(data, data_name), _named(label, label_name)
        self.batch_size = to_int(batch_size, "batch_size", 1, 2**31 - 1)
        lengths = {len(values) for _, values in self._data + self._label}
        if len(lengths) != 1:
            raise InvalidArgumentError(f"data: expected arrays of one length, found {sorted(lengths)}", "data")
        self.num_data = lengths.pop()
        if self.num_data < self.batch_size:
            raise InvalidArgumentError(
                f"batch_size: expected at most the {self.num_data} samples, found {self.batch_size}", "batch_size"
            )
        if last_batch_handle not in ("pad", "discard"):
            raise InvalidArgumentError(
                f"last_batch_handle: expected pad or discard, found {describe(last_batch_handle)}", "last_batch_handle"
            )
        self._discard, self._shuffle = last_batch_handle == "discard", bool(shuffle)
        self._random = np.random.RandomState(seed)

    def _descs(self, arrays: List[Tuple[str, np.ndarray]]) -> List[DataDesc]:
        return [DataDesc(name, (self.batch_size, *values.shape[1:]), values.dtype) for name, values in arrays]

    @property
    def provide_data(self) -> List[DataDesc]:
        return self._descs(self._data)

    @property
    def provide_label(self) -> List[DataDesc]:
        return self._descs(self._label)

    def __len__(self) -> int:
        whole, rest = divmod(self.num_data, self.batch_size)
        return whole + (1 if rest and not self._discard else 0)

    def reset(self) -> None:
        """Does nothing: each iteration starts a new epoch."""

    def __iter__(self) -> Iterator[DataBatch]:
        order = self._random.permutation(self.num_data) if self._shuffle else np.arange(self.num_data)
        for i in range(len(self)):
            rows = order[i * self.batch_size : (i + 1) * self.batch_size]
            pad = self.batch_size - len(rows)
            rows = np.concatenate([rows, order[:pad]]) if pad else rows
            data = [array(values[rows], dtype=values.dtype) for _, values in self._data]
            label = [array(values[rows], dtype=values.dtype) for _, values in self._label]
            yield DataBatch(
                data, label, pad=pad, index=rows, provide_data=self.provide_data, provide_label=self.provide_label
            )


def shapes_of(descs: Any) -> Dict[str, Tuple[int, ...]]:
    return {desc.name: desc.shape for desc in map(to_desc, to_list(descs, "descriptors"))}
