"""The sweep over widths and scales against plain weights, one run at a time; slopes against exact power laws."""

import numpy as np
import pytest
import torch

from overparam.experiments.arora2019 import Sweep, width_scale_sweep
from overparam.models.two_layer import TwoLayerReLU
from overparam.theory.fits import loglog_slope


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
def test_the_sweep_is_the_plain_descent(n, d, m):
    x, eta, steps, at = unit_rows(n, d), 0.1, 20, [0, 7, 20]
    y = torch.where(torch.arange(n) % 3 == 0, 1.0, -1.0).double()
    runs = width_scale_sweep(x, y, eta, steps, Sweep([m], [0.02, 0.5], 0.3, [1, 5]), at=at)
    assert runs["kappa"].tolist() == [0.02, 0.02, 0.5, 0.5, 0.3, 0.3]
    assert runs["antisym"].tolist() == [False] * 4 + [True] * 2
    assert runs["seed"].tolist() == [1, 5] * 3
    assert np.abs(runs["outputs"][4:]).max() < 1e-14
    for i in range(6):
        settings = {"antisym": runs["antisym"][i], "dtype": torch.float64}
        net = TwoLayerReLU(d, m, runs["kappa"][i], seeds=[runs["seed"][i].item()], **settings)
        weights, outputs = plain_descent(net, 0, x, y, eta, steps)
        residual = [(y - u).norm().item() for u in outputs]
        assert runs["residual"][i] == pytest.approx(np.array(residual), rel=1e-10)
        assert runs["outputs"][i] == pytest.approx(outputs[0].numpy(), abs=1e-13)
        change = [weights[k] - weights[0] for k in at]
        assert runs["moved"][i] == pytest.approx(np.array([c.norm().item() for c in change]), rel=1e-7, abs=1e-12)
        farthest = np.array([c.norm(dim=1).max().item() for c in change])
        assert runs["farthest"][i] == pytest.approx(farthest, rel=1e-7, abs=1e-12)
        active = [(x @ W.T >= 0).double() for W in (weights[0], weights[-1])]
        for name, A in zip(("gram0", "gram"), active, strict=True):
            assert runs[name][i] == pytest.approx(((x @ x.T) * (A @ A.T) / m).numpy(), abs=1e-13)
        assert runs["flipped"][i] == pytest.approx((active[0] != active[1]).double().mean().item())
        assert runs["near"][i] == pytest.approx(((x @ weights[0].T).abs() <= farthest[-1]).double().mean().item())
        assert runs["stray"][i] == 0
    assert runs["flipped"].max() > 0.01


def test_slopes_of_power_laws():
    x = np.array([1.0, 4.0, 16.0, 2.0, 8.0])
    groups = np.array([0, 0, 0, 1, 1])
    assert loglog_slope(x, 3 * x**-0.5) == pytest.approx(-0.5)
    assert loglog_slope(x, np.where(groups, 7.0, 0.1) * x**-0.7, groups) == pytest.approx(-0.7)
    assert np.isnan(loglog_slope(x, x - 1))
    assert np.isnan(loglog_slope(np.ones(3), np.ones(3)))
