# SPDX-License-Identifier: Apache-2.0
"""Runs a file of tests and writes TAP; a test is named by the sentence that it proves.

    run_tap.py FILE
"""

import importlib
import os
import sys
import traceback
import unittest


class Tap(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0
        self.lines = {}

    def _line(self, test, verdict, why=None):
        name = test.id().rsplit(".", 1)[-1]
        name = (name[5:] if name.startswith("test_") else name).replace("_", " ")
        self.lines[name] = verdict  # a test that succeeds but leaves objects behind fails after all
        if why is not None:
            text = why if isinstance(why, str) else "".join(traceback.format_exception(*why))
            print("".join(f"# {line}\n" for line in text.splitlines()), end="", flush=True)

    def addSuccess(self, test):
        self._line(test, "ok")

    def addError(self, test, err):
        super().addError(test, err)
        self._line(test, "not ok", err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._line(test, "not ok", err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._line(test, "not ok", err)

    def addSkip(self, test, reason):
        self._line(test, f"ok # skip {reason}")

    def _exc_info_to_string(self, err, test):
        return str(err[1])


def main():
    path = sys.argv[1]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    module = importlib.import_module(os.path.basename(path)[: -len(".py")])
    result = Tap()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    print(f"1..{len(result.lines)}")
    for number, (name, verdict) in enumerate(result.lines.items(), 1):
        word, _, note = verdict.partition(" # ")
        print(f"{word} {number} - {name}" + (f" # {note}" if note else ""))
    sys.stdout.flush()
    failed = [name for name, verdict in result.lines.items() if verdict.startswith("not")]
    return 1 if failed or not result.wasSuccessful() else 0


if __name__ == "__main__":
    sys.exit(main())
