"""What wide nets of Allen-Zhu, Li, Song (2019) do exactly: limits that their bounds are compared with. All of it ours.

The net and the letters are those of `allenzhu2019`; k is a number of layers. Every function raises ParameterError for
an argument out of range and broadcasts over arrays of its scalar arguments.
"""

import numpy as np
from scipy.special import digamma, erfc, ndtri, polygamma
from scipy.stats import binom

from overparam.bounds._arguments import AT_LEAST_0, AT_LEAST_1, UP_TO_1, checker, float64
from overparam.errors import ParameterError

_checked = checker(
    {
        "m": (lambda v: v >= 2, "at least 2"),
        "L d k q positions": AT_LEAST_1,
        "omega s tau wnorm h0sq": AT_LEAST_0,
        "l": (lambda v: v >= -1, "at least -1"),
        "delta": (lambda v: (v > 0) & (v <= 2), "in (0, 2]"),
        "eps": UP_TO_1,
    }
)
_E3 = 2 * np.sqrt(2 / np.pi)  # E|g|³ of a standard normal g


@_checked
def forward_norm_failure_gaussian(L, m, eps):
    """erfc √(0.4 ε² m/(L + 1)), the limit of P(|‖h_L‖ − 1| > ε) for m → ∞, small ε: Lemma 7.1 has c = 0.4."""
    return erfc(np.sqrt(0.4 * eps**2 * m / (L + 1)))


@_checked
def log_norm_moments(L, m):
    """−(5/2)(L + 1)/m and 5(L + 1)/m, mean and variance of log ‖h_L‖² to leading order in 1/m, from Fact 7.2."""
    return -2.5 * (L + 1) / m, 5 * (L + 1) / m


@_checked
def log_ratio_moments(m):
    """Mean and variance of log(‖h_l‖²/‖h_{l−1}‖²) for one integer m, where any neuron is on.

    ‖h_l‖² m/(2‖h_{l−1}‖²) is chi-square with w degrees of freedom, w ~ B(m, ½): the mean given w is
    log(4/m) + ψ(w/2), which (7.1) puts into [−4/m, 0], and the variance ψ′(w/2). Allen-Zhu et al. 2019, Fact 7.2.
    """
    w = np.arange(1, int(m) + 1)
    weights = binom.pmf(w, int(m), 0.5) / (1 - 0.5 ** int(m))
    means = np.log(4 / m) + digamma(w / 2)
    mean = weights @ means
    return mean, weights @ (polygamma(1, w / 2) + (means - mean) ** 2)


@_checked
def fuss_catalan_edge(k):
    """√((k + 1)^(k+1)/k^k), the limit of ‖D_k W_k D_{k−1} ⋯ W_1 D_0‖₂ for m → ∞: 2 at k = 1, √(ek) for large k."""
    return np.sqrt(k + 1) * np.exp(k / 2 * np.log1p(1 / k))


@_checked
def backward_sparse_limit(s, m):
    """√(s + 2mtφ(t)) with 2Φ(−t) = s/m, the norm of the s largest of the m entries of B for d = 1 and m → ∞.

    It is the supremum of Lemma 7.4a at a = L + 1 exactly, and a third of that of Lemma 8.7 at a = L, ω = 0.
    """
    if np.any(s > m):
        raise ParameterError(f"s must be at most m, got s = {s}, m = {m}")
    t = -ndtri(np.maximum(s, np.finfo(float).tiny) / m / 2)
    return np.sqrt(s + 2 * m * t * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi))


@_checked
def separation_limit(delta, l):
    """‖(I − ĥ_i ĥ_iᵀ) h_j‖ at layer l for m → ∞ and unit inputs at distance δ; l = −1 are the inputs.

    It is the sine of the angle θ, which a layer maps by cos θ ← (sin θ + (π − θ) cos θ)/π.
    """
    delta, l = np.broadcast_arrays(delta, l)
    theta = 2 * np.arcsin(delta / 2)
    for layer in range(int(np.max(l)) + 1):
        # Half of 1 − cos θ, which keeps the digits of small angles.
        half = np.sin(theta / 2) ** 2 - (np.sin(theta) - theta * np.cos(theta)) / (2 * np.pi)
        theta = np.where(layer <= l, 2 * np.arcsin(np.sqrt(half)), theta)
    return np.sin(theta)[()]


@_checked
def separation_asymptotic(delta, L):
    """δ/(1 + δL/(3π)), `separation_limit` for δ → 0 at fixed δL: a layer takes θ²/(3π) from θ."""
    return delta / (1 + delta * L / (3 * np.pi))


@_checked
def sign_changes_onelayer(m, omega):
    """m (3ω²/π)^(1/3), the most sign changes by a W′ of one layer, ‖h_{l−1}‖ = 1, for m → ∞ and small ω.

    The smallest pre-activations are the cheapest, and the fraction q of them takes Σ_k g_k² = (π/3) q³.
    """
    return m * np.cbrt(3 * omega**2 / np.pi)


@_checked
def sign_changes_random(m, omega):
    """(m/π) arctan(ω/(2√2)), the expected sign changes by one layer's Gaussian W′ of spectral norm ω, m → ∞."""
    return m / np.pi * np.arctan(omega / (2 * np.sqrt(2)))


def lem93_infimum(H):
    """min_i 1/(H⁻¹)_ii, a lower bound on vᵀHv over all v with max_i |v_i| = 1: Lemma 9.3 for all loss vectors at once.

    H: (n, n), the Gram matrix of the samples' ∇_{W_L} y, d = 1. Raises ParameterError unless it is positive definite.
    """
    try:
        root = np.linalg.inv(np.linalg.cholesky(float64(H)))
    except np.linalg.LinAlgError as error:
        raise ParameterError(f"H must be a positive definite matrix: {error}") from error
    return 1 / np.sum(root**2, axis=0).max()


@_checked
def thm5a_onelayer(omega):
    """1.640 ω^(1/3), the largest ‖∇_{W_L} y_j − ∇_{W_L} y_j^ntk‖_F/‖∇_{W_L} y_j^ntk‖_F by W′_L alone.

    For ‖h_{L−1}‖ = 1, m → ∞ and small ω: the signs with |g_k| ≤ t|B_jk| change, at the cost Σ g_k² = ω².
    """
    return np.sqrt(2 * _E3 / np.sqrt(np.pi) * np.cbrt(3 * np.sqrt(np.pi) / _E3)) * np.cbrt(omega)


@_checked
def thm5b_onelayer(omega, m, d):
    """0.456 √(m/d) ω^(4/3), the largest |y_j − y_j⁽⁰⁾ − y_j^ntk| by W′_L alone.

    In the limit of `thm5a_onelayer`: g_k moves by tB_jk through 0 where B_jk > 0 and |g_k| < tB_jk/2.
    """
    constant = 3 / 16 * _E3 / np.sqrt(np.pi) * (4 * np.sqrt(np.pi) / _E3) ** (2 / 3)
    return constant * np.sqrt(m / d) * omega ** (4 / 3)


@_checked
def thm5c_onelayer(omega):
    """1.694 ω^(2/3), the largest |K(x, x)/K^ntk(x, x) − 1| of the last layer's kernel by W′_L alone.

    In the limit of `thm5a_onelayer`: only signs that turn on count.
    """
    return _E3 / np.sqrt(np.pi) * np.cbrt(6 * np.sqrt(np.pi) / _E3) * omega ** (2 / 3)


@_checked
def cnn_norm_sq(h0sq, tau, positions, q, l):
    """h0sq + l τ² 𝔡/q, what ‖h_l‖², l < L, concentrates at from h0sq = ‖h₀‖². Allen-Zhu et al. 2019, Appendix B.1.

    positions: 𝔡, the positions of a layer, each of which sees q.
    """
    return h0sq + l * tau**2 * positions / q


@_checked
def cnn_gains(m, q, positions):
    """√(qm) and 𝔡/q, the limits of ‖h₀‖² and ‖h_L‖²/‖h_{L−1}‖² at the printed variances 2/√(qm) of A_j, 2/(qm) of W_L.

    Both are 1 at 2/(qm) and 2/(𝔡m). Allen-Zhu et al. 2019, Appendix B.
    """
    return np.sqrt(q * m), positions / q


@_checked
def resnet_product(tau, L, wnorm=8**0.5):
    """(1 + τ wnorm)^L, a bound on ‖(I + τW_a) D ⋯ D (I + τW_b)‖₂ with ‖W_l‖₂ ≤ wnorm, by default its limit for m → ∞.

    The paper puts it at 1.01: Allen-Zhu et al. 2019, eq. (C.1).
    """
    return (1 + tau * wnorm) ** L
