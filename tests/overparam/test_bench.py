"""The benchmarks' bookkeeping.

What counts as reached, what is kept, what is said of rows that cannot be measured.
"""

import importlib
import json
import sys

import pytest
import torch

from ledger.paths import ROOT

ROW = {
    "path": "a",
    "peer": "b",
    "at_most": 0.5,
    "unit": "of the CPU time",
    "value": 0.4,
    "low": 0.3,
    "high": 0.6,
}


@pytest.fixture
def harness(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("harness")


def test_what_a_row_says(harness):
    assert [harness.cells(ROW | {"value": value})[5] for value in (0.4, 0.5, 0.51)] == [
        "yes",
        "yes",
        "no",
    ]
    assert "NO" in harness.cells(ROW | {"difference": 1e-3, "tolerance": 1e-5})[6]
    assert harness.cells(ROW | {"difference": 1e-7, "tolerance": 1e-5})[6] == "to 1e-07"
    absent = harness.cells({"path": "a", "peer": "b", "at_most": 0.5, "skipped": "not installed"})
    assert (absent[2], absent[5]) == ("skipped: not installed", "")


def test_a_second_run_replaces_its_own_rows_alone(harness, tmp_path):
    for row in (ROW, ROW | {"path": "c"}, ROW | {"value": 0.2}):
        harness.keep(row, tmp_path)
    (stored,) = tmp_path.glob("*.json")
    assert [(row["path"], row["value"]) for row in json.loads(stored.read_text())["rows"]] == [
        ("a", 0.2),
        ("c", 0.4),
    ]
    assert stored.with_suffix(".md").read_text().count("\n| ") == 3


def test_the_median_of_the_ratios_counts_and_the_results_are_compared(harness):
    times = iter([9.0, 1.0, 4.0, 2.0, 6.0, 3.0])
    sides = lambda: next(times), lambda: 2.0, lambda: (0.5, 1.0)
    row = harness.Comparison("a", "b", 1, lambda: sides, alternations=5).row()
    assert (row["value"], row["seconds"], row["difference"]) == (1.5, [3.0, 2.0], 0.5)


def test_an_aim_may_be_a_multiple_of_what_nobody_can_leave_out(harness):
    sides = lambda: 3.0, lambda: 4.0, lambda: (0.5, 1.0), lambda: 2.0
    row = harness.Comparison("a", "b", 1.4, lambda: sides).row()
    assert (row["value"], row["floor"], row["at_most"]) == (0.75, 0.5, 0.7)
    said = harness.cells(row | {"path": "a", "peer": "b"})
    assert said[3:6] == ["0.5", "0.7", "no"]


@pytest.mark.parametrize(
    ("comparison", "sizes"), [("against_products", (2, 20, 8)), ("sweep", (3, 20, 16, 4))]
)
def test_what_is_compared_on_a_gpu_agrees(harness, comparison, sizes):
    made = getattr(importlib.import_module("sweep"), comparison)(*sizes, device="cpu")
    ours, peer, difference, least = made
    ours(), peer(), least()
    found, tolerance = difference()
    assert 0 < found < tolerance / 100


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_its_rows_say_so(harness, monkeypatch):
    kept, gpu = [], importlib.import_module("gpu")
    monkeypatch.setattr(harness, "keep", kept.append)
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    gpu.main(list(gpu.rows()))
    assert {row["skipped"] for row in kept} == {"there is no GPU here"}
