# SPDX-License-Identifier: Apache-2.0
"""Runs cohort-bench and the peers on the same cases, in turn, round after round, and prints how many times faster we are.

    make bench-peers ARGS="--only 'W1 W3' --rounds 2"

A round visits each case once, and in it everybody, one after the other: a drift of the machine meets them all. Lines go
to a file, one each; --from FILE reads such a file in place of running anything. A ratio is the median over the rounds
of a peer's time by ours; of a peer's configurations the one with the best median counts.
"""

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("PEERS_DIR") or os.path.expanduser("~/.cache/cohort-peers")
PLAIN, NAIVE = [], ["--engine", "naive"]
CL, COMPILE = ["--channels-last"], ["--compile"]
FLAT = [PLAIN, COMPILE]  # of networks without images
IMAGES = [PLAIN, CL, COMPILE, CL + COMPILE]

# Workload, flags for everybody, configurations of MXNet's, of PyTorch's; None: it takes no part.
CASES = [
    ("W1", "--mode train", [PLAIN, NAIVE], FLAT),
    ("W1", "--mode infer", [PLAIN, NAIVE], FLAT),
    ("W2", "--mode train", [PLAIN], IMAGES),
    ("W2", "--mode infer", [PLAIN], IMAGES),
    ("W3", "--mode train", [PLAIN], IMAGES),
    ("W3", "--mode train --contexts 2", [PLAIN], [["--processes", "2"]]),
    ("W3", "--mode infer", [PLAIN], IMAGES),
    ("W4", "--mode infer --batch 1", [PLAIN], IMAGES),
    ("W4", "--mode infer --batch 32", [PLAIN], IMAGES),
    ("W4", "--mode train", [PLAIN], IMAGES),
    ("W4", "--mode train --contexts 2", [PLAIN], [["--processes", "2"]]),
    ("W5", "--variant fused --mode train", [PLAIN], FLAT),
    ("W5", "--variant fused --mode infer", [PLAIN], FLAT),
    ("W5", "--variant unroll --mode train", [PLAIN], [PLAIN]),
    ("W5", "--variant bucket --mode train", [PLAIN], FLAT),
    ("W5", "--variant bucket --mode train --contexts 2", [PLAIN], [["--processes", "2"]]),
    ("W6", "--mode infer", [PLAIN], IMAGES),
    ("W7", "--mode train --contexts 1", [PLAIN, NAIVE], FLAT),
    ("W7", "--mode train --contexts 2", [PLAIN, NAIVE], [["--processes", "2"]]),
    ("W7", "--mode train --contexts 4", [PLAIN, NAIVE], [["--processes", "4"]]),
    ("W8", "--mode train", [PLAIN], FLAT),
    ("W8", "--mode train --contexts 2", [PLAIN], [["--processes", "2"]]),
    ("W8", "--mode infer", [PLAIN], FLAT),
    ("W9", "--variant mlp --mode infer", [PLAIN, NAIVE, ["--api", "executor"]], FLAT),
    ("W9", "--variant chain --mode infer", [PLAIN, NAIVE, ["--api", "executor"]], FLAT),
    ("W10", "--mode train --contexts 2", [PLAIN], [PLAIN]),
    ("W11", "--mode infer", [PLAIN], [PLAIN]),
]
# Mixed precision: PyTorch's autocast alone does it, too.
NARROW = ("W3 --mode train", "W3 --mode infer", "W4 --mode train", "W4 --mode infer --batch 32", "W4 --mode infer --batch 1",
          "W5 --variant fused --mode train", "W5 --variant fused --mode infer", "W6 --mode infer",
          "W8 --mode train", "W8 --mode infer")  # fmt: skip

KEY = ("workload", "variant", "mode", "batch", "contexts", "threads")


def fastest(path):
    """(peer, case, precision) -> the flags of the configuration that was fastest in a file, over all numbers of threads."""
    times = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path) as file:
        for line in file:
            told = json.loads(line)
            times[tuple(told["of"])][tuple(told["own"])].append(told["ms_median"])
    return {of: list(min(own, key=lambda flags: statistics.median(own[flags]))) for of, own in times.items()}


def commands(case, threads, args):
    """(what it measures, flags of its configuration, command) of everybody who takes part."""
    workload, flags, mxnet, torch = case
    common = ["--workload", workload, *flags.split(), "--threads", str(threads)] + (["--quick"] if args.quick else [])
    common += ["--repeats", str(args.repeats)]
    hurry = ["--priority", str(args.priority)] if args.priority else []
    name = " ".join((workload, flags))
    chosen = args.peers.split()
    best_of = fastest(args.best_of) if args.best_of else {}
    for precision in args.precisions.split():
        bf16 = precision == "bfloat16"
        if bf16 and name not in NARROW:
            continue
        if "cohort" in chosen:
            own = ["--compute-dtype", "bfloat16"] if bf16 else []
            yield ("cohort", name, precision), own, (["chrt", "-f", str(args.priority)] if args.priority else []) + [args.bench, *common, *own]
        for peer, configurations in (("mxnet", [] if bf16 else mxnet), ("torch", torch)):
            if peer not in chosen:
                continue
            of = (peer, name, precision)
            configurations = [own + (["--autocast"] if bf16 else []) for own in configurations]
            if args.best_of:
                configurations = [best_of[of]] if of in best_of else []
            python, program = os.path.join(CACHE, peer, "bin/python"), os.path.join(FOLDER, peer + "_peer.py")
            for own in configurations[:1] if args.lean else configurations:
                yield of, own, [python, program, *common, *hurry, *own]


def run(args):
    failures = 0
    begin = time.time()
    with open(args.out, "w") as out:
        for round_number in range(args.rounds):
            for threads in args.threads.split():
                for case in CASES:
                    if args.only and case[0] not in args.only.split():
                        continue
                    for of, own, command in commands(case, threads, args):
                        try:
                            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=args.limit)
                            lines = [line for line in done.stdout.decode().splitlines() if line.startswith("{")]
                            problem = "" if done.returncode == 0 and lines else done.stderr.decode().strip()[-300:] or "no line"
                        except (OSError, subprocess.TimeoutExpired) as error:
                            lines, problem = [], str(error)
                        if problem:
                            failures += 1
                            print(f"FAILED {' '.join(command)}: {problem}", file=sys.stderr)
                        for line in lines:
                            told = json.loads(line)
                            told.update(round=round_number, of=of, own=own)
                            out.write(json.dumps(told) + "\n")
                            out.flush()
                            what = " ".join(str(told[key]) for key in KEY)
                            print(f"{time.time() - begin:6.0f} s  {what}: {told['peer']} {told['config']} {told['ms_median']} ms", file=sys.stderr)
    return failures


def read(path):
    """case -> (peer, config) -> its lines."""
    cases = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path) as file:
        for line in file:
            told = json.loads(line)
            cases[tuple(told[key] for key in KEY)][told["peer"], told["config"]].append(told)
    return cases


def median_of(lines):
    return statistics.median(line["ms_median"] for line in lines)


def best(peers, name):
    """(config, lines) of a peer's best configuration; None: it took no part."""
    found = [(config, lines) for (peer, config), lines in peers.items() if peer == name]
    return min(found, key=lambda entry: median_of(entry[1])) if found else None


def span(values, pattern="%.4g"):
    middle = pattern % statistics.median(values)
    return middle if len(values) == 1 else f"{middle} ({pattern % min(values)} to {pattern % max(values)})"


def ratios(ours, theirs):
    """By round: their time by ours."""
    by_round = {line.get("round", 0): line["ms_median"] for line in ours}
    return [line["ms_median"] / by_round[line.get("round", 0)] for line in theirs if line.get("round", 0) in by_round]


def agrees(peers):
    """The largest difference of losses or outputs from ours, relative."""
    ours = best(peers, "cohort")
    found = []
    for lines in peers.values():
        mine, other = (ours[1][0].get("check") if ours else None), lines[0].get("check")
        if not mine or not other or mine is other:
            continue
        pairs = zip(mine["loss"], other["loss"]) if "loss" in mine else [(mine["out_rms"], other["out_rms"])]
        found.append(max(abs(a - b) / max(abs(b), 1e-12) for a, b in pairs))
    return max(found) if found else None


def order(case):
    return int(case[0][1:]), case[1:5], case[5]


def case_name(case):
    workload, variant, mode, batch, contexts, threads = case
    words = [workload, variant, mode, f"batch {batch}", f"{contexts} contexts" if contexts > 1 else ""]
    return " ".join(word for word in words if word)


def rows_of(cases):
    rows = []
    for case in sorted(cases, key=order):
        peers = cases[case]
        ours = best(peers, "cohort")
        if not ours:
            continue
        row = {"case": case_name(case), "threads": case[5], "cohort": [line["ms_median"] for line in ours[1]], "differs": agrees(peers)}
        for name in ("mxnet", "torch"):
            theirs = best(peers, name)
            row[name] = theirs and {
                "config": theirs[0],
                "ms": [line["ms_median"] for line in theirs[1]],
                "ratio": ratios(ours[1], theirs[1]),
            }
        rows.append(row)
    return rows


def table(rows):
    lines = ["| workload | threads | Cohort, ms | MXNet, ms | PyTorch, ms | its best | MXNet by Cohort | PyTorch by Cohort | differs |"]
    lines.append("|" + "---|" * 9)
    for row in rows:
        mx, torch = row["mxnet"], row["torch"]
        cells = [row["case"], str(row["threads"]), span(row["cohort"])]
        cells += [span(mx["ms"]) if mx else "", span(torch["ms"]) if torch else "", torch["config"] if torch else ""]
        cells += [span(peer["ratio"], "%.2f") if peer and peer["ratio"] else "" for peer in (mx, torch)]
        cells.append("" if row["differs"] is None else f"{row['differs']:.0e}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/cohort-bench")
    parser.add_argument("--only", default="", help="workloads, such as 'W1 W3'")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3, help="timed blocks of a run")
    parser.add_argument("--threads", default="1 2")
    parser.add_argument("--peers", default="cohort mxnet torch")
    parser.add_argument("--precisions", default="float32 bfloat16")
    parser.add_argument("--lean", action="store_true", help="of each peer the first configuration alone")
    parser.add_argument("--best-of", default="", metavar="FILE", help="of each peer the configuration alone that was fastest in these lines")
    parser.add_argument("--priority", type=int, default=0, help="real-time priority of what is timed: whatever else runs has to wait")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the steps: does it run?")
    parser.add_argument("--limit", type=int, default=900, help="seconds a run may take")
    parser.add_argument("--out", default="", help="where the lines go")
    parser.add_argument("--from", dest="source", default="", help="lines of an earlier run")
    parser.add_argument("--chart", default="", help="an SVG to write")
    args = parser.parse_args()
    failures = 0
    if not args.source:
        args.out = args.out or time.strftime("build/peers-%Y%m%d-%H%M%S.jsonl")
        os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
        failures = run(args)
        print(f"lines: {args.out}", file=sys.stderr)
    rows = rows_of(read(args.source or args.out))
    print(table(rows))
    if args.chart:
        import chart

        with open(args.chart, "w") as file:
            file.write(chart.draw(rows))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
