"""What the site shows of each claim: its records at laptop and paper size, and the outputs stored in its notebook."""

import json
import re
import reprlib
import sys
from dataclasses import dataclass
from pathlib import Path

from ...errors import ClaimError
from ...record import checks, render

UNRUN = "not run"
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

    spec: checks.Spec
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
    return [Entry(spec, _versions(spec, Path(figures))) for spec in checks.registry().values()]


def _versions(spec, figures):
    versions = {}
    if spec.path.exists() and checks.is_as_stored(spec.id):
        versions["smoke"] = Version("smoke", spec.path, _stored_verdict(spec))
    for profile in COMMITTED:
        folder, notebook = figures / profile / spec.id, figures / profile / spec.notebook / "notebook.ipynb"
        if (folder / "result.json").exists() and notebook.exists():
            record = complete(read_json(folder / "result.json"), folder / "result.json")
            versions[profile] = Version(profile, notebook, record["verdict"], record, folder)
    return versions


def read_json(path):
    """The content of a JSON file. Raises ClaimError where it is not readable, or no UTF-8 can hold its texts."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(content, ensure_ascii=False).encode()
        return content
    except (OSError, ValueError, RecursionError) as error:
        raise ClaimError(f"{path} is not readable ({error}); run the claim again") from error


def read_notebook(path):
    """The content of a notebook file. Raises ClaimError where it is none."""
    from nbformat.validator import ValidationError, get_validator

    notebook = read_json(path)
    try:
        get_validator(4, 5).validate(notebook)
    except ValidationError as error:
        raise ClaimError(f"{path} is not a notebook ({error.message}); run the claim again") from error
    return notebook


def complete(record, where):
    """The record, if all that is shown of it is there and has its form. Raises ClaimError otherwise."""
    given = record if isinstance(record, dict) else {}
    if missing := SHOWN.keys() - given.keys():
        raise ClaimError(f"the record {where} lacks {', '.join(sorted(missing))}; run the claim again")
    for name, fits in SHOWN.items():
        if not fits(given[name]):
            raise ClaimError(f"the record {where} has the {name} {reprlib.repr(given[name])}; run the claim again")
    return record


def _is(*types):
    return lambda value: isinstance(value, types)


def _is_number(value):
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max  # neither NaN nor too long an integer


def _is_measured(value):
    return value is None or _is_number(value)


def _is_check(row):
    """Whether a row has all of a check, its threshold being a pair where its relation is "in"."""
    if not _fits(row, _CHECK):
        return False
    numbers = row["threshold"] if row["relation"] == "in" else [row["threshold"]]
    return isinstance(numbers, list) and len(numbers) == 1 + (row["relation"] == "in") and all(map(_is_number, numbers))


def _is_figure(name):
    return isinstance(name, str) and re.fullmatch(r"[\w-]+\.png", name)  # it is part of paths and addresses


def _fits(row, form):
    return isinstance(row, dict) and all(name in row and fits(row[name]) for name, fits in form.items())


def _each(fits):
    return lambda rows: isinstance(rows, list) and all(map(fits, rows))


_CHECK = {
    "name": _is(str), "tag": list(checks.TAGS).__contains__, "wording": _is(str), "value": _is_measured,
    "relation": _is(str), "threshold": _is(int, float, list), "holds": _is(bool), "applies": _is(bool),
    "paper_value": _is_measured, "superseded_by": _is(str), "reason": _is(str),
}  # fmt: skip
_METRIC = {"value": _is_measured, "paper": _is_measured}
_DATA = {"name": _is(str), "stand_in": _is(str, type(None))}
# What is shown of a record, and whether it has the form that it is shown in.
SHOWN = {
    "verdict": checks.VERDICTS.__contains__,
    "checks": _each(_is_check),
    "metrics": lambda rows: isinstance(rows, dict) and all(_fits(row, _METRIC) for row in rows.values()),
    "parameters": _is(dict),
    "figures": _each(_is_figure),
    "series": _is(list),
    "seeds": _is(list),
    "data": _each(lambda row: _fits(row, _DATA)),
    "seconds": _is_number,
    "peak_bytes": _is_number,
    "device": _is(str),
    "versions": _is(dict),
    "git": _is(str, type(None)),
}


def _stored_verdict(spec):
    """The verdict in the table that the notebook's stored outputs print for this claim."""
    outputs = [o for c in read_notebook(spec.path)["cells"] for o in c.get("outputs", [])]
    text = "\n".join("".join(o.get("data", {}).get("text/plain", "")) for o in outputs)
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
    return "rounding" if 0 < abs(value) < render.ROUNDING else f"{value:.3g}"


def required(check):
    """The relation and threshold of a recorded check, as text."""
    sign = {"<=": "≤", ">=": "≥", "==": "="}.get(check["relation"], check["relation"])
    threshold = check["threshold"]
    return f"in [{threshold[0]:g}, {threshold[1]:g}]" if check["relation"] == "in" else f"{sign} {threshold:g}"
