"""Allen-Zhu et al. 2019, arXiv 1811.03962, version 5: what of its arithmetic can be recomputed.

D stands for the paper's 𝔡, the positions of a layer, and logm in an order for log m.
"""

import numpy as np
from scipy.integrate import quad
from scipy.special import digamma, erf, erfc, ndtr
from scipy.stats import binom

from ...bounds import allenzhu2019 as bounds
from ...bounds import allenzhu2019_limits as limits
from .relations import bounded, holds, order
from .statements import statement

_ALPHA = np.linspace(0.75, 1.25, 51)[:, None]  # what Claim 7.6 is left with
_DELTA = np.linspace(1e-3, 1 / 6, 60)


def _largest_omega(L, logm):
    """1/(L^(9/2) log³m), the largest ω of Lemma 8.2 and of Theorems 4 and 5."""
    return L**-4.5 * logm**-3.0


@statement("Footnote 5", "m times the variance of the bias that the last coordinate makes", "1")
def bias_variance():
    m = 50
    return m * (2 / m) * (1 / np.sqrt(2)) ** 2


@statement("Sec. 4.2", "the omega up to which L^3 omega^(4/3) sqrt(m) of Thm 5b is small, at one L", "m^(-3/8)")
def linear_radius():
    return order(lambda m: (1 / (8.0**3 * np.sqrt(m))) ** (3 / 4))


@statement("Footnote 16", "a cross-entropy of at most 1/4 gives the label a probability above 1/2", "holds")
def small_cross_entropy():
    loss = np.linspace(0, 0.25, 50)
    return holds(np.exp(-loss) > 0.5, loss=loss)


@statement("Lemma 7.1, proof", "log h - 1/h <= digamma(h) <= log h + 1/(2h)", "holds")
def quoted_digamma():
    h = np.logspace(-6, 6, 400)
    return holds((np.log(h) - 1 / h <= digamma(h)) & (digamma(h) <= np.log(h) + 1 / (2 * h)), h=h)


@statement("Lemma 7.1, proof", "log(1 + x) >= x - x^2 for x = (2 omega - m)/m, omega in [0.4m, 0.6m]", "holds")
def logarithm():
    x = np.linspace(-0.2, 0.2, 401)
    return holds(np.log1p(x) >= x - x**2, x=x)


@statement("Lemma 7.1, proof", "m times the mean of ((2 omega - m)/m)^2", "1")
def binomial_variance():
    m = 400
    omega = np.arange(m + 1)
    return m * (binom.pmf(omega, m, 0.5) @ ((2 * omega - m) / m) ** 2)


@statement("Lemma 7.1, (7.1)", "m times the lower end that -2/m and -2/omega, both displayed, combine to", "-4")
def combined_lower_end():
    m = 4000
    omega = np.arange(int(0.4 * m), int(0.6 * m) + 1)
    return m * (-2 / m - binom.pmf(omega, m, 0.5) @ (2 / omega))


@statement("Lemma 7.1, (7.1)", "-4/m <= E log Delta <= 0", "holds")
def drift_of_norm():
    m = np.array([40, 100, 400, 1600])
    mean = np.array([limits.log_ratio_moments(k)[0] for k in m])
    return holds((-4 / m <= mean) & (mean <= 0), m=m)


@statement("Lemma 7.1", "|h|^2 in [1 - eps, 1 + eps], which is proved, puts |h| there", "holds")
def root_of_norm():
    eps = np.linspace(0, 1, 101)
    return holds((np.sqrt(1 - eps) >= 1 - eps) & (np.sqrt(1 + eps) <= 1 + eps), eps=eps)


def _unmasked_norm(m):
    """The mean of ‖W_b z‖², and the limit of ‖W_b z‖² for large m, where ‖z‖ = 1."""
    return m * (2 / m)


@statement("Lemma 7.3a, proof", "|W_b D_(b-1) .. W_a z|^2, without a last mask, is in [2/3, 4/3]", "holds")
def unmasked_product():
    mean = _unmasked_norm(100)
    return holds(abs(mean - 1) <= 1 / 3, mean=mean)


@statement("Lemma 7.5, proof", "1 - <x_i, x_j>^2 >= 3 delta^2/4, last coordinates 1/sqrt 2, delta <= 1", "holds")
def separated_inputs():
    delta = np.linspace(0.001, 1, 100)[:, None]
    distance = delta + np.linspace(0, 1, 100) * (np.sqrt(2) - delta)  # the inner product is not negative
    return holds(1 - (1 - distance**2 / 2) ** 2 >= 0.75 * delta**2 * (1 - 1e-12), delta=delta, distance=distance)


@statement("Lemma 7.5", "exponent of Lemma 7.1 at eps = delta^3/10", "delta^6 L^(-1) m")
def separation_failure():
    return order(lambda delta, L, m: m * (delta**3 / 10) ** 2 / L)


@statement("Lemma 7.5, proof", "its last equality, from the inner product to the distance of h_i and h_j", "holds")
def last_display():
    hi, hj = np.array([1.0, 0.2, 0.0]), np.array([0.7, 0.5, 0.6])
    left = hj @ hj - (hi @ hj) ** 2 / (hi @ hi)
    right = hj @ hj + ((hi - hj) @ (hi - hj) - hi @ hi - hj @ hj) / (2 * hi @ hi)
    return holds(np.isclose(left, right), left=left, right=right)


@statement("Claim 7.6, proof", "P(g_1 > 1), g_1 of variance 2, is at least", "0.3")
def large_gaussian():
    return ndtr(-1 / np.sqrt(2))


@statement("Claim 7.6, proof", "the expectation that 0.3, 1/2 and a difference of 1/4 give", "0.03")
def easy_case():
    return 0.3 * 0.5 * 0.25**2


@statement("Claim 7.6, proof", "the expectation is at least 0.03 for alpha < 3/4 and alpha > 5/4", "holds")
def easy_cases():
    alpha = np.concatenate([np.linspace(-30, 0.75, 400), np.linspace(1.25, 30, 400)])[:, None]
    return holds(bounds.claim76_expectation(alpha, _DELTA, "corrected") >= 0.03, alpha=alpha, delta=_DELTA)


def _integral(g, alpha, delta, target):
    """∫_0^∞ (x − target)² N(x; αg, 2δ²) dx."""
    mean, sd = alpha * g, np.sqrt(2) * delta
    density = lambda x: np.exp(-((x - mean) ** 2) / (4 * delta**2)) / np.sqrt(4 * np.pi * delta**2)  # noqa: E731
    return quad(lambda x: (x - target) ** 2 * density(x), max(0.0, mean - 12 * sd), max(0.0, mean) + 12 * sd)[0]


@statement("Claim 7.6, proof", "the two integrals over x >= 0 have the closed forms with erf", "holds")
def closed_integrals():
    alpha, delta, g = 0.9, 0.15, np.array([-1.5, -0.4, -0.05, 0.05, 0.4, 1.5])
    bell, step = np.exp(-((alpha * g / (2 * delta)) ** 2)) / np.sqrt(np.pi), erf(alpha * g / (2 * delta)) + 1
    above = (alpha - 2) * delta * g * bell + ((alpha - 1) ** 2 * g**2 + 2 * delta**2) / 2 * step
    below = (alpha**2 * g**2 + 2 * delta**2) / 2 * step + alpha * delta * g * bell
    exact = [_integral(v, alpha, delta, max(v, 0.0)) for v in g]
    return holds(np.isclose(np.where(g >= 0, above, below), exact, rtol=1e-7), g=g)


@statement("Claim 7.6, proof", "its closed form is the expectation, for alpha in [3/4, 5/4]", "holds")
def closed_form():
    printed, exact = (bounds.claim76_expectation(_ALPHA, 0.1, form) for form in ("printed", "corrected"))
    return holds(np.isclose(printed, exact, atol=1e-6), alpha=_ALPHA)


@statement("Claim 7.6, proof", "its series is its closed form", "holds")
def series():
    k = np.arange(1, 60)[:, None, None]
    terms = (-1.0) ** k * (_ALPHA + k) / (2 * k + 1) * (_DELTA / _ALPHA) ** (2 * k + 1)
    total = (_ALPHA - 1) ** 2 + _DELTA**2 + 2 / np.pi * terms.sum(0)
    closed = bounds.claim76_expectation(_ALPHA, _DELTA)
    return holds(np.isclose(total, closed, rtol=1e-9, atol=1e-12), alpha=_ALPHA, delta=_DELTA)


@statement("Claim 7.6, proof", "the terms of the series decrease for delta <= alpha", "holds")
def decreasing_terms():
    k = np.arange(1, 200)[:, None, None]
    ratio = (_ALPHA + k + 1) / (_ALPHA + k) * (2 * k + 1) / (2 * k + 3)  # at delta = alpha, the worst
    return holds(ratio <= 1, k=k, alpha=_ALPHA)


@statement("Claim 7.6, proof", "its first term leaves at least delta^2 (1 - delta)", "holds")
def lower_bound():
    rest = (_ALPHA - 1) ** 2 + _DELTA**2 - 2 / np.pi * (_ALPHA + 1) * _DELTA**3 / (3 * _ALPHA**3)
    return holds(rest >= bounds.claim76_lower(_DELTA), alpha=_ALPHA, delta=_DELTA)


@statement("Lemma 8.2, proof", "by Lemma 7.1 |g_l| at the start is in [2/3, 4/3], as |h_l| is", "holds")
def preactivation_norm():
    norm = np.sqrt(_unmasked_norm(100))
    return holds(2 / 3 <= norm <= 4 / 3, norm=norm)


@statement("Lemma 8.2, proof", "order of err_2, by Claim 8.5 at s = m omega^(2/3) L", "omega^(4/3) L^3 logm")
def second_error():
    return order(lambda omega, L, logm: L * omega * L**1.5 * np.sqrt(bounds.sign_changes(2.0, omega, L) / 2) * logm)


@statement("Lemma 8.2", "the omega below which err_2 is at most of the order of err_1", "L^(-9/2) logm^(-3)")
def largest_omega():
    return order(lambda L, logm: (L**1.5 / (L**3 * logm)) ** 3)


@statement("Cor. 8.4", "order of the sign changes, Claim 8.3 at its two norms", "omega^(2/3) L m")
def flipped_signs():
    return order(lambda omega, L, m: bounds.claim83(m, omega * L**1.5, omega ** (2 / 3) * L / np.sqrt(m))[0])


def _expansion(L, first, power):
    """Σ_{j≥1} C(L, j) 3^j first^(j − 1) with first = 1/(100 L^power), without its overflow."""
    return np.expm1(L * np.log1p(3 * first / L**power)) / (first / L**power)


@statement("Lemma 8.6a, proof", "the sum over the 2^(b-a) products is O(sqrt L)", "holds")
def intermediate_sum():
    L = 4.0 ** np.arange(1, 16)
    return bounded(_expansion(L, 0.01, 1.5) / np.sqrt(L))


@statement("Lemma 8.6b, proof", "the sum over the 2^(b-a+1) products is O(sqrt L)", "holds")
def perturbed_sum():
    L = 4.0 ** np.arange(1, 16)
    return bounded(np.sqrt(L) * (1 + np.sqrt(L) / L**1.5) ** L / np.sqrt(L))


@statement("Lemma 8.7", "order of its bound at s = m omega^(2/3) L", "omega^(1/3) L^2 m^(1/2) logm^(1/2) d^(-1/2)")
def backward_at_radius():
    return order(lambda omega, L, m, logm, d: np.sqrt(L**3 * bounds.sign_changes(m, omega, L) * logm / d))


@statement(
    "Thms 4, 5",
    "at their largest omega the sign changes are as few as Lemma 8.7 asks, m/(L^3 log m), also for L > log m",
    "holds",
)
def range_of_omega():
    L = 4.0 ** np.arange(1, 16)
    m = L**10
    changes = bounds.sign_changes(m, _largest_omega(L, np.log(m)), L)
    return bounded(changes / bounds.sparse_level(m, L, power=3))


@statement("Sec. 9.2", "W'_L and W''_L, as defined, add up to W_L", "holds")
def decomposition():
    w, h, g2, theta = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([0.6, 0.8]), np.array([1.0, -1.0]), 0.2
    g1 = (w @ h - theta * g2) / np.sqrt(1 - theta**2)
    first = w @ (np.eye(2) - np.outer(h, h)) - np.sqrt(1 - theta**2) * np.outer(g1, h)
    error = np.abs(first + theta * np.outer(g2, h) - w).max()
    return holds(error < 1e-9, error=error)


@statement("Sec. 9.2", "with theta = delta/(5n), P(|theta g_2| in the interval) is at least 0.2", "holds")
def window():
    share = erf(1 / np.sqrt(2) / np.sqrt(2)) - erf(5 / 9 / np.sqrt(2) / np.sqrt(2))  # σ = √2 θ n, from δ/9 to δ/5
    return holds(share >= 0.2, share=share)


@statement("Sec. 9.2", "on the event only the sign of sample i* is open: 1.1/5 < 1/4 and 0.9/9 >= 1/10", "holds")
def open_sign():
    return holds([1.1 / 5 < 1 / 4, 0.9 / 9 >= 1 / 10 - 1e-15], case=[1, 2])


@statement("Sec. 9.2", "0.8 |v|^2/d, |N|/15 and |N| >= delta m/(100 n) give the constant 1/2000", "holds")
def chain_of_constants():
    return holds(
        [0.9**2 >= 0.8, 0.2 / 2 > 1 / 15, 0.8 / 15 / 100 >= 1 / 2000, 1 / 40 / 2 >= 1 / 100], step=np.arange(1, 5)
    )


@statement("Sec. 9.2", "share of the squared norm of a term, switched on or off, that one of the cases keeps", "1")
def switched_term():
    rest = np.linspace(-2, 2, 4001)  # of the other terms, along it
    return np.maximum(rest**2, (rest + 1) ** 2).min()


@statement("Claim 9.4, proof", "P(|z| <= delta/(10 n sqrt m)) is at least delta/(25 n), |h|^2 <= 1.1", "holds")
def first_neurons():
    n = np.arange(1, 200)
    return holds(1 - bounds.fact96_tail(1 / (10 * n), np.sqrt(2.2))[1] >= 1 / (25 * n), n=n)


@statement("Claim 9.4, proof", "n times the chance of a miss, |z| < delta/(4 n sqrt m), variance delta^2/(2m)", "0.125")
def missed_neurons():
    n = 1000
    return n * bounds.claim94_miss(n, "corrected")


@statement("Claim 9.5, proof", "P(|<B_k, v>| >= |v|/sqrt d)", "0.68")
def large_output():
    return erfc(1 / np.sqrt(2))


@statement(
    "Fact 9.6", "P(|x| >= t) is in [1 - 4t/(5 sigma), 1 - 2t/(3 sigma)] for a centred normal, t < sigma", "holds"
)
def centred_tail():
    t = np.linspace(1e-4, 1, 500)
    low, high = bounds.fact96_tail(t, 1.0)
    return holds((low <= erfc(t / np.sqrt(2))) & (erfc(t / np.sqrt(2)) <= high), t=t)


@statement("Fact 9.6", "and, as it says next, for a normal of any mean mu", "holds")
def shifted_tail():
    t, mu = 0.5, np.linspace(0, 3, 31)
    low, high = bounds.fact96_tail(t, 1.0)
    tail = ndtr(mu - t) + ndtr(-mu - t)
    return holds((low <= tail) & (tail <= high), mu=mu)


@statement("Thm 3, Sec. 10", "the omega at which (10.2) is the lower bound, up to log m", "delta^(3/2) n^(-9/2) L^(-6)")
def gradient_radius():
    m = 8.0

    def radius(delta, n, L):
        lower = bounds.grad_lower(1.0, m, 1.0, n, delta)
        return (lower / bounds.gradient_change(1.0, 1.0, L, m, 1.0, n)) ** 1.5

    return order(radius)


@statement(
    "Thm 4", "order of the first-order term, the sum over l of (11.5)", "omega^(1/3) L^2 m^(1/2) logm^(1/2) d^(-1/2)"
)
def first_order_term():
    return order(lambda omega, L, m, logm, d: L * np.sqrt(L**3 * omega ** (2 / 3) * L * m * logm / d))


@statement("Thm 4", "the sum over l of (11.6) is below the first-order term, |W'| <= omega", "holds")
def mixed_term():
    L, logm = np.arange(1.0, 200)[:, None], np.arange(1.0, 200)
    omega = _largest_omega(L, logm)
    return holds(L**3 * omega <= np.cbrt(omega) * L**2 * np.sqrt(logm), L=L, logm=logm)


@statement("Thm 4", "order of the second-order term, n times (11.4) squared", "n L^2 m d^(-1)")
def second_order_term():
    return order(lambda n, L, m, d: n * bounds.claim112(1.0, L, m, d)[1] ** 2)


@statement("Thm 5c", "the omega up to which the relative change of Thm 5a is O(1)", "L^(-9) logm^(-3/2)")
def kernel_radius():
    return order(lambda L, logm: (1 / bounds.thm5a(1.0, L, np.exp(logm))) ** 3)


@statement("Sec. 12", "the eta at which step 2's second term is the decrease of step 3", "d delta n^(-4) L^(-2) m^(-1)")
def step_size():
    return order(
        lambda d, delta, n, L, m: (
            bounds.thm1_rate(1.0, delta, m, n, d) / (bounds.semismooth_terms(0, 1.0, n, L, m, d, 0)[1] * n * m / d)
        )
    )


@statement("Sec. 12", "the steps T, 1/rate, at that eta", "n^6 L^2 delta^(-2)")
def iterations():
    m, d = 8.0, 2.0
    return order(lambda n, L, delta: 1 / bounds.thm1_rate(bounds.thm1_lr(n, L, delta, m, d), delta, m, n, d))


def _movement(n, delta, m, d, logm, eta=1.0):
    """What the proof has for the movement of a layer: η √(nm/d), the steps 1/rate and √F at the start."""
    return eta * np.sqrt(bounds.grad_upper(1.0, m, d, n)) / bounds.thm1_rate(eta, delta, m, n, d) * np.sqrt(n) * logm


@statement("Sec. 12, end", "order of the movement of a layer", "n^3 delta^(-1) m^(-1/2) d^(1/2) logm")
def movement():
    return order(_movement)


@statement(
    "Sec. 12, (12.1)",
    "order of the norm over all layers, from the proof's bound of each",
    "n^3 delta^(-1) m^(-1/2) d^(1/2) logm",
)
def all_layers():
    return order(lambda n, L, delta, m, d, logm: np.linalg.norm(np.full(int(L), _movement(n, delta, m, d, logm))))


def _width(movement, n, L, delta, logm):
    """The m at which a movement, given at m = e^logm, falls to `bounds.thm1_radius`."""
    return (movement * np.exp(logm / 2) / bounds.thm1_radius(n, L, delta, np.exp(logm))) ** 2


@statement("Sec. 12", "the width at which the movement is what step 3 allows", "n^24 L^12 d logm^5 delta^(-8)")
def width():
    return order(
        lambda n, L, d, logm, delta: _width(bounds.thm1_movement(n, delta, np.exp(logm), d), n, L, delta, logm)
    )


@statement("Sec. 13", "the steps T of SGD, 1/rate, at its eta", "n^7 L^2 b^(-1) delta^(-2) logm^2")
def sgd_iterations():
    def steps(n, L, b, delta, logm):
        m = np.exp(logm)
        return 1 / bounds.thm1_rate(bounds.thm2_lr(n, L, delta, m, 1.0, b), delta, m, n, 1.0)

    return order(lambda n, L, b, delta, logm: steps(64 * n, L, b, delta, logm))


@statement("Sec. 13, (13.1)", "order of the movement of a layer", "n^(7/2) d^(1/2) b^(-1/2) m^(-1/2) delta^(-1) logm")
def sgd_movement():
    def summed(n, d, b, m, delta, logm, L=2.0):
        eta, steps = b * delta * d / (n**5 * L**2 * m * logm**2), L**2 * n**7 * logm**2 / (b * delta**2)
        return eta * np.sqrt(n**2 * m / (b * d)) * steps * np.sqrt(n) * logm

    return order(lambda n, d, b, m, delta, logm: summed(n, d, b, m, delta, logm))


@statement("Sec. 13", "the width at which that movement is what step 3 allows", "n^24 L^12 b d logm^5 delta^(-8)")
def sgd_width():
    def needed(n, L, b, d, logm, delta):
        return _width(bounds.thm2_movement(64 * n, delta, np.exp(logm), d, b), 64 * n, L, delta, logm)

    return order(needed)


@statement("Sec. 13", "order of what completing the square leaves", "eta L^2 m n^5 logm^2 b^(-1) delta^(-1) d^(-1)")
def completed_square():
    def left(eta, L, m, n, logm, b, delta, d):
        return (bounds.thm2_growth(eta, L, m, 64 * n, d, b, "corrected") * logm) ** 2 / bounds.thm1_rate(
            eta, delta, m, n, d
        )

    return order(left)


@statement("Sec. 13, step 3", "(a sqrt(t) - b)^2 >= a^2 t/4 from t = 2 b^2/a^2 on", "holds")
def square_bound():
    t = np.linspace(2, 20, 400)  # in units of b^2/a^2
    return holds((np.sqrt(t) - 1) ** 2 >= t / 4, t=t)


@statement("Sec. 14, (14.1)", "order of its bound", "omega^(4/3) L^3 m^(1/2) logm^(1/2) d^(-1/2)")
def beyond_linear():
    return order(lambda omega, L, m, logm, d: L * np.sqrt(bounds.sign_changes(m, omega, L) * logm / d) * omega * L**1.5)


@statement("Thm 5a", "sqrt(L) layers of (10.2) are at most L^3", "holds")
def relative_gradient():
    L = np.arange(1.0, 300)
    return holds(np.sqrt(L) * L**2 <= L**3, L=L)


@statement("App. A", "order of T for a loss that is bounded and not convex", "n^6 L^2 delta^(-2) eps^(-2)")
def nonconvex_iterations():
    m, d = 8.0, 2.0

    def steps(n, L, delta, eps):
        return n * 1.0 / (bounds.thm1_rate(bounds.thm1_lr(n, L, delta, m, d), delta, m, n, d) * eps**2)

    return order(steps)


@statement("App. A", "order of T for a convex loss", "n^7 L^2 delta^(-2) eps^(-1)")
def convex_iterations():
    m, d = 8.0, 2.0

    def steps(n, L, delta, eps):
        return n / (bounds.thm1_rate(bounds.thm1_lr(n, L, delta, m, d), delta, m, n, d) * eps)

    return order(steps)


@statement(
    "Thm 6",
    "the width for a sigma-gradient-dominant loss: the squared sum of roots of losses of rate sigma is O(sigma^(-2))",
    "holds",
)
def pl_width():
    sigma = 2.0 ** -np.arange(1, 20)
    return bounded((sigma / (1 - np.sqrt(1 - sigma))) ** 2)


@statement(
    "Thm 6", "the width for other losses: by Cauchy-Schwarz T times the sum of squared loss gradients, O(1)", "eps^(-1)"
)
def nonconvex_width():
    return order(lambda eps: bounds.thm6_iters("nonconvex", 1, 1, 1, eps) * 1.0)


@statement("App. A, footnote 20", "p(1 - p) < 1/4 implies p > 1/2, p the probability of the label", "holds")
def right_label():
    p = np.linspace(0.01, 0.99, 99)
    return holds((p * (1 - p) >= 1 / 4) | (p > 1 / 2), p=p)


@statement("App. B", "order of |h_0|^2 where A has variance 2/sqrt(q m) and the patches q in all", "O(1)")
def first_convolution():
    return order(lambda q, m: m / 2 * 2 / np.sqrt(q * m) * q)


@statement("App. B", "order of |h_L|^2/|h_(L-1)|^2 where W_L, of Dm rows, has variance 2/(q m)", "O(1)")
def last_convolution():
    return order(lambda D, q: limits.cnn_gains(64.0, q, D)[1])


@statement("App. B.1", "order of what the biases add to |h_l|^2", "tau^2 D q^(-1)")
def bias_growth():
    m = 8.0
    return order(lambda tau, D, q: D * m / 2 * (2 / (q * m)) * tau**2)


@statement("App. B.1, footnote 22", "tau = delta^2/(10 D L) has tau^2 <= eps q/(10 D L) at eps = delta^3/10", "holds")
def bias_scale():
    delta, D, L = np.meshgrid(np.linspace(0.01, 1, 30), [1, 4, 100], [1, 3, 50])
    return holds(bounds.cnn_tau(delta, D, L) ** 2 <= delta**3 / 10 / (10 * D * L) * (1 + 1e-9), delta=delta, D=D, L=L)


@statement("App. C.1", "P(a coordinate of h_0 is at least 0.6/sqrt m) is above 1/4", "holds")
def large_coordinates():
    return holds(erfc(0.6 / 2) / 2 > 1 / 4, share=erfc(0.6 / 2) / 2)


@statement("App. C.1", "(0.6 - 0.1)^2 (1 - 1/(10L))^L/4 >= 1/20", "holds")
def residual_norm():
    L = np.arange(1, 10_000)
    return holds(0.5**2 * (1 - 1 / (10 * L)) ** L / 4 >= 1 / 20, L=L)


@statement("App. C.1", "share of the coordinates of h_i,0, a ReLU's, of at least 1/(10 sqrt m)", "0.75")
def positive_coordinates():
    return erfc(0.1 / 2) / 2


@statement("App. C.1", "(1 + 1/(10L)) |h'| + tau omega in each of L layers is O(tau omega)", "holds")
def residual_change():
    L = 2 ** np.arange(1, 13)
    return bounded([10 * depth * np.expm1(depth * np.log1p(1 / (10 * depth))) for depth in L])
