"""What the pages are made from.

Records in short, the largest size, texts that quote, and files that are broken.
"""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

from ledger import errata, findings, paths, registry, render, show
from ledger import records as stored
from ledger.errors import ClaimError, RunFailed
from ledger.site import build as module
from ledger.site import mistakes, pages, quotes, records
from ledger.site.build import write_sources
from overparam.errors import OverparamError

CLAIM = "arora2019-fig1-convergence-labels"
SOURCE = paths.ROOT / "figures" / "laptop" / CLAIM
THEOREM = next(
    claim for claim in registry.registry().values() if claim.kind == "theorem" and claim.note
)


@pytest.fixture
def copied(figures, monkeypatch):
    """A function that puts a copy of one record, with changes that count as its run's own, at a
    size.
    """
    monkeypatch.setattr(stored, "damaged", lambda *_: [])

    def put(size="laptop", **changed):
        folder = figures / size / CLAIM
        folder.mkdir(parents=True)
        for file in SOURCE.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        write(folder, **changed)
        return folder

    return put


def write(folder, **changed):
    content = json.loads((SOURCE / "result.json").read_text()) | changed
    (folder / "result.json").write_text(json.dumps(content))
    return content


def of(figures, claim=CLAIM):
    return next(entry for entry in records.load(figures) if entry.claim.id == claim)


def cells(entry):
    page = pages.claim_page(pages.environment(), entry, entry.best, ("Arora", "", ""))
    return json.loads(page)["cells"]


def test_the_largest_size_counts_and_without_a_record_nothing_is_decided(
    copied, figures, monkeypatch
):
    copied("desk", verdict="partly reproduced")
    now = json.loads((copied("laptop") / "result.json").read_text())["fingerprint"]
    for of_desk, counts in (("of other sources", "laptop"), (now, "desk")):
        monkeypatch.setattr(
            stored, "fingerprint", lambda _, size, desk=of_desk: now if size == "laptop" else desk
        )
        entries = {entry.claim.id: entry for entry in records.load(figures)}
        entry = entries.pop(CLAIM)
        assert (entry.best.size, list(entry.versions)) == (counts, ["laptop", "desk"])
    assert entry.verdict == "partly reproduced"
    assert (entry.page(), entry.page(entry.versions["laptop"])) == (
        f"claims/{CLAIM}",
        f"claims/{CLAIM}-laptop",
    )
    assert {other.verdict for other in entries.values()} == {show.NOT_RUN}
    assert {size for other in entries.values() for size in other.versions} == {"smoke"}


def test_a_page_begins_with_title_finding_verdict_figure_checks_size_and_freeze_in_this_order():
    entry = of(paths.ROOT / "figures", THEOREM.id)
    head = "".join(cells(entry)[0]["source"])
    title = re.search(r"^# (.*)$", head, re.MULTILINE)
    assert title[1].replace("\\", "") == THEOREM.title.replace("\\", "")
    soup, record = BeautifulSoup(head[title.end() :], "html.parser"), entry.best.record
    if entry.best.outdated:
        soup.select_one(".note").decompose()  # which says so, above all pictures
    parts = [
        ".where",
        ".found",
        ".sizes",
        "dl.facts",
        "img.overview",
        "table.checks",
        ".note",
        ".downloads",
        "code",
    ]
    places = [str(soup).index(str(soup.select_one(f".claim-head {part}"))) for part in parts]
    assert places == sorted(places)
    assert soup.select_one(".found").text.strip()
    assert [dt.text for dt in soup.select("dl.facts dt")] == [
        "As printed",
        "Where measured",
        "Conditions",
    ]
    rows = [row.text for row in soup.select("table.checks tbody th")]
    assert len(rows) == len(record["checks"])
    notes = [note.text for note in soup.select(".note")]
    assert notes[-1] == render.frozen(THEOREM, record)
    assert any(note.startswith(f"At {entry.best.size} size: ") for note in notes)


def test_below_is_the_executed_notebook_without_its_title_its_finding_and_its_table_of_checks(
    copied, figures
):
    folder = copied()
    executed = json.loads((folder / "notebook.ipynb").read_text())["cells"]
    shown = cells(of(figures))[1:-1]
    assert len(shown) == len(executed)
    title, source, finding, *rest = "".join(executed[0]["source"]).split("\n\n")
    assert (title[:2], finding.startswith("**In short.** ")) == ("# ", True)
    assert shown[0]["source"] == "\n\n".join([source, *rest])
    texts = [
        output["data"]["text/markdown"]
        for cell in shown
        for output in cell.get("outputs", [])
        if "text/markdown" in output.get("data", {})
    ]
    assert [text for text in texts if text.startswith("**Verdict:**")] == [
        "**Verdict:** Reproduced. 5 of 5 checks hold."
    ]
    assert not [text for text in texts if "|---" in text]
    pictures = [
        output
        for cell in shown
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == len(json.loads((folder / "result.json").read_text())["figures"])


def test_links_to_notebooks_lead_to_pages():
    entry = of(paths.ROOT / "figures", "du2019-thm41-linear-rate")
    text = "".join(
        "".join(cell["source"]) for cell in cells(entry) if cell["cell_type"] == "markdown"
    )
    assert "](/claims/arora2019-thm31-linear-rate)" in text
    assert ".ipynb)" not in text.replace(f"{entry.claim.id}-{entry.best.size}.ipynb", "")


@pytest.mark.parametrize(
    "changed",
    [
        {"figures": {"../../x.png": []}},
        {"figures": {3: []}},
        {"checks": [{}]},
        {"verdict": "splendid"},
    ],
)
def test_a_record_that_cannot_be_shown_is_named(changed, copied, figures):
    copied(**changed)
    with pytest.raises(ClaimError, match=rf"{CLAIM}/result.json is not a readable record"):
        records.load(figures)


def test_a_record_that_its_run_did_not_write_is_no_page_and_an_outdated_one_says_so(
    copied, figures, monkeypatch
):
    copied(fingerprint="of other sources")
    entry = of(figures)
    assert entry.best.outdated
    assert "This record is outdated" in "".join(cells(entry)[0]["source"])
    monkeypatch.undo()
    with pytest.raises(ClaimError, match=rf"{CLAIM}/result.json is not what its run wrote"):
        records.load(figures)


def test_an_undecided_check_is_marked_and_tables_can_be_downloaded(copied, figures):
    folder = copied()
    checks = json.loads((folder / "result.json").read_text())["checks"]
    checks[0] |= {"outcome": "undecided", "interval": [0.5, 2.5]}
    write(folder, checks=checks)
    (folder / "more.csv").write_text("n,loss\n1,2\n")
    soup = BeautifulSoup("".join(cells(of(figures))[0]["source"]), "html.parser")
    assert [cell.text for cell in soup.select("td.undecided")] == ["undecided"]
    assert "95 % intervals" in soup.select_one("table.checks caption").text
    assert "more.csv" in [link.text for link in soup.select(".downloads a")]


def test_two_builds_at_once_and_one_that_fails_leave_a_site(monkeypatch, tmp_path):
    """With a Sphinx that takes its time, and may find a fault."""
    under_way, most, code = [], [], 0

    def sphinx(command, **_):
        under_way.append(0)
        time.sleep(0.5)
        Path(command[-1]).mkdir(parents=True)
        (Path(command[-1]) / "index.html").write_text(f"code {code}")
        most.append(len(under_way))
        under_way.pop()
        return SimpleNamespace(returncode=code, stderr="a fault")

    monkeypatch.setattr(module, "write_sources", lambda *_: None)
    monkeypatch.setattr(module.subprocess, "run", sphinx)
    with ThreadPoolExecutor() as pool:
        built = [
            one.result() / "index.html"
            for one in [pool.submit(module.build, tmp_path) for _ in range(2)]
        ]
    assert (most, built) == ([1, 1], [tmp_path / "html" / "index.html"] * 2)
    code = 1
    with pytest.raises(RunFailed, match="a fault"):
        module.build(tmp_path)
    assert built[0].read_text() == "code 0"


def test_a_paper_without_a_text_is_called_by_its_key(monkeypatch, tmp_path):
    entries = records.load(paths.ROOT / "figures")
    env = pages.environment()
    key = CLAIM.partition("-")[0]
    monkeypatch.setattr(paths, "SITE", tmp_path)
    texts = pages.papers()
    assert texts[key] == (key, key, "")
    text = pages.paper_page(env, key, texts[key], entries)
    assert text.startswith(f"# {key}\n")
    assert registry.claim(CLAIM).title in text


def test_sources_are_written_also_where_nothing_has_been_run(figures, tmp_path):
    """A new claim has a page with the outputs of its notebook, and every text can be filled."""
    write_sources(tmp_path / "source", figures)
    page = json.loads((tmp_path / "source" / "claims" / f"{CLAIM}.ipynb").read_text())["cells"]
    assert show.NOT_RUN in "".join(page[0]["source"])
    assert "every test run" in "".join(page[-1]["source"]).lower()
    index = BeautifulSoup((tmp_path / "source" / "index.md").read_text(), "html.parser")
    assert {cell.text for cell in index.select("#claims td .verdict")} == {show.NOT_RUN}


def test_a_text_quotes_its_records_and_nothing_else(copied, figures):
    folder = copied()
    row = json.loads((folder / "result.json").read_text())["checks"][0]
    entries = records.load(figures)
    given, home = quotes.Quotes(entries), quotes.Quotes(entries, "../")
    verdict = next(entry.verdict for entry in entries if entry.claim.id == CLAIM)
    calls = [
        f'value("{CLAIM}", "{row["name"]}")',
        f'verdict("{CLAIM}")',
        f'link("{CLAIM}", "here")',
    ]
    shown = quotes.fill("x.md", " | ".join(f"{{{{ {call} }}}}" for call in calls), given)
    assert shown == f"{findings.measured(row)} | {verdict} | [here](/claims/{CLAIM})"
    assert quotes.fill("x.md", f'{{{{ value("{CLAIM}", "any", "desk") }}}}', given) == show.NOT_RUN
    picture = f'{{{{ picture("{CLAIM}", "loss", "words", panel=1) }}}}'
    assert f'src="../panels/{CLAIM}/loss-1.png"' in quotes.fill("papers/x.md", picture, home)
    for wrong in (
        'value("arora2019-none", "a")',
        f'value("{CLAIM}", "none")',
        f'value("{CLAIM}", "none", "laptop")',
        f'values("{CLAIM}")',
        f'statistic("{CLAIM}", "none", "a")',
        f'statistic("{CLAIM}", "runs", "left", labels="none")',
    ):
        with pytest.raises(OverparamError, match=r"x\.md asks for what is not there"):
            quotes.fill("x.md", f"{{{{ {wrong} }}}}", given)


def test_a_text_takes_the_mean_of_the_rows_that_it_names(copied, figures):
    folder = copied()
    rows = "alpha,epoch,test,asked\n1,0,5,0\n1,9,2,2\n1,9,4,3\n2,12,7,56.3\n"
    (folder / "made.csv").write_text(rows)
    given = quotes.Quotes(records.load(figures))
    for call, wanted in (
        ('"test", alpha=1, epoch="last"', "3 ± 1.4"),
        ('"test", "max", epoch=0', "5"),
        ('"asked", "max", log10=True', r"$2\cdot10^{56}$"),
    ):
        assert (
            quotes.fill("x.md", f'{{{{ statistic("{CLAIM}", "made", {call}) }}}}', given) == wanted
        )


def test_the_counts_of_a_paper_tell_its_kinds_apart():
    """In Arora et al. there is one claim of our own, which is in no total of the paper."""
    entries = records.load(paths.ROOT / "figures")
    words = quotes.Quotes(entries).counts("arora2019")
    for kind, (one, many) in show.KINDS.items():
        count = sum(
            (entry.claim.paper, entry.claim.kind) == ("arora2019", kind) for entry in entries
        )
        assert re.search(rf"\b{count} {one if count == 1 else many} \(", words)


@pytest.mark.parametrize("paper", errata.papers())
def test_every_mistake_and_every_place_stands_once_on_its_papers_page_of_errata(paper):
    found = errata.load(paper)
    text = mistakes.chapter(found, mistakes.OnSite(records.load(paths.ROOT / "figures")))
    for fault in [fault for fault in found.faults if fault.certificate]:
        assert text.count(f"\n({fault.anchor})=\n") == 1
        assert text.count(f"\n## {fault.title}\n") == 1
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) == len(found.errata)
    assert all(len(re.split(r"(?<!\\)\|", row)) == 6 for row in rows)
    assert len(re.findall(r"^- \*\*", text, re.MULTILINE)) == len(found.remarks)


def test_the_index_of_errata_leads_to_every_grave_mistake_once_and_the_gravest_first():
    found = [errata.load(paper) for paper in errata.papers()]
    names = dict.fromkeys(errata.papers(), "A")
    text = mistakes.index(found, mistakes.OnSite(records.load(paths.ROOT / "figures")), names)
    grave = [fault for paper in found for fault in paper.faults if fault.grave]
    order = list(errata.SEVERITIES)
    shown = re.findall(r"\(project:#([\w.-]+)\)", text)
    assert sorted(shown) == sorted(fault.anchor for fault in grave)
    severities = {fault.anchor: order.index(fault.severity) for fault in grave}
    assert [severities[anchor] for anchor in shown] == sorted(severities.values())
