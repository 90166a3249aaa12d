"""A changed number never ends in a traceback, and what a page says to try works.

OVERPARAM_CHANGES: how many single changes are drawn at random within the declared ranges;
OVERPARAM_CHANGES_SEED: which.
"""

import dataclasses
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import changes
from changes import BROKE, ENDED, REFUSED, SLOW, TOLD

PAGES = changes.pages()
TRIES = [(name, change) for name in sorted(PAGES) for change in changes.suggested(PAGES[name])]
GENERATOR = random.Random(int(os.environ.get("OVERPARAM_CHANGES_SEED", 0)))
COUNT = int(os.environ.get("OVERPARAM_CHANGES", 20))
NAMES = [GENERATOR.choice(sorted(PAGES)) for _ in range(COUNT)]
DRAWS = [(name, changes.drawn(PAGES[name], GENERATOR)) for name in NAMES]


def ids(cases):
    return [f"{name} {json.dumps(change)}" for name, change in cases]


@pytest.fixture(scope="module")
def ends():
    """ends(page, changes): how a run of it ends."""
    program = [sys.executable, changes.__file__]
    environment = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(program, env=environment, **pipes) as server:

        def answered(page, change):
            print(json.dumps([page, change]), file=server.stdin, flush=True)
            return json.loads(server.stdout.readline())

        yield answered
        server.stdin.close()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_every_page_says_what_to_try(name):
    assert changes.suggested(PAGES[name])


@pytest.mark.parametrize(("name", "change"), TRIES, ids=ids(TRIES))
def test_what_a_page_says_to_try_works(ends, name, change):
    how, why = ends(name, change)
    assert how in (ENDED, SLOW), why


@pytest.mark.parametrize(("name", "change"), DRAWS, ids=ids(DRAWS))
def test_a_changed_number_ends_with_a_verdict_or_a_sentence(ends, name, change):
    how, why = ends(name, change)
    assert how != BROKE, why
    assert not why.startswith("ClaimError"), why  # a fault of ours
    assert why.count("\n") <= 1  # two lines at most


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("{}['absent']", [BROKE, "KeyError: 'absent' (page, cell 0, 1)"]),
        ("import os\nos._exit(1)", [BROKE, "it died"]),
        (
            "from overparam.errors import TrainingDiverged\nraise TrainingDiverged('too fast')",
            [TOLD, "TrainingDiverged: too fast"],
        ),
        ("1", [ENDED, ""]),
    ],
)
def test_how_a_run_ends_is_seen(tmp_path, code, expected):
    notebook = {"cells": [{"cell_type": "code", "metadata": {}, "source": code}]}
    Path(tmp_path, "page.ipynb").write_text(json.dumps(notebook))
    page = dataclasses.replace(PAGES[min(PAGES)], notebook=Path(tmp_path, "page.ipynb"))
    assert [*changes.outcome(page, {})] == expected


def test_what_the_ranges_exclude_is_refused_before_a_run():
    how, why = changes.outcome(PAGES["guo2024-ext-even"], {"slopes": [-1.0, 0.5, "a"]})
    assert (how, why.partition(" must")[0]) == (REFUSED, "slopes[2]")
