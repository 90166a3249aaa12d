"""The mistakes found in the papers, from the tables in `notebooks/errata/`, by severity."""

import re

from .. import paths

SEVERITIES = {  # of errata, the gravest first, with their headings
    "result": "A result does not follow, or is false",
    "exponent": "Another exponent or order",
    "constant": "Another constant",
    "typo": "Typographical",
    "comment": "Comments, no errata",
}


def lists(keys, entries, level, names=None):
    """The errata of some papers, the gravest first, an item for each.

    Names: {key: short name}, to name the papers.
    """
    pages = {entry.claim.id: entry.page() for entry in entries if entry.best}

    def linked(word):
        claim = word[0]
        return f"[{claim.partition('-')[2]}](/{pages[claim]})" if claim in pages else claim

    parts = []
    for severity, title in SEVERITIES.items():
        found = rows(keys, severity)
        if found:
            parts.append(f"{level} {title} ({len(found)})\n")
        for key, where, printed, holds, seen in found:
            paper = f"[{names[key]}](/papers/{key}), " if names else ""
            holds = re.sub(r"^(\*\w+\*|A comment, no erratum)[:,]? *", "", holds).removesuffix(".")
            holds = holds[:1].upper() + holds[1:]
            seen = re.sub(r"[\w-]+", linked, seen)
            parts.append(f"- {paper}**{where}**. Printed: {printed}. {holds}. See {seen}.")
        parts.append("")
    return "\n".join(parts)


def rows(keys, severity):
    """Cells (paper's key, where, printed, what holds, seen in) of the papers' errata of one
    severity.
    """
    found = []
    for key in keys:
        file = paths.NOTEBOOKS / "errata" / f"{key}.md"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        for line in [line for line in lines if line.startswith("|")][2:]:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            marked = re.match(r"\*(\w+)\*", cells[2])
            if severity == (marked[1] if marked else "comment"):
                found.append((key, *cells))
    return found
