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
_RELATIONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_REQUIREMENT = re.compile(rf"(<=|>=|<|>|==) *{_NUMBER}|in *\[ *{_NUMBER} *, *{_NUMBER} *\]")


@dataclass(frozen=True)
class Check:
    """One registered check.

    asks: a sentence that is true or false; holds: a relation and a threshold, "<= 0.1" or "in [1,
    2]"; statistic: what is taken of a sample of one value per seed; paper: the value that the paper
    prints; sizes: where it is asked.
    Raises ValueError for a relation or statistic that there is not.
    """

    name: str
    asks: str
    holds: str
    statistic: str = "mean"
    paper: int | float | None = None
    sizes: list | tuple = SIZES

    def __post_init__(self):
        if not re.fullmatch(r"[\w-]+", self.name, re.ASCII):
            raise ValueError(f"name = {self.name!r} has more than letters, digits, - and _")
        requirement(self.holds)
        if self.statistic not in STATISTICS:
            raise ValueError(f"statistic = {self.statistic!r} is none of {', '.join(STATISTICS)}")
        if not all(size in SIZES for size in self.sizes):
            raise ValueError(f"sizes = {self.sizes} are not among {', '.join(SIZES)}")

    def outcome(self, value, interval=None):
        """`holds`, `fails` or `undecided` of a value with its 95 % interval [low, high].

        None: unbounded.

        The check holds where the whole interval satisfies it, and fails where no point of it does.
        A value that is no number fails.
        """
        if value is None or not math.isfinite(value):
            return "fails"
        low, high = interval or (value, value)
        low = -math.inf if low is None else low
        high = math.inf if high is None else high
        satisfied, thresholds = requirement(self.holds)
        if satisfied(low) and satisfied(high):
            return "holds"
        inside = [threshold for threshold in thresholds if low <= threshold <= high]
        return "undecided" if any(map(satisfied, [low, high, *inside])) else "fails"


def requirement(text):
    """(function that says whether a number satisfies it, its thresholds) of "<= 0.1" or "in [1,
    2]".

    Raises ValueError for a text that is neither.

    >>> satisfied, thresholds = requirement(">= 20")
    >>> satisfied(21), thresholds
    (True, [20.0])
    """
    found = _REQUIREMENT.fullmatch(text)
    relation, *numbers = found.groups() if found else [None]
    thresholds = [float(number) for number in numbers if number]
    if not found or thresholds != sorted(thresholds):
        raise ValueError(
            f'holds = {text!r} is neither a relation and a number, such as "<= 0.1", nor "in '
            '[low, high]"'
        )
    if relation:
        return (lambda value: _RELATIONS[relation](value, thresholds[0])), thresholds
    return (lambda value: thresholds[0] <= value <= thresholds[1]), thresholds


def verdict(kind, outcomes):
    """The verdict of a claim from the outcomes of its checks.

    >>> verdict("theorem", ["holds", "undecided"])
    'holds in part'
    """
    whole, part, none = VERDICTS[kind]
    if "holds" in outcomes:
        return whole if set(outcomes) == {"holds"} else part
    return none if "fails" in outcomes else NOT_TESTED
