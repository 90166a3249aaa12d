"""The mistakes found in the papers: `notebooks/errata/<paper>.toml`.

A fault is one mistake, however many places show it. An erratum is one place. A certificate is a
derivation that a reader can check, and a test that would fail if the fault were ours.
"""

import tomllib
from dataclasses import MISSING, dataclass, fields
from functools import cache

from . import paths, registry
from .errors import ClaimError

SEVERITIES = {  # the gravest first
    "false": "false: there is a counterexample",
    "gap": "the printed proof does not give it",
    "exponent": "another exponent or order",
    "constant": "another constant",
    "typo": "a misprint",
}
EVIDENCE = ("derivation", "counterexample", "recomputed", "measured")
TESTS = "tests/errata"
THEOREMS = "theorems"  # the file of corrected theorems beside those of the papers


@dataclass(frozen=True)
class Erratum:
    """One place of a paper that is mistaken.

    changes: the theorem, lemma or corollary whose statement changes, if one does; fault: the id of
    the fault that it belongs to, or "" where it is one of its own; claims: ids of those that show
    it; misread: all rests on one sign or letter of a text that was read by machine.
    """

    paper: str
    place: str
    printed: str
    holds: str
    severity: str
    evidence: tuple
    claims: tuple
    changes: str = ""
    fault: str = ""
    misread: bool = False


@dataclass(frozen=True)
class Fault:
    """One mistake; certificate and test are "" where there is none."""

    paper: str
    id: str
    title: str
    says: str
    certificate: str = ""
    test: str = ""
    errata: tuple = ()

    @property
    def severity(self):
        """That of its gravest place."""
        return min((row.severity for row in self.errata), key=list(SEVERITIES).index)

    @property
    def changes(self):
        """The names of the statements that it changes."""
        return tuple(dict.fromkeys(row.changes for row in self.errata if row.changes))

    @property
    def grave(self):
        """Whether it changes a statement, or leaves a gap, or is refuted by a counterexample."""
        return bool(self.changes) or self.severity in ("false", "gap")

    @property
    def anchor(self):
        """What its heading is called in links; unique over all papers."""
        return f"{self.paper}-{self.id}"


@dataclass(frozen=True)
class Remark:
    """A comment on a place of a paper that is no mistake."""

    paper: str
    place: str
    printed: str
    remark: str
    claims: tuple


@dataclass(frozen=True)
class Errata:
    """All that was found in one text; version: which one was read; notation: its main symbols."""

    paper: str
    version: str
    notation: str
    faults: tuple
    errata: tuple
    remarks: tuple

    @property
    def independent(self):
        """The number of independent mistakes."""
        return len(self.faults) + sum(not row.fault for row in self.errata)


def papers():
    """Keys of the papers that have errata."""
    texts = (paths.NOTEBOOKS / registry.ERRATA).glob("*.toml")
    return sorted(file.stem for file in texts if file.stem != THEOREMS)


@cache
def load(paper):
    """The Errata of a paper. Raises ClaimError, which names file and place, for a malformed one."""
    name = f"{registry.ERRATA}/{paper}.toml"
    tables = read(name)
    wrong = tables.keys() - {"version", "notation", "faults", "errata", "remarks"}
    if wrong:
        raise ClaimError(f"{name}: there is no key {sorted(wrong)[0]!r}")
    rows = tuple(_errata(name, paper, table) for table in tables.get("errata", []))
    faults = tuple(_fault(name, paper, table, rows) for table in tables.get("faults", []))
    remarks = tuple(made(Remark, name, paper, table) for table in tables.get("remarks", []))
    known = [fault.id for fault in faults]
    for row in rows:
        if row.fault and row.fault not in known:
            raise ClaimError(f"{name}: {row.place}: there is no fault {row.fault!r}")
        if not row.fault and (row.changes or row.severity in ("false", "gap")):
            raise ClaimError(f"{name}: {row.place}: what is grave belongs to a fault")
    for fault in faults:
        if known.count(fault.id) > 1:
            raise ClaimError(f"{name}: there are two faults {fault.id!r}")
    about = tables.get("version", ""), tables.get("notation", "")
    return Errata(paper, *about, faults, rows, remarks)


def read(name):
    """The tables of a file in `notebooks`. Raises ClaimError where it is not valid TOML."""
    try:
        return tomllib.loads((paths.NOTEBOOKS / name).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ClaimError(f"{name}: it is not valid TOML: {error}") from error


def _errata(name, paper, table):
    row = made(Erratum, name, paper, table)
    if row.severity not in SEVERITIES:
        raise ClaimError(f"{name}: {row.place}: severities are {', '.join(SEVERITIES)}")
    if not row.evidence or set(row.evidence) - set(EVIDENCE):
        raise ClaimError(f"{name}: {row.place}: evidence is some of {', '.join(EVIDENCE)}")
    return row


def _fault(name, paper, table, rows):
    own = tuple(row for row in rows if row.fault == table.get("id"))
    fault = made(Fault, name, paper, table | {"errata": own})
    if not own:
        raise ClaimError(f"{name}: no erratum belongs to the fault {fault.id!r}")
    if bool(fault.certificate) != bool(fault.test):
        raise ClaimError(f"{name}: {fault.id}: a certificate is a derivation and a test")
    return fault


def made(kind, name, paper, table):
    """A table as the dataclass that it describes, its lists as tuples.

    Raises ClaimError, which names file, place and key.
    """
    place = table.get("place") or table.get("name") or table.get("id") or "a table without a place"
    known = {field.name: field.default for field in fields(kind) if field.name != "paper"}
    wrong = table.keys() - known
    if wrong:
        raise ClaimError(f"{name}: {place}: there is no key {sorted(wrong)[0]!r}")
    for key, default in known.items():
        if key not in table and default is MISSING:
            raise ClaimError(f"{name}: {place}: the key {key!r} is missing")
    values = {}
    for key, value in table.items():
        values[key] = tuple(value) if isinstance(value, list) else value
    for claim in values.get("claims", ()):
        if claim not in registry.registry():
            raise ClaimError(f"{name}: {place}: there is no claim {claim!r}")
    return kind(paper, **values)
