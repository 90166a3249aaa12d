"""Products of powers: the exponent of a function, and expressions of symbols as text."""

import math
from fractions import Fraction


def power(function, x, factor=2.0):
    """The exponent p of a function that goes like x^p, from its values at x and at `factor` times x."""
    return math.log(function(factor * x) / function(x)) / math.log(factor)


def monomial(expression, names):
    """A product of powers of sympy's symbols as text, "n^6 L^(-1)", in the order of `names`, without its constant.

    Symbols that are not named are left out. Raises ValueError for an expression that is no product of powers.
    """
    powers = _exponents(expression)
    return " ".join(_text(name, powers[name]) for name in names.split() if powers.get(name))


def solved(expression, symbol):
    """The value of a symbol at which a product of powers is 1, as an expression without it."""
    return expression.subs(symbol, 1) ** (-1 / _exponents(expression)[symbol.name])


def _text(name, p):
    if p == 1:
        return name
    return f"{name}^{p}" if p.denominator == 1 and p > 0 else f"{name}^({p})"


def _exponents(expression):
    """{name: Fraction} of a product of powers of symbols, from its values where one symbol is doubled."""
    symbols = sorted(expression.free_symbols, key=str)
    ones = dict.fromkeys(symbols, 1.0)
    base = float(expression.subs(ones))

    def doubled(some):
        return math.log2(float(expression.subs({**ones, **dict.fromkeys(some, 2.0)})) / base)

    powers = {s.name: Fraction(doubled([s])).limit_denominator(100) for s in symbols}
    if abs(doubled(symbols) - sum(powers.values())) > 1e-9:
        raise ValueError(f"{expression} is no product of powers")
    return powers
