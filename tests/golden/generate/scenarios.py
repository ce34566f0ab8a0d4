#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks and records scenarios of groups with MXNet 1.9.1, several devices being cpu(0), cpu(1) and so on.

scenarios.py check SCENARIO...    # folders; runs the steps and compares the results with what the steps expect
scenarios.py record SCENARIO      # replaces each "expect": "record" by what MXNet returned, arrays in expected.params

A scenario is written by hand (../README.md describes its format), with "expect": "record" on the steps whose results
matter; `record` fills these in. Steps that carry `contract` depart from MXNet and are not compared. Covered are the steps of
groups, of metrics and of SGD updates; a scenario with other steps is reported as not covered.
"""
import json
import os
import sys

import numpy as np

import families
from run_mxnet import CPU, mx, to_mxnet



def context(text):
    return mx.cpu(int(text[len("cpu(") : -1]))


def descriptors(shapes):
    return shapes and [mx.io.DataDesc(d["name"], d["shape"], d.get("dtype", "float32"), d.get("layout")) for d in shapes]


def numpy_of(arrays):
    """NumPy arrays in place of MXNet's, in nested lists; None stays."""
    if isinstance(arrays, (list, tuple)):
        return [numpy_of(array) for array in arrays]
    return None if arrays is None else arrays.asnumpy()


def made_metric(description):
    if description["kind"] == "composite":
        return mx.metric.CompositeEvalMetric([made_metric(child) for child in description["children"]])
    return mx.metric.create(description["kind"], **description.get("args", {}))


def name_values(pairs):
    return [[name, float(value)] for name, value in pairs]


class Optimizer:
    """SGD in one of the modes of create_sgd."""

    def __init__(self, group, symbol, step):
        self.mode, self.num_devices = step["mode"], len(group.contexts)
        indices = range(len(group.param_names))
        if self.mode == "on_store":
            names = {i: group.param_names[i] for i in indices}
        else:
            names = {i * self.num_devices + k: group.param_names[i] for i in indices for k in range(self.num_devices)}
        settings = {key: step[key] for key in ("momentum", "wd", "clip_gradient") if step.get(key) is not None}
        self.sgd = mx.optimizer.SGD(
            sym=symbol,
            param_idx2name=names,
            learning_rate=step["learning_rate"],
            rescale_grad=step.get("rescale_grad", 1.0),
            **settings,
        )
        self.has_decay = step.get("wd", 0) != 0
        self.store = None if self.mode == "no_store" else mx.kv.create("local")
        self.updater = mx.optimizer.get_updater(self.sgd)
        if self.mode == "on_store":
            self.store.set_optimizer(self.sgd)
            for i, arrays in enumerate(group.param_arrays):
                self.store.init(group.param_names[i], arrays[0])
                self.store.pull(group.param_names[i], arrays)
        elif self.store:
            for name, arrays in zip(group.param_names, group.param_arrays):
                self.store.init(name, arrays[0])

    def multipliers(self, group):
        factor = 1 if self.mode == "on_store" else self.num_devices
        lr, wd = {}, {}
        for i, name in enumerate(group.param_names):
            base_lr, base_wd = self.sgd.lr, self.sgd.wd
            lr[name] = self.sgd._get_lr(i * factor) / base_lr
            wd[name] = self.sgd._get_wd(i * factor) / base_wd if self.has_decay else None
        return {"lr_mult": lr, "wd_mult": wd}

    def update(self, group):
        for i, (name, args, grads) in enumerate(zip(group.param_names, group.param_arrays, group.grad_arrays)):
            if grads[0] is None:
                continue
            if self.store:
                self.store.push(name, grads)
                self.store.pull(name, args if self.mode == "on_store" else grads)
            if self.mode != "on_store":
                for k, (arg, grad) in enumerate(zip(args, grads)):
                    self.updater(i * self.num_devices + k, grad, arg)


class Replay:
    """The objects of a scenario, and its steps as methods named like them."""

    def __init__(self, folder, scenario):
        read = lambda file: {name: families.decode(record) for name, record in families.read_params(file).items()}
        self.files = {}
        for key, file in scenario["files"].items():
            path = self.path_of(folder, file)
            self.files[key] = read(path) if os.path.exists(path) else {}
        self.symbols = {key: mx.sym.load(os.path.join(folder, file)) for key, file in scenario["symbols"].items()}
        self.groups, self.metrics, self.optimizers = {}, {}, {}

    @staticmethod
    def path_of(folder, file):
        if not file.startswith("@"):
            return os.path.join(folder, file)
        above = os.path.abspath(folder)
        while above != os.path.dirname(above):
            for candidate in (os.path.join(above, file[1:]), os.path.join(above, "examples", file[1:])):
                if os.path.exists(candidate):
                    return candidate
            above = os.path.dirname(above)
        raise ValueError("there is no " + file[1:])

    def array(self, reference):
        file, name = reference["array"].split("/", 1)
        array = self.files[file][name]
        begin, end = reference.get("rows", (0, None))
        return array[begin:end] if "rows" in reference else array

    def arrays(self, references):
        return references and [to_mxnet(self.array(reference)) for reference in references]

    def named(self, references):
        return {name: to_mxnet(self.array(reference)) for name, reference in (references or {}).items()}

    # ---- groups ----

    def symbol_info(self, step):
        symbol = self.symbols[step["symbol"]]
        nodes = json.loads(symbol.tojson())["nodes"]
        return {
            "arguments": symbol.list_arguments(),
            "aux": symbol.list_auxiliary_states(),
            "outputs": symbol.list_outputs(),
            "num_nodes": len(nodes),
        }

    def create_group(self, step):
        if step.get("rounding", "half_even") != "half_even":
            raise NotImplementedError("rounding half_up")
        group = mx.module.executor_group.DataParallelExecutorGroup(
            self.symbols[step["symbol"]],
            [context(text) for text in step["contexts"]],
            step["workload"],
            descriptors(step["data_shapes"]),
            descriptors(step["label_shapes"]),
            step["param_names"],
            step["for_training"],
            step.get("inputs_need_grad", False),
            shared_group=self.groups.get(step.get("shared_group")),
            fixed_param_names=step.get("fixed_param_names"),
            grad_req=step.get("grad_req", "write"),
            state_names=step.get("state_names"),
        )
        self.groups[step["group"]] = group
        executor, names = group.execs[0], group.arg_names
        axes = lambda shapes: None if shapes is None else [mx.io.DataDesc.get_batch_axis(d.layout) for d in shapes]
        return {
            **self.shapes_of(group),
            "data_axes": axes(group.data_shapes),
            "label_axes": axes(group.label_shapes),
            "output_axes": list(group.output_layouts),
            "grad_req": dict(group.grad_req),
            "arg_shapes": [{name: list(e.arg_dict[name].shape) for name in names} for e in group.execs],
            "arg_types": {name: np.dtype(executor.arg_dict[name].dtype).name for name in names},
        }

    @staticmethod
    def shapes_of(group):
        return {"batch_size": group.batch_size, "slices": [[s.start, s.stop] for s in group.slices]}

    def reshape(self, step):
        group = self.groups[step["group"]]
        group.reshape(descriptors(step["data_shapes"]), descriptors(step["label_shapes"]))
        return self.shapes_of(group)

    def set_params(self, step):
        arg, aux = self.named(step.get("arg")), self.named(step.get("aux"))
        self.groups[step["group"]].set_params(arg, aux, allow_extra=step.get("allow_extra", False))

    def set_device_params(self, step):
        executor = self.groups[step["group"]].execs[step["device"]]
        executor.copy_params_from(self.named(step.get("arg")), self.named(step.get("aux")))

    def get_params(self, step):
        group, types = self.groups[step["group"]], step.get("target_types", {})
        wanted = lambda name: step.get("targets") is None or name in step["targets"]

        def targets(names, arrays):
            pairs = [(name, of[0]) for name, of in zip(names, arrays) if wanted(name)]
            return {name: mx.nd.zeros(a.shape, CPU, types.get(name, a.dtype)) for name, a in pairs}

        arg, aux = targets(group.param_names, group.param_arrays), targets(group.aux_names, group.aux_arrays)
        group.get_params(arg, aux)
        return {
            "arg": {name: array.asnumpy() for name, array in arg.items()},
            "aux": {name: array.asnumpy() for name, array in aux.items()},
        }

    def forward(self, step):
        batch = mx.io.DataBatch(self.arrays(step["data"]), self.arrays(step.get("label")))
        self.groups[step["group"]].forward(batch, step.get("is_train"))

    def backward(self, step):
        self.groups[step["group"]].backward(self.arrays(step.get("head_grads")))

    def output_shapes(self, step):
        return {"shapes": [[name, list(shape)] for name, shape in self.groups[step["group"]].get_output_shapes()]}

    def get_outputs(self, step):
        group = self.groups[step["group"]]
        return {"values": numpy_of(group.get_outputs(step["merge"], step.get("begin", 0), step.get("end")))}

    def get_input_grads(self, step):
        return {"values": numpy_of(self.groups[step["group"]].get_input_grads(step["merge"]))}

    def get_states(self, step):
        return {"values": numpy_of(self.groups[step["group"]].get_states(step["merge"]))}

    def set_states(self, step):
        group = self.groups[step["group"]]
        if step.get("from_outputs") is not None:
            outputs = group.get_outputs(False)
            group.set_states([outputs[k] for k in step["from_outputs"]], None)
        else:
            states = step.get("states")
            group.set_states(states and [self.arrays(devices) for devices in states], step.get("value"))

    def by_name(self, names, arrays, step):
        wanted = step.get("names") or names
        return {"values": {name: numpy_of(of) for name, of in zip(names, arrays) if name in wanted}}

    def param_arrays(self, step):
        group = self.groups[step["group"]]
        return self.by_name(group.param_names, group.param_arrays, step)

    def param_grads(self, step):
        group = self.groups[step["group"]]
        return self.by_name(group.param_names, group.grad_arrays, step)

    def aux_arrays(self, step):
        group = self.groups[step["group"]]
        return self.by_name(group.aux_names, group.aux_arrays, step)

    def fill_grads(self, step):
        group = self.groups[step["group"]]
        for arrays in group.grad_arrays + (group.input_grad_arrays if step.get("inputs") else []):
            for array in arrays:
                if array is not None:
                    array[:] = step["value"]

    # ---- metrics ----

    def create_metric(self, step):
        self.metrics[step["metric"]] = made_metric(step)

    def metric_of(self, step):
        metric = self.metrics[step["metric"]]
        pairs = metric.get_global_name_value() if step.get("global") else metric.get_name_value()
        return {"metric": name_values(pairs)}

    def update_metric(self, step):
        pre_sliced = step.get("pre_sliced", False)
        labels = [self.arrays(of) for of in step["labels"]] if pre_sliced else self.arrays(step["labels"])
        self.groups[step["group"]].update_metric(self.metrics[step["metric"]], labels, pre_sliced)
        return self.metric_of(step)

    def metric_update(self, step):
        self.metrics[step["metric"]].update(self.arrays(step["labels"]), self.arrays(step["preds"]))
        return self.metric_of(step)

    def get_metric(self, step):
        return self.metric_of(step)

    def reset_metric(self, step):
        metric = self.metrics[step["metric"]]
        metric.reset_local() if step.get("local") else metric.reset()

    # ---- updates ----

    def create_sgd(self, step):
        group = self.groups[step["group"]]
        self.optimizers[step["optimizer"]] = made = Optimizer(group, self.symbols[step["symbol"]], step)
        return made.multipliers(group)

    def sgd_update(self, step):
        optimizer = self.optimizers[step["optimizer"]]
        if step.get("learning_rate") is not None:
            optimizer.sgd.lr = step["learning_rate"]
            if optimizer.mode == "on_store":
                optimizer.store._updater.optimizer.lr = step["learning_rate"]
        optimizer.update(self.groups[step["group"]])


def differences(expected, found, where, rtol, atol, replay):
    """A line for each difference, by the rules of ../README.md."""
    if isinstance(expected, dict) and "array" in expected:
        array = replay.array(expected)
        if not isinstance(found, np.ndarray) or found.shape != array.shape or found.dtype != array.dtype:
            return ["%s: expected %s %s" % (where, array.dtype, array.shape)]
        own = expected.get("atol", atol)
        return [] if np.allclose(found, array, rtol, own, equal_nan=True) else ["%s: values differ" % where]
    if isinstance(expected, dict):
        lines = []
        for key, value in expected.items():
            if not isinstance(found, dict) or key not in found:
                lines.append("%s.%s: not found" % (where, key))
            else:
                lines += differences(value, found[key], where + "." + key, rtol, atol, replay)
        return lines
    if isinstance(expected, list):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return ["%s: expected %s, found %s" % (where, expected, found)]
        pairs = enumerate(zip(expected, found))
        return [line for i, (e, f) in pairs for line in differences(e, f, "%s[%d]" % (where, i), rtol, atol, replay)]
    if expected in ("nan", "inf", "-inf") or isinstance(expected, float):
        same = isinstance(found, (int, float)) and np.allclose(found, float(expected), rtol, atol, equal_nan=True)
    else:
        same = expected == found
    return [] if same else ["%s: expected %s, found %s" % (where, expected, found)]


def run_step(replay, step):
    """The result of a step, or an MXNetError, ValueError and the like that it raises."""
    method = getattr(Replay, step["op"], None)
    if method is None or "manager" in step or "module" in step:
        raise NotImplementedError(step["op"])
    return method(replay, step)


def check(folder):
    scenario = families.read_json(os.path.join(folder, "scenario.json"))
    replay, lines = Replay(folder, scenario), []
    for number, step in enumerate(scenario["steps"]):
        expected, where = step.get("expect") or {}, "step %d %s" % (number, step["op"])
        rtol, atol = step.get("rtol", scenario["rtol"]), step.get("atol", scenario["atol"])
        try:
            found = run_step(replay, step)
        except NotImplementedError as error:
            return lines, str(error)
        except Exception as error:  # whatever MXNet's Python code raises
            if "error" not in expected and "contract" not in step:
                lines.append("%s: %s" % (where, str(error).strip().split("\n")[-1]))
            continue
        if "contract" in step or "contract_part" in step:
            continue
        if "error" in expected:
            lines.append("%s: expected an error" % where)
        else:
            lines += differences(expected, found, where, rtol, atol, replay)
    return lines, ""


def reference_to(found, name, recorded):
    """A found value as a step expects it; arrays go to `recorded`."""
    if isinstance(found, np.ndarray):
        recorded[name] = families.encode(found)
        return {"array": "expected/" + name}
    if isinstance(found, dict):
        return {key: reference_to(value, "%s.%s" % (name, key), recorded) for key, value in found.items()}
    if isinstance(found, (list, tuple)):
        return [reference_to(value, "%s.%d" % (name, i), recorded) for i, value in enumerate(found)]
    if isinstance(found, float) and not np.isfinite(found):
        return str(found)
    return found


def record(folder):
    path = os.path.join(folder, "scenario.json")
    scenario = families.read_json(path)
    expected_path = os.path.join(folder, scenario["files"].setdefault("expected", "expected.params"))
    recorded = families.read_params(expected_path) if os.path.exists(expected_path) else {}
    replay = Replay(folder, scenario)
    for number, step in enumerate(scenario["steps"]):
        found = run_step(replay, step)
        if step.get("expect") == "record":
            step["expect"] = reference_to(found, "s%03d" % number, recorded)
    if recorded:
        families.write_params(expected_path, recorded)
    head = json.dumps({key: value for key, value in scenario.items() if key != "steps"})
    steps = ",\n".join(json.dumps(step) for step in scenario["steps"])
    with open(path, "w", encoding="utf-8") as file:
        file.write('%s,\n"steps": [\n%s\n]}\n' % (head[:-1], steps))


def main(args):
    if len(args) == 2 and args[0] == "record":
        record(args[1])
        return 0
    if len(args) < 2 or args[0] != "check":
        print(__doc__)
        return 2
    num_wrong = 0
    for folder in args[1:]:
        lines, missing = check(folder)
        verdict = "differs" if lines else "not covered: " + missing if missing else "as expected"
        num_wrong += bool(lines)
        print("\n  ".join(["%s: %s" % (os.path.basename(os.path.normpath(folder)), verdict)] + (lines or [])))
    return 1 if num_wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
