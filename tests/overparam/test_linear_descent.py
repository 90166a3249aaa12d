"""Predictions by tangent kernels against loops of matrix products."""

import pytest
import torch

from overparam.errors import ParameterError
from overparam.theory import linear_descent


def inputs(n=5, p=4, seed=0):
    x = torch.randn(n, p, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def problem(n=6, seed=1):
    x, generator = inputs(n + 2, 5, seed), torch.Generator().manual_seed(seed)
    gram = x @ x.T + torch.eye(n + 2, dtype=torch.float64)
    residual = torch.randn(3, n, generator=generator, dtype=torch.float64)
    return gram[:n, :n], gram[n:, :n], residual


def test_the_prediction_is_that_of_a_loop():
    gram, cross, residual = problem()
    eta = 1.9 / torch.linalg.eigvalsh(gram)[-1]
    r, change, losses = residual.clone(), torch.zeros(3, 2, dtype=torch.float64), []
    for _ in range(8):
        losses.append(r.square().sum(1) / 2)
        last, change = change, change + eta * r @ cross.T
        r = r - eta * r @ gram
    torch.testing.assert_close(
        linear_descent.predicted_loss(gram, residual, eta, 7), torch.stack(losses, 1)
    )
    torch.testing.assert_close(linear_descent.predicted_change(gram, cross, residual, eta, 7), last)


def test_a_residual_of_another_precision_is_taken_in_that_of_the_kernel():
    gram, cross, residual = problem()
    for predicted in (
        lambda r: linear_descent.predicted_loss(gram, r, 0.1, 7),
        lambda r: linear_descent.predicted_change(gram, cross.to(r), r, 0.1, 7),
    ):
        found = predicted(residual.float())
        assert found.dtype == torch.float64
        torch.testing.assert_close(found, predicted(residual), rtol=1e-5, atol=1e-6)


def test_a_residual_that_does_not_fit_is_refused():
    gram, cross, residual = problem()
    with pytest.raises(ParameterError, match=r"\(6, 1\) for gram of shape \(6, 6\)"):
        linear_descent.predicted_loss(gram, residual[0][:, None], 0.1, 7)
    with pytest.raises(ParameterError, match=r"\(3, 5\) for gram of shape \(6, 6\)"):
        linear_descent.predicted_change(gram, cross, residual[:, :5], 0.1, 7)


def test_steps_are_those_of_the_curve():
    gram, _, residual = problem()
    eta = 1.8 / torch.linalg.eigvalsh(gram)[-1]
    curve = linear_descent.predicted_loss(gram, residual, eta, 400)
    expected = (curve <= 0.001 * curve[:, :1]).int().argmax(1)
    assert linear_descent.predicted_steps(gram, residual, eta, 0.001).tolist() == expected.tolist()
    assert linear_descent.predicted_steps(gram, residual, eta, 1.0).tolist() == [0, 0, 0]
    assert linear_descent.predicted_steps(gram, residual, eta, 0.001, most=2).tolist() == [2, 2, 2]
    with pytest.raises(ParameterError, match="exceeds"):
        linear_descent.predicted_steps(gram, residual, 2.1 / torch.linalg.eigvalsh(gram)[-1], 0.1)
