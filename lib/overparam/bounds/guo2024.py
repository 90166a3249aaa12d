"""Guo, Li and Lerman (AISTATS 2024): leaky ReLUs in the training and generalization of wide networks.

The letters are the paper's: n unit-norm inputs at distance at least δ from each other, outputs in R^d, L
trained hidden layers of width m, leak α, step size η, batch size b, t steps, loss = L(W), the sum of the
squared residuals, with initial value L0, and ω, a bound on the spectral norm of the change of every weight
matrix. Greek letters are spelled out in the arguments. All functions broadcast over numpy arrays. The
asymptotic constants are keyword arguments C, C0, C1, ... with default 1. A parameter out of its range raises
ParameterError.

`form="printed"` is the formula as the paper prints it, `form="rederived"` what the paper's own lemmas give.
"""

import numpy as np
from scipy.special import lambertw

from overparam.bounds._arguments import checker
from overparam.errors import ParameterError

_POSITIVE = (lambda x: (x > 0) & (x < np.inf), "positive and finite")
_ANY_REAL = (lambda x: ~np.isnan(x), "a real number or infinite")
_checked = checker(
    {
        "alpha": (lambda x: x < 1, "below 1"),
        "phi": (lambda x: (x >= 0) & (x <= np.pi), "in [0, pi]"),
        "n L d b m": (lambda x: (x >= 1) & (x < np.inf), "at least 1 and finite"),
        "gamma kappa": (lambda x: (x > 0) & (x < 1), "strictly between 0 and 1"),
        "delta eta tau eps lam gamma0": _POSITIVE,
        "L0 L1 L2 C C0 C1 C2 C3 C4 C5": _POSITIVE,
        "t t1 t2 l omega w loss v2 r2 E E0 k": (lambda x: (x >= 0) & (x < np.inf), "nonnegative and finite"),
    }
)


def _printed(form):
    if form not in ("printed", "rederived"):
        raise ParameterError(f"form must be printed or rederived, got {form!r}")
    return form == "printed"


def _check_batch(b, n):
    if np.any(b > n):
        raise ParameterError(f"b = {b} exceeds the sample size n = {n}")


def _ln(m):
    if np.any(m <= 1):
        raise ParameterError(f"m must exceed 1, so that ln m is positive, got {m}")
    return np.log(m)


def _folded(alpha):
    # c and the norm's variance are the same at 1/alpha, which keeps infinities out of their quotients.
    large = np.abs(alpha) > 1
    return np.where(large, 1 / np.where(large, alpha, 1), alpha)[()]


def _c(alpha):
    r = _folded(alpha)
    return (1 - r) ** 2 / (1 + r**2)


@_checked(alpha=_ANY_REAL)
def c_alpha(alpha):
    """c(α) = (1 - α)^2 / (1 + α^2), the factor by which the leak enters every bound.

    Any real α; c(±∞) = 1, c(-1) = 2 is the maximum, c(1) = 0, c(1/α) = c(α).
    Guo et al. 2024, Section 4.1, after eq. (10).
    """
    return _c(alpha)


@_checked(alpha=_ANY_REAL)
def slope_gap(alpha):
    """(1 - α) / √(1 + α^2), the jump at 0 of the derivative of the rescaled leaky ReLU.

    Any real α; negative above 1. Its square is c(α). Guo et al. 2024, Section 4.1, after eq. (10).
    """
    return np.copysign(np.sqrt(_c(alpha)), 1 - alpha)


def _rate_gd(alpha, eta, delta, m, n, d):
    return _c(alpha) * eta * delta * m / (n * d)


def _rate_sgd(alpha, eta, b, delta, m, n, d):
    _check_batch(b, n)
    return _rate_gd(alpha, eta, delta, m, n, d) * b / n


def _rate_special(alpha, eta, m, d):
    return _c(alpha) * eta * m / d**2


def _power(rate, t):
    # 1 - rate rounds to 1 at the paper's own parameters, so gamma^t has to be formed from the rate.
    if np.any(rate >= 1):
        raise ParameterError(f"gamma = 1 - {rate} is no convergence rate: eta is too large")
    return np.exp(t * np.log1p(-rate))


@_checked
def gamma_gd(alpha, eta, delta, m, n, d, *, C=1):
    """γ = 1 - C c(α) η δ m / (n d), the loss ratio of a gradient-descent step.

    Guo et al. 2024, Theorem 3.1, eq. (4).
    """
    return 1 - C * _rate_gd(alpha, eta, delta, m, n, d)


@_checked
def gamma_sgd(alpha, eta, b, delta, m, n, d, *, C=1):
    """γ = 1 - C c(α) η b δ m / (n^2 d), the same for SGD on the summed loss of b samples.

    Guo et al. 2024, Theorem 3.2, eq. (6).
    """
    return 1 - C * _rate_sgd(alpha, eta, b, delta, m, n, d)


@_checked
def gamma_gd_zou_gu(alpha, eta, delta, m, n, d, L, *, C=1):
    """γ = 1 - C c(α) η δ m / (n d L), the rate of Zou and Gu (2019) converted.

    Their result is for ReLU, c(0) = 1; the factor c(α) is ours. Guo et al. 2024, Section 3.
    """
    return 1 - C * _rate_gd(alpha, eta, delta, m, n, d) / L


@_checked
def gamma_sgd_zou_gu(alpha, eta, b, delta, m, n, d, L, *, C=1):
    """γ = 1 - C c(α) η b δ m / (n^2 d L), the SGD rate of Zou and Gu (2019) converted.

    Their result is for ReLU, c(0) = 1; the factor c(α) is ours. Guo et al. 2024, Section 3.
    """
    return 1 - C * _rate_sgd(alpha, eta, b, delta, m, n, d) / L


@_checked
def gamma_special(alpha, eta, m, d, *, C=1):
    """γ = 1 - C c(α) η m / d^2, the rate on data whose initial residual lies in the class F_{L-1}.

    Guo et al. 2024, Theorem B.14.
    """
    return 1 - C * _rate_special(alpha, eta, m, d)


@_checked
def gamma_convex(alpha, E, delta, eta, m, n, d, L, *, C=1):
    """γ = 1 - C c(α) E δ η m / (n^2 d L), a step's ratio of the convex excess loss E.

    Guo et al. 2024, Theorem B.16, eq. (139).
    """
    return 1 - C * E / (n * L) * _rate_gd(alpha, eta, delta, m, n, d)


@_checked
def steps_to(eps, L0, gamma, *, C0=1):
    """T = ln(ε / (C0 L0)) / ln(γ), the steps until C0 γ^t L0 = ε; 0 < γ < 1.

    Negative where ε exceeds C0 L0. Guo et al. 2024, eqs. (4) and (6).
    """
    return np.log(eps / (C0 * L0)) / np.log(gamma)


@_checked
def T_convex(alpha, eps, delta, eta, m, n, d, L, *, C=1):
    """T = C n^2 d L (ln(1/ε) + ln(n √(ln m))) / (c(α) η δ m ε), steps to excess ε.

    Guo et al. 2024, Theorem B.16, eq. (139).
    """
    return C * n * L / (_rate_gd(alpha, eta, delta, m, n, d) * eps) * np.log(n * np.sqrt(_ln(m)) / eps)


@_checked
def excess_recursion(E0, k, t):
    """E_t = E0 / (1 + k E0 t), the upper envelope of the recursion E_{t+1} ≤ E_t - k E_t^2.

    Ours, from Guo et al. 2024, eq. (148), where k = 1 - γ at E = 1.
    """
    return E0 / (1 + k * E0 * t)


@_checked
def burnin_sgd(alpha, n, L, b, delta, m, *, C=1):
    """t > C n^5 L^2 ln^2(m) / (c(α)^2 b δ^2), the steps from which SGD's rate is proved.

    Guo et al. 2024, Theorem 3.2, eq. (121).
    """
    _check_batch(b, n)
    return C / _c(alpha) ** 2 * n**5 * L**2 / (b * delta**2) * _ln(m) ** 2


def _width(rhs):
    # m / ln^4 m has its minimum e^4 / 256 at e^4: below it the condition holds for every m > 1.
    if not np.all((rhs >= np.exp(4) / 256) & (rhs < np.inf)):
        raise ParameterError(f"m / ln^4 m >= {rhs} has no smallest solution m > e^4")
    return np.exp(-4 * lambertw(-(rhs**-0.25) / 4, -1).real)


@_checked
def width_gd(alpha, n, L, d, delta, *, C=1):
    """The smallest m with m / ln^4 m ≥ C n^5 L^15 d / (c(α) δ^4), m > e^4.

    Raises ParameterError if the right-hand side is below e^4/256. Guo et al. 2024, Theorem 3.1.
    """
    return _width(C / _c(alpha) * n**5 * L**15 * d / delta**4)


@_checked
def width_sgd(alpha, n, L, d, b, delta, *, C=1):
    """The smallest m with m / ln^4 m ≥ C n^8 L^15 d / (c(α)^4 b δ^5), m > e^4.

    Raises ParameterError if the right-hand side is below e^4/256. Guo et al. 2024, Theorem 3.2.
    """
    _check_batch(b, n)
    return _width(C / _c(alpha) ** 4 * n**8 * L**15 * d / (b * delta**5))


@_checked
def width_special(alpha, n, L, d, *, C=1):
    """The smallest m with m / ln^4 m ≥ C d^5 n L^12 / c(α), m > e^4.

    The proof has the factor 1/c(α), after eq. (165); the statement omits it. Raises ParameterError if the
    right-hand side is below e^4/256. Guo et al. 2024, Theorem B.14.
    """
    return _width(C / _c(alpha) * d**5 * n * L**12)


@_checked
def width_convex(alpha, n, L, d, delta, *, C=1):
    """The smallest m with m / ln^4 m ≥ C n^6 L^16 d / (c(α) δ^4), m > e^4.

    Raises ParameterError if the right-hand side is below e^4/256. Guo et al. 2024, Theorem B.16.
    """
    return _width(C / _c(alpha) * n**6 * L**16 * d / delta**4)


@_checked
def width_gen_gd(n, L, d, delta, tau, form="printed", *, C=1):
    """m = C n^{10+2τ} L^{15+2τ} d^{1+2τ} / δ^{4-2τ}, at which eq. (7) bounds the risk.

    rederived: n^{5+2τ}, the width at which the arguments of eq. (7) that are free of t are tight.
    Guo et al. 2024, Theorem 3.4.
    """
    power = 10 if _printed(form) else 5
    return C * n ** (power + 2 * tau) * L ** (15 + 2 * tau) * d ** (1 + 2 * tau) / delta ** (4 - 2 * tau)


@_checked
def width_gen_sgd(n, L, d, b, delta, tau, form="printed", *, C=1):
    """m = C n^{13+2τ} L^{15+2τ} d^{1+2τ} / (b δ^{5-2τ}), at which eq. (134) bounds the risk.

    rederived: n^{8+2τ}, the width at which the arguments of eq. (134) that are free of t are tight.
    τ is the theorem's ε. Guo et al. 2024, Theorem B.12.
    """
    _check_batch(b, n)
    power = 13 if _printed(form) else 8
    data = n ** (power + 2 * tau) / (b * delta ** (5 - 2 * tau))
    return C * data * L ** (15 + 2 * tau) * d ** (1 + 2 * tau)


@_checked
def width_gen_special(n, L, d, tau, *, C=1):
    """m = C n^{1+2τ} L^{12+2τ} d^{5+2τ}, at which Theorem B.15 bounds the risk.

    Guo et al. 2024, Theorem B.15.
    """
    return C * n ** (1 + 2 * tau) * L ** (12 + 2 * tau) * d ** (5 + 2 * tau)


@_checked
def eta_max_gd(n, L, m, d, *, C=1):
    """η ≤ C d / (n L^2 m), for the summed loss. Guo et al. 2024, Theorem 3.1."""
    return C * d / (n * L**2 * m)


@_checked
def eta_max_gd_lemma(n, L, m, d, delta, *, C=1):
    """η < C δ^{3/2} d^{1/2} / (n^3 L^{15/2} m^{1/2} ln^2 m), for the summed loss.

    Guo et al. 2024, Lemma B.9; Theorem 3.1 does not repeat the condition.
    """
    return C * delta**1.5 * d**0.5 / (n**3 * L**7.5 * m**0.5 * _ln(m) ** 2)


@_checked
def eta_max_sgd(n, L, m, d, delta, *, C=1):
    """η ≤ C d δ / (m n^3 L^3 ln^2 m), for the summed loss of the batch.

    Guo et al. 2024, Theorem 3.2.
    """
    return C * d * delta / (m * n**3 * L**3 * _ln(m) ** 2)


@_checked
def omega_semismooth(L, m, *, C=1):
    """ω < C / (L^{9/2} ln^{3/2} m), the radius of semi-smoothness.

    Guo et al. 2024, Lemmas 4.1 and B.4.
    """
    return C / (L**4.5 * _ln(m) ** 1.5)


@_checked
def omega_gradient(n, L, m, delta, *, C=1):
    """ω < C δ^{3/2} / (n^{3/2} L^{15/2} ln^{3/2} m), the radius of the gradient bounds.

    Guo et al. 2024, Lemma 4.2.
    """
    return C * delta**1.5 / (n**1.5 * L**7.5 * _ln(m) ** 1.5)


@_checked
def omega_special(L, m, d, *, C=1):
    """ω < C / (d^{3/2} L^6 ln^{3/2} m), the radius of the gradient bound on special data.

    Guo et al. 2024, Lemma B.19, eq. (166).
    """
    return C / (d**1.5 * L**6 * _ln(m) ** 1.5)


@_checked
def omega_direct(t, eta, n, m, d, form="printed", *, C=1):
    """‖W^(t) - W^(0)‖_2 ≤ C η t √(n m ln(m) / d), the sum of t bounds on the gradient.

    rederived: C η t n √(m/d) ln(m)^{1/4}, which eqs. (9) and (108) give: the paper takes √(ln m) for
    the square root of the initial loss, where (108) has √n ln(m)^{1/4}. Guo et al. 2024, Appendix B.9.
    """
    root_loss = np.sqrt(_ln(m)) if _printed(form) else np.sqrt(n * np.sqrt(_ln(m)))
    return C * eta * t * np.sqrt(n * m / d) * root_loss


@_checked
def omega_universal(n, d, delta, m, L0, alpha=None, *, C=1):
    """‖W^(t) - W^(0)‖_2 ≤ C √(n d L0 / (δ m)) at every t, times c(α)^{-1/2} if α is given.

    Guo et al. 2024, Appendix B.9; with α eq. (111).
    """
    bound = C * np.sqrt(n * d * L0 / (delta * m))
    return bound if alpha is None else bound / np.sqrt(_c(alpha))


@_checked(alpha=(lambda x: x <= 1, "at most 1"))
def semismooth_rhs(alpha, w, omega, loss, n, L, m, d, *, C1=1, C2=1):
    """C2 n L^2 m w^2 / d + C1 √(c(α)) ω^{1/3} L^2 √(m n loss ln(m) / d) w, with w = ‖W'‖_2.

    Bounds L(W + W') - L(W) - <∇L(W), W'>. α = 1 is the linear network, which has no second term.
    Guo et al. 2024, Lemma 4.1, eq. (8).
    """
    kink = np.sqrt(_c(alpha)) * np.cbrt(omega) * L**2 * np.sqrt(m * n * loss * _ln(m) / d)
    return C2 * n * L**2 * m / d * w**2 + C1 * kink * w


@_checked
def grad_upper_layer(loss, m, n, d, *, C=1):
    """‖∇_{W_l} L‖_F^2 ≤ C m n loss / d, for every layer. Guo et al. 2024, Lemma 4.2, eq. (9)."""
    return C * m * n / d * loss


@_checked
def grad_lower(alpha, loss, delta, m, n, d, *, C=1):
    """‖∇L‖_F^2 ≥ C c(α) δ m loss / (n d). Guo et al. 2024, Lemma 4.2, eq. (10)."""
    return C * _c(alpha) * delta * m / (n * d) * loss


@_checked
def grad_lower_layer(alpha, v2, delta, m, n, d, L, *, C=1):
    """‖Σ_i G_{i,l}(v_i)‖_F^2 ≥ C c(α) δ m v2 / (n d L), with v2 = Σ_i ‖v_i‖^2.

    For any v_i in R^d. Guo et al. 2024, Lemma B.7.
    """
    return C * _c(alpha) * delta * m / (n * d * L) * v2


@_checked
def grad_lower_special(alpha, loss, m, d, *, C=1):
    """‖∇L(W^(0))‖_F^2 ≥ C c(α) m loss / d^2, on special data. Guo et al. 2024, Lemma B.18."""
    return C * _c(alpha) * m / d**2 * loss


@_checked
def norm_dev_prob(eps, m, L, *, C=1):
    """P(some ‖h_l‖ lies outside [1 - ε, 1 + ε]) ≤ exp(-C m ε^2 / L). Guo et al. 2024, Lemma B.1."""
    return np.exp(-C * m * eps**2 / L)


@_checked(alpha=_ANY_REAL)
def ln_norm_var(alpha, l, m):
    """Var ln ‖h_l‖^2 = (2 + l (6 (1 + α^4) / (1 + α^2)^2 - 1)) / m + O(m^{-2}), for ‖x‖ = 1.

    Any real α, l ≥ 0. Ours; it makes the sub-Gaussian constant of Guo et al. 2024, Lemma B.1, explicit.
    """
    r2 = _folded(alpha) ** 2
    return (2 + l * (6 * (1 + r2**2) / (1 + r2) ** 2 - 1)) / m


@_checked
def separation_lower(delta, l):
    """‖h_{i,l} - h_{j,l}‖ ≥ δ / (2 (l + 1)), for i != j. Guo et al. 2024, Lemma B.2, eq. (34)."""
    return delta / (2 * (l + 1))


@_checked
def cos2_upper(delta, L, *, C=1):
    """cos^2 of the angle of h_{i,l} and h_{j,l} ≤ 1 - C δ^2 / L^2, for i != j.

    Antipodal inputs violate it; the lemma has to exclude them. Guo et al. 2024, Lemma B.2, eq. (29).
    """
    return 1 - C * delta**2 / L**2


@_checked(alpha=_ANY_REAL)
def dual_act(phi, alpha):
    """E s(u.h) s(u.h') = cos(φ)/2 + c(α) (sin φ - φ cos φ) / (2π), s the rescaled leaky ReLU.

    h and h' are unit vectors at angle φ in [0, π], u is standard normal, α any real.
    Ours; Guo et al. 2024, eq. (33), with its remainder evaluated.
    """
    return np.cos(phi) / 2 + _c(alpha) / (2 * np.pi) * (np.sin(phi) - phi * np.cos(phi))


@_checked(alpha=_ANY_REAL)
def dual_dact(phi, alpha):
    """E s'(u.h) s'(u.h') = (1 - c(α) φ / π) / 2, s the rescaled leaky ReLU.

    h and h' are unit vectors at angle φ in [0, π], u is standard normal, α any real. Ours.
    """
    return (1 - _c(alpha) * phi / np.pi) / 2


@_checked
def prod_norm_bound(L, *, C=1):
    """‖W_{b+1} D_b W_b ... D_a‖ ≤ C √(L). Guo et al. 2024, Lemma B.3.1."""
    return C * np.sqrt(L)


@_checked
def back_bound(m, d, *, C=1):
    """‖B D_L W_L ... D_a W_a‖ ≤ C √(m / d). Guo et al. 2024, Lemma B.3.2."""
    return C * np.sqrt(m / d)


@_checked
def flips_bound(omega, m, L, *, C=1):
    """‖D'_l‖_0 ≤ C m ω^{2/3} L, a layer's sign changes. Guo et al. 2024, Lemma B.4.1."""
    return C * m * omega ** (2 / 3) * L


@_checked
def flips_adversarial(omega, m):
    """m (3 ω^2 / π)^{1/3}, the most signs of one layer that a W' of norm ω flips.

    For ‖h_{l-1}‖ = 1, ω small against 1 and m large. Ours; it attains the power of ω of Guo et al.
    2024, Lemma B.4.1.
    """
    return m * np.cbrt(3 * omega**2 / np.pi)


@_checked
def flips_random(omega, m):
    """m arctan(ω / (2 √2)) / π, the expected flips by an i.i.d. Gaussian W' of spectral norm ω.

    One layer, m large. Ours.
    """
    return m / np.pi * np.arctan(omega / (2 * np.sqrt(2)))


@_checked
def dg_bound(alpha, omega, L, *, C=1):
    """‖D'_l g_l‖ ≤ C √(c(α)) ω L^{3/2}. Guo et al. 2024, Lemma B.4.1."""
    return C * np.sqrt(_c(alpha)) * omega * L**1.5


@_checked
def hprime_bound(omega, L, m, *, C=1):
    """‖h'_l‖, ‖g'_l‖ ≤ C ω L^{5/2} √(ln m). Guo et al. 2024, Lemma B.4.3."""
    return C * omega * L**2.5 * np.sqrt(_ln(m))


@_checked
def back_perturb_bound(alpha, omega, L, m, d, *, C=1):
    """The change of B D_L W_L ... D_a has norm ≤ C √(c(α)) ω^{1/3} L^2 √(m ln(m) / d).

    Guo et al. 2024, Lemma B.5.4.
    """
    return C * np.sqrt(_c(alpha)) * np.cbrt(omega) * L**2 * np.sqrt(m * _ln(m) / d)


@_checked
def linearisation_bound(alpha, omega, L, m, *, C=1):
    """|f(W) - f(V) - <∇f(V), W - V>| ≤ C √(c(α)) ω^{4/3} L^2 √(m ln m), with V = W^(0).

    f is one coordinate of the output, ‖W - V‖_2 < ω. Guo et al. 2024, Lemma B.11.
    """
    return C * np.sqrt(_c(alpha)) * omega ** (4 / 3) * L**2 * np.sqrt(m * _ln(m))


def _curved(omega, alpha, L, m, d):
    return np.sqrt(_c(alpha)) * d * _ln(m) * np.sqrt(m) * L**2 * omega ** (4 / 3)


def _linear(omega, n, L, m, d):
    return d * np.sqrt(m * _ln(m) / n) * L * omega


def _data(n, m, d):
    return d * np.sqrt(_ln(m) / n)


@_checked
def gen_lemma43(loss, omega, alpha, n, L, m, d, *, C1=1, C2=1, C3=1):
    """R(W) ≤ loss/n + C1 √(c m) d ln(m) L^2 ω^{4/3} + (C2 √m L ω + C3) d √(ln(m)/n).

    c is c(α), ‖W - W^(0)‖_2 < ω. Guo et al. 2024, Lemma 4.3.
    """
    complexity = C1 * _curved(omega, alpha, L, m, d) + C2 * _linear(omega, n, L, m, d)
    return loss / n + complexity + C3 * _data(n, m, d)


def _minima(timed, capped, C1, C2, C3, C4):
    return np.minimum(C1 * capped[0], C2 * timed[0]), np.minimum(C3 * timed[1], C4 * capped[1])


def _complexity(direct, radius, alpha, n, L, m, d, *constants):
    """The middle terms of Lemma 4.3 at both bounds on ω, the smaller of each."""
    timed = _curved(direct, alpha, L, m, d), _linear(direct, n, L, m, d)
    capped = _curved(radius, alpha, L, m, d), _linear(radius, n, L, m, d)
    return _minima(timed, capped, *constants)


def _timed(t, alpha, n, L, m, d):
    """The t-dependent arguments of the minima of eq. (7), which Theorem B.15 shares."""
    first = np.sqrt(_c(alpha)) * np.cbrt(d) * t ** (4 / 3) / (m ** (1 / 6) * (n * L) ** (2 / 3))
    return first, np.sqrt(d * _ln(m)) * t / (n * L)


def _capped(n, L, d, delta, m, tau):
    """The t-free arguments of the minima of eq. (7)."""
    first = d ** (1.5 + tau) * delta**tau * n ** (0.5 + tau) / (L ** (0.5 - tau) * _ln(m))
    return first, n ** (0.5 + tau) * L ** (2 + tau) * d ** (0.5 + tau) / (delta ** (0.5 - tau) * _ln(m))


def _bound(parts, terms):
    return parts if terms else sum(parts)


@_checked
def gen_gd(t, alpha, n, L, d, delta, m, eta, tau, *, L0=None, C=1, C1=1, C2=1, C3=1, C4=1, C5=1,
           form="printed", terms=False):  # fmt: skip
    """R(W^(t)) ≤ γ^t L0 + min{C1 a, C2 √c b} + min{C3 e, C4 f} + C5 d √(ln(m)/n), by GD.

    printed: eq. (7), where, with η = d/(n L^2 m) substituted everywhere but in γ,
        a = d^{3/2+τ} δ^τ n^{1/2+τ}/(L^{1/2-τ} ln m), b = d^{1/3} t^{4/3} / (m^{1/6} (nL)^{2/3}),
        f = n^{1/2+τ} L^{2+τ} d^{1/2+τ}/(δ^{1/2-τ} ln m), e = √(d ln m) t / (nL).
    rederived: Lemma 4.3 at the loss γ^t L0, with `omega_gradient` in a and f and `omega_direct`
    (rederived) in b and e; τ does not enter. Against eq. (7) it has the factor 1/n at L0,
    n^{2/3} d^{4/3} ln(m)^{4/3} at b, n^{1/2} d ln(m)^{1/4} at e and, at `width_gen_gd` (rederived), √c
    at a and d/L at f.

    C scales 1 - γ. L0 is n √(ln m), eq. (108), unless given. terms=True: the four terms, not the sum.
    Guo et al. 2024, Theorem 3.4 and Appendix B.9.
    """
    train = _power(C * _rate_gd(alpha, eta, delta, m, n, d), t) * (n * np.sqrt(_ln(m)) if L0 is None else L0)
    if _printed(form):
        timed, capped = _timed(t, alpha, n, L, m, d), _capped(n, L, d, delta, m, tau)
        middle = _minima(timed, capped, C1, C2, C3, C4)
    else:
        train = train / n
        direct, radius = omega_direct(t, eta, n, m, d, form), omega_gradient(n, L, m, delta)
        middle = _complexity(direct, radius, alpha, n, L, m, d, C1, C2, C3, C4)
    return _bound((train, *middle, C5 * _data(n, m, d)), terms)


def _timed_sgd(t, alpha, n, L, m, d):
    """The t-dependent arguments of the minima of eq. (134)."""
    lm, power = _ln(m), m ** (1 / 6) * n ** (10 / 3)
    first = np.sqrt(_c(alpha)) * np.cbrt(d) * t ** (4 / 3) / (power * L**2 * lm ** (8 / 3))
    return first, np.sqrt(d) * t / (n**3 * L**2 * lm**1.5)


def _capped_sgd(n, L, d, b, delta, m, tau):
    """The t-free arguments of the minima of eq. (134)."""
    common = n ** (2 + tau) / (np.sqrt(b) * _ln(m))
    first = d ** (1.5 + tau) / (delta ** (0.5 - tau) * L ** (0.5 - tau))
    return common * first, common * L ** (2 + tau) * d ** (0.5 + tau) / delta ** (1 - tau)


@_checked
def gen_sgd(t, alpha, n, L, d, b, delta, m, eta, tau, *, L0=None, C=1, C1=1, C2=1, C3=1, C4=1, C5=1,
            form="printed", terms=False):  # fmt: skip
    """R(W^(t)) ≤ γ^t L0 + min{C1 a, C2 √c b} + min{C3 e, C4 f} + C5 d √(ln(m)/n), by SGD.

    printed: eq. (134), where, with η = d δ/(n^3 L^3 m ln^2 m) substituted everywhere but in γ,
        a = d^{3/2+τ} n^{2+τ} / (b^{1/2} δ^{1/2-τ} L^{1/2-τ} ln m),
        b = d^{1/3} t^{4/3} / (m^{1/6} n^{10/3} L^2 ln^{8/3} m),    e = √d t / (n^3 L^2 ln^{3/2} m),
        f = n^{2+τ} L^{2+τ} d^{1/2+τ} / (b^{1/2} δ^{1-τ} ln m),
    τ is the theorem's ε, and L0 is ln m unless given.
    rederived: Lemma 4.3 at the loss γ^t L0, with `omega_gradient` in a and f and, by (108) and (115),
    ω = η t √(b m n √(ln m) / d) in b and e; L0 is n √(ln m) unless given; τ does not enter.

    C scales 1 - γ. terms=True: the four terms, not the sum. Guo et al. 2024, Theorem B.12, Appendix B.10.
    """
    power, root = _power(C * _rate_sgd(alpha, eta, b, delta, m, n, d), t), np.sqrt(_ln(m))
    if _printed(form):
        train = power * (root**2 if L0 is None else L0)
        timed, capped = _timed_sgd(t, alpha, n, L, m, d), _capped_sgd(n, L, d, b, delta, m, tau)
        middle = _minima(timed, capped, C1, C2, C3, C4)
    else:
        train = power * (root if L0 is None else L0 / n)
        direct, radius = eta * t * np.sqrt(b * m * n * root / d), omega_gradient(n, L, m, delta)
        middle = _complexity(direct, radius, alpha, n, L, m, d, C1, C2, C3, C4)
    return _bound((train, *middle, C5 * _data(n, m, d)), terms)


@_checked
def gen_special(t, alpha, n, L, d, m, eta, tau, *, L0=None, C=1, C1=1, C2=1, C3=1, C4=1, C5=1,
                form="printed", terms=False):  # fmt: skip
    """R(W^(t)) ≤ γ^t L0 + min{C1 a, C2 √c b} + min{C3 e, C4 f} + C5 d √(ln(m)/n), special data.

    As `gen_gd`, with `gamma_special`, `omega_special` for `omega_gradient` and, printed,
        a = d^{3/2+τ} n^{1/2+τ} L^τ / ln m,    f = n^τ L^{1+τ} d^{2+τ} / ln m.
    Rederived, a has the factor √c at `width_gen_special`, and f is as printed.
    Guo et al. 2024, Theorem B.15.
    """
    lm = _ln(m)
    train = _power(C * _rate_special(alpha, eta, m, d), t) * (n * np.sqrt(lm) if L0 is None else L0)
    if _printed(form):
        common = (n * L * d) ** tau / lm
        capped = common * d**1.5 * n**0.5, common * L * d**2
        middle = _minima(_timed(t, alpha, n, L, m, d), capped, C1, C2, C3, C4)
    else:
        train = train / n
        direct, radius = omega_direct(t, eta, n, m, d, form), omega_special(L, m, d)
        middle = _complexity(direct, radius, alpha, n, L, m, d, C1, C2, C3, C4)
    return _bound((train, *middle, C5 * _data(n, m, d)), terms)


@_checked
def appA_small_t(kappa, alpha, n, L, d, delta, m, *, C=1, C0=1, C2=1, C3=1, terms=False):
    """C0 exp(-C c δ/N^{1+κ}) ln m + C2 √c u/N^{4κ/3} + C3 √(d ln m)/N^κ, N = n L.

    The first three terms of eq. (7) at t = N^{1-κ}, 0 < κ < 1. The printed width of Theorem 3.4 at
    τ = 0 is in u = d^{1/6} δ^{2/3} / (n L^{11/6}). terms=True: the three terms, not the sum.
    Guo et al. 2024, Appendix A.
    """
    N, c = n * L, _c(alpha)
    train = C0 * np.exp(-C * c * delta / N ** (1 + kappa)) * _ln(m)
    curved = C2 * np.sqrt(c) * d ** (1 / 6) * delta ** (2 / 3) / (n * L ** (11 / 6) * N ** (4 * kappa / 3))
    return _bound((train, curved, C3 * np.sqrt(d * _ln(m)) / N**kappa), terms)


@_checked
def appA_at_T(eps, alpha, n, L, d, delta, m, tau, *, C1=1, C2=1, C3=1, C4=1, form="printed", terms=False):
    """ε + min{C1 a, C2 √c b} + min{C3 e, C4 f}, eq. (7) but for its last term, at the T of loss ε.

    a, b, e, f are those of `gen_gd` (printed). rederived: T = (n L)^2 ln(n √(ln m)/ε) / (c δ).
    printed: T = c δ ln(n √(ln m)/ε) / (n L)^2, which is what Appendix A has put into b and e; it
    turns c^{-5/6} and c^{-1} into c^{11/6} and c. terms=True: the three terms, not the sum.
    Guo et al. 2024, Appendix A.
    """
    scale = (n * L) ** 2 / (_c(alpha) * delta)
    T = np.log(n * np.sqrt(_ln(m)) / eps) * (1 / scale if _printed(form) else scale)
    if np.any(T < 0):
        raise ParameterError(f"eps = {eps} exceeds the initial loss n sqrt(ln m)")
    timed, capped = _timed(T, alpha, n, L, m, d), _capped(n, L, d, delta, m, tau)
    return _bound((eps, *_minima(timed, capped, C1, C2, C3, C4)), terms)


@_checked
def exp_loss(r2, lam):
    """(1/2) Σ_i exp(λ ‖y_i - ŷ_i‖^2), r2 the squared residuals, (..., n) -> (...); at least n/2.

    Guo et al. 2024, eq. (137).
    """
    return np.sum(np.exp(lam * r2), axis=-1) / 2


@_checked
def gamma_hat(L1, L2, t1, t2):
    """(L2 / L1)^{1/(t2 - t1)}, the empirical rate from the losses L1 and L2 at the steps t1 < t2.

    Guo et al. 2024, Section 5.2.
    """
    if np.any(t2 <= t1):
        raise ParameterError(f"t2 must exceed t1, got {t1} and {t2}")
    return (L2 / L1) ** (1 / (t2 - t1))


@_checked
def C_gamma(gamma0, C0=1):
    """C_gamma = C0 (1 - gamma0), which makes 1 - C_gamma c(α) fit the rate gamma0 measured at α = 0.

    Guo et al. 2024, eq. (17).
    """
    return C0 * (1 - gamma0)
