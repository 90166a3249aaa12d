"""Residual nets and their plain twins at the start and in training, as Frei et al. 2019's claims are measured."""

from itertools import pairwise

import numpy as np
import torch

from ..models.residual import ResidualReLU, ResidualRuns, theta_of
from ..training import LogisticLoss, gradient_descent


def at_depths(measure, d, m, depths, rule, *, seeds, dtype=torch.float64, device="cpu"):
    """{L: {name: (seeds, ...) float64 array}}: `measure(net, seed)`, a dict, of a fresh net at every depth and seed."""
    results = {}
    for L in depths:
        nets = (ResidualReLU(d, m, L, theta_of(rule, L), seed=seed, dtype=dtype, device=device) for seed in seeds)
        rows = [measure(net, seed) for net, seed in zip(nets, seeds, strict=True)]
        results[L] = {name: torch.stack([row[name] for row in rows]).double().cpu().numpy() for name in rows[0]}
    return results


def at_start(net, x, *, seed, iterations):
    """Norms of activations and of layer products of one net, at every input x (n, d).

    "|x_1|", "|x_L|", "|x_{L+1}|" and the spectral norms "H_2^L", "H_{L/2+1}^L", "H_2^{L+1}" (n,), by power iteration
    from a vector of `seed`; "profile" (n, L + 1), all |x_l|; "range" (2,), the smallest and the largest of them;
    "smallest step" (), min over l, j and inputs of x_{l,j} - x_{l-1,j} for 2 <= l <= L.
    """
    L = net.L
    activations, patterns = net.forward(x)
    norms = torch.stack([a.norm(dim=1) for a in activations], -1)
    spans = {"H_2^L": (2, L), "H_{L/2+1}^L": (L // 2 + 1, L), "H_2^{L+1}": (2, L + 1)}
    return {
        **{k: net.product_norm(patterns, *span, seed=seed, iterations=iterations) for k, span in spans.items()},
        **{"|x_1|": norms[:, 0], "|x_L|": norms[:, -2], "|x_{L+1}|": norms[:, -1], "profile": norms},
        "range": torch.stack([norms.min(), norms.max()]),
        "smallest step": torch.stack([(b - a).min() for a, b in pairwise(activations[:-1])]).min(),
    }


def depth_sweep(d, m, depths, rule, x, *, iterations, **options):
    """What `at_start` measures, with axes (depths, seeds, ..) as tensors; "profile" of the last depth alone."""
    x = x.to(options["device"], options["dtype"])
    measure = lambda net, seed: at_start(net, x, seed=seed, iterations=iterations)  # noqa: E731
    rows = list(at_depths(measure, d, m, depths, rule, **options).values())
    joined = {name: np.stack([row[name] for row in rows]) for name in rows[0] if name != "profile"}
    return {name: torch.from_numpy(values) for name, values in {**joined, "profile": rows[-1]["profile"]}.items()}


def train_at_depth(
    data, m, L, rule, eta, steps, *, seeds, at, gradients_at=(), dtype=None, device=None, checkpoint=None
):
    """Full-batch gradient descent on the logistic loss, all layers trained.

    data: a `DataSet` with labels +1 and -1. m: width; L: depth; rule: see `theta_of`; eta: one step size or one per
    run; steps: K; seeds: of the weights, one per run; at: steps at which distances and test errors are measured;
    gradients_at: steps at which gradients are. A run that diverges goes on with NaN.
    Returns {name: float64 array}: loss, surrogate (R, K + 1); distance |W_l(k) - W_l(0)|_F, (R, len(at), L + 1);
    train_error, test_error, test_surrogate (R, len(at)); gradients (R, len(gradients_at), L + 1, 2), Frobenius and
    spectral norms of dL_S/dW_l.
    """
    x, y, x_test, y_test = (t.to(device, dtype) for t in (data.x_train, data.y_train, data.x_test, data.y_test))
    nets = ResidualRuns(x.shape[1], m, L, theta_of(rule, L), seeds=seeds, dtype=x.dtype, device=x.device)
    loss, test = LogisticLoss(y), LogisticLoss(y_test)
    log = {
        "outputs": lambda run: run.forward(),
        "distance": lambda run: run.distances(),
        "test": lambda run: _errors(test, run.predict(x_test)),
    }
    schedule = {"outputs": range(steps + 1), "distance": at, "test": at}
    if len(gradients_at):
        log["gradients"], schedule["gradients"] = lambda run: run.gradient_norms(loss), gradients_at
    options = {"log": log, "at": schedule, "allow_divergence": True, "checkpoint": checkpoint}
    history = gradient_descent(nets, x, loss, eta, steps, **options)
    outputs, labels = history.logs.pop("outputs"), y.double().cpu()
    test_errors = history.logs.pop("test")
    measured = {
        "loss": history.loss,
        "surrogate": torch.sigmoid(-outputs * labels).mean(-1),
        "train_error": _wrong(outputs, labels)[:, list(at)],
        "test_error": test_errors[..., 0],
        "test_surrogate": test_errors[..., 1],
        **history.logs,
    }
    return {name: values.numpy() for name, values in measured.items()}


def _errors(loss, outputs):
    """Share of wrong signs and surrogate error, (..., 2)."""
    return torch.stack([_wrong(outputs, loss.y), loss.surrogate(outputs)], -1)


def _wrong(outputs, labels):
    """Share of examples with y f <= 0, NaN where f is."""
    return (outputs * labels <= 0).to(outputs).mean(-1) + 0 * outputs.sum(-1)


def gradients_in_training(data, m, L, rule, eta, steps, *, seeds, at, dtype=None, device=None, checkpoint=None):
    """||dL_S/dW_l||_F and the surrogate error E_S along the training of `train_at_depth`, all without a test set.

    Returns {name: float64 array}: gradients (R, len(at), L + 1); surrogate (R, len(at)), both before the steps `at`;
    distance |W_l(K) - W_l(0)|_F, (R, 1, L + 1). The other arguments are those of `train_at_depth`.
    """
    x, y = (t.to(device, dtype) for t in (data.x_train, data.y_train))
    nets = ResidualRuns(x.shape[1], m, L, theta_of(rule, L), seeds=seeds, dtype=x.dtype, device=x.device)
    loss = LogisticLoss(y)
    log = {
        "gradients": lambda run: _frobenius(run.net.gradients(run.x, loss(run.forward())[1])),
        "surrogate": lambda run: loss.surrogate(run.forward().double()),
        "distance": lambda run: run.distances(),
    }
    schedule = {"gradients": at, "surrogate": at, "distance": [steps]}
    options = {"log": log, "at": schedule, "allow_divergence": True, "checkpoint": checkpoint}
    history = gradient_descent(nets, x, loss, eta, steps, **options)
    return {name: values.numpy() for name, values in history.logs.items()}


def _frobenius(matrices):
    return torch.stack([matrix.norm(dim=(-2, -1)) for matrix in matrices], -1)
