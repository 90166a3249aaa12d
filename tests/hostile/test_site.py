"""Texts with HTML, Markdown and MyST in them.

A page of the site shows their characters, and nothing of them acts.
"""

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ledger import markup
from ledger.site import pages

HTML = (
    '"\'></td></div><x-evil onclick="x">SEEN</x-evil><script>evil</script><img src="x:evil" '
    'onerror="evil">'
)
PIECES = [
    *"`~{}a \n\r\t<>*_#-1.[]()!\\&;:\0\u2028é",
    "`" * 10,
    "\n```",
    "~~~~",
    "{raw} html",
    "[^1]: ",
    "> ",
]
MARKS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@pytest.mark.parametrize(
    "template", ["{{ text }}", '<p title="{{ text }}">', "{{ text | typeset }}"]
)
def test_a_template_shows_the_characters_of_a_text(template):
    soup = BeautifulSoup(pages.environment().from_string(template).render(text=HTML), "html.parser")
    assert soup.select("x-evil, script, img, [onclick]") == []
    assert "SEEN" in str(soup)


def test_of_an_output_only_pictures_and_texts_are_shown():
    kinds = (
        "text/html",
        "image/svg+xml",
        "application/javascript",
        "text/latex",
        "text/plain",
        "image/png",
    )
    output = {"output_type": "display_data", "metadata": {}, "data": dict.fromkeys(kinds, HTML)}
    assert set(pages._shown(output)["data"]) == {"text/plain", "image/png"}


@given(text=MARKS)
def test_a_fragment_stays_in_its_fence(text):
    tokens = MarkdownIt().parse(markup.raw(f"<div>{text}</div>"))
    assert [(token.type, token.info) for token in tokens] == [("fence", "{raw} html")]


@given(text=MARKS)
def test_a_text_without_formulas_is_one_line_of_just_its_characters(text):
    (token,) = MarkdownIt().parseInline(markup.with_formulas(text))
    assert {child.type for child in token.children} <= {"text", "text_special"}
    assert "".join(child.content for child in token.children) == " ".join(text.split()).replace(
        "\0", "\ufffd"
    )


@given(text=MARKS)
def test_no_directive_is_left_in_a_notebooks_text(text):
    fences = [token for token in MarkdownIt().parse(markup.inert(text)) if token.type == "fence"]
    assert not any(token.info.strip().startswith("{") for token in fences)
