"""What the site shows of each claim: its records of every size that was run, or else the outputs in its notebook."""

import contextlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from jinja2 import TemplateError
from nbformat.validator import ValidationError, get_validator
from PIL.Image import DecompressionBombError

from ...errors import ClaimError
from ...record import checks, render
from .. import runner

UNRUN = "not run"
COMMITTED = checks.PROFILES[1:]
_FAULTS = OSError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError
_FAULTS += SyntaxError, TemplateError, DecompressionBombError  # the last two of templates and pictures
_FILE = re.compile(r"[\w-]+(\.json|\.npz|\.png|\.csv|\.csv\.xz)", re.ASCII)  # names are parts of addresses


@dataclass(frozen=True)
class Version:
    """A claim's executed notebook at one profile; at smoke size it has no record, and decides nothing.

    stale: whether the record was made from other sources than the present ones.
    """

    profile: str
    notebook: Path
    record: dict | None = None
    folder: Path | None = None
    stale: bool = False

    @property
    def verdict(self):
        return self.record["verdict"] if self.record else UNRUN

    @property
    def files(self):
        """Names of what is kept beside the notebook, to download: record, pictures, tables, series."""
        found = sorted(self.folder.iterdir()) if self.folder else []
        return [file.name for file in found if _FILE.fullmatch(file.name) and not file.is_symlink()]


@dataclass(frozen=True)
class Entry:
    """A registered claim with its versions by profile, in the order of growing size."""

    spec: checks.Spec
    versions: dict

    @property
    def best(self):
        """The version whose verdict counts: the largest of the present sources, else the largest that was run."""
        size = runner.counting({profile: version.stale for profile, version in self.versions.items()})
        return self.versions.get(size)

    @property
    def verdict(self):
        return self.best.verdict if self.best else UNRUN

    @property
    def summary(self):
        """What the notebook says of its results, as paragraphs of Markdown; empty in pages of the old form."""
        return (self.best.record or {}).get("summary") or [] if self.best else []

    @property
    def finding(self):
        """The title of the notebook: what it found, as Markdown."""
        if not self.summary:
            return ""
        cells = read_notebook(self.spec.path)["cells"] if self.spec.path.exists() else []
        text = next(("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"), "")
        return text.partition("\n")[0].removeprefix("# ")

    @property
    def sentence(self):
        """What was found, for one cell of a table: the summary's first paragraph, or the verdict's sentence."""
        if self.summary:
            return self.summary[0]
        return render.sentence(self.best.record) if self.best and self.best.record else ""

    def page(self, version=None):
        """The page of a version (default: the best), relative to the site's root and without suffix; None if none."""
        version = version or self.best
        if version is None:
            return None
        return f"claims/{self.spec.id}" + ("" if version is self.best else f"-{version.profile}")


def load(figures):
    """Entries of all registered claims; figures: the folder of committed records.

    Raises ClaimError where a record is not readable, or not what its run wrote.
    """
    return [Entry(spec, _versions(spec, Path(figures))) for spec in checks.registry().values()]


def _versions(spec, figures):
    versions = {}
    for profile in COMMITTED:
        folder, notebook = figures / profile / spec.id, figures / profile / spec.notebook / "notebook.ipynb"
        if (folder / "result.json").exists() and notebook.exists():
            record = complete(read_json(folder / "result.json"), folder / "result.json")
            for wrong in runner.damaged(spec.id, profile, figures):
                raise ClaimError(f"{wrong} is not what its run wrote; run the claim again")
            wanted = runner.defines(spec.id, profile) and runner.fingerprint(spec.id, profile)
            versions[profile] = Version(profile, notebook, record, folder, record["fingerprint"] != wanted)
    if not versions and spec.path.exists() and checks.is_as_stored(spec.id):
        versions["smoke"] = Version("smoke", spec.path)
    return versions


@contextlib.contextmanager
def naming(path):
    """Says of which file it is that something is missing or has another form than it is shown in."""
    try:
        yield
    except _FAULTS as error:
        words = f"{type(error).__name__}: {error}"[:300].replace("\n", " ")
        raise ClaimError(f"{path} cannot be shown ({words}); run the claim again") from error


def read_json(path):
    """The content of a JSON file. Raises ClaimError where it is not readable, or no UTF-8 can hold its texts."""
    with naming(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(content, ensure_ascii=False).encode()
        return content


def read_notebook(path):
    """The content of a notebook file. Raises ClaimError where it is none."""
    notebook = read_json(path)
    try:
        get_validator(4, 5).validate(notebook)
    except ValidationError as error:
        raise ClaimError(f"{path} is not a notebook ({error.message:.300}); run the claim again") from error
    return notebook


def complete(record, where):
    """The record, once its verdict, checks, numbers and names have been put into words. Raises ClaimError."""
    with naming(f"the record {where}"):
        if record["verdict"] not in checks.VERDICTS:
            raise ValueError(f"the verdict is {record['verdict']!r}")
        for row in record["checks"]:
            words = row["name"], row["wording"], checks.TAGS[row["tag"]], render.outcome(row)
            "".join((*words, render.required(row), render.measured(row), render.number(row["paper_value"])))
        for name, row in record["metrics"].items():
            "".join((name, render.number(row["value"]), render.number(row["paper"])))
        if wrong := [name for name in record["figures"] if not _FILE.fullmatch(name)]:
            raise ValueError(f"a figure is named {wrong[0]!r}")
    return record
