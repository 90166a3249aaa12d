"""The arithmetic of the five texts, recomputed: a table of statements for each paper, and one judge
of all.
"""

import numpy as np
import pandas as pd

from . import allenzhu, arora, frei, guo, noy
from .judge import MISREAD, SEVERITIES, Statement, typeset

PAPERS = {
    "arora": "Arora et al.",
    "allenzhu": "Allen-Zhu et al.",
    "frei": "Frei et al.",
    "noy": "Noy et al.",
    "guo": "Guo et al.",
}
TABLES = {
    paper: module.ROWS
    for paper, module in zip(PAPERS, (arora, allenzhu, frei, noy, guo), strict=True)
}


def audit(seeds, tables=TABLES):
    """All statements beside what their own inputs give, in the order of the texts.

    seeds: of the Monte Carlo estimates; tables: {paper: rows of `Statement`}. Returns a table with
    the columns paper, place, says, printed, computed (text), agrees, severity, misread (perhaps),
    how (it was found), page, and spread, over seeds relative to the printed value, 0 if exact.
    Raises ValueError where a severity is missing or too many.
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
                    "agrees": statement.judged(computed),
                    "severity": statement.severity.removesuffix(MISREAD),
                    "misread": statement.severity.endswith(MISREAD),
                    "how": statement.how,
                    "page": statement.page,
                    "spread": float(np.ptp(values) / abs(statement.number))
                    if statement.drawn
                    else 0.0,
                }
            )
    return pd.DataFrame(found)


__all__ = ["PAPERS", "SEVERITIES", "TABLES", "Statement", "audit", "typeset"]
