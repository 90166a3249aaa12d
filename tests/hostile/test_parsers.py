"""Notebooks, tables and records made to break their parsers: read, or refused in one line that names the file."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_claim import CHECKS, CLAIM, cells, tried

from overparam import paths
from overparam.errors import ClaimError
from overparam.record import checks, render
from overparam.record.parameters import notebook_parameters
from overparam.run import diff, runner
from overparam.run.site import records

LONG = "1" * 5000  # digits: more than an integer may have in a text
BROKEN_JSON = {
    "empty": b"",
    "deep": b"[" * 100_000,
    "deep and closed": b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "long integer": f'{{"cells": {LONG}}}'.encode(),
    "no UTF-8": b'{"cells": "\xff\xfe"}',
    "byte order mark": b"\xef\xbb\xbf{}",
    "NUL": b'{"cells": [\0]}',
    "a list": b"[]",
    "null": b"null",
    "NaN": b"NaN",
    "cut": b'{"cells": [{"cell_type": "code"',
    "one line of 10 MB": b'"' + b"x" * 10_000_000,
    "given twice": b'{"cells": 1, "cells": 2}',
    "half a character": b'{"verdict": "\\ud800"}',
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("content", BROKEN_JSON.values(), ids=BROKEN_JSON)
def test_a_file_that_is_no_notebook(toy, content):
    toy.write(notebook=content)
    for read in (
        lambda: notebook_parameters(toy.notebook),
        lambda: runner.plan(CLAIM, "smoke"),
        lambda: records.read_notebook(toy.notebook),
    ):
        with pytest.raises(ClaimError, match=toy.notebook.name) as caught:
            read()
        assert len(str(caught.value)) < 500


def replaced(content, path, value):
    """The same JSON with a value in place of what stands at a path."""
    if not path:
        return value
    inner = replaced(content[path[0]], path[1:], value)
    return (
        content | {path[0]: inner}
        if isinstance(content, dict)
        else [*content[: path[0]], inner, *content[path[0] + 1 :]]
    )


def paths_in(content, path=()):
    """Paths to all parts of some JSON."""
    yield path
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in inner:
        yield from paths_in(value, (*path, key))


NOTEBOOK = json.loads(cells("x = 1"))


@given(value=ANYTHING, path=st.sampled_from(list(paths_in(NOTEBOOK))))
def test_any_part_of_a_notebook_may_be_anything(toy, value, path):
    toy.write(notebook=json.dumps(replaced(NOTEBOOK, path, value)))
    for read in (runner.stale, runner.plan, lambda *_: records.read_notebook(toy.notebook)):
        tried(lambda read=read: read(CLAIM, "smoke"), toy.notebook.name)


@pytest.mark.parametrize(
    "cell",
    [
        "a = b", "a = [1, 'x']", "a = []", "a = None", "a = {'b': 1}", "a = (1, 2)", "a = 1j", "a = b'x'", "a = b = 1",
        "a, b = 1, 2", "a += 1", "print(1)", "a.b = 1", "a = __import__('os').system('x')", f"a = {LONG}", "a = \0",
        "a = " + "(" * 300 + ")" * 300, "a = " + "-" * 100_000 + "1", "a = 1\n  b = 2", "a = '\ud800'",
    ],
    ids=lambda cell: cell[:20].encode("unicode_escape").decode(),
)  # fmt: skip
def test_a_parameters_cell_holds_plain_literals_alone(toy, cell):
    toy.notebook.write_text(
        json.dumps({"cells": [{"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": cell}]})
    )
    with pytest.raises(ClaimError, match="literals tagged 'parameters'"):
        notebook_parameters(toy.notebook)


@pytest.mark.parametrize(
    "code",
    ["%matplotlib inline", "x = ", "x = \0", "x = " + "-" * 100_000 + "1", "(" * 300 + ")" * 300, "x = '\ud800'"],
    ids=lambda code: code[:20].encode("unicode_escape").decode(),
)
def test_code_that_is_not_python_is_named(toy, code):
    notebook = json.loads(cells("x = 1"))
    notebook["cells"][1]["source"] = code
    toy.write(notebook=json.dumps(notebook))
    with pytest.raises(ClaimError, match=r"guo2024-hostile\.ipynb, .* is not readable code"):
        runner.stale(CLAIM, "smoke")


BROKEN_TOML = {
    "deep": "a = " + "[" * 10_000,
    "deep and closed": "a = " + "[" * 10_000 + "]" * 10_000,
    "long integer": f"a = {LONG}",
    "NUL": "a = '\0'",
    "given twice": "[a]\n[a]",
    "a date that is none": "a = 2020-02-31",
    "no UTF-8": b"a = '\xff'",
    "half a character": 'a = "\\uD800"',
    "cut": 'a = "',
    "one line of 10 MB": "a = " + "x" * 10_000_000,
}


@pytest.mark.parametrize("place", ["checks", "profiles"])
@pytest.mark.parametrize("content", BROKEN_TOML.values(), ids=BROKEN_TOML)
def test_a_file_that_is_no_table(toy, place, content):
    toy.write(**{place: content})
    with pytest.raises(ClaimError, match="is not valid TOML") as caught:
        checks.profile_parameters(CLAIM, "smoke")
    assert str(getattr(toy, place)) in str(caught.value)
    assert len(str(caught.value)) < 500


def toml(value):
    """A value in TOML, which has no null."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)  # nan and inf are TOML's own words
    return json.dumps(value)


TABLES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.sampled_from(["a", "smoke", "../x", "{0}", "<b>"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["n", "rate", "a b"]), inner, max_size=3)
    ),
    max_leaves=6,
)


PLACES = [
    "{0}", "{{laptop = {0}}}", "{{smoke = {0}}}", "{{ranges = {0}}}", "{{smoke = {{resources = {0}}}}}",
    "{{ranges = {{n = {0}}}}}", "{{ranges = {{word = {0}}}}}", "{{smoke = {{n = {0}}}}}",
]  # fmt: skip


@given(value=TABLES, place=st.sampled_from(PLACES), profile=st.sampled_from(["smoke", "laptop"]))
def test_a_table_of_profiles_may_hold_anything(toy, value, place, profile):
    toy.write(profiles=f"{CLAIM} = {place.format(toml(value))}")
    if found := tried(lambda: checks.profile_parameters(CLAIM, profile)):
        parameters, ranges, resources = found
        assert parameters.keys() == notebook_parameters(toy.notebook).keys()
        assert (type(ranges), type(resources)) == (dict, dict)


@given(
    value=TABLES,
    key=st.sampled_from(["title", "source", "kind", "notebook", "template", "checks", "partly_if", "more"]),
)
def test_a_table_of_checks_may_hold_anything(toy, value, key):
    table = {"title": "A", "source": "B", "kind": "lemma", "checks": []} | {key: value}
    rows = "\n".join(f"{name} = {toml(inner)}" for name, inner in table.items())
    toy.write(registered=f"[{CLAIM}]\n{rows}\n" + CHECKS.replace(CLAIM, "guo2024-other"))
    if spec := tried(lambda: checks.spec(CLAIM), "guo2024.toml"):
        assert all(isinstance(text, str) for text in (spec.title, spec.source, spec.kind))
        assert spec.path.parent == paths.NOTEBOOKS
        assert checks.verdict([], spec.partly_if) in checks.VERDICTS


@given(
    value=TABLES,
    key=st.sampled_from(["name", "tag", "wording", "relation", "threshold", "profiles", "paper_value", "reason"]),
)
def test_a_check_may_hold_anything(toy, value, key):
    row = {"name": "a", "tag": "R", "wording": "b", "relation": "<=", "threshold": 1.0} | {key: value}
    toy.write(registered=f'[{CLAIM}]\ntitle = "A"\nsource = "B"\nkind = "lemma"\nchecks = [{toml(row)}]')
    if spec := tried(lambda: checks.spec(CLAIM), "guo2024.toml"):
        assert spec.checks[0].outcome(0.5) in ("holds", "fails")
        assert render.required(vars(spec.checks[0]))
        assert json.dumps(vars(spec.checks[0]), allow_nan=False)


@pytest.mark.parametrize(
    "name", ["../../x", "/x", "x", "guo2024-", "guo2024-a b", "guo2024-$(x)", "guo2024-{x}", "guo2024-é", "guo2024-a\n"]
)
@pytest.mark.parametrize("part", ["id", "template"])
def test_an_id_is_no_path_and_no_command(toy, name, part):
    table = f"[{json.dumps(name)}]\n" if part == "id" else f"[{CLAIM}]\ntemplate = {json.dumps(name)}\n"
    toy.write(registered=table + 'title = "A"\nsource = "B"\nkind = "lemma"\nchecks = []\n')
    with pytest.raises(ClaimError, match=r"(?s)guo2024\.toml, .*an id is a paper and words"):
        checks.registry()


def test_an_id_stands_in_one_table(toy):
    (paths.CHECKS / "other.toml").write_text(CHECKS)
    with pytest.raises(ClaimError, match="given once"):
        checks.registry()


def write_record(content, folder):
    path = folder / "laptop" / CLAIM / "result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    (path.parent / "notebook.ipynb").write_text(cells())
    return path


@pytest.mark.parametrize("content", BROKEN_JSON.values(), ids=BROKEN_JSON)
def test_a_file_that_is_no_record(toy, figures, content):
    toy.write(profiles=f"[{CLAIM}.laptop]\nn = 6")
    path = write_record(content, figures)
    assert runner.stale(CLAIM, "laptop")
    (row,) = runner.overview()
    assert (row["profiles"]["laptop"]["verdict"], row["profiles"]["laptop"]["stale"]) == (None, True)
    for read in (
        lambda: runner.record(CLAIM, "laptop"),
        lambda: records.load(figures),
        lambda: diff.at_present(figures),
    ):
        with pytest.raises(ClaimError, match=CLAIM) as caught:
            read()
        assert len(str(caught.value)) < len(str(path)) + 500


RECORD = paths.ROOT / "figures" / "laptop" / "arora2019-fig1-convergence-labels" / "result.json"


@given(value=ANYTHING, path=st.sampled_from(list(paths_in(json.loads(RECORD.read_text())))))
def test_any_part_of_a_record_may_be_anything(toy, figures, value, path):
    """What is taken for complete can be compared and shown."""
    record = replaced(json.loads(RECORD.read_text()), path, value)
    path = write_record(json.dumps(record).encode(), figures)
    found = tried(lambda: records.complete(records.read_json(path), path), CLAIM)
    if found is None:
        return
    old, new = (diff.Records({("laptop", CLAIM): r}, {}, None) for r in (json.loads(RECORD.read_text()), found))
    diff.changes(old, new)
    records.key_numbers(found)
    for row in found["checks"]:
        assert all([records.required(row), render.outcome(row), records.number(row["value"])])
