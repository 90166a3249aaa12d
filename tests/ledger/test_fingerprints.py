"""The fingerprint of a record sees code, not prose, comments, outputs or unrelated modules."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from ledger import claim, fingerprints, records, registry

PAGES = {claim.page.notebook for claim in registry.registry().values()}


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
    """Writes modules of a package, and gives the fingerprint of a notebook that uses `one`."""
    package = tmp_path / "lib" / "overparam"
    (package / "data").mkdir(parents=True)
    (package / "data" / "registry.toml").touch()
    (package / "__init__.py").touch()
    monkeypatch.setattr(fingerprints, "LIBRARY", tmp_path / "lib")

    def made(page="from overparam import one\none.g()", parameters=None, **modules):
        notebook(path, page)
        for name, text in modules.items():
            (package / f"{name}.py").write_text(text)
        fingerprints.refresh()
        return fingerprints.fingerprint(path, parameters or {}, [], 1), fingerprints.library(path)

    yield made
    fingerprints.refresh()


F = "X = 1\n\n\ndef f():\n    return X\n"


@pytest.mark.parametrize(
    "code",
    [
        "from . import two\ndef g(): two.f()",
        "from .two import f\ndef g(): f()",
        "from .two import f as h\ndef g(): h()",
        "import overparam.two as t\ndef g(): t.f()",
        "from overparam import two\ndef g(): two.f()",
        "import overparam.two\ndef g(): overparam.two.f()",
        "def g():\n    from .two import f\n    f()",
        "from . import two\ndef g(): getattr(two, 'f')()",
        "from .three import between\ndef g(): between()",
        "from .two import f\nclass Base:\n    def call(self): f()\nclass g(Base): pass",
        "from .two import f\nTABLE = {'f': f}\ndef g(): TABLE['f']()",
        "from .two import f\nmade = f()\ndef g(): pass",  # at each import
    ],
)
def test_what_is_reached_counts_however_it_is_reached(library, code):
    """With all its code, but not with its words."""
    three = "from . import two\n\n\ndef between():\n    return two.f()\n"
    before = library(one=code, two=F, three=three)
    for changed in ("X = 2", "return X + 1"):
        old = changed.split("=")[0] if "=" in changed else "return X"
        other = F.replace("X = 1", changed) if "=" in changed else F.replace(old, changed)
        after = library(one=code, two=other, three=three)
        assert [a != b for a, b in zip(before, after, strict=True)] == [True, True]
    said = F.replace("f():", 'f():  # why\n    """The answer."""')
    assert library(one=code, two=said, three=three) == before


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        (F, F + "\n\ndef unused():\n    return f()\n", False),
        (F, F + "\nUNUSED = 3\n", False),
        (F, "import math\n" + F, False),
        (F, F + "\n\nclass Unused:\n    pass\n", False),
        (F, F + "\nprint(X)\n", True),  # what stands in no definition is run at each import
        (F, F + "\nunused = print(X)\n", True),
        (F, F + "\nif X:\n    X = 2\n", True),
        (F, F + "\nX = 3\n", True),
        (F, F + "\n\ndef f():\n    return 4\n", True),
        (F, F + "\n\ndef __getattr__(name):\n    return X\n", True),
    ],
)
def test_what_is_not_reached_does_not_count(library, before, after, counts):
    code = "from .two import f\ndef g(): f()"
    made = [library(one=code, two=text)[0] for text in (before, after)]
    assert (made[0] != made[1]) == counts


REFUSAL = "if x < 0:\n        told = f'{x} is negative'\n        raise ParameterError(told)"


@pytest.mark.parametrize(
    ("refusal", "counts"),
    [
        (REFUSAL, False),
        ("if x < 0: raise ParameterError('negative')", False),
        ("if x > 0: x = 1\n    elif x < 0: raise ParameterError('negative')", True),
        ("if x < 0: raise TrainingDiverged('negative')", True),  # pages go on after this one
        ("if x < 0: raise ParameterError('negative')\n    else: x = 1", True),
        ("if x < 0: x = 1", True),
        ("try:\n        if x < 0: raise ParameterError('')\n    except ValueError: x = 1", True),
    ],
)
def test_a_refused_argument_changes_no_number(library, refusal, counts):
    function = "def g(x):\n    {}\n    return x\n"
    made = [library(one=function.format(text))[0] for text in ("'A docstring.'", refusal)]
    assert (made[0] != made[1]) == counts


def test_a_function_that_only_refuses_may_refuse_more(library):
    one = "from .two import check\ndef g(x): check(x)"
    two = f"def check(x):\n    {REFUSAL}\n"
    more = f"{two}    if x > 9: raise ParameterError('large')\n"
    before, after = (library(one=one, two=text)[0] for text in (two, more))
    assert before == after


def test_what_a_condition_calls_counts(library):
    one = "from .two import f\ndef g(x):\n    if f(): raise ParameterError(x)\n    return x\n"
    before, after = (library(one=one, two=text)[0] for text in (F, F.replace("1", "2")))
    assert before != after


def test_no_page_and_no_module_goes_on_after_a_refusal():
    """Only then do refusals change no number; nor may a condition change what it looks at."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    texts = ["".join(cell["source"]) for text in texts for cell in fingerprints._cells(text)]
    modules = (fingerprints.LIBRARY / fingerprints.PACKAGE).rglob("*.py")
    texts += [module.read_text(encoding="utf-8") for module in modules]
    conditions = []
    for text in texts:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler):
                caught = ast.unparse(node.type)
                assert "ParameterError" not in caught
                assert "OverparamError" not in caught
        refusals = fingerprints._WithoutRefusals()
        refusals.visit(tree)
        conditions += refusals.conditions
    assert len(conditions) > 50
    for condition in conditions:
        for node in ast.walk(ast.parse(condition)):
            match node:
                case ast.NamedExpr():
                    raise AssertionError(condition)
                case ast.Call(func=ast.Attribute(attr=method)):
                    assert not method.endswith("_"), condition  # torch changes in place
                    assert method not in {"pop", "append", "add", "update", "setdefault"}, condition


def test_a_trainings_checkpoints_see_the_whole_of_the_modules(library):
    """A page that gets a new figure goes on with its trainings."""
    one = "def f(): pass\ndef g(): pass"
    before, after = (
        library(page=f"from overparam import one\n{use}", one=one)[1] for use in ("", "one.g()")
    )
    assert before == after
    assert library(one=one)[1] != library(one=one + "\nx = 1")[1]


def test_a_parameters_value_may_be_the_name_of_a_function(library):
    page = "from overparam import one\ngetattr(one, kind)()"
    made = {}
    for result in (1, 2):
        one = f"def h(): return {result}\ndef g(): pass"
        made[result] = [
            library(page=page, parameters={"kinds": [kind]}, one=one)[0] for kind in ("h", "g")
        ]
    assert [a == b for a, b in zip(*made.values(), strict=True)] == [False, True]


def test_a_module_counts_only_where_it_is_imported(library):
    other = F + "\nprint(X)\n"
    for code, counts in (("from . import two\ndef g(): pass", True), ("def g(): pass", False)):
        before, after = (library(one=code, two=text) for text in (F, other))
        assert [a != b for a, b in zip(before, after, strict=True)] == [counts, counts]


def test_the_library_and_the_pages_reach_nothing_by_other_ways():
    """The fingerprint would not see it: modules imported by name, definitions read by a name that
    only a run knows, imports by a star, decorators that keep what they decorate.
    """
    known = {"cache", "lru_cache", "contextmanager", "dataclass", "_checked"}
    files = (fingerprints.LIBRARY / fingerprints.PACKAGE).rglob("*.py")
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    texts |= {page: fingerprints._notebook_code(page) for page in PAGES}
    for file, text in texts.items():
        for word in ("import_module", "__import__", "import *", "eval(", "exec(", "__subclasses__"):
            assert f" {word}" not in text, file
        tree = ast.parse(text)
        imported = {
            alias.asname or alias.name.split(".")[-1]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        } - {"torch"}
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id="getattr" | "vars"), args=[ast.Name(id=read), *_]):
                    assert read not in imported, file
        for statement in tree.body if file not in PAGES else []:
            for decorator in getattr(statement, "decorator_list", []):
                called = getattr(decorator, "func", decorator)
                assert getattr(called, "attr", getattr(called, "id", None)) in known, file


def test_of_the_library_claims_use_what_is_counted_for_every_page():
    code = fingerprints._code(Path(claim.__file__))
    used = [
        f"from {base} import {name}"
        for base, names in fingerprints._import_statements(code)
        for name in names
        if base.startswith("overparam")
        and not {base, f"{base}.{name}"} & (fingerprints.NEUTRAL - {"overparam"})
    ]
    assert used == [fingerprints.FOR_ALL]


@pytest.mark.parametrize("page", ["arora2019-thm31-linear-rate", "noy2021-lem1-identity"])
def test_what_a_page_runs_of_the_library_is_reached(page, tmp_path):
    """Seen while it runs: every function of the library that is called."""
    command = [sys.executable, Path(__file__).with_name("calls.py"), page]
    environment = os.environ | {"OVERPARAM_FIGURES": str(tmp_path / "figures")}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    called, unseen = json.loads(done.stdout.splitlines()[-1])
    assert len(called) > 20
    assert not unseen


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
