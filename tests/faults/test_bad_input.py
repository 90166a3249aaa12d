"""What a user can get wrong: one or two lines on stderr, a non-zero exit code, nothing lost."""

import json

import pytest


def complains(outcome, *words):
    """The run failed with a short message that holds the words, and without a traceback."""
    code, out, err = outcome
    assert code != 0, out
    assert "Traceback" not in out + err
    assert len(err.strip().splitlines()) <= 3, err
    for word in words:
        assert word in err
    return True


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "toy2020-find"], ["unknown claim 'toy2020-find'", "did you mean toy2020-fine"]),
        (["run", "toy2020-fine", "--profile", "huge"], ["unknown profile 'huge'", "smoke, laptop, paper"]),
        (["run", "toy2020-fine", "--profile", "laptop"], ["has no profile 'laptop'"]),
        (["run", "toy2020-fine", "-p", "widht=3"], ["unknown parameter 'widht'", "width"]),
        (["run", "toy2020-fine", "-p", "rate=fast"], ["rate must be float", "'fast'"]),
        (["run", "toy2020-fine", "-p", "width=0"], ["width must be at least 1, not 0"]),
        (["run", "toy2020-fine", "-p", "width=1e3"], ["width must be int"]),
        (["run", "toy2020-fine", "-p", "profile=paper"], ["--profile"]),
        (["run", "toy2020-fine", "-p", "width"], ["name=value"]),
        (["run", "toy2020-fine", "-p", "rate=nan"], ["rate must be float"]),
        (["figures", "--profile", "huge"], ["unknown profile 'huge'"]),
        (["figures", "--claim", "toy2020-find"], ["unknown claim"]),
        (["data", "fetch", "mnits"], ["mnits"]),
    ],
)
def test_words_that_make_no_sense(project, words, expected):
    assert complains(project.run(*words), *expected)
    assert not project.figures.exists()


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("toy2020-raises", ["ZeroDivisionError", "logs/smoke/toy2020-raises.ipynb"]),
        ("toy2020-dies", ["the kernel died", "logs/smoke/toy2020-dies.ipynb"]),
        ("toy2020-diverges", ["TrainingDiverged", "run 0", "lower eta (now 1e+200)"]),
        ("toy2020-data", ["DataUnavailable", "mnist"]),
    ],
)
def test_a_notebook_that_fails_keeps_its_log_and_the_last_record(project, claim, expected):
    old = project.figures / "smoke" / claim
    old.mkdir(parents=True)
    (old / "result.json").write_text("the last good record")
    assert complains(project.run("run", claim), *expected)
    assert (old / "result.json").read_text() == "the last good record"
    assert (project.root / "logs" / "smoke" / f"{claim}.ipynb").exists()


@pytest.mark.parametrize("place", ["a file", "/proc/nowhere"])
def test_figures_that_cannot_be_written(project, tmp_path, place):
    folder = tmp_path / "file" if place == "a file" else place
    (tmp_path / "file").write_text("")
    assert complains(project.run("run", "toy2020-fine", OVERPARAM_FIGURES=str(folder)), "cannot write to", str(folder))


@pytest.mark.parametrize(
    ("name", "word"),
    [("toy2020-fine.ipynb", "toy2020-fine.ipynb"), ("profiles.toml", "not valid TOML")],
)
def test_a_broken_source_is_named(project, name, word):
    (project.root / "notebooks" / name).write_text('{"cells": [')
    assert complains(project.run("run", "toy2020-fine"), word)


def test_a_changed_rerun_leaves_the_reference(project):
    assert project.run("run", "toy2020-fine")[0] == 0
    reference = project.record("toy2020-fine")
    code, out, _ = project.run("run", "toy2020-fine", "-p", "width=100")
    assert code == 0
    assert "NOT REPRODUCED" in out
    assert project.record("toy2020-fine") == reference
    assert json.loads(project.record("toy2020-fine", "custom"))["parameters"]["width"] == 100


def test_a_dry_run_runs_nothing(project):
    code, out, err = project.run("run", "toy2020-fine", "--dry-run", "-p", "width=7")
    assert code == 0, err
    assert "width = 7" in out
    assert not project.figures.exists()


def test_list_for_machines(project):
    assert project.run("run", "toy2020-fine")[0] == 0
    code, out, _ = project.run("list", "--json")
    assert code == 0
    states = {row["claim"]: row["profiles"]["smoke"] for row in json.loads(out)}
    assert states["toy2020-fine"] == {"verdict": "reproduced", "stale": False}
    assert states["toy2020-slow"] == {"verdict": None, "stale": True}
    (project.figures / "smoke" / "toy2020-fine" / "result.json").write_text("{")
    state = {row["claim"]: row["profiles"]["smoke"] for row in json.loads(project.run("list", "--json")[1])}[
        "toy2020-fine"
    ]
    assert state["stale"] is True
    assert "not a readable record" in state["error"]


def test_a_read_only_home_is_no_obstacle(project):
    code, _, err = project.run("run", "toy2020-fine", HOME="/proc", IPYTHONDIR="/proc/ipython")
    assert code == 0, err
