#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of W12: the same operators applied at once by MXNet 1.9.1, in turn with cohort-bench.

    OMP_NUM_THREADS=1 taskset -c 0 python applied_mxnet.py build/cohort-bench [--rounds N]

Prints the smallest and the median time of both, by operator of the chain and for the sum of 16 MiB, and the ratios of the
smallest. A round is a block of each program's, one after the other.
"""
import argparse
import json
import statistics
import subprocess
import time

import mxnet as mx

OPERATORS = 1000
ELEMENTS = 4 << 20


def chain(start):
    at = start
    for _ in range(OPERATORS // 2):
        at = mx.nd.relu(at + 0.01)
    at.wait_to_read()
    return at


def add(left, right, out):
    mx.nd.elemwise_add(left, right, out=out)
    out.wait_to_read()


def smallest_ms(step, repeats=10):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('bench', help='the program cohort-bench')
    parser.add_argument('--rounds', type=int, default=10)
    options = parser.parse_args()
    start = mx.nd.array([i / 16 - 1 for i in range(32)])
    arrays = [mx.nd.ones(ELEMENTS) for _ in range(3)]
    found = {'chain': {'mxnet': [], 'cohort': []}, 'add': {'mxnet': [], 'cohort': []}}
    for _ in range(options.rounds):
        found['chain']['mxnet'].append(smallest_ms(lambda: chain(start)) * 1e3 / OPERATORS)
        found['add']['mxnet'].append(smallest_ms(lambda: add(*arrays)))
        line = json.loads(subprocess.check_output([options.bench, '--workload', 'W12', '--steps', '1', '--repeats', '10']))
        found['chain']['cohort'].append(line['us_per_operator']['min'])
        found['add']['cohort'].append(line['add_16_mib']['ms_min'])
    values = chain(start).asnumpy()
    for key, mine in (('first', values[0]), ('last', values[-1])):
        assert abs(line['check'][key] - mine) < 1e-3, 'the chains differ: %r, %r' % (line['check'], values)
    for part, unit in (('chain', 'us an operator'), ('add', 'ms')):
        mxnet, cohort = found[part]['mxnet'], found[part]['cohort']
        print('%s, %s: MXNet %.3f (median %.3f), Cohort %.3f (median %.3f), Cohort / MXNet %.3f' % (
            part, unit, min(mxnet), statistics.median(mxnet), min(cohort), statistics.median(cohort), min(cohort) / min(mxnet)))


if __name__ == '__main__':
    main()
