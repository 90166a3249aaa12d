"""The built pages, as files and in a real browser."""

import json
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup

from overparam.paths import ROOT
from overparam.record import checks
from overparam.run.site import records

pytestmark = pytest.mark.timeout(600)  # the first one builds the site
ENTRIES = records.load(ROOT / "figures")
PAPERS = sorted({entry.spec.paper for entry in ENTRIES})
SAMPLE = next(entry for entry in ENTRIES if entry.best.record)
LOOKED_AT = ["index", SAMPLE.page(), f"papers/{SAMPLE.spec.paper}", "glossary", "reference/overparam.bounds.arora2019"]
RAW_TEX = r"""() => {
  const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest("pre, code, script, style, mjx-container")) continue;
    if (/\\[a-zA-Z(\[]|\$/.test(node.data)) found.push(node.data.trim());
  }
  return found.concat([...document.querySelectorAll("mjx-merror, .math.notranslate:not(:has(mjx-container))")]
    .map((node) => node.outerHTML.slice(0, 200)));
}"""
BROKEN_PICTURES = "() => [...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)"
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Visitor:
    """A browser window that notes what goes wrong: requests for anything but files, errors in the console."""

    def __init__(self, chromium, root, width=1440, mode="light"):
        self.root, self.faults = root, []
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=mode)
        self.page = context.new_page()
        self.page.on("request", self._request)
        self.page.on("requestfailed", lambda r: self.faults.append(f"not there: {r.url}"))
        self.page.on("console", lambda m: self.faults.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _request(self, request):
        if urlsplit(request.url).scheme not in ("file", "data", "blob"):
            self.faults.append(f"asks for {request.url}")

    def open(self, name):
        self.page.goto(f"file://{self.root}/{name}.html")
        self.page.evaluate("() => window.MathJax?.startup?.promise.then(() => null)")
        return self.page


@pytest.fixture(scope="module")
def soups(built):
    """{page as a relative path: its parsed HTML}."""
    files = [file for file in built.rglob("*.html") if file.relative_to(built).parts[0] not in ("_static", "records")]
    return {str(f.relative_to(built)): BeautifulSoup(f.read_text(encoding="utf-8"), "html.parser") for f in files}


def test_every_link_picture_and_download_is_there(built, soups):
    anchors = {name: {tag["id"] for tag in soup.find_all(id=True)} for name, soup in soups.items()}
    broken = []
    for name, soup in soups.items():
        for tag in soup.find_all(["a", "img", "script", "link"]):
            address = tag.get("href") or tag.get("src") or ""
            url = urlsplit(address)
            if url.scheme in ("http", "https") and tag.name == "a":
                continue
            target = (built / name).parent / unquote(url.path) if url.path else built / name
            inside = str(target.resolve().relative_to(built.resolve())) if not url.scheme else ""
            lost = "=" not in url.fragment and url.fragment not in {"", *anchors.get(inside, {url.fragment})}
            if url.scheme or not target.exists() or lost:
                broken.append(f"{name}: {address}")
    assert broken == []


def test_every_page_is_small(built, soups):
    assert max((built / name).stat().st_size for name in soups) < 3e6


def test_every_claim_has_its_page_with_verdict_provenance_and_downloads(built, soups):
    for entry in ENTRIES:
        for version in entry.versions.values():
            soup = soups[f"{entry.page(version)}.html"]
            head = soup.select_one(".claim-head")
            assert len(head.select(".profiles a")) == len(entry.versions)
            assert head.select_one("[aria-current=page] .verdict").text == version.verdict
            assert f"overparam run {entry.spec.id} --profile {version.profile}" in head.text
            downloads = {a["href"].rpartition("/")[2] for a in head.select(".downloads a")}
            assert "notebook.ipynb" in downloads
            if version.record:
                assert {"result.json", "series.npz"} <= downloads
                shown = {row.select_one("th code").text for row in head.select(".checks tbody tr")}
                assert shown == {row["name"] for row in version.record["checks"]}
                assert version.record["device"] in soup.select_one("dl.record").text
                copy = built / "records" / version.profile / entry.spec.id / "result.json"
                assert json.loads(copy.read_text()) == version.record


def test_the_totals_are_those_of_the_records(soups):
    for row in soups["index.html"].select(".totals tbody tr"):
        paper = row.select_one("a")["href"].removeprefix("papers/").removesuffix(".html")
        own = [entry.verdict for entry in ENTRIES if entry.spec.paper == paper]
        counts = [int(cell.text) for cell in row.select("td")]
        assert counts == [own.count(word) for word in (*checks.VERDICTS, records.UNRUN)] + [len(own)]


def test_a_paper_page_explains_every_claim_that_is_not_reproduced(soups):
    for paper in PAPERS:
        text = soups[f"papers/{paper}.html"].text
        for entry in ENTRIES:
            if entry.spec.paper == paper and entry.verdict not in ("reproduced", records.UNRUN):
                assert text.count(entry.spec.title) >= 2, entry.spec.id


@pytest.mark.parametrize("paper", PAPERS)
def test_formulas_pictures_and_console_of_all_pages_of_a_paper(chromium, built, paper):
    visitor = Visitor(chromium, built)
    for name in [f"papers/{paper}"] + [e.page() for e in ENTRIES if e.best and e.spec.paper == paper]:
        page = visitor.open(name)
        assert page.evaluate(RAW_TEX) == [], name
        assert page.evaluate(BROKEN_PICTURES) == [], name
        assert page.evaluate(WIDER) == 0, name
        assert visitor.faults == [], name
    visitor.page.context.close()


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_pages_are_readable_and_accessible(chromium, built, width, mode):
    visitor = Visitor(chromium, built, width, mode)
    for name in LOOKED_AT:
        page = visitor.open(name)
        assert page.evaluate(WIDER) == 0, name
        assert page.evaluate(RAW_TEX) == [], name
        found = Axe().run(page, options={"preload": False})
        assert found.violations_count == 0, f"{name}: {found.generate_report()}"
    assert page.evaluate("document.documentElement.dataset.theme") == mode
    assert visitor.faults == []
    visitor.page.context.close()


def shown(page):
    return page.locator("#claims tbody tr:visible").count()


def test_the_dashboard_filters_by_paper_verdict_kind_and_text(chromium, built):
    page = Visitor(chromium, built).open("index")
    assert shown(page) == len(ENTRIES)
    page.select_option("[name=paper]", SAMPLE.spec.paper)
    assert shown(page) == sum(e.spec.paper == SAMPLE.spec.paper for e in ENTRIES)
    page.select_option("[name=verdict]", "reproduced")
    page.select_option("[name=kind]", "lemma")
    wanted = (SAMPLE.spec.paper, "reproduced", "lemma")
    count = sum((e.spec.paper, e.verdict, e.spec.kind) == wanted for e in ENTRIES)
    assert shown(page) == count > 0
    assert page.locator("#filters output").inner_text() == f"{count} of {len(ENTRIES)} claims"
    page.click("text=Clear")
    page.fill("[name=text]", SAMPLE.spec.checks[0].wording[:40])
    page.wait_for_function("document.querySelector('#claims tbody tr[hidden]')")
    assert 1 <= shown(page) < len(ENTRIES)
    page.goto(page.url.partition("#")[0] + "#verdict=partly")
    assert shown(page) == sum(e.verdict == "partly" for e in ENTRIES)


def test_the_dashboard_sorts_by_keyboard_and_links_to_its_claims(chromium, built):
    page = Visitor(chromium, built).open("index")
    kinds = page.locator("#claims td.kind")
    header = page.get_by_role("button", name="Kind")
    header.focus()
    page.keyboard.press("Enter")
    assert kinds.all_inner_texts() == sorted(e.spec.kind for e in ENTRIES)
    page.keyboard.press("Enter")
    assert kinds.all_inner_texts() == sorted((e.spec.kind for e in ENTRIES), reverse=True)
    page.fill("[name=text]", SAMPLE.spec.id)
    page.locator("#claims tbody th a >> visible=true").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{SAMPLE.page()}.html")


def test_without_scripts_the_dashboard_is_a_plain_table(chromium, built):
    page = chromium.new_context(java_script_enabled=False).new_page()
    page.goto(f"file://{built}/index.html")
    assert page.locator("#claims tbody tr").count() == len(ENTRIES)
    assert not page.locator("#filters").is_visible()


def test_the_search_page_finds_texts_of_notebooks(chromium, built):
    visitor = Visitor(chromium, built)
    visitor.page.goto(f"file://{built}/search.html?q=Rademacher")
    visitor.page.wait_for_selector("#search-results li a")
    assert visitor.page.locator("#search-results li a[href*=claims]").count() > 0
    assert visitor.faults == []
