"""Freezing a paper: its checks and seeds are written down before the runs that judge them."""

import datetime
import json

from overparam.errors import ParameterError

from . import files, paths, registry
from .parameters import near


def freeze(paper):
    """Write `notebooks/<paper>/frozen.toml` with today's checks and seeds of all its claims.

    Return its path.

    Raises ParameterError for a paper without claims, and one that is frozen already: later changes
    belong into the `changes` of the claims concerned.
    """
    claims = [claim for claim in registry.registry().values() if claim.paper == paper]
    if not claims:
        known = {claim.paper for claim in registry.registry().values()}
        raise ParameterError(
            f"unknown paper {paper!r}; {near(paper, known) or ', '.join(sorted(known))}"
        )
    if then := registry.frozen(paper):
        raise ParameterError(
            f"{paper} was frozen on {then['date']}: enter a change in [[changes]] of its claim"
        )
    lines = [
        "# What was fixed before the runs that judge it. Changes since stand in the claims' own "
        "files.",
        "",
    ]
    lines.append(f"date = {datetime.date.today()}")
    for claim in claims:
        lines += ["", f"[{claim.slug}.seeds]"]
        lines += [
            f"{size} = {registry.parameters_at(claim.id, size)['seed']}"
            for size in claim.page.sizes
        ]
        lines += ["", f"[{claim.slug}.checks]"]
        lines += [
            f"{check.name} = {json.dumps(registry.as_frozen(check))}" for check in claim.checks
        ]
    path = paths.NOTEBOOKS / paper / registry.FROZEN
    files.write_atomically(path, ("\n".join(lines) + "\n").encode())
    return path
