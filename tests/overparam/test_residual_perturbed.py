"""Responses to changed inputs and weights against nets that are really changed, brute force and
Monte Carlo.
"""

import itertools

import numpy as np
import pytest
import torch

from overparam.bounds import frei2019
from overparam.bounds.allenzhu2019 import backward_sparse_limit
from overparam.data import load
from overparam.data.near_points import partners
from overparam.errors import ParameterError
from overparam.models.residual import ResidualReLU, theta_of
from overparam.theory.perturbation import residual as near
from overparam.theory.perturbation.attacks import PAST_ZERO
from overparam.theory.perturbation.residual import FlipAttack

D, M, DEPTH = 5, 40, 4
RULES = ["1/L", "1/sqrtL", "plain"]
TAUS = [0.05, 0.4]


def net_of(rule, seed=0, m=M, L=DEPTH):
    return ResidualReLU(D, m, L, theta_of(rule, L), seed=seed)


def inputs(n=6, seed=1):
    return load("sphere", n_train=n, n_test=0, d=D, seed=seed).x_train


def test_partners_are_on_the_sphere_at_the_distances():
    x, distances = inputs(), torch.tensor([1e-3, 0.1, 0.5, 1.0, 1.9, 2.0], dtype=torch.float64)
    others = partners(x, distances, seed=0)
    torch.testing.assert_close(others.norm(dim=1), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close((x - others).norm(dim=1), distances)


def compared(net, other, x):
    """Shares of patterns that differ, |x_l' - x_l| and the sums of Lemma B.4.

    Of two nets at inputs x.
    """
    (a, A), (b, B) = net.forward(x), other.forward(x)
    flipped = torch.stack([(p != q).double().mean(-1) for p, q in zip(A, B, strict=True)], -1)
    shifts = torch.stack([(p - q).norm(dim=-1) for p, q in zip(a, b, strict=True)], -1)
    first, *middle, last = (
        torch.linalg.norm(p - q, 2).item() for p, q in zip(other.W, net.W, strict=True)
    )
    sums = first + (net.theta or 1) * np.cumsum([0, *middle])
    return flipped, shifts, np.array([*sums, sums[-1] + last])


def linear_change(net, x, changes):
    """<grad f(x_i), changes> by autograd, (n,)."""
    W = [w.clone().requires_grad_() for w in net.W]
    f = net.with_weights(W).outputs(x)
    grads = [torch.autograd.grad(f_i, W, retain_graph=True) for f_i in f]
    return torch.stack(
        [sum((g * c).sum() for g, c in zip(row, changes, strict=True)) for row in grads]
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["gaussian", "gradient"])
def test_along_a_direction_is_the_changed_net(rule, kind):
    net, x, c = net_of(rule), inputs(), torch.linspace(-1, 2, 6, dtype=torch.float64)
    ways = {
        "gaussian": lambda: near.gaussian_directions(net, seed=7),
        "gradient": lambda: near.gradient_directions(net, x, c),
    }
    measured, directions = near.along(net, x, ways[kind](), TAUS), list(ways[kind]())
    np.testing.assert_allclose([D.norm() for D in directions], 1, rtol=1e-12)
    torch.testing.assert_close(measured["f"], net.outputs(x))
    torch.testing.assert_close(measured["linear"], linear_change(net, x, directions))
    for t, tau in enumerate(TAUS):
        other = near.moved(net, directions, tau)
        flipped, shifts, exact = compared(net, other, x)
        torch.testing.assert_close(measured["flips"][t], flipped)
        torch.testing.assert_close(measured["shifts"][t], shifts)
        torch.testing.assert_close(measured["moved f"][t], other.outputs(x))
        least = 0.95 if kind == "gaussian" else 0.999
        sums = measured["sums"][t, 0].numpy()
        assert np.all((least * exact <= sums) & (sums <= exact * (1 + 1e-9)))
        assert measured["h"][t, 0] == sums[-1]


def flipped_by_hand(net, x, tau):
    """The net whose patterns at one input x (d,) are flipped layer by layer, each by a matrix of
    rank one.
    """
    _, start = net.forward(x.unsqueeze(0))
    W, h = [], x
    for l, weights in enumerate(net.W):
        z = h @ weights
        order, budget, delta = z.abs().argsort(), (tau * h.norm()) ** 2, torch.zeros_like(z)
        for j in order:
            if (z[j] > 0) == start[l][0, j] and budget >= (z[j] * PAST_ZERO) ** 2:
                budget, delta[j] = budget - (z[j] * PAST_ZERO) ** 2, -z[j] * PAST_ZERO
        W.append(weights + torch.outer(h, delta) / h.square().sum())
        h = net.with_weights([*W, *net.W[l + 1 :]]).forward(x.unsqueeze(0))[0][l][0]
    return net.with_weights(W)


@pytest.mark.parametrize("rule", RULES)
def test_a_flip_attack_is_the_changed_net_at_every_radius_and_input(rule):
    net, x = net_of(rule), inputs(3)
    attack = FlipAttack(net, x, TAUS)
    measured = attack.responses()
    vectors = dict(attack.output_vectors())
    assert sorted(vectors) == list(range(2, DEPTH + 2))
    for (t, tau), i in itertools.product(enumerate(TAUS), range(3)):
        point, other = x[i : i + 1], flipped_by_hand(net, x[i], tau)
        flipped, shifts, sums = compared(net, other, point)
        torch.testing.assert_close(measured["flips"][t, i], flipped[0])
        torch.testing.assert_close(measured["shifts"][t, i], shifts[0])
        np.testing.assert_allclose(measured["sums"][t, i], sums)
        assert measured["h"][t, i] == measured["sums"][t, i, -1]
        assert max((a - b).norm() for a, b in zip(other.W, net.W, strict=True)) <= tau * (1 + 1e-12)
        patterns, v = other.forward(point)[1], net.v.unsqueeze(0)
        for l, g in vectors.items():
            torch.testing.assert_close(
                g[t, i], other.product_transposed(patterns, l, DEPTH + 1, v)[0]
            )


def test_flipping_reaches_the_closed_form_for_the_largest_share():
    """Against `ref_flip`, which is derived from the density of Gaussian pre-activations, in the
    first layer.
    """
    taus = [0.05, 0.2]
    shares = (
        FlipAttack(net_of("1/L", m=2000, L=1), inputs(8), taus).responses()["flips"][..., 0].mean(1)
    )
    np.testing.assert_allclose(shares, frei2019.ref_flip(np.array(taus)), rtol=0.06)


def farthest(net, x):
    """An upper bound for small tau on |x_{L+1}' - x_{L+1}|/tau at one input x (d,).

    Each layer's own largest.
    """
    activations, patterns = net.forward(x.unsqueeze(0))
    inputs = [x, *(h[0] for h in activations)]
    J = torch.eye(net.v.shape[0], dtype=x.dtype)
    total = 0
    for l in reversed(range(net.L + 1)):
        J_z = J * patterns[l][0]
        total += (
            (net.theta if net.skips(l + 1) else 1) * inputs[l].norm() * torch.linalg.norm(J_z, 2)
        )
        if l:
            J = net.joined(l + 1, J, J_z @ net.W[l].mT)
    return total


@pytest.mark.parametrize("rule", RULES)
def test_a_stretched_net_moves_nearly_as_far_as_a_net_of_its_radius_can(rule):
    net, x, taus = net_of(rule), inputs(3), [1e-5, 0.2]
    measured = near.stretched(net, x, taus)
    weights = np.array([1, *[net.theta or 1] * (DEPTH - 1), 1])
    np.testing.assert_allclose(measured["sums"][:, 2], np.outer(taus, np.cumsum(weights)))
    assert torch.equal(measured["h"], measured["sums"][..., -1])
    for i in range(3):
        share = measured["shifts"][0, i, -1] / taus[0] / farthest(net, x[i])
        assert 0.9 <= share <= 1 + 1e-3
    larger = near.stretched(net, x, taus[1:], rounds=1)["shifts"]
    assert (measured["shifts"][1, :, -1] >= larger[0, :, -1]).all()
    assert (measured["shifts"][..., 0] <= measured["sums"][..., 0] * (1 + 1e-9)).all()


def test_sparse_suprema_are_those_of_all_supports():
    g = torch.tensor([[0.3, -2.0, 0.7, 1.1], [0.1, 0.2, -0.3, 0.0]], dtype=torch.float64)
    for column, s in enumerate((1, 2, 4)):
        best = [
            max(row[list(support)].norm() for support in itertools.combinations(range(4), s))
            for row in g
        ]
        torch.testing.assert_close(near.sparse_suprema(g, [1, 2, 4])[:, column], torch.stack(best))


def test_backward_sparse_limit_is_the_supremum_for_a_gaussian_vector():
    m, sparsities = 200_000, [200, 20_000, 120_000, 200_000]
    g = torch.randn(m, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    expected = backward_sparse_limit(np.array(sparsities), m)
    np.testing.assert_allclose(near.sparse_suprema(g, sparsities), expected, rtol=5e-3)
    assert backward_sparse_limit(0, m) == pytest.approx(0, abs=1e-9)
    assert backward_sparse_limit(1e-3 * 1e12, 1e12) == pytest.approx(
        (1e9 * 2 * np.log(1e3)) ** 0.5, rel=0.1
    )
    with pytest.raises(ParameterError, match="at most m"):
        backward_sparse_limit(11, 10)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("first", [1, DEPTH + 1])
def test_what_mirrored_nets_bend_is_that_of_the_changed_net(rule, first):
    """Layer by layer by hand, with derivatives by autograd.

    In the last layer each mirrored z_j bends f by |z_j|.
    """
    net, x = net_of(rule, m=100), inputs(3)
    residuals, h = near.mirrored(net, x, TAUS, first)
    for (t, tau), i in itertools.product(enumerate(TAUS), range(3)):
        point, below, changes = x[i : i + 1], x[i], []
        for l, W in enumerate(net.W):
            start = net.forward(point)[0][l].requires_grad_()
            b = torch.autograd.grad(_from_layer(net, start, l), start)[0][0]
            z = below @ W
            order = (z.abs() / b).argsort()
            budget = (tau * below.norm()) ** 2
            delta = torch.zeros_like(z)
            for j in [j for j in order if b[j] > 0 and l + 1 >= first]:
                budget = budget - 4 * z[j] ** 2
                if budget < 0:
                    break
                delta[j] = -2 * z[j]
            changes.append(torch.outer(below, delta) / below.square().sum())
            assert changes[-1].norm() <= tau
            moved = near.moved(net, [*changes, *(torch.zeros_like(V) for V in net.W[l + 1 :])])
            below = moved.forward(point)[0][l][0]
        exact = moved.outputs(point) - net.outputs(point) - linear_change(net, point, changes)
        assert residuals[t, i].item() == pytest.approx(exact.item(), rel=1e-6)
        assert h[t, i].item() == pytest.approx(compared(net, moved, point)[2][-1])
        if first > 1:
            bent = (net.forward(point)[0][-2] @ net.W[-1])[0][delta != 0]
            assert exact.item() == pytest.approx(bent.abs().sum().item())


def _from_layer(net, h, l):
    """f where layer l + 1, from 0, gives h."""
    for k in range(l + 1, net.L + 1):
        update = (h @ net.W[k]).clamp(min=0)
        h = net.joined(k + 1, h, update)
    return (h @ net.v).sum()


def norms(factors):
    return torch.stack([(z.T @ h).norm() for h, z in factors])


@pytest.mark.parametrize("rule", RULES)
def test_complexities_of_many_signs_are_the_norms_of_their_gradients(rule):
    net, x = net_of(rule), inputs()
    signs = torch.tensor(
        [[1.0, -1, -1, 1, 1, -1], [1, 1, 1, 1, 1, 1], [-1, 1, 1, 1, -1, -1]], dtype=torch.float64
    )
    expected = torch.stack([norms(net.factors(x, xi)) for xi in signs]) / 6
    torch.testing.assert_close(near.linear_complexities(net, x, signs), expected)


@pytest.mark.parametrize("theta_L", ["1/L", "1/sqrtL"])
def test_the_wide_limit_of_norms_and_jacobians(theta_L):
    L, d, m = 4, 2, 2000
    net = ResidualReLU(d, m, L, theta_of(theta_L, L), seed=0)
    x = load("sphere", n_train=4, n_test=0, d=d, seed=1).x_train
    activations, patterns = net.forward(x)
    limit = frei2019.ref_norm_wide(net.theta, L)
    ratio = (activations[L - 1].norm(dim=1) / activations[0].norm(dim=1)).mean().item()
    assert ratio == pytest.approx(limit, rel=0.03)
    assert net.input_jacobian_norms(patterns)[:, L - 1].mean().item() == pytest.approx(
        limit, rel=0.06
    )
    small = np.array([0.5, 1.0])
    expected = frei2019.ref_norm(small / 5000, 5001)
    np.testing.assert_allclose(frei2019.ref_norm_wide(small / 5000, 5001), expected, rtol=1e-4)
    assert frei2019.ref_norm_wide(0.3, np.array([1, 2])).tolist() == pytest.approx(
        [1, (1.09 + 0.6 / np.pi) ** 0.5]
    )
