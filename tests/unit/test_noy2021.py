"""Experiments of Noy et al. 2021 against brute force, autograd and direct trainings."""

import itertools

import numpy as np
import pytest
import torch

from overparam.errors import ParameterError
from overparam.experiments import noy2021_depth, noy2021_sec44
from overparam.experiments import noy2021_subnetworks as parts
from overparam.experiments.noy2021 import LEVELS, grid_function, sgemm
from overparam.experiments.noy2021_pairs import (
    KINDS,
    Settings,
    descend_pairs,
    endless,
    ratio,
    rises,
    sgd_pairs,
    step_sizes,
    trend,
)
from overparam.models.gated import GatedRuns
from overparam.theory.finite_kernels import ntk_gram
from overparam.training import RegressionLoss, gradient_descent

N, D, OUT, M, DEPTH = 5, 6, 3, 40, 4
NETS = Settings(12, 3)


def unit_inputs(n=N, d=D, seed=0):
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


@pytest.fixture(scope="module")
def data():
    return [sgemm("sgemm-grid", 20, 6, seed=seed) for seed in (0, 1)]


@pytest.mark.parametrize("unit", ["f", "eta", "own"])
def test_step_sizes_are_shares_of_the_exact_kernel(data, unit):
    with pytest.raises(ParameterError, match="unit"):
        step_sizes({"relu": np.ones(1)}, [1.0], "g")
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


def test_the_grid_is_that_of_the_kernels_and_its_function_does_not_depend_on_the_rows_seed():
    assert len(LEVELS) == 14
    z, y = grid_function(4000, seed=1)
    for column, levels in zip(z.T, LEVELS, strict=True):
        assert len(column.unique()) == len(levels)
    assert y.std().item() == pytest.approx(1, abs=0.2)
    assert sgemm("sgemm-grid", 5, 2, seed=0, target="raw").y_train.min() > 0
    np.testing.assert_allclose(sgemm("sgemm-grid", 5, 2, seed=0).x_test.norm(dim=1), 1, rtol=1e-12)


def opened(kind, n=N, d=D, out=OUT, m=M, L=DEPTH, seed=0):
    return GatedRuns(kind, d, m, L, out, seeds=[seed]).descent(unit_inputs(n, d), 0)


def targets(n=N, d=OUT):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(8), dtype=torch.float64)


def diagonals(run, i):
    return [torch.diag((run.h[0][i] > 0).double()), *(torch.diag(gate[i].double()) for gate in run.gates)]


def formed(run, i, k):
    """F_k and G_k of one input as the paper writes them; k may be L + 1 for F and 0 for G."""
    D, L = diagonals(run, i), len(run.W)
    F, G = run.B @ D[L], D[0] @ run.C
    for l in range(L, k - 1, -1):
        F = F @ run.W[l - 1] @ D[l - 1]
    for l in range(1, min(k, L) + 1):
        G = D[l] @ run.W[l - 1] @ G
    return F, G


@pytest.mark.parametrize("kind", KINDS)
def test_subnetworks_are_the_products_of_the_paper(kind):
    run = opened(kind)
    y, left, right = run.forward(), parts.left_parts(run), parts.right_parts(run)
    for i, k in itertools.product(range(N), range(DEPTH + 1)):
        F, G = formed(run, i, k + 1)[0], formed(run, i, k)[1]
        torch.testing.assert_close(left[k][i], F)
        torch.testing.assert_close(right[k][i], G)
        torch.testing.assert_close(G @ run.x[i], run.h[k][i])
        torch.testing.assert_close(F @ run.h[k][i], y[i])
    jacobian = torch.autograd.functional.jacobian(lambda x: run.predict(x[None])[0], run.x[1])
    torch.testing.assert_close(run.B @ right[-1][1], jacobian)


def test_eigenvalues_and_covariances():
    run = opened("grelu")
    run.forward()
    found, pairs = parts.gram_eigenvalues(run), parts.covariances(run)
    for k, i in itertools.product(range(DEPTH + 1), range(N)):
        F, G = formed(run, i, k + 1)[0], formed(run, i, k)[1]
        for name, matrix, rank in (("F", F, OUT), ("G", G, D)):
            s = torch.linalg.svdvals(matrix)[:rank] ** 2
            torch.testing.assert_close(found[name][k, i], torch.stack([s[-1], s[0]]))
    for k, i, j in itertools.product(range(DEPTH), range(N), range(N)):
        Fs = [formed(run, a, k + 2)[0] for a in (i, j)]
        expected = (run.h[k][i] @ run.h[k][j]).abs() * torch.linalg.matrix_norm(Fs[1] @ Fs[0].T, 2)
        torch.testing.assert_close(pairs[k, i, j], expected)


@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_those_of_the_opened_net(kind):
    x, net = unit_inputs(6, 5), GatedRuns(kind, 5, 30, 3, seeds=[3, 4])
    run = net.descent(x, 1)
    run.forward()
    found = list(noy2021_depth.layers(net, x, 1))
    assert len(found) == 4
    for k, (h, gate) in enumerate(found):
        torch.testing.assert_close(h, run.h[k])
        expected = run.h[0] > 0 if k == 0 else run.gates[k - 1] > 0
        assert torch.equal(gate, expected)


def test_products_of_open_gates_alone():
    m, block = 40, 8
    gate = torch.tensor([1.0, 1, 0, 1, 0])
    spans = noy2021_sec44.open_spans(gate, block)
    assert spans == [(0, 16), (24, 32)]
    W, h, opened = torch.rand(m, m), torch.rand(m), gate.repeat_interleave(block)
    found = noy2021_sec44.open_product(W, h, spans, [(0, m)], torch.zeros(m))
    torch.testing.assert_close(found, (W @ h) * opened)
    found = noy2021_sec44.open_product(W, h, spans, spans, torch.zeros(m))
    torch.testing.assert_close(found, (W @ (h * opened)) * opened)


def test_inference_by_blocks_has_the_outputs_of_the_net():
    x, net = unit_inputs(30, 6), GatedRuns("grelu", 6, 64, 4, 2, seeds=[0])
    for blocks in (4, 16):
        size = 64 // blocks
        spread = torch.eye(blocks).to(x).repeat_interleave(size, 0)
        made = [(spread, net.psi(0, k, x)[::size]) for k in range(1, 5)]
        run = net.with_psi(made).descent(x, 0)
        fast = noy2021_sec44.BlockInference(run, made)
        torch.testing.assert_close(torch.stack([fast(point) for point in x]), run.forward())
