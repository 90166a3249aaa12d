"""What is registered of the claims: `notebooks/<paper>/<claim>.toml`, beside the notebook that serves it."""

import datetime
import hashlib
import re
import tomllib
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path

from overparam.errors import ParameterError

from . import paths
from .errors import ClaimError
from .parameters import near, notebook_parameters, validated
from .rule import SIZES, VERDICTS, Check

PRINTED = {  # whether a theorem follows as it is printed
    "stands": "follows as printed",
    "typo": "follows, but for a misprint",
    "constant": "follows with another constant",
    "exponent": "follows with another exponent",
    "gap": "the printed proof does not give it",
    "false": "false: there is a counterexample",
}
RESOURCES = {  # of a size, where its table says nothing
    "smoke": {"memory_mb": 1500, "threads": 1},
    "laptop": {"memory_mb": 4000, "threads": 2},
    "desk": {"memory_mb": 4000, "threads": 2},
    "paper": {"memory_mb": 4000, "threads": 2},
}
RANGES = {"device": ["cpu", "cuda"], "dtype": ["float32", "float64"]}  # of parameters that many pages have
ID = re.compile(r"[a-z]+(\d{4})?-[A-Za-z0-9-]+", re.ASCII)  # part of paths and of command lines
FROZEN = "frozen.toml"


@dataclass(frozen=True)
class Size:
    """One size of a run: why it was chosen, the parameters that differ from the notebook's, what it needs."""

    why: str = ""
    resources: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """A notebook that is run, and where: `id` names the run, and is one of the claims that it serves."""

    id: str
    file: Path
    notebook: Path
    sizes: dict
    ranges: dict


@dataclass(frozen=True)
class Change:
    """What was changed in a claim after its checks were frozen; check: the one concerned, if it is one."""

    date: datetime.date
    what: str
    why: str
    check: str = ""


@dataclass(frozen=True)
class Finding:
    """What was found, in words that quote a record; of: the size and verdict for which they were written."""

    of: str
    text: str


@dataclass(frozen=True)
class Claim:
    """What is registered of one claim. printed: one of PRINTED, of a theorem; note: why, in a sentence."""

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


@cache
def registry():
    """{claim id: Claim} of all claims. Raises ClaimError, naming file, table and key, where one is malformed."""
    claims = {}
    for file in sorted(paths.NOTEBOOKS.glob("*/*.toml")):
        if file.name != FROZEN:
            for claim in _claims(file):
                if claim.id in claims:
                    raise ClaimError(f"{_place(file)}: {claim.id} is registered in another file as well")
                claims[claim.id] = claim
    return claims


def _claims(file):
    """The claims of one file: its own, or one for each table that is neither `sizes` nor `ranges`."""
    tables = read_toml(file)
    paper, own = file.parent.name, file.stem
    shared = {key: tables.pop(key) for key in ("notebook", "sizes", "ranges") if key in tables}
    page = _page(file, f"{paper}-{own}", shared)
    if tables.keys() & {"title", "source", "kind", "claim"}:
        tables = {own: tables}
    if own not in tables:
        raise ClaimError(f"{_place(file)}: there is no claim {own!r}, after which the file is named")
    names = sorted(tables, key=lambda name: name != own)
    return [_claim(file, page, f"{paper}-{name}", tables[name], name if len(names) > 1 else "") for name in names]


def _page(file, page_id, shared):
    notebook = shared.get("notebook", file.stem)
    if not isinstance(notebook, str) or "/" in notebook:
        raise ClaimError(f"{_place(file, key='notebook')}: {notebook!r} is not the name of a notebook in this folder")
    sizes = {name: _size(file, name, table) for name, table in _table(file, "sizes", shared.get("sizes", {})).items()}
    ranges = _table(file, "ranges", shared.get("ranges", {}))
    for name, allowed in ranges.items():
        if not isinstance(allowed, list) or not allowed:
            raise ClaimError(f"{_place(file, 'ranges', name)}: a range is [low, high] or a list of choices")
    return Page(page_id, file, file.with_name(f"{notebook}.ipynb"), sizes, RANGES | ranges)


def _size(file, name, table):
    if name not in SIZES:
        raise ClaimError(f"{_place(file, 'sizes', name)}: there are the sizes {', '.join(SIZES)}")
    table = dict(_table(file, f"sizes.{name}", table))
    resources = _table(file, f"sizes.{name}.resources", table.pop("resources", {}))
    for key, value in resources.items():
        if key not in ("memory_mb", "minutes", "threads", "gpu") or not isinstance(value, int | float):
            place = _place(file, f"sizes.{name}.resources", key)
            raise ClaimError(f"{place}: resources are numbers: memory_mb, minutes, threads, gpu")
    why = table.pop("why", "")
    if not isinstance(why, str):
        raise ClaimError(f"{_place(file, f'sizes.{name}', 'why')}: {why!r} is no text")
    return Size(why, RESOURCES[name] | resources, table)


def _claim(file, page, claim_id, table, inside):
    """A Claim from its table; `inside` names the table where the file has several."""
    table = dict(_table(file, inside, table))
    checks = _table(file, _inner(inside, "checks"), table.pop("checks", {}))
    made = [_made(Check, file, _inner(inside, f"checks.{name}"), checks[name], name=name) for name in checks]
    changes = table.pop("changes", [])
    if not isinstance(changes, list):
        raise ClaimError(f"{_place(file, inside, 'changes')}: changes are written [[changes]]")
    changed = [_made(Change, file, _inner(inside, "changes"), change) for change in changes]
    if "finding" in table:
        table["finding"] = _made(Finding, file, _inner(inside, "finding"), table["finding"])
    more = {"id": claim_id, "page": page, "checks": tuple(made), "changes": tuple(changed)}
    claim = _made(Claim, file, inside, table, **more)
    if not ID.fullmatch(claim_id):
        raise ClaimError(f"{_place(file, inside)}: an id is a paper and words, such as arora2019-fig1-spectrum")
    if claim.kind not in VERDICTS:
        raise ClaimError(f"{_place(file, inside, 'kind')}: {claim.kind!r} is none of {', '.join(VERDICTS)}")
    if claim.kind == "theorem" and claim.printed not in PRINTED:
        raise ClaimError(f"{_place(file, inside, 'printed')}: {claim.printed!r} is none of {', '.join(PRINTED)}")
    return claim


def _made(kind, file, inside, table, **more):
    """A dataclass from a table of its fields. Raises ClaimError for an unknown or missing key and a wrong type."""
    known = {field.name: field for field in fields(kind) if field.name not in more}
    for key, value in _table(file, inside, table).items():
        if key not in known:
            raise ClaimError(f"{_place(file, inside, key)}: unknown key; {near(key, known) or ', '.join(known)}")
        if key == "sizes":
            value = tuple(value) if isinstance(value, list) else value
        wanted = int | float | None if key == "paper" else known[key].type
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise ClaimError(f"{_place(file, inside, key)}: {value!r} is of the wrong type")
        more[key] = value
    try:
        return kind(**more)
    except TypeError as error:
        missing = str(error).partition("argument")[2].strip("s: ")
        raise ClaimError(f"{_place(file, inside)}: there is no {missing}") from error
    except ValueError as error:
        raise ClaimError(f"{_place(file, inside)}: {error}") from error


def _table(file, inside, value):
    if not isinstance(value, dict):
        raise ClaimError(f"{_place(file, inside)}: {value!r} is no table")
    return value


def _inner(outer, name):
    return f"{outer}.{name}" if outer else name


def _place(file, table="", key=""):
    """Where something is registered: arora2019/fig1.toml, [checks.order], holds."""
    parts = [f"{file.parent.name}/{file.name}", f"[{table}]" if table else "", key]
    return ", ".join(filter(None, parts))


def read_toml(file):
    """The tables of a file, read once for each of its states. Raises ClaimError where it is not valid."""
    state = file.stat()
    return {**_toml(file, state.st_mtime_ns, state.st_size)}


@cache
def _toml(file, *_):
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ClaimError(f"{_place(file)} is not valid TOML: {error}") from error


def claim(claim_id):
    """The registered Claim of an id. Raises ClaimError, naming the nearest ids, where there is none."""
    if claim_id not in registry():
        raise ClaimError(f"unknown claim {claim_id!r}; {near(claim_id, registry()) or '`overparam list` has all'}")
    return registry()[claim_id]


def served(page_id):
    """The claims that a run serves, its own first."""
    claims = [claim for claim in registry().values() if claim.page.id == page_id]
    return sorted(claims, key=lambda claim: claim.id != page_id)


def deciding(page_id):
    """What decides the verdicts of a run, as plain data: no titles, sentences or reasons."""
    return [
        [claim.id, claim.kind, [[c.name, c.holds, c.statistic, list(c.sizes)] for c in claim.checks]]
        for claim in served(page_id)
    ]


def parameters_at(claim_id, size):
    """{name: value} of a claim's parameters at a size: the notebook's literals with what the size changes.

    Raises ParameterError for a size that there is not, and ClaimError where the size names what is no parameter.
    """
    page = claim(claim_id).page
    if size not in SIZES:
        raise ParameterError(f"unknown profile {size!r}; there are {', '.join(SIZES)}")
    if size != "smoke" and size not in page.sizes:
        raise ParameterError(f"{claim_id} has no profile {size!r} in {_place(page.file)}")
    literals = notebook_parameters(page.notebook)
    try:
        changed = validated(size_of(claim_id, size).parameters, literals, page.ranges)
    except ParameterError as error:
        raise ClaimError(f"{_place(page.file, f'sizes.{size}')}: {error}") from error
    return {**literals, **changed, "profile": size}


def size_of(claim_id, size):
    """The registered Size; an empty one where the notebook's own literals are run."""
    return claim(claim_id).page.sizes.get(size) or Size(resources=RESOURCES[size])


def changed(parameters, reference):
    """{name: [reference, value]} of the parameters with other values than those of the size; any device will do."""
    names = [name for name in reference if name != "device" and parameters[name] != reference[name]]
    return {name: [reference[name], parameters[name]] for name in names}


def folder(size, changes):
    """Where a record goes below `figures/`: to its size; with changed parameters to `custom/smoke,n=60`, say."""
    if not changes:
        return size
    text = ",".join([size, *(f"{name}={value}" for name, (_, value) in changes.items())])
    if not re.fullmatch(r"[\w.,=+-]{1,100}", text, re.ASCII):
        text = f"{size},{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return f"custom/{text}"


def is_as_stored(claim_id):
    """Whether a run's smoke parameters are the literals of its notebook, whose stored outputs are then its own."""
    return parameters_at(claim_id, "smoke") == notebook_parameters(claim(claim_id).page.notebook)


def frozen(paper):
    """What was frozen of a paper: {date: ..., claim slug: {seed: {size: ...}, checks: {name: ...}}}; or {}."""
    file = paths.NOTEBOOKS / paper / FROZEN
    return read_toml(file) if file.exists() else {}


def as_frozen(check):
    """A check as `frozen.toml` keeps it: what decides, in one line."""
    words = [check.holds, check.statistic, *check.sizes]
    return " ".join(words)


def unlisted_changes(claim):
    """Names of a frozen claim's checks that are not those of the freeze, and that no entry of `changes` names."""
    then = frozen(claim.paper).get(claim.slug)
    if then is None:
        return []
    now = {check.name: as_frozen(check) for check in claim.checks}
    differ = {name for name in now.keys() | then["checks"].keys() if now.get(name) != then["checks"].get(name)}
    return sorted(differ - {change.check for change in claim.changes})
