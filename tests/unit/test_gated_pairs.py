"""GReLU nets beside their ReLU twins: step sizes against the exact kernel, curves against a direct training."""

import numpy as np
import pytest
import torch

from overparam.errors import ParameterError
from overparam.experiments.noy2021 import (
    KINDS,
    LEVELS,
    Settings,
    descend_pairs,
    endless,
    grid_function,
    ratio,
    rises,
    run_lines,
    sgd_pairs,
    sgemm,
    step_sizes,
    ten_classes,
    trend,
)
from overparam.experiments.noy2021_fig3bc import switched
from overparam.models.gated import GatedRuns
from overparam.theory.finite_kernels import ntk_gram
from overparam.training import RegressionLoss, gradient_descent

NETS = Settings(12, 3)


@pytest.fixture(scope="module")
def data():
    return [sgemm("sgemm-grid", 20, 6, seed=seed) for seed in (0, 1)]


@pytest.mark.parametrize("unit", ["f", "eta", "own"])
def test_step_sizes_are_shares_of_the_exact_kernel(data, unit):
    pairs = descend_pairs(data, [3, 4], [0.01, 0.02], Settings(12, 3, unit=unit), steps=2)
    for column, (part, seed) in enumerate(zip(data, [3, 4], strict=True)):
        exact = {}
        for kind in KINDS:
            run = GatedRuns(kind, 15, 12, 3, seeds=[seed]).descent(part.x_train, 0)
            run.forward()
            exact[kind] = torch.linalg.eigvalsh(ntk_gram(run))[-1].item() / 20
            assert pairs.sharpness[kind][column] == pytest.approx(exact[kind], rel=1e-2)
        shares = {"f": exact["relu"], "eta": 1.0, "own": exact["grelu"]}[unit] * pairs.eta[:, column]
        np.testing.assert_allclose(shares, [0.01, 0.02], rtol=1e-2)
        np.testing.assert_allclose(pairs.f[:, column], pairs.eta[:, column] * exact["relu"], rtol=1e-2)


def test_unknown_units_are_refused():
    with pytest.raises(ParameterError, match="unit"):
        step_sizes({"relu": np.ones(1)}, [1.0], "g")


def test_curves_are_those_of_single_trainings_in_units_of_the_labels(data):
    pairs = descend_pairs(data, [3, 4], [0.5, 1.0], NETS, steps=6, gradients=True)
    for kind in KINDS:
        y = data[1].y_train[:, None]
        net = GatedRuns(kind, 15, 12, 3, seeds=[4])
        alone = gradient_descent(net, data[1].x_train, RegressionLoss(y), pairs.eta[1, 1], 6).loss[0]
        np.testing.assert_allclose(pairs.loss[kind][1, 1], alone / (y.square().mean() / 2), rtol=1e-10)
        assert pairs.logs[kind]["change"].shape == (2, 2, 7)
        assert np.isnan(pairs.logs[kind]["change"][..., 0]).all()


def test_one_batch_of_everything_is_full_batch_descent(data):
    full = descend_pairs(data, [3, 4], [0.5], NETS, steps=4)
    pairs = sgd_pairs(data, [3, 4], [0.5], NETS, batch=20, epochs=4, changes=True)
    for kind in KINDS:
        np.testing.assert_allclose(pairs.loss[kind], full.loss[kind], rtol=1e-9)
        assert pairs.logs[kind]["test"].shape == (1, 2, 5)
    assert pairs.logs["grelu"]["changes"][..., 1:].max() == 0


def test_divergence_is_an_infinite_loss(data):
    pairs = descend_pairs(data, [3, 4], [1e4], NETS, steps=5)
    assert np.isinf(pairs.loss["relu"][..., -1]).all()
    np.testing.assert_array_equal(endless([[1.0, np.nan, 2.0]]), [[1.0, np.inf, np.inf]])
    assert rises(np.array([3.0, 1.0, 2.0, np.inf, np.inf])) == 2
    assert ratio(1.0, np.inf) == 0
    assert np.isnan(ratio(np.inf, np.inf))


def test_trend_is_spearmans_correlation():
    from scipy.stats import spearmanr

    values = np.random.default_rng(0).standard_normal((3, 30)).round(1)  # with ties
    np.testing.assert_allclose(trend(values), [spearmanr(row, range(30)).statistic for row in values], rtol=1e-12)


def test_an_exact_switch_keeps_the_training_error_and_shrinks_the_norm():
    data = [ten_classes("fashion-sample", 12, 8, seed=0)]
    run = switched(data, [5], 1.0, [1e-12, 0.5], Settings(48, 2), batch=6, epochs=(3, 2))
    assert run.before["train"].shape == (1, 4)
    assert run.after["test"].shape == (2, 1, 3)
    assert run.relu["train"].shape == (1, 6)
    np.testing.assert_allclose(run.after["train"][0, :, 0], run.before["train"][:, -1], rtol=1e-9)
    assert run.norms["after"][1, 0] < run.norms["after"][0, 0] < run.norms["before"][0]
    assert run.ranks[0, 0] == 12


def test_the_grid_is_that_of_the_kernels_and_its_function_does_not_depend_on_the_rows_seed():
    assert len(LEVELS) == 14
    z, y = grid_function(4000, seed=1)
    for column, levels in zip(z.T, LEVELS, strict=True):
        assert len(column.unique()) == len(levels)
    assert y.std().item() == pytest.approx(1, abs=0.2)
    assert sgemm("sgemm-grid", 5, 2, seed=0, target="raw").y_train.min() > 0
    np.testing.assert_allclose(sgemm("sgemm-grid", 5, 2, seed=0).x_test.norm(dim=1), 1, rtol=1e-12)


def test_ten_classes_are_centred_one_hot_and_of_norm_one():
    data = ten_classes("fashion-sample", 50, 20, seed=0, stand_in="words")
    assert data.y_train.shape == (50, 10)
    assert (data.y_train.sum(1) == 1).all()
    np.testing.assert_allclose(data.x_test.norm(dim=1), 1, rtol=1e-12)
    assert data.stand_in == "words"


def test_diverged_runs_are_drawn_at_the_edge():
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    run_lines(ax, range(3), [[1.0, 2.0, np.inf], [1.0, 1.0, 1.0]], i=0, label="runs")
    assert [list(line.get_xdata()) for line in ax.lines if line.get_marker() == "^"] == [[2]]
