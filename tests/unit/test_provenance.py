"""What a record depends on: the fingerprint sees code, not prose, comments, outputs or unrelated modules."""

from dataclasses import replace

import nbformat
import pytest

from overparam.record import checks, pages, provenance
from overparam.record.checks import Check, Spec


def notebook(path, code, text="# Title", outputs=()):
    cells = [
        nbformat.v4.new_markdown_cell(text, id="a"),
        nbformat.v4.new_code_cell(code, outputs=list(outputs), id="b"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "toy.ipynb"


def test_fingerprint_of_the_same_sources_is_the_same(path):
    output = nbformat.v4.new_output("stream", text="hello")
    one = provenance.fingerprint(notebook(path, "x = 1"), {"n": 1}, [])
    assert provenance.fingerprint(notebook(path, "x = 1", outputs=[output]), {"n": 1}, []) == one


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"code": "x = 2"}, True),
        ({"code": 'x = 1\nclaim.say("new")'}, True),
        ({"parameters": {"n": 2}}, True),
        ({"checks": [{"threshold": 2}]}, True),
        ({"text": "# A corrected sentence"}, False),
        ({"code": "x = 1  # why"}, False),
        ({"code": "x = (\n    1)"}, False),
    ],
)
def test_fingerprint_sees_code_and_no_prose(path, change, counts):
    base = {"code": "x = 1", "text": "# Title", "parameters": {"n": 1}, "checks": [{"threshold": 1}]}
    made = []
    for case in (base, {**base, **change}):
        notebook(path, case["code"], case["text"])
        made.append(provenance.fingerprint(path, case["parameters"], case["checks"]))
    assert (made[0] != made[1]) == counts


def test_a_wording_decides_nothing_and_a_threshold_does(monkeypatch):
    check = Check("a", "R", "the value", "<=", 1.0)
    made = []
    for changes in ({}, {"wording": "better said", "source": "p. 3"}, {"threshold": 2.0}, {"tolerance": 0.1}):
        spec = Spec("toy2020-a", "title", "source", "lemma", (replace(check, **changes),), "toy2020-a", "toy2020-a")
        monkeypatch.setattr(checks, "registry", lambda made=spec: {made.id: made})
        made.append(checks.deciding("toy2020-a"))
    assert made[0] == made[1]
    assert made[0] != made[2] != made[3] != made[0]


@pytest.mark.parametrize(
    ("code", "inside", "outside"),
    [
        (
            "from overparam.bounds import arora2019\narora2019.complexity(y, H)",
            {"bounds.arora2019:complexity"},
            {"bounds.arora2019:thm51_bound", "bounds.guo2024:"},
        ),
        ("from overparam.data import load\nload('mnist')", {"data:load", "data:"}, {"theory.kernels:"}),
        (
            "from overparam.training import gradient_descent\ngradient_descent()",
            {"training.descent:gradient_descent", "training.checkpoints:"},
            {"models.residual:"},
        ),
        (
            "from overparam.record.claims import Claim\nClaim(name, globals())",
            {"record.values:prepared", "record.values:significant", "record.values:_mean"},
            {"record.plots:band"},
        ),
    ],
)
def test_only_the_definitions_in_use_count(code, inside, outside):
    names = {f"{module}:{name}" for module, name in provenance.reached(code)}
    assert {f"overparam.{name}" for name in inside} <= names
    assert not {f"overparam.{name}" for name in outside} & names


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Writes a package with one module, and gives the digests of what a piece of code reaches in it."""
    package = tmp_path / "overparam"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.setattr(provenance, "PACKAGE", package)

    cached = [value for value in vars(provenance).values() if hasattr(value, "cache_clear")]

    def digests(source, code="from overparam import toy\ntoy.f()", **others):
        for name, text in {"toy": source, **others}.items():
            (package / f"{name}.py").write_text(text)
        for function in cached:
            function.cache_clear()
        return [provenance._definitions(module)[name].code for module, name in sorted(provenance.reached(code))]

    yield digests
    for function in cached:
        function.cache_clear()


F = "X = 1\n\n\ndef f():\n    return X\n"


@pytest.mark.parametrize(
    "same",
    [
        F.replace("X = 1", "X = 1  # why"),
        F.replace("def f():", 'def f():\n    """The answer."""'),
        '"""A module."""\n' + F,
        F + "\n\ndef g():\n    return 2\n",
    ],
)
def test_comments_docstrings_and_what_is_not_reached_change_nothing(toy, same):
    assert toy(F) == toy(same)


@pytest.mark.parametrize(
    "other",
    [
        F.replace("X = 1", "X = 2"),
        F.replace("return X", "return X + X"),
        F + "\n\nprint(2)\n",
        F + "\nX += 1\n",
        F.replace("return X", "import json\n    return X"),
    ],
)
def test_what_is_reached_and_what_runs_on_import_counts(toy, other):
    assert toy(F) != toy(other)


@pytest.mark.parametrize(
    "hidden",
    [
        "from importlib import import_module\n\n\ndef f():\n    return import_module('overparam.other').g()\n",
        "def f():\n    return __import__('overparam.other').g()\n",
        "from . import other\n\n\ndef f(name='g'):\n    return getattr(other, name)()\n",
        "from .other import *\n\n\ndef f():\n    return g()\n",
        "from . import other\n\n\ndef f():\n    return 1\n",
    ],
)
def test_what_is_reached_by_name_counts(toy, hidden):
    """Modules imported by name, looked up, starred, or imported for what they do."""
    runs = "\nprint({})\n" if hidden.endswith("return 1\n") else "\n\ndef g():\n    return {}\n"
    assert toy(hidden, other=runs.format(1)) != toy(hidden, other=runs.format(2))


@pytest.mark.parametrize(
    "hidden",
    [
        "T = {{}}\n\n\ndef put(g):\n    T[0] = g\n\n\n@put\ndef g():\n    return {}\n\n\ndef f():\n    return T[0]()\n",
        "def g():\n    return {}\n\n\ndef f():\n    return globals()['g']()\n",
    ],
)
def test_what_a_decorator_enters_or_a_name_looks_up_counts(toy, hidden):
    assert toy(hidden.format(1)) != toy(hidden.format(2))


def test_of_the_data_sets_those_that_are_named_count(path, monkeypatch):
    notebook(path, "from overparam.data import load\nload(name)")
    made = {}
    for licence in ("old", "new"):
        monkeypatch.setattr(provenance, "_data_sets", lambda now=licence: {"birds": now, "bees": "the same"})
        made[licence] = [provenance.fingerprint(path, {"name": name}, []) for name in ("birds", "bees")]
    assert made["old"][0] != made["new"][0]
    assert made["old"][1] == made["new"][1]


def cell(kind, text, tags=(), **more):
    return {"cell_type": kind, "source": text, "metadata": {"tags": list(tags)}, **more}


def test_the_page_of_a_run_has_the_present_prose_and_its_own_outputs():
    parameters, injected = cell("code", "n = 1", ["parameters"]), cell("code", "n = 9", ["injected-parameters"])
    ran = [cell("markdown", "old"), parameters, injected, cell("code", "draw()", outputs=["picture"])]
    now = [cell("markdown", "new"), parameters, cell("markdown", "more"), cell("code", "draw()")]
    page = pages.merged({"cells": now}, {"cells": ran, "metadata": "of the run"})
    assert [c["source"] for c in page["cells"]] == ["new", "n = 1", "n = 9", "more", "draw()"]
    assert page["cells"][-1]["outputs"] == ["picture"]
    assert page["metadata"] == "of the run"
    assert pages.merged({"cells": now[:2]}, {"cells": ran})["cells"] == ran
