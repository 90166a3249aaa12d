"""HTML, scripts, Markdown, MyST and Jinja in whatever the site shows: a page holds them as text, and nothing acts."""

import json
import shutil

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from PIL import Image
from toy_claim import CLAIM, cells

from overparam import paths
from overparam.errors import RunFailed
from overparam.record import checks
from overparam.run import runner
from overparam.run.site import markup, pages
from overparam.run.site.build import build

HTML = '"\'></td></table></div><x-evil onclick="x">SEEN</x-evil><script>evil</script><img src="x:evil" onerror="evil">'
DIRECTIVES = (
    "\n\n```{raw} html\n<x-evil>\n```\n~~~~{raw} html\n<x-evil>\n~~~~\n"
    "- ~~~ {eval-rst}\n  .. raw:: html\n\n     <x-evil>\n\n"
    "[^1]: ```{raw} html\n<x-evil>\n\n```{include} ../conf.py\n```\n```{literalinclude} ../conf.py\n```\n"
)
FENCE = "``````````\n```{raw} html\n<x-evil>\n```\n"
LINKS = (
    "[x](javascript:evil) <javascript:evil> ![x](x:evil) {raw}`<x-evil>` $\\x$ {{ 7 * 7 }} {% raw %} \u202e ]]> <!--"
)
HOSTILE = HTML + DIRECTIVES + LINKS + HTML + "\n" + FENCE + HTML
ACTING = "x-evil, [onclick=x], [onerror], [href^='javascript:'], [href^='x:'], [src^='x:']"
PIECES = [*"`~{}a \n\r\t<>*_#-1.[]()!\\$&;:\0\u2028é", "`" * 10, "\n```", "~~~~", "{raw} html", "[^1]: ", "> "]
MARKS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@pytest.fixture
def site(toy, figures, monkeypatch, tmp_path):
    """A site of one claim of which every text is hostile."""
    text = json.dumps(HOSTILE)
    check = f'tag = "R", wording = {text}, relation = "<=", threshold = 1.0, superseded_by = {text}, reason = {text}'
    table = f"title = {text}\nsource = {text}\nkind = {text}\nsizes = {text}\nchecks = [{{name = {text}, {check}}}]\n"
    toy.write(registered=f"[{CLAIM}]\n{table}", profiles=f"[{CLAIM}.laptop]\nn = 6")
    notebook = hostile_notebook()
    toy.notebook.write_text(notebook)
    measured = {"profiles": ["laptop"], "value": 2.0, "holds": False, "applies": True, "added": HOSTILE}
    rows = [vars(check) | measured for check in checks.spec(CLAIM).checks]
    texts = ("claim", "title", "source", "kind", "profile", "device", "git", "fingerprint", "sizes", "reduced")
    record = dict.fromkeys(texts, HOSTILE) | {
        "verdict": "not reproduced", "checks": rows, "metrics": {HOSTILE: {"value": 1.0, "paper": 2.0}},
        "summary": [HOSTILE, HOSTILE], "tables": [HOSTILE],
        "parameters": {HOSTILE: HOSTILE}, "versions": {HOSTILE: HOSTILE}, "figures": ["a.png"], "series": [HOSTILE],
        "seeds": [HOSTILE], "data": [{"name": HOSTILE, "stand_in": HOSTILE}], "seconds": 1.0, "peak_bytes": 1,
    }  # fmt: skip
    folder = figures / "laptop" / CLAIM
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(record))
    (folder / "notebook.ipynb").write_text(notebook)
    Image.new("RGB", (8, 8)).save(folder / "a.png")
    (folder / "secret.png").symlink_to("/etc/hostname")
    own = shutil.copytree(paths.SITE, tmp_path / "texts", ignore=shutil.ignore_patterns("_build", "papers"))
    for name in ("index", "start", "findings", f"papers/{CLAIM.split('-')[0]}"):  # ours quote claims of ours
        (own / "papers").mkdir(exist_ok=True)
        (own / f"{name}.md").write_text("# A title\n\nA text.\n")
    monkeypatch.setattr(paths, "SITE", own)
    monkeypatch.setattr(pages, "LIBRARY", ())
    monkeypatch.setattr(runner, "damaged", lambda *_: [])
    monkeypatch.setattr(runner, "fingerprint", lambda *_: "")  # what it holds is no Python
    with pytest.raises(RunFailed, match="has faults"):  # Sphinx warns of links that lead nowhere
        build(tmp_path / "site", figures, jobs=1)
    return tmp_path / "site" / "new" / "html"


def hostile_notebook():
    """An executed notebook with hostile texts, outputs and settings."""
    notebook = json.loads(cells("x = 1", mystnb={"execution_mode": "force"}, myst={"disable_syntax": []}))
    data = {
        kind: HTML for kind in ("text/html", "text/markdown", "text/latex", "image/svg+xml", "application/javascript")
    }
    notebook["cells"][1] |= {"source": f"# {HOSTILE}\nopen('run', 'w')", "execution_count": 1, "outputs": [
        {"output_type": "display_data", "metadata": {}, "data": data | {"text/markdown": HOSTILE, "text/plain": HTML}},
        {"output_type": "stream", "name": "stdout", "text": HOSTILE},
    ]}  # fmt: skip
    own = {"cell_type": "markdown", "metadata": {}, "id": "m", "source": f"# Title\n\n{HOSTILE}"}
    metadata = {"format": "text/html", "raw_mimetype": "text/html"}
    raw = {"cell_type": "raw", "metadata": metadata, "id": "r", "source": HTML}
    last = own | {"id": "l", "source": f"**How far from the paper.** {HOSTILE}"}
    return json.dumps(notebook | {"cells": [own, *notebook["cells"], raw, last]})


def test_a_built_site_shows_hostile_texts_and_nothing_of_them_acts(site):
    shown = {"index.html", f"papers/{CLAIM.split('-')[0]}.html", f"claims/{CLAIM}.html"}
    for page in site.rglob("*.html"):
        soup = BeautifulSoup(page.read_text(), "html.parser")
        assert soup.select(ACTING) == [], page
        assert [script for script in soup.select("script") if "evil" in script.text] == [], page
        if str(page.relative_to(site)) in shown:
            shown.discard(str(page.relative_to(site)))
            assert '<x-evil onclick="x">SEEN</x-evil>' in soup.text
            assert "{{ 7 * 7 }}" in soup.text
            assert "mathjax4_config" not in soup.text
    assert shown == set()
    assert "ui/safe" in (site / "claims" / f"{CLAIM}.html").read_text()  # else a formula may be a link to a script
    assert not list(site.rglob("secret*"))
    assert not list(site.parent.rglob("run"))


@given(text=MARKS)
def test_a_fragment_stays_in_its_fence(text):
    tokens = MarkdownIt().parse(pages.raw(f"<div>{text}</div>"))
    assert [(token.type, token.info) for token in tokens] == [("fence", "{raw} html")]


@given(text=MARKS)
def test_literal_text_is_one_line_of_just_these_characters(text):
    (token,) = MarkdownIt().parseInline(markup.literal(text))
    assert {child.type for child in token.children} <= {"text", "text_special"}
    assert "".join(child.content for child in token.children) == " ".join(text.split()).replace("\0", "\ufffd")


@given(text=MARKS)
def test_no_directive_is_left_in_a_notebooks_text(text):
    fences = [token for token in MarkdownIt().parse(pages.inert(text)) if token.type == "fence"]
    assert not any(token.info.strip().startswith("{") for token in fences)
