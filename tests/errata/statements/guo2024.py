"""Guo, Li and Lerman 2024 (AISTATS): what of its arithmetic can be recomputed.

Orders are products of powers; logarithms of m are left out, c stands for c(α); τ = 0 unless named.
"""

import numpy as np
from numpy import arange, array, exp, linspace, log, sqrt
from scipy import spatial, special, stats

from overparam.bounds import guo2024 as bounds

from .statement import holds, order, power, solved

SLOPES = array([-2.0, -1.0, 0.0, 0.05])
TRAIN = {  # Table 1, final training errors at SLOPES
    "synthetic": (0.039, 0.022, 0.197, 0.245),
    "F-MNIST": (0.096, 0.076, 0.211, 0.229),
    "CIFAR-10": (0.019, 0.018, 0.024, 0.027),
}
TEST = {  # Table 1, early testing errors at SLOPES
    "synthetic": (1.914, 1.775, 2.086, 2.313),
    "F-MNIST": (2.371, 2.362, 2.442, 2.470),
    "CIFAR-10": (0.146, 0.143, 0.169, 0.173),
}
ROUNDING = 0.0005  # of the digits of Table 1


# Of the paper and of those it compares with, without logarithms; by (108) the loss starts at n


def _radius(n, L, delta):
    """ω of Lemma 4.2."""
    return delta**1.5 / (n**1.5 * L**7.5)


def _special_radius(L, d):
    """ω of Lemma B.19."""
    return 1 / (d**1.5 * L**6)


def _rate(eta, n, d, m, delta):
    """1 - γ of Theorem 3.1."""
    return eta * delta * m / (d * n)


def _movement2(n, d, delta, m):
    """ω² of (111) with (108)."""
    return n * d * n / (delta * m)


def _factor_15(root_loss, radius, m, n, d, L):
    """ω^(1/3) L² √(mn/d) √L of eq. (12), √L ‖∇‖⁻¹ being `root_loss` over the gap, which cancels."""
    return radius ** (1 / 3) * L**2 * sqrt(m * n / d) * root_loss


def _excess(eta, n, L, d, m, b, delta):
    """(β - 1)/(1 - γ) of SGD, (116) and (9)."""
    return (eta * m * L * sqrt(n * b) / d) * n**2 * d / (eta * delta * m * b)


def _reduction(errors, name):
    """The least and the most by which -1 reduces ReLU's error of Table 1, in %, by rounding."""
    own, relu = errors[name][1], errors[name][2]
    signs = array([1, -1])
    return tuple(100 * (1 - (own + signs * ROUNDING) / (relu - signs * ROUNDING)))


def _reduced_by(errors, name, percent):
    """Whether Table 1 rounds to a reduction of so many percent."""
    low, high = _reduction(errors, name)
    rounds = low <= percent + 0.5 and high >= percent - 0.5
    return lambda: "holds" if rounds else f"fails: {low:.1f} to {high:.1f} %"


def _width_needed(n):
    """The width at which (111) with (108) is the ω that makes (15) 1, at d = L = δ = 1."""
    radius = solved(lambda omega: _factor_15(sqrt(n), omega, 1.0, n, 1.0, 1.0))
    return solved(lambda m: _movement2(n, 1.0, 1.0, m) / radius**2)


def _zou_gu(n, L, d, delta):
    """The width of Zou and Gu, with δ/L for their separation."""
    return n**8 * L**12 * d / (delta / L) ** 4


def _width_by_90(n, L, d, delta):
    """The width at which (111) with (108) is the ω of (92) with a factor n, m and d cancelling."""
    radius = solved(lambda omega: n * omega ** (2 / 3) * L**4 / (delta / (n * L)))
    return solved(lambda m: _movement2(n, d, delta, m) / radius**2)


def _separation(seed):
    rng = np.random.default_rng(seed)
    closest = []
    for _ in range(300):
        x = rng.normal(size=(1000, 5))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        closest.append(spatial.cKDTree(x).query(x, k=2)[0][:, 1].min())
    return float(np.mean(closest))


def _ranking():
    ranks = np.argsort(-bounds.c_alpha(SLOPES))
    return [np.all(np.diff(array(row)[ranks]) > 0) for row in TRAIN.values()]


def _minimum(tau, kappa):
    n, L = 12 * log(10), 6 * log(10)  # their logarithms
    both = np.minimum(kappa * (n + L), (0.5 + tau) * n + (2 + tau) * L)
    return both <= np.minimum(kappa, 0.5 + tau) * n + np.minimum(kappa, 2 + tau) * L + 1


def _at_T(term):
    """Power of c(α) in the first (1) or second (2) term of (7) with t, at the T of (4)."""
    options = {"C1": 1e300, "C4": 1e300, "form": "rederived", "terms": True}
    one = bounds.appA_at_T(1e-9, 0.0, 100, 10, 1, 0.1, 1e40, 0.1, **options)[term]
    other = bounds.appA_at_T(1e-9, -1.0, 100, 10, 1, 0.1, 1e40, 0.1, **options)[term]
    return float(np.log2(other / one))


def _mean_logarithm(sizes):
    found = []
    for m in sizes:
        K = arange(int(np.ceil(0.4 * m)), int(0.6 * m) + 1)
        weights = stats.binom.pmf(K, m, 0.5)
        mean = np.sum(weights * (special.digamma(K / 2) + log(4 / m))) / weights.sum()
        found.append(mean >= -4 / m)
    return found


def _gamma_sgd(eta, alpha=-1.0):
    return bounds.gamma_sgd(alpha, eta, 10, 0.1, 1e4, 100, 2)


def _width_of_sgd(n, L, d, b, delta, radius):
    """The width at which the last line of Lemma B.10, with (108), is a radius."""
    return solved(lambda m: _movement_of_sgd(n, L, d, m, b, delta) ** 2 * n / radius**2)


def _movement_of_sgd(n, L, d, m, b, delta):
    """‖W^(t) - W^(0)‖/√L(W^(0)) of Lemma B.10, where T_0 steps are made at the bound of (115)."""
    eta, burn_in = d * delta / (m * n**3 * L**2), n**5 * L**2 / (delta**2 * b)
    return sqrt(m * b / d) * eta * burn_in


def _radius_of_sgd(n, L, d, b, delta, batch):
    """ω at which the third line of (112) is (b/n)‖∇‖² of (10).

    batch: E‖∇L_B‖ at the loss 1; m, which cancels, is 1.
    """
    descent = b / n * delta / (n * d)
    return solved(lambda omega: _factor_15(batch, omega, 1.0, n, d, L) / descent)


def _opposite(angle):
    """Whether E‖∇L_B‖ <= (b/n)‖∇L‖, b = 1, for two unit gradients at an angle."""
    return 0.5 * sqrt(2 + 2 * np.cos(angle)) >= 1 - 1e-12


def _two_values(x):
    """Whether |Δ - EΔ| <= ln(β/γ), Δ being ln β or -x, E e^Δ = γ."""
    beta, gamma = 1.1, 0.99
    share = (gamma - exp(-x)) / (beta - exp(-x))  # of ln β
    mean = share * log(beta) - (1 - share) * x
    return np.maximum(log(beta) - mean, mean + x) <= log(beta / gamma)


def _special_width(n, L, d):
    """The width at which (165) with (108) is the ω that makes the factor like (15), by (164), 1."""
    radius = solved(lambda omega: _factor_15(d, omega, 1.0, n, d, L))
    return solved(lambda m: d**2 * n / m / radius**2)


def _free_of_t(n, L, delta, tau):
    """Whether Lemma 4.3 at (111), (108) is within the arguments of (7) without t, d = 1."""
    m = bounds.width_gen_gd(n, L, 1, delta, tau)
    moved = sqrt(_movement2(n, 1, delta, m))
    first = sqrt(m) * L**2 * moved ** (4 / 3)
    second = sqrt(m / n) * L * moved
    within = first <= delta**tau * n ** (0.5 + tau) / L ** (0.5 - tau)
    within &= second <= n ** (0.5 + tau) * L ** (2 + tau) / delta ** (0.5 - tau)
    return within | (n * L * delta < 1)


def _width_convex(n, L, d, delta, eps):
    """The width at which (110), with (142) and (147) at an excess of eps, is the ω of Lemma 4.2."""
    gradient = delta / (n * d) * eps**2 / (n * L)  # squared, m = 1
    return solved(lambda m: eps / (gradient * m) * n / _radius(n, L, delta) ** 2)


def _rounded_distance():
    """Whether the excess of √(μ² + z²) falls in every step of fixed size."""
    mu, step, z = 1e-3, 0.1, [0.97]
    for _ in range(100):
        z.append(z[-1] - step * z[-1] / sqrt(mu**2 + z[-1] ** 2))
    return np.diff(sqrt(mu**2 + array(z) ** 2)) <= 0


# fmt: off
ROWS = [
    # Sections 3 to 5
    ("Corollary 3.3", "c(α) has its maximum at -1, and grows before and falls after it",
     "holds",
     # (alpha - 1)/2 is half as far from -1
     holds(lambda alpha: bounds.c_alpha(alpha) < bounds.c_alpha((alpha - 1) / 2),
           alpha=array([*-np.geomspace(1e4, 1 + 1e-6, 500),
                        *linspace(-1 + 1e-6, 1 - 1e-6, 500)]))),
    ("Section 3", "the rate of Theorem 3.1 over that of Zou and Gu, in 1 - γ",
     "L",
     order(lambda n, L, d, m, eta, delta:
               _rate(eta, n, d, m, delta) / (eta * delta * m / (d * n * L)))),
    ("Section 3", "the width of Theorem 3.1 over that of Zou and Gu, as they are printed",
     "n^(-3) L^(-1)",
     order(lambda n, L, d, delta:
               n**5 * L**15 * d / delta**4 / _zou_gu(n, L, d, delta))),
    ("Section 3", "the epochs of Theorem 3.2 over those of Allen-Zhu et al.",
     "n^(-2) L^(-2)",
     order(lambda n, L, b, delta:
               n**5 * L**2 / (b * delta**2) / (n**7 * L**2 / (b * (delta / L) ** 2)))),
    ("Section 3",
     r"initial unscaled loss $O(\sqrt{\ln m})$: power of $n$ in (108) (the scaled loss is meant)",
     "0.0", power(lambda n: n, 10.0),
     "typo"),
    ("(7), B.15",
     r"power of $\ln m$ in the argument with $t^{4/3}$, from Lemma 4.3 at B.9's printed $\omega$",
     "0.0", power(lambda log_m: log_m * sqrt(log_m) ** (4 / 3), 10.0),
     "exponent"),
    ("Theorem 3.4",
     "Lemma 4.3 at (111) with (108) is within the arguments of (7) without t, nLδ >= 1",
     "holds",
     holds(_free_of_t, n=4.0 ** arange(1, 8), L=2.0 ** arange(8), delta=2.0 ** -arange(8),
           tau=[0.01, 0.5, 2.0])),
    ("eq. (15)", "(12) with (14): order of the factor of η‖∇‖²",
     "n L^2 omega^(1/3) delta^(-1/2)",
     order(lambda n, L, d, m, omega, delta:
               _factor_15(sqrt(n * d / (delta * m)), omega, m, n, d, L))),
    ("after (15)",
     r"power of $n$ in the width of Theorem 3.1 that the proof supports: (111), (108), $\omega$ "
     "absorbing (15)",
     "5.0", power(_width_needed, 10.0),
     "gap"),
    ("Section 2 with 5.1",
     r"mean smallest distance of 1,000 Gaussian inputs in $\mathbb R^5$ with the unit norm of "
     "Section 2",
     "0.21", _separation,
     "constant"),
    ("Section 5.2", "errors of Table 1 at the last epoch are ranked like c(α)",
     "holds", holds(_ranking)),
    ("Section 5.2", "-1 has the least mean error of Table 1, in training and early testing",
     "holds",
     holds(lambda: [np.argmin(row) == 1 for rows in (TRAIN, TEST) for row in rows.values()])),
    ("Section 5.2",
     "training: the largest reduction from ReLU to $-1$ is 91 % (synthetic), by rounding",
     "holds", _reduced_by(TRAIN, "synthetic", 91),
     "constant"),
    ("Section 5.2",
     "training: the smallest reduction from ReLU to -1 is 22 % (CIFAR-10), by rounding",
     "holds", _reduced_by(TRAIN, "CIFAR-10", 22)),
    ("Section 5.2",
     "early test: the smallest reduction from ReLU to $-1$ is 4 % (F-MNIST), by rounding",
     "holds", _reduced_by(TEST, "F-MNIST", 4),
     "constant"),
    ("Section 5.2",
     "early test: the largest reduction from ReLU to -1 is 15 % (CIFAR-10), by rounding",
     "holds", _reduced_by(TEST, "CIFAR-10", 15)),
    # Appendix A
    ("Appendix A", "order of T, from (4) at the largest step",
     # without δ
     "n^2 L^2", order(lambda n, L, d, m: 1 / _rate(d / (n * L**2 * m), n, d, m, 1.0))),
    ("Appendix A", "second term of (7) at t = nL",
     "n^(-1) L^(-11/6) d^(1/6) delta^(2/3)",
     order(lambda n, L, d, delta:
               d ** (1 / 3) * (n * L) ** (2 / 3) / (n**10 * L**15 * d / delta**4) ** (1 / 6))),
    ("Appendix A",
     r"$\min\{(nL)^\kappa, n^{1/2+\tau}L^{2+\tau}\} = "
     r"O(n^{\min\{\kappa,1/2+\tau\}}L^{\min\{\kappa,2+\tau\}})$, $\tau > 0$ (so for $\tau \ge "
     r"\frac12$)",
     "holds", holds(_minimum, tau=[0.1, 0.3, 0.5, 1.0], kappa=linspace(0.01, 1, 100)),
     "exponent"),
    ("Appendix A, $t = T$", r"power of $c(\alpha)$ in the first minimum",
     "1.83", lambda: _at_T(1),
     "exponent"),
    ("Appendix A, $t = T$", r"power of $c(\alpha)$ in the second minimum",
     "1.0", lambda: _at_T(2),
     "exponent"),
    # Appendices B.2 and B.3
    ("eq. (20)", "P(|χ²_m/m - 1| > ε/2) <= 2 exp(-mε²/32), ε < 1",
     "holds",
     holds(lambda m, epsilon:
               stats.chi2.sf(m * (1 + epsilon / 2), m) + stats.chi2.cdf(m * (1 - epsilon / 2), m)
               <= 2 * exp(-m * epsilon**2 / 32),
           m=[4, 16, 64, 256, 1024, 4096], epsilon=linspace(0.01, 0.99, 99))),
    ("before (28)", r"$E\ln(2H/m) \ge -4/m$ for $H \sim \chi^2_K$ with a $K$ in $[0.4m, 0.6m]$",
     "holds",
     holds(lambda m, K: special.digamma(K / 2) + log(4 / m) >= -4 / m,
           m=[1000], K=arange(400, 601)),
     "constant"),
    ("eq. (28)", "the same in the mean over K ~ B(m, 1/2)",
     "holds", holds(_mean_logarithm, sizes=[20, 100, 1000])),
    ("eq. (30)",
     r"for $\langle h, h'\rangle \le 1 - \theta^2/2$ the mean product is at most "
     r"$\frac12 - \theta^2/4 + c\theta^3$, $\alpha = -1$",
     "holds",
     holds(lambda cosine, theta:
               (cosine > 1 - theta**2 / 2)
               | (bounds.dual_act(np.arccos(cosine), -1.0)
                  <= 1 / 2 - theta**2 / 4 + 2 * theta**3),
           cosine=linspace(1, -1, 201), theta=linspace(0.01, 2, 200)),
     "false"),
    ("Appendix B.2, part 2",
     r"$\lVert a-b\rVert^2 \le s$ where $\lVert a\rVert^2, \lVert b\rVert^2 \le s/2$: largest "
     r"$\lVert a-b\rVert^2/s$",
     "1.0",
     lambda: float(max(0.5 + 0.5 - 2 * 0.5 * np.cos(angle) for angle in linspace(0, np.pi, 1001))),
     "constant"),
    ("after eq. (39)", "1 - 1/(2l) >= l²/(l + 1)² for l >= 1",
     "holds", holds(lambda l: 1 - 1 / (2 * l) >= l**2 / (l + 1) ** 2, l=arange(1, 10001))),
    ("Lemma B.2, eqs. (29), (34)",
     r"a cosine of at most $1 - \delta_l^2/8$ has a square of at most $1 - \delta_l^2/8$",
     "holds",
     holds(lambda cosine, delta_l:
               (cosine > 1 - delta_l**2 / 8) | (cosine**2 <= 1 - delta_l**2 / 8),
           cosine=linspace(1, -1, 201), delta_l=linspace(0.01, 0.25, 25)),
     "false"),
    ("Lemma B.2, proof",
     r"power of $\delta_l$ in the exponent of Lemma B.1 at $\epsilon = \delta_l^3$",
     "3.0", power(lambda delta: (delta**3) ** 2, 0.1),
     "exponent"),
    ("Lemma B.2, proof", r"width at which $n^2e^{-\delta^4m/L^4}$ is 1",
     "L^4 logn",
     order(lambda delta, L, logn: solved(lambda m: delta**4 * m / L**4 / logn)),
     "constant"),
    ("Lemma B.4, proof", "least order of ξ m^(3/2) + 4g²/ξ² over ξ, with g = ω L^(3/2)",
     "m L omega^(2/3)",
     order(lambda m, L, omega: m**1.5 * solved(lambda xi: m**1.5 / (8 * omega**2 * L**3 / xi**3)))),
    ("(54)", r"$\Pr(\lvert Z\rvert \ge x) \le e^{-x^2/2}/(\sqrt{2\pi}\,x)$, two-sided",
     "holds",
     holds(lambda x: log(2) + stats.norm.logsf(x) <= -(x**2) / 2 - log(sqrt(2 * np.pi) * x),
           x=linspace(0.1, 30, 300)),
     "constant"),
    ("(55)", r"power of $m$ in $qb^2 = \frac{\sqrt m}{\ln^2m}\cdot\frac{\lVert u\rVert^2\ln m}m$",
     "-1.0", power(lambda m: sqrt(m) * (1 / m), 100.0),
     "exponent"),
    # Appendices B.4 and B.5
    ("Lemma B.7, proof", "1/32 = 1/4 · 1/2 · 1/4 from (73) and the event",
     # gradients (73), residual a² >= ‖v‖²/(2d), ‖h‖ >= 1/2
     "32", 1 / ((1 / 2) ** 2 * (1 / 2) * (1 / 2) ** 2)),
    ("Lemma B.7", "power of $L$ in the exponent of the probability, by Hoeffding as in the proof",
     # half the mean δ/(nL), in units of Σ‖v_i‖²
     "0.0", power(lambda L: 2 * (0.5 * 0.1 / (50 * L)) ** 2 / (1 / 50) ** 2, 10.0),
     "exponent"),
    ("(90)",
     r"power of $n$ in $\lVert\sum_i\Delta G_i\rVert^2$ over $\sum_i\lVert v_i\rVert^2$, each "
     r"$\lVert\Delta G_i\rVert \le a\lVert v_i\rVert$",
     "0.0", power(lambda n: np.ones(int(n)).sum() ** 2 / n, 64),
     "gap"),
    ("(90)",
     "the width of Theorem 3.1 over that of Zou and Gu, as in Section 3, with that $n$ in (92)",
     "n^(-3) L^(-1)",
     order(lambda n, L, d, delta: _width_by_90(n, L, d, delta) / _zou_gu(n, L, d, delta)),
     "gap"),
    ("eq. (92)", "ω^(2/3) L⁴ m/d with the ω of Lemma 4.2",
     "n^(-1) L^(-1) d^(-1) m delta",
     order(lambda n, L, d, m, delta: _radius(n, L, delta) ** (2 / 3) * L**4 * m / d)),
    ("eq. (93)", "sum over L layers of the bound of Lemma B.7",
     "n^(-1) d^(-1) m delta", order(lambda n, L, d, m, delta: L * delta * m / (n * d * L))),
    ("(102), (8)",
     "power of $L$: $L$ terms, each bounded by (101), in the norm of (8), the largest layer's",
     "2.0", power(lambda L: L * L**2, 8.0),
     "exponent"),
    ("(104), (8)",
     r"power of $L$: $L$ terms $\sqrt{m/d}\,L^{3/2}\lVert W'\rVert^2$, by Lemma B.3, in the norm "
     "of (8) (3 by (103) as printed; 2 is right in the Frobenius norm)",
     "2.0", power(lambda L: L * L**1.5, 8.0),
     "exponent"),
    ("before (105)",
     r"power of $m$ in $-\ln\Pr(\lVert Bh\rVert^2 > \sqrt{m/d})$, $d = 1$ ($\lVert Bh\rVert$ is "
     "meant: (105) stands)",
     "1.0", power(lambda m: -stats.norm.logsf(m**0.25), 1e12),
     "typo"),
    # Appendices B.6 to B.10
    ("(109)", r"power of $\ln m$ in $-\ln\Pr(\chi^2_d > (1 + \sqrt{\ln m})d)$, $d = 1$",
     "1.0", power(lambda log_m: -stats.norm.logsf(sqrt(1 + sqrt(log_m))), 1e6),
     "exponent"),
    ("eq. (107)", "width at which (111) with (108) is the ω of Lemma 4.2",
     "n^5 L^15 d delta^(-4)",
     order(lambda n, L, d, delta:
               solved(lambda m: _movement2(n, d, delta, m) / _radius(n, L, delta) ** 2))),
    ("(112), (113)",
     r"$E\lVert\nabla\mathcal L_B\rVert \le \frac bn\lVert\nabla\mathcal L\rVert$, two examples "
     "with gradients at an angle, as (113) requires",
     "holds", holds(_opposite, angle=linspace(0, np.pi, 5)),
     "gap"),
    ("(112), (113)",
     r"width at which Lemma B.10 secures the $\omega$ for (113), if (9) bounds the batch",
     "n^8 L^15 d b^(-1) delta^(-5)",
     # the mean loss of a batch is b/n
     order(lambda n, L, d, b, delta:
               _width_of_sgd(n, L, d, b, delta,
                             _radius_of_sgd(n, L, d, b, delta, sqrt(b / d) * sqrt(b / n)))),
     "gap"),
    ("B.7", "ω at which the third line of (112) is (b/n)‖∇‖², if E‖∇L_B‖ is (b/n)‖∇L‖",
     "n^(-3) L^(-6) delta^(3/2)",
     order(lambda n, L, d, b, delta:
               _radius_of_sgd(n, L, d, b, delta, b / n * sqrt(delta / (n * d))))),
    ("B.7, Lemma B.10", r"width at which Lemma B.10 secures the $\omega$ that B.7 selects",
     "n^8 L^15 d b^(-1) delta^(-5)",
     order(lambda n, L, d, b, delta:
               _width_of_sgd(n, L, d, b, delta, delta**1.5 / (n**3 * L**6))),
     "gap"),
    ("eq. (116)", "√(bmL/d) √(nmL/d), from (115) and (9)",
     "L d^(-1) m n^(1/2) b^(1/2)",
     order(lambda L, d, m, n, b: sqrt(b * m * L / d) * sqrt(n * m * L / d))),
    ("(118)",
     r"$\lvert\Delta - E\Delta\rvert \le \ln\frac\beta\gamma$ for $\Delta \le \ln\beta$ with "
     r"$Ee^\Delta \le \gamma$, of two values, the other $-x$",
     "holds", holds(_two_values, x=linspace(0.1, 10, 100)),
     "constant"),
    ("before eq. (120)", "(ax - b)² >= a²x²/2 for x > 4b/a",
     # in units of b/a
     "holds", holds(lambda x: (x - 1) ** 2 >= x**2 / 2, x=linspace(4, 400, 4000))),
    ("after eq. (120)", "(β - 1)²/(1 - γ)",
     "n^3 L^2 d^(-1) m eta delta^(-1)",
     order(lambda n, L, d, m, b, eta, delta:
               _excess(eta, n, L, d, m, b, delta) * (eta * m * L * sqrt(n * b) / d))),
    ("after (120)", r"power of $c(\alpha)$ in $(\beta - 1)^2/(1 - \gamma)$",
     "0.0", lambda: float(np.log2((1 - _gamma_sgd(1e-9, 0.0)) / (1 - _gamma_sgd(1e-9)))),
     "constant"),
    ("eq. (121)", "((β - 1)/(γ - 1))²",
     "n^5 L^2 b^(-1) delta^(-2)",
     order(lambda n, L, d, m, b, eta, delta: _excess(eta, n, L, d, m, b, delta) ** 2)),
    ("B.7, end of the proof",
     r"power of $\eta$ in the bound on $T$, $\ln(\cdot)/(1-\gamma)$ (inverted; (6) is right)",
     "1.0", power(lambda eta: 1 / (1 - _gamma_sgd(eta)), 1e-4),
     "typo"),
    ("Lemma B.10, proof", r"power of $\eta$ in $1/(1-\sqrt\gamma)$ (inverted; the result stands)",
     "1.0", power(lambda eta: 1 / (1 - sqrt(_gamma_sgd(eta))), 1e-4),
     "typo"),
    ("Lemma B.10", "width at which the chain is the ω of Lemma 4.2",
     "n^8 L^15 d b^(-1) delta^(-5)",
     order(lambda n, L, d, b, delta:
               _width_of_sgd(n, L, d, b, delta, _radius(n, L, delta)))),
    ("before (122)",
     r"power of $n$ in $L\omega\sqrt{m/d}$, by which outputs may change in the ball of (111)",
     "0.0", power(lambda n: sqrt(n**5 * _movement2(n, 1.0, 1.0, n**5)), 10.0),
     "false"),
    ("(125)",
     r"power of $n$ in the largest $\langle G, V\rangle/\lVert G\rVert_F$, "
     r"$\lVert V\rVert_2 \le 1$, $G$ of rank $n$ with equal singular values",
     "0.0", power(lambda n: np.linalg.norm(np.eye(int(n)), "nuc") / sqrt(n), 16),
     "exponent"),
    ("(132), Lemma B.11",
     r"power of $L$: the $L$ terms of (129), each $\sqrt{m\omega^{2/3}L}\cdot\omega L^{3/2}$ by "
     "Lemmas B.3 and B.4",
     "2.0", power(lambda L: L * sqrt(L) * L**1.5, 8.0),
     "exponent"),
    ("B.9", r"power of $n$ in $\eta t\sqrt{nm/d}\,\sqrt{L(W^{(0)})}$ with (108)",
     "0.5", power(lambda n: bounds.omega_direct(1, 1, n, 1e6, 2, "rederived"), 100),
     "gap"),
    ("Theorem B.12, (134)",
     r"movement of the whole training over $\sqrt{\mathcal L^{(0)}}$, last line of Lemma B.10",
     "n^(1/2) d m^(-1/2) b^(-1/2) delta^(-1)", order(_movement_of_sgd),
     "exponent"),
    ("Theorem B.12, (134)",
     "argument with $t$ in the second minimum, from Lemma 4.3 with (115), (108) and the "
     r"theorem's step, at $d = \delta = 1$",
     "n^(-3) L^(-2) t",
     order(lambda n, L, m, b, t:
               sqrt(m / n) * L * t / (n**3 * L**3 * m) * sqrt(b * m) * sqrt(n)),
     "exponent"),
    # Appendices B.11 to B.13
    ("B.11", "1 - γ of Theorem B.14 over that of Theorem 3.1",
     "n d^(-1) delta^(-1)",
     order(lambda n, d, m, eta, delta: (eta * m / d**2) / _rate(eta, n, d, m, delta))),
    ("B.11", "the first minimum is improved by $1/L$: power of $L$ in B.15 over (7)",
     # d^(3/2) n^(1/2) of both cancels
     "-1.0", power(lambda L: 1 / L**-0.5, 10.0),
     "exponent"),
    ("B.11", "second argument of the second minimum, B.15 over (7)",
     "n^(-1/2) L^(-1) d^(3/2) delta^(1/2)",
     order(lambda n, L, d, delta: L * d**2 / (n**0.5 * L**2 * d**0.5 / delta**0.5))),
    ("Theorem B.15", "the two arguments without t, from Lemma 4.3 at (166)",
     "n^(1/2) d^(3/2); L d^2",
     order(lambda n, L, d: d * sqrt(n * L**12 * d**5) * L**2 * _special_radius(L, d) ** (4 / 3),
           lambda n, L, d: d * sqrt(L**12 * d**5) * L * _special_radius(L, d))),
    ("eq. (148)", "factor of the squared excess, from (144), (147) and Cauchy-Schwarz",
     "n^(-2) L^(-1) d^(-1) m eta delta",
     order(lambda n, L, d, m, eta, delta: _rate(eta, n, d, m, delta) / (n * L))),
    ("(136), (143)",
     r"steps of fixed size lower the convex $\sqrt{\mu^2 + z^2}$, each of them, $\mu = 10^{-3}$",
     "holds", holds(_rounded_distance),
     "false"),
    ("Theorem B.16, width",
     r"by (111), where $\lVert\nabla\rVert$ is that of (142) with (147) at an excess of $\epsilon$",
     "n^6 L^16 d delta^(-4)", order(_width_convex),
     "exponent"),
    ("Proof of Theorem B.16 (Appendix B.12)",
     r"power of $1/L$ in $1-\gamma$ before $T$, from (148) (a slip; (139) and $T$ are right)",
     "2.0",
     power(lambda share: 1 - bounds.gamma_convex(-1.0, 1.0, 0.1, 1e-6, 1e4, 100, 2, 1 / share),
           1 / 16),
     "typo"),
    ("(155), (156)",
     r"$\Pr(B(n, \frac12) > \frac n2 + \sqrt n) \ge 0.1$ for $n > 100$ (constant only)",
     "holds",
     holds(lambda n: stats.binom.sf(np.floor(n / 2 + sqrt(n)), n, 0.5) >= 0.1,
           n=arange(101, 2001)),
     "constant"),
    ("(160), (162)",
     r"power of $d$, $O(1)$ by Section 2, in $E\lvert B_k^\top v\rvert^2/\lVert v\rVert^2$, "
     "entries $N(0, 1/d)$",
     "0.0", power(lambda d: np.sum(np.full(int(d), 1 / d)) / d, 16),
     "constant"),
    ("before eq. (162)", "1/d - λ√(n/d) >= 1/(2d): the factor left at λ = 1/(2√(nd)), times d",
     "0.5", lambda n=1000.0, d=7.0: d * (1 / d - sqrt(n / d) / (2 * sqrt(n * d)))),
    ("(160), (162)",
     r"power of $d$, $O(1)$ by Section 2, in the least $\sum_ja_j^2$ with $\sum_ja_j = \frac1{2d}$",
     "-2.0", power(lambda d: d * (1 / (2 * d) / d) ** 2, 16.0),
     "constant"),
    ("Lemma B.18, its probability",
     r"power of $n$ in $\lambda^2m$ of Lemma B.17 at $\lambda = 1/(2\sqrt{nd})$",
     "0.0", power(lambda n: 1 / (2 * sqrt(n)) ** 2, 10.0),
     "exponent"),
    ("(163) and Lemma B.18",
     r"$\Pr(\mathcal L(W^{(0)}) < n/100)$ for one input, or parallel $h_i$, with $y = 0$, $d = 1$",
     "0.0", lambda: float(stats.chi2.cdf(0.01, 1)),
     "false"),
    ("Lemma B.19", "ω^(2/3) L⁴ m/d with its ω",
     "d^(-2) m", order(lambda L, d, m: _special_radius(L, d) ** (2 / 3) * L**4 * m / d)),
    ("Proof of Theorem B.14 (Appendix B.13)",
     r"width at which (165) with (108) is the $\omega$ that makes the factor like (15) 1",
     "n L^12 d^5", order(_special_width),
     "gap"),
    ("Theorem B.14", r"power of $c(\alpha)$ in the width, from (165) and (166)",
     # d²n/(cm) = ω² at 1
     "0.0", power(lambda c: solved(lambda m: 1 / (c * m)), 1.0),
     "constant"),
    # Appendix C
    ("Appendix C.1", "rows of California housing: training and testing",
     "20640", 15480.0 + 5160.0),
    ("Appendix C.1, Table 3",
     "inputs of California housing: 9 numbers less the label, 5 categories",
     "13", float(9 - 1 + len(("<1H OCEAN", "INLAND", "NEAR OCEAN", "NEAR BAY", "ISLAND")))),
    ("Table 7", "features of CIFAR-10 after two poolings, 512 channels",
     "32768", 512.0 * (32 / 2 / 2) ** 2),
    ("Table 5", "the data whose classes are the ten outputs, in the caption",
     "IMDB",
     lambda: next(name for name, outputs in {"IMDB": 1, "MNIST": 10}.items() if outputs == 10),
     "typo"),
]
