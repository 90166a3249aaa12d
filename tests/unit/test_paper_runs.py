"""The planner of paper-size runs: what fits, what is carried home, what happens when time is up."""

import importlib.util
import tarfile
import time

import pytest

from overparam import paths
from overparam.run import bench


@pytest.fixture(scope="module")
def paper_runs():
    spec = importlib.util.spec_from_file_location("paper_runs", bench.FOLDER / "paper_runs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_plan_takes_what_fits_in_order_and_begins_one_more(paper_runs):
    minutes = (20, 15, 5, 9, 40)
    runs = [paper_runs.Waiting(str(k), cost, gpu=k == 2, begun=False) for k, cost in enumerate(minutes)]
    assert [w.stem for w in paper_runs.chosen(runs, 30, gpu=True)] == ["0", "2", "1"]
    assert [w.stem for w in paper_runs.chosen(runs, 30, gpu=False)] == ["0", "3", "1"]
    assert [w.stem for w in paper_runs.chosen(runs, 0, gpu=True)] == ["0"]


def test_what_waits_has_declared_minutes_and_the_first_come_first(paper_runs, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "FIGURES", tmp_path)
    runs = paper_runs.waiting("paper")
    assert [w.stem for w in runs[: len(paper_runs.FIRST)]] == list(paper_runs.FIRST)
    rest = [w.minutes for w in runs[len(paper_runs.FIRST) :]]
    assert rest == sorted(rest)
    assert min(rest) > 0


def test_archives_stay_small_and_unpack_to_where_the_files_were(paper_runs, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(paths, "LOGS", tmp_path / "logs")
    sizes = {"figures/paper/a/one.png": 60, "figures/paper/a/two.png": 60, "logs/checkpoints/paper/a/run-0.bin": 30,
             "figures/paper/b/large.npz": 101}  # fmt: skip
    for name, size in sizes.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(bytes(size))
    pieces, left_out = paper_runs.collect(tmp_path / "out", "paper", piece=100)
    assert [path.name for path in left_out] == ["large.npz"]
    archives = sorted((tmp_path / "out").iterdir())
    assert len(archives) == len(pieces) == 2
    for archive in archives:
        with tarfile.open(archive) as content:
            content.extractall(tmp_path / "home", filter="data")
    unpacked = {str(p.relative_to(tmp_path / "home")) for p in (tmp_path / "home").rglob("*") if p.is_file()}
    assert unpacked == set(sizes) - {"figures/paper/b/large.npz"}


def test_a_run_ends_when_time_is_up(paper_runs, tmp_path, monkeypatch):
    monkeypatch.setenv("OVERPARAM_FIGURES", str(tmp_path))
    run = paper_runs.Waiting("frei2019-width-requirement-table", 1, gpu=False, begun=False)
    event = paper_runs.carry_out(run, "smoke", time.monotonic() + 0.5)
    assert event["error"].startswith("time is up")
    assert not list((tmp_path / "smoke" / run.stem).glob("*"))
