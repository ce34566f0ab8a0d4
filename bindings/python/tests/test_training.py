# SPDX-License-Identifier: Apache-2.0
"""Training in one call, the digits over three uneven devices, and prediction from an MXNet checkpoint."""

import contextlib
import importlib.util
import io
import os
import shutil
import tempfile
import unittest

import numpy as np

import cohort
from cohort import NDArrayIter, Predictor, cpu, nd, sym
from support import ROOT, Case, linear, mlp


def digits(name="train_digits"):
    path = os.path.join(ROOT, "bindings", "python", "examples", name + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return path, module


def clouds(num=90, seed=2):
    """Three linearly separable clouds of points, and the class of each."""
    random = np.random.RandomState(seed)
    label = np.arange(num) % 3
    data = random.normal(size=(num, 4)) * 0.3
    data[np.arange(num), label] += 2
    return data, label


class Training(Case):
    def test_the_arrays_of_a_dict_come_in_the_order_of_their_names(self):
        given = {name: np.zeros((2, 3)) for name in ("b", "c", "a")}
        self.assertEqual([desc.name for desc in NDArrayIter(given, batch_size=2).provide_data], ["a", "b", "c"])

    def test_the_digits_are_learnt_over_three_uneven_devices_in_under_100_lines(self):
        path, module = digits()
        with open(path, encoding="utf-8") as file:
            self.assertLess(len(file.readlines()), 100)
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
            accuracy = module.main(["--epochs", "5", "--out", os.path.join(folder, "digits")])
        self.assertGreater(accuracy, 0.95)
        self.assertIn("epoch 1: ", said.getvalue())
        self.assertIn(f"test accuracy: {accuracy:.4f}", said.getvalue())

    def test_a_checkpoint_of_mxnet_is_fine_tuned_and_a_stop_changes_no_bit(self):
        golden = os.path.join(ROOT, "tests", "golden", "group", "lenet_2dev")
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
            for name, to in ("symbol.json", "net-symbol.json"), ("init.params", "net-0007.params"):
                shutil.copy(os.path.join(golden, name), os.path.join(folder, to))
            accuracy, same = digits("fine_tune")[1].main([os.path.join(folder, "net"), "7", "--out", folder])
        self.assertGreater(accuracy, 0.85)
        self.assertTrue(same, said.getvalue())

    def test_training_that_is_saved_goes_on_with_the_same_bits(self):
        net = sym.Dropout(
            sym.BatchNorm(
                sym.FullyConnected(sym.Variable("data"), num_hidden=8, name="fc"), fix_gamma=False, name="bn"
            ),
            p=0.5,
            name="drop",
        )
        net = sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=3, name="out"), name="softmax")
        data, label = clouds()

        def trained(num_epoch, optimizer, num_contexts, **given):
            batches = NDArrayIter(data, label, batch_size=30, label_name="softmax_label")
            where = [cpu(i) for i in range(num_contexts)]
            return cohort.fit(
                net, batches, num_epoch=num_epoch, optimizer=optimizer, contexts=where, keep_device_aux=True, **given
            )

        def rule(name):
            return cohort.optimizer.create(name, learning_rate=0.1, rescale_grad=1 / 30)

        def bits(fitted):
            return {name: array.asnumpy().tobytes() for part in fitted.get_params() for name, array in part.items()}

        for num_contexts in (1, 2, 3):
            for name in ("sgd", "adam"):
                with trained(5, rule(name), num_contexts, seed=4) as whole:
                    expected = bits(whole)
                with trained(2, rule(name), num_contexts, seed=4) as part:
                    params, states = part.get_params(), part.optimizer.get_states()
                again = rule(name)
                again.set_states(states)
                given = {"arg_params": params[0], "aux_params": params[1]}
                with trained(3, again, num_contexts, **given) as rest:
                    self.assertEqual(expected, bits(rest), f"{name} on {num_contexts}")

    def test_misspelt_and_extra_names_are_refused(self):
        data, label = clouds()
        batches = NDArrayIter(data, label, batch_size=30, label_name="softmax_label")
        with self.raises(cohort.UnknownNameError, "fixed_param_names: 'fc_1_weight' .* nearest name is 'fc_weight'"):
            cohort.fit(mlp(), batches, fixed_param_names=["fc_1_weight"])
        with cohort.fit(mlp(), batches) as fitted:
            args, aux = fitted.get_params()
        args["old_weight"] = args["fc_weight"]
        with self.raises(cohort.UnknownNameError, "'old_weight' is not among the arguments"):
            cohort.fit(mlp(), batches, arg_params=args, aux_params=aux)
        cohort.fit(mlp(), batches, arg_params=args, aux_params=aux, allow_extra=True).close()

    def test_a_random_state_is_read_and_set(self):
        batches = NDArrayIter(np.ones((4, 8)), np.zeros(4), batch_size=4)
        group = cohort.executor_group.DataParallelExecutorGroup(
            sym.Dropout(sym.Variable("data"), name="drop"),
            [cpu(0), cpu(1)],
            None,
            batches.provide_data,
            None,
            None,
            True,
            False,
        )
        state = group.get_random_state()
        drawn = []
        for _ in range(2):
            group.set_random_state(state)
            group.forward(next(iter(batches)), is_train=True)
            drawn.append(group.get_outputs()[0].asnumpy())
        np.testing.assert_array_equal(drawn[0], drawn[1])
        with self.assertRaises(cohort.FormatError):
            group.set_random_state(state[:-1])
        group.close()
        executor = sym.Dropout(sym.Variable("data"), name="drop").simple_bind(cpu(), data=(8, 8))
        state, drawn = executor.get_random_state(), []
        for _ in range(2):
            executor.set_random_state(state)
            drawn.append(executor.forward(True, data=np.ones((8, 8)))[0].asnumpy())
        np.testing.assert_array_equal(drawn[0], drawn[1])

    def test_the_digits_are_learnt_as_well_in_bfloat16(self):
        _, module = digits()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            options = [
                "--contexts",
                "cpu(0)",
                "--workload",
                "1",
                "--epochs",
                "5",
                "--out",
                os.path.join(folder, "digits"),
            ]
            wide, narrow = (module.main([*options, "--compute-dtype", key]) for key in ("float32", "bfloat16"))
        self.assertGreater(wide, 0.95)
        self.assertLessEqual(abs(wide - narrow), 2 / 360)  # of 360 digits

    def test_a_fit_tells_its_callbacks_and_can_be_stopped(self):
        data, label = clouds()
        batches, epochs = [], []

        class Counts(cohort.Callback):
            def on_batch_end(self, progress):
                batches.append((progress.epoch, progress.batch))

        def at_epochs(progress):
            epochs.append(progress.train["accuracy"])
            if progress.epoch == 2:
                progress.stop()

        train = NDArrayIter(data, label, 30, shuffle=True, seed=3)
        with cohort.fit(
            mlp(),
            train,
            NDArrayIter(data, label, 30),
            num_epoch=9,
            contexts=[cpu(0), cpu(1)],
            workload=[1, 2],
            optimizer_params={"learning_rate": 1.0},
            callbacks=[Counts(), at_epochs],
        ) as fitted:
            self.assertEqual(len(fitted.history), 3)
            self.assertGreater(fitted.history[-1]["eval-accuracy"], 0.95)
            args, _ = fitted.get_params()
        self.assertEqual(batches, [(epoch, i) for epoch in range(3) for i in range(3)])
        self.assertEqual(len(epochs), 3)
        with cohort.fit(mlp(), train, arg_params=args, num_epoch=0) as fitted:
            self.near(fitted.get_params()[0]["fc_bias"], args["fc_bias"])

    def test_what_a_callback_of_a_fit_raises_arrives(self):
        data, label = clouds()

        def interrupts(progress):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            cohort.fit(mlp(), NDArrayIter(data, label, 30), callbacks=[interrupts])
        with self.raises(cohort.InvalidArgumentError, "callbacks"):
            cohort.fit(mlp(), NDArrayIter(data, label, 30), callbacks=["no function"])
        with self.raises(cohort.UnknownNameError, "fc_bias"):
            cohort.fit(mlp(), NDArrayIter(data, label, 30), arg_params={"fc_weight": np.zeros((3, 4))})

    def test_batches_of_evaluation_data_may_be_of_another_length(self):
        points = np.random.RandomState(3).normal(size=(60, 2))
        net = sym.SoftmaxOutput(sym.FullyConnected(sym.Variable("data"), num_hidden=2, name="fc"), name="softmax")
        train = cohort.NDArrayIter(points, points[:, 0] > 0, batch_size=20)
        test = cohort.NDArrayIter(points[:28], points[:28, 0] > 0, batch_size=7)
        with cohort.fit(net, train, test, num_epoch=3, contexts=["cpu(0)", "cpu(1)"]) as fitted:
            args, _ = fitted.get_params()
            scores = points[:28] @ args["fc_weight"].asnumpy().T + args["fc_bias"].asnumpy()
            right = np.mean(scores.argmax(1) == (points[:28, 0] > 0))
            self.assertAlmostEqual(fitted.history[-1]["eval-accuracy"], right)
            self.assertEqual(cohort.score(fitted.group, test), {"accuracy": fitted.history[-1]["eval-accuracy"]})
            wide = cohort.NDArrayIter(np.zeros((7, 3)), np.zeros(7), batch_size=7)
            with self.raises(cohort.ShapeError, "fc_weight|weight"):
                cohort.score(fitted.group, wide)
            cohort.score(fitted.group, train)  # an error leaves the group as it was

    def test_the_same_seeds_give_the_same_bits(self):
        data, label = clouds()
        found = []
        for _ in range(2):
            with cohort.fit(
                mlp(),
                NDArrayIter(data, label, 30, shuffle=True, seed=5),
                num_epoch=2,
                seed=7,
                contexts=[cpu(0), cpu(1), cpu(2)],
            ) as fitted:
                found.append(fitted.get_params()[0]["fc_weight"].asnumpy())
        np.testing.assert_array_equal(*found)

    def test_batches_are_filled_up_or_left_out(self):
        data, label = clouds(10)
        padded, cut = (NDArrayIter(data, label, 4, last_batch_handle=how) for how in ("pad", "discard"))
        self.assertEqual([batch.pad for batch in padded], [0, 0, 2])
        self.assertEqual([batch.index.tolist() for batch in cut], [[0, 1, 2, 3], [4, 5, 6, 7]])
        self.assertEqual((len(padded), len(cut)), (3, 2))
        self.assertEqual(padded.provide_data[0].shape, (4, 4))
        for odd in ({"batch_size": 0}, {"batch_size": 11}, {"last_batch_handle": "roll"}, {"label": label[:3]}):
            with self.raises(cohort.InvalidArgumentError, "."):
                NDArrayIter(data, **{"label": label, "batch_size": 4, **odd})


class Prediction(Case):
    def checkpoint(self, folder):
        """A network and its parameters written by MXNet 1.9.1, with the scenario's own inputs and outputs."""
        golden = os.path.join(ROOT, "tests", "golden", "group", "lenet_2dev")
        shutil.copy(os.path.join(golden, "symbol.json"), os.path.join(folder, "net-symbol.json"))
        shutil.copy(os.path.join(golden, "init.params"), os.path.join(folder, "net-0007.params"))
        return os.path.join(folder, "net")

    def test_a_checkpoint_of_mxnets_is_loaded_and_asked(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = self.checkpoint(folder)
            symbol, args, aux = cohort.load_checkpoint(prefix, 7)
            shape = (6, 1, 8, 8)
            images = np.random.RandomState(1).rand(*shape).astype("float32")
            executor = symbol.simple_bind(data=shape, grad_req="null")
            executor.copy_params_from(args, aux)
            expected = executor.forward(data=images)[0].asnumpy()
            predictor = Predictor.load(prefix, 7, data=(1, 1, 8, 8))
            found = [predictor(data=images[i : i + 1])[0] for i in range(6)]
            self.near(np.concatenate(found), expected)
            self.near(predictor(data=images)[0], expected)  # another batch size
            self.near(predictor(data=images[:2])[0], expected[:2])
            self.near(predictor.clone()(data=images[:1])[0], expected[:1])

    def test_what_it_takes_follows_from_network_and_parameters(self):
        net = sym.LinearRegressionOutput(linear(), sym.Variable("target"), name="near")
        self.assertEqual(net.list_labels(), ["target"])
        for dtype in ("float32", "float64", "float16"):
            params = {"fc_weight": nd.array([[1, 10]], dtype=dtype), "of_another_head": nd.zeros(3)}
            found = Predictor(net, params, {"gone": nd.zeros(1)}, data=(1, 2))(data=[[3, 4]])[0]
            self.near(found, [[43]])
            self.assertEqual(found.dtype, dtype)
        with self.raises(cohort.UnknownNameError, "no argument 'dat'; it has: data, fc_weight, target"):
            Predictor(net, params, dat=(1, 2))
        of_label = sym.FullyConnected(sym.Variable("data"), sym.Variable("a_label"), num_hidden=1, no_bias=True)
        with self.raises(cohort.UnknownNameError, "a_label"):  # no label of a loss, whatever its name
            Predictor(of_label, {}, data=(1, 2))

    def test_what_is_missing_is_said(self):
        with self.raises(cohort.UnknownNameError, "fc_weight"):
            Predictor(linear(), {}, data=(1, 2))
        with self.raises(cohort.UnknownNameError, "expected .'data'., found .'dat'."):
            Predictor(linear(), {"fc_weight": [[1, 2]]}, data=(1, 2))(dat=[[1, 2]])
        with self.raises(cohort.ShapeError, "fc"):
            Predictor(linear(), {"fc_weight": [[1, 2, 3]]}, data=(1, 2))
        with tempfile.TemporaryDirectory() as folder:
            prefix = self.checkpoint(folder)
            with self.raises(cohort.FileError, "0008.params"):
                Predictor.load(prefix, 8, data=(1, 1, 8, 8))
            with open(prefix + "-0009.params", "wb") as file:
                file.write(b"damaged")
            with self.raises(cohort.FormatError, "0009.params"):
                Predictor.load(prefix, 9, data=(1, 1, 8, 8))

    def test_clones_share_their_parameters(self):
        weight = nd.array([[1, 10]])
        predictor = Predictor(linear(), {"fc_weight": weight}, data=(1, 2))
        other = predictor.clone()
        weight[:] = [[2, 0]]
        self.near(predictor(data=[[3, 4]])[0], [[6]])
        self.near(other(data=[[3, 4]])[0], [[6]])


if __name__ == "__main__":
    unittest.main()
