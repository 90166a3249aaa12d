"""A paper's argument as a picture: its steps in boxes, with the verdict of each.

`site/papers/<paper>.toml` has the steps, from the first to the last. A step says one sentence, in
lines of at most 42 letters (88 across both columns). It stands in the left or the right column or
across `both`, and names the claims that test it. An arrow leads to it from the step before it in
its column. `^{...}` is raised.
"""

import html
import re
import tomllib

from . import paths, rule
from .errors import ClaimError

WIDTH, GAP, INDENT = 700, 28, 12  # of the picture, between boxes, of the text in a box
LINE, FONT = 19, 15
COLUMNS = {"left": (0, 336), "right": (364, 336), "both": (0, WIDTH)}  # left edge, width
RAISED = re.compile(r"\^\{(.*?)\}")
COLOURS = {}
for _words in rule.VERDICTS.values():
    COLOURS.update(zip(_words, ("#19703a", "#8a5a00", "#b42318"), strict=True))
_STYLE = f"font-family: system-ui, sans-serif; font-size: {FONT}px"


def steps(paper):
    """The steps of a paper's argument, as its file has them; an empty list where there is none.

    Raises ClaimError for a step in a place that is none of COLUMNS.
    """
    path = paths.SITE / "papers" / f"{paper}.toml"
    if not path.exists():
        return []
    found = tomllib.loads(path.read_text(encoding="utf-8"))["steps"]
    for step in found:
        if step["place"] not in COLUMNS:
            raise ClaimError(f"{path.name}: a step stands in one of {', '.join(COLUMNS)}")
    return found


def drawn(paper, verdicts, address=None):
    """The picture of a paper's argument, SVG.

    verdicts: {claim id: word}; address: claim id -> where its name leads to (default: no links).
    Raises ClaimError for a claim that is not among the verdicts.
    """
    bottom = dict.fromkeys(("left", "right"), 0)  # of the last box of each column
    boxes, arrows = [], []
    for step in steps(paper):
        columns = ("left", "right") if step["place"] == "both" else (step["place"],)
        above = max(bottom[column] for column in columns)
        top = above + GAP if above else 1
        box, height = _box(step, top, verdicts, address)
        boxes.append(box)
        for column in columns:
            if bottom[column]:
                arrows.append(_arrow(column, bottom[column], top))
            bottom[column] = top + height
    height = max(bottom.values()) + 1
    title = html.escape(f"The argument of the paper in {len(boxes)} steps, with verdicts")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'style="max-width: {WIDTH}px; width: 100%; height: auto">',
        f"<title>{title}</title>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="#555"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        *arrows,
        *boxes,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _box(step, top, verdicts, address):
    """A step's box, SVG, and its height."""
    left, width = COLUMNS[step["place"]]
    says = step["says"].strip().splitlines()
    rows = [_row(_raised(line), "#222", left, top, place) for place, line in enumerate(says)]
    for name, claim in step["claims"].items():
        if claim not in verdicts:
            raise ClaimError(f"the argument names {claim}, which is not a claim of this paper")
        verdict = verdicts[claim]
        words = html.escape(f"{name}: {verdict}")
        if address:
            words = f'<a href="{html.escape(address(claim))}">{words}</a>'
        rows.append(_row(words, COLOURS.get(verdict, "#555"), left, top, len(rows)))
    height = len(rows) * LINE + INDENT + 4
    frame = (
        f'<rect x="{left + 1}" y="{top}" width="{width - 2}" height="{height}" rx="6" '
        'fill="#f6f8fa" stroke="#8c959f"/>'
    )
    return "\n".join([frame, *rows]), height


def _raised(words):
    """Words as SVG, with superscripts.

    The letter without width takes the line down again: an empty span would not.
    """
    up = r'<tspan dy="-5" font-size="11">\1</tspan><tspan dy="5">&#8203;</tspan>'
    return RAISED.sub(up, html.escape(words))


def _row(words, colour, left, top, place):
    """One line of text in a box."""
    down = top + INDENT / 2 + (place + 0.8) * LINE
    return (
        f'<text x="{left + INDENT}" y="{down:.1f}" fill="{colour}" style="{_STYLE}">{words}</text>'
    )


def _arrow(column, start, end):
    """From a box down to the next one of its column."""
    left, width = COLUMNS[column]
    middle = left + width / 2
    return (
        f'<line x1="{middle}" y1="{start}" x2="{middle}" y2="{end}" stroke="#555" '
        'stroke-width="1.5" marker-end="url(#tip)"/>'
    )
