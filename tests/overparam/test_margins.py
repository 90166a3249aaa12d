"""Margins against duality, brute force over supports, sums neuron by neuron.

And the closed form.
"""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import LinearConstraint, minimize, minimize_scalar

from overparam.data import load
from overparam.theory import margins


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def nearest_by_brute_force(points):
    """The least distance over all supports.

    The nearest point of the affine hull, where no weight is negative.
    """
    distances = []
    for size in range(1, len(points) + 1):
        for chosen in itertools.combinations(range(len(points)), size):
            rows = points[list(chosen)]
            system = np.block(
                [[rows @ rows.T, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]]
            )
            a = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0][:-1]
            if a.min() > -1e-12 and abs(a.sum() - 1) < 1e-9:
                distances.append(np.linalg.norm(a @ rows))
    return min(distances)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "p"), [(6, 3), (4, 9), (7, 7)])
def test_nearest_point_of_the_hull_is_that_of_all_supports(n, p, seed):
    points = draw(n, p, seed=seed) + 0.7
    distance, a = margins.nearest_in_hull(points)
    assert a.min() >= 0
    assert a.sum() == pytest.approx(1)
    assert distance == pytest.approx(np.linalg.norm(a @ points), rel=1e-12)
    assert distance == pytest.approx(nearest_by_brute_force(points), rel=1e-9, abs=1e-12)


def test_a_hull_around_the_origin_is_at_distance_zero():
    assert margins.nearest_in_hull(np.array([[1.0, 0], [-1, 1], [-1, -1]]))[0] == pytest.approx(
        0, abs=1e-15
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_point_is_the_direction_of_the_largest_margin(seed):
    x = draw(40, 5, seed=seed)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x = x[abs(x[:, 0]) > 0.2]
    y = np.sign(x[:, 0])
    margin, a = margins.nearest_in_hull(y[:, None] * x)
    w = a @ (y[:, None] * x)
    assert (y * (x @ w) / np.linalg.norm(w)).min() == pytest.approx(margin, rel=1e-9)
    assert margin >= (y * x[:, 0]).min()


@pytest.mark.parametrize("rank", [8, 3])
def test_smallest_form_is_that_of_a_general_solver(rank):
    half = draw(8, rank, seed=2) + 0.4
    Q = half @ half.T
    value, a = margins.smallest_form(Q)
    assert a.mean() == pytest.approx(1)
    assert a @ Q @ a == pytest.approx(value, rel=1e-7, abs=1e-10)
    constraints = [LinearConstraint(np.ones(8), 8, 8)]
    options = {"jac": lambda a: 2 * Q @ a, "bounds": [(0, None)] * 8, "constraints": constraints}
    general = minimize(
        lambda a: a @ Q @ a, np.ones(8), method="SLSQP", options={"ftol": 1e-14}, **options
    )
    assert value == pytest.approx(general.fun, rel=1e-5, abs=1e-7)
    assert (Q @ a).min() * 8 == pytest.approx(
        value, rel=1e-6, abs=1e-8
    )  # the gradient at a minimiser


def test_pattern_form_is_the_sum_neuron_by_neuron():
    x, patterns = torch.from_numpy(draw(5, 7)), torch.from_numpy(draw(5, 7, seed=1) > 0)
    y, a = torch.tensor([1.0, -1, -1, 1, 1], dtype=torch.float64), np.array([0.2, 0.9, 0, 1, 0.4])
    by_hand = sum(
        np.linalg.norm(
            sum(a[i] * y[i].item() * patterns[i, j].item() * x[i].numpy() for i in range(5)) / 5
        )
        ** 2
        for j in range(7)
    )
    assert a @ margins.pattern_form(x, y, patterns) @ a == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_feature_margin_of_two_inputs_is_its_dual(seed):
    """max_c min_i = min over convex weights of the mean of |sum_i a_i y_i features_i|."""
    features, y = np.abs(draw(2, 30, seed=seed)), np.array([1.0, -1])
    margin, c = margins.feature_margin(features, y)
    dual = minimize_scalar(
        lambda a: np.abs(np.array([a, a - 1]) @ features).mean(),
        bounds=(0, 1),
        options={"xatol": 1e-12},
    )
    assert margin == pytest.approx(dual.fun, rel=1e-6)
    assert abs(c).max() <= 1 + 1e-12
    assert (y * (features @ c)).min() / 30 == pytest.approx(margin)


def test_feature_margin_is_at_least_that_of_the_closed_form_s_own_weights():
    data, u = load("margin-sphere", n_train=60, n_test=0, d=5, rho=0.3, seed=0), draw(5, 400)
    features, y = np.maximum(data.x_train.numpy() @ u, 0), data.y_train.numpy()
    own = (y * (features @ np.sign(u[0]))).min() / 400
    margin, _ = margins.feature_margin(features, y)
    assert margin >= own
    assert own == pytest.approx(0.3 / np.sqrt(2 * np.pi), abs=0.05)
