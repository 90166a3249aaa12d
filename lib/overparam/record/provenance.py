"""Where a result comes from: versions, machine, git revision, and a fingerprint of everything that it depends on."""

import ast
import hashlib
import importlib.metadata
import json
import platform
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

from .. import paths

PACKAGE = Path(__file__).resolve().parents[1]
# These write and show what they are given. Verdicts depend on `checks` as well, but follow from the values and the
# registered checks alone: the tests compute those of all committed records anew.
_NEUTRAL = {"overparam", "overparam.errors", "overparam.memory", "overparam.paths", "overparam.record"} | {
    f"overparam.record.{name}" for name in ("checks", "claims", "files", "pages", "parameters", "provenance", "render")
}
_BY_NAME = re.compile(r"\bimport_module\b|\b__import__\b|\bimportlib\.util\b|\brunpy\b")
_VERSIONED = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "mlxtend", "matplotlib", "seaborn")


def versions():
    """Versions of Python and of the libraries that a number can depend on."""
    installed = {name: importlib.metadata.version(name) for name in _VERSIONED}
    return {"python": platform.python_version(), **installed}


def git_revision():
    """The commit, with `-dirty` where tracked files other than figures differ from it; None outside a git checkout."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    if commit is None:
        return None
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)figures")
    return commit + ("-dirty" if changed else "")


def _git(*words):
    try:
        out = subprocess.run(["git", "-C", str(paths.ROOT), *words], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return out.stdout.strip() if out.returncode == 0 else None


def notebook_source(path):
    """[(cell type, source)] of a notebook, without outputs and execution counts."""
    return [(cell["cell_type"], "".join(cell["source"])) for cell in _cells(path)]


def _cells(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))["cells"]


def fingerprint(notebook, parameters, deciding):
    """A digest of all that a notebook's record depends on, by content and not by file times.

    notebook: its path; parameters: the profile's values; deciding: what decides of the checks (`checks.deciding`).
    Code counts and prose does not: no Markdown, comments and docstrings, and neither titles nor wordings. The cell of
    parameters counts by the values that are given. The library enters by the definitions that the notebook reaches.
    """
    cells = [cell for cell in _cells(notebook) if cell["cell_type"] == "code"]
    sources = ["".join(cell["source"]) for cell in cells if "parameters" not in cell["metadata"].get("tags", [])]
    code, keys = _program("\n".join(sources))
    parts = [json.dumps([parameters, deciding], sort_keys=True, default=str), code]
    parts += [f"{module}:{name}:{_source(module, name)}" for module, name in keys]
    tables = [_tables(module) for module, name in keys if not name]
    text = "".join(parts)
    parts += [f"{name}:{table}" for found in tables for name, table in found.items() if name in text]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@cache
def _program(code):
    """(code without comments and docstrings, the keys of the library's definitions that it reaches)."""
    keys = sorted(key for key in reached(code) if key[0] not in _NEUTRAL)
    return ast.unparse(_without_docstrings(ast.parse(code))), keys


def _without_docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
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
def _definitions(module):
    """({name: nodes}, {alias: (module, name or None)}) of a module: what it defines and what it imports of the package.

    Statements that define no name are under "": they run on import. Docstrings are taken out.
    """
    file = _modules()[module]
    tree = _without_docstrings(ast.parse(file.read_text(encoding="utf-8")))
    imports = _imported(tree, module if file.stem == "__init__" else module.rpartition(".")[0])
    found = {"": []}
    for node in tree.body:
        for name in _defined(node):
            found.setdefault(name, []).append(node)
    for node in tree.body:
        decorators = {n.id for d in getattr(node, "decorator_list", []) for n in ast.walk(d) if isinstance(n, ast.Name)}
        if decorators & (found.keys() | imports.keys()):  # of our own: it may enter the definition in a table
            found[""].append(node)
    return found, imports


def _defined(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    elsewhere = any(isinstance(part, ast.Attribute) for target in targets for part in ast.walk(target))
    return [*names, ""] if elsewhere or not names else names


def _imported(tree, package):
    """{alias: (module, name or None for the module itself)} of the package's names that a piece of code imports."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                found[alias.asname or whole] = (whole, None)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found[alias.asname or alias.name] = (inner, None) if inner in _modules() else (base, alias.name)
    return {alias: target for alias, target in found.items() if target[0] in _modules()}


def _absolute(node, package):
    if not node.level:
        return node.module or ""
    base = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


class _References(ast.NodeVisitor):
    """The (module, name) that a piece of code mentions; "*" for a module that is used as a value."""

    def __init__(self, names):
        self.names, self.found = names, set()

    def visit_Name(self, node):
        self._note(node.id, [])

    def visit_Attribute(self, node):
        chain, root = [], node
        while isinstance(root, ast.Attribute):
            chain, root = [root.attr, *chain], root.value
        if isinstance(root, ast.Name):
            self._note(root.id, chain)
        else:
            self.visit(root)

    def _note(self, name, chain):
        module, inner = self.names.get(name, (None, None))
        if module is None:
            return
        while inner is None and chain:
            if (deeper := f"{module}.{chain[0]}") in _modules():
                module, chain = deeper, chain[1:]
            else:
                inner = chain[0]
        self.found.add((module, inner or "*"))


def _mentioned(nodes, names):
    visitor = _References(names)
    for node in nodes:
        visitor.visit(node)
    return visitor.found


def reached(code):
    """{(module, name)} of the package's definitions that a notebook's code can run, directly or through others.

    The name "" stands for what runs when the module is imported. A definition that imports modules by name reaches
    all of its package, one that looks up names in `globals()` all of its module.
    """
    tree = ast.parse(code)
    imported = _imported(tree, "overparam")
    todo, seen = [*_mentioned([tree], imported), *((module, "") for module, _ in imported.values())], set()
    if _BY_NAME.search(code):
        todo += [(module, "*") for module in _modules()]
    todo += [(module, "*") for alias, (module, _) in imported.items() if alias == "*"]
    while todo:
        module, name = key = todo.pop()
        if key in seen or module not in _modules():
            continue
        definitions, imports = _definitions(module)
        todo += [(module, ""), (module.rpartition(".")[0], "")]
        if name in imports:
            inner, its_name = imports[name]
            todo.append((inner, its_name or "*"))
        elif name == "*" or name not in definitions:
            todo += [(module, own) for own in definitions if (module, own) not in seen]
        else:
            seen.add(key)
            todo += _references(module, name)
        if not name:  # what it imports runs as well
            todo += [(inner, "*" if alias == "*" else "") for alias, (inner, _) in imports.items()]
    return seen


@cache
def _references(module, name):
    """The keys that a definition mentions, or may look up while it runs."""
    definitions, imports = _definitions(module)
    own = {defined: (module, defined) for defined in definitions}
    found, source = _mentioned(definitions[name], {**own, **imports}), _source(module, name)
    if module not in _NEUTRAL and _BY_NAME.search(source):
        package = module if _modules()[module].stem == "__init__" else module.rpartition(".")[0]
        found |= {(inner, "*") for inner in _modules() if f"{inner}.".startswith(f"{package}.")}
    return found | ({(module, "*")} if "globals()" in source else set())


@cache
def _source(module, name):
    """A definition as code, without comments and docstrings."""
    return "\n".join(map(ast.unparse, _definitions(module)[0][name]))


@cache
def _tables(module):
    """{name: content} of the tables in a package's data files: of the data sets, say. Those that are named count."""
    file = _modules()[module]
    files = sorted(file.parent.glob("*.toml")) if file.stem == "__init__" else []
    loaded = [tomllib.loads(path.read_text(encoding="utf-8")) for path in files]
    return {name: json.dumps(table, sort_keys=True) for tables in loaded for name, table in tables.items()}
