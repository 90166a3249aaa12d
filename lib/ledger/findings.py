"""Findings: sentences registered with a claim, whose numbers are quoted from its record."""

import math
import re

import jinja2

from .errors import ClaimError

INTERVALS = "Numbers behind ± are 95 % intervals over the draws."
ROUNDING = 1e-12  # what rounding leaves of zero differs between machines


def spoken(value, digits=3):
    r"""A number as a sentence has it.

    >>> spoken(6932.1), spoken(1.24e-8), spoken(0.5)
    ('6,930', '$1.24\\cdot10^{-8}$', '0.5')
    """
    if value is None:
        return "not measured"
    if 0 < abs(value) < ROUNDING:
        return "0 up to rounding"
    text = rounded(value, digits)
    power = re.fullmatch(r"(-?[\d.]+)e([+-]\d+)", text)
    return f"${power[1]}\\cdot10^{{{int(power[2])}}}$" if power else text


def rounded(value, digits):
    """A number with so many significant digits: 1,230, but 1.23e+08."""
    text = f"{value:.{digits}g}"
    grouped = abs(value) < 1e7 and (abs(value) >= 1000 or "e+" in text)
    return f"{float(text):,.0f}" if grouped else text


def with_half_width(value, half, say=spoken):
    """A value with the half width of its interval, which says how many digits it has.

    say: the function of value and digits that says very small and very large ones.

    >>> with_half_width(-1.0003, 0.01712), with_half_width(1234.4, 45), with_half_width(0.1, 0)
    ('-1.000 ± 0.017', '1,234 ± 45', '0.1 ± 0')
    """
    if half < 1e-4 or abs(value) >= 1e7 or half >= 1e7:
        return f"{say(value, 3)} ± {say(half, 2)}"
    width = rounded(half, 2) if half >= 10 else f"{half:#.2g}"
    decimals = len(width.partition(".")[2])
    shown = f"{value:,.{decimals}f}"
    return f"{shown.removeprefix('-') if float(shown.replace(',', '')) == 0 else shown} ± {width}"


def measured(row):
    """What was measured, with the 95 % interval where there is a bounded one.

    2.87 ± 0.8, or 0.9 (0.81 to 0.95).
    """
    shown = spoken(row["value"])
    low, high = row.get("interval") or (None, None)
    if None in (row["value"], low, high) or low == high:
        return shown
    above, below = high - row["value"], row["value"] - low
    if math.isclose(above, below, rel_tol=1e-6, abs_tol=1e-300):
        return with_half_width(row["value"], above)
    return f"{shown} ({spoken(low)} to {spoken(high)})"


class Quotes:
    """What a text can quote of one claim's record, which lies in a folder with its tables."""

    def __init__(self, record, folder):
        self.record, self.folder = record, folder

    def row(self, name):
        """A check or a recorded number, with its value and interval."""
        rows = {row["name"]: row for row in self.record["checks"]} | self.record["metrics"]
        if name not in rows:
            raise LookupError(f"there is no check or number {name!r}")
        return rows[name]

    def value(self, name):
        """A check's or a recorded number's value with its interval, in words."""
        return measured(self.row(name))

    def column(self, table, column, how="mean", log10=False, **where):
        """A number from a kept table.

        `how` of a column over the rows in which other columns have the given values.

        log10: the column holds decimal logarithms.
        """
        rows = self.table(table)
        for name, wanted in where.items():
            if name not in rows:
                raise LookupError(f"the table {table!r} has no column {name!r}")
            rows = rows[rows[name] == wanted]
        if column not in rows or not len(rows):
            raise LookupError(f"the table {table!r} has no column {column!r} with {where}")
        number = float(rows[column].agg(how))
        return spoken(10**number if log10 else number)

    def table(self, name):
        """A kept table. Raises LookupError where there is none of this name."""
        import pandas as pd  # half of a second that most commands need not wait

        for file in self.folder.glob(f"{name}.csv*"):  # some are compressed
            return pd.read_csv(file)
        raise LookupError(f"there is no table {name!r}")


def finding(claim, record, folder):
    """A claim's finding as Markdown.

    A plain generated sentence where none was written for this record.

    Raises ClaimError where the finding quotes what is not there.
    """
    if claim.finding is None or claim.finding.of != f"{record['profile']}, {record['verdict']}":
        return generated(record)
    quotes = Quotes(record, folder)
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    try:
        filled = environment.from_string(claim.finding.text).render(
            value=quotes.value, column=quotes.column
        )
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        jinja2.TemplateError,
    ) as error:
        file, reason = claim.page.file, " ".join(str(error).split())
        raise ClaimError(
            f"{file.parent.name}/{file.name}, {claim.id}, finding.text: {reason}"
        ) from error
    told = " ".join(filled.split())
    return f"{told} {INTERVALS}" if "±" in told else told


def generated(record):
    """How many checks hold, as a sentence."""
    outcomes = [row["outcome"] for row in record["checks"]]
    held, undecided = outcomes.count("holds"), outcomes.count("undecided")
    if record["unmet"]:
        return f"Not tested: {'; '.join(record['unmet'])}."
    if not outcomes:
        return "No check is asked at this size."
    words = f"{held} of {len(outcomes)} check{'s' * (len(outcomes) > 1)} hold{'s' * (held == 1)}"
    if undecided:
        words += f", {undecided} {'are' if undecided > 1 else 'is'} undecided"
    return f"{words}."


def opening(text):
    """The first sentences of a finding, for a cell of a table.

    As many as it takes to fill 160 characters.
    """
    kept = ""
    for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z$])", text):
        if len(kept) < 160:
            kept = f"{kept} {sentence}".strip()
    return kept
