"""Freezing a paper: its checks and seeds are written down before the runs that judge them."""

import datetime
import json

from overparam.errors import ParameterError

from . import files, paths, registry
from .parameters import near

HEAD = "# What was fixed before the runs that judge it. Later changes stand in the claims' files.\n"


def freeze(paper, only=()):
    """Write today's checks and seeds of a paper's claims into `notebooks/<paper>/frozen.toml`.

    Return its path.

    only: the claims to freeze, as ids; all that are not frozen yet if there are none

    Raises ParameterError for a paper without claims, a claim of another paper, and where nothing is
    left to freeze: later changes belong into the `changes` of the claims concerned.
    """
    claims = [claim for claim in registry.registry().values() if claim.paper == paper]
    if not claims:
        known = {claim.paper for claim in registry.registry().values()}
        raise ParameterError(
            f"unknown paper {paper!r}; {near(paper, known) or ', '.join(sorted(known))}"
        )
    ids = [claim.id for claim in claims]
    if foreign := sorted({*only} - {*ids}):
        raise ParameterError(f"no claim of {paper}: {', '.join(foreign)}")
    then = registry.frozen(paper)
    chosen = [claim for claim in claims if not only or claim.id in only]
    new = [claim for claim in chosen if claim.slug not in then]
    if not new:
        dates = sorted({str(then[claim.slug]["date"]) for claim in chosen})
        raise ParameterError(
            f"frozen already, on {' and '.join(dates)}: enter a change in [[changes]] of its claim"
        )
    path = paths.NOTEBOOKS / paper / registry.FROZEN
    before = path.read_text(encoding="utf-8") if then else HEAD
    lines = [line for claim in new for line in _entry(claim)]
    files.write_atomically(path, (before + "\n".join(lines) + "\n").encode())
    return path


def _entry(claim):
    """The lines of a claim, after an empty one."""
    lines = ["", f"[{claim.slug}]", f"date = {datetime.date.today()}"]
    lines += ["", f"[{claim.slug}.seeds]"]
    lines += [
        f"{size} = {registry.parameters_at(claim.id, size)['seed']}" for size in claim.page.sizes
    ]
    lines += ["", f"[{claim.slug}.checks]"]
    lines += [f"{check.name} = {json.dumps(registry.as_frozen(check))}" for check in claim.checks]
    return lines
