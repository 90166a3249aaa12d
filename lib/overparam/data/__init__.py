"""Data sets by name, checked against their sha256.

A data set is looked for in the project's cache, in the folder that OVERPARAM_DATA names, and at its
original host, in this order. One that cannot be had raises DataUnavailable: nothing is ever
replaced by something else.

>>> from overparam.data import load
>>> load("mnist-5k", classes=(0, 1), n_train=800, n_test=200, seed=0)
DataSet(mnist-5k: 800 + 200 rows of shape (784,), unit, torch.float64, from embedded)
"""

import functools
import hashlib
import inspect
from dataclasses import dataclass

import numpy as np
import torch

from ..errors import ParameterError
from . import draw, readers, sources, synthetic, transforms
from .sources import fetch
from .transforms import normalise

__all__ = ["DataSet", "describe", "fetch", "load", "normalise"]

GENERATORS = {
    "guo-synthetic": synthetic.guo_synthetic,
    "noy-ackley": synthetic.noy_ackley,
    "sphere": synthetic.sphere,
    "margin-sphere": synthetic.margin_sphere,
}
# kind of data -> transforms (the default first), options with their defaults
SETTINGS = {
    "images": (transforms.IMAGE, {"flat": None}),
    "table": (transforms.TABLE, {"target": "standardized"}),
    "text": (("tokens",), {"vocab": 1000, "length": 500}),
}


@dataclass(frozen=True, eq=False, repr=False)
class DataSet:
    """Tensors of one data set, and what they are.

    x_train (n_train, ...), y_train (n_train,), x_test (n_test, ...), y_test (n_test,). `source`:
    "cache", "mirror", "embedded", "synthetic" or the host it was just downloaded from. `stand_in`:
    None, or what the data stand in for. `sha256`: file -> digest, the same whichever form of the
    data was read.
    """

    x_train: torch.Tensor
    y_train: torch.Tensor
    x_test: torch.Tensor
    y_test: torch.Tensor
    name: str
    source: str
    stand_in: str | None
    transform: str
    sha256: dict

    def __repr__(self):
        rows = (
            f"{len(self.x_train)} + {len(self.x_test)} rows of shape "
            f"{tuple(self.x_train.shape[1:])}"
        )
        return (
            f"DataSet({self.name}: {rows}, {self.transform}, {self.x_train.dtype}, from "
            f"{self.source})"
        )


def load(
    name,
    *,
    classes=None,
    n_train=None,
    n_test=None,
    seed=0,
    transform=None,
    dtype=torch.float64,
    **options,
):
    """A data set by name, as DataSet.

    `overparam data list` shows the names, data/README.md what each holds.
    classes: class labels to keep; y is +1, -1 for two of them, else 0..k-1 in this order; None
    keeps all.
    n_train, n_test: rows drawn uniformly without replacement from the training and from the test
    split (None: all, in seeded order); with one seed the draws are nested. Data without a split of
    their own are split by the seed. transform: images "unit" (x/|x|, default), "half", "raw",
    "unit_bias", "homogeneous"; tables "standardized" (default), or one of `normalise` on top of it;
    fitted on the whole training split.
    options: images flat=False for (c, h, w); tables target="raw" for unscaled targets; imdb vocab,
    length; synthetic sets the keywords of their function in `overparam.data.synthetic`.

    Raises ParameterError (unknown names and options, more rows than there are), DataUnavailable,
    DataCorrupt.

    >>> data = load("sphere", n_train=50, n_test=0, d=3)
    >>> data.x_train.shape, data.y_train[:3].tolist()
    (torch.Size([50, 3]), [1.0, 1.0, -1.0])
    """
    info = sources.entry(name)
    n_train = None if n_train is None else draw.count("n_train", n_train, 1)
    n_test = None if n_test is None else draw.count("n_test", n_test, 0)
    seed = draw.count("seed", seed, 0)
    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise ParameterError(f"dtype = {dtype!r} is not a floating-point torch.dtype")
    if classes is not None and info["kind"] in ("table", "synthetic"):
        raise ParameterError(f"{name} has no classes to choose from")
    transform, options = _settings(name, info, transform, options)
    if info["kind"] == "synthetic":
        tensors, source, digests = _generated(name, n_train, n_test, seed, transform, options)
    else:
        tensors, source, digests = _stored(name, classes, n_train, n_test, seed, transform, options)
    tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
    return DataSet(
        *tensors, name, source, info.get("stand_in"), options.get("inputs", transform), digests
    )


def describe():
    """One dict per data set: name, available, MiB, licence, origin. Reads none of the files.

    `available`: "cache", "mirror", "embedded", "synthetic", or else "to be fetched" from its host,
    "to be installed" with its package. MiB: of the files where they lie, or of the download; None
    where its size is not known beforehand.
    """
    rows = []
    for name, info in sources.registry().items():
        found = sources.find(name)
        if info["kind"] == "synthetic":
            available = "synthetic"
        elif found:
            available = found.source
        else:
            available = "to be fetched" if "urls" in info else "to be installed"
        files = info.get("files", {}).values()
        sizes = (
            [size for _, size, _ in found.stamps] if found else [file.get("size") for file in files]
        )
        size = None if None in sizes else round(sum(sizes) / 2**20, 1)
        about = {"licence": info["licence"], "origin": info["origin"]}
        rows.append({"name": name, "available": available, "MiB": size, **about})
    return rows


def _settings(name, info, transform, options):
    """The transform and all options with their defaults. Raises ParameterError for others."""
    if info["kind"] == "synthetic":
        known = inspect.signature(GENERATORS[name]).parameters
        defaults = {key: p.default for key, p in known.items() if key not in ("n", "seed")}
        # guo-synthetic computes its labels from the scaled inputs, so its scaling is the option
        # `inputs`
        allowed = (
            ("raw",)
            if "inputs" in defaults
            else (info.get("transform", "raw"), "raw", *transforms.ROW)
        )
    else:
        allowed, defaults = SETTINGS[info["kind"]]
    unknown = [key for key in options if key not in defaults]
    if unknown:
        raise ParameterError(
            f"{name} has no option {unknown[0]!r}; it has {', '.join(defaults) or 'none'}"
        )
    if transform is not None and transform not in allowed:
        raise ParameterError(
            f"transform {transform!r} is none of {', '.join(dict.fromkeys(allowed))} ({name})"
        )
    return transform or allowed[0], {**defaults, **options}


def _generated(name, n_train, n_test, seed, transform, options):
    info, make = sources.entry(name), GENERATORS[name]
    if "d" in options:
        options["d"] = draw.count("d", options["d"], 1)
    x_train, y_train = make(n_train or info["n_train"], seed=seed, **options)
    x_test, y_test = make(info["n_test"] if n_test is None else n_test, seed=[seed, 1], **options)
    made = (x_train, y_train, x_test, y_test)
    digest = hashlib.sha256(b"".join(t.numpy().tobytes() for t in made)).hexdigest()
    if transform != "raw":
        # together, so that a message about a row counts the test rows after the training rows
        x = normalise(torch.cat([x_train, x_test]), transform)
        x_train, x_test = x[: len(x_train)], x[len(x_train) :]
    return (x_train, y_train, x_test, y_test), "synthetic", {"generated": digest}


def _stored(name, classes, n_train, n_test, seed, transform, options):
    info, found = sources.entry(name), sources.obtain(name)
    raw, digests = readers.read(found)
    classes = None if classes is None else draw.chosen(name, raw.y[0], classes)
    share = info.get("test_share")
    rows = draw.rows(name, raw.y, share, classes=classes, n_train=n_train, n_test=n_test, seed=seed)
    if info["kind"] == "table":
        x, y = _table(raw, rows, transform, **options)
    else:
        y = draw.targets(rows.of(raw.y), classes)
        if info["kind"] == "images":
            x = transforms.images(rows.of(raw.x), transform, named=rows.name, **options)
        else:
            vocab, length = (
                draw.count(key, options[key], least) for key, least in (("vocab", 2), ("length", 1))
            )
            x = transforms.tokens(rows.of(raw.x), _ranking(raw), vocab=vocab, length=length)
    n = len(rows.train)
    return (x[:n], y[:n], x[n:], y[n:]), found.source, digests


def _table(raw, rows, transform, *, target):
    x = torch.from_numpy(transforms.scaler(raw.x[0][rows.split], raw.numeric)(rows.of(raw.x)))
    x = x if transform == "standardized" else normalise(x, transform, named=rows.name)
    if target == "raw":
        return x, torch.from_numpy(rows.of(raw.y))
    if target != "standardized":
        raise ParameterError(f"target {target!r} is neither standardized nor raw")
    y = [np.log(part)[:, None] if raw.log_target else part[:, None] for part in raw.y]
    return x, torch.from_numpy(transforms.scaler(y[0][rows.split], 1)(rows.of(y))[:, 0])


@functools.lru_cache(maxsize=1)
def _ranking(raw):
    return transforms.ranking(raw.x[0])
