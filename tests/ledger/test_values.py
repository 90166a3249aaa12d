"""Intervals of samples against scipy's own and by Monte Carlo; rounding."""

import math

import numpy as np
import pytest
from scipy import stats

from ledger.errors import ClaimError
from ledger.values import measured, significant


@pytest.mark.parametrize("n", [2, 3, 10])
def test_the_mean_has_students_interval(n):
    sample = np.random.default_rng(n).normal(size=n)
    expected = stats.t.interval(0.95, n - 1, sample.mean(), stats.sem(sample))
    assert measured(sample) == pytest.approx((sample.mean(), *expected, n))


@pytest.mark.parametrize(("k", "n"), [(0, 5), (5, 5), (3, 8), (1, 30)])
def test_a_share_has_clopper_and_pearsons_interval(k, n):
    expected = stats.binomtest(k, n).proportion_ci(0.95, "exact")
    assert measured([True] * k + [False] * (n - k), "share") == pytest.approx((k / n, *expected, n))


@pytest.mark.parametrize("n", [5, 6, 9, 17, 40])
def test_the_median_has_the_interval_of_the_sign_test(n):
    """Exactly those medians are inside that a two-sided sign test does not reject at 5 %."""
    sample = np.arange(1.0, n + 1)
    _, low, high, _ = measured(sample, "median")
    for cut in np.arange(0.5, n + 1):
        assert (low < cut < high) == (stats.binomtest(int((sample < cut).sum()), n).pvalue > 0.05)


@pytest.mark.parametrize(
    ("statistic", "draw", "true"),
    [
        ("mean", lambda r: r.normal(2, 3, 5), 2),
        ("median", lambda r: r.exponential(1, 9), math.log(2)),
        ("share", lambda r: r.random(12) < 0.3, 0.3),
    ],
)
def test_intervals_cover_in_nineteen_of_twenty(statistic, draw, true):
    random, trials = np.random.default_rng(0), 4000
    inside = sum(
        low <= true <= high
        for _, low, high, _ in (measured(draw(random), statistic) for _ in range(trials))
    )
    assert inside / trials >= 0.94
    assert statistic != "mean" or inside / trials <= 0.96


def test_a_number_is_what_it_is_and_one_mean_is_unbounded():
    assert measured(np.float32(0.5)) == (0.5, 0.5, 0.5, None)
    assert measured([0.5]) == (0.5, -math.inf, math.inf, 1)
    assert math.isnan(measured([1.0, float("nan")])[0])
    with pytest.raises(ClaimError, match="truth values"):
        measured([0.5, 1.0], "share")


def test_rounding_agrees_with_python():
    x = np.random.default_rng(0).normal(size=200) * 10.0 ** np.random.default_rng(1).integers(
        -30, 30, 200
    )
    assert significant(x).astype(float) == pytest.approx([float(f"{v:.6g}") for v in x], rel=1e-7)
