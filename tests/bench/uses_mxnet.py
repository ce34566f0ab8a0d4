#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory and time of training where one value is read K times, beside MXNet 1.9.1.

    python uses_mxnet.py --engine cohort|mxnet [--library build/libcohort.so] [--uses 1,2,8,64] [--only NAME,...]

Prints a line for each case and K: planned MiB (MXNet: what it says is allocated, without workspaces) and the smallest time
of a step in ms. The value takes 1 MiB in float32, all other values together far less.
"""
import argparse
import os
import re
import sys
import time

BINDING = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'bindings', 'python', 'src')


def chain(sym, uses, step):
    """tanh(step(h, w)) `uses` times."""
    h, w = sym.Variable('h'), sym.Variable('w')
    for k in range(uses):
        h = sym.tanh(step(h, w, k))
    return sym.MakeLoss(h)


def fully_connected(sym, uses):
    return chain(sym, uses, lambda h, w, k: sym.FullyConnected(h, weight=w, no_bias=True, num_hidden=512)), {
        'h': (4, 512), 'w': (512, 512)}


def dot(sym, uses):
    return chain(sym, uses, lambda h, w, k: sym.dot(h, w)), {'h': (4, 512), 'w': (512, 512)}


def batch_dot(sym, uses):
    return chain(sym, uses, lambda h, w, k: sym.batch_dot(h, w)), {'h': (4, 2, 256), 'w': (4, 256, 256)}


def convolution(sym, uses):
    def step(h, w, k):
        return sym.Convolution(h, weight=w, no_bias=True, num_filter=128, kernel=(4, 4), pad=(2, 2), stride=(1, 1))

    def cut(h, w, k):
        return sym.slice(step(h, w, k), begin=(0, 0, 0, 0), end=(2, 128, 4, 4))
    return chain(sym, uses, cut), {'h': (2, 128, 4, 4), 'w': (128, 128, 4, 4)}


def embedding(sym, uses):
    rows = sym.Variable('rows')

    def step(h, w, k):
        return h + sym.Embedding(rows, weight=w, input_dim=2048, output_dim=128)
    return chain(sym, uses, step), {'h': (8, 128), 'w': (2048, 128), 'rows': (8,)}


def broadcast_mul(sym, uses):
    def step(h, w, k):
        return sym.sum(sym.broadcast_mul(h, w), axis=1, keepdims=True) * 0.01
    return chain(sym, uses, step), {'h': (512, 1), 'w': (512, 512)}


def fan_out(sym, uses):
    value, parts = sym.exp(sym.Variable('w')), []
    for k in range(uses):
        parts.append(sym.sum(value * (k + 1.0)))
    return sym.MakeLoss(sym.add_n(*parts)), {'w': (512, 512)}


CASES = [fully_connected, dot, batch_dot, convolution, embedding, broadcast_mul, fan_out]


def measure(engine, library, build, uses, options, grad_req):
    symbol, shapes = build(library.sym, uses)
    reqs = {name: grad_req if name == 'w' else 'null' for name in symbol.list_arguments()}
    executor = symbol.simple_bind(ctx=library.cpu(), grad_req=reqs, **options, **shapes)
    for name, array in executor.arg_dict.items():
        array[:] = 0.01
    if engine == 'mxnet':
        planned = int(re.search(r'Total (\d+) MB allocated', executor.debug_str()).group(1))
    else:
        planned = executor.memory()['planned_bytes'] / 2**20

    def step():
        executor.forward(is_train=True)
        executor.backward()
        executor.grad_dict['w'].wait_to_read()

    times, end = [], time.perf_counter() + 1
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return planned, min(times) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--engine', choices=['cohort', 'mxnet'], default='cohort')
    parser.add_argument('--library')
    parser.add_argument('--uses', default='1,2,8,64')
    parser.add_argument('--only', default='')
    parser.add_argument('--compute', help='compute_dtype')
    parser.add_argument('--grad-req', default='write')
    given = parser.parse_args()
    if given.engine == 'mxnet':
        import mxnet as library
    else:
        if given.library:
            os.environ['COHORT_LIB'] = os.path.abspath(given.library)
        sys.path.insert(0, BINDING)
        import cohort as library
    options = {'compute_dtype': given.compute} if given.compute else {}
    for build in CASES:
        if given.only and build.__name__ not in given.only.split(','):
            continue
        for uses in map(int, given.uses.split(',')):
            planned, ms = measure(given.engine, library, build, uses, options, given.grad_req)
            print('%s %d uses: %.2f MiB, %.3f ms' % (build.__name__, uses, planned, ms), flush=True)


main()
