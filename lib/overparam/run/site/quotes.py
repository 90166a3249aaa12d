"""Hand-written pages that take their numbers, pictures and links from the records."""

import re

import jinja2
import pandas as pd
from PIL import Image

from ... import paths
from ...errors import OverparamError
from ...record import checks, render
from . import errata, pictures, records
from .markup import raw

PAGES = ("start", "findings", "verdicts")  # beside the first one and those of the papers
_FINDING = re.compile(r"^````\{container\} finding\n.*?^````$", re.MULTILINE | re.DOTALL)


def page(env, name, entries):
    """The page `site/<name>.md`, filled."""
    return fill(env, f"{name}.md", (paths.SITE / f"{name}.md").read_text(encoding="utf-8"), entries)


def fill(env, where, text, entries):
    """A text in which `{{ ... }}` calls the methods of `Quotes`. Raises OverparamError for anything else."""
    quotes = Quotes(env, where, entries)
    names = {name: getattr(quotes, name) for name in dir(quotes) if not name.startswith("_")}
    try:
        return env.overlay(autoescape=False).from_string(text).render(names)
    except (LookupError, TypeError, jinja2.TemplateError) as error:
        raise OverparamError(f"{where} asks for what is not there: {error}") from error


class Quotes:
    """What a page at `where` can say of the records; claims, checks, tables and figures by their names."""

    def __init__(self, env, where, entries):
        self._env, self._where = env, where
        self._entries = {entry.spec.id: entry for entry in entries}
        self.total = len(self._entries)

    def value(self, claim, check, profile=None):
        """What was measured, at the size that counts or at a named one."""
        entry = self._entries[claim]
        version = entry.versions.get(profile) if profile else entry.best
        rows = version.record["checks"] if version and version.record else []
        measured = {row.name: records.UNRUN for row in entry.spec.checks}
        shown = (measured | {row["name"]: render.measured(row) for row in rows})[check]
        if not shown:
            raise LookupError(f"{check} of {claim}, which is not measured, or rounding")
        return shown

    def statistic(self, claim, table, column, how=None, log10=False, **wanted):
        """Mean ± standard deviation of a column of a kept table, or what `how` names; of the rows with column=value.

        log10: the column holds decimal logarithms.
        """
        best = self._entries[claim].best
        if not (best and best.record):
            return records.UNRUN
        found = [name for name in best.files if re.fullmatch(rf"{table}\.csv(\.xz)?", name)]
        rows = pd.read_csv(best.folder / found[0])
        for name, here in wanted.items():
            rows = rows[rows[name] == (rows[name].max() if here == "last" else here)]
        numbers = 10 ** rows[column] if log10 else rows[column]
        shown = f"{numbers.agg(how):.3g}" if how else f"{numbers.mean():.3g} ± {numbers.std():.2g}"
        return re.sub(r"([\d.]+)e\+?(-?)0*(\d+)", r"$\1\\cdot10^{\2\3}$", shown)

    def verdict(self, claim):
        return self._entries[claim].verdict

    def counts(self, paper):
        """How many claims of a paper have which verdict."""
        own = [entry.verdict for entry in self._entries.values() if entry.spec.paper == paper]
        words = [f"{own.count(word)} {word}" for word in (*checks.VERDICTS, records.UNRUN) if word in own]
        return f"{len(own)} claim{'s' * (len(own) > 1)}: {', '.join(words)}"

    def deciding(self, late=False):
        """The number of checks that decide today; late: of those that were decided after an earlier result."""
        active = [c for entry in self._entries.values() for c in entry.spec.checks if c.tag in "RNC"]
        return sum(not c.superseded_by and (bool(c.added) or not late) for c in active)

    def errata(self, severity):
        """The number of rows of a severity, in all papers."""
        return len(errata.rows(dict.fromkeys(entry.spec.paper for entry in self._entries.values()), severity))

    def link(self, claim, words):
        """Words that lead to a claim's page."""
        found = self._entries[claim].page()
        return f"[{words}](/{found})" if found else words

    def picture(self, claim, name, description, panel=None):
        """A figure that leads to its page; panel: which of its first row is shown alone, from 1."""
        entry, box, size, width = self._entries[claim], None, None, None
        if entry.best and f"{name}.png" in entry.best.files:
            width = pictures.width(entry.best.folder / f"{name}.png")
            with Image.open(entry.best.folder / f"{name}.png") as opened:
                box, size = panel and pictures.panel(opened, panel - 1), opened.size
        context = {"entry": entry, "name": name, "alt": description, "box": box, "size": size, "width": width}
        home = "../" * self._where.count("/")
        return raw(self._env.get_template("picture.html").render(context, home=home))

    def cards(self, count):
        """The first findings."""
        found = _FINDING.findall(page(self._env, "findings", self._entries.values()))
        return "\n\n".join(["`````{container} findings", *found[:count], "`````"])
