"""Run the scripts of `benchmarks/`, and keep their tables by machine."""

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from .. import paths
from ..errors import RunFailed
from ..record import provenance
from ..record.files import write_atomically

FOLDER = paths.ROOT / "benchmarks"
RESULTS = FOLDER / "results"
HELPERS = {"harness", "jax_peer", "scaling", "paper_runs"}


def scripts():
    """Paths of the scripts that measure something."""
    return [path for path in sorted(FOLDER.glob("*.py")) if path.stem not in HELPERS]


def measure(words=(), on_row=print):
    """Rows of all scripts, or of those whose path or peer contains one of the words; each row goes to `on_row` too.

    The scripts run one after another on one thread each, with the float32 kernels that the library chooses.
    Raises RunFailed where a script fails.
    """
    rows = []
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    for script in scripts():
        with subprocess.Popen(
            [sys.executable, script, *words], stdout=subprocess.PIPE, text=True, env=os.environ | threads
        ) as process:
            for line in process.stdout:
                rows.append({"script": script.stem, **json.loads(line)})
                on_row(rows[-1])
        if process.returncode:
            raise RunFailed(f"{script.name} ended with code {process.returncode}; its message stands above")
    return rows


def machine():
    """A short name of the processor and its cores, for files."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(errors="replace") if info.exists() else ""
    found = re.search(r"model name\s*:\s*(.+)", text)
    name = found[1] if found else platform.processor() or platform.machine()
    return re.sub(r"[^a-z0-9]+", "-", f"{name} {os.cpu_count()} cores".lower()).strip("-")


def write(rows):
    """Write `results/<machine>.json` and `.md`, and return the path of the latter.

    Rows of an earlier run that were not measured now stay.
    """
    RESULTS.mkdir(exist_ok=True)
    stored = RESULTS / f"{machine()}.json"
    old = json.loads(stored.read_text(encoding="utf-8"))["rows"] if stored.exists() else []
    new = {(row["path"], row["peer"]): row for row in rows}
    merged = [new.pop((row["path"], row["peer"]), row) for row in old] + list(new.values())
    record = {"machine": machine(), "versions": provenance.versions(), "git": provenance.git_revision(), "rows": merged}
    write_atomically(stored, (json.dumps(record, indent=1) + "\n").encode())
    write_atomically(stored.with_suffix(".md"), table(record).encode())
    return stored.with_suffix(".md")


def table(record):
    """The record as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    lines = [
        f"# Benchmarks on {record['machine']}",
        "",
        f"{versions}. One thread; medians of interleaved repetitions, quartiles in brackets.",
        "",
        "| path | against | value | at most | reached | results agree |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *("| " + " | ".join(cells(row)) + " |" for row in record["rows"])]) + "\n"


def cells(row):
    """The cells of a row: path, peer, value with quartiles, threshold, whether it is reached, whether results agree."""
    path, limit = [row["path"], row["peer"]], f"{row['at_most']:.3g}"
    if "skipped" in row:
        return [*path, f"skipped: {row['skipped']}", limit, "", ""]
    value = f"{row['value']:.3g} [{row['low']:.3g}, {row['high']:.3g}] {row['unit']}"
    agree = f"to {row['difference']:.0e}" if "difference" in row else ""
    if agree and row["difference"] > row["tolerance"]:
        agree = f"NO: {row['difference']:.1e} > {row['tolerance']:.0e}"
    return [*path, value, limit, "yes" if row["value"] <= row["at_most"] else "no", agree]
