"""Recomputed statements: what counts as agreement, toys, and some rows by other ways to them."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
import statements
import sympy as sp
from scipy import optimize, stats
from statements import guo2024 as guo
from statements import noy2021 as noy
from statements.statement import Statement, bounded, exponents, holds, order, power, solved, typeset

from ledger import errata, paths, registry
from overparam.bounds import guo2024, noy2021


def made(printed, recomputed=0.0, severity=""):
    return Statement("here", "what", printed, recomputed, severity)


def value(paper, place, says):
    """What is recomputed of the one statement at a place whose words begin so."""
    found = [row for row in statements.TABLES[paper] if row[0] == place and row[1].startswith(says)]
    assert len(found) == 1
    return Statement(*found[0]).values([0])[0]


# The judge


@pytest.mark.parametrize(
    ("printed", "computed", "agrees"),
    [
        ("0.75", 0.7549, True),
        ("0.75", 0.7551, False),
        ("0.75", 0.745, True),
        ("2", 2.49, True),
        ("2", 1.4, False),
        ("172", 172.4, True),
        ("-0.5", -0.5, True),
        ("-0.5", -0.25, False),
        ("1e-4", 1.4e-4, True),
        ("0.0", 0, True),
        ("0.75", float("nan"), False),
        ("holds", "holds", True),
        ("holds", "fails at x = 2", False),
        ("n^2 L", "n^2 L", True),
        ("n^2 L", "L n^2", True),
        ("n^2 L", "n^3 L", False),
        ("gamma/2", "gamma/4", False),
    ],
)
def test_agreement_is_to_the_digits_printed_or_power_by_power(printed, computed, agrees):
    assert made(printed).agrees(computed) is agrees


def test_exponents_are_those_of_sympy():
    letters = sp.symbols("n lam0 d_x logm", positive=True)
    for powers in ((6, -4, 1, 0), ("5/2", "-1/3", 0, 5), (-1, "-11/6", 3, 1)):
        powers = [sp.Rational(p) for p in powers]
        product = 7 * sp.prod([a**p for a, p in zip(letters, powers, strict=True)])
        named = zip(letters, powers, strict=True)
        expected = {str(letter): Fraction(str(p)) for letter, p in named if p}
        assert exponents(order(sp.lambdify(letters, product))()) == expected
        n, *others = letters
        of_n = product.subs(dict.fromkeys(others, 3))
        at = float(sp.solve(of_n - 1, n)[0])
        assert solved(sp.lambdify(n, of_n)) == pytest.approx(at)
    assert exponents("fails at x = 2") is None
    assert order(lambda n: 3.0 + 0 * n)() == "O(1)"
    assert power(lambda v: 3 * v**-1.5, 10.0)() == pytest.approx(-1.5)
    with pytest.raises(ValueError, match="no power of n"):
        order(lambda n: n + n**2)()


def test_relations_say_where_they_fail():
    assert holds(lambda x: x > 0, x=[1, 2])() == "holds"
    assert holds(lambda x, y: x + y < 4, x=[1], y=[2.0, 3.5])() == "fails at x = 1, y = 3.5"
    assert holds(lambda x: x * np.nan <= 1, x=[0])() == "fails at x = 0"
    assert holds(lambda: [True, False])() == "fails"
    assert bounded(lambda k: 2 - 1 / k, np.arange(1, 50))() == "holds"
    assert bounded(lambda k: k, np.arange(1, 50))() == "fails: the ratio grows to 49"


def test_a_row_takes_the_mean_over_seeds_and_their_spread():
    def recomputed(seed):
        return 2 + 0.021 * seed

    exact = ("Section 1", "a", "2", 2.2)
    drawn = ("Section 2", "b < |t|", "2.1", recomputed, "typo")
    exact, drawn = statements.audit([0, 1, 2], {"noy2021": [exact, drawn]}).itertuples()
    assert (exact.agrees, exact.computed, exact.spread) == (True, "2.20", 0.0)
    assert exact.severity == ""
    assert (drawn.agrees, drawn.computed, drawn.severity) == (False, "2.021", "typo")
    assert drawn.spread == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("recomputed", "severity", "message"),
    [
        (3.0, "", "is 3.0 when recomputed, and has no known severity ''"),
        (3.0, "grave", "no known severity 'grave'"),
        (2.0, "typo", "agrees, and has the severity 'typo'"),
        (2.0, "grave", "agrees, and has the severity 'grave'"),
    ],
)
def test_what_does_not_agree_and_nothing_else_has_a_severity(recomputed, severity, message):
    with pytest.raises(ValueError, match=f"here: what: 2 .*{message}"):
        made("2", recomputed, severity).judged(recomputed)
    with pytest.raises(ValueError, match="Section 1"):
        statements.audit([0], {"noy2021": [("Section 1", "a", "2", recomputed, severity)]})


def test_how_a_row_was_found_follows_from_its_kind():
    assert made("n^2", order(lambda n: n**2)).how == "symbolic"
    assert made("2.0", power(lambda n: n**2, 1.0)).how == "numeric"
    assert made("holds", holds(lambda: True)).how == "numeric"
    assert made("IMDB", lambda: "MNIST").how == "by hand"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("n^24 lam0^(-1) logm^5", r"$n^{24}\,\lambda_0^{-1}\,\log^{5} m$"),
        ("gamma/4", r"$\gamma/4$"),
        ("d^3 beta^(1/2) d_x", r"$d^{3}\,\beta^{1/2}\,d_x$"),
        ("eps", r"$\varepsilon$"),
        ("-2.5", "-2.5"),
        ("3.81e-05", "3.81e-05"),
        ("IMDB", "IMDB"),
        ("fails at eta = 2", "fails at eta = 2"),
    ],
)
def test_products_are_set_as_formulas_and_words_are_not(text, shown):
    assert typeset(text) == shown


# The tables


@pytest.fixture(scope="module")
def found():
    return statements.audit([0])


def test_statements_are_told_apart_and_so_many_agree(found):
    for rows in statements.TABLES.values():
        assert all(place and says and printed for place, says, printed, *_ in rows)
        assert len({(place, says) for place, says, *_ in rows}) == len(rows)
    agrees = found.groupby("paper")["agrees"].agg(["sum", "count"])
    expected = {
        "arora2019": (29, 32),
        "allenzhu2019": (44, 69),
        "frei2019": (38, 49),
        "noy2021": (24, 60),
        "guo2024": (35, 84),
    }
    assert {paper: tuple(row) for paper, row in agrees.iterrows()} == expected
    assert found.loc[~found["agrees"], "severity"].value_counts().to_dict() == {
        "false": 11,
        "gap": 15,
        "exponent": 39,
        "constant": 43,
        "typo": 16,
    }


def test_every_slip_is_an_erratum_of_the_same_place_and_severity(found):
    """Which says that it was recomputed."""
    for slip in found[~found["agrees"]].itertuples():
        rows = [row for row in errata.load(slip.paper).errata if row.place == slip.place]
        rows = [row for row in rows if row.severity == slip.severity]
        assert any("recomputed" in row.evidence for row in rows), (slip.paper, slip.place)


def test_an_erratum_that_was_recomputed_has_a_statement(found):
    slips = found[~found["agrees"]]
    places = set(zip(slips["paper"], slips["place"], slips["severity"], strict=True))
    for paper in errata.papers():
        for row in errata.load(paper).errata:
            if "recomputed" in row.evidence:
                assert (paper, row.place, row.severity) in places, (paper, row.place)


def test_what_is_stored_is_what_is_recomputed():
    """Else: `python -m statements` in tests/errata."""
    stored = pd.read_csv(
        paths.NOTEBOOKS / registry.ERRATA / "statements.csv", keep_default_na=False
    )
    pd.testing.assert_frame_equal(stored, statements.stored(), check_dtype=False)


# Orders by algebra


def orders():
    """(paper, place, beginning of the words, product by sympy) of orders that enter a theorem."""
    n, m, d, b, L, eta, k = sp.symbols("n m d b L eta k", positive=True)
    delta, lam0, kappa, eps, gamma, tau, omega = sp.symbols(
        "delta lam0 kappa eps gamma tau omega", positive=True
    )
    logm, logn = sp.symbols("logm logn", positive=True)

    def root(equation, unknown):
        return sp.solve(equation, unknown)[0]

    moved = 4 * sp.sqrt(n) * sp.sqrt(n / delta) / (sp.sqrt(m) * lam0)  # Arora et al., Lemma C.1
    allowed = (delta / (n**3 * L**2 * sp.sqrt(logm))) ** 3  # Allen-Zhu et al., step 3
    rate = eta * delta * m / (d * n**2)
    sparse = m * omega ** sp.Rational(2, 3) * L
    half, third = sp.Rational(1, 2), sp.Rational(1, 3)
    radius = root(
        gamma**-2 * logn ** (half / 2) / sp.sqrt(gamma**4 * tau**2 / sp.sqrt(logn) * m) - eps, tau
    )
    movement = eta * sp.sqrt(n * m / d) / rate * sp.sqrt(n) * logm
    moved_by_sgd = d * n**5 / (m * b * delta**2)  # squared; Guo et al., Lemma B.10 with (108)

    def absorbing(factor):
        """ω at which a factor times ω^(1/3) L^2 is 1, squared."""
        return root(factor * omega**third * L**2 - 1, omega) ** 2

    return [
        (
            "arora2019",
            "Theorem 3.1, footnote 3",
            "the width",
            root(n**2 * moved / (kappa * delta) - lam0, m),
        ),
        ("arora2019", "Lemma C.2", "order of 4 n^2", n**2 * moved / (kappa * delta)),
        (
            "allenzhu2019",
            "Theorem 4, first term",
            "order of the first",
            L * (L * sp.sqrt(sparse * logm / d) * sp.sqrt(L)),
        ),
        ("allenzhu2019", "eq. (12.1)", "order of the norm", sp.sqrt(L * movement**2)),
        (
            "allenzhu2019",
            "Section 12",
            "the width",
            root(n**3 * sp.sqrt(d / m) * logm / delta - allowed, m),
        ),
        (
            "allenzhu2019",
            "Theorem 2, width in Section 13",
            "order of the width",
            root(n ** (7 * half) * sp.sqrt(d / (b * m)) * logm / delta - allowed, m),
        ),
        (
            "allenzhu2019",
            "Theorem 3, Section 10",
            "the omega",
            root(n * omega ** (2 * third) * L**4 - delta / n**2, omega),
        ),
        ("frei2019", "Appendix A.3, (11)", "order of tau", radius),
        (
            "frei2019",
            "Appendix A.3",
            "order of $K$,",
            root(k * gamma**4 / m - gamma**4 * radius**2 / sp.sqrt(logn), k),
        ),
        (
            "frei2019",
            "Appendix A.3",
            "order of tau^(4/3) sqrt(m)",
            radius ** (4 * third) * sp.sqrt(m),
        ),
        (
            "frei2019",
            "Corollary 3.7, Appendix A.3",
            "order of the width",
            (d * (radius ** (-4 * third)).subs({m: 1, logn: 1})) ** 3,
        ),
        (
            "guo2024",
            "B.7, Lemma B.10",
            "width at which",
            root(moved_by_sgd - absorbing(n / sp.sqrt(delta)), m),
        ),
        (
            "guo2024",
            "(112), (113)",
            "width at which",
            root(moved_by_sgd - absorbing(n**2 / delta), m),
        ),
        (
            "guo2024",
            "Proof of Theorem B.14 (Appendix B.13)",
            "width at which",
            root(d**2 * n / m - absorbing(sp.sqrt(n * d)), m),
        ),
        (
            "guo2024",
            "Theorem B.16, width",
            "by (111)",
            root(n * n**2 * d * L / (delta * m * eps) - delta**3 / (n**3 * L**15), m),
        ),
    ]


@pytest.mark.parametrize(("paper", "place", "says", "product"), orders())
def test_orders_by_algebra(paper, place, says, product):
    expanded = sp.expand_power_base(sp.simplify(product), force=True)
    factors = sp.powdenest(expanded, force=True).as_powers_dict()
    expected = {str(a): Fraction(str(p)) for a, p in factors.items() if not a.is_number}
    assert exponents(value(paper, place, says)) == expected


# Rows by other routes


def test_arora_what_the_examples_bound():
    """y'H^-1 y is quadratic in A, below the square of (13).

    That of a cosine is below (beta sinh beta)^2 as well.
    """
    assert value("arora2019", "Examples 6.2, 6.3", "degree in") == pytest.approx(2)
    x = np.random.default_rng(0).standard_normal((6, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    products = np.clip(x @ x.T, -1, 1)
    h = products * (np.pi - np.arccos(products)) / (2 * np.pi)
    labels = x**2 @ np.array([1.0, -0.5, 0.3])
    energy = [v @ np.linalg.solve(h, v) for v in (labels, 2 * labels)]
    assert energy[1] == pytest.approx(4 * energy[0])
    assert energy[0] <= 36 * 1.8**2
    waves = np.cos(3 * x[:, 0]) - 1
    assert waves @ np.linalg.solve(h, waves) <= 9 * (3 * math.sinh(3)) ** 2


def test_allenzhu_tails_and_norms():
    expected = {
        (r"Claim 7.6, proof, $\alpha < \frac34$", r"$\Pr(g_1"): float(mp.erfc(mp.mpf(1) / 2) / 2),
        ("Claim 9.5, proof", r"$\Pr("): 2 * stats.norm.sf(1),
        ("Appendix C.1, Lemma 7.5", "share of"): stats.norm.sf(0.1 / math.sqrt(2)),
        ("Claim 9.4, proof", "$n$ times the chance"): 1 / math.sqrt(4 * math.pi),
    }
    for (place, says), right in expected.items():
        assert value("allenzhu2019", place, says) == pytest.approx(right, rel=1e-4)
    size = 1200
    w = np.random.default_rng(0).standard_normal((size, size)) * math.sqrt(2 / size)
    unmasked = np.sum((w @ np.ones(size)) ** 2) / size
    assert unmasked == pytest.approx(2, abs=0.3)  # 2, not 1


def test_frei_sparse_net_in_integers():
    width = 10**6
    assert [s for s in range(1, 60) if math.comb(width, s) * 9**s > width**s] == list(range(1, 22))
    assert value("frei2019", "Appendix D.2", "the $s$ from which") == 22


def test_noy_parameters_by_integer_arithmetic():
    width = 1281167**8 * 1001**12
    assert len(str(width**2 * 1001)) - 1 == value("noy2021", "Section 1", "decimal exponent")
    faster = 1 / (0.5 + 1 / math.sqrt(4096))
    assert value("noy2021", "Section 4.4", "inference") == pytest.approx(faster)


def test_noy_gates_and_decay_of_cosines():
    for cosine in (-1 / 3, 0.0, 1 / 3):
        both = stats.multivariate_normal([0, 0], [[1, cosine], [cosine, 1]]).cdf([0, 0])
        assert both == pytest.approx(noy2021.gate_overlap(cosine), abs=1e-6)
    # cubic: below 122 k^-3 at these k, about 125 k^-3 in the limit; above ((L - k)/L)^3
    places = "Theorem 6", "Theorem 6, part on $F$"
    grown = [float(value("noy2021", place, "mean cosine").split()[-1]) for place in places]
    assert grown[0] == pytest.approx(122 / 200**3 * 1.2**200, rel=0.2)
    assert grown[1] == pytest.approx(0.8**3 * 1.2**200, rel=0.05)


def test_noy_step_that_is_chosen_and_the_square_that_lemma_2_lacks():
    """With the constants of Theorem 5, 3/4 of the loss is left as printed before (35).

    Nothing is left with the square.
    """
    m, dx, L = 40000, 200, 4
    alpha2, beta2, beta_x = noy2021.alpha2(m, dx), noy2021.beta2(m, dx), noy2021.beta_x(m, dx)
    terms = noy2021.eta_lemma3(alpha2, beta2, beta_x, 100, L, 1e-9, 0.25)
    step = value("noy2021", "Section 10.4, after (18)", "the step")
    assert terms.eta == pytest.approx(terms.gradient * step, rel=1e-9)
    for third, left in ((beta2 * beta_x, 0.75), (beta2**2, 0.0)):
        added = 3 * third + 0.75 * alpha2**2 + beta2**2
        assert 1 - terms.eta * L * added / alpha2 == pytest.approx(left, abs=1e-4)
    last = [noy._bound(20, m, 0.0) for m in (1e40, 1e44)]  # Theorem 6 at the last layer
    assert last[0] / last[1] == pytest.approx(10)


def test_guo_corollary_and_percentages():
    def negative(alpha):
        return -guo2024.c_alpha(alpha)

    best = optimize.minimize_scalar(negative, bounds=(-50, 0.99), method="bounded")
    assert best.x == pytest.approx(-1, abs=1e-3)
    for errors, name, reduction in (
        (guo.TRAIN, "synthetic", 1 - 22 / 197),
        (guo.TRAIN, "CIFAR-10", 1 - 18 / 24),
        (guo.TEST, "F-MNIST", 1 - 2362 / 2442),
        (guo.TEST, "CIFAR-10", 1 - 143 / 169),
    ):
        low, high = guo._reduction(errors, name)
        assert low < 100 * reduction < high


def test_guo_radius_that_absorbs_the_cross_term():
    """At ω = δ^1.5/(n^3 L^6) the factor of (15) is free of n and L; at that of Lemma 4.2, not."""
    for n, L in ((10.0, 3.0), (100.0, 9.0)):
        for radius, expected in (
            (0.2**1.5 / (n**3 * L**6), 1),
            (guo2024.omega_gradient(n, L, math.e, 0.2), math.sqrt(n / L)),
        ):
            factor = radius ** (1 / 3) * n * L**2 / math.sqrt(0.2)
            assert factor == pytest.approx(expected)
    power_of_n = 2 + 2 * 3  # n² of (111) with (108), over ω²
    assert value("guo2024", "after (15)", "power of $n$") == pytest.approx(power_of_n)


def test_guo_gradient_of_a_batch_against_its_share():
    """Of examples whose gradients cancel a batch keeps √b, which (9) and the variance allow."""
    rng = np.random.default_rng(0)
    n, m = 40, 200
    gradients = rng.standard_normal((n, m))
    gradients -= gradients.mean(axis=0)
    largest = np.linalg.norm(gradients, axis=1).max()
    for b in (1, 4, 10):
        batches = [rng.permutation(n)[:b] for _ in range(200)]
        mean = np.mean([np.linalg.norm(gradients[batch].sum(axis=0)) for batch in batches])
        assert np.linalg.norm(gradients.sum(axis=0)) < 1e-9 < mean
        assert 0.5 * math.sqrt(b) * largest < mean <= math.sqrt(b) * largest <= b * largest


def test_guo_separation_of_random_points_by_counting_pairs():
    """A share I_{sin²(θ)}(2, 1/2)/2 of the pairs of unit vectors in R^5 are closer than s.

    That is less than one pair at the mean found.
    """

    def closer(s):
        sine = math.sin(2 * math.asin(s / 2))
        return 1000 * 999 / 4 * stats.beta.cdf(sine**2, 2, 0.5)

    assert closer(0.21) > 100  # the text's δ
    found = value("guo2024", "Section 2 with 5.1", "mean smallest distance")
    assert closer(found) == pytest.approx(0.68, abs=0.1)
