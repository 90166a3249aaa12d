"""Every committed record is complete, follows from what is registered.

And is written about in today's words.
"""

import base64
import json
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from ledger import cli, findings, paths, records, registry, rule, runner, show
from ledger.parameters import notebook_parameters
from ledger.paths import ROOT
from ledger.site import records as entries

FIGURES = ROOT / "figures"
SCHEMA = json.loads((Path(__file__).parent / "result.schema.json").read_text(encoding="utf-8"))
RECORDS = [
    path for size in records.COMMITTED for path in sorted((FIGURES / size).glob("*/result.json"))
]
EXECUTED = [
    path for size in records.COMMITTED for path in sorted((FIGURES / size).glob("*/notebook.ipynb"))
]
CLAIMS = registry.registry()
ENTRIES = {entry.claim.id: entry for entry in entries.load(FIGURES)}
LARGEST = 2_000_000  # bytes of a record with its pictures, which its notebook holds as well

each_record = pytest.mark.parametrize(
    "path", RECORDS, ids=[f"{p.parts[-3]}/{p.parts[-2]}" for p in RECORDS]
)
each_run = pytest.mark.parametrize(
    "path", EXECUTED, ids=[f"{p.parts[-3]}/{p.parts[-2]}" for p in EXECUTED]
)
each_claim = pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)


def loaded(path):
    """(record, claim, size) of a record."""
    return (
        json.loads(path.read_text(encoding="utf-8")),
        registry.claim(path.parts[-2]),
        path.parts[-3],
    )


@each_record
def test_a_record_is_complete_and_small(path):
    record, claim, size = loaded(path)
    jsonschema.validate(record, SCHEMA)
    told = [record[key] for key in ("profile", "claim", "kind", "notebook")]
    assert told == [size, claim.id, claim.kind, claim.page.id]
    assert set(record["figures"]) == {p.name for p in path.parent.glob("*.png")} != set()
    assert record["tables"] == sorted(p.name for p in path.parent.glob("*.csv*"))
    if record["series"]:
        with np.load(path.parent / "series.npz", allow_pickle=False) as series:
            assert sorted(series.files) == record["series"]
    assert sum(p.stat().st_size for p in path.parent.rglob("*")) < LARGEST
    assert record["peak_bytes"] <= registry.size_of(claim.id, size).resources["memory_mb"] * 2**20


@each_record
def test_the_verdict_follows_from_its_rows(path):
    """By the rule; and the rows are the registered checks of today, unless the record is outdated
    and marked so.
    """
    record, claim, size = loaded(path)
    rows = [rule.Check(row["name"], "", row["holds"], row["statistic"]) for row in record["checks"]]
    outcomes = [
        row.outcome(told["value"], told["interval"])
        for row, told in zip(rows, record["checks"], strict=True)
    ]
    assert [row["outcome"] for row in record["checks"]] == outcomes
    assert record["verdict"] == rule.verdict(claim.kind, [] if record["unmet"] else outcomes)
    if record["fingerprint"] == records.fingerprint(claim.id, size):
        asked = {check.name: (check.holds, check.statistic) for check in claim.asked(size)}
        told = {row["name"]: (row["holds"], row["statistic"]) for row in record["checks"]}
        assert told == (asked if not record["unmet"] else {name: asked[name] for name in told})


def test_outdated_records_are_marked_and_no_others(monkeypatch, capsys):
    monkeypatch.setattr(paths, "FIGURES", FIGURES)
    cli.list_()
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert {row[0] for row in rows} == set(CLAIMS)
    starred = {(row[-1], row[0]) for row in rows if row[-2].endswith("*")}
    states = {row["claim"]: row["sizes"] for row in records.overview()}
    for record, claim, size in map(loaded, RECORDS):
        other = record["fingerprint"] != records.fingerprint(claim.id, size)
        assert states[claim.id][size]["stale"] == other
        assert ((size, claim.id) in starred) == (other and show.best(states[claim.id]) == size)


@each_claim
def test_a_claim_has_a_laptop_record_and_a_finding_of_the_record_that_counts(claim):
    """So that no finding outlives its result."""
    best = ENTRIES[claim.id].best
    assert (FIGURES / "laptop" / claim.id / "result.json").exists()
    assert (claim.finding.of, best.size) == (f"{best.size}, {best.verdict}", best.record["profile"])


@each_record
def test_a_finding_quotes_what_its_record_holds(path):
    record, claim, _ = loaded(path)
    text = findings.finding(claim, record, path.parent)
    assert text.endswith((".", "!", "?"))
    assert "{{" not in text


@each_claim
def test_no_check_changed_unsaid_since_the_freeze(claim):
    assert registry.unlisted_changes(claim) == []


@each_run
def test_an_executed_notebook_is_of_one_run_and_in_todays_words(path, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "FIGURES", FIGURES)  # from where links lead
    page, size = path.parts[-2], path.parts[-3]
    served = [claim.id for claim in registry.served(page)]
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    there = {
        file for claim in served for file in (FIGURES / size / claim).iterdir() if file.is_file()
    }
    wrote = notebook["metadata"]["overparam"]["outputs"]
    assert there == {FIGURES / size / name for name in wrote} | {path}
    assert records.damaged(page, size, FIGURES) == []
    for claim in served:
        shutil.copytree(
            FIGURES / size / claim, tmp_path / size / claim, ignore=shutil.ignore_patterns("runs")
        )
        for file in (path, FIGURES / size / claim / "result.json"):
            assert not any(
                place in file.read_text(encoding="utf-8")
                for place in (str(ROOT), "/tmp/", "/home/")
            )
    assert not runner.refresh(page, size, tmp_path), "`overparam refresh` brings it up to date"


@each_run
def test_an_executed_notebook_holds_its_pictures(path):
    served = registry.served(path.parts[-2])
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    data = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    shown = {base64.b64decode(each["image/png"]) for each in data if "image/png" in each}
    drawn = {p.read_bytes() for claim in served for p in (path.parents[1] / claim.id).glob("*.png")}
    assert shown == drawn or (
        shown < drawn and len(served) > 1
    )  # a figure of several claims is shown once


@each_run
def test_an_executed_notebook_says_with_which_parameters_it_ran(path):
    record, _, _ = loaded(path.with_name("result.json"))
    assert notebook_parameters(path) == record["parameters"]
