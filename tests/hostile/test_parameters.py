"""Parameters, claim ids and folders as commands, code, templates and paths: they stay what they are."""

import json
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
TEXTS = st.text(max_size=20) | st.sampled_from(INJECTIONS)


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
