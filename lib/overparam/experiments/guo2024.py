"""One training per slope of leaky ReLU from the same draw (Guo et al. 2024, Section 5), and how slopes are compared.

Results are arrays whose first axis is the slope and whose second is the paired draw of data and initial weights.
"""

from dataclasses import dataclass

import numpy as np
import torch

from ..errors import TrainingDiverged
from ..models.leaky import LeakyMLP
from ..training import Checkpoint, CrossEntropyLoss, SquaredLoss, gradient_descent, stochastic_gradient_descent
from ..training.autograd import train


@dataclass(frozen=True)
class Setting:
    """Net and training of `leaky_curves`.

    m, L: width and depth; steps: of full-batch gradient descent, or with a batch size epochs of SGD; at: steps or
    epochs before which the test set is looked at; classes: how many, or 0 for regression; loss: makes a loss of
    targets, (n, 1) numbers or (n,) class numbers (None: mean squares, or mean cross entropy).
    """

    m: int
    L: int
    eta: float
    steps: int
    at: list
    batch: int | None = None
    classes: int = 0
    loss: object = None
    dtype: torch.dtype = torch.float64
    device: object = "cpu"


def leaky_curves(datasets, seeds, alphas, setting, checkpoint=None):
    """Train the leaky-ReLU net on each data set with every slope.

    datasets: an iterable of `DataSet`, one per seed; seeds: of the initial weights and batches, the same for all
    slopes; checkpoint: path stem of the checkpoints.
    Returns float64 arrays for A slopes and S seeds: train (A, S, steps + 1), the loss of all training examples before
    each step, or epoch; test (A, S, len(at)); and with classes accuracy (A, S, len(at)), that of the test set.
    Full-batch runs may diverge, to NaN; otherwise TrainingDiverged is raised.
    Source: Guo et al. 2024, Algorithms 2 and 3.
    """
    runs = []
    for data, seed in zip(datasets, seeds, strict=True):
        saved = checkpoint and Checkpoint(f"{checkpoint}-{seed}")
        history = _train(data, seed, alphas, setting, saved)
        runs.append({"train": history.loss, **history.logs})
    return {name: torch.stack([run[name] for run in runs], 1).numpy() for name in runs[0]}


def _train(data, seed, alphas, s, checkpoint):
    x, x_test = (part.to(s.device, s.dtype) for part in (data.x_train, data.x_test))
    place = {"dtype": s.dtype, "device": s.device}
    # the cheaper form of the net: one product of m x p x p in each step, or two of batch x m x m
    runs = {"alphas": alphas, "seeds": [seed] * len(alphas), "keep_W1": x.shape[1] > (s.batch or len(x))}
    net = LeakyMLP(x.shape[1], s.m, s.classes or 1, s.L, **runs, **place)
    x, x_test = net.embed(x), net.embed(x_test)
    make = s.loss or (CrossEntropyLoss if s.classes else lambda y: SquaredLoss(y, "mean"))
    targets = (y.to(s.device) if s.classes else y.to(**place)[:, None] for y in (data.y_train, data.y_test))
    loss, test = map(make, targets)
    log = {"test": lambda run: test(run.predict(x_test))[0]}
    if s.classes:
        log["accuracy"] = lambda run: (run.predict(x_test).argmax(-1) == test.y).double().mean(-1)
    options = {"log": log, "at": s.at, "checkpoint": checkpoint}
    if s.batch is None:
        return gradient_descent(net, x, loss, s.eta, s.steps, allow_divergence=True, **options)
    return stochastic_gradient_descent(net, x, loss, s.eta, s.steps, batch=s.batch, seed=seed, **options)


def module_curves(datasets, seeds, alphas, build, loss, recipe, *, at, dtype, device, checkpoint=None):
    """Train build(alpha, seed) for every slope and seed, and look at training and test set before the epochs `at`.

    datasets, seeds, checkpoint: as in `leaky_curves`; build: makes a torch module in float64; loss(outputs, y): the
    mean over examples; recipe: a `Recipe`.
    Returns float64 arrays train and test (A, S, len(at)), in evaluation mode. Raises TrainingDiverged.
    """
    rows = []
    for data, seed in zip(datasets, seeds, strict=True):
        parts = (data.x_train, data.y_train, data.x_test, data.y_test)
        x, y, x_test, y_test = (t.to(device, dtype) if t.is_floating_point() else t.to(device) for t in parts)
        for alpha in alphas:
            net = build(alpha, seed).to(device, dtype)
            look = _look(net, loss, [(x, y), (x_test, y_test)], recipe.batch)
            saved = checkpoint and Checkpoint(f"{checkpoint}-{seed}-{alpha:g}")
            try:
                course = train(net, x, y, recipe, at=at, seed=seed, loss=loss, look=look, checkpoint=saved)
            except TrainingDiverged as diverged:
                raise TrainingDiverged(f"slope {alpha}, seed {seed}: {diverged}") from None
            rows.append(torch.stack([course.states[epoch]["losses"] for epoch in sorted(set(at))], -1))
    curves = torch.stack(rows).reshape(len(seeds), len(alphas), 2, -1).transpose(0, 1).numpy()
    return {"train": curves[:, :, 0], "test": curves[:, :, 1]}


def _look(net, loss, sets, batch):
    """A look at the mean loss on sets of examples in evaluation mode, float64 on the CPU, batch by batch."""

    @torch.no_grad()
    def losses():
        net.eval()
        sums = []
        for x, y in sets:
            parts = zip(x.split(batch), y.split(batch), strict=True)
            sums.append(torch.stack([loss(net(a), b).double() * len(a) for a, b in parts]).sum() / len(x))
        return {"losses": torch.stack(sums).cpu()}

    return losses


def share_of_wins(values, alphas, alpha=-1.0, over=0.0):
    """Share of paired draws in which the value (A, S) at one slope is below that at another."""
    values = np.asarray(values)
    return float((values[alphas.index(alpha)] < values[alphas.index(over)]).mean())


def inversions(values, alphas, order):
    """Pairs of slopes whose means over the draws, values (A, S), do not rise in the given order."""
    means = [np.mean(values[alphas.index(alpha)]) for alpha in order]
    return sum(not means[i] < means[j] for j in range(len(means)) for i in range(j))


def mean_ratio(values, alphas, alpha, over):
    """Mean over the draws, values (A, S), at one slope over that at another; `over` None: over the best of the rest."""
    means = np.mean(values, 1)
    rest = [mean for other, mean in zip(alphas, means, strict=True) if other != alpha]
    return float(means[alphas.index(alpha)] / (min(rest) if over is None else means[alphas.index(over)]))
