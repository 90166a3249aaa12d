"""Tables in Markdown: every row has the cells of its head, and no formula in a cell has a bar.

A bar ends a cell, also inside a formula; escaped, it is another symbol in some readers and one bar
for two in others. `\\vert` and `\\Vert` are safe everywhere.
"""

import json
import re

import pytest

from ledger.paths import FIGURES, NOTEBOOKS, ROOT

RULER = re.compile(r"\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?\s*)?")
BAR = re.compile(r"(?<!\\)\|")
WRITTEN = [*ROOT.glob("*.md"), *NOTEBOOKS.glob("*/*.md"), *ROOT.glob("site/**/*.md")]
FILES = [path for path in WRITTEN if "_build" not in path.parts]
FILES += [*NOTEBOOKS.rglob("*.ipynb"), *FIGURES.glob("*/*/notebook.ipynb")]
NAMES = [str(path.relative_to(ROOT)) for path in FILES]


def texts(path):
    """The Markdown of a file, and of a notebook that of its cells and outputs."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield text
        return
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "markdown":
            yield "".join(cell["source"])
        for output in cell.get("outputs", []):
            yield "".join(output.get("data", {}).get("text/markdown", ""))


def tables(text):
    """The tables of a text, each as a list of its rows, the head first."""
    lines = text.splitlines()
    for i, line in enumerate(lines[1:], 1):
        if RULER.fullmatch(line.strip()):
            rows = [lines[i - 1]]
            for row in lines[i + 1 :]:
                if "|" not in row:
                    break
                rows.append(row)
            yield rows


def cells(row):
    return BAR.split(row.strip().removeprefix("|").removesuffix("|"))


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_tables_are_whole(path):
    for text in texts(path):
        for head, *rows in tables(text):
            for row in rows:
                assert len(cells(row)) == len(cells(head)), row
            for formula in re.findall(r"\$[^$]+\$", "\n".join([head, *rows])):
                assert "|" not in formula, formula


def test_a_torn_table_is_seen():
    torn = "a | b\n---|---\n$|x|$ | 1\n\nno | table"
    ((head, row),) = tables(torn)
    assert (len(cells(head)), len(cells(row))) == (2, 4)
