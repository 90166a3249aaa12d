"""Parameters, claim ids and folders as commands, code, templates and paths.

They stay what they are.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from papermill.translators import translate_parameters

import toy
from copies import Copy
from ledger import cli, records, registry
from ledger.parameters import validated
from overparam.errors import ParameterError
from toy import tried

INJECTIONS = [
    '"; open("pwned", "w").close(); "',
    "'); open('pwned', 'w').close(); ('",
    "\\",
    '\\"',
    '"""',
    "#",
    "{}",
    "{word}",
    "{seed.__class__}",
    "{0}",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "%s%n",
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned",
    "| touch pwned",
    "&& touch pwned",
    "../../pwned",
    "a b",
    "--config",
    "-p",
    "é ∞ 字",
    "[red]x[/blue]",
    "a=b",
]
TEXTS = st.text(max_size=20) | st.sampled_from(INJECTIONS)


@given(
    word=TEXTS,
    rate=st.floats() | st.integers(),
    sizes=st.lists(st.integers(min_value=1), min_size=1, max_size=3),
)
def test_what_papermill_injects_gives_just_these_values(word, rate, sizes):
    defaults = {"word": "a", "rate": 0.5, "sizes": [1, 2]}
    values = tried(lambda: validated({"word": word, "rate": rate, "sizes": sizes}, defaults, {}))
    if values is None:
        return
    namespace = {}
    exec(translate_parameters("python3", "python", values, "Parameters"), {}, namespace)
    assert namespace == values
    assert {name: type(value) for name, value in namespace.items()} == {
        name: type(v) for name, v in values.items()
    }


@given(text=TEXTS | st.text(alphabet=st.sampled_from("widthrs=1.,'\"[]{}()#\\ -+*:j"), max_size=30))
def test_a_word_of_the_command_line_is_an_assignment_or_refused(claim_id, text):
    for word in (text, f"width={text}", f"word={text}", f"sizes={text}"):
        name_and_value = tried(lambda word=word: cli._assignment(word, claim_id))
        if name_and_value:
            tried(lambda pair=name_and_value: records.plan(claim_id, "smoke", dict([pair])))


@pytest.mark.parametrize(
    "value",
    [
        "{[]: 1}",
        "-" * 100_000 + "1",
        "(" * 300,
        "[" * 150 + "]" * 150,
        "1" * 5000,
        "0x" + "f" * 5000,
        "\0",
    ],
    ids=["unhashable", "deep", "brackets", "lists", "long", "long in base 16", "NUL"],
)
def test_words_that_break_a_parser_of_literals(claim_id, value):
    with pytest.raises(
        ParameterError, match=r"width is an integer of 20000 bits|width must be int"
    ):
        records.plan(claim_id, "smoke", dict([cli._assignment(f"width={value}", claim_id)]))


def test_an_unknown_claim_is_an_unknown_claim(claim_id):
    for name in [*INJECTIONS, f"../{claim_id}", f"{claim_id}/", "", "\udcff"]:
        assert tried(lambda name=name: registry.claim(name), "unknown claim") is None


def test_a_batch_runs_in_a_folder_of_any_name_with_any_words(tmp_path):
    made = Copy(tmp_path / "{seed} {0} 'a' \"b\" $(touch pwned) `touch pwned`; touch pwned #é")
    word, claim = " ".join(INJECTIONS), "toy2020-echo"
    toy.write(
        made.notebooks,
        claim,
        "from ledger import paths\n"
        '(paths.NOTEBOOKS / "toy2020" / "word").write_text(word)\nvalue = 0.5',
        f"[sizes.smoke]\nword = {json.dumps(word)}",
    )
    code, out, err = made.run("figures")
    assert code == 0, out + err
    record = json.loads((made.figures / "smoke" / claim / "result.json").read_text())
    assert record["parameters"]["word"] == word
    assert (made.notebooks / "toy2020" / "word").read_text() == word
    assert list(tmp_path.rglob("*pwned*")) == [made.root]
