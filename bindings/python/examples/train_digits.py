# SPDX-License-Identifier: Apache-2.0
"""Trains LeNet on handwritten digits over three devices with unequal shares, saves a checkpoint, and predicts with it.

    python3 train_digits.py [--contexts cpu(0),cpu(1),cpu(2)] [--workload 2,1,1] [--epochs 8] [--compute-dtype bfloat16] ...
"""

import argparse
import os
import re
import tempfile

import numpy as np

import cohort
from cohort import NDArrayIter, Predictor, nd, sym

HERE = os.path.dirname(os.path.abspath(__file__))


def lenet():
    net = sym.Variable("data")
    for i, filters in ((1, 20), (2, 50)):
        net = sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=filters, name=f"conv{i}")
        net = sym.Pooling(sym.tanh(net), kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = sym.tanh(sym.FullyConnected(sym.Flatten(net), num_hidden=128, name="fc1"))
    return sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=10, name="fc2"), name="softmax")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contexts", default="cpu(0),cpu(1),cpu(2)")
    parser.add_argument("--workload", default="2,1,1")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--compute-dtype", default="float32")
    parser.add_argument("--data", default=os.path.join(HERE, "..", "..", "..", "examples", "data", "digits.params"))
    parser.add_argument("--out", default=os.path.join(tempfile.mkdtemp(), "digits"))
    options = parser.parse_args(arguments)

    digits = nd.load(options.data)
    order = np.random.RandomState(1).permutation(1797)
    images, labels = digits["images"].asnumpy()[order], digits["labels"].asnumpy()[order]
    train = NDArrayIter(images[:-360], labels[:-360], options.batch, shuffle=True, last_batch_handle="discard", seed=1)
    test = NDArrayIter(images[-360:], labels[-360:], options.batch)

    def tell(progress):
        print(f"epoch {progress.epoch + 1}: train {progress.train}, test {progress.eval}")
        if progress.eval["accuracy"] > 0.995:
            progress.stop()

    steps = options.epochs * len(train)
    with cohort.fit(
        lenet(),
        train,
        test,
        eval_metric=["accuracy", "ce"],
        optimizer_params={
            "learning_rate": 0.05,
            "momentum": 0.9,
            "lr_schedule": {"name": "cosine", "max_update": steps},
        },
        initializer=cohort.init.Xavier(seed=1),
        num_epoch=options.epochs,
        contexts=re.findall(r"\w+\(\d+\)", options.contexts),
        compute_dtype=options.compute_dtype,
        workload=[float(share) for share in options.workload.split(",")],
        callbacks=[tell],
    ) as fitted:
        cohort.save_checkpoint(options.out, options.epochs, fitted.group.symbol, *fitted.get_params())

    with Predictor.load(options.out, options.epochs, data=(1, 1, 8, 8)) as predictor:
        (scores,) = predictor(data=images[-360:])
    accuracy = (scores.argmax(axis=1) == labels[-360:]).mean()
    print(f"test accuracy: {accuracy:.4f}")
    return accuracy


if __name__ == "__main__":
    main()
