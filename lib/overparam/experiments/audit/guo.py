"""Statements of Guo, Li and Lerman 2024 (AISTATS), recomputed from the paper's own inputs, in the order of the text.

Orders are products of powers; logarithms of m are left out, c stands for c(α); τ = 0 unless named.
"""

import numpy as np
import sympy
from scipy import spatial, special, stats

from ...bounds import guo2024 as bounds
from .powers import monomial, power, solved
from .relations import holds
from .statements import statement

n, L, d, m, b, t, c = sympy.symbols("n L d m b t c", positive=True)
delta, eta, omega = sympy.symbols("delta eta omega", positive=True)
HALF = sympy.Rational(1, 2)
SLOPES = (-2.0, -1.0, 0.0, 0.05)
TRAIN = {  # Table 1, final training errors at SLOPES
    "synthetic": (0.039, 0.022, 0.197, 0.245), "F-MNIST": (0.096, 0.076, 0.211, 0.229),
    "CIFAR-10": (0.019, 0.018, 0.024, 0.027),
}  # fmt: skip
TEST = {  # Table 1, early testing errors at SLOPES
    "synthetic": (1.914, 1.775, 2.086, 2.313), "F-MNIST": (2.371, 2.362, 2.442, 2.470),
    "CIFAR-10": (0.146, 0.143, 0.169, 0.173),
}  # fmt: skip
ROUNDING = 0.0005  # of the digits of Table 1
RADIUS = delta ** (3 * HALF) / (n ** (3 * HALF) * L ** (15 * HALF))  # ω of Lemma 4.2
RADIUS_SPECIAL = 1 / (d ** (3 * HALF) * L**6)  # ω of Lemma B.19
LARGEST_STEP = d / (n * L**2 * m)  # η of Theorem 3.1
WIDTH_34 = n**10 * L**15 * d / delta**4  # m of Theorem 3.4
WIDTH_15 = n * L**12 * d**5  # m of Theorem B.15
ZOU_GU = n**8 * L**12 * d / (delta / L) ** 4  # width of Zou and Gu 2019, their separation δ/L
ALLEN_ZHU_EPOCHS = n**7 * L**2 / (b * (delta / L) ** 2)  # t of Allen-Zhu et al. 2019 for SGD, the same
LOSS_0 = n  # (108), without logarithms


def _curved(radius, width):
    """The second term of Lemma 4.3, √c d √m L² ω^(4/3)."""
    return sympy.sqrt(c) * d * sympy.sqrt(width) * L**2 * radius ** sympy.Rational(4, 3)


def _linear(radius, width):
    """Its third term, d √(m/n) L ω."""
    return d * sympy.sqrt(width / n) * L * radius


def _reduction(errors, name):
    """The least and the most by which -1 reduces ReLU's error of Table 1, in %, whatever the next digits are."""
    own, relu = errors[name][1], errors[name][2]
    signs = np.array([1, -1])
    return tuple(100 * (1 - (own + signs * ROUNDING) / (relu - signs * ROUNDING)))


# Sections 3 to 5


@statement("Corollary 3.3", "c(α) has its maximum at -1, and grows before and falls after it", "holds")
def corollary():
    a = sympy.symbols("a", real=True)
    slope = sympy.factor(sympy.diff((1 - a) ** 2 / (1 + a**2), a))
    grid = np.concatenate([-np.geomspace(1e4, 1 + 1e-6, 500), np.linspace(-1 + 1e-6, 1 - 1e-6, 500)])
    return holds(sympy.lambdify(a, slope)(grid) * np.where(grid < -1, 1, -1) > 0, alpha=grid)


@statement("Section 3", "the rate of Theorem 3.1 over that of Zou and Gu, in 1 - γ", "L")
def rate_improvement():
    return monomial((eta * delta * m / (d * n)) / (eta * delta * m / (d * n * L)), "n L d delta")


@statement("Section 3", "the width of Theorem 3.1 over that of Zou and Gu, as they are printed", "n^(-3) L^(-1)")
def width_improvement():
    return monomial(n**5 * L**15 * d / delta**4 / ZOU_GU, "n L d delta")


@statement("Section 3", "the epochs of Theorem 3.2 over those of Allen-Zhu et al.", "n^(-2) L^(-2)")
def epochs_improvement():
    return monomial(n**5 * L**2 / (b * delta**2) / ALLEN_ZHU_EPOCHS, "n L b delta")


@statement("Section 3", "unscaled initial loss O(√(ln m)): power of n in (108)", "0.0")
def initial_loss():
    return power(sympy.lambdify(n, LOSS_0), 10.0)


@statement("eq. (7)", "its first term: power of n in (1/n) L(W) of Lemma 4.3 over it", "0.0")
def training_term():
    return power(lambda size: bounds.gen_lemma43(size, 0.0, 0.0, size, 1, 1e9, 1, C3=1e-99) / size, 10.0)


@statement("eq. (15)", "(12) with (14): order of the factor of η‖∇‖²", "n L^2 omega^(1/3) delta^(-1/2)")
def reduced_term():
    return monomial(_factor_15(sympy.sqrt(n * d / (delta * m)), omega), "n L d m omega delta")


def _factor_15(root_loss, radius):
    """ω^(1/3) L² √(mn/d) √L of eq. (12), √L ‖∇‖⁻¹ being `root_loss` over the slope gap, which cancels."""
    return radius ** sympy.Rational(1, 3) * L**2 * sympy.sqrt(m * n / d) * root_loss


@statement("Theorem 3.1", "power of n in the width that the proof supports: (111), (108), ω absorbing (15)", "5.0")
def width_needed():
    radius = solved(_factor_15(sympy.sqrt(n * d / (delta * m)), omega), omega)
    width = solved(n * d * LOSS_0 / (delta * m) / radius**2, m)
    return power(sympy.lambdify(n, width.subs({d: 1, L: 1, delta: 1})), 10.0)


@statement(
    "Section 5.1", "mean smallest distance of 1,000 Gaussian inputs in R^5 with the unit norm of Section 2", "0.21"
)
def separation(seed):
    rng = np.random.default_rng(seed)
    closest = []
    for _ in range(300):
        x = rng.normal(size=(1000, 5))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        closest.append(spatial.cKDTree(x).query(x, k=2)[0][:, 1].min())
    return float(np.mean(closest))


@statement("Section 5.2", "errors of Table 1 at the last epoch are ranked like c(α)", "holds")
def ranking():
    order = np.argsort(-bounds.c_alpha(np.array(SLOPES)))
    return holds([np.all(np.diff(np.array(row)[order]) > 0) for row in TRAIN.values()], data_set=np.arange(1, 4))


@statement("Section 5.2", "-1 has the least mean error of Table 1, in training and early testing", "holds")
def least_errors():
    least = [np.argmin(row) == 1 for rows in (TRAIN, TEST) for row in rows.values()]
    return holds(least, row=np.arange(1, 7))


@statement("Section 5.2", "training: the largest reduction from ReLU to -1 is 91 % (synthetic), by rounding", "holds")
def most_training():
    low, high = _reduction(TRAIN, "synthetic")
    return "holds" if low <= 91.5 and high >= 90.5 else f"fails: {low:.1f} to {high:.1f} %"


@statement("Section 5.2", "training: the smallest reduction from ReLU to -1 is 22 % (CIFAR-10), by rounding", "holds")
def least_training():
    low, high = _reduction(TRAIN, "CIFAR-10")
    return "holds" if low <= 22.5 and high >= 21.5 else f"fails: {low:.1f} to {high:.1f} %"


@statement("Section 5.2", "early test: the smallest reduction from ReLU to -1 is 4 % (F-MNIST), by rounding", "holds")
def least_testing():
    low, high = _reduction(TEST, "F-MNIST")
    return "holds" if low <= 4.5 and high >= 3.5 else f"fails: {low:.1f} to {high:.1f} %"


@statement("Section 5.2", "early test: the largest reduction from ReLU to -1 is 15 % (CIFAR-10), by rounding", "holds")
def most_testing():
    low, high = _reduction(TEST, "CIFAR-10")
    return "holds" if low <= 15.5 and high >= 14.5 else f"fails: {low:.1f} to {high:.1f} %"


# Appendix A


@statement("Appendix A", "order of T, from (4) at the largest step", "n^2 L^2")
def order_of_T():
    return monomial(1 / (eta * delta * m / (n * d)).subs(eta, LARGEST_STEP), "n L d m")


@statement("Appendix A", "second term of (7) at t = nL", "n^(-1) L^(-11/6) d^(1/6) delta^(2/3)")
def second_term():
    third = sympy.Rational(1, 3)
    term = d**third * t ** (4 * third) / (m ** (third / 2) * (n * L) ** (2 * third))
    return monomial(term.subs({m: WIDTH_34, t: n * L}), "n L d delta")


@statement(
    "Appendix A",
    "min{(nL)^κ, n^(1/2+τ) L^(2+τ)} <= n^min(κ, 1/2+τ) L^min(κ, 2+τ), τ > 0, up to a constant (so for τ >= 1/2)",
    "holds",
)
def order_of_minimum():
    tau, k = np.meshgrid([0.1, 0.3, 0.5, 1.0], np.linspace(0.01, 1, 100), indexing="ij")
    size, depth = 12 * np.log(10), 6 * np.log(10)  # ln n, ln L
    both = np.minimum(k * (size + depth), (0.5 + tau) * size + (2 + tau) * depth)
    return holds(both <= np.minimum(k, 0.5 + tau) * size + np.minimum(k, 2 + tau) * depth + 1, tau=tau, kappa=k)


def _at_T(form):
    """Powers of c(α) in the two terms of (7) with t, at T, by Appendix A as it stands or by the T of (4)."""
    found = []
    for term in (1, 2):
        one, other = (
            bounds.appA_at_T(
                1e-9, alpha, 100, 10, 1, 0.1, 1e40, 0.1, C1=1e300, C4=1e300, form=form, terms=True
            )[term]
            for alpha in (0.0, -1.0)
        )  # fmt: skip
        found.append(float(np.log2(other / one)))
    return found


@statement("Appendix A, t = T", "power of c(α) in the first minimum", "1.83")
def first_minimum_at_T():
    return _at_T("rederived")[0]


@statement("Appendix A, t = T", "power of c(α) in the second minimum", "1.0")
def second_minimum_at_T():
    return _at_T("rederived")[1]


# Appendices B.2 and B.3


@statement("eq. (20)", "P(|χ²_m/m - 1| > ε/2) <= 2 exp(-mε²/32), ε < 1", "holds")
def norm_tail():
    size, e = np.meshgrid([4, 16, 64, 256, 1024, 4096], np.linspace(0.01, 0.99, 99), indexing="ij")
    tail = stats.chi2.sf(size * (1 + e / 2), size) + stats.chi2.cdf(size * (1 - e / 2), size)
    return holds(tail <= 2 * np.exp(-size * e**2 / 32), m=size, epsilon=e)


@statement("before eq. (28)", "E ln(2H/m) >= -4/m for H ~ χ²_K with a K in [0.4m, 0.6m]", "holds")
def logarithm_of_chi_square():
    K = np.arange(400, 601)
    return holds(special.digamma(K / 2) + np.log(4 / 1000) >= -4 / 1000, m=1000, K=K)


@statement("eq. (28)", "the same in the mean over K ~ B(m, 1/2)", "holds")
def mean_logarithm():
    found = []
    for size in (20, 100, 1000):
        K = np.arange(int(np.ceil(0.4 * size)), int(0.6 * size) + 1)
        weights = stats.binom.pmf(K, size, 0.5)
        found.append(np.sum(weights * (special.digamma(K / 2) + np.log(4 / size))) / weights.sum() >= -4 / size)
    return holds(found, m=np.array([20, 100, 1000]))


@statement("eq. (30)", "for θ with <h, h'> <= 1 - θ²/2 the mean product is at most 1/2 - θ²/4 + cθ³, α = -1", "holds")
def dual_kernel():
    cosine, theta = np.meshgrid(np.linspace(1, -1, 201), np.linspace(0.01, 2, 200), indexing="ij")
    excess = bounds.dual_act(np.arccos(cosine), -1.0) - (1 / 2 - theta**2 / 4 + 2 * theta**3)
    return holds((excess <= 0) | (cosine > 1 - theta**2 / 2), cosine=cosine, theta=theta)


@statement("B.2, Part 2", "‖a - b‖² <= s where ‖a‖², ‖b‖² <= s/2: largest ‖a - b‖²/s (constant only)", "1.0")
def difference_of_vectors():
    angle = np.linspace(0, np.pi, 1001)
    return float(np.max(0.5 + 0.5 - 2 * 0.5 * np.cos(angle)))


@statement("after eq. (39)", "1 - 1/(2l) >= l²/(l + 1)² for l >= 1", "holds")
def recursion():
    layer = np.arange(1, 10001)
    return holds(1 - 1 / (2 * layer) >= layer**2 / (layer + 1) ** 2, l=layer)


@statement("eq. (29), Part 3", "cosine <= 1 - δ_l²/8 gives cosine² <= 1 - δ_l²/8", "holds")
def squared_cosine():
    cosine, gap = np.meshgrid(np.linspace(1, -1, 201), np.linspace(0.01, 0.25, 25), indexing="ij")
    ok = (cosine > 1 - gap**2 / 8) | (cosine**2 <= 1 - gap**2 / 8)
    return holds(ok, cosine=cosine, delta_l=gap)


@statement("Lemma B.4, proof", "least order of ξ m^(3/2) + 4g²/ξ² over ξ, with g = ω L^(3/2)", "m L omega^(2/3)")
def sign_changes():
    g, xi = omega * L ** (3 * HALF), sympy.symbols("xi", positive=True)
    best = solved(m ** (3 * HALF) / (8 * g**2 / xi**3), xi)  # where the two derivatives are equal
    return monomial(best * m ** (3 * HALF), "m L omega")


@statement("eq. (54)", "P(|Z| >= x) <= exp(-x²/2)/(√(2π) x) (constant only)", "holds")
def gaussian_tail():
    x = np.linspace(0.1, 30, 300)
    log_bound = -(x**2) / 2 - np.log(np.sqrt(2 * np.pi) * x)
    return holds(np.log(2) + stats.norm.logsf(x) <= log_bound, x=x)


@statement("eq. (55)", "power of m in q b² = (√m/ln²m)(‖u‖² ln m/m)", "-1.0")
def split_norm():
    return power(lambda size: np.sqrt(size) * (1 / size), 100.0)


# Appendices B.4 and B.5


@statement("Lemma B.7, proof", "1/32 = 1/4 · 1/2 · 1/4 from (73) and the event", "32")
def event_constant():
    gradient, residual, norm = 1 / 2, 1 / 2, 1 / 2  # (73); a² >= ‖v‖²/(2d); ‖h‖ >= 1/2
    return 1 / (gradient**2 * residual * norm**2)


@statement("Lemma B.7", "power of L in the exponent of the probability, by Hoeffding as in the proof", "0.0")
def hoeffding():
    def exponent(depth):
        deviation = 0.5 * 0.1 / (50 * depth)  # half the mean δ/(nL), in units of Σ‖v_i‖²
        return 2 * deviation**2 / (1 / 50) ** 2

    return power(exponent, 10.0)


@statement("eq. (90)", "power of n in ‖Σ_i ΔG_i‖² over Σ_i ‖v_i‖², with each ‖ΔG_i‖ <= a‖v_i‖", "0.0")
def perturbed_gradients():
    return power(lambda size: np.ones(int(size)).sum() ** 2 / size, 64)


@statement("eq. (92)", "ω^(2/3) L⁴ m/d with the ω of Lemma 4.2", "n^(-1) L^(-1) d^(-1) m delta")
def perturbation():
    return monomial(RADIUS ** sympy.Rational(2, 3) * L**4 * m / d, "n L d m delta")


@statement("eq. (93)", "sum over L layers of the bound of Lemma B.7", "n^(-1) d^(-1) m delta")
def gradient_of_all_layers():
    return monomial(L * delta * m / (n * d * L), "n L d m delta")


@statement("eqs. (8), (102)", "power of L: L terms, each bounded by (101)", "2.0")
def semismooth_first():
    return power(lambda depth: depth * depth**2, 8.0)


@statement("eqs. (8), (104)", "power of L: L terms √(m/d) L^(3/2)‖W'‖², by Lemma B.3 (3 by (103) as printed)", "2.0")
def semismooth_second():
    return power(lambda depth: depth * depth**1.5, 8.0)


@statement("before eq. (105)", "power of m in -ln P(‖Bh‖² > √(m/d)), d = 1 (‖Bh‖ is meant: (105) stands)", "1.0")
def output_tail():
    return power(lambda size: -stats.norm.logsf(size**0.25), 1e12)


# Appendices B.6 to B.10


@statement("eq. (109)", "power of ln m in -ln P(χ²_d > (1 + √(ln m)) d), d = 1", "1.0")
def output_norms():
    return power(lambda log_m: -stats.norm.logsf(np.sqrt(1 + np.sqrt(log_m))), 1e6)


@statement("eq. (107)", "width at which (111) with (108) is the ω of Lemma 4.2", "n^5 L^15 d delta^(-4)")
def width_of_radius():
    return monomial(solved(n * d * LOSS_0 / (delta * m) / RADIUS**2, m), "n L d delta")


@statement("eq. (116)", "√(bmL/d) √(nmL/d), from (115) and (9)", "L d^(-1) m n^(1/2) b^(1/2)")
def growth():
    return monomial(sympy.sqrt(b * m * L / d) * sympy.sqrt(n * m * L / d), "L d m n b")


@statement("before eq. (120)", "(ax - b)² >= a²x²/2 for x > 4b/a", "holds")
def parabola():
    x = np.linspace(4, 400, 4000)  # in units of b/a
    return holds((x - 1) ** 2 >= x**2 / 2, x=x)


@statement("after eq. (120)", "(β - 1)²/(1 - γ)", "n^3 L^2 d^(-1) m eta delta^(-1)")
def additional_term():
    return monomial(
        (eta * m * L * sympy.sqrt(n * b) / d) ** 2 * n**2 * d / (eta * delta * m * b), "n L d m b eta delta"
    )


@statement("eq. (121)", "((β - 1)/(γ - 1))²", "n^5 L^2 b^(-1) delta^(-2)")
def burn_in():
    ratio = (eta * m * L * sympy.sqrt(n * b) / d) * n**2 * d / (eta * delta * m * b)
    return monomial(ratio**2, "n L d m b eta delta")


@statement("B.7, end", "power of η in the bound on T, ln(·)/(1 - γ) (inverted; (6) is right)", "1.0")
def steps_of_sgd():
    return power(lambda step: 1 / (1 - bounds.gamma_sgd(-1.0, step, 10, 0.1, 1e4, 100, 2)), 1e-4)


@statement("Lemma B.10, proof", "power of η in 1/(1 - √γ) (inverted; the result stands)", "1.0")
def sum_of_rates():
    return power(lambda step: 1 / (1 - np.sqrt(bounds.gamma_sgd(-1.0, step, 10, 0.1, 1e4, 100, 2))), 1e-4)


@statement("Lemma B.10", "width at which the chain is the ω of Lemma 4.2", "n^8 L^15 d b^(-1) delta^(-5)")
def width_of_sgd():
    step, epochs = d * delta / (m * n**3 * L**2), n**5 * L**2 / (delta**2 * b)
    return monomial(solved(m * b / d * (step * epochs) ** 2 * LOSS_0 / RADIUS**2, m), "n L d b delta")


@statement("B.9", "power of n in η t √(nm/d) √(L(W⁰)) with (108)", "0.5")
def direct_bound():
    return power(lambda size: bounds.omega_direct(1, 1, size, 1e6, 2, "rederived"), 100)


# Appendices B.11 to B.13


@statement("B.11", "1 - γ of Theorem B.14 over that of Theorem 3.1", "n d^(-1) delta^(-1)")
def special_rate():
    return monomial((eta * m / d**2) / (eta * delta * m / (n * d)), "n L d delta")


@statement("B.11", "the first minimum is improved by 1/L: power of L in B.15 over (7)", "-1.0")
def special_first_minimum():
    return power(sympy.lambdify(L, (d ** (3 * HALF) * n**HALF / (d ** (3 * HALF) * n**HALF * L ** (-HALF)))), 10.0)


@statement("B.11", "second argument of the second minimum, B.15 over (7)", "n^(-1/2) L^(-1) d^(3/2) delta^(1/2)")
def special_second_minimum():
    return monomial(L * d**2 / (n**HALF * L**2 * d**HALF / delta**HALF), "n L d delta")


@statement("Theorem B.15", "the two arguments without t, from Lemma 4.3 at (166)", "n^(1/2) d^(3/2); L d^2")
def special_terms():
    first = _curved(RADIUS_SPECIAL, WIDTH_15)
    return f"{monomial(first, 'n L d')}; {monomial(_linear(RADIUS_SPECIAL, WIDTH_15), 'n L d')}"


@statement(
    "eq. (148)",
    "factor of the squared excess, from (144), (147) and Cauchy-Schwarz",
    "n^(-2) L^(-1) d^(-1) m eta delta",
)
def convex_recursion():
    return monomial(delta * eta * m / (n * d) / (n * L), "n L d m eta delta")


@statement("Proof of Theorem B.16", "power of 1/L in 1 - γ before T, from (148) (a slip; (139) and T are right)", "2.0")
def convex_rate():
    return -power(lambda depth: 1 - bounds.gamma_convex(-1.0, 1.0, 0.1, 1e-6, 1e4, 100, 2, depth), 8.0)


@statement("eqs. (155), (156)", "P(B(n, 1/2) > n/2 + √n) >= 0.1 for n > 100 (constant only)", "holds")
def central_limit():
    size = np.arange(101, 2001)
    return holds(stats.binom.sf(np.floor(size / 2 + np.sqrt(size)), size, 0.5) >= 0.1, n=size)


@statement("eq. (160)", "power of d, O(1) by Section 2, in E|B_kᵀv|²/‖v‖², entries N(0, 1/d)", "0.0")
def projection():
    return power(lambda size: np.sum(np.full(int(size), 1 / size)) / size, 16)


@statement("before eq. (162)", "1/d - λ√(n/d) >= 1/(2d): the factor left at λ = 1/(2√(nd)), times d", "0.5")
def assumption():
    size, outputs = 1000.0, 7.0
    return outputs * (1 / outputs - np.sqrt(size / outputs) / (2 * np.sqrt(size * outputs)))


@statement("eq. (162)", "power of d, O(1) by Section 2, in the least Σ_j a_j² with Σ_j a_j = 1/(2d)", "-2.0")
def sum_of_squares():
    return power(lambda size: size * (1 / (2 * size) / size) ** 2, 16.0)


@statement("Lemma B.19", "ω^(2/3) L⁴ m/d with its ω", "d^(-2) m")
def special_perturbation():
    return monomial(RADIUS_SPECIAL ** sympy.Rational(2, 3) * L**4 * m / d, "n L d m")


@statement("Proof of Theorem B.14", "the same (16): power of n left in the factor like (15), with (164)", "0.0")
def left_in_special():
    left = _factor_15(d / sympy.sqrt(m), RADIUS_SPECIAL)
    return power(sympy.lambdify(n, left.subs({d: 1, m: 1, L: 1})), 10.0)


@statement("Theorem B.14", "power of c(α) in the width, from (165) and (166)", "0.0")
def special_width():
    width = solved(d**2 * LOSS_0 / (c * m) / RADIUS_SPECIAL**2, m)
    return power(sympy.lambdify(c, width.subs({n: 1, d: 1, L: 1})), 1.0)


# Appendix C


@statement("Appendix C.1", "rows of California housing: training and testing", "20640")
def california_rows():
    return 15480.0 + 5160.0


@statement("Appendix C.1, Table 3", "inputs of California housing: 9 numbers less the label, 5 categories", "13")
def california_inputs():
    return float(9 - 1 + len(("<1H OCEAN", "INLAND", "NEAR OCEAN", "NEAR BAY", "ISLAND")))


@statement("Table 7", "features of CIFAR-10 after two poolings, 512 channels", "32768")
def cifar_features():
    return 512.0 * (32 / 2 / 2) ** 2


@statement("Table 5", "the data whose classes are the ten outputs, in the caption", "IMDB")
def transformer_data():
    return next(name for name, outputs in {"IMDB": 1, "MNIST": 10}.items() if outputs == 10)
