# SPDX-License-Identifier: Apache-2.0
"""Arrays: NumPy in and out, views, files, DLPack both ways, operators as functions."""

import copy
import ctypes
import gc
import os
import pickle
import tempfile
import unittest

import numpy as np

import cohort
from cohort import _operators, nd
from support import Case


class Arrays(Case):
    def test_an_array_is_a_copy_of_numpys_and_becomes_one_again(self):
        for dtype in "float32 float64 float16 uint8 int32 int8 int64 bool".split():
            source = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
            made = nd.array(source, dtype=dtype)
            self.assertEqual((made.shape, str(made.dtype)), ((2, 3), dtype))
            np.testing.assert_array_equal(made.asnumpy(), source)
            source[0, 0] = 1
            self.assertEqual(made.asnumpy()[0, 0], 0)
        self.assertEqual(nd.array([1, 2]).dtype, np.float32)
        self.assertEqual(
            [str(nd.array(np.zeros(1, t)).dtype) for t in ("float64", "int64", "float16")],
            ["float32", "int64", "float16"],
        )
        np.testing.assert_array_equal(nd.array(np.arange(6).reshape(2, 3).T), [[0, 3], [1, 4], [2, 5]])
        self.assertEqual(nd.array(7.5).shape, ())
        self.assertEqual(float(nd.array(7.5)), 7.5)

    def test_bfloat16_has_no_type_of_numpys_and_is_read_as_float32(self):
        made = nd.array([1.5, 2], dtype="bfloat16")
        self.assertEqual(made.dtype, "bfloat16")
        self.near(made.asnumpy(), [1.5, 2])
        made[:] = [3, 4]
        self.near(made, [3, 4])

    def test_a_view_shares_memory_and_keeps_it_alive(self):
        made = nd.array([[1, 2], [3, 4], [5, 6]])
        row, rows, flat = made[-1], made[0:2], made.reshape(-1)
        made[0] = 9
        made[1:3] = [[7, 7], [8, 8]]
        made.close()
        self.near(row, [8, 8])
        self.near(rows, [[9, 9], [7, 7]])
        self.near(flat, [9, 9, 7, 7, 8, 8])
        self.assertEqual([part.tolist() for part in rows], [[9, 9], [7, 7]])

    def test_what_is_out_of_range_is_an_error(self):
        made = nd.array([[1, 2], [3, 4]])
        with self.assertRaises(IndexError):
            made[2]
        for key in ("a", 1.5):
            with self.raises(cohort.InvalidArgumentError, "whole numbers"):
                made[key]
        with self.raises(cohort.InvalidArgumentError, "expected -9223372036854775808"):
            nd.zeros((2**64,))
        with self.raises(cohort.ShapeError, "-1"):
            nd.zeros((-1,))
        with self.raises(cohort.InvalidArgumentError, "value: expected shape"):
            made[:] = [1, 2, 3]
        with self.raises(cohort.DtypeError, "complex"):
            nd.array(np.zeros(2, "complex64"))
        with self.raises(cohort.DtypeError, "dtype"):
            nd.zeros((2,), dtype="no_such")

    def test_keys_choose_what_they_choose_of_numpys(self):
        keys = [
            np.s_[1],
            np.s_[-1, 2],
            np.s_[0, 1, 2],
            np.s_[1:3],
            np.s_[3:1],
            np.s_[::2],
            np.s_[::-1],
            np.s_[-1:-3:-1, 2],
        ]
        keys += [np.s_[:, 1:4], np.s_[..., 0], np.s_[:, :, -1], np.s_[1, 2:4, ::2], np.s_[1, ..., 2], np.s_[:, 3:3], ()]
        keys += [None, np.s_[:, None], np.s_[2, None, 3], np.s_[1:2, ..., None], np.s_[np.int64(2), 1:], ...]
        random = np.random.RandomState(5)
        for dtype in ("float32", "float64", "float16", "int32", "int64", "int8", "uint8", "bool"):
            whole = random.randint(0, 100, size=(4, 5, 6)).astype(dtype)
            for key in keys:
                with self.subTest(dtype=dtype, key=key):
                    chosen = nd.array(whole, dtype=dtype)[key].asnumpy()
                    np.testing.assert_array_equal(chosen, whole[key])
                    self.assertEqual((chosen.shape, chosen.dtype), (whole[key].shape, whole[key].dtype))
                    other = random.randint(0, 2, size=whole[key].shape).astype(dtype)
                    lists = [other.tolist()] if other.size else []  # nested lists of an empty array have no shape
                    for value in [1, other, nd.array(other, dtype=dtype), *lists]:
                        expected, array = whole.copy(), nd.array(whole, dtype=dtype)
                        array[key] = expected[key] = value if not isinstance(value, nd.NDArray) else other
                        if isinstance(value, nd.NDArray):
                            array[key] = value
                        np.testing.assert_array_equal(array.asnumpy(), expected)
        grid, expected = nd.zeros((3, 4)), np.zeros((3, 4))
        for key, value in ((np.s_[:], [[1], [2], [3]]), (np.s_[1:, ::2], [7, 8]), (np.s_[:, 1], 5)):  # repeated
            grid[key], expected[key] = value, value
        self.near(grid, expected)
        row = grid[1, 1:3]  # a view
        row[:] = 9
        self.near(grid[1], [expected[1][0], 9, 9, expected[1][3]])
        for key in (np.s_[3], np.s_[0, 4], np.s_[0, 0, 0], np.s_[..., ...]):
            with self.assertRaises(IndexError):
                grid[key]
        for key in ([0, 1], "x", 1.5, True, grid):
            with self.raises(cohort.InvalidArgumentError, "expected whole numbers, slices, ... or None"):
                grid[key]
        for value in ([1, 2], None, "x"):
            with self.raises(cohort.InvalidArgumentError, "value: expected"):
                grid[:, 1] = value

    def test_an_assignment_keeps_all_digits(self):
        tenth, big = 0.1, 2**24 + 1  # neither is a float32
        for key in (np.s_[:], np.s_[0:2], np.s_[:, 0:1], 0):
            for value in (np.array([tenth]), [tenth]):
                array = nd.zeros((2, 2), dtype="float64")
                array[key] = value
                self.assertEqual(array.asnumpy().max(), tenth)
            for value in (np.array([big]), [big]):
                array = nd.zeros((2, 2), dtype="int64")
                array[key] = value
                self.assertEqual(array.asnumpy().max(), big)

    def test_an_axis_of_one_may_be_left_out_behind_a_new_one(self):
        for shape in ((2, 1), (1, 1), (2, 1, 3)):
            whole = np.arange(np.prod(shape), dtype="float32").reshape(shape)
            for key in (np.s_[None, :, 0], np.s_[None, :, 0, ...], np.s_[:, None, 0]):
                np.testing.assert_array_equal(nd.array(whole)[key].asnumpy(), whole[key])

    def test_memory_of_numpys_is_used_without_a_copy_and_given_back(self):
        source = np.zeros(3, "float32")
        freed = []

        class Noisy(np.ndarray):
            def __del__(self):
                freed.append(True)

        noisy = source.copy().view(Noisy)
        made = nd.wrap(noisy)
        view = made[1:]
        noisy[1] = 5
        del noisy
        gc.collect()
        self.assertEqual(freed, [])
        self.near(view, [5, 0])
        made.close()
        view[0:1] = 6
        self.near(view, [6, 0])
        view.close()
        del made, view
        gc.collect()
        cohort.wait_all()
        self.assertEqual(freed, [True])

    def test_arrays_go_through_files_and_pickle(self):
        arrays = {"a": nd.array([1, 2]), "b": nd.array([[3]], dtype="int32")}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ü.params")
            nd.save(path, arrays)
            back = nd.load(path)
            self.assertEqual(sorted(back), ["a", "b"])
            self.near(back["b"], [[3]])
            with open(path, "rb") as file:
                self.near(nd.load_frombuffer(file.read())["a"], [1, 2])
            nd.save(path, [arrays["a"]])
            self.near(nd.load(path)[0], [1, 2])
            with self.assertRaises(OSError):
                nd.load(os.path.join(folder, "nothing"))
        with self.raises(cohort.FormatError, "params|shorter|bytes|file"):
            nd.load_frombuffer(b"nonsense")
        self.near(pickle.loads(pickle.dumps(arrays["a"])), [1, 2])
        self.near(copy.deepcopy(arrays["a"]), [1, 2])

    def test_dlpack_goes_both_ways_without_a_copy(self):
        made = nd.array([[1, 2], [3, 4]])
        seen = np.from_dlpack(made)
        made[0] = [9, 2]
        self.near(seen, [[9, 2], [3, 4]])
        made.close()
        self.near(seen, [[9, 2], [3, 4]])
        del seen
        source = np.array([1, 2, 3], "float32")
        taken = nd.from_dlpack(source)
        source[0] = 7
        self.near(taken, [7, 2, 3])
        del source
        gc.collect()
        self.near(taken[1:], [2, 3])
        with self.raises(cohort.InvalidArgumentError, "__dlpack__"):
            nd.from_dlpack([1, 2])

    def test_dlpack_knows_both_structs_and_a_capsule_that_nobody_takes(self):
        made = nd.array([1, 2])
        for version, name in ((None, "dltensor"), ((1, 0), "dltensor_versioned")):
            capsule = made.__dlpack__(max_version=version)
            self.assertIn(f'"{name}"', repr(capsule))
            del capsule  # gives the memory back
            taken = nd.from_dlpack(made.__dlpack__(max_version=version))
            self.near(taken, [1, 2])
            taken[:] = [3, 4]
            self.near(made, [3, 4])
            made[:] = [1, 2]
        self.assertEqual(made.__dlpack_device__(), (1, 0))
        capsule = made.__dlpack__()
        nd.from_dlpack(capsule)
        with self.raises(cohort.InvalidArgumentError, "__dlpack__"):
            nd.from_dlpack(capsule)  # it has been taken already

    def test_operators_are_functions_with_the_registrys_documentation(self):
        self.near(nd.dot(nd.array([[1, 2]]), nd.array([[3], [4]])), [[11]])
        self.near(nd.Concat(nd.array([[1]]), nd.array([[2]]), dim=0), [[1], [2]])
        x, w = nd.array([[1, 2]]), nd.array([[3, 4]])
        for given in (((x, w), {}), ((x,), {"weight": w}), ((), {"weight": w, "data": x})):
            self.near(nd.FullyConnected(*given[0], **given[1], num_hidden=1, no_bias=True), [[11]])
        out = nd.zeros((2,))
        nd.exp(nd.array([0, 0]), out=out)
        self.near(out, [1, 1])
        self.near(np.full(2, 2, "float32") - nd.array([1, 2]) * 2 / 4, [1.5, 1])
        self.near(np.array([8, 9], "float32") / nd.array([2, 3]), [4, 3])
        self.near(nd.array([8, 9]) - np.array([1, 2]) ** 2 + 1, [8, 6])
        self.near(1 - -nd.array([1, 2]) + 2 / nd.array([1, 2]), [4, 4])
        self.assertIn("num_hidden", nd.FullyConnected.__doc__)
        self.assertIn("num_hidden", str(nd.FullyConnected.__signature__))
        self.assertIn("FullyConnected", dir(nd))
        with self.raises(AttributeError, "nearest name is 'FullyConnected'"):
            nd.FullyConected
        with self.raises(cohort.InvalidArgumentError, "num_hidden"):
            nd.FullyConnected(nd.array([[1]]), nd.array([[1]]), num_hidden=-1, no_bias=True)
        with self.raises(cohort.UnknownNameError, "no_such"):
            nd.Dropout(nd.array([1]), no_such=1)

    def test_random_numbers_repeat_with_their_seed(self):
        first, again = (nd.random_uniform(-1, 1, (3, 2), seed=5).asnumpy() for _ in range(2))
        np.testing.assert_array_equal(first, again)

    def test_random_numbers_are_others_each_time_and_the_same_behind_the_same_seed(self):
        def draw():
            dropped = nd.Dropout(nd.ones((16,)), p=0.5, is_train=True)
            return np.concatenate([cohort.random.uniform(-1, 1, (4,)).asnumpy(), dropped.asnumpy()])

        cohort.random.seed(3)
        first, then = draw(), draw()
        self.assertTrue((first[:4] != then[:4]).any() and (first[4:] != then[4:]).any())
        cohort.random.seed(3)
        np.testing.assert_array_equal(draw(), first)
        np.testing.assert_array_equal(draw(), then)
        own = [nd.random_normal(loc=5, scale=0.1, shape=(3,), seed=7).asnumpy() for _ in range(2)]
        np.testing.assert_array_equal(*own)
        self.assertEqual(cohort.random.normal(5, 0.1, (2, 3)).shape, (2, 3))
        for wrong in (-1, 2**31, "x", None):
            with self.raises(cohort.InvalidArgumentError, "seed_state"):
                cohort.random.seed(wrong)

    def test_a_closed_array_says_so_whatever_is_asked(self):
        with nd.array([1]) as made:
            pass
        made.close()
        for use in (lambda: made.shape, made.asnumpy, lambda: made[0], lambda: made + 1, lambda: made.copyto(made)):
            with self.raises(cohort.StateError, "closed"):
                use()
        self.assertEqual(repr(made), "<NDArray, closed>")
        with self.assertRaises(RuntimeError):
            nd.concatenate([made, nd.array([1])])

    def test_numpy_reads_what_is_written_for_it_and_what_it_writes_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            made = {"a": nd.array([[1, 2], [3, 4]]), "b": nd.array([5], dtype="int32")}
            path = os.path.join(folder, "arrays.npz")
            nd.save_npz(path, made)
            with np.load(path) as found:
                self.near(found["a"], [[1, 2], [3, 4]])
                self.assertEqual(found["b"].dtype, np.int32)
            self.near(nd.load(path)["a"], [[1, 2], [3, 4]])
            path = os.path.join(folder, "array.npy")
            nd.save_npy(path, made["a"])
            self.near(np.load(path), [[1, 2], [3, 4]])
            self.near(nd.load(path)[0], [[1, 2], [3, 4]])
            with self.raises(cohort.FileError, "nowhere"):
                nd.save_npy(os.path.join(folder, "nowhere", "x.npy"), made["a"])
        again = nd.load_frombuffer(nd.save_tobuffer(made))
        self.near(again["a"], made["a"])
        self.near(nd.load_frombuffer(nd.save_tobuffer([made["b"]]))[0], [5])

    def test_a_device_tells_its_memory_and_is_limited(self):
        where = cohort.cpu(5)
        before = where.memory()
        made = nd.zeros((1 << 18,), ctx=where)
        self.assertGreaterEqual(where.memory().used, before.used + (1 << 20))
        used = where.memory().used
        del made
        self.assertGreaterEqual(where.memory().peak, used)
        where.reset_peak_memory()
        self.assertLess(where.memory().peak, used)
        where.limit_memory(1 << 16)
        self.addCleanup(where.limit_memory, 0)
        self.assertEqual(where.memory().limit, 1 << 16)
        with self.raises(cohort.OutOfMemoryError, ""):
            nd.zeros((1 << 18,), ctx=where)
        with self.raises(cohort.InvalidArgumentError, "bytes"):
            where.limit_memory(-1)
        with self.raises(cohort.DeviceError, "gpu"):
            cohort.gpu(99).memory()

    def test_the_registry_says_ranges_gradients_and_precision(self):
        dropout, embedding = _operators.operator("Dropout"), _operators.operator("Embedding")
        (p,) = (item for item in dropout.attributes if item.name == "p")
        self.assertEqual((p.low, p.high), (0, 1))
        self.assertEqual([item.has_gradient for item in embedding.inputs], [False, True])
        self.assertEqual((dropout.precision, _operators.operator("FullyConnected").precision), ("follows", "narrow"))
        self.assertEqual(_operators.operator("BatchNorm").outputs[0], "output")

    def test_pointers_are_those_of_the_array(self):
        made = nd.array([5, 6])
        address = np.from_dlpack(made).ctypes.data
        self.assertEqual(ctypes.c_float.from_address(address + 4).value, 6)


if __name__ == "__main__":
    unittest.main()
