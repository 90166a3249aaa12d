"""The classification tasks of the landscape figures: CIFAR-10, CIFAR-100, wrong labels, or digits for them."""

import dataclasses

import numpy as np
import torch
from torch.nn.functional import avg_pool2d

from ..data import DataSet, load
from ..errors import ParameterError

TASKS = {"c10": "CIFAR-10", "c100": "CIFAR-100", "noise": "CIFAR-10, 20 % wrong labels"}
# mean and standard deviation per channel that the training code of Allen-Zhu et al. 2019 uses for both CIFARs
CIFAR_SCALE = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))


@dataclasses.dataclass(frozen=True)
class ImageTask:
    """Images x, x_test (n, c, h, w) in [0, 1], class numbers y, y_test (n,), and what they are made of.

    scale: (mean, std), each (c, 1, 1); wrong: (n,), which labels have been replaced.
    """

    x: torch.Tensor
    y: torch.Tensor
    x_test: torch.Tensor
    y_test: torch.Tensor
    classes: int
    scale: tuple
    wrong: torch.Tensor
    data: DataSet

    def scaled(self, x):
        """Images as the net takes them."""
        return (x - self.scale[0]) / self.scale[1]


def title(name, task, net):
    """What a figure says of a task's data and of the net, by its name; task: None where there are no data."""
    if task is None:
        return f"{TASKS[name]}: not testable here (not downloaded)"
    if task.data.stand_in:
        return f"{task.data.stand_in}" + (", 20 % wrong labels" if name == "noise" else "") + f"; {net}"
    size = "" if len(task.y) == 50_000 else f" ({len(task.y):,} images, {task.x.shape[-2]} x {task.x.shape[-1]})"
    return f"{TASKS[name]}{size}; {net}"


def image_task(name, images, *, n, n_test, size, seed, noise=0.2, dtype=torch.float64, device="cpu"):
    """The task "c10", "c100" or "noise" with n training images, the same number of each class, as ImageTask.

    images: "cifar" (pooled from 32 x 32 to `size`), or "digits" in its place: the central 24 x 24 pixels of MNIST's,
    pooled to size x size, and for c100 two of them side by side, size x 2 size, one class per pair of digits.
    noise: the share of training labels that "noise" replaces by another class each. Raises ParameterError.
    """
    if name not in TASKS or images not in ("cifar", "digits"):
        raise ParameterError(f"task {name!r} of {images!r}: there are {', '.join(TASKS)} of cifar and digits")
    make = _digits if images == "digits" else _cifar
    data, x, y, x_test, y_test, classes = make(name, n, n_test, size, seed, dtype)
    wrong = torch.zeros(len(y), dtype=torch.bool)
    if name == "noise":
        y, wrong = relabelled(y, noise, classes, seed)
    mean, std = CIFAR_SCALE if images == "cifar" else ((x.mean().item(),), (x.std().item(),))
    scale = tuple(torch.tensor(v, dtype=dtype, device=device)[:, None, None] for v in (mean, std))
    tensors = [t.to(device) for t in (x, y, x_test, y_test)]
    return ImageTask(*tensors, classes, scale, wrong, data)


def _cifar(name, n, n_test, size, seed, dtype):
    source, classes = ("cifar100", 100) if name == "c100" else ("cifar10", 10)
    drawn = None if n >= 50_000 else min(2 * n + 50 * classes, 50_000)
    data = load(source, n_train=drawn, n_test=n_test, seed=seed, transform="raw", dtype=dtype)
    x, x_test = (part.reshape(len(part), 3, 32, 32) for part in (data.x_train, data.x_test))
    y, y_test = data.y_train.long(), data.y_test.long()
    if drawn is not None:
        rows = balanced(y, n, classes)
        x, y = x[rows], y[rows]
    return data, pooled(x, size), y, pooled(x_test, size), y_test, classes


def _digits(name, n, n_test, size, seed, dtype):
    data = load("mnist-5k", n_train=min(2 * n + 500, 4000), n_test=1000, seed=seed, transform="raw", dtype=dtype)
    x, x_test = (pooled(part[..., 2:26, 2:26], size) for part in (data.x_train, data.x_test))
    y, y_test = data.y_train.long(), data.y_test.long()
    if name == "c100":
        data = _standing_in(data, "mnist-5k pairs", "pairs of handwritten digits (100 classes) for CIFAR-100")
        return data, *pairs(x, y, n, seed), *pairs(x_test, y_test, max(n_test, 100), seed + 1), 100
    rows = balanced(y, n, 10)
    data = _standing_in(data, "mnist-5k", "handwritten digits for CIFAR-10")
    return data, x[rows], y[rows], x_test[:n_test], y_test[:n_test], 10


def _standing_in(data, name, what):
    return dataclasses.replace(data, name=name, stand_in=what)


def pooled(x, size):
    """Images (n, c, h, h) averaged over squares, to (n, c, size, size). Raises ParameterError: no such squares."""
    if x.shape[-1] % size:
        raise ParameterError(f"images of {x.shape[-1]} pixels cannot be pooled to {size}")
    return x if x.shape[-1] == size else avg_pool2d(x, x.shape[-1] // size)


def balanced(y, n, classes):
    """Numbers of the first n/classes rows of each class, in their order. Raises ParameterError: too few, or odd."""
    share, odd = divmod(n, classes)
    rows = [(y == k).nonzero()[:share, 0] for k in range(classes)]
    if odd or min(map(len, rows)) < share:
        raise ParameterError(f"{n} rows of {classes} classes, equally many, are not to be had from {len(y)} rows")
    return torch.cat(rows).sort().values


def pairs(x, y, n, seed):
    """n images (n, c, h, 2 h) of two rows of x side by side, every pair of classes (a, b) equally often: 10 a + b.

    x: (N, c, h, h), y: (N,) digits. Rows of a class are drawn with replacement. Raises ParameterError unless 100 | n.
    """
    if n % 100:
        raise ParameterError(f"{n} images of 100 classes, equally many: n must be a multiple of 100")
    draw, labels = np.random.default_rng(seed), np.tile(np.arange(100), n // 100)
    members = [np.flatnonzero(y.numpy() == k) for k in range(10)]
    left, right = ([draw.choice(members[k]) for k in digits] for digits in (labels // 10, labels % 10))
    return torch.cat([x[torch.as_tensor(left)], x[torch.as_tensor(right)]], -1), torch.as_tensor(labels)


def relabelled(y, share, classes, seed):
    """(labels, which are wrong): exactly round(share n) of the labels y (n,), at random, replaced by another class.

    The other class is uniform among the classes - 1 wrong ones.
    """
    draw = torch.Generator().manual_seed(seed + 20)
    chosen = torch.randperm(len(y), generator=draw)[: round(share * len(y))]
    shift = torch.randint(1, classes, (len(chosen),), generator=draw)
    noisy, wrong = y.clone(), torch.zeros(len(y), dtype=torch.bool)
    noisy[chosen], wrong[chosen] = (y[chosen] + shift) % classes, True
    return noisy, wrong
