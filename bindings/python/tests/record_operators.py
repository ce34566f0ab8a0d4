# SPDX-License-Identifier: Apache-2.0
"""Writes operators.json: MXNet 1.9.1's results for the expressions of test_operators.py. Run it with a Python that has
MXNet."""

import json
import pathlib

import mxnet
from operator_cases import answer_all

path = pathlib.Path(__file__).with_name("operators.json")
lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in answer_all(mxnet).items()]
path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
