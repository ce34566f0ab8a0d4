# SPDX-License-Identifier: Apache-2.0
"""Shared by the peers' programs: the workloads of ../workload.cc, their numbers by name, timing, and the line they print."""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import zlib

import numpy as np

FOLDER = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("PEERS_DIR") or os.path.expanduser("~/.cache/cohort-peers")
BUCKETS = (10, 20, 30, 40)
WORDS, HIDDEN, LAYERS, LENGTH = 10000, 200, 2, 35


class Workload:
    def __init__(self, model, batches, sample, classes, steps, rule="sgd", wd=0.0, variants=("",), task="classes"):
        self.model, self.batches, self.sample, self.classes = model, dict(zip(("train", "infer"), batches)), sample, classes
        self.steps, self.rule, self.wd, self.variants, self.task = dict(zip(("train", "infer"), steps)), rule, wd, variants, task
        self.momentum = 0.0 if task == "words" else 0.9
        self.rate = 1e-4 if rule == "adam" else 0.01


IMAGE = (3, 224, 224)
WORKLOADS = {
    "W1": Workload("mlp", (64, 64), (784,), 10, (500, 1000)),
    "W2": Workload("lenet", (64, 64), (1, 28, 28), 10, (100, 200)),
    "W3": Workload("resnet20", (128, 128), (3, 32, 32), 10, (5, 15), wd=1e-4),
    "W4": Workload("resnet50", (16, 32), IMAGE, 1000, (2, 2), wd=1e-4),
    "W5": Workload("lstm", (32, 32), (LENGTH,), WORDS, (8, 12), variants=("fused", "unroll", "bucket"), task="words"),
    "W6": Workload("mobilenet_v2", (16, 1), IMAGE, 1000, (2, 50), wd=1e-4),
    "W7": Workload("mlp", (64, 64), (784,), 10, (300, 500)),
    "W8": Workload("transformer", (16, 16), (128, 512), 0, (5, 15), rule="adam", task="numbers"),
    "W9": Workload("tiny", (1, 1), (32,), 10, (2000, 5000), variants=("mlp", "chain")),
    "W10": Workload("resnet50", (4, 4), IMAGE, 1000, (3, 3), wd=1e-4),
    "W11": Workload("resnet50", (1, 1), IMAGE, 1000, (1, 1), wd=1e-4),
}


# ---- numbers from names ------------------------------------------------------------------------------------------------


def stream(name):
    return np.random.RandomState(zlib.crc32(name.encode()) & 0xFFFFFFFF)


def first_value(name, shape):
    """The first value of the parameter or auxiliary state of this name, the same for everybody."""
    constants = {"bnl_gamma": 0.2, "_gamma": 1.0, "_beta": 0.0}
    for end, value in constants.items():
        if name.endswith(end):
            return np.full(shape, value, np.float32)
    low, high = -1.0, 1.0
    if name.endswith("_moving_var"):
        low, high = 0.5, 1.5
    elif name.endswith("_moving_mean") or name.startswith(("embed_", "lstm_")):
        low, high = -0.1, 0.1
    elif name.endswith("_bias"):
        low, high = -0.05, 0.05
    else:
        fan_in = np.prod(shape[1:]) if len(shape) == 4 else shape[-1]
        high = ((6.0 if len(shape) == 4 else 3.0) / fan_in) ** 0.5
        low = -high
    return stream(name).uniform(low, high, size=shape).astype(np.float32)


def packed_lstm():
    """The vector of MXNet's RNN operator: weights layer by layer, then biases."""
    pieces = []
    for what, shape in (("weight", (4 * HIDDEN, HIDDEN)), ("bias", (4 * HIDDEN,))):
        for layer in range(LAYERS):
            for part in ("i2h", "h2h"):
                pieces.append(first_value(f"lstm_l{layer}_{part}_{what}", shape).ravel())
    return np.concatenate(pieces)


def make_batch(workload, batch, length=None):
    """Data and label, float32."""
    if workload.task == "words":
        length = length or LENGTH
        words = stream(f"tokens{length}").randint(0, WORDS, size=(batch, length + 1)).astype(np.float32)
        return words[:, :-1].copy(), words[:, 1:].copy()
    data = stream(workload.model + ".data").standard_normal((batch,) + workload.sample).astype(np.float32)
    labels = stream(workload.model + ".label")
    if workload.task == "numbers":
        return data, labels.standard_normal(data.shape).astype(np.float32)
    return data, labels.randint(0, workload.classes, size=batch).astype(np.float32)


def loss_of(workload, output, label):
    output = np.asarray(output, np.float64)
    if workload.task == "numbers":
        return float(0.5 * np.mean((output - label) ** 2))
    rows = output.reshape(-1, output.shape[-1])
    return float(-np.mean(np.log(np.maximum(rows[np.arange(len(rows)), label.ravel().astype(np.int64)], 1e-30))))


def figures_of(output):
    output = np.asarray(output, np.float64)
    return {"out_rms": float(np.sqrt(np.mean(output**2))), "out_first": [float(v) for v in output.ravel()[:4]]}


# ---- the command line, the clock, the line -----------------------------------------------------------------------------


def parse(*more):
    """The flags of cohort-bench, and more of one's own: (name, keywords) each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload", required=True, choices=list(WORKLOADS))
    parser.add_argument("--variant", default="")
    parser.add_argument("--mode", choices=("train", "infer"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--started-by", type=float, default=0.0, help="W11: of its own processes")
    parser.add_argument("--priority", type=int, default=0, help="real-time priority of what is timed, as of chrt -f")
    for name, otherwise in (("batch", 0), ("contexts", 1), ("threads", 1), ("steps", 0), ("repeats", 5), ("warmup", -1)):
        parser.add_argument("--" + name, type=int, default=otherwise)
    for name, keywords in more:
        parser.add_argument(name, **keywords)
    args = parser.parse_args()
    workload = WORKLOADS[args.workload]
    args.mode = args.mode or ("infer" if args.workload in ("W6", "W9", "W11") else "train")
    args.variant = args.variant or workload.variants[0]
    if args.variant not in workload.variants:
        parser.error(f"{args.workload} has the variants {', '.join(workload.variants)}")
    args.batch = args.batch or workload.batches[args.mode]
    if not args.steps:
        args.steps = 10 if (args.workload, args.mode, args.batch) == ("W4", "infer", 1) else workload.steps[args.mode]
    if args.quick:
        args.steps, args.repeats = max(1, args.steps // 100), min(args.repeats, 2)
    rounds = len(BUCKETS) if args.variant == "bucket" else 1
    args.steps = max(1, args.steps // rounds) * rounds
    if args.warmup < 0:
        args.warmup = rounds if rounds > 1 else max(2, min(args.steps // 5, 50))
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, processors[: args.threads])
    return args, workload


def hurry(args):
    """Raises the priority of all present threads, and of those they start, over the machine's other work."""
    for thread in os.listdir("/proc/self/task") if args.priority else ():
        os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(args.priority))


def timed(args, step, wait):
    hurry(args)
    for _ in range(args.warmup):
        step()
    wait()
    blocks = []
    for _ in range(args.repeats):
        begin = time.perf_counter()
        for _ in range(args.steps):
            step()
        wait()
        blocks.append((time.perf_counter() - begin) / args.steps * 1e3)
    return blocks


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def tell(peer, config, version, args, blocks, **figures):
    """Prints the line of one measurement."""
    line = {"peer": peer, "config": config, "version": version, "cpus": sorted(os.sched_getaffinity(0)), "rss_mb": round(peak_mb(), 1)}
    for key in ("workload", "variant", "mode", "batch", "contexts", "threads", "steps"):
        line[key] = getattr(args, key)
    middle = statistics.median(blocks)
    line.update(repeats=len(blocks), samples_per_s=round(args.batch / middle * 1e3, 3), load1=round(os.getloadavg()[0], 2))
    line.update(ms_min=round(min(blocks), 5), ms_median=round(middle, 5), ms_max=round(max(blocks), 5))
    line.update(figures)
    print(json.dumps(line), flush=True)


def start_processes(args):
    """W11: runs this program anew, and once before that to warm the page cache; medians of what the processes print."""
    rows = []
    hurry(args)
    for i in range(args.repeats + 1):
        born = time.clock_gettime(time.CLOCK_MONOTONIC)
        text = subprocess.check_output([sys.executable] + sys.argv + ["--started-by", repr(born)])
        if i:
            rows.append([float(word) for word in text.split()])
    names = ("import_ms", "load_ms", "bind_ms", "first_ms", "peak_mb", "library_mb")
    figures = {name: round(statistics.median(row[i + 1] for row in rows), 2) for i, name in enumerate(names)}
    return [row[0] for row in rows], figures


def print_start(args, imported, library_mb, loaded, bound, end):
    print(
        (end - args.started_by) * 1e3,
        (imported - args.started_by) * 1e3,
        (loaded - imported) * 1e3,
        (bound - loaded) * 1e3,
        (end - bound) * 1e3,
        peak_mb(),
        library_mb,
    )


def now():
    return time.clock_gettime(time.CLOCK_MONOTONIC)
