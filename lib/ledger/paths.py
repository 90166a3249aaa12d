"""Absolute paths of the project's folders. Nobody else computes one."""

import os
import tempfile
from pathlib import Path

for _name in ("OVERPARAM_FIGURES", "OVERPARAM_DATA"):  # kernels and jobs begin in other folders
    if os.environ.get(_name):
        os.environ[_name] = os.path.abspath(os.environ[_name])

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
FIGURES = Path(os.environ.get("OVERPARAM_FIGURES") or ROOT / "figures")
# The checkout itself may be read-only where its figures lie elsewhere.
LOGS = FIGURES / "logs" if os.environ.get("OVERPARAM_FIGURES") else ROOT / "logs"
SITE = ROOT / "site"
LAB = ROOT / "lab"


def for_sockets():
    """A temporary folder whose name leaves room in the hundred bytes that the address of a socket
    may have.
    """
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) <= 70 else "/tmp"


def relative(path):
    """A path as a reader in the present folder writes it; jobs of a batch stand in that of logs."""
    here = Path.cwd()
    return os.path.relpath(path) if here in path.parents and here != LOGS else path
