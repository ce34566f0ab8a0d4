# SPDX-License-Identifier: Apache-2.0
"""Runs operator cases with MXNet 1.9.1 on one CPU thread: its own operators, one at a time, without oneDNN."""
import ctypes
import json
import os

# MXNet reads these when it is loaded. Without oneDNN it also fuses nothing.
os.environ.update(OMP_NUM_THREADS="1", MXNET_MKLDNN_ENABLED="0", MXNET_USE_MKLDNN_RNN="0", MXNET_ENGINE_TYPE="NaiveEngine")
os.environ.update(MXNET_STORAGE_FALLBACK_LOG_VERBOSE="0", MXNET_SUBGRAPH_VERBOSE="0")

import mxnet as mx
import numpy as np
from mxnet._ctypes.ndarray import _imperative_invoke

CPU = mx.cpu(0)


def to_mxnet(array):
    return mx.nd.array(array, ctx=CPU, dtype=array.dtype)


def operator_function(op):
    """The function of mx.sym that composes an operator, by the operator's registered name."""
    for prefix, module in (
        ("_contrib_", mx.sym.contrib),
        ("_linalg_", mx.sym.linalg),
        ("_image_", mx.sym.image),
        ("_random_", mx.sym.random),
    ):
        if op.startswith(prefix) and hasattr(module, op[len(prefix) :]):
            return getattr(module, op[len(prefix) :])
    return getattr(mx.sym._internal if op.startswith("_") else mx.sym, op)


def compose(op, attrs, input_names):
    """A graph of one operator on variables, as symbol JSON."""
    variables = [mx.sym.Variable(name) for name in input_names]
    node = op.lower().lstrip("_") + "0"
    symbol = operator_function(op)(*variables, name=node, **attrs)
    return json.loads(symbol.tojson())


def updated(symbol_json):
    """A graph in an older form in that of MXNet 1.9.1."""
    return json.loads(mx.sym.load_json(json.dumps(symbol_json)).tojson())


def lists(symbol_json):
    """Arguments, auxiliary states and outputs of a graph."""
    symbol = mx.sym.load_json(json.dumps(symbol_json))
    return symbol.list_arguments(), symbol.list_auxiliary_states(), symbol.list_outputs()


class Bound:
    """A graph bound to copies of a case's inputs: a dict of NumPy arrays by "arg:NAME", "aux:NAME", "head:I", "grad:NAME"."""

    def __init__(self, symbol_json, description, inputs):
        self.symbol = mx.sym.load_json(json.dumps(symbol_json))
        self.inputs = inputs
        names = self.symbol.list_arguments()
        args = {name: to_mxnet(inputs["arg:" + name]) for name in names}
        self.aux = {name: to_mxnet(inputs["aux:" + name]) for name in self.symbol.list_auxiliary_states()}
        grad_req = {name: description["grad_req"][name] for name in names}
        self.grads = {}
        for name, req in grad_req.items():
            if req == "add":
                self.grads[name] = to_mxnet(inputs["grad:" + name])
            elif req == "write":
                self.grads[name] = mx.nd.full(args[name].shape, 7.5, ctx=CPU, dtype=args[name].dtype)
        self.executor = self.symbol.bind(CPU, args, args_grad=self.grads, grad_req=grad_req, aux_states=self.aux)

    def forward(self, is_train):
        return [output.asnumpy() for output in self.executor.forward(is_train=is_train)]

    def backward(self, loss_head, num_outputs):
        heads = [self.inputs.get("head:%d" % i) for i in range(num_outputs)]
        if loss_head:
            self.executor.backward()
        else:
            shapes = [output.shape for output in self.executor.outputs]
            self.executor.backward(
                [to_mxnet(head) if head is not None else mx.nd.zeros(shape) for head, shape in zip(heads, shapes)]
            )


def run_symbol(symbol_json, description, inputs):
    """MXNet's results for a case of kind "symbol": all arrays that expected.params may have, by name."""
    bound = Bound(symbol_json, description, inputs)
    outputs = bound.forward(description["is_train"])
    expected = {"output:%d" % i: output for i, output in enumerate(outputs)}
    if any(req != "null" for req in description["grad_req"].values()):
        bound.backward(description["loss_head"], len(outputs))
    for name, grad in bound.grads.items():
        expected["grad:" + name] = grad.asnumpy()
    for name, state in bound.aux.items():
        expected["aux:" + name] = state.asnumpy()
    for i, output in enumerate(Bound(symbol_json, description, inputs).forward(False)):
        expected["eval:%d" % i] = output
    return expected


def run_imperative(description, inputs):
    """The same for a case of kind "imperative"."""
    handle = ctypes.c_void_p()
    mx.base.check_call(mx.base._LIB.NNGetOpHandle(mx.base.c_str(description["op"]), ctypes.byref(handle)))
    arrays = {name: to_mxnet(inputs["arg:" + name]) for name in description["arguments"]}
    out = [mx.nd.zeros_like(arrays[name]) for name in description.get("out_like", [])]
    attrs = description["attrs"]
    results = _imperative_invoke(
        handle.value, list(arrays.values()), list(attrs), [str(value) for value in attrs.values()], out or None, False, True
    )
    results = results if isinstance(results, (list, tuple)) else [results]
    expected = {"output:%d" % i: result.asnumpy() for i, result in enumerate(results)}
    for name in description.get("mutates", []):
        expected["arg:" + name] = arrays[name].asnumpy()
    return expected


def as_float64(arrays):
    return {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in arrays.items()}
