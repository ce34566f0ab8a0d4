# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a checkpoint of MXNet on handwritten digits, over three devices that take 5, 2 and 1 of 8 samples. Once it
trains without a stop; once it stops half-way, saves parameters and optimizer states, and goes on from the files, as a
later process would. Both end with the same bits.

    python3 fine_tune.py PREFIX EPOCH [--contexts cpu(0),cpu(1),cpu(2)] [--workload 5,2,1] [--epochs 6] [--out FOLDER]
"""

import argparse
import os
import re
import tempfile

import cohort
from cohort import NDArrayIter, nd

DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "examples", "data", "digits.params")
BATCH = 64


def tune(prefix, epoch, out, num_epoch, options):
    """Trains from one checkpoint, and the states beside it if there are any, to another; returns the accuracy."""
    symbol, args, aux = cohort.load_checkpoint(prefix, epoch)
    sgd = cohort.optimizer.create("sgd", learning_rate=0.05, momentum=0.9, rescale_grad=1 / BATCH)
    states = f"{prefix}-{epoch:04d}.states"
    if os.path.exists(states):
        sgd.load_states(states)
    digits = nd.load(options.data)
    with cohort.fit(
        symbol,
        NDArrayIter(digits["images"].asnumpy(), digits["labels"].asnumpy(), BATCH, last_batch_handle="discard"),
        optimizer=sgd,
        arg_params=args,
        aux_params=aux,
        num_epoch=num_epoch,
        contexts=re.findall(r"\w+\(\d+\)", options.contexts),
        workload=[float(share) for share in options.workload.split(",")],
        fixed_param_names=["conv1_weight", "conv1_bias"],  # the first layer stays as it is
        keep_device_aux=True,
    ) as fitted:
        cohort.save_checkpoint(out, epoch + num_epoch, symbol, *fitted.get_params())
        sgd.save_states(f"{out}-{epoch + num_epoch:04d}.states")
        return fitted.history[-1]["train-accuracy"]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("epoch", type=int)
    parser.add_argument("--contexts", default="cpu(0),cpu(1),cpu(2)")
    parser.add_argument("--workload", default="5,2,1")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--data", default=DIGITS)
    parser.add_argument("--out", default=tempfile.gettempdir())
    options = parser.parse_args(arguments)

    whole, parts = os.path.join(options.out, "whole"), os.path.join(options.out, "parts")
    half, end = options.epochs // 2, options.epoch + options.epochs
    accuracy = tune(options.prefix, options.epoch, whole, options.epochs, options)
    tune(options.prefix, options.epoch, parts, half, options)
    tune(parts, options.epoch + half, parts, options.epochs - half, options)
    same = read(f"{whole}-{end:04d}.params") == read(f"{parts}-{end:04d}.params")
    print(f"accuracy {accuracy:.4f}, {'the same bits' if same else 'OTHER BITS'} after the stop")
    return accuracy, same


if __name__ == "__main__":
    main()
