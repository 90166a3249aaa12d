"""The explorer's rows against the theorems' powers, worked out by hand in logarithms."""

import math

import numpy as np
import pytest

from overparam.bounds import requirements
from overparam.errors import ParameterError

SETTING = {
    "n": 1e3,
    "L": 5,
    "delta": 0.1,
    "eps": 0.01,
    "d": 20,
    "alpha": 0.0,
    "lam0": 0.01,
    "gamma": 0.1,
    "p": 0.05,
}


def rows(**changed):
    found = requirements.requirements(**{**SETTING, **changed})
    return dict(zip(("arora", "allenzhu", "frei", "noy", "guo"), found, strict=True))


def log_of_m_over_power(r, power):
    """log10 of m/ln(m)^power."""
    return r.width - power * math.log10(r.width * math.log(10))


def test_widths_have_the_powers_of_the_theorems():
    base, more, deep = rows(), rows(n=1e4), rows(L=50)
    assert more["arora"].width - base["arora"].width == pytest.approx(6)
    assert more["noy"].width - base["noy"].width == pytest.approx(2)
    assert deep["noy"].width - base["noy"].width == pytest.approx(1)
    assert log_of_m_over_power(more["allenzhu"], 5) - log_of_m_over_power(
        base["allenzhu"], 5
    ) == pytest.approx(24)
    assert log_of_m_over_power(deep["guo"], 4) - log_of_m_over_power(
        base["guo"], 4
    ) == pytest.approx(15)
    assert 0 <= deep["frei"].width - base["frei"].width < 0.1


def test_parameters_are_those_of_the_trained_layers():
    for name, r in rows().items():
        expected = r.width + math.log10(20) if name == "arora" else 2 * r.width + math.log10(5)
        assert r.parameters == pytest.approx(expected)


def test_the_steps_bring_the_loss_down():
    """(1 - share)^T loss = eps, from the rows themselves."""
    for name, loss in {"arora": 500, "guo": 1000}.items():
        r = rows()[name]
        assert 10**r.steps * np.log1p(-(10**r.share)) == pytest.approx(
            math.log(0.01 / loss), rel=1e-6
        )
    r = rows()["allenzhu"]  # whose initial loss is n log m
    log_m = r.width * math.log(10)
    assert 10 ** (r.steps + r.share) == pytest.approx(math.log(1000 * log_m / 0.01), rel=1e-6)


def test_the_slope_doubles_the_share_at_minus_one():
    shares = [10 ** rows(alpha=alpha)["guo"].share for alpha in (0.0, -1.0)]
    assert shares[1] / shares[0] == pytest.approx(2)
    assert rows(alpha=-1.0)["guo"].width < rows()["guo"].width


def test_the_sliders_ends_stay_finite():
    for changed in (
        {"n": 1e6, "L": 1e3, "delta": 1e-3},
        {"n": 10, "L": 1, "eps": 0.3},
        {"gamma": 0.01, "eps": 1e-6},
    ):
        for r in rows(**changed).values():
            assert all(math.isfinite(x) for x in (r.width, r.step, r.steps, r.parameters))


def test_an_impossible_setting_is_an_error():
    with pytest.raises(ParameterError, match="alpha"):
        rows(alpha=1.0)
