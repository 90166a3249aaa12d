"""Takes from a built site what no page of it uses: scripts, styles, other builds of MathJax.

The theme brings an icon for everything, styles for everything, and on each page the index of the
search. A page would weigh 4 MB.
"""

import base64
import hashlib
import re
import shutil

import tinycss2

SEARCH = ("_static/searchtools.js", "_static/language_data.js", "searchindex.js")
ICONS = "_static/scripts/fontawesome.js"  # site.css has the few that are used
FORMULAS = "_static/mathjax/startup.js"
MATHJAX = (  # beside these, MathJax is there in many other builds
    "startup.js",
    "loader.js",
    "core.js",
    "input/tex-base.js",
    "input/tex/extensions/ams.js",
    "input/tex/extensions/boldsymbol.js",
    "output/chtml.js",
    "output/chtml/fonts/",
    "a11y/assistive-mml.js",
    "ui/safe.js",
)
UNUSED = ("locales", "images", "vendor", "scripts/fontawesome.js")
_SCRIPT = re.compile(r'\s*<script [^>]*\bsrc="(?:\.\./)*([^"?]+)(?:\?[^"]*)?"[^>]*></script>')
_NAME = re.compile(r"-?[A-Za-z_][\w-]*")
_CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
_COMMA = re.compile(r",(?![^(]*\))")  # between selectors, not within :is(...)
_FRAME = re.compile(r'<img src="data:image/webp;base64,([^"]+)"')  # of a slider
_PICTURE = re.compile(r"<img (?=[^>]*_images/)")


def lean(html):
    """Change the pages, scripts and styles below `html`, a folder that Sphinx has written."""
    names = set()
    for path in _pages(html):
        text = _without_scripts(path.read_text(encoding="utf-8"), path.name == "search.html")
        text = _PICTURE.sub('<img loading="lazy" ', text)  # those of cells, far below
        home = "../" * (len(path.relative_to(html).parts) - 1)
        text = _with_frames_as_files(text, html / "_images", home)
        path.write_text(text, encoding="utf-8")
        names |= set(re.findall(r"[\w-]+", " ".join(re.findall(r'class="([^"]*)"', text))))
    static = html / "_static"
    for name in UNUSED:
        path = static / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for path in [path for path in static.rglob("*") if path.is_file()]:
        if path.suffix == ".map" or _is_other_mathjax(path.relative_to(static).as_posix()):
            path.unlink()
    for path in [*static.glob("*.js"), *static.glob("scripts/*.js")]:
        names |= set(_NAME.findall(path.read_text(encoding="utf-8")))
    for path in static.rglob("*.css"):
        rules = tinycss2.parse_stylesheet(path.read_text(encoding="utf-8"), True, True)
        path.write_text(_used(rules, names), encoding="utf-8")


def _pages(html):
    folders = ("_static", "records")
    return [path for path in html.rglob("*.html") if path.relative_to(html).parts[0] not in folders]


def _with_frames_as_files(text, folder, home):
    """A slider's pictures are fetched when they are shown."""

    def in_file(found):
        content = base64.b64decode(found[1])
        name = f"{hashlib.sha256(content).hexdigest()}.webp"
        (folder / name).write_bytes(content)
        return f'<img loading="lazy" src="{home}{folder.name}/{name}"'

    return _FRAME.sub(in_file, text)


def _without_scripts(text, searches):
    unused = (ICONS, FORMULAS) if searches else (ICONS, *SEARCH)
    return _SCRIPT.sub(lambda found: "" if found[1] in unused else found[0], text)


def _is_other_mathjax(name):
    folder, _, inside = name.partition("/")
    return folder == "mathjax" and not inside.startswith(MATHJAX)


def _used(rules, names):
    """The rules of a style sheet that can meet an element with one of the classes `names`."""
    kept = []
    for rule in rules:
        if rule.type == "qualified-rule":
            selectors = _COMMA.split(tinycss2.serialize(rule.prelude))
            selectors = [one for one in selectors if names.issuperset(_classes(one))]
            if selectors:
                kept.append(f"{','.join(selectors)}{{{tinycss2.serialize(rule.content)}}}")
        elif rule.type == "at-rule" and rule.at_keyword in ("media", "supports"):
            inner = _used(tinycss2.parse_rule_list(rule.content, True, True), names)
            if inner:
                kept.append(f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{inner}}}")
        elif not (rule.type == "at-rule" and "fontawesome" in tinycss2.serialize([rule])):
            kept.append(rule.serialize())
    return "\n".join(kept)


def _classes(selector):
    """Classes without which a selector meets nothing; of those in :is(...) or :not(...) one may."""
    return _CLASS.findall(re.sub(r"\([^()]*\)", "", selector))
