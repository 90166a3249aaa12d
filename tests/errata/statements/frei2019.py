"""Frei et al. 2019, arXiv 1910.02934: what of its arithmetic can be recomputed.

In an order, n stands alone for samples, logn for log(n/δ), logm for log m and logL for log(L/δ).
"""

import numpy as np
from numpy import arange, exp, isclose, linspace, log, log1p, logaddexp, logspace, sqrt
from scipy.integrate import quad
from scipy.special import gammaln

from overparam.bounds import frei2019 as bounds

from .statement import bounded, holds, order, power, solved

MARGIN = linspace(-30, 30, 1201)  # y f(x)


def _surrogate(x, step=1e-5):
    """-l'(x) of l(x) = log(1 + e^(-x)), by central differences."""
    return (logaddexp(0, -(x - step)) - logaddexp(0, -(x + step))) / (2 * step)


def _surrogate_formula():
    candidates = {
        "1/(1 + exp(-x))": 1 / (1 + exp(-MARGIN)),
        "1/(1 + exp(x))": 1 / (1 + exp(MARGIN)),
    }
    for words, values in candidates.items():
        if np.allclose(values, _surrogate(MARGIN), atol=1e-8):
            return words
    return "neither"


def _radius(gamma, eps, m, logn):
    """tau of eq. (11)."""
    return gamma**-4 / eps * sqrt(logn / m)


def _summed_errors(gamma, m, logn, eta):
    """The sum over k of E_S^2 of (7), where the loss starts at sqrt(log(n/delta)), of (8)."""
    return gamma**-4 / (eta * m) * sqrt(logn)


def _steps_of_introduction(eps):
    """The K at which Theorem 3.5 (ii) with eta = gamma^4/m is eps, by how its error falls."""
    fall = power(lambda K: bounds.thm35_surrogate(64, K, 1 / 64, 10, 0.5, 1.0), at=1.0)
    return eps ** (1 / fall())


def _sparsity_condition(tau=0.01, logl=20.0):
    """s log m >= log(L/delta) for every s up to m, at the m of Lemma B.5."""
    m = tau ** (-2 / 3) * logl
    for _ in range(50):
        m = tau ** (-2 / 3) * logl / log(m)
    return holds(lambda s: s * log(m) >= logl * (1 - 1e-9), s=arange(1, int(m)))()


def _sparse_vector():
    a = np.tril(np.ones((20, 20)))  # row i has i + 1 entries
    v = np.where(arange(20) < 10, 1.0, -1.0)
    return np.linalg.norm(v * a, axis=1) <= sqrt(np.count_nonzero(a, axis=1)) + 1e-12


def _difference_of_relus():
    v, w = np.array([1, -1]), np.eye(2)
    x, a = np.array([0.8, 0.6]), np.array([0.6, -0.8])  # xi: the identity
    left = v * (w @ x > 0) @ (w @ a)
    right = v @ np.maximum(w @ a, 0)
    return left, right


# fmt: off
ROWS = [
    ("Section 1.1, item 2",
     r"order of the steps in $\varepsilon$, of Theorem 3.5 (ii) with $\eta = \gamma^4/m$",
     "eps^(-1)", order(_steps_of_introduction),
     "gap"),
    ("Section 1.1",
     "order in eps of the width for the training error, where (11) is the largest tau",
     # m at which tau is 1, up to logs
     "eps^(-2)", order(lambda eps: _radius(1.0, eps, 1.0, 1.0) ** 2)),
    ("Section 3, after Theorem 3.5",
     "the surrogate error is at most a multiple of the classification error",
     "holds",
     holds(lambda margin: _surrogate(margin) <= 100 * (margin < 0), margin=logspace(-3, 1, 20)),
     "typo"),
    ("Theorem 3.5, Appendix A.1", "the tau with tau^(1/3) sqrt(log m) = gamma^4",
     "gamma^12 logm^(-3/2)", order(lambda gamma, logm: (gamma**4 / sqrt(logm)) ** 3)),
    ("Theorem 3.5, Appendix A.1", "the eta at which m^2 eta^2 is eta m gamma^4",
     "gamma^4 m^(-1)", order(lambda gamma, m: m * gamma**4 / m**2)),
    ("Appendix A.1, (5)",
     "C (1 + (L - 1) theta^2 + 1), from Lemma 4.4, is free of L for theta = 1/L",
     "holds", bounded(lambda L: 2 + (L - 1) / L**2, 2.0 ** arange(12))),
    ("Appendix A.1", "log(1 + exp(-z)) <= |z| + 1",
     "holds", holds(lambda z: logaddexp(0, -z) <= np.abs(z) + 1, z=MARGIN)),
    ("Appendix A.1", "order of the distance from the start, k steps",
     # m = 8
     "k^(1/2) eta^(1/2) gamma^(-2) logn^(1/4)",
     order(lambda k, eta, gamma, logn:
               eta * sqrt(8.0 * k * _summed_errors(gamma, 8.0, logn, eta)))),
    ("Theorem 3.5", "order of the K eta at which that is tau",
     "tau^2 gamma^4 logn^(-1/2)",
     order(lambda tau, gamma, logn: (tau * gamma**2 / logn**0.25) ** 2)),
    ("Theorem 3.5 (ii)", "order of the least surrogate error",
     "m^(-1/2) K^(-1/2) eta^(-1/2) logn^(1/4) gamma^(-2)",
     order(lambda m, K, eta, logn, gamma: sqrt(_summed_errors(gamma, m, logn, eta) / K))),
    ("Appendix A.2", r"$-\ell'(x)$, the surrogate loss",
     "1/(1 + exp(-x))", _surrogate_formula,
     "typo"),
    ("Appendix A.2",
     "1(x < 0) <= -2 l'(x), so that P(y f < 0) is at most twice the surrogate error",
     "holds", holds(lambda x: (x < 0) <= 2 * _surrogate(x), x=MARGIN)),
    ("Appendix A.2", "|l'| <= 1 and l' is 1-Lipschitz",
     "holds",
     holds(lambda x: (_surrogate(x) <= 1) & (np.abs(np.gradient(_surrogate(x), x)) <= 1),
           x=MARGIN)),
    ("Appendix A.2", "tau^2 sqrt(m) is at most tau^(4/3) sqrt(m log m), tau <= 1 and m >= 3",
     "holds",
     holds(lambda tau, m: tau**2 * sqrt(m) <= tau ** (4 / 3) * sqrt(m * log(m)),
           tau=logspace(-6, 0, 50), m=logspace(np.log10(3), 9, 50))),
    ("Appendix A.2", "order of I_2 for theta = 1/L, without its constant 3 - 1/L",
     "tau m^(1/2) n^(-1/2)", order(lambda tau, m, n: tau / n * sqrt(n * m))),
    ("Appendix A.3, (11)", "order of tau",
     "gamma^(-4) eps^(-1) m^(-1/2) logn^(1/2)",
     order(lambda gamma, eps, m, logn:
               (gamma**4 / sqrt(logn) * m) ** -0.5 * logn**0.25 * gamma**-2 / eps)),
    ("Appendix A.3", "order of m/log^3 m where that tau is gamma^12 (log m)^(-3/2)",
     "gamma^(-32) logn eps^(-2)",
     order(lambda gamma, logn, eps: (_radius(gamma, eps, 1.0, logn) / gamma**12) ** 2)),
    ("Appendix A.3", "order of tau^(-4/3)",
     "gamma^(16/3) logn^(-2/3) eps^(4/3) m^(2/3)",
     order(lambda gamma, logn, eps, m: _radius(gamma, eps, m, logn) ** (-4 / 3))),
    ("Corollary 3.7, Appendix A.3",
     r"order of the width with $m \ge \tau^{-4/3}d$ at the $\tau$ of (11), up to logarithms, for "
     r"$d > \varepsilon^{-14}$",
     "d",
     order(lambda d, eps, gamma: solved(lambda m: d * _radius(gamma, eps, m, 1.0) ** (-4 / 3) / m)),
     "gap"),
    ("Appendix A.3",
     r"order of $K$, of $K\eta = \gamma^4\tau^2\log^{-1/2}\frac n\delta$ and $\eta$ ($\log n$: of "
     r"$\frac n\delta$)",
     "gamma^(-4) logn^(1/2) eps^(-2)",
     order(lambda gamma, logn, eps:
               gamma**4 * _radius(gamma, eps, 8.0, logn) ** 2 / sqrt(logn) / (gamma**4 / 8.0)),
     "exponent"),
    ("Appendix A.3", "order of tau^(4/3) sqrt(m)",
     "gamma^(-16/3) logn^(2/3) eps^(-4/3) m^(-1/6)",
     order(lambda gamma, logn, eps, m: _radius(gamma, eps, m, logn) ** (4 / 3) * sqrt(m))),
    ("Appendix A.3", "the m at which eps^(-4/3) m^(-1/6) is eps",
     "eps^(-14)", order(lambda eps: (eps ** (-4 / 3) / eps) ** 6)),
    ("Appendix A.3", "the n at which tau sqrt(m/n) is eps",
     "gamma^(-8) logn eps^(-4)",
     order(lambda gamma, logn, eps: (_radius(gamma, eps, 8.0, logn) * sqrt(8.0) / eps) ** 2)),
    ("Section 4, Corollary 3.7",
     r"order of the fourth term of (3) where the first and the third equal $\frac\varepsilon4$ "
     r"($\le$ is meant, as Appendix A.3 says)",
     # 1/sqrt n, by the third
     "eps", order(lambda eps: eps / (_radius(1.0, eps, 8.0, 1.0) * sqrt(8.0))),
     "typo"),
    ("Appendix A.3", "eta = gamma^4/m is also at most tau/sqrt(m), at the tau of (11)",
     "holds",
     holds(lambda gamma, eps: gamma**4 <= _radius(gamma, eps, 1.0, 1.0),
           gamma=linspace(0.01, 1, 50), eps=linspace(0.01, 1, 50))),
    ("Appendix B.1", "1.01 times 1.004 is at most 1.015",
     "holds", holds(lambda: 1.01 * 1.004 <= 1.015)),
    ("Appendix B.1", "d log(mL/(tau_0 delta)) <= 2 d log(mL/delta) at tau_0 = 1/m",
     "holds",
     holds(lambda m, L: log(m**2 * L) <= 2 * log(m * L), m=arange(1.0, 300), L=arange(1.0, 100))),
    ("Lemma B.5",
     r"for every $s$, its $m$ has the $s\log m \ge C\log\frac L\delta$ that Lemmas C.3 and C.4 ask",
     "holds", _sparsity_condition,
     "constant"),
    ("Appendix B.2", "order of sqrt(s log m) at s = m tau^(2/3)",
     "tau^(1/3) m^(1/2) logm^(1/2)", order(lambda tau, m, logm: sqrt(m * tau ** (2 / 3) * logm))),
    ("Appendix B.2, after (19)", "|v' diag(a)| <= |a|_0^(1/2) for a with entries of at most 1",
     "holds", holds(_sparse_vector)),
    ("Appendix B.2", "l'' <= 0.5",
     "holds", holds(lambda z: -np.gradient(_surrogate(z), z) <= 0.5, z=MARGIN)),
    ("Appendix B.2", "factor of Delta^2 that this gives",
     "0.25", 0.5 / 2),
    ("Lemma B.6", "1 over (49/100)^2/4^2",
     "67", 1 / ((49 / 100) ** 2 / 4**2)),
    ("Lemma B.6", "(49/100)^2/4^2 >= 1/67",
     "holds", holds(lambda: (49 / 100) ** 2 / 4**2 >= 1 / 67)),
    ("Appendix B.3, (29)", "1.05 times 2 times 67",
     "141", 1.05 * 2 * 67),
    ("Appendix B.3", "1.02^2 <= 1.05, 1/141 > 1/150, 1/sqrt(134) > 1/16",
     "holds", holds(lambda: [1.02**2 <= 1.05, 1 / 141 > 1 / 150, 134**-0.5 > 1 / 16])),
    ("Lemma 4.3", "order of the tau at which tau^(2/3) is gamma^2",
     "gamma^3", order(lambda gamma: (gamma**2) ** 1.5)),
    ("Appendix C.1", "(1 + C theta)^L <= exp(C theta L)",
     "holds",
     holds(lambda theta, L: L * log1p(theta * 8**0.5) <= theta * 8**0.5 * L,
           theta=logspace(-4, 0, 40), L=arange(1, 200))),
    ("Appendix C.3", "order of both terms of the sparsity at beta = m^(-1/2) tau^(2/3)",
     "tau^(2/3) m",
     order(lambda tau, m:
               m**1.5 * (m**-0.5 * tau ** (2 / 3)) + tau**2 * (m**-0.5 * tau ** (2 / 3)) ** -2)),
    ("Lemma B.4", "order of the m of Lemma C.2 at that beta, up to the log",
     "tau^(-4/3) d", order(lambda tau, d: (tau ** (-2 / 3) * sqrt(d)) ** 2)),
    ("Appendix C.5",
     "sqrt(m) times the mean of |w'x|, w of variance 2/m and |x| = 1, is sqrt(2/pi) sqrt(2)",
     "holds",
     holds(lambda: isclose(2 * quad(lambda z: z * exp(-(z**2) / 4) / sqrt(4 * np.pi), 0, np.inf)[0],
                           sqrt(2 / np.pi) * sqrt(2), rtol=1e-9))),
    ("Appendix C.5", "d-th root of the volume bound of a 1/2-net of the sphere",
     "5", 1 + 2 / 0.5),
    ("Proposition C.5", r"$\frac\gamma2 - \theta LC$ at $\theta L = \frac\gamma{4C}$",
     "gamma/2", lambda gamma=0.3, C=7.0: f"gamma/{gamma / (gamma / 2 - gamma / (4 * C) * C):.3g}",
     "constant"),
    ("Proposition C.5, its proof",
     r"order of its $\theta$; the $1/\Omega(L)$ assumed hides $\gamma$, a constant of Assumption "
     "3.2",
     "L^(-1)", order(lambda L, gamma: gamma / 4 / L),
     "constant"),
    ("Appendix D.1", "order of the m at which sqrt(m log V) is m^(3/2) beta",
     "beta^(-1) logV^(1/2)", order(lambda beta, logV: sqrt(logV) / beta)),
    ("Appendix D.2", "d-th root of the volume bound of a 1/4-net of the sphere",
     "9", 1 + 2 / 0.25),
    ("Appendix D.2", r"the $s$ from which on $\binom ms9^s \le m^s$ for every $m$",
     # m^s/s! is the limit of the binomial, which is below it
     "16", lambda: float(1 + max(s for s in range(1, 200) if gammaln(s + 1) < s * log(9))),
     "constant"),
    ("Appendix D.2", "the supremum is at most twice that over the net, as 1/4 + 1/4 of it is left",
     "2", 1 / (1 - 1 / 4 - 1 / 4)),
    ("Appendix D.3, first display",
     r"$v^\top\Sigma_{L+1}(x)W_{L+1}^\top\xi a$ is a difference of $\sigma(w^\top\xi a)$",
     "holds",
     holds(lambda left, right: isclose(left, right),
           left=[_difference_of_relus()[0]], right=[_difference_of_relus()[1]]),
     "typo"),
]
