# SPDX-License-Identifier: Apache-2.0
"""Python's operators and methods of arrays and symbols give the same as MXNet's."""

import json
import operator
import pathlib
import unittest

import numpy as np

import cohort
from cohort import nd, sym
from operator_cases import answer_all
from support import Case

MXNETS = json.loads(pathlib.Path(__file__).with_name("operators.json").read_text())


class Operators(Case):
    def test_each_answers_what_mxnet_answers(self):
        found = answer_all(cohort)
        self.assertEqual(list(found), list(MXNETS))
        for expression, answer in MXNETS.items():
            self.assertEqual(json.loads(json.dumps(found[expression])), answer, expression)

    def test_in_place_is_written_where_aliases_views_and_numpys_memory_see_it(self):
        memory = np.array([1, 2, 3, 4], "float32")
        made = nd.wrap(memory)
        alias, rows = made, made[1:3]
        made += np.array([1, 1, 1, 1])
        made[0] *= 5
        rows -= 1
        self.assertIs(made, alias)
        self.near(rows, [2, 3])
        self.near(made, [10, 2, 3, 5])
        np.testing.assert_array_equal(memory, [10, 2, 3, 5])
        square = nd.array([[1, 2], [3, 4]])
        square += square[1]  # the sum overwrites one of its inputs
        self.near(square, [[4, 6], [6, 8]])
        with self.assertRaises(cohort.ShapeError):
            rows += nd.ones((3,))
        with self.assertRaises(TypeError):
            rows += "1"
        with self.assertRaises(TypeError):
            rows += sym.Variable("x")
        self.near(rows, [2, 3])

    def test_fractions_of_numpys_are_not_cut_off(self):
        for dtype in ("int32", "uint8"):
            made = nd.array([1, 0], dtype=dtype)
            self.near(made + np.array([2.0, 3.0]), [3, 3])
            for use in (operator.add, operator.gt, operator.iadd):
                with self.assertRaises(cohort.DtypeError):
                    use(made, np.array([0.5, 1]))
        self.near(nd.array([1, 0]) > np.array([0.5, 0.1]), [1, 0])

    def test_gradients_of_a_group_are_changed_in_place(self):
        net = sym.FullyConnected(sym.Variable("data"), num_hidden=1, no_bias=True, name="fc")
        net = sym.LinearRegressionOutput(net, sym.Variable("label"))
        with cohort.executor_group.DataParallelExecutorGroup(
            net, ["cpu(0)"], None, [("data", (2, 2))], [("label", (2, 1))], ["fc_weight"], True, False
        ) as group:
            group.set_params({"fc_weight": nd.ones((1, 2))}, {})
            group.forward(cohort.DataBatch([nd.ones((2, 2))], [nd.zeros((2, 1))]), is_train=True)
            group.backward()
            before = group.grad_arrays[0][0].asnumpy()
            for gradient in group.grad_arrays[0]:
                gradient += nd.ones((1, 2))
            self.near(group.grad_arrays[0][0], before + 1)

    def test_equality_is_of_elements_and_identity_stays_the_key(self):
        x, y = nd.array([1, 2]), nd.array([1, 3])
        self.near(x == y, [1, 0])
        self.near((x != y) * x, [0, 2])
        self.near(np.array([1, 3]) == x, [1, 0])
        self.assertEqual({x: "x", y: "y"}[y], "y")
        a, b = sym.Variable("a"), sym.Variable("b")
        self.assertEqual((a * (b != 0)).list_arguments(), ["a", "b"])
        self.near((a * (b != 0)).eval(a=x, b=nd.array([0, 3]))[0], [0, 2])
        self.assertEqual({a: 1, b: 2}[a], 1)
        for left, right in ((x, None), (x, "1"), (x, a), (a, None), (a, x), (a, [1])):
            for compare in (operator.eq, operator.ne, operator.lt, operator.ge):
                with self.assertRaises(TypeError):
                    compare(left, right)
        with self.assertRaises(TypeError):  # and not silently true
            bool(a == b)

    def test_symbols_of_different_shapes_do_not_broadcast(self):
        a, b = sym.Variable("a"), sym.Variable("b")
        with self.assertRaises(cohort.ShapeError):
            (a > b).infer_shape(a=(2, 3), b=(2, 1))
        self.assertEqual((a % b).infer_shape(a=(2, 3), b=(2, 3))[1], [(2, 3)])

    def test_reshape_is_a_view_whatever_its_codes(self):
        made = nd.zeros((2, 3, 4))
        for shape, found in (((0, -1), (2, 12)), ((-3, 0), (6, 4)), ((-4, 1, 2, -2), (1, 2, 3, 4)), (24, (24,))):
            part = made.reshape(shape)
            part += 1
            self.assertEqual(part.shape, found)
        self.near(made, np.full((2, 3, 4), 4))
        self.assertEqual(nd.zeros((0, 3)).reshape(3, 0).shape, (3, 0))

    def test_attributes_may_follow_the_inputs_in_order(self):
        x = nd.array([[1, 2], [3, 4]])
        self.near(nd.sum(x, 1, True), [[3], [7]])
        self.assertEqual(sym.sum(sym.Variable("x"), 1, True).infer_shape(x=(2, 2))[1], [(2, 1)])
        for call in (lambda: nd.sum(x, 1, axis=1), lambda: nd.sum(x, 1, True, False, 4)):
            with self.raises(cohort.InvalidArgumentError, "operator sum"):
                call()

    def test_families_have_the_operators_whose_names_begin_so(self):
        boxes = nd.array([[0, 0, 2, 2], [1, 1, 3, 3]])
        self.near(nd.contrib.box_iou(boxes, boxes), [[1, 1 / 7], [1 / 7, 1]])
        self.near(nd.linalg.gemm2(nd.ones((1, 2)), nd.ones((2, 1))), [[2]])
        self.assertEqual(nd.image.to_tensor(nd.zeros((4, 5, 3), dtype="uint8")).shape, (3, 4, 5))
        node = sym.contrib.box_nms(sym.var("data"), name="nms")
        self.assertEqual(node.list_outputs()[0], "nms_output0")
        self.assertIn("box_nms", dir(nd.contrib))
        self.assertNotIn("exp", dir(sym.linalg))
        for family in (nd.contrib, sym.linalg, nd.image):
            with self.assertRaises(AttributeError):
                family.no_such_operator

    def test_what_is_no_operator_is_no_attribute(self):
        x, a = nd.ones((2,)), sym.Variable("a")
        for made in (x, a):
            self.assertIn("slice_axis", dir(made))
            self.assertFalse(hasattr(made, "no_such"))
            self.assertFalse(hasattr(made, "_plus_scalar"))
            with self.assertRaises(AttributeError):
                made.no_such
        self.assertIs(x.astype("float32", copy=False), x)
        self.assertEqual(a.astype(np.float16).infer_type(a="float32")[1], [np.float16])


if __name__ == "__main__":
    unittest.main()
