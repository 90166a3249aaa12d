"""Losses with a Lipschitz derivative, descent on random subsets and fits of rates, against other calculations."""

import numpy as np
import pytest
import torch

from overparam.data import load
from overparam.errors import ParameterError
from overparam.experiments.allenzhu2019_thm6 import SmoothLoss
from overparam.models.deep_relu import ReLURuns
from overparam.theory import fits
from overparam.training import Checkpoint, SquaredLoss, gradient_descent
from overparam.training.descent import subset, subset_descent

KINDS = ["squares", "pl", "quartic", "power8", "bounded"]
R = torch.linspace(-4, 4, 8001, dtype=torch.float64)[:, None]
DATA = load("sphere", n_train=6, n_test=0, d=4, transform="unit_bias", seed=0)
Y = DATA.y_train[:, None]


@pytest.mark.parametrize("kind", KINDS)
def test_the_derivative_is_autograds_and_1_lipschitz(kind):
    loss, u = SmoothLoss(torch.zeros_like(R), kind), R.clone().requires_grad_()
    value, slope = loss(u)
    torch.testing.assert_close(slope.detach(), torch.autograd.grad(value, u)[0])
    curvature = slope.detach().diff(dim=0) / R.diff(dim=0)
    assert curvature.abs().max() <= 1 + 1e-9
    assert curvature.max() > 0.99


def test_values_are_those_of_the_formulas():
    at = lambda kind, r: SmoothLoss(torch.zeros(1, 1).double(), kind)(torch.tensor([[r]]).double())[0].item()  # noqa: E731
    assert at("squares", 3) == 4.5
    assert at("pl", 2) == pytest.approx((4 + 3 * np.sin(2) ** 2) / 8)
    assert at("quartic", -0.5) == pytest.approx(0.5**4 / 12)
    assert at("quartic", 2) == pytest.approx(1 / 12 + 1 / 3 + 1 / 2)
    assert at("power8", 0.5) == pytest.approx(0.5**8 / 56)
    assert at("power8", -3) == pytest.approx(1 / 56 + 2 / 7 + 2)
    assert at("bounded", 3) == pytest.approx(0.45)


def test_the_sine_loss_has_the_pl_constant_and_is_not_convex():
    each = [SmoothLoss(torch.zeros(1, 1).double(), "pl")(r[None]) for r in R[R[:, 0].abs() > 0.01][::4]]
    ratios = torch.stack([slope.square().sum() / value for value, slope in each])
    assert ratios.min().item() == pytest.approx(0.0439, abs=1e-4)
    slopes = torch.stack([slope[0, 0] for _, slope in each])
    assert slopes.diff().min() < 0


def test_rows_and_runs_of_a_loss():
    y = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    loss, u = SmoothLoss(y, "pl", runs_axis=True), torch.zeros(2, 5, 3, dtype=torch.float64)
    values, slopes = loss(u)
    for run in range(2):
        torch.testing.assert_close(loss.select(run)(u[run])[0], values[run])
    rows = torch.tensor([3, 1])
    torch.testing.assert_close(loss.rows(rows)(u[:, rows])[1], slopes[:, rows])
    with pytest.raises(ParameterError, match="kind of loss"):
        SmoothLoss(y, "cubic")


def nets(depth=2, m=8):
    return ReLURuns(5, m, 1, depth, seeds=[1, 2])


@pytest.mark.parametrize("batch", [2, 6])
def test_subset_descent_takes_the_steps_of_masked_gradients(batch):
    eta, steps, loss = [0.02, 0.01], 5, SquaredLoss(Y, "halfsum")
    found = subset_descent(nets(), DATA.x_train, loss, eta, steps, batch=batch, seed=3)
    for run in range(2):
        descent, losses = nets().descent(DATA.x_train, run), []
        for step in range(steps + 1):
            value, v = loss(descent.forward())
            losses.append(value.item())
            mask = torch.zeros_like(v)
            mask[subset(6, batch, 3, step)] = 6 / batch
            descent.descend(eta[run] * mask * v)
        assert found[run].tolist() == pytest.approx(losses, rel=1e-10)
    if batch == 6:
        whole = gradient_descent(nets(), DATA.x_train, loss, eta, steps).loss
        torch.testing.assert_close(found, whole)
    few = subset_descent(nets(), DATA.x_train, loss, eta, steps, batch=batch, seed=3, at=[0, 4])
    assert torch.equal(few, found[:, [0, 4]])


def test_subsets_are_uniform_and_a_function_of_the_step():
    draws = torch.stack([subset(5, 2, 7, step) for step in range(4000)])
    assert (draws[:, 0] != draws[:, 1]).all()
    counts = torch.bincount(draws.flatten(), minlength=5) / 8000
    assert counts.tolist() == pytest.approx([0.2] * 5, abs=0.02)
    assert torch.equal(subset(5, 2, 7, 11), draws[11])


def test_subset_descent_resumes_to_the_bit(tmp_path):
    loss, saved = SquaredLoss(Y, "halfsum"), Checkpoint(tmp_path / "sgd", every=0.0)
    run = lambda checkpoint: subset_descent(nets(), DATA.x_train, loss, 0.02, 8, batch=2, seed=0, checkpoint=checkpoint)  # noqa: E731
    whole = run(None)

    class Stop(Exception):
        pass

    def save(which, key, step, tensors, original=saved.save):
        original(which, key, step, tensors)
        if step == 4:
            raise Stop

    saved.save = save
    with pytest.raises(Stop):
        run(saved)
    assert torch.equal(run(Checkpoint(tmp_path / "sgd")), whole)


def test_bad_batches_are_refused():
    with pytest.raises(ParameterError, match="batch at most 6"):
        subset_descent(nets(), DATA.x_train, SquaredLoss(Y, "halfsum"), 0.1, 3, batch=7, seed=0)
    with pytest.raises(ParameterError, match="at must lie"):
        subset_descent(nets(), DATA.x_train, SquaredLoss(Y, "halfsum"), 0.1, 3, batch=2, seed=0, at=[5])


def test_rates_of_exact_curves():
    t = np.arange(300)
    assert fits.exponential(3 * np.exp(-0.02 * t)) == pytest.approx((0.02, 1))
    assert fits.power(5 * np.maximum(t, 1) ** -2.0) == pytest.approx((-2, 1))
    late = np.exp(-np.where(t < 90, 0.2 * t, 18 + 0.02 * (t - 90)))
    assert fits.exponential(late) == pytest.approx((0.02, 1))
    assert fits.exponential(late, share=0.9)[1] < 0.9
    floor = np.maximum(np.exp(-0.1 * t), 1e-6)
    assert fits.exponential(floor, until=1e-6) == pytest.approx((0.1, 1), rel=1e-3)
    assert fits.first_below(floor, 1e-6) == np.ceil(np.log(1e6) / 0.1)
    assert fits.first_below(floor, 1e-7) == 300
    assert fits.falls(np.array([3.0, 2, 2.5, 1])) == pytest.approx(2 / 3)
    assert fits.spread([2, 8, 4]) == 4


def test_a_line_has_scipys_slope_and_fit():
    from scipy.stats import linregress

    x, y = np.random.default_rng(0).normal(size=(2, 20))
    expected = linregress(x, y)
    assert fits.line(x, y) == pytest.approx((expected.slope, expected.intercept, expected.rvalue**2))
    y[3] = np.nan
    expected = linregress(np.delete(x, 3), np.delete(y, 3))
    assert fits.line(x, y) == pytest.approx((expected.slope, expected.intercept, expected.rvalue**2))
    assert np.isnan(fits.line([1, 1, 1], [1, 2, 3])[0])
