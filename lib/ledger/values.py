"""What decides the values of a record.

Seeds and device, rounding, and the interval of a statistic over seeds.

The fingerprint counts this module; the others of this package only write and show what they are
given.
"""

import math
import numbers

import numpy as np

from overparam.errors import ParameterError

from .errors import ClaimError

DIGITS = 6
LEVEL = 0.95


def prepared(parameters):
    """(device, seeds) of a run; sets torch's generator to the first seed.

    Raises ParameterError without the device.
    """
    import torch

    device = torch.device(parameters.get("device", "cpu"))
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ParameterError(
            "no CUDA device here; run this profile on a GPU machine, or pass -p device=cpu"
        )
    torch.manual_seed(parameters["seed"])
    return device, list(
        range(parameters["seed"], parameters["seed"] + parameters.get("n_seeds", 1))
    )


def number(value):
    """A number as a float, one beyond all floats as an infinity.

    Raises ClaimError for anything else.
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError, RuntimeError) as error:
        raise ClaimError(f"a record takes one number, not {value!r}") from error


def finite(value):
    """A number as JSON has it: None where it is infinite or NaN."""
    value = number(value)
    return value if math.isfinite(value) else None


def measured(given, statistic="mean"):
    """(value, low, high, n) of a number, or of the statistic of a sample: one number per seed.

    [low, high] is a 95 % interval of the statistic: mean: Student's t; share, of truth values:
    Clopper and Pearson's; median: between order statistics, by the sign test, so that it is
    unbounded for fewer than six values. The mean of one value has no bounded interval either. A
    number: (value, value, value, None).
    Raises ClaimError for anything but a number or a sample that is not empty.

    >>> [round(x, 3) for x in measured([1.0, 2.0, 3.0])[:3]]
    [2.0, -0.484, 4.484]
    """
    if hasattr(given, "detach"):
        given = given.detach().cpu()
    if np.ndim(given) != 1:
        value = number(given)
        return value, value, value, None
    try:
        sample = np.asarray(given).astype(float)
    except (TypeError, ValueError) as error:
        raise ClaimError(
            f"a check takes one number, or one number per seed, not {given!r}"
        ) from error
    if not len(sample):
        raise ClaimError(
            "a check takes one number, or one number per seed, and the sample is empty"
        )
    sample, n = np.sort(sample), len(sample)
    interval = {"mean": _mean, "median": _median, "share": _share}[statistic]
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        return *map(float, interval(sample, n)), n


def _mean(sample, n):
    from scipy.special import stdtrit

    mean = sample.mean()
    if n == 1:
        return mean, -math.inf, math.inf
    half = stdtrit(n - 1, (1 + LEVEL) / 2) * sample.std(ddof=1) / math.sqrt(n)
    return mean, mean - half, mean + half


def _median(sample, n):
    from scipy.special import bdtr

    # The k-th smallest and the k-th largest value, with the largest k for which P(Binomial(n, 1/2)
    # < k) <= 2.5 %.
    k = max((k for k in range(1, n // 2 + 1) if bdtr(k - 1, n, 0.5) <= (1 - LEVEL) / 2), default=0)
    low, high = (sample[k - 1], sample[n - k]) if k else (-math.inf, math.inf)
    return np.median(sample), low, high


def _share(sample, n):
    from scipy.special import betaincinv

    if not np.isin(sample, (0, 1)).all():
        raise ClaimError("a share is taken of truth values, one per seed")
    k, tail = sample.sum(), (1 - LEVEL) / 2
    low = betaincinv(k, n - k + 1, tail) if k else 0.0
    high = betaincinv(k + 1, n - k, 1 - tail) if k < n else 1.0
    return k / n, low, high


def significant(array):
    """An array with its floats rounded to six significant digits, in single precision where that
    holds them.
    """
    if array.dtype.kind != "f":
        return array
    rounded = np.array([float(f"{value:.{DIGITS}g}") for value in array.ravel().tolist()]).reshape(
        array.shape
    )
    with np.errstate(over="ignore", under="ignore"):
        small = rounded.astype(np.float32)
    return small if np.allclose(small, rounded, rtol=1e-7, atol=0, equal_nan=True) else rounded


def tidy(frame):
    """A pandas table of numbers, words and truth values with its floats rounded to six significant
    digits.

    A named index becomes columns, an unnamed one goes. Raises ClaimError for a cell that holds
    anything else.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise ClaimError(f"what is kept is a pandas table, not {type(frame).__name__}")
    frame = frame.reset_index(drop=all(name is None for name in frame.index.names))
    if not frame.columns.is_unique or not all(isinstance(name, str) for name in frame.columns):
        raise ClaimError("the columns of a table that is kept have names, and each its own")
    return frame.apply(_column).reindex(columns=frame.columns)


def _column(column):
    import pandas as pd

    if column.dtype == object:
        cells = [
            value.item() if np.ndim(value) == 0 and hasattr(value, "item") else value
            for value in column
        ]
        for row, cell in enumerate(cells):
            if not (cell is None or isinstance(cell, str | bool | numbers.Real)):
                kind = type(cell).__name__
                where = f"the column {column.name!r} holds a {kind} in row {row}"
                raise ClaimError(f"{where}; a table keeps one number or word per cell")
        column = pd.Series(cells, column.index, name=column.name).infer_objects()
    if pd.api.types.is_float_dtype(column.dtype):
        return column.astype(float).map(lambda value: float(f"{value:.{DIGITS}g}"))
    if column.dtype.kind in "biuO" or pd.api.types.is_string_dtype(column.dtype):
        return column
    raise ClaimError(
        f"the column {column.name!r} holds {column.dtype}; a table keeps numbers and words"
    )
