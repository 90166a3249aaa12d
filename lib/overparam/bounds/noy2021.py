"""Noy, Xu, Aflalo, Zelnik-Manor, Jin (2021): GReLU nets, whose gates are fixed at random.

arXiv 2101.04243.
n unit inputs in R^dx, outputs in R^dy, L trained layers of width m, step size η, loss ℓ = ½Σ‖ŷ −
y‖², and τ, the largest spectral norm by which a layer moves. `log10=True` gives the decimal
logarithm, where the value itself would overflow.

Theorem 1 has `width_noy2021`, `step_noy2021` and `iters_noy2021`, and rests on `thm6_covariance`
with `gamma_needed`, the largest covariance that condition (17) allows. Theorem 3 has `ntk_ratio`,
Theorem 5 `thm5_width`, `thm5_log_failure`, `alpha2` and `beta2`, Lemma 3 `contraction` and
`eta_lemma3`.
"""

from typing import Any, NamedTuple

import numpy as np

from ..errors import ParameterError
from ._arguments import AT_LEAST_0, AT_LEAST_1, POSITIVE, UP_TO_1, checker

_checked = checker(
    {
        "n L m dx dy": AT_LEAST_1,
        "lam0 eta alpha2 beta2 beta_x loss0 c": POSITIVE,
        "k tau znorm r1 r2 log10_m": AT_LEAST_0,
        "p eps delta": UP_TO_1,
        "theta": (lambda v: (v > 0) & (v <= 0.5), "in (0, 1/2]"),
        "cosine": (lambda v: np.abs(v) <= 1, "in [-1, 1]"),
    }
)


def _chosen(form, *forms):
    if form not in forms:
        raise ParameterError(f"form must be one of {', '.join(forms)}, not {form!r}")
    return form


def _power(log10, c, **powers):
    """c Π x^p of pairs (x, p), or its decimal logarithm, formed from logarithms."""
    value = np.log10(c) + sum(p * np.log10(x) for x, p in powers.values())
    return value if log10 else 10.0**value


@_checked
def width_zou2018(n, L, *, c=1, log10=False):
    """c n²⁶ L³⁸. Source: Table 1, Zou et al."""
    return _power(log10, c, n=(n, 26), L=(L, 38))


@_checked
def width_allenzhu2019(n, L, *, c=1, log10=False):
    """c n²⁴ L¹². Source: Table 1, Allen-Zhu et al."""
    return _power(log10, c, n=(n, 24), L=(L, 12))


@_checked
def width_zou2019(n, L, *, c=1, log10=False):
    """c n⁸ L¹². Source: Table 1, Zou and Gu."""
    return _power(log10, c, n=(n, 8), L=(L, 12))


@_checked
def width_noy2021(n, L, dy=1, *, c=1, log10=False):
    """c n² L dy, up to logarithms. Source: Theorem 1, eq. (45)."""
    return _power(log10, c, n=(n, 2), L=(L, 1), dy=(dy, 1))


@_checked
def iters_zou2018(n, L, *, c=1):
    """c n⁸ L⁹. Source: Table 1, Zou et al."""
    return _power(False, c, n=(n, 8), L=(L, 9))


@_checked
def iters_allenzhu2019(n, L, eps, *, c=1):
    """c n⁶ L² log(1/ε). Source: Table 1, Allen-Zhu et al."""
    return _power(False, c, n=(n, 6), L=(L, 2)) * np.log(1 / eps)


@_checked
def iters_zou2019(n, L, eps, *, c=1):
    """c n² L² log(1/ε). Source: Table 1, Zou and Gu."""
    return c * n**2 * L**2 * np.log(1 / eps)


@_checked(eps=POSITIVE)
def iters_noy2021(n, L, dx, eps, *, c=1):
    """c log(n³ L/(dx ε)). Source: Theorem 1."""
    return c * np.log(n**3 * L / (dx * eps))


@_checked
def step_zou2018(n, L, *, c=1, log10=False):
    """c/(n²⁹ L⁴⁷). Source: Table 1, Zou et al."""
    return _power(log10, c, n=(n, -29), L=(L, -47))


@_checked(m=(lambda v: v > 1, "above 1"))
def step_allenzhu2019(n, L, m, *, c=1, log10=False):
    """c/(n²⁸ log⁵(m) L¹⁴). Source: Table 1, Allen-Zhu et al."""
    return _power(log10, c, n=(n, -28), L=(L, -14), m=(np.log(m), -5))


@_checked
def step_zou2019(n, L, *, c=1, log10=False):
    """c/(n⁸ L¹⁴). Source: Table 1, Zou and Gu."""
    return _power(log10, c, n=(n, -8), L=(L, -14))


@_checked
def step_noy2021(n, L, dx, dy=1, *, c=1, log10=False):
    """c dx/(n⁴ L³ dy). Source: Theorem 1."""
    return _power(log10, c, dx=(dx, 1), n=(n, -4), L=(L, -3), dy=(dy, -1))


@_checked
def step_at_width(m, L, dx, dy=1, *, c=1):
    """c dx dy/(m² L), which is `step_noy2021` at m = n² L dy. Source: Section 10.4."""
    return c * dx * dy / (m**2 * L)


@_checked
def log10_parameters(log10_m, L):
    """log₁₀(m² L), of the number of trained parameters. Source: Section 4.1."""
    return 2 * log10_m + np.log10(L)


@_checked
def ntk_diagonal(m, L, dx, dy=1):
    """L m²/(dx dy), the mean of ‖∇y_p(x)‖_F² over initializations. From Section 2.1; ours."""
    return L * m**2 / (dx * dy)


@_checked
def alpha_x(m, dx):
    """m/(12 dx), the lower bound on the eigenvalues of GᵀG; with dy of those of FFᵀ.

    Source: Theorem 5.
    """
    return m / (12 * dx)


@_checked
def beta_x(m, dx):
    """27m/(4 dx), the upper bound on the eigenvalues of GᵀG; with dy of those of FFᵀ.

    Source: Theorem 5.
    """
    return 27 * m / (4 * dx)


@_checked
def alpha2(m, dx, dy=1):
    """α² = α_x α_y = m²/(144 dx dy). Source: eq. (17), Theorem 5."""
    return alpha_x(m, dx) * alpha_x(m, dy)


@_checked
def beta2(m, dx, dy=1):
    """β² = β_x β_y = 729m²/(16 dx dy), 81² times α². Source: eq. (17), Theorem 5."""
    return beta_x(m, dx) * beta_x(m, dy)


@_checked
def contraction(eta, alpha2, L):
    """1 − η α² L/2, by which a step at least multiplies the loss. Source: Lemma 3, eq. (19)."""
    return 1 - eta * alpha2 * L / 2


class StepTerms(NamedTuple):
    """The six terms of eq. (18), of which η is the smallest, in their order."""

    self_quadratic: Any
    cross_quadratic: Any
    young: Any
    gradient: Any
    series: Any
    higher_order: Any

    @property
    def eta(self):
        """Their minimum, elementwise."""
        return np.minimum.reduce(np.broadcast_arrays(*self))


@_checked
def eta_lemma3(alpha2, beta2, beta_x, n, L, loss0, theta, form="printed"):
    """The smallest of six terms in α, β, β_x, L, θ, n and ℓ₀: the step size of Lemma 3.

    min(α²/(12β²β_x L), 1/(3L), α²/(4β⁴L), 1/(β²L), √θ/(4√(2L) e^(θ/2) β√ℓ₀), α²θ²/(1024 n e^(2θ) β²
    ℓ₀)).
    Returns the terms, a `StepTerms`, whose `eta` is the minimum. corrected: the first term is
    α²/(12β⁴L), as it follows from λ²_max(FFᵀ), which the statement of Lemma 2 gives without its
    square.
    Source: Lemma 3, eq. (18).
    """
    first = beta2 * beta_x if _chosen(form, "printed", "corrected") == "printed" else beta2**2
    return StepTerms(
        alpha2 / (12 * first * L),
        1 / (3 * L),
        alpha2 / (4 * beta2**2 * L),
        1 / (beta2 * L),
        np.sqrt(theta) / (4 * np.sqrt(2 * L) * np.exp(theta / 2) * np.sqrt(beta2 * loss0)),
        alpha2 * theta**2 / (1024 * n * np.exp(2 * theta) * beta2 * loss0),
    )


def c_T(form="printed"):
    """2·81², which takes η = 1/(β²L). Source: eq. (46).

    eq18: 8·81⁴, from the third term of eq. (18), α²/(4β⁴L), which is smaller; corrected: 24·81⁴,
    from its first term as `eta_lemma3` corrects it.
    """
    return {"printed": 2 * 81**2, "eq18": 8 * 81**4, "corrected": 24 * 81**4}[
        _chosen(form, "printed", "eq18", "corrected")
    ]


@_checked
def loss0_bound(n, m, dx, form="printed", *, theta=0.5):
    """4mn/dx, a bound on the initial loss. Source: eq. (43).

    corrected: n (3e^θ m/dx + (m/dx)²), with ‖a − b‖² ≤ 2‖a‖² + 2‖b‖² and ‖y‖ ≤ m/dx, as Assumption
    2 has it.
    """
    if _chosen(form, "printed", "corrected") == "printed":
        return 4 * m * n / dx
    return n * (3 * np.exp(theta) * m / dx + (m / dx) ** 2)


@_checked
def gamma_needed(n, *, alpha2=1.0, beta2=81.0**2):
    """α²/(2β² n), the largest γ that eq. (17) allows.

    Default: by the constants of Theorem 5, 1/(2·81² n).
    """
    return alpha2 / (2 * beta2 * n)


@_checked
def tau_condition50(L, theta):
    """√θ/(27√12 L^(3/2) e^(2θ)), the largest τ that eq. (50) allows; it is largest at θ = 1/4."""
    return np.sqrt(theta) / (27 * np.sqrt(12) * L**1.5 * np.exp(2 * theta))


@_checked
def ntk_ratio(n, m, L, dx, dy=1, form="printed", *, c=1):
    """c √n dx (L dy)² m^(−5/2), up to logarithms. Source: Theorem 3.

    The proof divides √(mn) dy L², a bound on a norm, by m³/(144 dx dy), one on a squared norm.
    sqrt: by its root, which gives c √(n dx) dy^(3/2) L²/m; rank1: by m/√(dx dy) instead, since the
    gradient of one output has rank one, so that the trace has one eigenvalue where the proof counts
    m: c √(n dx) dy^(3/2) L²/√m.
    """
    if _chosen(form, "printed", "sqrt", "rank1") == "printed":
        return c * np.sqrt(n) * dx * (L * dy) ** 2 * m**-2.5
    return c * np.sqrt(n * dx) * dy**1.5 * L**2 * m ** (-1.0 if form == "sqrt" else -0.5)


@_checked
def kernel_ratio(r1, r2, form="printed"):
    """3 max(R₁, R₂), a bound on |ΔK_ij|/√(K_ii K_jj); exact: R₁ + R₂ + R₁R₂. Source: eq. (8)."""
    if _chosen(form, "printed", "exact") == "printed":
        return 3 * np.maximum(r1, r2)
    return r1 + r2 + r1 * r2


@_checked
def thm5_log_failure(m, L, dx, dy, theta):
    """log(3L²√m) − θm/(4L) + 6√m + 3 max(dx, dy), of the probability to fail. Source: Theorem 5."""
    return (
        np.log(3 * L**2 * np.sqrt(m))
        - theta * m / (4 * L)
        + 6 * np.sqrt(m)
        + 3 * np.maximum(dx, dy)
    )


@_checked
def thm5_width(L, dx, dy, theta):
    """The smallest whole m from which on Theorem 5 has a positive probability to hold. Ours."""
    low = (12 * L / theta) ** 2  # there the exponent is largest
    high = 4 * low + 1000 * L / theta * (np.maximum(dx, dy) + np.log(L) + 10)
    for _ in range(200):
        middle = (low + high) / 2
        fails = thm5_log_failure(middle, L, dx, dy, theta) >= 0
        low, high = np.where(fails, middle, low), np.where(fails, high, middle)
    return np.floor(high) + 1


@_checked
def lemma5_norm(L, theta, form="printed"):
    """√(12L/θ) e^(θ/2), a bound on ‖Z_{ka,kb}‖₂ at the start; lemma7: 4 for √12.

    Source: eq. (58).
    """
    factor = np.sqrt(12) if _chosen(form, "printed", "lemma7") == "printed" else 4
    return factor * np.sqrt(L / theta) * np.exp(theta / 2)


@_checked
def kappa1(cosine):
    """(√(1 − r²) + r(π − arccos r))/π, the cosine of [Ψu]⁺ and [Ψv]⁺ for wide Gaussian Ψ.

    r: cos(u, v).
    """
    return (np.sqrt(1 - cosine**2) + cosine * (np.pi - np.arccos(cosine))) / np.pi


@_checked
def gate_overlap(cosine):
    """1/2 − arccos(r)/(2π), the share of gates that are open at both of two inputs of cosine r."""
    return 0.5 - np.arccos(cosine) / (2 * np.pi)


@_checked(delta=(lambda v: np.abs(v) <= 1, "in [-1, 1]"))
def gate_cosines(depth, delta):
    """r_0 = δ, r_{k+1} = κ₁(r_k), (depth + 1,): the gates of layer k are signs at cosine r_k.

    Ours.
    """
    found = [np.float64(delta)]
    for _ in range(depth):
        found.append(np.clip(kappa1(found[-1]), -1, 1))
    return np.array(found)


def covariances(depth, delta):
    """κ₁(δ) Π_{l=1..k} (1 − arccos(r_l)/π), k = 0..depth.

    The mean cosine of G_k^i x_i and G_k^j x_j. Ours.
    For inputs of cosine δ and a wide net at initialization, whose W_k are independent of the gates;
    with r_l of `gate_cosines`. It falls as k^(−3), where Theorem 6 has δ(5/6)^k.
    """
    r = gate_cosines(depth + 1, delta)
    return r[1] * np.cumprod(np.concatenate([[1.0], 2 * gate_overlap(r[1 : depth + 1])]))


@_checked
def thm6_covariance(k, m, L, delta, tau, form="printed", *, c=1):
    """c (m^(−1/4) + δ(5/6)^k + L^(3/2)τ), a bound on |⟨G_k^j x_j, G_k^i x_i⟩|/β_x.

    Source: Theorem 6.
    proof: c (m^(−1/2) + δ(7/9)^k + L^(3/2)τ), as the proof has it: 2(1 + θ)/3 at its θ = 1/6 is
    7/9.
    """
    power, base = (
        (-0.25, 5 / 6) if _chosen(form, "printed", "proof") == "printed" else (-0.5, 7 / 9)
    )
    return c * (m**power + delta * base**k + L**1.5 * tau)


@_checked
def relu_mean(znorm, m):
    """‖z‖/√(πm), the mean of a unit of [W z]⁺ over W, in place of Remark 3's E[W z]⁺ − z. Ours."""
    return znorm / np.sqrt(np.pi * m)


@_checked
def flops_inference(m, L, form="relu", *, rank=None):
    """2m²L, the operations for one input; grelu: 2(m²/2 + 2rm)L, r = √m/2 by default.

    Source: Section 4.4.
    """
    if _chosen(form, "relu", "grelu") == "relu":
        return 2 * m**2 * L
    return 2 * (m**2 / 2 + 2 * (np.sqrt(m) / 2 if rank is None else rank) * m) * L
