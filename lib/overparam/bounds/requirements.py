"""What the five theorems ask for, side by side: width, step size, steps and rate.

All constants are 1.
n inputs of unit norm in R^d, one output, L trained layers, the distance δ of the inputs, loss ε,
leak α; the smallest eigenvalue λ₀ of the Gram matrix, the margin γ, the probability p to fail.
"""

import math
from dataclasses import dataclass

import numpy as np

from . import allenzhu2019, arora2019, frei2019, guo2024, noy2021


@dataclass(frozen=True)
class Requirement:
    """One theorem at one setting; decimal logarithms, as the numbers themselves pass 10¹⁰⁰."""

    theorem: str
    net: str
    width: float
    step: float
    steps: float
    # by which a step lowers the loss, at least; NaN where it falls like a power of the steps
    share: float
    parameters: float


def requirements(*, n, L, delta, eps, d, alpha, lam0, gamma, p):
    """What each paper's main theorem asks for: a list of `Requirement`.

    Arora et al. Theorem 3.1, Allen-Zhu et al. 1, Frei et al. 3.5, Noy et al. 1, Guo et al. 3.1.
    The initial weights of Arora et al. have κ = 1; its Φ(0) is taken as n/2, and Guo et al.'s
    initial loss as n.
    The steps of Frei et al. bring the surrogate error to ε, at the largest step size. Raises
    ParameterError.
    """
    m, eta = arora2019.thm31_width(n, lam0, 1.0, p), arora2019.thm31_eta(n, lam0)
    share = eta * lam0 / 2
    rows = [
        _row(
            "Arora et al. 2019, Theorem 3.1",
            "two-layer ReLU",
            m,
            eta,
            _steps(n / 2, eps, share),
            share,
            [d],
        )
    ]

    m = 10 ** allenzhu2019.thm1_log10_width(n, L, delta, 1)
    eta = allenzhu2019.thm1_lr(n, L, delta, m, 1)
    steps = allenzhu2019.thm1_iters(n, L, delta, eps, m)
    share = allenzhu2019.thm1_rate(eta, delta, m, n, 1)
    rows.append(_row("Allen-Zhu et al. 2019, Theorem 1", "deep ReLU", m, eta, steps, share, [L, m]))

    m = frei2019.thm35_own_width(d, L, n, gamma, p, eps)
    tau = frei2019.thm35_tau_max(gamma, m)
    eta = frei2019.thm35_eta_max(tau, m, gamma)
    steps = frei2019.thm35_Keta_max(tau, gamma, n, p) / eta
    rows.append(
        _row(
            "Frei et al. 2019, Theorem 3.5",
            "residual ReLU",
            m,
            eta,
            steps,
            math.nan,
            [L + d / m, m],
        )
    )

    m, eta = noy2021.width_noy2021(n, L), noy2021.step_noy2021(n, L, d)
    steps = noy2021.iters_noy2021(n, L, d, eps)
    share = 1 - noy2021.contraction(eta, noy2021.alpha2(m, d), L)
    rows.append(_row("Noy et al. 2021, Theorem 1", "gated ReLU", m, eta, steps, share, [L, m]))

    m = guo2024.width_gd(alpha, n, L, 1, delta)
    eta = guo2024.eta_max_gd(n, L, m, 1)
    share = guo2024.c_alpha(alpha) * eta * delta * m / n  # 1 - gamma_gd, which rounds to 0
    rows.append(
        _row(
            "Guo et al. 2024, Theorem 3.1",
            "deep leaky ReLU",
            m,
            eta,
            _steps(n, eps, share),
            share,
            [L, m],
        )
    )
    return rows


def _steps(loss, eps, share):
    """The steps until (1 - share)^T loss = ε."""
    return np.log(eps / loss) / np.log1p(-share)


def _row(theorem, net, m, eta, steps, share, per_neuron):
    parameters = sum(np.log10(factor) for factor in (m, *per_neuron))
    logs = [float(np.log10(x)) for x in (m, eta, max(steps, 1), share)]
    return Requirement(theorem, net, *logs, float(parameters))
