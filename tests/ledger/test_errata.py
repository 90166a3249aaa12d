"""Mistakes in the papers: the files that state them, and what they owe a reader."""

import ast
import re

import pytest

from ledger import corrected, errata, paths, registry
from ledger.errors import ClaimError
from ledger.site import mistakes

ERRATUM = """[[errata]]
place = "Theorem 1"
printed = "$n$"
holds = "It is $n^2$."
severity = "exponent"
evidence = ["derivation"]
claims = []
"""
GRAVE = ERRATUM + 'changes = "Theorem 1"\nfault = "slip"\n'
FAULT = '[[faults]]\nid = "slip"\ntitle = "A slip"\nsays = "It slips."\n'
CERTIFIED = FAULT + 'certificate = "1 + 1 = 2."\ntest = "test_slip"\n'
FOUND = [errata.load(paper) for paper in errata.papers()]
FAULTS = [fault for paper in FOUND for fault in paper.faults]


@pytest.fixture(autouse=True)
def _fresh():
    """Other tests register toys of their own."""
    for cached in (registry.registry, errata.load, corrected.theorems):
        cached.cache_clear()


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Writes the errata of a toy paper and loads them."""
    folder = tmp_path / registry.ERRATA
    folder.mkdir()
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)

    def made(text):
        (folder / "toy2020.toml").write_text(text)
        errata.load.cache_clear()
        return errata.load("toy2020")

    yield made
    registry.registry.cache_clear()
    errata.load.cache_clear()


def test_a_file_is_read_as_it_is_written(toy):
    found = toy(CERTIFIED + GRAVE + ERRATUM)
    assert (len(found.errata), found.independent) == (2, 2)
    fault = found.faults[0]
    assert (fault.severity, fault.changes, fault.grave) == ("exponent", ("Theorem 1",), True)
    assert (fault.test, fault.anchor) == ("test_slip", "toy2020-slip")
    assert not toy(ERRATUM).faults


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("place = ", "it is not valid TOML"),
        ("[[slips]]\n", "there is no key 'slips'"),
        (ERRATUM.replace("holds", "hold"), "Theorem 1: there is no key 'hold'"),
        (ERRATUM.replace('severity = "exponent"\n', ""), "the key 'severity' is missing"),
        (ERRATUM.replace("exponent", "grave"), "Theorem 1: severities are false, gap"),
        (ERRATUM.replace('"derivation"', '"luck"'), "Theorem 1: evidence is some of derivation"),
        (ERRATUM.replace("[]", '["toy2020-x"]'), "there is no claim 'toy2020-x'"),
        (ERRATUM + 'fault = "slip"\n', "Theorem 1: there is no fault 'slip'"),
        (ERRATUM + 'changes = "Theorem 1"\n', "what is grave belongs to a fault"),
        (ERRATUM.replace('"exponent"', '"gap"'), "what is grave belongs to a fault"),
        (FAULT + ERRATUM, "no erratum belongs to the fault 'slip'"),
        (FAULT + FAULT + GRAVE, "there are two faults 'slip'"),
        (FAULT + 'test = "test_slip"\n' + GRAVE, "a certificate is a derivation and a test"),
    ],
)
def test_a_malformed_file_ends_in_one_line_that_names_the_place(toy, text, message):
    with pytest.raises(ClaimError, match=rf"^errata/toy2020.toml: .*{re.escape(message)}"):
        toy(text)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.anchor)
def test_what_matters_has_a_certificate_whose_test_is_there(fault):
    assert len(fault.title) <= 100
    assert not fault.title.endswith(".")
    if fault.grave:
        assert fault.certificate
    if fault.test:
        file = paths.ROOT / errata.TESTS / f"test_{fault.paper}.py"
        functions = ast.parse(file.read_text(encoding="utf-8")).body
        assert fault.test in {getattr(node, "name", "") for node in functions}


def test_a_theorem_that_is_false_or_has_a_gap_is_among_the_mistakes():
    """And one that stands is not said to be false, nor unproved, as a whole."""
    grave = {}
    for fault in FAULTS:
        for row in fault.errata:
            for claim in row.claims:
                grave.setdefault(claim, set()).add(row.severity)
    for claim in registry.registry().values():
        severities = grave.get(claim.id, set())
        if claim.printed in ("false", "gap"):
            assert claim.printed in severities, claim.id
        elif claim.printed == "stands":
            assert not severities & {"false", "gap"}, claim.id


def test_every_statement_that_changes_is_a_row_of_the_theorems_corrected():
    rows = [row for paper in corrected.theorems().values() for row in paper]
    named = {(row.paper, fault) for row in rows for fault in row.faults}
    changed = {(fault.paper, fault.id) for fault in FAULTS if fault.changes}
    assert changed <= named


def test_a_row_of_a_table_has_its_cells_and_no_more():
    links = mistakes.InRepository()
    names = dict.fromkeys(errata.papers(), "A")
    text = "".join(mistakes.chapter(paper, links) for paper in FOUND)
    text += mistakes.corrected({}, links, names)
    for line in text.splitlines():
        if line.startswith("| **"):
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1
            assert cells == 4, line
            assert line.count("$") % 2 == 0, line


def test_a_mistake_without_a_certificate_says_so(toy):
    links = mistakes.InRepository()
    said = mistakes.chapter(toy(FAULT + GRAVE), links)
    assert "This mistake has no certificate." in said
    assert "All but 1 have a certificate" in said
    said = mistakes.chapter(toy(CERTIFIED + GRAVE), links)
    assert "Tested by `test_slip`" in said
    assert "1 + 1 = 2." in said
