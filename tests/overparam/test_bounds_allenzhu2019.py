"""The formulas of Allen-Zhu et al.

2019 against mpmath, quadrature, simulation, the proofs' steps and each other.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad

from overparam.bounds import allenzhu2019 as az
from overparam.errors import ParameterError


def log10_fixed_point(a):
    """log₁₀ of the larger m with m = a log⁵m, by iteration from above."""
    m = a * 10**30
    for _ in range(300):
        m = a * mp.log(m) ** 5
    return mp.log10(m)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: az.omega_range(900, 2, 1, form="proved"), "printed or corrected"),
        (lambda: az.thm6_iters("smooth", 10, 2, 0.1), "kind must be one of pl"),
        (lambda: az.thm2_lr(10, 2, 0.1, 900, 1, 11), "b must be at most n"),
        (lambda: az.backward_sparse_limit(901, 900), "s must be at most m"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def chain(m, layers, trials, seed):
    """log ‖h‖² after each of the layers, as Fact 7.2 draws it, (layers, trials)."""
    rng = np.random.default_rng(seed)
    on = rng.binomial(m, 0.5, (layers, trials))
    return np.cumsum(np.log(2 / m * rng.chisquare(on)), axis=0)


@pytest.mark.parametrize("m", [64, 300])
def test_a_layers_log_norm(m):
    mean, var = az.log_ratio_moments(m)
    x = chain(m, 1, 400_000, 0)[0]
    assert x.mean() == pytest.approx(mean, abs=5 * math.sqrt(var / x.size))
    assert x.var() == pytest.approx(var, rel=5 * math.sqrt(2 / x.size))
    assert -4 <= m * mean <= 0  # (7.1)


def test_backward_sparse_limit_is_the_norm_of_the_largest_entries():
    m = 300_000
    squares = np.sort(np.random.default_rng(0).normal(size=m) ** 2)[::-1]
    s = np.array([300, 3_000, 100_000, m])
    assert az.backward_sparse_limit(s, m) == pytest.approx(
        np.sqrt(np.cumsum(squares)[s - 1]), rel=0.01
    )
    assert az.backward_sparse_limit([0, m], m) == pytest.approx([0, math.sqrt(m)])


def arc_cosine(delta, steps):
    """√(1 − ρ²) after the steps of the recursion of ρ = cos θ, at 50 digits."""
    with mp.workdps(50):
        rho = 1 - mp.mpf(delta) ** 2 / 2
        for _ in range(steps):
            rho = (mp.sqrt(1 - rho**2) + rho * (mp.pi - mp.acos(rho))) / mp.pi
        return float(mp.sqrt(1 - rho**2))


@pytest.mark.parametrize("delta", [1e-4, 0.05, 0.5, 1.4, 1.99])
def test_separation_limit_is_the_arc_cosine_recursion(delta):
    l = np.array([[-1, 0, 1], [7, 31, 60]])
    expected = [[arc_cosine(delta, layer + 1) for layer in row] for row in l]
    assert az.separation_limit(delta, l) == pytest.approx(np.array(expected), rel=1e-9)


def gap(alpha, delta, left_out):
    """(2/π) ∫ (φ(cos u) − φ(α cos u + δ sin u))² du, over the directions that the paper's integrals
    keep, or all.
    """
    zeros = [
        np.pi / 2,
        3 * np.pi / 2,
        np.arctan2(-alpha, delta) % np.pi,
        np.arctan2(-alpha, delta) % np.pi + np.pi,
    ]

    def integrand(u):
        x = alpha * np.cos(u) + delta * np.sin(u)
        return 0.0 if left_out and x < 0 else (max(np.cos(u), 0) - max(x, 0)) ** 2

    return (
        2 / np.pi * quad(integrand, 0, 2 * np.pi, points=sorted(zeros), epsabs=1e-13, limit=200)[0]
    )


@pytest.mark.parametrize("alpha", [-2.0, -0.3, 0.0, 0.4, 1.0, 1.1, 3.0])
@pytest.mark.parametrize("delta", [0.02, 1 / 6, 0.9])
def test_claim76_by_quadrature(alpha, delta):
    assert az.claim76_expectation(alpha, delta, "corrected") == pytest.approx(
        gap(alpha, delta, False), abs=1e-11
    )
    assert az.claim76_expectation(alpha, delta) == pytest.approx(gap(alpha, delta, True), abs=1e-11)


def test_the_gradient_at_initialization_is_within_lemma_93():
    rng, m, n, delta = np.random.default_rng(5), 2000, 6, 0.2
    angle = 2 * math.asin(delta / 2) * np.arange(n)  # neighbours at distance δ
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    h = np.maximum(x @ rng.normal(0, math.sqrt(2 / m), (2, m)), 0)
    on = h @ rng.normal(0, math.sqrt(2 / m), (m, m)) >= 0
    H = (on * rng.normal(size=m) ** 2) @ on.T * (h @ h.T)
    assert 1 / np.linalg.inv(H).diagonal().max() >= az.lem93_lower(1, m, 1, n, delta)
    assert np.linalg.eigvalsh(H)[-1] <= az.grad_upper(1, m, 1, n)


def layer(m, d, seed):
    """Pre-activations of a layer with a unit input, and one row of B."""
    rng = np.random.default_rng(seed)
    return rng.normal(0, math.sqrt(2 / m), m), rng.normal(0, math.sqrt(1 / d), m)


def cheapest(cost, order, budget):
    """Which neurons can change, in the order given, until their cost reaches the budget."""
    order = np.argsort(order)
    return order[: np.searchsorted(np.cumsum(cost[order]), budget)]


@pytest.mark.parametrize("omega", [0.003, 0.02])
def test_one_layer_limits_on_a_drawn_layer(omega):
    m, d = 400_000, 3
    g, B = layer(m, d, 6)
    total = np.sum(B[g >= 0] ** 2)
    flips = cheapest(g**2, g**2, omega**2)
    assert len(flips) == pytest.approx(az.sign_changes_onelayer(m, omega), rel=0.03)
    flips = cheapest(g**2, np.abs(g / B), omega**2)
    assert math.sqrt(np.sum(B[flips] ** 2) / total) == pytest.approx(
        az.thm5a_onelayer(omega), rel=0.02
    )
    off = np.flatnonzero(g < 0)
    flips = off[cheapest(g[off] ** 2, np.abs(g[off] / B[off]), omega**2)]
    assert np.sum(B[flips] ** 2) / total == pytest.approx(az.thm5c_onelayer(omega), rel=0.03)


@pytest.mark.parametrize("omega", [0.003, 0.02])
def test_largest_linearisation_error_of_a_drawn_layer(omega):
    m, d = 200_000, 3
    g, B = layer(m, d, 7)

    def move(t):
        return np.where((B > 0) & (np.abs(g) < t * B / 2), -np.where(g >= 0, 1, -1) * t * B, 0)

    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if np.linalg.norm(move(middle)) < omega else (low, middle)
    v = move(low)
    error = B @ (np.maximum(g + v, 0) - np.maximum(g, 0) - (g >= 0) * v)
    assert error == pytest.approx(az.thm5b_onelayer(omega, m, d), rel=0.02)


def test_sign_changes_of_a_random_layer():
    m, omega, rng = 400_000, 0.4, np.random.default_rng(8)
    g, change = rng.normal(0, math.sqrt(2 / m), m), rng.normal(0, omega / 2 / math.sqrt(m), m)
    assert np.sum((g >= 0) != (g + change >= 0)) == pytest.approx(
        az.sign_changes_random(m, omega), rel=0.02
    )
    W = rng.normal(0, omega / 2 / math.sqrt(400), (400, 400))
    assert np.linalg.norm(W, 2) == pytest.approx(omega, rel=0.03)


def test_prop113():
    rng = np.random.default_rng(9)
    a, b = rng.normal(size=(2, 3, 50))
    a[0, :3], b[0, :3] = [0, 0, -1], [-1, 1, 0]
    pattern, diagonal = (a >= 0).astype(float), az.prop113_diagonal(a, b)
    np.testing.assert_allclose(
        (pattern + diagonal) * (a - b), np.maximum(a, 0) - np.maximum(b, 0), rtol=0, atol=1e-15
    )
    assert np.all((np.abs(diagonal) <= 1) & (np.abs(pattern + diagonal) <= 1))
    assert not np.any(diagonal[(a >= 0) == (b >= 0)])
    assert np.count_nonzero(diagonal) > 50


def test_theorem_1_at_the_papers_width():
    n, L, delta, d = np.array([[10, 3, 0.5, 1], [1000, 20, 0.05, 10]]).T
    m = 10 ** az.thm1_log10_width(n, L, delta, d)
    assert m == pytest.approx([1.2e42, 1.2e111], rel=0.05)
    assert m == pytest.approx(n**24 * L**12 * d * np.log(m) ** 5 / delta**8, rel=1e-10)
    assert az.thm1_movement(n, delta, m, d) == pytest.approx(
        az.thm1_radius(n, L, delta, m), rel=1e-9
    )
    assert np.all(az.thm1_movement(n, delta, m, d) < az.thm3_radius(n, L, delta, m))
    eta = az.thm1_lr(n, L, delta, m, d)
    rate = az.thm1_rate(eta, delta, m, n, d)
    assert rate == pytest.approx(delta**2 / (n**6 * L**2), rel=1e-12)
    # (12.2): with ω at its limit both errors are as large as the decrease
    omega = az.thm1_radius(n, L, delta, m)
    step = eta * np.sqrt(az.grad_upper(1, m, d, n))
    for error in az.semismooth_terms(1, step, n, L, m, d, omega):
        assert error == pytest.approx(rate, rel=1e-9)
    assert az.thm1_iters(n, L, delta, 1e-6)[0] == pytest.approx(4.97e8, rel=1e-3)
    remaining = n * np.log(m) * np.exp(-rate * az.thm1_iters(n, L, delta, 1e-6, m))
    assert remaining == pytest.approx([1e-6, 1e-6], rel=1e-9)


def test_theorem_1_movement_is_the_sum_of_its_steps():
    # Σ_t η √(nm/d) √F_t with F_t = (1 − rate)^t n log²m is twice the bound
    n, L, delta, m, d = 2, 1, 0.9, 500, 3
    eta = az.thm1_lr(n, L, delta, m, d)
    rate = az.thm1_rate(eta, delta, m, n, d)
    F = n * math.log(m) ** 2 * (1 - rate) ** np.arange(4000)
    moved = np.sum(eta * np.sqrt(az.grad_upper(F, m, d, n)))
    assert moved / az.thm1_movement(n, delta, m, d) == pytest.approx(2, rel=0.01)


def test_theorem_2s_step_size_makes_the_martingale_small():
    n, L, delta, m, d, b = 60, 5, 0.1, 1e9, 3, 7
    eta = az.thm2_lr(n, L, delta, m, d, b)
    rate = az.thm1_rate(eta, delta, m, n, d)
    # step ②: (growth log m)²/rate is the additive O(1)
    printed, own = (az.thm2_growth(eta, L, m, n, d, b, form) for form in ("printed", "corrected"))
    assert (own * math.log(m)) ** 2 / rate == pytest.approx(1, rel=1e-10)
    assert printed / own == pytest.approx(math.sqrt(d), rel=1e-12)
    # the first line of (13.3), ‖∇_t‖_F² ≤ (n²/b)(LmF/d)
    batch = n**2 / b * az.grad_upper(1, m, d, 1, L)
    assert own == pytest.approx(eta * math.sqrt(az.grad_upper(1, m, d, n, L) * batch), rel=1e-12)
    # (13.1): T₀ = 1/rate steps of size η √(n²m/(bd)) √(n log²m)
    moved = eta * math.sqrt(n**2 / b * az.grad_upper(n * math.log(m) ** 2, m, d)) / rate
    assert moved == pytest.approx(az.thm2_movement(n, delta, m, d, b), rel=1e-10)


def test_the_width_starts_at_e_to_the_5():
    least = math.exp(5) / 5**5
    assert 10 ** az.thm1_log10_width(1, 1, 1, 1, C=least * (1 + 1e-6)) == pytest.approx(
        math.exp(5), rel=0.01
    )
    with pytest.raises(ParameterError, match="no smallest solution"):
        az.thm1_log10_width(1, 1, 1, 1, C=least * (1 - 1e-6))


def test_widths_beyond_double_precision():
    log10 = az.thm1_log10_width(1e15, 1e3, 1e-8, 10)
    with mp.workdps(40):
        exact = log10_fixed_point(mp.mpf(10) ** (24 * 15 + 12 * 3 + 1 + 8 * 8))
    assert log10 == pytest.approx(float(exact), rel=1e-13)
    assert az.thm2_log10_width(1e15, 1e3, 1e-8, 10, 1, "corrected") == pytest.approx(
        log10 + 15, abs=0.1
    )


def steps_until(eps, decrease):
    """The steps E ← E − decrease(E) from 1 to below ε."""
    E, t = 1.0, 0
    while eps < E:
        E, t = E - decrease(E), t + 1
    return t


def test_theorem_6_counts_the_steps_of_its_recursions():
    n, L, delta, eps, sigma, D = 2, 1, 1.0, 2e-3, 0.3, 1.5
    rate = az.thm1_rate(az.thm1_lr(n, L, delta, 500, 3), delta, 500, n, 3)
    pl = steps_until(eps, lambda E: rate * sigma * E)
    assert az.thm6_iters("pl", n, L, delta, eps, sigma) == pytest.approx(pl, rel=0.01)
    convex = steps_until(eps, lambda E: rate / (n * D**2) * E**2)
    assert az.thm6_iters("convex", n, L, delta, eps, D=D) == pytest.approx(convex, rel=0.01)
    # from F ≤ n, every step with ‖loss‖ > ε costs rate ε²
    nonconvex = n * steps_until(1 / 20, lambda E: rate * 0.05**2)
    assert az.thm6_iters("nonconvex", n, L, delta, 0.05, form="corrected") == pytest.approx(
        nonconvex / 0.95, rel=0.01
    )
    assert az.thm6_iters("nonconvex", n, L, delta, 0.05, form="corrected") == n * az.thm6_iters(
        "nonconvex", n, L, delta, 0.05
    )


def ring(h, positions, q):
    """The neighbourhoods' parts of h, (positions, q·channels)."""
    blocks = h.reshape(positions, -1)
    return np.stack([np.roll(blocks, -j, axis=0)[:q].reshape(-1) for j in range(positions)])


def test_norms_of_the_locally_connected_net():
    positions, q, m, rng = 9, 3, 4000, np.random.default_rng(10)
    x = rng.normal(size=positions)
    x /= np.linalg.norm(x)

    def next_layer(parts, variance):
        # Rows of the weights are independent: given h, a position's pre-activations are N(0,
        # variance ‖h_Q‖²).
        sizes = np.sqrt(variance * (parts**2).sum(1, keepdims=True))
        return np.maximum(sizes * rng.normal(size=(positions, m)), 0)

    start, last = az.cnn_gains(m, q, positions)
    assert np.sum(next_layer(ring(x, positions, q), 2 / math.sqrt(q * m)) ** 2) == pytest.approx(
        start, rel=0.05
    )
    h = next_layer(ring(x, positions, q), 2 / (q * m))
    assert np.sum(h**2) == pytest.approx(1, rel=0.05)
    out = np.maximum(rng.normal(0, math.sqrt(2 / (q * m)) * np.linalg.norm(h), positions * m), 0)
    assert np.sum(out**2) / np.sum(h**2) == pytest.approx(last, rel=0.05)
    assert last == 3
    tau, begin = 1.0, np.sum(h**2)
    for _ in range(4):
        drive = np.concatenate([ring(h, positions, q), np.full((positions, 1), tau)], axis=1)
        h = next_layer(drive, 2 / (q * m))
    assert np.sum(h**2) == pytest.approx(az.cnn_norm_sq(begin, tau, positions, q, 4), rel=0.05)


def test_residual_nets():
    rng, m, L = np.random.default_rng(11), 300, 12
    tau = az.resnet_tau(L, m, c=0.5)
    W = rng.normal(0, math.sqrt(2 / m), (L, m, m))
    product, h = np.eye(m), np.maximum(rng.normal(0, math.sqrt(2 / m), m), 0)
    for l in range(L):
        g = h + tau * W[l] @ h
        product = ((g >= 0)[:, None] * (np.eye(m) + tau * W[l])) @ product
        h = np.maximum(g, 0)
    assert np.linalg.norm(product, 2) <= az.resnet_product(tau, L)
    assert az.resnet_product(tau, L) > 1.2 > 1.01
