# SPDX-License-Identifier: Apache-2.0
"""Python's operators, and the registry's operators as methods, for arrays and symbols."""

from __future__ import annotations

from types import MethodType
from typing import Any, Callable, Dict, List, NamedTuple, TypeVar

from . import _operators
from ._library import Handle, describe

T = TypeVar("T", bound="Operand")


class Names(NamedTuple):
    """The registry's names for one of Python's operators."""

    arrays: str  # for two arrays, with broadcasting
    symbols: str  # for two symbols, without
    scalar: str  # with a number on the right
    reversed: str  # with a number on the left


ARITHMETIC: Dict[str, Names] = {
    "add": Names("broadcast_add", "_Plus", "_PlusScalar", "_PlusScalar"),
    "sub": Names("broadcast_sub", "_Minus", "_MinusScalar", "_RMinusScalar"),
    "mul": Names("broadcast_mul", "_Mul", "_MulScalar", "_MulScalar"),
    "truediv": Names("broadcast_div", "_Div", "_DivScalar", "_RDivScalar"),
    "mod": Names("broadcast_mod", "_Mod", "_ModScalar", "_RModScalar"),
    "pow": Names("broadcast_power", "_Power", "_PowerScalar", "_rpower_scalar"),
    "eq": Names("broadcast_equal", "_equal", "_equal_scalar", "_equal_scalar"),
    "ne": Names("broadcast_not_equal", "_not_equal", "_not_equal_scalar", "_not_equal_scalar"),
    "gt": Names("broadcast_greater", "_greater", "_greater_scalar", "_lesser_scalar"),
    "ge": Names("broadcast_greater_equal", "_greater_equal", "_greater_equal_scalar", "_lesser_equal_scalar"),
    "lt": Names("broadcast_lesser", "_lesser", "_lesser_scalar", "_greater_scalar"),
    "le": Names("broadcast_lesser_equal", "_lesser_equal", "_lesser_equal_scalar", "_greater_equal_scalar"),
}


def is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, (str, bytes, Handle)) and not getattr(value, "ndim", 0)


class Operand(Handle):
    """An array or a symbol. ``==`` and ``!=`` compare elements; use ``is`` to compare objects. The operators of the
    registry are methods, whose first input is the object: ``x.mean(axis=0)``."""

    @staticmethod
    def _function_of(name: str) -> Callable[..., Any]:
        """The function for the registry's operator of that name, for objects of this class."""
        raise NotImplementedError

    def _arithmetic(self, names: Names, other: Any, swapped: bool) -> Any:
        """The result, or NotImplemented."""
        raise NotImplementedError

    def _compared(self, names: Names, other: Any) -> Any:
        # With NotImplemented Python would compare identities.
        found = self._arithmetic(names, other, False)
        if found is NotImplemented:
            kind = type(self).__name__
            raise TypeError(f"comparison: expected a number or another {kind}, found {describe(other)}")
        return found

    __hash__ = object.__hash__

    def __eq__(self: T, other: Any) -> T:  # type: ignore[override]
        return self._compared(ARITHMETIC["eq"], other)

    def __ne__(self: T, other: Any) -> T:  # type: ignore[override]
        return self._compared(ARITHMETIC["ne"], other)

    def __gt__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["gt"], other, False)

    def __ge__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["ge"], other, False)

    def __lt__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["lt"], other, False)

    def __le__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["le"], other, False)

    def __add__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["add"], other, False)

    def __radd__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["add"], other, True)

    def __sub__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["sub"], other, False)

    def __rsub__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["sub"], other, True)

    def __mul__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["mul"], other, False)

    def __rmul__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["mul"], other, True)

    def __truediv__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["truediv"], other, False)

    def __rtruediv__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["truediv"], other, True)

    def __mod__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["mod"], other, False)

    def __rmod__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["mod"], other, True)

    def __pow__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["pow"], other, False)

    def __rpow__(self: T, other: Any) -> T:
        return self._arithmetic(ARITHMETIC["pow"], other, True)

    def __neg__(self: T) -> T:
        return self * -1.0

    def __abs__(self: T) -> T:
        return self._function_of("abs")(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # never an operator: do not ask the library
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return MethodType(self._function_of(name), self)

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *(name for name in _operators.names() if not name.startswith("_"))})
