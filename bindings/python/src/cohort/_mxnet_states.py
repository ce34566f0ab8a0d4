# SPDX-License-Identifier: Apache-2.0
"""States of MXNet's optimizers, which MXNet pickles, as the library's own states.

A pickle can name any function to be called. This reader calls none: arrays become their bytes, a pickled optimizer its
attributes, and any other name is an error. It writes version 1 of the library's format, which
``src/optimizer/optimizer_states.cc`` describes.
"""

from __future__ import annotations

import pickletools
import struct
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ._library import to_int, to_list
from .errors import FormatError, InvalidArgumentError, UnsupportedError

_PICKLE, _OWN = b"\x80", b"COHORTOP"
_PARAMS_MAGIC = 0x112
# Their updates go on from numbers that MXNet keeps outside the states, for all parameters together.
_CARRYING = "nadam", "lars", "lbsgd"
# MXNet puts the copy of the weight in float32 behind the states of these, and before those of the others.
_WEIGHT_LAST = "sgd", "ccsgd", "nag"


def is_pickle(data: bytes) -> bool:
    return data[:1] == _PICKLE


# Names of the types and functions in MXNet's pickles.
_ARRAYS = {
    ("mxnet.ndarray.ndarray", "NDArray"),
    ("mxnet.ndarray", "NDArray"),
    ("mxnet.numpy.multiarray", "ndarray"),
}
_CONSTRUCTORS = {("copyreg", "_reconstructor"), ("copy_reg", "_reconstructor")}
_BYTES = {("builtins", "bytearray"), ("__builtin__", "bytearray"), ("_codecs", "encode")}
_OBJECT = {("builtins", "object"), ("__builtin__", "object")}

# Opcodes of pickles: those whose argument is a value, and those that make one from nothing.
_WITH_VALUE = (
    "BININT BININT1 BININT2 LONG1 LONG4 BINFLOAT BINSTRING SHORT_BINSTRING "
    "BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8"
).split()
_MADE: Dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Name:
    """A type or function of a module."""

    def __init__(self, module: Any, name: Any) -> None:
        self.key = module, name
        known = self.key in _ARRAYS | _CONSTRUCTORS | _BYTES | _OBJECT
        if not known and str(module).split(".")[0] not in ("mxnet", "numpy"):
            raise FormatError(f"the pickle names '{module}.{name}', which states of an optimizer do not have")


class _Object:
    """An array as MXNet has written it, or another object of MXNet's, of which the attributes are read."""

    def __init__(self, of: Any) -> None:
        if not isinstance(of, _Name) or of.key in _BYTES | _CONSTRUCTORS | _OBJECT:
            raise FormatError("expected an array or an optimizer, found another object")
        self.is_array = of.key in _ARRAYS
        self.raw: Optional[bytes] = None
        self.attributes: Dict[Any, Any] = {}

    def build(self, state: Any) -> None:
        if isinstance(state, dict):
            self.attributes = state
        if self.is_array:
            self.raw = self.attributes.get("handle")
            if not isinstance(self.raw, (bytes, bytearray)):
                raise FormatError("an array has no contents")


def _bytes(given: Sequence[Any]) -> bytes:
    """Pickles before protocol 5 write bytes as text in latin1, or have a call that changes their type."""
    if not given:
        return b""
    if isinstance(given[0], (bytes, bytearray)):
        return given[0]
    if not isinstance(given[0], str) or (len(given) > 1 and given[1] not in ("latin1", "latin-1")):
        raise FormatError("expected bytes, or text in latin1")
    return given[0].encode("latin1")


def _call(what: Any, given: Sequence[Any]) -> Any:
    if isinstance(what, _Object):  # what NumPy's functions return
        return what
    if not isinstance(what, _Name):
        raise FormatError("expected an array or an optimizer, found another object")
    if what.key in _BYTES:
        return _bytes(given)
    return _Object(given[0] if what.key in _CONSTRUCTORS else what)


def _set_items(to: Any, items: Sequence[Any]) -> None:
    """Keys of other types, whose hashes may take any time and stack, are left out: nothing here has them."""
    for key, value in zip(items[::2], items[1::2]):
        if isinstance(key, (int, float, str, bytes)):
            to[key] = value


class _Reader:
    """Reads what a pickle contains, in memory in proportion to the pickle, whatever that says; pickle.Unpickler does
    not."""

    def __init__(self) -> None:
        self.stack: List[Any] = []
        self.marks: List[int] = []
        self.memo: Dict[int, Any] = {}
        self.bytes_left = 0  # that calls may make: each array has its own

    def take(self, begin: int) -> List[Any]:
        if not 0 <= begin <= len(self.stack):
            raise FormatError("a value is missing")
        taken = self.stack[begin:]
        del self.stack[begin:]
        return taken

    def last(self, num: int) -> List[Any]:
        return self.take(len(self.stack) - num)

    def read(self, data: bytes) -> Any:
        self.bytes_left = len(data)
        for opcode, argument, _ in pickletools.genops(data):
            self.run(opcode.name, argument)
        return self.stack[-1]

    def run(self, opcode: str, argument: Any) -> None:
        stack = self.stack
        if opcode in _WITH_VALUE:
            stack.append(argument)
        elif opcode in _MADE:
            stack.append(_MADE[opcode]())
        elif opcode in _TUPLES:
            stack.append(tuple(self.last(_TUPLES[opcode])))
        elif opcode == "MARK":
            self.marks.append(len(stack))
        elif opcode == "TUPLE":
            stack.append(tuple(self.take(self.marks.pop())))
        elif opcode in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memo[len(self.memo) if argument is None else argument] = stack[-1]
        elif opcode in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif opcode == "APPEND":
            (value,) = self.last(1)
            stack[-1].append(value)
        elif opcode == "APPENDS":
            values = self.take(self.marks.pop())
            stack[-1].extend(values)
        elif opcode == "SETITEM":
            _set_items(stack[-3], self.last(2))
        elif opcode == "SETITEMS":
            values = self.take(self.marks.pop())
            _set_items(stack[-1], values)
        elif opcode == "GLOBAL":
            stack.append(_Name(*argument.split(" ", 1)))
        elif opcode == "STACK_GLOBAL":
            stack.append(_Name(*self.last(2)))
        elif opcode in ("REDUCE", "NEWOBJ"):
            made = _call(*self.last(2))
            self.bytes_left -= len(made) if isinstance(made, (bytes, bytearray)) else 0
            if self.bytes_left < 0:
                raise FormatError("several arrays have the same contents")
            stack.append(made)
        elif opcode == "BUILD":
            (state,) = self.last(1)
            stack[-1].build(state)
        elif opcode not in ("PROTO", "FRAME", "STOP"):
            raise FormatError(f"the pickle has the opcode {opcode}, which states of an optimizer do not have")


def _read(data: bytes, source: str) -> Tuple[Dict[Any, Any], Dict[Any, Any]]:
    """The states by index, and the attributes of the optimizer if it was saved, too."""
    try:
        found = _Reader().read(data)
    except FormatError as error:
        raise FormatError(f"{source}: {error}", source) from None
    except Exception as error:  # a damaged pickle raises exceptions of any class
        raise FormatError(f"{source}: this is no pickle of MXNet's optimizer states: {error!r}", source) from None
    optimizer = None
    if isinstance(found, tuple) and len(found) == 2:
        found, optimizer = found
    if not isinstance(found, dict):
        raise FormatError(f"{source}: expected a dict of states, found {type(found).__name__}", source)
    return found, optimizer.attributes if isinstance(optimizer, _Object) else {}


def _flat(state: Any, source: str, which: str, depth: int = 0) -> List[bytes]:
    """The arrays of a state, which is None, an array, or a tuple of states."""
    if state is None:
        return []
    if isinstance(state, (tuple, list)) and len(state) < 16 and depth < 3:
        return [array for part in state for array in _flat(part, source, which, depth + 1)]
    if isinstance(state, _Object) and state.raw is not None:
        return [state.raw]
    raise FormatError(f"{source}: '{which}': expected arrays, found {type(state).__name__}", source)


def _text(value: str) -> bytes:
    raw = value.encode("utf-8")
    return struct.pack("<I", len(raw)) + raw


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def _counts(optimizer: Dict[Any, Any]) -> Dict[Any, int]:
    """The number of updates by index: MXNet has one table for each device, and refers to that of the last one."""
    found: Dict[Any, int] = {}
    tables = optimizer.get("_all_index_update_counts")
    for table in [optimizer.get("_index_update_count"), *(tables.values() if isinstance(tables, dict) else [])]:
        for index, count in table.items() if isinstance(table, dict) else []:
            found[index] = max(found.get(index, 0), _count(count))
    return found


def _places(
    indices: Sequence[Any], names: Optional[Sequence[str]], named: Any, copies: int, source: str
) -> Dict[Any, Tuple[str, int]]:
    """The parameter and the copy that each index of the states stands for."""
    named = named if isinstance(named, dict) and names is None else {}
    copy_of: Dict[int, int] = {}  # among the indices with one name
    seen: Dict[str, int] = {}
    for index in sorted(i for i, name in named.items() if isinstance(i, int) and isinstance(name, str)):
        copy_of[index] = seen.get(named[index], 0)
        seen[named[index]] = copy_of[index] + 1
    found: Dict[Any, Tuple[str, int]] = {}
    for index in indices:
        if isinstance(index, (str, bytes)):
            found[index] = (index if isinstance(index, str) else index.decode("utf-8", "replace"), 0)
        elif not isinstance(index, int) or not 0 <= index < 2**53:
            raise FormatError(
                f"{source}: expected numbers and names of parameters, found {type(index).__name__}", source
            )
        elif names is not None:
            if index >= len(names) * copies:
                raise InvalidArgumentError(
                    f"param_names: the states have number {index}, {len(names)} names with {copies} copies each "
                    f"have {len(names) * copies}",
                    "param_names",
                )
            found[index] = names[index // copies], index % copies
        elif index in copy_of:
            found[index] = named[index], copy_of[index]
        else:
            raise InvalidArgumentError(
                f"{source}: the states are numbered, and the file has no names of parameters: param_names is needed, "
                "the names in the order in which MXNet had them",
                "param_names",
            )
    for name, _ in found.values():
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            raise FormatError(f"{source}: the name of a parameter is no Unicode", source)
    return found


def convert(data: bytes, own_states: bytes, begin: int, param_names: Any, num_copies: Any, source: str) -> bytes:
    """MXNet's states as those of an optimizer, of which ``own_states`` are the present ones. ``begin`` is the number of
    updates that parameters have had if the file does not say."""
    states, optimizer = _read(data, source)
    length = struct.unpack_from("<I", own_states, 12)[0]
    kind = own_states[16 : 16 + length].decode("utf-8")
    name, num_states, multi_precision = kind.split("/")
    expected = int(num_states)
    if name in _CARRYING:
        raise UnsupportedError(
            f"{source}: MXNet's states of {name} lack what its updates go on from; it can only begin anew", name
        )
    names = None if param_names is None else [str(one) for one in to_list(param_names, "param_names")]
    copies = to_int(num_copies, "num_copies", 1, 2**31 - 1)
    places = _places(list(states), names, optimizer.get("idx2name"), copies, source)
    counts = _counts(optimizer)
    num_update = max([begin, _count(optimizer.get("num_update")), *counts.values()])

    listed: List[bytes] = []
    arrays: List[Tuple[str, bytes]] = []
    num_bytes = 0
    for index, (param, copy) in places.items():
        found = _flat(states[index], source, param)
        if len(found) == expected + 1 and multi_precision != "0":
            found = found if name in _WEIGHT_LAST else found[1:] + found[:1]
        elif len(found) != expected:
            raise FormatError(
                f"{source}: '{param}' has {len(found)} states, this optimizer ({name}) has {expected}", source
            )
        num_bytes += sum(map(len, found))
        if num_bytes > len(data):
            raise FormatError(f"{source}: several parameters have the same array", source)
        listed.append(_text(param) + struct.pack("<Qq", copy, counts.get(index, begin)))
        arrays += [(f"{i}/{copy}/{param}", raw) for i, raw in enumerate(found)]
    params = struct.pack("<QQQ", _PARAMS_MAGIC, 0, len(arrays)) + b"".join(raw for _, raw in arrays)
    labels = [label.encode("utf-8") for label, _ in arrays]
    params += struct.pack("<Q", len(labels)) + b"".join(struct.pack("<Q", len(label)) + label for label in labels)
    head = _OWN + struct.pack("<I", 1) + _text(kind) + struct.pack("<qQ", num_update, len(places))
    return head + b"".join(listed) + struct.pack("<Q", len(params)) + params
