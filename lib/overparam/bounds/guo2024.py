"""Guo, Li and Lerman (AISTATS 2024): leaky ReLUs in wide networks.

n unit-norm inputs at distance at least δ from each other, outputs in R^d, L trained hidden layers
of width m, leak α, step size η, batch size b, t steps, loss = L(W), the sum of the squared
residuals, with initial value L0, and ω, a bound on the spectral norm of the change of every weight
matrix. The rederived forms are what the paper's own lemmas give.

Theorem 3.1 has the width `width_gd`, the step size `eta_max_gd` and the factor `gamma_gd` of the
loss in a step, so that the loss after t steps is at most γ^t L0; its own proof gives n^8 for the
n^5 of the width. Theorem 3.2 has `width_sgd`, `eta_max_sgd`, `gamma_sgd`, and `burnin_sgd`, from
which step on. Theorem 3.4 has `width_gen_gd` and `gen_gd`, Theorem B.14 `width_special` and
`gamma_special`, Theorem B.16 `gamma_convex`.
"""

import numpy as np
from scipy.special import lambertw

from ..errors import ParameterError
from ._arguments import checker

_POSITIVE = (lambda x: (x > 0) & (x < np.inf), "positive and finite")
_ANY_REAL = (lambda x: ~np.isnan(x), "a real number or infinite")
_checked = checker(
    {
        "alpha": (lambda x: x < 1, "below 1"),
        "phi": (lambda x: (x >= 0) & (x <= np.pi), "in [0, pi]"),
        "n L d b m": (lambda x: (x >= 1) & (x < np.inf), "at least 1 and finite"),
        "delta eta tau eps gamma0 L0 L1 L2 C C0 C1 C2 C3 C4": _POSITIVE,
        "t t1 t2 l omega w loss E": (lambda x: (x >= 0) & (x < np.inf), "nonnegative and finite"),
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
    # c and the norm's variance are the same at 1/alpha, which keeps infinities out of their
    # quotients.
    large = np.abs(alpha) > 1
    return np.where(large, 1 / np.where(large, alpha, 1), alpha)[()]


def _c(alpha):
    r = _folded(alpha)
    return (1 - r) ** 2 / (1 + r**2)


@_checked(alpha=_ANY_REAL)
def c_alpha(alpha):
    """c(α) = (1 - α)^2 / (1 + α^2), the factor by which the leak enters every bound.

    Any real α; c(-1) = 2 is the maximum, c(1) = 0, c(±∞) = 1, c(1/α) = c(α). Source: after eq.
    (10).
    """
    return _c(alpha)


def _rate_gd(alpha, eta, delta, m, n, d):
    return _c(alpha) * eta * delta * m / (n * d)


def _power(rate, t):
    # 1 - rate rounds to 1 at the paper's own parameters, so gamma^t has to be formed from the rate.
    if np.any(rate >= 1):
        raise ParameterError(f"gamma = 1 - {rate} is no convergence rate: eta is too large")
    return np.exp(t * np.log1p(-rate))


@_checked
def gamma_gd(alpha, eta, delta, m, n, d, *, C=1):
    """γ = 1 - C c(α) η δ m / (n d), the loss ratio of a step of gradient descent.

    Source: eq. (4).
    """
    return 1 - C * _rate_gd(alpha, eta, delta, m, n, d)


@_checked
def gamma_sgd(alpha, eta, b, delta, m, n, d, *, C=1):
    """γ = 1 - C c(α) η b δ m / (n^2 d), the same for SGD on the loss of b samples.

    Source: eq. (6).
    """
    _check_batch(b, n)
    return 1 - C * (_rate_gd(alpha, eta, delta, m, n, d) * b / n)


@_checked
def gamma_special(alpha, eta, m, d, *, C=1):
    """γ = 1 - C c(α) η m / d^2, where the initial residual lies in the class F_{L-1}.

    Source: Theorem B.14.
    """
    return 1 - C * (_c(alpha) * eta * m / d**2)


@_checked
def gamma_convex(alpha, E, delta, eta, m, n, d, L, *, C=1):
    """γ = 1 - C c(α) E δ η m / (n^2 d L), a step's ratio of the convex excess loss E.

    Source: eq. (139).
    """
    return 1 - C * E / (n * L) * _rate_gd(alpha, eta, delta, m, n, d)


@_checked
def burnin_sgd(alpha, n, L, b, delta, m, *, C=1):
    """t > C n^5 L^2 ln^2(m) / (c(α)^2 b δ^2), from where on SGD's rate is proved.

    Source: eq. (121).
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
    """The least m > e^4 with m / ln^4 m ≥ C n^5 L^15 d / (c(α) δ^4), if any.

    Source: Theorem 3.1.
    """
    return _width(C / _c(alpha) * n**5 * L**15 * d / delta**4)


@_checked
def width_sgd(alpha, n, L, d, b, delta, *, C=1):
    """The same of m / ln^4 m ≥ C n^8 L^15 d / (c(α)^4 b δ^5), as `width_gd`.

    Source: Theorem 3.2.
    """
    _check_batch(b, n)
    return _width(C / _c(alpha) ** 4 * n**8 * L**15 * d / (b * delta**5))


@_checked
def width_special(alpha, n, L, d, *, C=1):
    """The same of m / ln^4 m ≥ C d^5 n L^12 / c(α), as `width_gd`.

    The proof has the factor 1/c(α), after eq. (165); the statement omits it. Source: Theorem B.14.
    """
    return _width(C / _c(alpha) * d**5 * n * L**12)


@_checked
def width_gen_gd(n, L, d, delta, tau, form="printed", *, C=1):
    """m = C n^{10+2τ} L^{15+2τ} d^{1+2τ} / δ^{4-2τ}, at which eq. (7) bounds the risk.

    rederived: n^{5+2τ}, the width at which the arguments of eq. (7) that are free of t are tight.
    Source: Theorem 3.4.
    """
    power = 10 if _printed(form) else 5
    return (
        C
        * n ** (power + 2 * tau)
        * L ** (15 + 2 * tau)
        * d ** (1 + 2 * tau)
        / delta ** (4 - 2 * tau)
    )


@_checked
def eta_max_gd(n, L, m, d, *, C=1):
    """η ≤ C d / (n L^2 m), for the summed loss. Source: Theorem 3.1."""
    return C * d / (n * L**2 * m)


@_checked
def eta_max_sgd(n, L, m, d, delta, *, C=1):
    """η ≤ C d δ / (m n^3 L^3 ln^2 m), for the summed loss of the batch. Source: Theorem 3.2."""
    return C * d * delta / (m * n**3 * L**3 * _ln(m) ** 2)


@_checked
def omega_gradient(n, L, m, delta, *, C=1):
    """ω < C δ^{3/2} / (n^{3/2} L^{15/2} ln^{3/2} m), the radius of the gradient bounds.

    Source: Lemma 4.2.
    """
    return C * delta**1.5 / (n**1.5 * L**7.5 * _ln(m) ** 1.5)


@_checked
def omega_direct(t, eta, n, m, d, form="printed", *, C=1):
    """‖W^(t) - W^(0)‖_2 ≤ C η t √(n m ln(m) / d), the sum of t bounds on the gradient.

    rederived: C η t n √(m/d) ln(m)^{1/4}, which eqs. (9) and (108) give: the paper takes √(ln m)
    for the square root of the initial loss, where (108) has √n ln(m)^{1/4}. Source: Appendix B.9.
    """
    root_loss = np.sqrt(_ln(m)) if _printed(form) else np.sqrt(n * np.sqrt(_ln(m)))
    return C * eta * t * np.sqrt(n * m / d) * root_loss


@_checked(alpha=(lambda x: x <= 1, "at most 1"))
def semismooth_rhs(alpha, w, omega, loss, n, L, m, d, *, C1=1, C2=1):
    """C2 n L^2 m w^2 / d + C1 √(c(α)) ω^{1/3} L^2 √(m n loss ln(m) / d) w, with w = ‖W'‖_2.

    Bounds L(W + W') - L(W) - <∇L(W), W'>. α = 1 is the linear network, which has no second term.
    Source: Lemma 4.1, eq. (8).
    """
    kink = np.sqrt(_c(alpha)) * np.cbrt(omega) * L**2 * np.sqrt(m * n * loss * _ln(m) / d)
    return C2 * n * L**2 * m / d * w**2 + C1 * kink * w


@_checked
def grad_lower(alpha, loss, delta, m, n, d, *, C=1):
    """‖∇L‖_F^2 ≥ C c(α) δ m loss / (n d). Source: Lemma 4.2, eq. (10)."""
    return C * _c(alpha) * delta * m / (n * d) * loss


@_checked(alpha=_ANY_REAL)
def ln_norm_var(alpha, l, m):
    """Var ln ‖h_l‖^2 = (2 + l (6 (1 + α^4) / (1 + α^2)^2 - 1)) / m + O(m^{-2}), for ‖x‖ = 1.

    Any real α, l ≥ 0. Ours; it makes the constant of Lemma B.1 explicit.
    """
    r2 = _folded(alpha) ** 2
    return (2 + l * (6 * (1 + r2**2) / (1 + r2) ** 2 - 1)) / m


@_checked
def separation_lower(delta, l):
    """‖h_{i,l} - h_{j,l}‖ ≥ δ / (2 (l + 1)), for i != j. Source: Lemma B.2, eq. (34)."""
    return delta / (2 * (l + 1))


@_checked(alpha=_ANY_REAL)
def dual_act(phi, alpha):
    """E s(u.h) s(u.h') = cos(φ)/2 + c(α) (sin φ - φ cos φ) / (2π), s the rescaled leaky ReLU.

    h and h' are unit vectors at angle φ in [0, π], u is standard normal, α any real. Ours: eq. (33)
    with its remainder evaluated.
    """
    return np.cos(phi) / 2 + _c(alpha) / (2 * np.pi) * (np.sin(phi) - phi * np.cos(phi))


@_checked
def prod_norm_bound(L, *, C=1):
    """‖W_{b+1} D_b W_b ... D_a‖ ≤ C √(L). Source: Lemma B.3.1."""
    return C * np.sqrt(L)


@_checked
def back_bound(m, d, *, C=1):
    """‖B D_L W_L ... D_a W_a‖ ≤ C √(m / d). Source: Lemma B.3.2."""
    return C * np.sqrt(m / d)


@_checked
def flips_bound(omega, m, L, *, C=1):
    """‖D'_l‖_0 ≤ C m ω^{2/3} L, a layer's sign changes. Source: Lemma B.4.1."""
    return C * m * omega ** (2 / 3) * L


@_checked
def dg_bound(alpha, omega, L, *, C=1):
    """‖D'_l g_l‖ ≤ C √(c(α)) ω L^{3/2}. Source: Lemma B.4.1."""
    return C * np.sqrt(_c(alpha)) * omega * L**1.5


@_checked
def hprime_bound(omega, L, m, *, C=1):
    """‖h'_l‖, ‖g'_l‖ ≤ C ω L^{5/2} √(ln m). Source: Lemma B.4.3."""
    return C * omega * L**2.5 * np.sqrt(_ln(m))


@_checked
def back_perturb_bound(alpha, omega, L, m, d, *, C=1):
    """B D_L W_L ... D_a changes by at most C √(c(α)) ω^{1/3} L^2 √(m ln(m) / d).

    Source: Lemma B.5.4.
    """
    return C * np.sqrt(_c(alpha)) * np.cbrt(omega) * L**2 * np.sqrt(m * _ln(m) / d)


@_checked
def linearisation_bound(alpha, omega, L, m, *, C=1):
    """|f(W) - f(V) - <∇f(V), W - V>| ≤ C √(c(α)) ω^{4/3} L^2 √(m ln m), V = W^(0).

    Source: Lemma B.11.
    """
    return C * np.sqrt(_c(alpha)) * omega ** (4 / 3) * L**2 * np.sqrt(m * _ln(m))


def _curved(omega, alpha, L, m, d):
    """The term of Lemma 4.3 from the sign changes."""
    return np.sqrt(_c(alpha)) * d * _ln(m) * np.sqrt(m) * L**2 * omega ** (4 / 3)


def _linear(omega, n, L, m, d):
    """The term of Lemma 4.3 from the linearised net."""
    return d * np.sqrt(m * _ln(m) / n) * L * omega


def _data(n, m, d):
    return d * np.sqrt(_ln(m) / n)


@_checked
def gen_lemma43(loss, omega, alpha, n, L, m, d, *, C1=1, C2=1, C3=1):
    """R(W) ≤ loss/n + C1 √(c m) d ln(m) L^2 ω^{4/3} + (C2 √m L ω + C3) d √(ln(m)/n).

    c is c(α), ‖W - W^(0)‖_2 < ω. Source: Lemma 4.3.
    """
    complexity = C1 * _curved(omega, alpha, L, m, d) + C2 * _linear(omega, n, L, m, d)
    return loss / n + complexity + C3 * _data(n, m, d)


def _timed(t, alpha, n, L, m, d):
    """√c b and e of `gen_gd`, which grow with t."""
    curved = np.sqrt(_c(alpha)) * np.cbrt(d) * t ** (4 / 3) / (m ** (1 / 6) * (n * L) ** (2 / 3))
    return curved, np.sqrt(d * _ln(m)) * t / (n * L)


def _capped(n, L, d, delta, m, tau):
    """a and f of `gen_gd`, which are free of t."""
    curved = d ** (1.5 + tau) * delta**tau * n ** (0.5 + tau) / (L ** (0.5 - tau) * _ln(m))
    return curved, n ** (0.5 + tau) * L ** (2 + tau) * d ** (0.5 + tau) / (
        delta ** (0.5 - tau) * _ln(m)
    )


@_checked
def gen_gd(t, alpha, n, L, d, delta, m, eta, tau, *, L0=None, form="printed", terms=False):
    """R(W^(t)) ≤ γ^t L0 + min{a, √c b} + min{e, f} + d √(ln(m)/n), by GD, all constants 1.

    printed: eq. (7), where, with η = d/(n L^2 m) substituted everywhere but in γ,
        a = d^{3/2+τ} δ^τ n^{1/2+τ}/(L^{1/2-τ} ln m), b = d^{1/3} t^{4/3} / (m^{1/6} (nL)^{2/3}),
        f = n^{1/2+τ} L^{2+τ} d^{1/2+τ}/(δ^{1/2-τ} ln m), e = √(d ln m) t / (nL).
    rederived: Lemma 4.3 at the loss γ^t L0, with `omega_gradient` in a and f and `omega_direct`
    (rederived) in b and e; τ does not enter. Against eq. (7) it has the factor 1/n at L0, n^{2/3}
    d^{4/3} ln(m)^{4/3} at b, n^{1/2} d ln(m)^{1/4} at e and, at `width_gen_gd` (rederived), √c at a
    and d/L at f.

    L0 is n √(ln m), eq. (108), unless given. terms=True: the four terms, not the sum.
    Source: Theorem 3.4 and Appendix B.9.
    """
    train = _power(_rate_gd(alpha, eta, delta, m, n, d), t) * (
        n * np.sqrt(_ln(m)) if L0 is None else L0
    )
    if _printed(form):
        timed, capped = _timed(t, alpha, n, L, m, d), _capped(n, L, d, delta, m, tau)
    else:
        train = train / n
        direct, radius = omega_direct(t, eta, n, m, d, form), omega_gradient(n, L, m, delta)
        timed = _curved(direct, alpha, L, m, d), _linear(direct, n, L, m, d)
        capped = _curved(radius, alpha, L, m, d), _linear(radius, n, L, m, d)
    parts = train, np.minimum(capped[0], timed[0]), np.minimum(timed[1], capped[1]), _data(n, m, d)
    return parts if terms else sum(parts)


@_checked
def appA_at_T(
    eps, alpha, n, L, d, delta, m, tau, *, C1=1, C2=1, C3=1, C4=1, form="printed", terms=False
):
    """ε + min{C1 a, C2 √c b} + min{C3 e, C4 f}, eq. (7) but for its last term, at the T of loss ε.

    a, b, e, f are those of `gen_gd` (printed). rederived: T = (n L)^2 ln(n √(ln m)/ε) / (c δ).
    printed: T = c δ ln(n √(ln m)/ε) / (n L)^2, which is what Appendix A has put into b and e; it
    turns c^{-5/6} and c^{-1} into c^{11/6} and c. terms=True: the three terms, not the sum. Source:
    Appendix A.
    """
    scale = (n * L) ** 2 / (_c(alpha) * delta)
    T = np.log(n * np.sqrt(_ln(m)) / eps) * (1 / scale if _printed(form) else scale)
    if np.any(T < 0):
        raise ParameterError(f"eps = {eps} exceeds the initial loss n sqrt(ln m)")
    timed, capped = _timed(T, alpha, n, L, m, d), _capped(n, L, d, delta, m, tau)
    parts = (
        eps,
        np.minimum(C1 * capped[0], C2 * timed[0]),
        np.minimum(C3 * timed[1], C4 * capped[1]),
    )
    return parts if terms else sum(parts)


@_checked
def gamma_hat(L1, L2, t1, t2):
    """(L2 / L1)^{1/(t2 - t1)}, the empirical rate of losses L1, L2 at steps t1 < t2.

    Source: Section 5.2.
    """
    if np.any(t2 <= t1):
        raise ParameterError(f"t2 must exceed t1, got {t1} and {t2}")
    return (L2 / L1) ** (1 / (t2 - t1))


@_checked
def C_gamma(gamma0, C0=1):
    """C0 (1 - gamma0): 1 - C_gamma c(α) fits the rate gamma0 measured at α = 0.

    Source: eq. (17).
    """
    return C0 * (1 - gamma0)
