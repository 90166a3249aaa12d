"""A copy of the project with toy claims, and a SLURM on which its notebooks run as jobs."""

import json
import os
import subprocess
import time

import pytest
import slurm
from filelock import FileLock

import toy
from copies import Copy


class Cluster(Copy):
    """The copied tree and the scheduler; `start(*words)` is the command line in it."""

    def __init__(self, folder, bodies, scheduler):
        super().__init__(folder / "a project")
        self.scheduler = scheduler
        self.earlier = set(scheduler.jobs())  # of other tests
        for claim, body in bodies.items():
            toy.write(self.notebooks, claim, body)

    def batch(self, *words):
        """`overparam figures` with these words for Snakemake, its output in the file `said`."""
        quickly = ["--slurm-init-seconds-before-status-checks", "1"]
        with open(self.root / "said", "w") as said:
            command = ["figures", "--", "--executor", "slurm", *quickly, *words]
            return self.start(*command, stdout=said, stderr=subprocess.STDOUT)

    @property
    def said(self):
        return (self.root / "said").read_text(encoding="utf-8")

    def verdict(self, stem):
        record = self.record(stem)
        return record and record["verdict"]

    def record(self, stem):
        path = self.figures / "smoke" / stem / "result.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def wait(self, condition, seconds=300):
        """The first true value of a condition."""
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, (self.said, self.scheduler.jobs())
            time.sleep(0.2)
        return value

    def jobs(self, stem):
        """Ids of this project's jobs of a notebook, in the order in which they were submitted."""
        found = [
            number
            for number, (comment, _) in self.scheduler.jobs().items()
            if comment.endswith(f"_{stem}") and number not in self.earlier
        ]
        return sorted(found, key=int)

    def job(self, stem):
        """The id of the last job of a notebook, once its kernel runs."""
        self.wait(lambda: list((self.logs / "smoke").glob(f".{stem}*.ipynb")))
        return self.wait(lambda: self.jobs(stem))[-1]

    def state(self, number):
        """PENDING, RUNNING, COMPLETED, CANCELLED, TIMEOUT, ..."""
        return self.scheduler.jobs().get(number, ("", "FORGOTTEN"))[1]


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """A real SLURM, the only one here; where none can be had tests are skipped, or must fail.

    A second process of the tests waits for it, since all programs read the same configuration.
    """
    with FileLock(tmp_path_factory.getbasetemp().parent / "slurm.lock"):
        if reason := slurm.lacking():
            needed = os.environ.get("OVERPARAM_NEEDS_SLURM")
            pytest.fail(reason) if needed else pytest.skip(reason)
        folder = tmp_path_factory.mktemp("slurm")
        for place in (folder, *folder.parents):
            if place.owner() == "root" and str(place).startswith("/tmp/"):
                place.chmod(place.stat().st_mode | 0o011)  # its service of another user passes
        started = slurm.Slurm(folder)
        yield started
        started.stop()


@pytest.fixture
def cluster(tmp_path, scheduler):
    """make(bodies): a project with these claims, whose jobs the scheduler runs."""
    made = []

    def make(bodies):
        made.append(Cluster(tmp_path, bodies, scheduler))
        return made[-1]

    yield make
    scheduler.clear()
    for each in made:
        for process in each.processes():
            process.kill()
