"""Panels on deep ReLU nets under attack: against the radius omega of the changes, and against the depth."""

import numpy as np

from ..record import plots

LABELS = {
    "flip_last": "last layer, most flips",
    "grad_last": "last layer, worst gradient",
    "output_last": "last layer, worst output",
    "kernel_last": "last layer, worst kernel",
    "flip_all": "all layers, flips",
    "aligned_flip": "all layers, aligned flips",
    "output_all": "all layers, output",
    "amplify": "all layers, amplifying",
    "gradient": "along the gradient",
    "random": "Gaussian",
}


def against_radius(ax, radii, found, names, values):
    """Lines of attacks with a band over seeds: values(found[name]), (S, T, n), over radii[name]."""
    for i, name in enumerate(names):
        _band(ax, radii[name], values(found[name]).mean(-1), name, i)
    ax.set(xscale="log", yscale="log", xlabel=r"spectral norm $\omega$ of the changes")


def against_depth(ax, deep, names, values):
    """The same over the depth: values(found[name], L), (S, n), of deep = {L: {attack: found}}."""
    for i, name in enumerate(names):
        _band(ax, list(deep), np.stack([values(found[name], L).mean(-1) for L, found in deep.items()], -1), name, i)
    ax.set(xscale="log", yscale="log", xlabel="trained layers $L$", xticks=list(deep), xticklabels=list(deep))
    ax.minorticks_off()


def _band(ax, x, runs, name, i):
    plots.band(ax, x, np.where(runs > 0, runs, np.nan), label=LABELS[name], i=i, marker=True)


def mark_range(ax, end, label):
    """Shade omega <= end, where a theorem holds, and start the axis there."""
    ax.axvspan(end / 10, end, color="0.5", alpha=0.3, lw=0, label=label)
    ax.set(xlim=(end / 10, 0.7))


def legend_below(fig, axes, columns):
    """One legend for all panels, below them."""
    handles = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    fig.legend(handles.values(), handles, loc="outside lower center", ncols=columns)
