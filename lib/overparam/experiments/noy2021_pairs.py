"""GReLU nets beside their ReLU twins: trained from the same draws at the same step sizes (Noy et al. 2021, Section 6).

A step size eta of the mean loss sum |u - y|^2 / (2 n) is reported as f = eta lambda_max(K_ReLU) / n too, with the NTK
of the ReLU twin at initialization: gradient descent on that net's linearization is stable for f < 2. Losses are in
units of the labels' energy, sum |y|^2 / (2 n). A run that diverges has an infinite loss from there on.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import rankdata

from ..errors import ParameterError
from ..models.gated import GatedRuns
from ..models.gated_table import TabulatedRuns
from ..theory.finite_kernels import initial_lambda_max
from ..training import Checkpoint, RegressionLoss, gradient_descent, stochastic_gradient_descent

KINDS = ("grelu", "relu")


@dataclass
class Pairs:
    """Curves of both kinds of nets, for F rates and S seeds.

    loss: {kind: (F, S, T + 1)}, of all training examples, labels' energy = 1, infinite after a divergence; logs:
    {kind: {name: (F, S, times)}}; eta, f: (F, S), the step sizes; sharpness: {kind: (S,)}, lambda_max(K) / n at
    initialization; energy: (S,).
    """

    loss: dict
    logs: dict
    eta: np.ndarray
    f: np.ndarray
    sharpness: dict
    energy: np.ndarray


def step_sizes(scales, rates, unit):
    """(eta, f), each (F, S), of rates in a unit: "f", "eta", or "own", which is f by the GReLU net's own kernel.

    scales: {kind: lambda_max(K) / n at initialization, (S,)}.
    """
    if unit not in ("f", "eta", "own"):
        raise ParameterError(f"unit must be f, eta or own, not {unit!r}")
    rates = np.asarray(rates, dtype=float)[:, None]
    scale = np.ones_like(scales["relu"]) if unit == "eta" else scales["relu" if unit == "f" else "grelu"]
    eta = rates / scale
    return eta, eta * scales["relu"]


def sharpness(net, x, iterations=30):
    """lambda_max(K) / n at initialization, per run, as an array (R,), from below; x: the inputs of `net.descent`."""
    return (initial_lambda_max(net, x, iterations) / x.shape[-2]).numpy()


def descend_pairs(
    data, seeds, rates, *, m, L, steps, dtype, device, unit="f", kinds=KINDS, gradients=False, scale_rows=None,
    draw_on="cpu", checkpoint=None,
):  # fmt: skip
    """Full-batch gradient descent of both nets, on one data set per seed, with every rate: `Pairs`.

    data: one DataSet per seed; gradients: log |g_t - g_{t-1}| and |g_t| before every step, as "change" and "size";
    scale_rows: the first so many inputs give the sharpness (None: all); checkpoint: path stem of the checkpoints.
    """
    x = torch.stack([part.x_train for part in data]).to(device, dtype)
    y = torch.stack([targets(part.y_train) for part in data]).to(device, dtype)
    start = GatedRuns("relu", x.shape[-1], m, L, y.shape[-1], seeds=seeds, draw_on=draw_on)
    scales = {kind: sharpness(start.twin(kind), x[:, :scale_rows]) for kind in dict.fromkeys((*kinds, "relu"))}
    eta, f = step_sizes(scales, rates, unit)
    net = GatedRuns("relu", x.shape[-1], m, L, y.shape[-1], seeds=list(seeds) * len(rates), draw_on=draw_on)
    loss = RegressionLoss(y.repeat(len(rates), 1, 1), runs_axis=True)
    log, at = (_gradient_log(loss), range(steps + 1)) if gradients else (None, None)
    curves, logs = {}, {}
    for kind in kinds:
        history = gradient_descent(
            net.twin(kind), x.repeat(len(rates), 1, 1), loss, eta.flatten().tolist(), steps, log=log, at=at,
            allow_divergence=True, checkpoint=checkpoint and Checkpoint(f"{checkpoint}-{kind}"),
        )  # fmt: skip
        curves[kind], logs[kind] = history.loss.numpy().reshape(*eta.shape, -1), {}
        if gradients:
            pairs = history.logs["gradient"].numpy().reshape(*eta.shape, -1, 2)
            logs[kind] = {"change": pairs[..., 0], "size": pairs[..., 1]}
    return _pairs(curves, logs, eta, f, scales, _energy(y))


def _gradient_log(loss):
    return {"gradient": lambda descent: descent.gradient_change(loss.select(descent.run))}


def sgd_pairs(
    data, seeds, rates, *, m, L, batch, epochs, dtype, device, unit="f", kinds=KINDS, changes=False, scale_rows=None,
    draw_on="cpu", checkpoint=None,
):  # fmt: skip
    """Stochastic gradient descent of both nets, on one data set per seed, with every rate: `Pairs`.

    Both nets and all rates see the same batches. The logs, before every epoch: "test", the mean squared error per test
    example; with `changes` also "changes", the share of the gates at the test inputs that changed since the last one.
    Otherwise as `descend_pairs`.
    """
    runs = [
        _sgd_of_seed(part, seed, rates, m, L, batch, epochs, dtype, device, unit, kinds, changes, scale_rows, draw_on,
                     checkpoint)
        for part, seed in zip(data, seeds, strict=True)
    ]  # fmt: skip

    def joined(pick):
        return np.concatenate([pick(run) for run in runs], 1)

    curves = {kind: joined(lambda run, kind=kind: run.loss[kind]) for kind in kinds}
    logs = {
        kind: {name: joined(lambda run, k=kind, name=name: run.logs[k][name]) for name in runs[0].logs[kind]}
        for kind in kinds
    }
    scales = {kind: np.concatenate([run.sharpness[kind] for run in runs]) for kind in runs[0].sharpness}
    energy = np.concatenate([run.energy for run in runs])
    return Pairs(curves, logs, joined(lambda run: run.eta), joined(lambda run: run.f), scales, energy)


def _sgd_of_seed(
    data, seed, rates, m, L, batch, epochs, dtype, device, unit, kinds, changes, scale_rows, draw_on, checkpoint
):
    inputs = torch.cat([data.x_train, data.x_test]).to(device, dtype)
    y, y_test = (targets(part).to(device, dtype) for part in (data.y_train, data.y_test))
    start = GatedRuns("relu", inputs.shape[-1], m, L, y.shape[-1], seeds=[seed], draw_on=draw_on)
    seen = inputs[: min(scale_rows or len(y), len(y))]
    scales = {kind: sharpness(start.twin(kind), seen) for kind in dict.fromkeys((*kinds, "relu"))}
    eta, f = step_sizes(scales, rates, unit)
    net = TabulatedRuns("relu", inputs, m, L, y.shape[-1], seeds=[seed] * len(rates), draw_on=draw_on)
    rows, held_out = net.rows(0, len(y)), net.rows(len(y))
    loss, test = RegressionLoss(y), RegressionLoss(y_test)
    log = {"test": lambda descent: 2 * test(descent.predict(held_out))[0]}
    if changes:
        log["changes"] = lambda descent: descent.gate_changes(held_out)
    curves, logs = {}, {}
    for kind in kinds:
        history = stochastic_gradient_descent(
            net.twin(kind), rows, loss, eta.flatten().tolist(), epochs, batch=batch, seed=seed, log=log,
            at=range(epochs + 1), allow_divergence=True,
            checkpoint=checkpoint and Checkpoint(f"{checkpoint}-{kind}-{seed}"),
        )  # fmt: skip
        curves[kind] = history.loss.numpy()[:, None]
        logs[kind] = {name: values.numpy()[:, None] for name, values in history.logs.items()}
    return _pairs(curves, logs, eta, f, scales, _energy(y[None]))


def _pairs(curves, logs, eta, f, scales, energy):
    units = {kind: endless(curve / energy[:, None]) for kind, curve in curves.items()}
    return Pairs(units, logs, eta, f, scales, energy)


def _energy(y):
    return (y.double().square().sum(-1).mean(-1) / 2).cpu().numpy()


def targets(y):
    """Targets (n,) or (n, d_y) as (n, d_y)."""
    return y if y.ndim == 2 else y.unsqueeze(1)


def endless(curves):
    """Curves (..., times) that are infinite from where they first are not finite."""
    curves = np.asarray(curves, dtype=float)
    return np.where(np.logical_and.accumulate(np.isfinite(curves), -1), curves, np.inf)


def recorded(curves):
    """Curves with NaN where they are infinite, for the record."""
    return np.where(np.isfinite(curves), curves, np.nan)


def rises(curves):
    """Steps at which a curve (..., times) rises, (...); the step to a divergence counts as one."""
    later, earlier = curves[..., 1:], curves[..., :-1]
    return ((later > earlier) & np.isfinite(earlier)).sum(-1)


def ratio(a, b):
    """a / b; 0 where b alone is infinite, and NaN where both are."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(a, dtype=float) / np.asarray(b, dtype=float)


def trend(curves):
    """Spearman's correlation of curves (..., times) with the time, (...)."""
    ranks, times = rankdata(curves, axis=-1), np.arange(curves.shape[-1])
    ranks, times = ranks - ranks.mean(-1, keepdims=True), times - times.mean()
    with np.errstate(invalid="ignore"):
        return (ranks * times).sum(-1) / np.sqrt((ranks**2).sum(-1) * (times**2).sum())
