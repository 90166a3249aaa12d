"""Closed-form kernels against Monte Carlo, the expansion in the cosine, autograd at finite width.

And each other.
"""

import math

import pytest
import torch

from overparam.errors import ParameterError
from overparam.models.leaky import LeakyMLP
from overparam.theory import infinite_width_kernels as kernels


def sphere(n, d, seed=0):
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def test_relu_gram_is_the_expectation_of_eq_3():
    x, draws = sphere(6, 4), 200_000
    w = torch.randn(draws, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    active = (w @ x.T >= 0).double()
    joint = active.T @ active / draws
    standard_error = (joint * (1 - joint) / draws).sqrt()
    measured, exact = (x @ x.T) * joint, kernels.relu_gram(x)
    assert ((measured - exact).abs() <= 4.5 * (x @ x.T).abs() * standard_error + 1e-12).all()


def test_relu_gram_matches_its_power_series():
    """H = K/4 + (1/2pi) sum_{l>=1} (2l-3)!!/(2l-2)!! K^{2l}/(2l-1) (Arora et al. 2019, Appendix
    E).
    """
    x = sphere(20, 3)
    k = (x @ x.T).fill_diagonal_(0.0)
    series, term = k / 4, 1.0
    for l in range(1, 400):
        term *= (2 * l - 3) / (2 * l - 2) if l > 1 else 1.0
        series = series + term * k ** (2 * l) / (2 * l - 1) / (2 * math.pi)
    k_max = k.abs().max()
    assert (kernels.relu_gram(x) - series).fill_diagonal_(0.0).abs().max() < 1e-12 + k_max**800


@pytest.mark.parametrize("n", [5, 256, 300, 600])
def test_blocks_do_not_change_the_matrix(n, monkeypatch):
    x = sphere(n, 7)
    makers = [
        kernels.relu_gram,
        lambda x: kernels.leaky_ntk(3 * x, 2, -0.5),
        lambda x: kernels.residual_ntk(x, 3, 0.4),
    ]
    one = [make(x) for make in makers]
    monkeypatch.setattr(kernels, "BLOCK", 10_000)
    for expected, make in zip(one, makers, strict=True):
        assert torch.allclose(make(x), expected, rtol=0, atol=1e-12)
    assert torch.equal(one[0], one[0].T)
    assert torch.equal(one[0].diagonal(), torch.full((n,), 0.5, dtype=torch.float64))


def test_cross_gram_is_the_block_of_the_gram_matrix_of_all_inputs(monkeypatch):
    x, new = sphere(30, 5), sphere(20, 5, seed=1)
    whole = kernels.relu_gram(torch.cat([new, x]))
    assert torch.allclose(kernels.relu_cross_gram(new, x), whole[:20, 20:], rtol=0, atol=1e-14)
    monkeypatch.setattr(kernels, "BLOCK", 7)
    assert torch.allclose(kernels.relu_cross_gram(new, x), whole[:20, 20:], rtol=0, atol=1e-14)
    with pytest.raises(ParameterError, match="unit-norm"):
        kernels.relu_cross_gram(2 * new, x)


def test_kernel_predictor_is_the_limit_of_the_linearised_descent():
    """Against the inverse, against itself on the training inputs.

    And against 20,000 steps on the dual weights.
    """
    x, new = sphere(30, 5), sphere(20, 5, seed=1)
    y = torch.stack([x[:, 0], x[:, 1] ** 2], dim=1)
    gram, cross = kernels.relu_gram(x), kernels.relu_cross_gram(new, x)
    prediction = kernels.kernel_predict(gram, cross, y)
    assert torch.allclose(prediction, cross @ torch.linalg.inv(gram) @ y, rtol=0, atol=1e-10)
    assert torch.allclose(
        prediction[:, 1], kernels.kernel_predict(gram, cross, y[:, 1]), rtol=0, atol=1e-12
    )
    assert torch.allclose(kernels.kernel_predict(gram, gram, y), y, rtol=0, atol=1e-12)
    dual, eta = torch.zeros_like(y), 1 / torch.linalg.eigvalsh(gram)[-1]
    for _ in range(20_000):
        dual += eta * (y - gram @ dual)
    assert torch.allclose(prediction, cross @ dual, rtol=0, atol=1e-8)
    with pytest.raises(ParameterError, match="parallel"):
        kernels.kernel_predict(torch.ones(30, 30), cross, y)


def test_one_relu_layer_ntk_is_the_closed_form():
    """L = 1, alpha = 0: T_1 = <x, x'> (1 - arccos(rho)/pi) = 2 H^infinity on the sphere."""
    x = sphere(30, 5)
    assert torch.allclose(
        kernels.leaky_ntk(x, 1, 0.0), 2 * kernels.relu_gram(x), rtol=0, atol=1e-14
    )


def test_ntk_is_homogeneous_symmetric_in_alpha_and_linear_at_one():
    x = sphere(20, 4)
    t = kernels.leaky_ntk(x, 3, -0.5)
    assert torch.allclose(kernels.leaky_ntk(3 * x, 3, -0.5), 9 * t, rtol=1e-13)
    assert torch.allclose(kernels.leaky_ntk(x, 3, -2.0), t, rtol=1e-13)  # c(1/alpha) = c(alpha)
    assert torch.allclose(kernels.leaky_ntk(x, 3, 1.0), 3 * x @ x.T, atol=1e-13)  # a linear net
    assert torch.allclose(t.diagonal(), torch.full((20,), 3.0, dtype=torch.float64), rtol=1e-14)


@pytest.mark.parametrize(("L", "alpha"), [(2, -1.0), (3, 0.0), (2, 0.05), (2, -10.0)])
def test_ntk_is_the_limit_of_the_finite_gram_matrix(L, alpha):
    """By autograd at width m: the error falls like m^{-1/2}, from m = 64 to 1024 by about four."""
    x, errors = sphere(10, 4) * 1.5, []
    for m in (64, 1024):
        grams = []
        for seed in range(4):
            net = LeakyMLP(4, m, 1, L, alphas=[alpha], seeds=[seed], dtype=torch.float64)
            grams.append(finite_gram(net, x) * 2 / m)
        limit = kernels.leaky_ntk(x, L, alpha)
        errors.append(torch.stack([(g - limit).norm() / limit.norm() for g in grams]).mean())
    assert errors[1] < 0.15
    assert 2 < errors[0] / errors[1] < 8


def finite_gram(net, x):
    weights = [w.clone().requires_grad_() for w in net.W[0]]
    positive, negative = net.slopes[0]
    h = x @ net.A[0].T
    for w in weights:
        g = h @ w.T
        h = torch.where(g > 0, positive * g, negative * g)
    rows = [torch.autograd.grad(u, weights, retain_graph=True) for u in (h @ net.B[0].T)[:, 0]]
    jacobian = torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])
    return jacobian @ jacobian.T


def test_extreme_eigenvalues_are_those_of_the_full_spectrum():
    gram = kernels.relu_gram(sphere(80, 6))
    spectrum = torch.linalg.eigvalsh(gram)
    assert kernels.extreme_eigenvalues(gram) == pytest.approx(
        (spectrum[0].item(), spectrum[-1].item()), rel=1e-9
    )
    x = sphere(9, 4)
    with pytest.raises(ParameterError, match="parallel"):
        kernels.extreme_eigenvalues(
            kernels.relu_gram(torch.cat([x, -x]))
        )  # more than d antipodal pairs: singular
