# SPDX-License-Identifier: Apache-2.0
"""Gradients of imperative computations, with the functions of mxnet.autograd.

>>> from cohort import autograd, nd
>>> x = nd.array([1, 2, 3])
>>> x.attach_grad()
>>> with autograd.record():
...     y = (x * x).sum()
>>> y.backward()
>>> x.grad.asnumpy()
array([2., 4., 6.], dtype=float32)

Whether to record is set per thread; arrays and their recorded graphs are shared by all threads.
"""

from __future__ import annotations

from ctypes import byref
from typing import Any, Callable, ContextManager, Dict, List, Optional, Sequence, Tuple, Union

from . import _abi, _tape
from ._library import (
    Numbered,
    codes,
    describe,
    handle_of,
    lib,
    options_of,
    out_handle,
    out_int,
    pointers,
    to_bool,
    to_list,
)
from .errors import InvalidArgumentError, StateError
from .executor import grad_codes
from .ndarray import Arrays, LentArrays, NDArray, note
from .symbol import Symbol

ArrayOrList = Union[NDArray, Sequence[NDArray]]


# ---- the state of this thread ----------------------------------------------------------------------------------------


def _mode(value: Any) -> Optional[bool]:
    return None if value is None else bool(to_bool(value, "train_mode"))


def record(train_mode: Optional[bool] = True) -> ContextManager[None]:
    """``with record():`` records operators on marked arrays and on arrays computed from them. ``train_mode``:
    whether they are applied in training mode; None: as before."""
    return _tape.scope(True, _mode(train_mode))


def pause(train_mode: Optional[bool] = False) -> ContextManager[None]:
    """``with pause():`` records nothing."""
    return _tape.scope(False, _mode(train_mode))


def train_mode() -> ContextManager[None]:
    """``with train_mode():`` applies operators as in training, recorded or not."""
    return _tape.scope(None, True)


def predict_mode() -> ContextManager[None]:
    """``with predict_mode():`` applies operators as in inference, recorded or not."""
    return _tape.scope(None, False)


def is_recording() -> bool:
    return _tape.state.recording


def is_training() -> bool:
    return _tape.state.training


def set_recording(is_record: bool) -> bool:
    """Returns the previous value."""
    before, _tape.state.recording = _tape.state.recording, bool(to_bool(is_record, "is_record"))
    return before


def set_training(train_mode: bool) -> bool:
    """Returns the previous value."""
    before, _tape.state.training = _tape.state.training, bool(to_bool(train_mode, "train_mode"))
    return before


# ---- variables -------------------------------------------------------------------------------------------------------


def _arrays(value: Any, what: str, with_none: bool = False) -> List[Any]:
    found = [value] if isinstance(value, NDArray) else to_list(value, what)
    for array in found:
        if not (isinstance(array, NDArray) or array is None and with_none):
            raise InvalidArgumentError(f"{what}: expected arrays, found {describe(array)}", what)
    return found


def _as_many(found: List[Any], num: int, what: str) -> List[Any]:
    if len(found) != num:
        raise InvalidArgumentError(f"{what}: expected {num}, found {len(found)}", what)
    return found


def mark_variables(variables: ArrayOrList, gradients: Any, grad_reqs: Any = "write") -> None:
    """Marks arrays as variables whose gradients are written to the given arrays; None: to none, for :func:`grad`
    only. Requests are "write", "add" or "null", which removes the mark: one for all, or a list. A mark lasts as long
    as the array object."""
    arrays = _arrays(variables, "variables")
    takers = _as_many(_arrays(gradients, "gradients", True), len(arrays), "gradients")
    reqs = grad_codes(grad_reqs, [""] * len(arrays))
    tape = _tape.needed()
    tape._call(
        lib.cohort_tape_mark,
        pointers(arrays, "variables"),
        pointers(takers, "gradients"),
        codes(reqs),
        len(arrays),
    )
    for array, taker, req in zip(arrays, takers, reqs):
        array._grad = None if req == _abi.GradReq.NULL else taker
        if req != _abi.GradReq.NULL:
            array._tape = tape


# ---- gradients -------------------------------------------------------------------------------------------------------


class _Pass:
    """The arguments of a backward pass."""

    def __init__(self, what: str, heads: Any, head_grads: Any, retain_graph: Any, create_graph: Any) -> None:
        found = _arrays(heads, "heads")
        grads = (
            None if head_grads is None else _as_many(_arrays(head_grads, "head_grads", True), len(found), "head_grads")
        )
        self.options = options_of(_abi.cohort_backward_options, lib.cohort_backward_options_init)
        self.create = bool(to_bool(create_graph, "create_graph"))
        self.options.create_graph = 1 if self.create else 0
        retain = self.create if retain_graph is None else retain_graph
        self.options.retain_graph = to_bool(retain, "retain_graph")
        tape = _tape.present()
        if tape is None:
            raise StateError(f"{what}: nothing is recorded", what)
        self.tape = tape
        self.arguments = pointers(found, "heads"), None if grads is None else pointers(grads, "head_grads"), len(found)

    def run(self, function: Any, *arguments: Any) -> None:
        with self.tape._lock:
            before, _tape.state.creating = _tape.state.creating, self.create
            try:
                function(self.tape.handle, *self.arguments, *arguments)
            finally:
                _tape.state.creating = before


def backward(
    heads: ArrayOrList,
    head_grads: Any = None,
    retain_graph: bool = False,
    train_mode: bool = True,
    create_graph: bool = False,
) -> None:
    """Computes the gradients of all marked arrays that the heads depend on. ``head_grads``: an array for each head, or
    None: ones.

    ``retain_graph`` keeps the recorded graph for another pass, ``create_graph`` records the pass itself.
    ``train_mode`` is ignored: each operator's gradient is that of the mode in which it was applied."""
    making = _Pass("backward", heads, head_grads, retain_graph, create_graph)
    making.run(lib.cohort_tape_backward, byref(making.options))


def grad(
    heads: ArrayOrList,
    variables: ArrayOrList,
    head_grads: Any = None,
    retain_graph: Optional[bool] = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> Any:
    """The gradients of some arrays, as new arrays: one for an array, a list for a list. Attached gradients are not
    changed."""
    wanted = _arrays(variables, "variables")
    making = _Pass("grad", heads, head_grads, retain_graph, create_graph)
    made = out_handle(
        lambda *arguments: making.run(lib.cohort_tape_grad, *arguments),
        pointers(wanted, "variables"),
        len(wanted),
        byref(making.options),
    )
    with Arrays._adopt(made) as found:
        gradients = found.list()
    if making.create:
        for gradient in gradients:
            if gradient is not None:
                gradient._tape = making.tape
    return gradients[0] if isinstance(variables, NDArray) else gradients


def get_symbol(x: NDArray) -> Symbol:
    """The recorded graph of an array as a symbol, with a variable for each input array."""
    handle, tape = handle_of(x, NDArray, "x"), _tape.present()
    if tape is None:
        raise StateError("get_symbol: nothing is recorded", "get_symbol")
    return Symbol._adopt(tape._out(lambda f, on: out_handle(f, on, handle), lib.cohort_tape_symbol))


def num_recorded() -> int:
    """The number of recorded operators and functions through which a gradient could flow."""
    tape = _tape.present()
    return 0 if tape is None else int(tape._out(out_int, lib.cohort_tape_num_recorded))


# ---- custom functions ------------------------------------------------------------------------------------------------


class _Recorded(Numbered):
    """The callbacks of a function, held by the tape: the function may itself refer to the tape, and all are collected
    together."""

    def __init__(self, held: Dict[int, Any], gradients: Callable[..., Any]) -> None:
        super().__init__()
        self.held, self.gradients = held, gradients
        held[self.number] = self
        self.callbacks = (
            self._entry(_abi.cohort_tape_function_fn, "backward"),
            self._entry(_abi.cohort_tape_release_fn, "release", always=True),
        )

    def backward(self, heads: int, takes: int) -> None:
        tape = _tape.present()
        # During a pass the tape only applies operators.
        with _tape.scope(_tape.state.creating, None if tape is None else tape.training):
            found = self.gradients(*LentArrays._adopt(heads).list())
            gradients = [found] if isinstance(found, NDArray) or found is None else to_list(found, "gradients")
            target = LentArrays._adopt(takes)
            for gradient in _arrays(gradients, "gradients", True):
                target.add(gradient)

    def release(self) -> None:
        self.held.pop(self.number, None)


def record_function(inputs: ArrayOrList, outputs: ArrayOrList, gradients: Callable[..., Any]) -> None:
    """Records a computation of the program's own, from inputs to outputs. In a backward pass ``gradients`` is called
    with the gradients of the outputs and returns those of the inputs, None for none. It may apply operators, but
    must not use this module otherwise."""
    given, made = _arrays(inputs, "inputs"), _arrays(outputs, "outputs")
    if not callable(gradients):
        raise InvalidArgumentError(f"gradients: expected a function, found {describe(gradients)}", "gradients")
    tape = _tape.active()
    if tape is None:
        return
    recorded = _Recorded(tape.functions, gradients)
    lists = pointers(given, "inputs"), len(given), pointers(made, "outputs"), len(made)
    try:
        tape._call(lib.cohort_tape_function, *lists, *recorded.callbacks, recorded.number)
    except BaseException:
        recorded.release()
        raise
    note(tape, given, made)


class Function:
    """A custom function with its gradient. An object is for one call.

    >>> from cohort import autograd, nd
    >>> class Square(autograd.Function):
    ...     def forward(self, x):
    ...         self.save_for_backward(x)
    ...         return x * x
    ...     def backward(self, dy):
    ...         x, = self.saved_tensors
    ...         return 2 * x * dy
    >>> x = nd.array([1, 2])
    >>> x.attach_grad()
    >>> with autograd.record():
    ...     y = Square()(x)
    >>> y.backward()
    >>> x.grad.asnumpy()
    array([2., 4.], dtype=float32)
    """

    _saved: Tuple[NDArray, ...] = ()

    def save_for_backward(self, *args: NDArray) -> None:
        """Keeps arrays for ``backward``, which reads them from ``saved_tensors``."""
        self._saved = args

    @property
    def saved_tensors(self) -> Tuple[NDArray, ...]:
        return self._saved

    def __call__(self, *inputs: NDArray) -> Any:
        with _tape.scope(False, None):
            outputs = self.forward(*inputs)
        record_function(list(inputs), outputs, self.backward)
        return outputs

    def forward(self, *inputs: NDArray) -> Any:
        """The outputs, an array or several; none of them an input."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(self, *output_grads: NDArray) -> Any:
        """The gradients of the inputs, None for none."""
        raise NotImplementedError(f"{type(self).__name__} has no backward")
