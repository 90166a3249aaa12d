"""Notebooks, tables and records made to break their parsers: read, or refused in one line that names the file."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_claim import CHECKS, CLAIM, cells, tried

from overparam import paths
from overparam.errors import ClaimError
from overparam.record import checks
from overparam.record.parameters import notebook_parameters
from overparam.run import diff, runner
from overparam.run.site import records

LONG = "1" * 5000  # digits: more than an integer may have in a text
BROKEN_JSON = {
    "empty": b"",
    "deep": b"[" * 100_000,
    "long integer": f'{{"cells": {LONG}}}'.encode(),
    "no UTF-8": b'{"cells": "\xff\xfe"}',
    "a list": b"[]",
    "cut": b'{"cells": [{"cell_type": "code"',
    "one line of 10 MB": b'"' + b"x" * 10_000_000,
}


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


@pytest.mark.parametrize("code", ["%matplotlib inline", "x = " + "-" * 100_000 + "1"], ids=["magic", "deep"])
def test_code_that_is_not_python_is_named(toy, code):
    notebook = json.loads(cells("x = 1"))
    notebook["cells"][1]["source"] = code
    toy.write(notebook=json.dumps(notebook))
    with pytest.raises(ClaimError, match=r"guo2024-hostile\.ipynb, .* is not readable code"):
        runner.stale(CLAIM, "smoke")


BROKEN_TOML = {
    "deep": "a = " + "[" * 10_000,
    "long integer": f"a = {LONG}",
    "given twice": "[a]\n[a]",
    "no UTF-8": b"a = '\xff'",
    "cut": 'a = "',
}


@pytest.mark.parametrize("place", ["registered", "profiles"])
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


@given(data=st.data(), place=st.sampled_from(["notebook", "profiles", "registered"]))
def test_a_source_with_a_flipped_bit(toy, data, place):
    """Read as something else, or refused by name, by all that reads it before a run."""
    toy.write(profiles=f"[{CLAIM}.ranges]\nrate = [0.0, 1.0]\n\n[{CLAIM}.smoke]\nn = 7\n")
    content = bytearray(getattr(toy, place).read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    getattr(toy, place).write_bytes(content)
    checks.registry.cache_clear()
    tried(runner.overview)
    tried(lambda: [runner.fingerprint(CLAIM, "smoke"), [check.outcome(0.5) for check in checks.spec(CLAIM).checks]])


TABLES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.sampled_from(["a", "smoke", "../x", "{0}", "<b>"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["n", "rate", "a b"]), inner, max_size=3)
    ),
    max_leaves=6,
)


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


@pytest.mark.parametrize("name", ["../../x", "/x", "x", "guo2024-a b", "guo2024-$(x)", "guo2024-{x}", "guo2024-a\n"])
@pytest.mark.parametrize("part", ["id", "template"])
def test_an_id_is_no_path_and_no_command(toy, name, part):
    table = f"[{json.dumps(name)}]\n" if part == "id" else f"[{CLAIM}]\ntemplate = {json.dumps(name)}\n"
    toy.write(registered=table + 'title = "A"\nsource = "B"\nkind = "lemma"\nchecks = []\n')
    with pytest.raises(ClaimError, match=r"(?s)guo2024\.toml, .*an id is a paper and words"):
        checks.registry()


def test_an_id_stands_in_one_table(toy):
    (paths.CHECKS / "other.toml").write_text(CHECKS)
    with pytest.raises(ClaimError, match="given twice"):
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
