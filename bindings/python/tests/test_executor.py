# SPDX-License-Identifier: Apache-2.0
"""Symbols and executors."""

import os
import pickle
import tempfile
import unittest

import numpy as np

import cohort
from cohort import nd, sym
from support import Case, linear, mlp


class Symbols(Case):
    def test_a_network_is_composed_read_and_written(self):
        net = mlp()
        self.assertEqual(net.list_arguments(), ["data", "fc_weight", "fc_bias", "softmax_label"])
        self.assertEqual(net.list_outputs(), ["softmax_output"])
        self.assertEqual(sym.load_json(net.tojson()).list_arguments(), net.list_arguments())
        self.assertEqual(pickle.loads(pickle.dumps(net)).list_outputs(), net.list_outputs())
        with tempfile.TemporaryDirectory() as folder:
            net.save(os.path.join(folder, "net.json"))
            self.assertEqual(sym.load(os.path.join(folder, "net.json")).tojson(), net.tojson())
        self.assertEqual(net.get_internals()["fc_output"].name, "fc")
        self.assertEqual([part.name for part in sym.Group([net, net["softmax_output"]])], ["softmax", "softmax"])
        self.assertEqual(net.num_nodes, 6)

    def test_attributes_and_shapes_are_those_of_the_symbol(self):
        x = sym.Variable("x", shape=(0, 4), lr_mult=2, init=cohort.init.Constant(3))
        self.assertEqual(x.attr("__shape__"), "(0, 4)")
        self.assertEqual(x.list_attr()["__lr_mult__"], "2")
        net = sym.FullyConnected(x, num_hidden=3, name="fc")
        self.assertEqual(net.attr_dict()["fc"]["num_hidden"], "3")
        self.assertEqual(net.infer_shape(x=(5, 4)), ([(5, 4), (3, 4), (3,)], [(5, 3)], []))
        self.assertEqual(net.infer_shape(), (None, None, None))
        self.assertEqual([str(t) for t in net.infer_type(x="float16")[0]], ["float16"] * 3)
        arrays = {"x": nd.zeros((2, 4))}
        cohort.init.Zero().apply(arrays, net)
        self.near(arrays["x"][0], [3, 3, 3, 3])

    def test_arithmetic_and_replacing_variables(self):
        a, b = sym.Variable("a"), sym.Variable("b")
        net = (2 * a - b) / 4 + 1
        executor = net(a=b * 1).simple_bind(b=(2,))
        self.near(executor.forward(b=[4, 8])[0], [2, 3])

    def test_an_unknown_operator_names_the_nearest(self):
        with self.raises(AttributeError, "nearest name is 'SoftmaxOutput'"):
            sym.SoftmaxOuput
        with self.raises(cohort.UnknownNameError, "there are|named|input|such"):
            sym.FullyConnected(sym.Variable("x"), no_such=sym.Variable("y"), num_hidden=2)


class Executors(Case):
    def test_arrays_of_the_callers_are_used_as_they_are(self):
        weight, grad = nd.array([[1, 10]]), nd.zeros((1, 2))
        executor = linear().bind(
            args={"data": nd.array([[1, 2], [3, 4]]), "fc_weight": weight}, args_grad={"fc_weight": grad}
        )
        self.near(executor.forward(is_train=True)[0], [[21], [43]])
        executor.backward(nd.array([[1], [1]]))
        self.near(grad, [[4, 6]])
        weight[:] = [[2, 0]]
        self.near(executor.forward()[0], [[2], [6]])
        self.assertEqual(executor.grad_req, {"data": "null", "fc_weight": "write"})
        self.assertIsNone(executor.grad_dict["data"])

    def test_another_shape_shares_the_memory(self):
        executor = linear().simple_bind(data=(4, 2))
        executor.copy_params_from({"fc_weight": [[1, 10]]})
        smaller = executor.reshape(data=(2, 2))
        self.near(smaller.forward(data=[[1, 2], [3, 4]])[0], [[21], [43]])
        with self.raises(cohort.ShapeError, "data"):
            executor.reshape(data=(8, 2))
        self.assertEqual(executor.reshape(allow_up_sizing=True, data=(8, 2)).outputs[0].shape, (8, 1))

    def test_the_arrays_of_an_executor_are_the_same_objects_each_time(self):
        executor = mlp().simple_bind(data=(2, 4), grad_req={"fc_weight": "write"})
        outputs, dicts = executor.forward(is_train=True), [executor.arg_dict, executor.grad_dict]
        handles = cohort.live_handles()
        self.assertIs(executor.forward(is_train=True)[0], outputs[0])
        self.assertIs(executor.outputs[0], executor.output_dict["softmax_output"])
        for found, again in zip(dicts, [executor.arg_dict, executor.grad_dict]):
            self.assertTrue(all(found[name] is again[name] for name in found))
        self.assertEqual([array is None for array in executor.grad_arrays], [True, False, True, True])
        executor.outputs.clear()  # the list itself is the caller's
        self.assertEqual((len(executor.outputs), executor.aux_arrays, executor.aux_dict), (1, [], {}))
        self.assertEqual(cohort.live_handles(), handles)
        smaller = executor.reshape(data=(1, 4), softmax_label=(1,))
        self.assertEqual([smaller.forward()[0].shape, executor.outputs[0].shape], [(1, 3), (2, 3)])

    def test_an_array_that_was_closed_is_another_one_next_time(self):
        executor = mlp().simple_bind(data=(2, 4))
        with executor.forward()[0] as output, executor.grad_dict["fc_bias"] as gradient:
            self.assertEqual((output.shape, gradient.dtype), ((2, 3), "float32"))
        for closed in (output, gradient):
            for ask in ("shape", "dtype"):
                with self.raises(cohort.StateError, "closed"):
                    getattr(closed, ask)
        self.near(executor.outputs[0], [[1 / 3] * 3] * 2)
        self.near(executor.grad_dict["fc_bias"], [0] * 3)
        self.near(executor.forward()[0], executor.outputs[0])

    def test_arrays_outlive_their_executor_and_a_closed_one_has_none(self):
        executor = linear().simple_bind(data=(1, 2))
        executor.arg_dict["fc_weight"][:] = [[1, 10]]
        output = executor.forward(data=[[3, 4]])[0]
        handles = cohort.live_handles()
        weight = executor.arg_arrays[1]
        executor.close()
        self.assertEqual(cohort.live_handles(), handles - 2)  # it, and data, which nothing else refers to
        self.near(output, [[43]])
        self.near(weight, [[1, 10]])
        for ask in ("outputs", "arg_dict", "grad_arrays", "aux_dict", "grad_req"):
            with self.raises(cohort.StateError, "closed"):
                getattr(executor, ask)

    def test_outputs_whose_shape_depends_on_values_are_those_of_the_latest_pass(self):
        data, index = sym.Variable("data"), sym.Variable("index")
        net = sym.Group([sym._contrib_boolean_mask(data, index), data * 2])
        executor = net.simple_bind(data=(3, 2), index=(3,))
        self.assertIsNone(executor.outputs[0])
        for index, rows in (([1, 0, 0], 1), ([1, 1, 0], 2), ([1, 0, 0], 1)):
            outputs = executor.forward(data=[[1, 2], [3, 4], [5, 6]], index=index)
            self.assertEqual([output.shape for output in outputs], [(rows, 2), (3, 2)])
            self.near(executor.outputs[0], [[1, 2], [3, 4], [5, 6]][:rows])
            self.near(executor.output_dict[net.list_outputs()[1]], [[2, 4], [6, 8], [10, 12]])
        self.assertEqual(executor.reshape(data=(3, 2), index=(3,)).outputs[0], None)

    def test_head_gradients_are_an_array_a_list_or_a_dict(self):
        executor = linear().simple_bind(data=(1, 2))
        for heads in (nd.array([[1]]), [nd.array([[1]])], {"fc_output": nd.array([[1]])}):
            executor.forward(is_train=True, data=[[3, 4]])
            executor.backward(heads)
            self.near(executor.grad_dict["fc_weight"], [[3, 4]])
        with self.raises(cohort.UnknownNameError, "fc_output"):
            executor.backward({"other": nd.array([[1]])})
        with self.raises(cohort.InvalidArgumentError, "fc"):
            executor.backward()

    def test_values_of_numpys_keep_all_digits_in_a_float64_network(self):
        tenth = np.array([0.1])  # no float32
        network = sym.Variable("x") * sym.Variable("w")
        args = {name: nd.zeros((1,), dtype="float64") for name in ("x", "w")}
        grads = {name: nd.zeros((1,), dtype="float64") for name in ("x", "w")}
        executor = network.bind(cohort.cpu(), args, grads)
        executor.arg_dict["w"][:] = np.ones(1)
        self.assertEqual(executor.forward(True, x=tenth)[0].asscalar(), 0.1)
        executor.backward([tenth])
        self.assertEqual(executor.grad_dict["x"].asscalar(), 0.1)
        executor.copy_params_from({"w": tenth})
        self.assertEqual(executor.arg_dict["w"].asscalar(), 0.1)

    def test_a_monitor_function_sees_each_output_and_what_it_raises_arrives(self):
        executor, seen = mlp().simple_bind(data=(1, 4)), []
        executor.set_monitor_callback(lambda name, array: seen.append((name, array.shape)))
        executor.forward()
        self.assertEqual(seen, [("fc_output", (1, 3)), ("softmax_output", (1, 3))])

        def fails(name, array):
            raise ZeroDivisionError(name)

        executor.set_monitor_callback(fails)
        with self.raises(ZeroDivisionError, "fc_output"):
            executor.forward()
        executor.set_monitor_callback(None)
        executor.forward()
        with self.raises(cohort.InvalidArgumentError, "function"):
            executor.set_monitor_callback("no function")

    def test_memory_plan_and_context_can_be_seen(self):
        executor = mlp().simple_bind(cohort.cpu(1), data=(1, 4))
        self.assertEqual(executor.context, cohort.cpu(1))
        self.assertGreater(executor.memory()["argument_bytes"], 0)
        self.assertIn("Total", executor.debug_str())
        self.assertEqual(executor.partial_forward(False, 0), 5)

    def test_an_error_of_the_binding_is_of_its_class_and_of_pythons(self):
        with self.assertRaises(ValueError) as caught:
            mlp().simple_bind(data=(1, 4), fc_weight=(3, 5))
        self.assertIsInstance(caught.exception, cohort.ShapeError)
        self.assertIn("fc", str(caught.exception))
        with self.raises(cohort.InvalidArgumentError, "grad_req"):
            mlp().simple_bind(data=(1, 4), grad_req="no_such")
        with self.raises(cohort.DeviceError, "gpu"):
            mlp().simple_bind("gpu(4096)", data=(1, 4))


if __name__ == "__main__":
    unittest.main()
