"""What a record depends on: the fingerprint sees code and text, not comments, outputs or unrelated modules."""

import json

import nbformat
import pytest

from overparam.record import provenance


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
    "change",
    [{"code": "x = 2"}, {"text": "# Other"}, {"parameters": {"n": 2}}, {"checks": [{"threshold": 2}]}],
)
def test_fingerprint_sees_every_source(path, change):
    base = {"code": "x = 1", "text": "# Title", "parameters": {"n": 1}, "checks": [{"threshold": 1}]}
    made = []
    for case in (base, {**base, **change}):
        notebook(path, case["code"], case["text"])
        made.append(provenance.fingerprint(path, case["parameters"], case["checks"]))
    assert made[0] != made[1]


@pytest.mark.parametrize(
    ("code", "inside", "outside"),
    [
        (
            "from overparam.bounds import arora2019\narora2019.complexity(y, H)",
            {"bounds.arora2019:complexity", "bounds.arora2019:_inverse_form", "bounds._arguments:float64"},
            {"bounds.arora2019:thm51_bound", "bounds.guo2024:"},
        ),
        ("import overparam\noverparam.kernels.relu_gram(x)", {"kernels:relu_gram", "kernels:BLOCK"}, {"data:load"}),
        (
            "from overparam.models.residual import ResidualRuns\nResidualRuns()",
            {"nets.residual:ResidualReLU"},
            {"nets.two_layer:", "train:"},
        ),
        (
            "from overparam.data import load\nload('mnist')",
            {"data.readers:idx", "data.sources:obtain", "data.transforms:images"},
            {"kernels:", "data:describe"},
        ),
        (
            "from overparam.training import gradient_descent\ngradient_descent()",
            {"train:", "train.descent:_descend", "train.checkpoints:training_key"},
            {"nets.residual:", "train.losses:halving_step"},
        ),
        ("from overparam import plots\nchosen = [plots]", {"plots:band", "plots:data_title"}, set()),
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

    def digests(source, code="from overparam import toy\ntoy.f()"):
        (package / "toy.py").write_text(source)
        for cached in (provenance._modules, provenance._definitions, provenance._source):
            cached.cache_clear()
        return [provenance._source(*name) for name in sorted(provenance.reached(code))]

    yield digests
    for cached in (provenance._modules, provenance._definitions, provenance._source):
        cached.cache_clear()


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


def test_versions_and_revision_are_plain_text():
    assert json.loads(json.dumps(provenance.versions()))["torch"]
    revision = provenance.git_revision()
    assert revision is None or len(revision) >= 7


def test_of_the_data_sets_those_that_are_named_count(path, monkeypatch):
    notebook(path, "from overparam.data import load\nload(name)")
    made = {}
    for licence in ("old", "new"):
        tables = {"birds": licence, "bees": "the same"}
        monkeypatch.setattr(provenance, "_tables", lambda module, found=tables: found if "data" in module else {})
        made[licence] = [provenance.fingerprint(path, {"name": name}, []) for name in ("birds", "bees")]
    assert made["old"][0] != made["new"][0]
    assert made["old"][1] == made["new"][1]
