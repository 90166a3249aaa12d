"""What changed in the records since a git revision: verdicts, checks, numbers beyond their tolerance, figures."""

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .. import paths
from ..errors import ClaimError, OverparamError, ParameterError
from ..record import render
from .site.records import COMMITTED, complete, required

# Relative changes up to these are the machine's: float64 results agree to eight digits between kinds of CPU, float32
# trainings do not. A check that turns is a change whatever its size.
TOLERANCES = {"float64": 1e-6, "float32": 1e-3}
COARSEST = 1e-2


@dataclass(frozen=True)
class Change:
    """One difference of two records: what of which claim, and both sides as text; "" where there is none."""

    profile: str
    claim: str
    kind: str  # claim, verdict, check, number or figure
    what: str
    before: str
    after: str
    pictures: tuple = ()  # PNG bytes before and after, for a figure


@dataclass(frozen=True)
class Records:
    """The records of one state of the tree: {(profile, claim): record}, and how to read a figure's bytes by name."""

    records: dict
    digests: dict  # {(profile, claim, figure): git's digest of the bytes}
    read: object  # digest or path -> bytes, by (profile, claim, figure)


def at_revision(revision, root=None):
    """The Records committed at a git revision. Raises ParameterError where git does not know it."""
    root = root or paths.ROOT
    if _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").returncode:
        raise ParameterError(f"git knows no revision {revision!r} in {root}")
    folders = [f"figures/{profile}" for profile in COMMITTED]
    listing = _git(root, "ls-tree", "-r", "-z", f"{revision}^{{commit}}", "--", *folders).stdout.decode()
    blobs = {}
    for line in filter(None, listing.split("\0")):
        meta, _, path = line.partition("\t")
        blobs[tuple(path.split("/")[1:])] = meta.split()[2]
    wanted = {key[:2]: blob for key, blob in blobs.items() if key[2:] == ("result.json",)}
    contents = _blobs(root, list(wanted.values()))
    records = {key: _parsed(contents[blob], revision, key) for key, blob in wanted.items()}
    digests = {key: blob for key, blob in blobs.items() if key[-1].endswith(".png")}
    return Records(records, digests, lambda key: _blobs(root, [digests[key]])[digests[key]])


def at_present(figures=None):
    """The Records in the working tree; figures: default the project's."""
    figures = Path(figures or paths.ROOT / "figures")
    files = [file for profile in COMMITTED for file in sorted(figures.glob(f"{profile}/*/result.json"))]
    records = {f.parts[-3:-1]: _parsed(f.read_bytes(), "the working tree", f.parts[-3:-1]) for f in files}
    pictures = [file for profile in COMMITTED for file in sorted(figures.glob(f"{profile}/*/*.png"))]
    digests = {file.parts[-3:]: _digest(file.read_bytes()) for file in pictures}
    return Records(records, digests, lambda key: figures.joinpath(*key).read_bytes())


def _git(root, *words, given=None):
    try:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, input=given)
    except OSError as error:
        raise OverparamError(f"git cannot be run: {error}") from error


def _blobs(root, names):
    """{name: bytes} of git objects, by one process."""
    stream = _git(root, "cat-file", "--batch", given="".join(f"{name}\n" for name in names).encode()).stdout
    found = {}
    for name in names:
        header, _, stream = stream.partition(b"\n")
        size = int(header.split()[2])
        found[name], stream = stream[:size], stream[size + 1 :]
    return found


def _digest(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _parsed(content, state, key):
    where = f"of {key[1]} at {key[0]} size in {state}"
    try:
        return complete(json.loads(content), where)
    except (ValueError, RecursionError) as error:
        raise ClaimError(f"the record {where} is not readable: {error}") from error


def changes(old, new):
    """[Change] from one state's Records to another's, claim by claim."""
    found = []
    for key in sorted(old.records.keys() | new.records.keys()):
        before, after = old.records.get(key), new.records.get(key)
        if before is None or after is None:
            found.append(Change(*key, "claim", "record", _verdict(before), _verdict(after)))
        elif before != after:
            found += _changed_record(key, before, after)
        found += _changed_figures(key, old, new)
    return found


def _verdict(record):
    return record["verdict"] if record else ""


def _changed_record(key, before, after):
    if before["verdict"] != after["verdict"]:
        yield Change(*key, "verdict", "verdict", before["verdict"], after["verdict"])
    tolerance = max(_tolerance(before), _tolerance(after))
    rows = [{row["name"]: row for row in record["checks"]} for record in (before, after)]
    for name in dict.fromkeys([*rows[0], *rows[1]]):
        a, b = (side.get(name) for side in rows)
        if a is None or b is None or _judged(a) != _judged(b) or _apart(a["value"], b["value"], tolerance):
            yield Change(*key, "check", name, *(_check_text(row) for row in (a, b)))
    for name in dict.fromkeys([*before["metrics"], *after["metrics"]]):
        a, b = (record["metrics"].get(name) for record in (before, after))
        if a is None or b is None or any(_apart(a[side], b[side], tolerance) for side in ("value", "paper")):
            yield Change(*key, "number", name, *(_number(row["value"]) if row else "" for row in (a, b)))


def _changed_figures(key, old, new):
    names = {full[2] for full in old.digests.keys() | new.digests.keys() if full[:2] == key}
    for name in sorted(names):
        full = (*key, name)
        sides = [s.digests.get(full) for s in (old, new)]
        if sides[0] != sides[1]:
            words = ("drawn", "redrawn") if all(sides) else ["drawn" if digest else "" for digest in sides]
            pictures = tuple(s.read(full) if digest else None for s, digest in zip((old, new), sides, strict=True))
            yield Change(*key, "figure", name, *words, pictures)


def _judged(row):
    return row["tag"], row["relation"], row["threshold"], row["holds"], row["applies"], row.get("superseded_by")


def _tolerance(record):
    return TOLERANCES.get(record["parameters"].get("dtype", "float64"), COARSEST)


def _apart(a, b, tolerance):
    if a is None or b is None:
        return a is not b
    return abs(a - b) > max(tolerance * max(abs(a), abs(b)), render.ROUNDING)


def _number(value):
    return "nan" if value is None else f"{value:.6g}"


def _check_text(row):
    return f"{_number(row['value'])} {required(row)}: {render.outcome(row)}" if row else ""


def summary(found, revision):
    """One line that counts the changes by kind."""
    if not found:
        return f"no record has changed since {revision}"
    counts = {kind: sum(c.kind == kind for c in found) for kind in ("claim", "verdict", "check", "number", "figure")}
    words = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items() if n)
    touched = len({(c.profile, c.claim) for c in found})
    return f"since {revision}: {words} changed, in {touched} record{'s' if touched > 1 else ''}"
