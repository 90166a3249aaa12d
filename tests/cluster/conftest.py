"""A copy of the project with two quick notebooks, and commands that imitate SLURM's, in a path with a space."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from copies import Copy
from overparam.paths import ROOT

COMMANDS = ("sbatch", "squeue", "scancel", "srun", "sinfo", "scontrol", "sacct")


class Cluster(Copy):
    """The copied tree and its jobs; `start(*words)` is the command line in it."""

    def __init__(self, folder, stems):
        self.jobs, commands = folder / "jobs", folder / "commands"
        path = f"{commands}{os.pathsep}{os.environ['PATH']}"
        super().__init__(folder / "a project", PATH=path, JOBS=str(self.jobs))
        shutil.copytree(ROOT / "notebooks" / "checks", self.notebooks / "checks")
        for name in ("profiles.toml", *(f"{stem}.ipynb" for stem in stems)):
            shutil.copy(ROOT / "notebooks" / name, self.notebooks / name)
        self.jobs.mkdir()
        commands.mkdir()
        imitation = f"#!{sys.executable}\n" + Path(__file__).with_name("imitation.py").read_text(encoding="utf-8")
        for name in COMMANDS:
            (commands / name).write_text(imitation, encoding="utf-8")
            (commands / name).chmod(0o755)

    def batch(self, *words):
        """`overparam figures` with these words for Snakemake, its output in the file `said`."""
        quickly = ["--slurm-init-seconds-before-status-checks", "1", "--slurm-status-command", "squeue"]
        with open(self.root / "said", "w") as said:
            command = ["figures", "--", "--executor", "slurm", *quickly, *words]
            return self.start(*command, stdout=said, stderr=subprocess.STDOUT)

    @property
    def said(self):
        return (self.root / "said").read_text(encoding="utf-8")

    def verdict(self, stem):
        path = self.root / "figures" / "smoke" / stem / "result.json"
        return json.loads(path.read_text(encoding="utf-8"))["verdict"] if path.exists() else None

    def wait(self, condition, seconds=200):
        """The first true value of a condition."""
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)
        return value

    def job(self, stem):
        """The id of a job whose notebook is being run."""
        self.wait(lambda: list((self.root / "logs" / "smoke").glob(f".{stem}*.ipynb")))
        comment = f"rule_notebook_wildcards_smoke_{stem}"
        return next(path.stem for path in self.jobs.glob("*.asked") if comment in path.read_text().splitlines())


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path, ("frei2019-width-requirement-table", "guo2024-cor33-alpha-optimum"))
