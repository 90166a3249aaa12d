"""Executed notebooks that are kept.

The page as it reads today, with the outputs and pictures of its run.
"""

import json
import os
import re

from . import files, render

LINK = re.compile(r"(\[[^][]*\])\(([^()\s#]*)(#[^()\s]*)?\)")  # words, place, anchor
IN_SHORT = "**In short.**"  # begins a finding, and on a page the link to where it stands


def text(notebook):
    """A notebook as it is stored."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def composed(executed, page, claims):
    """An executed notebook with the page's present prose, its findings, and today's checks.

    executed, page: notebooks as of json.loads; claims: (Claim, record, finding) of those that the
    run serves. Where the page has another number of code cells today, its prose no longer fits, and
    only findings and the words of checks are renewed.
    """
    ran = [_with_words(cell, claims) for cell in executed["cells"]]
    injected = [cell for cell in ran if "injected-parameters" in _tags(cell)]
    code = [
        cell
        for cell in ran
        if cell["cell_type"] == "code" and "injected-parameters" not in _tags(cell)
    ]
    cells = ran
    if len(code) == sum(cell["cell_type"] == "code" for cell in page["cells"]):
        cells = []
        for cell in page["cells"]:
            cells.append(code.pop(0) if cell["cell_type"] == "code" else cell)
            cells += injected if "parameters" in _tags(cell) else []
    told = [_in_short(claim, record, found) for claim, record, found in claims]
    opening = _with_findings("".join(cells[0]["source"]), told)
    cells = [{**cells[0], "source": opening}, *cells[1:]]
    cells = [
        {**cell, "id": f"cell-{i}"} for i, cell in enumerate(cells)
    ]  # those of the two had ids of their own
    return {**executed, "cells": cells}


def with_links_from(cells, source, target):
    """Cells whose relative links lead from the folder `target` to where they led from `source`."""

    def renewed(found):
        place, anchor = found[2], found[3] or ""
        if re.match(r"[a-z]+:|/|#|$", place):  # an address, or a place on the page itself
            return found[0]
        return f"{found[1]}({os.path.relpath(source / place, target)}{anchor})"

    return [
        {**cell, "source": LINK.sub(renewed, "".join(cell["source"]))}
        if cell["cell_type"] == "markdown"
        else cell
        for cell in cells
    ]


def _in_short(claim, record, found):
    """A finding with the verdict behind it, and whether this is preliminary."""
    size, verdict = render.size(record), record["verdict"]
    if size != "smoke" and render.frozen(claim, record).startswith(render.PRELIMINARY):
        verdict += " (preliminary)"
    return f"{IN_SHORT} {found} *Verdict at {size} size: {verdict}.*"


def _with_findings(opening, found):
    """A page's first cell with findings where it has a link to its executed notebook.

    Where it has none they follow title and source.
    """
    paragraphs = opening.split("\n\n")
    links = [i for i, text in enumerate(paragraphs) if text.startswith(IN_SHORT)]
    place = links[0] if links else 2
    kept = [text for text in paragraphs if not text.startswith(IN_SHORT)]
    kept[place:place] = found
    return "\n\n".join(kept)


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
