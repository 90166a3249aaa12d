"""Allen-Zhu, Li, Song (2019): convergence of deep over-parameterized ReLU nets, arXiv 1811.03962, version 5.

The net has h₀ = φ(Ax), h_l = φ(W_l h_{l−1}) for l = 1..L and y = Bh_L with φ = max(0, ·), entries N(0, 2/m) in A and
W_l, N(0, 1/d) in B: m is the width, d the dimension of y. W_1..W_L are trained on F = Σ_i F_i, F_i = ½‖y_i − y*_i‖², on
n unit inputs with ‖x_i − x_j‖ ≥ δ. ω bounds the spectral norm of every layer's change, w is that of the step W′, s
counts nonzero entries, b is the batch size. Every function raises ParameterError for an argument out of range and
broadcasts over arrays of its scalar arguments. `allenzhu2019_limits` has what wide nets do exactly.

`form="printed"` is the paper's formula, `form="corrected"` (ours) what its own proof gives; the docstring says why.
"""

import numpy as np
from scipy.special import erf, lambertw

from overparam.bounds._arguments import AT_LEAST_0, AT_LEAST_1, POSITIVE, UP_TO_1, checker, float64
from overparam.errors import ParameterError

_checked = checker(
    {
        "m": (lambda v: v >= 2, "at least 2"),
        "n L d b positions": AT_LEAST_1,
        "omega w s l F d2 dinf tau": AT_LEAST_0,
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


_EXPONENTS = {
    "lem73": lambda m, L: m / L,
    "lem75": lambda m, L, delta: delta**6 * m / L,
    "claim83": lambda m, dinf: m**1.5 * dinf,
    "lem82": lambda m, L, omega: m * omega ** (2 / 3) * L,
    "lem86": lambda m, s: s * np.log(m),
    "lem93": lambda m, n, delta: delta * m / n,
    "thm1": lambda m: np.log(m) ** 2,
}


@_checked
def failure(result, m, *, L=None, n=None, delta=None, omega=None, dinf=None, s=None, c=1.0):
    """e^(−c x), the probability with which a result may fail.

    x is m/L for "lem73" (a to c; Lemma 7.4b), δ⁶m/L for "lem75", δ_∞ m^(3/2) for "claim83", mω^(2/3)L for "lem82"
    (Theorems 3 to 5), s log m for "lem86" (Lemmas 7.3d, 7.4a, 8.7), δm/n for "lem93" and log²m for "thm1" (Theorem 2).
    Raises ParameterError unless exactly the letters of x are given. Allen-Zhu et al. 2019, Sections 7 to 14.
    """
    letters = {"L": L, "n": n, "delta": delta, "omega": omega, "dinf": dinf, "s": s}
    given = {letter: value for letter, value in letters.items() if value is not None}
    try:
        return np.exp(-c * _EXPONENTS[result](m, **given))
    except (KeyError, TypeError):
        raise ParameterError(f"no failure probability of {result!r} in m and {list(given)}") from None


@_checked
def forward_norm_failure(n, L, m, eps, *, power=1, C=1.0, c=1.0):
    """C n L e^(−c m ε²/L^power), a bound on P(some ‖h_l‖ is outside [1 − ε, 1 + ε]).

    power: 1, or 2 for what a bound of layer by layer gives, as for the nets of Appendix B.
    Allen-Zhu et al. 2019, Lemma 7.1 and the remark after it.
    """
    return C * n * L * np.exp(-c * m * eps**2 / L**power)


@_checked
def intermediate_width(n, L, *, C=1.0):
    """C n L log(nL), the width from which Lemmas 7.3 and 7.4 hold. Allen-Zhu et al. 2019, Lemma 7.3."""
    return C * n * L * np.log(n * L)


@_checked
def intermediate_norm(L, *, C=1.0):
    """C √L, a bound on ‖W_b D_{b−1} W_{b−1} ⋯ D_a W_a‖₂. Allen-Zhu et al. 2019, Lemmas 7.3a and 8.6."""
    return C * np.sqrt(L)


@_checked
def sparse_level(m, L, *, power=1, c=1.0):
    """c m/(L^power log m), the largest s. Allen-Zhu et al. 2019, Lemma 7.3 (power = 1), Lemmas 8.6 and 8.7 (3)."""
    return c * m / (L**power * np.log(m))


@_checked
def sparse_bilinear(s, m, *, C=1.0):
    """C √(s log m/m), a bound on |uᵀW_b D_{b−1} ⋯ W_a v| for s-sparse unit u, v. Allen-Zhu et al. 2019, Lemma 7.3d."""
    return C * np.sqrt(s * np.log(m) / m)


@_checked
def backward_norm(m, d, *, C=1.0):
    """C √(m/d), a bound on ‖BD_L W_L ⋯ D_a W_a‖₂. Allen-Zhu et al. 2019, Lemma 7.4b."""
    return C * np.sqrt(m / d)


@_checked
def backward_sparse(s, m, d, *, C=1.0):
    """C √(s log m/d), a bound on ‖BD_L W_L ⋯ D_a W_a u‖ for s-sparse unit u. Allen-Zhu et al. 2019, Lemma 7.4a."""
    return C * np.sqrt(s * np.log(m) / d)


@_checked
def separation_lower(delta):
    """δ/2, a lower bound on ‖(I − ĥ_i ĥ_iᵀ) h_j‖ at every layer if δ ≤ 1/(CL). Allen-Zhu et al. 2019, Lemma 7.5."""
    return delta / 2


@_checked
def separation_width(n, L, delta, *, C=1.0):
    """C L log(nL)/δ⁶, the width from which Lemma 7.5 holds. Allen-Zhu et al. 2019, Lemma 7.5."""
    return C * L * np.log(n * L) / delta**6


@_checked
def claim76_lower(delta):
    """δ²(1 − δ), a lower bound on `claim76_expectation` for δ ≤ 1/6. Allen-Zhu et al. 2019, Claim 7.6."""
    return delta**2 * (1 - delta)


@_checked
def claim76_expectation(alpha, delta, form="printed"):
    """E(φ(g₁) − φ(αg₁ + δg₂))² for independent g₁, g₂ ~ N(0, 2).

    printed: the closed form of the proof, whose integrals leave out αg₁ + δg₂ < 0, that is E[g₁²; g₁ > 0 > αg₁ + δg₂].
    corrected: 1 + r² − (2/π)(δ + α(π − arctan2(δ, α))) with r² = α² + δ². Allen-Zhu et al. 2019, Claim 7.6.
    """
    if _is_corrected(form):
        return 1 + alpha**2 + delta**2 - 2 / np.pi * (delta + alpha * (np.pi - np.arctan2(delta, alpha)))
    fraction = delta * (-2 * alpha**2 + alpha - 2 * delta**2) / (alpha**2 + delta**2)
    return (fraction + (1 - 2 * alpha) * np.arctan(alpha / delta)) / np.pi + (alpha - 1) * alpha + delta**2 + 0.5


@_checked
def sign_changes(m, omega, L, *, C=1.0):
    """C m ω^(2/3) L, a bound on a layer's sign changes ‖D′_l‖₀; with L = 1 for residual nets.

    Allen-Zhu et al. 2019, Lemma 8.2b, Appendix C.1.
    """
    return C * m * omega ** (2 / 3) * L


@_checked
def claim83(m, d2, dinf, *, C=1.0):
    """C (m δ₂^(2/3) + δ_∞ m^(3/2)) and C (δ₂ + δ_∞^(3/2) m^(3/4)), bounds on ‖D′‖₀ and ‖D′(W⁽⁰⁾h⁽⁰⁾ + g′)‖.

    For all g′ = g′₁ + g′₂ with ‖g′₁‖ ≤ δ₂ and ‖g′₂‖_∞ ≤ δ_∞; D′ are the signs that g′ changes.
    Allen-Zhu et al. 2019, Claim 8.3.
    """
    return C * (m * d2 ** (2 / 3) + dinf * m**1.5), C * (d2 + dinf**1.5 * m**0.75)


@_checked
def hidden_change(omega, L, m, *, C=1.0):
    """C ω L^(5/2) √log m, a bound on ‖g′_l‖ and ‖h′_l‖. Allen-Zhu et al. 2019, Lemma 8.2c."""
    return C * omega * L**2.5 * np.sqrt(np.log(m))


@_checked
def hidden_change_parts(omega, L, m, *, C=1.0):
    """C ω L^(3/2) and C ω L^(5/2) √(log m/m), bounds on ‖g′_{l,1}‖ and ‖g′_{l,2}‖_∞, the first on ‖D′_l g_l‖ as well.

    Allen-Zhu et al. 2019, Lemma 8.2a and b.
    """
    return C * omega * L**1.5, C * omega * L**2.5 * np.sqrt(np.log(m) / m)


@_checked
def backward_change(s, omega, L, m, d, *, C=1.0):
    """C √((L³ s log m + ω² L³ m)/d), a bound on the change of BD_L W_L ⋯ D_a. Allen-Zhu et al. 2019, Lemma 8.7."""
    return C * np.sqrt(L**3 * (s * np.log(m) + omega**2 * m) / d)


@_checked
def backward_change_at_radius(omega, L, m, d, *, C=1.0):
    """C ω^(1/3) L² √(m log m/d), `backward_change` at s = mω^(2/3)L. Allen-Zhu et al. 2019, Lemma 8.7."""
    return C * np.cbrt(omega) * L**2 * np.sqrt(m * np.log(m) / d)


@_checked
def grad_upper(F, m, d, n=1, L=1, *, C=1.0):
    """C F L n m/d, a bound on ‖∇F‖_F²; with L = 1 on ‖∇_{W_l} F‖_F², and with n = L = 1 on ‖∇_{W_l} F_i‖_F², F = F_i.

    With L = 1 also on the mean of ‖(n/b) Σ_{i ∈ S_t} ∇F_i‖₂² over the batches S_t. With Σ_i ‖v_i‖² or ‖v_i‖² as F it is
    Lemma 9.3. Allen-Zhu et al. 2019, Theorem 3, eq. (13.2).
    """
    return C * F * L * n * m / d


@_checked
def grad_lower(F, m, d, n, delta, *, c=1.0):
    """c F δ m/(dn²), a lower bound on ‖∇F‖_F²; from n max_i F_i as F, on ‖∇_{W_L} F‖_F².

    Allen-Zhu et al. 2019, Theorem 3.
    """
    return c * F * delta * m / (d * n**2)


@_checked
def lem93_lower(F, m, d, n, delta, form="printed"):
    """F δ m/(2000 dn), a lower bound on the ‖∇_{W_L}‖_F² of fixed loss vectors v at initialization. F: max_i ‖v_i‖².

    corrected: 8000, as of two sums that differ by one term the larger has only half of its norm.
    Allen-Zhu et al. 2019, Lemma 9.3 and Section 9.2.
    """
    return F * delta * m / (d * n) / (8000 if _is_corrected(form) else 2000)


@_checked
def claim94_count(m, n, delta):
    """δm/(40n), a lower bound on |N₂|. Allen-Zhu et al. 2019, Claim 9.4."""
    return delta * m / (40 * n)


@_checked
def claim94_miss(n, form="printed"):
    """1/(8n), a bound on P(|z| < δ/(4n√m)) for z normal of variance δ²/(2m).

    corrected: erf(1/(4n)), which is 2.26 times larger; the union over n samples leaves 0.72 and not 7/8.
    Allen-Zhu et al. 2019, Section 9.2.1.
    """
    return erf(1 / (4 * n)) if _is_corrected(form) else 1 / (8 * n)


@_checked
def fact96_tail(t, sigma):
    """1 − (4/5)t/σ and 1 − (2/3)t/σ, bounds on P(|x| ≥ t) for x ~ N(0, σ²), t < σ. Allen-Zhu et al. 2019, Fact 9.6."""
    return 1 - 0.8 * t / sigma, 1 - 2 / 3 * t / sigma


@_checked
def gradient_change(F, omega, L, m, d, n, *, C=1.0):
    """C n F (m log m/d) ω^(2/3) L⁴, a bound on the squared change of ∇_{W_l} at fixed loss vectors, F = Σ_i ‖v_i‖².

    Allen-Zhu et al. 2019, eq. (10.2).
    """
    return C * n * F * m * np.log(m) / d * omega ** (2 / 3) * L**4


@_checked
def thm3_radius(n, L, delta, m, *, C=1.0):
    """C δ^(3/2)/(n^(9/2) L⁶ log³m), the radius ω of the gradient bounds. Allen-Zhu et al. 2019, Theorem 3."""
    return C * delta**1.5 / (n**4.5 * L**6 * np.log(m) ** 3)


@_checked
def omega_range(m, L, d, form="printed", *, C1=1.0, C2=1.0):
    """C₁ (d/(mL log m))^(3/2) and C₂/(L^(9/2) log³m), the smallest and largest ω of Theorems 4 and 5.

    The largest is that of Lemma 8.2 too. corrected: at most C₂/(L⁶ log^(3/2) m), from where on mω^(2/3)L sign changes
    are more than the m/(L³ log m) of Lemma 8.7, on which both theorems rest. Allen-Zhu et al. 2019, Sections 11, 14.
    """
    lm = np.log(m)
    largest = C2 / (L**4.5 * lm**3)
    if _is_corrected(form):
        largest = np.minimum(largest, C2 / (L**6 * lm**1.5))
    return C1 * (d / (m * L * lm)) ** 1.5, largest


@_checked
def semismooth_terms(F, w, n, L, m, d, omega, form="printed", *, C1=1.0, C2=1.0):
    """C₁ √(nF) ω^(1/3) L² √(m log m/d) w and C₂ n L² (m/d) w², whose sum bounds F(W + W′) − F(W) − ⟨∇F(W), W′⟩.

    corrected: L³ in the first term, as (11.5) bounds one of the L layers that (11.3) adds up.
    Allen-Zhu et al. 2019, Theorem 4 (Section 11).
    """
    power = 3 if _is_corrected(form) else 2
    kink = C1 * np.sqrt(n * F) * np.cbrt(omega) * L**power * np.sqrt(m * np.log(m) / d) * w
    return kink, C2 * n * L**2 * m / d * w**2


@_checked
def claim112(w, L, m, d, *, C=1.0):
    """C L^(3/2) w and C L √(m/d) w, bounds on the changes of h_l and Bh_L by W′. Allen-Zhu et al. 2019, Claim 11.2."""
    return C * L**1.5 * w, C * L * np.sqrt(m / d) * w


def prop113_diagonal(a, b):
    """The diagonal of D″ with φ(a) − φ(b) = (D + D″)(a − b), D = diag 1(a ≥ 0); a, b: arrays of one shape, as D″.

    Its entries are in [−1, 1], and 0 where a and b have the same sign. Allen-Zhu et al. 2019, Proposition 11.3.
    """
    a, b = np.broadcast_arrays(float64(a), float64(b))
    differ = (a >= 0) != (b >= 0)
    return np.where(differ, b / np.where(differ, np.abs(a - b), 1), 0.0)


@_checked
def thm5a(omega, L, m, *, C=1.0):
    """C √log m ω^(1/3) L³, a bound on the relative change of ∇y_j.

    Up to `thm5c_radius` also on |K(x, x̃) − K^ntk(x, x̃)|/√(K^ntk(x, x) K^ntk(x̃, x̃)).
    Allen-Zhu et al. 2019, Theorem 5a and c.
    """
    return C * np.sqrt(np.log(m)) * np.cbrt(omega) * L**3


@_checked
def thm5b(omega, L, m, d, kappa=1.0, *, C=1.0):
    """C κ^(−1/3) L³ ω^(4/3) √(m log m/d), a bound on y_j minus its linearisation at W⁽⁰⁾.

    kappa: the scale of B; ω/κ is the change that moves the output as ω does at κ = 1. Allen-Zhu et al. 2019,
    Theorem 5b, eq. (14.1); with κ ours, for Remark 4.1.
    """
    return C * kappa ** (-1 / 3) * L**3 * omega ** (4 / 3) * np.sqrt(m * np.log(m) / d)


@_checked
def thm5b_smooth(omega, L, m, d, *, C=1.0):
    """C ω² L^(5/2) √(m/d), the part of `thm5b` without sign changes. Allen-Zhu et al. 2019, eq. (14.2)."""
    return C * omega**2 * L**2.5 * np.sqrt(m / d)


@_checked
def thm5c_radius(L, m, *, C=1.0):
    """C/(L⁹ log^(3/2) m), the largest ω of Theorem 5c. Allen-Zhu et al. 2019, Theorem 5c."""
    return C / (L**9 * np.log(m) ** 1.5)


@_checked
def init_objective(n, m, *, C=1.0):
    """C n log²m, a bound on F(W⁽⁰⁾). Allen-Zhu et al. 2019, Section 12."""
    return C * n * np.log(m) ** 2


def _log10_width(a):
    """log₁₀ of the m > e⁵ with m/log⁵m = e^a; at e⁵ itself m/log⁵m is smallest."""
    if not np.all(a >= 5 - 5 * np.log(5)):
        raise ParameterError(f"m/log^5 m >= exp({a}) has no smallest solution m > e^5")
    return -5 / np.log(10) * lambertw(-np.exp(-a / 5) / 5, -1).real


@_checked
def thm1_log10_width(n, L, delta, d, *, C=1.0):
    """log₁₀ of the m with m = C n²⁴ L¹² d log⁵m/δ⁸, from which gradient descent converges.

    Raises ParameterError where the right side over log⁵m is below e⁵/5⁵. Allen-Zhu et al. 2019, Section 12.
    """
    return _log10_width(24 * np.log(n) + 12 * np.log(L) + np.log(C * d) - 8 * np.log(delta))


@_checked
def thm1_width(n, L, delta, d, *, C=1.0):
    """The width of `thm1_log10_width`, which overflows above 10³⁰⁸. Allen-Zhu et al. 2019, Section 12."""
    return 10 ** thm1_log10_width(n, L, delta, d, C=C)


@_checked
def thm1_lr(n, L, delta, m, d, *, C=1.0):
    """C dδ/(n⁴ L² m), the step size η. Allen-Zhu et al. 2019, Section 12."""
    return C * d * delta / (n**4 * L**2 * m)


@_checked
def thm1_iters(n, L, delta, eps, m=None, *, C=1.0):
    """C (n⁶ L²/δ²) log(1/ε), the steps T to F ≤ ε, with m the proof's log(n log m/ε) instead: F(W⁽⁰⁾) is not 1.

    Allen-Zhu et al. 2019, Section 12; without m also Theorem 8.
    """
    return C * n**6 * L**2 / delta**2 * np.log(1 / eps if m is None else n * np.log(m) / eps)


@_checked
def thm1_rate(eta, delta, m, n, d, *, c=1.0):
    """c η δ m/(dn²), by which share F at least falls in a step, as in (A.2) by that share of ‖loss‖².

    Allen-Zhu et al. 2019, eqs. (12.2), (13.2) and (A.2).
    """
    return c * eta * delta * m / (d * n**2)


@_checked
def thm1_movement(n, delta, m, d, *, C=1.0):
    """C n³ √(d/m) log m/δ, a bound on ‖W_l⁽ᵗ⁾ − W_l⁽⁰⁾‖_F, of a layer as proved. Allen-Zhu et al. 2019, eq. (12.1)."""
    return C * n**3 * np.sqrt(d / m) * np.log(m) / delta


@_checked
def thm1_radius(n, L, delta, m, *, C=1.0):
    """C δ³/(n⁹ L⁶ log^(3/2) m), the ω up to which step ③ holds: ω^(1/3) ≤ δ/(n³ L² √log m).

    `thm1_width` is where the movement reaches it. Allen-Zhu et al. 2019, eqs. (12.2) and (13.2).
    """
    return C * (delta / (n**3 * L**2 * np.sqrt(np.log(m)))) ** 3


def _check_batch(b, n):
    if np.any(b > n):
        raise ParameterError(f"b must be at most n, got b = {b}, n = {n}")


@_checked
def thm2_log10_width(n, L, delta, d, b, form="printed", *, C=1.0):
    """log₁₀ of the m with m = C n²⁴ L¹² b d log⁵m/δ⁸, from which SGD converges.

    corrected: C n²⁵ L¹² d log⁵m/(bδ⁸), where `thm2_movement` reaches `thm1_radius`; the theorem's statement divides by
    b as well. Raises ParameterError as `thm1_log10_width`. Allen-Zhu et al. 2019, Section 13.
    """
    _check_batch(b, n)
    batch = np.log(n / b) if _is_corrected(form) else np.log(b)
    return _log10_width(24 * np.log(n) + batch + 12 * np.log(L) + np.log(C * d) - 8 * np.log(delta))


@_checked
def thm2_width(n, L, delta, d, b, form="printed", *, C=1.0):
    """The width of `thm2_log10_width`, which overflows above 10³⁰⁸. Allen-Zhu et al. 2019, Section 13."""
    return 10 ** thm2_log10_width(n, L, delta, d, b, form, C=C)


@_checked
def thm2_lr(n, L, delta, m, d, b, *, C=1.0):
    """C bδd/(n⁵ L² m log²m), the step size η. Allen-Zhu et al. 2019, Section 13."""
    _check_batch(b, n)
    return C * b * delta * d / (n**5 * L**2 * m * np.log(m) ** 2)


@_checked
def thm2_iters(n, L, delta, b, m, eps, *, C=1.0):
    """C (n⁷ L² log²m/(bδ²)) log(n log m/ε), the steps T to F ≤ ε. Allen-Zhu et al. 2019, Section 13."""
    _check_batch(b, n)
    return C * n**7 * L**2 * np.log(m) ** 2 / (b * delta**2) * np.log(n * np.log(m) / eps)


@_checked
def thm2_movement(n, delta, m, d, b, *, C=1.0):
    """C n^(7/2) √(d/(bm)) log m/δ, a bound on ‖W_l⁽ᵗ⁾ − W_l⁽⁰⁾‖_F. Allen-Zhu et al. 2019, eq. (13.1)."""
    _check_batch(b, n)
    return C * n**3.5 * np.sqrt(d / (b * m)) * np.log(m) / delta


@_checked
def thm2_growth(eta, L, m, n, d, b, form="printed", *, C=1.0):
    """C η L m n^(3/2)/√(bd), a bound on log F(W⁽ᵗ⁺¹⁾) − log F(W⁽ᵗ⁾) for any batch.

    corrected: √b d for √(bd), the product of the roots that (13.3) multiplies. Allen-Zhu et al. 2019, eq. (13.3).
    """
    _check_batch(b, n)
    return C * eta * L * m * n**1.5 / np.sqrt(b) / (d if _is_corrected(form) else np.sqrt(d))


def _of_kind(kind, factors):
    if kind not in factors:
        raise ParameterError(f"kind must be one of {', '.join(factors)}, got {kind!r}")
    return factors[kind]


@_checked
def thm6_iters(kind, n, L, delta, eps=1.0, sigma=1.0, D=1.0, form="printed", *, C=1.0):
    """C n⁶ L²/δ² times log(1/ε)/σ ("pl"), nD²/ε ("convex"), 1/ε² ("nonconvex") or 1 ("cross-entropy"), the steps T.

    sigma: σ of ‖∇f‖² ≥ σ(f − f*); D: distance to the minimiser. corrected: n/ε² for "nonconvex", as |f| ≤ O(1) leaves
    F(W⁽⁰⁾) ≤ O(n). Allen-Zhu et al. 2019, Theorem 6, Appendix A.
    """
    start = n if _is_corrected(form) else 1
    factors = {"pl": np.log(1 / eps) / sigma, "convex": n * D**2 / eps, "nonconvex": start / eps**2, "cross-entropy": 1}
    return C * n**6 * L**2 / delta**2 * _of_kind(kind, factors)


@_checked
def thm6_width(kind, d, eps=1.0, sigma=1.0, form="printed", *, C=1.0):
    """C d times σ⁻² ("pl"), log(1/ε) ("convex"), 1/ε ("nonconvex") or 1 ("cross-entropy"): m up to poly(n, L, 1/δ).

    corrected: log²(1/ε) and 1/ε². Given (A.2), the steps add up to a movement of at most log(1/ε) or 1/ε, up to the
    same factors, and m grows with its square, as it does with 1/σ. Allen-Zhu et al. 2019, Theorem 6, Appendix A.
    """
    power = 2 if _is_corrected(form) else 1
    factors = {"pl": sigma**-2.0, "convex": np.log(1 / eps) ** power, "nonconvex": eps**-power, "cross-entropy": 1}
    return C * d * _of_kind(kind, factors)


@_checked
def cnn_tau(delta, positions, L):
    """δ²/(10𝔡L), the scale of the biases. Allen-Zhu et al. 2019, Appendix B."""
    return delta**2 / (10 * positions * L)


@_checked
def resnet_tau(L, m, *, c=1.0):
    """c/(L log m), the scale of the residual branches. Allen-Zhu et al. 2019, Appendix C."""
    return c / (L * np.log(m))


@_checked
def resnet_hidden_change(tau, omega, l, form="printed", *, C=1.0):
    """C τω, a bound on ‖h′_l‖ and ‖g′_l‖ for l < L. corrected: C lτω, the sum of the l layers' terms.

    Allen-Zhu et al. 2019, Appendix C.1.
    """
    return C * tau * omega * (l if _is_corrected(form) else 1)
