"""How fast things fall and grow: lines through points, times to a level, spread of values."""

from typing import NamedTuple

import numpy as np


class Line(NamedTuple):
    """y = intercept + slope x, and the share R^2 of the variance of y that it explains."""

    slope: float
    intercept: float
    r2: float


def line(x, y, groups=None):
    """The least-squares `Line` through y against x, (k,) each.

    groups: (k,), each value of which has an intercept of its own.
    Points that are not finite do not count. All three are NaN where no group has two different x,
    and the intercept where there are groups; R^2 is NaN for fewer than three points, or where y is
    constant.

    >>> line([0, 1, 2, 3], [1, 3, 5, 7])
    Line(slope=2.0, intercept=1.0, r2=1.0)
    """
    x, y = (np.asarray(part, dtype=float) for part in (x, y))
    kept = np.isfinite(x) & np.isfinite(y)
    x, y = x[kept], y[kept]
    labels = np.zeros(len(x)) if groups is None else np.asarray(groups)[kept]
    dx, dy = x.copy(), y.copy()
    for value in np.unique(labels):
        rows = labels == value
        dx[rows] -= x[rows].mean()
        dy[rows] -= y[rows].mean()
    square, total = dx @ dx, dy @ dy
    if square <= 1e-24 * (x @ x):  # all x equal, but for rounding
        return Line(float("nan"), float("nan"), float("nan"))
    slope = dx @ dy / square
    intercept = y.mean() - slope * x.mean() if groups is None else float("nan")
    r2 = 1 - ((dy - slope * dx) ** 2).sum() / total if len(x) > 2 and total else float("nan")
    return Line(float(slope), float(intercept), float(r2))


def loglog_slope(x, y, groups=None):
    """The exponent of y ~ x^exponent: the slope of log y against log x; NaN where some y <= 0."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    return float("nan") if (y <= 0).any() else line(np.log(x), np.log(y), groups).slope


def slopes(table, x, y, by="seed", within=None):
    """The `loglog_slope` of the column y against x for each value of `by`: a Series in their order.

    by: one column of the table or a list; within: a column whose values have intercepts of their
    own, and share the slope. NaN where some y <= 0; points that are not finite do not count.
    """
    columns = [x, y] if within is None else [x, y, within]

    def slope(part):
        groups = None if within is None else part[within]
        return loglog_slope(part[x], part[y], groups)

    return table.groupby(by)[columns].apply(slope)


def exponential(curve, share=2 / 3, until=None):
    """(rate, R^2) of F ~ exp(-rate t) over the last `share` of a curve (T,).

    By a line through log F against t.
    until: the curve ends where it first reaches this level; what follows, rounding say, does not
    count.
    """
    t, values = _last(curve, share, until)
    fit = line(t, np.log(values))
    return -fit.slope, fit.r2


def power(curve, share=0.9, until=None):
    """(exponent, R^2) of F ~ t^exponent over the last `share` of a curve (T,).

    By a line through log F against log t.
    """
    t, values = _last(curve, share, until)
    fit = line(np.log(np.maximum(t, 1)), np.log(values))
    return fit.slope, fit.r2


def _last(curve, share, until):
    curve = np.asarray(curve, dtype=float)
    end = len(curve) if until is None else min(first_below(curve, until) + 1, len(curve))
    start = round((1 - share) * end)
    with np.errstate(invalid="ignore"):
        return np.arange(start, end), np.where(curve[start:end] > 0, curve[start:end], np.nan)


def first_below(curve, level):
    """First index at which a curve (..., T) is at most `level`, (...); T where it never is."""
    below = np.asarray(curve) <= level
    return np.where(below.any(-1), below.argmax(-1), below.shape[-1])


def falls(curve):
    """Share of the steps in which a curve (..., T) does not rise, (...)."""
    curve = np.asarray(curve)
    return (curve[..., 1:] <= curve[..., :-1]).mean(-1)


def spread(values):
    """Largest over smallest of positive values."""
    values = np.asarray(values, dtype=float)
    return float(values.max() / values.min())
