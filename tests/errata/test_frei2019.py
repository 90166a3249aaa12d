"""Certificates of the errata of Frei et al. 2019."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from scipy import stats
from scipy.optimize import linprog
from scipy.special import gammaln

from overparam.bounds import frei2019 as bounds


def relu(z):
    """max(z, 0), elementwise."""
    return np.maximum(z, 0)


def weights(rng, shapes):
    """Gaussian initialization: entries of variance 2 over the number of columns."""
    return [rng.standard_normal(shape) * math.sqrt(2 / shape[1]) for shape in shapes]


def layers(ws, x, theta):
    """The list of x_1, .., x_L for the matrices W_1, .., W_L and one input x, (d,)."""
    out = [relu(x @ ws[0])]
    for w in ws[1:]:
        out.append(out[-1] + theta * relu(out[-1] @ w))
    return out


def test_changed_layers_as_if_fixed():
    """Would fail if Lemma C.3 needed no independence, or if the exchange of layers were wrong."""
    rng = np.random.default_rng(0)
    over = []
    for m in (10**2, 10**4, 10**6):
        column = rng.standard_normal(m) * math.sqrt(2 / m)
        xi = column / np.linalg.norm(column)  # the only column of xi that a = e_1 sees
        over.append(column @ xi / math.sqrt(math.log(m) / m))
    assert over[0] > 3
    assert over[1] > 30
    assert over[2] > 300
    # the repair, at weights that know the last layer, in a small net
    m, L, theta, tau = 40, 5, 0.2, 0.3
    x = np.eye(3)[0]
    v = np.repeat([1.0, -1.0], m // 2)
    ws = weights(rng, [(3, m)] + L * [(m, m)])
    ws2 = [w + tau * np.sign(w) / math.sqrt(w.size) for w in ws]
    ws2[1] = ws[1] + tau * np.outer(np.eye(m)[0], ws[-1] @ v) / np.linalg.norm(ws[-1] @ v)
    chains = []
    for net in (ws, ws2):
        hidden = layers(net[:-1], x, theta)
        patterns = [np.diag((h @ w > 0) * 1.0) for h, w in zip(hidden, net[1:], strict=True)]
        factors = [np.eye(m) + theta * p @ w.T for p, w in zip(patterns, net[1:], strict=True)]
        factors[-1] = patterns[-1] @ net[-1].T
        chains.append((patterns, factors))
    (old, factors), (new, factors2) = chains
    below = [np.eye(m)[:, 3]]  # H~_l^{r-1} a with l = 2
    for factor in factors2[:-1]:
        below.append(factor @ below[-1])
    above = [v]  # v' H_{r+1}^{L+1} of the initial net, from the last layer down
    for factor in factors[:0:-1]:
        above.insert(0, above[0] @ factor)
    total = above[0] @ factors[0] @ below[0]
    for r in range(L):
        scale = theta if r < L - 1 else 1.0
        flips = new[r] - old[r]
        sparse = flips @ ws[r + 1].T @ below[r]
        assert np.count_nonzero(sparse) <= np.count_nonzero(flips) < m / 2
        moved = new[r] @ (ws2[r + 1] - ws[r + 1]).T @ below[r]
        total += scale * above[r] @ (sparse + moved)
    assert total == pytest.approx(v @ factors2[-1] @ below[-1], rel=1e-9)


def reaction_to_one_coordinate(d, m, seed):
    """The last layer's reaction to e_1 at an input chosen against it, and at a random one."""
    rng = np.random.default_rng(seed)
    first, last = weights(rng, [(d, m), (m, m)])
    first[:, 0] = 0  # so that the patterns do not depend on the row last[0]
    pull = np.repeat([1.0, -1.0], m // 2) * last[0]
    chosen = first @ (last @ pull)
    return [pull @ (relu(x @ first) @ last > 0) for x in (chosen, rng.standard_normal(d))]


def test_sparsity_left_free():
    """Would fail if the printed condition secured the bound at s = 1, for every delta and d."""
    rng = np.random.default_rng(2)
    for m in (100, 1000):  # the variance is 1/4 at least
        v = np.repeat([1.0, -1.0], m // 2)
        seen = rng.standard_normal((1000, m)) > 0
        draws = (seen * v * rng.standard_normal((1000, m)) * math.sqrt(2 / m)).sum(1)
        assert np.var(draws) > 0.25
    for constant in (1.0, 10.0, 100.0):
        m, depth = 1e30 * constant**6, 1
        tau = m**-0.5
        t = 2 * constant * (tau * math.sqrt(m) + math.sqrt(math.log(m)))
        log_delta = stats.norm.logsf(2 * t) - math.log(2)  # the reaction exceeds t more often
        required = constant * tau ** (-2 / 3) / math.log(m) * (math.log(depth) - log_delta)
        assert m >= required  # so the lemma promises the bound with probability 1 - delta
        # the condition of Lemmas C.3 and C.4 fails at s = 1; at m tau^(2/3) it is the printed one
        assert math.log(m) < constant * -log_delta
        s = m * tau ** (2 / 3)
        assert s * math.log(m) / -log_delta == pytest.approx(constant * m / required)
    found = np.array([reaction_to_one_coordinate(d, 1000, d) for d in (4, 100, 900)])
    assert np.abs(found[:, 1]).max() < 4  # at a random input
    assert found[0, 0] < 2 * math.sqrt(math.log(1000)) < found[2, 0]
    assert np.all(found[1:, 0] > 0.2 * np.sqrt([100, 900]))


def least_width_exponent(dimension, factor):
    """The least mu of m = eps^-mu that the conditions allow, with d = eps^-dimension.

    factor: the exponent of what stands beside tau^(-4/3) in the conditions on the width.
    tau = eps^t; training requires tau >= 1/(eps sqrt m), (3) requires tau^(4/3) sqrt m <= eps.
    """
    # unknowns (mu, t), rows a.(mu, t) <= b
    rows = [(-1, 4 / 3), (1 / 2, -4 / 3), (-1 / 2, 1), (-1, 0)]
    limits = [-factor, -1, -1, -dimension]
    return linprog([1, 0], A_ub=rows, b_ub=limits, bounds=[(None, None)] * 2).x[0]


def test_dropped_dimension():
    """Would fail if some radius made max(d, eps^-14) enough for Theorem 3.6 as stated."""
    for dimension in (1.0, 4.0, 6.0):
        assert least_width_exponent(dimension, dimension) == pytest.approx(14)
    for dimension in (6.5, 10.0, 14.0, 30.0):
        as_stated = least_width_exponent(dimension, dimension)
        assert as_stated == pytest.approx(2 * dimension + 2)
        assert as_stated > max(dimension, 14) + 0.9
    for dimension in (1.0, 10.0, 30.0):  # log n in the place of d
        assert least_width_exponent(dimension, 0.0) == pytest.approx(max(dimension, 14))
    # the radius of (11), by exponents: d tau^(-4/3) = m
    radius = {"gamma": Fraction(-4), "eps": Fraction(-1), "m": Fraction(-1, 2)}
    needed = {name: Fraction(-4, 3) * power for name, power in radius.items()}
    left = 1 - needed.pop("m")  # the power of m after division
    assert 1 / left == 3  # of d
    assert {name: power / left for name, power in needed.items()} == {"gamma": 16, "eps": 4}
    # with the paper's formulas: m = max(d, eps^-14), every radius
    eps, d, delta = 1e-2, 1e28, 0.1
    tau = np.logspace(-30, 0, 301)
    needed = bounds.thm35_width(tau, d, 2, 1e8, 0.3, delta, m=max(d, eps**-14))
    allowed = needed <= max(d, eps**-14)
    assert not np.any(allowed)
    wide = 1e3 * d**2 / eps**2 * math.log(1e60) ** 3
    allowed = bounds.thm35_width(tau, d, 2, 1e8, 0.3, delta, m=wide) <= wide
    assert np.any(bounds.thm36_rademacher(tau[allowed], wide, 1e200) < eps)


def test_flips_of_one_input():
    """Would fail if few flips for each input meant few neurons that flip for some input."""
    rng = np.random.default_rng(3)
    n, d, m, tau = 40, 30, 2000, 0.1
    x = relu(rng.standard_normal((n, d)))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    w = rng.standard_normal((d, m)) * math.sqrt(2 / m)
    changed = w.copy()
    nearest = np.abs(x @ w).argmin(axis=0)  # for each neuron the input that flips most easily
    gap = (x @ w)[nearest, np.arange(m)]
    order = np.argsort(np.abs(gap))
    cheap = order[np.cumsum((2 * gap[order]) ** 2) <= tau**2]
    changed[:, cheap] -= 2 * gap[cheap] * x[nearest[cheap]].T
    assert np.linalg.norm(changed - w) <= tau
    flips = (x @ w > 0) != (x @ changed > 0)
    single, union = flips.sum(axis=1).max(), flips.any(axis=0).sum()
    assert single <= tau ** (2 / 3) * m  # Lemma B.4 with constant 1
    assert union > 5 * single
    # the repair: gradient >= margin times the share of active neurons, for every weighting
    y = np.sign(x[:, 0] - np.median(x[:, 0]) + 1e-9)
    alpha = np.linalg.lstsq(x, y, rcond=None)[0]
    margins = y * (x @ alpha) / np.linalg.norm(alpha)
    v = np.repeat([1.0, -1.0], m // 2)
    active = x @ changed > 0
    for _ in range(5):
        kept = np.flatnonzero(margins > 0)
        a = np.zeros(n)
        a[kept] = rng.random(kept.size)
        gradient = (x * (a * y)[:, None]).T @ (active * v) / n
        floor = math.sqrt(m) * a.mean() * margins[kept].min() * active[kept].mean(axis=1).min()
        assert np.linalg.norm(gradient) >= floor > 0


def test_steps_of_the_introduction():
    """Would fail if Theorem 3.5 (ii) gave eps^-1 steps, or if the other argument did not."""
    # (ii) with eta = gamma^4/m: eps = (K eta m)^(-1/2) gamma^-2, by exponents of K and gamma
    fall, margin_power = Fraction(-1, 2), Fraction(-1, 2) * 4 - 2
    assert (1 / fall, -margin_power / fall) == (-2, -8)  # K = eps^-2 gamma^-8
    first = bounds.thm35_surrogate(64, 100, 1 / 64, 10, 0.5, 1.0)
    assert bounds.thm35_surrogate(64, 400, 1 / 64, 10, 0.5, 1.0) == pytest.approx(first / 2)
    # the other argument, where the net is linear in its weights: margin 0.3, |gradients| <= 1
    rng = np.random.default_rng(4)
    n, margin = 20, 0.3
    z = rng.standard_normal((n, 20))
    z[:, 0] = 0
    z *= math.sqrt(1 - margin**2) / np.linalg.norm(z, axis=1, keepdims=True)
    z[:, 0] = margin  # rows are y_i grad f(x_i), and e_1 separates them
    taken = []
    for target in (0.1, 0.02, 0.004):
        far = math.log(8 / target) / margin
        goal = far * np.eye(20)[0]
        w, k = np.zeros(20), 0
        while True:
            slope = 1 / (1 + np.exp(z @ w))
            if slope.mean() <= target:
                break
            loss = np.logaddexp(0, -z @ w).mean()
            after = w + slope @ z / n
            lowered = np.sum((w - goal) ** 2) - np.sum((after - goal) ** 2)
            assert lowered >= loss - target / 4 - 1e-12
            w, k = after, k + 1
        assert k <= far**2 / (0.75 * target)
        taken.append(k)
    assert taken[2] < 15 * taken[1] < 225 * taken[0]  # a fifth of the error: less than 25 times


def log_binomial(m, k, p):
    """log of the probability that a binomial variable of m trials is k."""
    choose = gammaln(m + 1) - gammaln(k + 1) - gammaln(m - k + 1)
    return choose + k * math.log(p) + (m - k) * math.log1p(-p)


def test_union_over_layers():
    """Would fail if the printed widths of Lemmas C.2 and B.4 sufficed at every depth."""
    d, delta = 2, 0.01
    for constant in (1.0, 3.0, 10.0):
        many = 4 * constant**1.5  # so many times b m neurons shall lie below beta in one layer
        b = 0.01 / (constant * d * many * math.log(4 * many))
        m = round(1e3 * constant**2 * d / b**2)
        m *= 10
        beta = b / math.sqrt(m)
        log_depth = m / (constant * d) - math.log(m / delta)
        printed = math.sqrt(d * math.log(1 / (beta * delta))) / beta
        assert m >= constant * max(printed, d * (math.log(m / delta) + log_depth) * (1 - 1e-12))
        p = math.erf(b / (2 * 1.024))  # |N(0, 2 |x|^2/m)| <= beta at the largest norm, 1.024
        k = math.ceil(many * b * m)
        log_rate = log_depth + log_binomial(m, k, p)  # layers times the chance in one of them
        assert log_rate > math.log(1 / delta)  # so some layer has k, but for e^(-1/delta)
        assert k > constant * m**1.5 * beta
        # Lemma B.4: reflecting these k neurons costs tau, at the least norm, 0.9
        tau = 2 * beta * math.sqrt(k) / 0.9
        assert tau < 1
        assert m >= constant * tau ** (-4 / 3) * d * math.log(m / (tau * delta))
        assert k > constant * m * tau ** (2 / 3)
        # with log L beside d, as Chernoff's inequality has it, this m is excluded
        assert m * tau ** (2 / 3) < constant * log_depth


def wide_sum(theta, l):
    """The limit of the sum of x_l over sqrt m in wide nets, for an input of length 1."""
    total = math.pi**-0.5
    for below in range(1, l):
        total += theta * bounds.ref_norm_wide(theta, below) / math.sqrt(math.pi)
    return total


def test_scale_hides_the_margin():
    """Would fail if the proof's direction separated layer L at theta = 1/L whatever gamma is."""
    rng = np.random.default_rng(5)
    m, L, mean = 1000, 9, 0.4
    theta = 1 / L
    gamma = (1 - 2 * mean) / math.sqrt(2 * math.pi)
    ws = weights(rng, [(2, m)] + (L - 1) * [(m, m)])
    alpha = (mean + (1 - mean) * np.sign(ws[0][0])) / math.sqrt(m)
    ones = np.full(m, m**-0.5)
    inputs = {1: np.array([1.0, 0.0]), -1: np.array([-1.0, 0.0])}
    hidden = {y: layers(ws, x, theta) for y, x in inputs.items()}
    assert -1 * hidden[-1][0] @ alpha > gamma / 2  # layer 1 is separated
    assert -1 * hidden[-1][-1] @ alpha < -gamma  # layer L is not, by the same direction
    limit = -math.sqrt(2) * gamma + mean * (wide_sum(theta, L) - wide_sum(theta, 1))
    assert hidden[-1][-1] @ alpha == pytest.approx(limit, abs=0.1)
    # one direction for each layer: no longer than 1, and the margin is there again
    centred = alpha - (alpha @ ones) * ones
    for l in range(1, L + 1):
        own = centred + alpha @ ones / (math.sqrt(math.pi) * wide_sum(theta, l)) * ones
        assert np.linalg.norm(own) <= 1
        for y in (1, -1):
            assert y * hidden[y][l - 1] @ own >= gamma / 2


def test_margin_of_the_first_layer():
    """Would fail if the first layer's margin were gamma/2 and not near sqrt(2) gamma."""
    rng = np.random.default_rng(6)
    m = 50_000
    first = rng.standard_normal((2, m)) * math.sqrt(2 / m)
    alpha = np.sign(first[0]) / math.sqrt(m)
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    f = points[:, 0] / math.sqrt(2 * math.pi)  # E sign(u_1) relu(u'x)
    reached = relu(points @ first) @ alpha
    assert np.abs(reached - math.sqrt(2) * f).max() < 0.02
    gamma = 0.1
    inside = np.abs(f) >= gamma
    least = (np.sign(f) * reached)[inside].min()
    assert least - gamma / 4 >= gamma / 2  # what theta L C_7 <= gamma/4 leaves


def test_power_of_the_margin_in_the_steps():
    """Would fail if (11) and the step size gave gamma^-4 for K, or gamma^-2 before (11)."""
    gamma, eps, m, log, tau = sp.symbols("gamma eps m log tau", positive=True)
    half, quarter = sp.Rational(1, 2), sp.Rational(1, 4)
    time = gamma**4 * tau**2 * log**-half
    error = (time * m) ** -half * log**quarter * gamma**-2
    assert error == m**-half * gamma**-4 / tau * log**half
    radius = error * tau / eps  # error falls like 1/tau
    steps = time.subs(tau, radius) / (gamma**4 / m)
    assert steps == gamma**-8 * log**half * eps**-2
    assert steps != gamma**-4 * log**half * eps**-2


def test_sparse_net_in_integers():
    """Would fail if 9^s times a binomial coefficient were below m^s from s = 15 or 16 on."""
    width = 10**6
    above = [s for s in range(1, 60) if math.comb(width, s) * 9**s > width**s]
    assert above == list(range(1, 22))
    assert all(math.comb(m, 22) * 9**22 <= m**22 for m in range(22, 3000))
