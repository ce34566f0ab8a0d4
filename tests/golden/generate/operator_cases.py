#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes and checks operator cases with MXNet 1.9.1.

operator_cases.py make DESCRIPTIONS.json FAMILY.json   # adds the described cases to a family, or replaces them
operator_cases.py check FAMILY.json [CASE...]          # computes stored cases anew from their stored inputs

`make` draws the inputs, computes outputs and gradients with MXNet on one thread, and compares them with an independent
float64 computation (references.py): the operator's definition, and central differences of it as gradients. It writes
nothing if these disagree by more than the tolerance. `check` prints for each case how far MXNet's values are from the
stored ones, and exits with 1 if a case is beyond its tolerance. ../README.md describes both files and how to install MXNet.
"""
import json
import os
import sys

import numpy as np

import families
import references
import run_mxnet

# rtol, atol, tol_reason by the word in a description.
TOLERANCES = {
    "exact": (0.0, 0.0, "data is moved, selected, compared or counted; no rounding is involved"),
    "arith": (3e-06, 5e-07, "a few correctly rounded float32 operations per element"),
    "func": (2e-05, 1e-06, "float32 transcendental function: a few ulp of difference between math libraries"),
    "sum": (1e-05, 2e-06, "float32 sums over a short axis; summation order is free"),
    "gemm": (1e-04, 1e-05, "float32 dot products; summation order and fused multiply-add are free"),
    "norm": (2e-04, 2e-05, "mean and variance in float32 with cancellation, then a reciprocal square root"),
    "soft": (5e-05, 2e-06, "exp and normalising sum in float32"),
    "graph": (2e-04, 5e-06, "several float32 operators in a row"),
    "f64": (1e-09, 1e-11, "float64 arithmetic; summation order is free"),
    "half": (4e-03, 2e-04, "float16 results: unit roundoff 4.9e-4, one rounding per stored value"),
}
STEP = 1e-6  # of central differences, times max(1, |x|)
MOST_ELEMENTS = 200  # of an argument, for which central differences are computed
ONEDNN_ONLY = {"_contrib_BatchNormWithReLU"}  # operators that crash MXNet when oneDNN is off
DIFFERENCE_ERROR = 1e-6  # of central differences themselves, relative to the largest element


def read_description(entry):
    """An entry of DESCRIPTIONS.json with all its defaults; inputs as objects."""
    known = {"name", "op", "attrs", "inputs", "seed", "tolerance", "note", "is_train", "loss_head"}
    if set(entry) - known or not {"name", "op", "inputs", "seed", "tolerance"} <= set(entry):
        raise ValueError("%s: members are %s" % (entry.get("name"), ", ".join(sorted(known))))
    inputs = {}
    for name, given in entry["inputs"].items():
        given = given if isinstance(given, dict) else {"shape": given}
        dtype = given.get("dtype", "float32")
        req = "null" if given.get("integers") or not dtype.startswith("float") else "write"
        inputs[name] = {"dtype": dtype, "low": -2.0, "high": 2.0, "integers": False, "grad_req": req, **given}
    defaults = {"attrs": {}, "note": "", "is_train": True, "loss_head": entry["op"] in references.LOSSES}
    return {**defaults, **entry, "inputs": inputs}


def draw(random, given, shape=None):
    shape = given["shape"] if shape is None else shape
    if given["integers"]:
        values = random.randint(int(given["low"]), int(given["high"]), shape)
    else:
        values = random.uniform(given["low"], given["high"], shape)
    return np.asarray(values).astype(given["dtype"])


def draw_inputs(entry, aux, output_shapes_of):
    """Arrays by the names of inputs.params. The same seed gives the same arrays."""
    random = np.random.RandomState(entry["seed"])
    inputs = {}
    for name, given in entry["inputs"].items():
        inputs[("aux:" if name in aux else "arg:") + name] = draw(random, given)
    for name, given in entry["inputs"].items():
        if given["grad_req"] == "add":
            inputs["grad:" + name] = draw(random, {**given, "low": -1.0, "high": 1.0})
    if not entry["loss_head"]:
        for i, output in enumerate(output_shapes_of(inputs)):
            if output.dtype.kind == "f":
                head = {"dtype": str(output.dtype), "low": -1.0, "high": 1.0, "integers": False}
                inputs["head:%d" % i] = draw(random, head, output.shape)
    return inputs


def worst(expected, found, rtol, atol):
    """The largest difference in multiples of the tolerance; infinity where a value is not a number on one side only."""
    expected, found = np.asarray(expected, np.float64), np.asarray(found, np.float64)
    same = (expected == found) | (np.isnan(expected) & np.isnan(found))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(same, 0.0, abs(expected - found) / (atol + rtol * abs(expected)))
    return float(np.where(np.isnan(ratio), np.inf, ratio).max()) if ratio.size else 0.0


def objective(symbol, description, inputs, is_train):
    """The scalar whose derivative backward computes: the losses, or outputs times head gradients."""
    outputs, loss = references.evaluate(symbol, inputs, is_train)
    if description["loss_head"]:
        return loss
    return sum((inputs["head:%d" % i] * output).sum() for i, output in enumerate(outputs) if "head:%d" % i in inputs)


def central_differences(symbol, description, inputs, name, random):
    """Flat indices into an argument, and the derivatives there."""
    size = inputs["arg:" + name].size
    picked = np.arange(size) if size <= MOST_ELEMENTS else random.choice(size, MOST_ELEMENTS, replace=False)
    derivatives = []
    for index in picked:
        sides = []
        for sign in (1, -1):
            moved = inputs["arg:" + name].copy()
            step = STEP * max(1.0, abs(moved.flat[index]))
            moved.flat[index] += sign * step
            sides.append(objective(symbol, description, {**inputs, "arg:" + name: moved}, description["is_train"]))
        derivatives.append((sides[0] - sides[1]) / (2 * step))
    return picked, np.array(derivatives)


def verify(symbol, description, inputs, expected):
    """Compares MXNet's values with float64. Returns the member `verified` of a description; raises ValueError if they
    disagree, NotImplementedError if references.py lacks an operator."""
    rtol, atol = description["rtol"], description["atol"]
    wide = run_mxnet.as_float64(inputs)
    largest, names = 0.0, []
    outputs, _ = references.evaluate(symbol, wide, description["is_train"])
    for i, output in enumerate(outputs):
        names.append(("output:%d" % i, worst(output, expected["output:%d" % i], rtol, atol)))
    random = np.random.RandomState(0)
    for name, req in description["grad_req"].items():
        if req == "null":
            continue
        picked, derivatives = central_differences(symbol, description, wide, name, random)
        if req == "add":
            derivatives = derivatives + wide["grad:" + name].flat[picked]
        error = DIFFERENCE_ERROR * max(1.0, abs(derivatives).max())
        names.append(("grad:" + name, worst(derivatives, expected["grad:" + name].flat[picked], rtol, atol + error)))
    for name, ratio in names:
        if not ratio <= 1:
            raise ValueError("%s: MXNet and float64 differ by %.3g times the tolerance" % (name, ratio))
        largest = max(largest, ratio)
    verified = {"forward": "numpy float64"}
    if any(name.startswith("grad:") for name, _ in names):
        verified["gradient"] = "central differences of the numpy float64 reference"
    return {**verified, "worst_fraction_of_tolerance": float("%.3g" % largest)}


def make_case(entry):
    entry = read_description(entry)
    symbol = run_mxnet.compose(entry["op"], entry["attrs"], list(entry["inputs"]))
    arguments, aux, output_names = run_mxnet.lists(symbol)
    rtol, atol, reason = TOLERANCES[entry["tolerance"]]
    description = {
        "op": entry["op"],
        "kind": "symbol",
        "attrs": entry["attrs"],
        "ops": [entry["op"]],
        "arguments": arguments,
        "auxiliary_states": aux,
        "is_train": entry["is_train"],
        "grad_req": {name: entry["inputs"][name]["grad_req"] if entry["is_train"] else "null" for name in arguments},
        "loss_head": entry["loss_head"],
    }
    no_gradients = {**description, "grad_req": dict.fromkeys(arguments, "null")}

    def outputs_of(inputs):
        return run_mxnet.Bound(symbol, no_gradients, inputs).forward(entry["is_train"])

    inputs = draw_inputs(entry, aux, outputs_of)
    expected = run_mxnet.run_symbol(symbol, description, inputs)
    outputs = [expected["output:%d" % i] for i in range(len(output_names))]
    has_eval = False
    for i, output in enumerate(outputs):
        if np.array_equal(expected["eval:%d" % i], output, equal_nan=True):
            del expected["eval:%d" % i]
        else:
            has_eval = True
    for name in aux:
        if np.array_equal(expected["aux:" + name], inputs["aux:" + name]):
            del expected["aux:" + name]

    def described(array):
        return {"shape": list(array.shape), "dtype": str(array.dtype)}

    description["inputs"] = {name: described(inputs["arg:" + name]) for name in arguments}
    if aux:
        description["aux"] = {name: described(inputs["aux:" + name]) for name in aux}
    description["outputs"] = [{**described(output), "name": name} for output, name in zip(outputs, output_names)]
    description.update(has_eval=has_eval, rtol=rtol, atol=atol, tol_reason=reason, note=entry["note"])
    description["verified"] = verify(symbol, description, inputs, expected)
    description["generated"] = {"by": "operator_cases.py with MXNet " + run_mxnet.mx.__version__, "seed": entry["seed"]}
    encode = lambda arrays: {name: families.encode(array) for name, array in arrays.items()}
    return families.Case(description, symbol, encode(inputs), encode(expected))


def make(descriptions_path, family_path):
    cases = families.read_family(family_path) if os.path.exists(family_path) else {}
    for entry in families.read_json(descriptions_path):
        try:
            cases[entry["name"]] = make_case(entry)
        except NotImplementedError as error:
            raise ValueError("%s: references.py does not define %s" % (entry["name"], error))
        except ValueError as error:
            raise ValueError("%s: %s" % (entry["name"], error))
        print("%s: %s" % (entry["name"], json.dumps(cases[entry["name"]].description["verified"])))
    families.write_family(family_path, cases)


def check_case(case):
    """The worst difference between MXNet's and the stored values in multiples of the tolerance, whether all bits are
    equal, and what float64 says."""
    description = case.description
    decode = lambda records: {name: families.decode(record) for name, record in records.items()}
    inputs, stored = decode(case.inputs), decode(case.expected)
    if case.symbol is None:
        found, verdict = run_mxnet.run_imperative(description, inputs), "not compared with float64"
    else:
        found = run_mxnet.run_symbol(case.symbol, description, inputs)
        try:
            verified = verify(run_mxnet.updated(case.symbol), description, inputs, stored)
            verdict = "float64 agrees, %s of the tolerance" % verified["worst_fraction_of_tolerance"]
        except NotImplementedError as error:
            verdict = "not compared with float64: no reference for %s" % error
        except ValueError as error:
            verdict = "float64 disagrees: %s" % error
    largest, bits_equal = 0.0, True
    for name, array in stored.items():
        if found[name].shape != array.shape or found[name].dtype != array.dtype:
            return float("inf"), False, verdict
        largest = max(largest, worst(array, found[name], description["rtol"], description["atol"]))
        bits_equal = bits_equal and found[name].tobytes() == array.tobytes()
    return largest, bits_equal, verdict


def check(family_path, names):
    cases, num_wrong = families.read_family(family_path), 0
    for name in names or cases:
        if ONEDNN_ONLY & set(cases[name].description["ops"]):
            print("%s: not computed: MXNet has this operator only with oneDNN" % name)
            continue
        try:
            ratio, bits_equal, verdict = check_case(cases[name])
        except run_mxnet.mx.base.MXNetError as error:
            ratio, bits_equal, verdict = float("inf"), False, "MXNet fails: " + str(error).strip().split("\n")[-1]
        num_wrong += not ratio <= 1
        print("%s: %s; %s" % (name, "bit for bit" if bits_equal else "%.3g of the tolerance" % ratio, verdict))
    return 1 if num_wrong else 0


def main(args):
    if len(args) == 3 and args[0] == "make":
        try:
            make(args[1], args[2])
        except ValueError as error:
            print(error, file=sys.stderr)
            return 1
        return 0
    if len(args) >= 2 and args[0] == "check":
        return check(args[1], args[2:])
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
