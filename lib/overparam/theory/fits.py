"""How fast losses fall: straight lines through curves, times to a level, spread of values."""

import numpy as np


def line(x, y):
    """(slope, R^2) of the least-squares line through y against x, (k,) each; NaN for fewer than three finite points."""
    x, y = (np.asarray(part, dtype=float) for part in (x, y))
    kept = np.isfinite(x) & np.isfinite(y)
    if kept.sum() < 3 or np.ptp(x[kept]) == 0:
        return float("nan"), float("nan")
    x, y = x[kept] - x[kept].mean(), y[kept] - y[kept].mean()
    slope = x @ y / (x @ x)
    total = y @ y
    return float(slope), float(1 - ((y - slope * x) ** 2).sum() / total) if total else float("nan")


def exponential(curve, share=2 / 3, until=None):
    """(rate, R^2) of log F against t over the last `share` of a curve (T,), that is rate in F ~ exp(-rate t).

    until: the curve ends where it first reaches this level; what follows, rounding say, does not count.
    """
    t, values = _last(curve, share, until)
    slope, square = line(t, np.log(values))
    return -slope, square


def power(curve, share=0.9, until=None):
    """(exponent, R^2) of log F against log t over the last `share` of a curve (T,), that is F ~ t^exponent."""
    t, values = _last(curve, share, until)
    return line(np.log(np.maximum(t, 1)), np.log(values))


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


def loglog_slope(x, y, groups=None):
    """Slope of log y against log x by least squares, with an intercept for each value of `groups`; NaN where y <= 0.

    x, y, groups: (R,). NaN too where no group has two different x.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if (y <= 0).any():
        return float("nan")
    log_x, log_y = np.log(x), np.log(y)
    groups = np.zeros(len(x)) if groups is None else np.asarray(groups)
    for value in np.unique(groups):
        rows = groups == value
        log_x[rows] -= log_x[rows].mean()
    spread = log_x @ log_x
    return float(log_x @ log_y / spread) if spread > 1e-12 else float("nan")
