"""Every smoke notebook twice.

The records of `make figures` and those of nbval agree to the last bit.

Runs after nbval, whose records it reads, and so is not collected with the other tests: `make test`
names it. No number of a smoke record is a time; the one notebook that measures times
(noy2021-sec44-speed) does so at larger sizes alone.
"""

import json

import numpy as np
import pytest

from ledger import records, registry
from ledger.paths import NOTEBOOKS, ROOT

FIRST, SECOND = ROOT / "figures" / "smoke", ROOT / "logs" / "nbval" / "smoke"
# nbval runs a notebook with its own literals; other claims of the same notebook have other
# parameters.
CLAIMS = [claim for claim in registry.registry() if registry.is_as_stored(claim)]


def measured(path):
    """{what: value as text or bytes} of a record.

    Its verdict, the values of its checks and metrics, its series.
    """
    record = json.loads(path.read_text(encoding="utf-8"))
    found = {
        "verdict": record["verdict"],
        "unmet": record["unmet"],
        "conditions": repr(record["conditions"]),
    }
    found |= {f"check {row['name']}": measurement(row) for row in record["checks"]}
    found |= {f"metric {name}": measurement(row) for name, row in record["metrics"].items()}
    if record["series"]:
        with np.load(path.with_name("series.npz"), allow_pickle=False) as arrays:
            series = {name: arrays[name] for name in arrays.files}
        found |= {
            f"series {name}": (a.dtype.str, a.shape, a.tobytes()) for name, a in series.items()
        }
    return found | {name: path.with_name(name).read_bytes() for name in record["tables"]}


def measurement(row):
    return repr([row["value"], row["interval"], row["n"]])


def differing(one, other):
    """Names of what two runs did not measure alike, to the last bit."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


@pytest.mark.parametrize("claim", CLAIMS)
def test_two_runs_measure_the_same(claim):
    first, second = FIRST / claim / "result.json", SECOND / claim / "result.json"
    assert second.exists(), "nbval left no record"
    if not first.exists():
        pytest.skip("no record of `make figures` to compare with")
    record, other = (json.loads(path.read_text(encoding="utf-8")) for path in (first, second))
    if record["fingerprint"] != records.fingerprint(claim, "smoke"):
        pytest.skip("the record in figures/smoke is of other sources; `make figures` renews it")
    if record["device"] != other["device"]:
        pytest.skip(
            f"the record in figures/smoke is of another device or thread count: {record['device']}"
        )
    assert differing(measured(first), measured(second)) == []


def test_every_notebook_is_compared():
    assert {registry.claim(claim).page.notebook for claim in CLAIMS} == {
        *NOTEBOOKS.glob("*/*.ipynb")
    }
