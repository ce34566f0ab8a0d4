# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in MXNet's two files, ``PREFIX-symbol.json`` and ``PREFIX-0007.params``, and prediction from them."""

from __future__ import annotations

from ctypes import byref, c_void_p
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from ._library import handle_of, lib, optional_handle, to_bool, to_dict, to_int, to_path
from .context import cpu, to_context
from .errors import ShapeError, UnknownNameError
from .executor import Executor
from .ndarray import Arrays, NDArray, to_array, zeros
from .precision import Calibration
from .symbol import Symbol


def save_checkpoint(
    prefix: Any, epoch: int, symbol: Optional[Symbol], arg_params: Mapping[str, Any], aux_params: Mapping[str, Any]
) -> None:
    """Writes a checkpoint; without a symbol the parameters only."""
    args, aux = Arrays.of(arg_params, "arg_params"), Arrays.of(aux_params, "aux_params")
    number = to_int(epoch, "epoch", 0, 2**31 - 1)
    handle = optional_handle(symbol, Symbol, "symbol")
    lib.cohort_checkpoint_save(to_path(prefix, "prefix"), number, handle, args.handle, aux.handle)


def load_checkpoint(
    prefix: Any, epoch: int, map_file: bool = False
) -> Tuple[Symbol, Dict[str, NDArray], Dict[str, NDArray]]:
    """Symbol, parameters and auxiliary states of a checkpoint.

    With ``map_file`` large arrays stay in a mapping of the file and are read when they are used; the file must not be
    changed or truncated in place as long as they exist.
    """
    symbol, args, aux = c_void_p(), c_void_p(), c_void_p()
    number = to_int(epoch, "epoch", 0, 2**31 - 1)
    load = lib.cohort_checkpoint_map if to_bool(map_file, "map_file") else lib.cohort_checkpoint_load
    load(to_path(prefix, "prefix"), number, byref(symbol), byref(args), byref(aux))
    made = Symbol._adopt(symbol.value)
    with Arrays._adopt(args.value) as arg_params, Arrays._adopt(aux.value) as aux_params:
        return made, arg_params.dict(), aux_params.dict()


class Predictor:
    """A network for inference. One thread at a time may use it; :meth:`clone` makes one for another thread, which
    shares the parameters and runs in parallel.

    >>> from cohort import Predictor, nd, sym
    >>> net = sym.FullyConnected(sym.Variable("data"), num_hidden=1, no_bias=True, name="fc")
    >>> predictor = Predictor(net, {"fc_weight": nd.array([[1, 10]])}, data=(1, 2))
    >>> predictor(data=[[3, 4]])[0].tolist()
    [[43.0]]
    """

    def __init__(
        self,
        symbol: Symbol,
        arg_params: Mapping[str, Any],
        aux_params: Optional[Mapping[str, Any]] = None,
        context: Any = None,
        num_threads: int = 0,
        *,
        compute_dtype: Any = "float32",
        float32_names: Any = None,
        narrow_names: Any = None,
        calibration: Optional[Calibration] = None,
        tf32: bool = False,
        **shapes: Any,
    ) -> None:
        """``shapes`` are those of the inputs by name. Precision as in :meth:`Executor.simple_bind`."""
        handle_of(symbol, Symbol, "symbol")
        where = cpu() if context is None else to_context(context)
        self.symbol, self._shapes = symbol, shapes
        self._settings: Dict[str, Any] = {
            "num_threads": num_threads,
            "compute_dtype": compute_dtype,
            "float32_names": float32_names,
            "narrow_names": narrow_names,
            "calibration": calibration,
            "tf32": tf32,
        }
        self._args = {
            name: to_array(value, name).as_in_context(where)
            for name, value in to_dict(arg_params, "arg_params").items()
        }
        self._aux = {
            name: to_array(value, name).as_in_context(where)
            for name, value in to_dict(aux_params, "aux_params").items()
        }
        self._context = where
        names = symbol.list_arguments()
        for name in shapes:
            if name not in names:
                raise UnknownNameError(
                    f"inputs: the network has no argument '{name}'; it has: {', '.join(names)}", name
                )
        not_read = symbol.list_labels()
        missing = [name for name in names if name not in shapes and name not in self._args and name not in not_read]
        states = symbol.list_auxiliary_states()
        missing += [name for name in states if name not in self._aux]
        if missing:
            raise UnknownNameError(f"parameters: expected all, found none called {', '.join(missing)}", missing[0])
        known = {name: value.shape for name, value in self._args.items() if name in names and name not in shapes}
        arg_shapes, _, _ = symbol.infer_shape(**known, **shapes)
        if arg_shapes is None:
            raise ShapeError(f"data: the shapes {shapes} do not give those of all arguments", "data")
        dtypes = {name: self._args[name].dtype for name in known}
        dtypes.update((name, self._aux[name].dtype) for name in states)
        arg_dtypes, _, _ = symbol.infer_type_partial(**dtypes)
        given = {
            name: self._args[name] if name in known else zeros(shape, where, dtype)
            for name, shape, dtype in zip(names, arg_shapes, arg_dtypes)
        }
        self._executor = Executor.bind(symbol, where, given, None, "null", self._aux, **self._settings)

    @classmethod
    def load(
        cls, prefix: Any, epoch: int, context: Any = None, num_threads: int = 0, map_file: bool = False, **settings: Any
    ) -> "Predictor":
        """A predictor from a checkpoint; ``data=(1, 3, 224, 224)`` gives the shape of the input of that name.
        ``map_file`` as in :func:`load_checkpoint`; other settings as in the class."""
        symbol, args, aux = load_checkpoint(prefix, epoch, map_file)
        return cls(symbol, args, aux, context, num_threads, **settings)

    def __call__(self, **inputs: Any) -> List[np.ndarray]:
        """The outputs for inputs by name. A batch of another length is accepted, too."""
        with self._executor._lock:
            return [output.asnumpy() for output in self._forward(inputs)]

    def observe(self, calibration: Calibration, **inputs: Any) -> None:
        """Shows inputs to a calibration, for inference in int8: a predictor created with ``compute_dtype="int8"`` and
        the calibration computes in int8.

        >>> from cohort import Calibration, Predictor, nd, sym
        >>> net = sym.FullyConnected(sym.Variable("data"), num_hidden=16, no_bias=True, name="fc")
        >>> params = {"fc_weight": nd.full((16, 16), 0.5)}
        >>> calibration = Calibration()
        >>> Predictor(net, params, data=(4, 16)).observe(calibration, data=nd.ones((4, 16)))
        >>> calibration.range("fc_output")
        (0.0, 8.0)
        >>> narrow = Predictor(net, params, compute_dtype="int8", calibration=calibration, data=(4, 16))
        >>> bool(abs(narrow(data=nd.ones((4, 16)))[0] - 8).max() < 0.25)
        True
        """
        handle_of(calibration, Calibration, "calibration")
        with self._executor._lock:
            self._forward(inputs)
            calibration.observe(self._executor)

    def _forward(self, inputs: Mapping[str, Any]) -> List[NDArray]:
        if sorted(inputs) != sorted(self._shapes):
            raise UnknownNameError(f"inputs: expected {sorted(self._shapes)}, found {sorted(inputs)}", "inputs")
        arrays = {name: to_array(value, name) for name, value in inputs.items()}
        shapes = {name: array.shape for name, array in arrays.items()}
        if any(tuple(self._shapes[name]) != shape for name, shape in shapes.items()):
            self._executor = self._executor.reshape(True, True, **shapes)
            self._shapes = shapes
        return self._executor.forward(False, **arrays)

    def clone(self) -> "Predictor":
        """Another predictor on the same parameters, for another thread."""
        return Predictor(self.symbol, self._args, self._aux, self._context, **self._settings, **self._shapes)

    def close(self) -> None:
        self._executor.close()

    def __enter__(self) -> "Predictor":
        return self

    def __exit__(self, *reason: Any) -> None:
        self.close()
