"""Copies of the notebooks to work in: what is edited, run and saved there is never the reference."""

import nbformat

from . import paths, records, registry, show
from .site.markup import with_formulas

INDEX = "index.ipynb"
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}  # else JupyterLab asks
ABOUT = """# Notebooks

These are copies in `lab/`: change what you like, run all cells, save. The reference is what `notebooks/` holds, and
stays as it is. The first cell of code has the parameters; with other values the verdict says what was changed, and
has the reference's values beside yours. What you run here is kept in `lab/figures/`.

To get a notebook back, delete its copy and start `make lab` again. A copy that you have not changed follows its
original."""


def prepare():
    """Bring the copies in `lab/` up to date, and their index; return the edited ones whose original has changed since.

    A copy that differs from what was copied is somebody's work, and is left alone.
    """
    behind = []
    for file in sorted(paths.NOTEBOOKS.rglob("*.ipynb")):
        name = file.relative_to(paths.NOTEBOOKS)
        if ".ipynb_checkpoints" in name.parts:
            continue
        own, taken, content = paths.LAB / name, paths.LAB / ".originals" / name, file.read_bytes()
        edited = own.exists() and not (taken.exists() and own.read_bytes() == taken.read_bytes())
        if not edited:
            for copy in (own, taken):
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
        elif not taken.exists() or taken.read_bytes() != content:
            behind.append(own)
    cells = [nbformat.v4.new_markdown_cell(text, id=f"c{i}") for i, text in enumerate([ABOUT, *_contents()])]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=METADATA), paths.LAB / INDEX)
    return behind


def _contents():
    """Markdown for each paper: its claims as links to their notebooks, with their verdicts."""
    rows = {}
    for row in records.overview():
        claim = registry.claim(row["claim"])
        word, _, size = show.verdict_of(row["sizes"])
        place = claim.page.notebook.relative_to(paths.NOTEBOOKS)
        line = f"- [{with_formulas(claim.title)}]({place}): {word}{f' ({size})' * bool(size)}"
        rows.setdefault(claim.paper, []).append(line)
    texts = []
    for paper, lines in rows.items():
        heading = ": ".join(filter(None, show.heading(paper)))
        texts.append("\n".join([f"## {heading}", "", *lines]))
    others = [f"- [{path.stem}]({path.name})" for path in sorted(paths.NOTEBOOKS.glob("*.ipynb"))]
    return [*texts, "\n".join(["## To try", "", *others])] if others else texts
