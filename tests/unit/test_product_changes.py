"""Changed layer products against brute force."""

import itertools

import pytest
import torch

from overparam.experiments import allenzhu2019_lem86
from overparam.models.deep_relu import ReLUNet
from overparam.theory.perturbation import products as layer_products


def net_and_masks(m=24, L=3, seed=1):
    net = ReLUNet(5, m, 1, L, seed=seed)
    x = torch.randn(5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return net, layer_products.masks(net, x / x.norm())


def product_of(W, D):
    matrix = W[0]
    for l in range(1, len(W)):
        matrix = W[l] @ (D[l].unsqueeze(1) * matrix)
    return matrix


def test_without_a_change_the_norm_is_that_of_the_product():
    net, D = net_and_masks()
    found = allenzhu2019_lem86.changed_weights_norm(net, D, 1, 3, 0.0, iterations=400)
    torch.testing.assert_close(found, torch.linalg.matrix_norm(product_of(net.W, D), 2))


@pytest.mark.parametrize("omega", [0.01, 0.3])
def test_aligned_weights_do_at_least_what_random_ones_do_and_no_more_than_allowed(omega):
    net, D = net_and_masks()
    found = allenzhu2019_lem86.changed_weights_norm(net, D, 1, 3, omega, iterations=400)
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        changes = torch.randn(3, 24, 24, generator=generator, dtype=torch.float64)
        changes = omega * changes / torch.linalg.matrix_norm(changes, 2)[:, None, None]
        assert torch.linalg.matrix_norm(product_of([a + b for a, b in zip(net.W, changes, strict=True)], D), 2) < found
    upper = 1.0
    for W in net.W:
        upper = upper * (torch.linalg.matrix_norm(W, 2) + omega)
    assert found < upper


def test_aligned_weights_have_the_first_order_of_the_best_ones():
    net, D = net_and_masks()
    matrix, omega = product_of(net.W, D), 1e-6
    u, sizes, v = torch.linalg.svd(matrix)
    left, right = u[:, 0], v[0]
    a = [right, D[1] * (net.W[0] @ right), D[2] * (net.W[1] @ (D[1] * (net.W[0] @ right)))]
    b = [D[1] * (net.W[1].T @ (D[2] * (net.W[2].T @ left))), D[2] * (net.W[2].T @ left), left]
    slope = sum(p.norm() * q.norm() for p, q in zip(a, b, strict=True))
    found = allenzhu2019_lem86.changed_weights_norm(net, D, 1, 3, omega, iterations=2000)
    torch.testing.assert_close((found - sizes[0]) / omega, slope, rtol=1e-4, atol=0)


def test_backward_changes_at_the_last_layer_are_the_largest_there_are():
    net, D = net_and_masks(m=7, L=2)
    found = allenzhu2019_lem86.backward_changes(net, D, 2)
    largest = max(3 * net.B[0, list(c)].norm() for c in itertools.combinations(range(7), 2))
    torch.testing.assert_close(found[-1], largest)


@pytest.mark.parametrize("s", [0, 1, 3])
def test_backward_changes_are_those_of_explicit_matrices(s):
    net, D = net_and_masks()
    omega, row, start, expected = 0.2, net.B[0], net.B[0], []
    for l in (3, 2, 1):
        places = row.abs().argsort(descending=True)[:s]
        error = torch.zeros(24, dtype=torch.float64)
        error[places] = 3
        row, start = row @ torch.diag(D[l] + error), start @ torch.diag(D[l])
        expected.append((row - start).norm())
        let = D[l - 1] * (row @ net.W[l - 1])
        change = omega * torch.outer(row, let) / row.norm() / let.norm()
        torch.testing.assert_close(torch.linalg.matrix_norm(change, 2), torch.tensor(omega, dtype=torch.float64))
        row, start = row @ (net.W[l - 1] + change), start @ net.W[l - 1]
    torch.testing.assert_close(allenzhu2019_lem86.backward_changes(net, D, s, omega), torch.stack(expected[::-1]))
