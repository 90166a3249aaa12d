"""Records of a small git repository against changed ones."""

import json
import subprocess

import pytest
from typer.testing import CliRunner

from overparam import paths
from overparam.errors import OverparamError, ParameterError
from overparam.run import cli, diff


def check(**changed):
    row = {"name": "slope", "tag": "R", "wording": "the slope", "relation": "<=", "threshold": 1.0, "value": 0.5}
    return row | {"holds": True, "applies": True, "paper_value": None, "superseded_by": "", "reason": ""} | changed


def record(**changed):
    parameters = {"dtype": changed.pop("dtype", "float64")}
    metrics = {"rate": {"value": changed.pop("rate", 2.0), "paper": None}}
    unchanged = {"figures": [], "series": [], "seeds": [0], "data": [], "versions": {}, "device": "CPU", "git": None}
    unchanged |= {"seconds": 1.0, "peak_bytes": 1}
    measured = {"verdict": "reproduced", "parameters": parameters, "checks": [check()], "metrics": metrics}
    return unchanged | measured | changed


@pytest.fixture
def project(tmp_path):
    """A git repository with one committed record and figure; returns (root, write)."""

    def git(*words):
        subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True)

    def write(content, claim="a2000-x", picture=b"png"):
        folder = tmp_path / "figures" / "laptop" / claim
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result.json").write_text(content if isinstance(content, str) else json.dumps(content))
        (folder / "loss.png").write_bytes(picture)

    write(record())
    git("init", "--quiet")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "first")
    return tmp_path, write


def changes(root):
    found = diff.changes(diff.at_revision("HEAD", root), diff.at_present(root / "figures"))
    return [(c.kind, c.what, c.before, c.after) for c in found]


def test_times_are_no_change(project):
    root, write = project
    write(record(seconds=9.0))
    assert changes(root) == []
    assert diff.summary([], "HEAD") == "no record has changed since HEAD"


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-6), ("float32", 1e-3), ("bfloat16", 1e-2)])
def test_the_tolerance_is_that_of_the_precision(dtype, tolerance, project):
    old, inside, beyond = (
        diff.Records({("laptop", "a"): record(rate=rate, dtype=dtype)}, {})
        for rate in (1.0, 1 + 0.9 * tolerance, 1 + 1.2 * tolerance)
    )
    assert diff.changes(old, inside) == []
    assert [c.kind for c in diff.changes(old, beyond)] == ["number"]


def test_verdict_check_number_and_figure(project):
    root, write = project
    turned = check(value=1.0 + 1e-9, holds=False)
    write(record(verdict="not reproduced", checks=[turned, check(name="new")], rate=None), picture=b"other")
    assert changes(root) == [
        ("verdict", "verdict", "reproduced", "not reproduced"),
        ("check", "slope", "0.5 (at most 1): holds", "1 (at most 1): fails"),
        ("check", "new", "", "0.5 (at most 1): holds"),
        ("number", "rate", "2", "nan"),
        ("figure", "loss.png", "drawn", "redrawn"),
    ]


def test_a_check_that_turns_within_the_tolerance_and_a_moved_threshold_are_changes(project):
    root, write = project
    write(record(checks=[check(value=0.5 + 1e-9, holds=False)]))
    assert [c[:2] for c in changes(root)] == [("check", "slope")]
    write(record(checks=[check(threshold=2.0)]))
    assert changes(root) == [("check", "slope", "0.5 (at most 1): holds", "0.5 (at most 2): holds")]


def test_new_and_gone_claims_and_figures(project):
    root, write = project
    write(record(), claim="b2000-y")
    for file in (root / "figures/laptop/a2000-x").iterdir():
        file.unlink()
    assert changes(root) == [
        ("claim", "record", "reproduced", ""),
        ("figure", "loss.png", "drawn", ""),
        ("claim", "record", "", "reproduced"),
        ("figure", "loss.png", "", "drawn"),
    ]


def test_an_unknown_revision_and_a_broken_record_are_errors(project):
    root, write = project
    with pytest.raises(ParameterError, match="nowhere"):
        diff.at_revision("nowhere", root)
    with pytest.raises(ParameterError, match="--output"):
        diff.at_revision("--output=x", root)
    write("{")
    with pytest.raises(OverparamError, match="a2000-x"):
        diff.at_present(root / "figures")
    write(record(verdict="splendid"))
    with pytest.raises(OverparamError, match="splendid"):
        diff.at_present(root / "figures")


def test_the_command_prints_what_changed(project, monkeypatch):
    root, write = project
    write(record(verdict="partly", rate=3.0), picture=b"other")
    monkeypatch.setattr(paths, "ROOT", root)
    monkeypatch.setattr(paths, "FIGURES", root / "figures")
    ran = CliRunner().invoke(cli.app, ["diff", "HEAD"], catch_exceptions=False)
    assert ran.exit_code == 0
    assert "a2000-x at laptop" in ran.output
    for words in ("verdict: reproduced -> partly", "number rate: 2 -> 3", "figure loss.png: drawn -> redrawn"):
        assert words in ran.output
    assert "since HEAD: 1 verdict, 1 number, 1 figure changed, in 1 record" in ran.output
