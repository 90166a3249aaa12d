"""Copies of the project to run real notebooks in, and what their records measured."""

import json
import shutil

import numpy as np

from copies import Copy
from overparam.paths import ROOT


def project(root, **environment):
    """A copy with all notebooks and data."""
    copy = Copy(root, seconds=900, **environment)
    for name in ("notebooks", "data"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("cache"))
    return copy


def measured(path):
    """{what: value as text or bytes} of a record: its verdict, the values of its checks and metrics, its series."""
    record = json.loads(path.read_text(encoding="utf-8"))
    found = {"verdict": record["verdict"]}
    found |= {f"check {row['name']}": repr(row["value"]) for row in record["checks"]}
    found |= {f"metric {name}": repr(row["value"]) for name, row in record["metrics"].items()}
    if record["series"]:
        with np.load(path.with_name("series.npz"), allow_pickle=False) as arrays:
            series = {name: arrays[name] for name in arrays.files}
        found |= {f"series {name}": (a.dtype.str, a.shape, a.tobytes()) for name, a in series.items()}
    return found


def differing(one, other):
    """Names of what two runs did not measure alike, to the last bit."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
