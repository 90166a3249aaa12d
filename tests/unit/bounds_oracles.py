"""What the tests of a paper's formulas compare each formula with, and where they expect a refusal."""

import inspect

import mpmath as mp
import numpy as np
import pytest

from overparam.errors import ParameterError


def exact(expression, **values):
    with mp.workdps(40):
        return float(expression(**{name: mp.mpf(value) for name, value in values.items()}))


def assert_formula(function, expression, arguments, constants, defaults):
    """The function equals the expression at the constants and at their defaults, and takes them by name only."""
    value = exact(expression, **arguments, **constants)
    np.testing.assert_allclose(function(**arguments, **constants), value, rtol=1e-13)
    value = exact(expression, **arguments, **defaults)
    np.testing.assert_allclose(function(**arguments), value, rtol=1e-13)
    parameters = inspect.signature(function).parameters
    positional = [name for name in constants if parameters[name].kind is not inspect.Parameter.KEYWORD_ONLY]
    assert not positional, f"{positional} can be given by position"


def assert_refused(function, arguments, letter, bad):
    """The letter's bad value is refused, also as one entry of an array."""
    for value in (bad, np.array([arguments[letter], bad])):
        with pytest.raises(ParameterError, match=letter):
            function(**{**arguments, letter: value})
