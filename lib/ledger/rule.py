"""When a check holds, and which verdict follows from a claim's checks."""

import math
import operator
import re
from dataclasses import dataclass

SIZES = ("smoke", "laptop", "desk", "paper")  # by growing size
STATISTICS = ("mean", "median", "share")
VERDICTS = {  # by kind of claim: all checks hold; some do; none does and one fails
    "experiment": ("reproduced", "partly reproduced", "not reproduced"),
    "theorem": ("holds", "holds in part", "fails"),
    "ours": ("confirmed", "confirmed in part", "refuted"),
}
NOT_TESTED = "not tested"
_RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}
_REQUIREMENT = re.compile(r"(<=|>=|<|>|==) *(\S+)|in *\[ *(\S+?) *, *(\S+?) *\]")


@dataclass(frozen=True)
class Check:
    """One registered check.

    asks: a sentence that is true or false; holds: a relation and a threshold, "<= 0.1" or "in [1, 2]"; statistic: what
    is taken of a sample of one value per seed; paper: the value that the paper prints; sizes: where it is asked.
    Raises ValueError for a relation or statistic that there is not.
    """

    name: str
    asks: str
    holds: str
    statistic: str = "mean"
    paper: float | None = None
    sizes: tuple = SIZES

    def __post_init__(self):
        if not re.fullmatch(r"[\w-]+", self.name, re.ASCII):
            raise ValueError(f"a check is named in letters, digits, - and _, not {self.name!r}")
        requirement(self.holds)
        if self.statistic not in STATISTICS:
            raise ValueError(f"statistic = {self.statistic!r} is none of {', '.join(STATISTICS)}")
        if not all(size in SIZES for size in self.sizes):
            raise ValueError(f"sizes = {list(self.sizes)} are not among {', '.join(SIZES)}")

    def outcome(self, value, interval=None):
        """`holds`, `fails` or `undecided` of a value with its 95 % interval [low, high]; None: unbounded.

        The check holds where the whole interval satisfies it, and fails where no point of it does. A value that is
        no number fails.
        """
        if value is None or not math.isfinite(value):
            return "fails"
        low, high = interval or (value, value)
        low = -math.inf if low is None else low
        high = math.inf if high is None else high
        satisfied, thresholds = requirement(self.holds)
        inside = [threshold for threshold in thresholds if low <= threshold <= high]
        if satisfied(low) and satisfied(high):
            return "holds"
        return "undecided" if any(map(satisfied, [low, high, *inside])) else "fails"


def requirement(text):
    """(function that says whether a number satisfies it, its thresholds) of "<= 0.1" or "in [1, 2]".

    Raises ValueError for a text that is neither.

    >>> satisfied, thresholds = requirement(">= 20")
    >>> satisfied(21), thresholds
    (True, [20.0])
    """
    found = _REQUIREMENT.fullmatch(text.strip())
    try:
        thresholds = [float(number) for number in found.groups()[1:] if number] if found else []
    except ValueError:
        thresholds = []
    if not thresholds or not all(map(math.isfinite, thresholds)) or thresholds != sorted(thresholds):
        raise ValueError(f'holds = {text!r} is neither a relation and a number, such as "<= 0.1", nor "in [low, high]"')
    if found[1]:
        return (lambda value: _RELATIONS[found[1]](value, thresholds[0])), thresholds
    return (lambda value: thresholds[0] <= value <= thresholds[1]), thresholds


def verdict(kind, outcomes):
    """The verdict of a claim from the outcomes of its checks.

    >>> verdict("theorem", ["holds", "undecided"])
    'holds in part'
    """
    held, failed = outcomes.count("holds"), outcomes.count("fails")
    whole, part, none = VERDICTS[kind]
    if held + failed == 0:
        return NOT_TESTED
    if held == len(outcomes):
        return whole
    return part if held else none
