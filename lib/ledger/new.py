"""A new claim to be filled in: its notebook and what is registered of it, which run as they are."""

import nbformat

from overparam.errors import ParameterError

from . import paths, registry, runner
from .lab import METADATA

REGISTERED = """# CONTRIBUTING.md explains the keys; `overparam show {id}` fills in the numbers of the finding.
title = "PLACEHOLDER: what is claimed, as a statement of at most 90 characters"
source = "Theorem N, eq. (N)"
kind = "theorem"  # or experiment, or ours
claim = "PLACEHOLDER: what the paper claims, in one sentence."
printed = "stands"  # typo, constant, exponent, gap, false: whether a theorem follows as printed

[checks.mean]
asks = "PLACEHOLDER: the mean of the draws lies between -1 and 1."
holds = "in [-1, 1]"

[ranges]
n = [2, 1000000]
device = ["cpu", "cuda"]

[sizes.laptop]
why = "PLACEHOLDER: why these sizes"
n_seeds = 5
n = 1000

[sizes.paper]
why = "PLACEHOLDER: the paper's own sizes, or what forced others"
n_seeds = 10
n = 10000
resources = {{ memory_mb = 1500, minutes = 1 }}
"""
CELLS = (
    ("markdown", """# TITLE: what is claimed, as a sentence

*AUTHORS YEAR, [Theorem N](https://arxiv.org/abs/NUMBER). What is computed here, and on what. Smoke 1 s, laptop 1 s.*

**Claim.** What the paper says, in its own letters.

**It would be refuted by** a measurement, named before it is made."""),
    ("parameters", """profile = "smoke"  # smoke, laptop or paper: which reference sizes these are
seed = 0  # first seed
n_seeds = 3  # draws; the paper: not said
n = 100  # numbers in a draw; the paper: not said
device = "cpu"  # the paper: not said"""),
    ("code", """import pandas as pd
import seaborn as sns
import torch

from ledger.claim import Claim
from overparam import plots

claim = Claim("{id}", globals())"""),
    ("markdown", "## What is measured"),
    ("code", """def draw(s):
    return torch.randn(n, generator=torch.Generator().manual_seed(s))


rows = [{{"seed": s, "mean": draw(s).mean().item()}} for s in claim.seeds]
runs = claim.keep(pd.DataFrame(rows))"""),
    ("code", """fig, axes = plots.figure()
sns.scatterplot(runs, x="seed", y="mean", ax=axes[0, 0])
claim.figure(fig, "means")"""),
    ("code", """claim.say(f"The largest mean of {{n}} numbers is {{runs['mean'].max():.2g}}.")"""),
    ("markdown", """## Verdict

What decides, and why that."""),
    ("code", """claim.check("mean", runs["mean"])
claim.report()"""),
    ("markdown", """## Paper and page side by side

| part | the paper | here | why |
|---|---|---|---|
| numbers | not said | `n` | time |"""),
)  # fmt: skip


def create(claim_id):
    """Write a claim's two files, run its notebook at smoke size for the outputs that it stores, and return their paths.

    Raises ParameterError for an id that is none, or that is there already.
    """
    if not registry.ID.fullmatch(claim_id):
        raise ParameterError(f"{claim_id!r} is no id: a paper and words, such as du2019-thm31")
    paper, _, slug = claim_id.partition("-")
    notebook = paths.NOTEBOOKS / paper / f"{slug}.ipynb"
    table = notebook.with_suffix(".toml")
    if claim_id in registry.registry() or notebook.exists() or table.exists():
        raise ParameterError(f"{claim_id} is there already")
    notebook.parent.mkdir(exist_ok=True)
    table.write_text(REGISTERED.format(id=claim_id), encoding="utf-8")
    cells = [_cell(i, *cell, claim_id) for i, cell in enumerate(CELLS)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=METADATA), notebook)
    registry.registry.cache_clear()
    runner.renew_outputs(claim_id)
    return [notebook, table]


def _cell(i, kind, source, claim_id):
    make = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
    tags = {"tags": ["parameters"] if kind == "parameters" else []}
    return make(source.format(id=claim_id), metadata=tags, id=f"c{i:02}")
