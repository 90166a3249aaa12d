"""The site's pages as MyST sources.

Notebooks with their verdict around them, the dashboard, papers, the library.
"""

import ast
import contextlib
import json
import pkgutil
import re
import types
from pathlib import Path

import jinja2

from .. import errata, findings, parameters, paths, references, registry, render, rule, show
from ..markup import inert, plain, raw, typeset, with_formulas
from . import mistakes, quotes

LIBRARY = tuple(
    f"overparam/{name}" for name in ("models", "training", "theory", "bounds", "data", "plots.py")
)
LIBRARY += ("ledger/claim.py", "ledger/rule.py")  # a page of the reference for each
WORDS = [
    word for place in zip(*rule.VERDICTS.values(), strict=True) for word in place
]  # the best of each kind first
WORDS += [rule.NOT_TESTED, show.NOT_RUN]
_LINKED = tuple(f"overparam.{name}" for name in ("bounds", "theory", "models", "training"))
_NOTEBOOK = re.compile(
    r"\]\([./]*(?:notebooks/)?(?:(\w+)/)?([\w-]+\.ipynb)\)"
)  # the target of a link
_OUTPUTS = ("image/png", "text/markdown", "text/plain")


def environment():
    """Templates that escape whatever is inserted; titles and wordings are data."""
    loader = jinja2.FileSystemLoader(paths.SITE / "templates")
    blocks = {"trim_blocks": True, "lstrip_blocks": True}
    env = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, **blocks
    )
    env.filters.update(number=render.number, typeset=typeset, spoken=findings.measured)
    env.filters["slug"] = lambda words: words.replace(" ", "-")
    env.globals.update(
        KINDS=show.KINDS,
        VERDICTS=rule.VERDICTS,
        WORDS=WORDS,
        PRINTED=registry.PRINTED,
        render=render,
    )
    return env


def papers():
    """{key: (short name, heading, text)} of the papers that have claims."""
    keys = dict.fromkeys(claim.paper for claim in registry.registry().values())
    return {key: show.about_paper(key) for key in keys}


def claim_page(env, entry, version, paper):
    """A version's executed notebook as one with finding and verdict before its cells.

    And the record after them.
    """
    claim, notebook = entry.claim, json.loads(version.path.read_text(encoding="utf-8"))
    context = {
        "entry": entry,
        "claim": claim,
        "version": version,
        "record": version.record,
        "paper": paper,
    }
    head, foot = (
        raw(env.get_template(f"claim_{part}.html").render(context)) for part in ("head", "foot")
    )
    told = _told(claim, version, paper)
    head = (
        f"```{{title}} {told}\n```\n\n# {with_formulas(claim.title)}\n\n{head}\n\n## The notebook"
    )
    foot = f"{from_library(notebook)}\n\n## Record\n\n{foot}"
    cells = [_own_cell(cell, plain(claim.title)) for cell in notebook["cells"]]
    prose = [cell for cell in cells if cell["cell_type"] == "markdown"]
    for cell in prose:
        cell["source"] = _NOTEBOOK.sub(lambda found: _target(found, claim.paper), cell["source"])
    paragraphs = prose[0]["source"].split("\n\n")  # title and finding are those of the page
    prose[0]["source"] = "\n\n".join(
        text for text in paragraphs if not text.startswith(("# ", references.IN_SHORT))
    )
    cells = [_markdown("head", head), *cells, _markdown("foot", foot)]
    return _page(notebook, cells, {} if version is entry.best else {"orphan": True})


def _told(claim, version, paper):
    """The title of a claim's page in a browser and among the results of a search."""
    place = claim.source.partition(";")[0]
    place = re.sub(r"\bFig(s?)\. ", r"Figure\1 ", place)
    where = paper[0] if claim.kind == "ours" else f"{paper[0]}, {place}"
    verdict = f"{version.verdict} at {version.size} size"
    return " ".join(plain(f"{where}: {claim.title} ({verdict})").split())


def _target(found, paper):
    """Where a link of a paper's page to a notebook leads on the site."""
    if found[2] in [path.name for path in explorers()]:
        return f"](/{Path(found[2]).stem})"
    notebook = paths.NOTEBOOKS / (found[1] or paper) / found[2]
    pages = [
        claim.page.id for claim in registry.registry().values() if claim.page.notebook == notebook
    ]
    return f"](/claims/{pages[0]})" if pages else found[0]


def from_library(notebook):
    """A line that leads to the formulas, nets and loops of the library that a notebook uses."""
    code, links = _code(notebook), {}
    statements = ast.parse(code).body
    imports = [
        node
        for node in statements
        if isinstance(node, ast.ImportFrom) and node.module.startswith(_LINKED)
    ]
    for module, name in [(node.module, name) for node in imports for name in node.names]:
        place = f"{module}.{name.name}"
        parts = re.findall(rf"\b{name.asname or name.name}\.(\w+)", code)
        for used in [place, *(f"{place}.{part}" for part in parts)]:
            with contextlib.suppress(
                ImportError, AttributeError
            ):  # an old record may use what is no longer there
                thing = pkgutil.resolve_name(used)
                if isinstance(thing, type | types.FunctionType):
                    links[thing.__name__] = f"{thing.__module__}.{thing.__qualname__}"
    found = [f"{{py:obj}}`{name} <{links[name]}>`" for name in sorted(links)]
    return f"**From the library:** {', '.join(found)}." if found else ""


def explorers():
    """Paths of the notebooks that serve no claim."""
    return sorted(paths.NOTEBOOKS.glob("*.ipynb"))


def explorer_page(env, path):
    """Such a notebook as it is stored, its code folded away.

    In place of its sliders, and below its first cell, those that need no kernel.
    """
    notebook, cells = json.loads(path.read_text(encoding="utf-8")), []
    for cell in notebook["cells"]:
        if "sliders" in _tags(cell):
            sliders = env.get_template("explorer.html").render(_explored(path, notebook))
            cells.insert(1, _markdown("sliders", raw(sliders)))
        else:
            own = _own_cell(cell, path.stem, [] if "parameters" in _tags(cell) else ["hide-input"])
            if own["cell_type"] == "markdown":
                linked = _NOTEBOOK.sub(lambda found: _target(found, ""), own["source"])
                own["source"] = linked.replace("](errata/README.md)", "](/corrected.md)")
            cells.append(own)
    return _page(notebook, cells, {})


def _explored(path, notebook):
    """Where a notebook's sliders begin and end.

    And the counts that it shows for scale, all from its code.
    """
    body = ast.parse(_code(notebook)).body
    assigned = {
        ast.unparse(node.targets[0]): node.value for node in body if isinstance(node, ast.Assign)
    }
    start, comments, sliders = parameters.notebook_parameters(path), parameters.comments(path), {}
    for name, made in zip(assigned["sliders"].keys, assigned["sliders"].values, strict=True):
        words = {word.arg: ast.literal_eval(word.value) for word in made.keywords}
        words |= {
            "log": "Log" in ast.unparse(made.func),
            "start": start[name.value],
            "comment": comments[name.value],
        }
        sliders[name.value] = words
    return {"sliders": sliders, "scale": ast.literal_eval(assigned["SCALE"])}


def _code(notebook):
    return "\n".join(
        "".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"
    )


def _tags(cell):
    return cell["metadata"].get("tags", [])


def _page(notebook, cells, metadata):
    """A notebook's JSON; of its metadata only the language counts.

    Others would change how, or that, it is run.
    """
    kept = {
        key: notebook["metadata"][key]
        for key in ("kernelspec", "language_info")
        if key in notebook["metadata"]
    }
    return json.dumps({**notebook, "metadata": kept | metadata, "cells": cells}, ensure_ascii=False)


def _markdown(name, source):
    return {"cell_type": "markdown", "id": f"site-{name}", "metadata": {}, "source": source}


def _own_cell(cell, title, tags=()):
    """The cell with a text for its figure, and nothing that acts on the page."""
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return {**cell, "metadata": {}, "source": inert(source)}
    metadata = {"tags": [*_tags(cell), *tags], "mystnb": {"image": {"alt": f"Figure: {title}"}}}
    return {
        **cell,
        "source": source,
        "metadata": metadata,
        "outputs": [_shown(output) for output in cell["outputs"]],
    }


def _shown(output):
    if "data" not in output:
        return output
    ours = output["metadata"].get("ledger", {})
    kinds = ("text/html",) if "slider" in ours else _OUTPUTS
    data = {kind: value for kind, value in output["data"].items() if kind in kinds}
    if "text/markdown" in data:
        text = inert("".join(data["text/markdown"]))
        # the table of a report is at the head of the page
        data["text/markdown"] = text.partition("\n\n")[0] if "report" in ours else text
    return {**output, "data": data}


def dashboard(env, entries, texts):
    """The first page: all claims in one table, totals per kind and paper.

    And the site's tree of pages.
    """
    html = env.get_template("dashboard.html").render(entries=entries, papers=texts)
    tree = toctree("Start", ["start", "findings", "corrected", "errata"])
    tree += toctree("Papers", [f"{text[0]} <papers/{key}>" for key, text in texts.items()])
    tree += toctree(
        "Reading", ["verdicts", "glossary", "running", "cost", *(path.stem for path in explorers())]
    )
    tree += toctree("Library", [f"{name} <reference/{name}>" for name in reference()])
    return f"{quotes.page('index', quotes.Quotes(entries))}\n{raw(html)}\n{tree}"


def toctree(caption, pages):
    """A hidden part of the site's tree of pages."""
    return "\n".join(
        ["```{toctree}", ":hidden:", ":titlesonly:", f":caption: {caption}", "", *pages, "```\n\n"]
    )


def paper_page(env, key, text, entries):
    """What a paper claims, all its claims and what was found, those that do not hold.

    And its errata.
    """
    own = [entry for entry in entries if entry.claim.paper == key]
    short = [
        entry
        for entry in own
        if entry.verdict not in (rule.VERDICTS[entry.claim.kind][0], show.NOT_RUN)
    ]
    template = env.get_template("shortfall.html")
    wrong = []
    if key in errata.papers():
        found = errata.load(key)
        wrong = ["## Errata", mistakes.counted([found])]
        wrong += [mistakes.titles(found, mistakes.OnSite(entries))]
        wrong += [f"[All errata](/errata/{key}.md)"]
    _, heading, written = text
    parts = [
        f"# {heading}\n{quotes.fill(f'papers/{key}.md', written, quotes.Quotes(entries, '../'))}",
        f"## All claims\n\n{raw(env.get_template('paper.html').render(entries=own))}",
        "## What does not hold, and why\n" if short else "",
        *(
            f"### {with_formulas(entry.claim.title)}\n\n{raw(template.render(entry=entry))}"
            for entry in short
        ),
        *wrong,
        toctree("Claims", [f"{entry.claim.slug} </{entry.page()}>" for entry in own if entry.best]),
    ]
    return "\n\n".join(parts)


def errata_page(paper, names, links):
    """The mistakes of one paper. names: {paper: short name}."""
    head = f"# {names[paper.paper]}: the mistakes that we found\n\nText read: {paper.version}.\n\n"
    return f"{head}{mistakes.chapter(paper, links)}"


def reference():
    """{name: MyST text} of the library's reference, for autodoc.

    Modules with all that is public.
    """
    texts, lib = {}, paths.ROOT / "lib"
    for place in LIBRARY:
        path = lib / place
        parts = [f"# {place.removesuffix('.py').replace('/', '.')}\n"]
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            name = ".".join(file.relative_to(lib).with_suffix("").parts).removesuffix(".__init__")
            if not file.stem.startswith("_") or file.stem == "__init__":
                title = (
                    f"## {name.partition(f'.{path.stem}.')[2]}\n\n" if name.count(".") > 1 else ""
                )
                options = "   :members:\n   :ignore-module-all:"
                parts.append(f"{title}```{{eval-rst}}\n.. automodule:: {name}\n{options}\n```\n")
        texts[path.stem] = "\n".join(parts)
    return texts
