#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators bound by memory beside a copy, and orders of elements beside NumPy's best.

    OMP_NUM_THREADS=1 taskset -c 0 python operators_numpy.py build/libcohort.so [--rounds N] [--only TEXT]

Operators work on arrays of 16 MiB into one that is there. Their bytes, read and written, by second are compared with those
of two copies in the same round, by as many threads (OMP_NUM_THREADS): of 16 MiB, which may stay in a cache, and of 256 MiB,
which go through the memory as STREAM's do. Sorts are compared with whatever of NumPy's
functions gives the same fastest. Prints the smallest times of all rounds, milliseconds, and the ratio.
"""
import argparse
import concurrent.futures
import os
import statistics
import sys
import time

import numpy as np

ROWS, COLUMNS = 2048, 2048  # 16 MiB of float32


def operators(nd, random):
    """Name, call, bytes read and written."""
    def array(*shape, low=-1.0):
        return nd.array(random.uniform(low, 1, shape).astype('float32'))

    x, y, positive = array(ROWS, COLUMNS), array(ROWS, COLUMNS), array(ROWS, COLUMNS, low=0.1)
    row, out = array(1, COLUMNS), nd.zeros((ROWS, COLUMNS))
    whole, of_rows, of_columns = nd.zeros((1,)), nd.zeros((ROWS,)), nd.zeros((COLUMNS,))
    size = 4 * ROWS * COLUMNS
    one = lambda op, of=x, **attrs: (lambda: getattr(nd, op)(of, out=out, **attrs))
    yield 'relu', one('relu'), 2 * size
    yield 'sigmoid', one('sigmoid'), 2 * size
    yield 'tanh', one('tanh'), 2 * size
    yield 'exp', one('exp'), 2 * size
    yield 'log', one('log', positive), 2 * size
    yield 'sqrt', one('sqrt', positive), 2 * size
    yield '_mul_scalar', one('_mul_scalar', scalar=1.5), 2 * size
    yield 'clip', one('clip', a_min=-0.5, a_max=0.5), 2 * size
    yield 'elemwise_add', lambda: nd.elemwise_add(x, y, out=out), 3 * size
    yield 'elemwise_mul', lambda: nd.elemwise_mul(x, y, out=out), 3 * size
    yield 'broadcast_add of a row', lambda: nd.broadcast_add(x, row, out=out), 2 * size
    yield 'softmax of rows', one('softmax'), 2 * size
    yield 'sum', lambda: nd.sum(x, out=whole), size
    yield 'sum of rows', lambda: nd.sum(x, axis=1, out=of_rows), size
    yield 'sum of columns', lambda: nd.sum(x, axis=0, out=of_columns), size
    yield 'mean of rows', lambda: nd.mean(x, axis=1, out=of_rows), size
    yield 'max of rows', lambda: nd.max(x, axis=1, out=of_rows), size
    yield 'norm', lambda: nd.norm(x, out=whole), size
    yield 'argmax of rows', lambda: nd.argmax(x, axis=1, out=of_rows), size


def orders(nd, random):
    """Name, call, the calls of NumPy's that give the same."""
    for shape in ((1000000,), (1000, 1000)):
        values = random.randn(*shape).astype('float32')
        x, many, some = nd.array(values), nd.zeros(shape), nd.zeros(shape[:-1] + (10,))
        name = ' x '.join(str(length) for length in shape)
        yield 'sort, ' + name, lambda: nd.sort(x, out=many), [lambda: np.sort(values)]
        yield 'argsort, ' + name, lambda: nd.argsort(x, out=many), [
            lambda: np.argsort(values), lambda: np.argsort(values, kind='stable')]
        yield 'topk 10 values, ' + name, lambda: nd.topk(x, k=10, ret_typ='value', out=some), [
            lambda: np.sort(np.partition(values, shape[-1] - 10)[..., -10:])]

        def best_indices():
            found = np.argpartition(values, shape[-1] - 10)[..., -10:]
            of_them = np.take_along_axis(values, found, -1)
            return np.take_along_axis(found, np.argsort(of_them), -1)

        yield 'topk 10 indices, ' + name, lambda: nd.topk(x, k=10, out=some), [best_indices]
        yield 'topk a tenth, ' + name, lambda: nd.topk(x, k=shape[-1] // 10, ret_typ='value'), [
            lambda: np.sort(np.partition(values, shape[-1] - shape[-1] // 10)[..., -(shape[-1] // 10):])]


def smallest_ms(call, seconds=0.1):
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def copy_in_threads(threads, mebibytes):
    """A copy, each thread a piece."""
    source, target = np.ones(mebibytes << 18, 'float32'), np.empty(mebibytes << 18, 'float32')
    pool = concurrent.futures.ThreadPoolExecutor(threads)
    pieces = list(zip(np.array_split(target, threads), np.array_split(source, threads)))
    if threads == 1:
        return lambda: np.copyto(target, source)
    return lambda: list(pool.map(lambda piece: np.copyto(*piece), pieces))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('library')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--only', default='', help='part of a name')
    options = parser.parse_args()
    threads = int(os.environ.get('OMP_NUM_THREADS', 1))
    os.environ['COHORT_LIB'] = os.path.abspath(options.library)
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'bindings', 'python', 'src'))
    from cohort import nd

    def settled(call):
        def run():
            result = call()
            (result[0] if isinstance(result, list) else result).wait_to_read()

        return run

    random, copies = np.random.RandomState(1), [(size, copy_in_threads(threads, size)) for size in (16, 256)]
    print('NumPy %s, %d threads\n| | Cohort, ms | GB/s | copy of 16 MiB, GB/s | ratio | of 256 MiB | ratio |\n|---|---|---|---|---|---|---|' %
          (np.__version__, threads))
    for name, call, moved in operators(nd, random):
        if options.only not in name:
            continue
        rounds = [[smallest_ms(settled(call))] + [smallest_ms(copy) for _, copy in copies] for _ in range(options.rounds)]
        ours, *copied = (min(times) for times in zip(*rounds))
        speed = moved / ours / 1e6
        speeds = [(size << 21) / ms / 1e6 for (size, _), ms in zip(copies, copied)]
        print('| %s | %.2f (%.2f) | %.1f | %s |' %
              (name, ours, statistics.median(times[0] for times in rounds), speed,
               ' | '.join('%.1f | %.2f' % (copy_speed, speed / copy_speed) for copy_speed in speeds)), flush=True)
    print('\n| | Cohort, ms | NumPy, ms | ratio |\n|---|---|---|---|')
    for name, call, peers in orders(nd, random):
        if options.only not in name:
            continue
        rounds = [(smallest_ms(settled(call)), min(smallest_ms(peer) for peer in peers)) for _ in range(options.rounds)]
        ours, theirs = (min(times) for times in zip(*rounds))
        print('| %s | %.3g (%.3g) | %.3g | %.2f |' %
              (name, ours, statistics.median(times[0] for times in rounds), theirs, theirs / ours), flush=True)


if __name__ == '__main__':
    main()
