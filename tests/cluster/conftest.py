"""A copy of the project with two toy claims.

And commands that imitate SLURM's, in a path with a space.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import toy
from copies import Copy

COMMANDS = ("sbatch", "squeue", "scancel", "srun", "sinfo", "scontrol", "sacct")


class Cluster(Copy):
    """The copied tree and its jobs; `start(*words)` is the command line in it."""

    def __init__(self, folder, bodies):
        self.jobs, commands = folder / "jobs", folder / "commands"
        path = f"{commands}{os.pathsep}{os.environ['PATH']}"
        super().__init__(folder / "a project", PATH=path, JOBS=str(self.jobs))
        for claim, body in bodies.items():
            toy.write(self.notebooks, claim, body)
        self.jobs.mkdir()
        commands.mkdir()
        imitation = f"#!{sys.executable}\n" + Path(__file__).with_name("imitation.py").read_text(
            encoding="utf-8"
        )
        for name in COMMANDS:
            (commands / name).write_text(imitation, encoding="utf-8")
            (commands / name).chmod(0o755)

    def batch(self, *words):
        """`overparam figures` with these words for Snakemake, its output in the file `said`."""
        quickly = [
            "--slurm-init-seconds-before-status-checks",
            "1",
            "--slurm-status-command",
            "squeue",
        ]
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
        return next(
            path.stem
            for path in self.jobs.glob("*.asked")
            if comment in path.read_text().splitlines()
        )


@pytest.fixture
def cluster(tmp_path):
    """One claim that takes a moment, and one that fails."""
    return Cluster(
        tmp_path,
        {"toy2020-quick": "import time\ntime.sleep(5)\nvalue = 0.5", "toy2020-fails": "1 / 0"},
    )
