"""Copies of the notebooks to work in: what is edited, run and saved there is never the reference."""

import nbformat

from .. import paths
from ..record import checks
from . import runner, show
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
    originals, behind = paths.LAB / ".originals", []
    originals.mkdir(parents=True, exist_ok=True)
    for file in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        own, taken, content = paths.LAB / file.name, originals / file.name, file.read_bytes()
        if own.exists() and not (taken.exists() and own.read_bytes() == taken.read_bytes()):
            behind += [own] if not taken.exists() or taken.read_bytes() != content else []
        else:
            own.write_bytes(content)
            taken.write_bytes(content)
    cells = [nbformat.v4.new_markdown_cell(text, id=f"c{i}") for i, text in enumerate([ABOUT, *_contents()])]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=METADATA), paths.LAB / INDEX)
    return behind


def _contents():
    """Markdown for each paper: its claims as links to their notebooks, with their verdicts."""
    rows = {}
    for row in runner.overview():
        spec = checks.spec(row["claim"])
        word, _, size = show.verdict_of(row["profiles"])
        line = f"- [{with_formulas(spec.title)}]({spec.template}.ipynb): {word}{f' ({size})' * bool(size)}"
        rows.setdefault(spec.paper, []).append(line)
    texts = ["## " + ": ".join(filter(None, show.heading(paper))) + "\n\n" + "\n".join(rows[paper]) for paper in rows]
    known = {spec.template for spec in checks.registry().values()}
    others = [path.stem for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")) if path.stem not in known]
    return texts + ["## To try\n\n" + "\n".join(f"- [{stem}]({stem}.ipynb)" for stem in others)] * bool(others)
