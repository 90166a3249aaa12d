"""A project of one claim in a folder of its own, and runs of it without a kernel."""

import json

import nbformat
import pytest

from ledger import paths, records, registry, runner
from ledger.claim import Claim
from ledger.parameters import notebook_parameters
from ledger.run import Run

REGISTERED = """title = "A toy"
source = "Lemma 1"
kind = "theorem"
claim = "The value is small."
printed = "typo"
note = "A letter is missing."

[checks.value]
asks = "The value is at most 1."
holds = "<= 1"

[checks.large]
asks = "The value at size $m_1$ lies between 0 and 2."
holds = "in [0, 2]"
sizes = ["laptop"]
paper = 1.5

[ranges]
rate = [0.0, 1.0]
kind = ["a", "b"]

[sizes.laptop]
why = "what runs in minutes"
n = 20
"""
PARAMETERS = (
    'profile = "smoke"\nseed = 3\nn_seeds = 2\nn = 5  # rows\nrate = 0.5\nkind = '
    '"a"\nsizes = [1, 2]'
)


class Toy:
    """The claim `toy2020-lem1`: its two files, its side of a page, and its records."""

    id, registered, parameters = "toy2020-lem1", REGISTERED, PARAMETERS

    def __init__(self, root, figures):
        self.folder, self.figures = root / "notebooks" / "toy2020", figures
        self.folder.mkdir(parents=True)
        self.register(REGISTERED)
        self.write()

    def register(self, text, name="lem1.toml"):
        (self.folder / name).write_text(text)
        registry.registry.cache_clear()

    def write(self, prose="# A toy", parameters=PARAMETERS, *code):
        """Write the notebook."""
        cells = [
            nbformat.v4.new_code_cell(source)
            for source in (parameters, *(code or ["claim.report()"]))
        ]
        cells[0].metadata.tags = ["parameters"]
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(prose), *cells])
        nbformat.write(made, self.folder / "lem1.ipynb")

    @property
    def claim(self):
        return registry.claim(self.id)

    def namespace(self, **changes):
        return {**notebook_parameters(self.folder / "lem1.ipynb"), **changes}

    def open(self, **changes):
        """A Claim as the notebook opens it; changes: other values of parameters."""
        return Claim(self.id, self.namespace(**changes))

    def measured(self, value=0.5, **changes):
        """A Claim whose checks are all measured."""
        claim = self.open(**changes)
        for check in claim.spec.asked(claim.profile):
            claim.check(check.name, value)
        return claim

    def record(self, folder="smoke"):
        return json.loads((self.figures / folder / self.id / "result.json").read_text())

    def run(self, monkeypatch, finish=lambda claim: None, size="smoke"):
        """The executed notebook of a run, as the runner keeps it.

        Finish(claim) is called before its report.
        """
        monkeypatch.setenv(
            *Run(fingerprint=records.fingerprint(self.id, size)).variables().popitem()
        )
        shown = []
        monkeypatch.setattr(
            "ledger.claim._show", lambda data, more=None: shown.append((data, more or {}))
        )
        claim = self.measured(**registry.parameters_at(self.id, size))
        finish(claim)
        claim.report()
        executed = json.loads((self.folder / "lem1.ipynb").read_text())
        executed["cells"][-1]["outputs"] = [
            {"data": data, "metadata": more} for data, more in shown
        ]
        runner._seal(executed, self.claim.page, size, self.figures)
        return records.executed(self.id, size)


@pytest.fixture
def toy(tmp_path, monkeypatch, figures):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    yield Toy(tmp_path, figures)
    registry.registry.cache_clear()
