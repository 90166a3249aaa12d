"""The residual net, its gradients and its neighbourhood against autograd, finite differences and
brute force.
"""

import itertools

import numpy as np
import pytest
import torch

from overparam.bounds import frei2019
from overparam.data import load
from overparam.errors import ParameterError
from overparam.models.residual import ResidualReLU, ResidualRuns, theta_of
from overparam.training import LogisticLoss, gradient_descent

D, M, DEPTH = 5, 8, 4
RULES = ["1/L", "1/sqrtL", "plain"]


def net_of(rule, seed=0, m=M, L=DEPTH):
    return ResidualReLU(D, m, L, theta_of(rule, L), seed=seed)


def inputs(n=6, seed=1):
    return load("sphere", n_train=n, n_test=0, d=D, seed=seed).x_train


def by_hand(W, x, theta, v):
    """The net as the paper writes it, for autograd."""
    h = torch.relu(x @ W[0])
    for l in range(1, len(W) - 1):
        update = torch.relu(h @ W[l])
        h = update if theta is None else h + theta * update
    return torch.relu(h @ W[-1]) @ v


@pytest.mark.parametrize("rule", RULES)
def test_input_jacobian_norms_are_those_of_autograds_jacobian(rule):
    net, x = net_of(rule), inputs(n=3)
    norms = net.input_jacobian_norms(net.forward(x)[1])
    for i, layer in itertools.product(range(3), range(DEPTH + 1)):
        J = torch.autograd.functional.jacobian(
            lambda point, layer=layer: net.forward(point[None])[0][layer][0], x[i]
        )
        torch.testing.assert_close(norms[i, layer], torch.linalg.matrix_norm(J, 2))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("batched", [False, True])
def test_training_is_autograds_gradient_descent(rule, batched):
    x, y, eta, steps = inputs(), torch.tensor([1.0, -1, 1, 1, -1, -1], dtype=torch.float64), 0.05, 7
    nets = ResidualRuns(D, M, DEPTH, theta_of(rule, DEPTH), seeds=[4, 5])
    log = {
        "change": lambda run: run.change_norms()[..., 1],
        "gradients": lambda run: run.gradient_norms(LogisticLoss(y)),
    }
    history = gradient_descent(
        nets,
        x,
        LogisticLoss(y),
        eta,
        steps,
        log=log,
        at={"change": [0, steps], "gradients": [3]},
        batched=batched,
    )
    for run, seed in enumerate((4, 5)):
        start = net_of(rule, seed).W
        W, losses = [w.clone().requires_grad_() for w in start], []
        for k in range(steps + 1):
            margins = y * by_hand(W, x, nets.descent(x, 0).net.theta, net_of(rule).v)
            loss = torch.log1p(torch.exp(-margins)).mean()
            losses.append(loss.item())
            grads = torch.autograd.grad(loss, W)
            if k == 3:
                norms = [[torch.linalg.matrix_norm(g, 2).item(), g.norm().item()] for g in grads]
            if k < steps:
                W = [(w - eta * g).detach().requires_grad_() for w, g in zip(W, grads, strict=True)]
        np.testing.assert_allclose(history.loss[run], losses, rtol=1e-10)
        np.testing.assert_allclose(history.logs["gradients"][run, 0], norms, rtol=1e-9)
        moved = [(w - w0).norm().item() for w, w0 in zip(W, start, strict=True)]
        np.testing.assert_allclose(history.logs["change"][run, 1], moved, rtol=1e-9)
        assert (history.logs["change"][run, 0] == 0).all()


def test_logistic_loss_and_surrogate_against_the_plain_formulas():
    y = torch.tensor([1.0, -1, 1], dtype=torch.float64)
    u = torch.tensor([0.3, 2.0, -800.0], dtype=torch.float64)
    value, derivative = LogisticLoss(y)(u)
    assert value.item() == pytest.approx((np.log1p(np.exp(-0.3)) + np.log1p(np.exp(2.0)) + 800) / 3)
    expected = [-1 / (1 + np.exp(0.3)) / 3, 1 / (1 + np.exp(-2.0)) / 3, -1 / 3]
    np.testing.assert_allclose(derivative, expected)
    surrogate = LogisticLoss(y).surrogate(u)
    assert surrogate.item() == pytest.approx(derivative.abs().sum().item())
    with pytest.raises(ParameterError, match=r"\+1 or -1"):
        LogisticLoss(torch.tensor([0.0, 1.0]))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("L", [1, 6])
def test_gradients_of_a_wide_net_have_their_closed_form(rule, L):
    """Root mean squares over inputs and nets.

    At m = 1500 what is left is noise of a few percent.
    """
    x, squares = inputs(8), []
    for seed in range(4):
        net = net_of(rule, seed, m=1500, L=L)
        factors = net.factors(x)
        squares.append([(h.square().sum(-1) * z.square().sum(-1)).mean() for h, z in factors])
    measured = np.sqrt(np.mean(squares, axis=0) / 1500)
    np.testing.assert_allclose(
        measured, frei2019.ref_gradient(np.arange(1, L + 2), L, net.theta), rtol=0.06
    )
