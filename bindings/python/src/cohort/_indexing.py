# SPDX-License-Identifier: Apache-2.0
"""NumPy's basic indexing, axis by axis: integers, slices, ``...`` and None."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from ._library import describe
from .errors import InvalidArgumentError

Axis = Tuple[int, int, int]  # begin, length, step


class Region(NamedTuple):
    """The elements that a key selects from an array."""

    rows: List[int]  # integers at the front: a row of a row
    axes: List[Axis]  # of the remaining axes; an integer is a range of length one
    shape: Tuple[int, ...]  # without the axes of integers, with those of None

    @property
    def lengths(self) -> Tuple[int, ...]:
        return tuple(length for _, length, _ in self.axes)

    def attrs(self) -> Dict[str, Any]:
        """Attributes of the operator ``slice``. An end before the first element is None."""
        ends = [begin + length * step for begin, length, step in self.axes]
        return {
            "begin": tuple(begin for begin, _, _ in self.axes),
            "end": tuple(end if end >= 0 else None for end in ends),
            "step": tuple(step for _, _, step in self.axes),
        }


def _index(item: Any, length: int, axis: int) -> int:
    index = item.__index__()
    if not -length <= index < length:
        raise IndexError(f"index {index} of axis {axis}, which has {length}")
    return index % length


def region_of(key: Any, shape: Tuple[int, ...]) -> Region:
    items = list(key) if isinstance(key, tuple) else [key]
    for item in items:
        is_number = hasattr(item, "__index__") and not isinstance(item, (bool, np.bool_, np.ndarray))
        if not (item is None or item is Ellipsis or isinstance(item, slice) or is_number):
            raise InvalidArgumentError(
                f"key: expected whole numbers, slices, ... or None, found {describe(item)}", "key"
            )
    given = sum(item is not None and item is not Ellipsis for item in items)
    if given > len(shape):
        raise IndexError(f"found {given} indices for an array of {len(shape)} axes")
    if Ellipsis not in items:
        items.append(Ellipsis)
    if items.count(Ellipsis) > 1:
        raise IndexError("a key may contain '...' only once")
    at = items.index(Ellipsis)
    items[at : at + 1] = [slice(None)] * (len(shape) - given)

    rows: List[int] = []
    axes: List[Axis] = []
    found: List[int] = []
    axis = 0
    for item in items:
        if item is None:
            found.append(1)
            continue
        length = shape[axis]
        if isinstance(item, slice):
            begin, end, step = item.indices(length)
            taken = len(range(begin, end, step))
            axes.append((begin, taken, step))
            found.append(taken)
        elif len(rows) == axis and not found:
            rows.append(_index(item, length, axis))
        else:
            axes.append((_index(item, length, axis), 1, 1))
        axis += 1
    return Region(rows, axes, tuple(found))


def is_rows(region: Region, shape: Tuple[int, ...]) -> Optional[Tuple[int, int]]:
    """Begin and end, if the selection from the remaining axes is a range of the first one, which is a view."""
    whole = all(axis == (0, length, 1) for axis, length in zip(region.axes[1:], shape[1:]))
    if not region.axes or not whole or region.shape != region.lengths or region.axes[0][2] != 1:
        return None
    begin, length, _ = region.axes[0]
    return begin, begin + length
