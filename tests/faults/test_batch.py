"""The batch: what is up to date stays, what fails does not stop the others, an interrupt or a kill loses nothing."""

import json
import os
import signal
import time

import pytest


def wait_for(path, seconds=60):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.05)


def test_up_to_date_by_content(project):
    project.only("toy2020-fine", "toy2020-data")
    (project.root / "notebooks" / "toy2020-data.ipynb").unlink()
    assert project.run("figures")[0] == 0
    record = project.record("toy2020-fine")
    os.utime(project.root / "notebooks" / "toy2020-fine.ipynb")
    (project.root / "lib" / "overparam" / "kernels.py").write_text("# not used by the notebook\n")
    code, out, _ = project.run("figures")
    assert (code, "1 of 1 notebooks are up to date" in out) == (0, True)
    assert project.record("toy2020-fine") == record

    used = project.root / "lib" / "overparam" / "train" / "losses.py"
    used.write_text(used.read_text() + "\n# a comment changes nothing\n")
    assert "1 of 1" in project.run("figures")[1]
    used.write_text(used.read_text() + "\nassert True  # runs on import\n")
    code, out, err = project.run("figures")
    assert (code, "0 of 1" in out) == (0, True), err
    assert project.record("toy2020-fine") != record


def test_one_failure_does_not_stop_the_others(project):
    project.only("toy2020-raises", "toy2020-fine")
    code, out, err = project.run("figures")
    assert code == 1
    assert "ZeroDivisionError" in out
    assert "1 of 2 notebooks failed" in err
    assert "Traceback" not in out + err
    assert json.loads(project.record("toy2020-fine"))["verdict"] == "reproduced"
    assert "1 of 2 notebooks are up to date" in project.run("figures")[1]


def test_an_interrupt_keeps_what_is_done_and_the_next_run_goes_on(project):
    project.only("toy2020-fine", "toy2020-slow")
    (project.root / "notebooks" / "profiles.toml").write_text("[toy2020-slow.smoke]\nseconds = 60.0\n")
    batch = project.start("figures", "--cores", "2")
    wait_for(project.root / "notebooks" / "started")
    wait_for(project.figures / "smoke" / "toy2020-fine" / "notebook.ipynb")
    batch.send_signal(signal.SIGINT)
    out, err = batch.communicate(timeout=30)
    assert batch.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in out + err
    assert project.record("toy2020-slow") is None
    (project.root / "notebooks" / "profiles.toml").write_text("")
    code, out, err = project.run("figures")
    assert code == 0, err
    assert "1 of 2 notebooks are up to date" in out
    assert project.record("toy2020-slow")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_leaves_the_last_record(project, how):
    assert project.run("run", "toy2020-slow")[0] == 0
    folder = project.figures / "smoke" / "toy2020-slow"
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    (project.root / "notebooks" / "started").unlink()
    (project.root / "notebooks" / "profiles.toml").write_text("[toy2020-slow.smoke]\nseconds = 60.0\n")
    run = project.start("run", "toy2020-slow")
    wait_for(project.root / "notebooks" / "started")
    run.send_signal(how)
    run.communicate(timeout=30)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    (project.root / "notebooks" / "profiles.toml").write_text("[toy2020-slow.smoke]\nseconds = 0.01\n")
    assert project.run("run", "toy2020-slow")[0] == 0


def test_two_batches_at_once(project):
    project.only("toy2020-fine", "toy2020-slow")
    batches = [project.start("figures") for _ in range(2)]
    for batch in batches:
        out, err = batch.communicate(timeout=120)
        assert batch.returncode == 0, out + err
    assert "2 of 2 notebooks are up to date" in project.run("figures")[1]
