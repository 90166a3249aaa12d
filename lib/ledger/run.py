"""One run of a notebook, as its kernel is told of it.

In one variable of the environment, as JSON.
"""

import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from overparam import settings
from overparam.errors import ParameterError

from . import paths

VARIABLE = "OVERPARAM_RUN"
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True)
class Run:
    """Where a run writes, and what it depends on.

    A notebook that somebody runs by hand has the defaults.

    figures: folder that the records go to; references: folder whose records they are compared with;
    finished: folder of finished trainings that later sittings use again; fingerprint: of all that
    the records depend on; sources, revision: the state of the sources, and the commit, when the run
    began.
    """

    figures: str = field(default_factory=lambda: str(paths.FIGURES))
    references: str = field(default_factory=lambda: str(paths.FIGURES))
    finished: str | None = None
    fingerprint: str | None = None
    sources: str | None = None
    revision: str | None = None

    def variables(self):
        """The environment of the kernel."""
        return {VARIABLE: json.dumps(asdict(self))}


def present():
    """The run of this process."""
    return Run(**json.loads(os.environ.get(VARIABLE) or "{}"))


def by_hand():
    """Whether somebody runs a notebook by hand: nobody has told this process of a run."""
    return not os.environ.get(VARIABLE)


def apply_environment():
    """Hand what the user's environment says to the library.

    Raises ParameterError for a value that is none.
    """
    given = os.environ.get
    data, memory = given("OVERPARAM_DATA"), given("OVERPARAM_MEMORY")
    settings.data_mirror = Path(os.path.abspath(data)) if data else None
    settings.memory_limit = _bytes(memory) if memory else None
    settings.checkpoint_seconds = _seconds(given("OVERPARAM_CHECKPOINT_SECONDS") or "30")
    settings.progress = given("OVERPARAM_PROGRESS") == "1"


def _bytes(text):
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not found or not float(found[1]):
        raise ParameterError(f"OVERPARAM_MEMORY must be a size such as 800M or 6G, not {text!r}")
    return int(float(found[1]) * UNITS[found[2].upper()])


def _seconds(text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise ParameterError(
            f"OVERPARAM_CHECKPOINT_SECONDS must be a number of seconds, not {text!r}"
        )
    return seconds
