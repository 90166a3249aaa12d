"""The smoke batch under all CPU kernel sets that this machine has, and with two threads: nothing that decides may turn.

    python tests/determinism/kernel_sets.py [--claim arora2019-fig1-convergence-labels ...] [--folder /tmp/sets]

Writes kernel_sets.md beside this file. With --folder, a batch that was interrupted goes on where it stopped.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from runs import Copy

from overparam.record import checks, render
from overparam.run import runner

# ATEN_CPU_CAPABILITY selects torch's own kernels; the libraries that multiply and factorize for torch, numpy and scipy
# have switches of their own. MKL takes other code on AMD processors than on Intel's, and knows AVX2 at most there.
SETS = {
    "avx512": {"ATEN_CPU_CAPABILITY": "avx512"},
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL",
    },
    "default": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_CBWR": "COMPATIBLE",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL",
    },
}
CLOSE = 1e-6  # relative


def settings():
    """[(kernel set, threads)] that this machine can run; the others are compared with the first."""
    own = torch.backends.cpu.get_cpu_capability().lower()
    names = list(SETS)[list(SETS).index(own) :] if own in SETS else [own]
    return [*((name, 1) for name in names), (names[0], 2)]


def batch(copy, kernels, threads, wanted=()):
    """Bring the smoke records under a kernel set and thread count up to date: {claim: record}, less what failed."""
    folder = copy.root / f"{kernels}-{threads}"
    words = [word for claim in wanted for word in ("--claim", claim)]
    jobs = max(os.cpu_count(), threads)
    code, output = copy.run(
        "figures", *words, "--cores", str(jobs), "--", "--set-threads", f"notebook={threads}",
        OVERPARAM_FIGURES=str(folder), **SETS.get(kernels, {}),
    )  # fmt: skip
    print(output if code else f"{kernels}, {threads} threads: done", flush=True)
    paths = {claim: folder / "smoke" / claim / "result.json" for claim in served(wanted)}
    return {claim: json.loads(path.read_text(encoding="utf-8")) for claim, path in paths.items() if path.exists()}


def served(wanted):
    """All claims, or those of the notebooks that serve the wanted ones."""
    notebooks = {checks.spec(claim).notebook for claim in wanted or checks.registry()}
    return [claim for notebook in sorted(notebooks) for claim in runner.served(notebook)]


def used(record):
    """(kernel set, threads) that a record says it was computed with."""
    _, threads, capability, *_ = record["device"].split(", ")
    return capability.lower(), int(threads.split()[0])


def flips(record, reference):
    """What turned: the verdict, or a check that applies and is more than information."""
    turned = ["verdict"] if record["verdict"] != reference["verdict"] else []
    rows = zip(record["checks"], reference["checks"], strict=True)
    return turned + [
        row["name"] for row, other in rows if row["applies"] and row["tag"] != "I" and row["holds"] != other["holds"]
    ]


def apart(record, reference):
    """(largest relative difference of a check's value, that of any number, the name of that number)."""
    checks = {row["name"]: row["value"] for row in record["checks"]}
    others = {row["name"]: row["value"] for row in reference["checks"]}
    numbers = checks | {name: row["value"] for name, row in record["metrics"].items()}
    references = others | {name: row["value"] for name, row in reference["metrics"].items()}
    of = {name: _relative(numbers[name], references[name]) for name in numbers}
    name = max(of, key=of.get)
    return max(of[check] for check in checks), of[name], name


def _relative(a, b):
    """|a - b| over the larger, 0 where both are rounding, 1 where only one is a number."""
    if a is None or b is None:
        return float(a is not b)
    larger = max(abs(a), abs(b))
    return 0.0 if larger < render.ROUNDING else abs(a - b) / larger


def table(found):
    """found: {setting: {claim: record}}; (Markdown, number of flips)."""
    (first, *others) = found
    reference = found[first]
    heads = [f"{kernels}{f' with {threads} threads' if threads > 1 else ''}" for kernels, threads in others]
    turned, rows, close = 0, [], dict.fromkeys(heads, 0)
    for claim, record in reference.items():
        cells = []
        for head, setting in zip(heads, others, strict=True):
            if (other := found[setting].get(claim)) is None:
                turned, cells = turned + 1, [*cells, "", "", "the notebook fails"]
                continue
            check, number, name = apart(other, record)
            turns = flips(other, record)
            turned, close[head] = turned + len(turns), close[head] + (number <= CLOSE)
            cells += [f"{check:.0e}", f"{number:.0e}" + (f" ({name})" if number > CLOSE else ""), ", ".join(turns)]
        rows.append(f"| {claim} | {record['verdict']} | {' | '.join(cells)} |")
    lines = [
        "# Kernel sets", "",
        f"The smoke records of {len(reference)} claims under {', '.join(heads)}, against {first[0]} with one thread: "
        "largest relative differences of the checks' values and of all numbers (with the number's name where it is "
        f"above {CLOSE:g}), and what turned: a verdict, or a check that is more than information. "
        f"torch {torch.__version__}. Made by `python tests/determinism/kernel_sets.py`.", "",
        f"Turned: {turned}. Claims all of whose numbers agree to {CLOSE:g}: "
        + ", ".join(f"{count} under {head}" for head, count in close.items()) + ". Numbers that are rounding errors "
        "themselves differ as they must.", "",
        "| claim | verdict | " + " | ".join(f"{head}: checks | numbers | turned" for head in heads) + " |",
        "|---|---|" + "---|" * (3 * len(heads)), *rows,
    ]  # fmt: skip
    return "\n".join(lines) + "\n", turned


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--claim", action="append", default=[], help="only this claim (may be repeated)")
    parser.add_argument("--folder", type=Path, help="an empty or new folder for the copy of the project, kept")
    parser.add_argument("--table", type=Path, default=Path(__file__).with_name("kernel_sets.md"))
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="kernel-sets-"))
    copy, found = Copy(folder / "project"), {}
    for setting in settings():
        found[setting] = batch(copy, *setting, given.claim)
        assert {used(record) for record in found[setting].values()} == {setting}
    text, turned = table(found)
    given.table.write_text(text)
    print(text)
    if given.folder is None:
        shutil.rmtree(folder)
    sys.exit(turned > 0)


if __name__ == "__main__":
    main()
