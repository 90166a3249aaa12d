"""Curves of single runs, of which some may diverge."""

import numpy as np

from ..record import plots


def run_lines(ax, x, runs, *, i, label, look=None, **kwargs):
    """One thin line per run of `runs` (R, len(x)); where a run is infinite from then on, a triangle at the upper edge.

    i: the style; look: colour, where it is not that of the style. Returns nothing; the first line bears the label.
    """
    style = {**plots.style(i), "linewidth": 1.1, "rasterized": len(x) > plots.DENSE, **(look or {}), **kwargs}
    for k, run in enumerate(np.atleast_2d(np.asarray(runs, dtype=float))):
        ax.plot(x, np.where(np.isfinite(run), run, np.nan), label=None if k else label, **style)
        lost = ~np.isfinite(run)
        if lost.any():
            at_the_edge(ax, [x[int(lost.argmax())]], style["color"])


def at_the_edge(ax, places, colour):
    """Triangles at the upper edge of an axis, for what is infinite at these places."""
    if len(places) == 0:
        return
    edge = {"transform": ax.get_xaxis_transform(), "clip_on": False, "ls": "", "marker": "^", "ms": 7, "zorder": 5}
    ax.plot(places, np.full(len(places), 0.985), color=colour, markeredgecolor="black", **edge)
