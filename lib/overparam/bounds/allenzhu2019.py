"""Allen-Zhu, Li, Song (2019): convergence of deep over-parameterized ReLU nets.

arXiv 1811.03962, version 5.
The net has h₀ = φ(Ax), h_l = φ(W_l h_{l−1}) for l = 1..L and y = Bh_L with φ = max(0, ·), entries
N(0, 2/m) in A and W_l, N(0, 1/d) in B: m is the width, d the dimension of y. W_1..W_L are trained
on F = Σ_i F_i, F_i = ½‖y_i − y*_i‖², on n unit inputs with ‖x_i − x_j‖ ≥ δ. ω bounds the spectral
norm of every layer's change, w is that of the step W′, s counts nonzero entries, b is the batch
size. The corrected forms are what the paper's own proofs give.
"""

import numpy as np
from scipy.special import digamma, erf, lambertw, ndtri, polygamma
from scipy.stats import binom

from ..errors import ParameterError
from ._arguments import AT_LEAST_0, AT_LEAST_1, POSITIVE, UP_TO_1, checker, float64

_checked = checker(
    {
        "m": (lambda v: v >= 2, "at least 2"),
        "n L d b k q positions": AT_LEAST_1,
        "omega w s F tau wnorm h0sq": AT_LEAST_0,
        "l": (lambda v: v >= -1, "at least -1"),
        "delta": (lambda v: (v > 0) & (v <= 2), "in (0, 2]"),
        "eta sigma D t": POSITIVE,
        "eps kappa": UP_TO_1,
        "alpha": (np.isfinite, "a real number"),
    }
)


def _is_corrected(form):
    if form not in ("printed", "corrected"):
        raise ParameterError(f"form must be printed or corrected, got {form!r}")
    return form == "corrected"


@_checked
def sparse_level(m, L, *, power=1, c=1.0):
    """c m/(L^power log m), the largest s. Source: Lemma 7.3 (power = 1), Lemmas 8.6 and 8.7 (3)."""
    return c * m / (L**power * np.log(m))


@_checked
def sparse_bilinear(s, m, *, C=1.0):
    """C √(s log m/m), a bound on |uᵀW_b D_{b−1} ⋯ W_a v| for s-sparse unit u, v.

    Source: Lemma 7.3d.
    """
    return C * np.sqrt(s * np.log(m) / m)


@_checked
def separation_width(n, L, delta, *, C=1.0):
    """C L log(nL)/δ⁶, the width from which Lemma 7.5 holds. Source: Lemma 7.5."""
    return C * L * np.log(n * L) / delta**6


@_checked
def claim76_lower(delta):
    """δ²(1 − δ), a lower bound on `claim76_expectation` for δ ≤ 1/6. Source: Claim 7.6."""
    return delta**2 * (1 - delta)


@_checked
def claim76_expectation(alpha, delta, form="printed"):
    """E(φ(g₁) − φ(αg₁ + δg₂))² for independent g₁, g₂ ~ N(0, 2).

    printed: the closed form of the proof, whose integrals leave out αg₁ + δg₂ < 0, that is
    E[g₁²; g₁ > 0 > αg₁ + δg₂]. corrected: 1 + r² − (2/π)(δ + α(π − arctan2(δ, α))) with r² = α² +
    δ².
    Source: Claim 7.6.
    """
    if _is_corrected(form):
        return (
            1
            + alpha**2
            + delta**2
            - 2 / np.pi * (delta + alpha * (np.pi - np.arctan2(delta, alpha)))
        )
    fraction = delta * (-2 * alpha**2 + alpha - 2 * delta**2) / (alpha**2 + delta**2)
    return (
        (fraction + (1 - 2 * alpha) * np.arctan(alpha / delta)) / np.pi
        + (alpha - 1) * alpha
        + delta**2
        + 0.5
    )


@_checked
def sign_changes(m, omega, L, *, C=1.0):
    """C m ω^(2/3) L, a bound on a layer's sign changes ‖D′_l‖₀; for residual nets L = 1.

    Source: Lemma 8.2b.
    """
    return C * m * omega ** (2 / 3) * L


@_checked
def hidden_change(omega, L, m, *, C=1.0):
    """C ω L^(5/2) √log m, a bound on ‖g′_l‖ and ‖h′_l‖. Source: Lemma 8.2c."""
    return C * omega * L**2.5 * np.sqrt(np.log(m))


@_checked
def backward_change(s, omega, L, m, d, *, C=1.0):
    """C √((L³ s log m + ω² L³ m)/d), a bound on the change of BD_L W_L ⋯ D_a. Source: Lemma 8.7."""
    return C * np.sqrt(L**3 * (s * np.log(m) + omega**2 * m) / d)


@_checked
def grad_upper(F, m, d, n=1, L=1, *, C=1.0):
    """C F L n m/d, a bound on ‖∇F‖_F².

    With L = 1 on ‖∇_{W_l} F‖_F², with n = L = 1 on ‖∇_{W_l} F_i‖_F², F = F_i.
    With L = 1 also on the mean of ‖(n/b) Σ_{i ∈ S_t} ∇F_i‖₂² over the batches S_t. With Σ_i ‖v_i‖²
    or ‖v_i‖² as F it is Lemma 9.3. Source: Theorem 3, eq. (13.2).
    """
    return C * F * L * n * m / d


@_checked
def grad_lower(F, m, d, n, delta, *, c=1.0):
    """c F δ m/(dn²), a lower bound on ‖∇F‖_F²; with n max_i F_i as F on ‖∇_{W_L} F‖_F².

    Source: Theorem 3.
    """
    return c * F * delta * m / (d * n**2)


@_checked
def lem93_lower(F, m, d, n, delta, form="printed"):
    """F δ m/(2000 dn), a lower bound on the initial ‖∇_{W_L}‖_F² of fixed loss vectors v.

    F: max_i ‖v_i‖².
    corrected: 8000, as of two sums that differ by one term the larger has only half of its norm.
    Source: Lemma 9.3 and Section 9.2.
    """
    return F * delta * m / (d * n) / (8000 if _is_corrected(form) else 2000)


@_checked
def claim94_miss(n, form="printed"):
    """1/(8n), a bound on P(|z| < δ/(4n√m)) for z normal of variance δ²/(2m).

    corrected: erf(1/(4n)), which is 2.26 times larger; the union over n samples leaves 0.72 and not
    7/8.
    Source: Section 9.2.1.
    """
    return erf(1 / (4 * n)) if _is_corrected(form) else 1 / (8 * n)


@_checked
def gradient_change(F, omega, L, m, d, n, *, C=1.0):
    """C n F (m log m/d) ω^(2/3) L⁴, a bound on ∇_{W_l}'s squared change, F = Σ_i ‖v_i‖².

    Source: eq. (10.2).
    """
    return C * n * F * m * np.log(m) / d * omega ** (2 / 3) * L**4


@_checked
def thm3_radius(n, L, delta, m, *, C=1.0):
    """C δ^(3/2)/(n^(9/2) L⁶ log³m), the radius ω of the gradient bounds. Source: Theorem 3."""
    return C * delta**1.5 / (n**4.5 * L**6 * np.log(m) ** 3)


@_checked
def omega_range(m, L, d, form="printed", *, C1=1.0, C2=1.0):
    """C₁ (d/(mL log m))^(3/2) and C₂/(L^(9/2) log³m), the ends of ω in Theorems 4 and 5.

    The largest is that of Lemma 8.2 too. corrected: at most C₂/(L⁶ log^(3/2) m), from where on
    mω^(2/3)L sign changes are more than the m/(L³ log m) of Lemma 8.7, on which both theorems rest.
    Source: Sections 11, 14.
    """
    lm = np.log(m)
    largest = C2 / (L**4.5 * lm**3)
    if _is_corrected(form):
        largest = np.minimum(largest, C2 / (L**6 * lm**1.5))
    return C1 * (d / (m * L * lm)) ** 1.5, largest


@_checked
def semismooth_terms(F, w, n, L, m, d, omega, form="printed", *, C1=1.0, C2=1.0):
    """C₁ √(nF) ω^(1/3) L² √(m log m/d) w and C₂ n L² (m/d) w²: the terms of Theorem 4.

    Their sum bounds F(W + W′) − F(W) − ⟨∇F(W), W′⟩. corrected: L³ in the first, as (11.5) bounds
    one of the L layers that (11.3) adds up. Source: Theorem 4 (Section 11).
    """
    power = 3 if _is_corrected(form) else 2
    kink = C1 * np.sqrt(n * F) * np.cbrt(omega) * L**power * np.sqrt(m * np.log(m) / d) * w
    return kink, C2 * n * L**2 * m / d * w**2


def prop113_diagonal(a, b):
    """The D″ of φ(a) − φ(b) = (D + D″)(a − b), D = diag 1(a ≥ 0), as a vector.

    Source: Proposition 11.3.
    """
    a, b = np.broadcast_arrays(float64(a), float64(b))
    differ = (a >= 0) != (b >= 0)
    return np.where(differ, b / np.where(differ, np.abs(a - b), 1), 0.0)


@_checked
def thm5a(omega, L, m, *, C=1.0):
    """C √log m ω^(1/3) L³, a bound on the relative change of ∇y_j.

    Up to C/(L⁹ log^(3/2) m) also on |K(x, x̃) − K^ntk(x, x̃)|/√(K^ntk(x, x) K^ntk(x̃, x̃)).
    Source: Theorem 5a and c.
    """
    return C * np.sqrt(np.log(m)) * np.cbrt(omega) * L**3


@_checked
def thm5b(omega, L, m, d, kappa=1.0, *, C=1.0):
    """C κ^(−1/3) L³ ω^(4/3) √(m log m/d), a bound on y_j minus its linearisation at W⁽⁰⁾.

    kappa: the scale of B; ω/κ is the change that moves the output as ω does at κ = 1.
    Source: Theorem 5b, eq. (14.1); with κ ours, for Remark 4.1.
    """
    return C * kappa ** (-1 / 3) * L**3 * omega ** (4 / 3) * np.sqrt(m * np.log(m) / d)


def _log10_width(a):
    """log₁₀ of the m > e⁵ with m/log⁵m = e^a; at e⁵ itself m/log⁵m is smallest."""
    if not np.all(a >= 5 - 5 * np.log(5)):
        raise ParameterError(f"m/log^5 m >= exp({a}) has no smallest solution m > e^5")
    return -5 / np.log(10) * lambertw(-np.exp(-a / 5) / 5, -1).real


@_checked
def thm1_log10_width(n, L, delta, d, *, C=1.0):
    """log₁₀ of the m = C n²⁴ L¹² d log⁵m/δ⁸; ParameterError where m/log⁵m < e⁵/5⁵.

    Source: Section 12.
    """
    return _log10_width(24 * np.log(n) + 12 * np.log(L) + np.log(C * d) - 8 * np.log(delta))


@_checked
def thm1_lr(n, L, delta, m, d, *, C=1.0):
    """C dδ/(n⁴ L² m), the step size η. Source: Section 12."""
    return C * d * delta / (n**4 * L**2 * m)


@_checked
def thm1_iters(n, L, delta, eps, m=None, *, C=1.0):
    """C (n⁶ L²/δ²) log(1/ε), the steps to F ≤ ε; with m, log(n log m/ε).

    Source: Section 12, Theorem 8.
    """
    return C * n**6 * L**2 / delta**2 * np.log(1 / eps if m is None else n * np.log(m) / eps)


@_checked
def thm1_rate(eta, delta, m, n, d, *, c=1.0):
    """c η δ m/(dn²), by which share F at least falls in a step.

    Source: eqs. (12.2), (13.2), (A.2).
    """
    return c * eta * delta * m / (d * n**2)


@_checked
def thm1_movement(n, delta, m, d, *, C=1.0):
    """C n³ √(d/m) log m/δ, a bound on ‖W_l⁽ᵗ⁾ − W_l⁽⁰⁾‖_F, of a layer as proved.

    Source: eq. (12.1).
    """
    return C * n**3 * np.sqrt(d / m) * np.log(m) / delta


@_checked
def thm1_radius(n, L, delta, m, *, C=1.0):
    """C δ³/(n⁹ L⁶ log^(3/2) m), the ω up to which step ③ holds. Source: eqs. (12.2) and (13.2)."""
    return C * (delta / (n**3 * L**2 * np.sqrt(np.log(m)))) ** 3


def _check_batch(b, n):
    if np.any(b > n):
        raise ParameterError(f"b must be at most n, got b = {b}, n = {n}")


@_checked
def thm2_log10_width(n, L, delta, d, b, form="printed", *, C=1.0):
    """log₁₀ of the m with m = C n²⁴ L¹² b d log⁵m/δ⁸, from which SGD converges.

    corrected: C n²⁵ L¹² d log⁵m/(bδ⁸), where `thm2_movement` reaches `thm1_radius`; the theorem's
    statement divides by b as well. Raises ParameterError as `thm1_log10_width`. Source: Section 13.
    """
    _check_batch(b, n)
    batch = np.log(n / b) if _is_corrected(form) else np.log(b)
    return _log10_width(24 * np.log(n) + batch + 12 * np.log(L) + np.log(C * d) - 8 * np.log(delta))


@_checked
def thm2_lr(n, L, delta, m, d, b, *, C=1.0):
    """C bδd/(n⁵ L² m log²m), the step size η. Source: Section 13."""
    _check_batch(b, n)
    return C * b * delta * d / (n**5 * L**2 * m * np.log(m) ** 2)


@_checked
def thm2_movement(n, delta, m, d, b, *, C=1.0):
    """C n^(7/2) √(d/(bm)) log m/δ, a bound on ‖W_l⁽ᵗ⁾ − W_l⁽⁰⁾‖_F. Source: eq. (13.1)."""
    _check_batch(b, n)
    return C * n**3.5 * np.sqrt(d / (b * m)) * np.log(m) / delta


@_checked
def thm2_growth(eta, L, m, n, d, b, form="printed", *, C=1.0):
    """C η L m n^(3/2)/√(bd), a bound on log F(W⁽ᵗ⁺¹⁾) − log F(W⁽ᵗ⁾) for any batch.

    corrected: √b d for √(bd), the product of the roots that (13.3) multiplies. Source: eq. (13.3).
    """
    _check_batch(b, n)
    return C * eta * L * m * n**1.5 / np.sqrt(b) / (d if _is_corrected(form) else np.sqrt(d))


def _of_kind(kind, factors):
    if kind not in factors:
        raise ParameterError(f"kind must be one of {', '.join(factors)}, got {kind!r}")
    return factors[kind]


@_checked
def thm6_iters(kind, n, L, delta, eps=1.0, sigma=1.0, D=1.0, form="printed", *, C=1.0):
    """C n⁶ L²/δ² times a factor of the kind of loss: the steps of Theorem 6.

    log(1/ε)/σ ("pl"), nD²/ε ("convex"), 1/ε² ("nonconvex") or 1 ("cross-entropy").
    sigma: σ of ‖∇f‖² ≥ σ(f − f*); D: distance to the minimiser. corrected: n/ε² for "nonconvex", as
    |f| ≤ O(1) leaves F(W⁽⁰⁾) ≤ O(n). Source: Theorem 6, Appendix A.
    """
    start = n if _is_corrected(form) else 1
    factors = {
        "pl": np.log(1 / eps) / sigma,
        "convex": n * D**2 / eps,
        "nonconvex": start / eps**2,
        "cross-entropy": 1,
    }
    return C * n**6 * L**2 / delta**2 * _of_kind(kind, factors)


@_checked
def cnn_tau(delta, positions, L):
    """δ²/(10𝔡L), the scale of the biases. Source: Appendix B."""
    return delta**2 / (10 * positions * L)


@_checked
def resnet_tau(L, m, *, c=1.0):
    """c/(L log m), the scale of the residual branches. Source: Appendix C."""
    return c / (L * np.log(m))


# What wide nets do exactly: limits that the bounds are compared with. All of it ours; k is a number
# of layers.
_E3 = 2 * np.sqrt(2 / np.pi)  # E|g|³ of a standard normal g


@_checked
def log_ratio_moments(m):
    """Mean and variance of log(‖h_l‖²/‖h_{l−1}‖²) for one integer m, where any neuron is on.

    ‖h_l‖² m/(2‖h_{l−1}‖²) is chi-square with w degrees of freedom, w ~ B(m, ½): the mean given w is
    log(4/m) + ψ(w/2), which (7.1) puts into [−4/m, 0], and the variance ψ′(w/2). Source: Fact 7.2.
    """
    w = np.arange(1, int(m) + 1)
    weights = binom.pmf(w, int(m), 0.5) / (1 - 0.5 ** int(m))
    means = np.log(4 / m) + digamma(w / 2)
    mean = weights @ means
    return mean, weights @ (polygamma(1, w / 2) + (means - mean) ** 2)


@_checked
def backward_sparse_limit(s, m):
    """√(s + 2mtφ(t)) with 2Φ(−t) = s/m, the norm of the s largest of the m entries of B.

    For d = 1 and m → ∞.
    It is the supremum of Lemma 7.4a at a = L + 1 exactly, and a third of that of Lemma 8.7 at a =
    L, ω = 0; also that of |g · a| over unit a with s nonzero entries for g ~ N(0, I), as in Lemma
    B.5 of Frei et al. 2019.
    """
    if np.any(s > m):
        raise ParameterError(f"s must be at most m, got s = {s}, m = {m}")
    t = -ndtri(np.maximum(s, np.finfo(float).tiny) / m / 2)
    return np.sqrt(s + 2 * m * t * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi))


@_checked
def separation_limit(delta, l):
    """‖(I − ĥ_i ĥ_iᵀ) h_j‖ at layer l for m → ∞ and unit inputs at distance δ.

    l = −1 are the inputs. Ours.
    """
    delta, l = np.broadcast_arrays(delta, l)
    theta = 2 * np.arcsin(delta / 2)
    for layer in range(int(np.max(l)) + 1):
        # Half of 1 − cos θ, which keeps the digits of small angles.
        half = np.sin(theta / 2) ** 2 - (np.sin(theta) - theta * np.cos(theta)) / (2 * np.pi)
        theta = np.where(layer <= l, 2 * np.arcsin(np.sqrt(half)), theta)
    return np.sin(theta)[()]


@_checked
def sign_changes_onelayer(m, omega):
    """m (3ω²/π)^(1/3), the most sign changes by one W′_l, ‖h_{l−1}‖ = 1, m → ∞, small ω. Ours."""
    return m * np.cbrt(3 * omega**2 / np.pi)


@_checked
def sign_changes_random(m, omega):
    """(m/π) arctan(ω/(2√2)), the sign changes by one layer's Gaussian W′ of norm ω, m → ∞."""
    return m / np.pi * np.arctan(omega / (2 * np.sqrt(2)))


@_checked
def thm5a_onelayer(omega):
    """1.640 ω^(1/3), the largest relative change of ∇_{W_L} y_j by W′_L alone.

    It is ‖∇_{W_L} y_j − ∇_{W_L} y_j^ntk‖_F/‖∇_{W_L} y_j^ntk‖_F.
    For ‖h_{L−1}‖ = 1, m → ∞ and small ω: the signs with |g_k| ≤ t|B_jk| change, at the cost Σ g_k²
    = ω².
    """
    return np.sqrt(2 * _E3 / np.sqrt(np.pi) * np.cbrt(3 * np.sqrt(np.pi) / _E3)) * np.cbrt(omega)


@_checked
def thm5b_onelayer(omega, m, d):
    """0.456 √(m/d) ω^(4/3), the largest |y_j − y_j⁽⁰⁾ − y_j^ntk| by W′_L; as `thm5a_onelayer`."""
    constant = 3 / 16 * _E3 / np.sqrt(np.pi) * (4 * np.sqrt(np.pi) / _E3) ** (2 / 3)
    return constant * np.sqrt(m / d) * omega ** (4 / 3)


@_checked
def thm5c_onelayer(omega):
    """1.694 ω^(2/3), the largest |K(x, x)/K^ntk(x, x) − 1| by W′_L alone; as `thm5a_onelayer`."""
    return _E3 / np.sqrt(np.pi) * np.cbrt(6 * np.sqrt(np.pi) / _E3) * omega ** (2 / 3)


@_checked
def cnn_norm_sq(h0sq, tau, positions, q, l):
    """h0sq + l τ² 𝔡/q, the limit of ‖h_l‖², l < L; h0sq: ‖h₀‖², positions: 𝔡.

    Source: Appendix B.1.
    """
    return h0sq + l * tau**2 * positions / q


@_checked
def cnn_gains(m, q, positions):
    """√(qm) and 𝔡/q, limits of ‖h₀‖² and ‖h_L‖²/‖h_{L−1}‖² as printed, not 1.

    Source: Appendix B.
    """
    return np.sqrt(q * m), positions / q


@_checked
def resnet_product(tau, L, wnorm=8**0.5):
    """(1 + τ wnorm)^L, a bound on ‖(I + τW_a) D ⋯ D (I + τW_b)‖₂ with ‖W_l‖₂ ≤ wnorm.

    wnorm: by default the limit for m → ∞. The paper puts the bound at 1.01. Source: eq. (C.1).
    """
    return (1 + tau * wnorm) ** L
