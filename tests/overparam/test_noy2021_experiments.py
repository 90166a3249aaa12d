"""Experiments of Noy et al. 2021 against brute force, autograd and direct trainings."""

import itertools

import numpy as np
import pytest
import torch

from overparam.data import load
from overparam.data.regression import LEVELS, grid_function, sgemm, ten_classes
from overparam.models.gated import GatedRuns
from overparam.theory import subnetworks as parts
from overparam.theory.finite_width_kernels import full_tangent_kernel, sharpness

N, D, OUT, M, DEPTH = 5, 6, 3, 40, 4
KINDS = ("grelu", "relu")


def unit_inputs(n=N, d=D, seed=0):
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


@pytest.mark.parametrize("kind", ["grelu", "relu"])
def test_sharpness_is_the_exact_kernels_largest_eigenvalue_over_n(kind):
    data = [sgemm("sgemm-grid", 20, 6, seed=seed) for seed in (0, 1)]
    net = GatedRuns(kind, 15, 12, 3, seeds=[3, 4])
    found = sharpness(net, torch.stack([part.x_train for part in data]))
    for column, part in enumerate(data):
        run = GatedRuns(kind, 15, 12, 3, seeds=[3 + column]).descent(part.x_train, 0)
        run.forward()
        exact = torch.linalg.eigvalsh(full_tangent_kernel(run))[-1].item() / 20
        assert found[column] == pytest.approx(exact, rel=1e-2)


def test_ten_classes_are_centred_by_the_training_images_and_one_hot():
    plain = load("mnist-5k", n_train=30, n_test=10, seed=2, transform="raw", flat=True)
    data = ten_classes("mnist-5k", 30, 10, seed=2, stand_in="digits")
    centred = plain.x_test - plain.x_train.mean(0)
    np.testing.assert_allclose(data.x_test * centred.norm(dim=1, keepdim=True), centred, atol=1e-6)
    assert torch.equal(data.y_train.argmax(1), plain.y_train.long())
    assert (data.y_train.sum(1) == 1).all()
    assert data.stand_in == "digits"


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
    return [
        torch.diag((run.h[0][i] > 0).double()),
        *(torch.diag(gate[i].double()) for gate in run.gates),
    ]


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
    found = list(net.layers_at_start(x, 1))
    assert len(found) == 4
    for k, (h, gate) in enumerate(found):
        torch.testing.assert_close(h, run.h[k])
        expected = run.h[0] > 0 if k == 0 else run.gates[k - 1] > 0
        assert torch.equal(gate, expected)
