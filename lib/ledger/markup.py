"""Texts that are data, as plain text, and as Markdown, MyST and HTML that show just them."""

import html
import re

from markupsafe import Markup

_SPECIAL = re.compile(
    r"([!-/:-@\[-`{-~])"
)  # ASCII punctuation, which a backslash makes literal in Markdown
_DIRECTIVE = re.compile(r"(`{3,}|~{3,})(?=[ \t]*\{)")
_FORMULA = re.compile(r"\$([^$]+)\$")
_LATEX = {
    "le": "<=",
    "ge": ">=",
    "pm": "+-",
    "to": "->",
    "cdot": "*",
    "times": "x",
    "top": "T",
    "infty": "inf",
    "ell": "l",
    "varepsilon": "epsilon",
}
_LATEX |= {"lceil": "ceil(", "rceil": ")", "lfloor": "floor(", "rfloor": ")"}
_LATEX |= {"langle": "<", "rangle": ">", "dots": "...", "cdots": "..."}
_LATEX |= dict.fromkeys(("vert", "lvert", "rvert"), "|")
_LATEX |= dict.fromkeys(("Vert", "lVert", "rVert"), "||")
_UNSEEN = (
    "mathbb mathcal mathfrak mathrm mathbf boldsymbol text left right big bigl bigr operatorname "
    "bar hat tilde vec widehat widetilde"
)
_LATEX |= dict.fromkeys(_UNSEEN.split(), "")
_ARGUMENT = r"\s*(\{(?:[^{}]|\{[^{}]*\})*\}|\w|\\[a-zA-Z]+)"


def plain(text):
    r"""A sentence without its Markdown, formulas as a terminal can show them.

    <= for \le, 1/2 for \tfrac12.
    """
    return _unmarked(_FORMULA.sub(lambda found: _spelled(found[1]), text)).replace("$", "")


def _spelled(tex):
    tex = re.sub(
        rf"\\[dt]?frac{_ARGUMENT}{_ARGUMENT}",
        lambda found: f"{_atom(found[1])}/{_atom(found[2])}",
        tex,
    )
    tex = re.sub(rf"\\sqrt{_ARGUMENT}", lambda found: f" sqrt({found[1]})", tex)
    tex = re.sub(rf"\^{_ARGUMENT}", lambda found: f"^{_atom(found[1])}", tex)
    tex = re.sub(r"\\([a-zA-Z]+)", lambda found: f" {_LATEX.get(found[1], found[1])} ", tex)
    tex = re.sub(
        r"\s+", " ", re.sub(r"\\[,;! ]", " ", tex).translate(str.maketrans("", "", "{}\\"))
    )
    return re.sub(r"(?<=[(\[/^]) | (?=[()\],/^_])", "", tex).strip()


def _atom(tex):
    return tex if re.fullmatch(r"\{?\\?\w+\}?", tex) else f"({tex})"


def _unmarked(text):
    text = re.sub(r"[`\\]|\*\*", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text))
    return re.sub(r"(?<!\w)\*(\S[^*]*)\*(?!\w)", r"\1", text)  # emphasis


def typeset(text):
    """A sentence without its Markdown as HTML, its formulas for MathJax."""
    parts = _FORMULA.split(text)  # every second one a formula
    parts[::2] = [html.escape(_unmarked(words)) for words in parts[::2]]
    parts[1::2] = [
        f'<span class="math notranslate">\\({html.escape(tex)}\\)</span>' for tex in parts[1::2]
    ]
    return Markup("".join(parts))


def with_formulas(text):
    """Text on one line as Markdown that shows just these characters, except that formulas stay
    formulas.
    """
    parts = _FORMULA.split(" ".join(text.split()))
    parts[::2] = [_SPECIAL.sub(r"\\\1", words) for words in parts[::2]]
    parts[1::2] = [f"${tex}$" for tex in parts[1::2]]
    return "".join(parts)


def raw(html):
    """An HTML fragment as a MyST directive, in a fence longer than any in it.

    Templates do not escape backticks.
    """
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", html)), default=0))
    return f"{fence}{{raw}} html\n{html}\n{fence}\n"


def inert(text):
    """Markdown in which directives, which could insert HTML or files, are shown as code."""
    return _DIRECTIVE.sub(r"\1text ", text)
