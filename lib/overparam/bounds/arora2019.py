"""Arora, Du, Hu, Li, Wang (2019): fine-grained analysis of two-layer ReLU nets, arXiv 1901.08584.

The net is f(x) = m^(-1/2) Σ_r a_r σ(w_rᵀx) with w_r(0) ~ N(0, κ²I), trained on Φ = ½‖y − u‖². H
stands for the Gram matrix H^∞ of eq. (3), λ₀ for its smallest eigenvalue. The degree p is one
number.
"""

import math

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

from ..errors import ParameterError
from ._arguments import AT_LEAST_0, AT_LEAST_1, POSITIVE, UP_TO_1, checker, float64

_checked = checker(
    {
        "n m": AT_LEAST_1,
        "kappa eps eta": POSITIVE,
        "k Phi0 proj2 res0 yHy B R": AT_LEAST_0,
        # The mean eigenvalue of H is its diagonal, 1/2, and that of a finite net's H at most 1.
        "delta lam0": UP_TO_1,
    }
)


def _inverse_form(y, H):
    """yᵀ H⁻¹ y for each column of y, and the number of rows n."""
    y, H = float64(y), float64(H)
    if y.ndim not in (1, 2) or y.shape[0] < 1 or H.shape != (y.shape[0], y.shape[0]):
        raise ParameterError(f"y must be (n,) or (n, k) and H (n, n), got {y.shape} and {H.shape}")
    try:
        factor, lower = cho_factor(H, lower=True)
        half = solve_triangular(factor, y, lower=lower)
    except ValueError as error:  # LinAlgError is one
        raise ParameterError(
            f"H must be finite and positive definite, y finite: {error}"
        ) from error
    return np.sum(half**2, axis=0), y.shape[0]


def complexity(y, H):
    """√(2 yᵀ H⁻¹ y / n), the complexity measure of the labels y.

    y: (n,), or (n, k) for k label vectors that share one Cholesky factor; H: (n, n), of which the
    lower triangle is read. Returns a float, or an array (k,). Raises ParameterError if H is not
    positive definite or the shapes disagree. Source: eq. (10).
    """
    yHy, n = _inverse_form(y, H)
    return np.sqrt(2 * yHy / n)


@_checked
def predicted_residual(lam, proj2, eta, k):
    """√(Σ_i (1 − ηλ_i)^(2k) (v_iᵀy)²), the predicted ‖y − u(k)‖₂.

    lam, proj2: (n,), the eigenvalues λ_i and the squared projections (v_iᵀy)²; k: a number of steps
    or an array of them, which gives the result its shape. Infinite where ηλ_i > 2 makes it
    overflow.
    Source: Theorem 4.1, eq. (8).
    """
    lam = float64(lam)
    if np.ndim(lam) != 1 or np.shape(lam) != np.shape(proj2):
        raise ParameterError(
            f"lam and proj2 must be (n,), got {np.shape(lam)} and {np.shape(proj2)}"
        )
    met = proj2 > 0  # 0 times an overflow would be NaN
    shrink, weight = (1 - eta * lam[met]) ** 2, proj2[met]
    with np.errstate(over="ignore"):
        # Step by step: all n·k powers at once would take gigabytes for the longest runs.
        squares = [weight @ shrink**step for step in np.ravel(k)]
    return np.sqrt(np.reshape(squares, np.shape(k)))[()]


@_checked
def thm31_width(n, lam0, kappa, delta, *, C=1.0):
    """C n⁶ / (λ₀⁴ κ² δ³), the width m from which GD converges linearly. Source: Theorem 3.1."""
    return C * n**6 / (lam0**4 * kappa**2 * delta**3)


@_checked
def thm31_eta(n, lam0, *, C=1.0):
    """C λ₀ / n², the largest step size. Source: Theorem 3.1."""
    return C * lam0 / n**2


@_checked
def thm31_envelope(Phi0, eta, lam0, k):
    """(1 − ηλ₀/2)^k Φ(0), an upper bound on Φ(k). Source: Theorem 3.1."""
    if np.any(eta * lam0 > 2):
        raise ParameterError(f"eta must be at most 2/lam0, got eta = {eta}, lam0 = {lam0}")
    return (1 - eta * lam0 / 2) ** k * Phi0


@_checked
def thm41_width(n, lam0, kappa, delta, eps, *, C=1.0):
    """C n⁷ / (λ₀⁴ κ² δ⁴ ε²), the width m from which eq. (8) holds up to ε. Source: Theorem 4.1."""
    return C * n**7 / (lam0**4 * kappa**2 * delta**4 * eps**2)


@_checked
def thm41_kappa(eps, delta, n, *, C=1.0):
    """C ε δ / √n, the largest scale κ at which eq. (8) holds up to ε. Source: Theorem 4.1."""
    return C * eps * delta / np.sqrt(n)


@_checked
def thm41_eps(n, m, kappa, lam0, delta, *, C1=1.0, C2=1.0):
    """C₁ √n κ/δ + C₂ n^(7/2) / (√m λ₀² κ δ²), the error of eq. (8).

    Source: Appendix C, Theorem 4.1.
    """
    return C1 * np.sqrt(n) * kappa / delta + C2 * n**3.5 / (np.sqrt(m) * lam0**2 * kappa * delta**2)


@_checked
def lemC1_R(n, m, lam0, res0):
    """4 √n res0 / (√m λ₀), a bound on ‖w_r(k) − w_r(0)‖₂; res0: ‖y − u(0)‖₂. Source: Lemma C.1."""
    return 4 * np.sqrt(n) * res0 / (np.sqrt(m) * lam0)


@_checked
def lem53_B(yHy, n, m, kappa, lam0, delta, *, C1=1.0, C2=1.0, C3=1.0):
    """√(yᵀH⁻¹y) plus the terms of eqs. (38), (35) and (36), an upper bound on ‖W(k) − W(0)‖_F.

    The terms: C₁ √(n² √log(n/δ) / (√m λ₀²)), C₂ n^(3/2) / √(m^(1/2) λ₀³ κ δ^(3/2)) and C₃
    (nκ/(λ₀δ) + n⁴/(√m λ₀³ κ δ²)). yHy: yᵀH⁻¹y. Source: Lemma 5.3, Appendix D.1.
    """
    kernel = C1 * np.sqrt(n**2 * np.sqrt(np.log(n / delta)) / (np.sqrt(m) * lam0**2))
    patterns = C2 * n**1.5 / np.sqrt(np.sqrt(m) * lam0**3 * kappa * delta**1.5)
    outputs = C3 * (n * kappa / (lam0 * delta) + n**4 / (np.sqrt(m) * lam0**3 * kappa * delta**2))
    return np.sqrt(yHy) + kernel + patterns + outputs


@_checked
def lem54_rademacher(B, R, m, n, kappa, delta, *, terms=False):
    """B/√(2n) (1 + (2 log(2/δ)/m)^(1/4)) + 2R²√m/κ + R √(2 log(2/δ)).

    It bounds the empirical Rademacher complexity of the nets with ‖w_r − w_r(0)‖₂ ≤ R and ‖W −
    W(0)‖_F ≤ B.
    terms: return the three terms as a tuple instead of their sum. Source: Lemma 5.4.
    """
    log_term = 2 * np.log(2 / delta)
    parts = (
        B / np.sqrt(2 * n) * (1 + (log_term / m) ** 0.25),
        2 * R**2 * np.sqrt(m) / kappa,
        R * np.sqrt(log_term),
    )
    return parts if terms else sum(parts)


@_checked
def lemC2_H(n, m, lam0, kappa, delta, *, C=1.0):
    """C n³ / (√m λ₀ κ δ^(3/2)), an upper bound on ‖H(k) − H(0)‖_F. Source: Lemma C.2."""
    return C * n**3 / (np.sqrt(m) * lam0 * kappa * delta**1.5)


@_checked
def lemC3_H0(n, m, delta):
    """n √(log(2n²/δ) / (2m)), a bound on ‖H(0) − H^∞‖_F, from the proof. Source: Lemma C.3."""
    return n * np.sqrt(np.log(2 * n**2 / delta) / (2 * m))


@_checked
def lemC3_rms(K, m):
    """(E‖H(0) − H^∞‖_F²)^(1/2) = (m⁻¹ Σ_ij K_ij² q_ij (1 − q_ij))^(1/2), q = (π − arccos K)/(2π).

    K: (n, n), the inner products of unit vectors; q_ij: the probability that a neuron is active on
    x_i and x_j. Ours: exact, in place of the bound of Lemma C.3.
    """
    K = float64(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not np.all(np.abs(K) <= 1 + 1e-6):
        raise ParameterError(
            f"K must hold (n, n) inner products of unit vectors, got shape {K.shape}"
        )
    both = (np.pi - np.arccos(np.clip(K, -1, 1))) / (2 * np.pi)
    return np.sqrt(np.sum(K**2 * both * (1 - both)) / m)


def _degree(p):
    if np.ndim(p) or (p != 1 and (p % 2 or p < 2)):
        raise ParameterError(f"p must be 1 or a positive even integer, got {p}")
    return int(p)


def thm61_bound(p, alpha, beta):
    """3 p |α| ‖β‖₂^p, an upper bound on √(yᵀH⁻¹y) for y_i = α(βᵀx_i)^p, with p = 1 or even.

    beta: (d,), or a number, the norm of β. Raises ParameterError for any other p. Source: Theorem
    6.1.
    """
    p, beta = _degree(p), np.atleast_1d(float64(beta))
    if beta.ndim > 1:
        raise ParameterError(f"beta must be (d,) or a number, got shape {beta.shape}")
    return 3 * p * np.abs(float64(alpha)) * np.linalg.norm(beta) ** p


def thm61_proof_const(p):
    """2 for p = 1, √(2π)(p − 1) for even p: the proof's, in place of 3p. Source: Appendix E."""
    p = _degree(p)
    return 2.0 if p == 1 else math.sqrt(2 * math.pi) * (p - 1)


def thm61_sharp_const(p):
    """2 for p = 1 and √(2π (2l−1) (2l−2)!!/(2l−3)!!) for p = 2l: 1/√c.

    c: the coefficient of K^p in eq. (3).
    Ours: the proof of Theorem 6.1, Appendix E, without its (2l−3)!!/(2l−2)!! ≥ 1/(2l−1).
    """
    p = _degree(p)
    if p == 1:
        return 2.0
    ratio = math.prod(2 * i / (2 * i - 1) for i in range(1, p // 2))  # (2l−2)!!/(2l−3)!!
    return math.sqrt(2 * math.pi * (p - 1) * ratio)


def cor62_bound(alphas, betas, ps):
    """3 Σ_j p_j |α_j| ‖β_j‖₂^(p_j), an upper bound on √(yᵀH⁻¹y) for y_i = Σ_j α_j (β_jᵀx_i)^(p_j).

    The M_g of Section 6 bounds yᵀH⁻¹y and is the square of this; Examples 6.2 and 6.3 print it
    unsquared.
    alphas, betas, ps: one entry for each j, those of betas vectors (d,) or their norms.
    Source: Corollary 6.2, eq. (13).
    """
    if not len(alphas) == len(betas) == len(ps):
        sizes = f"{len(alphas)}, {len(betas)}, {len(ps)}"
        raise ParameterError(f"alphas, betas and ps must be equally long, got {sizes}")
    return sum(
        thm61_bound(p, alpha, beta) for alpha, beta, p in zip(alphas, betas, ps, strict=True)
    )
