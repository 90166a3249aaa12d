"""The locally connected net, against autograd and torch's convolution."""

import pytest
import torch

from overparam.bounds import allenzhu2019 as limits
from overparam.experiments.allenzhu2019_thm7 import LocalRuns, ring, torus
from overparam.training import SquaredLoss, gradient_descent

J, Q, M, D, L, N = 5, 3, 4, 2, 3, 3
X = torch.randn(2, N, J, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
Y = torch.randn(N, D, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def by_hand(nets, run, W, x):
    """The net position by position, as the paper writes it, for autograd."""
    A, B = nets.layer(0, run), nets.layer(1_000_002, run)
    pick = lambda t, j: t[min(j, len(t) - 1)]  # noqa: E731
    h = [torch.relu(x[:, nets.Q[j]] @ pick(A, j).T) for j in range(nets.J)]
    for l in range(1, nets.L):
        b = nets.layer(500_000 + l, run)
        seen = [torch.cat([h[k] for k in nets.Q[j]], 1) for j in range(nets.J)]
        h = [torch.relu(seen[j] @ pick(W[l - 1], j).T + nets.tau * pick(b, j)) for j in range(nets.J)]
    return torch.relu(torch.cat(h, 1) @ W[-1].T) @ B.T


def by_autograd(outputs, start, eta, steps):
    """Losses at steps 0..steps of gradient descent on sum |outputs(W) - Y|^2/2, and ||W - start||_F of every layer."""
    W, losses = [w.clone().requires_grad_() for w in start], []
    for k in range(steps + 1):
        value = (outputs(W) - Y).square().sum() / 2
        losses.append(value.item())
        grads = torch.autograd.grad(value, W)
        if k < steps:
            W = [(w - eta * g).detach().requires_grad_() for w, g in zip(W, grads, strict=True)]
    return losses, torch.stack([(w.detach() - w0).norm() for w, w0 in zip(W, start, strict=True)])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("one_set", [False, True])
def test_training_is_autograds_gradient_descent(shared, batched, one_set):
    nets = LocalRuns(ring(J, Q), M, D, L, tau=0.5, shared=shared, seeds=[1, 2])
    x, eta, steps = X[0] if one_set else X, 0.05, 4
    log = {"movement": lambda run: run.movement(), "norms": lambda run: run.norms()}
    history = gradient_descent(nets, x, SquaredLoss(Y, "halfsum"), eta, steps, log=log, batched=batched)
    for run in range(2):
        start = [nets.layer(l, run) for l in range(1, L + 1)]
        outputs = lambda W, run=run: by_hand(nets, run, W, x if one_set else x[run])  # noqa: E731
        losses, moved = by_autograd(outputs, start, eta, steps)
        assert history.loss[run].tolist() == pytest.approx(losses, rel=1e-10)
        torch.testing.assert_close(history.logs["movement"][run, 0], moved)


def test_shared_weights_on_a_torus_are_torchs_convolution():
    side, m = 4, 3
    nets = LocalRuns(torus(side), m, 1, 2, seeds=[0], shared=True)
    x = torch.randn(2, side**2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    descent = nets.descent(x, 0)
    descent.forward()
    kernel = nets.layer(0, 0).reshape(m, 1, 3, 3)
    padded = torch.nn.functional.pad(x.reshape(2, 1, side, side), (1, 1, 1, 1), mode="circular")
    expected = torch.relu(torch.nn.functional.conv2d(padded, kernel)).reshape(2, m, side**2)
    torch.testing.assert_close(descent.h[0].permute(1, 2, 0), expected)


def test_neighbourhoods_are_regular():
    for Q_, q in ((ring(9, 3), 3), (torus(4), 9), (torus(5, 2), 25)):
        assert Q_.shape == (len(Q_), q)
        assert all(len(set(row)) == q for row in Q_.tolist())
        assert (torch.bincount(Q_.flatten()) == q).all()
    assert ring(9, 3)[0].tolist() == [8, 0, 1]


@pytest.mark.parametrize("init", ["corrected", "printed"])
def test_norms_at_the_start_are_those_of_wide_nets(init):
    m, q = 300, 3
    nets = LocalRuns(ring(9, q), m, 1, 3, init=init, tau=0.3, seeds=[4])
    x = torch.nn.functional.normalize(X.reshape(-1)[:27].reshape(3, 9), dim=1)
    descent = nets.descent(x, 0)
    descent.forward()
    norms = descent.norms()
    first, last = limits.cnn_gains(m, q, 9) if init == "printed" else (1, 1)
    squares = [limits.cnn_norm_sq(first, 0.3, 9, q, l) for l in range(3)]
    expected = torch.tensor([*squares, squares[-1] * last]).double().sqrt().expand(3, 4)
    torch.testing.assert_close(norms, expected, rtol=0.1, atol=0)
    assert norms[0, -1].item() == pytest.approx(descent.h[-1][0].norm().item())
