# SPDX-License-Identifier: Apache-2.0
"""Random numbers. Operators without a seed continue a sequence of the process, which starts the same way in each
process.

>>> from cohort import random
>>> random.seed(42)
>>> first = random.uniform(-1, 1, shape=(2, 3)).asnumpy()
>>> random.seed(42)
>>> bool((random.uniform(-1, 1, shape=(2, 3)).asnumpy() == first).all())
True
"""

from __future__ import annotations

from typing import Any

from . import _operators
from ._library import to_int


def seed(seed_state: int) -> None:
    """Restarts the sequence: the same calls then give the same numbers."""
    _operators.begin_draws(to_int(seed_state, "seed_state", 0, 2**31 - 1) << 32)


def uniform(
    low: float = 0, high: float = 1, shape: Any = (1,), dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Numbers uniform from low up to high."""
    draw = _operators.function_of_arrays("_random_uniform")
    return draw(low=low, high=high, shape=shape, dtype=dtype, ctx=ctx, out=out)


def normal(
    loc: float = 0, scale: float = 1, shape: Any = (1,), dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Numbers of a normal distribution."""
    draw = _operators.function_of_arrays("_random_normal")
    return draw(loc=loc, scale=scale, shape=shape, dtype=dtype, ctx=ctx, out=out)
