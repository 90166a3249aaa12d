"""Texts that are data, as Markdown and MyST that show just them."""

import re

_SPECIAL = re.compile(r"([!-/:-@\[-`{-~])")  # ASCII punctuation, which a backslash makes literal in Markdown
_DIRECTIVE = re.compile(r"(`{3,}|~{3,})(?=[ \t]*\{)")


def plain(text):
    """A sentence without its Markdown, and with the names of LaTeX's symbols, for tables."""
    return re.sub(r"[$`\\]|\*\*", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text))


def literal(text):
    """Text as Markdown that shows just these characters, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def raw(html):
    """An HTML fragment as a MyST directive, in a fence longer than any in it: templates do not escape backticks."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", html)), default=0))
    return f"{fence}{{raw}} html\n{html}\n{fence}\n"


def inert(text):
    """Markdown in which directives, which could insert HTML or files, are shown as code."""
    return _DIRECTIVE.sub(r"\1text ", text)
