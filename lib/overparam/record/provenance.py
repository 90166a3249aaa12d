"""Where a result comes from: versions, machine, git revision, and a fingerprint of everything that it depends on."""

import ast
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from .. import paths

PACKAGE = Path(__file__).resolve().parents[1]
# These write and show what they are given. Verdicts depend on `checks` as well, but follow from the values and the
# registered checks alone: the tests compute those of all committed records anew.
_NEUTRAL = {"overparam", "overparam.errors", "overparam.memory", "overparam.paths", "overparam.record"} | {
    f"overparam.record.{name}" for name in ("checks", "claims", "files", "pages", "parameters", "provenance", "render")
}
_WRAPPERS = {  # decorators that change what they are given and put it nowhere; the last is the bounds' own
    "cache", "contextlib", "contextmanager", "dataclass", "functools", "lru_cache", "no_grad", "np", "property",
    "torch", "vectorize", "_checked",
}  # fmt: skip
_LOOK_UPS = {"globals", "import_module", "__import__"}  # of definitions whose names may not stand in the code
_VERSIONED = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "mlxtend", "matplotlib", "seaborn")


def versions():
    """Versions of Python and of the libraries that a number can depend on."""
    installed = {name: importlib.metadata.version(name) for name in _VERSIONED}
    return {"python": platform.python_version(), **installed}


def git_revision():
    """The commit, with `-dirty` where files other than figures differ from it or are new; None outside a checkout."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    if commit is None or Path(_git("rev-parse", "--show-toplevel")).resolve() != paths.ROOT:  # another project's
        return None
    changed = _git("status", "--porcelain", "--", ".", ":(exclude)figures")
    return commit + ("-dirty" if changed else "")


def _git(*words):
    command, others = ["git", "-C", str(paths.ROOT), *words], ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    environment = {name: value for name, value in os.environ.items() if name not in others}  # of a hook that runs us
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=10, env=environment)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return out.stdout.strip() if out.returncode == 0 else None


def fingerprint(notebook, parameters, deciding):
    """A digest of all that a notebook's record depends on, by content and not by file times.

    parameters: the profile's values; deciding: what decides of the checks (`checks.deciding`). Prose does not count.
    The library enters by the definitions that the notebook reaches, the table of the data sets by those named.
    """
    code, used = _sources(notebook)
    parts = [json.dumps([parameters, deciding], sort_keys=True, default=str), code, *used]
    text = "".join(parts)
    parts += [table for name, table in _data_sets().items() if name in text]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def library(notebook):
    """A digest of the library alone, as far as a notebook reaches it: trainings go on while it stays the same."""
    return hashlib.sha256("\n".join(_sources(notebook)[1]).encode()).hexdigest()


def refresh():
    """Forget what was read of the sources."""
    for known in (_sources_of, _definitions, _modules, _data_sets):
        known.cache_clear()


def state(notebook):
    """A digest of where all sources lie and when each was written last: whether somebody writes while they are read."""
    tables = [paths.PROFILES, *paths.CHECKS.glob("*.toml"), *PACKAGE.rglob("*.toml")]
    found = [(file, file.stat()) for file in sorted([Path(notebook), *tables, *PACKAGE.rglob("*.py")])]
    written = [[str(file), status.st_ctime_ns, status.st_ino] for file, status in found]
    return hashlib.sha256(json.dumps(written).encode()).hexdigest()


def settled(notebook):
    """The `state` once all modules that a notebook reaches are imported: what is written later changes nothing."""
    for module in sorted({source.partition(":")[0] for source in _sources(notebook)[1]}):
        importlib.import_module(module)
    return state(notebook)


def _sources(notebook):
    """The code of a notebook without comments, docstrings and the cell of parameters; and what it uses, sorted."""
    return _sources_of(Path(notebook).read_text(encoding="utf-8"))


@cache
def _sources_of(text):
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    sources = ["".join(cell["source"]) for cell in cells if "parameters" not in cell["metadata"].get("tags", [])]
    tree = _without_docstrings(ast.parse("\n".join(sources)))
    used = [(module, name) for module, name in sorted(_reached(tree)) if module not in _NEUTRAL]
    return ast.unparse(tree), [f"{module}:{name}:{_definitions(module)[name].code}" for module, name in used]


def reached(code):
    """{(module, name)} of the package's definitions that a notebook's code can run: rather too many than too few.

    Reached is whatever a word in reached code is called like, in any module that reached code imports, and, under "",
    what runs on import. A definition that looks up others in `globals`, or imports them by name, reaches its folder.
    """
    return _reached(ast.parse(code))


def _reached(tree):
    nodes = list(ast.walk(tree))
    modules, words = _imports(nodes, "overparam"), _words(nodes)
    if words & {"import_module", "__import__"}:
        modules = set(_modules())
        words.update(*map(_definitions, modules))
    seen, new = set(), {("", "")}
    while new:
        new = {(m, name) for m in modules for name in _definitions(m) if not name or name in words} - seen
        for module, name in new:
            found = _definitions(module)[name]
            words |= found.words
            modules |= found.modules
            if found.words & _LOOK_UPS and module not in _NEUTRAL:
                folder = [inner for inner in _modules() if inner.startswith(_folder(module))]
                modules |= set(folder)
                words.update(*map(_definitions, folder))
        seen |= new
    return seen


@dataclass
class _Definition:
    """code: without comments and docstrings; words: the names and texts in it; modules: the package's it imports."""

    code: str = ""
    words: set = field(default_factory=set)
    modules: set = field(default_factory=set)

    def add(self, node, package):
        """One more statement; imports on the module's level count by what they import."""
        if not isinstance(node, ast.Import | ast.ImportFrom):
            self.code += ast.unparse(node) + "\n"
        nodes = list(ast.walk(node))
        self.words |= _words(nodes)
        self.modules |= _imports(nodes, package)


@cache
def _definitions(module):
    """{name: _Definition} of what a module defines; under "" what runs on import and defines no name."""
    tree = _without_docstrings(ast.parse(_modules()[module].read_text(encoding="utf-8")))
    found = {"": _Definition(modules=_with_parents(module))}
    for node in tree.body:
        decorators = _words(inner for outer in getattr(node, "decorator_list", []) for inner in ast.walk(outer))
        # another decorator may enter the definition in a table, when the module is imported
        names = [*_defined(node), *([""] if decorators - _WRAPPERS else [])]
        for name in names:
            found.setdefault(name, _Definition()).add(node, _folder(module))
    return found


def _defined(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return names if isinstance(node, ast.Assign | ast.AnnAssign) and len(names) == len(targets) else [""]


def _words(nodes):
    """The names, attributes, imported names and texts in a piece of code."""
    places = {ast.Name: "id", ast.Attribute: "attr", ast.alias: "name", ast.Constant: "value"}
    found = [getattr(node, places[type(node)]) for node in nodes if type(node) in places]
    return {word for word in found if isinstance(word, str)}


def _imports(nodes, folder):
    """The package's modules that a piece of code imports, with those around them."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(*(_with_parents(alias.name) for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            parts = folder.split(".")
            above = parts[: len(parts) + 1 - node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found.update(*(_with_parents(f"{base}.{alias.name}") for alias in node.names))
    return found


def _with_parents(name):
    parts = name.split(".")
    return {".".join(parts[:k]) for k in range(1, len(parts) + 1)} & _modules().keys()


def _folder(module):
    return module if _modules()[module].stem == "__init__" else module.rpartition(".")[0]


def _without_docstrings(tree):
    nodes = [tree]
    for node in nodes:  # statements alone: most of a tree lies in their expressions
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            nodes += getattr(node, block, [])
    return tree


@cache
def _modules():
    """{dotted name: file} of the package's own modules."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def _data_sets():
    """{name: what the registry says of a data set}."""
    tables = tomllib.loads((PACKAGE / "data" / "registry.toml").read_text(encoding="utf-8"))
    return {name: json.dumps(table, sort_keys=True) for name, table in tables.items()}
