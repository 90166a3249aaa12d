"""The statements of the five texts whose arithmetic is recomputed, and one judge of all.

They stand beside the errata of notebooks/errata, and one page reads them:
notebooks/synthesis/audit.ipynb. A module for each paper has its table, whose rows are laid out as
place and words; what is printed and what is recomputed; severity and page.
"""

import numpy as np
import pandas as pd

from . import allenzhu2019, arora2019, frei2019, guo2024, noy2021
from .statement import MISREAD, SEVERITIES, Statement, typeset

PAPERS = {
    "arora": "Arora et al.",
    "allenzhu": "Allen-Zhu et al.",
    "frei": "Frei et al.",
    "noy": "Noy et al.",
    "guo": "Guo et al.",
}
TABLES = {
    "arora": arora2019.ROWS,
    "allenzhu": allenzhu2019.ROWS,
    "frei": frei2019.ROWS,
    "noy": noy2021.ROWS,
    "guo": guo2024.ROWS,
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
                    "severity": statement.severity.removesuffix(MISREAD),
                    "misread": statement.severity.endswith(MISREAD),
                    "how": statement.how,
                    "page": statement.page,
                    "spread": spread,
                }
            )
    return pd.DataFrame(found)


__all__ = ["PAPERS", "SEVERITIES", "TABLES", "Statement", "audit", "typeset"]
