"""A new claim to be filled in: its notebook and what is registered of it, which run as they are."""

import re
from pathlib import Path

from overparam.errors import ParameterError

from . import paths, registry

TEMPLATE = Path(__file__).with_name("template")  # .ipynb and .toml, of a claim PAPER-ID


def create(claim_id):
    """Write a claim's two files, and return their paths.

    Raises ParameterError for an id that is none, that is there already, or whose paper is new and
    has no year.
    """
    if not registry.ID.fullmatch(claim_id):
        raise ParameterError(f"{claim_id!r} is no id: a paper and words, such as du2019-thm31")
    paper, _, slug = claim_id.partition("-")
    known = {claim.paper for claim in registry.registry().values()}
    if paper not in known and not re.search(r"\d{4}$", paper):
        raise ParameterError(
            f"the paper {paper!r} has no year: its key is a name and a year, such as du2019"
        )
    files = [paths.NOTEBOOKS / paper / f"{slug}{suffix}" for suffix in (".ipynb", ".toml")]
    if claim_id in registry.registry() or any(file.exists() for file in files):
        raise ParameterError(f"{claim_id} is there already")
    files[0].parent.mkdir(exist_ok=True)
    for file in files:
        text = TEMPLATE.with_suffix(file.suffix).read_text(encoding="utf-8")
        file.write_text(text.replace("PAPER-ID", claim_id), encoding="utf-8")
    registry.registry.cache_clear()
    return files
