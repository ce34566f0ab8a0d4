# SPDX-License-Identifier: Apache-2.0
"""One workload on MXNet 1.9.1: its Module over cpu contexts, or with --api executor one bound executor."""

import os

import peer

ARGS, WORKLOAD = peer.parse(
    ("--api", {"choices": ("module", "executor"), "default": "module"}),
    ("--engine", {"choices": ("threaded", "naive"), "default": "threaded"}),
)
ARGS.omp = max(1, ARGS.threads // ARGS.contexts)
os.environ["OMP_NUM_THREADS"] = str(ARGS.omp)  # read when the library is loaded
if ARGS.engine == "naive":
    os.environ["MXNET_ENGINE_TYPE"] = "NaiveEngine"

import mxnet as mx  # noqa: E402

IMPORTED, LIBRARY_MB = peer.now(), peer.peak_mb()
GRAPHS = {"resnet20": "resnet20", "tiny": "tiny_mlp" if ARGS.variant == "mlp" else "tiny_chain", "lstm": "lstm_fused"}
LABEL = None if ARGS.variant == "chain" else "lro_label" if WORKLOAD.task == "numbers" else "softmax_label"


def unrolled(length):
    stack = mx.rnn.SequentialRNNCell()
    for layer in range(peer.LAYERS):
        stack.add(mx.rnn.LSTMCell(peer.HIDDEN, prefix=f"lstm_l{layer}_"))
    words = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=peer.WORDS, output_dim=peer.HIDDEN, name="embed")
    outputs, _ = stack.unroll(length, words, layout="NTC", merge_outputs=True)
    rows = mx.sym.Reshape(outputs, shape=(-1, peer.HIDDEN), name="rows")
    scores = mx.sym.FullyConnected(rows, num_hidden=peer.WORDS, name="pred")
    return mx.sym.SoftmaxOutput(scores, mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,)), name="softmax")


def graph(length=None):
    if ARGS.variant in ("unroll", "bucket"):
        return unrolled(length or peer.LENGTH)
    name = GRAPHS.get(WORKLOAD.model, WORKLOAD.model)
    return mx.sym.load(os.path.join(os.path.dirname(peer.FOLDER), "symbols", name + ".json"))


def first_values(symbol, inputs):
    shapes, _, aux_shapes = symbol.infer_shape(**inputs)
    make = lambda name, shape: mx.nd.array(peer.packed_lstm() if name == "lstm_parameters" else peer.first_value(name, shape))  # noqa: E731
    args = {name: make(name, shape) for name, shape in zip(symbol.list_arguments(), shapes) if name not in inputs}
    return args, {name: make(name, shape) for name, shape in zip(symbol.list_auxiliary_states(), aux_shapes)}


class Step:
    """A module with its batches; a call trains on the next batch, or answers it."""

    def __init__(self, train):
        self.train, self.at = train, 0
        lengths = peer.BUCKETS if ARGS.variant == "bucket" else (None,)
        self.batches = [self.batch(length) for length in lengths]
        contexts = [mx.cpu(i) for i in range(ARGS.contexts)]
        labels = [LABEL] if LABEL else None
        if ARGS.variant == "bucket":
            self.module = mx.mod.BucketingModule(
                lambda key: (unrolled(key), ("data",), (LABEL,)), default_bucket_key=lengths[-1], context=contexts
            )
        else:
            self.module = mx.mod.Module(graph(), label_names=labels, context=contexts)
        largest = self.batches[-1]
        self.module.bind(largest.provide_data, largest.provide_label, for_training=train)
        inputs = {desc.name: desc.shape for desc in largest.provide_data + (largest.provide_label or [])}
        args, aux = first_values(graph(lengths[-1]), inputs)
        self.module.init_params(arg_params=args, aux_params=aux, initializer=None)
        if train:
            settings = {"learning_rate": WORKLOAD.rate, "wd": WORKLOAD.wd}
            if WORKLOAD.rule == "sgd":
                settings["momentum"] = WORKLOAD.momentum
            self.module.init_optimizer(kvstore="local", optimizer=WORKLOAD.rule, optimizer_params=settings)

    def batch(self, length):
        data, label = peer.make_batch(WORKLOAD, ARGS.batch, length)
        descs = [mx.io.DataDesc(LABEL, label.shape)] if LABEL else None
        made = mx.io.DataBatch(
            [mx.nd.array(data)],
            [mx.nd.array(label)] if LABEL and self.train else None,
            bucket_key=length,
            provide_data=[mx.io.DataDesc("data", data.shape)],
            provide_label=descs,
        )
        made.host_label = label
        return made

    def __call__(self):
        batch = self.batches[self.at]
        self.at = (self.at + 1) % len(self.batches)
        if self.train:
            self.module.forward_backward(batch)
            self.module.update()
        else:
            self.module.forward(batch, is_train=False)
            self.module.get_outputs()[0].wait_to_read()
        return batch

    def check(self):
        if not self.train:
            self()
            figures = peer.figures_of(self.module.get_outputs()[0].asnumpy())
        else:
            losses = []
            for _ in range(3):
                batch = self()
                losses.append(peer.loss_of(WORKLOAD, self.module.get_outputs()[0].asnumpy(), batch.host_label))
            figures = {"loss": losses}
        self.at = 0
        return figures


def tell(blocks, **figures):
    config = ARGS.api + ("+naive" if ARGS.engine == "naive" else "")
    peer.tell("mxnet", config, mx.__version__, ARGS, blocks, omp=ARGS.omp, **figures)


def run_executor():
    data, label = peer.make_batch(WORKLOAD, ARGS.batch)
    symbol = graph()
    inputs = {"data": data.shape, **({LABEL: label.shape} if LABEL else {})}
    executor = symbol.simple_bind(mx.cpu(0), grad_req="null", **inputs)
    executor.copy_params_from(*first_values(symbol, inputs), allow_extra_params=True)
    given, bound = mx.nd.array(data), executor.arg_dict["data"]

    def step():
        given.copyto(bound)
        executor.forward(is_train=False)
        executor.outputs[0].wait_to_read()

    step()
    tell(peer.timed(ARGS, step, mx.nd.waitall), check=peer.figures_of(executor.outputs[0].asnumpy()))


def run_params():
    step = Step(train=True)
    step()
    args, aux = step.module.get_params()
    size = round(sum(array.size for array in [*args.values(), *aux.values()]) * 4 / 2**20, 1)

    def get():
        step.module._params_dirty = True  # as an update leaves it
        step.module.get_params()

    for name, call in (("get", get), ("set", lambda: step.module.set_params(args, aux, force_init=True))):
        ARGS.variant = name
        tell(peer.timed(ARGS, call, mx.nd.waitall), params_mb=size)


def run_start():
    prefix = os.path.join(peer.CACHE, "resnet50-mxnet")
    if not ARGS.started_by:
        if not os.path.exists(prefix + "-0000.params"):
            symbol = graph()
            mx.model.save_checkpoint(prefix, 0, symbol, *first_values(symbol, {"data": (1,) + peer.IMAGE, LABEL: (1,)}))
        blocks, figures = peer.start_processes(ARGS)
        return tell(blocks, **figures)
    symbol, args, aux = mx.model.load_checkpoint(prefix, 0)
    mx.nd.waitall()
    loaded = peer.now()
    module = mx.mod.Module(symbol, context=mx.cpu())
    module.bind([("data", (1,) + peer.IMAGE)], for_training=False)
    module.set_params(args, aux)
    mx.nd.waitall()
    bound = peer.now()
    data, _ = peer.make_batch(WORKLOAD, 1)
    module.forward(mx.io.DataBatch([mx.nd.array(data)]), is_train=False)
    module.get_outputs()[0].asnumpy()
    peer.print_start(ARGS, IMPORTED, LIBRARY_MB, loaded, bound, peer.now())


def main():
    if ARGS.workload == "W11":
        run_start()
    elif ARGS.workload == "W10":
        run_params()
    elif ARGS.api == "executor":
        run_executor()
    else:
        step = Step(ARGS.mode == "train")
        check = step.check()
        tell(peer.timed(ARGS, step, mx.nd.waitall), check=check)


main()
