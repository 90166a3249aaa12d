"""The fingerprint of a record sees code, not prose, comments, outputs or unrelated modules."""

import nbformat
import pytest

from ledger import fingerprints, records


@pytest.fixture
def path(tmp_path):
    return tmp_path / "toy.ipynb"


def notebook(path, code, text="# Title", outputs=()):
    cells = [
        nbformat.v4.new_markdown_cell(text),
        nbformat.v4.new_code_cell(code, outputs=list(outputs)),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"code": "x = 2"}, True),
        ({"code": 'x = 1\nclaim.say("new")'}, True),
        ({"parameters": {"n": 2}}, True),
        ({"deciding": ["<= 2"]}, True),
        ({"threads": 2}, True),
        ({"text": "# A corrected sentence"}, False),
        ({"code": "x = 1  # why"}, False),
        ({"code": "x = (\n    1)"}, False),
        ({"outputs": [nbformat.v4.new_output("stream", text="hello")]}, False),
    ],
)
def test_a_fingerprint_sees_code_and_no_prose(path, change, counts):
    base = {
        "code": "x = 1",
        "text": "# Title",
        "outputs": [],
        "parameters": {"n": 1},
        "deciding": ["<= 1"],
        "threads": 1,
    }
    made = []
    for case in (base, base | change):
        notebook(path, case["code"], case["text"], case["outputs"])
        decided = [case[name] for name in ("parameters", "deciding", "threads")]
        made.append(fingerprints.fingerprint(path, *decided))
    assert (made[0] != made[1]) == counts


def test_words_decide_nothing_and_a_threshold_or_a_kind_does(toy):
    def fingerprint(old="A toy", new="A toy"):
        toy.register(toy.registered.replace(old, new, 1))
        return records.fingerprint(toy.id, "laptop")

    before = fingerprint()
    for words in (
        "A toy",
        "Lemma 1",
        "The value is small",
        "A letter",
        "is at most 1",
        "what runs",
        "1.5",
    ):
        assert fingerprint(words, "2") == before
    for old, new in (
        ("<= 1", "<= 2"),
        ("<= 1", "< 1"),
        ("theorem", "ours"),
        ("n = 20", "n = 9"),
        ('sizes = ["laptop"]', 'sizes = ["smoke", "laptop"]'),
        ("value]", "v]"),
    ):
        assert fingerprint(old, new) != before
    assert fingerprint("paper = 1.5\n", 'statistic = "median"\n') != before


@pytest.fixture
def library(path, tmp_path, monkeypatch):
    """Writes modules of a package, and gives the fingerprint of a notebook that imports `one`."""
    package = tmp_path / "lib" / "overparam"
    (package / "data").mkdir(parents=True)
    (package / "data" / "registry.toml").touch()
    (package / "__init__.py").touch()
    monkeypatch.setattr(fingerprints, "LIBRARY", tmp_path / "lib")
    notebook(path, "from overparam import one")

    def made(**modules):
        for name, text in modules.items():
            (package / f"{name}.py").write_text(text)
        fingerprints.refresh()
        return fingerprints.fingerprint(path, {}, [], 1), fingerprints.library(path)

    yield made
    fingerprints.refresh()


F = "X = 1\n\n\ndef f():\n    return X\n"


@pytest.mark.parametrize(
    "code",
    [
        "from . import two",
        "from .two import f",
        "from .two import *",
        "import overparam.two as t",
        "from overparam import two",
        "from overparam.two import f",
        "def f():\n    from .two import f",
        "from .three import x",
    ],
)
def test_a_module_counts_however_it_is_imported(library, code):
    """With all its code, but not with its words; one that is not imported does not count."""
    three, other = "from . import two\nx = 1", F + "\nX = 3\n"
    said = F.replace("f():", 'f():  # why\n    """The answer."""')
    before = library(one=code, two=F, three=three)
    after = library(one=code, two=other, three=three)
    assert [a != b for a, b in zip(before, after, strict=True)] == [True, True]
    assert library(one=code, two=said, three=three) == before
    assert library(one="x = 1", two=F, three=three) == library(one="x = 1", two=other, three=three)


def test_no_module_of_the_library_imports_by_name():
    """The fingerprint would not see it."""
    for file in (fingerprints.LIBRARY / fingerprints.PACKAGE).rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for word in ("import_module", "__import__", "globals()"):
            assert word not in text, file


def test_of_the_data_sets_those_that_are_named_count(path, monkeypatch):
    notebook(path, "from overparam.data import load\nload(name)")
    made = {}
    for licence in ("old", "new"):
        monkeypatch.setattr(
            fingerprints, "_data_sets", lambda now=licence: {"birds": now, "bees": "the same"}
        )
        made[licence] = [
            fingerprints.fingerprint(path, {"name": name}, [], 1) for name in ("birds", "bees")
        ]
    assert [old == new for old, new in zip(*made.values(), strict=True)] == [False, True]


@pytest.fixture
def listing(path, tmp_path, monkeypatch):
    """Fingerprints, in a process that has parsed nothing yet, and remembers its parsing."""
    monkeypatch.setattr(fingerprints.paths, "LOGS", tmp_path / "logs")

    def made(**changes):
        for name, value in changes.items():
            monkeypatch.setattr(fingerprints, name, value)
        fingerprints._parsed.clear()
        fingerprints._stored.clear()
        fingerprints.refresh()
        with fingerprints.remembered():
            return fingerprints.fingerprint(path, {}, [], 1)

    yield made
    fingerprints._parsed.clear()
    fingerprints._stored.clear()


def _not_to_be_called(source):
    raise AssertionError("parsed again")


def test_a_listing_remembers_what_was_parsed(listing, path, tmp_path):
    notebook(path, "from overparam import norms\nx = 1")
    first = listing()
    stored = tmp_path / "logs" / "parsed.json"
    before = stored.stat().st_mtime_ns
    never = {"_without_words": _not_to_be_called, "_import_statements": _not_to_be_called}
    assert listing(**never) == first
    assert stored.stat().st_mtime_ns == before
    # what is unknown is not taken from there
    notebook(path, "from overparam import norms\nx = 2")
    with pytest.raises(AssertionError, match="parsed again"):
        listing(**never)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"made by": 1}', '{"made by": "other"}'])
def test_a_listing_does_without_what_it_cannot_remember(listing, path, tmp_path, damage):
    notebook(path, "from overparam import norms\nx = 1")
    first = listing()
    stored = tmp_path / "logs" / "parsed.json"
    whole = stored.read_text()
    stored.write_text(damage)
    assert listing() == first
    assert stored.read_text() == whole  # written again


def test_a_listing_by_another_python_parses_again(listing, path, monkeypatch):
    notebook(path, "x = 1")
    listing()
    monkeypatch.setattr(fingerprints.platform, "python_version", lambda: "3.99.0")
    with pytest.raises(AssertionError, match="parsed again"):
        listing(_without_words=_not_to_be_called)


def test_a_listing_that_may_not_write_is_one_all_the_same(listing, path, tmp_path):
    notebook(path, "x = 1")
    (tmp_path / "logs").write_text("a file where the folder should be")
    assert listing() == fingerprints.fingerprint(path, {}, [], 1)
