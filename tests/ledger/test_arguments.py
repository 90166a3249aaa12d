"""The pictures of the papers' arguments: their steps, verdicts and links."""

import xml.etree.ElementTree as ElementTree

import pytest

from ledger import arguments, paths, registry
from ledger.errors import ClaimError

SVG = "{http://www.w3.org/2000/svg}"
PAPERS = sorted(path.stem for path in (paths.SITE / "papers").glob("*.toml"))
TWO_STEPS = """
[[steps]]
place = "both"
says = "Wide nets have one Gram matrix, H^{∞}."
claims = { "Lemma 1" = "a" }

[[steps]]
place = "right"
says = "So they learn <fast>."
claims = { "Theorem 2" = "b" }
"""


@pytest.fixture
def two_steps(tmp_path, monkeypatch):
    """A paper `some2020` whose argument has two steps."""
    (tmp_path / "papers").mkdir()
    file = tmp_path / "papers" / "some2020.toml"
    file.write_text(TWO_STEPS, encoding="utf-8")
    monkeypatch.setattr(paths, "SITE", tmp_path)
    return file


def words(picture):
    """What is written in a picture, line by line."""
    return ["".join(text.itertext()) for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_a_picture_has_the_steps_and_their_verdicts_in_order(two_steps):
    found = words(arguments.drawn("some2020", {"a": "holds", "b": "fails"}))
    found = [line.replace("\u200b", "") for line in found]
    assert found == [
        "Wide nets have one Gram matrix, H∞.",
        "Lemma 1: holds",
        "So they learn <fast>.",
        "Theorem 2: fails",
    ]


def test_a_verdict_gives_the_colour(two_steps):
    good = arguments.drawn("some2020", {"a": "holds", "b": "holds"})
    bad = arguments.drawn("some2020", {"a": "holds", "b": "fails"})
    assert good.count("#19703a") == 2
    assert bad.count("#19703a") == 1
    assert bad.count("#b42318") == 1


def test_boxes_of_a_column_do_not_overlap_and_an_arrow_joins_them(two_steps):
    picture = ElementTree.fromstring(arguments.drawn("some2020", {"a": "holds", "b": "holds"}))
    _, first, second = picture.findall(f"{SVG}rect")
    (arrow,) = picture.findall(f"{SVG}line")
    end_of_first = float(first.get("y")) + float(first.get("height"))
    assert end_of_first == float(arrow.get("y1")) < float(arrow.get("y2")) == float(second.get("y"))
    left_edge, right_edge = float(second.get("x")), float(second.get("x")) + 334
    assert left_edge < float(arrow.get("x1")) < right_edge


def test_verdicts_can_lead_to_pages(two_steps):
    picture = arguments.drawn(
        "some2020", {"a": "holds", "b": "fails"}, lambda claim: f"{claim}.html"
    )
    links = [link.get("href") for link in ElementTree.fromstring(picture).iter(f"{SVG}a")]
    assert links == ["a.html", "b.html"]


def test_a_claim_that_is_not_there_is_refused(two_steps):
    with pytest.raises(ClaimError, match="names b"):
        arguments.drawn("some2020", {"a": "holds"})


def test_a_place_that_is_no_column_is_refused(two_steps):
    text = two_steps.read_text(encoding="utf-8")
    two_steps.write_text(text.replace('"right"', '"middle"'), encoding="utf-8")
    with pytest.raises(ClaimError, match="left, right, both"):
        arguments.steps("some2020")


def test_a_paper_without_argument_has_no_steps(two_steps):
    assert arguments.steps("other2021") == []


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_of_the_paper_stands_in_its_argument_or_is_ours(paper):
    named = [claim for step in arguments.steps(paper) for claim in step["claims"].values()]
    own = [claim for claim in registry.registry().values() if claim.paper == paper]
    assert len(named) == len(set(named))
    assert {claim.id for claim in own if claim.kind != "ours"} == set(named)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_lines_of_a_step_fit_its_box(paper):
    longest = {"left": 42, "right": 42, "both": 88}
    for step in arguments.steps(paper):
        for line in step["says"].strip().splitlines():
            assert len(arguments.RAISED.sub(r"\1", line)) <= longest[step["place"]], line
