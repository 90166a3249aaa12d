"""The benchmarks' bookkeeping: what counts as reached, what is kept, what is said of rows that cannot be measured."""

import importlib
import json
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from overparam.errors import ParameterError, RunFailed
from overparam.run import bench, cli

ROW = {"path": "a", "peer": "b", "at_most": 0.5, "unit": "of the CPU time", "value": 0.4, "low": 0.3, "high": 0.6}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "results")
    return tmp_path


@pytest.mark.parametrize(("value", "reached"), [(0.4, "yes"), (0.5, "yes"), (0.51, "no")])
def test_the_threshold_is_reached_at_or_below_it(value, reached):
    assert bench.cells(ROW | {"value": value})[4] == reached


def test_results_that_differ_are_shouted():
    assert "NO" in bench.cells(ROW | {"difference": 1e-3, "tolerance": 1e-5})[5]
    assert bench.cells(ROW | {"difference": 1e-7, "tolerance": 1e-5})[5] == "to 1e-07"


def test_a_row_without_its_peer_says_why_and_counts_as_nothing():
    cells = bench.cells({"path": "a", "peer": "b", "at_most": 0.5, "skipped": "not installed"})
    assert cells[2] == "skipped: not installed"
    assert cells[4] == ""


def test_a_second_run_replaces_its_own_rows_alone(folder):
    bench.write([ROW, ROW | {"path": "c"}])
    page = bench.write([ROW | {"value": 0.2}])
    rows = json.loads(page.with_suffix(".json").read_text())["rows"]
    assert [(row["path"], row["value"]) for row in rows] == [("a", 0.2), ("c", 0.4)]
    assert page.read_text().count("\n| ") == 3


def test_rows_are_collected_from_scripts_and_a_failing_script_is_named(folder):
    (folder / "harness.py").write_text("raise SystemExit(3)")
    (folder / "one.py").write_text(f"print({json.dumps(json.dumps(ROW))})")
    seen = []
    assert bench.measure(on_row=seen.append) == seen == [{"script": "one", **ROW}]
    (folder / "two.py").write_text("raise SystemExit(3)")
    with pytest.raises(RunFailed, match=r"two\.py ended with code 3"):
        bench.measure(on_row=seen.append)


def test_the_command_measures_and_writes_the_table(folder):
    ran = CliRunner().invoke(cli.app, ["bench", "nothing"])
    assert isinstance(ran.exception, ParameterError)
    assert "no benchmark has any of nothing" in str(ran.exception)
    (folder / "one.py").write_text(f"print({json.dumps(json.dumps(ROW))})")
    ran = CliRunner().invoke(cli.app, ["bench"], catch_exceptions=False)
    assert "0.4" in ran.output
    assert len(json.loads(next((folder / "results").glob("*.json")).read_text())["rows"]) == 1


def test_the_harness_takes_the_median_of_the_ratios_and_compares_the_results():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from harness import Comparison\n"
        "times = iter([9.0, 1.0, 4.0, 2.0, 6.0, 3.0]); peer = lambda: 2.0\n"
        "row = Comparison('a', 'b', 1, lambda: (lambda: next(times), peer, lambda: (0.5, 1.0)), alternations=5).row()\n"
        "print(row['value'], row['seconds'], row['difference'])"
    )
    ran = subprocess.run([sys.executable, "-c", code, bench.FOLDER], capture_output=True, text=True, check=True)
    assert ran.stdout == "1.5 [3.0, 2.0] 0.5\n"


@pytest.fixture
def on_gpu(monkeypatch):
    """The script for GPUs, whose comparisons run on a CPU as well."""
    monkeypatch.syspath_prepend(str(bench.FOLDER))
    return importlib.import_module("gpu")


@pytest.mark.parametrize(
    ("comparison", "sizes"),
    [("against_products", (1, 50, 16)), ("against_products", (2, 20, 8)), ("sweep", (3, 20, 16, 4))],
)
def test_what_is_compared_on_a_gpu_agrees(on_gpu, comparison, sizes):
    ours, peer, difference = getattr(on_gpu.sweep, comparison)(*sizes, device="cpu")
    ours(), peer()
    found, tolerance = difference()
    assert 0 < found < tolerance / 100


def test_rounding_is_measured_against_float64_and_the_setting_is_put_back(on_gpu):
    before = torch.backends.cuda.matmul.fp32_precision
    errors = on_gpu.rounding("cpu", n=30, m=20, steps=10)
    assert len(errors) == 5
    assert all(0 < error < 1e-5 for error in errors)
    assert torch.backends.cuda.matmul.fp32_precision == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_its_rows_say_so(on_gpu, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    on_gpu.main(rows := list(on_gpu.rows()))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["skipped"] for line in lines] == ["there is no GPU here"] * len(rows)
