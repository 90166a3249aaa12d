"""The formulas of Arora et al.

2019 against simulation, explicit solves, series and the proofs' steps.
"""

import math

import mpmath as mp
import numpy as np
import pytest
import torch

from overparam.bounds import arora2019 as b
from overparam.errors import ParameterError


def unit_rows(n, d, seed):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def relu_gram(X):
    K = np.clip(X @ X.T, -1, 1)
    np.fill_diagonal(K, 1)
    return K * (np.pi - np.arccos(K)) / (2 * np.pi)


@pytest.fixture(scope="module")
def H():
    return relu_gram(unit_rows(30, 6, seed=0))


@pytest.fixture(scope="module")
def y():
    return np.random.default_rng(1).choice([-1.0, 1.0], size=30)


def test_lemC1_sums_the_steps_of_the_linear_rate():
    n, m, lam0, res0, eta = 20, 500, 0.2, 4.0, 0.5
    steps = eta * math.sqrt(n / m) * res0 * (1 - eta * lam0 / 4) ** np.arange(2000)
    assert b.lemC1_R(n, m, lam0, res0) == pytest.approx(steps.sum(), rel=1e-12)


def test_lem53_B_tends_to_the_leading_term():
    values = b.lem53_B(50.0, 100, np.array([1e40, 1e60, math.inf]), 1e-8, 0.05, 0.1)
    # the part that no width removes: nκ/(λ₀δ) = 100·1e-8/(0.05·0.1) = 2e-4
    assert values[1:] == pytest.approx(math.sqrt(50) + 2e-4, rel=1e-6)
    assert values[0] > 2 * values[1]


def test_lem54_terms_add_up_to_at_least_what_the_proof_has():
    arguments = {"B": 7.1, "R": 0.15, "m": 900, "n": 37, "kappa": 0.21, "delta": 0.07}
    lead, square, linear = b.lem54_rademacher(**arguments, terms=True)
    assert lead + square + linear == b.lem54_rademacher(**arguments)
    B, R, m, n, kappa, delta = arguments.values()
    hoeffding = math.sqrt(math.log(2 / delta) / (2 * m))
    frobenius = B / n * (math.sqrt(n / 2) + math.sqrt(n * hoeffding))
    assert lead == pytest.approx(frobenius, rel=1e-13)
    flips = 2 * R * math.sqrt(m) * (math.sqrt(2 / math.pi) * R / kappa + hoeffding)
    assert (
        0
        < square + linear - flips
        == pytest.approx((1 - math.sqrt(2 / math.pi)) * square, rel=1e-12)
    )


def test_lemC3_rms_is_the_rms_of_simulated_gram_matrices():
    X, m, draws = unit_rows(5, 3, seed=2), 4, 40_000
    W = np.random.default_rng(3).normal(size=(draws, m, 3))
    active = (W @ X.T >= 0).astype(float)
    K = X @ X.T
    gram = K * np.einsum("tri,trj->tij", active, active) / m
    squares = np.sum((gram - relu_gram(X)) ** 2, axis=(1, 2))
    error = 4 * squares.std() / math.sqrt(draws)
    assert error < 0.03 * squares.mean()
    assert b.lemC3_rms(K, m) ** 2 == pytest.approx(squares.mean(), abs=error)


@pytest.mark.parametrize("K", [[[1, 2], [2, 1]], [1.0, 0.5], [[1.0, 0.5]], [[math.nan]]])
def test_lemC3_rms_refuses_other_matrices(K):
    with pytest.raises(ParameterError, match="unit vectors"):
        b.lemC3_rms(K, 10)


def test_complexity_equals_eigenvalues_and_an_explicit_solve(H, y):
    lam, V = np.linalg.eigh(H)
    assert b.complexity(y, H) == pytest.approx(
        math.sqrt(2 / 30 * np.sum((V.T @ y) ** 2 / lam)), rel=1e-11
    )
    assert b.complexity(y, H) == pytest.approx(
        math.sqrt(2 / 30 * y @ np.linalg.solve(H, y)), rel=1e-11
    )


def test_tensors_are_accepted(H, y):
    leaf = torch.tensor(H, requires_grad=True)
    assert b.complexity(torch.tensor(y), leaf) == b.complexity(y, H)
    assert b.complexity(torch.tensor(y, dtype=torch.bfloat16), H) == b.complexity(y, H)
    assert b.thm31_eta(torch.tensor(4), 0.5) == 0.5 / 16


@pytest.mark.parametrize(
    ("labels", "matrix", "message"),
    [
        ([1, 1], [[1, 2], [2, 1]], "positive definite"),
        ([1, 1], [[1, 0], [0, math.nan]], "finite"),
        ([1, math.inf], [[1, 0], [0, 1]], "finite"),
        ([1, 1, 1], [[1, 0], [0, 1]], r"\(3,\) and \(2, 2\)"),
        (1.0, [[1]], r"\(\)"),
        (np.zeros(0), np.zeros((0, 0)), r"\(0,\)"),
    ],
)
def test_complexity_refuses(labels, matrix, message):
    with pytest.raises(ParameterError, match=message):
        b.complexity(labels, matrix)


def test_predicted_residual_equals_the_linear_recursion(H, y):
    lam, V = np.linalg.eigh(H)
    for eta in (0.9 / lam[-1], 1.7 / lam[-1]):
        u, residuals = np.zeros(30), []
        for _ in range(101):
            residuals.append(np.linalg.norm(y - u))
            u = u - eta * H @ (u - y)
        k = np.array([[0, 1, 2], [10, 50, 100]])
        predicted = b.predicted_residual(lam, (V.T @ y) ** 2, eta, k)
        assert predicted == pytest.approx(np.array(residuals)[k], rel=1e-10)
    assert predicted[0, 0] == pytest.approx(math.sqrt(30))


def test_predicted_residual_diverges_without_a_warning():
    # (1 − 3)² = 4 for λ = 3: 4^1000 overflows; the second direction has no weight, the third stands
    # still
    lam, eta = [3.0, 4.0, 0.0], 1.0
    assert b.predicted_residual(lam, [1.0, 0.0, 9.0], eta, 2) == pytest.approx(5)  # √(2⁴ + 3²)
    assert b.predicted_residual(lam, [1.0, 0.0, 9.0], eta, 1000) == math.inf
    assert b.predicted_residual(lam, [0.0, 0.0, 9.0], eta, [7, 1000]) == pytest.approx([3, 3])
    assert b.predicted_residual(lam, [0.0, 0.0, 0.0], eta, 7) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lam": [1.0]}, "lam and proj2"),
        ({"proj2": [1.0, -1.0]}, "proj2"),
        ({"k": -1}, "k must"),
        ({"eta": 0}, "eta"),
    ],
)
def test_predicted_residual_refuses(change, message):
    with pytest.raises(ParameterError, match=message):
        b.predicted_residual(
            **{"lam": [0.5, 0.1], "proj2": [1.0, 1.0], "eta": 0.1, "k": 3, **change}
        )


def test_thm61_sharp_constant_is_the_taylor_coefficient_of_the_kernel():
    with mp.workdps(40):
        taylor = mp.taylor(lambda t: t * (mp.pi - mp.acos(t)) / (2 * mp.pi), 0, 12)
    for p in (1, 2, 4, 6, 8, 10, 12):
        assert b.thm61_sharp_const(p) == pytest.approx(float(1 / mp.sqrt(taylor[p])), rel=1e-12)
    assert max(abs(taylor[p]) for p in (0, 3, 5, 7, 9, 11)) < 1e-30


@pytest.mark.parametrize("p", [1, 2, 4, 6])
def test_thm61_holds_on_data(p):
    X = unit_rows(60, 3, seed=5)
    beta, alpha = np.array([0.6, -1.1, 0.4]), -0.7
    y = alpha * (X @ beta) ** p
    value = math.sqrt(y @ np.linalg.solve(relu_gram(X), y))
    scale = abs(alpha) * np.linalg.norm(beta) ** p
    assert 0.1 * scale < value <= b.thm61_sharp_const(p) * scale
    assert (
        b.thm61_sharp_const(p) * scale
        < b.thm61_bound(p, alpha, beta)
        == pytest.approx(3 * p * scale)
    )


J = np.arange(1, 40)


@pytest.mark.parametrize(
    ("alphas", "betas", "ps", "value"),
    [
        ([1], [[0.3, 0.4]], [1], 1.5),  # βᵀx: 3‖β‖
        (
            [2, -5, 0.5],
            np.eye(3),
            [2, 2, 2],
            45,
        ),  # xᵀAx with eigenvalues 2, -5, 0.5: 6‖A‖_* = 6·7.5
        # cos(βᵀx) − 1: 3‖β‖ sinh ‖β‖
        (
            [(-1.0) ** j / math.factorial(2 * j) for j in J],
            [1.7] * 39,
            2 * J,
            3 * 1.7 * math.sinh(1.7),
        ),
        # z arctan(z/2), ‖β‖ = 1: Σ 2j 2^(1−2j)/(2j−1) = Σ 2^(1−2j) + Σ 2^(1−2j)/(2j−1) = 2/3 +
        # artanh ½
        (-((-0.25) ** J) * 2 / (2 * J - 1), [1.0] * 39, 2 * J, 2 + 3 * math.atanh(0.5)),
    ],
    ids=["linear", "quadratic", "cosine", "arctan"],
)
def test_cor62_examples(alphas, betas, ps, value):
    assert b.cor62_bound(alphas, betas, ps) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("alphas", "betas", "ps"), [([1], [1], [2, 4]), ([1, 1], [1], [2]), ([1], [1], [3])]
)
def test_cor62_refuses(alphas, betas, ps):
    with pytest.raises(ParameterError, match=r"equally long|even"):
        b.cor62_bound(alphas, betas, ps)
