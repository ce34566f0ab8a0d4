# SPDX-License-Identifier: Apache-2.0
"""Compares with MXNet 1.9.1, scenario by scenario (all but those of the level "module", which these classes do not
have), and optimizer by optimizer."""

import os
import unittest

from golden import OptimizerCase, Scenario
from support import ROOT, Case

FOLDER = os.path.join(ROOT, "tests", "golden", "group")
OPTIMIZERS = os.path.join(ROOT, "tests", "golden", "optimizers")


class Golden(Case):
    pass


def _add(name, kind, path):
    def test(self):
        self.assertEqual(kind(path).run()[:5], [])

    test.__doc__ = name
    setattr(Golden, "test_" + name.replace("-", "_"), test)


for _name in sorted(os.listdir(FOLDER)):
    _path = os.path.join(FOLDER, _name)
    if os.path.isdir(_path) and Scenario(_path).level != "module":
        _add(_name, Scenario, _path)
for _name in sorted(os.listdir(OPTIMIZERS)):
    _path = os.path.join(OPTIMIZERS, _name)
    if os.path.isdir(_path):
        _add("optimizer-" + _name, OptimizerCase, _path)

if __name__ == "__main__":
    unittest.main()
