# SPDX-License-Identifier: Apache-2.0
"""The workloads' networks for PyTorch, as one would write them there; they give scores, not probabilities.

Modules are called so that the path a.b.weight is MXNet's a_b_weight: fill() starts from the numbers of all peers.
"""

import peer
import torch
from torch import nn
from torch.nn import functional as F


class Dense(nn.Module):
    def __init__(self, *widths):
        super().__init__()
        self.num = len(widths) - 1
        for i in range(self.num):
            setattr(self, f"fc{i + 1}", nn.Linear(widths[i], widths[i + 1]))

    def forward(self, x):
        for i in range(1, self.num):
            x = F.relu(getattr(self, f"fc{i}")(x))
        return getattr(self, f"fc{self.num}")(x)


class Chain(nn.Module):
    def forward(self, x):
        for _ in range(25):
            x = F.relu(x + 0.01)
        return x


class Lenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 20, 5)
        self.conv2 = nn.Conv2d(20, 50, 5)
        self.fc1 = nn.Linear(800, 500)
        self.fc2 = nn.Linear(500, 10)

    def forward(self, x):
        for layer in (self.conv1, self.conv2):
            x = F.max_pool2d(torch.tanh(layer(x)), 2)
        return self.fc2(torch.tanh(self.fc1(x.flatten(1))))


def convolution(before, after, kernel, stride=1, groups=1):
    return nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False)


class Residual(nn.Module):
    """A unit of two 3x3 convolutions, or of a 1x1, a 3x3 and a 1x1 with a quarter of the channels."""

    def __init__(self, before, after, stride, bottleneck):
        super().__init__()
        inner = after // 4 if bottleneck else after
        kernels = [(1, 1), (3, stride), (1, 1)] if bottleneck else [(3, stride), (3, 1)]
        self.last, width = len(kernels), before
        for i, (kernel, step) in enumerate(kernels, 1):
            out = after if i == self.last else inner
            setattr(self, f"conv{i}", convolution(width, out, kernel, step))
            setattr(self, "bnl" if i == self.last else f"bn{i}", nn.BatchNorm2d(out))
            width = out
        self.projects = stride != 1 or before != after
        if self.projects:
            self.sc, self.bnsc = convolution(before, after, 1, stride), nn.BatchNorm2d(after)

    def forward(self, x):
        y = x
        for i in range(1, self.last):
            y = F.relu(getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y)))
        y = self.bnl(getattr(self, f"conv{self.last}")(y))
        return F.relu(y + (self.bnsc(self.sc(x)) if self.projects else x))


class Resnet(nn.Module):
    def __init__(self, stem, width, units, widths, classes):
        super().__init__()
        self.pools = stem == 7
        self.conv0, self.bn0, self.units = convolution(3, width, stem, 2 if self.pools else 1), nn.BatchNorm2d(width), []
        for stage, (count, after) in enumerate(zip(units, widths), 1):
            for unit in range(1, count + 1):
                stride = 2 if stage > 1 and unit == 1 else 1
                self.units.append(Residual(width, after, stride, bottleneck=self.pools))
                self.add_module(f"stage{stage}_unit{unit}", self.units[-1])
                width = after
        self.fc = nn.Linear(width, classes)

    def forward(self, x):
        x = F.relu(self.bn0(self.conv0(x)))
        if self.pools:
            x = F.max_pool2d(x, 3, 2, 1)
        for unit in self.units:
            x = unit(x)
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Inverted(nn.Module):
    def __init__(self, before, after, times, stride):
        super().__init__()
        inner = before * times
        if times != 1:
            self.conv1, self.bn1 = convolution(before, inner, 1), nn.BatchNorm2d(inner)
        self.conv2, self.bn2 = convolution(inner, inner, 3, stride, groups=inner), nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = convolution(inner, after, 1), nn.BatchNorm2d(after)
        self.widens, self.adds = times != 1, stride == 1 and before == after

    def forward(self, x):
        y = F.relu6(self.bn1(self.conv1(x))) if self.widens else x
        y = self.bn3(self.conv3(F.relu6(self.bn2(self.conv2(y)))))
        return x + y if self.adds else y


class MobilenetV2(nn.Module):
    STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

    def __init__(self):
        super().__init__()
        self.conv0, self.bn0, self.units, width = convolution(3, 32, 3, 2), nn.BatchNorm2d(32), [], 32
        for stage, (times, after, count, stride) in enumerate(self.STAGES, 1):
            for unit in range(1, count + 1):
                self.units.append(Inverted(width, after, times, stride if unit == 1 else 1))
                self.add_module(f"stage{stage}_unit{unit}", self.units[-1])
                width = after
        self.conv1, self.bn1 = convolution(width, 1280, 1), nn.BatchNorm2d(1280)
        self.fc = nn.Linear(1280, 1000)

    def forward(self, x):
        x = F.relu6(self.bn0(self.conv0(x)))
        for unit in self.units:
            x = unit(x)
        x = F.relu6(self.bn1(self.conv1(x)))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class LanguageModel(nn.Module):
    """Whole sentences at a time, or word by word with a cell for each layer."""

    def __init__(self, by_cells):
        super().__init__()
        self.embed = nn.Embedding(peer.WORDS, peer.HIDDEN)
        self.pred = nn.Linear(peer.HIDDEN, peer.WORDS)
        if by_cells:
            self.lstm, self.cells = None, nn.ModuleList(nn.LSTMCell(peer.HIDDEN, peer.HIDDEN) for _ in range(peer.LAYERS))
        else:
            self.lstm = nn.LSTM(peer.HIDDEN, peer.HIDDEN, peer.LAYERS)

    def forward(self, words):
        x = self.embed(words)
        if self.lstm is not None:
            x = self.lstm(x.transpose(0, 1))[0].transpose(0, 1)
        else:
            states, outputs = [None] * peer.LAYERS, []
            for t in range(x.shape[1]):
                y = x[:, t]
                for i, cell in enumerate(self.cells):
                    states[i] = cell(y, states[i])
                    y = states[i][0]
                outputs.append(y)
            x = torch.stack(outputs, 1)
        return self.pred(x.reshape(-1, peer.HIDDEN))


class Encoder(nn.Module):
    def __init__(self, width=512, heads=8, inner=2048):
        super().__init__()
        self.heads = heads
        for name in ("q", "k", "v", "proj"):
            setattr(self, name, nn.Linear(width, width))
        self.ffn1, self.ffn2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        split = lambda y: y.unflatten(2, (self.heads, -1)).transpose(1, 2)  # noqa: E731
        y = F.scaled_dot_product_attention(split(self.q(x)), split(self.k(x)), split(self.v(x)))
        x = self.ln1(x + self.proj(y.transpose(1, 2).flatten(2)))
        return self.ln2(x + self.ffn2(F.relu(self.ffn1(x))))


def make(model, variant=""):
    makers = {
        "mlp": lambda: Dense(784, 128, 64, 10),
        "tiny": lambda: Chain() if variant == "chain" else Dense(32, 32, 32, 10),
        "lenet": Lenet,
        "resnet20": lambda: Resnet(3, 16, (3, 3, 3), (16, 32, 64), 10),
        "resnet50": lambda: Resnet(7, 64, (3, 4, 6, 3), (256, 512, 1024, 2048), 1000),
        "mobilenet_v2": MobilenetV2,
        "lstm": lambda: LanguageModel(variant == "unroll"),
        "transformer": Encoder,
    }
    return makers[model]()


def mxnet_name(network, path):
    owner, _, leaf = path.rpartition(".")
    kind, owner = type(network.get_submodule(owner)), owner.replace(".", "_")
    if kind in (nn.LSTM, nn.LSTMCell):  # weight_ih_l0; weight_ih of cells.0
        what, part = leaf.split("_")[:2]
        layer = leaf[-1] if kind is nn.LSTM else owner[-1]
        return f"lstm_l{layer}_{'i2h' if part == 'ih' else 'h2h'}_{what}"
    if kind in (nn.BatchNorm2d, nn.LayerNorm):
        leaf = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_var"}[leaf]
    return f"{owner}_{leaf}"


@torch.no_grad()
def fill(network):
    for path, tensor in network.state_dict().items():
        if not path.endswith("num_batches_tracked"):
            tensor.copy_(torch.from_numpy(peer.first_value(mxnet_name(network, path), tuple(tensor.shape))))
    return network
