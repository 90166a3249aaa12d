"""A notebook that is killed while it trains, and run again, measures what an undisturbed run measures."""

import json
import time

import pytest
from runs import differing, measured, project
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


def wait(condition, what):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.mark.timeout(600)
def test_two_kills_change_no_bit(tmp_path):
    copy = project(tmp_path / "project", OVERPARAM_CHECKPOINT_SECONDS="0.1")
    with open(copy.notebooks / "profiles.toml", "a", encoding="utf-8") as table:
        table.write(f"\n[{CLAIM}.smoke]\nsteps = 1500\n")
    path = copy.figures / "smoke" / CLAIM / "result.json"
    code, out, err = copy.run("run", CLAIM)
    assert code == 0, out + err
    undisturbed = measured(path)
    assert len(undisturbed) > 10
    path.unlink()
    for victim in ("ipykernel_launcher", ""):  # the kernel, everything
        before = progress(copy)
        with copy.start("run", CLAIM) as process:
            wait(lambda before=before: progress(copy) > before, "no new checkpoint")
            hit = [p for p in copy.processes() if any(victim in word for word in p.cmdline())]
            assert hit
            for one in hit:
                one.kill()
            process.communicate(timeout=SECONDS)
        assert process.returncode != 0
        wait(lambda: not copy.processes(), "something lives on")
        for file in [*copy.figures.rglob("*.json"), *copy.logs.rglob("*.ipynb")]:
            if not file.name.startswith("."):
                json.loads(file.read_text(encoding="utf-8"))
    code, out, err = copy.run("run", CLAIM)
    assert code == 0, out + err
    assert differing(measured(path), undisturbed) == []
    assert copy.left() == []
