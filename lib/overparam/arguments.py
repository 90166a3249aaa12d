"""What a caller hands in, looked at where it comes in: errors name the argument and its shape."""

from numbers import Integral

import torch

from .errors import ParameterError


def finite(values, name):
    """The values as a tensor. Raises ParameterError, naming the first row, for NaN or infinity."""
    values = torch.as_tensor(values)
    if values.is_meta or bool(values.isfinite().all()):
        return values
    bad = values.isfinite().logical_not()
    if values.ndim == 2:
        row = int(bad.any(1).int().argmax())
        raise ParameterError(f"{name} has NaN or infinity in row {row}, of shape {shape(values)}")
    raise ParameterError(f"{name}, of shape {shape(values)}, has NaN or infinity")


def rows(x, name):
    """Inputs (n, d) in float64, none of them zero.

    The angles of a zero row to others, on which kernels depend, are not defined. Raises
    ParameterError otherwise.
    """
    x = torch.as_tensor(x).to(torch.float64)
    if x.ndim != 2:
        raise ParameterError(f"{name} must have one row per input, (n, d), not {shape(x)}")
    finite(x, name)
    lengths = x.norm(dim=1)
    if not x.is_meta and not bool((lengths > 0).all()):
        row = int(lengths.argmin())
        raise ParameterError(f"row {row} of {name} is zero, and a zero input has no direction")
    return x


def seeds(given):
    """The seeds of runs as a list. Raises ParameterError where they are none."""
    one = isinstance(given, Integral)
    if one or not all(isinstance(seed, Integral) for seed in given):
        raise ParameterError(f"seeds must be a list with an integer for each run, not {given!r}")
    if not len(given):
        raise ParameterError("seeds is empty: give one for each run")
    return list(given)


def step_sizes(eta, runs):
    """Step sizes as float64 (runs,), from one for all or one each.

    Raises ParameterError for negative ones and for another number of them.
    """
    sizes = torch.as_tensor(eta, dtype=torch.float64)
    if sizes.ndim > 1 or sizes.numel() not in (1, runs):
        raise ParameterError(f"eta must be one number or one for each of {runs} runs, not {eta!r}")
    if not bool((sizes >= 0).all()):  # not true of NaN, either
        raise ParameterError(f"eta must not be negative or NaN, but is {eta!r}")
    return sizes.expand(runs)


def shape(tensor):
    """A tensor's shape in words: (3, 4)."""
    return f"({', '.join(map(str, tensor.shape))})"
