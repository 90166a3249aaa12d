"""Certificates of the errata of Noy et al. 2021."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
import sympy as sp
import torch
from scipy import integrate, stats


def both_positive(cosine):
    """The share of gates open for two inputs of this cosine, by the bivariate normal law."""
    return stats.multivariate_normal([0, 0], [[1, cosine], [cosine, 1]]).cdf([0, 0])


def next_cosine(cosine):
    """The cosine of two vectors after a wide random ReLU layer, by an integral over the angle."""
    angle = math.acos(cosine)
    inner, _ = integrate.quad(
        lambda phi: math.cos(phi) * math.cos(phi - angle), angle - math.pi / 2, math.pi / 2
    )
    return inner / (math.pi / 2)


def covariances(depth, cosine):
    """c_0 to c_depth: mean covariances of G_k x over those of one input, in closed form."""
    angle, factors = math.acos(cosine), []
    for _ in range(depth + 1):
        shrunk = math.cos(angle) + (math.sin(angle) - angle * math.cos(angle)) / math.pi
        angle = math.acos(min(1.0, shrunk))
        factors.append((math.cos(angle), 1 - angle / math.pi))
    return factors[0][0] * np.cumprod([1.0] + [factor for _, factor in factors[:-1]])


def equal_cosines(n, d, cosine):
    """n unit inputs whose cosines are all equal, (n, d), d > n."""
    x = math.sqrt(1 - cosine) * np.eye(n, d)
    x[:, n] = math.sqrt(cosine)
    return x


def gates(x, C, Psi):
    """[C x]^+ and the gates of layers 1 to L of the frozen net, each (n, m)."""
    z, opened = np.maximum(x @ C.T, 0), []
    first = z
    for P in Psi:
        z = np.maximum(z @ P.T, 0)
        opened.append(z > 0)
    return first, opened


def draw(rng, m, d_x, L):
    """B (1, m), C, the W_k and the Psi_k of Section 2.1, for one output."""
    W, Psi = ([math.sqrt(2 / m) * rng.standard_normal((m, m)) for _ in range(L)] for _ in "WP")
    B = math.sqrt(2) * rng.standard_normal((1, m))
    return B, math.sqrt(2 / d_x) * rng.standard_normal((m, d_x)), W, Psi


def test_deep_gates():
    """Would fail if a layer's factor stayed below 5/6, or if a depth of order log n met (17)."""
    cosine, share = 0.0, []
    for _ in range(12):  # the recursion by integrals and the normal law, not by closed forms
        share.append(both_positive(cosine))
        cosine = next_cosine(cosine)
    assert share[1] < share[2] < 1 / 3 < share[3]  # Lemma 4's bound ends at layer 3
    c = covariances(4000, 0.0)
    assert c[0] == pytest.approx(next_cosine(0.0)) == pytest.approx(1 / math.pi)
    assert c[11] == pytest.approx(c[0] * np.prod(2 * np.array(share[1:12])), rel=1e-4)
    # one layer in a finite net, with its gates from the frozen net
    rng = np.random.default_rng(0)
    _, C, _, Psi = draw(rng, 600, 3, 4)
    _, opened = gates(equal_cosines(2, 3, 0.25), C, Psi)
    angle_factor = np.divide(*covariances(4, 0.25)[[4, 3]])
    assert 2 * np.mean(opened[3][0] & opened[3][1]) == pytest.approx(angle_factor, abs=0.12)
    # no multiple of (5/6)^k bounds it, also from a cosine of 1/3, and k^-3 is its order
    for start in (0.0, 1 / 3):
        c = covariances(4000, start)
        excess = [c[k] / (5 / 6) ** k for k in (20, 50, 100)]
        assert excess[2] > 100 * excess[1] > 1e3 * excess[0]
        power = math.log(c[4000] / c[2000]) / math.log(2)
        assert power == pytest.approx(-3, abs=0.02)
    with mpmath.workdps(40):  # an angle falls by θ²/(3π), so the angles fall like 3π/l
        angle = mpmath.mpf(10) ** -6
        shrunk = mpmath.cos(angle) + (mpmath.sin(angle) - angle * mpmath.cos(angle)) / mpmath.pi
        fall = (angle - mpmath.acos(shrunk)) / angle**2
        assert float(fall * 3 * mpmath.pi) == pytest.approx(1, abs=1e-5)
    # upper parts: at a fixed distance of 20 layers from the output the cosine rises towards 1
    upper = []
    for L in (100, 400, 1600):
        found = covariances(L, 0.0)
        upper.append(found[L] / found[L - 21])
    assert upper == sorted(upper)
    assert upper[-1] > 0.95 > 30 * (5 / 6) ** 20
    # the depth for n examples, by (17) with the best constants
    depth = [int(np.argmax(2 * n * c <= 1)) for n in (1e3, 1e6)]
    assert math.log(depth[1] / depth[0]) / math.log(1e3) == pytest.approx(1 / 3, abs=0.04)


def test_squared_terms():
    """Would fail if Theorem 6's two bounds gave a width below n^3, or the one that is printed."""

    def largest(m, n, L, product_52, noise):
        """γ of (52), or the largest product of the two bounds over the layers; δ = 0, C' = 1."""
        tau = math.sqrt(n * L / m)  # L^(3/2) τ by (43), (44), d_y = 1
        if product_52:
            return m**-0.5 + tau**2
        k = np.arange(1, L + 1)
        upper = m**noise + (5 / 6) ** (L - k - 1.0) + tau
        return np.max((m**noise + tau) * upper)

    def width(n, L=60, product_52=False, noise=-0.25):
        """The decimal logarithm of the smallest width with γ <= 1/n, by bisection."""
        low, high = 0.0, 90.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            fits = largest(10**middle, n, L, product_52, noise) <= 1 / n
            low, high = (low, middle) if fits else (middle, high)
        return high

    # m^-1/2 in place of m^-1/4, with a weaker probability, leaves the movement τ
    for options, power in (({"product_52": True}, 2), ({"noise": -0.25}, 4), ({"noise": -0.5}, 3)):
        growth = (width(1e10, **options) - width(1e8, **options)) / 2
        assert growth == pytest.approx(power, abs=0.05)
    n, L, d_y, m = sp.symbols("n L d_y m", positive=True)
    moved = sp.sqrt(n * L * d_y / m)
    assert sp.simplify(moved.subs(m, n**3 * L * d_y) * n) == 1
    assert sp.simplify(moved.subs(m, n**2 * L * d_y) ** 2 * n) == 1  # (45) takes the square


def test_ntk_ratio():
    """Would fail if the change fell faster than m^-1/2, or the squared gradient grew like m^3."""
    widths, ratios, kernels, fixed, squares = (64, 256, 1024), [], [], [], []
    for m in widths:
        rng = np.random.default_rng(1)
        B, C, W, Psi = draw(rng, m, 2, 2)
        (g0,), opened = gates(np.array([[0.6, 0.8]]), C, Psi)
        D1, D2 = (layer[0].astype(float) for layer in opened)
        F3, g1 = B[0] * D2, D1 * (W[0] @ g0)
        F2 = (F3 @ W[1]) * D1
        gradient = F2 @ F2 * (g0 @ g0) + F3 @ F3 * (g1 @ g1)
        half = 0.5 / math.sqrt(m)  # ξ/L of (5), n = d_y = 1
        u = F3 / np.linalg.norm(F3)
        for v, shares in ((g1, ratios), (F2, kernels)):
            v = v / np.linalg.norm(v)
            changed = (F3 @ (W[1] + half * np.outer(u, v))) * D1
            moved = changed - F2
            share = math.sqrt(moved @ moved * (g0 @ g0) / gradient)
            grown = (changed @ changed - F2 @ F2) * (g0 @ g0) / gradient
            shares.append(share if v @ g1 > 0.9 * np.linalg.norm(g1) else grown)
        changed = half * F3 * D1  # of F2 by the change ξ/2 times the identity
        fixed.append(math.sqrt(changed @ changed * (g0 @ g0) / gradient))
        squares.append(F2 @ F2 * (g0 @ g0))
    m = np.array(widths)
    for found in (ratios, kernels, fixed):
        assert np.polyfit(np.log(m), np.log(found), 1)[0] == pytest.approx(-0.5, abs=0.15)
        assert np.all(np.array(found) >= 1 / math.sqrt(m.max()) / (2 * 81**2))
        assert found[-1] > 100 * found[0] * (m[-1] / m[0]) ** -2.5
    assert np.all(np.array(squares) >= m**2 / (144 * 2))
    assert np.all((np.array(squares) < m**3 / (144 * 2))[1:])
    n, d_x, d_y, L, width = sp.symbols("n d_x d_y L m", positive=True)
    change = sp.sqrt(width * n) * d_y * L**2
    half, squared = sp.Rational(1, 2), width**3 / (d_x * d_y)
    assert (
        sp.simplify(change / squared / (n**half * d_x * (L * d_y) ** 2 * width ** (-5 * half))) == 1
    )
    corrected = change / sp.sqrt(width**2 / (d_x * d_y))
    expected = n**half * d_x**half * d_y ** (3 * half) * L**2 * width**-half
    assert sp.simplify(corrected / expected) == 1


def test_one_layer():
    """Would fail if a constant step size fitted n examples in O(log n) steps with L = 1."""
    share = both_positive(1 / math.pi)
    c = 2 * share / math.pi
    assert c == pytest.approx(0.192, abs=1e-3)
    for n in (8, 16, 32):  # at the width n^2, the quotient of two sums over all entries of K
        B, C, _, Psi = draw(np.random.default_rng(n), n * n, n, 1)
        first, (opened,) = gates(np.eye(n), C, Psi)
        K = (first @ first.T) * ((opened * B) @ (opened * B).T)
        # largest eigenvalue >= sum/n, smallest <= trace/n
        assert K.sum() / np.trace(K) == pytest.approx(1 + (n - 1) * c, rel=0.25)
    steps = []
    for n in (100, 1000, 10000):
        best = 2 / (1 + (n - 1) * c + 1 - c)  # no constant step size contracts faster
        kept = max(abs(1 - best * (1 - c)), abs(1 - best * (1 + (n - 1) * c)))
        steps.append(math.log(100) / (-2 * math.log(kept)))
        assert steps[-1] > 0.9 * c * n / (4 * (1 - c)) * math.log(100)
    assert steps[2] > 9 * steps[1] > 81 * steps[0]


def test_last_relu():
    """Would fail if a ReLU net with the same B and C had the output of every GReLU net."""
    x = C = B = Psi = Fraction(1)
    z = max(C * x, Fraction(0))
    gate = int(Psi * z > 0)
    assert gate == 1
    output = B * gate * Fraction(-1) * z
    assert output == -1
    for weight in (Fraction(p, q) for p, q in product(range(-50, 51), (1, 3, 7))):
        assert B * max(weight * z, Fraction(0)) >= 0 > output
    # at any width: equal features before the last ReLU give other outputs
    B, C, W, Psi = draw(np.random.default_rng(0), 60, 5, 2)
    h, opened = gates(equal_cosines(4, 5, 0.2), C, Psi)
    for layer, matrix in zip(opened, W, strict=True):
        h = layer * (h @ matrix.T)
    open_entries = h[opened[-1]]
    assert 0.3 < np.mean(open_entries < 0) < 0.7
    assert np.linalg.norm(np.maximum(h, 0) @ B.T - h @ B.T) > 0.1 * np.linalg.norm(h @ B.T)


def test_feature_rank():
    """Would fail if n <= m gave solvable equations (48), or a unique solution for n < m."""
    # n = m = 1, L = 2: the positive part of the features is 0 where -1 is wanted
    first = Fraction(-1) * 1
    second = Fraction(1) * first
    assert max(first, Fraction(0)) == 0 != second
    # n = 3 > m = 2: the rank of the equations is below that of the extended matrix
    inputs = sp.Matrix([[1, 0, sp.Rational(4, 5)], [0, 1, sp.Rational(3, 5)]])
    opened = (sp.Matrix([[-1, 1]]) * inputs).applyfunc(lambda v: int(bool(v > 0)))
    wanted = opened.multiply_elementwise(sp.Matrix([[1, 1]]) * inputs)
    assert list(wanted) == [0, 1, 0]
    assert inputs.rank() == 2 < inputs.col_join(wanted).rank() == 3
    # random nets: at n = m the equations contradict each other, at n = m/4 they have solutions
    m, worst = 48, {}
    for n in (12, 48):
        _, C, W, Psi = draw(np.random.default_rng(3), m, n + 1, 4)
        h, layers = gates(equal_cosines(n, n + 1, 0.2), C, Psi)
        worst[n] = 0.0
        for layer, matrix in zip(layers, W, strict=True):
            target, positive = layer * (h @ matrix.T), np.maximum(h, 0)
            solved = np.linalg.lstsq(positive, target, rcond=1e-10)[0]
            rest = np.linalg.norm(positive @ solved - target) / np.linalg.norm(target)
            worst[n], h = max(worst[n], rest), target
            if n < m:  # a second solution
                hidden = np.eye(m) - np.linalg.pinv(positive) @ positive
                other = solved + hidden @ np.ones((m, m))
                assert np.allclose(positive @ other, positive @ solved, atol=1e-8)
                assert np.linalg.norm(other - solved) > 0.1
    assert worst[12] < 1e-9 < 1e-3 < worst[48]


def test_nonnegative_factors():
    """Would fail if a product of nonnegative factors could close gates as Psi does."""
    rng = np.random.default_rng(0)
    m, r = 36, 3  # r = √m/2
    Psi, z = rng.standard_normal((m, m)), np.maximum(rng.standard_normal((m, 200)), 0)
    target = np.maximum(Psi, 0)
    U, V = rng.random((m, r)), rng.random((r, m))
    for _ in range(100):  # the multiplicative updates of Lee and Seung
        V *= (U.T @ target) / (U.T @ U @ V + 1e-12)
        U *= (target @ V.T) / (U @ V @ V.T + 1e-12)
    assert np.linalg.norm(U @ V - target) < 0.9 * np.linalg.norm(target)
    assert np.all(U @ V @ z > 0)
    assert np.mean(Psi @ z > 0) == pytest.approx(0.5, abs=0.1)
    drawn = rng.standard_normal((m, r)) @ rng.standard_normal((r, m))
    assert np.mean(drawn @ z > 0) == pytest.approx(0.5, abs=0.25)  # factors of both signs do


def test_zeros_not_skipped():
    """Would fail if PyTorch skipped the zero entries of a gradient in its products."""
    x = torch.ones(3, 2, requires_grad=True)
    weight = torch.ones(4, 2)
    weight[1, 0] = math.inf
    open_units = torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(3, 4)
    torch.nn.functional.linear(x, weight).backward(open_units)
    assert torch.isnan(x.grad[:, 0]).all()  # 0 times infinity, where a skip would leave 2
    assert torch.equal(x.grad[:, 1], torch.full((3,), 2.0))


def test_first_relu():
    """Would fail if the covariance of G_0 x vanished for orthogonal inputs."""
    mean, _ = integrate.quad(lambda u: u * stats.norm.pdf(u), 0, np.inf)
    square, _ = integrate.quad(lambda u: u**2 * stats.norm.pdf(u), 0, np.inf)
    assert mean**2 / square == pytest.approx(1 / math.pi, abs=1e-9)
    m = 1000
    _, C, _, Psi = draw(np.random.default_rng(0), m, 2, 1)
    first, (opened,) = gates(np.eye(2), C, Psi)
    covariance = first[0] @ first[1] / (m / 2)
    assert covariance == pytest.approx(1 / math.pi, abs=0.06)
    below = 2 * np.mean(opened[0] & opened[1]) * covariance
    assert below == pytest.approx(covariances(1, 0.0)[1], abs=0.06)
    # C' = 1: from a width of about 200,000 on the bound for δ = 0 lies below the covariance
    assert 27 / 4 * 1.9e5**-0.25 > 1 / math.pi > 27 / 4 * 2.1e5**-0.25


def test_lost_square():
    """Would fail if the printed (13) held for the net of the certificate, or the other did not."""

    def change_and_bounds(eta, b):
        """The change of the loss, and (13) as printed and with the square, as all a_i tend to 0.

        m = 2, C = (1, -1), Ψ_1 = W_1 = I, B = (b, b), inputs 1 and -1, targets 0.
        """
        before = after = printed = squared = gradient = 0
        parts = [((b, 0), (1, 0)), ((0, b), (0, 1))]  # F_2 and G_0 x of the two inputs
        W = np.array([[1, 0], [0, 1]], dtype=object)
        for F, g in [map(np.array, part) for part in parts]:
            gradient = gradient + np.outer(F, g) * (F @ W @ g)
        for F, g in [map(np.array, part) for part in parts]:
            error, norm, size = F @ W @ g, F @ F, g @ g
            before += Fraction(error**2, 2)
            after += (F @ (W - eta * gradient) @ g) ** 2 / 2
            first = -2 * eta * norm * size
            printed += (first + 3 * eta**2 * norm * size**2) * Fraction(error**2, 2)
            squared += (first + 3 * eta**2 * norm**2 * size**2) * Fraction(error**2, 2)
        return after - before, printed, squared

    assert change_and_bounds(Fraction(1, 4), 2) == (-4, -5, 4)
    for p, q, b in product(range(1, 12), (1, 3, 40, 1000), (1, 2, 3, 10)):
        change, printed, squared = change_and_bounds(Fraction(p, q), b)
        assert (change > printed) == (b**2 > 3)  # at every step size
        assert change <= squared
    alpha, beta, L, eta = sp.symbols("alpha beta L eta", positive=True)
    corrected = alpha**2 / (12 * beta**4 * L)
    third = 3 * eta**2 * L**2 * beta**4 / (eta * L * alpha**2)
    assert sp.cancel(third.subs(eta, corrected)) == sp.Rational(1, 4)


def test_lost_binomial():
    """Would fail if (b) in (40) were at most (c), or if the last term of (18) needed no L."""
    printed = 2 * math.sqrt(2)
    assert all(
        math.comb(L, s) * 4**s > printed**s for L in range(2, 30) for s in range(2, L + 1)
    )  # already at nγ = 0
    z = math.exp(0.1) / math.sqrt(0.2)
    one_less = [6 * math.comb(L, 2) * math.sqrt(L) * z > 8 * L * z**2 for L in range(2, 60)]
    assert one_less == [False] * 3 + [True] * 55  # with s - 1 factors: from L = 5 on
    n, L, dx, dy = sp.symbols("n L d_x d_y", positive=True)
    width = n**2 * L * dy
    loss = width * n / dx  # (43) at (45)
    for norm, order in (
        (L, n**-4 * L**-1),
        (L**3, n**-4 * L**-4),
        (L * L * sp.sqrt(L), n**-4 * L**-3),
    ):
        # η α² L ℓ = n η² (norm β³ ℓ)²/(β⁴ L²), with α²/β² constant; as printed (18) drops L
        step = L * L**2 / (n * norm**2 * loss)
        printed_slack = L if norm == L else 1
        assert sp.simplify(step / printed_slack / (order * dx / dy)) == 1


def test_three_quarters():
    """Would fail if the printed terms of (18) left three quarters before (35)."""

    def left(alpha2, beta2, beta_x, middle, corrected=False):
        """The bound on Λ + η²a in units of η L α² at the minimum of the first four terms, L=1."""
        own = beta2**2 if corrected else beta2 * beta_x
        eta = min(alpha2 / (12 * own), Fraction(1, 3), alpha2 / (4 * beta2**2), 1 / Fraction(beta2))
        return -1 + eta / alpha2 * (3 * own + Fraction(3, 4) * middle + beta2**2)

    quarter, most = Fraction(1, 4), Fraction(3, 4)
    assert left(most, most, quarter, middle=most) == -quarter > -most
    exact = left(Fraction(3), Fraction(3), quarter, middle=Fraction(9), corrected=True)
    assert exact == Fraction(-29, 48) > -most
    # a third of each step leaves what (19) needs
    assert -1 + Fraction(3, 12) == -most
    m = Fraction(40000)
    alpha2, beta2, beta_x = m**2 / (144 * 200), 729 * m**2 / (16 * 200), 27 * m / 800
    assert float(left(alpha2, beta2, beta_x, alpha2**2)) == pytest.approx(-3 / 4, abs=1e-3)
    assert float(left(alpha2, beta2, beta_x, alpha2**2, True)) == pytest.approx(-2 / 3, abs=1e-3)


def test_failure_probability():
    """Would fail if the failure of the proofs' events were below that of the statements."""
    for L, theta in product((1, 2, 4, 10), (0.05, 0.2, 0.49)):
        m, d = 1e9, 10
        proof = math.log(4 * L**3) - theta**2 * m / (16 * L**2) + 3 * d
        printed = math.log(3 * L**2) + math.log(m) / 2 - theta * m / (4 * L)
        printed += 6 * math.sqrt(m) + 3 * d
        assert proof > printed + 1000
        assert (theta / (4 * L)) / (theta**2 / (16 * L**2)) > 8
    best = [0.5**2 / (16 * L**2) for L in range(1, 8)]
    assert [b < 1 / (108 * L) for L, b in enumerate(best, 1)] == [False] + [True] * 6


def test_shift_argument():
    """Would fail if weights stayed independent of gates, or if signs changed the training."""
    n, m, L = 3, 20, 3
    rng = np.random.default_rng(0)
    B, C, W, Psi = draw(rng, m, n + 1, L)
    first, opened = gates(equal_cosines(n, n + 1, 0.1), C, Psi)
    labels = rng.standard_normal((n, 1))

    def trained(B, W, steps=20, eta=1e-4, relu=False):
        """Activations of all layers and the weights after gradient descent."""
        W = [matrix.copy() for matrix in W]
        for step in range(steps + 1):
            h = [first]
            for k, matrix in enumerate(W):
                raw = h[-1] @ matrix.T
                h.append((raw > 0 if relu else opened[k]) * raw)
            if step == steps:
                return h, W
            back = (h[-1] @ B.T - labels) @ B
            for k in reversed(range(L)):
                back = back * ((h[k + 1] > 0) if relu else opened[k])
                below = back @ W[k]
                W[k] -= eta * back.T @ h[k]
                back = below

    h, moved = trained(B, W)
    assert np.linalg.norm(moved[0] - W[0]) > 1e-3
    for k in range(L):  # the gap: a row moves only if its gate is open for some input
        changed = np.any(moved[k] != W[k], axis=1)
        assert np.array_equal(changed, opened[k].any(axis=0))
    assert not all(layer.any(axis=0).all() for layer in opened)
    signs = np.where(rng.random(m) < 0.5, -1.0, 1.0)
    flipped = [W[0], signs[:, None] * W[1], W[2] * signs]
    other, _ = trained(B, flipped)
    assert np.allclose(other[2], signs * h[2], rtol=1e-9, atol=1e-12)
    assert np.allclose(other[3], h[3], rtol=1e-9, atol=1e-12)
    relu, flipped_relu = (trained(B, start, relu=True)[0] for start in (W, flipped))
    assert not np.allclose(flipped_relu[2], signs * relu[2], atol=1e-2)


def test_smallest_term():
    """Would fail if 1/(β²L) were the smallest term of (18), or gave its c_T."""
    alpha2, beta2 = Fraction(1, 144), Fraction(27, 4) ** 2  # of Theorem 5, over m²/(d_x d_y)
    assert beta2 / alpha2 == 81**2
    third = alpha2 / (4 * beta2**2)
    assert (1 / beta2) / third == 4 * 81**2 > 1
    assert 2 / (alpha2 * (1 / beta2)) == 2 * 81**2
    assert 2 / (alpha2 * third) == 8 * 81**4
