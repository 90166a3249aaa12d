"""The theorems of the papers as their proofs support them: `notebooks/errata/theorems.toml`."""

from dataclasses import dataclass
from functools import cache

from . import errata, registry
from .errors import ClaimError

FILE = f"{registry.ERRATA}/{errata.THEOREMS}.toml"


@dataclass(frozen=True)
class Theorem:
    """A theorem or main lemma: as printed, and what its proof supports.

    repair: what makes it right, "" where nothing is needed; faults: ids of the mistakes that
    change it; claims: ids of those that measured its conclusion.
    """

    paper: str
    name: str
    printed: str
    supports: str
    repair: str
    faults: tuple
    claims: tuple


@cache
def theorems():
    """{paper: its Theorems, in the paper's order}. Raises ClaimError for a malformed row."""
    found = {}
    for table in errata.read(FILE).get("theorems", []):
        paper = table.pop("paper", "")
        if paper not in errata.papers():
            raise ClaimError(f"{FILE}: there are no errata of a paper {paper!r}")
        row = errata.made(Theorem, FILE, paper, table)
        known = [fault.id for fault in errata.load(paper).faults]
        for fault in row.faults:
            if fault not in known:
                raise ClaimError(f"{FILE}: {row.name}: there is no fault {fault!r} of {paper}")
        found.setdefault(paper, []).append(row)
    return found
