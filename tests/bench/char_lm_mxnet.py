#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of examples/char_lm: the same text, batches, network and settings with MXNet 1.9.1's BucketingModule.

    python char_lm_mxnet.py [--mode stream|lines] [--epochs N] [--layers N] [--hidden N] [--batch N] [--lr RATE] [--seed N]

Batches are the same to the last character, in the same order; first weights are drawn alike, not the same. Prints the
perplexities after each epoch as char_lm does.
"""
import argparse
import time

import mxnet as mx
import numpy as np

HELD_OUT_OF = 10
MASK = (1 << 64) - 1


class Random:
    """splitmix64, as examples/support/program.c has it."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return (z ^ (z >> 31)) % limit


def load_text(path):
    with open(path, 'rb') as file:
        content = file.read()
    code_of = {}
    for byte in content:
        code_of.setdefault(byte, len(code_of) + 1)
    return np.array([code_of[byte] for byte in content], dtype=np.float32), len(code_of) + 1, code_of.get(10, 1)


def shuffle(items, random):
    for i in range(len(items), 1, -1):
        k = random.below(i)
        items[i - 1], items[k] = items[k], items[i - 1]


def stream_batches(codes, _, held_out, buckets, batch, random):
    cut = len(codes) - len(codes) // HELD_OUT_OF
    part = codes[cut:] if held_out else codes[:cut]
    each = (len(part) - 1) // batch
    at, result = 0, []
    while each - at >= buckets[0]:
        b = random.below(len(buckets))
        while buckets[b] > each - at:
            b -= 1
        rows = [part[r * each + at:r * each + at + buckets[b] + 1] for r in range(batch)]
        result.append((buckets[b], np.stack([r[:-1] for r in rows]), np.stack([r[1:] for r in rows])))
        at += buckets[b]
    return result


def line_batches(codes, newline, held_out, buckets, batch, random):
    lines, begin, number = [], 0, 0
    while begin < len(codes):
        end = begin
        while end < len(codes) and end - begin < buckets[-1] and codes[end] != newline:
            end += 1
        if end < len(codes) and end - begin < buckets[-1]:
            end += 1
        if end - begin > 1:
            if (number % HELD_OUT_OF == HELD_OUT_OF - 1) == held_out:
                lines.append(codes[begin:end])
            number += 1
        begin = end
    shuffle(lines, random)
    result, rows, is_open = [], {b: 0 for b in buckets}, {}
    for line in lines:
        b = next((b for b in buckets if b >= len(line)), buckets[-1])
        if rows[b] == 0:
            is_open[b] = (b, np.zeros((batch, b), np.float32), np.zeros((batch, b), np.float32))
            result.append(is_open[b])
        _, data, labels = is_open[b]
        data[rows[b], 0] = newline
        data[rows[b], 1:len(line)] = line[:-1]
        labels[rows[b], :len(line)] = line
        rows[b] = (rows[b] + 1) % batch
    shuffle(result, random)
    return result


def network(length, options, vocabulary):
    data, label = mx.sym.var('data'), mx.sym.var('softmax_label')
    embed = mx.sym.Embedding(data, mx.sym.var('embed_weight', init=mx.init.Normal(0.5)), input_dim=vocabulary,
                             output_dim=options.hidden, name='embed')
    rnn = mx.sym.RNN(mx.sym.swapaxes(embed, dim1=0, dim2=1), mx.sym.var('lstm_parameters', init=mx.init.Uniform(0.08)),
                     mx.sym.var('lstm_state'), mx.sym.var('lstm_state_cell'), mode='lstm', state_size=options.hidden,
                     num_layers=options.layers, state_outputs=True, name='lstm')
    flat = mx.sym.reshape(mx.sym.swapaxes(rnn[0], dim1=0, dim2=1), shape=(-1, options.hidden))
    scores = mx.sym.FullyConnected(flat, num_hidden=vocabulary, name='scores')
    softmax = mx.sym.SoftmaxOutput(scores, mx.sym.reshape(label, shape=(-1,)), use_ignore=True, ignore_label=0,
                                   name='softmax')
    states = [mx.sym.BlockGrad(rnn[i], __layout__='LNC') for i in (1, 2)]
    return mx.sym.Group([softmax] + states), ('data',), ('softmax_label',)


def run_epoch(module, batches, options, train):
    total, count, states = 0.0, 0, None
    for length, data, labels in batches:
        shape = (options.batch, length)
        batch = mx.io.DataBatch(data=[mx.nd.array(data)], label=[mx.nd.array(labels)], bucket_key=length,
                                provide_data=[mx.io.DataDesc('data', shape, layout='NT')],
                                provide_label=[mx.io.DataDesc('softmax_label', shape, layout='NT')])
        module.switch_bucket(length, batch.provide_data, batch.provide_label)
        if states is None:
            module.set_states(value=0)
        else:
            module.set_states(states=states)
        module.forward(batch, is_train=train)
        outputs = module.get_outputs(merge_multi_context=False)
        if options.mode == 'stream':
            states = [[array.copy() for array in state] for state in outputs[1:]]
        if train:
            module.backward()
            module.update()
        found = np.concatenate([part.asnumpy() for part in outputs[0]])
        flat = labels.reshape(-1).astype(int)
        chances = found[np.arange(len(flat)), flat][flat != 0]
        total -= np.log(np.maximum(chances, 1e-10)).sum()
        count += len(chances)
    return np.exp(total / count), count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--text', default='/usr/share/common-licenses/GPL-3')
    parser.add_argument('--mode', default='stream', choices=['stream', 'lines'])
    for name, default in (('epochs', 20), ('layers', 1), ('hidden', 128), ('batch', 32), ('seed', 1)):
        parser.add_argument('--' + name, type=int, default=default)
    parser.add_argument('--lr', type=float, default=0.01)
    options = parser.parse_args()
    codes, vocabulary, newline = load_text(options.text)
    buckets = [16, 32, 48] if options.mode == 'stream' else [24, 48, 64, 80]
    cut = stream_batches if options.mode == 'stream' else line_batches
    contexts = [mx.cpu(0), mx.cpu(1)]
    module = mx.mod.BucketingModule(lambda length: network(length, options, vocabulary), default_bucket_key=buckets[-1],
                                    context=contexts, state_names=['lstm_state', 'lstm_state_cell'])
    shape = (options.batch, buckets[-1])
    module.bind([mx.io.DataDesc('data', shape, layout='NT')], [mx.io.DataDesc('softmax_label', shape, layout='NT')])
    mx.random.seed(options.seed)
    module.init_params(mx.init.Uniform(0.08))
    num_updates = len(cut(codes, newline, False, buckets, options.batch, Random(options.seed))) * options.epochs
    schedule = mx.lr_scheduler.CosineScheduler(max_update=num_updates, base_lr=options.lr)
    module.init_optimizer(kvstore='local', optimizer='adam', optimizer_params={
        'learning_rate': options.lr, 'lr_scheduler': schedule, 'rescale_grad': 1.0 / options.batch, 'clip_gradient': 5})
    random = Random(options.seed)
    for epoch in range(options.epochs):
        start = time.time()
        train, count = run_epoch(module, cut(codes, newline, False, buckets, options.batch, random), options, True)
        speed = count / (time.time() - start)
        held_out, _ = run_epoch(module, cut(codes, newline, True, buckets, options.batch, Random(1)), options, False)
        print('epoch %3d/%d %8.0f characters/s   perplexity %7.3f   of the held-out text %7.3f'
              % (epoch + 1, options.epochs, speed, train, held_out), flush=True)


if __name__ == '__main__':
    main()
