"""The batch as jobs of a cluster.

What each claim asks for, what is said of how they ended, and what a death costs.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import records, registry
from ledger.paths import ROOT

pytest.importorskip("snakemake_executor_plugin_slurm")
JOB = re.compile(r"wildcards: profile=paper, stem=(\S+)\n(?: +threads: (\d+)\n)? +resources: (.*)")
DRY_RUN = """
import sys
from ledger import batch
words = ["--executor", "slurm", "--dry-run", "--cores", "8"]
words += ["--default-resources", "slurm_partition=gpus"]
batch.run("paper", sys.argv[1:], None, words, lambda event: print(event["text"]))
"""
STEMS = records.pages("paper")
TRAINS, FAILS = "toy2020-trains", "toy2020-fails"
TRAINING = """
import time
import pandas as pd
import torch
from ledger import paths
from overparam.models.two_layer import TwoLayerReLU
from overparam.training import Checkpoint, SquaredLoss, gradient_descent

def slowly(run):
    with open(paths.NOTEBOOKS / "toy2020" / "looks", "a") as looks:
        looks.write("x")
    if not (paths.NOTEBOOKS / "toy2020" / "hurry").exists():
        time.sleep({seconds})
    return run.forward().sum(-1)

x, y = torch.eye(20, dtype=torch.float64), torch.ones(20, dtype=torch.float64)
net = TwoLayerReLU(20, 50, 1.0, seeds=[0], dtype=torch.float64)
saved = Checkpoint(claim.checkpoints / "net", every=0)
looks = {{"outputs": slowly}}
at = list(range({steps} + 1))
history = gradient_descent(
    net, x, SquaredLoss(y, "sum"), 0.1, {steps}, log=looks, at=at, checkpoint=saved
)
claim.keep(pd.DataFrame({{"loss": history.loss[0].numpy()}}), "loss")
value = history.loss[0, -1].item() / 100
"""


@pytest.fixture(scope="module")
def asked():
    """{stem: (threads, {resource: value})} of a dry run of the whole paper profile."""
    run = subprocess.run(
        [sys.executable, "-c", DRY_RUN, *STEMS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = JOB.findall(run.stdout)
    return {
        stem: (int(threads), dict(r.split("=", 1) for r in text.split(", ")))
        for stem, threads, text in found
    }


@pytest.mark.parametrize("stem", STEMS)
def test_every_paper_job_asks_for_what_its_table_says(asked, stem):
    declared = registry.size_of(stem, "paper").resources
    threads, resources = asked[stem]
    assert threads == declared["threads"]
    assert resources["slurm_partition"] == "gpus"
    assert int(resources["gpu"]) == declared.get("gpu", 0)
    assert 5 <= int(resources["runtime"]) - declared["minutes"] <= 15
    least = 8000 if declared.get("gpu") else declared["memory_mb"] + 1000
    assert least <= int(resources["mem_mb"]) <= 128 * 1024


def looks(cluster):
    """How often the training has looked at its outputs: once a step, and again where it resumes."""
    file = cluster.notebooks / "toy2020" / "looks"
    return len(file.read_text()) if file.exists() else 0


def result(cluster):
    """The table and the checks of the training's record."""
    table = (cluster.figures / "smoke" / TRAINS / "loss.csv").read_text()
    return table, cluster.record(TRAINS)["checks"]


@pytest.mark.timeout(900)
def test_jobs_give_what_this_machine_gives_and_a_failing_one_is_told_once(cluster):
    """Without accounting, and without a word of the user's on how to ask for states."""
    here = cluster({TRAINS: TRAINING.format(steps=3, seconds=0), FAILS: "1 / 0"})
    assert here.run("run", TRAINS)[0] == 0
    local = result(here)
    (here.figures / "smoke" / TRAINS / "result.json").unlink()
    batch = here.batch(
        "--retries", "1", "--set-threads", "notebook=3", "--set-resources", "notebook:gpu=0"
    )
    assert batch.wait(timeout=600) == 1, here.said
    assert result(here) == local
    assert "1 of 2 notebooks failed" in here.said
    assert len(re.findall(f"^failed +{FAILS}", here.said, re.MULTILINE)) == 1
    assert "ZeroDivisionError" in here.said
    assert len(here.jobs(FAILS)) == 2
    (number,) = here.jobs(TRAINS)
    asked = here.scheduler.about(number)
    assert (asked["NumCPUs"], asked["TimeLimit"]) == ("3", "00:20:00")
    assert asked["MinMemoryNode"] == "3500M"


@pytest.mark.timeout(900)
def test_a_cancelled_job_goes_on_from_its_checkpoint(cluster):
    steps = 40
    there = cluster({TRAINS: TRAINING.format(steps=steps, seconds=0.5)})
    batch = there.batch("--retries", "1")
    number = there.job(TRAINS)
    there.wait(lambda: looks(there) > 5)
    subprocess.run(["scancel", number], check=True)
    assert batch.wait(timeout=600) == 0, there.said
    assert there.state(number) == "CANCELLED"
    assert len(there.jobs(TRAINS)) == 2
    assert steps + 1 < looks(there) <= steps + 4
    resumed = result(there)
    assert there.record(TRAINS)["resumed"]
    whole = TRAINING.format(steps=steps, seconds=0.5)
    (there.notebooks / "toy2020" / "looks").unlink()
    (there.figures / "smoke" / TRAINS / "result.json").unlink()
    assert there.run("run", TRAINS)[0] == 0, whole
    assert looks(there) == steps + 1
    assert result(there) == resumed


@pytest.mark.timeout(900)
def test_a_job_whose_time_is_over_goes_on_from_its_checkpoint(cluster):
    steps = 300  # too many for a minute and the scheduler's delay in ending it
    there = cluster({TRAINS: TRAINING.format(steps=steps, seconds=1)})
    batch = there.batch("--retries", "3", "--set-resources", "notebook:runtime=1")
    there.wait(lambda: looks(there) > 5)
    number = there.jobs(TRAINS)[-1]
    there.wait(lambda: there.state(number) == "TIMEOUT")
    (there.notebooks / "toy2020" / "hurry").touch()
    assert batch.wait(timeout=600) == 0, there.said
    states = [there.state(job) for job in there.jobs(TRAINS)]
    assert states[-2:] == ["TIMEOUT", "COMPLETED"]
    assert looks(there) <= steps + 4
    assert there.record(TRAINS)["resumed"]


@pytest.mark.timeout(900)
def test_jobs_outlive_the_batch_that_was_killed_and_end_with_one_that_was_interrupted(cluster):
    there = cluster({TRAINS: TRAINING.format(steps=10, seconds=1)})
    batch = there.batch()
    number = there.job(TRAINS)
    (snakemake,) = Path(f"/proc/{batch.pid}/task/{batch.pid}/children").read_text().split()
    batch.kill()
    batch.wait()
    os.killpg(int(snakemake), signal.SIGKILL)
    there.wait(lambda: there.state(number) == "COMPLETED")
    assert there.verdict(TRAINS)

    (there.figures / "smoke" / TRAINS / "result.json").unlink()
    batch = there.batch()
    second = there.wait(lambda: [job for job in there.jobs(TRAINS) if job != number])[-1]
    there.job(TRAINS)
    batch.send_signal(signal.SIGINT)
    assert batch.wait(timeout=200) == 130, there.said
    there.wait(lambda: there.state(second) == "CANCELLED")
    assert there.verdict(TRAINS) is None
