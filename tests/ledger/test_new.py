"""A claim that was just begun runs, and has the anatomy that is asked of all."""

import json
import subprocess
import sys

import pytest

import toy
from copies import Copy
from ledger.paths import ROOT

CLAIM = "toy2022-thm1"


@pytest.fixture
def project(tmp_path):
    made = Copy(tmp_path / "project")
    made.notebooks.mkdir()
    return made


def test_a_new_claim_runs_before_anything_is_filled_in(project):
    code, out, err = project.run("new", CLAIM)
    assert code == 0, err
    assert out.splitlines()[1:3] == [
        "  notebooks/toy2022/thm1.ipynb",
        "  notebooks/toy2022/thm1.toml",
    ]
    assert "CONTRIBUTING.md" in out
    tests = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-k", "not explorer"]
    tests += ["-c", str(ROOT / "pyproject.toml")]
    for file in ("test_structure.py", "test_prose.py"):
        test = [*tests, str(ROOT / "tests" / "notebooks" / file)]
        done = subprocess.run(test, env=project.environment, capture_output=True, text=True)
        assert (done.returncode, "[toy2022/thm1] PASSED" in done.stdout) == (0, True), done.stdout
    lint = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--config",
        str(ROOT / "pyproject.toml"),
        "notebooks",
    ]
    assert subprocess.run(lint, cwd=project.root, capture_output=True).returncode == 0
    code, out, err = project.run("run", CLAIM, "--profile", "laptop", "--json")
    assert (code, json.loads(out)["verdict"]) == (0, "holds"), err
    code, out, err = project.run("list")
    assert (code, err.count("error")) == (0, 0)
    assert f"  {CLAIM}  not written yet" in out.splitlines()
    code, _, err = project.run("new", CLAIM)
    assert (code, "is there already" in err) == (1, True)
    code, _, err = project.run("new", "../thm1")
    assert (code, "is no id" in err) == (1, True)


@pytest.mark.parametrize("claim", ["toy-thm1", "toy20-thm1", "toy20222-thm1"])
def test_a_paper_without_a_year_is_refused(project, claim):
    code, _, err = project.run("new", claim)
    assert code == 1
    assert "has no year" in err or "is no id" in err
    assert "such as du2019" in err
    assert list(project.notebooks.rglob("*")) == []


def test_a_paper_without_a_year_that_is_there_already_is_enough(project):
    toy.write(project.notebooks, "synthesis-depth", "value = 0.5")
    code, _, err = project.run("new", "synthesis-thm1")
    assert code == 0, err
    assert (project.notebooks / "synthesis" / "thm1.toml").exists()
    code, _, err = project.run("new", "toy-thm1")
    assert (code, "the paper 'toy' has no year" in err) == (1, True)


def test_the_command_that_it_prints_undoes_it_and_nothing_else(project):
    def git(*words):
        subprocess.run(["git", *words], cwd=project.root, check=True, capture_output=True)

    toy.write(project.notebooks, "toy2020-old", "value = 0.5")
    git("init")
    git("add", "notebooks")
    other = project.notebooks / "toy2022" / "other.ipynb"
    other.parent.mkdir()
    other.write_text("not committed")
    before = set(project.notebooks.rglob("*"))
    code, out, err = project.run("new", CLAIM)
    assert code == 0, err
    assert len(set(project.notebooks.rglob("*")) - before) == 2
    (command,) = [line for line in out.splitlines() if "git clean" in line]
    subprocess.run(command, shell=True, cwd=project.root, check=True, capture_output=True)
    assert set(project.notebooks.rglob("*")) == before
