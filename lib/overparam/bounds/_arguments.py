"""What the formulas do with their arguments: float64, each inside its letter's range.

A range is a pair of a condition on an array and the words that complete "n must be ...".
"""

import functools
import inspect

import numpy as np

from overparam.errors import ParameterError

AT_LEAST_0 = (lambda v: v >= 0, "at least 0")
AT_LEAST_1 = (lambda v: v >= 1, "at least 1")
POSITIVE = (lambda v: v > 0, "positive")
UP_TO_1 = (lambda v: (v > 0) & (v <= 1), "in (0, 1]")


def float64(value):
    """A number, array or tensor as float64: integers would overflow in powers such as n⁶."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().double().numpy()
    return np.asarray(value, dtype=np.float64)


def _within(name, value, allowed):
    holds, words = allowed
    try:
        x = float64(value)[()]
    except (TypeError, ValueError):
        raise ParameterError(
            f"{name} must be a number or an array of numbers, got {value!r}"
        ) from None
    if not np.all(holds(x)):
        raise ParameterError(f"{name} must be {words}, got {value}")
    return x


def checker(letters):
    """A decorator, `@checked` or `@checked(letter=range)`, that hands letters over as float64.

    letters: the ranges, by the space-separated letters that have them. An argument outside its
    range raises ParameterError; one of another name, and a default, passes unchanged.
    """
    ranges = {letter: allowed for group, allowed in letters.items() for letter in group.split()}

    def checked(function=None, /, **overrides):
        if function is None:
            return functools.partial(checked, **overrides)
        signature, own = inspect.signature(function), ranges | overrides

        @functools.wraps(function)
        def call(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            for name, value in bound.arguments.items():
                if name in own and value is not signature.parameters[name].default:
                    bound.arguments[name] = _within(name, value, own[name])
            return function(*bound.args, **bound.kwargs)

        return call

    return checked
