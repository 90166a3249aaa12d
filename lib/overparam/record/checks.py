"""Registered claims and checks (`notebooks/checks/*.toml`), their sizes (`profiles.toml`), and the computed verdict."""

import hashlib
import math
import operator
import re
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from itertools import chain

from .. import paths
from ..errors import ClaimError, ParameterError
from .parameters import near, notebook_parameters, validated
from .values import STATISTICS

PROFILES = ("smoke", "laptop", "desk", "paper")  # by growing size
MEMORY_MB = {"smoke": 1500, "laptop": 4000, "desk": 4000, "paper": 4000}  # where a notebook's table says nothing
THREADS = {"smoke": 1, "laptop": 2, "desk": 2, "paper": 2}
TAGS = {"R": "decides", "N": "must not fail", "I": "informs", "A": "tests our own computation", "C": "contradicts"}
VERDICTS = ("reproduced", "partly", "not reproduced", "contradicted", "not testable at this scale")
ID = re.compile(r"[a-z]+(\d{4})?-[A-Za-z0-9-]+", re.ASCII)  # part of paths and of command lines
_RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}
_RELATIONS["in"] = lambda value, threshold: threshold[0] <= value <= threshold[1]
_DECIDING = ("name", "tag", "relation", "threshold", "profiles", "statistic", "tolerance")


@dataclass(frozen=True)
class Check:
    """One registered check. A check of the claim is superseded, never edited, once it has been run.

    statistic: what is taken of a sample of one value per seed; tolerance: the numerical error of a value;
    added: why a check was decided after the result, empty for one that was registered before.
    """

    name: str
    tag: str
    wording: str
    relation: str
    threshold: int | float | list
    profiles: list | tuple = PROFILES
    paper_value: int | float | None = None
    source: str = ""
    superseded_by: str = ""
    reason: str = ""
    statistic: str = "mean"
    tolerance: int | float = 0.0
    added: str = ""

    def outcome(self, value, spread=None):
        """`holds` or `fails`; `undecided` where the threshold lies inside `spread`, [low, high]; None: unbounded.

        The check holds where all of the spread satisfies it, and fails where none of it does, or the value is none.
        """
        if value is None or not math.isfinite(value):
            return "fails"
        low, high = spread or (value, value)
        low, high = (-math.inf if low is None else low), (math.inf if high is None else high)
        bounds = self.threshold if self.relation == "in" else [self.threshold]
        points = [low, high, *(bound for bound in bounds if low <= bound <= high)]
        satisfied = [_RELATIONS[self.relation](point, self.threshold) for point in points]
        if all(satisfied[:2]):
            return "holds"
        return "undecided" if any(satisfied) else "fails"

    def is_judged_at(self, profile):
        """Whether the check is made at a profile; desk takes those of the paper's size."""
        named = profile in self.profiles or (profile == "desk" and "paper" in self.profiles)
        return named and not self.superseded_by


@dataclass(frozen=True)
class Spec:
    """What `notebooks/checks/<paper>.toml` registers of one claim.

    notebook: the claim whose run serves this one; template: the stem of the notebook that is run, which several runs
    may share, each with its own parameters; sizes: what was chosen and why: a text, or one for each profile.
    """

    id: str
    title: str
    source: str
    kind: str
    checks: list
    notebook: str
    template: str
    partly_if: list | tuple = ()
    sizes: str | dict = ""

    @property
    def paper(self):
        return self.id.partition("-")[0]

    @property
    def path(self):
        return paths.NOTEBOOKS / f"{self.template}.ipynb"

    def size(self, profile):
        """What was registered of the sizes at a profile, or an empty text."""
        return self._sizes().get(profile, "")

    def _sizes(self):
        return self.sizes if isinstance(self.sizes, dict) else dict.fromkeys(PROFILES, self.sizes)


@cache
def registry():
    """{claim id: Spec} of all registered claims. Raises ClaimError where a table is malformed."""
    specs = {}
    for file in sorted(paths.CHECKS.glob("*.toml")):
        tables = read_toml(file)
        for name, table in tables.items():
            try:
                if name in specs:
                    raise ValueError("it is given twice")
                specs[name] = _spec(name, table, tables)
            except (TypeError, KeyError, ValueError, AttributeError) as error:
                missing = "there is no " if isinstance(error, KeyError) else ""
                raise ClaimError(f"{file.name}, [{name}]: {missing}{error}") from error
    return specs


def _spec(name, table, tables):
    table = {"notebook": name, **table}
    table["template"] = tables[table["notebook"]].get("template", table["notebook"])
    table["checks"] = [_check(row) for row in table["checks"]]
    spec = _typed(Spec(id=name, **table))
    if not (ID.fullmatch(name) and ID.fullmatch(spec.template)):
        raise ValueError("an id is a paper and words, like arora2019-fig1-spectrum")
    if not all(isinstance(text, str) for text in [*spec._sizes().values(), *chain(*spec.partly_if)]):
        raise ValueError("sizes and the names in partly_if are texts")
    return spec


def _check(row):
    check = _typed(Check(**row))
    if check.tag not in TAGS or check.relation not in _RELATIONS or check.statistic not in STATISTICS:
        raise ValueError(f"check {check.name!r}: unknown tag, relation or statistic")
    if not set(check.profiles) <= set(PROFILES):
        raise ValueError(f"check {check.name!r}: its profiles are not among {', '.join(PROFILES)}")
    bounds = check.threshold if isinstance(check.threshold, list) else [check.threshold]
    if len(bounds) != 1 + (check.relation == "in") or not all(isinstance(bound, int | float) for bound in bounds):
        raise ValueError(f"check {check.name!r}: {check.threshold!r} is no threshold of {check.relation!r}")
    return check


def _typed(made):
    """A dataclass of a table's values, each of the type of its field."""
    for field in fields(made):
        if not isinstance(value := getattr(made, field.name), field.type):
            raise ValueError(f"{field.name} = {value!r}")
    return made


def read_toml(file):
    """The tables of a file, read once for each of its states. Raises ClaimError where it is not valid."""
    state = file.stat()
    return _toml(file, state.st_mtime_ns, state.st_size)


@cache
def _toml(file, *_):
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ClaimError(f"{file} is not valid TOML: {error}") from error


def spec(claim_id):
    """The registered Spec of a claim id. Raises ClaimError, naming the nearest ids, where there is none."""
    if claim_id not in registry():
        raise ClaimError(f"unknown claim {claim_id!r}; {near(claim_id, registry()) or '`overparam list` has all'}")
    return registry()[claim_id]


def served(notebook):
    """Ids of the claims that a run of a notebook serves, its own first."""
    ids = [spec.id for spec in registry().values() if spec.notebook == notebook]
    return sorted(ids, key=lambda i: i != notebook)


def deciding(notebook):
    """What decides the verdicts of a run, as plain data: no titles, wordings or reasons."""
    found = []
    for claim in map(spec, served(notebook)):
        rows = [[getattr(c, name) for name in _DECIDING] + [bool(c.superseded_by)] for c in claim.checks]
        found.append([claim.id, claim.partly_if, rows])
    return found


def profile_parameters(claim_id, profile):
    """(values, ranges, resources) of a claim at a profile: the notebook's literals with the profile's overrides.

    ranges: {name: [low, high] or list of choices}; resources: memory_mb, threads, and what else `profiles.toml` says;
    at desk size also `reduced` and `without`, {check: why it is not judged}.
    """
    claim = spec(claim_id)
    if profile not in PROFILES:
        raise ParameterError(f"unknown profile {profile!r}; there are {', '.join(PROFILES)}")
    tables = read_toml(paths.PROFILES)
    table = tables.get(claim.notebook, {})
    if profile != "smoke" and profile not in table:
        raise ParameterError(f"{claim.notebook} has no profile {profile!r} in {paths.PROFILES.name}")
    try:
        overrides = dict(table.get(profile, {}))
        resources = {"memory_mb": MEMORY_MB[profile], "threads": THREADS[profile], **overrides.pop("resources", {})}
        if profile == "desk":
            resources |= {"reduced": overrides.pop("reduced", ""), "without": _without(claim, overrides)}
        defaults = notebook_parameters(claim.path)
        ranges = tables.get(claim.template, {}).get("ranges", {})
        values = {**defaults, **validated(overrides, defaults, ranges), "profile": profile}
    except (TypeError, ValueError, AttributeError) as error:
        raise ClaimError(f"{paths.PROFILES.name}: [{claim.notebook}.{profile}]: {error}") from error
    return values, ranges, resources


def _without(claim, overrides):
    """{check: why it is not judged at desk size}, taken out of the overrides."""
    without = overrides.pop("without", {})
    known = {check.name for name in served(claim.notebook) for check in spec(name).checks}
    if not set(without) <= known or not all(without.values()):
        raise ValueError("without names checks of the claim, each with its reason")
    return without


def changed(parameters, reference):
    """{name: [reference, value]} of the parameters with other values than those of the profile; any device will do."""
    names = [name for name in reference if name != "device" and parameters[name] != reference[name]]
    return {name: [reference[name], parameters[name]] for name in names}


def folder(profile, changes):
    """Where a record goes below `figures/`: to its profile; with changed parameters to `custom/smoke,n=60`, say."""
    if not changes:
        return profile
    text = ",".join([profile, *(f"{name}={value}" for name, (_, value) in changes.items())])
    if not re.fullmatch(r"[\w.,=+-]{1,100}", text, re.ASCII):
        text = f"{profile},{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return f"custom/{text}"


def is_as_stored(claim_id):
    """Whether a claim's smoke parameters are the literals of its notebook, whose stored outputs are then its own."""
    return profile_parameters(claim_id, "smoke")[0] == notebook_parameters(spec(claim_id).path)


def verdict(results, partly_if=()):
    """One of VERDICTS from rows of {name, tag, holds, applies}; those that are `undecided` count neither way.

    `contradicted` if a [C] holds; `not testable at this scale` if no [R] is decided; `reproduced` iff all [R] and [N]
    hold and at least half of the [R] are decided; `partly` iff all [N] and at least half of the decided [R] hold (or
    all of one of the claim's groups `partly_if`).
    """
    rows = [row for row in results if row["applies"] and not row.get("undecided")]
    open_ones = {row["name"] for row in results if row["applies"] and row.get("undecided")}
    held = {row["name"] for row in rows if row["holds"]}
    decide = {tag: [row["name"] in held for row in rows if row["tag"] == tag] for tag in "RNC"}
    if any(decide["C"]):
        return "contradicted"
    if not decide["R"]:
        return "not testable at this scale"
    asked = sum(row["tag"] == "R" and row["applies"] for row in results)
    if all(decide["R"] + decide["N"]):
        return "reproduced" if len(decide["R"]) * 2 >= asked else "partly"
    groups = [set(group) - open_ones for group in partly_if]
    half = sum(decide["R"]) * 2 >= len(decide["R"])
    partly = any(group and group <= held for group in groups) if groups else half
    return "partly" if partly and all(decide["N"]) else "not reproduced"
