# SPDX-License-Identifier: Apache-2.0
"""States of MXNet's optimizers, which MXNet pickles, as the library's own states.

A pickle can name any function to be called. This reader calls none but its own: arrays become their bytes, a pickled
optimizer its attributes, and any other name is an error. It writes version 1 of the library's format, which
``src/optimizer/optimizer_states.cc`` describes.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any, Dict, List, Optional, Sequence, Tuple

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


class _Array:
    """An array as MXNet has written it."""

    raw: Optional[bytes] = None

    def __init__(self, *ignored: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        raw = state.get("handle") if isinstance(state, dict) else None
        if not isinstance(raw, (bytes, bytearray)):
            raise FormatError("an array has no contents")
        self.raw = bytes(raw)


class _Attributes:
    """An object of MXNet's whose attributes are read, and nothing else."""

    def __init__(self, *ignored: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)

    def __call__(self, *ignored: Any) -> "_Attributes":
        return self


def _reconstruct(kind: Any, base: Any, state: Any) -> Any:
    """copyreg's function for objects without a constructor."""
    if kind not in (_Array, _Attributes):
        raise FormatError("expected an array or an optimizer, found another object")
    return kind()


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """The function by which old pickles write bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise FormatError("expected text in latin1, found other text")
    return text.encode("latin1")


def _bytearray(*given: Any) -> bytes:
    if not given:
        return b""
    data = _encode(*given) if isinstance(given[0], str) else given[0]
    if not isinstance(data, (bytes, bytearray)):
        raise FormatError(f"expected bytes, found {type(data).__name__}")
    return bytes(data)


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        allowed = {
            ("mxnet.ndarray.ndarray", "NDArray"): _Array,
            ("mxnet.ndarray", "NDArray"): _Array,
            ("mxnet.numpy.multiarray", "ndarray"): _Array,
            ("copyreg", "_reconstructor"): _reconstruct,
            ("copy_reg", "_reconstructor"): _reconstruct,
            ("builtins", "object"): object,
            ("builtins", "bytearray"): _bytearray,
            ("_codecs", "encode"): _encode,
        }
        found = allowed.get((module, name))
        if found is None and module.split(".")[0] in ("mxnet", "numpy"):
            found = _Attributes
        if found is None:
            raise FormatError(f"the pickle names '{module}.{name}', which states of an optimizer do not have")
        return found

    def persistent_load(self, pid: Any) -> Any:
        raise FormatError("the pickle refers to objects outside of it")


def _read(data: bytes, source: str) -> Tuple[Dict[Any, Any], Optional[_Attributes]]:
    """The states by index, and the optimizer if it was saved, too."""
    try:
        found = _Reader(io.BytesIO(data)).load()
    except FormatError as error:
        raise FormatError(f"{source}: {error}", source) from None
    except Exception as error:  # a damaged pickle raises exceptions of any class
        raise FormatError(f"{source}: this is no pickle of MXNet's optimizer states: {error!r}", source) from None
    optimizer = None
    if isinstance(found, tuple) and len(found) == 2:
        found, optimizer = found
    if not isinstance(found, dict):
        raise FormatError(f"{source}: expected a dict of states, found {type(found).__name__}", source)
    return found, optimizer if isinstance(optimizer, _Attributes) else None


def _flat(state: Any, source: str, which: str, depth: int = 0) -> List[bytes]:
    """The arrays of a state, which is None, an array, or a tuple of states."""
    if state is None:
        return []
    if isinstance(state, (tuple, list)) and len(state) < 16 and depth < 3:
        return [array for part in state for array in _flat(part, source, which, depth + 1)]
    if isinstance(state, _Array) and state.raw is not None:
        return [state.raw]
    raise FormatError(f"{source}: '{which}': expected arrays, found {type(state).__name__}", source)


def _text(value: str) -> bytes:
    raw = value.encode("utf-8")
    return struct.pack("<I", len(raw)) + raw


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def _places(
    indices: Sequence[Any], names: Optional[Sequence[str]], named: Any, copies: int, source: str
) -> Dict[Any, Tuple[str, int]]:
    """The parameter and the copy that each index of the states stands for."""
    found: Dict[Any, Tuple[str, int]] = {}
    for index in indices:
        if isinstance(index, (str, bytes)):
            found[index] = (index if isinstance(index, str) else index.decode("utf-8", "replace"), 0)
        elif not isinstance(index, int) or index < 0:
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
        elif isinstance(named, dict) and isinstance(named.get(index), str):
            before = [i for i in named if isinstance(i, int) and i < index and named[i] == named[index]]
            found[index] = named[index], len(before)
        else:
            raise InvalidArgumentError(
                f"{source}: the states are numbered, and the file has no names of parameters: param_names is needed, "
                "the names in the order in which MXNet had them",
                "param_names",
            )
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
    places = _places(list(states), names, getattr(optimizer, "idx2name", None), copies, source)
    counts = getattr(optimizer, "_index_update_count", None)
    counts = counts if isinstance(counts, dict) else {}
    num_update = max([begin, _count(getattr(optimizer, "num_update", 0)), *map(_count, counts.values())])

    listed, arrays = b"", []
    for index, (param, copy) in places.items():
        found = _flat(states[index], source, param)
        if len(found) == expected + 1 and multi_precision != "0":
            found = found if name in _WEIGHT_LAST else found[1:] + found[:1]
        elif len(found) != expected:
            raise FormatError(
                f"{source}: '{param}' has {len(found)} states, this optimizer ({name}) has {expected}", source
            )
        count = _count(counts.get(index, begin))
        listed += _text(param) + struct.pack("<Qq", copy, count)
        arrays += [(f"{i}/{copy}/{param}", raw) for i, raw in enumerate(found)]
    params = struct.pack("<QQQ", _PARAMS_MAGIC, 0, len(arrays)) + b"".join(raw for _, raw in arrays)
    params += struct.pack("<Q", len(arrays))
    for label, _ in arrays:
        params += struct.pack("<Q", len(label.encode("utf-8"))) + label.encode("utf-8")
    head = _OWN + struct.pack("<I", 1) + _text(kind) + struct.pack("<qQ", num_update, len(places))
    return head + listed + struct.pack("<Q", len(params)) + params
