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

import toy
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
QUICK, FAILS = "toy2020-quick", "toy2020-fails"


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


@pytest.mark.timeout(600)
def test_a_killed_job_is_tried_again_and_a_failing_one_is_told_once(cluster):
    batch = cluster.batch(
        "--retries", "1", "--set-threads", "notebook=3", "--set-resources", "notebook:gpu=1"
    )
    subprocess.run(["scancel", cluster.job(QUICK)], env=cluster.environment, check=True)
    assert batch.wait(timeout=300) == 1, cluster.said
    assert cluster.verdict(QUICK)
    assert "1 of 2 notebooks failed" in cluster.said
    assert len(re.findall(f"^failed +{FAILS}", cluster.said, re.MULTILINE)) == 1
    assert "ZeroDivisionError" in cluster.said
    words = [path.read_text(encoding="utf-8").splitlines() for path in cluster.jobs.glob("*.asked")]
    assert len(words) == 4
    for job in words:
        assert {"--gpus=1", "--cpus-per-task=3"} <= set(job)
        assert (job[job.index("--mem") + 1], job[job.index("-t") + 1]) == ("3500", "20")


@pytest.mark.timeout(600)
def test_jobs_outlive_the_batch_that_was_killed_and_end_with_one_that_was_interrupted(cluster):
    toy.file(cluster.notebooks, FAILS, ".ipynb").unlink()
    batch = cluster.batch()
    number = cluster.job(QUICK)
    (snakemake,) = Path(f"/proc/{batch.pid}/task/{batch.pid}/children").read_text().split()
    batch.kill()
    batch.wait()
    os.killpg(int(snakemake), signal.SIGKILL)
    cluster.wait(lambda: (cluster.jobs / f"{number}.rc").exists())
    assert cluster.verdict(QUICK)

    (cluster.root / "figures" / "smoke" / QUICK / "result.json").unlink()
    batch = cluster.batch()
    cluster.wait(lambda: (cluster.jobs / "2.asked").exists())
    cluster.job(QUICK)
    batch.send_signal(signal.SIGINT)
    assert batch.wait(timeout=200) == 130, cluster.said
    assert (cluster.jobs / "2.rc").read_text() == "137"
    assert cluster.verdict(QUICK) is None
