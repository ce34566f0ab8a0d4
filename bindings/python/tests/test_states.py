# SPDX-License-Identifier: Apache-2.0
"""States of optimizers that MXNet 1.9.1 has saved, and what is in their place."""

import base64
import json
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import cohort
from cohort import nd
from states_cases import CASES, NAMES, SHAPES, gradient
from support import Case

with open(os.path.join(os.path.dirname(__file__), "mxnet_states.json"), encoding="utf-8") as found:
    RECORDED = json.load(found)


def states_of(name):
    return base64.b64decode(RECORDED[name]["states"])


class Called:
    """An object whose pickle calls a function when it is read."""

    def __reduce__(self):
        return os.system, ("exit 7",)


class States(Case):
    def test_training_goes_on_from_states_that_mxnet_saved(self):
        for name, (kind, settings, dtype, dump, by_name) in CASES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "net-0003.states")
                with open(path, "wb") as file:
                    file.write(states_of(name))
                rule = cohort.optimizer.create(kind, **settings)
                rule.load_states(path, None if dump or by_name else NAMES)
                weights = [
                    nd.array(np.reshape(values, shape), dtype=dtype)
                    for values, shape in zip(RECORDED[name]["before"], SHAPES)
                ]
                for step in 4, 5:
                    for param, array in zip(NAMES, weights):
                        rule.update(param, array, nd.array(gradient(array.shape, step), dtype=dtype))
                for array, expected in zip(weights, RECORDED[name]["after"]):
                    tolerance = 1e-5 if dtype == "float32" else 2e-3
                    np.testing.assert_allclose(array.asnumpy().ravel(), expected, tolerance, tolerance, err_msg=name)

    def test_states_of_several_devices_are_numbered_by_parameter_and_device(self):
        rule = cohort.optimizer.create("sgd", learning_rate=0.1, momentum=0.9)
        states, recorded = states_of("sgd with momentum"), RECORDED["sgd with momentum"]
        with self.raises(cohort.InvalidArgumentError, "param_names: the states have number 2, 2 names with 1 copies"):
            rule.set_states(states, ["a", "b"])
        rule.set_states(states, ["a", "b"], num_copies=2)
        for (param, copy), shape, before, after in zip(
            (("a", 0), ("a", 1), ("b", 0)), SHAPES, recorded["before"], recorded["after"]
        ):
            array = nd.array(np.reshape(before, shape))
            for step in 4, 5:
                rule.update(param, array, nd.array(gradient(shape, step)), copy)
            self.near(array.asnumpy().ravel(), after)

    def test_the_number_of_updates_is_read_or_begins_as_in_mxnet(self):
        rule = cohort.optimizer.create("adam", begin_num_update=7)
        rule.set_states(states_of("adam"), NAMES)
        self.assertEqual(rule.get("num_update"), 7)
        rule = cohort.optimizer.create("adam")
        rule.set_states(states_of("adam with its counts"))
        self.assertEqual(rule.get("num_update"), 3)

    def test_a_pickle_runs_nothing(self):
        for value in Called(), {0: Called()}, ({0: None}, Called()):
            with self.raises(cohort.FormatError, "the pickle names 'posix.system'"):
                cohort.optimizer.create("sgd").set_states(pickle.dumps(value), NAMES)

    def test_a_small_file_does_not_take_much_memory_or_stack(self):
        array = b"\x8c\x15mxnet.ndarray.ndarray\x8c\x07NDArray\x93N\x85R}\x8c\x06handleB"
        indices = b"".join(b"J" + struct.pack("<i", i) + b"h\x00" for i in range(4000))
        nested = b"N" + b"\x85" * 300000
        wrong = {
            "found NoneType": b"Nr\xff\xff\xff\x7f.",  # the memo's last place
            "found list": b"}" + nested + b"Ns].",  # its hash is computed by recursion
            "found int": b"}\x8a\xff" + b"\x7f" * 255 + b"Ns.",
            "is no Unicode": pickle.dumps({"\ud800": None})[2:],
            "the same array": b"}("
            + array
            + struct.pack("<I", 1 << 20)
            + bytes(1 << 20)
            + b"sb\x94N"
            + indices
            + b"u.",
            "the same contents": b"\x8c\x07_codecs\x8c\x06encode\x93\x94X"
            + struct.pack("<I", 1 << 20)
            + b"a" * (1 << 20)
            + b"\x85\x94"
            + b"h\x00h\x01R" * 4000
            + b".",
            "the opcode BINPERSID": b"NQ.",
        }
        code = (
            "import resource, sys, cohort\n"
            "resource.setrlimit(resource.RLIMIT_DATA, (1 << 31, 1 << 31))\n"
            "rule = cohort.optimizer.create('sgd', momentum=0.9)\n"
            "try: rule.set_states(sys.stdin.buffer.read(), [str(i) for i in range(4000)])\n"
            "except cohort.FormatError as error: print(error)\n"
        )
        for words, data in wrong.items():
            with self.subTest(words):
                done = subprocess.run(
                    [sys.executable, "-c", code],
                    input=b"\x80\x04" + data,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
                self.assertIn(words, done.stdout.decode())
                self.assertEqual(done.returncode, 0)

    def test_each_device_has_its_own_counts(self):
        counts = {0: {0: 3, 2: 4}, 1: {1: 5, 3: 6}}
        attributes = {"num_update": 6, "_all_index_update_counts": counts, "_index_update_count": counts[1]}
        states = pickle.dumps(dict.fromkeys(range(4)), 2)[:-1]
        rule = cohort.optimizer.create("sgd")
        rule.set_states(
            states + b"cmxnet.optimizer.optimizer\nSGD\n)\x81" + pickle.dumps(attributes, 2)[2:-1] + b"b\x86.",
            ["a", "b"],
            2,
        )
        own, found = rule.get_states(), {}
        at = 16 + struct.unpack_from("<I", own, 12)[0] + 16
        while len(found) < 4:
            name = own[at + 4 : at + 5].decode()  # of one letter
            copy, found[name, copy] = struct.unpack_from("<Qq", own, at + 5)
            at += 21
        self.assertEqual(found, {("a", 0): 3, ("a", 1): 5, ("b", 0): 4, ("b", 1): 6})

    def test_wrong_states_are_refused_and_change_nothing(self):
        rule = cohort.optimizer.create("sgd", momentum=0.9)
        before, whole = rule.get_states(), states_of("sgd with momentum")
        for cut in range(0, len(whole) - 1, 7):
            with self.assertRaises(cohort.FormatError):
                rule.set_states(whole[:cut] if cut else b"\x80", NAMES)
        for wrong in [], 5, {"a": "text"}, {0.5: None}, {-1: None}, {0: ((((((None,),),),),),)}, ({}, {}, {}):
            with self.assertRaises(cohort.FormatError):
                rule.set_states(pickle.dumps(wrong), NAMES)
        for name, words in ("adam", "has 2 states"), ("sgd", "has 0 states, this optimizer \\(sgd\\) has 1"):
            with self.raises(cohort.FormatError, words):
                rule.set_states(states_of(name), NAMES)
        with self.raises(cohort.InvalidArgumentError, "param_names is needed"):
            rule.set_states(whole)
        with self.raises(cohort.InvalidArgumentError, "have the names of their parameters"):
            rule.set_states(before, NAMES)
        with self.raises(cohort.UnsupportedError, "nadam"):
            cohort.optimizer.create("nadam").set_states(states_of("adam"), NAMES)
        self.assertEqual(rule.get_states(), before)


if __name__ == "__main__":
    unittest.main()
