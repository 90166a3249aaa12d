"""What the site shows of each claim.

Its committed records, or else the outputs that are stored in its notebook.
"""

from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from .. import findings, records, registry
from ..errors import ClaimError
from ..show import NOT_RUN


@dataclass(frozen=True)
class Version:
    """A claim's executed notebook at one size.

    At smoke size it is the page as stored, and there is no record.
    """

    size: str
    path: Path
    finding: str = "It has been run at smoke size only, which decides nothing about the paper."
    record: dict | None = None
    folder: Path | None = None
    files: tuple = ()  # names of record, pictures, tables, series in the folder
    outdated: bool = False

    @property
    def verdict(self):
        return self.record["verdict"] if self.record else NOT_RUN

    @property
    def figure(self):
        """The name of the first figure, or None."""
        return (
            next((name for name in self.record["figures"] if name in self.files), None)
            if self.record
            else None
        )

    def picture(self, name, panel=1):
        """A figure's width in pixels.

        And the box (left, upper, right, lower) of a panel, or else of all of it.
        """
        with Image.open(self.folder / name) as opened:
            return opened.width, (
                self.record["figures"][name][panel - 1 : panel] or [(0, 0, *opened.size)]
            )[0]


@dataclass(frozen=True)
class Entry:
    """A registered claim, its versions by growing size.

    And the one whose verdict counts, if there is any.
    """

    claim: registry.Claim
    versions: dict
    best: Version | None

    @property
    def verdict(self):
        return self.best.verdict if self.best else NOT_RUN

    def page(self, version=None):
        """The page of a version (default: the best), relative to the site's root and without
        suffix.
        """
        suffix = f"-{version.size}" if version not in (None, self.best) else ""
        return f"claims/{self.claim.id}{suffix}"


def load(figures):
    """Entries of all registered claims; figures: the folder of committed records.

    Raises ClaimError where a record is not readable, or not what its run wrote.
    """
    entries = []
    for claim in registry.registry().values():
        versions = _versions(claim, figures)
        counting = records.counting({size: version.outdated for size, version in versions.items()})
        entries.append(Entry(claim, versions, versions.get(counting)))
    return entries


def _versions(claim, figures):
    versions, page = {}, claim.page
    for size in records.COMMITTED:
        path = records.executed(page.id, size, figures)
        record = records.load(claim.id, size, figures)
        if record and path.exists() and records.has_size(claim.id, size):
            for wrong in records.damaged(claim.id, size, figures):
                raise ClaimError(f"{wrong} is not what its run wrote; run the claim again")
            folder, kept = figures / size / claim.id, records.kept(claim.id, size, figures)
            outdated = record["fingerprint"] != records.fingerprint(claim.id, size)
            found = findings.finding(claim, record, folder)
            versions[size] = Version(size, path, found, record, folder, tuple(kept), outdated)
    if not versions and page.notebook.exists() and registry.is_as_stored(claim.id):
        versions["smoke"] = Version("smoke", page.notebook)
    return versions
