"""Arora et al. 2019, arXiv 1901.08584: what of its arithmetic can be recomputed."""

import numpy as np
from numpy import arange, exp, isclose, linspace, log, log1p, logspace, pi, sqrt
from scipy.integrate import quad
from scipy.special import erf, factorial2, gammaln, ndtr

from overparam.bounds import arora2019 as bounds

from .statement import bounded, holds, order, power

STEP = linspace(1e-4, 1, 400)  # eta lam0 in (0, 1]
J = arange(1, 85)[:, None]  # of a series


@np.vectorize
def _both_positive(rho):
    """P(g > 0, h > 0) of standard normals with correlation rho, by quadrature over g."""
    slope = rho / sqrt(1 - rho**2)
    integral = quad(lambda g: exp(-g * g / 2) * ndtr(slope * g), 0, np.inf, epsabs=1e-12)[0]
    return integral / sqrt(2 * pi)


def _error_at_width(n, lam0, delta, eps):
    kappa = bounds.thm41_kappa(eps, delta, n)
    return bounds.thm41_eps(n, bounds.thm41_width(n, lam0, kappa, delta, eps), kappa, lam0, delta)


def _moved(n, m, lam0, kappa, delta):
    """2 R/(sqrt(2 pi) kappa delta), R of the proof of Lemma C.2."""
    return 2 * n / (sqrt(m) * lam0 * sqrt(delta)) / (sqrt(2 * pi) * kappa * delta)


def _neurons_that_leave(m=64, delta=2.0**-5):
    """2/m times the largest sum of m probabilities whose union is delta: all events are one."""
    total = 2 / m * (m * delta)
    return "2 delta/m" if total == 2 * delta / m else f"{total / delta:.3g} delta"


def _peak(x):
    """x max_k k (1 - x/4)^(k - 1), the maximum near k = -1/log(1 - x/4)."""
    k = np.stack([np.ceil(-1 / log1p(-x / 4)) + shift for shift in (-1, 0, 1)]).clip(1)
    return x * (k * (1 - x / 4) ** (k - 1)).max(0)


def _rest(m, kappa, n=2.0, lam0=0.5, delta=0.5):
    """All terms of (36) but n kappa/(lam0 delta), times m^(1/4) kappa^(1/2)."""
    others = bounds.lem53_B(0.0, n, m, kappa, lam0, delta) - n * kappa / (lam0 * delta)
    return others * m**0.25 * kappa**0.5


def _rademacher(delta, m=1000.0, n=50.0, b=3.0, r=0.01, kappa=0.1):
    hoeffding = sqrt(log(2 / delta) / (2 * m))
    flips = 2 * r * sqrt(m) * (sqrt(2 / pi) * r / kappa + hoeffding)
    proof = b / n * (sqrt(n / 2) + sqrt(n * hoeffding)) + flips
    return proof <= bounds.lem54_rademacher(b, r, m, n, kappa, delta) * (1 + 1e-12)


def _left_over(n, share):
    quadratic = n * share  # y'H^-1 y
    rest = 1 / sqrt(n) + 2 * (sqrt(quadratic / (2 * n)) + 2 / sqrt(n)) - sqrt(2 * quadratic / n)
    return rest <= 6 * sqrt(log(2 * n) / n) / sqrt(log(2))  # lam0 <= 1/2


def _arcsin_series(k):
    l = arange(1, 400)[:, None]
    steps = (2 * l - 3).clip(1) / (2 * l - 2).clip(1)
    ratio = exp(np.cumsum(log(steps), axis=0))  # of the double factorials
    return k / 4 + (ratio * k ** (2 * l) / (2 * l - 1)).sum(0) / (2 * pi)


def _cor62(alphas, b):
    """(13), squared, for a sum of even powers of beta'x, at each |beta| of b."""
    j = arange(1, len(alphas) + 1)
    return np.array([bounds.cor62_bound(alphas, [x] * len(j), list(2 * j)) for x in b]) ** 2


# fmt: off
ROWS = [
    ("Section 3.2, eq. (3)", "both neurons on: (pi - arccos r)/(2 pi), r the inner product",
     "holds",
     holds(lambda rho: isclose(_both_positive(rho), (pi - np.arccos(rho)) / (2 * pi), atol=1e-9),
           rho=linspace(-0.99, 0.99, 11))),
    ("Theorem 3.1", "order of the loss at initialisation, by Markov's inequality",
     # E(y - u)^2 <= 1 + kappa^2/2, kappa <= 1
     "n delta^(-1)", order(lambda n, delta: n * (1 + 1 / 2) / 2 / delta)),
    ("Theorem 3.1, footnote 3", "the width at which H moves by less than lam0",
     # the drift falls with m^(-1/2), so m is the square of the drift at m = 1, in units of lam0
     "n^6 lam0^(-4) kappa^(-2) delta^(-3)",
     order(lambda n, lam0, kappa, delta: (bounds.lemC2_H(n, 1.0, lam0, kappa, delta) / lam0) ** 2)),
    ("Theorem 4.1",
     "its kappa and m, put into the last display of its proof, leave an error of order eps",
     "eps", order(_error_at_width)),
    ("Lemma C.1", "sqrt(1 - x/2) is at most 1 - x/4, x = eta lam0",
     "holds", holds(lambda x: sqrt(1 - x / 2) <= 1 - x / 4, x=STEP)),
    ("Lemma C.1", "factor of sqrt(n/m) |y - u(0)|/lam0 in the sum of all steps",
     "4", lambda x=1e-3: x / (1 - (1 - x / 4))),
    ("Appendix C, eq. (17)",
     "a centred normal is in [-R, R] with probability at most 2R/(sqrt(2 pi) kappa)",
     "holds", holds(lambda R: erf(R / sqrt(2)) <= 2 * R / sqrt(2 * pi), R=logspace(-4, 1, 200))),
    ("Lemma C.2, proof",
     r"$\frac2m\sum_r\Pr[\text{neuron } r\text{ leaves}]$, where $\delta$ bounds the probability "
     "that any leaves",
     "2 delta/m", _neurons_that_leave,
     "constant"),
    ("Lemma C.2",
     "order of 4 n^2 R/(sqrt(2 pi) kappa delta), the change of H, at the R of its proof",
     "n^3 m^(-1/2) lam0^(-1) kappa^(-1) delta^(-3/2)",
     order(lambda n, m, lam0, kappa, delta: 2 * n**2 * _moved(n, m, lam0, kappa, delta))),
    ("Lemma C.2",
     "order of 2 n R/(sqrt(2 pi) kappa delta), the squared change of Z, at the R of its proof",
     "n^2 m^(-1/2) lam0^(-1) kappa^(-1) delta^(-3/2)",
     order(lambda n, m, lam0, kappa, delta: n * _moved(n, m, lam0, kappa, delta))),
    ("Appendix C, Theorem 4.1",
     "factor of sqrt(mn) |y - u(0)|/(sqrt(2 pi) kappa lam0) in the neurons that may flip at an "
     "input",
     "8",
     lambda n=7.0, m=11.0, lam0=0.3, res0=5.0:
         2 * m * bounds.lemC1_R(n, m, lam0, res0) * lam0 / (sqrt(m * n) * res0)),
    ("Appendix C, Theorem 4.1", "order of epsilon(k)/|u(k) - y|, with the flips of (19)",
     "eta n^(5/2) m^(-1/2) kappa^(-1) lam0^(-1) delta^(-3/2)",
     order(lambda eta, n, m, kappa, lam0, delta:
               n * sqrt(m * n) * sqrt(n / delta) / (kappa * lam0) / delta * 2 * eta * sqrt(n) / m)),
    ("Appendix C, eq. (29)",
     "sqrt(n) kappa/delta bounds |u(0)|, where E|u(0)|^2 is n kappa^2/2, by Markov",
     "holds", holds(lambda delta: sqrt(1 / 2 / delta) <= 1 / delta, delta=linspace(0.01, 1, 100))),
    ("Appendix C, Theorem 4.1", "the largest k (1 - x/4)^(k-1) is O(1/x)",
     "holds", bounded(_peak, logspace(0, -6, 25))),
    ("Appendix C, eq. (30)", "order of the third term, with (26) and |y - u(0)| = sqrt(n/delta)",
     "eta n^(7/2) m^(-1/2) lam0^(-1) kappa^(-1) delta^(-2)",
     order(lambda eta, n, m, lam0, kappa, delta:
               eta * bounds.lemC2_H(n, m, lam0, kappa, delta) * sqrt(n / delta))),
    ("Appendix D.1, eq. (36)", "order of its second term, summed over all steps",
     # the eta of two factors cancels that of the series
     "n^4 m^(-1/2) lam0^(-3) kappa^(-1) delta^(-2)",
     order(lambda n, m, lam0, kappa, delta:
               sqrt(n) * n**3.5 / (sqrt(m) * lam0 * kappa * delta**2) / (lam0 / 4) ** 2)),
    ("Appendix D.1",
     "for m >= kappa^(-2) all but n kappa/(lam0 delta) is at most poly/(m^(1/4) kappa^(1/2))",
     "holds",
     holds(lambda kappa, growth: _rest(kappa**-2 * growth, kappa) <= _rest(1.0, 1.0) * (1 + 1e-9),
           kappa=logspace(-6, 0, 30), growth=logspace(0, 12, 30))),
    ("Lemma 5.4", "its bound is above the proof's, whose middle term has 2 sqrt(2/pi)",
     "holds", holds(_rademacher, delta=linspace(0.01, 1, 50))),
    ("Theorem B.1",
     "factor of c sqrt(log(2/delta)/2n): the loss and twice the empirical complexity, each at "
     "delta/2",
     # a sample moves either by at most c/n
     "3",
     lambda n=50.0, delta=0.1:
         3 / n * sqrt(n * log(2 / delta) / 2) / sqrt(log(2 / delta) / (2 * n))),
    ("Appendix D.3", "k of order log(n/delta)/(eta lam0) steps bring O(n/delta) below 1/2",
     "holds",
     holds(lambda x, size: log(2 * size) / -log1p(-x / 2) <= 3 * log(size) / x,
           x=logspace(-6, 0, 20), size=logspace(1, 300, 60))),
    ("Appendix D.3",
     "1/sqrt(n) + 2 (sqrt(y'H^-1 y/2n) + 2/sqrt(n)) is (10) up to O(sqrt(log(n/(lam0 delta))/n))",
     "holds", holds(_left_over, n=logspace(0, 12, 40), share=logspace(-6, 6, 20))),
    ("Theorem 6.1, Appendix E", "3p is above 2 (p = 1) and sqrt(2 pi)(p - 1), which the proof has",
     "holds",
     holds(lambda p: [bounds.thm61_proof_const(q) <= bounds.thm61_bound(q, 1.0, 1.0) for q in p],
           p=[1, *range(2, 200, 2)])),
    ("Appendix E", "the series of H in powers of K, from arcsin",
     "holds",
     holds(lambda K: isclose(_arcsin_series(K), K * (pi - np.arccos(K)) / (2 * pi), atol=1e-12),
           K=linspace(-0.9, 0.9, 37))),
    ("Appendix E", "(2l - 3)!!/(2l - 2)!! is at least 1/(2l - 1)",
     "holds",
     holds(lambda l: [(2 * k - 1) * factorial2(2 * k - 3) >= factorial2(2 * k - 2) for k in l],
           l=range(2, 60))),
    ("Example 6.1", "degree in |beta| of what (13) gives for M, the bound of y'H^-1 y",
     "2", power(lambda b: bounds.cor62_bound([1.0], [b], [1]) ** 2, 1.0)),
    ("Examples 6.2, 6.3",
     r"degree in $\lVert A\rVert_*$ of $M$ by (13), which bounds its root (true all the same "
     r"where $\lvert x^\top Ax\rvert \le 1$ on the sphere)",
     "1", power(lambda a: bounds.cor62_bound([a, a / 2], [1.0, 1.0], [2, 2]) ** 2, 1.0),
     "exponent"),
    ("Example 6.3", "the sum over j of j |beta|^(2j)/(2j)! is of the order of |beta| sinh |beta|",
     "holds",
     holds(lambda b:
               isclose((J * exp(2 * J * log(b) - gammaln(2 * J + 1))).sum(0),
                       b * np.sinh(b) / 2, rtol=1e-9),
           b=linspace(0.01, 20, 60))),
    ("Examples 6.2, 6.3",
     r"$M$, the square of (13), is $O(\lVert\beta\rVert\sinh\lVert\beta\rVert)$",
     "holds",
     bounded(lambda b: _cor62(exp(-gammaln(2 * arange(1, 80) + 1)), b) / (b * np.sinh(b)),
             arange(1.0, 30.0)),
     "exponent"),
    ("Example 6.4", "the series of z arctan(z/2) for |z| <= 1",
     "holds",
     holds(lambda z:
               isclose(((-1.0) ** (J - 1) * 2.0 ** (1 - 2 * J) / (2 * J - 1) * z ** (2 * J)).sum(0),
                       z * np.arctan(z / 2), atol=1e-14),
           z=linspace(-1, 1, 41))),
    ("Example 6.4", "M, the square of (13), is O(|beta|^2) for |beta| <= 1",
     "holds",
     bounded(lambda b: _cor62(2.0 ** (1 - 2 * arange(1, 60)) / (2 * arange(1, 60) - 1), b) / b**2,
             logspace(0, -6, 40))),
    ("Example 6.4",
     "the sum of (C sqrt(log 1/eps))^(2j) 2^(1-2j)/(2j-1) diverges for C = 2 and eps < 1/e",
     # the ratio of a term to the one before, at a large j
     "holds",
     holds(lambda eps, j: (2 * sqrt(log(1 / eps))) ** 2 / 4 * (2 * j - 1) / (2 * j + 1) > 1,
           eps=exp(-linspace(1.01, 20, 40)), j=[1e12])),
    ("Fig. 2, caption", "the l1 loss is at least the classification error, for labels of 1 and -1",
     "holds", holds(lambda f, y: abs(f - y) >= (f * y <= 0), f=linspace(-3, 3, 601), y=[1, -1])),
]
