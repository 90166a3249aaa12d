"""Residual nets and their plain twins at the start and in training, as Frei et al. 2019's claims are measured."""

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
