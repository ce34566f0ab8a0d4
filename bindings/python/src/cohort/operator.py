# SPDX-License-Identifier: Apache-2.0
"""Custom operators, with the classes of mxnet.operator: a node ``Custom`` finds them by its ``op_type``.

>>> from cohort import nd, operator
>>> class Twice(operator.CustomOp):
...     def forward(self, is_train, req, in_data, out_data, aux):
...         self.assign(out_data[0], req[0], in_data[0] * 2)
...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
...         self.assign(in_grad[0], req[0], out_grad[0] * 2)
>>> @operator.register("twice")
... class TwiceProp(operator.CustomOpProp):
...     def create_operator(self, ctx, shapes, dtypes):
...         return Twice()
>>> nd.Custom(nd.array([1, 2]), op_type="twice").asnumpy()
array([2., 4.], dtype=float32)
>>> operator.unregister("twice")
"""

from __future__ import annotations

from ctypes import byref
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type, TypeVar

from . import _abi, _tape
from ._library import (
    Numbered,
    describe,
    from_text,
    lib,
    options_of,
    to_list,
    to_text,
)
from .context import Context
from .errors import InvalidArgumentError, UnknownNameError
from .io import Descs
from ._dtype import dtype_code, dtype_of
from .ndarray import LentArrays, NDArray, zeros


class CustomOp:
    """One bound node. The arrays that its methods get are the library's working memory: they are closed after the
    call."""

    def forward(
        self, is_train: bool, req: List[str], in_data: List[NDArray], out_data: List[NDArray], aux: List[NDArray]
    ) -> None:
        """Writes all outputs."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(
        self,
        req: List[str],
        out_grad: List[NDArray],
        in_data: List[NDArray],
        out_data: List[NDArray],
        in_grad: List[NDArray],
        aux: List[NDArray],
    ) -> None:
        """Writes the gradients of the inputs; those with req "null" are not read. ``grad_req`` is applied to them
        afterwards. Without ``need_top_grad`` out_grad is empty."""
        raise NotImplementedError(f"{type(self).__name__} has no backward")

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Writes an array as req says."""
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst += src


class CustomOpProp:
    """Describes a node: its inputs, outputs, shapes and types. It is created with the attributes of the node, as
    text; the library creates it anew whenever it asks."""

    need_top_grad_ = True

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> List[str]:
        return ["data"]

    def list_outputs(self) -> List[str]:
        return ["output"]

    def list_auxiliary_states(self) -> List[str]:
        return []

    def infer_shape(self, in_shape: List[List[int]]) -> Sequence[Any]:
        """Shapes of inputs, outputs and auxiliary states. At least the first input's shape is known; others may be
        [], or have lengths of 0."""
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: List[Any]) -> Sequence[Any]:
        """Types likewise; unknown ones are None."""
        first = in_type[0]
        return [first] * len(in_type), [first] * len(self.list_outputs()), [first] * len(self.list_auxiliary_states())

    def create_operator(self, ctx: Context, in_shapes: List[Tuple[int, ...]], in_dtypes: List[Any]) -> CustomOp:
        """The operator of one bound node, created in its first forward pass."""
        raise NotImplementedError(f"{type(self).__name__} has no create_operator")


class _LentDescs(Descs):
    """A list that a callback was given, owned by the library."""

    def _free(self) -> None:
        self._pointer = None


class _Node:
    """A bound node, whose operator is created when its shapes are known."""

    def __init__(self, prop: CustomOpProp, context: Context) -> None:
        self.prop, self.context = prop, context
        self.made: Optional[CustomOp] = None

    def operator(self, inputs: Sequence[NDArray]) -> CustomOp:
        if self.made is None:
            shapes, dtypes = [array.shape for array in inputs], [array.dtype for array in inputs]
            self.prop.infer_shape([list(shape) for shape in shapes])  # the class may keep some of it
            self.prop.infer_type(list(dtypes))
            made = self.prop.create_operator(self.context, shapes, dtypes)
            if not isinstance(made, CustomOp):
                raise InvalidArgumentError(f"create_operator: expected a CustomOp, found {describe(made)}")
            self.made = made
        return self.made


class _Registered(Numbered):
    """The callbacks of one op_type."""

    def __init__(self, name: str, prop: Any, need_top_grad: bool) -> None:
        super().__init__()
        self.name, self.prop, self.need_top_grad = name, prop, need_top_grad
        self.nodes: Dict[int, _Node] = {}
        self.last_node = 0

    def table(self) -> Any:
        table = options_of(_abi.cohort_custom_op, lib.cohort_custom_op_init)
        for field, kind in _abi.cohort_custom_op._fields_[1:9]:
            setattr(table, field, self._entry(kind, field, always=field in ("release", "ended")))
        table.user_data, table.ignores_head_grads = self.number, 0 if self.need_top_grad else 1
        return table

    def _prop(self, keys: Any, values: Any, num: int) -> CustomOpProp:
        made: CustomOpProp = self.prop(**{from_text(keys[i]): from_text(values[i]) for i in range(num)})
        if bool(made.need_top_grad_) != self.need_top_grad:
            raise InvalidArgumentError(
                f"operator {self.name}: need_top_grad is {bool(made.need_top_grad_)}, which was not known when it was"
                f' registered: register("{self.name}", need_top_grad={bool(made.need_top_grad_)})',
                self.name,
            )
        return made

    def declare(self, keys: Any, values: Any, num: int, inputs: int, aux: int, outputs: int) -> None:
        prop = self._prop(keys, values, num)
        names = prop.list_arguments(), prop.list_auxiliary_states(), prop.list_outputs()
        for address, given, what in zip((inputs, aux, outputs), names, ("arguments", "auxiliary_states", "outputs")):
            takes = _LentDescs._adopt(address)
            for name in to_list(given, f"list_{what}"):
                takes.add(name, None, _abi.Dtype.NONE, None)

    def _three(self, found: Any, method: str, nums: Sequence[int]) -> List[List[Any]]:
        lists = [to_list(part, method) for part in to_list(found, method)]
        lists += [[]] if len(lists) == 2 else []
        if [len(part) for part in lists] != list(nums):
            raise InvalidArgumentError(
                f"operator {self.name}: {method}: expected lists of {nums[0]} inputs, {nums[1]} outputs and {nums[2]} "
                f"auxiliary states, found {describe(found)}",
                self.name,
            )
        return lists

    def _infer(self, prop: CustomOpProp, method: str, known: List[Any], targets: Sequence[int], add: Any) -> None:
        nums = len(prop.list_arguments()), len(prop.list_outputs()), len(prop.list_auxiliary_states())
        found = self._three(getattr(prop, method)(known), method, nums)
        for address, part in zip(targets, found):
            takes = _LentDescs._adopt(address)
            for i, value in enumerate(part):
                add(takes, str(i), value)

    def infer_shape(self, keys: Any, values: Any, num: int, known: int, inputs: int, aux: int, outputs: int) -> None:
        shapes = [list(shape or ()) for _, shape, _, _ in _LentDescs._adopt(known)._all()]
        prop = self._prop(keys, values, num)
        targets = inputs, outputs, aux

        def add(takes: Descs, name: str, shape: Any) -> None:
            # An input shape that comes back unchanged is still unknown.
            unknown = takes.handle == inputs and not shapes[int(name)] and shape is not None and not len(shape)
            takes.add(name, None if unknown else shape, _abi.Dtype.NONE, None)

        self._infer(prop, "infer_shape", [list(shape) for shape in shapes], targets, add)

    def infer_dtype(self, keys: Any, values: Any, num: int, known: int, inputs: int, aux: int, outputs: int) -> None:
        dtypes = [dtype_of(code) for code in _LentDescs._adopt(known).codes()]
        prop = self._prop(keys, values, num)
        self._infer(
            prop,
            "infer_type",
            dtypes,
            (inputs, outputs, aux),
            lambda takes, name, dtype: takes.add(name, None, dtype_code(dtype), None),
        )

    def create(self, keys: Any, values: Any, num: int, context: Any, out_state: Any) -> None:
        self.last_node += 1
        self.nodes[self.last_node] = _Node(self._prop(keys, values, num), Context._from_struct(context[0]))
        out_state[0] = self.last_node

    def release(self, state: int) -> None:
        self.nodes.pop(state, None)

    def forward(self, state: int, inputs: int, aux: int, outputs: int, is_train: int) -> None:
        with _tape.scope(False, bool(is_train)), _Lent(inputs, outputs, aux) as (in_data, out_data, states):
            made = self.nodes[state].operator(in_data)
            made.forward(bool(is_train), ["write"] * len(out_data), in_data, out_data, states)

    def backward(self, state: int, head_grads: int, inputs: int, aux: int, outputs: int, gradients: int) -> None:
        with _tape.scope(False, None), _Lent(head_grads, inputs, outputs, gradients, aux) as lists:
            out_grad, in_data, out_data, wanted, states = lists
            req = ["null" if array is None else "write" for array in wanted]
            # Operators may write gradients that are not wanted, so each gets an array.
            spare = [
                zeros(data.shape, data.context, data.dtype) if array is None else array
                for array, data in zip(wanted, in_data)
            ]
            self.nodes[state].operator(in_data).backward(req, out_grad, in_data, out_data, spare, states)

    def ended(self) -> None:
        _all.pop(self.number, None)


class _Lent:
    """The arrays of lists that a callback was given, closed at its end."""

    def __init__(self, *addresses: int) -> None:
        self.lists: List[List[Any]] = [list(LentArrays._adopt(address).list()) for address in addresses]
        self.held = [array for arrays in self.lists for array in arrays if array is not None]

    def __enter__(self) -> List[List[Any]]:
        return self.lists

    def __exit__(self, *reason: Any) -> None:
        for array in self.held:
            array.close()


_all: Dict[int, _Registered] = {}  # until no node uses them
_by_name: Dict[str, int] = {}

P = TypeVar("P", bound=Type[CustomOpProp])


def register(reg_name: str, need_top_grad: Optional[bool] = None) -> Callable[[P], P]:
    """Registers a class of CustomOpProp under a name, for the whole process. A name registered before then refers to
    the new class; existing nodes keep the old one.

    need_top_grad False makes it a loss, whose backward needs no head gradient. None: the value of an instance created
    without attributes; True if it cannot be created without any.
    """
    name = to_text(reg_name, "reg_name")

    def take(prop: P) -> P:
        if not (isinstance(prop, type) and issubclass(prop, CustomOpProp)):
            raise InvalidArgumentError(f"register: expected a class of CustomOpProp, found {describe(prop)}", reg_name)
        needed = need_top_grad
        if needed is None:
            try:
                needed = bool(prop().need_top_grad_)
            except TypeError:  # it requires attributes
                needed = True
        made = _Registered(reg_name, prop, needed)
        if reg_name in _by_name:
            unregister(reg_name)
        lib.cohort_custom_register(name, byref(made.table()))
        _all[made.number], _by_name[reg_name] = made, made.number
        return prop

    return take


def unregister(reg_name: str) -> None:
    """Removes a name. Existing nodes are not affected."""
    name = to_text(reg_name, "reg_name")
    if _by_name.pop(reg_name, None) is None:
        raise UnknownNameError(f"no Python operator is registered as '{reg_name}'", reg_name)
    lib.cohort_custom_unregister(name)
