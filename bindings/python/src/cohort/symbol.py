# SPDX-License-Identifier: Apache-2.0
"""Symbols: networks, composed or read from MXNet's JSON.

Operators are functions of this module, made from the library's registry: ``sym.FullyConnected(x, num_hidden=3)``.
"""

from __future__ import annotations

from ctypes import byref, c_char_p, c_int32, c_void_p
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from . import _abi, _operators
from ._arithmetic import Names, Operand, is_number
from ._library import (
    attribute_text,
    attributes,
    describe,
    from_text,
    handle_of,
    lib,
    out_handle,
    out_int,
    out_text,
    pointers,
    texts,
    to_dict,
    to_int,
    to_list,
    to_optional_text,
    to_path,
    to_text,
)
from .errors import InvalidArgumentError, UnknownNameError
from .io import Descs, to_known
from ._dtype import dtype_code, dtype_of

if TYPE_CHECKING:
    from .executor import Executor

Shape = Optional[Tuple[int, ...]]


class Symbol(Operand):
    """A graph of operators over variables: one output, or several.

    >>> from cohort import sym
    >>> net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc")
    >>> net.list_arguments()
    ['data', 'fc_weight', 'fc_bias']
    >>> net.infer_shape(data=(5, 4))[1]
    [(5, 3)]
    """

    _free_name = "cohort_symbol_free"

    # ---- names

    def _names(self, which: int) -> List[str]:
        with self._lock:
            num = out_int(lib.cohort_symbol_num_names, self.handle, which)
            return [out_text(lib.cohort_symbol_name_at, self.handle, which, i) or "" for i in range(num)]

    def list_arguments(self) -> List[str]:
        return self._names(_abi.SymbolList.ARGUMENTS)

    def list_auxiliary_states(self) -> List[str]:
        return self._names(_abi.SymbolList.AUX)

    def list_outputs(self) -> List[str]:
        return self._names(_abi.SymbolList.OUTPUTS)

    def list_inputs(self) -> List[str]:
        return self._names(_abi.SymbolList.INPUTS)

    def list_labels(self) -> List[str]:
        """Arguments whose values inference does not need: they affect the outputs only as the label of a loss."""
        return self._names(_abi.SymbolList.LABELS)

    @property
    def name(self) -> Optional[str]:
        """The name of the node; None for several outputs."""
        found: Optional[str] = self._out(out_text, lib.cohort_symbol_name)
        return found

    @property
    def num_nodes(self) -> int:
        return int(self._out(out_int, lib.cohort_symbol_num_nodes))

    def __repr__(self) -> str:
        return "<Symbol, closed>" if self.closed else f"<Symbol {self.name or ', '.join(self.list_outputs())}>"

    # ---- attributes

    def attr(self, key: str) -> Optional[str]:
        wanted = to_text(key, "key")
        found: Optional[str] = self._out(lambda f, handle: out_text(f, handle, wanted), lib.cohort_symbol_attr)
        return found

    def _attrs(self, every: bool) -> List[Tuple[str, str, str]]:
        found = []
        with self._lock:
            for i in range(out_int(lib.cohort_symbol_num_attrs, self.handle, int(every))):
                parts = [c_char_p() for _ in range(3)]
                lib.cohort_symbol_attr_at(self.handle, int(every), i, *(byref(part) for part in parts))
                node, key, value = (from_text(part.value) for part in parts)
                found.append((node, key, value))
        return found

    def list_attr(self) -> Dict[str, str]:
        return {key: value for _, key, value in self._attrs(False)}

    def attr_dict(self) -> Dict[str, Dict[str, str]]:
        """The attributes of every node that has any."""
        found: Dict[str, Dict[str, str]] = {}
        for node, key, value in self._attrs(True):
            found.setdefault(node, {})[key] = value
        return found

    def _set_attr(self, **values: str) -> None:
        self._call(lib.cohort_symbol_set_attrs, *attributes(values, "attributes"))

    # ---- parts

    def _made(self, function: Any, *arguments: Any) -> "Symbol":
        return Symbol._adopt(self._out(lambda f, handle: out_handle(f, handle, *arguments), function))

    def get_internals(self) -> "Symbol":
        return self._made(lib.cohort_symbol_internals)

    def get_children(self) -> Optional["Symbol"]:
        made = self._out(out_handle, lib.cohort_symbol_children)
        return None if made is None else Symbol._adopt(made)

    def __getitem__(self, key: Any) -> "Symbol":
        """An output, by name or index."""
        if isinstance(key, str):
            return self._made(lib.cohort_symbol_output_named, to_text(key, "output"))
        index, length = to_int(key, "output"), len(self)
        if not 0 <= index < length:
            raise IndexError(f"output {index} of a symbol of {length}")
        return self._made(lib.cohort_symbol_output, index)

    def __len__(self) -> int:
        return len(self.list_outputs())

    def __iter__(self) -> Iterator["Symbol"]:
        return (self[i] for i in range(len(self)))

    def copy(self) -> "Symbol":
        return self._made(lib.cohort_symbol_copy)

    def __copy__(self) -> "Symbol":
        return self.copy()

    def __deepcopy__(self, memo: Any) -> "Symbol":
        return self.copy()

    def __call__(self, *inputs: "Symbol", name: Optional[str] = None, **named: "Symbol") -> "Symbol":
        """Replaces variables by other symbols, in a copy."""
        if inputs and named:
            raise InvalidArgumentError("compose: expected symbols in order or by name, found both", "compose")
        given = list(named.values()) if named else list(inputs)
        for symbol in given:
            handle_of(symbol, Symbol, "compose")
        names = texts(list(named), "names") if named else None
        return self._made(
            lib.cohort_symbol_compose, names, pointers(given, "inputs"), len(given), to_optional_text(name, "name")
        )

    # ---- inference

    def _infer(self, function: Any, known: Descs, partial: bool) -> Optional[List[Descs]]:
        complete, args, outputs, aux = c_int32(), c_void_p(), c_void_p(), c_void_p()
        self._call(function, known.handle, int(partial), byref(complete), byref(args), byref(outputs), byref(aux))
        if args.value is None:
            return None
        return [Descs._adopt(part.value) for part in (args, outputs, aux)]

    def _infer_shape(self, given: Sequence[Any], named: Mapping[str, Any], partial: bool) -> Any:
        if given and named:
            raise InvalidArgumentError("infer_shape: expected shapes in order or by name, found both", "infer_shape")
        known = to_known(dict(zip(self.list_arguments(), given)) if given else named, {})
        found = self._infer(lib.cohort_symbol_infer_shape, known, partial)
        return (None, None, None) if found is None else tuple([desc.shape for desc in part.list()] for part in found)

    def infer_shape(self, *args: Any, **kwargs: Any) -> Tuple[Any, Any, Any]:
        """Shapes of arguments, outputs and auxiliary states; None three times if some cannot be inferred."""
        found: Tuple[Any, Any, Any] = self._infer_shape(args, kwargs, False)
        return found

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> Tuple[Any, Any, Any]:
        """Like :meth:`infer_shape`, with the shapes that could be inferred."""
        found: Tuple[Any, Any, Any] = self._infer_shape(args, kwargs, True)
        return found

    def _infer_type(self, given: Sequence[Any], named: Mapping[str, Any], partial: bool) -> Any:
        types = dict(zip(self.list_arguments(), given)) if given else named
        known = Descs.empty()
        for name, dtype in types.items():
            known.add(name, None, dtype_code(dtype), None)
        found = self._infer(lib.cohort_symbol_infer_dtype, known, partial)
        return (
            (None, None, None) if found is None else tuple([dtype_of(code) for code in part.codes()] for part in found)
        )

    def infer_type(self, *args: Any, **kwargs: Any) -> Tuple[Any, Any, Any]:
        """Types of arguments, outputs and auxiliary states; None three times if some cannot be inferred."""
        found: Tuple[Any, Any, Any] = self._infer_type(args, kwargs, False)
        return found

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> Tuple[Any, Any, Any]:
        """Like :meth:`infer_type`, with the types that could be inferred."""
        found: Tuple[Any, Any, Any] = self._infer_type(args, kwargs, True)
        return found

    # ---- JSON

    def tojson(self) -> str:
        found: str = self._out(out_text, lib.cohort_symbol_to_json)
        return found

    def save(self, fname: Any) -> None:
        self._call(lib.cohort_symbol_save, to_path(fname, "fname"))

    def __reduce__(self) -> Any:
        return load_json, (self.tojson(),)

    # ---- binding

    def simple_bind(self, ctx: Any = None, grad_req: Any = "write", type_dict: Any = None, **kwargs: Any) -> "Executor":
        """An executor on new arrays: see :class:`cohort.executor.Executor`."""
        from .executor import Executor

        return Executor.simple_bind(self, ctx, grad_req, type_dict, **kwargs)

    def bind(
        self,
        ctx: Any = None,
        args: Any = None,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        **kwargs: Any,
    ) -> "Executor":
        """An executor on given arrays."""
        from .executor import Executor

        return Executor.bind(self, ctx, args, args_grad, grad_req, aux_states, **kwargs)

    def eval(self, ctx: Any = None, **kwargs: Any) -> List[Any]:
        """The outputs for arrays given by name."""
        found: List[Any] = self.bind(ctx, kwargs, grad_req="null").forward()
        return found

    # ---- arithmetic

    @staticmethod
    def _function_of(name: str) -> Callable[..., Any]:
        return _operators.function_of_symbols(name)

    def _arithmetic(self, names: Names, other: Any, swapped: bool) -> Any:
        if isinstance(other, Symbol):
            return _create(_operators.operator(names.symbols), [self, other], None, None, {})
        if not is_number(other):
            return NotImplemented
        name = names.reversed if swapped else names.scalar
        return _create(
            _operators.operator(name), [self], None, None, {"scalar": other if type(other) is int else float(other)}
        )

    def __bool__(self) -> bool:
        raise TypeError("a symbol has no value: neither it nor a comparison of symbols has a truth value")

    def astype(self, dtype: Any) -> "Symbol":
        found: Symbol = _operators.function_of_symbols("Cast")(self, dtype=dtype)
        return found


_SHORT = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")


def _node_attributes(attr: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    return {key: attribute_text(value) for key, value in to_dict(attr, "attr").items()}


def Variable(
    name: str,
    attr: Optional[Mapping[str, str]] = None,
    shape: Any = None,
    lr_mult: Optional[float] = None,
    wd_mult: Optional[float] = None,
    dtype: Any = None,
    init: Any = None,
    **kwargs: Any,
) -> Symbol:
    """A variable; further keywords are attributes such as ``__layout__``."""
    given = {**_node_attributes(attr), **_node_attributes(kwargs)}
    more = {"__shape__": shape, "__lr_mult__": lr_mult, "__wd_mult__": wd_mult}
    given.update({key: attribute_text(value) for key, value in more.items() if value is not None})
    if dtype is not None:
        given["__dtype__"] = str(int(dtype_code(dtype)))
    if init is not None:
        given["__init__"] = init if isinstance(init, str) else init.dumps()
    return Symbol._adopt(out_handle(lib.cohort_symbol_variable, to_text(name, "name"), *attributes(given, "attr")))


var = Variable


def Group(symbols: Sequence[Symbol]) -> Symbol:
    """A symbol with all outputs of the given ones."""
    given = to_list(symbols, "symbols")
    for symbol in given:
        handle_of(symbol, Symbol, "symbols")
    return Symbol._adopt(out_handle(lib.cohort_symbol_group, pointers(given, "symbols"), len(given)))


def load_json(json_str: str) -> Symbol:
    """A symbol from the JSON of any MXNet version."""
    text = to_text(json_str, "json")
    return Symbol._adopt(out_handle(lib.cohort_symbol_from_json, text, len(text)))


def load(fname: Any) -> Symbol:
    """Like :func:`load_json`, from a file."""
    return Symbol._adopt(out_handle(lib.cohort_symbol_load, to_path(fname, "fname")))


def _create(
    op: _operators.Operator, given: Sequence[Any], name: Optional[str], attr: Any, attrs: Dict[str, Any]
) -> Symbol:
    if len(given) == 1 and isinstance(given[0], (list, tuple)) and op.inputs:
        given = given[0]
    data = _operators.positional(op, given, attrs)
    attrs = _operators.with_none(op, attrs)
    inputs: List[Symbol] = []
    input_names: Optional[List[str]] = None
    named = {key: attrs.pop(key) for key in [key for key, value in attrs.items() if isinstance(value, Symbol)]}
    for symbol in data:
        handle_of(symbol, Symbol, op.name)
        inputs.append(symbol)
    if named:
        known = [item.name for item in op.inputs]
        if len(inputs) > len(known):
            raise UnknownNameError(f"operator {op.name}: too many inputs", op.name)
        input_names = known[: len(inputs)] + list(named)
        inputs += named.values()
    all_attrs = {**attrs, **_node_attributes(attr)}
    return Symbol._adopt(
        out_handle(
            lib.cohort_symbol_create,
            to_text(op.name, "operator"),
            to_optional_text(name, "name"),
            *attributes(all_attrs, op.name),
            pointers(inputs, op.name),
            None if input_names is None else texts(input_names, op.name),
            len(inputs),
        )
    )


_operators.create = _create


def to_symbol(value: Any, what: str) -> Symbol:
    if not isinstance(value, Symbol):
        raise InvalidArgumentError(f"{what}: expected a Symbol, found {describe(value)}", what)
    return value


contrib, linalg, image = _operators.families(_operators.function_of_symbols)


def __getattr__(name: str) -> Any:
    return _operators.function_of_symbols(name)


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(_operators.names()))
