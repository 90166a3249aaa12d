"""All attacks on a deep ReLU net over many radii and seeds, their exponents, and how they are drawn.

For allenzhu2019-lem82-sign-changes, -thm5a-gradient-stability and -thm4-semi-smoothness. Source: Allen-Zhu et al. 2019,
Sections 8 and 14; windows and attacks are ours.
"""

import math

import numpy as np
import torch

from ..record import plots
from ..theory.fits import loglog_slope
from ..theory.perturbation import attacks
from ..theory.perturbation.changes import Start

NOISE = 500_000  # the stream of Gaussian changes, which is no layer's
ATTACKS = {  # what makes it, and what a legend says
    "flip_last": (attacks.flip_last, "last layer, most flips"),
    "grad_last": (attacks.grad_last, "last layer, worst gradient"),
    "output_last": (attacks.output_last, "last layer, worst output"),
    "kernel_last": (attacks.kernel_last, "last layer, worst kernel"),
    "flip_all": (attacks.flip_all, "all layers, flips"),
    "aligned_flip": (attacks.aligned_flip, "all layers, aligned flips"),
    "output_all": (attacks.output_all, "all layers, output"),
    "amplify": (attacks.amplify, "all layers, amplifying"),
    "gradient": (attacks.gradient, "along the gradient"),
    "random": (attacks.random, "Gaussian"),
}


def adversarial_window(m, count):
    """Radii omega (count,), log-spaced, from 10 sign changes to 0.1: there one-layer limits hold."""
    return np.geomspace(math.sqrt(math.pi / 3) * (10 / m) ** 1.5, 0.1, count)


def gaussian_window(m, count):
    """The same for Gaussian changes: from where they flip 20 signs of their own layer to 0.5."""
    return np.geomspace(20 * 2 * math.sqrt(2) * math.pi / m, 0.5, count)


def over_seeds(make, x, radii, quantities, *, seeds, at_once=None):
    """{attack: {quantity: (S, T, n) or (S, T, n, L) float64 array}} of the nets make(seed) at the inputs x (n, p).

    radii: {name of `ATTACKS`: its T radii}; quantities: of `Attack.responses`, or "across", the change of the kernel of
    the first two inputs by what is made for the first, (S, T, 1); at_once: how many radii are held in memory.
    """
    rows = [_of_net(make(seed), x, radii, quantities, seed, at_once) for seed in seeds]
    return {name: {q: np.stack([row[name][q] for row in rows]) for q in quantities} for name in radii}


def _of_net(net, x, radii, quantities, seed, at_once):
    """What `over_seeds` gives of one net, which is free to go when it returns."""
    start, found = Start(net, x), {}
    for name, omegas in radii.items():
        step, parts = at_once or len(omegas), []
        for i in range(0, len(omegas), step):
            options = {"seed": seed * 1_000_003 + NOISE} if name == "random" else {}
            attack = ATTACKS[name][0](start, omegas[i : i + step], **options)
            part = attack.responses()
            if "across" in quantities:
                part["across"] = attack.across(0, 1).unsqueeze(-1)
            parts.append({q: part[q].double().cpu() for q in quantities})
        found[name] = {q: torch.cat([part[q] for part in parts]).numpy() for q in quantities}
    return found


def mean(values):
    """The mean over seeds and inputs of (S, T, n, ...), (T, ...)."""
    return np.asarray(values).mean((0, 2))


def slope(omegas, values, above=0.0):
    """Log-log slope in omega >= above of the mean over seeds and inputs of values (S, T, n)."""
    omegas = np.asarray(omegas)
    return loglog_slope(omegas[omegas >= above], mean(values)[omegas >= above])


def constant(omegas, values, power):
    """Geometric mean over omega of the mean over seeds and inputs of values (S, T, n), over omega^power."""
    return float(np.exp(np.log(mean(values) / np.asarray(omegas) ** power).mean()))


def farthest(values, target):
    """Of some numbers the one farthest from `target`."""
    return max(values, key=lambda value: abs(value - target))


def largest(nets, measured, bound):
    """The largest measured(found) / bound(omega, L, m) over nets (m, L, radii, {attack: found})."""
    ratios = []
    for m, L, radii, by_attack in nets:
        for name, found in by_attack.items():
            ratios.extend(measured(found) / bound(np.asarray(radii[name]), L, m))
    return float(max(ratios))


def against_radius(ax, radii, found, names, values):
    """Lines of attacks with a band over seeds: values(found[name]), (S, T, n), over radii[name]."""
    for i, name in enumerate(names):
        _band(ax, radii[name], values(found[name]).mean(-1), name, i)
    ax.set(xscale="log", yscale="log", xlabel=r"spectral norm $\omega$ of the changes")


def against_depth(ax, deep, names, values):
    """The same over the depth: values(found[name]), (S, n), of deep = {L: {attack: found}}."""
    for i, name in enumerate(names):
        _band(ax, list(deep), np.stack([values(found[name]).mean(-1) for found in deep.values()], -1), name, i)
    ax.set(xscale="log", yscale="log", xlabel="trained layers $L$", xticks=list(deep), xticklabels=list(deep))
    ax.minorticks_off()


def _band(ax, x, runs, name, i):
    plots.band(ax, x, np.where(runs > 0, runs, np.nan), label=ATTACKS[name][1], i=i, marker=True)


def mark_range(ax, end, label):
    """Shade omega <= end, where a theorem holds, and start the axis there."""
    ax.axvspan(end / 10, end, color="0.5", alpha=0.3, lw=0, label=label)
    ax.set(xlim=(end / 10, 0.7))


def legend_below(fig, axes, columns):
    """One legend for all panels, below them."""
    handles = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    fig.legend(handles.values(), handles, loc="outside lower center", ncols=columns)
