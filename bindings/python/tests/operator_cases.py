# SPDX-License-Identifier: Apache-2.0
"""Expressions of arrays and symbols, and the results that a library, Cohort or MXNet, gives."""

import json
import re

import numpy as np

BINARY = "+ - * / % ** == != > >= < <=".split()
ARITHMETIC = (
    [f"a {op} b" for op in BINARY] + [f"a {op} 1.5" for op in BINARY[:5]] + [f"7.5 {op} a" for op in BINARY[:5]]
)
ARITHMETIC += [f"a {op} 3" for op in BINARY[5:]] + [f"2 {op} a" for op in BINARY[5:]] + ["-a", "abs(a)"]
IN_PLACE = [f"a {op}= {other}" for op in BINARY[:5] for other in ("b", "2.5")] + ["a **= 2"]
METHODS = re.split(
    "; |\n",
    """a.sum(); a.sum(1); a.sum(axis=0, keepdims=True); a.mean(axis=0); a.max(1); a.exp(); a.clip(0, 2); a.expand_dims(1)
a.transpose((1, 0)); a.swapaxes(0, 1); a.reshape((3, 2)); a.reshape(shape=(0, -1, 1)); a.reshape((-2, 1)); a.reshape((-3,))
a.reshape(shape=(-1, 0), reverse=True); a.slice_axis(1, 0, 2); a.slice_axis(axis=1, begin=1, end=None); a.astype("float64")
a.astype("int32"); a.argmax(1); a.norm(); a.flatten(); a.tile((2, 1)); a.broadcast_to((2, 3)); a.softmax(); a.topk(k=2)
a.topk(axis=None); a.argsort(axis=None); a.sort(); a.square(); a.slice((0, 1), (2, 3)); a.slice(begin=(0, 1), end=(2, 3))
a.zeros_like(); a.one_hot(4); a.repeat(2); a.repeat(repeats=2, axis=1); a.flip(0); a.round(); a.abs(); a.relu()""",
)
ARRAYS = [
    "a.T",
    "a.squeeze()",
    "nd.sum(a, 1)",
    "nd.clip(a, 0, 1)",
    "nd.transpose(a, (1, 0))",
    "np.sum(a)",
    "a.take(nd.array([1, 0]))",
]


def _numbers(array):
    return [float(f"{x:.4g}") for x in array.asnumpy().astype("float64").ravel()]


def _inputs(library, dtype):
    a = np.array([[-2, 3, 5], [3, -4, 1]])
    values = (abs(a) if dtype == "uint8" else a), np.array([[3], [2]])
    return [library.nd.array(x.astype(dtype), dtype=dtype) for x in values]


def of_arrays(library, expression, dtype):
    """Type, shape and elements."""
    a, b = _inputs(library, dtype)
    made = eval(expression, {"a": a, "b": b, "nd": library.nd, "np": np})
    return [str(np.dtype(made.dtype)), list(made.shape), _numbers(made)]


def in_place(library, statement, dtype):
    """The contents of another reference to the array, and of a slice, afterwards."""
    a, b = _inputs(library, dtype)
    part, names = a[1:2], {"a": a, "b": b}
    exec(statement, names)
    return [names["a"] is a, _numbers(a), _numbers(part)]


def of_symbols(library, expression):
    """Each node: its operator, its name without the count, its attributes."""
    made = eval(expression, {"a": library.sym.Variable("a"), "b": library.sym.Variable("b")})
    return [
        [node["op"], re.sub(r"\d+$", "", node["name"]), node.get("attrs", {})]
        for node in json.loads(made.tojson())["nodes"]
    ]


def answer_all(library):
    found = {}
    for dtype in ("float32", "float16", "int32", "uint8"):
        for expression in ARITHMETIC:
            found[f"{dtype}: {expression}"] = of_arrays(library, expression, dtype)
        for statement in IN_PLACE:
            found[f"{dtype}: {statement}"] = in_place(library, statement, dtype)
    for expression in METHODS + ARRAYS:
        found[f"float32: {expression}"] = of_arrays(library, expression, "float32")
    for expression in ARITHMETIC + METHODS:
        found[f"symbols: {expression}"] = of_symbols(library, expression)
    return found
