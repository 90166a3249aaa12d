"""The list of all claims and the page of one, as a terminal of 80 columns and a pipe show them."""

import re

import pytest
from typer.testing import CliRunner

from overparam import paths
from overparam.errors import ParameterError
from overparam.record import checks
from overparam.run import cli, runner, show
from overparam.run.site import markup

PLAIN = re.compile(r"[^\x00-\x1f\x7f]*")  # no control characters


@pytest.fixture
def committed(monkeypatch):
    """The command line, with the records of the project: its output."""
    monkeypatch.setattr(paths, "FIGURES", paths.ROOT / "figures")
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *words: CliRunner().invoke(cli.app, words, catch_exceptions=False).stdout


def state(verdict, stale=False):
    return {"verdict": verdict, "stale": stale}


def row(claim, **states):
    return {"claim": claim, "paper": claim.partition("-")[0], "profiles": {"smoke": state(None, True), **states}}


ROWS = [
    row("toy2020-a", laptop=state("reproduced"), desk=state("partly")),
    row("toy2020-b", laptop=state("reproduced"), desk=state("partly", True)),
    row("toy2020-c", smoke=state("not testable at this scale", True)),
    row("toy2020-d", smoke=state("reproduced"), laptop=state("contradicted", True)),
    row("toy2021-a"),
    row("toy2021-b", laptop={"verdict": None, "stale": True, "error": "not readable"}),
]


def listed(*of):
    return [line.plain for line in show.listing(ROWS, *of)]


def test_the_verdict_is_that_of_the_largest_size_of_the_present_sources():
    assert listed() == [
        "toy2020: 1 reproduced, 1 partly, 1 contradicted, 1 not testable",
        "  toy2020-a  partly           desk",
        "  toy2020-b  reproduced       laptop",
        "  toy2020-c  not testable*    smoke",
        "  toy2020-d  contradicted*    laptop",
        "",
        "toy2021: 1 unreadable, 1 not run",
        "  toy2021-a  not run",
        "  toy2021-b  unreadable",
    ]


def test_a_list_can_be_of_one_paper_and_of_one_verdict():
    assert listed(["toy2021"])[1:] == ["  toy2021-a  not run", "  toy2021-b  unreadable"]
    assert [line.split()[0] for line in listed((), "not") if line] == ["toy2020:", "toy2020-c", "toy2021:", "toy2021-a"]
    with pytest.raises(ParameterError, match="did you mean toy202"):
        listed(["toy2022"])
    with pytest.raises(ParameterError, match="unknown verdict 'good'; there are reproduced, partly"):
        listed((), "good")


def test_the_list_fits_into_80_columns_and_a_pipe_with_every_id_whole(committed):
    lines = committed("list").splitlines()
    assert all(len(line) <= 80 and PLAIN.fullmatch(line) for line in lines)
    assert sorted(line.split()[0] for line in lines if line.startswith("  ")) == sorted(checks.registry())
    assert max(len(f"  {claim}  not reproduced*  laptop") for claim in checks.registry()) <= 80


def test_every_claim_can_be_shown(committed):
    for claim in checks.registry():
        text = show.shown(claim)
        assert "\nFound    " in text
        assert f"\n  overparam run {claim} --profile " in text
        for name in checks.profile_parameters(claim, "smoke")[0]:
            assert name == "profile" or f"\n  {name} = " in text
        figures = re.findall(r"^ +(\S+\.png)$", text, re.MULTILINE)
        assert figures
        assert all((paths.ROOT / figure).exists() for figure in figures)
        whole = "  overparam run", "  make lab", "  /", "  figures"  # commands and paths, to be copied
        assert [s for s in text.splitlines() if len(s) > 80 and not s.startswith(whole)] == []


def test_a_claim_shows_its_checks_with_what_the_paper_has(committed):
    text = committed("show", "arora2019-fig1-convergence-labels")
    record = runner.record("arora2019-fig1-convergence-labels", "laptop")
    assert text.count("\n  [R] ") == sum(row["tag"] == "R" for row in record["checks"])
    assert re.search(r"\n  n = 200 # training images; the paper: 10,000\n +laptop 500; desk 10000; paper 10000\n", text)


def test_formulas_and_emphasis_are_plain_in_a_terminal():
    for text, wanted in (
        (r"$\mathbb{E}\,\phi(\alpha g)^2 \ge \delta^2$", "E phi(alpha g)^2 >= delta^2"),
        (r"$O(1/\sqrt m)$, $\frac m{L\log m}$, $\tfrac12$", "O(1/sqrt(m)), m/(L log m), 1/2"),
        (r"$m\omega^{2/3}$ of *Frei et al.*", "m omega^(2/3) of Frei et al."),
        ("3 * 4 * 5 **bold** `code` [words](a.md)", "3 * 4 * 5 bold code words"),
    ):
        assert markup.plain(text) == wanted
