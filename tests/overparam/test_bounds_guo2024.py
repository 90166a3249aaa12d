"""The formulas of Guo et al.

2024 against the paper's numbers, quadrature, simulation and each other.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from overparam.bounds import guo2024 as g
from overparam.errors import ParameterError


@pytest.mark.parametrize(
    ("alpha", "c"),
    [
        (-10, 1.198),
        (-4, 1.471),
        (-2, 1.8),
        (-1, 2),
        (-0.5, 1.8),
        (0, 1),
        (0.01, 0.980),
        (0.05, 0.900),
    ]
    + [(0.5, 0.2), (1, 0), (2, 0.2), (-np.inf, 1), (np.inf, 1)],
)
def test_c_alpha_values(alpha, c):
    assert g.c_alpha(alpha) == pytest.approx(c, abs=5e-4)


RATE = dict(delta=0.2, eta=1e-3, m=500.0, n=20.0, d=1.0)


@pytest.mark.parametrize(
    "bound",
    [
        lambda a: g.gamma_gd(a, **RATE),
        lambda a: g.gamma_sgd(a, b=5, **RATE),
        lambda a: g.gamma_convex(a, 0.5, L=2, **RATE),
        lambda a: g.width_gd(a, 20, 3, 1, 0.2),
        lambda a: g.width_sgd(a, 20, 3, 1, 5, 0.2),
        lambda a: g.width_special(a, 20, 3, 2),
        lambda a: g.burnin_sgd(a, 20, 3, 5, 0.2, 500),
        lambda a: g.grad_lower(a, 1, 0.2, 500, 20, 1),
        lambda a: g.dual_act(1.1, a),
    ],
)
def test_extremal_at_minus_one_and_monotone_on_both_sides(bound):
    """Corollary 3.3, and the same for other functions of c(α)."""
    alphas = np.concatenate([np.linspace(-6, -1, 60), np.linspace(-1, 0.9, 60)[1:]])
    values = bound(alphas)
    steps = np.sign(np.diff(values))
    assert (steps[:59] == -steps[-1]).all()
    assert (steps[59:] == steps[-1]).all()
    assert values[:59] == pytest.approx(bound(1 / alphas[:59]), rel=1e-12)


def leaky(x, alpha):
    return np.where(x >= 0, x, alpha * x) / np.sqrt(1 + alpha**2)


@pytest.mark.parametrize("alpha", [-4.0, -1.0, 0.0, 0.05, 1.0, 3.0])
@pytest.mark.parametrize("phi", [0.0, 0.1, 0.9, np.pi / 2, 2.5, np.pi])
def test_dual_kernel_against_quadrature(phi, alpha):
    """By homogeneity the Gaussian integral is one over the angle, times E R^2 = 2."""
    kinks = [
        k % (2 * np.pi) for k in (np.pi / 2, 3 * np.pi / 2, np.pi / 2 + phi, 3 * np.pi / 2 + phi)
    ]
    integral = sum(
        quad(lambda u: leaky(np.cos(u), alpha) * leaky(np.cos(u - phi), alpha), a, b)[0]
        for a, b in pairwise([0.0, *sorted(kinks), 2 * np.pi])
    )
    assert g.dual_act(phi, alpha) == pytest.approx(integral / np.pi, abs=1e-12)


@pytest.mark.parametrize("alpha", [-np.inf, -2.0, -1.0, 0.0, 0.5])
def test_ln_norm_var_against_the_norm_chain(alpha):
    """Given h_{l-1}, the m entries of g_l are independent N(0, 2 ‖h_{l-1}‖²/m).

    -∞ is ReLU reflected.
    """
    m, chains, rng = 1024, 2000, np.random.default_rng(1)
    slopes = (
        (0.0, 1.0)
        if alpha == -np.inf
        else (1 / np.sqrt(1 + alpha**2), alpha / np.sqrt(1 + alpha**2))
    )
    log_norm = np.log(np.mean(rng.standard_normal((chains, m)) ** 2, axis=1))
    for l in range(1, 4):
        z = rng.standard_normal((chains, m))
        log_norm += np.log(2 * np.mean(np.where(z >= 0, slopes[0] * z, slopes[1] * z) ** 2, axis=1))
        centred = log_norm - log_norm.mean()
        variance = np.mean(centred**2)
        standard_error = np.sqrt((np.mean(centred**4) - variance**2) / chains)
        exact = g.ln_norm_var(alpha, l, m)
        assert abs(variance - exact) < 3 * standard_error + 20 / m * exact, l


@pytest.mark.parametrize("c_rhs", [0.2133, 1.0, 1e5, 1e40, 1e200])
def test_width_solves_its_equation_on_the_increasing_branch(c_rhs):
    m = g.width_special(0, 1, 1, 1, C=c_rhs)
    assert m / np.log(m) ** 4 == pytest.approx(c_rhs, rel=1e-9)
    assert m > np.exp(4)
    assert m * 1.001 / np.log(m * 1.001) ** 4 > c_rhs


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (g.width_gd(0, 1000, 5, 1, 0.21), 7.297e35),
        (g.width_gd(-1, 1000, 5, 1, 0.21), 3.521e35),
        (g.eta_max_gd(1000, 5, 5000, 1), 8e-9),
        (g.omega_gradient(1000, 5, 5000, 0.21), 7.008e-13),
        (g.width_sgd(0, 3000, 2, 10, 64, 0.21), 7.827e42),
        (g.width_special(0, 1000, 5, 1), 6.955e17),
        (g.gamma_hat(1, 0.276, 100, 1000), 0.99857),
        (g.C_gamma(g.gamma_hat(1, 0.276, 100, 1000)), 0.001429),
        (g.C_gamma(g.gamma_hat(1, 0.380, 100, 1000), C0=0.5), 0.0005373),
    ],
)
def test_values_of_the_papers_experiments(value, expected):
    assert value == pytest.approx(expected, rel=5e-4)


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.5])
def test_the_widths_follow_from_their_proofs(alpha):
    """The radius at every t, by eqs.

    (111) or (165) with (108), is that of the gradient bounds but for ln(m)^{-1/4}.
    """
    n, L, d, delta, c = 50, 3, 2, 0.2, g.c_alpha(alpha)
    m = g.width_gd(alpha, n, L, d, delta)
    universal = np.sqrt(n * d * n * np.sqrt(np.log(m)) / (c * delta * m))
    assert universal / g.omega_gradient(n, L, m, delta) == pytest.approx(
        np.log(m) ** -0.25, rel=1e-9
    )
    m = g.width_special(alpha, n, L, d)
    universal = d * np.sqrt(n * np.sqrt(np.log(m)) / (c * m))
    radius = 1 / (d**1.5 * L**6 * np.log(m) ** 1.5)  # eq. (166)
    assert universal / radius == pytest.approx(np.log(m) ** -0.25, rel=1e-9)


def theorem34(n=1000, L=5, d=1, delta=0.21, tau=0.1, form="printed"):
    """The arguments of `gen_gd` besides t and α, at the m and η of Theorem 3.4."""
    m = g.width_gen_gd(n, L, d, delta, tau, form)
    return dict(n=n, L=L, d=d, delta=delta, tau=tau, m=m, eta=g.eta_max_gd(n, L, m, d))


@pytest.mark.parametrize(("alpha", "steps"), [(-1, 8.23e8), (0, 1.645e9)])
def test_bound_at_the_time_of_convergence(alpha, steps):
    """Appendix A inverts T: where eq. (7) as printed has 34 in its third term, it has 10^-10."""
    setting = theorem34()
    gamma = g.gamma_gd(alpha, setting["eta"], 0.21, setting["m"], 1000, 1)
    T = np.log(0.01 / (1000 * np.sqrt(np.log(setting["m"])))) / np.log(gamma)
    assert pytest.approx(steps, rel=1e-3) == T
    parts = g.gen_gd(T, alpha, **setting, terms=True)
    assert parts == pytest.approx((0.01, 0.281, 34.3, 0.318), rel=2e-3)
    assert g.gen_gd(T, alpha, **setting) == sum(parts)
    at_T = {k: v for k, v in setting.items() if k != "eta"}
    upright = g.appA_at_T(0.01, alpha, **at_T, form="rederived", terms=True)
    assert upright == pytest.approx(parts[:3], rel=1e-6)
    inverted = g.appA_at_T(0.01, alpha, **at_T, terms=True)
    assert inverted[2] == pytest.approx(2.33e-10 * g.c_alpha(alpha), rel=2e-3)
    t = (
        g.c_alpha(alpha)
        * 0.21
        / (1000 * 5) ** 2
        * np.log(1000 * np.sqrt(np.log(setting["m"])) / 0.01)
    )
    assert inverted[1:] == pytest.approx(g.gen_gd(t, alpha, **setting, terms=True)[1:3], rel=1e-12)


def lemma43(omega, alpha, n, L, m, d):
    """The two middle terms of Lemma 4.3."""
    given = dict(loss=0, omega=omega, alpha=alpha, n=n, L=L, m=m, d=d)
    off = 1e-300
    return np.array(
        [g.gen_lemma43(**given, C2=off, C3=off), g.gen_lemma43(**given, C1=off, C3=off)]
    )


@pytest.mark.parametrize("m", [1e20, 1e45])
def test_printed_bound_is_lemma_43_up_to_documented_powers(m):
    n, L, d, delta, tau, alpha, lnm = 70.0, 3.0, 2.0, 0.3, 0.2, -0.3, np.log(m)
    setting = dict(n=n, L=L, d=d, delta=delta, tau=tau, m=m, eta=g.eta_max_gd(n, L, m, d))
    early = g.gen_gd(1.0, alpha, **setting, terms=True)[1:3]
    expected = lemma43(g.omega_direct(1.0, setting["eta"], n, m, d), alpha, n, L, m, d)
    assert early == pytest.approx(
        expected * [d ** (-4 / 3) * lnm ** (-5 / 3), 1 / d / np.sqrt(lnm)], rel=1e-11
    )
    setting = theorem34(n, L, d, delta, tau, "rederived")
    late = g.gen_gd(1e60, alpha, **setting, terms=True)[1:3]
    expected = lemma43(g.omega_gradient(n, L, setting["m"], delta), alpha, n, L, setting["m"], d)
    slip = [g.c_alpha(alpha) ** -0.5, L / d]
    # ln m of the width is that of m itself, which the printed form leaves as it is
    assert late == pytest.approx(expected * slip, rel=1e-9)


@pytest.mark.parametrize("t", [1.0, 1e12])
def test_rederived_bound_is_lemma_43_at_the_smaller_radius(t):
    n, L, m, d, eta = 70.0, 3.0, 50.0, 2.0, 1e-13
    train, *rest = g.gen_gd(t, -0.3, n, L, d, 0.3, m, eta, 0.2, form="rederived", terms=True)
    radius = eta * t * n * np.sqrt(m / d) * np.log(m) ** 0.25
    omega = min(radius, g.omega_gradient(n, L, m, 0.3))
    assert train + sum(rest) == pytest.approx(
        g.gen_lemma43(n * train, omega, -0.3, n, L, m, d), rel=1e-12
    )


def test_training_term_keeps_rates_that_round_to_one():
    """1 - γ is 2·10⁻¹⁵ here, of which the rounded γ keeps one digit."""
    setting = theorem34(n=10**6, L=10)
    rate = 0.21 / (10**6 * 10) ** 2
    train = g.gen_gd(1e15, 0, **setting, L0=1.0, terms=True)[0]
    assert train == pytest.approx(np.exp(-1e15 * rate), rel=1e-9)
    root = np.sqrt(np.log(setting["m"]))
    assert g.gen_gd(0.0, 0, **setting, terms=True)[0] == pytest.approx(10**6 * root)
    assert g.gen_gd(0.0, 0, **setting, form="rederived", terms=True)[0] == pytest.approx(root)


@pytest.mark.parametrize(
    "call",
    [
        lambda: g.gamma_gd(1, 0.1, 0.2, 50, 20, 1),
        lambda: g.gamma_gd(0, 0.1, 0.2, 50, 20, 1, C=0),
        lambda: g.gamma_sgd(0, 0.1, 21, 0.2, 50, 20, 1),
        lambda: g.width_special(0, 1, 1, 1, C=1e-12),
        lambda: g.omega_direct(1, 0.1, 20, 50, 1, form="exact"),
        lambda: g.hprime_bound(0.1, 2, 1),
        lambda: g.semismooth_rhs(1.01, 0.1, 0.1, 1, 20, 2, 50, 1),
        lambda: g.appA_at_T(1e9, 0, 20, 2, 1, 0.2, 50, 0.1),
        lambda: g.gamma_hat(3, 2, 10, 10),
        lambda: g.gen_gd(1, 0, 20, 2, 1, 0.2, 50, 1000, 0.1),
    ],
)
def test_what_no_theorem_covers_is_refused(call):
    with pytest.raises(ParameterError):
        call()
