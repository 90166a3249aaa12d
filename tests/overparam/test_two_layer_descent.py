"""Gradient descent of the two-layer net, with all that it can log, against plain weights.

Slopes of power laws.
"""

import numpy as np
import pytest
import torch

from overparam.models.two_layer import TwoLayerReLU
from overparam.theory.finite_width_kernels import tangent_kernel
from overparam.theory.fits import loglog_slope
from overparam.training import SquaredLoss, gradient_descent

LOG = {
    "gram": tangent_kernel,
    "change": lambda run: run.weight_change().norm(dim=-1),
    "flipped": lambda run: run.flipped(),
    "near_zero": lambda run: run.near_zero(),
}


def unit_rows(n, d):
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def plain_descent(net, draw, x, y, eta, steps):
    """[W(0), ..., W(steps)] by the definition, and the outputs at each."""
    W, a, weights, outputs = net.W[draw].clone(), net.a[draw], [], []
    for _ in range(steps + 1):
        weights.append(W.clone())
        outputs.append(torch.relu(x @ W.T) @ a / net.m**0.5)
        active = (x @ W.T >= 0).double()
        W -= eta * (active * (outputs[-1] - y)[:, None] * a).T @ x / net.m**0.5
    return weights, outputs


# n < 2 rank trains the pre-activations (Gram), otherwise the weights in the span of the data
@pytest.mark.parametrize(("n", "d"), [(9, 8), (25, 4)])
@pytest.mark.parametrize("m", [40, 80])  # all runs at once, one after another
@pytest.mark.parametrize("antisym", [False, True])
def test_what_is_logged_is_that_of_plain_descent(n, d, m, antisym):
    x, eta, steps, at = unit_rows(n, d), 0.1, 20, [0, 7, 20]
    y = torch.where(torch.arange(n) % 3 == 0, 1.0, -1.0).double()
    settings = {"antisym": antisym, "dtype": torch.float64}
    kappas, seeds = [0.02, 0.02, 0.5, 0.5], [1, 5, 1, 5]
    net = TwoLayerReLU(d, m, kappas, seeds=seeds, **settings)
    trained = gradient_descent(net, x, SquaredLoss(y, "halfsum"), eta, steps, log=LOG, at=at)
    logs = trained.logs
    assert not antisym or net.outputs(x).abs().max() < 1e-14
    for i in range(4):
        alone = TwoLayerReLU(d, m, kappas[i], seeds=[seeds[i]], **settings)
        weights, outputs = plain_descent(alone, 0, x, y, eta, steps)
        residual = [(y - u).norm().item() for u in outputs]
        assert (2 * trained.loss[i]).sqrt().tolist() == pytest.approx(residual, rel=1e-10)
        change = [weights[k] - weights[0] for k in at]
        moved = torch.stack([c.norm(dim=1) for c in change])
        torch.testing.assert_close(logs["change"][i], moved, rtol=1e-7, atol=1e-12)
        active = [(x @ W.T >= 0).double() for W in (weights[0], weights[-1])]
        for k, A in ((0, active[0]), (-1, active[1])):
            assert logs["gram"][i, k].numpy() == pytest.approx(
                ((x @ x.T) * (A @ A.T) / m).numpy(), abs=1e-13
            )
        assert logs["flipped"][i, -1].item() == pytest.approx(
            (active[0] != active[1]).double().mean().item()
        )
        near = ((x @ weights[0].T).abs() <= moved[-1].max()).double().mean().item()
        assert logs["near_zero"][i, -1].tolist() == [pytest.approx(near), 0]
    assert logs["flipped"].max() > 0.01


def test_slopes_of_power_laws():
    x = np.array([1.0, 4.0, 16.0, 2.0, 8.0])
    groups = np.array([0, 0, 0, 1, 1])
    assert loglog_slope(x, 3 * x**-0.5) == pytest.approx(-0.5)
    assert loglog_slope(x, np.where(groups, 7.0, 0.1) * x**-0.7, groups) == pytest.approx(-0.7)
    assert np.isnan(loglog_slope(x, x - 1))
    assert np.isnan(loglog_slope(np.ones(3), np.ones(3)))
