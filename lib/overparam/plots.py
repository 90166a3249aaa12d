"""One style for all figures at the width of a page; seaborn aggregates and draws on top of it."""

import textwrap

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from .errors import ParameterError

PAGE = 7.0  # inches: the width of a page

# Colours that stay apart for colour-blind eyes and differ in lightness; line styles and markers
# serve greyscale.
COLOURS = ("#0b3c8c", "#d1495b", "#2ca58d", "#edae49", "#7b5ea7", "#555555")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKERS = ("o", "s", "^", "D", "v", "x")
THEORY = {"color": "black", "linestyle": (0, (4, 2)), "linewidth": 1.2, "zorder": 3}
PAPER = {"color": "black", "marker": "*", "markersize": 9, "linestyle": "none", "zorder": 4}
_STYLE = {
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "axes.prop_cycle": mpl.cycler(color=COLOURS),  # seaborn's default palette as well
    "axes.grid": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "overparam",  # the same figure gives the same file
}
_PAGE = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.title_fontsize": 7.5,
    "figure.titlesize": 8.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
}
_PANELS = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.title_fontsize": 8.5,
    "figure.titlesize": 12,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
}


def figure(rows=1, columns=1, width=None, height=None, **kwargs):
    """(fig, axes) in the project's style; axes as an array (rows, columns).

    Without a width the figure fills the page: 7 in, or 4.6 in for a single panel, and at most three
    panels in a row. width, height: of a panel, in inches. Raises ParameterError for more panels in
    a row than a page shows.

    >>> fig, axes = figure(1, 2)
    >>> fig.get_size_inches().tolist(), axes.shape
    ([7.0, 2.8], (1, 2))
    """
    if width is None and columns > 3:
        raise ParameterError(
            f"a page shows three panels in a row, not {columns}: give the figure more rows"
        )
    mpl.rcParams.update(_STYLE | (_PAGE if width is None else _PANELS))
    width = width or (4.6 if columns == 1 else PAGE / columns)
    height = height or {1: 3.0, 2: 2.8, 3: 2.3}.get(columns, 3.3)
    return plt.subplots(
        rows, columns, figsize=(columns * width, rows * height), squeeze=False, **kwargs
    )


def lines(table, x, y, by=None, *, ax, **options):
    """Lines of y over x, columns of a table, one for each value of the column or values `by`.

    The mean over what is repeated, with a band from the smallest to the largest. by gives both
    colour and line style; options: further ones of `seaborn.lineplot`, such as hue and style.
    """
    import seaborn as sns  # which takes a second

    if by is not None:
        options = {"hue": by, "style": by, **options}
    return sns.lineplot(table, x=x, y=y, ax=ax, errorbar=("pi", 100), **options)


def ticks(axis, values):
    """Exactly these ticks on an axis (`ax.xaxis`, `ax.yaxis`), none between them; 1.0 reads 1."""
    labels = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    axis.set_ticks(values, labels)
    axis.minorticks_off()


def style(i):
    """Colour and line style of the i-th series."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i % len(LINES)]}


def theory(ax, x, y, label="theory", **kwargs):
    """A line of the theory, on top of what was measured: black and dashed."""
    return ax.plot(x, y, label=label, **{**THEORY, **kwargs})[0]


def paper_value(ax, x, y, label="the paper", **kwargs):
    """Mark what the paper prints or draws: a black star at each (x, y)."""
    return ax.plot(x, y, label=label, **{**PAPER, **kwargs})[0]


def band(ax, x, runs, *, label, i=0, marker=False, **kwargs):
    """Median over runs (axis 0) of `runs` (R, len(x)), with a band from smallest to largest.

    i: which colour and dashes, as in `style`: 0 for the first band of a panel, 1 for the next.
    """
    runs = np.atleast_2d(np.asarray(runs, dtype=float))
    marked = {"marker": MARKERS[i % len(MARKERS)]} if marker else {}
    (line,) = ax.plot(x, np.median(runs, axis=0), label=label, **{**style(i), **marked, **kwargs})
    if len(runs) > 1:
        ax.fill_between(
            x, runs.min(0), runs.max(0), color=line.get_color(), alpha=0.18, linewidth=0
        )
    return line


def name_stand_ins(fig, datasets):
    """A line above all panels that names the data sets that stand in for others, if any do."""
    named = {data.name: data.stand_in for data in datasets if data.stand_in}
    if named:
        line = "; ".join(f"{name}: {stand_in}" for name, stand_in in named.items())
        fig.suptitle(textwrap.fill(line, int(13 * fig.get_figwidth())), fontsize=8)
