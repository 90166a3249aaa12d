"""Certificates of the errata of Allen-Zhu et al. 2019."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from scipy import stats

from overparam.bounds import allenzhu2019 as bounds

HALF, THIRD = sp.Rational(1, 2), sp.Rational(1, 3)
n, m, L, d, b, delta, omega, eps = sp.symbols("n m L d b delta omega eps", positive=True)
logm = sp.symbols("logm", positive=True)


def powers(expression):
    """The exponents of a product of powers, by letter."""
    expanded = sp.expand_log(sp.log(expression), force=True)
    found = {str(x): expanded.coeff(sp.log(x)) for x in expression.free_symbols}
    return {letter: power for letter, power in found.items() if power}


def step3_width(first_order, movement):
    """The m at which a movement reaches the radius of step 3 of (12.2), up to constants.

    first_order: the factor of sqrt(n F) |W'| in Theorem 4, in terms of omega.
    """
    gained, gradient = delta * m / (d * n**2), sp.sqrt(n * m / d)
    at_1 = sp.sqrt(n) * first_order.subs(omega, 1) * gradient  # omega enters as omega^(1/3)
    assert powers(first_order)["omega"] == THIRD
    assert powers(movement)["m"] == -HALF
    return (movement.subs(m, 1) / (gained / at_1).subs(m, 1) ** 3) ** 2


def lemma_8_7(lower):
    """The bound of Lemma 8.7 at s = m omega^(2/3) L; lower: that of its part below layer l."""
    return L * sp.sqrt(m * omega ** (2 * THIRD) * L * logm / d) * lower


MOVEMENT = n**3 * sp.sqrt(d / m) * logm / delta  # (12.1)


def heavy_tail(z):
    """f and f' of the convex loss of the first certificate."""
    if z < 0:
        return 0.5 - z / 2 + z**2 / 2, z - 0.5
    return 0.5 / (1 + z), -0.5 / (1 + z) ** 2


def test_convex_loss_without_minimizer():
    """Would fail if steps of order 1/eps sufficed for the convex loss that falls like 1/z."""
    z, kappa, u = sp.symbols("z kappa u", positive=True)  # u = 1 + z
    tail, left = 1 / (2 * (1 + z)), HALF - z / 2 + z**2 / 2
    assert all(sp.diff(tail - left, z, k).subs(z, 0) == 0 for k in (0, 1))
    first, second = (sp.factor(sp.diff(tail, z, k).subs(z, u - 1)) for k in (1, 2))
    assert second == u**-3  # in (0, 1]
    # the cube grows by at most a constant in a step
    step = sp.expand((u - kappa * first) ** 3 - u**3)
    terms = 3 * kappa / 2, 3 * kappa**2 / (4 * u**3), kappa**3 / (8 * u**6)
    assert step == sum(terms)
    most = sum(terms).subs(u, 1)  # none of them grows with z
    steps = []
    for target in (1 / 8, 1 / 16, 1 / 32, 1 / 64):
        position, t = -1.0, 0
        while heavy_tail(position)[0] > target:
            position, t = position - heavy_tail(position)[1], t + 1
        steps.append(t)
        assert t >= ((2 * target) ** -3 - 64) / float(most.subs(kappa, 1))
    growth = np.log2(np.divide(steps[1:], steps[:-1]))
    assert np.all(growth > 2.7)
    assert growth[-1] == pytest.approx(3, abs=0.05)
    # a minimizer that is far away does not help
    steps = []
    for target in (1 / 8, 1 / 16, 1 / 32, 1 / 64):
        position, t = 0.0, 0
        while (far := math.hypot(position - 1 / target, 1)) > 3 / 2:  # the error is above target
            position, t = position - 2 * target * (position - 1 / target) / far, t + 1
        steps.append(t)
        assert t >= (1 / target - math.sqrt(5) / 2) / (2 * target)
    assert np.log2(steps[-1] / steps[-2]) == pytest.approx(2, abs=0.1)
    # the same argument with a minimizer at a bounded distance: 1/F grows by a constant
    loss = 1.0
    for _ in range(1000):
        loss -= loss**2 / 4
    assert loss <= 4 / 1000


def test_unbounded_loss_without_small_gradient():
    """Would fail if z + sin(z)/2 were not smooth, or were convex, or had a small derivative."""
    z, cosine = sp.symbols("z cosine", real=True)
    loss = z + sp.sin(z) / 2
    slope = sp.diff(loss, z).subs(sp.cos(z), cosine)
    assert slope == 1 + cosine / 2  # at least 1/2 for cosines of at least -1
    assert sp.diff(loss, z, 2) == -sp.sin(z) / 2  # at most 1/2 in size, and of both signs
    assert [loss.subs(z, -k * sp.pi) for k in (1, 1000)] == [-sp.pi, -1000 * sp.pi]
    # what saves Appendix A: the decreases add up to at most F(0) - inf F
    position, decrease, smallest = 3.0, 0.0, math.inf
    for _ in range(400):
        slope = position / (1 + position**2) ** 2  # of r^2/(1 + r^2)/2
        decrease, smallest = decrease + slope**2 / 2, min(smallest, abs(slope))
        position -= slope
    assert decrease <= 0.5
    assert smallest <= math.sqrt(2 * 0.5 / 400)


def test_remark_1_gradient_follows_the_loss():
    """Would fail if the gradient of cross entropy stayed while the loss tends to zero."""
    rng = np.random.default_rng(0)
    for scale in (0.1, 1, 10):
        logits = scale * rng.standard_normal((200, 5))
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        loss = -np.log(p[:, 0])
        gradient = np.linalg.norm(p - np.eye(5)[0], axis=1)
        assert np.all(gradient <= math.sqrt(2) * (1 - p[:, 0]) + 1e-12)
        assert np.all(gradient <= math.sqrt(2) * loss + 1e-12)
    x = rng.standard_normal((10, 20))
    y = np.sign(rng.standard_normal(10))
    w, jacobian, seen = np.zeros(20), np.linalg.norm(x, 2), []
    for _ in range(4000):
        margins = y * (x @ w)
        gradient = -x.T @ (y / (1 + np.exp(margins)))
        seen.append((np.log1p(np.exp(-margins)).sum(), np.linalg.norm(gradient)))
        w -= 0.1 * gradient
    losses, norms = np.transpose(seen)
    assert losses[-1] < losses[0] / 1000
    assert norms[-1] < norms[0] / 1000
    assert np.all(norms <= jacobian * losses)


def test_depth_powers():
    """Would fail if the sum over the layers in (11.3) gave L^2, or its width L^12."""
    found = {}
    for name, lower in (("8.6", sp.sqrt(L)), ("printed proof", L), ("7.3c, d", 1)):
        of_one_layer = lemma_8_7(lower)
        total = L * of_one_layer  # (11.5) for each of the L layers of (11.3)
        width = powers(step3_width(total, MOVEMENT))
        found[name] = powers(of_one_layer)["L"], powers(total)["L"], width["L"]
        assert (width["n"], width["d"], width["delta"]) == (24, 1, -8)
        assert width["logm"] == 5
    assert found["8.6"] == (2, 3, 18)
    assert found["printed proof"] == (sp.Rational(5, 2), sp.Rational(7, 2), 21)
    assert found["7.3c, d"] == (sp.Rational(3, 2), sp.Rational(5, 2), 15)
    # the second sum of Lemma 8.7 is smaller, with L for its product, in the printed range
    second = L * sp.sqrt(m / d) * (L ** (-9 * HALF) / logm**3) * L
    first = lemma_8_7(1).subs(omega, L ** (-9 * HALF) / logm**3)
    assert all(power < 0 for power in powers(second / first).values())
    # the printed width is what (11.5) for a single layer gives
    single = lemma_8_7(sp.sqrt(L))
    assert powers(step3_width(single, MOVEMENT))["L"] == 12
    # Theorem 5b, at |W'| = omega, has the L^3 of the sum
    theorem_5b = L * sp.sqrt(m * omega ** (2 * THIRD) * L * logm / d) * omega * L ** (3 * HALF)
    assert sp.simplify(theorem_5b / (L * single * omega)) == 1


def steps_needed(target, slope):
    """Steps of (A.2) with c = 1 from F = 1 to a target, and the sum of the |loss| on the way."""
    loss, steps, path = 1.0, 0, 0.0
    while loss > target:
        gradient = slope(loss)
        loss, steps, path = loss - gradient**2, steps + 1, path + gradient
    return steps, path


def test_widths_for_other_losses():
    """Would fail if (A.2) gave a movement like eps^(-1/2), or one without a logarithm."""
    # bounded: |loss| = eps at every step until F = 1 is used up, which (A.2) does not exclude
    for target in (0.1, 0.03, 0.01):
        steps, path = steps_needed(0, lambda _, target=target: target)
        assert steps * target**2 == pytest.approx(1, rel=0.02)
        assert path * target == pytest.approx(1, rel=0.02)
        assert path == pytest.approx(math.sqrt(steps), rel=0.02)  # Cauchy-Schwarz is attained
    # the width goes like the square of the movement: eps^-2, where eps^-1 is printed
    total = 1 / eps
    moved = sp.sqrt(n * m / d) * (d * n**2 / (delta * m)) * n * total
    width = powers(step3_width(lemma_8_7(sp.sqrt(L)) * L, moved))
    assert width["eps"] == -2
    # convex: |loss| = F/D; the movement goes like log(1/eps), the width like its square
    targets = (1e-1, 1e-2, 1e-3, 1e-4)
    paths = [steps_needed(target, lambda loss: loss / 2)[1] for target in targets]
    per_decade = np.diff(paths) / math.log(10)
    assert np.all(abs(per_decade / 2 - 1) < 0.1)
    ratio = np.square(paths) / np.log(np.divide(1, targets))
    assert np.all(np.diff(ratio) > 1)
    # F(0) is of order n: 1/rate times n
    rate = (d * delta / (n**4 * L**2 * m)) * delta * m / (d * n**2)
    assert powers(n / rate) == {"n": 7, "L": 2, "delta": -2}
    assert powers(1 / rate)["n"] == 6


def test_sgd_width():
    """Would fail if (13.1) and step 3 of (13.2) gave n^24 b."""
    step = b * delta * d / (n**5 * L**2 * m * logm**2)
    steps = d * n**2 / (step * delta * m)
    assert powers(steps) == {"n": 7, "L": 2, "logm": 2, "b": -1, "delta": -2}
    moved = step * sp.sqrt(n**2 * m / (b * d)) * steps * sp.sqrt(n) * logm
    expected = n ** (7 * HALF) * sp.sqrt(d / (b * m)) * logm / delta
    assert sp.simplify(moved / expected) == 1  # (13.1)
    width = step3_width(lemma_8_7(sp.sqrt(L)), moved)
    assert powers(width) == {"n": 25, "L": 12, "d": 1, "logm": 5, "b": -1, "delta": -8}
    printed = n**24 * L**12 * b * d * logm**5 / delta**8
    assert powers(width / printed) == {"n": 1, "b": -2}  # too narrow for b < sqrt(n)


def side_by_side(depth, seed=0):
    """The norm of [A_1 ... A_L], from one neuron of each layer, in a net of 6 L^2 neurons."""
    rng, width = np.random.default_rng(seed), 6 * depth**2
    h = rng.standard_normal(width)
    h /= np.linalg.norm(h)
    parts = np.zeros((width, 0))
    for _ in range(depth):
        w = rng.standard_normal((width, width)) * math.sqrt(2 / width)
        parts = w @ parts
        mask = w @ h >= 0
        h = w @ h * mask
        parts = np.column_stack([parts * mask[:, None], np.eye(width)[rng.integers(width)]])
    return np.linalg.norm(rng.standard_normal((width, width)) @ parts * math.sqrt(2 / width), 2)


def test_sign_errors_at_one_layer():
    """Would fail if the printed sum were O(sqrt L), or the parts of one layer were aligned."""
    sums, depths = [], [10, 100, 1000, 10**4]
    for depth in depths:
        inner = 0.01 / depth**1.5
        sums.append(math.expm1(depth * math.log1p(3 * inner)) / inner)
        assert 3 * depth <= sums[-1] <= 3.4 * depth  # the terms with j = 1 alone are 3 L
    ratio = np.divide(sums, np.sqrt(depths))
    assert np.all(ratio[1:] > 3 * ratio[:-1])
    # the repair: side by side, the parts keep a norm of order 1; each has one of about sqrt 2
    for depth in (3, 6, 12):
        assert side_by_side(depth) < 2.2  # sqrt(2 L), that is 4.9 at last, if they were aligned
    # and the errors' own recursion stays bounded, at the smaller number of layers as well
    for depth in depths:
        for inner in (0.01 * depth**-1.5, 0.1 / depth):
            largest = 3 * (1 + 3 * inner) ** depth
            assert largest < 4.1


def test_range_of_omega():
    """Would fail if the printed range kept the flips within what Lemma 8.7 requires."""
    largest = L ** (-9 * HALF) * logm**-3
    flips = m * omega ** (2 * THIRD) * L
    against = {p: powers(flips.subs(omega, largest) / (m / (L**p * logm))) for p in (2, 3)}
    assert against[3] == {"L": 1, "logm": -1}  # too many from L = log m on
    assert against[2] == {"logm": -1}  # what Lemma 7.3c, d requires: never
    corrected = (L**4 * logm) ** (-3 * HALF)
    assert powers(flips.subs(omega, corrected) / (m / (L**3 * logm))) == {}
    assert powers(corrected) == {"L": -6, "logm": -3 * HALF}
    # at that level the products of Lemma 8.7 stay bounded in the depth
    for depth in (10, 100, 1000):
        level = 1 / depth  # sqrt(s log m/m) at s = m/(L^2 log m), constant 1
        assert (1 + 0.3 * level) ** depth < 1.36
    # step 3 of (12.2) keeps within the narrower range
    used = (delta / (n**3 * L**2 * sp.sqrt(logm))) ** 3
    assert powers(used / corrected) == {"delta": 3, "n": -9}


def test_steps_logarithm():
    """Would fail if log(1/eps) steps, times 1/rate, brought n log^2 m below eps."""
    rate = 1e-3
    needed = {}
    for start in (10.0, 1e4, 1e8):
        for target in (1.0, 0.1):
            steps = math.ceil(math.log(start / target) / -math.log1p(-rate))
            assert start * (1 - rate) ** steps <= target < start * (1 - rate) ** (steps - 1)
            needed[start, target] = steps * rate
    assert needed[10.0, 1.0] > 2  # where log(1/eps) = 0
    per_log = [needed[start, 0.1] / math.log(10) for start in (10.0, 1e4, 1e8)]
    assert per_log == pytest.approx([2, 5, 9], rel=0.01)
    # the first loss: half the mean square of the output plus that of the label, above 1 at n = 3
    rng = np.random.default_rng(0)
    outputs = rng.standard_normal((4000, 3))  # B h with |h| = 1 and d = 1
    assert np.mean(0.5 * (outputs - 1) ** 2 * 3) > 1


def test_width_logarithms():
    """Would fail if the printed width kept (12.1) within the radii of Theorem 3 and Lemma 8.2."""
    theorem_3 = (delta / n**3) ** (3 * HALF) * L**-6 * logm**-3
    by_proof = (delta / n**3) ** (3 * HALF) * L**-6 * logm ** (-3 * HALF)
    lemma_82 = L ** (-9 * HALF) * logm**-3
    conditions = {}
    for log_power in (5, 8):
        width = n**24 * L**12 * d * logm**log_power / delta**8
        moved = MOVEMENT.subs(m, width)
        radii = (theorem_3, by_proof, lemma_82)
        conditions[log_power] = [powers((moved / r) ** (2 * THIRD)) for r in radii]
    assert conditions[5] == [
        {"logm": 1, "delta": 1, "n": -3},
        {"delta": 1, "n": -3},
        {"logm": 1, "delta": 2, "n": -6, "L": -1},
    ]
    assert all("logm" not in c or c["logm"] < 0 for c in conditions[8])
    # numbers, with the library's formulas, at one layer and delta = 1: which radius is exceeded
    for size, outputs, exceeded in (
        (2, 1.0, (False, True, False)),
        (2, 1e60, (False, True, True)),
        (10, 1.0, (False, False, False)),
    ):
        width = 10 ** bounds.thm1_log10_width(size, 1, 1.0, outputs)
        radii = (
            bounds.thm1_radius(size, 1, 1.0, width) * (1 + 1e-9),
            bounds.thm3_radius(size, 1, 1.0, width),
            bounds.omega_range(width, 1, outputs)[1],
        )
        moved = bounds.thm1_movement(size, 1.0, width, outputs)
        assert tuple(bool(moved > radius) for radius in radii) == exceeded


def test_claim_95():
    """Would fail if half of the neurons had |<B_k, v>| above one standard deviation."""
    within = 1 - Fraction(1, 6) + Fraction(1, 40) - Fraction(1, 336)  # of exp(-x^2/2) on [0, 1]
    assert within**2 * Fraction(7, 11) > Fraction(46, 100)  # 7/11 < 2/pi; 0.678^2 is below it
    assert float(mp.erfc(mp.sqrt(0.5))) == pytest.approx(0.3173, abs=1e-4)
    half = [stats.binom.sf(size // 2 - 1, size, 0.3174) for size in (100, 400, 1600)]
    assert half[0] < 1e-3
    assert half[1] < 1e-10
    assert half[2] < 1e-40
    quarter = [stats.binom.cdf(size // 4 - 1, size, 0.3173) for size in (400, 1600, 6400)]
    assert quarter[0] > quarter[1] > quarter[2]
    assert quarter[1] < 1e-8
    # what the proof of Lemma 9.3 is left with: the size of N, and its last constant
    union = math.erf(1 / 4)  # n times the chance of a miss is largest at n = 1
    assert 0.7 / 30 < 1 / 40 < (1 - union) * 2 / 3 / (10 * math.sqrt(2.2))  # Claim 9.4
    assert 1 / 14000 < 0.2 * (1 / 15) * (0.717 / 30 / 4) < 1 / 12000


def test_fact_96_with_a_mean():
    """Would fail if the upper end held for every mean, or the lower end for none."""
    cdf = mp.ncdf
    for mean, t in ((mp.mpf(3), mp.mpf(1) / 2), (mp.mpf("0.6"), mp.mpf(1) / 2)):
        tail = cdf(mean - t) + cdf(-mean - t)
        assert tail > 1 - t * 2 / 3
    assert cdf(mp.mpf(3) - 0.5) + cdf(-3.5) > 0.99 > 1 - mp.mpf(1) / 3
    t = np.linspace(1e-3, 1, 60)[:, None]
    mean = np.linspace(0, 4, 81)
    tail = stats.norm.cdf(mean - t) + stats.norm.cdf(-mean - t)
    assert np.all(tail >= 1 - 0.8 * t)
    centred = 2 * stats.norm.sf(t)
    assert np.all((centred >= 1 - 0.8 * t) & (centred <= 1 - t * 2 / 3))


def moved_residual(depth, width=300, seed=0):
    """|h'_(L-1)|/(tau omega) of a residual net whose changes stretch every layer."""
    rng = np.random.default_rng(seed)
    tau, change = 1 / (depth * math.log(width)), 1e-3
    h = np.maximum(rng.standard_normal(width) * math.sqrt(2 / width), 0)
    changed = h.copy()
    for _ in range(depth - 1):
        w = rng.standard_normal((width, width)) * math.sqrt(2 / width)
        h = np.maximum(h + tau * w @ h, 0)
        # W' = change times the projection on h, of spectral norm change
        changed = np.maximum((1 + tau * change) * changed + tau * w @ changed, 0)
    return np.linalg.norm(changed - h) / (tau * change)


def test_residual_moves():
    """Would fail if the move of a residual layer stayed of order tau omega as the depth grows."""
    moves = np.array([moved_residual(depth) for depth in (4, 8, 16)])
    below = np.array([3, 7, 15])
    assert np.all(moves > 0.8 * below)
    assert np.all(moves < 1.5 * below)
    # the paper's recursion gives just this power, and with it l^(2/3) for the flips
    sums = [10 * k * ((1 + 1 / (10 * k)) ** k - 1) / k for k in (1, 10, 100, 1000)]
    assert np.all((np.array(sums) >= 1) & (np.array(sums) <= 1.06))
    layer, tau, cut = sp.symbols("layer tau cut", positive=True)
    near = cut * m ** (3 * HALF) / tau  # entries of size cut, the density being sqrt(m)/tau
    far = (layer * tau * omega) ** 2 / cut**2
    best = tau * (layer * omega) ** (2 * THIRD) / sp.sqrt(m)
    assert powers((near / far).subs(cut, best)) == {}
    assert powers(near.subs(cut, best)) == {"m": 1, "layer": 2 * THIRD, "omega": 2 * THIRD}


def local_separation(first, second, width=40, seed=0):
    """The sum of (B.1) in layer 0 for windows of three on a ring, and the same of the layer."""
    rng, size = np.random.default_rng(seed), len(first)
    layers = []
    weights = rng.standard_normal((size, width, 3)) * math.sqrt(2 / (3 * width))
    for x in (first, second):
        windows = np.column_stack([np.roll(x, 1), x, np.roll(x, -1)])
        layers.append(np.maximum(np.einsum("jmq,jq->jm", weights, windows), 0))
    total = 0.0
    for a, b in zip(*layers, strict=True):
        if a.any():
            total += np.sum((b - a * (a @ b) / (a @ a)) ** 2)
    a, b = (layer.ravel() for layer in layers)
    return total, np.linalg.norm(b - a * (a @ b) / (a @ a))


def test_separation_of_positions():
    """Would fail if (B.1) held for inputs that differ in the shares of far-apart positions."""
    rng = np.random.default_rng(1)
    for distance in (0.3, 0.1, 0.03):
        angle = 2 * math.asin(distance * math.sqrt(2) / 2)
        pair = np.zeros((2, 9))
        pair[:, 8] = math.sqrt(0.5)
        for x, turn in zip(pair, (0.5, 0.5 + angle), strict=True):
            x[2], x[5] = math.sqrt(0.5) * math.cos(turn), math.sqrt(0.5) * math.sin(turn)
        assert np.linalg.norm(pair, axis=1) == pytest.approx([1, 1])
        assert np.linalg.norm(pair[0] - pair[1]) == pytest.approx(distance)
        total, whole = local_separation(*pair)
        assert total < 1e-25
        assert whole > distance / 3  # the whole layer keeps them apart
        # inputs in general position do have a sum of order distance^2
        other = pair[0] + rng.standard_normal(9) * distance / 3
        assert local_separation(pair[0], other)[0] > distance**2 / 100
