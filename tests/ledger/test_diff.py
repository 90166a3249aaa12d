"""Records of a small git repository against changed ones."""

import json
import subprocess

import pytest
from typer.testing import CliRunner

from ledger import cli, diff, paths
from overparam.errors import OverparamError, ParameterError


def check(**changed):
    row = {
        "name": "slope",
        "holds": "<= 1",
        "statistic": "mean",
        "value": 0.5,
        "interval": None,
        "n": None,
    }
    return row | {"outcome": "holds", "paper": None} | changed


def record(**changed):
    parameters = {"dtype": changed.pop("dtype", "float64")}
    metrics = {
        "rate": {"value": changed.pop("rate", 2.0), "interval": None, "n": None, "paper": None}
    }
    empty = {key: [] for key in ("unmet", "said", "tables", "series", "seeds", "data")}
    unchanged = {
        "conditions": None,
        "figures": {},
        "device": "CPU",
        "date": "2026-01-01",
        "seconds": 1.0,
    } | empty
    measured = {
        "verdict": "reproduced",
        "parameters": parameters,
        "checks": [check()],
        "metrics": metrics,
    }
    return unchanged | measured | changed


@pytest.fixture
def project(tmp_path):
    """A git repository with one committed record and figure; returns (root, write)."""

    def git(*words):
        subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True)

    def write(content, claim="a2000-x", picture=b"png"):
        folder = tmp_path / "figures" / "laptop" / claim
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result.json").write_text(
            content if isinstance(content, str) else json.dumps(content)
        )
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


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-6), ("float32", 1e-3), ("bfloat16", 1e-2)]
)
def test_the_tolerance_is_that_of_the_precision(dtype, tolerance, project):
    old, inside, beyond = (
        diff.Records({("laptop", "a"): record(rate=rate, dtype=dtype)}, {})
        for rate in (1.0, 1 + 0.9 * tolerance, 1 + 1.2 * tolerance)
    )
    assert diff.changes(old, inside) == []
    assert [c.kind for c in diff.changes(old, beyond)] == ["number"]


def test_verdict_check_number_and_figure(project, monkeypatch):
    root, write = project
    turned = check(value=1.0 + 1e-9, outcome="fails")
    write(
        record(verdict="not reproduced", checks=[turned, check(name="new")], rate=None),
        picture=b"other",
    )
    found = [
        ("verdict", "verdict", "reproduced", "not reproduced"),
        ("check", "slope", "0.5 (at most 1): holds", "1 (at most 1): fails"),
        ("check", "new", "", "0.5 (at most 1): holds"),
        ("number", "rate", "2", "nan"),
        ("figure", "loss.png", "drawn", "redrawn"),
    ]
    assert changes(root) == found
    monkeypatch.setattr(paths, "ROOT", root)
    printed = CliRunner().invoke(cli.app, ["diff", "HEAD"], catch_exceptions=False).output
    first, *lines, last = printed.splitlines()
    assert first == "a2000-x at laptop"
    assert lines == [
        f"  {kind if kind == what else f'{kind} {what}'}: {a} -> {b}" for kind, what, a, b in found
    ]
    assert last == "since HEAD: 1 verdict, 2 checks, 1 number, 1 figure changed, in 1 record"


def test_a_check_that_turns_within_the_tolerance_and_a_moved_threshold_are_changes(project):
    root, write = project
    write(record(checks=[check(value=0.5 + 1e-9, outcome="undecided")]))
    assert [c[:2] for c in changes(root)] == [("check", "slope")]
    write(record(checks=[check(holds="<= 2")]))
    assert changes(root) == [("check", "slope", "0.5 (at most 1): holds", "0.5 (at most 2): holds")]


def test_new_and_gone_claims_and_figures(project):
    root, write = project
    write(record(), claim="b2000-y")
    for file in (root / "figures/laptop/a2000-x").iterdir():
        file.unlink()
    gone = [("claim", "record", "reproduced", ""), ("figure", "loss.png", "drawn", "")]
    assert changes(root) == gone + [
        (kind, what, after, before) for kind, what, before, after in gone
    ]


def test_an_unknown_revision_and_a_broken_record_are_errors(project):
    root, write = project
    with pytest.raises(ParameterError, match="nowhere"):
        diff.at_revision("nowhere", root)
    with pytest.raises(ParameterError, match="--output"):
        diff.at_revision("--output=x", root)
    write(record(verdict="splendid"))
    with pytest.raises(OverparamError, match="splendid"):
        diff.at_present(root / "figures")
