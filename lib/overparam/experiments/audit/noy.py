"""Statements of Noy et al. 2021, arXiv 2101.04243, recomputed from the paper's own inputs, in the order of the text."""

import numpy as np
import sympy
from scipy import stats

from ...bounds import noy2021 as bounds
from .powers import monomial, power, solved
from .relations import bounded, holds
from .statements import statement

n, L, m, d_x, d_y = sympy.symbols("n L m d_x d_y", positive=True)
IMAGENET, LAYERS = 1281167, 1001  # examples of ImageNet; Section 1: layers of the net
TABLE_1 = {"Zou": (26, 38), "Allen-Zhu": (24, 12), "Zou and Gu": (8, 12), "ours": (2, 1)}  # powers of n and L in m
WIDTHS = np.array([15000, 10000])  # of Table 2
THETA = np.linspace(0.001, 0.5, 500, endpoint=False)  # θ in (0, 1/2)
SGEMM_INPUTS = "MWG NWG KWG MDIMC NDIMC MDIMA NDIMB KWI VWM VWN STRM STRN SA SB"  # the file's columns before the times
BETA2, ALPHA2 = m**2 / (d_x * d_y), m**2 / (d_x * d_y)  # orders of β², α² by Theorem 5


def _width(work):
    """n^a L^b of Table 1."""
    a, b = TABLE_1[work]
    return n**a * L**b


# Sections 1 to 4


@statement("Section 1", "decimal exponent of the parameters by Zou and Gu, ImageNet, 1001 layers", "172")
def parameters():
    width = sum(p * np.log10(x) for p, x in zip(TABLE_1["Zou and Gu"], (IMAGENET, LAYERS), strict=True))
    return float(np.floor(bounds.log10_parameters(width, LAYERS)))


@statement("Table 1, Theorem 1", "the step size is d_x d_y/(m² L) at the width n² L d_y", "n^(-4) L^(-3) d_x d_y^(-1)")
def step_at_width():
    return monomial((d_x * d_y / (m**2 * L)).subs(m, n**2 * L * d_y), "n L d_x d_y")


@statement("Section 7", "the width of Zou and Gu over that of Theorem 1", "n^6 L^11")
def improvement():
    return monomial(_width("Zou and Gu") / _width("ours"), "n L")


@statement("eq. (46)", "ℓ₀ in c_T log(ℓ₀/ε) = c_T log(n³L/(d_xε)), by (43) at the width (45)", "n^3 L d_x^(-1)")
def logarithm():
    return monomial((m * n / d_x).subs(m, n**2 * L * d_y), "n L d_x d_y")


@statement("Section 4.1", "power of n in the operations of the whole training, at fixed m", "0.0")
def operations():
    return power(lambda n: bounds.flops_train(1000, 6, n), 1000)


@statement("Section 4.2, Theorem 3", "power of m in the ratio, from the two bounds of the proof", "-2.5")
def ntk_ratio():
    difference = m * L**2 * d_y * sympy.sqrt(n / m)  # m L² ξ, with ξ of (5)
    ratio = sympy.lambdify((m, n, L, d_x, d_y), difference / sympy.sqrt(m**3 / (144 * d_x * d_y)))
    return power(lambda m: ratio(m, 100, 4, 200, 1), 1e6)


@statement("Section 4.2", "1/R by substitution of m = n² L d_y in Theorem 3", "n^(9/2) L^(1/2) d_x^(-1) d_y^(1/2)")
def inverse_ratio():
    ratio = sympy.sqrt(n) * d_x * (L * d_y) ** 2 / m ** sympy.Rational(5, 2)
    return monomial(1 / ratio.subs(m, n**2 * L * d_y), "n L d_x d_y")


@statement("Section 4.2", "power of n in 1/R at that width, with the norm of the gradient as it is", "4.5")
def inverse_ratio_corrected():
    return power(lambda n: 1 / bounds.ntk_ratio(n, n**2 * 8.0, 8, 100, form="rank1"), 1000.0)


@statement("Section 4.3", "E max(Wz, 0) - z > 0 on average over units, for z a normal variable after a ReLU", "holds")
def bias_shift():
    norm, mean = np.sqrt(1 / 2), 1 / np.sqrt(2 * np.pi)  # √E z², E z of z = max(g, 0)
    shift = bounds.relu_mean(norm, 1) - mean
    return "holds" if shift > 1e-12 else f"fails: {abs(shift):.2f}"


@statement("Section 4.4", "inference is 2 times faster, with r = √m/2 and m = 4096", "2")
def flops_inference():
    return float(bounds.flops_inference(4096, 10) / bounds.flops_inference(4096, 10, "grelu"))


@statement("Section 4.4, Remark 4", "share of open gates where Ψ ≈ WH with nonnegative factors", "0.5")
def nonnegative_gates():
    rng = np.random.default_rng(0)
    W, H, z = rng.random((64, 4)), rng.random((4, 64)), rng.random((64, 100))
    return float(np.mean(W @ H @ z > 0))


# Section 5 and its proofs, Sections 10.2 to 10.4


@statement("Lemma 2", "power of λ_max(FFᵀ) in the third term, by the degree of ‖FFᵀe‖²", "1.0")
def third_term():
    F, e = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0]]), np.array([1.0, -2.0])
    scales = np.sqrt([1.0, 2.0])  # FFᵀ and its eigenvalues grow by 2
    own, doubled = (np.sum(((s * F) @ (s * F).T @ e) ** 2) for s in scales)
    return float(np.log2(doubled / own))


@statement("Section 10.3, first display", "power of α in the bound on 3η²L²(nγβ²)² by (17), nγβ² <= α²/2", "2.0")
def squared_covariance():
    return power(lambda alpha: 3 * (alpha**2 / 2) ** 2, 1.3)


@statement("eq. (35)", "coefficient of η²/(β⁴L²) Σ‖Δ‖², (3η² + 1/a_i)/2 with a_i = β⁴L², η <= 1/(β²L)", "2")
def second_order():
    beta, layers = 1.7, 3
    return (3 * (1 / (beta**2 * layers)) ** 2 + 1 / (beta**4 * layers**2)) / 2 * beta**4 * layers**2


@statement("eq. (38), last step", "Σ‖e_i‖² in units of the loss (2)", "1.0")
def sum_of_errors():
    e = np.array([[1.0, 2.0], [-0.5, 3.0]])
    return float(np.sum(e**2) / (0.5 * np.sum(e**2)))


@statement("eq. (40), (b) to (c)", "C(L, s) (4√(1 + nγ))^s <= (2√2)^s at nγ = 1/2, the most that (17) allows", "holds")
def binomials():
    depth, s = np.meshgrid(np.arange(2, 21), np.arange(2, 21), indexing="ij")
    ok = stats.binom.logpmf(s, depth, 0.5) + depth * np.log(2) + s * np.log(4 * np.sqrt(1.5) / 2 / np.sqrt(2)) <= 0
    return holds(ok, L=depth, s=s)


@statement("end of 10.3", "numerator 128 = 2 · 8² of the last term, from (35) and (40)", "128")
def last_term():
    return 2.0 * (2 * np.sqrt(2)) ** 4


@statement("end of 10.3", "power of the last term's denominator, (40) being squared in (35)", "1.0")
def last_denominator():
    return -power(lambda denominator: (8 / denominator) ** 2, 0.7)


@statement("eq. (18), sixth term", "makes the last term of 10.3, as printed, at most ηα²L/4 of the loss", "holds")
def sixth_term():
    alpha2, beta2, loss0 = 1.0, 81.0**2, 7.0
    depth, theta = np.meshgrid(np.arange(1, 65.0), THETA, indexing="ij")
    eta = bounds.eta_lemma3(alpha2, beta2, 1.0, 50, depth, loss0, theta).eta
    root = 2 * np.sqrt(2 * depth / theta) * np.exp(theta / 2) * np.sqrt(beta2 * loss0)
    term = 128 * 50 * eta**2 * np.exp(2 * theta) / theta**2 * beta2 * loss0 / (1 - eta * root)
    return holds(term <= eta * alpha2 * depth / 4, L=depth, theta=theta)


@statement("eq. (43)", "largest ‖a - b‖²/(‖a‖² + ‖b‖²)", "1.0")
def square_of_difference():
    angle = np.linspace(0, 2 * np.pi, 1001)
    return float(np.max((np.cos(angle) - np.sin(angle)) ** 2))


@statement("eq. (43)", "power of m/d_x in the bound on ‖y‖², with |y| <= m/d_x of Assumption 2", "1.0")
def labels_squared():
    return power(lambda bound: bound**2, 100.0)


@statement("eq. (43)", "(3e^θ + 1)/2 <= 4 for θ < 1/2", "holds")
def initial_loss():
    return holds((3 * np.exp(THETA) + 1) / 2 <= 4, theta=THETA)


@statement("eqs. (44), (45)", "width at which √(ℓ₀d_xd_yL)/m = 1/√n, with ℓ₀ of (43)", "n^2 L d_y")
def width():
    return monomial(solved((4 * m * n / d_x) * d_x * d_y * L / m**2 * n, m), "n L d_x d_y")


@statement("eq. (5)", "τ <= 2β√(2ℓ₀)/(α²L) of 10.4 is within d_y √(n/m)/L up to a constant", "holds")
def variation():
    tau = sympy.sqrt(BETA2 * m * n / d_x) / (ALPHA2 * L)
    outputs = np.arange(1.0, 1001.0)
    ratio = sympy.lambdify((n, m, L, d_x, d_y), tau / (d_y * sympy.sqrt(n / m) / L))
    return holds(ratio(7.0, 300.0, 5.0, 20.0, outputs) <= 1 + 1e-12, d_y=outputs)


@statement("10.4, step size", "order of α²/(12β²β_xL), the first term of (18)", "m^(-1/2) d_x^(1/2) L^(-1)")
def order_of_first_term():
    return monomial(ALPHA2 / (12 * BETA2 * 27 * m / (4 * d_x) * L), "m d_x d_y L")


@statement("10.4, step size", "order of the last term of (18) at the width (45)", "n^(-4) L^(-1) d_x d_y^(-1)")
def order_of_last_term():
    term = ALPHA2 / (1024 * n * BETA2 * (4 * m * n / d_x))
    return monomial(term.subs(m, n**2 * L * d_y), "n L d_x d_y")


@statement("10.4, after (18)", "the step size that (18) allows, in units of 1/(β²L)", "1.0")
def chosen_step():
    alpha2, beta2 = bounds.alpha2(40000, 200), bounds.beta2(40000, 200)
    return float(bounds.eta_lemma3(alpha2, beta2, 1e-9, 100, 4, 1e-9, 0.25).eta * beta2 * 4)


# Section 6


@statement("Section 6.2", "inputs of SGEMM: columns of its file without the four run times", "18")
def sgemm_inputs():
    return float(len(SGEMM_INPUTS.split()))


@statement("Section 6.2, Fig. 3b", "n <= m, which Theorem 2 needs, for CIFAR-10, if of Table 2's widths", "holds")
def transform_width():
    return holds(WIDTHS >= 50000, m=WIDTHS)


# Sections 10.5 to 10.7


@statement("Section 10.5", "power of m in E‖∇_k y_p‖² over initializations", "3.0")
def gradient_norm():
    return power(lambda m: bounds.ntk_diagonal(m, 4, 200) / 4, 1000.0)


@statement("Section 10.5", "19√L Σ_s (19 L^(3/2) ξ)^s <= (19L)² ξ/(1 - 19 L^(3/2) ξ)", "holds")
def geometric_series():
    depth, share = np.meshgrid(np.arange(1, 65.0), np.linspace(1e-6, 0.99, 200), indexing="ij")  # share: 19 L^1.5 ξ
    series = 19 * np.sqrt(depth) * share * (1 - share**depth) / (1 - share)
    return holds(
        series <= (19 * depth) ** 2 * share / (19 * depth**1.5) / (1 - share) * (1 + 1e-12), L=depth, ratio=share
    )


@statement("Section 10.5", "exp(-m/(108L)) of the failure follows from Lemma 5 with ‖Z‖ <= 19√L, some θ < 1/2", "holds")
def failure_of_19():
    depth = np.arange(1, 11)
    able = THETA[bounds.lemma5_norm(1, THETA) <= 19]
    return holds(able.max() ** 2 / (16 * depth**2) >= 1 / (108 * depth), L=depth)


@statement("eq. (47)", "c in ‖B‖_F² <= c m, by Laurent and Massart at x = md_y/4 of (2/d_y)χ²", "5")
def laurent_massart():
    x = 0.25
    return 2 * (1 + 2 * np.sqrt(x) + 2 * x)


@statement("Section 10.6", "2R + R² < 3R for R < 1", "holds")
def corollary_4():
    R = np.linspace(0, 1, 1001)[1:-1]
    return holds(bounds.kernel_ratio(R, R, "exact") < bounds.kernel_ratio(R, R), R=R)


# Section 11


def _share50():
    """Lτ√(12L) e^(θ/2) θ^(-1/2) where (50) holds with equality."""
    return np.exp(-1.5 * THETA) / 27


@statement("Theorem 5", "e^-θ (1 - a/(1 - b)) >= 1/2, with a = 1/9 of (50) and b its sum's ratio", "holds")
def lower_constant():
    return holds(np.exp(-THETA) * (1 - (1 / 9) / (1 - _share50())) >= 1 / 2, theta=THETA)


@statement("Theorem 5", "e^(θ/2)/(1 - b) <= 3/2", "holds")
def upper_constant():
    return holds(np.exp(THETA / 2) / (1 - _share50()) <= 3 / 2, theta=THETA)


@statement("Theorem 5", "β_x/α_x from the proof's factors 3/2 √3 and 1/(2√3)", "81")
def ratio_of_eigenvalues():
    return (1.5 * np.sqrt(3)) ** 2 / (0.5 / np.sqrt(3)) ** 2


@statement("Theorem 5", "the stated exp(-θm/(4L)) follows from the proof's exp(-θ²m/(16L²))", "holds")
def failure_of_theorem_5():
    depth, theta = np.meshgrid(np.arange(1, 11), THETA, indexing="ij")
    return holds(theta**2 / (16 * depth**2) >= theta / (4 * depth), L=depth, theta=theta)


def _bound(k, width, tau, depth=20):
    """Product of the two bounds of Theorem 6 in eq. (16), C' = 1, next to no δ, at layer k."""
    forward = bounds.thm6_covariance(k - 1, width, depth, 1e-40, tau)
    backward = bounds.thm6_covariance(max(depth - k - 1, 0), width, depth, 1.0, tau)
    return forward * backward


@statement("eq. (52)", "power of m in γ, from the product of the theorem's two bounds, largest over k", "-0.5")
def gamma_width():
    return power(lambda m: max(_bound(k, m, 0.0) for k in range(1, 21)), 1e40)


@statement("eq. (52)", "power of τ in γ, from the same product", "2.0")
def gamma_variation():
    return power(lambda tau: max(_bound(k, 1e120, tau) for k in range(1, 21)), 1e-8)


@statement("Theorem 6", "mean cosine of Gx_i, Gx_j over (5/6)^k is bounded, orthogonal inputs, k to 200", "holds")
def cosine_decay():
    found = bounds.covariances(200, 0.0)
    return bounded([found[k] / (5 / 6) ** k for k in (50, 100, 200)])


@statement("Theorem 6", "the same of F_k over (5/6)^(L - k), L = 1000", "holds")
def backward_decay():
    factors = 2 * bounds.gate_overlap(bounds.gate_cosines(1000, 0.0))
    return bounded([np.prod(factors[-k - 2 :]) / (5 / 6) ** k for k in (50, 100, 200)])  # gates of layers k - 1 to L


@statement("Theorem 1, eqs. (17), (52)", "depth at which the mean cosine is 1/n, from n = 10^3 to 10^5", "log n")
def depth_needed():
    found = bounds.covariances(400, 0.0)
    reached = [int(np.argmax(found <= 1 / n)) for n in (1e3, 1e5)]
    growth = np.log(reached[1] / reached[0]) / np.log(100)
    return "log n" if reached[1] / reached[0] <= 5 / 3 + 0.1 else f"n^{growth:.2f}"


@statement("Theorem 6, proof", "|Z_2| <= tσ with probability 1 - 2 exp(-√m/2) and σ ~ m^(-1/2): power of m", "-0.5")
def gaussian_tail():
    return power(lambda m: np.sqrt(2) * np.sqrt(np.sqrt(m) / 2) * m**-0.5, 1e4)


@statement("Theorem 6, proof", "P(χ²_{m/2} > (1 + θ) m/2) <= exp(-θm/4), θ = 1/6", "holds")
def chi_square_tail():
    m = np.arange(10.0, 10001.0, 10.0)
    return holds(stats.chi2.logsf((1 + 1 / 6) * m / 2, m / 2) <= -m / 24, m=m)


@statement("Theorem 6, proof", "4 in 4(1 + θ)β m^(-1/2), the sum of (2(1 + θ)/3)^j at θ = 1/6", "4.0")
def sum_of_contractions():
    return 1 / (1 - 2 * (1 + 1 / 6) / 3)


@statement("Theorem 6, proof", "Σ_s x^s · 27/4 <= 8x for x <= 1/9", "holds")
def perturbation_series():
    x = np.linspace(1e-9, 1 / 9, 1000)
    return holds(27 / 4 * x / (1 - x) <= 8 * x, x=x)


@statement("Theorem 6, end of the proof", "cosine of G_0x_i, G_0x_j at δ = 0", "0.0")
def cosine_of_inputs():
    return float(bounds.covariances(0, 0.0)[0])


# Section 12


@statement("Lemma 4", "share of gates open for both inputs <= 1/3, for |cosine| <= 1/3", "holds")
def overlap():
    cosine = np.linspace(-1 / 3, 1 / 3, 1001)
    return holds(bounds.gate_overlap(cosine) <= 1 / 3, cosine=cosine)


@statement("Theorem 6 with Lemma 4", "the same in every layer, at δ = 0", "holds")
def overlap_in_layers():
    layers = np.arange(1, 21)
    return holds(bounds.gate_overlap(bounds.gate_cosines(20, 0.0)[layers]) <= 1 / 3, k=layers)


@statement("Lemma 4, proof", "the two bounds of the proof, 1/4 + 1/7 at θ = 0, add up to at most 1/3", "holds")
def overlap_sum():
    total = 1 / 4 + 1 / 7
    return "holds" if total <= 1 / 3 else f"fails: {total:.3f}"


@statement("Lemma 4, proof", "2q + 1/3.5 + 2√q <= 1/7 for δ <= 1/3, q = δ^(1/4) exp(-1/(2δ))", "holds")
def overlap_remainder():
    delta = np.linspace(1e-6, 1 / 3, 1000)
    q = delta**0.25 * np.exp(-1 / (2 * delta))
    return holds(2 * q + 1 / 3.5 + 2 * np.sqrt(q) <= 1 / 7, delta=delta)


@statement(
    "Lemma 4, proof",
    "the printed middle expression r exp(-r/2) <= exp(-1/(2δ)), r⁴ = (1 - δ²)/δ²; the tail itself satisfies the bound",
    "holds",
)
def overlap_tail():
    delta = np.linspace(0.01, 1 / 3, 1000)
    r = ((1 - delta**2) / delta**2) ** 0.25
    return holds(r * np.exp(-r / 2) <= np.exp(-1 / (2 * delta)), delta=delta)


@statement(
    "Lemma 4, proof", "Pr(|Ψ(x_i - P)| < |ΨP|), exactly (2/π) arcsin δ at θ = 0, <= 3δ^(1/4) exp(-1/(2δ))", "holds"
)
def overlap_probability():
    delta = np.linspace(0.01, 1 / 3, 1000)
    return holds(2 / np.pi * np.arcsin(delta) <= 3 * delta**0.25 * np.exp(-1 / (2 * delta)), delta=delta)


@statement("Lemma 5, proof", "constant in P(χ²_{m/2} > (1 + ε) m/2) <= exp(-ε²m/8), ε = θ/L = 1/4", "holds")
def chi_square_upper():
    m = np.array([100.0, 1000.0, 10000.0, 50000.0])
    return holds(stats.chi2.logsf(1.25 * m / 2, m / 2) <= -m / 128, m=m)


@statement("Lemma 5, proof", "P(χ²_{m/2} < (1 - ε) m/2) <= exp(-ε²m/8), ε = θ/L = 1/4", "holds")
def chi_square_lower():
    m = np.array([100.0, 1000.0, 10000.0, 50000.0])
    return holds(stats.chi2.logcdf(0.75 * m / 2, m / 2) <= -m / 128, m=m)


@statement("eq. (55)", "(1 - θ/L)^L >= e^(-2θ), (1 + θ/L)^L <= e^θ for θ < 1/2", "holds")
def products():
    depth, theta = np.meshgrid(np.arange(1, 1001), THETA, indexing="ij")
    logs = depth * np.log1p(-theta / depth), depth * np.log1p(theta / depth)
    return holds((logs[0] >= -2 * theta) & (logs[1] <= theta), L=depth, theta=theta)


@statement("Lemma 5, proof", "-θ²m/(8L²) + 3m/(rε) at r = 48L²/(θ²ε), in units of -θ²m/L²: 1/16", "0.0625")
def covering():
    theta, layers, eps = 0.3, 5, 1 / 3
    r = 48 * layers**2 / (theta**2 * eps)
    return (theta**2 / (8 * layers**2) - 3 / (r * eps)) * layers**2 / theta**2


@statement("eq. (58)", "√r √3 e^(θ/2), which this proof gives with its r, ε = 1/3: power of L", "0.5")
def lemma_5_depth():
    return power(lambda L: np.sqrt(48 * L**2 / (0.25 * (1 / 3))) * np.sqrt(3), 5.0)


@statement("Lemma 7", "√12/(1 - 1/9) <= 4", "holds")
def lemma_7():
    return holds(bounds.lemma5_norm(1, THETA) / (1 - 1 / 9) <= bounds.lemma5_norm(1, THETA, "lemma7"), theta=THETA)
