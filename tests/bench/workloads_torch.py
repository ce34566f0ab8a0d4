# SPDX-License-Identifier: Apache-2.0
"""The peer of cohort-bench on a GPU: W1, W2 and W3 in PyTorch, eager and compiled, float32. A line of JSON each."""

import json
import statistics
import time

import torch
from torch import nn


class Block(nn.Module):
    """A residual unit as in ResNet v2: norm and relu come first."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.short = None if inputs == outputs and stride == 1 else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        first = torch.relu(self.norm1(x))
        y = self.conv2(torch.relu(self.norm2(self.conv1(first))))
        return y + (x if self.short is None else self.short(first))


def mlp():
    sizes = [784, 128, 64, 10]
    layers = [nn.Flatten()]
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1]), (64, 1, 28, 28)


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.Tanh(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 500), nn.Tanh(), nn.Linear(500, 10),
    ), (64, 1, 28, 28)  # fmt: skip


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)]
    inputs = 16
    for outputs, stride in ((16, 1), (32, 2), (64, 2)):
        for unit in range(3):
            layers.append(Block(inputs, outputs, stride if unit == 0 else 1))
            inputs = outputs
    layers += [nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*layers), (128, 3, 32, 32)


def milliseconds(step, warmup=20, blocks=5, steps=50):
    for _ in range(warmup):
        step()
    times = []
    for _ in range(blocks):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) / steps * 1e3)
    return times


def measure(name, make, train, compiled):
    net, shape = make()
    net = net.cuda().train(train)
    run = torch.compile(net) if compiled else net
    x = torch.rand(shape, device="cuda")
    y = torch.randint(0, 10, shape[:1], device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def train_step():
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(run(x), y).backward()
        optimizer.step()

    def infer_step():
        with torch.no_grad():
            run(x)
        torch.cuda.synchronize()

    times = milliseconds(train_step if train else infer_step)
    line = {"engine": "torch " + torch.__version__, "workload": name, "mode": "train" if train else "infer"}
    line.update(compiled=compiled, ms_min=min(times), ms_median=statistics.median(times), ms_max=max(times))
    print(json.dumps(line), flush=True)


WORKLOADS = (("W1", mlp), ("W2", lenet), ("W3", resnet20))
for workload, network in WORKLOADS:
    for training in (True, False):
        measure(workload, network, training, compiled=False)
for workload, network in WORKLOADS:  # what takes long to compile comes last
    measure(workload, network, True, compiled=True)
