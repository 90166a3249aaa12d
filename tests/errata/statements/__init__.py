"""The statements of the five texts whose arithmetic is recomputed, and one judge of all.

A module for each paper has its table, whose rows are laid out as place and words; what is printed
and what is recomputed; the severity of a slip. What they give is stored beside the errata, in
notebooks/errata/statements.csv, which the page notebooks/audit.ipynb reads. A test compares the
two; `python -m statements`, called in tests/errata, writes the file anew.
"""

import numpy as np
import pandas as pd

from . import allenzhu2019, arora2019, frei2019, guo2024, noy2021
from .statement import Statement, typeset

TABLES = {
    "arora2019": arora2019.ROWS,
    "allenzhu2019": allenzhu2019.ROWS,
    "frei2019": frei2019.ROWS,
    "noy2021": noy2021.ROWS,
    "guo2024": guo2024.ROWS,
}
SEEDS = range(12)  # of the Monte Carlo estimates


def audit(seeds, tables=TABLES):
    """All statements beside what their own inputs give, in the order of the texts.

    seeds: of the Monte Carlo estimates; tables: {paper: rows of `Statement`}. Returns a table with
    the columns paper, place, says, printed, computed (text), agrees, severity, how (it was found),
    and spread, over seeds relative to the printed value, 0 if exact.
    Raises ValueError where a severity is missing or too many.
    """
    found = []
    for paper, rows in tables.items():
        for row in rows:
            statement = Statement(*row)
            values = statement.values(seeds)
            computed, spread = values[0], 0.0
            if statement.drawn:
                computed = float(np.mean(values))
                spread = float(np.ptp(values) / abs(statement.number))
            found.append(
                {
                    "paper": paper,
                    "place": statement.place,
                    "says": statement.says,
                    "printed": statement.printed,
                    "computed": statement.shown(computed),
                    "agrees": statement.judged(computed),
                    "severity": statement.severity,
                    "how": statement.how,
                    "spread": spread,
                }
            )
    return pd.DataFrame(found)


def stored():
    """The same table as a page shows it: printed and recomputed as Markdown, without the spread."""
    table = audit(SEEDS).drop(columns="spread")
    for column in ("printed", "computed"):
        table[column] = table[column].map(typeset)
    return table.rename(columns={"says": "statement", "computed": "recomputed"})


__all__ = ["SEEDS", "TABLES", "Statement", "audit", "stored", "typeset"]
