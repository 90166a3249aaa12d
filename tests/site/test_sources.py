"""What the pages are made from: records in short, the largest size, escaping, and files that are broken."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

from overparam import paths
from overparam.errors import ClaimError, OverparamError, RunFailed
from overparam.record import checks
from overparam.run import runner
from overparam.run.site import build as module
from overparam.run.site import errata, pages, quotes, records
from overparam.run.site.build import write_sources

CLAIM = "arora2019-fig1-convergence-labels"


@pytest.fixture
def copied(figures, monkeypatch):
    """A function that puts a copy of one record, with changes that count as its run's own, at a size."""
    monkeypatch.setattr(runner, "damaged", lambda *_: [])
    source = paths.ROOT / "figures" / "laptop" / CLAIM

    def put(profile="laptop", **changed):
        folder = figures / profile / CLAIM
        folder.mkdir(parents=True)
        for file in source.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        content = json.loads((source / "result.json").read_text()) | changed
        (folder / "result.json").write_text(json.dumps(content))
        return folder

    return put


def test_the_largest_size_counts_and_without_a_record_nothing_is_decided(copied, figures, monkeypatch):
    monkeypatch.setattr(records, "COMMITTED", ("laptop", "desk", "paper"))
    copied("desk", verdict="partly")
    now = json.loads((copied("laptop") / "result.json").read_text())["fingerprint"]
    for of_desk, counts in (("other sources", "laptop"), (now, "desk")):
        monkeypatch.setattr(runner, "fingerprint", lambda _, size: now if size == "laptop" else of_desk)  # noqa: B023
        entries = {entry.spec.id: entry for entry in records.load(figures)}
        entry = entries.pop(CLAIM)
        assert (entry.best.profile, list(entry.versions)) == (counts, ["laptop", "desk"])
    assert entry.verdict == "partly"
    assert (entry.page(), entry.page(entry.versions["laptop"])) == (f"claims/{CLAIM}", f"claims/{CLAIM}-laptop")
    assert {other.verdict for other in entries.values()} == {records.UNRUN}
    assert {profile for other in entries.values() for profile in other.versions} == {"smoke"}


def test_what_a_page_says_of_itself_is_quoted_and_its_checks_are_marked(copied, figures):
    folder = copied(summary=[r"At $\alpha = 1$ it **holds**, see [this](x).", "More."], sizes="because of memory")
    record = json.loads((folder / "result.json").read_text())
    record["checks"][0] |= {"undecided": True, "holds": False, "spread": [0.5, 2.5], "added": "a second look"}
    (folder / "result.json").write_text(json.dumps(record))
    (folder / "runs.csv").write_text("n,loss\n1,2\n")
    env, entries = pages.environment(), records.load(figures)
    entry = next(entry for entry in entries if entry.spec.id == CLAIM)
    index = BeautifulSoup(pages.dashboard(env, entries, pages.papers()), "html.parser")
    assert r"At \(\alpha = 1\) it holds, see this." in " ".join(found.text for found in index.select(".found"))
    page = json.loads(
        pages.claim_page(env, entry, entry.best, pages.executed(entry.spec, entry.best), ("Arora", "", ""))
    )
    head = "".join(page["cells"][0]["source"])
    assert r"At $\alpha = 1$ it **holds**" in head
    soup = BeautifulSoup(head, "html.parser")
    assert "because of memory" in soup.text
    assert soup.select_one("td.undecided").text == "undecided"
    assert soup.select_one("mark").text == "decided after the result: a second look"
    assert "runs.csv" in [a.text for a in soup.select(".downloads a")]


@pytest.mark.parametrize("content", ["{", "[]", '{"verdict": "reproduced"}', "no picture", '{"cells": 1}'])
def test_a_broken_file_is_named(content, copied, figures, tmp_path):
    name = {"no picture": "loss.png", '{"cells": 1}': "notebook.ipynb"}.get(content, "result.json")
    (copied() / name).write_text(content)
    with pytest.raises(ClaimError, match=rf"{CLAIM}/{re.escape(name)}"):
        write_sources(tmp_path / "source", figures)


@pytest.mark.parametrize("changed", [{"figures": ["../../x.png"]}, {"figures": [3]}, {"checks": [{}]}])
def test_a_record_that_cannot_be_shown_is_named(changed, copied, figures, tmp_path):
    copied(**changed)
    with pytest.raises(ClaimError, match=rf"{CLAIM}/result.json cannot be shown"):
        write_sources(tmp_path / "source", figures)


def test_a_record_that_its_run_did_not_write_is_no_page_and_one_of_other_sources_says_so(copied, figures, monkeypatch):
    folder = copied(fingerprint="of other sources")
    (entry,) = [e for e in records.load(figures) if e.spec.id == CLAIM]
    assert entry.best.stale
    page = pages.claim_page(
        pages.environment(), entry, entry.best, pages.executed(entry.spec, entry.best), ("Arora", "", "")
    )
    assert "made from other sources than the present ones" in page
    monkeypatch.undo()
    with pytest.raises(ClaimError, match=rf"{CLAIM}/result.json is not what its run wrote"):
        records.load(folder.parents[1])


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
        pages = [one.result() / "index.html" for one in [pool.submit(module.build, tmp_path) for _ in range(2)]]
    assert (most, pages) == ([1, 1], [tmp_path / "html" / "index.html"] * 2)
    code = 1
    with pytest.raises(RunFailed, match="a fault"):
        module.build(tmp_path)
    assert pages[0].read_text() == "code 0"


def test_a_paper_without_a_text_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "SITE", tmp_path)
    with pytest.raises(OverparamError, match=r"papers/\w+\.md is missing"):
        pages.papers()


def test_a_text_quotes_its_records_and_nothing_else(copied, figures):
    folder = copied()
    row = json.loads((folder / "result.json").read_text())["checks"][0]
    unmeasured = next(c.name for c in checks.spec(CLAIM).checks if c.superseded_by)
    entries = records.load(figures)
    verdict = next(entry.verdict for entry in entries if entry.spec.id == CLAIM)
    env = pages.environment()
    quoted = {"value": row["name"], "verdict": None, "link": "here"}
    text = " | ".join(f'{{{{ {name}("{CLAIM}"{f", {last!r}" * bool(last)}) }}}}' for name, last in quoted.items())
    shown = quotes.fill(env, "x.md", text, entries)
    assert shown == f"{records.render.measured(row)} | {verdict} | [here](/claims/{CLAIM})"
    assert f'src="../records/laptop/{CLAIM}/loss.png"' in quotes.fill(
        env, "papers/x.md", f'{{{{ picture("{CLAIM}", "loss", "words", panel=1) }}}}', entries
    )
    for wrong in (
        'value("arora2019-none", "a")',
        f'value("{CLAIM}", "none")',
        f'value("{CLAIM}", "none", "laptop")',
        f'value("{CLAIM}", "{unmeasured}")',
        f'values("{CLAIM}")',
        f'statistic("{CLAIM}", "none", "a")',
    ):
        with pytest.raises(OverparamError, match=r"x\.md asks for what is not there"):
            quotes.fill(env, "x.md", f"{{{{ {wrong} }}}}", entries)


def test_a_page_has_its_parameters_once_as_they_were_run_and_its_first_figure_in_front(copied, figures):
    folder = copied()
    (folder / "another.png").write_bytes((folder / "loss.png").read_bytes())
    record = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(record | {"figures": ["another.png", "loss.png"]}))
    env = pages.environment()
    entry = next(entry for entry in records.load(figures) if entry.spec.id == CLAIM)
    notebook = pages.executed(entry.spec, entry.best)
    assert pages.first_figure(entry.best, notebook) == "loss.png"
    cells = json.loads(pages.claim_page(env, entry, entry.best, notebook, ("Arora", "", "")))["cells"]
    given = ["".join(cell["source"]) for cell in cells if "parameters" in "".join(cell["metadata"].get("tags", []))]
    assert len(given) == 1
    defined = {}
    exec(given[0], defined)  # literals of ours
    assert {name: defined[name] for name in record["parameters"]} == record["parameters"]
    assert given[0].count("  # ") > len(record["parameters"]) / 2


def test_a_text_takes_the_mean_of_the_rows_that_it_names(copied, figures):
    folder = copied()
    rows = "alpha,epoch,test,asked\n1,0,5,0\n1,9,2,2\n1,9,4,3\n2,9,7,56.3\n"
    (folder / "made.csv").write_text(rows)
    entries = records.load(figures)
    for call, wanted in (
        ('"test", alpha=1, epoch="last"', "3 ± 1.4"),
        ('"test", "max", epoch=0', "5"),
        ('"asked", "max", log10=True', r"$2\cdot10^{56}$"),
    ):
        text = f'{{{{ statistic("{CLAIM}", "made", {call}) }}}}'
        assert quotes.fill(pages.environment(), "x.md", text, entries) == wanted


def test_every_erratum_has_a_severity_and_is_listed_once_by_it(figures):
    keys = list(pages.papers())
    files = {key: paths.NOTEBOOKS / "errata" / f"{key}.md" for key in keys}
    found = {key: re.findall(r"^\|.*", file.read_text(), re.MULTILINE) for key, file in files.items() if file.exists()}
    lines = {key: rows[2:] for key, rows in found.items()}  # below the heading
    marked = re.compile(rf"\*({'|'.join(errata.SEVERITIES)})\*|A comment, no erratum")
    for key, rows in lines.items():
        for row in rows:
            assert marked.match(re.split(r"(?<!\\)\|", row)[3].strip()), f"{key}: {row}"
    listed = sum(len(errata.rows(keys, severity)) for severity in errata.SEVERITIES)
    assert listed == sum(map(len, lines.values()))


def test_the_first_figure_is_found_by_a_name_that_is_filled_in(copied, figures):
    folder = copied()
    (folder / "loss-mnist.png").write_bytes((folder / "loss.png").read_bytes())
    record = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(record | {"figures": ["another.png", "loss-mnist.png"]}))
    entry = next(entry for entry in records.load(figures) if entry.spec.id == CLAIM)
    for name in ("loss-{data}", "{kind}-mnist"):
        cells = [{"source": [f'claim.figure(fig, f"{name}")']}]
        assert pages.first_figure(entry.best, {"cells": cells}) == "loss-mnist.png"
