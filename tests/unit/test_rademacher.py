"""The action of Z(0) against the explicit matrix, the projection against brute force, the ascent against its start."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from overparam.experiments.arora2019 import (
    Features,
    ascent,
    largest_scale,
    linear_maximiser,
    linearised_suprema,
    project,
)
from overparam.models.two_layer import TwoLayerReLU

N, D, M, SEEDS = 7, 4, 12, [0, 1]


@pytest.fixture
def setting():
    generator = torch.Generator().manual_seed(3)
    x = torch.nn.functional.normalize(torch.randn(N, D, generator=generator, dtype=torch.float64), dim=1)
    net = TwoLayerReLU(D, M, 0.5, seeds=SEEDS, dtype=torch.float64)
    return net, x, Features(net, x)


def explicit(net, x, s):
    """Z(0) of draw s, (m d, n), entry by entry."""
    z = np.zeros((M, D, N))
    for r in range(M):
        for i in range(N):
            if float(net.W[s, r] @ x[i]) >= 0:
                z[r, :, i] = net.a[s, r].item() * x[i].numpy() / M**0.5
    return z.reshape(M * D, N)


def signs(count=N, seed=0):
    return 2.0 * torch.randint(0, 2, (count,), generator=torch.Generator().manual_seed(seed)).double() - 1


def test_the_action_is_that_of_the_explicit_matrix(setting):
    net, x, features = setting
    v, weights = torch.linspace(-1, 2, N).double(), torch.randn(2, M, D, dtype=torch.float64)
    for s in range(2):
        z = explicit(net, x, s)
        np.testing.assert_allclose((features.times(v)[s] @ features.basis.T).ravel(), z @ v.numpy(), atol=1e-14)
        forward = features.transposed(weights @ features.basis)[s]
        np.testing.assert_allclose(forward, z.T @ weights[s].ravel().numpy(), atol=1e-13)
        np.testing.assert_allclose(features.gram()[s], z.T @ z, atol=1e-14)
    torch.testing.assert_close(features.gram(), net.gram(x), rtol=0, atol=1e-14)


def test_the_limit_has_the_norm_of_the_claim(setting):
    _, _, features = setting
    y, gram = signs(seed=5), features.gram()
    solution = torch.linalg.solve(gram, y.expand(2, N))
    expected = (solution @ y).sqrt()
    torch.testing.assert_close(features.times(solution).norm(dim=(-2, -1)), expected, rtol=1e-10, atol=0)


@pytest.mark.parametrize(("R", "B"), [(0.3, 0.6), (0.9, 0.6), (0.3, 5.0), (0.1, 0.3), (5.0, 5.0)])
def test_the_projection_against_a_general_optimiser(R, B):
    weights = torch.randn(5, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    ours = project(weights, R, B)
    assert ours.norm() <= B * (1 + 1e-12)
    assert ours.norm(dim=1).max() <= R * (1 + 1e-12)
    target = weights.numpy().ravel()
    limits = [{"type": "ineq", "fun": lambda w: B**2 - w @ w}]
    limits += [
        {"type": "ineq", "fun": lambda w, r=r: R**2 - w[2 * r : 2 * r + 2] @ w[2 * r : 2 * r + 2]} for r in range(5)
    ]
    best = minimize(lambda w: ((w - target) ** 2).sum(), 0.1 * target, constraints=limits, options={"ftol": 1e-14})
    np.testing.assert_allclose(ours.ravel(), best.x, atol=1e-5)


@pytest.mark.parametrize(("R", "B"), [(0.3, 0.6), (0.9, 0.6), (0.3, 5.0)])
def test_the_linear_maximiser_beats_every_feasible_point(R, B):
    generator = torch.Generator().manual_seed(2)
    direction = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    best = (linear_maximiser(direction, R, B) * direction).sum()
    far = project(1e9 * direction, R, B)
    torch.testing.assert_close((far * direction).sum(), best, rtol=1e-7, atol=0)
    others = project(direction * 3 + torch.randn(2000, 6, 3, generator=generator, dtype=torch.float64), R, B)
    assert ((others * direction).sum((-2, -1)) <= best * (1 + 1e-12)).all()


def test_the_scale_solves_its_equation_and_is_infinite_where_all_rows_are_cut():
    norms = torch.tensor([[3.0, 1.0, 0.2, 0.0], [1.0, 1.0, 1.0, 1.0]]).double()
    s = largest_scale(norms, 0.5, 0.8)
    filled = torch.minimum(norms * s[:, None], torch.tensor(0.5)).square().sum(-1)
    torch.testing.assert_close(filled, torch.full((2,), 0.64, dtype=torch.float64), rtol=1e-12, atol=0)
    assert torch.isinf(largest_scale(norms, 0.5, 1.0)).all()


def test_the_linearised_supremum_is_that_of_the_explicit_matrix(setting):
    net, x, features = setting
    eps = torch.stack([signs(seed=s) for s in range(5)])
    ours = linearised_suprema(features.gram(), eps, 0.7)
    for s in range(2):
        z = explicit(net, x, s)
        np.testing.assert_allclose(ours[s], [0.7 * np.linalg.norm(z @ e) / N for e in eps.numpy()], rtol=1e-10)


def test_the_gain_is_that_of_the_net(setting):
    net, x, features = setting
    step = torch.randn(2, M, D, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    gain, _ = features.gain(step @ features.basis)
    before = net.outputs(x)
    net.W = net.W + step
    torch.testing.assert_close(gain, net.outputs(x) - before, rtol=0, atol=1e-13)


def test_the_ascent_is_never_below_its_start_and_finds_more_where_the_net_is_far_from_linear(setting):
    _, _, features = setting
    start, best = ascent(features, signs(), 2.0, 4.0).T
    assert (best >= start).all()
    assert (best > start + 1e-3).any()


def test_close_to_the_start_the_supremum_is_the_linear_one(setting):
    _, _, features = setting
    B = 1e-7
    best = ascent(features, signs(), B, B, steps=5)[:, 1]
    linear = linearised_suprema(features.gram(), signs()[None], B)[:, 0]
    torch.testing.assert_close(best, linear, rtol=1e-6, atol=0)
