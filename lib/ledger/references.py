"""Executed notebooks that are kept.

The page as it reads today, with the outputs and pictures of its run.
"""

import json

from . import files, render


def text(notebook):
    """A notebook as it is stored."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def composed(executed, page, claims):
    """An executed notebook with the page's present prose, each claim's finding.

    And today's words for its checks.

    executed, page: notebooks as of json.loads; claims: (Claim, record, finding) of those that the
    run serves. Where the page has another number of code cells today, its prose no longer fits, and
    only findings and checks are renewed.
    """
    ran = [_with_words(cell, claims) for cell in executed["cells"]]
    injected = [cell for cell in ran if "injected-parameters" in _tags(cell)]
    code = [
        cell
        for cell in ran
        if cell["cell_type"] == "code" and "injected-parameters" not in _tags(cell)
    ]
    if len(code) == sum(cell["cell_type"] == "code" for cell in page["cells"]):
        cells = []
        for cell in page["cells"]:
            cells.append(code.pop(0) if cell["cell_type"] == "code" else cell)
            cells += injected if "parameters" in _tags(cell) else []
    else:
        cells = [cell for cell in ran if "finding" not in _tags(cell)]
    found = [
        {
            "cell_type": "markdown",
            "metadata": {"tags": ["finding"]},
            "source": f"**In short.** {finding}",
        }
        for _, _, finding in claims
    ]
    cells = [cells[0], *found, *cells[1:]]
    cells = [
        {**cell, "id": f"cell-{i}"} for i, cell in enumerate(cells)
    ]  # those of the two had ids of their own
    return {**executed, "cells": cells}


def _tags(cell):
    return cell["metadata"].get("tags", [])


def _with_words(cell, claims):
    """A cell whose reports show the checks in today's words."""
    if cell["cell_type"] != "code":
        return cell
    outputs = list(cell["outputs"])
    for i, output in enumerate(outputs):
        reported = output.get("metadata", {}).get("ledger", {}).get("report")
        for claim, record, _ in claims:
            if claim.id == reported:
                shown = {
                    "text/markdown": render.markdown(claim, record),
                    "text/plain": render.plain(claim, record),
                }
                outputs[i] = {**output, "data": shown}
    return {**cell, "outputs": outputs}


def sealed(notebook, outputs):
    """The notebook with the digests of the files of its run, and of itself."""
    unsealed = {**notebook, "metadata": {**notebook["metadata"], "overparam": {"outputs": outputs}}}
    itself = files.sha256(json.dumps(unsealed, sort_keys=True).encode())
    return {
        **notebook,
        "metadata": {**unsealed["metadata"], "overparam": {"outputs": outputs, "itself": itself}},
    }


def is_sealed(notebook):
    """Whether a notebook is what its run, or a later change of words, has sealed."""
    return notebook == sealed(notebook, notebook["metadata"]["overparam"]["outputs"])
