"""How a kernel is told of its run, and what the user's environment says."""

import json

import pytest

from ledger import claim as claims
from ledger import paths, records, run, runner
from ledger.errors import ClaimError
from overparam import settings
from overparam.errors import ParameterError


def test_a_claim_writes_where_its_run_says(toy, monkeypatch, tmp_path, figures):
    assert run.present() == run.Run(figures=str(figures), references=str(figures))
    told = run.Run(str(tmp_path / "staged"), str(figures), str(tmp_path / "finished"), "f0")
    monkeypatch.setenv(run.VARIABLE, told.variables()[run.VARIABLE])
    assert run.present() == told
    claim = toy.measured()
    saved = claim.checkpoints / "net-0.safetensors"
    saved.parent.mkdir(parents=True)
    saved.touch()
    claim.report()
    assert (
        json.loads((tmp_path / "staged" / "smoke" / toy.id / "result.json").read_text())[
            "fingerprint"
        ]
        == "f0"
    )
    assert saved.exists()  # until the whole run has ended well
    assert not figures.exists()
    monkeypatch.setenv(run.VARIABLE, json.dumps({"sources": "of an earlier time"}))
    toy.open()  # a later claim of the same notebook: its sources were compared before
    monkeypatch.setattr(claims, "_opened", [])
    with pytest.raises(ClaimError, match="sources were written to since its run began"):
        toy.open()


@pytest.fixture
def by_hand(toy, monkeypatch):
    """A claim that was run, and whose notebook somebody now runs by hand."""
    with monkeypatch.context() as patched:
        toy.run(patched)
    monkeypatch.delenv(run.VARIABLE)
    return toy


def test_a_run_by_hand_touches_nothing_of_other_runs(by_hand, figures, capsys):
    kept = figures / "smoke" / by_hand.id
    before = {file.name: file.read_bytes() for file in kept.iterdir()}
    begun = paths.LOGS / "checkpoints" / "smoke" / by_hand.id / "net-0.safetensors"
    begun.parent.mkdir(parents=True)
    begun.touch()  # of a run that was interrupted
    for changes, folder in (
        ({}, "custom/smoke,by-hand"),
        ({"n": 6}, "custom/smoke,n=6,by-hand"),
        ({"profile": "laptop", "n": 20}, "custom/laptop,by-hand"),
    ):
        by_hand.measured(0.75, **changes).report()
        place = f"figures/{folder}/{by_hand.id}"
        said = f"Run by hand: the record goes to {place}, and no other one is touched.\n"
        assert said in capsys.readouterr().out
        assert by_hand.record(folder)["checks"][0]["value"] == 0.75
    assert {file.name: file.read_bytes() for file in kept.iterdir()} == before
    assert begun.exists()
    assert not (figures / "laptop").exists()
    by_hand.register(f"{by_hand.registered}\n[sizes.desk]\nn = 30\n")
    assert by_hand.open(profile="desk", n=30).runs is None


def test_a_notebook_that_was_run_by_hand_and_saved_leaves_its_record_valid(
    by_hand, figures, monkeypatch
):
    shown = []
    monkeypatch.setattr(claims, "_show", lambda data, more=None: shown.append((data, more or {})))
    by_hand.measured(0.75).report()
    path = records.executed(by_hand.id, "smoke")
    notebook = json.loads(path.read_text())
    notebook["cells"][-1]["outputs"] = [{"data": data, "metadata": more} for data, more in shown]
    path.write_text(json.dumps(notebook))

    def state():
        (row,) = records.overview([by_hand.id])
        return row["sizes"]["smoke"]

    back = f"overparam run {by_hand.id} --profile smoke"
    said = f"{path} was run by hand and saved; `{back}` brings it back"
    assert state() == {"verdict": "holds", "stale": False, "error": said}
    assert not records.stale(by_hand.id, "smoke")
    with pytest.raises(ClaimError, match="is not what its run wrote"):  # which would seal it
        runner.refresh(by_hand.id, "smoke")
    result = path.with_name("result.json")
    before = result.read_text()
    for record, outputs in (
        (before.replace("0.5", "0.7"), notebook["cells"][-1]["outputs"]),
        (before, []),  # nothing tells that it was run
    ):
        result.write_text(record)
        notebook["cells"][-1]["outputs"] = outputs
        path.write_text(json.dumps(notebook))
        assert state()["stale"]
        assert "is not what its run wrote" in state()["error"]
        assert records.stale(by_hand.id, "smoke")


def test_a_committed_notebook_that_was_run_by_hand_comes_back_from_git(by_hand, monkeypatch):
    with monkeypatch.context() as patched:
        path = by_hand.run(patched, size="laptop")
    notebook = json.loads(path.read_text())
    output = {"data": {}, "metadata": {"ledger": {"by_hand": by_hand.id}}}
    notebook["cells"][-1]["outputs"].append(output)
    path.write_text(json.dumps(notebook))
    (row,) = records.overview([by_hand.id])
    assert row["sizes"]["laptop"]["error"].endswith(f"`git checkout {path}` brings it back")


def test_the_users_environment_becomes_the_librarys_settings(monkeypatch):
    sizes = {
        "1000": 1000,
        "800M": 800 * 2**20,
        "1.5 g": 1.5 * 2**30,
        "2GiB": 2**31,
        "3kB": 3072,
        "": None,
    }
    for given, count in sizes.items():
        monkeypatch.setenv("OVERPARAM_MEMORY", given)
        run.apply_environment()
        assert settings.memory_limit == count
    for seconds, progress, expected in (("0", "1", (0, True)), ("", "", (30, False))):
        monkeypatch.setenv("OVERPARAM_CHECKPOINT_SECONDS", seconds)
        monkeypatch.setenv("OVERPARAM_PROGRESS", progress)
        run.apply_environment()
        assert (settings.checkpoint_seconds, settings.progress) == expected


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        (
            "MEMORY",
            ["much", "-1G", "0", "1e9", "5X", "nan"],
            "OVERPARAM_MEMORY must be a size such as 800M or 6G",
        ),
        (
            "CHECKPOINT_SECONDS",
            ["often", "nan", "-1"],
            "OVERPARAM_CHECKPOINT_SECONDS must be a number of seconds",
        ),
    ],
)
def test_a_value_that_is_none_is_refused_by_name(monkeypatch, name, values, message):
    for value in values:
        monkeypatch.setenv(f"OVERPARAM_{name}", value)
        with pytest.raises(ParameterError, match=message):
            run.apply_environment()
