"""Near inputs and layer products of the deep ReLU net, against brute force and quadrature."""

import itertools

import numpy as np
import pytest
import torch
from scipy import integrate

from overparam.bounds import allenzhu2019 as bounds
from overparam.data import load
from overparam.data.near_points import near_pair
from overparam.errors import ParameterError
from overparam.models.deep_relu import ReLUNet
from overparam.theory.perturbation import products

X = load("sphere", n_train=3, n_test=0, d=4, transform="unit_bias", seed=3)


def test_near_pairs_have_their_distance_and_the_rest_keeps_away():
    x, y = near_pair(8, 6, 0.3, seed=2)
    distances = torch.cdist(x, x) + 9 * torch.eye(8)
    assert distances[0, 1].item() == pytest.approx(0.3)
    assert distances.min().item() == pytest.approx(0.3)
    torch.testing.assert_close(x.norm(dim=1), torch.ones(8, dtype=torch.float64))
    assert (x[:, -1] == 0.5**0.5).all()
    assert y[0] == -y[1]
    with pytest.raises(ParameterError, match="do not keep"):
        near_pair(30, 3, 0.8, seed=0)


@pytest.mark.parametrize("alpha", [-2.0, 0.0, 0.7, 1.0])
def test_the_corrected_expectation_of_claim_76_is_scipys_double_integral(alpha):
    delta = 1 / 6
    weight = lambda r: r * np.exp(-(r**2) / 2) / (2 * np.pi)  # noqa: E731

    def integrand(angle, r):
        a, b = np.sqrt(2) * r * np.cos(angle), np.sqrt(2) * r * np.sin(angle)
        return (max(a, 0) - max(alpha * a + delta * b, 0)) ** 2 * weight(r)

    expected, _ = integrate.dblquad(integrand, 0, 12, -np.pi, np.pi, epsabs=1e-6)
    assert bounds.claim76_expectation(alpha, delta, "corrected") == pytest.approx(
        expected, abs=1e-5
    )


def net_and_masks(m=8, L=3, tau=None):
    net = ReLUNet(5, m, 1, L, tau=tau, seed=2)
    return net, products.masks(net, X.x_train[0])


@pytest.mark.parametrize("tau", [None, 0.3])
def test_products_are_those_of_the_matrices(tau):
    net, D = net_and_masks(tau=tau)
    eye = torch.eye(8, dtype=torch.float64)
    W = [W if tau is None or l == 3 else eye + tau * W for l, W in enumerate(net.W, 1)]
    expected = W[2] @ torch.diag(D[2]) @ W[1] @ torch.diag(D[1]) @ W[0]
    torch.testing.assert_close(products.product(net, D, 1, 3), expected)
    b = torch.randn(8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(products.back_through(net, D, 1, 3, b), expected.T @ b)
    torch.testing.assert_close(
        products.norm(net, D, 1, 3, iterations=300), torch.linalg.matrix_norm(expected, 2)
    )
    masked = torch.diag(D[3]) @ expected @ torch.diag(D[0])
    found, u, v = products.singular(net, D, 1, 3, masked=True, iterations=300)
    torch.testing.assert_close(found, torch.linalg.matrix_norm(masked, 2))
    torch.testing.assert_close(u @ masked @ v, found)
    h = net.forward(X.x_train[:1])[1]
    torch.testing.assert_close(
        products.through(net, D, 1, 3, h[0][0]), net.forward(X.x_train[:1])[0][-1][0]
    )


@pytest.mark.parametrize("s", [1, 2, 3])
def test_sparse_suprema_are_those_of_all_supports(s):
    net, D = net_and_masks()
    matrix = products.product(net, D, 1, 3)
    supports = [list(c) for c in itertools.combinations(range(8), s)]
    gain = max(torch.linalg.matrix_norm(matrix[:, c], 2) for c in supports)
    form = max(torch.linalg.matrix_norm(matrix[r][:, c], 2) for r in supports for c in supports)
    for found, exact in (
        (products.sparse_gain(matrix, s), gain),
        (products.sparse_form(matrix, s), form),
    ):
        assert found <= exact * (1 + 1e-12)
        assert found >= (1 - 1e-12 if s == 1 else 0.97) * exact
