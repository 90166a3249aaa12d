"""Curvature against known spectra, closed forms, and the full Hessian of a small net by autograd."""

import pytest
import torch
from torch.autograd.functional import hessian
from torch.func import functional_call

from overparam.theory import curvature

EXACT = {"rtol": 1e-9, "atol": 1e-11}


def quadratic(spectrum, seed=0):
    """(loss, its Hessian, the eigenvectors as columns) of a quadratic with this spectrum."""
    spectrum = torch.as_tensor(spectrum, dtype=torch.float64)
    draw = torch.Generator().manual_seed(seed)
    q, _ = torch.linalg.qr(torch.randn(len(spectrum), len(spectrum), generator=draw, dtype=torch.float64))
    h, b = q @ torch.diag(spectrum) @ q.T, torch.randn(len(spectrum), generator=draw, dtype=torch.float64)
    return lambda w: w @ h @ w / 2 + b @ w, h, q


def normal(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small_net():
    """(loss of a vector, the vector) of a smooth net with 31 weights."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2, bias=False)).double()
    x, y, flat = normal(7, 3), normal(7, 2, seed=2), curvature.Flat(dict(net.named_parameters()))
    return lambda w: (functional_call(net, flat(w), (x,)) - y).square().mean(), flat.vector(net.state_dict())


def test_products_are_those_of_the_full_hessian_of_a_net():
    loss, w = small_net()
    full, v = hessian(loss, w), normal(len(w))
    by_differences = curvature.difference_product(lambda u: curvature.value_and_gradient(loss, u)[1], w, 1e-5)
    torch.testing.assert_close(by_differences(v), full @ v, rtol=1e-6, atol=1e-8)
    values, vectors = curvature.lanczos(lambda u: full @ u, v, len(w))
    torch.testing.assert_close(values[[0, -1]], torch.linalg.eigvalsh(full)[[0, -1]], rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(full @ vectors[0], values[0] * vectors[0], rtol=1e-6, atol=1e-8)


def test_smoothing_sees_kinks():
    """sum |w_i| has no second derivative but at 0, and E_u of the difference is P(|w_i + u_i| < q v_i)/q."""
    p, sigma, radius = 200_000, 0.5, 40.0  # each coordinate moves by radius/sqrt(p)
    w, v = torch.full((p,), 0.3, dtype=torch.float64), torch.ones(p, dtype=torch.float64)
    step = radius / p**0.5
    product = curvature.smoothed_product(torch.sign, w, radius, sigma * normal(2, p))
    inside = torch.distributions.Normal(0.3, sigma)
    expected = (inside.cdf(torch.tensor(step)) - inside.cdf(torch.tensor(-step))) / step
    assert product(v).mean().item() == pytest.approx(expected.item(), rel=0.02)


def test_lanczos_finds_the_whole_spectrum():
    spectrum = torch.linspace(-3, 7, 30, dtype=torch.float64)
    _, h, q = quadratic(spectrum)
    values, vectors = curvature.lanczos(lambda v: h @ v, normal(30), 30)
    torch.testing.assert_close(values, spectrum, **EXACT)
    torch.testing.assert_close((vectors * q[:, [0, -1]].T).sum(1).abs(), torch.ones(2, dtype=torch.float64), **EXACT)


def test_lanczos_ends_where_the_subspace_is_invariant():
    _, h, _ = quadratic([-1.0] * 5 + [2.0] * 20)
    values, _ = curvature.lanczos(lambda v: h @ v, normal(25), 25)
    torch.testing.assert_close(values, torch.tensor([-1.0, 2.0], dtype=torch.float64), **EXACT)


def test_a_few_steps_bound_the_ends_of_the_spectrum_from_inside():
    spectrum = torch.cat([torch.tensor([-4.0]), torch.linspace(-0.5, 0.5, 98), torch.tensor([9.0])]).double()
    _, h, _ = quadratic(spectrum)
    values, _ = curvature.lanczos(lambda v: h @ v, normal(100), 12)
    assert -4 - 1e-9 <= values[0] <= -3.999
    assert 8.999 <= values[-1] <= 9 + 1e-9


def noisy(h, size, seed=5):
    """Products with h and a fresh symmetric error each time."""
    draw = torch.Generator().manual_seed(seed)

    def product(v):
        error = torch.randn(h.shape, generator=draw, dtype=torch.float64) * size
        return (h + (error + error.T) / 2) @ v

    return product


def test_ojas_method_finds_the_lowest_eigenvector_of_noisy_products():
    _, h, q = quadratic([-2.0, *torch.linspace(-0.2, 1.0, 38).tolist(), 5.0])
    v = curvature.oja(noisy(h, 0.05), normal(40), 300, rate=0.2)
    assert (v @ q[:, 0]).abs() > 0.99
    assert v.norm().item() == pytest.approx(1)
    mean, error = curvature.rayleigh([noisy(h, 0.05)] * 8, v)
    assert abs(mean.item() + 2) < max(0.05, 4 * error.item())


def test_surfaces_and_cuts_are_values_on_a_plane():
    loss, _, _ = quadratic([-1.0, 2.0, 3.0])
    w, x, y = normal(3), normal(3, seed=8), normal(3, seed=9)
    values = curvature.surface(loss, w, x, y, [-1.0, 0.0, 0.5], [0.0, 2.0])
    assert values.shape == (2, 3)
    assert values[1, 0].item() == pytest.approx(loss(w - x + 2 * y).item())
    torch.testing.assert_close(curvature.cut(loss, w, x, [-1.0, 0.0, 0.5]), values[0])
