"""A copy of the project to run real notebooks in, what their records measured, and what their runs left behind."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from PIL import Image
from safetensors import safe_open

from overparam.paths import ROOT
from overparam.run import runner

SECONDS = 900  # for a whole run or batch, on a loaded machine


class Copy:
    """The project's sources under `root`, with figures and logs of their own.

    smoke: {claim: {parameter: value}} that differ from the notebooks' own; environment: variables of every run. Where
    there is a copy already, its sources are renewed.
    """

    def __init__(self, root, smoke=None, **environment):
        self.root, self.figures, self.logs = root, root / "figures", root / "logs"
        unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info", "cache")
        for name in ("lib", "notebooks", "data"):
            shutil.copytree(ROOT / name, root / name, ignore=unwanted, dirs_exist_ok=True)
        shutil.copy(ROOT / "Snakefile", root)
        with open(root / "notebooks" / "profiles.toml", "a", encoding="utf-8") as table:
            for claim, values in (smoke or {}).items():
                rows = "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
                table.write(f"\n[{claim}.smoke]\n{rows}")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OVERPARAM")}
        own = {"PYTHONPATH": str(root / "lib"), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
        self.environment = inherited | own | environment

    def start(self, *words, **environment):
        """The command line in this copy, as a process in a group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "overparam.run.cli", *words], cwd=self.root, env=self.environment | environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip

    def run(self, *words, **environment):
        """(exit code, output) of a command."""
        process = self.start(*words, **environment)
        output, _ = process.communicate(timeout=SECONDS)
        return process.returncode, output

    def measured(self, notebooks, figures=None):
        """{claim and what: value as text} of the records of all claims that these notebooks serve, at smoke size."""
        folder = (figures or self.figures) / "smoke"
        found = {}
        for claim in [claim for notebook in notebooks for claim in runner.served(notebook)]:
            found |= {f"{claim}: {what}": value for what, value in measured(folder / claim / "result.json").items()}
        return found


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


def _arrays(path):
    with np.load(path, allow_pickle=False) as arrays:
        for name in arrays.files:
            arrays[name]


def _tensors(path):
    with safe_open(path, framework="np") as tensors:
        for name in tensors.keys():  # noqa: SIM118
            tensors.get_tensor(name)


def _picture(path):
    with Image.open(path) as picture:
        picture.load()


READERS = {
    ".json": lambda path: json.loads(path.read_text(encoding="utf-8")),
    ".ipynb": lambda path: json.loads(path.read_text(encoding="utf-8")),
    ".npz": _arrays,
    ".safetensors": _tensors,
    ".png": _picture,
    ".svg": ElementTree.parse,
}


def unreadable(*folders):
    """{path: reason} of the files below these folders that are not what their names say; temporary ones apart."""
    found = {}
    for path, unfinished in _files(folders):
        if path.suffix in READERS and not unfinished:
            try:
                READERS[path.suffix](path)
            except FileNotFoundError:  # its writer is still there, and has removed it
                continue
            except Exception as error:  # whatever a reader says of a broken file
                found[str(path)] = f"{type(error).__name__}: {error}"
    return found


def temporary(*folders):
    """Files below these folders whose names, or whose folders' names, are those of unfinished ones."""
    return [str(path) for path, unfinished in _files(folders) if unfinished]


def _files(folders):
    """(path, whether it is unfinished by its name) of every file."""
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                path = Path(parent, name)
                hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
                yield path, hidden or path.suffix == ".tmp"
