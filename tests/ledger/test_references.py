"""A kept notebook reads as its page does today, shows the run's outputs.

And tells whether anybody touched it.
"""

import json
import re

import matplotlib.pyplot as plt
import pytest

from ledger import records, references, runner
from ledger.errors import ClaimError

FINDING = '\n[finding]\nof = "smoke, holds"\ntext = \'It is {{ value("value") }}.\'\n'


@pytest.fixture
def kept(toy, monkeypatch):
    """The executed notebook of a run with a figure and a finding."""
    toy.register(toy.registered + FINDING)
    return toy.run(monkeypatch, lambda claim: claim.figure(plt.figure(figsize=(1, 1)), "dots"))


VERDICT = "*Where measured, at smoke size: holds. As printed: follows, but for a misprint.*"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def sources(notebook):
    return ["".join(cell["source"]) for cell in notebook["cells"]]


def test_it_has_finding_and_pictures_and_is_renewed_without_a_run(kept, toy):
    picture, report = read(kept)["cells"][-1]["outputs"]
    assert sources(read(kept)) == [
        f"# A toy\n\n**In short.** It is 0.5. {VERDICT}",
        toy.parameters,
        "claim.report()",
    ]
    assert set(picture["data"]) == {"image/png", "text/plain"}
    assert "| The value is at most 1. | 0.5 | at most 1 | ✓ |" in report["data"]["text/markdown"]
    assert set(read(kept)["metadata"]["overparam"]["outputs"]) == {
        f"{toy.id}/dots.png",
        f"{toy.id}/result.json",
    }
    assert not runner.refresh(toy.id, "smoke")
    linked = "# A better title\n\n**In short.** A link.\n\n**Claim.** More."
    toy.write(linked, toy.parameters, "claim.report()  # why")
    toy.register(
        toy.registered.replace("The value is at most 1", "It is small")
        + FINDING.replace("It is", "We see")
    )
    assert runner.refresh(toy.id, "smoke")
    assert sources(read(kept)) == [
        f"# A better title\n\n**In short.** We see 0.5. {VERDICT}\n\n**Claim.** More.",
        toy.parameters,
        "claim.report()",
    ]
    assert (
        "| It is small. | 0.5 |" in read(kept)["cells"][-1]["outputs"][1]["data"]["text/markdown"]
    )
    toy.write(
        "# A page with more cells", toy.parameters, "1", "claim.report()"
    )  # whose prose does not fit
    assert not runner.refresh(toy.id, "smoke")


def test_a_claim_that_was_registered_since_has_no_record_and_changes_nothing(kept, toy):
    tables = (
        (toy.registered + FINDING)
        .replace("[checks", "[lem1.checks")
        .replace("[finding", "[lem1.finding")
    )
    second = '[lem2]\ntitle = "Another"\nsource = "Lemma 2"\nkind = "ours"\nclaim = "It is."\n'
    toy.register(f"[lem1]\n{tables}{second}[lem2.finding]\nof = 'smoke, refuted'\ntext = 'No.'\n")
    assert not runner.refresh(toy.id, "smoke")
    assert records.stale(toy.id, "smoke")


def test_parameters_that_were_given_take_the_place_of_those_of_the_page():
    def cell(kind, source, *tags):
        return {
            "cell_type": kind,
            "source": source,
            "metadata": {"tags": list(tags)},
            "outputs": [],
        }

    ran = [
        cell("markdown", "old"),
        cell("code", "n = 1  # rows\nns = [1, 2]  # more\nk = 3", "parameters"),
        cell("code", "# Parameters\nns = [5]\nn = 9", "injected-parameters"),
    ]
    now = [
        cell("markdown", "new"),
        cell("code", "n = 1", "parameters"),
        cell("markdown", "more"),
        cell("code", "f()"),
    ]
    made = references.composed({"cells": [*ran, cell("code", "f()")]}, {"cells": now}, [])
    own = "n = 9  # rows\nns = [5]  # more\nk = 3"
    assert sources(made) == ["new", own, "more", "f()"]
    assert references.composed(made, {"cells": now}, [])["cells"] == made["cells"]


def test_what_was_touched_is_seen_and_never_sealed(kept, toy):
    assert records.damaged(toy.id, "smoke") == []
    touched = read(kept)
    touched["cells"][-1]["outputs"][1]["data"]["text/markdown"] += "!"
    for path, content in (
        (kept.parent / "dots.png", b"other"),
        (kept, references.text(touched).encode()),
    ):
        path.write_bytes(content)
        assert records.damaged(toy.id, "smoke") == [path]
        with pytest.raises(
            ClaimError, match=f"{path.name} is not what its run wrote; run the claim again"
        ):
            runner.refresh(toy.id, "smoke")
        assert path.read_bytes() == content


def test_relative_links_of_a_page_lead_to_the_same_place_from_its_executed_notebook(kept, toy):
    prose = "[a](lem2.ipynb), [b](../README.md#start), [c](https://x.org/a), [d](#here), [e](/a)"
    toy.write(f"# A toy\n\n{prose}", toy.parameters, "claim.report()")
    assert runner.refresh(toy.id, "smoke")
    links = re.findall(r"\]\(([^)#]*)(#\w+)?\)", sources(read(kept))[0])
    assert [anchor for _, anchor in links] == ["", "#start", "", "#here", ""]
    places = [place for place, _ in links]
    assert places[2:] == ["https://x.org/a", "", "/a"]
    led = [(kept.parent / place).resolve() for place in places[:2]]
    assert led == [toy.folder / "lem2.ipynb", toy.folder.parent / "README.md"]
