"""Stored records: which one counts, and which are outdated."""

import pytest

from ledger import records
from ledger.site import records as site


@pytest.mark.parametrize(
    ("outdated", "counts"),
    [
        ({}, None),
        ({"smoke": False}, "smoke"),
        ({"smoke": False, "laptop": True}, "laptop"),
        ({"laptop": False, "desk": False}, "desk"),
        ({"laptop": False, "desk": True}, "laptop"),
        ({"laptop": True, "desk": True}, "desk"),
        ({"laptop": False, "desk": True, "paper": False}, "paper"),
    ],
)
def test_the_largest_of_the_present_sources_counts(outdated, counts):
    assert records.counting(outdated) == counts


def test_a_record_is_outdated_once_its_sources_have_changed(toy, monkeypatch):
    assert records.stale(toy.id, "smoke")  # it is absent
    kept = toy.run(monkeypatch)
    (row,) = records.overview([toy.id])
    assert row["sizes"]["smoke"] == {"verdict": "holds", "stale": False}
    assert row["sizes"]["desk"] == {"verdict": None, "stale": None}
    for old, new, outdated in (
        ("<= 1", "<= 2", True),
        ("The value is at most 1", "It is small", False),
    ):
        toy.register(toy.registered.replace(old, new))
        assert records.outdated(toy.id, "smoke") == outdated
    for prose, code, outdated in (
        ("# A toy", "claim.report(); 1", True),
        ("# Another", "claim.report()", False),
    ):
        toy.write(prose, toy.parameters, code)
        assert records.outdated(toy.id, "smoke") == outdated
    kept.unlink()
    assert records.outdated(toy.id, "smoke")


def test_the_record_that_counts_is_committed_and_has_its_notebook(toy, figures, monkeypatch):
    def counts():
        (entry,) = site.load(figures)
        return entry.best.size, entry.best.record

    paper = "\n[sizes.paper]\nn = 30\n"
    toy.register(toy.registered + paper)
    assert counts() == ("smoke", None)  # as stored in the notebook
    for size in ("smoke", "laptop", "paper"):
        kept = toy.run(monkeypatch, size=size)
    assert counts() == ("paper", toy.record("paper"))
    toy.register(toy.registered + paper.replace("30", "31"))
    assert counts() == ("laptop", toy.record("laptop"))
    toy.register(toy.registered.replace("<= 1", "<= 2") + paper)
    assert counts()[0] == "paper"  # both are outdated
    kept.unlink()
    assert counts()[0] == "laptop"
