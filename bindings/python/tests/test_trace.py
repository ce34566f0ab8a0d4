# SPDX-License-Identifier: Apache-2.0
"""Traces."""

import json
import os
import tempfile
import unittest

import cohort
from cohort import nd
from support import Case, linear


class Traces(Case):
    def test_a_step_can_be_seen(self):
        executor = linear().simple_bind(data=(2, 2))
        with cohort.Trace(flop_per_s=1e9, byte_per_s=1e9) as trace:
            with trace.running(), trace.span("step"):
                executor.forward(data=nd.ones((2, 2)))
            executor.forward(data=nd.ones((2, 2)))
            spans = [e for e in json.loads(trace.json())["traceEvents"] if e["ph"] == "X"]
            seen = [e for e in spans if e["cat"] == "operator"]
            self.assertEqual([(e["name"], e["args"]["op"]) for e in seen], [("fc", "FullyConnected")])
            self.assertGreater(seen[0]["args"]["flops"], 0)
            self.assertIn("step", [e["name"] for e in spans if e["cat"] == "user"])
            totals = {total.name: total for total in trace.totals()}
            self.assertEqual(
                (totals["fc"].op, totals["fc"].kind, totals["fc"].count), ("FullyConnected", "operator", 1)
            )
            self.assertIn("FullyConnected", trace.table())
            self.assertEqual(trace.num_events, len(spans))
            self.assertFalse(trace.is_running)
            with tempfile.TemporaryDirectory() as folder:
                trace.write(os.path.join(folder, "step.json"))
                with open(os.path.join(folder, "step.json")) as file:
                    self.assertEqual(file.read(), trace.json())
            trace.clear()
            self.assertEqual((trace.num_events, trace.num_dropped), (0, 0))

    def test_what_cannot_be_is_refused(self):
        trace = cohort.Trace(max_events=1, flop_per_s=1, byte_per_s=1)
        with self.raises(cohort.StateError, "not running"):
            trace.stop()
        trace.start()
        with self.raises(cohort.StateError, "running already"):
            trace.start()
        trace.mark("a")
        trace.mark("b")
        trace.counter("loss", 0.5)
        self.assertEqual((trace.num_events, trace.num_dropped), (1, 2))
        with self.raises(cohort.FileError, "/nowhere/x.json"):
            trace.write("/nowhere/x.json")
        with self.raises(cohort.InvalidArgumentError, "flop_per_s"):
            cohort.Trace(flop_per_s=-1)


if __name__ == "__main__":
    unittest.main()
