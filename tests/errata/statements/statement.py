"""What a statement of a text is, how it is recomputed, and when that agrees with the print."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from ledger.errata import SEVERITIES

_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
_FACTOR = re.compile(r"([A-Za-z]\w*)(?:\^(\d+)|\^\((-?\d+(?:/\d+)?)\))?")
_GREEK = "alpha|beta|gamma|delta|varepsilon|eta|theta|kappa|lambda|sigma|tau|omega"
# letters that are at most 1
_SMALL = ["delta", "lam0", "kappa", "eps", "gamma", "tau", "theta", "omega", "beta", "sigma"]


@dataclass(frozen=True)
class Statement:
    """A line of a paper's table.

    place: section, equation or table; says: in our words; printed: a number with the digits
    printed, a product of powers such as "n^(5/2) delta^(-1)", or words; recomputed: a number, or a
    function without arguments, or with `seed` for a Monte Carlo estimate, that returns a number or
    words; severity, of what does not agree: that of the erratum at the same place in
    `notebooks/errata`.
    """

    place: str
    says: str
    printed: str
    recomputed: float | Callable
    severity: str = ""

    @property
    def number(self):
        """The printed number, or None for words."""
        return float(self.printed) if _NUMBER.fullmatch(self.printed) else None

    @property
    def drawn(self):
        """Whether it is a Monte Carlo estimate."""
        return callable(self.recomputed) and "seed" in inspect.signature(self.recomputed).parameters

    @property
    def how(self):
        """symbolic: exponents of powers; numeric: a number or a relation; by hand: other words."""
        if hasattr(self.recomputed, "formula"):
            return "symbolic"
        if self.number is not None or self.printed == "holds":
            return "numeric"
        return "by hand"

    def values(self, seeds):
        """What is recomputed: a value for each seed of a Monte Carlo estimate, otherwise one."""
        if self.drawn:
            return [self.recomputed(seed) for seed in seeds]
        return [self.recomputed() if callable(self.recomputed) else self.recomputed]

    def agrees(self, computed):
        """A number rounds to the printed one, a product has the same powers, words are the same."""
        if self.number is not None:
            half_unit = 0.5 * 10.0 ** Decimal(self.printed).as_tuple().exponent
            return bool(abs(computed - self.number) <= half_unit * (1 + 1e-9))
        if computed == self.printed:
            return True
        powers = exponents(computed)
        return powers is not None and powers == exponents(self.printed)

    def judged(self, computed):
        """`agrees`. Raises ValueError unless what does not agree, and only that, has a severity."""
        agrees = self.agrees(computed)
        if agrees and self.severity:
            wrong = "agrees, and has the"
        elif not agrees and self.severity not in SEVERITIES:
            wrong = f"is {computed} when recomputed, and has no known"
        else:
            return agrees
        statement = f"{self.place}: {self.says}: {self.printed}"
        raise ValueError(f"{statement} {wrong} severity {self.severity!r}")

    def shown(self, computed):
        """The computed value with two digits more than printed; in powers of ten far from 1."""
        if self.number is None:
            return str(computed)
        for value in (self.number, computed):
            if value != 0 and not 1e-3 < abs(value) < 1e7:
                return f"{computed:.4g}"
        digits = max(0, 2 - Decimal(self.printed).as_tuple().exponent)
        return f"{computed:.{digits}f}"


def exponents(text):
    """{letter: Fraction} of a product of powers such as "n^6 lam0^(-4) d"; None for other words."""
    powers = {}
    for word in text.split():
        factor = _FACTOR.fullmatch(word)
        if not factor:
            return None
        letter, whole, in_brackets = factor.groups()
        powers[letter] = Fraction(whole or in_brackets or 1)
    return powers


def typeset(text):
    r"""What is printed or computed in Markdown: words and numbers as they are, else a formula.

    >>> typeset("n^(5/2) logm^2 lam0^(-1)")
    '$n^{5/2}\\,\\log^{2} m\\,\\lambda_0^{-1}$'
    """
    if re.match(r"(holds|fails).*|-?[\d.]+(e-?\d+)?$|[A-Z]{2,}$", text):
        return text
    for short, full in (("lam0", "lambda_0"), ("eps", "varepsilon"), (" ", r"\,")):
        text = text.replace(short, full)
    text = re.sub(r"\^(?:\((.*?)\)|([\d.]+))", r"^{\1\2}", text)
    text = re.sub(r"\blog([mn])(\^{.*?})?", r"log\2 \1", text)
    return "$" + re.sub(rf"\b({_GREEK}|exp|log)(?![a-z])", r"\\\1", text) + "$"


def holds(relation, **axes):
    """A function that returns "holds", or "fails at" the first point of a grid without a relation.

    relation: a function of the axes, which broadcast, or of nothing; axes: {name: 1-d array}.
    """

    def judge():
        grid = np.meshgrid(*axes.values(), indexing="ij", sparse=True)
        ok, *grid = np.broadcast_arrays(relation(**dict(zip(axes, grid, strict=True))), *grid)
        if ok.all():
            return "holds"
        if not axes:
            return "fails"
        first = np.argmin(ok)
        point = [f"{name} = {axis.flat[first]:.3g}" for name, axis in zip(axes, grid, strict=True)]
        return "fails at " + ", ".join(point)

    return judge


def bounded(ratio, sequence, most=1.5):
    """A function that returns "holds" if the ratio of a quantity to its bound stops growing.

    ratio: a function of a sequence that runs to a limit, (k,) -> (k,); most: of the last value to
    the middle one.
    """

    def judge():
        values = np.asarray(ratio(sequence), dtype=float)
        middle, last = values[len(values) // 2], values[-1]
        return "holds" if last <= most * middle else f"fails: the ratio grows to {last:.2g}"

    return judge


def order(*formulas):
    """A function that returns the exponents of products of powers, such as "n^2 m^(-1/2)".

    formulas: functions of their letters, and of parameters with defaults; a logarithm has a letter
    of its own, `logm`, or stays away. What is returned raises ValueError where one is no product of
    powers.
    """

    def judge():
        return "; ".join(_product(formula) for formula in formulas)

    judge.formula = True
    return judge


def _product(formula):
    """The product of powers that a formula is, from two steps of each letter away from a point."""
    start = {}
    for letter, parameter in inspect.signature(formula).parameters.items():
        if parameter.default is parameter.empty:
            start[letter] = 2.0**-3 if letter in _SMALL else 2.0**6
    base = formula(**start)
    factors = []
    for letter, value in start.items():
        steps = [0.5, 0.25] if letter in _SMALL else [2.0, 4.0]
        ratios = [formula(**{**start, letter: value * step}) / base for step in steps]
        slopes = np.log(ratios) / np.log(steps)
        if not np.isclose(*slopes, rtol=0, atol=1e-9):
            raise ValueError(f"no power of {letter}: local exponents {slopes}")
        exponent = Fraction(float(slopes[0])).limit_denominator(100)
        if exponent == 1:
            factors.append(letter)
        elif exponent > 0 and exponent.denominator == 1:
            factors.append(f"{letter}^{exponent}")
        elif exponent != 0:
            factors.append(f"{letter}^({exponent})")
    return " ".join(factors) or "O(1)"


def power(formula, at, factor=2.0):
    """A function that returns p of a formula that goes like x^p, from `at` to `factor * at`."""
    return lambda: float(np.log(formula(factor * at) / formula(at)) / np.log(factor))


def solved(formula):
    """The x at which formula(x), a constant times a power of x, is 1."""
    one = formula(1.0)
    return one ** (-np.log(2) / np.log(formula(2.0) / one))
