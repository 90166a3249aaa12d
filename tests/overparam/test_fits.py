"""Slopes of a table: each agrees with `loglog_slope`, and with a fit by other means."""

import numpy as np
import pandas as pd
import pytest

from overparam.theory.fits import loglog_slope, slopes

EXPONENTS = {7: -0.5, 2: -1.0}  # of seeds that are not in order


@pytest.fixture
def table():
    """y = factor m^exponent, a factor for each kappa."""
    parts = []
    for seed, exponent in EXPONENTS.items():
        for kappa, factor in ((0.1, 3.0), (1.0, 50.0)):
            m = np.array([10, 40, 160]) * (1 + (kappa == 1))
            parts.append(pd.DataFrame({"m": m, "y": factor * m**exponent}))
            parts[-1][["seed", "kappa"]] = seed, kappa
    return pd.concat(parts, ignore_index=True)


def test_slopes_are_those_of_each_seed_in_the_order_of_the_seeds(table):
    found = slopes(table[table["kappa"] == 1], "m", "y")
    assert found.index.tolist() == [2, 7]
    assert found.tolist() == pytest.approx([-1.0, -0.5])


def test_slopes_by_several_columns_have_a_level_for_each(table):
    found = slopes(table, "m", "y", by=["seed", "kappa"]).unstack()
    assert found.columns.tolist() == [0.1, 1.0]
    assert found.loc[7].tolist() == pytest.approx([-0.5, -0.5])


def test_within_gives_intercepts_and_shares_the_slope(table):
    shared = slopes(table, "m", "y", within="kappa")
    assert shared[7] == pytest.approx(-0.5)
    assert slopes(table, "m", "y")[7] > -0.4  # one intercept for two levels


def test_a_noisy_slope_agrees_with_polyfit(table):
    draw = np.random.default_rng(0)
    noisy = table.assign(y=table["y"] * np.exp(draw.normal(size=len(table))))
    for seed, slope in slopes(noisy, "m", "y").items():
        part = noisy[noisy["seed"] == seed]
        expected = np.polyfit(np.log(part["m"]), np.log(part["y"]), 1)[0]
        assert slope == pytest.approx(expected)
        assert slope == loglog_slope(part["m"], part["y"])


def test_a_seed_without_a_slope_is_nan_and_the_others_stay(table):
    table.loc[(table["seed"] == 2) & (table["m"] == 10), "y"] = 0.0
    found = slopes(table, "m", "y", within="kappa")
    assert np.isnan(found[2])
    assert found[7] == pytest.approx(-0.5)


def test_points_that_are_not_finite_do_not_count(table):
    table.loc[table["m"] == 10, "y"] = np.nan
    assert slopes(table, "m", "y", within="kappa").tolist() == pytest.approx([-1.0, -0.5])
