# SPDX-License-Identifier: Apache-2.0
"""The examples of the README and of the classes run, and give the results that are written there."""

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import tempfile
import unittest

import numpy as np

import cohort
from support import ROOT, Case
from test_training import digits

FOLDER = os.path.join(ROOT, "bindings", "python")


class Documentation(Case):
    def holds(self, found, said):
        self.assertGreater(found.attempted, 0)
        self.assertEqual(found.failed, 0, said.getvalue())

    def test_the_examples_of_the_readme_run(self):
        said, before = io.StringIO(), os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "model"))
            _, module = digits()
            with contextlib.redirect_stdout(io.StringIO()):
                module.main(["--epochs", "6", "--out", os.path.join(folder, "model", "digits")])
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(said):
                    found = doctest.testfile(os.path.join(FOLDER, "README.md"), module_relative=False)
            finally:
                os.chdir(before)
        self.holds(found, said)

    def test_the_attributes_of_progress_and_of_a_result_are_in_their_help(self):
        seen = []
        data = cohort.NDArrayIter(np.ones((2, 1)), np.zeros(2), batch_size=2)
        net = cohort.sym.SoftmaxOutput(
            cohort.sym.FullyConnected(cohort.sym.Variable("data"), num_hidden=2), name="softmax"
        )
        with cohort.fit(net, data, callbacks=[seen.append]) as fitted:
            for one in seen[0], fitted:
                for name in vars(one):
                    self.assertRegex(type(one).__doc__, rf"\n        {name}: \w")
        del seen[:]

    def test_the_examples_of_the_classes_run(self):
        attempted = 0
        for info in pkgutil.iter_modules(cohort.__path__):
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                found = doctest.testmod(importlib.import_module("cohort." + info.name))
            attempted += found.attempted
            self.assertEqual(found.failed, 0, said.getvalue())
        self.assertGreater(attempted, 25)

    def test_every_public_class_and_function_is_documented(self):
        for name in cohort.__all__:
            with self.subTest(name):
                self.assertTrue(getattr(cohort, name).__doc__)
        for name in ("FullyConnected", "Convolution", "BatchNorm"):
            self.assertIn("Attributes:", getattr(cohort.sym, name).__doc__)


if __name__ == "__main__":
    unittest.main()
