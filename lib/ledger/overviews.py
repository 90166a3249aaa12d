"""`notebooks/<paper>/README.md`: a paper's overview, and all its claims with figure, finding and verdict."""

import re

from . import files, findings, paths, registry, show
from .site import quotes
from .site import records as entries

NOTE = "<!-- Written by `overparam refresh`; the text comes from site/papers/{paper}.md. -->"
HEADINGS = {"experiment": "Experiments", "theorem": "Theorems", "ours": "Claims of our own"}
TOTALS = re.compile(r"(?<=by `overparam refresh` -->\n).*?(?=<!-- end of totals -->)", re.DOTALL)
PICTURE = 260  # pixels across
LEGEND = """## All claims

A verdict is that of the largest size that was run: *laptop* is minutes on two cores, *desk* is hours, *paper* is the
paper's own size. *As printed* says of a theorem whether it *stands*, or follows only once a misprint (*typo*), a
*constant* or an *exponent* is corrected, or whether its proof has a *gap* or it is *false*. Numbers behind ± are 95 %
intervals over draws of data and weights.
[How to read a verdict](../../site/verdicts.md)."""


def write(figures=None):
    """Write all overviews and the totals of the project's README; return the paths of those that have changed."""
    changed = []
    for path, text in texts(figures).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            files.write_atomically(path, text.encode())
            changed.append(path)
    return changed


def texts(figures=None):
    """{path: text} of all that is generated from the committed records; figures: the folder that has them."""
    loaded = entries.load(figures or paths.ROOT / "figures")
    papers = list(dict.fromkeys(entry.claim.paper for entry in loaded))
    made = {paths.NOTEBOOKS / paper / "README.md": _overview(paper, loaded) for paper in papers}
    readme = paths.ROOT / "README.md"
    totals = "\n" + _totals(papers, loaded) + "\n\n"
    made[readme] = TOTALS.sub(lambda _: totals, readme.read_text(encoding="utf-8"))
    return made


def _totals(papers, loaded):
    """A table: for each paper how many experiments and theorems have which verdict."""
    heads = ["paper", "experiments", "theorems, where measured", "theorems, as printed", "our own claims"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for paper in papers:
        own = [entry for entry in loaded if entry.claim.paper == paper]
        cells = [f"[{show.heading(paper)[0]}](notebooks/{paper}/README.md)"]
        for kind in HEADINGS:
            verdicts = [entry.verdict for entry in own if entry.claim.kind == kind]
            cells.append(show.counted(verdicts, show.COLOURS) or "–")
        printed = [entry.claim.printed for entry in own if entry.claim.printed]
        cells.insert(3, show.counted(printed, registry.PRINTED) or "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _overview(paper, loaded):
    """The README of one paper."""
    file = paths.SITE / "papers" / f"{paper}.md"
    text = file.read_text(encoding="utf-8") if file.exists() else f"# {paper}\n"
    heading, _, body = quotes.fill(f"papers/{paper}.md", text, _Quotes(loaded)).partition("\n")
    own = [entry for entry in loaded if entry.claim.paper == paper]
    parts = [heading, NOTE.format(paper=paper), body.strip(), LEGEND]
    for kind, title in HEADINGS.items():
        rows = [_row(entry) for entry in own if entry.claim.kind == kind]
        if rows:
            head = [f"### {title}", "", "| figure | claim and finding | verdict |", "|---|---|---|"]
            parts.append("\n".join([*head, *rows]))
    errata = paths.NOTEBOOKS / "errata" / f"{paper}.md"
    if errata.exists():
        parts.append(f"What in the paper does not follow as printed: [errata](../errata/{errata.name}).")
    return "\n\n".join(parts) + "\n"


def _row(entry):
    """A claim's row: its first figure, its title and finding, and its verdict, with links to page and reference."""
    claim, version = entry.claim, entry.best
    links = [f"[page]({claim.page.notebook.name})", f"[registered]({claim.page.file.name})"]
    picture, found = "", ""
    if version and version.record:
        folder = f"../../figures/{version.size}"
        executed = f"{folder}/{claim.page.id}/notebook.ipynb"
        first = next(iter(version.record["figures"]), None)
        if first:
            picture = f'[<img src="{folder}/{claim.id}/{first}" width="{PICTURE}" alt="">]({executed})'
        found = findings.opening(findings.finding(claim, version.record, version.folder))
        links.insert(0, f"[executed reference]({executed})")
    size = f" ({version.size})" if version and version.record else ""
    words = f"**{_cell(claim.title)}**<br>{_cell(found)}<br>{claim.source}" if found else f"**{_cell(claim.title)}**"
    verdict = f"**{entry.verdict}**{size}"
    if claim.printed:
        verdict += f"<br>as printed: {claim.printed}"
    return f"| {picture} | {words} | {verdict}<br>{'<br>'.join(links)} |"


def _cell(text):
    return text.replace("|", "\\|")


class _Quotes(quotes.Quotes):
    """What a paper's text quotes, with links and pictures for a reader of the repository."""

    def link(self, claim, words):
        """Words that lead to a claim's page."""
        notebook = registry.claim(claim).page.notebook
        return f"[{words}](../{notebook.parent.name}/{notebook.name})"

    def picture(self, claim, name, description, panel=None):
        """A figure that leads to the executed notebook; always all its panels."""
        version = self._entries[claim].best
        if not (version and f"{name}.png" in version.files):
            return ""
        folder = f"../../figures/{version.size}"
        executed = f"{folder}/{registry.claim(claim).page.id}/notebook.ipynb"
        return f"[![{description}]({folder}/{claim}/{name}.png)]({executed})"
