# SPDX-License-Identifier: Apache-2.0
"""The types in which a network computes, and the loss scale."""

import os
import tempfile
import unittest

import numpy as np

import cohort
from cohort import nd, sym
from cohort.executor_group import DataParallelExecutorGroup
from cohort.executor_manager import DataParallelExecutorManager
from support import Case, Source, batch, linear, mlp


def wide():
    """Two layers of 16, each large enough for the processor's units for narrow types."""
    first = sym.FullyConnected(sym.Variable("data"), num_hidden=16, no_bias=True, name="first")
    return sym.FullyConnected(first, num_hidden=16, no_bias=True, name="second")


def computes_in(executor, dtype):
    """The nodes that compute in a narrow type according to the debug text."""
    found, name = [], None
    for line in executor.debug_str().splitlines():
        if line.startswith("Op:"):
            name = line.split("Name=")[1].split()[0].rstrip(",")
        if line == f"Computes in {dtype}":
            found.append(name)
    return found


class Precision(Case):
    def test_names_say_which_layers_are_narrow(self):
        with wide().simple_bind(data=(4, 16), compute_dtype="bfloat16") as executor:
            narrow = computes_in(executor, "bfloat16")
        if not narrow:
            self.skipTest("this processor has no units for bfloat16")
        self.assertEqual(narrow, ["first", "second"])
        options = {"compute_dtype": "bfloat16", "float32_names": ["FullyConnected"], "narrow_names": ["second"]}
        with wide().simple_bind(data=(4, 16), **options) as executor:
            self.assertEqual(computes_in(executor, "bfloat16"), ["second"])
        args = [nd.zeros((4, 16)), nd.zeros((16, 16)), nd.zeros((16, 16))]
        with wide().bind(None, args, grad_req="null", **options) as executor:
            self.assertEqual(computes_in(executor, "bfloat16"), ["second"])
        group = DataParallelExecutorGroup(
            wide(), ["cpu(0)"], None, [("data", (4, 16))], None, None, False, False, **options
        )
        self.assertEqual(computes_in(group.execs[0], "bfloat16"), ["second"])
        source = Source(4, [("data", (4, 16))], None)
        with DataParallelExecutorManager(wide(), [cohort.cpu(0)], source, None, None, None, **options) as manager:
            self.assertEqual(computes_in(manager.execgrp.execs[0], "bfloat16"), ["second"])
        with self.raises(cohort.UnknownNameError, "float32_names: 'third'"):
            wide().simple_bind(data=(4, 16), compute_dtype="bfloat16", float32_names=["third"])

    def test_a_calibrated_group_answers_in_bytes(self):
        rng = np.random.RandomState(3)
        data, weight = rng.uniform(-1, 1, (8, 16)), rng.uniform(-1, 1, (16, 16))
        for method in ("min_max", "entropy"):
            calibration = cohort.Calibration(method)
            with self.raises(cohort.StateError, "observed"):
                calibration.range("data")
            with wide().simple_bind(data=(8, 16), grad_req="null") as executor:
                for name in ("first_weight", "second_weight"):
                    executor.arg_dict[name][:] = weight
                expected = executor.forward(data=data)[0].asnumpy()
                calibration.observe(executor)
            low, high = calibration.range("data")
            self.assertTrue(-1 <= low < 0 < high <= 1)
            kept = calibration.ranges()
            self.assertEqual(kept["data"].asnumpy().tolist(), [low, high])
            calibration = cohort.Calibration.from_ranges(kept)
            self.assertEqual(calibration.range("data"), (low, high))
            group = DataParallelExecutorGroup(
                wide(),
                ["cpu(0)", "cpu(1)"],
                None,
                [("data", (8, 16))],
                None,
                None,
                False,
                False,
                compute_dtype="int8",
                calibration=calibration,
            )
            group.set_params({"first_weight": weight, "second_weight": weight}, {})
            group.forward(batch(data))
            apart = np.abs(group.get_outputs()[0].asnumpy() - expected).max()
            self.assertLess(apart, 0.1 * np.abs(expected).max())
        with self.raises(cohort.InvalidArgumentError, "expected a calibration"):
            wide().simple_bind(data=(8, 16), grad_req="null", compute_dtype="int8")
        with self.raises(cohort.InvalidArgumentError, "min_max"):
            cohort.Calibration("guess")
        with self.raises(cohort.ShapeError, r"'data': expected \(2,\), found \(3,\)"):
            cohort.Calibration.from_ranges({"data": [1, 2, 3]})

    def test_a_loss_scale_skips_what_overflows(self):
        group = DataParallelExecutorGroup(
            mlp(),
            ["cpu(0)", "cpu(1)"],
            None,
            [("data", (4, 4))],
            [("softmax_label", (4,))],
            None,
            True,
            False,
            loss_scale=1024,
            loss_scale_window=2,
        )
        rule = cohort.optimizer.create("sgd", learning_rate=0.1)
        self.assertEqual(group.loss_scale, (1024, 0, 0))
        self.assertEqual(rule.loss_scale, (1, 0, 0))
        for value, expected in ((1, (1024, 1, 0)), (np.inf, (512, 0, 1)), (1, (512, 1, 1)), (1, (1024, 0, 1))):
            group.forward(batch(np.full((4, 4), value), np.zeros(4)), is_train=True)
            group.backward()
            group.update(rule)
            self.assertEqual(group.loss_scale, expected)
            self.assertEqual(rule.loss_scale, expected)
        group.set_loss_scale(64, 1)
        self.assertEqual(group.loss_scale, (64, 1, 1))
        restored = cohort.optimizer.create("sgd", learning_rate=0.1)
        restored.set_states(rule.get_states())
        self.assertEqual(restored.loss_scale, (1024, 0, 1))
        with self.raises(cohort.InvalidArgumentError, "loss_scale"):
            group.set_loss_scale(-1)

    def test_the_buckets_of_a_manager_have_one_loss_scale(self):
        with DataParallelExecutorManager(mlp(), [cohort.cpu(0)], Source(), None, None, None, loss_scale=256) as manager:
            self.assertEqual(manager.loss_scale, (256, 0, 0))
            manager.set_loss_scale(8, 3)
            self.assertEqual(manager.loss_scale, (8, 3, 0))

    def test_there_is_one_backward_pass_at_most_if_so_said(self):
        def twice(forward, backward, once):
            forward()
            backward()
            if not once:
                return backward()
            with self.raises(cohort.StateError, "backward_once"):
                backward()

        data = np.ones((4, 4))
        for once in (False, True):
            settings = {"backward_once": once}
            with mlp().simple_bind(data=(4, 4), **settings) as executor:
                twice(lambda: executor.forward(True, data=data), executor.backward, once)
                args, grads = executor.arg_arrays, executor.grad_arrays
                with mlp().bind(None, args, grads, **settings) as other:
                    twice(lambda: other.forward(True), other.backward, once)
            group = DataParallelExecutorGroup(
                mlp(), ["cpu(0)"], None, [("data", (4, 4))], [("softmax_label", (4,))], None, True, False, **settings
            )
            twice(lambda: group.forward(batch(data, np.zeros(4)), is_train=True), group.backward, once)
            with DataParallelExecutorManager(mlp(), [cohort.cpu(0)], Source(), None, None, None, **settings) as manager:
                manager.load_data_batch(batch(data, np.zeros(4)))
                twice(lambda: manager.forward(True), manager.backward, once)

    def test_what_is_cheap_is_made_again_if_so_said(self):
        net = cohort.sym.Variable("data")
        for i in range(4):
            net = cohort.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=8, no_bias=True, name=f"conv{i}")
            net = cohort.sym.Activation(cohort.sym.BatchNorm(net, name=f"bn{i}"), act_type="relu")
        net = cohort.sym.SoftmaxOutput(cohort.sym.FullyConnected(net, num_hidden=2, name="fc"), name="softmax")
        data = np.random.RandomState(0).standard_normal((4, 3, 12, 12)).astype(np.float32)
        planned, gradients = [], []
        for recompute in (False, True):
            executor = net.simple_bind(data=data.shape, recompute=recompute)
            for i, array in enumerate(executor.arg_arrays):
                array[:] = np.random.RandomState(i).standard_normal(array.shape)
            executor.forward(True, data=data)
            executor.backward()
            gradients.append(executor.grad_dict["conv0_weight"].asnumpy())
            planned.append(executor.memory()["planned_bytes"])
        self.assertLess(planned[1], planned[0])
        np.testing.assert_array_equal(gradients[1], gradients[0])

    def test_gradients_are_summed_in_bfloat16_if_so_said(self):
        between, above = 1 + 3 / 512, 1 + 4 / 512  # bfloat16 can represent the second one
        for dtype, expected in (("float32", between), ("bfloat16", above)):
            group = DataParallelExecutorGroup(
                linear(),
                ["cpu(0)", "cpu(1)"],
                None,
                [("data", (2, 2))],
                None,
                ["fc_weight"],
                True,
                False,
                gradient_sum_dtype=dtype,
            )
            group.forward(batch([[between, 0], [between, 0]]), is_train=True)
            group.backward([nd.ones((2, 1))])
            group.update(cohort.optimizer.create("sgd", learning_rate=1.0))
            self.assertEqual(group.copy_params()[0]["fc_weight"].asnumpy()[0, 0], -2 * expected)
        with self.raises(cohort.InvalidArgumentError, "gradient_sum_dtype"):
            DataParallelExecutorManager(
                mlp(), [cohort.cpu(0)], Source(), None, None, None, gradient_sum_dtype="float16"
            )

    def test_a_predictor_answers_in_bytes(self):
        rng = np.random.RandomState(3)
        data = rng.uniform(-1, 1, (8, 16))
        params = {name: rng.uniform(-1, 1, (16, 16)) for name in ("first_weight", "second_weight")}
        calibration = cohort.Calibration()
        with wide().simple_bind(data=(8, 16), grad_req="null") as executor:
            for name, value in params.items():
                executor.arg_dict[name][:] = value
            executor.forward(data=data)
            calibration.observe(executor)
        shown = cohort.Calibration()
        with cohort.Predictor(wide(), params, data=(4, 16)) as predictor:
            predictor.observe(shown, data=data)  # a batch of another length, too
            self.assertEqual(shown.range("second_output"), calibration.range("second_output"))
            with self.raises(cohort.UnknownNameError, "inputs"):
                predictor.observe(shown, wrong=data)
            with self.raises(cohort.InvalidArgumentError, "Calibration"):
                predictor.observe(None, data=data)
        settings = {"compute_dtype": "int8", "calibration": calibration}
        with wide().simple_bind(data=(8, 16), grad_req="null", **settings) as executor:
            for name, value in params.items():
                executor.arg_dict[name][:] = value
            expected = executor.forward(data=data)[0].asnumpy()
        with cohort.Predictor(wide(), params, data=(8, 16), **settings) as predictor:
            with predictor.clone() as clone:
                for answer in predictor(data=data)[0], clone(data=data)[0]:
                    self.assertTrue(np.array_equal(answer, expected))
        with tempfile.TemporaryDirectory() as folder:
            prefix = os.path.join(folder, "net")
            cohort.save_checkpoint(prefix, 1, wide(), {name: nd.array(value) for name, value in params.items()}, {})
            with cohort.Predictor.load(prefix, 1, map_file=True, data=(8, 16), **settings) as predictor:
                self.assertTrue(np.array_equal(predictor(data=data)[0], expected))
        with self.raises(cohort.InvalidArgumentError, "expected a calibration"):
            cohort.Predictor(wide(), params, compute_dtype="int8", data=(8, 16))

    def test_fit_hands_its_settings_on(self):
        source = cohort.NDArrayIter(np.full((8, 4), np.inf), np.zeros(8), batch_size=4, label_name="softmax_label")
        with cohort.fit(
            mlp(),
            source,
            contexts=["cpu(0)", "cpu(1)"],
            loss_scale=1024,
            loss_scale_window=3,
            backward_once=True,
            gradient_sum_dtype="bfloat16",
            compute_dtype="bfloat16",
            float32_names=["FullyConnected"],
            num_threads=1,
            tf32=True,
        ) as fitted:
            self.assertEqual(fitted.group.loss_scale, (256, 0, 2))
            with self.raises(cohort.StateError, "backward_once"):
                fitted.group.backward()
        with self.raises(cohort.InvalidArgumentError, "tf32"):
            cohort.fit(mlp(), source, tf32=np.zeros(2))
        with self.raises(cohort.UnknownNameError, "narrow_names: 'third'"):
            cohort.fit(mlp(), source, compute_dtype="bfloat16", narrow_names=["third"])

    def test_given_parameters_are_used_and_may_lie_in_their_file(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = os.path.join(folder, "net")
            cohort.save_checkpoint(prefix, 1, linear(), {"fc_weight": nd.array([[1, 10]])}, {})
            for mapped in (False, True):
                net, args, aux = cohort.load_checkpoint(prefix, 1, mapped)
                group = DataParallelExecutorGroup(
                    net,
                    ["cpu(0)", "cpu(1)"],
                    None,
                    [("data", (2, 2))],
                    None,
                    None,
                    False,
                    False,
                    arg_params=args,
                    aux_params=aux,
                )
                group.forward(batch([[1, 2], [3, 4]]))
                self.near(group.get_outputs()[0].asnumpy(), [[21], [43]])
                args["fc_weight"][:] = [[0, 1]]
                group.forward(batch([[1, 2], [3, 4]]))
                self.near(group.get_outputs()[0].asnumpy(), [[2], [4]])
            with self.raises(cohort.InvalidArgumentError, "arg_params"):
                DataParallelExecutorGroup(
                    net, ["cpu(0)"], None, [("data", (2, 2))], None, None, True, False, arg_params=args
                )


if __name__ == "__main__":
    unittest.main()
