# SPDX-License-Identifier: Apache-2.0
"""Tests the reference that `make docs` writes: it is complete and well formed, and its links have targets.

run_tests.sh runs it with $BUILD in the environment.
"""

import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
VOID = {"meta", "link", "input", "br"}


class Reader(html.parser.HTMLParser):
    """Reads a page: checks that elements are closed properly, and collects links, identifiers, and the text of each section."""

    def __init__(self, page):
        super().__init__()
        self.open, self.links, self.names, self.wrong, self.sections, self.heading = [], [], [], [], {"": ""}, ""
        self.feed(page)
        self.close()
        self.wrong += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "p" and "p" in self.open[:-1]:
            self.wrong.append("<p> in <p>")
        self.links += [attrs[key] for key in ("href", "src") if key in attrs]
        if "id" in attrs:
            self.names.append(attrs["id"])
        if tag == "h2":
            self.heading = attrs["id"]
            self.sections[self.heading] = ""

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing, line {self.getpos()[0]}")

    def handle_data(self, data):
        self.sections[self.heading] += data


class Reference(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = pathlib.Path(cls.folder.name).resolve() / "docs"
        done = subprocess.run(
            [sys.executable, ROOT / "bindings/tools/reference.py", cls.root],
            env={**os.environ, "COHORT_LIB": str(BUILD)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        cls.said = done.stdout
        cls.pages = {path: Reader(path.read_text()) for path in cls.root.rglob("*.html")}
        cls.abi = json.loads((ROOT / "bindings/abi.json").read_text())
        cls.found = json.loads((cls.root / "names.js").read_text()[len("const names = ") : -len(";\n")])

    def page(self, name):
        return self.pages[self.root / name]

    def test_pages_are_well_formed_and_say_each_name_once(self):
        self.assertGreater(len(self.pages), 300)
        for path, page in self.pages.items():
            self.assertEqual(page.wrong, [], path)
            self.assertEqual(len(page.names), len(set(page.names)), path)
            text = path.read_text()
            self.assertTrue(text.startswith("<!DOCTYPE html>") and "<html lang=" in text and "<title>" in text, path)

    def test_links_lead_somewhere_and_nothing_comes_from_a_network(self):
        for path, page in self.pages.items():
            for link in page.links:
                target, _, name = link.partition("#")
                self.assertNotIn("//", link, path)
                there = (path.parent / urllib.parse.unquote(target)).resolve() if target else path
                self.assertTrue(there.exists(), f"{path}: {link}")
                if name:
                    self.assertIn(name, self.pages[there].names, f"{path}: {link}")
        for path in self.root.glob("*.[cj]s*"):
            self.assertNotIn("://", path.read_text(), path)

    def test_everything_is_found_by_its_name(self):
        names = {name for name, _, _ in self.found}
        self.assertEqual(len(names), len(self.found))
        for name, page, _ in self.found:
            target, _, anchor = page.partition("#")
            self.assertIn(self.root / target, self.pages)
            if anchor:
                self.assertIn(anchor, self.page(target).names)
        for kind in ("families", "structs", "callbacks", "functions", "handles", "limits"):
            for item in self.abi[kind]:
                self.assertTrue(item["name"] in names, item["name"])
                self.assertTrue({value["name"] for value in item.get("values", [])} <= names)
        for name in ("Convolution", "split", "SliceChannel", "_npx_activation"):
            self.assertTrue(name in names, name)

    def test_each_operator_has_its_sections(self):
        for path in (self.root / "operators").iterdir():
            sections = self.pages[path].sections
            for name in ("formula", "inputs", "outputs", "attributes", "types"):
                self.assertTrue(sections.get(name, "").strip(), f"{path}: {name}")
            self.assertNotRegex(path.read_text(), r"<td></td>\s*</tr>|<p class=\"summary\"></p>")

    def test_a_page_says_what_the_registry_says(self):
        page = self.page("operators/FullyConnected.html")
        attributes = re.sub(r"\s+", " ", page.sections["attributes"])
        self.assertRegex(attributes, "num_hidden ?int ?required ?at least 1 ?Number of outputs")
        self.assertRegex(page.sections["inputs"], "data\\s*yes")
        self.assertRegex(self.page("operators/LeakyReLU.html").sections["inputs"], "gamma\\s*yes")
        self.assertIn("float64 → float64", page.sections["types"])
        self.assertIn("y = x Wᵀ + b", page.sections["formula"])
        self.assertIn("x = cosh y", self.page("operators/arccosh.html").sections["formula"])
        self.assertIn("0 to 1", self.page("operators/Dropout.html").sections["attributes"])
        self.assertRegex(self.page("operators/take.html").sections["inputs"], "indices\\s*no")
        self.assertIn("split", (self.root / "operators/SliceChannel.html").read_text())
        self.assertIn("<td><code>out_low</code></td><td><em>may be NULL.</em>", (self.root / "c/calibration.html").read_text())
        self.assertIn("<em>may be NULL, entries may be NULL.</em> ", (self.root / "c/executor.html").read_text())
        self.assertIn("<em>NULL may come out.</em> ", (self.root / "c/arrays.html").read_text())
        page = (self.root / "c/group.html").read_text()
        self.assertIn('<a href="types.html#cohort_descs">cohort_descs</a>', page)
        self.assertIn('<a href="error.html#COHORT_ERROR_SHAPE">COHORT_ERROR_SHAPE</a>', page)

    def test_examples_are_calls_that_were_made(self):
        said = re.search(r"(\d+) operators, (\d+) with an example", self.said)
        with_example = sum("example" in self.pages[path].sections for path in (self.root / "operators").iterdir())
        self.assertEqual(int(said[2]), with_example)
        without = {"Custom", "_cvimread", "_set_value", "reset_arrays"}  # a callback, a file, nothing but an array to write to
        without |= {"_CachedOp", "_cond", "_foreach", "_while_loop", "_sg_mkldnn_conv", "_sg_mkldnn_fully_connected"}  # graphs inside
        without |= {"_sg_mkldnn_selfatt_qk", "_sg_mkldnn_selfatt_valatt"}
        for path in (self.root / "operators").iterdir():
            self.assertEqual("example" in self.pages[path].sections, path.stem not in without, path)
        example = self.page("operators/relu.html").sections["example"]
        given, result = (re.findall(r"-?\d+\.\d*", part) for part in example.split("relu(data)"))
        self.assertEqual([max(float(x), 0) for x in given], [float(x) for x in result])

class Pages(unittest.TestCase):
    @staticmethod
    def anchors(page):
        text = re.sub(r"(?ms)^```.*?^```", "", page.read_text())
        heads = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", head) for head in re.findall(r"(?m)^#+ +(.*?) *$", text)]
        return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}

    def test_links_between_the_pages_of_the_source_lead_somewhere(self):
        pages = [path for folder in ("bindings", "examples", "tests") for path in (ROOT / folder).rglob("*.md")] + [*ROOT.glob("*.md")]
        self.assertGreater(len(pages), 15)
        for page in pages:
            text = re.sub(r"(?ms)^```.*?^```|`[^`\n]*`", "", page.read_text())
            for link in re.findall(r"\]\(([^)\s]+)\)", text):
                target, _, name = link.partition("#")
                if re.match(r"\w+:", link):
                    continue
                there = (page.parent / target).resolve() if target else page
                self.assertTrue(there.exists(), f"{page}: {link}")
                if name and there.suffix == ".md":
                    self.assertIn(name, self.anchors(there), f"{page}: {link}")


if __name__ == "__main__":
    unittest.main()
