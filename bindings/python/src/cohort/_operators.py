# SPDX-License-Identifier: Apache-2.0
"""Functions for operators, made from the library's registry: for arrays in ``cohort.nd``, for symbols in
``cohort.sym``."""

from __future__ import annotations

import inspect
from ctypes import byref, c_char_p, c_double, c_int32, c_size_t
from functools import lru_cache
from itertools import count
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ._library import Handle, from_text, lib, list_of_names, out_int, out_text, to_list, to_text
from .errors import InvalidArgumentError, UnknownNameError

# Set by ndarray.py and symbol.py, which define the classes these functions work on.
invoke: Any = None
to_array: Any = None
array_type: Any = None
create: Any = None


_PRECISIONS = ("own", "narrow", "follows")


_draws = count()  # seeds of operators that are given none, one per call: see random.py


def begin_draws(first: int) -> None:
    global _draws
    _draws = count(first)


class Attribute(NamedTuple):
    name: str
    type: str
    default: Optional[str]  # None: required
    doc: str
    low: float  # infinite if there is no bound
    high: float


class Input(NamedTuple):
    name: str
    doc: str
    is_aux: bool
    has_gradient: bool


class Operator(NamedTuple):
    """The registry's description of an operator."""

    name: str
    canonical: str
    doc: str
    attributes: Tuple[Attribute, ...]
    inputs: Tuple[Input, ...]
    count_attribute: str  # for an operator with any number of inputs
    outputs: Tuple[str, ...]
    precision: str  # in a network of a narrower type: "narrow", "follows" its inputs, or its "own"


def next_draw() -> int:
    return next(_draws)


@lru_cache(maxsize=None)
def names() -> Tuple[str, ...]:
    """All operators, aliases included."""
    return tuple(list_of_names(lib.cohort_operator_num, lib.cohort_operator_name))


@lru_cache(maxsize=None)
def operator(name: str) -> Operator:
    """An operator by name. An unknown name raises UnknownNameError with the nearest name."""
    op = to_text(name, "operator")
    canonical, doc, count = c_char_p(), c_char_p(), c_char_p()
    num_attrs, num_inputs, num_outputs = c_size_t(), c_size_t(), c_size_t()
    lib.cohort_operator_info(
        op, byref(canonical), byref(doc), byref(num_attrs), byref(num_inputs), byref(num_outputs), byref(count)
    )
    attributes = []
    for i in range(num_attrs.value):
        parts = [c_char_p() for _ in range(4)]
        lib.cohort_operator_attr(op, i, *(byref(part) for part in parts))
        key, kind, default, text = (part.value for part in parts)
        given = None if default is None else from_text(default)
        low, high = c_double(), c_double()
        lib.cohort_operator_attr_range(op, i, byref(low), byref(high))
        attributes.append(Attribute(from_text(key), from_text(kind), given, from_text(text), low.value, high.value))
    inputs = []
    for i in range(num_inputs.value):
        key_, text_, is_aux = c_char_p(), c_char_p(), c_int32()
        lib.cohort_operator_input(op, i, byref(key_), byref(text_), byref(is_aux))
        has_gradient = bool(out_int(lib.cohort_operator_input_gradient, op, i))
        inputs.append(Input(from_text(key_.value), from_text(text_.value), bool(is_aux.value), has_gradient))
    return Operator(
        name,
        from_text(canonical.value),
        from_text(doc.value),
        tuple(attributes),
        tuple(inputs),
        from_text(count.value),
        tuple(out_text(lib.cohort_operator_output, op, i) or "" for i in range(num_outputs.value)),
        _PRECISIONS[out_int(lib.cohort_operator_precision, op)],
    )


def describe_operator(op: Operator, of: str) -> str:
    lines = [op.doc, "", f"Inputs ({of}):"]
    lines += [f"    {item.name}: {item.doc}" for item in op.inputs]
    if op.attributes:
        lines += ["", "Attributes:"]
    for item in op.attributes:
        default = "required" if item.default is None else f"default {item.default}"
        lines.append(f"    {item.name} ({item.type}, {default}): {item.doc}")
    return "\n".join(lines)


def _signature(op: Operator, first: Sequence[inspect.Parameter]) -> inspect.Signature:
    by_name = inspect.Parameter.KEYWORD_ONLY
    taken = {parameter.name for parameter in first}
    rest = [
        inspect.Parameter(item.name, by_name, default=inspect.Parameter.empty if item.default is None else item.default)
        for item in op.attributes
        if item.name.isidentifier() and item.name not in taken
    ]
    return inspect.Signature([*first, *rest, inspect.Parameter("attrs", inspect.Parameter.VAR_KEYWORD)])


def _named_inputs(
    op: Operator, given: Sequence[Any], named: Dict[str, Any], is_input: Callable[[Any], bool]
) -> List[Any]:
    """Inputs by position, then those given by name, in the operator's order."""
    inputs = list(given)
    by_name = {item.name: named.pop(item.name) for item in op.inputs if is_input(named.get(item.name))}
    for item in op.inputs[len(inputs) :]:
        if item.name not in by_name:
            break
        inputs.append(by_name.pop(item.name))
    if by_name:
        raise UnknownNameError(
            f"operator {op.name}: inputs {', '.join(by_name)} leave a gap, or are given twice", op.name
        )
    return inputs


def positional(op: Operator, given: Sequence[Any], attrs: Dict[str, Any]) -> Sequence[Any]:
    """The inputs among positional arguments. As in MXNet, attributes may follow them, ``sum(x, 1)``; these are put into
    attrs."""
    if op.count_attribute:
        return given
    # Custom operators may have more inputs than the registry says of Custom.
    num = max(len(op.inputs), next((i for i, value in enumerate(given) if not isinstance(value, Handle)), len(given)))
    keys = [item.name for item in op.attributes]
    if len(given) > num + len(keys):
        raise InvalidArgumentError(
            f"operator {op.name}: expected at most {num} inputs and {len(keys)} attributes, found {len(given)} in order",
            op.name,
        )
    for key, value in zip(keys, given[num:]):
        if key in attrs:
            raise InvalidArgumentError(f"operator {op.name}: attribute '{key}' is given twice", op.name)
        attrs[key] = value
    return given[:num]


def with_none(op: Operator, attrs: Mapping[str, Any]) -> Dict[str, Any]:
    """The attributes, with None as text where the operator has it as a value, ``argsort(x, axis=None)``, and otherwise
    left out."""
    optional = {item.name for item in op.attributes if "None" in item.type}
    return {key: "None" if value is None and key in optional else value for key, value in attrs.items()}


def apply(name: str, inputs: Sequence[Any], attrs: Mapping[str, Any], outputs: Optional[Sequence[Any]] = None) -> Any:
    made = invoke(name, inputs, attrs, outputs, None, None, None)
    return made[0] if len(made) == 1 else made


def _attribute_operator(name: str) -> Operator:
    """The operator for a module attribute; AttributeError if there is none."""
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return operator(name)
    except UnknownNameError as error:
        raise AttributeError(str(error)) from None


@lru_cache(maxsize=None)
def function_of_arrays(name: str) -> Callable[..., Any]:
    """The function that applies an operator to arrays."""
    op = _attribute_operator(name)

    def function(
        *data: Any,
        out: Any = None,
        ctx: Any = None,
        seed: Optional[int] = None,
        is_train: Optional[bool] = None,
        **attrs: Any,
    ) -> Any:
        attrs.pop("name", None) if "name" not in {item.name for item in op.attributes} else None
        given = data[0] if len(data) == 1 and isinstance(data[0], (list, tuple)) and op.count_attribute else data
        inputs = _named_inputs(
            op,
            positional(op, given, attrs),
            attrs,
            lambda value: isinstance(value, array_type) or hasattr(value, "__array__"),
        )
        arrays = [to_array(value, name) for value in inputs]
        outputs = None if out is None else [out] if isinstance(out, array_type) else to_list(out, "out")
        for value in outputs or []:
            if not isinstance(value, array_type):
                raise InvalidArgumentError(f"{name}: out: expected arrays", "out")
        made = invoke(name, arrays, with_none(op, attrs), outputs, ctx, seed, is_train)
        return made[0] if len(made) == 1 else made

    keyword = inspect.Parameter.KEYWORD_ONLY
    first = [inspect.Parameter("data", inspect.Parameter.VAR_POSITIONAL)]
    first += [inspect.Parameter(key, keyword, default=None) for key in ("out", "ctx")]
    first += [inspect.Parameter("seed", keyword, default=None), inspect.Parameter("is_train", keyword, default=None)]
    return _named(function, op, "arrays", first)


@lru_cache(maxsize=None)
def function_of_symbols(name: str) -> Callable[..., Any]:
    """The function that creates a node of an operator."""
    op = _attribute_operator(name)

    def function(*data: Any, name: Optional[str] = None, attr: Optional[Mapping[str, str]] = None, **attrs: Any) -> Any:
        return create(op, data, name, attr, attrs)

    first = [inspect.Parameter("data", inspect.Parameter.VAR_POSITIONAL)]
    first += [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None) for key in ("name", "attr")]
    return _named(function, op, "symbols", first)


class Family:
    """Operators with a common prefix, by the rest of the name: ``nd.contrib.box_nms`` is ``nd._contrib_box_nms``."""

    def __init__(self, prefix: str, function_of: Callable[[str], Any]) -> None:
        self._prefix, self._function_of = prefix, function_of

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._function_of(self._prefix + name)

    def __dir__(self) -> List[str]:
        return [name[len(self._prefix) :] for name in names() if name.startswith(self._prefix)]


def families(function_of: Callable[[str], Any]) -> Iterator[Family]:
    return (Family(f"_{name}_", function_of) for name in ("contrib", "linalg", "image"))


def _named(function: Any, op: Operator, of: str, first: Sequence[inspect.Parameter]) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = describe_operator(op, of)
    function.__signature__ = _signature(op, first)
    return function
