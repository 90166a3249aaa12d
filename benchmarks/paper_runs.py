"""Runs at the papers' own sizes: which still wait, those that fit into the given minutes, and their results to carry.

`python benchmarks/paper_runs.py` prints the plan for 30 minutes; with `--run` it is carried out. A run that the time
ends goes on from its checkpoints the next time. `--collect FOLDER` packs records and checkpoints into archives.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from overparam import paths
from overparam.errors import OverparamError
from overparam.record import checks
from overparam.run import runner

# What says most for its minutes comes first; all others follow by their minutes.
FIRST = (
    "guo2024-fig1-synthetic", "guo2024-fig2-rate-vs-alpha", "arora2019-fig1-convergence-labels",
    "arora2019-fig2-complexity-vs-test-error", "noy2021-thm1-tightness", "noy2021-tab2-cifar", "guo2024-fig1-fmnist",
    "guo2024-fig3-mnist", "guo2024-fig5-width", "guo2024-fig3-california", "guo2024-fig1-cifar",
    "allenzhu2019-fig1-vgg19", "allenzhu2019-fig2-resnet32-cifar100", "noy2021-fig4-sgemm-lr",
)  # fmt: skip
PIECE = 15 * 2**20  # bytes of an archive before compression
GRACE = 60  # seconds for a notebook to stop


@dataclass(frozen=True)
class Waiting:
    """A run that is not up to date: minutes as declared, or as measured where an older record has its seconds."""

    stem: str
    minutes: float
    gpu: bool
    begun: bool

    def __str__(self):
        marks = ", ".join(["GPU"] * self.gpu + ["begun"] * self.begun)
        return f"{self.minutes:7.1f} min  {self.stem}" + (f"  ({marks})" if marks else "")


def waiting(profile):
    """Runs of the profile whose records are absent or stale, in the order in which they should be done."""
    found = []
    for stem in runner.notebooks(profile):
        if runner.stale(stem, profile):
            resources, old = checks.profile_parameters(stem, profile)[2], _record(stem, profile)
            minutes = old["seconds"] / 60 if old else resources.get("minutes", 1)
            begun = any((paths.LOGS / "checkpoints" / profile / stem).glob("*.safetensors"))
            found.append(Waiting(stem, minutes, bool(resources.get("gpu")), begun))
    rank = {stem: place for place, stem in enumerate(FIRST)}
    return sorted(found, key=lambda w: (rank.get(w.stem, len(FIRST)), w.minutes))


def _record(stem, profile):
    try:
        return runner.record(stem, profile)
    except OverparamError:
        return None


def chosen(runs, minutes, gpu):
    """Those that fit, in order, and then the first that is left, which can begin; with no GPU, none that needs one."""
    fitting, rest, left = [], [], minutes
    for run in runs:
        if gpu or not run.gpu:
            (fitting if run.minutes <= left else rest).append(run)
            left -= run.minutes if run.minutes <= left else 0
    return fitting + rest[:1]


def carry_out(run, profile, deadline):
    """{claim, verdict or error, seconds}, or {error} of a run that died or that the deadline interrupted."""
    command = [sys.executable, "-m", "overparam.run.cli", "run", run.stem, "--profile", profile, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            out, _ = process.communicate(timeout=max(deadline - time.monotonic(), 0.1))
            return json.loads(out.strip().splitlines()[-1]) if out.strip() else {"error": "it died without a word"}
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    return {"error": "time is up; it goes on from its checkpoints"}


def collect(folder, profile, piece=PIECE):
    """Pack records and checkpoints into `folder`/<profile>-<k>.tar.gz, below `piece` bytes each: (packed, left out)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    roots = (paths.FIGURES / profile, paths.LOGS / "checkpoints" / profile)
    files = [path for root in roots for path in sorted(root.rglob("*")) if path.is_file()]
    left_out = [path for path in files if path.stat().st_size > piece]
    pieces, size = [[]], 0
    for path in (path for path in files if path not in left_out):
        if size + path.stat().st_size > piece:
            pieces, size = [*pieces, []], 0
        pieces[-1].append(path)
        size += path.stat().st_size
    for k, part in enumerate(pieces):
        with tarfile.open(folder / f"{profile}-{k}.tar.gz", "w:gz") as archive:
            for path in part:
                root = paths.FIGURES.parent if paths.FIGURES in path.parents else paths.LOGS.parent
                archive.add(path, path.relative_to(root))
    return pieces, left_out


def main(
    minutes: Annotated[float, typer.Option(min=0, help="Wall-clock minutes that may be used.")] = 30,
    run: Annotated[bool, typer.Option("--run", help="Carry the plan out.")] = False,
    to: Annotated[str | None, typer.Option("--collect", help="Folder for archives of the results.")] = None,
    profile: Annotated[str, typer.Option(help="smoke, laptop or paper.")] = "paper",
):
    deadline = time.monotonic() + 60 * minutes
    gpu = shutil.which("nvidia-smi") is not None
    runs = waiting(profile)
    plan = chosen(runs, minutes, gpu)
    total = sum(each.minutes for each in runs)
    print(f"{len(runs)} runs wait, {total:.0f} minutes in all; planned for {minutes:g} minutes:")
    for each in plan:
        print(each, flush=True)
        if run and time.monotonic() < deadline:
            event = carry_out(each, profile, deadline)
            print(f"{event.get('seconds', 0) / 60:7.1f} min  {event.get('verdict') or event['error']}", flush=True)
    for each in (w for w in runs if w not in plan):
        print(f"later: {each}")
    if to:
        pieces, left_out = collect(to, profile)
        print(f"{sum(map(len, pieces))} files in {len(pieces)} archives in {to}")
        for path in left_out:
            print(f"left out, over {PIECE >> 20} MiB: {path}")


if __name__ == "__main__":
    typer.run(main)
