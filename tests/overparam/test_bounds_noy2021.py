"""The formulas of Noy et al.

2021 against the paper's exponents and numbers, sympy, mpmath and simulation.
"""

import mpmath
import numpy as np
import pytest
import sympy

from overparam.bounds import noy2021 as b


def test_numbers_of_the_paper():
    """10^172 parameters (Section 1), the factor n^6 L^11 (Section 7), the step size at the width
    (Section 10.4).
    """
    log10_m = b.width_zou2019(1.2e6, 1001, log10=True)
    assert b.log10_parameters(log10_m, 1001) == pytest.approx(172.28, abs=0.01)
    exact = mpmath.log10(mpmath.mpf(1200000) ** 16 * mpmath.mpf(1001) ** 25)
    assert b.log10_parameters(log10_m, 1001) == pytest.approx(float(exact), rel=1e-14)
    n, L, dx, dy = sympy.symbols("n L dx dy", positive=True)
    values = {n: 1281167, L: 1001, dx: 7, dy: 3}
    factor = sympy.log((n**8 * L**12) / (n**2 * L), 10).subs(values)
    found = b.width_zou2019(1281167, 1001, log10=True) - b.width_noy2021(1281167, 1001, log10=True)
    assert found == pytest.approx(float(factor), rel=1e-12)
    m = b.width_noy2021(70, 3, 2)
    assert b.step_at_width(m, 3, 6, 2) == pytest.approx(b.step_noy2021(70, 3, 6, 2))
    # The steepest of the steps underflows as a float64.
    expected = -29 * np.log10(1281167) - 47 * np.log10(1001)
    assert b.step_zou2018(1281167, 1001, log10=True) == pytest.approx(expected)
    assert b.iters_noy2021(100, 4, 200, 1e-6) == pytest.approx(np.log(4e6 / 200 * 1e6))


def test_lemma3_terms_against_sympy():
    a2, b2, bx, n, L, l0, t = sympy.symbols("a2 b2 bx n L l0 t", positive=True)
    printed = [
        a2 / (12 * b2 * bx * L),
        1 / (3 * L),
        a2 / (4 * b2**2 * L),
        1 / (b2 * L),
        1
        / (
            4
            * sympy.sqrt(2)
            * sympy.sqrt(L)
            * sympy.exp(t / 2)
            * t ** sympy.Rational(-1, 2)
            * sympy.sqrt(b2 * l0)
        ),
        a2 / (1024 * n * sympy.exp(2 * t) * t**-2 * b2 * l0),
    ]
    values = dict(alpha2=0.3, beta2=5.0, beta_x=2.0, n=8.0, L=4.0, loss0=7.0, theta=0.2)
    at = dict(zip((a2, b2, bx, n, L, l0, t), values.values(), strict=True))
    expected = [float(term.subs(at)) for term in printed]
    terms = b.eta_lemma3(**values)
    np.testing.assert_allclose(terms, expected, rtol=1e-12)
    assert terms.eta == pytest.approx(min(expected))
    corrected = b.eta_lemma3(**values, form="corrected")
    assert corrected[0] == pytest.approx(0.3 / (12 * 25 * 4))
    assert corrected[1:] == terms[1:]


def test_constants_of_theorem_1_follow_from_their_step_sizes():
    """c_T is 2/(eta alpha^2 L) at beta^2/alpha^2 = 81^2."""
    m, dx, dy, L = 1024.0, 32.0, 2.0, 4.0
    a2, b2 = b.alpha2(m, dx, dy), b.beta2(m, dx, dy)
    assert b2 / a2 == pytest.approx(81**2)
    assert b.gamma_needed(100) == pytest.approx(1 / (2 * 81**2 * 100))
    assert b.gamma_needed(100, alpha2=a2, beta2=b2) == pytest.approx(b.gamma_needed(100))
    for form, eta in (
        ("printed", 1 / (b2 * L)),
        ("eq18", a2 / (4 * b2**2 * L)),
        ("corrected", a2 / (12 * b2**2 * L)),
    ):
        assert b.c_T(form) == pytest.approx(2 / (eta * a2 * L))
        steps = b.c_T(form) * np.log(50.0 / 1e-6)
        # After so many steps of (19) the loss is at most eps, and after 1 % less it is not yet.
        rate = np.log1p(-eta * a2 * L / 2)
        assert b.contraction(eta, a2, L) == pytest.approx(np.exp(rate), rel=1e-12)
        assert 50 * np.exp(rate * steps) <= 1e-6 < 50 * np.exp(rate * 0.99 * steps)


def test_the_kernel_against_simulation():
    """Of the net of Section 2.1, written out: the diagonal."""
    rng, dx, dy, m, L, trials = np.random.default_rng(0), 5, 3, 30, 2, 2500
    diagonal = []
    for _ in range(trials):
        x = rng.standard_normal(dx)
        x /= np.linalg.norm(x)
        C, B = rng.normal(0, (2 / dx) ** 0.5, (m, dx)), rng.normal(0, (2 / dy) ** 0.5, (dy, m))
        z = h = np.maximum(C @ x, 0)
        layers, weights, gates = [h], [], []
        for _ in range(L):
            weights.append(rng.normal(0, (2 / m) ** 0.5, (m, m)))
            z = np.maximum(rng.normal(0, (2 / m) ** 0.5, (m, m)) @ z, 0)
            gates.append(z > 0)
            h = gates[-1] * (weights[-1] @ h)
            layers.append(h)
        back, total = B[0] * gates[-1], 0
        for k in reversed(range(L)):
            total += (back @ back) * (layers[k] @ layers[k])
            back = (back @ weights[k]) * gates[k - 1]
        diagonal.append(total)
    assert np.mean(diagonal) == pytest.approx(b.ntk_diagonal(m, L, dx, dy), rel=0.06)


def test_tau_condition_is_equality_in_50_and_best_at_a_quarter():
    L, theta = 5.0, np.linspace(0.01, 0.5, 491)
    tau = b.tau_condition50(L, theta)
    np.testing.assert_allclose(
        L * tau * 3 * np.sqrt(12 * L) * np.exp(2 * theta) * theta**-0.5, 1 / 9
    )
    assert theta[tau.argmax()] == pytest.approx(0.25, abs=1e-3)
    assert b.tau_condition50(4, 0.25) == pytest.approx(4.05e-4, rel=1e-3)


def test_theorem_5_and_lemma_5():
    with mpmath.workdps(30):
        failure = (
            3
            * 16
            * mpmath.sqrt(400000)
            * mpmath.exp(-0.2 * 400000 / 16 + 6 * mpmath.sqrt(400000) + 600)
        )
    assert b.thm5_log_failure(400000, 4, 200, 1, 0.2) == pytest.approx(
        float(mpmath.log(failure)), rel=1e-12
    )
    for L, dx, theta in ((4, 200, 0.2), (4, 3072, 0.5), (1, 1, 0.5)):
        m = b.thm5_width(L, dx, 1, theta)
        assert (
            b.thm5_log_failure(m + 1, L, dx, 1, theta)
            < 0
            < b.thm5_log_failure(m - 2, L, dx, 1, theta)
        )
    np.testing.assert_allclose(
        b.lemma5_norm(np.array([4, 8, 16]), 0.5), [12.58, 17.79, 25.16], rtol=1e-3
    )
    assert b.lemma5_norm(4, 0.5, "lemma7") / b.lemma5_norm(4, 0.5) == pytest.approx(4 / 12**0.5)


@pytest.mark.parametrize("cosine", [-1.0, -0.3, 0.0, 0.1, 0.8, 1.0])
def test_arc_cosine_formulas_against_simulation(cosine):
    rng = np.random.default_rng(1)
    u, w = rng.standard_normal((2, 400_000))
    v = cosine * u + np.sqrt(1 - cosine**2) * w
    assert b.gate_overlap(cosine) == pytest.approx(np.mean((u > 0) & (v > 0)), abs=4e-3)
    assert b.kappa1(cosine) == pytest.approx(
        2 * np.mean(np.maximum(u, 0) * np.maximum(v, 0)), abs=1e-2
    )


def random_depths(rng, m, depth, n):
    """Mean cosines of the activations and mean overlaps of the gates at every depth, for
    orthonormal inputs.
    """
    cosines, overlaps, off = [], [], ~np.eye(n, dtype=bool)
    z = h = np.maximum(rng.standard_normal((m, n)), 0)  # C x
    for k in range(depth + 1):
        if k:
            z = np.maximum(rng.normal(0, (2 / m) ** 0.5, (m, m)) @ z, 0)
            h = (z > 0) * (rng.normal(0, (2 / m) ** 0.5, (m, m)) @ h)
        unit = h / np.linalg.norm(h, axis=0)
        cosines.append((unit.T @ unit)[off].mean())
        overlaps.append(((z > 0).T.astype(float) @ (z > 0) / m)[off].mean())
    return cosines, overlaps


def test_covariances_are_the_mean_cosines_of_a_wide_net():
    rng, depth = np.random.default_rng(2), 6
    cosines, overlaps = np.mean([random_depths(rng, 800, depth, 24) for _ in range(6)], 0)
    np.testing.assert_allclose(cosines, b.covariances(depth, 0.0), atol=0.015)
    np.testing.assert_allclose(overlaps, b.gate_overlap(b.gate_cosines(depth, 0.0)), atol=0.01)


def test_covariances_fall_as_the_third_power_and_cross_the_geometric_rate():
    exact = b.covariances(2000, 0.0)
    assert np.log2(exact[2000] / exact[1000]) == pytest.approx(-3, abs=0.04)
    assert np.flatnonzero(exact > (5 / 6) ** np.arange(2001))[0] == 38
    first = b.gate_overlap(b.gate_cosines(5, 0.0))
    np.testing.assert_allclose(first, [0.25, 0.302, 0.332, 0.353, 0.369, 0.382], atol=1e-3)
    assert b.covariances(0, 0.4).tolist() == [float(b.kappa1(0.4))]
    assert (b.covariances(3, 1.0) == 1).all()


def test_relu_mean_against_simulation():
    z, m = np.array([1.0, -2, 3, 0.5]), 4
    draws = np.random.default_rng(3).normal(0, (2 / m) ** 0.5, (300_000, m))
    assert b.relu_mean(np.linalg.norm(z), m) == pytest.approx(
        np.maximum(draws @ z, 0).mean(), rel=0.01
    )
