"""Writes the sources of the site and hands them to Sphinx."""

import fcntl
import re
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image

from .. import errata, paths
from ..errors import RunFailed
from . import costs, mistakes, pages, quotes, records
from .lean import lean

THUMBNAIL = 400  # pixels across: twice the width on the page, for screens with fine pixels


def build(target=None, figures=None, jobs=2):
    """Build the site into `target`/html from the records in `figures`; return the folder of pages.

    No notebook runs and no network is used. It is built in `target`/new, and replaces the last one
    when it is whole; a second build waits. Raises RunFailed with Sphinx's words where it warns of
    anything.
    """
    target, figures = Path(target or paths.SITE / "_build"), Path(figures or paths.ROOT / "figures")
    html, new = target / "html", target / "new"
    target.mkdir(parents=True, exist_ok=True)
    with open(target / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(new, ignore_errors=True)
        write_sources(new / "source", figures)
        command = [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-j",
            str(jobs),
            "-b",
            "html",
            "-W",
            "--keep-going",
        ]
        command += ["-d", str(new / "doctrees"), str(new / "source"), str(new / "html")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            lines = "\n".join(done.stderr.strip().splitlines()[-20:])
            raise RunFailed(f"the site in {new / 'html'} has faults:\n{lines}")
        lean(new / "html")
        shutil.rmtree(html, ignore_errors=True)
        (new / "html").rename(html)
    return html


def write_sources(source, figures):
    """The hand-written pages, those made from the records.

    And the files to download, all below `source`.
    """
    shutil.copytree(
        paths.SITE, source, ignore=shutil.ignore_patterns("_build", "templates", "papers")
    )
    env, entries, texts = pages.environment(), records.load(figures), pages.papers()
    written = {"index.md": pages.dashboard(env, entries, texts)}
    for entry in entries:
        for version in entry.versions.values():
            name = f"{entry.page(version)}.ipynb"
            written[name] = pages.claim_page(env, entry, version, texts[entry.claim.paper])
            folder = source / "extra" / "records" / version.size / entry.claim.id
            folder.mkdir(parents=True)
            shutil.copyfile(version.path, folder / "notebook.ipynb")
            for file in version.files:
                shutil.copyfile(version.folder / file, folder / file)
        if entry.best and entry.best.figure:
            _thumbnail(entry.best, source / "extra" / "thumbnails" / f"{entry.claim.id}.png")
    names, links = {key: text[0] for key, text in texts.items()}, mistakes.OnSite(entries)
    found = [errata.load(paper) for paper in errata.papers()]
    verdicts = {entry.claim.id: entry.verdict for entry in entries}
    below = {
        "errata": mistakes.index(found, links, names),
        "corrected": mistakes.corrected(verdicts, links, names),
    }
    for name, text in below.items():
        head = (paths.SITE / f"{name}.md").read_text(encoding="utf-8")
        written[f"{name}.md"] = f"{head}\n{text}"
    below_errata = [f"{names[paper.paper]} <errata/{paper.paper}>" for paper in found]
    written["errata.md"] += pages.toctree("Errata", below_errata)
    written |= {
        f"errata/{paper.paper}.md": pages.errata_page(paper, names, links) for paper in found
    }
    written |= {f"{name}.md": quotes.page(name, quotes.Quotes(entries)) for name in quotes.PAGES}
    written |= {
        f"papers/{key}.md": pages.paper_page(env, key, text, entries) for key, text in texts.items()
    }
    written |= {path.name: pages.explorer_page(env, path) for path in pages.explorers()}
    written |= {f"reference/{name}.md": text for name, text in pages.reference().items()}
    (source / "costs").mkdir()
    for picture in costs.pictures():
        shutil.copyfile(picture, source / "costs" / picture.name)
    _panels(source / "extra" / "panels", "".join(written.values()), entries)
    for name, text in written.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")


def _panels(folder, text, entries):
    """The panels that a text of the site shows alone, cut out of their figures."""
    known = {entry.claim.id: entry.best for entry in entries}
    shown = set(re.findall(r'src="[./]*panels/([\w-]+)/([\w-]+)-(\d+)\.png"', text))
    for claim, name, panel in sorted(shown):
        picture = _panel(known[claim], f"{name}.png", int(panel))
        path = folder / claim / f"{name}-{panel}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.quantize(256).save(path, optimize=True)


def _panel(version, figure, number=1):
    with Image.open(version.folder / figure) as opened:
        return opened.crop(version.picture(figure, number)[1]).convert("RGB")


def _thumbnail(version, path):
    """The first panel of the first figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = _panel(version, version.figure)
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    picture.quantize(64).save(path, optimize=True)
