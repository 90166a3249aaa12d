"""What is generated from the records is current.

Each paper's README, and the totals in the project's own.
"""

import re

import pytest

from ledger import errata, overviews, paths, registry, render
from ledger.site import records

TEXTS = overviews.texts()
ENTRIES = records.load(paths.FIGURES)
LINK = re.compile(r"\]\(([^)#:]+)\)|src=\"([^\"]+)\"")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(paths.ROOT)))
def test_a_generated_text_is_current_and_its_links_lead_somewhere(path):
    assert path.read_text(encoding="utf-8") == TEXTS[path], "run `overparam refresh`"
    for found in LINK.finditer(TEXTS[path]):
        assert (path.parent / (found[1] or found[2])).exists(), found[0]


@pytest.mark.parametrize("paper", errata.papers())
def test_a_letter_is_a_page_long_and_its_links_lead_to_what_they_name(paper):
    letter = paths.NOTEBOOKS / paper / overviews.LETTER
    text = letter.read_text(encoding="utf-8")
    assert text.startswith("# To the authors of ")
    assert len(text.split()) <= 500
    for place, _, anchor in re.findall(r"\]\(([^)#:]+)(#([^)]+))?\)", text):
        linked = letter.parent / place
        assert linked.exists(), place
        assert not anchor or f'<a id="{anchor}"></a>' in linked.read_text(encoding="utf-8"), anchor


def test_every_claim_is_in_the_overview_of_its_paper():
    for claim in registry.registry().values():
        assert claim.page.notebook.name in TEXTS[paths.NOTEBOOKS / claim.paper / "README.md"]


def test_what_was_changed_after_freezing_is_told_beside_the_finding():
    told = 0
    for claim in registry.registry().values():
        text = TEXTS[paths.NOTEBOOKS / claim.paper / "README.md"]
        (row,) = [line for line in text.splitlines() if f"; `{claim.id}`" in line]
        for change in claim.changes:
            assert render.in_cell(change.what) in row
            assert render.in_cell(change.why) in row
            told += 1
        assert ("since it was frozen" in row) == bool(claim.changes)
    assert told > 20


def test_verdicts_are_from_draws_that_nobody_had_seen_but_for_those_that_the_readme_names():
    judged = [entry for entry in ENTRIES if entry.best and entry.best.record]
    seen = {e.claim.page.id for e in judged if not render.unseen(e.claim, e.best.record)}
    named = "but for the landscapes and the gradient norms of Allen-Zhu et al."
    assert named in " ".join(TEXTS[paths.ROOT / "README.md"].split())
    assert seen <= {
        "allenzhu2019-fig2-resnet32-cifar10",
        "allenzhu2019-fig3-resnet110-cifar10",
        "allenzhu2019-rem1-gradient-norm",
    }
    assert len(judged) > 100


def test_the_totals_count_each_claim_once():
    counted = 0
    for row in TEXTS[paths.ROOT / "README.md"].splitlines():
        if row.startswith("| ["):
            _, _, experiments, theorems, _, ours, _ = row.split("|")
            for cell in (experiments, theorems, ours):
                counted += sum(map(int, re.findall(r"\d+", cell.partition("<br>")[0])))
    assert counted == len(registry.registry())


def test_the_readme_types_no_number_of_a_finding():
    """All that was measured stands in the generated table, or in the pages that it links to."""
    readme = TEXTS[paths.ROOT / "README.md"]
    found = readme[readme.index("## What was found") : readme.index("## Read, doubt, rerun")]
    written = overviews.TOTALS.sub("", found)
    assert written != found
    names = r"\b20\d\d\b|ResNet-\d+|VGG19|−1|\]\([^)]*\)|Theorems? \d\.\d( and \d\.\d)*"
    named = re.sub(names, "", written)
    assert re.findall(r"\d+", named) == []
