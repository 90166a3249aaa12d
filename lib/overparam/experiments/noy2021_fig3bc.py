"""Training a GReLU net, and going on with its equivalent ReLU net (Noy et al. 2021, Theorem 2 and Fig. 3b, 3c)."""

from dataclasses import dataclass

import numpy as np
import torch

from ..theory.equivalent_relu import equivalent_relu
from ..training import Checkpoint, RegressionLoss, stochastic_gradient_descent
from .noy2021 import endless, sharpness


@dataclass
class Switched:
    """Errors per example before every epoch, S seeds, infinite after a divergence.

    before: {"train", "test": (S, E + 1)} of GReLU; after: {..: (C, S, E' + 1)} of the ReLU nets made of it with C cuts;
    relu: {..: (S, E + E' + 1)}; norms: {"before": (S,), "after": (C, S)}, Frobenius, of all W_k together; ranks
    (C, S): the smallest numerical rank of a layer's features; eta (S,).
    """

    before: dict
    after: dict
    relu: dict
    norms: dict
    ranks: np.ndarray
    eta: np.ndarray


def switched(data, seeds, f, cuts, settings, *, batch, epochs, sequential=False, checkpoint=None):
    """Train GReLU nets by SGD, transform them on their training set, go on with these; and ReLU nets throughout.

    data: one DataSet per seed; f: step size of all three, as a share of the ReLU net's n / lambda_max(K); cuts: of the
    singular values in `equivalent_relu`, with last="nonneg", in float64; epochs: (before, after) the transform;
    sequential: as in `equivalent_relu`; checkpoint: path stem. Returns `Switched`.
    """
    runs = [
        _of_seed(part, seed, f, cuts, settings, batch, epochs, sequential, checkpoint and f"{checkpoint}-{seed}")
        for part, seed in zip(data, seeds, strict=True)
    ]

    def joined(name, axis):
        return {key: np.stack([getattr(run, name)[key] for run in runs], axis) for key in getattr(runs[0], name)}

    norms = {key: np.stack([run.norms[key] for run in runs], -1) for key in ("before", "after")}
    ranks, eta = (np.stack([getattr(run, name) for run in runs], -1) for name in ("ranks", "eta"))
    return Switched(joined("before", 0), joined("after", 1), joined("relu", 0), norms, ranks, eta)


def _of_seed(data, seed, f, cuts, settings, batch, epochs, sequential, checkpoint):
    inputs = settings.on(torch.cat([data.x_train, data.x_test]))
    y, y_test = settings.on(data.y_train), settings.on(data.y_test)
    first, last = epochs
    seen = inputs[: len(y)][: settings.scale_rows]
    eta = f / sharpness(settings.net(inputs, y.shape[-1], [seed]), seen)[0]
    net = settings.table(inputs, y.shape[-1], [seed])
    rows, held_out, test = net.rows(0, len(y)), net.rows(len(y)), RegressionLoss(y_test)
    test_error = {"test": lambda run: 2 * test(run.predict(held_out))[0]}

    def train(nets, count, order, stage, **weights):
        history = stochastic_gradient_descent(
            nets, rows, RegressionLoss(y), eta, count, batch=batch, seed=order, log=test_error | weights,
            at={"test": range(count + 1), **{name: [count] for name in weights}}, batched=False, allow_divergence=True,
            checkpoint=checkpoint and Checkpoint(f"{checkpoint}-{stage}"),
        )  # fmt: skip
        loss = endless(history.loss.numpy())
        errors = {"train": 2 * loss, "test": np.where(np.isfinite(loss), history.logs["test"].numpy(), np.inf)}
        return errors, history.logs

    relu, _ = train(net, first + last, seed, "relu")
    grelu = net.twin("grelu")
    before, logs = train(grelu, first, seed, "grelu", W=lambda run: torch.stack(run.W, -3))
    run = grelu.with_weights(logs["W"][0, 0]).descent(rows, 0)
    made = [equivalent_relu(run, cut=cut, sequential=sequential) for cut in cuts]
    norms = {"before": _norm(run.W), "after": np.array([_norm(new.weights) for new in made])}
    ranks = np.array([int(new.ranks.min()) for new in made])
    weights = [torch.stack(layer).to(inputs) for layer in zip(*(new.weights for new in made), strict=True)]
    del run
    followers = settings.table(inputs, y.shape[-1], [seed] * len(cuts)).with_weights(weights)
    after, _ = train(followers, last, seed + 10_000, "after")
    before, relu = ({key: values[0] for key, values in part.items()} for part in (before, relu))
    return Switched(before, after, relu, norms, ranks, np.array(eta))


def _norm(weights):
    return float(torch.stack([W.double().square().sum() for W in weights]).sum().sqrt())
