"""The arithmetic of the five texts, recomputed: a module for each paper, in it a function for each statement."""

import html
import importlib
import inspect
import itertools
import textwrap
from dataclasses import dataclass

import numpy as np

from ...record import plots
from .statements import Statement, registered

PAPERS = {
    "arora": "Arora et al.", "allenzhu": "Allen-Zhu et al.", "frei": "Frei et al.", "noy": "Noy et al.",
    "guo": "Guo et al.",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A statement beside what its own inputs give; spread over seeds relative to the printed value, 0 if exact."""

    paper: str
    place: str
    says: str
    printed: str
    computed: str
    agrees: bool
    spread: float


def audit(seeds):
    """[Row] of all statements of all papers, in the order of the texts. seeds: for those that need Monte Carlo."""
    rows = []
    for paper in PAPERS:
        importlib.import_module(f"{__name__}.{paper}")
        rows += [_row(paper, statement, seeds) for statement in registered(f"{__name__}.{paper}")]
    return rows


def _row(paper, statement, seeds):
    takes_seed = "seed" in inspect.signature(statement.compute).parameters
    values = [statement.compute(seed) for seed in seeds] if takes_seed else [statement.compute()]
    spread = float(np.ptp(values) / abs(statement.number)) if takes_seed else 0.0
    computed = float(np.mean(values)) if takes_seed else values[0]
    return Row(
        paper, statement.place, statement.says, statement.printed, statement.shown(computed),
        statement.agrees(computed), spread,
    )  # fmt: skip


def shares(rows):
    """{paper: (statements that agree, statements)}."""
    return {p: (sum(r.agrees for r in rows if r.paper == p), sum(r.paper == p for r in rows)) for p in PAPERS}


def wrong(rows, paper):
    """The statements of a paper that do not agree."""
    return [row for row in rows if row.paper == paper and not row.agrees]


def draw(rows, width=8.2):
    """A figure: of each paper, how many statements agree and how many do not."""
    fig, ((ax,),) = plots.figure(1, 1, width=width, height=2.8)
    counts = np.array(list(shares(rows).values()))
    names = list(PAPERS.values())
    agree = ax.barh(names, counts[:, 0], color=plots.COLOURS[0], label="agree")
    rest = ax.barh(
        names, counts[:, 1] - counts[:, 0], left=counts[:, 0], color="white", edgecolor="black", hatch="///",
        label="do not",
    )  # fmt: skip
    ax.bar_label(agree, label_type="center", color="white")
    ax.bar_label(rest, label_type="center", backgroundcolor="white")
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set(xlabel="statements recomputed")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig


@dataclass(frozen=True)
class Table:
    """The statements of a paper that do not agree: a table where HTML is shown, and text elsewhere."""

    rows: list
    paper: str

    HEADS = ("statement", "printed", "recomputed")
    LETTERS = (42, 15, 15)  # in a line of a column of the text

    @property
    def title(self):
        return f"{PAPERS[self.paper]}: printed and recomputed do not agree"

    @property
    def cells(self):
        return [(f"{row.place}: {row.says}", row.printed, row.computed) for row in wrong(self.rows, self.paper)]

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


__all__ = ["PAPERS", "Row", "Statement", "Table", "audit", "draw", "shares", "wrong"]
