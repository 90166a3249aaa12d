"""The formulas of Frei et al.

2019 against simulation, quadrature, the proofs' steps and each other.
"""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from overparam.bounds import frei2019 as b
from overparam.errors import ParameterError


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (b.thm35_Keta_max, (0.1, 0.1, 1, 1), "n must exceed delta"),
        (b.thm35_width, (0, 20, 16, 200, 0.1, 0.05), "tau must be positive"),
    ],
)
def test_vanishing_denominators_are_refused(function, arguments, message):
    with pytest.raises(ParameterError, match=message):
        function(*arguments)


def test_training_to_the_time_limit_fills_the_neighbourhood():
    tau, gamma, n, delta, m, eta = 0.02, 0.15, 300, 0.01, 4000, 1e-10
    K = b.thm35_Keta_max(tau, gamma, n, delta) / eta
    surrogate = math.sqrt(math.log(n / delta) / m) / (gamma**4 * tau)
    assert b.thm35_surrogate(m, K, eta, n, delta, gamma) == pytest.approx(surrogate, rel=1e-12)


def test_the_theorems_own_width_allows_its_own_radius():
    gamma = np.array([0.05, 0.1, 0.3])
    m = b.thm35_own_width(20, 8, 200, gamma, 0.05)
    tau = b.thm35_tau_max(gamma, m)
    np.testing.assert_allclose(m, b.thm35_width(tau, 20, 8, 200, gamma, 0.05), rtol=1e-9)
    # log m = 52.24, tau = 1e-12/52.24^1.5 = 2.65e-15: m = 1e16 * 52.24^2 * 20 * 88.8, with
    # log(m/(0.05 tau)) = 88.8
    assert m[1] == pytest.approx(4.847e22, rel=1e-3)
    enough = b.thm35_own_width(20, 8, 200, gamma, 0.05, 0.5)
    tau = b.thm35_tau_max(gamma, enough)
    promised = b.thm35_surrogate(
        enough, b.thm35_Keta_max(tau, gamma, 200, 0.05) / 1e-60, 1e-60, 200, 0.05, gamma
    )
    np.testing.assert_allclose(promised, 0.5, rtol=1e-9)
    assert (enough > m).all()


@pytest.mark.parametrize(
    ("C", "message"),
    [
        (
            0.07,
            "did not converge",
        ),  # jumps between 0.07 τ^(−2/3) log(L/δ)/log m and a term without m
        (0.001, "left m > 1"),
    ],
)
def test_width_without_a_fixed_point_is_refused(C, message):
    with pytest.raises(ParameterError, match=message):
        b.thm35_width(0.9, 1, 1e9, 1, 1, 0.5, C=C)


def _cor37_radius(eps, gamma, n, delta, m):
    """τ = γ⁻⁴ ε⁻¹ m^(−1/2) √log(n/δ), of Appendix A.3."""
    return gamma**-4 / eps * np.sqrt(np.log(n / delta) / m)


@pytest.mark.parametrize(("eps", "gamma", "m"), [(0.1, 0.1, 1e15), (0.2, 0.3, 1e9)])
def test_cor37_takes_gamma_to_the_minus_8_steps(eps, gamma, m):
    n, delta = 1000, 0.05
    eta, tau = gamma**4 / m, _cor37_radius(eps, gamma, n, delta, m)
    K = gamma**-8 * eps**-2 * math.sqrt(math.log(n / delta))
    assert b.thm35_surrogate(m, K, eta, n, delta, gamma) == pytest.approx(eps, rel=1e-12)
    assert K * eta == pytest.approx(b.thm35_Keta_max(tau, gamma, n, delta), rel=1e-12)
    # Appendix A.3 has K = γ⁻⁴ ε⁻² √log(n/δ) instead, which misses ε by a factor γ⁻²
    assert b.thm35_surrogate(m, K * gamma**4, eta, n, delta, gamma) == pytest.approx(
        eps / gamma**2, rel=1e-12
    )


def test_cor37_width_is_cubic_in_d():
    eps, gamma, n, delta, d = 0.5, 0.5, 100, 0.1, 1e6 * np.array([1.0, 10.0, 100.0])
    m = np.full(3, 1e20)
    for _ in range(200):  # the m that equals the width that its own radius asks for
        tau = _cor37_radius(eps, gamma, n, delta, m)
        m = b.thm35_width(tau, d, 1, n, gamma, delta, m=m)
    logs = np.log(m / (tau * delta)) ** 3 / math.log(n / delta) ** 2
    assert m == pytest.approx(d**3 * eps**4 * gamma**16 * logs, rel=1e-9)
    assert np.all(m > np.maximum(d, eps**-14) * math.log(1 / delta))  # the printed width


def test_lemB2_needs_a_small_theta_for_its_printed_constant():
    # log(1.01)/(2√2) = 0.0099503/2.8284 = 0.0035180
    assert b.lemB2_product(0.0035179, 1) < 1.01 < b.lemB2_product(0.0035181, 1)
    assert b.lemB2_product(1 / 64, 64) == pytest.approx(16.92, abs=0.005)
    W = np.random.default_rng(0).normal(0, math.sqrt(2 / 400), (400, 400))
    assert np.linalg.norm(W, 2) == pytest.approx(math.log(b.lemB2_product(1, 1)), rel=0.03)


def moments(theta, L):
    """‖x_L‖ for m → ∞ from ‖x_l‖² = N and m^(-1/2) Σ_j x_{l,j} = S at every layer."""
    N, S = 1.0, 1 / math.sqrt(math.pi)
    for _ in range(L - 1):
        r = math.sqrt(N)
        N, S = (
            N * (1 + theta**2) + 2 * theta * S * r / math.sqrt(math.pi),
            S + theta * r / math.sqrt(math.pi),
        )
    return math.sqrt(N)


@pytest.mark.parametrize("depth", [0.1, 1.0, 4.0])
def test_ref_norm_is_the_deep_limit_of_the_layers_moments(depth):
    L = np.array([101, 201, 401])
    gap = [moments(depth / (l - 1), l) / b.ref_norm(depth / (l - 1), l) - 1 for l in L]
    assert abs(gap[0]) < 0.02
    assert np.divide(gap[:-1], gap[1:]) == pytest.approx(
        2, rel=0.03
    )  # an error of first order in 1/L


def test_ref_norm_is_that_of_a_wide_net():
    # given x_{l−1}, the pre-activations are independent N(0, 2‖x_{l−1}‖²/m)
    rng, m, L = np.random.default_rng(2), 100_000, 100
    x = np.maximum(rng.normal(0, math.sqrt(2 / m), m), 0)
    first = np.linalg.norm(x)
    for _ in range(L - 1):
        x = x + np.maximum(rng.normal(0, math.sqrt(2 / m) * np.linalg.norm(x), m), 0) / L
    assert np.linalg.norm(x) / first == pytest.approx(b.ref_norm(1 / L, L), rel=0.01)


def test_ref_gradient_by_hand():
    def gradients(L, theta=None):
        return b.ref_gradient(np.arange(1, L + 2), L, theta)

    half = math.sqrt(0.5)
    assert gradients(1, 0.3) == pytest.approx([half, half])
    assert gradients(2, 0.3) == pytest.approx(
        [half * math.sqrt(1.09), 0.3 * half, half * moments(0.3, 2)]
    )
    assert gradients(40, 0.1)[-1] == pytest.approx(half * moments(0.1, 40))
    assert gradients(3) == pytest.approx([half] * 4)
    total = [gradients(L, 1 / L).sum() for L in (1000, 2000, 4000)]
    grown = math.sqrt(math.pi - 1) * (
        math.sinh(math.asinh(1 / math.sqrt(math.pi - 1)) + 1 / math.sqrt(math.pi))
    )
    integral = grown - 1  # of ref_norm over t from 0 to 1
    assert 2 * total[2] - total[1] == pytest.approx(
        half * (1 + integral + b.ref_norm(1e-9, 1e9)), rel=1e-4
    )


def second_moment(c):
    """E[g²; |g| ≤ c] for a standard normal g."""
    return 2 * norm.cdf(c) - 1 - 2 * c * norm.pdf(c)


def cut(cost):
    return brentq(lambda c: second_moment(c) - cost, 1e-9, 6, xtol=1e-15)


@pytest.mark.parametrize("tau", [0.001, 0.01, 0.1, 0.3])
def test_ref_flip_is_the_cheapest_set_of_gaussians(tau):
    # ‖x‖ = 1: z = √(2/m) g, so that flipping all |g| ≤ c costs 2 E[g²; |g| ≤ c] = τ²
    c = cut(tau**2 / 2)
    fraction = 2 * norm.cdf(c) - 1
    assert b.ref_flip(tau) == pytest.approx(fraction, rel=0.3 * tau ** (4 / 3) + 1e-6)


@pytest.mark.parametrize("tau", [0.001, 0.01, 0.1, 0.3])
def test_ref_resid_is_the_residual_of_reflected_gaussians(tau):
    # half of the neurons move from z to −z: cost 4·½·2 E[g²; |g| ≤ c] ‖x‖² = (τ‖x‖)², residual ½ m
    # E|z|
    m, xnorm, c = 5000, 1.4, cut(tau**2 / 4)
    residual = m / 2 * math.sqrt(2 / m) * xnorm * 2 * (norm.pdf(0) - norm.pdf(c))
    assert b.ref_resid(tau, m, xnorm) == pytest.approx(residual, rel=0.3 * tau ** (4 / 3) + 1e-6)
