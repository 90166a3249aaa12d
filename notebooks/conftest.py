"""How nbval compares a page with its stored outputs.

Words to the letter, numbers to what another machine may move. Sums round differently
under other CPU kernels, and a training carries that into its second digit. So numbers
agree to a tenth, or to one in their last digit. The interval of two smoke draws moves
by more, and with it whether a check is decided; neither is compared: smoke size decides
nothing, and two runs on one machine are compared to the last bit.
"""

import atexit
import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from nbval.plugin import IPyNbCell

from ledger import paths, prepared, runner
from ledger.run import Run

NUMBER = re.compile(r"(?<![\w.])([-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?)")
NEGLIGIBLE = 1e-9
ROUNDING = re.compile(  # a power of ten from 10^-6 down: what rounding leaves
    r"\$[\d.]+\\cdot10\^\{-(?:[6-9]|\d\d+)\}\$"
)
VERDICT = re.compile(r"^\*\*(Verdict|Where measured):\*\*.*$", re.MULTILINE)
OUTCOME = re.compile(r"[^|\n]*\|$", re.MULTILINE)  # the last column of a table
PICTURE = re.compile(r'src="data:[^"]*"')  # of a slider; pictures are not compared
INTERVAL = re.compile(
    r" \([^()|]*\)(?= \|)"
)  # behind a measured value: both ends, or that there is none


def pytest_configure(config):
    """Kernels have nothing of the user's settings, as those of a run.

    They write to the folder that the user names, or aside.
    """
    named = os.environ.get("OVERPARAM_FIGURES")
    figures = paths.FIGURES if named else paths.LOGS / "nbval"
    os.environ.update(Run(figures=str(figures)).variables())
    place = Path(tempfile.mkdtemp(prefix="overparam-nbval-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    runner.isolate(place)
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        server = contextlib.ExitStack()  # not of a process that only hands out the work
        atexit.register(server.close)
        address = server.enter_context(prepared.server(place))
        runner.start_kernels_by(prepared.command(address), place)


class Output(str):
    """What a cell has shown; equal to what tells the same."""

    def __eq__(self, other):
        one, two = _parts(str(self)), _parts(str(other))
        alike = (
            _agree(a, b) if i % 2 else a == b
            for i, (a, b) in enumerate(zip(one, two, strict=False))
        )
        return len(one) == len(two) and all(alike)

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


def _parts(text):
    """Words and numbers in turn, without intervals and without what hangs on them."""
    text = ROUNDING.sub("0", PICTURE.sub("", text))
    if re.match(
        r"[\w-]+  \[smoke\]  [A-Z]", text
    ):  # a report for a terminal: its Markdown is compared
        return []
    if VERDICT.search(text):
        text = INTERVAL.sub("", OUTCOME.sub("", VERDICT.sub("", text)))
    text = re.sub(r" ± \S+", "", text)
    return NUMBER.split(re.sub(r"\brounding\b", "0", text))


def _agree(one, other):
    """Whether two printed numbers are equal to a tenth, or to one in a last digit."""
    (a, one_unit), (b, other_unit) = map(_value_and_unit, (one, other))
    return abs(a - b) <= max(
        0.1 * max(abs(a), abs(b)), 1.01 * one_unit, 1.01 * other_unit, NEGLIGIBLE
    )


def _value_and_unit(text):
    digits, _, power = text.replace(",", "").partition("e")
    value, decimals = float(digits), len(digits.partition(".")[2])
    scale = 10.0 ** int(power or 0)
    return value * scale, scale / 10**decimals


_sanitize = IPyNbCell.sanitize
IPyNbCell.sanitize = lambda cell, text: (
    Output(_sanitize(cell, text)) if isinstance(text, str) else text
)
