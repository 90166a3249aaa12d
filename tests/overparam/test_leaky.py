"""The leaky net's gradients, Gram matrices and stochastic training.

And its losses, against autograd.
"""

import numpy as np
import pytest
import torch

from overparam.errors import ParameterError, TrainingDiverged
from overparam.models.leaky import LeakyMLP
from overparam.training import (
    CrossEntropyLoss,
    Epochs,
    ExponentialExcess,
    SquaredLoss,
    gradient_descent,
)
from overparam.training.batches import epoch_order

N, P, M, L = 7, 4, 6, 3
ALPHAS = [-1.0, 0.0, 0.5]


def net_of(d=1):
    return LeakyMLP(P, M, d, L, alphas=ALPHAS, seeds=[0, 1, 2], dtype=torch.float64)


def inputs(n=N):
    return torch.randn(n, P, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def by_hand(net, run, W, x):
    """Algorithm 1 as printed, for autograd."""
    alpha, norm = ALPHAS[run], (1 + ALPHAS[run] ** 2) ** 0.5
    h = x @ net.A[run].T
    for w in W:
        g = h @ w.T
        h = torch.where(g >= 0, g, alpha * g) / norm
    return h @ net.B[run].T


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("keep_W1", [True, False])
def test_trained_biases_are_autograds(keep_W1, batched):
    seeds, options = [4] * 3, {"keep_W1": keep_W1, "dtype": torch.float64}
    net = LeakyMLP(P, M, 1, L, alphas=ALPHAS, seeds=seeds, biases=True, **options)
    x = inputs()
    y = inputs()[:, :1]
    eta, steps, new = 0.05, 6, inputs(3) + 1
    log = {
        "test": lambda run: run.predict(net.embed(new)),
        "biases": lambda run: torch.stack(run.biases, -2),
    }
    loss = SquaredLoss(y, "mean")
    history = gradient_descent(net, net.embed(x), loss, eta, steps, log=log, batched=batched)
    for run, alpha in enumerate(ALPHAS):
        layers = [torch.nn.Linear(M, M, dtype=torch.float64) for _ in range(L)]
        with torch.no_grad():
            for layer, w in zip(layers, net.W[0], strict=True):
                layer.weight.copy_(w)
                layer.bias.zero_()

        def outputs(inputs, layers=layers, alpha=alpha):
            h = inputs @ net.A[0].T
            for layer in layers:
                h = torch.nn.functional.leaky_relu(layer(h), alpha) / (1 + alpha**2) ** 0.5
            return h @ net.B[0].T

        descent = torch.optim.SGD([p for layer in layers for p in layer.parameters()], lr=eta)
        for _ in range(steps):
            descent.zero_grad()
            ((outputs(x) - y) ** 2).mean().backward()
            descent.step()
        torch.testing.assert_close(history.logs["test"][run, -1], outputs(new).detach())
        torch.testing.assert_close(
            history.logs["biases"][run, -1], torch.stack([l.bias for l in layers]).detach()
        )
        assert all(layer.bias.abs().max() > 1e-3 for layer in layers)


@pytest.mark.parametrize("run", range(3))
def test_at_other_weights_it_is_autograds(run):
    net, x = net_of(2), inputs()
    opened = net.descent(x, run)
    opened.forward()
    torch.testing.assert_close(torch.stack(opened.weights), net.W[run])
    torch.testing.assert_close(opened.at(opened.weights).forward(), opened.forward())
    W = [(2 * w).requires_grad_() for w in net.W[run]]
    other, outputs = opened.at([w.detach() for w in W]), by_hand(net, run, W, x)
    torch.testing.assert_close(other.forward(), outputs.detach())
    v = torch.randn(N, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    torch.testing.assert_close(
        other.gradients(v), list(torch.autograd.grad((outputs * v).sum(), W))
    )


@pytest.mark.parametrize(
    "make", [lambda y: SquaredLoss(y, "sum"), lambda y: SquaredLoss(y, "mean"), CrossEntropyLoss]
)
@pytest.mark.parametrize("batched", [False, True])
def test_stochastic_descent_is_autograds(make, batched):
    d, eta, epochs, batch = 3, 0.05, 3, 3
    net, x = net_of(d), inputs()
    y = (
        torch.arange(N) % d
        if make is CrossEntropyLoss
        else torch.linspace(-1, 1, N * d).double().reshape(N, d)
    )
    log = {"f": lambda run: run.predict(x)}
    options = {"batches": Epochs(batch, seed=5), "log": log, "batched": batched}
    history = gradient_descent(net, x, make(y), eta, epochs, **options)
    for run in range(3):
        W = [w.clone().requires_grad_() for w in net.W[run]]
        losses = [reference(make, by_hand(net, run, W, x), y)]
        for epoch in range(epochs):
            for index in epoch_order(N, 5, epoch).split(batch):
                value = reference(make, by_hand(net, run, W, x[index]), y[index])
                grads = torch.autograd.grad(value, W)
                W = [(w - eta * g).detach().requires_grad_() for w, g in zip(W, grads, strict=True)]
            losses.append(reference(make, by_hand(net, run, W, x), y))
        np.testing.assert_allclose(
            history.loss[run], [value.item() for value in losses], rtol=1e-10
        )
        np.testing.assert_allclose(
            history.logs["f"][run, 0], by_hand(net, run, W, x).detach(), rtol=1e-8, atol=1e-10
        )


def reference(make, u, y):
    if make is CrossEntropyLoss:
        return torch.nn.functional.cross_entropy(u, y)
    squares = (u - y).square()
    return squares.sum() if make(y).form == "sum" else squares.mean()


@pytest.mark.parametrize("runs_axis", [False, True])
def test_exponential_loss_is_autograds(runs_axis):
    u = torch.randn(
        2, N, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True
    )
    y = torch.linspace(-1, 1, N, dtype=torch.float64)[:, None]
    y = torch.stack([y, 2 * y]) if runs_axis else y
    excess, derivative = ExponentialExcess(y, 0.3, runs_axis=runs_axis)(u.detach())
    expected = torch.exp(0.3 * (u - y) ** 2).sum((1, 2)) / 2
    torch.testing.assert_close(excess, expected.detach() - N / 2)
    torch.testing.assert_close(derivative, torch.autograd.grad(expected.sum(), u)[0])
    near = torch.full((1, N, 1), 1e-4, dtype=torch.float32)
    tiny = ExponentialExcess(torch.zeros(N, 1), 0.1)(near)[0]
    torch.testing.assert_close(tiny, torch.full((1,), N * 0.05e-8))


def test_bad_batches_are_refused():
    loss = SquaredLoss(torch.ones(N, 1, dtype=torch.float64), "mean")
    for batch in (N + 1, 0):
        with pytest.raises(ParameterError, match="batch"):
            gradient_descent(net_of(), inputs(), loss, 0.1, 1, batches=Epochs(batch, seed=0))
    with pytest.raises(ParameterError, match="epochs must be at least 1"):
        gradient_descent(net_of(), inputs(), loss, 0.1, 0, batches=Epochs(2, seed=0))
    log = {"f": lambda run: run.forward()}
    with pytest.raises(ParameterError, match="at must lie"):
        gradient_descent(
            net_of(), inputs(), loss, 0.1, 1, batches=Epochs(2, seed=0), log=log, at=[2]
        )


def test_a_diverged_stochastic_training_is_an_error_unless_it_is_asked_for():
    loss = SquaredLoss(torch.ones(N, 1, dtype=torch.float64), "mean")
    batches = Epochs(3, seed=0)
    message = r"run 0: the loss is not finite at epoch \d+; lower eta \(now 1e\+100\)"
    with pytest.raises(TrainingDiverged, match=message):
        gradient_descent(net_of(), inputs(), loss, 1e100, 30, batches=batches)
    history = gradient_descent(
        net_of(), inputs(), loss, 1e100, 30, batches=batches, allow_divergence=True
    )
    assert history.diverged.all()


@pytest.mark.parametrize("batched", [False, True])
def test_keeping_the_first_layer_changes_no_number(batched):
    x = torch.randn(N, P, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    loss = CrossEntropyLoss(torch.arange(N) % 3)
    histories = []
    for keep_W1 in (False, True):
        net = LeakyMLP(
            P, M, 3, L, alphas=ALPHAS, seeds=[4] * 3, keep_W1=keep_W1, dtype=torch.float64
        )
        inputs = net.embed(x)
        log = {
            "f": lambda run, inputs=inputs: run.predict(inputs),
            "W1": lambda run: run.weights[0],
        }
        options = {"batches": Epochs(4, seed=2), "log": log, "batched": batched}
        histories.append(gradient_descent(net, inputs, loss, 0.1, 5, **options))
    expected, direct = histories
    np.testing.assert_allclose(direct.loss, expected.loss, rtol=1e-11)
    for name in ("f", "W1"):
        np.testing.assert_allclose(direct.logs[name], expected.logs[name], rtol=1e-10, atol=1e-12)
