"""The training objective near a point of a training: along its gradient, and along its most negative curvature.

Source: Allen-Zhu et al. 2019, Figures 1 to 7. What the paper leaves open is a field of `Probe`.
"""

import contextlib
import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.func import functional_call
from torch.nn.functional import avg_pool2d, cross_entropy

from ..data import DataSet, load
from ..errors import ParameterError
from ..norms import largest_singular
from ..theory import curvature
from ..training.checkpoints import training_key

TASKS = {"c10": "CIFAR-10", "c100": "CIFAR-100", "noise": "CIFAR-10, 20 % wrong labels"}
# mean and standard deviation per channel that the training code of Allen-Zhu et al. 2019 uses for both CIFARs
CIFAR_SCALE = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
LINE = 25  # step lengths that the best gradient step is chosen from, from 1e-4 |W| to |W|
FRESH = 8  # samples of the Rayleigh quotient
WARM = 8  # power steps before Oja's method


@dataclass(frozen=True)
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
    return replace(data, name=name, stand_in=what)


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
    """n images (n, c, h, 2 h): pairs of x (N, c, h, h) of each (a, b) equally often, labels 10 a + b."""
    if n % 100:
        raise ParameterError(f"{n} images of 100 classes, equally many: n must be a multiple of 100")
    draw, labels = np.random.default_rng(seed), np.tile(np.arange(100), n // 100)
    members = [np.flatnonzero(y.numpy() == k) for k in range(10)]
    left, right = ([draw.choice(members[k]) for k in digits] for digits in (labels // 10, labels % 10))
    return torch.cat([x[torch.as_tensor(left)], x[torch.as_tensor(right)]], -1), torch.as_tensor(labels)


def relabelled(y, share, classes, seed):
    """(labels, which are wrong): round(share n) of y (n,) replaced by another class, uniformly."""
    draw = torch.Generator().manual_seed(seed + 20)
    chosen = torch.randperm(len(y), generator=draw)[: round(share * len(y))]
    shift = torch.randint(1, classes, (len(chosen),), generator=draw)
    noisy, wrong = y.clone(), torch.zeros(len(y), dtype=torch.bool)
    noisy[chosen], wrong[chosen] = (y[chosen] + shift) % classes, True
    return noisy, wrong


@dataclass(frozen=True)
class Probe:
    """How a point is looked at. smoothing: |u|/|W| of the displacements u; radius: of the differences of gradients,
    over |W|; oja_batch: images of each of Oja's steps; oja_doublings: how often its steps may be doubled where it falls
    short of Lanczos by half; displacements: that Lanczos' operator is averaged over; grid: points of the surface along
    each axis, 4 k + 1 so that +-alpha* are among them; cuts have 2 grid - 1.
    """

    smoothing: float = 0.02
    radius: float = 0.02
    oja_steps: int = 150
    oja_batch: int = 256
    oja_doublings: int = 2
    lanczos_steps: int = 25
    displacements: int = 4
    grid: int = 13


class Objective:
    """F(W), the mean cross entropy of a net over images x (n, c, h, w) as it takes them, y (n,), without augmentation.

    bn: normalization by the statistics of each chunk of `chunk` images ("batch"), or by those of the training ("eval").
    `net` is copied; `state` gives its parameters and running statistics. Weights are vectors W (P,).
    """

    def __init__(self, net, x, y, *, bn="batch", chunk=1000):
        if bn not in ("batch", "eval"):
            raise ParameterError(f"bn must be batch or eval, not {bn!r}")
        self.net, self.y, self.chunk = copy.deepcopy(net).eval(), y, chunk
        self.x = x.contiguous(memory_format=torch.channels_last) if x.device.type == "cpu" else x  # faster there
        self.flat = curvature.Flat(dict(self.net.named_parameters()))
        for module in self.net.modules():
            if bn == "batch" and isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean = module.running_var = None  # then torch takes the batch's own, in eval mode too

    def logits(self, w, x):
        return functional_call(self.net, self.flat(w), (x,))

    def loss(self, w, x, y):
        """Mean over the given images, in float64 from the logits on: small losses keep their digits."""
        return cross_entropy(self.logits(w, x).double(), y)

    def chunks(self, rows=slice(None)):
        return zip(self.x[rows].split(self.chunk), self.y[rows].split(self.chunk), strict=True)

    @torch.no_grad()
    def value(self, w):
        """F(w), float64."""
        return sum(self.loss(w, x, y) * len(y) for x, y in self.chunks()) / len(self.y)

    @torch.no_grad()
    def accuracy(self, w):
        """Share of the images whose largest logit is that of the label, float64."""
        return torch.cat([self.logits(w, x).argmax(1) == y for x, y in self.chunks()]).double().mean()

    def gradient(self, w, rows=slice(None)):
        """The gradient of F (P,), or of the mean over some of the images, chunk by chunk."""
        parts, count = [], 0
        for x, y in self.chunks(rows):
            part = curvature.value_and_gradient(lambda v, x=x, y=y: self.loss(v, x, y), w)[1]
            parts, count = [*parts, part * len(y)], count + len(y)
        return sum(parts) / count


@contextlib.contextmanager
def full_float32():
    """No TF32 on a GPU inside: its rounding would drown differences of gradients."""
    settings = (torch.backends.cudnn.conv, torch.backends.cuda.matmul)
    before = [part.fp32_precision for part in settings]
    try:
        for part in settings:
            part.fp32_precision = "ieee"
        yield
    finally:
        for part, value in zip(settings, before, strict=True):
            part.fp32_precision = value


def landscape(objective, w, probe, seed):
    """{name: float64 tensor on the CPU} of the objective around W = w (P,), by `probe`.

    F, accuracy, gradient |grad F|, weights |W|, lambda_max, lambda_lanczos (lowest, of its fixed displacements),
    lambda_lanczos_fresh (Rayleigh quotient of its direction, fresh samples), lambda_min and its standard error
    lambda_min_se (Oja's direction, fresh samples), lambda_g along the gradient, cosine |cos(g, v)|, oja_steps;
    alpha (best step along -g), D_g, D_v1 and D_v2 (along v at lengths up to alpha and 2 alpha), D_rand (up to 2 alpha);
    at (of cuts and grid: multiples of alpha), cut_g, cut_v, cut_rand; at_grid, surface (y, x), D_2D. D are decreases.
    """
    draw = torch.Generator(w.device if w.device.type == "cuda" else "cpu").manual_seed(seed)
    with full_float32():
        value, gradient = objective.value(w), objective.gradient(w)
        g = gradient / gradient.norm()
        bent, v = _curvatures(objective, w, g, probe, draw)
        straight = _lengths(objective, w, g, v, _normal(w, draw, 1.0), value, probe.grid)
        reach = straight.pop("reach")
        at_grid = torch.linspace(-2, 2, probe.grid, dtype=torch.float64)
        surface = curvature.surface(objective.value, w, g, v, *[(at_grid * reach).tolist()] * 2)
    found = {"F": value, "accuracy": objective.accuracy(w), "gradient": gradient.norm(), "weights": w.norm()}
    found |= {**bent, **straight, "at_grid": at_grid, "surface": surface}
    found["D_2D"] = (value - surface.min()).clamp(min=0)
    return {name: torch.as_tensor(x).detach().double().cpu() for name, x in found.items()}


def _normal(w, draw, std):
    return std * torch.randn(w.shape, generator=draw, dtype=w.dtype, device=draw.device).to(w.device)


def _curvatures(objective, w, g, probe, draw):
    """Curvatures at w and Oja's direction v (P,), which points away from the descent along the gradient."""
    radius, std = probe.radius * w.norm(), probe.smoothing * w.norm() / len(w) ** 0.5

    def sample(v):
        """A fresh estimate of the smoothed Hessian's product with v: another displacement, another batch."""
        rows = torch.randperm(len(objective.y), generator=draw, device=draw.device)[: probe.oja_batch].to(w.device)
        at = w + _normal(w, draw, std)
        return curvature.difference_product(lambda u: objective.gradient(u, rows), at, radius)(v)

    displacements = [_normal(w, draw, std) for _ in range(probe.displacements)]
    reference = curvature.smoothed_product(objective.gradient, w, radius, displacements)
    values, (ritz, _) = curvature.lanczos(reference, _normal(w, draw, 1.0), probe.lanczos_steps)
    rate, v = 1 / _largest(sample, _normal(w, draw, 1.0)), _normal(w, draw, 1.0)
    for doubling in range(1 + probe.oja_doublings):
        steps = probe.oja_steps * 2**doubling
        v = curvature.oja(sample, v, steps, rate, done=steps // 2 if doubling else 0)
        lowest, error = curvature.rayleigh([sample] * FRESH, v)
        if not needs_more(lowest, values):
            break
    v = torch.where(v @ g < 0, -v, v)
    anew, _ = curvature.rayleigh([sample] * FRESH, ritz)
    found = {"lambda_max": values[-1], "lambda_lanczos": values[0], "lambda_min": lowest, "lambda_min_se": error}
    found |= {
        "lambda_lanczos_fresh": anew,
        "lambda_g": g @ reference(g),
        "cosine": v @ g,
        "oja_steps": float(steps),
        "q": radius,
        "sigma": std,
    }
    return found, v


def _largest(product, start):
    """The eigenvalue of largest modulus, in modulus, by WARM products: a lower bound in the mean."""
    return largest_singular(product, lambda v: v, start, WARM - 1)[0]


def needs_more(rayleigh, values):
    """Whether Oja's method misses half of a lowest eigenvalue that matters: one below -0.01 of the largest."""
    return bool(values[0] < -0.01 * values[-1]) and bool(rayleigh > 0.5 * values[0])


def _lengths(objective, w, g, v, random, value, grid):
    """Decreases along the gradient, along v and along a random direction; reach: the length of the best step."""
    steps = torch.logspace(-4, 0, LINE, dtype=torch.float64) * w.norm().double().cpu()
    line = curvature.cut(objective.value, w, -g, steps.tolist())
    reach = steps[int(line.argmin())]
    at = torch.linspace(-2, 2, 2 * grid - 1, dtype=torch.float64)
    along = {"g": g, "v": v, "rand": random / random.norm()}
    cuts = {name: curvature.cut(objective.value, w, d, (at * reach).tolist()).cpu() for name, d in along.items()}
    value, near = value.cpu(), at.abs() <= 1 + 1e-9

    def decrease(values):
        return (value - values.min()).clamp(min=0)

    return {
        "reach": reach, "alpha": reach, "D_g": decrease(line.cpu()), "D_v1": decrease(cuts["v"][near]),
        "D_v2": decrease(cuts["v"]), "D_rand": decrease(cuts["rand"]), "at": at,
        **{f"cut_{name}": values for name, values in cuts.items()},
    }  # fmt: skip


def landscapes(net, course, x, y, probe, *, bn="batch", chunk=1000, seed=0, checkpoint=None):
    """`landscape` at the snapshots of a training (a `Course` with epoch 0): {name: (S, ...) array}, with `epoch` (S,).

    distance: |W - W(0)|/|W(0)|; parameters: P. x, y: the images of F, as the net takes them. checkpoint: a `Checkpoint`
    of finished snapshots.
    """
    epochs, rows = sorted(epoch for epoch in course.states if epoch), []
    objective = Objective(net, x, y, bn=bn, chunk=chunk)
    start = objective.flat.vector(course.states[0])
    for epoch in epochs:
        state = course.states[epoch]
        w = objective.flat.vector(state)
        key = checkpoint and training_key([vars(probe), bn, chunk, seed, epoch], [x, y, w])
        done, found = checkpoint.load(f"epoch{epoch}", key) if checkpoint else (0, {})
        if done == 0:
            _running(objective, state, bn)
            found = landscape(objective, w.to(x), probe, seed + epoch)
            found["distance"] = ((w - start).norm() / start.norm()).double()
            found["parameters"] = torch.tensor(float(len(w)), dtype=torch.float64)
            if checkpoint:
                checkpoint.save(f"epoch{epoch}", key, -1, found)
        rows.append(found)
    return _table(epochs, rows)


def _table(epochs, rows):
    return {"epoch": np.array(epochs), **{name: torch.stack([row[name] for row in rows]).numpy() for name in rows[0]}}


def gradients(net, course, x, y, *, bn="batch", chunk=1000):
    """{epoch (S,), F (S,), gradient (S,): |grad F|} at all states of a training. x, y: the images of F, scaled."""
    objective, rows = Objective(net, x, y, bn=bn, chunk=chunk), []
    for state in course.states.values():
        _running(objective, state, bn)
        w = objective.flat.vector(state).to(x)
        with full_float32():
            row = {"F": objective.value(w), "gradient": objective.gradient(w).norm()}
        rows.append({name: v.double().cpu() for name, v in row.items()})
    return _table(list(course.states), rows)


def _running(objective, state, bn):
    """Put the running statistics of a state into the objective's net, where it uses them."""
    if bn == "eval":
        own = objective.net.state_dict()
        objective.net.load_state_dict({name: t.to(own[name]) for name, t in state.items()})
