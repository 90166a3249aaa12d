"""Notebooks at smoke size with changed parameters: which changes, and how such runs end.

As a program it answers lines [page, {parameter: value}] with how each run ends, as JSON. A run is
a fork of that program, which has imported what the pages import.
"""

import contextlib
import importlib
import json
import os
import pkgutil
import re
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch

import overparam
from ledger import paths, records, registry
from ledger.parameters import notebook_parameters
from ledger.run import Run
from overparam.errors import OverparamError

SECONDS = 60  # a run that takes longer is ended: it has not broken
ENDED, SLOW, REFUSED, TOLD, BROKE = "ended", "slow", "refused", "told", "broke"
FIXED = ("profile", "device", "dtype")  # what no draw changes
ASSIGNMENT = re.compile(r"`(\w+) = ([^`]+)`")
ALTERNATIVES = re.compile(r"(?<=[.!?:])\s|\b[Oo]r\b|·")


def pages():
    """{id: Page} of all pages of claims."""
    return {claim.page.id: claim.page for claim in registry.registry().values()}


def suggested(page):
    """The changes that the line Try of a page suggests: [{parameter: value}]."""
    cells = json.loads(page.notebook.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    (line,) = [text.partition("**Try**")[2] for text in texts if "**Try**" in text]
    line = line.partition("**Next**")[0]
    found = [ASSIGNMENT.findall(text) for text in ALTERNATIVES.split(line)]
    return [{name: _literal(value) for name, value in pairs} for pairs in found if pairs]


def _literal(text):
    return text == "True" if text in ("True", "False") else json.loads(text)


def drawn(page, generator):
    """One parameter of a page with another value that its range allows: {parameter: value}."""
    literals = notebook_parameters(page.notebook)
    free = [
        name
        for name, value in literals.items()
        if name not in FIXED and (name in page.ranges or not _is_of_words(value))
    ]
    name = generator.choice(free)
    return {name: _near(literals[name], page.ranges.get(name), generator)}


def _is_of_words(value):
    return isinstance(value[0] if isinstance(value, list) else value, str)


def _near(value, allowed, generator):
    """A value like this one: a list of any length up to one more, a number of about the size."""
    if isinstance(value, list):
        length = generator.randint(1, len(value) + 1)
        return [_near(generator.choice(value), allowed, generator) for _ in range(length)]
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return generator.choice(allowed)
    low, high = allowed or (0, 10**9)
    factor = generator.choice([0, 0.25, 0.5, 0.9, 1, 1, 1.1, 2, 4])
    near = float(f"{min(max(value * factor, low), high):.3g}")
    return type(value)(near)


def outcome(page, changes):
    """How a run of a page with changed parameters ends.

    (ENDED, its verdict), (SLOW, ""), (REFUSED, why) before it began, (TOLD, what) where it ended
    with a sentence of ours, (BROKE, error and line).
    """
    try:
        parameters = records.plan(page.id, "smoke", changes)[1]
    except OverparamError as error:
        return REFUSED, str(error)
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            _become_run(page, parameters, Path(folder))
        if not _ends(child):
            return SLOW, ""
        told = Path(folder, "told")
        return tuple(json.loads(told.read_text())) if told.exists() else (BROKE, "it died")


def _become_run(page, parameters, folder):
    """Run the cells of a page in this process, write how that ends, and end."""
    paths.LOGS = folder / "logs"
    os.environ |= Run(figures=str(folder), references=str(folder)).variables()
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        try:
            _execute(page.notebook, parameters)
            found = sorted(folder.glob("**/result.json"))
            verdicts = [json.loads(file.read_text())["verdict"] for file in found]
            told = ENDED, ", ".join(verdicts)
        except OverparamError as error:
            told = TOLD, f"{type(error).__name__}: {error}"
        except BaseException as error:
            line = traceback.extract_tb(error.__traceback__)[-1]
            told = BROKE, f"{type(error).__name__}: {error} ({line.filename}, {line.lineno})"
    Path(folder, "told").write_text(json.dumps(told))
    os._exit(0)


def _execute(notebook, parameters):
    """All cells of a notebook, with these parameters in place of its own."""
    names = {"__name__": "__main__"}
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    for i, cell in enumerate(cells):
        if cell["cell_type"] == "code" and "parameters" in cell["metadata"].get("tags", []):
            names |= parameters
        elif cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{notebook.stem}, cell {i}", "exec"), names)


def _ends(child):
    """Whether a process ends in time; else it is killed."""
    deadline = time.monotonic() + SECONDS
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.05)
    return True


def serve():
    """Answer the lines of the standard input, until it ends."""
    for name in ("pandas", "scipy.stats", "seaborn", "ledger.claim"):
        importlib.import_module(name)
    for module in pkgutil.walk_packages(overparam.__path__, "overparam."):
        importlib.import_module(module.name)
    torch.set_num_threads(1)
    known = pages()
    for line in sys.stdin:
        name, changes = json.loads(line)
        print(json.dumps(outcome(known[name], changes)), flush=True)


if __name__ == "__main__":
    serve()
