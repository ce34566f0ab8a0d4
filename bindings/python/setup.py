# SPDX-License-Identifier: Apache-2.0
"""Builds a pure-Python wheel, which finds libcohort on the linker's path; or, if COHORT_WHEEL_LIBRARY names a
libcohort.so, a wheel for this platform that contains it."""

import os
import shutil

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

LIBRARY = os.environ.get("COHORT_WHEEL_LIBRARY", "")


class Build(build_py):
    def run(self):
        super().run()
        folder = os.path.join(self.build_lib, "cohort", "_lib")
        shutil.rmtree(folder, ignore_errors=True)
        if LIBRARY:
            os.makedirs(folder)
            versions = {}
            with open(os.path.join(self.build_lib, "cohort", "_abi.py"), encoding="utf-8") as file:
                exec("".join(line for line in file if line.startswith("SOVERSION")), versions)
            shutil.copyfile(LIBRARY, os.path.join(folder, f"libcohort.so.{versions['SOVERSION']}"))


class Wheel(bdist_wheel):
    def get_tag(self):
        _, _, platform = super().get_tag()
        return "py3", "none", platform


class Package(Distribution):
    def has_ext_modules(self):
        return bool(LIBRARY)


setup(distclass=Package, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
