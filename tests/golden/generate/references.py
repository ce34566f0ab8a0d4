# SPDX-License-Identifier: Apache-2.0
"""Definitions of operators in float64 with NumPy, independent of MXNet and of Cohort.

OPERATORS maps an operator's registered name to a function of (attributes, list of inputs, is_train) that returns the list
of outputs. Gradients need no definition: they are central differences of these. LOSSES gives, for operators whose backward
pass ignores the head gradient, the scalar whose derivative that pass is. To add an operator, write its formula here.
"""
import ast
import math

import numpy as np


class Attrs:
    """Attributes, which are strings in a graph, as Python values."""

    def __init__(self, texts):
        self.texts = texts

    def get(self, key, default=None):
        text = self.texts.get(key)
        if text is None:
            return default
        if text in ("true", "false"):
            return text == "true"
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ERF = np.vectorize(math.erf, otypes=[np.float64])
UNARY = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "softsign": lambda x: x / (1 + abs(x)),
    "tanh": np.tanh,
    "abs": abs,
    "negative": lambda x: -x,
    "square": np.square,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "reciprocal": lambda x: 1 / x,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "arcsinh": np.arcsinh,
    "erf": ERF,
}
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
    "hypot": np.hypot,
}
SCALAR = {
    "_plus_scalar": lambda x, s: x + s,
    "_minus_scalar": lambda x, s: x - s,
    "_rminus_scalar": lambda x, s: s - x,
    "_mul_scalar": lambda x, s: x * s,
    "_div_scalar": lambda x, s: x / s,
    "_rdiv_scalar": lambda x, s: s / x,
    "_power_scalar": lambda x, s: x**s,
    "_rpower_scalar": lambda x, s: s**x,
    "_maximum_scalar": np.maximum,
    "_minimum_scalar": np.minimum,
}


def activation(attrs, inputs, is_train):
    act = {**UNARY, "softrelu": lambda x: np.log1p(np.exp(x))}[attrs.get("act_type")]
    return [act(inputs[0])]


def softmax_family(transform):
    def define(attrs, inputs, is_train):
        if attrs.get("use_length"):
            raise NotImplementedError("use_length")
        return [transform(inputs[0] / (attrs.get("temperature") or 1.0), attrs.get("axis", -1))]

    return define


def fully_connected(attrs, inputs, is_train):
    x, weight = inputs[:2]
    if attrs.get("flatten", True):
        x = x.reshape(x.shape[0], -1)
    y = x @ weight.T
    return [y if attrs.get("no_bias", False) else y + inputs[2]]


def windows(attrs, x, value):
    """Windows of x: (N, C, ...) as (N, C, out..., kernel...), padded with a value."""
    num = len(attrs.get("kernel"))
    kernel, stride = attrs.get("kernel"), attrs.get("stride") or (1,) * num
    dilate, pad = attrs.get("dilate") or (1,) * num, attrs.get("pad") or (0,) * num
    x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in pad], constant_values=value)
    spans = tuple(d * (k - 1) + 1 for d, k in zip(dilate, kernel))
    view = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(2, 2 + num)))
    steps = (slice(None),) * 2 + tuple(slice(None, None, s) for s in stride)
    return view[steps + tuple(slice(None, None, d) for d in dilate)]


def convolution(attrs, inputs, is_train):
    x, weight = inputs[:2]
    if attrs.get("layout") not in (None, "NCW", "NCHW", "NCDHW"):
        raise NotImplementedError("layout")
    groups, num = attrs.get("num_group", 1), len(attrs.get("kernel"))
    view, outputs = windows(attrs, x, 0.0), []
    for part, w in zip(np.split(view, groups, 1), np.split(weight, groups, 0)):
        inner = (1,) + tuple(range(part.ndim - num, part.ndim))
        y = np.tensordot(part, w, (inner, (1,) + tuple(range(2, w.ndim))))
        outputs.append(np.moveaxis(y, -1, 1))
    y = np.concatenate(outputs, 1)
    return [y if attrs.get("no_bias", False) else y + inputs[2].reshape((1, -1) + (1,) * num)]


def pooling(attrs, inputs, is_train):
    x, kind = inputs[0], attrs.get("pool_type", "max")
    if attrs.get("pooling_convention", "valid") != "valid" or kind not in ("max", "avg", "sum"):
        raise NotImplementedError("pooling_convention or pool_type")
    if not attrs.get("count_include_pad", True) or attrs.get("layout") not in (None, "NCW", "NCHW", "NCDHW"):
        raise NotImplementedError("count_include_pad or layout")
    axes = tuple(range(2, x.ndim))
    if attrs.get("global_pool", False):
        return [getattr(x, {"avg": "mean"}.get(kind, kind))(axes, keepdims=True)]
    view = windows(attrs, x, -np.inf if kind == "max" else 0.0)
    return [getattr(view, {"avg": "mean"}.get(kind, kind))(tuple(range(x.ndim, view.ndim)))]


def batch_norm(attrs, inputs, is_train):
    x, gamma, beta, moving_mean, moving_var = inputs
    axis = attrs.get("axis", 1) % x.ndim
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    others = tuple(i for i in range(x.ndim) if i != axis)
    mean, var = moving_mean, moving_var
    if is_train and not attrs.get("use_global_stats", False):
        mean, var = x.mean(others), x.var(others)
    if attrs.get("fix_gamma", True):
        gamma = np.ones_like(gamma)
    inverse = 1 / np.sqrt(var + attrs.get("eps", 1e-3))
    y = (x - mean.reshape(shape)) * (inverse * gamma).reshape(shape) + beta.reshape(shape)
    return [y, mean, inverse] if attrs.get("output_mean_var", False) else [y]


def layer_norm(attrs, inputs, is_train):
    x, gamma, beta = inputs
    axis = attrs.get("axis", -1) % x.ndim
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    mean, var = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
    eps = attrs.get("eps", 1e-5)
    y = (x - mean) / np.sqrt(var + eps) * gamma.reshape(shape) + beta.reshape(shape)
    if attrs.get("output_mean_var", False):
        return [y, mean, np.sqrt(var + eps)]
    return [y]


def l2_normalization(attrs, inputs, is_train):
    x, mode = inputs[0], attrs.get("mode", "instance")
    axes = {"instance": tuple(range(1, x.ndim)), "channel": (1,), "spatial": tuple(range(2, x.ndim))}[mode]
    return [x / np.sqrt(np.square(x).sum(axes, keepdims=True) + attrs.get("eps", 1e-10))]


def reduction(function):
    def define(attrs, inputs, is_train):
        x, axis = inputs[0], attrs.get("axis")
        axes = tuple(range(x.ndim)) if axis in (None, ()) else (axis,) if isinstance(axis, int) else tuple(axis)
        axes = tuple(a % x.ndim for a in axes)
        if attrs.get("exclude", False):
            axes = tuple(a for a in range(x.ndim) if a not in axes)
        y = function(x, axis=axes, keepdims=bool(attrs.get("keepdims", False)))
        return [y.reshape(1) if y.ndim == 0 else y]

    return define


def dot(attrs, inputs, is_train):
    a, b = inputs
    if attrs.get("transpose_a", False):
        a = a.T if a.ndim <= 2 else np.moveaxis(a, 0, -1)
    if attrs.get("transpose_b", False):
        b = b.T if b.ndim <= 2 else np.moveaxis(b, -1, 0)
    y = np.tensordot(a, b, 1)
    return [y.reshape(1) if y.ndim == 0 else y]


def batch_dot(attrs, inputs, is_train):
    a = inputs[0].swapaxes(1, 2) if attrs.get("transpose_a", False) else inputs[0]
    b = inputs[1].swapaxes(1, 2) if attrs.get("transpose_b", False) else inputs[1]
    return [a @ b]


def take_rows(attrs, inputs, is_train):
    rows, weight = inputs
    return [weight[np.clip(rows.astype(np.int64), 0, len(weight) - 1)]]


def leaky_relu(attrs, inputs, is_train):
    x, kind, slope = inputs[0], attrs.get("act_type", "leaky"), attrs.get("slope", 0.25)
    if kind == "leaky":
        return [np.where(x > 0, x, slope * x)]
    if kind == "elu":
        return [np.where(x > 0, x, slope * np.expm1(np.minimum(x, 0)))]
    if kind == "gelu":
        return [0.5 * x * (1 + ERF(x / math.sqrt(2)))]
    if kind == "prelu":
        slopes = inputs[1].reshape((1, -1) + (1,) * (x.ndim - 2)) if x.ndim > 1 else inputs[1]
        return [np.where(x > 0, x, slopes * x)]
    raise NotImplementedError(kind)


OPERATORS = {
    "Activation": activation,
    "LeakyReLU": leaky_relu,
    "FullyConnected": fully_connected,
    "Convolution": convolution,
    "Pooling": pooling,
    "BatchNorm": batch_norm,
    "LayerNorm": layer_norm,
    "L2Normalization": l2_normalization,
    "softmax": softmax_family(softmax),
    "softmin": softmax_family(lambda x, axis: softmax(-x, axis)),
    "log_softmax": softmax_family(lambda x, axis: np.log(softmax(x, axis))),
    "sum": reduction(np.sum),
    "mean": reduction(np.mean),
    "max": reduction(np.max),
    "min": reduction(np.min),
    "prod": reduction(np.prod),
    "dot": dot,
    "batch_dot": batch_dot,
    "Embedding": take_rows,
    "transpose": lambda attrs, inputs, is_train: [np.transpose(inputs[0], attrs.get("axes") or None)],
    "Flatten": lambda attrs, inputs, is_train: [inputs[0].reshape(len(inputs[0]), -1)],
    "expand_dims": lambda attrs, inputs, is_train: [np.expand_dims(inputs[0], attrs.get("axis"))],
    "Concat": lambda attrs, inputs, is_train: [np.concatenate(inputs, attrs.get("dim", 1))],
    "stack": lambda attrs, inputs, is_train: [np.stack(inputs, attrs.get("axis", 0))],
    "add_n": lambda attrs, inputs, is_train: [sum(inputs)],
    "clip": lambda attrs, inputs, is_train: [np.clip(inputs[0], attrs.get("a_min"), attrs.get("a_max"))],
}


def define_pointwise():
    for name, function in UNARY.items():
        OPERATORS[name] = lambda attrs, inputs, is_train, function=function: [function(inputs[0])]
    for name, function in SCALAR.items():
        OPERATORS[name] = lambda attrs, inputs, is_train, function=function: [function(inputs[0], attrs.get("scalar"))]
    for name, function in BINARY.items():
        define = lambda attrs, inputs, is_train, function=function: [function(*inputs)]
        OPERATORS["broadcast_" + name] = define
        OPERATORS[("elemwise_" if name in ("add", "sub", "mul", "div") else "_") + name] = define


define_pointwise()


def softmax_output(attrs, inputs, is_train):
    return [softmax(inputs[0].reshape(len(inputs[0]), -1)).reshape(inputs[0].shape)]


def cross_entropy(attrs, inputs):
    plain = {"grad_scale"}
    if set(attrs.texts) - plain or inputs[0].ndim != 2 or inputs[1].ndim != 1:
        raise NotImplementedError("attributes of SoftmaxOutput")
    rows = np.arange(len(inputs[0]))
    picked = np.log(softmax(inputs[0]))[rows, inputs[1].astype(np.int64)]
    return -picked.sum() * attrs.get("grad_scale", 1.0)


def regression(error):
    def loss(attrs, inputs):
        outputs_per_sample = inputs[0].size // len(inputs[0])
        return error(inputs[0], inputs[1].reshape(inputs[0].shape)).sum() * attrs.get("grad_scale", 1.0) / outputs_per_sample

    return loss


OPERATORS["SoftmaxOutput"] = softmax_output
OPERATORS["LinearRegressionOutput"] = lambda attrs, inputs, is_train: [inputs[0]]
OPERATORS["MAERegressionOutput"] = lambda attrs, inputs, is_train: [inputs[0]]
OPERATORS["LogisticRegressionOutput"] = lambda attrs, inputs, is_train: [sigmoid(inputs[0])]
LOSSES = {
    "SoftmaxOutput": cross_entropy,
    "LinearRegressionOutput": regression(lambda x, y: np.square(x - y) / 2),
    "MAERegressionOutput": regression(lambda x, y: abs(x - y)),
    "LogisticRegressionOutput": regression(lambda x, y: np.log1p(np.exp(x)) - y * x),
}


def evaluate(symbol, inputs, is_train):
    """Outputs of a graph, and the sum of its losses; inputs: arrays by "arg:NAME" and "aux:NAME". NotImplementedError if a
    definition is missing."""
    values, loss = [], 0.0
    for node in symbol["nodes"]:
        if node["op"] == "null":
            name = node["name"]
            values.append([inputs["arg:" + name] if "arg:" + name in inputs else inputs["aux:" + name]])
            continue
        if node["op"] not in OPERATORS:
            raise NotImplementedError(node["op"])
        attrs = Attrs(node.get("attrs", {}))
        operands = [values[entry[0]][entry[1]] for entry in node["inputs"]]
        values.append(OPERATORS[node["op"]](attrs, operands, is_train))
        if node["op"] in LOSSES:
            loss = loss + LOSSES[node["op"]](attrs, operands)
    return [values[head[0]][head[1]] for head in symbol["heads"]], loss
