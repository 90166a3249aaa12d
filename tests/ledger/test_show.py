"""The list of all claims and the screen of one, as terminals and a pipe show them."""

import io
import os
import re
import tomllib

import pytest
from typer.testing import CliRunner

from ledger import cli, markup, new, paths, records, registry, show
from overparam.errors import ParameterError

PLAIN = re.compile(r"[^\x00-\x1f\x7f]*")  # no control characters
COMMANDS = re.compile(r"( {2}|(Run again|Change it|Everything) +)overparam (run|show) ")
TO_BE_COPIED = re.compile(r" +(/|figures/)|Notebook +|  make lab|  \S+$")  # paths, ids


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    """A terminal of 80 columns; terminal(columns) makes it another one."""
    monkeypatch.setenv("COLUMNS", "80")
    return lambda columns: monkeypatch.setenv("COLUMNS", str(columns))


@pytest.fixture
def committed(monkeypatch):
    """The command line, with the records of the project: its output."""
    monkeypatch.setattr(paths, "FIGURES", paths.ROOT / "figures")
    return lambda *words: CliRunner().invoke(cli.app, words, catch_exceptions=False).stdout


@pytest.fixture(scope="module")
def overview():
    """The rows of the list of the project's claims, which take seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "FIGURES", paths.ROOT / "figures")
        return records.overview()


def broken(text, columns):
    """Lines that are wider than a terminal, but for commands, paths and ids."""
    wide = [line for line in text.splitlines() if len(line) > columns]
    return [line for line in wide if not COMMANDS.match(line) and not TO_BE_COPIED.match(line)]


def state(verdict, stale=False):
    return {"verdict": verdict, "stale": stale}


def row(claim, kind, title="A toy", **states):
    return {
        "claim": claim,
        "paper": claim[:7],
        "kind": kind,
        "title": title,
        "source": "Lemma 1",
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


def test_a_claim_with_the_title_of_the_template_is_not_written_yet():
    template = tomllib.loads(new.TEMPLATE.with_suffix(".toml").read_text(encoding="utf-8"))
    rows = [row("toy2020-a", "theorem", template["title"], laptop=state("holds"))]
    assert [line.plain for line in show.listing(rows)] == [
        "toy2020: 1 theorem (1 not written yet)",
        "  toy2020-a  not written yet",
    ]


def test_a_terminal_too_narrow_for_a_line_has_two(terminal):
    terminal(30)
    assert listed(["toy2020"])[-6:] == [
        "  toy2020-c",
        "      not tested*          smoke",
        "      A toy",
        "  toy2020-d",
        "      fails*               laptop",
        "      A toy",
    ]


def test_a_list_can_be_of_one_paper_and_of_one_verdict():
    """The titles of the few that are chosen stand there, however narrow the terminal is."""
    assert listed(["toy2021"])[1:] == [
        "  toy2021-a  not run",
        "      A toy",
        "  toy2021-b  unreadable",
        "      A toy",
    ]
    assert [line.split()[0] for line in listed((), "not") if line] == [
        "toy2020:",
        "toy2020-c",
        "A",
        "toy2021:",
        "toy2021-a",
        "A",
    ]
    assert listed((), "part") == ["No claim has the verdict 'part'."]
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


def test_the_beginning_of_a_papers_key_is_enough_where_there_is_one():
    assert listed(["TOY2021"]) == listed(["toy2021"])
    with pytest.raises(ParameterError, match="paper 'toy' may be toy2020 or toy2021"):
        listed(["toy"])
    known = [row("toy2020-a", "ours"), row("new2021-a", "ours")]
    assert show.listing(known, ["new"])[0].plain.startswith("new2021: ")


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_titles_stand_in_a_wide_terminal_and_no_line_is_broken(
    overview, committed, terminal, columns
):
    terminal(columns)
    text = "\n".join(line.plain for line in show.listing(overview))
    assert broken(text, columns) == []
    words = " ".join(text.split())
    titles = [markup.plain(row["title"]) for row in overview]
    assert [title for title in titles if title in words] == (titles if columns == 160 else [])


def found(overview, *words):
    """Ids of the claims that a search finds."""
    text = "\n".join(line.plain for line in show.listing(overview, words=words))
    return set(re.findall(r"^  (\S+)", text, re.MULTILINE))


def test_a_list_searches_ids_titles_sources_and_findings(overview, committed):
    claims = registry.registry()
    by_title = {key for key, claim in claims.items() if "depth" in claim.title.lower()}
    by_id = {key for key in claims if "depth" in key}
    assert by_title
    assert by_id
    assert by_title | by_id <= found(overview, "depth")
    assert found(overview, "Theorem 4.1", "arora2019") >= {"arora2019-thm41-trajectory"}
    both = found(overview, "KERNEL", "width")
    assert both == found(overview, "kernel") & found(overview, "Width")
    assert set() < both < found(overview, "kernel")
    assert [line.plain for line in show.listing(overview, words=["depth", "no such word"])] == [
        "No claim has 'depth' and 'no such word' in its id, title, source or finding."
    ]


def test_a_search_finds_what_a_finding_says_and_shows_the_title(toy, monkeypatch):
    assert len(show.listing(records.overview(), words=["1 of 1 check"])) == 1  # the sentence above
    toy.run(monkeypatch)
    lines = [line.plain for line in show.listing(records.overview(), words=["1 OF 1 check"])]
    head = ["  toy2020-lem1  holds                smoke", "      A toy"]
    assert lines[1:3] == head
    assert "1 of 1 check" in " ".join(lines[3:])
    lines = [line.plain for line in show.listing(records.overview(), words=["toy"])]
    assert lines[1:] == head  # the title shows the word


def test_the_command_line_searches_within_a_paper(committed):
    lines = committed("list", "DEPTH", "--paper", "frei").splitlines()
    ids = [line.split()[0] for line in lines if re.match(r"  \S", line)]
    assert "frei2019-depth-independence-training" in ids
    assert {name.partition("-")[0] for name in ids} == {"frei2019"}


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_a_claim_fits_on_a_screen_and_begins_with_what_was_found(committed, terminal, columns):
    terminal(columns)
    for claim in registry.registry():
        text = show.shown(claim)
        assert broken(text, columns) == []
        heads = re.findall(
            r"^(Found|Verdict|Claim|Source|Notebook|Everything) ", text, re.MULTILINE
        )
        assert heads == ["Found", "Verdict", "Claim", "Source", "Notebook", "Everything"]
        if columns >= 100:
            assert len(text.splitlines()) <= 40, claim


def test_a_screen_has_the_checks_that_do_not_hold_and_first_those_that_fail(
    overview, committed, terminal
):
    terminal(100)
    for row in overview:
        size = show.verdict_of(row)[2]
        record = records.load(row["claim"], size)
        others = [check for check in record["checks"] if check["outcome"] != "holds"]
        text = show.shown(row["claim"])
        told = re.findall(r"^  (fails|not measured|undecided), ", text, re.MULTILINE)
        more = re.search(r"^  and (\d+) more$", text, re.MULTILINE)
        assert len(told) + int(more[1] if more else 0) == len(others)
        assert told == sorted(told, key=lambda outcome: outcome == "undecided")
        assert (f"Checks that do not hold, at {size} size" in text) == bool(others)


def test_every_claim_can_be_shown_in_full(committed):
    for claim in registry.registry():
        text = show.shown(claim, everything=True)
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
    before = show.shown(toy.id, everything=True)
    for words in (
        "Found    nothing yet: it has not been run",
        "laptop 20",
        "rate = 0.5\n      from 0.0 to 1.0",
    ):
        assert words in before
    toy.run(monkeypatch)
    after = show.shown(toy.id, everything=True)
    for words in (
        "Found    1 of 1 check holds.",
        "As printed: Follows, but for a misprint. A letter is missing.",
        "holds; 0.5 measured; at most 1",
    ):
        assert words in after


def test_a_screen_leaves_out_reasons_and_names_parameters(toy, monkeypatch):
    assert "\nFound    nothing yet: it has not been run\n" in show.shown(toy.id)
    toy.run(monkeypatch)
    text = show.shown(toy.id)
    for words in (
        "Verdict  Holds. 1 of 1 check holds.",
        "As printed: Follows, but for a misprint.\n",
        "Parameters   seed, n_seeds, n, rate, kind, sizes\n",
        f"Run again    overparam run {toy.id} --profile smoke\n",
        f"Change it    overparam run {toy.id} -p n=...\n",
        f"Everything   overparam show {toy.id} --all",
    ):
        assert words in text
    assert "A letter is missing" not in text
    assert "Checks" not in text


def test_a_claim_that_is_not_written_says_so(toy):
    toy.register(toy.registered.replace("A toy", f"{show.PLACEHOLDER}: what is claimed"))
    assert "\nFound    nothing yet: the claim is not written yet\n" in show.shown(toy.id)


def test_own_runs_are_named_the_last_ones_last(toy):
    for k in range(5):
        folder = toy.figures / "custom" / f"smoke,n={k}" / toy.id
        folder.mkdir(parents=True)
        (folder / "result.json").touch()
        os.utime(folder / "result.json", (k, k))
    places = [f"/custom/smoke,n={k}/{toy.id}" for k in (2, 3, 4)]
    lines = show.shown(toy.id).splitlines()
    assert lines[-4] == "Your own runs (the last 3 of 5)"
    assert all(line.endswith(place) for line, place in zip(lines[-3:], places, strict=True))
    assert "smoke,n=0" in show.shown(toy.id, everything=True)


def test_messages_are_wrapped_in_a_terminal_and_whole_in_a_pipe(terminal, monkeypatch):
    text = "  a line of words --that-is-long and more\n\n  https://a.long.address"
    terminal(20)
    assert show.fitted(text).splitlines() == [
        "  a line of words",
        "    --that-is-long",
        "    and more",
        "",
        "  https://a.long.address",
    ]
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr("sys.__stdout__", io.StringIO())  # no terminal
    assert show.fitted(text) == text


def test_formulas_and_emphasis_are_plain_in_a_terminal():
    for text, wanted in (
        (r"$\mathbb{E}\,\phi(\alpha g)^2 \ge \delta^2$", "E phi(alpha g)^2 >= delta^2"),
        (r"$O(1/\sqrt m)$, $\frac m{L\log m}$, $\tfrac12$", "O(1/sqrt(m)), m/(L log m), 1/2"),
        (r"neurons with $\vert z_j\vert \le \varepsilon$", "neurons with | z_j | <= epsilon"),
        (r"$\log\frac1\epsilon$, $\lceil\ln n\rceil$", "log 1/epsilon, ceil(ln n)"),
        (r"$m\omega^{2/3}$ of *Frei et al.*", "m omega^(2/3) of Frei et al."),
        ("3 * 4 * 5 **bold** `code` [words](a.md)", "3 * 4 * 5 bold code words"),
    ):
        assert markup.plain(text) == wanted
