"""Writes the sources of the site and hands them to Sphinx."""

import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image

from ... import paths
from ...errors import RunFailed
from . import errata, pages, pictures, quotes, records

THUMBNAIL = 400  # pixels across: twice the width on the page, for screens with fine pixels


def build(target=None, figures=None, jobs=2):
    """Build the site into `target`/html from the records in `figures`; return the folder of pages.

    No notebook runs and no network is used. It is built in `target`/new, and replaces the last one when it is whole; a
    second build waits. Raises RunFailed with Sphinx's words where it warns of anything.
    """
    target, figures = Path(target or paths.SITE / "_build"), Path(figures or paths.ROOT / "figures")
    html, new, old = target / "html", target / "new", target / "old"
    target.mkdir(parents=True, exist_ok=True)
    with open(target / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(new, ignore_errors=True)
        write_sources(new / "source", figures)
        command = [sys.executable, "-m", "sphinx", "-q", "-j", str(jobs), "-b", "html", "-W", "--keep-going"]
        command += ["-d", str(new / "doctrees"), str(new / "source"), str(new / "html")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            lines = "\n".join(done.stderr.strip().splitlines()[-20:])
            raise RunFailed(f"the site in {new / 'html'} has faults:\n{lines}")
        shutil.rmtree(old, ignore_errors=True)
        if html.exists():
            html.rename(old)
        (new / "html").rename(html)
        shutil.rmtree(old, ignore_errors=True)
    return html


def write_sources(source, figures):
    """The hand-written pages, those made from the records, and the files to download, all below `source`."""
    shutil.copytree(paths.SITE, source, ignore=shutil.ignore_patterns("_build", "templates", "papers"))
    env, entries, texts = pages.environment(), records.load(figures), pages.papers()
    for entry in entries:
        for version in entry.versions.values():
            with records.naming(version.folder / "result.json" if version.folder else version.notebook):
                _write_claim(source, env, entry, version, texts[entry.spec.paper])
    _write(source / "index.md", pages.dashboard(env, entries, texts))
    _write(source / "errata.md", errata.page(entries, texts))
    for name in quotes.PAGES:
        _write(source / f"{name}.md", quotes.page(env, name, entries))
    for key, text in texts.items():
        _write(source / "papers" / f"{key}.md", pages.paper_page(env, key, text, entries))
    for path in pages.explorers():
        _write(source / path.name, pages.explorer_page(env, path))
    for name, text in pages.reference().items():
        _write(source / "reference" / f"{name}.md", text)


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _write_claim(source, env, entry, version, paper):
    """A version's page and its files to download; of the best version's first figure its first panel."""
    notebook = pages.executed(entry.spec, version)
    _write(source / f"{entry.page(version)}.ipynb", pages.claim_page(env, entry, version, notebook, paper))
    folder = source / "extra" / "records" / version.profile / entry.spec.id
    _write(folder / "notebook.ipynb", json.dumps(notebook, ensure_ascii=False))
    for name in version.files:
        shutil.copyfile(version.folder / name, folder / name)
    first = pages.first_figure(version, notebook)
    if version is entry.best and first:
        figure, small = folder / first, source / "extra" / "thumbnails" / f"{entry.spec.id}.png"
        small.parent.mkdir(exist_ok=True)
        with records.naming(figure), Image.open(figure) as opened:
            picture = opened.crop(pictures.panel(opened, 0)).convert("RGB")
            picture.thumbnail((THUMBNAIL, THUMBNAIL))
            picture.quantize(64).save(small, optimize=True)
