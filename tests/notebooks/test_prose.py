"""What a reader sees of a page is in a reader's words: its prose, its findings, its figures.

It is asked of pages in the anatomy of CONTRIBUTING.md, which end in "So what".
"""

import base64
import io
import json
import re

import pytest
from PIL import Image

from ledger.parameters import notebook_parameters
from ledger.paths import NOTEBOOKS
from overparam.data import describe

SO_WHAT = "## So what"
SECTIONS = ["## Why one would expect it", "## What we found", "## Verdict", SO_WHAT]
SECTIONS += ["## Paper", "**Open.**", "**Try**", "**Next**"]
EXPONENT = re.compile(r"\d(?:\.\d+)?e[+-]?\d+\b")  # 1e-05, as Python has it
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]*\$", re.DOTALL)
LINK = re.compile(r"\]\([^)]*\)")
NOT_SENTENCES = re.compile(r"^(?:\||\*\*Try\*\*).*$", re.MULTILINE)  # tables, and lines of code
QUOTED = re.compile(r"`[^`]*`")


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def source(cell):
    return "".join(cell["source"])


PAGES = {
    str(path.relative_to(NOTEBOOKS).with_suffix("")): path
    for path in sorted(NOTEBOOKS.glob("*/*.ipynb"))
    if any(SO_WHAT in source(cell) for cell in cells(path))
}
each_page = pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)


def outputs(path):
    """What the cells of a page have shown, without the table of its verdict."""
    shown = [output for cell in cells(path) for output in cell.get("outputs", [])]
    return [each for each in shown if "report" not in each["metadata"].get("ledger", {})]


def sentences(path):
    """The prose of a page and what it has said, without formulas, tables and code to try."""
    prose = [source(cell) for cell in cells(path) if cell["cell_type"] == "markdown"]
    said = ["".join(output["data"].get("text/markdown", "")) for output in outputs(path)]
    text = "\n\n".join(prose + said)
    for kind in (FORMULA, LINK, NOT_SENTENCES):
        text = kind.sub(" ", text)
    return text


def figures(path):
    """All that is written in the figures of a page, without formulas."""
    pictures = [
        output["data"]["image/png"] for output in outputs(path) if "image/png" in output["data"]
    ]
    opened = [Image.open(io.BytesIO(base64.b64decode("".join(data)))) for data in pictures]
    return "\n".join(FORMULA.sub(" ", picture.text["Description"]) for picture in opened)


def code_words(text, parameters):
    """Names from the code in a text: with an underscore, a parameter's letters, a data set's name,
    or a number with an exponent.
    """
    letters = [re.escape(name) for name in parameters if len(name) == 1 or "_" in name]
    sets = [re.escape(row["name"]) for row in describe() if "-" in row["name"]]
    named = rf"(?<![\w.-])(?:{'|'.join([*letters, *sets])})(?![\w.-]\w|\w)"
    patterns = [EXPONENT.pattern, r"\w+_\w+", r"\b\w+\(\)", named]
    return re.findall("|".join(patterns), text)


@each_page
def test_a_page_goes_as_all_pages_go(path):
    prose = "\n\n".join(source(cell) for cell in cells(path) if cell["cell_type"] == "markdown")
    places = [prose.find(section) for section in SECTIONS]
    assert -1 not in places, dict(zip(SECTIONS, places, strict=True))
    assert places == sorted(places)


@each_page
def test_no_sentence_has_a_word_from_the_code(path):
    text = QUOTED.sub(" ", sentences(path))
    assert code_words(text, notebook_parameters(path)) == []


@each_page
def test_no_figure_has_a_word_from_the_code(path):
    assert code_words(figures(path), notebook_parameters(path)) == []


def test_code_words_are_found():
    parameters = {"eta_n": 1, "n": 2, "steps": 3}
    text = "With eta_n = 10 and n = 5 on mnist-5k, after 1e-05 of the steps, fit() ends: an n-th."
    assert code_words(text, parameters) == ["eta_n", "n", "mnist-5k", "1e-05", "fit()"]
