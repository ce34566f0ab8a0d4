# SPDX-License-Identifier: Apache-2.0
"""mxnet.executor_manager, item by item: its classes with their arguments, defaults, attributes and errors. The
numbers are those of tests/contract."""

import inspect
import logging
import unittest

import numpy as np

import cohort
from cohort import DataBatch, DataDesc, cpu, nd, sym
from cohort.executor_manager import (
    DataParallelExecutorGroup,
    DataParallelExecutorManager,
    _bind_exec,
    _check_arguments,
    _load_data,
    _load_general,
    _load_label,
    _split_input_slice,
)
from support import Case, Source, batch, linear, mlp

TWO = [cpu(0), cpu(1)]
PARAMS = ["fc_weight", "fc_bias"]


def group(**more):
    given = {
        "sym": mlp(),
        "arg_names": mlp().list_arguments(),
        "param_names": PARAMS,
        "ctx": TWO,
        "slices": [slice(0, 1), slice(1, 4)],
        "train_data": Source(),
    }
    return DataParallelExecutorGroup(**{**given, **more})


def manager(symbol=None, source=None, **more):
    symbol = mlp() if symbol is None else symbol
    given = {"arg_names": symbol.list_arguments(), "param_names": PARAMS, "aux_names": []}
    return DataParallelExecutorManager(symbol, TWO, source or Source(), **{**given, **more})


class Helpers(Case):
    def test_slices_follow_the_workload_halves_to_the_even_number(self):  # WRK-01 to WRK-05, DIF-01
        def sizes(batch_size, weights):
            return [part.stop - part.start for part in _split_input_slice(batch_size, weights)]

        self.assertEqual(sizes(10, [1, 1, 1, 1]), [2, 2, 2, 4])
        self.assertEqual(sizes(10, [1, 2]), [3, 7])
        self.assertEqual(sizes(10, [1, 1, 1]), [3, 3, 4])
        self.assertEqual(sizes(7, [1, 1, 1, 1]), [2, 2, 2, 1])
        self.assertEqual(_split_input_slice(4, [1.5, 1.5])[1], slice(2, 4))
        for batch_size, weights in (
            (2, [1, 1, 1]),
            (4, [1, 0]),
            (4, [1, -1]),
            (4, [1e-9, 1]),
            (4, [float("nan")]),
            (4, []),
        ):
            with self.assertRaises(ValueError):
                _split_input_slice(batch_size, weights)

    def test_arguments_have_names_of_their_own(self):  # GRP-16, MGR-02
        x = sym.Variable("x")
        twice = sym.FullyConnected(sym.FullyConnected(x, num_hidden=2, name="fc"), num_hidden=2, name="fc")
        with self.raises(cohort.UnknownNameError, "fc_weight"):
            _check_arguments(twice)
        with self.assertRaises(KeyError):
            manager(twice)
        _check_arguments(mlp())

    def test_batches_are_copied_into_targets(self):  # FWD-01 to FWD-04
        whole, parts = nd.zeros((3, 1)), [(slice(0, 1), nd.zeros((1, 1))), (slice(1, 3), nd.zeros((2, 1)))]
        one = DataBatch([np.array([[1], [2], [3]])], [np.array([[4], [5], [6]])])
        _load_data(one, [whole])
        _load_label(one, [parts])
        self.near(whole, [[1], [2], [3]])
        self.near(parts[1][1], [[5], [6]])
        with self.raises(cohort.InvalidArgumentError, "expected 3 samples, found 2"):
            _load_general([nd.zeros((2, 1))], [parts])

    def test_one_executor_is_bound_from_a_pool(self):  # EXE-12, EXE-17, SHR-03, SHR-04
        pool = {}
        base = _bind_exec(mlp(), cpu(), {"data": (4, 4)}, PARAMS, need_grad=True, shared_data_arrays=pool)
        self.assertIn("data", pool)
        self.assertEqual(base.grad_req["fc_weight"], "write")
        second = _bind_exec(mlp(), cpu(), {"data": (2, 4)}, PARAMS, {"fc_bias"}, base, pool)
        self.assertEqual(second.grad_req["fc_weight"], "null")
        base.arg_dict["fc_weight"][:] = 3
        self.near(second.arg_dict["fc_weight"][0], [3] * 4)
        with self.raises(cohort.InvalidArgumentError, "need_grad"):
            _bind_exec(mlp(), cpu(), {"data": (4, 4)}, PARAMS, need_grad="write")


class Group(Case):
    def test_signatures_are_mxnets(self):
        taken = list(inspect.signature(DataParallelExecutorGroup).parameters)
        self.assertEqual(taken, "sym arg_names param_names ctx slices train_data shared_group".split())
        taken = inspect.signature(DataParallelExecutorManager).parameters
        self.assertEqual(
            list(taken)[:9],
            "symbol ctx train_data arg_names param_names aux_names work_load_list logger sym_gen".split(),
        )
        for name in ("work_load_list", "logger", "sym_gen"):
            self.assertIsNone(taken[name].default)
        for kind in (DataParallelExecutorGroup, DataParallelExecutorManager):
            self.assertEqual(inspect.signature(kind.forward).parameters["is_train"].default, False)
            self.assertEqual(inspect.signature(kind.update_metric).parameters["pre_sliced"].default, False)

    def test_what_a_group_shows(self):  # GRP-17, GRP-18, SHR-03
        made = group(param_names=["fc_bias", "no_such", "fc_weight"])
        self.assertEqual(made.param_names, PARAMS)
        self.assertEqual(made.param_idx, [1, 2])
        self.assertEqual((made.data_names, made.label_names, made.aux_names), (["data"], ["softmax_label"], []))
        self.assertEqual([rows for rows, _ in made.data_arrays[0]], made.slices)
        self.assertEqual([part.shape for _, part in made.data_arrays[0]], [(1, 4), (3, 4)])
        self.assertEqual([part.shape for _, part in made.label_arrays[0]], [(1,), (3,)])
        self.assertEqual([[a.shape for a in entry] for entry in made.param_arrays], [[(3, 4)] * 2, [(3,)] * 2])
        self.assertEqual([[a.shape for a in entry] for entry in made.grad_arrays], [[(3, 4)] * 2, [(3,)] * 2])
        self.assertEqual(made.aux_arrays, [])
        self.assertEqual(len(made.train_execs), 2)
        self.assertEqual(sorted(made.shared_data_arrays[0]), ["data", "softmax_label"])
        made.param_arrays[1][1][:] = 5  # live
        self.near(made.train_execs[1].arg_dict["fc_bias"], [5, 5, 5])

    def test_a_batch_runs_on_all_devices(self):  # FWD-01, FWD-08, BWD-01, GRP-15, MGR-03
        made = group()
        data = np.arange(16, dtype="float32").reshape(4, 4) / 16
        made.set_params({"fc_weight": np.ones((3, 4)), "fc_bias": [0, 1, 2]}, {})
        made.load_data_batch(batch(data, [0, 1, 2, 0]))
        made.forward(is_train=True)
        made.backward()
        out = np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum()
        for executor, rows in zip(made.train_execs, made.slices):
            self.near(executor.outputs[0], [out] * (rows.stop - rows.start))
        head = np.tile(out, (4, 1)) - np.eye(3)[[0, 1, 2, 0]]
        self.near(sum(a.asnumpy() for a in made.grad_arrays[0]), head.T @ data)
        self.assertEqual(made.train_execs[0].grad_req["data"], "null")

    def test_labels_may_be_split_already(self):  # MET-01 to MET-05
        made, metric = group(), cohort.metric.create("acc")
        made.load_data_batch(batch(np.zeros((4, 4)), [0, 0, 0, 1]))
        made.forward()
        labels = nd.array([0, 0, 0, 1])
        made.update_metric(metric, [labels])
        self.assertEqual(metric.get(), ("accuracy", 0.75))
        made.update_metric(metric, [[labels[0:1]], [labels[1:4]]], pre_sliced=True)
        self.assertEqual(metric.get(), ("accuracy", 0.75))
        with self.raises(cohort.InvalidArgumentError, "label"):
            made.update_metric(metric, [labels, labels])
        with self.raises(cohort.ShapeError, "label"):
            made.update_metric(metric, [labels[0:3]])
        with self.raises(cohort.InvalidArgumentError, "expected 2"):
            made.update_metric(metric, [[labels[0:1]]], pre_sliced=True)

    def test_what_does_not_fit_is_refused(self):  # GRP-02, GRP-07, GRP-08, WRK-07, DIF-03, DSC-12
        with self.raises(cohort.InvalidArgumentError, r"arg_names\[0\].*'data'"):
            group(arg_names=["fc_weight", "data", "fc_bias", "softmax_label"])
        for slices in ([slice(0, 1), slice(2, 4)], [slice(0, 4)], [slice(1, 2), slice(2, 4)], [0, 4]):
            with self.assertRaises(ValueError):
                group(slices=slices)
        with self.raises(cohort.InvalidArgumentError, "contexts"):
            group(ctx=[])
        with self.raises(cohort.UnknownNameError, "other"):
            group(train_data=Source(data=[("other", (4, 4))]))
        with self.raises(cohort.InvalidArgumentError, "provide_data"):
            group(train_data=[1])
        with self.raises(cohort.DeviceError, "gpu"):
            group(ctx=["gpu(4096)", "cpu(0)"])

    def test_a_layout_does_not_matter_and_types_do(self):  # DIF-04, MGR-03
        data = DataDesc("data", (4, 4), "float16", layout="TN")
        made = group(train_data=Source(data=[data], label=[DataDesc("softmax_label", (4,), "float16")]))
        self.assertEqual(
            [(a.shape, str(a.dtype)) for _, a in made.data_arrays[0]], [((1, 4), "float16"), ((3, 4), "float16")]
        )

    def test_a_group_shares_with_another(self):  # GRP-23, SHR-01 to SHR-08
        first = group()
        second = group(train_data=Source(data=[("data", (4, 4))]), shared_group=first)
        first.param_arrays[0][1][:] = 7
        self.near(second.param_arrays[0][1][0], [7] * 4)
        first.close()
        self.near(second.param_arrays[0][1][0], [7] * 4)

    def test_a_batch_of_another_shape_changes_nothing(self):  # DIF-08, DIF-09
        made = group()
        made.load_data_batch(batch(np.ones((4, 4)), [0, 1, 2, 0]))
        with self.raises(cohort.ShapeError, "data"):
            made.load_data_batch(batch(np.zeros((5, 4)), [0, 1, 2, 0, 0]))
        made.load_data_batch(batch(2 * np.ones((4, 4))))  # labels stay
        self.near(made.data_arrays[0][0][1], [[2] * 4])
        self.near(made.label_arrays[0][1][1], [1, 2, 0])


class Manager(Case):
    def test_the_manager_trains(self):  # MGR-01, MGR-08
        made = manager(work_load_list=[1, 3])
        self.assertEqual(made.slices, [slice(0, 1), slice(1, 4)])
        with self.raises(cohort.StateError, "batch"):
            made.forward()
        self.assertIsNone(made.curr_execgrp)
        made.set_params({"fc_weight": np.ones((3, 4)), "fc_bias": np.zeros(3)}, {})
        sgd, metric = cohort.optimizer.create("sgd", learning_rate=1.0, rescale_grad=0.25), cohort.metric.create("ce")
        losses = []
        for _ in range(20):
            made.load_data_batch(batch(np.eye(4), [0, 1, 2, 0]))
            made.forward(is_train=True)
            made.backward()
            made.update(sgd)
            metric.reset()
            made.update_metric(metric, [nd.array([0, 1, 2, 0])])
            losses.append(metric.get()[1])
        self.assertLess(losses[-1], losses[0] / 3)
        self.assertEqual(made.get_outputs()[0].shape, (4, 3))
        self.assertGreater(made.memory()["argument_bytes"], 0)

    def test_parameters_go_in_and_their_means_come_out(self):  # MGR-04, MGR-10, PRM-01 to PRM-10
        made = manager()
        made.set_params({"fc_weight": np.ones((3, 4))}, {})
        made.param_arrays[1][0][:] = 2
        made.param_arrays[1][1][:] = 4
        args = {"fc_weight": nd.zeros((3, 4)), "fc_bias": nd.zeros((3,), dtype="int32"), "other": nd.zeros((1,))}
        made.copy_to(args, {})
        self.near(args["fc_bias"], [3, 3, 3])
        self.near(args["fc_weight"][0], [1] * 4)
        with self.raises(cohort.UnknownNameError, "fc_bias"):
            made.copy_to({"fc_weight": args["fc_weight"]}, {})
        with self.raises(cohort.InvalidArgumentError, "target fc_bias"):
            made.copy_to({"fc_weight": args["fc_weight"], "fc_bias": np.zeros(3)}, {})
        with self.raises(cohort.UnknownNameError, "other"):
            made.set_params(args, {})
        with self.raises(cohort.UnknownNameError, "'fc_bias'"):
            made.assign_params({"fc_weight": np.ones((3, 4))}, {})
        self.assertEqual(made.assign_params({"fc_weight": np.ones((3, 4))}, {}, allow_missing=True), ["fc_bias"])
        self.assertEqual(len(made.grad_arrays), 2)
        self.assertEqual(made.aux_arrays, [])

    def test_a_bucket_is_made_for_each_new_key_of_any_type(self):  # GRP-26, MGR-05 to MGR-07, MGR-09, MGR-12
        def sym_gen(key):
            asked.append(key)
            if key == "broken":
                raise LookupError("no such bucket")
            if key == "odd":
                return "no symbol"
            return sym.FullyConnected(sym.sum(sym.Variable("data"), axis=1, keepdims=True), num_hidden=1, name="fc")

        def load(key, length, **more):
            data = DataBatch([np.ones((4, length))], [], bucket_key=key, provide_data=[("data", (9, length))], **more)
            made.load_data_batch(data)
            made.forward()
            return made.get_outputs()[0].asnumpy().ravel().tolist()

        asked = []
        source = Source(data=[("data", (4, 8))], label=[], key=8)
        made = manager(sym_gen(8), source, sym_gen=sym_gen)
        asked.clear()
        made.set_params({"fc_weight": [[1]], "fc_bias": [0]}, {})
        self.assertEqual(load(8, 8), [8] * 4)
        self.assertEqual(load(("a", 2), 2), [2] * 4)
        self.assertEqual(load("8", 3), [3] * 4)
        self.assertEqual(load(("a", 2), 2), [2] * 4)
        self.assertEqual(asked, [("a", 2), "8"])
        self.assertEqual(set(made.execgrp_bucket), {8, ("a", 2), "8"})
        self.assertEqual(made.curr_execgrp.data_arrays[0][0][1].shape, (2, 2))
        with self.raises(LookupError, "no such bucket"):
            load("broken", 3)
        with self.raises(cohort.InvalidArgumentError, "expected a Symbol for 'odd'"):
            load("odd", 3)
        with self.raises(cohort.InvalidArgumentError, "bucket_key"):
            load(None, 3)
        with self.raises(cohort.InvalidArgumentError, "hash"):
            load([1], 3)
        self.assertEqual(made.get_outputs()[0].asnumpy()[0, 0], 2)  # the one before is still current
        with self.raises(cohort.ShapeError, "4 samples"):
            made.load_data_batch(DataBatch([np.ones((5, 2))], [], bucket_key=("a", 2)))
        with self.assertRaises(NotImplementedError):  # MON-13
            made.install_monitor(cohort.Monitor(1))

    def test_names_that_are_not_the_symbols_are_refused(self):  # MGR-01, GRP-08
        with self.raises(cohort.InvalidArgumentError, "arg_names"):
            manager(arg_names=["data"])
        with self.raises(cohort.InvalidArgumentError, "aux_names"):
            manager(aux_names=["bn_moving_mean"])
        with self.raises(cohort.InvalidArgumentError, "workload"):
            manager(work_load_list=[1])
        self.assertEqual(manager(param_names=None, arg_names=None, aux_names=None).param_names, PARAMS)

    def test_the_logger_is_told_of_the_contexts(self):  # GRP-24, MGR-01
        logger = logging.getLogger("cohort.test")
        with self.assertLogs(logger, "INFO") as logged:
            manager(logger=logger)
        self.assertIn("cpu(0), cpu(1)", logged.output[0])
        with self.assertLogs("cohort", "INFO"):
            manager()
        with self.raises(cohort.InvalidArgumentError, "logger"):
            manager(logger="no logger")

    def test_a_monitor_watches_all_devices(self):  # MGR-11, MON-01 to MON-12
        made = manager()
        monitor = cohort.Monitor(2, pattern="fc_(output|bias)")
        made.install_monitor(monitor)
        made.load_data_batch(batch(np.ones((4, 4)), [0] * 4))
        reports = []
        for _ in range(3):
            monitor.tic()
            made.forward(is_train=True)
            reports.append([(step, name) for step, name, _ in monitor.toc()])
        per_device = [(1, "fc_output"), (1, "fc_output"), (1, "fc_bias"), (1, "fc_bias")]
        self.assertEqual(reports[0], per_device)
        self.assertEqual(reports[1], [])
        self.assertEqual([step for step, _ in reports[2]], [3] * 4)
        squares = cohort.Monitor(1, stat_func=lambda array: array * array, sort=True)
        made.install_monitor(squares)
        squares.tic()
        made.forward()
        self.assertEqual(squares.toc()[0][1], "data")
        with self.raises(ValueError, "pattern"):
            cohort.Monitor(1, pattern="(")

    def test_groups_of_a_manager_are_to_look_at(self):  # MGR-05, MGR-08
        made = manager()
        made.load_data_batch(batch(np.ones((4, 4)), [0] * 4))
        with made.curr_execgrp as current:
            current.forward()
            self.assertEqual(current.train_execs[0].outputs[0].shape, (2, 3))
        main = made.execgrp
        made.close()
        self.assertEqual(main.param_names, PARAMS)
        with self.raises(cohort.StateError, "closed"):
            made.forward()

    def test_a_network_without_labels_needs_none(self):
        made = manager(linear(), Source(data=[("data", (4, 2))], label=None), param_names=["fc_weight"])
        made.load_data_batch(DataBatch([np.ones((4, 2))]))
        made.forward()
        self.near(made.get_outputs()[0], [[0]] * 4)


if __name__ == "__main__":
    unittest.main()
