# SPDX-License-Identifier: Apache-2.0
"""The group of MXNet's Module, metrics, optimizers, initializers."""

import inspect
import gc
import math
import unittest

import numpy as np

import cohort
from cohort import DataBatch, DataDesc, cpu, nd, sym
from cohort.executor_group import DataParallelExecutorGroup
from support import Case, batch, linear, mlp

TWO = [cpu(0), cpu(1)]


def group(symbol=None, **more):
    given = {
        "contexts": TWO,
        "workload": None,
        "data_shapes": [("data", (4, 2))],
        "label_shapes": None,
        "param_names": ["fc_weight"],
        "for_training": True,
        "inputs_need_grad": False,
    }
    return DataParallelExecutorGroup(linear() if symbol is None else symbol, **{**given, **more})


class Group(Case):
    def test_the_signature_is_mxnets(self):
        taken = inspect.signature(DataParallelExecutorGroup).parameters
        self.assertEqual(
            list(taken)[:14],
            "symbol contexts workload data_shapes label_shapes param_names for_training inputs_need_grad shared_group "
            "logger fixed_param_names grad_req state_names group2ctxs".split(),
        )
        self.assertEqual(taken["grad_req"].default, "write")

    def test_outputs_and_gradients_are_merged_or_not(self):
        made = group(inputs_need_grad=True)
        made.set_params({"fc_weight": [[1, 10]]}, {})
        made.forward(batch([[1, 2], [3, 4], [5, 6], [7, 8]]), is_train=True)
        self.near(made.get_outputs()[0], [[21], [43], [65], [87]])
        self.near(made.get_outputs(False)[0][1], [[65], [87]])
        made.backward([nd.array([[1], [1], [2], [2]])])
        self.near(made.get_input_grads()[0], [[1, 10], [1, 10], [2, 20], [2, 20]])
        self.near(made.grad_arrays[0][1], [[24, 28]])
        self.assertEqual(made.get_output_shapes(), [("fc_output", (4, 1))])
        with self.raises(cohort.InvalidArgumentError, "outputs"):
            made.get_outputs(True, 0, 2)
        with self.raises(cohort.StateError, "input gradients"):
            group().get_input_grads()

    def test_batches_may_be_split_already(self):
        made = group()
        made.set_params({"fc_weight": [[1, 10]]}, {})
        made.forward([batch([[1, 2], [3, 4]]), batch([[5, 6], [7, 8]])])
        self.near(made.get_outputs()[0], [[21], [43], [65], [87]])
        with self.raises(cohort.InvalidArgumentError, "2"):
            made.forward([batch([[1, 2], [3, 4]])])

    def test_shapes_change_and_parameters_stay(self):
        made = group()
        made.set_params({"fc_weight": [[1, 10]]}, {})
        made.reshape([DataDesc("data", (2, 2))], None)
        made.forward(batch([[1, 2], [3, 4]]))
        self.near(made.get_outputs()[0], [[21], [43]])
        self.assertEqual((made.batch_size, made.slices), (2, [slice(0, 1), slice(1, 2)]))
        with self.raises(cohort.StateError, "rebind|bound"):
            made.bind_exec([("data", (4, 2))], None)
        made.bind_exec([("data", (4, 2))], None, reshape=True)
        self.assertEqual(made.decide_slices([("data", (4, 2))]), [0])
        self.assertEqual(made._sliced_shape([("data", (4, 2))], 1, [0])[0].shape, (2, 2))

    def test_options_beside_mxnets(self):
        made = group(contexts="cpu(0)", slices=[slice(0, 4)], input_types={"data": "float64"}, seed=3, num_threads=1)
        self.assertEqual(str(made.data_arrays[0][0][1].dtype), "float64")
        self.assertEqual(
            group(contexts=[cpu(0)] * 4, rounding="balanced", data_shapes=[("data", (6, 2))]).slices[0], slice(0, 2)
        )
        self.assertEqual(group(param_names=None).param_names, ["fc_weight"])
        with self.raises(cohort.InvalidArgumentError, "rounding"):
            group(rounding="down")

    def test_batches_and_parameters_keep_all_digits_in_a_float64_group(self):
        types = {"data": "float64", "softmax_label": "float64"}
        made = group(contexts="cpu(0)", slices=[slice(0, 4)], input_types=types)
        made.set_params({name: np.full(array.shape, 0.1) for name, array in made.copy_params()[0].items()}, {})
        self.assertEqual({float(array.asnumpy().max()) for array in made.copy_params()[0].values()}, {0.1})
        made.load(DataBatch([np.full((4, 2), 0.1)], [np.zeros(4)]))
        self.assertEqual(made.data_arrays[0][0][1].asnumpy().max(), 0.1)

    def test_states_are_set_and_read(self):
        net = sym.elemwise_add(sym.Variable("data"), sym.Variable("memory"), name="sum")
        made = group(net, param_names=[], state_names=["memory"], for_training=False)
        made.set_states(value=10)
        made.forward(batch([[1, 1]] * 4))
        self.near(made.get_outputs()[0], [[11, 11]] * 4)
        made.set_states(made.get_outputs(False))
        made.forward(batch([[1, 1]] * 4))
        self.near(made.get_outputs()[0], [[12, 12]] * 4)
        with self.assertRaises(ValueError):
            made.set_states()
        with self.raises(cohort.UnsupportedError, "states"):
            made.get_states()
        self.assertEqual([a.shape for a in made.get_states(False)[0]], [(2, 2), (2, 2)])

    def test_parameters_are_initialized_and_averaged(self):
        made = group(mlp(), data_shapes=[("data", (4, 4))], label_shapes=[("softmax_label", (4,))], param_names=None)
        made.init_params(cohort.init.Xavier(seed=1))
        args, aux = made.get_params()
        self.assertEqual((sorted(args), aux), (["fc_bias", "fc_weight"], {}))
        self.assertGreater(abs(args["fc_weight"].asnumpy()).max(), 0)
        made.param_arrays[1][0][:] = 4
        made.get_params(args, aux)
        self.near(args["fc_bias"], [2, 2, 2])


class Rest(Case):
    def test_metrics_of_the_library_and_of_python(self):
        labels, preds = [nd.array([0, 1])], [nd.array([[0.9, 0.1], [0.8, 0.2]])]
        both = cohort.metric.create(["acc", lambda label, pred: float(pred[0, 0])])
        both.update(labels, preds)
        names, values = both.get()
        self.assertEqual(names[0], "accuracy")
        self.near(values, [0.5, 0.9])
        both.reset()
        self.assertTrue(all(math.isnan(value) for _, value in both.get_name_value()))
        top = cohort.metric.create("top_k_accuracy", top_k=2, name="best")
        top.update(labels, preds)
        self.assertEqual(top.get(), ("best_2", 1.0))
        pair = cohort.metric.np_metric(lambda label, pred: (float(label.sum()), 2), name="mean")
        pair.update(labels, preds)
        self.assertEqual(pair.get(), ("mean", 0.5))

        def fails(label, pred):
            raise ArithmeticError("no figure")

        broken = cohort.metric.create(fails)
        with self.raises(ArithmeticError, "no figure"):
            broken.update(labels, preds)
        with self.raises(cohort.UnknownNameError, "happiness"):
            cohort.metric.create("happiness")
        child = both.get_metric(1)
        del both
        gc.collect()
        child.update(labels, preds)
        self.near([child.get()[1]], [0.9])
        mae = cohort.metric.create("mae")
        mae.update([nd.array([1, 2])], [nd.array([2, 4])])
        self.assertEqual((mae.sum_metric, mae.num_inst), (1.5, 1))

    def test_any_object_with_update_is_a_metric(self):
        class Counted:
            def __init__(self):
                self.seen, self.kept = [], []

            def update(self, labels, preds):
                self.seen.append(([label.shape for label in labels], [pred.shape for pred in preds]))
                self.kept += labels

            def reset(self):
                self.seen.clear()

            def get_name_value(self):
                return [("counted", len(self.seen))]

        net, points = sym.SoftmaxOutput(sym.FullyConnected(sym.Variable("data"), num_hidden=2), name="softmax"), np.eye(
            6, 3
        )
        train = cohort.NDArrayIter(points, np.arange(6), batch_size=3)
        with cohort.fit(
            net, train, train, eval_metric=Counted(), contexts=["cpu(0)", "cpu(1)"], workload=[1, 2]
        ) as fitted:
            self.assertEqual(fitted.history, [{"train-counted": 4, "eval-counted": 4}])
            counted, label = Counted(), nd.array([7, 8, 9])
            fitted.group.update_metric(counted, [label])
            expected = [([(1,)], [(1, 2)]), ([(2,)], [(2, 2)])]
            self.assertEqual(counted.seen, expected)
            self.assertEqual([kept.tolist() for kept in counted.kept], [[7], [8, 9]])
            fitted.group.update_metric(counted, [[label.slice(0, 1)], [label.slice(1, 3)]], pre_sliced=True)
            self.assertEqual(counted.seen, 2 * expected)
            counted.update = lambda labels, preds: 1 / 0
            with self.raises(ZeroDivisionError, "division"):
                fitted.group.update_metric(counted, [label])
            for wrong in (None, "acc", Counted, 3):
                with self.raises(cohort.InvalidArgumentError, "metric: expected EvalMetric"):
                    fitted.group.update_metric(wrong, [label])

    def test_classes_of_the_library_are_not_derived_from(self):
        class Own(cohort.metric.EvalMetric):
            def __init__(self):
                super().__init__("own")

        with self.raises(TypeError, "Own"):
            Own()

    def test_optimizers_keep_their_states(self):
        weight, grad = nd.array([1.0]), nd.array([0.5])
        adam = cohort.optimizer.create("adam", learning_rate=0.1)
        adam.update("w", weight, grad)
        self.near(weight, [0.9])
        again = cohort.optimizer.create("adam", learning_rate=0.1)
        again.set_states(adam.get_states())
        first, second = weight.copy(), weight.copy()
        adam.update("w", first, grad)
        again.update("w", second, grad)
        np.testing.assert_array_equal(first.asnumpy(), second.asnumpy())
        sgd = cohort.optimizer.create(
            "sgd", lr_schedule={"name": "factor", "step": 1, "factor": 0.5}, learning_rate=1.0
        )
        sgd.update("w", weight, grad)
        sgd.update("w", weight, grad)
        self.assertEqual(sgd.get("num_update"), 2)
        self.assertLess(sgd.learning_rate, 1)
        with self.raises(cohort.UnknownNameError, "no_such"):
            sgd.set("no_such", 1)
        with self.raises(cohort.FormatError, "."):
            sgd.set_states(b"nonsense")

    def test_errors_are_pythons_as_well(self):
        import pickle

        for kind, python in (
            (cohort.InvalidArgumentError, ValueError),
            (cohort.UnknownNameError, KeyError),
            (cohort.FileError, OSError),
            (cohort.DtypeError, TypeError),
            (cohort.StateError, RuntimeError),
            (cohort.OutOfMemoryError, MemoryError),
            (cohort.UnsupportedError, NotImplementedError),
        ):
            error = kind("what, where", "fc")
            self.assertIsInstance(error, python)
            self.assertEqual((str(error), error.subject), ("what, where", "fc"))
            back = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(back), str(back), back.subject), (kind, "what, where", "fc"))
        with self.assertRaises(OSError) as caught:
            cohort.load_checkpoint("/no/such/prefix", 1)
        self.assertIn("/no/such/prefix", caught.exception.subject)

    def test_messages_go_to_pythons_logging(self):
        with cohort.LogReceiver(), self.assertLogs("cohort", "WARNING") as logged:
            sym.load_json(
                '{"nodes": [{"op": "null", "name": "x", "inputs": []}], "arg_nodes": [0], "heads": [[0, 0, 0]],'
                ' "attrs": {"mxnet_version": ["int", 990000]}}'
            )
        self.assertEqual(len(logged.output), 1)

    def test_contexts_are_values(self):
        self.assertEqual({cpu(0), cpu(0), cohort.Context.parse("cpu(1)")}, {cpu(0), cpu(1)})
        self.assertEqual(repr(cohort.gpu(2)), "gpu(2)")
        for odd in ("tpu(0)", "cpu", "cpu(-1)", 3, None):
            with self.assertRaises(ValueError):
                cohort.Context.parse(odd)
        self.assertEqual(cohort.num_gpus() > 0, cohort.has_feature("cuda"))
        self.assertEqual(DataBatch([1]).label, None)


if __name__ == "__main__":
    unittest.main()
