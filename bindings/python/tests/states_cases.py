# SPDX-License-Identifier: Apache-2.0
"""Optimizers whose states MXNet has saved: kind, settings, type of the weights, whether the optimizer was saved with its
states, and whether these go by the names of the parameters."""

import numpy as np

NAMES = ["fc_weight", "fc_bias", "out_weight"]
SHAPES = [(2, 3), (3,), (2, 2)]


def weight(shape):
    return np.cos(np.arange(np.prod(shape))).reshape(shape)


def gradient(shape, step):
    return np.sin(np.arange(np.prod(shape)) + step).reshape(shape)


CASES = {
    "sgd": ("sgd", {"learning_rate": 0.1}, "float32", False, False),
    "sgd with momentum": ("sgd", {"learning_rate": 0.1, "momentum": 0.9}, "float32", False, False),
    "sgd by name": ("sgd", {"learning_rate": 0.1, "momentum": 0.9}, "float32", False, True),
    "sgd of float16": (
        "sgd",
        {"learning_rate": 0.1, "momentum": 0.9, "multi_precision": True},
        "float16",
        False,
        False,
    ),
    "nag": ("nag", {"learning_rate": 0.1, "momentum": 0.9}, "float32", False, False),
    "adam": ("adam", {"learning_rate": 0.1}, "float32", False, False),
    "adam with its counts": ("adam", {"learning_rate": 0.1}, "float32", True, False),
    "adam by name": ("adam", {"learning_rate": 0.1}, "float32", True, True),
    "adam of float16": ("adam", {"learning_rate": 0.1, "multi_precision": True}, "float16", True, False),
    "rmsprop": ("rmsprop", {"learning_rate": 0.1}, "float32", False, False),
    "rmsprop centered": ("rmsprop", {"learning_rate": 0.1, "centered": True}, "float32", False, False),
    "adagrad": ("adagrad", {"learning_rate": 0.1}, "float32", False, False),
    "adadelta": ("adadelta", {}, "float32", False, False),
    "adamax": ("adamax", {"learning_rate": 0.1}, "float32", True, False),
    "ftrl": ("ftrl", {"learning_rate": 0.1}, "float32", False, False),
    "ftml": ("ftml", {"learning_rate": 0.1}, "float32", True, False),
    "signum": ("signum", {"learning_rate": 0.1}, "float32", False, False),
    "dcasgd": ("dcasgd", {"learning_rate": 0.1}, "float32", False, False),
    "lamb": ("lamb", {"learning_rate": 0.1}, "float32", True, False),
}
