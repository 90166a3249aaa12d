"""Frei et al. 2019, arXiv 1910.02934: what of its arithmetic can be recomputed.

In an order, n stands alone for samples, logn for log(n/δ), logm for log m and logL for log(L/δ).
"""

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaln

from ...bounds import frei2019 as bounds
from .powers import power
from .relations import bounded, holds, order
from .statements import statement

_MARGIN = np.linspace(-30, 30, 1201)  # y f(x)


def _surrogate(x):
    """−ℓ′(x) of ℓ(x) = log(1 + e^(−x)), by central differences."""
    step = 1e-5
    return (np.logaddexp(0, -(x - step)) - np.logaddexp(0, -(x + step))) / (2 * step)


def _radius(gamma, eps, m, logn):
    """τ of eq. (11)."""
    return gamma**-4 / eps * np.sqrt(logn / m)


@statement("Sec. 1.1", "order in eps of the steps, of Thm 3.5 (ii) with eta = gamma^4/m", "eps^(-1)")
def steps_of_introduction():
    fall = power(lambda K: bounds.thm35_surrogate(64, K, 1 / 64, 10, 0.5, 1.0), 1.0)  # of the error with K
    return order(lambda eps: eps ** (1 / fall))


@statement("Sec. 1.1", "order in eps of the width for the training error, where (11) is the largest tau", "eps^(-2)")
def width_of_introduction():
    return order(lambda eps: _radius(1.0, eps, 1.0, 1.0) ** 2)  # m at which tau is 1, up to logs


@statement("Sec. 3, after Thm 3.5", "the surrogate error is at most a multiple of the classification error", "holds")
def surrogate_by_error():
    margin = np.logspace(-3, 1, 20)  # of a net that is right everywhere
    return holds(_surrogate(margin) <= 100 * (margin < 0), margin=margin)


@statement("Thm 3.5, App. A.1", "the tau with tau^(1/3) sqrt(log m) = gamma^4", "gamma^12 logm^(-3/2)")
def radius():
    return order(lambda gamma, logm: (gamma**4 / np.sqrt(logm)) ** 3)


@statement("Thm 3.5, App. A.1", "the eta at which m^2 eta^2 is eta m gamma^4", "gamma^4 m^(-1)")
def step_size():
    return order(lambda gamma, m: m * gamma**4 / m**2)


@statement("App. A.1, (5)", "C (1 + (L - 1) theta^2 + 1), from Lemma 4.4, is free of L for theta = 1/L", "holds")
def step_length():
    L = 2.0 ** np.arange(12)
    return bounded(2 + (L - 1) / L**2)


@statement("App. A.1", "log(1 + exp(-z)) <= |z| + 1", "holds")
def loss_bound():
    return holds(np.logaddexp(0, -_MARGIN) <= np.abs(_MARGIN) + 1, z=_MARGIN)


def _summed_errors(gamma, m, logn, eta):
    """Σ_k E_S² of (7), where the loss starts at √log(n/δ), of (8)."""
    return gamma**-4 / (eta * m) * np.sqrt(logn)


@statement("App. A.1", "order of the distance from the start, k steps", "k^(1/2) eta^(1/2) gamma^(-2) logn^(1/4)")
def distance():
    m = 8.0
    return order(lambda k, eta, gamma, logn: eta * np.sqrt(m * k * _summed_errors(gamma, m, logn, eta)))


@statement("Thm 3.5", "order of the K eta at which that is tau", "tau^2 gamma^4 logn^(-1/2)")
def training_time():
    return order(lambda tau, gamma, logn: (tau * gamma**2 / logn**0.25) ** 2)


@statement("Thm 3.5 (ii)", "order of the least surrogate error", "m^(-1/2) K^(-1/2) eta^(-1/2) logn^(1/4) gamma^(-2)")
def least_error():
    return order(lambda m, K, eta, logn, gamma: np.sqrt(_summed_errors(gamma, m, logn, eta) / K))


@statement("App. A.2", "-l'(x), the surrogate loss", "1/(1 + exp(-x))")
def surrogate_formula():
    candidates = {"1/(1 + exp(-x))": 1 / (1 + np.exp(-_MARGIN)), "1/(1 + exp(x))": 1 / (1 + np.exp(_MARGIN))}
    return next(words for words, values in candidates.items() if np.allclose(values, _surrogate(_MARGIN), atol=1e-8))


@statement("App. A.2", "1(x < 0) <= -2 l'(x), so that P(y f < 0) is at most twice the surrogate error", "holds")
def markov():
    return holds((_MARGIN < 0) <= 2 * _surrogate(_MARGIN), x=_MARGIN)


@statement("App. A.2", "|l'| <= 1 and l' is 1-Lipschitz", "holds")
def lipschitz():
    slope = np.gradient(_surrogate(_MARGIN), _MARGIN)
    return holds((_surrogate(_MARGIN) <= 1) & (np.abs(slope) <= 1), x=_MARGIN)


@statement("App. A.2", "tau^2 sqrt(m) is at most tau^(4/3) sqrt(m log m), tau <= 1 and m >= 3", "holds")
def first_part():
    tau, m = np.logspace(-6, 0, 50)[:, None], np.logspace(np.log10(3), 9, 50)
    return holds(tau**2 * np.sqrt(m) <= tau ** (4 / 3) * np.sqrt(m * np.log(m)), tau=tau, m=m)


@statement("App. A.2", "order of I_2 for theta = 1/L, without its constant 3 - 1/L", "tau m^(1/2) n^(-1/2)")
def second_part():
    return order(lambda tau, m, n: tau / n * np.sqrt(n * m))


@statement("App. A.3, (11)", "order of tau", "gamma^(-4) eps^(-1) m^(-1/2) logn^(1/2)")
def radius_of_corollary():
    def solved(gamma, eps, m, logn):
        at_one = (gamma**4 / np.sqrt(logn) * m) ** -0.5 * logn**0.25 * gamma**-2
        return at_one / eps

    return order(solved)


@statement("App. A.3", "order of m/log^3 m where that tau is gamma^12 (log m)^(-3/2)", "gamma^(-32) logn eps^(-2)")
def least_width():
    return order(lambda gamma, logn, eps: (_radius(gamma, eps, 1.0, logn) / gamma**12) ** 2)


@statement("App. A.3", "order of tau^(-4/3)", "gamma^(16/3) logn^(-2/3) eps^(4/3) m^(2/3)")
def sparsity_term():
    return order(lambda gamma, logn, eps, m: _radius(gamma, eps, m, logn) ** (-4 / 3))


@statement("Cor. 3.7", "order of the width with m >= tau^(-4/3) d, at that tau, up to logs, for d > eps^(-14)", "d")
def dimension():
    def needed(d, eps, gamma):
        m = 1.0
        for _ in range(200):
            m = d * _radius(gamma, eps, m, 1.0) ** (-4 / 3)
        return m

    return order(needed)


@statement(
    "App. A.3", "order of K, of K eta = gamma^4 tau^2 (log n/delta)^(-1/2) and eta", "gamma^(-4) logn^(1/2) eps^(-2)"
)
def iterations():
    m = 8.0

    def steps(gamma, logn, eps):
        return gamma**4 * _radius(gamma, eps, m, logn) ** 2 / np.sqrt(logn) / (gamma**4 / m)

    return order(steps)


@statement("App. A.3", "order of tau^(4/3) sqrt(m)", "gamma^(-16/3) logn^(2/3) eps^(-4/3) m^(-1/6)")
def complexity_term():
    return order(lambda gamma, logn, eps, m: _radius(gamma, eps, m, logn) ** (4 / 3) * np.sqrt(m))


@statement("App. A.3", "the m at which eps^(-4/3) m^(-1/6) is eps", "eps^(-14)")
def width():
    return order(lambda eps: (eps ** (-4 / 3) / eps) ** 6)


@statement("App. A.3", "the n at which tau sqrt(m/n) is eps", "gamma^(-8) logn eps^(-4)")
def samples():
    m = 8.0
    return order(lambda gamma, logn, eps: (_radius(gamma, eps, m, logn) * np.sqrt(m) / eps) ** 2)


@statement(
    "Sec. 4, Cor. 3.7",
    "order of the fourth term of (3) where the first and the third equal eps/4: the sketch's equalities cannot all "
    "hold (<= is meant, as App. A.3 says)",
    "eps",
)
def four_terms():
    m = 8.0
    return order(lambda eps: eps / (_radius(1.0, eps, m, 1.0) * np.sqrt(m)))  # 1/√n, from τ √(m/n) = ε


@statement("App. A.3", "eta = gamma^4/m is also at most tau/sqrt(m), at the tau of (11)", "holds")
def step_of_corollary():
    gamma, eps = np.linspace(0.01, 1, 50)[:, None], np.linspace(0.01, 1, 50)
    return holds(gamma**4 <= _radius(gamma, eps, 1.0, 1.0), gamma=gamma, eps=eps)


@statement("App. B.1", "1.01 times 1.004 is at most 1.015", "holds")
def hidden_norm():
    return holds(1.01 * 1.004 <= 1.015, product=1.01 * 1.004)


@statement("App. B.1", "d log(mL/(tau_0 delta)) <= 2 d log(mL/delta) at tau_0 = 1/m", "holds")
def net_of_inputs():
    m, L = np.arange(1.0, 300)[:, None], np.arange(1.0, 100)
    return holds(np.log(m**2 * L) <= 2 * np.log(m * L), m=m, L=L)


@statement("Lemma B.5", "for every s, its m has the s log m >= C log(L/delta) that C.3 and C.4 ask", "holds")
def sparsity_condition():
    tau, logl = 0.01, 20.0
    m = tau ** (-2 / 3) * logl
    for _ in range(50):
        m = tau ** (-2 / 3) * logl / np.log(m)
    s = np.arange(1, int(m))
    return holds(s * np.log(m) >= logl * (1 - 1e-9), s=s)


@statement("App. B.2", "order of sqrt(s log m) at s = m tau^(2/3)", "tau^(1/3) m^(1/2) logm^(1/2)")
def sparse_output():
    return order(lambda tau, m, logm: np.sqrt(bounds.lemB4_sparsity(m, tau) * logm))


@statement("App. B.2, after (19)", "|v' diag(a)| <= |a|_0^(1/2) for a with entries of at most 1", "holds")
def sparse_vector():
    a = np.tril(np.ones((20, 20)))  # row i has i + 1 entries
    v = np.where(np.arange(20) < 10, 1.0, -1.0)
    return holds(np.linalg.norm(v * a, axis=1) <= np.sqrt(np.count_nonzero(a, axis=1)) + 1e-12, count=np.arange(1, 21))


@statement("App. B.2", "l'' <= 0.5", "holds")
def curvature():
    curvature = -np.gradient(_surrogate(_MARGIN), _MARGIN)
    return holds(curvature <= 0.5, z=_MARGIN)


@statement("App. B.2", "factor of Delta^2 that this gives", "0.25")
def taylor():
    return 0.5 / 2


@statement("Lemma B.6", "1 over (49/100)^2/4^2", "67")
def margin_constant():
    return 1 / ((49 / 100) ** 2 / 4**2)


@statement("Lemma B.6", "(49/100)^2/4^2 >= 1/67", "holds")
def margin_inequality():
    return holds((49 / 100) ** 2 / 4**2 >= 1 / 67, ratio=67 * (49 / 100) ** 2 / 4**2)


@statement("App. B.3, (29)", "1.05 times 2 times 67", "141")
def active_neurons():
    return 1.05 * 2 * 67


@statement("App. B.3", "1.02^2 <= 1.05, 1/141 > 1/150, 1/sqrt(134) > 1/16", "holds")
def gradient_constants():
    return holds([1.02**2 <= 1.05, 1 / 141 > 1 / 150, 134**-0.5 > 1 / 16], case=[1, 2, 3])


@statement("Lemma 4.3", "order of the tau at which tau^(2/3) is gamma^2", "gamma^3")
def radius_of_gradient():
    return order(lambda gamma: (gamma**2) ** 1.5)


@statement("App. C.1", "(1 + C theta)^L <= exp(C theta L)", "holds")
def exponential():
    theta, L = np.logspace(-4, 0, 40)[:, None], np.arange(1, 200)
    return holds(L * np.log1p(theta * 8**0.5) <= theta * 8**0.5 * L, theta=theta, L=L)


@statement("App. C.3", "order of both terms of the sparsity at beta = m^(-1/2) tau^(2/3)", "tau^(2/3) m")
def sparsity():
    return order(lambda tau, m: m**1.5 * (m**-0.5 * tau ** (2 / 3)) + tau**2 * (m**-0.5 * tau ** (2 / 3)) ** -2)


@statement("Lemma B.4", "order of the m of Lemma C.2 at that beta, up to the log", "tau^(-4/3) d")
def sparsity_width():
    return order(lambda tau, d: (tau ** (-2 / 3) * np.sqrt(d)) ** 2)


@statement("App. C.5", "sqrt(m) times the mean of |w'x|, w of variance 2/m and |x| = 1, is sqrt(2/pi) sqrt(2)", "holds")
def mean_output():
    mean = 2 * quad(lambda z: z * np.exp(-(z**2) / 4) / np.sqrt(4 * np.pi), 0, np.inf)[0]
    return holds(np.isclose(mean, np.sqrt(2 / np.pi) * np.sqrt(2), rtol=1e-9), mean=mean)


@statement("App. C.5", "d-th root of the volume bound of a 1/2-net of the sphere", "5")
def half_net():
    return 1 + 2 / 0.5


@statement("Prop. C.5", "gamma/2 - theta L C at theta L = gamma/(4C)", "gamma/2")
def margin():
    gamma, constant = 0.3, 7.0
    share = (gamma / 2 - gamma / constant / 4 * constant) / gamma
    return f"gamma/{1 / share:.3g}"


@statement(
    "Prop. C.5",
    "order of the theta that its proof takes; the 1/Omega(L) assumed hides gamma, a constant of Assumption 3.2",
    "L^(-1)",
)
def scale():
    return order(lambda L, gamma: gamma / 4 / L)


@statement("App. D.1", "order of the m at which sqrt(m log V) is m^(3/2) beta", "beta^(-1) logV^(1/2)")
def neurons_near_zero():
    return order(lambda beta, logV: np.sqrt(logV) / beta)


@statement("App. D.2", "d-th root of the volume bound of a 1/4-net of the sphere", "9")
def quarter_net():
    return 1 + 2 / 0.25


@statement("App. D.2", "the s from which on binom(m, s) 9^s <= m^s for every m", "16")
def sparse_net():
    s = np.arange(1, 200)
    fails = gammaln(s + 1) < s * np.log(9)  # m^s/s! is the limit of the binomial, which is below it
    return float(s[fails].max() + 1)


@statement("App. D.2", "the supremum is at most twice that over the net, as 1/4 + 1/4 of it is left", "2")
def lifted_supremum():
    return 1 / (1 - 1 / 4 - 1 / 4)


@statement("App. D.3, first display", "v'Sigma_(L+1)(x) W'xi a is a difference of sigma(w'xi a)", "holds")
def difference_of_relus():
    v, w, x, a = np.array([1, -1]), np.eye(2), np.array([0.8, 0.6]), np.array([0.6, -0.8])  # xi: the identity
    left, right = v * (w @ x > 0) @ (w @ a), v @ np.maximum(w @ a, 0)
    return holds(np.isclose(left, right), left=left, right=right)
