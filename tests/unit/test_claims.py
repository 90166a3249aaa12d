"""The record: parameters, checks, verdicts, atomic output."""

import itertools
import json
import re

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest

from overparam import paths
from overparam.errors import ClaimError, MemoryExceeded, ParameterError
from overparam.record import checks, files, plots
from overparam.record.checks import Check, verdict
from overparam.record.claims import Claim
from overparam.record.parameters import notebook_parameters, validated

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


def test_a_record_holds_what_was_measured(toy, figures, capsys):
    claim = measured(Claim("toy2020-lem1", namespace()))
    claim.metric("slope", 0.25, paper=0.3)
    claim.series(curve=np.array([1.23456789, 0.0, np.nan]), index=[1, 2])
    fig, ax = plt.subplots()
    ax.plot([0, 1])
    claim.figure(fig, "rates")
    plt.close(fig)
    claim.report()
    folder = figures / "smoke" / "toy2020-lem1"
    record = json.loads((folder / "result.json").read_text())
    assert record["verdict"] == "reproduced"
    assert record["seeds"] == [3, 4]
    assert record["metrics"]["slope"] == {"value": 0.25, "paper": 0.3}
    assert record["parameters"] == namespace()
    assert {p.name for p in folder.iterdir()} == {"result.json", "series.npz", "rates.png", "rates.svg"}
    with np.load(folder / "series.npz", allow_pickle=False) as series:
        np.testing.assert_array_equal(series["curve"], np.array([1.23457, 0.0, np.nan], dtype=np.float32))
    assert "REPRODUCED" in capsys.readouterr().out


def test_the_same_figure_gives_the_same_files(toy, figures):
    made = []
    for _ in range(2):
        claim = measured(Claim("toy2020-lem1", namespace()))
        fig, axes = plots.figure()
        plots.band(axes[0, 0], [1, 2], [[1, 2], [2, 3]], label="runs")
        claim.figure(fig, "rates")
        plt.close(fig)
        claim.report()
        made.append({p.name: p.read_bytes() for p in (figures / "smoke" / "toy2020-lem1").glob("rates.*")})
    assert made[0] == made[1]
    assert len(made[0]) == 2


def test_a_changed_parameter_never_overwrites_a_reference(toy, figures):
    measured(Claim("toy2020-lem1", namespace(n=6))).report()
    assert not (figures / "smoke").exists()
    assert json.loads((figures / "custom" / "toy2020-lem1" / "result.json").read_text())["profile"] == "custom"


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
        ({"n": "x"}, "n must be int"),
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


def test_whole_numbers_pass_for_floats(toy):
    assert validated({"rate": 1}, namespace(), {}) == {"rate": 1.0}


def test_a_missing_parameter_is_named(toy):
    values = namespace()
    del values["rate"]
    with pytest.raises(ParameterError, match="not set: rate"):
        Claim("toy2020-lem1", values)


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


def test_a_check_of_a_larger_profile_is_required_there(toy):
    claim = measured(Claim("toy2020-lem1", namespace(profile="laptop", n=20)))
    with pytest.raises(ClaimError, match="not measured: large"):
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
    assert check.holds(inside)
    assert not check.holds(outside)
    assert not check.holds(float("nan"))
    assert not check.holds(float("inf"))


def rows(**holds):
    """{R1=True, N1=False} as result rows; a lower-case tag does not apply at this profile."""
    return [{"name": k, "tag": k[0].upper(), "holds": v, "applies": k[0].isupper()} for k, v in holds.items()]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (rows(R1=True, N1=True, I1=False), "reproduced"),
        (rows(R1=True, R2=False, N1=True), "partly"),
        (rows(R1=True, R2=False, R3=False), "not reproduced"),
        (rows(R1=True, N1=False), "not reproduced"),
        (rows(R1=True, R2=True, R3=False, N1=False), "not reproduced"),
        (rows(R1=True, C1=True), "contradicted"),
        (rows(R1=True, C1=False), "reproduced"),
        (rows(r1=True, I1=True, N1=True), "not testable at this scale"),
        (rows(R1=True, r2=False, n1=False), "reproduced"),
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
    (toy / "profiles.toml").write_text(PROFILES + "[toy2020-lem1.smoke.resources]\nmemory_mb = 90\n")
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
    assert Claim("toy2020-lem2", namespace()).folder.parent.name == "custom"


def test_what_could_not_be_measured_fails_and_is_not_said_to_have_been(toy, figures, capsys):
    claim = Claim("toy2020-lem1", namespace())
    claim.check("decides", float("nan"))
    claim.check("ours", 0)
    claim.report()
    assert re.search(r"decides +nan +<= 1 +not measured", capsys.readouterr().out)
    record = json.loads((figures / "smoke" / "toy2020-lem1" / "result.json").read_text())
    assert record["verdict"] == "not reproduced"
