"""Descent on random subsets and fits of rates, against other calculations."""

import numpy as np
import pytest
import torch

from overparam.data import load
from overparam.errors import ParameterError
from overparam.models.deep_relu import ReLURuns
from overparam.theory import fits
from overparam.training import Checkpoint, SquaredLoss, Subsets, gradient_descent
from overparam.training.batches import subset

DATA = load("sphere", n_train=6, n_test=0, d=4, transform="unit_bias", seed=0)
Y = DATA.y_train[:, None]


def nets(depth=2, m=8):
    return ReLURuns(5, m, 1, depth, seeds=[1, 2])


@pytest.mark.parametrize("batch", [2, 6])
def test_subset_descent_takes_the_steps_of_masked_gradients(batch):
    eta, steps, loss = [0.02, 0.01], 5, SquaredLoss(Y, "halfsum")

    def losses_on(subsets):
        return gradient_descent(nets(), DATA.x_train, loss, eta, steps, batches=subsets).loss

    found = losses_on(Subsets(batch, seed=3))
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
    assert torch.equal(losses_on(Subsets(batch, seed=3, at=(0, 4))), found[:, [0, 4]])


def test_subsets_are_uniform_and_a_function_of_the_step():
    draws = torch.stack([subset(5, 2, 7, step) for step in range(4000)])
    assert (draws[:, 0] != draws[:, 1]).all()
    counts = torch.bincount(draws.flatten(), minlength=5) / 8000
    assert counts.tolist() == pytest.approx([0.2] * 5, abs=0.02)
    assert torch.equal(subset(5, 2, 7, 11), draws[11])


def test_subset_descent_resumes_to_the_bit(tmp_path):
    loss, saved = SquaredLoss(Y, "halfsum"), Checkpoint(tmp_path / "sgd", every=0.0)

    def run(checkpoint):
        options = {"batches": Subsets(2, seed=0), "checkpoint": checkpoint}
        return gradient_descent(nets(), DATA.x_train, loss, 0.02, 8, **options).loss

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
    loss = SquaredLoss(Y, "halfsum")
    with pytest.raises(ParameterError, match=r"batch must lie in 1..6"):
        gradient_descent(nets(), DATA.x_train, loss, 0.1, 3, batches=Subsets(7, seed=0))
    with pytest.raises(ParameterError, match="at must lie"):
        gradient_descent(nets(), DATA.x_train, loss, 0.1, 3, batches=Subsets(2, seed=0, at=(5,)))


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
    with_a_gap = y.copy()
    with_a_gap[3] = np.nan
    rest = np.arange(20) != 3
    for found, expected in (
        (fits.line(x, y), linregress(x, y)),
        (fits.line(x, with_a_gap), linregress(x[rest], y[rest])),
    ):
        assert found == pytest.approx((expected.slope, expected.intercept, expected.rvalue**2))
    assert np.isnan(fits.line([1, 1, 1], [1, 2, 3])[0])
