"""The leaky net that keeps W_1 itself against the one that does not, and the comparisons of slopes by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from overparam.data import load
from overparam.experiments import guo2024
from overparam.models.leaky import LeakyMLP
from overparam.training import CrossEntropyLoss, stochastic_gradient_descent

N, P, M, D, L = 11, 9, 6, 3, 3
ALPHAS = [-1.0, 0.0, 0.5]


@pytest.mark.parametrize("batched", [False, True])
def test_keeping_the_first_layer_changes_no_number(batched):
    x = torch.randn(N, P, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    loss = CrossEntropyLoss(torch.arange(N) % D)
    histories = []
    for keep_W1 in (False, True):
        net = LeakyMLP(P, M, D, L, alphas=ALPHAS, seeds=[4] * 3, keep_W1=keep_W1, dtype=torch.float64)
        inputs = net.embed(x)
        log = {"f": lambda run, inputs=inputs: run.predict(inputs), "W1": lambda run: run.weights[0]}
        options = {"batch": 4, "seed": 2, "log": log, "batched": batched}
        histories.append(stochastic_gradient_descent(net, inputs, loss, 0.1, 5, **options))
    expected, direct = histories
    np.testing.assert_allclose(direct.loss, expected.loss, rtol=1e-11)
    for name in ("f", "W1"):
        np.testing.assert_allclose(direct.logs[name], expected.logs[name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("name", "classes"), [("guo-synthetic", 0), ("fashion-sample", 10)])
def test_curves_have_the_slope_and_the_draw_as_axes_and_one_batch_of_everything_is_full_batch(name, classes):
    data = [load(name, n_train=12, n_test=10, seed=s) for s in (0, 1)]
    setting = guo2024.Setting(m=8, L=2, eta=1e-3, steps=3, at=[0, 3], batch=12, classes=classes)
    curves = guo2024.leaky_curves(data, [0, 1], ALPHAS, setting)
    assert curves["train"].shape == (3, 2, 4)
    assert curves["test"].shape == (3, 2, 2)
    assert ("accuracy" in curves) == bool(classes)
    alone = guo2024.leaky_curves(data[1:], [1], ALPHAS[1:2], setting)
    np.testing.assert_allclose(curves["train"][1, 1], alone["train"][0, 0], rtol=1e-12)
    full = guo2024.leaky_curves(data, [0, 1], ALPHAS, replace(setting, batch=None))
    for name in curves:
        np.testing.assert_allclose(full[name], curves[name], rtol=1e-9)


def test_comparisons_by_hand():
    values = np.array([[1.0, 2.0], [3.0, 1.0], [4.0, 4.0]])
    assert guo2024.share_of_wins(values, ALPHAS) == 0.5
    assert guo2024.inversions(values, ALPHAS, [-1.0, 0.0, 0.5]) == 0
    assert guo2024.inversions(values, ALPHAS, [0.5, 0.0, -1.0]) == 3
    assert guo2024.mean_ratio(values, ALPHAS, -1.0, 0.0) == 0.75
    assert guo2024.mean_ratio(values, ALPHAS, 0.5, None) == 4 / 1.5
