"""Four papers' nets at the same data, width, step sizes and steps over the depth: norms, tangent kernels, trainings.

Every net is its own paper's: what is drawn, what is trained and where its output is read. Inputs are scaled so that
the outputs of a net of one layer have variance 1 at the start (1 - 1/pi of the residual net, half of whose ReLU outputs
are subtracted).
"""

import numpy as np
import torch

from ..models.gated import GatedRuns
from ..models.leaky import LeakyMLP
from ..models.residual import ResidualRuns
from ..theory.fits import first_below, line
from ..theory.kernels import gated_ntk, leaky_ntk, residual_ntk
from ..training import SquaredLoss, gradient_descent

SLOPES = {"relu": 0.0, "leaky": -1.0}
KINDS = (*SLOPES, "residual", "gated")
ROWS = 250  # test inputs that are taken at a time: nets keep their gates at all of them, in all layers and runs


def net_of(kind, p, m, L, *, seeds, dtype=torch.float64, device="cpu"):
    """The net of one of KINDS with one output; p: input dimension, m: width, L: depth, seeds: one per run.

    relu, leaky: `LeakyMLP` at slope 0 and -1, W_1, .., W_L trained; residual: `ResidualRuns` at theta = 1/L,
    W_1, .., W_{L+1} trained; gated: `GatedRuns("grelu")`, W_1, .., W_L trained.
    """
    if kind == "gated":
        return GatedRuns("grelu", p, m, L, seeds=seeds)
    if kind == "residual":
        return ResidualRuns(p, m, L, 1 / L, seeds=seeds, dtype=dtype, device=device)
    return LeakyMLP(p, m, 1, L, alphas=[SLOPES[kind]] * len(seeds), seeds=seeds, dtype=dtype, device=device)


def inputs_of(kind, x, m):
    """Inputs (n, p) as a net of width m takes them: unit-norm x, times sqrt(p/(2m)) for the gated net.

    Its matrices B and C then have the product of variances of the other nets: an output of variance |h_L|^2/|h_0|^2.
    """
    return x * (x.shape[-1] / (2 * m)) ** 0.5 if kind == "gated" else x


def _layers(kind, descent):
    """(inputs, sensitivities, outputs) of the trained layers, each a list of (..., n, m); the first inputs (..., n, p).

    The gradient of output i by layer l is sensitivities[l]_i inputs[l]_i^T.
    """
    if kind == "residual":
        activations, patterns = descent.net.forward(descent.x)
        return [descent.x, *activations[:-1]], descent.net.sensitivities(patterns), activations
    sensitivities = descent.sensitivities(torch.ones_like(descent.forward()))
    outputs = descent.h[1:] if kind == "gated" else descent.h
    return descent.inputs_of_layers(), sensitivities, outputs


def tangent_kernels(kind, descent):
    """Gram matrices of the gradients of the outputs by each trained layer, (..., layers, n, n), at the current weights.

    descent: one of `net_of(kind, ..)`. Their sum is the finite-width tangent kernel.
    """
    inputs, rows, _ = _layers(kind, descent)
    return torch.stack([(a @ a.mT) * (b @ b.mT) for a, b in zip(inputs, rows, strict=True)], -3)


def layer_norms(kind, descent):
    """Norms of the layers' outputs over that of the first layer's input, mean over the inputs, (..., layers)."""
    inputs, _, outputs = _layers(kind, descent)
    first = inputs[0].norm(dim=-1)
    return torch.stack([(h.norm(dim=-1) / first).mean(-1) for h in outputs], -1)


def at_start(kind, x, m, L, *, seeds):
    """What a net is at initialization at inputs x (n, p) of norm 1, computed in the dtype of x, one seed at a time.

    Returns {name: float64 array}: low, high (S,), extreme eigenvalues of the tangent kernel; gradient, last (S,), the
    smallest ||dF/dW||_F^2 / F over all residuals r, F = |r|^2/2, by all trained layers and by the last one; norms
    (S, layers), as of `layer_norms`. Source of the bound on `gradient`: Allen-Zhu et al. 2019, Theorem 3.
    """
    x, rows = inputs_of(kind, x, m), []
    for seed in seeds:
        descent = net_of(kind, x.shape[-1], m, L, seeds=[seed], dtype=x.dtype, device=x.device).descent(x, 0)
        layers = tangent_kernels(kind, descent).double()
        values, last = torch.linalg.eigvalsh(layers.sum(-3)), torch.linalg.eigvalsh(layers[-1])
        # an eigenvalue below what rounding leaves of the largest one is not distinguished from 0
        low, bottom = values[0].clamp(min=1e-15 * values[-1]), last[0].clamp(min=1e-15 * last[-1])
        measured = {"low": low, "high": values[-1], "gradient": 2 * low, "last": 2 * bottom}
        rows.append({**measured, "norms": layer_norms(kind, descent)})
    return {name: torch.stack([row[name] for row in rows]).double().cpu().numpy() for name in rows[0]}


def limit_condition(kind, x, L):
    """Condition number of the tangent kernel of the net of `net_of` for m -> infinity, at inputs x (n, p)."""
    if kind == "gated":
        kernel = gated_ntk(x, L)
    elif kind == "residual":
        kernel = residual_ntk(x, L, 1 / L)
    else:
        kernel = leaky_ntk(x, L, SLOPES[kind])
    values = torch.linalg.eigvalsh(kernel)
    return float(values[-1] / values[0])


def train(kind, data, m, L, steps, *, high, factors, seeds, dtype=torch.float32, device="cpu", checkpoint=None):
    """Full-batch gradient descent on the mean squared error, all step sizes and seeds as runs of one call.

    data: a `DataSet` with unit-norm inputs and labels +1 and -1; high (S,): the largest eigenvalue of each seed's
    tangent kernel at the start; a run's step size is one of `factors` times n/high, the largest at which its
    linearization at the start is stable. Returns {name: float64 array}, led by (factors, seeds): loss (.., steps + 1),
    NaN after a divergence; error (..), the share of wrong signs on the test set after the last step; norms
    (.., layers), as of `layer_norms`, then.
    """
    x, test = (inputs_of(kind, part.to(device, dtype), m) for part in (data.x_train, data.x_test))
    y, y_test = data.y_train.to(device, dtype), data.y_test.to(device, dtype)
    unit = len(x) / torch.as_tensor(high, dtype=torch.float64)
    eta = torch.as_tensor(factors, dtype=torch.float64)[:, None] * torch.where(unit.isfinite(), unit, 0.0)
    net = net_of(kind, x.shape[1], m, L, seeds=list(seeds) * len(factors), dtype=dtype, device=device)
    log = {
        "error": lambda run: wrong_signs(_outputs_at(run, kind, test), y_test),
        "norms": lambda run: layer_norms(kind, run),
    }
    loss = SquaredLoss(y if kind == "residual" else y[:, None], "mean")
    options = {"log": log, "allow_divergence": True, "checkpoint": checkpoint}
    history = gradient_descent(net, x, loss, eta.flatten(), steps, **options)
    measured = {"loss": history.loss, **{name: values[:, 0] for name, values in history.logs.items()}}
    return {name: v.reshape(len(factors), len(seeds), *v.shape[1:]).numpy() for name, v in measured.items()}


def _outputs_at(run, kind, x):
    """Outputs (..., n) at other inputs x (n, p)."""
    parts = [run.predict(part) for part in x.split(ROWS)]
    return torch.cat(parts if kind == "residual" else [part.squeeze(-1) for part in parts], -1)


def wrong_signs(outputs, y):
    """Share of examples with y f <= 0, (...), NaN where f is; outputs (..., n), y (n,)."""
    return (outputs * y <= 0).to(outputs).mean(-1) + 0 * outputs.sum(-1)


def steps_to(loss, target):
    """First step with a loss of at most `target`, (...); loss: (..., steps + 1), NaN after a divergence.

    All steps where there is none, and where the run diverges in the end.
    """
    loss = np.asarray(loss)
    last = loss.shape[-1] - 1
    return np.where(np.isfinite(loss[..., -1]), np.minimum(first_below(loss, target), last), last)


def rate_to(loss, target):
    """1 - gamma, (...), gamma the mean factor per step by which the loss falls until it is at most `target`.

    Over all steps where it is not reached; 0 where the loss does not fall, or diverges in the end. Source: Guo et al.
    2024, Section 5.2, from step 0.
    """
    loss, k = np.asarray(loss), np.maximum(steps_to(loss, target), 1)
    end = np.take_along_axis(loss, k[..., None], -1)[..., 0]
    kept = np.isfinite(end) & (end < loss[..., 0])
    return np.where(kept, 1 - (np.where(kept, end, 1.0) / loss[..., 0]) ** (1 / k), 0.0)


def best_factor(loss, target):
    """The row of losses (factors, S, steps + 1) with the fewest median steps to the target; of equal ones the fastest.

    Fastest: of the highest median rate.
    """
    steps, rate = (np.median(measure(loss, target), -1) for measure in (steps_to, rate_to))
    return int(np.lexsort((-rate, steps))[0])


def allowed_rate(low, high):
    """2 low / (low + high): by which the best step size shrinks the residual of a linear model each step, at least."""
    return 2 * low / (low + high)


def growth(depths, values):
    """(R^2 of a power law, R^2 of an exponential, exponent) of positive values over the depths."""
    logs = np.log(values)
    power = line(np.log(depths), logs)
    return power.r2, line(depths, logs).r2, power.slope
