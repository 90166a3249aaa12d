"""The mathematics knows nothing of claims.

It imports no ledger and reads no environment variable.
"""

import ast
from pathlib import Path

import pytest

import overparam

LIBRARY = Path(overparam.__file__).parents[1]
MODULES = sorted((LIBRARY / "overparam").rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_a_module_of_the_mathematics_stands_alone(module):
    tree = ast.parse(module.read_text(encoding="utf-8"))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported.add(node.module.partition(".")[0])
    assert not imported & {"ledger", "typer", "rich", "papermill", "snakemake", "jinja2"}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not attributes & {"environ", "getenv"}
