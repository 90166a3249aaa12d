"""Training a GReLU net, and going on with its equivalent ReLU net (Noy et al. 2021, Theorem 2 and Fig. 3b, 3c)."""

from dataclasses import dataclass

import numpy as np
import torch

from ..models.gated import GatedRuns
from ..models.gated_table import TabulatedRuns
from ..theory.equivalent_relu import equivalent_relu
from ..training import Checkpoint, RegressionLoss, stochastic_gradient_descent
from .noy2021_pairs import endless, sharpness, targets


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


def switched(
    data, seeds, f, cuts, *, m, L, batch, epochs, dtype, device, sequential=False, scale_rows=None, draw_on="cpu",
    checkpoint=None,
):  # fmt: skip
    """Train GReLU nets by SGD, transform them on their training set, go on with these; and ReLU nets throughout.

    data: one DataSet per seed; f: step size of all three, as a share of the ReLU net's n / lambda_max(K); cuts: of the
    singular values in `equivalent_relu`, with last="nonneg", in float64; epochs: (before, after) the transform;
    sequential: as in `equivalent_relu`; checkpoint: path stem. Returns `Switched`.
    """
    options = {"batch": batch, "dtype": dtype, "device": device, "scale_rows": scale_rows, "draw_on": draw_on}
    found = [
        _of_seed(part, seed, f, cuts, m, L, epochs, sequential, checkpoint and f"{checkpoint}-{seed}", **options)
        for part, seed in zip(data, seeds, strict=True)
    ]

    def joined(name, axis):
        rows = [getattr(run, name) for run in found]
        if isinstance(rows[0], dict):
            return {key: np.stack([row[key] for row in rows], np.ndim(rows[0][key]) - axis) for key in rows[0]}
        return np.stack(rows, np.ndim(rows[0]) - axis)

    return Switched(
        joined("before", 1), joined("after", 1), joined("relu", 1), joined("norms", 0), joined("ranks", 0),
        joined("eta", 0),
    )  # fmt: skip


def _of_seed(data, seed, f, cuts, m, L, epochs, sequential, checkpoint, *, batch, dtype, device, scale_rows, draw_on):
    inputs = torch.cat([data.x_train, data.x_test]).to(device, dtype)
    y, y_test = (targets(part).to(device, dtype) for part in (data.y_train, data.y_test))
    shape, first, last = (m, L, y.shape[-1]), *epochs
    start = GatedRuns("relu", inputs.shape[-1], *shape, seeds=[seed], draw_on=draw_on)
    eta = f / sharpness(start, inputs[: min(scale_rows or len(y), len(y))])[0]
    net = TabulatedRuns("relu", inputs, *shape, seeds=[seed], draw_on=draw_on)
    rows, held_out, test, held = net.rows(0, len(y)), net.rows(len(y)), RegressionLoss(y_test), {}

    def look(descent):
        held["run"] = descent
        return 2 * test(descent.predict(held_out))[0]

    def train(nets, count, order, name=None):
        history = stochastic_gradient_descent(
            nets, rows, RegressionLoss(y), eta, count, batch=batch, seed=order, log={"test": look},
            at=range(count + 1), batched=False, allow_divergence=True,
            checkpoint=name and Checkpoint(f"{checkpoint}-{name}"),
        )  # fmt: skip
        loss = endless(history.loss.numpy())
        return {"train": 2 * loss, "test": np.where(np.isfinite(loss), history.logs["test"].numpy(), np.inf)}

    relu = train(net, first + last, seed, checkpoint and "relu")
    before = train(net.twin("grelu"), first, seed)  # without a checkpoint: its weights are needed
    run = held["run"]
    run.load(rows)
    made = [equivalent_relu(run, cut=cut, sequential=sequential) for cut in cuts]
    norms = {"before": _norm(run.W), "after": np.array([_norm(new.weights) for new in made])}
    weights = [torch.stack(layer).to(dtype) for layer in zip(*(new.weights for new in made), strict=True)]
    ranks = np.array([int(new.ranks.min()) for new in made])
    held.clear()
    del run
    followers = TabulatedRuns("relu", inputs, *shape, seeds=[seed] * len(cuts), draw_on=draw_on).with_weights(weights)
    after = train(followers, last, seed + 10_000, checkpoint and "after")
    alone = ({key: values[0] for key, values in part.items()} for part in (before, relu))
    return Switched(next(alone), after, next(alone), norms, ranks, np.array(eta))


def _norm(weights):
    return float(torch.stack([W.double().square().sum() for W in weights]).sum().sqrt())
