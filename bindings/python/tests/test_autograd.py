# SPDX-License-Identifier: Apache-2.0
"""Gradients of imperative computations."""

import gc
import threading
import unittest
import weakref

import numpy as np

import cohort
from cohort import autograd, nd, operator
from support import Case


def marked(values, grad_req="write"):
    array = nd.array(values)
    array.attach_grad(grad_req)
    return array


class Gradients(Case):
    def test_gradients_flow_back_along_what_was_recorded_and_nothing_else_is(self):
        x = marked([1, 2, 3])
        self.near(x.grad, [0, 0, 0])
        outside = x * 2
        with autograd.record():
            self.assertEqual((autograd.is_recording(), autograd.is_training()), (True, True))
            with autograd.pause():
                self.assertEqual((autograd.is_recording(), autograd.is_training()), (False, False))
                paused = x.exp()
            y = x * x + 2 * x - paused
        self.assertEqual((autograd.is_recording(), autograd.is_training()), (False, False))
        self.assertEqual(autograd.num_recorded(), 4)
        self.assertEqual(len(autograd.get_symbol(y).list_arguments()), 2)  # x, and the result computed in the pause
        y.backward()
        self.near(x.grad, [4, 6, 8])
        self.assertEqual(autograd.num_recorded(), 0)
        for head in (y, outside):
            with self.raises(cohort.StateError, "recorded graph"):
                head.backward()
        self.assertIsNone(outside.grad)

    def test_head_gradients_requests_to_add_and_passes_that_keep_the_graph(self):
        x, w = marked([1, 2]), marked([3, 4], "add")
        with autograd.record():
            y, z = x * w, x + w
        autograd.backward([y, z], [nd.array([1, 10]), None], retain_graph=True)
        self.near(x.grad, [4, 41])
        autograd.backward([y, z], [nd.array([1, 10]), None])
        self.near(w.grad, [4, 42])
        with autograd.record():
            y = x * w
        y.backward(nd.array([1, 2]), train_mode=False)
        self.near(x.grad, [3, 8])
        w.attach_grad("null")
        self.assertIsNone(w.grad)

    def test_gradients_of_some_arrays_and_gradients_of_gradients(self):
        x = marked([1, 2])
        with autograd.record():
            y = x * x * x
        first = autograd.grad(y, x, create_graph=True)
        self.near(first, [3, 12])
        self.near(x.grad, [0, 0])
        (second,) = autograd.grad(first, [x])
        self.near(second, [6, 12])

    def test_slices_copies_casts_and_concatenations_are_recorded(self):
        x = marked([[1, 2], [3, 4], [5, 6]])

        def written(key, value):
            into = nd.ones((3, 2))
            into[key] = value()
            return into * 3

        def changed():
            into = x * 2
            into[1] = 5
            into[:, 0] = x[:, 1]
            return into

        def added():
            found = x * 2
            found += x
            return found

        cases = {
            "a row": (lambda: x[1] * nd.array([1, 10]), [0, 0, 1, 10, 0, 0]),
            "the last row": (lambda: x[-1] * 2, [0, 0, 0, 0, 2, 2]),
            "rows": (lambda: x[1:3] * 2, [0, 0, 2, 2, 2, 2]),
            "a column": (lambda: x[:, 1] * 3, [0, 3, 0, 3, 0, 3]),
            "an element": (lambda: x[2, 1] * 3, [0, 0, 0, 0, 0, 3]),
            "a part of a row": (lambda: x[1][1:] * 3, [0, 0, 0, 3, 0, 0]),
            "slice": (lambda: x.slice(0, 2) * 3, [3, 3, 3, 3, 0, 0]),
            "slice_axis": (lambda: x.slice_axis(0, 1, None) * 3, [0, 0, 3, 3, 3, 3]),
            "at": (lambda: x.at(0) * 3, [3, 3, 0, 0, 0, 0]),
            "row by row": (lambda: sum(row * i for i, row in enumerate(x)), [0, 0, 1, 1, 2, 2]),
            "another shape": (lambda: x.reshape(-1) * nd.array([1, 2, 3, 4, 5, 6]), [1, 2, 3, 4, 5, 6]),
            "transposed": (lambda: x.T * nd.array([[1, 2, 3], [4, 5, 6]]), [1, 4, 2, 5, 3, 6]),
            "a copy": (lambda: x.copy() * 2, [2] * 6),
            "a cast": (lambda: x.astype("float64") * 2, [2] * 6),
            "another device": (lambda: x.as_in_context("cpu(1)") * 2, [2] * 6),
            "joined": (lambda: nd.concatenate([x, x * 2]) * 2, [6] * 6),
            "written to all": (lambda: written(slice(None), lambda: x * 2), [6] * 6),
            "written to a row": (lambda: written(1, lambda: x[0]), [3, 3, 0, 0, 0, 0]),
            "written to a column": (lambda: written((slice(None), 1), lambda: x[:, 0]), [3, 0, 3, 0, 3, 0]),
            "written over": (changed, [0, 3, 0, 1, 0, 3]),  # rows 0 and 2 keep 2 x of their second elements
            "added in place": (added, [3] * 6),
        }
        for name, (function, expected) in cases.items():
            with self.subTest(name):
                x.grad[:] = 0
                with autograd.record():
                    y = function()
                y.backward()
                self.near(x.grad.reshape(-1), expected)
        constant = nd.zeros((3,))
        with autograd.record():
            constant[0:2] = 5
            constant[2:][:] = 1
        self.near(constant, [5, 5, 1])

    def test_a_part_of_what_is_recorded_is_not_to_be_written(self):
        x = marked([[1, 2], [3, 4]])
        with autograd.record():
            y = x * 2
            part = y[0]
        for write in (lambda: part.set(0), lambda: part.__setitem__(0, 1), lambda: part.__iadd__(1)):
            with self.raises(cohort.StateError, "part"):
                write()
        row = x[0]
        with autograd.record():
            twice = row * 2
        twice.backward()
        self.near(x.grad, [[2, 2], [0, 0]])
        with autograd.record(), self.raises(cohort.InvalidArgumentError, "marked array"):
            x += 1
        x += 1
        self.near(x, [[2, 3], [4, 5]])

    def test_what_is_detached_is_a_constant(self):
        x = marked([1, 2])
        with autograd.record():
            z = x * 3
            y = z * z.detach()
        y.backward()
        self.near(x.grad, [9, 18])

    def test_the_mode_is_the_one_of_the_application(self):
        x = marked(np.ones(100))

        def dropped():
            return int((nd.Dropout(x, p=0.5).asnumpy() == 0).sum())

        self.assertEqual(dropped(), 0)
        with autograd.train_mode():
            self.assertGreater(dropped(), 0)
        with autograd.record():
            self.assertGreater(dropped(), 0)
            with autograd.predict_mode():
                self.assertEqual(dropped(), 0)
            with autograd.pause(train_mode=True):
                self.assertGreater(dropped(), 0)
            self.assertEqual(int((nd.Dropout(x, p=0.5, is_train=False).asnumpy() == 0).sum()), 0)
            y = nd.Dropout(x, p=0.5)
        y.backward()
        self.near(x.grad, y)
        self.assertEqual((autograd.set_training(True), autograd.set_recording(True)), (False, False))
        self.assertEqual((autograd.set_training(False), autograd.set_recording(False)), (True, True))
        with self.raises(ValueError, "mine"), autograd.record():
            raise ValueError("mine")
        self.assertFalse(autograd.is_recording() or autograd.is_training())

    def test_what_does_not_fit_is_refused(self):
        x = marked([1, 2])
        for call, kind in (
            (lambda: x.attach_grad("keep"), cohort.InvalidArgumentError),
            (lambda: x.attach_grad(stype="csr"), cohort.InvalidArgumentError),
            (lambda: autograd.mark_variables([x], [nd.zeros((1,))]), cohort.ShapeError),
            (lambda: autograd.mark_variables([x], []), cohort.InvalidArgumentError),
            (lambda: autograd.mark_variables([1], [None]), cohort.InvalidArgumentError),
            (lambda: nd.zeros((2,), dtype="int32").attach_grad(), cohort.DtypeError),
            (lambda: autograd.backward([x], [None, None]), cohort.InvalidArgumentError),
            (lambda: autograd.get_symbol("x"), cohort.InvalidArgumentError),
            (lambda: autograd.record_function(x, x, None), cohort.InvalidArgumentError),
        ):
            self.assertRaises(kind, call)
        with autograd.record():
            y = x * x
        x[:] = 0
        with self.raises(cohort.StateError, "overwritten"):
            y.backward()

    def test_nothing_is_recorded_where_nothing_is_marked(self):
        with autograd.record():
            y = nd.ones((2,)) * 2
        for call in (y.backward, lambda: autograd.grad(y, y), lambda: autograd.get_symbol(y)):
            with self.raises(cohort.StateError, "nothing is recorded"):
                call()
        self.assertEqual(autograd.num_recorded(), 0)


class Square(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * x

    def backward(self, dy):
        (x,) = self.saved_tensors
        return 2 * x * dy


class Swap(autograd.Function):
    def forward(self, x, y):
        return y * 1, x * 1

    def backward(self, dy, dx):
        return dx, None


class Functions(Case):
    def test_functions_of_the_program_take_part(self):
        x, w = marked([1, 2]), marked([3, 4])
        with autograd.record():
            y = Square()(x) * w
        y.backward()
        self.near(x.grad, [6, 16])
        self.near(w.grad, [1, 4])
        with autograd.record():
            a, b = Swap()(x, w)
            y = a * 2 + b * 3
        y.backward()
        self.near(x.grad, [3, 3])
        with autograd.record():
            y = Square()(x)
        first = autograd.grad(y, x, create_graph=True)
        self.near(autograd.grad(first, x), [2, 2])
        self.near(Square()(x), [1, 4])

    def test_what_a_function_raises_the_pass_raises(self):
        class Tired(Square):
            def backward(self, dy):
                raise KeyError("tired")

        x = marked([1, 2])
        with autograd.record():
            y = Tired()(x)
        with self.raises(KeyError, "tired"):
            y.backward()
        with autograd.record():
            y = Square()(x)
        y.backward()
        self.near(x.grad, [2, 4])
        with autograd.record(), self.raises(cohort.InvalidArgumentError, "marked array"):
            autograd.record_function(x, x, lambda dy: dy)

    def test_what_a_function_holds_goes_with_the_tape(self):
        x = marked([1, 2])
        with autograd.record():
            y = Square()(x)  # y refers to x, which refers to the tape, which refers to y
        gone = weakref.ref(x)
        del x, y
        gc.collect()
        self.assertIsNone(gone())

    def test_an_operator_of_the_program_is_recorded(self):
        class Twice(operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0] * 2)

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                self.assign(in_grad[0], req[0], out_grad[0] * 2)

        class TwiceProp(operator.CustomOpProp):
            def create_operator(self, ctx, in_shapes, in_dtypes):
                return Twice()

        operator.register("twice_recorded")(TwiceProp)
        x = marked([1, 2])
        with autograd.record():
            y = nd.Custom(x, op_type="twice_recorded")
            (y * y).backward()
        self.near(x.grad, [8, 16])
        del y
        operator.unregister("twice_recorded")

    def test_threads_record_at_the_same_time(self):
        shared, failed = marked([2]), []

        def work(number):
            try:
                own = marked([float(number)])
                for _ in range(50):
                    assert not autograd.is_recording()
                    with autograd.record():
                        y = own * shared.detach() * own
                        z = nd.Dropout(shared, p=0.5)
                    y.backward()
                    assert own.grad.asscalar() == 4 * number, own.grad.asscalar()
                    with autograd.record(train_mode=False):
                        z = nd.Dropout(shared, p=0.5)
                    assert z.asscalar() == 2
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])

    def test_a_loop_keeps_nothing(self):
        x = marked([1, 2])

        def step():
            with autograd.record():
                loss = (Square()(x * 2)[0:1] + 1).sum()
            loss.backward()

        step()
        before = cohort.live_handles()
        for _ in range(50):
            step()
        self.assertEqual(cohort.live_handles(), before)
        for _ in range(1000):
            with autograd.record():
                x * x
        self.assertLess(autograd.num_recorded(), 1000)


if __name__ == "__main__":
    unittest.main()
