"""What counts as agreement, the orders, and the statements of Noy et al. and Guo et al. against other ways to them."""

import inspect
import math

import numpy as np
import pytest
import sympy
from scipy import integrate, optimize, stats

from overparam.bounds import guo2024, noy2021
from overparam.experiments import audit
from overparam.experiments.audit import guo, noy, powers, statements

NOY = {s.compute.__name__: s for s in statements.registered(noy.__name__)}
GUO = {s.compute.__name__: s for s in statements.registered(guo.__name__)}


def value(module, name):
    return (NOY if module is noy else GUO)[name].compute()


def made(printed, compute=lambda: 0.0):
    return statements.Statement("here", "what", printed, compute)


@pytest.mark.parametrize(
    ("printed", "computed", "agrees"),
    [
        ("0.75", 0.7549, True), ("0.75", 0.7551, False), ("0.75", 0.745, True), ("2", 2.49, True), ("2", 1.4, False),
        ("172", 172.4, True), ("-0.5", -0.5, True), ("-0.5", -0.25, False), ("1e-4", 1.4e-4, True), ("0.0", 0, True),
        ("0.75", float("nan"), False), ("holds", "holds", True), ("holds", "fails at x = 2", False),
        ("n^2 L", "n^2 L", True), ("n^2 L", "n^3 L", False),
    ],
)  # fmt: skip
def test_agreement_is_to_the_digits_printed_or_word_by_word(printed, computed, agrees):
    assert made(printed).agrees(computed) is agrees


def test_a_value_is_shown_with_two_more_digits():
    assert made("0.75").shown(0.75491) == "0.7549"
    assert made("172").shown(171.5) == "171.50"
    assert made("13122").shown(344373768.0) == "3.444e+08"
    assert made("1.0").shown(3.81e-5) == "3.81e-05"
    assert made("0.0").shown(1.0) == "1.000"
    assert made("holds").shown("fails") == "fails"


def test_words_have_no_number():
    assert made("n^2 L").number is None
    assert made("12-38").number is None
    assert made("-2.5").number == -2.5
    assert made("-2.5").half_unit == pytest.approx(0.05)


def test_a_row_takes_the_mean_over_seeds_and_their_spread():
    exact = audit._row("noy", made("2", lambda: 2.2), [0, 1])
    assert (exact.agrees, exact.spread, exact.computed) == (True, 0.0, "2.20")
    drawn = audit._row("noy", made("2.0", lambda seed: 2 + 0.02 * seed), [0, 1, 2])
    assert drawn.spread == pytest.approx(0.02)
    assert drawn.computed == "2.020"


def test_shares_and_tables_count_every_statement_once():
    rows = [audit.Row("noy", "Sec. 1", f"s{i} <= |t|", "1", "2", i < 3, 0.0) for i in range(60)]
    assert audit.shares(rows)["noy"] == (3, 60)
    assert audit.shares(rows)["guo"] == (0, 0)
    table = audit.Table(rows, "noy")
    assert table._repr_html_().count("<td>Sec. 1: s") == 57
    assert "s59 &lt;= |t|" in table._repr_html_()
    assert repr(table).count("Sec. 1: s") == 57
    assert max(map(len, repr(table).splitlines())) <= 76
    assert "<td>" not in audit.Table(rows, "guo")._repr_html_()


def test_monomials_are_read_from_values():
    x, y, z = sympy.symbols("x y z", positive=True)
    expression = 7 * x**2 * sympy.sqrt(y) / z
    assert powers.monomial(expression, "z x y") == "z^(-1) x^2 y^(1/2)"
    assert powers.monomial(expression, "x") == "x^2"
    assert powers.power(lambda v: 3 * v**-1.5, 10.0) == pytest.approx(-1.5)
    assert sympy.simplify(powers.solved(expression, z) - expression.subs(z, 1)) == 0
    with pytest.raises(ValueError, match="no product"):
        powers.monomial(x + y, "x y")


# What does not agree, with the value that is right. Nothing else disagrees.
NOY_WRONG = {
    "logarithm": "n^3 L d_x^(-1) d_y", "operations": 1.0, "ntk_ratio": -1.0,
    "inverse_ratio_corrected": 0.5, "bias_shift": "fails: 0.00", "nonnegative_gates": 1.0, "third_term": 2.0,
    "squared_covariance": 4.0, "last_denominator": 2.0, "sum_of_errors": 2.0, "binomials": "fails at L = 2, s = 2",
    "square_of_difference": 2.0, "labels_squared": 2.0, "order_of_first_term": "m^(-1) d_x L^(-1)",
    "chosen_step": 1 / (4 * 81**2), "sgemm_inputs": 14, "transform_width": "fails at m = 1.5e+04", "gradient_norm": 2.0,
    "failure_of_19": "fails at L = 2",
    "failure_of_theorem_5": "fails at L = 1, theta = 0.001", "gamma_width": -0.25, "gamma_variation": 1.0,
    "cosine_decay": "fails: the ratio grows to 8.9e+10", "backward_decay": "fails: the ratio grows to 3.5e+15",
    "depth_needed": "n^0.37", "gaussian_tail": -0.25, "chi_square_tail": "fails at m = 30",
    "sum_of_contractions": 4.5, "cosine_of_inputs": 1 / math.pi, "overlap_in_layers": "fails at k = 3",
    "overlap_sum": "fails: 0.393", "overlap_remainder": "fails at delta = 1e-06",
    "overlap_tail": "fails at delta = 0.01", "overlap_probability": "fails at delta = 0.01",
    "chi_square_upper": "fails at m = 1e+04", "lemma_5_depth": 1.0,
}  # fmt: skip
GUO_WRONG = {
    "initial_loss": 1.0, "training_term": -1.0, "width_needed": 8.0, "most_training": "fails: 88.5 to 89.1 %",
    "least_testing": "fails: 3.2 to 3.3 %", "order_of_minimum": "fails at tau = 0.1, kappa = 0.64",
    "first_minimum_at_T": -5 / 6, "second_minimum_at_T": -1.0,
    "logarithm_of_chi_square": "fails at m = 1e+03, K = 400", "dual_kernel": "fails at cosine = -1, theta = 0.01",
    "difference_of_vectors": 2.0, "squared_cosine": "fails at cosine = -1, delta_l = 0.01",
    "gaussian_tail": "fails at x = 0.7", "split_norm": -0.5, "hoeffding": -2.0, "perturbed_gradients": 1.0,
    "semismooth_first": 3.0, "semismooth_second": 2.5, "output_tail": 0.5, "output_norms": 0.5, "steps_of_sgd": -1.0,
    "sum_of_rates": -1.0, "direct_bound": 1.0, "special_first_minimum": 0.5, "convex_rate": 1.0,
    "central_limit": "fails at n = 101", "projection": -1.0, "sum_of_squares": -3.0, "left_in_special": 0.5,
    "special_width": -1.0, "transformer_data": "MNIST",
}  # fmt: skip


@pytest.mark.parametrize(("found", "wrong"), [(NOY, NOY_WRONG), (GUO, GUO_WRONG)])
def test_what_disagrees_is_what_is_listed_with_its_right_value(found, wrong):
    exact = {name: s for name, s in found.items() if "seed" not in inspect.signature(s.compute).parameters}
    values = {name: s.compute() for name, s in exact.items()}
    assert {name for name, s in exact.items() if not s.agrees(values[name])} == set(wrong)
    for name, right in wrong.items():
        assert values[name] == (right if isinstance(right, str) else pytest.approx(right, abs=0.01, rel=1e-6)), name


def test_every_statement_has_a_place_and_names_are_unique():
    for module, found in ((noy, NOY), (guo, GUO)):
        registered = statements.registered(module.__name__)
        assert len(found) == len(registered)
        assert all(s.place and s.says and s.printed for s in registered)
        assert len({(s.place, s.says) for s in registered}) == len(registered)


# Noy et al., by other routes.


def test_parameters_by_integer_arithmetic():
    width = 1281167**8 * 1001**12
    assert len(str(width**2 * 1001)) - 1 == value(noy, "parameters")
    ours = 1281167**2 * 1001
    assert width // ours == 1281167**6 * 1001**11


def test_step_size_and_width_by_numbers():
    n, L, dx, dy = 50.0, 7.0, 20.0, 3.0
    m = noy2021.width_noy2021(n, L, dy)
    assert noy2021.step_noy2021(n, L, dx, dy) == pytest.approx(noy2021.step_at_width(m, L, dx, dy))
    loss0 = m * n / dx
    assert math.sqrt(loss0 * dx * dy * L) / m == pytest.approx(1 / math.sqrt(n))
    assert 1 / noy2021.ntk_ratio(n, m, L, dx, dy) == pytest.approx(n**4.5 / dx * math.sqrt(dy * L))


def test_eigenvalue_ratio_and_cost_against_the_bounds():
    assert noy2021.beta_x(77.0, 5) / noy2021.alpha_x(77.0, 5) == pytest.approx(value(noy, "ratio_of_eigenvalues"))
    assert value(noy, "flops_inference") == pytest.approx(1 / (0.5 + 1 / math.sqrt(4096)))


def test_laurent_massart_constant_against_the_exact_tail():
    k = np.array([2.0, 10.0, 100.0, 1000.0])
    factor = value(noy, "laurent_massart") / 2  # of the mean 2m
    assert np.all(stats.chi2.logsf(factor * k, k) <= math.log(2) - k / 4)


def test_chi_square_tails_against_their_rate_functions():
    """Cramér: -log P / m tends to (ε - ln(1 + ε))/4 above and (-ε - ln(1 - ε))/4 below, either side of ε²/8."""
    m, e = 5e4, 0.25
    above, below = -stats.chi2.logsf((1 + e) * m / 2, m / 2) / m, -stats.chi2.logcdf((1 - e) * m / 2, m / 2) / m
    assert above == pytest.approx((e - math.log1p(e)) / 4, rel=0.05)
    assert below == pytest.approx((-e - math.log1p(-e)) / 4, rel=0.05)
    assert above < e**2 / 8 < below
    assert e**2 / 8 - (e - math.log1p(e)) / 4 == pytest.approx(e**3 / 12, rel=0.2)


def test_relations_on_theta_at_their_worst_ends():
    assert (3 * math.exp(0.5) + 1) / 2 == pytest.approx(2.973, abs=1e-3)  # eq. (43), below 4
    assert math.exp(-0.5) * (1 - (1 / 9) / (1 - math.exp(-0.75) / 27)) > 0.5  # Theorem 5
    assert math.exp(0.25) / (1 - math.exp(-0.75) / 27) < 1.5
    assert 9 * math.sqrt(3) / 4 < 4  # Lemma 7
    assert 27 / 4 * (9 / 8) < 8  # Theorem 6
    assert math.exp(-1) <= 0.5  # eq. (55) at L = 1, θ = 1/2


def test_geometric_series_by_summing():
    L, xi = 6, 0.01
    total = 19 * math.sqrt(L) * sum((19 * L**1.5 * xi) ** s for s in range(1, L + 1) if 19 * L**1.5 * xi < 1)
    assert total <= (19 * L) ** 2 * xi / abs(1 - 19 * L**1.5 * xi)


def test_gates_of_two_inputs_by_the_normal_distribution():
    for cosine in (-1 / 3, 0.0, 1 / 3):
        both = stats.multivariate_normal([0, 0], [[1, cosine], [cosine, 1]]).cdf([0, 0])
        assert both == pytest.approx(noy2021.gate_overlap(cosine), abs=1e-6)
        assert both <= 1 / 3


def test_covering_and_lemma_5_by_their_numbers():
    theta, L, eps = 0.4, 9.0, 1 / 3
    r = 48 * L**2 / (theta**2 * eps)
    assert -(theta**2) / (8 * L**2) + 3 / (r * eps) == pytest.approx(-value(noy, "covering") * theta**2 / L**2)
    norm = math.sqrt(r) * math.sqrt(math.exp(theta) / (1 - 2 * eps))
    assert norm == pytest.approx(12 * math.sqrt(3) * L * math.exp(theta / 2) / theta)
    assert norm > 6 * noy2021.lemma5_norm(L, theta)


def test_decrease_of_the_loss_at_the_printed_step():
    """With the constants of Theorem 5: 3/4 as printed before (35), nothing with the square that Lemma 2 lacks."""
    m, dx, L = 40000, 200, 4
    alpha2, beta2, beta_x = noy2021.alpha2(m, dx), noy2021.beta2(m, dx), noy2021.beta_x(m, dx)
    terms = noy2021.eta_lemma3(alpha2, beta2, beta_x, 100, L, 1e-9, 0.25)
    assert terms.eta == pytest.approx(terms.gradient * value(noy, "chosen_step"), rel=1e-9)
    for third, left in ((beta2 * beta_x, 0.75), (beta2**2, 0.0)):
        assert 1 - terms.eta * L * (3 * third + 0.75 * alpha2**2 + beta2**2) / alpha2 == pytest.approx(left, abs=1e-4)


def test_last_term_with_and_without_the_square_of_its_denominator():
    """At η of (18)'s sixth term: ηα²/8 of the loss over the denominator, which (18) keeps above 1/2."""
    alpha2, beta2, n, loss0, theta, L = 1.0, 81.0**2, 50, 7.0, 0.3, 3.0
    terms = noy2021.eta_lemma3(alpha2, beta2, 1.0, n, L, loss0, theta)
    root = 1 / (2 * terms.series)
    assert root == pytest.approx(2 * math.sqrt(2 * L / theta) * math.exp(theta / 2) * math.sqrt(beta2 * loss0))
    eta = terms.higher_order
    assert 128 * n * eta * math.exp(2 * theta) / theta**2 * beta2 * loss0 == pytest.approx(alpha2 / 8)
    assert 1 / 8 / (1 - terms.series * root) ** 2 == pytest.approx(1 / 2)  # at most L/4 from L = 2 on


def test_mean_after_a_relu_is_kept_by_the_next_layer():
    rng = np.random.default_rng(0)
    z = np.maximum(rng.normal(size=2000), 0)
    after = np.maximum(rng.normal(0, math.sqrt(2 / 2000), (2000, 2000)) @ z, 0)
    assert after.mean() == pytest.approx(z.mean(), rel=0.05)


def test_decay_of_cosines_is_cubic():
    """Below 122 k^-3 in the limit, as errata/noy2021.md has it; above ((L - k)/L)^3."""
    assert float(value(noy, "cosine_decay").split()[-1]) == pytest.approx(122 / 200**3 * 1.2**200, rel=0.2)
    assert float(value(noy, "backward_decay").split()[-1]) == pytest.approx(0.8**3 * 1.2**200, rel=0.05)


def test_gates_that_a_projection_flips_by_monte_carlo():
    """Lemma 4's proof at δ = 0.1, θ = 0: σ_1 = δ, σ_2 = √(1 - δ²); and the tail, which keeps its bound."""
    delta, rng = 0.1, np.random.default_rng(0)
    own, rest = delta * rng.normal(size=10**6), math.sqrt(1 - delta**2) * rng.normal(size=10**6)
    flipped = np.mean(np.abs(rest) < np.abs(own))
    assert flipped == pytest.approx(2 / math.pi * math.asin(delta), abs=1e-3)
    assert flipped > 5 * 3 * delta**0.25 * math.exp(-1 / (2 * delta))
    deltas = np.linspace(0.001, 1 / 3, 1000)
    r = ((1 - deltas**2) / deltas**2) ** 0.25
    assert np.all(math.log(2) + stats.norm.logsf(r) <= -1 / (2 * deltas))


def test_sum_of_contractions_by_its_parts():
    parts = np.cumsum((2 * (1 + 1 / 6) / 3) ** np.arange(200))
    assert np.argmax(parts > 4) + 1 == 9
    assert parts[-1] == pytest.approx(value(noy, "sum_of_contractions"))
    assert pytest.approx(4) == 1 / (1 - 2 * (1 + 1 / 8) / 3)


def test_products_of_the_bounds_of_theorem_6_at_the_last_layer():
    last = [noy._bound(20, m, 0.0) for m in (1e40, 1e44)]
    assert last[0] / last[1] == pytest.approx(10)
    assert noy._bound(10, 1e40, 0.0, depth=2000) == pytest.approx(1e-10 * (1e-10 + (5 / 6) ** 1989), rel=1e-3)


# Guo et al., by other routes.


def test_corollary_by_optimisation():
    best = optimize.minimize_scalar(lambda a: -guo2024.c_alpha(a), bounds=(-50, 0.99), method="bounded")
    assert best.x == pytest.approx(-1, abs=1e-3)


def test_percentages_in_whole_thousandths():
    assert pytest.approx(0.888, abs=5e-4) == 1 - 22 / 197
    assert 1 - 18 / 24 == 0.25
    assert pytest.approx(0.0328, abs=5e-5) == 1 - 2362 / 2442
    assert pytest.approx(0.1538, abs=5e-5) == 1 - 143 / 169
    assert guo._reduction(guo.TEST, "CIFAR-10")[0] < 15.4 < guo._reduction(guo.TEST, "CIFAR-10")[1]


def test_orders_against_the_bounds():
    n, L, d, delta, m = 1e3, 20.0, 2.0, 0.1, 1e200
    slope = lambda f, x: math.log(f(2 * x) / f(x), 2)  # noqa: E731
    assert slope(lambda n: guo2024.burnin_sgd(0.0, n, L, 10, delta, m), n) == pytest.approx(5)
    assert slope(lambda L: guo2024.burnin_sgd(0.0, n, L, 10, delta, m), L) == pytest.approx(2)
    radius, m0 = lambda n: guo2024.omega_gradient(n, L, m, delta), 1e6
    reached = lambda n: guo2024.omega_universal(n, d, delta, m0, n) ** 2 * m0 / radius(n) ** 2  # noqa: E731
    assert slope(reached, n) == pytest.approx(5)
    terms = [guo2024.gen_gd(t, -1.0, n, L, 1, delta, m, 1e-210, 0.1, C1=1e300, terms=True)[1] for t in (1.0, 8.0)]
    assert terms[1] / terms[0] == pytest.approx(16)
    special = (1 - guo2024.gamma_special(0.0, 1e-9, 1e4, d)) / (1 - guo2024.gamma_gd(0.0, 1e-9, delta, 1e4, n, d))
    assert special == pytest.approx(n / (delta * d), rel=1e-4)
    assert slope(lambda L: 1 - guo2024.gamma_convex(0.0, 1.0, delta, 1e-6, 1e4, 50, 2, L), L) == pytest.approx(-1)


@pytest.mark.parametrize(
    ("power", "radius", "found", "printed"),
    [
        (10, lambda n, m: guo2024.omega_universal(n, 1, 0.3, m, n), (-1 / 3, 1 / 2), (1 / 2, 1 / 2)),  # (7)
        (13, lambda n, m: n**2.5 / math.sqrt(m), (7 / 6, 2), (2, 2)),  # (134), by the end of Lemma B.10's proof
    ],
)
def test_powers_of_n_in_the_bound_on_the_risk_are_bounds_at_its_own_width(power, radius, found, printed):
    """Second and third term of Lemma 4.3 at (111) with (108), which Appendix B.9 uses beside the radius."""
    terms, only = [], ((1, 1e-99), (1e-99, 1))
    for n in (1e3, 2e3):
        m = n**power
        parts = [guo2024.gen_lemma43(0, radius(n, m), -1, n, 5, m, 1, C1=a, C2=b, C3=1e-99) for a, b in only]
        terms.append([parts[0] / math.log(m), parts[1] / math.sqrt(math.log(m))])
    powers_of_n = np.log2(np.divide(terms[1], terms[0]))
    assert np.allclose(powers_of_n, found)
    assert np.all(powers_of_n <= np.array(printed) + 1e-9)


def test_stopping_early_pays_once_the_training_term_has_its_factor():
    """(7) at t = (nL)^(1/2) and at T, as it is printed and with (1/n) L(W)."""
    n, L, delta = 1e6, 4, 0.1
    m = guo2024.width_gen_gd(n, L, 1, delta, 0.01)
    eta, T = guo2024.eta_max_gd(n, L, m, 1), (n * L) ** 2 / delta * math.log(n / 1e-3)
    early, late = (
        np.array(guo2024.gen_gd(t, 0.0, n, L, 1, delta, m, eta, 0.01, terms=True)) for t in ((n * L) ** 0.5, T)
    )
    assert early.sum() > late.sum()
    share = np.array([1 / n, 1, 1, 1])
    assert early @ share < late @ share
    assert early[0] / n < math.log(m)  # Appendix A has O(ln m)


def test_order_of_the_minimum_fails_beyond_the_exponent_of_n_alone():
    n, L = 1e12, 1e6
    for tau, k, ok in ((0.1, 0.59, True), (0.1, 0.8, False), (0.3, 0.9, False), (0.5, 1.0, True), (1.0, 1.0, True)):
        least = min((n * L) ** k, n ** (0.5 + tau) * L ** (2 + tau))
        assert (least <= 2 * n ** min(k, 0.5 + tau) * L ** min(k, 2 + tau)) is ok


def test_least_sign_changes_by_minimisation():
    m, g = 1e4, np.array([0.01, 0.08])
    best = [optimize.minimize_scalar(lambda x, v=v: np.exp(x) * m**1.5 + 4 * v**2 / np.exp(2 * x)).fun for v in g]
    assert math.log(best[1] / best[0], 8) == pytest.approx(2 / 3, abs=1e-3)


def test_mean_logarithm_of_chi_square_by_quadrature():
    K, m = 40, 100

    def density(x):
        return math.log(2 * x / m) * stats.chi2.pdf(x, K)

    mean = integrate.quad(density, 0, 400, limit=200)[0]
    assert mean < math.log(0.8)  # far below -4/m: the statement needs the mean over K
    pmf = stats.binom.pmf(np.arange(m + 1), m, 0.5)
    assert pmf[40:61].sum() > 0.95
    assert value(guo, "mean_logarithm") == "holds"


def test_tails_against_simulation_free_facts():
    x = 3.0
    assert 2 * stats.norm.sf(x) > math.exp(-(x**2) / 2) / (math.sqrt(2 * math.pi) * x)  # eq. (54): one side alone
    assert stats.norm.sf(x) < math.exp(-(x**2) / 2) / (math.sqrt(2 * math.pi) * x)
    assert stats.binom.sf(5000 + 100, 10000, 0.5) == pytest.approx(stats.norm.sf(2.01), abs=1e-4)  # eq. (155)


def test_radius_that_absorbs_the_cross_term():
    """At ω = δ^1.5/(n^3 L^6) the factor of (15) is free of n and L; at that of Lemma 4.2 it is not."""
    for n, L in ((10.0, 3.0), (100.0, 9.0)):
        assert (0.2**1.5 / (n**3 * L**6)) ** (1 / 3) * n * L**2 / math.sqrt(0.2) == pytest.approx(1)
        assert (0.2**1.5 / (n**1.5 * L**7.5)) ** (1 / 3) * n * L**2 / math.sqrt(0.2) == pytest.approx(math.sqrt(n / L))
    assert value(guo, "width_needed") == 2 + 2 * 3  # n² of (111) with (108), over ω²


def test_separation_of_random_points_by_counting_pairs():
    """Distances of unit vectors in R^5 below s: I_{sin²(θ)}(2, 1/2)/2 of all pairs, a dozen at twice the mean found."""
    found = GUO["separation"].compute(1)
    angle = 2 * math.asin(0.21 / 2)
    expected = 1000 * 999 / 2 * stats.beta.cdf(math.sin(angle) ** 2, 2, 0.5) / 2
    assert expected > 100  # pairs closer than the text's δ
    angle = 2 * math.asin(found / 2)
    assert 1000 * 999 / 2 * stats.beta.cdf(math.sin(angle) ** 2, 2, 0.5) / 2 == pytest.approx(0.68, abs=0.1)
    assert abs(GUO["separation"].compute(2) - found) < 0.02 * 0.21
