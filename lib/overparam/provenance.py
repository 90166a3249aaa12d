"""Where a result comes from: versions, machine, git revision, and a fingerprint of everything that it depends on."""

import ast
import hashlib
import importlib.metadata
import json
import platform
import subprocess
from functools import cache
from pathlib import Path

from . import paths

PACKAGE = Path(__file__).resolve().parent
# These change no measured value. Verdicts depend on `claims` as well, but follow from the values and the registered
# checks alone: the tests compute those of all committed records anew.
_NEUTRAL = {f"overparam{name}" for name in ("", ".claims", ".errors", ".parameters", ".paths", ".provenance")}
_VERSIONED = ("torch", "numpy", "scipy", "scikit-learn", "mlxtend", "matplotlib")


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
    cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]


def fingerprint(notebook, parameters, checks):
    """A digest of all that a notebook's record depends on, by content and not by file times.

    notebook: its path; parameters: the profile's values; checks: the registered checks that it reports.
    The library enters by the modules that the notebook uses, as code: comments and docstrings do not count.
    """
    cells = notebook_source(notebook)
    code = "\n".join(source for kind, source in cells if kind == "code")
    digest = hashlib.sha256(json.dumps([cells, parameters, checks], sort_keys=True, default=str).encode())
    for module in sorted(_closure(_used(ast.parse(code), "overparam")) - _NEUTRAL):
        digest.update(f"{module}:{_code_digest(module)}".encode())
    return digest.hexdigest()


@cache
def _modules():
    """{dotted name: file} of the package's own modules, and of the data files beside them."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def _code_digest(module):
    file = _modules()[module]
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    tables = [path.read_bytes() for path in sorted(file.parent.glob("*.toml"))] if file.stem == "__init__" else []
    return hashlib.sha256(ast.dump(tree).encode() + b"".join(tables)).hexdigest()


def _used(tree, package):
    """Dotted names of the package's modules that the code imports or reaches as attributes of `overparam`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            names.add(ast.unparse(node))
    return names & set(_modules())


def _absolute(node, package):
    if not node.level:
        return node.module or ""
    base = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _closure(names):
    """The modules themselves, the packages they stand in, and all that these import in turn."""
    seen, todo = set(), list(names)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        file = _modules()[name]
        package = name if file.stem == "__init__" else name.rpartition(".")[0]
        todo += _used(ast.parse(file.read_text(encoding="utf-8")), package)
        todo += [parent] if (parent := name.rpartition(".")[0]) in _modules() else []
    return seen
