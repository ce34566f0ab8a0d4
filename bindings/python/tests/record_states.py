# SPDX-License-Identifier: Apache-2.0
"""Writes mxnet_states.json: states that MXNet 1.9.1 has saved after three updates, and the weights before and after two
more. Run it with a Python that has MXNet."""

import base64
import json
import pathlib

import mxnet
import numpy as np
from states_cases import CASES, NAMES, SHAPES, gradient, weight


def record(kind, settings, dtype, dump, by_name):
    keys = NAMES if by_name else range(len(NAMES))
    names = {} if by_name else {i: name for i, name in enumerate(NAMES)}

    def made():
        return mxnet.optimizer.get_updater(mxnet.optimizer.create(kind, param_idx2name=names, **settings))

    weights = [mxnet.nd.array(weight(shape), dtype=dtype) for shape in SHAPES]

    def update(updater, steps):
        for step in steps:
            for key, array in zip(keys, weights):
                updater(key, mxnet.nd.array(gradient(array.shape, step), dtype=dtype), array)
        return [array.asnumpy().astype(float).ravel().tolist() for array in weights]

    first = made()
    before = update(first, (1, 2, 3))
    states = first.get_states(dump_optimizer=dump)
    second = made()
    second.set_states(states)
    return {"states": base64.b64encode(states).decode(), "before": before, "after": update(second, (4, 5))}


path = pathlib.Path(__file__).with_name("mxnet_states.json")
lines = [f"{json.dumps(name)}: {json.dumps(record(*case))}" for name, case in CASES.items()]
path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
