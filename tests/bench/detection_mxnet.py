#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of object detection at the sizes of usual networks, bound alone, against MXNet 1.9.1.

    OMP_NUM_THREADS=1 taskset -c 0 python detection_mxnet.py build/libcohort.so [--rounds N] [--only TEXT]

Each round runs a process of each library, one after the other, on the same numbers; outputs and gradients agree, or the
script ends with an error. Prints the smallest and the median time of both in milliseconds a step, and the ratio of the
smallest, MXNet's by ours.
"""
import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import time

import numpy as np


def corners(rng, count, side):
    center, sides = rng.uniform(0, 1, (count, 2)), rng.uniform(.05, 1, (count, 2)) * side
    return np.concatenate([center - sides / 2, center + sides / 2], 1)


def objects(rng, batch, most, classes):
    label = -np.ones((batch, most, 5))
    for sample in label:
        count = rng.randint(1, 12)
        sample[:count, 0] = rng.randint(0, classes, count)
        sample[:count, 1:] = corners(rng, count, .6)
    return label


def probabilities(rng, shape, spread):
    e = np.exp(rng.uniform(-spread, spread, shape))
    return e / e.sum(1, keepdims=True)


def regions(rng, count, batch, height, width):
    boxes = corners(rng, count, .5) * [width, height, width, height]
    return np.concatenate([rng.randint(0, batch, (count, 1)), np.clip(boxes, 0, None)], 1)


def cases():
    """Name: (operator, attributes, inputs in order, whether it goes back)."""
    rng = np.random.RandomState(5)
    anchors = corners(rng, 8732, .4)[None]
    ssd = {'cls_prob': probabilities(rng, (8, 21, 8732), 4), 'loc_pred': rng.uniform(-1, 1, (8, 4 * 8732)),
           'anchor': anchors}
    boxes = np.concatenate([rng.randint(0, 20, (6000, 1)), rng.uniform(0, 1, (6000, 1)), corners(rng, 6000, .4)], 1)
    features = rng.uniform(-1, 1, (2, 256, 50, 64))
    images = rng.uniform(-1, 1, (2, 128, 38, 38))
    offsets = rng.uniform(-2, 2, (2, 18, 38, 38))
    filters = {'weight': rng.uniform(-.1, .1, (128, 128, 3, 3)), 'bias': rng.uniform(-1, 1, 128)}
    convolution = {'kernel': (3, 3), 'pad': (1, 1), 'num_filter': 128}
    rois = regions(rng, 512, 2, 50, 64)
    return {
        'MultiBoxTarget, SSD300, 32 samples': ('_contrib_MultiBoxTarget', {
            'negative_mining_ratio': 3, 'negative_mining_thresh': .5, 'overlap_threshold': .5}, {
            'anchor': anchors, 'label': objects(rng, 32, 58, 20), 'cls_pred': rng.uniform(-3, 3, (32, 21, 8732))}, False),
        'MultiBoxDetection, SSD300, 8 samples, topk 400': ('_contrib_MultiBoxDetection', {
            'nms_threshold': .45, 'nms_topk': 400}, ssd, False),
        'MultiBoxDetection, SSD300, 8 samples': ('_contrib_MultiBoxDetection', {
            'nms_threshold': .45, 'threshold': .3}, ssd, False),
        'box_nms, 6000 boxes': ('_contrib_box_nms', {'overlap_thresh': .7}, {'data': boxes}, False),
        'box_nms, 6000 boxes of 20 classes': ('_contrib_box_nms', {'overlap_thresh': .45, 'id_index': 0},
                                              {'data': boxes}, False),
        'Proposal, 6000 of 38400 boxes, 300 kept': ('_contrib_Proposal', {}, {
            'cls_prob': rng.uniform(0, 1, (1, 24, 50, 64)), 'bbox_pred': rng.uniform(-.3, .3, (1, 48, 50, 64)),
            'im_info': np.array([[800, 1024, 1]])}, False),
        'ROIAlign, 512 regions, 256 channels': ('_contrib_ROIAlign', {
            'pooled_size': (7, 7), 'spatial_scale': 1, 'sample_ratio': 2}, {'data': features, 'rois': rois}, False),
        'ROIAlign and back': ('_contrib_ROIAlign', {
            'pooled_size': (7, 7), 'spatial_scale': 1, 'sample_ratio': 2}, {'data': features, 'rois': rois}, True),
        'PSROIPooling and back, 128 regions': ('_contrib_PSROIPooling', {
            'spatial_scale': 1, 'output_dim': 21, 'pooled_size': 7}, {
            'data': rng.uniform(-1, 1, (1, 1029, 38, 50)), 'rois': regions(rng, 128, 1, 38, 50)}, True),
        'DeformableConvolution, 128 to 128 channels': ('_contrib_DeformableConvolution', convolution,
                                                       {'data': images, 'offset': offsets, **filters}, False),
        'DeformableConvolution and back': ('_contrib_DeformableConvolution', convolution,
                                           {'data': images, 'offset': offsets, **filters}, True),
    }


FIXED = ('rois', 'im_info', 'anchor', 'label')  # inputs without gradient


class Cohort:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.cohort_error_message.restype = ctypes.c_char_p

    def __call__(self, name, *args):
        function = getattr(self.lib, 'cohort_' + name)
        function.restype = ctypes.c_void_p
        error = function(*args)
        if error:
            sys.exit(self.lib.cohort_error_message(ctypes.c_void_p(error)).decode())

    def make(self, name, *args):
        handle = ctypes.c_void_p()
        self(name, *args, ctypes.byref(handle))
        return handle

    def array(self, values):
        values = np.ascontiguousarray(values, dtype='float32')
        shape = (ctypes.c_int64 * values.ndim)(*values.shape)
        return self.make('ndarray_from_host', values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(values.nbytes),
                         shape, ctypes.c_int32(values.ndim), ctypes.c_int32(0), None)

    def read(self, array):
        size = ctypes.c_size_t()
        self('ndarray_bytes', array, ctypes.byref(size))
        values = np.empty(size.value // 4, dtype='float32')
        self('ndarray_read', array, values.ctypes.data_as(ctypes.c_void_p), size)
        return values

    def bind(self, op, attrs, inputs, back):
        texts = [[str(k).encode() for k in attrs], [str(v).encode() for v in attrs.values()]]
        keys, values = ((ctypes.c_char_p * len(t))(*t) for t in texts)
        symbol = self.make('symbol_create', op.encode(), b'it', keys, values, ctypes.c_size_t(len(attrs)), None, None,
                           ctypes.c_size_t(0))
        count = ctypes.c_size_t(len(inputs))
        pointers = ctypes.c_void_p * len(inputs)
        arrays = pointers(*[self.array(v).value for v in inputs.values()])
        wanted = [back and k not in FIXED for k in inputs]
        grads = pointers(*[self.array(np.zeros(v.shape)).value if w else None for v, w in zip(inputs.values(), wanted)])
        codes = (ctypes.c_int32 * len(inputs))(*[1 if w else 0 for w in wanted])
        context = (ctypes.c_int32 * 2)(1, 0)
        executor = self.make('executor_bind', symbol, context, arrays, count, grads, codes, None, ctypes.c_size_t(0), None)
        output = self.make('executor_array', executor, ctypes.c_int32(OUTPUTS), ctypes.c_size_t(0))
        size = ctypes.c_size_t()
        self('ndarray_bytes', output, ctypes.byref(size))
        shape, axes = (ctypes.c_int64 * 32)(), ctypes.c_int32()
        self('ndarray_shape', output, shape, ctypes.c_size_t(32), ctypes.byref(axes))
        head = pointers(self.array(np.ones([shape[i] for i in range(axes.value)])).value)

        def step():
            self('executor_forward', executor, ctypes.c_int32(1 if back else 0))
            if back:
                self('executor_backward', executor, head, ctypes.c_size_t(1), ctypes.c_int32(1))
            self('executor_wait', executor)

        def results():
            return [self.read(output)] + [self.read(ctypes.c_void_p(g)) for g in grads if g]

        return step, results


OUTPUTS = 3  # COHORT_EXECUTOR_OUTPUTS


class MXNet:
    def bind(self, op, attrs, inputs, back):
        import mxnet as mx
        make = getattr(mx.sym.contrib, op.replace('_contrib_', ''))
        symbol = make(**{k: mx.sym.Variable(k) for k in inputs}, **attrs)
        wanted = {k: 'write' if back and k not in FIXED else 'null' for k in inputs}
        args = {k: mx.nd.array(v) for k, v in inputs.items()}
        grads = {k: mx.nd.zeros(v.shape) for k, v in inputs.items() if wanted[k] == 'write'}
        executor = symbol.bind(mx.cpu(), args, grads, wanted)
        head = mx.nd.ones(executor.outputs[0].shape)

        def step():
            executor.forward(is_train=back)
            if back:
                executor.backward([head])
            mx.nd.waitall()

        def results():
            return [executor.outputs[0].asnumpy()] + [grads[k].asnumpy() for k in inputs if k in grads]

        return step, results


def measure(library, only):
    found = {}
    for name, (op, attrs, inputs, back) in cases().items():
        if only not in name:
            continue
        step, results = library.bind(op, attrs, inputs, back)
        step()
        times = []
        until = time.perf_counter() + 1
        while len(times) < 3 or (time.perf_counter() < until and len(times) < 50):
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        sums = [float(np.sqrt(np.square(r.astype('float64')).sum())) for r in results()]
        found[name] = {'ms': min(times) * 1e3, 'norms': sums}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('library', help='libcohort.so')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--only', default='', help='cases whose name holds this text')
    parser.add_argument('--role', choices=('cohort', 'mxnet'), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        library = Cohort(options.library) if options.role == 'cohort' else MXNet()
        print(json.dumps(measure(library, options.only)))
        return
    times = {}
    for _ in range(options.rounds):
        rounds = {}
        for role in ('cohort', 'mxnet'):
            text = subprocess.check_output([sys.executable, __file__, options.library, '--role', role,
                                            '--only', options.only], stderr=subprocess.DEVNULL)
            rounds[role] = json.loads(text.splitlines()[-1])
        for name, ours in rounds['cohort'].items():
            theirs = rounds['mxnet'][name]
            assert np.allclose(ours['norms'], theirs['norms'], rtol=1e-4), (name, ours, theirs)
            for role, found in (('cohort', ours), ('mxnet', theirs)):
                times.setdefault(name, {'cohort': [], 'mxnet': []})[role].append(found['ms'])
    for name, both in times.items():
        ours, theirs = both['cohort'], both['mxnet']
        print('| %s | %.3g (%.3g) | %.3g (%.3g) | %.2f |' % (
            name, min(ours), statistics.median(ours), min(theirs), statistics.median(theirs), min(theirs) / min(ours)))


if __name__ == '__main__':
    main()
