"""Tangent kernels of infinite width.

Residual, plain and gated nets, against wide nets and against each other.
"""

import math

import numpy as np
import pytest
import torch

from overparam.bounds import frei2019, noy2021
from overparam.models.gated import GatedRuns
from overparam.models.residual import ResidualReLU
from overparam.theory.finite_width_kernels import layer_kernels, tangent_kernel
from overparam.theory.infinite_width_kernels import gated_ntk, leaky_ntk, residual_ntk


def inputs(n=6, d=5, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def residual_gram(m, L, theta, x, seed):
    net = ResidualReLU(x.shape[1], m, L, theta, seed=seed)
    return layer_kernels(net.factors(x)).sum(0) / m


def gated_gram(kind, m, L, x, seed):
    descent = GatedRuns(kind, x.shape[1], m, L, seeds=[seed]).descent(x, 0)
    return tangent_kernel(descent) * x.shape[1] / m**2


def error(make, expected, m, seeds=4):
    found = torch.stack([make(m, seed) for seed in range(seeds)])
    return ((found - expected).square().sum((1, 2)).mean().sqrt() / expected.norm()).item()


@pytest.mark.parametrize(("depth", "theta"), [(1, 0.5), (4, 0.25), (6, 1.0), (3, None)])
def test_wide_residual_nets_have_the_limit_kernel(depth, theta):
    x = inputs()
    expected = residual_ntk(x, depth, theta)
    errors = [
        error(lambda m, s: residual_gram(m, depth, theta, x, s), expected, m) for m in (128, 1152)
    ]
    assert errors[1] < 0.12
    assert errors[1] < 0.6 * errors[0]  # a third, in the mean


@pytest.mark.parametrize("kind", ["grelu", "relu"])
@pytest.mark.parametrize("depth", [1, 3])
def test_wide_gated_nets_have_the_limit_kernel(kind, depth):
    x = inputs()
    expected = gated_ntk(x, depth, kind)
    errors = [
        error(lambda m, s: gated_gram(kind, m, depth, x, s), expected, m) for m in (128, 1152)
    ]
    assert errors[1] < 0.2
    assert errors[1] < 0.8 * errors[0]


@pytest.mark.parametrize("theta", [0.3, None])
def test_the_diagonal_is_the_limit_of_the_gradient_norms(theta):
    x = torch.nn.functional.normalize(inputs(), dim=1)
    expected = torch.full(
        (6,), (frei2019.ref_gradient(np.arange(1, 7), 5, theta) ** 2).sum(), dtype=torch.float64
    )
    torch.testing.assert_close(residual_ntk(x, 5, theta).diagonal(), expected, rtol=1e-13, atol=0)


def test_a_plain_net_is_the_leaky_net_at_alpha_zero():
    """f = v . relu(..) with |v|^2 = m, all layers trained, against T_L of `leaky_ntk` one layer
    deeper: T/2.
    """
    x = inputs()
    torch.testing.assert_close(
        residual_ntk(x, 3, None), leaky_ntk(x, 4, 0.0) / 2, rtol=1e-12, atol=1e-12
    )


def test_gates_overlap_as_the_covariances_of_the_bounds_say():
    x = torch.tensor([[1.0, 0.0], [math.cos(1.1), math.sin(1.1)]], dtype=torch.float64)
    expected = 6 * noy2021.covariances(6, math.cos(1.1))[6]
    assert gated_ntk(x, 6)[0, 1].item() == pytest.approx(expected, rel=1e-12)
    assert gated_ntk(x, 6).diagonal().tolist() == [6, 6]
    assert gated_ntk(x, 6, "relu").diagonal().tolist() == [6, 6]
