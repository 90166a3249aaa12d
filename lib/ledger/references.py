"""Executed notebooks that are kept: the page as it reads today, with the outputs and pictures of its run."""

import hashlib
import json

from . import findings, render


def text(notebook):
    """A notebook as it is stored."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def composed(executed, page, claims):
    """An executed notebook with the page's present prose, each claim's finding, and today's words for its checks.

    executed, page: notebooks as of json.loads; claims: (Claim, record, folder) of those that the run serves. Where the
    page has another number of code cells today, its prose no longer fits, and only findings and checks are renewed.
    """
    ran = [cell for cell in executed["cells"] if cell["cell_type"] == "code"]
    injected = [cell for cell in ran if "injected-parameters" in _tags(cell)]
    own = [_with_words(cell, claims) for cell in ran if cell not in injected]
    if len(own) == sum(cell["cell_type"] == "code" for cell in page["cells"]):
        cells, code = [], iter(own)
        for cell in page["cells"]:
            cells.append(next(code) if cell["cell_type"] == "code" else cell)
            cells += injected if "parameters" in _tags(cell) else []
    else:
        cells = [_with_words(cell, claims) for cell in executed["cells"] if "finding" not in _tags(cell)]
    cells = [cells[0], *(_finding(*claim) for claim in claims), *cells[1:]]
    cells = [{**cell, "id": f"cell-{i}"} for i, cell in enumerate(cells)]  # those of the two had ids of their own
    return {**executed, "cells": cells}


def _tags(cell):
    return cell["metadata"].get("tags", [])


def _finding(claim, record, folder):
    source = f"**In short.** {findings.finding(claim, record, folder)}"
    return {"cell_type": "markdown", "metadata": {"tags": ["finding"]}, "source": source}


def _with_words(cell, claims):
    """A cell whose reports show the checks in today's words."""
    if cell["cell_type"] != "code":
        return cell
    records = {claim.id: (claim, record) for claim, record, _ in claims}
    outputs = []
    for output in cell["outputs"]:
        told = output.get("metadata", {}).get("ledger", {}).get("report")
        if told in records:
            shown = {"text/markdown": render.markdown(*records[told]), "text/plain": render.plain(*records[told])}
            output = {**output, "data": shown}
        outputs.append(output)
    return {**cell, "outputs": outputs}


def sealed(notebook, outputs):
    """The notebook with the digests of the files of its run, and of itself."""
    metadata = {**notebook["metadata"], "overparam": {"outputs": outputs}}
    unsealed = {**notebook, "metadata": metadata}
    metadata["overparam"] = {"outputs": outputs, "itself": _digest(unsealed)}
    return {**notebook, "metadata": metadata}


def is_sealed(notebook):
    """Whether a notebook is what its run, or a later change of words, has sealed."""
    own = notebook["metadata"]["overparam"]
    unsealed = {**notebook, "metadata": {**notebook["metadata"], "overparam": {"outputs": own["outputs"]}}}
    return own["itself"] == _digest(unsealed)


def _digest(notebook):
    return hashlib.sha256(json.dumps(notebook, sort_keys=True).encode()).hexdigest()
