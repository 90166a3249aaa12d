"""The library's reference, read from its sources: signatures, docstrings, and the bounds' formulas rendered."""

import ast
import re

from ... import paths
from .formulas import latex, leading_formula

PACKAGE = paths.ROOT / "lib" / "overparam"
_TITLES = {"": "overparam"}
_SPECIAL = re.compile(r"([!-/:-@\[-_{-~])")  # ASCII punctuation but backticks


def pages():
    """{file name: MyST text}: one page per module, and the index."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        if not any(part.startswith("_") for part in name.split(".")):
            found[name] = module_page(name, ast.parse(file.read_text(encoding="utf-8")))
    index = "\n".join(found)
    intro = (
        "Every public function, with its formula where its docstring begins with one. Sources are in `lib/overparam`."
    )
    toctree = f"```{{toctree}}\n:maxdepth: 1\n:titlesonly:\n\n{index}\n```\n"
    return {"index.md": f"# The library\n\n{intro}\n\n{toctree}", **{f"{n}.md": text for n, text in found.items()}}


def module_page(name, tree):
    """MyST text of a module: its docstring, then its public functions and classes in the order of the source."""
    parts = [f"# `{name}`\n", prose(ast.get_docstring(tree) or "")]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            parts.append(_entry(node, "##"))
            members = node.body if isinstance(node, ast.ClassDef) else []
            parts += [_entry(m, "###") for m in members if isinstance(m, ast.FunctionDef) and m.name[0] != "_"]
    return "\n".join(parts)


def _entry(node, heading):
    doc = ast.get_docstring(node) or ""
    first, _, rest = doc.partition("\n\n")
    formula, remainder = leading_formula(" ".join(first.split()))
    shown = f"$$\n{latex(formula)}\n$$\n\n" if formula else ""
    text = prose("\n\n".join(part for part in (_sentence(remainder) if formula else first, rest) if part))
    return f"{heading} `{node.name}`\n\n```python\n{_signature(node)}\n```\n\n{shown}{text}\n"


def _sentence(text):
    return text[:1].upper() + text[1:]


def _signature(node):
    if isinstance(node, ast.ClassDef):
        makers = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        arguments = ast.unparse(makers[0].args).removeprefix("self").removeprefix(", ") if makers else ""
        fields = [ast.unparse(n) for n in node.body if isinstance(n, ast.AnnAssign)]
        return "\n".join([f"class {node.name}({arguments})", *(f"    {field}" for field in fields)])
    return f"{node.name}({ast.unparse(node.args)})"


def prose(text):
    """A docstring as Markdown that shows just these characters; what stands in backticks is code."""
    pieces = re.split(r"(`[^`\n]+`)", text)
    return "".join(p if p.startswith("`") and len(p) > 1 else _SPECIAL.sub(r"\\\1", p.replace("`", "")) for p in pieces)
