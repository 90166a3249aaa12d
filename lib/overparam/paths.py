"""Absolute paths of the project's folders. Nobody else computes one."""

import os
import tempfile
from pathlib import Path

for _name in ("OVERPARAM_FIGURES", "OVERPARAM_DATA"):  # kernels and jobs begin in other folders
    if os.environ.get(_name):
        os.environ[_name] = os.path.abspath(os.environ[_name])

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
CHECKS = NOTEBOOKS / "checks"
PROFILES = NOTEBOOKS / "profiles.toml"
FIGURES = Path(os.environ.get("OVERPARAM_FIGURES") or ROOT / "figures")
DATA = ROOT / "data"
CACHE = DATA / "cache"
LOGS = ROOT / "logs"
SITE = ROOT / "site"
LAB = ROOT / "lab"


def for_sockets():
    """A temporary folder whose name leaves room in the hundred bytes that the address of a socket may have."""
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) <= 70 else "/tmp"


def mirror():
    """The read-only folder of data sets that `OVERPARAM_DATA` names, or None."""
    folder = os.environ.get("OVERPARAM_DATA")
    return Path(folder) if folder else None
