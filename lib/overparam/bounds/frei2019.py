"""Frei, Cao, Gu (2019): generalization of overparameterized deep residual networks.

arXiv 1910.02934.
The net has x₁ = σ(W₁ᵀx), x_l = x_{l−1} + θσ(W_lᵀx_{l−1}) for l = 2..L, x_{L+1} = σ(W_{L+1}ᵀx_L) and
f = vᵀx_{L+1} with v = (1, .., 1, −1, .., −1); W_l has entries N(0, 2/m). γ is the margin of
Assumption 3.2, τ the radius of the neighbourhood ‖W_l − W_l⁽⁰⁾‖_F ≤ τ, E_S the surrogate error.
"""

import numpy as np

from ..errors import ParameterError
from ._arguments import AT_LEAST_0, AT_LEAST_1, POSITIVE, UP_TO_1, checker

_checked = checker(
    {
        "m": (lambda v: v >= 2, "at least 2"),  # v has as many +1 as -1
        "n d L K l": AT_LEAST_1,
        "tau theta k s h xnorm": AT_LEAST_0,
        "eta": POSITIVE,
        "ES abar": (lambda v: (v >= 0) & (v <= 1), "between 0 and 1"),
        "delta gamma": UP_TO_1,
    }
)


def _log_ratio(n, delta):
    """log(n/δ), which must not vanish where it is divided by."""
    if np.any(n <= delta):
        raise ParameterError(f"n must exceed delta, got n = {n}, delta = {delta}")
    return np.log(n / delta)


def _fixed_point(need, m, rtol, steps=1000):
    """The m = need(m) that iterating from m leads to, elementwise."""
    for _ in range(steps):
        before, m = m, need(m)
        if np.all(np.abs(m - before) <= rtol * m):
            return m
    raise ParameterError(f"the iteration for the width m did not converge, it came to m = {m}")


@_checked
def thm35_tau_max(gamma, m, *, nu=1.0):
    """ν γ¹² (log m)^(−3/2), the largest radius τ. Source: Theorem 3.5."""
    return nu * gamma**12 * np.log(m) ** -1.5


@_checked
def thm35_eta_max(tau, m, gamma, *, nu1=1.0):
    """ν′ min(τ m^(−1/2), γ⁴/m), the largest step size η. Source: Theorem 3.5."""
    return nu1 * np.minimum(tau / np.sqrt(m), gamma**4 / m)


@_checked
def thm35_Keta_max(tau, gamma, n, delta, *, nu2=1.0):
    """ν″ τ² γ⁴ (log(n/δ))^(−1/2), the longest training time Kη. Source: Theorem 3.5."""
    return nu2 * tau**2 * gamma**4 / np.sqrt(_log_ratio(n, delta))


def _width_needed(m, tau, d, L, n, gamma, delta):
    if not np.all(m > 1):
        raise ParameterError(f"the iteration for the width left m > 1, it came to m = {m}")
    terms = (
        tau ** (-4 / 3) * d * np.log(m / (tau * delta)),  # few ReLU patterns change (Lemma B.4)
        d * np.log(m * L / delta),  # activations bounded on the whole sphere (Lemma 4.1)
        tau ** (-2 / 3)
        * np.log(L / delta)
        / np.log(m),  # sparse vectors, at every layer (Lemma B.5)
        gamma**-2 * d * np.log(1 / gamma),  # a margin on the whole sphere (Proposition C.5)
        gamma**-2 * np.log(L / delta),  # and at every layer (Proposition C.5)
        np.log(n / delta),  # balanced patterns at every sample (eq. 42)
    )
    return np.maximum.reduce(np.broadcast_arrays(*terms))[()]


@_checked
def thm35_width(tau, d, L, n, gamma, delta, m=None, *, C=1.0, rtol=1e-12):
    """C max(A, B, D, E, F), the width that m must reach, implicit in m through logarithms.

    A = τ^(−4/3) d log(m/(τδ)), B = d log(mL/δ), D = τ^(−2/3) log(L/δ)/log m, F = log(n/δ) and
    E = γ⁻² max(d log(1/γ), log(L/δ)). m: the width at which to evaluate them; None, the default,
    gives the m that equals its own bound, iterated until it changes by at most rtol, relatively.
    Raises ParameterError where the iteration does not converge or leaves m > 1, and for τ = 0.
    Source: Theorem 3.5.
    """
    if np.any(tau == 0):
        raise ParameterError("tau must be positive: no finite width allows tau = 0")

    def needed(m):
        return C * _width_needed(m, tau, d, L, n, gamma, delta)

    return _fixed_point(needed, np.float64(100), rtol) if m is None else needed(m)


@_checked
def thm35_own_width(d, L, n, gamma, delta, error=None, *, nu=1.0, nu2=1.0, C=1.0):
    """The m at which the largest τ that Theorem 3.5 allows meets its condition on the width.

    That is m = `thm35_width` with τ = `thm35_tau_max`(γ, m). error: if given, m is also so large
    that (ii), at the longest time Kη allowed, promises E_S ≤ error: m ≥ error⁻² γ⁻⁸ τ⁻²
    log(n/δ)/ν″, with constant 1 in (ii). By iteration, as in `thm35_width`. Source: Theorem 3.5.
    """
    log_ratio = _log_ratio(n, delta)

    def needed(m):
        tau = nu * gamma**12 * np.log(m) ** -1.5
        width = C * _width_needed(m, tau, d, L, n, gamma, delta)
        return (
            width
            if error is None
            else np.maximum(width, log_ratio / (nu2 * (error * gamma**4 * tau) ** 2))
        )

    return _fixed_point(needed, np.float64(100), 1e-12)


@_checked
def thm35_surrogate(m, K, eta, n, delta, gamma, *, C=1.0):
    """C (Kηm)^(−1/2) (log(n/δ))^(1/4) γ⁻², a bound on the least E_S of K iterates.

    Source: Theorem 3.5 (ii).
    """
    return C / np.sqrt(K * eta * m) * np.log(n / delta) ** 0.25 * gamma**-2


@_checked
def thm36_rademacher(tau, m, n, *, C2=1.0):
    """C₂ (τ^(4/3) √(m log m) + τ √(m/n)), a bound on the τ-ball's complexity.

    Source: Theorem 3.6.
    """
    return C2 * (tau ** (4 / 3) * np.sqrt(m * np.log(m)) + tau * np.sqrt(m / n))


@_checked
def thm36_test_error(ES, tau, m, n, delta, *, C2=1.0, C3=1.0):
    """2E_S + `thm36_rademacher` + C₃ √(log(1/δ)/n), a bound on P(y f(x) < 0). Source: eq. (3)."""
    return 2 * ES + thm36_rademacher(tau, m, n, C2=C2) + C3 * np.sqrt(np.log(1 / delta) / n)


@_checked
def lemB2_product(theta, L, *, C=8**0.5):
    """exp(CθL), an upper bound on ‖∏_l (I + θΣ_l W_lᵀ)‖₂ where ‖W_l‖₂ ≤ C.

    The default C = 2√2 (ours) is the limit of ‖W_l‖₂ for square W_l and m → ∞. Source: Lemma B.2,
    eq. (12).
    """
    return np.exp(C * theta * L)


@_checked
def lem42_f(tau, m, h, *, C=1.0):
    """C τ^(1/3) √(m log m) h + C √m h², an upper bound on f minus its linearisation.

    h: as `h_dist` gives it. Source: Lemma 4.2.
    """
    return C * np.cbrt(tau) * np.sqrt(m * np.log(m)) * h + C * np.sqrt(m) * h**2


@_checked
def lem42_loss(tau, m, h, ES, *, C=1.0):
    """C τ^(1/3) √(m log m) h E_S + C m h², an upper bound on L_S minus its linearisation.

    h: as `h_dist` gives it. Source: Lemma 4.2.
    """
    return C * np.cbrt(tau) * np.sqrt(m * np.log(m)) * h * ES + C * m * h**2


@_checked
def lem43_lower(m, gamma, ES, *, C=1 / (150 * 256)):
    """C m γ⁴ E_S², a lower bound on ‖∇_{W_{L+1}} L_S‖_F²; the default C is the proof's.

    Source: Lemma 4.3.
    """
    return C * m * gamma**4 * ES**2


@_checked
def lemB5(tau, m, s, *, C=1.0):
    """C (τ√m + √(s log m)), a bound on |vᵀH_l^{L+1} a| over unit a with s nonzero entries.

    Source: Lemma B.5.
    """
    return C * (tau * np.sqrt(m) + np.sqrt(s * np.log(m)))


@_checked
def propC5_width(gamma, d, L, delta, *, C=1.0):
    """C γ⁻² (d log(1/γ) + log(L/δ)), a width at which every layer is separable.

    Source: Proposition C.5.
    """
    return C * gamma**-2 * (d * np.log(1 / gamma) + np.log(L / delta))


@_checked
def ref_norm(theta, L):
    """√(1 − 1/π) cosh(arsinh(1/√(π−1)) + θ(L−1)/√π), the limit of ‖x_L‖/‖x₁‖.

    For m → ∞ and θ → 0 at fixed θL.
    Ours: r = ‖x_l‖, S = m^(−1/2) Σ_j x_{l,j} obey r′ = S/√π, S′ = r/√π in t = θ(l−1), from r = 1, S
    = 1/√π.
    """
    start = np.arcsinh(1 / np.sqrt(np.pi - 1))
    return np.sqrt(1 - 1 / np.pi) * np.cosh(start + theta * (L - 1) / np.sqrt(np.pi))


@_checked
def ref_flip(tau):
    """(3τ²/π)^(1/3), the largest share of a layer's patterns that ‖ΔW_l‖_F ≤ τ can flip.

    For one input.
    Ours, for m → ∞ and to leading order in τ: flipping the fraction q of smallest pre-activations
    takes Σ_j z_j² = (π/3) q³ ‖x_{l−1}‖².
    """
    return np.cbrt(3 * tau**2 / np.pi)


@_checked
def ref_resid(tau, m, xnorm):
    """(√π/4) (3/(2π))^(2/3) ‖x_L‖ τ^(4/3) √m, a residual of the linearisation.

    That of the sign-aligned change of the last layer of size τ.
    Ours, for m → ∞ and to leading order in τ: among the neurons with v_j = +1, those of smallest
    |z_j| move to −z_j, which changes f by Σ_j |z_j| beyond its linearisation. xnorm: ‖x_L‖.
    """
    return np.sqrt(np.pi) / 4 * (3 / (2 * np.pi)) ** (2 / 3) * xnorm * tau ** (4 / 3) * np.sqrt(m)


@_checked
def ref_norm_wide(theta, L):
    """The limit of ‖x_L‖/‖x₁‖, and of ‖∂x_L/∂x‖₂ at fixed d, for m → ∞ at any θ.

    Ours: r = ‖x_l‖ and S = m^(−1/2) Σ_j x_{l,j} obey r² ← (1 + θ²) r² + 2θrS/√π and S ← S + θr/√π
    at each of the L − 1 layers, from r = 1, S = 1/√π. The Jacobian at x has J x = x_l, and every
    direction orthogonal to x grows less, by √(1 + θ²) a layer.
    """
    theta, L = np.broadcast_arrays(theta, L)
    square, mean = np.ones(L.shape), np.full(L.shape, np.pi**-0.5)
    for layer in range(1, int(np.max(L))):
        step = np.where(layer < L, theta, 0.0)
        push = step * np.sqrt(square / np.pi)
        square, mean = (1 + step**2) * square + 2 * push * mean, mean + push
    return np.sqrt(square)[()]


@_checked
def ref_gradient(l, L, theta=None):
    """θ^(1(2≤l≤L)) ‖x_{l−1}‖ (1 + θ²)^((L−l)₊/2)/√2, the limit of ‖∇_{W_l} f‖_F/√m.

    At initialization, for m → ∞.
    Ours: ‖x_{l−1}‖ as in `ref_norm_wide`; the vector W_{L+1}Σ_{L+1}v that f is linear in has length
    √m, grows by √(1 + θ²) at each of the layers L..l+1 that it goes back through, and half of it
    passes Σ_l. In a plain net every factor is 1, and the limit 1/√2 at each layer; theta=None gives
    it. Its sum over the L + 1 layers times τ √(m/n) is the third line of the bound on I_2 in
    Appendix A.2; m times the sum of its squares, Σ, is the kernel
    |∂f/∂W|², with which gradient descent on the logistic loss is stable at its start for η ≤
    8/(mΣ), as ℓ″ ≤ 1/4.
    """
    if np.any(l > L + 1):
        raise ParameterError(f"l must be at most L + 1, got l = {l}, L = {L}")
    if theta is None:
        return np.full(np.broadcast(l, L).shape, 0.5**0.5)[()]
    own = np.where((l >= 2) & (l <= L), theta, 1.0)
    back = (1 + theta**2) ** (np.maximum(L - l, 0) / 2)
    return own * ref_norm_wide(theta, np.maximum(l - 1, 1)) * back / np.sqrt(2)
