"""What a statement of a text is, and when what is computed agrees with what is printed."""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

_REGISTERED = defaultdict(list)
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")


@dataclass(frozen=True)
class Statement:
    """place: section, equation or table; says: in our words; printed: a number with the digits printed, or words."""

    place: str
    says: str
    printed: str
    compute: Callable

    @property
    def number(self):
        """The printed number, or None for words."""
        return float(self.printed) if _NUMBER.fullmatch(self.printed) else None

    @property
    def half_unit(self):
        """Half a unit of the last digit printed."""
        return 0.5 * 10.0 ** Decimal(self.printed).as_tuple().exponent

    def agrees(self, computed):
        """A number rounds to the printed one; words, which say whether and how a relation holds, are the same."""
        if self.number is None:
            return computed == self.printed
        return bool(abs(computed - self.number) <= self.half_unit * (1 + 1e-9))

    def shown(self, computed):
        """The computed value with two digits more than the printed one has; in powers of ten far from 1."""
        if self.number is None:
            return str(computed)
        digits = max(0, 2 - Decimal(self.printed).as_tuple().exponent)
        ordinary = all(x == 0 or 1e-3 < abs(x) < 1e7 for x in (self.number, computed))
        return f"{computed:.{digits}f}" if ordinary else f"{computed:.4g}"


def statement(place, says, printed):
    """Register a function without arguments, or with `seed` for a Monte Carlo estimate, as a statement's recomputation.

    It returns a number where `printed` is one, otherwise words: "holds", "fails at x = 2", or a formula.
    """

    def register(compute):
        _REGISTERED[compute.__module__].append(Statement(place, says, printed, compute))
        return compute

    return register


def registered(module):
    """The statements of a module, in their order."""
    return tuple(_REGISTERED[module])
