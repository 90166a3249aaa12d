"""Hot paths against peers.

Interleaved in one process, the median of the ratios and whether the results agree.

A script of this folder hands its `Comparison`s and `Quantity`s to `main`, which prints a line for
each and keeps it in the table of this machine, `results/<machine>.md`. Everything runs on one
thread.
"""

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from ledger import fingerprints
from ledger.run import apply_environment

HERE = Path(__file__).parent
RESULTS = HERE / "results"
JAX = HERE / ".jax" / "bin" / "python"
CLOCKS = {"CPU": time.process_time, "wall": time.perf_counter}


class Absent(Exception):
    """A peer that is not installed, or data that cannot be had; its message says what to do."""


@dataclass(frozen=True)
class Comparison:
    """path: what is timed; peer: against what; at_most: the ratio ours / peer to reach.

    prepare: gives (ours, peer, difference): two callables that do the same work, or return the
    seconds that they measured themselves, and one that compares their results and gives (relative
    difference, tolerance). It may give a fourth, which does only what nobody can leave out, such as
    the matrix products: its share of the peer's time is the floor, and at_most is then a multiple
    of that floor.
    """

    path: str
    peer: str
    at_most: float
    prepare: Callable
    clock: str = "CPU"
    alternations: int = 9

    def row(self):
        """The first call of each side is not timed; which side goes first alternates."""
        ours, peer, difference, *least = self.prepare()
        ours(), peer()
        found, tolerance = difference()
        works, times = [ours, peer, *least], []
        for k in range(self.alternations):
            order = works if k % 2 else works[::-1]
            seconds = {work: self._seconds(work) for work in order}
            times.append([seconds[work] for work in works])
        row = {"unit": f"of the {self.clock} time", "difference": found, "tolerance": tolerance}
        row["seconds"] = [statistics.median(column) for column in zip(*times, strict=True)]
        if least:
            row["floor"] = statistics.median(floor / peer for _, peer, floor in times)
            row["at_most"] = self.at_most * row["floor"]
        return row | _spread([ours / peer for ours, peer, *_ in times])

    def _seconds(self, work):
        start = CLOCKS[self.clock]()
        own = work()
        return own if isinstance(own, float) else CLOCKS[self.clock]() - start


@dataclass(frozen=True)
class Quantity:
    """path: what is measured; peer: what it is free of, or relative to.

    At_most: the value to reach, in `unit`.

    measure: gives a list of values, of which the median counts.
    """

    path: str
    peer: str
    at_most: float
    unit: str
    measure: Callable

    def row(self):
        return {"unit": self.unit, **_spread(self.measure())}


def _spread(values):
    low, median, high = statistics.quantiles(values, n=4)
    return {"value": median, "low": low, "high": high, "repetitions": len(values)}


def main(rows):
    """Measure those whose path or peer contains a word of the command line (default: all).

    And keep them.
    """
    apply_environment()
    torch.set_num_threads(1)
    threadpool_limits(1)
    for each in rows:
        if sys.argv[1:] and not any(word in f"{each.path} {each.peer}" for word in sys.argv[1:]):
            continue
        row = {
            "script": Path(sys.argv[0]).stem,
            "path": each.path,
            "peer": each.peer,
            "at_most": each.at_most,
        }
        try:
            row |= each.row()
        except Absent as absent:
            row["skipped"] = str(absent)
        print("  ".join(cells(row)), flush=True)
        keep(row)


def machine():
    """A short name of the processor and its cores, for files."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text() if info.exists() else "")
    name = found[1] if found else platform.processor() or platform.machine()
    return re.sub(r"[^a-z0-9]+", "-", f"{name} {os.cpu_count()} cores".lower()).strip("-")


def keep(row, folder=RESULTS):
    """Put a row in place of an earlier one of the same path and peer in `<machine>.json` and
    `.md`.
    """
    folder.mkdir(exist_ok=True)
    stored = folder / f"{machine()}.json"
    rows = json.loads(stored.read_text(encoding="utf-8"))["rows"] if stored.exists() else []
    by_name = {(old["path"], old["peer"]): old for old in [*rows, row]}
    record = {
        "machine": machine(),
        "versions": fingerprints.versions(),
        "git": fingerprints.git_revision(),
    }
    stored.write_text(
        json.dumps(record | {"rows": list(by_name.values())}, indent=1) + "\n", encoding="utf-8"
    )
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    lines = [
        f"# Benchmarks on {record['machine']}",
        "",
        f"{versions}. One thread; medians of interleaved repetitions, quartiles in brackets.",
        "",
        "The floor is the share of the peer's time that the work takes which nobody can leave out,",
        "such as the matrix products alone.",
        "",
        "| path | against | value | floor | at most | reached | results agree |",
        "|---|---|---|---|---|---|---|",
        *("| " + " | ".join(cells(each)) + " |" for each in by_name.values()),
    ]
    stored.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def cells(row):
    """The cells of a row: path, peer, value with quartiles, floor, threshold, whether it is
    reached, whether results agree.
    """
    path, limit = [row["path"], row["peer"]], f"{row['at_most']:.3g}"
    floor = f"{row['floor']:.3g}" if "floor" in row else ""
    if "skipped" in row:
        return [*path, f"skipped: {row['skipped']}", floor, limit, "", ""]
    value = f"{row['value']:.3g} [{row['low']:.3g}, {row['high']:.3g}] {row['unit']}"
    agree = f"to {row['difference']:.0e}" if "difference" in row else ""
    if agree and row["difference"] > row["tolerance"]:
        agree = f"NO: {row['difference']:.1e} > {row['tolerance']:.0e}"
    reached = "yes" if row["value"] <= row["at_most"] else "no"
    return [*path, value, floor, limit, reached, agree]


def default_products(work):
    """`work` with torch's default float32 products, whatever the library has chosen for its own."""

    def run():
        chosen = torch.backends.mkldnn.matmul.fp32_precision
        torch.backends.mkldnn.matmul.fp32_precision = "none"
        try:
            return work()
        finally:
            torch.backends.mkldnn.matmul.fp32_precision = chosen

    return run


class JaxPeer:
    """neural-tangents in its own environment.

    A process that does its task once for each call, and times itself.
    """

    def __init__(self, task, **inputs):
        if not JAX.exists():
            raise Absent(
                "neural-tangents is not installed; `make bench-jax` makes an environment with it"
            )
        self.folder = tempfile.TemporaryDirectory()
        np.savez(f"{self.folder.name}/inputs.npz", **inputs)
        # read when the process has ended
        self.log = open(f"{self.folder.name}/log", "w+")  # noqa: SIM115
        command = [JAX, HERE / "jax_peer.py", task, self.folder.name]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True
        )

    def __call__(self):
        self.process.stdin.write("again\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise Absent(
                f"neural-tangents ended with code {self.process.wait()}: {self.log.read()[-300:]}"
            )
        return float(line)

    def result(self):
        """The array that its first call gave."""
        return np.load(f"{self.folder.name}/result.npy")
