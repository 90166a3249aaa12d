"""A paper's measurements side by side as a picture: ratios with their 95 % intervals.

The table `comparison` of `site/papers/<paper>.toml` says what is divided by what (`title`), what
lies on either side of equality (`less`, `more`), and names its `rows`: the words for a row, its
claim, a check or number of this claim's record, the paper's own value where it prints one, and
`size` where the record is not the one that counts. The axis is logarithmic.
"""

import html
import math
import tomllib

from . import findings, paths

WIDTH, PLOT, NUMBERS = 700, (240, 530), 545  # of the picture; the axis; where numbers begin
ROW, TOP, FONT = 24, 48, 14
BLUE, GREY = "#0b3c8c", "#555"
_TICKS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_DECADES = (0.001, 0.01, 0.1, 1, 10, 100)  # the ticks of an axis too long for all
_STYLE = f"font-family: system-ui, sans-serif; font-size: {FONT}px"


def comparison(paper):
    """What a paper's file says of its comparison; {} where it has none."""
    path = paths.SITE / "papers" / f"{paper}.toml"
    if not path.exists():
        return {}
    return tomllib.loads(path.read_text(encoding="utf-8")).get("comparison", {})


def drawn(paper, measured):
    """The picture of a paper's comparison, SVG.

    measured: (claim, name, size or None) -> a row of a record with its value and interval, or None
    where nothing was measured, which the picture says.
    """
    told = comparison(paper)
    rows = [(row, measured(row["claim"], row["value"], row.get("size"))) for row in told["rows"]]
    scale = _Scale([number for row, found in rows for number in _numbers(row, found)])
    bottom = TOP + ROW * len(rows)
    equal = scale(1)
    middle = (PLOT[0] + PLOT[1]) / 2
    signs = []
    if any(row.get("paper") for row in told["rows"]):
        signs.append("★ the paper")
    if any(_low(found) <= 0 for _, found in rows if found):
        signs.append("◂ reaches zero or below")
    meaning = f" ({', '.join(signs)})" if signs else ""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 44}" '
        f'style="max-width: {WIDTH}px; width: 100%; height: auto">',
        f"<title>{html.escape(told['title'])}</title>",
        f'<rect width="{WIDTH}" height="{bottom + 44}" fill="#fff"/>',
        _text(equal - 8, 18, f"← {told['less']}", "end"),
        _text(equal + 8, 18, f"{told['more']} →", "start"),
        _line(equal, 26, equal, bottom, "#222", "5 3"),
        _text(middle, bottom + 36, told["title"] + meaning, "middle"),
        _line(PLOT[0], bottom, PLOT[1], bottom, GREY),
    ]
    for tick in scale.ticks:
        lines.append(_line(scale(tick), bottom, scale(tick), bottom + 5, GREY))
        lines.append(_text(scale(tick), bottom + 18, f"{tick:g}", "middle"))
    for place, (row, found) in enumerate(rows):
        lines += _row(row, found, TOP + ROW * place, scale)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _row(row, found, down, scale):
    """Words, dot, interval, the paper's star and the number of a row."""
    parts = [_text(0, down + 5, row["name"], "start")]
    if row.get("paper"):
        parts.append(_text(scale(row["paper"]), down + 5, "★", "middle", "#8a5a00"))
    if found is None:
        return [*parts, _text(NUMBERS, down + 5, "not measured", "start", GREY)]
    low, high = found.get("interval") or (found["value"], found["value"])
    parts.append(_line(scale(low), down, scale(high), down, BLUE, width=2.5))
    if low <= 0:  # which a logarithmic axis does not have
        parts.append(_text(PLOT[0], down + 5, "◂", "middle", BLUE))
    parts.append(f'<circle cx="{scale(found["value"]):.1f}" cy="{down}" r="4.5" fill="{BLUE}"/>')
    return [*parts, _text(NUMBERS, down + 5, findings.measured(found), "start", BLUE)]


def _low(found):
    """The lower end of a measurement's interval; its value where it has none."""
    return (found.get("interval") or (found["value"],))[0]


def _numbers(row, found):
    """All of a row that must fit on the axis."""
    if found:
        yield found["value"]
        yield from found.get("interval") or ()
    if row.get("paper"):
        yield row["paper"]


class _Scale:
    """A logarithmic axis that reaches over all positive numbers, and over 1."""

    def __init__(self, numbers):
        positive = [1.0, *(number for number in numbers if number > 0)]
        self.low, self.high = math.log(min(positive) / 1.1), math.log(max(positive) * 1.1)
        ticks = _TICKS if self.high - self.low < math.log(200) else _DECADES
        self.ticks = [tick for tick in ticks if self.low <= math.log(tick) <= self.high]

    def __call__(self, number):
        """Where a number lies; one that is not positive lies at the left end."""
        part = (math.log(number) - self.low) / (self.high - self.low) if number > 0 else 0.0
        return PLOT[0] + max(part, 0.0) * (PLOT[1] - PLOT[0])


def _text(left, down, words, anchor, colour="#222"):
    return (
        f'<text x="{left:.1f}" y="{down:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'style="{_STYLE}">{html.escape(words)}</text>'
    )


def _line(left, top, right, bottom, colour, dashes="none", width=1):
    return (
        f'<line x1="{left:.1f}" y1="{top:.1f}" x2="{right:.1f}" y2="{bottom:.1f}" '
        f'stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}"/>'
    )
