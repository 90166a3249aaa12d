"""Curvature against known spectra, closed forms.

And the full Hessian of a small net by autograd.
"""

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
    q, _ = torch.linalg.qr(
        torch.randn(len(spectrum), len(spectrum), generator=draw, dtype=torch.float64)
    )
    h = q @ torch.diag(spectrum) @ q.T
    b = torch.randn(len(spectrum), generator=draw, dtype=torch.float64)
    return lambda w: w @ h @ w / 2 + b @ w, h, q


def normal(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small_net():
    """(loss of a vector, the vector) of a smooth net with 31 weights."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2, bias=False)
    ).double()
    x, y, flat = normal(7, 3), normal(7, 2, seed=2), curvature.Flat(dict(net.named_parameters()))
    return lambda w: (functional_call(net, flat(w), (x,)) - y).square().mean(), flat.vector(
        net.state_dict()
    )


def test_products_are_those_of_the_full_hessian_of_a_net():
    loss, w = small_net()
    full, v = hessian(loss, w), normal(len(w))
    by_differences = curvature.difference_product(
        lambda u: curvature.value_and_gradient(loss, u)[1], w, 1e-5
    )
    torch.testing.assert_close(by_differences(v), full @ v, rtol=1e-6, atol=1e-8)
    values, vectors = curvature.lanczos(lambda u: full @ u, v, len(w))
    torch.testing.assert_close(
        values[[0, -1]], torch.linalg.eigvalsh(full)[[0, -1]], rtol=1e-8, atol=1e-10
    )
    torch.testing.assert_close(full @ vectors[0], values[0] * vectors[0], rtol=1e-6, atol=1e-8)


def test_smoothing_sees_kinks():
    """sum |w_i| has no second derivative but at 0.

    And E_u of the difference is P(|w_i + u_i| < q v_i)/q.
    """
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
    torch.testing.assert_close(
        (vectors * q[:, [0, -1]].T).sum(1).abs(), torch.ones(2, dtype=torch.float64), **EXACT
    )


def test_lanczos_ends_where_the_subspace_is_invariant():
    _, h, _ = quadratic([-1.0] * 5 + [2.0] * 20)
    values, _ = curvature.lanczos(lambda v: h @ v, normal(25), 25)
    torch.testing.assert_close(values, torch.tensor([-1.0, 2.0], dtype=torch.float64), **EXACT)


def test_a_few_steps_bound_the_ends_of_the_spectrum_from_inside():
    spectrum = torch.cat(
        [torch.tensor([-4.0]), torch.linspace(-0.5, 0.5, 98), torch.tensor([9.0])]
    ).double()
    _, h, _ = quadratic(spectrum)
    values, _ = curvature.lanczos(lambda v: h @ v, normal(100), 12)
    assert -4 - 1e-9 <= values[0] <= -3.999
    assert 8.999 <= values[-1] <= 9 + 1e-9


@pytest.mark.parametrize("best", [1.1e-4, 0.0031, 0.05, 0.4])
def test_the_best_length_of_a_parabola_is_found_to_two_per_cent_and_its_value_to_a_thousandth(best):
    """Lengths a factor 1.47 apart, as a grid of 25 has them, are off by up to 20 %."""
    asked = []

    def parabola(a):
        asked.append(a)
        return torch.tensor(3 + (a / best - 1) ** 2, dtype=torch.float64)

    length, value = curvature.best_length(parabola, 1e-4, 1.0)
    assert length == pytest.approx(best, rel=0.02)
    assert value == pytest.approx(3, abs=1e-3)
    assert len(asked) <= 40
    assert min(asked) >= 1e-4 * (1 - 1e-9)
    assert max(asked) <= 1 + 1e-9


def test_the_best_length_along_the_gradient_of_a_quadratic_is_its_closed_form():
    loss, h, _ = quadratic([-0.1, 0.5, 2.0, 7.0])
    w = normal(4)
    g = torch.autograd.functional.jacobian(loss, w)
    exact = (g @ g / (g @ h @ g)).item()
    length, value = curvature.best_length(lambda a: loss(w - a * g), 1e-3, 10)
    assert length == pytest.approx(exact, rel=0.02)
    assert value == pytest.approx(loss(w - exact * g).item(), rel=1e-3)


def test_the_best_length_of_two_minima_is_the_deeper_one_and_ends_may_be_best():
    wells = curvature.best_length(lambda a: min((a - 0.01) ** 2 * 1e4, (a - 3) ** 2 - 1), 1e-3, 10)
    assert wells == (pytest.approx(3, rel=0.02), pytest.approx(-1, abs=4e-3))
    assert curvature.best_length(lambda a: -a, 0.1, 5.0)[0] == pytest.approx(5.0, rel=0.02)
    assert curvature.best_length(lambda a: a, 0.1, 5.0) == (
        pytest.approx(0.1, rel=0.02),
        pytest.approx(0.1, rel=0.02),
    )
