# SPDX-License-Identifier: Apache-2.0
"""Custom operators."""

import unittest

import numpy as np

import cohort
from cohort import DataBatch, executor_group, nd, operator, sym
from support import Case


class Softmax(operator.CustomOp):
    """The operator of MXNet's own example."""

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1, keepdims=True))
        self.assign(out_data[0], req[0], nd.array(y / y.sum(axis=1, keepdims=True)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        label = in_data[1].asnumpy().astype(int)
        y = out_data[0].asnumpy()
        y[np.arange(len(label)), label] -= 1
        self.assign(in_grad[0], req[0], nd.array(y))
        in_grad[1][:] = 0  # of the label, whether it is wanted or not


class SoftmaxProp(operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], [in_shape[0][0]]], [in_shape[0]], []

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Softmax()


class Scale(operator.CustomOp):
    def __init__(self, factor, seen):
        self.factor, self.seen = factor, seen

    def forward(self, is_train, req, in_data, out_data, aux):
        out_data[0][:] = in_data[0] * self.factor
        if is_train:
            aux[0] += 1
        self.seen.append(in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * self.factor)


def scale_prop(seen):
    class ScaleProp(operator.CustomOpProp):
        def __init__(self, factor):
            super().__init__()
            self.factor = float(factor)

        def list_auxiliary_states(self):
            return ["count"]

        def infer_shape(self, in_shape):
            self.rows = in_shape[0][0]
            return in_shape, [in_shape[0]], [[1]]

        def create_operator(self, ctx, in_shapes, in_dtypes):
            seen.append((str(ctx), in_shapes, in_dtypes, self.rows))
            return Scale(self.factor, seen)

    return ScaleProp


class Operators(Case):
    def test_a_loss_trains_as_the_library_s_own(self):
        operator.register("py_softmax")(SoftmaxProp)
        scores = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc")
        custom = sym.load_json(sym.Custom(data=scores, op_type="py_softmax", name="softmax").tojson())
        self.assertEqual(custom.list_arguments(), ["data", "fc_weight", "fc_bias", "softmax_label"])
        draw = np.random.RandomState(1)
        data, label = draw.normal(size=(5, 4)), [0, 2, 1, 1, 0]
        found = []
        for net in (custom, sym.SoftmaxOutput(scores, name="softmax")):
            group = executor_group.DataParallelExecutorGroup(
                net,
                ["cpu(0)", "cpu(1)"],
                None,
                [("data", (5, 4))],
                [("softmax_label", (5,))],
                ["fc_weight", "fc_bias"],
                for_training=True,
                inputs_need_grad=False,
            )
            group.set_params({"fc_weight": nd.array(np.arange(12).reshape(3, 4) / 10), "fc_bias": nd.zeros(3)}, {})
            group.forward(DataBatch([nd.array(data)], [nd.array(label)]), is_train=True)
            group.backward()
            found.append(
                [sum(g.asnumpy() for g in of) for of in group.grad_arrays] + [group.get_outputs()[0].asnumpy()]
            )
            group.close()
        for mine, theirs in zip(*found):
            self.near(mine, theirs)
        operator.unregister("py_softmax")

    def test_attributes_states_and_shapes_are_there(self):
        seen = []
        operator.register("py_scale")(scale_prop(seen))
        net = sym.Custom(sym.Variable("data"), op_type="py_scale", factor=3, name="scale")
        self.assertEqual(net.list_auxiliary_states(), ["scale_count"])
        with net.simple_bind(data=(2, 3), grad_req="add") as executor:
            for passes in (1, 2):
                executor.forward(is_train=True, data=nd.ones((2, 3)))
                executor.backward([nd.full((2, 3), 2)])
                self.near(executor.outputs[0], np.full((2, 3), 3))
                self.near(executor.grad_dict["data"], np.full((2, 3), 6 * passes))
                self.near(executor.aux_dict["scale_count"], [passes])
        self.assertEqual(seen[0], ("cpu(0)", [(2, 3)], [np.dtype("float32")], 2))
        with self.raises(cohort.StateError, "closed"):  # working memory cannot be kept
            seen[1].asnumpy()
        self.near(nd.Custom(nd.array([1, 2]), nd.zeros(1), op_type="py_scale", factor=2), [2, 4])
        operator.unregister("py_scale")

    def test_what_it_raises_comes_out_of_the_call(self):
        class Fails(operator.CustomOpProp):
            def __init__(self, where="forward"):
                super().__init__()
                self.where = where
                if where == "init":
                    raise LookupError("init")

            def list_outputs(self):
                return "output" if self.where == "list" else ["output"]

            def infer_shape(self, in_shape):
                if self.where == "infer_shape":
                    raise LookupError("infer_shape")
                return super().infer_shape(in_shape)[: 1 if self.where == "count" else 3]

            def create_operator(self, ctx, in_shapes, in_dtypes):
                if self.where == "nothing":
                    return None
                return operator.CustomOp()

        operator.register("py_fails")(Fails)
        for where, kind, words in (
            ("forward", NotImplementedError, "CustomOp has no forward"),
            ("init", LookupError, "init"),
            ("infer_shape", LookupError, "infer_shape"),
            ("list", cohort.InvalidArgumentError, "list_outputs: expected a list"),
            ("count", cohort.InvalidArgumentError, "infer_shape: expected lists of 1 inputs, 1 outputs and 0"),
            ("nothing", cohort.InvalidArgumentError, "create_operator: expected a CustomOp, found NoneType"),
        ):
            with self.subTest(where), self.raises(kind, words):
                nd.Custom(nd.ones(2), op_type="py_fails", where=where).asnumpy()
        operator.unregister("py_fails")

    def test_names_are_given_and_taken(self):
        with self.raises(cohort.UnknownNameError, "py_none"):
            operator.unregister("py_none")
        with self.raises(cohort.InvalidArgumentError, "expected a class of CustomOpProp"):
            operator.register("py_none")(operator.CustomOp)

        class Loss(operator.CustomOpProp):
            def __init__(self, weight):
                super().__init__(need_top_grad=False)

        operator.register("py_loss")(Loss)  # it requires an attribute, so it is not known to be a loss
        with self.raises(cohort.InvalidArgumentError, r'register\("py_loss", need_top_grad=False\)'):
            sym.Custom(sym.Variable("data"), op_type="py_loss", weight=1)
        operator.register("py_loss", need_top_grad=False)(Loss)
        sym.Custom(sym.Variable("data"), op_type="py_loss", weight=1)
        operator.unregister("py_loss")

    def test_shapes_that_nobody_knows_stay_unknown(self):
        class TwoProp(operator.CustomOpProp):
            def list_arguments(self):
                return ["data", "other"]

        operator.register("two_inputs")(TwoProp)
        net = sym.Custom(sym.Variable("x"), op_type="two_inputs", name="t")
        self.assertEqual(net.infer_shape(x=(2,)), (None, None, None))
        self.assertEqual(net.infer_shape(x=(2,), t_other=(3,))[0], [(2,), (3,)])
        operator.unregister("two_inputs")


if __name__ == "__main__":
    unittest.main()
