"""Executed notebooks that are kept.

The page as it reads today, with the outputs and pictures of its run.
"""

import ast
import json
import os
import re

from . import files, registry, render

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
    cells = _with_own_parameters([_with_words(cell, claims) for cell in executed["cells"]])
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    if len(code) == sum(cell["cell_type"] == "code" for cell in page["cells"]):
        cells = [code.pop(0) if cell["cell_type"] == "code" else cell for cell in page["cells"]]
    told = [_in_short(claim, record, found) for claim, record, found in claims]
    opening = _with_findings("".join(cells[0]["source"]), told)
    cells = [{**cells[0], "source": opening}, *cells[1:]]
    cells = _numbered(cells)
    return {**executed, "cells": cells}


def _numbered(cells):
    """The cells, named and counted anew from the top.

    They come from two notebooks, whose ids overlap. And the cell that papermill had added was
    counted, so that without it a number is missing between the others.
    """
    ran = [i for i, cell in enumerate(cells) if cell.get("execution_count")]
    number = {i: k for k, i in enumerate(ran, 1)}
    return [
        {**cell, "id": f"cell-{i}"} | ({"execution_count": number[i]} if i in number else {})
        for i, cell in enumerate(cells)
    ]


def _with_own_parameters(cells):
    """Cells of a run in one of which stand the parameters that it had.

    papermill leaves the page's own parameters, and puts those of the run into a cell behind them.
    """
    given = [cell for cell in cells if "injected-parameters" in _tags(cell)]
    if not given:
        return cells
    values = _literals("".join(given[0]["source"]))
    kept = [cell for cell in cells if cell not in given]
    return [
        {**cell, "source": _with_literals("".join(cell["source"]), values)}
        if "parameters" in _tags(cell)
        else cell
        for cell in kept
    ]


def _literals(source):
    """{name: what is assigned to it, as text} of a cell of parameters."""
    statements = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    return {node.targets[0].id: ast.get_source_segment(source, node.value) for node in statements}


def _with_literals(source, values):
    """A cell of parameters, one a line, with other values and its own comments."""
    lines = source.splitlines()
    for name, before in _literals(source).items():
        start = f"{name} = {before}"
        lines = [
            f"{name} = {values.get(name, before)}{line.removeprefix(start)}"
            if line.startswith(start)
            else line
            for line in lines
        ]
    return "\n".join(lines)


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
    """A finding with the verdict behind it, and whether this is preliminary.

    Of a theorem also whether it follows as it is printed, since this is another question.
    """
    size, verdict = render.size(record), record["verdict"]
    if size != "smoke" and render.frozen(claim, record).startswith(render.PRELIMINARY):
        verdict += " (preliminary)"
    if claim.kind != "theorem":
        return f"{IN_SHORT} {found} *Verdict at {size} size: {verdict}.*"
    printed = registry.PRINTED[claim.printed]
    return f"{IN_SHORT} {found} *Where measured, at {size} size: {verdict}. As printed: {printed}.*"


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


def was_run_by_hand(notebook):
    """Whether a cell of a notebook shows that it was run by hand since, and saved."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    return any("by_hand" in output.get("metadata", {}).get("ledger", {}) for output in outputs)


def is_sealed(notebook):
    """Whether a notebook is what its run, or a later change of words, has sealed."""
    return notebook == sealed(notebook, notebook["metadata"]["overparam"]["outputs"])
