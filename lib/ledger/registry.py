"""What is registered of the claims.

`notebooks/<paper>/<claim>.toml`, beside the notebook that serves it.
"""

import datetime
import hashlib
import json
import re
import tomllib
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path

from overparam.errors import ParameterError

from . import paths
from .errors import ClaimError
from .parameters import near, notebook_parameters, require, validated
from .rule import SIZES, VERDICTS, Check

PRINTED = {  # whether a theorem follows as it is printed
    "stands": "we found no error in the statement or in its proof",
    "typo": "follows, but for a misprint",
    "constant": "follows with another constant",
    "exponent": "follows with another exponent",
    "gap": "the printed proof does not give it",
    "false": "false, since there is a counterexample",
}
RESOURCES = {
    size: {"memory_mb": 4000, "threads": 2} for size in SIZES
}  # where a size's table says nothing
RESOURCES["smoke"] = {"memory_mb": 1500, "threads": 1}
RANGES = {
    "device": ["cpu", "cuda"],
    "dtype": ["float32", "float64"],
}  # of parameters that many pages have
ID = re.compile(r"[a-z]+(\d{4})?-[A-Za-z0-9-]+", re.ASCII)  # part of paths and of command lines
FROZEN = "frozen.toml"
ERRATA = "errata"  # the folder beside those of the papers that holds no claims


@dataclass(frozen=True)
class Size:
    """One size of a run: why it was chosen, what it needs, the parameters that differ from the
    notebook's.
    """

    why: str
    resources: dict
    parameters: dict


@dataclass(frozen=True)
class Need:
    """What the parameters of a page must satisfy together.

    that: a Python expression of them; says: the same in words.
    """

    that: str
    says: str


@dataclass(frozen=True)
class Page:
    """A notebook that is run, and where.

    `id` names the run, and is one of the claims that it serves.
    """

    id: str
    file: Path
    notebook: Path
    sizes: dict
    ranges: dict
    needs: tuple = ()


@dataclass(frozen=True)
class Change:
    """What was changed in a claim after its checks were frozen.

    check: the one concerned, if it is one; seed: that of the runs that judge since, if it is new.
    """

    date: datetime.date
    what: str
    why: str
    check: str = ""
    seed: int | None = None


@dataclass(frozen=True)
class Finding:
    """What was found, in words that quote a record.

    Of: the size and verdict for which they were written.
    """

    of: str
    text: str


@dataclass(frozen=True)
class Claim:
    """What is registered of one claim.

    Printed: one of PRINTED, of a theorem; note: why, in a sentence.
    """

    id: str
    page: Page
    title: str
    source: str
    kind: str
    claim: str
    checks: tuple
    printed: str = ""
    note: str = ""
    changes: tuple = ()
    finding: Finding | None = None

    @property
    def paper(self):
        return self.id.partition("-")[0]

    @property
    def slug(self):
        return self.id.partition("-")[2]

    def asked(self, size):
        """The checks that are asked at a size."""
        return [check for check in self.checks if size in check.sizes]


class Claims(dict):
    """{claim id: Claim}; `faults`: {file: the ClaimError of one that is malformed}."""

    def __init__(self):
        super().__init__()
        self.faults = {}


@cache
def registry():
    """All claims as Claims. A malformed file costs no others theirs."""
    claims = Claims()
    for file in sorted(paths.NOTEBOOKS.glob("*/*.toml")):
        if file.name == FROZEN or file.name.startswith(".") or file.parent.name == ERRATA:
            continue
        try:
            found = _claims(file, _read(file))
            for claim in found:
                if claim.id in claims:
                    raise ClaimError(f"{claim.id} is registered in another file as well")
        except ClaimError as error:
            claims.faults[file] = ClaimError(f"{_place(file)}: {error}")
        else:
            claims.update({claim.id: claim for claim in found})
    return claims


def require_whole():
    """Raise the ClaimError of the first malformed file, which names file, table and key."""
    for error in registry().faults.values():
        raise error


def _place(file):
    return f"{file.parent.name}/{file.name}"


def _read(file):
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ClaimError(f"it is not valid TOML: {error}") from error


def _claims(file, tables):
    """The claims of a file.

    Its own, or one for each table that is not the page's, its own first.
    """
    paper, own = file.parent.name, file.stem
    page = _page(file, f"{paper}-{own}", tables)
    if tables.keys() & {"title", "source", "kind", "claim"}:
        return [_claim(page.id, page, tables, "")]
    if own not in tables:
        raise ClaimError(f"there is no claim {own!r}, after which the file is named")
    names = sorted(tables, key=lambda name: name != own)
    return [_claim(f"{paper}-{name}", page, tables[name], f"{name}.") for name in names]


def _page(file, page_id, tables):
    """The Page of a file, whose tables lose what is the page's."""
    notebook = _popped("notebook", tables, str) or file.stem
    if "/" in notebook:
        raise ClaimError(f"notebook: {notebook!r} is not the name of a notebook in this folder")
    sizes = {name: _size(name, table) for name, table in _popped("sizes", tables, dict).items()}
    ranges = _popped("ranges", tables, dict)
    for name, allowed in ranges.items():
        if not isinstance(allowed, list) or not allowed:
            raise ClaimError(f"ranges.{name}: a range is [low, high] or a list of choices")
    needs = tuple(_made(Need, need, "needs.") for need in _popped("needs", tables, list))
    return Page(page_id, file, file.with_name(f"{notebook}.ipynb"), sizes, RANGES | ranges, needs)


def _size(name, table):
    if name not in SIZES:
        raise ClaimError(f"sizes.{name}: there are the sizes {', '.join(SIZES)}")
    parameters = _typed(f"sizes.{name}", table, dict)
    why = _popped("why", parameters, str, f"sizes.{name}.")
    resources = _popped("resources", parameters, dict, f"sizes.{name}.")
    for key, value in resources.items():
        if key not in ("memory_mb", "minutes", "threads", "gpu") or not isinstance(
            value, int | float
        ):
            raise ClaimError(
                f"sizes.{name}.resources.{key}: resources are numbers: memory_mb, minutes, "
                "threads, gpu"
            )
    return Size(why, RESOURCES[name] | resources, parameters)


def _claim(claim_id, page, table, prefix):
    """A Claim from its table.

    Prefix: the table's name and a dot, where the file has several claims.
    """
    if not ID.fullmatch(claim_id):
        raise ClaimError(
            f"{claim_id!r} is no id, which is a paper and words, such as arora2019-fig1-spectrum"
        )
    _typed(prefix[:-1], table, dict)
    checks = _popped("checks", table, dict, prefix)
    checks = [
        _made(Check, check, f"{prefix}checks.{name}.", name=name) for name, check in checks.items()
    ]
    changes = [
        _made(Change, change, f"{prefix}changes.")
        for change in _popped("changes", table, list, prefix)
    ]
    if "finding" in table:
        table["finding"] = _made(Finding, table["finding"], f"{prefix}finding.")
    claim = _made(
        Claim, table, prefix, id=claim_id, page=page, checks=tuple(checks), changes=tuple(changes)
    )
    if claim.kind not in VERDICTS:
        raise ClaimError(f"{prefix}kind: {claim.kind!r} is none of {', '.join(VERDICTS)}")
    if claim.kind == "theorem" and claim.printed not in PRINTED:
        raise ClaimError(f"{prefix}printed: {claim.printed!r} is none of {', '.join(PRINTED)}")
    return claim


def _made(kind, table, prefix, **given):
    """A dataclass from a table of its fields, all but those `given`."""
    known = {field.name: field for field in fields(kind) if field.name not in given}
    for key, value in _typed(prefix[:-1], table, dict).items():
        if key not in known:
            raise ClaimError(f"{prefix}{key}: unknown key; {near(key, known) or ', '.join(known)}")
        _typed(f"{prefix}{key}", value, known[key].type)
    for key, field in known.items():
        if key not in table and field.default is MISSING:
            raise ClaimError(f"{prefix}{key} is missing")
    try:
        return kind(**table, **given)
    except ValueError as error:
        raise ClaimError(f"{prefix}{error}") from error


def _popped(key, table, kind, prefix=""):
    """What a table has under a key, taken out of it; empty where it has nothing."""
    return _typed(f"{prefix}{key}", table.pop(key, kind()), kind)


def _typed(key, value, kind):
    """The value of a key, if it is of this type."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ClaimError(f"{key}: {value!r} is of the wrong type")
    return value


def claim(claim_id):
    """The registered Claim of an id.

    Raises ClaimError, naming the nearest ids, where there is none.
    """
    if claim_id not in registry():
        paper, _, slug = claim_id.partition("-")
        if error := registry().faults.get(paths.NOTEBOOKS / paper / f"{slug}.toml"):
            raise error
        raise ClaimError(
            f"unknown claim {claim_id!r}; "
            f"{near(claim_id, registry()) or '`overparam list` has all'}"
        )
    return registry()[claim_id]


def served(page_id):
    """The claims that a run serves, its own first."""
    return [claim for claim in registry().values() if claim.page.id == page_id]


def deciding(page_id):
    """What decides the verdicts of a run, as plain data: no titles, sentences or reasons."""
    return [
        [
            claim.id,
            claim.kind,
            [[c.name, c.holds, c.statistic, list(c.sizes)] for c in claim.checks],
        ]
        for claim in served(page_id)
    ]


def parameters_at(claim_id, size):
    """{name: value} of a claim's parameters at a size.

    The notebook's literals with what the size changes.

    Raises ParameterError for a size that there is not, and ClaimError where the size names what is
    no parameter.
    """
    page = claim(claim_id).page
    if size not in SIZES:
        raise ParameterError(f"unknown profile {size!r}; there are {', '.join(SIZES)}")
    if size != "smoke" and size not in page.sizes:
        raise ParameterError(f"{claim_id} has no profile {size!r} in {_place(page.file)}")
    literals = notebook_parameters(page.notebook)
    try:
        changed = validated(size_of(claim_id, size).parameters, literals, page.ranges)
        require({**literals, **changed}, page.needs)
    except ParameterError as error:
        raise ClaimError(f"{_place(page.file)}: sizes.{size}: {error}") from error
    return {**literals, **changed, "profile": size}


def size_of(claim_id, size):
    """The registered Size; an empty one where the notebook's own literals are run."""
    return claim(claim_id).page.sizes.get(size) or Size("", RESOURCES[size], {})


def changed(parameters, reference):
    """{name: [reference, value]} of the parameters with other values than those of the size.

    Any device will do.
    """
    names = [
        name
        for name in reference
        if name != "device" and json.dumps(parameters[name]) != json.dumps(reference[name])
    ]
    return {name: [reference[name], parameters[name]] for name in names}


def folder(size, changes):
    """Where a record goes below `figures/`: to its size.

    With changed parameters to `custom/smoke,n=60`, say; where a value is no plain word, to a folder
    with a digest of all values.
    """
    if not changes:
        return size
    values = {name: str(value) for name, (_, value) in changes.items()}
    text = ",".join([size, *(f"{name}={value}" for name, value in values.items())])
    plain = all(re.fullmatch(r"[\w.+-]+", value, re.ASCII) for value in values.values())
    if not plain or len(text) > 100:
        exact = json.dumps([size, changes], sort_keys=True)
        text = f"{size},{hashlib.sha256(exact.encode()).hexdigest()[:12]}"
    return f"custom/{text}"


def is_as_stored(claim_id):
    """Whether a run's smoke parameters are the literals of its notebook, whose stored outputs are
    then its own.
    """
    return parameters_at(claim_id, "smoke") == notebook_parameters(claim(claim_id).page.notebook)


def frozen(paper):
    """What was frozen of a paper.

    {claim slug: {date: ..., seeds: {size: ...}, checks: {name: ...}}}; or {}.
    """
    file = paths.NOTEBOOKS / paper / FROZEN
    try:
        return _read(file) if file.exists() else {}
    except ClaimError as error:
        raise ClaimError(f"{_place(file)}: {error}") from error


def as_frozen(check):
    """A check as `frozen.toml` keeps it: what decides, in one line."""
    return " ".join([check.holds, check.statistic, *check.sizes])


def unlisted_changes(claim):
    """Names of a frozen claim's checks that are not those of the freeze.

    And that no entry of `changes` names.
    """
    then = frozen(claim.paper).get(claim.slug)
    if then is None:
        return []
    now = {check.name: as_frozen(check) for check in claim.checks}
    differ = {
        name
        for name in now.keys() | then["checks"].keys()
        if now.get(name) != then["checks"].get(name)
    }
    return sorted(differ - {change.check for change in claim.changes})
