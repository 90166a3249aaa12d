"""The page on what computing costs, from what the scripts in `benchmarks` have measured."""

import json

from .. import findings, paths

RESULTS = paths.ROOT / "benchmarks" / "results"
AXES = {"n": "examples", "m": "width", "L": "depth", "runs": "draws", "cores": "cores"}
PICTURE = "{machine}-scaling-{axis}.png"


def measured(name):
    """What the first machine that was measured, by its name, has in `<machine><name>.json`."""
    found = min(RESULTS.glob(f"*cores{name}.json"))
    return json.loads(found.read_text(encoding="utf-8"))


def exponents():
    """A table: how time grows along an axis, as fitted and as counted."""
    lines = [
        "| twice the | of | sizes | power of time, measured | counted | time at twice the size |",
        "|---|---|---|---|---|---|",
    ]
    for row in measured("-scaling")["rows"]:
        sizes = f"{row['at'][0]:,} to {row['at'][-1]:,}"
        cells = [AXES[row["axis"]], row["path"], sizes, f"{row['exponent']:.2f}", row["theory"]]
        cells.append(f"{2 ** row['exponent']:.1f} times")
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def scans():
    """The pictures, one for each axis; `pictures` names their files."""
    machine = measured("-scaling")["machine"]
    shown = []
    for axis, word in AXES.items():
        picture = PICTURE.format(machine=machine, axis=axis)
        shown.append(
            f"![Seconds and peak memory over the {word}, of the hot paths](costs/{picture})"
        )
    return "\n\n".join(shown)


def pictures():
    """The files that the page shows."""
    machine = measured("-scaling")["machine"]
    return [RESULTS / PICTURE.format(machine=machine, axis=axis) for axis in AXES]


def peers():
    """A table: our time against a peer's, with the floor and the aim."""
    lines = ["| what | against | value | floor | at most | reached |", "|---|---|---|---|---|---|"]
    for row in measured("")["rows"]:
        if "skipped" in row:
            continue
        low, high = (findings.spoken(row[name]) for name in ("low", "high"))
        value = f"{findings.spoken(row['value'])} ({low} to {high}) {row['unit']}"
        floor = findings.spoken(row["floor"]) if "floor" in row else ""
        reached = "yes" if row["value"] <= row["at_most"] else "no"
        cells = [row["path"], row["peer"], value, floor, findings.spoken(row["at_most"]), reached]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
