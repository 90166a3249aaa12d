"""The page's side of a claim: parameters, what is measured and kept, the verdict, atomic output."""

import json
import re
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from ledger import claim as claims
from ledger import records, registry, render, run
from ledger.claim import Claim
from ledger.errors import ClaimError
from overparam.errors import MemoryExceeded, ParameterError

SAMPLE = pd.Series([0.5, 0.9, 1.3])
INTERVAL = stats.t.interval(0.95, 2, 0.9, stats.sem(SAMPLE))


def test_a_record_holds_what_was_measured(toy, figures, capsys):
    folder = figures / "smoke" / toy.id
    folder.mkdir(parents=True)
    (folder / "gone.png").write_bytes(b"of the last run")
    claim = toy.measured()
    claim.metric("slope", 0.25, paper=0.3)
    claim.metric("rate", SAMPLE)
    claim.series(curve=np.array([1.23456789, 0.0, np.nan]), index=[1, 2])
    claim.say("It falls.\n\n  It rises.")
    fig = plt.figure(figsize=(6, 3), layout="constrained")
    fig.subplots(1, 2)
    claim.figure(fig, "rates")
    assert (folder / "gone.png").exists()
    claim.report()
    record = toy.record()
    assert (record["verdict"], record["kind"], record["seeds"]) == ("holds", "theorem", [3, 4])
    assert record["metrics"]["slope"] == {"value": 0.25, "interval": None, "n": None, "paper": 0.3}
    rate = record["metrics"]["rate"]
    assert (rate["value"], rate["interval"], rate["n"]) == (
        pytest.approx(0.9),
        pytest.approx(INTERVAL),
        3,
    )
    assert record["parameters"] == toy.namespace()
    assert record["said"] == ["It falls.", "It rises."]
    assert {p.name for p in folder.iterdir()} == {"result.json", "series.npz", "rates.png"}
    assert not plt.fignum_exists(fig.number)
    left, right = record["figures"]["rates.png"]
    assert left[0] < left[2] < right[0] < right[2] <= 1200  # pixels of the two panels
    with np.load(folder / "series.npz", allow_pickle=False) as series:
        np.testing.assert_array_equal(
            series["curve"], np.array([1.23457, 0.0, np.nan], dtype=np.float32)
        )
    assert "toy2020-lem1  [smoke]  HOLDS\n" in capsys.readouterr().out


def test_a_number_may_not_have_the_name_of_a_check(toy):
    """A finding that quotes the name would get one of the two."""
    with pytest.raises(ClaimError, match="'value' is the name of a check"):
        toy.measured().metric("value", 0.5)


@pytest.mark.parametrize("resumed", [False, True])
def test_a_record_says_whether_its_seconds_are_those_of_the_last_sitting(toy, resumed):
    claim = toy.measured()
    claim.checkpoints.mkdir(parents=True)
    (claim.checkpoints / "net-0.safetensors").touch()
    (toy.measured() if resumed else claim).report()
    assert toy.record()["resumed"] == resumed


def test_a_changed_parameter_never_overwrites_a_reference_and_is_shown_beside_it(
    toy, figures, capsys, monkeypatch
):
    told = run.Run(fingerprint=records.fingerprint(toy.id, "smoke"))
    monkeypatch.setenv(*told.variables().popitem())
    toy.measured(0.75, n=6, rate=0.25).report()
    assert not (figures / "smoke").exists()
    out = capsys.readouterr().out
    assert "HOLDS, WITH CHANGED PARAMETERS" in out
    assert "Changed: n: 5 -> 6, rate: 0.5 -> 0.25\n" in out
    missing = "Reference: there is none here yet; `overparam run toy2020-lem1 --profile smoke`"
    assert missing in out
    toy.measured().report()
    before = toy.record()
    assert "CHANGED" not in capsys.readouterr().out
    toy.measured(0.75, n=6, rate=0.25).report()
    out = capsys.readouterr().out
    assert re.search(r"value +0.75 +at most 1 +holds  \(reference 0.5\)", out)
    assert "Reference: the record at smoke size.\n" in out
    record = toy.record("custom/smoke,n=6,rate=0.25")
    shown = render.markdown(toy.claim, record).splitlines()
    assert "| check | measured | reference | required | outcome |" in shown
    assert "| The value is at most 1. | 0.75 | 0.5 | at most 1 | ✓ |" in shown
    assert (record["profile"], record["changed"]) == ("custom", {"n": [5, 6], "rate": [0.5, 0.25]})
    assert record["checks"][0]["reference"] == 0.5
    assert toy.record() == before
    assert toy.open(kind="b", sizes=[7] * 50).folder.parent.name.startswith("smoke,")


def changed(toy, capsys, **changes):
    """The report of a run with a changed parameter."""
    capsys.readouterr()
    toy.measured(0.75, n=6, **changes).report()
    return capsys.readouterr().out


def store(toy, text):
    """Put a report into the stored outputs of the notebook."""
    notebook = json.loads((toy.folder / "lem1.ipynb").read_text())
    shown = {"output_type": "display_data", "data": {"text/plain": text}}
    shown["metadata"] = {"ledger": {"report": toy.id}}
    notebook["cells"][-1]["outputs"] = [shown]
    (toy.folder / "lem1.ipynb").write_text(json.dumps(notebook))


def test_without_a_present_record_a_smoke_run_is_compared_with_the_stored_outputs(toy, capsys):
    toy.measured(SAMPLE).report()  # a record of no run, so that it is not of the present sources
    report = capsys.readouterr().out
    assert "value  0.90 ± 0.99" in report
    store(toy, report)
    out = changed(toy, capsys)
    assert "Reference: the outputs that are stored in notebooks/toy2020/lem1.ipynb.\n" in out
    assert "(reference 0.9)" in out
    store(toy, changed(toy, capsys))  # of somebody who has changed a parameter
    other = "Reference: the record at smoke size, which other code, checks or parameters made.\n"
    assert other in changed(toy, capsys)
    toy.register(f"{toy.registered}\n[sizes.smoke]\nrate = 0.25\n")
    store(toy, report)  # of other parameters than those of the size
    assert other in changed(toy, capsys)


def test_a_larger_run_is_compared_with_an_outdated_record_and_says_so(toy, capsys, monkeypatch):
    with monkeypatch.context() as patched:
        toy.run(patched, size="laptop")
    assert "Reference: the record at laptop size.\n" in changed(toy, capsys, profile="laptop")
    toy.register(toy.registered.replace('"<= 1"', '"<= 2"'))
    out = changed(toy, capsys, profile="laptop")
    assert "at laptop size, which other code, checks or parameters made.\n" in out
    assert out.count("(reference 0.5") == 2


def test_a_reference_that_was_not_tested_has_none_of_the_checks(toy, capsys, monkeypatch):
    told = run.Run(fingerprint=records.fingerprint(toy.id, "smoke"))
    monkeypatch.setenv(*told.variables().popitem())
    claim = toy.open()
    claim.require(False, "the net diverged")
    claim.report()
    out = changed(toy, capsys)
    assert "Reference: the record at smoke size, which has none of these checks.\n" in out


def test_every_notebook_has_stored_what_a_changed_smoke_run_is_compared_with(figures):
    for claim in registry.registry().values():
        asked = {check.name for check in claim.asked("smoke")}
        values, source = records.reference(claim.id, "smoke", figures)
        assert set(values) >= asked, f"{claim.id}: {source}"


def test_parameters_are_literals_of_their_type_and_range_and_all_of_them_are_set(toy):
    for changes, message in (
        ({"n": True}, "n must be int"),
        ({"n": 2.0}, "n must be int like 5, not 2.0"),
        ({"kind": "c"}, "one of a, b"),
        ({"rate": 1.5}, r"rate must be in \[0.0, 1.0\]"),
        ({"rate": float("nan")}, "rate must be finite"),
        ({"sizes": []}, "sizes must be a non-empty list"),
        ({"sizes": [1, 0]}, r"sizes\[1\] must be at least 1"),
    ):
        with pytest.raises(ParameterError, match=message):
            toy.open(**changes)
    with pytest.raises(ParameterError, match="parameters not set: kind, n"):
        Claim(
            toy.id,
            {name: value for name, value in toy.namespace().items() if name not in ("n", "kind")},
        )
    toy.write("# A toy", "a = 1\nb = a + 1")
    with pytest.raises(ClaimError, match="cell of literals"):
        Claim(toy.id, {})


def test_checks_are_registered_given_once_and_complete(toy, figures):
    claim = toy.open()
    with pytest.raises(ClaimError, match="'invented' is not registered"):
        claim.check("invented", 1)
    with pytest.raises(ClaimError, match="checks not measured: value"):
        claim.report()
    claim.check("value", 1)
    with pytest.raises(ClaimError, match="'value' is given twice"):
        claim.check("value", 1)
    assert not figures.exists()
    claim.check("large", 9)  # of another size, and left out
    claim.report()
    assert [row["name"] for row in toy.record()["checks"]] == ["value"]


def test_what_no_run_with_changed_parameters_measures_is_not_tested_and_said(toy):
    claim = toy.open(n=6)
    claim.check("value", [])
    claim.metric("other", [])
    claim.report()
    record = toy.record("custom/smoke,n=6")
    assert (record["verdict"], record["checks"], record["metrics"]) == ("not tested", [], {})
    assert record["unmet"] == ["no run with these parameters measures value"]
    with pytest.raises(ClaimError, match="the sample is empty"):
        toy.open().check("value", [])


def test_of_a_sample_the_registered_statistic_is_judged_and_may_be_undecided(toy, capsys):
    toy.measured(SAMPLE).report()
    (row,) = toy.record()["checks"]
    assert (row["value"], row["interval"], row["n"]) == (
        pytest.approx(0.9),
        pytest.approx(INTERVAL),
        3,
    )
    assert (row["outcome"], toy.record()["verdict"]) == ("undecided", "not tested")
    assert re.search(r"value +0.90 ± 0.99 +at most 1 +undecided", capsys.readouterr().out)
    toy.measured(
        float("nan")
    ).report()  # what could not be measured fails, and is not said to have been
    assert toy.record()["verdict"] == "fails"
    assert re.search(r"value +nan +at most 1 +not measured", capsys.readouterr().out)
    toy.register(toy.registered.replace('"<= 1"', '">= 0.5"\nstatistic = "share"'))
    toy.measured(torch.tensor([True] * 11 + [False])).report()
    (row,) = toy.record()["checks"]
    assert (row["statistic"], row["value"], row["outcome"]) == (
        "share",
        pytest.approx(11 / 12),
        "holds",
    )


def test_a_requirement_that_is_not_met_leaves_the_claim_untested(toy, capsys):
    for claim, rows in (
        (toy.measured(), 1),
        (toy.open(), 0),
    ):  # its checks need not be measured then
        claim.require(True, "the net fits its data")
        claim.require(False, "the net fits only 12 % of its data")
        claim.report()
        record = toy.record()
        assert (record["verdict"], record["unmet"]) == (
            "not tested",
            ["the net fits only 12 % of its data"],
        )
        assert len(record["checks"]) == rows
        assert "Not tested: the net fits only 12 % of its data." in capsys.readouterr().out


def test_a_theorems_conditions_are_recorded(toy):
    for factor, stored in ((torch.tensor(120.0), 120.0), (float("inf"), None)):
        claim = toy.measured()
        claim.conditions(factor, "The width is too small.")
        claim.report()
        assert toy.record()["conditions"] == {"factor": stored, "text": "The width is too small."}


def test_a_wrong_computation_of_ours_stops_the_notebook_and_a_right_one_is_shown_nowhere(
    toy, figures
):
    claim = toy.measured()
    claim.verify("closed form", [1e-10, -1e-10], "<= 1e-9")
    for value in (1e-3, float("nan")):
        with pytest.raises(
            ClaimError, match=r"our own computation is wrong: closed form is .*<= 1e-9 was required"
        ):
            claim.verify("closed form", value, "<= 1e-9")
    assert not figures.exists()
    claim.report()
    assert "closed form" not in str(toy.record())


@pytest.mark.parametrize("name", ["../a", "a b", ""])
def test_names_of_tables_and_figures_are_parts_of_paths(toy, name):
    for store in (
        lambda n: toy.open().keep(SAMPLE.to_frame("a"), n),
        lambda n: toy.open().figure(plt.Figure(), n),
    ):
        with pytest.raises(ClaimError, match="letters, digits"):
            store(name)


def test_a_size_that_does_not_fit_says_so_before_it_starts(toy, monkeypatch):
    monkeypatch.setenv("OVERPARAM_MEMORY", "100M")
    with pytest.raises(
        MemoryExceeded, match=r"toy2020-lem1 at smoke size needs 1.6 GB, and 105 MB may be used"
    ):
        toy.open()
    for resources in (
        "memory_mb = 90",
        "memory_mb = 2000, gpu = 1",
    ):  # what a GPU needs, a CPU tries
        toy.register(f"{toy.registered}\n[sizes.smoke]\nresources = {{ {resources} }}\n")
        toy.open()


def test_finished_trainings_of_long_sizes_are_kept_beside_the_record(toy, figures):
    toy.register(toy.registered + "\n[sizes.desk]\nn = 30\n")
    assert toy.open(profile="desk", n=30).runs == figures / "desk" / toy.id / "runs"
    assert toy.open().runs is toy.open(profile="desk", n=31).runs is None


@pytest.mark.parametrize("long", [1, 20_000])
def test_what_is_kept_is_what_is_handed_back(toy, figures, long):
    columns = {
        "x": [1.23456789, np.nan, -1e-300],
        "n": [1, 2, 3],
        "word": ["a,b", 'say "so"', "é"],
        "won": [True, False, True],
        "mixed": [torch.tensor(0.1234567), np.float32(2), 3],
    }
    columns = {name: values * long for name, values in columns.items()}
    frame = pd.DataFrame(columns | {"t": torch.tensor([1 / 3, 2.0, 3.0]).repeat(long)})
    claim = toy.measured()
    kept = claim.keep(frame)
    claim.report()
    (name,) = toy.record()["tables"]
    assert name == ("runs.csv" if long == 1 else "runs.csv.xz")
    pd.testing.assert_frame_equal(
        kept, pd.read_csv(figures / "smoke" / toy.id / name), check_dtype=False
    )
    assert (kept["x"][0], kept["t"][0], frame["x"][0]) == (1.23457, 0.333333, 1.23456789)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": [[1, 2], 3]}), "the column 'a' holds a list in row 0"),
        (pd.DataFrame({"a": [1, torch.ones(2)]}), "the column 'a' holds a Tensor in row 1"),
        (pd.DataFrame({"a": [1j]}), "the column 'a' holds complex128"),
        ({"a": [1]}, "a pandas table, not dict"),
        (pd.DataFrame([[1, 2]]), "columns of a table that is kept have names"),
        (pd.DataFrame({"a": ["\ud800"]}, dtype=object), "no UTF-8"),
    ],
)
def test_what_is_no_tidy_table_is_refused(toy, frame, message):
    with pytest.raises(ClaimError, match=message):
        toy.open().keep(frame)


@pytest.mark.parametrize(("platform", "unit"), [("linux", 1024), ("darwin", 1)])
def test_the_peak_of_memory_is_in_bytes_on_every_system(toy, monkeypatch, platform, unit):
    claim = toy.open()
    used = SimpleNamespace(ru_maxrss=5000)
    monkeypatch.setattr(claims.resource, "getrusage", lambda who: used)
    monkeypatch.setattr(claims, "sys", SimpleNamespace(platform=platform))
    assert claim._machine()["peak_bytes"] == 5000 * unit
