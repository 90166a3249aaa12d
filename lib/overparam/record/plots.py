"""One style for all figures, and one function per kind of plot that recurs."""

import textwrap

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

# Colours that stay apart for colour-blind eyes and differ in lightness; line styles and markers serve greyscale.
COLOURS = ("#0b3c8c", "#d1495b", "#2ca58d", "#edae49", "#7b5ea7", "#555555")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKERS = ("o", "s", "^", "D", "v", "x")
DENSE = 300  # points of a line above which an SVG holds it as pixels
_RC = {
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "savefig.dpi": 150,
    "svg.hashsalt": "overparam",  # the same figure gives the same file
}


def figure(rows=1, columns=1, width=4.2, height=3.3, **kwargs):
    """(fig, axes) in the project's style; width and height per panel in inches; axes as an array (rows, columns)."""
    mpl.rcParams.update(_RC)
    return plt.subplots(rows, columns, figsize=(columns * width, rows * height), squeeze=False, **kwargs)


def style(i):
    """Colour and line style of the i-th series."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i % len(LINES)]}


def band(ax, x, runs, *, label, i=0, marker=False, **kwargs):
    """Median over runs (axis 0) of `runs` (R, len(x)), with a band from the smallest to the largest."""
    runs = np.atleast_2d(np.asarray(runs, dtype=float))
    look = {
        **style(i),
        **({"marker": MARKERS[i % len(MARKERS)]} if marker else {}),
        "rasterized": len(x) > DENSE,
        **kwargs,
    }
    (line,) = ax.plot(x, np.median(runs, axis=0), label=label, **look)
    if len(runs) > 1:
        ax.fill_between(
            x, runs.min(0), runs.max(0), color=line.get_color(), alpha=0.18, linewidth=0, rasterized=len(x) > DENSE
        )
    return line


def data_title(ax, text, dataset):
    """A panel's title that names its data, and the stand-in where it is one."""
    source = f"{dataset.name}: {dataset.stand_in}" if dataset.stand_in else dataset.name
    ax.set_title(f"{text}\n{textwrap.fill(source, 60)}", fontsize=9)


def name_stand_ins(fig, datasets):
    """A line above all panels that names the data sets that stand in for others; none where all are themselves."""
    named = {data.name: data.stand_in for data in datasets if data.stand_in}
    if named:
        fig.suptitle("; ".join(f"{name}: {stand_in}" for name, stand_in in named.items()), fontsize=8)
