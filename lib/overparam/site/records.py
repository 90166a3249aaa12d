"""What the site shows of each claim: its records at laptop and paper size, and the outputs stored in its notebook."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from .. import claims
from ..errors import ClaimError

UNRUN = "not run"
SHOWN = {
    "verdict", "checks", "metrics", "parameters", "figures", "series", "seeds", "data", "seconds", "peak_bytes",
    "device", "versions", "git",
}  # fmt: skip
COMMITTED = ("laptop", "paper")


@dataclass(frozen=True)
class Version:
    """A claim's executed notebook at one profile. At smoke size there is no record: the notebook holds its verdict."""

    profile: str
    notebook: Path
    verdict: str
    record: dict | None = None
    folder: Path | None = None


@dataclass(frozen=True)
class Entry:
    """A registered claim with its versions by profile, in the order of growing size."""

    spec: claims.Spec
    versions: dict

    @property
    def best(self):
        """The version at the largest profile that was run, or None."""
        return next(reversed(self.versions.values()), None)

    @property
    def verdict(self):
        """The verdict that counts: at the largest profile of a size that can decide; a smoke run decides nothing."""
        return self.best.verdict if self.best and self.best.record else UNRUN

    def page(self, version=None):
        """The page of a version (default: the best), relative to the site's root and without suffix; None if none."""
        version = version or self.best
        if version is None:
            return None
        return f"claims/{self.spec.id}" + ("" if version is self.best else f"-{version.profile}")

    @property
    def keys(self):
        """[(name, measured, reference)] of the numbers that say most: beside the paper's, or what was required."""
        return key_numbers(self.best.record) if self.best and self.best.record else []


def load(figures):
    """Entries of all registered claims, in the order of registration. figures: the folder of committed records.

    Raises ClaimError where a record or an executed notebook cannot be read.
    """
    return [Entry(spec, _versions(spec, Path(figures))) for spec in claims.registry().values()]


def _versions(spec, figures):
    versions = {}
    if spec.path.exists() and claims.is_as_stored(spec.id):
        versions["smoke"] = Version("smoke", spec.path, _stored_verdict(spec))
    for profile in COMMITTED:
        folder, notebook = figures / profile / spec.id, figures / profile / spec.notebook / "notebook.ipynb"
        if (folder / "result.json").exists() and notebook.exists():
            record = complete(read_json(folder / "result.json"), folder / "result.json")
            versions[profile] = Version(profile, notebook, record["verdict"], record, folder)
    return versions


def read_json(path):
    """The content of a JSON file. Raises ClaimError where it is not readable."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ClaimError(f"{path} is not readable ({error}); run the claim again") from error


def complete(record, where):
    """The record, if it has all that is shown of it and a verdict that there is. Raises ClaimError otherwise."""
    missing = SHOWN - record.keys() if isinstance(record, dict) else SHOWN
    if missing or record["verdict"] not in claims.VERDICTS:
        wrong = f"lacks {', '.join(sorted(missing))}" if missing else f"has the verdict {record['verdict']!r}"
        raise ClaimError(f"the record {where} {wrong}; run the claim again")
    return record


def _stored_verdict(spec):
    """The verdict in the table that the notebook's stored outputs print for this claim."""
    streams = [o["text"] for c in read_json(spec.path)["cells"] for o in c.get("outputs", []) if "text" in o]
    text = "\n".join("".join(stream) for stream in streams)
    found = re.search(rf"^{re.escape(spec.id)}  \[smoke\]  (.+)$", text, re.MULTILINE)
    return found[1].lower() if found else UNRUN


def key_numbers(record):
    """The numbers of a record for one line of a table: [(name, measured, reference)], at most two.

    One check: with the paper's value if there is such, or the first of the deciding ones that fails, or the first of
    them. And the first metric for which the paper prints a number.
    """
    applying = [row for row in record["checks"] if row["applies"]]
    deciding = [row for row in applying if row["tag"] in "RNC"]
    printed = [row for row in applying if row["paper_value"] is not None]
    failing = [row for row in deciding if row["holds"] == (row["tag"] == "C")]
    found = []
    for row in (printed or failing or [r for r in deciding if r["tag"] == "R"] or deciding)[:1]:
        reference = f"paper {number(row['paper_value'])}" if printed else f"required {required(row)}"
        found.append((row["name"], number(row["value"]), reference))
    for name, row in record["metrics"].items():
        if row["paper"] is not None and not printed:
            found.append((name, number(row["value"]), f"paper {number(row['paper'])}"))
            break
    return found


def number(value):
    """Three significant digits; what rounding leaves of zero differs between machines and is called so."""
    if value is None:
        return "nan"
    return "rounding" if 0 < abs(value) < claims.ROUNDING else f"{value:.3g}"


def required(check):
    """The relation and threshold of a recorded check, as text."""
    sign = {"<=": "≤", ">=": "≥", "==": "="}.get(check["relation"], check["relation"])
    threshold = check["threshold"]
    return f"in [{threshold[0]:g}, {threshold[1]:g}]" if check["relation"] == "in" else f"{sign} {threshold:g}"


def state(check):
    """What became of a recorded check, in words."""
    if check["superseded_by"]:
        return f"superseded by {check['superseded_by']}: {check['reason']}"
    return ("holds" if check["holds"] else "fails") if check["applies"] else "does not apply"
