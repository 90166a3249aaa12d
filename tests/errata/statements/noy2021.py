"""Noy et al. 2021, arXiv 2101.04243: what of its arithmetic can be recomputed."""

import numpy as np
from numpy import arange, array, exp, linspace, log, log1p, sqrt
from scipy import special, stats

from overparam.bounds import noy2021 as bounds

from .statement import bounded, holds, order, power, solved

IMAGENET, LAYERS = 1281167, 1001  # examples of ImageNet; Section 1: layers of the net
ZOU_GU = 8, 12  # powers of n and L in the width of Zou and Gu, Table 1; of Theorem 1: 2 and 1
THETA = linspace(0.001, 0.5, 500, endpoint=False)  # θ in (0, 1/2)
# the columns before the times
SGEMM_INPUTS = "MWG NWG KWG MDIMC NDIMC MDIMA NDIMB KWI VWM VWN STRM STRN SA SB"
LARGE = array([100.0, 1000.0, 10000.0, 50000.0])


def _beta2(m, d_x, d_y=1.0):
    """Order of β² and of α² by Theorem 5."""
    return m**2 / (d_x * d_y)


def _width(n, L, d_y=1.0):
    """The width (45)."""
    return n**2 * L * d_y


def _parameters():
    width = sum(p * np.log10(x) for p, x in zip(ZOU_GU, (IMAGENET, LAYERS), strict=True))
    return float(np.floor(bounds.log10_parameters(width, LAYERS)))


def _nonnegative_gates():
    rng = np.random.default_rng(0)
    W, H, z = rng.random((64, 4)), rng.random((4, 64)), rng.random((64, 100))
    return float(np.mean(W @ H @ z > 0))


def _third_term():
    F, e = array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0]]), array([1.0, -2.0])
    own = np.sum((F @ F.T @ e) ** 2)
    doubled = np.sum((2 * F @ F.T @ e) ** 2)  # of FFᵀ
    return float(np.log2(doubled / own))


def _sixth_term(L, theta, alpha2=1.0, beta2=81.0**2, loss0=7.0):
    eta = bounds.eta_lemma3(alpha2, beta2, 1.0, 50, L, loss0, theta).eta
    root = 2 * sqrt(2 * L / theta) * exp(theta / 2) * sqrt(beta2 * loss0)
    term = 128 * 50 * eta**2 * exp(2 * theta) / theta**2 * beta2 * loss0 / (1 - eta * root)
    return term <= eta * alpha2 * L / 4


def _largest_distance():
    """The largest |a - b|^2 where |a|^2 + |b|^2 = 1."""
    angle = linspace(0, 2 * np.pi, 1001)
    return float(np.max((np.cos(angle) - np.sin(angle)) ** 2))


def _variation(d_y, n=7.0, m=300.0, L=5.0, d_x=20.0):
    tau = sqrt(_beta2(m, d_x, d_y) * m * n / d_x) / (_beta2(m, d_x, d_y) * L)
    return tau / (d_y * sqrt(n / m) / L) <= 1 + 1e-12


def _chosen_step():
    alpha2, beta2 = bounds.alpha2(40000, 200), bounds.beta2(40000, 200)
    return float(bounds.eta_lemma3(alpha2, beta2, 1e-9, 100, 4, 1e-9, 0.25).eta * beta2 * 4)


def _geometric_series(L, ratio):
    """ratio: 19 L^1.5 ξ."""
    series = 19 * sqrt(L) * ratio * (1 - ratio**L) / (1 - ratio)
    return series <= (19 * L) ** 2 * ratio / (19 * L**1.5) / (1 - ratio) * (1 + 1e-12)


def _failure_of_19(L):
    able = THETA[bounds.lemma5_norm(1, THETA) <= 19]
    return able.max() ** 2 / (16 * L**2) >= 1 / (108 * L)


def _share50(theta):
    """Lτ√(12L) e^(θ/2) θ^(-1/2) where (50) holds with equality."""
    return exp(-1.5 * theta) / 27


def _bound(k, width, tau, depth=20):
    """Product of the two bounds of Theorem 6 in eq. (16), C' = 1, next to no δ, at layer k."""
    forward = bounds.thm6_covariance(k - 1, width, depth, 1e-40, tau)
    return forward * bounds.thm6_covariance(max(depth - k - 1, 0), width, depth, 1.0, tau)


def _backward_decay(k, L=1000):
    factors = 2 * bounds.gate_overlap(bounds.gate_cosines(L, 0.0))  # gates of layers k - 1 to L
    return [np.prod(factors[-i - 2 :]) / (5 / 6) ** i for i in k]


def _depth_needed():
    found = bounds.covariances(400, 0.0)
    reached = [int(np.argmax(found <= 1 / n)) for n in (1e3, 1e5)]
    growth = log(reached[1] / reached[0]) / log(100)
    return "holds" if reached[1] / reached[0] <= 5 / 3 + 0.1 else f"fails: like n^{growth:.2f}"


def _overlap_remainder(delta):
    q = delta**0.25 * exp(-1 / (2 * delta))
    return 2 * q + 1 / 3.5 + 2 * sqrt(q) <= 1 / 7


def _overlap_tail(delta):
    r = ((1 - delta**2) / delta**2) ** 0.25
    return r * exp(-r / 2) <= exp(-1 / (2 * delta))


# fmt: off
ROWS = [
    # Sections 1 to 4
    ("Section 1", "decimal exponent of the parameters by Zou and Gu, ImageNet, 1001 layers",
     "172", _parameters),
    ("Table 1, Theorem 1", "the step size is d_x d_y/(m² L) at the width n² L d_y",
     "n^(-4) L^(-3) d_x d_y^(-1)",
     order(lambda n, L, d_x, d_y: d_x * d_y / (_width(n, L, d_y) ** 2 * L))),
    ("Section 7", "the width of Zou and Gu over that of Theorem 1",
     "n^6 L^11", order(lambda n, L: n ** ZOU_GU[0] * L ** ZOU_GU[1] / _width(n, L))),
    ("eq. (46)",
     r"$\ell_0$ in $c_T\log\frac{\ell_0}\varepsilon = c_T\log\frac{n^3L}{d_x\varepsilon}$, by "
     "(43) at the width (45)",
     "n^3 L d_x^(-1)", order(lambda n, L, d_x, d_y: _width(n, L, d_y) * n / d_x),
     "constant"),
    ("Section 4.1", "power of $n$ in the operations of the whole training, at fixed $m$",
     "0.0", power(lambda n: 6 * 1000**2 * 6 * n, 1000),
     "exponent"),
    ("Theorem 3, Corollary 4",
     r"power of $m$ in $\mathcal R$, from the two bounds of the proof, divided by the norm, not "
     "its square",
     "-2.5", power(lambda m: m * 4**2 * sqrt(100 / m) / sqrt(m**3 / (144 * 200)), 1e6),
     "false"),
    ("Section 4.2", "1/R by substitution of m = n² L d_y in Theorem 3",
     "n^(9/2) L^(1/2) d_x^(-1) d_y^(1/2)",
     order(lambda n, L, d_x, d_y: _width(n, L, d_y) ** 2.5 / (sqrt(n) * d_x * (L * d_y) ** 2))),
    ("Section 4.2",
     r"power of $n$ in $\mathcal R^{-1}$ at $m = n^2Ld_y$, with the norm of the gradient as it is",
     "4.5", power(lambda n: 1 / bounds.ntk_ratio(n, n**2 * 8.0, 8, 100, form="rank1"), 1000.0),
     "exponent"),
    ("Section 4.3",
     r"$E[\max(Wz, 0)] - z > 0$ on average over units, for $z$ a normal variable after a ReLU",
     # √E z² and E z of z = max(g, 0)
     "holds",
     holds(lambda shift: shift > 0,
           shift=[round(bounds.relu_mean(sqrt(1 / 2), 1) - 1 / sqrt(2 * np.pi), 9)]),
     "typo"),
    ("Section 4.4", "inference is 2 times faster, with r = √m/2 and m = 4096",
     "2",
     lambda: float(bounds.flops_inference(4096, 10) / bounds.flops_inference(4096, 10, "grelu"))),
    ("Remark 4",
     r"share of open gates where $\Psi \approx WH$ with nonnegative factors, $z \ge 0$",
     "0.5", _nonnegative_gates,
     "false"),
    # Section 5 and its proofs, Sections 10.2 to 10.4
    ("Lemma 2",
     r"power of $\lambda_{\max}(FF^\top)$ in the third term, by the degree of "
     r"$\lVert FF^\top e\rVert^2$",
     "1.0", _third_term,
     "exponent"),
    ("Section 10.3, first display",
     r"power of $\alpha$ in the bound on $3\eta^2L^2(n\gamma\beta^2)^2$ by (17), "
     r"$n\gamma\beta^2 \le \alpha^2/2$",
     "2.0", power(lambda alpha: 3 * (alpha**2 / 2) ** 2, 1.3),
     "typo"),
    ("eq. (35)", "coefficient of η²/(β⁴L²) Σ‖Δ‖², (3η² + 1/a_i)/2 with a_i = β⁴L², η <= 1/(β²L)",
     "2",
     lambda beta=1.7, L=3:
         (3 * (1 / (beta**2 * L)) ** 2 + 1 / (beta**4 * L**2)) / 2 * beta**4 * L**2),
    ("eq. (38)", r"last step: $\sum_i\lVert e_i\rVert^2$ in units of the loss (2)",
     "1.0", lambda e=1.7: e**2 / (e**2 / 2),
     "constant"),
    ("(40), (b) to (c)",
     r"$\binom Ls(4\sqrt{1+n\gamma})^s \le (2\sqrt2)^s$ at $n\gamma = \frac12$, the most that "
     "(17) allows",
     "holds",
     holds(lambda L, s: special.binom(L, s) * (4 * sqrt(1.5) / 2 / sqrt(2)) ** s <= 1,
           L=arange(2, 21), s=arange(2, 21)),
     "exponent"),
    ("end of 10.3", "numerator 128 = 2 · 8² of the last term, from (35) and (40)",
     "128", 2.0 * (2 * sqrt(2)) ** 4),
    ("end of 10.3", "power of the last term's denominator, (40) being squared in (35)",
     "1.0", power(lambda fraction: (8 * fraction) ** 2, 0.7),
     "typo"),
    ("eq. (18), sixth term", "makes the last term of 10.3, as printed, at most ηα²L/4 of the loss",
     "holds", holds(_sixth_term, L=arange(1, 65.0), theta=THETA)),
    ("Assumption 2, eq. (43)",
     r"largest $\lVert a-b\rVert^2/(\lVert a\rVert^2 + \lVert b\rVert^2)$",
     "1.0", _largest_distance,
     "constant"),
    ("Assumption 2, eq. (43)",
     r"power of $\frac m{d_x}$ in the bound on $\lVert y_i\rVert^2$, with "
     r"$\lvert y_i\rvert \le \frac m{d_x}$",
     "1.0", power(lambda bound: bound**2, 100.0),
     "exponent"),
    ("eq. (43)", "(3e^θ + 1)/2 <= 4 for θ < 1/2",
     "holds", holds(lambda theta: (3 * exp(theta) + 1) / 2 <= 4, theta=THETA)),
    ("eqs. (44), (45)", "width at which √(ℓ₀d_xd_yL)/m = 1/√n, with ℓ₀ of (43)",
     "n^2 L d_y",
     order(lambda n, L, d_x, d_y: solved(lambda m: (4 * m * n / d_x) * d_x * d_y * L / m**2 * n))),
    ("eq. (5)", "τ <= 2β√(2ℓ₀)/(α²L) of 10.4 is within d_y √(n/m)/L up to a constant",
     "holds", holds(_variation, d_y=arange(1.0, 1001.0))),
    ("Section 10.4", r"order of $\alpha^2/(12\beta^2\beta_xL)$, the first term of (18)",
     "m^(-1/2) d_x^(1/2) L^(-1)", order(lambda m, d_x, L: 1 / (12 * 27 * m / (4 * d_x) * L)),
     "exponent"),
    ("10.4, step size", "order of the last term of (18) at the width (45)",
     "n^(-4) L^(-1) d_x d_y^(-1)",
     order(lambda n, L, d_x, d_y: 1 / (1024 * n * (4 * _width(n, L, d_y) * n / d_x)))),
    ("Section 10.4, after (18)", r"the step size that (18) allows, in units of $1/(\beta^2L)$",
     "1.0", _chosen_step,
     "constant"),
    # Section 6
    ("Section 6.2, SGEMM", "inputs: columns of its file without the four run times",
     "18", float(len(SGEMM_INPUTS.split())),
     "constant"),
    ("Section 6.2, Fig. 3b",
     r"$n \le m$, which Theorem 2 needs, for 50,000 images of CIFAR-10, if of Table 2's widths",
     "holds", holds(lambda m: m >= 50000, m=[15000, 10000]),
     "gap"),
    # Sections 10.5 to 10.7
    ("Section 10.5", r"power of $m$ in $E\lVert\nabla_ky_p\rVert_F^2$ over initializations",
     "3.0", power(lambda m: bounds.ntk_diagonal(m, 4, 200) / 4, 1000.0),
     "exponent"),
    ("Section 10.5", "19√L Σ_s (19 L^(3/2) ξ)^s <= (19L)² ξ/(1 - 19 L^(3/2) ξ)",
     "holds", holds(_geometric_series, L=arange(1, 65.0), ratio=linspace(1e-6, 0.99, 200))),
    ("Section 10.5",
     r"$e^{-m/(108L)}$ of the failure follows from Lemma 5 with $\lVert Z\rVert \le 19\sqrt L$, "
     r"some $\theta < \frac12$",
     "holds", holds(_failure_of_19, L=arange(1, 11)),
     "exponent"),
    ("eq. (47)", "c in ‖B‖_F² <= c m, by Laurent and Massart at x = md_y/4 of (2/d_y)χ²",
     "5", lambda x=0.25: 2 * (1 + 2 * sqrt(x) + 2 * x)),
    ("Section 10.6", "2R + R² < 3R for R < 1",
     "holds",
     holds(lambda R: bounds.kernel_ratio(R, R, "exact") < bounds.kernel_ratio(R, R),
           R=linspace(0, 1, 1001)[1:-1])),
    # Section 11
    ("Theorem 5", "e^-θ (1 - a/(1 - b)) >= 1/2, with a = 1/9 of (50) and b its sum's ratio",
     "holds",
     holds(lambda theta: exp(-theta) * (1 - (1 / 9) / (1 - _share50(theta))) >= 1 / 2,
           theta=THETA)),
    ("Theorem 5", "e^(θ/2)/(1 - b) <= 3/2",
     "holds", holds(lambda theta: exp(theta / 2) / (1 - _share50(theta)) <= 3 / 2, theta=THETA)),
    ("Theorem 5", "β_x/α_x from the proof's factors 3/2 √3 and 1/(2√3)",
     "81", (1.5 * sqrt(3)) ** 2 / (0.5 / sqrt(3)) ** 2),
    ("Theorem 5",
     r"the stated $e^{-\theta m/(4L)}$ follows from the proof's $e^{-\theta^2m/(16L^2)}$",
     "holds",
     holds(lambda L, theta: theta**2 / (16 * L**2) >= theta / (4 * L),
           L=arange(1, 11), theta=THETA),
     "exponent"),
    ("(52)",
     r"power of $m$ in $\gamma$, from the product of Theorem 6's two bounds, largest over $k$",
     "-0.5", power(lambda m: max(_bound(k, m, 0.0) for k in range(1, 21)), 1e40),
     "gap"),
    ("(52)", r"power of $\tau$ in $\gamma$, from the same product",
     "2.0", power(lambda tau: max(_bound(k, 1e120, tau) for k in range(1, 21)), 1e-8),
     "gap"),
    ("Theorem 6",
     "mean cosine of $Gx_i$, $Gx_j$ over $(5/6)^k$ is bounded, orthogonal inputs, $k$ to 200",
     "holds",
     bounded(lambda k: bounds.covariances(200, 0.0)[k] / (5 / 6) ** k, array([50, 100, 200])),
     "false"),
    ("Theorem 6, part on $F$",
     "mean cosine of $F_k^i$, $F_k^j$ over $(5/6)^{L-k}$ is bounded, $L = 1000$",
     "holds", bounded(_backward_decay, (50, 100, 200)),
     "false"),
    ("eqs. (17), (52), Theorem 1",
     r"the depth at which the mean cosine is $\frac1n$ grows like $\log n$, $n = 10^3$ to $10^5$",
     "holds", _depth_needed,
     "gap"),
    ("Theorem 6, proof",
     r"$\lvert Z_2\rvert \le t\sigma$ with probability $1 - 2e^{-\sqrt m/2}$ and "
     r"$\sigma \sim m^{-1/2}$: power of $m$",
     "-0.5", power(lambda m: sqrt(2) * sqrt(sqrt(m) / 2) * m**-0.5, 1e4),
     "exponent"),
    ("Theorem 6, proof",
     r"$\Pr(\chi^2_{m/2} > (1+\theta)\frac m2) \le e^{-\theta m/4}$, $\theta = \frac16$",
     "holds",
     holds(lambda m: stats.chi2.logsf((1 + 1 / 6) * m / 2, m / 2) <= -m / 24,
           m=arange(10.0, 10001.0, 10.0)),
     "constant"),
    ("Theorem 6, proof",
     r"4 in $4(1+\theta)\beta/m^{1/2}$, the sum of $(\frac23(1+\theta))^j$ at $\theta = \frac16$",
     "4.0", 1 / (1 - 2 * (1 + 1 / 6) / 3),
     "constant"),
    ("Theorem 6, proof", "Σ_s x^s · 27/4 <= 8x for x <= 1/9",
     "holds", holds(lambda x: 27 / 4 * x / (1 - x) <= 8 * x, x=linspace(1e-9, 1 / 9, 1000))),
    ("Theorem 6, end of the proof", r"cosine of $G_0x_i$, $G_0x_j$ at $\delta = 0$",
     "0.0", lambda: float(bounds.covariances(0, 0.0)[0]),
     "false"),
    # Section 12
    ("Lemma 4", "share of gates open for both inputs <= 1/3, for |cosine| <= 1/3",
     "holds",
     holds(lambda cosine: bounds.gate_overlap(cosine) <= 1 / 3,
           cosine=linspace(-1 / 3, 1 / 3, 1001))),
    ("Theorem 6, proof",
     r"Lemma 4 in every layer: at most $\frac13$ of the gates are open for both of two inputs, at "
     r"$\delta = 0$",
     "holds",
     holds(lambda k: bounds.gate_overlap(bounds.gate_cosines(20, 0.0)[k]) <= 1 / 3,
           k=arange(1, 21)),
     "gap"),
    ("Lemma 4, proof",
     r"the two bounds of the proof, $\frac14+\frac17$ at $\theta = 0$, add up to at most $\frac13$",
     "holds", holds(lambda total: total <= 1 / 3, total=[1 / 4 + 1 / 7]),
     "constant"),
    ("Lemma 4, proof",
     r"$2q + \frac1{3.5} + 2\sqrt q \le \frac17$ for $\delta \le \frac13$, "
     r"$q = \delta^{1/4}e^{-1/(2\delta)}$",
     "holds", holds(_overlap_remainder, delta=linspace(1e-6, 1 / 3, 1000)),
     "constant"),
    ("Lemma 4, proof",
     r"the printed middle expression $re^{-r/2} \le e^{-1/(2\delta)}$, "
     r"$r^4 = (1-\delta^2)/\delta^2$; the tail itself satisfies the bound",
     "holds", holds(_overlap_tail, delta=linspace(0.01, 1 / 3, 1000)),
     "constant"),
    ("Lemma 4, proof",
     r"$\Pr(\lvert\Psi(x_i-P)\rvert < \lvert\Psi P\rvert)$, exactly $\frac2\pi\arcsin\delta$ at "
     r"$\theta = 0$, is at most $3\delta^{1/4}e^{-1/(2\delta)}$",
     "holds",
     holds(lambda delta: 2 / np.pi * np.arcsin(delta) <= 3 * delta**0.25 * exp(-1 / (2 * delta)),
           delta=linspace(0.01, 1 / 3, 1000)),
     "constant"),
    ("Lemma 5, proof",
     r"constant in $\Pr(\chi^2_{m/2} > (1+\varepsilon)\frac m2) \le e^{-\varepsilon^2m/8}$, "
     r"$\varepsilon = \theta/L = \frac14$",
     "holds", holds(lambda m: stats.chi2.logsf(1.25 * m / 2, m / 2) <= -m / 128, m=LARGE),
     "constant"),
    ("Lemma 5, proof", "P(χ²_{m/2} < (1 - ε) m/2) <= exp(-ε²m/8), ε = θ/L = 1/4",
     "holds", holds(lambda m: stats.chi2.logcdf(0.75 * m / 2, m / 2) <= -m / 128, m=LARGE)),
    ("eq. (55)", "(1 - θ/L)^L >= e^(-2θ), (1 + θ/L)^L <= e^θ for θ < 1/2",
     "holds",
     holds(lambda L, theta:
               (L * log1p(-theta / L) >= -2 * theta) & (L * log1p(theta / L) <= theta),
           L=arange(1, 1001), theta=THETA)),
    ("Lemma 5, proof", "-θ²m/(8L²) + 3m/(rε) at r = 48L²/(θ²ε), in units of -θ²m/L²: 1/16",
     "0.0625",
     lambda theta=0.3, L=5: (theta**2 / (8 * L**2) - 3 * theta**2 / (48 * L**2)) * L**2 / theta**2),
    ("(58)",
     r"$\sqrt r\sqrt3\,e^{\theta/2}$, which this proof gives with its $r$, "
     r"$\varepsilon = \frac13$: power of $L$",
     "0.5", power(lambda L: sqrt(48 * L**2 / (0.25 * (1 / 3))) * sqrt(3), 5.0),
     "exponent"),
    ("Lemma 7", "√12/(1 - 1/9) <= 4",
     "holds",
     holds(lambda theta:
               bounds.lemma5_norm(1, theta) / (1 - 1 / 9) <= bounds.lemma5_norm(1, theta, "lemma7"),
           theta=THETA)),
]
