"""What a record depends on: the fingerprint sees code and text, not comments, outputs or unrelated modules."""

import ast
import json

import nbformat
import pytest

from overparam import provenance


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
        ("from overparam.bounds import arora2019", {"bounds.arora2019", "bounds._arguments"}, {"bounds.guo2024"}),
        ("import overparam\noverparam.kernels.relu_gram(x)", {"kernels"}, {"data", "nets.two_layer"}),
        ("from overparam.nets.residual import depth_sweep", {"nets.residual"}, {"nets.two_layer", "train"}),
        ("from overparam.data import load", {"data.readers", "data.sources", "data.transforms"}, {"kernels"}),
        ("from overparam.train import gradient_descent", {"train.descent", "train.losses"}, {"nets.residual"}),
    ],
)
def test_only_the_modules_in_use_count(code, inside, outside):
    closure = provenance._closure(provenance._used(ast.parse(code), "overparam"))
    assert {f"overparam.{name}" for name in inside} <= closure
    assert not {f"overparam.{name}" for name in outside} & closure


def test_comments_and_docstrings_change_nothing(tmp_path, monkeypatch):
    package, digests = tmp_path / "overparam", []
    package.mkdir()
    for source in ('"""A."""\nX = 1  # why\n', '"""B,\nlonger."""\n\n\nX = 1\n', "X = 2\n"):
        (package / "toy.py").write_text(source)
        monkeypatch.setattr(provenance, "PACKAGE", package)
        provenance._modules.cache_clear()
        provenance._code_digest.cache_clear()
        digests.append(provenance._code_digest("overparam.toy"))
    provenance._modules.cache_clear()
    provenance._code_digest.cache_clear()
    assert digests[0] == digests[1] != digests[2]


def test_versions_and_revision_are_plain_text():
    assert json.loads(json.dumps(provenance.versions()))["torch"]
    revision = provenance.git_revision()
    assert revision is None or len(revision) >= 7
