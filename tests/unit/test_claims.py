"""The record: parameters, checks, verdicts, atomic output."""

import itertools
import json
import re

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from overparam import paths
from overparam.errors import ClaimError, MemoryExceeded, ParameterError
from overparam.record import checks, files, render
from overparam.record.checks import Check, verdict
from overparam.record.claims import Claim
from overparam.record.parameters import notebook_parameters

CHECKS = """
[toy2020-lem1]
title = "A toy"
source = "Lemma 1"
kind = "lemma"

[[toy2020-lem1.checks]]
name = "decides"
tag = "R"
wording = "the value"
relation = "<="
threshold = 1.0

[[toy2020-lem1.checks]]
name = "large"
tag = "R"
profiles = ["laptop"]
wording = "the value at size"
relation = "in"
threshold = [0.0, 2.0]

[[toy2020-lem1.checks]]
name = "ours"
tag = "A"
wording = "our own sum"
relation = "=="
threshold = 0.0
"""
PROFILES = """
[toy2020-lem1.ranges]
rate = [0.0, 1.0]
kind = ["a", "b"]

[toy2020-lem1.laptop]
n = 20
"""
PARAMETERS = (
    'profile = "smoke"\nseed = 3\nn_seeds = 2\nn = 5  # rows\nrate = 0.5\nkind = "a"\nsizes = [1, 2]\ndevice = "cpu"\n'
)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A project with one claim, whose notebook has a parameters cell only."""
    folder = tmp_path / "notebooks"
    (folder / "checks").mkdir(parents=True)
    (folder / "checks" / "toy2020.toml").write_text(CHECKS)
    (folder / "profiles.toml").write_text(PROFILES)
    cell = nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "toy2020-lem1.ipynb")
    for name, path in (("NOTEBOOKS", folder), ("CHECKS", folder / "checks"), ("PROFILES", folder / "profiles.toml")):
        monkeypatch.setattr(paths, name, path)
    checks.registry.cache_clear()
    yield folder
    checks.registry.cache_clear()


def namespace(**changes):
    return {**notebook_parameters(paths.NOTEBOOKS / "toy2020-lem1.ipynb"), **changes}


def measured(claim, value=0.5):
    claim.check("decides", value)
    claim.check("ours", 0)
    return claim


@pytest.mark.parametrize("resumed", [False, True])
def test_a_record_says_whether_its_seconds_are_those_of_the_last_sitting(toy, figures, resumed):
    claim = Claim("toy2020-lem1", namespace())
    claim.checkpoints.mkdir(parents=True)
    (claim.checkpoints / "net-0.safetensors").touch()
    measured(Claim("toy2020-lem1", namespace()) if resumed else claim).report()
    assert json.loads((figures / "smoke" / "toy2020-lem1" / "result.json").read_text())["resumed"] == resumed


def test_a_record_holds_what_was_measured(toy, figures, capsys):
    claim = measured(Claim("toy2020-lem1", namespace()))
    claim.metric("slope", 0.25, paper=0.3)
    claim.series(curve=np.array([1.23456789, 0.0, np.nan]), index=[1, 2])
    fig, ax = plt.subplots()
    ax.plot([0, 1])
    claim.figure(fig, "rates")
    claim.report()
    folder = figures / "smoke" / "toy2020-lem1"
    record = json.loads((folder / "result.json").read_text())
    assert record["verdict"] == "reproduced"
    assert record["seeds"] == [3, 4]
    assert record["metrics"]["slope"] == {"value": 0.25, "paper": 0.3}
    assert record["parameters"] == namespace()
    assert {p.name for p in folder.iterdir()} == {"result.json", "series.npz", "rates.png"}
    assert not plt.fignum_exists(fig.number)
    with np.load(folder / "series.npz", allow_pickle=False) as series:
        np.testing.assert_array_equal(series["curve"], np.array([1.23457, 0.0, np.nan], dtype=np.float32))
    assert "REPRODUCED" in capsys.readouterr().out


def test_a_changed_parameter_never_overwrites_a_reference(toy, figures):
    measured(Claim("toy2020-lem1", namespace(n=6))).report()
    assert not (figures / "smoke").exists()
    assert stored(figures, "custom/smoke,n=6")["profile"] == "custom"


def test_a_run_with_changed_parameters_says_what_was_changed_beside_the_reference(toy, figures, capsys):
    own = Claim("toy2020-lem1", namespace(n=6, rate=0.25))
    assert own.folder.parent == figures / "custom" / "smoke,n=6,rate=0.25"
    assert Claim("toy2020-lem1", namespace(kind="b", sizes=[7] * 50)).folder.parent.name.startswith("smoke,")
    measured(own, 0.75).report()
    out = capsys.readouterr().out
    assert "REPRODUCED, WITH CHANGED PARAMETERS" in out
    assert "Changed: n: 5 -> 6, rate: 0.5 -> 0.25 (no record at smoke size is here to compare with)" in out
    measured(Claim("toy2020-lem1", namespace())).report()
    assert "CHANGED" not in capsys.readouterr().out
    measured(Claim("toy2020-lem1", namespace(n=6, rate=0.25)), 0.75).report()
    assert re.search(r"decides +0.75 +at most 1 +holds  \(reference 0.5\)", capsys.readouterr().out)
    record = stored(figures, "custom/smoke,n=6,rate=0.25")
    assert record["changed"] == {"n": [5, 6], "rate": [0.5, 0.25]}
    shown = render.markdown(record)
    assert shown.startswith("**Reproduced, with changed parameters.** ")
    assert "Smoke size" in shown
    assert "| the value | 0.75 | 0.5 | at most 1 | – | ✓ |" in shown


def test_old_figures_go_only_with_a_complete_new_record(toy, figures):
    folder = figures / "smoke" / "toy2020-lem1"
    folder.mkdir(parents=True)
    (folder / "gone.png").write_bytes(b"old")
    claim = measured(Claim("toy2020-lem1", namespace()))
    assert (folder / "gone.png").exists()
    claim.report()
    assert not (folder / "gone.png").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, "n must be at least 1, not 0"),
        ({"n": 2.0}, "n must be int like 5, not 2.0"),
        ({"n": True}, "n must be int"),
        ({"rate": "fast"}, "rate must be float like 0.5, not 'fast'"),
        ({"rate": 1.5}, r"rate must be in \[0.0, 1.0\]"),
        ({"rate": float("nan")}, "rate must be finite"),
        ({"kind": "c"}, "kind must be one of a, b"),
        ({"sizes": []}, "sizes must be a non-empty list"),
        ({"sizes": [1, 0]}, r"sizes\[1\] must be at least 1"),
        ({"profile": "huge"}, "unknown profile 'huge'"),
        ({"profile": "paper"}, "no profile 'paper'"),
    ],
)
def test_bad_parameters_are_refused(toy, changes, message):
    with pytest.raises(ParameterError, match=message):
        Claim("toy2020-lem1", namespace(**changes))


def test_a_parameters_cell_holds_literals_only(toy):
    cell = nbformat.v4.new_code_cell("a = 1\nb = a + 1", metadata={"tags": ["parameters"]})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), toy / "toy2020-lem1.ipynb")
    with pytest.raises(ClaimError, match="cell of literals"):
        Claim("toy2020-lem1", {})


def test_checks_are_registered_given_once_and_complete(toy):
    claim = Claim("toy2020-lem1", namespace())
    with pytest.raises(ClaimError, match="'invented' is not registered"):
        claim.check("invented", 1)
    claim.check("decides", 1)
    with pytest.raises(ClaimError, match="given twice"):
        claim.check("decides", 1)
    with pytest.raises(ClaimError, match="not measured: ours"):
        claim.report()


def test_a_wrong_computation_of_ours_stops_the_notebook(toy, figures):
    claim = Claim("toy2020-lem1", namespace())
    with pytest.raises(ClaimError, match="our own computation is wrong"):
        claim.check("ours", 1e-3)
    assert not figures.exists()


def test_an_unknown_claim_names_its_neighbours(toy):
    with pytest.raises(ClaimError, match="did you mean toy2020-lem1"):
        checks.spec("toy2020-lem2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[x", "not valid TOML"),
        (CHECKS.replace('tag = "R"', 'tag = "Q"', 1), "unknown tag"),
        (CHECKS + "\nfoo = 1", "foo"),
    ],
)
def test_a_malformed_table_of_checks_is_named(toy, text, message):
    (toy / "checks" / "toy2020.toml").write_text(text)
    checks.registry.cache_clear()
    with pytest.raises(ClaimError, match=message):
        checks.registry()


@pytest.mark.parametrize(
    ("relation", "threshold", "inside", "outside"),
    [
        ("<", 1, 0.99, 1), ("<=", 1, 1, 1.01), (">", 1, 1.01, 1), (">=", 1, 1, 0.99), ("==", 0, 0, 1e-9),
        ("in", [1, 2], 2, 2.01), ("in", [1, 2], 1, 0.99),
    ],
)  # fmt: skip
def test_relations(relation, threshold, inside, outside):
    check = Check("c", "R", "w", relation, threshold)
    assert check.outcome(inside) == "holds"
    for value in (outside, float("nan"), float("inf"), None):
        assert check.outcome(value) == "fails"


@pytest.mark.parametrize(
    ("relation", "threshold", "spread", "expected"),
    [
        (">=", 1, [1, 2], "holds"), (">=", 1, [0.9, 2], "undecided"), (">=", 1, [0, 0.9], "fails"),
        (">=", 1, [None, None], "undecided"), ("<", 1, [0, 1], "undecided"), ("<", 1, [1, 2], "fails"),
        ("==", 1, [0, 2], "undecided"), ("==", 1, [2, 3], "fails"), ("in", [1, 2], [0, 3], "undecided"),
        ("in", [1, 2], [1.2, 1.8], "holds"), ("in", [1, 2], [1.5, 3], "undecided"), ("in", [1, 2], [3, 4], "fails"),
    ],
)  # fmt: skip
def test_a_threshold_inside_the_spread_decides_nothing(relation, threshold, spread, expected):
    value = 1.5 if None in spread else sum(spread) / 2
    assert Check("c", "R", "w", relation, threshold).outcome(value, spread) == expected


def rows(**holds):
    """{R1=True, N1=False} as rows, None for undecided; a lower-case tag does not apply at this profile."""
    return [
        {"name": k, "tag": k[0].upper(), "holds": bool(v), "undecided": v is None, "applies": k[0].isupper()}
        for k, v in holds.items()
    ]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (rows(R1=True, N1=True, I1=False), "reproduced"),
        (rows(R1=True, R2=False, N1=True), "partly"),
        (rows(R1=True, R2=False, R3=False), "not reproduced"),
        (rows(R1=True, N1=False), "not reproduced"),
        (rows(R1=True, C1=True), "contradicted"),
        (rows(r1=True, I1=True, N1=True), "not testable at this scale"),
        (rows(R1=True, r2=False, n1=False), "reproduced"),
        (rows(R1=True, R2=None, N1=None), "reproduced"),
        (rows(R1=True, R2=None, R3=None, N1=True), "partly"),
        (rows(R1=None, N1=True), "not testable at this scale"),
        (rows(R1=None, R2=False), "not reproduced"),
        (rows(R1=True, C1=None), "reproduced"),
    ],
)
def test_verdicts(results, expected):
    assert verdict(results) == expected


def test_partly_if_replaces_the_half_rule():
    groups = [["R1"], ["R2", "R3"]]
    for r1, r2, r3, r4 in itertools.product([True, False], repeat=4):
        expected = "reproduced" if all((r1, r2, r3, r4)) else "partly" if r1 or (r2 and r3) else "not reproduced"
        assert verdict(rows(R1=r1, R2=r2, R3=r3, R4=r4), groups) == expected


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write_atomically(path, b"new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]


def test_a_profile_that_does_not_fit_says_so_before_it_starts(toy, monkeypatch):
    monkeypatch.setenv("OVERPARAM_MEMORY", "100M")
    with pytest.raises(MemoryExceeded, match=r"toy2020-lem1 at smoke size needs 1.6 GB, and 105 MB may be used"):
        Claim("toy2020-lem1", namespace())
    resources = PROFILES + "[toy2020-lem1.smoke.resources]\nmemory_mb = "
    (toy / "profiles.toml").write_text(resources + "90\n")
    Claim("toy2020-lem1", namespace())
    (toy / "profiles.toml").write_text(resources + "2000\ngpu = 1\n")  # what a GPU needs, a CPU tries
    Claim("toy2020-lem1", namespace())


def test_runs_that_share_a_notebook_have_parameters_and_served_claims_of_their_own(toy):
    second = CHECKS.replace("toy2020-lem1", "toy2020-lem2").replace(
        'kind = "lemma"\n', 'kind = "lemma"\ntemplate = "toy2020-lem1"\n'
    )
    (toy / "checks" / "toy2020.toml").write_text(CHECKS + second)
    (toy / "profiles.toml").write_text(PROFILES + "[toy2020-lem2.smoke]\nn = 7\n")
    checks.registry.cache_clear()
    assert checks.spec("toy2020-lem2").path == checks.spec("toy2020-lem1").path
    assert checks.profile_parameters("toy2020-lem2", "smoke")[0] == namespace(n=7)
    assert checks.profile_parameters("toy2020-lem2", "smoke")[1]["kind"] == ["a", "b"]
    assert [checks.is_as_stored(f"toy2020-lem{i}") for i in (1, 2)] == [True, False]
    assert Claim("toy2020-lem2", namespace(n=7)).folder.parent.name == "smoke"
    assert Claim("toy2020-lem2", namespace()).folder.parent.name == "smoke,n=5"


def test_what_could_not_be_measured_fails_and_is_not_said_to_have_been(toy, figures, capsys):
    claim = Claim("toy2020-lem1", namespace())
    claim.check("decides", float("nan"))
    claim.check("ours", 0)
    claim.report()
    assert re.search(r"decides +nan +at most 1 +not measured", capsys.readouterr().out)
    record = json.loads((figures / "smoke" / "toy2020-lem1" / "result.json").read_text())
    assert record["verdict"] == "not reproduced"


def stored(figures, profile="smoke"):
    return json.loads((figures / profile / "toy2020-lem1" / "result.json").read_text())


@pytest.mark.parametrize("long", [1, 20_000])
def test_what_is_kept_is_what_is_handed_back(toy, figures, long):
    frame = pd.DataFrame(
        {
            "x": [1.23456789, np.nan, -1e-300] * long,
            "n": [1, 2, 3] * long,
            "word": ["a,b", 'say "so"', "é"] * long,
            "won": [True, False, True] * long,
            "t": torch.tensor([1 / 3, 2.0, 3.0]).repeat(long),
            "mixed": [torch.tensor(0.1234567), np.float32(2), 3] * long,
        }
    )
    claim = measured(Claim("toy2020-lem1", namespace()))
    kept = claim.keep(frame)
    claim.report()
    (name,) = stored(figures)["tables"]
    assert name == ("runs.csv" if long == 1 else "runs.csv.xz")
    again = pd.read_csv(figures / "smoke" / "toy2020-lem1" / name)
    pd.testing.assert_frame_equal(kept, again, check_dtype=False)
    assert kept["x"][0] == 1.23457
    assert kept["t"][0] == 0.333333
    assert frame["x"][0] == 1.23456789


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": [[1, 2], 3]}), "the column 'a' holds a list in row 0"),
        (pd.DataFrame({"a": [1, torch.ones(2)]}), "the column 'a' holds a Tensor in row 1"),
        (pd.DataFrame({"a": [1j]}), "the column 'a' holds complex128"),
        (pd.DataFrame([[1, 2]]), "columns of a table that is kept have names"),
        (pd.DataFrame({"a": ["\ud800"]}, dtype=object), "no UTF-8"),
        ({"a": [1]}, "a pandas table, not dict"),
    ],
)
def test_what_is_no_tidy_table_is_refused(toy, frame, message):
    with pytest.raises(ClaimError, match=message):
        Claim("toy2020-lem1", namespace()).keep(frame)


def test_a_sample_keeps_its_spread_and_may_be_undecided(toy, figures, capsys):
    claim = Claim("toy2020-lem1", namespace())
    claim.check("decides", pd.Series([0.5, 0.9, 1.3]))
    claim.check("ours", 0)
    claim.report()
    row = stored(figures)["checks"][0]
    assert (row["value"], row["n"], row["holds"], row["undecided"]) == (pytest.approx(0.9), 3, False, True)
    assert row["spread"] == pytest.approx(stats.t.interval(0.95, 2, 0.9, stats.sem([0.5, 0.9, 1.3])))
    assert stored(figures)["verdict"] == "not testable at this scale"
    printed = capsys.readouterr().out
    assert "more seeds are needed" in printed
    assert re.search(r"decides +0.9 ± 0.99 +at most 1 +undecided", printed)


def test_a_registered_tolerance_decides_like_a_spread(toy, figures):
    changed = CHECKS.replace("threshold = 1.0", "threshold = 1.0\ntolerance = 0.1", 1)
    (toy / "checks" / "toy2020.toml").write_text(changed)
    for value, expected in ((0.95, "not testable at this scale"), (0.85, "reproduced"), (1.2, "not reproduced")):
        checks.registry.cache_clear()
        measured(Claim("toy2020-lem1", namespace()), value).report()
        assert stored(figures)["verdict"] == expected


def test_desk_judges_the_papers_checks_less_those_it_names(toy, figures):
    paper = CHECKS.replace('profiles = ["laptop"]', 'profiles = ["paper"]')
    (toy / "checks" / "toy2020.toml").write_text(paper.replace("[toy2020-lem1]\n", '[toy2020-lem1]\nsizes = "all"\n'))
    row = '[toy2020-lem1.desk]\nn = 30\nreduced = "1 of 10 seeds"\nwithout = { large = "needs two seeds" }\n'
    for text, missing in ((row, None), (row.replace("without", "# "), "large")):
        (toy / "profiles.toml").write_text(PROFILES + text)
        checks.registry.cache_clear()
        claim = measured(Claim("toy2020-lem1", namespace(profile="desk", n=30)))
        if missing:
            with pytest.raises(ClaimError, match="not measured: large"):
                claim.report()
        else:
            claim.check("large", 9)
            claim.report()
    record = stored(figures, "desk")
    assert (record["verdict"], record["reduced"], record["sizes"]) == ("reproduced", "1 of 10 seeds", "all")
    assert render.outcome(record["checks"][2]) == "not judged: needs two seeds"
    assert claim.runs == figures / "desk" / "toy2020-lem1" / "runs"
    assert checks.profile_parameters("toy2020-lem1", "desk")[2]["threads"] == checks.THREADS["desk"]


def test_a_superseded_check_is_shown_and_need_not_be_measured(toy, figures):
    old = """
        [[toy2020-lem1.checks]]
        name = "old"
        tag = "R"
        wording = "a slip of ours"
        relation = ">="
        threshold = 9
        superseded_by = "decides"
        reason = "the lemma asks for less"
        """
    (toy / "checks" / "toy2020.toml").write_text(CHECKS + old)
    measured(Claim("toy2020-lem1", namespace())).report()
    record = stored(figures)
    assert record["verdict"] == "reproduced"
    shown = "| a slip of ours | – | at least 9 | – | *superseded by decides: the lemma asks for less* |"
    assert shown in render.markdown(record)


def test_a_report_opens_with_the_verdict_and_folds_what_informs(toy, figures):
    measured(Claim("toy2020-lem1", namespace())).report()
    record = stored(figures)
    decides, ours = record["checks"]
    decides |= {"wording": "max_k |a_k| * 2", "added": "the old one was wrong", "paper_value": 0.25}
    shown = render.markdown(record)
    opening, table, folded = shown.split("\n\n", 2)
    assert opening.startswith(
        r"**Reproduced.** The deciding check holds: max\_k \|a\_k\| \* 2: 0.5, where at most 1 was"
    )
    cells = table.splitlines()[2].split(" | ")
    assert cells[1:] == ["0.5", "at most 1", "0.25", "✓ |"]
    assert "| measured |" in table
    assert "*(decided after the result: the old one was wrong)*" in cells[0]
    assert folded.startswith("<details><summary>One further check informs</summary>\n\n| what was asked")
    ours |= {"superseded_by": "decides", "reason": "a slip", "applies": False}
    assert "*superseded by decides: a slip*" in render.markdown(record)
    assert "(paper 0.25)" in render.plain(record)
    decides |= {"spread": [0.4, 0.6]}
    table = render.markdown(record).split("\n\n")[1]
    assert "| measured, with 95 % interval |" in table
    assert "| 0.5 ± 0.1 |" in table
    decides |= {"tag": "C"}
    assert "**Contradicted.** The opposite was measured" in render.markdown(record | {"verdict": "contradicted"})


@pytest.mark.parametrize(
    ("value", "bounds", "shown"),
    [
        (0.99972, [1.0], "0.9997"),  # three digits would say that a value below 1 is 1
        (1.0052, [1.01], "1.005"),
        (1.0, [1.0], "1"),
        (1.0000002, [1.0], "1"),  # told apart by rounding alone
        (0.123456, [0.2, 0.3], "0.123"),
        (-0.99961, [-1.0005, -0.9995], "-0.9996"),
    ],
)
def test_a_measured_value_is_not_shown_as_the_bound_that_it_differs_from(value, bounds, shown):
    assert render.number(value, bounds) == shown
