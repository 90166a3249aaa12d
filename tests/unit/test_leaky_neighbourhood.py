"""Activations, gradients and changes of the leaky net near its weights, against autograd and the net itself."""

import pytest
import torch

from overparam.models.leaky import LeakyMLP
from overparam.theory.perturbation import leaky_neighbourhood as near

N, P, M, L = 5, 4, 6, 3
X = torch.randn(N, P, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def opened(alpha, d=2):
    return LeakyMLP(P, M, d, L, alphas=[alpha], seeds=[1], dtype=torch.float64).descent(X, 0)


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.5, 1.0])
def test_at_its_own_weights_it_is_the_net_and_autograds_gradient(alpha):
    run = opened(alpha)
    W = [w.clone().requires_grad_() for w in near.weights(run)]
    torch.testing.assert_close(near.outputs(run, W).detach(), run.forward())
    v = torch.randn(N, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    expected = torch.autograd.grad((near.outputs(run, W) * v).sum(), W)
    for found, wanted in zip(near.gradients(run, near.weights(run), v), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    for found, wanted in zip(near.sensitivities(run, near.weights(run), v), run.sensitivities(v), strict=True):
        torch.testing.assert_close(found, wanted)


def test_a_step_along_the_gradient_is_the_trainings():
    run = opened(-0.5)
    W = near.weights(run)
    residual = run.forward()
    changes = near.gradients(run, W, residual)
    run.descend(0.01 * residual)
    torch.testing.assert_close(near.outputs(run, near.moved(W, changes, -0.01)), run.forward())


def test_sensitivities_are_the_backward_operators():
    run = opened(-1.0, d=1)
    W = near.weights(run)
    g, _ = near.forward(run, W)
    D = [torch.diag(near.slopes(run, pre)[0]) for pre in g]
    row = near.sensitivities(run, W, torch.ones(N, 1, dtype=torch.float64))[0][0]
    torch.testing.assert_close(row, (run.B @ D[2] @ W[2] @ D[1] @ W[1] @ D[0])[0])


def test_changes_have_the_norm_that_is_asked_for():
    W = near.weights(opened(0.0))
    torch.testing.assert_close(near.spectral_norms(near.gaussian(W, seed=0)), torch.ones(L, dtype=torch.float64))
    together = near.spectral_norms(near.normalised([k * w for k, w in enumerate(W, 1)]))
    torch.testing.assert_close(together.max(), torch.tensor(1.0, dtype=torch.float64))
    assert together.min() < 1
