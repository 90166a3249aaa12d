"""The arithmetic of the five texts, recomputed: a table of statements for each paper, and one judge of all."""

import html
import itertools
import textwrap
from dataclasses import dataclass

import numpy as np
import pandas as pd

from . import allenzhu, arora, frei, guo, noy
from .judge import Statement

PAPERS = {
    "arora": "Arora et al.",
    "allenzhu": "Allen-Zhu et al.",
    "frei": "Frei et al.",
    "noy": "Noy et al.",
    "guo": "Guo et al.",
}
TABLES = {
    "arora": arora.ROWS,
    "allenzhu": allenzhu.ROWS,
    "frei": frei.ROWS,
    "noy": noy.ROWS,
    "guo": guo.ROWS,
}


def audit(seeds, tables=TABLES):
    """All statements beside what their own inputs give, in the order of the texts.

    seeds: of the Monte Carlo estimates; tables: {paper: rows of `Statement`}. Returns a table with the columns paper,
    place, says, printed, computed (text), agrees and spread, over seeds relative to the printed value, 0 if exact.
    """
    found = []
    for paper, rows in tables.items():
        for row in rows:
            statement = Statement(*row)
            values = statement.values(seeds)
            computed = float(np.mean(values)) if statement.drawn else values[0]
            found.append(
                {
                    "paper": paper,
                    "place": statement.place,
                    "says": statement.says,
                    "printed": statement.printed,
                    "computed": statement.shown(computed),
                    "agrees": statement.agrees(computed),
                    "spread": float(np.ptp(values) / abs(statement.number)) if statement.drawn else 0.0,
                }
            )
    return pd.DataFrame(found)


@dataclass(frozen=True)
class Table:
    """The statements of a paper that do not agree: a table where HTML is shown, and text elsewhere."""

    rows: pd.DataFrame
    paper: str

    HEADS = ("statement", "printed", "recomputed")
    LETTERS = (42, 15, 15)  # in a line of a column of the text

    @property
    def title(self):
        return f"{PAPERS[self.paper]}: printed and recomputed do not agree"

    @property
    def cells(self):
        wrong = self.rows[(self.rows["paper"] == self.paper) & ~self.rows["agrees"]]
        return [(f"{row.place}: {row.says}", row.printed, row.computed) for row in wrong.itertuples()]

    def _repr_html_(self):
        heads = "".join(f"<th>{word}</th>" for word in self.HEADS)
        lines = ["".join(f"<td>{html.escape(cell)}</td>" for cell in cells) for cells in self.cells]
        body = "\n".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table>\n<caption>{self.title}</caption>\n<tr>{heads}</tr>\n{body}\n</table>"

    def __repr__(self):
        lines = [self.title, ""]
        for cells in (self.HEADS, *self.cells):
            columns = [textwrap.wrap(cell, letters) for cell, letters in zip(cells, self.LETTERS, strict=True)]
            for line in itertools.zip_longest(*columns, fillvalue=""):
                lines.append("  ".join(map(str.ljust, line, self.LETTERS)).rstrip())
            lines.append("")
        return "\n".join(lines)


__all__ = ["PAPERS", "TABLES", "Statement", "Table", "audit"]
