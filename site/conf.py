"""Sphinx's settings. The sources beside this file are written by `overparam site`; nothing is
executed or fetched.
"""

import html
import re
from pathlib import Path

project = "overparam"
author = "The overparam authors"
language = "en"
extensions = ["myst_nb", "sphinx-mathjax-offline", "sphinx.ext.autodoc"]
exclude_patterns = ["extra"]
html_theme = "sphinx_book_theme"
html_title = "overparam"
templates_path = ["_templates"]
html_sidebars = {"**": ["brand.html", "search-button-field.html", "sbt-sidebar-nav.html"]}
html_static_path = ["static"]
html_favicon = "static/favicon.svg"
html_extra_path = ["extra"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_search_scorer = str(Path(__file__).parent / "scorer.js")
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = (
    False  # it would fetch every page found, which a browser refuses for files
)
html_show_copyright = False
html_theme_options = {
    "home_page_in_toc": True,
    "show_navbar_depth": 1,
    "show_toc_level": 1,
    "navbar_persistent": [],
    "collapse_navbar": True,  # a tree of all pages on every page would cost their square
    "max_navbar_depth": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
smartquotes = False  # y' H^-1 y is a formula

# safe: formulas of notebooks are data as well, and could be links to scripts
mathjax4_config = {
    "chtml": {"scale": 0.92},
    "tex": {"packages": {"[+]": ["ams", "boldsymbol"]}},
    "loader": {
        "load": [  # parts: the builds that have them all weigh twice as much
            "core",
            "input/tex-base",
            "[tex]/ams",
            "[tex]/boldsymbol",
            "output/chtml",
            "a11y/assistive-mml",
            "ui/safe",
        ]
    },
}
nb_execution_mode = "off"
nb_render_markdown_format = "myst"  # formulas of what a notebook says, too
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
about = (
    "Five theory papers on overparameterized neural networks, recomputed: claims, "
    "experiments, verdicts"
)
myst_html_meta = {"description": about}
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_disable_syntax = [
    "html_block",
    "html_inline",
]  # notebooks are data: what looks like HTML is shown as it is
myst_dmath_double_inline = True
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # a notebook's own levels
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False  # else torch speaks of its own forward
add_module_names = False
toc_object_entries_show_parents = "hide"


def setup(app):
    """The extension only copies MathJax at the end: pages may be read side by side, though it does
    not say so.
    """
    extension = app.extensions["sphinx-mathjax-offline"]
    extension.parallel_read_safe = extension.parallel_write_safe = True
    app.config.mathjax_path = "mathjax/startup.js"
    app.set_html_assets_policy(
        "always"
    )  # formulas in titles of neighbours and in tables are not found by Sphinx
    app.connect("html-page-context", escape_title, priority=900)  # after the theme's own
    app.connect("html-collect-pages", search_best_only)
    app.connect("autodoc-process-docstring", plain_text)


def escape_title(app, page, template, context, doctree):
    """The theme puts the title, as text, into the HTML of what is printed."""
    if "pagetitle" in context:
        context["pagetitle"] = html.escape(context["pagetitle"])


def search_best_only(app):
    """One result for a claim: its pages at other sizes, in no list of pages, are not searched."""
    others = [name for name, about in app.env.metadata.items() if "orphan" in about]
    indexer = app.builder.indexer
    indexer.prune(app.env.all_docs.keys() - set(others))
    for name in [name for name in indexer._all_titles if name.startswith("claims/")]:
        indexer._all_titles[name] = []  # headings would be results of their own
    return []


def plain_text(app, what, name, obj, options, lines):
    """Docstrings are plain text: only `code`, examples, indented parts and "argument: meaning" have
    a form.
    """
    given, lines[:], example = lines[:], [], False
    for line in given:
        before = lines[-1] if lines else ""
        example = line.strip().startswith(">>>") or (example and before.strip())
        indented = len(line) - len(line.lstrip()) != len(before) - len(before.lstrip())
        argument = re.match(r"\s*[A-Za-z]\w*(, \w+)*: ", line) and before.endswith((".", ";"))
        if line.strip() and before.strip() and not example and (indented or argument):
            lines.append("")
        lines.append(line if example else literal(line))
    lines.append("")


def literal(line):
    """A line as reStructuredText that shows just these characters; what stands in backticks is
    code.
    """
    pieces = re.split(r"`([^`\s][^`]*)`", line)
    pieces[::2] = [re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text) for text in pieces[::2]]
    pieces[1::2] = [f"\\ ``{code}``\\ " for code in pieces[1::2]]
    return "".join(pieces).removesuffix("\\ ").rstrip()
