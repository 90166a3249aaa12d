"""Subnetworks, one-step decompositions and moved kernels of gated nets against brute force and autograd."""

import itertools
import math

import pytest
import torch

from overparam.errors import ParameterError
from overparam.experiments import noy2021_lem1
from overparam.experiments import noy2021_subnetworks as parts
from overparam.models.gated import GatedRuns
from overparam.theory.finite_kernels import layer_grams, ntk_gram

KINDS = ["grelu", "relu"]
N, D, OUT, M, DEPTH = 5, 6, 3, 40, 4


def unit_inputs(n=N, d=D, seed=0):
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


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


def test_eigenvalues_covariances_and_conditions():
    run = opened("grelu")
    run.forward()
    found, pairs, bounds = parts.gram_eigenvalues(run), parts.covariances(run), parts.conditions(run)
    values = {name: [] for name in ("F", "G")}
    for k, i in itertools.product(range(DEPTH + 1), range(N)):
        F, G = formed(run, i, k + 1)[0], formed(run, i, k)[1]
        for name, matrix, rank in (("F", F, OUT), ("G", G, D)):
            s = torch.linalg.svdvals(matrix)[:rank] ** 2
            torch.testing.assert_close(found[name][k, i], torch.stack([s[-1], s[0]]))
            values[name] += [s[-1], s[0]]
    gammas = []
    for k, i, j in itertools.product(range(DEPTH), range(N), range(N)):
        Fs = [formed(run, a, k + 2)[0] for a in (i, j)]
        expected = (run.h[k][i] @ run.h[k][j]).abs() * torch.linalg.matrix_norm(Fs[1] @ Fs[0].T, 2)
        torch.testing.assert_close(pairs[k, i, j], expected)
        gammas += [expected] if i != j else []
    expected = [min(values["G"]), min(values["F"]), max(values["G"]), max(values["F"]), max(gammas)]
    torch.testing.assert_close(list(bounds.values()), expected)


def test_eigenvalues_do_not_depend_on_how_many_inputs_are_held_at_once(monkeypatch):
    run = opened("grelu")
    whole = parts.gram_eigenvalues(run)["G"]
    monkeypatch.setattr(parts, "ENTRIES", 2 * M * D)
    torch.testing.assert_close(parts.gram_eigenvalues(run)["G"], whole)


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


def gradients(run, y):
    return [z.T @ h for z, h in zip(run.sensitivities(run.forward() - y), run.inputs_of_layers(), strict=True)]


def stepped(run, y, eta):
    return run.at([W - eta * g for W, g in zip(run.W, gradients(run, y), strict=True)])


@pytest.mark.parametrize("eta", [1e-5, 3e-4, 3e-3])
@pytest.mark.parametrize("out", [1, OUT])
def test_lemma_1_is_an_identity(eta, out):
    step = noy2021_lem1.step_parts(opened("grelu", out=out), targets(d=out), eta)
    predicted = -eta * (step["self"] + step["cross"]) + eta**2 * step["higher"]
    error = (predicted - step["change"]).norm() / step["change"].norm()
    assert error < 1e-11
    assert step["flips"] == 0


def test_the_parts_of_lemma_1_are_those_of_the_paper():
    """Self and cross by their own formulas, Delta by its 2^L - L - 1 terms."""
    run, y, eta = opened("grelu"), targets(), 1e-3
    e, slopes, step = run.forward() - y, gradients(run, y), noy2021_lem1.step_parts(run, y, eta)
    for i in range(N):
        own = cross = higher = 0
        for k in range(1, DEPTH + 1):
            F, G = formed(run, i, k + 1)[0], formed(run, i, k - 1)[1]
            for j in range(N):
                Fj, Gj = formed(run, j, k + 1)[0], formed(run, j, k - 1)[1]
                term = F @ Fj.T @ torch.outer(e[j], run.x[j]) @ Gj.T @ G
                own, cross = (own + term, cross) if i == j else (own, cross + term)
        D = diagonals(run, i)
        for size in range(2, DEPTH + 1):
            for chosen in itertools.combinations(range(DEPTH), size):
                product = D[0] @ run.C
                for k in range(DEPTH):
                    product = D[k + 1] @ (slopes[k] if k in chosen else run.W[k]) @ product
                higher = higher + (-eta) ** (size - 2) * run.B @ product
        for name, expected in (("self", own), ("cross", cross), ("higher", higher)):
            torch.testing.assert_close(step[name][i], expected)


def test_a_relu_net_changes_its_gates_and_leaves_the_prediction():
    run, eta = opened("relu"), 3e-3
    step = noy2021_lem1.step_parts(run, targets(), eta)
    predicted = -eta * (step["self"] + step["cross"]) + eta**2 * step["higher"]
    assert step["flips"] > 0
    assert (predicted - step["change"]).norm() / step["change"].norm() > 1e-2
    after = stepped(run, targets(), eta)
    moves = torch.einsum("ipd,id->ip", step["change"], run.x)
    torch.testing.assert_close(moves, after.forward() - run.forward())


def test_higher_terms_vanish_for_one_layer():
    step = noy2021_lem1.step_parts(opened("grelu", L=1), targets(), 1e-3)
    assert (step["higher"] == 0).all()


def test_lemma_2_holds_with_the_square_and_not_without():
    """One input, one output, a small residual: only with the square does the bound hold."""
    broken = 0
    for seed in range(10):
        run = opened("grelu", n=1, d=1, out=1, m=60, L=3, seed=seed)
        y = run.forward() - 1e-4
        K = ntk_gram(run).item()
        for share in (0.1, 0.5, 1.0, 1.5, 1.9):
            eta = share / K
            printed = noy2021_lem1.step_bound(run, y, eta, run.x)
            corrected = noy2021_lem1.step_bound(run, y, eta, run.x, form="corrected")
            before = (run.forward() - y).square().sum() / 2
            after = stepped(run, y, eta).forward()
            assert printed["change"].item() == pytest.approx(((after - y).square().sum() / 2 - before).item(), rel=1e-6)
            assert corrected["change"] <= corrected["bound"]
            broken += (printed["change"] > printed["bound"]).item()
    assert broken == 50


def test_lemma_2_at_several_inputs_against_its_formula():
    run, y, eta, a = opened("grelu", n=3), targets(3), 1e-4, torch.tensor([1.0, 4, 9], dtype=torch.float64)
    e, step, total = run.forward() - y, noy2021_lem1.step_parts(run, y, eta), 0
    for i in range(3):
        rate = 0
        for k in range(1, DEPTH + 1):
            F, G = formed(run, i, k + 1)[0], formed(run, i, k - 1)[1]
            f, g = torch.linalg.eigvalsh(F @ F.T), torch.linalg.eigvalsh(G.T @ G)
            rate += -2 * eta * f[0] * g[0] + 3 * eta**2 * DEPTH * f[-1] * (G @ run.x[i]).norm() ** 4
            for j in {0, 1, 2} - {i}:
                Fj, Gj = formed(run, j, k + 1)[0], formed(run, j, k - 1)[1]
                size = (Gj @ run.x[j] @ (G @ run.x[i])).abs() * torch.linalg.matrix_norm(Fj @ F.T, 2)
                rate += 2 * eta * size + 3 * eta**2 * 3 * DEPTH * size**2
        far = (step["higher"][i] @ run.x[i]).square().sum()
        total += (rate + eta**2 * a[i]) / 2 * e[i].square().sum() + eta**2 * (3 * eta**2 + 1 / a[i]) / 2 * far
    assert noy2021_lem1.step_bound(run, y, eta, run.x, a)["bound"].item() == pytest.approx(total.item(), rel=1e-10)
    with pytest.raises(ParameterError, match="printed or corrected"):
        noy2021_lem1.step_bound(run, y, eta, run.x, form="squared")


def gradients_of_outputs(run):
    """grad y_p(x_i) with all layers in one vector, (n, d_y, L m^2), by formed products."""
    rows = []
    for i in range(len(run.x)):
        layers = [torch.einsum("pa,b->pab", formed(run, i, k + 1)[0], run.h[k - 1][i]) for k in range(1, DEPTH + 1)]
        rows.append(torch.cat([layer.flatten(1) for layer in layers], 1))
    return torch.stack(rows)


def changes(run, how, size):
    """Of every layer: Gaussian, or of rank one along the gradient of the outputs' sum at input 2."""
    if how == "gaussian":
        generator = torch.Generator().manual_seed(1)
        return [torch.randn(M, M, generator=generator, dtype=torch.float64) * size / (2 * M**0.5) for _ in run.W]
    one = torch.zeros(N, OUT, dtype=torch.float64)
    one[2] = 1
    rows = [z.T @ h for z, h in zip(run.sensitivities(one), run.inputs_of_layers(), strict=True)]
    return [row * size / row.norm() for row in rows]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["gaussian", "gradient"])
def test_ratios_of_gradients_and_kernels(kind, how):
    run = opened(kind)
    run.forward()
    for size in (0.3, 1e-7):
        other = run.at([W + change for W, change in zip(run.W, changes(run, how, size), strict=True)])
        a, b = gradients_of_outputs(run), gradients_of_outputs(other)
        ratio = parts.gradient_ratio(run, other)
        torch.testing.assert_close(ratio, (b - a).norm(dim=-1) / a.norm(dim=-1), rtol=1e-6, atol=0)
        K, K2 = (torch.einsum("ipw,jpw->pij", g, g) for g in (a, b))
        for p in range(OUT):
            torch.testing.assert_close(layer_grams(run, p).sum(0), K[p])
        root = K.diagonal(dim1=1, dim2=2).sqrt()
        expected = (K2 - K).abs() / (root[:, :, None] * root[:, None, :])
        torch.testing.assert_close(parts.kernel_change(run, other), expected, rtol=1e-5, atol=1e-13)
        R = ratio.T
        bound = R[:, :, None] + R[:, None, :] + R[:, :, None] * R[:, None, :]
        assert (parts.kernel_change(run, other) <= bound * (1 + 1e-9)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_net_at_other_weights_leaves_the_first_as_it_was(kind):
    run = opened(kind)
    y, h = run.forward().clone(), [layer.clone() for layer in run.h]
    other = run.at([W + 1 for W in run.W])
    assert not torch.allclose(other.forward(), y)
    assert all(torch.equal(a, b) for a, b in zip(run.h, h, strict=True))
    torch.testing.assert_close(run.forward(), y)
    assert (kind == "grelu") == all(torch.equal(a, b) for a, b in zip(run.gates, other.gates, strict=True))
