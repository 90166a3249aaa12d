"""The site's pages as MyST sources: notebooks with their verdict around them, the dashboard, papers, the library."""

import json
import re
import textwrap

import jinja2

from ... import paths
from ...errors import OverparamError
from ...record import checks, render
from ...record.pages import merged
from .. import runner
from . import records

LIBRARY = ("models", "training", "theory", "bounds", "data", "record")  # a page of the reference for each folder
_SPECIAL = re.compile(r"([!-/:-@\[-`{-~])")  # ASCII punctuation, which a backslash makes literal in Markdown
_DIRECTIVE = re.compile(r"(`{3,}|~{3,})(?=[ \t]*\{)")
_OUTPUTS = ("image/png", "text/markdown", "text/plain")


def environment():
    """Templates that escape whatever is inserted; titles and wordings are data."""
    loader = jinja2.FileSystemLoader(paths.SITE / "templates")
    blocks = {"trim_blocks": True, "lstrip_blocks": True}
    env = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, **blocks)
    env.filters.update(number=render.number, measured=render.measured, required=render.required, state=render.outcome)
    env.filters.update(plain=plain, sentence=render.sentence)
    env.filters["slug"] = lambda words: words.replace(" ", "-")
    env.globals.update(TAGS=checks.TAGS, VERDICTS=(*checks.VERDICTS, records.UNRUN))
    return env


def plain(text):
    """A sentence without its Markdown, and with the names of LaTeX's symbols, for tables."""
    return re.sub(r"[$`\\]|\*\*", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text))


def literal(text):
    """Text as Markdown that shows just these characters, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def raw(html):
    """An HTML fragment as a MyST directive, in a fence longer than any in it: templates do not escape backticks."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", html)), default=0))
    return f"{fence}{{raw}} html\n{html}\n{fence}\n"


def inert(text):
    """Markdown in which directives, which could insert HTML or files, are shown as code."""
    return _DIRECTIVE.sub(r"\1text ", text)


def papers():
    """{key: (short name, full title, text)} of the papers that have registered claims, from `site/papers/`."""
    found = {}
    for key in dict.fromkeys(spec.paper for spec in checks.registry().values()):
        file = paths.SITE / "papers" / f"{key}.md"
        if not file.exists():
            raise OverparamError(f"{file} is missing: the site needs a text for every paper that has claims")
        heading, _, text = file.read_text(encoding="utf-8").partition("\n")
        title = heading.removeprefix("# ")
        found[key] = (title.partition(":")[0], title, text)
    return found


def executed(spec, version):
    """A version's executed notebook, with the present one's prose and its pictures, which its record holds."""
    page = merged(records.read_notebook(spec.path), records.read_notebook(version.notebook))
    return runner.with_pictures(page, version.notebook.parent)


def claim_page(env, entry, version, notebook, paper):
    """A version's executed notebook, as a notebook with the verdict before and the record after its cells."""
    data = dict.fromkeys((d["name"], d["stand_in"]) for d in (version.record or {"data": []})["data"])
    context = {"entry": entry, "spec": entry.spec, "version": version, "record": version.record, "paper": paper}
    cells = [_own_cell(cell, entry.spec.title, not entry.summary) for cell in notebook["cells"]]
    for cell in cells:
        if cell["cell_type"] == "markdown":  # the notebook's own title becomes the first section
            cell["source"] = re.sub(r"^# ", "## ", cell["source"], count=1)
            break
    title = f"# {literal(entry.spec.title)}\n\n"
    summary = "\n\n".join(map(inert, (version.record or {}).get("summary") or [])) + "\n\n"
    head = _markdown("head", title + summary + raw(env.get_template("claim_head.html").render(context)))
    foot = _markdown("foot", "## Record\n\n" + raw(env.get_template("claim_foot.html").render(context, data=data)))
    return _page(notebook, [head, *cells, foot], {} if version is entry.best else {"orphan": True})


def explorers():
    """Paths of the notebooks that serve no claim."""
    stems = {spec.template for spec in checks.registry().values()}
    return [path for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")) if path.stem not in stems]


def explorer_page(path):
    """Such a notebook as it is stored, its code folded away."""
    notebook = records.read_notebook(path)
    return _page(notebook, [_own_cell(cell, path.stem, True) for cell in notebook["cells"]], {})


def _page(notebook, cells, metadata):
    """A notebook's JSON; of its metadata only the language counts: others would change how, or that, it is run."""
    kept = {key: notebook["metadata"][key] for key in ("kernelspec", "language_info") if key in notebook["metadata"]}
    return json.dumps({**notebook, "metadata": kept | metadata, "cells": cells}, ensure_ascii=False)


def _markdown(name, source):
    return {"cell_type": "markdown", "id": f"site-{name}", "metadata": {}, "source": source}


def _own_cell(cell, title, folded):
    """The cell with a text for its figure, folded code, and nothing that acts on the page."""
    if cell["cell_type"] != "code":
        return {**cell, "metadata": {}, "source": inert("".join(cell["source"]))}
    tags = cell["metadata"].get("tags", [])
    folded = folded and not {"parameters", "injected-parameters"}.intersection(tags)
    names = re.findall(r"\w+\.figure\(\w+, [\"']([\w-]+)", "".join(cell["source"]))
    alt = " ".join(f"Figure {', '.join(names)}: {title}".replace("Figure :", "Figure:").split())
    metadata = {"tags": [*tags, "hide-input"] if folded else tags, "mystnb": {"image": {"alt": alt}}}
    return {**cell, "metadata": metadata, "outputs": [_shown(output) for output in cell["outputs"]]}


def _shown(output):
    if "data" not in output:
        return output
    data = {kind: value for kind, value in output["data"].items() if kind in _OUTPUTS}
    if "text/markdown" in data:  # the checks, of a report, are at the head of the page
        text, *checks = re.split(r"\n\n(?=\| what was asked|<details>)", "".join(data["text/markdown"]), maxsplit=1)
        data["text/markdown"] = inert(text) + "\n\n*All checks: in the table at the top of the page.*" * bool(checks)
    return {**output, "data": data}


def dashboard(env, entries, texts):
    """The first page: all claims in one table, totals per paper, and the site's tree of pages."""
    totals = {key: dict.fromkeys(env.globals["VERDICTS"], 0) for key in texts}
    for entry in entries:
        totals[entry.spec.paper][entry.verdict] += 1
    html = env.get_template("dashboard.html").render(entries=entries, papers=texts, totals=totals)
    text = (paths.SITE / "index.md").read_text(encoding="utf-8")
    tree = _toctree("Papers", [f"{text[0]} <papers/{key}>" for key, text in texts.items()])
    tree += _toctree("Reading", ["verdicts", "glossary", *(path.stem for path in explorers())])
    tree += _toctree("Library", [f"{folder} <reference/{folder}>" for folder in LIBRARY])
    return f"{text}\n{raw(html)}\n{tree}"


def _toctree(caption, pages):
    return "\n".join(["```{toctree}", ":hidden:", ":titlesonly:", f":caption: {caption}", "", *pages, "```\n\n"])


def paper_page(env, key, text, entries):
    """What a paper claims, its statements and where they are computed, what was not reproduced, and its errata."""
    _, title, body = text
    own = [entry for entry in entries if entry.spec.paper == key]
    body = quoting(env, f"papers/{key}.md", body, {entry.spec.id: entry for entry in entries})
    table = env.get_template("paper.html").render(entries=own)
    open_ones = [e for e in own if e.verdict not in ("reproduced", records.UNRUN)]
    parts = [
        f"# {title}\n{body}\n\n## Claims and notebooks\n\n{raw(table)}",
        "## What was not reproduced, and why\n",
        *(_shortfall(env, entry) for entry in open_ones),
        *([] if open_ones else ["Every claim that was run at a size that can decide is reproduced.\n"]),
        _errata(key, entries),
        _toctree("Claims", [f"{e.spec.id.removeprefix(key + '-')} </{e.page()}>" for e in own if e.best]),
    ]
    return "\n".join(parts)


def quoting(env, where, text, entries):
    """A hand-written text with what it takes from the records; entries: {claim id: Entry}.

    `{{ value(claim, check) }}` is what was measured, `{{ verdict(claim) }}` a word, `{{ link(claim, words) }}` a link,
    and `{{ picture(claim, name, description) }}` a figure that leads to its page. Raises OverparamError otherwise.
    """

    def value(claim, check):
        names = [row.name for row in entries[claim].spec.checks]
        version = entries[claim].best
        rows = version.record["checks"] if version and version.record else []
        measured = {name: records.UNRUN for name in names} | {row["name"]: render.measured(row) for row in rows}
        return measured[check]

    def link(claim, words):
        page = entries[claim].page()
        return f"[{words}](/{page})" if page else words

    def picture(claim, name, description):
        return raw(env.get_template("picture.html").render(entry=entries[claim], name=name, alt=description))

    names = {"value": value, "verdict": lambda claim: entries[claim].verdict, "link": link, "picture": picture}
    try:
        return env.overlay(autoescape=False).from_string(text).render(names)
    except (LookupError, jinja2.TemplateError) as error:
        raise OverparamError(f"{where} asks for what is not there: {error}") from error


def _shortfall(env, entry):
    """A claim that is not fully reproduced: the deciding checks that fail, and the notebook's own words on them."""
    rows = [c for c in entry.best.record["checks"] if c["applies"] and c["tag"] in "RNC"]
    failing = [c for c in rows if (render.outcome(c) == "holds") == (c["tag"] == "C")]
    html = env.get_template("shortfall.html").render(entry=entry, failing=failing)
    return f"### {literal(entry.spec.title)}\n\n{raw(html)}\n{_reason(entry.best.notebook)}\n"


def _reason(notebook):
    """The paragraph "How far from the paper" of a notebook's last cell."""
    last = "".join("".join(cell["source"]) for cell in records.read_notebook(notebook)["cells"][-1:])
    found = re.search(r"\*\*How far from the paper\W*\*\*(.*?)(?=\n\s*\n\*\*|\Z)", last, re.DOTALL)
    return inert(textwrap.dedent(found[1]).strip()) if found else ""


def _errata(key, entries):
    file = paths.NOTEBOOKS / "errata" / f"{key}.md"
    if not file.exists():
        return ""
    _, _, table = file.read_text(encoding="utf-8").partition("\n")
    pages = {e.spec.id: e.page() for e in entries if e.best}
    link = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, sorted(pages, key=len, reverse=True)))})(?![\w-])")
    return "## Errata\n" + link.sub(lambda m: f"[{m[1]}](/{pages[m[1]]})", table) if pages else f"## Errata\n{table}"


def reference():
    """{folder: MyST text} of the library's reference, for autodoc: each folder's modules with all that is public."""
    package = paths.ROOT / "lib" / "overparam"
    texts = {}
    for folder in LIBRARY:
        parts = [f"# overparam.{folder}\n"]
        for file in sorted((package / folder).rglob("*.py")):
            name = ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
            if not file.stem.startswith("_") or file.stem == "__init__":
                title = f"## {name.partition(f'.{folder}.')[2]}\n\n" if name.count(".") > 1 else ""
                options = "   :members:\n   :ignore-module-all:"
                parts.append(f"{title}```{{eval-rst}}\n.. automodule:: {name}\n{options}\n```\n")
        texts[folder] = "\n".join(parts)
    return texts
