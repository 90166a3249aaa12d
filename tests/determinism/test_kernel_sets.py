"""Two notebooks of different kinds under the narrowest CPU kernels with two threads.

Nothing that decides may turn.
"""

import json
import shutil

import pytest
import torch

from copies import Copy
from ledger.paths import ROOT

# ATEN_CPU_CAPABILITY selects torch's own kernels; the libraries that multiply and factorize for
# torch, numpy and scipy have switches of their own.
NARROW = {
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL",
}
OWN = torch.backends.cpu.get_cpu_capability()
# Kernels in closed form with their spectrum; descent by hand of leaky nets.
CLAIMS = ("arora2019-fig1-spectrum-projections", "guo2024-fig2-rate-vs-alpha")


def records(copy, threads, **environment):
    """{claim: record} at smoke size, with so many threads."""
    folder = copy.root / f"{threads} threads"
    words = [word for claim in CLAIMS for word in ("--claim", claim)]
    code, out, err = copy.run(
        "figures",
        *words,
        "--",
        "--set-threads",
        f"notebook={threads}",
        OVERPARAM_FIGURES=str(folder),
        **environment,
    )
    assert code == 0, out + err
    return {
        c: json.loads((folder / "smoke" / c / "result.json").read_text(encoding="utf-8"))
        for c in CLAIMS
    }


def decides(record):
    """The verdict, and the outcome of each check."""
    return record["verdict"], {row["name"]: row["outcome"] for row in record["checks"]}


@pytest.mark.timeout(900)
def test_nothing_that_decides_turns(tmp_path):
    copy = Copy(tmp_path / "project", seconds=900)
    for name in ("notebooks", "data"):
        shutil.copytree(ROOT / name, copy.root / name, ignore=shutil.ignore_patterns("cache"))
    reference = records(copy, 1)
    for claim, record in records(copy, 2, **(NARROW if OWN in ("AVX512", "AVX2") else {})).items():
        assert record["device"] != reference[claim]["device"]
        assert decides(record) == decides(reference[claim])
