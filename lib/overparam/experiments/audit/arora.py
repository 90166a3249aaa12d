"""Arora et al. 2019, arXiv 1901.08584: what of its arithmetic can be recomputed."""

import itertools
import math

import numpy as np
from scipy.special import erf, factorial2, gammaln

from ...bounds import arora2019 as bounds
from .relations import both_positive, bounded, holds, order
from .statements import statement

_STEP = np.linspace(1e-4, 1, 400)  # ηλ₀ in (0, 1]


@statement("Sec. 3.2, eq. (3)", "both neurons on: (pi - arccos r)/(2 pi), r the inner product", "holds")
def kernel():
    rho = np.linspace(-0.99, 0.99, 11)
    both = np.array([both_positive(r) for r in rho])
    return holds(np.isclose(both, (np.pi - np.arccos(rho)) / (2 * np.pi), atol=1e-9), rho=rho)


@statement("Thm 3.1", "order of the loss at initialisation, by Markov's inequality", "n delta^(-1)")
def initial_loss():
    return order(lambda n, delta: n * (1 + 1 / 2) / 2 / delta)  # E(y − u)² ≤ 1 + κ²/2, κ ≤ 1


@statement("Thm 3.1, footnote 3", "the width at which H moves by less than lam0", "n^6 lam0^(-4) kappa^(-2) delta^(-3)")
def width_of_convergence():
    # the drift falls with m^(-1/2), and is lam0 where m is the square of what it is, relatively, at m = 1
    return order(lambda n, lam0, kappa, delta: (bounds.lemC2_H(n, 1.0, lam0, kappa, delta) / lam0) ** 2)


@statement("Thm 4.1", "its kappa and m, put into the last display of its proof, leave an error of order eps", "eps")
def error_at_width():
    def error(n, lam0, delta, eps):
        kappa = bounds.thm41_kappa(eps, delta, n)
        return bounds.thm41_eps(n, bounds.thm41_width(n, lam0, kappa, delta, eps), kappa, lam0, delta)

    return order(error)


@statement("Lemma C.1", "sqrt(1 - x/2) is at most 1 - x/4, x = eta lam0", "holds")
def root_of_rate():
    return holds(np.sqrt(1 - _STEP / 2) <= 1 - _STEP / 4, x=_STEP)


@statement("Lemma C.1", "factor of sqrt(n/m) |y - u(0)|/lam0 in the sum of all steps", "4")
def movement():
    eta_lam0 = 1e-3
    return eta_lam0 / (1 - (1 - eta_lam0 / 4))


@statement("App. C, eq. (17)", "a centred normal is in [-R, R] with probability at most 2R/(sqrt(2 pi) kappa)", "holds")
def small_ball():
    r = np.logspace(-4, 1, 200)
    return holds(erf(r / np.sqrt(2)) <= 2 * r / np.sqrt(2 * np.pi), R=r)


@statement("Lemma C.2", "(2/m) times the sum over r of P(neuron r leaves): delta bounds P(any leaves)", "2 delta/m")
def leaving_neurons():
    # The largest sum of m probabilities whose union is delta: all events the same one
    m, delta = 64, 2.0**-5
    worst = 2 / m * sum(delta for _ in range(m))
    return {2 * delta: "2 delta", 2 * delta / m: "2 delta/m"}[worst]


@statement(
    "Lemma C.2",
    "order of 4 n^2 R/(sqrt(2 pi) kappa delta), the change of H, at the R of its proof",
    "n^3 m^(-1/2) lam0^(-1) kappa^(-1) delta^(-3/2)",
)
def drift_of_h():
    return order(
        lambda n, m, lam0, kappa, delta: (
            4 * n**2 * bounds.lem53_R(n, m, lam0, delta) / (np.sqrt(2 * np.pi) * kappa * delta)
        )
    )


@statement(
    "Lemma C.2",
    "order of 2 n R/(sqrt(2 pi) kappa delta), the squared change of Z, at the R of its proof",
    "n^2 m^(-1/2) lam0^(-1) kappa^(-1) delta^(-3/2)",
)
def drift_of_z():
    return order(
        lambda n, m, lam0, kappa, delta: (
            2 * n * bounds.lem53_R(n, m, lam0, delta) / (np.sqrt(2 * np.pi) * kappa * delta)
        )
    )


@statement(
    "App. C, Thm 4.1",
    "factor of sqrt(mn) |y - u(0)|/(sqrt(2 pi) kappa lam0) in the neurons that may flip at an input",
    "8",
)
def flipping_neurons():
    n, m, lam0, kappa, res0 = 7.0, 11.0, 0.3, 0.2, 5.0
    count = m * 2 * bounds.lemC1_R(n, m, lam0, res0) / (np.sqrt(2 * np.pi) * kappa)
    return count / (np.sqrt(m * n) * res0 / (np.sqrt(2 * np.pi) * kappa * lam0))


@statement(
    "App. C, Thm 4.1",
    "order of epsilon(k)/|u(k) - y|, with the flips of (19)",
    "eta n^(5/2) m^(-1/2) kappa^(-1) lam0^(-1) delta^(-3/2)",
)
def first_perturbation():
    def flips(n, m, kappa, lam0, delta):
        return n * np.sqrt(m * n) * np.sqrt(n / delta) / (kappa * lam0) / delta

    return order(lambda eta, n, m, kappa, lam0, delta: flips(n, m, kappa, lam0, delta) * 2 * eta * np.sqrt(n) / m)


@statement("App. C, eq. (29)", "sqrt(n) kappa/delta bounds |u(0)|, where E|u(0)|^2 is n kappa^2/2, by Markov", "holds")
def initial_outputs():
    delta = np.linspace(0.01, 1, 100)
    return holds(np.sqrt(1 / 2 / delta) <= 1 / delta, delta=delta)


@statement("App. C, Thm 4.1", "the largest k (1 - x/4)^(k-1) is O(1/x)", "holds")
def peak_of_powers():
    x = np.logspace(-6, 0, 25)
    k = np.stack([np.ceil(-1 / np.log1p(-x / 4)) + shift for shift in (-1, 0, 1)]).clip(1)
    return bounded((x * (k * (1 - x / 4) ** (k - 1)).max(0))[::-1])


@statement(
    "App. C, eq. (30)",
    "order of the third term, with (26) and |y - u(0)| = sqrt(n/delta)",
    "eta n^(7/2) m^(-1/2) lam0^(-1) kappa^(-1) delta^(-2)",
)
def third_term():
    return order(
        lambda eta, n, m, lam0, kappa, delta: eta * bounds.lemC2_H(n, m, lam0, kappa, delta) * np.sqrt(n / delta)
    )


@statement(
    "App. D.1, eq. (36)",
    "order of its second term, summed over all steps",
    "n^4 m^(-1/2) lam0^(-3) kappa^(-1) delta^(-2)",
)
def outputs_in_movement():
    eta = 2.0**-10

    def total(n, m, lam0, kappa, delta):
        series = 1 / (eta * lam0 / 4) ** 2
        return eta**2 * np.sqrt(n) * n**3.5 / (np.sqrt(m) * lam0 * kappa * delta**2) * series

    return order(total)


@statement(
    "App. D.1", "for m >= kappa^(-2) all but n kappa/(lam0 delta) is at most poly/(m^(1/4) kappa^(1/2))", "holds"
)
def terms_in_movement():
    def ratio(m, kappa, n=2.0, lam0=0.5, delta=0.5):
        terms = bounds.lem53_B(0.0, n, m, kappa, lam0, delta) - n * kappa / (lam0 * delta)
        return terms * m**0.25 * kappa**0.5

    kappa = np.logspace(-6, 0, 30)[:, None]
    m = kappa**-2 * np.logspace(0, 12, 30)
    return holds(ratio(m, kappa) <= ratio(1.0, 1.0) * (1 + 1e-9), m=m, kappa=kappa)


@statement("Lemma 5.4", "its bound is above the proof's, whose middle term has 2 sqrt(2/pi)", "holds")
def rademacher_constants():
    delta, m, n, b, r, kappa = np.linspace(0.01, 1, 50), 1000.0, 50.0, 3.0, 0.01, 0.1
    hoeffding = np.sqrt(np.log(2 / delta) / (2 * m))
    proof = b / n * (np.sqrt(n / 2) + np.sqrt(n * hoeffding))
    proof += 2 * r * np.sqrt(m) * (np.sqrt(2 / np.pi) * r / kappa + hoeffding)
    return holds(proof <= bounds.lem54_rademacher(b, r, m, n, kappa, delta) * (1 + 1e-12), delta=delta)


@statement(
    "Thm B.1", "factor of c sqrt(log(2/delta)/2n): the loss and twice the empirical complexity, each at delta/2", "3"
)
def deviation():
    n, delta, c = 50.0, 0.1, 2.0
    mcdiarmid = c / n * np.sqrt(n * np.log(1 / (delta / 2)) / 2)  # a sample moves either by at most c/n
    return (mcdiarmid + 2 * mcdiarmid) / (c * np.sqrt(np.log(2 / delta) / (2 * n)))


@statement("App. D.3", "k of order log(n/delta)/(eta lam0) steps bring O(n/delta) below 1/2", "holds")
def steps_to_fit():
    x, size = np.logspace(-6, 0, 20)[:, None], np.logspace(1, 300, 60)  # ηλ₀, n/δ
    steps = np.log(2 * size) / -np.log1p(-x / 2)
    return holds(steps <= 3 * np.log(size) / x, x=x, size=size)


@statement(
    "App. D.3", "1/sqrt(n) + 2 (sqrt(y'H^-1 y/2n) + 2/sqrt(n)) is (10) up to O(sqrt(log(n/(lam0 delta))/n))", "holds"
)
def left_over():
    n = np.logspace(0, 12, 40)
    quadratic = n[:, None] * np.logspace(-6, 6, 20)
    bound = 1 / np.sqrt(n)[:, None] + 2 * (np.sqrt(quadratic / (2 * n[:, None])) + 2 / np.sqrt(n)[:, None])
    rest = bound - np.sqrt(2 * quadratic / n[:, None])
    return holds(rest <= 6 * np.sqrt(np.log(2 * n) / n)[:, None] / np.sqrt(np.log(2)), n=n[:, None])  # lam0 <= 1/2


@statement("Thm 6.1, App. E", "3p is above 2 (p = 1) and sqrt(2 pi)(p - 1), which the proof has", "holds")
def monomials():
    p = [1, *range(2, 200, 2)]
    return holds([bounds.thm61_proof_const(q) <= bounds.thm61_bound(q, 1.0, 1.0) for q in p], p=np.array(p))


@statement("App. E", "the series of H in powers of K, from arcsin", "holds")
def series():
    k, l = np.linspace(-0.9, 0.9, 37), np.arange(1, 400)[:, None]
    ratio = np.exp(np.cumsum(np.log((2 * l - 3).clip(1) / (2 * l - 2).clip(1)), axis=0))
    total = k / 4 + (ratio * k ** (2 * l) / (2 * l - 1)).sum(0) / (2 * np.pi)
    return holds(np.isclose(total, k * (np.pi - np.arccos(k)) / (2 * np.pi), atol=1e-12), K=k)


@statement("App. E", "(2l - 3)!!/(2l - 2)!! is at least 1/(2l - 1)", "holds")
def double_factorials():
    l = np.arange(1, 60)
    upper = np.array([1.0 if k == 1 else factorial2(2 * k - 3) for k in l])
    return holds(upper / np.array([factorial2(2 * k - 2) if k > 1 else 1.0 for k in l]) >= 1 / (2 * l - 1), l=l)


def _degree(complexity):
    """The power with which (13), squared, bounds yᵀH⁻¹y when what it depends on grows tenfold."""
    return 2 * math.log10(complexity(10.0) / complexity(1.0))


@statement("Example 6.1", "degree in |beta| of what (13) gives for M, the bound of y'H^-1 y", "2")
def linear():
    return _degree(lambda b: bounds.cor62_bound([1.0], [b], [1]))


@statement(
    "Example 6.2",
    "degree in the trace norm of A of what (13) gives for M (true all the same where |x'Ax| <= 1 on the sphere)",
    "1",
)
def quadratic():
    return _degree(lambda a: bounds.cor62_bound([a, a / 2], [1.0, 1.0], [2, 2]))


@statement("Example 6.3", "the sum over j of j |beta|^(2j)/(2j)! is of the order of |beta| sinh |beta|", "holds")
def cosine_sum():
    b, j = np.linspace(0.01, 20, 60), np.arange(1, 85)[:, None]
    total = (j * b ** (2 * j) / np.array([math.factorial(2 * int(i)) for i in j[:, 0]], dtype=float)[:, None]).sum(0)
    return holds(np.isclose(total, b * np.sinh(b) / 2, rtol=1e-9), b=b)


@statement("Example 6.3", "M, the square of (13), is O(|beta| sinh |beta|)", "holds")
def cosine():
    b = np.arange(1.0, 30.0)
    j = np.arange(1, 80)
    root = np.array([bounds.cor62_bound(np.exp(-gammaln(2 * j + 1)), [x] * len(j), list(2 * j)) for x in b])
    return bounded(root**2 / (b * np.sinh(b)))


@statement("Example 6.4", "the series of z arctan(z/2) for |z| <= 1", "holds")
def arctangent():
    z, j = np.linspace(-1, 1, 41), np.arange(1, 60)[:, None]
    total = ((-1.0) ** (j - 1) * 2.0 ** (1 - 2 * j) / (2 * j - 1) * z ** (2 * j)).sum(0)
    return holds(np.isclose(total, z * np.arctan(z / 2), atol=1e-14), z=z)


@statement("Example 6.4", "M, the square of (13), is O(|beta|^2) for |beta| <= 1", "holds")
def arctangent_complexity():
    j = np.arange(1, 60)
    b = np.logspace(0, -6, 40)
    alphas = 2.0 ** (1 - 2 * j) / (2 * j - 1)
    return bounded([bounds.cor62_bound(alphas, [x] * len(j), list(2 * j)) ** 2 / x**2 for x in b])


@statement(
    "Example 6.4", "the sum of (C sqrt(log 1/eps))^(2j) 2^(1-2j)/(2j-1) diverges for C = 2 and eps < 1/e", "holds"
)
def arctangent_elsewhere():
    eps = np.exp(-np.linspace(1.01, 20, 40))
    j = 1e12  # the ratio of a term to the one before
    return holds((2 * np.sqrt(np.log(1 / eps))) ** 2 / 4 * (2 * j - 1) / (2 * j + 1) > 1, eps=eps)


@statement("Fig. 2, caption", "the l1 loss is at least the classification error, for labels of 1 and -1", "holds")
def l1_loss():
    f = np.linspace(-3, 3, 601)
    return holds([abs(v - y) >= (v * y <= 0) for v, y in itertools.product(f, (1, -1))], f=np.repeat(f, 2))
