"""Sphinx's settings. The sources beside this file are written by `overparam site`; nothing is executed or fetched."""

import html

project = "overparam"
author = "The overparam authors"
language = "en"
extensions = ["myst_nb", "sphinx-mathjax-offline"]
exclude_patterns = ["extra"]
html_theme = "sphinx_book_theme"
html_title = "overparam"
templates_path = ["_templates"]
html_sidebars = {"**": ["brand.html", "search-button-field.html", "sbt-sidebar-nav.html"]}
html_static_path = ["static"]
html_extra_path = ["extra"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it would fetch every page found, which a browser refuses for files
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
mathjax4_config = {"chtml": {"scale": 0.92}, "loader": {"load": ["ui/safe"]}}
nb_execution_mode = "off"
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None), ("html", "text/html", None)]
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_disable_syntax = ["html_block", "html_inline"]  # notebooks are data: what looks like HTML is shown as it is
myst_dmath_double_inline = True
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # a docstring's or notebook's own levels


def setup(app):
    """The extension only copies MathJax at the end: pages may be read side by side, though it does not say so."""
    extension = app.extensions["sphinx-mathjax-offline"]
    extension.parallel_read_safe = extension.parallel_write_safe = True
    app.connect("html-page-context", escape_title, priority=900)  # after the theme's own


def escape_title(app, page, template, context, doctree):
    """The theme puts the title, as text, into the HTML of what is printed."""
    if "pagetitle" in context:
        context["pagetitle"] = html.escape(context["pagetitle"])
