# SPDX-License-Identifier: Apache-2.0
"""Tests the command line tool, command by command, with good and bad input: output, files, messages, exit status.

run_tests.sh runs it with $BUILD in the environment.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("BUILD", "build")).resolve() / "cohort"
MODELS = ROOT / "tests" / "golden" / "models"
COMMANDS = ("inspect", "plot", "run", "bench", "convert")
SYMBOLS = ROOT / "tests" / "bench" / "symbols"


def mixed(x):
    """The numbers of the golden models come from this formula (tests/golden/model_values.cc)."""
    x = x ^ (x >> np.uint32(16))
    x = x * np.uint32(0x85EBCA6B)
    x = x ^ (x >> np.uint32(13))
    x = x * np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))


def formula(model, entry):
    fill = entry["fill"]
    with np.errstate(over="ignore"):
        start = np.uint32((model["seed"] + entry["p"] * 2654435761) % 2**32)
        bits = mixed(start + np.arange(np.prod(entry["shape"]), dtype=np.uint32))
    if fill["kind"] == "int":
        numbers = fill["lo"] + bits % np.uint32(fill["hi"] - fill["lo"])
    else:
        assert fill["kind"] == "real", fill
        offset, scale = fill.get("eval_offset", fill["offset"]), fill.get("eval_scale", fill["scale"])
        numbers = offset + scale * (bits / 2.0**32 - 0.5)
    return numbers.astype(np.float32).reshape(entry["shape"])


def variable(name):
    return {"op": "null", "name": name, "inputs": []}


class Graph:
    """A symbol in JSON, composed here."""

    def __init__(self):
        self.nodes = []

    def add(self, op, name, inputs=(), **attrs):
        node = {"op": op, "name": name, "inputs": [[i, 0, 0] for i in inputs]}
        if attrs:
            node["attrs"] = {key: str(value) for key, value in attrs.items()}
        self.nodes.append(node)
        return len(self.nodes) - 1

    def weights(self, name, *kinds):
        return [self.add("null", f"{name}_{kind}") for kind in kinds]

    def text(self, head):
        return json.dumps(
            {
                "nodes": self.nodes,
                "arg_nodes": [i for i, node in enumerate(self.nodes) if node["op"] == "null"],
                "heads": [[head, 0, 0]],
            }
        )


def resnet50():
    graph = Graph()

    def conv(data, name, filters, kernel, stride):
        weight = graph.weights(name, "weight")
        pad = (kernel - 1) // 2
        return graph.add(
            "Convolution",
            name,
            [data, *weight],
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pad=(pad, pad),
            num_filter=filters,
            no_bias=True,
        )

    def norm(data, name, relu):
        states = graph.weights(name, "gamma", "beta", "moving_mean", "moving_var")
        out = graph.add("BatchNorm", name, [data, *states], fix_gamma=False)
        return graph.add("Activation", name + "_relu", [out], act_type="relu") if relu else out

    out = norm(conv(graph.add("null", "data"), "conv0", 64, 7, 2), "bn0", True)
    out = graph.add("Pooling", "pool0", [out], kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max")
    for stage, (units, width) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], 1):
        for unit in range(1, units + 1):
            name, stride = f"stage{stage}_unit{unit}_", 2 if unit == 1 and stage > 1 else 1
            body = norm(conv(out, name + "conv1", width, 1, 1), name + "bn1", True)
            body = norm(conv(body, name + "conv2", width, 3, stride), name + "bn2", True)
            body = norm(conv(body, name + "conv3", 4 * width, 1, 1), name + "bn3", False)
            skip = norm(conv(out, name + "sc", 4 * width, 1, stride), name + "sc_bn", False) if unit == 1 else out
            out = graph.add("elemwise_add", name + "plus", [body, skip])
            out = graph.add("Activation", name + "relu", [out], act_type="relu")
    out = graph.add("Pooling", "pool1", [out], global_pool=True, pool_type="avg", kernel=(7, 7))
    out = graph.add("Flatten", "flatten", [out])
    out = graph.add("FullyConnected", "fc", [out, *graph.weights("fc", "weight", "bias")], num_hidden=1000)
    return graph.text(graph.add("softmax", "softmax", [out]))


class ToolCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_tool(self, *words, status=0, **options):
        done = subprocess.run(
            [str(TOOL), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100, **options
        )
        self.assertEqual(done.returncode, status, f"{words}: {done.stderr}")
        if status == 0:
            self.assertEqual(done.stderr, "")
        return done

    def says(self, *words, **options):
        return self.run_tool(*words, **options).stdout

    def json_of(self, *words):
        return json.loads(self.says(*words, "--json"))

    def fails(self, expected, *words, status=1):
        """One line on standard error that has the expected words."""
        done = self.run_tool(*words, status=status)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("cohort"), done.stderr)
        self.assertIn(expected, done.stderr)
        return done

    def misused(self, expected, *words):
        return self.fails(expected, *words, status=2)

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text) if isinstance(text, bytes) else path.write_text(text)
        return path

    def model(self, name):
        """A golden model's description, and its inputs as files."""
        model = json.loads((MODELS / name / "model.json").read_text())
        inputs = {}
        for entry in model["inputs"]:
            if entry["label"]:
                continue
            np.save(self.folder / f"{entry['name']}.npy", formula(model, entry))
            inputs[entry["name"]] = self.folder / f"{entry['name']}.npy"
        return model, inputs


class Words(ToolCase):
    def test_the_tool_says_what_there_is(self):
        overview = self.says("--help")
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", overview)
            text = self.says(command, "--help")
            self.assertTrue(text.startswith(f"usage: cohort {command} FILE"))
            self.assertIn("--json", text)
            self.assertEqual(text, self.says("help", command))
            self.assertLessEqual(max(map(len, text.splitlines())), 132)
        self.assertRegex(self.says("--version"), r"^cohort \d+\.\d+\.\d+\n$")

    def test_wrong_words_have_exit_status_2_and_one_line(self):
        self.misused("no command")
        self.misused("unknown command 'paint'", "paint")
        self.misused("unknown option --colour (see cohort inspect --help)", "inspect", "x.json", "--colour")
        self.misused("FILE is missing", "inspect")
        self.misused("found also 'b.json'", "inspect", "a.json", "b.json")
        self.misused("--shape needs a value", "inspect", "a.json", "--shape")
        self.misused("--json takes no value", "inspect", "a.json", "--json=1")
        self.misused("--params is given twice", "inspect", "a.json", "--params", "p", "--params=q")
        symbol = SYMBOLS / "lenet.json"
        self.misused("NAME=VALUE", "inspect", symbol, "--shape", "4,1,28,28")
        self.misused("'data' is given twice", "inspect", symbol, "--shape", "data=4", "data=5")
        for bad in ("data=4,x", "data=4,,1", "data=-1,3", "data=99999999999999999999", "data=1.5", "data= 1x"):
            self.misused("whole number", "inspect", symbol, "--shape", bad)
        self.misused("axes are too many", "inspect", symbol, "--shape", "data=" + ",".join("1" * 33))
        self.misused("complex64", "inspect", symbol, "--dtype", "data=complex64")
        self.misused("tpu(0)", "inspect", symbol, "--context", "tpu(0)")

    def test_files_that_cannot_be_read_are_named(self):
        for command in (["inspect"], ["run", "--input", "data=x.npy"], ["convert", "-o", self.folder / "y.json"]):
            self.fails("nothing.json", command[0], self.folder / "nothing.json", *command[1:])
        self.fails("nothing.params", "inspect", SYMBOLS / "lenet.json", "--params", self.folder / "nothing.params")
        self.fails(str(self.folder), "inspect", self.folder)
        self.fails("broken.json", "inspect", self.write("broken.json", '{"nodes": ['))
        self.fails("broken.params", "inspect", self.write("broken.params", b"\x12\x01" + b"\0" * 14 + b"\1"))
        self.fails("empty", "inspect", self.write("empty", ""))
        for command in (["inspect"], ["convert", "-o", self.folder / "y.json"], ["plot"]):
            self.fails("/dev/zero': expected a file" if command == ["plot"] else "/dev/zero: expected a file", command[0], "/dev/zero", *command[1:])
            self.fails(str(self.folder), command[0], self.folder, *command[1:])

    def test_what_a_command_does_not_look_at_is_refused(self):
        arrays = MODELS / "c3d/checkpoint-0000.params"
        for words in (["--plan"], ["--shape", "data=1"], ["--dtype", "data=int8"], ["--params", arrays], ["--context", "cpu(1)"]):
            self.misused(f"{words[0]} is only for a symbol", "inspect", arrays, *words)
        for command in ("inspect", "plot", "bench"):
            shapes = ["--shape", "data=1,1,28,28", "image=1"]
            self.fails("the network has no input 'image'", command, SYMBOLS / "lenet.json", *shapes)

    def test_errors_are_one_line_whatever_the_names_are(self):
        graph = Graph()
        name = "fc\x1b[2J\nroot: all is well"
        weights = [graph.add("null", "data"), *graph.weights(name, "weight", "bias")]
        symbol = self.write("net.json", graph.text(graph.add("FullyConnected", name, weights, num_hidden=3)))
        for words in ([symbol, "--shape", "data=2,3", name + "_bias=4"], [name], [symbol, "--params", name], [symbol, "--" + name]):
            done = self.run_tool("inspect", *words, status=1 if words[-1][0] != "-" else 2)
            self.assertRegex(done.stderr, "^[ -~]*\n$")

    def test_a_pipe_is_read_once_or_not_at_all(self):
        net = {"nodes": [variable("data"), variable("bias")], "arg_nodes": [0, 1], "heads": [[2, 0, 0]]}
        net["nodes"].append({"op": "broadcast_add", "name": "sum", "inputs": [[0, 0, 0], [1, 0, 0]]})
        symbol, pipe = self.write("net.json", json.dumps(net)), self.folder / "pipe"
        os.mkfifo(pipe)
        np.savez(self.folder / "net.npz", **{"arg:bias": np.ones(3, np.float32)})
        self.says("convert", self.folder / "net.npz", "-o", self.folder / "net.params")
        for name in ("net.npz", "net.params"):
            with subprocess.Popen(["cp", self.folder / name, pipe]):
                told = self.json_of("inspect", symbol, "--params", pipe, "--shape", "data=2,3")
            self.assertEqual(told["totals"]["parameters"], 3)
            for command in (["inspect"], ["convert", "-o", self.folder / "out.npz"]):
                self.fails("found a pipe", command[0], pipe, *command[1:])

    def test_output_that_nobody_takes_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TOOL, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output: No space left", done.stderr)
        done = subprocess.run(["bash", "-c", f"'{TOOL}' inspect '{SYMBOLS}/resnet20.json' --json | head -c 1"], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("{", ""))


    def options(self, command):
        return set(re.findall(r"^  (--[a-z0-9-]+)", self.says(command, "--help"), re.M))

    def test_the_page_for_man_has_every_command_and_option_and_is_well_formed(self):
        page = (ROOT / "src/tool/cohort.1").read_text()
        plain = page.replace("\\-", "-")
        for command in COMMANDS:
            self.assertRegex(plain, rf"(?m)^\.B {command}$")
            for option in self.options(command):
                self.assertIn(option, plain)
        said = set(re.findall(r"--[a-z0-9]+(?:-[a-z0-9]+)*", plain))
        self.assertEqual(said - set.union(*map(self.options, COMMANDS)), {"--help", "--version"})
        for program in (["man", "--warnings", "-l"], ["mandoc", "-Tlint", "-W", "warning"]):
            if shutil.which(program[0]):
                done = subprocess.run([*program, ROOT / "src/tool/cohort.1"], capture_output=True, text=True, env={**os.environ, "MANWIDTH": "100"})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertNotIn("WARNING", done.stdout)

    def complete(self, *words):
        """The completions that bash offers for the last word."""
        script = (
            'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cohort; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", script, "bash", ROOT / "src/tool/cohort.bash", *words], capture_output=True, text=True, cwd=self.folder
        )
        return set(done.stdout.split())

    def test_bash_completes_commands_options_and_files(self):
        self.assertEqual(self.complete("cohort", ""), {*COMMANDS, "help", "--help", "--version"})
        self.assertEqual(self.complete("cohort", "in"), {"inspect"})
        self.assertEqual(self.complete("cohort", "help", ""), set(COMMANDS))
        for command in COMMANDS:
            self.assertEqual(self.complete("cohort", command, "--"), self.options(command) | {"--help"})
        self.write("net.json", "")
        self.assertEqual(self.complete("cohort", "run", "n"), {"net.json"})
        self.assertEqual(self.complete("cohort", "run", "x", "--input", "data", "=", "ne"), {"net.json"})
        self.assertEqual(self.complete("cohort", "run", "x", "--input", "data", "="), {"net.json"})
        self.assertEqual(self.complete("cohort", "bench", "x", "--context", "c"), {"cpu\\(0\\)"})


class Inspect(ToolCase):
    def totals(self, *words):
        told = self.json_of("inspect", *words)
        return told, told["totals"]

    def test_lenet_has_431080_parameters(self):
        told, totals = self.totals(SYMBOLS / "lenet.json", "--shape", "data=8,1,28,28")
        self.assertEqual(totals["parameters"], 431080)
        self.assertEqual(totals["parameter_bytes"], 4 * 431080)
        self.assertEqual([layer["parameters"] for layer in told["layers"] if layer["parameters"]], [520, 25050, 400500, 5010])
        self.assertEqual(told["outputs"], [{"name": "softmax_output", "shape": [8, 10], "dtype": "float32", "elements": 80}])
        text = self.says("inspect", SYMBOLS / "lenet.json", "--shape", "data=8,1,28,28")
        self.assertRegex(text, r"\nfc1 +FullyConnected +\(8, 500\) +float32 +400,500\n")
        self.assertIn("\n431,080 parameters in 8 arrays, 1.64 MiB\n", text)
        self.assertRegex(text, r"\ngradients +0 B +1\.64 MiB\n")

    def test_resnet50_has_25557032_parameters(self):
        path = self.write("resnet50.json", resnet50())
        told, totals = self.totals(path, "--shape", "data=1,3,224,224")
        self.assertEqual((totals["parameters"], totals["auxiliary_states"]), (25557032, 53120))
        self.assertEqual([value["name"] for value in told["inputs"]], ["data"])
        shapes = {layer["name"]: layer["outputs"][0]["shape"] for layer in told["layers"]}
        self.assertEqual(shapes["stage4_unit3_relu"], [1, 2048, 7, 7])
        self.assertEqual(shapes["softmax"], [1, 1000])
        memory = told["memory"]
        self.assertEqual(memory["training"]["gradient_bytes"], 4 * 25557032)
        self.assertLess(memory["inference"]["planned_bytes"], memory["inference"]["intermediate_bytes"])
        self.assertGreater(memory["training"]["planned_bytes"], memory["inference"]["planned_bytes"])

    def test_shapes_and_counts_of_the_golden_models_are_what_mxnet_says(self):
        for folder in sorted(MODELS.iterdir()):
            if not (folder / "model.json").exists():
                continue
            with self.subTest(folder.name):
                model = json.loads((folder / "model.json").read_text())
                shapes = [f"{i['name']}={','.join(map(str, i['shape']))}" for i in model["inputs"]]
                told, totals = self.totals(folder / "symbol.json", "--shape", *shapes)
                self.assertEqual(totals["parameters"] + totals["auxiliary_states"], model["num_param_elements"])
                self.assertEqual(len(told["parameters"]) + len(told["auxiliary_states"]), model["num_param_arrays"])
                self.assertEqual([o["shape"] for o in told["outputs"]], [o["shape"] for o in model["outputs"]])
                self.assertTrue(totals["complete"])
                self.assertNotIn("error", told["memory"]["inference"])
                if "train" in model["modes"]:
                    self.assertNotIn("error", told["memory"]["training"])
                expected = json.loads((folder / "shapes.json").read_text())["cases"][0]
                if [i["shape"] for i in model["inputs"]] != [expected["inputs"].get(i["name"]) for i in model["inputs"]]:
                    continue
                for layer in told["layers"]:
                    for output in layer["outputs"]:
                        self.assertEqual(output["shape"], expected["shapes"][output["name"]], output["name"])

    def test_what_is_not_known_is_said(self):
        told, totals = self.totals(SYMBOLS / "lenet.json")
        self.assertFalse(totals["complete"])
        self.assertIn("data", told["unknown_shapes"])
        self.assertIsNone(told["layers"][0]["parameters"])
        self.assertEqual(told["memory"]["inference"], {"error": "not all shapes are known"})
        self.assertIn("--shape data=..", self.says("inspect", SYMBOLS / "lenet.json"))

    def test_shapes_that_contradict_name_the_node(self):
        self.fails("conv1", "inspect", SYMBOLS / "lenet.json", "--shape", "data=8,28")
        self.fails("no_such", "inspect", SYMBOLS / "lenet.json", "--shape", "no_such=8,28")

    def test_parameters_may_come_from_a_file(self):
        _, totals = self.totals(MODELS / "c3d/symbol.json", "--params", MODELS / "c3d/checkpoint-0000.params", "--shape", "data=2,2,4,12,12")
        self.assertEqual(totals["parameters"], 2359)

    def test_types_follow_from_those_of_the_inputs(self):
        told, totals = self.totals(SYMBOLS / "mlp.json", "--shape", "data=4,20", "--dtype", "data=float64")
        self.assertEqual(totals["parameter_bytes"], 8 * totals["parameters"])
        self.assertEqual(told["outputs"][0]["dtype"], "float64")

    def test_missing_operators_are_told_all_at_once_with_their_nodes(self):
        graph = Graph()
        out = graph.add("_no_such_operator", "first", [graph.add("null", "data")])
        out = graph.add("Another", "second", [out])
        path = self.write("lacks.json", graph.text(graph.add("_no_such_operator", "third", [out])))
        done = self.fails("2 operators are missing, in 3 nodes", "inspect", path, "--json")
        self.assertEqual(
            json.loads(done.stdout)["missing"],
            [{"operator": "Another", "nodes": ["second"]}, {"operator": "_no_such_operator", "nodes": ["first", "third"]}],
        )
        self.assertRegex(self.fails("2 operators", "inspect", path).stdout, r"_no_such_operator +2 +first\n")

    def test_operators_of_a_host_are_missing_like_others(self):
        graph = Graph()
        mine = graph.add("Custom", "mine", [graph.add("null", "data")], op_type="my_layer")
        path = self.write("custom.json", graph.text(graph.add("_no_such_operator", "other", [mine])))
        text = self.fails("2 operators are missing, in 2 nodes", "inspect", path).stdout
        self.assertRegex(text, r"Custom 'my_layer' +1 +mine\n")
        self.assertRegex(text, r"_no_such_operator +1 +other\n")
        alone = Graph()
        path = self.write("alone.json", alone.text(alone.add("Custom", "mine", [alone.add("null", "data")], op_type="my_layer")))
        self.fails("1 operator is missing, in 1 node", "inspect", path)

    def test_the_lines_of_memory_add_up(self):
        text = self.says("inspect", SYMBOLS / "lenet.json", "--shape", "data=8,1,28,28")
        units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
        rows = re.findall(r"^(arguments|gradients|outputs|intermediate values|working memory|total) +([\d.]+) (\w+) +([\d.]+) (\w+)$", text, re.M)
        self.assertEqual(len(rows), 6)
        for number, unit in ((1, 2), (3, 4)):
            sizes = [float(row[number]) * units[row[unit]] for row in rows]
            self.assertAlmostEqual(sum(sizes[:-1]) / sizes[-1], 1, delta=0.01)

    def test_graphs_in_graphs_have_an_end(self):
        inner = '{"nodes": [{"op": "null", "name": "x", "inputs": [], "subgraphs": [' * 20000 + "]}]}" * 20000
        self.fails("deep.json", "inspect", self.write("deep.json", inner))

    def test_names_do_not_write_to_the_terminal(self):
        graph = Graph()
        path = self.write("hostile.json", graph.text(graph.add("relu", "a\x1b[31m\nb", [graph.add("null", "data")])))
        self.assertIn("a?[31m?b", self.says("inspect", path, "--shape", "data=1"))
        self.assertEqual(self.json_of("inspect", path, "--shape", "data=1")["layers"][0]["name"], "a\x1b[31m\nb")

    def test_shapes_too_large_for_any_memory_are_errors(self):
        for shape in ("data=4294967296,1,4294967296,28", "data=9223372036854775807,1,28,28"):
            self.fails("", "inspect", SYMBOLS / "lenet.json", "--shape", shape)

    def test_arrays_are_listed(self):
        told = self.json_of("inspect", MODELS / "c3d/checkpoint-0000.params")
        self.assertEqual((told["totals"]["arrays"], told["totals"]["elements"]), (6, 2359))
        self.assertIn("2,359 elements in 6 arrays", self.says("inspect", MODELS / "c3d/checkpoint-0000.params"))
        np.savez(self.folder / "two.npz", a=np.zeros((2, 3), np.int8), b=np.zeros(0))
        told = self.json_of("inspect", self.folder / "two.npz")
        self.assertEqual([(a["name"], a["shape"], a["dtype"]) for a in told["arrays"]], [("a", [2, 3], "int8"), ("b", [0], "float64")])


class Plot(ToolCase):
    def test_the_picture_has_the_layers_and_the_shapes_between_them(self):
        dot = self.says("plot", SYMBOLS / "lenet.json", "--shape", "data=8,1,28,28")
        for part in ("<B>Convolution</B>", "conv1 · 5×5 · 20", "8×20×24×24", "<B>softmax_output</B>", "max · 2×2 · stride 2"):
            self.assertIn(part, dot)
        self.assertNotIn("conv1_weight", dot)
        self.assertIn("conv1_weight", self.says("plot", SYMBOLS / "lenet.json", "--weights"))

    def test_nodes_whose_names_begin_alike_are_drawn_together(self):
        words = ["plot", SYMBOLS / "resnet20.json"]
        dot = self.says(*words)
        self.assertEqual(len(re.findall(r"subgraph cluster_", dot)), 9)
        self.assertIn('label="stage2_unit1";', dot)
        self.assertIn(">conv1 · 3×3 · 32 · stride 2<", dot)
        self.assertNotIn("cluster", self.says(*words, "--no-groups"))
        placed = self.says("plot", MODELS / "matrix-factorization-model-parallel/symbol.json")
        self.assertEqual(re.findall(r' label="(dev\d)";', placed), ["dev1", "dev2"])

    def test_every_golden_model_is_drawn_in_the_language_of_graphviz(self):
        for symbol in sorted(MODELS.glob("*/symbol.json")):
            with self.subTest(symbol.parent.name):
                path = self.folder / "net.dot"
                told = self.json_of("plot", symbol, "-o", path)
                text = path.read_text()
                self.assertEqual(len(re.findall(r"(?m)^n\d+ \[", text)), told["nodes"])
                self.assertEqual(len(re.findall(r"(?m)^n\d+ -> n\d", text)), told["edges"])
                if shutil.which("dot"):
                    subprocess.run(["dot", "-Tcanon", path], stdout=subprocess.DEVNULL, check=True)

    def test_names_stay_within_their_quotes(self):
        graph = Graph()
        path = self.write("odd.json", graph.text(graph.add("relu", 'a"<b>&\\', [graph.add("null", "x\n]")])))
        dot = self.says("plot", path)
        self.assertIn('a&quot;&lt;b&gt;&amp;\\', dot)
        self.assertIn('tooltip="a\\"<b>&\\\\"', dot)
        self.assertIn("<B>x?]</B>", dot)

    def test_graphviz_makes_pictures_where_it_is_there_and_is_named_where_not(self):
        out = self.folder / "net.svg"
        done = self.run_tool("plot", SYMBOLS / "mlp.json", "-o", out, status=1, env={**os.environ, "PATH": "/nowhere"})
        self.assertIn("Graphviz", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])
        if shutil.which("dot"):
            for end, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
                self.says("plot", SYMBOLS / "mlp.json", "-o", self.folder / f"net.{end}")
                self.assertTrue((self.folder / f"net.{end}").read_bytes().startswith(start))
            self.assertEqual({p.name for p in self.folder.iterdir()}, {"net.svg", "net.png", "net.pdf"})
        self.fails(f"plot: {self.folder}/no/such.svg: ", "plot", SYMBOLS / "mlp.json", "-o", self.folder / "no/such.svg")
        self.misused("ends in .svg", "plot", SYMBOLS / "mlp.json", "-o", "net.bmp")
        self.misused("--json needs", "plot", SYMBOLS / "mlp.json", "--json")
        self.fails("no/such.dot", "plot", SYMBOLS / "mlp.json", "-o", self.folder / "no/such.dot")
        self.fails("/dev/full", "plot", SYMBOLS / "mlp.json", "-o", "/dev/full/x.dot")


class Bench(ToolCase):
    def test_a_row_for_each_batch_and_devices(self):
        words = ["bench", SYMBOLS / "mlp.json", "--shape", "data=4,20", "--milliseconds", "5"]
        told = self.json_of(*words, "--batch", "1,6", "--context", "cpu(0)", "--context", "cpu(0),cpu(1)")
        rows = told["results"]
        self.assertEqual([(r["batch"], r["contexts"]) for r in rows], [(b, c) for c in ("cpu(0)", "cpu(0),cpu(1)") for b in (1, 6)])
        self.assertEqual(rows[2]["error"], "fewer items than devices")
        self.fails("nothing was measured", *words, "--batch", "1", "--context", "cpu(0),cpu(1)")
        for row in (rows[0], rows[1], rows[3]):
            self.assertGreaterEqual(row["steps"], 5)
            self.assertGreaterEqual(row["median_ms"], row["fastest_ms"])
            self.assertGreater(row["first_ms"], 0)
            self.assertAlmostEqual(row["items_per_second"], row["batch"] / row["median_ms"] * 1000, 3)
        self.assertRegex(self.says(*words), r"\n +4  cpu\(0\) +\d+ +[\d.]+ +[\d.]+ +[\d.]+ % +[\d.]+ +[\d.]+ [KM]iB\n")

    def test_steps_can_be_seen(self):
        words = ["bench", SYMBOLS / "mlp.json", "--shape", "data=4,20", "--milliseconds", "5", "--train"]
        self.assertRegex(self.says(*words, "--trace", self.folder / "trace.json"), r"operator  +FullyConnected")
        spans = [e for e in json.loads((self.folder / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"]
        self.assertLessEqual({"operator", "update", "pass", "call"}, {e["cat"] for e in spans})
        self.fails("no/such.json", *words, "--trace", self.folder / "no/such.json")

    def test_training_takes_gradients_too(self):
        for symbol, shape in ((SYMBOLS / "mlp.json", "data=4,20"), (MODELS / "se-resnet-small/symbol.json", "data=4,3,16,16")):
            words = ["bench", symbol, "--shape", shape, "--milliseconds", "1"]
            ahead, train = self.json_of(*words)["results"][0], self.json_of(*words, "--train")["results"][0]
            self.assertGreater(train["memory_bytes"], ahead["memory_bytes"])
        # No loss: its head is given a gradient.
        self.json_of("bench", MODELS / "dcgan-generator/symbol.json", "--shape", "rand=2,16,1,1", "--train", "--milliseconds", "1")

    def test_steps_may_be_in_other_types(self):
        words = ["bench", SYMBOLS / "mlp.json", "--shape", "data=4,20", "--milliseconds", "1", "--train"]
        told = self.json_of(*words, "--compute-dtype", "bfloat16", "--recompute", "--tf32")
        self.assertEqual((told["compute_dtype"], told["recompute"], told["tf32"]), ("bfloat16", True, True))
        self.assertEqual(self.json_of(*words)["compute_dtype"], "float32")
        self.misused("--compute-dtype: ", *words, "--compute-dtype", "float17")

    def test_the_batch_may_be_another_axis(self):
        name = "lstm-fused-2layer"
        told = self.json_of("bench", MODELS / name / "symbol.json", "--shape", "data=8,4", "softmax_label=8,4", "--batch-axis", "1",
                            "--batch", "6", "--milliseconds", "1", "--params", MODELS / name / "checkpoint-0000.params")
        self.assertEqual(told["results"][0]["batch"], 6)

    def test_a_bar_moves_on_a_terminal_and_only_there(self):
        words = [str(TOOL), "bench", str(SYMBOLS / "mlp.json"), "--shape", "data=4,20", "--batch", "1,2", "--milliseconds", "200", "--json"]
        ours, theirs = os.openpty()
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        seen = ""
        with contextlib.suppress(OSError):  # raised behind the last output
            while part := os.read(ours, 65536):
                seen += part.decode()
        os.close(ours)
        self.assertEqual(len(json.loads(done.stdout)["results"]), 2)
        self.assertIn("measuring [", seen)
        self.assertIn("] 1/2", seen)
        self.assertTrue(seen.endswith("\r\x1b[K"))

    def test_what_cannot_be_measured_is_said(self):
        self.misused("--shape", "bench", SYMBOLS / "mlp.json")
        self.misused("--batch: expected a whole number", "bench", SYMBOLS / "mlp.json", "--shape", "data=4,20", "--batch", "1,0")
        self.fails("no axis 2", "bench", SYMBOLS / "mlp.json", "--shape", "data=4,20", "--batch-axis", "2")
        self.fails("", "bench", SYMBOLS / "mlp.json", "--shape", "date=4,20")


class Run(ToolCase):
    def words(self, name, inputs):
        given = [f"{key}={path}" for key, path in inputs.items()]
        return ["run", MODELS / name / "symbol.json", "--params", MODELS / name / "checkpoint-0000.params", "--input", *given]

    def expected(self, name, num):
        self.says("convert", MODELS / name / "expected.params", "-o", self.folder / "expected.npz")
        with np.load(self.folder / "expected.npz") as arrays:
            return [arrays[f"eval:{i}"] for i in range(num)]

    def close(self, name, found, expected):
        tolerances = json.loads((MODELS / name / "expected.json").read_text())["tolerance"]["eval"]
        self.assertEqual(len(found), len(expected))
        for one, other, tolerance in zip(found, expected, tolerances):
            np.testing.assert_allclose(one, other, rtol=tolerance["rtol"], atol=tolerance["atol"])

    def test_outputs_are_what_mxnet_computes(self):
        for name in ("svm-mlp", "gru-fused", "text-cnn", "c3d", "dcgan-discriminator", "multi-task"):
            with self.subTest(name):
                model, inputs = self.model(name)
                label = ["--shape", "softmax_label=4,8"] if name == "gru-fused" else []
                told = self.json_of(*self.words(name, inputs), *label)
                found = [np.reshape(output["values"], output["shape"]) for output in told["outputs"]]
                self.assertEqual([output["name"] for output in told["outputs"]], [output["name"] for output in model["outputs"]])
                self.close(name, found, self.expected(name, len(found)))

    def test_batches_and_several_devices_give_the_same(self):
        _, inputs = self.model("svm-mlp")
        expected = self.expected("svm-mlp", 1)
        for how in (["--batch", "4"], ["--batch", "100"], ["--context", "cpu(0),cpu(1)"], ["--context", "cpu(0),cpu(1)", "--batch", "4"], ["--context", "cpu(0),cpu(1)", "--batch", "5"]):
            with self.subTest(how):
                self.says(*self.words("svm-mlp", inputs), *how, "--output", self.folder / "out.npy")
                self.close("svm-mlp", [np.load(self.folder / "out.npy")], expected)

    def test_what_does_not_go_in_parts_is_not_put_together(self):
        graph = Graph()
        data = graph.add("null", "data")
        path = self.write("sum.json", graph.text(graph.add("sum", "total", [data], axis="0")))
        np.save(self.folder / "x.npy", np.arange(12, dtype=np.float32).reshape(4, 3))
        words = ["run", path, "--input", f"data={self.folder}/x.npy"]
        self.assertEqual(self.json_of(*words)["outputs"][0]["values"], [18, 22, 26])
        for how in (["--batch", "2"], ["--batch", "1"], ["--batch", "3"], ["--context", "cpu(0),cpu(1)"]):
            self.fails("output 'total_output' of all rows has shape (3,)", *words, *how)
        self.assertEqual(self.json_of(*words, "--batch", "9"), self.json_of(*words))

    def test_outputs_are_saved_in_each_format(self):
        _, inputs = self.model("multi-task")
        words = self.words("multi-task", inputs)
        told = self.json_of(*words, "-o", self.folder / "out.npz")
        self.assertEqual(told["saved"], str(self.folder / "out.npz"))
        with np.load(self.folder / "out.npz") as arrays:
            self.assertEqual({key: arrays[key].shape for key in arrays}, {o["name"]: tuple(o["shape"]) for o in told["outputs"]})
        self.says(*words, "-o", self.folder / "out.params")
        self.assertEqual(self.json_of("inspect", self.folder / "out.params")["totals"]["arrays"], 3)
        self.fails("one array", *words, "-o", self.folder / "out.npy")
        self.misused(".params, .npy or .npz", *words, "-o", self.folder / "out.txt")
        self.fails("no/such", *words, "-o", self.folder / "no/such/out.npz")
        self.assertEqual(sorted(p.name for p in self.folder.glob("out*")), ["out.npz", "out.params"])

    def test_a_run_can_be_seen(self):
        _, inputs = self.model("svm-mlp")
        self.says(*self.words("svm-mlp", inputs), "--trace", self.folder / "trace.json")
        names = [e["name"] for e in json.loads((self.folder / "trace.json").read_text())["traceEvents"] if e.get("cat") == "operator"]
        self.assertIn("fc1", names)

    def peak_mb(self, *words):
        process = subprocess.Popen([str(TOOL), *map(str, words)], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        return usage.ru_maxrss / 1024

    def test_parameters_lie_in_their_file(self):
        net = {
            "nodes": [{"op": "null", "name": name, "inputs": []} for name in ("data", "fc_weight")]
            + [{"op": "FullyConnected", "name": "fc", "inputs": [[0, 0, 0], [1, 0, 0]], "attrs": {"num_hidden": "4000", "no_bias": "1"}}],
            "arg_nodes": [0, 1],
            "heads": [[2, 0, 0]],
        }
        symbol, data = self.write("net.json", json.dumps(net)), self.folder / "data.npy"
        np.save(data, np.ones((1, 4000), np.float32))
        peaks = []
        for rows in (4, 4000):  # of 16 KB
            symbol.write_text(json.dumps(net).replace("4000", str(rows)))
            np.savez(self.folder / "net.npz", **{"arg:fc_weight": np.ones((rows, 4000), np.float32)})
            self.says("convert", self.folder / "net.npz", "-o", self.folder / "net.params")
            params = ["--params", self.folder / "net.params"]
            peaks.append(
                [
                    self.peak_mb("run", symbol, *params, "--input", f"data={data}", "-o", self.folder / "out.npy"),
                    self.peak_mb("bench", symbol, *params, "--shape", "data=1,4000", "--milliseconds", "1"),
                    self.peak_mb("inspect", symbol, *params, "--shape", "data=1,4000"),
                ]
            )
            np.testing.assert_array_equal(np.load(self.folder / "out.npy"), np.full((1, rows), 4000, np.float32))
        for times in np.subtract(peaks[1], peaks[0]) / 61:
            self.assertLess(times, 1.5)  # once, not the file's bytes and a copy

    def test_a_label_needs_no_values_whatever_it_is_called(self):
        net = {
            "nodes": [{"op": "null", "name": name, "inputs": []} for name in ("data", "fc_weight", "target")]
            + [
                {"op": "FullyConnected", "name": "fc", "inputs": [[0, 0, 0], [1, 0, 0]], "attrs": {"num_hidden": "1", "no_bias": "1"}},
                {"op": "LinearRegressionOutput", "name": "near", "inputs": [[3, 0, 0], [2, 0, 0]]},
            ],
            "arg_nodes": [0, 1, 2],
            "heads": [[4, 0, 0]],
        }
        symbol, data, params = self.write("net.json", json.dumps(net)), self.folder / "data.npy", self.folder / "net.npz"
        np.save(data, np.array([[3, 4]], np.float32))
        np.savez(params, fc_weight=np.array([[1, 10]], np.float32))
        words = ["run", symbol, "--params", params, "--input", f"data={data}"]
        self.assertEqual(self.json_of(*words)["outputs"][0]["values"], [43])
        symbol.write_text(json.dumps(net).replace("fc_weight", "a_label"))
        self.fails("no values are given for 1 variable (a_label)", *words)

    def test_an_auxiliary_state_that_is_not_given_is_named(self):
        names = ("data", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var")
        nodes = [{"op": "null", "name": name, "inputs": []} for name in names]
        nodes.append({"op": "BatchNorm", "name": "bn", "inputs": [[i, 0, 0] for i in range(5)]})
        symbol = self.write("net.json", json.dumps({"nodes": nodes, "arg_nodes": list(range(5)), "heads": [[5, 0, 0]]}))
        np.savez(self.folder / "net.npz", **{name: np.ones(3, np.float32) for name in names[1:4]})
        words = ["bench", symbol, "--params", self.folder / "net.npz", "--shape", "data=4,3", "--milliseconds", "1"]
        self.fails("bn_moving_var", *words)
        self.fails("bn_moving_var", *words, "--train")

    def test_the_largest_are_told_with_their_labels(self):
        _, inputs = self.model("svm-mlp")
        labels = self.write("labels.txt", "zero\none\r\ntwo\nthree\nfour\n")
        words = [*self.words("svm-mlp", inputs), "--top", "2", "--labels", labels]
        scores = self.expected("svm-mlp", 1)[0]
        told = self.json_of(*words)["top"]
        for row, best in zip(scores, told):
            order = np.argsort(-row)[:2]
            self.assertEqual([entry["class"] for entry in best], list(order))
            self.assertEqual([entry["label"] for entry in best], [["zero", "one", "two", "three", "four"][i] for i in order])
        self.assertRegex(self.says(*words), r"\n +0 +\d +-?\d\.\d+ +(zero|one|two|three|four)\n")
        self.misused("--labels needs --top", *self.words("svm-mlp", inputs), "--labels", labels)
        self.misused("--top: expected a whole number from 1", *self.words("svm-mlp", inputs), "--top", "0")
        self.fails("no_labels", *words[:-1], self.folder / "no_labels")
        self.fails("Is a directory", *words[:-1], self.folder)
        self.fails("/dev/zero: expected a file", *words[:-1], "/dev/zero")

    def test_what_is_missing_or_too_much_is_named(self):
        _, inputs = self.model("svm-mlp")
        words = self.words("svm-mlp", inputs)
        self.misused("--input NAME=FILE is missing", *words[:4])
        self.fails("fc", "run", words[1], "--input", words[-1])
        self.fails("no input 'image'", *words, f"image={inputs['data']}")
        self.fails("nothing.npy", *words[:-1], f"data={self.folder}/nothing.npy")
        np.save(self.folder / "wide.npy", np.zeros((6, 13)))
        self.fails("weight", *words[:-1], f"data={self.folder}/wide.npy")
        np.savez(self.folder / "pair.npz", a=np.zeros(1), b=np.zeros(1))
        self.fails("no array 'data' among its 2 arrays", *words[:-1], f"data={self.folder}/pair.npz")
        self.fails("cpu_shared", *words, "--context", "cpu(0),cpu_shared(-1)", status=2)

    def test_a_shape_is_that_of_the_values_or_a_labels(self):
        model, inputs = self.model("svm-mlp")
        words = self.words("svm-mlp", inputs)
        shapes = {e["name"]: e["shape"] for e in self.json_of("inspect", words[3])["arrays"]}
        weight = next(name for name in shapes if name.endswith("weight"))
        given = {"data": np.load(inputs["data"]).shape, weight[4:]: shapes[weight]}
        expected = self.json_of(*words)
        for name, shape in given.items():
            with self.subTest(name):
                told = self.json_of(*words, "--shape", f"{name}={','.join(map(str, shape))}")
                self.assertEqual(told, expected)
                self.fails(f"--shape {name}: its values have shape", *words, "--shape", f"{name}=3,2")

    def test_numbers_that_are_none_are_shown(self):
        graph = Graph()
        path = self.write("copy.json", graph.text(graph.add("_copy", "copy", [graph.add("null", "data")])))
        np.save(self.folder / "odd.npy", np.array([[1, np.nan, np.inf, -np.inf, 0.1]], np.float32))
        words = ["run", path, "--input", f"data={self.folder}/odd.npy"]
        self.assertEqual(self.json_of(*words)["outputs"][0]["values"], [1, None, None, None, 0.1])
        self.assertEqual([e["class"] for e in self.json_of(*words, "--top", "5")["top"][0]], [2, 0, 4, 3, 1])
        self.assertIn("nan", self.says(*words))
        np.save(self.folder / "ids.npy", np.array([2**40 + 1, -3]))
        self.assertEqual(
            self.json_of("run", path, "--input", f"data={self.folder}/ids.npy", "--dtype", "data=int64")["outputs"][0]["values"],
            [2**40 + 1, -3],
        )
        np.save(self.folder / "many.npy", np.array([2**62 + 1, -(2**63), 2**63 - 1]))
        words = ["run", path, "--input", f"data={self.folder}/many.npy", "--dtype", "data=int64"]
        self.assertEqual(self.json_of(*words)["outputs"][0]["values"], [2**62 + 1, -(2**63), 2**63 - 1])
        none = self.folder / "none.npy"
        np.save(none, np.zeros((0, 3), np.float32))
        self.assertEqual(self.says("run", path, "--input", f"data={none}"), "copy_output (0, 3) float32\n")
        self.assertIn("(0, 3)", self.says("inspect", none))


class Convert(ToolCase):
    def test_symbols_of_older_form_become_those_of_today(self):
        today = self.folder / "today.json"
        self.says("convert", MODELS / "lenet/symbol.json", "-o", today)
        for old in ("symbol-0.8.json", "symbol-0.9.json"):
            told = self.json_of("convert", MODELS / "lenet" / old, "-o", self.folder / old)
            self.assertEqual((told["kind"], told["nodes"]), ("symbol", 21))
            self.assertEqual(
                [(n["op"], n["name"], n["inputs"]) for n in json.loads((self.folder / old).read_text())["nodes"]],
                [(n["op"], n["name"], n["inputs"]) for n in json.loads(today.read_text())["nodes"]],
            )
            self.assertIn("attrs", (self.folder / old).read_text())
            self.assertEqual(self.says("convert", MODELS / "lenet" / old, "-o", "-"), (self.folder / old).read_text() + "\n")
        self.misused("--json needs --output FILE", "convert", today, "-o", "-", "--json")

    def test_arrays_go_to_numpy_and_back(self):
        start, middle, end = MODELS / "c3d/checkpoint-0000.params", self.folder / "a.npz", self.folder / "b.params"
        self.says("convert", start, "-o", middle)
        self.assertEqual(self.json_of("convert", middle, "-o", end)["arrays"], 6)
        self.assertEqual(start.read_bytes(), end.read_bytes())

    def test_names_become_those_of_a_checkpoint(self):
        start, bare, end = MODELS / "dcgan-discriminator/checkpoint-0000.params", self.folder / "bare.npz", self.folder / "b.params"
        self.says("convert", start, "-o", bare)
        with np.load(bare) as arrays:
            np.savez(self.folder / "plain.npz", **{key[4:]: arrays[key] for key in arrays})
            names = sorted(arrays)
        self.says("convert", self.folder / "plain.npz", "-o", end, "--symbol", MODELS / "dcgan-discriminator/symbol.json")
        self.assertEqual(sorted(a["name"] for a in self.json_of("inspect", end)["arrays"]), names)
        self.assertTrue(any(name.startswith("aux:") for name in names))

    def test_what_cannot_be_converted_leaves_nothing(self):
        out = self.folder / "out.params"
        self.misused("--output FILE is missing", "convert", SYMBOLS / "lenet.json")
        self.misused("ends in", "convert", MODELS / "c3d/checkpoint-0000.params", "-o", self.folder / "out.zip")
        self.fails("one array", "convert", MODELS / "c3d/checkpoint-0000.params", "-o", self.folder / "out.npy")
        self.misused("--symbol is only for", "convert", SYMBOLS / "lenet.json", "-o", out, "--symbol", "x")
        cut = self.write("cut.params", (MODELS / "c3d/checkpoint-0000.params").read_bytes()[:500])
        self.fails("cut.params", "convert", cut, "-o", out)
        self.fails("no/such", "convert", SYMBOLS / "lenet.json", "-o", self.folder / "no/such.json")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["cut.params"])
        out.write_text("before")
        self.fails("cut.params", "convert", cut, "-o", out)
        self.assertEqual(out.read_text(), "before")


if __name__ == "__main__":
    unittest.main()
