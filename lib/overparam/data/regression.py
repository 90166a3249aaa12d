"""The regression tasks of Noy et al. 2021, Sections 6 and 9, and what stands in for SGEMM."""

import hashlib
from dataclasses import replace

import numpy as np
import torch

from . import DataSet, load
from .transforms import normalise

# The levels of the 14 parameters of an SGEMM kernel, the first ten in powers of two
LEVELS = (
    *((16, 32, 64, 128),) * 2,
    (16, 32),
    *((8, 16, 32),) * 4,
    (2, 8),
    *((1, 2, 4, 8),) * 2,
    *((0, 1),) * 4,
)
LOG_MEAN, LOG_STD = 4.5, 1.1  # of the stand-in's times in ms, roughly those of SGEMM


def sgemm(name, n, n_test, *, seed, target="standardized", transform="homogeneous"):
    """n + n_test rows of SGEMM as a DataSet; for "sgemm-grid" of a synthetic function on its grid.

    x: 14 standardized parameters (10 of them as log2), by default with a constant 1 appended and
    scaled to norm 1: 15 columns. y: (n,), the standardized logarithm of the run time, or for target
    "raw" the run time in ms.
    """
    if name != "sgemm-grid":
        return load(name, n_train=n, n_test=n_test, seed=seed, target=target, transform=transform)
    z, y = grid_function(n + n_test, seed=seed)
    y = torch.exp(LOG_MEAN + LOG_STD * y) if target == "raw" else y
    x = z if transform == "standardized" else normalise(z, transform)
    digest = {"generated": hashlib.sha256(x.numpy().tobytes() + y.numpy().tobytes()).hexdigest()}
    stand_in = "a synthetic function on the 14-parameter grid of SGEMM, for its run times"
    return DataSet(x[:n], y[:n], x[n:], y[n:], name, "synthetic", stand_in, transform, digest)


def grid_function(n, *, seed):
    """z (n, 14), uniform on the grid of SGEMM's parameters, standardized, and y (n,), about so.

    y is linear in z plus products of pairs and a sine, with the same coefficients for every seed:
    as the logarithm of a run time has main effects and interactions.
    """
    draw = np.random.default_rng([seed, 14])
    columns = []
    for j, levels in enumerate(LEVELS):
        values = np.log2(levels) if j < 10 else np.asarray(levels, dtype=float)
        columns.append((draw.choice(values, n) - values.mean()) / values.std())
    z = np.stack(columns, 1)
    fixed = np.random.default_rng(2021)
    linear = fixed.standard_normal(14) / 14**0.5
    pairs = fixed.standard_normal((14, 14)) / 14
    y = z @ linear + ((z @ pairs) * z).sum(1) / 2 + np.sin(2 * z @ linear)
    return torch.from_numpy(z), torch.from_numpy(y / 1.5)


def ten_classes(name, n, n_test, *, seed, stand_in=None):
    """A set of images for the regression on one-hot labels: y (n, 10).

    x: the images less the mean of the training images, scaled to norm 1. stand_in: what the record
    says of the data instead of the data set's own words.
    """
    data = load(name, n_train=n, n_test=n_test, seed=seed, transform="raw", flat=True)
    mean = data.x_train.mean(0)
    tiny = torch.finfo(mean.dtype).tiny  # an image equal to the mean stays zero
    parts = {}
    for part in ("train", "test"):
        x, y = getattr(data, f"x_{part}") - mean, getattr(data, f"y_{part}")
        parts[f"x_{part}"] = x / x.norm(dim=1, keepdim=True).clamp(min=tiny)
        parts[f"y_{part}"] = torch.eye(10, dtype=mean.dtype)[y.long()]
    stand_in = stand_in or data.stand_in
    return replace(data, **parts, stand_in=stand_in, transform="centred, unit norm")
