"""Responses to changed inputs and weights against nets that are really changed, brute force and Monte Carlo."""

import itertools

import numpy as np
import pytest
import torch

from overparam.bounds import frei2019
from overparam.data import load
from overparam.errors import ParameterError
from overparam.models.residual import ResidualReLU, theta_of
from overparam.theory.perturbation import neighbourhood as near
from overparam.theory.perturbation import responses
from overparam.training import LogisticLoss

D, M, DEPTH = 5, 40, 4
RULES = ["1/L", "1/sqrtL", "plain"]
TAUS = [0.05, 0.4]


def net_of(rule, seed=0, m=M, L=DEPTH):
    return ResidualReLU(D, m, L, theta_of(rule, L), seed=seed)


def inputs(n=6, seed=1):
    return load("sphere", n_train=n, n_test=0, d=D, seed=seed).x_train


def test_partners_are_on_the_sphere_at_the_distances():
    x, distances = inputs(), torch.tensor([1e-3, 0.1, 0.5, 1.0, 1.9, 2.0], dtype=torch.float64)
    others = responses.partners(x, distances, seed=0)
    torch.testing.assert_close(others.norm(dim=1), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close((x - others).norm(dim=1), distances)


@pytest.mark.parametrize("rule", RULES)
def test_responses_to_inputs_are_those_of_the_layers(rule):
    net, x = net_of(rule), inputs()
    others = inputs(seed=2)
    measured = responses.to_inputs(net, x, others, first=3)
    for i, l in itertools.product(range(6), range(DEPTH + 1)):
        a, b = (net.forward(point[None])[0][l][0] for point in (x[i], others[i]))
        assert measured["secant"][i, l].item() == pytest.approx(((a - b).norm() / (x[i] - others[i]).norm()).item())
    torch.testing.assert_close(measured["output"], net.outputs(x).abs())
    assert measured["jacobian"].shape == (3, DEPTH + 1)
    # f is positively homogeneous: J_l x = x_l, so that no Jacobian is smaller than its layer's norm.
    norms = torch.stack([a.norm(dim=1) for a in net.forward(x[:3])[0]], -1)
    assert (measured["jacobian"] >= norms * (1 - 1e-12)).all()


def test_at_depths_gives_each_net_its_depth_and_seed():
    sweep = responses.at_depths(
        lambda net, seed: {"w": net.W[-1][0, 0], "s": torch.tensor(seed)}, D, M, [2, 3], "1/L", seeds=[4, 5]
    )
    for L, column in itertools.product((2, 3), (0, 1)):
        assert sweep[L]["w"][column] == net_of("1/L", seed=4 + column, L=L).W[-1][0, 0].item()
        assert sweep[L]["s"].tolist() == [4, 5]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["gaussian", "gradient"])
def test_along_a_direction_is_the_changed_net(rule, kind):
    net, x, c = net_of(rule), inputs(), torch.linspace(-1, 2, 6, dtype=torch.float64)
    if kind == "gaussian":
        directions, changes = responses.gaussian_directions(net, seed=7), lambda tau: near.gaussian(net, tau, seed=7)
    else:
        directions, changes = responses.gradient_directions(net, x, c), lambda tau: near.along_gradient(net, x, c, tau)
    measured = responses.along(net, x, directions, TAUS)
    torch.testing.assert_close(measured["f"], net.outputs(x))
    for t, tau in enumerate(TAUS):
        other = near.moved(net, changes(tau))
        torch.testing.assert_close(measured["flips"][t], near.flipped(net, other, x))
        torch.testing.assert_close(measured["shifts"][t], near.shifts(net, other, x))
        torch.testing.assert_close(measured["moved f"][t], other.outputs(x))
        torch.testing.assert_close(tau * measured["linear"], net.linear_change(x, changes(tau)))
        exact = near.spread(net, changes(tau))
        assert (0.95 if kind == "gaussian" else 0.999) * exact <= measured["h"][t, 0] <= exact * (1 + 1e-12)


def test_spectral_norm_comes_from_below_and_near():
    generator = torch.Generator().manual_seed(0)
    for shape in ((30, 200), (200, 200), (200, 30)):
        matrix = torch.randn(shape, generator=generator, dtype=torch.float64)
        exact = torch.linalg.matrix_norm(matrix, 2)
        assert 0.96 * exact <= responses.spectral_norm(matrix) <= exact * (1 + 1e-12)
        assert responses.spectral_norm(matrix, iterations=3000) == pytest.approx(exact.item(), rel=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_an_attack_is_flip_patterns_at_every_radius_and_input(rule):
    net, x = net_of(rule), inputs(3)
    attack = responses.Attack(net, x, TAUS)
    measured = attack.responses()
    vectors = dict(attack.output_vectors())
    assert sorted(vectors) == list(range(2, DEPTH + 2))
    for (t, tau), i in itertools.product(enumerate(TAUS), range(3)):
        changes = near.flip_patterns(net, x[i], tau)
        other = near.moved(net, changes)
        torch.testing.assert_close(measured["flips"][t, i], near.flipped(net, other, x[i : i + 1])[0])
        torch.testing.assert_close(measured["shifts"][t, i], near.shifts(net, other, x[i : i + 1])[0])
        assert measured["h"][t, i].item() == pytest.approx(near.spread(net, changes).item())
        patterns, v = other.forward(x[i : i + 1])[1], net.v.unsqueeze(0)
        for l, g in vectors.items():
            expected = other.product_transposed(patterns, l, DEPTH + 1, v)[0]
            torch.testing.assert_close(g[t, i], expected)


def test_sparse_suprema_are_those_of_all_supports():
    g = torch.tensor([[0.3, -2.0, 0.7, 1.1], [0.1, 0.2, -0.3, 0.0]], dtype=torch.float64)
    for column, s in enumerate((1, 2, 4)):
        best = [max(row[list(support)].norm() for support in itertools.combinations(range(4), s)) for row in g]
        torch.testing.assert_close(responses.sparse_suprema(g, [1, 2, 4])[:, column], torch.stack(best))


def test_ref_sparse_is_the_supremum_for_a_gaussian_vector():
    m, sparsities = 200_000, [200, 20_000, 120_000, 200_000]
    g = torch.randn(m, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    expected = frei2019.ref_sparse(m, np.array(sparsities))
    np.testing.assert_allclose(responses.sparse_suprema(g, sparsities), expected, rtol=5e-3)
    assert frei2019.ref_sparse(m, 0) == pytest.approx(0, abs=1e-9)
    assert frei2019.ref_sparse(1e12, 1e-3 * 1e12) == pytest.approx((1e9 * 2 * np.log(1e3)) ** 0.5, rel=0.1)
    with pytest.raises(ParameterError, match="at most m"):
        frei2019.ref_sparse(10, 11)


def test_the_output_vector_of_a_wide_last_layer_is_gaussian():
    """What `ref_sparse` is drawn for in Lemma B.5: at the start, g of the last layer."""
    attack = responses.Attack(net_of("1/L", m=3000), inputs(4), [1e-9])
    _, g = next(attack.output_vectors())
    for s in (30, 300, 3000):
        assert responses.sparse_suprema(g, [s]).mean() == pytest.approx(frei2019.ref_sparse(3000, s), rel=0.03)


def test_the_aligned_change_is_a_change_of_its_norm_and_adds_the_first_term():
    net, x, tau, s = net_of("1/L", m=2000), inputs(3), 0.3, 40
    g = responses.aligned_output_vector(net, x, tau, s)
    base = responses.aligned_output_vector(net, x, 0.0, s)
    for i in range(3):
        point = x[i : i + 1]
        patterns = net.forward(point)[1]
        masked = net.v * patterns[-1][0]
        torch.testing.assert_close(base[i], net.W[-1] @ masked)
        a = torch.where(base[i].abs() >= base[i].abs().sort().values[-s], base[i], 0)
        change = tau * torch.outer(a / a.norm(), masked / masked.norm())
        other = near.moved(net, [torch.zeros_like(W) for W in net.W[:-1]] + [change])
        torch.testing.assert_close(g[i], other.W[-1] @ (net.v * other.forward(point)[1][-1][0]))
    gained = responses.sparse_suprema(g, [s]) - responses.sparse_suprema(base, [s])
    np.testing.assert_allclose(gained, tau * (2000 / 2) ** 0.5, rtol=0.1)


def test_the_last_layers_residual_is_that_of_the_changed_net():
    net, x = net_of("1/L", m=400), inputs(3)
    measured = responses.last_layer(net, x, TAUS)
    for (t, tau), i in itertools.product(enumerate(TAUS), range(3)):
        changes, point = near.flip_last_layer(net, x[i], tau), x[i : i + 1]
        exact = near.moved(net, changes).outputs(point) - net.outputs(point) - net.linear_change(point, changes)
        assert measured["residual"][t, i].item() == pytest.approx(exact.item())
        assert measured["h"][t, i].item() == pytest.approx(changes[-1].norm().item())
        assert 0 < measured["h"][t, i] <= tau


def test_residuals_are_those_of_the_changed_nets():
    net, x = net_of("1/L"), inputs()
    at = responses.along(net, x, responses.gaussian_directions(net, seed=7), TAUS)
    for tau, row in zip(TAUS, responses.residuals(TAUS, at), strict=True):
        changes = near.gaussian(net, tau, seed=7)
        exact = near.moved(net, changes).outputs(x) - net.outputs(x) - net.linear_change(x, changes)
        torch.testing.assert_close(row, exact)


def test_the_residual_of_a_random_change_has_its_closed_form():
    """Root mean square over inputs and nets; the mean size of a Gaussian is sqrt(2/pi) of it."""
    d, L, tau, squares = 12, 3, 0.2, []
    x = load("sphere", n_train=100, n_test=0, d=d, seed=1).x_train
    for seed in range(8):
        net = ResidualReLU(d, 400, L, 1 / L, seed=seed)
        at = responses.along(net, x, responses.gaussian_directions(net, seed=1000 + seed), [tau])
        squares.append(responses.residuals([tau], at).square().mean())
    expected = frei2019.ref_resid_gaussian(tau, d, 1 / L, L) * (np.pi / 2) ** 0.5
    assert np.mean(squares) ** 0.5 == pytest.approx(expected, rel=0.12)


def test_loss_excess_is_what_autograd_leaves():
    net, x = net_of("1/L"), inputs()
    loss = LogisticLoss(torch.tensor([1.0, -1, 1, 1, -1, -1], dtype=torch.float64))
    at = responses.along(net, x, responses.gaussian_directions(net, seed=7), TAUS)
    excess = responses.loss_excess(loss, TAUS, at)
    for t, tau in enumerate(TAUS):
        W = [w.clone().requires_grad_() for w in net.W]
        value = loss(net.with_weights(W).outputs(x))[0]
        changes = near.gaussian(net, tau, seed=7)
        gained = sum((g * c).sum() for g, c in zip(torch.autograd.grad(value, W), changes, strict=True))
        moved = loss(near.moved(net, changes).outputs(x))[0]
        assert excess[t].item() == pytest.approx((moved - value - gained).item(), rel=1e-6)


def test_near_zero_counts_and_their_closed_form():
    net, x, betas = net_of("1/L", m=2000), inputs(4), [0.002, 0.02]
    shares, norms = responses.near_zero(net, x, betas)
    assert shares.shape == (2, 4, DEPTH + 1)
    h = x
    for l, W in enumerate(net.W):
        for b, beta in enumerate(betas):
            count = ((h @ W).abs() <= beta).sum(1)
            torch.testing.assert_close(shares[b, :, l] * 2000, count.double())
            expected = frei2019.ref_near_zero(2000, beta, h.norm(dim=1).numpy())
            np.testing.assert_allclose(count.sum(), expected.sum(), rtol=0.15)
        np.testing.assert_allclose(norms[:, l], h.norm(dim=1))
        h = net.forward(x)[0][l]
    small = frei2019.ref_near_zero(1e6, 1e-6, 1.3)
    assert small == pytest.approx(1e6**1.5 * 1e-6 / (np.pi**0.5 * 1.3), rel=1e-5)
    with pytest.raises(ParameterError, match="positive"):
        frei2019.ref_near_zero(10, 0.1, 0)


@pytest.mark.parametrize("theta_L", ["1/L", "1/sqrtL"])
def test_the_wide_limit_of_norms_and_jacobians(theta_L):
    L, d, m = 4, 2, 2000
    net = ResidualReLU(d, m, L, theta_of(theta_L, L), seed=0)
    x = load("sphere", n_train=4, n_test=0, d=d, seed=1).x_train
    activations, patterns = net.forward(x)
    limit = frei2019.ref_norm_wide(net.theta, L)
    ratio = (activations[L - 1].norm(dim=1) / activations[0].norm(dim=1)).mean().item()
    assert ratio == pytest.approx(limit, rel=0.03)
    assert net.input_jacobian_norms(patterns)[:, L - 1].mean().item() == pytest.approx(limit, rel=0.06)
    small = np.array([0.5, 1.0])
    expected = frei2019.ref_norm(small / 5000, 5001)
    np.testing.assert_allclose(frei2019.ref_norm_wide(small / 5000, 5001), expected, rtol=1e-4)
    assert frei2019.ref_norm_wide(0.3, np.array([1, 2])).tolist() == pytest.approx([1, (1.09 + 0.6 / np.pi) ** 0.5])
