"""Stored records: which one counts, and which are outdated."""

import json

import pytest

from ledger import records


@pytest.mark.parametrize(
    ("outdated", "counts"),
    [
        ({}, None), ({"smoke": False}, "smoke"), ({"smoke": False, "laptop": True}, "laptop"),
        ({"laptop": False, "desk": False}, "desk"), ({"laptop": False, "desk": True}, "laptop"),
        ({"laptop": True, "desk": True}, "desk"), ({"laptop": False, "desk": True, "paper": False}, "paper"),
    ],
)  # fmt: skip
def test_the_largest_of_the_present_sources_counts(outdated, counts):
    assert records.counting(outdated) == counts


def test_a_record_is_outdated_once_its_sources_have_changed(toy, monkeypatch):
    assert records.stale(toy.id, "smoke")  # it is absent
    kept = toy.run(monkeypatch)
    (row,) = records.overview([toy.id])
    assert row["sizes"]["smoke"] == {"verdict": "holds", "stale": False}
    assert row["sizes"]["desk"] == {"verdict": None, "stale": None}
    for old, new, outdated in (("<= 1", "<= 2", True), ("The value is at most 1", "It is small", False)):
        toy.register(toy.registered.replace(old, new))
        assert records.outdated(toy.id, "smoke") == outdated
    for prose, code, outdated in (("# A toy", "claim.report(); 1", True), ("# Another", "claim.report()", False)):
        toy.write(prose, toy.parameters, code)
        assert records.outdated(toy.id, "smoke") == outdated
    kept.unlink()
    assert records.outdated(toy.id, "smoke")


def test_the_record_that_counts_is_committed_and_has_its_notebook(toy, figures, monkeypatch):
    paper = "\n[sizes.paper]\nn = 30\n"
    toy.register(toy.registered + paper)
    toy.run(monkeypatch)
    for size, n in (("laptop", 20), ("paper", 30)):
        monkeypatch.setenv("OVERPARAM_RUN", json.dumps({"fingerprint": records.fingerprint(toy.id, size)}))
        toy.measured(profile=size, n=n).report()
    assert records.best(toy.id) == (None, None)
    for size in ("laptop", "paper"):
        (figures / size / toy.id / "notebook.ipynb").touch()
    assert records.best(toy.id) == ("paper", toy.record("paper"))
    toy.register(toy.registered + paper.replace("30", "31"))
    assert records.best(toy.id) == ("laptop", toy.record("laptop"))
    toy.register(toy.registered.replace("<= 1", "<= 2") + paper)
    assert records.best(toy.id)[0] == "paper"  # both are outdated
