# SPDX-License-Identifier: Apache-2.0
"""Threads, and the garbage collector at its worst moments."""

import gc
import os
import subprocess
import sys
import threading
import time
import unittest
import weakref

import numpy as np

import cohort
from cohort import Calibration, DataBatch, Predictor, _library, cpu, nd, operator, sym
from cohort.executor_group import DataParallelExecutorGroup
from cohort.executor_manager import DataParallelExecutorManager
from support import Case, Source, batch, linear, mlp


def in_threads(num, work):
    """Runs work(i) in threads that begin together; returns the exceptions they raised."""
    raised, ready = [], threading.Barrier(num)

    def run(i):
        try:
            ready.wait()
            work(i)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(num)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


class Threads(Case):
    def test_predictors_on_the_same_parameters_run_at_once(self):
        weight = np.random.RandomState(1).rand(3, 4).astype("float32")
        first = Predictor(mlp(), {"fc_weight": weight, "fc_bias": np.zeros(3)}, data=(2, 4))
        predictors = [first] + [first.clone() for _ in range(3)]
        data = np.random.RandomState(2).rand(40, 2, 4).astype("float32")
        expected = [first(data=one)[0] for one in data]

        def work(i):
            for one, wanted in zip(data, expected):
                np.testing.assert_array_equal(predictors[i](data=one)[0], wanted)

        in_threads(4, work)

    def test_one_object_in_several_threads_is_used_by_one_after_the_other(self):
        predictor = Predictor(linear(), {"fc_weight": [[1, 10]]}, data=(1, 2))
        metric, array = cohort.metric.create("loss"), nd.zeros((3,))

        def work(i):
            for k in range(30):
                self.near(predictor(data=[[i, k]] * (1 + i % 2))[0][0], [i + 10 * k])
                metric.update([], [nd.array([1.0])])
                array[:] = k
                array.asnumpy()

        in_threads(4, work)
        self.assertEqual(metric.get()[1], 1.0)

    def test_what_a_call_uses_beside_its_object_is_used_by_one_after_the_other(self):
        """A calibration, the executor that it watches, and objects that others are bound with."""
        inside, go_on = threading.Event(), threading.Event()

        class Held(operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                inside.set()
                go_on.wait(20)
                self.assign(out_data[0], req[0], in_data[0])

        class HeldProp(operator.CustomOpProp):
            def create_operator(self, ctx, shapes, dtypes):
                return Held()

        operator.register("held")(HeldProp)
        self.addCleanup(operator.unregister, "held")
        net, calibration = sym.Custom(sym.Variable("data"), op_type="held"), Calibration()
        executor = net.simple_bind(data=(1, 2))
        for late in (
            lambda: calibration.ranges(),
            lambda: linear().simple_bind(data=(1, 2), compute_dtype="int8", calibration=calibration),
            lambda: linear().simple_bind(data=(1, 2), shared_exec=executor),
            lambda: executor.forward(),
            lambda: executor.close(),
        ):
            inside.clear()
            go_on.clear()
            observing = threading.Thread(target=calibration.observe, args=(executor,))
            observing.start()
            self.assertTrue(inside.wait(20))
            other = threading.Thread(target=late)
            other.start()
            other.join(0.1)
            with self.subTest(late):
                self.assertTrue(other.is_alive())
            go_on.set()
            observing.join()
            other.join()

    def test_a_call_lets_other_threads_run(self):
        executor, seen = linear().simple_bind(data=(1, 2)), []

        def wait(name, array):
            self.assertTrue(go_on.wait(20))

        go_on = threading.Event()
        executor.set_monitor_callback(wait)
        runs = threading.Thread(target=executor.forward)
        runs.start()
        other = linear().simple_bind(data=(1, 2))
        seen.append(other.forward()[0].shape)  # while the other thread is inside its call
        go_on.set()
        runs.join()
        self.assertEqual(seen, [(1, 1)])

    def test_groups_of_their_own_train_at_once(self):
        def work(i):
            group = DataParallelExecutorGroup(
                linear(), [cpu(0), cpu(1)], None, [("data", (4, 2))], None, None, True, False
            )
            group.set_params({"fc_weight": [[1, i]]}, {})
            for _ in range(20):
                group.forward(batch([[1, 2]] * 4), is_train=True)
                group.backward([np.ones((4, 1))])
            self.near(group.get_outputs()[0], [[1 + 2 * i]] * 4)
            group.close()

        in_threads(4, work)

    def test_what_a_callback_raises_goes_to_its_own_thread(self):
        raises, others = linear().simple_bind(data=(1, 2)), [linear().simple_bind(data=(1, 2)) for _ in range(3)]

        def fails(name, array):
            others[0].forward()
            raise LookupError("mine")

        raises.set_monitor_callback(fails)

        def work(i):
            for _ in range(50):
                if i == 0:
                    with self.raises(LookupError, "mine"):
                        raises.forward()
                else:
                    others[i - 1].forward()

        in_threads(4, work)

    def test_closing_waits_for_the_call_of_another_thread(self):
        executor, inside = linear().simple_bind(data=(1, 2)), threading.Event()

        def slow(name, array):
            inside.set()
            time.sleep(0.05)

        executor.set_monitor_callback(slow)
        runs = threading.Thread(target=lambda: executor.forward())
        runs.start()
        inside.wait()
        executor.close()
        runs.join()
        with self.raises(cohort.StateError, "closed"):
            executor.forward()


class Garbage(Case):
    def test_the_collector_may_run_at_any_moment(self):
        before = gc.get_threshold()
        gc.set_threshold(1)
        try:
            for i in range(6):
                manager = DataParallelExecutorManager(mlp(), [cpu(0), cpu(1)], Source(), None, None, None)
                group = DataParallelExecutorGroup(
                    linear(), [cpu(0), cpu(1)], None, [("data", (4, 2))], None, None, True, False
                )
                cycle = [manager, group]
                cycle.append(cycle)
                manager.load_data_batch(batch(np.ones((4, 4)), [0, 1, 2, 0]))
                manager.forward(True)
                group.set_monitor_callback(lambda name, array: [nd.zeros((2,)) for _ in range(3)])
                group.forward(batch([[1, 2]] * 4), is_train=True)
                views = [array[0] for entry in group.param_arrays for array in entry]
                del manager, group, cycle
                self.assertEqual(len(views), 2)
        finally:
            gc.set_threshold(*before)

    def test_a_cycle_through_a_callback_is_collected(self):
        class Trainer:
            def __init__(self):
                source = Source(data=[("data", (4, 4))], key="a")
                self.manager = DataParallelExecutorManager(
                    self.network("a"), [cpu(0)], source, None, None, None, sym_gen=self.network
                )
                self.executor = linear().simple_bind(data=(1, 2))
                self.executor.set_monitor_callback(self.see)
                self.metric = cohort.metric.np_metric(self.measure, "own")
                self.seen = []

            def network(self, key):
                return mlp()

            def see(self, name, array):
                self.seen.append(array)

            def measure(self, label, pred):
                return 0

        trainer = Trainer()
        trainer.executor.forward()
        self.assertEqual(len(trainer.seen), 1)
        gone = weakref.ref(trainer)
        del trainer
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual(_library.num_callbacks(), 0)

    def test_objects_may_go_in_any_order_and_in_other_threads(self):
        def parts():
            group = DataParallelExecutorGroup(
                linear(), [cpu(0), cpu(1)], None, [("data", (4, 2))], None, None, True, False
            )
            group.forward(batch([[1, 2]] * 4), is_train=True)
            return [
                group,
                group.symbol,
                *group.execs,
                *group.get_outputs(),
                *group.get_outputs(False)[0],
                group.data_arrays,
            ]

        random = np.random.RandomState(4)
        for _ in range(10):
            held = parts()
            for i in random.permutation(len(held)):
                held[i] = None
        left = [parts() for _ in range(4)]
        in_threads(4, lambda i: left[i].clear())

    def test_a_handle_whose_last_use_ends_in_a_callback_goes_behind_the_call(self):
        executor, inside = linear().simple_bind(data=(1, 2)), []

        def drops(name, array):
            held.clear()
            inside.append(cohort.live_handles())

        others = cohort.live_handles()
        held = [nd.zeros((2,)), linear().simple_bind(data=(1, 2))]
        before = cohort.live_handles()
        executor.set_monitor_callback(drops)
        executor.forward()
        self.assertGreaterEqual(inside[0], before)
        gc.collect()
        self.assertEqual(cohort.live_handles(), others)

    def test_memory_that_is_lent_stays_until_queued_work_has_read_it(self):
        group = DataParallelExecutorGroup(
            linear(), [cpu(0), cpu(1)], None, [("data", (64, 2))], None, None, False, False
        )
        group.set_params({"fc_weight": [[1, 0]]}, {})
        for i in range(20):
            group.load(DataBatch([nd.wrap(np.full((64, 2), i, "float32"))]))
            gc.collect()
            group.run(False)
            self.near(group.get_outputs()[0], np.full((64, 1), i))

    def test_callbacks_inside_callbacks_raise_where_they_belong(self):
        outer, inner, told = linear().simple_bind(data=(1, 2)), linear().simple_bind(data=(1, 2)), []

        def fails(name, array):
            raise LookupError("inner")

        def catches(name, array):
            try:
                inner.forward()
            except LookupError as error:
                told.append(str(error))
            raise ArithmeticError("outer")

        inner.set_monitor_callback(fails)
        outer.set_monitor_callback(catches)
        with self.raises(ArithmeticError, "outer"):
            outer.forward()
        self.assertEqual(told, ["inner"])
        outer.set_monitor_callback(None)
        outer.forward()

    def test_a_process_ends_well_whatever_is_alive(self):
        program = (
            "import cohort, sys\n"
            "from cohort import nd, sym\n"
            "net = sym.FullyConnected(sym.Variable('data'), num_hidden=1, no_bias=True)\n"
            "executor = net.simple_bind(data=(1, 2))\n"
            "executor.set_monitor_callback(lambda name, array: None)\n"
            "receiver = cohort.LogReceiver()\n"
            "lent = nd.wrap(__import__('numpy').zeros(3, 'float32'))\n"
            "capsule = lent.__dlpack__()\n"
            "cycle = [executor, receiver, lent]; cycle.append(cycle)\n"
            "executor.forward()\n"
            "class Late:\n"
            "    def __del__(self): executor.forward()\n"
            "late = Late()\n"
            "print('end')\n"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout), (0, "end\n"), ended.stderr)

    def test_a_child_of_fork_says_so(self):
        executor = linear().simple_bind(data=(1, 2))
        executor.forward()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                executor.forward()
                said = b"nothing"
            except cohort.CohortError as error:
                said = type(error).__name__.encode()
            os.write(write, said)
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(os.read(read, 100), b"StateError")
        os.close(read)
        os.close(write)
        self.near(executor.forward()[0], [[0]])
        self.assertEqual(sym.Variable("x").name, "x")


if __name__ == "__main__":
    unittest.main()
