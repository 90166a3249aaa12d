"""From decoded arrays to the inputs that the papers train on. All computations are in float64."""

import math
import re
from collections import Counter

import numpy as np
import torch

from ..errors import ParameterError

ROW = ("unit", "unit_bias", "homogeneous")
IMAGE = ("unit", "half", "raw", "unit_bias", "homogeneous")
TABLE = ("standardized", "unit", "unit_bias", "homogeneous")


def normalise(x, how, *, named=str):
    """The rows of x, shape (n, d), scaled to norm 1: float64, shape (n, d) or (n, d + 1).

    `unit`: x/|x|. `unit_bias`: (x/|x|, 1)/sqrt 2, with last coordinate 1/sqrt 2 as Allen-Zhu et al.
    2019, Sec. 2, assume it. `homogeneous`: (x, 1)/|(x, 1)|. Raises ParameterError for a zero row
    where x/|x| is asked for; `named` makes the row's name out of its place in x.
    """
    return _scaled(x.to(torch.float64, copy=True), how, named)


def _scaled(x, how, named):
    # in place: all of CIFAR-10 takes 1.5 GB in float64
    if how not in ROW:
        raise ParameterError(f"transform {how!r} is none of {', '.join(ROW)}")
    if how == "homogeneous":
        x = _append_one(x)
    norms = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    zero = torch.nonzero(norms[:, 0] == 0)
    if len(zero):
        raise ParameterError(
            f"row {named(int(zero[0]))} is zero everywhere, it cannot be scaled to norm 1"
        )
    x.div_(norms)
    return _append_one(x).div_(math.sqrt(2)) if how == "unit_bias" else x


def _append_one(x):
    return torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], dim=1)


def images(x, how, *, flat=None, named=str):
    """uint8 images (n, h, w) or (n, h, w, 3) as float64, flat or (n, c, h, w).

    Flat, (n, c*h*w), unless `raw` or flat=False.
    `raw` is x/255, `half` is (x/255 - 0.5)/0.5 (Guo et al. 2024, App. C.1); the others are
    `normalise`.
    """
    flat = how != "raw" if flat is None else flat
    if not flat and how not in ("raw", "unit", "half"):
        raise ParameterError(
            f"transform {how!r} adds a coordinate: it has no image shape, drop flat=False"
        )
    x = torch.from_numpy(x)
    x = x.unsqueeze(1) if x.ndim == 3 else x.permute(0, 3, 1, 2)
    shape = x.shape
    x = x.reshape(len(x), math.prod(shape[1:])).to(torch.float64).div_(255)
    if how == "half":
        x.sub_(0.5).div_(0.5)
    elif how != "raw":
        x = _scaled(x, how, named)
    return x if flat else x.reshape(shape)


def scaler(x, numeric):
    """A function that imputes and standardises `numeric` first columns as the rows of x say.

    x: (n, p).
    A missing value becomes the column's median, then each column gets mean 0 and standard deviation
    1 (a constant column becomes 0). Columns beyond (one-hot codes) stay. Guo et al. 2024, App. C.1.
    """
    median = np.nanmedian(x[:, :numeric], axis=0)
    filled = np.where(np.isnan(x[:, :numeric]), median, x[:, :numeric])
    mean, std = filled.mean(axis=0), filled.std(axis=0)
    std[std == 0] = 1

    def scale(rows):
        head = rows[:, :numeric]
        head = (np.where(np.isnan(head), median, head) - mean) / std
        return np.hstack([head, rows[:, numeric:]])

    return scale


def words(text):
    """The words of a review: lower case, the marks <br /> left out."""
    return re.findall(r"[a-z0-9']+", text.lower().replace("<br />", " "))


def ranking(texts):
    """word -> 1, 2, ... by falling number of occurrences in the texts, then by alphabet."""
    counts = Counter()
    for text in texts:
        counts.update(words(text))
    return {
        word: k
        for k, word in enumerate(sorted(counts, key=lambda word: (-counts[word], word)), start=1)
    }


def tokens(texts, rank, *, vocab, length):
    """Token ids, int64 (n, length): the first `length` words that rank below `vocab`, then 0."""
    ids = torch.zeros(len(texts), length, dtype=torch.int64)
    for row, text in zip(ids, texts, strict=True):
        known = [k for word in words(text) if (k := rank.get(word, vocab)) < vocab][:length]
        row[: len(known)] = torch.tensor(known, dtype=torch.int64)
    return ids
