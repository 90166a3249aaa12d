"""How a kernel is told of its run, and what the user's environment says."""

import json

import pytest

from ledger import claim as claims
from ledger import run
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
