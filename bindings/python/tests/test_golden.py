# SPDX-License-Identifier: Apache-2.0
"""What MXNet 1.9.1 computed, scenario by scenario: all but those of the level "module", which is no part of these classes."""

import os
import unittest

from golden import Scenario
from support import ROOT, Case

FOLDER = os.path.join(ROOT, "tests", "golden", "group")


class Golden(Case):
    pass


def _add(name):
    def test(self):
        found = Scenario(os.path.join(FOLDER, name)).run()
        self.assertEqual(found[:5], [])

    test.__doc__ = name
    setattr(Golden, "test_" + name, test)


for _name in sorted(os.listdir(FOLDER)):
    _path = os.path.join(FOLDER, _name)
    if os.path.isdir(_path) and Scenario(_path).level != "module":
        _add(_name)

if __name__ == "__main__":
    unittest.main()
