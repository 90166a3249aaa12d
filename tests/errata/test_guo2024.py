"""Certificates of the errata of Guo et al. 2024."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
import torch
from scipy import stats
from scipy.integrate import quad

from overparam.bounds import guo2024 as bounds
from overparam.theory.infinite_width_kernels import leaky_ntk

n, L, d, m, b, delta, eta, t = sp.symbols("n L d m b delta eta t", positive=True)
eps, kappa, tau, c, omega, logs = sp.symbols("eps kappa tau c omega logs", positive=True)
third = sp.Rational(1, 3)

# Orders from the paper, without ln m and c(alpha) unless they are named

RADIUS = delta ** sp.Rational(3, 2) / (n ** sp.Rational(3, 2) * L ** sp.Rational(15, 2))  # 4.2
SELECTED = delta ** sp.Rational(3, 2) / (n**3 * L**6)  # Appendix B.7, before (113)
MOVED = sp.sqrt(n * d / (delta * m)) * sp.sqrt(n)  # (111) with (108)
MOVED_BY_SGD = sp.sqrt(d) * n**2 / (sp.sqrt(m * b) * delta) * sp.sqrt(n)  # Lemma B.10, (108)
BOUNDED = sp.sqrt(n * d / (delta * m))  # (14): the root of the loss over the gradient
CROSS = omega**third * L**2 * sp.sqrt(m * n / d)  # (12) over eta, root of the loss and gradient


def same(left, right):
    """Whether two products of powers are equal."""
    one, other = (sp.expand_log(sp.log(side), force=True) for side in (left, right))
    return sp.expand(one - other) == 0


def width(moved, radius):
    """The width from which a movement of order m^(-1/2) is at most a radius."""
    return moved**2 * m / radius**2


def absorbing(factor):
    """The omega at which a factor with omega^(1/3) is 1."""
    return (omega**third / factor) ** 3


def power_of(symbol, product):
    """The exponent of a symbol in a product of powers."""
    return sp.expand(sp.expand_log(sp.log(product), force=True)).coeff(sp.log(symbol))


def slope(z, alpha):
    """The derivative of the rescaled leaky ReLU (2)."""
    return np.where(z >= 0, 1.0, alpha) / math.sqrt(1 + alpha**2)


def layers(weights, first, alpha):
    """Inputs of the layers and the derivatives in them, for the matrices W_1, ..., W_L."""
    h, inputs, slopes = first, [], []
    for w in weights:
        g = w @ h
        inputs.append(h)
        slopes.append(slope(g, alpha))
        h = slopes[-1] * g
    return inputs, slopes, h


def output(weights, last, first, alpha):
    """The output of the net (1) at h_0."""
    return last @ layers(weights, first, alpha)[2]


def gradient(weights, last, first, alpha):
    """The gradients of the output with respect to W_1, ..., W_L, as (61) has them."""
    inputs, slopes, _ = layers(weights, first, alpha)
    back, found = last, []
    for w, h, slopes_of in zip(weights[::-1], inputs[::-1], slopes[::-1], strict=True):
        back = slopes_of * back
        found.append(np.outer(back, h))
        back = w.T @ back
    return found[::-1]


def draw(rng, width_, depth, inputs=2):
    """Weights of Algorithm 1 with one output: A, [W_1, ...], B."""
    first = rng.standard_normal((width_, inputs)) / math.sqrt(width_)
    hidden = [rng.standard_normal((width_, width_)) * math.sqrt(2 / width_) for _ in range(depth)]
    return first, hidden, rng.standard_normal(width_)


def even_in_integers():
    """A net with absolute values and integer weights answers opposite inputs alike."""
    rng = np.random.default_rng(0)
    first, *hidden, last = (rng.integers(-9, 10, (5, 5)).tolist() for _ in range(4))
    x = [Fraction(int(v)) for v in rng.integers(-9, 10, 5)]

    def apply(matrix, v):
        return [sum(a * e for a, e in zip(row, v, strict=True)) for row in matrix]

    def net(v, unit):
        h = apply(first, v)
        for w in hidden:
            h = [unit(g) for g in apply(w, h)]
        return apply(last, h)[0]

    opposite = [-v for v in x]
    common = net(x, abs)
    assert common == net(opposite, abs)
    assert (1 - common) ** 2 + (-1 - common) ** 2 >= 2
    assert net(x, lambda g: max(g, 0)) != net(opposite, lambda g: max(g, 0))


def test_even_net():
    """Would fail if some net of slope -1 told x from -x, or its gradients did."""
    even_in_integers()
    rng = np.random.default_rng(1)
    a, hidden, last = draw(rng, 60, 3)
    x = np.array([0.6, 0.8])
    # near -1: the difference of the outputs is at most 2 |b| times the norms, and b vanishes
    norms = np.linalg.norm(last) * math.prod(np.linalg.norm(w, 2) for w in hidden)
    for alpha in (-1.1, -1.001, -0.99, -0.9):
        bend = (1 + alpha) / (2 * math.sqrt(1 + alpha**2))
        gap = output(hidden, last, a @ x, alpha) - output(hidden, last, -a @ x, alpha)
        assert abs(gap) <= 2 * abs(bend) * norms * np.linalg.norm(a @ x)
        assert 1 < bounds.c_alpha(alpha) <= 2
    # (30): the excess over its main term is theta^2/4 for opposite vectors, no O(theta^3)
    for theta in (1e-1, 1e-2, 1e-3):
        excess = bounds.dual_act(math.pi, -1.0) - (1 - theta**2 / 2) / 2
        assert excess == pytest.approx(theta**2 / 4)
        assert bounds.dual_act(math.pi, 0.0) == pytest.approx(0, abs=1e-12)
    # Lemma B.7: equal gradients at slope -1, and only there
    for alpha, equal in ((-1.0, True), (0.0, False), (-2.0, False)):
        pairs = zip(*(gradient(hidden, last, s * a @ x, alpha) for s in (1, -1)), strict=True)
        assert all(np.allclose(one, other) for one, other in pairs) is equal
    # Lemma 4.2 with labels 1, -1: how often 8 f^2/(1 + f^2) |grad f|^2 < 0.05 m does not fall
    share = []
    for size in (100, 400, 1600):
        g = rng.standard_normal((2000, size)) * math.sqrt(2 / size)
        top = rng.standard_normal((2000, size))
        f = np.sum(top * np.abs(g), axis=1) / math.sqrt(2)
        squared = 8 * f**2 / (1 + f**2) * np.sum(top**2, axis=1) / 2
        share.append(np.mean(squared < 0.05 * size))
    assert min(share) > 0.05
    nearly_opposite()


def nearly_opposite():
    """Theorem B.16: descent leaves the loss of a nearly opposite pair at 2, some weights at 0."""
    rng = np.random.default_rng(2)
    size = 50
    a, (w,), last = draw(rng, size, 1)
    x = np.array([[1.0, 0.0], [-math.cos(1e-4), math.sin(1e-4)]])
    h, y = a @ x.T, np.array([1.0, -1.0])
    for alpha in (-1.0, 0.0):
        trained = w.copy()
        for _ in range(300):
            g = trained @ h
            residual = last @ (slope(g, alpha) * g) - y
            trained -= 0.1 / size * (slope(g, alpha) * last[:, None] * residual) @ h.T
        assert np.sum(residual**2) > 1.9 if alpha == -1.0 else np.sum(residual**2) < 0.01
    dual = np.linalg.pinv(h)  # rows that answer 1 at one input and 0 at the other
    fitting = np.zeros_like(w)
    up, down = np.argmax(last), np.argmin(last)
    fitting[up] = math.sqrt(2) * dual[0] / last[up]
    fitting[down] = math.sqrt(2) * dual[1] / -last[down]
    g = fitting @ h
    assert last @ (slope(g, -1.0) * g) == pytest.approx(y, abs=1e-6)


def test_unbounded_class():
    """Would fail if no change within omega raised one output alone by order omega sqrt(m)."""
    rng = np.random.default_rng(0)
    examples = 2
    others = 10 * examples**2
    # the sample is distinct and misses e_0 with a probability that is free of m
    assert (1 - 1 / examples) ** examples - examples**2 / (2 * others) >= 0.2
    over = []
    for size in (300, 3000, 30000):
        a = rng.standard_normal((size, others + 1)) / math.sqrt(size)
        rest = np.linalg.qr(a[:, 1:])[0]
        q = a[:, 0] - rest @ (rest.T @ a[:, 0])
        reach = np.linalg.norm(q)
        root = np.linalg.cholesky(2 / size * a.T @ a)  # the rows of W A are N(0, 2/m A'A)
        g = rng.standard_normal((size, others + 1)) @ root.T
        last = rng.standard_normal(size)
        before = last @ np.maximum(g, 0)
        up = math.copysign(1, before[0])
        chosen = np.where((g[:, 0] > 0) & (last * up > 0), np.abs(last), 0)
        s = 1 / math.log(size) ** 1.5
        push = s * np.outer(chosen / np.linalg.norm(chosen), q / reach @ a)
        after = last @ np.maximum(g + push, 0)
        gain = s * reach * np.linalg.norm(chosen)
        assert after[1:] == pytest.approx(before[1:], abs=1e-9)
        assert abs(after[0]) == pytest.approx(abs(before[0]) + gain)
        assert gain > 0.45 * s * math.sqrt(size)
        log = math.log(size)
        lemma = np.mean(before[1:] ** 2) + log * math.sqrt(size) * (2 * s) ** (4 / 3)
        lemma += math.sqrt(size * log / examples) * 2 * s + math.sqrt(log / examples)
        over.append(gain**2 / examples / lemma * log**2)
    # sqrt(m) up to logarithms: ten times wider is at least twice as much
    assert over[2] > 2 * over[1] > 4 * over[0]


def test_special_small_losses():
    """Would fail if the linear limit kept the rate of B.14 for residuals of the class."""
    size = 4 * 10**5
    for distance, constant in ((0.03, 0.1), (0.003, 0.01)):
        angle = 2 * math.asin(distance / 2)
        x = np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]])
        v = (x[0] - x[1]) / distance
        residual = (1 + x @ v) / (2 * math.sqrt(2 * math.pi))  # (135) of a half space, ReLU
        assert residual[0] - residual[1] == pytest.approx(distance / (2 * math.sqrt(2 * math.pi)))
        kernel = leaky_ntk(torch.tensor(x), 2, 0.0).numpy() / 2  # over m
        values, vectors = np.linalg.eigh(kernel)
        parts = (vectors.T @ residual) ** 2
        assert 4 * values[0] < constant  # the slow direction against the stated rate
        step = 0.1  # eta m, d = 1
        times = np.arange(0, size, 1000)
        slow = math.log(parts[0]) + 2 * times * math.log1p(-2 * step * values[0])
        stated = math.log(parts.sum()) + times * math.log1p(-constant * step)
        assert slow[0] < stated[0]
        assert np.all(np.diff(slow - stated) > 0)
        assert slow[-1] > stated[-1] + 1
    # the residual belongs to the class: the mean of 1{u.v > 0} relu(u.x) in polar coordinates
    phases = (np.arange(40000) + 0.5) * 2 * math.pi / 40000
    u = np.stack([np.cos(phases), np.sin(phases)])
    mean = np.mean((v @ u > 0) * np.maximum(x @ u, 0), axis=1) * math.sqrt(math.pi / 2)
    assert mean == pytest.approx(residual, rel=1e-4)


def test_slopes_near_one():
    """Would fail if the bounds of B.5 and B.11 covered what changed weights do without flips."""
    rng = np.random.default_rng(0)
    size, change = 100, 1e-2
    a, (one, two), last = draw(rng, size, 2)
    h = a @ np.array([0.6, 0.8])
    w = np.eye(size)[0]
    top = change * np.outer(last / np.linalg.norm(last), w)
    low = change * np.outer(w, h / np.linalg.norm(h))
    turns, remainders = [], []
    for near in (1e-2, 1e-4, 1e-6):
        alpha = 1 - near
        root_c = math.sqrt(bounds.c_alpha(alpha))

        def product(weights, alpha=alpha):
            slopes = layers(weights, h, alpha)[1]
            return (last * slopes[1]) @ weights[1] * slopes[0]

        turned = np.linalg.norm(product([one, two + top]) - product([one, two]))
        turns.append(turned / (root_c * change ** (1 / 3) * 4 * math.sqrt(size * math.log(size))))
        start = gradient([one, two], last, h, alpha)
        linear = np.sum(start[0] * low) + np.sum(start[1] * top)
        moved = output([one + low, two + top], last, h, alpha)
        moved -= output([one, two], last, h, alpha)
        bound = bounds.linearisation_bound(alpha, change, 2, size)
        remainders.append(abs(moved - linear) / bound)
    for quotients in (turns, remainders):
        assert quotients[2] > 50 * quotients[1] > 50 * quotients[0]
    assert turned == pytest.approx(change * np.linalg.norm(last) / 2, rel=1e-3)
    half = change**2 * np.linalg.norm(last) * np.linalg.norm(h) / 2
    assert abs(moved - linear) == pytest.approx(half, rel=1e-2)
    # part 3: the product of layers between two of them
    _, (one, two, three), _ = draw(rng, size, 3)
    turn, quotients = change * np.outer(np.eye(size)[1], w), []
    for near in (1e-2, 1e-4, 1e-6):

        def between(weights, alpha=1 - near):
            slopes = layers(weights, h, alpha)[1]
            return three @ (slopes[1][:, None] * weights[1] * slopes[0])

        turned = np.linalg.norm(between([one, two + turn]) - between([one, two]), 2)
        quotients.append(turned / math.sqrt(bounds.c_alpha(1 - near)))
    assert quotients[2] > 50 * quotients[1] > 50 * quotients[0]
    assert turned == pytest.approx(change * np.linalg.norm(three[:, 1]) / 2, rel=1e-2)


def test_convex_not_smooth():
    """Would fail if fixed steps lowered the absolute error of one example every time."""
    rng = np.random.default_rng(0)
    for mu in (0.0, 1e-4):
        size, step = 2000, 0.1
        a, (w,), last = draw(rng, size, 1)
        h, label, errors = a @ np.array([0.6, 0.8]), 1.0, []
        g, length = w @ h, h @ h
        for _ in range(200):  # a step changes W_1 by -eta e D B' h', so g by that times h'h
            z = last @ (slope(g, 0.0) * g) - label
            errors.append(math.sqrt(mu**2 + z**2) - mu)
            outer = np.sign(z) if mu == 0 else z / math.sqrt(mu**2 + z**2)
            g = g - step / size * outer * slope(g, 0.0) * last * length
        pairs = np.maximum(errors[1:], errors[:-1])
        assert pairs.min() > 0.4 * step / 2
        assert np.max(np.diff(errors[-20:])) > 0


def test_first_loss():
    """Would fail if a first loss of less than n/100 became unlikely in wide nets."""
    rng = np.random.default_rng(0)
    for size in (50, 500, 5000):
        g = rng.standard_normal((1000, size)) * math.sqrt(2 / size)
        norms = np.linalg.norm(np.maximum(g, 0), axis=1)  # of h_1; the output is N(0, norm^2)
        below = np.mean(stats.chi2.cdf(0.01 / norms**2, 1))
        assert below == pytest.approx(stats.chi2.cdf(0.01, 1), rel=0.05)
    assert stats.chi2.cdf(0.01, 1) == pytest.approx(0.08, abs=0.001)
    largest = 1 / (2 * sp.sqrt(n * d))
    assert same(
        1 / d - largest * sp.sqrt(n / d), 1 / (2 * d)
    )  # it is the largest that (162) allows
    assert power_of(n, largest**2 * m) == -1 != 0


def test_percentages():
    """Would fail if rounding of Table 1 allowed 91 % and 4 %."""
    half = Fraction(5, 10000)

    def reduction(own, other, sign=0):
        """The reduction in percent, its means moved by half a unit in opposite directions."""
        own, other = Fraction(own) - sign * half, Fraction(other) + sign * half
        return 100 * (1 - own / other)

    assert reduction("0.022", "0.197", 1) < Fraction("90.5")
    assert reduction("2.362", "2.442", 1) < Fraction("3.5")
    # the two others follow, and slope 0.05 in the place of ReLU gives the two that do not
    assert reduction("0.018", "0.024", -1) < 22 < reduction("0.018", "0.024", 1)
    assert round(reduction("0.143", "0.169")) == 15
    assert round(reduction("0.022", "0.245")) == 91
    assert round(reduction("2.362", "2.470")) == 4


def test_lost_examples():
    """Would fail if (90) followed from (85), or if the factor n left the width at n^5."""
    size = 8
    turns = np.tile([3.0, 4.0], (size, 1)) / 5  # changes of n examples, all in one direction
    assert np.linalg.norm(turns.sum(axis=0)) ** 2 == pytest.approx(size * np.sum(turns**2))

    def radius(factor):
        """The omega at which the factor times omega^(2/3) L^4 m/d is the lower bound of (92)."""
        return (delta * m / (n * d * L) / (factor * L**4 * m / d)) ** sp.Rational(3, 2)

    assert same(radius(1), RADIUS)
    assert same(width(MOVED, radius(1)), n**5 * L**15 * d / delta**4)  # as printed
    assert power_of(n, radius(n)) == -3
    assert same(width(MOVED, radius(n)), n**8 * L**15 * d / delta**4)
    zou_gu = n**8 * L**12 * d / (delta / L) ** 4
    assert same(width(MOVED, radius(n)) / zou_gu, 1 / L)


def test_cross_term():
    """Would fail if (15) were of the order of the descent at the radius of Lemma 4.2."""
    factor = CROSS * BOUNDED
    assert same(factor, n * L**2 * omega**third / sp.sqrt(delta))  # (15)
    assert same(factor.subs(omega, RADIUS), sp.sqrt(n / L))
    assert same(absorbing(factor), SELECTED)
    assert same(width(MOVED, absorbing(factor)), n**8 * L**12 * d / delta**4)
    # in numbers, with the logarithms of the radius and of (15)
    for examples in (1e2, 1e6):
        radius = bounds.omega_gradient(examples, 3, 1e9, 0.2)
        left = radius ** (1 / 3) * examples * 9 * math.sqrt(math.log(1e9) / 0.2)
        assert left == pytest.approx(math.sqrt(examples / 3))


def test_special_width():
    """Would fail if the proof of B.14 gave a width linear in n, or one free of c."""
    factor = sp.sqrt(c) * CROSS * d / sp.sqrt(c * m)  # (12) with (164)
    printed = 1 / (d ** sp.Rational(3, 2) * L**6)
    assert same(factor.subs(omega, printed), sp.sqrt(n))
    by_90 = (m / d**2 / (n * L**4 * m / d)) ** sp.Rational(3, 2)
    assert same(absorbing(factor), by_90)
    moved = d / sp.sqrt(c * m) * sp.sqrt(n)  # (165) with (108)
    assert same(width(moved, printed), d**5 * n * L**12 / c)
    assert same(width(moved, by_90), d**5 * n**4 * L**12 / c)


def test_sgd_radius():
    """Would fail if the radius of Lemma B.10 implied that of Appendix B.7."""
    assert same(RADIUS / SELECTED, (n / L) ** sp.Rational(3, 2))
    assert same(width(MOVED_BY_SGD, RADIUS), n**8 * L**15 * d / (b * delta**5))  # as printed
    assert same(width(MOVED_BY_SGD, SELECTED), n**11 * L**12 * d / (b * delta**5))
    steps = n**5 * L**2 / (delta**2 * b)
    moved = sp.sqrt(m * b / d) * d * delta / (m * n**3 * L**2) * steps * sp.sqrt(n)
    assert same(moved, MOVED_BY_SGD)  # the last lines of the proof of Lemma B.10


def test_sgd_jensen():
    """Would fail if batches had the share b/n of the gradient in the mean of their norms."""
    share = b / n
    factor = CROSS * BOUNDED / share  # third line of (112) over E|grad_B| |grad|, and the share
    needed = factor * share  # with E|grad_B| = share |grad| it is what Appendix B.7 absorbs
    assert same(absorbing(needed), SELECTED)
    by_9 = b * sp.sqrt(m / (n * d)) * BOUNDED  # E|grad_B| over |grad|, by (9) and (14)
    assert same(by_9 / share, n / sp.sqrt(delta))
    assert same(absorbing(factor * by_9), delta**3 / (n**6 * L**6))
    assert same(width(MOVED_BY_SGD, absorbing(factor * by_9)), n**17 * L**12 * d / (b * delta**8))
    # examples whose gradients cancel: a batch keeps the order that (9) allows
    rng = np.random.default_rng(0)
    gradients = rng.standard_normal((40, 200))
    gradients -= gradients.mean(axis=0)
    largest = np.linalg.norm(gradients, axis=1).max()
    for batch in (1, 4, 10):
        sums = [gradients[rng.permutation(40)[:batch]].sum(axis=0) for _ in range(100)]
        mean = np.mean(np.linalg.norm(sums, axis=1))
        assert np.linalg.norm(gradients.sum(axis=0)) < 1e-9
        assert mean > 0.5 * math.sqrt(batch) * largest


def lemma_43(moved):
    """The second and third terms of Lemma 4.3 at a movement, without logarithms and sqrt(c)."""
    return d * sp.sqrt(m) * L**2 * moved ** (4 * third), d * sp.sqrt(m / n) * L * moved


def test_lost_root_n():
    """Would fail if (9) with (108) gave the movement of B.9, or it left slope -1 the best."""
    step = d / (n * L**2 * m)

    def early(moved):
        """The power of n of the second term of Lemma 4.3 over the fall of its training term."""
        price, _ = lemma_43(moved)
        gain = step * t * m / n
        quotient = (price / gain).subs({L: 1, d: 1}).subs(t, n ** (1 - kappa))
        return power_of(n, quotient.subs(m, n ** (10 + 2 * tau)))

    by_9 = step * t * sp.sqrt(n * m / d)  # times the root of the first loss
    assert sp.expand(early(by_9) + (kappa + tau) / 3) == 0  # printed, the loss free of n
    assert sp.expand(early(by_9 * sp.sqrt(n)) - (2 - kappa - tau) / 3) == 0
    printed, corrected = lemma_43(by_9), lemma_43(by_9 * sp.sqrt(n))
    rest = t ** (4 * third) / (m * n**4 * L**4) ** (third / 2)
    assert same(printed[0], d ** (5 * third) * rest)
    assert same(corrected[0] / printed[0], n ** (2 * third))
    assert same(corrected[1] / printed[1], sp.sqrt(n))
    # the loss is of order n: outputs of order 1 at n examples
    rng = np.random.default_rng(0)
    a, hidden, last = draw(rng, 200, 2, inputs=50)
    losses = [output(hidden, last, a[:, i], 0.0) ** 2 for i in range(50)]
    assert 0.1 < np.mean(losses) < 10


def test_convex_distance():
    """Would fail if the gradient of an output were free of m, or (111) gave (146)."""
    rng = np.random.default_rng(0)
    for size, depth in ((100, 2), (400, 2), (400, 4)):
        a, hidden, last = draw(rng, size, depth)
        found = gradient(hidden, last, a @ np.array([0.6, 0.8]), -0.5)
        squared = sum(np.sum(g**2) for g in found)
        assert 0.4 < squared / (depth * size / 2) < 2.5
    change = MOVED * sp.sqrt(L * m / d)
    assert same(change, n * sp.sqrt(L / delta))
    assert power_of(n, change) == 1 != power_of(n, sp.sqrt(L))
    # the squared loss: convexity and the fall of the loss give E^2 <= 4 L(0) sum |e|^2
    label, at_best = rng.standard_normal((2, 50))
    first = label + 2 * rng.standard_normal(50)
    for share in (1.0, 0.5, 0.1):
        now = label + share * (first - label)
        at_best = label + 0.05 * (at_best - label)
        excess = np.sum((now - label) ** 2) - np.sum((at_best - label) ** 2)
        squares = np.sum((2 * (now - label)) ** 2)
        assert excess**2 <= squares * 4 * np.sum((first - label) ** 2)


def test_sum_over_layers():
    """Would fail if one layer's bound were a bound on the sum of L such terms."""
    for depth in (4, 16):
        norms = np.full(depth, 0.1)  # of the changes of the layers
        term = depth**2 * norms
        assert term.sum() == pytest.approx(depth**3 * norms.max())
        assert term.sum() == pytest.approx(depth**2.5 * np.linalg.norm(norms))
    # L linear layers that all change: the change of the output is the sum of L terms
    rng = np.random.default_rng(0)
    a, hidden, last = draw(rng, 40, 4)
    h = a @ np.array([0.6, 0.8])
    start = gradient(hidden, last, h, 0.0)
    changes = [g / np.linalg.norm(g) for g in start]
    parts = [np.sum(g * w) for g, w in zip(start, changes, strict=True)]
    assert sum(parts) > 2 * max(parts)
    # with L^(5/2) in (12) the radius is that of (90) with its factor n
    factor = CROSS * sp.sqrt(L) * BOUNDED
    with_n = (delta / (n * L) / (n * L**4)) ** sp.Rational(3, 2)
    assert same(absorbing(factor), with_n)
    # (129): L terms of Lemma B.3's part 4 at the flips of Lemma B.4, times the kinks
    term = sp.sqrt(m * omega ** (2 * third) * L) * omega * L ** sp.Rational(3, 2)
    assert (power_of(L, term), power_of(L, L * term)) == (2, 3)


def test_convex_width():
    """Would fail if the argument of (111) with (147) gave a width free of epsilon."""
    slow = sp.sqrt(delta * m / (n * d)) / sp.sqrt(n * L)  # |grad| over the excess
    by_roots = sp.sqrt(n) / (slow * sp.sqrt(eps))
    assert same(width(by_roots, RADIUS), n**6 * L**16 * d / (delta**4 * eps))
    by_logarithm = logs / slow
    assert same(width(by_logarithm, RADIUS), n**5 * L**16 * d * logs**2 / delta**4)
    # the sum of relative decreases is at most the logarithm, for any falling excess
    excess = np.sort(np.random.default_rng(0).uniform(1e-6, 1, 200))[::-1]
    assert np.sum(-np.diff(excess) / excess[:-1]) <= math.log(excess[0] / excess[-1])


def test_sgd_risk():
    """Would fail if (115) in Lemma 4.3 gave (134) without a power of the batch size."""
    step = d * delta / (n**3 * L**3 * m)
    moved = step * t * sp.sqrt(b * m / d) * sp.sqrt(n)
    first, second = (term.subs({d: 1, delta: 1}) for term in lemma_43(moved))
    printed = t ** (4 * third) / (m ** (third / 2) * n ** (10 * third) * L**2)
    assert same(first, b ** (2 * third) * printed)
    assert same(second, sp.sqrt(b) * t / (n**3 * L**2))
    mean = [power_of(b, term) for term in lemma_43(moved * sp.sqrt(b / n))]
    assert mean == [4 * third, 1]
    of_mean = lemma_43(moved * sp.sqrt(b / n))
    assert same(of_mean[0].subs({d: 1, delta: 1, b: sp.sqrt(n)}), printed)
    assert same(of_mean[1].subs({d: 1, delta: 1, b: sp.sqrt(n)}), t / (n**3 * L**2))
    # Lemma B.10 against the display of Appendix B.10, over the root of the first loss
    display = d * sp.sqrt(n) / (delta * sp.sqrt(m * b))
    assert same(MOVED_BY_SGD / sp.sqrt(n) / display, n * sp.sqrt(n / d))


def test_dropped_root_m():
    """Would fail if the sum before (55) were of the order 1/m, or m = L^2 sufficed with it."""
    q, squared = sp.sqrt(m) / logs**2, logs / m
    total = q * squared * logs
    assert (power_of(m, total), power_of(logs, total)) == (-sp.Rational(1, 2), 0)
    # L terms of the root, times omega L^(3/2), are of order omega L^(3/2)
    assert same((L * sp.sqrt(total) * m ** sp.Rational(1, 4)) ** 4, L**4)
    assert same((L * sp.sqrt(1 / m) * sp.sqrt(m)) ** 2, L**2)


def test_gradient_probability():
    """Would fail if Hoeffding's inequality gave an exponent of order m delta^2."""
    equal = m / 2 * (delta / (n * L) * n) ** 2
    single = m / 2 * (delta / (n * L)) ** 2
    assert same(equal, m * delta**2 / (2 * L**2))
    assert same(single, m * delta**2 / (2 * n**2 * L**2))
    # the best that such Z_k allow: they are 0 but with the chance delta/L, exactly binomial
    size, depth, distance = 40000, 1000, 0.5
    chance = distance / depth
    short = stats.binom.logcdf(size * chance / 2, size, chance)
    assert -short < 1e-3 * size * distance**2
    assert -short > size * distance**2 / (2 * depth**2)  # as Hoeffding's inequality has it


def test_tiny_changes():
    """Would fail if the chance of a neuron that breaks (127) fell like exp(-sqrt(m)/ln m)."""
    s, chances = 1.5, []
    sizes = (1e4, 1e8, 1e16)
    for size in sizes:
        change = s**3 * (size * math.log(size)) ** -1.5  # C = 1
        assert s == pytest.approx(change ** (1 / 3) * math.sqrt(size * math.log(size)))

        def breaks(top, change=change, size=size):
            """The chance that |g| < omega (1 - s/B), times the density of B."""
            reach = change * (1 - s / top) / math.sqrt(2 / size)
            return math.erf(reach / math.sqrt(2)) * stats.norm.pdf(top)

        one = quad(breaks, s, 12)[0]
        chances.append(-math.expm1(size * math.log1p(-one)))
    scaled = [p * math.log(v) ** 1.5 for p, v in zip(chances, sizes, strict=True)]
    assert scaled == pytest.approx([scaled[0]] * 3, rel=0.02)
    # whatever the constant in the exponent, it would have to vanish
    exponents = [
        -math.log(p) / (math.sqrt(v) / math.log(v)) for p, v in zip(chances, sizes, strict=True)
    ]
    assert exponents[0] > 20 * exponents[1] > 400 * exponents[2]
    # such a neuron does break it, after one push
    size = sizes[0]
    change = s**3 * (size * math.log(size)) ** -1.5
    g, top = -change / 100, 3.0
    remainder = top * (max(g + change, 0) - max(g, 0))  # the linear prediction is 0 at g < 0
    assert remainder > bounds.linearisation_bound(0.0, change, 1, size)


def test_risk_logarithms():
    """Would fail if Lemma 4.3 at the movement of B.9 had the logarithms of (7)."""
    step = d / (n * L**2 * m)
    first, second = lemma_43(step * t * sp.sqrt(n * m * logs / d))
    first, second = first * logs, second * sp.sqrt(logs)
    rest = t ** (4 * third) / (m ** (third / 2) * n ** (2 * third) * L ** (2 * third))
    assert same(first, d ** (5 * third) * logs ** (5 * third) * rest)
    assert same(second, d ** sp.Rational(3, 2) * logs * t / (n * L))
    # printed: no logarithm and d^(1/3); sqrt(d ln m)
    assert not same(first, d**third * rest)
    assert not same(second, sp.sqrt(d * logs) * t / (n * L))


def test_sgd_slope_factor():
    """Would fail if the quotient after (120) were free of the slope."""
    excess = eta * m * L * sp.sqrt(n * b) / d
    rate = c * eta * delta * m * b / (n**2 * d)
    assert same(excess**2 / rate, eta * m * n**3 * L**2 / (c * d * delta))
    found = [1 - bounds.gamma_sgd(alpha, 1e-9, 10, 0.1, 1e4, 100, 2) for alpha in (-1.0, 0.0)]
    assert found[0] / found[1] == pytest.approx(2, rel=1e-4)
    steps = (excess / rate) ** 2
    assert power_of(c, steps) == -2
    small = c * d * delta / (m * n**3 * L**2)
    moved = sp.sqrt(m * b / d) * small * steps
    assert power_of(c, width(moved, RADIUS)) == -2
    assert power_of(c, width(moved / c, RADIUS)) == -4  # as printed
