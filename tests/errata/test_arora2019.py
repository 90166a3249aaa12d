"""Certificates of the errata of Arora et al. 2019."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq


def gram(x):
    """H^infinity of the paper's (3) for unit inputs, (n, d) -> (n, n)."""
    products = np.clip(x @ x.T, -1, 1)
    return products * (np.pi - np.arccos(products)) / (2 * np.pi)


def unit_inputs(n, d, seed=0):
    """Points of the unit sphere, (n, d)."""
    x = np.random.default_rng(seed).standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_sample_logarithm():
    """Would fail if (9) gave the printed number of samples up to a constant."""
    delta, complexity = 0.1, 4.0

    def excess(n, target):
        """The bound (9) less the target, with lambda_0 = 1/2, its largest value, and C = 1."""
        return math.sqrt(2 * complexity / n) + math.sqrt(math.log(2 * n / delta) / n) - target

    over_printed = []
    for target in (1e-2, 1e-8, 1e-32, 1e-128):
        samples = brentq(excess, 1, 1e5 / target**2, args=(target,), rtol=1e-12)
        over_printed.append(samples * target**2 / (complexity + math.log(1 / delta)))
    assert np.all(np.diff(over_printed) > 0)
    # the logarithms of the targets are in the ratios 1 : 4 : 16 : 64, and nothing levels off
    assert over_printed[-1] > 3 * over_printed[-2] > 6 * over_printed[-3]
    # the repair: one class, whose logarithm is that of 1/delta alone
    kept = (math.sqrt(2 * complexity) + math.sqrt(math.log(1 / delta))) ** 2
    assert kept < 4 * (complexity + math.log(1 / delta))


def test_missing_square():
    """Would fail if y'H^-1 y were bounded by a multiple of the nuclear norm, or by (13)'s root."""
    x = unit_inputs(8, 4)
    inverse = np.linalg.inv(gram(x))
    alpha = np.array([1.0, -0.5, 0.25, 0.25])
    nuclear = np.abs(alpha).sum()
    labels = x**2 @ alpha
    energy = labels @ inverse @ labels
    assert energy <= 36 * nuclear**2
    for c in (10.0, 1e3, 1e5):
        scaled = (c * labels) @ inverse @ (c * labels)
        assert scaled == pytest.approx(c**2 * energy)
        assert scaled / (c * nuclear) == pytest.approx(c * energy / nuclear)
    for b in (0.5, 1.5, 4.0):
        series = 3 * sum(2 * j * b ** (2 * j) / math.factorial(2 * j) for j in range(1, 60))
        assert series == pytest.approx(3 * b * math.sinh(b))
        beta = b * np.eye(4)[0]
        cosine = np.cos(x @ beta) - 1
        assert cosine @ inverse @ cosine <= series**2


def test_missing_square_with_small_labels():
    """Would fail if labels of at most 1 on the inputs made the order of Example 6.2 right."""
    over_norm = []
    for w in (0.1, 0.03, 0.01):
        angles = np.arange(np.pi / 6, 5 * np.pi / 6, w)
        circle = np.sqrt(1 - w**2) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        above = np.column_stack([np.full(len(angles), w), circle])
        x = np.concatenate([above, above * [-1, 1, 1]])
        labels = x[:, 0] * x[:, 2] / w
        assert np.abs(labels).max() <= 1
        energy = labels @ np.linalg.solve(gram(x), labels)
        over_norm.append(energy * w)  # the nuclear norm is 1/w
    assert over_norm[2] > 1.5 * over_norm[1] > 2 * over_norm[0]
