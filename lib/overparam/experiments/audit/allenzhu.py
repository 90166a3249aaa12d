"""Allen-Zhu et al. 2019, arXiv 1811.03962v5: what of its arithmetic can be recomputed, in its order.

D stands for the paper's 𝔡, the positions of a layer, and logm in an order for log m.
"""

import numpy as np
from numpy import arange, array, exp, isclose, linspace, log, log1p, sqrt
from scipy.integrate import quad
from scipy.special import digamma, erf, erfc, ndtr
from scipy.stats import binom

from ...bounds import allenzhu2019 as bounds
from .judge import bounded, holds, order

ALPHA = linspace(0.75, 1.25, 51)  # what Claim 7.6 is left with
OTHER_ALPHA = np.concatenate([linspace(-30, 0.75, 400), linspace(1.25, 30, 400)])
DELTA = linspace(1e-3, 1 / 6, 60)
DEPTHS = 4.0 ** arange(1, 16)
UNMASKED = 100 * (2 / 100)  # the mean of |W_b z|^2 where |z| = 1, and its limit for large m


def _binomial_mean(values, m, omega):
    """The sum over omega of values(omega) P(B(m, 1/2) = omega)."""
    return binom.pmf(omega, m, 0.5) @ values(omega)


def _separated(delta, share):
    distance = delta + share * (sqrt(2) - delta)  # the inner product is not negative
    return 1 - (1 - distance**2 / 2) ** 2 >= 0.75 * delta**2 * (1 - 1e-12)


def _last_display():
    hi, hj = array([1.0, 0.2, 0.0]), array([0.7, 0.5, 0.6])
    left = hj @ hj - (hi @ hj) ** 2 / (hi @ hi)
    right = hj @ hj + ((hi - hj) @ (hi - hj) - hi @ hi - hj @ hj) / (2 * hi @ hi)
    return left, right


def _integral(g, alpha, delta):
    """The integral over x >= 0 of (x - max(g, 0))^2 N(x; alpha g, 2 delta^2), by quadrature."""
    mean, sd = alpha * g, sqrt(2) * delta
    density = lambda x: exp(-((x - mean) ** 2) / (4 * delta**2)) / sqrt(4 * np.pi * delta**2)  # noqa: E731
    ends = max(0.0, mean - 12 * sd), max(0.0, mean) + 12 * sd
    return quad(lambda x: (x - max(g, 0.0)) ** 2 * density(x), *ends)[0]


def _closed_integrals(g, alpha=0.9, delta=0.15):
    bell, step = exp(-((alpha * g / (2 * delta)) ** 2)) / sqrt(np.pi), erf(alpha * g / (2 * delta)) + 1
    above = (alpha - 2) * delta * g * bell + ((alpha - 1) ** 2 * g**2 + 2 * delta**2) / 2 * step
    below = (alpha**2 * g**2 + 2 * delta**2) / 2 * step + alpha * delta * g * bell
    return isclose(np.where(g >= 0, above, below), [_integral(v, alpha, delta) for v in g], rtol=1e-7)


def _series(alpha, delta):
    k = arange(1, 60)[:, None, None]
    terms = (-1.0) ** k * (alpha + k) / (2 * k + 1) * (delta / alpha) ** (2 * k + 1)
    total = (alpha - 1) ** 2 + delta**2 + 2 / np.pi * terms.sum(0)
    return isclose(total, bounds.claim76_expectation(alpha, delta), rtol=1e-9, atol=1e-12)


def _first_term(alpha, delta):
    rest = (alpha - 1) ** 2 + delta**2 - 2 / np.pi * (alpha + 1) * delta**3 / (3 * alpha**3)
    return rest >= bounds.claim76_lower(delta)


def _largest_omega(L, logm):
    """1/(L^(9/2) log^3 m), the largest omega of Lemma 8.2 and of Theorems 4 and 5."""
    return L**-4.5 * logm**-3.0


def _changes_at_largest(L):
    m = L**10
    changes = bounds.sign_changes(m, _largest_omega(L, log(m)), L)
    return changes / bounds.sparse_level(m, L, power=3)


def _decomposition_error(theta=0.2):
    w, h, g2 = array([[1.0, 2.0], [3.0, -1.0]]), array([0.6, 0.8]), array([1.0, -1.0])
    g1 = (w @ h - theta * g2) / sqrt(1 - theta**2)
    first = w @ (np.eye(2) - np.outer(h, h)) - sqrt(1 - theta**2) * np.outer(g1, h)
    return np.abs(first + theta * np.outer(g2, h) - w).max()


def _tail_within(t, mu):
    tail = ndtr(mu - t) + ndtr(-mu - t)
    return (1 - 0.8 * t <= tail) & (tail <= 1 - 2 / 3 * t)


def _gradient_radius(delta, n, L, m=8.0):
    return (bounds.grad_lower(1.0, m, 1.0, n, delta) / bounds.gradient_change(1.0, 1.0, L, m, 1.0, n)) ** 1.5


def _mixed_term(L, logm):
    omega = _largest_omega(L, logm)
    return L**3 * omega <= np.cbrt(omega) * L**2 * sqrt(logm)


def _step_size(d, delta, n, L, m):
    second = bounds.semismooth_terms(0, 1.0, n, L, m, d, 0)[1] * n * m / d
    return bounds.thm1_rate(1.0, delta, m, n, d) / second


def _iterations(n, L, delta, m=8.0, d=2.0):
    """1/rate at the eta of Theorem 1."""
    return 1 / bounds.thm1_rate(bounds.thm1_lr(n, L, delta, m, d), delta, m, n, d)


def _movement(n, delta, m, d, logm, eta=1.0):
    """What the proof has for the movement of a layer: eta sqrt(nm/d), the steps 1/rate, sqrt F at the start."""
    steps = 1 / bounds.thm1_rate(eta, delta, m, n, d)
    return eta * sqrt(bounds.grad_upper(1.0, m, d, n)) * steps * sqrt(n) * logm


def _width(movement, n, L, delta, logm):
    """The m at which a movement, given at m = e^logm, falls to `bounds.thm1_radius`."""
    return (movement * exp(logm / 2) / bounds.thm1_radius(n, L, delta, exp(logm))) ** 2


def _sgd_iterations(n, L, b, delta, logm):
    m = exp(logm)
    return 1 / bounds.thm1_rate(bounds.thm2_lr(64 * n, L, delta, m, 1.0, b), delta, m, 64 * n, 1.0)


def _sgd_movement(n, d, b, m, delta, logm, L=2.0):
    eta, steps = b * delta * d / (n**5 * L**2 * m * logm**2), L**2 * n**7 * logm**2 / (b * delta**2)
    return eta * sqrt(n**2 * m / (b * d)) * steps * sqrt(n) * logm


def _completed_square(eta, L, m, n, logm, b, delta, d):
    growth = bounds.thm2_growth(eta, L, m, 64 * n, d, b, "corrected") * logm
    return growth**2 / bounds.thm1_rate(eta, delta, m, n, d)


# fmt: off
ROWS = [
    ("Footnote 5", "m times the variance of the bias that the last coordinate makes", "1",
     lambda m=50: m * (2 / m) * (1 / sqrt(2)) ** 2),
    ("Sec. 4.2", "the omega up to which L^3 omega^(4/3) sqrt(m) of Thm 5b is small, at one L", "m^(-3/8)",
     order(lambda m: (1 / (8.0**3 * sqrt(m))) ** (3 / 4))),
    ("Footnote 16", "a cross-entropy of at most 1/4 gives the label a probability above 1/2", "holds",
     holds(lambda loss: exp(-loss) > 0.5, loss=linspace(0, 0.25, 50))),
    ("Lemma 7.1, proof", "log h - 1/h <= digamma(h) <= log h + 1/(2h)", "holds",
     holds(lambda h: (log(h) - 1 / h <= digamma(h)) & (digamma(h) <= log(h) + 1 / (2 * h)),
           h=np.logspace(-6, 6, 400))),
    ("Lemma 7.1, proof", "log(1 + x) >= x - x^2 for x = (2 omega - m)/m, omega in [0.4m, 0.6m]", "holds",
     holds(lambda x: log1p(x) >= x - x**2, x=linspace(-0.2, 0.2, 401))),
    ("Lemma 7.1, proof", "m times the mean of ((2 omega - m)/m)^2", "1",
     lambda m=400: m * _binomial_mean(lambda omega: ((2 * omega - m) / m) ** 2, m, arange(m + 1))),
    ("Lemma 7.1, (7.1)", "m times the lower end that -2/m and -2/omega, both displayed, combine to", "-4",
     lambda m=4000: m * (-2 / m - _binomial_mean(lambda omega: 2 / omega, m, arange(1600, 2401)))),
    ("Lemma 7.1, (7.1)", "-4/m <= E log Delta <= 0", "holds",
     holds(lambda m: [-4 / k <= bounds.log_ratio_moments(k)[0] <= 0 for k in m], m=[40, 100, 400, 1600])),
    ("Lemma 7.1", "|h|^2 in [1 - eps, 1 + eps], which is proved, puts |h| there", "holds",
     holds(lambda eps: (sqrt(1 - eps) >= 1 - eps) & (sqrt(1 + eps) <= 1 + eps), eps=linspace(0, 1, 101))),
    ("Lemma 7.3a, proof", "|W_b D_(b-1) .. W_a z|^2, without a last mask, is in [2/3, 4/3]", "holds",
     holds(lambda mean: abs(mean - 1) <= 1 / 3, mean=[UNMASKED])),
    ("Lemma 7.5, proof", "1 - <x_i, x_j>^2 >= 3 delta^2/4, last coordinates 1/sqrt 2, delta <= 1", "holds",
     holds(_separated, delta=linspace(0.001, 1, 100), share=linspace(0, 1, 100))),
    ("Lemma 7.5", "exponent of Lemma 7.1 at eps = delta^3/10", "delta^6 L^(-1) m",
     order(lambda delta, L, m: m * (delta**3 / 10) ** 2 / L)),
    ("Lemma 7.5, proof", "its last equality, from the inner product to the distance of h_i and h_j", "holds",
     holds(lambda left, right: isclose(left, right), left=[_last_display()[0]], right=[_last_display()[1]])),
    ("Claim 7.6, proof", "P(g_1 > 1), g_1 of variance 2, is at least", "0.3", ndtr(-1 / sqrt(2))),
    ("Claim 7.6, proof", "the expectation that 0.3, 1/2 and a difference of 1/4 give", "0.03", 0.3 * 0.5 * 0.25**2),
    ("Claim 7.6, proof", "the expectation is at least 0.03 for alpha < 3/4 and alpha > 5/4", "holds",
     holds(lambda alpha, delta: bounds.claim76_expectation(alpha, delta, "corrected") >= 0.03,
           alpha=OTHER_ALPHA, delta=DELTA)),
    ("Claim 7.6, proof", "the two integrals over x >= 0 have the closed forms with erf", "holds",
     holds(_closed_integrals, g=[-1.5, -0.4, -0.05, 0.05, 0.4, 1.5])),
    ("Claim 7.6, proof", "its closed form is the expectation, for alpha in [3/4, 5/4]", "holds",
     holds(lambda alpha: isclose(bounds.claim76_expectation(alpha, 0.1, "printed"),
                                 bounds.claim76_expectation(alpha, 0.1, "corrected"), atol=1e-6),
           alpha=ALPHA)),
    ("Claim 7.6, proof", "its series is its closed form", "holds", holds(_series, alpha=ALPHA, delta=DELTA)),
    ("Claim 7.6, proof", "the terms of the series decrease for delta <= alpha", "holds",  # worst: delta = alpha
     holds(lambda k, alpha: (alpha + k + 1) / (alpha + k) * (2 * k + 1) / (2 * k + 3) <= 1,
           k=arange(1, 200), alpha=ALPHA)),
    ("Claim 7.6, proof", "its first term leaves at least delta^2 (1 - delta)", "holds",
     holds(_first_term, alpha=ALPHA, delta=DELTA)),
    ("Lemma 8.2, proof", "by Lemma 7.1 |g_l| at the start is in [2/3, 4/3], as |h_l| is", "holds",
     holds(lambda norm: abs(norm - 1) <= 1 / 3, norm=[sqrt(UNMASKED)])),
    ("Lemma 8.2, proof", "order of err_2, by Claim 8.5 at s = m omega^(2/3) L", "omega^(4/3) L^3 logm",
     order(lambda omega, L, logm: L * omega * L**1.5 * sqrt(bounds.sign_changes(2.0, omega, L) / 2) * logm)),
    ("Lemma 8.2", "the omega below which err_2 is at most of the order of err_1", "L^(-9/2) logm^(-3)",
     order(lambda L, logm: (L**1.5 / (L**3 * logm)) ** 3)),
    ("Cor. 8.4", "order of the sign changes, Claim 8.3 at its two norms", "omega^(2/3) L m",
     order(lambda omega, L, m: m * (omega * L**1.5) ** (2 / 3) + omega ** (2 / 3) * L / sqrt(m) * m**1.5)),
    ("Lemma 8.6a, proof", "the sum over the 2^(b-a) products is O(sqrt L)", "holds",
     # the sum over j >= 1 of C(L, j) 3^j f^(j - 1) at f = 1/(100 L^1.5)
     bounded(lambda L: np.expm1(L * log1p(0.03 / L**1.5)) / (0.01 / L**1.5) / sqrt(L), DEPTHS)),
    ("Lemma 8.6b, proof", "the sum over the 2^(b-a+1) products is O(sqrt L)", "holds",
     bounded(lambda L: (1 + sqrt(L) / L**1.5) ** L, DEPTHS)),
    ("Lemma 8.7", "order of its bound at s = m omega^(2/3) L", "omega^(1/3) L^2 m^(1/2) logm^(1/2) d^(-1/2)",
     order(lambda omega, L, m, logm, d: sqrt(L**3 * bounds.sign_changes(m, omega, L) * logm / d))),
    ("Thms 4, 5",
     "at their largest omega the sign changes are as few as Lemma 8.7 asks, m/(L^3 log m), also for L > "
     "log m", "holds", bounded(_changes_at_largest, DEPTHS)),
    ("Sec. 9.2", "W'_L and W''_L, as defined, add up to W_L", "holds",
     holds(lambda error: error < 1e-9, error=[_decomposition_error()])),
    ("Sec. 9.2", "with theta = delta/(5n), P(|theta g_2| in the interval) is at least 0.2", "holds",
     holds(lambda: erf(1 / 2) - erf(5 / 18) >= 0.2)),  # sigma = sqrt(2) theta n, from delta/9 to delta/5
    ("Sec. 9.2", "on the event only the sign of sample i* is open: 1.1/5 < 1/4 and 0.9/9 >= 1/10", "holds",
     holds(lambda: [1.1 / 5 < 1 / 4, 0.9 / 9 >= 1 / 10 - 1e-15])),
    ("Sec. 9.2", "0.8 |v|^2/d, |N|/15 and |N| >= delta m/(100 n) give the constant 1/2000", "holds",
     holds(lambda: [0.9**2 >= 0.8, 0.2 / 2 > 1 / 15, 0.8 / 15 / 100 >= 1 / 2000, 1 / 40 / 2 >= 1 / 100])),
    ("Sec. 9.2", "share of the squared norm of a term, switched on or off, that one of the cases keeps", "1",
     lambda: min(max(rest**2, (rest + 1) ** 2) for rest in linspace(-2, 2, 4001))),  # rest: of the others
    ("Claim 9.4, proof", "P(|z| <= delta/(10 n sqrt m)) is at least delta/(25 n), |h|^2 <= 1.1", "holds",
     holds(lambda n: 2 / 3 / (10 * n) / sqrt(2.2) >= 1 / (25 * n), n=arange(1, 200))),
    ("Claim 9.4, proof", "n times the chance of a miss, |z| < delta/(4 n sqrt m), variance delta^2/(2m)",
     "0.125", lambda n=1000: n * bounds.claim94_miss(n, "corrected")),
    ("Claim 9.5, proof", "P(|<B_k, v>| >= |v|/sqrt d)", "0.68", erfc(1 / sqrt(2))),
    ("Fact 9.6", "P(|x| >= t) is in [1 - 4t/(5 sigma), 1 - 2t/(3 sigma)] for a centred normal, t < sigma",
     "holds", holds(lambda t: _tail_within(t, 0.0), t=linspace(1e-4, 1, 500))),
    ("Fact 9.6", "and, as it says next, for a normal of any mean mu", "holds",
     holds(lambda mu: _tail_within(0.5, mu), mu=linspace(0, 3, 31))),
    ("Thm 3, Sec. 10", "the omega at which (10.2) is the lower bound, up to log m",
     "delta^(3/2) n^(-9/2) L^(-6)", order(_gradient_radius)),
    ("Thm 4", "order of the first-order term, the sum over l of (11.5)", "omega^(1/3) L^2 m^(1/2) logm^(1/2) d^(-1/2)",
     order(lambda omega, L, m, logm, d: L * sqrt(L**3 * omega ** (2 / 3) * L * m * logm / d))),
    ("Thm 4", "the sum over l of (11.6) is below the first-order term, |W'| <= omega", "holds",
     holds(_mixed_term, L=arange(1.0, 200), logm=arange(1.0, 200))),
    ("Thm 4", "order of the second-order term, n times (11.4) squared", "n L^2 m d^(-1)",
     order(lambda n, L, m, d: n * (L * sqrt(m / d)) ** 2)),
    ("Thm 5c", "the omega up to which the relative change of Thm 5a is O(1)", "L^(-9) logm^(-3/2)",
     order(lambda L, logm: (1 / bounds.thm5a(1.0, L, exp(logm))) ** 3)),
    ("Sec. 12", "the eta at which step 2's second term is the decrease of step 3",
     "d delta n^(-4) L^(-2) m^(-1)", order(_step_size)),
    ("Sec. 12", "the steps T, 1/rate, at that eta", "n^6 L^2 delta^(-2)", order(_iterations)),
    ("Sec. 12, end", "order of the movement of a layer", "n^3 delta^(-1) m^(-1/2) d^(1/2) logm", order(_movement)),
    ("Sec. 12, (12.1)", "order of the norm over all layers, from the proof's bound of each",
     "n^3 delta^(-1) m^(-1/2) d^(1/2) logm",
     order(lambda n, L, delta, m, d, logm: np.linalg.norm(np.full(int(L), _movement(n, delta, m, d, logm))))),
    ("Sec. 12", "the width at which the movement is what step 3 allows", "n^24 L^12 d logm^5 delta^(-8)",
     order(lambda n, L, d, logm, delta: _width(bounds.thm1_movement(n, delta, exp(logm), d), n, L, delta, logm))),
    ("Sec. 13", "the steps T of SGD, 1/rate, at its eta", "n^7 L^2 b^(-1) delta^(-2) logm^2", order(_sgd_iterations)),
    ("Sec. 13, (13.1)", "order of the movement of a layer",
     "n^(7/2) d^(1/2) b^(-1/2) m^(-1/2) delta^(-1) logm", order(_sgd_movement)),
    ("Sec. 13", "the width at which that movement is what step 3 allows", "n^24 L^12 b d logm^5 delta^(-8)",
     order(lambda n, L, b, d, logm, delta:
           _width(bounds.thm2_movement(64 * n, delta, exp(logm), d, b), 64 * n, L, delta, logm))),
    ("Sec. 13", "order of what completing the square leaves", "eta L^2 m n^5 logm^2 b^(-1) delta^(-1) d^(-1)",
     order(_completed_square)),
    ("Sec. 13, step 3", "(a sqrt(t) - b)^2 >= a^2 t/4 from t = 2 b^2/a^2 on", "holds",
     holds(lambda t: (sqrt(t) - 1) ** 2 >= t / 4, t=linspace(2, 20, 400))),  # in units of b^2/a^2
    ("Sec. 14, (14.1)", "order of its bound", "omega^(4/3) L^3 m^(1/2) logm^(1/2) d^(-1/2)",
     order(lambda omega, L, m, logm, d: L * sqrt(bounds.sign_changes(m, omega, L) * logm / d) * omega * L**1.5)),
    ("Thm 5a", "sqrt(L) layers of (10.2) are at most L^3", "holds",
     holds(lambda L: sqrt(L) * L**2 <= L**3, L=arange(1.0, 300))),
    ("App. A", "order of T for a loss that is bounded and not convex", "n^6 L^2 delta^(-2) eps^(-2)",
     order(lambda n, L, delta, eps: n * _iterations(n, L, delta) / eps**2)),
    ("App. A", "order of T for a convex loss", "n^7 L^2 delta^(-2) eps^(-1)",
     order(lambda n, L, delta, eps: n * _iterations(n, L, delta) / eps)),
    ("Thm 6",
     "the width for a sigma-gradient-dominant loss: the squared sum of roots of losses of rate sigma is O(sigma^(-2))",
     "holds", bounded(lambda sigma: (sigma / (1 - sqrt(1 - sigma))) ** 2, 2.0 ** -arange(1, 20))),
    ("Thm 6", "the width for other losses: by Cauchy-Schwarz T times the sum of squared loss gradients, O(1)",
     "eps^(-1)", order(lambda eps: bounds.thm6_iters("nonconvex", 1, 1, 1, eps))),
    ("App. A, footnote 20", "p(1 - p) < 1/4 implies p > 1/2, p the probability of the label", "holds",
     holds(lambda p: (p * (1 - p) >= 1 / 4) | (p > 1 / 2), p=linspace(0.01, 0.99, 99))),
    ("App. B", "order of |h_0|^2 where A has variance 2/sqrt(q m) and the patches q in all", "O(1)",
     order(lambda q, m: m / 2 * 2 / sqrt(q * m) * q)),
    ("App. B", "order of |h_L|^2/|h_(L-1)|^2 where W_L, of Dm rows, has variance 2/(q m)", "O(1)",
     order(lambda D, q: bounds.cnn_gains(64.0, q, D)[1])),
    ("App. B.1", "order of what the biases add to |h_l|^2", "tau^2 D q^(-1)",
     order(lambda tau, D, q: D * 8.0 / 2 * (2 / (q * 8.0)) * tau**2)),  # at m = 8
    ("App. B.1, footnote 22", "tau = delta^2/(10 D L) has tau^2 <= eps q/(10 D L) at eps = delta^3/10", "holds",
     holds(lambda D, delta, L: bounds.cnn_tau(delta, D, L) ** 2 <= delta**3 / 10 / (10 * D * L) * (1 + 1e-9),
           D=[1, 4, 100], delta=linspace(0.01, 1, 30), L=[1, 3, 50])),
    ("App. C.1", "P(a coordinate of h_0 is at least 0.6/sqrt m) is above 1/4", "holds",
     holds(lambda: erfc(0.6 / 2) / 2 > 1 / 4)),
    ("App. C.1", "(0.6 - 0.1)^2 (1 - 1/(10L))^L/4 >= 1/20", "holds",
     holds(lambda L: 0.5**2 * (1 - 1 / (10 * L)) ** L / 4 >= 1 / 20, L=arange(1, 10_000))),
    ("App. C.1", "share of the coordinates of h_i,0, a ReLU's, of at least 1/(10 sqrt m)", "0.75", erfc(0.1 / 2) / 2),
    ("App. C.1", "(1 + 1/(10L)) |h'| + tau omega in each of L layers is O(tau omega)", "holds",
     bounded(lambda L: 10 * L * np.expm1(L * log1p(1 / (10 * L))), 2 ** arange(1, 13))),
]
