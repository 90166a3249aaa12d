"""What changed in the records since a git revision: verdicts, checks, numbers beyond their tolerance, figures."""

import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

from overparam.errors import OverparamError, ParameterError

from . import findings, paths, render
from .errors import ClaimError
from .records import COMMITTED, complete

# Relative changes up to these are the machine's: float64 results agree to eight digits between kinds of CPU, float32
# trainings do not. A check that turns is a change whatever its size.
TOLERANCES = {"float64": 1e-6, "float32": 1e-3}
COARSEST = 1e-2
JUDGED = ("holds", "statistic", "outcome")  # a check with another one has changed
EMPTY = bytes(1024)  # a tar file without members


class Change(NamedTuple):
    """One difference of two records: what of which claim, and both sides as text; "" where there is none."""

    profile: str
    claim: str
    kind: str  # claim, verdict, check, number or figure
    what: str
    before: str
    after: str


class Records(NamedTuple):
    """What one state of the tree holds: {(profile, claim): record}, {(profile, claim, figure): PNG bytes}."""

    records: dict
    pictures: dict


def at_revision(revision, root=None):
    """The Records committed at a git revision. Raises ParameterError where git does not know it."""
    root = root or paths.ROOT
    own = Path(_git(root, "rev-parse", "--show-toplevel").stdout.decode().strip()) == root.resolve()
    if not own or _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").returncode:
        raise ParameterError(f"git knows no revision {revision!r} in {root}")
    packed = _git(root, "archive", f"{revision}^{{commit}}", "figures").stdout
    with tarfile.open(fileobj=io.BytesIO(packed or EMPTY)) as archive:
        return _records({m.name: archive.extractfile(m).read() for m in archive if m.isfile()}, revision)


def at_present(figures=None):
    """The Records in the working tree; figures: default the project's."""
    figures = Path(figures or paths.ROOT / "figures")
    files = [file for file in sorted(figures.glob("*/*/*")) if file.suffix in (".json", ".png")]
    return _records({str(Path("figures", *file.parts[-3:])): file.read_bytes() for file in files}, "the working tree")


def _git(root, *words):
    try:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True)
    except OSError as error:
        raise OverparamError(f"git cannot be run: {error}") from error


def _records(contents, state):
    """The Records among {path: bytes}."""
    found = Records({}, {})
    for path, content in contents.items():
        key = Path(path).parts[1:]
        if len(key) != 3 or key[0] not in COMMITTED:
            continue
        if key[2].endswith(".png"):
            found.pictures[key] = content
        elif key[2] == "result.json":
            try:
                found.records[key[:2]] = complete(json.loads(content))
            except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
                where = f"the record of {key[1]} at {key[0]} size in {state}"
                reason = f"{type(error).__name__}: {error}"[:300]
                raise ClaimError(f"{where} is not readable: {reason}") from error
    return found


def changes(old, new):
    """[Change] from one state's Records to another's, claim by claim."""
    found = []
    for key in sorted(old.records.keys() | new.records.keys()):
        before, after = old.records.get(key), new.records.get(key)
        if before is None or after is None:
            verdicts = [record["verdict"] if record else "" for record in (before, after)]
            found.append(Change(*key, "claim", "record", *verdicts))
        elif before != after:
            found += _changed_record(key, before, after)
        for full in sorted(full for full in old.pictures.keys() | new.pictures.keys() if full[:2] == key):
            pictures = [side.pictures.get(full) for side in (old, new)]
            if pictures[0] != pictures[1]:
                words = ("drawn", "redrawn") if all(pictures) else ["drawn" if p else "" for p in pictures]
                found.append(Change(*key, "figure", full[2], *words))
    return found


def _changed_record(key, before, after):
    if before["verdict"] != after["verdict"]:
        yield Change(*key, "verdict", "verdict", before["verdict"], after["verdict"])
    types = [record["parameters"].get("dtype", "float64") for record in (before, after)]
    tolerance = max(TOLERANCES.get(dtype, COARSEST) for dtype in types)
    rows = [{row["name"]: row for row in record["checks"]} for record in (before, after)]
    for name in dict.fromkeys([*rows[0], *rows[1]]):
        a, b = (side.get(name) for side in rows)
        turned = a and b and any(a.get(key) != b.get(key) for key in JUDGED)
        if a is None or b is None or turned or _apart(a["value"], b["value"], tolerance):
            yield Change(*key, "check", name, *(_check_text(row) for row in (a, b)))
    for name in dict.fromkeys([*before["metrics"], *after["metrics"]]):
        a, b = (record["metrics"].get(name) for record in (before, after))
        if a is None or b is None or any(_apart(a[side], b[side], tolerance) for side in ("value", "paper")):
            yield Change(*key, "number", name, *(_number(row["value"]) if row else "" for row in (a, b)))


def _apart(a, b, tolerance):
    if a is None or b is None:
        return a is not b
    return abs(a - b) > max(tolerance * max(abs(a), abs(b)), findings.ROUNDING)


def _number(value):
    return "nan" if value is None else f"{value:.6g}"


def _check_text(row):
    return f"{_number(row['value'])} ({render.required(row)}): {render.outcome(row)}" if row else ""


def summary(found, revision):
    """One line that counts the changes by kind."""
    if not found:
        return f"no record has changed since {revision}"
    counts = {kind: sum(c.kind == kind for c in found) for kind in ("claim", "verdict", "check", "number", "figure")}
    words = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items() if n)
    touched = len({(c.profile, c.claim) for c in found})
    return f"since {revision}: {words} changed, in {touched} record{'s' if touched > 1 else ''}"
