# SPDX-License-Identifier: Apache-2.0
"""Initializers: rules that fill parameters before training."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional

from ._library import Handle, attribute_text, attributes, handle_of, lib, optional_handle, out_handle, to_int, to_text
from .ndarray import Arrays, NDArray
from .symbol import Symbol


class Initializer(Handle):
    """An initializer, created by :func:`create` or one of the functions here. The same seed and names give the same
    numbers.

    >>> from cohort import initializer, nd
    >>> weight = nd.zeros((2, 2))
    >>> initializer.One().fill("fc_weight", weight)
    >>> weight.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    _free_name = "cohort_initializer_free"
    _name = ""
    _settings: Dict[str, Any] = {}

    def apply(self, arrays: Mapping[str, NDArray], symbol: Optional[Symbol] = None) -> None:
        """Fills arrays by name: weights by this rule, biases with 0, and so on; ``__init__`` of a variable takes
        precedence."""
        given = Arrays.of(arrays, "arrays")
        self._call(lib.cohort_initializer_apply, optional_handle(symbol, Symbol, "symbol"), given.handle)

    def fill(self, name: str, array: NDArray) -> None:
        """Fills one array by this rule, whatever its name."""
        self._call(lib.cohort_initializer_fill, to_text(name, "name"), handle_of(array, NDArray, "array"))

    def dumps(self) -> str:
        """The initializer as the value of a variable's ``__init__``."""
        settings = {
            key: value if isinstance(value, (bool, int, float, list, tuple)) else attribute_text(value)
            for key, value in self._settings.items()
        }
        return json.dumps([self._name, settings])


def create(name: Any, seed: int = 0, **kwargs: Any) -> Initializer:
    """An initializer by name."""
    if isinstance(name, Initializer):
        return name
    number = to_int(seed, "seed", 0, 2**64 - 1)
    keys = attributes(kwargs, "initializer")
    made = Initializer._adopt(out_handle(lib.cohort_initializer_create, to_text(name, "initializer"), *keys, number))
    made._name, made._settings = name, {key: value for key, value in kwargs.items() if value is not None}
    return made


def Zero() -> Initializer:
    return create("zero")


def One() -> Initializer:
    return create("one")


def Constant(value: Any) -> Initializer:
    """A number, or an array of the parameter's values, as lists, NumPy array or :class:`NDArray`.

    >>> from cohort import initializer, nd
    >>> weight = nd.zeros((2, 3))
    >>> initializer.Constant([1, 2, 3]).fill("fc_weight", weight)
    >>> weight.tolist()
    [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]
    >>> initializer.Constant([[0.5], [1]]).dumps()
    '["constant", {"value": [[0.5], [1]]}]'
    """
    return create("constant", value=value.tolist() if hasattr(value, "tolist") else value)


def Uniform(scale: float = 0.07, seed: int = 0) -> Initializer:
    return create("uniform", seed, scale=scale)


def Normal(sigma: float = 0.01, seed: int = 0) -> Initializer:
    return create("normal", seed, sigma=sigma)


def Xavier(rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3, seed: int = 0) -> Initializer:
    return create("xavier", seed, rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)


def MSRAPrelu(factor_type: str = "avg", slope: float = 0.25, seed: int = 0) -> Initializer:
    return create("msraprelu", seed, factor_type=factor_type, slope=slope)


def Orthogonal(scale: float = 1.414, rand_type: str = "uniform", seed: int = 0) -> Initializer:
    return create("orthogonal", seed, scale=scale, rand_type=rand_type)


def LSTMBias(forget_bias: float = 1.0) -> Initializer:
    return create("lstmbias", forget_bias=forget_bias)
