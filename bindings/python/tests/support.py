# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests. At the end of each test no object of the library, and no callback, may be left."""

import gc
import logging
import os
import unittest

import numpy as np

import cohort
from cohort import DataBatch, _library, nd, sym

logging.getLogger("cohort").addHandler(logging.NullHandler())
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


class Case(unittest.TestCase):
    def setUp(self):
        gc.collect()
        cohort.wait_all()
        self.before = cohort.live_handles(), _library.num_callbacks()  # (0, 0), except after a test that has failed

    def run(self, result=None):
        """The body's own variables are gone when the remaining objects are counted."""
        found = super().run(result)
        errors = result.errors + result.failures if result is not None else []
        if not any(test is self for test, _ in errors):
            gc.collect()
            cohort.wait_all()
            gc.collect()
            left = cohort.live_handles(), _library.num_callbacks()
            if left != getattr(self, "before", left) and result is not None:
                result.addFailure(
                    self, (AssertionError, AssertionError(f"left: {left[0]} handles, {left[1]} callbacks"), None)
                )
        return found

    def raises(self, kind, words):
        return self.assertRaisesRegex(kind, words)

    def near(self, array, expected):
        np.testing.assert_allclose(np.asarray(array), np.asarray(expected), rtol=1e-5, atol=1e-6)


def mlp():
    """data (B, 4) -> fc (3) -> softmax"""
    return sym.SoftmaxOutput(sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc"), name="softmax")


def linear():
    """out = data * w', without a loss: its gradient is the head gradient."""
    return sym.FullyConnected(sym.Variable("data"), num_hidden=1, no_bias=True, name="fc")


def batch(data, label=None):
    return DataBatch([nd.array(data)], None if label is None else [nd.array(label)])


class Source:
    """An object with descriptors, as a manager expects it."""

    def __init__(self, batch_size=4, data=(("data", (4, 4)),), label=(("softmax_label", (4,)),), key=None):
        self.batch_size, self.provide_data, self.provide_label = batch_size, list(data), list(label or [])
        self.default_bucket_key = key
