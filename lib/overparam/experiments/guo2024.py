"""One training per slope of leaky ReLU from the same draw (Guo et al. 2024, Section 5), and how slopes are compared.

Results are arrays whose first axis is the slope and whose second is the paired draw of data and initial weights.
"""

import numpy as np

from ..models.leaky import LeakyMLP
from ..training import Checkpoint, CrossEntropyLoss, SquaredLoss, gradient_descent, stochastic_gradient_descent


def leaky_curves(datasets, seeds, alphas, *, m, L, eta, epochs, batch, at, dtype, device, classes=10, checkpoint=None):
    """Train the leaky-ReLU net by SGD on each data set with every slope, by mean cross entropy or mean squares.

    datasets: an iterable of `DataSet`, one per seed; seeds: of the initial weights and batches, the same for all
    slopes; classes: the number of classes, or 0 for regression; at: epochs before which the test set is looked at;
    checkpoint: path stem of the checkpoints.
    Returns float64 arrays for A slopes and S seeds: train (A, S, epochs + 1), the loss of all training examples before
    each epoch; test (A, S, len(at)); and with classes accuracy (A, S, len(at)), that of the test set.
    Raises TrainingDiverged. Source: Guo et al. 2024, Algorithm 3.
    """

    def one(data, seed):
        x, x_test = (part.to(device, dtype) for part in (data.x_train, data.x_test))
        net = _net(x, m, L, classes, alphas, seed, batch)
        x, x_test = net.embed(x), net.embed(x_test)
        loss, test = (_loss(y.to(device), dtype, classes) for y in (data.y_train, data.y_test))
        log = {"test": lambda run: test(run.predict(x_test))[0]}
        if classes:
            log["accuracy"] = lambda run: (run.predict(x_test).argmax(-1) == test.y).double().mean(-1)
        saved = checkpoint and Checkpoint(f"{checkpoint}-{seed}")
        history = stochastic_gradient_descent(
            net, x, loss, eta, epochs, batch=batch, seed=seed, log=log, at=at, checkpoint=saved
        )
        return {"train": history.loss.numpy(), **{name: values.numpy() for name, values in history.logs.items()}}

    runs = [one(data, seed) for data, seed in zip(datasets, seeds, strict=True)]
    return {name: np.stack([run[name] for run in runs], 1) for name in runs[0]}


def descent_curves(datasets, seeds, alphas, loss, *, m, L, eta, steps, at, dtype, device, classes=0, checkpoint=None):
    """Train the leaky-ReLU net by full-batch gradient descent on each data set with every slope.

    loss: makes a loss of targets, (n, 1) numbers or (n,) class numbers; classes, datasets, seeds, checkpoint as in
    `leaky_curves`; at: steps before which the test set is looked at.
    Returns float64 arrays for A slopes and S seeds: train (A, S, steps + 1) and test (A, S, len(at)), the loss of the
    test set; NaN from where a run has diverged. Source: Guo et al. 2024, Algorithm 2.
    """

    def one(data, seed):
        x, x_test = (part.to(device, dtype) for part in (data.x_train, data.x_test))
        net = _net(x, m, L, classes, alphas, seed, len(x))
        x, x_test = net.embed(x), net.embed(x_test)
        targets = (y.to(device) if classes else y.to(device, dtype)[:, None] for y in (data.y_train, data.y_test))
        training, test = (loss(y) for y in targets)
        log = {"test": lambda run: test(run.predict(x_test))[0]}
        saved = checkpoint and Checkpoint(f"{checkpoint}-{seed}")
        history = gradient_descent(
            net, x, training, eta, steps, log=log, at=at, allow_divergence=True, checkpoint=saved
        )
        return {"train": history.loss.numpy(), "test": history.logs["test"].numpy()}

    runs = [one(data, seed) for data, seed in zip(datasets, seeds, strict=True)]
    return {name: np.stack([run[name] for run in runs], 1) for name in runs[0]}


def _net(x, m, L, classes, alphas, seed, batch):
    """The net in its cheaper form: one product of m x p x p, or two of batch x m x m, in each step."""
    runs = {"alphas": alphas, "seeds": [seed] * len(alphas), "keep_W1": x.shape[1] > batch}
    return LeakyMLP(x.shape[1], m, classes or 1, L, **runs, dtype=x.dtype, device=x.device)


def _loss(y, dtype, classes):
    return CrossEntropyLoss(y) if classes else SquaredLoss(y.to(dtype)[:, None], "mean")


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
