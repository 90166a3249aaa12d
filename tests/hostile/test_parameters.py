"""Parameters, claim ids and folders as commands, code, templates and paths: they stay what they are."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from papermill.translators import translate_parameters
from toy_claim import CHECKS, CLAIM, cells, tried

from overparam.errors import ParameterError
from overparam.record import checks
from overparam.record.parameters import notebook_parameters, validated
from overparam.run import cli, runner

INJECTIONS = [
    '"; open("pwned", "w").close(); "', "'); open('pwned', 'w').close(); ('", "\\", '\\"', '"""', "#", "{}", "{word}",
    "{seed.__class__}", "{0}", "{{ 7 * 7 }}", "{% raw %}", "%s%n", "$(touch pwned)", "`touch pwned`", "; touch pwned",
    "| touch pwned", "&& touch pwned", "../../pwned", "a b", "--config", "-p", "é ∞ 字", "[red]x[/blue]", "a=b",
]  # fmt: skip
HUGE = 10**400
TEXTS = st.text(max_size=20) | st.sampled_from(INJECTIONS)
NUMBERS = st.integers() | st.sampled_from([HUGE, -HUGE, 2**63, 2**31]) | st.floats()
VALUES = st.booleans() | NUMBERS | TEXTS
GIVEN = VALUES | st.none() | st.lists(VALUES, max_size=3) | st.dictionaries(TEXTS, VALUES, max_size=2)
SAME = st.one_of(
    *(st.lists(kind, min_size=1, max_size=3) for kind in (st.booleans(), st.integers(), st.floats(), TEXTS))
)


@given(value=GIVEN)
def test_a_value_is_refused_or_of_the_type_of_its_default(toy, value):
    defaults = notebook_parameters(toy.notebook)
    for name, default in defaults.items():
        found = tried(lambda name=name: validated({name: value}, defaults, {}), name)
        if found:
            assert type(found[name]) is type(default)
            assert found[name] == value
            json.dumps(found, allow_nan=False, ensure_ascii=False).encode()


@given(name=TEXTS, value=VALUES)
def test_a_name_is_known_or_refused(toy, name, value):
    defaults = notebook_parameters(toy.notebook)
    if name not in defaults:
        with pytest.raises(ParameterError, match="unknown parameter"):
            validated({name: value}, defaults, {})


@given(value=st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS | SAME)
def test_literals_of_a_cell_are_read_back(toy, value):
    toy.write(notebook=cells(parameters=f"a = {value!r}"))
    if "nan" not in repr(value) and "inf" not in repr(value):
        assert notebook_parameters(toy.notebook) == {"a": value}


@given(text=st.text(alphabet=st.sampled_from("a=1.,'\"[]{}()#\n\\ \0é-+*:"), max_size=30))
def test_any_text_for_a_cell_gives_parameters_or_our_error(toy, text):
    toy.write(notebook=cells(parameters=text))
    found = tried(lambda: notebook_parameters(toy.notebook), toy.notebook.name)
    assert found is None or all(name.isidentifier() for name in found)


@given(word=TEXTS, rate=st.floats() | st.integers(), sizes=st.lists(st.integers(min_value=1), min_size=1, max_size=3))
def test_what_papermill_injects_gives_just_these_values(toy, word, rate, sizes):
    defaults = notebook_parameters(toy.notebook)
    values = tried(lambda: validated({"word": word, "rate": rate, "sizes": sizes}, defaults, {}))
    if values is None:
        return
    namespace = {}
    exec(translate_parameters("python3", "python", values, "Parameters"), {}, namespace)
    assert namespace == values
    assert {name: type(value) for name, value in namespace.items()} == {name: type(v) for name, v in values.items()}


@given(text=TEXTS | st.text(alphabet=st.sampled_from("nwrs=1.,'\"[]{}()#\\ -+*:j"), max_size=30))
def test_a_word_of_the_command_line_is_an_assignment_or_refused(toy, text):
    for word in (text, f"n={text}", f"word={text}", f"sizes={text}"):
        name_and_value = tried(lambda word=word: cli._assignment(word, CLAIM))
        if name_and_value:
            tried(lambda pair=name_and_value: runner.plan(CLAIM, "smoke", dict([pair])))


@pytest.mark.parametrize(
    "value", ["{[]: 1}", "-" * 100_000 + "1", "(" * 300, "[" * 150 + "]" * 150, "1" * 5000, "0x" + "f" * 5000, "\0"],
    ids=["unhashable", "deep", "brackets", "lists", "long", "long in base 16", "NUL"],
)  # fmt: skip
def test_words_that_break_a_parser_of_literals(toy, value):
    with pytest.raises(ParameterError, match=r"n is an integer of 20000 bits|n must be int"):
        runner.plan(CLAIM, "smoke", dict([cli._assignment(f"n={value}", CLAIM)]))


def test_an_unknown_claim_is_an_unknown_claim(toy):
    for name in [*INJECTIONS, "../guo2024-hostile", "guo2024-hostile/", "", "\udcff"]:
        assert tried(lambda name=name: checks.spec(name), "unknown claim") is None


ECHO = f'from overparam.record.claims import Claim\nclaim = Claim("{CLAIM}", globals())\nopen("word", "w").write(word)'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A project with one notebook that writes its parameter `word` to a file, in a folder with a hostile name."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "faults")
    import toys

    made = toys.project(tmp_path / "{seed} {0} 'a' \"b\" $(touch pwned) `touch pwned`; touch pwned #é")
    (made.notebooks / "checks" / "toy2020.toml").write_text(CHECKS)
    code = [ECHO, 'claim.check("value", 0.5)\nclaim.report()']
    (made.notebooks / f"{CLAIM}.ipynb").write_text(cells(*code))
    return made


def test_a_batch_runs_in_a_folder_of_any_name_with_any_words(folder):
    word = " ".join(INJECTIONS)
    (folder.notebooks / "profiles.toml").write_text(f"[{CLAIM}.smoke]\nword = {json.dumps(word)}")
    code, out, err = folder.run("figures")
    assert code == 0, out + err
    assert json.loads(folder.record(CLAIM))["parameters"]["word"] == word
    assert (folder.notebooks / "word").read_text() == word
    assert list(folder.root.parent.rglob("*pwned*")) == [folder.root]


def command(monkeypatch, capsys, *words):
    """(exit code, standard output, standard error) of the command line."""
    monkeypatch.setattr(sys, "argv", ["overparam", *words])
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, *capsys.readouterr()


@pytest.mark.parametrize("name", ["../x", "x; touch pwned", "{x}", "$(touch pwned)", "\udcff"])
def test_the_command_line_says_what_it_does_not_know(toy, monkeypatch, capsys, name):
    for words in (["run", name], ["figures", "--claim", name], ["run", CLAIM, "-p", f"{name}=1"]):
        code, out, err = command(monkeypatch, capsys, *words)
        assert (code, out) == (1, "")
        assert err.startswith("error: unknown ")
        assert len(err.splitlines()) == 1


def test_sources_with_markup_are_listed_as_they_are(toy, monkeypatch, capsys):
    toy.write(registered=CHECKS.replace("Lemma 1", "Lemma [bold]1[/red] [2]"))
    code, out, _ = command(monkeypatch, capsys, "list")
    assert code == 0
    assert "Lemma [bold]1[/red] [2]" in out
