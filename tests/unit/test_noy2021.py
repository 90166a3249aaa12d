"""Experiments of Noy et al. 2021 against brute force, autograd and direct trainings."""

import itertools
import math

import numpy as np
import pytest
import torch

from overparam.bounds import noy2021
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
def test_norms_of_intermediate_transforms(kind):
    run = opened(kind)
    norms = parts.product_norms(run, iterations=400)
    for i, bottom in itertools.product(range(N), range(DEPTH)):
        D = diagonals(run, i)
        Z = D[bottom + 1]
        for top in range(bottom, DEPTH):
            Z = Z if top == bottom else D[top + 1] @ run.W[top] @ Z
            assert norms[top, bottom, i].item() == pytest.approx(torch.linalg.matrix_norm(Z, 2).item(), rel=1e-3)
    assert norms[0, 1:].abs().max() == 0


def test_mean_cosines():
    rows = torch.tensor([[1.0, 0], [1, 1], [0, 0], [0, -2]], dtype=torch.float64)
    half = math.sqrt(0.5)
    mean, largest = parts.mean_cosine(rows)
    assert mean.item() == pytest.approx((half - half) * 2 / 12)
    assert largest.item() == pytest.approx(half)
    both, _ = parts.mean_cosine(torch.stack([rows, torch.ones(4, 2, dtype=torch.float64)]))
    torch.testing.assert_close(both, torch.tensor([mean.item(), 1.0], dtype=torch.float64))


def test_the_profile_by_depth_is_made_of_its_definitions():
    x, net = unit_inputs(6, 5), GatedRuns("grelu", 5, 30, 3, seeds=[3])
    profile = noy2021_depth.depth_profile(net, x)
    pairs = [(i, j) for i in range(6) for j in range(6) if i != j]
    for k, (h, gate) in enumerate(noy2021_depth.layers(net, x)):
        cosines = [torch.cosine_similarity(h[i], h[j], 0).item() for i, j in pairs]
        mean = h.mean(0)
        expected = {
            "cosine": np.mean(cosines),
            "largest": np.abs(cosines).max(),
            "overlap": np.mean([(gate[i] & gate[j]).double().mean().item() for i, j in pairs]),
            "shift": (h.mean() / h.square().mean().sqrt()).item(),
            "energy": (mean.norm() ** 2 / h.square().sum(1).mean()).item(),
            "dead": np.mean([not any(gate[i, s] for i in range(6)) for s in range(30)]),
        }
        for name, value in expected.items():
            assert profile[name][0, k].item() == pytest.approx(value, rel=1e-9), name


def test_profiles_have_their_wide_limits():
    x = torch.eye(8, 16, dtype=torch.float64)
    grelu, relu = (
        noy2021_depth.depth_profile(GatedRuns(kind, 16, 600, 4, seeds=range(3)), x) for kind in ("grelu", "relu")
    )
    np.testing.assert_allclose(grelu["cosine"].mean(0), noy2021.covariances(4, 0.0), atol=0.04)
    overlaps = noy2021.gate_overlap(noy2021.gate_cosines(4, 0.0))
    for profile in (grelu, relu):
        np.testing.assert_allclose(profile["overlap"].mean(0), overlaps, atol=0.02)
    np.testing.assert_allclose(relu["cosine"].mean(0), noy2021.gate_cosines(5, 0.0)[1:], atol=0.03)
    np.testing.assert_allclose(relu["shift"].mean(0), math.pi**-0.5, atol=0.02)
    np.testing.assert_allclose(grelu["shift"].mean(0)[1:], 0, atol=0.05)
    assert relu["energy"].mean(0).diff().min() > 0 > grelu["energy"].mean(0).diff().max()


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
