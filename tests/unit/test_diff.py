"""Records of a small git repository against changed ones."""

import json
import subprocess

import pytest
from typer.testing import CliRunner

from overparam import paths
from overparam.errors import OverparamError, ParameterError
from overparam.run import cli, diff
from overparam.run.site import diff_page


def check(**changed):
    row = {
        "name": "slope",
        "tag": "R",
        "wording": "the slope",
        "relation": "<=",
        "threshold": 1.0,
        "holds": True,
        "applies": True,
        "value": 0.5,
        "paper_value": None,
    }
    return row | {"superseded_by": "", "reason": ""} | changed


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


def test_nothing_has_changed(project):
    assert changes(project[0]) == []
    assert diff.summary([], "HEAD") == "no record has changed since HEAD"


def test_numbers_within_tolerance_and_times_are_no_change(project):
    root, write = project
    write(record(rate=2.0 + 1e-6, seconds=9.0))
    assert changes(root) == []
    write(record(rate=2.0 + 3e-6))
    assert [c[:2] for c in changes(root)] == [("number", "rate")]


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


def test_a_check_that_turns_within_the_tolerance_is_a_change(project):
    root, write = project
    write(record(checks=[check(value=0.5 + 1e-9, holds=False)]))
    assert [c[:2] for c in changes(root)] == [("check", "slope")]


def test_a_moved_threshold_is_a_change(project):
    root, write = project
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


def test_the_page_shows_both_pictures_and_escapes(project):
    root, write = project
    write(record(verdict="partly", checks=[check(reason="<b>", superseded_by="y")]), picture=b"other")
    found = diff.changes(diff.at_revision("HEAD", root), diff.at_present(root / "figures"))
    page = diff_page(found, "HEAD")
    assert page.count("data:image/png;base64,") == 2
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert diff.summary(found, "HEAD") == "since HEAD: 1 verdict, 1 check, 1 figure changed, in 1 record"


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


def test_the_command_prints_what_changed_and_writes_a_page(project, monkeypatch):
    root, write = project
    write(record(verdict="partly", rate=3.0), picture=b"other")
    monkeypatch.setattr(paths, "ROOT", root)
    monkeypatch.setattr(paths, "FIGURES", root / "figures")
    page = root / "changes.html"
    ran = CliRunner().invoke(cli.app, ["diff", "HEAD", "--page", str(page)], catch_exceptions=False)
    assert ran.exit_code == 0
    assert "a2000-x at laptop" in ran.output
    assert [word in ran.output for word in ("reproduced", "-> partly", "rate", "-> 3", "loss.png")] == [True] * 5
    assert "partly" in page.read_text()
