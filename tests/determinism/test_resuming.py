"""A notebook that is killed while it trains, and run again, measures what an undisturbed run measures."""

import time

import pytest
from kills import kill, survivors, tree
from runs import Copy, differing, temporary, unreadable
from safetensors import safe_open

CLAIM = "arora2019-fig1-convergence-labels"
SECONDS = 120


def progress(copy):
    """Steps in the checkpoints of the claim; a finished run counts as a million."""
    steps = 0
    for path in (copy.logs / "checkpoints" / "smoke" / CLAIM).glob("*.safetensors"):
        with safe_open(path, framework="np") as file:
            step = int(file.metadata()["step"])
        steps += step if step >= 0 else 1_000_000
    return steps


def wait_for_progress(copy, process, beyond):
    deadline = time.monotonic() + SECONDS
    while progress(copy) <= beyond:
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline, "no new checkpoint"
        time.sleep(0.05)


@pytest.mark.timeout(600)
def test_two_kills_change_no_bit(tmp_path):
    copy = Copy(tmp_path / "project", {CLAIM: {"steps": 1500}}, OVERPARAM_CHECKPOINT_SECONDS="0.1")
    code, output = copy.run("run", CLAIM)
    assert code == 0, output
    undisturbed = copy.measured([CLAIM])
    assert len(undisturbed) > 10
    (copy.figures / "smoke" / CLAIM / "result.json").unlink()
    for victim in ("kernel", "everything"):
        before = progress(copy)
        with copy.start("run", CLAIM) as process:
            wait_for_progress(copy, process, before)
            processes = tree(process)
            assert kill(processes, victim) > 0
            process.communicate(timeout=SECONDS)
        assert process.returncode != 0
        assert survivors(processes, SECONDS) == []
        assert unreadable(copy.figures, copy.logs) == {}
    code, output = copy.run("run", CLAIM)
    assert code == 0, output
    assert differing(copy.measured([CLAIM]), undisturbed) == []
    assert unreadable(copy.figures, copy.logs) == {}
    assert temporary(copy.figures, copy.logs) == []
