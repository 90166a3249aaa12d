"""What a user can get wrong: one or two lines on stderr, a non-zero exit code, nothing lost."""

import json

import pytest
from toys import complains


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "toy2020-find"], ["unknown claim 'toy2020-find'", "did you mean toy2020-fine"]),
        (["run", "\udcff"], ["unknown claim"]),
        (["run", "toy2020-fine", "--profile", "huge"], ["unknown profile 'huge'", "smoke, laptop"]),
        (["run", "toy2020-fine", "--profile", "laptop"], ["has no profile 'laptop'"]),
        (
            ["run", "toy2020-fine", "-p", "widht=3"],
            ["unknown parameter 'widht'; did you mean width?"],
        ),
        (["run", "toy2020-fine", "-p", "rate=fast"], ["rate must be float", "'fast'"]),
        (["run", "toy2020-fine", "-p", "width=0"], ["width must be at least 1, not 0"]),
        (["run", "toy2020-fine", "-p", "seed=4294967296"], ["seed must be in [0, 4294967295]"]),
        (["run", "toy2020-fine", "-p", f"seed={2**64}"], ["seed is an integer of 65 bits"]),
        (["run", "toy2020-fine", "-p", f"width={10**18}"], ["width is an integer of 60 bits"]),
        (["run", "toy2020-fine", "-p", "profile=paper"], ["--profile"]),
        (["run", "toy2020-fine", "-p", "width"], ["name=value"]),
        (["figures", "--profile", "huge"], ["unknown profile 'huge'"]),
        (["figures", "--claim", "toy2020-find"], ["unknown claim"]),
        (["show", "toy2020-find"], ["did you mean toy2020-fine"]),
        (["list", "--paper", "tyo2020"], ["unknown paper 'tyo2020'; did you mean toy2020?"]),
        (["list", "fine", "--json"], ["words, --paper and --verdict", "not with --profile"]),
        (["list", "--verdict", "disproved"], ["unknown verdict 'disproved'", "not reproduced"]),
        (["data", "fetch", "mnits"], ["mnits"]),
    ],
)
def test_words_that_make_no_sense(project, words, expected):
    assert complains(project.run(*words), *expected)
    assert not project.figures.exists()


def test_a_word_of_a_comment_names_its_parameter(project):
    notebook = project.file("toy2020-fine", ".ipynb")
    text = notebook.read_text()
    described = text.replace("width = 5", "width = 5  # neurons; the paper: 10")
    described = described.replace("sizes = [1, 2]", "sizes = [1, 2]  # neurons of others")
    assert described.count("neurons") == 2
    notebook.write_text(described)
    meant = "did you mean width (neurons) or sizes (neurons of others)?"
    outcome = project.run("run", "toy2020-fine", "-p", "neuron=3")
    assert complains(outcome, f"unknown parameter 'neuron'; {meant} there are profile, seed")
    outcome = project.run("run", "toy2020-fine", "-p", "paper=3")
    assert complains(outcome, "unknown parameter 'paper'; there are")
    outcome = project.run("run", "toy2020-fine", "-p", "number_of_sizes=3")
    assert complains(outcome, "unknown parameter 'number_of_sizes'; ")
    assert not project.figures.exists()


def test_a_search_without_a_result_says_so(project):
    code, out, err = project.run("list", "depth", "--paper", "toy")
    assert (code, out) == (
        0,
        "No claim of toy2020 has 'depth' in its id, title, source or finding.\n",
    )
    assert "error" not in err


def test_figures_that_cannot_be_written(project):
    outcome = project.run("run", "toy2020-fine", OVERPARAM_FIGURES="/proc/nowhere")
    assert complains(outcome, "cannot write to", "/proc/nowhere")


def test_a_changed_rerun_leaves_the_reference(project):
    """With thread counts that make no sense on the way."""
    code, _, err = project.run("run", "toy2020-fine", "--threads", "0")
    assert (code, "Invalid value for '--threads'" in err) == (2, True), err
    code, _, err = project.run("run", "toy2020-fine", "--threads", "2", OMP_NUM_THREADS="0")
    assert code == 0, err
    reference = project.record("toy2020-fine")
    assert json.loads(reference)["device"].startswith("CPU, 2 threads")
    code, out, _ = project.run("run", "toy2020-fine", "-p", "width=100", OMP_NUM_THREADS="64")
    assert code == 0
    assert "NOT REPRODUCED, WITH CHANGED PARAMETERS" in out
    assert "Changed: width: 5 -> 100" in out
    assert "(reference 0.5)" in out
    assert project.record("toy2020-fine") == reference
    assert (
        json.loads(project.record("toy2020-fine", "custom/smoke,width=100"))["parameters"]["width"]
        == 100
    )
    code, out, _ = project.run("show", "toy2020-fine")
    assert code == 0
    assert "figures/custom/smoke,width=100/toy2020-fine" in out
    code, out, _ = project.run("list", "--json")
    assert code == 0
    states = {row["claim"]: row["sizes"]["smoke"] for row in json.loads(out)}
    assert states["toy2020-fine"] == {"verdict": "reproduced", "stale": False}
    assert states["toy2020-slow"] == {"verdict": None, "stale": True}


@pytest.mark.parametrize("words", [["run", "toy2020-fine"], ["figures"]])
def test_a_shell_that_allows_too_little(project, words):
    for limit, allowed, what in (("NOFILE", 64, "files"), ("AS", 2**30, "bytes")):
        limited = f"from resource import *\nsetrlimit(RLIMIT_{limit}, ({allowed}, {allowed}))\n"
        (project.root / "lib" / "sitecustomize.py").write_text(limited)
        assert complains(project.run(*words), f"only {allowed} {what} may be")
    assert not (project.figures / "smoke").exists()


def test_a_dry_run_runs_nothing(project):
    project.seconds, sizes = 20, [1] * 20_000
    code, out, err = project.run(
        "run", "toy2020-fine", "--dry-run", "-p", "width=7", "-p", f"sizes={sizes}"
    )
    assert code == 0, err
    assert "width = 7" in out
    assert not project.figures.exists()
