"""The site's pages as MyST sources: notebooks with their verdict around them, the dashboard, papers, the library."""

import ast
import contextlib
import fnmatch
import json
import pkgutil
import re
import textwrap
import types

import jinja2

from ... import paths
from ...errors import OverparamError
from ...record import checks, parameters, render
from ...record.pages import merged
from .. import runner
from . import errata, pictures, quotes, records
from .markup import inert, plain, raw, typeset, with_formulas

LIBRARY = ("models", "training", "theory", "bounds", "data", "record")  # a page of the reference for each folder
FORMULAS = ("bounds", "theory", "models", "training")  # of these, what a page uses is linked at its end
_OUTPUTS = ("image/png", "text/markdown", "text/plain")


def environment():
    """Templates that escape whatever is inserted; titles and wordings are data."""
    loader = jinja2.FileSystemLoader(paths.SITE / "templates")
    blocks = {"trim_blocks": True, "lstrip_blocks": True}
    env = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, **blocks)
    env.filters.update(number=render.number, measured=render.measured, required=render.required, state=render.outcome)
    env.filters.update(typeset=typeset, sentence=render.sentence)
    env.filters["slug"] = lambda words: words.replace(" ", "-")
    env.globals.update(TAGS=checks.TAGS, VERDICTS=(*checks.VERDICTS, records.UNRUN))
    return env


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
    given = as_run(notebook["cells"], (version.record or {}).get("parameters", {}))
    cells = [_own_cell(cell, plain(entry.spec.title), not entry.summary) for cell in given]
    first = next(cell for cell in cells if cell["cell_type"] == "markdown")
    found, _, first["source"] = first["source"].removeprefix("# ").partition("\n")
    ours = entry.spec.paper == "synthesis" or entry.spec.kind == "extension"
    hit = " ".join(plain(f"{version.verdict.capitalize()} at {version.profile} size: {entry.spec.title}").split())
    whose = "Put to the test" if ours else "The paper claims"
    title = f"```{{title}} {hit}\n```\n\n# {whose}: {with_formulas(entry.spec.title)}"
    lead = raw(env.get_template("claim_lead.html").render(context))
    summary = (version.record or {}).get("summary") or []
    if figure := first_figure(version, notebook):
        context |= {"figure": figure, "width": pictures.width(version.folder / figure)}
    parts = [title, lead, f"**We find: {inert(found)}.**", *map(inert, summary)]
    head = _markdown("head", "\n\n".join(parts) + "\n\n" + raw(env.get_template("claim_head.html").render(context)))
    record = "## Record\n\n" + raw(env.get_template("claim_foot.html").render(context, data=data))
    foot = _markdown("foot", f"{from_library(notebook)}\n\n{record}")
    return _page(notebook, [head, *cells, foot], {} if version is entry.best else {"orphan": True})


def from_library(notebook):
    """A line that leads to the formulas, nets and loops of the library that a notebook uses."""
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    try:
        nodes = list(ast.walk(ast.parse("\n".join(cells))))
    except SyntaxError:  # a record's notebook is data
        return ""
    modules, used = {}, []
    for node in nodes:
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").partition("overparam.")[2].split(".")[0] in FORMULAS
        ):
            for name in node.names:
                used.append(f"{node.module}.{name.name}")
                modules[name.asname or name.name] = used[-1]
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            used.append(f"{modules[node.value.id]}.{node.attr}")
    links = {}
    for place in used:
        with contextlib.suppress(ImportError, AttributeError):  # an old record may use what is no longer there
            thing = pkgutil.resolve_name(place)
            if isinstance(thing, type | types.FunctionType):
                links[thing.__name__] = f"{{py:obj}}`{thing.__name__} <{thing.__module__}.{thing.__qualname__}>`"
    return f"**From the library:** {', '.join(links[name] for name in sorted(links))}." if links else ""


def first_figure(version, notebook):
    """The name of a claim's first figure in the order of its notebook, or None."""
    drawn = [name for cell in notebook["cells"] for name in _figures(cell)]
    names = [name for name in (version.record or {}).get("figures", []) if name in version.files]

    def place(name):
        return next((i for i, pattern in enumerate(drawn) if fnmatch.fnmatch(name, pattern)), len(drawn))

    return min(names, key=place, default=None)


def _figures(cell):
    """Names under which a cell saves figures, * for what is filled in."""
    names = re.findall(r"\w+\.figure\(\w+, f?[\"']([\w{}-]+)", "".join(cell["source"]))
    return [re.sub(r"{.*?}", "*", name) + ".png" for name in names]


def as_run(cells, values):
    """The cells with the parameters once, as they were run: the injected values behind their names."""
    injected = [cell for cell in cells if "injected-parameters" in cell["metadata"].get("tags", [])]
    changed = {name for cell in injected for name in re.findall(r"^(\w+) = ", "".join(cell["source"]), re.MULTILINE)}

    def line(found):
        name, rest = found.groups()
        return f"{name} = {values[name]!r}{rest or ''}" if name in changed & values.keys() else found[0]

    shown = []
    for cell in cells:
        if "parameters" in cell["metadata"].get("tags", []):
            source = re.sub(r"^(\w+) = .*?(  # .*)?$", line, "".join(cell["source"]), flags=re.MULTILINE)
            cell = {**cell, "source": source}
        if cell not in injected:
            shown.append(cell)
    return shown


def explorers():
    """Paths of the notebooks that serve no claim."""
    stems = {spec.template for spec in checks.registry().values()}
    return [path for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")) if path.stem not in stems]


def explorer_page(env, path):
    """Such a notebook as it is stored, its code folded away; in place of its sliders those that need no kernel."""
    notebook = records.read_notebook(path)
    cells = [_own_cell(cell, path.stem, True) for cell in notebook["cells"]]
    places = [i for i, cell in enumerate(notebook["cells"]) if "sliders" in cell["metadata"].get("tags", [])]
    for i in places:
        cells[i] = _markdown("sliders", raw(env.get_template("explorer.html").render(_explored(path, notebook))))
    return _page(notebook, cells, {})


def _explored(path, notebook):
    """Where a notebook's sliders begin and end, and the counts that it shows for scale, all from its code."""
    code = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    assigned = {
        ast.unparse(node.targets[0]): node.value for node in ast.parse(code).body if isinstance(node, ast.Assign)
    }
    start, comments, sliders = parameters.notebook_parameters(path), parameters.comments(path), {}
    for name, made in zip(assigned["sliders"].keys, assigned["sliders"].values, strict=True):
        words = {word.arg: ast.literal_eval(word.value) for word in made.keywords}
        words |= {"log": "Log" in ast.unparse(made.func), "start": start[name.value], "comment": comments[name.value]}
        sliders[name.value] = words
    return {"sliders": sliders, "scale": ast.literal_eval(assigned["SCALE"])}


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
    folded = folded and "parameters" not in tags
    alt = " ".join(f"Figure {', '.join(_figures(cell))}: {title}".replace("Figure :", "Figure:").split())
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
    text = quotes.page(env, "index", entries)
    tree = _toctree("Start", ["start", "findings", "errata"])
    tree += _toctree("Papers", [f"{text[0]} <papers/{key}>" for key, text in texts.items()])
    tree += _toctree("Reading", ["verdicts", "glossary", "running", *(path.stem for path in explorers())])
    tree += _toctree("Library", [f"{folder} <reference/{folder}>" for folder in LIBRARY])
    return f"{text}\n{raw(html)}\n{tree}"


def _toctree(caption, pages):
    return "\n".join(["```{toctree}", ":hidden:", ":titlesonly:", f":caption: {caption}", "", *pages, "```\n\n"])


def paper_page(env, key, text, entries):
    """What a paper claims, its statements and where they are computed, what was not reproduced, and its errata."""
    _, title, body = text
    own = [entry for entry in entries if entry.spec.paper == key]
    body = quotes.fill(env, f"papers/{key}.md", body, entries)
    table = env.get_template("paper.html").render(entries=own)
    open_ones = [e for e in own if e.verdict not in ("reproduced", records.UNRUN)]
    parts = [
        f"# {title}\n{body}\n\n## Claims and notebooks\n\n{raw(table)}",
        "## What was not reproduced, and why\n",
        *(_shortfall(env, entry) for entry in open_ones),
        *([] if open_ones else ["Every claim that was run at a size that can decide is reproduced.\n"]),
        errata.section(key, entries),
        _toctree("Claims", [f"{e.spec.id.removeprefix(key + '-')} </{e.page()}>" for e in own if e.best]),
    ]
    return "\n".join(parts)


def _shortfall(env, entry):
    """A claim that is not fully reproduced: the deciding checks that fail, and the notebook's own words on them."""
    rows = [c for c in entry.best.record["checks"] if c["applies"] and c["tag"] in "RNC"]
    failing = [c for c in rows if (render.outcome(c) == "holds") == (c["tag"] == "C")]
    html = env.get_template("shortfall.html").render(entry=entry, failing=failing)
    return f"### {with_formulas(entry.spec.title)}\n\n{raw(html)}\n{_reason(entry.best.notebook)}\n"


def _reason(notebook):
    """The paragraph "How far from the paper" of a notebook's last cell."""
    last = "".join("".join(cell["source"]) for cell in records.read_notebook(notebook)["cells"][-1:])
    found = re.search(r"\*\*How far from the paper\W*\*\*(.*?)(?=\n\s*\n\*\*|\Z)", last, re.DOTALL)
    return inert(textwrap.dedent(found[1]).strip()) if found else ""


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
