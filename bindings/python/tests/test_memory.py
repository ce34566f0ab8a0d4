# SPDX-License-Identifier: Apache-2.0
"""Arrays that nothing refers to, and that nobody closes."""

import gc
import subprocess
import sys
import unittest

import cohort
from cohort import nd, operator
from support import Case

_DROP = """
import re
from cohort import nd
for _ in range(6000):
    nd.zeros((1 << 18,))  # 1 MiB
print(int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read()).group(1)) // 1024)
"""


class Node:
    def __init__(self):
        self.array = nd.zeros((1 << 18,))  # 1 MiB
        self.itself = self


class Memory(Case):
    def test_arrays_that_are_dropped_do_not_fill_memory(self):
        peak = int(subprocess.run([sys.executable, "-c", _DROP], check=True, stdout=subprocess.PIPE).stdout)
        self.assertLess(peak, 600)

    def test_arrays_in_reference_cycles_are_freed_before_there_is_no_room(self):
        device = cohort.cpu(0)
        device.limit_memory(device.memory().used + (16 << 20))
        gc.disable()  # it would be run by chance
        try:
            for _ in range(100):
                Node()
            held = [Node() for _ in range(12)]
            with self.raises(cohort.OutOfMemoryError, "no room"):
                for _ in range(8):
                    held.append(Node())
            self.assertLessEqual(len(held), 16)
            held[0].array += 1
            self.assertEqual(float(held[0].array[0].asnumpy()), 1)
        finally:
            gc.enable()
            device.limit_memory(0)

    def test_a_callback_that_has_no_memory_is_called_once(self):
        calls = []

        class Full(operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                calls.append(req)
                raise cohort.OutOfMemoryError("full")

        class FullProp(operator.CustomOpProp):
            def create_operator(self, ctx, in_shapes, in_dtypes):
                return Full()

        operator.register("py_full")(FullProp)
        with self.raises(cohort.OutOfMemoryError, "full"):
            nd.Custom(nd.ones(2), op_type="py_full")
        operator.unregister("py_full")
        self.assertEqual(len(calls), 1)


if __name__ == "__main__":
    unittest.main()
