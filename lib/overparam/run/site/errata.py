"""The mistakes found in the papers, from the tables in `notebooks/errata/`, by severity."""

import re

from ... import paths

SEVERITIES = {  # of errata, the gravest first, with their headings
    "result": "A result does not follow, or is false",
    "exponent": "Another exponent or order",
    "constant": "Another constant",
    "typo": "Typographical",
    "comment": "Comments, no errata",
}


def page(entries, texts):
    """All papers' errata, the gravest first; texts: {key: (short name, ...)} of the papers."""
    parts = [(paths.SITE / "errata.md").read_text(encoding="utf-8")]
    for severity, title in SEVERITIES.items():
        found = rows(texts, severity)
        parts.append(f"## {title} ({len(found)})\n\n{_list(found, entries, texts)}")
    return "\n".join(parts)


def section(key, entries):
    """The errata of one paper, the gravest first, as the last part of its page."""
    parts = ["## Errata\n"]
    for severity, title in SEVERITIES.items():
        found = rows([key], severity)
        parts += [f"**{title}**\n\n{_list(found, entries)}"] * bool(found)
    return "\n".join(parts) if len(parts) > 1 else ""


def rows(keys, severity):
    """Cells (paper's key, where, printed, what holds, seen in) of the papers' errata of one severity."""
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


def _list(found, entries, texts=None):
    """An item for each row, its claims as links; texts: where the papers are to be named."""
    pages = {entry.spec.id: entry.page() for entry in entries if entry.best}
    link = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, sorted(pages, key=len, reverse=True)))})(?![\w-])")
    lines = []
    for key, where, printed, holds, seen in found:
        where = f"[{texts[key][0]}](/papers/{key}), **{where}**" if texts else f"**{where}**"
        seen = link.sub(lambda m: f"[{m[1].partition('-')[2]}](/{pages[m[1]]})", seen) if pages else seen
        lines.append(f"- {where}. Printed: {printed}. {_said(holds)} See {seen}.")
    return "\n".join(lines) + "\n"


def _said(holds):
    """What holds, as sentences of its own, without the severity, which the heading says."""
    text = re.sub(r"^\*\w+\*[:,]? *", "", holds)
    text = re.sub(r"^A comment, no erratum[:,]? *", "", text, flags=re.IGNORECASE)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
