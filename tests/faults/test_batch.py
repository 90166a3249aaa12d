"""The batch: what is up to date stays, what fails does not stop the others, an interrupt or a kill
loses nothing.
"""

import json
import os
import shutil
import signal

import pytest
from toys import SECONDS, wait_for

import toy
from ledger import records
from ledger.batch import _where
from overparam import memory


def test_up_to_date_by_content(project):
    project.only("toy2020-fine", "toy2020-data")
    project.file("toy2020-data", ".ipynb").unlink()
    assert project.run("figures")[0] == 0
    record = project.record("toy2020-fine")
    os.utime(project.file("toy2020-fine", ".ipynb"))
    (project.root / "lib" / "overparam" / "theory" / "unused.py").write_text(
        "# not used by the notebook\n"
    )
    code, out, _ = project.run("figures")
    assert (code, "1 of 1 notebooks are up to date" in out) == (0, True)
    assert project.record("toy2020-fine") == record

    used = project.root / "lib" / "overparam" / "training" / "losses.py"
    used.write_text(used.read_text() + "\n# a comment changes nothing\n")
    assert "1 of 1" in project.run("figures")[1]
    used.write_text(used.read_text() + "\nassert True  # runs on import\n")
    code, out, err = project.run("figures")
    assert (code, "0 of 1" in out) == (0, True), err
    assert project.record("toy2020-fine") != record


def test_outputs_are_stored_in_the_notebook_alone(project):
    project.only("toy2020-fine")
    path = project.file("toy2020-fine", ".ipynb")
    before = json.loads(path.read_text())
    code, out, err = project.run("outputs", "toy2020-fine")
    assert (code, out.strip()) == (0, "toy2020-fine"), err
    after = json.loads(path.read_text())
    assert [cell["source"] for cell in after["cells"]] == [
        cell["source"] for cell in before["cells"]
    ]
    assert "reproduced" in json.dumps(after["cells"][-1]["outputs"]).lower()
    assert not project.figures.exists()


FAILURES = {
    "toy2020-raises": ["ZeroDivisionError: division by zero"],
    "toy2020-dies": ["the kernel died", "perhaps for lack of memory"],
    "toy2020-greedy": ["MemoryError: Unable to allocate 1.00 GiB"],
    "toy2020-mute": ["it ended without a record of toy2020-mute"],
    "toy2020-diverges": [
        "TrainingDiverged: run 0: the loss is not finite at step",
        "lower eta (now 1e+200)",
    ],
    "toy2020-data": ["DataUnavailable: mnist is neither in"],
}


def test_failures_keep_their_logs_and_the_last_records_and_do_not_stop_the_others(project):
    project.only(*FAILURES, "toy2020-fine", "toy2020-nan")
    for claim in FAILURES:
        (project.figures / "smoke" / claim).mkdir(parents=True)
        (project.figures / "smoke" / claim / "result.json").write_text("the last good record")
    code, out, err = project.run("figures")
    assert code == 1
    assert "6 of 8 notebooks failed; the others are done" in err
    assert "Traceback" not in out + err
    for claim, words in FAILURES.items():
        (line,) = [line for line in out.splitlines() if line.startswith(f"{claim}: ")]
        assert all(word in line for word in words), line
        assert f"logs/smoke/{claim}.ipynb" in out
        assert (project.logs / "smoke" / f"{claim}.ipynb").exists()
        assert project.record(claim) == b"the last good record"
    assert json.loads(project.record("toy2020-fine"))["verdict"] == "reproduced"
    record = json.loads(project.record("toy2020-nan"))
    assert (record["verdict"], record["checks"][0]["value"]) == ("not reproduced", None)
    assert record["metrics"]["same"]["value"] is None
    # Said once, in our words: nbclient's own line could come after the last one of an interrupted
    # run.
    assert "Kernel died while" not in project.run("run", "toy2020-dies")[2]
    good = [word for claim in ("toy2020-fine", "toy2020-nan") for word in ("--claim", claim)]
    assert "2 of 2 notebooks are up to date" in project.run("figures", *good)[1]


@pytest.mark.parametrize("words", [["figures", "--cores", "2"], ["run", "toy2020-slow"]])
def test_an_interrupt_or_a_kill_keeps_what_is_done(project, words):
    """A kernel gets the interrupt, and the time to save what it has."""
    project.only("toy2020-fine", "toy2020-slow")
    assert project.run("figures")[0] == 0
    before = project.folder("toy2020-slow")
    started = project.started
    saved = project.started.with_name("saved")
    project.smoke(seconds=600.0)
    assert project.run("run", "toy2020-fine")[0] == 0
    done = project.folder("toy2020-fine")
    for how, expected in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)):
        started.unlink()
        run = project.start(*words)
        wait_for(started.exists, "the slow notebook")
        run.send_signal(how)
        out, err = run.communicate(timeout=SECONDS)
        assert run.returncode == expected
        assert err.rstrip().endswith("run again to go on") or how == signal.SIGKILL
        assert "Traceback" not in out + err
        wait_for(lambda: not project.processes(), "the end of all processes")
        assert project.folder("toy2020-slow") == before
        assert saved.exists() == (how != signal.SIGKILL)
        saved.unlink(missing_ok=True)
    project.register("toy2020-slow", "[sizes.smoke]\nseconds = 0.01\n")
    code, out, err = project.run(*words)
    assert code == 0, err
    assert "1 of 2 notebooks are up to date" in out or words[0] == "run"
    assert project.folder("toy2020-fine") == done
    assert project.folder("toy2020-slow") != before
    assert project.left() == []


def test_two_batches_at_once_share_the_work(project):
    project.only("toy2020-fine", "toy2020-slow")
    project.smoke(seconds=1.0)
    batches = [project.start("figures") for _ in range(2)]
    for batch in batches:
        out, err = batch.communicate(timeout=120)
        assert batch.returncode == 0, out + err
    assert "2 of 2 notebooks are up to date" in project.run("figures")[1]
    assert project.started.read_text() == "\n"


ODD = """
import pwd, time
now, start = time.time, time.time()
time.time = lambda: now() - 86400 * (now() > start + 0.5)
def getpwuid(uid):
    raise KeyError(uid)
pwd.getpwuid = getpwuid
"""


def test_an_odd_machine(project):
    """No home to write to, the plainest locale, an absurd thread count.

    And a clock that jumps, after the sources.
    """
    project.only("toy2020-fine", "toy2020-trains")
    (project.root / "lib" / "sitecustomize.py").write_text(ODD)
    for path in project.notebooks.rglob("*.toml"):
        os.utime(path, (2**32, 2**32))
    (
        project.root
        / "a temporary folder of one's own, with a name that is too long for the address of a "
        "socket"
    ).mkdir()
    odd = {
        "HOME": "/proc",
        "XDG_CACHE_HOME": "",
        "IPYTHONDIR": "/proc/ipython",
        "LC_ALL": "C",
        "OMP_NUM_THREADS": "0",
        "TMPDIR": str(next(project.root.glob("a temp*"))),
    }
    code, out, err = project.run("figures", **odd)
    assert code == 0, out + err
    code, out, err = project.run("figures", **odd)
    assert (code, "2 of 2 notebooks are up to date" in out) == (0, True), err
    project.smoke(width=6)
    del project.environment["HOME"]
    code, out, err = project.run("figures", XDG_CACHE_HOME="")
    assert code == 0, out + err
    assert not (project.root / "~").exists()


@pytest.mark.parametrize("words", [["figures"], ["run", "toy2020-draws"]])
def test_nothing_of_the_users_gets_into_a_record(project, words):
    """Another's kernel of the same name, a module called like a library, a style.

    Folders named from where one is.
    """
    project.only("toy2020-draws")
    assert project.run(*words)[0] == 0
    (picture,) = (
        content for name, content in project.folder("toy2020-draws").items() if name.endswith("png")
    )
    kernel = project.root / "own" / "kernels" / "python3"
    style = project.root / "own" / "matplotlibrc"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(
        '{"argv": ["/bin/false"], "display_name": "x", "language": "python"}'
    )
    style.write_text("axes.facecolor: red\n")
    project.started.with_name("torch.py").write_text("1 / 0")
    own = {
        "JUPYTER_PATH": str(kernel.parents[1]),
        "MATPLOTLIBRC": str(style),
        "OVERPARAM_FIGURES": "elsewhere",
    }
    code, out, err = project.run(*words, cwd="own", **own)
    assert code == 0, out + err
    drawn = project.root / "own" / "elsewhere" / "smoke" / "toy2020-draws"
    assert (drawn / "a.png").read_bytes() == picture
    assert "1 of 1 notebooks are up to date" in project.run("figures", cwd="own", **own)[1]
    record = json.loads((drawn / "result.json").read_text())
    assert record["device"].startswith("CPU, 1 threads")


def test_sources_that_change_while_a_run_waits_or_begins(project):
    """The edited notebook of a second run.

    And its record, are not those of the sources before and after.
    """
    path = project.file("toy2020-slow", ".ipynb")
    original = path.read_text()
    project.smoke(seconds=5.0)
    first = project.start("run", "toy2020-slow")
    wait_for(project.started.exists, "the first run")
    project.smoke(seconds=0.1)
    second = project.start("run", "toy2020-slow")
    wait_for(lambda: "waiting for the end" in second.stderr.readline(), "the second run")
    path.write_text(original.replace("value = 0.5", "value = 0.25"))
    for run in (first, second):
        run.communicate(timeout=SECONDS)
        assert run.returncode == 0
    assert json.loads(project.record("toy2020-slow"))["checks"][0]["value"] == 0.25
    assert '"stale": false' in project.run("list", "--json")[1]
    assert "* outdated" not in project.run("list")[2]
    path.write_text(original)
    assert '"stale": false' not in project.run("list", "--json")[1]
    assert "* outdated" in project.run("list")[2]

    fine, table = project.file("toy2020-fine", ".ipynb"), project.file("toy2020-fine")
    writes = json.dumps(f"open({str(table)!r}, 'a').write('# ')\nfrom ledger")[1:-1]
    fine.write_text(fine.read_text().replace("from ledger", writes))
    code, _, err = project.run("run", "toy2020-fine")
    assert (code, "sources were written to" in err) == (1, True), err
    assert table.read_text().endswith("# ")
    assert project.record("toy2020-fine") is None


def test_nothing_stays_in_the_temporary_folder(project):
    project.smoke(seconds=600.0)
    own = project.root / "t"
    own.mkdir()
    for how, expected in ((signal.SIGKILL, -9), (signal.SIGHUP, 129)):
        run = project.start("run", "toy2020-slow", TMPDIR=str(own))
        wait_for(project.started.exists, "the notebook")
        project.started.unlink()
        run.send_signal(how)
        err = run.communicate(timeout=3 * SECONDS)[
            1
        ]  # a kernel that does not hear is ended by force after SECONDS
        assert err.startswith("terminated; finished" if how == signal.SIGHUP else "")
        assert run.returncode == expected
        wait_for(lambda: not project.processes(), "the end of all processes")
    assert list(own.iterdir()) == []


def test_few_cores_do_not_mean_fewer_threads(project):
    project.only("toy2020-fine")
    project.register("toy2020-fine", "[sizes.laptop]\nwidth = 7\n")
    code, out, err = project.run("figures", "--profile", "laptop", "--cores", "1")
    assert code == 0, out + err
    assert json.loads(project.record("toy2020-fine", "laptop"))["device"].startswith(
        "CPU, 2 threads"
    )


TIMED = """
import time
began = time.time()
time.sleep(4)
claim.metric("began", began)
claim.metric("ended", time.time())
value = 0.5
"""


def test_notebooks_that_do_not_fit_into_memory_together_run_in_turn(project):
    """As in a control group of a job: what may be used is handed to Snakemake."""
    claims = ["toy2020-one", "toy2020-two"]
    project.only()
    for claim in claims:
        toy.write(project.notebooks, claim, TIMED)
    code, out, err = project.run("figures", "--cores", "2", OVERPARAM_MEMORY="4G")
    assert code == 0, out + err
    metrics = [json.loads(project.record(claim))["metrics"] for claim in claims]
    times = sorted((row["began"]["value"], row["ended"]["value"]) for row in metrics)
    assert times[0][1] < times[1][0]


def test_a_batch_takes_the_cores_and_the_memory_that_it_may_have(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5})
    monkeypatch.setattr(memory, "budget", lambda: 9000 * 2**20)
    page = records.pages("smoke")[0]
    words = _where([], "smoke", [page], None)
    assert words[words.index("--cores") + 1] == "1"
    assert "mem_mb=9000" in words
    monkeypatch.setattr(memory, "budget", lambda: 1)
    assert "mem_mb=3500" in _where([], "smoke", [page], None)  # one may always begin


def test_a_kernel_that_does_not_start_in_time_is_not_said_to_lack_memory(project):
    project.only("toy2020-fine")
    runner = project.root / "lib" / "ledger" / "runner.py"
    runner.write_text(runner.read_text().replace("STARTING = 300", "STARTING = 1"))
    slowly = "import sys, time\nif any('kernel.py' in word for word in sys.orig_argv):\n    "
    slowly += "time.sleep(9)\n"
    (project.root / "lib" / "sitecustomize.py").write_text(slowly)
    code, _, err = project.run("run", "toy2020-fine")
    assert (code, "the kernel did not start within 1 seconds" in err) == (1, True), err
    assert "memory" not in err


@pytest.mark.parametrize("words", [["show"], ["run"]])
def test_an_output_that_cannot_hold_all_letters_gets_others(project, words):
    project.only("toy2020-fine")
    file = project.file("toy2020-fine")
    file.write_text(file.read_text().replace("The value is small", "Zoë's ∞ value is small"))
    code, out, err = project.run(*words, "toy2020-fine", PYTHONIOENCODING="ascii")
    assert code == 0, out + err
    assert "value is small" in out or words == ["run"]


@pytest.mark.parametrize(
    ("kept", "asked"),
    [("accounting_storage/none", True), ("(null)", True), ("accounting_storage/slurmdbd", False)],
)
def test_states_of_jobs_are_asked_of_what_the_controller_keeps(tmp_path, monkeypatch, kept, asked):
    fake = tmp_path / "scontrol"
    fake.write_text(f"#!/bin/sh\necho 'AccountingStorageType   = {kept}'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    words = _where(["--executor", "slurm"], "smoke", ["a"], None)
    assert ("squeue" in words) == asked
    told = _where(["--executor=slurm", "--slurm-status-command=sacct"], "smoke", ["a"], None)
    assert "squeue" not in told


PARENT = """
import os
from pathlib import Path
from ledger import paths
parent = Path(f"/proc/{os.getppid()}/cmdline").read_text().split("\\0")
paths.NOTEBOOKS.joinpath("toy2020", "parent").write_text(" ".join(parent))
value = 0.5
"""


def test_notebooks_of_one_thread_run_in_prepared_kernels_where_there_are_several(project):
    toy.write(project.notebooks, "toy2020-child", PARENT)
    parent = project.notebooks / "toy2020" / "parent"
    told = {}
    for others in ((), ("toy2020-fine",)):
        project.only("toy2020-child", *others)
        shutil.rmtree(project.figures, ignore_errors=True)
        code, _, err = project.run("figures")
        assert code == 0, err
        told[len(others)] = parent.read_text()
    assert "prepared.py" not in told[0]
    assert "prepared.py serve" in told[1]
