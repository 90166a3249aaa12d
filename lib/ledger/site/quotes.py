"""Texts that take their numbers, pictures and links from the records."""

import re

import jinja2
from markupsafe import Markup

from overparam.errors import OverparamError

from .. import arguments, comparisons, errata, findings, paths, show
from ..markup import raw
from ..show import NOT_RUN
from . import costs
from .mistakes import OnSite

PAGES = ("start", "findings", "verdicts", "cost")  # beside the first one and those of the papers
_CARD = re.compile(r"^````\{container\} finding\n.*?^````$", re.MULTILINE | re.DOTALL)
_PICTURE = Markup(
    '<p><a class="picture" style="width: {wide}" href="{page}.html">'
    '<img width="{across}" height="{down}" src="{source}" alt="{alt}"></a></p>'
)


def page(name, quotes):
    """The text `site/<name>.md`, filled."""
    return fill(f"{name}.md", (paths.SITE / f"{name}.md").read_text(encoding="utf-8"), quotes)


def fill(where, text, quotes):
    """A text in which `{{ ... }}` calls the public methods of `quotes`.

    Raises OverparamError for anything else.
    """
    names = {name: getattr(quotes, name) for name in dir(quotes) if not name.startswith("_")}
    try:
        return jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(names)
    except (LookupError, TypeError, ValueError, AttributeError, jinja2.TemplateError) as error:
        raise OverparamError(f"{where} asks for what is not there: {error}") from error


class Quotes:
    """What a text can quote of the records in `entries`.

    Claims, checks, tables and figures by their names.

    home: leads from the text's page to the site's root.
    """

    def __init__(self, entries, home=""):
        self._entries, self._home = {entry.claim.id: entry for entry in entries}, home
        self._links = OnSite(entries)
        self.total = len(self._entries)

    def value(self, claim, name, size=None):
        """A check's or a recorded number's value with its interval, at the size that counts or at a
        named one.
        """
        row = self.measured(claim, name, size)
        return findings.measured(row) if row else NOT_RUN

    def measured(self, claim, name, size=None):
        """A check or number of a record; None where there is no such record."""
        entry = self._entries[claim]
        version = entry.versions.get(size) if size else entry.best
        if not (version and version.record):
            return None
        return findings.Quotes(version.record, version.folder).row(name)

    def statistic(self, claim, table, column, how=None, log10=False, **where):
        """Mean ± standard deviation of a column of a kept table, or what `how` names, over the rows
        with column=value.

        "last" stands for a column's largest value; log10: the column holds decimal logarithms.
        """
        best = self._entries[claim].best
        if not (best and best.record):
            return NOT_RUN
        rows = findings.Quotes(best.record, best.folder).table(table)
        for name, wanted in where.items():
            rows = rows[rows[name] == (rows[name].max() if wanted == "last" else wanted)]
        numbers = 10 ** rows[column] if log10 else rows[column]
        if numbers.empty:
            raise LookupError(f"the table {table!r} has no rows with {where}")
        if how:
            return findings.spoken(float(numbers.agg(how)))
        return f"{findings.spoken(numbers.mean())} ± {findings.spoken(numbers.std(), 2)}"

    def verdict(self, claim):
        return self._entries[claim].verdict

    def counts(self, paper):
        """How many claims of a paper there are of each kind, and with which verdicts."""
        own = [entry for entry in self._entries.values() if entry.claim.paper == paper]
        return show.counts([(entry.claim.kind, entry.verdict) for entry in own])

    def mistakes(self, *severities):
        """The number of mistakes that matter, in all papers; severities: only of these."""
        faults = [fault for paper in errata.papers() for fault in errata.load(paper).faults]
        grave = [fault for fault in faults if fault.grave]
        return sum(not severities or fault.severity in severities for fault in grave)

    def erratum(self, fault, words):
        """Words that lead to a mistake, named by paper and id as in `guo2024-even-net`."""
        paper, _, name = fault.partition("-")
        found = {known.id: known for known in errata.load(paper).faults}
        return self._links.fault(found[name], words)

    def exponents(self):
        """How time grows with the sizes, as a table."""
        return costs.exponents()

    def scans(self):
        """The pictures of how time and memory grow."""
        return costs.scans()

    def peers(self):
        """Our times against those of peers, as a table."""
        return costs.peers()

    def link(self, claim, words):
        """Words that lead to a claim's page."""
        entry = self._entries[claim]
        return f"[{words}](/{entry.page()})" if entry.best else words

    def argument(self, paper):
        """The picture of a paper's argument; its verdicts lead to the pages of their claims."""
        verdicts = {claim: entry.verdict for claim, entry in self._entries.items()}

        def address(claim):
            return f"{self._home}{self._entries[claim].page()}.html"

        return raw(arguments.drawn(paper, verdicts, address))

    def comparison(self, paper):
        """The picture of a paper's measurements side by side."""
        return raw(comparisons.drawn(paper, self.measured))

    def picture(self, claim, name, description, panel=None):
        """A figure that leads to its page; panel: which of its panels is shown alone, from 1."""
        entry, file = self._entries[claim], f"{name}.png"
        if not (entry.best and file in entry.best.files):
            return ""
        _, (left, upper, right, lower) = entry.best.picture(file, panel or 0)
        across, down = right - left, lower - upper
        wide = f"{12 * across / down:.4g}rem" if panel else f"{across // 2}px"
        box = {"across": across, "down": down, "wide": wide}
        folder = f"records/{entry.best.size}/{claim}"
        place = f"panels/{claim}/{name}-{panel}.png" if panel else f"{folder}/{file}"
        source = f"{self._home}{place}"
        return raw(
            _PICTURE.format(page=self._home + entry.page(), source=source, alt=description, **box)
        )

    def cards(self, count):
        """The first findings of the page that has them all."""
        found = _CARD.findall(page("findings", self))
        return "\n\n".join(["`````{container} findings", *found[:count], "`````"])
