"""A claim that was just begun runs, and has the anatomy that is asked of all."""

import json
import subprocess
import sys

import pytest

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
    assert out.splitlines()[1:] == [
        "  notebooks/toy2022/thm1.ipynb",
        "  notebooks/toy2022/thm1.toml",
    ]
    tests = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-k", "not explorer"]
    tests += [
        "-c",
        str(ROOT / "pyproject.toml"),
        str(ROOT / "tests" / "notebooks" / "test_structure.py"),
    ]
    done = subprocess.run(tests, env=project.environment, capture_output=True, text=True)
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
    code, _, err = project.run("new", CLAIM)
    assert (code, "is there already" in err) == (1, True)
    code, _, err = project.run("new", "../thm1")
    assert (code, "is no id" in err) == (1, True)
