"""The deep ReLU net of Allen-Zhu et al.

2019, its residual form and its training, against autograd.
"""

import math

import pytest
import torch

from overparam.data import load
from overparam.models.deep_relu import ReLUNet, ReLURuns, WideLayer, gram_root
from overparam.training import SquaredLoss, gradient_descent

P, M, D, L, N = 5, 12, 2, 3, 4
TAUS = [None, 0.3]
X = load("sphere", n_train=N, n_test=3, d=P - 1, transform="unit_bias", seed=1)
Y = torch.randn(N, D, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


def by_hand(A, W, B, x, tau):
    """The net as the paper writes it, for autograd."""
    h = torch.relu(x @ A.T)
    for l, layer in enumerate(W, 1):
        g = h @ layer.T
        h = torch.relu(h + tau * g if tau is not None and l < len(W) else g)
    return h @ B.T


def leaves(net):
    return [w.clone().requires_grad_() for w in net.W]


@pytest.mark.parametrize("tau", TAUS)
def test_outputs_gradients_and_back_are_autograds(tau):
    net, x = ReLUNet(P, M, D, L, tau=tau, seed=3), X.x_train
    W = leaves(net)
    y = by_hand(net.A, W, net.B, x, tau)
    torch.testing.assert_close(net.outputs(x), y.detach())
    gradients = [z.T @ h for h, z in net.factors(x, Y)]
    torch.testing.assert_close(gradients, list(torch.autograd.grad((y * Y).sum(), W)))
    g, _ = net.forward(x)
    for l in range(1, L + 2):
        below = net.forward(x)[1][l - 1][0]
        J = torch.autograd.functional.jacobian(lambda h, l=l: _from_layer(net, l, h), below)
        torch.testing.assert_close(net.back(g, l)[0], J)


def _from_layer(net, l, h):
    for k in range(l, L + 1):
        h = torch.relu(net.apply(k, h))
    return h @ net.B.T


def test_entries_have_the_papers_variances_and_layers_their_own_streams():
    net = ReLUNet(40, 400, 50, 2, seed=0)
    for matrix, variance in [
        (net.A, 2 / 400),
        (net.W[0], 2 / 400),
        (net.W[1], 2 / 400),
        (net.B, 1 / 50),
    ]:
        error = 6 * math.sqrt(2 / matrix.numel())
        assert matrix.square().mean().item() == pytest.approx(variance, rel=error)
    assert abs(torch.corrcoef(torch.stack([w.flatten() for w in net.W]))[0, 1]) < 6 / 400
    deeper = ReLUNet(40, 400, 50, 3, seed=0)
    assert torch.equal(deeper.W[1], net.W[1])
    assert torch.equal(deeper.B, net.B)


def test_a_wide_layer_has_the_law_of_the_net():
    x = X.x_train[:2]
    (g,), (h0, h1) = WideLayer(200_000, seed=5).forward(x)
    torch.testing.assert_close(h1, g.clamp(min=0))
    net = ReLUNet(P, 2000, 1, 1, seed=6)
    (g_net,), (h_net, _) = net.forward(x)
    for wide, narrow in ((h0, h_net), (g, g_net)):
        torch.testing.assert_close(wide @ wide.T, narrow @ narrow.T, atol=0.2, rtol=0)
    torch.testing.assert_close(g @ g.T, 2 * h0 @ h0.T, atol=0.03, rtol=0)
    assert torch.equal(
        WideLayer(100, seed=5).forward(x)[0][0], WideLayer(100, seed=5).forward(x)[0][0]
    )


def test_a_singular_gram_matrix_has_a_root():
    h = torch.randn(2, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)[
        [0, 1, 0]
    ]
    C = gram_root(h)
    torch.testing.assert_close(C @ C.T, h @ h.T)


def weights_of(run, depth):
    """W_1..W_L of a run in training.

    For L = 1 the smallest W_1 that gives the drawn pre-activations.
    """
    first = (torch.linalg.pinv(run.h0) @ run.first).T if depth == 1 else run.start.W[0]
    return [first + run.P.T @ run.h0[: run.n], *run.W]


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("batched", [False, True])
def test_training_is_autograds_gradient_descent(depth, tau, batched):
    eta, steps, seeds, held = 0.03, 6, [4, 5], X.x_test
    nets = ReLURuns(P, M, D, depth, seeds=seeds, tau=tau, kappa=[1.0, 0.5], held_out=held)
    loss = SquaredLoss(Y, "halfsum")
    log = {
        "everywhere": lambda run: run.everywhere(),
        "change": lambda run: run.change_norms(),
        "gradient": lambda run: run.gradient_norms(loss),
        "flips": lambda run: run.flips(),
        "ntk": lambda run: run.ntk(1),
    }
    history = gradient_descent(nets, X.x_train, loss, eta, steps, log=log, batched=batched)
    for run in range(2):
        descent = nets.descent(X.x_train, run)
        start = [w.clone() for w in weights_of(descent, depth)]
        net = ReLUNet(P, M, D, depth, tau=tau, seed=seeds[run])
        net.B = net.B * [1.0, 0.5][run]
        W = [w.clone().requires_grad_() for w in start]
        losses = []
        for k in range(steps + 1):
            value = (by_hand(net.A, W, net.B, X.x_train, tau) - Y).square().sum() / 2
            losses.append(value.item())
            grads = torch.autograd.grad(value, W)
            if k < steps:
                W = [(w - eta * g).detach().requires_grad_() for w, g in zip(W, grads, strict=True)]
        assert history.loss[run].tolist() == pytest.approx(losses, rel=1e-9)
        everyone = torch.cat([X.x_train, held])
        now, before = net.with_weights([w.detach() for w in W]), net.with_weights(start)
        at = {name: values[run, 0] for name, values in history.logs.items()}
        torch.testing.assert_close(at["everywhere"], now.outputs(everyone))
        changes = [w.detach() - w0 for w, w0 in zip(W, start, strict=True)]
        norms = torch.stack(
            [torch.stack([torch.linalg.matrix_norm(c, 2), c.norm()]) for c in changes]
        )
        torch.testing.assert_close(at["change"][:, 1], norms[:, 1])
        torch.testing.assert_close(at["change"][:, 0], norms[:, 0], rtol=1e-3, atol=0)
        assert (at["change"][:, 0] <= norms[:, 0] * (1 + 1e-9)).all()
        norms = torch.stack(
            [torch.stack([torch.linalg.matrix_norm(g, 2), g.norm()]) for g in grads]
        )
        torch.testing.assert_close(at["gradient"], norms)
        pairs = zip(now.forward(X.x_train)[0], before.forward(X.x_train)[0], strict=True)
        torch.testing.assert_close(
            at["flips"], torch.stack([((a >= 0) != (b >= 0)).double().mean() for a, b in pairs])
        )
        _check_ntk(at["ntk"], now, before, changes, everyone)


def _check_ntk(ntk, now, before, changes, x):
    torch.testing.assert_close(ntk[:, 0], (now.outputs(x) - before.outputs(x))[:, 1])
    rows = []
    for net in (now, before):
        W = leaves(net)
        y = by_hand(net.A, W, net.B, x, net.tau)[:, 1]
        grads = [torch.autograd.grad(y_i, W, retain_graph=True) for y_i in y]
        rows.append(torch.stack([torch.cat([g.flatten() for g in row]) for row in grads]))
    J, J0 = rows
    torch.testing.assert_close(ntk[:, 1], J0 @ torch.cat([change.flatten() for change in changes]))
    torch.testing.assert_close(ntk[:, 2], (J - J0).norm(dim=1) / J0.norm(dim=1))
    sizes = J0.norm(dim=1)
    torch.testing.assert_close(
        ntk[:, 3], ((J @ J.T - J0 @ J0.T).abs() / torch.outer(sizes, sizes)).amax(1)
    )


def test_some_of_the_rows_move_the_weights_as_their_gradient_does():
    nets = ReLURuns(P, M, D, 2, seeds=[1])
    few, all_ = nets.descent(X.x_train, 0), nets.descent(X.x_train, 0)
    rows, v = torch.tensor([2, 0]), torch.zeros(N, D, dtype=torch.float64)
    v[rows] = Y[:2]
    all_.forward()
    all_.descend(v)
    torch.testing.assert_close(few.forward(rows), nets.descent(X.x_train, 0).forward()[rows])
    few.descend(Y[:2])
    torch.testing.assert_close(few.forward(), all_.forward())
