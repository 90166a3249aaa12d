"""What experiments of Noy et al. 2021, Section 6, share: two regression tasks, GReLU nets beside ReLU twins, curves.

A step size eta of the mean loss sum |u - y|^2 / (2 n) is reported as f = eta lambda_max(K_ReLU) / n too, with the NTK
of the ReLU twin at initialization: gradient descent on that net's linearization is stable for f < 2. Losses are in
units of the labels' energy, sum |y|^2 / (2 n). A run that diverges has an infinite loss from there on.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import rankdata

from ..errors import ParameterError
from ..models.gated import GatedRuns, TabulatedRuns
from ..norms import squared_difference, squared_product
from ..record import plots
from ..training import Checkpoint, RegressionLoss, gradient_descent, stochastic_gradient_descent
from .noy2021 import sgemm, sharpness, ten_classes  # noqa: F401

KINDS = ("grelu", "relu")


@dataclass(frozen=True)
class Settings:
    """The nets of an experiment, of both `kinds`, and what their step sizes are given in.

    unit: "f", "eta", or "own", which is f by the GReLU net's own kernel; scale_rows: the first so many inputs give the
    kernels' eigenvalues (None: all); dtype, device: of the training; draw_on: as of `GatedRuns`.
    """

    m: int
    L: int
    dtype: torch.dtype = torch.float64
    device: str | torch.device = "cpu"
    unit: str = "f"
    kinds: tuple = KINDS
    scale_rows: int | None = None
    draw_on: str = "cpu"

    def net(self, x, d_y, seeds):
        """The ReLU nets for inputs x (..., d_x)."""
        return GatedRuns("relu", x.shape[-1], self.m, self.L, d_y, seeds=seeds, draw_on=self.draw_on)

    def table(self, inputs, d_y, seeds):
        """The ReLU nets on the rows of inputs (N, d_x)."""
        return TabulatedRuns("relu", inputs, self.m, self.L, d_y, seeds=seeds, draw_on=self.draw_on)

    def sharpness(self, x, d_y, seeds):
        """{kind: lambda_max(K) / n at initialization, (S,)} at inputs x (n, d_x) or (S, n, d_x)."""
        net, kinds = self.net(x, d_y, seeds), dict.fromkeys((*self.kinds, "relu"))
        return {kind: sharpness(net.twin(kind), x[..., : self.scale_rows, :]) for kind in kinds}

    def on(self, t):
        """Inputs or targets on the device; targets (n,) as (n, 1)."""
        return (t if t.ndim > 1 else t.unsqueeze(-1)).to(self.device, self.dtype)


@dataclass
class Pairs:
    """Curves of both kinds of nets, for F rates and S seeds.

    loss: {kind: (F, S, T + 1)}, of all training examples, labels' energy = 1, infinite after a divergence; logs:
    {kind: {name: (F, S, times)}}; eta, f: (F, S), the step sizes; sharpness: {kind: (S,)}, lambda_max(K) / n at
    initialization.
    """

    loss: dict
    logs: dict
    eta: np.ndarray
    f: np.ndarray
    sharpness: dict


def step_sizes(scales, rates, unit):
    """(eta, f), each (F, S), of rates in a unit of `Settings`; scales: {kind: lambda_max(K) / n, (S,)}."""
    if unit not in ("f", "eta", "own"):
        raise ParameterError(f"unit must be f, eta or own, not {unit!r}")
    rates = np.asarray(rates, dtype=float)[:, None]
    scale = np.ones_like(scales["relu"]) if unit == "eta" else scales["relu" if unit == "f" else "grelu"]
    eta = rates / scale
    return eta, eta * scales["relu"]


def descend_pairs(data, seeds, rates, settings, *, steps, gradients=False, checkpoint=None):
    """Full-batch gradient descent of both nets, on one DataSet per seed, with every rate: `Pairs`.

    gradients: log |g_t - g_{t-1}| and |g_t| before every step, as "change" and "size"; checkpoint: path stem.
    """
    x = torch.stack([settings.on(part.x_train) for part in data])
    y = torch.stack([settings.on(part.y_train) for part in data])
    scales = settings.sharpness(x, y.shape[-1], seeds)
    eta, f = step_sizes(scales, rates, settings.unit)
    net, x = settings.net(x, y.shape[-1], list(seeds) * len(rates)), x.repeat(len(rates), 1, 1)
    loss = RegressionLoss(y.repeat(len(rates), 1, 1), runs_axis=True)
    curves, logs = {}, {}
    for kind in settings.kinds:
        saved = checkpoint and Checkpoint(f"{checkpoint}-{kind}")
        watched = {"log": {"gradient": GradientChange(loss)}, "at": range(steps + 1)} if gradients else {}
        options = {"allow_divergence": True, "checkpoint": saved, **watched}
        history = gradient_descent(net.twin(kind), x, loss, eta.flatten().tolist(), steps, **options)
        curves[kind] = endless(history.loss.numpy().reshape(*eta.shape, -1) / energy(y)[:, None])
        found = history.logs["gradient"].numpy().reshape(*eta.shape, -1, 2) if gradients else None
        logs[kind] = {"change": found[..., 0], "size": found[..., 1]} if gradients else {}
    return Pairs(curves, logs, eta, f, scales)


def sgd_pairs(data, seeds, rates, settings, *, batch, epochs, changes=False, checkpoint=None):
    """Stochastic gradient descent of both nets, on one DataSet per seed, with every rate: `Pairs`.

    Both nets and all rates see the same batches. The logs, before every epoch: "test", the mean squared error per test
    example; with `changes` also "changes", the share of the gates at the test inputs that changed since the last one.
    """
    runs = [
        _sgd_of_seed(part, seed, rates, settings, batch, epochs, changes, checkpoint)
        for part, seed in zip(data, seeds, strict=True)
    ]
    first = runs[0]
    loss = {kind: np.concatenate([run.loss[kind] for run in runs], 1) for kind in first.loss}
    logs = {
        kind: {name: np.concatenate([run.logs[kind][name] for run in runs], 1) for name in log}
        for kind, log in first.logs.items()
    }
    eta, f = (np.concatenate([getattr(run, name) for run in runs], 1) for name in ("eta", "f"))
    scales = {kind: np.concatenate([run.sharpness[kind] for run in runs]) for kind in first.sharpness}
    return Pairs(loss, logs, eta, f, scales)


def _sgd_of_seed(data, seed, rates, settings, batch, epochs, changes, checkpoint):
    inputs = settings.on(torch.cat([data.x_train, data.x_test]))
    y, y_test = settings.on(data.y_train), settings.on(data.y_test)
    scales = settings.sharpness(inputs[: len(y)], y.shape[-1], [seed])
    eta, f = step_sizes(scales, rates, settings.unit)
    net = settings.table(inputs, y.shape[-1], [seed] * len(rates))
    held_out, test = net.rows(len(y)), RegressionLoss(y_test)
    curves, logs = {}, {}
    for kind in settings.kinds:
        log = {"test": lambda run: 2 * test(run.predict(held_out))[0]}
        log |= {"changes": GateChanges(held_out)} if changes else {}
        history = stochastic_gradient_descent(
            net.twin(kind), net.rows(0, len(y)), RegressionLoss(y), eta.flatten().tolist(), epochs, batch=batch,
            seed=seed, log=log, at=range(epochs + 1), allow_divergence=True,
            checkpoint=checkpoint and Checkpoint(f"{checkpoint}-{kind}-{seed}"),
        )  # fmt: skip
        curves[kind] = endless(history.loss.numpy() / energy(y))[:, None]
        logs[kind] = {name: values.numpy()[:, None] for name, values in history.logs.items()}
    return Pairs(curves, logs, eta, f, scales)


class GradientChange:
    """A log: ||g_t - g_{t-1}||_F and ||g_t||_F over all layers, (..., 2), of the loss's gradients by the weights.

    g_{t-1} is that of the last call for the same run, NaN at first. Where n < m / 2, gradients are kept as their two
    factors.
    """

    def __init__(self, loss):
        self.loss, self.before = loss, {}

    def __call__(self, run):
        z = run.sensitivities(self.loss.select(run.run)(run.forward())[1])
        h = run.inputs_of_layers()
        if 2 * z[0].shape[-2] >= z[0].shape[-1]:
            now = [a.mT @ b for a, b in zip(z, h, strict=True)]
        else:
            now = [(a, b.clone()) for a, b in zip(z, h, strict=True)]
        size = sum(_square(g) for g in now)
        before, self.before[run.run] = self.before.get(run.run), now
        if before is None:
            change = size * torch.nan
        else:
            change = sum(_square_of_difference(*pair) for pair in zip(now, before, strict=True))
        return torch.stack([change, size], -1).clamp(min=0).sqrt()


def _square(g):
    return squared_product(*g) if isinstance(g, tuple) else g.square().sum((-2, -1))


def _square_of_difference(now, before):
    return squared_difference(now, before) if isinstance(now, tuple) else _square(now - before)


class GateChanges:
    """A log: the share of the gates at inputs x that changed since the last call for the run, (...); NaN at first."""

    def __init__(self, x):
        self.x, self.before = x, {}

    def __call__(self, run):
        now = [gate.bool() for gate in run.gates_at(self.x)]
        before, self.before[run.run] = self.before.get(run.run), now
        if before is None:
            return now[0].new_full(now[0].shape[:-2], float("nan"), dtype=torch.float64)
        return torch.stack([(a != b).double().mean((-2, -1)) for a, b in zip(before, now, strict=True)], -1).mean(-1)


def energy(y):
    """sum |y|^2 / (2 n) of targets (..., n, d_y), as an array (...)."""
    return (y.double().square().sum(-1).mean(-1) / 2).cpu().numpy()


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


def run_lines(ax, x, runs, *, i, label, look=None, **kwargs):
    """One thin line per run of `runs` (R, len(x)); where a run is infinite from then on, a triangle at the upper edge.

    i: the style; look: colour, where it is not that of the style. Returns nothing; the first line bears the label.
    """
    style = {**plots.style(i), "linewidth": 1.1, **(look or {}), **kwargs}
    for k, run in enumerate(np.atleast_2d(np.asarray(runs, dtype=float))):
        ax.plot(x, recorded(run), label=None if k else label, **style)
        lost = ~np.isfinite(run)
        if lost.any():
            at_the_edge(ax, [x[int(lost.argmax())]], style["color"])


def at_the_edge(ax, places, colour):
    """Triangles at the upper edge of an axis, for what is infinite at these places."""
    if len(places) == 0:
        return
    edge = {"transform": ax.get_xaxis_transform(), "clip_on": False, "ls": "", "marker": "^", "ms": 7, "zorder": 5}
    ax.plot(places, np.full(len(places), 0.985), color=colour, markeredgecolor="black", **edge)
