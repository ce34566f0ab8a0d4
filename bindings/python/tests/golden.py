# SPDX-License-Identifier: Apache-2.0
"""Replays scenarios of tests/golden/group, which record what MXNet 1.9.1 computed, through the classes of this package.
The format is described in tests/golden/README.md."""

import json
import math
import os

import numpy as np

import cohort
from cohort import DataBatch, DataDesc, Monitor, NDArray, _abi, nd, sym
from cohort._library import lib
from cohort.errors import CohortError
from cohort.executor_group import DataParallelExecutorGroup
from cohort.executor_manager import DataParallelExecutorManager, _split_input_slice

CLASS_OF_WORD = {
    **dict.fromkeys(
        "too_many_slices empty_data_shapes bad_grad_req head_grad_required no_such_output count_mismatch not_binary "
        "bad_arguments".split(),
        cohort.InvalidArgumentError,
    ),
    **dict.fromkeys(
        "unknown_input unknown_parameter missing_parameter missing_argument missing_target".split(),
        cohort.UnknownNameError,
    ),
    **dict.fromkeys(
        "batch_size_mismatch shape_mismatch incomplete_shapes unspecified_shape_changed up_sizing_not_allowed".split(),
        cohort.ShapeError,
    ),
    "type_mismatch": cohort.DtypeError,
    "not_supported": cohort.UnsupportedError,
    **dict.fromkeys("already_bound not_for_training inputs_need_grad_false no_labels".split(), cohort.StateError),
}
MODE = {"on_store": "store", "per_device": "device", "no_store": "none"}


class OptimizerCase:
    """An optimizer of tests/golden/optimizers, which updates a few parameters; half-way its states are reloaded."""

    def __init__(self, folder):
        with open(os.path.join(folder, "optimizer.json"), encoding="utf-8") as file:
            self.head = json.load(file)
        self.arrays = nd.load(os.path.join(folder, "arrays.params"))

    def create(self):
        made = cohort.optimizer.create(self.head["optimizer"], self.head.get("schedule"), **self.head["settings"])
        for param in self.head["params"]:
            mults = (self.head.get(key, {}).get(param, -1) for key in ("lr_mult", "wd_mult"))
            made.set_mult(param, *mults)
        return made

    def run(self):
        """Runs all steps; returns a line for each weight that differs."""
        failures = []
        made = self.create()
        weights = {param: self.arrays["weight:0:" + param].copy() for param in self.head["params"]}
        for step in range(1, self.head["steps"] + 1):
            if step == self.head["steps"] // 2:
                states = made.get_states()
                made = self.create()
                made.set_states(states)
            for param, weight in weights.items():
                made.update(param, weight, self.arrays[f"grad:{step}:{param}"])
                found = weight.asnumpy().astype(np.float64)
                expected = self.arrays[f"weight:{step}:{param}"].asnumpy().astype(np.float64)
                if not np.allclose(found, expected, self.head["rtol"], self.head["atol"]):
                    failures.append(f"weight:{step}:{param}: {np.abs(found - expected).max()} off")
        return failures


class Source:
    """The arguments that a manager is created from."""

    def __init__(self, batch_size, data, label, key):
        self.batch_size, self.provide_data, self.provide_label, self.default_bucket_key = batch_size, data, label, key


class Scenario:
    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "scenario.json"), encoding="utf-8") as file:
            self.head = json.load(file)
        self.objects, self.files, self.symbols = {}, {}, {}

    @property
    def level(self):
        return self.head["level"]

    def run(self):
        """Runs all steps; returns a line for each difference."""
        failures = []
        for number, step in enumerate(self.head["steps"]):
            place = f"step {number} {step['op']}: "
            expected = step.get("expect")
            error = expected.get("error") if isinstance(expected, dict) else None
            try:
                found = getattr(self, "step_" + step["op"])(step)
            except CohortError as why:
                if not error:
                    return [*failures, f"{place}{type(why).__name__}: {why}"]
                kind = CLASS_OF_WORD[error["class"]]
                if not isinstance(why, kind):
                    failures.append(f"{place}expected {kind.__name__}, found {type(why).__name__}: {why}")
                continue
            if error:
                failures.append(f"{place}expected an error ({error['class']}), found success")
            elif expected is not None:
                tolerance = [step.get(key, self.head.get(key, 0)) for key in ("rtol", "atol")]
                failures += [place + line for line in self.differences(expected, found, "", *tolerance)]
        return failures

    # ---- what is expected

    def differences(self, expected, found, what, rtol, atol):
        if isinstance(expected, dict) and "array" in expected:
            if not isinstance(found, NDArray):
                return [f"{what}: expected an array, found {found!r}"]
            return array_differences(self.array(expected), found, what, rtol, expected.get("atol", atol))
        if isinstance(expected, dict):
            lines = []
            for key, value in expected.items():
                if not isinstance(found, dict) or key not in found:
                    lines.append(f"{what}.{key}: is not there")
                else:
                    lines += self.differences(value, found[key], f"{what}.{key}", rtol, atol)
            return lines
        if isinstance(expected, list):
            if not isinstance(found, (list, tuple)) or len(found) != len(expected):
                return [f"{what}: expected a list of {len(expected)}, found {found!r}"]
            pairs = enumerate(zip(expected, found))
            return [line for i, (e, f) in pairs for line in self.differences(e, f, f"{what}[{i}]", rtol, atol)]
        if expected is None or isinstance(expected, bool) or found is None:
            return [] if expected == found else [f"{what}: expected {expected!r}, found {found!r}"]
        if isinstance(expected, str) and not isinstance(found, (int, float)):
            return [] if expected == found else [f"{what}: expected {expected!r}, found {found!r}"]
        e, f = float(expected), float(found)
        if e == f or math.isnan(e) and math.isnan(f) or abs(f - e) <= atol + rtol * abs(e):
            return []
        return [f"{what}: expected {expected}, found {found}"]

    # ---- what a scenario names

    def path_of(self, name):
        if not name.startswith("@"):
            return os.path.join(self.folder, name)
        above = self.folder
        for _ in range(5):
            for place in (os.path.join(above, name[1:]), os.path.join(above, "examples", name[1:])):
                if os.path.exists(place):
                    return place
            above = os.path.join(above, "..")
        raise AssertionError(f"there is no {name} above {self.folder}")

    def array(self, reference):
        if reference is None:
            return None
        key, name = reference["array"].split("/", 1)
        if key not in self.files:
            self.files[key] = nd.load(self.path_of(self.head["files"][key]))
        array = self.files[key][name]
        return array.slice(*reference["rows"]) if "rows" in reference else array

    def arrays(self, references):
        return None if references is None else [self.array(reference) for reference in references]

    def named(self, references):
        return {name: self.array(reference) for name, reference in (references or {}).items()}

    def symbol(self, key):
        if key not in self.symbols:
            self.symbols[key] = sym.load(self.path_of(self.head["symbols"][key]))
        return self.symbols[key]

    def keep(self, kind, step, made):
        self.objects[kind, step[kind]] = made
        return made

    def object(self, kind, step):
        return self.objects[kind, step[kind]]

    def group(self, step):
        return self.object("group", step) if "group" in step else self.object("manager", step).execgrp

    @staticmethod
    def descs(references):
        if references is None:
            return None
        return [
            DataDesc(one["name"], one["shape"], one.get("dtype") or "float32", one.get("layout") or "NCHW")
            for one in references
        ]

    def batch(self, data, label, **more):
        return DataBatch(self.arrays(data), self.arrays(label), **more)

    # ---- symbols and slices

    def step_symbol_info(self, step):
        symbol = self.symbol(step["symbol"])
        return {
            "arguments": symbol.list_arguments(),
            "aux": symbol.list_auxiliary_states(),
            "outputs": symbol.list_outputs(),
            "num_nodes": symbol.num_nodes,
        }

    def step_split_slices(self, step):
        if step.get("rounding", "half_even") == "half_even":
            return {"slices": pairs(_split_input_slice(step["batch_size"], step["workload"]))}
        weights = step["workload"]
        begin, end = (_abi.c_int64 * len(weights))(), (_abi.c_int64 * len(weights))()
        lib.cohort_split_slices(
            step["batch_size"],
            (_abi.c_double * len(weights))(*weights),
            len(weights),
            _abi.Rounding.HALF_UP,
            begin,
            end,
        )
        return {"slices": [[b, e] for b, e in zip(begin, end)]}

    # ---- groups

    def step_create_group(self, step):
        shared = step.get("shared_group")
        group = DataParallelExecutorGroup(
            self.symbol(step["symbol"]),
            step["contexts"],
            step.get("workload"),
            self.descs(step["data_shapes"]),
            self.descs(step.get("label_shapes")),
            step.get("param_names") or [],
            step.get("for_training", True),
            step.get("inputs_need_grad", False),
            None if shared is None else self.objects["group", shared],
            fixed_param_names=step.get("fixed_param_names"),
            grad_req=step.get("grad_req"),
            state_names=step.get("state_names"),
            rounding=step.get("rounding") or "half_even",
        )
        self.keep("group", step, group)
        args = [executor.arg_dict for executor in group.execs]
        found = {
            "batch_size": group.batch_size or 0,
            "data_axes": group.data_layouts,
            "label_axes": group.label_layouts,
            "output_axes": group.output_layouts,
            "grad_req": group.grad_req,
            "arg_shapes": [{name: array.shape for name, array in device.items()} for device in args],
            "arg_types": {name: str(array.dtype) for name, array in args[0].items()},
        }
        if group.batch_size:
            found["slices"] = pairs(group.slices)
        return found

    def step_bind(self, step):
        self.group(step).bind_exec(self.descs(step["data_shapes"]), self.descs(step.get("label_shapes")))

    def step_reshape(self, step):
        group = self.group(step)
        group.reshape(self.descs(step["data_shapes"]), self.descs(step.get("label_shapes")))
        found = {"batch_size": group.batch_size or 0}
        if group.batch_size:
            found["slices"] = pairs(group.slices)
        return found

    def step_forward(self, step):
        self.group(step).forward(self.batch(step["data"], step.get("label")), step.get("is_train"))

    def step_forward_presliced(self, step):
        labels = step.get("device_label") or [None] * len(step["device_data"])
        batches = [self.batch(data, label) for data, label in zip(step["device_data"], labels)]
        self.group(step).forward(batches, step.get("is_train"))

    def step_backward(self, step):
        self.group(step).backward(self.arrays(step.get("head_grads")))

    def step_output_shapes(self, step):
        return {"shapes": self.group(step).get_output_shapes()}

    def step_get_outputs(self, step):
        return {"values": self.group(step).get_outputs(step["merge"], step.get("begin", 0), step.get("end"))}

    def step_get_input_grads(self, step):
        return {"values": self.group(step).get_input_grads(step["merge"])}

    def step_set_params(self, step):
        extra = step.get("allow_extra", False)
        self.group(step).set_params(self.named(step.get("arg")), self.named(step.get("aux")), extra)

    def step_set_device_params(self, step):
        executor = self.group(step).execs[step["device"]]
        executor.copy_params_from(self.named(step.get("arg")), self.named(step.get("aux")))

    def targets(self, step, group):
        """Zeros as targets for the means, of the type that the step asks for; only of the names it gives."""
        names = group._names(_abi.GroupList.PARAMS), group.symbol.list_auxiliary_states()
        types = step.get("target_types") or {}
        made = []
        for several, arrays in zip(names, (group.param_arrays, group.aux_arrays)):
            wanted = step["targets"] if step.get("targets") is not None else several
            entries = zip(several, arrays)
            made.append(
                {name: nd.zeros(a[0].shape, dtype=types.get(name, a[0].dtype)) for name, a in entries if name in wanted}
            )
        return made

    def step_get_params(self, step):
        group = self.group(step)
        args, aux = self.targets(step, group)
        group.get_params(args, aux)
        return {"arg": args, "aux": aux}

    def values(self, step, names, arrays):
        every = dict(zip(names, arrays))
        return {"values": {name: every[name] for name in step.get("names") or every}}

    def step_param_arrays(self, step):
        group = self.group(step)
        return self.values(step, group._names(_abi.GroupList.PARAMS), group.param_arrays)

    def step_param_grads(self, step):
        group = self.group(step)
        return self.values(step, group._names(_abi.GroupList.PARAMS), group.grad_arrays)

    def step_aux_arrays(self, step):
        group = self.group(step)
        return self.values(step, group.symbol.list_auxiliary_states(), group.aux_arrays)

    def step_fill_grads(self, step):
        group = self.group(step)
        lists = group.grad_arrays + (group.input_grad_arrays if step.get("inputs") else [])
        for array in [array for entry in lists for array in entry if array is not None]:
            array.set(step["value"])

    def step_get_states(self, step):
        return {"values": self.group(step).get_states(step["merge"])}

    def step_set_states(self, step):
        group, states = self.group(step), step.get("states")
        given = None if states is None else [self.arrays(state) for state in states]
        if step.get("from_outputs") is not None:
            outputs = group.get_outputs(False)
            given = [outputs[i] for i in step["from_outputs"]]
        group.set_states(given, step.get("value"))

    # ---- metrics, updates, monitors

    @staticmethod
    def metric_of(step):
        args = dict(step.get("args") or {})
        for key in ("label_names", "output_names"):
            if isinstance(args.get(key), str):
                args[key] = [args[key]]
        metric = cohort.metric.create(step["kind"], **args)
        for child in step.get("children") or []:
            metric.add(Scenario.metric_of(child))
        return metric

    @staticmethod
    def figures(metric, everything=False):
        names, values = metric.get_global() if everything else metric.get()
        return {"metric": [[names, values]] if isinstance(names, str) else [list(pair) for pair in zip(names, values)]}

    def labels(self, step):
        if step.get("pre_sliced"):
            return [self.arrays(device) for device in step["labels"]]
        return self.arrays(step["labels"])

    def step_create_metric(self, step):
        self.keep("metric", step, self.metric_of(step))

    def step_get_metric(self, step):
        return self.figures(self.object("metric", step), step.get("global", False))

    def step_update_metric(self, step):
        metric = self.object("metric", step)
        self.group(step).update_metric(metric, self.labels(step), step.get("pre_sliced", False))
        return self.figures(metric)

    def step_metric_update(self, step):
        metric = self.object("metric", step)
        metric.update(self.arrays(step["labels"]), self.arrays(step["preds"]))
        return self.figures(metric)

    def step_reset_metric(self, step):
        metric = self.object("metric", step)
        metric.reset_local() if step.get("local") else metric.reset()

    def step_create_sgd(self, step):
        keys = "learning_rate momentum wd rescale_grad clip_gradient".split()
        sgd = cohort.optimizer.create("sgd", **{key: step[key] for key in keys if step.get(key) is not None})
        sgd.use_symbol(self.symbol(step["symbol"]))
        group, mode = self.group(step), MODE[step["mode"]]
        names = group._names(_abi.GroupList.PARAMS)
        if mode == "store":  # "store" starts from device 0's parameters, and copies them to all
            group.set_params({name: arrays[0] for name, arrays in zip(names, group.param_arrays)}, {})
        self.keep("optimizer", step, (sgd, mode))
        mults = {name: sgd.mult(name) for name in names}
        return {
            "lr_mult": {name: mult[0] for name, mult in mults.items()},
            "wd_mult": {name: mult[1] if step.get("wd") else None for name, mult in mults.items()},
        }

    def step_sgd_update(self, step):
        sgd, mode = self.object("optimizer", step)
        if step.get("learning_rate") is not None:
            sgd.set("learning_rate", step["learning_rate"])
        target = self.object("manager", step) if step.get("manager") else self.group(step)
        target.update(sgd, mode)

    def step_install_monitor(self, step):
        monitor = Monitor(
            step.get("interval") or 1,
            pattern=step.get("pattern") or ".*",
            sort=step.get("sort", False),
            monitor_all=step.get("monitor_all", False),
        )
        kind = next(key for key in ("exec", "manager", "group") if key in step)
        target = self.object(kind, step)
        if kind == "exec":
            monitor.install(target[0])
        else:
            target.install_monitor(monitor)
        self.keep("monitor", step, monitor)

    def step_monitor_tic(self, step):
        self.object("monitor", step).tic()

    def step_monitor_toc(self, step):
        report = self.object("monitor", step).toc()
        return {
            "names": [[number, name] for number, name, _ in report],
            "entries": [[number, name, text.split("\t")[0]] for number, name, text in report],
        }

    # ---- executors

    def executor(self, step):
        return self.object("exec", step)[0]

    def keep_executor(self, name, executor, names):
        self.objects["exec", name] = (executor, names)
        args, grads, aux = executor.arg_dict, executor.grad_dict, executor.aux_dict
        return {
            "arg_shapes": {key: array.shape for key, array in args.items()},
            "arg_types": {key: str(array.dtype) for key, array in args.items()},
            "has_grad": [key for key in executor.symbol.list_arguments() if grads[key] is not None],
            "aux_shapes": {key: array.shape for key, array in aux.items()},
            "output_shapes": [array.shape for array in executor.outputs],
        }

    def step_exec_simple_bind(self, step):
        more = {}
        if step.get("shared_exec") is not None:
            shared = self.objects["exec", step["shared_exec"]][0]
            more = {"shared_exec": shared, "shared_arg_names": step.get("shared_arg_names"), "shared_buffer": {}}
        executor = self.symbol(step["symbol"]).simple_bind(
            None, step.get("grad_req") or "write", step.get("types"), **more, **step.get("shapes", {})
        )
        return self.keep_executor(step["exec"], executor, [])

    def step_exec_bind(self, step):
        def copies(key):
            return {name: array.copy() for name, array in self.named(step.get(key)).items()}

        executor = self.symbol(step["symbol"]).bind(
            None, copies("args"), copies("args_grad"), step.get("grad_req") or "write", copies("aux")
        )
        return self.keep_executor(step["exec"], executor, [])

    def step_exec_set(self, step):
        executor = self.executor(step)
        lists = {"arg": executor.arg_dict, "grad": executor.grad_dict, "aux": executor.aux_dict}
        for key, arrays in lists.items():
            for name, array in self.named(step.get(key)).items():
                array.copyto(arrays[name])

    def step_exec_copy_params(self, step):
        extra = step.get("allow_extra", False)
        self.executor(step).copy_params_from(self.named(step.get("arg")), self.named(step.get("aux")), extra)

    def step_exec_forward(self, step):
        return {"values": self.executor(step).forward(step.get("is_train", False), **self.named(step.get("inputs")))}

    def step_exec_outputs(self, step):
        return {"values": self.executor(step).outputs}

    def step_exec_partial_forward(self, step):
        return {"step_left": self.executor(step).partial_forward(step.get("is_train", False), step["step"])}

    def step_exec_backward(self, step):
        given = step.get("head_grads")
        self.executor(step).backward(self.named(given) if isinstance(given, dict) else self.arrays(given))

    @staticmethod
    def some(arrays, names):
        return {"values": {name: arrays[name] for name in names or arrays}}

    def step_exec_args(self, step):
        return self.some(self.executor(step).arg_dict, step.get("names"))

    def step_exec_grads(self, step):
        return self.some(self.executor(step).grad_dict, step.get("names"))

    def step_exec_aux(self, step):
        return self.some(self.executor(step).aux_dict, step.get("names"))

    def step_exec_reshape(self, step):
        executor, names = self.object("exec", step)
        made = executor.reshape(
            step.get("partial_shaping", False), step.get("allow_up_sizing", False), **step["shapes"]
        )
        return self.keep_executor(step["as"], made, names)

    def step_exec_set_monitor(self, step):
        executor, _ = self.object("exec", step)
        names = []
        self.objects["exec", step["exec"]] = (executor, names)
        executor.set_monitor_callback(lambda name, array: names.append(name), step.get("monitor_all", False))

    def step_exec_monitor_names(self, step):
        names = self.object("exec", step)[1]
        found = list(names)
        names.clear()
        return {"names": found}

    # ---- managers

    def step_create_manager(self, step):
        symbol, buckets = self.symbol(step["symbol"]), step.get("buckets")

        def sym_gen(key):
            if str(key) not in buckets:
                raise cohort.UnknownNameError(f"there is no bucket {key}", str(key))
            return self.symbol(buckets[str(key)])

        source = Source(
            step["batch_size"],
            self.descs(step["data_shapes"]),
            self.descs(step.get("label_shapes")),
            step.get("default_bucket_key"),
        )
        manager = DataParallelExecutorManager(
            symbol,
            [cohort.Context.parse(context) for context in step["contexts"]],
            source,
            symbol.list_arguments(),
            step.get("param_names") or [],
            symbol.list_auxiliary_states(),
            step.get("workload"),
            sym_gen=sym_gen if buckets else None,
        )
        self.keep("manager", step, manager)
        return {"slices": pairs(manager.slices)}

    def step_manager_set_params(self, step):
        self.object("manager", step).set_params(self.named(step.get("arg")), self.named(step.get("aux")))

    def step_manager_load_data_batch(self, step):
        more = {
            "bucket_key": step.get("bucket_key"),
            "provide_data": self.descs(step.get("data_shapes")),
            "provide_label": self.descs(step.get("label_shapes")),
        }
        self.object("manager", step).load_data_batch(self.batch(step["data"], step.get("label"), **more))

    def step_manager_forward(self, step):
        self.object("manager", step).forward(step.get("is_train", False))

    def step_manager_backward(self, step):
        self.object("manager", step).backward()

    def step_manager_outputs(self, step):
        return {"values": self.object("manager", step).curr_execgrp._on_devices(_abi.GroupList.OUTPUTS)}

    def step_manager_update_metric(self, step):
        metric = self.object("metric", step)
        self.object("manager", step).update_metric(metric, self.labels(step), step.get("pre_sliced", False))
        return self.figures(metric)

    def step_manager_copy_to(self, step):
        manager = self.object("manager", step)
        args, aux = self.targets(step, manager.execgrp)
        manager.copy_to(args, aux)
        return {"arg": args, "aux": aux}


def pairs(slices):
    return [[one.start, one.stop] for one in slices]


def array_differences(expected, found, what, rtol, atol):
    if (str(expected.dtype), expected.shape) != (str(found.dtype), found.shape):
        return [f"{what}: expected {expected.dtype} {expected.shape}, found {found.dtype} {found.shape}"]
    wanted, seen = expected.asnumpy().astype("float64"), found.asnumpy().astype("float64")
    near = np.isclose(seen, wanted, rtol, atol, equal_nan=True)
    if near.all():
        return []
    return [f"{what}: {(~near).sum()} of {near.size} wrong, off by up to {np.abs(seen - wanted).max()}"]
