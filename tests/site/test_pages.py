"""The built pages, as files and in a real browser."""

import copy
import dataclasses
import json
import random
import re
from urllib.parse import quote, unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup

from ledger import errata, markup, rule, show
from ledger.parameters import notebook_parameters
from ledger.paths import NOTEBOOKS, ROOT
from ledger.site import pages, records
from overparam.bounds.requirements import requirements

pytestmark = pytest.mark.timeout(600)  # the first one builds the site
ENTRIES = records.load(ROOT / "figures")
PAPERS = {entry.claim.paper: entry for entry in ENTRIES}
SAMPLE = next(entry for entry in ENTRIES if entry.best.record and entry.best.record["metrics"])
LOOKED_AT = [
    "index",
    "findings",
    "start",
    "errata",
    f"errata/{errata.papers()[0]}",
    "corrected",
    "audit",
    "glossary",
    "explore-bounds",
    "reference/training",
]
LOOKED_AT += [f"papers/{SAMPLE.claim.paper}", SAMPLE.page()]
BROKEN_PICTURES = (
    "() => [...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)"
)
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
TYPESET = "() => window.MathJax?.startup?.promise.then(() => null)"
FAULTY = (
    "() => [...document.querySelectorAll('mjx-merror, "
    ".math.notranslate:not(:has(mjx-container))')].map(String)"
)


class Visitor:
    """A browser window that notes what goes wrong.

    Requests for anything but files, errors in the console.
    """

    def __init__(self, chromium, root, width=1440, mode="light"):
        self.root, self.faults = root, []
        self.page = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=mode
        ).new_page()
        self.page.on("request", self._request)
        self.page.on("requestfailed", self._failed)
        self.page.on(
            "console",
            lambda m: self.faults.append(m.text) if m.type in ("error", "warning") else None,
        )
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _request(self, request):
        if urlsplit(request.url).scheme not in ("file", "data", "blob"):
            self.faults.append(f"asks for {request.url}")

    def _failed(self, request):
        if (
            request.failure != "net::ERR_ABORTED"
        ):  # a font that was still on its way when the next page was opened
            self.faults.append(f"not there: {request.url} ({request.failure})")

    def open(self, name):
        self.page.goto(f"file://{self.root}/{name}.html")
        self.page.evaluate(TYPESET)
        return self.page


@pytest.fixture(scope="module")
def soups(built):
    """{page as a relative path: its parsed HTML}."""
    files = [
        file
        for file in built.rglob("*.html")
        if file.relative_to(built).parts[0] not in ("_static", "records")
    ]
    return {
        str(f.relative_to(built)): BeautifulSoup(f.read_text(encoding="utf-8"), "html.parser")
        for f in files
    }


def test_every_link_picture_and_download_is_there_and_every_page_is_small(built, soups):
    anchors = {name: {tag["id"] for tag in soup.find_all(id=True)} for name, soup in soups.items()}
    broken = [
        name
        for name in soups
        if (built / name).stat().st_size > (1.5e6 if name != "index.html" else 250e3)
    ]
    for name, soup in soups.items():
        for tag in soup.find_all(["a", "img", "script", "link"]):
            address = tag.get("href") or tag.get("src") or ""
            url = urlsplit(address)
            if url.scheme in ("http", "https") and tag.name == "a":
                continue
            target = (built / name).parent / unquote(url.path) if url.path else built / name
            inside = str(target.resolve().relative_to(built.resolve())) if not url.scheme else ""
            lost = "=" not in url.fragment and url.fragment not in {
                "",
                *anchors.get(inside, {url.fragment}),
            }
            if url.scheme or not target.exists() or lost:
                broken.append(f"{name}: {address}")
    assert broken == []


def test_no_table_is_left_as_markdown(soups):
    raw = [
        name
        for name, soup in soups.items()
        for p in soup.select("p, small")
        if re.search(r"\|[-:]{3,}\|", p.text)
    ]
    assert raw == []


def test_every_claim_shows_its_record(built, soups):
    for entry in ENTRIES:
        for version in entry.versions.values():
            soup = soups[f"{entry.page(version)}.html"]
            head = soup.select_one(".claim-head")
            assert len(head.select(".sizes a")) == len(entry.versions)
            assert head.select_one("[aria-current=page] .verdict").text == version.verdict
            assert f"overparam run {entry.claim.id} --profile {version.size}" in head.text
            downloads = {a["href"].rpartition("/")[2] for a in head.select(".downloads a")}
            assert downloads == {"notebook.ipynb", *version.files}
            if version.record:
                assert head.select_one(".found").text == markup.typeset(version.finding).striptags()
                assert len(head.select(".checks tbody tr")) == len(version.record["checks"])
                assert version.record["device"] in soup.select_one("dl.record").text
                copy = built / "records" / version.size / entry.claim.id / "result.json"
                assert json.loads(copy.read_text()) == version.record


def test_a_papers_page_lists_every_claim_with_its_finding_and_says_of_which_kind_it_is(soups):
    for paper in PAPERS:
        soup = soups[f"papers/{paper}.html"]
        own = [entry for entry in ENTRIES if entry.claim.paper == paper]
        for kind, (_, many) in show.KINDS.items():
            tables = [
                table
                for table in soup.select("table.claims")
                if table.caption.text == many.capitalize()
            ]
            rows = [row.text for table in tables for row in table.select("tbody tr")]
            wanted = [entry for entry in own if entry.claim.kind == kind]
            assert len(rows) == len(wanted)
            for row, entry in zip(rows, wanted, strict=True):
                assert markup.typeset(entry.claim.title).striptags() in row
                assert markup.typeset(entry.best.finding).striptags() in row


def test_what_does_not_hold_stands_on_its_papers_page_with_the_checks_concerned(soups):
    for paper in PAPERS:
        section = soups[f"papers/{paper}.html"].select_one("#what-does-not-hold-and-why")
        short = {
            entry.claim.id: entry
            for entry in ENTRIES
            if entry.claim.paper == paper
            and entry.verdict not in (rule.VERDICTS[entry.claim.kind][0], show.NOT_RUN)
        }
        parts = section.select("section") if section else []
        assert [part.select_one("a[href*='/claims/']").text for part in parts] == list(short)
        for part in parts:
            entry = short[part.select_one("a[href*='/claims/']").text]
            record = entry.best.record
            open_ = [
                row for row in record["checks"] if row["outcome"] != "holds" and not record["unmet"]
            ]
            assert len(part.select(".checks tbody tr")) == len(open_)
            assert markup.typeset(entry.best.finding).striptags() in part.text


def test_the_totals_tell_three_kinds_apart(soups):
    tables = {table.caption.text: table for table in soups["index.html"].select("table.totals")}
    assert list(tables) == [many.capitalize() for _, many in show.KINDS.values()]
    counted = 0
    for kind, (_, many) in show.KINDS.items():
        table = tables[many.capitalize()]
        words = [cell.text for cell in table.select("thead .verdict")]
        assert (
            set(rule.VERDICTS[kind])
            <= set(words)
            <= {*rule.VERDICTS[kind], rule.NOT_TESTED, show.NOT_RUN}
        )
        for row in table.select("tbody tr"):
            paper = row.select_one("a")["href"].removeprefix("papers/").removesuffix(".html")
            own = [e.verdict for e in ENTRIES if (e.claim.paper, e.claim.kind) == (paper, kind)]
            counts = [int(cell.text) for cell in row.select("td")]
            assert counts == [*map(own.count, words), len(own)]
            counted += len(own)
    assert counted == len(ENTRIES)


def test_the_first_page_starts_with_findings(soups):
    first = [found.text for found in soups["index.html"].select(".finding")]
    every = [found.text for found in soups["findings.html"].select(".finding")]
    assert (len(first), len(every)) == (6, 10)
    assert first == every[:6]
    assert all(found.select("a[href]") for found in soups["index.html"].select(".finding"))
    assert not [text for text in every if show.NOT_RUN in text]


def test_every_formula_of_every_page_is_typeset(chromium, built, soups):
    formulas, untouched = set(), []
    for name, soup in soups.items():
        article = copy.copy(soup.select_one("article") or soup)
        formulas |= {str(tag.extract()) for tag in article.select(".math.notranslate")}
        for tag in article.select(
            "pre, code, script, style" + ", *" * name.startswith("reference/")
        ):
            tag.decompose()  # the library's docstrings are plain text
        untouched += [
            f"{name}: {text.strip()}"
            for text in article.find_all(string=re.compile(r"\\[a-zA-Z(\[]|\$"))
        ]
    assert untouched == []
    assert len(formulas) > 1000
    scripts = [
        str(tag) for tag in soups["glossary.html"].select("script") if "athjax" in str(tag).lower()
    ]
    visitor, every = Visitor(chromium, built), sorted(formulas)
    for start in range(0, len(every), 500):  # a page of all of them takes longer than a visit may
        part = every[start : start + 500]
        page = (
            f"<!doctype html><meta charset=utf-8>{''.join(scripts)}<body>{'<br>'.join(part)}</body>"
        )
        (built / "formulas.html").write_text(page, encoding="utf-8")
        assert visitor.open("formulas").locator("mjx-container").count() >= len(part)
        assert visitor.page.evaluate(FAULTY) == []
    assert visitor.faults == []
    (built / "formulas.html").unlink()


@pytest.mark.parametrize(("width", "mode"), [(390, "dark"), (1440, "light")])
def test_pages_are_readable_and_accessible(chromium, built, width, mode):
    visitor = Visitor(chromium, built, width, mode)
    others = [f"reference/{name}" for name in pages.reference()]
    others += [
        name for paper, entry in PAPERS.items() for name in (f"papers/{paper}", entry.page())
    ]
    for name in LOOKED_AT + others:
        page = visitor.open(name)
        assert page.evaluate(WIDER) == 0, name
        assert page.evaluate(BROKEN_PICTURES) == [], name
        assert page.evaluate("document.documentElement.dataset.theme") == mode
        if name in LOOKED_AT:
            found = Axe().run(page, options={"preload": False})
            assert found.violations_count == 0, f"{name}: {found.generate_report()}"
    assert visitor.faults == []


def test_a_formula_that_is_too_wide_can_be_scrolled_from_its_first_sign_on(chromium, built):
    """Formula (17) of Guo et al. is wider than the text, and a phone is narrower than most."""
    page = Visitor(chromium, built, 390).open("claims/guo2024-fig2-rate-vs-alpha")
    left = "(part) => part.getBoundingClientRect().left"
    formulas = page.locator("div.math").all()
    hidden = [one.evaluate("(div) => div.scrollWidth - div.clientWidth") for one in formulas]
    assert max(hidden) > 100
    for formula, width in zip(formulas, hidden, strict=True):
        assert formula.locator("mjx-container").evaluate(left) >= formula.evaluate(left) - 1
        assert (formula.get_attribute("tabindex") == "0") == (width > 1)


def shown(page):
    return page.locator("#claims tr[data-paper]:visible").count()


def test_the_dashboard_filters_keeps_its_state_in_the_address_and_sorts_by_keyboard(
    chromium, built
):
    page = Visitor(chromium, built).open("index")
    assert shown(page) == 0
    page.select_option("[name=paper]", "arora2019")
    page.select_option("[name=kind]", "theorem")
    page.select_option("[name=verdict]", "holds")
    wanted = ("arora2019", "theorem", "holds")
    count = sum((e.claim.paper, e.claim.kind, e.verdict) == wanted for e in ENTRIES)
    assert shown(page) == count > 0
    assert page.locator("#filters output").inner_text() == f"{count} of {len(ENTRIES)} claims"
    page.reload()
    assert shown(page) == count
    page.click("text=Clear")
    page.fill("[name=text]", markup.plain(SAMPLE.claim.claim)[:20])
    page.wait_for_function("document.querySelector('#claims tbody tr[hidden]')")
    assert 1 <= shown(page) < len(ENTRIES)
    page.goto(page.url.partition("#")[0] + "#verdict=holds+in+part")
    assert shown(page) == sum(e.verdict == "holds in part" for e in ENTRIES) > 0
    page.get_by_role("button", name="Verdict").focus()
    order = sorted((e.verdict for e in ENTRIES), key=pages.WORDS.index)
    page.keyboard.press("Enter")
    assert page.locator("#claims td .verdict").all_inner_texts() == order
    page.keyboard.press("Enter")
    assert page.locator("#claims td .verdict").all_inner_texts() == order[::-1]
    page.goto(page.url.partition("#")[0] + f"#text={SAMPLE.claim.id}")
    page.locator("#claims tbody th a >> visible=true").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{SAMPLE.page()}.html")


def test_the_dashboard_is_folded_by_paper_and_a_few_screens_high(chromium, built):
    page = Visitor(chromium, built).open("index")
    assert page.evaluate("document.documentElement.scrollHeight") < 6000
    assert page.locator("#claims .group:visible").count() == len(PAPERS)
    heading = page.get_by_role("button", name="Arora et al. 2019")
    heading.press("Enter")
    own = [entry for entry in ENTRIES if entry.claim.paper == "arora2019"]
    assert shown(page) == len(own)
    assert page.locator("#claims tr[data-paper=arora2019]:visible").count() == len(own)
    assert heading.get_attribute("aria-expanded") == "true"
    heading.press("Enter")
    assert shown(page) == 0
    page.select_option("[name=kind]", "theorem")
    assert shown(page) > 0
    assert page.locator("#claims .group:visible").count() == 0


def found(visitor, words):
    """Titles and targets of the results of a search."""
    visitor.page.goto(f"file://{visitor.root}/search.html?q={quote(words)}")
    visitor.page.wait_for_selector("#search-results li a")
    visitor.page.wait_for_selector("#search-results .search-summary:has-text('found')")
    return visitor.page.eval_on_selector_all(
        "#search-results li a", "all => all.map((a) => [a.innerText, a.getAttribute('href')])"
    )


def test_a_search_names_paper_and_place_and_finds_figures_and_each_claim_once(chromium, built):
    visitor = Visitor(chromium, built)
    first = found(visitor, "Figure 2")
    papers = {"claims/allenzhu2019", "claims/arora2019", "claims/guo2024"}
    assert {address.partition("-")[0] for _, address in first[:4]} == papers
    assert all(re.search(r" 20\d\d, Figure 2\b", title) for title, _ in first[:4])
    claims = [address for _, address in first if address.startswith("claims/")]
    assert set(claims) <= {f"{entry.page()}.html" for entry in ENTRIES}
    assert len(claims) == len(set(claims))
    assert visitor.faults == []


def weight(chromium, root, name):
    """Bytes of the files that a page asks for when it is opened, without compression."""
    visitor, asked = Visitor(chromium, root), set()
    visitor.page.on("request", lambda request: asked.add(unquote(urlsplit(request.url).path)))
    visitor.open(name)
    visitor.page.wait_for_load_state("networkidle")
    assert visitor.faults == []
    return sum((root / path).stat().st_size for path in asked if path.startswith(str(root)))


def test_every_page_transfers_under_one_and_a_half_megabytes(chromium, built, soups):
    def heavy(name):
        pictures = [img["src"] for img in soups[name].select("img[src]:not([loading=lazy])")]
        own = [(built / name).parent / src for src in pictures if not src.startswith("data:")]
        return sum(path.stat().st_size for path in [built / name, *own])

    heaviest = sorted(soups, key=heavy)[-4:]
    for name in {*LOOKED_AT, *(name.removesuffix(".html") for name in heaviest)}:
        assert weight(chromium, built, name) < 1.5e6, name


def test_nothing_is_published_that_no_page_uses(built):
    static = built / "_static"
    assert not list(static.rglob("*.map"))
    assert [path.name for path in static.rglob("*.js") if path.stat().st_size > 250e3] == []
    assert sum(path.stat().st_size for path in static.rglob("*") if path.is_file()) < 4e6


@pytest.mark.parametrize("name", [SAMPLE.page(), "cost"])
def test_a_figure_opens_enlarged_on_its_page_and_closes_by_escape(chromium, built, name):
    visitor = Visitor(chromium, built)
    page = visitor.open(name)
    address, dialog = page.url, page.locator("#enlarged")
    assert not dialog.is_visible()
    for button in (page.locator("button.enlarge").first, page.locator("button.enlarge").last):
        button.press("Enter")
        assert dialog.is_visible()
        assert dialog.locator("img").bounding_box()["width"] > 1000
        assert dialog.locator("img").get_attribute("alt")
        assert Axe().run(page, options={"preload": False}).violations_count == 0
        page.keyboard.press("Escape")
        assert not dialog.is_visible()
        assert button.evaluate("button => button === document.activeElement")
    assert page.url == address
    assert visitor.faults == []


def test_an_erratum_says_what_is_printed_and_what_holds(chromium, built):
    page = Visitor(chromium, built).open(f"errata/{errata.papers()[0]}")
    heads = page.locator("#all-places thead tr").first.locator("th").all_inner_texts()
    assert heads[1:3] == ["printed", "what holds"]
    page.set_viewport_size({"width": 390, "height": 900})
    said = "all => all.slice(0, 4).map((cell) => getComputedStyle(cell, '::before').content)"
    labels = page.eval_on_selector_all("#all-places tbody td", said)
    assert labels[1:3] == ['"Printed: "', '"Holds: "']


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_a_verdict_has_the_colour_of_its_place_whatever_its_kind(chromium, built, mode):
    page = Visitor(chromium, built, mode=mode).open("index")
    ground = (
        "word => "
        "getComputedStyle(Object.assign(document.body.appendChild(document.createElement('span')), "
        "{className: `verdict ${word.replaceAll(' ', '-')}`})).backgroundColor"
    )
    places = [
        {page.evaluate(ground, word) for word in place}
        for place in zip(*rule.VERDICTS.values(), strict=True)
    ]
    assert [len(place) for place in places] == [1, 1, 1]
    assert len(set.union(*places, {page.evaluate(ground, rule.NOT_TESTED)})) == 4


def test_without_scripts_the_dashboard_is_a_plain_table_and_the_search_needs_no_server(
    chromium, built
):
    page = chromium.new_context(java_script_enabled=False).new_page()
    page.goto(f"file://{built}/index.html")
    assert shown(page) == len(ENTRIES)
    assert not page.locator("#filters").is_visible()
    visitor = Visitor(chromium, built)
    visitor.page.goto(f"file://{built}/search.html?q=Rademacher")
    visitor.page.wait_for_selector("#search-results li a")
    assert visitor.page.locator("#search-results li a[href*=claims]").count() > 0
    assert visitor.faults == []


def test_the_reference_has_every_module_of_the_library_and_its_public_names(soups):
    lib = ROOT / "lib"
    for place in pages.LIBRARY:
        name = place.rpartition("/")[2].removesuffix(".py")
        shown = {tag["id"] for tag in soups[f"reference/{name}.html"].select("[id*='.']")}
        files = [lib / place] if place.endswith(".py") else (lib / place).rglob("*.py")
        for file in [file for file in files if not file.stem.startswith("_")]:
            module = ".".join(file.relative_to(lib).with_suffix("").parts)
            public = re.findall(
                r"^(?:def|class) ([A-Za-z]\w*)", file.read_text(encoding="utf-8"), re.MULTILINE
            )
            assert {f"{module}.{name}" for name in public} <= shown, module
    text = soups["reference/bounds.html"].text
    assert "√(2 yᵀ H⁻¹ y / n), the complexity measure of the labels y." in text


START = notebook_parameters(NOTEBOOKS / "explore-bounds.ipynb")


def test_a_claim_leads_to_every_formula_that_it_imports(soups):
    """Names are read from the notebooks' texts, links from the pages."""
    for entry in ENTRIES:
        text = entry.best.path.read_text(encoding="utf-8")
        imported = re.findall(r"from overparam\.bounds\.(\w+) import ([\w, ]+)", text)
        names = [
            (module, name.split()[0]) for module, names in imported for name in names.split(",")
        ]
        wanted = {f"overparam.bounds.{module}.{name}" for module, name in names}
        links = soups[f"{entry.page()}.html"].select("a.reference[href*='reference/bounds.html#']")
        assert wanted <= {link["href"].partition("#")[2] for link in links}, entry.claim.id


def test_the_explorer_starts_with_the_numbers_of_the_notebook(soups):
    inputs = soups["explore-bounds.html"].select("#explorer input")
    assert {tag["name"]: tag["data-start"] for tag in inputs} == {
        name: str(value) for name, value in START.items()
    }
    assert all(float(tag["data-min"]) < float(tag["data-max"]) for tag in inputs)
    assert "ipywidgets" not in soups["explore-bounds.html"].text
    using = [name for name, soup in soups.items() if soup.select("script[src*='explore.js']")]
    assert using == ["explore-bounds.html"]


def test_the_explorer_has_the_formulas_of_the_library(chromium, built):
    """At random settings between the sliders' ends, every third number at an end."""
    page, draw = Visitor(chromium, built).open("explore-bounds"), random.Random(1)
    ends = page.eval_on_selector_all(
        "#explorer input", "all => all.map((i) => [i.name, {...i.dataset}])"
    )
    settings = [START]
    for _ in range(200):
        setting = {}
        for name, slider in ends:
            low, high = float(slider["min"]), float(slider["max"])
            place = draw.choice([low, high, *(draw.uniform(low, high) for _ in range(4))])
            setting[name] = 10**place if "log" in slider else place
        settings.append(setting)
    for setting, rows in zip(
        settings, page.evaluate("all => all.map(requirements)", settings), strict=True
    ):
        for row, wanted in zip(rows, map(dataclasses.asdict, requirements(**setting)), strict=True):
            assert (row.pop("theorem"), row.pop("net")) == (
                wanted.pop("theorem"),
                wanted.pop("net"),
            )
            assert row == pytest.approx(wanted, rel=1e-9, abs=1e-12, nan_ok=True), setting


def explored(page):
    """{name of a theorem: its numbers} in the explorer's table.

    And where its circles and their numbers stand.
    """
    rows = page.locator("#explorer tbody tr").all()
    table = {row.locator("th").text_content(): row.locator("td").all_inner_texts() for row in rows}
    return table, page.locator("#explorer svg[data-name]").evaluate_all(
        "all => all.map((svg) => svg.innerHTML)"
    )


def in_table(**changed):
    wanted = {}
    for row in requirements(**START | changed):
        numbers = [getattr(row, name) for name in ("width", "step", "steps", "share", "parameters")]
        shown = [
            "none" if number != number else f"{number:.1f}".replace("-", "−") for number in numbers
        ]
        wanted[row.theorem + row.net] = shown
    return wanted


@pytest.mark.parametrize(("width", "mode"), [(390, "dark"), (1440, "light")])
def test_the_explorer_moves_by_keyboard_goes_back_and_keeps_its_place_in_the_address(
    chromium, built, width, mode
):
    visitor = Visitor(chromium, built, width, mode)
    page = visitor.open("explore-bounds")
    first, circles = explored(page)
    assert first == in_table()
    slider = page.get_by_label("samples")
    assert slider.get_attribute("aria-valuetext") == f"{START['n']:,}"
    slider.focus()
    page.keyboard.press("End")
    assert slider.get_attribute("aria-valuetext") == "1,000,000"
    moved, moved_circles = explored(page)
    assert moved == in_table(n=10**6)
    assert all(before != after for before, after in zip(circles, moved_circles, strict=True))
    assert f">{moved['Noy et al. 2021, Theorem 1gated ReLU'][0]}</text>" in moved_circles[0]
    page.reload()
    assert explored(page) == (moved, moved_circles)
    for other in page.locator(
        "#explorer input"
    ).all():  # nothing leaves the picture, wherever the sliders are
        for key in ("End", "Home"):
            other.press(key)
            places = page.locator("#explorer circle").evaluate_all(
                "all => all.map((c) => c.getAttribute('cx'))"
            )
            assert len(places) == 2 * 3 * 5
            assert all(20 < float(place.removesuffix("%")) <= 92 for place in places)
            assert page.evaluate(WIDER) == 0
    page.get_by_role("button", name="Back to the start").click()
    page.wait_for_function("!location.hash")
    assert explored(page) == (first, circles)
    colours = "([name, of]) => getComputedStyle(document.querySelector(name))[of]"
    dot, ground = (
        page.evaluate(colours, x)
        for x in (["#explorer circle", "fill"], ["body", "backgroundColor"])
    )
    assert dot != ground
    assert visitor.faults == []


def test_the_explorers_sliders_stand_above_its_plots(chromium, built):
    page = Visitor(chromium, built).open("explore-bounds")
    last = page.locator("#explorer .sliders p").last.bounding_box()
    plot = page.locator("#explorer .panels figure").first.bounding_box()
    assert last["y"] + last["height"] <= plot["y"]
    first = page.locator("#explorer .sliders").bounding_box()["y"]
    assert plot["y"] - first < 450
    assert first < 900  # on the first screen


def test_without_scripts_the_explorer_says_so(chromium, built):
    page = chromium.new_context(java_script_enabled=False).new_page()
    page.goto(f"file://{built}/explore-bounds.html")
    assert not page.locator("#explorer").is_visible()
    assert page.get_by_text("The sliders need scripts").is_visible()
