"""The numerics of the Gram matrix against high-precision arithmetic and cases with known answers."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from overparam.errors import ParameterError
from overparam.experiments.arora2019_numerics import (
    METHODS,
    complexity_by,
    float32_relu_gram,
    lemma_e1_eigenvalue,
    nearest_parallel,
    stable_relu_gram,
    turned,
)
from overparam.theory.kernels import relu_gram


@pytest.fixture
def x():
    generator = torch.Generator().manual_seed(0)
    return torch.nn.functional.normalize(torch.randn(12, 5, generator=generator, dtype=torch.float64), dim=1)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_solves_the_system(x, method):
    gram, y = relu_gram(x).numpy(), np.sign(np.random.default_rng(0).standard_normal((12, 3)))
    expected = np.sqrt(2 / 12 * np.diag(y.T @ np.linalg.inv(gram) @ y))
    np.testing.assert_allclose(complexity_by(method, y, gram), expected, rtol=1e-10)
    np.testing.assert_allclose(complexity_by(method, y, gram.astype("f")), expected, rtol=1e-3)


def test_a_singular_matrix_is_reported_and_not_hidden():
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert np.isnan(complexity_by("cholesky", np.ones((2, 1)), indefinite)).all()
    assert np.isnan(complexity_by("lu", np.array([[1.0], [-1.0]]), indefinite)).all()
    with pytest.raises(ParameterError, match="method"):
        complexity_by("guess", np.ones((2, 1)), indefinite)


def test_float32_loses_the_diagonal_by_arccos_only(x):
    exact = relu_gram(x).numpy()
    np.testing.assert_allclose(float32_relu_gram(x.numpy(), True), exact, atol=1e-6)
    assert np.abs(float32_relu_gram(x.numpy(), False) - exact).max() < 1e-3
    assert float32_relu_gram(x.numpy(), True).dtype == np.float32


def test_the_stable_gram_is_the_gram_and_keeps_what_arccos_loses(x):
    torch.testing.assert_close(stable_relu_gram(x), relu_gram(x), rtol=0, atol=1e-14)
    for distance in (1e-9, 1e-6, 1e-3):
        pair = torch.stack([x[0], turned(x[0], x[1], distance)])
        angle = 2 * math.asin(distance / 2)
        gap = 0.5 - stable_relu_gram(pair)[0, 1].item()
        expected = 0.5 - math.cos(angle) * (0.5 - angle / (2 * math.pi))
        assert gap == pytest.approx(expected, rel=1e-6, abs=2e-16)


def test_turned_is_a_unit_vector_at_the_distance(x):
    for distance in (1e-8, 1e-3, 1.0):
        other = turned(x[0], x[1], distance)
        assert other.norm().item() == pytest.approx(1, abs=1e-15)
        assert (other - x[0]).norm().item() == pytest.approx(distance, rel=1e-7)


def test_nearest_parallel_against_all_pairs(x):
    found = nearest_parallel(x)
    for i in range(len(x)):
        others = torch.cat([x[:i], x[i + 1 :]])
        apart = torch.minimum((x[i] - others).norm(dim=1), (x[i] + others).norm(dim=1))
        assert found[i].item() == pytest.approx(apart.min().item(), rel=1e-12)
    assert nearest_parallel(torch.cat([x, -x[3:4]]))[[3, 12]].tolist() == [0, 0]


def test_lemma_e1_on_a_pair_with_a_known_answer():
    a, b = np.diag([1.0, 0.0]), np.array([[2.0, 1.0], [1.0, 1.0]])  # B - A = 11', B^{-1} = [[1, -1], [-1, 2]]
    assert lemma_e1_eigenvalue(a, b) == pytest.approx(0, abs=1e-14)
    expected = minimize_scalar(lambda t: np.array([np.cos(t), np.sin(t)]) @ [[0, 1], [1, -2]] @ [np.cos(t), np.sin(t)])
    assert lemma_e1_eigenvalue(a, b, projected=False) == pytest.approx(expected.fun)
    assert lemma_e1_eigenvalue(2 * np.eye(3), np.eye(3)) == pytest.approx(-0.5)  # the order of the two is wrong
