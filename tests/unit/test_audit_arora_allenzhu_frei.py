"""The recomputed statements of Arora et al., Allen-Zhu et al. and Frei et al. against independent routes."""

import importlib
import itertools
import math

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from scipy import stats

from overparam.experiments.audit.relations import bounded, holds, order
from overparam.experiments.audit.statements import registered

PAPERS = ("arora", "allenzhu", "frei")
n, m, d, b, k, L, K, D, q, M, eta = sp.symbols("n m d b k L K D q M eta", positive=True)
delta, lam0, kappa, eps, gamma, tau, theta, omega, beta, sigma = sp.symbols(
    "delta lam0 kappa eps gamma tau theta omega beta sigma", positive=True
)
logm, logn, x = sp.symbols("logm logn x", positive=True)

# What is recomputed where it does not agree: words, their beginning, or a number
WRONG = {
    "arora": {
        "leaving_neurons": "2 delta",
        "quadratic": 2.0,
        "cosine": "fails: the ratio grows",
    },
    "allenzhu": {
        "combined_lower_end": -6.0,
        "unmasked_product": "fails at mean = 2",
        "last_display": "fails at left = 0.485, right = 0.331",
        "large_gaussian": 0.2398,
        "easy_case": 0.009375,
        "closed_form": "fails at alpha = 0.75",
        "preactivation_norm": "fails at norm = 1.41",
        "intermediate_sum": "fails: the ratio grows",
        "range_of_omega": "fails: the ratio grows",
        "decomposition": "fails at error",
        "switched_term": 0.25,
        "missed_neurons": 0.2821,
        "large_output": 0.3173,
        "shifted_tail": "fails at mu",
        "first_order_term": "omega^(1/3) L^3 m^(1/2) logm^(1/2) d^(-1/2)",
        "all_layers": "n^3 L^(1/2) delta^(-1) m^(-1/2) d^(1/2) logm",
        "sgd_width": "n^25 L^12 b^(-1) d logm^5 delta^(-8)",
        "square_bound": "fails at t = 2",
        "nonconvex_iterations": "n^7 L^2 delta^(-2) eps^(-2)",
        "nonconvex_width": "eps^(-2)",
        "right_label": "fails at p = 0.01",
        "first_convolution": "q^(1/2) m^(1/2)",
        "last_convolution": "D q^(-1)",
        "positive_coordinates": 0.4718,
        "residual_change": "fails: the ratio grows",
    },
    "frei": {
        "steps_of_introduction": "eps^(-2)",
        "surrogate_by_error": "fails at margin",
        "surrogate_formula": "1/(1 + exp(x))",
        "dimension": "d^3 eps^4 gamma^16",
        "iterations": "gamma^(-8) logn^(1/2) eps^(-2)",
        "four_terms": "eps^2",
        "sparsity_condition": "fails at s = 1",
        "margin": "gamma/4",
        "scale": "L^(-1) gamma",
        "sparse_net": 22.0,
        "difference_of_relus": "fails at left = 1.4, right = 0.6",
    },
}


@pytest.fixture(scope="module")
def rows():
    """{paper: {function: (statement, computed)}} of all statements."""
    found = {}
    for paper in PAPERS:
        module = importlib.import_module(f"overparam.experiments.audit.{paper}")
        statements = registered(module.__name__)
        found[paper] = {s.compute.__name__: (s, s.compute()) for s in statements}
        assert len(found[paper]) == len(statements)
    return found


@pytest.mark.parametrize("paper", PAPERS)
def test_which_statements_agree_and_what_the_others_are(rows, paper):
    assert {f for f, (s, v) in rows[paper].items() if not s.agrees(v)} == set(WRONG[paper])
    for function, value in WRONG[paper].items():
        computed = rows[paper][function][1]
        if isinstance(value, str):
            assert computed == value or (value.startswith("fails") and computed.startswith(value)), function
        else:
            assert computed == pytest.approx(value, abs=2e-3), function


def test_relations():
    assert holds([True, True], x=[1, 2]) == "holds"
    assert holds(np.array([[True, False]]), x=np.array([[1]]), y=np.array([[2.0, 3.5]])) == "fails at x = 1, y = 3.5"
    assert holds(np.array([np.nan]) <= 1, x=[0]) == "fails at x = 0"
    assert bounded(2 - 1 / np.arange(1, 50)) == "holds"
    assert bounded(np.arange(1, 50)) == "fails: the ratio grows to 49"
    assert order(lambda n, delta, tau: 7 * n**2.5 / delta ** (1 / 3)) == "n^(5/2) delta^(-1/3)"
    assert order(lambda n: 3.0 + 0 * n) == "O(1)"
    with pytest.raises(ValueError, match="no power of n"):
        order(lambda n: n + n**2)


def powers(expression):
    """The factors of a product of powers as `order` writes them, constants left out, in any order."""
    factors = sp.powdenest(sp.expand_power_base(sp.simplify(expression), force=True), force=True).as_powers_dict()
    return {
        str(a) if p == 1 else f"{a}^{p}" if p.is_integer and p > 0 else f"{a}^({p})"
        for a, p in factors.items()
        if not a.is_number
    }


def root(equation, unknown):
    """The positive solution of equation = 0."""
    return sp.solve(equation, unknown)[0]


R = 4 * sp.sqrt(n) * sp.sqrt(n / delta) / (sp.sqrt(m) * lam0)  # Lemma C.1 with |y - u(0)| = sqrt(n/delta)
STEP_3 = (delta / (n**3 * L**2 * sp.sqrt(logm))) ** 3
TAU = root(gamma**-2 * logn ** sp.Rational(1, 4) / sp.sqrt(gamma**4 * tau**2 / sp.sqrt(logn) * m) - eps, tau)
RATE = eta * delta * m / (d * n**2)
SPARSE = m * omega ** sp.Rational(2, 3) * L
ORDERS = {
    "arora": {
        "initial_loss": n / delta,
        "width_of_convergence": root(n**2 * R / (kappa * delta) - lam0, m),
        "drift_of_h": n**2 * R / (kappa * delta),
        "drift_of_z": n * R / (kappa * delta),
        "first_perturbation": 2 * eta * sp.sqrt(n) / m * n * (m * R / kappa) / delta,
        "third_term": eta * n**2 * R / (kappa * delta) * sp.sqrt(n / delta),
        "outputs_in_movement": eta * sp.sqrt(n) * sp.summation(k * (1 - x) ** (k - 1), (k, 1, sp.oo)).args[0][0].subs(
            x, eta * lam0 / 4
        )
        * eta * n**sp.Rational(7, 2) / (sp.sqrt(m) * lam0 * kappa * delta**2),
    },
    "allenzhu": {
        "linear_radius": root(omega ** sp.Rational(4, 3) * sp.sqrt(m) - 1, omega),
        "separation_failure": m * delta**6 / L,
        "second_error": L * omega * L ** sp.Rational(3, 2) * sp.sqrt(SPARSE / m) * logm,
        "largest_omega": root(L**3 * omega ** sp.Rational(4, 3) * logm - L ** sp.Rational(3, 2) * omega, omega),
        "flipped_signs": m * (omega * L ** sp.Rational(3, 2)) ** sp.Rational(2, 3),
        "backward_at_radius": L * sp.sqrt(SPARSE * logm / d) * sp.sqrt(L),
        "first_order_term": L * (L * sp.sqrt(SPARSE * logm / d) * sp.sqrt(L)),
        "second_order_term": n * (L * sp.sqrt(m / d)) ** 2,
        "gradient_radius": root(n * omega ** sp.Rational(2, 3) * L**4 - delta / n**2, omega),
        "step_size": root(eta * delta * m / (d * n**2) - eta**2 * n**2 * L**2 * m**2 / d**2, eta),
        "iterations": (1 / RATE).subs(eta, d * delta / (n**4 * L**2 * m)),
        "movement": eta * sp.sqrt(n * m / d) / RATE * sp.sqrt(n) * logm,
        "all_layers": sp.sqrt(L * (eta * sp.sqrt(n * m / d) / RATE * sp.sqrt(n) * logm) ** 2),
        "width": root(n**3 * sp.sqrt(d / m) * logm / delta - STEP_3, m),
        "sgd_width": root(n ** sp.Rational(7, 2) * sp.sqrt(d / (b * m)) * logm / delta - STEP_3, m),
        "sgd_iterations": (1 / RATE).subs(eta, b * delta * d / (n**5 * L**2 * m * logm**2)),
        "completed_square": (eta * L * m * n ** sp.Rational(3, 2) / (sp.sqrt(b) * d) * logm) ** 2 / RATE,
        "beyond_linear": L * sp.sqrt(SPARSE * logm / d) * omega * L ** sp.Rational(3, 2),
        "kernel_radius": root(sp.sqrt(logm) * omega ** sp.Rational(1, 3) * L**3 - 1, omega),
        "convex_iterations": (n / (RATE * eps)).subs(eta, d * delta / (n**4 * L**2 * m)),
        "nonconvex_iterations": (n / (RATE * eps**2)).subs(eta, d * delta / (n**4 * L**2 * m)),
        "first_convolution": q * m / 2 * 2 / sp.sqrt(q * m),
        "last_convolution": D * m / 2 * 2 / (q * m),
        "bias_growth": D * tau**2 / q,
    },
    "frei": {
        "steps_of_introduction": root(1 / sp.sqrt(K * eta * m).subs(eta, 1 / m) - eps, K),
        "radius": root(tau ** sp.Rational(1, 3) * sp.sqrt(logm) - gamma**4, tau),
        "step_size": root(m**2 * eta**2 - eta * m * gamma**4, eta),
        "distance": eta * sp.sqrt(m) * sp.sqrt(k) * sp.sqrt(gamma**-4 / (eta * m) * sp.sqrt(logn)),
        "radius_of_corollary": TAU,
        "least_width": (TAU * sp.sqrt(m) / gamma**12) ** 2,
        "sparsity_term": TAU ** -sp.Rational(4, 3),
        "dimension": (d * (TAU**-sp.Rational(4, 3)).subs({m: 1, logn: 1})) ** 3,
        "iterations": root(K * gamma**4 / m - gamma**4 * TAU**2 / sp.sqrt(logn), K),
        "complexity_term": TAU ** sp.Rational(4, 3) * sp.sqrt(m),
        "width": root(eps ** -sp.Rational(4, 3) * m ** -sp.Rational(1, 6) - eps, m),
        "samples": root(TAU * sp.sqrt(m / n) - eps, n),
        "four_terms": 1 / sp.sqrt(root(TAU * sp.sqrt(m / n) - eps, n).subs({gamma: 1, logn: 1})),
        "sparse_output": sp.sqrt(m * tau ** sp.Rational(2, 3) * logm),
        "sparsity": m ** sp.Rational(3, 2) * root(m ** sp.Rational(3, 2) * beta - tau**2 / beta**2, beta),
        "radius_of_gradient": root(tau ** sp.Rational(2, 3) - gamma**2, tau),
    },
}  # fmt: skip


@pytest.mark.parametrize(("paper", "function"), [(p, f) for p in PAPERS for f in ORDERS[p]])
def test_orders_by_algebra(rows, paper, function):
    assert set(rows[paper][function][1].split()) == powers(ORDERS[paper][function])


def test_arora_exact_values():
    # quadrants of known probability, the power series of H, and the bounds by calculus
    assert (math.pi - math.acos(0.5)) / (2 * math.pi) == pytest.approx(1 / 3)
    assert sp.expand((1 - x / 4) ** 2 - (1 - x / 2)) == x**2 / 16
    series = sp.series(x / 4 + x * sp.asin(x) / (2 * sp.pi), x, 0, 9).removeO()
    for l in range(1, 5):
        factor = sp.factorial2(2 * l - 3) / sp.factorial2(2 * l - 2) / (2 * l - 1)
        assert sp.simplify(series.coeff(x, 2 * l) - factor / (2 * sp.pi)) == 0
        assert sp.factorial2(2 * l - 3) / sp.factorial2(2 * l - 2) >= sp.Rational(1, 2 * l - 1)
    taylor = sp.series(x * sp.atan(x / 2), x, 0, 11).removeO()
    assert all(
        taylor.coeff(x, 2 * j) == sp.Rational((-1) ** (j - 1), (2 * j - 1) * 2 ** (2 * j - 1)) for j in range(1, 6)
    )
    cosine = mp.nsum(lambda j: j * mp.mpf(3) ** (2 * j) / mp.factorial(2 * j), [1, mp.inf])
    assert cosine == pytest.approx(float(3 * mp.sinh(3) / 2))
    assert max(mp.sqrt(2 * mp.pi) * (p - 1) / (3 * p) for p in range(2, 400, 2)) < 1
    assert 2 < 3


def test_arora_peak_of_powers_by_brute_force():
    for rate in (0.5, 0.1, 0.003):
        steps = np.arange(1, 20_000)
        assert (steps * (1 - rate / 4) ** (steps - 1)).max() * rate < 4


def test_arora_corrections():
    # All m neurons leave together with probability delta: the sum of the m probabilities is m delta
    rng = np.random.default_rng(0)
    together = rng.random(200_000) < 0.1
    assert 2 / 8 * sum(together.mean() for _ in range(8)) == pytest.approx(2 * 0.1, abs=0.01)
    # y'H^-1 y is quadratic in A, below the square of (13), and at most 2 pi |A|_F^2
    x_unit = rng.standard_normal((6, 3))
    x_unit /= np.linalg.norm(x_unit, axis=1, keepdims=True)
    products = np.clip(x_unit @ x_unit.T, -1, 1)
    h = products * (np.pi - np.arccos(products)) / (2 * np.pi)
    labels = x_unit**2 @ np.array([1.0, -0.5, 0.3])
    energy = [v @ np.linalg.solve(h, v) for v in (labels, 2 * labels)]
    assert energy[1] == pytest.approx(4 * energy[0])
    assert energy[0] <= 36 * 1.8**2
    assert energy[0] <= 2 * math.pi * (1 + 0.5**2 + 0.3**2)
    waves = np.cos(3 * x_unit[:, 0]) - 1
    assert waves @ np.linalg.solve(h, waves) <= 9 * (3 * math.sinh(3)) ** 2


def test_allenzhu_exact_values(rows):
    found = rows["allenzhu"]
    assert found["large_gaussian"][1] == pytest.approx(float(mp.erfc(mp.mpf(1) / 2) / 2))
    assert found["large_output"][1] == pytest.approx(2 * stats.norm.sf(1))
    assert found["positive_coordinates"][1] == pytest.approx(stats.norm.sf(0.1 / math.sqrt(2)))
    assert stats.norm.sf(0.6 / math.sqrt(2)) > 1 / 4
    assert found["missed_neurons"][1] == pytest.approx(1 / math.sqrt(4 * math.pi), rel=1e-4)
    assert 1 - 1 / math.sqrt(4 * math.pi) < 3 / 4  # of N_1, after the union
    assert 1 / (0.9**2 / 4 * 0.1 * (2 / 3) / 100) < 8000  # with a quarter of the norm
    step = 2 * (stats.norm.cdf(1 / math.sqrt(2)) - stats.norm.cdf(5 / 9 / math.sqrt(2)))
    assert 0.2 <= step < 0.22
    for t, mu in itertools.product((0.1, 0.9), (0.0, 2.0)):
        tail = stats.norm.sf(t - mu) + stats.norm.cdf(-t - mu)
        assert tail >= 1 - 0.8 * t
        assert (tail <= 1 - 2 / 3 * t) == (mu == 0)
    with mp.workdps(30):
        for h in (0.01, 1, 50):
            assert mp.log(h) - 1 / mp.mpf(h) <= mp.digamma(h) <= mp.log(h) - 1 / (2 * mp.mpf(h))
    t = sp.symbols("t", real=True)
    assert sp.maximum(t * (1 - t), t, sp.Interval(0, 1)) == sp.Rational(1, 4)  # and below it on both sides of 1/2
    assert sp.solve(t * (1 - t) - sp.Rational(1, 4), t) == [sp.Rational(1, 2)]
    assert mp.exp(-mp.mpf(1) / 4) > mp.mpf(1) / 2
    assert mp.limit(lambda v: mp.mpf(1) / 4 * (1 - 1 / (10 * v)) ** v / 4, mp.inf) > mp.mpf(1) / 20


def test_allenzhu_norms_by_simulation():
    rng = np.random.default_rng(0)
    size = 1200
    w, z = rng.standard_normal((size, size)) * math.sqrt(2 / size), np.ones(size) / math.sqrt(size)
    product = w @ z
    assert np.sum(product**2) == pytest.approx(2, abs=0.3)  # of W z, and with it of a preactivation
    samples = np.log(2 / 500 * rng.chisquare(np.maximum(rng.binomial(500, 0.5, 200_000), 1)))
    assert -4 / 500 <= samples.mean() <= 0


def test_allenzhu_claim_76_by_simulation():
    g = np.random.default_rng(0).standard_normal((2, 400_000)) * math.sqrt(2)
    for alpha, floor in ((-2.0, 0.03), (0.7, 0.03), (1.3, 0.03), (0.9, 0.1**2 * 0.9)):
        mean = np.mean((np.maximum(g[0], 0) - np.maximum(alpha * g[0] + 0.1 * g[1], 0)) ** 2)
        assert mean > floor
    for alpha, left_out in ((0.75, 4.9e-4), (1.0, 2.1e-4)):  # E g_1^2 where alpha g_1 + delta g_2 < 0 < g_1
        below = lambda v, a=alpha: v**2 * mp.npdf(v, 0, mp.sqrt(2)) * mp.ncdf(-a * v, 0, mp.sqrt(2) / 10)  # noqa: E731
        assert float(mp.quad(below, [0, 1, 5])) == pytest.approx(left_out, rel=0.03)
    f = lambda v: v - v**2 - mp.log1p(v)  # noqa: E731
    assert max(f(mp.mpf(i) / 100) for i in range(-20, 21)) <= 0


def test_allenzhu_sums():
    for depth in (100, 10_000):
        first = mp.mpf(1) / (100 * mp.mpf(depth) ** 1.5)
        total = sum(mp.binomial(depth, j) * 3**j * first ** (j - 1) for j in range(1, 12))
        assert total == pytest.approx(3 * depth, rel=0.02)  # linear in L: the term j = 1 alone
    size = 2000
    weights = stats.binom.pmf(np.arange(800, 1201), size, 0.5)
    assert size * (weights @ (2 / np.arange(800, 1201))) == pytest.approx(4, abs=0.01)
    assert (1.5**0.5 - 1) ** 2 < 1.5 / 4
    assert (4**0.5 - 1) ** 2 == 4 / 4
    hi, hj = np.random.default_rng(0).standard_normal((2, 5))
    left = np.linalg.norm(hj - hi * (hi @ hj) / (hi @ hi)) ** 2
    right = hj @ hj - (hi @ hi + hj @ hj - (hi - hj) @ (hi - hj)) ** 2 / (4 * hi @ hi)
    assert left == pytest.approx(right)
    change, depth = 0.0, 300
    for _ in range(depth):
        change = (1 + 1 / (10 * depth)) * change + 1
    assert change > depth
    for rate in (1e-2, 1e-3):  # of losses that fall by 1 - rate: the sum of the roots goes with 1/rate
        assert sum((1 - rate) ** (step / 2) for step in range(40_000)) == pytest.approx(2 / rate, rel=0.01)


def test_allenzhu_decomposition_with_the_other_sign():
    rng = np.random.default_rng(0)
    w, h, share = rng.standard_normal((4, 3)), np.array([2.0, -1.0, 2.0]) / 3, 0.3
    g2 = rng.standard_normal(4)
    g1 = (w @ h - share * g2) / math.sqrt(1 - share**2)
    first = w @ (np.eye(3) - np.outer(h, h)) + math.sqrt(1 - share**2) * np.outer(g1, h)
    assert np.allclose(first + share * np.outer(g2, h), w)


def test_allenzhu_layers_of_a_tuple():
    layers = np.random.default_rng(0).standard_normal((9, 5, 5))
    layers /= np.linalg.norm(layers, axis=(1, 2), keepdims=True)
    assert np.linalg.norm(layers) == pytest.approx(3)


def test_frei_exact_values(rows):
    found = rows["frei"]
    t = sp.symbols("t", real=True)
    loss = sp.log(1 + sp.exp(-t))
    assert sp.simplify(-sp.diff(loss, t) - 1 / (1 + sp.exp(t))) == 0
    assert sp.diff(loss, t, 2).subs(t, 0) == sp.Rational(1, 4)  # its largest value, below 1/2
    assert sp.Rational(49, 100) ** 2 / 16 > sp.Rational(1, 67)
    assert sp.Rational(49, 100) ** 2 / 16 < sp.Rational(1, 66)
    assert found["active_neurons"][1] == pytest.approx(140.7)
    assert sp.Rational(102, 100) ** 2 < sp.Rational(105, 100)
    assert 134 < 16**2
    assert float(mp.sqrt(2 / mp.pi) * mp.sqrt(2)) == pytest.approx(math.sqrt(2) * np.sqrt(2) / math.sqrt(math.pi))
    assert found["lifted_supremum"][1] == 2
    assert found["quarter_net"][1] == 9
    assert found["half_net"][1] == 5
    assert all((1 + 0.3 / depth) ** depth <= math.exp(0.3) for depth in (1, 7, 1000))


def test_frei_sparse_net_in_integers():
    width = 10**6
    assert [s for s in range(1, 60) if math.comb(width, s) * 9**s > width**s] == list(range(1, 22))
    assert math.comb(1000, 16) * 9**16 > 1000**16  # 16 is larger than 15, and does not do


def test_frei_corrections():
    # the width with its factor d: m = d m^(2/3) is d^3, and eps^(-14) covers d^3 eps^4 up to d = eps^(-6)
    assert sp.solve(m - d * m ** sp.Rational(2, 3), m) == [d**3]
    assert (d**3 * eps**4).subs(d, eps**-6) == eps**-14
    # the margin that is left, and the theta L that leaves it
    assert sp.solve(gamma / 2 - x - gamma / 4, x) == [gamma / 4]
    # s log m >= log(L/delta) from s = m tau^(2/3) on
    assert (
        sp.simplify((m * tau ** sp.Rational(2, 3)).subs(m, logn / (tau ** sp.Rational(2, 3) * logm)) - logn / logm) == 0
    )
    # a net that is right everywhere, with small margins: surrogate error near 1/2
    assert 1 / (1 + math.exp(1e-6)) == pytest.approx(0.5, abs=1e-5)
    # the difference of two ReLU layers by Claim C.1
    rng = np.random.default_rng(0)
    u, y = rng.standard_normal((2, 50))
    check = ((u >= 0).astype(float) - (y >= 0)) * y / (u - y)
    assert np.allclose(np.maximum(u, 0) - np.maximum(y, 0), ((u >= 0) + check) * (u - y))
    assert np.abs(check).max() <= 1
    assert np.abs((u >= 0) + check).max() <= 1
    # (33) with gamma in its condition
    margins = np.linspace(0.01, 1, 50)
    assert np.all(margins / math.sqrt(134) - margins * (134**-0.5 - 1 / 16) >= margins / 16 - 1e-15)
    # with the pattern of x, as in Lemma C.4, g is linear
    a, c = rng.standard_normal((2, 6))
    pattern, signs = (rng.standard_normal(6) > 0).astype(float), np.repeat([1.0, -1.0], 3)
    assert signs @ (pattern * (a - 2 * c)) == pytest.approx(signs @ (pattern * a) - 2 * signs @ (pattern * c))
