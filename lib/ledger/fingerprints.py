"""Where a result comes from.

Versions, machine, git revision, and a fingerprint of everything that it depends on.
"""

import ast
import contextlib
import copy
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import tomllib
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

import overparam

from . import files, paths

LIBRARY = Path(overparam.__file__).parent.parent.resolve()  # a package itself may be a link
PACKAGE = "overparam"  # of it, the one that pages compute with
VALUES = Path(__file__).with_name(
    "values.py"
)  # of this package, the module that decides the values of a record
FOR_ALL = "from overparam.training import fast_products"  # what `claim.py` uses for every notebook
# These change no number: messages, the memory that may be used, and where files lie.
NEUTRAL = {"overparam", "overparam.errors", "overparam.memory", "overparam.settings"}


def versions():
    """Versions of Python and of the libraries that a number can depend on."""
    libraries = (
        "torch",
        "numpy",
        "scipy",
        "scikit-learn",
        "pandas",
        "mlxtend",
        "matplotlib",
        "seaborn",
    )
    return {"python": platform.python_version()} | {
        name: importlib.metadata.version(name) for name in libraries
    }


def git_revision():
    """The commit, with `-dirty` where files other than figures differ from it or are new.

    None outside a checkout.
    """
    commit = _git("rev-parse", "--short=12", "HEAD")
    if (
        commit is None or Path(_git("rev-parse", "--show-toplevel")).resolve() != paths.ROOT
    ):  # another project's
        return None
    changed = _git("status", "--porcelain", "--", ".", ":(exclude)figures")
    return commit + ("-dirty" if changed else "")


def _git(*words):
    command = ["git", "-C", str(paths.ROOT), *words]
    others = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    environment = {
        name: value for name, value in os.environ.items() if name not in others
    }  # of a hook that runs us
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=10, env=environment)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return out.stdout.strip() if out.returncode == 0 else None


def fingerprint(notebook, parameters, deciding, threads):
    """A digest of all that a notebook's record depends on, by content and not by file times.

    parameters: the size's values; deciding: what decides of the checks (`registry.deciding`);
    threads: how many the size has; the notebook's code, with the tags of its cells; the code of
    the library that it can reach; the registered data sets that this code names. Prose, comments
    and docstrings do not count.
    """
    decided = json.dumps([parameters, deciding, threads], sort_keys=True, default=str)
    code = [_notebook_code(notebook), *_tags(notebook), _code(VALUES)]
    code += [statement["code"] for statement in reached(notebook, parameters)]
    text = "\n".join(code)
    data_sets = [table for name, table in _data_sets().items() if name in text + decided]
    return _digest([decided, text, *data_sets])


def library(notebook):
    """A digest of the library alone, as far as a notebook imports it.

    Trainings go on while it stays the same.
    """
    return _digest(map(_code, modules(notebook).values()))


def reached(notebook, parameters):
    """The library's statements that a notebook can reach, in the order of modules and lines.

    A statement is {module; place in it; defines: the names that it gives the module, or None;
    words: the names that it uses; code}, of a module that the notebook imports, directly or
    through others. A function, a class, an import or a constant is reached where the notebook, a
    value of a parameter or a statement that is reached uses its name, for whatever it may be: of
    two definitions of one name, both are reached. Other statements run at each import, and count.
    Where a function refuses an argument is left out of its code: see `_WithoutRefusals`.
    """
    statements = [
        {"module": name, "place": place, **statement}
        for name, file in modules(notebook).items()
        for place, statement in enumerate(_of_source("statements", _code(file), _module_statements))
    ]
    own = f"{FOR_ALL}\n{_notebook_code(notebook)}"
    words = set(_of_source("words", own, _words))
    words.update(re.findall(r"\w+", json.dumps(parameters, default=str)))
    found = []
    new, rest = _split(statements, words)
    while new:
        found += new
        for statement in new:
            words.update(statement["words"])
        new, rest = _split(rest, words)
    return sorted(found, key=lambda statement: (statement["module"], statement["place"]))


def _split(statements, words):
    """Those of the statements that these words reach, and the others."""
    reached, others = [], []
    for statement in statements:
        names = statement["defines"]
        uses = names is None or not words.isdisjoint(names)
        (reached if uses else others).append(statement)
    return reached, others


def _module_statements(code):
    """[{defines, words, code}] of a module, as `reached` wants them; each imported name is one."""
    found = []
    for node in ast.parse(code).body:
        names = None
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__"):
            names = [node.name]
        elif isinstance(node, ast.ImportFrom) and node.level and node.module == "errors":
            continue  # kinds of errors, for refusals
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                one = copy.copy(node)
                one.names = [alias]
                bound = (alias.asname or alias.name).split(".")[0]
                found.append(_statement(one, [bound]))
            continue
        elif isinstance(node, ast.Assign) and not _calls(node):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        found.append(_statement(node, names or None))
    return found


def _statement(node, names):
    refusals = _WithoutRefusals()
    code = ast.unparse(refusals.visit(node))
    words = {word for text in [code, *refusals.conditions] for word in _words(text)}
    if names == ["__all__"]:  # the library imports nothing by a star
        words = set()
    return {"defines": names, "words": sorted(words), "code": code}


class _WithoutRefusals(ast.NodeTransformer):
    """Takes `if condition: raise ParameterError(...)` out of a piece of code.

    A run that has ended was refused nowhere, so that its numbers are those of the code without
    refusals. Conditions are kept apart, because what they call has been called. A refusal inside
    a `try` may be caught, and stays.
    """

    def __init__(self):
        self.conditions = []

    def visit_If(self, node):
        match node:
            case ast.If(
                body=[*_, ast.Raise(exc=ast.Call(func=ast.Name(id="ParameterError")))], orelse=[]
            ):
                self.conditions.append(ast.unparse(node.test))
                return None
        return self.generic_visit(node)

    def visit_Try(self, node):
        return node

    def generic_visit(self, node):
        node = super().generic_visit(node)
        if isinstance(node, ast.stmt) and getattr(node, "body", None) == []:
            node.body = [ast.Pass()]
        return node


def _calls(node):
    """Whether a statement may do more than to give a value: a call can change anything."""
    return any(isinstance(inner, ast.Call) for inner in ast.walk(node))


def _words(code):
    """All names that a piece of code uses: of values, attributes and imports, and whole strings."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.add(name)
            case ast.alias(name=name):
                found.update(name.split("."))
            case ast.Constant(value=str(text)) if text.isidentifier():
                found.add(text)
    return sorted(found)


def _digest(texts):
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def refresh():
    """Forget what was read of the sources."""
    for known in (_stripped, _imports, _file, _cells, _data_sets):
        known.cache_clear()


def state(page):
    """A digest of where all sources of a page lie and when each was written last.

    Whether somebody writes while they are read.
    """
    folder = LIBRARY / PACKAGE
    found = [*folder.rglob("*.py"), *folder.rglob("*.toml")]
    # Editors and file managers leave files of their own, whose names begin with a dot.
    shown = [file for file in found if not file.name.startswith(".")]
    own = [page.notebook, page.file, VALUES, *modules(page.notebook).values()]
    files = sorted({*own, *shown})
    return _digest(f"{file} {file.stat().st_ctime_ns} {file.stat().st_ino}" for file in files)


def settled(page):
    """The `state` once all modules that a page's notebook uses are imported.

    What is written later changes nothing.
    """
    for module in modules(page.notebook):
        importlib.import_module(module)
    return state(page)


def modules(notebook):
    """{dotted name: file} of the library's modules that a notebook imports, directly or through
    others, sorted.
    """
    found, waiting = {}, [*_imports(FOR_ALL, ""), *_imports(_notebook_code(notebook), "")]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = file = _file(name)
            package = name if file.stem == "__init__" else name.rpartition(".")[0]
            waiting += _imports(_code(file), package)
    return {name: found[name] for name in sorted(found) if name not in NEUTRAL}


@cache
def _imports(code, package):
    """Names of the library's modules that a piece of code imports, with the packages around
    them.
    """
    names = set()
    for base, imported in _of_source("imports", code, _import_statements):
        if base.startswith("."):
            base = resolve_name(base, package)
        names.update(f"{base}.{name}" if base else name for name in imported)
    outer = {".".join(name.split(".")[:k]) for name in names for k in range(1, name.count(".") + 2)}
    return {name for name in outer if name.split(".")[0] == PACKAGE and _file(name)}


def _import_statements(code):
    """[(what is imported from, with its leading dots, or nothing; names)] of a piece of code."""
    found = []
    for node in _statements(ast.parse(code)):
        if isinstance(node, ast.Import):
            found.append(("", [alias.name for alias in node.names]))
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            found.append((base, [alias.name for alias in node.names]))
    return found


@cache
def _file(name):
    """The file of a module of the library, or None."""
    place = LIBRARY.joinpath(*name.split("."))
    files = [place.with_suffix(".py"), place / "__init__.py"]
    return next(filter(Path.is_file, files), None)


def _notebook_code(notebook):
    """The code of a notebook without the cell of parameters, comments and docstrings."""
    sources = [
        "".join(cell["source"])
        for cell in _code_cells(notebook)
        if "parameters" not in cell["metadata"].get("tags", [])
    ]
    return _stripped("\n".join(sources))


def _tags(notebook):
    """The tags of cells, which can decide whether a cell is run, as lines of text."""
    tags = [sorted(cell["metadata"].get("tags", [])) for cell in _code_cells(notebook)]
    return [f"cell {i}: {', '.join(names)}" for i, names in enumerate(tags) if names]


def _code_cells(notebook):
    return _cells(notebook.read_text(encoding="utf-8"))


@cache
def _cells(text):
    return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def _code(file):
    """A module's code without comments and docstrings."""
    return _stripped(file.read_text(encoding="utf-8-sig"))


@cache
def _stripped(source):
    return _of_source("code", source, _without_words)


def _without_words(source):
    """Python code without comments and docstrings."""
    tree = ast.parse(source)
    for node in [tree, *_statements(tree)]:
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _statements(tree):
    """All statements of a piece of code, nested ones too; expressions are not entered."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, [])
            # the body of a lambda and of `a if b else c` is an expression
            waiting += inner if isinstance(inner, list) else []
        if isinstance(node, ast.stmt):
            yield node


# {kind and digest of a source: what parsing that source gives}
_parsed = {}  # in this process
_stored = {}  # in an earlier listing


def _of_source(kind, source, parse):
    """What `parse` gives for a source, parsed once for each content."""
    key = f"{kind} {hashlib.sha256(source.encode()).hexdigest()}"
    if key not in _parsed:
        _parsed[key] = _stored[key] if key in _stored else parse(source)
    return _parsed[key]


@contextlib.contextmanager
def remembered():
    """What is parsed within is kept in the folder of logs, for the next listing.

    It is found again by the digest of its source, by Python's version and by the code of this
    module, so that nothing that has changed is taken for what it was.
    """
    file = paths.LOGS / "parsed.json"
    made_by = _digest([platform.python_version(), Path(__file__).read_text(encoding="utf-8")])
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored["made by"] == made_by:
            _stored.update(stored["parsed"])
    yield
    if not _parsed.keys() <= _stored.keys():
        content = json.dumps({"made by": made_by, "parsed": _parsed}).encode()
        with contextlib.suppress(OSError):  # a checkout that may not be written to
            file.parent.mkdir(parents=True, exist_ok=True)
            files.write_atomically(file, content)


@cache
def _data_sets():
    """{name: what the registry says of a data set}."""
    tables = tomllib.loads(
        (LIBRARY / "overparam" / "data" / "registry.toml").read_text(encoding="utf-8")
    )
    return {name: json.dumps(table, sort_keys=True) for name, table in tables.items()}
