"""Flipped bytes, truncated and empty files.

Said by name or without effect, never a crash, and the next run heals.
"""

import json
import random
import subprocess
import sys

import pytest

from ledger import diff, paths, records, registry, runner
from ledger.errors import ClaimError
from toy import tried

CLAIM = "toy2020-fine"
TABLES = """
[ranges]
rate = [0.0, 1.0]

[sizes.laptop]
width = 7

[finding]
of = "smoke, reproduced"
text = 'The value is {{ value("value") }}.'
"""


@pytest.fixture
def here(project, monkeypatch):
    """The project as this process's own."""
    project.only(CLAIM)
    project.register(CLAIM, TABLES)
    for name in ("FIGURES", "LOGS", "NOTEBOOKS"):
        monkeypatch.setattr(paths, name, getattr(project, name.lower()))
    registry.registry.cache_clear()  # of an earlier test in this process
    yield project
    registry.registry.cache_clear()


def flipped(content, count, seed):
    """Copies of some bytes with one of them changed."""
    chosen = random.Random(seed)
    for _ in range(count):
        damaged = bytearray(content)
        damaged[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
        yield bytes(damaged)


def cut(content):
    return [content[: len(content) * k // 8] for k in range(8)]


def test_a_source_with_a_flipped_bit_or_without_its_end(here):
    """It is read as something else, or refused by name."""
    for suffix in (".ipynb", ".toml"):
        path = here.file(CLAIM, suffix)
        content = path.read_bytes()
        for damaged in [*flipped(content, 100, seed=1), *cut(content)]:
            path.write_bytes(damaged)
            registry.registry.cache_clear()
            tried(records.overview, "fine")
            tried(lambda: records.fingerprint(CLAIM, "laptop"), "fine")
        path.write_bytes(content)


def test_damaged_outputs(here, monkeypatch):
    assert here.run("figures")[0] == 0
    registry.registry.cache_clear()
    for name, content in here.folder(CLAIM).items():
        path = here.figures / "smoke" / CLAIM / name
        for damaged in [*flipped(content, 8, seed=2), *cut(content)]:
            path.write_bytes(damaged)
            assert records.stale(CLAIM, "smoke")
            (state,) = [row["sizes"]["smoke"] for row in records.overview()]
            assert str(path) in state["error"]
            with pytest.raises(ClaimError, match=name):  # which would seal it
                runner.refresh(CLAIM, "smoke")
        path.write_bytes(content)
        assert not records.stale(CLAIM, "smoke")
        assert not runner.refresh(CLAIM, "smoke")
    result = here.figures / "smoke" / CLAIM / "result.json"
    result.write_text(
        result.read_text().replace('"verdict": "reproduced"', '"verdict": "partly reproduced"')
    )
    code, out, err = here.run("list")
    assert (code, f"{result} is not what its run wrote" in err) == (0, True)
    code, out, err = here.run("figures")
    assert (code, f"{result} is not what its run wrote" in err) == (0, True)
    assert "0 of 1" in out
    assert json.loads(result.read_text())["verdict"] == "reproduced"
    assert not records.stale(CLAIM, "smoke")
    a_kill_before_the_record_is_in_place_leaves_an_outdated_one(here, monkeypatch)


def test_a_notebook_that_is_run_where_it_lies_damages_nothing(here):
    page = here.file(CLAIM, ".ipynb")
    notebook = json.loads(page.read_text())
    prose = {"cell_type": "markdown", "id": "prose", "metadata": {}, "source": "# A toy"}
    page.write_text(json.dumps({**notebook, "cells": [prose, *notebook["cells"]]}))
    assert here.run("figures")[0] == 0
    before = here.folder(CLAIM)
    path = here.figures / "smoke" / CLAIM / "notebook.ipynb"
    by_hand = [sys.executable, "-m", "jupyter", "nbconvert", "--execute", "--inplace"]
    for notebook in (path, page):
        done = subprocess.run(
            [*by_hand, "--to", "notebook", str(notebook)],
            env=here.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    assert here.record(CLAIM, "custom/smoke,by-hand")
    after = here.folder(CLAIM)
    assert after.pop("notebook.ipynb") != before.pop("notebook.ipynb")
    assert after == before
    code, out, err = here.run("list")
    assert (code, "is not what its run wrote" in err) == (0, False)
    assert f"{CLAIM}  reproduced" in out
    assert f"{path} was run by hand and saved" in err
    assert "1 of 1 notebooks are up to date" in here.run("figures")[1]
    assert here.run("run", CLAIM)[0] == 0
    assert here.run("list")[2].count("was run by hand") == 0


def a_kill_before_the_record_is_in_place_leaves_an_outdated_one(here, monkeypatch):
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
    assert here.folder(CLAIM) == {
        "result.json": record,
        "series.npz": b"new",
        "notebook.ipynb": b"new",
    }
    assert records.stale(CLAIM, "smoke")


def test_an_unreadable_record_is_named(here):
    path = here.figures / "laptop" / CLAIM / "result.json"
    path.parent.mkdir(parents=True)
    for content in (
        b"",
        b"[]",
        b'{"claim": "\xff',
        b'{"verdict": ' + b"1" * 5000 + b"}",
        b"[" * 100_000,
    ):
        path.write_bytes(content)
        assert records.stale(CLAIM, "laptop")
        for read in (lambda: records.load(CLAIM, "laptop"), lambda: diff.at_present(here.figures)):
            with pytest.raises(ClaimError, match=CLAIM) as caught:
                read()
            assert len(str(caught.value)) < len(str(path)) + 500


def test_a_finding_that_cannot_be_filled_costs_no_run(here):
    here.register(CLAIM, TABLES.replace('value("value")', 'value("another")'))
    code, _, err = here.run("run", CLAIM)
    assert (code, "there is no check or number 'another'" in err) == (0, True), err
    assert "1 of 1 check holds" in (here.figures / "smoke" / CLAIM / "notebook.ipynb").read_text()


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
