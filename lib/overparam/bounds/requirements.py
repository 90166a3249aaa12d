"""What the five papers' theorems ask for, side by side: width, step size, steps and rate, all constants set to 1.

The letters are those of the sliders: n inputs of unit norm in R^d, one output, L trained layers, the distance δ of the
inputs, loss ε, leak α; the smallest eigenvalue λ₀ of the Gram matrix, the margin γ, the probability p to fail.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..record import plots
from . import allenzhu2019, arora2019, frei2019, guo2024, noy2021

# Trained parameters of nets that exist, and two numbers that nothing exceeds, for scale.
SCALE = {
    "LeNet-5": 6e4, "ResNet-50": 2.6e7, "GPT-2": 1.5e9, "GPT-3": 1.75e11, "cells of a human": 3e13,
    "atoms of the Earth": 1e50, "atoms of the universe": 1e80,
}  # fmt: skip


@dataclass(frozen=True)
class Requirement:
    """One theorem at one setting; decimal logarithms, as the numbers themselves pass 10¹⁰⁰."""

    theorem: str
    net: str
    width: float
    step: float
    steps: float
    share: float  # by which a step lowers the loss, at least; NaN where the loss falls like a power of the steps
    parameters: float


def requirements(*, n, L, delta, eps, d, alpha, lam0, gamma, p):
    """[Requirement] of Arora et al. Theorem 3.1, Allen-Zhu et al. 1, Frei et al. 3.5, Noy et al. 1, Guo et al. 3.1.

    The initial weights of Arora et al. have κ = 1; its Φ(0) is taken as n/2, and Guo et al.'s initial loss as n. The
    steps of Frei et al. bring the surrogate error to ε, at the largest step size. Raises ParameterError out of range.
    """
    m, eta = arora2019.thm31_width(n, lam0, 1.0, p), arora2019.thm31_eta(n, lam0)
    share = eta * lam0 / 2
    rows = [_row("Arora et al. 2019, Theorem 3.1", "two-layer ReLU", m, eta, _steps(n / 2, eps, share), share, [d])]

    m = allenzhu2019.thm1_width(n, L, delta, 1)
    eta = allenzhu2019.thm1_lr(n, L, delta, m, 1)
    steps, share = allenzhu2019.thm1_iters(n, L, delta, eps, m), allenzhu2019.thm1_rate(eta, delta, m, 1, n)
    rows.append(_row("Allen-Zhu et al. 2019, Theorem 1", "deep ReLU", m, eta, steps, share, [L, m]))

    m = frei2019.thm35_own_width(d, L, n, gamma, p, eps)
    tau = frei2019.thm35_tau_max(gamma, m)
    eta = frei2019.thm35_eta_max(tau, m, gamma)
    steps = frei2019.thm35_Keta_max(tau, gamma, n, p) / eta
    rows.append(_row("Frei et al. 2019, Theorem 3.5", "residual ReLU", m, eta, steps, math.nan, [L + d / m, m]))

    m, eta = noy2021.width_noy2021(n, L), noy2021.step_noy2021(n, L, d)
    steps, share = noy2021.iters_noy2021(n, L, d, eps), 1 - noy2021.contraction(eta, noy2021.alpha2(m, d), L)
    rows.append(_row("Noy et al. 2021, Theorem 1", "gated ReLU", m, eta, steps, share, [L, m]))

    m = guo2024.width_gd(alpha, n, L, 1, delta)
    eta = guo2024.eta_max_gd(n, L, m, 1)
    share = guo2024.c_alpha(alpha) * eta * delta * m / n  # 1 - gamma_gd, which rounds to 0
    rows.append(_row("Guo et al. 2024, Theorem 3.1", "deep leaky ReLU", m, eta, _steps(n, eps, share), share, [L, m]))
    return rows


def _steps(loss, eps, share):
    """The steps until (1 - share)^T loss = ε."""
    return np.log(eps / loss) / np.log1p(-share)


def _row(theorem, net, m, eta, steps, share, per_neuron):
    parameters = sum(np.log10(factor) for factor in (m, *per_neuron))
    logs = [float(np.log10(x)) for x in (m, eta, max(steps, 1), share)]
    return Requirement(theorem, net, *logs, float(parameters))


def table(rows):
    """The requirements as text, powers of ten to one decimal."""
    lines = [f"{'theorem':<34}{'width':>10}{'step':>10}{'steps':>10}{'share':>10}{'weights':>10}"]
    for r in rows:
        cells = [
            f"{'-' if math.isnan(x) else f'10^{x:.1f}':>10}" for x in (r.width, r.step, r.steps, r.share, r.parameters)
        ]
        lines.append(f"{r.theorem:<34}{''.join(cells)}")
    return "\n".join(lines)


def draw(rows):
    """A figure of widths and steps, and of the parameter counts beside those of nets that exist."""
    fig, axes = plots.figure(1, 3, width=3.3, height=4, sharey=True)
    labels = [f"{r.theorem.partition(',')[0]}\n{r.net}" for r in rows]
    for ax, name in zip(axes[0], ("width", "steps", "parameters"), strict=True):
        values = [getattr(r, name) for r in rows]
        ax.plot(values, labels, "o", color=plots.COLOURS[0], markersize=7)
        ax.set(xlabel=rf"$\log_{{10}}$ of the {name}", xlim=(0, max(values) * 1.25))
        for i, value in enumerate(values):
            ax.annotate(f"{value:.1f}", (value, i), (0, 7), textcoords="offset points", ha="center", fontsize=8.5)
    last = axes[0, 2]
    last.set(xscale="log", xlim=(4, max(120, *(1.5 * r.parameters for r in rows))), xticks=[5, 10, 20, 50, 100])
    last.xaxis.set_major_formatter("{x:g}")
    last.xaxis.minorticks_off()
    for name, count in SCALE.items():
        last.axvline(np.log10(count), color=plots.COLOURS[1], lw=0.8, linestyle=":")
        last.text(np.log10(count), -0.6, f" {name}", rotation=60, fontsize=7.5, color="#a03040")
    last.set_ylim(len(rows) - 0.5, -0.5)
    return fig


def draw_sweeps(setting, sweeps):
    """A figure of the required widths, a panel for each entry {name: positive values} of the setting, varied alone.

    sweeps: an even number of entries.
    """
    fig, axes = plots.figure(math.ceil(len(sweeps) / 2), 2, width=4.2, height=2.8, sharey=True)
    for ax, (name, values) in zip(axes.flat, sweeps.items(), strict=True):
        rows = [requirements(**{**setting, name: value}) for value in values]
        for i, theorem in enumerate(zip(*rows, strict=True)):
            label = theorem[0].theorem.partition(",")[0]
            ax.plot(values, [r.width for r in theorem], **plots.style(i), marker=plots.MARKERS[i], label=label)
        ax.set(xlabel=name, xscale="log")
        ax.axvline(setting[name], color="black", lw=0.6)
    for ax in axes[:, 0]:
        ax.set_ylabel(r"$\log_{10}$ of the width")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return fig
