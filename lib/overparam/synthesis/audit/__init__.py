"""The arithmetic of the five texts, recomputed: a module for each paper, in it a function for each statement."""

import importlib
import inspect
import math
import textwrap
from dataclasses import dataclass

import numpy as np

from ... import plots
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


def pages(rows, per_page=24):
    """(name, figure) for every page of a table: the statements that do not agree, paper by paper."""
    for paper, name in PAPERS.items():
        found = wrong(rows, paper)
        count = math.ceil(len(found) / per_page)
        for i in range(count):
            part = found[i * len(found) // count : (i + 1) * len(found) // count]
            more = f", {i + 1} of {count}" if count > 1 else ""
            yield f"{paper}-{i + 1}", _page(part, f"{name}: printed and recomputed do not agree{more}")


COLUMNS = ((0.0, 74, "statement"), (0.55, 26, "printed"), (0.78, 26, "recomputed"))  # where, letters in a line, heading


def _page(rows, title):
    """One page of the table, as high as its lines need."""
    texts = [
        [_wrapped(words, letters) for words, (_, letters, _) in zip(_cells(r), COLUMNS, strict=True)] for r in rows
    ]
    heights = [max(map(len, cells)) + 0.7 for cells in texts]
    lines = sum(heights) + 1.8
    fig, ((ax,),) = plots.figure(1, 1, width=8.2, height=0.4 + 0.142 * lines)
    ax.set_title(title, loc="left", weight="bold")
    ax.set(xlim=(0, 1), ylim=(lines, 0))
    ax.axis("off")
    for x, _, heading in COLUMNS:
        ax.text(x, 0.3, heading, va="top", fontsize=8.5, style="italic")
    for y, cells in zip(1.8 + np.cumsum([0, *heights[:-1]]), texts, strict=True):
        ax.axhline(y - 0.35, color="0.8", lw=0.6)
        for (x, _, _), cell in zip(COLUMNS, cells, strict=True):
            ax.text(x, y, "\n".join(cell), va="top", fontsize=8, linespacing=1.15)
    return fig


def _cells(row):
    return f"{row.place}: {row.says}", row.printed, row.computed


def _wrapped(words, letters):
    return textwrap.wrap(words.replace("$", ""), letters)


__all__ = ["PAPERS", "Row", "Statement", "audit", "draw", "pages", "shares", "wrong"]
