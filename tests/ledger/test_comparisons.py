"""The pictures of the papers' comparisons: rows, places on the axis, what was not measured."""

import math
import xml.etree.ElementTree as ElementTree

import pytest

from ledger import comparisons, paths
from ledger.site import quotes
from ledger.site import records as entries

SVG = "{http://www.w3.org/2000/svg}"
THREE_ROWS = """
[comparison]
title = "error / error of ReLU"
less = "new is better"
more = "old is better"
rows = [
    { name = "Data <one>", claim = "a", value = "ratio", paper = 0.2 },
    { name = "Data two", claim = "b", value = "ratio", size = "laptop" },
    { name = "Data three", claim = "c", value = "ratio" },
]
"""
MEASURED = {
    ("a", "ratio", None): {"value": 0.5, "interval": [0.25, 0.75]},
    ("b", "ratio", "laptop"): {"value": 2.0, "interval": None},
}


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """The picture of measurements."""
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "some2020.toml").write_text(THREE_ROWS, encoding="utf-8")
    monkeypatch.setattr(paths, "SITE", tmp_path)

    def made(measured):
        picture = comparisons.drawn("some2020", lambda *key: measured.get(key))
        return ElementTree.fromstring(picture)

    return made


@pytest.fixture
def picture(drawn):
    return drawn(MEASURED)


def words_of(picture):
    return ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]


def test_a_row_has_its_words_and_its_number_and_says_what_was_not_measured(picture):
    words = words_of(picture)
    shown = {"Data <one>", "0.50 ± 0.25", "★", "Data two", "2", "Data three", "not measured"}
    assert shown <= {*words}
    assert "error / error of ReLU (★ the paper)" in words


def test_an_interval_that_reaches_zero_leaves_the_axis_by_an_arrow(drawn, picture):
    words = words_of(drawn(MEASURED | {("c", "ratio", None): {"value": 0.5, "interval": [0, 1]}}))
    assert words.count("◂") == 1
    assert "error / error of ReLU (★ the paper, ◂ reaches zero or below)" in words
    assert "◂" not in words_of(picture)


def test_dots_and_intervals_lie_on_one_logarithmic_axis(picture):
    one, two = (float(dot.get("cx")) for dot in picture.iter(f"{SVG}circle"))
    equal = (one + two) / 2  # 1 lies in the middle of 1/2 and 2
    upright = [line for line in picture.iter(f"{SVG}line") if line.get("stroke-dasharray") == "5 3"]
    assert [float(line.get("x1")) for line in upright] == pytest.approx([equal], abs=0.1)
    bars = [line for line in picture.iter(f"{SVG}line") if line.get("stroke-width") == "2.5"]
    low, high = float(bars[0].get("x1")), float(bars[0].get("x2"))
    unit = (two - one) / math.log(4)
    assert (high - low) / unit == pytest.approx(math.log(3), abs=0.01)
    assert (one - low) / unit == pytest.approx(math.log(2), abs=0.01)


PAPERS = [
    path.stem
    for path in sorted((paths.SITE / "papers").glob("*.toml"))
    if comparisons.comparison(path.stem)
]


@pytest.mark.parametrize("paper", PAPERS)
def test_the_rows_of_a_paper_are_positive_numbers_of_its_records(paper):
    measured = quotes.Quotes(entries.load(paths.ROOT / "figures")).measured
    for row in comparisons.comparison(paper)["rows"]:
        assert row["claim"].startswith(paper)
        assert measured(row["claim"], row["value"], row.get("size"))["value"] > 0
