"""Which slope of leaky ReLU to use: a factorial experiment around the nets of Guo et al. 2024, and its comparisons.

A cell of the experiment is one combination of data set, depth, width, loss, optimizer, biases and batch norm. Within it
every slope is trained at every step size of a grid and every seed; seeds are paired over slopes and step sizes.
"""

import itertools
from collections import Counter
from typing import NamedTuple

import numpy as np
import torch
from scipy import stats

from ..errors import ParameterError
from ..models.leaky import LeakyMLP
from ..training import Checkpoint
from ..training.checkpoints import training_key

OPTIMIZERS = ("GD", "SGD", "Adam")
LOSSES = ("squared", "logistic")
BETAS, EPSILON = (0.9, 0.999), 1e-8  # of Adam: the values of Kingma and Ba 2015
FLOOR = 1e-5  # added to a batch's variance, in units of the variance 2/m that a pre-activation has at first
DIVERGED = 2  # times the loss at the start: a run that ends above has diverged
ENTRIES = {"cpu": 2**19, "cuda": 2**27}  # of one layer's activations that are computed together


class Cell(NamedTuple):
    """One combination of the factors; biases and batch_norm are "without" or "with"."""

    data: str
    depth: int
    width: int
    loss: str
    optimizer: str
    biases: str
    batch_norm: str


def fraction(factors):
    """A regular fraction of a factorial experiment, balanced over every pair of factors.

    factors: {name: levels}. Factors are grouped by their number q of levels; of a group with three factors or more the
    combinations stay whose level numbers (from 0) add up to 0 modulo q, of a smaller group all. With k factors a group
    shrinks by q and has resolution k (main effects of its factors are clear of each other for k >= 3, and of each
    other's two-factor interactions for k >= 4); factors of different groups are crossed in full.
    Returns a list of {name: level}. Source: Finney 1945; Box and Hunter 1961.
    """
    sizes = Counter(len(levels) for levels in factors.values())
    cells = []
    for cell in full(factors):
        sums = Counter()
        for name, level in cell.items():
            sums[len(factors[name])] += factors[name].index(level)
        if all(sums[q] % q == 0 for q, count in sizes.items() if count >= 3):
            cells.append(cell)
    return cells


def full(factors):
    """All combinations of {name: levels}, as a list of {name: level}."""
    return [dict(zip(factors, chosen, strict=True)) for chosen in itertools.product(*factors.values())]


def targets(datasets, loss):
    """(y_train (S, n, d), y_test (S, n_test, d)), float64, of one `DataSet` per seed, for a loss of `LOSSES`.

    Class numbers become one-hot rows for both losses. Numbers stay what they are for the squared loss (d = 1); for the
    logistic one they become +1 above the median of the seed's training targets and -1 otherwise.
    """
    numbers = datasets[0].y_train.is_floating_point()
    if not numbers:
        classes = 1 + max(int(y.max()) for data in datasets for y in (data.y_train, data.y_test))

    def encoded(y, data):
        if not numbers:
            return torch.nn.functional.one_hot(y, classes).double()
        if loss == "logistic":
            y = torch.where(y > data.y_train.median(), 1.0, -1.0)
        return y.double()[:, None]

    y_train = torch.stack([encoded(data.y_train, data) for data in datasets])
    return y_train, torch.stack([encoded(data.y_test, data) for data in datasets])


def loss_and_derivative(kind, u, y):
    """Mean loss over examples (...) and its derivative by the outputs u (..., n, d), for targets y (S, n, d).

    squared: |u - y|^2 / 2. logistic: log(1 + exp(-y u)) for d = 1 and y = +1 or -1, the cross entropy of the softmax
    for one-hot y otherwise.
    """
    n = y.shape[-2]
    if kind == "squared":
        residual = u - y
        return residual.square().sum((-2, -1)) / (2 * n), residual / n
    if y.shape[-1] == 1:
        margins = u * y
        return torch.nn.functional.softplus(-margins).mean((-2, -1)), torch.sigmoid(-margins) * y / -n
    logs = torch.log_softmax(u, -1)
    return -(logs * y).sum((-2, -1)) / n, (logs.exp() - y) / n


class LeakRuns:
    """The net of `LeakyMLP` with biases and batch norm, for runs (G, S): settings (slope, step size) times seeds.

    z_l = W_l h_{l-1}; with batch norm z_l becomes g_l (z_l - mean) / sqrt(variance + floor) over the examples that are
    passed together, g_l trained and sqrt(2/m) at first, the scale of z_l without it; with biases b_l is added, trained
    and 0 at first; then the rescaled leaky ReLU. W_l, g_l and b_l are trained, A and B are not.
    Source: Guo et al. 2024, Algorithm 1, eq. (2); biases and batch norm are ours (Ioffe and Szegedy 2015).
    """

    def __init__(self, net, alphas, *, biases=False, batch_norm=False):
        """net: a `LeakyMLP` of one run per seed, whose draws are taken; alphas: G slopes."""
        G, (S, L, m, _) = len(alphas), net.W.shape
        alpha = torch.tensor(alphas, dtype=torch.float64)[:, None, None, None]
        norm = torch.sqrt(1 + alpha**2)
        self.positive, self.negative = ((t / norm).to(net.W) for t in (torch.ones_like(alpha), alpha))
        self.B, self.floor = net.B, FLOOR * 2 / m
        self.W = [W.expand(G, S, m, m).clone() for W in net.W.unbind(1)]
        row = net.W.new_zeros(G, S, 1, m)
        self.shift = [row.clone() for _ in range(L)] if biases else None
        self.gain = [row + (2 / m) ** 0.5 for _ in range(L)] if batch_norm else None

    @property
    def weights(self):
        """All trained tensors, in the order of `gradients`."""
        return [*self.W, *(self.gain or []), *(self.shift or [])]

    def forward(self, h, rows=None):
        """Outputs (G, S, b, d) for h_0 (S, b, m); batch norm takes the moments of the first `rows` examples."""
        self.tape = []
        for l, W in enumerate(self.W):
            z, scale = h @ W.mT, None
            if self.gain:
                seen = z[..., :rows, :]
                mean = seen.mean(-2, keepdim=True)
                scale = ((seen - mean).square_().mean(-2, keepdim=True) + self.floor).rsqrt_()
                normal = (z - mean).mul_(scale)
                z = normal * self.gain[l]
            if self.shift:
                z += self.shift[l]
            slope = torch.where(z > 0, self.positive, self.negative)
            self.tape.append((h, slope, normal, scale) if self.gain else (h, slope))
            h = z.mul_(slope)
        return h @ self.B.mT

    def gradients(self, v):
        """Gradients of sum v . f by `weights`, for v (G, S, b, d). After `forward` of a batch."""
        delta, by_W, by_gain, by_shift = v @ self.B, [], [], []
        for l in reversed(range(len(self.W))):
            h, slope, *norm = self.tape[l]
            delta.mul_(slope)
            if self.gain or self.shift:
                by_shift.append(delta.sum(-2, keepdim=True))
            if self.gain:
                normal, scale = norm
                by_gain.append((delta * normal).sum(-2, keepdim=True))
                delta = (delta - (by_shift[-1] + normal * by_gain[-1]) / delta.shape[-2]) * (self.gain[l] * scale)
            by_W.append(delta.mT @ h)
            delta = delta @ self.W[l] if l else None
        return [*by_W[::-1], *by_gain[::-1], *(by_shift[::-1] if self.shift else [])]


class Optimizer:
    """Steps along the negative gradient (GD and SGD), or those of Adam, in place; eta: one step size per setting."""

    def __init__(self, weights, eta, adam):
        self.weights, self.eta, self.steps = weights, torch.tensor(eta, dtype=torch.float64), 0
        self.eta = self.eta.to(weights[0])[:, None, None, None]
        self.moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in weights] if adam else None

    def step(self, gradients):
        self.steps += 1
        if not self.moments:
            for weight, gradient in zip(self.weights, gradients, strict=True):
                weight.sub_(gradient.mul_(self.eta))
            return
        first, second = (1 - beta**self.steps for beta in BETAS)
        for weight, gradient, (mean, square) in zip(self.weights, gradients, self.moments, strict=True):
            mean.lerp_(gradient, 1 - BETAS[0])
            square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
            size = (square / second).sqrt_().add_(EPSILON)
            weight.sub_(size.reciprocal_().mul_(mean).mul_(self.eta / first))


def step_unit(cell, d):
    """The unit of a cell's step sizes, about which their grid is centred. d: outputs.

    c d/(m L) for GD and SGD, the order at which the largest eigenvalue of the tangent kernel lets them go, and c/(m L)
    for Adam; the numbers c were found by trial. Theorem 3.1 of Guo et al. 2024 allows O(d/(n L^2 m)) for a sum over n.
    """
    norm = cell.batch_norm == "with"
    if cell.optimizer == "Adam":
        return (4 if norm else 1) / (cell.width * cell.depth)
    return (128 if norm and cell.loss == "logistic" else 8) * d / (cell.width * cell.depth)


def batches(n, size, steps, seed, optimizer):
    """`steps` index tensors: all of range(n) for GD (None), else consecutive batches of shuffled passes over the data.

    Shared by all runs: rows differ between seeds anyway.
    """
    if optimizer == "GD":
        return [None] * steps
    generator = torch.Generator().manual_seed(seed)
    passes = (torch.randperm(n, generator=generator).split(size) for _ in range(steps))
    return list(itertools.islice((index for rows in passes for index in rows if len(index) == size), steps))


def train_cell(cell, datasets, seeds, *, alphas, multiples, refine, steps, batch, dtype, device="cpu"):
    """Final losses of a cell: {"train", "test"}, each (A, E, S), their step sizes "multiple" (A, E), rising, and the
    training losses before the first step, "start" (A, S).

    datasets: one `DataSet` per seed; multiples: step sizes in `step_unit` that all A slopes get; refine: factors, by
    each of which the step size that is best so far is then multiplied and divided, for every slope on its own; steps:
    updates; batch: examples of a batch for SGD and Adam. Losses are those of all training or test examples after the
    last step, batch norm having the moments of the training set; NaN or infinite where a run has diverged. float64.
    """
    if cell.optimizer not in OPTIMIZERS or cell.loss not in LOSSES:
        raise ParameterError(f"there is no optimizer {cell.optimizer!r} or no loss {cell.loss!r}")
    task = _Task(cell, datasets, seeds, steps, batch, dtype, device)
    tried = np.tile(np.asarray(multiples, dtype=float), (len(alphas), 1))
    start, losses = task.start(alphas), task.run(alphas, tried)
    for factor in refine:
        best = np.take_along_axis(tried, tuned(losses[0], start)[:, None], 1)
        more = best * [1 / factor, factor]
        tried, losses = np.concatenate([tried, more], 1), np.concatenate([losses, task.run(alphas, more)], 2)
    order = tried.argsort(1)
    losses = np.take_along_axis(losses, order[None, :, :, None], 2)
    multiple = np.take_along_axis(tried, order, 1)
    return {"train": losses[0], "test": losses[1], "multiple": multiple, "start": start}


class _Task:
    """What all runs of a cell share: first-layer inputs, targets, draws and batches."""

    def __init__(self, cell, datasets, seeds, steps, batch, dtype, device):
        self.cell = cell
        self.y, self.y_test = (t.to(device, dtype) for t in targets(datasets, cell.loss))
        x, x_test = (torch.stack([getattr(d, k) for d in datasets]).to(device, dtype) for k in ("x_train", "x_test"))
        runs = {"alphas": [0.0] * len(seeds), "seeds": list(seeds), "dtype": dtype, "device": device}
        self.net = LeakyMLP(x.shape[-1], cell.width, self.y.shape[-1], cell.depth, **runs)
        self.h, self.h_test = (t @ self.net.A[self.net.draw].mT for t in (x, x_test))
        order = batches(x.shape[1], batch, steps, seeds[0], cell.optimizer)
        self.order = [index if index is None else index.to(device) for index in order]
        self.options = {"biases": cell.biases == "with", "batch_norm": cell.batch_norm == "with"}

    def start(self, alphas):
        """Training losses (A, S) before the first step."""
        outputs = LeakRuns(self.net, list(alphas), **self.options).forward(self.h)
        return loss_and_derivative(self.cell.loss, outputs, self.y)[0].double().cpu().numpy()

    def run(self, alphas, multiples):
        """Final losses (2, A, E, S) at the step sizes multiples (A, E)."""
        unit, count = step_unit(self.cell, self.y.shape[-1]), multiples.shape[1]
        settings = [(alpha, unit * k) for alpha, row in zip(alphas, multiples, strict=True) for k in row]
        together = max(1, ENTRIES["cpu" if self.h.device.type == "cpu" else "cuda"] // self.h.numel())
        parts = [self._train(settings[i : i + together]) for i in range(0, len(settings), together)]
        return np.concatenate(parts, 1).reshape(2, len(alphas), count, -1)

    def _train(self, settings):
        cell, h, y = self.cell, self.h, self.y
        runs = LeakRuns(self.net, [alpha for alpha, _ in settings], **self.options)
        optimizer = Optimizer(runs.weights, [eta for _, eta in settings], cell.optimizer == "Adam")
        for index in self.order:
            part, goal = (h, y) if index is None else (h[:, index], y[:, index])
            _, derivative = loss_and_derivative(cell.loss, runs.forward(part), goal)
            optimizer.step(runs.gradients(derivative))
        n = h.shape[1]
        outputs = runs.forward(torch.cat([h, self.h_test], 1), n)
        train, _ = loss_and_derivative(cell.loss, outputs[..., :n, :], y)
        test, _ = loss_and_derivative(cell.loss, outputs[..., n:, :], self.y_test)
        return torch.stack([train, test]).double().cpu().numpy()


def train_cells(cells, datasets, seeds, checkpoint=None, **options):
    """`train_cell` for all cells: {"train", "test"}, each (C, A, E, S), "multiple" (C, A, E), "start" (C, A, S).

    datasets: {name: one `DataSet` per seed}; checkpoint: path stem under which each cell's losses are kept.
    """
    saved, parts = checkpoint and Checkpoint(checkpoint), []
    for i, cell in enumerate(cells):
        sets = datasets[cell.data]
        settings = [list(cell), list(seeds), str({**options, "device": ""})]
        key = saved and training_key(settings, [d.x_train for d in sets])
        done, result = saved.load(i, key) if saved else (0, {})
        if done == 0:
            result = train_cell(cell, sets, seeds, **options)
            if saved:
                saved.save(i, key, -1, {name: torch.as_tensor(values) for name, values in result.items()})
        parts.append({name: np.asarray(values) for name, values in result.items()})
    return {name: np.stack([part[name] for part in parts]) for name in parts[0]}


def tuned(train, start):
    """Number of the best step size, (..., A), of final training losses (..., A, E, S) that started at (..., A, S).

    The best has the lowest median over seeds among those at which no seed diverges: ends above twice its start.
    Raises ParameterError where a slope diverges at all step sizes.
    """
    sound = (train <= DIVERGED * start[..., None, :]).all(-1)  # not so for NaN
    if not sound.any(-1).all():
        raise ParameterError("a slope diverges at every step size of the grid; take smaller ones")
    return np.median(np.where(sound[..., None], train, np.inf), -1).argmin(-1)


def at_tuned(values, index):
    """values (..., A, E, S) at the step sizes index (..., A): (..., A, S)."""
    return np.take_along_axis(values, index[..., None, None], -2)[..., 0, :]


def paired(a, b):
    """(mean, half) over the last axis of a - b, half the width of its two-sided 95 % interval by Student's t."""
    difference = np.asarray(a) - np.asarray(b)
    count = difference.shape[-1]
    half = stats.t.ppf(0.975, count - 1) * difference.std(-1, ddof=1) / count**0.5
    return difference.mean(-1), half


def best_or_tied(logs):
    """Whether each slope is best or tied, (..., A), for logarithms of losses (..., A, S).

    The best has the lowest mean; another is tied if the interval of its paired difference from the best holds 0.
    """
    best = logs.mean(-1).argmin(-1)
    lowest = np.take_along_axis(logs, best[..., None, None], -2)
    mean, half = paired(logs, lowest)
    return mean <= half


def by_level(cells, factors):
    """{(factor, level): boolean (C,)} over factors, {name: levels}."""
    return {
        (name, level): np.array([getattr(cell, name) == level for cell in cells])
        for name, levels in factors.items()
        for level in levels
    }


def at_common(train, multiple, multiples, start):
    """Final losses (..., A, S) at the step size that serves all slopes best, of train (..., A, E, S).

    It is the one of `multiples`, which all slopes have tried, with the lowest mean over slopes and seeds of the
    logarithm among those at which no run ends above twice its start (..., A, S); NaN where there is none.
    multiple: (..., A, E), the steps of train.
    """
    shared = np.isin(multiple, multiples)
    tried = train[shared].reshape(*train.shape[:-2], len(multiples), train.shape[-1])
    tried = np.where((tried <= DIVERGED * start[..., None, :]).all((-3, -1), keepdims=True), tried, np.nan)
    mean = np.log(np.maximum(tried, np.finfo(float).tiny)).mean((-3, -1))
    chosen = np.where(np.isfinite(mean), mean, np.inf).argmin(-1)
    return np.take_along_axis(tried, chosen[..., None, None, None], -2)[..., 0, :]
