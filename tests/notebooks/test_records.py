"""Every committed record is complete, agrees with the registered checks, and stays small."""

import json
from dataclasses import fields
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from overparam import paths
from overparam.paths import ROOT
from overparam.record import checks
from overparam.run import cli, runner, show

SCHEMA = json.loads((Path(__file__).parent / "result.schema.json").read_text())
RECORDS = sorted((ROOT / "figures").glob("*/*/result.json"))
RECORDS = [path for path in RECORDS if path.parts[-3] in ("laptop", "desk", "paper")]
names = [f"{path.parts[-3]}/{path.parts[-2]}" for path in RECORDS]


@pytest.mark.parametrize("path", RECORDS, ids=names)
def test_record(path):
    record = json.loads(path.read_text())
    jsonschema.validate(record, SCHEMA)
    assert (record["profile"], record["claim"]) == path.parts[-3:-1]
    assert set(record["figures"]) == {p.name for p in path.parent.glob("*.png")} != set()
    assert record.get("tables", []) == sorted(p.name for p in path.parent.glob("*.csv*"))
    if record["series"]:
        with np.load(path.parent / "series.npz", allow_pickle=False) as series:
            assert sorted(series.files) == record["series"]


@pytest.mark.parametrize("path", RECORDS, ids=names)
def test_all_files_are_those_that_the_run_wrote(path):
    stem, size = checks.spec(path.parts[-2]).notebook, path.parents[1]
    notebook = size / stem / "notebook.ipynb"
    wrote = json.loads(notebook.read_text())["metadata"]["overparam"]["outputs"]
    there = {file for claim in checks.served(stem) for file in (size / claim).iterdir() if file.is_file()}
    assert there == {size / name for name in wrote} | {notebook}
    assert runner.damaged(path.parts[-2], path.parts[-3], ROOT / "figures") == []


def test_a_star_marks_just_the_records_of_other_sources(monkeypatch, capsys):
    monkeypatch.setattr(paths, "FIGURES", ROOT / "figures")
    cli.list_()
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert {row[0] for row in rows} == set(checks.registry())
    starred = {(row[-1], row[0]) for row in rows if row[-2].endswith("*")}
    states = {row["claim"]: row["profiles"] for row in runner.overview()}
    for path in RECORDS:
        size, claim = path.parts[-3:-1]
        other = json.loads(path.read_text())["fingerprint"] != runner.fingerprint(claim, size)
        assert states[claim][size]["stale"] == other
        assert ((size, claim) in starred) == (other and show.best(states[claim]) == size)


@pytest.mark.parametrize("path", RECORDS, ids=names)
def test_verdict_follows_from_the_registered_checks(path):
    """Of a record of other sources, which is starred wherever it is shown, from the checks that it was judged by."""
    record = json.loads(path.read_text())
    spec, profile = checks.spec(record["claim"]), record["profile"]
    if current := record["fingerprint"] == runner.fingerprint(spec.id, profile):
        judged_by = {check.name: check for check in spec.checks}
        without = checks.profile_parameters(spec.id, profile)[2].get("without", {})
        wanted = {check.name for check in spec.checks if check.is_judged_at(profile)}
        assert wanted - set(without) <= {row["name"] for row in record["checks"]}
    for row in record["checks"]:
        own = checks.Check(**{field.name: row[field.name] for field in fields(checks.Check) if field.name in row})
        check = judged_by[row["name"]] if current else own
        assert (row["tag"], row["relation"], row["threshold"]) == (check.tag, check.relation, check.threshold)
        outcome = check.outcome(row["value"], row.get("spread"))
        assert (row["holds"], row.get("undecided", False)) == (outcome == "holds", outcome == "undecided")
        assert row["applies"] == (check.is_judged_at(profile) and not row.get("without"))
    groups = [spec.partly_if]
    if not current:  # the groups of checks that make it `partly` may have been others, which a record does not hold
        groups += [[], *([[row["name"]]] for row in record["checks"] if row["tag"] == "R")]
    assert record["verdict"] in {checks.verdict(record["checks"], group) for group in groups}


@pytest.mark.parametrize("path", RECORDS, ids=names)
def test_folder_is_small_and_names_no_machine(path):
    assert sum(p.stat().st_size for p in path.parent.rglob("*")) < 1_000_000
    stem = checks.spec(path.parts[-2]).notebook  # a notebook that serves several claims stands with the first
    notebook = (path.parents[1] / stem / "notebook.ipynb").read_text()
    for text in (notebook, path.read_text()):
        assert str(ROOT) not in text
        assert "/tmp/" not in text
    cells = [c for c in json.loads(notebook)["cells"] if c["cell_type"] == "code"]
    assert [c["execution_count"] for c in cells] == list(range(1, len(cells) + 1))


@pytest.mark.parametrize("path", RECORDS, ids=names)
def test_the_memory_that_was_taken_is_the_memory_that_was_declared(path):
    record = json.loads(path.read_text())
    declared = checks.profile_parameters(record["claim"], record["profile"])[2]["memory_mb"]
    assert 0 < record["peak_bytes"] <= declared * 2**20


def test_there_are_records_of_every_claim_at_laptop_size():
    assert {path.parts[-2] for path in RECORDS if path.parts[-3] == "laptop"} == set(checks.registry())
