"""What changed in the records since a git revision.

Verdicts, checks, numbers beyond their tolerance, figures.
"""

import io
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

from overparam.errors import ParameterError

from . import findings, paths, records, render

# Relative changes up to these are the machine's: float64 results agree to eight digits between
# kinds of CPU, float32 trainings do not. A check that turns is a change whatever its size.
TOLERANCES = {"float64": 1e-6, "float32": 1e-3}
COARSEST = 1e-2
JUDGED = ("holds", "statistic", "outcome")  # a check with another one has changed


class Change(NamedTuple):
    """One difference of two records: what of which claim, and both sides as text.

    "" where there is none.
    """

    profile: str
    claim: str
    kind: str  # claim, verdict, check, number or figure
    what: str
    before: str
    after: str


class Records(NamedTuple):
    """What one state of the tree holds.

    {(profile, claim): record}, {(profile, claim): {figure: PNG bytes}}.
    """

    records: dict
    pictures: dict


def at_revision(revision, root=None):
    """The Records committed at a git revision. Raises ParameterError where git knows none of it."""
    root = root or paths.ROOT
    commit = (
        _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
    )
    packed = _git(root, "archive", commit, "figures")
    if not packed:
        raise ParameterError(f"git knows no records of a revision {revision!r} in {root}")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return _records(
            {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}, revision
        )


def _git(root, *words):
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True).stdout


def at_present(figures=None):
    """The Records in the working tree; figures: default the project's."""
    figures = figures or paths.ROOT / "figures"
    found = [*figures.glob("*/*/result.json"), *figures.glob("*/*/*.png")]
    contents = {Path("figures", *file.parts[-3:]): file.read_bytes() for file in found}
    return _records(contents, "the working tree")


def _records(contents, state):
    """The Records among {path: bytes}."""
    found = Records({}, {})
    for path, content in contents.items():
        key = Path(path).parts[1:]  # size, claim, name
        if len(key) != 3 or key[0] not in records.COMMITTED:
            continue
        if key[2] == "result.json":
            found.records[key[:2]] = records.parsed(content, f"{path} in {state}")
        elif key[2].endswith(".png"):
            found.pictures.setdefault(key[:2], {})[key[2]] = content
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
        was, now = (side.pictures.get(key, {}) for side in (old, new))
        for name in sorted(was.keys() | now.keys()):
            if name not in now:
                found.append(Change(*key, "figure", name, "drawn", ""))
            elif was.get(name) != now[name]:
                found.append(
                    Change(
                        *key,
                        "figure",
                        name,
                        *(("drawn", "redrawn") if name in was else ("", "drawn")),
                    )
                )
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
        if (
            a is None
            or b is None
            or any(_apart(a[side], b[side], tolerance) for side in ("value", "paper"))
        ):
            yield Change(
                *key, "number", name, *(_number(row["value"]) if row else "" for row in (a, b))
            )


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
    counts = {
        kind: sum(c.kind == kind for c in found)
        for kind in ("claim", "verdict", "check", "number", "figure")
    }
    words = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items() if n)
    touched = len({(c.profile, c.claim) for c in found})
    return f"since {revision}: {words} changed, in {touched} record{'s' if touched > 1 else ''}"
