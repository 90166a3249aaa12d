"""Copies of the notebooks to work in.

What is edited, run and saved there is never the reference.
"""

import shutil
import sys

import nbformat

from . import paths, records, registry, show
from .markup import with_formulas

INDEX = "index.ipynb"
KERNEL = {
    "display_name": "Python 3",
    "language": "python",
    "name": "python3",
}  # without it JupyterLab asks
ABOUT = """# Notebooks

These are copies in `lab/`: change what you like, run all cells, save. The reference is what
`notebooks/` holds, and stays as it is. The first cell of code has the parameters; with other values
the verdict says what was changed, and has the reference's values beside yours. What you run here is
kept in `lab/figures/`.

To get a notebook back, delete its copy and start `make lab` again. A copy that you have not changed
follows its original."""

ELSEWHERE = (
    "Open one of the addresses that begin with http://, as they are printed below. Where JupyterLab"
    " runs on another machine than your browser, first start on yours:\n"
    "  ssh -L 8888:localhost:8888 NAME-OF-THE-OTHER-MACHINE\n"
    "with the number that the address has after localhost."
)


def prepare():
    """Bring the copies in `lab/` up to date, and their index.

    Return the edited ones whose original has changed since.

    A copy that differs from what was copied is somebody's work, and is left alone.
    """
    behind = []
    for original in sorted(paths.NOTEBOOKS.rglob("*.ipynb")):
        name = original.relative_to(paths.NOTEBOOKS)
        if ".ipynb_checkpoints" in name.parts:
            continue
        own, taken = paths.LAB / name, paths.LAB / ".originals" / name
        if not own.exists() or _same(own, taken):
            for copy in (own, taken):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(original, copy)
        elif not _same(original, taken):
            behind.append(own)
    cells = [nbformat.v4.new_markdown_cell(text) for text in [ABOUT, *_contents()]]
    index = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    nbformat.write(index, paths.LAB / INDEX)
    return behind


def command(more):
    """The command that starts JupyterLab. Each address that it prints opens the index.

    more: further arguments for JupyterLab.
    """
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={paths.LAB}",
        f"--LabApp.default_url=/lab/tree/{INDEX}",
        *more,
    ]


def _same(file, other):
    return other.exists() and file.read_bytes() == other.read_bytes()


def _contents():
    """Markdown for each paper: its claims as links to their notebooks, with their verdicts."""
    lists = {}
    for row in records.overview():
        claim = registry.claim(row["claim"])
        word, _, size = show.verdict_of(row)
        place = claim.page.notebook.relative_to(paths.NOTEBOOKS)
        verdict = f"{word} ({size})" if size else word
        lists.setdefault(claim.paper, []).append(
            f"- [{with_formulas(claim.title)}]({place}): {verdict}"
        )
    texts = [
        "\n".join([f"## {show.about_paper(paper)[1]}", "", *lines])
        for paper, lines in lists.items()
    ]
    others = [f"- [{path.stem}]({path.name})" for path in sorted(paths.NOTEBOOKS.glob("*.ipynb"))]
    return [*texts, "\n".join(["## To try", "", *others])] if others else texts
