# SPDX-License-Identifier: Apache-2.0
"""One workload on PyTorch: eager, --channels-last, --compile, --autocast (bfloat16), --processes N (DDP over gloo)."""

import contextlib
import os
import subprocess
import sys
import tempfile

import peer

ARGS, WORKLOAD = peer.parse(
    ("--channels-last", {"action": "store_true"}),
    ("--compile", {"action": "store_true"}),
    ("--autocast", {"action": "store_true"}),
    ("--processes", {"type": int, "default": 0}),
    ("--rank", {"type": int, "default": -1, "help": "of its own processes"}),
    ("--meet", {"default": "", "help": "of its own processes"}),
)
if ARGS.processes:
    ARGS.contexts = ARGS.processes
ARGS.omp = max(1, ARGS.threads // ARGS.contexts)
os.environ["OMP_NUM_THREADS"] = str(ARGS.omp)
os.environ.setdefault("TORCHINDUCTOR_FREEZING", "1" if ARGS.mode == "infer" else "0")
if ARGS.processes and ARGS.rank < 0:
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable] + sys.argv + ["--meet", os.path.join(folder, "meet"), "--rank"]
        started = [subprocess.Popen(words + [str(rank)]) for rank in range(ARGS.processes)]
        sys.exit(max([abs(process.wait()) for process in started]))

import torch  # noqa: E402
import torch_networks as networks  # noqa: E402
from torch.nn import functional as F  # noqa: E402

IMPORTED, LIBRARY_MB = peer.now(), peer.peak_mb()
torch.set_num_threads(ARGS.omp)


def tell(blocks, **figures):
    kinds = [f"ddp{ARGS.processes}"] if ARGS.processes else []
    kinds += ["compile"] if ARGS.compile else []
    kinds = kinds or ["eager"]
    kinds += ["channels-last"] if ARGS.channels_last else []
    if ARGS.autocast:
        kinds.append("autocast")
        ARGS.variant = "-".join(filter(None, (ARGS.variant, "bf16")))  # a case of its own
    peer.tell("torch", "+".join(kinds), torch.__version__, ARGS, blocks, omp=ARGS.omp, **figures)


def optimizer_of(network):
    if WORKLOAD.rule == "adam":
        return torch.optim.Adam(network.parameters(), lr=WORKLOAD.rate, betas=(0.9, 0.999), eps=1e-8, fused=True)
    decays = lambda path: networks.mxnet_name(network, path).endswith(("_weight", "_gamma"))  # noqa: E731
    named = list(network.named_parameters())
    groups = [
        {"params": [p for path, p in named if decays(path)], "weight_decay": WORKLOAD.wd},
        {"params": [p for path, p in named if not decays(path)], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    return torch.optim.SGD(groups, lr=WORKLOAD.rate, momentum=WORKLOAD.momentum, fused=True)


class Step:
    def __init__(self, train):
        self.train, self.at = train, 0
        self.batches = [self.batch(n) for n in (peer.BUCKETS if ARGS.variant == "bucket" else (None,))]
        network = networks.fill(networks.make(WORKLOAD.model, ARGS.variant)).train(train)
        if ARGS.channels_last:
            network = network.to(memory_format=torch.channels_last)
        self.optimizer = optimizer_of(network) if train else None
        if ARGS.processes:
            network = torch.nn.parallel.DistributedDataParallel(network)
        self.network = torch.compile(network, dynamic=False) if ARGS.compile else network

    def batch(self, length):
        data, label = (torch.from_numpy(array) for array in peer.make_batch(WORKLOAD, ARGS.batch, length))
        if ARGS.processes:
            rows = ARGS.batch // ARGS.processes
            data, label = (part[ARGS.rank * rows :][:rows].contiguous() for part in (data, label))
        if WORKLOAD.task == "words":
            data = data.long()
        if ARGS.channels_last and data.dim() == 4:
            data = data.to(memory_format=torch.channels_last)
        return data, label if WORKLOAD.task == "numbers" else label.long().flatten()

    def answer(self, data):
        if not ARGS.autocast:
            return self.network(data)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = self.network(data)
        return scores.float()

    def loss(self, scores, label):
        """The mean; of words, what the update follows is summed over those of a sentence."""
        return 0.5 * F.mse_loss(scores, label) if WORKLOAD.task == "numbers" else F.cross_entropy(scores, label)

    def __call__(self):
        data, label = self.batches[self.at]
        self.at = (self.at + 1) % len(self.batches)
        if not self.train:
            scores = self.answer(data)
            return scores if WORKLOAD.task == "numbers" or ARGS.variant == "chain" else F.softmax(scores, -1)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.answer(data), label)
        (loss * (len(label) // len(data)) if WORKLOAD.task == "words" else loss).backward()
        self.optimizer.step()
        return loss

    def check(self):
        if not self.train:
            figures = peer.figures_of(self().numpy())
        else:
            losses = []
            for _ in range(3):
                loss = self().detach()
                if ARGS.processes:
                    torch.distributed.all_reduce(loss)
                    loss /= ARGS.processes
                losses.append(float(loss))
            figures = {"loss": losses}
        self.at = 0
        return figures


def run_steps():
    train = ARGS.mode == "train"
    if ARGS.processes:
        torch.distributed.init_process_group("gloo", init_method="file://" + ARGS.meet, rank=ARGS.rank, world_size=ARGS.processes)
    with contextlib.nullcontext() if train else torch.inference_mode():
        step = Step(train)
        check = step.check()
        if ARGS.compile:
            ARGS.warmup = max(ARGS.warmup, 3 * len(step.batches))
        blocks = peer.timed(ARGS, step, torch.distributed.barrier if ARGS.processes else lambda: None)
    if ARGS.rank <= 0:
        tell(blocks, check=check)
    if ARGS.processes:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


@torch.no_grad()
def run_params():
    """PyTorch has no such group: replicas' tensors are averaged into others, and these loaded into every replica."""
    replicas = [networks.fill(networks.make(WORKLOAD.model)) for _ in range(ARGS.contexts)]
    states = [replica.state_dict() for replica in replicas]
    names = [name for name in states[0] if not name.endswith("num_batches_tracked")]
    host = {name: torch.empty_like(states[0][name]) for name in names}
    size = round(sum(tensor.numel() for tensor in host.values()) * 4 / 2**20, 1)

    def get():
        for name in names:
            host[name].copy_(states[0][name])
            for state in states[1:]:
                host[name].add_(state[name])
            host[name].div_(len(states))

    def put():
        for replica in replicas:
            replica.load_state_dict(host, strict=False)

    for name, call in (("get", get), ("set", put)):
        ARGS.variant = name
        tell(peer.timed(ARGS, call, lambda: None), params_mb=size)


def run_start():
    path = os.path.join(peer.CACHE, "resnet50-torch.pt")
    if not ARGS.started_by:
        if not os.path.exists(path):
            torch.save(networks.fill(networks.make("resnet50")).state_dict(), path)
        blocks, figures = peer.start_processes(ARGS)
        return tell(blocks, **figures)
    state = torch.load(path, mmap=True, weights_only=True)
    loaded = peer.now()
    with torch.device("meta"):
        network = networks.make("resnet50")
    network.load_state_dict(state, assign=True)
    network.eval()
    bound = peer.now()
    data, _ = peer.make_batch(WORKLOAD, 1)
    with torch.inference_mode():
        F.softmax(network(torch.from_numpy(data)), -1).numpy()
    peer.print_start(ARGS, IMPORTED, LIBRARY_MB, loaded, bound, peer.now())


if ARGS.workload == "W11":
    run_start()
elif ARGS.workload == "W10":
    run_params()
else:
    run_steps()
