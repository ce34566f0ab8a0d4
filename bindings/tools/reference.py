#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference as HTML: a page for each operator, from the library's registry, and one for each public header.

    reference.py FOLDER

Wants libcohort.so as the Python binding finds it ($COHORT_LIB), and NumPy. Examples are the calls of
tests/data/operators/types.tsv, and of reference/examples.tsv for operators that it does not call, made here with the library;
the types that an operator takes are those of the former.
"""

import html
import json
import math
import pathlib
import re
import shutil
import sys
from ctypes import byref, c_char_p, c_double, c_int32, c_size_t

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings" / "python" / "src"))

from cohort import _library, _operators, nd  # noqa: E402

lib, text = _library.lib, html.escape
TYPES = dict(g="bfloat16", h="float16", f="float32", d="float64", u="uint8", b="int8", i="int32", l="int64", o="bool")
FAMILIES = [  # of operators, by their names: the first that fits
    ("Optimizers", r"update|multi_lars|all_finite|multi_sum_sq|reset_arrays"),
    ("Quantization", r"quantize|calibrate_entropy"),
    ("Linear algebra", r"_linalg_|^dot$|batch_dot|khatri_rao"),
    ("Random numbers", r"random_|_sample_|_shuffle"),
    ("Images", r"_image_|_cv"),
    ("Layers and losses", r"^[A-Z]|softmax|_loss$|^smooth_l1$|BatchNorm|Convolution|interleaved"),
    ("Detection", r"box|MultiBox|Proposal|ROI|bipartite"),
    ("Broadcasting", r"^broadcast_"),
    ("With a number", r"_scalar$"),
    ("Over axes", r"^(sum|mean|prod|max|min|nansum|nanprod|norm|argm\w+|moments|_square_sum|_np_cumsum|sort|argsort|topk)$"),
    ("Creation", r"^_(arange|eye|full|linspace|ones|zeros\w*|set_value)$|_like$"),
    ("Other", r""),
]


class Page:
    """The pieces of a page, in order."""

    def __init__(self, title, up):
        self.title, self.up, self.parts = title, up, []

    def add(self, *parts):
        self.parts += parts

    def section(self, identifier, title):
        self.add(f'<h2 id="{identifier}">{title}</h2>')

    def table(self, heads, rows):
        cells = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
        head = "".join(f"<th>{name}</th>" for name in heads)
        self.add('<div class="wide"><table>', f"<thead><tr>{head}</tr></thead><tbody>", *cells, "</tbody></table></div>")

    def html(self):
        return "\n".join(
            [
                "<!DOCTYPE html>",
                '<html lang="en"><head><meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f"<title>{text(self.title)} - Cohort</title>",
                f'<link rel="stylesheet" href="{self.up}style.css"></head><body data-up="{self.up}">',
                f'<header><a href="{self.up}index.html">Cohort</a> '
                '<input id="search" type="search" placeholder="Search (press /)" aria-label="Search" autocomplete="off">'
                '<ol id="found"></ol></header><main>',
                *self.parts,
                f'</main><script src="{self.up}names.js"></script><script src="{self.up}search.js"></script></body></html>',
                "",
            ]
        )


# ---- operators -----------------------------------------------------------------------------------------------------------


def range_text(low, high):
    if math.isinf(low) and math.isinf(high):
        return ""
    low, high = (f"{value:.10g}" for value in (low, high))
    return f"at least {low}" if high == "inf" else f"at most {high}" if low == "-inf" else f"{low} to {high}"


def attribute_rows(op):
    for index, item in enumerate(op.attributes):
        low, high = c_double(), c_double()
        lib.cohort_operator_attr_range(op.canonical.encode(), index, byref(low), byref(high))
        kind, allowed = item.type, range_text(low.value, high.value)
        words = re.fullmatch(r"\{(.*)\}", kind)
        if words:
            kind, allowed = "word", ", ".join(f"<code>{text(word.strip(chr(39)))}</code>" for word in words[1].split(", "))
        default = "required" if item.default is None else f"<code>{text(item.default)}</code>"
        yield f"<code>{text(item.name)}</code>", text(kind), default, allowed, prose(item.doc)


def output_names(op):
    num = c_size_t()
    lib.cohort_operator_info(op.canonical.encode(), None, None, None, None, byref(num), None)
    names = []
    for index in range(num.value):
        name = c_char_p()
        lib.cohort_operator_output(op.canonical.encode(), index, byref(name))
        names.append(name.value.decode())
    return names


def has_gradient(op, index):
    found = c_int32()
    lib.cohort_operator_input_gradient(op.canonical.encode(), index, byref(found))
    return found.value == 1


class Call:
    """A line of the table of types: a call, and the types of inputs that it is made with."""

    def __init__(self, line):
        self.op, attrs, inputs, combinations = line.rstrip("\n").split("\t")
        self.attrs = {} if attrs == "-" else dict(pair.split("=", 1) for pair in attrs.split(";"))
        self.inputs = [] if inputs == "-" else [self.array(item) for item in inputs.split("|")]
        self.combinations = [part.rstrip("~").split(">") for part in combinations.split() if ">" in part]

    @staticmethod
    def array(item):
        shape, values = item.split(":")
        lengths = [int(length) for length in shape.split("x")] if shape else []
        return np.resize(np.array([float(value) for value in values.split(",")]), lengths)

    def letters(self):
        """The types for an example: float32 where the operator takes it."""
        return max((found[0] for found in self.combinations), key=lambda letters: letters.count("f"), default=None)

    def run(self):
        letters = self.letters()
        if letters is None and self.inputs:
            return None
        given = [array.astype(TYPES[letter]) for array, letter in zip(self.inputs, letters or "")]
        made = _operators.invoke(self.op, [nd.array(one, dtype=one.dtype) for one in given], self.attrs, None, None, 1, False)
        return given, [array.asnumpy() for array in made]


def read_calls(path):
    lines = path.read_text().splitlines()
    calls, exceptions = {}, {}
    for line in lines:
        if line.startswith("-\t"):
            _, op, combinations, _ = line.split("\t")
            exceptions.setdefault(op, set()).update(combinations.split())
    for line in lines:
        if line[:1] not in ("#", "-", ""):
            call = Call(line)
            call.combinations = [one for one in call.combinations if ">".join(one) not in exceptions.get(call.op, ())]
            calls.setdefault(call.op, []).append(call)
    return calls


def array_text(array):
    shown = np.array2string(array, precision=5, threshold=36, edgeitems=2, max_line_width=92, suppress_small=True)
    return f"{tuple(int(n) for n in array.shape)} {array.dtype}" + "\n" + shown


def add_example(page, op, calls):
    for call in sorted(calls, key=lambda one: sum(array.size for array in one.inputs)):
        try:
            made = call.run()
        except Exception:  # a combination that the table lists as an exception: the next call will do
            continue
        if made is None or not made[1]:
            continue
        given, outputs = made
        names = [item.name for item in op.inputs]
        if op.count_attribute or len(names) < len(given):
            names = [f"{names[0]}{i}" for i in range(len(given))] if names else []
        words = [name for name, _ in zip(names, given)] + [f"{key}={value!r}" for key, value in call.attrs.items()]
        lines = [f"{name}: {array_text(array)}" for name, array in zip(names, given)]
        lines += [f"{op.canonical}({', '.join(words)})"]
        lines += [f"output{i if len(outputs) > 1 else ''}: {array_text(array)}" for i, array in enumerate(outputs)]
        page.section("example", "Example")
        page.add(f"<pre>{text(chr(10).join(lines))}</pre>")
        return True
    return False


def add_types(page, calls):
    taken = {}
    for call in calls:
        for letters, results in call.combinations:
            if len(letters) == len(call.inputs):
                taken.setdefault((tuple(TYPES[c] for c in letters), tuple(TYPES.get(c, "-") for c in results)), None)
    page.section("types", "Types")
    if not taken:
        page.add("<p>No inputs: the type is that of the attributes.</p>" if calls else "<p>The types of its inputs are not listed.</p>")
        return
    page.add("<p>Types of the inputs and of the outputs, which MXNet 1.9.1 takes, too.</p>")
    plain = [pair for pair in taken if len(set(pair[0])) == 1]
    mixed = [pair for pair in taken if len(set(pair[0])) > 1]

    def lines(pairs):
        return "".join(f"<li><code>{', '.join(a) or 'none'} &rarr; {', '.join(b)}</code></li>" for a, b in sorted(pairs))

    if plain:
        short = sorted({(pair[0][:1], tuple(dict.fromkeys(pair[1]))) for pair in plain})
        page.add(f"<ul class=\"types\">{lines(short)}</ul>")
    if mixed:
        page.add(f"<details><summary>{len(mixed)} combinations of different types</summary><ul class=\"types\">{lines(mixed)}</ul></details>")


def operator_page(name, aliases, calls, examples, formulas):
    op = _operators.operator(name)
    page = Page(name, "../")
    page.add(f"<h1>{text(name)}</h1>", f'<p class="summary">{prose(op.doc)}</p>')
    if aliases:
        page.add("<p>Also called " + ", ".join(f"<code>{text(alias)}</code>" for alias in aliases) + ".</p>")
    if name in formulas:
        page.section("formula", "Formula")
        page.add(f'<p class="formula">{text(formulas[name])}</p>')
    page.section("inputs", "Inputs")
    if op.inputs:
        if op.count_attribute:
            count = "" if op.count_attribute.startswith("__") else f", which <code>{text(op.count_attribute)}</code> counts"
            page.add(f"<p>Any number of inputs{count}; the first one here stands for all.</p>")
        rows = []
        for index, item in enumerate(op.inputs):
            role = "auxiliary state" if item.is_aux else "yes" if has_gradient(op, index) else "no"
            rows.append((f"<code>{text(item.name)}</code>", role, prose(item.doc)))
        page.table(("Name", "Gradient", "Meaning"), rows)
        page.add("<p class=\"note\">Gradients with all attributes at their defaults, or at those for which the input is there.</p>")
    else:
        page.add("<p>None.</p>")
    page.section("outputs", "Outputs")
    names = output_names(op)
    page.add(f"<p>{', '.join(f'<code>{text(one)}</code>' for one in names) or 'As the attributes say.'}</p>")
    page.section("attributes", "Attributes")
    rows = list(attribute_rows(op))
    if rows:
        page.table(("Name", "Type", "Default", "Values", "Meaning"), rows)
    else:
        page.add("<p>None.</p>")
    add_types(page, calls)
    example = add_example(page, op, calls or examples)
    return page, example


def family_of(name):
    return next(title for title, pattern in FAMILIES if re.search(pattern, name))


# ---- the C interface -----------------------------------------------------------------------------------------------------


class Links:
    """Where each name of the C interface is described."""

    def __init__(self, abi):
        self.at = {}
        for kind in ("families", "structs", "callbacks", "functions"):
            for item in abi[kind]:
                self.at[item["name"]] = f"{item['header'][:-2]}.html#{item['name']}"
                for value in item.get("values", []):
                    self.at[value["name"]] = f"{item['header'][:-2]}.html#{value['name']}"
        for item in abi["handles"] + abi["limits"]:
            self.at[item["name"]] = f"types.html#{item['name']}"

    def linked(self, escaped, up=""):
        def link(match):
            return f'<a href="{up}{self.at[match[0]]}">{match[0]}</a>' if match[0] in self.at else match[0]

        return re.sub(r"\b(?:cohort|COHORT)_\w+", link, escaped)


links = None


def inline(words):
    """A line of a comment: code in backquotes, names of the C interface as links."""
    parts = re.split(r"`([^`]+)`", words)
    return "".join(f"<code>{text(part)}</code>" if i % 2 else text(part) for i, part in enumerate(parts))


def prose(comment):
    return inline(" ".join(comment.split()))


def paragraphs(comment):
    """Paragraphs; indented lines are kept as they are."""
    parts = []
    for block in re.split(r"\n\s*\n", comment.strip("\n")):
        for set_in, lines in grouped(block.split("\n"), lambda line: line.startswith("  ")):
            if set_in:
                parts.append(f"<pre>{links.linked(text(chr(10).join(lines)))}</pre>")
            else:
                parts.append(f"<p>{links.linked(inline(' '.join(lines)))}</p>")
    return parts


def grouped(items, key):
    groups = []
    for item in items:
        if groups and groups[-1][0] == key(item):
            groups[-1][1].append(item)
        else:
            groups.append((key(item), [item]))
    return groups


def declaration(item, callback):
    params = [f"{p['type']}{'' if p['type'].endswith('*') else ' '}{p['name']}" for p in item["params"]] or ["void"]
    returns = item["returns"]["type"]
    name = f"(*{item['name']})" if callback else item["name"]
    start = f"{'typedef ' if callback else ''}{returns}{'' if returns.endswith('*') else ' '}{name}("
    return links.linked(text(start + (",\n" + " " * 4).join(params) + ");"))


def param_text(param):
    """Tags and text of a parameter in words."""
    tags = ["may be NULL"] if param.get("nullable") == "yes" else []
    tags += ["entries may be NULL"] if param.get("null_entries") else []
    tags += ["NULL may come out"] if param.get("gives_null") else []
    said = [f"<em>{', '.join(tags)}.</em>"] if tags else []
    return " ".join(said + ([links.linked(prose(param["doc"]))] if param.get("doc") else []))


def add_function(page, item, callback=False):
    page.add(f'<section><h3 id="{item["name"]}">{item["name"]}</h3>', f"<pre class=\"decl\">{declaration(item, callback)}</pre>")
    page.add(*paragraphs(item["doc"]))
    rows = [(f"<code>{text(p['name'])}</code>", param_text(p)) for p in item["params"] if param_text(p)]
    if rows:
        page.table(("Parameter", "Meaning"), rows)
    if item.get("returns_doc"):
        page.add("<h4>Returns</h4>", *paragraphs(item["returns_doc"]))
    page.add("</section>")


def header_comment(path):
    found = re.search(r"/\*\*\n \* @file [^\n]*\n(.*?) \*/", path.read_text(), re.S)
    return "\n".join(line[3:] for line in found[1].rstrip("\n").split("\n"))


def header_page(header, abi):
    page = Page(header, "../")
    page.add(f"<h1>cohort/{header}</h1>", *paragraphs(header_comment(ROOT / "include" / "cohort" / header)))
    here = {kind: [item for item in abi[kind] if item.get("header") == header] for kind in ("families", "structs", "callbacks", "functions")}
    page.add('<ul class="names">')
    page.add(*(f'<li><a href="#{item["name"]}">{item["name"]}</a></li>' for kind in here.values() for item in kind))
    page.add("</ul>")
    if header == "types.h":
        page.section("handles", "Handles")
        page.table(
            ("Type", "Is", "Freed by"),
            [(f'<code id="{h["name"]}">{h["name"]}</code>', prose(h["doc"]), links.linked(h["free"])) for h in abi["handles"]],
        )
        page.section("limits", "Limits")
        page.table(("Name", "Value", "Meaning"), [(f'<code id="{v["name"]}">{v["name"]}</code>', v["value"], prose(v["doc"])) for v in abi["limits"]])
    if here["families"]:
        page.section("constants", "Constants")
    for item in here["families"]:
        page.add(f'<section><h3 id="{item["name"]}">{item["name"]}</h3>', *paragraphs(item["doc"]))
        page.table(
            ("Name", "Value", "Meaning"),
            [(f'<code id="{v["name"]}">{v["name"]}</code>', v["value"], links.linked(prose(v["doc"]))) for v in item["values"]],
        )
        page.add("</section>")
    if here["structs"]:
        page.section("structs", "Structs")
    for item in here["structs"]:
        page.add(f'<section><h3 id="{item["name"]}">{item["name"]}</h3>', *paragraphs(item["doc"]))
        page.table(
            ("Field", "Type", "Meaning"),
            [(f"<code>{f['name']}</code>", f"<code>{links.linked(text(f['type']))}</code>", links.linked(prose(f.get("doc", "")))) for f in item["fields"]],
        )
        page.add("</section>")
    if here["callbacks"]:
        page.section("callbacks", "Callbacks")
    for item in here["callbacks"]:
        add_function(page, item, callback=True)
    if here["functions"]:
        page.section("functions", "Functions")
    for item in here["functions"]:
        add_function(page, item)
    return page


# ---- all of it -----------------------------------------------------------------------------------------------------------


def read_formulas(names):
    """The formula of each operator, from the first row whose pattern is its name."""
    rows = (pathlib.Path(__file__).parent / "reference" / "formulas.tsv").read_text().splitlines()
    formulas, idle = {}, []
    for pattern, formula in (row.split("\t") for row in rows if row and not row.startswith("#")):
        found = [match for match in (re.fullmatch(pattern, name) for name in names) if match]
        idle += [] if found else [pattern]
        for match in found:
            formulas.setdefault(match[0], match.expand(formula))
    if idle:
        sys.exit(f"formulas.tsv: no operators: {', '.join(idle)}")
    return formulas


def write(folder):
    global links
    abi = json.loads((ROOT / "bindings" / "abi.json").read_text())
    links = Links(abi)
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("operators", "c"):
        (folder / part).mkdir(parents=True)
    for name in ("style.css", "search.js"):
        shutil.copy(pathlib.Path(__file__).parent / "reference" / name, folder / name)

    index, found = Page("Reference", ""), []
    index.add(f"<h1>Cohort {abi['version']}</h1>", "<p>What the library does, for those who call it.</p>", '<h2 id="c">The C interface</h2>', "<ul>")
    headers = sorted({item["header"] for kind in ("families", "structs", "callbacks", "functions") for item in abi[kind]})
    for header in headers:
        page = f"c/{header[:-2]}.html"
        (folder / page).write_text(header_page(header, abi).html())
        first = re.split(r"(?<=[.])\s", header_comment(ROOT / "include" / "cohort" / header))[0]
        index.add(f'<li><a href="{page}">cohort/{header}</a> {prose(first)}</li>')
        found.append([f"cohort/{header}", page, "header"])
    index.add("</ul>")
    found += [[name, f"c/{at}", "C"] for name, at in links.at.items()]

    aliases, calls = {}, read_calls(ROOT / "tests" / "data" / "operators" / "types.tsv")
    others = read_calls(pathlib.Path(__file__).parent / "reference" / "examples.tsv")
    for name in _operators.names():
        canonical = _operators.operator(name).canonical
        aliases.setdefault(canonical, [])
        if name != canonical:
            aliases[canonical].append(name)
    formulas = read_formulas(aliases)
    families, examples = {}, 0
    for name in sorted(aliases, key=str.lower):
        known = [call for one in (name, *aliases[name]) for call in calls.get(one, [])]
        page, example = operator_page(name, aliases[name], known, others.get(name, []), formulas)
        examples += example
        (folder / "operators" / f"{name}.html").write_text(page.html())
        families.setdefault(family_of(name), []).append(name)
        found += [[one, f"operators/{name}.html", "operator"] for one in (name, *aliases[name])]
    index.add('<h2 id="operators">Operators</h2>')
    for title in ("Layers and losses", *(title for title, _ in FAMILIES if title != "Layers and losses")):
        index.add(f"<h3>{title}</h3>", '<ul class="names">')
        for name in families.get(title, []):
            doc = text(_operators.operator(name).doc, quote=True)
            index.add(f'<li><a href="operators/{name}.html" title="{doc}">{name}</a></li>')
        index.add("</ul>")
    (folder / "index.html").write_text(index.html())
    (folder / "names.js").write_text("const names = " + json.dumps(sorted(found), separators=(",", ":")) + ";\n")
    print(f"{folder}: {len(aliases)} operators, {examples} with an example, {len(headers)} headers")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: reference.py FOLDER")
    write(pathlib.Path(sys.argv[1]))
