"""What the pages are made from: records in short, the largest size, escaping, and files that are broken."""

import json
import re

import pytest
from bs4 import BeautifulSoup

from overparam import paths
from overparam.errors import ClaimError, OverparamError
from overparam.run.site import pages, records
from overparam.run.site.build import write_sources

CLAIM = "arora2019-fig1-convergence-labels"


@pytest.fixture
def copied(figures):
    """A function that puts a copy of one record, with changes, at a size."""
    source = paths.ROOT / "figures" / "laptop" / CLAIM

    def put(profile="laptop", **changed):
        folder = figures / profile / CLAIM
        folder.mkdir(parents=True)
        for file in source.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        content = json.loads((source / "result.json").read_text()) | changed
        (folder / "result.json").write_text(json.dumps(content))
        return folder

    return put


def test_the_largest_size_counts_and_without_a_record_nothing_is_decided(copied, figures, monkeypatch):
    monkeypatch.setattr(records, "COMMITTED", ("laptop", "desk", "paper"))
    copied("desk", verdict="partly")
    copied("laptop")
    entries = {entry.spec.id: entry for entry in records.load(figures)}
    entry = entries.pop(CLAIM)
    assert (entry.verdict, entry.best.profile, list(entry.versions)) == ("partly", "desk", ["laptop", "desk"])
    assert (entry.page(), entry.page(entry.versions["laptop"])) == (f"claims/{CLAIM}", f"claims/{CLAIM}-laptop")
    assert {other.verdict for other in entries.values()} == {records.UNRUN}
    assert {profile for other in entries.values() for profile in other.versions} == {"smoke"}


def test_what_a_page_says_of_itself_is_quoted_and_its_checks_are_marked(copied, figures):
    folder = copied(summary=[r"At $\alpha = 1$ it **holds**, see [this](x).", "More."], sizes="because of memory")
    record = json.loads((folder / "result.json").read_text())
    record["checks"][0] |= {"undecided": True, "holds": False, "spread": [0.5, 2.5], "added": "a second look"}
    (folder / "result.json").write_text(json.dumps(record))
    (folder / "runs.csv").write_text("n,loss\n1,2\n")
    env, (entry,) = pages.environment(), [e for e in records.load(figures) if e.spec.id == CLAIM]
    index = BeautifulSoup(pages.dashboard(env, [entry], pages.papers()), "html.parser")
    assert index.select_one(".keys").text.strip() == "At α = 1 it holds, see this."
    page = json.loads(
        pages.claim_page(env, entry, entry.best, pages.executed(entry.spec, entry.best), ("Arora", "", ""))
    )
    head = "".join(page["cells"][0]["source"])
    assert r"At $\alpha = 1$ it **holds**" in head
    soup = BeautifulSoup(head, "html.parser")
    assert "because of memory" in soup.text
    assert soup.select_one("td.undecided").text == "undecided"
    assert soup.select_one("mark").text == "decided after the result: a second look"
    assert "runs.csv" in [a.text for a in soup.select(".downloads a")]


def test_the_key_number_is_beside_the_papers_or_else_what_failed():
    def check(name, tag="R", *, holds=True, paper=None):
        row = {"wording": name, "tag": tag, "value": 1.0, "relation": ">=", "threshold": 2.0, "applies": True}
        return row | {"holds": holds, "paper_value": paper}

    def key(*checks, **metrics):
        metrics = {name: {"value": 3, "paper": paper} for name, paper in metrics.items()}
        return records.key_number({"checks": checks, "metrics": metrics})

    assert key(check("a"), check("b", paper=0.25), c=2)[::2] == ("b", "paper 0.25")
    assert key(check("a", holds=False), c=None, d=5) == ("d", "3", "paper 5")
    assert key(check("i", "I"), check("a"), check("b", holds=False))[0] == "b"
    assert key(check("c", "C", holds=False), check("r"))[0] == "c"
    assert key(check("i", "I")) is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("result.json", "{"),
        ("result.json", "[]"),
        ("result.json", '{"verdict": "reproduced"}'),
        ("notebook.ipynb", '{"cells": 1}'),
        ("loss.png", "no picture"),
    ],
)
def test_a_broken_file_is_named(name, content, copied, figures, tmp_path):
    (copied() / name).write_text(content)
    with pytest.raises(ClaimError, match=rf"{CLAIM}/{re.escape(name)}"):
        write_sources(tmp_path / "source", figures)


def test_a_record_without_a_part_that_is_shown_is_named(copied, figures, tmp_path):
    folder = copied()
    record = json.loads((folder / "result.json").read_text())
    del record["device"]
    (folder / "result.json").write_text(json.dumps(record))
    with pytest.raises(ClaimError, match=rf"{CLAIM}/result.json .*device"):
        write_sources(tmp_path / "source", figures)


def test_a_paper_without_a_text_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "SITE", tmp_path)
    with pytest.raises(OverparamError, match=r"papers/\w+\.md is missing"):
        pages.papers()
