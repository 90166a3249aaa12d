"""Convolutional nets: those that Allen-Zhu et al. 2019 train, and that of Guo et al. 2024, Table 7.

The former use the code of github.com/bearpaw/pytorch-classification as it stood in 2018; `VGG` and
`ResNet` are its.
"""

from dataclasses import dataclass

import torch
from torch import nn

from ..errors import ParameterError
from .modules import Drawn, LeakyUnit


class VGG(nn.Module):
    """Stages of 3 x 3 convolutions, each followed by 2 x 2 pooling; one Linear.

    Convolutions have biases, batch normalization and ReLU. layers: convolutions of each stage;
    stage k has width min(2^k, 8) channels. Inputs (n, *shape), shape (c, h, w); outputs (n,
    classes). Weights of convolutions N(0, 2/(9 channels out)), of the last layer N(0, 0.01^2),
    biases 0. VGG19: layers [2, 2, 4, 4, 4], width 64, shape (3, 32, 32).
    """

    def __init__(self, layers, width, *, shape, classes, seed):
        super().__init__()
        inputs = shape[0]
        rows, columns = (length >> len(layers) for length in shape[1:])  # after the last pooling
        if min(rows, columns) < 1:
            told = f"images of shape {tuple(shape)} cannot be halved {len(layers)} times"
            raise ParameterError(told)
        draw = Drawn(seed, bias=True)
        parts = []
        for k, count in enumerate(layers):
            outputs = width * min(2**k, 8)
            for _ in range(count):
                parts += [_conv(draw, inputs, outputs, 3), nn.BatchNorm2d(outputs), nn.ReLU()]
                inputs = outputs
            parts.append(nn.MaxPool2d(2))
        linear = draw.linear(inputs * rows * columns, classes, 0.01)
        self.layers = nn.Sequential(*parts, nn.Flatten(), linear)
        self.double()

    def forward(self, x):
        return self.layers(x)


class ResNet(nn.Module):
    """A convolution, three or so stages of residual blocks, the mean over the image, one Linear.

    layers: blocks of each stage; stage k has width 2^k channels (4 times as many with bottlenecks)
    and, from the second on, half the size. Shortcuts are identities, or 1 x 1 convolutions with
    batch normalization where the shape changes. Inputs (n, *shape), shape (c, h, w); outputs (n,
    classes). Convolutions N(0, 2/(k^2 channels out)), without biases. ResNet-32: [5, 5, 5], width
    16. He et al.'s ResNet-110: [18, 18, 18], width 16; with bottleneck=True these are 164 layers,
    which is what the code called ResNet-110 until January 2019.
    """

    def __init__(self, layers, width, *, shape, classes, seed, bottleneck=False):
        super().__init__()
        draw = Drawn(seed)
        inputs = width
        parts = [_conv(draw, shape[0], width, 3), nn.BatchNorm2d(width), nn.ReLU()]
        for k, count in enumerate(layers):
            for j in range(count):
                stride = 2 if k > 0 and j == 0 else 1
                block = _Block(draw, inputs, width * 2**k, stride, bottleneck)
                parts.append(block)
                inputs = block.outputs
        linear = nn.Linear(inputs, classes)
        linear.weight = nn.Parameter(draw.uniform(classes, inputs) * inputs**-0.5)
        linear.bias = nn.Parameter(draw.uniform(classes) * inputs**-0.5)
        self.layers = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), linear)
        self.double()

    def forward(self, x):
        return self.layers(x)


class _Block(nn.Module):
    """ReLU(shortcut(x) + f(x)), f of two 3 x 3 convolutions, or of 1 x 1, 3 x 3, 1 x 1.

    The latter, a bottleneck, has 4 width channels at its end.
    """

    def __init__(self, draw, inputs, width, stride, bottleneck):
        super().__init__()
        self.outputs = 4 * width if bottleneck else width
        convolutions = [(width, 3, stride), (width, 3, 1)]  # channels out, kernel, stride
        if bottleneck:
            convolutions = [(width, 1, 1), (width, 3, stride), (self.outputs, 1, 1)]
        parts = []
        before = inputs
        for after, kernel, step in convolutions:
            parts += [_conv(draw, before, after, kernel, step), nn.BatchNorm2d(after), nn.ReLU()]
            before = after
        self.f = nn.Sequential(*parts[:-1])
        self.shortcut = nn.Sequential()
        if stride > 1 or inputs != self.outputs:
            fitting = _conv(draw, inputs, self.outputs, 1, stride)
            self.shortcut = nn.Sequential(fitting, nn.BatchNorm2d(self.outputs))

    def forward(self, x):
        return torch.relu(self.shortcut(x) + self.f(x))


def _conv(draw, inputs, outputs, kernel, stride=1):
    std = (2 / (kernel**2 * outputs)) ** 0.5
    return draw.conv(inputs, outputs, std, kernel, stride)


@dataclass(frozen=True)
class Original:
    """A net of the paper: its name there, family, parts of its stages, channels of the first."""

    title: str
    family: str
    layers: tuple
    width: int


ORIGINALS = {
    "vgg19": Original("VGG19", "vgg", (2, 2, 4, 4, 4), 64),
    "resnet32": Original("ResNet-32", "basic", (5, 5, 5), 16),
    # as the cited code had it: 164 layers
    "resnet110": Original("ResNet-110", "bottleneck", (18, 18, 18), 16),
    "resnet110-basic": Original("ResNet-110 of basic blocks", "basic", (18, 18, 18), 16),
}


def cifar_net(name, layers, width, *, shape, classes, seed):
    """A net of the family of the paper's net `name`, in float64.

    name: vgg19, resnet32, resnet110, resnet110-basic.
    """
    if name not in ORIGINALS:
        raise ParameterError(f"unknown net {name!r}; there are {', '.join(ORIGINALS)}")
    family = ORIGINALS[name].family
    options = {"shape": shape, "classes": classes, "seed": seed}
    if family == "vgg":
        return VGG(layers, width, **options)
    return ResNet(layers, width, bottleneck=family == "bottleneck", **options)


def net_title(name, layers, width):
    """What a figure calls the net of `cifar_net`: the paper's name, or what stands in for it."""
    original = ORIGINALS[name]
    if (tuple(layers), width) == (original.layers, original.width):
        return original.title
    parts = "convolutions" if original.family == "vgg" else "blocks"
    return f"{sum(layers)} {parts} from {width} channels for {original.title}"


class LeakyCNN(nn.Module):
    """Four 3 x 3 convolutions and two linear layers, leaky units of slope `alpha` between.

    Convolutions 1, 2, pooling, 3, 4, pooling (maxima of 2 x 2), flattening, Linear(width size^2/16,
    hidden), Linear to `classes`. Inputs (n, channels, size, size), or flattened; outputs (n,
    classes). Weights N(0, 2/fan in), the last layer's N(0, 1/classes); all are trained. The
    defaults are the paper's.
    Source: Guo et al. 2024, Table 7.
    """

    def __init__(
        self, alpha, seed, *, channels=3, size=32, width=512, hidden=512, classes=10, bias=False
    ):
        super().__init__()
        draw = Drawn(seed, bias)
        self.shape = (channels, size, size)
        layers = []
        for k, inputs in enumerate((channels, width, width, width)):
            layers += [draw.conv(inputs, width, (2 / (9 * inputs)) ** 0.5), LeakyUnit(alpha)]
            if k in (1, 3):
                layers.append(nn.MaxPool2d(2))
        head = draw.head(width * (size // 4) ** 2, hidden, classes, alpha, "in")
        self.layers = nn.Sequential(*layers, nn.Flatten(), head)

    def forward(self, x):
        return self.layers(x.reshape(len(x), *self.shape))
