"""Flipped bytes, truncated and empty files: said by name or without effect, never a crash, and the next run heals."""

import json
import random

import pytest

from overparam import paths
from overparam.record import checks
from overparam.run import runner

CLAIM = "toy2020-fine"


@pytest.fixture
def here(project, monkeypatch):
    """The project as this process's own."""
    project.only(CLAIM)
    (project.notebooks / "profiles.toml").write_text(
        f"[{CLAIM}.ranges]\nrate = [0.0, 1.0]\n\n[{CLAIM}.laptop]\nwidth = 7\n"
    )
    for name in ("FIGURES", "LOGS", "NOTEBOOKS"):
        monkeypatch.setattr(paths, name, getattr(project, name.lower()))
    monkeypatch.setattr(paths, "CHECKS", project.notebooks / "checks")
    monkeypatch.setattr(paths, "PROFILES", project.notebooks / "profiles.toml")
    checks.registry.cache_clear()  # of an earlier test in this process
    yield project
    checks.registry.cache_clear()


def flipped(content, count, seed):
    """Copies of some bytes with one of them changed."""
    chosen = random.Random(seed)
    for _ in range(count):
        damaged = bytearray(content)
        damaged[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
        yield bytes(damaged)


def cut(content):
    return [content[: len(content) * k // 8] for k in range(8)]


def test_damaged_outputs(here, monkeypatch):
    assert here.run("figures")[0] == 0
    for name, content in here.folder(CLAIM).items():
        path = here.figures / "smoke" / CLAIM / name
        for damaged in [*flipped(content, 8, seed=2), *cut(content)]:
            path.write_bytes(damaged)
            assert runner.stale(CLAIM, "smoke")
            (state,) = [row["profiles"]["smoke"] for row in runner.overview()]
            assert str(path) in state["error"]
        path.write_bytes(content)
        assert not runner.stale(CLAIM, "smoke")
    result = here.figures / "smoke" / CLAIM / "result.json"
    result.write_text(result.read_text().replace('"verdict": "reproduced"', '"verdict": "partly"'))
    code, out, err = here.run("list")
    assert (code, f"{result} is not what its run wrote" in err) == (0, True)
    code, out, err = here.run("figures")
    assert (code, f"{result} is not what its run wrote" in err) == (0, True)
    assert "0 of 1" in out
    assert json.loads(result.read_text())["verdict"] == "reproduced"
    assert not runner.stale(CLAIM, "smoke")
    a_kill_before_the_record_is_in_place_leaves_a_stale_one(here, monkeypatch)


def a_kill_before_the_record_is_in_place_leaves_a_stale_one(here, monkeypatch):
    record, staged = here.record(CLAIM), here.figures / "new"
    (staged / CLAIM).mkdir(parents=True)
    for name in here.folder(CLAIM):
        (staged / CLAIM / name).write_bytes(b"new")
    replace = runner.os.replace

    def until_the_record(source, target):
        if target.name == "result.json":
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(runner.os, "replace", until_the_record)
    with pytest.raises(KeyboardInterrupt):
        runner._install(staged, here.figures / "smoke")
    assert here.folder(CLAIM) == {"result.json": record, "series.npz": b"new", "notebook.ipynb": b"new"}
    assert runner.stale(CLAIM, "smoke")


def test_a_refused_checkpoint_is_named_and_kept(project):
    saved = project.logs / "checkpoints" / "smoke" / "toy2020-trains"
    saved.mkdir(parents=True)
    (saved / "net-0.safetensors").write_bytes(b"")
    for name in ("net-0.123.tmp", ".tmp9VhrFE"):
        (saved / name).write_bytes(b"of a run that was killed")
    code, _, err = project.run("run", "toy2020-trains")
    assert code == 0, err
    assert "a checkpoint did not fit and was not used" in err
    assert [path.name for path in saved.iterdir()] == ["net-0.safetensors.refused"]
