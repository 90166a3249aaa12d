"""`notebooks/<paper>/README.md`.

A paper's overview with the picture of its argument, and all its claims with figure, finding and
verdict.
"""

import re

from . import arguments, comparisons, errata, files, findings, paths, registry, render, show
from .site import mistakes, quotes
from .site import records as entries

NOTE = "<!-- Written by `overparam refresh`; the text comes from site/papers/{paper}.md. -->"
ERRATA = "<!-- Written by `overparam refresh` from notebooks/errata/{paper}.toml. -->"
LETTER = "FOR-THE-AUTHORS.md"
TOTALS = re.compile(  # in the project's README; it names the claims that the table links to
    r"(<!-- written by `overparam refresh`, with links to: ([^>]*) -->\n).*?(<!-- end -->)",
    re.DOTALL,
)
PICTURE = 260  # pixels across
LEGEND = """## All claims

*With results* opens the executed notebook, with all figures and numbers. *To run* opens the
notebook that you can change and rerun. *Checks* opens the file with the question, the thresholds
and the sizes.

A verdict is that of the largest size that was run: *laptop* is minutes on two cores, *desk* is
hours, *paper* is the paper's own size.

- An experiment is *reproduced*, a theorem *holds* and a claim of ours is *confirmed* where all
  checks hold. It is *not reproduced*, *fails* or is *refuted* where none holds and at least one
  fails. *In part* and *partly* stand for everything between. The list that opens below a finding
  names the checks that do not hold.
- Checks, sizes and draws are frozen before the runs that judge. What was changed after that, and
  why, opens below the finding.
- A check is *undecided* where the 95 % interval of what was measured has values that satisfy it,
  and others.
- A claim is *not tested* where no check decides anything at this size. Its finding then says what
  was seen.
- *As printed* says of a theorem whether the paper proves it. It *stands*; or it follows after a
  misprint (*typo*), a *constant* or an *exponent* is corrected; or its proof has a *gap*; or it is
  *false*.

Numbers behind ± are 95 % intervals over draws, which are random choices of data and weights.
[More on verdicts](../../site/verdicts.md)."""


def write():
    """Write all overviews and the totals of the project's README.

    Return the paths of those that have changed.
    """
    changed = []
    for path, text in texts().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            files.write_atomically(path, text.encode())
            changed.append(path)
    return changed


def texts():
    """{path: text} of all that is generated from the committed records."""
    papers = {}
    loaded = entries.load(paths.ROOT / "figures")
    for entry in loaded:
        papers.setdefault(entry.claim.paper, []).append(entry)
    quoted = _Quotes(loaded)
    made = {
        paths.NOTEBOOKS / paper / "README.md": _overview(paper, own, quoted)
        for paper, own in papers.items()
    }
    for paper, own in papers.items():
        if arguments.steps(paper):
            verdicts = {entry.claim.id: entry.verdict for entry in own}
            picture = arguments.drawn(paper, verdicts)
            made[paths.NOTEBOOKS / paper / "argument.svg"] = picture
        if comparisons.comparison(paper):
            made[paths.NOTEBOOKS / paper / "comparison.svg"] = comparisons.drawn(
                paper, quoted.measured
            )
    made |= _errata(loaded)
    readme = paths.ROOT / "README.md"
    made[readme] = TOTALS.sub(
        lambda found: f"{found[1]}\n{_totals(papers, found[2].split())}\n\n{found[3]}",
        readme.read_text(encoding="utf-8"),
    )
    return made


def _totals(papers, linked):
    """A table: for each paper how many experiments and theorems have which verdict.

    papers: {key: entries}; linked: ids of claims whose titles lead to their executed notebooks.
    """
    lines = [
        "| paper | experiments | theorems, where measured | theorems, as printed | our own claims |"
    ]
    lines.append("|---|---|---|---|---|")
    for paper, own in papers.items():
        cells = {"paper": f"[{show.about_paper(paper)[0]}](notebooks/{paper}/README.md)"}
        for kind in show.KINDS:
            entries_of_kind = [entry for entry in own if entry.claim.kind == kind]
            counted = show.counted([entry.verdict for entry in entries_of_kind], show.COLOURS)
            titles = [_title(entry) for entry in entries_of_kind if entry.claim.id in linked]
            cells[kind] = "<br>".join([counted or "–", *titles])
        printed = [entry.claim.printed for entry in own if entry.claim.printed]
        cells["printed"] = show.counted(printed, registry.PRINTED) or "–"
        order = ("paper", "experiment", "theorem", "printed", "ours")
        lines.append(f"| {' | '.join(cells[name] for name in order)} |")
    return "\n".join(lines)


def _title(entry):
    """A claim's title as a link to its executed notebook from the project's README."""
    version = entry.best
    place = version.path.relative_to(paths.ROOT).as_posix()
    return f"[{render.in_cell(entry.claim.title)}]({place}): *{entry.verdict}*"


def _overview(paper, own, quoted):
    """The README of one paper."""
    _, heading, text = show.about_paper(paper)
    body = quotes.fill(f"papers/{paper}.md", text, quoted)
    parts = [f"# {heading}", NOTE.format(paper=paper), body.strip(), LEGEND]
    for kind, (_, many) in show.KINDS.items():
        rows = [_row(entry) for entry in own if entry.claim.kind == kind]
        if rows:
            head = [
                f"### {many.capitalize()}",
                "",
                "| figure | claim and finding | verdict |",
                "|---|---|---|",
            ]
            parts.append("\n".join([*head, *rows]))
    if paper in errata.papers():
        parts.append(
            f"What in the paper does not follow as printed: [errata](../errata/{paper}.md), and "
            f"[a letter to its authors]({LETTER})."
        )
    return "\n\n".join(parts) + "\n"


def _errata(loaded):
    """{path: text} of the errata of each paper, and of the corrected theorems beside them."""
    folder, links = paths.NOTEBOOKS / registry.ERRATA, mistakes.InRepository()
    names = {paper: show.about_paper(paper)[0] for paper in errata.papers()}
    if not names:
        return {}
    verdicts = {entry.claim.id: entry.verdict for entry in loaded}
    made, index = {}, []
    for paper, name in names.items():
        found = errata.load(paper)
        head = f"# {name}: the mistakes that we found\n\n{ERRATA.format(paper=paper)}\n\n"
        head += f"Text read: {found.version}.\n\n"
        made[folder / f"{paper}.md"] = head + mistakes.chapter(found, links)
        index.append(f"- [{name}]({paper}.md)")
    written = (paths.SITE / "corrected.md").read_text(encoding="utf-8").strip()
    parts = [written, "All mistakes of each paper:", "\n".join(index)]
    parts.append(mistakes.index([errata.load(paper) for paper in errata.papers()], links, names))
    parts.append(mistakes.corrected(verdicts, links, names))
    made[folder / "README.md"] = "\n\n".join(parts) + "\n"
    return made


def _row(entry):
    """A claim's row: its first figure, its title and finding.

    And its verdict, with links to page and reference.
    """
    claim, version = entry.claim, entry.best
    picture, words, verdict = "", f"**{render.in_cell(claim.title)}**", f"**{entry.verdict}**"
    links = [f"[to run]({claim.page.notebook.name})", f"[checks]({claim.page.file.name})"]
    if version and version.record:
        folder, executed = _reference(entry)
        if version.figure:
            picture = (
                f'[<img src="{folder}/{claim.id}/{version.figure}" width="{PICTURE}" '
                f'alt="">]({executed})'
            )
        words += f"<br>{render.in_cell(findings.opening(version.finding))}"
        words += f"<br>{claim.source}; `{claim.id}`"
        words += f"{_open_checks(claim, version.record)}{_changes(claim)}"
        verdict += f" ({version.size})"
        if not render.unseen(claim, version.record):
            verdict += "<br>its draws had been seen before the checks were frozen"
        links.insert(0, f"[with results]({executed})")
    if claim.printed:
        verdict += f"<br>as printed: {claim.printed}"
    return f"| {picture} | {words} | {verdict}<br>{'<br>'.join(links)} |"


def _open_checks(claim, record):
    """The checks that do not hold: how many there are, and behind that what they ask, and what was
    measured.
    """
    rows = render.open_checks(claim, record)
    if not rows:
        return ""
    held = len(record["checks"]) - len(rows)
    said = [outcome for outcome, *_ in rows]
    counts = [f"{held} hold"] if held > 1 else [f"{held} holds"] * held
    counts += [f"{said.count(word)} {word}" for word in dict.fromkeys(said)]
    lines = []
    for word, value, asks in rows:
        value = "" if word == "not measured" else f" Measured: {value}."
        lines.append(f"*{word.capitalize()}:* {render.in_cell(asks)}{render.in_cell(value)}")
    summary = f"Of {len(record['checks'])} checks: {', '.join(counts)}"
    return f"<details><summary>{summary}</summary>{'<br>'.join(lines)}</details>"


def _changes(claim):
    """What was changed since the claim was frozen, behind how many changes there are."""
    if not claim.changes:
        return ""
    lines = [
        render.in_cell(f"*{change.date}:* {change.what}. *Why:* {change.why}.")
        for change in claim.changes
    ]
    count = "1 change" if len(lines) == 1 else f"{len(lines)} changes"
    summary = f"{count} since it was frozen"
    return f"<details><summary>{summary}</summary>{'<br>'.join(lines)}</details>"


def _reference(entry):
    """The folder of the records of the size that counts.

    And the executed notebook, as an overview links to them.
    """
    folder = f"../../figures/{entry.best.size}"
    return folder, f"{folder}/{entry.claim.page.id}/notebook.ipynb"


class _Quotes(quotes.Quotes):
    """What a paper's text quotes, with links and pictures for a reader of the repository."""

    def link(self, claim, words):
        """Words that lead to a claim's page."""
        notebook = registry.claim(claim).page.notebook
        return f"[{words}](../{notebook.parent.name}/{notebook.name})"

    def argument(self, paper):
        """The picture of a paper's argument, which stands beside its overview."""
        return "![The argument of the paper, step by step, with verdicts](argument.svg)"

    def comparison(self, paper):
        """The picture of a paper's measurements, which stands beside its overview."""
        title = comparisons.comparison(paper)["title"]
        return f"![{title}, by data set, with 95 % intervals](comparison.svg)"

    def picture(self, claim, name, description, panel=None):
        """A figure that leads to the executed notebook; always all its panels."""
        entry = self._entries[claim]
        if not (entry.best and f"{name}.png" in entry.best.files):
            return ""
        folder, executed = _reference(entry)
        return f"[![{description}]({folder}/{claim}/{name}.png)]({executed})"
