# SPDX-License-Identifier: Apache-2.0
"""Arrays on devices, and operators applied to them at once (imperatively).

Operators are functions of this module, made from the library's registry: ``nd.FullyConnected(x, w, b, num_hidden=3)``.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int32, c_int64
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _abi, _dlpack, _operators, _tape
from ._arithmetic import ARITHMETIC, Names, Operand, is_number
from ._indexing import Region, is_rows, region_of
from ._library import (
    Callback,
    Handle,
    attributes,
    describe,
    lib,
    list_of_names,
    options_of,
    out_handle,
    out_int,
    pointers,
    release_later,
    to_dict,
    to_int,
    to_list,
    to_path,
    to_real,
    to_shape,
    to_text,
)
from ._dtype import BFLOAT16, CODES, Dtype, DtypeLike, dtype_code, dtype_of
from .context import Context, ContextLike, pointer_to, to_context
from ._tape import Tape
from .errors import DtypeError, InvalidArgumentError, StateError, UnknownNameError

_Lengths = c_int64 * _abi.MAX_AXES


class NDArray(Operand):
    """An array on a device, or a view of one. Reading it waits for the work that writes it.

    >>> from cohort import nd
    >>> x = nd.array([[1, 2], [3, 4]])
    >>> x[1].asnumpy()
    array([3., 4.], dtype=float32)
    >>> nd.exp(x * 0).shape
    (2, 2)
    """

    _free_name = "cohort_ndarray_free"
    _shape: Optional[Tuple[int, ...]] = None  # cached like the type: neither ever changes
    _dtype: Optional[Dtype] = None
    _tape: Optional[Tape] = None  # the tape that knows it: it is marked, or computed from known arrays
    _grad: Optional["NDArray"] = None
    _is_part = False  # a copy of a part of a recorded array
    __array_priority__ = 1000.0  # its operators take precedence over NumPy's

    # ---- what it is

    @property
    def shape(self) -> Tuple[int, ...]:
        shape = self._shape
        if shape is None or self._pointer is None:
            lengths, num = _Lengths(), c_int32()
            self._call(lib.cohort_ndarray_shape, lengths, _abi.MAX_AXES, byref(num))
            self._shape = shape = tuple(lengths[: num.value])
        return shape

    @property
    def dtype(self) -> Dtype:
        """The NumPy type; ``"bfloat16"`` for that one."""
        dtype = self._dtype
        if dtype is None or self._pointer is None:
            self._dtype = dtype = dtype_of(self._out(out_int, lib.cohort_ndarray_dtype)) or BFLOAT16
        return dtype

    @property
    def context(self) -> Context:
        found = _abi.cohort_context()
        self._call(lib.cohort_ndarray_context, byref(found))
        return Context._from_struct(found)

    ctx = context

    @property
    def size(self) -> int:
        return int(self._out(out_int, lib.cohort_ndarray_size))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("an array without axes has no length")
        return shape[0]

    def __repr__(self) -> str:
        if self.closed:
            return "<NDArray, closed>"
        return f"{self.asnumpy()!r}\n<NDArray {'x'.join(map(str, self.shape))} @{self.context}>"

    # ---- values

    def asnumpy(self) -> np.ndarray:
        """A NumPy copy; float32 for bfloat16."""
        dtype = self.dtype
        if dtype == BFLOAT16:
            return self.astype("float32").asnumpy()
        found = np.empty(self.shape, dtype)
        self._call(lib.cohort_ndarray_read, found.ctypes.data, found.nbytes)
        return found

    def __array__(self, dtype: DtypeLike = None, copy: Optional[bool] = None) -> np.ndarray:
        if copy is False:
            raise ValueError(
                "an NDArray cannot become a NumPy array without a copy; np.from_dlpack() shares its memory"
            )
        found = self.asnumpy()
        return found if dtype is None else found.astype(dtype)

    def asscalar(self) -> Any:
        if self.size != 1:
            raise InvalidArgumentError(f"asscalar: expected one element, found shape {self.shape}", "array")
        return self.asnumpy().item()

    item = asscalar

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("an array of several elements has no truth value")
        return bool(self.asscalar())

    def tolist(self) -> Any:
        return self.asnumpy().tolist()

    def wait_to_read(self) -> None:
        """Waits for the work that writes the array."""
        self._call(lib.cohort_ndarray_wait)

    def set(self, value: Any) -> "NDArray":
        """Sets all elements: to one number, or from an array of the same shape."""
        self._check_whole()
        if isinstance(value, NDArray):
            value.copyto(self)
        elif isinstance(value, (bool, int, float, np.generic)):
            self._call(lib.cohort_ndarray_fill, to_real(value, "value"))
        else:
            source = _host_array(value, None if self.dtype == BFLOAT16 else self.dtype)
            if self.dtype == BFLOAT16:
                to_array(value, "value", keeps=True).copyto(self)
            else:
                if source.ndim == 0:
                    source = np.full(self.shape, source)
                if source.shape != self.shape:
                    raise InvalidArgumentError(f"value: expected shape {self.shape}, found {source.shape}", "value")
                self._call(lib.cohort_ndarray_write, source.ctypes.data, source.nbytes)
        return self

    def copyto(self, other: Union["NDArray", Context]) -> "NDArray":
        """Copies into an array, converting to its type, or to a context."""
        if isinstance(other, Context):
            return self.copy(other)
        if not isinstance(other, NDArray):
            raise InvalidArgumentError(f"copyto: expected an array or a context, found {describe(other)}", "other")
        if _tape.active():
            _copy_recorded(self, other)
        else:
            self._call(lib.cohort_ndarray_copy_to, other.handle)
        return other

    def copy(self, context: Optional[ContextLike] = None) -> "NDArray":
        where = self.context if context is None else to_context(context)
        if _tape.active():
            return self.copyto(empty(self.shape, where, self.dtype))
        return self._made(lib.cohort_ndarray_copy, pointer_to(where))

    def as_in_context(self, context: ContextLike) -> "NDArray":
        """The array itself if it is on this context, otherwise a copy."""
        where = to_context(context)
        return self if where == self.context else self.copy(where)

    def astype(self, dtype: DtypeLike, copy: bool = True) -> "NDArray":
        """A copy of another type; without ``copy`` the array itself if it has that type."""
        if copy is False and self.dtype == dtype_of(dtype_code(dtype)):
            return self
        if _tape.active():
            return self.copyto(empty(self.shape, self.context, dtype))
        return self._made(lib.cohort_ndarray_cast, dtype_code(dtype))

    # ---- gradients

    def attach_grad(self, grad_req: str = "write", stype: Any = None) -> None:
        """Attaches a gradient array of zeros to the array: "write", "add", or "null", which detaches it."""
        from .autograd import mark_variables

        if not (stype is None or isinstance(stype, str) and stype == "default"):
            raise InvalidArgumentError(f"stype: expected 'default', found {describe(stype)}", "stype")
        mark_variables([self], [zeros(self.shape, self.context, self.dtype)], grad_req)

    @property
    def grad(self) -> Optional["NDArray"]:
        """The array of the gradient; None: none."""
        return self._grad

    def backward(
        self, out_grad: Optional["NDArray"] = None, retain_graph: bool = False, train_mode: bool = True
    ) -> None:
        """Computes the gradients of all arrays with an attached gradient that this array depends on: see
        :mod:`cohort.autograd`."""
        from .autograd import backward

        backward([self], None if out_grad is None else [out_grad], retain_graph, train_mode)

    def detach(self) -> "NDArray":
        """A copy through which no gradient flows."""
        with _tape.scope(False, None):
            return self.copy()

    def _is_known(self) -> bool:
        """Whether gradients flow through operators on it now."""
        return self._tape is not None and _tape.active() is not None

    def _check_whole(self) -> None:
        if self._is_part:
            raise StateError("a part of an array taken while recording is a copy: write to the array itself", "array")

    # ---- views

    def _part(self, view: "NDArray", begin: int) -> "NDArray":
        """A view of the rows from one on; a copy of an array that is being recorded."""
        if not self._is_known():
            return view
        num = 1 if view.ndim < self.ndim else view.shape[0]
        taken = _operators.apply("slice_axis", [self], {"axis": 0, "begin": begin, "end": begin + num})
        part: NDArray = taken.reshape(view.shape)
        part._is_part = True
        return part

    def _made(self, function: Any, *arguments: Any) -> "NDArray":
        return NDArray._adopt(self._out(lambda f, handle: out_handle(f, handle, *arguments), function))

    def slice(self, begin: Any, end: Any, step: Any = None) -> "NDArray":
        """A view of rows; with tuples, the result of the operator ``slice``."""
        if isinstance(begin, (list, tuple)):
            found: NDArray = _operators.function_of_arrays("slice")(self, begin=begin, end=end, step=step)
            return found
        first = to_int(begin, "begin")
        return self._part(self._made(lib.cohort_ndarray_slice, first, to_int(end, "end")), first)

    def at(self, index: int) -> "NDArray":
        """A view of one row, without the first axis."""
        row = to_int(index, "index")
        return self._part(self._made(lib.cohort_ndarray_at, row), row)

    def slice_axis(self, axis: int, begin: int, end: Optional[int]) -> "NDArray":
        """A range along an axis: a view for the first axis, otherwise a copy."""
        last = 2**63 - 1 if end is None else to_int(end, "end")
        where = to_int(axis, "axis", -(2**31), 2**31 - 1)
        made = self._made(lib.cohort_ndarray_slice_axis, where, to_int(begin, "begin"), last)
        if not self._is_known():
            return made
        attrs = {"axis": where, "begin": begin, "end": "None" if end is None else end}
        found: NDArray = _operators.apply("slice_axis", [self], attrs)
        return found

    def reshape(self, *lengths: Any, shape: Any = None, reverse: bool = False) -> "NDArray":
        """A view of the same memory with another shape: ``reshape(2, 3)``, ``reshape((2, 3))`` or ``reshape(shape=(2, 3))``.

        One length may be -1. 0, -2, -3, -4 and ``reverse`` have the meaning of the operator Reshape."""
        given = shape if shape is not None else lengths[0] if len(lengths) == 1 else lengths
        wanted, num = to_shape(given, "shape")
        if reverse is not False or self.size and not {0, -2, -3, -4}.isdisjoint(wanted):
            from .symbol import Variable

            node = _operators.function_of_symbols("Reshape")(Variable("x"), shape=tuple(wanted), reverse=reverse)
            wanted, num = to_shape(node.infer_shape(x=self.shape)[1][0], "shape")
        made = self._made(lib.cohort_ndarray_reshape, wanted, num)
        made._tape, made._is_part = self._tape, self._is_part
        return made

    @property
    def T(self) -> "NDArray":
        """A copy with the axes in reverse; the array itself if it has fewer than two."""
        if self.ndim < 2:
            return self
        found: NDArray = _operators.function_of_arrays("transpose")(self)
        return found

    def _region(self, key: Any) -> Tuple["NDArray", Region]:
        """The row, or row of a row, that integers at the front of a key select, and the key's selection from that."""
        region, part = region_of(key, self.shape), self
        for row in region.rows:
            part = part.at(row)
        return part, region

    def __getitem__(self, key: Any) -> "NDArray":
        """Indexes by integers, slices, ``...`` and None, as in NumPy: consecutive rows, and rows of a row, are a
        view, anything else a copy."""
        part, region = self._region(key)
        rows = is_rows(region, part.shape)
        if rows:
            return part.slice(*rows)
        if not region.axes:
            return part.reshape(region.shape)
        if 0 in region.lengths:
            return zeros(region.shape, self.context, self.dtype)
        return _operators.apply("slice", [part], region.attrs()).reshape(region.shape)

    def _assign_recorded(self, key: Any, value: Any) -> None:
        """``self[key] = value``, by an operator over the whole array."""
        region = region_of(key, self.shape)
        if 0 in region.lengths:
            return
        axes = [(row, 1, 1) for row in region.rows] + region.axes
        whole = Region([], axes, region.shape)
        if is_number(value):
            attrs = {**whole.attrs(), "scalar": to_real(value, "value")}
            _operators.apply("_slice_assign_scalar", [self], attrs, [self])
            return
        given = to_array(value, "value", keeps=True).as_in_context(self.context).astype(self.dtype, copy=False)
        _operators.apply(
            "_slice_assign", [self, _spread(given, region.shape).reshape(whole.lengths)], whole.attrs(), [self]
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check_whole()
        if self.ndim and (self._is_known() or isinstance(value, NDArray) and value._is_known()):
            self._assign_recorded(key, value)
            return
        part, region = self._region(key)
        rows = is_rows(region, part.shape)
        target = part.slice(*rows) if rows else part
        shape = target.shape if rows or not region.axes else region.lengths
        if 0 in shape:
            return
        if is_number(value) and not rows and region.axes:
            attrs = {**region.attrs(), "scalar": to_real(value, "value")}
            _operators.apply("_slice_assign_scalar", [part], attrs, [part])
            return
        if not is_number(value):
            value = _spread(to_array(value, "value", keeps=True), region.shape).reshape(shape)
        if rows or not region.axes:
            target.set(value)
        else:
            there = value.copy(self.context).astype(self.dtype)
            _operators.apply("_slice_assign", [part, there], region.attrs(), [part])

    def __iter__(self) -> Iterator["NDArray"]:
        return (self.at(i) for i in range(len(self)))

    # ---- DLPack

    def __dlpack_device__(self) -> Tuple[int, int]:
        where = self.context
        return (2, where.device_id) if where.device_type == "gpu" else (1, 0)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, **_: Any) -> Any:
        """A capsule that shares the array's memory and keeps it alive."""
        versioned = max_version is not None and max_version[0] >= 1
        lend = lib.cohort_ndarray_to_dlpack if versioned else lib.cohort_ndarray_to_dlpack_unversioned
        return _dlpack.to_capsule(self._out(out_handle, lend), versioned)

    # ---- arithmetic

    @staticmethod
    def _function_of(name: str) -> Callable[..., Any]:
        return _operators.function_of_arrays(name)

    def _arithmetic(self, names: Names, other: Any, swapped: bool, out: Optional["NDArray"] = None) -> Any:
        outputs = None if out is None else [out]
        if isinstance(other, np.ndarray) and other.ndim:
            taken = array(other, self.context, self.dtype)
            whole = str(self.dtype) in ("int8", "uint8", "int32", "int64")
            if whole and other.dtype.kind == "f" and np.any(taken.asnumpy() != other):
                raise DtypeError(
                    f"expected whole numbers for an array of {self.dtype}, found {describe(other)}", "other"
                )
            other = taken
        if isinstance(other, NDArray):
            return _operators.apply(names.arrays, [other, self] if swapped else [self, other], {}, outputs)
        if not is_number(other):
            return NotImplemented
        name = names.reversed if swapped else names.scalar
        return _operators.apply(name, [self], {"scalar": to_real(other, "scalar")}, outputs)

    def _in_place(self, names: Names, other: Any) -> "NDArray":
        """Writes the result into the array's own memory, so that other references and views see it."""
        self._check_whole()
        found = self._arithmetic(names, other, False, self)
        return found if found is NotImplemented else self

    def __iadd__(self, other: Any) -> "NDArray":
        return self._in_place(ARITHMETIC["add"], other)

    def __isub__(self, other: Any) -> "NDArray":
        return self._in_place(ARITHMETIC["sub"], other)

    def __imul__(self, other: Any) -> "NDArray":
        return self._in_place(ARITHMETIC["mul"], other)

    def __itruediv__(self, other: Any) -> "NDArray":
        return self._in_place(ARITHMETIC["truediv"], other)

    def __imod__(self, other: Any) -> "NDArray":
        return self._in_place(ARITHMETIC["mod"], other)

    def __reduce__(self) -> Any:
        return _from_pickle, (
            self.astype("float32").asnumpy() if self.dtype == BFLOAT16 else self.asnumpy(),
            self.dtype,
        )


def _from_pickle(values: np.ndarray, dtype: Dtype) -> NDArray:
    return array(values, dtype=dtype)


# ---- making arrays -----------------------------------------------------------------------------------------------------


def _host_array(source: Any, dtype: DtypeLike) -> np.ndarray:
    """A contiguous NumPy array of the requested type. Values without a type, and NumPy's float64, the type of any
    Python number, become float32."""
    typed = isinstance(source, (np.ndarray, np.generic)) and source.dtype != np.float64
    wanted = dtype if dtype is not None else (source.dtype if typed else "float32")
    try:
        made = np.asarray(source, dtype=wanted)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"array: expected numbers, found {describe(source)} ({error})", "array") from None
    if str(made.dtype) not in CODES:
        raise DtypeError(f"array: NumPy's type {made.dtype} is not supported", "array")
    if made.ndim > _abi.MAX_AXES:
        raise InvalidArgumentError(f"array: expected at most {_abi.MAX_AXES} axes, found {made.ndim}", "array")
    return np.ascontiguousarray(made).reshape(made.shape)


def array(source: Any, ctx: Optional[ContextLike] = None, dtype: DtypeLike = None) -> NDArray:
    """An array with a copy of a NumPy array, nested lists, or another array. Without ``dtype`` it has the type of
    the NumPy array, but float32 for float64 and for lists, the usual type of networks."""
    if isinstance(source, NDArray):
        made = source.copy(ctx) if dtype is None else source.astype(dtype)
        return made if ctx is None else made.as_in_context(ctx)
    if isinstance(dtype, str) and dtype == BFLOAT16:
        return array(source, ctx, "float32").astype(BFLOAT16)
    host = _host_array(source, dtype)
    shape = to_shape(host.shape, "shape")
    code = CODES[str(host.dtype)]
    return NDArray._adopt(
        out_handle(lib.cohort_ndarray_from_host, host.ctypes.data, host.nbytes, *shape, code, pointer_to(ctx))
    )


def _code_or_float32(dtype: DtypeLike) -> int:
    return dtype_code("float32" if dtype is None else dtype)


def empty(shape: Any, ctx: Optional[ContextLike] = None, dtype: DtypeLike = None) -> NDArray:
    """An array whose contents are unspecified until written."""
    made = out_handle(lib.cohort_ndarray_empty, *to_shape(shape, "shape"), _code_or_float32(dtype), pointer_to(ctx))
    return NDArray._adopt(made)


def zeros(shape: Any, ctx: Optional[ContextLike] = None, dtype: DtypeLike = None) -> NDArray:
    """An array of zeros."""
    made = out_handle(lib.cohort_ndarray_zeros, *to_shape(shape, "shape"), _code_or_float32(dtype), pointer_to(ctx))
    return NDArray._adopt(made)


def full(shape: Any, val: float, ctx: Optional[ContextLike] = None, dtype: DtypeLike = None) -> NDArray:
    """An array of one value."""
    lengths = to_shape(shape, "shape")
    value = to_real(val, "val")
    return NDArray._adopt(
        out_handle(lib.cohort_ndarray_full, *lengths, _code_or_float32(dtype), pointer_to(ctx), value)
    )


def ones(shape: Any, ctx: Optional[ContextLike] = None, dtype: DtypeLike = None) -> NDArray:
    """An array of ones."""
    return full(shape, 1, ctx, dtype)


def wrap(source: np.ndarray, ctx: Optional[ContextLike] = None) -> NDArray:
    """An array on the memory of a NumPy array, without a copy. Writing to it while queued work reads it is a race;
    the memory is kept for as long as the library needs it."""
    if not isinstance(source, np.ndarray) or not source.flags.c_contiguous or str(source.dtype) not in CODES:
        raise InvalidArgumentError(f"wrap: expected a contiguous NumPy array, found {describe(source)}", "source")
    if not source.flags.writeable:
        raise InvalidArgumentError("wrap: expected writable memory, found read-only memory", "source")

    def done(data: int) -> None:
        release_later(_lent_memory.pop(number, None))

    callback = Callback(_abi.cohort_deleter_fn, done, always=True)
    number = callback.number
    shape, num_axes = to_shape(source.shape, "shape")
    arguments = source.ctypes.data, shape, num_axes, CODES[str(source.dtype)], pointer_to(ctx)
    _lent_memory[number] = source, callback
    try:
        return NDArray._adopt(out_handle(lib.cohort_ndarray_wrap, *arguments, callback.pointer, number))
    except BaseException:
        del _lent_memory[number]
        raise


_lent_memory: Dict[int, Any] = {}  # memory that the library uses, with the function that releases it


def concatenate(arrays: Sequence[NDArray], axis: int = 0) -> NDArray:
    """Joins arrays along an axis."""
    given = arrays_of(arrays, "arrays")
    where = to_int(axis, "axis", -(2**31), 2**31 - 1)
    if _tape.active():
        found: NDArray = _operators.function_of_arrays("Concat")(*given, dim=where)
        return found
    return NDArray._adopt(out_handle(lib.cohort_ndarray_concat, pointers(given, "arrays"), len(given), where))


def random_uniform(low: float, high: float, shape: Any, seed: int = 0, dtype: DtypeLike = None) -> NDArray:
    """Independent numbers, uniform from low up to high."""
    made = empty(shape, None, dtype)
    number = to_int(seed, "seed", 0, 2**64 - 1)
    made._call(lib.cohort_ndarray_fill_uniform, to_real(low, "low"), to_real(high, "high"), number)
    return made


# ---- DLPack ------------------------------------------------------------------------------------------------------------


def from_dlpack(source: Any) -> NDArray:
    """An array on another library's memory, without a copy if it is contiguous: NumPy's, PyTorch's, ..."""
    return NDArray._adopt(_dlpack.taken(source))


# ---- lists of arrays ---------------------------------------------------------------------------------------------------


def _spread(value: NDArray, shape: Tuple[int, ...]) -> NDArray:
    """Broadcasts to this shape: repeats axes of length 1 and adds missing ones at the front."""
    if value.shape == shape:
        return value
    fits = len(value.shape) <= len(shape) and all(a in (1, b) for a, b in zip(value.shape[::-1], shape[::-1]))
    if not fits:
        raise InvalidArgumentError(f"value: expected shape {shape}, found {value.shape}", "value")
    longer = value.reshape((1,) * (len(shape) - len(value.shape)) + value.shape)
    return _operators.apply("broadcast_to", [longer], {"shape": shape})


def to_array(value: Any, what: str, keeps: bool = False) -> NDArray:
    """An array, or a value that can be copied into one. ``keeps``: with all its digits, for a copy into an array that
    has a type already."""
    if isinstance(value, NDArray):
        return value
    if value is None or isinstance(value, (str, bytes, Mapping)):
        raise InvalidArgumentError(f"{what}: expected an array, found {describe(value)}", what)
    return array(value, dtype=_own_type(value) if keeps else None)


def _own_type(value: Any) -> Optional[np.dtype[Any]]:
    """NumPy's type of a value, in which it loses nothing; None: it has none that arrays have."""
    try:
        found = np.asarray(value).dtype
    except (TypeError, ValueError, OverflowError):
        return None
    return found if str(found) in CODES else None


def arrays_of(values: Any, what: str, keeps: bool = False) -> List[NDArray]:
    """A list of arrays; a single one is a list of one. None: an empty list. ``keeps``: see :func:`to_array`."""
    if isinstance(values, (NDArray, np.ndarray)):
        return [to_array(values, what, keeps)]
    return [to_array(value, what, keeps) for value in to_list(values, what)]


def by_name(names: List[str], arrays: List[Any]) -> Dict[str, Any]:
    found = dict(zip(names, arrays))
    if len(found) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise UnknownNameError(f"two arrays are called '{name}'", name)
    return found


class Arrays(Handle):
    """The library's lists of arrays by name."""

    _free_name = "cohort_arrays_free"

    @classmethod
    def of(cls, values: Optional[Mapping[str, Any]], what: str, keeps: bool = False) -> "Arrays":
        made = cls._adopt(out_handle(lib.cohort_arrays_create))
        for name, value in to_dict(values, what).items():
            held = to_array(value, f"{what}: {name}", keeps)
            made._call(lib.cohort_arrays_add, to_text(name, what), held.handle)
        return made

    def names(self) -> List[str]:
        return list_of_names(lib.cohort_arrays_num, lib.cohort_arrays_name, self.handle)

    def list(self) -> List[Optional[NDArray]]:
        found: List[Optional[NDArray]] = []
        for i in range(out_int(lib.cohort_arrays_num, self.handle)):
            array_ = out_handle(lib.cohort_arrays_get, self.handle, i)
            found.append(None if array_ is None else NDArray._adopt(array_))
        return found

    def dict(self) -> Dict[str, Any]:
        return by_name(self.names(), self.list())

    def add(self, array_: Optional[NDArray]) -> None:
        self._call(lib.cohort_arrays_add, None, None if array_ is None else array_.handle)


class LentArrays(Arrays):
    """A list that a callback was given, owned by the library."""

    def _free(self) -> None:
        self._pointer = None


def lent(address: Optional[int]) -> NDArray:
    """A reference of its own to an array that a callback was given."""
    return NDArray._adopt(out_handle(lib.cohort_ndarray_share, address))


def _listed(data: Any) -> Arrays:
    if isinstance(data, Mapping):
        return Arrays.of(data, "data")
    arrays_ = Arrays.of(None, "data")
    for array_ in arrays_of(data, "data"):
        arrays_.add(array_)
    return arrays_


def save(fname: Any, data: Any) -> None:
    """Writes a .params file from a dict, a list, or one array."""
    _listed(data)._call(lib.cohort_arrays_save, to_path(fname, "fname"))


def save_npz(fname: Any, data: Mapping[str, Any]) -> None:
    """Writes arrays by name like ``numpy.savez``; :func:`load` reads them, too."""
    Arrays.of(data, "data")._call(lib.cohort_arrays_save_npz, to_path(fname, "fname"))


def save_npy(fname: Any, data: Any) -> None:
    """Writes one array like ``numpy.save``; :func:`load` reads it, too."""
    _listed([to_array(data, "data")])._call(lib.cohort_arrays_save_npy, to_path(fname, "fname"))


def save_tobuffer(data: Any) -> bytes:
    """The file that :func:`save` writes, as bytes."""
    arrays_ = _listed(data)
    size = ctypes.c_size_t()
    arrays_._call(lib.cohort_arrays_save_memory, None, 0, byref(size))
    memory = ctypes.create_string_buffer(size.value)
    arrays_._call(lib.cohort_arrays_save_memory, memory, size.value, None)
    return memory.raw


def load(fname: Any, ctx: Optional[ContextLike] = None) -> Any:
    """The contents of a .params file, or of NumPy's .npy and .npz: a dict, or a list if there are no names."""
    return _loaded(out_handle(lib.cohort_arrays_load, to_path(fname, "fname"), pointer_to(ctx)))


def load_frombuffer(data: Any, ctx: Optional[ContextLike] = None) -> Any:
    """Like :func:`load`, from bytes."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InvalidArgumentError(f"data: expected bytes, found {describe(data)}", "data")
    held = bytes(data)
    return _loaded(out_handle(lib.cohort_arrays_load_memory, held, len(held), pointer_to(ctx)))


def _loaded(handle: Optional[int]) -> Any:
    with Arrays._adopt(handle) as arrays_:
        return arrays_.dict() if any(arrays_.names()) else arrays_.list()


# ---- operators ---------------------------------------------------------------------------------------------------------


def note(tape: Tape, inputs: Sequence[NDArray], outputs: Sequence[NDArray]) -> None:
    """Arrays computed from known arrays are known to the tape."""
    if any(array_._tape is not None for array_ in inputs):
        for array_ in outputs:
            array_._tape = tape


def _copy_recorded(source: NDArray, target: NDArray) -> None:
    """A copy by an operator, or between devices by a custom function."""
    where, there = source.context, target.context
    if where == there or "gpu" not in (where.device_type, there.device_type):
        same = source.dtype == target.dtype
        _operators.apply("_copy" if same else "Cast", [source], {} if same else {"dtype": target.dtype}, [target])
        return
    from .autograd import record_function

    with _tape.scope(False, None):
        source.copyto(target)
    dtype = source.dtype
    record_function([source], [target], lambda gradient: gradient.as_in_context(where).astype(dtype))


def _invoke(
    op: str,
    inputs: Sequence[NDArray],
    attrs: Mapping[str, Any],
    out: Optional[Sequence[NDArray]],
    ctx: Optional[ContextLike],
    seed: Optional[int],
    is_train: Optional[bool],
) -> List[NDArray]:
    options = options_of(_abi.cohort_invoke_options, lib.cohort_invoke_options_init)
    where = None if ctx is None else pointer_to(ctx)
    if where is not None:
        options.context = ctypes.cast(where, type(options.context))
    options.seed = _operators.next_draw() if seed is None else to_int(seed, "seed", 0, 2**64 - 1)
    training = _tape.state.training if is_train is None else bool(is_train)
    keys, values, num = attributes(attrs, op)
    outputs = list(out or [])
    arguments = (
        to_text(op, "operator"),
        keys,
        values,
        num,
        pointers(inputs, op),
        len(inputs),
        pointers(outputs, op) if outputs else None,
        len(outputs),
        byref(options),
    )
    tape = _tape.active()
    if tape is None:
        options.is_train = 1 if training else 0
        made = out_handle(lib.cohort_operator_invoke, *arguments)
    else:
        with tape._lock:  # the tape's mode is set for this call
            tape.set_training(training)
            made = out_handle(lib.cohort_tape_invoke, tape.handle, *arguments)
    with Arrays._adopt(made) as results:
        found = outputs or [array_ for array_ in results.list() if array_ is not None]
    if tape is not None:
        note(tape, inputs, found)
    return found


_operators.invoke = _invoke
_operators.to_array = to_array
_operators.array_type = NDArray


contrib, linalg, image = _operators.families(_operators.function_of_arrays)


def __getattr__(name: str) -> Any:
    return _operators.function_of_arrays(name)


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(_operators.names()))
