"""The paper profiles, which no test can run: their experiments on shapes alone, against what the tables declare."""

import pytest

from overparam.record import checks
from overparam.record.provenance import notebook_source
from overparam.run import cli, estimate, runner

STEMS = runner.notebooks("paper")
ONE_GPU = 139 * 1024  # MiB


@pytest.mark.parametrize("stem", STEMS)
def test_the_paper_profile_fits_into_what_it_declares(stem, monkeypatch, capsys):
    """Memory and minutes are printed by a dry run; what exceeds ten minutes resumes, or names its limit."""
    declared = checks.profile_parameters(stem, "paper")[2]
    cost = estimate.of(stem, "paper")
    assert 0 <= cost.peak_bytes / 2**20 <= declared["memory_mb"] <= ONE_GPU
    assert cost.peak_bytes > 0 or declared["gpu"] == 0  # symbolic notebooks hold no tensors
    assert cost.minutes <= declared["minutes"]
    code = "".join(source for kind, source in notebook_source(checks.spec(stem).path) if kind == "code")
    assert declared["minutes"] <= 10 or "checkpoint" in code or declared.get("limit")

    monkeypatch.setattr(estimate, "of", lambda *_: cost)
    cli.run(stem, profile="paper", p=None, threads=None, dry_run=True, as_json=False)
    printed = capsys.readouterr().out
    assert f"memory_mb {declared['memory_mb']}" in printed
    assert f"minutes {declared['minutes']}" in printed
    assert f"from shapes: {cost.peak_bytes / 2**20:.0f} MB" in printed
