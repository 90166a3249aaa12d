"""A new claim to be filled in: its notebook, registered check and sizes, which run as they are."""

import nbformat

from .. import paths
from ..errors import ParameterError
from ..record import checks
from . import runner
from .lab import METADATA

CHECKS = """
[{id}]
title = "TITLE: what is claimed, as a sentence"
source = "Theorem N, eq. (N)"
kind = "theorem"

[{id}.sizes]
smoke = "what runs in seconds"
laptop = "PLACEHOLDER: why these sizes"
paper = "PLACEHOLDER: the paper's own, or what forced others"

[[{id}.checks]]
name = "mean"
tag = "R"
wording = "PLACEHOLDER: mean of the draws"
relation = "in"
threshold = [-1.0, 1.0]
"""
SIZES = """
[{id}.ranges]
n = [2, 1000000]
device = ["cpu", "cuda"]

[{id}.laptop]
n_seeds = 5
n = 1000

[{id}.paper]
n_seeds = 10
n = 10000

[{id}.paper.resources]
gpu = 0
memory_mb = 1500
minutes = 1
"""
PREAMBLE = """# Checks of {paper}, registered before their first run. Never edit one that has been run: mark it
# `superseded_by` with a `reason` and add the corrected check beside it.
"""
PAPER = """# {paper}: TITLE OF THE PAPER

## What it claims

In a paragraph.

## What we find

{{{{ picture("{id}", "means", "What is drawn, for those who do not see it") }}}}

{{{{ link("{id}", "Theorem N") }}}}: {{{{ verdict("{id}") }}}}, the mean {{{{ value("{id}", "mean") }}}}.

## Citation

AUTHORS. *TITLE OF THE PAPER.* WHERE YEAR. arXiv NUMBER.
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

from overparam.record import plots
from overparam.record.claims import Claim

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
    """Write a claim's files, run its notebook at smoke size for the outputs that it stores, and return all paths.

    Raises ParameterError for an id that is none, or that is there already.
    """
    if not checks.ID.fullmatch(claim_id):
        raise ParameterError(f"{claim_id!r} is no id: a paper and words, such as du2019-thm31")
    notebook = paths.NOTEBOOKS / f"{claim_id}.ipynb"
    if claim_id in checks.registry() or notebook.exists():
        raise ParameterError(f"{claim_id} is there already")
    paper = claim_id.partition("-")[0]
    table, text = paths.CHECKS / f"{paper}.toml", paths.SITE / "papers" / f"{paper}.md"
    for file, content in ((table, PREAMBLE), (text, PAPER)):
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content.format(paper=paper, id=claim_id), encoding="utf-8")
    for file, content in ((table, CHECKS), (paths.PROFILES, SIZES)):
        with file.open("a", encoding="utf-8") as opened:
            opened.write(content.format(id=claim_id))
    cells = [_cell(i, *cell, claim_id) for i, cell in enumerate(CELLS)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=METADATA), notebook)
    checks.registry.cache_clear()
    runner.renew_outputs(claim_id)
    return [notebook, table, paths.PROFILES, text]


def _cell(i, kind, source, claim_id):
    make = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
    tags = {"tags": ["parameters"] if kind == "parameters" else []}
    return make(source.format(id=claim_id), metadata=tags, id=f"c{i:02}")
