"""The list of all claims and the page of one, as a terminal of 80 columns and a pipe show them."""

import re

import pytest
from typer.testing import CliRunner

from ledger import cli, markup, paths, registry, show
from overparam.errors import ParameterError

PLAIN = re.compile(r"[^\x00-\x1f\x7f]*")  # no control characters


@pytest.fixture
def committed(monkeypatch):
    """The command line, with the records of the project: its output."""
    monkeypatch.setattr(paths, "FIGURES", paths.ROOT / "figures")
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *words: CliRunner().invoke(cli.app, words, catch_exceptions=False).stdout


def state(verdict, stale=False):
    return {"verdict": verdict, "stale": stale}


def row(claim, kind, **states):
    return {
        "claim": claim,
        "paper": claim[:7],
        "kind": kind,
        "sizes": {"smoke": state(None, True), **states},
    }


ROWS = [
    row("toy2020-a", "theorem", laptop=state("holds"), desk=state("holds in part")),
    row(
        "toy2020-b", "experiment", laptop=state("reproduced"), desk=state("partly reproduced", True)
    ),
    row("toy2020-c", "experiment", smoke=state("not tested", True)),
    row("toy2020-d", "theorem", smoke=state("holds"), laptop=state("fails", True)),
    row("toy2021-a", "ours"),
    row("toy2021-b", "ours", laptop={"verdict": None, "stale": True, "error": "not readable"}),
]


def listed(*of):
    return [line.plain for line in show.listing(ROWS, *of)]


def test_the_verdict_is_that_of_the_largest_size_of_the_present_sources():
    assert listed() == [
        "toy2020: 2 experiments (1 reproduced, 1 not tested), 2 theorems (1 holds in",
        " part, 1 fails)",
        "  toy2020-a  holds in part        desk",
        "  toy2020-b  reproduced           laptop",
        "  toy2020-c  not tested*          smoke",
        "  toy2020-d  fails*               laptop",
        "",
        "toy2021: 2 claims of our own (1 unreadable, 1 not run)",
        "  toy2021-a  not run",
        "  toy2021-b  unreadable",
    ]


def test_a_list_can_be_of_one_paper_and_of_one_verdict():
    assert listed(["toy2021"])[1:] == ["  toy2021-a  not run", "  toy2021-b  unreadable"]
    assert [line.split()[0] for line in listed((), "not") if line] == [
        "toy2020:",
        "toy2020-c",
        "toy2021:",
        "toy2021-a",
    ]
    with pytest.raises(ParameterError, match="did you mean toy202"):
        listed(["toy2022"])
    with pytest.raises(
        ParameterError, match="unknown verdict 'good'; there are reproduced, partly"
    ):
        listed((), "good")


def test_the_list_fits_into_80_columns_and_a_pipe_with_every_id_whole(committed):
    lines = committed("list").splitlines()
    assert all(len(line) <= 80 and PLAIN.fullmatch(line) for line in lines)
    assert sorted(line.split()[0] for line in lines if line.startswith("  ")) == sorted(
        registry.registry()
    )


def test_every_claim_can_be_shown(committed):
    for claim in registry.registry():
        text = show.shown(claim)
        assert "\nFound    " in text
        assert f"\n  overparam run {claim} --profile " in text
        for name in registry.parameters_at(claim, "smoke"):
            assert name == "profile" or f"\n  {name} = " in text
        figures = re.findall(r"^ +(\S+\.png)$", text, re.MULTILINE)
        assert figures
        assert all((paths.ROOT / figure).exists() for figure in figures)
        whole = (
            "  overparam run",
            "  make lab",
            "  /",
            "  figures",
        )  # commands and paths, to be copied
        assert [s for s in text.splitlines() if len(s) > 80 and not s.startswith(whole)] == []


def test_a_claim_shows_what_is_registered_and_what_was_found(toy, monkeypatch):
    before = show.shown(toy.id)
    for words in (
        "Found    nothing yet: it has not been run",
        "laptop 20",
        "rate = 0.5\n      from 0.0 to 1.0",
    ):
        assert words in before
    toy.run(monkeypatch)
    after = show.shown(toy.id)
    for words in (
        "Found    1 of 1 check holds.",
        "As printed: Follows, but for",
        "holds; 0.5 measured; at most 1",
    ):
        assert words in after


def test_formulas_and_emphasis_are_plain_in_a_terminal():
    for text, wanted in (
        (r"$\mathbb{E}\,\phi(\alpha g)^2 \ge \delta^2$", "E phi(alpha g)^2 >= delta^2"),
        (r"$O(1/\sqrt m)$, $\frac m{L\log m}$, $\tfrac12$", "O(1/sqrt(m)), m/(L log m), 1/2"),
        (r"neurons with $\vert z_j\vert \le \varepsilon$", "neurons with | z_j | <= epsilon"),
        (r"$m\omega^{2/3}$ of *Frei et al.*", "m omega^(2/3) of Frei et al."),
        ("3 * 4 * 5 **bold** `code` [words](a.md)", "3 * 4 * 5 bold code words"),
    ):
        assert markup.plain(text) == wanted
