# SPDX-License-Identifier: Apache-2.0
"""With any arguments a call works or raises; the process survives, and objects stay usable. The first sweep is
generated from bindings/abi.json, function by function of the C interface; the second one covers the classes."""

import ctypes
import inspect
import json
import os
import tempfile
import unittest
import warnings
from ctypes import byref, c_void_p

import numpy as np

import cohort
from cohort import DataBatch, _abi, cpu, nd, sym
from cohort._abi_functions import FUNCTIONS
from cohort._library import lib
from cohort.executor_group import DataParallelExecutorGroup
from cohort.executor_manager import DataParallelExecutorManager
from support import ROOT, Case, Source, linear, mlp

with open(os.path.join(ROOT, "bindings", "abi.json"), encoding="utf-8") as _file:
    ABI = json.load(_file)
FAMILIES = {family["name"]: [value["value"] for value in family["values"]] for family in ABI["families"]}
GOOD_TEXT = b"x"


def objects():
    """One of each kind of handle."""
    group = DataParallelExecutorGroup(
        mlp(), [cpu(0), cpu(1)], None, [("data", (4, 4))], [("softmax_label", (4,))], None, True, False
    )
    tape = c_void_p()
    lib.cohort_tape_create(byref(tape))
    log = cohort.LogReceiver(lowest=4)
    made = {
        "cohort_ndarray": nd.zeros((2, 2)),
        "cohort_arrays": nd.Arrays.of({"x": nd.zeros((2,))}, "arrays"),
        "cohort_descs": cohort.io.Descs.of([("data", (4, 4))], "descs"),
        "cohort_symbol": mlp(),
        "cohort_executor": mlp().simple_bind(data=(4, 4)),
        "cohort_group": group,
        "cohort_optimizer": cohort.optimizer.create("sgd"),
        "cohort_metric": cohort.metric.create("acc"),
        "cohort_initializer": cohort.init.Zero(),
        "cohort_manager": DataParallelExecutorManager(mlp(), [cpu(0)], Source(), None, None, None),
        "cohort_monitor": cohort.Monitor(1),
        "cohort_log": log,
        "cohort_trace": cohort.Trace(),
        "cohort_calibration": cohort.Calibration(),
    }
    return made, tape


class Interface(Case):
    def setUp(self):
        super().setUp()
        self.made, self.tape = objects()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.finish)

    def finish(self):
        lib.cohort_tape_free(self.tape)
        self.folder.cleanup()
        del self.made

    def handle(self, kind):
        return self.tape.value if kind == "cohort_tape" else self.made[kind].handle

    def valid(self, param, kept):
        """A valid value; for a list one entry, or as many as its count says."""
        kind, out, many = param["kind"], param["direction"] != "in", "list" in param
        by_address = param["type"].endswith("*")
        if kind == "handle":
            if out:
                kept.append(c_void_p())
                return byref(kept[-1])
            if many:
                return (c_void_p * 64)(*[self.handle(param["handle"])] * 64)
            return self.handle(param["handle"])
        if kind == "struct":
            struct = getattr(_abi, param["struct"])
            made = (struct * 64)()
            if struct is _abi.cohort_context:
                for one in made:
                    one.device_type = _abi.DeviceType.CPU
            else:
                made[0].struct_size = ctypes.sizeof(struct)
            kept.append(made)
            return made
        if kind == "text":
            if out and not many:
                return byref(ctypes.c_char_p())
            if out or param.get("list") in ("bytes", "capacity"):
                return ctypes.create_string_buffer(4096) if out else GOOD_TEXT
            return (ctypes.c_char_p * 64)(*[GOOD_TEXT] * 64) if many else GOOD_TEXT
        if kind in ("bytes", "pointer"):
            if out and kind == "pointer":
                kept.append(c_void_p())
                return byref(kept[-1])
            if param["name"] == "user_data":
                return None
            kept.append(ctypes.create_string_buffer(4096))
            return ctypes.addressof(kept[-1])
        if kind == "callback":
            return getattr(_abi, param["callback"])()
        ctype = {
            "int64": ctypes.c_int64,
            "uint64": ctypes.c_uint64,
            "size": ctypes.c_size_t,
            "double": ctypes.c_double,
        }.get(kind, ctypes.c_int32)
        if by_address:
            kept.append((ctype * 64)(*[1] * 64))
            return kept[-1]
        return FAMILIES[param["family"]][-1] if kind == "constant" else 1

    def call(self, function, changed):
        """Calls with valid values except for those that are replaced; the class of error, or None. Frees any
        results."""
        kept, arguments = [], []
        for param in function["params"]:
            arguments.append(changed[param["name"]] if param["name"] in changed else self.valid(param, kept))
        try:
            getattr(lib, function["name"])(*arguments)
            found = None
        except cohort.CohortError as error:
            self.assertNotIn("\n", str(error))
            found = type(error)
        for param, value in zip(function["params"], arguments):
            if param["kind"] == "handle" and param["direction"] == "out" and value is not None:
                pointer = ctypes.cast(value, ctypes.POINTER(c_void_p))[0]
                if pointer:
                    getattr(lib, param["handle"] + "_free")(pointer)
            elif param["name"] == "out_managed" and found is None and value is not None:
                managed = ctypes.cast(value, ctypes.POINTER(c_void_p))[0]
                versioned = "unversioned" not in function["name"]
                deleter = c_void_p.from_address(managed + nd._DELETER_AT[versioned]).value
                nd._Deleter(deleter)(managed)
        return found

    # Calls that wait for the caller, change the process, or read memory that a test must not make up.
    LEFT_OUT = (
        "cohort_set_log",
        "cohort_ndarray_from_dlpack",
        "cohort_ndarray_from_dlpack_unversioned",
        "cohort_ndarray_wrap",
    )

    def functions(self):
        for function in ABI["functions"]:
            fails = function["returns"]["kind"] == "error"
            if fails and function["name"] not in self.LEFT_OUT:
                yield function

    def sweep(self, values):
        """Calls each function with each bad value that ``values(param)`` gives; returns lines of those that were not
        refused."""
        wrong, number = [], 0
        before = os.getcwd()
        os.chdir(self.folder.name)  # for files written under odd names
        try:
            for function in self.functions():
                for param in function["params"]:
                    for value in values(param):
                        number += 1
                        found = self.call(function, {param["name"]: value})
                        if found is None or issubclass(found, cohort.InternalError):
                            wrong.append(f"{function['name']}: {param['name']}={value!r}: {found}")
        finally:
            os.chdir(before)
        self.assertGreater(number, 10)
        self.assertEqual(wrong[:10], [])
        return number

    def test_null_is_refused_where_the_description_says_so(self):
        def null(param):
            nothing = getattr(_abi, param["callback"])() if param["kind"] == "callback" else None
            return [nothing] if param.get("nullable") == "no" else []

        self.assertGreater(self.sweep(null), 300)

    def test_a_handle_of_another_kind_and_one_that_was_freed_are_refused(self):
        gone = nd.zeros((1,))
        freed = gone.handle
        gone.close()

        def others(param):
            if param["kind"] != "handle" or param["direction"] != "in" or "list" in param:
                return []
            other = "cohort_descs" if param["handle"] != "cohort_descs" else "cohort_ndarray"
            return [self.handle(other), freed]

        self.assertGreater(self.sweep(others), 300)

    def test_constants_and_yes_and_no_have_no_other_values(self):
        def odd(param):
            if param["direction"] != "in" or param["type"].endswith("*"):
                return []
            if param["kind"] == "bool":
                return [2, -1]
            if param["kind"] == "constant":
                return [-7, 99]
            return []

        self.assertGreater(self.sweep(odd), 100)

    def test_numbers_at_their_ends_end_no_process(self):
        """They may be valid; the test only requires that the call returns."""
        ends = {
            "int32": [-(2**31), -1, 2**31 - 1],
            "int64": [-(2**63), -1, 2**63 - 1],
            "uint64": [2**64 - 1],
            "double": [float("nan"), float("inf"), -1e300],
        }
        os.chdir(self.folder.name)
        try:
            for function in self.functions():
                for param in function["params"]:
                    # Counts and sizes describe the caller's own memory.
                    if param["direction"] == "in" and not param["type"].endswith("*") and param["name"] != "num_axes":
                        for value in ends.get(param["kind"], []):
                            self.call(function, {param["name"]: value})
        finally:
            os.chdir(ROOT)

    def test_text_that_is_none_of_what_is_meant_ends_no_process(self):
        os.chdir(self.folder.name)
        try:
            for function in self.functions():
                for param in function["params"]:
                    if param["kind"] == "text" and param["direction"] == "in" and "list" not in param:
                        for value in (b"", b"\xff\xfe", b"%s%n(", b"a" * 5000):
                            self.call(function, {param["name"]: value})
        finally:
            os.chdir(ROOT)

    def test_every_function_was_described(self):
        names = {function["name"] for function in ABI["functions"]}
        self.assertEqual(names, set(FUNCTIONS))
        for kind in ABI["structs"]:
            struct = getattr(_abi, kind["name"])
            self.assertEqual(ctypes.sizeof(struct), kind["bytes"])
            for field in kind["fields"]:
                self.assertEqual(getattr(struct, field["name"]).offset, field["offset"])


class Odd:
    """An object that refuses every operation."""

    def __getattr__(self, name):
        raise AttributeError(name)

    def __len__(self):
        raise ValueError("no length")

    def __iter__(self):
        raise ValueError("no items")


def odd_values():
    closed = nd.zeros((1,))
    closed.close()
    return [
        None,
        "",
        "text",
        "a\0b",
        "\udcff",
        b"bytes",
        -1,
        2**70,
        float("nan"),
        1.5,
        True,
        [],
        [None],
        [[]],
        ["a", 2],
        {},
        {"a": 1},
        {1: 2},
        (),
        object(),
        lambda *a: 1,
        nd.zeros((2,)),
        [nd.zeros((1,))],
        closed,
        mlp(),
        cpu(),
        {"fc_weight": nd.zeros((1,))},
        {"fc_weight": None},
        cohort.metric.create("acc"),
        DataBatch([[1]]),
        DataBatch(None),
        [("data", (4,))],
        [("data", "four")],
        np.zeros((2, 2)),
        np.zeros(2, "complex64"),
        np.array("text"),
        slice(0, 2),
        [slice(0, 2)],
        Odd(),
        type,
        Ellipsis,
        -(2**63),
    ]


# Python's own exceptions for values that the class does not handle.
PYTHONS = (cohort.CohortError, TypeError)


class Classes(Case):
    def try_all(self, make, names):
        wrong = []
        values = odd_values()
        for name in names:
            made = make()
            for value in values:
                for given in ((value,), (value, value), ("data", value), (None, value), ([("data", (4, 4))], value)):
                    try:
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            method = getattr(made, name)
                            found = method(*given)
                            if inspect.isgenerator(found):
                                list(found)
                    except PYTHONS:
                        pass
                    except (ValueError, IndexError, AttributeError, BufferError) as error:
                        if isinstance(
                            error,
                            {"__getitem__": IndexError, "__setitem__": IndexError, "from_dlpack": BufferError}.get(
                                name, ()
                            ),
                        ):
                            continue
                        if isinstance(value, Odd) and str(error) in ("no items", "no length"):
                            continue
                        wrong.append(f"{name}{given!r:.100}: {type(error).__name__}: {error}")
                    if getattr(made, "closed", False):
                        made = make()
            if hasattr(made, "handle"):
                made.handle  # it is still an object
        self.assertFalse(wrong, "\n".join(wrong[:8]) + f"\n{len(wrong)} in all")

    def methods(self, kind, leave=()):
        names = [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]
        return [name for name in names if name not in leave]

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, ROOT)
        os.chdir(folder.name)  # for files saved under odd names

    def test_of_arrays(self):
        self.try_all(lambda: nd.zeros((2, 2)), self.methods(nd.NDArray) + ["__getitem__", "__add__", "__sub__"])

    def test_of_arrays_while_they_are_recorded(self):
        def make():
            x = nd.zeros((2, 2))
            x.attach_grad()
            return x * 2

        with cohort.autograd.record():
            self.try_all(make, self.methods(nd.NDArray) + ["__getitem__", "__setitem__", "__iadd__"])

    def test_of_functions_that_make_arrays(self):
        self.try_all(
            lambda: nd,
            "array zeros ones full empty wrap concatenate from_dlpack save save_npy save_npz save_tobuffer load load_frombuffer "
            "random_uniform FullyConnected exp Concat dot".split(),
        )

    def test_of_symbols(self):
        self.try_all(mlp, self.methods(cohort.Symbol) + ["__getitem__", "__call__"])
        self.try_all(lambda: sym, "Variable Group load load_json FullyConnected Concat exp".split())

    def test_of_executors(self):
        self.try_all(lambda: mlp().simple_bind(data=(4, 4)), self.methods(cohort.Executor))

    def test_of_groups(self):
        def make():
            return DataParallelExecutorGroup(
                mlp(), [cpu(0), cpu(1)], None, [("data", (4, 4))], [("softmax_label", (4,))], ["fc_weight"], True, True
            )

        self.try_all(make, self.methods(DataParallelExecutorGroup))

    def test_of_managers(self):
        def make():
            return DataParallelExecutorManager(
                mlp(), [cpu(0)], Source(key=1), None, None, None, sym_gen=lambda key: mlp()
            )

        self.try_all(make, self.methods(DataParallelExecutorManager))

    def test_of_constructors_argument_by_argument(self):
        good = {
            "symbol": mlp(),
            "contexts": [cpu(0)],
            "workload": None,
            "data_shapes": [("data", (4, 4))],
            "label_shapes": None,
            "param_names": None,
            "for_training": True,
            "inputs_need_grad": False,
        }
        for name in inspect.signature(DataParallelExecutorGroup).parameters:
            self.each_of(name, lambda value: DataParallelExecutorGroup(**{**good, name: value}))
        old = {
            "symbol": mlp(),
            "ctx": [cpu(0)],
            "train_data": Source(),
            "arg_names": None,
            "param_names": None,
            "aux_names": None,
        }
        for name in inspect.signature(DataParallelExecutorManager).parameters:
            self.each_of(name, lambda value: DataParallelExecutorManager(**{**old, name: value}))

    def each_of(self, name, make):
        for value in odd_values():
            try:
                with make(value):
                    pass
            except PYTHONS:
                pass
            except ValueError as error:
                self.assertTrue(isinstance(value, Odd), f"{name}={value!r}: {error!r}")

    def test_of_the_rest(self):
        for make, names in (
            (lambda: cohort.metric.create("acc"), self.methods(cohort.metric.EvalMetric)),
            (lambda: cohort.metric, ["create", "np_metric"]),
            (lambda: cohort.optimizer.create("sgd"), self.methods(cohort.optimizer.Optimizer)),
            (lambda: cohort.optimizer, ["create"]),
            (lambda: cohort.init.One(), self.methods(cohort.init.Initializer)),
            (lambda: cohort.init, ["create", "Uniform", "Xavier", "Constant"]),
            (lambda: cohort.Monitor(1), self.methods(cohort.Monitor)),
            (
                lambda: cohort,
                "Monitor DataDesc Context cpu LogReceiver NDArrayIter load_checkpoint save_checkpoint has_feature "
                "Predictor".split(),
            ),
            (lambda: cohort.DataDesc, ["get_batch_axis"]),
            (lambda: cohort.autograd, "record pause mark_variables backward grad get_symbol record_function".split()),
            (lambda: cpu(7), ["limit_memory"]),
        ):
            self.try_all(make, names)

    def test_closed_objects_raise_whatever_is_asked_of_them(self):
        made, tape = objects()
        lib.cohort_tape_free(tape)
        for one in made.values():
            one.close()
            for name in dir(type(one)):
                if name.startswith("__") or name in ("close", "closed", "_adopt"):
                    continue
                try:
                    value = getattr(one, name)
                    if callable(value) and not inspect.isclass(value):
                        value()
                except (cohort.CohortError, TypeError, AttributeError):
                    pass
            self.assertTrue(one.closed)

    def test_objects_are_not_made_or_copied_by_accident(self):
        import copy
        import pickle

        for kind in (cohort.NDArray, cohort.Symbol, cohort.Executor):
            with self.assertRaises(TypeError):
                kind()
        executor = linear().simple_bind(data=(1, 2))
        for copies in (copy.copy, pickle.dumps):
            with self.raises(TypeError, "Executor"):
                copies(executor)


if __name__ == "__main__":
    unittest.main()
