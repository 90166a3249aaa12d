"""Mistakes and corrected theorems in Markdown, for the repository and for the site."""

from .. import errata, registry, rule
from ..corrected import theorems
from ..render import in_cell

EVIDENCE = {
    "derivation": "derived",
    "counterexample": "counterexample",
    "recomputed": "recomputed",
    "measured": "measured",
}
HEAD = ["| where | printed | what holds | severity, evidence, page |", "|---|---|---|---|"]
THEOREMS = ["| statement | as printed | what its proof supports, and repair | where measured |"]
THEOREMS.append("|---|---|---|---|")


class InRepository:
    """Links between the files in `notebooks/errata`, and from there to pages and tests."""

    def claim(self, claim, words=""):
        """Words, or else the claim's short name, that lead to a claim's page."""
        notebook = registry.claim(claim).page.notebook
        words = words or claim.partition("-")[2]
        return f"[{words}](../{notebook.parent.name}/{notebook.name})"

    def mark(self, anchor):
        """What links to an anchor lead to."""
        return f'<a id="{anchor}"></a>'

    def fault(self, fault, words):
        """Words that lead to a mistake."""
        return f"[{words}]({fault.paper}.md#{fault.anchor})"

    def tests(self, paper):
        """The file of a paper's certificates."""
        return f"[{errata.TESTS}/test_{paper}.py](../../{errata.TESTS}/test_{paper}.py)"


class OnSite:
    """Links of the site's pages; entries: claims as `records.load` gives them."""

    def __init__(self, entries):
        self._pages = {entry.claim.id: entry.page() for entry in entries if entry.best}

    def claim(self, claim, words=""):
        """Words, or else the claim's short name, that lead to a claim's page."""
        words = words or claim.partition("-")[2]
        return f"[{words}](/{self._pages[claim]})" if claim in self._pages else words

    def mark(self, anchor):
        """What links to an anchor lead to."""
        return f"({anchor})="

    def fault(self, fault, words):
        """Words that lead to a mistake."""
        return f"[{words}](project:#{fault.anchor})"

    def tests(self, paper):
        """The file of a paper's certificates."""
        return f"`{errata.TESTS}/test_{paper}.py`"


def counted(found):
    """Sentences that say how many places, mistakes and statements there are."""
    rows = [row for paper in found for row in paper.errata]
    independent = sum(paper.independent for paper in found)
    grave = [fault for paper in found for fault in paper.faults if fault.grave]
    changed = {(fault.paper, name) for fault in grave for name in fault.changes}
    without = sum(not fault.certificate for fault in grave)
    certified = f"All but {without} have" if without else "Each has"
    return (
        f"We list {_several(len(rows), 'mistaken place')}, which go back to "
        f"{_several(independent, 'independent mistake')}. Of these, {len(grave)} "
        f"{'matters' if len(grave) == 1 else 'matter'}: a mistake matters if it changes a stated "
        "result, leaves one without a proof, or makes a claim that a counterexample refutes. "
        f"{_several(len(changed), 'statement')} must change. {certified} a certificate, which is "
        "a derivation that a reader can check with the paper, and a test that would fail if the "
        "mistake were ours. What a counterexample refutes comes first, then what the printed proof "
        "does not give, then wrong exponents and constants. All other mistakes are places in the "
        "table of all places."
    )


def _several(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def index(found, links, names):
    """The mistakes that matter in several papers as links, the gravest first.

    names: {paper: short name}.
    """
    parts = [counted(found)]
    for severity, words in errata.SEVERITIES.items():
        faults = [fault for paper in found for fault in _grave(paper) if fault.severity == severity]
        lines = [f"- {links.fault(fault, fault.title)} ({names[fault.paper]})" for fault in faults]
        if lines:
            parts += [f"## {_sentence(words)}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def chapter(paper, links):
    """The errata of one paper: mistakes that matter, the gravest first, all places, remarks."""
    order = list(errata.SEVERITIES)
    faults = [fault for fault in paper.faults if _is_told(fault)]
    faults.sort(key=lambda fault: (not fault.grave, order.index(fault.severity)))
    parts = [counted([paper]), titles(paper, links), *(_fault(fault, links) for fault in faults)]
    parts += ["## All places", table(paper, links)]
    if paper.remarks:
        parts += ["## Remarks, which are no errata", remarks(paper, links)]
    return "\n\n".join(part for part in parts if part) + "\n"


def titles(paper, links):
    """A list of the mistakes that matter in one paper, as links to their texts."""
    return "\n".join(f"- {links.fault(fault, fault.title)}" for fault in _grave(paper))


def _grave(paper):
    order = list(errata.SEVERITIES)
    grave = [fault for fault in paper.faults if fault.grave]
    return sorted(grave, key=lambda fault: order.index(fault.severity))


def _is_told(fault):
    return fault.grave or bool(fault.certificate)


def _fault(fault, links):
    about = [errata.SEVERITIES[fault.severity]]
    if fault.changes:
        about.append(f"what must change, or loses its proof: {_listed(fault.changes)}")
    elif not fault.grave:
        about.append("the statements stand")
    parts = [
        links.mark(fault.anchor),
        f"## {fault.title}",
        f"*{_sentence('; '.join(about))}.*",
        fault.says.strip(),
    ]
    if fault.certificate:
        parts.append(f"**Certificate.**\n\n{fault.certificate.strip()}")
        parts.append(
            f"Tested by `{fault.test}` in {links.tests(fault.paper)}: "
            f"`pytest {errata.TESTS}/test_{fault.paper}.py -k {fault.test}`."
        )
    else:
        parts.append("This mistake has no certificate.")
    places = [f"{row.place}{_seen(row, links)}" for row in fault.errata]
    parts.append(f"**Where.** {'; '.join(places)}.")
    return "\n\n".join(parts)


def table(paper, links):
    """All places of a paper's errata, as a table."""
    faults = {fault.id: fault for fault in paper.faults}
    return "\n".join([*HEAD, *(_row(row, faults.get(row.fault), links) for row in paper.errata)])


def _row(row, fault, links):
    about = [f"*{row.severity}*"]
    if row.misread:
        about.append("perhaps misread in the text that was used")
    about += [EVIDENCE[name] for name in row.evidence]
    if fault and _is_told(fault):
        about.append(links.fault(fault, "the mistake"))
    cells = [f"**{row.place}**", row.printed, row.holds, f"{', '.join(about)}{_seen(row, links)}"]
    return f"| {' | '.join(in_cell(cell.strip()) for cell in cells)} |"


def remarks(paper, links):
    """Comments on a paper that are no errata, as a list."""
    lines = []
    for row in paper.remarks:
        printed = row.printed.strip().removesuffix(".")
        lines.append(
            f"- **{row.place}**. Printed: {printed}. {row.remark.strip()}{_seen(row, links)}"
        )
    return "\n".join(lines)


def corrected(verdicts, links, names):
    """Every theorem and main lemma of the papers in a row, a table for each paper.

    verdicts: {claim id: word}; names: {paper: short name}.
    """
    parts = []
    for paper, rows in theorems().items():
        lines = [_theorem(row, verdicts, links) for row in rows]
        read = errata.load(paper)
        about = f"Text read: {read.version}. {read.notation.strip()}".strip()
        parts.append("\n".join([f"## {names[paper]}\n", f"{about}\n", *THEOREMS, *lines]))
    return "\n\n".join(parts)


def _theorem(row, verdicts, links):
    supports = row.supports.strip()
    if row.repair:
        supports += f" *Repair:* {row.repair.strip()}"
    faults = {fault.id: fault for fault in errata.load(row.paper).faults}
    if row.faults:
        reasons = [links.fault(faults[name], faults[name].title) for name in row.faults]
        supports += f" *Why:* {'; '.join(reasons)}."
    measured = []
    for claim in row.claims:
        where, verdict = registry.claim(claim).source, verdicts.get(claim, rule.NOT_TESTED)
        measured.append(links.claim(claim, f"{where.partition(';')[0]}: {verdict}"))
    cells = [f"**{row.name}**", row.printed, supports, "; ".join(measured)]
    return f"| {' | '.join(in_cell(cell.strip() or '–') for cell in cells)} |"


def _seen(row, links):
    return f" ({', '.join(links.claim(claim) for claim in row.claims)})" if row.claims else ""


def _listed(words):
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _sentence(words):
    return words[:1].upper() + words[1:]
