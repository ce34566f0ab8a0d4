#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole models beside MXNet 1.9.1: time from the symbol file to the first answer, time of a step, memory.

    python models_mxnet.py --library build/libcohort.so [--rounds N] [--only NAME,...] FOLDER

FOLDER holds one folder for each model, with symbol.json and model.json as in tests/golden/models. MXNet and NumPy must be
there for this Python. Each engine runs a model in a process of its own, by turns; parameters are drawn from the same seed,
and the outputs of both are compared. Prints a table: MXNet / Cohort of the smallest times, and bytes of both.
"""
import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time

BINDING = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'bindings', 'python', 'src')
SECONDS = 0.3  # of steps, in each round


def draw(model):
    """Arrays by name: what model.json says of their size, from one seed."""
    import numpy as np

    random = np.random.RandomState(model['seed'] % (1 << 32))
    arrays = {}
    for item in model['params']:
        scale, offset = (item.get('eval_' + key, item[key]) for key in ('scale', 'offset'))
        arrays[item['name']] = (offset + scale * (random.rand(*item['shape']) - 0.5)).astype('float32')
    for item in model['inputs']:
        fill, shape = item['fill'], item['shape']
        if fill['kind'] == 'int':
            values = random.randint(fill['lo'], fill['hi'], shape)
        elif 'values' in fill:
            values = np.array(fill['values']).reshape(shape)
        elif 'value' in fill:
            values = np.full(shape, fill['value'])
        else:
            values = fill['offset'] + fill['scale'] * (random.rand(*shape) - 0.5)
        arrays[item['name']] = np.asarray(values, 'float32')
    return arrays


def smallest_ms(step):
    """After two steps that warm up: of as many as fit, at least three."""
    step(), step()
    times, end = [], time.perf_counter() + SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def planned_bytes(engine, executor):
    """Bytes of the values between inputs and outputs, without and with workspaces; MXNet does not report workspaces."""
    if engine == 'mxnet':
        values = int(re.search(r'Total (\d+) MB allocated', executor.debug_str()).group(1)) << 20
        return values, values
    memory = executor.memory()
    return memory['value_bytes'], memory['planned_bytes']


def run(engine, folder, mode):
    """One line of JSON: what this engine does with one model."""
    if engine == 'mxnet':
        import mxnet as library
    else:
        sys.path.insert(0, BINDING)
        import cohort as library
    with open(os.path.join(folder, 'model.json')) as file:
        model = json.load(file)
    name = 'symbol.json' if mode == 'eval' else model.get('train_symbol', model['symbol'])
    arrays = draw(model)
    shapes = {item['name']: tuple(item['shape']) for item in model['inputs']}
    train = mode == 'train'
    start = time.perf_counter()
    network = (library.sym if engine == 'mxnet' else library.symbol).load(os.path.join(folder, name))
    wanted = {key: 'write' for key in network.list_arguments()}
    wanted.update((item['name'], 'write' if item['grad'] else 'null') for item in model['inputs'] if item['name'] in wanted)
    shapes = {key: shape for key, shape in shapes.items() if key in wanted}
    executor = network.simple_bind(library.cpu(), grad_req=wanted if train else 'null', **shapes)
    for values in (executor.arg_dict, executor.aux_dict):
        for key, array in values.items():
            array[:] = arrays[key]
    head = [library.nd.ones(item['shape']) for item in model['outputs']] if model.get('head_grads') else None

    def step():
        executor.forward(is_train=train)
        if train:
            executor.backward(head) if head else executor.backward()
            for array in executor.grad_arrays:
                if array is not None:
                    array.wait_to_read()
        for output in executor.outputs:
            output.wait_to_read()

    step()
    first = time.perf_counter() - start
    outputs = [float(abs(output.asnumpy()).sum()) for output in executor.outputs]
    values, planned = planned_bytes(engine, executor)
    print(json.dumps({'first_ms': first * 1e3, 'step_ms': smallest_ms(step), 'values': values, 'planned': planned, 'outputs': outputs,
                      'resident': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10}))


def measured(engine, folder, mode, options):
    environment = dict(os.environ, COHORT_LIB=os.path.abspath(options.library), MXNET_SUBGRAPH_BACKEND='MKLDNN')
    command = [sys.executable, os.path.abspath(__file__), '--engine', engine, '--mode', mode, folder]
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE,
                                     stderr=None if options.verbose else subprocess.DEVNULL).stdout)


def best(found, key):
    return min(item[key] for item in found)


def compare(folder, mode, options):
    found = {'mxnet': [], 'cohort': []}
    for _ in range(options.rounds):
        for engine, lines in found.items():
            lines.append(measured(engine, folder, mode, options))
    mxnet, cohort = found['mxnet'], found['cohort']
    cells = [os.path.basename(folder), mode]
    for key, number in (('first_ms', '%.2f'), ('step_ms', '%.4f')):
        cells += [number % best(cohort, key), number % best(mxnet, key), '%.2f' % (best(mxnet, key) / best(cohort, key))]
    cells += ['%.1f' % (best(cohort, 'planned') / 1e6)]
    for key in ('values', 'resident'):
        cells += ['%.1f' % (best(lines, key) / 1e6) for lines in (cohort, mxnet)]
    apart = max(abs(a - b) / (abs(b) + 1e-3) for a, b in zip(cohort[0]['outputs'], mxnet[0]['outputs']))
    print('| ' + ' | '.join(cells) + ' | %.0e |' % apart, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--library', default='build/libcohort.so')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--only', default='', help='names of models, separated by commas')
    parser.add_argument('--verbose', action='store_true', help='what the engines write to standard error, too')
    parser.add_argument('--engine', help=argparse.SUPPRESS)
    parser.add_argument('--mode', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        return run(options.engine, options.folder, options.mode)
    print('| model | mode | first answer, ms | MXNet | ratio | step, ms | MXNet | ratio | all planned, MB | values | MXNet | resident, MB | MXNet | apart |')
    print('|' + '---|' * 14)
    for name in options.only.split(',') if options.only else sorted(os.listdir(options.folder)):
        folder = os.path.join(options.folder, name)
        if not os.path.exists(os.path.join(folder, 'model.json')):
            continue
        with open(os.path.join(folder, 'model.json')) as file:
            modes = json.load(file)['modes']
        for mode in modes:
            compare(folder, mode, options)


if __name__ == '__main__':
    main()
