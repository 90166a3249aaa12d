"""Allen-Zhu et al. 2019, arXiv 1811.03962v5: what of its arithmetic can be recomputed.

D stands for the paper's 𝔡, the positions of a layer, and logm in an order for log m.
"""

import numpy as np
from numpy import arange, array, exp, isclose, linspace, log, log1p, sqrt
from scipy.integrate import quad
from scipy.special import digamma, erf, erfc, ndtr
from scipy.stats import binom

from overparam.bounds import allenzhu2019 as bounds

from .statement import bounded, holds, order

ALPHA = linspace(0.75, 1.25, 51)  # what Claim 7.6 is left with
OTHER_ALPHA = np.concatenate([linspace(-30, 0.75, 400), linspace(1.25, 30, 400)])
DELTA = linspace(1e-3, 1 / 6, 60)
DEPTHS = 4.0 ** arange(1, 16)
UNMASKED = 100 * (2 / 100)  # the mean of |W_b z|^2 where |z| = 1, and its limit for large m


def _binomial_mean(values, m, omega):
    """The sum over omega of values(omega) P(B(m, 1/2) = omega)."""
    return binom.pmf(omega, m, 0.5) @ values(omega)


def _last_display():
    hi, hj = array([1.0, 0.2, 0.0]), array([0.7, 0.5, 0.6])
    left = hj @ hj - (hi @ hj) ** 2 / (hi @ hi)
    right = hj @ hj + ((hi - hj) @ (hi - hj) - hi @ hi - hj @ hj) / (2 * hi @ hi)
    return left, right


def _integral(g, alpha, delta):
    """The integral over x >= 0 of (x - max(g, 0))^2 N(x; alpha g, 2 delta^2), by quadrature."""
    mean, sd = alpha * g, sqrt(2) * delta

    def integrand(x):
        density = exp(-((x - mean) ** 2) / (4 * delta**2)) / sqrt(4 * np.pi * delta**2)
        return (x - max(g, 0.0)) ** 2 * density

    ends = max(0.0, mean - 12 * sd), max(0.0, mean) + 12 * sd
    return quad(integrand, *ends)[0]


def _closed_integrals(g, alpha=0.9, delta=0.15):
    bell = exp(-((alpha * g / (2 * delta)) ** 2)) / sqrt(np.pi)
    step = erf(alpha * g / (2 * delta)) + 1
    above = (alpha - 2) * delta * g * bell + ((alpha - 1) ** 2 * g**2 + 2 * delta**2) / 2 * step
    below = (alpha**2 * g**2 + 2 * delta**2) / 2 * step + alpha * delta * g * bell
    return isclose(
        np.where(g >= 0, above, below), [_integral(v, alpha, delta) for v in g], rtol=1e-7
    )


def _series(alpha, delta):
    k = arange(1, 60)[:, None, None]
    terms = (-1.0) ** k * (alpha + k) / (2 * k + 1) * (delta / alpha) ** (2 * k + 1)
    total = (alpha - 1) ** 2 + delta**2 + 2 / np.pi * terms.sum(0)
    return isclose(total, bounds.claim76_expectation(alpha, delta), rtol=1e-9, atol=1e-12)


def _largest_omega(L, logm):
    """1/(L^(9/2) log^3 m), the largest omega of Lemma 8.2 and of Theorems 4 and 5."""
    return L**-4.5 * logm**-3.0


def _decomposition_error(theta=0.2):
    w, h, g2 = array([[1.0, 2.0], [3.0, -1.0]]), array([0.6, 0.8]), array([1.0, -1.0])
    g1 = (w @ h - theta * g2) / sqrt(1 - theta**2)
    first = w @ (np.eye(2) - np.outer(h, h)) - sqrt(1 - theta**2) * np.outer(g1, h)
    return np.abs(first + theta * np.outer(g2, h) - w).max()


def _tail_within(t, mu):
    tail = ndtr(mu - t) + ndtr(-mu - t)
    return (1 - 0.8 * t <= tail) & (tail <= 1 - 2 / 3 * t)


def _iterations(n, L, delta, m=8.0, d=2.0):
    """1/rate at the eta of Theorem 1."""
    return 1 / bounds.thm1_rate(bounds.thm1_lr(n, L, delta, m, d), delta, m, n, d)


def _movement(n, delta, m, d, logm, eta=1.0):
    """What the proof has for a layer's movement: eta sqrt(nm/d), 1/rate steps, sqrt F(0)."""
    steps = 1 / bounds.thm1_rate(eta, delta, m, n, d)
    return eta * sqrt(bounds.grad_upper(1.0, m, d, n)) * steps * sqrt(n) * logm


def _width(movement, n, L, delta, logm):
    """The m at which a movement, given at m = e^logm, falls to `bounds.thm1_radius`."""
    return (movement * exp(logm / 2) / bounds.thm1_radius(n, L, delta, exp(logm))) ** 2


def _sgd_movement(n, d, b, m, delta, logm, L=2.0):
    eta, steps = b * delta * d / (n**5 * L**2 * m * logm**2), L**2 * n**7 * logm**2 / (b * delta**2)
    return eta * sqrt(n**2 * m / (b * d)) * steps * sqrt(n) * logm


# fmt: off
ROWS = [
    ("Footnote 5", "m times the variance of the bias that the last coordinate makes",
     "1", lambda m=50: m * (2 / m) * (1 / sqrt(2)) ** 2),
    ("Section 4.2", "the omega up to which L^3 omega^(4/3) sqrt(m) of Thm 5b is small, at one L",
     "m^(-3/8)", order(lambda m: (1 / (8.0**3 * sqrt(m))) ** (3 / 4))),
    ("Footnote 16", "a cross-entropy of at most 1/4 gives the label a probability above 1/2",
     "holds", holds(lambda loss: exp(-loss) > 0.5, loss=linspace(0, 0.25, 50))),
    ("Lemma 7.1, proof", "log h - 1/h <= digamma(h) <= log h + 1/(2h)",
     "holds",
     holds(lambda h: (log(h) - 1 / h <= digamma(h)) & (digamma(h) <= log(h) + 1 / (2 * h)),
           h=np.logspace(-6, 6, 400))),
    ("Lemma 7.1, proof", "log(1 + x) >= x - x^2 for x = (2 omega - m)/m, omega in [0.4m, 0.6m]",
     "holds", holds(lambda x: log1p(x) >= x - x**2, x=linspace(-0.2, 0.2, 401))),
    ("Lemma 7.1, proof", "m times the mean of ((2 omega - m)/m)^2",
     "1",
     lambda m=400: m * _binomial_mean(lambda omega: ((2 * omega - m) / m) ** 2, m, arange(m + 1))),
    ("(7.1)",
     r"$m$ times the lower end that $-\frac2m$ and $-\frac2\omega$, both displayed, combine to",
     "-4",
     lambda m=4000: m * (-2 / m - _binomial_mean(lambda omega: 2 / omega, m, arange(1600, 2401))),
     "constant"),
    ("Lemma 7.1, (7.1)", "-4/m <= E log Delta <= 0",
     "holds",
     holds(lambda m: [-4 / k <= bounds.log_ratio_moments(k)[0] <= 0 for k in m],
           m=[40, 100, 400, 1600])),
    ("Lemma 7.1", "|h|^2 in [1 - eps, 1 + eps], which is proved, puts |h| there",
     "holds",
     holds(lambda eps: (sqrt(1 - eps) >= 1 - eps) & (sqrt(1 + eps) <= 1 + eps),
           eps=linspace(0, 1, 101))),
    ("Lemma 7.3a, proof",
     r"$\lVert W_bD_{b-1}\cdots W_az\rVert^2$, without a last mask, is in $[\frac23, \frac43]$",
     "holds", holds(lambda mean: abs(mean - 1) <= 1 / 3, mean=[UNMASKED]),
     "constant"),
    ("Lemma 7.5, proof", "1 - <x_i, x_j>^2 >= 3 delta^2/4, last coordinates 1/sqrt 2, delta <= 1",
     "holds",
     holds(lambda delta, share:
               1 - (1 - (delta + share * (sqrt(2) - delta)) ** 2 / 2) ** 2 >= 0.749999 * delta**2,
           delta=linspace(0.001, 1, 100), share=linspace(0, 1, 100))),
    ("Lemma 7.5", "exponent of Lemma 7.1 at eps = delta^3/10",
     "delta^6 L^(-1) m", order(lambda delta, L, m: m * (delta**3 / 10) ** 2 / L)),
    ("Lemma 7.5, proof, last display",
     "its last equality, from the inner product of $h_i$ and $h_j$ to their distance",
     "holds",
     holds(lambda left, right: isclose(left, right),
           left=[_last_display()[0]], right=[_last_display()[1]]),
     "constant"),
    (r"Claim 7.6, proof, $\alpha < \frac34$", r"$\Pr(g_1 > 1)$, $g_1$ of variance 2, is at least",
     "0.3", ndtr(-1 / sqrt(2)),
     "constant"),
    (r"Claim 7.6, proof, $\alpha < \frac34$",
     r"the expectation that 0.3, $\frac12$ and a difference of $\frac14$ give",
     "0.03", 0.3 * 0.5 * 0.25**2,
     "constant"),
    ("Claim 7.6, proof", "the expectation is at least 0.03 for alpha < 3/4 and alpha > 5/4",
     "holds",
     holds(lambda alpha, delta: bounds.claim76_expectation(alpha, delta, "corrected") >= 0.03,
           alpha=OTHER_ALPHA, delta=DELTA)),
    ("Claim 7.6, proof", "the two integrals over x >= 0 have the closed forms with erf",
     "holds", holds(_closed_integrals, g=[-1.5, -0.4, -0.05, 0.05, 0.4, 1.5])),
    ("Claim 7.6, proof", r"its closed form is the expectation, for $\alpha \in [\frac34, \frac54]$",
     "holds",
     holds(lambda alpha:
               isclose(bounds.claim76_expectation(alpha, 0.1, "printed"),
                       bounds.claim76_expectation(alpha, 0.1, "corrected"), atol=1e-6),
           alpha=ALPHA),
     "constant"),
    ("Claim 7.6, proof", "its series is its closed form",
     "holds", holds(_series, alpha=ALPHA, delta=DELTA)),
    ("Claim 7.6, proof", "the terms of the series decrease for delta <= alpha",
     # worst: delta = alpha
     "holds",
     holds(lambda k, alpha: (alpha + k + 1) / (alpha + k) * (2 * k + 1) / (2 * k + 3) <= 1,
           k=arange(1, 200), alpha=ALPHA)),
    ("Claim 7.6, proof", "its first term leaves at least delta^2 (1 - delta)",
     "holds",
     holds(lambda alpha, delta:
               (alpha - 1) ** 2 + delta**2 - 2 / np.pi * (alpha + 1) * delta**3 / (3 * alpha**3)
               >= bounds.claim76_lower(delta),
           alpha=ALPHA, delta=DELTA)),
    ("Lemma 8.2, proof",
     r"$\lVert g_l^{(0)}\rVert \in [\frac23, \frac43]$ by Lemma 7.1, as $\lVert h_l^{(0)}\rVert$ "
     "is",
     "holds", holds(lambda norm: abs(norm - 1) <= 1 / 3, norm=[sqrt(UNMASKED)]),
     "constant"),
    ("Lemma 8.2, proof", "order of err_2, by Claim 8.5 at s = m omega^(2/3) L",
     "omega^(4/3) L^3 logm",
     order(lambda omega, L, logm:
               L * omega * L**1.5 * sqrt(bounds.sign_changes(2.0, omega, L) / 2) * logm)),
    ("Lemma 8.2", "the omega below which err_2 is at most of the order of err_1",
     "L^(-9/2) logm^(-3)", order(lambda L, logm: (L**1.5 / (L**3 * logm)) ** 3)),
    ("Corollary 8.4", "order of the sign changes, Claim 8.3 at its two norms",
     "omega^(2/3) L m",
     order(lambda omega, L, m:
               m * (omega * L**1.5) ** (2 / 3) + omega ** (2 / 3) * L / sqrt(m) * m**1.5)),
    ("Lemma 8.6a, proof", r"the sum over the $2^{b-a}$ products is $O(\sqrt L)$",
     # the sum over j >= 1 of C(L, j) 3^j f^(j - 1) at f = 1/(100 L^1.5)
     "holds",
     bounded(lambda L: np.expm1(L * log1p(0.03 / L**1.5)) / (0.01 / L**1.5) / sqrt(L), DEPTHS),
     "exponent"),
    ("Lemma 8.6b, proof", "the sum over the 2^(b-a+1) products is O(sqrt L)",
     "holds", bounded(lambda L: (1 + sqrt(L) / L**1.5) ** L, DEPTHS)),
    ("Lemma 8.7", "order of its bound at s = m omega^(2/3) L",
     "omega^(1/3) L^2 m^(1/2) logm^(1/2) d^(-1/2)",
     order(lambda omega, L, m, logm, d: sqrt(L**3 * bounds.sign_changes(m, omega, L) * logm / d))),
    ("Theorems 4, 5",
     r"at their largest $\omega$ as few signs change as Lemma 8.7 asks, $m/(L^3\log m)$, also for "
     r"$L > \log m$",
     "holds",
     bounded(lambda L:
                 bounds.sign_changes(L**10, _largest_omega(L, 10 * log(L)), L)
                 / bounds.sparse_level(L**10, L, power=3),
             DEPTHS),
     "exponent"),
    ("Section 9.2, $W'_L$", "$W'_L$ and $W''_L$, as defined, add up to $W_L$",
     "holds", holds(lambda error: error < 1e-9, error=[_decomposition_error()]),
     "typo"),
    ("Section 9.2", "with theta = delta/(5n), P(|theta g_2| in the interval) is at least 0.2",
     # sigma = sqrt(2) theta n, from delta/9 to delta/5
     "holds", holds(lambda: erf(1 / 2) - erf(5 / 18) >= 0.2)),
    ("Section 9.2",
     "on the event only the sign of sample i* is open: 1.1/5 < 1/4 and 0.9/9 >= 1/10",
     "holds", holds(lambda: [1.1 / 5 < 1 / 4, 0.9 / 9 >= 1 / 10 - 1e-15])),
    ("Section 9.2", "0.8 |v|^2/d, |N|/15 and |N| >= delta m/(100 n) give the constant 1/2000",
     "holds",
     holds(lambda: [0.9**2 >= 0.8, 0.2 / 2 > 1 / 15, 0.8 / 15 / 100 >= 1 / 2000,
                    1 / 40 / 2 >= 1 / 100])),
    ("Lemma 9.3, proof",
     "share of the squared norm of a term, switched on or off, that is left in one of the cases",
     # rest: of the others
     "1", lambda: min(max(rest**2, (rest + 1) ** 2) for rest in linspace(-2, 2, 4001)),
     "constant"),
    ("Claim 9.4, proof", "P(|z| <= delta/(10 n sqrt m)) is at least delta/(25 n), |h|^2 <= 1.1",
     "holds", holds(lambda n: 2 / 3 / (10 * n) / sqrt(2.2) >= 1 / (25 * n), n=arange(1, 200))),
    ("Claim 9.4, proof",
     r"$n$ times the chance of a miss, $\lvert z\rvert < \delta/(4n\sqrt m)$, $z$ of variance "
     r"$\delta^2/(2m)$",
     "0.125", lambda n=1000: n * bounds.claim94_miss(n, "corrected"),
     "constant"),
    ("Claim 9.5, proof", r"$\Pr(\lvert\langle B_k, v\rangle\rvert \ge \lVert v\rVert/\sqrt d)$",
     "0.68", erfc(1 / sqrt(2)),
     "constant"),
    ("Fact 9.6",
     "P(|x| >= t) is in [1 - 4t/(5 sigma), 1 - 2t/(3 sigma)] for a centred normal, t < sigma",
     "holds", holds(lambda t: _tail_within(t, 0.0), t=linspace(1e-4, 1, 500))),
    ("Fact 9.6, second part",
     r"for a normal $x$ of any mean, $\Pr(\lvert x\rvert \ge t) \in [1 - \frac{4t}{5\sigma}, 1 - "
     r"\frac{2t}{3\sigma}]$",
     "holds", holds(lambda mu: _tail_within(0.5, mu), mu=linspace(0, 3, 31)),
     "false"),
    ("Theorem 3, Section 10", "the omega at which (10.2) is the lower bound, up to log m",
     "delta^(3/2) n^(-9/2) L^(-6)",
     order(lambda delta, n, L:
               (bounds.grad_lower(1.0, 8.0, 1.0, n, delta)
                / bounds.gradient_change(1.0, 1.0, L, 8.0, 1.0, n)) ** 1.5)),
    ("Theorem 4, first term", "order of the first-order term, the sum over $l$ of (11.5)",
     "omega^(1/3) L^2 m^(1/2) logm^(1/2) d^(-1/2)",
     order(lambda omega, L, m, logm, d: L * sqrt(L**3 * omega ** (2 / 3) * L * m * logm / d)),
     "exponent"),
    ("Theorem 4", "the sum over l of (11.6) is below the first-order term, |W'| <= omega",
     "holds",
     holds(lambda L, logm: L**3 * _largest_omega(L, logm) ** (2 / 3) <= L**2 * sqrt(logm),
           L=arange(1.0, 200), logm=arange(1.0, 200))),
    ("Theorem 4", "order of the second-order term, n times (11.4) squared",
     "n L^2 m d^(-1)", order(lambda n, L, m, d: n * (L * sqrt(m / d)) ** 2)),
    ("Theorem 5c", "the omega up to which the relative change of Thm 5a is O(1)",
     "L^(-9) logm^(-3/2)", order(lambda L, logm: (1 / bounds.thm5a(1.0, L, exp(logm))) ** 3)),
    ("Section 12", "the eta at which step 2's second term is the decrease of step 3",
     "d delta n^(-4) L^(-2) m^(-1)",
     order(lambda d, delta, n, L, m:
               bounds.thm1_rate(1.0, delta, m, n, d)
               / (bounds.semismooth_terms(0, 1.0, n, L, m, d, 0)[1] * n * m / d))),
    ("Section 12", "the steps T, 1/rate, at that eta",
     "n^6 L^2 delta^(-2)", order(_iterations)),
    ("Section 12, end", "order of the movement of a layer",
     "n^3 delta^(-1) m^(-1/2) d^(1/2) logm", order(_movement)),
    ("eq. (12.1)", "order of the norm over all layers, from the proof's bound of each",
     "n^3 delta^(-1) m^(-1/2) d^(1/2) logm",
     order(lambda n, L, delta, m, d, logm:
               np.linalg.norm(np.full(int(L), _movement(n, delta, m, d, logm)))),
     "typo"),
    ("Section 12", "the width at which the movement is what step 3 allows",
     "n^24 L^12 d logm^5 delta^(-8)",
     order(lambda n, L, d, logm, delta:
               _width(bounds.thm1_movement(n, delta, exp(logm), d), n, L, delta, logm))),
    ("Section 13", "the steps T of SGD, 1/rate, at its eta",
     "n^7 L^2 b^(-1) delta^(-2) logm^2",
     order(lambda n, L, b, delta, logm:
               1 / bounds.thm1_rate(bounds.thm2_lr(64 * n, L, delta, exp(logm), 1.0, b),
                                    delta, exp(logm), 64 * n, 1.0))),
    ("Section 13, (13.1)", "order of the movement of a layer",
     "n^(7/2) d^(1/2) b^(-1/2) m^(-1/2) delta^(-1) logm", order(_sgd_movement)),
    ("Theorem 2, width in Section 13",
     "order of the width at which the movement (13.1) is what step 3 allows",
     "n^24 L^12 b d logm^5 delta^(-8)",
     order(lambda n, L, b, d, logm, delta:
               _width(bounds.thm2_movement(64 * n, delta, exp(logm), d, b),
                      64 * n, L, delta, logm)),
     "exponent"),
    ("Section 13", "order of what completing the square leaves",
     "eta L^2 m n^5 logm^2 b^(-1) delta^(-1) d^(-1)",
     order(lambda eta, L, m, n, logm, b, delta, d:
               (bounds.thm2_growth(eta, L, m, 64 * n, d, b, "corrected") * logm) ** 2
               / bounds.thm1_rate(eta, delta, m, n, d))),
    ("Section 13, step 3",
     r"$(a\sqrt t - b)^2 \ge a^2t/4$ from $t = 2b^2/a^2$ on (below, $t$ in units of $b^2/a^2$)",
     # in units of b^2/a^2
     "holds", holds(lambda t: (sqrt(t) - 1) ** 2 >= t / 4, t=linspace(2, 20, 400)),
     "constant"),
    ("Section 14, (14.1)", "order of its bound",
     "omega^(4/3) L^3 m^(1/2) logm^(1/2) d^(-1/2)",
     order(lambda omega, L, m, logm, d:
               L * sqrt(bounds.sign_changes(m, omega, L) * logm / d) * omega * L**1.5)),
    ("Theorem 5a", "sqrt(L) layers of (10.2) are at most L^3",
     "holds", holds(lambda L: sqrt(L) * L**2 <= L**3, L=arange(1.0, 300))),
    ("Appendix A, $T$, not convex",
     "order of $T$ for a loss that is bounded and not convex, $F(W^{(0)}) = O(n)$",
     "n^6 L^2 delta^(-2) eps^(-2)",
     order(lambda n, L, delta, eps: n * _iterations(n, L, delta) / eps**2),
     "typo"),
    ("Appendix A", "order of T for a convex loss",
     "n^7 L^2 delta^(-2) eps^(-1)",
     order(lambda n, L, delta, eps: n * _iterations(n, L, delta) / eps)),
    ("Theorem 6",
     "the width for a sigma-gradient-dominant loss: the squared sum of roots of losses of rate "
     "sigma is O(sigma^(-2))",
     "holds", bounded(lambda sigma: (sigma / (1 - sqrt(1 - sigma))) ** 2, 2.0 ** -arange(1, 20))),
    ("Theorem 6, width, not convex",
     r"order of the width in $\varepsilon$: by Cauchy-Schwarz, $T$ times the sum of squared loss "
     "gradients, $O(1)$",
     "eps^(-1)", order(lambda eps: bounds.thm6_iters("nonconvex", 1, 1, 1, eps)),
     "exponent"),
    ("Footnote 20", r"$p(1-p) < \frac14$ implies $p > \frac12$, $p$ the probability of the label",
     "holds", holds(lambda p: (p * (1 - p) >= 1 / 4) | (p > 1 / 2), p=linspace(0.01, 0.99, 99)),
     "constant"),
    ("Appendix B, variances",
     r"order of $\lVert h_0\rVert^2$, $A$ of variance $2/\sqrt{qm}$, the patches of squared norm "
     "$q$ in all",
     "O(1)", order(lambda q, m: m / 2 * 2 / sqrt(q * m) * q),
     "exponent"),
    ("Appendix B, variances",
     r"order of $\lVert h_L\rVert^2/\lVert h_{L-1}\rVert^2$, $W_L$ of $Dm$ rows and variance "
     "$2/(qm)$ ($D$: 𝔡)",
     "O(1)", order(lambda D, q: bounds.cnn_gains(64.0, q, D)[1]),
     "exponent"),
    ("Appendix B.1", "order of what the biases add to |h_l|^2",
     # at m = 8
     "tau^2 D q^(-1)", order(lambda tau, D, q: D * 8.0 / 2 * (2 / (q * 8.0)) * tau**2)),
    ("Appendix B.1, footnote 22",
     "tau = delta^2/(10 D L) has tau^2 <= eps q/(10 D L) at eps = delta^3/10",
     "holds",
     holds(lambda D, delta, L:
               bounds.cnn_tau(delta, D, L) ** 2 <= delta**3 / 10 / (10 * D * L) * (1 + 1e-9),
           D=[1, 4, 100], delta=linspace(0.01, 1, 30), L=[1, 3, 50])),
    ("Appendix C.1", "P(a coordinate of h_0 is at least 0.6/sqrt m) is above 1/4",
     "holds", holds(lambda: erfc(0.6 / 2) / 2 > 1 / 4)),
    ("Appendix C.1", "(0.6 - 0.1)^2 (1 - 1/(10L))^L/4 >= 1/20",
     "holds", holds(lambda L: 0.5**2 * (1 - 1 / (10 * L)) ** L / 4 >= 1 / 20, L=arange(1, 10_000))),
    ("Appendix C.1, Lemma 7.5",
     r"share of the coordinates of $h_{i,0}$, after a ReLU, of at least $\frac1{10\sqrt m}$",
     "0.75", erfc(0.1 / 2) / 2,
     "constant"),
    ("Appendix C.1",
     r"$(1 + \frac1{10L})\lVert h'\rVert + \tau\omega$ in each of $L$ layers is $O(\tau\omega)$",
     "holds", bounded(lambda L: 10 * L * np.expm1(L * log1p(1 / (10 * L))), 2 ** arange(1, 13)),
     "exponent"),
]
