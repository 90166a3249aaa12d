"""The smoke batch against papermill's command line, one notebook after another."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Comparison, main

from ledger import records, registry

EVERY = 16  # notebooks, in the order of the registry
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def sample():
    """Those that papermill can run as they stand.

    No second run of a notebook that several share.
    """
    return [stem for stem in records.pages("smoke") if registry.is_as_stored(stem)][::EVERY]


def environment(folder, threads):
    counts = dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)
    )
    return {**os.environ, **counts, "OVERPARAM_FIGURES": folder}


def batch():
    """`overparam figures` on all cores.

    Papermill with all cores for each notebook, as it would be typed.
    """
    stems = sample()
    ours_at = tempfile.TemporaryDirectory()
    theirs_at = tempfile.TemporaryDirectory()

    def ours():
        records = Path(ours_at.name, "smoke")
        for record in records.glob("*/result.json"):  # as if nothing had been run yet
            record.unlink()
        named = [word for stem in stems for word in ("--claim", stem)]
        subprocess.run(
            [sys.executable, "-m", "ledger.cli", "figures", *named],
            env=environment(ours_at.name, 1),
            check=True,
            **QUIET,
        )

    def papermill():
        for stem in stems:
            notebook = registry.claim(stem).page.notebook
            executed = f"{theirs_at.name}/{stem}.ipynb"
            subprocess.run(
                [sys.executable, "-m", "papermill", notebook, executed, "--cwd", notebook.parent],
                env=environment(theirs_at.name, os.cpu_count()),
                check=True,
                **QUIET,
            )

    def difference():
        """Share of the claims whose verdicts differ."""
        ids = [claim.id for stem in stems for claim in registry.served(stem)]
        pairs = [[verdict(folder.name, claim) for folder in (ours_at, theirs_at)] for claim in ids]
        return sum(a != b for a, b in pairs) / len(pairs), 0.0

    return ours, papermill, difference


def verdict(folder, claim):
    """That of a claim's one record in a folder: what papermill runs counts as a run by hand."""
    (record,) = Path(folder).rglob(f"{claim}/result.json")
    return json.loads(record.read_text())["verdict"]


if __name__ == "__main__":
    row = f"smoke batch, {len(sample())} notebooks", "papermill, serially"
    main([Comparison(*row, 0.30, batch, "wall", 7)])
